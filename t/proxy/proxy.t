#!/usr/bin/perl
# proxy-core in front of small FastCGI applications (proxy.t NAME: of another protocol): the requests they get, the replies that
# clients get, and errors of applications that are gone, slow, full or broken.

use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use IO::Socket::UNIX ();
use JSON::PP ();
use POSIX ();
use Socket qw(SOCK_STREAM);
use Test::More;
use Time::HiRes qw(time sleep);

use Test::App;
use Test::Server;

# ---------------------------------------------------------------- the server in front

my $protocol = shift // 'fastcgi';
my $cgi = $protocol =~ /cgi|uwsgi/;                           # CGI variables
my $once = $protocol =~ /^(?:scgi|uwsgi)$/;             # a socket for each request; its end is the end of the reply
my $fastcgi = $protocol eq 'fastcgi';
my $app = Test::App->start(protocol => $protocol);
my $sock = $app->socket;

sub conf (%set) {
	return qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\n}
	    . Test::Server::proxy_block('^/app', "unix:$sock", protocol => $protocol, 'max-pool-size' => 4,
		'max-keep-alive-requests' => 100, 'read-timeout' => 60, %set);
}

my $srv = Test::Server->start(conf => conf());

subtest 'an application gets the CGI variables of its request' => sub {
	my $r = $srv->fetch('/app/env/a%20b?x=1&y', 'User-Agent' => 'test', 'Content-Type' => 'x/y', Proxy => 'http://evil',
		'X_Forwarded_For' => 'evil', 'X-Sendfile-Type' => 'X-Accel-Redirect', 'X-Accel-Mapping' => '/=/evil',
		'X-Sendfile' => '/evil', 'X-Forwarded-For' => '10.1.2.3', 'X-Host' => 'evil', 'X-Forwarded-Proto' => 'evil');
	is $r->{status}, 200, 'answered';
	my %env = map { split /=/, $_, 2 } split /\n/, $r->{body};
	is $env{REQUEST_URI}, '/app/env/a%20b?x=1&y', 'REQUEST_URI as sent';
	is $env{$once ? 'PATH_INFO' : 'SCRIPT_NAME'}, '/app/env/a b', 'the path decoded';
	is $env{$once ? 'SCRIPT_NAME' : 'PATH_INFO'}, $once ? '' : undef, '... in one variable';
	is $env{QUERY_STRING}, 'x=1&y', 'QUERY_STRING';
	is $env{REQUEST_METHOD}, 'GET', 'REQUEST_METHOD';
	if ($cgi) {
		is $env{SCRIPT_FILENAME}, $srv->dir . '/app/env/a b', 'SCRIPT_FILENAME';
		is $env{DOCUMENT_ROOT}, $srv->dir, 'DOCUMENT_ROOT';
		is $env{REMOTE_ADDR}, '127.0.0.1', 'REMOTE_ADDR';
		is $env{SERVER_PORT}, $srv->port, 'SERVER_PORT';
		is $env{REDIRECT_STATUS}, 200, 'REDIRECT_STATUS';
		is $env{GATEWAY_INTERFACE}, 'CGI/1.1', 'GATEWAY_INTERFACE';
	}
	is $env{CONTENT_TYPE}, 'x/y', 'CONTENT_TYPE';
	is $env{HTTP_USER_AGENT}, 'test', 'HTTP_USER_AGENT';
	is $env{HTTP_X_FORWARDED_FOR}, '127.0.0.1', 'the client is in HTTP_X_FORWARDED_FOR, and nothing that it sent';
	is $env{HTTP_PROXY}, undef, 'never HTTP_PROXY';
	is $env{CONTENT_LENGTH}, $protocol eq 'scgi' ? 0 : undef, 'CONTENT_LENGTH without a body: SCGI only';
	unlike $r->{body}, qr/evil/, 'nothing a client made up';
};

subtest 'the authority of an absolute-form is the host' => sub {
	for ("GET http://Other.example:81/app/env?q HTTP/1.1\r\nHost: x\r\nX-Host: y\r\nConnection: close\r\n\r\n",
		"GET http://Other.example:81/app/env?q HTTP/1.0\r\n\r\n") {
		my %env = map { split /=/, $_, 2 } split /\n/, Test::Http::parse($srv->request($_))->{body};
		is $env{HTTP_HOST}, 'other.example:81', 'HTTP_HOST';
		is $env{HTTP_X_HOST}, 'other.example:81', 'HTTP_X_HOST';
		is $env{SERVER_NAME}, 'other.example', 'SERVER_NAME' if $cgi;
		is $env{REQUEST_URI}, '/app/env?q', 'REQUEST_URI is the path';
	}
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
	is "$env{DOCUMENT_ROOT} $env{SCRIPT_FILENAME}", '/other /other/app/env', '_docroot moves both';
	is $env{HTTP_USER_AGENT}, 'version 42', 'the whole value of a header is replaced';
	is $env{HTTP_ACCEPT}, 'text/plain', 'others stay';
	is $r->{header}{'content-type'}, 'application/plain', 'and a header of the reply';
} if $cgi;

