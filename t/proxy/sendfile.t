#!/usr/bin/perl
# Files that an application names in its reply: each control header, allowed and not, in each protocol; which names are
# refused; files that are sent and removed; hints about the reply.

use v5.36;
use File::Path qw(make_path);
use FindBin ();
use IO::Socket::INET ();
use POSIX ();
use Test::More;

use Test::App;
use Test::Server;
use Test::Util qw(eventually put);

my ($srv, $tmp);

# The reply to a head with these lines.
sub ask ($lines, %header) {
	my $method = delete $header{method} // 'GET';
	my $query = join '|', @$lines;
	$query =~ s/([^A-Za-z0-9_.~|-])/sprintf '%%%02x', ord $1/ge;
	my $more = join '', map { "$_: $header{$_}\r\n" } sort keys %header;
	my $r = Test::Http::parse($srv->request("$method /app/head?$query HTTP/1.1\r\nHost: x\r\n${more}Connection: close\r\n\r\n"));
	unlike $r->{head}, qr/^x-(sendfile|lighttpd-|accel-|litespeed-|reproxy-|rewrite-)/mi, "no control header passes: $lines->[0]";
	return $r;
}

sub is_reply {
	my ($r, $want, $name) = @_;
	return is "$r->{status} $r->{body}", $want, $name;
}

sub conf ($app, $protocol, %set) {
	return qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nmimetype.assign = ( ".txt" => "text/plain", ".php" => "text/x-php" )\n}
	    . Test::Server::proxy_block('^/app', 'unix:' . $app->socket, protocol => $protocol, 'max-pool-size' => 2,
		'max-keep-alive-requests' => 100, %set);
}

sub start ($app, $protocol, %set) {
	undef $srv;
	$tmp = File::Temp->newdir('accel-temp-XXXXXX', TMPDIR => 1);
	$srv = Test::Server->start(conf => conf($app, $protocol, %set{ grep { $_ ne 'tempdir' } keys %set },
		$set{tempdir} ? ('x-sendfile-tempdir' => qq{( "$tmp" )}) : ()));
	$srv->write('files/f.txt', 'the file');
	$srv->write('files/a b%.txt', 'escaped');
	$srv->write('files/long.txt', join '', 'a' .. 'z');
	return $srv->dir . '/files';
}

