package Accel::Graph::Charts::Sweep;
# What other programs measured: cells of accel-bench as curves (threads against throughput and p99) or bars, runs of accel-load.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max min);
use Accel::Graph::Axis  qw(linear_axis time_axis count_text position);
use Accel::Graph::Style qw(text_of);
use Accel::Graph::Charts::Classic qw(give_up_rule);
use Accel::Graph::Charts::Spread  qw(curve_chart);

our @EXPORT_OK = qw(sweep_chart load_chart);

use constant { MAX_LINES => 8, MAX_BARS => 24, WIDE => 8 };    # more look alike; from this ratio on, an axis doubles

my %AXIS = (
	stat_threads => 'threads that open files', read_threads => 'threads that read', accel_threads => 'threads of fcgi-stat-accel',
	concurrency  => 'clients at the same time', read_ahead => 'bytes at a time', workers => 'workers',
);
my @FIGURES = (['MB/s' => 'mb_per_s'], ['requests/s' => 'requests_per_s'], ['p50 ms' => 'p50_ms'], ['p90 ms' => 'p90_ms'], ['p99 ms' => 'p99_ms'], ['spread %' => 'spread_percent']);

# $sweep of the model; nothing if no cell has a throughput.
sub sweep_chart ($facts, $sweep) {
	my @series = grep { @{ $_->{points} } } map { { %$_, label => text_of($_->{label}), points => [ grep { defined $_->{mb_per_s} } @{ $_->{points} } ] } } @{ $sweep->{series} };
	return unless @series;
	my $title = text_of($sweep->{title});
	return defined $sweep->{x} ? curves($facts, $title, $sweep->{x}, \@series) : bars($title, \@series);
}

