# url.redirect: each form of a replacement, as configuration, request and Location.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http ();
use Test::Server;

my $program = Test::Util::program('accel-server');
my $srv = Test::Server->start(conf => <<'CONF');
server.name = "named.example"
index-file.names = ( "index.html" )
url.redirect = (
	"^/show/([0-9]+)/([0-9]+)$" => "/show.php?isdn=$1&page$2",
	"^/get/([0-9]+)/([0-9]+)$" => "http://other.example/get.php?id=$1&page=$2",
	"^/music/(.+)" => "http://music.example.org/$1",
	"^/esc/(.*)" => "/t?raw=$1&esc=${esc:1}&escape=${escape:1}&nde=${escnde:1}&psnde=${escpsnde:1}",
	"^/case/(.*)" => "/t?${noesc:1}&${noescape:1}&${tolower:1}&${toupper:1}&${tolower:esc:1}",
	"^/parts" => "x:${url.scheme},${url.authority},${url.path},${url.query},${qsa}",
	"^/b64/(.*)" => "/t?e=${encb64u:1}&d=${decb64u:1}",
	"^/literal" => "/a$$b%%c%d$e$1%1end$",
	"^/qsa1" => "/t${qsa}",
	"^/qsa2" => "/t?a=b${qsa}",
	"^/stop" => "",
	"^/relative(.*)" => "rel$1",
	"^/many(1)(2)(3)(4)(5)(6)(7)(8)(9)(10)(11)" => "/t${10}-${11}-$11",
	"^/sto" => "/never",
	"^/q\?a=(.)$" => "/query-$1",
	"^/first" => "/first",
	"^/fir" => "/second",
	"^/unset(x)?" => "/u<$1>",
	"^/ipv6" => "http://[::1]:8080/a#part"
)
$HTTP["url"] =~ "^/cond/(.*)$" { url.redirect = ( "" => "/c-%0-%1-%{esc:1}" ) }
$HTTP["host"] =~ "^www\.(.*)" {
	$HTTP["url"] == "/eq" { url.redirect = ( "" => "/n-%0-%1" ) }
	else $HTTP["url"] =~ "^/re(.*)" { url.redirect = ( "" => "/n-%0-%1" ) }
	else $HTTP["url"] == "/host" { }
	else { url.redirect-code = 308
		url.redirect = ( "^/el" => "/n-%0-%1" ) }
}
$HTTP["host"] =~ "^old\.([^:]*)(:[0-9]+)?$" {
	url.redirect = ( "^/(.*)" => "http://new.%1%2/$1" )
}
$HTTP["scheme"] == "http" {
	$HTTP["host"] == "tls.example" { url.redirect = ( "" => "https://${url.authority}${url.path}${qsa}" ) }
}
$HTTP["host"] == "none.example" { url.redirect = () }
$HTTP["url"] == "/gone" {
	url.redirect-code = 410
	url.redirect = ( "" => "/x" )
}
$HTTP["url"] == "/temporary" {
	url.redirect-code = 302
	url.redirect = ( "" => "/other/" )
}
$HTTP["url"] == "/not-modified" {
	url.redirect-code = 304
	url.redirect = ( "" => "/x" )
}
CONF
$srv->write('index.html', "index\n");
$srv->write('stop',       "file\n");

sub location ($target, $host = undef) {
	my $r = Test::Http::parse($srv->request("GET $target HTTP/1.1\r\nHost: @{[ $host // 'h.example:81' ]}\r\nConnection: close\r\n\r\n"));
	return join ' ', $r->{status}, $r->{header}{location} // ();
}

