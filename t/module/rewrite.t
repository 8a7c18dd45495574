# url.rewrite-*: what an application or a file gets, for each setting, and the rules of known applications.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::More;
use Test::App ();
use Test::Server;

# Says for every path what it was asked for.
package Front;
our @ISA = ('Test::App');

sub do_none {
	my ($self, $c, $p) = @_;
	my $body = '';
	Test::App::out($c, "Content-Type: text/plain\r\n\r\n" . join ' ', map { $p->{$_} // '-' } qw(REQUEST_METHOD REQUEST_URI REDIRECT_URI QUERY_STRING));
	Test::App::end($c);
	return 1;
}

package main;

my $program = Test::Util::program('accel-server');
my $app     = Front->start;
my $apply   = qq|\$HTTP["url"] =~ "\\.php" {\n\tproxy-core.protocol = "fastcgi"\n\tproxy-core.backends = ( "unix:@{[ $app->socket ]}" )\n}\n|;

sub ask {
	my ($srv, $target, $host) = @_;
	my $r = Test::Http::parse($srv->request("GET $target HTTP/1.1\r\nHost: @{[ $host // 'h' ]}\r\nConnection: close\r\n\r\n"));
	return $r->{status} == 200 ? $r->{body} =~ s/\n\z//r : $r->{status};
}

sub table {
	my ($srv, @row) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is ask($srv, @$_[0, 2]), $_->[1], $_->[0] . ($_->[2] ? " of $_->[2]" : '') for @row;
	return;
}

subtest 'each setting, each form' => sub {
	my $srv = Test::Server->start(conf => <<'CONF' . $apply);
index-file.names = ( "index.html" )
url.rewrite-once = (
	"^/id/([0-9]+)$" => "/index.php?id=$1",
	"^/link/([a-zA-Z]+)" => "/index.php?link=$1",
	"^/once/(.*)$" => "/e.php?p=$1",
	"^/path/(.*)$" => "/e.php/$1",
	"^/keep(.*)" => "/e.php${qsa}",
	"^/chain$" => "/rep/x",
	"^/frag" => "/e.php?a#b",
	"^/up" => "/a/../e.php?x",
	"^/stop" => "",
	"^/sto" => "/e.php?never",
	"^/climb" => "/../../x",
	"^/(relative)" => "$1",
	"^/dbl/(.*)" => "/e.php/$1",
	"^/self" => "/self.txt",
	"^/dot/(.*)" => "/d/$1",
	"^/page.html" => "/e.php?page",
	"^/outer" => "/e.php?outer",
	"^/d/index\.html$" => "/e.php?not-for-index-files"
)
url.rewrite = ( "^/plain" => "/e.php?plain" )
url.rewrite-final = ( "^/final" => "/rep/x" )
url.rewrite-repeat = ( "^/rep/(.*)$" => "/e.php?rep=$1", "^/loop" => "/loop", "^/r1" => "/r2", "^/r2" => "/e.php?r2",
	"^/count/(x*)$" => "/count/x$1", "^/to-once" => "/once/a" )
$HTTP["host"] == "inner" { url.rewrite-repeat = ( "^/inner" => "/e.php?inner" ) }
$HTTP["host"] == "off" { url.rewrite-once = () }
$HTTP["host"] =~ "^([a-z]+)\.users$" { url.rewrite-once = ( "^/([^?]*)" => "/e.php?u=%1&p=$1${qsa}" ) }
$HTTP["url"] =~ "^/c/(.*)$" { url.rewrite-once = ( "" => "/e.php?c=%1" ) }
$HTTP["url"] =~ "^/secret" { url.access-deny = ( "" ) }
$HTTP["querystring"] =~ "^go=([a-z]+)$" { url.rewrite-once = ( "^/q\?" => "/e.php?went=%1" ) }
CONF
	make_path($srv->path('d'));
	$srv->write(@$_) for ['self.txt', "self\n"], ['d/index.html', "index\n"], ['stop', "file\n"];
	table($srv,
		['/id/12', 'GET /id/12 /index.php?id=12 id=12'],
		['/id/x', 404],
		['/link/abc/d', 'GET /link/abc/d /index.php?link=abc link=abc'],
		['/once/a%20b?c=d', 'GET /once/a%20b?c=d /e.php?p=a%20b?c=d p=a%20b?c=d'],
		['/path/x/y?c=d', 'GET /path/x/y?c=d /e.php/x/y?c=d c=d'],
		['/keep/a?x=y', 'GET /keep/a?x=y /e.php?x=y x=y'],
		['/keep', 'GET /keep /e.php '],
		['/chain', 404],                                # a rule of rewrite-once was the last one
		['/final', 404],
		['/plain', 'GET /plain /e.php?plain plain'],
		['/frag', 'GET /frag /e.php?a a'],
		['/up', 'GET /up /e.php?x x'],
		['/stop', 'file'],
		['/sto', 'GET /sto /e.php?never never'],
		['/climb', 400],
		['/relative', 400],
		['/dbl/a%2541', 'GET /dbl/a%2541 /e.php/a%2541 '],
		['/dbl/a%3fb', 'GET /dbl/a%3fb /e.php/a%3Fb '],
		['/self', 'self'],
		['/dot/', 'index'],
		['/d/', 'index'],
		['/d/index.html', 'GET /d/index.html /e.php?not-for-index-files not-for-index-files'],
		['/page.html', 'GET /page.html /e.php?page page'],
		['/%70age.html', 'GET /%70age.html /e.php?page page'],
		['/x/..//page.html', 'GET /page.html /e.php?page page'],
		['/rep/1', 'GET /rep/1 /e.php?rep=1 rep=1'],
		['/r1', 'GET /r1 /e.php?r2 r2'],
		['/to-once', 'GET /to-once /e.php?p=a p=a'],
		['/loop', 500],
		['/count/', 500],
		['/inner', 'GET /inner /e.php?inner inner', 'inner'],
		['/outer', 404, 'inner'],                       # the inner lists replace all
		['/rep/x', 404, 'inner'],
		['/outer', 404, 'off'],
		['/rep/x', 404, 'off'],
		['/a/b?c=d', 'GET /a/b?c=d /e.php?u=joe&p=a/b&c=d u=joe&p=a/b&c=d', 'joe.users'],
		['/c/a%2541?q', 'GET /c/a%2541?q /e.php?c=a%2541 c=a%2541'],
		['/q?go=there', 'GET /q?go=there /e.php?went=there went=there'],
		['/secret/x', 403],
		['/secret/x.php', 403],
	);
	like $srv->wait_log(qr/ev=rewrite\.loop .*setting=url\.rewrite /), qr/limit=100/, 'a loop is logged';
	like $srv->wait_log(qr/ev=rewrite\.failed .*target=\/\.\.\/\.\.\/x/), qr/ev=rewrite\.failed/, 'a target that is not a path, too';
	my $conn = $srv->connect;
	$conn->send("POST /id/3 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /self HTTP/1.1\r\nHost: h\r\n\r\nGET /once/x HTTP/1.1\r\nHost: h\r\n\r\n");
	is_deeply [map { $conn->reply->{body} } 1 .. 3], ['POST /id/3 /index.php?id=3 id=3', "self\n", 'GET /once/x /e.php?p=x p=x'], 'pipelined, with a body';
};

subtest 'if not a file' => sub {
	my $srv = Test::Server->start(conf => <<'CONF' . $apply);
index-file.names = ( "index.html" )
url.rewrite-if-not-file = ( "^/keep/" => "", "^/([^?]*)(?:\?(.*))?$" => "/index.php?q=$1&$2" )
$HTTP["host"] == "repeat" { url.rewrite-repeat-if-not-file = ( "^/a" => "/b", "^/b(.*)" => "/x.txt" ) }
$HTTP["host"] == "both" {
	url.rewrite-once = ( "^/once" => "/none" )
	url.rewrite-if-not-file = ( "^/none" => "/index.php?none" )
}
CONF
	make_path(map { $srv->path($_) } 'dir', 'keep');
	$srv->write(@$_) for ['x.txt', "x\n"], ['dir/index.html', "index\n"], ['keep/index.html', "kept\n"], ['index.php', "source\n"];
	table($srv,
		['/x.txt', 'x'],
		['/x.txt?a=b', 'x'],
		['/', 'GET / /index.php?q=& q=&'],
		['/dir', 'GET /dir /index.php?q=dir& q=dir&'],
		['/dir/', 'GET /dir/ /index.php?q=dir/& q=dir/&'],
		['/none?a=b', 'GET /none?a=b /index.php?q=none&a=b q=none&a=b'],
		['/x.txt/y', 'GET /x.txt/y /index.php?q=x.txt/y& q=x.txt/y&'],
		['/keep/', 'kept'],
		['/keep/none', 404],
		['/index.php?direct', 'GET /index.php?direct - direct'],
		['/a', 'x', 'repeat'],
		['/once', 404, 'both'],
		['/none', 'GET /none /index.php?none none', 'both'],
	);
	my $conn = $srv->connect;
	$conn->send("POST /some/post HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" . join '', map { "GET $_ HTTP/1.1\r\nHost: h\r\n\r\n" } '/x.txt', '/other', '/x.txt');
	is_deeply [map { $conn->reply->{body} } 1 .. 4],
		['POST /some/post /index.php?q=some/post& q=some/post&', "x\n", 'GET /other /index.php?q=other& q=other&', "x\n"], 'pipelined, with a body';
};

# As people write them for these applications.
my @known = (
	['WordPress', <<'CONF', ['/wp-content/x.css', 'css'], ['/2024/05/post/?p=1', 'GET /2024/05/post/?p=1 /index.php/2024/05/post/?p=1 p=1'], ['/wp-admin/a.php?b', 'GET /wp-admin/a.php?b - b']],
url.rewrite-if-not-file = ( "^/(wp-admin|wp-includes|wp-content)/(.*)" => "$0", "^/(.*)$" => "/index.php/$1" )
CONF
	['Drupal', <<'CONF', ['/misc/x.css', 'css'], ['/node/1?page=2', 'GET /node/1?page=2 /index.php?q=node/1&page=2 q=node/1&page=2'], ['/node/1', 'GET /node/1 /index.php?q=node/1 q=node/1']],
url.rewrite-if-not-file = ( "^/([^?]*)\?(.*)$" => "/index.php?q=$1&$2", "^/(.*)$" => "/index.php?q=$1" )
CONF
	['Laravel', <<'CONF', ['/css/x.css', 'css'], ['/users/3?tab=a', 'GET /users/3?tab=a /index.php/?tab=a tab=a'], ['/users/3', 'GET /users/3 /index.php/ ']],
url.rewrite-once = ( "^/(css|img|js|fonts)/.*\.(jpg|jpeg|gif|png|swf|avi|mpg|mpeg|mp3|flv|ico|css|js|woff|ttf)$" => "$0",
	"^/(favicon\.ico|robots\.txt|sitemap\.xml)$" => "$0", "^/[^\?]*(\?.*)?$" => "/index.php/$1" )
CONF
	['Nextcloud', <<'CONF', ['/.well-known/caldav', '301 /remote.php/dav'], ['/core/x.css', 'css'], ['/.well-known/webfinger?a=b', 'GET /.well-known/webfinger?a=b /public.php?service=webfinger service=webfinger'], ['/data/x', 403]],
url.redirect = ( "^/.well-known/caldav" => "/remote.php/dav", "^/.well-known/carddav" => "/remote.php/dav" )
url.rewrite-once = ( "^/.well-known/webfinger" => "/public.php?service=webfinger" )
$HTTP["url"] =~ "^/(data|config|\.ht|db_structure\.xml|README)" { url.access-deny = ( "" ) }
CONF
	['CodeIgniter', <<'CONF', ['/css/x.css', 'css'], ['/blog/read', 'GET /blog/read /index.php/blog/read ']],
url.rewrite-once = ( "/(.*)\.(.*)" => "$0", "/(css|files|img|js|stats)/" => "$0", "^/([^.]+)$" => "/index.php/$1" )
CONF
);
for (@known) {
	my ($name, $conf, @row) = @$_;
	subtest $name => sub {
		my $srv = Test::Server->start(conf => $conf . $apply);
		make_path(map { $srv->path($_) } qw(wp-content misc css core));
		$srv->write("$_/x.css", "css\n") for qw(wp-content misc css core);
		for (@row) {
			my ($target, $want) = @$_;
			my $r = $srv->fetch($target);
			is $r->{status} == 200 ? $r->{body} =~ s/\n\z//r : join(' ', $r->{status}, $r->{header}{location} // ()), $want, $target;
		}
	};
}

subtest 'refused at the start' => sub {
	my $dir = File::Temp->newdir('accel-rewrite-XXXXXX', TMPDIR => 1);
	for (['url.rewrite-once = ( "^/(" => "/" )', 'is not a regular expression'], ['url.rewrite = ( "^/a" => "b" )', 'expected a path'],
		['url.rewrite-if-not-file = ( "^/a" => "http://b/" )', 'expected a path'], ['url.rewrite-repeat = ( "^/a" => "/${x}" )', 'expected \$\{0\}']) {
		my ($conf, $why) = @$_;
		Test::Util::put("$dir/x.conf", qq{server.document-root = "$dir"\n$conf\n});
		my $said = qx{$program -tt -f $dir/x.conf 2>&1};
		like "$? $said", qr/^(?!0 ).*url\.rewrite.*$why/s, $conf;
	}
};

done_testing;
