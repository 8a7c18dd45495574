# Limits of a client address, over all workers and connections: requests a second (429) and bytes a second.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Select;
use IO::Socket::INET;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Time::HiRes qw(time);

my $KB = 1024;
my $backend = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die $!;
my $port = $backend->sockport;
my $srv = Test::Server->start(conf => <<"CONF");
status.statistics-url = "/statistics"
accesslog.filename = "\@RUN\@/access.log"
accesslog.max-refused-per-second = 5
server.max-requests-per-second-per-address = 1
server.request-burst-per-address = 20
extforward.forwarder = ( "127.0.0.3" => "trust", "10.0.0.0/8" => "trust" )
\$HTTP["remoteip"] == "127.0.9.0/24" { server.max-requests-per-second-per-address = 0 }
\$HTTP["host"] == "app" { proxy-core.backends = ( "127.0.0.1:$port" ) proxy-core.protocol = "http" }
CONF
$srv->write('a', 'A');

sub counter {
	my ($name) = @_;
	my $c = $srv->connect(from => '127.0.9.9');
	$c->send(req('/statistics', 'Connection: close'));
	return $c->rest =~ /^server\.\Q$name\E: ([0-9]+)/m ? $1 : -1;
}

# The statuses of n requests on one connection, and the last reply.
sub ask {
	my ($c, $n, @field) = @_;
	my (%got, $last);
	for (1 .. $n) {
		$c->send(req('/a', @field));
		my $r = $c->reply or last;
		$last = $r;
		$got{ $last->{status} }++;
	}
	return (\%got, $last);
}

# One request a second after a burst of 20: how many may have been served.
sub is_limited ($got, $began, $what) {
	my $ok = $got->{200} // 0;
	cmp_ok $ok, '>=', 20, "$what: the burst is served";
	cmp_ok $ok, '<=', 20 + time - $began + 1, '... and then one a second';
	return;
}

subtest 'requests on one connection' => sub {
	my $began = time;
	my $c = $srv->connect;
	my ($got, $last) = ask($c, 39);
	is_limited($got, $began, 'kept alive');
	is $got->{200} + $got->{429}, 39, 'each of the others gets 429, on the same connection';
	isnt $last->{header}{connection}, 'close', '... that is kept';
	my ($more);
	($more, $last) = ask($c, 400);
	cmp_ok $more->{429}, '<', 399, 'but not for ever';
	is $last->{header}{connection}, 'close', '... the last one says so';
	ok $c->closed, '... and the connection ends';
	is counter('connections.over-rate-closed'), 1, '... which a counter has';
	$got->{429} += $more->{429};
	is $last->{status}, 429, 'the last one, too';
	like $last->{header}{'retry-after'}, qr/^[1-9][0-9]*\z/, '... with Retry-After';
	like $last->{body}, qr/Too many requests/, '... and a sentence';
	is counter('requests.over-rate'), $got->{429}, 'a counter has them';
	my @line = $srv->wait_lines(1, qr/ev=request\.over-rate/);
	like $line[0], qr/level=warn .* address=127\.0\.0\.1 limit=1 /, 'a line names address and limit';
	cmp_ok scalar @line, '<=', 2 + time - $began, '... once a second';
	my $written = () = $srv->wait_log(qr/ 429 /, 'access.log') =~ / 429 /g;
	cmp_ok $written, '<=', 5 * (2 + time - $began), 'the access log has some of them';
	is $written + counter('accesslog.left-out'), $got->{429}, '... and a counter the rest';
};

