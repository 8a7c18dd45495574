package Accel::Graph::Ascii;
# Draws a chart with letters for a terminal.  Needs no gnuplot.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max min);
use Accel::Graph::Axis  qw(position fitting value_at);
use Accel::Graph::Style qw(style HEAT_LEVELS);

our @EXPORT_OK = qw(ascii);

use constant { LEAST_COLUMNS => 40, MARGIN => 10, ROWS => 16, PANEL_ROWS => 6 };

my @RAMP = split //, '.:+*%@';    # few to many

# The chart as lines of at most $columns characters.
sub ascii ($chart, $columns, $rows = ROWS) {
	$columns = LEAST_COLUMNS if $columns < LEAST_COLUMNS;
	my @panels = @{ $chart->{panels} };
	my $letter = _letters(\@panels);
	my @lines  = (_plain($chart->{title}), _key(\@panels, $letter, $columns));
	for my $panel (@panels) {
		my $high = @panels == 1 ? $rows : PANEL_ROWS * ($panel->{height} // 1);
		my $last = $panel == $panels[-1] || !$panel->{shared_x};
		push @lines, '' . _plain($panel->{y}{label}) if $panel->{y}{label} ne '';
		my $bars   = grep { $_->{style} eq 'bars' } @{ $panel->{series} };
		my $margin = $bars ? min(int($columns / 2), 2 + max(map { length $_->[1] } @{ $panel->{y}{ticks} })) : MARGIN;
		push @lines, $bars ? _bars($panel, $letter, $columns, $margin) : _canvas($panel, $letter, $columns, $high);
		push @lines, _x_axis($panel->{x}, $columns, $last, $margin);
	}
	return join '', map { substr($_ =~ s/\s+\z//r, 0, $columns) . "\n" } @lines;
}

# Characters that terminals of every encoding show.
sub _plain ($text) {
	$text =~ s/µ/u/g;
	$text =~ s/…/.../g;
	$text =~ s/[–−]/-/g;
	return $text =~ s/[^\x20-\x7e]/?/gr;
}

# Series without a letter of their own, and those whose letter is taken, get the next free one.
sub _letters ($panels) {
	my (%letter, %taken);
	for my $as (map { $_->{as} } map { @{ $_->{series} } } @$panels) {
		next if $letter{$as};
		my ($free) = grep { !$taken{$_} } style($as)->{letter}, '1' .. '9', 'A' .. 'Z';
		$taken{ $letter{$as} = $free // '#' } = 1;
	}
	return \%letter;
}

sub _key ($panels, $letter, $columns) {
	my @entries = map({ "$letter->{ $_->{as} } " . _plain($_->{label}) } grep { defined $_->{label} } map { @{ $_->{series} } } @$panels),
	    map({ "$RAMP[ $_->[0] ] " . _plain($_->[1]) } map { @{ $_->{levels} // [] } } @$panels);
	my @lines = ('');
	for my $entry (@entries) {
		push @lines, '' if length($lines[-1]) + length($entry) + 3 > $columns;
		$lines[-1] .= (length $lines[-1] ? '   ' : '  ') . $entry;
	}
	return grep { length } @lines;
}

sub _canvas ($panel, $letter, $columns, $rows) {
	my ($x, $y) = @$panel{qw(x y)};
	my $wide   = $columns - MARGIN - 2;
	my @canvas = map { ' ' x $wide } 1 .. $rows;
	my $column = sub ($v) { my $at = int(position($x, $v) * $wide); $at < $wide ? $at : $wide - 1 };
	my $row    = sub ($v) { my $at = int(position($y, $v) * $rows); $rows - 1 - ($at < $rows ? $at : $rows - 1) };
	for my $rule (@{ $panel->{rules} // [] }) {
		if ($rule->{axis} eq 'y') {
			my $text = ' ' . _plain($rule->{label}) . ' ';
			substr($canvas[ $row->($rule->{at}) ], 0) = length $text < $wide ? '-' x ($wide - length($text) - 2) . $text . '--' : '-' x $wide;
		} else {
			substr($_, $column->($rule->{at}), 1) = '|' for @canvas;
		}
	}
	_put($_, $letter->{ $_->{as} }, \@canvas, $column, $row, $x, $y, $wide) for @{ $panel->{series} };
	my @label = ('') x $rows;
	for my $tick (reverse @{ $y->{ticks} }) {
		my $at = $row->($tick->[0]);
		$label[$at] = _plain($tick->[1]);
	}
	return map { sprintf '%*s |%s', MARGIN - 1, substr($label[$_], 0, MARGIN - 1), $canvas[$_] } 0 .. $rows - 1;
}

sub _put ($series, $letter, $canvas, $column, $row, $x, $y, $wide) {
	my ($kind, $data) = @$series{qw(style data)};
	if ($kind eq 'cells') {
		_put_cells($data, $canvas, $column, $row);
	} elsif ($kind eq 'area') {
		for my $i (0 .. $#$data) {
			my ($at, $from, $to) = @{ $data->[$i] };
			my $next = $i < $#$data ? $column->($data->[ $i + 1 ][0]) - 1 : $column->($at);
			for my $c ($to > $from ? ($column->($at) .. max($next, $column->($at))) : ()) {
				substr($canvas->[$_], $c, 1) = $letter for $row->($to) .. $row->($from);
			}
		}
	} else {
		my @points = grep { defined $_->[1] } @$data;
		@points = _between(\@points, $column, $kind eq 'steps', $x, $wide) if $kind ne 'points' && @points > 1;
		substr($canvas->[ $row->($_->[1]) ], $column->($_->[0]), 1) = $letter for @points;
	}
}

# A cell of letters shows the level of most of what falls into it, so that rare slow requests stay visible.
sub _put_cells ($data, $canvas, $column, $row) {
	my %level;
	for my $cell (@$data) {
		my ($x0, $x1, $y0, $y1, $level) = @$cell;
		my ($first, $last) = ($column->($x0), $column->($x1 - ($x1 - $x0) * 0.01));
		my $at = $row->($y0 * ($y0 > 0 ? 1.0001 : 1));
		for my $c ($first .. $last) {
			my $old = $level{$c}{$at} // -1;
			substr($canvas->[$at], $c, 1) = $RAMP[ $level{$c}{$at} = $level ] if $level > $old;
		}
	}
}

# Fills the columns between two points of a line.
sub _between ($points, $column, $steps, $x, $wide) {
	my @all = $points->[0];
	for my $i (1 .. $#$points) {
		my ($from, $to) = @$points[ $i - 1, $i ];
		my ($a, $b) = ($column->($from->[0]), $column->($to->[0]));
		for my $c ($a + 1 .. $b - 1) {
			my $part  = ($c - $a) / ($b - $a);
			my $value = $steps ? $from->[1] : $from->[1] > 0 && $to->[1] > 0 ? $from->[1] * ($to->[1] / $from->[1])**$part : $from->[1] + ($to->[1] - $from->[1]) * $part;
			push @all, [value_at($x, ($c + 0.5) / $wide), $value];
		}
		push @all, $to;
	}
	return @all;
}

# A bar is two lines: its parts as runs of their letters, and the words next to it and on it.
sub _bars ($panel, $letter, $columns, $margin) {
	my $wide = $columns - $margin - 2;
	my $at   = sub ($v) { int(position($panel->{x}, $v) * $wide + 0.5) };
	my (%part, @lines);
	for my $series (@{ $panel->{series} }) {
		push @{ $part{ $_->[0] } }, [$at->($_->[1]), $at->($_->[2]), $letter->{ $series->{as} }] for @{ $series->{data} };
	}
	for my $tick (sort { $b->[0] <=> $a->[0] } @{ $panel->{y}{ticks} }) {
		my $bar = ' ' x $wide;
		substr($bar, $_->[0], $_->[1] - $_->[0]) = $_->[2] x ($_->[1] - $_->[0]) for @{ $part{ $tick->[0] } // [] };
		my $words = $bar;
		for my $label (grep { $_->{y} == $tick->[0] } @{ $panel->{labels} // [] }) {
			my $words_of = fitting($label, $wide - 4) // next;
			my $text = ' ' . _plain($words_of) . ' ';
			my $from = $at->($label->{x}) - int(length($text) * { left => 0, center => 0.5, right => 1 }->{ $label->{align} // 'center' });
			substr($words, max(0, $from), length $text) = $text if $from + length $text <= $wide;
		}
		push @lines, sprintf('%*s |%s', $margin - 1, substr(_plain($tick->[1]), 0, $margin - 1), $words), ' ' x $margin . "|$bar", ' ' x $margin . '|';
	}
	pop @lines;
	return @lines;
}

sub _x_axis ($axis, $columns, $labels, $margin) {
	my $wide  = $columns - $margin - 2;
	my $line  = ' ' x $margin . '+' . '-' x $wide;
	return $line unless $labels;
	my $words = ' ' x $columns;
	my $free  = 0;
	for my $tick (@{ $axis->{ticks} }) {
		my $at   = $margin + 1 + int(position($axis, $tick->[0]) * ($wide - 1) + 0.5);
		my $text = _plain($tick->[1]);
		my $from = $at - int(length($text) / 2);
		$from = $columns - length $text if $from + length $text > $columns;
		substr($line, $at, 1) = '+' if $at < length $line;
		next if $from < $free;
		substr($words, $from, length $text) = $text;
		$free = $from + length($text) + 1;
	}
	my $label = _plain($axis->{label});
	my $pad   = $margin + 1 + int(($wide - length $label) / 2);
	return ($line, $words, ' ' x ($pad > 0 ? $pad : 0) . $label);
}

1;
