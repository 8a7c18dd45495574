package Test::Bench::Panels;
# Curves over the time of a long benchmark, one panel above the other.
#
#     Test::Bench::Panels::draw($bench, 'soak', { title => 'memory', unit => 'MiB', series => [['RSS', [[0, 10], [5, 11]]]] }, ...);
#
# The first panel is printed as text. With --charts DIR all of them are one picture, DIR/NAME.png. `log` gives a panel a logarithmic axis, `bands` grey
# stripes: [ [from, to, name], ... ].
use v5.36;
use List::Util qw(max min);
use Accel::Graph::Ascii qw(ascii);
use Accel::Graph::Axis qw(linear_axis log_axis);
use Accel::Graph::Gnuplot qw(draw_picture);

sub draw ($bench, $name, @panels) {
	my $most = max(1, map { $_->[0] } map { @{ $_->[1] } } map { @{ $_->{series} } } @panels);
	@panels = grep { @{ $_->{series} } } map { _panel($_, linear_axis('s', $most)) } @panels or return;
	print ascii({ title => $name, panels => [$panels[0]] }, 110);
	my $dir = $bench->opt('charts') // return;
	mkdir $dir;
	my $chart = { id => '', title => $name, panels => \@panels };
	draw_picture("$dir/$name.png", $chart, name => $name, kind => 'png', size => [1200, 300 * @panels], font => 'DejaVu Sans,11', requests => 0, title => 0)
	    or $bench->note('no chart: gnuplot is not installed');
	return;
}

sub _panel ($panel, $x) {
	my @all = grep { defined && (!$panel->{log} || $_ > 0) } map { $_->[1] } map { @{ $_->[1] } } @{ $panel->{series} };
	my $label = $panel->{title} . ($panel->{unit} eq '' ? '' : ", $panel->{unit}");
	my $y = $panel->{log} ? log_axis($label, min(@all) // 1, max(@all) // 10) : linear_axis($label, max(@all) // 1);
	my @series = map { my ($as, $of) = ($_, $panel->{series}[$_]); +{ style => 'points', as => $as, label => $of->[0],
		data => [grep { defined $_->[1] && (!$panel->{log} || $_->[1] > 0) } @{ $of->[1] }] } } 0 .. $#{ $panel->{series} };
	return { x => $x, y => $y, shared_x => 1, bands => $panel->{bands} // [], series => [grep { @{ $_->{data} } } @series] };
}

1;
