#!/usr/bin/perl
# One configuration with cgi.assign on lighttpd and on accel-server: programs get the same variables, and clients the same
# replies.  Where they differ, the table says why, and the test fails when that is no longer so.

use v5.36;
use Test::More;

use Test::Http qw(parse request_head);
use Accel::Peer;
use Test::Util qw(need_program put);

need_program('lighttpd', 'lighttpd');
my $dir = Test::Util::temp_tree();
mkdir "$dir/$_" or die for qw(www www/sub www/forms bin);

sub script { my ($name, $text, $mode) = @_; put("$dir/$name", $text); chmod $mode // 0755, "$dir/$name"; return }
sub says { my ($name, $reply) = @_; return script($name, "#!/bin/sh\nprintf '" . join('', map { sprintf '\\%03o', ord } split //, $reply) . "'\n") }

my $env = "printf 'Content-Type: text/plain\\n\\n'\nenv\necho \"dir=\$(pwd)\"\necho \"body=\$(cat)\"\n";
script('www/env.cgi', "#!/bin/sh\n$env");
script('www/env.sh', $env, 0644);
script('www/env.pl', 'print "Content-Type: text/plain\n\n", map({ "$_=$ENV{$_}\n" } sort keys %ENV), "body=", <STDIN>', 0644);
script('www/sub/index.cgi', "#!/bin/sh\n$env");
script('bin/prog', "#!/bin/sh\n$env");
script('www/nox.cgi', "#!/bin/sh\n$env", 0644);
script('www/forms/strict.sh', $env, 0644);
put("$dir/www/t.txt", "text\n");
says("www/$_->[0].cgi", $_->[1]) for (
	[status => "Status: 404 Odd\nX-A: b\n\nbody"], [nph => "HTTP/1.1 410 Gone\r\nX-A: c\r\n\r\nbody"],
	[far => "Location: http://example.org/\n\n"], [here => "Location: /t.txt\n\n"], [moved => "Status: 301\nLocation: /t.txt\n\n"],
	[typed => "Location: /t.txt\nContent-Type: a/b\n\nbody"], [asks => "Location: /env.cgi/i?x=1\n\n"],
	[file => "X-Sendfile: $dir/www/t.txt\nContent-Type: a/b\n\n"], [empty => ''], [text => "no head at all\n"], [crlf => "Content-Type: a/b\r\nX-A: 1\r\n\r\nbody"],
	[twice => "Set-Cookie: a\nSet-Cookie: b\n\nbody"],
);
put("$dir/conf", <<'END');
server.modules = ( "mod_alias", "mod_setenv", "mod_cgi" )
server.bind = "127.0.0.1"
server.port = env.PORT
server.document-root = env.RUN + "/www"
server.errorlog = env.RUN + "/error." + env.WHO
index-file.names = ( "index.cgi" )
mimetype.assign = ( ".txt" => "text/plain", "" => "application/octet-stream" )
cgi.assign = ( ".cgi" => "", ".pl" => "/usr/bin/perl", ".sh" => "/bin/sh" )
cgi.local-redir = "enable"
cgi.x-sendfile = "enable"
cgi.limits = ( "read-timeout" => 60, "write-timeout" => 60, "tcp-fin-propagate" => "SIGTERM" )
setenv.add-environment = ( "STAGE" => "test" )
# 10-cgi.conf of Debian
$HTTP["url"] =~ "^/cgi-bin/" {
	cgi.assign = ( "" => "" )
	alias.url += ( "/cgi-bin/" => env.RUN + "/bin/" )
}
$HTTP["url"] =~ "^/forms/" { cgi.execute-x-only = "enable" }
END
my ($theirs, $ours) = map { Accel::Peer->start($_, root => "$dir/www", file => "$dir/conf", env => { RUN => "$dir", WHO => $_ }) } 'lighttpd', 'accel';

sub ask {
	my ($peer, $bytes) = @_;
	my $c = Test::Http::Conn->new($peer->port);
	$c->send($bytes);
	return parse($c->rest);
}

# ---------------------------------------------------------------- variables

# Why a variable may differ.
my %differs = (
	SERVER_SOFTWARE => 'another server', SERVER_PORT => 'another port', REMOTE_PORT => 'another connection',
	CONTENT_LENGTH => 'RFC 3875, 4.1.2: only if there is a body',
	REDIRECT_URI => 'lighttpd: the path as it spells it; here: the name of an index file',
	HTTP_CONNECTION => 'of the connection, not of the request', HTTP_CONTENT_LENGTH => 'it is CONTENT_LENGTH',
	HTTP_X_REQUEST_ID => 'lighttpd gives requests no id',
	HTTP_X_FORWARDED_FOR => 'only from a proxy that extforward.forwarder names',
);
# A shell sets these.
my %of_shell = map { $_ => 1 } qw(PWD OLDPWD SHLVL _ LS_COLORS);

sub variables {
	my ($r) = @_;
	my $v = { map { /^(\w+)=(.*)$/ && !$of_shell{$1} ? ($1, $2) : () } split /\n/, $r->{body} };
	$v->{DOCUMENT_ROOT} =~ s{(?<=.)/\z}{} if $v->{DOCUMENT_ROOT};      # lighttpd keeps the slash of an alias
	return $v;
}

my %header = (Host => 'www.example.org:8080', 'X-Own' => 'a, b', Cookie => 'c=d', 'User-Agent' => 't', Referer => 'http://r/', Authorization => 'Basic eDp5',
	Proxy => 'http://evil/', 'X-Forwarded-For' => '192.0.2.7');
for my $try (
	['GET', '/env.cgi'], ['GET', '/env.cgi/a/b?x=1&y'], ['GET', '/env.sh/'], ['GET', '/env.pl/%61/b%20c?d'], ['HEAD', '/env.cgi'],
	['GET', '/sub/?q'], ['GET', '/cgi-bin/prog'], ['GET', '/cgi-bin/prog/info?x'], ['GET', '/env.cgi//a'],
	['POST', '/env.pl', 'a=b'], ['PUT', '/env.cgi/x', 'put'], ['DELETE', '/env.pl'],
) {
	my ($method, $path, $body) = @$try;
	my %with = defined $body ? (%header, 'Content-Length' => length $body, 'Content-Type' => 'a/b') : %header;
	my ($x, $y) = map { ask($_, request_head($method, $path, %with) . ($body // '')) } $theirs, $ours;
	is $y->{status}, $x->{status}, "$method $path: status";
	is $y->{header}{'content-type'}, $x->{header}{'content-type'}, '... type';
	my ($want, $got) = (variables($x), variables($y));
	my @all = sort keys %{ { %$want, %$got } };
	is_deeply [grep { ($want->{$_} // '-') ne ($got->{$_} // '-') && !$differs{$_} } @all], [], '... variables'
	    or diag map { "$_: lighttpd @{[ $want->{$_} // '-' ]}, accel-server @{[ $got->{$_} // '-' ]}\n" } grep { ($want->{$_} // '-') ne ($got->{$_} // '-') } @all;
}

# ---------------------------------------------------------------- replies

# [path, status and body here if they differ, why]
for my $try (
	['/status.cgi'], ['/nph.cgi'], ['/far.cgi'], ['/here.cgi'], ['/moved.cgi'], ['/typed.cgi'], ['/file.cgi'], ['/crlf.cgi'], ['/twice.cgi'],
	['/t.txt'], ['/absent.cgi'], ['/env.CGI'],
	['/empty.cgi', 502, 'what is not a reply of a program is not sent, and 500 is the server\'s'],
	['/text.cgi', 502, 'the same: lighttpd sends it as a body'],
	['/nox.cgi', 403, 'the server may not run it; lighttpd: 500'],
	['/forms/strict.sh', 403, 'lighttpd sends its source'],
) {
	my ($path, $status, $why) = @$try;
	my ($x, $y) = map { ask($_, request_head('GET', $path)) } $theirs, $ours;
	if ($why) {
		isnt $x->{status}, $status, "$path: lighttpd answers otherwise";
		is $y->{status}, $status, "... here: $why";
		next;
	}
	is $y->{status}, $x->{status}, "$path: status";
	is $y->{header}{$_}, $x->{header}{$_}, "... $_" for grep { defined $x->{header}{$_} || defined $y->{header}{$_} } qw(location x-a set-cookie x-sendfile);
	is $y->{body}, $x->{body}, '... body' if $x->{status} < 400 || $path =~ /^.(status|nph)/;
}
is variables(ask($ours, request_head('GET', '/asks.cgi')))->{QUERY_STRING}, variables(ask($theirs, request_head('GET', '/asks.cgi')))->{QUERY_STRING}, 'a local redirect to a program';

$_->stop for $theirs, $ours;
done_testing;
