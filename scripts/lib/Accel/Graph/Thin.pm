package Accel::Graph::Thin;
# Reads the points of charts from NAME.data for pictures that contain their points: a web page, a terminal.  A point that would cover
# another one of its series is left out, so that a log of any length makes a picture of bounded size.
use v5.36;

use Exporter   qw(import);
use List::Util qw(sum);

our @EXPORT_OK = qw(with_points);

use constant { GRID_X => 400, GRID_Y => 220 };    # about two units of an SVG picture

# The charts with data in each series.  The file is read once, for all of them.  This program wrote it, so its figures are numbers.
sub with_points ($charts, $file, $grid_x = GRID_X, $grid_y = GRID_Y) {
	my (@jobs, @charts);
	for my $chart (@$charts) {
		my @panels = map { my $panel = $_; +{ %$panel, series => [ map { _copy($_, $panel, \@jobs, $grid_x, $grid_y) } @{ $panel->{series} } ] } } @{ $chart->{panels} };
		push @charts, { %$chart, panels => \@panels };
	}
	_read($file, \@jobs, $grid_y + 1) if @jobs;
	return \@charts;
}

# Makes room in a series for points from the file.  Such points are on linear axes.
sub _copy ($series, $panel, $jobs, $grid_x, $grid_y) {
	my $from = $series->{columns} or return $series;
	my $copy = { %$series, data => [] };
	my ($scale_x, $scale_y) = map { $_->[1] / ($_->[0]{max} - $_->[0]{min}) } [$panel->{x}, $grid_x], [$panel->{y}, $grid_y];
	my ($column, $operator, $number) = split ' ', $from->{only} // '';
	push @$jobs, { data => $copy->{data}, columns => [ map { $_ - 1 } @{ $from->{sum} } ], scale => $from->{scale} // 1, seen => {},
		scale_x => $scale_x, scale_y => $scale_y, highest => $grid_y, defined $column ? (only => $column - 1, equal => $operator eq '==', number => $number) : () };
	return $copy;
}

sub _read ($file, $jobs, $rows) {
	open my $fh, '<', $file or die "$file: $!\n";
	while (defined(my $line = <$fh>)) {
		next if substr($line, 0, 1) eq '#';
		my @value = split ' ', $line;
		for my $job (@$jobs) {
			next if defined $job->{only} && ($value[ $job->{only} ] == $job->{number}) != $job->{equal};
			my $y  = sum(@value[ @{ $job->{columns} } ]) / $job->{scale};
			my $at = int($y * $job->{scale_y});
			$at = $job->{highest} if $at > $job->{highest};
			push @{ $job->{data} }, [$value[0], $y] unless $job->{seen}{ int($value[0] * $job->{scale_x}) * $rows + $at }++;
		}
	}
	close $fh or die "$file: $!\n";
}

1;
