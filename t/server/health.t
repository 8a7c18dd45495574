# status.health-url, accel-server ctl drain and undrain, server.drain-delay: health checks fail first, then a time passes, then it stops.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use POSIX ();
use Test::Http qw(req);
use Test::Manager;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program);
use Time::HiRes qw(time);

my $long = 600; # no test waits for it

sub server ($conf = '', %arg) {
	my $srv = Test::Server->start(%arg, conf => <<"CONF" . $conf);
server.pid-file = "\@RUN\@/pid"
server.max-worker = 1
status.health-url = "/health"
CONF
	$srv->write('a', 'A');
	$srv->wait_log(qr/ev=listening/);
	return $srv;
}

sub ctl ($srv, @words) {
	my ($rc, $out, $err) = Test::Util::run_fed(program('accel-server'), '', 'ctl', @words, '--socket=' . $srv->run . '/pid.ctl');
	return ($rc, $out . $err);
}

# A command that waits: ends with "STATUS WORDS" in the file that is returned.
sub ctl_behind ($srv, @words) {
	my $file = $srv->run . "/said-@words" =~ tr/ /_/r;
	my $pid = fork // die $!;
	if (!$pid) {
		my ($rc, $said) = ctl($srv, @words);
		Test::Util::put("$file.new", "$rc $said");
		rename "$file.new", $file;
		POSIX::_exit(0);
	}
	return ($pid, $file);
}

sub said ($pid, $file) { waitpid $pid, 0; return Test::Util::slurp($file) }
sub health ($srv) { my $r = $srv->fetch('/health'); return "$r->{status} $r->{body}" }
sub drains ($srv) { return eventually(sub { $srv->log =~ /ev=drain\.started/ }) }

subtest 'drain and undrain' => sub {
	my $manager = Test::Manager->new;
	my $srv = server('', env => { $manager->env });
	is health($srv), "200 ok\n", 'health: 200';
	is $srv->fetch('/health', Host => 'x')->{header}{'cache-control'}, 'no-store', '... and nobody keeps it';
	is +(ctl($srv, 'undrain'))[0], 75, 'nothing is to undo';
	my $c = $srv->connect;
	$c->send(req('/a'));
	ok !defined $c->reply->{header}{connection}, 'a connection is kept';
	my @drain = ctl_behind($srv, 'drain', "--delay=$long");
	ok drains($srv), 'ctl drain';
	is health($srv), "503 draining\n", 'health: 503';
	is $srv->fetch('/a')->{body}, 'A', '... but requests are served';
	$c->send(req('/a'));
	my $r = $c->reply;
	is "$r->{body} $r->{header}{connection}", 'A close', 'the kept connection ends with its next reply';
	like +(ctl($srv, 'status'))[1], qr/^state +draining: health checks fail.*^stops_in_s +(?:599|600)$/ms, 'ctl status has the time that is left';
	like $manager->wait(qr/draining/), qr/STATUS=draining, stops soon/, '... and the service manager has it';
	my ($rc, $why) = ctl($srv, 'drain');
	is "$rc $why", "75 it drains; ctl undrain ends that\naccel-server ctl: not done; the server goes on as it is\n", 'a second drain is refused';
	like +(ctl($srv, 'upgrade'))[1], qr/the server drains: accel-server ctl undrain/, '... and so is an upgrade';
	is +(ctl($srv, 'reload'))[0], 0, 'a reload is taken';
	is health($srv), "503 draining\n", '... and it still drains';
	is_deeply [ctl($srv, 'undrain')], [0, "serving\n"], 'ctl undrain';
	is health($srv), "200 ok\n", 'health: 200 again';
	like said(@drain), qr/^75 ctl undrain has ended it\n/, 'ctl drain ends with status 75, and says why';
	unlike $srv->log, qr/ev=reply\.failed/, 'a check that fails is not a failed reply';
	like $srv->wait_log(qr{ev=drain\.undone}), qr/ev=drain\.started by="ctl drain" seconds=$long .*ev=drain\.undone/s, 'the log has both';
};

subtest 'it stops after the time' => sub {
	my $srv = server();
	$srv->sparse('big', 8 << 20);
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send(req('/big'));
	$c->up_to("\r\n\r\n", time + Test::Util::PATIENCE);
	my $begun = time;
	my @drain = ctl_behind($srv, 'drain', '--delay=1');
	like $srv->wait_log(qr/ev=stopping/), qr/ev=drain\.started.*ev=stopping by="ctl drain" how="after/s, 'it stops after the running replies';
	cmp_ok time - $begun, '>=', 1, '... after the time';
	is length $c->rest, 8 << 20, 'the running reply ends whole';
	is said(@drain), "0 stopped\n", '... then ctl drain ends, too';
	is $srv->wait_exit, 0, '... with the process';
};

subtest 'server.drain-delay before a stop' => sub {
	my $srv = server("server.drain-delay = $long\n");
	$srv->signal('INT');
	ok drains($srv), 'INT: health checks fail first';
	is health($srv), "503 draining\n", '... with 503';
	is +(ctl($srv, 'undrain'))[0], 0, 'it can be undone';
	my @quit = ctl_behind($srv, 'quit');
	ok eventually(sub { 2 == (() = $srv->log =~ /ev=drain\.started/g) }), 'ctl quit: the same';
	is $srv->fetch('/a')->{body}, 'A', '... requests are served';
	$srv->signal('INT');
	like $srv->wait_log(qr/ev=stopping/), qr/ev=stopping by=INT how="after the running replies"/, 'a second INT skips the time';
	is said(@quit), "0 stopped\n", '... and ctl quit ends with the process';
	is $srv->wait_exit, 0, '... that has status 0';

	$srv = server("server.drain-delay = $long\n");
	my @drain = ctl_behind($srv, 'drain');
	like $srv->wait_log(qr/drain\.started/), qr/drain\.started by="ctl drain" seconds=$long/, 'ctl drain has its time from there';
	is +($srv->term)[0], 0, 'TERM stops at once';
	is said(@drain), "0 stopped\n", '... which ctl drain sees';
};

done_testing;
