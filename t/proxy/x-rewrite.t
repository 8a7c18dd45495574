#!/usr/bin/perl
# X-Rewrite-URI, -Host and -Backend: a request that an application hands to another part of the configuration.

use v5.36;
use Test::More;

use Test::App;
use Test::Http qw(parse);
use Test::Server;

my ($app, $other) = map { Test::App->start } 1, 2;
sub Test::App::do_body { my ($self, $c, $p, $body) = @_; Test::App::out($c, "X-Rewrite-URI: /app/env\r\n\r\n$body"); Test::App::end($c); return 1 }

sub server {
	my (%set) = @_;
	my $srv = Test::Server->start(conf => qq{index-file.names = ( "index.html" )\nserver.max-worker = 1\n}
		. Test::Server::proxy_block('^/app', 'unix:' . $app->socket, 'max-pool-size' => 4, 'max-keep-alive-requests' => 100, 'allow-x-rewrite' => 'enable',
			backends => qq{( "unix:@{[ $app->socket ]}", "unix:@{[ $other->socket ]}" )}, balancer => 'static', %set)
		. Test::Server::proxy_block('^/other', 'unix:' . $other->socket, 'max-pool-size' => 4)
		. qq{\$HTTP["host"] == "inner.example" { server.tag = "inner" }\n});
	$srv->write('file.txt', 'a file');
	$srv->write('index.html', 'an index');
	return $srv;
}

# The head of the reply, with | between its lines.
sub ask {
	my ($srv, $head, @header) = @_;
	return $srv->fetch('/app/head?' . $head =~ s/([^A-Za-z0-9:|_.-])/sprintf '%%%02x', ord $1/ger, @header);
}

sub env { my ($r) = @_; return { map { split /=/, $_, 2 } split /\n/, $r->{body} } }

my $srv = server();
subtest 'where a request goes' => sub {
	is ask($srv, 'X-Rewrite-URI: /file.txt')->{body}, 'a file', 'to a file';
	is ask($srv, 'X-Rewrite-URI: /')->{body}, 'an index', 'to an index file';
	is ask($srv, 'X-Rewrite-URI: /none')->{status}, 404, 'to nothing';
	is ask($srv, 'Status: 500 x|X-Rewrite-URI: /file.txt')->{status}, 200, 'the status of the reply is dropped';
	is ask($srv, 'Set-Cookie: a=b|X-Rewrite-URI: /file.txt')->{header}{'set-cookie'}, undef, '... and its fields';
	my $env = env(ask($srv, 'X-Rewrite-URI: /app/env/a%20b?x=1', 'X-Mine' => 'yes'));
	is $env->{SCRIPT_NAME}, '/app/env/a b', 'to an application: SCRIPT_NAME';
	is $env->{QUERY_STRING}, 'x=1', '... QUERY_STRING';
	is $env->{REDIRECT_URI}, '/app/env/a%20b?x=1', '... REDIRECT_URI';
	like $env->{REQUEST_URI}, qr{^/app/head\?}, '... REQUEST_URI is that of the client';
	is $env->{HTTP_X_MINE}, 'yes', '... with the fields of the client';
	is env(ask($srv, 'X-Rewrite-URI: /app/env'))->{QUERY_STRING}, '', 'without a query';
	is env(ask($srv, 'X-Rewrite-URI: /app/../app/./env'))->{SCRIPT_NAME}, '/app/env', 'a path is cleaned';
	like $srv->head('/app/head?X-Rewrite-URI:%20/file.txt'), qr/^HTTP\S+ 200 .*\r\n\r\n\z/s, 'HEAD';
	is ask($srv, 'X-Rewrite-URI: /file.txt', Range => 'bytes=2-5')->{body}, 'file', 'a range';
};

subtest 'the host' => sub {
	my $r = ask($srv, 'X-Rewrite-URI: /file.txt|X-Rewrite-Host: Inner.example');
	is $r->{header}{server}, 'inner', 'conditions see it';
	my $env = env(ask($srv, 'X-Rewrite-URI: /app/env|X-Rewrite-Host: inner.example:81'));
	is $env->{HTTP_HOST}, 'inner.example:81', 'applications see it';
	is $env->{SERVER_NAME}, 'inner.example', '... as SERVER_NAME, too';
	is env(ask($srv, 'X-Rewrite-URI: http://inner.example/app/env'))->{HTTP_HOST}, 'inner.example', 'it may be a part of the URI';
};

