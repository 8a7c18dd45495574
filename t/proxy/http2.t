#!/usr/bin/perl
# Clients of HTTP/2 and applications of each protocol: replies, uploads, replies that break off, clients that leave, tunnels.

use v5.36;
use Digest::MD5 qw(md5_hex);
use Test::More;

use Test::App;
use Test::Backend;
use Test::Http2 qw(:all);
use Test::Server;
use Test::Util qw(PATIENCE eventually put);

my $mounts = Test::Server::own_mounts();
my @protocols = qw(fastcgi scgi http ajp13 uwsgi);
my %app = map { $_ => Test::App->start(protocol => $_) } @protocols;
my $backend = Test::Backend->new;
my $mib = 1 << 20;

sub block ($url, $backend, %set) { return Test::Server::proxy_block("^/$url/", "unix:$backend", 'max-pool-size' => 8, 'max-keep-alive-requests' => 100, %set) }

sub start ($lines = '') {
	return Test::Server->start(conf => qq{server.max-worker = 1\nserver.max-keep-alive-idle = 100\nstatus.statistics-url = "/counters"\nserver.upload-dirs = ( "\@RUN\@" )\n$lines\n}
		. join('', map { block("$_/app", $app{$_}->socket, protocol => $_, 'rewrite-request' => qq{( "_uri" => ( "^/$_(.*)" => "\$1" ) )}) } @protocols)
		. block('raw', $backend->socket, protocol => 'http', upgrade => '( "websocket" )')
		. block('few', $backend->socket, protocol => 'http', upgrade => '( "websocket" )', 'max-tunnels-per-address' => 2)
		. block('none', $backend->socket, protocol => 'http'));
}

sub body_of ($n) { return substr join('', map { md5_hex($_) } 1 .. 1 + $n / 32), 0, $n }
sub summed ($body) { return length($body) . ' ' . md5_hex($body) }
sub error_of ($r) { return defined $r->{error} ? error_name($r->{error}) : 'none' }

my $srv = start();
my $h = Test::Http2->connect($srv);

# Begins a request that the test itself answers: its stream, and the application's end.
sub asked (@request) {
	my $id = $h->open(@request);
	my $b = $backend->accept;
	return ($id, $b, $b->head);
}

sub await_body ($id, $bytes) { return $h->await(sub ($f) { $h->reply($id)->{body} eq $bytes }) }

# ---------------------------------------------------------------- replies

for my $p (@protocols) {
	subtest "replies over $p" => sub {
		my @r = $h->gather(map { $h->open(GET => "/$p/app/$_") } 'env', 'big?100', 'env', 'big?3');
		is_deeply [map { $_->{status} } @r], [(200) x 4], 'four at once';
		is_deeply [map { length $_->{body} } @r[1, 3]], [5_000_000, 150_000], 'with all bytes';
		is $r[1]{header}{'content-length'}, 5_000_000, 'and the length';
		is $r[0]{header}{'content-length'}, undef, 'one that has none';
		is_deeply [map { error_of($_) } @r], [('none') x 4], 'ends as well';
		my $body = body_of(300_000);
		for my $case (['a length', 'Content-Length' => length $body], ['none']) {
			my ($name, @field) = @$case;
			my $r = $h->request(POST => "/$p/app/upload", body => $body, @field);
			is $r->{body}, summed($body), "an upload with $name";
		}
		is $h->request(POST => "/$p/app/upload", 'Content-Length' => 0)->{body}, summed(''), 'an empty one';
		my $r = $h->get("/$p/app/cutlen");
		isnt error_of($r), 'none', 'a reply that breaks off: RST_STREAM';
		is $r->{status}, 200, 'after its head';
		is $r->{body}, 'half of it', 'and what there was';
		is $h->get("/$p/app/hangup")->{status}, 502, 'no reply at all';
		is $h->get("/$p/app/env")->{status}, 200, 'the connection goes on';
	};
}

subtest 'without a length, cut' => sub {
	for my $reply ("Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "Content-Length: 10\r\n\r\nhalf") {
		my ($id, $b) = asked(GET => '/raw/');
		$b->send("HTTP/1.1 200 OK\r\n$reply");
		ok await_body($id, 'half'), 'what there is comes at once';
		$b->abort;
		my ($r) = $h->gather($id);
		is error_of($r), 'INTERNAL_ERROR', 'a reply that is not whole has no end';
	}
};

