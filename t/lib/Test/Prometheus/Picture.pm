package Test::Prometheus::Picture;
# The answers to the queries of a dashboard, as one picture.
#
#     my $board = Test::Prometheus::Dashboard->read('examples/prometheus/dashboard.json');
#     $board->ask($prom, $from, $to);
#     Test::Prometheus::Picture::draw($board, 'dashboard.png', first => 1) or die 'gnuplot failed';
#
# gnuplot draws each panel where gridPos puts it, with its title, unit, stacks, thresholds and legend. With `first` only the
# first line of panels of each row is drawn. The fonts and colours are near to those of Grafana, not the same.
use v5.36;
use utf8;
use File::Temp ();
use List::Util qw(max min uniq);
use Accel::Graph::Gnuplot qw(run_gnuplot);
use Accel::Util qw(find_program put slurp);

use constant { COLUMN => 42, ROW => 20, COLUMNS => 24, GAP => 3, LETTER => 5.2, LINE => 12, LEGEND => 2, MOST_LINES => 10, LEFT => 60,
	TICS => q{ scale 0 textcolor rgb '#606060'} };

my @palette = map { "#$_" } qw(7eb26d eab839 1f78c1 ef843c e24d42 6ed0e0 ba43a9 705da0 508642 cca300);
my %color   = (green => '#56a64b', orange => '#ff780a', red => '#e02f44', blue => '#3274d9');

# ---------------------------------------------------------------- units, as Grafana names them

