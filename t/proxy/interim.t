#!/usr/bin/perl
# 1xx replies of an application, and what of its framing a client sees.

use v5.36;
use Test::More;

use Test::App;
use Test::Backend;
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually);

my $backend = Test::Backend->new;
my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
    . join '', map { Test::Server::proxy_block("^/$_->[0]", 'unix:' . $backend->socket, protocol => 'http', 'max-pool-size' => 4,
	'max-keep-alive-requests' => $_->[1], 'rewrite-response' => '( "Link" => ( "^<(.*)>(.*)" => "<https://cdn$1>$2" ) )') } ['kept', 100], ['once', 0]);
$srv->write('file.txt', 'the file');

my $ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
my $hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Accel-Expires: 5\r\n\r\n";

# A client, and the application's side of its request.
sub asked ($line, @fields) {
	my $c = $srv->connect;
	$c->send(join "\r\n", $line, 'Host: x', @fields, '', '');
	my $b = $backend->accept;
	return ($c, $b, $b->head);
}

subtest '103 comes before the reply' => sub {
	my ($c, $b) = asked('GET /kept HTTP/1.1');
	$b->send($hints);
	is $c->head, "HTTP/1.1 103 Early Hints\r\nLink: <https://cdn/a.css>; rel=preload\r\n\r\n",
	    'at once, rewritten, without hop-by-hop and control headers';
	ok $c->silent, 'alone';
	$b->send("HTTP/1.1 102 Processing\r\n\r\n");
	is $c->head, "HTTP/1.1 102 Processing\r\n\r\n", '102, too';
	$b->send($ok);
	is $c->reply->{body}, 'ok', 'then the reply';
	$c->send(req('/kept'));
	$b->head;
	$b->send("$hints$ok");
	is $c->reply->{status}, 103, 'on the same sockets, in one piece';
	is $c->reply->{body}, 'ok', 'with the reply';
	$b->abort;
};

subtest 'who gets none' => sub {
	my ($c, $b) = asked('GET /once HTTP/1.0');
	$b->send("$hints$ok");
	like $c->rest, qr{\AHTTP/1\.1 200 .*\r\n\r\nok\z}s, 'HTTP/1.0 does not know 1xx';
	($c, $b) = asked('GET /once HTTP/1.1');
	$b->send("HTTP/1.1 100 Continue\r\n\r\n$ok");
	is $c->reply->{status}, 200, '100 is for the server';
};

subtest 'too many, too long' => sub {
	my ($c, $b) = asked('GET /once HTTP/1.1');
	$b->send($hints x 16 . $ok);
	is $c->reply->{status}, 103, "number $_" for 1 .. 16;
	is $c->reply->{body}, 'ok', '16 are passed on';
	($c, $b) = asked('GET /once HTTP/1.1');
	$b->send($hints x 17 . $ok);
	is $c->reply->{status}, 103, "number $_" for 1 .. 16;
	is $c->reply->{status}, 502, 'the seventeenth is a failure';
	($c, $b) = asked('GET /once HTTP/1.1');
	my $long = "HTTP/1.1 103 Early Hints\r\nLink: " . 'x' x 10_000 . "\r\n\r\n";
	$b->send("$long$long$ok");
	is $c->reply->{status}, 103, 'one of 10 kB is passed on';
	is $c->reply->{status}, 502, 'two are more than 16 KiB';
	ok eventually(sub { $b->rest; $b->{eof} }), 'that socket is closed';
};

subtest 'after a 1xx' => sub {
	my ($c, $b) = asked('GET /once HTTP/1.1');
	$b->send($hints);
	is $c->reply->{status}, 103, 'an application that hints';
	undef $b;
	is $c->reply->{status}, 502, 'and leaves: an error page';
	($c, $b) = asked('GET /once HTTP/1.1');
	$b->send("${hints}HTTP/1.1 200 OK\r\nX-Sendfile: " . $srv->path('file.txt') . "\r\n\r\n");
	is $c->reply->{status}, 103, 'one that hints';
	is $c->reply->{body}, 'the file', 'and names a file';
	($c, $b) = asked('GET /once HTTP/1.1');
	$b->send($hints);
	is $c->reply->{status}, 103, 'a client that heard a hint';
	my $gone = $srv->counter('server.connections.client-gone');
	$c->abort;
	ok eventually(sub { $b->rest(0.001); $b->{eof} }), 'and leaves, frees the application at once';
	is $srv->counter('server.connections.client-gone'), $gone + 1, 'which is counted';
};

subtest 'bodies that are not there' => sub {
	for my $case (['HEAD', "200 OK\r\nContent-Length: 5", '5'], ['GET', '204 No Content', ''], ['GET', "304 Not Modified\r\nContent-Length: 5", '']) {
		my ($method, $status, $length) = @$case;
		my ($c, $b) = asked("$method /kept HTTP/1.1");
		$b->send("HTTP/1.1 $status\r\n\r\n");
		my $r = $c->reply($method);
		is $r->{status}, substr($status, 0, 3), "$method: " . substr $status, 0, 3;
		is $r->{header}{'content-length'} // '', $length, 'its length';
		$c->send(req('/kept'));
		like $b->head, qr{^GET }, 'the next request, on the same socket';
		$b->send($ok =~ s/\r\n/\r\nConnection: close\r\n/r);
		is $c->reply->{body}, 'ok', 'is answered after it';
	}
};

subtest 'trailers and hop-by-hop fields' => sub {
	my ($c, $b, $head) = asked('GET /once HTTP/1.1', 'Connection: keep-alive, X-Secret', 'X-Secret: 1', 'TE: trailers', 'Keep-Alive: 5', 'Upgrade: websocket', 'X-Open: 2');
	unlike $head, qr/^(?:X-Secret|TE|Keep-Alive|Upgrade):/mi, 'fields that end here do not reach the application';
	like $head, qr/^X-Open: 2\r$/m, 'others do';
	$b->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: X-Internal\r\nX-Internal: 1\r\nX-Open: 3\r\n\r\n"
	    . "2\r\nok\r\n0\r\nX-Sum: 5\r\n\r\n");
	my $r = $c->head;
	unlike $r, qr/^(?:X-Internal|Trailer):/mi, 'nor the client';
	like $r, qr/^X-Open: 3\r$/m, 'others do';
	is $c->take(12), "2\r\nok\r\n0\r\n\r\n", 'a chunked body without its trailers';
	ok $c->silent, 'and nothing after it';
};

sub Test::App::do_endless {
	my ($self, $c, $p) = @_;
	Test::App::out($c, "Status: $p->{QUERY_STRING}\r\n\r\n");
	Test::App::out($c, 'x' x 8000) while 1;         # until the socket closes
}

subtest 'a body without an end after a reply that has none' => sub {
	for my $protocol (@Test::Wire::PROTOCOLS) {
		my $app = Test::App->start(protocol => $protocol);
		my $s = Test::Server->start(conf => Test::Server::proxy_block('^/app', 'unix:' . $app->socket, protocol => $protocol));
		my $c = $s->connect;
		for my $case ([HEAD => 200], [GET => 204], [GET => 304]) {
			$c->send("$case->[0] /app/endless?$case->[1] HTTP/1.1\r\nHost: x\r\n\r\n");
			like $c->head, qr{\AHTTP/1\.1 $case->[1] }, "$protocol: the head of $case->[1]";
			$c->send(req('/app/upload'));
			like $c->reply->{body}, qr/^0 /, '... and the next reply on this connection';
		}
	}
};

done_testing;
