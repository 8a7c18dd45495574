# HTTP/2: files over it, in clear and with TLS, what logs and applications see of it, and how a connection ends.
use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http2 qw(:all);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually need_program put slurp);
use Test::Wire ();

my $mounts = Test::Server::own_mounts();
my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'first');
my $curl = need_program('curl', 'curl');
my $app = Test::App->start;
my $tls = qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n};
my %large = map { $_ => join '', map { "$_ of the line\n" } $_ * 1000 .. $_ * 1000 + 30_000 } 1 .. 6;

sub start ($conf = '', %arg) {
	my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\nserver.max-worker = 1\n}
		. qq{accesslog.format = "%s %H %m %U %{Host}i"\nstatus.statistics-url = "/counters"\n$conf}
		. Test::Server::proxy_block('^/app/', 'unix:' . $app->socket), %arg);
	$srv->write('a.txt', "hello\n");
	$srv->write("$_.txt", "file $_\n") for 1 .. 100;
	$srv->write("large$_", $large{$_}) for keys %large;
	return $srv;
}

# Runs curl: exit status, version and status of HTTP, and the body.
sub curl ($srv, $url, @args) {
	my $out = "$keys/out";
	open my $pipe, '-|', $curl, '-s', '--max-time', 60, '--cacert', $cert->{pem}, '-o', $out, '-w', '%{http_version} %{http_code}', @args, $url
		or die "curl: $!";
	my $said = join '', <$pipe>;
	close $pipe;
	return ($? >> 8, $said, slurp($out));
}

# ---------------------------------------------------------------- files

