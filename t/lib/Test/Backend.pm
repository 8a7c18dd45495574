package Test::Backend;
# An application that the test itself plays, byte by byte.
#
#     my $b = Test::Backend->new;             # listens on a unix socket
#     # proxy-core.backends = ( "unix:@{[ $b->socket ]}" )
#     my $x = $b->accept;                     # a Test::Http::Conn: what the server sent, and what it is answered
#     like $x->head, qr{^POST /app }, 'the request';
#     $x->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
#
# Nothing happens but what the test does, so each order of events can be tried. `accept` waits for a connection; it returns
# undef when none comes in `PATIENCE` seconds. `waits` is true if a connection waits to be accepted.
use v5.36;
use File::Temp ();
use IO::Select ();
use IO::Socket::UNIX ();

use Test::Http ();
use Test::Util ();

sub new ($class) {
	my $dir = File::Temp->newdir('accel-backend-XXXXXX', TMPDIR => 1);
	my $listen = IO::Socket::UNIX->new(Local => "$dir/sock", Listen => 128) or die "listen: $!";
	return bless { dir => $dir, listen => $listen }, $class;
}

sub socket { return "$_[0]{dir}/sock" }

sub waits ($self, $seconds = 0) { return IO::Select->new($self->{listen})->can_read($seconds) ? 1 : 0 }

sub accept ($self) {
	return undef if !$self->waits(Test::Util::PATIENCE);
	return Test::Http::Conn->over(scalar $self->{listen}->accept);
}

1;
