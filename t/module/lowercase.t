#!/usr/bin/perl
# server.force-lowercase-filenames: one file for all spellings, and no rule that another spelling escapes.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::App;
use Test::Server;
use Test::Util ();

my $dir = File::Temp->newdir('accel-lower-XXXXXX', TMPDIR => 1);
Test::Util::put("$dir/users", "joe:secret\n");
my $app = Test::App->start;
my $srv = Test::Server->start(conf => <<"CONF");
server.force-lowercase-filenames = "enable"
index-file.names = ( "Start.html" )
url.access-deny = ( ".inc" )
alias.url = ( "/Pictures/" => "\@DIR\@/img/" )
url.redirect = ( "^/old/(.*)" => "/new/\$1" )
url.rewrite-once = ( "^/short\$" => "/Long.TXT" )
url.rewrite-if-not-file = ( "^/app/" => "/front.txt" )
static-file.exclude-extensions = ( ".pl" )
auth.backend = "plain"
auth.backend.plain.userfile = "$dir/users"
auth.require = ( "/Private/" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ),
	"/secret/" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )
fastcgi.server = ( ".php" => (( "socket" => "@{[ $app->socket ]}" )), "/bin/" => (( "socket" => "@{[ $app->socket ]}" )) )
\$HTTP["url"] =~ "^/Refused" { url.access-deny = ( "" ) }
\$HTTP["url"] =~ "^/refused-too" { url.access-deny = ( "" ) }
\$HTTP["url"] =~ "^/case/" { server.force-lowercase-filenames = "disable" }
CONF
$srv->write($_, "is $_") for qw(a.txt dir/start.html dir/Start.html dir/b.txt img/c.txt long.txt private/x secret/x refused/x refused-too/x front.txt app/there.txt x.pl app/env.php bin/app/env x.inc case/lower case/UPPER Upper);
mkdir $srv->dir . '/empty' or die "mkdir: $!";

my @joe = (Authorization => 'Basic am9lOnNlY3JldA==');
for (
	['/a.txt', 200, 'is a.txt'], ['/A.TXT', 200, 'is a.txt'], ['/%41.tXt', 200, 'is a.txt'], ['/DIR/../A.txt?Q', 200, 'is a.txt'], ['/Upper', 404],
	['/DIR/B.TXT', 200, 'is dir/b.txt'], ['/Dir/', 200, 'is dir/Start.html'], ['/Dir', 301, undef, '/dir/'], ['/EMPTY/', 403],
	['/pictures/C.txt', 200, 'is img/c.txt'], ['/Pictures/c.txt', 200, 'is img/c.txt'], ['/PICTURES/c.txt', 200, 'is img/c.txt'],
	['/old/Page', 301, undef, '/new/Page'], ['/OLD/Page', 301, undef, '/new/page'], ['/short', 200, 'is long.txt'], ['/SHORT', 200, 'is long.txt'],
	['/App/None', 200, 'is front.txt'], ['/App/There.TXT', 200, 'is app/there.txt'],
	['/x.pl', 403], ['/x.PL', 403], ['/x.inc', 403], ['/X.INC', 403], ['/refused/x', 200, 'is refused/x'], ['/Refused/x', 403], ['/REFUSED-TOO/x', 403], ['/refused-too/x', 403],
	['/case/UPPER', 200, 'is case/UPPER'], ['/case/Lower', 404], ['/case/lower', 200, 'is case/lower'],
	(map { ["/$_/x", 401], ["/$_/X", 200, 'is ' . lc($_) . '/x', undef, @joe] } qw(private Private PRIVATE secret Secret SECRET)),
) {
	my ($path, $status, $body, $location, @header) = @$_;
	my $r = $srv->fetch($path, @header);
	is $r->{status}, $status, "$path: $status";
	is $r->{body}, $body, '... the file' if defined $body;
	like $r->{header}{location}, qr{^(?:http://[^/]*)?\Q$location\E$}, '... to this URL' if defined $location;
}
for my $path ('/app/env.php', '/App/env.php', '/app/env.PHP', '/APP/ENV.PhP?a') {
	my $body = $srv->fetch($path)->{body};
	like $body, qr{^SCRIPT_FILENAME=\S+/app/env\.php$}m, "$path: the script runs";
	like $body, qr{^SCRIPT_NAME=/app/env\.php$}m, '... by this name';
	like $body, qr{^REQUEST_URI=\Q$path\E$}m, '... for what the client sent';
	unlike $body, qr/is app/, '... and its source is not sent';
}

for my $path ('/bin/app/env', '/BIN/app/env', '/Bin/App/Env') {
	my $body = $srv->fetch($path)->{body};
	like $body, qr{^SCRIPT_FILENAME=\S+/bin\b}m, "$path: the program of a prefix runs";
	unlike $body, qr/is bin/, '... and its source is not sent';
}

my $program = Test::Util::program('accel-server');
my $said = sub ($conf) { my $file = Test::Util::put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.port = 8080\n$conf\n}); return scalar qx{$program -t -f $file 2>&1} };
is $said->('static-file.disable-pathinfo = "enable"'), $said->(''), 'static-file.disable-pathinfo = "enable" is what is done';
like $said->('static-file.disable-pathinfo = "disable"'), qr/x\.conf:3:.*static-file\.disable-pathinfo: .*"?enable/, '... "disable" is refused, with what to write';
is $srv->fetch('/a.txt/x')->{status}, 404, '... a path after a file gives 404';

done_testing;