subtest 'pipelined requests, on connections to all workers' => sub {
	my $began = time;
	my @c = map { $srv->connect(from => '127.0.0.2') } 1 .. 6;
	$_->send(req('/a') x 20) for @c;
	my %got;
	for my $c (@c) { $got{ ($c->reply // { status => 'none' })->{status} }++ for 1 .. 20 }
	is_limited(\%got, $began, 'together');
	is $got{200} + $got{429}, 120, 'each is answered';
};

subtest 'each address has its own' => sub {
	my ($got) = ask($srv->connect(from => '127.0.0.44'), 10);
	is_deeply $got, { 200 => 10 }, 'another address';
};

subtest 'a block exempts addresses' => sub {
	my ($got) = ask($srv->connect(from => '127.0.9.1'), 60);
	is_deeply $got, { 200 => 60 }, 'the network of the block';
};

subtest 'behind a proxy its clients count, the proxy does not' => sub {
	my $began = time;
	my $c = $srv->connect(from => '127.0.0.3');
	my ($got) = ask($c, 40, 'X-Forwarded-For: 192.0.2.1');
	is_limited($got, $began, 'one client');
	($got) = ask($c, 10, 'X-Forwarded-For: 192.0.2.2');
	is_deeply $got, { 200 => 10 }, 'another one, over the same connection';
	($got) = ask($c, 40);
	is_deeply $got, { 200 => 40 }, 'requests of the proxy itself are free';
	($got) = ask($c, 40, 'X-Forwarded-For: 10.1.1.1');
	is_deeply $got, { 200 => 40 }, '... and those of a proxy behind it';
	$began = time;
	($got) = ask($srv->connect(from => '127.0.0.5'), 40, 'X-Forwarded-For: 192.0.2.7');
	is_limited($got, $began, 'the field of a stranger is not read');
	$began = time;
	my %all;
	for my $i (1 .. 40) {
		($got) = ask($c, 1, "X-Forwarded-For: 2001:db8:1:2::$i");
		$all{$_} += $got->{$_} for keys %$got;
	}
	is_limited(\%all, $began, 'an IPv6 /64 is one client');
};

subtest 'a refused request reaches no application, and its body is not read' => sub {
	my $slow = Test::Server->start(conf => <<"CONF");
server.max-requests-per-second-per-address = 1
server.request-burst-per-address = 1000
\$HTTP["url"] =^ "/x" { server.request-burst-per-address = 1 proxy-core.backends = ( "127.0.0.1:$port" ) proxy-core.protocol = "http" }
CONF
	$slow->write('a', 'A');
	my $c = $slow->connect;
	ask($c, 300);    # ahead of the clock by about five minutes
	$c->send("GET /x HTTP/1.1\r\nHost: app\r\n\r\n");
	is $c->reply->{status}, 429, 'a request for an application';
	ok !IO::Select->new($backend)->can_read(0), '... which hears nothing of it';
	$c = $slow->connect;
	$c->send("POST /x HTTP/1.1\r\nHost: app\r\nContent-Length: 100000000\r\n\r\n" . 'x' x 1000);
	my $r = $c->reply;
	is $r->{status}, 429, 'with a body';
	is $r->{header}{connection}, 'close', '... the connection ends';
};

# ---- bytes

my $rated = Test::Server->start(conf => <<'CONF');
status.statistics-url = "/statistics"
server.kbytes-per-second-per-address = 128
extforward.forwarder = ( "127.0.0.3" => "trust" )
$HTTP["host"] == "both" { server.kbytes-per-second = 32 }
CONF
$rated->write('n', 'n' x (24 * $KB));

# Seconds until n connections have a file of 24 kB each.
sub seconds ($n, $from, @field) {
	my $began = time;
	my @c = map { $rated->connect(from => $from) } 1 .. $n;
	$_->send(req('/n', @field)) for @c;
	is length(($_->reply // { body => '' })->{body}), 24 * $KB, 'a connection has all' for @c;
	return time - $began;
}

subtest 'bytes of all connections of an address together' => sub {
	cmp_ok seconds(4, '127.0.0.1'), '>', 0.5, 'four connections share the rate of one';
	my $began = time;
	my @c = map { $rated->connect(from => "127.0.0.1$_") } 1 .. 4;
	$_->send(req('/n')) for @c;
	is length(($_->reply // { body => '' })->{body}), 24 * $KB, 'each of four addresses has all' for @c;
	cmp_ok seconds(3, '127.0.0.3', 'X-Forwarded-For: 192.0.2.9'), '>', 0.35, 'a client behind a proxy';
	$began = time;
	$rated->fetch("/n", Host => "both");
	cmp_ok time - $began, '>', 0.5, 'server.kbytes-per-second holds, too';
	my $new = time;
	for (1 .. 4) { $rated->fetch('/n') }
	cmp_ok time - $new, '>', 0.5, 'a new connection for each request does not help';
	like $rated->fetch('/statistics')->{body}, qr/^server\.rate-pauses: [1-9]/m, 'a counter shows that replies waited';
};

done_testing;
