#!/usr/bin/perl
# cgi.assign: programs that the helper process runs (CGI/1.1, RFC 3875): what they get, what their replies become, and that
# their source never leaves.

use v5.36;
use Test::More;

use Test::Http qw(parse req request_head);
use Test::Server;
use Test::Util qw(slurp);

sub script ($srv, $name, $text, $mode = undef) {
	$srv->write($name, $text);
	chmod $mode // 0755, $srv->path($name) or die "$name: $!";
	return;
}

# A program in sh that sends these bytes.
sub says ($srv, $name, $reply) {
	my $quoted = join '', map { sprintf '\\%03o', ord } split //, $reply;
	script($srv, $name, "#!/bin/sh\nprintf '$quoted'\n");
	return;
}

sub post {
	my ($srv, $path, $body, @lines) = @_;
	return parse($srv->request(join "\r\n", "POST $path HTTP/1.1", 'Host: x', 'Connection: close', @lines, 'Content-Length: ' . length $body, '', $body));
}

my $tree = Test::Util::temp_tree();
mkdir "$tree/elsewhere" or die;
my $srv = Test::Server->start(dir => $tree, conf => <<'END');
server.document-root = "@DIR@"
index-file.names = ( "index.cgi", "index.html" )
cgi.assign = ( ".cgi" => "", ".pl" => "/usr/bin/perl", ".sh" => "/bin/sh", ".gone" => "/nowhere/interpreter" )
cgi.x-sendfile = "enable"
cgi.local-redir = "enable"
alias.url = ( "/bin/" => "@DIR@/elsewhere/" )
setenv.add-environment = ( "FROM_SETENV" => "yes" )
$HTTP["url"] =~ "^/(bin|all)/" { cgi.assign = ( "" => "" ) }
$HTTP["url"] =~ "^/strict/" { cgi.execute-x-only = "enable" }
$HTTP["url"] =~ "^/plain/" {
	cgi.local-redir = "disable"
	cgi.x-sendfile = "disable"
}
$HTTP["url"] =~ "^/named/" { cgi.x-sendfile-docroot = ( "@DIR@/named" ) }
END
my $dir = $srv->dir;
my $env = <<'END';
printf 'Content-Type: text/plain\n\n'
env
pwd
END
script($srv, 'env.cgi', "#!/bin/sh\n$env");
script($srv, 'env.sh', $env, 0644);
script($srv, 'echo.pl', 'binmode STDIN; print "Content-Type: text/plain\n\n"; print while <STDIN>', 0644);
script($srv, 'dir/index.cgi', "#!/bin/sh\n$env");
script($srv, 'none.cgi', "#!/bin/sh\n# SOURCE\n", 0644);
script($srv, 'strict/a.sh', "#!/bin/sh\n# SOURCE\n$env", 0644);
script($srv, 'nothing.cgi', "# SOURCE\n");
script($srv, 'crlf.cgi', "#!/bin/sh\r\n# SOURCE\n");
script($srv, 'a.gone', '# SOURCE', 0644);
$srv->write('t.txt', "text\n");
$srv->write('named/t.txt', "named\n");

sub env_of { my ($body) = @_; return { map { /^(\w+)=(.*)$/ ? ($1, $2) : () } split /\n/, $body } }

# ---------------------------------------------------------------- the environment

for my $name ('env.cgi', 'env.sh') {
	my $got = $srv->fetch("/$name/some/info?a=b&c", 'X-Own' => 'yes', Proxy => 'evil', Authorization => 'Basic eDp5', 'X-Forwarded-For' => '192.0.2.1');
	is $got->{status}, 200, "$name runs";
	my $e = env_of($got->{body});
	my %want = (
		GATEWAY_INTERFACE => 'CGI/1.1', REQUEST_METHOD => 'GET', SCRIPT_NAME => "/$name", SCRIPT_FILENAME => "$dir/$name",
		PATH_INFO => '/some/info', PATH_TRANSLATED => "$dir/some/info", QUERY_STRING => 'a=b&c', REDIRECT_STATUS => 200,
		REQUEST_URI => "/$name/some/info?a=b&c", DOCUMENT_ROOT => "$dir", SERVER_PORT => $srv->port, REMOTE_ADDR => '127.0.0.1',
		HTTP_X_OWN => 'yes', SERVER_PROTOCOL => 'HTTP/1.1', REQUEST_SCHEME => 'http', HTTP_AUTHORIZATION => 'Basic eDp5', FROM_SETENV => 'yes',
	);
	is $e->{$_}, $want{$_}, "$name: $_" for sort keys %want;
	is_deeply [grep { /^accel|^LISTEN|^B$|^HTTP_PROXY$|FORWARDED/ } keys %$e], [], "$name: nothing else";
	like $got->{body}, qr/^\Q$dir\E$/m, "$name: in its directory";
}
like $srv->fetch('/dir/')->{body}, qr{^SCRIPT_NAME=/dir/index\.cgi$}m, 'an index file';
like $srv->fetch('/env.cgi')->{body}, qr{\A(?!.*^PATH_INFO=[^\n]).*^SCRIPT_NAME=/env\.cgi$}ms, 'without PATH_INFO';
like $srv->head('/env.cgi'), qr{\AHTTP/1\.1 200 .*\r\n\r\n\z}s, 'HEAD';

