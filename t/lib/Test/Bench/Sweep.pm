package Test::Bench::Sweep;

=head1 NAME

Test::Bench::Sweep - how many threads: cold throughput and tails over the sizes of both pools

=head1 DESCRIPTION

The sweep of 2007 again: two disks that take 8 ms for a look-up and for a read, 64 clients, cold files of
100 kB. C<run($bench)> changes C<server.max-stat-threads> while C<server.max-read-threads> keeps its
default, and the other way round; with C<--grid> it tries every pair. It prints a table and a chart of
the throughput, the same of p99, and one sentence: which settings are as good as the best, and whether
the rule of 2007 is among them.

=cut

use strict;
use warnings;
use Accel::Bench::Engine qw(medians);
use Accel::Bench::Rig;
use Accel::Util qw(program);

my @stat = (0, 1, 2, 4, 8, 16);
my @read = (1, 2, 4, 8, 16, 32, 64);
my %disk = (spindles => 2, lookup_ms => 8, read_ms => 8);
my $clients = 64;
my $near = 0.97;                # of the best throughput: as good as the best
my @charts = (
	{ name => 'throughput', title => 'Cold throughput, MB/s', value => sub { $_[0]{mb} } },
	{ name => 'p99', title => 'p99 of cold requests, ms', value => sub { $_[0]{p99} / 1000 } },
);

