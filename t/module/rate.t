#!/usr/bin/perl
# connection.kbytes-per-second and server.kbytes-per-second: no reply is faster, keep-alive does not help, clients share
# fairly, and a condition limits its own requests only.

use v5.36;
use Test::More;
use Time::HiRes qw(time);

use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually);

my $KB = 1024;
my $srv = Test::Server->start(conf => <<'END');
server.document-root = "@DIR@"
server.max-worker = 2
mimetype.assign = ( "" => "text/plain" )
status.statistics-url = "/counters"
# the examples of the documentation
$HTTP["host"] == "www.example.org" { server.kbytes-per-second = 128 }
$HTTP["host"] == "client.example.org" { connection.kbytes-per-second = 128 }
$HTTP["host"] == "both.example.org" {
	server.kbytes-per-second = 128
	connection.kbytes-per-second = 32
}
END
$srv->write('big', 'x' x (96 * $KB));
$srv->write('big.slow', 'x' x (24 * $KB));
$srv->write('small', 'y' x (8 * $KB));

# Seconds until this host has sent the file.
sub seconds {
	my ($host, $name, $n) = @_;
	my $start = time;
	is length $srv->fetch("/$name", Host => $host)->{body}, $n, "$host: all of $name";
	return time - $start;
}

# A quarter of a second is sent at once.
cmp_ok seconds('client.example.org', 'big', 96 * $KB), '>', 0.4, 'a connection has its rate';
cmp_ok seconds('www.example.org', 'big', 96 * $KB), '>', 0.4, 'a server has its rate';
cmp_ok seconds('both.example.org', 'big.slow', 24 * $KB), '>', 0.4, 'the lower one holds';

subtest 'keep-alive does not help' => sub {
	my $c = $srv->connect;
	my $start = time;
	for (1 .. 12) {
		$c->send(req('/small') =~ s/Host: x/Host: client.example.org/r);
		is length $c->reply->{body}, 8 * $KB, 'a small reply';
	}
	cmp_ok time - $start, '>', 0.4, 'together they have the rate of one';
};

subtest 'clients share' => sub {
	my @c = map { $srv->connect } 1 .. 4;
	my $start = time;
	$_->send(req('/big.slow') =~ s/Host: x/Host: www.example.org/r) for @c;
	my $other = $srv->fetch('/big');
	my $other_s = time - $start;
	is length $other->{body}, 96 * $KB, 'a request outside of the condition';
	is length $_->reply->{body}, 24 * $KB, 'a client has all' for @c;
	cmp_ok time - $start, '>', 0.4, 'together they have the rate of the server';
	cmp_ok $other_s, '<', time - $start, 'the request outside did not wait for them';
};

# 400 turns are 25 seconds.
subtest 'clients that vanish take no turns of others' => sub {
	my $before = $srv->counter('server.rate-pauses');
	my @c = map { $srv->connect } 1 .. 400;
	$_->send(req('/big') =~ s/Host: x/Host: www.example.org/r) for @c;
	ok eventually(sub { $srv->counter('server.rate-pauses') >= $before + 399 }), 'all but the first wait for their turns';
	$_->abort for @c;
	ok eventually(sub { $srv->counter('server.connections.client-gone') >= 399 }), 'they are noticed while they wait';
	my $start = time;
	is length $srv->fetch('/small', Host => 'www.example.org')->{body}, 8 * $KB, 'the next client has its file';
	cmp_ok time - $start, '<', 10, '... as if they had not been there';
};

done_testing;
