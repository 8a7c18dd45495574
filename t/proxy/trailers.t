#!/usr/bin/perl
# Fields that follow the body of an application's reply.

use v5.36;
use Test::More;

use Test::Backend;
use Test::Http qw(req);
use Test::Http2 qw(:all);
use Test::Server;
use Test::Util qw(eventually);

my $backend = Test::Backend->new;
my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nserver.modules += ( "mod_deflate", "mod_setenv" )\n}
    . qq{\$HTTP["url"] =~ "^/hidden" { setenv.set-response-header = ( "X-Internal" => "", "X-Sum" => "ours" ) }\n}
    . qq{\$HTTP["url"] =~ "^/small" { deflate.mimetypes = ( "text/" )\ndeflate.allowed-encodings = ( "gzip" ) }\n}
    . join '', map { Test::Server::proxy_block("^/$_->[0]", 'unix:' . $backend->socket, protocol => 'http', 'max-pool-size' => 4,
	'max-keep-alive-requests' => $_->[1], 'rewrite-response' => '( "X-Link" => ( "^a(.*)" => "b$1" ) )') } ['kept', 100], ['once|hidden|small', 0]);
$srv->write('file.txt', 'the file');

my $head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n";
my $trailers = "X-Sum: 5\r\nGRPC-Status:  0 \r\n";
my @sent = (['x-sum', '5'], ['grpc-status', '0']);
our $h = Test::Http2->connect($srv);

sub chunks ($body, $trailers) { return sprintf("%x\r\n%s\r\n", length $body, $body) . "0\r\n$trailers\r\n" }
sub error_of ($r) { return defined $r->{error} ? error_name($r->{error}) : 'none' }

# Begins a request that the test itself answers.
sub asked (@request) {
	my $id = $h->open(@request);
	my $b = $backend->accept;
	$b->head;
	return ($id, $b);
}

sub replied ($url, $reply, @field) {
	my ($id, $b) = asked(GET => $url, @field);
	$b->send($reply);
	return ($h->gather($id))[0];
}

# The body of the reply to a client of HTTP/1.1, as it was sent.
sub replied1 ($reply, @field) {
	my $c = $srv->connect;
	$c->send(join "\r\n", 'GET /once HTTP/1.1', 'Host: x', 'Connection: close', @field, '', '');
	my $b = $backend->accept;
	$b->head;
	$b->send($reply);
	return $c->rest =~ s/\A.*?\r\n\r\n//sr;
}

subtest 'HTTP/2' => sub {
	my $r = replied('/once', "$head\r\n" . chunks('hello', $trailers));
	is $r->{body}, 'hello', 'the body';
	is_deeply $r->{trailers}, \@sent, 'and the trailers, in lower case';
	is error_of($r), 'none', 'without an error';
	is_deeply replied('/once', "$head\r\n" . chunks('hello', ''))->{trailers}, [], 'a reply without them';
	$r = replied('/once', "$head\r\n0\r\n$trailers\r\n");
	is_deeply [$r->{body}, $r->{trailers}], ['', \@sent], 'after a body without bytes';
	$r = replied('/once', "$head\r\n" . chunks('hello', "X-Link: abc\r\n"));
	is_deeply $r->{trailers}, [['x-link', 'bbc']], 'rewritten as header fields are';
	is_deeply replied('/hidden', "$head\r\n" . chunks('hello', "X-Internal: 1\r\nX-Sum: 2\r\nX-B: 3\r\n"))->{trailers}, [['x-b', '3']],
	    'without those that the configuration replaces';
};

subtest 'HTTP/1.1' => sub {
	my $reply = "$head\r\n" . chunks('hello', $trailers);
	my $passed = "5\r\nhello\r\n0\r\nX-Sum: 5\r\nGRPC-Status: 0\r\n\r\n";
	is replied1($reply, $_), $passed, $_ for 'TE: trailers', 'te: deflate;q=0.5, Trailers', "TE: x\r\nTE: trailers";
	is replied1($reply, @$_), "5\r\nhello\r\n0\r\n\r\n", join ' ', 'not', @$_ for [], ['TE: trailersx'], ['TE: deflate'];
};

subtest 'pieces' => sub {
	my $reply = chunks('hello', $trailers);
	for my $at (9 .. length($reply) - 1) {
		my ($id, $b) = asked(GET => '/once');
		$b->send("$head\r\n" . substr $reply, 0, $at);
		$h->await(sub ($f) { $h->reply($id)->{body} eq 'hello' });
		$b->send(substr $reply, $at);
		is_deeply [($h->gather($id))[0]->@{qw(body trailers)}], ['hello', \@sent], "cut at $at";
	}
};

subtest 'fields that may not pass' => sub {
	my @never = ('Content-Length: 1', 'Transfer-Encoding: chunked', 'Host: x', 'Connection: x', 'Keep-Alive: 1', 'Proxy-Connection: x', 'Proxy-Authenticate: x',
		'Upgrade: x', 'TE: x', 'Trailer: X-Sum', 'Content-Type: a/b', 'Content-Encoding: gzip', 'Content-Range: x', 'Cache-Control: no-store', 'Set-Cookie: a=b',
		'Authorization: x', 'WWW-Authenticate: x', 'Expect: x', 'Max-Forwards: 1', 'Date: x', 'Location: /', 'Status: 500', 'If-Match: x',
		'X-Sendfile: ' . $srv->path('file.txt'), 'X-Accel-Redirect: /file.txt', 'X-LIGHTTPD-a: b');
	my $r = replied('/once', "$head\r\n" . chunks('hello', join '', map { "$_\r\nx-a: 1\r\n" } @never));
	is_deeply $r->{trailers}, [map { ['x-a', '1'] } @never], 'are dropped one by one';
	is_deeply replied('/once', "$head\r\n" . chunks('hello', join '', map { "$_\r\n" } @never))->{trailers}, [], 'a section without any other has none';
	is replied1("$head\r\n" . chunks('hello', join '', map { "$_\r\n" } @never), 'TE: trailers'), "5\r\nhello\r\n0\r\n\r\n", 'from HTTP/1.1, too';
	is_deeply replied('/once', "${head}Connection: x-sum\r\n\r\n" . chunks('hello', $trailers))->{trailers}, [], 'nor what Connection lists';
	is_deeply replied('/once', "${head}Connection: keep-alive, Upgrade\r\n\r\n" . chunks('hello', $trailers))->{trailers}, \@sent, 'its own words do not count';
};

