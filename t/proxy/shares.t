#!/usr/bin/perl
# One address never keeps every socket of an application: what it holds slowly gives way when a client of another address waits.

use v5.36;
use IO::Select ();
use Test::More;
use Time::HiRes qw(time);

use Test::Backend;
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually);
use Test::WebSocket ();

use constant { POOL => 4, FLOOD => 12, WAIT => 20 };

my $switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
my $large = "HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n" . 'x' x 8_000_000;
my $post = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n0123456789";

# What the flood asks for; what the application says then; what the log says of the one that gives way.
my %kind = (
	tunnels => { ask => sub { Test::WebSocket::request($_[0]) }, say => $switch, log => 'a tunnel' },
	readers => { ask => \&req, say => $large, log => 'its client reads slowly', set => { 'max-reply-spool' => 0 } },
	uploads => { ask => sub { sprintf $post, @_ }, say => '', log => 'its body comes slowly' },
	pages   => { ask => \&req, say => '', log => 'the application has not answered' },
	proxy   => { ask => \&req, say => '', from => '127.0.0.3', set => { 'wait-timeout' => 15 } },
);
my @kinds = sort keys %kind;

my $conf = qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\nserver.stream-request-body = 1\n}
    . qq{extforward.forwarder = ( "127.0.0.3" => "trust" )\nextforward.headers = ( "X-Forwarded-For" )\n};
for my $k (@kinds) {
	$kind{$k}{backend} = Test::Backend->new;
	$conf .= Test::Server::proxy_block("^/$k", 'unix:' . $kind{$k}{backend}->socket, protocol => 'http', 'max-pool-size' => POOL, upgrade => '( "websocket" )',
		'wait-timeout' => WAIT, %{ $kind{$k}{set} // {} });
}
my $srv = Test::Server->start(conf => $conf);

# The application says what it says, as far as it is read, and keeps the socket.
sub hold ($k) {
	my $b = $k->{backend}->accept;
	$b->head;
	my $at = 0;
	while ($at < length $k->{say} && IO::Select->new($b->sock)->can_write(0.2)) { $at += syswrite($b->sock, $k->{say}, length($k->{say}) - $at, $at) // 0 }
	return $b;
}

for my $name (@kinds) {
	my $k = $kind{$name};
	for my $i (1 .. FLOOD) {
		push @{ $k->{flood} }, $srv->connect(from => $k->{from} // '127.0.0.1', rcvbuf => 4096);
		$k->{flood}[-1]->send($k->{ask}->("/$name/$i"));
		push @{ $k->{held} }, hold($k) if $i <= POOL;
	}
	$k->{heads} = [map { $_->head } @{ $k->{flood} }[0 .. POOL - 1]] if $name eq 'tunnels';
}

my $began = time;
for my $name (@kinds) {
	my $c = $kind{$name}{other} = $srv->connect(from => '127.0.0.2');
	$c->send(req("/$name/other", 'Connection: close'));
}

for my $name (grep { !$kind{$_}{from} } reverse @kinds) {     # pages wait longest
	my $k = $kind{$name};
	subtest "one address has every socket: $name" => sub {
		my $b = $k->{backend}->accept or return fail 'the other address gets a socket';
		my ($path) = $b->head =~ m{^GET (\S+)};
		is $path, "/$name/other", 'the other address gets the next socket';
		$b->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
		is $k->{other}->reply->{body}, 'ok', sprintf 'and its answer, after %.1f s', time - $began;
		my ($line) = grep { m{ url=/$name/} } $srv->wait_lines(1, qr{ev=exchange\.gave-way .* url=/$name/});
		like $line, qr{ client=127\.0\.0\.1 backend=unix:\S+ url=/$name/[1-4] holder="$k->{log}" why="a client of another address has no socket}, 'the log says who gave way, and why';
		my ($gone) = $line =~ m{ url=/$name/([1-4]) };
		is scalar(grep { m{ev=exchange\.gave-way .* url=/$name/} } split /\n/, $srv->log), 1, 'one gave way';
		if ($name eq 'pages' || $name eq 'uploads') {
			my $r = $k->{flood}[$gone - 1]->reply;
			is $r->{status}, 503, 'its client gets 503';
			ok $r->{header}{'retry-after'}, 'and may try again later';
		} else {
			ok eventually(sub { $k->{flood}[$gone - 1]->rest; $k->{flood}[$gone - 1]->closed }), 'its connection is cut';
		}
	};
}

subtest 'a proxy that does not name its clients is not one client' => sub {
	my $k = $kind{proxy};
	is $k->{other}->reply->{status}, 503, 'nothing makes way';
	unlike $srv->log, qr{ev=exchange\.gave-way .* url=/proxy/}, 'none of its requests is ended';
};

is $srv->counter('proxy-core.gave-way'), 4, 'those that gave way are counted';

done_testing;
