package Accel::Graph::Charts::Spread;
# How durations are spread: parts of requests around a percentile, percentile curves, distribution of each stage, heat map.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max min sum0);
use Accel::Graph::Axis  qw(log_time_axis share_axis tail_axis duration count_text);
use Accel::Graph::Labels qw(direct_labels);
use Accel::Graph::Style qw(@STACK heat_levels);
use Accel::Graph::Charts::Classic qw(give_up_rule time_of_start);

our @EXPORT_OK = qw(breakdown_chart curve_chart cdf_chart heat_chart percentile_table);

use constant {
	LEAST_MS   => 0.001,    # what took less stands at the foot of a log axis
	HEAT_BINS  => 96,       # cells over time
	FOOT       => 0.02,     # distributions and curves are drawn from this share on: what is below may be a thousand times as wide
};

# The slices of the model that make a bar: requests from one percentile to another, in order of their total.
my @BARS = ([0.45, 0.55, 'p45–p55'], [0.85, 0.95, 'p85–p95'], [0.95, 0.99, 'p95–p99'], [0.99, 0.999, 'p99–p99.9'], [0.999, 1, 'the slowest']);

sub bars_of ($slices) {
	my (@bars, %used);
	for my $want (@BARS) {
		my ($from, $to, $label) = @$want;
		my @in = grep { $_->{to} > $from + 1e-9 && $_->{from} < $to - 1e-9 && !$used{$_}++ } @$slices;
		my $n  = sum0(map { $_->{requests} } @in) or next;
		$label = 'the slowest' if @in && $in[-1]{to} >= 1;
		push @bars, { label => $label, requests => $n, map { my $s = $_; $s => sum0(map { ($_->{stages}{$s} // 0) * $_->{requests} } @in) / $n } @STACK, 'total' };
	}
	return @bars;
}

# @$slices: breakdown of the model; $kind: what is counted, "requests" or "cold requests"
sub breakdown_chart ($facts, $slices, $kind) {
	my @bars   = bars_of($slices);
	my @stages = grep { my $s = $_; grep { $_->{$s} > 0 } @bars } @STACK;
	return unless @stages;
	my (%data, @labels, @ticks, @rows);
	for my $i (0 .. $#bars) {
		my $bar = $bars[$i];
		my ($y, $x, $sum) = ($#bars - $i, 0, sum0(@$bar{@stages}));
		push @ticks, [$y, "$bar->{label}: " . duration($bar->{total})];
		push @rows,  [$bar->{label}, count_text($bar->{requests}), duration($bar->{total}), map { duration($bar->{$_}) } @stages];
		for my $stage (grep { $bar->{$_} > 0 } @stages) {
			my $share = $bar->{$stage} / $sum;
			push @{ $data{$stage} }, [$y, $x, $x + $share];
			push @labels, { x => $x + $share / 2, y => $y, texts => [ map { sprintf $_, $share * 100 } "$stage %.0f %%", '%.0f %%' ], room => $share, on => $stage };
			$x += $share;
		}
	}
	my $slow = $bars[-1];
	my ($most) = sort { $slow->{$b} <=> $slow->{$a} } @stages;
	return {
		id => 'breakdown', name => 'stages by percentile', title => "$facts->{name}: stages of $kind around a percentile",
		alt => sprintf('Stacked bars of the mean time in each stage. %s: mean %s, the longest part is %s with %s.', ucfirst $slow->{label}, duration($slow->{total}), $most, duration($slow->{$most})),
		table  => { head => ['percentiles', $kind, 'total', @stages], rows => \@rows },
		panels => [ {
			x => share_axis('share of the time of a request'), y => { label => '', min => -0.6, max => $#bars + 0.6, ticks => \@ticks },
			series => [ map { { style => 'bars', as => $_, label => $_, data => $data{$_} } } @stages ], labels => \@labels, bare => 1,
		} ],
	};
}

# @$lines: { as, label, of => a stage and class of the model }
sub curve_chart ($facts, $lines, %arg) {
	my $x = tail_axis('percentile of the requests', max(1, map { $_->{of}{requests} } @$lines));
	my @ms   = grep { $_ > LEAST_MS } map { (map { $_->[1] >= FOOT ? $_->[2] : () } @{ $_->{of}{curve} }), $_->{of}{max} } @$lines;
	my $y    = log_time_axis('duration', min(@ms) // 1, max(@ms) // 1);
	my @series = map { { style => 'line', as => $_->{as}, label => $_->{label}, data => tail_points($_->{of}, $x, $y) } } @$lines;
	my @labels = direct_labels($x, $y, \@series);
	return {
		id => $arg{id} // 'percentiles', name => $arg{name} // 'percentile curve', title => $arg{title} // "$facts->{name}: duration at each percentile",
		alt => 'Curves of the duration at each percentile; each further nine is as wide as the last one. ' . join(' ', map { sprintf '%s: median %s, p99 %s.', $_->{label}, duration($_->{of}{p50}), duration($_->{of}{p99}) } @$lines),
		table  => $arg{table} // percentile_table('requests', [ map { [$_->{label}, $_->{of}] } @$lines ]),
		panels => [ { x => $x, y => $y, rules => [map { { %$_, side => 'left' } } give_up_rule($facts, 'y', $y)], series => \@series, labels => \@labels } ],
	};
}

# From the fastest request to the slowest.  The fastest may be at the bottom of the axis.
sub tail_points ($of, $x, $y) {
	my @points = map { [10**$_->[0], max($_->[2], $y->{min})] } @{ $of->{curve} };
	push @points, [min($of->{requests}, $x->{max}), $of->{max}] if $of->{max} > 0;
	return \@points;
}

sub percentile_table ($what, $rows) {
	my @want = qw(p50 p90 p95 p99 p99.9 max);
	return { head => [$what, 'number', @want], rows => [ map { my $of = $_->[1]; [$_->[0], count_text($of->{requests}), map { duration($of->{$_}) } @want] } @$rows ] };
}

# %$of: stage => class of the model
sub cdf_chart ($facts, $of, $kind) {
	my @stages = grep { $of->{$_} && $of->{$_}{max} > 0 } @STACK, 'handshake', 'total';
	return unless @stages;
	my @ms     = grep { $_ > LEAST_MS } map { my $cdf = $of->{$_}{cdf}; (grep { $_->[1] >= FOOT } @$cdf)[0][0], $cdf->[-1][0] } @stages;
	my $x      = log_time_axis('duration of the stage', min(@ms) // 1, max(@ms) // 1);
	my $y      = share_axis("share of $kind");
	my @series = map { { style => 'steps', as => $_, label => $_, data => steps_of($of->{$_}{cdf}, $x) } } @stages;
	my @labels = direct_labels($x, $y, \@series);
	return {
		id => 'cdf', name => 'distribution of each stage', title => "$facts->{name}: share of $kind with at most this time in a stage",
		alt => "A curve for each stage: the share of $kind that spent at most the time below in it. " . join(' ', map { sprintf '%s: median %s, p99 %s.', $_, duration($of->{$_}{p50}), duration($of->{$_}{p99}) } @stages),
		table  => percentile_table('stage', [ map { [$_, $of->{$_}] } @stages ]),
		panels => [ { x => $x, y => $y, series => \@series, labels => \@labels, rules => [give_up_rule($facts, 'x', $x)] } ],
	};
}

# Within the axis: values below it are shown at its bottom.
sub steps_of ($cdf, $x) {
	my ($foot) = map { $_->[1] } reverse grep { $_->[0] <= $x->{min} } @$cdf;
	return [[$x->{min}, $foot // 0], map({ [@$_] } grep { $_->[0] > $x->{min} } @$cdf), [$x->{max}, 1]];
}

# $heat of the model, in coarser cells
sub heat_chart ($facts, $heat) {
	my $group = int(($heat->{bins} + HEAT_BINS - 1) / HEAT_BINS) || 1;
	my $early = $facts->{first} - $heat->{width} * int($facts->{first} / $heat->{width});    # the first bin began before the first request
	my (%n, @cells);
	$n{ int($_->[0] / $group) }{ int($_->[1] / 2) } += $_->[2] for @{ $heat->{cells} };
	for my $bin (sort { $a <=> $b } keys %n) {
		for my $level (sort { $a <=> $b } keys %{ $n{$bin} }) {
			my ($from, $to) = map { $_ * $group * $heat->{width} - $early } $bin, $bin + 1;
			push @cells, [max($from, 0), $to, $heat->{level_ms}[$level * 2], $heat->{level_ms}[$level * 2 + 2] // $heat->{level_ms}[-1], $n{$bin}{$level}];
		}
	}
	my $most = max(1, map { $_->[4] } @cells);
	my ($of, $levels) = heat_levels($most);
	my $y    = log_time_axis('duration', min(grep { $_ > 0 } map { $_->[2] } @cells) // LEAST_MS, max(1e-9, map { $_->[3] } @cells));
	my $x    = time_of_start($facts->{span});
	$x->{max} = max($x->{max}, map { $_->[1] } @cells);
	my @data = map { my @cell = @$_; [@cell[0, 1], max($cell[2], $y->{min}), max($cell[3], $y->{min} * 1.26), $of->($cell[4])] } @cells;
	$levels->[0][1] .= $levels->[0][1] eq '1' ? ' request' : ' requests';
	return {
		id => 'heat', name => 'heat map', title => "$facts->{name}: how many requests took how long, over time",
		alt => sprintf('Heat map: time to the right, duration upwards; the darker a cell, the more requests, %s at most.', count_text($most)),
		table  => heat_table(\@cells, $facts->{span}),
		panels => [ { x => $x, y => $y, series => [ { style => 'cells', as => 'all', data => \@data } ], levels => $levels, rules => [give_up_rule($facts, 'y', $y)], bare => 1 } ],
	};
}

# A tenth of the time a row: how many requests took how long.
sub heat_table ($cells, $span) {
	my @class = ([10, '< 10 ms'], [100, '10–100 ms'], [1000, '100 ms–1 s'], [4000, '1–4 s'], [9e99, '> 4 s']);
	my $width = $span > 0 ? $span / 10 : 1;
	my @row;
	for my $cell (@$cells) {
		my $tenth  = min(9, int(($cell->[0] + $cell->[1]) / 2 / $width));
		my $middle = sqrt(max($cell->[2], LEAST_MS) * max($cell->[3], LEAST_MS));
		my ($class) = grep { $middle < $class[$_][0] } 0 .. $#class;
		$row[$tenth][$class] += $cell->[4];
	}
	return { head => ['from', map { $_->[1] } @class], rows => [ map { my $r = $row[$_]; [sprintf('%.3g s', $_ * $width), map { count_text($r->[$_] // 0) } 0 .. $#class] } grep { $row[$_] } 0 .. $#row ] };
}

1;
