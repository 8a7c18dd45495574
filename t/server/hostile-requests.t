# One reading of a request: a violation of RFC 9112 is refused, and the connection closes without running what follows.  No
# spelling of a path leaves the document root.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@/www"\n});
$srv->write('secret.txt', 'top secret');
$srv->write('www/hello.txt', 'hi');
$srv->write('www/sub/x.txt', 'x');
$srv->write('www/canary', 'the canary sings');

my $canary = "GET /canary HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

sub statuses { return [$_[0] =~ m{(?:\A|\r\n\r\n|</p>\n|\n)HTTP/1\.1 ([0-9]{3}) }g] }

# Refused with one of the statuses, closed, and the request after it not run.
sub refused {
	my ($name, $bytes, @want) = @_;
	my $got = $srv->request($bytes . $canary);
	my $seen = statuses($got);
	my $ok = !$srv->{timed_out} && @$seen == 1 && (grep { $seen->[0] == $_ } @want) && $got !~ /canary sings/;
	ok($ok, "$name: @want and close") or diag $srv->{timed_out} ? 'not closed; ' : '', "statuses @$seen; ", substr $got, 0, 300;
	return $got;
}

sub get { my ($target, @lines) = @_; return join "\r\n", "GET $target HTTP/1.1", 'Host: x', @lines, '', '' }

sub post { my ($body, @lines) = @_; return join("\r\n", 'POST /hello.txt HTTP/1.1', 'Host: x', @lines, '', '') . $body }

