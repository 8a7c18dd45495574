package Test::Bench::GrowthChart;
# The pictures of bench --growth.
#
# `draw($dir, $growth)` writes growth-connections.svg and growth-files.svg. Without gnuplot it says so and writes none.
use v5.36;
use List::Util qw(max min);
use Accel::Graph::Axis qw(linear_axis log_axis log_time_axis count_text);
use Accel::Graph::Gnuplot qw(draw_picture);

my %title = (connections => 'What a request costs, by kept connections', files => 'What a request costs, by distinct names');
my %label = (connections => 'kept connections', files => 'distinct names, asked for at random');
# In this order, so that a server has the same colour in both pictures.
my @names = qw(accel nginx lighttpd accel-all stat-accel);

sub draw ($dir, $growth) {
	for my $what (grep { %{ $growth->{$_} } } qw(connections files)) {
		draw_picture("$dir/growth-$what.svg", chart($what, $growth->{$what}), name => 'growth', kind => 'svg', size => [800, 560], font => 'DejaVu Sans,13',
			requests => 0, title => 1) or return print "# gnuplot is not installed, so no chart was drawn\n";
	}
}

# Two panels, with the count on the x axis: CPU time of a request, and its p99.
sub chart ($what, $of) {
	my @counts = sort { $a <=> $b } keys %$of;
	my @shown = grep { my $n = $_; grep { $_->{$n} } values %$of } @names;
	my $line = sub ($figure, $labels) {
		return [ map { my $i = $_; { style => 'marked', as => $i, $labels ? (label => $shown[$i]) : (),
			data => [ map { my $v = $of->{$_}{ $shown[$i] }{$figure}; defined $v && $v > 0 ? [$_, $v] : () } @counts ] } } 0 .. $#shown ];
	};
	my $all = sub ($figure) { return grep { defined && $_ > 0 } map { $_->{$figure} } map { values %$_ } values %$of };
	my $x = log_axis($label{$what}, max(0.9, $counts[0]), $counts[-1], \&count_text);
	my $cpu = linear_axis('CPU time (µs)', max($all->('cpu')), ticks => 5);
	my $p99 = log_time_axis('p99', min($all->('p99_ms')), max($all->('p99_ms')));
	return { id => $what, name => "growth-$what", title => $title{$what}, alt => "Two panels over the number of $label{$what}: CPU time of a request above, p99 below.",
		table => { head => [], rows => [] },
		panels => [ { x => $x, y => $cpu, shared_x => 1, series => $line->('cpu', 1) }, { x => $x, y => $p99, series => $line->('p99_ms', 0) } ] };
}

1;
