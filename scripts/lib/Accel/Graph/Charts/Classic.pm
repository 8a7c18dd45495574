package Accel::Graph::Charts::Classic;
# The four charts of 2007: each request is a point, with its start on the x axis and its duration on the y axis.
use v5.36;
use utf8;

use Exporter qw(import);
use Accel::Graph::Axis  qw(linear_axis time_axis duration count_text);
use Accel::Graph::Style qw(@STACK);

our @EXPORT_OK = qw(stacked_chart stage_chart give_up_rule time_of_start stage_sum);

use constant LEAST_PART => 0.01;    # of the height, as large as a mark: a stage that is never longer cannot be seen on its own

sub time_of_start ($span) {
	my $axis = linear_axis('start-time of a request (seconds since the first)', $span > 0 ? $span : 1, ticks => 8);
	return { %$axis, max => ($span > 0 ? $span : 1) * 1.01 };
}

# The limit, if it is within the range of an axis.
sub give_up_rule ($facts, $which, $axis) {
	my $at = $facts->{give_up_ms};
	return $axis->{max} > $at && $axis->{min} < $at ? { axis => $which, at => $at, label => duration($at) . ': clients give up' } : ();
}

# Some stages of the data file, in milliseconds.
sub stage_sum ($facts, @stages) { return (sum => [ map { $facts->{column}{$_} } @stages ], scale => 1000) }

# $facts: see Accel::Graph::Charts
sub stacked_chart ($facts) {
	my $most   = $facts->{max_ms}{total};
	my $y      = time_axis('UNIT per request', $facts->{ymax} // $most, exact => defined $facts->{ymax});
	my @stages = grep { ($facts->{max_ms}{$_} // 0) > 0 } @STACK;
	my (@series, @below);
	for my $stage (@stages) {
		push @below, $stage;
		next if $facts->{max_ms}{$stage} < LEAST_PART * $y->{max} && $stage ne $stages[0];
		# the highest first, so that the lower ones stay visible
		unshift @series, { style => 'points', as => $stage, label => $stage, columns => { stage_sum($facts, @below), cold($facts) } };
	}
	push @series, { style => 'points', as => 'total', label => 'total', columns => { stage_sum($facts, 'total') } } unless @series;
	unshift @series, { style => 'points', as => 'hot', label => 'hot: all stages', columns => { stage_sum($facts, 'total'), only => "$facts->{column}{hot} == 1" } } if $facts->{hot};
	return {
		id => '', name => 'all stages', title => sprintf('%s: all stages, %s', $facts->{name}, requests($facts)),
		alt => sprintf('Points of %s over %s s: the duration of each, its stages one upon the other. The slowest took %s.',
			requests($facts), count_text($facts->{span}), duration($most)),
		table  => $facts->{table},
		panels => [ { x => time_of_start($facts->{span}), y => $y, series => \@series, rules => [give_up_rule($facts, 'y', $y)] } ],
	};
}

sub requests ($facts) {
	my $n = count_text($facts->{requests}) . ($facts->{requests} == 1 ? ' request' : ' requests');
	return $facts->{hot} ? $n . ' (' . count_text($facts->{hot}) . ' hot)' : $n;
}

sub cold ($facts) { return $facts->{hot} ? (only => "$facts->{column}{hot} != 1") : () }

# One of the columns of 2007 by itself; @parts are its stages, and the first one gives colour and mark.
sub stage_chart ($facts, $what, @parts) {
	my $max = $facts->{max_classic_ms}{$what};
	my $y   = time_axis('UNIT per request', $facts->{ymax} // $max, exact => defined $facts->{ymax});
	my @sum = (sum => [$facts->{column}{"$what-time"}]);
	my @hot = $facts->{hot} ? { style => 'points', as => 'hot', label => 'hot', columns => { @sum, only => "$facts->{column}{hot} == 1" } } : ();
	return {
		id => $what, name => $what, title => sprintf('%s: %s, %s%s', $facts->{name}, $what, $max > 0 ? '' : '0 ms for all of ', requests($facts)),
		alt => sprintf('Points of %s over %s s: the %s time of each. The longest is %s.', requests($facts), count_text($facts->{span}), $what, duration($max)),
		table  => $facts->{table_of}->(@parts),
		panels => [ { x => time_of_start($facts->{span}), y => $y, rules => [give_up_rule($facts, 'y', $y)], series => [
			@hot, { style => 'points', as => $parts[0], label => "$what-time" . (@hot ? ', cold' : ''), columns => { @sum, cold($facts) } },
		] } ],
	};
}

1;
