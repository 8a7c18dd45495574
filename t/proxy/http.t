# Real servers behind protocol = "http": nginx, and gunicorn with a few lines of Python.
use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Fcgi ();
use Test::Http ();
use Test::More;
use Test::Server;
use Test::Util qw(need_program put);

my ($gunicorn, $nginx) = (need_program('gunicorn', 'gunicorn'), need_program('nginx', 'nginx-light'));

my $dir = File::Temp->newdir('accel-http-XXXXXX', TMPDIR => 1);
chmod 0755, "$dir";

# ---------------------------------------------------------------- gunicorn

put("$dir/app.py", <<'END');
import hashlib

def env(e):
    return '200 OK', [], [''.join('%s=%s\n' % (k, v) for k, v in sorted(e.items()) if isinstance(v, str)).encode('latin-1')]

def upload(e):
    b = e['wsgi.input'].read()
    said = b'%d %s' % (len(b), hashlib.md5(b).hexdigest().encode())
    return '201 Created', [('Content-Length', str(len(said)))], [said]

def breaks():
    yield b'half of it'
    raise SystemError('halfway')

def piece(i):
    return bytes([97 + i % 26]) * 50000

PAGES = {
    'env': env,
    'upload': upload,
    'chunked': lambda e: ('200 OK', [], (piece(i) for i in range(200))),
    'big': lambda e: ('200 OK', [('Content-Length', '10000000')], (piece(i) for i in range(200))),
    'gone': lambda e: ('404 Not Found', [('X-A', 'b'), ('Content-Length', '2')], [b'no']),
    'none': lambda e: ('204 No Content', [], []),
    'same': lambda e: ('304 Not Modified', [('ETag', '"x"')], []),
    'short': lambda e: ('200 OK', [('Content-Length', '100')], breaks()),
    'file': lambda e: ('200 OK', [(e.get('HTTP_X_SENDFILE_TYPE', 'X-None'), e['QUERY_STRING']), ('Content-Type', 'x/y')], []),
    'accel': lambda e: ('200 OK', [('X-Accel-Redirect', e['QUERY_STRING'])], [b'not this']),
}

def app(e, start):
    status, head, body = PAGES[e['PATH_INFO'].split('/')[2]](e)
    start(status, head)
    return [] if e['REQUEST_METHOD'] == 'HEAD' else body    # gunicorn would send it, and the next reply would begin with it
END

my $app = Test::Fcgi->start({ program => $gunicorn, own => 1 }, '-b', 'unix:@SOCKET@', '--chdir', "$dir", '-k', 'gthread', '--threads', 4,
	'--keep-alive', 60, '--log-level', 'warning', '--graceful-timeout', 1, 'app:app');
my $backend = 'unix:' . $app->socket;
my $srv = Test::Server->start(conf => qq{status.statistics-url = "/counters"\n}
	. Test::Server::proxy_block('^/app/', $backend, protocol => 'http', 'max-pool-size' => 4, 'max-keep-alive-requests' => 1000));

my $r = $srv->fetch('/app/env/a%20b?x=1', 'User-Agent' => 'test', 'X-Sendfile-Type' => 'X-Sendfile', 'X-Accel-Mapping' => '/=/', Proxy => 'http://evil',
	'X-Forwarded-For' => '10.1.2.3');
is $r->{status}, 200, 'answered';
my %env = map { split /=/, $_, 2 } split /\n/, $r->{body};
is "$env{REQUEST_METHOD} $env{RAW_URI} $env{QUERY_STRING}", 'GET /app/env/a%20b?x=1 x=1', 'the request';
is "$env{HTTP_USER_AGENT} $env{SERVER_PROTOCOL}", 'test HTTP/1.1', 'its fields';
is $env{HTTP_HOST}, 'localhost', 'the host of the client';
is join(' ', grep { /^HTTP_(?:X_SENDFILE|X_ACCEL|PROXY\z)/ } keys %env), '', 'no control fields of a client';
like $srv->head('/app/env'), qr/^HTTP\S+ 200 .*\r\n\r\n\z/s, 'HEAD has no body';

for my $n (0, 1, 65_536, 3_000_000) {
	my $body = substr '0123456789abcdef!' x (1 + $n / 17), 0, $n;
	$r = Test::Http::parse($srv->request("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: $n\r\n\r\n$body"));
	is "$r->{status} $r->{body}", "201 $n " . md5_hex($body), "a body of $n bytes";
}
my $chunks = "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
$r = Test::Http::parse($srv->request("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n$chunks"));
is "$r->{status} $r->{body}", '201 12 ' . md5_hex('hello, world'), 'a body in chunks';

