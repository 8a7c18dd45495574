#!/usr/bin/perl
# cgi.assign: programs that the helper process runs (CGI/1.1, RFC 3875).

use strict;
use warnings;
use Test::More;

use Test::Http qw(parse req request_head);
use Test::Server;
use Test::Util qw(eventually slurp);

sub script {
	my ($srv, $name, $text, $mode) = @_;
	$srv->write($name, $text);
	chmod $mode // 0755, $srv->path($name) or die "$name: $!";
	return;
}

my $srv = Test::Server->start(conf => <<'END');
server.document-root = "@DIR@"
index-file.names = ( "index.cgi", "index.html" )
cgi.assign = ( ".cgi" => "", ".pl" => "/usr/bin/perl", ".sh" => "/bin/sh" )
END
my $env = <<'END';
printf 'Content-Type: text/plain\n\n'
env
pwd
END
script($srv, 'env.cgi', "#!/bin/sh\n$env");
script($srv, 'env.sh', $env, 0644);
script($srv, 'echo.pl', 'binmode STDIN; print "Content-Type: text/plain\n\n"; print while <STDIN>', 0644);
script($srv, 'dir/index.cgi', "#!/bin/sh\n$env");
script($srv, 'none.cgi', "#!/bin/sh\n", 0644);

sub env_of { my ($body) = @_; return { map { /^(\w+)=(.*)$/ ? ($1, $2) : () } split /\n/, $body } }

for my $name ('env.cgi', 'env.sh') {
	my $got = $srv->fetch("/$name/some/info?a=b&c", 'X-Own' => 'yes', Proxy => 'evil');
	is $got->{status}, 200, "$name runs";
	my $e = env_of($got->{body});
	my $dir = $srv->dir;
	my %want = (
		GATEWAY_INTERFACE => 'CGI/1.1', REQUEST_METHOD => 'GET', SCRIPT_NAME => "/$name", SCRIPT_FILENAME => "$dir/$name",
		PATH_INFO => '/some/info', PATH_TRANSLATED => "$dir/some/info", QUERY_STRING => 'a=b&c', REDIRECT_STATUS => 200,
		REQUEST_URI => "/$name/some/info?a=b&c", DOCUMENT_ROOT => "$dir", SERVER_PORT => $srv->port, REMOTE_ADDR => '127.0.0.1',
		HTTP_X_OWN => 'yes', SERVER_PROTOCOL => 'HTTP/1.1',
	);
	is $e->{$_}, $want{$_}, "$name: $_" for sort keys %want;
	is $e->{HTTP_PROXY}, undef, "$name: no HTTP_PROXY";
	is_deeply [grep { /^accel|^LISTEN|^B$/ } keys %$e], [], "$name: nothing of the server";
	like $got->{body}, qr/^\Q$dir\E$/m, "$name: in its directory";
}
like $srv->fetch('/dir/')->{body}, qr{^SCRIPT_NAME=/dir/index\.cgi$}m, 'an index file';
is $srv->fetch('/none.cgi')->{status}, 403, 'a script that cannot be executed';
like $srv->wait_log(qr/chmod \+x/), qr/ev=app\.stderr .*none\.cgi.*chmod \+x/, '... says what to do';
is $srv->fetch('/absent.cgi')->{status}, 404, 'a script that does not exist';

my $body = join '', map { "line $_\n" } 1 .. 2000;
my $got = parse($srv->request("POST /echo.pl HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body"));
is $got->{status}, 200, 'a program reads a body';
ok $got->{body} eq $body, '... and sends it back';

done_testing;
