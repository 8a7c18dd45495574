# Conditions hold for what a request means, however it is spelled, and a client cannot switch them off.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

sub get { my ($target, @lines) = @_; return join "\r\n", "GET $target HTTP/1.1", @lines, 'Connection: close', '', '' }

sub status_of {
	my ($srv, $bytes) = @_;
	return $srv->request($bytes) =~ m{\AHTTP/1\.1 ([0-9]{3}) } ? $1 : 'none';
}

subtest 'a regular expression that reaches a limit refuses the request' => sub {
	my $app = 'unix:/nowhere/app.sock';
	my $srv = Test::Server->start(conf => <<"END");
server.document-root = "\@DIR\@/www"
\$HTTP["querystring"] =~ "^(a+)+\$" {
	static-file.exclude-extensions = ( "" )
}
\$HTTP["useragent"] !~ "^(b+)+\$" {
	static-file.exclude-extensions = ( "" )
}
\$HTTP["cookie"] =~ "x.*x.*y.*z" {
	static-file.exclude-extensions = ( "" )
}
\$HTTP["url"] =^ "/app" {
	proxy-core.protocol = "fastcgi"
	proxy-core.backends = ( "$app" )
	proxy-core.rewrite-request = ( "X-Long" => ( "^(a+)+\$" => "short" ) )
}
END
	$srv->write('www/secret.txt', 'secret');
	my $long = 'a' x 4000 . '!';
	my $began = time;
	is status_of($srv, get('/secret.txt', 'Host: x', 'User-Agent: bbb')), 200, 'neither holds';
	is status_of($srv, get('/secret.txt?aaa', 'Host: x', 'User-Agent: bbb')), 403, 'the first one holds';
	is status_of($srv, get('/secret.txt', 'Host: x')), 403, 'the negative one holds';
	is status_of($srv, get("/secret.txt?$long", 'Host: x', 'User-Agent: bbb')), 500, '=~ that cannot be decided';
	is status_of($srv, get('/secret.txt', 'Host: x', 'User-Agent: ' . 'b' x 4000 . '!')), 500, '!~ that cannot be decided';
	my $c = 'x' x 6000 . 'z';
	is status_of($srv, get('/secret.txt', 'Host: x', 'User-Agent: bbb', "Cookie: $c")), 500, 'a pattern that is expensive from all starts together';
	is status_of($srv, get('/app', 'Host: x', 'User-Agent: bbb', "X-Long: $long")), 500, 'a rewrite that cannot be decided';
	open my $fh, '<', "$srv->{run}/server.conf" or die $!;
	my @conf = <$fh>;
	my ($line) = grep { $conf[$_ - 1] =~ /querystring/ } 1 .. @conf;
	$srv->log_has(qr{ev=match\.failed .*in=condition at=\S*server\.conf:$line }, 'the log names the condition');
	$srv->log_has(qr{ev=request\.refused .*status=500 why="a condition could not be decided}, '... and why the request was refused');
	my @lines = $srv->log =~ /ev=match\.failed/g;
	cmp_ok scalar @lines, '<=', 3 + time - $began, '... at most once a second';
};

subtest 'a rule holds for every spelling' => sub {
	my $deny = 'static-file.exclude-extensions = ( "" )';
	my $srv = Test::Server->start(conf => <<"END");
server.document-root = "\@DIR\@/www"
\$HTTP["host"] == "secret.example.org" { $deny }
\$HTTP["host"] =~ "^admin\\.example\\.org\$" { $deny }
\$HTTP["host"] =~ "^Upper\\.example" { $deny }
\$HTTP["host"] =^ "Begin." { $deny }
\$HTTP["host"] =\$ ".INTERN" { $deny }
\$HTTP["host"] == "Dot.Example.org.:81" { $deny }
\$HTTP["host"] == "[2001:db8::1]" { $deny }
\$HTTP["querystring"] =~ "(^|&)debug=1" { $deny }
\$HTTP["useragent"] =~ "BadBot" { $deny }
\$HTTP["referer"] =~ "evil" { $deny }
\$HTTP["cookie"] =~ "(^|; )admin=1" { $deny }
\$HTTP["url"] =~ "^/private/.*\\.txt" { $deny }
\$HTTP["url"] == "/one.txt" { $deny }
END
	$srv->write($_, 'x') for 'www/x.txt', 'www/one.txt', "www/private/a\nb.txt", 'www/private/x.txt';
	is status_of($srv, get('/x.txt', 'Host: example.org', 'User-Agent: good', 'Cookie: a=1')), 200, 'none holds';
	for my $host ('secret.example.org', 'Secret.Example.ORG', 'secret.example.org.', 'SECRET.example.org.:80', 'secret.example.org:',
		'secret.example.org:8080', 'ADMIN.example.org', 'admin.example.org.', 'admin.example.org:80', 'admin.example.org:',
		'admin.example.org.:0080', 'upper.EXAMPLE', 'begin.x', 'BEGIN.x', 'x.intern', 'X.Intern.', 'dot.example.org', 'DOT.example.org.:81',
		'[2001:DB8:0:0::1]', '[2001:db8::0001]:80') {
		is status_of($srv, get('/x.txt', "Host: $host")), 403, "Host: $host";
		is status_of($srv, get("http://$host/x.txt", 'Host: example.org')), 403, "... in the target";
	}
	is status_of($srv, get('/x.txt', "Host: $_")), 400, "Host: $_ is refused" for 'secret%2eexample.org', 'u@secret.example.org',
		'secret..example.org', 'secret.example.org..', ':80', '.', 'x:0', '[::1%25lo]';
	is status_of($srv, get("/x.txt?$_", 'Host: x')), 403, "query $_" for 'debug=1', 'a=b&d%65bug=1', 'debug=%31', '%64%65%62%75%67=1';
	is status_of($srv, get("/x.txt?$_", 'Host: x')), 200, "query $_" for 'debug%3d1', 'debug%=1', 'xdebug=1';
	is status_of($srv, get('/x.txt', 'Host: x', @$_)), 403, "@$_" for ['User-Agent: good', 'user-agent: BadBot'],
		['Referer: good', 'X: y', 'Referer: http://evil/'], ['Cookie: a=b', 'Cookie: admin=1'], ['User-Agent: BadBot', 'User-Agent: good'];
	is status_of($srv, get($_, 'Host: x')), 403, $_ for '/one.txt', '/%6fne.txt', '//one.txt', '/./one.txt', '/a/../one.txt', '/%2e/one.txt',
		'/private/x.txt', '/private/a%0ab.txt', '/private//%2e/x.txt';
	is status_of($srv, get($_, 'Host: x')), 404, "$_ is another name" for '/ONE.txt', '/one.txt.', '/one.txt/', '/%c0%afone.txt', '/one.txt;a';
	is status_of($srv, get($_, 'Host: x')), 400, "$_ is refused" for '/one.txt%00', '/%2fone.txt', '/%5cone.txt', '/../one.txt';
};

subtest 'a client that uses all combinations of conditions delays no other' => sub {
	my @letters = ('a' .. 'o');
	my $srv = Test::Server->start(conf => join '', qq{server.document-root = "\@DIR\@/www"\n},
		qq{status.statistics-url = "/statistics"\nserver.max-worker = 1\nserver.max-keep-alive-requests = 100000\n},
		map { qq{\$HTTP["useragent"] =~ "$_" { server.name = "$_" }\n} } @letters);
	$srv->write('www/x.txt', 'x');
	$srv->write('www/large', 'l' x 8_000_000);
	my $slow = $srv->connect;
	$slow->send("GET /large HTTP/1.1\r\nHost: x\r\nUser-Agent: @letters\r\n\r\n");
	my $first = $slow->take(1000);
	my $bad = 0;
	for my $round (0 .. 16) {
		my $c = $srv->connect;
		my @agents = map { my $n = 1000 * $round + $_; join '', grep { $n >> ord($_) - 97 & 1 } @letters } 1 .. 1000;
		$c->send(join '', map { "GET /x.txt HTTP/1.1\r\nHost: x\r\nUser-Agent: $_\r\n\r\n" } @agents);
		for (@agents) {
			my $r = $c->reply;
			$bad++ if !$r || $r->{status} != 200;
		}
	}
	is $bad, 0, '17000 of them: all are answered';
	like $first . $slow->take(7_999_000), qr/\AHTTP\S+ 200 .*\r\n\r\nl+\z/s, 'a reply whose set has made room goes on';
	my $text = $srv->fetch('/statistics')->{body};
	my ($sets) = $text =~ /^server\.conditions\.sets: (\d+)$/m;
	my ($evicted) = $text =~ /^server\.conditions\.sets-evicted: (\d+)$/m;
	cmp_ok $sets, '<=', 4100, 'not all are kept';
	cmp_ok $evicted, '>=', 12_900, '... the others have made room';
};

done_testing;
