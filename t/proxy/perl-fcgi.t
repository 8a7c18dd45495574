#!/usr/bin/perl
# FastCGI programs in Perl under spawn-fcgi: an authorizer, with examples/accel-server/authorizer.conf, and an application
# behind it.

use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin ();
use Test::More;

use Test::Http qw(parse);
use Test::Server;
use Test::Util qw(eventually need_program put slurp);

my $spawn = need_program('spawn-fcgi', 'spawn-fcgi');
my $run = File::Temp->newdir('accel-fcgi-XXXXXX', TMPDIR => 1);
my @pids;
END { local $?; kill 'TERM', @pids if @pids }

put("$run/authorizer.pl", <<'END');
use FCGI;
alarm 300;
my $r = FCGI::Request();
while ($r->Accept >= 0) {
	my $auth = $ENV{HTTP_AUTHORIZATION} // '';
	if ($ENV{FCGI_ROLE} ne 'AUTHORIZER') { print "Status: 500 role\r\n\r\n" }
	elsif ($auth eq 'Basic am9lOnB3') { print "Status: 200\r\nVariable-USER: joe\r\nVariable-REMOTE_USER: joe\r\n\r\n" }
	elsif ($auth) { print "Status: 403 No\r\nContent-Type: text/plain\r\n\r\nnot you" }
	else { print qq{Status: 401 Who\r\nWWW-Authenticate: Basic realm="private"\r\nContent-Type: text/plain\r\n\r\nyour name?} }
	$r->Finish;
}
END
put("$run/app.pl", <<'END');
use FCGI;
use Digest::MD5 qw(md5_hex);
alarm 300;
my $r = FCGI::Request();
while ($r->Accept >= 0) {
	my $body = '';
	1 while read STDIN, $body, 65536, length $body;
	print "Content-Type: text/plain\r\n\r\n", join '|', @ENV{qw(REQUEST_METHOD SCRIPT_NAME QUERY_STRING REMOTE_USER USER HTTP_X_USER)}, length $body, md5_hex($body);
	print "x" x 70000, "\n" for 1 .. ($ENV{QUERY_STRING} =~ /lines=(\d+)/ ? $1 : 0);
	print STDERR "said on stderr\n" if $ENV{QUERY_STRING} eq 'stderr';
	$r->Finish;
}
END

for my $name (qw(authorizer app)) {
	my $out = qx{$spawn -s $run/$name.sock -F 4 -- $^X $run/$name.pl 2>&1};
	push @pids, $out =~ /PID: (\d+)/g;
	ok -S "$run/$name.sock", "spawn-fcgi: $name" or die $out;
}

my $conf = slurp("$FindBin::Bin/../../examples/accel-server/authorizer.conf");
$conf =~ s{"/var/www/html"}{"\@DIR\@"};
$conf =~ s{8080}{\@PORT\@};
$conf =~ s{/run/(\w+)\.sock}{$run/$1.sock}g;
my $srv = Test::Server->start(conf => "server.max-worker = 1\n$conf");
$srv->write('private/file.txt', 'secret');
$srv->write('open.txt', 'open');
my @joe = (Authorization => 'Basic am9lOnB3');

my $r = $srv->fetch('/private/file.txt');
is "$r->{status} $r->{body}", '401 your name?', 'without a password';
is $r->{header}{'www-authenticate'}, 'Basic realm="private"', '... the client is asked for one';
is $srv->fetch('/private/file.txt', Authorization => 'Basic eA==')->{body}, 'not you', 'with a wrong one';
is $srv->fetch('/private/file.txt', @joe)->{body}, 'secret', 'with the right one';
is $srv->fetch('/private', @joe)->{status}, 301, 'the directory';
is $srv->fetch('/private')->{status}, 401, '... without a password';
is $srv->fetch('/open.txt')->{body}, 'open', 'another file';
like $srv->fetch('/private/app/x?a=b', @joe, 'X-User' => 'me')->{body}, qr{^GET\|/private/app/x\|a=b\|joe\|joe\|me\|0\|}, 'the application gets the name';
is $srv->fetch('/private/app/x')->{status}, 401, '... and is asked for no other client';
my $data = join '', map { chr($_ * 11 % 256) } 1 .. 400_000;
$r = parse($srv->request("POST /private/app/x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic am9lOnB3\r\nConnection: close\r\nContent-Length: 400000\r\n\r\n$data"));
like $r->{body}, qr/^POST\|.*\|400000\|@{[ md5_hex($data) ]}/, 'a request body passes both';
is length $srv->fetch('/private/app/x?lines=30', @joe)->{body} =~ s/^.*?xxx/xxx/sr, 30 * 70001, 'a large reply';
$srv->fetch('/private/app/x?stderr', @joe);
like $srv->wait_log(qr/said on stderr/), qr/ev=app\.stderr .*said on stderr/, 'stderr is in the log';
my @c = map { $srv->connect } 1 .. 20;
for my $round (1 .. 3) {
	$_->send("GET /private/app/x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic am9lOnB3\r\n\r\n") for @c;
	is scalar(grep { ($_->reply // {})->{status} == 200 } @c), 20, "twenty at a time, round $round";
}

done_testing;