my @row = (    # target, status and Location, host
	['/show/12/3', '301 /show.php?isdn=12&page3'],
	['/get/12/3', '301 http://other.example/get.php?id=12&page=3'],
	['/get/12/3x', '404'],
	['/music/a/b.ogg', '301 http://music.example.org/a/b.ogg'],
	['/esc/a%20bc%2Cd%C3%A9?x=1&y=%2f', '301 /t?raw=a%20bc%2Cd%C3%A9?x=1&y=%2F&esc=a%2520bc%252Cd%25C3%25A9%3Fx%3D1%26y%3D%252F'
			. '&escape=a%2520bc%252Cd%25C3%25A9%3Fx%3D1%26y%3D%252F&nde=a%20bc%2Cd%C3%A9%3Fx%3D1%26y%3D%2F&psnde=a%20bc%2Cd%C3%A9%3Fx%3D1%26y%3D%2F'],
	['/esc/a/b', '301 /t?raw=a/b&esc=a%2Fb&escape=a%2Fb&nde=a%2Fb&psnde=a/b'],
	['/case/aB%2c', '301 /t?aB%2C&aB%2C&ab%2C&AB%2C&ab%252c'],
	['/parts/a?q=%41%20', '301 x:http,h.example:81,/parts/a,q=A%20,?q=A%20'],
	['/b64/aGVsbG8', '301 /t?e=YUdWc2JHOA&d=hello'],
	['/b64/Pj8_', '301 /t?e=UGo4Xw&d=%3E??'],
	['/literal', '301 /a$b%25c%25d$eend$'],
	['/qsa1?z=1', '301 /t?z=1'],
	['/qsa1', '301 /t'],
	['/qsa2?z=1', '301 /t?a=b&z=1'],
	['/qsa2', '301 /t?a=b'],
	['/stop', '200'],
	['/sto', '301 /never'],
	['/relativex', '301 relx'],
	['/many1234567891011', '301 /t10-11-11'],
	['/q?a=b', '301 /query-b'],
	['/q', '404'],
	['/first', '301 /first'],
	['/fir', '301 /second'],
	['/unset', '301 /u%3C%3E'],
	['/unsetx', '301 /u%3Cx%3E'],
	['/ipv6', '301 http://[::1]:8080/a#part'],
	['/cond/a%20c%C3%A9?q', '301 /c-/cond/a%20c%C3%A9-a%20c%C3%A9-a%20c%C3%A9'],
	['/cond/%2541', '301 /c-/cond/%2541-%2541-%2541'],
	['/eq', '301 /n-/eq-', 'www.foo.org'],
	['/rex', '301 /n-/rex-x', 'www.foo.org'],
	['/el', '308 /n--', 'www.foo.org'],
	['/a/b?c', '301 http://new.example/a/b?c', 'old.example'],
	['/a', '301 http://new.example:8080/a', 'old.example:8080'],
	['/a?b=c', '301 https://tls.example/a?b=c', 'tls.example'],
	['/music/x', '404', 'none.example'],
	['/gone', '410'],
	['/temporary', '302 /other/'],
	['/not-modified', '304 /x'],
	# one spelling of a path
	['//music/./x/../a', '301 http://music.example.org/a'],
	['/%6dusic/%7e', '301 http://music.example.org/~'],
	['/esc/;[]|"<>', '301 /t?raw=;%5B%5D%7C%22%3C%3E&esc=%3B%255B%255D%257C%2522%253C%253E&escape=%3B%255B%255D%257C%2522%253C%253E'
			. '&nde=%3B%5B%5D%7C%22%3C%3E&psnde=%3B%5B%5D%7C%22%3C%3E'],
	# nothing ends a line
	['/music/%0d%0aSet-Cookie:%20a', '301 http://music.example.org/%0D%0ASet-Cookie:%20a'],
	['/cond/%0d%0aX', '301 /c-/cond/%0D%0AX-%0D%0AX-%0D%0AX'],
	['/b64/DQpY', '301 /t?e=RFFwWQ&d=%0D%0AX'],
	['/music/%00', '400'],
);
for my $row (@row) {
	my ($target, $want, $host) = @$row;
	is location($target, $host), $want, $target . ($host ? " of $host" : '');
}

my $reply = $srv->fetch('/temporary');
like $reply->{body}, qr{href="/other/"}, 'a reply has a link for people';
my $conn = Test::Http::Conn->new($srv->port);
$conn->send("HEAD /temporary HTTP/1.1\r\nHost: x\r\n\r\nGET /not-modified HTTP/1.1\r\nHost: x\r\n\r\nPOST /gone HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
is $conn->reply('HEAD')->{status}, 302, 'HEAD';
like $conn->head, qr/^HTTP\/1\.1 304 (?!.*Content-Type)/s, 'a status without a body';
$reply = $conn->reply;
is "$reply->{status} $reply->{header}{connection}", "410 close", "a request body is not read";

my $long = 'x' x 4000;
is location("/esc/$long"), '414', 'a URL of more than 12 KiB';
like $srv->wait_log(qr/ev=rule\.too-long/), qr/ev=rule\.too-long \S+ client=127\.0\.0\.1 setting=url\.redirect /, '... is logged';

subtest 'what takes too long is not a mismatch' => sub {
	my $slow = Test::Server->start(conf => qq{url.redirect = ( "^/(a*)*\$" => "/x" )\n});
	is $slow->fetch('/' . 'a' x 30 . '!')->{status}, 500, 'refused';
	ok $slow->wait_log(qr/ev=match\.failed .*in=url\.redirect/), '... and logged';
};

sub check ($text) {
	open my $fh, '>', $srv->run . '/check.conf' or die $!;
	print $fh qq{server.document-root = "@{[ $srv->dir ]}"\n$text\n};
	close $fh or die $!;
	my $said = qx{$program -tt -f @{[ $srv->run ]}/check.conf 2>&1};
	return ($? >> 8) . " $said";
}
like check('url.redirect = ( "^/(" => "/" )'),        qr/^(?!0).*url\.redirect.*"\^\/\(" is not a regular expression/s, 'a bad regex';
like check("url.redirect = ( \"a\" => \"$_\" )"),     qr/^(?!0).*url\.redirect.*expected \$\{0\}/s, "refused: $_"
	for '${foo}', '${0', '${foo:1}', '${20}', '%{}', '${url.fragment}', '${1x}';
like check("url.redirect = ( \"a\" => \"/\r\nX: y\" )"), qr/^(?!0).*printable/s, 'a line end in a replacement';
like check('url.redirect-code = 200'),                qr/^(?!0).*300 to 599/s, 'not the status of a redirect';

done_testing;
