package Accel::Graph::Labels;
# Places the name of each line on the line itself, where it covers no other line and no other name.
#
# Lines are entered into a grid of the plot; a name is a box of cells around a point of its line.  Of all points, the one whose box has the
# fewest cells of others is taken; if several are equal, the one nearest to the wanted place.
use v5.36;

use Exporter   qw(import);
use List::Util qw(max min);
use Accel::Graph::Axis qw(position value_at);

our @EXPORT_OK = qw(direct_labels);

use constant {
	CELLS  => 120,                   # of the grid, each way
	LETTER => 0.0165, LINE => 0.075,    # parts of a plot: the small pictures of a page have the largest letters
	TRIES  => 80,                    # points of a line
	NAME   => 25,                    # a cell of another name counts as this many of a line
};

# Returns labels for a panel; the series then need no place in the key.
sub direct_labels ($x, $y, $series) {
	my @lines = map { traced($_, $x, $y) } @$series;
	my %taken;
	for my $i (0 .. $#lines) { $taken{ cell(@$_) }{$i} = 1 for @{ $lines[$i] } }
	my @labels;
	for my $i (0 .. $#lines) {
		my ($one, $line) = ($series->[$i], $lines[$i]);
		$one->{direct} = 1;
		next unless @$line;
		my $half = LETTER * (length($one->{label}) + 1) / 2;
		my $want = @lines > 1 ? 0.25 + 0.5 * $i / $#lines : 0.5;
		my ($best, $cost);
		for my $try (0 .. TRIES) {
			my $at   = $line->[ $#$line * $try / TRIES ];
			my @box  = box($at, $half) or next;
			my $this = abs($try / TRIES - $want) + covered(\%taken, $i, @box);
			($best, $cost) = ($at, $this) if !defined $cost || $this < $cost;
		}
		$best //= $line->[ $#$line / 2 ];
		$taken{$_}{name} = 1 for box($best, $half);
		push @labels, { x => value_at($x, $best->[0]), y => value_at($y, $best->[1]), text => $one->{label}, of => $one->{as} };
	}
	return @labels;
}

# Points along a line, less than a cell apart, as parts of the plot.
sub traced ($series, $x, $y) {
	my @corners = map { [position($x, $_->[0]), position($y, $_->[1])] } grep { defined $_->[1] } @{ $series->{data} };
	if ($series->{style} eq 'steps') {
		@corners = map { my $i = $_; $i ? ([$corners[$i][0], $corners[ $i - 1 ][1]], $corners[$i]) : $corners[0] } 0 .. $#corners;
	}
	my @points = @corners ? $corners[0] : ();
	for my $i (1 .. $#corners) {
		my ($from, $to) = @corners[ $i - 1, $i ];
		my $n = 1 + int CELLS * max(abs($to->[0] - $from->[0]), abs($to->[1] - $from->[1]));
		push @points, map { my $part = $_ / $n; [map { $from->[$_] + $part * ($to->[$_] - $from->[$_]) } 0, 1] } 1 .. $n;
	}
	return \@points;
}

sub cell ($x, $y) { return int($x * CELLS) * 1000 + int $y * CELLS }

# The cells of a name around a point; none if it does not fit into the plot.
sub box ($at, $half) {
	my ($left, $right, $low, $high) = ($at->[0] - $half, $at->[0] + $half, $at->[1] - LINE / 2, $at->[1] + LINE / 2);
	return if $left < 0 || $right > 1 || $low < 0 || $high > 1;
	my @rows = int($low * CELLS) .. int $high * CELLS;
	return map { my $column = $_ * 1000; map { $column + $_ } @rows } int($left * CELLS) .. int $right * CELLS;
}

# The number of these cells that other lines and names take.
sub covered ($taken, $line, @cells) {
	my $sum = 0;
	for my $owners (grep { defined } @$taken{@cells}) {
		$sum += $_ eq 'name' ? NAME : $_ == $line ? 0 : 1 for keys %$owners;
	}
	return $sum;
}

1;
