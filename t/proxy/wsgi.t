# examples/accel-server/wsgi.conf with WSGI applications in Python: their routes see what is mounted where.  What lighttpd 1.4.69 sends for
# scgi.server = ( "/wiki" => (( "check-local" => "disable" )) ) is in the table.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Fcgi;
use Test::Server;
use Test::Util qw(find_program put slurp);

my $python = find_program('python3') or plan skip_all => 'python3 is not installed';
my $dir = File::Temp->newdir('accel-wsgi-XXXXXX', TMPDIR => 1);

# Serves SCGI or uwsgi on its standard input; the application has three routes.
put("$dir/app.py", <<'END');
import signal, socket, struct, sys
from wsgiref.handlers import SimpleHandler
from wsgiref.util import request_uri

def app(env, start):
    route = env.get('PATH_INFO', '')
    body = {'': 'mount', '/': 'front'}.get(route) or ('item ' + route[6:] if route.startswith('/item/') else None)
    start('200 OK' if body else '404 Not Found', [('Content-Type', 'text/plain')])
    info = env.get('PATH_INFO', 'none')
    return ['|'.join([body or 'none', env.get('SCRIPT_NAME', 'none'), info, request_uri(env)]).encode('latin-1')]

def scgi(f):
    size, c = b'', f.read(1)
    while c.isdigit():
        size, c = size + c, f.read(1)
    v = f.read(int(size)).split(b'\0')
    return dict(zip(v[::2], v[1::2]))

def uwsgi(f):
    kind, size, _ = struct.unpack('<BHB', f.read(4))
    v, b = [], f.read(size if kind == 0 else int('no request'))
    while b:
        n = struct.unpack('<H', b[:2])[0]
        v.append(b[2:2 + n])
        b = b[2 + n:]
    return dict(zip(v[::2], v[1::2]))

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
listen = socket.socket(fileno=0)
while True:
    c, _ = listen.accept()
    f = c.makefile('rwb')
    try:
        env = globals()[sys.argv[1]](f)
    except (ValueError, struct.error):     # Test::Fcgi asks whether it is there
        c.shutdown(socket.SHUT_RDWR)
        continue
    env = {k.decode(): v.decode('latin-1') for k, v in env.items()}
    h = SimpleHandler(f, f, sys.stderr, env)
    h.origin_server, h.http_version = sys.argv[1] == 'uwsgi', '1.0'
    h.run(app)
    f.close()
    c.close()
END

# [ Host, path => route, SCRIPT_NAME, PATH_INFO ]
my @rows = (
	['shop.example.org', '/', 'front', '', '/'],
	['shop.example.org', '/item/7%20b?x=1', 'item 7 b', '', '/item/7 b'],
	['shop.example.org', '/none', 'none', '', '/none'],
	['x', '/wiki', 'mount', '/wiki', 'none'],
	['x', '/wiki/', 'front', '/wiki', '/'],
	['x', '/wiki/item/7', 'item 7', '/wiki', '/item/7'],
	['x', '/wiki/item/wiki/item/7', 'item wiki/item/7', '/wiki', '/item/wiki/item/7'],
);

for my $protocol (qw(scgi uwsgi)) {
	my $app = Test::Fcgi->start({ program => $python }, "$dir/app.py", $protocol);
	my $conf = slurp("$FindBin::Bin/../../examples/accel-server/wsgi.conf");
	$conf =~ s/^server\.(?:document-root|port).*//mg;
	$conf =~ s/unix:\/run\/\w+\/\w+\.sock/unix:@{[ $app->socket ]}/g;
	$conf =~ s/protocol = "\w+"/protocol = "$protocol"/g;
	my $srv = Test::Server->start(conf => $conf);
	for (@rows) {
		my ($host, $path, $route, @of) = @$_;
		my $r = $srv->fetch($path, Host => $host);
		is $r->{status}, $route eq 'none' ? 404 : 200, "$protocol: $host$path";
		is $r->{body}, join('|', $route, @of, "http://$host$path"), '... route, SCRIPT_NAME, PATH_INFO, and the URL made of them';
	}
}

done_testing;