sub temp {
	my ($name, $bytes) = @_;
	put("$tmp/$name", $bytes // 'temporary');
	return "$tmp/$name";
}

# [ lines, reply if it is allowed ]; otherwise the body of the application is sent.
sub table ($dir) {
	return (
		["X-Sendfile: $dir/f.txt", '200 the file'],
		["x-SENDFILE: $dir/a%20b%25.txt", '200 escaped'],
		["X-LIGHTTPD-send-file: $dir/f.txt", '200 the file'],
		["X-Sendfile2: $dir/long.txt 0-2", '200 abc'],
		["X-Sendfile2: $dir/long.txt 23-, $dir/a%20b%25.txt 0-1,$dir/long.txt 3-3", '200 xyzesd'],
		['X-Accel-Redirect: /files/f.txt', '200 the file'],
		['X-Accel-Redirect: /files/./a%20b%25.txt?q=1', '200 escaped'],
		['X-LiteSpeed-Location: /files/f.txt', '200 the file'],
	);
}

# Those that the server knows.
my @protocols = Test::Util::slurp("$FindBin::Bin/../../wire/codec/codecs.def") =~ /^P\((\w+)\)/mg;
cmp_ok scalar @protocols, '>=', 2, 'protocols';
for my $protocol (@protocols) {
	my $app = Test::App->start(protocol => $protocol);
	subtest "$protocol: each header, allowed" => sub {
		my $dir = start($app, $protocol, 'allow-x-sendfile' => 'enable', tempdir => 1);
		for my $row (table($dir)) {
			my $r = ask([$row->[0], 'X-Kept: 1']);
			is_reply($r, $row->[1], $row->[0]);
			is $r->{header}{'x-kept'}, 1, 'with other headers';
			$r = ask([$row->[0]], method => 'HEAD');
			is "$r->{status} $r->{body} " . $r->{header}{'content-length'}, '200  ' . (length($row->[1]) - 4), '... to HEAD';
		}
		for my $name (qw(X-LIGHTTPD-send-tempfile X-LIGHTTPD-send-temp-file)) {
			my $file = temp('t.txt');
			my $r = ask(["$name: $file", 'Status: 201 x', 'ETag: "e"'], Range => 'bytes=0-1');
			is_reply($r, '201 temporary', $name);
			is "$r->{header}{'content-type'} $r->{header}{etag}", 'text/plain "e"', 'type of the name, tag of the application';
			ok !-e $file, 'the file is removed';
		}
		ok !-e temp_after(''), 'an empty file, too';
		ask(['X-LIGHTTPD-send-tempfile: ' . temp('h')], method => 'HEAD');
		ok !-e "$tmp/h", 'and after HEAD';
		is_reply(ask(["X-Sendfile: $dir/f.txt", 'X-Accel-Redirect: /files/long.txt']), '200 the file', 'the first row decides');
		$srv->wait_log(qr/ev=control\.dropped .*header=X-Accel-Redirect why="another header/);
	};
	subtest "$protocol: names that a client makes up" => sub {
		my $body = $srv->fetch('/app/env', map { $_ => '/evil' } qw(X-Sendfile X-Sendfile-Type X-Accel-Mapping X-Accel-Redirect
			X-Accel-Anything X-LIGHTTPD-send-file X-LiteSpeed-Location X-Reproxy-URL X-Rewrite-URI))->{body};
		like $body, qr/^SCRIPT_NAME=/m, 'the application answers';
		unlike $body, qr/evil/, 'and has none of them';
	};
	subtest "$protocol: a file does not wait for the end of the reply" => sub {
		my $dir = start($app, $protocol, 'max-pool-size' => 1);
		is $srv->fetch("/app/file?$dir/f.txt")->{body}, 'the file', 'it is sent while the application goes on';
		is $srv->fetch('/app/env')->{status}, 200, 'and the next request has its socket' if $protocol eq 'fastcgi';
		Test::Util::put($app->file('ended'), '');
	};
	subtest "$protocol: each header, not allowed" => sub {
		my $dir = start($app, $protocol, 'allow-x-sendfile' => 'disable', tempdir => 1);
		for my $row (table($dir)) {
			is_reply(ask([$row->[0]]), '200 body', $row->[0]);
		}
		my $file = temp('t');
		is_reply(ask(["X-LIGHTTPD-send-tempfile: $file"]), '200 body', 'a temporary file');
		ok -e $file, 'it stays';
		like $srv->wait_log(qr/ev=control\.dropped/), qr/header=X-Sendfile why="proxy-core\.allow-x-sendfile is disabled"/, 'logged';
	};
}

sub temp_after {
	my ($bytes) = @_;
	my $file = temp('empty', $bytes);
	ask(["X-LIGHTTPD-send-tempfile: $file"]);
	return $file;
}

my $app = Test::App->start;

subtest 'names that are refused' => sub {
	my $dir = start($app, 'fastcgi', 'allow-x-sendfile' => 'enable', tempdir => 1, 'x-sendfile-docroot' => '( "@DIR@/files" )');
	my $root = $srv->dir;
	make_path("$dir/sub");
	$srv->write('secret.txt', 'secret');
	symlink "$root/secret.txt", "$dir/out" or die $!;
	symlink 'f.txt', "$dir/in" or die $!;
	POSIX::mkfifo("$dir/fifo", 0600) or die $!;
	$srv->write('files/closed.txt', 'closed');
	chmod 0, "$dir/closed.txt";
	my @rows = (
		["$root/secret.txt", 403], ["$dir/../secret.txt", 403], ["$dir/%2e%2e/secret.txt", 403], ["$dir/out", 403],
		['/etc/passwd', 403], ["$dir/sub", 403], ["$dir/fifo", 403], ["$dir/f.txt%00", 403], ["$dir/%zz", 403],
		['f.txt', 403], ['', 403], ["$dir/none", 404], ["$dir/" . 'a' x 5000, 404], ["$dir/f.txt/x", 404], ["${dir}x/f.txt", 403],
		$> == 0 ? () : ["$dir/closed.txt", 403]);
	for (@rows) {
		my ($path, $status) = @$_;
		my $name = substr $path, -24;
		is ask(["X-Sendfile: $path"])->{status}, $status, "X-Sendfile: ...$name";
		is ask(["X-Sendfile2: $path 0-"])->{status}, $path eq '' ? 502 : $status, "X-Sendfile2: ...$name";
	}
	is_reply(ask(["X-Sendfile: $dir/in"]), '200 the file', 'a link to a file below the directory');
	for ("$dir/f.txt", "$dir/f.txt 0", "$dir/f.txt 5-4", "$dir/f.txt 0-1,", "$dir/f.txt 0-8", "$dir/f.txt 9-") {
		is ask(["X-Sendfile2: $_"])->{status}, 502, "no pieces: " . substr $_, -14;
	}
	is ask(["X-Sendfile2: $dir/f.txt 0-3,$dir/none 0-"])->{status}, 404, 'a piece is missing: no byte of the others';
	for ('/../secret.txt', '/files/%2e%2e/%2e%2e/etc/passwd', 'files/f.txt', '@name', '', '/files/f.txt%00', '/files/sub') {
		is ask(["X-Accel-Redirect: $_"])->{status}, 403, "X-Accel-Redirect: $_" if $_ ne '/../secret.txt';
	}
	is ask(['X-Accel-Redirect: /none'])->{status}, 404, 'a URL that is missing';
	unlike $srv->log, qr/secret$/m, 'nothing of it is logged';
};

subtest 'temporary files that stay' => sub {
	my $dir = start($app, 'fastcgi', 'allow-x-sendfile' => 'enable', tempdir => 1);
	mkdir "$tmp/sub" or die $!;
	POSIX::mkfifo("$tmp/fifo", 0600) or die $!;
	symlink "$dir/f.txt", "$tmp/link" or die $!;
	symlink $dir, "$tmp/way" or die $!;
	for (["$dir/f.txt", 403], ["$tmp/../" . ($dir =~ s{.*?tmp/}{}r) . '/f.txt', 403], ["$tmp/link", 403], ["$tmp/way/f.txt", 403],
		["$tmp/sub", 403], ["$tmp/fifo", 403], [$tmp, 403], ["$tmp/", 403], ["$tmp/f%00", 403], ["$tmp/none", 404],
		["$tmp/" . 'a' x 5000, 404]) {
		is ask(["X-LIGHTTPD-send-tempfile: $_->[0]"])->{status}, $_->[1], '...' . substr $_->[0], -24;
	}
	ok -e "$dir/f.txt" && -d "$tmp/sub" && -p "$tmp/fifo" && -l "$tmp/link", 'nothing of it is removed';
	my $file = temp('sub/deep.txt');
	is_reply(ask(["X-LIGHTTPD-send-tempfile: $file"]), '200 temporary', 'a file in a directory below');
	ok !-e $file, 'is removed';
	is ask(["X-LIGHTTPD-send-tempfile: $file"])->{status}, 404, 'and is gone the second time';
	$srv->log_has(qr/ev=sendfile\.refused .*header=X-LIGHTTPD-send-tempfile .*x-sendfile-tempdir/, 'the log says why');
};

subtest 'a client that leaves does not keep its file' => sub {
	start($app, 'fastcgi', 'allow-x-sendfile' => 'enable', tempdir => 1);
	my $file = temp('big', 'x' x 20_000_000);
	my $c = $srv->connect;
	my $query = "X-LIGHTTPD-send-tempfile: $file" =~ s/([^A-Za-z0-9.-])/sprintf '%%%02x', ord $1/ger;
	$c->send("GET /app/head?$query HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { !-e $file }), 'it is removed while it is being sent';
	$c->abort;
	ok eventually(sub { !grep { (readlink $_ // '') =~ /\Q$file\E/ } glob "/proc/@{[ $srv->pid ]}/fd/*" }), 'and its bytes are given back';
};

subtest 'conditions and ranges' => sub {
	my $dir = start($app, 'fastcgi', 'allow-x-sendfile' => 'enable');
	my @own = ("X-Sendfile: $dir/long.txt", 'ETag: "own"');
	is ask(\@own, 'If-None-Match' => '"own"')->{status}, 304, "the application's tag is compared";
	is ask(\@own, 'If-None-Match' => '"other"')->{status}, 200, '... another one does not match';
	is ask(\@own, 'If-Match' => '"other"')->{status}, 412, '... If-Match';
	is_reply(ask(\@own, Range => 'bytes=0-1', 'If-Range' => '"own"'), '206 ab', '... If-Range');
	is ask(\@own, Range => 'bytes=0-1', 'If-Range' => '"other"')->{status}, 200, '... If-Range of another';
	is ask(\@own)->{header}{etag}, '"own"', '... and it is sent';
	my $tag = ask(["X-Sendfile: $dir/long.txt"])->{header}{etag};
	like $tag, qr/^(W\/)?"/, 'otherwise the tag of the file';
	is ask(["X-Sendfile: $dir/long.txt"], 'If-None-Match' => $tag)->{status}, 304, '... is compared';
	is_reply(ask(["X-Sendfile: $dir/long.txt"], Range => 'bytes=-2'), '206 yz', 'a range');
	is ask(["X-Sendfile: $dir/long.txt"], Range => 'bytes=99-')->{status}, 416, 'a range after the end';
	is_reply(ask(["X-Sendfile: $dir/f.txt", 'Status: 404 x'], Range => 'bytes=0-1'), '404 the file', 'a status of the application is kept, whole');
	my $r = ask(["X-Sendfile: $dir/f.txt", 'Content-Length: 3', 'Content-Encoding: gzip', 'Content-Range: bytes 0-1/2', 'Content-Type: a/b']);
	is join(' ', map { $r->{header}{$_} // '-' } qw(content-length content-encoding content-range content-type)), '8 - - a/b',
		'length and coding are those of the file, the type is not';
	$r = ask(["X-Sendfile2: $dir/long.txt 1-2", 'Status: 206 x', 'Content-Range: bytes 1-2/26'], Range => 'bytes=1-2');
	is "$r->{status} $r->{body} $r->{header}{'content-range'}", '206 bc bytes 1-2/26', 'X-Sendfile2: status and range are the application\'s';
	is $r->{header}{'content-type'}, 'text/plain', 'and the type that of the first file';
	is ask(["X-Sendfile: $dir/f.txt", 'Status: 204 x'])->{status}, 204, 'a status without body';
	$srv->wait_log(qr/ev=control\.dropped .*header=X-Sendfile why="a reply with this status/);
};

subtest 'hints' => sub {
	my $dir = start($app, 'fastcgi', 'allow-x-sendfile' => 'enable');
	for my $file ([], ["X-Sendfile: $dir/f.txt"]) {
		my $what = @$file ? 'a file' : 'a body';
		my $of = sub { my $name = shift; my $r = ask([@_, @$file]); return $r->{header}{ lc $name } // '-' };
		is $of->('Cache-Control', 'X-Accel-Expires: 60'), 'max-age=60', "$what: X-Accel-Expires";
		is $of->('Cache-Control', 'X-Accel-Expires: 0'), 'no-cache', '... 0';
		is $of->('Expires', 'X-Accel-Expires: @784111777'), 'Sun, 06 Nov 1994 08:49:37 GMT', '... a time';
		is $of->('Cache-Control', 'X-Accel-Expires: 60', 'Cache-Control: private'), 'private', '... the application says more';
		is $of->('Cache-Control', 'X-Accel-Expires: soon'), '-', '... no time';
		is $of->('Content-Type', 'X-Accel-Charset: koi8-r', 'Content-Type: text/html'), 'text/html; charset=koi8-r', 'X-Accel-Charset';
		is $of->('Content-Type', 'X-Accel-Charset: koi8-r', 'Content-Type: text/html; charset=utf-8'), 'text/html; charset=koi8-r', '... replaces another';
		is $of->('Content-Type', 'X-Accel-Charset: koi8-r', 'Content-Type: image/png'), 'image/png', '... of text only';
		is $of->('Content-Type', 'X-Accel-Charset: a b', 'Content-Type: text/html'), 'text/html', '... no name';
		is ask(['X-Accel-Limit-Rate: 1000000000', 'X-LIGHTTPD-KBytes-per-second: 1000000', 'X-Accel-Buffering: no', @$file])->{status}, 200, 'others';
	}
	is ask(["X-Accel-Charset: koi8-r", "X-Sendfile: $dir/f.txt"])->{header}{'content-type'}, 'text/plain; charset=koi8-r', 'of the name of a file';
	my $c = $srv->connect;
	$c->send("GET /app/head?X-Accel-Limit-Rate:%201 HTTP/1.1\r\nHost: x\r\n\r\n");
	ok $c->_wait(0, time + 20), 'X-Accel-Limit-Rate: the reply begins';
	sysread $c->sock, my $some, 1000;
	cmp_ok length $some, '<', 100, 'and goes on a byte a second';
	$c->abort;
};

subtest 'a rate is that of one reply' => sub {
	my $dir = start($app, 'fastcgi', 'allow-x-sendfile' => 'enable');
	my $c = $srv->connect;
	$c->send("GET /app/head?X-LIGHTTPD-KBytes-per-second:%2064 HTTP/1.1\r\nHost: x\r\n\r\n" . "GET /files/f.txt HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{body}, 'body', 'the limited one';
	is $c->reply->{body}, 'the file', 'and the next';
};

subtest 'a script is a file when an application names it' => sub {
	my $dir = start($app, 'fastcgi', 'allow-x-sendfile' => 'enable');
	$srv->write('files/s.php', '<?php');
	is_reply(ask(["X-Sendfile: $dir/s.php"]), '200 <?php', 'its source is sent');
	undef $srv;
	$srv = Test::Server->start(conf => conf($app, 'fastcgi', 'allow-x-sendfile' => 'enable') . qq{static-file.exclude-extensions = ( ".php" )\n});
	$srv->write('files/s.php', '<?php');
	is ask(["X-Sendfile: @{[ $srv->dir ]}/files/s.PHP"])->{status}, 403, 'unless its ending is excluded';
	is ask(["X-Sendfile2: @{[ $srv->dir ]}/files/s.php 0-"])->{status}, 403, '... by pieces';
	is ask(['X-Accel-Redirect: /files/s.php'])->{status}, 403, '... by URL';
};

# A backend of HTTP that answers with the head of its request.
sub echo {
	my ($child) = @_;
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8) or die "listen: $!";
	defined($$child = fork) or die "fork: $!";
	return $listen->sockport if $$child;
	alarm 120;
	while (my $c = $listen->accept) {
		my $head = '';
		while ($head !~ /\r\n\r\n/) { sysread($c, $head, 4096, length $head) or last }
		my $body = $head =~ /^HEAD/ ? '' : $head;
		syswrite $c, "HTTP/1.1 203 x\r\nContent-Length: @{[ length $head ]}\r\nX-Reproxy-URL: http://127.0.0.1:1/\r\n"
		    . "X-Sendfile: /etc/passwd\r\nConnection: close\r\n\r\n$body";
	}
	POSIX::_exit(0);
}

subtest 'X-Reproxy-URL' => sub {
	my $port = echo(\my $child);
	my $block = Test::Server::proxy_block('^/unused', "127.0.0.1:$port", protocol => 'http', 'allow-x-sendfile' => 'disable');
	undef $srv;
	$srv = Test::Server->start(conf => conf($app, 'fastcgi', 'allow-x-reproxy' => 'enable') . $block);
	my $r = ask(["X-Reproxy-URL: http://127.0.0.1:$port/a%20b?q=1"], Cookie => 'secret', Range => 'bytes=0-1', Authorization => 'secret');
	is $r->{status}, 203, 'the reply of the other backend';
	like $r->{body}, qr{^GET /a%20b\?q=1 HTTP/1\.1\r\n}, 'asked by GET';
	like $r->{body}, qr/^Host: 127\.0\.0\.1:$port\r$/m, 'with the host of the URL';
	like $r->{body}, qr/^Range: bytes=0-1\r$/m, "and the client's range";
	unlike $r->{body}, qr/secret|passwd/, 'without its cookies and credentials';
	like $srv->wait_log(qr/X-Sendfile.*X-Reproxy/s), qr/ev=control\.dropped .*header=X-Sendfile why="X-Reproxy-URL has fetched the reply already/, 'there is one hop';
	is ask(["X-Reproxy-URL: http://127.0.0.1:$port"], method => 'HEAD')->{body}, '', 'HEAD is HEAD';
	$r = Test::Http::parse($srv->request("POST /app/head?X-Reproxy-URL:%20http://127.0.0.1:$port/p HTTP/1.1\r\nHost: x\r\n"
		. "Content-Length: 100000\r\nConnection: close\r\n\r\n" . 'b' x 100000));
	like $r->{body}, qr{^GET /p HTTP/1\.1\r\n(?!.*Content-)}s, 'a POST becomes a GET without a body';
	for ('http://127.0.0.1:1/', 'http://localhost/', "https://127.0.0.1:$port/", "http://u\@127.0.0.1:$port/", "127.0.0.1:$port", '',
		"http://127.0.0.1:$port/../x", "http://127.0.0.1:$port/%zz", 'http://' . 'a' x 1000 . '/') {
		is ask(["X-Reproxy-URL: $_"])->{status}, 502, 'refused: ' . substr $_, 0, 30;
	}
	undef $srv;
	$srv = Test::Server->start(conf => conf($app, 'fastcgi') . $block);
	is_reply(ask(["X-Reproxy-URL: http://127.0.0.1:$port/"]), '200 body', 'without permission the body of the application is sent');
	kill 'KILL', $child;
	waitpid $child, 0;
};

subtest '1xx replies and errors' => sub {
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8) or die "listen: $!";
	defined(my $child = fork) or die "fork: $!";
	if (!$child) {
		alarm 120;
		while (my $c = $listen->accept) {
			sysread $c, my $head, 65536;
			syswrite $c, "HTTP/1.1 103 Early\r\nX-Sendfile: /etc/passwd\r\nX-Accel-Redirect: /evil\r\nX-Early: 1\r\n\r\n"
			    . "HTTP/1.1 500 x\r\nX-Accel-Expires: 5\r\nX-Sendfile-Type: evil\r\nX-Late: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
		}
		POSIX::_exit(0);
	}
	undef $srv;
	$srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n}
		. Test::Server::proxy_block('^/app', '127.0.0.1:' . $listen->sockport, protocol => 'http'));
	my $all = $srv->request("GET /app HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	like $all, qr{^HTTP/1\.1 103 .*^X-Early: 1.*^HTTP/1\.1 500 .*^X-Late: 1.*body\z}ms, 'both pass';
	unlike $all, qr/X-Sendfile|X-Accel|evil/i, 'without control headers';
	kill 'KILL', $child;
	waitpid $child, 0;
};

undef $srv;
done_testing;
