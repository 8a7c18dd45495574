# Nobody is left in the dark: each error that a client sees because of a disk, a link, an application or a limit has a line that
# names path, device by its mount point, stage and reason.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use IO::Socket::INET;
use IO::Socket::UNIX;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(eventually put);

my ($fuse, $no_fuse) = Accel::Slowfs->usable;
plan skip_all => $no_fuse unless $fuse;

my $root = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
my $source = File::Temp->newdir('accel-src-XXXXXX', TMPDIR => 1);
mkdir "$root/$_" or die $! for qw(disk plain dir);
put("$root/plain/a", 'A');
put("$source/file$_", 'x' x 1000) for 1 .. 40;
put("$source/large", 'x' x (8 << 20));
symlink '/etc/passwd', "$root/plain/outside" or die $!;
my $disk = Accel::Slowfs->start(source => "$source", at => "$root/disk", spindles => 8);
my $mount = $disk->dir;

# Applications: one says nothing and closes, one asks for what it may not, nobody listens at the third.
my $rude = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50) or die $!;
my $bold = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50) or die $!;
my $gone = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die $!;
my %port = (rude => $rude->sockport, bold => $bold->sockport, gone => $gone->sockport);
close $gone;
my $app = fork // die $!;
if (!$app) {
	while (1) {
		my $in = '';
		vec($in, fileno($_), 1) = 1 for $rude, $bold;
		select $in, undef, undef, undef;
		if (vec $in, fileno($rude), 1) { my $c = $rude->accept; sysread $c, my $head, 4096 if $c }
		next if !vec $in, fileno($bold), 1;
		my $c = $bold->accept or next;
		sysread $c, my $head, 4096;
		my $field = $head =~ m{^GET /fetch} ? 'X-Reproxy-URL: http://127.0.0.1/' : $head =~ m{^GET /file} ? "X-Sendfile: $root/disk/file9" : 'X-Sendfile2: /etc/passwd 0-';
		syswrite $c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n$field\r\n\r\n";
	}
}
END { kill 'KILL', $app if $app }

my $proxy = join '', map { qq(\$HTTP["host"] == "$_" { proxy-core.backends = ( "127.0.0.1:$port{$_}" ) proxy-core.protocol = "http" proxy-core.allow-x-sendfile = "@{[ $_ eq 'bold' ? 'enable' : 'disable' ]}" proxy-core.x-sendfile-docroot = ( "$root/disk" ) }\n) } sort keys %port;
my $srv = Test::Server->start(dir => "$root", conf => <<"CONF");
server.max-worker = 1
server.max-open-idle = 1
server.max-write-idle = 2
server.max-stat-threads = 1
dir-listing.activate = "disable"
server.max-request-size = 1
status.statistics-url = "/statistics"
$proxy
CONF

