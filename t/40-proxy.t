#!/usr/bin/perl
# proxy-core in front of small FastCGI applications: what they are told, what comes back, and what a client is told
# when they are gone, slow, full or mad.

use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use IO::Socket::UNIX ();
use POSIX ();
use Socket qw(SOCK_STREAM);
use Test::More;
use Time::HiRes qw(time sleep);

use Test::Server;

# ---------------------------------------------------------------- an application: a process for each connection

package App;

use constant { BEGIN_ => 1, END_ => 3, PARAMS => 4, STDIN_ => 5, STDOUT_ => 6, STDERR_ => 7 };

sub start {
	my ($class, %arg) = @_;
	my $self = bless { dir => $arg{dir} // File::Temp->newdir('accel-app-XXXXXX', TMPDIR => 1), owner => $$ }, $class;
	$self->up;
	return $self;
}

sub socket { return "$_[0]{dir}/app.sock" }
sub file   { my ($self, $name) = @_; return "$self->{dir}/$name" }

sub up {
	my ($self) = @_;
	unlink $self->socket;
	my $listen = IO::Socket::UNIX->new(Local => $self->socket, Listen => 128) or die "listen: $!";
	defined($self->{pid} = fork) or die "fork: $!";
	return if $self->{pid};
	POSIX::setpgid(0, 0);
	$SIG{CHLD} = 'IGNORE';
	$SIG{ALRM} = 'DEFAULT';
	alarm 300;                              # never an orphan
	while (my $c = $listen->accept) {
		$self->note('connections');
		my $pid = fork // next;
		next if $pid;
		close $listen;
		alarm 300;
		$SIG{PIPE} = 'IGNORE';
		eval { 1 while $self->serve($c) };
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}

sub down {
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;
	kill 'KILL', -$pid;
	kill 'KILL', $pid;
	waitpid $pid, 0;
}

sub DESTROY { my ($self) = @_; local ($?, $!); $self->down if $$ == $self->{owner} }

# Counts in a file: one byte each.
sub note {
	my ($self, $what, $text) = @_;
	open my $fh, '>>', $self->file($what) or return;
	syswrite $fh, $text // '.';
}

sub noted { my ($self, $what) = @_; return Test::Server::_slurp($self->file($what)) }

sub _read {
	my ($c, $n) = @_;
	my $got = '';
	while (length $got < $n) { sysread($c, $got, $n - length $got, length $got) or die "gone\n" }
	return $got;
}

sub _record { my ($type, $id, $content) = @_; return pack('CCnnCC', 1, $type, $id, length $content, 0, 0) . $content }

sub _send {
	my ($c, $bytes) = @_;
	my $at = 0;
	while ($at < length $bytes) { $at += syswrite($c, $bytes, length($bytes) - $at, $at) // die "gone\n" }
}

sub out { my ($c, $bytes) = @_; _send($c, join '', map { _record(STDOUT_, 1, $_) } unpack '(a60000)*', $bytes) }
sub err { my ($c, $bytes) = @_; _send($c, _record(STDERR_, 1, $bytes)) }
sub end { my ($c, $status) = @_; _send($c, _record(END_, 1, pack 'NCx3', 0, $status // 0)) }

sub _params {
	my ($s) = @_;
	my %p;
	while (length $s) {
		my @n = map {
			my $n = unpack 'C', $s;
			if ($n < 128) { substr $s, 0, 1, '' } else { $n = unpack('N', substr $s, 0, 4, '') & 0x7fffffff }
			$n;
		} 1, 2;
		my $name = substr $s, 0, $n[0], '';
		die "$name twice\n" if exists $p{$name};
		$p{$name} = substr $s, 0, $n[1], '';
	}
	return \%p;
}

# One request: false when the connection is to be closed.
sub serve {
	my ($self, $c) = @_;
	my ($params, $keep, $p, $body) = ('', 0, undef, '');
	while (1) {
		my (undef, $type, undef, $len, $pad) = unpack 'CCnnC', _read($c, 8);
		my $content = _read($c, $len);
		_read($c, $pad);
		if ($type == BEGIN_) { $keep = (unpack 'nC', $content)[1] & 1 }
		if ($type == PARAMS) { $params .= $content }
		if ($type == PARAMS && $len == 0) {
			$p = _params($params);
			my $early = $self->can("early_" . _what($p));
			return $early->($self, $c, $p) if $early;
		}
		next if $type != STDIN_;
		last if $len == 0;
		$body .= $content;
	}
	my $do = $self->can('do_' . _what($p)) // \&do_none;
	my $go_on = $do->($self, $c, $p, $body);
	return $keep && $go_on;
}

sub _what { my ($p) = @_; return $p->{SCRIPT_NAME} =~ m{/app/(\w+)} ? $1 : 'none' }

sub do_none { out($_[1], "Status: 404 Not Found\r\n\r\nnone"); end($_[1]); return 1 }

sub do_env {
	my ($self, $c, $p) = @_;
	out($c, "Content-Type: text/plain\r\n\r\n" . join '', map { "$_=$p->{$_}\n" } sort keys %$p);
	end($c);
	return 1;
}

sub do_head {           # the query is the head: \n as |
	my ($self, $c, $p) = @_;
	my $head = $p->{QUERY_STRING} =~ s/%([0-9a-f]{2})/chr hex $1/gier;
	out($c, $head =~ s/\|/\r\n/gr . "\r\n\r\nbody");
	end($c);
	return 1;
}

sub do_upload {
	my ($self, $c, $p, $body) = @_;
	out($c, "\r\n" . length($body) . ' ' . Digest::MD5::md5_hex($body));
	end($c);
	return 1;
}

sub early_refuse { my ($self, $c) = @_; out($c, "Status: 413 x\r\n\r\ntoo much"); end($c); return 0 }

sub do_steps {          # each step when the test says so
	my ($self, $c) = @_;
	out($c, "\r\none ");
	Test::Server::eventually(sub { -e $self->file('go') });
	out($c, "two ");
	out($c, "three");
	end($c);
	return 1;
}

sub do_big {
	my ($self, $c, $p) = @_;
	my ($n, $piece) = ($p->{QUERY_STRING}, join '', map { chr($_ % 251) } 1 .. 50000);
	out($c, "Content-Length: " . $n * 50000 . "\r\n\r\n");
	for (1 .. $n) { out($c, $piece); $self->note('written', 'x') if $p->{SCRIPT_NAME} =~ /count/ }
	end($c);
	return 1;
}

sub do_stderr {
	my ($self, $c) = @_;
	err($c, "PHP Notice: first\nsecond \x1b[31m");
	out($c, "\r\nok");
	err($c, "line\n");
	end($c);
	return 1;
}

sub do_garbage { _send($_[1], "HTTP/1.1 200 OK\r\n\r\n"); return 0 }
sub do_hangup  { return 0 }
sub do_nohead  { end($_[1]); return 1 }
sub do_cuthead { out($_[1], "Content-Type: te"); return 0 }
sub do_cut     { out($_[1], "\r\nhalf of it"); return 0 }
sub do_cutlen  { out($_[1], "Content-Length: 100\r\n\r\nhalf of it"); end($_[1]); return 1 }
sub do_full    { end($_[1], 2); return 1 }
sub do_silent  { Test::Server::eventually(sub { 0 }, 20); return 0 }
sub do_halfclose { out($_[1], "\r\nbye"); end($_[1]); shutdown $_[1], 1; Test::Server::eventually(sub { 0 }, 1); return 0 }

sub do_once {           # keeps the socket, and closes it when the next request comes
	my ($self, $c) = @_;
	out($c, "\r\nonce");
	end($c);
	_read($c, 8);
	return 0;
}

package main;

# ---------------------------------------------------------------- the server in front

my $app = App->start;
my $sock = $app->socket;

sub conf {
	my (%set) = @_;
	my %all = ('protocol' => '"fastcgi"', 'backends' => qq{( "unix:$sock" )}, 'max-pool-size' => 4,
		'max-keep-alive-requests' => 100, 'allow-x-sendfile' => '"enable"', 'read-timeout' => 60, %set);
	return qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\n}
	    . qq<\$HTTP["url"] =~ "^/app" {\n> . join('', map { "  proxy-core.$_ = $all{$_}\n" } sort keys %all) . "}\n";
}

my $srv = Test::Server->start(conf => conf());

subtest 'what an application is told' => sub {
	my $r = $srv->fetch('/app/env/a%20b?x=1&y', 'User-Agent' => 'test', 'Content-Type' => 'x/y', Proxy => 'http://evil',
		'X_Forwarded_For' => 'evil', 'X-Sendfile-Type' => 'X-Accel-Redirect', 'X-Accel-Mapping' => '/=/evil',
		'X-Sendfile' => '/evil', 'X-Forwarded-For' => '10.1.2.3', 'X-Host' => 'evil', 'X-Forwarded-Proto' => 'evil');
	is $r->{status}, 200, 'answered';
	my %env = map { split /=/, $_, 2 } split /\n/, $r->{body};
	is $env{REQUEST_URI}, '/app/env/a%20b?x=1&y', 'REQUEST_URI as sent';
	is $env{SCRIPT_NAME}, '/app/env/a b', 'SCRIPT_NAME decoded';
	is $env{QUERY_STRING}, 'x=1&y', 'QUERY_STRING';
	is $env{SCRIPT_FILENAME}, $srv->dir . '/app/env/a b', 'SCRIPT_FILENAME';
	is $env{DOCUMENT_ROOT}, $srv->dir, 'DOCUMENT_ROOT';
	is $env{REQUEST_METHOD}, 'GET', 'REQUEST_METHOD';
	is $env{REMOTE_ADDR}, '127.0.0.1', 'REMOTE_ADDR';
	is $env{SERVER_PORT}, $srv->port, 'SERVER_PORT';
	is $env{REDIRECT_STATUS}, 200, 'REDIRECT_STATUS';
	is $env{GATEWAY_INTERFACE}, 'CGI/1.1', 'GATEWAY_INTERFACE';
	is $env{CONTENT_TYPE}, 'x/y', 'CONTENT_TYPE';
	is $env{HTTP_USER_AGENT}, 'test', 'HTTP_USER_AGENT';
	is $env{HTTP_X_FORWARDED_FOR}, '10.1.2.3, 127.0.0.1', 'the client is added to HTTP_X_FORWARDED_FOR';
	is $env{HTTP_PROXY}, undef, 'never HTTP_PROXY';
	unlike $r->{body}, qr/evil/, 'nothing a client made up';
};

subtest 'proxy-core.rewrite-request and rewrite-response' => sub {
	my $rw = Test::Server->start(conf => conf(
		'rewrite-request' => '( "_uri" => ( "^/app/(.*)$" => "/new/$1" ), "_pathinfo" => ( "^/app/env(/.*)$" => "$1" ), '
		    . '"_docroot" => ( "^.*$" => "/other" ), "User-Agent" => ( "([0-9]+)" => "version $1" ) )',
		'rewrite-response' => '( "content-type" => ( "^text/(.*)$" => "application/$1" ) )'));
	my $r = $rw->fetch('/app/env/a%20b?x=1', 'User-Agent' => 'test 42', Accept => 'text/plain');
	my %env = map { split /=/, $_, 2 } split /\n/, $r->{body};
	is $env{REQUEST_URI}, '/app/env/a%20b?x=1', 'REQUEST_URI stays what the client sent';
	is $env{REDIRECT_URI}, '/new/env/a%20b?x=1', '_uri makes REDIRECT_URI';
	is $env{PATH_INFO}, '/a b', '_pathinfo makes PATH_INFO';
	is "$env{DOCUMENT_ROOT} $env{SCRIPT_FILENAME}", '/other /other/app/env/a b', '_docroot moves both';
	is $env{HTTP_USER_AGENT}, 'version 42', 'the whole value of a header is replaced';
	is $env{HTTP_ACCEPT}, 'text/plain', 'others stay';
	is $r->{header}{'content-type'}, 'application/plain', 'and a header of the reply';
};

subtest 'sockets are kept' => sub {
	my $before = length $app->noted('connections');
	my $c = $srv->connect;
	for (1 .. 20) {
		$c->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
		$c->reply->{status} == 200 or fail "request $_";
	}
	cmp_ok length($app->noted('connections')) - $before, '<=', 1, '20 requests on one of them';
	is $srv->fetch('/app/once')->{body}, 'once', 'one that the application closes';
	is $srv->fetch('/app/env')->{status}, 200, 'is not noticed by the next request';
	is $srv->fetch('/app/halfclose')->{body}, 'bye', 'one that is half closed';
	is $srv->fetch('/app/env')->{status}, 200, 'is not used again';
};

subtest 'replies' => sub {
	my $r = $srv->fetch('/app/head?Status:%20404%20Gone%20fishing|X-A:%20b|Set-Cookie:%201|Set-Cookie:%202');
	is "$r->{status} $r->{header}{'x-a'} $r->{header}{'set-cookie'}", '404 b 1, 2', 'status and fields pass';
	is $srv->fetch('/app/head?Location:%20/x')->{status}, 302, 'Location makes a redirect';
	like $srv->head('/app/head?A:%20b'), qr/^HTTP\S+ 200 .*\r\n\r\n\z/s, 'HEAD has no body, whatever the application says';
	like $srv->get('/app/head?Status:%20304'), qr/^HTTP\S+ 304 .*\r\n\r\n\z/s, 'nor has 304';
	is $srv->fetch('/app/head?Content-Length:%202')->{body}, 'bo', 'no more than Content-Length';
	$r = $srv->fetch('/app/head?X-Hop:%201|Connection:%20X-Hop|Keep-Alive:%20x|Upgrade:%20h2c|A:%20b');
	is join(' ', grep { /hop|keep|upgrade/ } keys %{ $r->{header} }), '', 'hop-by-hop fields end here';
};

subtest 'replies are streamed' => sub {
	my $c = $srv->connect;
	$c->send("GET /app/steps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	my $got = '';
	Test::Server::eventually(sub { $got .= $c->take(1); $got =~ /one / });
	unlike $got, qr/two/, 'the first piece is there before the second is made';
	$app->note('go');
	is Test::Server::parse($got . $c->rest)->{body}, 'one two three', 'then the rest';
	my $big = $srv->fetch('/app/big?400');
	is length $big->{body}, 20_000_000, '20 MB';
	is md5_hex($big->{body}), md5_hex((join '', map { chr($_ % 251) } 1 .. 50000) x 400), 'byte for byte';
};

subtest 'a client that does not read stops the application' => sub {
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send("GET /app/big/count?4000 HTTP/1.1\r\nHost: x\r\n\r\n");
	my ($was, $same) = (-1, 0);
	Test::Server::eventually(sub {
		my $now = length $app->noted('written');
		$same = $now == $was && $now > 0 ? $same + 1 : 0;
		$was = $now;
		sleep 0.02;
		return $same > 20;
	});
	cmp_ok $was * 50000, '<', 20_000_000, "after @{[ $was * 50 ]} kB of 200 MB";
	is $srv->fetch('/app/env')->{status}, 200, 'others are served meanwhile';
	$c->abort;
};

subtest 'request bodies' => sub {
	for my $n (1, 65535, 65536, 65537, 5_000_000) {
		my $body = substr 'abcdefghij0123456789' x (1 + $n / 20), 0, $n;
		my $r = Test::Server::parse($srv->request("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			. "Content-Length: $n\r\n\r\n$body"));
		is $r->{body}, "$n " . md5_hex($body), "$n bytes arrive";
	}
	my $c = $srv->connect;
	$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n01234");
	ok !$c->_wait(0, time + 0.2), 'half of one is waited for';
	$c->send('56789');
	is $c->reply->{body}, '10 ' . md5_hex('0123456789'), 'and then answered';
	is Test::Server::parse($srv->request("POST /app/refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"
		. 'x' x 100000))->{status}, 413, 'an application that does not want it may say so early';
};

subtest 'stderr goes to the error log' => sub {
	is $srv->fetch('/app/stderr?q')->{body}, 'ok', 'not to the client';
	my $log = $srv->wait_log(qr/second/);
	like $log, qr{ev=app\.stderr .*backend=\Qunix:$sock\E .*url="?/app/stderr.*PHP Notice: first}, 'with backend and URL';
	like $log, qr/second \\x1b\[31mline/, 'by line, escaped';
};

subtest 'an application that is broken' => sub {
	for (['garbage', 502], ['hangup', 502], ['nohead', 502], ['cuthead', 502], ['full', 503],
		['head?Bad%20name:%201', 502], ['head?Content-Length:%201|Content-Length:%201', 502],
		['head?A:%20x%01', 502], ['head?Status:%20abc', 502]) {
		my $r = $srv->fetch("/app/$_->[0]");
		is $r->{status}, $_->[1], "$_->[0] is $_->[1]";
		like $r->{header}{'retry-after'}, qr/^[1-9]/, 'with Retry-After' if $_->[1] == 503;
	}
	unlike $srv->get('/app/head?Location:%20/x%0dSet-Cookie:%20evil'), qr/Set-Cookie/, 'it cannot split a reply';
	for my $what (qw(cut cutlen)) {
		my $c = $srv->connect;
		$c->send("GET /app/$what HTTP/1.1\r\nHost: x\r\n\r\n");
		ok $c->reply->{cut}, "$what: a reply that breaks off can be told from a whole one";
		ok $c->closed, 'and the connection ends';
	}
};

subtest 'send this file' => sub {
	$srv->write('files/f.txt', 'the file');
	my $file = $srv->path('files/f.txt');
	for (["X-Sendfile:%20$file", 'X-Sendfile'], ["X-LIGHTTPD-send-file:%20$file", 'X-LIGHTTPD-send-file'],
		['X-Accel-Redirect:%20/files/f.txt', 'X-Accel-Redirect']) {
		my $r = $srv->fetch("/app/head?Content-Type:%20x/y|X-Kept:%201|$_->[0]");
		is "$r->{status} $r->{body}", '200 the file', $_->[1];
		is "$r->{header}{'content-type'} $r->{header}{'x-kept'}", 'x/y 1', 'with the fields of the application';
		unlike $r->{head}, qr/sendfile|send-file|x-accel/i, 'and without that one';
	}
	is $srv->fetch("/app/head?X-Sendfile:%20@{[ $srv->dir ]}///files/f.txt")->{body}, 'the file', 'slashes behind the root do not count';
	is $srv->fetch("/app/head?X-Sendfile:%20@{[ $srv->dir ]}//")->{status}, 403, 'the root itself is no file';
	is $srv->fetch("/app/head?X-Sendfile:%20$file", Range => 'bytes=4-7')->{body}, 'file', 'ranges work';
	is $srv->fetch('/app/head?X-Sendfile:%20/etc/passwd')->{status}, 403, 'not outside of the root';
	unlike $srv->get("/app/head?X-Sendfile:%20@{[ $srv->dir ]}/../../etc/passwd"), qr/root:/, 'nor by climbing';
	is $srv->fetch("/app/head?X-Sendfile:%20$file.none")->{status}, 404, 'a file that is not there';
	for my $status (204, 304) {
		my $c = $srv->connect;
		$c->send("GET /app/head?Status:%20$status|X-Sendfile:%20$file HTTP/1.1\r\nHost: x\r\n\r\n"
			. "GET /files/f.txt HTTP/1.1\r\nHost: x\r\n\r\n");
		is $c->reply->{status}, $status, "a file beside status $status";
		my $next = $c->reply;
		is $next && "$next->{status} $next->{body}", '200 the file', 'does not stand where the next reply should';
	}
	my $r = $srv->fetch('/app/head?X-Sendfile2:%20/a%200-1|X-Reproxy-URL:%20http://x/|X-Rewrite-URI:%20/a|'
		. 'X-LiteSpeed-Location:%20/a|X-Accel-Buffering:%20no|X-LIGHTTPD-send-tempfile:%20/a|X-Ok:%201');
	is join(' ', grep { /^x-/ } sort keys %{ $r->{header} }), 'x-ok', 'other control fields never leak';
};

undef $srv;

subtest 'not allowed to send files' => sub {
	my $s = Test::Server->start(conf => conf('allow-x-sendfile' => '"disable"'));
	my $r = $s->fetch('/app/head?X-Sendfile:%20/etc/passwd|X-Accel-Redirect:%20/x|X-LIGHTTPD-send-file:%20/etc/passwd');
	is "$r->{status} $r->{body}", '200 body', 'the body of the application is sent';
	unlike $r->{head}, qr/passwd|x-accel/i, 'and the fields still do not leak';
};

subtest 'proxy-core.debug' => sub {
	my $s = Test::Server->start(conf => conf('debug' => 1));
	$s->fetch('/app/env') for 1, 2;
	like $s->wait_log(qr/pool\.lease.*served=1/), qr/ev=pool\.lease backend=unix:\S+ served=0 busy=1 /,
		'a line for each socket that a request gets';
};

subtest 'deadlines' => sub {
	my $s = Test::Server->start(conf => conf('read-timeout' => 1, 'wait-timeout' => 1, 'max-pool-size' => 1));
	my $first = $s->connect;
	$first->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n");
	my $t = time;
	is $first->reply->{status}, 504, 'a silent application';
	cmp_ok time - $t, '<', 5, 'in time';
	$first->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n");
	my $second = $s->connect;
	$second->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
	my $r = $second->reply;
	ok $r->{status} == 503 || $r->{status} == 200, "who waits for its socket is told or served ($r->{status})";
	$first->reply;
};

subtest 'an application that dies and comes back' => sub {
	my $s = Test::Server->start(conf => conf('disable-time' => 1));
	is $s->fetch('/app/env')->{status}, 200, 'alive';
	$app->down;
	my $r = $s->fetch('/app/env');
	is $r->{status}, 503, 'dead';
	like $r->{header}{'retry-after'}, qr/^[1-9]/, 'with Retry-After';
	$app->up;
	ok Test::Server::eventually(sub { $s->fetch('/app/env')->{status} == 200 }), 'back';
	like $s->wait_log(qr/ev=pool\.up/), qr/ev=pool\.down.*ev=pool\.up/s, 'both are in the log';
};

subtest 'two backends, one of them dead' => sub {
	my $s = Test::Server->start(conf => conf(backends => qq{( "unix:$sock.none", "unix:$sock" )}));
	is join(' ', map { $s->fetch('/app/env')->{status} } 1 .. 10), join(' ', (200) x 10), 'nobody notices';
};

# One accept loop, bound to each connection for as long as it is kept: libfcgi with one thread.
subtest 'an application that cannot serve all kept sockets' => sub {
	my $path = $app->file('bound.sock');
	my $listen = IO::Socket::UNIX->new(Local => $path, Listen => 128) or die "listen: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		alarm 120;
		$SIG{PIPE} = 'IGNORE';
		while (my $c = $listen->accept) { eval { 1 while $app->serve($c) } }
		POSIX::_exit(0);
	}
	close $listen;
	my $s = Test::Server->start(conf => "server.max-worker = 2\n"
		. conf(backends => qq{( "unix:$path" )}, 'max-pool-size' => 10) =~ s/server\.max-worker.*\n//r);
	my @c = map { $s->connect } 1 .. 30;
	my ($good, $bad) = (0, 0);
	for my $round (1 .. 10) {
		$_->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n") for @c;
		for (@c) { my $r = $_->reply; $r && $r->{status} == 200 ? $good++ : $bad++ }
	}
	is "$good good, $bad bad", '300 good, 0 bad', 'all are answered';
	like $s->wait_log(qr/pool\.stalled/), qr/ev=pool\.stalled .*advice=/, 'and the log says what to do';
	kill 'KILL', $pid;
	waitpid $pid, 0;
};

done_testing;
