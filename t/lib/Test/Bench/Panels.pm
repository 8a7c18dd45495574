package Test::Bench::Panels;
# Curves over the time of a long benchmark, one panel above the other.
#
#     Test::Bench::Panels::draw($bench, 'soak', { title => 'memory', unit => 'MiB', series => [['RSS', [[0, 10], [5, 11]]]] }, ...);
#
# The first panel is printed as text. With --charts DIR all of them are one picture, DIR/NAME.png. `log` gives a panel a logarithmic axis, `bands` grey
# stripes: [ [from, to, name], ... ].
use v5.36;
use List::Util qw(max);
use Accel::Util qw(find_program);

sub draw ($bench, $name, @panels) {
	my $gnuplot = find_program('gnuplot') // return $bench->note('no chart: gnuplot is not installed');
	my $dir = $bench->opt('charts');
	mkdir $dir if defined $dir;
	my @ok = _plot($gnuplot, "set terminal dumb mono noenhanced size 110,24\n", { %{ $panels[0] }, bands => [] });
	push @ok, _plot($gnuplot, sprintf("set terminal png noenhanced size 1200,%d\nset output '%s'\n", 300 * @panels, "$dir/$name.png" =~ s/'/''/gr), @panels) if defined $dir;
	$bench->note('gnuplot failed') if grep { !$_ } @ok;
	return;
}

sub _plot ($gnuplot, $terminal, @panels) {
	open my $to, '|-', $gnuplot, '-' or return 0;
	print $to $terminal, "set xlabel 's'\nset grid\nset key outside bottom horizontal\n", @panels > 1 ? 'set multiplot layout ' . @panels . ",1\n" : '';
	_panel($to, $_) for @panels;
	return close $to;
}

sub _panel ($to, $panel) {
	my ($n, @curves) = (0);
	print $to $panel->{log} ? "set logscale y\n" : "unset logscale y\nset yrange [0:*]\n";
	print $to "set title '$panel->{title}'\nset ylabel '$panel->{unit}'\nunset object\nunset label\n";
	for my $band (@{ $panel->{bands} // [] }) {
		print $to "set object rectangle from $band->[0], graph 0 to $band->[1], graph 1 behind fillcolor rgb '#e8e8e8' fillstyle solid noborder\n";
		print $to "set label '$band->[2]' at $band->[0], graph 0.95 font ',8'\n";
	}
	for my $series (@{ $panel->{series} }) {
		print $to '$d', $n, " << EOD\n", (map { "@$_\n" } @{ $series->[1] }), "EOD\n";
		push @curves, '$d' . $n++ . " using 1:2 title '$series->[0]' with " . ($panel->{style} // 'points');
	}
	print $to 'plot ', join(', ', @curves), "\n";
}

1;
