# AJP 1.3 to an application of a few lines of Perl: the secret, sizes, sockets, paths, bodies without a length.
use v5.36;
use Digest::MD5 qw(md5_hex);
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::INET ();
use JSON::PP ();
use Test::App;
use Test::More;
use Test::Server;

my $app = Test::App->start(protocol => 'ajp13');

sub start (%set) {
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nserver.stream-request-body = 1\n}
	    . qq{server.max-request-field-size = 65000\nserver.upload-dirs = ( "\@RUN\@" )\nstatus.status-url = "/status"\n}
	    . Test::Server::proxy_block('^/app', 'unix:' . $app->socket, protocol => 'ajp13', 'max-pool-size' => 1,
		'max-keep-alive-requests' => 1000, secret => 'Geheimnis', 'rewrite-request' => '( "_uri" => ( "^/app/old(.*)$" => "/app/env$1" ) )', %set));
}

sub env ($reply) { return map { split /=/, $_, 2 } split /\n/, $reply->{body} }

my $srv = start();

subtest 'what the container learns' => sub {
	my %env = env($srv->fetch('/app/env/%252e;x=%2525?a=%20&b?c'));
	is $env{REQUEST_URI}, '/app/env/%252e;x=%2525?a=%20&b?c', 'the path and the query as they were sent';
	is $env{AJP_SECRET}, 'Geheimnis', 'the secret';
	like "$env{REMOTE_ADDR} $env{REMOTE_PORT} $env{SERVER_PORT} $env{SERVER_NAME}", qr/^127\.0\.0\.1 [1-9]\d+ @{[ $srv->port ]} \S+$/, 'both addresses';
	%env = env($srv->fetch('/app/old?q'));
	is $env{REQUEST_URI}, '/app/env?q', 'a rewrite makes another path and query';
	%env = env(Test::Http::parse($srv->request("PATCH /app/env HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc")));
	is "$env{REQUEST_METHOD} $env{CONTENT_LENGTH}", 'PATCH 3', 'a method without a number';
};

subtest 'the secret is nowhere else' => sub {
	unlike $srv->log, qr/Geheimnis/, 'not in the log';
	unlike $srv->fetch("/status$_")->{body}, qr/Geheimnis/, "not on the page /status$_" for '', '?json', '?auto';
	my %env = env(start(secret => '')->fetch('/app/env'));
	is $env{AJP_SECRET}, undef, 'without a setting none is sent';
};

{
	package Test::App::Tcp;         # X-Reproxy-URL names a host and a port
	use parent -norequire, 'Test::App';
	sub listen ($self) {
		my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128) or die "listen: $!";
		$self->{address} = '127.0.0.1:' . $l->sockport;
		return $l;
	}
}

