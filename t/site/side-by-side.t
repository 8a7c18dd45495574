#!/usr/bin/perl
# One configuration of lighttpd 1.4, unchanged, on lighttpd and on accel-server: the same requests, and the same answers.  A row of
# @differs tells where two answers differ, and why.  The test fails when a row is not true any more.  With TEST_HTTP=2 the requests are
# those of HTTP/2.

use v5.36;
use File::Path qw(make_path);
use File::Temp ();
use FindBin ();
use IO::Uncompress::Gunzip ();
use MIME::Base64 qw(encode_base64);
use POSIX ();
use Test::More;

use Test::Front ();
use Test::Http ();
use Accel::Peer ();
use Test::Util qw(eventually need_program put slurp);

need_program('lighttpd', 'lighttpd');
need_program('htpasswd', 'apache2-utils');
my $fpm = Test::Util::find_program('php-fpm8.2') // need_program('php-fpm', 'php-fpm');

# ---------------------------------------------------------------- the site

my $dir = File::Temp->newdir('side-by-side-XXXXXX', TMPDIR => 1);
chmod 0755, $dir;
my $then = 1_700_000_000;
sub file {
	my ($name, $bytes, $mode) = @_;
	my ($folder) = "$dir/$name" =~ m{(.*)/};
	make_path($folder);
	put("$dir/$name", $bytes);
	chmod $mode, "$dir/$name" if $mode;
	utime $then, $then, "$dir/$name";
}
my $show = '<?php header("Content-Type: text/plain; charset=utf-8"); header("X-App: 1");
foreach (["REQUEST_METHOD", "REQUEST_URI", "QUERY_STRING", "SCRIPT_NAME", "SCRIPT_FILENAME", "PATH_INFO", "DOCUMENT_ROOT", "REMOTE_USER", "AUTH_TYPE", "STAGE",
"REDIRECT_STATUS", "REDIRECT_URI", "SERVER_NAME", "HTTP_HOST", "HTTPS", "HTTP_PROXY", "CONTENT_LENGTH"] as $k) echo "$k=", isset($_SERVER[$k]) ? $_SERVER[$k] : "-", "\n";
ksort($_GET); foreach ($_GET as $k => $v) echo "get $k=$v\n"; echo "body=", file_get_contents("php://input"), "\n"; ?>';
my $text = join '', map { "Line $_ of a page that is long enough to be compressed.\n" } 1 .. 200;
file('www/index.html', "<html>front</html>\n");
file('www/page.html', "<html>$text</html>\n");
file('www/a.txt', $text);
file('www/small.txt', "hi\n");
file('www/empty.txt', '');
file('www/data.bin', join '', map { chr($_ % 256) } 0 .. 9999);
file('www/archive.tar.gz', 'not really');
file('www/pic.svg', "<svg>$text</svg>");
file('www/a b+c%d.txt', "odd name\n");
file("www/\xc3\xa4.txt", "umlaut\n");
file('www/backup.txt~', 'secret');
file('www/config.inc', 'secret');
file('www/old.bak', 'secret');
file('www/private/key.txt', 'secret');
file('www/.git/config', 'secret');
file('www/static/app.css', "body{}\n" x 100);
file('www/static/app.js', "x();\n" x 100);
file('www/sub/index.html', "sub\n");
file('www/noindex/x.txt', "x\n");
file('www/info.php', $show);
file('www/phpdir/index.php', $show);
file('www/status.php', '<?php http_response_code((int)$_GET["s"]); header("Content-Type: text/plain"); echo "status\n"; ?>');
file('www/redirect.php', '<?php header("Location: /a.txt"); ?>');
file('www/cookie.php', '<?php header("Content-Type: text/plain"); header("Set-Cookie: a=1"); header("Set-Cookie: b=2", false); echo "c\n"; ?>');
file('www/admin/index.html', "admin\n");
file('www/admin/who.php', $show);
file('www/members/list.html', "members\n");
file('www/membership.txt', "open?\n");
file("www/pub/$_", "$_\n" x 10) for 'one.txt', 'two.html', 'a&b <c>.txt', '.hidden', 'sub/deep.txt';
file('www/pub/empty/x/y', '');
file('icons/red.png', "\x89PNG red");
file('icons/index.html', "icons\n");
file('documentation/manual.txt', "manual\n");
file('documentation/index.html', "docs\n");
file('cgi/hello', "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\nX-Cgi: yes\\r\\n\\r\\n'\necho \"\$REQUEST_METHOD \$SCRIPT_NAME \$PATH_INFO \$QUERY_STRING \$STAGE\"\ncat\n", 0755);
file('cgi/status', "#!/bin/sh\nprintf 'Status: 404 Not Here\\r\\nContent-Type: text/plain\\r\\n\\r\\nnone\\n'\n", 0755);
file('cgi/away', "#!/bin/sh\nprintf 'Location: http://example.net/x\\r\\n\\r\\n'\n", 0755);
file('app/index.php', $show);
file('app/robots.txt', "User-agent: *\n");
file('app/assets/site.css', "a{}\n");
file('people/anna/htdocs/index.html', "anna\n");
file('people/bert/htdocs/page.txt', "bert\n");
file('errors/404.html', "<p>custom 404</p>\n");
file('errors/403.html', "<p>custom 403</p>\n");
file('de/index.html', "deutsch\n");
make_path("$dir/tmp", "$dir/sessions");
chmod 01777, "$dir/tmp";
for (['-cbB -C 4', 'alice wonder'], ['-bm', 'bob builder']) {
	my $said = qx{htpasswd $_->[0] '$dir/htpasswd' $_->[1] 2>&1};
	die "htpasswd: $said" if $?;
}
chmod 0644, "$dir/htpasswd";

