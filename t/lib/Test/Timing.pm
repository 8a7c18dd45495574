package Test::Timing;
# Made logs and models for the tests of charts.
#
#     my @lines = timing_lines(500);             # cold and hot requests, the same in each run
#     my $model = full_model($log, $dir);        # with all that --before, --lanes, --sweep and --load bring
use v5.36;
use Exporter 'import';
use File::Basename ();
use lib File::Basename::dirname(__FILE__) . '/../../../scripts/lib';
use Accel::Graph::Model ();
use Accel::Graph::Read  ();
use Accel::Graph::Spool ();
use Accel::Graph::Stats ();

our @EXPORT_OK = qw(timing_lines model_of full_model);

my @STAGES = qw(stat-queue stat proxy-queue proxy read-queue read handover write);

# Each second request is hot; the slowest cold ones take more than 4 s.
sub timing_lines ($n, %arg) {
	return map {
		my $part = ($_ * 37 % 100) / 100;    # all hundredths, shuffled
		my %us   = (map({ $_ => 0 } @STAGES), handover => 300, write => int 9_000 * $part);
		@us{qw(stat-queue stat read-queue read)} = map { int $_ * (1 + 4 * $part**6) } 104_000 * $part, 20_000, 300_000 * $part, 90_000 + 400_000 * $part if $_ % 2;
		my $total = 100;
		$total += $_ for values %us;
		sprintf 'network_gthread_aio.c.78: (trace) write-start: %.6f read-queue-wait: 0 ms read-time: 0 ms write-time: 0 ms id=c%d.1 status=200 bytes=102400 hot=%d %s total-us=%d path="%s"',
		    1_173_101_341 + $_ / 10, $_, $_ % 2 ? 0 : 1, join(' ', map { "$_-us=$us{$_}" } @STAGES), $total * ($arg{times} // 1), $arg{path} // '/a'
	} 1 .. $n;
}

# Reads a log; with a directory, also writes its data file.
sub model_of ($log, $name, $dir = undef) {
	my $stats = Accel::Graph::Stats->new;
	my $spool = defined $dir ? Accel::Graph::Spool->new : undef;
	my $read  = Accel::Graph::Read->new(on_row => sub ($row) { $stats->add($row); $spool->add($row) if $spool }, on_block => sub ($) { $stats->shrink }, warn => sub ($text) { die $text });
	my $why   = $read->file($log);
	die $why if $why;
	my $model = Accel::Graph::Model->of_log($stats, name => $name, files => [$log], rejected => 0);
	$model->{data} = $spool->write_data("$dir/$name.data", $model->{first}) if $spool;
	return $model;
}

# A model from which each chart can be drawn; $evil is in each place that takes text from outside.
sub full_model ($log, $name, $dir, $evil = '') {
	my $model = model_of($log, $name, $dir);
	my $old   = model_of($log, "before$evil");
	$model->{before} = $old;
	$model->{advice} = "Nothing to change$evil.";
	$model->{lanes}  = [ map { { at => $_, us => 10, sy => 20 + $_ % 3, id => 30, wa => 40, disks => { "vda$evil" => { mount => "/data$evil", util => 60 + $_ % 30, queue => $_ % 7, await_ms => 8, read_mb_per_s => 12 } } } } 1 .. $model->{span} ];
	$model->{memory} = { files => 9, bytes => 9e6, limit => 5e6, over_time => [ map { { from => 10 * $_ - 10, at => 10 * $_, again_mb_per_s => $_, stalled => 0.01 * $_, gone_per_s => 2, waits_per_s => 0.1, held_mb => 3 } } 1, 2, 4 ] };
	$model->{sweep}  = { title => "threads$evil", x => 'read_threads', series => [ map { my $s = $_; { label => "server$s$evil", points => [ map { { x => 2**$_, mb_per_s => 10 - 5 / 2**$_ - $s, p99_ms => 9000 / 2**$_ } } 0 .. 6 ] } } 1, 2 ] };
	$model->{load}   = [{ label => "run$evil", requests => 500, answered => 500, requests_per_s => 50, mb_per_s => 5, errors => { all => 0 }, latency => $model->{stages}{total}{all} }];
	return $model;
}

1;
