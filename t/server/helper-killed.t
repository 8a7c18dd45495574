# The helper process is killed, as by the OOM killer: the next one comes by itself and has what the first one had.  Requests that it
# had fail, and nothing hangs.  Its guardian ends with the server.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
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
	like $srv->log, qr/level=error ev=helper\.lost by=signal status=9 lost=1 again_in_ms=0 /, 'the log tells how it ended';
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

done_testing;
