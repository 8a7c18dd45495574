# $HTTP["language"] and $REQUEST_HEADER["name"]: each operator, captures, nested blocks and else.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util ();

my $srv = Test::Server->start(conf => <<'CONF');
server.tag = "none"
$HTTP["language"] =~ "^(de|fr)" {
	url.redirect = ( "^/lang/(.*)" => "/%1/$1" )
	$REQUEST_HEADER["X-Old"] == "yes" { url.redirect = ( "^/lang/(.*)" => "/old/$1" ) }
}
else $HTTP["language"] == "" { url.redirect = ( "^/lang/" => "/choose" ) }
else { url.redirect = ( "^/lang/" => "/en/" ) }
$REQUEST_HEADER["DNT"] == "1" { server.tag = "dnt" }
$REQUEST_HEADER["X-Level"] != "" { server.tag = "level" }
$REQUEST_HEADER["x-level"] =^ "hi" { server.tag = "begins" }
$REQUEST_HEADER["X-Level"] =$ "gh!" { server.tag = "ends" }
$REQUEST_HEADER["X-Level"] !~ "^(|[a-z!]+)$" { server.tag = "odd" }
$REQUEST_HEADER["User-Agent"] =~ "Bot/([0-9]+)" { url.redirect = ( "^/bot" => "/bot-%1" ) }
$REQUEST_HEADER["Host"] == "www.example.org" { server.tag = "host" }
$REQUEST_HEADER["X-Forwarded-Proto"] == "http" {
	$HTTP["host"] =~ "^(.*)$" { url.redirect = ( "^/tls" => "https://%1${url.path}${qsa}" ) }
}
CONF

sub ask {
	my ($target, @line) = @_;
	unshift @line, 'Host: h' unless grep { /^Host:/i } @line;
	my $r = Test::Http::parse($srv->request(join("\r\n", "GET $target HTTP/1.1", @line, 'Connection: close') . "\r\n\r\n"));
	return $r->{header}{location} // $r->{header}{server};
}

is ask(@{ $_->[1] }), $_->[2], $_->[0] for (
	['a language', ['/lang/a', 'Accept-Language: de-AT,de;q=0.9'], '/de/a'],
	['another one', ['/lang/a', 'accept-language: fr'], '/fr/a'],
	['... and a block inside of it', ['/lang/a', 'Accept-Language: fr', 'X-Old: yes'], '/old/a'],
	['none', ['/lang/a'], '/choose'],
	['an empty one', ['/lang/a', 'Accept-Language:'], '/choose'],
	['another language', ['/lang/a', 'Accept-Language: es, de'], '/en/'],
	['two lines are one', ['/lang/a', 'Accept-Language: fr', 'Accept-Language: es'], '/fr/a'],
	['==', ['/', 'DNT: 1'], 'dnt'],
	['== of two lines', ['/', 'DNT: 1', 'DNT: 1'], 'none'],
	['== of another value', ['/', 'DNT: 10'], 'none'],
	['!=', ['/', 'X-Level: low'], 'level'],
	['!= of a header that is absent', ['/'], 'none'],
	['=^', ['/', 'X-Level: hi'], 'begins'],
	['=$', ['/', 'X-LEVEL: high!'], 'ends'],
	['!~', ['/', 'X-Level: 7'], 'odd'],
	['a header with a field of its own', ['/bot', 'User-Agent: A Bot/12 b'], '/bot-12'],
	['Host', ['/', 'Host: WWW.example.ORG:8080'], 'host'],
	['two conditions', ['/tls?a', 'Host: x.org', 'X-Forwarded-Proto: http'], 'https://x.org/tls?a'],
	['... of which one is false', ['/tls?a', 'Host: x.org', 'X-Forwarded-Proto: https'], 'none'],
);

my $program = Test::Util::program('accel-server');

sub check {
	my ($text, $option) = @_;
	Test::Util::put($srv->run . '/x.conf', qq{server.document-root = "/"\n$text});
	return scalar qx{$program @{[ $option // '-t' ]} -f @{[ $srv->run ]}/x.conf 2>&1};
}
like check(qq(\$REQUEST_HEADER["a b"] == "x" {\n}\n)), qr/x\.conf:2:1: expected the name of a header field/, 'not a name';
like check(qq(\$REQUEST_HEADER["@{[ 'x' x 65 ]}"] == "x" {\n}\n)), qr/x\.conf:2:1: expected the name of a header field/, 'a name of 65 bytes';
my @many = map { qq(\$REQUEST_HEADER["h$_"] == "x" {\n}\n) } 1 .. 65;
like check(join '', @many), qr/x\.conf:130:1: conditions compare more than 64 different headers/, 'too many headers';
is check(join '', @many[0 .. 63], @many[0 .. 63]), "Syntax OK\n", '... 64 of them, twice';
like check(qq(\$HTTP["language"] =~ "de" {\n\tserver.tag = "x"\n}\n), '-p'), qr/\$REQUEST_HEADER\["accept-language"\] =~ "de"/, 'printed';

done_testing;