# ---------------------------------------------------------------- bodies

my $body = join '', map { pack 'N', $_ * 2654435761 % 2**32 } 1 .. 2_621_440;
is length $body, 10 << 20, '10 MiB';
my $got = post($srv, '/echo.pl', $body);
ok $got->{status} == 200 && $got->{body} eq $body, '... go to a program and come back';
my $chunked = join '', map { sprintf("%x\r\n", length) . "$_\r\n" } unpack('(a9000)*', substr $body, 0, 100_000), '';
$got = parse($srv->request("POST /echo.pl HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n$chunked"));
ok $got->{body} eq substr($body, 0, 100_000), 'a chunked body';
is env_of(post($srv, '/env.cgi', 'x' x 777)->{body})->{CONTENT_LENGTH}, 777, 'a program need not read its body';
script($srv, 'large.pl', 'print "Content-Type: text/plain\n\n", "x" x (4 << 20)', 0644);
is length post($srv, '/large.pl', 'y' x (1 << 20))->{body}, 4 << 20, '... and may send more than it reads';

# ---------------------------------------------------------------- replies

# [name, what the program sends, status, headers, body]
my @replies = (
	[lf => "Content-Type: a/b\nX-A: c\n\nbody", 200, { 'content-type' => 'a/b', 'x-a' => 'c' }, 'body'],
	[ends => "Content-Type: a/b\r\n\r\nbody", 200, { 'content-type' => 'a/b' }, 'body'],
	[status => "Status: 404 Odd\n\nbody", 404, {}, 'body'],
	[nph => "HTTP/1.1 410 Gone: away\r\nX-A: c\r\n\r\nbody", 410, { 'x-a' => 'c' }, 'body'],
	[length => "Content-Length: 4\n\nbody", 200, { 'content-length' => 4 }, 'body'],
	[redirect => "Location: http://example.org/\n\n", 302, { location => 'http://example.org/' }, ''],
	[moved => "Status: 301\nLocation: /t.txt\n\n", 301, { location => '/t.txt' }, ''],
	[typed => "Location: /t.txt\nContent-Type: a/b\n\nbody", 302, { location => '/t.txt' }, 'body'],
	[hosts => "Location: //example.org/t.txt\n\n", 302, { location => '//example.org/t.txt' }, ''],
	[here => "Location: /t.txt\n\n", 200, { location => undef }, "text\n"],
	[program => "Location: /env.cgi/info?x=1\n\n", 200, {}, qr{^QUERY_STRING=x=1$}m],
	[loop => "Location: /loop.cgi\n\n", 500, {}, qr/./],
	[climbs => "Location: /../../etc/passwd\n\n", 502, {}, qr/./],
	[silent => '', 502, {}, qr/./],
	[text => "no head at all\n", 502, {}, qr/./],
	[head => "Content-Type: a/b\n", 502, {}, qr/./],
	[splits => "X-A: b\rSet-Cookie: x\n\n", 502, {}, qr/./],
	[file => "X-Sendfile: $dir/t.txt\nContent-Type: a/b\n\nno", 200, { 'content-type' => 'a/b', 'x-sendfile' => undef }, "text\n"],
	[own => "X-Sendfile: $dir/own.cgi\n\n", 403, {}, qr/./],
	[out => "X-Sendfile: /etc/passwd\n\n", 403, {}, qr/./],
	['plain/here' => "Location: /t.txt\n\n", 302, { location => '/t.txt' }, ''],
	['plain/file' => "X-Sendfile: $dir/t.txt\n\nown", 200, { 'x-sendfile' => undef }, 'own'],
	['named/file' => "X-Sendfile: $dir/named/t.txt\n\n", 200, {}, "named\n"],
	['named/out' => "X-Sendfile: $dir/t.txt\n\n", 403, {}, qr/./],
);
for my $try (@replies) {
	my ($name, $says, $status, $header, $want) = @$try;
	says($srv, "$name.cgi", $says);
	my $r = $srv->fetch("/$name.cgi");
	is $r->{status}, $status, "$name: status";
	is $r->{header}{$_}, $header->{$_}, "$name: $_" for sort keys %$header;
	ref $want ? like($r->{body}, $want, "$name: body") : is($r->{body}, $want, "$name: body");
}
like post($srv, '/program.cgi', 'x' x 5000)->{body}, qr/^REQUEST_METHOD=GET$(?!.*CONTENT_LENGTH)/ms, 'a local redirect of a POST is a GET';
$srv->write('elsewhere/prog', "#!/bin/sh\n$env");
chmod 0755, $srv->path('elsewhere/prog');
$got = $srv->fetch('/bin/prog/x');
is env_of($got->{body})->{SCRIPT_FILENAME}, "$dir/elsewhere/prog", 'an alias, as in 10-cgi.conf of Debian';
is env_of($got->{body})->{SCRIPT_NAME}, '/bin/prog', '... with its name in the URL';

