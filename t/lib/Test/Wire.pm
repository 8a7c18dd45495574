package Test::Wire;
# The application's side of each protocol of proxy-core, as bytes.
#
#     my $w = Test::Wire->new('fastcgi');         # scgi, http, ajp13, uwsgi; one object for each connection
#     $w->feed($bytes);                           # from the server
#     if (my $q = $w->request) {                  # its head is there: { method, target, env => {...}, keep, body, whole }
#         print $sock $w->head(200, 'Content-Type' => 'x/y'), $w->body('hello'), $w->end;
#     }
#     $w->next;                                   # the next request on the same socket
#
# Nothing is read or written here. `request` returns the same hash until `next`; `whole` is true when the body is there, too.
# The caller may take bytes out of `body`.
# `env` has the CGI variables; for HTTP and AJP13 those that the request line and the fields make. `feed` dies of a request that
# the protocol does not allow. `answers` is what the application must send before the reply: AJP13 asks for each piece of a body.
#
# `head` takes pairs: names occur more than once. `raw_head` takes the bytes of a head in CGI style, right or wrong, where the
# protocol has such bytes; for HTTP its first line is made of `Status`.
use v5.36;
use Test::Fcgi::Codec ();

our @PROTOCOLS = qw(fastcgi scgi http ajp13 uwsgi);

sub new ($class, $protocol) {
	my $self = bless { in => '' }, "Test::Wire::$protocol";
	die "no protocol $protocol\n" unless $self->can('request');
	return $self;
}

sub feed ($self, $bytes) { $self->{in} .= $bytes; $self->_read; return $self }

