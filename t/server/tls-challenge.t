# ssl.acme-tls-1: an authority that asks for "acme-tls/1" gets the certificate of its challenge, and no more, as from lighttpd's mod_openssl.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Peer;
use Accel::Util qw(free_port);
use File::Temp ();
use POSIX ();
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(need_program put slurp);

need_program('lighttpd', 'lighttpd');
my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
chmod 0755, $keys;
my $cert = Test::Tls::certificate($keys, 'server');
my ($dir, $other) = map { mkdir "$keys/$_" or die; "$keys/$_" } qw(challenges other);
mkdir "$keys/www" or die;
put("$keys/www/a", "text\n");

sub lay ($host, $to = $dir) {
	my $c = Test::Tls::certificate($keys, "challenge-$host", hosts => [$host], rsa => 2048);
	put("$to/$host.crt.pem", slurp($c->{pem}));
	put("$to/$host.key.pem", slurp($c->{key}));
	return "challenge-$host";
}

my $conf = <<"CONF";
ssl.engine = "enable"
ssl.pemfile = "$cert->{pem}"
ssl.privkey = "$cert->{key}"
ssl.acme-tls-1 = "$dir"
\$HTTP["host"] == "b.example" { ssl.acme-tls-1 = "$other" }
CONF

# Name of the certificate and protocol; or the alert; and what comes to a request.
sub ask ($port, @args) {
	my $said = qx{(printf 'GET /a HTTP/1.0\\r\\n\\r\\n'; sleep 0.2) | @{[ join ' ', Test::Tls::openssl(), qw(s_client -ign_eof -connect), "127.0.0.1:$port", @args ]} 2>&1};
	my ($alert) = $said =~ /(alert [a-z ]+?):/;
	my ($name) = $said =~ /^ 0 s:CN = (\S+)$/m;
	my ($protocol) = $said =~ /^ALPN protocol: (\S+)$/m;
	return join ' ', $alert // ($name // 'nothing', $protocol // (), $said =~ m{^HTTP/1\.\d \d+}m ? 'served' : ());
}

my $srv = Test::Server->start(conf => qq{server.max-worker = 1\nserver.document-root = "$keys/www"\n$conf});
my $port = free_port();
my $peer = Accel::Peer->start('lighttpd', root => "$keys/www", file => put("$keys/lighttpd.conf", <<"CONF"), env => {});
server.modules = ( "mod_openssl" )
server.bind = "127.0.0.1"
server.port = env.PORT
server.document-root = "$keys/www"
server.errorlog = "$keys/error"
\$SERVER["socket"] == "127.0.0.1:$port" {
$conf}
CONF
my $acme = '-alpn acme-tls/1';

for my $version (qw(-tls1_2 -tls1_3)) {
	for ([ours => $srv->port], [lighttpd => $port]) {
		my ($who, $at) = @$_;
		unlink glob "$dir/*";
		like ask($at, $version, '-servername a.example', $acme), qr/^alert /, "$who, $version: no files";
		my $name = lay('a.example');
		# Debian's lighttpd 1.4.69 shows its own certificate in TLS 1.2, so an authority that asks with that refuses.
		my $shows = sub ($challenge) { return ($who eq 'lighttpd' && $version eq '-tls1_2' ? 'server' : $challenge) . ' acme-tls/1' };
		is ask($at, $version, '-servername a.example', $acme), $shows->($name), '... which come while the server runs: the certificate, and no request is served';
		is ask($at, $version, '-servername A.EXAMPLE', $acme), $shows->($name), '... in capitals';
		is ask($at, $version, '-servername a.example'), 'server served', '... for others there is the certificate of the server';
		is ask($at, $version, '-servername a.example -alpn http/1.1,acme-tls/1'), 'server http/1.1 served', '... also for one that prefers HTTP';
		like ask($at, $version, '-servername b.example', $acme), qr/^alert /, '... a host with a directory of its own';
		$name = lay('b.example', $other);
		is ask($at, $version, '-servername b.example', $acme), $shows->($name), '... has its own files';
		unlink glob "$other/*";
		like ask($at, $version, '-noservername', $acme), qr/^alert /, '... no host';
		like ask($at, $version, "-servername $_", $acme), qr/^alert /, "... $_" for '../challenges/a.example', '.a', '..', 'c.example';
		put("$dir/a.example.crt.pem", '');
		like ask($at, $version, '-servername a.example', $acme), qr/^alert /, '... an empty file';
	}
}

subtest 'what only we refuse' => sub {
	lay('a.example');
	put("$dir/a.example.key.pem", slurp($cert->{key}));
	like ask($srv->port, '-tls1_2', '-servername a.example', $acme), qr/^alert /, 'the key of another one';
	for ([FIFO => sub { POSIX::mkfifo("$dir/a.example.crt.pem", 0600) or die }], ['a directory' => sub { mkdir "$dir/a.example.crt.pem" or die }], ['1 MB' => sub { put("$dir/a.example.crt.pem", 'x' x 1e6) }]) {
		unlink glob "$dir/*";
		$_->[1]->();
		like ask($srv->port, '-tls1_3', '-servername a.example', $acme), qr/^alert /, $_->[0];
		rmdir "$dir/a.example.crt.pem";
	}
	like $srv->wait_log(qr/ev=tls\.failed .*why="ssl\.acme-tls-1 has no files/) // '', qr/no files of this host/, 'the log says why';
	$srv->log_has(qr/ev=tls\.challenge /, '... and which ones were answered');
	my $lines = $srv->log;
	unlike $lines, qr/level=(?:alert|error)/, '... without an alarm';
};

subtest 'a session does not lead around it' => sub {
	my $name = lay('a.example');
	my $file = "$keys/session";
	is ask($srv->port, "-tls1_3 -servername a.example -sess_out $file"), 'server served', 'a session';
	is ask($srv->port, "-tls1_3 -servername a.example -sess_in $file", $acme), "$name acme-tls/1", 'the challenge';
};

done_testing;
