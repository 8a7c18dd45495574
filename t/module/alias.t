#!/usr/bin/perl
# alias.url: the examples of lighttpd's documentation, Debian's own lines, and the ways out of the target.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::More;
use Test::Module qw(answers logs);
use Test::Server;
use Test::Util qw(put);

my $conf = <<'CONF';
server.modules = ( "mod_alias" )
server.document-root = "@DIR@/www"
alias.url = ( "/cgi-bin/" => "@DIR@/servers/cgi-bin/", "/content" => "@DIR@/servers/content",
  "/a" => "@DIR@/servers/a/", "/icon" => "@DIR@/servers/icon.ico", "/later/" => "@DIR@/later/" )
alias.url += ("/javascript" => "@DIR@/share/javascript")
index-file.names = ( "index.html", "/fallback.html" )
$HTTP["remoteip"] =~ "^127\.0\.0\.1$|^::1$" { alias.url += ( "/doc/" => "@DIR@/share/doc/" ) }
$HTTP["host"] == "images.example.org" { alias.url = ( "/images/" => "@DIR@/pictures/" ) }
CONF
my $dir = File::Temp->newdir('accel-alias-XXXXXX', TMPDIR => 1);
make_path("$dir/$_") for qw(www/images www/empty servers/cgi-bin servers/content servers/a servers/ab pictures share/javascript share/doc/pkg share/doc/none);
put("$dir/$_->[0]", $_->[1]) for ['www/x', "root\n"], ['www/ax', "root ax\n"], ['www/fallback.html', "fallback\n"], ['servers/cgi-bin/t', "t\n"],
	['servers/content/index.html', "content\n"], ['servers/a/x', "a\n"], ['servers/ab/x', "ab\n"], ['servers/secret', "secret\n"],
	['servers/icon.ico', "icon\n"], ['pictures/p.png', "png\n"], ['www/images/p.png', "own\n"],
	['share/javascript/jquery.js', "js\n"], ['share/doc/pkg/copyright', "copyright\n"];
my $srv = Test::Server->start(conf => $conf, dir => $dir);

answers($srv,
	['a prefix and a target with slashes', '/cgi-bin/t', 200, "t\n"],
	['... match nothing beside them', '/cgi-bin', 404],
	['a prefix without one', '/content/index.html', 200, "content\n"],
	['... is a directory of its own', '/content', 301, qr{^Location: /content/\r}m],
	['... with its index file', '/content/', 200, "content\n"],
	['... and a query that is kept', '/content?a=b', 301, qr{^Location: /content/\?a=b\r}m],
	['the target may have the slash alone', '/a/x', 200, "a\n"],
	['only whole names match', '/ax', 200, "root ax\n"],
	['... so that a neighbour stays one', '/ab/x', 404],
	['a target may be a file', '/icon', 200, "icon\n"],
	['... with its type', '/icon', 200, qr{^Content-Type: image/(?:vnd\.microsoft\.|x-)icon\r}m],
	['... which has nothing below it', '/icon/x', 404],
	['a target that is missing', '/later/x', 404],
	['Debian: /javascript', '/javascript/jquery.js', 200, "js\n"],
	['Debian: /doc/ for this host only', '/doc/pkg/copyright', 200, "copyright\n"],
	['... with the redirect of a directory', '/doc/pkg', 301, qr{^Location: /doc/pkg/\r}m],
	['a directory without an index', '/doc/none/', 200, "fallback\n"],
	['the others stay', '/x', 200, "root\n"],
	['a block has its own table', ['/images/p.png', Host => 'images.example.org'], 200, "png\n"],
	['... which replaces the one around it', ['/content/', Host => 'images.example.org'], 200, "fallback\n"],
	['another host has the file below its root', '/images/p.png', 200, "own\n"],
);
answers($srv, map { ["a way out: $_->[0]", @$_] }
	['/a../secret', 404], ['/a..%2fsecret', 400], ['/a/../secret', 404], ['/a%2f..%2fsecret', 400], ['/a/%2e%2e/secret', 404], ['/content../secret', 404],
	['/a//..//secret', 404], ['/a/..', 200], ['/cgi-bin/..%00/secret', 400], ['/../../secret', 400], ['/icon../secret', 404]);
logs $srv, qr/ev=alias\.missing target=\S*later/, 'the missing target was logged';

sub refused ($alias) {
	put("$dir/x.conf", qq{server.document-root = "$dir/www"\nserver.port = 0\nalias.url = ( $alias )\n});
	my $said = qx{@{[ Test::Util::program('accel-server') ]} -tt -f $dir/x.conf 2>&1};
	return $? >> 8 ? $said : 'accepted';
}
my @faults = (
	['"doc" => "/usr/"', qr/"doc" => "\/usr\/": expected a path of URLs, which begins with a slash/],
	['"/doc" => "usr"', qr/expected an absolute path after =>/],
	['"/doc" => ""', qr/expected an absolute path after =>/],
	['"/doc/" => "/usr"', qr/the prefix ends with a slash, so the target needs one, too/],
	['"/doc" => "/usr/", "/doc/a" => "/tmp/"', qr/it is never used, because an earlier prefix matches all its URLs/],
);
like refused($_->[0]), $_->[1], "refused: $_->[0]" for @faults;
is refused('"/doc" => "/usr/", "/docs" => "/tmp/"'), 'accepted', 'names that only begin alike do not meet';
done_testing;
