package Accel::Graph::Thin;
# Reads the points of a chart from NAME.data for pictures that carry their points themselves: a web page, a terminal.
#
# A point that would cover another of its series is left out, so that a log of any length makes a picture of bounded size.
use v5.36;

use Exporter qw(import);
use Accel::Graph::Axis qw(position);

our @EXPORT_OK = qw(with_points);

use constant { GRID_X => 400, GRID_Y => 220 };    # about two units of an SVG picture

# The chart with data in each series, for which the file is read once.
sub with_points ($chart, $file, $grid_x = GRID_X, $grid_y = GRID_Y) {
	my (@jobs, @panels);
	for my $panel (@{ $chart->{panels} }) {
		my @series;
		for my $series (@{ $panel->{series} }) {
			push @series, $series and next unless $series->{columns};
			my $copy = { %$series, data => [] };
			push @series, $copy;
			push @jobs, { series => $copy, panel => $panel, seen => {} };
		}
		push @panels, { %$panel, series => \@series };
	}
	_read($file, \@jobs, $grid_x, $grid_y) if @jobs;
	return { %$chart, panels => \@panels };
}

sub _read ($file, $jobs, $grid_x, $grid_y) {
	open my $fh, '<', $file or die "$file: $!\n";
	while (defined(my $line = <$fh>)) {
		next if $line =~ /\A#/;
		my @value = (undef, split ' ', $line);
		for my $job (@$jobs) {
			my ($sum, $only, $scale) = @{ $job->{series}{columns} }{qw(sum only scale)};
			next if $only && !_is(\@value, $only);
			my $y = 0;
			$y += $value[$_] =~ /\A[0-9]/ ? $value[$_] : 0 for @$sum;
			$y /= $scale if $scale;
			my ($at_x, $at_y) = (int($grid_x * position($job->{panel}{x}, $value[1])), int($grid_y * position($job->{panel}{y}, $y)));
			push @{ $job->{series}{data} }, [$value[1], $y] unless $job->{seen}{ $at_x * ($grid_y + 1) + $at_y }++;
		}
	}
	close $fh or die "$file: $!\n";
	return;
}

# "15 == 1" or "15 != 1": a column, as the scripts of gnuplot have it.
sub _is ($value, $want) {
	my ($column, $operator, $number) = split ' ', $want;
	return ($value->[$column] == $number) == ($operator eq '==');
}

1;