my $c = $srv->connect;
for (1 .. 50) {
	for (['gone', 404, 'no'], ['none', 204, ''], ['same', 304, '']) {
		my ($page, $status, $body) = @$_;
		$c->send("GET /app/$page HTTP/1.1\r\nHost: x\r\n\r\n");
		$r = $c->reply;
		"$r->{status} $r->{body}" eq "$status $body" or fail "request $_, $page";
	}
}
pass '404, 204 and 304 in turn, on one connection of the client';
my $ten = md5_hex(join '', map { chr(97 + $_ % 26) x 50_000 } 0 .. 199);
is md5_hex($srv->fetch("/app/$_")->{body}), $ten, "10 MB: $_" for qw(chunked big);

$c = $srv->connect;
$c->send("GET /app/short HTTP/1.1\r\nHost: x\r\n\r\n");
ok $c->reply->{cut}, 'less than was promised: cut';

# ---------------------------------------------------------------- X-Sendfile, as Rack documents it

$srv->write('f.txt', 'the file');
my $file = $srv->path('f.txt');
is $srv->fetch('/app/accel?/f.txt')->{body}, 'the file', 'X-Accel-Redirect';
is $srv->fetch("/app/file?$file", 'X-Sendfile-Type' => 'X-Sendfile')->{body}, '', 'a client cannot ask for X-Sendfile';

my $rack = Test::Server->start(dir => $srv->dir, conf => <<"END");
proxy-core.protocol = "http"
proxy-core.balancer = "round-robin"
proxy-core.allow-x-sendfile = "enable"
\$HTTP["url"] =~ "^/app/" {
	proxy-core.backends = ( "$backend" )
	proxy-core.rewrite-request = (
		"X-Sendfile-Type" => (".*" => "X-Sendfile")
	)
}
END
for my $range ([], [Range => 'bytes=4-7']) {
	$r = $rack->fetch("/app/file?$file", 'X-Sendfile-Type' => 'X-Accel-Redirect', @$range);
	is "$r->{body} $r->{header}{'content-type'}", (@$range ? 'file' : 'the file') . ' x/y', 'the block of Rack' . (@$range ? ', and a range' : '');
	unlike $r->{head}, qr/sendfile/i, '... without that field';
}
is $rack->fetch('/app/file?/etc/passwd')->{status}, 403, 'not outside of the root';

# ---------------------------------------------------------------- nginx

my $www = "$dir/www";
mkdir $www or die "$www: $!";
put("$www/small.txt", 'small');
put("$www/big.bin", my $big = join '', map { pack 'N', $_ } 1 .. 2_000_000);
my $sock = "$dir/nginx.sock";
put("$dir/nginx.conf", join "\n", 'daemon off;', ($> == 0 ? 'user root root;' : ()), "pid $dir/nginx.pid;", "error_log $dir/nginx.log;", 'events { }', 'http {',
	'access_log off;', 'keepalive_requests 1000;', (map { "${_}_temp_path $dir/temp;" } qw(client_body proxy fastcgi uwsgi scgi)),
	"server { listen unix:$sock; root $www;", 'add_header X-Connection "$connection $connection_requests";',
	'location /www/ { alias ' . "$www/; }", 'location /www/stub { stub_status; } }', '}', '');
my $ngx = Test::Fcgi->start({ program => $nginx, own => 1, socket => $sock }, '-e', "$dir/nginx.log", '-p', "$dir", '-c', "$dir/nginx.conf");
my $s = Test::Server->start(conf => "server.max-worker = 1\n"
	. Test::Server::proxy_block('^/www/', "unix:$sock", protocol => 'http', 'max-pool-size' => 2, 'max-keep-alive-requests' => 1000));

$c = $s->connect;
my %seen;
for (1 .. 100) {
	$c->send("GET /www/small.txt HTTP/1.1\r\nHost: x\r\n\r\n");
	$r = $c->reply;
	"$r->{status} $r->{body}" eq '200 small' or fail "request $_";
	my ($connection) = split / /, $r->{header}{'x-connection'};
	$seen{$connection}++;
}
is join(' ', values %seen), 100, '100 requests to nginx on one connection';
is md5_hex($s->fetch('/www/big.bin')->{body}), md5_hex($big), '8 MB';
$r = $s->fetch('/www/big.bin', Range => 'bytes=4-7');
is "$r->{status} " . unpack('N', $r->{body}), '206 2', 'a range';
$r = Test::Http::parse($s->head('/www/big.bin'));
is "$r->{status} $r->{header}{'content-length'}", '200 8000000', 'HEAD has the length';
my $tag = $s->fetch('/www/small.txt')->{header}{etag};
like $s->get('/www/small.txt', 'If-None-Match' => $tag), qr/^HTTP\S+ 304 .*\r\n\r\n\z/s, '304 has no body';
is $s->fetch('/www/none')->{status}, 404, 'a missing file';
$r = Test::Http::parse($s->request("GET /www/small.txt HTTP/1.0\r\n\r\n") =~ s/^HTTP\/1.0/HTTP\/1.1/r);
is "$r->{status} $r->{body}", '200 small', 'a client without Host';

done_testing;