subtest '_uri replaces the target' => sub {
	my $rw = Test::Server->start(conf => conf('rewrite-request' => '( "_uri" => ( "^/app/old/(.*)$" => "/app/env/$1" ) )'));
	my %env = map { split /=/, $_, 2 } split /\n/, $rw->fetch('/app/old/a%20b?x=1')->{body};
	is $env{REQUEST_URI}, '/app/env/a%20b?x=1', 'of the request line';
} if $protocol eq 'http';

subtest 'sockets to the application are kept' => sub {
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
} unless $once;

subtest 'each request has a socket of its own' => sub {
	my $before = length $app->noted('connections');
	my $c = $srv->connect;
	for (1 .. 20) {
		$c->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
		$c->reply->{status} == 200 or fail "request $_";
	}
	is length($app->noted('connections')) - $before, 20, '20 requests, 20 sockets';
	is $srv->fetch('/app/halfclose')->{body}, 'bye', 'an application that closes its half only has ended its reply';
	$c->send("GET /app/lingers HTTP/1.1\r\nHost: x\r\n\r\nGET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
	my $t = time;
	is $c->reply->{body}, 'bye', 'a promised body is complete with its last byte';
	is $c->reply->{status}, 200, '... so the next reply';
	cmp_ok time - $t, '<', Test::Util::SOON, '... does not wait for the end of the connection';
} if $once;

subtest 'each form of reply reaches the client' => sub {
	my $r = $srv->fetch('/app/head?Status:%20404%20Gone%20fishing|X-A:%20b|Set-Cookie:%201|Set-Cookie:%202');
	is "$r->{status} $r->{header}{'x-a'} $r->{header}{'set-cookie'}", '404 b 1, 2', 'status and fields pass';
	is $srv->fetch('/app/head?Location:%20/x')->{status}, 302, 'Location makes a redirect';
	like $srv->head('/app/head?A:%20b'), qr/^HTTP\S+ 200 .*\r\n\r\n\z/s, 'a reply to HEAD has no body, even if the application sends one';
	like $srv->get('/app/head?Status:%20304'), qr/^HTTP\S+ 304 .*\r\n\r\n\z/s, 'nor has 304';
	is $srv->fetch('/app/head?Content-Length:%202')->{body}, 'bo', 'no more than Content-Length';
	$r = $srv->fetch('/app/head?X-Hop:%201|Connection:%20X-Hop|Keep-Alive:%20x|Upgrade:%20h2c|A:%20b');
	is join(' ', grep { /hop|keep|upgrade/ } keys %{ $r->{header} }), '', 'hop-by-hop fields end here';
};

subtest 'replies are streamed' => sub {
	my $c = $srv->connect;
	$c->send("GET /app/steps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	my $got = '';
	Test::Util::eventually(sub { $got .= $c->take(1); $got =~ /one / });
	unlike $got, qr/two/, 'the first piece is there before the second is made';
	$app->note('go');
	is Test::Http::parse($got . $c->rest)->{body}, 'one two three', 'then the rest';
	my $big = $srv->fetch('/app/big?400');
	is length $big->{body}, 20_000_000, '20 MB';
	is md5_hex($big->{body}), md5_hex((join '', map { chr($_ % 251) } 1 .. 50000) x 400), 'byte for byte';
};

subtest 'a client that does not read stops the application' => sub {
	my $srv = Test::Server->start(conf => conf('max-reply-spool' => 1024));
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send("GET /app/big/count?4000 HTTP/1.1\r\nHost: x\r\n\r\n");
	my ($was, $same) = (-1, 0);
	Test::Util::eventually(sub {
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

subtest 'request bodies reach the application' => sub {
	for my $n (1, 65535, 65536, 65537, 5_000_000) {
		my $body = substr 'abcdefghij0123456789' x (1 + $n / 20), 0, $n;
		my $r = Test::Http::parse($srv->request("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			. "Content-Length: $n\r\n\r\n$body"));
		is $r->{body}, "$n " . md5_hex($body), "$n bytes arrive";
	}
	my $c = $srv->connect;
	$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n01234");
	ok !$c->_wait(0, time + 0.2), 'half of one is waited for';
	$c->send('56789');
	is $c->reply->{body}, '10 ' . md5_hex('0123456789'), 'and then answered';
	is Test::Http::parse($srv->request("POST /app/refuse HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		. "Content-Length: 1000000\r\n\r\n" . 'x' x 1000000))->{status}, 413, 'an application may answer before it has read the body';
	$c = $srv->connect;
	$c->send("POST /app/vanish HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" . 'x' x 1000000);
	ok $c->reply->{cut}, 'a reply without a length, ended by a reset, was not whole';
};

subtest 'stderr goes to the error log' => sub {
	is $srv->fetch('/app/stderr?q')->{body}, 'ok', 'not to the client';
	my $log = $srv->wait_log(qr/second/);
	like $log, qr{ev=app\.stderr .*backend=\Qunix:$sock\E .*url="?/app/stderr.*PHP Notice: first}, 'with backend and URL';
	like $log, qr/second \\x1b\[31mline/, 'by line, escaped';
} if $fastcgi;

subtest 'a broken reply is 502 or cut' => sub {
	for (['garbage', 502], ['hangup', 502], $protocol eq 'http' ? () : ['nohead', 502], ['cuthead', 502], $fastcgi ? ['full', 503] : (),
		['head?Bad%20name:%201', 502], ['head?Content-Length:%201|Content-Length:%201', 502],
		['head?A:%20x%01', 502], ['head?Status:%20abc', 502]) {
		my $r = $srv->fetch("/app/$_->[0]");
		is $r->{status}, $_->[1], "$_->[0] is $_->[1]";
		like $r->{header}{'retry-after'}, qr/^[1-9]/, 'with Retry-After' if $_->[1] == 503;
	}
	unlike $srv->get('/app/head?Location:%20/x%0dSet-Cookie:%20evil'), qr/Set-Cookie/, 'it cannot split a reply';
	like $srv->wait_log(qr/ended within its head/), qr/url="?\/app\/cuthead/, 'the log says what happened' if $once;
	for my $what ($once ? () : 'cut', 'cutlen') {
		my $c = $srv->connect;
		$c->send("GET /app/$what HTTP/1.1\r\nHost: x\r\n\r\n");
		ok $c->reply->{cut}, "$what: the client sees that the reply is cut";
		ok $c->closed, 'and the connection ends';
	}
};

subtest 'X-Sendfile sends the file' => sub {
	$srv->write('files/f.txt', 'the file');
	my $file = $srv->path('files/f.txt');
	for (["X-Sendfile:%20$file", 'X-Sendfile'], ["X-LIGHTTPD-send-file:%20$file", 'X-LIGHTTPD-send-file'],
		['X-Accel-Redirect:%20/files/f.txt', 'X-Accel-Redirect']) {
		my $r = $srv->fetch("/app/head?Content-Type:%20x/y|X-Kept:%201|$_->[0]");
		is "$r->{status} $r->{body}", '200 the file', $_->[1];
		is "$r->{header}{'content-type'} $r->{header}{'x-kept'}", 'x/y 1', 'with the fields of the application';
		unlike $r->{head}, qr/sendfile|send-file|x-accel/i, 'and without that one';
	}
	is $srv->fetch("/app/head?X-Sendfile:%20@{[ $srv->dir ]}///files/f.txt")->{body}, 'the file', 'slashes after the root do not count';
	is $srv->fetch("/app/head?X-Sendfile:%20@{[ $srv->dir ]}//")->{status}, 403, 'the root itself is not a file';
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
	my $r = $srv->fetch('/app/head?X-Sendfile-Type:%20a|X-Reproxy-URL:%20http://x/|X-Rewrite-URI:%20/a|'
		. 'X-Accel-Mapping:%20/a|X-Accel-Buffering:%20no|X-LIGHTTPD-send-tempfile:%20/a|X-Ok:%201');
	is join(' ', grep { /^x-/ } sort keys %{ $r->{header} }), 'x-ok', 'other control fields never leak';
};

undef $srv;

subtest 'X-Sendfile without permission sends the reply as it is' => sub {
	my $s = Test::Server->start(conf => conf('allow-x-sendfile' => 'disable'));
	my $r = $s->fetch('/app/head?X-Sendfile:%20/etc/passwd|X-Accel-Redirect:%20/x|X-LIGHTTPD-send-file:%20/etc/passwd');
	is "$r->{status} $r->{body}", '200 body', 'the body of the application is sent';
	unlike $r->{head}, qr/passwd|x-accel/i, 'and the fields still do not leak';
};

subtest 'proxy-core.debug logs each lease' => sub {
	my $s = Test::Server->start(conf => conf('debug' => 1));
	$s->fetch('/app/env') for 1, 2;
	like $s->wait_log(qr/pool\.lease.*served=1/), qr/ev=pool\.lease backend=unix:\S+ served=0 busy=1 /,
		'a line for each socket that a request gets';
} unless $once;

subtest 'a silent application is 504, a full pool 503' => sub {
	my $s = Test::Server->start(conf => conf('read-timeout' => 1, 'wait-timeout' => 1, 'max-pool-size' => 1));
	my $first = $s->connect;
	$first->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n");
	my $t = time;
	is $first->reply->{status}, 504, 'a silent application';
	cmp_ok time - $t, '<', Test::Util::SOON, 'in time';
	$first->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n");
	my $second = $s->connect;
	$second->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
	my $r = $second->reply;
	ok $r->{status} == 503 || $r->{status} == 200, "a request that waits for its socket is served or gets 503 ($r->{status})";
	$first->reply;
};

subtest 'a client with many requests leaves places to others' => sub {
	my $s = Test::Server->start(conf => qq{status.statistics-url = "/counters"\n}
		. conf('max-pool-size' => 1, 'max-waiters' => 100, 'wait-timeout' => 300));
	my $ask = sub { my $c = $s->connect(from => $_[0]); $c->send("GET /app/turn HTTP/1.1\r\nHost: x\r\n\r\n"); return $c };
	my @many = map { $ask->('127.0.0.2') } 1 .. 300;
	is $_->reply->{status}, 503, 'what does not fit is refused' for $many[-1];
	my @few = map { $ask->('127.0.0.1') } 1 .. 3;
	is $many[100]->reply->{status}, 503, 'its newest request makes room for another client';
	open my $gate, '>', $app->file('gate') or die "gate: $!";
	is $_->reply->{status}, 200, 'which is answered' for @few;
	my $turns = $app->noted('turns');
	is substr($turns, 0, 10) =~ tr/1//, 3, '... soon: the clients take turns' or diag $turns;
	is scalar(grep { $_->reply->{status} == 200 } @many[0 .. 97]), 98, 'the requests that came first stay';
	like $s->fetch('/counters')->{body}, qr/^proxy-core\.displaced: 3$/m, 'counted';
};

subtest 'a client that resets its connection gives up its place' => sub {
	my $s = Test::Server->start(conf => qq{status.status-url = "/status"\n} . conf('max-pool-size' => 1, 'wait-timeout' => 60));
	my $places = sub { my ($b) = @{ JSON::PP::decode_json($s->fetch('/status?json')->{body})->{backends} }; return "$b->{waiting} of $b->{load}" };
	my $ask = sub { my $c = $s->connect; $c->send("GET /app/$_[0] HTTP/1.1\r\nHost: x\r\n\r\n"); return $c };
	my $thinks = $ask->('silent');
	ok Test::Util::eventually(sub { $places->() eq '0 of 1' }), 'the application thinks' or diag $places->();
	my @c = map { $ask->('env') } 1 .. 10;
	ok Test::Util::eventually(sub { $places->() eq '10 of 11' }), 'ten requests wait for its socket' or diag $places->();
	$_->abort for @c[1 .. 9];
	ok Test::Util::eventually(sub { $places->() eq '1 of 2' }), 'those of clients that have left do not' or diag $places->();
	$thinks->abort;
	is +($c[0]->reply // {})->{status}, 200, 'the client of the request in progress leaves: the next one is served';
	ok Test::Util::eventually(sub { $places->() eq '0 of 0' }), 'and no place is taken' or diag $places->();
};

subtest 'an application that comes back is used again' => sub {
	my $s = Test::Server->start(conf => conf('disable-time' => 1));
	is $s->fetch('/app/env')->{status}, 200, 'alive';
	$app->down;
	my $r = $s->fetch('/app/env');
	is $r->{status}, 503, 'dead';
	like $r->{header}{'retry-after'}, qr/^[1-9]/, 'with Retry-After';
	$app->up;
	ok Test::Util::eventually(sub { $s->fetch('/app/env')->{status} == 200 }), 'back';
	like $s->wait_log(qr/ev=pool\.up/), qr/ev=pool\.down.*ev=pool\.up/s, 'both are in the log';
};

subtest 'a dead backend costs no request' => sub {
	my $s = Test::Server->start(conf => conf(backends => qq{( "unix:$sock.none", "unix:$sock" )}));
	is join(' ', map { $s->fetch('/app/env')->{status} } 1 .. 10), join(' ', (200) x 10), 'no request fails';
};

# One accept loop, bound to each connection for as long as it is kept: libfcgi with one thread.
subtest 'a stalled pool closes kept sockets' => sub {
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
} unless $once;

done_testing;