# ---------------------------------------------------------------- programs that do not run

# [path, status, line of the log]
for my $try (
	['/none.cgi', 403, qr/none\.cgi.*chmod \+x/],
	['/strict/a.sh', 403, qr/strict.a\.sh.*execute-x-only/],
	['/nothing.cgi', 500, qr/nothing\.cgi.*no #! line/],
	['/crlf.cgi', 500, qr/crlf\.cgi.*carriage return/],
	['/a.gone', 500, qr/a\.gone.*correct cgi\.assign/],
	['/absent.cgi', 404],
	['/dir', 301],
	['/elsewhere/', 403],
) {
	my ($path, $status, $line) = @$try;
	my $r = $srv->fetch($path);
	is $r->{status}, $status, "$path: $status";
	unlike $r->{raw}, qr/SOURCE/, '... without its source';
	like $srv->wait_log($line), qr/ev=app\.stderr .*$line/, '... and a line that says what to do' if $line;
}

# ---------------------------------------------------------------- no way to a source

script($srv, "src.$_", "#!/bin/sh\n# SOURCE\nprintf 'Content-Type: text/plain\\n\\nran'\n") for qw(cgi CGI sh);
script($srv, 'src.pl', "# SOURCE\nprint qq{Content-Type: text/plain\\n\\nran}", 0644);
script($srv, 'all/src', "#!/bin/sh\n# SOURCE\nprintf 'Content-Type: text/plain\\n\\nran'\n");
says($srv, 'all/names', "X-Sendfile: $dir/all/src\n\n");
for my $path ('/src.cgi', '/src.pl', '/src.sh', '/src%2ecgi', '/src.%63gi', '//src.cgi', '/./src.cgi', '/x/../src.cgi', '/src.cgi/', '/src.cgi//x', '/src.cgi/.',
	'/src.CGI', '/SRC.CGI', '/src.cgi%20', '/src.cgi.', '/src.cgi%00', '/src.cgi%00.txt', '/src.cgi;x', '/src.cgi?x', '/src.cgi%2f', '/all/src', '/all/src/x',
	'/all//src', '/ALL/src', '/all/names', '/bin/../src.cgi', '/bin/..%2fsrc.cgi') {
	for my $method (qw(GET HEAD POST)) {
		my $raw = $srv->request(request_head($method, $path, Range => 'bytes=0-100'));
		unlike $raw, qr/SOURCE/, "$method $path: no source";
		like $raw, qr/^HTTP\S+ [245]/, '... and a reply';
	}
}
like $srv->fetch('/src.cgi')->{body}, qr/\Aran\z/, 'but it runs';

# ---------------------------------------------------------------- mistakes

my $program = Test::Util::program('accel-server');
sub start_says ($lines) {
	my $file = $srv->run . '/x.conf';
	open my $fh, '>', $file or die;
	print $fh qq{server.document-root = "$dir"\nserver.port = 1\n$lines\n};
	close $fh or die;
	return scalar qx{$program -tt -f $file 2>&1};
}
for my $try (
	['cgi.assign = ( "/cgi-bin/" => "" )', qr{cgi\.assign.*"/cgi-bin/".*write \$HTTP\["url"\]}],
	['cgi.assign = ( ".pl" => "perl" )', qr{cgi\.assign.*"\.pl" => "perl".*path of the interpreter}],
	['cgi.limits = ( "read-timeout" => "x" )', qr{cgi\.limits.*expected seconds}],
	['cgi.limits = ( "reads" => 1 )', qr{cgi\.limits.*expected "read-timeout"}],
	['cgi.limits = ( "tcp-fin-propagate" => "SIGFOO" )', qr{cgi\.limits.*expected a signal}],
	['cgi.upgrade = "enable"', qr{cgi\.upgrade cannot be used here}],
	['cgi.max-programs = 0', qr{cgi\.max-programs.*from 1 to 1024}],
) {
	my ($line, $want) = @$try;
	like start_says($line), $want, $line;
}

done_testing;
