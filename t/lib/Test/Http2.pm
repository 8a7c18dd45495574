package Test::Http2;
# HTTP/2 from the client's side, with each frame in the hands of the test.
#
#     my $h = Test::Http2->connect($srv, tls => 1);       # or a port; tls: ALPN must choose h2, else clear with prior knowledge
#     my $r = $h->get('/a.txt', Range => 'bytes=0-0');    # { status, header, fields, body, trailers, interim, error, cut }
#     my @id = map { $h->open(GET => "/$_") } 1 .. 100;
#     my @r = $h->gather(@id);                            # in the order of @id; $h->{ended} has the order in which they ended
#     my $id = $h->open(POST => '/', end => 0);
#     $h->data($id, $bytes, end => 1);                    # within the windows of the server
#
#     $h->frame(PING, 0, 0, '12345678');                  # any frame, as bytes
#     my $f = $h->read;                                   # the next one: { type, flags, id, payload }; undef at the end
#     $h->await(sub ($f) { $f->{type} == GOAWAY });       # the first that fits
#
# A reply: `header` is lower-case name => value as Test::Http parses one; `fields` and `trailers` are [name, value] in
# order; `interim` are the replies 1xx; `error` is the code of RST_STREAM, or undef; `cut`: it did not end.
# `goaway` of the connection is [last stream, code, text]; `settings` is number => value, as the server has them.
#
# SETTINGS and PING are acknowledged unless `connect` has `ack => 0`. Windows are large and given back. `window => N` is the
# window of each stream, then nothing is given back unless `update => 1`. More options: `settings`, a hash of number or name
# to value; `preface => 0` sends nothing; `from`, `rcvbuf` as for Test::Http; `alpn`, a list of names; `host`.
use v5.36;
use Exporter 'import';
use Protocol::HTTP2::Huffman qw(huffman_decode huffman_encode);
use Protocol::HTTP2::StaticTable ();
use Test::Http ();
use Test::Util qw(PATIENCE);
use Time::HiRes qw(time);

my (@frame, @flag, @error, @setting, %setting);