sub request { return $_[0]{q} }
sub next    ($self) { my $in = $self->{in}; %$self = (in => $in); return $self->_read }
sub answers { my $out = $_[0]{answers} // ''; $_[0]{answers} = ''; return $out }

# Moves bytes from the input to the body, at most up to n in all.  True if all are there.
sub _body ($self, $n) {
	my $q = $self->{q};
	my $bytes = substr $self->{in}, 0, $n - ($q->{got} // 0), '';
	$q->{body} .= $bytes;
	$q->{got} += length $bytes;
	return $q->{whole} = $q->{got} == $n;
}

# A head in CGI style, with a status line in front of it.
sub _status_line ($raw, $version) {
	my $status = $raw =~ s/^Status: *([^\r\n]*)\r?\n//mi ? $1 : $raw =~ /^Location:/mi ? '302 Found' : '200 OK';
	return "HTTP/$version $status\r\n$raw";
}

sub _cgi_head (@pairs) {
	my $head = '';
	while (my ($name, $value) = splice @pairs, 0, 2) { $head .= "$name: $value\r\n" }
	return "$head\r\n";
}

sub head ($self, $status, @pairs) { return $self->raw_head("Status: $status x\r\n" . _cgi_head(@pairs)) }

# The CGI variables that a request line and fields make.
sub _env ($method, $target, $version, @pairs) {
	my ($path, $query) = split /\?/, $target, 2;
	my %env = (REQUEST_METHOD => $method, REQUEST_URI => $target, SERVER_PROTOCOL => $version, QUERY_STRING => $query // '',
		SCRIPT_NAME => $path =~ s/%([0-9a-f]{2})/chr hex $1/gier);
	while (my ($name, $value) = splice @pairs, 0, 2) {
		my $k = 'HTTP_' . uc $name =~ tr/-/_/r;
		$k =~ s/^HTTP_(CONTENT_(?:TYPE|LENGTH))$/$1/;
		$env{$k} = exists $env{$k} ? "$env{$k}, $value" : $value;
	}
	return \%env;
}

# { method, target, env, keep, body, whole } of CGI variables
sub _cgi ($env, $keep) {
	return { method => $env->{REQUEST_METHOD}, target => $env->{REQUEST_URI}, env => $env, keep => $keep, body => '', whole => 0 };
}

sub _pairs (@all) {
	my %env;
	while (my ($name, $value) = splice @all, 0, 2) {
		die "$name twice\n" if $name eq '' || exists $env{$name};
		$env{$name} = $value;
	}
	return \%env;
}

# ---------------------------------------------------------------- FastCGI

package Test::Wire::fastcgi;
our @ISA = 'Test::Wire';
use Test::Fcgi::Codec qw(parse_records unpair stream record end_request T_BEGIN T_PARAMS T_STDIN T_STDOUT T_STDERR);

sub _read ($self) {
	while (!($self->{q} && $self->{q}{whole}) && length $self->{in} >= 8) {
		my (undef, undef, undef, $n, $pad) = unpack 'CCnnC', $self->{in};
		last if length $self->{in} < 8 + $n + $pad;
		my ($type, undef, $content) = @{ (parse_records(\(my $one = substr $self->{in}, 0, 8 + $n + $pad, '')))[0] };
		if ($type == T_BEGIN) { @$self{qw(role keep params)} = (unpack('nC', $content), '') }
		if ($type == T_PARAMS) {
			$self->{params} .= $content;
			next if $content ne '';
			$self->{q} = Test::Wire::_cgi(Test::Wire::_pairs(unpair($self->{params})), $self->{keep} & 1);
			$self->{q}{role} = $self->{role};
		}
		if ($type == T_STDIN) {
			$self->{q}{body} .= $content;
			$self->{q}{whole} = 1 if $content eq '';
		}
	}
	return;
}

sub raw_head ($self, $raw) { return stream(T_STDOUT, 1, $raw) }
sub body     ($self, $bytes) { return stream(T_STDOUT, 1, $bytes) }
sub note     ($self, $bytes) { return record(T_STDERR, 1, $bytes) }
sub end      ($self, $status = 0) { return end_request(1, $status) }

# ---------------------------------------------------------------- SCGI

package Test::Wire::scgi;
our @ISA = 'Test::Wire';

sub _read ($self) {
	if (!$self->{q}) {
		return unless $self->{in} =~ /^([^:]{0,7}):/;
		my ($n, $digits) = ($1, length $1);
		die "length $n\n" if $n !~ /\A[1-9][0-9]*\z/;
		return if length $self->{in} < $digits + 1 + $n + 1;
		my $head = substr substr($self->{in}, 0, $digits + 1 + $n + 1, ''), $digits + 1;
		die "no comma\n" if chop $head ne ',';
		die "CONTENT_LENGTH is not first\n" if $head !~ /\ACONTENT_LENGTH\0[0-9]+\0/;
		my @all = $head =~ /\G([^\0]*)\0/gc;
		die "not in pairs\n" if @all % 2 || (pos($head) // 0) != length $head;
		my $env = Test::Wire::_pairs(@all);
		die "SCGI is not 1\n" if ($env->{SCGI} // '') ne '1';
		$self->{q} = Test::Wire::_cgi($env, 0);
	}
	$self->_body($self->{q}{env}{CONTENT_LENGTH});
	return;
}

sub raw_head { return $_[1] }
sub body     { return $_[1] }
sub end      { return '' }

# ---------------------------------------------------------------- HTTP/1.1

package Test::Wire::http;
our @ISA = 'Test::Wire';

sub _read ($self) {
	if (!$self->{q}) {
		return unless $self->{in} =~ s/\A(.*?)\r\n\r\n//s;
		my ($line, @lines) = split /\r\n/, $1;
		my ($method, $target, $version) = $line =~ m{\A(\S+) (\S+) (HTTP/1\.1)\z} or die "request line $line\n";
		my @pairs = map { /\A([^\s:]+): (.*)\z/ ? ($1, $2) : die "field $_\n" } @lines;
		my $env = Test::Wire::_env($method, $target, $version, @pairs);
		die "no Host\n" unless defined $env->{HTTP_HOST};
		die "two lengths\n" if defined $env->{CONTENT_LENGTH} && $env->{HTTP_TRANSFER_ENCODING};
		$self->{q} = Test::Wire::_cgi($env, ($env->{HTTP_CONNECTION} // '') !~ /close/);
		($env->{REMOTE_ADDR}) = ($env->{HTTP_X_FORWARDED_FOR} // '') =~ /([^ ,]+)\z/;
		$self->{chunked} = $env->{HTTP_TRANSFER_ENCODING};
	}
	return $self->_body($self->{q}{env}{CONTENT_LENGTH} // 0) unless $self->{chunked};
	while (!$self->{q}{whole} && $self->{in} =~ /\A([0-9a-f]+)\r\n/) {
		my ($n, $at) = (hex $1, 2 + length $1);
		last if length $self->{in} < $at + $n + 2;
		$self->{q}{body} .= substr $self->{in}, $at, $n;
		die "chunk\n" if substr($self->{in}, $at + $n, 2) ne "\r\n";
		substr($self->{in}, 0, $at + $n + 2) = '';
		$self->{q}{whole} = 1 if $n == 0;
	}
}

# Without a length the body comes in chunks.
sub raw_head ($self, $raw) {
	$self->{chunks} = $raw !~ /^(?:Content-Length|Transfer-Encoding):/mi;
	$raw =~ s/(\A|\r\n)\r\n\z/$1Transfer-Encoding: chunked\r\n\r\n/ if $self->{chunks};
	return Test::Wire::_status_line($raw, '1.1');
}

sub body ($self, $bytes) {
	return $bytes if !$self->{chunks} || $bytes eq '';
	return sprintf "%x\r\n%s\r\n", length $bytes, $bytes;
}

sub end ($self, @) { return $self->{chunks} ? "0\r\n\r\n" : '' }

# ---------------------------------------------------------------- AJP13

package Test::Wire::ajp13;
our @ISA = 'Test::Wire';

my @METHOD = qw(x OPTIONS GET HEAD POST PUT DELETE TRACE PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK ACL REPORT VERSION-CONTROL
    CHECKIN CHECKOUT UNCHECKOUT SEARCH MKWORKSPACE UPDATE LABEL MERGE BASELINE-CONTROL MKACTIVITY);
my @HEADER = qw(x Accept Accept-Charset Accept-Encoding Accept-Language Authorization Connection Content-Type Content-Length Cookie
    Cookie2 Host Pragma Referer User-Agent);
my @REPLY_HEADER = qw(x Content-Type Content-Language Content-Length Date Last-Modified Location Set-Cookie Set-Cookie2
    Servlet-Engine Status WWW-Authenticate);
my @ATTRIBUTE = qw(x CONTEXT SERVLET_PATH REMOTE_USER AUTH_TYPE QUERY_STRING ROUTE SSL_CERT SSL_CIPHER SSL_SESSION x SSL_KEY_SIZE
    SECRET METHOD);

sub _string ($at) {
	my $n = unpack 'n', substr $$at, 0, 2, '';
	return '' if $n == 0xffff;
	my $s = substr $$at, 0, $n, '';
	die "no NUL\n" if substr($$at, 0, 1, '') ne "\0";
	return $s;
}

sub _forward ($self, $in) {
	my ($code, $method) = unpack 'CC', substr $in, 0, 2, '';
	my ($protocol, $uri, $addr, $host, $server) = map { _string(\$in) } 1 .. 5;
	my ($port, $ssl, $n) = unpack 'nCn', substr $in, 0, 5, '';
	my @pairs;
	for (1 .. $n) {
		my $coded = unpack 'n', $in;
		my $name = $coded >> 8 == 0xa0 ? (substr($in, 0, 2, ''), $HEADER[$coded & 0xff])[1] : _string(\$in);
		push @pairs, $name, _string(\$in);
	}
	my %attr;
	while ((my $type = ord substr $in, 0, 1, '') != 0xff) {
		my $name = $type == 10 ? _string(\$in) : $ATTRIBUTE[$type] // die "attribute $type\n";
		$attr{$name} = $type == 11 ? unpack 'n', substr $in, 0, 2, '' : _string(\$in);
	}
	die "bytes after the attributes\n" if $in ne '';
	my $verb = $method == 0xff ? $attr{METHOD} : $METHOD[$method];
	my $target = defined $attr{QUERY_STRING} ? "$uri?$attr{QUERY_STRING}" : $uri;
	my $env = Test::Wire::_env($verb, $target, $protocol, @pairs);
	@$env{qw(REMOTE_ADDR SERVER_NAME SERVER_PORT)} = ($addr, $server, $port);
	$env->{HTTPS} = 'on' if $ssl;
	$env->{REMOTE_PORT} = $attr{AJP_REMOTE_PORT};
	$env->{AJP_SECRET} = $attr{SECRET} if defined $attr{SECRET};
	$env->{$_} = $attr{$_} for grep { defined $attr{$_} } qw(REMOTE_USER AUTH_TYPE SSL_CERT SSL_CIPHER SSL_KEY_SIZE);
	$self->{q} = { %{ Test::Wire::_cgi($env, 1) }, attr => \%attr };
	# without a length a servlet that wants a body asks for it
	my $asks = !defined $env->{CONTENT_LENGTH} && $verb =~ /^P/;
	$self->{left} = $asks ? 9 ** 15 : $env->{CONTENT_LENGTH} // 0;
	$self->{answers} .= packet(pack 'Cn', 6, 8186) if $asks;
	$self->{q}{whole} = 1 if $self->{left} eq '0';
}

sub _read ($self) {
	while (length $self->{in} >= 4) {
		my ($magic, $n) = unpack 'nn', $self->{in};
		die sprintf "magic %04x\n", $magic if $magic != 0x1234;
		return if length $self->{in} < 4 + $n;
		last if $self->{q} && $self->{q}{whole};
		my $in = substr substr($self->{in}, 0, 4 + $n, ''), 4;
		if ($self->{q}) { $self->_piece($in) }
		elsif ($in eq "\x0a") { $self->{answers} .= packet("\x09") }
		else { $self->_forward($in) }
	}
	return;
}

sub _piece ($self, $in) {
	my $bytes = length $in ? substr $in, 2, unpack 'n', $in : '';
	$self->{q}{body} .= $bytes;
	$self->{q}{got} += length $bytes;
	$self->{q}{whole} = 1 if $bytes eq '' || $self->{q}{got} >= $self->{left};
	$self->{answers} .= packet(pack 'Cn', 6, 8186) if !$self->{q}{whole};
}

sub packet ($bytes) { return 'AB' . pack('n', length $bytes) . $bytes }
sub string ($s) { return pack('n', length $s) . "$s\0" }

sub head ($self, $status, @pairs) {
	my $head = '';
	for (my $i = 0; $i < @pairs; $i += 2) {
		my ($code) = grep { lc $REPLY_HEADER[$_] eq lc $pairs[$i] } 1 .. $#REPLY_HEADER;
		$head .= ($code ? pack 'n', 0xa000 | $code : string($pairs[$i])) . string($pairs[ $i + 1 ]);
	}
	return packet(pack('Cn', 4, $status) . string('x') . pack('n', @pairs / 2) . $head);
}

sub raw_head ($self, $raw) {
	my @pairs = map { /\A([^:]*): ?(.*)\z/s ? ($1, $2) : ($_, '') } split /\r\n/, $raw;
	my ($status, $otherwise, @rest) = (undef, 200);
	while (my ($name, $value) = splice @pairs, 0, 2) {
		if (lc $name eq 'status') { $status = $value =~ /([0-9]+)/ ? $1 : 0 }
		else { push @rest, $name, $value; $otherwise = 302 if lc $name eq 'location' }
	}
	my $head = $self->head($status // $otherwise, @rest);
	return $raw =~ /(?:\A|\n)\r?\n\z/ ? $head : substr $head, 0, -1;    # a head that is cut stays so
}

sub body ($self, $bytes) { return join '', map { packet(pack('Cn', 3, length) . "$_\0") } unpack '(a8184)*', $bytes }
sub end  ($self, $reuse = 1) { return packet(pack 'CC', 5, $reuse) }

# ---------------------------------------------------------------- uwsgi

package Test::Wire::uwsgi;
our @ISA = 'Test::Wire';

sub _read ($self) {
	if (!$self->{q}) {
		return if length $self->{in} < 4;
		my (undef, $n) = unpack 'CvC', $self->{in};
		return if length $self->{in} < 4 + $n;
		my $vars = substr substr($self->{in}, 0, 4 + $n, ''), 4;
		my @all;
		push @all, substr $vars, 0, unpack('v', substr $vars, 0, 2, ''), '' while length $vars;
		$self->{q} = Test::Wire::_cgi(Test::Wire::_pairs(@all), 0);
	}
	$self->_body($self->{q}{env}{CONTENT_LENGTH} || 0);
	return;
}

sub raw_head ($self, $raw) { return Test::Wire::_status_line($raw, '1.0') }
sub body     { return $_[1] }
sub end      { return '' }

1;
