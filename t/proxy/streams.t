#!/usr/bin/perl
# Request bodies that go to the application while they arrive: order, framing, bounds, early replies.

use v5.36;
use Digest::MD5 qw(md5_hex);
use Test::More;

use Test::App;
use Test::Backend;
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually);
use Time::HiRes qw(time);

my $backend = Test::Backend->new;
my $unix = 'unix:' . $backend->socket;
my $app = Test::App->start;

sub start {
	my ($lines) = @_;
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
	    . qq{server.upload-dirs = ( "\@RUN\@" )\nserver.stream-request-body = 1\n$lines\n}
	    . Test::Server::proxy_block('^/http', $unix, protocol => 'http', 'max-pool-size' => 100, 'max-keep-alive-requests' => 100)
	    . Test::Server::proxy_block('^/app', 'unix:' . $app->socket, 'max-pool-size' => 4, 'max-keep-alive-requests' => 100));
}

sub body_of { my ($n) = @_; return substr join('', map { md5_hex($_) } 1 .. 1 + $n / 32), 0, $n }

sub head { my ($length, $path, @more) = @_; return join "\r\n", 'POST ' . ($path // '/http') . ' HTTP/1.1', 'Host: x', ($length eq 'chunked' ? 'Transfer-Encoding: chunked' : "Content-Length: $length"), @more, '', '' }

sub ok_of { my ($body) = @_; return 'HTTP/1.1 200 OK' . "\r\nContent-Length: " . length($body) . "\r\n\r\n$body" }

my $srv = start('');

subtest 'a body with a length goes on while it arrives' => sub {
	my $c = $srv->connect;
	$c->send(head(10) . 'first');
	my $b = $backend->accept;
	like $b->head, qr/^Content-Length: 10\r$/m, 'the application knows the length';
	is $b->take(5), 'first', 'and has the first part before the client sends the second';
	$c->send('secnd');
	is $b->take(5), 'secnd', 'then the second';
	$b->send(ok_of('thanks'));
	is $c->reply->{body}, 'thanks', 'and answers';
	$c->send(head(3) . 'abc');
	$b->head;
	is $b->take(3), 'abc', 'the socket is used again';
	$b->send(ok_of('more'));
	is $c->reply->{body}, 'more', 'and so is the connection';
};

subtest 'a chunked body goes on in chunks' => sub {
	my $c = $srv->connect;
	$c->send(head('chunked') . "5\r\nfirst\r\n");
	my $b = $backend->accept;
	my $got = $b->head;
	like $got, qr/^Transfer-Encoding: chunked\r$/m, 'without a length';
	unlike $got, qr/^Content-Length/mi, 'of any kind';
	is $b->take(10), "5\r\nfirst\r\n", 'the first chunk is there before the second';
	$c->send("6;x=y\r\nsecond\r\n0\r\nTrailer: dropped\r\n\r\nGET /counters HTTP/1.1\r\nHost: x\r\n\r\n");
	is $b->chunks, 'second', 'then the rest';
	ok $b->silent, 'without the trailers';
	$b->send(ok_of('thanks'));
	is $c->reply->{body}, 'thanks', 'the reply';
	is $c->reply->{status}, 200, 'and a request after the body';
};

subtest 'both directions at once' => sub {
	my $c = $srv->connect;
	$c->send(head(6, '/app/echo') . 'abc');
	like $c->head, qr{^HTTP/1\.1 200 }, 'a FastCGI application answers before the body is complete';
	is $c->take(8), "3\r\nabc\r\n", 'with what it has';
	$c->send('def');
	is $c->chunks, 'def', 'and goes on';
};

subtest 'FastCGI needs a length: chunked bodies are collected' => sub {
	my $c = $srv->connect;
	$c->send(head('chunked', '/app/upload') . "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
	is $c->reply->{header}{'x-length'}, 7, 'CONTENT_LENGTH of a chunked body';
};

subtest 'an application that does not read stops the client' => sub {
	my $c = $srv->connect;
	my $body = body_of(30_000_000);
	my $at = $c->push(head(30_000_000) . $body);
	my $b = $backend->accept;
	my ($stalled, $n) = (0);
	while ($stalled < 20) {         # the buffers of the kernel are full
		$n = $c->push(substr(head(30_000_000) . $body, $at, 1_000_000));
		$stalled = $n == 0 ? $stalled + 1 : 0;
		$at += $n;
		select undef, undef, undef, 0.01;
	}
	cmp_ok $at, '<', 30_000_000, 'the client waits';
	is $srv->counter('server.spool.bytes-written'), 0, 'nothing goes to a file';
	$b->head;
	my ($sum, $left) = (Digest::MD5->new, 30_000_000);
	my $all = head(30_000_000) . $body;
	while ($left > 0) {
		$at += $c->push(substr $all, $at, 1_000_000);
		my $got = $b->take($left < 100_000 ? $left : 100_000);
		last if $got eq '';
		$sum->add($got);
		$left -= length $got;
	}
	is $sum->hexdigest, md5_hex($body), 'every byte arrives';
	$b->send(ok_of('all'));
	is $c->reply->{body}, 'all', 'and is answered';
};

subtest 'Expect: 100-continue' => sub {
	my $c = $srv->connect;
	$c->send(head(5, '/http', 'Expect: 100-continue'));
	is $c->take(25), "HTTP/1.1 100 Continue\r\n\r\n", 'the server asks for the body';
	my $b = $backend->accept;
	unlike $b->head, qr/^Expect/mi, 'the application is not asked for it';
	$c->send('hello');
	is $b->take(5), 'hello', 'and gets it';
	$b->send("HTTP/1.1 100 Continue\r\n\r\n" . ok_of('x'));
	my $r = $c->reply;
	is "$r->{status} $r->{body}", '200 x', 'its own 100 is dropped';
};

# ---------------------------------------------------------------- bounds

subtest 'bodies that are too long' => sub {
	my $small = start("server.max-request-size = 100\n");
	is Test::Http::parse($small->request(head(102_401)))->{status}, 413, 'a length above the limit';
	ok !$backend->waits, 'without a byte to the application';
	my $c = $small->connect;
	$c->send(head('chunked') . "190000\r\n");
	my $b = $backend->accept;
	$c->send('x' x 110_000);
	is $c->reply->{status}, 413, 'chunks above the limit';
	unlike $b->rest, qr/\r\n0\r\n/, 'the application does not see an end of the body';
	ok !$b->{timed_out}, 'but the end of its socket';
	$c = $small->connect;
	$c->send(head('chunked') . "190000\r\n");
	$b = $backend->accept;
	$b->head;
	$b->send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
	is $c->up_to("\r\n\r\nhel", time + 60) && 1, 1, 'a reply that has begun';
	$c->send('x' x 110_000);
	is $c->rest, '', 'is cut';
};

subtest 'a body is not a request' => sub {
	my $s = start(q{proxy-core.rewrite-request = ( "X-Slow" => ( "^(a|aa)+$" => "x" ) )} . "\n");
	my $c = $s->connect;
	my $body = req('/counters');
	$c->send(head(length $body, '/http', 'X-Slow: ' . 'a' x 60 . 'b') . $body . req('/none'));
	is $c->reply->{status}, 500, 'a request that is answered before its body is read';
	is $c->reply->{status}, 404, 'then the next one';
	ok $c->silent, 'and no other';
	ok !$backend->waits, 'the application does not hear of it';
};

subtest 'malformed chunks' => sub {
	my $c = $srv->connect;
	$c->send(head('chunked') . "5\r\nfirst\r\n");
	my $b = $backend->accept;
	$c->send("zz\r\n");
	is $c->reply->{status}, 400, 'are refused';
	unlike $b->rest, qr/\r\n0\r\n/, 'and the application does not take the part for all';
};

subtest 'a client that is too slow' => sub {
	my $s = start("server.max-read-idle = 1\n");
	my $c = $s->connect;
	$c->send(head(100_000) . 'x' x 5000);
	my $b = $backend->accept;
	is $c->reply->{status}, 408, 'gets 408';
	ok eventually(sub { $b->rest; $b->{eof} }), 'and the application its socket closed';
};

subtest 'a slow client is not the fault of the application' => sub {
	my $s = start("proxy-core.read-timeout = 3\n");
	my (@c, @b);
	for my $early (0, 1) {
		push @c, $s->connect;
		$c[-1]->send(head(10) . 'first');
		push @b, $backend->accept;
		$b[-1]->head;
		$b[-1]->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n") if $early;
		is $c[-1]->head && 1, 1, 'a head before the body is complete' if $early;
	}
	select undef, undef, undef, 3.5;        # longer than the application may be silent
	for my $early (0, 1) {
		$c[$early]->send('secnd');
		is $b[$early]->take(10), 'firstsecnd', 'the body is complete after a pause';
		$b[$early]->send($early ? 'ok' : ok_of('ok'));
		is $early ? $c[1]->take(2) : $c[0]->reply->{body}, 'ok', 'and answered';
	}
};

# ---------------------------------------------------------------- early replies

subtest 'a reply before the body, from an application that closes' => sub {
	for my $framing (400_000, 20_000_000, 'chunked') {
		my $c = $srv->connect;
		$c->send(head($framing) . ($framing eq 'chunked' ? "1312d00\r\n" : ''));
		my $b = $backend->accept;
		$b->head;
		$b->send("HTTP/1.1 413 Too large\r\nConnection: close\r\nContent-Length: 8\r\n\r\ntoo much");
		undef $b;
		$c->send('x' x ($framing eq '400000' ? 400_000 : 20_000_000));
		my $r = $c->reply;
		is "$r->{status} $r->{body}", '413 too much', "$framing: the client that sends all of it first reads the reply";
		is $r->{header}{connection} // '', $framing eq '20000000' ? 'close' : '', 'and whether the connection goes on';
		if ($framing eq '400000') {
			$c->send("GET /counters HTTP/1.1\r\nHost: x\r\n\r\n");
			is $c->reply->{status}, 200, 'the connection goes on after a short rest';
		} else {
			is $c->rest, '', 'the connection ends after a long one';
			ok !$c->{reset}, 'without a reset';
		}
	}
};

subtest 'a reply before the body, from an application that stays' => sub {
	my $c = $srv->connect;
	$c->send(head(400_000) . 'x' x 1000);
	my $b = $backend->accept;
	$b->head;
	$b->send(ok_of('early'));
	is $c->reply->{body}, 'early', 'arrives';
	ok eventually(sub { $b->rest; $b->{eof} }), 'its socket is closed: half a request is on it';
	$c->send('x' x 399_000 . "GET /counters HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{status}, 200, 'the rest is dropped, and the next request answered';
};

subtest 'a long reply beside a long body' => sub {
	my $c = $srv->connect;
	my $body = body_of(3_000_000);
	$c->send(head(3_000_000) . substr $body, 0, 100_000);
	my $b = $backend->accept;
	$b->head;
	$b->send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" . substr $body, 0, 1_000_000);
	$c->send(substr $body, 100_000, 900_000);
	is md5_hex($b->take(1_000_000)), md5_hex(substr $body, 0, 1_000_000), 'the body while the reply is sent';
	$b->send(substr $body, 1_000_000, 1_000_000);
	my $r = $c->reply;
	is md5_hex($r->{body}), md5_hex(substr $body, 0, 2_000_000), 'the reply while the body arrives';
};

subtest 'an early reply that is routed again' => sub {
	$srv->write('file.txt', 'the file');
	my $c = $srv->connect;
	$c->send(head(400_000) . 'x' x 1000);
	my $b = $backend->accept;
	$b->head;
	$b->take(1000);
	$b->send("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /file.txt\r\nContent-Length: 0\r\n\r\n");
	ok eventually(sub { $b->rest(0.001); $b->{eof} }), 'the application is free';
	$c->send('x' x 399_000 . "GET /counters HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{status}, 502, 'a URI cannot be asked for while the body is coming';
	like $srv->wait_log(qr/the request body is still on its way/), qr/\/file\.txt/, 'which the log says';
	is $c->reply->{status}, 200, 'the rest is dropped, and the next request answered';
};

# ---------------------------------------------------------------- resources

subtest 'fifty uploads to an application that does not read' => sub {
	my $max = Test::Util::sanitized() ? 60 : 25;
	local $ENV{ASAN_OPTIONS} = join ':', grep { length } $ENV{ASAN_OPTIONS} // '', 'quarantine_size_mb=8';
	my $s = start('');
	$s->request("GET /counters HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	my ($rss, $fds) = ($s->rss, scalar $s->descriptors);
	my @c = map { $s->connect } 1 .. 50;
	$_->send(head(20_000_000)) for @c;
	my @b = map { $backend->accept } @c;
	my $piece = 'x' x 100_000;
	my $idle = 0;
	while ($idle < 10) {
		my $n = 0;
		$n += $_->push($piece) for @c;
		$idle = $n == 0 ? $idle + 1 : 0;
		select undef, undef, undef, 0.01;
	}
	my $grown = $s->rss - $rss;
	diag sprintf '50 streamed uploads of 20 MB: %.1f MiB of memory', $grown;
	cmp_ok $grown, '<', $max, 'hold bounded memory';
	is $s->counter('server.spool.files-opened'), 0, 'and no file';
	$_->abort for @c;
	ok eventually(sub { my $open = 0; for (@b) { $_->rest(0.001); $open += !$_->{eof} } $open == 0 }), 'their sockets close with them';
	ok eventually(sub { scalar($s->descriptors) <= $fds }), 'every descriptor is closed';
};

done_testing;
