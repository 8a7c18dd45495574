# examples/accel-server/behind-a-proxy.conf with the proxies in its comments: HAProxy that speaks TLS to clients, and nginx.
# The application and the access log see the client.
use v5.36;
use FindBin;
use JSON::PP ();
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Site;
use Test::Util qw(need_program slurp);

Test::Site->need($_) for qw(haproxy nginx);
need_program('openssl', 'openssl');

my $text = slurp("$FindBin::Bin/../../examples/accel-server/behind-a-proxy.conf");

# The lines of a proxy in the comments.
sub lines_of { my ($kind) = @_; return join '', map { "$_\n" } $text =~ /^#$kind\t(.*)$/mg }

my $app = Test::App->start;

# The server of the example, which inherits the socket of one of its ports.
sub server ($port) {
	my $conf = $text =~ s/^#.*\n//mgr;
	my %is = ("127.0.0.1:$port" => '127.0.0.1:@PORT@', '/var/log/accel-server/' => '@RUN@/', '/run/app.sock' => $app->socket);
	$conf =~ s/\Q$_\E/$is{$_}/ or die "no $_\n" for keys %is;
	$conf =~ s{/var/log/accel-server/}{\@RUN@/}g;
	$conf =~ s{"/srv/www/\w+"}{"\@DIR@"}g;
	return Test::Server->start(conf => $conf);
}

my $srv = server(8080);

sub variables { my ($reply) = @_; return { map { split /=/, $_, 2 } split /\n/, $reply->{body} } }

# The variables of a request, by name: those that tell who the client is.
sub fields_of {
	my ($env, @name) = @_;
	return join ' ', map { $env->{$_} // 'none' } @name;
}

# A request from that address through a proxy that speaks TLS.
sub over_tls {
	my ($port, $from, $bytes) = @_;
	my $file = $srv->run . '/request';
	Test::Util::put($file, $bytes);
	my $said = qx{openssl s_client -quiet -connect 127.0.0.1:$port -bind $from:0 <$file 2>/dev/null};
	return Test::Http::parse($said);
}

my $pem = $srv->run . '/site.pem';
my $key = $srv->run . '/key.pem';
system "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=site.example -keyout $key -out $pem >/dev/null 2>&1";
is $?, 0, 'a certificate';
Test::Util::put($pem, slurp($pem) . slurp($key));

# HAProxy with the lines of the example, and changes.
sub haproxy (%change) {
	my $lines = lines_of('haproxy') =~ s/127\.0\.0\.1:8080/127.0.0.1:8081/r =~ s/:8443/127.0.0.1:8080/r =~ s{/etc/haproxy/site\.pem}{$pem}r;
	for my $from (keys %change) { $lines =~ s/\Q$from\E/$change{$from}/ or die "no $from\n" }
	return Test::Site->start('haproxy', 'behind-a-proxy.conf', text => $lines, root => $srv->dir, behind => [$srv]);
}

subtest 'a TLS terminator that sends the PROXY protocol' => sub {
	my $front = haproxy();
	my $r = over_tls($front->port, '127.0.0.5', req('/app/env', 'Connection: close', 'X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: ftp', 'Forwarded: for=1.2.3.4',
		'X-Real-IP: 1.2.3.4'));
	is $r->{status}, 200, 'answered';
	my $env = variables($r);
	is fields_of($env, qw(REMOTE_ADDR HTTPS)), '127.0.0.5 on', 'the application sees the client, and that it uses TLS';
	is fields_of($env, qw(HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO HTTP_X_FORWARDED_HOST)), '127.0.0.5 https x', 'in the fields of proxies, too';
	is $env->{HTTP_FORWARDED}, 'for=127.0.0.5;host=x;proto=https', 'and in Forwarded';
	is $env->{HTTP_X_REAL_IP}, undef, 'and nothing that the client made up';
	cmp_ok $env->{REMOTE_PORT}, '>', 0, 'with its port';
	isnt $env->{REMOTE_PORT}, $env->{SERVER_PORT}, 'which is another';
	like $srv->wait_log(qr{"GET /app/env}, 'access.log'), qr/^127\.0\.0\.5 - /m, 'the access log has it';
	$front->stop;
};

subtest 'version 1, without TLS' => sub {
	my $front = haproxy("ssl crt $pem" => '', 'send-proxy-v2-ssl' => 'send-proxy');
	my $c = Test::Http::Conn->new($front->port, from => '127.0.0.6');
	for (1 .. 3) {
		$c->send(req('/app/env', 'X-Forwarded-Proto: https'));
		is fields_of(variables($c->reply), qw(REMOTE_ADDR HTTPS HTTP_X_FORWARDED_PROTO)), '127.0.0.6 none http', 'each request of a connection';
	}
	$front->stop;
};

subtest 'checks of the balancer' => sub {
	my $front = haproxy('send-proxy-v2-ssl' => 'send-proxy-v2-ssl check-send-proxy check inter 100ms');
	is over_tls($front->port, '127.0.0.5', req('/app/env', 'Connection: close'))->{status}, 200, 'with the header and without a request';
	unlike $srv->log, qr/proxy-protocol\.failed/, 'are not a failure';
	$front->stop;
};

subtest 'a proxy that adds fields' => sub {
	my $lines = lines_of('nginx') =~ s/listen 8082/listen 127.0.0.1:8080/r;
	my $behind = server(8081);
	my $front = Test::Site->start('nginx', 'behind-a-proxy.conf', text => $lines, root => $srv->dir, behind => [$behind]);
	my $ask = sub {
		my ($from, @field) = @_;
		my $c = Test::Http::Conn->new($front->port, from => $from);
		$c->send(req('/app/env', @field));
		return fields_of(variables($c->reply), qw(REMOTE_ADDR HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO));
	};
	is $ask->('127.0.0.7'), '127.0.0.7 127.0.0.7, 127.0.0.1 http', 'one hop after the other';
	is $ask->('127.0.0.8', 'X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: https'), '127.0.0.8 203.0.113.7, 127.0.0.8, 127.0.0.1 http', 'what a client sent is in front';
	my $host = Test::Http::Conn->new($front->port);
	$host->send(req('/app/env', 'X-Forwarded-Host: evil', 'X-Real-IP: 203.0.113.7'));
	is fields_of(variables($host->reply), qw(HTTP_X_FORWARDED_HOST HTTP_X_REAL_IP)), 'x none', 'nginx passes what it does not know, and the application does not get it';
	my $c = $behind->connect(from => '127.0.0.9');
	$c->send(req('/app/env', 'X-Forwarded-For: 203.0.113.7', 'X-Forwarded-Proto: https'));
	is fields_of(variables($c->reply), qw(REMOTE_ADDR HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO HTTPS)), '127.0.0.9 127.0.0.9 http none', 'a client past the proxy is not believed';
	$front->stop;
};

subtest 'clients of one proxy take turns' => sub {
	my $s = Test::Server->start(conf => qq{server.max-worker = 1\nstatus.status-url = "/status"\nextforward.forwarder = ( "127.0.0.1" => "trust" )\n}
		. Test::Server::proxy_block('^/app', 'unix:' . $app->socket, 'max-pool-size' => 1, 'max-waiters' => 100, 'wait-timeout' => 60));
	my $waiting = sub { my ($b) = @{ JSON::PP::decode_json($s->fetch('/status?json')->{body})->{backends} }; return $b->{waiting} };
	my @c = map { $s->connect } 1 .. 43;
	my @first = map { '203.0.113.' . ($_ < 40 ? 1 : 2) } 0 .. $#c;
	$c[$_]->send(req('/app/env', "X-Forwarded-For: $first[$_]")) for 0 .. $#c;
	is_deeply [map { fields_of(variables($_->reply), 'REMOTE_ADDR') } @c], \@first, 'each connection has had a request of the other client';
	$_->send(req('/app/turn', 'X-Forwarded-For: 203.0.113.2')) for @c[0 .. 39];
	ok Test::Util::eventually(sub { $waiting->() == 39 }), 'one client has many requests' or diag $waiting->();
	$_->send(req('/app/turn', 'X-Forwarded-For: 203.0.113.1')) for @c[40 .. 42];
	ok Test::Util::eventually(sub { $waiting->() == 42 }), 'another one has a few' or diag $waiting->();
	Test::Util::put($app->file('gate'), '');
	is $_->reply->{status}, 200, 'answered' for @c[40 .. 42];
	my $turns = $app->noted('turns');
	is substr($turns, 0, 10) =~ tr/1//, 3, '... soon' or diag $turns;
};

undef $srv;
done_testing;
