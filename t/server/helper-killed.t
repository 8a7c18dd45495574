# The helper process is killed, as by the OOM killer: the next one comes by itself and has what the first one had.  Requests that it
# had fail, and nothing hangs.  Its guardian ends with the server; one that is killed has a successor.  Without both, the server ends
# where a service manager starts it again.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::Manager;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp);

my $program = program('accel-server');

sub server ($conf = '', %arg) {
	my $srv = Test::Server->start(%arg, conf => <<"CONF" . $conf);
server.pid-file = "\@RUN\@/pid"
server.max-worker = 1
accesslog.filename = "\@RUN\@/access.log"
status.status-url = "/status"
status.metrics-url = "/metrics"
cgi.assign = ( ".sh" => "/bin/sh" )
CONF
	$srv->write('a', 'A');
	$srv->write('hello.sh', 'printf "Content-Type: text/plain\r\n\r\nhello"');
	$srv->wait_log(qr/ev=listening/);
	return $srv;
}

sub ctl ($srv, @words) {
	my ($rc, $out, $err) = Test::Util::run_fed($program, '', 'ctl', @words, '--socket=' . $srv->run . '/pid.ctl');
	return ($rc, $out . $err);
}

sub state_of ($srv) { return JSON::PP::decode_json((ctl($srv, 'status', '--json'))[1]) }
sub lines ($srv, $what) { return scalar(() = $srv->log =~ /ev=\Q$what\E /g) }
sub conf ($srv) { return slurp($srv->run . '/server.conf') }
sub change ($srv, $text) { put($srv->run . '/server.conf', $text); return }

