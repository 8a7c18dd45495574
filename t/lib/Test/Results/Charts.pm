package Test::Results::Charts;
# The charts of doc/RESULTS.md and doc/tuning.md, drawn by accel-graph.
#
#     Test::Results::Charts::draw('build/results', 'doc/img');
use v5.36;
use Carp       qw(croak);
use File::Path qw(make_path);
use File::Temp ();
use Accel::Util qw(put slurp);

# Name of the picture, chart of accel-graph, title, then further arguments; the last is the log.
my @CHARTS = (
	(map { my ($threads, $bytes) = @$_; map { my $chart = $_;
		["starvation-$threads-$bytes" . ($chart eq 'stages' ? '' : "-$chart"), $chart, "$threads read threads, $bytes at a time",
			'--ymax', 16_000, "starvation.kept/$threads-threads-$bytes.log"] } qw(stages read-queue-wait) } [4, '64k'], [4, '1m'], [64, '64k'], [64, '1m']),
	['heat', 'heat', 'A server that opens files in its loop', 'timing.kept/before.log'],
	['stages', 'breakdown', 'Where the time of cold requests goes', 'timing.kept/after.log'],
	['percentile', 'compare', 'Cold requests, without and with stat threads', '--before', 'timing.kept/before.log', 'timing.kept/after.log'],
	['lanes', 'lanes', 'Requests, processors and disks', '--lanes', 'timing.kept/after.lanes', 'timing.kept/after.log'],
	['threads', 'sweep', 'Threads and throughput on two spindles', '--sweep', '2007-threads.json'],
);

# Draws the charts that have data.  Dies when accel-graph fails.
sub draw ($from, $to) {
	make_path($to);
	for my $c (@CHARTS) {
		my ($name, $chart, $title, @args) = @$c;
		@args = map { m{^(?:starvation|timing)\.kept/|\.json\z} ? "$from/$_" : $_ } @args;
		next if grep { m{^\Q$from\E/} && !-s } @args;
		_draw($chart, $title, "$to/$name.svg", @args);
	}
	return;
}

# accel-graph names a picture after its chart; here it gets the name that the pages use.
sub _draw ($chart, $title, $picture, @args) {
	my $dir = File::Temp->newdir;
	open my $said, '-|', 'scripts/accel-graph', '--svg', '--output', "$dir", '--chart', $chart, '--title', $title, '--size', '800x480', @args
		or croak "accel-graph: $!";
	my $text = join '', <$said>;
	close $said or croak "accel-graph failed on @args: $text";
	my ($made) = glob "$dir/*.svg" or croak "accel-graph drew no $chart of @args";
	put($picture, slurp($made) =~ s/[ \t]+$//mgr);         # gnuplot ends lines with blanks
}

1;
