#!/usr/bin/perl
# secdownload.*: signed links, each algorithm; wrong ones 403, old ones 410.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Digest::MD5 qw(md5_hex);
use Digest::SHA qw(hmac_sha1_base64 hmac_sha256_base64);
use Test::More;
use Test::Server;

my $secret = 'verysecret';
my $srv = Test::Server->start(conf => <<"CONF");
server.document-root = "\@DIR\@/www"
secdownload.secret = "$secret"
secdownload.document-root = "\@DIR\@/files"
secdownload.uri-prefix = "/dl/"
secdownload.timeout = 120
secdownload.algorithm = "md5"
\$HTTP["host"] == "sha1" {
	secdownload.algorithm = "hmac-sha1"
}
\$HTTP["host"] =~ "^(sha256|part|query)\$" {
	secdownload.algorithm = "hmac-sha256"
}
\$HTTP["host"] == "part" {
	secdownload.path-segments = 1
}
\$HTTP["host"] == "query" {
	secdownload.hash-querystr = "enable"
}
CONF
mkdir "$srv->{dir}/files";
$srv->write('files/a/b.txt', 'signed');
$srv->write('www/dl/plain.txt', 'plain');
$srv->write('www/open.txt', 'open');

sub url64 { return $_[0] =~ tr{+/}{-_}r }
my ($now, $old, $new) = map { sprintf '%08x', $_ } time, time - 1000, time + 1000;
my $name = '/a/b.txt';
sub md5 { my ($ts, $n) = @_; return md5_hex($secret . ($n // $name) . $ts) }
sub sha { my ($what) = @_; return url64(hmac_sha256_base64($what, $secret)) }
for (
	[ 'x', md5($now), $now, $name, 200, 'md5' ], [ 'x', uc md5($now), $now, $name, 200, '... in upper case' ],
	[ 'x', md5($now, '/a'), $now, $name, 403, 'of another name' ], [ 'x', md5($old), $now, $name, 403, 'of another time' ],
	[ 'x', md5($old), $old, $name, 410, 'old' ], [ 'x', md5($new), $new, $name, 410, 'of the future' ], [ 'x', 'a' x 32, $old, $name, 403, 'old and wrong' ],
	[ 'x', md5($now, '/absent'), $now, '/absent', 404, 'of an absent file' ], [ 'x', 'short', $now, $name, 403, 'too short' ],
	[ 'x', md5($now), $now, '/x/..' . $name, 200, 'another spelling' ],
	[ 'sha1', url64(hmac_sha1_base64("/$now$name", $secret)), $now, $name, 200, 'hmac-sha1' ], [ 'sha1', 'A' x 27, $now, $name, 403, '... wrong' ],
	[ 'sha256', sha("/$now$name"), $now, $name, 200, 'hmac-sha256' ], [ 'sha256', md5($now), $now, $name, 403, '... not md5' ],
	[ 'part', sha("/$now/a"), $now, $name, 200, 'path-segments' ], [ 'part', sha("/$now$name"), $now, $name, 403, '... not the whole' ],
	[ 'query', sha("/$now$name?x=1"), $now, "$name?x=1", 200, 'hash-querystr' ], [ 'query', sha("/$now$name"), $now, "$name?x=1", 403, '... without it' ],
	[ 'query', sha("/$now$name"), $now, $name, 200, '... and no query' ],
) {
	my ($host, $mac, $ts, $path, $status, $what) = @$_;
	is $srv->fetch("/dl/$mac/$ts$path", Host => $host)->{status}, $status, "$what: $status";
}
is $srv->fetch('/dl/' . md5($now) . "/$now$name")->{body}, 'signed', 'the file is that of secdownload.document-root';
is $srv->fetch($_)->{status}, 403, "$_: nothing else below the prefix" for '/dl/', '/dl/plain.txt', '//dl/plain.txt', '/%64l/plain.txt';
is $srv->fetch('/open.txt')->{body}, 'open', 'other paths are as before';
for ([ 'secdownload.secret = "verysecret"', 'document-root is needed' ], [ 'secdownload.document-root = "@DIR@"', 'at least 8 bytes' ],
	[ qq{secdownload.document-root = "\@DIR\@"\nsecdownload.secret = "verysecret"}, 'uri-prefix' ]) {
	my $bad = Test::Server->start(conf => "$_->[0]\n", unchecked => 1);
	ok $bad->wait_exit, 'no start: ' . ($_->[0] =~ s/\n/; /r);
	$bad->log_has(qr/secdownload.*\Q$_->[1]\E/, '... which says why');
}
done_testing;