# Kills the helper; true when the server knows of the next one.
sub kill_helper ($srv) {
	my $n = lines($srv, 'helper.back');
	my $pid = $srv->helper or return 0;
	kill KILL => $pid;
	return eventually(sub { lines($srv, 'helper.back') > $n && ($srv->helper // $pid) != $pid });
}

subtest 'it comes back, and all works again' => sub {
	my $srv = server();
	my $before = state_of($srv);
	is "$before->{helper} $before->{helpers_lost}", 'runs 0', 'ctl status: it runs';
	my $guardian = $srv->process('accel-guardian');
	ok kill_helper($srv), 'another one comes';
	my $now = state_of($srv);
	is "$now->{helper} $now->{helpers_lost}", 'runs 1', 'ctl status tells the count';
	cmp_ok $now->{helper_since}, 'ge', $before->{helper_since}, '... and since when it runs';
	$srv->log_has(qr/level=error ev=helper\.lost by=signal status=9 lost=1 again_in_ms=0 /, 'the log tells how it ended');
	is $srv->process('accel-guardian'), $guardian, 'the guardian is the same';
	my $page = $srv->fetch('/status?json')->{body};
	is_deeply [@{ JSON::PP::decode_json($page)->{helper} }{qw(up lost)}], [1, 1], 'the JSON page has it';
	like $srv->fetch('/metrics')->{body}, qr/^accel_helper_up 1\n(?s:.*)^accel_helpers_lost_total 1$/m, '... and that of Prometheus';
	like $srv->fetch('/status')->{body}, qr/<p id="helper">helper process: runs again since [-\d]+ [\d:]+ UTC, died 1 times/, '... and that for people';

	is $srv->fetch('/hello.sh')->{body}, 'hello', 'a CGI program runs';
	rename $srv->run . '/access.log', $srv->run . '/access.1' or die $!;
	$srv->signal('HUP');
	ok eventually(sub { -e $srv->run . '/access.log' }), 'HUP makes a new log';
	change($srv, conf($srv) . qq{server.tag = "two"\n});
	is_deeply [ctl($srv, 'reload')], [0, "reloaded\n"], 'a reload is taken';
	ok eventually(sub { ($srv->fetch('/a')->{header}{server} // '') eq 'two' }), '... and is in force';
	ok $srv->upgrade, 'an upgrade is done';
	is $srv->fetch('/a')->{body}, 'A', '... and the new server serves';
	ok eventually(sub { Test::Server::is_gone($guardian) }), '... and the guardian of the old one ends with it';
};

subtest 'no allowed name is lost, and none is won' => sub {
	my $srv = server();
	$srv->fetch('/a');
	change($srv, "server.nonsense = 1\n");
	ok kill_helper($srv), 'the helper is killed, while the file is broken';
	rename $srv->run . '/access.log', $srv->run . '/access.1' or die $!;
	$srv->signal('HUP');
	ok eventually(sub { -e $srv->run . '/access.log' }), 'the log of the running configuration is opened again';
	is $srv->fetch('/hello.sh')->{body}, 'hello', '... and its programs run';
	my ($rc) = ctl($srv, 'reload');
	is $rc, 78, 'the broken file is refused';
	$srv->signal('KILL');
	$srv->wait_exit;
	ok eventually(sub { !-e $srv->run . '/pid' }), 'a killed server loses its pid file, as with the first helper';
	$srv->{unchecked} = 1;
};

subtest 'what it was doing fails, and nothing hangs' => sub {
	my $srv = server();
	my $good = conf($srv);
	my $mark = $srv->run . '/mark';
	change($srv, qq{${good}include_shell "echo \$\$ >$mark; exec sleep 1000"\n});
	$srv->signal('USR1');
	ok eventually(sub { -s $mark }), 'it reads the configuration, and a command hangs';
	my ($command) = slurp($mark) =~ /(\d+)/;
	$srv->write('hangs.sh', qq{echo \$\$ >pid; exec sleep 1000\n});
	my $c = $srv->connect;
	$c->send("GET /hangs.sh HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { -s $srv->path('pid') }), 'a program runs, too';
	my ($sleeper) = slurp($srv->path('pid')) =~ /(\d+)/;
	ok kill_helper($srv), 'the helper is killed';
	is $c->reply->{status}, 502, 'the client of the program gets 502';
	ok eventually(sub { !kill 0, $sleeper }), '... and the program ends';
	like $srv->wait_log(qr/reload\.refused/), qr/reload\.refused .*the helper process has died.*reload again/, 'the reload is refused, with the reason';
	kill KILL => $command;
	change($srv, $good);
	is((ctl($srv, 'reload'))[0], 0, 'the next one is taken');
};

subtest 'one that dies again and again comes after a pause' => sub {
	my $srv = server();
	ok kill_helper($srv), 'the first one is killed' ;
	my $pid = $srv->helper;
	kill KILL => $pid;
	ok eventually(sub { state_of($srv)->{helper} =~ /^lost/ }), '... and the second: ctl status tells that there is none';
	is $srv->fetch('/status?json')->{body} =~ /"helper":\{"up":(\d),"lost":(\d)/ && "$1 $2", '0 2', '... and so does the status page';
	like $srv->fetch('/status')->{body}, qr/helper process: <b>lost<\/b> since/, '... and that for people';
	like +(ctl($srv, 'reload'))[1], qr/the helper process has died.*reload again/, 'a reload fails at once';
	is $srv->fetch('/a')->{body}, 'A', 'files are served';
	like $srv->fetch('/hello.sh')->{status}, qr/^50[234]$/, 'a CGI program gets an error';
	rename $srv->run . '/access.log', $srv->run . '/access.1' or die $!;
	$srv->signal('HUP');
	like $srv->wait_log(qr/accesslog\.reopen/), qr/accesslog\.reopen .*the helper process has died/, 'HUP keeps the old log';
	ok eventually(sub { $srv->helper }), 'the next helper comes';
	ok eventually(sub { -e $srv->run . '/access.log' }), '... and the log is opened';
	is state_of($srv)->{helper}, 'runs', '... and ctl status tells it';
	is((ctl($srv, 'reload'))[0], 0, 'a reload is taken');
	ok eventually(sub { $srv->fetch('/hello.sh')->{body} eq 'hello' }), 'and programs run';
};

subtest 'the guardian does not outlive the server' => sub {
	my $srv = server('', unchecked => 1);
	my $guardian = $srv->process('accel-guardian');
	ok kill_helper($srv), 'in a pause';
	kill KILL => $srv->helper;
	ok eventually(sub { lines($srv, 'helper.lost') == 2 }), '... of which the server knows';
	$srv->term('KILL');
	ok eventually(sub { Test::Server::is_gone($guardian) }), 'it ends with a killed server';
	ok !-e $srv->run . '/pid', '... and has removed its pid file';

	$srv = server();
	$guardian = $srv->process('accel-guardian');
	my $helper = $srv->helper;
	kill $_ => $guardian, $helper for qw(TERM INT QUIT HUP USR1 USR2);
	is $srv->fetch('/hello.sh')->{body}, 'hello', 'signals for the server do not end it';
	my ($status) = $srv->term;
	is $status, 0, 'TERM ends the server';
	ok eventually(sub { Test::Server::is_gone($guardian) && Test::Server::is_gone($helper) }), '... and guardian and helper with it';
};

sub kill_guardian ($srv) {
	my $n = lines($srv, 'guardian.lost');
	my $pid = $srv->process('accel-guardian') or return 0;
	kill KILL => $pid;
	return eventually(sub { lines($srv, 'guardian.lost') > $n && ($srv->process('accel-guardian') // $pid) != $pid });
}

subtest 'a guardian that is killed has a successor, and nothing fails' => sub {
	my $srv = server();
	$srv->write('waits.sh', '>runs; while [ ! -e go ]; do sleep 0.05; done; printf "Content-Type: text/plain\r\n\r\nwaited"');
	my $c = $srv->connect;
	$c->send("GET /waits.sh HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { -e $srv->path('runs') }), 'a program runs';
	ok kill_guardian($srv), "the guardian is killed: round $_" for 1 .. 3;
	my $state = state_of($srv);
	is "$state->{helper} $state->{helpers_lost}", 'runs 3', 'ctl status counts them, and the helper runs';
	$srv->log_has(qr/level=error ev=guardian\.lost lost=3 then=/, '... and the log tells it');
	like $srv->fetch('/metrics')->{body}, qr/^accel_helpers_lost_total 3$/m, '... and the metric of the alert AccelHelperLost';
	is lines($srv, 'helper.lost'), 0, 'no helper was lost';
	$srv->write('go', '');
	is $c->reply->{body}, 'waited', 'the program that ran goes on to its end';
	is $srv->fetch('/hello.sh')->{body}, 'hello', 'others run';
	is((ctl($srv, 'reload'))[0], 0, 'a reload is taken');
	ok kill_helper($srv), 'the next guardian forks a helper that is killed';
	rename $srv->run . '/access.log', $srv->run . '/access.1' or die $!;
	$srv->signal('HUP');
	ok eventually(sub { -e $srv->run . '/access.log' }), '... and that one makes a new log';
	my $guardian = $srv->process('accel-guardian');
	$srv->term;
	ok eventually(sub { Test::Server::is_gone($guardian) && !-e $srv->run . '/pid' }), 'it ends with the server, and removes the pid file';
};

subtest 'a guardian is killed while a configuration is read' => sub {
	my $srv = server();
	my $mark = $srv->run . '/mark';
	my $second = $srv->run . '/second.log';
	change($srv, conf($srv) =~ s/access\.log/second.log/r . qq{include_shell "echo >$mark; while [ -e $mark ]; do sleep 0.05; done"\n});
	$srv->signal('USR1');
	ok eventually(sub { -e $mark }), 'it reads the configuration';
	kill KILL => $srv->process('accel-guardian');
	unlink $mark;
	$srv->log_has(qr/ev=reloaded/, 'the reload is done');
	ok eventually(sub { lines($srv, 'guardian.lost') == 1 && $srv->process('accel-guardian') }), '... then the next guardian comes';
	ok kill_helper($srv), 'its helper is killed';
	rename $second, "$second.1" or die $!;
	$srv->signal('HUP');
	ok eventually(sub { -e $second }), '... and the next one knows the names that were read';
};

subtest 'a helper is killed while a log is opened' => sub {
	my $srv = server();
	my $helper = $srv->helper;
	kill STOP => $helper;
	rename $srv->run . '/access.log', $srv->run . '/access.1' or die $!;
	$srv->signal('HUP');
	is((ctl($srv, 'status'))[0], 0, 'the server has taken HUP');
	kill KILL => $helper;
	ok eventually(sub { -e $srv->run . '/access.log' }), 'the next helper opens it';
	$srv->fetch('/a?later');
	like $srv->wait_log(qr/later/, 'access.log'), qr/later/, '... and it is written to';
};

subtest 'without helper and guardian, the service manager starts it again' => sub {
	my $manager = Test::Manager->new;
	my $srv = server('', env => { $manager->env }, unchecked => 1);
	$srv->sparse('big', 8 << 20);
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send("GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	$c->up_to("\r\n\r\n", time + Test::Util::PATIENCE);
	$srv->kill_helper_and_guardian;
	ok $manager->wait(qr/^STOPPING=1$/m), 'it stops by itself';
	like $srv->wait_log(qr/helper\.ended/), qr/level=error ev=helper\.ended then="this process ends, so that the service manager starts it again"/, '... and the log says why';
	is length $c->rest, 8 << 20, 'a running reply goes on to its end';
	is $srv->wait_exit, 71 << 8, 'the exit status lets systemd start it again';
	like slurp("$FindBin::Bin/../../examples/systemd/accel-server.service"), qr/^Restart=on-failure$(?!.*^RestartPreventExitStatus=[^\n]*\b71\b)/ms, '... as the unit has it';
};

done_testing;
