package Test::Front;
# t/front between a test and its server: the test speaks HTTP/1.1, the server HTTP/2.
#
#     TEST_HTTP=2 B=build prove -It/lib t/server/ranges.t        # Test::Server starts it
#
#     my $front = Test::Front->start($port);                      # of a server that speaks HTTP/2 in clear
#     my $c = Test::Http::Conn->new($front->port);
#
# It ends when the object goes, or the test.
use v5.36;
use IO::Socket::INET ();
use POSIX qw(dup2);
use Test::Builder ();
use Test::Util qw(program slurp);

# Tests that are about HTTP/1 itself, and why: `make check-http2` leaves them out, and they start no front.  With a pattern only
# the assertions whose names fit are about HTTP/1; they are skipped where they fail.
our @HTTP1 = (
	['server/hostile-requests' => 'bytes that are no HTTP/1'],
	['server/proxy-protocol' => 'a line before the first request'],
	['proxy/websocket' => 'the reply 101, byte by byte; t/proxy/shares.t has tunnels, too'],
	['server/draining' => 'connections of HTTP/2 do not move, they come again: a fresh one may be cut', qr/^moves are counted|^its cuts are counted/],
	['server/accesslog-json' => 'bytes that are no HTTP/1, and the version'],
	['server/spread' => 'connections that move to another worker; those of HTTP/2 stay'],
	['server/health' => 'Connection: close', qr/^the kept connection ends with its next reply/],
	['server/connections-full' => 'downloads that stall: what its client does not read, the front does, for a while'],
	['server/chaos' => 'downloads that stall', qr/which gets nothing|served when (?:the )?others leave|each has had its reply|the server idles while/],
	['server/upgrade' => 'Connection: close', qr/^its idle connections get one more reply/],
	['server/tls' => 'a connection that stays plain when its socket has TLS', qr/that was silent is answered|a plain connection is answered|told to come again/],
	['server/bans' => 'Connection: close; a line before the first request', qr/with a body the connection ends|^PROXY header of/],
	['server/fail2ban' => 'bytes that are no HTTP/1', qr/a malformed request/],
	['proxy/drill-uwsgi' => 'the version', qr/^line: HTTP\/2|^every case is right/],
	['server/http2' => 'a client of HTTP/2 beside one of HTTP/1'],
	['proxy/trailers' => 'a client of HTTP/2 beside one of HTTP/1'],
	['server/http2-life' => 'no other connection than its own'],
	['module/accesslog-format' => 'names the version, or counts bytes of heads', qr/%r|%[HXO] of|pipelined|%O:|could not be read/],
	['module/expire' => 'HTTP/1.0', qr/HTTP\/1\.0: Expires|and no max-age/],
	['proxy/deadlines' => 'a client that sends no more', qr/closes its connection, with proxy-core|its end is noticed/],
	['proxy/streams-cut' => 'Connection: close', qr/and the end of the connection/],
	['proxy/sources' => 'a body that nobody takes ends the connection', qr/nor is what follows/],
	['proxy/sendfile' => 'names in lower case; a head of a byte a second', qr/and the client's range|X-Accel-Limit-Rate: the reply begins/],
	['server/accesslog' => 'names the version; requests at the same time', qr/^request line$|^pipelined requests/],
	['proxy/streams' => 'Connection: close', qr/^and whether the connection goes on/],
	['server/log-hygiene' => 'bytes that are no HTTP/1', qr/each is written, or counted|and this many are/],
	['server/status' => 'bytes that are no HTTP/1', qr/^(?:replies: all but the one under way|4xx|refused|a counter for Prometheus)$/],
	['server/rotation' => 'names the version', qr/which is whole/],
	['server/extforward' => 'requests at the same time; a head that is not HTTP/1', qr/^and in the log$|^is the peer's$/],
	['server/connections' => 'Connection, segments of TCP, requests sent before GOAWAY', qr/of ten connections|^the last one says so|that many are answered|whose body drips/],
	['server/errors-explained' => 'bytes that are no HTTP/1', qr/begins=NONSENSE/],
	['server/files' => 'sendfile(2), which no stream uses', qr/^\.\.\. and cut$|gthread-sendfile: cuts are counted/],
	['server/limits' => 'a connection that ends at a limit: a client of HTTP/2 comes again', qr/but not for ever|the last one says so|which a counter has|the connection ends/],
	['server/not-modified' => 'HTTP/1.0', qr/\.\.\. has Expires/],
	['proxy/interim' => 'names in lower case', qr/^others do$|^trailers and hop-by-hop/],
	['module/auth-basic' => 'names the version', qr/access log has the user/],
	['module/cgi' => 'names the version', qr/SERVER_PROTOCOL/],
	['module/cgi-ends' => 'a client that sends no more', qr/client that sends no more|tcp-fin-propagate/],
	['module/documentation' => 'names the version', qr/^(?:the log|accesslog: a format)$/],
	['module/simple-vhost' => 'a Host that is empty or missing', qr/an empty host|^\.\.\. as promised|^no host/],
	['module/debug-log' => 'names in lower case, and the version', qr/^\.\.\. has /],
);

sub this_test { return $0 =~ m{(\w+/[\w.-]+)\.t\z} ? $1 : '' }
sub excuse ($name) {
	my ($row) = grep { $_->[0] eq $name && !$_->[2] } @HTTP1;
	return $row ? $row->[1] : undef;
}

# Skips what fails because it is about HTTP/1.
sub _excuse_parts {
	my @part = grep { $_->[0] eq this_test() && $_->[2] } @HTTP1 or return;
	my $ok = \&Test::Builder::ok;
	no warnings 'redefine';
	*Test::Builder::ok = sub {
		my ($self, $is, $name) = @_;
		my ($row) = $is ? () : grep { ($name // '') =~ $_->[2] } @part;
		goto &$ok if !$row;
		return $self->skip("$name: $row->[1]");
	};
	return;
}

# The tests that `make check-http2` runs: those with a server.
sub tests {
	return grep { !defined excuse(m{(\w+/[\w.-]+)\.t\z}) && slurp($_) =~ /\bTest::(?!More|Util)\w+/ } sort(glob 't/{server,module,proxy}/*.t'), 't/site/side-by-side.t';
}

# True if this test is to speak HTTP/2 with a server of this configuration.
sub wanted ($conf) {
	return 0 if ($ENV{TEST_HTTP} // '') ne '2' || $conf =~ /^\s*ssl\.engine\s*=\s*"enable"/m;
	return !defined excuse(this_test());
}

sub start ($class, $port) {
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 511) or die "listen: $!";
	my $self = bless { port => $sock->sockport, owner => $$ }, $class;
	-x program('http2-front') or die program('http2-front') . " is missing: run make rigs\n";
	pipe my $rd, $self->{lifeline} or die "pipe: $!";
	defined($self->{pid} = fork) or die "fork: $!";
	return $self if $self->{pid};
	dup2(fileno $rd, 0);
	my $high = POSIX::dup(fileno $sock);    # 3 may be taken by what is moved there
	dup2($high, 3);
	POSIX::close($_) for grep { $_ != 3 } $high, fileno $self->{lifeline};
	{ no warnings; exec program('http2-front'), $port, 3 }
	POSIX::_exit(127);
}

sub port ($self) { return $self->{port} }

sub DESTROY ($self) {
	return if $$ != $self->{owner};
	local ($?, $!);
	kill TERM => $self->{pid};      # a child of the test may hold its lifeline, too
	waitpid $self->{pid}, 0;
	return;
}

_excuse_parts() if ($ENV{TEST_HTTP} // '') eq '2';

1;
