#!/usr/bin/perl
# evhost.path-pattern: the examples of lighttpd's documentation, Debian's file, each placeholder, and hosts that are not names.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::More;
use Test::Module qw(answers);
use Test::Server;
use Test::Util qw(put);

my $dir = File::Temp->newdir('accel-evhost-XXXXXX', TMPDIR => 1);
sub page { my ($path, $text) = @_; make_path("$dir/$path"); put("$dir/$path/index.html", "$text\n"); return }
page('default/site', 'default');
page(@$_) for [ 'sites/example.org/site', '%0' ], [ 'servers/www/pages', '%3' ], [ 'users/johndoe/public_html', '%4' ], [ 'letters/j/johndoe/public_html', '%{4.1}' ],
	[ 'srv/www.example.org/htdocs', '%_' ], [ 'tld/org/example', '%1 %2' ], [ 'nine/a/b/c/d/e/f/g', '%9' ], [ 'percent/100%/example', '%%' ], [ 'empty/x', 'empty part' ],
	[ 'srv/localhost/htdocs', 'one label' ], [ 'whole/example', '%{2.0}' ], [ 'v6/[::1]', 'address' ], [ 'fixed', 'no placeholder' ], [ 'mixed/x-www-y', 'mixed' ];
make_path("$dir/srv/empty.example.org");
put("$dir/secret", "secret\n");
put("$dir/srv/secret", "secret\n");

my @patterns = (
	# pattern                       host                          what comes
	[ 'sites/%0/site/',             'example.org',                '%0' ],
	[ 'sites/%0/site/',             'www.example.org:8080',       '%0' ],
	[ 'sites/%0/site/',             'example.net',                'default' ],
	[ 'servers/%3/pages/',          'www.example.org',            '%3' ],
	[ 'users/%4/public_html/',      'johndoe.users.example.org',  '%4' ],
	[ 'letters/%{4.1}/%4/public_html/', 'johndoe.users.example.org', '%{4.1}' ],
	[ 'letters/%{4.9}/%4/public_html/', 'johndoe.users.example.org', 'default' ],
	[ 'srv/%_/htdocs',              'WWW.Example.Org',            '%_' ],
	[ 'srv/%_/htdocs',              'www.example.org.',           '%_' ],
	[ 'srv/%_/htdocs',              'empty.example.org',          'default' ],
	[ 'srv/%0/htdocs',              'localhost',                  'one label' ],
	[ 'srv/%1/htdocs',              'localhost',                  'one label' ],
	[ 'tld/%1/%2',                  'example.org',                '%1 %2' ],
	[ 'nine/%9/%8/%7/%6/%5/%4/%3',  'a.b.c.d.e.f.g.example.org',  '%9' ],
	[ 'percent/100%%/%2',           'example.org',                '%%' ],
	[ 'empty/%3/x',                 'example.org',                'empty part' ],
	[ 'whole/%{2.0}',               'example.org',                '%{2.0}' ],
	[ 'v6/%_',                      '[::1]:80',                   'address' ],
	[ 'v6/%0',                      '[::1]',                      'address' ],
	[ 'mixed/x-%3-y/',              'www.example.org',            'mixed' ],
	[ 'srv/' . '%_' x 20,           'x.' x 120 . 'org',           'default' ],
	[ 'srv/%_%_/htdocs',            'x.' x 100 . 'org',           'default' ],
	[ 'fixed',                      'www.example.org',            'no placeholder' ],
);
my %server;
sub server { my ($pattern) = @_; return $server{$pattern} //= Test::Server->start(dir => $dir, conf => <<"CONF") }
server.modules = ( "mod_evhost" )
server.max-worker = 1
server.document-root = "\@DIR\@/default/site"
evhost.path-pattern = "\@DIR\@/$pattern"
CONF
answers(server($_->[0]), [ "$_->[0] for $_->[1]", [ '/', Host => $_->[1] ], 200, "$_->[2]\n" ]) for @patterns;

# A block has its own pattern; the others keep theirs.
my $srv = Test::Server->start(dir => $dir, conf => <<'CONF');
server.document-root = "@DIR@/default/site"
evhost.path-pattern = "@DIR@/srv/%_/htdocs"
$HTTP["host"] =~ "users\.example\.org" { evhost.path-pattern = "@DIR@/users/%4/public_html/" }
CONF
answers($srv,
	[ 'in a block', [ '/', Host => 'johndoe.users.example.org' ], 200, "%4\n" ],
	[ 'outside of it', [ '/', Host => 'www.example.org' ], 200, "%_\n" ]);
my @odd = ('..', '.', '../..', 'a/b', '%2e%2e', '.hidden', 'a..b', '..:80', 'x' x 300, ('x.' x 120) . 'x', '[..]', '~');
for my $host (@odd, '../', '...', 'www.example.org/..') {
	like $srv->request("GET /secret HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n"), qr{^HTTP/1\.1 (?:400|404) }, 'no way out: ' . substr $host, 0, 20;
}
symlink '../../../secret', "$dir/srv/www.example.org/htdocs/out" or die $!;
answers($srv, [ 'a link out of the host', [ '/out', Host => 'www.example.org' ], 403 ]);

sub refused ($pattern) {
	put("$dir/x.conf", qq{server.document-root = "$dir/fixed"\nserver.port = 0\nevhost.path-pattern = "$pattern"\n});
	my $said = qx{@{[ Test::Util::program('accel-server') ]} -tt -f $dir/x.conf 2>&1};
	return $? >> 8 ? $said : 'accepted';
}
like refused($_->[0]), $_->[1], "refused: $_->[0]" for
	[ '/%0/htdocs', qr/expected an absolute path with a directory in front of the first percent sign/ ], [ 'srv/%0', qr/expected an absolute path/ ],
	[ "$dir/srv/%x", qr/expected %0 to %9/ ], [ "$dir/srv/%", qr/expected %0 to %9/ ], [ "$dir/srv/%{1}", qr/expected %0 to %9/ ],
	[ "$dir/none/%0", qr/No such file/ ], [ "$dir/srv/" . '%0' x 65, qr/at most 64 pieces/ ];
is refused("$dir/srv/" . '%0' x 64), 'accepted', '64 pieces are allowed';
done_testing;
