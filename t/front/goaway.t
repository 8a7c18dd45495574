# t/front: a server of HTTP/2 ends its connection, and the client of HTTP/1.1 goes on.  The server is this test, frame by frame.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Select ();
use IO::Socket::INET ();
use Test::Front ();
use Test::Http qw(req);
use Test::Http2 qw(:all);
use Test::More;
use Test::Util qw(PATIENCE);

use constant NO_LAST => 0x7fffffff;

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
my $front = Test::Front->start($listener->sockport);

# The next connection of the front.
sub next_server {
	IO::Select->new($listener)->can_read(PATIENCE) or return undef;
	my $s = Test::Http::Conn->over(scalar $listener->accept);
	$s->take(length PREFACE);
	say_frame($s, SETTINGS, 0, 0, '');
	return $s;
}

sub say_frame ($s, @frame) { return $s->send(Test::Http2::frame_bytes(@frame)) }
sub goaway ($s, $last, $code = NO_ERROR) { return say_frame($s, GOAWAY, 0, 0, pack 'NN', $last, $code) }
# As one segment: a reset drops what has not left.
sub answer ($s, $id, $text) {
	my @frame = ([HEADERS, END_HEADERS, $id, hpack([[':status', 200], ['content-length', length $text]])], [DATA, END_STREAM, $id, $text]);
	return $s->send(join '', map { Test::Http2::frame_bytes(@$_) } @frame);
}

# The number of the stream of the next frame of this type with these flags.
sub await ($s, $type, $flags = 0) {
	while (length(my $head = $s->take(9)) == 9) {
		my ($high, $low, $is, $has, $id) = unpack 'CnCCN', $head;
		$s->take($high << 16 | $low);
		return $id if $is == $type && ($has & $flags) == $flags;
	}
	return undef;
}

sub begin (@requests) {
	my $c = Test::Http::Conn->new($front->port);
	$c->send(join '', @requests);
	return ($c, next_server());
}
sub bodies ($c, $n) { return join ' ', map { ($c->reply // {})->{body} // 'none' } 1 .. $n }

subtest 'a server that drains: the client stays' => sub {
	my ($c, $s) = begin(req('/1'));
	my $id = await($s, HEADERS);
	goaway($s, NO_LAST);
	say_frame($s, PING, 0, 0, 'all come');
	is await($s, PING, ACK), 0, 'it learns that nothing is on its way';
	$c->send(req('/2'));
	goaway($s, $id);
	answer($s, $id, 'one');
	is bodies($c, 1), 'one', 'the request under way is answered';
	my $next = next_server();
	answer($next, await($next, HEADERS), 'two');
	is bodies($c, 1), 'two', 'the next one on another connection';
	goaway($next, NO_LAST);
	$s = next_server();
	ok $s, 'an idle client: the connection that it will need is there';
	$c->send(req('/3'));
	answer($s, await($s, HEADERS), 'three');
	is bodies($c, 1), 'three', '... and is used';
};

subtest 'a server that ends an idle connection ends that of the client' => sub {
	my ($c, $s) = begin(req('/1'));
	my $id = await($s, HEADERS);
	answer($s, $id, 'one');
	goaway($s, $id);
	is bodies($c, 1), 'one', 'a reply';
	ok $c->closed, 'and the end';
	($c, $s) = begin("GET / HTTP/1.1\r\n");
	await($s, SETTINGS, ACK);
	goaway($s, 0);
	ok $c->closed, 'half a head does not keep it';
};

subtest 'what was not taken is sent again' => sub {
	my $put = "PUT /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
	my ($c, $s) = begin(req('/1'), $put);
	await($s, DATA, END_STREAM);
	say_frame($s, RST_STREAM, 0, 3, pack 'N', REFUSED_STREAM);
	goaway($s, 1);
	answer($s, 1, 'one');
	my $next = next_server();
	is await($next, DATA, END_STREAM), 1, 'its body, too';
	answer($next, 1, 'two');
	is bodies($c, 2), 'one two', 'both are answered, in order';
	$c->send(req('/3'));
	await($next, HEADERS);
	goaway($next, 1);
	my $third = next_server();
	answer($third, await($third, HEADERS), 'three');
	is bodies($c, 1), 'three', 'one above the last stream of GOAWAY';
	$c->send(req('/4'));
	await($third, HEADERS);
	goaway($third, 1);
	$s = next_server();
	await($s, HEADERS);
	goaway($s, 0);
	ok $c->closed, 'a second time: the connection ends';
};

subtest 'what cannot be sent again ends the connection' => sub {
	my ($c, $s) = begin("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" . 'x' x 1_000_000);
	say_frame($s, WINDOW_UPDATE, 0, $_, pack 'N', 1_000_000) for 0, await($s, HEADERS);
	await($s, DATA, END_STREAM);
	goaway($s, 0);
	ok $c->closed, 'a body that is not held';
	($c, $s) = begin(req('/'));
	await($s, HEADERS);
	goaway($s, 0, ENHANCE_YOUR_CALM);
	ok $c->closed, 'GOAWAY with an error';
	($c, $s) = begin(req('/'));
	await($s, HEADERS);
	undef $s;
	ok $c->closed, 'no GOAWAY';
};

subtest 'a reset after the reply' => sub {
	my ($c, $s) = begin(req('/1'));
	answer($s, await($s, HEADERS), 'x' x 6_000);
	$s->abort;
	is length bodies($c, 1), 6_000, 'which is read';
	ok $c->closed, 'then the connection ends';
};

my ($c, $s) = begin(req('/'));
answer($s, await($s, HEADERS), 'one');
goaway($s, NO_LAST);
is bodies($c, 1), 'one', 'the last reply of a server that stops';
ok $c->closed, 'which accepts no more, though its socket listens';
$listener->accept;
($c, $s) = begin(req('/'));
my $id = await($s, HEADERS);
close $listener;
answer($s, $id, 'one');
goaway($s, NO_LAST);
is bodies($c, 1), 'one', 'or its socket is closed';
ok $c->closed, '... at once';
done_testing;
