#!/usr/bin/perl
# url.access-deny and url.access-allow: the examples of lighttpd's documentation, and other names of the same file.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $srv = Test::Server->start(conf => <<"CONF");
url.access-deny = ( "~", ".inc" )
index-file.names = ( "index.inc", "index.html" )
alias.url = ( "/shown.txt" => "\@DIR\@/secret.inc", "/there/" => "\@DIR\@/dir/" )
\$HTTP["url"] =~ "^/images/" {
	url.access-allow = ( ".jpg", "/" )
}
\$HTTP["url"] =~ "^/none/" {
	url.access-deny = ( "" )
}
CONF
$srv->write($_, 'x') for 'a.txt', 'a.txt~', 'secret.inc', 'a.inc.', 'a.inc .', 'a.INC', 'dir/index.inc', 'dir/a.inc', 'images/a.jpg', 'images/a.txt', 'images/index.html', 'none/a.txt';
for (
	[ '/a.txt', 200 ], [ '/a.txt~', 403 ], [ '/a.txt%7e', 403 ], [ '/secret.inc', 403 ], [ '/secret.in%63', 403 ], [ '//./secret.inc', 403 ], [ '/x/../secret.inc', 403 ],
	[ '/a.INC', 403 ], [ '/absent.inc', 403 ], [ '/dir/', 403 ], [ '/dir/a.inc', 403 ], [ '/secret.inc;x', 403 ], [ '/a.inc.', 403 ], [ '/a.inc%20.', 403 ],
	[ '/shown.txt', 403 ], [ '/there/a.inc', 403 ],
	[ '/images/a.jpg', 200 ], [ '/images/a.txt', 403 ], [ '/none/a.txt', 403 ],
) {
	my ($path, $status) = @$_;
	is $srv->fetch($path)->{status}, $status, "$path: $status";
}
done_testing;
