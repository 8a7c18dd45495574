package Test::WebSocket;
# WebSocket frames made by hand, from the client's side.
#
#     my $ws = Test::WebSocket->over($srv->connect);      # a Test::Http::Conn
#     is $ws->open('/ws')->{status}, 101, 'switched';
#     $ws->frame(TEXT, 'hello');
#     my ($opcode, $payload) = $ws->read;
#
# `frame` sends one frame with a mask; `bytes` gives its bytes. `read` returns the opcode and the payload of the next
# message, whose fragments are joined; nothing at the end of the stream. `accept_of` is what a server answers to a key.
use v5.36;
use Digest::SHA ();
use Exporter 'import';
use MIME::Base64 ();

use Test::Http ();

our @EXPORT_OK = qw(TEXT BINARY CLOSE PING PONG);
our %EXPORT_TAGS = (all => \@EXPORT_OK);

use constant { TEXT => 1, BINARY => 2, CLOSE => 8, PING => 9, PONG => 10 };
use constant KEY => 'dGhlIHNhbXBsZSBub25jZQ==';

sub over ($class, $c) { return bless { c => $c }, $class }
sub conn { return $_[0]{c} }

sub accept_of { return MIME::Base64::encode_base64(Digest::SHA::sha1("$_[0]258EAFA5-E914-47DA-95CA-C5AB0DC85B11"), '') }

sub request ($path, @fields) {
	return Test::Http::req($path, 'Connection: keep-alive, Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: ' . KEY, @fields);
}

# Asks for the switch; the reply, as Test::Http parses it.
sub open ($self, $path) {
	$self->{c}->send(request($path));
	return $self->{c}->reply;
}

sub bytes ($opcode, $payload) {
	my $n = length $payload;
	my $length = $n < 126 ? pack 'C', 0x80 | $n : $n < 65536 ? pack 'Cn', 0xfe, $n : pack 'CQ>', 0xff, $n;
	my $mask = "\x12\x34\x56\x78";
	return pack('C', 0x80 | $opcode) . $length . $mask . ($payload ^. substr $mask x ($n / 4 + 1), 0, $n);
}

sub frame ($self, @frame) { return $self->{c}->send(bytes(@frame)) }

sub read ($self) {
	my ($opcode, $all) = (0, '');
	while (1) {
		my ($first, $n) = unpack 'CC', $self->{c}->take(2);
		return if !defined $n;
		$n = unpack 'n', $self->{c}->take(2) if $n == 126;
		$n = unpack 'Q>', $self->{c}->take(8) if $n == 127;
		$opcode ||= $first & 15;
		$all .= $self->{c}->take($n);
		return ($opcode, $all) if $first & 0x80;
	}
}

1;
