# A binary upgrade (USR2): the program file is executed anew and takes over.  No connection is refused, reset or cut.  A new
# server that fails leaves the old one serving.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::UNIX ();
use POSIX ();
use Test::Http qw(req);
use Test::Load;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp);

my $www = $> == 0 && getpwnam('www-data');

sub server (%arg) {
	my $conf = qq{server.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\n} . ($www ? qq{server.username = "www-data"\n} : '');
	my $dir = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
	chmod 0755, $dir;
	my $srv = Test::Server->start(%arg, dir => $dir, conf => $conf . ($arg{conf} // ''));
	chmod 0755, $srv->run;
	open my $fh, '>', $srv->path('big') or die $!;
	truncate $fh, 8 << 20 or die $!;
	close $fh;
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
	for my $n (1 .. 3) {
		my $old = $srv->upgrade;
		ok $old, "upgrade $n: another process has the pid file";
	}
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

done_testing;
