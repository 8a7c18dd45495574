#!/usr/bin/perl
# simple-vhost: the example of lighttpd's documentation, Debian's file, and hosts that are not names.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::More;
use Test::Module qw(answers logs);
use Test::Server;
use Test::Util qw(put);

my $dir = File::Temp->newdir('accel-vhost-XXXXXX', TMPDIR => 1);
my $servers = "$dir/var/www/servers";
for my $host (qw(www.example.org pages.example.org second.example.org news2.example.org [::1])) {
	make_path("$servers/$host/pages/sub");
	put("$servers/$host/pages/index.html", "$host\n");
	put("$servers/$host/pages/sub/x", "$host x\n");
	put("$servers/$host/secret", "secret\n");
}
make_path("$dir/www", "$servers/empty.example.org", "$servers/pages");
put("$servers/file.example.org", "a file\n");
put("$dir/www/index.html", "document root\n");
put("$dir/var/www/index.html", "outside\n");
put("$servers/index.html", "server root\n");

# "the server-root, the host and the document-root"; a host with its own root stays as it is.
my $conf = <<'CONF';
server.modules = ( "mod_simple_vhost" )
server.document-root = "@DIR@/www"
simple-vhost.server-root = "@DIR@/var/www/servers/"
simple-vhost.default-host = "www.example.org"
simple-vhost.document-root = "pages"
simple-vhost.debug = 1
$HTTP["host"] == "news.example.org" { simple-vhost.server-root = "" server.document-root = "@DIR@/var/www/servers/news2.example.org/pages/" }
$PHYSICAL["path"] =~ "/second\.example\.org/pages/sub/" { server.tag = "second" }
CONF
my $srv = Test::Server->start(conf => $conf, dir => $dir);

sub host { my ($host, $path) = @_; return [ $path // '/', Host => $host ] }
answers($srv,
	['the host has a directory', host('pages.example.org'), 200, "pages.example.org\n"],
	['another one', host('second.example.org'), 200, "second.example.org\n"],
	['... below it', host('second.example.org', '/sub/x'), 200, qr/^Server: second\r.*\r\n\r\nsecond\.example\.org x\n\z/ms],
	['... with the redirect of a directory', host('second.example.org', '/sub'), 301, qr{^Location: /sub/\r}m],
	['capitals and a port', host('PAGES.Example.ORG:8080'), 200, "pages.example.org\n"],
	['a dot at its end', host('pages.example.org.'), 200, "pages.example.org\n"],
	['an address in brackets', host('[::1]:80'), 200, "[::1]\n"],
	['an unknown host gets the default', host('unknown.example.org'), 200, "www.example.org\n"],
	['a directory without document-root', host('empty.example.org'), 200, "www.example.org\n"],
	['a file is not a directory', host('file.example.org'), 200, "www.example.org\n"],
	['an empty host', host(''), 200, "www.example.org\n"],
	['a condition that sets another root', host('news.example.org'), 200, "news2.example.org\n"],
);
like $srv->request("GET / HTTP/1.0\r\n\r\n"), qr/\r\n\r\nwww\.example\.org\n\z/, 'no host';
logs $srv, qr/ev=vhost\.found .*host=pages\.example\.org .*directory=pages\.example\.org\/pages/, 'simple-vhost.debug logs the directory';

my @odd = ('..', '.', '../..', 'a/b', '%2e%2e', '%2e', '..%2f', '.hidden', 'a..b', '..:80', '../servers', "x\\..\\y", 'x' x 300, 'x.' x 200, '[..]', '[::1', '~', '*', ' ');
for my $host (@odd, map { "$_." } '..', 'pages') {
	my $got = $srv->request("GET /secret HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n");
	like $got, qr{^HTTP/1\.1 (?:400|404) }, 'no way out: ' . substr $host, 0, 20;
	$got = $srv->request("GET / HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n");
	like $got, qr{^HTTP/1\.1 400 |\r\n\r\nwww\.example\.org\n\z}, '... nor another directory';
}
like $srv->request("GET / HTTP/1.1\r\nHost: pages\0.example.org\r\n\r\n"), qr{^HTTP/1\.1 400 }, 'a NUL';
like $srv->request("GET /../secret HTTP/1.1\r\nHost: pages.example.org\r\nConnection: close\r\n\r\n"), qr{^HTTP/1\.1 400 }, 'a path that leaves the root';

symlink '../../second.example.org/secret', "$servers/pages.example.org/pages/out" or die $!;
symlink 'sub/x', "$servers/pages.example.org/pages/in" or die $!;
answers($srv,
	['a link to the files of another host', host('pages.example.org', '/out'), 403],
	['a link to a file of its own', host('pages.example.org', '/in'), 200, "pages.example.org x\n"],
);

my $said = do {
	put("$dir/x.conf", qq{server.document-root = "$dir/www"\nserver.port = 0\nsimple-vhost.server-root = "$dir/missing"\n});
	qx{@{[ Test::Util::program('accel-server') ]} -tt -f $dir/x.conf 2>&1};
};
like $said, qr/simple-vhost\.server-root: "\S+missing": No such file/, 'a server-root that is missing stops the start';
done_testing;