sub status ($path, %opt) {
	my $c = $srv->connect;
	$c->send($opt{bytes} // ("GET $path HTTP/1.1\r\nHost: " . ($opt{host} // 'x') . "\r\n\r\n"));
	return ($c->reply // { status => 0 })->{status};
}

# Each row: what happens, the status, how it is asked for, and what its line has.
sub check {
	my ($what, $want, $ask, @line) = @_;
	is $ask->(), $want, "$what: $want";
	for my $re (@line) { ok scalar $srv->wait_lines(1, $re), "... explained: $re" or diag $srv->log }
	return;
}

subtest 'disks' => sub {
	is status('/disk/file1'), 200, 'a file while all is well';
	my $c = $srv->connect(rcvbuf => 65536);
	$disk->hang_after(4 << 20, '/large');
	$c->send(req('/disk/large'));
	check('a disk that gives no more bytes', '', sub { $c->rest; '' },
		qr{level=warn ev=file\.stalled id=\S+ path=/disk/large file=disk/large device=\Q$mount\E stage=read waited-ms=\d+ sent=\d+ .*then="connection cut"});
	unlike $srv->log, qr/ev=client\.stalled/, 'the client is not blamed';
	$disk->go;
	$disk->hang;
	check('a look-up that hangs', 503, sub { status('/disk/file2') },
		qr{level=warn ev=reply\.failed id=\S+ status=503 path=/disk/file2 file=disk/file2 device=\Q$mount\E stage=\S+ waited-ms=[1-9]\d{2,} error=\S.* why="the device did not answer});
	check('the next one', 503, sub { status('/disk/file3') }, qr{ev=reply\.failed .* path=/disk/file3 file=disk/file3 device=\Q$mount\E stage=});
	my @c = map { my $conn = $srv->connect; $conn->send(req("/disk/file$_")); $conn } 4 .. 9;
	is(($_->reply // { status => 0 })->{status}, 503, 'one of many') for @c;
	for my $n (10 .. 15) { last if status("/disk/file$n") && $srv->log =~ /why="the device hangs/ }
	$srv->log_has(qr/ device=\Q$mount\E stage=look-up waited-ms=\d+ .* why="the device hangs/, 'a device that hangs: refused at once, and the line says so');
	check('a file that an application names there', 503, sub { status('/file', host => 'bold') },
		qr{ev=reply\.failed .*status=503 path=/file file=file9 device=\Q$mount\E stage=look-up}, qr{ev=sendfile\.failed id=\S+ url=/file path=file9 status=503});
	is status('/plain/a'), 200, 'another disk is well';
	$disk->go;
};

subtest 'links, limits, malformed requests' => sub {
	check('a link that leads outside', 403, sub { status('/plain/outside') }, qr{level=warn ev=link\.refused directory=\S+ link=plain/outside target=/etc/passwd why="[^"]+" device=/\S* do="[^"]+"$});
	check('a malformed head', 400, sub { status('', bytes => "NONSENSE\r\n\r\n") }, qr{ev=request\.refused .*client=127\.0\.0\.1 status=400 why="malformed[^"]*" begins=NONSENSE});
	check('a body that is too long', 413, sub { status('', bytes => "POST /x HTTP/1.1\r\nHost: rude\r\nContent-Length: 100000\r\n\r\n") }, qr{ev=request\.refused id=\S+ client=127\.0\.0\.1 status=413 why="body longer than server\.max-request-size[^"]*" url=/x});
};

subtest 'files that the user of the server may not read' => sub {
	my $conf = $> == 0 ? qq{server.username = "nobody"\n} : '';
	my $uid = $> == 0 ? getpwnam 'nobody' : $>;
	my $www = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
	chmod 0755, "$www" or die $!;
	mkdir "$www/$_" or die $! for qw(shut index list);
	put("$www/$_", 'x') for qw(secret shut/file index/index.html);
	chmod 0, "$www/$_" or die $! for qw(secret shut index/index.html);
	chmod 0311, "$www/list" or die $!;
	my $socket = IO::Socket::UNIX->new(Local => "$www/socket", Listen => 1) or die $!;
	chmod 0777, "$www/socket" or die $!;
	my $srv = Test::Server->start(dir => "$www", conf => $conf . qq{index-file.names = ( "index.html" )\ndir-listing.activate = "enable"\n});
	for (['/secret', 'secret'], ['/shut/file', 'shut/file'], ['/index/', 'index/index.html'], ['/list/', 'list']) {
		is $srv->fetch($_->[0])->{status}, 403, "$_->[0]: 403";
		ok scalar $srv->wait_lines(1, qr{level=warn ev=file\.denied id=\S+ client=127\.0\.0\.1 path=$_->[0] file=$_->[1] device=/\S* uid=$uid error="Permission denied" do="let this user read}), '... explained' or diag $srv->log;
	}
	is $srv->fetch('/socket')->{status}, 403, 'a socket: 403';
	ok scalar $srv->wait_lines(1, qr{ev=file\.denied .* file=socket .*do="[^"]*sockets and devices are not sent"}), '... explained' or diag $srv->log;
	is $srv->fetch('/none')->{status}, 404, 'no file: 404';
	is scalar(() = $srv->log =~ /ev=file\.denied/g), 5, '... is nothing to explain';
	chmod 0700, "$www/shut";
};

subtest 'applications' => sub {
	check('nobody listens', 503, sub { status('/x', host => 'gone') }, qr{ev=exchange\.failed id=\S+ .*backend=127\.0\.0\.1:$port{gone} .*client=127\.0\.0\.1 url=/x});
	check('no reply', 502, sub { status('/x', host => 'rude') }, qr{ev=exchange\.failed id=\S+ .*backend=127\.0\.0\.1:$port{rude} .*client=127\.0\.0\.1 url=/x});
	check('a control header that is not allowed', 200, sub { status('/fetch?a', host => 'bold') },
		qr{level=warn ev=control\.dropped id=\S+ url="/fetch\?a" backend=127\.0\.0\.1:$port{bold} header=X-Reproxy-URL why="proxy-core\.allow-x-reproxy is disabled"});
	check('a control header that names what it may not', 403, sub { status('/x', host => 'bold') }, qr{ev=sendfile\.refused id=\S+ url=/x backend=\S+ header=X-Sendfile2 path=/etc/passwd why=});
};

subtest 'a storm has a few lines' => sub {
	my $n = () = $srv->log =~ /ev=reply\.failed/g;
	$disk->hang;
	my $began = time;
	status('/disk/file' . (5 + $_ % 30)) for 1 .. 3;
	my @c = map { my $c = $srv->connect; $c->send(join '', map { req("/disk/none$_") } 1 .. 20); $c } 1 .. 5;
	for my $c (@c) { $c->reply for 1 .. 20 }
	my $m = () = $srv->log =~ /ev=reply\.failed/g;
	cmp_ok $m - $n, '<=', 10 * (2 + time - $began), 'at most ten a second';
	$disk->go;
};

subtest 'a log that cannot be opened again because no descriptors are left' => sub {
	my $srv = Test::Server->start(nofile => 100, conf => "server.max-worker = 1\nserver.max-connections = 500\n");
	$srv->wait_log(qr/ev=listening/);
	my @c = map { $srv->connect } 1 .. 100;
	$srv->wait_log(qr/ev=connection\.made-room why="no descriptors are left"/);
	$srv->signal('HUP');
	like $srv->wait_log(qr/ev=errorlog\.reopen/), qr/ev=errorlog\.reopen .*error="Too many open files".* do="raise server\.max-fds/, 'the line says what to do';
	$_->abort for @c;
};

my @without = grep { / id=c[0-9]+\.[0-9]+ / && !/ (?:client|address)=127\.0\.0\.1(?: |$)/ } split /\n/, $srv->log;
is_deeply \@without, [], 'each line about a request names its client';

done_testing;
