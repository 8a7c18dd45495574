#!/usr/bin/perl
# Replies of applications, compressed: which ones, their heads, pieces that come late, ends that come early.

use v5.36;
use Compress::Raw::Zlib ();
use Test::More;

use Test::Backend;
use Test::Coding qw(plain);
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually);

my $text = join '', map { "line $_ of a page that is worth it\n" } 1 .. 400;
my $long = join '', map { sprintf "%04x %d\n", $_ * 2_654_435_761 % 65_536, $_ } 1 .. 60_000;
my $back = Test::Backend->new;
my $srv  = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
	. qq{deflate.mimetypes = ( "text/", "application/json" )\ndeflate.allowed-encodings = ( "gzip", "br", "zstd", "deflate" )\n}
	. qq{\$HTTP["url"] =~ "^/files" { deflate.max-compress-size = 1 }\n}
	. Test::Server::proxy_block('^/app', 'unix:' . $back->socket, protocol => 'http', 'allow-x-sendfile' => 'enable'));

# The client's connection, and the application's, after a request with these lines.
sub request {
	my ($method, @lines) = @_;
	my $c = $srv->connect;
	$c->send(req('/app', @lines) =~ s/^GET/$method/r);
	my $x = $back->accept;
	$x->head;
	return ($c, $x);
}

# The client's reply to one of the application.
sub answer {
	my ($reply, @lines) = @_;
	my ($c, $x) = request('GET', @lines);
	$x->send($reply);
	my $r = $c->reply;
	$x->abort;
	return $r;
}

sub page ($body, @lines) {
	return join "\r\n", 'HTTP/1.1 200 OK', 'Content-Type: text/html', 'Content-Length: ' . length $body, @lines, '', $body;
}

for my $coding (qw(gzip br zstd deflate)) {
	for my $body ($text, $long) {
		my $r = answer(page($body, 'ETag: "a"', 'Accept-Ranges: bytes', 'Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT'), "Accept-Encoding: $coding");
		is plain($r), $body, "$coding: " . length($body) . ' bytes';
		my $h = $r->{header};
		is $h->{'content-encoding'}, $coding, '... its name';
		is_deeply [ @$h{qw(content-length transfer-encoding accept-ranges)} ], [ undef, 'chunked', undef ], '... chunks instead of a length and ranges';
		is $h->{etag}, 'W/"a"', '... a weak tag';
		is $h->{vary}, 'Accept-Encoding', '... Vary';
		is $h->{'last-modified'}, 'Sun, 06 Nov 1994 08:49:37 GMT', '... the date';
	}
}

