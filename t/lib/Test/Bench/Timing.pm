package Test::Bench::Timing;
# Two error logs for charts: hot clients beside cold ones, with and without stat threads.
#
# `run($bench)` writes into the directory of `--charts`: before.log of an accel-server that opens files in its loop, after.log of one with its
# defaults, and before.lanes and after.lanes, what disk and processors did meanwhile. The slow disk is ext4 on two spindles, so that the kernel counts its
# work; without a loop device it is slowfs. 20 clients ask for cold files of 100 kB, 5 for a hot one.
use v5.36;
use Accel::Bench::Rig ();
use Test::Bench::Beside ();
use Accel::Util qw(program put slurp);
use File::Copy  ();
use File::Path  ();

my %DISK = (lookup_ms => 4, read_ms => 4, jitter => 20, spindles => 2);
my @RUNS = (['before', 0], ['after', 16]);

sub run ($bench) {
	my $to = $bench->opt('charts') // die "bench: --timing needs --charts DIR\n";
	File::Path::make_path($to);
	my ($image) = Accel::Bench::Rig::usable('ext4');
	$bench->{opt}{storage} //= $image ? 'ext4' : 'slowfs';
	my $rig = Accel::Bench::Rig->new($bench, lists => ['small']);
	for my $run (@RUNS) {
		my ($name, $threads) = @$run;
		my $seen = $rig->with_server({ kind => 'accel', name => $name, stat_threads => $threads, conf => qq{debug.log-timing = "enable"\n} },
			\%DISK, sub ($srv) { return one($bench, $rig, $srv, "$to/$name") });
		$bench->result->{timing}{$name} = $seen;
		printf "%-7s %d stat threads: hot p99 %.1f ms, cold %.1f MB/s\n", $name, $threads, @$seen{qw(hot_p99_ms cold_mb)};
	}
	return;
}

sub one ($bench, $rig, $srv, $to) {
	my $seconds = $bench->opt('seconds');
	unlink "$to.lanes";
	my $lanes = $bench->begin($^X, scripts('accel-top'), '--no-server', '--record', "$to.lanes", '--interval', 0.5, '--count', int(2 * $seconds));
	my ($hot, $cold) = Test::Bench::Beside::beside($bench, $srv, { clients => 20, list => $rig->list('small'), head_start => 0 }, clients => 5, rate => 50);
	$bench->end($lanes);
	my $mount = $rig->mount_point;          # a temporary name, which says nothing to a reader of charts
	put("$to.lanes", slurp("$to.lanes") =~ s/\Q$mount\E/\/srv\/www/gr);
	File::Copy::copy($srv->error_log, "$to.log") or die "bench: $to.log: $!\n";
	return { hot_p99_ms => $hot->{latency_us}{p99} / 1000, cold_mb => $cold->{mb_per_s} };
}

# A script of the source tree.
sub scripts ($name) { return program('accel-server') =~ s{[^/]+/bin/accel-server\z}{scripts/$name}r }

1;
