# server.error-handler, -404 and server.error-intercept: who answers, with which status, and what an application gets.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::More;
use Test::App ();
use Test::Server;
use Test::Util ();

# Says for every path what it was asked for.  A number as the query is the status of the reply.
package Front;
our @ISA = ('Test::App');

sub do_none {
	my ($self, $c, $p) = @_;
	my ($status) = $p->{QUERY_STRING} =~ /^([0-9]{3})$/;
	my $n = $p->{CONTENT_LENGTH} || 0;
	my $body = '';
	while (length $body < $n) { my $piece = Test::App::_piece($c); last if $piece eq ''; $body .= $piece }
	Test::App::out($c, ($status ? "Status: $status\r\n" : '') . ($status && $status == 401 ? qq{WWW-Authenticate: Basic realm="a"\r\n} : '')
			. "Content-Type: text/plain\r\n\r\n" . join ' ', map { $p->{$_} // '-' } qw(REQUEST_METHOD REQUEST_URI REDIRECT_URI REDIRECT_STATUS));
	Test::App::end($c);
	return 1;
}

package main;

my $app = Front->start;
my $dir = File::Temp->newdir('accel-error-XXXXXX', TMPDIR => 1);
make_path("$dir/$_") for qw(www/empty www/sub);
Test::Util::put("$dir/www/$_->[0]", $_->[1]) for ['err.html', "errpage\n"], ['x.txt', "x\n"], ['sub/index.html', "index\n"];
Test::Util::put("$dir/page-$_.html", "PAGE$_\n") for 403, 404;
my $srv = Test::Server->start(dir => $dir, conf => <<CONF);
server.document-root = "\@DIR\@/www"
server.errorfile-prefix = "\@DIR\@/page-"
index-file.names = ( "index.html" )
\$HTTP["url"] =~ "\\.php" {
	proxy-core.protocol = "fastcgi"
	proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
	proxy-core.allow-x-sendfile = "enable"
}
\$HTTP["url"] =~ "^/gone\\.php" {
	proxy-core.protocol = "fastcgi"
	proxy-core.backends = ( "unix:\@DIR\@/nothing" )
}
\$HTTP["url"] =~ "deny" { url.access-deny = ( "" ) }
\$HTTP["host"] == "a404" { server.error-handler-404 = "/e.php" }
\$HTTP["host"] == "a404q" { server.error-handler-404 = "/e.php?a=b" }
\$HTTP["host"] == "a404s" { server.error-handler-404 = "/e.php?410" }
\$HTTP["host"] == "a404html" { server.error-handler-404 = "/err.html" }
\$HTTP["host"] == "a404none" { server.error-handler-404 = "/none" }
\$HTTP["host"] == "a404deny" { server.error-handler-404 = "/deny" }
\$HTTP["host"] == "all" { server.error-handler = "/e.php" }
\$HTTP["host"] == "alls" { server.error-handler = "/e.php?418" }
\$HTTP["host"] == "allhtml" { server.error-handler = "/err.html" }
\$HTTP["host"] == "alldir" { server.error-handler = "/sub/" }
\$HTTP["host"] == "allnone" { server.error-handler = "/none" }
\$HTTP["host"] == "both" {
	server.error-handler = "/e.php"
	server.error-handler-404 = "/err.html"
}
\$HTTP["host"] == "int" {
	server.error-handler = "/err.html"
	server.error-intercept = "enable"
}
\$HTTP["host"] == "int404" {
	server.error-handler-404 = "/e.php?200"
	server.error-intercept = "enable"
}
\$HTTP["host"] == "intpage" { server.error-intercept = "enable" }
\$HTTP["host"] == "code" {
	server.error-handler = "/err.html"
	url.redirect-code = 410
	url.redirect = ( "^/old" => "/x" )
}
CONF

sub ask ($request, $host) {
	my ($method, $target, $body) = split / /, $request;
	my $head = "$method $target HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n" . (defined $body ? 'Content-Length: ' . length($body) . "\r\n" : '');
	my $r = Test::Http::parse($srv->request("$head\r\n" . ($body // '')));
	my $said = $r->{body} =~ s/\n\z//r;
	return "$r->{status} " . ($said =~ /^</ ? 'built-in' : $said);
}

my @row = (
	['a404', 'GET /missing?x=y', '200 GET /missing?x=y /e.php 404'],
	['a404', 'POST /missing abc', '200 POST /missing /e.php 404'],
	['a404', 'GET /deny', '200 GET /deny /e.php 403'],
	['a404', 'GET /empty/', '200 GET /empty/ /e.php 403'],
	['a404', 'POST /empty/none abc', '200 POST /empty/none /e.php 404'],
	['a404', 'GET /x.txt', '200 x'],
	['a404', 'POST /x.txt abc', '405 built-in'],
	['a404', 'GET /e.php?404', '404 GET /e.php?404 - 200'],
	['a404', 'GET /gone.php', '503 built-in'],
	['a404q', 'GET /missing', '200 GET /missing /e.php?a=b 404'],
	['a404s', 'GET /missing', '410 GET /missing /e.php?410 404'],
	['a404html', 'GET /missing', '200 errpage'],
	['a404html', 'POST /missing abc', '200 errpage'],
	['a404none', 'GET /missing', '404 PAGE404'],
	['a404none', 'GET /deny', '403 PAGE403'],
	['a404deny', 'GET /missing', '404 PAGE404'],
	['all', 'GET /missing?x=y', '200 GET /missing?x=y /e.php 404'],
	['all', 'POST /missing abc', '200 GET /missing /e.php 404'],
	['all', 'DELETE /x.txt', '200 GET /x.txt /e.php 405'],
	['all', 'GET /deny', '200 GET /deny /e.php 403'],
	['all', 'GET /gone.php', '200 GET /gone.php /e.php 503'],
	['all', 'POST /gone.php abc', '200 GET /gone.php /e.php 503'],
	['all', 'GET /e.php?404', '404 GET /e.php?404 - 200'],
	['alls', 'GET /missing', '418 GET /missing /e.php?418 404'],
	['allhtml', 'GET /missing', '404 errpage'],
	['allhtml', 'POST /missing abc', '404 errpage'],
	['allhtml', 'GET /deny', '403 errpage'],
	['allhtml', 'GET /gone.php', '503 errpage'],
	['alldir', 'GET /missing', '404 index'],
	['allnone', 'GET /missing', '404 PAGE404'],
	['allnone', 'GET /deny', '403 PAGE403'],
	['both', 'GET /missing', '200 GET /missing /e.php 404'],
	['int', 'GET /e.php?404', '404 errpage'],
	['int', 'GET /e.php?500', '500 errpage'],
	['int', 'POST /e.php?500 abc', '500 errpage'],
	['int', 'GET /e.php?401', '401 GET /e.php?401 - 200'],
	['int', 'GET /e.php?302', '302 GET /e.php?302 - 200'],
	['int404', 'GET /e.php?404', '200 GET /e.php?404 /e.php?200 404'],
	['int404', 'POST /e.php?404 abc', '200 GET /e.php?404 /e.php?200 404'],
	['int404', 'GET /e.php?500', '500 built-in'],
	['intpage', 'GET /e.php?404', '404 PAGE404'],
	['intpage', 'GET /e.php?500', '500 built-in'],
	['code', 'GET /old', '410 errpage'],
	['none', 'GET /missing', '404 PAGE404'],
	['none', 'GET /e.php?404', '404 GET /e.php?404 - 200'],
);
is ask($_->[1], $_->[0]), $_->[2], "$_->[0]: $_->[1]" for @row;

my $conn = $srv->connect;
$conn->send(join '', map { "$_->[0] HTTP/1.1\r\nHost: $_->[1]\r\n" . ($_->[2] ? "Content-Length: 3\r\n\r\nabc" : "\r\n") }
		['GET /missing', 'allhtml'], ['POST /missing', 'a404', 1], ['GET /x.txt', 'all'], ['HEAD /missing', 'allhtml'], ['GET /missing', 'a404'], ['POST /missing', 'a404html', 1], ['GET /x.txt', 'x']);
is_deeply [map { my $r = $conn->reply($_); "$r->{status} $r->{body}" =~ s/\s+\z//r } qw(GET POST GET HEAD GET POST GET)],
	['404 errpage', '200 POST /missing /e.php 404', '200 x', '404', '200 GET /missing /e.php 404', '200 errpage', '200 x'],
	'on one connection, pipelined';

my $reply = $srv->fetch('/missing', Host => 'allhtml', 'If-None-Match' => '*', Range => 'bytes=0-1');
is "$reply->{status} $reply->{body}", "404 errpage\n", 'no conditions and no ranges';
is $srv->head('/missing', Host => 'allhtml') =~ /^HTTP\/1\.1 404 .*\r\nContent-Length: 8\r\n.*\r\n\r\n\z/s, 1, 'HEAD';

subtest 'server.reject-expect-100-with-417' => sub {
	my $strict = Test::Server->start(conf => qq{\$HTTP["url"] == "/strict" {\n\tserver.reject-expect-100-with-417 = "enable"\n}\n});
	my $put = sub { $strict->request("PUT $_[0] HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 3\r\n\r\n") };
	like $put->('/strict'), qr/^HTTP\/1\.1 417 /, 'refused';
	like $put->('/other'),  qr/^HTTP\/1\.1 405 /, '... only there';
};

my $program = Test::Util::program('accel-server');
for my $value ('err.html', 'http://h/', '/../x', '/a%zz') {
	Test::Util::put("$dir/y.conf", qq{server.document-root = "$dir"\nserver.error-handler = "$value"\n});
	my $said = qx{$program -tt -f $dir/y.conf 2>&1};
	like "$? $said", qr/^(?!0 ).*server\.error-handler.*expected a path/s, "refused: $value";
}

done_testing;
