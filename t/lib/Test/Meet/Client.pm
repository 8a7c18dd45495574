package Test::Meet::Client;
# Connections with trains of requests, all driven by one loop.
#
#     my $c = Test::Meet::Client->new($port, from => '127.0.0.66', train => \@requests, out => \@pieces, %fate);
#     my $stuck = Test::Meet::Client::drive(20, $c, ...);         # 1: nobody got a byte for 20 seconds
#     $c->{replies};      # [{ status, head, body, cut, requests => how many had been answered, interim }]
#
# A piece of `out` is { bytes, pause (seconds before it), gate (the reply that must be there: its number), or start (interim or final, of that reply) }.
# Fates: `leave_out`, `leave_in` (bytes sent or received, then the client closes), `reset` (... with RST), `half` (it shuts its side down when all is
# sent), `slow` (bytes a read).
use v5.36;
use IO::Socket::INET ();
use Socket qw(inet_aton INADDR_LOOPBACK IPPROTO_TCP MSG_NOSIGNAL SOL_SOCKET SO_LINGER SO_RCVBUF TCP_NODELAY pack_sockaddr_in);
use Time::HiRes qw(time);

use constant SIP => 0.004;      # seconds between two reads of a slow client

sub new ($class, $port, %self) {
	my $sock = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!";
	setsockopt $sock, SOL_SOCKET, SO_RCVBUF, 4096 if $self{slow};
	setsockopt $sock, IPPROTO_TCP, TCP_NODELAY, 1;
	bind $sock, pack_sockaddr_in(0, inet_aton($self{from})) or die "bind: $!";
	$sock->blocking(0);
	connect($sock, pack_sockaddr_in($port, INADDR_LOOPBACK)) || $!{EINPROGRESS} or die "connect: $!";
	return bless { %self, sock => $sock, in => '', sent => 0, received => 0, replies => [], interim => 0, begun => time, moved => time }, $class;
}

# ---------------------------------------------------------------- the loop

# 1: no byte moved for this many seconds.
sub drive ($seconds, @all) {
	while (my @open = grep { !$_->{over} } @all) {
		my ($r, $w, $wait, $now, $last) = ('', '', 1, time, 0);
		for my $c (@open) {
			$last = $c->{moved} if $c->{moved} > $last;
			my $fd = fileno $c->{sock};
			if ($c->{reads_at} && $c->{reads_at} > $now) { $wait = $c->{reads_at} - $now if $c->{reads_at} - $now < $wait }
			else                                         { vec($r, $fd, 1) = 1 }
			my $at = $c->_sends_at($now) // next;
			if ($at <= $now) { vec($w, $fd, 1) = 1 }
			else             { $wait = $at - $now if $at - $now < $wait }
		}
		if ($now - $last > $seconds) {
			for (@open) { $_->{stuck} = 1; $_->_over }
			return 1;
		}
		next if select($r, $w, undef, $wait) <= 0;
		for my $c (@open) {
			my $fd = fileno $c->{sock};
			$c->_write if vec $w, $fd, 1;
			$c->_read if !$c->{over} && vec $r, $fd, 1;
		}
	}
	return 0;
}

# When the next piece is sent; undef: after bytes have come.
sub _sends_at ($self, $now) {
	my $piece = $self->{out}[0] // return;
	return if defined $piece->{gate} && @{ $self->{replies} } <= $piece->{gate};
	return if defined $piece->{start} && @{ $self->{replies} } <= $piece->{start} && !$self->{interim};
	return $piece->{at} //= $now + ($piece->{pause} // 0);
}

sub _over ($self, $reset = undef) {
	setsockopt $self->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $reset;
	close $self->{sock};
	$self->{over} = 1;
	$self->{took} = time - $self->{begun};
	return;
}

sub _leave ($self) { $self->{left} = 1; return $self->_over($self->{reset}) }

