#!/usr/bin/perl
# Modules that a block of existing files sets: $PHYSICAL["existing-path"] is known late, but its rules count.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use MIME::Base64;
use Test::More;
use Test::Server;

my $srv = Test::Server->start(conf => <<'CONF');
index-file.names = ( "index.html" )
auth.backend = "plain"
auth.backend.plain.userfile = "@DIR@/users"
$PHYSICAL["existing-path"] =~ "/private/" {
	auth.require = ( "" => ( "method" => "basic", "realm" => "r", "require" => "valid-user" ) )
}
$PHYSICAL["existing-path"] =~ "\.old$" { url.redirect = ( "^/(.*)\.old$" => "/$1" ) }
$PHYSICAL["existing-path"] =~ "\.raw$" { url.access-allow = ( ".txt" ) }
$PHYSICAL["existing-path"] =~ "\.moved$" { url.rewrite-once = ( "" => "/a.txt" ) }
$PHYSICAL["existing-path"] =~ "\.again$" { url.rewrite-repeat = ( "" => "/b.again" ) }
CONF
$srv->write('users', "anna:right\n");
$srv->write($_, "$_\n") for 'a.txt', 'private/a.txt', 'private/index.html', 'a.old', 'a.raw', 'a.moved', 'a.again', 'b.again';
for (
	[ '/a.txt', 200 ], [ '/private/a.txt', 401 ], [ '/private/', 401 ], [ '/private//a.txt', 401 ], [ '/private/absent', 404 ],
	[ '/a.old', 301 ], [ '/a.raw', 403 ], [ '/a.moved', 200 ], [ '/absent.moved', 404 ], [ '/a.again', 500 ],
) {
	my ($path, $status) = @$_;
	is $srv->fetch($path)->{status}, $status, "$path: $status";
}
is $srv->fetch('/a.moved')->{body}, "a.txt\n", 'a rewrite of an existing file';
my $user = 'Basic ' . encode_base64('anna:right', '');
is $srv->fetch('/private/a.txt', Authorization => $user)->{status}, 200, 'a user is let in';
like $srv->get('/private/a.txt', Authorization => $user, 'If-None-Match' => '*'), qr{^HTTP/1\.1 304 }, '... and is remembered';

# Two rules for one request, and nothing is remembered from one request to the next.
my $two = Test::Server->start(conf => <<'CONF');
auth.backend = "plain"
auth.backend.plain.userfile = "@DIR@/users"
auth.cache = ( "max-age" => "0" )
auth.require = ( "/" => ( "method" => "basic", "realm" => "r", "require" => "valid-user" ) )
$PHYSICAL["existing-path"] =~ "/private/" {
	auth.require = ( "" => ( "method" => "basic", "realm" => "s", "require" => "user=anna" ) )
}
CONF
$two->write('users', "anna:right\notto:right\n");
$two->write($_, "$_\n") for 'a.txt', 'private/a.txt';
my $other = 'Basic ' . encode_base64('otto:right', '');
is $two->fetch('/private/a.txt', Authorization => $user)->{status}, 200, 'both rules let her in';
is $two->fetch('/a.txt', Authorization => $other)->{status}, 200, 'one rule lets him in';
is $two->fetch('/private/a.txt', Authorization => $other)->{status}, 401, '... the other one does not';
done_testing;
