#!/usr/bin/perl
# setenv.*: the examples of lighttpd's documentation, and what a setting must not do.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::More;
use Test::Server;

my $app = Test::App->start;
my $block = Test::Server::proxy_block('^/app/', 'unix:' . $app->socket);
my $srv = Test::Server->start(conf => <<"CONF");
expire.url = ( "/cached" => "access plus 1 hours" )
setenv.add-request-header = ( "FOO" => "foo", "X-Two" => "2" )
setenv.set-request-header = ( "X-Set" => "ours", "X-Gone" => "", "Accept-Language" => "de" )
setenv.add-response-header = ( "Content-Secret-Message" => "open the pod bay doors HAL", "X-Over" => "1" )
setenv.set-response-header = ( "Server" => "other", "X-Powered-By" => "", "X-Over" => "2", "X-App" => "set" )
setenv.add-environment = ( "TRAC_ENV" => "lighttpd", "RAILS_ENV" => "production" )
setenv.set-environment = ( "TRAC_ENV" => "set", "SERVER_SOFTWARE" => "s", "HTTPS" => "on" )
\$HTTP["url"] =~ "^/bare" {
	setenv.set-response-header = ( "Server" => "", "ETag" => "", "Last-Modified" => "", "Accept-Ranges" => "" )
}
\$HTTP["url"] =~ "^/cached/none" {
	setenv.set-response-header = ( "Cache-Control" => "no-store", "Content-Type" => "a/b" )
}
\$HTTP["url"] =~ "^/part" {
	setenv.set-request-header = ( "Range" => "bytes=1-2" )
}
\$HTTP["url"] =~ "^/nopart" {
	setenv.set-request-header = ( "Range" => "" )
}
$block
CONF
$srv->write($_, 'hello') for qw(a.txt bare.txt cached.txt cached/none.txt part.txt nopart.txt dir/index.html);

sub lines { my ($r, $name) = @_; return join '|', $r->{head} =~ /^\Q$name\E: (.*?)\r?$/mgi }

for my $path ('/a.txt', '/absent', '/dir', '/dir/', '/app/env', '/a.txt?range') {
	my $r = $srv->fetch($path, $path =~ /range/ ? (Range => 'bytes=1-1') : ());
	is lines($r, 'content-secret-message'), 'open the pod bay doors HAL', "$path: a header is added ($r->{status})";
	is lines($r, 'x-over'), '2', '... another is set';
	is lines($r, 'server'), 'other', '... Server is replaced';
	like $r->{head}, qr/^HTTP\/1\.1 \d+ /, '... the status line is whole';
}
my $r = $srv->fetch('/app/head?X-Powered-By:%20php|X-App:%20a|x-app:%20b|X-Other:%20c');
is join('/', map { lines($r, $_) } qw(x-powered-by x-app x-other)), '/set/c', 'fields of an application: removed, replaced, kept';
$r = $srv->fetch('/bare.txt');
is join('/', map { lines($r, $_) } qw(server etag last-modified accept-ranges content-length)), '////5', 'fields of the server are removed';
is $r->{body}, 'hello', '... and the reply is whole';
$r = $srv->fetch('/cached.txt');
is lines($r, 'cache-control'), 'max-age=3600', 'expire adds a field';
$r = $srv->fetch('/cached/none.txt');
is lines($r, 'cache-control') . ' ' . lines($r, 'content-type'), 'no-store a/b', '... which a setting replaces, and so is the type';
is $srv->fetch('/part.txt')->{body}, 'el', 'a field of the request holds for the server';
is $srv->fetch('/nopart.txt', Range => 'bytes=1-2')->{body}, 'hello', '... and its absence';

my $env = $srv->fetch('/app/env', 'X-Two' => '1', 'X-Set' => 'theirs', 'X-Gone' => 'theirs', 'X-Stays' => 's')->{body};
for ([ HTTP_FOO => 'foo' ], [ HTTP_X_TWO => '1, 2' ], [ HTTP_X_SET => 'ours' ], [ HTTP_X_STAYS => 's' ], [ TRAC_ENV => 'set' ],
	[ RAILS_ENV => 'production' ], [ SERVER_SOFTWARE => 's' ], [ HTTPS => 'on' ], [ HTTP_ACCEPT_LANGUAGE => 'de' ]) {
	my ($name, $want) = @$_;
	is join('|', $env =~ /^\Q$name\E=(.*)$/mg), $want, "the application gets $name";
}
unlike $env, qr/X_GONE/, '... but not a removed field';

my $ours = 'makes this field itself';
for (
	[ 'set-response-header = ( "Content-Length" => "0" )', $ours ],
	[ 'add-response-header = ( "transfer-encoding" => "chunked" )', $ours ],
	[ 'set-response-header = ( "Connection" => "" )', $ours ],
	[ 'set-response-header = ( "Date" => "x" )', $ours ],
	[ 'set-request-header = ( "Content-Length" => "5" )', $ours ],
	[ 'set-request-header = ( "Host" => "x" )', $ours ],
	[ 'set-environment = ( "CONTENT_LENGTH" => "5" )', $ours ],
	[ 'add-response-header = ( "a b" => "x" )', 'not a name' ],
	[ 'add-environment = ( "A-B" => "x" )', 'letters, digits' ],
	[ 'add-response-header = ( ' . join(', ', map { qq{"X-$_" => "x"} } 1 .. 41) . ' )', 'at most 40' ],
	[ 'add-response-header = ( "X-1" => "' . 'x' x 5000 . '", "X-2" => "' . 'x' x 5000 . '" )', 'at most 8192 bytes' ],
) {
	my ($line, $why) = @$_;
	my $bad = Test::Server->start(conf => "setenv.$line\n", unchecked => 1);
	ok $bad->wait_exit, substr($line, 0, 60) . ': no start';
	$bad->log_has(qr/setenv\.[a-z-]+: .*\Q$why\E/, '... which says why');
}
# The head of a reply is one chunk of 16 KiB: two settings can have more.
my %much = map { $_ => join ', ', map { '"X-' . $_ . '" => "' . 'x' x 4000 . '"' } "$_-1", "$_-2" } qw(add set);
my $long = Test::Server->start(conf => <<"END");
server.document-root = "\@DIR\@"
\$HTTP["url"] =~ "^/long" {
	setenv.add-response-header = ( $much{add}, "X-3" => "@{['x' x 150]}" )
	setenv.set-response-header = ( $much{set}, "X-4" => "@{['x' x 150]}" )
}
END
$long->write($_, "hi\n") for qw(long.txt short.txt);
is $long->get($_), '', "$_: a head of more than 16 KiB is not sent" for qw(/long.txt /long-none);
like $long->get('/short.txt'), qr/^HTTP\S+ 200 .*hi\n\z/s, '... and the next request is answered';

my $bad = Test::Server->start(conf => qq{setenv.add-response-header = ( "X" => env.EVIL )\n}, env => { EVIL => "a\r\nSet-Cookie: x" }, unchecked => 1);
ok $bad->wait_exit, 'a second line from a value: no start';
$bad->log_has(qr/setenv\.add-response-header: expected printable text/, '... which says why');
done_testing;