sub _write ($self) {
	my $piece = $self->{out}[0];
	my $room = defined $self->{leave_out} ? $self->{leave_out} - $self->{sent} : 1 << 30;
	return $self->_leave if $room <= 0;
	my $bytes = substr $piece->{bytes}, 0, $room < 65536 ? $room : 65536;
	my $n = length $bytes ? send($self->{sock}, $bytes, MSG_NOSIGNAL) : 0;
	if (!defined $n) {
		return if $!{EAGAIN} || $!{EINTR};
		$self->{out} = [];      # what has come is read to its end
		return;
	}
	$self->{moved} = time;
	$self->{sent} += $n;
	return $self->_leave if defined $self->{leave_out} && $self->{sent} >= $self->{leave_out};
	substr($piece->{bytes}, 0, $n) = '';
	shift @{ $self->{out} } if $piece->{bytes} eq '';
	shutdown $self->{sock}, 1 if $self->{half} && !@{ $self->{out} };
	return;
}

sub _read ($self) {
	my $n = sysread $self->{sock}, my $bytes, $self->{slow} || 1 << 18;
	return if !defined $n && ($!{EAGAIN} || $!{EINTR});
	$self->{moved} = time;
	if ($n) {
		$self->{in} .= $bytes;
		$self->{received} += $n;
		$self->{reads_at} = time + SIP if $self->{slow} && $self->{received} < 40 * $self->{slow};
		1 while $self->_reply;
		return $self->_leave if defined $self->{leave_in} && $self->{received} >= $self->{leave_in};
		$self->_over if $self->_answered && !$self->{ends} && !$self->{half};
		return;
	}
	$self->{broken} = !defined $n;
	$self->_end;
	return $self->_over;
}

sub _answered ($self) { return @{ $self->{replies} } >= @{ $self->{train} } && !$self->{reply} && !@{ $self->{out} } }

# ---------------------------------------------------------------- replies

# One step; false when more bytes are needed.
sub _reply ($self) {
	return $self->_more if $self->{reply};
	$self->{in} =~ s/\A(.*?)\r\n\r\n//s or return 0;
	my $head = $1;
	my %r = (head => $head, body => '', status => $head =~ m{\AHTTP/1\.1 ([0-9]{3})(?: |\r|\z)} ? $1 : 0, at => time - $self->{begun});
	if ($r{status} >= 100 && $r{status} < 200) {
		$self->{interim}++;
		return 1;
	}
	my $q = $self->{train}[ @{ $self->{replies} } ];
	$r{interim} = $self->{interim};
	$self->{interim} = 0;
	my ($n) = $head =~ /^content-length: *([0-9]+)\r?$/mi;
	if ($q && $q->{method} eq 'HEAD' || $r{status} == 204 || $r{status} == 304) { $r{need} = 0 }
	elsif (defined $n)                                                            { $r{need} = $n }
	elsif ($head =~ /^transfer-encoding: *chunked\r?$/mi)                         { $r{chunks} = 1 }
	else                                                                          { $r{to_end} = 1 }
	$self->{reply} = \%r;
	return 1;
}

sub _more ($self) {
	my $r = $self->{reply};
	if (defined $r->{need}) {
		return 0 if length $self->{in} < $r->{need};
		$r->{body} .= substr $self->{in}, 0, $r->{need}, '';
		return $self->_done;
	}
	return 0 if $r->{to_end};
	$self->{in} =~ /\A([0-9a-fA-F]+)\r\n/ or return 0;
	my ($size, $at) = (hex $1, 2 + length $1);
	return 0 if length $self->{in} < $at + $size + 2;
	$r->{body} .= substr $self->{in}, $at, $size;
	substr($self->{in}, 0, $at + $size + 2) = '';
	return $size == 0 ? $self->_done : 1;
}

sub _done ($self) {
	push @{ $self->{replies} }, delete $self->{reply};
	return 1;
}

# The server has closed.
sub _end ($self) {
	my $r = $self->{reply} // return;
	$r->{body} .= $self->{in};
	$self->{in} = '';
	$r->{cut} = 1 unless $r->{to_end} && !$self->{broken};
	$self->_done;
}

1;
