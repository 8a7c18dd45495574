package Test::Drill::Cases;
# What a hostile application does, and what its client must get.
#
# `all($protocol)` returns hashes: `name`; `want`, a status, "cut" or a list of both; `do`, called with the codec (Test::Wire),
# returns what is sent: strings, and `[drip => bytes]` one byte at a time, `[flood => bytes]` without end, `['close']`,
# `['reset']`, `['half']` closes one direction, `['wait']` keeps silent.
#
# `text` is the body of the reply; `method`, `body` and `fields` change the request; `early`: the application does not wait for the body;
# `block` is the application: `silent` and `quiet` have a short deadline.  Where the client gets a head and then a cut, `silent` becomes
# `stalls`: only the deadline between bytes is short there, as a slow machine may need long for the head.  A request with a body
# cannot be repeated, so those that must not meet a kept socket which another case closes have pools of their own: `quiet`, `uploads`.
use v5.36;
use Test::Fcgi::Codec qw(record stream end_request T_BEGIN T_STDIN T_STDOUT T_STDERR T_END T_GET_VALUES T_UNKNOWN_TYPE);

my ($p, @all);

sub add ($name, $want, $do, %more) {
	$want = $want->{$p} // $want->{other} if ref $want eq 'HASH';
	$more{block} = 'stalls' if ($more{block} // '') eq 'silent' && grep { defined && $_ eq 'cut' } ref $want ? @$want : $want;
	push @all, { block => 'drill', %more, name => $name, want => $want, do => $do } if defined $want;
	return;
}

# A head in CGI style, with a body.
sub raw ($name, $want, $head, %more) {
	add($name, $want, sub ($w) { return $w->raw_head($head . "\r\n") . $w->body($more{sends} // 'body') . $w->end }, %more);
	return;
}

sub whole ($w, $body = 'body') { return $w->head(200, 'X-A' => 'b') . $w->body($body) . $w->end }

# ---------------------------------------------------------------- every protocol

# Replies without a length end with the connection, so a break looks like the end.
sub breaks {
	my $open = $p =~ /^(?:scgi|uwsgi)$/ ? 200 : 'cut';
	for (['closes', 502, 'drill', ['close']], ['resets', 502, 'drill', ['reset']], ['is silent', 504, 'silent', ['wait']]) {
		my ($how, $early, $block, $do) = @$_;
		my $late = $how eq 'closes' ? $open : 'cut';
		my @in = (block => $block);
		add("$how at once", $early, sub { $do }, @in);
		add("$how after one byte", $early, sub ($w) { (substr(whole($w), 0, 1), $do) }, @in);
		add("$how within the head", $early, sub ($w) { (substr($w->head(200, 'X-A' => 'b' x 100), 0, 60), $do) }, @in);
		add("$how after a head without length", $late, sub ($w) { ($w->head(200, 'X-A' => 'b'), $do) }, @in);
		add("$how after a head with a length", 'cut', sub ($w) { ($w->head(200, 'Content-Length' => 10), $do) }, @in);
		add("$how within a body without length", $late, sub ($w) { ($w->head(200, 'X-A' => 'b') . $w->body('half'), $do) }, @in);
		add("$how within a body", 'cut', sub ($w) { ($w->head(200, 'Content-Length' => 10) . $w->body('half'), $do) }, @in);
		add("$how before the body of the request is there", $early, sub { $do }, early => 1, method => 'POST', body => 'x' x 300_000,
		    block => $block eq 'silent' ? 'quiet' : $block);
	}
	# A reset may come before the server knows that it is connected.
	for (['hangsup', 502], ['resets', [502, 503]]) {
		my ($where, $want) = @$_;
		add("$where when it accepts", $want, sub { }, block => $where);
		add("$where when it accepts a body", $want, sub { }, block => $where, method => 'POST', body => 'x' x 300_000);
	}
	add('speaks first', 502, sub { ['close'] }, block => 'greets');
	add('is not there', 503, sub { }, block => 'gone');
	add('half closes after its reply', 200, sub ($w) { (whole($w), ['half'], ['wait']) }, text => 'body');
	add('closes after its reply', 200, sub ($w) { (whole($w), ['close']) }, text => 'body');
	add('resets within a large body', 'cut', sub ($w) { ($w->head(200, 'Content-Length' => 3_000_000) . $w->body('x' x 1_000_000), ['reset']) });
	return;
}

sub slow {
	add('one byte at a time', 200, sub ($w) { [drip => whole($w)] }, text => 'body');
	add('one byte at a time, with a length', 200, sub ($w) { [drip => $w->head(200, 'Content-Length' => 4) . $w->body('body') . $w->end] }, text => 'body');
	add('one byte at a time, to the middle', 'cut', sub ($w) { ([drip => $w->head(200, 'Content-Length' => 9) . $w->body('body')], ['close']) });
	add('pieces of one byte', 200, sub ($w) { $w->head(200, 'X-A' => 'b') . join('', map { $w->body($_) } split //, 'x' x 5000) . $w->end }, text => 'x' x 5000);
	add('5 MB', 200, sub ($w) { whole($w, 'y' x 5_000_000) }, text => 'y' x 5_000_000);
	add('an early reply', 200, sub ($w) { ($w->head(200, 'Content-Length' => 4) . $w->body('body') . $w->end, ['wait']) }, block => 'uploads', text => 'body', early => 1, method => 'POST', body => 'x' x 1_000_000);
	# TCP may lose a reply whose sender closes with unread bytes.
	add('an early reply, then closes', [200, 502, 'cut'], sub ($w) { (whole($w), ['close']) }, early => 1, method => 'POST', body => 'x' x 1_000_000);
	return;
}

sub heads {
	my $lines = $p ne 'ajp13';      # AJP13 counts its strings
	raw('no fields', 200, '', text => 'body');
	raw('an empty value', 200, "X-A:\r\n", text => 'body');
	raw('bytes above 127', 200, "X-A: \xff\xfe\r\n", text => 'body');
	raw('a tab in a value', 200, "X-A: a\tb\r\n", text => 'body');
	raw('a name without a colon', 502, "X-A\r\n") if $lines;
	raw('an empty name', 502, ": b\r\n");
	raw('a name with a space', 502, "X A: b\r\n");
	raw('a space before the colon', 502, "X-A : b\r\n");
	raw("a name with byte $_", 502, "X" . chr($_) . "A: b\r\n") for 0, 1, 0x7f, 0xff, ord '(', ord '"';
	raw("a value with byte $_", 502, "X-A: a" . chr($_) . "b\r\n") for 0, 1, 8, 13, 0x1b, 0x7f;
	raw('a folded line', 502, "X-A: a\r\n b\r\n") if $lines;
	raw('a line end in a value', 502, "X-A: a\nEvil: b\r\n") if !$lines;
	raw('a line end in a name', 502, "X-A\nEvil: b\r\n") if !$lines;
	raw('fields of the next reply', 200, "X-A: b\r\nConnection: close\r\nKeep-Alive: timeout=1\r\nUpgrade: h2c\r\nTrailer: X-A\r\nProxy-Authenticate: x\r\n", text => 'body');
	raw('many fields', 200, join('', map { "X-$_: b\r\n" } 1 .. 200), text => 'body');
	raw('too many fields', 502, join('', map { "X-$_: b\r\n" } 1 .. 300));
	raw('a long value', 200, 'X-A: ' . 'b' x ($lines ? 60_000 : 7_000) . "\r\n", text => 'body');
	raw('a head of 70 kB', 502, 'X-A: ' . 'b' x 70_000 . "\r\n") if $lines;
	add('a head without end', 502, sub ($w) { ($w->raw_head("X-A: b\r\n"), [flood => $w->can('note') ? $w->raw_head("X-A: b\r\n" x 100) : "X-A: b\r\n" x 100]) }) if $lines;
	add('a line without end', 502, sub ($w) { ($w->raw_head('X-A: '), [flood => $w->can('note') ? $w->raw_head('b' x 1000) : 'b' x 1000]) }) if $lines;
	add('random bytes', 502, sub { (join('', map { chr(($_ * 7919) % 251) } 1 .. 2000), ['close']) });
	add('NUL bytes', 502, sub { ("\0" x 2000, ['close']) });
	return;
}

sub statuses {
	my $cgi = $p =~ /cgi\z/;
	raw("status $_", $_, "Status: $_ x\r\n", text => 'body') for 200, 299, 404, 500, 503, 599;
	raw("status '$_'", 502, "Status: $_ x\r\n") for '099', '600', '999', $p eq 'ajp13' ? () : ('0', '20', '1000', '-200', 'abc', '2 0');
	raw('two of Status', 502, "Status: 200 x\r\nStatus: 404 y\r\n") if $cgi;
	raw('status 100 without another', 502, "Status: 100 x\r\n") if $cgi;
	raw('Location without status', 302, "Location: /x\r\n") if $cgi;
	for my $status (204, 304) {
		raw("$status with a body", $status, "Status: $status x\r\n");
		raw("$status with a length", $status, "Status: $status x\r\nContent-Length: 4\r\n");
	}
	raw('HEAD with a body', 200, "X-A: b\r\n", method => 'HEAD');
	raw('HEAD with a length', 200, "Content-Length: 4\r\n", method => 'HEAD', sends => '');
	raw('HEAD with a length and a body', 200, "Content-Length: 4\r\n", method => 'HEAD');
	return;
}

sub lengths {
	raw("Content-Length '$_'", 502, "Content-Length: $_\r\n") for '-1', '+4', '4 4', '4, 4', '0x4', '4.0', '', 'four', '9223372036854775808', '9' x 400;
	raw('two lengths', 502, "Content-Length: 4\r\nContent-Length: 5\r\n");
	raw('a length twice', 502, "Content-Length: 4\r\nContent-Length: 4\r\n");
	raw('more than its length', 200, "Content-Length: 2\r\n", text => 'bo');
	raw('a length of nothing, and a body', 200, "Content-Length: 0\r\n", text => '');
	raw('less than its length', 'cut', "Content-Length: 400\r\n") if $p !~ /http/;
	raw('a second reply in the body', 200, "Content-Length: 2\r\n", sends => "ok" . "HTTP/1.1 200 Evil\r\nContent-Length: 4\r\n\r\nevil", text => 'ok');
	raw('Transfer-Encoding is of no concern', 200, "Transfer-Encoding: chunked\r\n", sends => "4\r\nevil\r\n0\r\n\r\n", text => "4\r\nevil\r\n0\r\n\r\n") if $p !~ /http|uwsgi/;
	return;
}

sub files {
	my ($up, $enc) = ('/..' x 12, '/%2e%2e' x 12);
	raw("X-Sendfile: $_->[0]", $_->[1], "X-Sendfile: $_->[2]\r\n") for
	    ['outside', 403, '/etc/passwd'], ['climbs', 403, "$up/etc/passwd"], ['climbs, encoded', 403, "/tmp$enc/etc/passwd"],
	    ['relative', 403, 'etc/passwd'], ['a NUL, encoded', 403, '/etc/passwd%00'], ['/proc', 403, '/proc/self/environ'],
	    ['a device', 403, '/dev/zero'], ['long', 403, '/' . 'x' x 5000], ['the root', 403, '/'], ['twice', 403, "/etc/passwd\r\nX-Sendfile: /etc/shadow"];
	raw('X-LIGHTTPD-send-file: outside', 403, "X-LIGHTTPD-send-file: /etc/passwd\r\n");
	raw("X-Accel-Redirect: $_->[0]", $_->[1], "X-Accel-Redirect: $_->[2]\r\n") for
	    ['climbs', [403, 404], '/../../etc/passwd'], ['not there', 404, '/none'], ['relative', [403, 404, 502], 'none'];
	raw('X-Sendfile beside 204', 204, "Status: 204 x\r\nX-Sendfile: /etc/passwd\r\n");
	raw('X-Sendfile and HEAD', 403, "X-Sendfile: /etc/passwd\r\n", method => 'HEAD', sends => '');
	add('X-Sendfile, then silent', 403, sub ($w) { ($w->head(200, 'X-Sendfile' => '/etc/passwd', 'Content-Length' => 10), ['wait']) });
	add('X-Sendfile, then without end', 403, sub ($w) { ($w->head(200, 'X-Sendfile' => '/etc/passwd'), [flood => $w->body('x' x 4000)]) });
	return;
}

sub requests {
	add('65 KiB of variables', { fastcgi => 200, scgi => 200, http => 200, ajp13 => 431, uwsgi => 431 }, sub { }, block => 'pad', fields => ['X-Pad: a']);
	return;
}

# ---------------------------------------------------------------- FastCGI

sub fcgi ($name, $want, $bytes, %more) { add($name, $want, sub { ($bytes, @{ $more{then} // [] }) }, %more); return }

sub fastcgi {
	my ($head, $body, $end) = (record(T_STDOUT, 1, "X-A: b\r\n\r\n"), record(T_STDOUT, 1, 'body'), end_request(1));
	my @close = (then => [['close']]);
	my @ok = (text => 'body');
	fcgi('records of another request before', 200, record(T_STDOUT, 2, "X-B: c\r\n\r\nevil") . end_request(2) . $head . $body . $end, @ok);
	fcgi('records of another request within', 200, $head . record(T_STDOUT, 7, 'evil') . record(T_STDERR, 9, 'evil') . $body . end_request(2) . $end, @ok);
	fcgi('only records of another request', 502, record(T_STDOUT, 2, "X-B: c\r\n\r\nevil") . end_request(2), @close);
	fcgi('only request 0', 502, record(T_STDOUT, 0, "X-B: c\r\n\r\nevil") . end_request(0), @close);
	fcgi("version $_", 502, record(T_STDOUT, 1, "X-A: b\r\n\r\n", version => $_) . $end) for 0, 2, 255;
	fcgi('version 2 within the body', 'cut', $head . record(T_STDOUT, 1, 'evil', version => 2) . $end);
	fcgi("type $_ is skipped", 200, $head . record($_, 1, 'evil') . $body . $end, @ok) for 0, T_BEGIN, T_STDIN, T_GET_VALUES, T_UNKNOWN_TYPE, 200;
	fcgi('management records', 200, record(T_GET_VALUES, 0, 'x') . record(T_UNKNOWN_TYPE, 0, "\xc8" . "\0" x 7) . $head . $body . $end, @ok);
	fcgi("padding of $_", 200, record(T_STDOUT, 1, "X-A: b\r\n\r\n", padding => $_) . record(T_STDOUT, 1, 'body', padding => $_) . record(T_END, 1, "\0" x 8, padding => $_), @ok) for 1, 7, 255;
	fcgi('empty records', 200, record(T_STDOUT, 1, '') x 3 . $head . record(T_STDERR, 1, '') x 3 . $body . record(T_STDOUT, 1, '') . $end, @ok);
	fcgi('100,000 empty records', 200, $head . record(T_STDERR, 1, '') x 100_000 . $body . $end, @ok);
	fcgi('a head in records of one byte', 404, join('', map { record(T_STDOUT, 1, $_) } split //, "Status: 404 x\r\n\r\n") . $body . $end, @ok);
	fcgi('stderr, then a reply', 200, record(T_STDERR, 1, "PHP Warning: x\n" x 3) . $head . $body . $end, @ok);
	fcgi('1 MB of stderr', 200, record(T_STDERR, 1, "no line end" x 5000) x 20 . $head . $body . $end, @ok);
	fcgi('stderr with control characters', 200, record(T_STDERR, 1, join '', map { chr } 0 .. 255) . $head . $body . $end, @ok);
	fcgi('stderr only', 502, record(T_STDERR, 1, 'fatal') . $end);
	fcgi('stderr without end, then closes', 502, record(T_STDERR, 1, 'fatal'), @close);
	fcgi('the end only', 502, $end);
	fcgi('the end within the head', 502, record(T_STDOUT, 1, 'X-A: b') . $end);
	fcgi('overloaded', 503, end_request(1, 2));
	fcgi('cannot multiplex', 503, end_request(1, 1));
	fcgi('unknown role', 502, end_request(1, 3));
	fcgi("protocol status $_", 502, end_request(1, $_)) for 4, 255;
	fcgi('overloaded after the head', 'cut', $head . end_request(1, 2));
	fcgi('overloaded within the body', 'cut', $head . $body . end_request(1, 2));
	fcgi('an exit status', 200, $head . $body . end_request(1, 0, 17), @ok);
	fcgi("an end of $_ bytes", 'cut', $head . $body . record(T_END, 1, "\0" x $_)) for 0, 1, 7;
	fcgi('an end of 0 bytes before the head', 502, record(T_END, 1, ''));
	fcgi('an end of 100 bytes', 200, $head . $body . record(T_END, 1, "\0" x 100), @ok);
	fcgi('a record is longer than its bytes', 'cut', $head . record(T_STDOUT, 1, 'body', length => 500), @close);
	fcgi('two ends', 200, $head . $body . $end . $end, @ok);
	fcgi('a reply after the end', 200, $head . $body . $end . record(T_STDOUT, 1, "X-B: c\r\n\r\nevil") . $end, @ok);
	fcgi('garbage after the end', 200, $head . $body . $end . 'evil' x 100, @ok);
	fcgi('HTTP instead', 502, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", @close);
	fcgi('two heads', 200, $head . $head . $end, text => "X-A: b\r\n\r\n");
	my @silent = (block => 'silent');
	add('stderr without end, and no head', 504, sub { [flood => record(T_STDERR, 1, "PHP Warning: x\n" x 20)] }, @silent);
	add('stderr without end, after the head', 'cut', sub { ($head, [flood => record(T_STDERR, 1, "PHP Warning: x\n" x 20)]) }, @silent);
	add('empty records without end, and no head', 504, sub { [flood => record(T_STDOUT, 1, '') x 100] }, @silent);
	add('empty records without end, after the head', 'cut', sub { ($head, [flood => record(T_STDOUT, 1, '') x 100]) }, @silent);
	add('records of others without end', 504, sub { [flood => record(T_STDOUT, 2, 'evil') x 100] }, @silent);
	return;
}

# ---------------------------------------------------------------- SCGI

sub scgi {
	fcgi('a status line, as of nph- scripts', 200, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", text => 'body', then => [['close']]);
	fcgi('a status line of no version', 502, "HTTP/9 200 OK\r\nContent-Length: 4\r\n\r\nevil", then => [['close']]);
	fcgi('a request instead', 502, "70:CONTENT_LENGTH\0000\0SCGI\0001\0,", then => [['close']]);
	fcgi('lines that end with LF', 404, "Status: 404 x\nX-A: b\n\nbody", text => 'body');
	fcgi('lines that end both ways', 404, "Status: 404 x\r\nX-A: b\n\r\nbody", text => 'body');
	fcgi('nothing but an empty line', 200, "\n", text => '');
	fcgi('stays open after its length', 200, "Content-Length: 4\r\n\r\nbody", text => 'body', then => [['wait']]);
	fcgi('floods after its length', 200, "Content-Length: 4\r\n\r\nbody", text => 'body', then => [[flood => 'evil' x 100]]);
	fcgi('closes within a line end', 502, "X-A: b\r\n\r", then => [['close']]);
	return;
}

# ---------------------------------------------------------------- HTTP

sub chunks {
	my $head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	my ($ok, @ok) = ("4\r\nbody\r\n", text => 'body');
	fcgi("chunk: $_->[0]", 'cut', "$head$ok$_->[1]", then => [['close']]) for
	    ['no size', "\r\nevil\r\n0\r\n\r\n"], ['not hexadecimal', "xyz\r\nevil\r\n"], ['negative', "-4\r\nevil\r\n"], ['plus', "+4\r\nevil\r\n"],
	    ['0x', "0x4\r\nevil\r\n0\r\n\r\n"], ['a space before', " 4\r\nevil\r\n"], ['too large', "ffffffffffffffff\r\nevil\r\n"],
	    ['overflows', "10000000000000004\r\nevil\r\n0\r\n\r\n"], ['LF only', "4\nevil\n0\n\n"], ['shorter than its size', "9\r\nevil\r\n0\r\n\r\n"],
	    ['longer than its size', "2\r\nevil\r\n0\r\n\r\n"], ['no line end after it', "4\r\nevil0\r\n\r\n"], ['no last one', ''],
	    ['half of the last one', '0'], ['no empty line', "0\r\n"], ['CR only', "0\r\n\r"], ['a long extension', '4;' . 'a' x 300 . "\r\nevil\r\n0\r\n\r\n"],
	    ['NUL in an extension', "4;a=\0\r\nevil\r\n0\r\n\r\n"], ['trailers without end', "0\r\n" . "A: b\r\n" x 2000], ['a trailer without a colon', "0\r\nevil\r\n\r\n"],
	    ['a trailer with a control character', "0\r\nA: \1\r\n\r\n"], ['leading zeros', '0' x 300 . "4\r\nevil\r\n0\r\n\r\n"];
	fcgi('chunk: extensions', 200, "${head}4;a=b;c=\"d\"\r\nbody\r\n0;e\r\n\r\n", @ok);
	fcgi('chunk: trailers', 200, "${head}${ok}0\r\nX-Sendfile: /etc/passwd\r\nContent-Length: 1\r\n\r\n", @ok);
	fcgi('chunk: large letters', 200, "${head}A\r\n0123456789\r\n0\r\n\r\n", text => '0123456789');
	fcgi('chunk: bytes after the last one', 200, "${head}${ok}0\r\n\r\nHTTP/1.1 200 Evil\r\nContent-Length: 4\r\n\r\nevil", @ok);
	return;
}

sub http {
	my ($ok, $len) = ("HTTP/1.1 200 OK\r\n", "Content-Length: 4\r\n");
	my @close = (then => [['close']]);
	my @ok = (text => 'body');
	fcgi("line: $_->[0]", 502, "$_->[1]${len}\r\nbody", @close) for
	    ['none', ''], ['HTTP/2', "HTTP/2.0 200 OK\r\n"], ['HTTP/0.9', "HTTP/0.9 200 OK\r\n"], ['small letters', "http/1.1 200 OK\r\n"], ['ICY', "ICY 200 OK\r\n"],
	    ['two digits', "HTTP/1.1 20 OK\r\n"], ['four digits', "HTTP/1.1 2000 OK\r\n"], ['no status', "HTTP/1.1\r\n"], ['no space', "HTTP/1.1200 OK\r\n"],
	    ['two spaces', "HTTP/1.1  200 OK\r\n"], ['an empty line before', "\r\n$ok"], ['NUL in the reason', "HTTP/1.1 200 O\0K\r\n"], ['CR in the reason', "HTTP/1.1 200 O\rK\r\n"],
	    ['a request', "GET / HTTP/1.1\r\n"], ['CGI', "Status: 200 OK\r\n"], ['long', 'HTTP/1.1 200 ' . 'x' x 9000 . "\r\n"];
	add('line: without end', 502, sub { ('HTTP/1.1 200 ', [flood => 'x' x 1000]) });
	fcgi('line: no reason', 200, "HTTP/1.1 200\r\n${len}\r\nbody", @ok);
	fcgi("two meanings: $_->[0]", 502, "$_->[1]\r\n4\r\nbody\r\n0\r\n\r\n", @close) for
	    ['length and chunks', "${ok}${len}Transfer-Encoding: chunked\r\n"], ['chunks and length', "${ok}Transfer-Encoding: chunked\r\n$len"],
	    ['gzip, chunked', "${ok}Transfer-Encoding: gzip, chunked\r\n"], ['chunked twice', "${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"],
	    ['chunked, chunked', "${ok}Transfer-Encoding: chunked, chunked\r\n"], ['identity', "${ok}Transfer-Encoding: identity\r\n"], ['an empty coding', "${ok}Transfer-Encoding:\r\n"],
	    ['xchunked', "${ok}Transfer-Encoding: xchunked\r\n"], ['a space in the name', "${ok}Transfer-Encoding : chunked\r\n"], ['chunks in HTTP/1.0', "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n"];
	my $interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
	fcgi('HTTP: 100, 102, 103', 200, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 x\r\n\r\n$interim$ok${len}\r\nbody", @ok);
	fcgi('100 of them', 502, $interim x 100 . "$ok${len}\r\nbody", @close);
	add('1xx without end', 502, sub { [flood => $interim] });
	fcgi('only a 103', 502, $interim, @close);
	fcgi('a 103 with a bad field', 502, "HTTP/1.1 103 x\r\nA b\r\n\r\n$ok${len}\r\nbody", @close);
	fcgi('101 unasked', 502, "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nevil", @close);
	fcgi('HTTP/1.0', 200, "HTTP/1.0 200 OK\r\n${len}\r\nbody", @ok, then => [['close']]);
	fcgi('HTTP/1.0, stays open', 200, "HTTP/1.0 200 OK\r\n${len}\r\nbody", @ok, then => [['wait']]);
	fcgi('HTTP/1.0, kept', 200, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n${len}\r\nbody", @ok);
	fcgi('to the end of the stream', 200, "$ok\r\nbody", @ok, then => [['close']]);
	fcgi('to the end of the stream, reset', 'cut', "$ok\r\nbody", then => [['reset']]);
	fcgi('Connection: close, stays open', 200, "${ok}Connection: close\r\n${len}\r\nbody", @ok, then => [['wait']]);
	fcgi('bytes after the length', 200, "${ok}${len}\r\nbodyHTTP/1.1 200 Evil\r\nContent-Length: 4\r\n\r\nevil", @ok);
	fcgi('HEAD with chunks', 200, "${ok}Transfer-Encoding: chunked\r\n\r\n", method => 'HEAD');
	fcgi('less than its length', 'cut', "${ok}Content-Length: 400\r\n\r\nbody", @close);
	return chunks();
}

# ---------------------------------------------------------------- AJP13

sub ajp13 {
	my $packet = \&Test::Wire::ajp13::packet;
	my $string = \&Test::Wire::ajp13::string;
	my ($head, $body, $end) = ($packet->(pack('Cn', 4, 200) . $string->('OK') . pack 'n', 0), $packet->(pack('Cn', 3, 4) . "body\0"), $packet->("\5\1"));
	my @close = (then => [['close']]);
	my @ok = (text => 'body');
	fcgi("magic $_", 502, $_ . substr("$head$body$end", 2), @close) for "\x12\x34", 'BA', "\0\0", 'HT';
	fcgi('an empty packet', 502, $packet->(''), @close);
	fcgi("type $_", 502, $packet->(chr $_), @close) for 0, 1, 2, 7, 10, 255;
	fcgi('a body before the head', 502, $body . $head . $end, @close);
	fcgi('the end before the head', 502, $end, @close);
	fcgi('two heads', 'cut', $head . $head . $body . $end, @close);
	fcgi('an end of one byte', ['cut', 200], $head . $body . $packet->("\5"), @close);
	fcgi('a packet of 65535 bytes', 502, 'AB' . pack('n', 65535) . substr($head, 4), @close);
	fcgi('a string longer than its packet', 502, $packet->(pack('CnnC', 4, 200, 60000, 65)), @close);
	fcgi('a string without NUL', 502, $packet->(pack('Cn', 4, 200) . pack('n', 2) . 'OKx' . pack 'n', 0), @close);
	fcgi('more fields than there are', 502, $packet->(pack('Cn', 4, 200) . $string->('OK') . pack 'n', 9), @close);
	fcgi('an unknown name by number', 502, $packet->(pack('Cn', 4, 200) . $string->('OK') . pack('nn', 1, 0xa0ff) . $string->('x')), @close);
	fcgi("a value with byte $_", 502, $packet->(pack('Cn', 4, 200) . $string->('OK') . pack('n', 1) . $string->('X-A') . $string->('a' . chr($_) . 'Evil: b')), @close) for 0, 10, 13;
	fcgi('a piece longer than its packet', 'cut', $head . $packet->(pack('Cn', 3, 400) . "body\0"), @close);
	fcgi('a piece of nothing', 200, $head . $packet->(pack('Cn', 3, 0) . "\0") . $body . $end, @ok);
	fcgi('not to be used again', 200, $head . $body . $packet->("\5\0"), @ok, then => [['wait']]);
	fcgi('bytes after the end', 200, $head . $body . $end . $head . $packet->(pack('Cn', 3, 4) . "evil\0") . $end, @ok);
	fcgi('HTTP instead', 502, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", @close);
	add('empty pieces without end', 'cut', sub { ($head, [flood => $packet->(pack('Cn', 3, 0) . "\0") x 100]) }, block => 'silent');
	fcgi('asks for a body that nobody has', [200, 502, 'cut'], $packet->(pack 'Cn', 6, 8186) . $head . $body . $end);
	return;
}

# ---------------------------------------------------------------- uwsgi

sub uwsgi {
	fcgi("line: $_->[0]", 502, "$_->[1]Content-Length: 4\r\n\r\nbody", then => [['close']]) for
	    ['HTTP/2', "HTTP/2.0 200 OK\r\n"], ['two digits', "HTTP/1.1 20 OK\r\n"], ['four digits', "HTTP/1.1 2000 OK\r\n"], ['NUL in the reason', "HTTP/1.1 200 O\0K\r\n"];
	fcgi('stays open after its length', 200, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", text => 'body', then => [['wait']]);
	fcgi('floods after its length', 200, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", text => 'body', then => [[flood => 'evil' x 100]]);
	fcgi('only a part of the line', 502, 'HTTP/1.1 2', then => [['close']]);
	return;
}

my %own = (fastcgi => \&fastcgi, scgi => \&scgi, http => \&http, ajp13 => \&ajp13, uwsgi => \&uwsgi);

sub all {
	($p) = @_;
	@all = ();
	$_->() for \&breaks, \&slow, \&heads, \&statuses, \&lengths, \&files, \&requests, $own{$p};
	return [@all];
}

1;
