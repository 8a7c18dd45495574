# Logs in the system's log: one datagram for each line, with facility and severity, and no request waits for the daemon.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Select;
use IO::Socket::UNIX;
use Socket qw(SOCK_DGRAM);
use Test::More;
use Test::Server;
use Test::Util qw(eventually PATIENCE);

my $dir = File::Temp->newdir;

sub daemon_at { return IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $_[0]) || die "$_[0]: $!" }

# The next datagram that matches, or undef.
sub next_line {
	my ($d, $re, $seconds) = @_;
	my $end = time + ($seconds // PATIENCE);
	while (time <= $end) {
		next if !IO::Select->new($d)->can_read(0.2);
		$d->recv(my $line, 65536);
		return $line if $line =~ $re;
	}
	return undef;
}

my $d = daemon_at("$dir/log");
my $srv = Test::Server->start(conf => qq{
	server.syslog-socket = "$dir/log"
	server.syslog-facility = "local3"
	server.errorlog-use-syslog = "enable"
	accesslog.use-syslog = "enable"
	accesslog.format = "%m %U %s"
	\$HTTP["url"] =~ "^/nnn" { accesslog.format = "%U %U %U" }
	\$HTTP["url"] == "/notice" { accesslog.syslog-level = 5 }
});
$srv->write('a.txt', 'x');
# facility 19 << 3 | severity
like next_line($d, qr/listening/), qr/\A<158>accel-server\[\d+\]: ts=\S+ level=info ev=listening /, 'the error log: severity of the level';
$srv->get('/a.txt');
like next_line($d, qr/a\.txt/), qr{\A<158>accel-server\[\d+\]: GET /a\.txt 200\z}, 'the access log, information by default';
$srv->get('/notice');
like next_line($d, qr/notice/), qr{\A<157>accel-server\[\d+\]: GET /notice 404\z}, 'accesslog.syslog-level';
$srv->get('/' . 'n' x 4000);
my $long = next_line($d, qr/nnn/);
ok defined $long && length $long > 8000 && length $long < 8300, 'a long line is cut';

subtest 'a daemon that is started again' => sub {
	$d->close;
	unlink "$dir/log";
	is $srv->fetch('/a.txt')->{status}, 200, 'requests go on without it';
	$d = daemon_at("$dir/log");
	ok eventually(sub { $srv->get('/back'); next_line($d, qr/back/, 0) }), 'it gets lines again';
};

subtest 'a daemon that does not read' => sub {
	my $c = $srv->connect;
	for my $round (1 .. 50) {
		$c->send("GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n" x 20);
		$c->reply for 1 .. 20;
	}
	pass 'holds no request';
	my $n = 0;
	$n++ while $n < 1000 && next_line($d, qr{GET /a\.txt 200}, 20);
	is $n, 1000, 'its lines wait';
};
$srv->term;

subtest 'no daemon' => sub {
	my $s = Test::Server->start(conf => qq{server.syslog-socket = "$dir/none"\naccesslog.use-syslog = "enable"\n}, dir => $srv->dir);
	is $s->fetch('/a.txt')->{status}, 200, 'the server starts and answers';
};

done_testing;
