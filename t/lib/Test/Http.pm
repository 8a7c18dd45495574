package Test::Http;
# HTTP/1.1 from the client's side.
#
#     my $c = Test::Http::Conn->new($port, from => '127.0.0.9');
#     $c->send(request_head('GET', '/'));
#     my $r = $c->reply;          # { status, reason, head, header => { lower-case => value }, body, raw }
use v5.36;
use Exporter 'import';
use Test::Util ();

our @EXPORT_OK = qw(req request_head parse parts unchunk);

# A GET request that keeps the connection, with more lines of head.
sub req ($path, @lines) { return join "\r\n", "GET $path HTTP/1.1", 'Host: x', @lines, '', '' }

# A whole request without body.  Connection: close unless the caller names another.
sub request_head ($method, $path, %header) {
	%header = (Host => 'localhost', Connection => 'close', %header);
	return join '', "$method $path HTTP/1.1\r\n", (map { "$_: $header{$_}\r\n" } sort keys %header), "\r\n";
}

# A whole reply, taken apart.
sub parse ($raw) {
	my ($head, $body) = split /\r\n\r\n/, $raw, 2;
	my ($line, @lines) = split /\r\n/, $head // '';
	my %r = (raw => $raw, head => $head // '', body => $body // '', header => {}, status => 0);
	@r{qw(status reason)} = ($1, $2) if ($line // '') =~ m{^HTTP/1\.1 ([0-9]{3}) (.*)\z};
	for (@lines) {
		my ($name, $value) = /^([^:\s]+): ?(.*)\z/ ? (lc $1, $2) : ('malformed line', $_);
		$r{header}{$name} = exists $r{header}{$name} ? "$r{header}{$name}, $value" : $value;
	}
	$r{body} = unchunk($r{body}) if lc($r{header}{'transfer-encoding'} // '') eq 'chunked';
	return \%r;
}

# [content type, range, bytes] of each part of a multipart reply; undef if it is malformed.
sub parts ($r) {
	my ($b) = ($r->{header}{'content-type'} // '') =~ m{\Amultipart/byteranges; ?boundary="?([^"]+)"?\z} or return undef;
	my $in = $r->{body};
	$in =~ s/\A(?:\r\n)?--\Q$b\E\r\n// or return undef;
	$in =~ s/\r\n--\Q$b\E--(?:\r\n)?\z// or return undef;
	my @part;
	for (split /\r\n--\Q$b\E\r\n/, $in, -1) {
		my ($head, $body) = split /\r\n\r\n/, $_, 2;
		my %h = map { /^([^:]+): (.*)/ ? (lc $1, $2) : () } split /\r\n/, $head;
		push @part, [$h{'content-type'}, $h{'content-range'}, $body];
	}
	return \@part;
}

# The bytes of a whole chunked body; undef if it is malformed.
sub unchunk ($in) {
	my $out = '';
	while ($in =~ s/\A([0-9a-fA-F]+)[^\r\n]*\r\n//) {
		my $n = hex $1;
		return $out if $n == 0;
		return undef if length $in < $n + 2;
		$out .= substr $in, 0, $n, '';
		return undef unless $in =~ s/\A\r\n//;
	}
	return undef;
}

# ---------------------------------------------------------------- one connection

package Test::Http::Conn;

use IO::Socket::INET ();
use Socket qw(inet_aton INADDR_LOOPBACK IPPROTO_TCP MSG_NOSIGNAL SOL_SOCKET SO_RCVBUF SO_LINGER TCP_NODELAY pack_sockaddr_in);
use Time::HiRes qw(time);

# rcvbuf: the size of the receive buffer; a small one stops the server early.  from: the source address within 127.0.0.0/8.
sub new ($class, $port, %opt) {
	my $sock = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!";
	setsockopt $sock, SOL_SOCKET, SO_RCVBUF, $opt{rcvbuf} or die "SO_RCVBUF: $!" if $opt{rcvbuf};
	setsockopt $sock, IPPROTO_TCP, TCP_NODELAY, 1 or die "TCP_NODELAY: $!";
	bind $sock, pack_sockaddr_in(0, inet_aton($opt{from})) or die "bind $opt{from}: $!" if $opt{from};
	CORE::connect($sock, pack_sockaddr_in($port, INADDR_LOOPBACK)) or die "connect: $!";
	$sock->blocking(0);
	return bless { sock => $sock, in => '', eof => 0 }, $class;
}

# The socket is connected already.
sub over ($class, $sock) {
	$sock->blocking(0);
	return bless { sock => $sock, in => '', eof => 0 }, $class;
}

sub sock { return $_[0]{sock} }

# Sends what the kernel takes now, and returns how much that is.
sub push ($self, $bytes) {
	my $at = 0;
	while ($at < length $bytes) { $at += CORE::send($self->{sock}, substr($bytes, $at, 65536), MSG_NOSIGNAL) // last }
	return $at;
}

# A head, as one text; undef if the stream ends before.
sub head ($self) { return $self->up_to("\r\n\r\n", time + Test::Util::PATIENCE) }

# The body of a chunked message; undef if it is malformed or does not end.
sub chunks ($self) {
	my ($end, $all) = (time + Test::Util::PATIENCE, '');
	while (1) {
		my $line = $self->up_to("\r\n", $end) // return undef;
		my ($n) = $line =~ /\A([0-9a-fA-F]+)\r\n\z/ or return undef;
		my $chunk = $self->take(2 + hex $n);
		return undef if length $chunk < 2 + hex $n;
		return $all if hex $n == 0;
		$all .= substr $chunk, 0, hex $n;
	}
}

sub _wait ($self, $write, $end) {
	my $left = $end - time;
	return 0 if $left <= 0;
	my $bits = '';
	vec($bits, fileno $self->{sock}, 1) = 1;
	return select($write ? undef : $bits, $write ? $bits : undef, undef, $left) > 0;
}

# Sends all bytes unless the server closes first.  Returns how many were sent.
sub send ($self, $bytes) {
	my ($at, $end) = (0, time + Test::Util::PATIENCE);
	while ($at < length $bytes) {
		my $n = CORE::send($self->{sock}, substr($bytes, $at, 65536), MSG_NOSIGNAL);
		if (defined $n) { $at += $n; next }
		last unless $!{EAGAIN} || $!{EINTR};
		last unless $self->_wait(1, $end);
	}
	return $at;
}

# Reads once.  False at the end of the stream or at the deadline.
sub _more ($self, $end) {
	return 0 if $self->{eof};
	while (1) {
		my $n = sysread $self->{sock}, my $piece, 1 << 18;
		if ($n) {
			$self->{in} .= $piece;  # reading to the end of a long string would copy it each time
			return 1;
		}
		if (defined $n || !($!{EAGAIN} || $!{EINTR})) {
			$self->{reset} = 1 if !defined $n;
			$self->{eof} = 1;
			return 0;
		}
		if (!$self->_wait(0, $end)) {
			$self->{timed_out} = 1;
			return 0;
		}
	}
}

# The next n bytes, or fewer at the end of the stream.
sub take ($self, $n, $seconds = undef) {
	my $end = time + ($seconds // Test::Util::PATIENCE);
	while (length $self->{in} < $n) { $self->_more($end) or last }
	return substr $self->{in}, 0, $n, '';
}

sub rest ($self, $seconds = undef) {
	my $end = time + ($seconds // Test::Util::PATIENCE);
	1 while $self->_more($end);
	return substr $self->{in}, 0, length $self->{in}, '';
}

# The next n bytes, read one by one, or fewer at the end.
sub sip ($self, $n) {
	my ($got, $end) = (substr($self->{in}, 0, $n, ''), time + Test::Util::PATIENCE);
	while (length $got < $n) {
		my $is = sysread $self->{sock}, $got, 1, length $got;
		next if $is || (!defined $is && $!{EAGAIN} && $self->_wait(0, $end));
		last;
	}
	return $got;
}

# True when the server closes without sending another byte.
sub closed ($self, $seconds = undef) {
	return 0 if length $self->{in} || $self->_more(time + ($seconds // Test::Util::PATIENCE));
	return $self->{eof};
}

# True if there is nothing to read now.
sub silent ($self) { return !length $self->{in} && !$self->_wait(0, time + 0.0001) }

sub finish ($self) { shutdown $self->{sock}, 1; return }

# Ends the connection with a reset, as a crashed client does.
sub abort ($self) {
	setsockopt $self->{sock}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0);
	close $self->{sock};
	return;
}

# Bytes up to and including the mark; undef if the stream ends before.
sub up_to ($self, $mark, $end) {
	my $at;
	while (($at = index $self->{in}, $mark) < 0) { $self->_more($end) or return undef }
	return substr $self->{in}, 0, $at + length $mark, '';
}

# The next reply, as parse() returns it.  HEAD has no body.  undef without a head; {cut} is true if the body is too short.
sub reply ($self, $method = undef) {
	my $end = time + Test::Util::PATIENCE;
	my $head = $self->up_to("\r\n\r\n", $end) // return undef;
	my $r = Test::Http::parse($head);
	return $r if ($method // '') eq 'HEAD' || $r->{status} < 200 || $r->{status} == 204 || $r->{status} == 304;
	if (defined(my $n = $r->{header}{'content-length'})) {
		$r->{body} = $self->take($n);
		$r->{cut} = length $r->{body} < $n;
	} elsif (lc($r->{header}{'transfer-encoding'} // '') eq 'chunked') {
		my $all = '';
		while (1) {
			my $line = $self->up_to("\r\n", $end) // return { %$r, cut => 1, body => $all };
			my $n = hex($line =~ s/\r\n//r);
			my $chunk = $self->take($n + 2);
			return { %$r, cut => 1, body => $all . $chunk } if length $chunk < $n + 2;
			last if $n == 0;
			$all .= substr $chunk, 0, $n;
		}
		$r->{body} = $all;
	} else {
		$r->{body} = $self->rest;
	}
	return $r;
}

1;