subtest 'the backend' => sub {
	my $before = length $other->noted('connections');
	is env(ask($srv, "X-Rewrite-URI: /app/env|X-Rewrite-Backend: unix:@{[ $other->socket ]}"))->{SCRIPT_NAME}, '/app/env', 'a member of the list';
	is length($other->noted('connections')) - $before, 1, '... gets the request';
	for my $backend ('unix:' . $other->file('none'), '127.0.0.1:1', 'unix:' . $other->socket . ' ', '') {
		my $r = ask($srv, "X-Rewrite-URI: /app/env|X-Rewrite-Backend: $backend");
		$backend =~ / \z/ ? is $r->{status}, 200, 'blanks at the end do not count' : is $r->{status}, 502, "'$backend' is not in the list";
	}
	is ask($srv, "X-Rewrite-URI: /other/app/env|X-Rewrite-Backend: unix:@{[ $app->socket ]}")->{status}, 502, 'the list is that of the block that answers';
	like $srv->wait_log(qr/rewrite\.refused.*127\.0\.0\.1:1/), qr/ev=rewrite\.refused .*backend=127\.0\.0\.1:1 /, 'and the log says so';
	my $dead = server(backends => qq{( "unix:@{[ $app->socket ]}", "unix:@{[ $other->file('none') ]}" )});
	is ask($dead, "X-Rewrite-URI: /app/env|X-Rewrite-Backend: unix:@{[ $other->file('none') ]}")->{status}, 503, 'no other backend takes its place';
};

subtest 'what a client could not ask for' => sub {
	my @bad = ('/../etc/passwd', '/a%00b', '/a%2fb', '/a b', '/a HTTP/1.0', 'a', '', '*', "/a\tb", '/a%zz', 'ftp://x/', '//');
	for my $uri (@bad) {
		my $r = ask($srv, "X-Rewrite-URI: $uri");
		$uri eq '//' ? is $r->{body}, 'an index', "'$uri' is a path" : is $r->{status}, 502, "'$uri': 502";
	}
	is ask($srv, "X-Rewrite-URI: /file.txt|X-Rewrite-Host: $_")->{status}, 502, "host '$_': 502" for 'a b', 'a/b', 'a@b', 'x:99999';
	like $srv->wait_log(qr/rewrite\.refused .*uri=/), qr/ev=rewrite\.refused .*uri=/, 'in the log';
};

subtest 'a loop ends' => sub {
	my $before = length $app->noted('connections');
	is ask($srv, 'X-Rewrite-URI: /app/head?X-Rewrite-URI:%20/file.txt')->{body}, 'a file', 'twice is allowed';
	is ask($srv, 'X-Rewrite-URI: /app/head?X-Rewrite-Host:%20x')->{status}, 500, 'the eleventh time is not';
	like $srv->wait_log(qr/route\.loop/), qr/ev=route\.loop .*limit=10 /, '... and is logged';
};

subtest 'a request with a body' => sub {
	my $c = $srv->connect;
	for my $length (0, 4, 100_000) {
		$c->send("POST /app/body HTTP/1.1\r\nHost: x\r\nContent-Length: $length\r\n\r\n" . 'x' x $length);
		is $c->reply->{status}, $length ? 502 : 200, "$length bytes";
	}
	$c->send("POST /app/body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
	is $c->reply->{status}, 502, 'chunked';
	$c->send("GET /file.txt HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{body}, 'a file', 'the connection goes on';
};

subtest 'beside other headers' => sub {
	is ask($srv, "X-Sendfile: @{[ $srv->dir ]}/index.html|X-Rewrite-URI: /file.txt")->{body}, 'a file', 'it comes first';
	like $srv->wait_log(qr/control\.dropped/), qr/ev=control\.dropped .*header=X-Sendfile .*routed again/, '... and the other is logged';
	is ask($srv, 'X-Rewrite-Colour: red|X-Ok: 1')->{header}{'x-ok'}, 1, 'an unknown name is dropped';
};

subtest 'without permission' => sub {
	my $s = server('allow-x-rewrite' => 'disable');
	my $r = ask($s, 'X-Rewrite-URI: /file.txt|X-Rewrite-Host: x|X-Rewrite-Backend: y|X-Ok: 1');
	is "$r->{status} $r->{body}", '200 body', 'the reply is sent';
	is join(' ', grep { /^x-/ } sort keys %{ $r->{header} }), 'x-ok', '... without the headers';
	like $s->wait_log(qr/control\.dropped/), qr/ev=control\.dropped .*allow-x-rewrite/, '... which are logged';
};

subtest 'pipelined' => sub {
	my $c = $srv->connect;
	$c->send(join '', map { "GET $_ HTTP/1.1\r\nHost: x\r\n\r\n" } '/file.txt', '/app/head?X-Rewrite-URI:%20/', '/app/head?X-Rewrite-URI:%20/file.txt|X-Rewrite-Host:%20inner.example', '/file.txt');
	is $c->reply->{body}, $_, $_ for 'a file', 'an index';
	is $c->reply->{header}{server}, $_, "server $_" for 'inner', 'stat-accel';
};

done_testing;