# [name, bytes, statuses]
my $chunked = 'Transfer-Encoding: chunked';
my @smuggling = (
	['Content-Length beside Transfer-Encoding', post("0\r\n\r\n", 'Content-Length: 5', $chunked), 400],
	['Transfer-Encoding beside Content-Length', post("0\r\n\r\n", $chunked, 'Content-Length: 5'), 400],
	['two Content-Length fields',        post('abcde', 'Content-Length: 5', 'Content-Length: 5'), 400],
	['two different Content-Lengths',    post('abcde', 'Content-Length: 5', 'Content-Length: 3'), 400],
	['a list of lengths',                post('abcde', 'Content-Length: 5, 5'), 400],
	(map { ["Content-Length \"$_\"", post('abcde', "Content-Length: $_"), 400] }
	    '+5', '-1', '-0', '0x5', '5 5', '5a', '5.0', '', '5;', '99999999999999999999', '9223372036854775808', "5\x0b"),
	['Transfer-Encoding in HTTP/1.0',    "POST / HTTP/1.0\r\n$chunked\r\n\r\n0\r\n\r\n", 400],
	['two Transfer-Encoding fields',     post("0\r\n\r\n", $chunked, $chunked), 400, 501],
	['unknown coding',                   post('', 'Transfer-Encoding: gzip'), 501],
	['identity',                         post('', 'Transfer-Encoding: identity'), 501, 400],
	['coding after another',            post("0\r\n\r\n", 'Transfer-Encoding: gzip, chunked'), 501, 400],
	['chunked twice',                    post("0\r\n\r\n", 'Transfer-Encoding: chunked, chunked'), 501, 400],
	['chunked is not last',              post("0\r\n\r\n", 'Transfer-Encoding: chunked, identity'), 501, 400],
	['quoted chunked',                   post("0\r\n\r\n", 'Transfer-Encoding: "chunked"'), 501, 400],
	['vertical tab before chunked',      post("0\r\n\r\n", "Transfer-Encoding: \x0bchunked"), 400, 501],
	['empty coding',                     post("0\r\n\r\n", 'Transfer-Encoding:'), 400, 501],
	['blank before the colon',           post("0\r\n\r\n", 'Transfer-Encoding : chunked'), 400],
	['tab before the colon',             post('abcde', "Content-Length\t: 5"), 400],
	['folded line',                      post("0\r\n\r\n", "Transfer-Encoding:\r\n chunked"), 400],
	['folded value',                     get('/', "X: a\r\n b"), 400],
	['first header line starts with a blank', "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400],
);
# A body that cannot be framed: the reply may have been 405 before that was known, but what follows is never run.
my @chunks = map { ["chunked body: $_->[0]", post($_->[1], $chunked), 400, 405, 413] } (
	['no hex digit', "zz\r\nabcde\r\n0\r\n\r\n"], ['0x prefix', "0x5\r\nabcde\r\n0\r\n\r\n"],
	['sign', "+5\r\nabcde\r\n0\r\n\r\n"], ['negative', "-1\r\nabcde\r\n0\r\n\r\n"],
	['leading blank', " 5\r\nabcde\r\n0\r\n\r\n"], ['bare LF after the size', "5\nabcde\r\n0\r\n\r\n"],
	['bare LF after an extension', "5;a\nabcde\r\n0\r\n\r\n"], ['bare CR in an extension', "5;a\rb\r\nabcde\r\n0\r\n\r\n"],
	['empty size', "\r\nabcde\r\n0\r\n\r\n"], ['too long a size', 'f' x 17 . "\r\nabcde\r\n0\r\n\r\n"],
	['size overflows', "ffffffffffffffff\r\nabcde\r\n0\r\n\r\n"], ['no line end after the data', "5\r\nabcde0\r\n\r\n"],
	['LF after the data', "5\r\nabcde\n0\r\n\r\n"], ['endless extension', '5;' . 'x' x 70_000 . "\r\nabcde\r\n0\r\n\r\n"],
	['endless trailers', "0\r\n" . "X: y\r\n" x 12_000 . "\r\n"], ['bare LF in trailers', "0\r\nX: y\n\r\n"],
);
my @syntax = (
	['bare LF ends a line',         "GET / HTTP/1.1\nHost: x\r\n\r\n", 400],
	['bare LF in the header',       "GET / HTTP/1.1\r\nHost: x\n\r\n", 400],
	['bare LF ends the head',       "GET / HTTP/1.1\r\nHost: x\r\n\n", 400],
	['bare CR in a value',          get('/', "X: a\rb"), 400],
	['bare CR in the request line', "GET /\rx HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['NUL in a value',              get('/', "X: a\0b"), 400],
	['NUL in a name',               get('/', "X\0: a"), 400],
	['NUL in the target',           get("/hello.txt\0.html"), 400],
	['control character in a value', get('/', "X: a\x01b"), 400],
	['DEL in a value',              get('/', "X: a\x7fb"), 400],
	['no colon',                    get('/', 'X'), 400],
	['empty name',                  get('/', ': x'), 400],
	['blank in a name',             get('/', 'X Y: z'), 400],
	['no Host',                     "GET / HTTP/1.1\r\n\r\n", 400],
	['two Hosts',                   get('/', 'Host: x'), 400],
	(map { ["Host \"$_\"", "GET / HTTP/1.1\r\nHost: $_\r\n\r\n", 400] }
	    'a b', 'a/b', 'u@h', '[::1', '[::1]x', '[x]', 'x:99999', 'x:abc', 'x:80:80', ':80', 'a%zz', 'a%41', 'x:0', '.', 'a..b', '.a', 'a..', '[::1%lo]', '[]', '[::1].', 'a' x 300, "a\tb", '<script>'),
	['HTTP/0.9',                    "GET /hello.txt\r\n\r\n", 400],
	['two blanks',                  "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['two blanks before the version', "GET /  HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['tab as separator',            "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['blank after the version',    "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400],
	['blank before the method',     " GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['no method',                   "/ HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['bad character in the method', "G\@T / HTTP/1.1\r\nHost: x\r\n\r\n", 400],
	['fragment in the target',      get('/hello.txt#x'), 400],
	['8-bit target',                get("/\xff"), 400],
	['target without slash',        get('hello.txt'), 400],
	['another scheme',              get('ftp://x/hello.txt'), 400],
	['HTTP/2.0',                    "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505],
	['HTTP/0.1',                    "GET / HTTP/0.1\r\nHost: x\r\n\r\n", 505, 400],
	['HTTP/11',                     "GET / HTTP/11\r\nHost: x\r\n\r\n", 400],
	['HTTP/1.10',                   "GET / HTTP/1.10\r\nHost: x\r\n\r\n", 400],
	['http/1.1',                    "GET / http/1.1\r\nHost: x\r\n\r\n", 400],
	['TLS hello',                   "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" . "\0" x 40, 400],
	['CONNECT',                     "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 501, 405, 400],
	['unknown Expect',              get('/hello.txt', 'Expect: the-worst'), 417],
	['over-long target',            get('/' . 'x' x 9000), 414],
	['over-long header',            get('/', 'X: ' . 'y' x 9000), 431],
	['over-long header name',       get('/', 'x' x 9000 . ': y'), 431, 400],
	['over-long method',            'G' x 9000 . " / HTTP/1.1\r\nHost: x\r\n\r\n", 414, 400, 501],
	['too many headers',            get('/', map { "X$_: y" } 1 .. 200), 431],
	['endless header',              get('/', map { "X$_: " . 'y' x 100 } 1 .. 500), 431],
	['endless empty lines',         "\r\n" x 5000 . get('/hello.txt'), 400],
);

refused(@$_) for @smuggling, @chunks, @syntax;

subtest 'each split of a request gives the same answer' => sub {
	for my $case (grep { length $_->[1] < 300 } @smuggling, @syntax) {
		my ($name, $bytes, @want) = @$case;
		my $c = $srv->connect;
		for my $byte (split //, $bytes) { $c->send($byte) or last }
		my $r = $c->reply;
		ok $r && (grep { $r->{status} == $_ } @want), "$name, byte by byte" or diag $r ? $r->{status} : 'no reply';
	}
};

subtest 'unusual but valid requests are served' => sub {
	my %case = (
		'HTTP/1.0 without Host'    => "GET /hello.txt HTTP/1.0\r\n\r\n",
		'HTTP/1.2'                 => "GET /hello.txt HTTP/1.2\r\nHost: x\r\nConnection: close\r\n\r\n",
		'absolute form'            => "GET http://y:80/hello.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		'an empty line before it'  => "\r\n" . get('/hello.txt', 'Connection: close'),
		'no blank after a colon'  => get('/hello.txt', 'Connection:close'),
		'blanks around a value'    => get('/hello.txt', "Connection: \t close \t "),
		'header name in capitals'  => get('/hello.txt', 'CONNECTION: CLOSE'),
		'8-bit value'              => get('/hello.txt', "X: \xe4", 'Connection: close'),
		'empty value'              => get('/hello.txt', 'X:', 'Connection: close'),
		'escaped letters'          => get('/%68%65llo.txt', 'Connection: close'),
		'dot segments'             => get('/sub/.././%2e/sub/%2e%2e/hello.txt', 'Connection: close'),
		'query'                    => get('/hello.txt?../../x', 'Connection: close'),
		'IPv6 Host'                => "GET /hello.txt HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n",
		'empty Host'               => "GET /hello.txt HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
		'a length of nothing'      => get('/hello.txt', 'Content-Length: 0', 'Connection: close'),
		'a body on GET'            => get('/hello.txt', 'Content-Length: 5', 'Connection: close') . 'abcde',
	);
	for (sort keys %case) {
		my $r = Test::Http::parse($srv->request($case{$_}));
		is "$r->{status} $r->{body}", '200 hi', $_;
		ok !$srv->{timed_out}, '... and closed' if $srv->{timed_out};
	}
};

subtest 'unknown methods are refused' => sub {
	for my $m (qw(POST PUT DELETE PATCH TRACE FOO get)) {
		my $got = $srv->request("$m /hello.txt HTTP/1.1\r\nHost: x\r\nX-Mirror: me\r\nConnection: close\r\n\r\n");
		my $r = Test::Http::parse($got);
		ok $r->{status} == 405 || $r->{status} == 501, "$m: 405 or 501" or diag $r->{status};
		is $r->{header}{allow}, 'GET, HEAD, OPTIONS', '... with Allow' if $r->{status} == 405;
		unlike $got, qr/me\r/, '... and nothing is mirrored' if $m eq 'TRACE';
	}
};

subtest 'no path leaves the root' => sub {
	my @path = (
		'/../secret.txt', '/%2e%2e/secret.txt', '/.%2e/secret.txt', '/sub/../../secret.txt', '/sub/%2e%2e/%2e%2e/secret.txt',
		'/..%2fsecret.txt', '/sub%2f..%2f..%2fsecret.txt', '/..%5csecret.txt', '/..\\secret.txt', '/%2e%2e%2fsecret.txt',
		'/%252e%252e/secret.txt', '/....//secret.txt', '/..;/secret.txt', '/./.././secret.txt', '//../secret.txt',
		'/%c0%ae%c0%ae/secret.txt', '/%uff0e%uff0e/secret.txt', '/sub/x.txt/../../../secret.txt', '/%2e%2e', '/..', '/../',
		'http://x/../secret.txt', '/' . '../' x 50 . 'etc/passwd', '/' . '%2e%2e/' x 50 . 'etc/passwd',
	);
	for (@path) {
		my $got = $srv->get($_);
		ok $got =~ m{\AHTTP/1\.1 40[034] } && $got !~ /top secret|root:/, $_ or diag substr $got, 0, 200;
	}
	for ('/hello.txt%00', '/hello.txt%00.html', '/%00', '/%', '/%4', '/%zz', '/%4g', '/hello%2') {
		like $srv->get($_), qr{\AHTTP/1\.1 400 }, "$_: 400";
	}
	for ('/sub%2fx.txt', '/sub%2Fx.txt', '/sub%5cx.txt', '/sub\\x.txt') {
		like $srv->get($_), qr{\AHTTP/1\.1 40[034] }, "$_: no other way to write a slash";
	}
};

subtest 'a redirect cannot carry a header or another host' => sub {
	mkdir $srv->path("www/$_") or die $! for "a\r\nX: y", '%0d%0a';
	my $r = $srv->fetch('/a%0d%0aX:%20y');
	is $r->{status}, 301, 'directory with a line break in its name';
	is $r->{header}{location}, '/a%0D%0AX%3A%20y/', '... is encoded';
	is $r->{header}{x}, undef, '... and is one header';
	is $srv->fetch('/%250d%250a')->{header}{location}, '/%250d%250a/', 'a name that holds escapes';
	is $srv->fetch('//sub')->{header}{location}, '/sub/', '//host is a path';
	is $srv->fetch('/sub?x=%0d%0aX:y')->{header}{location}, '/sub/?x=%0d%0aX:y', 'the query stays escaped';
};

like $srv->get('/hello.txt'), qr/ 200 .*hi\z/s, 'after all that the server still serves';

done_testing;
