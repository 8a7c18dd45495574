#!/usr/bin/perl
# userdir: the examples of lighttpd's documentation, Debian's file with homes of /etc/passwd, and users who are not names.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use Test::More;
use Test::Module qw(answers logs);
use Test::Server;
use Test::Util qw(put slurp);

my $own = Test::Server::own_mounts();
my $dir = File::Temp->newdir('accel-userdir-XXXXXX', TMPDIR => 1);
make_path("$dir/www/~nobody-here", "$dir/home/joe/private", "$dir/home/dave");
put("$dir/www/~nobody-here/x", "a directory of the root\n");
put("$dir/home/joe/private/key", "secret\n");
for (map { "home/$_" } qw(jan joe root postmaster b.r-e_n j/jim x/x)) {
	make_path("$dir/$_/public_html/sub");
	put("$dir/$_/public_html/index.html", "$_\n");
	put("$dir/$_/public_html/x", "$_ x\n");
}
put("$dir/home/secret", "secret\n");
put("$dir/secret", "secret\n");
symlink '../private/key', "$dir/home/joe/public_html/own" or die $!;
symlink "$dir/home/jan/public_html/x", "$dir/home/joe/public_html/other" or die $!;
symlink '../../secret', "$dir/home/joe/public_html/out" or die $!;
make_path("$dir/home/eve");
symlink '../joe', "$dir/home/eve/public_html" or die $!;

sub server { my ($conf) = @_; return Test::Server->start(dir => $dir, conf => qq{server.modules = ( "mod_userdir" )\nserver.document-root = "\@DIR\@/www"\n$conf}) }

my $srv = server(<<'CONF');
userdir.path = "public_html"
userdir.basepath = "@DIR@/home"
userdir.exclude-user = ( "root", "postmaster" )
$HTTP["host"] == "off" { userdir.active = "disable" }
$HTTP["host"] == "some" { userdir.include-user = ( "jan", "root" ) }
$HTTP["host"] == "letters" { userdir.letterhomes = "enable" }
$PHYSICAL["path"] =~ "/joe/public_html/x$" { server.tag = "joe" }
CONF
answers($srv,
	[ 'a user', '/~jan/', 200, "home/jan\n" ],
	[ 'a file', '/~joe/x', 200, qr/^Server: joe\r.*\r\n\r\nhome\/joe x\n\z/ms ],
	[ 'the tilde may be encoded', '/%7ejan/', 200, "home/jan\n" ],
	[ 'without a slash', '/~jan', 301, qr{^Location: /~jan/\r}m ],
	[ 'a directory below', '/~jan/sub', 301, qr{^Location: /~jan/sub/\r}m ],
	[ 'other characters', '/~b.r-e_n/', 200, "home/b.r-e_n\n" ],
	[ 'excluded', '/~root/', 404 ],
	[ '... the second one', '/~postmaster/x', 404 ],
	[ 'a home without public_html', '/~dave/', 404 ],
	[ 'an unknown user: the document root', '/~nobody-here/x', 200, "a directory of the root\n" ],
	[ 'nobody', '/~/', 404 ],
	[ 'not at the beginning', '/a/~jan/x', 404 ],
	[ 'userdir.active = "disable"', [ '/~jan/', Host => 'off' ], 404 ],
	[ 'included', [ '/~jan/', Host => 'some' ], 200, "home/jan\n" ],
	[ '... not the others', [ '/~joe/', Host => 'some' ], 404 ],
	[ '... nor an excluded one', [ '/~root/', Host => 'some' ], 404 ],
	[ 'letterhomes', [ '/~jim/x', Host => 'letters' ], 200, "home/j/jim x\n" ],
	[ '... of one letter', [ '/~x/', Host => 'letters' ], 200, "home/x/x\n" ],
	[ '... and no others', [ '/~joe/', Host => 'letters' ], 404 ],
	[ 'a link in the home', '/~joe/own', 200, "secret\n" ],
	[ 'a link to another user', '/~joe/other', 403 ],
	[ 'a link out of the homes', '/~joe/out', 403 ],
	[ 'a public_html that is the home of another user', '/~eve/private/key', 403 ],
);
logs($srv, qr/ev=link\.refused directory=\S+home\/joe link=public_html\/out target=\.\.\/\.\.\/secret/, 'the link is in the log');
for ('/~../secret', '/~./secret', '/~..', '/~%2e%2e/secret', '/~jan%2f../x', '/~jan%00/x', '/~.hidden/', '/~jan/../../secret', '/~*/', '/~' . 'x' x 300 . '/', '/~jan;x/', '/~ jan/') {
	like $srv->get(s/ /%20/r), qr{^HTTP/1\.1 (?:400|404) }, 'no way out: ' . substr $_, 0, 20;
}
undef $srv;

SKIP: {
	skip 'needs a mount namespace for an /etc/passwd of its own', 1 if !$own;
	put("$dir/passwd", slurp('/etc/passwd') . join '', map { "$_->[0]:x:$_->[1]:100::$_->[2]:/bin/sh\n" } [ 'jan', 5001, "$dir/home/jan" ], [ 'joe', 5002, "$dir/home/joe" ],
		[ 'eve', 5003, "$dir/home/eve" ], [ 'slash', 5004, '/' ], [ 'none', 5005, '' ], [ 'postmaster', 5006, "$dir/home/postmaster" ], [ 'jan', 5007, "$dir/home/joe" ]);
	system('mount', '--bind', "$dir/passwd", '/etc/passwd') == 0 or die "mount: $?";
	$srv = server(slurp('/etc/lighttpd/conf-available/10-userdir.conf') =~ s/^server\.modules.*//mr) if -e '/etc/lighttpd/conf-available/10-userdir.conf';
	$srv //= server(qq{userdir.path = "public_html"\nuserdir.exclude-user = ( "root", "postmaster" )\n});
	answers($srv,
		[ 'a home of /etc/passwd', '/~jan/', 200, "home/jan\n" ],
		[ '... of another user', '/~joe/x', 200, "home/joe x\n" ],
		[ 'excluded', '/~postmaster/x', 404 ],
		[ 'root', '/~root/', 404 ],
		[ 'a user without a home', '/~none/', 404 ],
		[ 'the home /', '/~slash/etc/passwd', 404 ],
		[ 'unknown', '/~nobody-here/x', 200, "a directory of the root\n" ],
		[ 'a link to another user', '/~joe/other', 403 ],
	);
	like $srv->get('/~eve/private/key'), qr{^HTTP/1\.1 40[34] }, 'a public_html that is the home of another user';
	undef $srv;
	put("$dir/passwd", "new:x:1:1::$dir/home/jan:/bin/sh\n");
}

my $said = do {
	put("$dir/x.conf", qq{server.document-root = "$dir/www"\nserver.port = 0\nuserdir.path = "x"\nuserdir.basepath = "$dir/missing"\n});
	qx{@{[ Test::Util::program('accel-server') ]} -tt -f $dir/x.conf 2>&1};
};
like $said, qr/userdir\.basepath: "\S+missing": No such file/, 'a basepath that is missing stops the start';
done_testing;
