# The recipes of doc/server.md for what accel-server is not: TLS and HTTP/2 in front of it, WebDAV behind it.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::App;
use Test::More;
use Test::Server;
use Test::Site;
use Test::Util qw(need_program put slurp);

Test::Site->need($_) for qw(haproxy hitch nginx apache);
need_program($_, $_) for qw(openssl curl);

my ($chapter) = slurp("$FindBin::Bin/../../doc/server.md") =~ /^## What it is not\n(.*)/ms;

# The indented blocks after the words, without the indent.
sub lines_after {
	my ($words, $n) = @_;
	my ($rest) = $chapter =~ /\Q$words\E(.*)/s or die "doc/server.md: nothing about $words\n";
	my @block = $rest =~ /^((?: {4}.*\n)+)/mg;
	return $block[ $n // 0 ] =~ s/^ {4}//mgr;
}

my $app = Test::App->start;

sub server {
	my ($lines) = @_;
	$lines =~ s/8080/\@PORT\@/ or die "no port\n";
	my $srv = Test::Server->start(conf => <<"CONF" . $lines);
server.document-root = "\@DIR\@"
accesslog.filename = "\@RUN\@/access.log"
\$HTTP["url"] =^ "/app/" { proxy-core.protocol = "fastcgi" proxy-core.backends = ( "unix:@{[ $app->socket ]}" ) }
CONF
	$srv->write('page.txt', 'x' x 100_000);
	return $srv;
}

my $with_header = server(lines_after('HAProxy in front', 1));
my $with_field = server(lines_after('nginx in front', 1));

my $pem = $with_header->run . '/site.pem';
my $key = $with_header->run . '/site.key';
system "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=site.example -keyout $key -out $pem >/dev/null 2>&1";
is $?, 0, 'a certificate';
my $both = $with_header->run . '/both.pem';
put($both, slurp($pem) . slurp($key));
chmod 0644, $key, $both;

sub front {
	my ($kind, $text, $srv, %change) = @_;
	$text =~ s/127\.0\.0\.1(\]?):8080/127.0.0.1$1:8081/ or die "no backend\n";
	$text =~ s{/etc/\w+/site\.pem}{$kind eq 'nginx' ? $pem : $both}e or die "no certificate\n";
	$text =~ s{/etc/\w+/site\.key}{$key};
	for my $from (keys %change) { $text =~ s/\Q$from\E/$change{$from}/ or die "no $from\n" }
	return Test::Site->start($kind, 'doc/server.md', text => $text, root => $srv->dir, behind => [$srv]);
}

# What curl says of one request from an address of its own: status and version of HTTP, then the body.
sub curl {
	my ($site, $path, @args) = @_;
	open my $out, '-|', 'curl', '-sk', '--interface', '127.0.0.5', '-w', '\n%{http_code} %{http_version}', @args, 'https://127.0.0.1:' . $site->port . $path or die "curl: $!";
	my $said = do { local $/; <$out> };
	close $out;
	$said =~ s/\n([^\n]*)\z//;
	return ($1, $said);
}

sub check ($site, $srv, @versions) {
	for my $version (@versions) {
		my ($is, $body) = curl($site, '/page.txt', "--http$version");
		is "$is " . length $body, "200 $version 100000", "a file by HTTP/$version";
	}
	my ($is, $body) = curl($site, '/app/env');
	my %env = map { split /=/, $_, 2 } split /\n/, $body;
	is join(' ', map { $_ // 'none' } @env{qw(REMOTE_ADDR HTTPS)}), '127.0.0.5 on', 'applications see the client, and that it uses TLS';
	like $srv->wait_log(qr{"GET /app/env}, 'access.log'), qr/^127\.0\.0\.5 - /m, 'so does the access log';
	$site->stop;
}

subtest 'HAProxy' => sub {
	my $defaults = "defaults\n\ttimeout connect 5s\n\ttimeout client 1m\n\ttimeout server 1m\n";
	check(front('haproxy', $defaults . lines_after('HAProxy in front'), $with_header, ':443' => '127.0.0.1:8080'), $with_header, '1.1', '2');
};

subtest 'HAProxy, HTTP/2 on both sides' => sub {
	my $defaults = "defaults\n\ttimeout connect 5s\n\ttimeout client 1m\n\ttimeout server 1m\n";
	my $srv = server(lines_after('HTTP/2 on both sides', 1));
	my $site = front('haproxy', $defaults . lines_after('HTTP/2 on both sides'), $srv, ':443' => '127.0.0.1:8080');
	check($site, $srv, '1.1', '2');
	like $srv->log('access.log'), qr{"GET /page\.txt HTTP/2\.0"}, 'accel-server gets HTTP/2';
};

subtest 'hitch' => sub {
	my $user = $> == 0 ? qq{user = "nobody"\n} : '';
	check(front('hitch', lines_after('hitch in front') . $user, $with_header, '[*]:443' => '[127.0.0.1]:8080'), $with_header, '1.1');
};

subtest 'nginx' => sub {
	my $before = "events {}\nerror_log /var/log/nginx/error.log;\npid /run/nginx.pid;\nhttp {\n";
	check(front('nginx', $before . lines_after('nginx in front') . "}\n", $with_field, '443' => '127.0.0.1:8080'), $with_field, '1.1', '2');
};

subtest 'WebDAV' => sub {
	my $root = File::Temp->newdir('dav-XXXXXX', TMPDIR => 1);
	mkdir "$root/dav" or die "dav: $!";
	chmod 0777, $root, "$root/dav";
	my $apache = Accel::Peer->start('apache', root => "$root", conf => <<"CONF");
LoadModule dav_module /usr/lib/apache2/modules/mod_dav.so
LoadModule dav_fs_module /usr/lib/apache2/modules/mod_dav_fs.so
DavLockDB $root/locks
<Directory $root/dav>
	Dav On
</Directory>
CONF
	my $port = $apache->port;
	my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n} . lines_after('Apache behind it') =~ s/8081/$port/r);
	my $ask = sub {
		my ($method, $path, $body, %header) = @_;
		my $c = $srv->connect;
		$header{'Content-Length'} = length $body if defined $body;
		$c->send(Test::Http::request_head($method, $path, %header) . ($body // ''));
		return $c->reply;
	};
	is $ask->('PUT', '/dav/a.txt', 'hello')->{status}, 201, 'PUT makes a file';
	is slurp("$root/dav/a.txt"), 'hello', '... with these bytes';
	is $ask->('PROPFIND', '/dav/', undef, Depth => 1)->{status}, 207, 'PROPFIND lists it';
	is $ask->('MKCOL', '/dav/sub/')->{status}, 201, 'MKCOL';
	is $ask->('MOVE', '/dav/a.txt', undef, Destination => "http://localhost:$port/dav/sub/b.txt", Host => "localhost:$port")->{status}, 201, 'MOVE';
	is $ask->('GET', '/dav/sub/b.txt')->{body}, 'hello', 'GET';
	is $ask->('DELETE', '/dav/sub/')->{status}, 204, 'DELETE';
	ok !-e "$root/dav/sub", '... removes it';
	$apache->stop;
};

done_testing;
