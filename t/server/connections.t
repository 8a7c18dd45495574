# One client may use its connections in any order and speed: it is answered in order, reaches its deadlines, and costs the
# other clients nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Http qw(req);
use Time::HiRes qw(time);

my $srv = Test::Server->start(conf => <<'CONF');
server.max-read-idle = 1
server.max-keep-alive-idle = 2
server.max-keep-alive-requests = 100
CONF
$srv->write('a', 'A');
$srv->write('b', 'B' x 20_000);
$srv->write('big', 'G' x 100_001);
$srv->write("cold$_", "cold $_") for 1 .. 40;
mkdir $srv->path('dir');

# Ends at the server's will: seconds until then, and what came.
sub until_closed ($c) {
	my $t = time;
	my $got = $c->rest;
	return ($c->{timed_out} ? 'never' : time - $t, $got);
}

sub ok_between {
	my ($seconds, $min, $max, $name) = @_;
	ok($seconds ne 'never' && $seconds >= $min && $seconds <= $max, $name) or diag "took $seconds s";
}

subtest 'one connection carries many requests' => sub {
	my $c = $srv->connect;
	for my $i (1 .. 20) {
		$c->send(req($i % 2 ? '/a' : '/b'));
		my $r = $c->reply;
		is length $r->{body}, $i % 2 ? 1 : 20_000, "request $i" or last;
	}
};

subtest 'pipelined requests are answered in order' => sub {
	my $c = $srv->connect;
	$c->send(req('/a') x 50);
	my @r = map { $c->reply } 1 .. 50;
	is scalar(grep { $_ && $_->{status} == 200 && $_->{body} eq 'A' } @r), 50, 'fifty small ones in one packet';

	my @plan;       # [request bytes, method, status, body]
	for my $i (1 .. 20) {
		push @plan, [req('/a'), 'GET', 200, 'A'], [req("/cold$i"), 'GET', 200, "cold $i"],
		    [req("/none$i"), 'GET', 404, undef], [req('/big') =~ s/GET/HEAD/r, 'HEAD', 200, ''];
		push @plan, [req('/big'), 'GET', 200, 'G' x 100_001], [req('/dir'), 'GET', 301, undef] if $i % 5 == 0;
	}
	$c = $srv->connect;
	$c->send(join '', map { $_->[0] } @plan);
	my @wrong;
	for my $i (0 .. $#plan) {
		my (undef, $method, $status, $body) = @{ $plan[$i] };
		my $r = $c->reply($method);
		next if $r && $r->{status} == $status && (!defined $body || $r->{body} eq $body);
		push @wrong, "number $i: " . ($r ? $r->{status} : 'nothing') . " instead of $status";
		last;
	}
	is_deeply \@wrong, [], 'hot, cold, missing, HEAD, redirect and large ones mixed';

	my $bytes = join '', map { req("/cold$_") } 21 .. 40;
	$c = $srv->connect;
	while (length $bytes) { $c->send(substr $bytes, 0, 7, '') }
	is join(',', map { my $r = $c->reply; $r ? $r->{body} : '-' } 21 .. 40), join(',', map { "cold $_" } 21 .. 40), 'in pieces of seven bytes';
};

