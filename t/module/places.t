#!/usr/bin/perl
# What applications get of a request whose files an alias, a virtual host or a user has: names of files, and the files they
# name in turn.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::App;
use Test::More;
use Test::Http ();
use Test::Module qw(answers logs);
use Test::Server;
use Test::Util qw(put);

my $dir = File::Temp->newdir('accel-places-XXXXXX', TMPDIR => 1);
make_path("$dir/$_") for qw(www/app programs shared hosts/a/htdocs/dir hosts/b/htdocs home/joe/public_html);
put("$dir/$_", "$_\n") for qw(www/f shared/f hosts/a/htdocs/f hosts/a/htdocs/dir/i.txt hosts/b/htdocs/f hosts/a/secret programs/head home/joe/public_html/f);
my $app = Test::App->start;

sub server { my ($conf) = @_; return Test::Server->start(dir => $dir, conf => qq{server.document-root = "\@DIR\@/www"\nserver.max-worker = 1\n$conf} . Test::Server::proxy_block('/app/', 'unix:' . $app->socket)) }

my $srv = server(<<'CONF');
alias.url = ( "/app/" => "@DIR@/programs/", "/shared/" => "@DIR@/shared/" )
CONF
my %alias = $srv->get('/app/env/more') =~ /^([A-Z_]+)=(.*)$/mg;
is $alias{SCRIPT_FILENAME}, "$dir/programs/env/more", 'an alias: SCRIPT_FILENAME is below the target';
is $alias{DOCUMENT_ROOT}, "$dir/programs", '... which is DOCUMENT_ROOT';
is $alias{SCRIPT_NAME}, '/app/env/more', '... SCRIPT_NAME is the path of the URL';
answers($srv,
	[ 'X-Accel-Redirect to the URL of an alias', '/app/head?X-Accel-Redirect:%20/shared/f', 200, "shared/f\n" ],
	[ 'X-Sendfile of the document root', "/app/head?X-Sendfile:%20$dir/www/f", 200, "www/f\n" ],
	[ '... not of a target: an alias is reached by its URL', "/app/head?X-Sendfile:%20$dir/shared/f", 403 ],
	[ '... nor by a way around', "/app/head?X-Sendfile:%20$dir/www/../shared/f", 403 ],
);
undef $srv;

$srv = server(<<'CONF');
simple-vhost.server-root = "@DIR@/hosts"
simple-vhost.document-root = "/htdocs/"
index-file.names = ( "i.txt", "/f" )
CONF
my %host = $srv->get('/app/env', Host => 'a:80') =~ /^([A-Z_]+)=(.*)$/mg;
is $host{SCRIPT_FILENAME}, "$dir/hosts/a/htdocs/app/env", 'a virtual host: SCRIPT_FILENAME';
is $host{DOCUMENT_ROOT}, "$dir/hosts/a/htdocs", '... and DOCUMENT_ROOT';
sub sent { my ($file, $host) = @_; return [ "/app/head?$file", Host => $host ] }
answers($srv,
	[ 'X-Sendfile of its own root', sent("X-Sendfile:%20$dir/hosts/a/htdocs/f", 'a'), 200, "hosts/a/htdocs/f\n" ],
	[ '... not of another host', sent("X-Sendfile:%20$dir/hosts/b/htdocs/f", 'a'), 403 ],
	[ '... nor beside its files', sent("X-Sendfile:%20$dir/hosts/a/secret", 'a'), 403 ],
	[ '... nor by a way around', sent("X-Sendfile:%20$dir/hosts/a/htdocs/../secret", 'a'), 403 ],
	[ '... nor of the document root around', sent("X-Sendfile:%20$dir/www/f", 'a'), 403 ],
	[ 'X-Accel-Redirect is for the same host', sent('X-Accel-Redirect:%20/f', 'b'), 200, "hosts/b/htdocs/f\n" ],
	[ 'an index file', [ '/dir/', Host => 'a' ], 200, "hosts/a/htdocs/dir/i.txt\n" ],
	[ 'an index file of the root', [ '/', Host => 'b' ], 200, "hosts/b/htdocs/f\n" ],
	[ 'a host without a directory', [ '/f', Host => 'c' ], 200, "www/f\n" ],
);
my $post = $srv->request("POST /app/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
like $post, qr/^5 5d41402abc4b2a76b9719d911017c592\r?$/m, 'a request body reaches the application';
my $many = join('', map { "GET /f HTTP/1.1\r\nHost: $_\r\n\r\n" } qw(a b d a)) . "GET /f HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n";
is join(' ', $srv->request($many) =~ m{^((?:hosts|www)/\S*)$}mg), join(' ', map { "hosts/$_/htdocs/f" =~ s{hosts/d/htdocs}{www}r } qw(a b d a b)), 'pipelined requests get the files of their own hosts';
undef $srv;

# Nothing is remembered between two look-ups of one request.
$srv = server(<<'CONF');
simple-vhost.server-root = "@DIR@/hosts"
simple-vhost.default-host = "b"
simple-vhost.document-root = "htdocs"
evhost.path-pattern = "@DIR@/hosts/%_/none"
userdir.path = "public_html"
userdir.basepath = "@DIR@/home"
server.stat-cache-engine = "disable"
$PHYSICAL["existing-path"] =~ "/hosts/a/htdocs/f$" { server.tag = "exists" }
$PHYSICAL["path"] =~ "/hosts/b/htdocs/f$" { server.tag = "path" }
CONF
answers($srv,
	[ 'without a cache: a host', [ '/f', Host => 'a' ], 200, qr/^Server: exists\r.*\r\n\r\nhosts\/a\/htdocs\/f\n\z/ms ],
	[ '... the default host', [ '/f', Host => 'c' ], 200, qr/^Server: path\r.*\r\n\r\nhosts\/b\/htdocs\/f\n\z/ms ],
	[ '... a user', [ '/~joe/f', Host => 'a' ], 200, "home/joe/public_html/f\n" ],
);
$many = join('', map { "GET /f HTTP/1.1\r\nHost: $_\r\n\r\n" } qw(a b d)) . "GET /~joe/f HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n";
is join(' ', $srv->request($many) =~ m{^((?:hosts|home)/\S*)$}mg), 'hosts/a/htdocs/f hosts/b/htdocs/f hosts/b/htdocs/f home/joe/public_html/f', '... pipelined';
done_testing;