sub curves ($facts, $title, $key, $series) {
	my @shown  = @$series > MAX_LINES ? @$series[0 .. MAX_LINES - 1] : @$series;
	my @points = map { @{ $_->{points} } } @shown;
	my $name   = $AXIS{$key} // text_of($key);
	my $x      = threads_axis($name, map { $_->{x} } @points);
	my $mb     = linear_axis('throughput (MB/s)', max(map { $_->{mb_per_s} } @points), ticks => 4);
	my $p99    = time_axis('p99 of a request (UNIT)', max(0, map { $_->{p99_ms} // () } @points), ticks => 4);
	my $lines  = sub ($figure, $labels) {
		return [ map { { style => 'marked', as => $_, $labels && @shown > 1 ? (label => $shown[$_]{label}) : (),
			data => [ map { defined $_->{$figure} ? [$_->{x}, $_->{$figure}] : () } @{ $shown[$_]{points} } ] } } 0 .. $#shown ];
	};
	return {
		id => 'sweep', name => 'sweep', title => $title . (@shown < @$series ? sprintf(' (%d of %d series)', scalar(@shown), scalar(@$series)) : ''),
		alt    => "Two panels over $name: throughput above, p99 of a request below. " . join(' ', map { best($_) } @shown),
		table  => table_of($series, $name),
		panels => [ { x => $x, y => $mb, shared_x => 1, series => $lines->('mb_per_s', 1) },
			{ x => $x, y => $p99, series => $lines->('p99_ms', 0), labels => [ unfinished($x, $p99, @shown) ], rules => [give_up_rule($facts, 'y', $p99)] } ],
	};
}

# A cell without a p99, because no request was complete, has a note at the place of its mark.
sub unfinished ($x, $y, @shown) {
	my %who;
	for my $series (@shown) { push @{ $who{ $_->{x} } }, $series->{label} for grep { !defined $_->{p99_ms} } @{ $series->{points} } }
	my $right = sub ($at) { position($x, $at) > 0.5 ? 'right' : 'left' };
	return map { { x => $_, y => 0.1 * $y->{max}, text => (@shown > 1 ? join(', ', @{ $who{$_} }) . ': ' : '') . 'no request ended', align => $right->($_) } }
	    sort { $a <=> $b } keys %who;
}

sub best ($series) {
	my ($best) = sort { $b->{mb_per_s} <=> $a->{mb_per_s} } @{ $series->{points} };
	return sprintf '%s: most is %.3g MB/s at %s.', $series->{label}, $best->{mb_per_s}, $best->{x};
}

# A mark at each measured value; if the values span a wide range, the axis doubles, as counts of threads do.
sub threads_axis ($label, @x) {
	my %seen = map { $_ => 1 } @x;
	my @at   = sort { $a <=> $b } keys %seen;
	my ($min, $max) = @at[0, -1];
	return { label => $label, min => $min / 1.1, max => $max * 1.1, log => 1, ticks => [ map { [$_, "$_"] } @at ], minor => [] } if $min > 0 && $max / $min > WIDE;
	return { label => $label, min => 0, max => $max > 0 ? $max * 1.05 : 1, ticks => [ map { [$_, "$_"] } @at ] };
}

# If no number varies: a bar for each cell.
sub bars ($title, $series) {
	my @shown = @$series > MAX_BARS ? @$series[0 .. MAX_BARS - 1] : @$series;
	my @mb    = map { $_->{points}[0]{mb_per_s} } @shown;
	my $most  = max(1e-9, @mb);
	my (@bars, @labels, @ticks);
	for my $i (0 .. $#shown) {
		my $y = $#shown - $i;
		push @ticks,  [$y, $shown[$i]{label}];
		push @bars,   [$y, 0, $mb[$i]];
		push @labels, $mb[$i] > 0.85 * $most ? { x => $mb[$i] - 0.01 * $most, y => $y, text => sprintf('%.3g', $mb[$i]), align => 'right', on => 'stat' }
		    : { x => $mb[$i] + 0.01 * $most, y => $y, text => sprintf('%.3g', $mb[$i]), align => 'left' };
	}
	return {
		id => 'sweep', name => 'throughput', title => $title, alt => 'Bars of the throughput. ' . join(', ', map { sprintf '%s: %.3g MB/s', $shown[$_]{label}, $mb[$_] } 0 .. $#shown),
		table  => table_of($series),
		panels => [ { x => linear_axis('throughput (MB/s)', $most), y => { label => '', min => -0.6, max => $#shown + 0.6, ticks => \@ticks },
			series => [ { style => 'bars', as => 'stat', data => \@bars } ], labels => \@labels, bare => 1 } ],
	};
}

sub table_of ($series, @axis) {
	my @rows;
	for my $line (@$series) {
		push @rows, map { my $point = $_; [$line->{label}, @axis ? $point->{x} : (), map { defined $point->{ $_->[1] } ? 0 + sprintf('%.4g', $point->{ $_->[1] }) : '–' } @FIGURES] } @{ $line->{points} };
	}
	return { head => ['', @axis, map { $_->[0] } @FIGURES], rows => \@rows };
}

# $runs: load of the model; how long clients waited for whole replies
sub load_chart ($facts, $runs) {
	my @runs = grep { $_->{latency} } @$runs;
	return unless @runs;
	my @shown = @runs > MAX_LINES ? @runs[0 .. MAX_LINES - 1] : @runs;
	return curve_chart($facts, [ map { { as => $_, label => text_of($shown[$_]{label}), of => $shown[$_]{latency} } } 0 .. $#shown ],
		id => 'load', name => 'clients', title => 'How long clients waited for a reply', table => load_table(\@runs));
}

sub load_table ($runs) {
	my @rows;
	for my $run (@$runs) {
		my $errors = $run->{errors} // {};
		push @rows, [text_of($run->{label}), map({ defined $run->{$_} ? count_text($run->{$_}) : '–' } qw(requests answered)), count_text($errors->{all} // 0),
			map({ defined $run->{$_} ? 0 + sprintf('%.4g', $run->{$_}) : '–' } qw(requests_per_s mb_per_s)),
			map({ my $of = $run->{ $_->[0] }; $of ? 0 + sprintf('%.4g', $of->{ $_->[1] }) : '–' } ([latency => 'p50'], [latency => 'p99'], [latency => 'max'], [first_byte => 'p99'])) ];
	}
	return { head => ['run', 'requests', 'answered', 'errors', 'requests/s', 'MB/s', 'p50 ms', 'p99 ms', 'max ms', 'first byte p99 ms'], rows => \@rows };
}

1;