my $owner = getpwuid $>;
put("$dir/fpm.conf", <<"END");
[global]
error_log = $dir/fpm.log
[test]
user = $owner
listen = $dir/php.sock
pm = static
pm.max_children = 2
END
my $pid = fork // die "fork: $!";
if (!$pid) {
	open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
	open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
	exec 'timeout', '300', $fpm, '-n', '-F', '-R', '-y', "$dir/fpm.conf" or POSIX::_exit(127);
}
END {
	local $?;
	if ($pid) { kill 'TERM', $pid; waitpid $pid, 0 }
}
ok eventually(sub { -S "$dir/php.sock" }), 'php-fpm runs' or die(slurp("$dir/out"));

my $conf = "$FindBin::Bin/side-by-side.conf";
my ($theirs, $ours) = map { Accel::Peer->start($_, root => "$dir/www", file => $conf, env => { RUN => $dir, WHO => $_ }) } $ENV{TWIN} // 'lighttpd', 'accel';
ok !length($ours->said =~ s/^.*server\.start.*\n//mgr), 'accel-server has nothing to say about it' or diag $ours->said;

my @front = Test::Front::wanted('') ? map { Test::Front->start($_->port) } $theirs, $ours : ();
my @port = map { $_->port } @front ? @front : ($theirs, $ours);

# ---------------------------------------------------------------- the requests

my @ask;    # [name, path, { header }, body]
sub ask { my ($path, %h) = @_; my $body = delete $h{body}; my $name = delete $h{name} // $path; push @ask, [$name, $path, \%h, $body] }
sub basic { return 'Basic ' . encode_base64("$_[0]:$_[1]", '') }

# Files: methods, ranges, conditions.
my @files = qw(/ /index.html /page.html /a.txt /small.txt /empty.txt /data.bin /archive.tar.gz /pic.svg /sub/ /sub /noindex/ /noindex /missing /missing/x /a.txt/x
    /a%20b+c%25d.txt /%c3%a4.txt /static/app.css /static/app.js /static/none.css);
for my $path (@files) {
	ask($path);
	ask($path, method => 'HEAD', name => "HEAD $path");
	ask($path, 'Accept-Encoding' => 'gzip', name => "gzip $path");
}
ask('/data.bin', Range => $_, name => "range $_") for 'bytes=0-99', 'bytes=100-', 'bytes=-100', 'bytes=0-0', 'bytes=9999-', 'bytes=10000-', 'bytes=5-4', 'bytes=0-1,5-6', 'bits=0-1', 'bytes=0-20000';
ask('/a.txt', 'If-Modified-Since' => $_, name => "since $_") for 'Tue, 14 Nov 2023 22:13:20 GMT', 'Tue, 14 Nov 2023 22:13:19 GMT', 'Wed, 15 Nov 2023 22:13:20 GMT', 'nonsense';
ask('/a.txt', 'If-None-Match' => $_, name => "none match $_") for '*', '"other"', 'W/"other"';
ask('/a.txt', method => $_, name => "$_ of a file") for qw(POST PUT DELETE OPTIONS PATCH);
ask('/info.php', method => $_, name => "$_ of a script") for qw(PUT DELETE PATCH OPTIONS);

# Hidden.
ask($_) for qw(/backup.txt~ /config.inc /old.bak /private/key.txt /private/ /private /.git/config /.git/none /config%2einc /config.inc/ //config.inc /./config.inc /sub/../config.inc
    /%70rivate/key.txt //private/key.txt /privates /missing.inc /missing~ /../etc/passwd /%2e%2e/etc/passwd /config.inc?x=1 /config.inc%00.txt /a.txt%0d%0aX: /a%zz);
ask($_) for qw(/info.php.bak /info%2ephp /INFO.PHP /info.php/ /info.php/x.txt /info.php%20 /info.php. //info.php);

# Redirects.
ask($_) for qw(/old/ /old/a /old/a/b?c=d /old /blog/2024/title /blog/24/title /blog/2024/a-b /go?to=shop /go /gone /gone?x /old/%41%20b /old/a%2fb /old//x);
ask('/page?x=1', Host => 'www.example.com', name => 'no www');
ask('/', Host => 'www.example.com:8080', name => 'no www with a port');
ask('/a/b?x=y&z', Host => 'moved.example.org', name => 'moved');
ask('/', Host => 'moved.example.org', name => 'moved root');
ask('/a%20b', Host => 'moved.example.org', name => 'moved, encoded');
ask('/', Host => 'WWW.Example.COM', name => 'a host in capitals');

# Elsewhere.
ask($_) for qw(/icons/red.png /icons/ /icons /icons/none.png /icons/../a.txt /icons/%2e%2e/htpasswd /doc/manual.txt /doc /doc/ /doc/none /documents /doc../htpasswd /icons../htpasswd);
ask($_) for qw(/cgi-bin/hello /cgi-bin/hello?a=b /cgi-bin/hello/more/path?q /cgi-bin/status /cgi-bin/away /cgi-bin/none /cgi-bin/ /cgi-bin);
ask('/cgi-bin/hello', method => 'POST', body => 'posted to a program', name => 'POST to a program');
ask('/cgi-bin/hello', method => 'HEAD', name => 'HEAD of a program');

# Passwords.
for my $path (qw(/admin/ /admin/index.html /admin/who.php /admin/none /admin /members/list.html /members/ /membership.txt /members)) {
	ask($path);
	ask($path, Authorization => basic(qw(alice wonder)), name => "alice $path");
	ask($path, Authorization => basic(qw(bob builder)), name => "bob $path");
}
ask('/admin/', Authorization => basic(qw(alice wrong)), name => 'a wrong password');
ask('/admin/', Authorization => 'Basic', name => 'no credentials');
ask('/admin/', Authorization => 'Basic !!!', name => 'bad base64');
ask('/admin/', Authorization => 'Bearer abc', name => 'another scheme');
ask('/admin/', Authorization => 'basic ' . encode_base64('alice:wonder', ''), name => 'scheme in lower case');
ask($_, name => "spelling $_") for qw(//admin/ /%61dmin/ /./admin/ /x/../admin/ /ADMIN/ /admin//index.html);

# PHP.
ask($_) for '/info.php', '/info.php?a=b&c=d', '/info.php/path/info?x', '/phpdir/', '/phpdir', '/phpdir/?x=1', '/none.php', '/status.php?s=404', '/status.php?s=500', '/status.php?s=204',
    '/status.php?s=403', '/redirect.php', '/cookie.php', '/phpdir/index.php', '/info.php?%41=%42', '/info.php?a=1;b=2', '/info.php?';
ask('/info.php', method => 'POST', body => 'a=b', 'Content-Type' => 'text/plain', name => 'POST to PHP');
ask('/info.php', method => 'POST', body => 'x' x 100_000, 'Content-Type' => 'application/octet-stream', name => 'a long POST to PHP');
ask('/phpdir/', method => 'POST', body => 'a=b', 'Content-Type' => 'text/plain', name => 'POST to a directory');
ask('/info.php', method => 'HEAD', name => 'HEAD of PHP');
ask('/info.php', 'Accept-Encoding' => 'gzip', name => 'gzip of PHP');
ask('/info.php', Proxy => 'http://evil/', name => 'httpoxy');

# The front controllers.
for my $host (qw(app shop handler)) {
	ask($_, Host => "$host.example.org", name => "$host $_") for '/', '/robots.txt', '/some/page', '/some/page?x=1&y=2', '/item/17', '/item/17/?c=d', '/cart', '/login', '/assets/site.css', '/assets/none.css',
	    '/index.php', '/index.php/x', '/index.php?direct=1', '/a%20b', '/assets', '/assets/';
	ask('/form', Host => "$host.example.org", method => 'POST', body => 'f=1', 'Content-Type' => 'text/plain', name => "$host POST");
	ask('/some/page', Host => "$host.example.org", method => 'HEAD', name => "$host HEAD");
}

# Virtual hosts, error pages, languages.
ask('/', Host => "$_.people.example.org", name => "host $_") for qw(anna bert none);
ask('/page.txt', Host => 'bert.people.example.org', name => 'a page of bert');
ask('/page.txt', Host => 'BERT.people.example.org', name => 'a page of BERT');
ask('/../bert/htdocs/page.txt', Host => 'anna.people.example.org', name => 'from anna to bert');
ask($_, Host => 'plain.example.org', name => "plain $_") for qw(/none /config.inc /noindex/);
ask('/', Host => 'de.example.org', 'Accept-Language' => $_, name => "language $_") for 'de-DE,de;q=0.9', 'en', '';
ask('/', Host => 'de.example.org', name => 'no language');

# Directories.
ask($_) for qw(/pub/ /pub /pub/sub/ /pub/empty/ /pub/none/ /pub/.hidden), '/pub/a&b%20%3Cc%3E.txt';
ask('/pub/', method => 'HEAD', name => 'HEAD of a directory');

# Heads.
ask('/small.txt', 'X-Long' => 'x' x 7000, name => 'a long field');
ask('/' . 'a' x 3000, name => 'a long path');
ask('/small.txt?' . 'q' x 2000, name => 'a long query');
ask('/small.txt', Host => $_, name => "host '$_'") for 'x:99', '[::1]', 'a b', '', 'x/y', '..', 'x' x 300;
ask('/small.txt', Expect => '100-continue', name => 'Expect without a body');
ask('/small.txt', method => 'BREW', name => 'an unknown method');
cmp_ok scalar @ask, '>=', 300, 'at least 300 requests: ' . @ask;

# ---------------------------------------------------------------- asking

sub reply_of {
	my ($port, $path, $header, $body) = @_;
	my %h = (Host => 'side.example.org', 'User-Agent' => 'side', Connection => 'close', %$header);
	my $method = delete $h{method} // (defined $body ? 'POST' : 'GET');
	my $c = Test::Http::Conn->new($port);
	$c->send(join '', "$method $path HTTP/1.1\r\n", (map { "$_: $h{$_}\r\n" } sort keys %h), defined $body ? 'Content-Length: ' . length($body) . "\r\n" : (), "\r\n", $body // '');
	my $r = Test::Http::parse($c->rest);
	return $r;
}

# What a reply says, in a form that can be compared.
my @fields = qw(location content-type content-range accept-ranges allow www-authenticate cache-control x-content-type-options x-from access-control-allow-origin
    set-cookie x-app x-cgi last-modified content-encoding vary server);
sub essence {
	my ($r, $method) = @_;
	my %e = (status => $r->{status});
	for (@fields) { $e{$_} = $r->{header}{$_} if defined $r->{header}{$_} }
	$e{$_} = 'there' for grep { defined $r->{header}{$_} } qw(etag expires date);
	$e{'content-type'} =~ s/; ?charset=/;charset=/ if $e{'content-type'};
	$e{'content-range'} && $e{'content-type'} && $e{'content-type'} =~ s/boundary=.*/boundary/;
	my $body = $r->{body} // '';
	if (($e{'content-encoding'} // '') eq 'gzip' && length $body) { IO::Uncompress::Gunzip::gunzip(\(my $packed = $body), \$body) }
	$e{length} = length $body;
	$e{body} = $body;
	return \%e;
}

# A listing is compared by its links, an error page by being one.
sub simplify ($e) {
	my $type = $e->{'content-type'} // '';
	if ($e->{body} =~ /<title>Index of/ || ($e->{status} == 200 && $type =~ /html/ && $e->{body} =~ m{href="\.\./"|Parent Directory|<h1>.*pub}i)) {
		my %seen;
		$e->{body} = join "\n", sort grep { !/^(\?|#)/ && !$seen{$_}++ && !m{^\.\./?$} } $e->{body} =~ /href="([^"]*)"/g;
		delete @$e{qw(length content-type etag last-modified accept-ranges cache-control expires vary content-encoding)};
		return;
	}
	if ($e->{status} >= 300 && $e->{body} !~ /custom|REQUEST_METHOD|^status$|^none$/m) {
		delete @$e{qw(body length content-type etag vary content-encoding last-modified accept-ranges cache-control expires)};
	}
}

# Why an answer of accel-server is another one: requests by name, the fields, the reason, and what tells it from a mistake.
my $ours_only = sub { $_[0] eq '(none)' };
my $all = [qw(status body length content-type etag last-modified accept-ranges x-content-type-options x-from vary content-encoding cache-control content-range allow)];
my @differs = (
	[qr//, ['vary'], 'a reply that could be compressed says so to caches even when it is not (RFC 9110, 12.5.5)', sub { $_[0] eq '(none)' && $_[1] eq 'Accept-Encoding' }],
	[qr//, ['accept-ranges'], 'ranges of what an application makes are not promised', sub { $_[0] eq 'bytes' && $_[1] eq '(none)' }],
	[qr//, ['env CONTENT_LENGTH'], 'a request without a body has no length (RFC 3875, 4.1.2)', sub { "@_" eq '0 -' }],
	[qr/phpdir|POST to a directory|^(?:shop|handler|app) \/$/, ['env REDIRECT_URI'], 'REDIRECT_URI names the index file that answers', sub { $_[0] eq '-' && $_[1] =~ /index\.php/ }],
	[qr/%2e|^\/\/|%41=%42/, ['env REDIRECT_URI'], 'another spelling of a URL is not a redirect', sub { $_[1] eq '-' }],
	['/info.php?%41=%42', ['env QUERY_STRING'], 'a query reaches applications as the client wrote it', sub { $_[1] eq '%41=%42' }],
	['/old/a%2fb', ['location'], 'an encoded slash stays encoded in the target of a redirect', sub { $_[1] eq '/new/a%2Fb' }],
	[qr//, [qw(x-content-type-options x-from)], 'headers of setenv are on each reply, also on redirects and refusals', $ours_only],
	[qr/^(?:POST|PUT|DELETE|PATCH) of a file|^shop POST|^an unknown method/, [qw(status allow)], 'files have GET and HEAD: 405 with Allow (RFC 9110, 15.5.6), not 404, 411 or 501', sub { $_[1] =~ /405|GET, HEAD, OPTIONS/ }],
	['OPTIONS of a file', ['allow'], 'files have no POST', sub { $_[1] eq 'GET, HEAD, OPTIONS' }],
	[qr{etc/passwd$|^from anna to bert|^/a%zz}, ['status'], 'a path above the root, or that cannot be decoded, is malformed: 400, not 404', sub { "@_" eq '404 400' }],
	[qr{^(?:HEAD |gzip )?/a\.txt/x}, $all, 'a file has one URL: with more after its name it is not found', sub { 1 }],
	['HEAD of a directory', ['etag'], 'a listing has an entity tag', $ours_only],
	['range bytes=10000-', ['content-range'], 'a refused range comes with the size (RFC 9110, 15.5.17)', $ours_only],
	['range bytes=5-4', $all, 'a malformed range is ignored (RFC 9110, 14.1.1)', sub { 1 }],
	['range bytes=0-1,5-6', $all, 'two ranges are two parts; lighttpd joins what is near', sub { 1 }],
	["host ''", $all, 'an empty Host is valid (RFC 9112, 3.2): the default host answers', sub { 1 }],
	@front ? [qr{^host '(?:a b||x/y)'}, [qw(date server)], 'a malformed :authority ends its stream (RFC 9113, 8.1.1)', sub { $_[1] eq '(none)' }] : (),
	[qr/^host 'x{300}/, $all, 'a name of DNS has at most 255 bytes: a longer Host is malformed', sub { 1 }],
);

sub known ($name, $field, @values) {
	for my $d (@differs) {
		my ($what, $fields, $why, $so) = @$d;
		next unless ref $what ? $name =~ $what : $name eq $what;
		next unless grep { $_ eq $field } @$fields;
		next unless $so->(@values);
		$d->[4]++;
		return $why;
	}
	return;
}

# An application that shows its variables: each is a field.
sub variables ($e) {
	return unless ($e->{body} // '') =~ /^REQUEST_METHOD=/;
	for (split /\n/, $e->{body}) { $e->{"env $1"} = $2 if /^([A-Z_]+)=(.*)/ }
	$e->{body} =~ s/^[A-Z_]+=.*\n//mg;
	delete $e->{length};
}

# Of two bodies: the lines that the other has not.
sub only {
	my @line = map { [split /\n/, $_] } @_;
	my @has = map { +{ map { $_ => 1 } @$_ } } @line;
	return map { my $other = $has[1 - $_]; join "\n", grep { !$other->{$_} } @{ $line[$_] } } 0, 1;
}

sub readable ($text) {
	$text =~ s/\n/|/g;
	$text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
	return length $text > 300 ? substr($text, 0, 300) . '...' : $text;
}

my ($same, %why) = (0);
for my $a (@ask) {
	my ($name, $path, $header, $body) = @$a;
	my ($t, $o) = map { essence(reply_of($_, $path, { %$header }, $body)) } @port;
	for ($t, $o) { simplify($_); variables($_) }
	my %all = (%$t, %$o);
	my @bad;
	for my $field (sort keys %all) {
		my ($x, $y) = map { $_ // '(none)' } $t->{$field}, $o->{$field};
		next if $x eq $y;
		my $why = known($name, $field, $x, $y);
		if (defined $why) { $why{$why}{$name} = 1; next }
		push @bad, sprintf '%s: lighttpd %s, accel-server %s', $field, map { readable($_) } $field eq 'body' ? only($x, $y) : ($x, $y);
	}
	$same++ unless @bad;
	@bad ? fail($name) : pass($name);
	diag "$name: $_" for @bad;
}
for my $why (sort keys %why) { note scalar(keys %{ $why{$why} }), ' differ: ', $why, ': ', join ', ', map { length > 40 ? substr($_, 0, 40) . '...' : $_ } sort keys %{ $why{$why} } }
ok $_->[4], "still so: $_->[2]" for grep { !@front || $_->[0] ne "host ''" } @differs;
note "$same of ", scalar @ask, ' requests are answered alike';

# ---------------------------------------------------------------- the access logs

$_->stop for $theirs, $ours;
my ($log_t, $log_o) = map { [split /\n/, slurp("$dir/access-$_->{kind}.log")] } $theirs, $ours;
# Over HTTP/2 lighttpd has a line for each preface, too, and an unknown method without its name.
my %of;
for ([1, grep { !/"PRI / } @$log_t], [-1, @$log_o]) {
	my ($n, @line) = @$_;
	$of{$_} += $n for map { (split /"/)[1] =~ s/^BREW \S+/ /r } @line;
}
my $ended = @front ? 'GET  HTTP/2.0 1; GET /small.txt HTTP/2.0 2' : '';  # malformed, above
is join('; ', map { "$_ $of{$_}" } grep { $of{$_} } sort keys %of), $ended, 'the access logs have the same requests';
done_testing;