sub files ($name, $srv, $h, $secure) {
	my $r = $h->get('/a.txt');
	is "$r->{status} $r->{body}", "200 hello\n", "$name: a file";
	is_deeply [map { $r->{header}{$_} // '-' } qw(content-length content-type connection transfer-encoding keep-alive)], [6, 'text/plain', '-', '-', '-'], 'its fields';
	ok !(grep { $_->[0] =~ /[A-Z]/ } @{ $r->{fields} }), 'names are lower case';
	my $tag = $r->{header}{etag};
	is $h->get('/a.txt', 'If-None-Match' => $tag)->{status}, 304, 'not modified';
	is_deeply [@{ $h->get('/a.txt', Range => 'bytes=1-2') }{qw(status body)}], [206, 'el'], 'a range';
	my $two = $h->get('/a.txt', Range => 'bytes=0-0,4-4');
	is $two->{status}, 206, 'two ranges';
	is_deeply [map { $_->[2] } @{ Test::Http::parts($two) // [] }], ['h', 'o'], 'and their parts';
	is $h->get('/a.txt', Range => 'bytes=9-')->{status}, 416, 'a range beyond the end';
	is $h->get('/none')->{status}, 404, 'a file that is missing';
	$r = $h->head('/a.txt');
	is_deeply [$r->{status}, $r->{header}{'content-length'}, $r->{body}, $r->{error}], [200, 6, '', undef], 'HEAD';
	my @r = $h->gather(map { $h->open(GET => "/$_.txt") } 1 .. 100);
	is_deeply [map { "$_->{status} $_->{body}" } @r], [map { "200 file $_\n" } 1 .. 100], '100 streams at once';
	@r = $h->gather(map { $h->open(GET => "/large$_") } sort keys %large);
	is_deeply [map { md5_hex($_->{body}) } @r], [map { md5_hex($large{$_}) } sort keys %large], 'large ones at once, byte for byte';
	$r = $h->request(PUT => '/a.txt', body => 'x' x 100_000, 'Content-Length' => 100_000);
	is $r->{status}, 405, 'PUT is refused';
	$r = $h->request(POST => '/a.txt', body => 'y' x 100_000);
	is $r->{status}, 405, '... POST without a length, too';
	is $h->request(OPTIONS => '*')->{status}, 200, 'OPTIONS *';
	is $h->get('/a.txt')->{body}, "hello\n", 'the connection goes on';
	is $h->{goaway}, undef, 'without GOAWAY';
	return;
}

subtest 'files in clear' => sub {
	my $srv = start();
	files('clear', $srv, Test::Http2->connect($srv), 0);
	my @lines = $srv->wait_lines(1, qr{^405 HTTP/2\.0 POST /a\.txt}, 'access.log');
	is $lines[0], '405 HTTP/2.0 POST /a.txt localhost', 'the access log has the version and the host';
	my $hot = Test::Http2->connect($srv);
	$hot->gather(map { $hot->open(GET => "/$_.txt") } 1 .. 100);
	my @order = map { m{ GET /([0-9]+)\.txt } } $srv->wait_lines(200, qr{^200 HTTP/2\.0 GET /[0-9]+\.txt }, 'access.log');
	is_deeply [@order[-100 .. -1]], [1 .. 100], '... and streams in the order of their replies';
	is $srv->get('/a.txt') =~ m{^HTTP/1\.1 200 .*\r\n\r\nhello\n\z}s, 1, 'HTTP/1.1 beside it';
	cmp_ok $srv->counter('server.http2.streams'), '>=', 115, 'streams are counted';
};

subtest 'the client leaves in the middle of replies' => sub {
	my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\naccesslog.format = "%X %U"\n});
	$srv->write("large$_", $large{$_}) for keys %large;
	for my $way (qw(abort finish)) {
		my $h = Test::Http2->connect($srv, window => 10_000);
		my @id = map { $h->open(GET => "/large$_") } 1 .. 3;
		$h->await(sub ($f) { 3 == grep { length $h->{stream}{$_}{reply}{body} } @id }) or fail 'each has a part of its reply';
		$h->$way;
		$h->{conn}->sock->close;
	}
	my @cut = $srv->wait_lines(6, qr/^X /, 'access.log');
	is_deeply [sort @cut], [sort map { ("X /large$_") x 2 } 1 .. 3], 'each has a line that says so';
};

subtest 'files with TLS' => sub {
	my $srv = start($tls);
	my $h = Test::Http2->connect($srv, tls => 1);
	is $h->{alpn}, 'h2', 'ALPN chooses h2';
	files('TLS', $srv, $h, 1);
	is(Test::Http2->connect($srv, tls => 1, preface => 0, alpn => ['http/1.1'])->{alpn}, 'http/1.1', 'a client without h2 gets HTTP/1.1');
	is(Test::Http2->connect($srv, tls => 1, preface => 0, alpn => ['http/1.1', 'h2'])->{alpn}, 'h2', 'one that has both gets h2');
	my $c = Test::Http2->connect($srv, tls => 1, preface => 0, alpn => ['http/1.1']);
	$c->send(PREFACE);
	ok $c->closed, 'the preface where HTTP/1.1 was agreed on';
	unlike $c->{in}, qr/^\0/, 'is not answered as HTTP/2';
};

subtest 'curl' => sub {
	my $srv = start($tls);
	my $url = "https://127.0.0.1:@{[ $srv->port ]}";
	is_deeply [curl($srv, "$url/a.txt")], [0, '2 200', "hello\n"], 'GET';
	is_deeply [curl($srv, "$url/a.txt", '--http1.1')], [0, '1.1 200', "hello\n"], 'HTTP/1.1';
	put("$keys/up", 'u' x 2_000_000);
	for ([], ['-H', 'Expect:']) {
		my ($rc, $said, $body) = curl($srv, "$url/a.txt", '-T', "$keys/up", @$_);
		is $said, '2 405', "PUT @$_: the reply arrives";
	}
	my @url = map { ('-o', "$keys/p$_", "$url/large$_") } sort keys %large;
	is system($curl, '-s', '--no-progress-meter', '-Z', '--cacert', $cert->{pem}, @url), 0, 'six at once';
	is_deeply [map { md5_hex(slurp("$keys/p$_")) } sort keys %large], [map { md5_hex($large{$_}) } sort keys %large], 'byte for byte';
	my $clear = start();
	is_deeply [curl($clear, "http://127.0.0.1:@{[ $clear->port ]}/a.txt", '--http2-prior-knowledge')], [0, '2 200', "hello\n"], 'in clear';
	is_deeply [curl($clear, "http://127.0.0.1:@{[ $clear->port ]}/a.txt", '--http2')], [0, '1.1 200', "hello\n"], 'an Upgrade is not followed (RFC 9113 3.1)';
};

# ---------------------------------------------------------------- what others see

subtest 'what an application sees' => sub {
	for my $secure (0, 1) {
		my $srv = start($secure ? $tls : '');
		my $h = Test::Http2->connect($srv, tls => $secure, host => 'some.example:81');
		my %is = map { split /=/, $_, 2 } split /\n/, $h->get('/app/env?x=1', Cookie => ['a=1', 'b=2', 'c=3'], 'X-One' => 'a b', TE => 'trailers')->{body};
		is_deeply [map { $is{$_} // '-' } qw(SERVER_PROTOCOL REQUEST_METHOD REQUEST_URI QUERY_STRING HTTP_HOST HTTP_COOKIE HTTP_X_ONE HTTP_TRANSFER_ENCODING CONTENT_LENGTH)],
			['HTTP/2.0', 'GET', '/app/env?x=1', 'x=1', 'some.example:81', 'a=1; b=2; c=3', 'a b', '-', $is{CONTENT_LENGTH} // '-'], $secure ? 'TLS' : 'clear';
		is_deeply [map { $is{$_} // '-' } qw(REQUEST_SCHEME HTTPS)], $secure ? ['https', 'on'] : ['http', $is{HTTPS} // '-'], 'the scheme is that of the connection';
		%is = map { split /=/, $_, 2 } split /\n/, $h->get('/app/env', ':scheme' => $secure ? 'http' : 'https')->{body};
		is $is{REQUEST_SCHEME}, $secure ? 'https' : 'http', '... whatever the client says';
		is $h->get('/a.txt', Host => 'some.example:81')->{status}, 200, 'Host that is :authority';
		is error_name($h->get('/a.txt', Host => 'other')->{error} // -1), 'PROTOCOL_ERROR', 'Host that is another';
		my @r = $h->gather($h->open(GET => '/a.txt', ':authority' => 'x', 'Connection' => 'close'), $h->open(GET => '/a.txt'));
		is_deeply [map { $_->{status} } @r], [0, 200], 'a field of HTTP/1 ends its stream only';
	}
};

subtest 'only Host, as from a gateway of HTTP/1' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	my $id = 1;
	$h->{stream}{1} = { window => 65_535, reply => { body => '' } };
	$h->headers(1, [[':method', 'GET'], [':scheme', 'http'], [':path', '/app/env'], ['host', 'old.example']]);
	like(($h->gather(1))[0]{body}, qr/^HTTP_HOST=old\.example$/m, 'it is the host');
	$h->{stream}{3} = { window => 65_535, reply => { body => '' } };
	$h->headers(3, [[':method', 'GET'], [':scheme', 'http'], [':path', '/a.txt']]);
	is error_name(($h->gather(3))[0]{error} // -1), "PROTOCOL_ERROR", "a request without any is malformed";
};

subtest 'numbers of requests' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	$h->get('/none') for 1 .. 2;
	$h->get("/app/garbage");
	my $other = Test::Http2->connect($srv);
	$other->get("/app/garbage");
	my @id = map { /\bid=(c\d+\.\d+)/ ? $1 : () } $srv->wait_lines(2, qr/\bid=c\d+\.\d+/);
	my ($c) = $id[0] =~ /^(c\d+)\./;
	is $id[0], "$c.3", 'the third stream of a connection';
	like $id[1], qr/^(?!\Q$c\E)c\d+\.1$/, 'the first of another';
};

subtest '$HTTP conditions and forwarded scheme' => sub {
	my $srv = start(qq{extforward.forwarder = ( "127.0.0.1" => "trust" )\nserver.modules += ( "mod_extforward" )\n});
	my $h = Test::Http2->connect($srv);
	my $body = $h->get('/app/env', 'X-Forwarded-For' => '192.0.2.7', 'X-Forwarded-Proto' => 'https')->{body};
	like $body, qr/^REQUEST_SCHEME=https$/m, 'a trusted proxy names the scheme';
	like $body, qr/^REMOTE_ADDR=192\.0\.2\.7$/m, 'and the client';
	$body = $h->get('/app/env', 'X-Forwarded-For' => '192.0.2.8', 'X-Forwarded-Proto' => 'http')->{body};
	like $body, qr/^REMOTE_ADDR=192\.0\.2\.8$/m, 'another one in the next stream';
	like $body, qr/^REQUEST_SCHEME=http$/m, 'and its scheme';
};

# ---------------------------------------------------------------- bodies

subtest 'Expect: 100-continue' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	my $id = $h->open(POST => '/app/echo', end => 0, Expect => '100-continue', 'Content-Length' => 5);
	ok $h->await(sub ($f) { @{ $h->reply($id)->{interim} } }), 'the server asks for the body';
	is $h->reply($id)->{interim}[0]{status}, 100, 'by 100 Continue';
	$h->data($id, 'bytes', end => 1);
	like(($h->gather($id))[0]{body}, qr/bytes/, 'and gets it');
	$id = $h->open(POST => '/a.txt', end => 0, Expect => '100-continue', 'Content-Length' => 5);
	my ($r) = $h->gather($id);
	is_deeply [$r->{status}, scalar @{ $r->{interim} }], [405, 0], 'nobody wants it: refused at once';
	is $h->get('/a.txt')->{status}, 200, 'the connection goes on';
};

# ---------------------------------------------------------------- switched off

subtest 'server.h2proto' => sub {
	my $srv = start("${tls}server.h2proto = \"disable\"\n");
	is(Test::Http2->connect($srv, tls => 1, preface => 0, alpn => ['h2', 'http/1.1'])->{alpn}, 'http/1.1', 'ALPN chooses http/1.1');
	is_deeply [curl($srv, "https://127.0.0.1:@{[ $srv->port ]}/a.txt")], [0, '1.1 200', "hello\n"], 'curl falls back';
	my $clear = start(qq{server.feature-flags = ( "server.h2proto" => "disable" )\n});
	like $clear->request(PREFACE), qr{^HTTP/1\.1 (?:400|505) }, 'the preface is a bad request';
	unlike $srv->log . $clear->log, qr/no effect/, 'the flag has an effect';
};

subtest 'server.h2c' => sub {
	my $flag = qq{server.feature-flags = ( "server.h2c" => "disable" )\n};
	like start($flag)->request(PREFACE), qr{^HTTP/1\.1 (?:400|505) }, 'in clear the preface is a bad request';
	is(Test::Http2->connect(start("$tls$flag"), tls => 1)->get('/a.txt')->{body}, "hello\n", 'with TLS it is spoken');
};

subtest 'doc/server.md' => sub {
	my ($chapter) = slurp("$FindBin::Bin/../../doc/server.md") =~ /^## HTTP\/2\n(.*?)^## /ms;
	my @line = $chapter =~ /^ {4}(\S.*)\n/mg;
	my @flag = grep { /^server\./ } @line;
	is scalar @flag, 2, 'two settings';
	is start("$_\n")->get('/a.txt') =~ m{^HTTP/1\.1 200 } ? 1 : 0, 1, $_ for @flag;
	need_program('h2load', 'nghttp2-client');
	my $srv = start();
	$srv->write('page.txt', "page\n");
	my $bin = Test::Util::program('accel-load') =~ s{/[^/]+\z}{}r;
	for my $command (grep { /^(?:h2load|accel-load|curl) / } @line) {
		my $here = $command =~ s/8080/$srv->port/er;
		my $said = qx{PATH="$bin:\$PATH" $here 2>&1};
		is $?, 0, $command;
		like $said, qr/5000 succeeded|5000 answered|^page$/mi, 'it has got all';
	}
};

# ---------------------------------------------------------------- the end

subtest 'server.max-keep-alive-requests' => sub {
	my $srv = start(qq{server.max-keep-alive-requests = 5\n});
	my $h = Test::Http2->connect($srv);
	my @r = $h->gather(map { $h->open(GET => "/$_.txt") } 1 .. 5);
	is_deeply [map { $_->{body} } @r], [map { "file $_\n" } 1 .. 5], 'as many as allowed';
	ok $h->closed, 'then the connection ends';
	is_deeply [@{ $h->{goaway} }[0, 1]], [9, NO_ERROR], 'and GOAWAY names the last stream';
	$h = Test::Http2->connect($srv);
	@r = $h->gather(my @id = map { $h->open(GET => "/$_.txt") } 1 .. 20);
	my $last = ($h->{goaway} // [39])[0];
	is_deeply [map { $_->{status} } grep { $_->{id} <= $last } @r], [map { 200 } grep { $_ <= $last } @id], 'what was sent before the client knew is answered';
};

subtest 'an idle connection' => sub {
	my $srv = start(qq{server.max-keep-alive-idle = 1\nserver.max-read-idle = 2\n});
	my $h = Test::Http2->connect($srv);
	is $h->get('/a.txt')->{status}, 200, 'a request';
	ok $h->closed, 'closed after server.max-keep-alive-idle';
	is_deeply [@{ $h->{goaway} }[0, 1]], [1, NO_ERROR], 'with GOAWAY';
	my $never = Test::Http2->connect($srv);
	ok $never->closed, 'one without a request after server.max-read-idle';
	my $half = Test::Http2->connect($srv, ack => 0);
	$half->frame(HEADERS, 0, 1, "\x82");
	ok $half->closed, 'one with half of a head, too';
	is $srv->get('/counters') =~ /^server\.http2\.failed: 0$/m, 1, 'nobody broke a rule';
};

subtest 'the client ends' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	$h->frame(GOAWAY, 0, 0, pack 'NN', 0, 0);
	ok $h->closed, "GOAWAY of a client without streams: closed";
	$h = Test::Http2->connect($srv);
	my @id = map { $h->open(GET => "/large$_") } 1 .. 3;
	$h->frame(GOAWAY, 0, 0, pack "NN", 0, 0);
	is_deeply [map { length $_->{body} } $h->gather(@id)], [map { length $large{$_} } 1 .. 3], "its streams end whole";
	ok $h->closed, "then the server closes";
	my $odd = Test::Http2->connect($srv, preface => 0);
	$odd->send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" . Test::Http2::frame_bytes(SETTINGS, 0, 0));
	ok $odd->closed, 'half a preface, then something else';
	my @got;
	for my $n (1 .. length(PREFACE) - 1) {
		my $slow = Test::Http2->connect($srv, preface => 0);
		$slow->send(substr PREFACE, 0, $n);
		$srv->get('/a.txt');
		$slow->send(substr PREFACE, $n)->settings;
		push @got, $slow->get('/a.txt')->{status};
	}
	is_deeply \@got, [(200) x @got], 'a preface in two pieces, at each byte';
};

done_testing;