sub run {
	my ($bench) = @_;
	my $rig = Accel::Bench::Rig->new($bench);
	my $kind = backend($bench);
	my %default = defaults(scalar `@{[ program('accel-server') ]} --manual`);
	my @points = $bench->opt('grid') ? grid(\%default) : lines(\%default);
	my $files = Accel::Bench::Rig::files_for(\%disk, $bench->opt('seconds'));
	my %runs;
	for my $round (1 .. $bench->opt('rounds')) {
		@points = grep { measure($bench, $rig, $kind, $_, $files, $runs{ $_->[0] }{ $_->[1] } //= []) } @points;
	}
	my @results = map { { stat => $_->[0], read => $_->[1],
		%{ medians($bench->undisturbed(@{ $runs{ $_->[0] }{ $_->[1] } })) } } } @points;
	my $disturbed = grep { $bench->disturbed($_) } @results;
	$bench->note("$disturbed of " . @results . ' settings were disturbed by others in each round') if $disturbed;
	$bench->result->{sweep} = { backend => $kind->{name}, points => \@results };
	print "\n$kind->{name}: $clients clients, cold files of 100 kB, $disk{spindles} spindles, $disk{lookup_ms} ms for each "
	    . "look-up and read; the disk can do ", sprintf("%.1f MB/s\n", 0.1024 / Accel::Bench::Rig::ideal_seconds(\%disk, 1));
	my @series = $bench->opt('grid') ? grid_series(@results) : line_series(\%default, @results);
	for my $chart (@charts) {
		print "\n", table($chart, @series), "\n";
		draw($bench, $chart, @series);
	}
	print "\n", advice($disk{spindles}, @results), "\n";
}

# The file backend that is swept: the one asked for, else the one the aims are about.
sub backend {
	my ($bench) = @_;
	my @kinds = $bench->wanted($bench->backends);
	my $ours = $bench->ours(map { $_->{name} } @kinds);
	return (grep { $_->{name} eq $ours } @kinds)[0];
}

# What the manual says about both directives.
sub defaults {
	my ($manual) = @_;
	return map {
		my ($n) = $manual =~ /^\s+server\.max-$_-threads\n.*?default (\d+)/ms or die "bench: no default for $_ threads\n";
		$_ => $n;
	} qw(stat read);
}

# ------------------------------------------------------------- what is measured: pairs of thread counts

sub grid {
	my ($default) = @_;
	return map { my $s = $_; map { [$s, $_] } @read } @stat;
}

# One factor at a time, and the rule of 2007 itself.
sub lines {
	my ($default) = @_;
	my @pairs = ((map { [$_, $default->{read}] } @stat), (map { [$default->{stat}, $_] } @read),
		[$disk{spindles}, 2 * $disk{spindles}]);
	my %seen;
	return grep { !$seen{"@$_"}++ } @pairs;
}

# False when this accel-server does not take the setting.
sub measure {
	my ($bench, $rig, $kind, $point, $files, $runs) = @_;
	my ($stat, $read) = @$point;
	my $run = eval {
		$rig->fetch_each_once({ %$kind, stat_threads => $stat, read_threads => $read }, \%disk, files => $files,
			connections => $clients);
	};
	if (!$run) {
		$bench->note("$stat stat and $read read threads left out: " . $@ =~ s/\s*\n\s*/; /gr =~ s/; \z//r);
		return 0;
	}
	$bench->note("$stat stat and $read read threads: $run->{errors} errors") if $run->{errors};
	push @$runs, $run;
	return 1;
}

# ------------------------------------------------------------- what is shown: a line for each series

sub grid_series {
	my (@results) = @_;
	my %by_stat;
	$by_stat{ $_->{stat} }{ $_->{read} } = $_ for @results;
	return map { { label => "read threads, stat = $_", at => $by_stat{$_} } } sort { $a <=> $b } keys %by_stat;
}

sub line_series {
	my ($default, @results) = @_;
	return ({ label => "stat threads, read = $default->{read}",
		at => { map { $_->{stat} => $_ } grep { $_->{read} == $default->{read} } @results } },
		{ label => "read threads, stat = $default->{stat}",
		at => { map { $_->{read} => $_ } grep { $_->{stat} == $default->{stat} } @results } });
}

sub columns {
	my (@series) = @_;
	my %n = map { $_ => 1 } map { keys %{ $_->{at} } } @series;
	return sort { $a <=> $b } keys %n;
}

sub table {
	my ($chart, @series) = @_;
	my @columns = columns(@series);
	my $text = sprintf "  %-26s" . ' %7s' x @columns . "\n", $chart->{title}, @columns;
	for my $s (@series) {
		$text .= sprintf "  %-26s" . ' %7s' x @columns . "\n", $s->{label},
		    map { $s->{at}{$_} ? sprintf '%.1f', $chart->{value}->($s->{at}{$_}) : '-' } @columns;
	}
	return $text;
}

# On the terminal, and as files where --charts says so.
sub draw {
	my ($bench, $chart, @series) = @_;
	if (system('command -v gnuplot >/dev/null') != 0) {
		$bench->note('no charts: gnuplot is not installed');
		return;
	}
	my $dir = $bench->opt('charts');
	gnuplot($chart, 'dumb size 100,22', undef, @series);
	return unless defined $dir;
	mkdir $dir;
	gnuplot($chart, 'pngcairo size 900,500', "$dir/sweep-$chart->{name}.png", @series);
	gnuplot($chart, 'svg size 900,500', "$dir/sweep-$chart->{name}.svg", @series);
}

sub gnuplot {
	my ($chart, $terminal, $file, @series) = @_;
	STDOUT->flush;
	open my $plot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $plot "set terminal $terminal\n", defined $file ? "set output '$file'\n" : '', script($chart, @series);
	close $plot or die "bench: gnuplot failed\n";
}

sub script {
	my ($chart, @series) = @_;
	my @rows = map {
		my $n = $_;
		join ' ', $n, map { $_->{at}{$n} ? $chart->{value}->($_->{at}{$n}) : '?' } @series;
	} columns(@series);
	my $header = join ' ', 'threads', map { qq("$_->{label}") } @series;
	return join "\n", '$data << END', $header, @rows, 'END', "set title '$chart->{title}'", "set xlabel 'threads'",
	    'set yrange [0:*]', 'set key outside below width 3', 'set grid ytics', "set datafile missing '?'",
	    'plot for [i = 2:' . (@series + 1) . '] $data using 0:i:xtic(1) with linespoints title columnheader(i)', '';
}

# ------------------------------------------------------------- what follows from it

# One sentence: what is as good as the best, and whether stat threads = disks, read threads = twice that is.
sub advice {
	my ($disks, @results) = @_;
	my ($best) = sort { $b->{mb} <=> $a->{mb} } @results or return 'Nothing was measured.';
	my $text = sprintf 'Within %.0f %% of the best (%.1f MB/s by %d stat and %d read threads) are %s', 100 * (1 - $near),
	    $best->{mb}, $best->{stat}, $best->{read}, join '; ', pairs(grep { $_->{mb} >= $near * $best->{mb} } @results);
	my ($rule) = grep { $_->{stat} == $disks && $_->{read} == 2 * $disks } @results or return "$text.";
	my $share = $rule->{mb} / $best->{mb};
	return $text . sprintf '; stat threads = disks, read threads = 2 x disks (%d and %d) gives %.1f MB/s, %.0f %% of the best, '
	    . 'with a p99 of %.0f ms against %.0f ms: the rule of 2007 %s.', $disks, 2 * $disks, $rule->{mb}, 100 * $share,
	    $rule->{p99} / 1000, $best->{p99} / 1000, $share >= $near ? 'still holds' : 'no longer holds';
}

# "2, 4 stat with 8, 16 read": stat threads that go with the same read threads stand together.
sub pairs {
	my (@results) = sort { $a->{stat} <=> $b->{stat} || $a->{read} <=> $b->{read} } @_;
	my (%reads, %stats);
	push @{ $reads{ $_->{stat} } }, $_->{read} for @results;
	push @{ $stats{ join ', ', @{ $reads{$_} } } }, $_ for sort { $a <=> $b } keys %reads;
	return map { join(', ', @{ $stats{$_} }) . " stat with $_ read" } sort { $stats{$a}[0] <=> $stats{$b}[0] } keys %stats;
}

1;
