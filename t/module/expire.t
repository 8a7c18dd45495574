#!/usr/bin/perl
# expire.url and expire.mimetypes: the examples of lighttpd's documentation, with what they promise.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http qw(parse);
use Test::More;
use Test::Server;

my $app = Test::App->start;
my $block = Test::Server::proxy_block('^/app/', 'unix:' . $app->socket);
my $srv = Test::Server->start(conf => <<"CONF");
mimetype.assign = ( ".css" => "text/css", ".txt" => "text/plain; charset=utf-8", ".jpg" => "image/jpeg" )
expire.url = (
	"/images/" => "access 1 hours",
	"/images/later" => "access plus 2 years",
	"/fonts/" => "access plus 1 months 2 days 3 weeks 4 hours 5 minutes 6 seconds",
	"/buttons/" => "access plus 1 second",
	"/static/" => "modification plus 1 years",
	"/old/" => "modification plus 1 days",
	"/now/" => "now plus 7 days",
	"/app/" => "access plus 9 seconds"
)
expire.mimetypes = ( "text/css" => "access plus 3 minutes", "IMAGE/*" => "access plus 4 minutes" )
\$HTTP["url"] =~ "^/none/" {
	expire.url = ()
	expire.mimetypes = ()
}
\$HTTP["url"] =~ "^/other/" {
	expire.url = ( "" => "access plus 5 seconds" )
}
$block
CONF
my $now = time;
$srv->write($_, 'x') for qw(images/a.txt images/later.txt fonts/a.txt buttons/a.txt static/a.txt old/a.txt now/a.txt a.css a.jpg a.txt none/a.css other/a.css images/index.html);
utime $now - 86400, $now - 86400, $srv->path('static/a.txt');
utime $now - 10 * 86400, $now - 10 * 86400, $srv->path('old/a.txt');

sub age { return ($srv->fetch(@_)->{header}{'cache-control'} // 'none') =~ s/^max-age=//r }

for (
	[ '/images/a.txt', 3600, 'access, without plus' ],
	[ '/images/later.txt', 3600, 'the first row that fits counts' ],
	[ '/images/', 3600, 'an index file' ],
	[ '/%69mages//./a.txt', 3600, 'another spelling of the path' ],
	[ '/fonts/a.txt', 30 * 86400 + 2 * 86400 + 21 * 86400 + 4 * 3600 + 306, 'all units' ],
	[ '/buttons/a.txt', 1, 'the singular' ],
	[ '/old/a.txt', 0, 'modification: over already' ],
	[ '/now/a.txt', 7 * 86400, 'now' ],
	[ '/a.css', 180, 'a media type' ], [ '/a.jpg', 240, '... by its beginning, in any case' ], [ '/a.txt', 'none', 'another type' ],
	[ '/none/a.css', 'none', 'a condition switches it off' ], [ '/other/a.css', 5, '... or gives other rows' ],
	[ '/images/absent', 'none', 'not for an error' ],
	[ '/app/head?Content-Type:%20text/plain', 9, 'an application' ],
	[ '/app/head?Cache-Control:%20private', 'private', '... which may say it itself' ],
) {
	my ($path, $want, $name) = @$_;
	is age($path), $want, "$path: $name";
}
my $left = age('/static/a.txt');
cmp_ok abs($left - 364 * 86400), '<=', 60, '/static/a.txt: counted from its modification';
my $r = $srv->fetch('/images/a.txt', Range => 'bytes=0-0');
is "$r->{status} $r->{header}{'cache-control'}", '206 max-age=3600', 'a range';
$r = $srv->fetch('/images/a.txt');
is $srv->fetch('/images/a.txt', 'If-None-Match' => $r->{header}{etag})->{header}{'cache-control'}, 'max-age=3600', 'a 304 says it too';
like $srv->fetch('/app/head?Expires:%20Thu,%2001%20Jan%202026%2000:00:00%20GMT')->{head}, qr/^(?!.*Cache-Control).*Expires: Thu/s, 'an application that sends Expires';
$r = parse($srv->request("GET /images/a.txt HTTP/1.0\r\n\r\n"));
like $r->{header}{expires}, qr/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'HTTP/1.0: Expires';
is $r->{header}{'cache-control'}, undef, '... and no max-age';

for (
	[ '"/" => "plus 1 hours"', 'begin with' ], [ '"/" => "access"', 'add a time' ], [ '"/" => "access plus 1h"', 'number' ],
	[ '"/" => "access plus 1 lightyears"', 'units' ], [ '"/" => "access plus 101 years"', '100 years' ],
	[ '"/" => "access plus 99 years 99 years"', '100 years' ], [ '"/" => "access plus 99999999999999999999 seconds"', 'number' ],
) {
	my ($map, $why) = @$_;
	my $bad = Test::Server->start(conf => "expire.url = ( $map )\n", unchecked => 1);
	ok $bad->wait_exit, "$map: no start";
	$bad->log_has(qr/expire\.url: .*\Q$why\E/, '... which says why');
}
done_testing;