BEGIN {
	@frame = qw(DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY WINDOW_UPDATE CONTINUATION);
	@flag = ([END_STREAM => 1], [ACK => 1], [END_HEADERS => 4], [PADDED => 8], [HAS_PRIORITY => 32], [PRIORITY_UPDATE => 16]);
	@error = qw(NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR REFUSED_STREAM
		CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED);
	@setting = ('', qw(HEADER_TABLE_SIZE ENABLE_PUSH MAX_CONCURRENT_STREAMS INITIAL_WINDOW_SIZE MAX_FRAME_SIZE MAX_HEADER_LIST_SIZE), '',
		'ENABLE_CONNECT_PROTOCOL', 'NO_RFC7540_PRIORITIES');
	%setting = map { $setting[$_] => $_ } grep { $setting[$_] } 0 .. $#setting;
	my %value = ((map { $frame[$_] => $_ } 0 .. $#frame), (map { @$_ } @flag), (map { $error[$_] => $_ } 0 .. $#error), %setting);
	require constant;
	constant->import(\%value);
	our @EXPORT_OK = (sort(keys %value), 'PREFACE', qw(hpack settings_payload request_fields error_name));
	our %EXPORT_TAGS = (all => \@EXPORT_OK);
}

use constant PREFACE => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
use constant DEFAULT_WINDOW => 65_535;

sub error_name ($code) { return $error[$code] // "error $code" }

# ---------------------------------------------------------------- HPACK

my @static = @Protocol::HTTP2::StaticTable::stable;

sub _integer ($value, $bits, $first = 0) {
	my $most = (1 << $bits) - 1;
	return pack 'C', $first | $value if $value < $most;
	my $out = pack 'C', $first | $most;
	for ($value -= $most; $value >= 128; $value >>= 7) { $out .= pack 'C', 128 | $value & 127 }
	return $out . pack 'C', $value;
}

sub _string ($bytes, $huffman = 0) {
	$bytes = huffman_encode($bytes) if $huffman;
	return _integer(length $bytes, 7, $huffman ? 128 : 0) . $bytes;
}

# A block of fields, [name, value] each: literals that no table has.  huffman: as such; index: they enter the table.
sub hpack ($fields, %opt) {
	return join '', map { ($opt{index} ? "\x40" : "\0") . _string($_->[0], $opt{huffman}) . _string($_->[1], $opt{huffman}) } @$fields;
}

sub _take_integer ($in, $bits) {
	my $most = (1 << $bits) - 1;
	my $value = $most & ord substr $$in, 0, 1, '';
	return $value if $value < $most;
	for (my $shift = 0; length $$in; $shift += 7) {
		my $byte = ord substr $$in, 0, 1, '';
		$value += ($byte & 127) << $shift;
		return $value if $byte < 128;
	}
	die "HPACK: a number ends early\n";
}

sub _take_string ($in) {
	my $huffman = ord($$in) & 128;
	my $n = _take_integer($in, 7);
	die "HPACK: a string ends early\n" if $n > length $$in;
	my $bytes = substr $$in, 0, $n, '';
	return $huffman ? huffman_decode($bytes) : $bytes;
}

sub _entry ($self, $n) {
	return $static[$n - 1] // die "HPACK: index 0\n" if $n <= @static && $n > 0;
	return $self->{table}[$n - @static - 1] // die "HPACK: index $n is not in the table\n";
}

sub _fit ($self) {
	my ($at, $room) = (0, $self->{table_size});
	while ($at < @{ $self->{table} } && ($room -= 32 + length join '', @{ $self->{table}[$at] }) >= 0) { $at++ }
	splice @{ $self->{table} }, $at;
	return;
}

# A block of fields that the server has sent: [name, value] each.
sub unpack_fields ($self, $in) {
	my @field;
	while (length $in) {
		my $first = ord $in;
		if ($first & 128) {
			push @field, [@{ $self->_entry(_take_integer(\$in, 7)) }];
		} elsif (($first & 0xe0) == 32) {
			$self->{table_size} = _take_integer(\$in, 5);
			$self->_fit;
		} else {
			my $n = _take_integer(\$in, $first & 64 ? 6 : 4);
			my $name = $n ? $self->_entry($n)->[0] : _take_string(\$in);
			push @field, [$name, _take_string(\$in)];
			next unless $first & 64;
			unshift @{ $self->{table} }, $field[-1];
			$self->_fit;
		}
	}
	return @field;
}

# ---------------------------------------------------------------- the connection

sub connect ($class, $srv, %opt) {
	my $c = Test::Http::Conn->new(ref $srv ? $srv->port : $srv, map { $_ => $opt{$_} } grep { $opt{$_} } qw(from rcvbuf));
	my $self = bless {
		conn => $c, sock => $c->sock, in => '', out => '', next => 1, stream => {}, ended => [], table => [], table_size => 4096, opt => \%opt,
		settings => {}, window => DEFAULT_WINDOW, own_window => $opt{window} // 1 << 30, update => $opt{update} // !defined $opt{window},
	}, $class;
	$self->_tls(%opt) if $opt{tls};
	return $self if !($opt{preface} // 1);
	$self->send(PREFACE);
	$self->settings(INITIAL_WINDOW_SIZE => $self->{own_window}, %{ $opt{settings} // {} });
	$self->window_update(0, $self->{own_window} - DEFAULT_WINDOW) if $self->{own_window} > DEFAULT_WINDOW;
	return $self;
}

sub _tls ($self, %opt) {
	require IO::Socket::SSL;
	$self->{sock}->blocking(1);
	my $alpn = $opt{alpn} // ['h2'];
	$self->{sock} = IO::Socket::SSL->start_SSL($self->{sock}, SSL_verify_mode => 0, SSL_alpn_protocols => $alpn, SSL_hostname => $opt{host} // 'localhost',
		Timeout => PATIENCE) or die "TLS: ", IO::Socket::SSL::errstr(), "\n";
	$self->{alpn} = $self->{sock}->alpn_selected // '';
	$self->{sock}->blocking(0);
	return;
}

# Any bytes; they leave while the test reads, too.
sub send ($self, $bytes) { $self->{out} .= $bytes; $self->_write; return $self }

sub frame ($self, $type, $flags, $id, $payload = '') { return $self->send(frame_bytes($type, $flags, $id, $payload)) }

sub frame_bytes ($type, $flags, $id, $payload = '') { return substr(pack('NCCN', length $payload, $type, $flags, $id), 1) . $payload }

sub settings_payload (%is) { return join '', map { pack 'nN', $setting{$_} // $_, $is{$_} } sort keys %is }
sub settings ($self, %is) { return $self->frame(SETTINGS, 0, 0, settings_payload(%is)) }
sub window_update ($self, $id, $bytes) { return $self->frame(WINDOW_UPDATE, 0, $id, pack 'N', $bytes) }
sub reset ($self, $id, $code = CANCEL) { return $self->frame(RST_STREAM, 0, $id, pack 'N', $code) }

sub _write ($self) {
	local $SIG{PIPE} = 'IGNORE';
	while (length $self->{out}) {
		my $n = syswrite $self->{sock}, $self->{out}, 16_384;
		if (!defined $n) {
			$self->{broken} = 1, $self->{out} = '' if !$!{EAGAIN} && !$!{EINTR};
			last;
		}
		substr $self->{out}, 0, $n, '';
	}
	return;
}

# Waits for bytes, and sends what is left to be sent.  False at the end of the stream or at the deadline.
sub _more ($self, $end) {
	while (!$self->{eof}) {
		$self->_write;
		my $n = sysread $self->{sock}, my $piece, 65_536;
		if ($n) {
			$self->{in} .= $piece;
			return 1;
		}
		if (defined $n || !($!{EAGAIN} || $!{EINTR})) {
			$self->{reset} = 1 if !defined $n;
			$self->{eof} = 1;
			return 0;
		}
		my ($left, $read) = ($end - time, '');
		vec($read, fileno $self->{sock}, 1) = 1;
		my $write = length $self->{out} ? $read : undef;
		if ($left <= 0 || select($read, $write, undef, $left) == 0) {
			$self->{timed_out} = 1;
			return 0;
		}
	}
	return 0;
}

# The next frame, after the connection has taken note of it.  undef at the end of the stream or at the deadline.
sub read ($self, $seconds = undef) {
	my $end = time + ($seconds // PATIENCE);
	while (1) {
		my $n = length $self->{in} < 9 ? 1 << 24 : unpack 'N', "\0" . substr $self->{in}, 0, 3;
		last if length $self->{in} >= 9 + $n;
		$self->_more($end) or return undef;
	}
	my ($high, $low, $type, $flags, $id) = unpack 'CnCCN', substr $self->{in}, 0, 9, '';
	my %f = (type => $type, flags => $flags, id => $id & 0x7fff_ffff, payload => substr $self->{in}, 0, $high << 16 | $low, '');
	$self->_note(\%f);
	return \%f;
}

# The first frame that fits; undef if the stream ends before, or at the deadline.
sub await ($self, $fits, $seconds = undef) {
	my $end = time + ($seconds // PATIENCE);
	while (my $f = $self->read($end - time)) { return $f if $fits->($f) }
	return undef;
}

# True when the server closes, whatever frames it sends before.
sub closed ($self, $seconds = undef) {
	$self->await(sub { 0 }, $seconds);
	return $self->{eof} // 0;
}

# True if the server answers a PING: it has taken all before.
sub alive ($self) {
	$self->frame(PING, 0, 0, 'is it up');
	return defined $self->await(sub ($f) { $f->{type} == PING && $f->{flags} & ACK && $f->{payload} eq 'is it up' });
}

sub finish ($self) { shutdown $self->{conn}->sock, 1; return }
sub abort ($self) { $self->{conn}->abort; return }

# ---------------------------------------------------------------- what frames mean

my %note = (
	SETTINGS() => sub ($self, $f) {
		return if $f->{flags} & ACK;
		my %is = unpack '(nN)*', $f->{payload};
		my $more = ($is{ +INITIAL_WINDOW_SIZE } // 0) - ($self->{settings}{ +INITIAL_WINDOW_SIZE } // DEFAULT_WINDOW);
		if (defined $is{ +INITIAL_WINDOW_SIZE }) { $_->{window} += $more for values %{ $self->{stream} } }
		$self->{settings} = { %{ $self->{settings} }, %is };
		$self->frame(SETTINGS, ACK, 0) if $self->{opt}{ack} // 1;
	},
	PING() => sub ($self, $f) {
		$self->frame(PING, ACK, 0, $f->{payload}) if !($f->{flags} & ACK) && ($self->{opt}{ack} // 1);
	},
	GOAWAY() => sub ($self, $f) {
		$self->{goaway} = [unpack 'NNa*', $f->{payload}];
	},
	WINDOW_UPDATE() => sub ($self, $f) {
		my $of = $f->{id} ? $self->{stream}{ $f->{id} } : $self;
		$of->{window} += unpack 'N', $f->{payload} if $of;
	},
	RST_STREAM() => sub ($self, $f) {
		my $s = $self->{stream}{ $f->{id} } or return;
		$s->{reply}{error} = unpack 'N', $f->{payload};
		$self->_end($f->{id}, $s);
	},
	DATA() => sub ($self, $f) {
		my $n = length $f->{payload};
		my $s = $self->{stream}{ $f->{id} };
		$s->{reply}{body} .= _unpadded($f, 0) if $s;
		if ($n && $self->{update}) {
			$self->window_update(0, $n);
			$self->window_update($f->{id}, $n) if $s && !$s->{over} && !($f->{flags} & END_STREAM);
		}
		$self->_end($f->{id}, $s) if $s && $f->{flags} & END_STREAM;
	},
	HEADERS() => sub ($self, $f) {
		$self->{block} = { id => $f->{id}, end => $f->{flags} & END_STREAM, bytes => _unpadded($f, $f->{flags} & HAS_PRIORITY ? 5 : 0) };
		$self->_fields if $f->{flags} & END_HEADERS;
	},
	CONTINUATION() => sub ($self, $f) {
		$self->{block}{bytes} .= $f->{payload};
		$self->_fields if $f->{flags} & END_HEADERS;
	},
);

sub _unpadded ($f, $skip) {
	my $bytes = $f->{payload};
	my $pad = $f->{flags} & PADDED ? ord substr $bytes, 0, 1, '' : 0;
	return substr $bytes, $skip, length($bytes) - $skip - $pad;
}

sub _note ($self, $f) {
	$self->{frames}{ $f->{type} }++;
	my $note = $note{ $f->{type} } or return;
	return $note->($self, $f);
}

sub _fields ($self) {
	my $b = delete $self->{block};
	my @field = $self->unpack_fields($b->{bytes});
	my $s = $self->{stream}{ $b->{id} } or return;
	my $r = $s->{reply};
	if ($r->{status}) {
		$r->{trailers} = \@field;
	} else {
		my %is = (fields => \@field, header => {});
		for (@field) {
			my ($name, $value) = @$_;
			if ($name eq ':status') { $is{status} = $value; next }
			$is{header}{$name} = exists $is{header}{$name} ? "$is{header}{$name}, $value" : $value;
		}
		if (($is{status} // 0) =~ /^1/) { push @{ $r->{interim} }, \%is }
		else { %$r = (%$r, %is) }
	}
	$self->_end($b->{id}, $s) if $b->{end};
	return;
}

sub _end ($self, $id, $s) {
	push @{ $self->{ended} }, $id if !$s->{over}++;
	$s->{reply}{cut} = defined $s->{reply}{error};
	return;
}

# ---------------------------------------------------------------- requests

# The fields of a request: those with a colon, then the others; a value may be a list.
sub request_fields ($self, $method, $path, @field) {
	my @rest;
	while (my ($name, $value) = splice @field, 0, 2) { push @rest, map { [lc $name, $_] } ref $value ? @$value : $value }
	my %own = map { $_->[0] => 1 } @rest;
	my @first = grep { !$own{ $_->[0] } } [':method', $method], [':scheme', $self->{opt}{tls} ? 'https' : 'http'], [':authority', $self->{opt}{host} // 'localhost'], [':path', $path];
	return [@first, (grep { $_->[0] =~ /^:/ } @rest), grep { $_->[0] !~ /^:/ } @rest];
}

# Begins a request; returns the number of its stream.  Names of fields, and: body; end => 0 leaves it open for data(); id.
sub open ($self, $method, $path, @opt) {
	my (%is, @field);
	while (my ($name, $value) = splice @opt, 0, 2) {
		if ($name =~ /^(?:body|end|id)$/) { $is{$name} = $value } else { push @field, $name, $value }
	}
	my $id = $is{id} // $self->{next};
	$self->{next} = $id + 2;
	$self->{stream}{$id} = { window => $self->{settings}{ +INITIAL_WINDOW_SIZE } // DEFAULT_WINDOW, reply => { id => $id, status => 0, body => '', header => {}, fields => [], trailers => [], interim => [], cut => 1 } };
	my $end = ($is{end} // 1) && !length($is{body} // '');
	$self->headers($id, $self->request_fields($method, $path, @field), $end ? END_STREAM : 0);
	$self->data($id, $is{body}, end => $is{end} // 1) if length($is{body} // '');
	return $id;
}

# HEADERS, and CONTINUATION if one frame cannot hold them.
sub headers ($self, $id, $fields, $flags = END_STREAM, $most = 16_384) {
	my $block = hpack($fields);
	my @piece = unpack "(a$most)*", $block;
	my $last = $#piece;
	$self->frame($_ ? CONTINUATION : HEADERS, ($_ ? 0 : $flags) | ($_ == $last ? END_HEADERS : 0), $id, $piece[$_]) for 0 .. $last;
	return;
}

# A part of the body, as far as the windows of the server let it.  Returns how much was sent: less if the stream or the connection
# ends before, or at the deadline.  end: the body ends here; trailers: fields that follow it.
sub data ($self, $id, $bytes, %opt) {
	my ($s, $sent, $end) = ($self->{stream}{$id}, 0, time + PATIENCE);
	my $last = $opt{end} && !$opt{trailers};
	while ($sent < length $bytes) {
		my ($n) = sort { $a <=> $b } $self->{window}, $s->{window}, length($bytes) - $sent, $self->{settings}{ +MAX_FRAME_SIZE } // 16_384;
		return $sent if $s->{over};
		if ($n <= 0) {
			$self->read($end - time) or return $sent;
			next;
		}
		$self->frame(DATA, $last && $sent + $n == length $bytes ? END_STREAM : 0, $id, substr $bytes, $sent, $n);
		$_->{window} -= $n for $self, $s;
		$sent += $n;
		while (length $self->{out} > 1 << 20) { $self->read($end - time) or return $sent }
	}
	$self->frame(DATA, END_STREAM, $id) if $last && !length $bytes;
	$self->headers($id, $opt{trailers}) if $opt{trailers};
	return $sent;
}

# Waits for the ends of these streams.  Returns their replies; one is `cut` if the connection ends before, or at the deadline.
sub gather ($self, @id) {
	my $end = time + PATIENCE;
	for my $id (@id) {
		while (!$self->{stream}{$id}{over}) { $self->read($end - time) or last }
	}
	return map { $self->{stream}{$_}{reply} } @id;
}

sub request ($self, $method, $path, @opt) { return ($self->gather($self->open($method, $path, @opt)))[0] }
sub get ($self, $path, @opt) { return $self->request('GET', $path, @opt) }
sub head ($self, $path, @opt) { return $self->request('HEAD', $path, @opt) }

# What has come of a stream until now.
sub reply ($self, $id) { return $self->{stream}{$id}{reply} }

1;
