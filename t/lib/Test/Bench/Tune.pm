package Test::Bench::Tune;
# What accel-tune finds in a fifth of the time of a full sweep.
#
# A full sweep measures each combination of stat threads, read threads and backend, in interleaved rounds. Then the search gets a fifth of the time
# that the sweep took. The throughput of the setting that the search names, as the sweep measured it, is compared with the best of the sweep.
#
# The files are 100 kB and 1 MB. Small files are read by stat threads alone, so both pools count. The server has one thread of each kind before,
# so that there is something to find.
use v5.36;
use Accel::SlowImage      ();
use Accel::Slowfs         ();
use Accel::Tune::Config   ();
use Accel::Tune::Files    ();
use Accel::Tune::Report   ();
use Accel::Tune::Search   ();
use Accel::Tune::Server   ();
use Accel::Util           qw(put);

use constant { CLIENTS => 32, SMALL => 900, LARGE => 100, SHARE => 0.2, NEAR => 0.95, FOREVER => 86_400, SMALL_BYTES => 102_400, LARGE_BYTES => 1_048_576 };

my %case = (
	'slowfs-2' => { class => 'Accel::Slowfs', disk => { spindles => 2, lookup_ms => 6, read_ms => 4 } },
	'slowfs-7' => { class => 'Accel::Slowfs', disk => { spindles => 7, lookup_ms => 6, read_ms => 4 } },
	'ext4-2'   => { class => 'Accel::SlowImage', type => 'ext4', disk => { spindles => 2, read_ms => 4 } },
);

sub run ($bench) {
	my @cases = @{ $bench->opt('case') // [sort keys %case] };
	for my $name (@cases) {
		my $case = $case{$name} // die "bench: no case \"$name\"; there are: @{[sort keys %case]}\n";
		my ($ok, $why) = $case->{class}->usable($case->{type} // ());
		if (!$ok) { $bench->note("$name left out: $why"); next }
		compare($bench, $name, $case);
	}
	return;
}

sub compare ($bench, $name, $case) {
	my $place = prepare($bench, $name, $case);
	my $disk = $bench->{disk} = start($case, $place);
	my $files = Accel::Tune::Files->listed($place->{source}, $place->{list});
	$files->move($disk->dir);
	$files->{forget} = sub { $disk->forget };
	my $config = Accel::Tune::Config->load(put($bench->dir . "/$name.conf", conf($disk->dir)));
	my $trial = Accel::Tune::Server->new(files => $files, config => $config, seconds => $bench->opt('seconds'), clients => CLIENTS, peer => { $bench->cpu_of_servers });
	my @factors = factors($config, $bench->opt('quick'));
	my $measure = sub ($setting) { $trial->measure($setting) };
	my $shown = sub ($setting, $result) { print_progress($name, $setting, $result) };
	my @common = (measure => $measure, shown => $shown, objective => 'throughput');
	my $full = Accel::Tune::Search->new(factors => [@factors], seconds => FOREVER, @common)->full($bench->opt('rounds'));
	my $found = Accel::Tune::Search->new(factors => [@factors], seconds => SHARE * $full->{seconds}, @common)->run;
	print STDERR "\r\e[K" if -t STDERR;
	delete($bench->{disk})->stop;
	return show($bench, $name, $full, $found);
}

sub print_progress ($name, $setting, $result) {
	return unless -t STDERR;
	my $text = "$name: " . join(' ', map { $setting->{$_} } sort keys %$setting) . ': ' . ($result->{failed} // sprintf '%.1f MB/s', $result->{throughput});
	print STDERR "\r", substr($text, 0, 78), "\e[K";
	return;
}

sub conf ($root) {
	return qq{server.document-root = "$root"\nserver.max-stat-threads = 1\nserver.max-read-threads = 1\nserver.max-worker = 1\n};
}

sub factors ($config, $quick) {
	my %values = $quick ? ('stat-threads' => [1, 2, 4, 8, 16, 32], 'read-threads' => [1, 4, 16, 32], backend => ['adaptive'])
	    : ('stat-threads' => [1, 2, 4, 8, 16, 32, 64], 'read-threads' => [1, 2, 4, 8, 16, 32, 64], backend => [qw(adaptive gthread-aio)]);
	return map { { %$_, values => $values{ $_->{name} } // [$_->{now}] } } Accel::Tune::Server::factors($config);
}

# ---------------------------------------------------------------- the disk

sub prepare ($bench, $name, $case) {
	my $dir = $bench->dir . "/$name";
	mkdir $dir or die "$dir: $!\n";
	my @names = map { [$_ < SMALL ? 's' : 'l', int($_ / 2), $_] } 0 .. SMALL + LARGE - 1;
	my $list = put("$dir/list", join '', map { "/$_->[0]/$_->[1]/$_->[2].bin\n" } @names);
	my %one = map { $_->[0] => put("$dir/$_->[0].bin", 'x' x $_->[1]) } ['s', SMALL_BYTES], ['l', LARGE_BYTES];
	my $source = "$dir/source";
	fill($source, \@names, sub ($kind, $path) { link $one{$kind}, $path or die "$path: $!\n" });
	return { source => $source, list => $list } unless $case->{type};
	my $image = $case->{class}->make(type => $case->{type}, file => "$dir/disk.img", files => 2 * @names, bytes => SMALL * SMALL_BYTES + LARGE * LARGE_BYTES,
		fill => sub ($at) { fill($at, \@names, sub ($kind, $path) { put($path, 'x' x -s $one{$kind}) }) });
	return { source => $source, list => $list, image => $image };
}

# Two files share a directory.
sub fill ($root, $names, $put) {
	mkdir $_ for $root, "$root/s", "$root/l";
	for my $name (@$names) {
		my ($kind, $dir, $n) = @$name;
		mkdir "$root/$kind/$dir";
		$put->($kind, "$root/$kind/$dir/$n.bin");
	}
	return;
}

sub start ($case, $place) {
	return $case->{class}->start($place->{image} ? (image => $place->{image}) : (source => $place->{source}), %{ $case->{disk} });
}

# ---------------------------------------------------------------- the result

sub show ($bench, $name, $full, $found) {
	my %of = map { Accel::Tune::Race::key($_->{setting}) => $_ } @{ $full->{candidates} };
	my ($best) = sort { $b->{throughput} <=> $a->{throughput} } @{ $full->{candidates} };
	my $chosen = $of{ Accel::Tune::Race::key($found->{chosen}) } // die "bench: the sweep has no figures of what the search chose\n";
	my $words = sub ($c) { join ', ', map { "$_ $c->{setting}{$_}" } grep { $_ ne 'read-ahead' } sort keys %{ $c->{setting} } };
	printf "\n%s: full sweep of %d combinations in %s, search in %s (%d measurements, %.0f %% noise)\n", $name, scalar @{ $full->{candidates} },
	    Accel::Tune::Report::duration($full->{seconds}), Accel::Tune::Report::duration($found->{seconds}), $found->{measurements}, 100 * $found->{spread};
	printf "  best of the sweep %7.1f MB/s: %s\n  named by search   %7.1f MB/s: %s\n  before            %7.1f MB/s\n", $best->{throughput}, $words->($best),
	    $chosen->{throughput}, $words->($chosen), $of{ Accel::Tune::Race::key($found->{now}) }{throughput};
	$bench->result->{tune}{$name} = { full => $full, search => $found };
	$bench->aim("$name: throughput, of the best of a full sweep", $chosen->{throughput} / $best->{throughput}, '>=', NEAR);
	$bench->aim("$name: time, of that of the full sweep", $found->{seconds} / $full->{seconds}, '<=', SHARE);
	return;
}

1;
