#!/usr/bin/perl
# Connections that switch to another protocol: a real WebSocket application, and tunnels byte by byte.

use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use POSIX ();
use Test::More;

use Test::Backend;
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually put);
use Test::WebSocket qw(:all);

my $dir = File::Temp->newdir('accel-ws-XXXXXX', TMPDIR => 1);
my $backend = Test::Backend->new;

put("$dir/echo.py", <<'PYTHON');
import asyncio, sys, websockets
async def echo(ws, path=None):
    try:
        async for m in ws:
            await ws.send(m)
    except websockets.ConnectionClosed:
        pass
async def main():
    async with websockets.unix_serve(echo, sys.argv[1], max_size=None, ping_interval=None):
        print("up", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
PYTHON

# Ends with this process, whose end of its standard input closes.
sub start_echo {
	my ($python) = grep { system("$_ -c 'import websockets' 2>/dev/null") == 0 } qw(/usr/bin/python3 python3);
	if (!$python) {
		die "the package python3-websockets is missing; run scripts/install-deps\n" if Test::Util::find_program('apt-get');
		return undef;
	}
	pipe my $in, my $life or die "pipe: $!";
	pipe my $out, my $w or die "pipe: $!";
	defined(my $pid = fork) or die "fork: $!";
	if (!$pid) {
		close $life;
		POSIX::dup2(fileno $in, 0);
		POSIX::dup2(fileno $w, 1);
		exec $python, "$dir/echo.py", "$dir/echo.sock" or POSIX::_exit(127);
	}
	close $w;
	die "the echo does not start\n" if (readline($out) // '') ne "up\n";
	return { life => $life, pid => $pid };
}

my $lines = qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n};

sub block {
	my ($url, $socket, %more) = @_;
	return Test::Server::proxy_block("^$url", "unix:$socket", protocol => 'http', 'max-pool-size' => 100, 'max-keep-alive-requests' => 100,
		upgrade => '( "websocket" )', %more);
}

my $srv = Test::Server->start(conf => $lines . block('/ws', "$dir/echo.sock") . block('/raw', $backend->socket)
    . block('/no', $backend->socket, upgrade => '( "h2c", "other" )') . block('/idle', $backend->socket, 'read-timeout' => 1, 'reply-timeout' => 60)
    . block('/few', $backend->socket, 'max-tunnels-per-address' => 2));

my $switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Mine: 1\r\n\r\n";

# A tunnel: the client's end and the application's.
sub tunnel {
	my ($path, $s) = @_;
	my $c = ($s // $srv)->connect;
	$c->send(Test::WebSocket::request($path // '/raw'));
	my $b = $backend->accept;
	my $head = $b->head;
	$b->send($switch);
	return ($c, $b, $head, $c->head);
}

# ---------------------------------------------------------------- byte by byte

subtest 'the switch' => sub {
	my ($c, $b, $asked, $heard) = tunnel();
	like $asked, qr/^Connection: Upgrade\r$/mi, 'the application is asked';
	like $asked, qr/^Upgrade: websocket\r$/m, 'for the protocol';
	is $heard, $switch, 'and its answer passes';
	$b->send("\0\1from the application");
	is $c->take(22), "\0\1from the application", 'bytes to the client';
	$c->send("\0\2from the client\r\n\r\nGET / HTTP/1.1\r\n");
	is $b->take(37), "\0\2from the client\r\n\r\nGET / HTTP/1.1\r\n", 'bytes to the application, whatever they look like';
	is $srv->counter('proxy-core.tunnels'), 1, 'counted';
	close $c->sock;
	is $b->rest, '', 'the end';
	undef $b;
	my $d = $srv->connect;
	$d->send(Test::WebSocket::request('/raw'));
	ok $backend->waits(60), 'the socket of a tunnel is not used again';
	($b = $backend->accept)->head;
	$b->send("${switch}at once");
	is $d->head, $switch, 'bytes after the head';
	is $d->take(7), 'at once', 'pass, too';
};

subtest 'an address has this many tunnels' => sub {
	my @tunnel = map { [tunnel('/few')] } 1, 2;
	my $c = $srv->connect;
	$c->send(Test::WebSocket::request('/few'));
	is $c->reply->{status}, 429, 'one more is refused';
	ok !$backend->waits, 'without the application';
	like $srv->wait_log(qr/ev=tunnel\.refused/), qr/ev=tunnel\.refused .*client=127\.0\.0\.1 tunnels=2 why="proxy-core\.max-tunnels-per-address is reached/, 'the log says why';
	is $srv->counter('proxy-core.tunnels-refused'), 1, 'and it is counted';
	my $other = $srv->connect(from => '127.0.0.2');
	$other->send(Test::WebSocket::request('/few'));
	my $b = $backend->accept;
	$b->head;
	$b->send($switch);
	is $other->head, $switch, 'another address has its own';
	$_->abort for $tunnel[0][0];
	is $tunnel[0][1]->rest, '', 'a tunnel ends';
	ok eventually(sub {
		my $d = $srv->connect;
		$d->send(Test::WebSocket::request('/few'));
		return 1 if $backend->waits(0.2);
		$d->reply;
		return 0;
	}), 'and the next one may begin';
	$backend->accept;
};

subtest 'an application that refuses' => sub {
	my $c = $srv->connect;
	for my $status (200, 400) {
		$c->send(Test::WebSocket::request('/raw'));
		my $b = $backend->accept;
		$b->head;
		$b->send("HTTP/1.1 $status Refused\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
		my $r = $c->reply;
		is "$r->{status} $r->{body}", "$status no", "$status is a reply like others";
	}
	$c->send(req('/counters'));
	is $c->reply->{status}, 200, 'and the connection goes on';
};

subtest 'what is not allowed' => sub {
	my @case = (
		['another protocol', req('/no', 'Connection: Upgrade', 'Upgrade: websocket')],
		['Upgrade without Connection', req('/raw', 'Upgrade: websocket')],
		['HTTP/1.0', "GET /raw HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
		['POST', "POST /raw HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
		['a body', "GET /raw HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi"],
	);
	for my $case (@case) {
		my $c = $srv->connect;
		$c->send($case->[1]);
		my $b = $backend->accept;
		unlike $b->head, qr/^(?:Upgrade|Connection: *Upgrade)/mi, "$case->[0]: the application does not hear of the wish";
		$b->send($switch);
		is $c->reply->{status}, 502, 'and must not switch';
	}
	my $c = $srv->connect;
	$c->send(Test::WebSocket::request('/raw'));
	my $b = $backend->accept;
	$b->head;
	$b->send($switch =~ s/websocket/other/r);
	is $c->reply->{status}, 502, 'nor switch to another protocol';
	$c = $srv->connect;
	$c->send(req('/no', 'Connection: Upgrade', 'Upgrade: websocket, Other'));
	$b = $backend->accept;
	like $b->head, qr/^Upgrade: other\r$/m, 'one of several protocols is chosen';
};

subtest 'each side may end its direction' => sub {
	my ($c, $b) = tunnel();
	$c->send('last words');
	$c->finish;
	is $b->rest, 'last words', 'the application hears that the client sends no more';
	$b->send('answer');
	is $c->take(6), 'answer', 'and may still send';
	undef $b;
	is $c->rest, '', 'then both have ended';
	ok !$c->{reset}, 'without a reset';
	($c, $b) = tunnel();
	$b->send('last words');
	$b->finish;
	is $c->rest, 'last words', 'the client hears that the application sends no more';
	$c->send('answer');
	is $b->take(6), 'answer', 'and may still send';
	close $c->sock;
	is $b->rest, '', 'then both have ended';
};

subtest 'a side that does not read stops the other one' => sub {
	my $piece = join '', map { chr $_ % 251 } 1 .. 100_000;
	my $before = $srv->rss;
	for my $way (0, 1) {
		my @end = (tunnel())[0, 1];
		my ($from, $to) = $way ? reverse @end : @end;
		my ($at, $idle) = (0, 0);
		while ($idle < 10 && $at < 60_000_000) {
			my $n = $from->push(substr $piece x 2, $at % 100_000, 100_000);
			$idle = $n == 0 ? $idle + 1 : 0;
			$at += $n;
			select undef, undef, undef, 0.005 if $n == 0;
		}
		cmp_ok $at, '<', 60_000_000, ($way ? 'client' : 'application') . ' that does not read';
		my $got = $to->take($at);
		is length $got, $at, 'gets all of it later';
		is md5_hex($got), md5_hex(substr $piece x ($at / 100_000 + 1), 0, $at), 'unchanged';
	}
	cmp_ok $srv->rss - $before, '<', Test::Util::sanitized() ? 60 : 10, 'in bounded memory';
};

subtest 'the ends of a tunnel' => sub {
	my ($c, $b) = tunnel();
	$c->abort;
	ok eventually(sub { $b->rest(0.001); $b->{eof} }), 'a client that resets ends it';
	($c, $b) = tunnel();
	$b->send('half');
	is $c->take(4), 'half', 'bytes, then';
	undef $b;
	is $c->rest, '', 'an application that leaves';
	($c, $b) = tunnel('/idle');
	is $c->rest, '', 'silence of proxy-core.read-timeout seconds';
	ok !$c->{reset}, 'is an end without a reset';
};

subtest 'reload, stop' => sub {
	my $s = Test::Server->start(conf => $lines . block('/raw', $backend->socket));
	my ($c, $b) = tunnel('/raw', $s);
	$s->signal('USR1');
	$s->log_has(qr{ev=reloaded}, "a reload");
	is $s->request(req('/counters', 'Connection: close')) =~ m{\AHTTP/1\.1 200 } && 1, 1, 'the next generation answers';
	$c->send('still');
	is $b->take(5), 'still', 'and the tunnel goes on';
	$b->send('here');
	is $c->take(4), 'here', 'in both directions';
	my ($status, $seconds) = $s->term;
	is $status, 0, 'TERM ends it';
	is $c->rest, '', 'for the client';
	is $b->rest, '', 'and the application';
	$s = Test::Server->start(conf => qq{server.feature-flags = ( "server.graceful-shutdown-timeout" => 3 )\n} . $lines . block('/raw', $backend->socket));
	($c, $b) = tunnel('/raw', $s);
	$s->signal('INT');
	$c->send('still');
	is $b->take(5), 'still', 'INT lets a tunnel go on';
	is $s->wait_exit, 0, 'for server.graceful-shutdown-timeout seconds';
	is $c->rest, '', 'then it is cut';
};

# ---------------------------------------------------------------- a real application

SKIP: {
	my $echo = start_echo() or skip 'python3-websockets is missing', 1;
	subtest 'a WebSocket echo' => sub {
		my $ws = Test::WebSocket->over($srv->connect);
		my $r = $ws->open('/ws');
		is $r->{status}, 101, 'switched';
		is $r->{header}{'sec-websocket-accept'}, Test::WebSocket::accept_of(Test::WebSocket::KEY), 'with the right answer to the key';
		$ws->frame(TEXT, 'hello');
		is_deeply [$ws->read], [TEXT, 'hello'], 'text';
		my $big = join '', map { chr $_ % 251 } 1 .. 1 << 20;
		$ws->frame(BINARY, $big);
		my ($opcode, $got) = $ws->read;
		is "$opcode " . md5_hex($got), BINARY . ' ' . md5_hex($big), 'a megabyte';
		$ws->frame(PING, 'are you there');
		is_deeply [$ws->read], [PONG, 'are you there'], 'ping and pong';
		$ws->frame(CLOSE, pack 'n', 1000);
		is_deeply [$ws->read], [CLOSE, pack 'n', 1000], 'close frames';
		ok $ws->conn->closed, 'then the end';
	};
	subtest 'twenty at once, one of which reads slowly, and one vanishes' => sub {
		my @ws = map { Test::WebSocket->over($srv->connect($_ == 0 ? (rcvbuf => 4096) : ())) } 0 .. 19;
		is_deeply [map { $_->open('/ws')->{status} } @ws], [(101) x 20], 'all are switched';
		my $big = 'slow' x 100_000;
		$ws[0]->frame(BINARY, $big);
		$ws[1]->frame(BINARY, $big);
		$ws[1]->conn->abort;
		for my $round (1 .. 5) {
			$ws[$_]->frame(TEXT, "$round of $_") for 2 .. 19;
			is_deeply [map { ($ws[$_]->read)[1] } 2 .. 19], [map { "$round of $_" } 2 .. 19], "round $round";
		}
		my ($opcode, $got) = $ws[0]->read;
		is md5_hex($got), md5_hex($big), 'the slow one gets all of it';
		close $_->conn->sock for @ws;
	};
	close $echo->{life};
	waitpid $echo->{pid}, 0;
}

done_testing;
