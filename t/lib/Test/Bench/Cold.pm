package Test::Bench::Cold;
# Slow disks: how long hot files wait beside cold ones, and how much of the disk is delivered.
#
# `run($bench)` prints tables of what 50 clients of a hot file see beside cold clients, two tables of
# cold throughput, and the aims. The hot file is on a disk of its own; in the whole form also on the
# slow disk, where a server that opens it for each request has to wait each time. The hot clients are an open loop: their requests start by the clock, and
# latency counts from the scheduled start, so that a server which answers no request for a second cannot
# hide it.
use v5.36;
use Time::HiRes qw(sleep);
use Accel::Figures qw(medians spread);
use Test::Bench::Hot;
use Accel::Bench::Rig;

my $rate = 1000;                # hot requests per second, over 50 connections
my $head_start = 0.5;           # seconds that the cold clients run before the hot ones are measured
# Disks are not in step.  Without the spread all cold clients get their answers in the same instant, every time, and p99 shows
# how many of them fit in a hundredth of a second rather than the wait: 2 to 20 times as much, for Apache too.
# On ext4 and xfs each request takes the same time, and a cold file of 100 kB is one to four of them.
my $image_ms = 100;
my %slow = (spindles => 16, lookup_ms => 200, open_ms => 100, read_ms => 20, jitter => 20);
my @beside = (
	{ name => '16x100k', title => '16 cold clients of 100 kB', clients => 16, list => 'small' },
	{ name => '1x100k', title => '1 cold client of 100 kB', clients => 1, list => 'small' },
	{ name => '1x10m', title => '1 cold client of 10 MB', clients => 1, list => 'large' },
	{ name => '20x100k', title => '20 cold clients of 100 kB', clients => 20, list => 'small' },
	{ name => 'same-disk', title => '16 cold clients of 100 kB on its own disk', clients => 16, list => 'small',
	  hot => '/slow/1k.bin', not_quick => 1 },
);
my @through = map { { name => "$_-spindles", disk => { spindles => $_, lookup_ms => 8, read_ms => 8, jitter => 20 } } } 2, 16;
my $fetchers = 64;
my @peers = (
	{ kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-aio', aio => 1 },
	{ kind => 'lighttpd', name => 'lighttpd' },
	{ kind => 'apache', name => 'apache' },
);
my $accel_fcgi = { kind => 'accel', name => 'accel+fcgi', threads => 32, via_stat_accel => 1 };

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench);
	$slow{read_ms} = $image_ms if $rig->storage ne 'slowfs';
	my @kinds = $bench->wanted($bench->backends, $accel_fcgi, @peers);
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @beside, @through);
	my @cases = grep { $_->{clients} && !($_->{not_quick} && $bench->opt('quick')) } @chosen;
	my @disks = grep { $_->{disk} } @chosen;
	my (%beside, %through);
	for my $round (1 .. $bench->opt('rounds')) {
		for my $k (@kinds) {
			my $runs = neighbours($bench, $rig, $k, @cases);
			push @{ $beside{$_}{ $k->{name} } }, $runs->{$_} for keys %$runs;
		}
		arrivals($bench, $rig, $_->{disk}, $through{ $_->{name} } //= {}, @kinds) for @disks;
		print "# round $round done\n" if $bench->opt('rounds') > 1;
	}
	my @names = map { $_->{name} } @kinds;
	print_beside($bench, $_, $beside{ $_->{name} }, @names) for @cases;
	print_through($bench, $_, $through{ $_->{name} }, @names) for @disks;
	print_aims($bench, \@cases, \@disks, @names);
}

# ------------------------------------------------------------- hot files beside cold ones

# One round of one server: the hot clients alone, then beside each kind of cold client.
sub neighbours ($bench, $rig, $kind, @cases) {
	my (%alone, %runs);
	for my $case (@cases) {
		my $path = $case->{hot} // '/1k.bin';
		$alone{$path} //= $rig->with_server($kind, \%slow, sub { hot_load($bench, $_[0], $path) });
		$runs{ $case->{name} } = $rig->with_server($kind, \%slow,
			sub { beside($bench, $rig, $case, $alone{$path}, $_[0], $path) });
		disturbed_as($runs{ $case->{name} }, $alone{$path});
	}
	return \%runs;
}

# A ratio is disturbed as much as either half of it.
sub disturbed_as ($run, $alone) {
	$run->{others} = $alone->{others} if $alone->{others} > $run->{others};
}

sub warm_up ($bench, $srv, $path) {
	$bench->load(-n => 200, -c => 50, -d => 5, -t => 20, $srv->url . $path);
}

sub hot_load ($bench, $srv, $path) {
	warm_up($bench, $srv, $path);
	sleep $head_start;                      # beside cold clients it is as long after the first request
	return $bench->load(hot_args($bench, $srv, $path));
}

sub hot_args ($bench, $srv, $path) {
	return (-c => 50, '--rate', $rate, -d => $bench->opt('seconds'), -t => 60, $srv->url . $path);
}

sub beside ($bench, $rig, $case, $alone, $srv, $path) {
	warm_up($bench, $srv, $path);
	my $cold = $bench->load_begin(-c => $case->{clients}, -u => $rig->list($case->{list}),
		-d => $bench->opt('seconds') + $head_start, -t => 60, $srv->url . '/');
	sleep $head_start;
	my $hot = $bench->load(hot_args($bench, $srv, $path));
	my $done = $bench->load_end($cold);
	my ($was, $is) = map { $_->{latency_us} } $alone, $hot;
	return { (map { ("alone_$_" => $was->{$_}, $_ => $is->{$_}) } qw(p50 p99 max)),
		# Within a round, so that both figures of the ratio come from the same minute of the machine.
		(map { ("${_}_ratio" => $is->{$_} / ($was->{$_} || 1)) } qw(p50 p99)),
		served => $hot->{requests_per_s}, cold_mb => $done->{mb_per_s}, cold_rps => $done->{requests_per_s},
		errors => $hot->{errors}{all} + $alone->{errors}{all} + $done->{errors}{all} };
}