subtest 'malformed, and too much' => sub {
	for my $bad ("X Y: 1\r\n", ": 1\r\n", "X: \x01\r\n", "X: 1\n", "X-Sum\r\n", 'X: ' . 'y' x 8192 . "\r\n") {
		my $r = replied('/once', "$head\r\n" . chunks('hello', $bad));
		is_deeply [error_of($r), $r->{trailers}], ['INTERNAL_ERROR', []], 'the stream breaks: ' . substr($bad, 0, 8) =~ s/[^ -~]/./gr;
	}
	my $r = replied('/once', "$head\r\n" . chunks('hello', 'X: ' . 'y' x 8000 . "\r\n"));
	is length $r->{trailers}[0][1], 8000, 'eight thousand bytes pass';
	is @{ replied('/once', "$head\r\n" . chunks('hello', "a: b\r\n" x 256))->{trailers} }, 256, '256 fields pass';
	$r = replied('/once', "$head\r\n" . chunks('hello', "a: b\r\n" x 257));
	is_deeply [$r->{body}, error_of($r), $r->{trailers}], ['hello', 'none', []], 'of more none does';
};

subtest 'another body' => sub {
	my $r = replied('/small', "$head\r\n" . chunks('hello ' x 1000, $trailers), 'Accept-Encoding' => 'gzip');
	is_deeply [$r->{header}{'content-encoding'}, error_of($r), $r->{trailers}], ['gzip', 'none', []], 'compressed: dropped';
	$r = replied('/once', "${head}X-Sendfile: " . $srv->path('file.txt') . "\r\n\r\n" . chunks('hello', $trailers));
	is_deeply [$r->{body}, $r->{trailers}], ['the file', []], 'a file: dropped';
	my ($id, $b) = asked(HEAD => '/once');
	$b->send("$head\r\n");
	$r = ($h->gather($id))[0];
	is_deeply [$r->{status}, error_of($r), $r->{trailers}], [200, 'none', []], 'HEAD has none';
};

subtest 'the connection of the application' => sub {
	my ($id, $b) = asked(GET => '/kept');
	$b->send("$head\r\n" . chunks('hello', $trailers));
	is_deeply(($h->gather($id))[0]{trailers}, \@sent, 'trailers');
	$id = $h->open(GET => '/kept');
	like $b->head, qr{^GET /kept }, 'and the next request';
	$b->send("$head\r\n" . chunks('again', ''));
	is_deeply [($h->gather($id))[0]->@{qw(body trailers)}], ['again', []], 'which has none of them';
};

subtest 'windows' => sub {
	my $body = join '', map { sprintf '%09d ', $_ } 1 .. 100_000;
	for my $n (100_000, 100_010, 1_000_000) {
		local $h = Test::Http2->connect($srv, window => 100_000);
		my ($id, $b) = asked(GET => '/once');
		$b->send("$head\r\n" . chunks(substr($body, 0, $n), $trailers));
		$h->await(sub ($f) { length $h->reply($id)->{body} == 100_000 });
		ok $h->alive && !@{ $h->reply($id)->{trailers} }, "$n bytes wait";
		$h->window_update($_, $n) for 0, $id;
		my ($r) = $h->gather($id);
		ok $r->{body} eq substr($body, 0, $n), 'all of them come';
		is_deeply $r->{trailers}, \@sent, 'then the trailers';
	}
};

subtest 'a client that leaves' => sub {
	my ($id, $b) = asked(GET => '/once');
	$b->send("$head\r\n5\r\nhello\r\n0\r\nX-Sum: ");
	$h->await(sub ($f) { $h->reply($id)->{body} eq 'hello' });
	$h->reset($id);
	ok eventually(sub { $b->rest(0.001); $b->{eof} }), 'in the middle of them frees the application';
	local $h = Test::Http2->connect($srv, window => 10);
	($id, $b) = asked(GET => '/once');
	$b->send("$head\r\n" . chunks('x' x 20, $trailers));
	$h->await(sub ($f) { length $h->reply($id)->{body} == 10 });
	$h->reset($id);
	ok $h->alive, 'while they wait for its window';
	$h->settings(INITIAL_WINDOW_SIZE => 1000);
	is_deeply replied('/once', "$head\r\n" . chunks('hello', $trailers))->{trailers}, \@sent, 'and gets the next ones';
	($id, $b) = asked(GET => '/once');
	$b->send("$head\r\n5\r\nhello\r\n0\r\n$trailers");
	$h->await(sub ($f) { $h->reply($id)->{body} eq 'hello' });
	undef $b;
	my ($r) = $h->gather($id);
	is_deeply [error_of($r), $r->{trailers}], ['INTERNAL_ERROR', []], 'an application that leaves: none';
};

done_testing;