my %scales = (
	s     => [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']],
	bytes => [[2**30, 'GiB'], [2**20, 'MiB'], [2**10, 'KiB'], [1, 'B']],
	Bps   => [[1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']],
	percentunit => [[0.01, '%']], reqps => [[1, 'req/s']], ops => [[1, 'ops/s']], cps => [[1, 'c/s']], short => [[1, '']],
);

sub units () { return sort keys %scales }

# The divisor for a number of this size, and the unit after it.
sub scale ($unit, $most) {
	my @all = @{ $scales{$unit} // die "$unit: no such unit\n" };
	return @{ (grep { $most >= $_->[0] } @all)[0] // $all[-1] };
}

sub text ($unit, $v) {
	my ($by, $name) = scale($unit, abs $v);
	return sprintf('%.3g', $v / $by) . ($name =~ /^%?$/ ? $name : " $name");
}

# ---------------------------------------------------------------- the page

sub draw ($board, $file, %arg) {
	my $gnuplot = find_program('gnuplot') // return;
	my ($high, @panels) = _layout($board, $arg{first});
	my $page = { wide => COLUMN * COLUMNS, high => $high, (map { $_ => $board->{$_} } qw(from to step)), blocks => 0 };
	my @gp = ("set terminal png noenhanced size $page->{wide},$high font 'DejaVu Sans,8' background '#f4f5f5'", "set output 'page.png'", 'set encoding utf8',
		"set palette defined (0 '#fff1e0', 0.5 '#ff9830', 1 '#b03a00')", 'unset colorbox', 'unset key',
		"set grid linetype 1 linecolor '#e4e5e6' linewidth 0.5", "set border 3 linecolor '#d8d9da'", 'set multiplot');
	push @gp, _panel($page, $_, $board->answers($_->{panel})) for @panels;
	my $dir = File::Temp->newdir;
	my $script = join "\n", @gp, 'unset multiplot', '';
	utf8::encode($script);
	put("$dir/page.gp", $script);
	my ($failed, $said) = run_gnuplot($gnuplot, "$dir", 'page.gp');
	die "gnuplot: $said\n" if $failed || $said =~ /\S/;
	put($file, slurp("$dir/page.png"));
	return 1;
}

# The height of the page, and the place of each panel: pixels from the left and from the top.
sub _layout ($board, $first) {
	my ($y, @placed) = (0);
	for my $row ($board->rows) {
		my @panels = @{ $row->{panels} };
		my $top = min map { $_->{gridPos}{y} } @panels;
		@panels = grep { $_->{gridPos}{y} == $top } @panels if $first;
		for my $p (@panels) {
			my ($x, $py, $w, $h) = @{ $p->{gridPos} }{qw(x y w h)};
			push @placed, { panel => $p, row => $p == $panels[0] ? $row->{title} : '', x => $x * COLUMN + GAP, y => $y + ROW + ($py - $top) * ROW,
				w => $w * COLUMN - 2 * GAP, h => $h * ROW - 2 * GAP };
		}
		$y = max(map { $_->{y} + $_->{h} + 2 * GAP } @placed);
	}
	return ($y, @placed);
}

sub _quote ($text) { return q{'} . $text =~ s/[\x00-\x1f]/ /gr =~ s/'/''/gr . q{'} }

# gnuplot counts from the bottom.
sub _at ($page, $x, $y) { return sprintf 'screen %.5f, screen %.5f', $x / $page->{wide}, 1 - $y / $page->{high} }
sub _label ($page, $text, $x, $y, $more = '') { return 'set label ' . _quote($text) . ' at ' . _at($page, $x, $y) . " left $more" }

sub _block ($page, @rows) {
	my $name = '$d' . ++$page->{blocks};
	return ($name, "$name << EOD", (map { join ' ', @$_ } @rows), 'EOD');
}

sub _panel ($page, $at, @answers) {
	my ($p, $x, $y, $w, $h) = (@$at{qw(panel x y w h)});
	my $draw = { stat => \&_stat, timeseries => \&_lines, heatmap => \&_heat, table => \&_table }->{ $p->{type} };
	my @legend = $p->{type} eq 'timeseries' ? _legend($page, $at, @answers) : ();
	my $foot = (@legend ? 8 + LINE * LEGEND : 4) + ($p->{type} =~ /^(?:timeseries|heatmap)$/ ? LINE : 0);
	my @box = ($x + ($p->{type} =~ /^(?:timeseries|heatmap)$/ ? LEFT : 6), $x + $w - 8, $y + 22, $y + $h - $foot);
	return ('unset label', 'unset object', 'unset title', 'set xdata time', 'set timefmt "%s"', 'set format x "%H:%M:%S"',
		"set xrange ['" . int($page->{from}) . q{':'} . int($page->{to} + 1) . q{']}, 'set xtics ' . max(1, int(($page->{to} - $page->{from}) / 3)) . TICS, 'set ytics auto' . TICS, 'set style fill solid 0.3 noborder',
		'set object rectangle from ' . _at($page, $x, $y) . ' to ' . _at($page, $x + $w, $y + $h) . " behind fillcolor rgb '#ffffff' fillstyle solid border linecolor rgb '#d8d9da'",
		_label($page, $p->{title}, $x + 8, $y + 11, q{font ',9' textcolor rgb '#24292e'}),
		$at->{row} ne '' ? _label($page, $at->{row}, 8, $y - ROW / 2 + GAP, q{font ',11' textcolor rgb '#24292e'}) : (),
		(map { "set $_->[0]margin at screen " . sprintf '%.5f', $_->[1] } ['l', $box[0] / $page->{wide}], ['r', $box[1] / $page->{wide}], ['t', 1 - $box[2] / $page->{high}], ['b', 1 - $box[3] / $page->{high}]),
		@legend, $draw->($page, $at, @answers));
}

sub _points ($row) { return map { [$_->[0], $_->[1]] } grep { $_->[1] !~ /nan|inf/i } @{ $row->{values} } }

# ---------------------------------------------------------------- kinds of panels

# Names in the colours of their lines, from left to right.
sub _legend ($page, $at, @answers) {
	my ($x, $y) = (LEFT, 0);
	my @labels;
	for my $i (0 .. $#answers) {
		my $name = "● $answers[$i]{name}";
		($x, $y) = (LEFT, $y + 1) if $x > LEFT && $x + LETTER * length($name) > $at->{w};
		last if $y == LEGEND || $i == MOST_LINES;
		push @labels, _label($page, $name, $at->{x} + $x, $at->{y} + $at->{h} - 4 - LINE * (LEGEND - $y - 0.5), "font ',7' textcolor rgb '$palette[ $i % @palette ]'");
		$x += LETTER * (length($name) + 2);
	}
	return @labels;
}

sub _lines ($page, $at, @answers) {
	my $defaults = $at->{panel}{fieldConfig}{defaults};
	splice @answers, MOST_LINES if @answers > MOST_LINES;
	my $stacked = ($defaults->{custom}{stacking}{mode} // '') eq 'normal';
	my (%below, @series);
	for my $row (@answers) {
		push @series, [map { my ($t, $v) = @$_; my $from = $stacked ? $below{$t} // 0 : 0; $below{$t} = $from + $v; [$t, $from, $from + $v] } _points($row)];
	}
	my $most = max(0, map { $_->[2] } map { @$_ } @series);
	my ($by, $name) = scale($defaults->{unit}, $most);
	my (@gp, @plot);
	for my $i (grep { @{ $series[$_] } } 0 .. $#series) {
		my ($block, @data) = _block($page, map { [$_->[0], $_->[1] / $by, $_->[2] / $by] } @{ $series[$i] });
		push @gp, @data;
		my $color = "linecolor rgb '$palette[ $i % @palette ]'";
		push @plot, "$block using 1:2:3 with filledcurves $color" if $stacked;
		push @plot, "$block using 1:3 with lines $color linewidth 1.2";
	}
	return (@gp, 'set format y ' . _quote('%g' . ($name eq '%' ? '%%' : $name ne '' ? " $name" : '')), 'set yrange [0:' . ($most > 0 ? $most / $by * 1.1 : 1) . ']', 'plot ' . join(', ', @plot ? @plot : 'NaN'));
}

# The last value, in the colour of its threshold, above its curve.
sub _stat ($page, $at, @answers) {
	my $defaults = $at->{panel}{fieldConfig}{defaults};
	my @points = map { _points($_) } @answers ? $answers[0] : ();
	my $last = @points ? $points[-1][1] : undef;
	my ($step) = defined $last ? (grep { !defined $_->{value} || $last >= $_->{value} } reverse @{ $defaults->{thresholds}{steps} }) : ();
	my $color = $step ? $color{ $step->{color} } // '#3274d9' : '#808080';
	my ($block, @data) = _block($page, @points ? @points : [$page->{from}, 0]);
	return (@data, _label($page, defined $last ? text($defaults->{unit}, $last) : $defaults->{noValue}, $at->{x} + 14, $at->{y} + $at->{h} * 0.5, "front font ',18' textcolor rgb '$color'"),
		'unset border', 'unset xtics', 'unset ytics', 'unset grid', 'set yrange [0:' . (2.4 * max(1e-9, map { $_->[1] } @points)) . ']',
		"plot $block using 1:2 with filledcurves y1=0 linecolor rgb '$color'",
		"set border 3 linecolor '#d8d9da'", 'set xtics', 'set ytics', "set grid linetype 1 linecolor '#e4e5e6' linewidth 0.5");
}

# A row of cells for each bucket in use; the series of Prometheus are cumulative.
sub _heat ($page, $at, @answers) {
	my @le = sort { ($a->{labels}{le} =~ s/\+//r) <=> ($b->{labels}{le} =~ s/\+//r) } @answers;
	my (%below, @cells);
	for my $i (0 .. $#le) {
		for my $v (_points($le[$i])) {
			push @cells, [$v->[0], $i, $v->[1] - ($below{ $v->[0] } // 0)];
			$below{ $v->[0] } = $v->[1];
		}
	}
	@cells = grep { $_->[2] > 1e-6 } @cells;
	my ($low, $high, $most) = @cells ? (min(map { $_->[1] } @cells), max(map({ $_->[1] } @cells)) + 1, max(map { $_->[2] } @cells)) : (0, 1, 1);
	my ($block, @data) = _block($page, @cells ? (map { [@$_[0, 1], $_->[1] + 1, sqrt($_->[2] / $most)] } @cells) : [$page->{from}, -1, -1, 0]);
	my $every = max(1, int(($high - $low) / 6));
	my @tics = map { _quote($le[$_]{labels}{le} eq '+Inf' ? 'more' : text('s', $le[$_]{labels}{le})) . ' ' . ($_ + 1) } grep { $_ % $every == 0 } $low .. min($high - 1, $#le);
	my $half = $page->{step} / 2;
	return (@data, "set yrange [$low:$high]", 'set ytics (' . join(', ', @tics) . ')', 'set style fill solid 1 noborder',
		"plot $block using 1:((\$2+\$3)/2):(\$1-$half):(\$1+$half):2:3:4 with boxxyerror linecolor palette");
}

sub _table ($page, $at, @answers) {
	my $i = 0;
	my @lines = uniq map { my $l = $_->{labels}; join '   ', map { $l->{$_} } grep { $_ ne '__name__' } sort keys %$l } @answers;
	return ((map { _label($page, $_, $at->{x} + 14, $at->{y} + 36 + 14 * $i++) } @lines), 'unset border', 'unset xtics', 'unset ytics', 'unset grid', 'set yrange [0:1]', 'plot NaN',
		"set border 3 linecolor '#d8d9da'", 'set xtics', 'set ytics', "set grid linetype 1 linecolor '#e4e5e6' linewidth 0.5");
}

1;
