# What is known of the client's TLS: SSL_PROTOCOL and others in logs, and as variables of applications of each protocol.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::App;
use Test::Http qw(parse req);
use Test::More;
use Test::Server;
use Test::Tls;

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'first');
my %app = map { $_ => Test::App->start(protocol => $_) } qw(fastcgi scgi uwsgi ajp13 http);
my @names = qw(SSL_PROTOCOL SSL_CIPHER SSL_CIPHER_USEKEYSIZE SSL_CIPHER_ALGKEYSIZE);

my $conf = qq{ssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\nssl.engine = "enable"\nserver.max-worker = 1\n}
	. qq{accesslog.filename = "\@RUN\@/access.log"\naccesslog.format = "@{[ join '|', map { "%{$_}x" } @names, qw(SSL_SESSION_RESUMED SSL_TLS_SNI) ]}|%{SSL_CIPHER}e|%{SSL_TLS_SNI}e"\n}
	. qq{cgi.assign = ( ".cgi" => "" )\n}
	. qq{\$HTTP["url"] == "/json" { accesslog.filename = "\@RUN\@/json.log"\naccesslog.format = "json"\n}\n}
	. qq{\$HTTP["url"] =~ "/set" { setenv.set-environment = ( "SSL_CIPHER" => "ours" ) }\n}
	. join '', map { Test::Server::proxy_block("^/$_/", 'unix:' . $app{$_}->socket, protocol => $_) } sort keys %app;
my $srv = Test::Server->start(conf => $conf);
$srv->write('a', 'x');
$srv->write('env.cgi', "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nexec env\n");
chmod 0755, $srv->path('env.cgi') or die "env.cgi: $!";

sub env ($c, $path, @fields) { $c->send(req($path, @fields)); return map { split /=/, $_, 2 } split /\n/, $c->reply->{body} }

my %cipher = ('1_2' => ['TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256', 128, 128], '1_3' => ['TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256', 256, 256]);
my %args = ('1_2' => ['-cipher', $cipher{'1_2'}[1]], '1_3' => ['-ciphersuites', $cipher{'1_3'}[1]]);

for my $version (qw(1_2 1_3)) {
	subtest "applications, TLS $version" => sub {
		my $c = Test::Tls::connect($srv, ca => $cert->{pem}, args => ["-tls$version", @{ $args{$version} }]);
		for my $path ('/env.cgi', map { "/$_/app/env" } qw(fastcgi scgi uwsgi)) {
			my %env = env($c, $path, 'SSL_PROTOCOL: faked', 'SSL-CIPHER: faked');
			is_deeply [@env{@names}], $cipher{$version}, "the facts: $path";
			is_deeply [sort grep { /^SSL_/ } keys %env], [sort @names], '... and no others';
		}
		my %env = env($c, '/fastcgi/app/env?/set', 'X: /set');
		is $env{SSL_CIPHER}, $cipher{$version}[1], 'a block that is not meant';
		%env = env($c, '/fastcgi/app/env/set');
		is "$env{SSL_PROTOCOL} $env{SSL_CIPHER}", "$cipher{$version}[0] ours", 'the configuration replaces';
		%env = env($c, '/ajp13/app/env');
		is "$env{HTTPS} $env{SSL_CIPHER} $env{SSL_KEY_SIZE}", "on @{$cipher{$version}}[1, 2]", 'attributes of AJP';
		%env = env($c, '/http/app/env', 'SSL_PROTOCOL: sent');
		is_deeply [grep { /^SSL_/ } keys %env], [], 'HTTP has no variables';
	};
}

subtest 'the access log' => sub {
	my $start = 16;
	my $ask = sub (@args) {
		my $c = Test::Tls::connect($srv, ca => $cert->{pem}, args => [@args]);
		$c->send(req('/a', 'Connection: close'));
		$c->rest;
		return ($srv->wait_lines(++$start, qr/./, 'access.log'))[-1];
	};
	my $facts = join '|', @{ $cipher{'1_3'} };
	my @how = ('-tls1_3', @{ $args{'1_3'} });
	my $session = "$keys/session";
	is $ask->(@how, '-noservername', '-sess_out', $session), "$facts|Initial|-|$cipher{'1_3'}[1]|-", 'no name of a host';
	is $ask->(@how, '-servername', 'WWW.Example', '-sess_in', $session), "$facts|Resumed|www.example|$cipher{'1_3'}[1]|-", 'a session that is resumed, and a name';
	is $ask->(@how, '-servername', 'a|"b'), "$facts|Initial|a|\\\"b|$cipher{'1_3'}[1]|-", 'a hostile name is escaped';
	is length($ask->(@how, '-servername', 'x' x 255)), length("$facts|Initial||$cipher{'1_3'}[1]|-") + 255, 'a long one';
	my $c = Test::Tls::connect($srv, ca => $cert->{pem}, args => \@how);
	$c->send(req('/json', 'Connection: close'));
	$c->rest;
	my ($line) = $srv->wait_lines(1, qr/./, 'json.log');
	is_deeply [@{ JSON::PP::decode_json($line) }{qw(tls cipher)}], [@{ $cipher{'1_3'} }[0, 1]], 'JSON';
};

subtest 'a socket without TLS' => sub {
	my $plain = Test::Server->start(conf => $conf =~ s/ssl\.engine = "enable"//r);
	$plain->write('a', 'x');
	my $c = $plain->connect;
	my %env = env($c, '/fastcgi/app/env', 'X-Forwarded-Proto: https');
	is_deeply [grep { /^(?:SSL_|HTTPS)/ } keys %env], [], 'knows nothing';
	$c->send(req('/a', 'Connection: close'));
	$c->rest;
	is +($plain->wait_lines(2, qr/./, 'access.log'))[-1], '-|-|-|-|-|-|-|-', 'and logs nothing';
};

done_testing;