subtest 'Connection and version decide when a connection ends' => sub {
	my $c = $srv->connect;
	$c->send(req('/a', 'Connection: close') . req('/b'));
	my $r = $c->reply;
	is $r->{header}{connection}, 'close', 'Connection: close is honoured and said';
	is $c->rest, '', '... and the request after it is not answered';
	$c = $srv->connect;
	$c->send("GET /a HTTP/1.0\r\n\r\n");
	like $c->rest, qr/\AHTTP\/1\.1 200 .*\r\n\r\nA\z/s, 'HTTP/1.0 is closed';
	$c = $srv->connect;
	$c->send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	is lc $c->reply->{header}{connection}, 'keep-alive', 'an HTTP/1.0 client that asks for it gets keep-alive';
	$c->send("GET /a HTTP/1.0\r\n\r\n");
	like $c->rest, qr/A\z/, '... and then it works';
	$c = $srv->connect;
	$c->send(req('/a', 'Connection: foo, Close'));
	$c->reply;
	ok $c->closed, 'close among other options, any case';
	$c = $srv->connect;
	$c->send(req('/big'));
	$c->finish;
	is length(($c->reply // {})->{body} // ''), 100_001, 'a client that has said all gets its reply';
	ok $c->closed, '... and the connection ends';
};

# After that of the kernel, which acknowledges the request at once while a connection is new.
subtest 'a last reply and the end of the stream are one segment' => sub {
	my $segments = sub ($c) { return unpack 'x140 L', getsockopt $c->sock, 6, 11 };      # TCP_INFO: tcpi_segs_in
	my $more = 0;
	for (1 .. 10) {
		my $c = $srv->connect;
		my $before = $segments->($c);
		$c->send(req('/a', 'Connection: close'));
		like $c->rest, qr/\r\n\r\nA\z/, 'the reply';
		$more++ if $segments->($c) - $before > 2;
	}
	cmp_ok $more, '<=', 3, 'of ten connections';
};

subtest 'server.max-keep-alive-requests ends a connection' => sub {
	my $c = $srv->connect;
	$c->send(req('/a') x 150);
	my @r;
	while (my $r = $c->reply) { push @r, $r }
	is scalar @r, 100, 'that many are answered';
	is $r[-1]{header}{connection}, 'close', 'the last one says so';
	is $r[-2]{header}{connection}, undef, '... and only that one';
	ok $c->closed, 'then it is closed';
};

subtest 'silent and slow clients reach a deadline' => sub {
	my $c = $srv->connect;
	my ($s, $got) = until_closed($c);
	ok_between $s, 0.5, 6, 'one that never says a word';
	$c = $srv->connect;
	$c->send("GET /a HTTP/1.1\r\nHo");
	($s, $got) = until_closed($c);
	ok_between $s, 0.5, 5, 'one that stops within a head';
	like $got, qr/\A(?:HTTP\/1\.1 408 |\z)/, '... hears 408 or nothing';
	$c = $srv->connect;
	my $t = time;
	$c->send("GET /a HTTP/1.1\r\nX: ");
	while (time - $t < 10) {                # a header byte whenever the server has been silent for a moment
		last if $c->_more(time + 0.05) || $c->{eof};
		$c->send('x') or last;
	}
	ok_between time - $t, 0.5, 5, 'one whose head drips in byte by byte: the deadline is for the whole';
	$c = $srv->connect;
	$c->send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
	($s, $got) = until_closed($c);
	ok_between $s, 0, 6, 'one that stops within a body';
	for my $head ("Content-Length: 100000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n186a0\r\n") {
		$c = $srv->connect;
		$c->send("POST /a HTTP/1.1\r\nHost: x\r\n$head");
		$t = time;
		while (time - $t < 8) {
			last if $c->_more(time + 0.05) || $c->{eof};
			$c->send('x') or last;
		}
		ok_between time - $t, 0.5, 5, 'one whose body drips in byte by byte: ' . substr $head, 0, 14;
	}
	$c = $srv->connect;
	$c->send(req('/a'));
	is $c->reply->{body}, 'A', 'one that goes idle after a reply';
	($s, $got) = until_closed($c);
	ok_between $s, 1, 6, '... is closed after server.max-keep-alive-idle';
	is $got, '', '... without a word';
};

subtest 'server.max-write-idle ends a client that does not read' => sub {
	my $srv = Test::Server->start(conf => "server.max-write-idle = 1\n");
	my $n = 64 << 20;
	$srv->sparse('huge', $n);
	$srv->write('a', 'A');
	is $srv->fetch('/a')->{body}, 'A', 'warm';
	my $c = $srv->connect(rcvbuf => 65536);
	$c->send(req('/huge'));
	like $c->take(12), qr/ 200/, 'begun';
	ok Test::Util::eventually(sub { $srv->log =~ /ev=client\.stalled/ }, 10), 'the server lets go, and says so';
	my $got = $c->rest;
	cmp_ok length $got, '<', $n, '... and the reply is visibly cut';
	$c = $srv->connect(rcvbuf => 65536);    # slow, but never for a whole second
	$c->send(req('/huge', 'Range: bytes=0-16777215', 'Connection: close'));
	my ($all, $t) = (0, time);
	while (time - $t < 2.5) {
		$all += length $c->take(200_000);
		select undef, undef, undef, 0.05;
	}
	$all += length $c->rest;
	cmp_ok $all, '>', 16 << 20, 'progress starts the time anew';
};

subtest 'the body of a request for a file is dropped' => sub {
	my $post = sub { my ($body, @lines) = @_; join("\r\n", 'POST /a HTTP/1.1', 'Host: x', @lines, '', '') . $body };
	my %case = (
		'with a length' => $post->('abcde', 'Content-Length: 5'),
		'chunked' => $post->("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n", 'Transfer-Encoding: chunked'),
		'empty' => $post->('', 'Content-Length: 0'),
		'300 kB' => $post->('x' x 300_000, 'Content-Length: 300000'),
		'looks like a request' => $post->(req('/b'), 'Content-Length: ' . length req('/b')),
	);
	for (sort keys %case) {
		my $c = $srv->connect;
		$c->send($case{$_} . req('/a'));
		my $r = $c->reply;
		is $r && $r->{status}, 405, "$_: 405";
		if (lc($r->{header}{connection} // '') eq 'close') {
			ok $c->closed, '... and closed as said';
		} else {
			my $next = $c->reply;
			is $next && $next->{body}, 'A', '... and the next request is found after the body';
		}
	}
	my $c = $srv->connect;
	$c->send($post->('', 'Content-Length: 5', 'Expect: 100-continue'));
	my $r = $c->reply;
	if ($r->{status} == 100) {
		$c->send('abcde');
		$r = $c->reply;
	}
	is $r->{status}, 405, 'Expect: 100-continue is answered at once';
	if (lc($r->{header}{connection} // '') eq 'close') {
		ok $c->closed, '... and closed as said';
	} else {
		$c->send(req('/a'));
		$r = $c->reply;
		is $r && $r->{body}, 'A', '... and the connection goes on';
	}
	$c = $srv->connect;
	$c->send(join "\r\n", 'GET /a HTTP/1.1', 'Host: x', 'Expect: 100-continue', '', '');
	$r = $c->reply;
	is $r && $r->{status}, 200, 'Expect without a body';
};

subtest 'clients that vanish leave no descriptor' => sub {
	my $srv = Test::Server->start(dir => $srv->dir, conf => "server.max-worker = 1\nserver.max-read-idle = 1\n");
	$srv->fetch("/$_") for qw(a b big cold1 none dir);
	my $before = $srv->descriptors;
	srand 5;
	for (1 .. 300) {
		my $c = $srv->connect(rand() < .5 ? (rcvbuf => 4096) : ());
		my $bytes = join '', map { req((qw(/a /b /big /cold1 /none /dir))[rand 6]) } 0 .. rand 4;
		$c->send(substr $bytes, 0, 1 + rand length $bytes);
		$c->take(1 + int rand 50_000, 0.01) if rand() < .3;
		rand() < .7 ? $c->abort : close $c->sock;
	}
	ok Test::Util::eventually(sub { $srv->descriptors <= $before }, 15), 'descriptors are back where they were'
	    or diag "$before before, " . $srv->descriptors . ' now';
	is $srv->fetch('/big')->{body}, 'G' x 100_001, 'and it serves';
};

done_testing;
