# The helper process reads the configuration, listens and writes the pid file for a server that has dropped root.  A reload
# delays no client.  A server without its helper goes on serving.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use POSIX ();
use Test::Load;
use Test::Server;

my $reloads = $ENV{RELOADS} // 5;
my $www = $> == 0 && getpwnam('www-data');
my $asan = ($ENV{B} // '') =~ /san/;

sub start {
	my ($conf, %arg) = @_;
	my $dir = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
	chmod 0755, $dir or die "$dir: $!";
	$conf = qq{server.username = "www-data"\n$conf} if $www;
	my $srv = Test::Server->start(conf => $conf, dir => $dir, %arg);
	$srv->write('a', 'A');
	chmod 0755, $srv->run;
	return $srv;
}

sub conf { my ($srv) = @_; return Test::Util::slurp($srv->run . '/server.conf') }

sub reload {
	my ($srv, $conf) = @_;
	Test::Util::put($srv->run . '/server.conf', $conf) if defined $conf;
	my $n = () = $srv->log =~ /ev=reloaded/g;
	$srv->signal('USR1');
	return Test::Util::eventually(sub { $n < (() = $srv->log =~ /ev=reloaded/g) });
}

# Number and command of each child.
sub children {
	my ($pid) = @_;
	my %of;
	for my $dir (glob '/proc/[0-9]*') {
		my ($n, $comm, $parent) = Test::Util::slurp("$dir/stat") =~ /\A(\d+) \((.*)\) \S (\d+)/s or next;
		$of{$n} = $comm if $parent == $pid;
	}
	return %of;
}

sub status { my ($pid, $key) = @_; return Test::Util::slurp("/proc/$pid/status") =~ /^$key:\s*(.*)/m ? $1 : '' }

subtest 'reloads with include_shell lose no request' => sub {
	my $tag = File::Temp->new;
	Test::Util::put("$tag", qq{server.tag = "t0"\n});
	my $srv = start(qq{include_shell "cat $tag"\n});
	is $srv->fetch('/a')->{header}{server}, 't0', 'its output is used';
	my $load = Test::Load->start($srv, clients => 4, path => '/a', want => 'A');
	my $done = 0;
	for my $i (1 .. $reloads) {
		Test::Util::put("$tag", qq{server.tag = "t$i"\n});
		last unless reload($srv);
		# A worker of the generation before may still accept in the round in which it learns of its end.
		$done++ if Test::Util::eventually(sub { $srv->fetch('/a')->{header}{server} eq "t$i" });
	}
	is $done, $reloads, "$reloads reloads took effect";
	my ($asked, $wrong) = $load->stop;
	cmp_ok $asked, '>', 4 * $reloads, "$asked requests meanwhile";
	is "@$wrong", '', '... and each was answered';
	is $srv->wait_exit(0), undef, 'the same process serves';
	my %c = children($srv->pid);
	is join(' ', values %c), 'accel-guardian', 'its only child is the guardian of the helper';
	# A child under a sanitizer lives a second longer than its answer.
	my $helper = $srv->helper;
	ok Test::Util::eventually(sub { !children($helper) }), '... which keeps no child' or diag explain { children($helper) };
	my @fd;
	ok Test::Util::eventually(sub { 7 == (@fd = grep { /socket:|anon_inode|pipe:/ } map { readlink // () } glob "/proc/$helper/fd/{[3-9],??}") }),
	    '... and has its end of the pair, a signalfd, the socket for programs, the one to its guardian and three for private keys only' or diag "@fd";
};

subtest 'a configuration command inherits no descriptor of the server or the helper' => sub {
	my $srv = start(qq{include_shell "exec ls -l /proc/self/fd >\@RUN\@/fds"\n});
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	my @fd = grep { $_->[0] > 2 && $_->[1] !~ m{^/proc/} } map { [m{ (\d+) -> (.*)}] } grep { / -> / } split /\n/, $srv->log('fds');
	is join(' ', map { "$_->[0]: $_->[1]" } @fd), '', 'only 0, 1 and 2';
};

subtest 'only the helper keeps root' => sub {
	plan skip_all => 'needs root and the user www-data' unless $www;
	my $srv = start('');
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	like status($srv->pid, 'Uid'), qr/^$www\s+$www\s+$www\s+$www$/, 'the server is www-data';
	like status($srv->helper, 'Uid'), qr/^0\b/, 'the helper is root';
	unlike $srv->log, qr/running\.as-root/, 'nothing to warn of';
};

subtest 'a group without a user is reported as root' => sub {
	plan skip_all => 'needs root and the user www-data' unless $www;
	my $srv = Test::Server->start(conf => qq{server.groupname = "www-data"\n});
	my $log = $srv->wait_log(qr/ev=listening/);
	like $log, qr/level=warn ev=running\.as-root do="set server\.username/, 'a warning says what to write';
	like status($srv->pid, 'Groups'), qr/^33\s*$/, 'supplementary groups of root are gone' if getgrnam('www-data') == 33;
};

subtest 'the pid file is removed at the end' => sub {
	my $srv = start(qq{server.pid-file = "\@RUN\@/pid"\n});
	my $pid = $srv->run . '/pid';
	$srv->wait_log(qr/ev=listening/);
	is $srv->log('pid'), $srv->pid . "\n", 'it holds the number of the server';
	my ($status) = $srv->term;
	is $status, 0, 'the server ends';
	ok !-e $pid, '... and its pid file is gone';

	$srv = start(qq{server.pid-file = "\@RUN\@/pid"\n}, unchecked => 1);
	$srv->wait_log(qr/ev=listening/);
	$srv->term('KILL');
	$pid = $srv->run . '/pid';
	ok Test::Util::eventually(sub { !-e $pid }), 'the helper removes that of a server that was killed';
};

subtest 'a reload may add a low port' => sub {
	plan skip_all => 'needs root and the user www-data' unless $www;
	my $srv = start(qq{server.bind = "\@RUN\@/sock"\n}, env => { LISTEN_PID => 1 });
	$srv->wait_log(qr/ev=listening/);
	my ($ip, $port, $probe);
	for (1 .. 50) {
		($ip, $port) = ('127.' . join('.', map { 1 + int rand 250 } 1 .. 3), 600 + int rand 400);
		last if $probe = IO::Socket::INET->new(LocalAddr => $ip, LocalPort => $port, Listen => 1, ReuseAddr => 1);
	}
	ok $probe, 'a port below 1024 is free' or return;
	close $probe;
	ok reload($srv, conf($srv) . qq{\$SERVER["socket"] == "$ip:$port" { }\n}), 'reloaded';
	my $c = IO::Socket::INET->new(PeerAddr => $ip, PeerPort => $port);
	ok $c, 'it is listened on' or return;
	print {$c} "GET /a HTTP/1.0\r\n\r\n";
	like join('', <$c>), qr/ 200 .*\r\n\r\nA\z/s, '... and served';
};

subtest 'a unix socket has its configured mode and owner' => sub {
	plan skip_all => 'needs root and the user www-data' unless $www;
	my $srv = start(qq{server.bind = "\@RUN\@/sock"\nserver.socket-perms = "0620"\n}, env => { LISTEN_PID => 1 });
	$srv->wait_log(qr/ev=listening/);
	my @st = stat $srv->run . '/sock';
	is sprintf('%04o %d', $st[2] & 07777, $st[4]), "0620 $www", 'as the configuration says';
	my $run = $srv->run;
	my $rival = Test::Server->start(conf => qq{server.bind = "$run/sock"\n}, env => { LISTEN_PID => 1 }, unchecked => 1);
	is $rival->wait_exit >> 8, 69, 'a second server on this socket does not start';
	my $c = IO::Socket::UNIX->new(Peer => "$run/sock");
	ok $c, '... and the first one keeps it';
};

subtest 'inherited descriptors must be listening sockets' => sub {
	my $srv = start('', env => { LISTEN_FDS => 2 }, unchecked => 1);
	is $srv->wait_exit >> 8, 64, 'the server does not start';
	like $srv->log('stderr'), qr/^accel-server: LISTEN_FDS: descriptor 4 is not a listening socket$/m, '... and says why';
};

subtest 'TERM ends a server whose configuration command hangs' => sub {
	my $srv = start('');
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	my $sleep = $srv->run . '/pid-of-sleep';
	Test::Util::put($srv->run . '/server.conf', conf($srv) . qq{include_shell "echo \$\$ >$sleep; exec sleep 1000"\n});
	$srv->signal('USR1');
	ok Test::Util::eventually(sub { -s $sleep }), 'the command runs';
	my ($hangs) = Test::Util::slurp($sleep) =~ /(\d+)/;
	is $srv->fetch('/a')->{body}, 'A', 'the server serves meanwhile';
	$srv->signal('HUP');
	ok $srv->wait_log(qr/logs\.reopened/) =~ /logs\.reopened/, '... and takes other signals';
	my ($status, $seconds) = $srv->term;
	is $status, 0, 'TERM ends it';
	cmp_ok $seconds, '<', 10, '... soon';
	ok Test::Util::eventually(sub { !kill 0, $hangs }), 'the command has ended with it';
};

# A command of the configuration stops the helper, so the server waits for the first answer after the record.
subtest 'TERM during the start ends the server' => sub {
	my $stop = q{include_shell "read -r n name state helper rest </proc/$PPID/stat; echo $helper >@RUN@/helper; kill -STOP $helper"};
	my %wait_for = (
		'the error log' => '',
		'a socket' => qq{server.errorlog = ""\nserver.bind = "\@RUN\@/sock"\n},
		'the pid file' => qq{server.errorlog = ""\nserver.pid-file = "\@RUN\@/pid"\n},
		'an access log' => qq{server.errorlog = ""\naccesslog.filename = "\@RUN\@/access"\n},
	);
	for my $what (sort keys %wait_for) {
		my $srv = Test::Server->start(conf => "$wait_for{$what}$stop\n", env => $what eq 'a socket' ? { LISTEN_PID => 1 } : {});
		ok Test::Util::eventually(sub { $srv->log('helper') =~ /^\d+\n/ }), "it waits for $what";
		my ($helper) = $srv->log('helper') =~ /(\d+)/ or next;
		my ($status) = $srv->term;
		kill CONT => $helper;
		is $status, 0, '... TERM ends it with status 0';
		my $said = $srv->log('stderr') . $srv->log;
		unlike $said, qr/level=(?!info|warn)|accel-server: /, '... and no line of an error';
		unlike $said, qr/ev=listening/, '... before it listened';
	}
};

subtest 'a command that takes too long fails the reload' => sub {
	my $srv = start("server.reload-timeout = 1\n");
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	my $good = conf($srv);
	Test::Util::put($srv->run . '/server.conf', $good . qq{include_shell "sleep 1000"\n});
	$srv->signal('USR1');
	like $srv->wait_log(qr/reload\.refused/),
	    qr/reload\.refused .*the command \\x22sleep 1000\\x22: it took longer than 1 s \(server\.reload-timeout\)/,
	    'the reload is refused, with the command and the reason';
	is $srv->fetch('/a')->{body}, 'A', 'the configuration before goes on';
	# On a busy machine a good reload may take longer than a second, too.
	Test::Util::put($srv->run . '/server.conf', $good);
	my $before = () = $srv->log =~ /ev=reloaded/g;
	ok Test::Util::eventually(sub { $srv->signal('USR1'); $before < (() = $srv->log =~ /ev=reloaded/g) }), '... and a next reload is taken';
};

subtest 'a configuration without memory fails the reload' => sub {
	plan skip_all => 'a sanitizer needs its own memory' if $asan;
	plan skip_all => 'prlimit is not installed' if system('prlimit --version >/dev/null 2>&1') != 0;
	my $srv = start('', unchecked => 1);     # the child that ran out of memory says so
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	my $good = conf($srv);
	my $as = 1024 * (status($srv->helper, 'VmSize') =~ /(\d+)/)[0] + (48 << 20);
	is system('prlimit', "--as=$as", '--pid', $srv->helper), 0, 'the helper is short of memory';
	Test::Util::put($srv->run . '/server.conf', $good . join '', 'var.a = "' . 'x' x 65536 . qq{"\n}, map { "var.b$_ = var.a + \"$_\"\n" } 1 .. 400);
	$srv->signal('USR1');
	$srv->log_has(qr/reload\.refused/, 'the reload is refused');
	is $srv->fetch('/a')->{body}, 'A', 'the configuration before goes on';
	ok reload($srv, $good), '... and a small one is taken';
};

subtest 'a server whose helper and guardian were killed goes on serving' => sub {
	my $srv = start(qq{accesslog.filename = "\@RUN\@/access.log"\n});
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	$srv->kill_helper_and_guardian;
	like $srv->wait_log(qr/helper\.ended/), qr/level=error ev=helper\.ended .*restart the server/, 'the log says so';
	is $srv->fetch('/a')->{body}, 'A', 'it goes on serving';
	$srv->signal('USR1');
	like $srv->wait_log(qr/reload\.refused/), qr/reload\.refused .*helper process has died/, 'a reload is refused';
	$srv->signal('HUP');
	like $srv->wait_log(qr/accesslog\.reopen/), qr/accesslog\.reopen .*writing to the old file/, 'HUP keeps the old log';
	is $srv->fetch('/a?after')->{body}, 'A', 'it still serves';
	like $srv->wait_log(qr/after/, 'access.log'), qr/after/, '... and logs';
};

done_testing;
