package Accel::Connect;
# Connections to servers that may be slow, silent or endless: each wait and each answer has a bound.
use v5.36;

use Errno qw(EAGAIN);
use IO::Select       ();
use IO::Socket::IP   ();
use IO::Socket::UNIX ();
use Socket      qw(SOCK_STREAM);
use Time::HiRes qw(time);

use constant { RETRY_S => 0.05, PIECE => 65_536 };

# A socket to the path of a unix socket or to HOST:PORT, or undef; then $! and $@ say why.
# A connect(2) to a unix socket whose queue is full would wait without end.
sub connected ($address, $patience) {
	return IO::Socket::IP->new(PeerAddr => $address, Type => SOCK_STREAM, Timeout => $patience) unless $address =~ m{^/};
	my $until = time + $patience;
	while (1) {
		my $sock = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $address, Timeout => $patience);
		return $sock if $sock || $! != EAGAIN || time > $until;
		select undef, undef, undef, RETRY_S;
	}
}

# Reads bytes until $whole accepts them, or until the end of the connection, of patience or of $max bytes.  Returns them and the reason:
# end, closed, silent, endless.
sub answer ($sock, $patience, $max, $whole) {
	my ($bytes, $until) = ('', time + $patience);
	my $wait = IO::Select->new($sock);
	while (length $bytes < $max) {
		my $left = $until - time;
		return ($bytes, 'silent') if $left <= 0;
		next unless $wait->can_read($left);    # a signal, or the time is over
		my $n = sysread $sock, $bytes, PIECE, length $bytes;
		return ($bytes, 'closed') unless $n;
		return ($bytes, 'end') if $whole->($bytes);
	}
	return ($bytes, 'endless');
}

1;
