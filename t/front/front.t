# t/front: what clients of HTTP/1.1 get from nginx, through HTTP/2.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Front ();
use Test::Http qw(req request_head);
use Test::More;
use Test::Site ();
use Test::Util qw(eventually put slurp temp_tree);

my $dir = temp_tree();
my $large = join '', map { "line $_\n" } 1 .. 100_000;
put("$dir/small.txt", "hi\n");
put("$dir/empty.txt", '');
put("$dir/large.txt", $large);
chmod 0777, "$dir";
Test::Site->need('nginx');
my $site = Test::Site->start('nginx', '', root => "$dir", behind => [], text => Test::Site->shortest('nginx', '', <<'CONF'));
	log_format it '$remote_addr $server_protocol $request_method $uri';
	server {
		access_log /run/access.log it;
		listen 8080 http2;
		root /srv/www;
		types { text/plain txt; }
		client_max_body_size 10m;
		location /gzip/ { alias /srv/www/; gzip on; gzip_types text/plain; gzip_min_length 1; }
		location /trailer/ { alias /srv/www/; gzip on; gzip_types text/plain; gzip_min_length 1; add_trailer X-Trailer after; }
		location /put/ { dav_methods PUT; create_full_put_path on; }
		location /host { return 200 "$host $http_x_hop $http_x_end $scheme"; }
	}
CONF
my $front = Test::Front->start($site->{port});
sub client (%opt) { return Test::Http::Conn->new($front->port, %opt) }
sub ask ($bytes) { my $c = client(); $c->send($bytes); return Test::Http::parse($c->rest) }

my $c = client();
$c->send(req('/small.txt'));
my $r = $c->reply;
is "$r->{status} $r->{reason} $r->{body}", "200 OK hi\n", 'a file';
like $r->{head}, qr/^Content-Length: 3\r\n.*^ETag: /ms, 'names as HTTP/1 writes them';
unlike $r->{head}, qr/^Connection:/m, 'which keeps the connection';
$c->send(req('/large.txt'));
ok $c->reply->{body} eq $large, 'a large one';
$c->send(join '', map { req("/$_.txt") } map { ("large", "small", "none") } 1 .. 20);
is_deeply [map { length $c->reply->{body} } 1 .. 2], [length $large, 3], 'pipelined: in order';
$c->reply for 1 .. 57;
is $c->reply->{status}, 404, 'the last of 60';
$c->send("HEAD /large.txt HTTP/1.1\r\nHost: x\r\n\r\n" . req('/empty.txt'));
is $c->reply('HEAD')->{header}{'content-length'}, length $large, 'HEAD';
is $c->reply->{body}, '', 'an empty body';
$c->send(req('/small.txt', 'If-None-Match: ' . $r->{header}{etag}) . req('/small.txt', 'Connection: close'));
is $c->reply->{status}, 304, 'not modified';
$r = $c->reply;
is $r->{header}{connection}, 'close', 'Connection: close';
ok $c->closed, 'and it closes';

$r = ask(request_head(GET => '/gzip/large.txt', 'Accept-Encoding' => 'gzip'));
is $r->{header}{'transfer-encoding'}, 'chunked', 'a length that is not known';
ok length $r->{body} > 1000, 'is a body in chunks';
like ask(request_head(GET => '/trailer/large.txt', 'Accept-Encoding' => 'gzip'))->{raw}, qr/\r\n0\r\nX-Trailer: after\r\n\r\n\z/, 'trailers';
$r = ask("GET /gzip/large.txt HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
is $r->{header}{'transfer-encoding'}, undef, 'HTTP/1.0: no chunks';
is $r->{header}{connection}, 'close', 'the end is that of the connection';

my $put = "PUT /put/a.txt HTTP/1.1\r\nHost: x\r\n";
is ask("${put}Connection: close\r\nContent-Length: " . length($large) . "\r\n\r\n$large")->{status}, 201, 'an upload';
is ask("${put}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na;x=y\r\n0123456789\r\n0\r\n\r\n")->{status}, 204, 'one in chunks';
is ask(request_head(GET => '/put/a.txt'))->{body}, 'abc0123456789', 'has arrived';
$c = client();
$c->send("${put}Content-Length: 3\r\n\r\n123${put}Content-Length: 2\r\n\r\n45" . req('/small.txt'));
is_deeply [map { $c->reply->{status} } 1 .. 3], [204, 204, 200], 'a request after uploads';
is ask(request_head(GET => 'http://a.example/host', 'X-Hop' => 1, Connection => 'close, x-hop'))->{body}, 'a.example   http', 'a whole URL; fields of the connection stay';
is ask("what is that\r\n\r\n")->{status}, 400, 'no HTTP/1';

$c = client(rcvbuf => 4096);
$c->send(req('/large.txt'));
is length $c->take(100_000), 100_000, 'a slow client';
$c->abort;
$c = client(from => '127.0.0.9');
$c->send(req('/host'));
is $c->reply->{status}, 200, 'from another address';
ok eventually(sub { slurp("$site->{dir}/run/access.log") =~ m{^127\.0\.0\.9 HTTP/2\.0 GET /host$}m }), 'the server sees it, and HTTP/2';
$c = client();
$c->send(req('/small.txt'));
$c->finish;
is $c->reply->{body}, "hi\n", 'a client that has said all';
$c = client();
$c->send("${put}Content-Length: 10\r\n\r\n123");
$c->finish;
ok $c->closed, 'half an upload';
$site->stop;
$c = client();
ok $c->closed, 'no server';
done_testing;
