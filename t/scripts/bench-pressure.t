# bench --pressure has its numbers, and leaves no mount, loop device, cgroup, trace or process, even when it is interrupted while its disk hangs.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::SlowImage ();
use File::Temp       ();
use IO::Socket::UNIX ();
use JSON::PP         ();
use POSIX            ();
use Test::Cgroup;
use Test::More;
use Test::Sleeps;
use Test::Util qw(eventually slurp);

Accel::SlowImage::private_mounts(@ARGV);

my $script = "$FindBin::Bin/../../scripts/bench";

subtest 'what a trace says' => sub {
	my $event = sub ($tid, $t, $text) { return sprintf "  x y-%d  [001] d..2.  %.6f: %s\n", $tid, $t, $text };
	my $switch = sub ($t, $from, $state, $to) {
		return $event->($from, $t, "sched_switch: prev_comm=a b prev_pid=$from prev_prio=120 prev_state=$state ==> next_comm=c next_pid=$to next_prio=120");
	};
	my $wake = sub ($t, $tid) { return $event->(99, $t, "sched_waking: comm=a b pid=$tid prio=120 target_cpu=001") };
	my $seen = sub ($asleep, @lines) {
		open my $fh, '<', \join '', @lines or die "$!";
		return Test::Sleeps::_parsed({ tids => [7, 8], begin => 10, end => 12, asleep => $asleep }, $fh);
	};
	my $idle = $seen->({}, $switch->(10.1, 7, 'S', 0), $wake->(11.9, 7), $switch->(11.95, 0, 'R', 7));
	is_deeply [map { 0 + sprintf '%.3f', $_ } @$idle{qw(slept_ms call_ms ready_ms)}], [0, 0, 50], 'waiting for events is not sleep; waiting for a processor is counted apart';
	my $disk = $seen->({}, $event->(7, 10.1, 'sys_enter: NR 40 (5, 6, 0, 0, 0, 0)'), $switch->(10.2, 7, 'D', 0), $wake->(10.6, 7), $switch->(10.7, 0, 'R', 7),
		$event->(7, 10.8, 'sys_exit: NR 40 = 100'), $switch->(10.9, 3, 'D', 4), $wake->(11.9, 3));
	is_deeply [map { /\d/ ? 0 + sprintf '%.3f', $_ : $_ } @$disk{qw(slept_ms slept_in call_ms call sleeps)}], [400, 'sendfile', 700, 'sendfile', 1],
	    'a sleep in a system call, without those of other threads';
	my $fault = $seen->({}, $switch->(10.5, 8, 'D', 0));
	is_deeply [@$fault{qw(slept_ms slept_in)}], [1500, 'a page fault'], 'a sleep that goes on at the end';
	my $before = $seen->({ 8 => 257 });
	is_deeply [@$before{qw(slept_ms slept_in call_ms)}], [2000, 'openat', 2000], '... and one that lasts from the beginning to the end';
};

subtest 'samples where there is no trace' => sub {
	no warnings 'redefine';
	local *Test::Sleeps::_trace = sub { die "no tracefs\n" };
	my $seen = Test::Sleeps->start($$)->stop;
	is_deeply [@$seen{qw(how slept_ms sleeps)}], ['sampled', 0, 0], 'a thread that runs does not sleep';
	is +Test::Sleeps->start->stop, undef, 'of no threads there are no figures';
};

subtest 'wrong words' => sub {
	is `$^X $script --limit 50 2>&1`, "bench: --limit and --disk go with --pins and --pressure\n", 'a limit of another benchmark';
};

my ($ok, $why) = Test::Cgroup->usable;
($ok, $why) = Accel::SlowImage->usable('ext4') if $ok;

# Programs, loop devices, cgroups and traces of a bench with this process and this directory.
sub left ($pid, $tmp) {
	return ((grep { index(slurp($_), $tmp) >= 0 } glob '/proc/[0-9]*/cmdline'), (grep { index(slurp($_), $tmp) >= 0 } glob '/sys/block/loop*/loop/backing_file'),
		(map { glob "$_/accel-test-$pid-*" } '/sys/fs/cgroup/memory', '/sys/fs/cgroup', '/sys/kernel/tracing/instances'));
}

# Starts the benchmark: its process, and a handle with what it prints; its files are below $tmp.
sub begin ($tmp, @args) {
	local $ENV{TMPDIR} = $tmp;
	delete local $ENV{ACCEL_BENCH_INSIDE};
	my $pid = open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', $^X, $script, '--pressure', '--quick', '--server', 'adaptive', @args or die "bench: $!";
	return ($pid, $fh);
}

subtest 'one cell' => sub {
	plan skip_all => $why unless $ok;
	my $tmp = File::Temp->newdir;
	chmod 0755, "$tmp";
	my ($pid, $fh) = begin("$tmp", '--seconds', 1, '--limit', 50, '--disk', 'slow', '--json', "$tmp/json");
	my $said = do { local $/; <$fh> };
	close $fh;
	is $?, 0, 'status' or diag $said;
	my $m = eval { JSON::PP::decode_json(slurp("$tmp/json")) }->{pressure}{'50 %'}{slow}{adaptive} // {};
	cmp_ok $m->{$_} // -1, '>', 0, "$_ is measured" for qw(alone_p99 p50 p99 max asked answered cold_mb cold_answered refaults);
	cmp_ok $m->{$_} // -1, '>=', 0, "$_ is there" for qw(slept_ms slept_share faults);
	is_deeply [@$m{qw(hot_errors cold_ended cold_stuck killed)}], [0, 0, 0, 0], 'no errors';
	like $said, qr/^Memory 50 % \(48 MiB .*slow disk.*\n.*hot ms.*cold MB\/s.*\n  adaptive +\d/m, 'a row of the table';
	ok eventually(sub { !left($pid, "$tmp") }), 'nothing is left' or diag join "\n", left($pid, "$tmp");
};

subtest 'interrupted while the disk hangs' => sub {
	plan skip_all => $why unless $ok;
	my $tmp = File::Temp->newdir;
	chmod 0755, "$tmp";
	my ($pid, $fh) = begin("$tmp", '--seconds', 1, '--limit', 50, '--disk', 'hung');
	my $hanging = sub {
		for my $control (glob "$tmp/slowfs-*/control") {
			my $sock = IO::Socket::UNIX->new(Peer => $control) or next;
			print $sock "stat\n";
			$sock->flush;
			return 1 if (<$sock> // '') =~ /hanging=[1-9]/;
		}
		return 0;
	};
	ok eventually($hanging, 60), 'its disk hangs';
	kill INT => $pid;
	my $status;
	ok eventually(sub { waitpid($pid, POSIX::WNOHANG()) == $pid && defined($status = $?) }, 60), 'it ends' or kill KILL => $pid;
	is +($status // -1) >> 8, 130, '... as interrupted programs do';
	ok eventually(sub { !left($pid, "$tmp") }), 'nothing is left' or diag join "\n", left($pid, "$tmp");
};

done_testing;