subtest 'steps of a reply' => sub {
	my ($id, $b) = asked(GET => '/raw/');
	$b->send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
	ok $h->await(sub ($f) { @{ $h->reply($id)->{interim} } }), '103 comes before the reply';
	is $h->reply($id)->{interim}[0]{header}{link}, '</a.css>', 'with its fields';
	$b->send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nX-Mixed: Case\r\n\r\n3\r\none\r\n");
	ok await_body($id, 'one'), 'a first piece';
	is scalar @{ $h->reply($id)->{interim} }, 2, '102 before it';
	is_deeply [map { $h->reply($id)->{header}{$_} } qw(x-mixed connection keep-alive transfer-encoding)], ['Case', undef, undef, undef], 'fields of the connection stay';
	$b->send("3\r\ntwo\r\n");
	ok await_body($id, 'onetwo'), 'a second one';
	$b->send("0\r\n\r\n");
	is error_of(($h->gather($id))[0]), 'none', 'the end';
	$b->abort;
	($id, $b) = asked(GET => '/raw/');
	$b->send("HTTP/1.1 204 No Content\r\n\r\n");
	my ($r) = $h->gather($id);
	is "$r->{status} " . error_of($r), '204 none', 'No Content';
	$b->abort;
	my $head = $h->open(HEAD => '/raw/');
	($b = $backend->accept)->head;
	$b->send("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
	($r) = $h->gather($head);
	is_deeply [$r->{status}, $r->{header}{'content-length'}, $r->{body}], [200, 12_345, ''], 'HEAD';
	$b->abort;
	($id, $b) = asked(GET => '/raw/');
	$b->send("HTTP/1.1 200 OK\r\nX-Long: " . 'l' x 20_000 . "\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok");
	($r) = $h->gather($id);
	is_deeply [length $r->{header}{'x-long'}, $r->{body}, map { $_->[1] } grep { $_->[0] eq 'set-cookie' } @{ $r->{fields} }], [20_000, 'ok', 'a=1', 'b=2'], 'a long head';
	$b->abort;
};

subtest 'X-Sendfile' => sub {
	my $large = body_of(3 * $mib);
	my $path = $srv->write('www/large', $large);
	$app{fastcgi}->note('ended');
	my ($r) = $h->gather($h->open(GET => "/fastcgi/app/file?$path"), $h->open(GET => '/fastcgi/app/env'));
	is $r->{header}{'content-length'}, length $large, 'the length of the file';
	is md5_hex($r->{body}), md5_hex($large), 'and its bytes';
	is $h->get("/fastcgi/app/file?$path", Range => 'bytes=5-9')->{body}, substr($large, 5, 5), 'a range of it';
};

# ---------------------------------------------------------------- uploads

subtest 'large uploads' => sub {
	my $body = body_of(6 * $mib);
	for my $set ('server.stream-request-body = 0', 'server.stream-request-body = 1', "server.stream-request-body = 0\nserver.max-spool-memory = 1000") {
		my $s = start($set);
		my $k = Test::Http2->connect($s);
		for my $case (['a length', 'Content-Length' => length $body], ['none']) {
			my ($name, @field) = @$case;
			is $k->request(POST => '/fastcgi/app/sum', body => $body, @field)->{body}, summed($body), "6 MiB with $name, $set" =~ s/\n/, /r;
		}
		my @id = map { $k->open(POST => '/fastcgi/app/sum', end => 0) } 1 .. 4;
		for my $i (0 .. 3) { $k->data($_, substr $body, $i << 19, 1 << 19) for @id }
		$k->data($_, '', end => 1) for @id;
		is_deeply [map { $_->{body} } $k->gather(@id)], [(summed(substr $body, 0, 4 << 19)) x 4], 'four at once, piece by piece';
		ok eventually(sub { $s->counter('server.spool.files-opened') == $s->counter('server.spool.files-closed') }), 'no spool file is left';
	}
};

subtest 'a body of the wrong length' => sub {
	my $id = $h->open(POST => '/fastcgi/app/upload', end => 0, 'Content-Length' => 10);
	$h->data($id, 'short', end => 1);
	is error_of(($h->gather($id))[0]), 'PROTOCOL_ERROR', 'shorter than announced';
	$id = $h->open(POST => '/fastcgi/app/upload', end => 0, 'Content-Length' => 3);
	$h->data($id, 'longer', end => 1);
	is error_of(($h->gather($id))[0]), 'PROTOCOL_ERROR', 'longer';
	my $s = start('server.max-request-size = 1');
	my $k = Test::Http2->connect($s);
	for my $set (['a length', 'Content-Length' => 5000], ['none']) {
		my ($name, @field) = @$set;
		is $k->request(POST => '/fastcgi/app/upload', body => 'x' x 5000, @field)->{status}, 413, "too long, $name";
	}
	is $k->get('/fastcgi/app/env')->{status}, 200, 'the connection goes on';
};

subtest 'trailers of a request are dropped' => sub {
	my $id = $h->open(POST => '/fastcgi/app/upload', end => 0);
	$h->data($id, 'body', end => 1, trailers => [['x-trailer', 'a']]);
	is(($h->gather($id))[0]{body}, summed('body'), 'the body ends');
};

subtest 'an application that answers early' => sub {
	my $s = start('server.stream-request-body = 1');
	my $k = Test::Http2->connect($s);
	my $id = $k->open(POST => '/fastcgi/app/refuse', end => 0, 'Content-Length' => 2000);
	$k->data($id, 'x' x 1000);
	my ($r) = $k->gather($id);
	is "$r->{status} $r->{body}", '413 too much', 'the reply is read before the body ends';
	is $k->get('/fastcgi/app/env')->{status}, 200, 'the connection goes on';
	$k->frame(DATA, END_STREAM, $id, 'x' x 1000) if !defined $r->{error};
	is $k->get('/fastcgi/app/env')->{status}, 200, '... when the rest of the body comes, too';
	$id = $k->open(POST => '/file', end => 0);
	is(($k->gather($id))[0]{status}, 405, 'a body that nobody wants is not awaited');
};

# ---------------------------------------------------------------- clients that leave

subtest 'a client that resets' => sub {
	my ($id, $b) = asked(GET => '/raw/wait');
	$h->reset($id);
	is $b->rest, '', 'the application sees the end';
	ok !$b->{timed_out}, 'at once';
	($id, $b) = asked(GET => '/raw/half');
	$b->send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
	ok await_body($id, 'half'), 'in the middle of a reply';
	$h->reset($id);
	ok $h->alive, 'a reset';
	is $b->rest, '', 'is noticed at once';
	my $s = start('server.stream-request-body = 1');
	my $k = Test::Http2->connect($s);
	$id = $k->open(POST => '/raw/up', end => 0);
	$k->data($id, 'part');
	($b = $backend->accept)->head;
	is $b->take(9), "4\r\npart\r\n", 'in the middle of an upload';
	$k->reset($id);
	is $b->rest, '', 'which has no end';
	is $k->get('/fastcgi/app/env')->{status}, 200, 'the other streams go on';
	my @id = map { $k->open(GET => '/raw/gone') } 1 .. 3;
	my @b = map { my $x = $backend->accept; $x->head; $x } @id;
	$k->abort;
	is_deeply [map { $_->rest } @b], ['', '', ''], 'a connection that vanishes ends all';
	is $h->get('/fastcgi/app/env')->{status}, 200, 'other connections go on';
};

# ---------------------------------------------------------------- tunnels

my @websocket = (':protocol' => 'websocket', 'Sec-WebSocket-Version' => 13);
my $switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\nX-Mine: 1\r\n\r\n";

sub tunnel ($k = $h, $path = '/raw/ws') {
	my $id = $k->open(CONNECT => $path, @websocket, end => 0);
	my $b = $backend->accept;
	my $head = $b->head;
	$b->send($switch);
	$k->await(sub ($f) { $k->reply($id)->{status} });
	return ($id, $b, $head);
}

subtest 'WebSocket (RFC 8441)' => sub {
	is $h->{settings}{ +ENABLE_CONNECT_PROTOCOL }, 1, 'the server offers it';
	my ($id, $b, $head) = tunnel();
	like $head, qr{^GET /raw/ws HTTP/1\.1\r$}m, 'the application is asked as in HTTP/1';
	like $head, qr/^$_\r$/mi, $_ for 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Key: \S{22}==', 'Sec-WebSocket-Version: 13', 'Host: localhost';
	unlike $head, qr/^(?:Transfer-Encoding|Content-Length|:)/mi, 'without a body';
	is $h->reply($id)->{status}, 200, 'the client gets 200';
	is_deeply [map { $h->reply($id)->{header}{$_} } qw(x-mine upgrade connection sec-websocket-accept)], [1, undef, undef, undef], 'without the fields of the switch';
	$h->data($id, "\0\1from the client");
	is $b->take(17), "\0\1from the client", 'bytes to the application';
	$b->send("\0\2from the application");
	ok await_body($id, "\0\2from the application"), 'bytes to the client';
	my ($there, $back) = (body_of($mib), '');
	for my $piece (unpack '(a65536)*', $there) {
		$h->data($id, $piece);
		my $got = $b->take(length $piece);
		$back .= $got;
		$b->send($got);
	}
	ok $back eq $there, 'a megabyte to it';
	ok await_body($id, "\0\2from the application$there"), 'and back';
	is $h->get('/fastcgi/app/env')->{status}, 200, 'another stream beside it';
	$h->data($id, 'last', end => 1);
	is $b->take(4), 'last', 'the client ends';
	is $b->rest, '', 'which the application sees';
	$b->send('still');
	close $b->sock;
	my ($r) = $h->gather($id);
	is error_of($r), 'none', 'the application ends: so does the stream';
	like $r->{body}, qr/still\z/, 'with what it has sent after the end of the client';
	($id, $b) = tunnel();
	$b->send('bye');
	$b->finish;
	ok await_body($id, "bye"), 'the application ends first';
	$h->data($id, 'more', end => 1);
	is $b->rest, 'more', 'and the client may still send';
	is error_of(($h->gather($id))[0]), 'none', 'then the end';
	($id, $b) = tunnel();
	$h->reset($id);
	is $b->rest, '', 'a reset by the client ends a tunnel';
	($id, $b) = tunnel();
	$b->abort;
	($r) = $h->gather($id);
	ok $h->{stream}{$id}{over}, 'an application that crashes ends the stream';
	$h->reset($id); # its own half was open
};

subtest 'no tunnel' => sub {
	my $id = $h->open(CONNECT => '/raw/no', @websocket, end => 0);
	(my $b = $backend->accept)->head;
	$b->send("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
	my ($r) = $h->gather($id);
	is "$r->{status} $r->{body}", '403 no', 'the application refuses';
	ok $h->alive, 'the connection goes on';
	my ($other) = $h->gather($h->open(CONNECT => '/raw/no', ':protocol' => 'other', end => 0));
	cmp_ok $other->{status}, '>=', 400, 'another protocol is refused';
	ok !$backend->waits, 'without the application';
	my @r = map { ($h->gather($h->open(CONNECT => $_, @websocket, end => 0)))[0]{status} } '/nothing', '/fastcgi/app/env';
	is "@r", '404 501', 'a file or another application is none: no 2xx';
	my @t = map { [tunnel($h, '/few/ws')] } 1 .. 2;
	($r) = $h->gather($h->open(CONNECT => '/few/ws', @websocket, end => 0));
	is $r->{status}, 429, 'one more than proxy-core.max-tunnels-per-address';
	ok eventually(sub { $srv->counter('proxy-core.tunnels-refused') == 1 }), 'is counted';
	$h->reset($_->[0]) for @t;
	is $_->[1]->rest, '', 'ended' for @t;
	my $k = Test::Http2->connect($srv);
	$k->{stream}{1} = { window => 65_535, reply => { body => '', status => 0 } };
	$k->headers(1, [[':method', 'CONNECT'], [':authority', 'x:80']]);
	($r) = $k->gather(1);
	ok $r->{status} >= 400 || defined $r->{error}, 'CONNECT to a host is refused';
};

done_testing;