# Which replies are compressed, and which only say that they could be.
my @rows = (
	[ 'a page', page($text), 'gzip Accept-Encoding' ],
	[ 'a chunked page', "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n" . sprintf("%x\r\n%s\r\n0\r\n\r\n", length $text, $text), 'gzip Accept-Encoding' ],
	[ 'an error page', page($text) =~ s/200 OK/404 Not Found/r, 'gzip Accept-Encoding' ],
	[ 'JSON', page($text) =~ s{text/html}{application/json; charset=utf-8}r, 'gzip Accept-Encoding' ],
	[ 'another type', page($text) =~ s{text/html}{image/png}r, '- -' ],
	[ 'no type', page($text) =~ s{Content-Type: text/html\r\n}{}r, '- -' ],
	[ 'a short page', page('x' x 255), '- -' ],
	[ 'a long enough page', page('x' x 256), 'gzip Accept-Encoding' ],
	[ 'no-transform', page($text, 'Cache-Control: public, no-transform'), '- -' ],
	[ 'another Cache-Control', page($text, 'Cache-Control: private'), 'gzip Accept-Encoding' ],
	[ 'an application that compresses', page($text, 'Content-Encoding: x-own'), 'x-own -' ],
	[ 'a part', page($text, 'Content-Range: bytes 0-1/2') =~ s/200 OK/206 Partial Content/r, '- -' ],
	[ 'a Vary of its own', page($text, 'Vary: Cookie'), 'gzip Cookie, Accept-Encoding' ],
);
for (@rows) {
	my ($name, $reply, $want) = @$_;
	my $r = answer($reply, 'Accept-Encoding: gzip');
	is join(' ', map { $r->{header}{$_} // '-' } qw(content-encoding vary)), $want, $name;
	like $reply, qr/\Q@{[ plain($r) ]}\E(?:\r\n0\r\n\r\n)?\z/, '... contents' if $want !~ /^x-own/;
}
my $r = answer(page($text, 'ETag: "a"'));
is "$r->{header}{vary} $r->{header}{etag} $r->{body}", qq{Accept-Encoding "a" $text}, 'a client that takes nothing gets the page as it is, with Vary';

subtest 'HEAD' => sub {
	my ($c, $x) = request('HEAD', 'Accept-Encoding: gzip');
	$x->send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n");
	my $raw = '';
	eventually(sub { $c->_wait(0, time + 5) && sysread $c->sock, $raw, 4096, length $raw; $raw =~ /\r\n\r\n/ });
	like $raw, qr/^Vary: Accept-Encoding\r$/m, 'Vary';
	unlike $raw, qr/^Content-Encoding/m, 'no coding';
	$_->abort for $c, $x;
};

subtest 'HTTP/1.0' => sub {
	my $c = $srv->connect;
	$c->send("GET /app HTTP/1.0\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n");
	my $x = $back->accept;
	$x->head;
	$x->send(page($text));
	my $got = Test::Http::parse($c->rest);
	is plain($got), $text, 'the end of the connection is the end of the body';
	is $got->{header}{'transfer-encoding'}, undef, 'no chunks';
	$x->abort;
};

# All bytes that have come so far, decoded, when there are n of them.
sub so_far ($c, $raw, $n) {
	my $out = '';
	eventually(sub {
		sysread $c->sock, $$raw, 65536, length $$raw if $c->_wait(0, time + 1);
		my $chunks = $$raw =~ s/\A.*?\r\n\r\n//sr;
		my $in = '';
		while ($chunks =~ s/\A([0-9a-f]+)\r\n//) {
			my $size = hex $1;
			last if length $chunks < $size + 2;
			$in .= substr $chunks, 0, $size;
			substr $chunks, 0, $size + 2, '';
		}
		my $z = Compress::Raw::Zlib::Inflate->new(-WindowBits => Compress::Raw::Zlib::WANT_GZIP(), -AppendOutput => 1);
		$out = '';
		$z->inflate($in, $out) if length $in;
		return length $out >= $n;
	});
	return $out;
}

subtest 'a stream is not held back' => sub {
	my ($c, $x) = request('GET', 'Accept-Encoding: gzip');
	my ($raw, $all) = ('', '');
	$x->send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
	for my $i (1 .. 4) {
		my $event = "data: event $i\n\n";
		$x->send(sprintf "%x\r\n%s\r\n", length $event, $event);
		$all .= $event;
		is so_far($c, \$raw, length $all), $all, "event $i arrives before the next is sent";
	}
	$_->abort for $c, $x;
};

subtest 'ends that come early' => sub {
	my ($c, $x) = request('GET', 'Accept-Encoding: gzip');
	$x->send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500000\r\n\r\n" . substr $long, 0, 100_000);
	my $raw = '';
	so_far($c, \$raw, 100_000);
	$x->abort;
	unlike $c->rest, qr/\r\n0\r\n\r\n\z/, 'the application breaks off: no last chunk';
	($c, $x) = request('GET', 'Accept-Encoding: br');
	$x->send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500000\r\n\r\n" . substr $long, 0, 200_000);
	$c->abort;
	$x->abort;
	is plain(answer(page($text), 'Accept-Encoding: gzip')), $text, 'a client that leaves disturbs nobody';
};

subtest 'a file that the application names' => sub {
	$srv->write('page.txt', $text);
	$srv->settle('page.txt');
	for my $pass (1 .. 2) {
		my $got = answer("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Sendfile: @{[ $srv->path('page.txt') ]}\r\nContent-Length: 0\r\n\r\n", 'Accept-Encoding: gzip');
		is plain($got), $text, "pass $pass: contents";
		is "$got->{header}{'content-encoding'} $got->{header}{'content-type'} $got->{header}{vary}", 'gzip text/html Accept-Encoding', '... head';
	}
	my $got = answer("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nX-Sendfile: @{[ $srv->path('page.txt') ]}\r\nContent-Length: 0\r\n\r\n", 'Accept-Encoding: gzip');
	is $got->{header}{'content-encoding'}, undef, 'the type of the application decides';
};

subtest 'a client that reads slowly' => sub {
	my ($c, $x) = request('GET', 'Accept-Encoding: gzip');
	my $body = $long x 6;
	$x->send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " . length($body) . "\r\n\r\n");
	$x->send($body);
	my $got = $c->reply;
	ok plain($got) eq $body, 'gets all bytes';
	$x->abort;
};
cmp_ok $srv->counter('server.deflate.streams'), '>', 10, 'they are counted';
done_testing;
