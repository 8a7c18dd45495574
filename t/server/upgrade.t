# A binary upgrade (USR2): the program file is executed anew and takes over.  No connection is refused, reset or cut.  A new
# server that fails leaves the old one serving.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Cwd ();
use IO::Socket::UNIX ();
use POSIX ();
use Socket ();
use Test::Http qw(req);
use Test::Load;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp);

my $www = $> == 0 && getpwnam('www-data');

sub server (%arg) {
	my $conf = qq{server.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\nstatus.metrics-url = "/metrics"\n} . ($www ? qq{server.username = "www-data"\n} : '');
	my $dir = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
	chmod 0755, $dir;
	my $srv = Test::Server->start(%arg, dir => $dir, conf => $conf . ($arg{conf} // ''));
	chmod 0755, $srv->run;
	$srv->sparse('big', 8 << 20);
	$srv->write('a', 'A');
	$srv->wait_log(qr/ev=listening/);
	return $srv;
}

sub status ($pid, $key) { return slurp("/proc/$pid/status") =~ /^$key:\s*(.*)/m ? $1 : '' }

sub change ($srv, $from, $to) {
	my $conf = $srv->run . '/server.conf';
	put($conf, slurp($conf) =~ s/$from/$to/r);
}

subtest 'no connection is lost or cut' => sub {
	my $srv = server();
	my ($idle, $silent) = map { $srv->connect } 1 .. 2;
	$idle->send(req('/a'));
	is $idle->reply->{body}, 'A', 'a connection is kept, another has sent nothing';
	my $download = $srv->connect(rcvbuf => 4096);
	$download->send(req('/big'));
	my $head = $download->up_to("\r\n\r\n", time + Test::Util::PATIENCE);
	my $load = Test::Load->start($srv, clients => 3, path => '/a', want => 'A');
	my $first = $srv->pid;
	my $starts = sub { [$srv->fetch('/metrics')->{body} =~ /^accel_(?:upgrades_total|first_start_time_seconds) (\d+)$/mg] };
	my $began = $starts->();
	for my $n (1 .. 3) {
		my $old = $srv->upgrade;
		ok $old, "upgrade $n: another process has the pid file";
	}
	is_deeply $starts->(), [$began->[0], $began->[1] + 3], 'the first process is remembered: an upgrade is not a crash';
	my ($asked, $wrong) = $load->stop;
	is "@$wrong", '', "each of $asked requests was answered";
	is scalar($srv->wait_lines(3, qr/ev=upgraded pid=/)), 3, 'each old process says so';
	ok !Test::Server::is_gone($first), 'the first process carries its connections';
	for my $c ($idle, $silent) {
		$c->send(req('/a'));
		my $r = $c->reply;
		is "$r->{body} $r->{header}{connection}", 'A close', 'its idle connections get one more reply';
		ok $c->closed, '... and are closed';
	}
	is length $download->take(8 << 20), 8 << 20, 'its download ends whole';
	$download->abort;
	is waitpid($first, 0), $first, 'then it ends';
	is $?, 0, '... with status 0';
	my $pid = $srv->pid;
	is $srv->log('pid'), "$pid\n", 'the pid file is that of the newest';
	is status($pid, 'Seccomp'), 2, 'which is confined';
	is status($pid, 'Uid'), join("\t", ($www) x 4), '... and is server.username' if $www;
	my ($status) = $srv->term;
	is $status, 0, 'it stops';
	ok !-e $srv->run . '/pid', '... and its pid file is gone';
};

# Makes the next start wait at a fifo that include_shell reads. Returns a function that lets it go on.
sub holding ($srv) {
	my $fifo = $srv->run . '/fifo';
	POSIX::mkfifo($fifo, 0600) or die "$fifo: $!" unless -p $fifo;
	change($srv, qr/\z/, qq{include_shell "echo >>} . $srv->run . qq{/held; cat $fifo"\n});
	return sub { open my $fh, '>', $fifo or die "$fifo: $!"; close $fh };
}

sub lines ($srv, $name) { return scalar(() = $srv->log($name) =~ /\n/g) }

sub children_named ($srv) { my $run = $srv->run; return grep { slurp("/proc/$_/cmdline") =~ m{accel-server\0.*\Q$run\E} } map { m{(\d+)} } glob '/proc/[0-9]*' }

subtest 'a new server that fails leaves the old one serving' => sub {
	my $link = File::Temp->newdir('accel-bin-XXXXXX', TMPDIR => 1);
	symlink program('accel-server'), "$link/program" or die $!;
	# accel-server by a link, which a package manager replaces
	my $srv = server(program => "$link/program");
	my $pid = $srv->pid;
	my $fails = sub ($what, $cause) {
		my $seen = length $srv->log('error.log');
		$srv->signal('USR2');
		my $log = '';
		ok eventually(sub { $log = substr $srv->log('error.log'), $seen; $log =~ /ev=upgrade\.undone/ }), $what;
		like join("\n", grep { /ev=upgrade\.failed/ } split /\n/, $log), $cause, '... the log names the cause';
		is $srv->fetch('/a')->{body}, 'A', '... and the old one serves';
		is $srv->log('pid'), "$pid\n", '... with its pid file';
	};
	my $point = sub ($to) { unlink "$link/program"; symlink $to, "$link/program" or die $! };
	my $keep = slurp($srv->run . '/server.conf');
	change($srv, qr/\z/, "server.max-workers = 1\n");
	$fails->('a setting that does not exist', qr{server\.conf:\d+:\d+: .*server\.max-workers});
	put($srv->run . '/server.conf', $keep =~ s/document-root = "\K[^"]*/\/nonexistent/r);
	$fails->('a document root that does not exist', qr{/nonexistent.*No such file});
	put($srv->run . '/server.conf', $keep);
	$point->("$link/none");
	$fails->('a program that is missing', qr{\Q$link\E/program: No such file});
	$point->('/bin/false');
	$fails->('a program that ends at once', qr{ended with status 1 and said nothing});
	put("$link/crash", "#!/bin/sh\nkill -SEGV \$\$\n");
	chmod 0755, "$link/crash";
	$point->("$link/crash");
	$fails->('a program that crashes', qr{ended by signal 11});
	# A new server whose parent was killed starts nevertheless, and finds that nobody waits.
	my $real = Cwd::abs_path(program('accel-server'));
	put("$link/orphan", qq{#!/bin/sh\nkill -KILL \$PPID\nexec $real "\$@"\n});
	chmod 0755, "$link/orphan";
	$point->("$link/orphan");
	$fails->('a supervisor that is killed', qr{the helper});
	ok $srv->wait_log(qr/ev=start\.abandoned/), '... the new server gives up';
	ok eventually(sub { 1 == grep { slurp("/proc/$_/comm") eq "accel-server\n" } children_named($srv) }), '... and ends';
	is $srv->log('pid'), "$pid\n", '... without the pid file';
	is $srv->fetch('/a')->{body}, 'A', '... and the old one serves';
	$point->(program('accel-server'));
	ok $srv->upgrade, 'a good one takes over';
	is readlink('/proc/' . $srv->pid . '/exe'), Cwd::abs_path(program('accel-server')), '... by the link';
};

subtest 'requests during an upgrade' => sub {
	my $srv = server();
	my $release = holding($srv);
	my $pid = $srv->pid;
	$srv->signal('USR2');
	ok eventually(sub { lines($srv, 'held') == 1 }), 'a new server starts, and waits';
	$srv->signal('USR2');
	like $srv->wait_log(qr/ev=upgrade\.refused/), qr/ev=upgrade\.refused why="an upgrade is running"/, 'a second upgrade is refused';
	$srv->signal('USR1');
	is $srv->fetch('/a')->{body}, 'A', 'the old one serves meanwhile';
	$release->();
	like $srv->wait_log(qr/ev=reload\.dropped/), qr/ev=reload\.dropped .*send USR1 to the new process/, 'a reload is dropped, which is logged';
	ok eventually(sub { $srv->log('pid') ne "$pid\n" }), 'the new one takes over';
	is $srv->wait_exit, 0, '... and the old one ends';
	my ($new) = $srv->log('pid') =~ /(\d+)/;
	delete $srv->{status};
	$srv->upgraded_to($new);
	is $srv->fetch('/a')->{body}, 'A', 'it serves';

	change($srv, qr/$/, "\n");
	$srv->signal('USR2');
	ok eventually(sub { lines($srv, 'held') == 2 }), 'the next one starts';
	my ($status) = $srv->term;
	is $status, 0, 'TERM during an upgrade ends the old one';
	ok eventually(sub { !children_named($srv) }), '... and the new one' or diag join ' ', children_named($srv);
	ok eventually(sub { !-e $srv->run . '/pid' }), '... and the pid file';
};

# Whenever it comes: after "upgraded" the new process is the server, and the old one ends alone.
subtest 'a signal in each phase of an upgrade' => sub {
	for my $ms (1, 3, 6, 10, 15, 20, 25, 30, 40, 50) {
		my $sig = $ms % 2 ? 'TERM' : 'INT';
		my $srv = server();
		my $old = $srv->pid;
		$srv->signal('USR2');
		select undef, undef, undef, $ms / 1000;
		$srv->signal($sig);
		is $srv->wait_exit, 0, "$sig after $ms ms: the old process ends";
		my $log = $srv->log;
		# A signal that finds the old one at its end has no line of its own.
		if ($log =~ /ev=upgraded pid=(\d+)/ && $log !~ /ev=stopping by=$sig.*ev=upgraded/s) {
			is $srv->log('pid'), "$1\n", '... after the upgrade: the new one has the pid file';
			kill 'TERM', $1;
		}
		ok eventually(sub { !children_named($srv) }), '... and no process stays' or diag $log;
		ok eventually(sub { !-e $srv->run . '/pid' }), '... and no pid file';    # the guardian removes it last
	}
};

subtest 'the next configuration has other addresses' => sub {
	my $srv = server(env => { LISTEN_PID => 1 }, conf => qq{server.bind = "\@RUN\@/one.sock"\n\$SERVER["socket"] == "\@RUN\@/two.sock" { }\n});
	my $answers = sub ($name) {
		my $c = IO::Socket::UNIX->new(Peer => $srv->run . "/$name.sock") or return 0;
		print {$c} "GET /a HTTP/1.0\r\n\r\n";
		return (<$c> // '') =~ / 200 /;
	};
	ok $answers->($_), "$_ is served" for qw(one two);
	my $inode = (stat $srv->run . '/one.sock')[1];
	my $busy = IO::Socket::UNIX->new(Peer => $srv->run . '/two.sock') or die $!;
	print {$busy} "GET /big HTTP/1.0\r\n\r\n";
	like scalar <$busy>, qr/ 200 /, 'a download from the second has begun';
	change($srv, 'two\.sock', 'three.sock');
	my $old = $srv->upgrade;
	ok $old, 'upgraded';
	ok $answers->($_), "$_ is served" for qw(one three);
	is +(stat $srv->run . '/one.sock')[1], $inode, 'the first is the same socket';
	ok eventually(sub { !$answers->('two') }), 'the second, which was dropped, refuses';
	ok !Test::Server::is_gone($old), '... while the old server lives';
	my $got = do { local $/; <$busy> };
	is length($got =~ s/\A.*?\r\n\r\n//sr), 8 << 20, 'the download ends whole';
	is waitpid($old, 0), $old, 'then the old server ends';
};

subtest 'an application of bin-path goes on' => sub {
	my $app = Test::Util::temp_tree();
	put("$app/app.pl", <<'APP');
use Socket;
open my $log, '>>', "$ARGV[0]/started"; print $log "$$\n"; close $log;
while (accept my $c, *STDIN) { }
APP
	my $line = qq{fastcgi.server = ( "/app" => (( "socket" => "$app/sock", "bin-path" => "$^X $app/app.pl $app", "check-local" => "disable" )) )\n};
	my $started = sub { return split ' ', slurp("$app/started") };
	chmod 0777, $app;
	my $srv = server(conf => $line);
	ok eventually(sub { $started->() == 1 }), 'it runs';
	my ($pid) = $started->();
	ok $srv->upgrade, 'upgraded';
	ok $srv->upgrade, 'upgraded again';
	is scalar($started->()), 1, 'it was not started again';
	ok kill(0, $pid), '... and runs';
	change($srv, qr/app\.pl \Q$app\E/, "app.pl $app x");
	ok $srv->upgrade, 'upgraded, with another command';
	ok eventually(sub { $started->() == 2 }), 'which is started';
	ok eventually(sub { Test::Server::is_gone($pid) }), '... in place of the first';
	my ($next) = reverse $started->();
	my ($status) = $srv->term;
	ok eventually(sub { Test::Server::is_gone($next) }), 'it ends with the server';
	ok !-e "$app/sock", '... and its socket file is gone';
};

subtest 'the service manager hears of the new process' => sub {
	my $dir = Test::Util::temp_tree();
	my $manager = IO::Socket::UNIX->new(Local => "$dir/notify", Type => Socket::SOCK_DGRAM()) or die $!;
	chmod 0777, "$dir/notify";
	my $srv = server(env => { NOTIFY_SOCKET => "$dir/notify" });
	my $old = $srv->pid;
	ok $srv->upgrade, 'upgraded';
	is waitpid($old, 0), $old, 'the old one has ended';
	$manager->blocking(0);
	my @said;
	while (defined recv $manager, my $said, 4096, 0) { push @said, $said }
	is scalar(grep { /^MAINPID=${\$srv->pid}$/m } @said), 1, 'it has said the number of the new one';
	is scalar(grep { /^STOPPING=1/ } @said), 0, '... and not that it stops';
};

subtest 'INT and TERM of a retired server' => sub {
	my $srv = server();
	my $idle = $srv->connect;
	$idle->send(req('/a'));
	is $idle->reply->{body}, 'A', 'a connection is kept';
	my $old = $srv->upgrade;
	ok !Test::Server::is_gone($old), 'the old server keeps it';
	kill 'INT', $old;
	ok $idle->closed, 'INT closes it';
	is waitpid($old, 0), $old, '... and the old server ends';
	is $?, 0, '... with status 0';
	ok -e $srv->run . '/pid', 'the pid file stays';
	is $srv->fetch('/a')->{body}, 'A', 'the new one serves';
};

done_testing;