subtest 'X-Reproxy-URL: each block has its own secret' => sub {
	my @to = map { Test::App::Tcp->start(protocol => 'ajp13') } 1 .. 2;
	my $two = Test::Server->start(conf => join '', map { Test::Server::proxy_block(@$_[0, 1], protocol => 'ajp13', @$_[2 .. $#$_]) }
	    ['^/app', 'unix:' . $app->socket, secret => 'Geheimnis', 'allow-x-reproxy' => 'enable'], ['^/two', $to[0]{address}, secret => 'other'], ['^/three', $to[1]{address}]);
	for my $case ([$to[0], 'other'], [$to[1], undef]) {
		my %env = env($two->fetch("/app/head?X-Reproxy-URL:%20http://$case->[0]{address}/app/env"));
		is $env{REQUEST_URI}, '/app/env', 'the other container answers';
		is $env{AJP_SECRET}, $case->[1], '... and gets ' . ($case->[1] // 'none');
	}
};

subtest 'conditions see the path without its parameters, as a container does' => sub {
	my $s = Test::Server->start(conf => qq{server.max-worker = 1\n} . Test::Server::proxy_block('^/app', 'unix:' . $app->socket, protocol => 'ajp13')
	    . qq[\$HTTP["url"] =~ "^/app/admin/" {\n\tproxy-core.authorizer = ( "unix:@{[ $app->file('none') ]}" )\n}\n]
	    . qq[\$HTTP["url"] =~ "\\.png\$" {\n\tproxy-core.backends = ( )\n}\n]);
	is $s->fetch($_)->{status}, 503, "$_: the authorizer is asked" for '/app/admin/env', '/app/admin;/env', '/app/admin;x=1/env', '/app;a/admin;b;c/env;d', '/app/admin;a%2e/env', '/app/admin%3bx/env';
	for my $path ('/app/env;x=1?;a', '/app/env;x/admin;y', '/app;/app/env', '/app/env/a.png;x') {
		my %env = env($s->fetch($path));
		is $env{REQUEST_URI}, $path, "$path: is not";
	}
};

subtest 'a request is one packet' => sub {
	my $failed = sub { my ($b) = @{ JSON::PP::decode_json($srv->fetch('/status?json')->{body})->{backends} // [] }; return $b->{failed} // 0 };
	my $before = $failed->();
	is $srv->fetch('/app/env', 'X-Big' => 'b' x 7000)->{status}, 200, '7000 bytes of a field';
	is $srv->fetch('/app/env', 'X-Big' => 'b' x 8192)->{status}, 431, '8192 are too many';
	is $srv->fetch('/app/env', 'X-Big' => 'b' x 60000)->{status}, 431, 'and so are 60000';
	is $failed->(), $before, 'the backend has not failed';
	is $srv->fetch('/app/env')->{status}, 200, 'and serves';
	$srv->log_has(qr/the request is too large for a backend/, 'the log says why');
};

subtest 'paths that a container reads otherwise' => sub {
	for my $path ('/app/..;/x', '/app/..;a=b/x', '/app/%2e%2e;/x', '/app/.;/env', '/;/app/env', '/app/%2E%2e%3b/env') {
		is $srv->fetch($path)->{status}, 400, $path;
	}
	is $srv->fetch($_)->{status}, 200, $_ for '/app/env;jsessionid=1', '/app/env/;x', '/app/env/..x;y';
};

subtest 'a body without a length' => sub {
	for my $n (0, 1, 8186, 8187, 300_000) {
		my $body = substr join('', map { md5_hex($_) } 1 .. 1 + $n / 32), 0, $n;
		my $chunks = join '', map { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a5000)*', $body;
		my $r = Test::Http::parse($srv->request("POST /app/sum HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n"));
		is $r->{body}, "$n " . md5_hex($body), "$n bytes in chunks";
	}
};

subtest 'hundreds of requests on one socket' => sub {
	my $before = length $app->noted('connections');
	my $c = $srv->connect;
	for my $i (1 .. 300) {
		my $n = $i % 7 * 2000;
		$c->send($n ? "POST /app/upload HTTP/1.1\r\nHost: x\r\nContent-Length: $n\r\n\r\n" . 'u' x $n : "GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
		my $r = $c->reply;
		$r->{status} == 200 && ($n == 0 || $r->{body} eq "$n " . md5_hex('u' x $n)) or fail "request $i";
	}
	cmp_ok length($app->noted('connections')) - $before, '<=', 1, 'with and without bodies';
};

subtest 'CPing' => sub {
	my $asked = start('check-url' => '*', 'check-interval' => 1);
	is $asked->fetch('/app/env')->{status}, 200, 'the first request begins the checks';
	$app->down;
	$asked->log_has(qr/ev=check\.failed/, 'no answer: no requests');
	is $asked->fetch('/app/env')->{status}, 503, 'they get 503';
	$app->up;
	$asked->log_has(qr/ev=check\.passed/, 'CPong: requests again');
	ok Test::Util::eventually(sub { $asked->fetch('/app/env')->{status} == 200 }), 'which are answered';
};

done_testing;