sub print_beside ($bench, $case, $runs, @names) {
	print "\n50 clients of a hot 1 kB file, $rate req/s by the clock, beside $case->{title}  ($case->{name})\n",
	    '  ', Accel::Bench::Rig::price(\%slow), " (+-$slow{jitter} %), $slow{spindles} spindles\n";
	printf "  %-18s %26s   %29s %8s %8s %8s %9s %7s %6s\n", '', 'alone: p50  p99  max ms', 'beside: p50   p99   max ms',
	    'p50 x', 'p99 x', 'served/s', 'cold MB/s', 'others%', 'errors';
	for my $name (@names) {
		my $m = $bench->result->{beside}{ $case->{name} }{$name} = medians($bench->undisturbed(@{ $runs->{$name} }));
		printf "  %-18s %8.3f %8.3f %8.1f   %9.3f %9.3f %9.1f %8.2f %8.2f %8.0f %9.2f %7.0f %6d\n", $name,
		    (map { $m->{$_} / 1000 } qw(alone_p50 alone_p99 alone_max p50 p99 max)),
		    @$m{qw(p50_ratio p99_ratio served cold_mb others errors)};
	}
}

# ------------------------------------------------------------- how much arrives

# One round: the disk itself, then each server.
sub arrivals ($bench, $rig, $disk, $runs, @kinds) {
	my $files = Accel::Bench::Rig::files_for($disk, $bench->opt('seconds'));
	push @{ $runs->{rig} }, $rig->plain($disk, $files);
	push @{ $runs->{ $_->{name} } }, $rig->fetch_each_once($_, $disk, files => $files, connections => $fetchers) for @kinds;
}

sub print_through ($bench, $case, $runs, @names) {
	my $disk = $case->{disk};
	my $of = $bench->result->{through}{ $case->{name} } = { map { $_ => medians($bench->undisturbed(@{ $runs->{$_} })) } keys %$runs };
	my $best = best_peer($of);
	print "\nCold files of 100 kB, each once, $disk->{spindles} spindles (", Accel::Bench::Rig::price($disk), "), "
	    . "$fetchers connections  ($case->{name})\n";
	printf "  %-18s %9s %5s %9s %9s %9s %9s %9s %9s %7s %6s\n", 'server', 'MB/s', '+-%', 'of rig', 'of best', 'req/s', 'p99 ms',
	    'CPU us/rq', 'of apache', 'others%', 'errors';
	printf "  %-18s %9.1f %5.1f %9.2f %9s %9.0f %9s %9.1f %9s %7.0f   (64 threads that open and read)\n", 'the rig', $of->{rig}{mb},
	    spread(map { $_->{mb} } @{ $runs->{rig} }), 1, '', $of->{rig}{rps}, '', $of->{rig}{cpu}, '', $of->{rig}{others};
	for my $name (@names) {
		my $m = $of->{$name};
		$m->{of_rig} = over($m->{mb}, $of->{rig}{mb});
		$m->{of_best} = $best && over($m->{mb}, $of->{$best}{mb});
		$m->{cpu_of_apache} = $of->{apache} && over($m->{cpu}, $of->{apache}{cpu});
		printf "  %-18s %9.1f %5.1f %9.2f %9s %9.0f %9.0f %9.1f %9s %7.0f %6d\n", $name, $m->{mb},
		    spread(map { $_->{mb} } @{ $runs->{$name} }), $m->{of_rig},
		    (defined $m->{of_best} ? sprintf '%.2f', $m->{of_best} : '-'), $m->{rps}, ($m->{p99} // 0) / 1000,
		    $m->{cpu} // 0, (defined $m->{cpu_of_apache} ? sprintf '%.2f', $m->{cpu_of_apache} : '-'),
		    @$m{qw(others errors)};
	}
}

sub best_peer ($of) {
	my ($best) = sort { $of->{$b}{mb} <=> $of->{$a}{mb} } grep { $of->{$_} } map { $_->{name} } @peers;
	return $best;
}

sub over ($a, $b) {
	return ($b // 0) > 0 ? ($a // 0) / $b : 0;
}

# ------------------------------------------------------------- aims

sub print_aims ($bench, $cases, $disks, @names) {
	my $ours = $bench->ours(@names) // return;
	print "\nAims of $ours\n";
	for my $case (@$cases) {
		my $m = $bench->result->{beside}{ $case->{name} }{$ours};
		$bench->aim("hot p99 beside $case->{title} / alone", $m->{p99_ratio}, '<=', 2, $m);
		$bench->aim("hot p50 beside $case->{title} / alone", $m->{p50_ratio}, '<=', 1.1, $m);
	}
	for my $disk (@$disks) {
		my $n = $disk->{disk}{spindles};
		my $of = $bench->result->{through}{ $disk->{name} };
		my $m = $of->{$ours};
		my $best = best_peer($of);
		$bench->aim("cold MB/s, $n spindles / $best", $m->{of_best}, '>=', 0.97, $m, $of->{$best})
		    if $best;
		$bench->aim("CPU per cold request, $n spindles / apache", $m->{cpu_of_apache}, '<=', 1 / 3,
		    $m, $of->{apache}) if $of->{apache};
		$bench->aim("cold MB/s, $n spindles / nginx-aio", over($m->{mb}, $of->{'nginx-aio'}{mb}), '>=', 9,
		    $m, $of->{'nginx-aio'}) if $n == 16 && $of->{'nginx-aio'};
	}
}

1;
