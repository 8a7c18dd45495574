# An idle server costs nothing: no timer ticks without need, and after a burst memory and descriptors go back.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Time::HiRes qw(sleep time);
use Test::Fcgi;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program sanitized slurp temp_tree);

# $rest: longer than the timers set below, which are a second and an eighth
my ($conns, $names, $room_mib, $rest) = (2000, 20_000, 4, 1.2);

sub family { my ($pid) = @_; return ($pid, map { split ' ', slurp($_) } glob "/proc/$pid/task/*/children") }

# TSan adds a thread that wakes up ten times a second.  It has the name of the program, and ours have names of their own.
sub added_by_tsan ($task) {
	my ($pid, $tid) = $task =~ m{^/proc/(\d+)/task/(\d+)};
	return 0 if Test::Util::build_dir() !~ /tsan/ || $pid == $tid;
	my ($program) = readlink("/proc/$pid/exe") =~ m{([^/]{1,15})[^/]*\z};
	return slurp("/proc/$tid/comm") eq "$program\n";
}

# How often the threads of a program and its children went to sleep: once for each wake-up.
sub switches {
	my ($pid) = @_;
	my $n = 0;
	for my $file (grep { !added_by_tsan($_) } map { glob "/proc/$_/task/*/status" } family($pid)) {
		open my $fh, '<', $file or next;        # a thread that ended
		while (my $line = <$fh>) { $n += $1 if $line =~ /^voluntary_ctxt_switches:\s+(\d+)/ }
	}
	return $n;
}

# Waits until none of them has woken up for that long; false at the deadline.
sub fall_asleep {
	my @pid = @_;
	my ($seen, $since) = (-1);
	return eventually(sub {
		my $n = 0;
		$n += switches($_) for @pid;
		($seen, $since) = ($n, time) if $n != $seen;
		sleep 0.05;
		return time - $since > $rest;
	});
}

sub load { open my $out, '-|', program('accel-load'), '-q', @_ or die "accel-load: $!"; return $out }
sub report { my ($load) = @_; local $/; return readline $load }

# ---------------------------------------------------------------- two programs

my $files = temp_tree();
Test::Util::put("$files/small", 's' x 1000);
my $accel = Test::Fcgi->start('--root', "$files", '--ping-path', '/ping', '-t', 4);
my $srv = Test::Server->start(nofile => 2 * $conns + 500, conf => <<"CONF");
server.max-connections = @{[ 2 * $conns ]}
server.max-cached-files = $names
server.hotset-percent = 0
server.cache.max-idle = 1
server.cache.forget-after = 1
server.max-keep-alive-idle = 1
status.statistics-url = "/counters"
@{[ Test::Server::proxy_block('^/ping', 'unix:' . $accel->socket, 'check-url' => '/ping', 'check-interval' => 60, 'idle-timeout' => 1) ]}
@{[ Test::Server::proxy_block('^/checked', 'unix:' . $accel->socket, 'check-url' => '/ping', 'check-interval' => 1, 'idle-timeout' => 1) ]}
CONF
my $url = 'http://127.0.0.1:' . $srv->port;
$srv->write('small', 's' x 1000);
$srv->write("large$_", 'L' x 300_000) for 1 .. 20;
$srv->write('names', join '', map { "/absent-$_\n" } 1 .. $names);
Test::Util::put("$files/names", join '', map { "$files/absent-$_\n" } 1 .. $names);

# ---------------------------------------------------------------- before

is $srv->fetch($_)->{status}, 200, $_ for '/large1', '/ping';
my %base = (rss => $srv->rss, descriptors => $srv->descriptors, accel => Test::Util::rss($accel->pid));

# ---------------------------------------------------------------- the burst

my $of_accel = load('--fastcgi', -c => 50, -n => $names, '--status' => 404, -u => "$files/names", 'unix:' . $accel->socket);
like report(load(-c => $conns, -n => 5 * $conns, "$url/small")), qr/no errors/, "$conns connections";
like report(load(-c => 20, -n => 20, map { "$url/large$_" } 1 .. 20)), qr/no errors/, 'larger files';
like report(load(-c => 50, -n => $names, '--status' => 404, -u => $srv->path('names'), "$url/")), qr/no errors/, "$names names";
like report($of_accel), qr/no errors/, "$names names for the accelerator";
my %full = (rss => $srv->rss, accel => Test::Util::rss($accel->pid));

# ---------------------------------------------------------------- after

ok fall_asleep($srv->pid, $accel->pid), "after the burst no thread of both wakes up for $rest seconds, not even once a second";
cmp_ok $srv->descriptors, '<=', $base{descriptors}, 'descriptors are back';
SKIP: {
	skip 'a sanitizer keeps freed memory', 4 if sanitized();
	my $most = $base{rss} + $room_mib;
	cmp_ok $full{rss}, '>', $most, 'the burst took memory';
	ok eventually(sub { $srv->rss <= $most }), 'memory is back: at most ' . sprintf '%.1f MiB', $most;
	$most = $base{accel} + $room_mib;
	cmp_ok $full{accel}, '>', $most, 'the names took memory of the accelerator';
	ok eventually(sub { Test::Util::rss($accel->pid) <= $most }), '... and it is back';
}
cmp_ok $srv->counter('server.cache.forgotten'), '>=', $names / 4, 'names were forgotten';
is $srv->fetch('/small')->{body}, 's' x 1000, 'the server goes on';

# ---------------------------------------------------------------- checks of backends

# Checks begin with the first request of the block.  One worker makes them.
is $srv->fetch('/checked')->{status}, 403, 'a request of a block whose backend is checked each second';
my ($began, $before) = (time, switches($srv->pid));
sleep 1.1;
my ($woken, $checks) = (switches($srv->pid) - $before, int(time - $began) + 1);
cmp_ok $woken, '>', 0, 'then it wakes up for checks';
cmp_ok $woken, '<=', 10 * $checks, '... a few times for each';

note "$woken wake-ups in ", time - $began, " s with checks";
note sprintf "RSS of the server %.1f, %.1f, %.1f; of the accelerator %.1f, %.1f, %.1f MiB", $base{rss}, $full{rss}, $srv->rss, $base{accel}, $full{accel}, Test::Util::rss($accel->pid);
done_testing;
