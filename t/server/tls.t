# TLS: certificates, files, applications, keep-alive; and clients that stop, send other things or leave.
use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually need_program program put slurp);

my $mounts = Test::Server::own_mounts();
my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'first');
my $other = Test::Tls::certificate($keys, 'other', rsa => 2048);
my $curl = need_program('curl', 'curl');
my $app = Test::App->start;

sub ssl ($c = $cert) { return qq{ssl.engine = "enable"\nssl.pemfile = "$c->{pem}"\nssl.privkey = "$c->{key}"\n} }

# Runs curl against the server: exit status, and what it wrote.
sub curl ($srv, $path, @args) {
	my $out = "$keys/out";
	my $rc = system $curl, '-s', '--max-time', 60, '--cacert', $cert->{pem}, '-o', $out, @args, "https://127.0.0.1:@{[ $srv->port ]}$path";
	return ($rc >> 8, slurp($out));
}

# ---------------------------------------------------------------- certificates

subtest '-t says what is wrong with a certificate' => sub {
	my $dir = File::Temp->newdir('accel-check-XXXXXX', TMPDIR => 1);
	my $secret = Test::Tls::certificate($keys, 'secret', passphrase => 'word');
	put("$dir/both.pem", slurp($cert->{key}) . slurp($cert->{pem}));
	put("$dir/empty", '');
	my $check = sub ($lines) {
		my $file = put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.port = 0\n$lines});
		my $said = qx{@{[ program('accel-server') ]} -t -f $file 2>&1 </dev/null};
		return ($? >> 8) . ' ' . $said =~ s/\Q$dir\E|\Q$keys\E/DIR/gr;
	};
	is $check->(ssl()), "0 Syntax OK\n", 'a good one';
	is $check->(qq{ssl.engine = "enable"\nssl.pemfile = "$dir/both.pem"\n}), "0 Syntax OK\n", 'certificate and key in one file';
	is $check->(ssl() . qq{\$SERVER["socket"] == ":0" {\nssl.engine = "enable"\nssl.pemfile = "$dir/both.pem"\n}\n}), "0 Syntax OK\n", '... in a block, beside a key outside of it';
	is $check->(qq{ssl.pemfile = "$dir/none"\n}), "0 Syntax OK\n", 'one that no socket uses';
	for ([qq{ssl.engine = "enable"\n}, qr{^78 DIR/x\.conf:3:14: ssl\.engine: ssl\.pemfile is not set; write the file}, 'no certificate'],
		[qq{ssl.engine = "enable"\nssl.pemfile = "$dir/none"\n}, qr{^78 DIR/x\.conf:4:15: ssl\.pemfile: "DIR/none": No such file}, 'a missing file'],
		[qq{ssl.engine = "enable"\nssl.pemfile = "$dir/empty"\n}, qr{^78 DIR/x\.conf:4:15: ssl\.pemfile: "DIR/empty": no certificate is in the file}, 'an empty file'],
		[qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\n}, qr{^78 DIR/x\.conf:4:15: ssl\.pemfile: "DIR/first\.pem": no key that can be read}, 'a file without a key'],
		[qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$other->{key}"\n}, qr{^78 DIR/x\.conf:5:15: ssl\.privkey: "DIR/other\.key": the key does not belong to}, 'the key of another one'],
		[qq{ssl.engine = "enable"\nssl.pemfile = "$secret->{pem}"\nssl.privkey = "$secret->{key}"\n}, qr{^78 DIR/x\.conf:5:15: ssl\.privkey: "DIR/secret\.key": the key has a passphrase}, 'a passphrase'],
		[qq{\$SERVER["socket"] == ":0" {\nssl.engine = "enable"\nssl.pemfile = "$dir/none"\n}\n}, qr{^78 DIR/x\.conf:5:15: ssl\.pemfile: "DIR/none": No such file}, 'that of a block'],
		[ssl() . qq{ssl.openssl.ssl-conf-cmd = ( "MinProtocol" => "TLSv9" )\n}, qr{^78 DIR/x\.conf:6:28: ssl\.openssl\.ssl-conf-cmd: "MinProtocol" => "TLSv9": }, 'a broken command'],
		[ssl() . qq{\$HTTP["host"] == "x" {\nssl.pemfile = "$dir/none"\n}\n}, qr{^78 DIR/x\.conf:7:15: ssl\.pemfile: "DIR/none": No such file}, 'that of a host'],
		[qq{\$HTTP["host"] == "x" {\nssl.engine = "enable"\n}\n}, qr{^78 DIR/x\.conf:4:1: ssl\.engine is for a listening socket}, 'a host without a socket'],
		[qq{\$HTTP["url"] == "x" {\nssl.pemfile = "$dir/none"\n}\n}, qr{^78 DIR/x\.conf:4:1: ssl\.pemfile is needed before there is a request}, 'another condition'],
	) {
		like $check->($_->[0]), $_->[1], $_->[2];
	}
	my $srv = Test::Server->start(unchecked => 1, conf => ssl() =~ s/first\.key/other.key/r);
	ok defined $srv->wait_exit, 'no start with a wrong key';
};

# ---------------------------------------------------------------- files, on every backend

my $big = join '', map { md5_hex($_) } 1 .. 100_000;
for my $backend (Test::Server::backends()) {
	subtest "files, $backend" => sub {
		my $srv = Test::Server->start(conf => ssl() . qq{server.network-backend = "$backend"\nstatus.statistics-url = "/counters"\n});
		$srv->write('small.txt', "hello\n");
		$srv->write('big', $big);
		$srv->settle(qw(small.txt big));
		for my $time ('cold', 'again', 'hot', 'hot again') {
			is_deeply [curl($srv, '/small.txt')], [0, "hello\n"], "a small file, $time";
			my ($rc, $got) = curl($srv, '/big');
			is "$rc " . md5_hex($got), '0 ' . md5_hex($big), "a large one, $time";
		}
		is_deeply [curl($srv, '/big', '-r', '70001-200000')], [0, substr $big, 70001, 130_000], 'a range';
		is_deeply [curl($srv, '/big', '--limit-rate', '2M')], [0, $big], 'a client that is slow';
		my $c = Test::Tls::connect($srv, ca => $cert->{pem});
		$c->send(req('/small.txt') . req('/big') . req('/small.txt'));
		is_deeply [map { md5_hex($c->reply->{body}) } 1 .. 3], [map { md5_hex($_) } "hello\n", $big, "hello\n"], 'pipelined, on one connection';
		$c->send(req('/counters'));
		like $c->reply->{body}, qr/^server\.tls\.handshakes: 11$/m, 'handshakes are counted';
	};
}

# ---------------------------------------------------------------- one server for the rest

my $srv = Test::Server->start(conf => ssl() . <<'CONF' . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket));
server.upload-dirs = ( "@RUN@" )
server.max-read-idle = 9
server.max-keep-alive-idle = 600
server.max-worker = 1
status.statistics-url = "/counters"
$HTTP["scheme"] == "https" { server.document-root = "@DIR@/www" }
CONF
$srv->write('www/a', 'safe');
$srv->write('www/dir/index.html', 'index');
my $conn = sub (@args) { return Test::Tls::connect($srv, ca => $cert->{pem}, args => \@args) };

sub counter ($name) {
	my $c = $conn->();
	$c->send(req('/counters'));
	return ($c->reply->{body} =~ /^\Qserver.$name\E: (\d+)$/m)[0];
}

subtest 'versions' => sub {
	for my $version (qw(1_2 1_3)) {
		my $c = $conn->("-tls$version");
		$c->send(req('/a') x 2);
		is $c->reply->{body}, 'safe', "TLS $version, and the scheme is https" for 1, 2;
	}
	my $failed = counter('tls.failed');
	my $c = $conn->('-tls1_1', '-cipher', 'ALL:@SECLEVEL=0');
	$c->send(req('/a'));
	is $c->rest, '', 'TLS 1.1 is refused';
	$c->leave;
	$srv->log_has(qr/level=info ev=tls\.failed address=127\.0\.0\.1 listener=\S+ why="unsupported protocol"/, '... and logged');
	is counter('tls.failed'), $failed + 1, '... and counted';
};

subtest 'sessions are resumed with tickets' => sub {
	my $file = "$keys/session";
	my $resumed = counter('tls.resumed');
	for my $version (qw(1_2 1_3)) {
		for my $how ('-sess_out', '-sess_in') {
			my $c = $conn->("-tls$version", $how, $file);
			$c->send(req('/a', 'Connection: close'));
			is $c->reply->{body}, 'safe', "$version, $how";
			ok $c->closed, '... and the client ends';
			ok eventually(sub { -s $file }), '... with a session';
		}
		unlink $file;
	}
	is counter('tls.resumed'), $resumed + 2, 'both';
};

subtest 'applications' => sub {
	my $c = $conn->();
	$c->send(req('/app/env'));
	my $env = $c->reply->{body};
	like $env, qr/^HTTPS=on$/m, 'HTTPS';
	like $env, qr/^REQUEST_SCHEME=https$/m, 'REQUEST_SCHEME';
	my $body = substr $big, 0, 3_000_000;
	for (1, 2) {
		$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nContent-Length: " . length($body) . "\r\n\r\n$body");
		is $c->reply->{body}, length($body) . ' ' . md5_hex($body), 'an upload of 3 MB';
	}
	$c->send(req('/app/big?100'));
	is length $c->reply->{body}, 5_000_000, 'a reply of 5 MB';
	$c->send(req('/dir'));
	my $where = $c->reply->{header}{location};
	like $where, qr{^(?:https://x)?/dir/\z}, 'a redirect stays with https';
};

# s_client logs an end that nobody announced.
subtest 'a client sees that a reply was cut' => sub {
	my $ends = sub ($path) {
		my $said = "$keys/said";
		my $c = Test::Tls::connect($srv, ca => $cert->{pem}, said => $said);
		$c->send(req($path, 'Connection: close'));
		my $got = $c->rest;
		return $got =~ /half of it/ ? slurp($said) =~ /unexpected eof/ ? 'cut' : 'end' : 'nothing';
	};
	is $ends->('/app/halfclose') // '', 'nothing', 'a control';
	is $ends->('/app/cutlen'), 'cut', 'of which bytes are missing';
};

# Its close_notify reaches a socket that has been read to its end.
subtest 'a client that says its end during the last reply' => sub {
	$srv->write('www/huge', 'x' x 12_000_000);
	my $c = Test::Tls::client($srv, rcvbuf => 65_536);
	$c->send(req('/huge', 'Connection: close'));
	my ($head) = map { length } $c->take(100_000) =~ m{\A(HTTP/1\.1 200 .*?\r\n\r\n)}s;
	$c->say_end;
	is length($c->take), 12_000_000 - 100_000 + $head, 'and gets all of it';
};

subtest 'plain HTTP and garbage' => sub {
	is $srv->request("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), '', 'plain HTTP is closed';
	$srv->log_has(qr/ev=tls\.failed .*why="plain HTTP"/, '... and logged');
	is $srv->request(join '', map { chr } 0 .. 255), '', 'so is garbage';
	like $srv->request("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"), qr/^\x15\x03.\x00\x02\x02/s, 'a broken hello gets an alert';
	like $srv->request("\x16\x03\x01\x00\x04\x01\x7f\xff\xff"), qr/^\x15\x03.\x00\x02\x02\x2f\z/s, '... and one without an end';
	is +(curl($srv, '/a'))[1], 'safe', 'others are served';
};

# The hello of s_client, which a listener of ours takes.
sub hello {
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
	my $c = Test::Tls::connect(bless { port => $sock->sockport }, 'Test::Server::Port');
	my $peer = $sock->accept or die "accept: $!";
	sysread $peer, my $bytes, 4096 or die "no hello\n";
	$c->leave;
	return $bytes;
}
sub Test::Server::Port::port { return $_[0]{port} }

subtest 'a client that stops in its handshake' => sub {
	my $hello = hello();
	my @stopped = map { my $c = $srv->connect; $c->send(substr $hello, 0, $_); $c } 0 .. length $hello;
	is +(curl($srv, '/a'))[1], 'safe', 'others are served beside 500 of them' for 1 .. 3;
	my @closed = map { $_->rest } @stopped;
	is scalar(grep { length } @closed), 1, 'only the whole hello has an answer';
	$srv->log_has(qr/ev=tls\.failed .*why="the handshake took longer than server\.max-read-idle"/, 'all are closed after the time for a head');
	for (0 .. length $hello) {
		my $c = $srv->connect;
		$c->send(substr $hello, 0, $_);
		setsockopt $c->sock, Socket::SOL_SOCKET, Socket::SO_LINGER, pack 'ii', 1, 0;
		close $c->sock;         # a reset
	}
	is +(curl($srv, '/a'))[1], 'safe', 'others are served after resets at each byte';
	my $c = $srv->connect;
	for (split //, $hello) { $c->send($_) }
	like $c->take(3), qr/^\x16\x03\x03/, 'a hello byte by byte is answered';
};

subtest 'a client that leaves during a reply' => sub {
	$srv->write('www/big', $big);
	for my $n (1, 20_000, 300_000, 2_000_000) {
		my $c = $conn->();
		$c->send(req('/big'));
		is length $c->take($n), $n, "$n bytes";
		$c->leave;
	}
	is +(curl($srv, '/big'))[1], $big, 'others are served';
};

subtest 'a session is resumed after a reload' => sub {
	my $file = "$keys/session";
	my $once = sub ($how) { my $c = $conn->($how, $file); $c->send(req('/a', 'Connection: close')); is $c->reply->{body}, 'safe', $how; $c->closed };
	$once->('-sess_out');
	ok eventually(sub { -s $file }), 'a session';
	$srv->signal('USR1');
	$srv->log_has(qr/ev=reloaded/, 'a reload');
	my $resumed = counter('tls.resumed');
	$once->('-sess_in');
	is counter('tls.resumed'), $resumed + 1, 'resumed';
};

subtest 'a session is resumed after an upgrade' => sub {
	my $s = Test::Server->start(conf => ssl() . qq{server.pid-file = "\@RUN\@/pid"\nstatus.statistics-url = "/counters"\n});
	$s->write('a', 'safe');
	$s->wait_log(qr/ev=listening/);
	my $file = "$keys/upgraded";
	my $once = sub ($how, $path) {
		my $c = Test::Tls::connect($s, ca => $cert->{pem}, args => [$how, $file]);
		$c->send(req($path, 'Connection: close'));
		my $body = $c->reply->{body};
		$c->closed;
		return $body;
	};
	is $once->('-sess_out', '/a'), 'safe', 'a session';
	ok eventually(sub { -s $file }), '... is kept';
	for (1, 2) {
		my $old = $s->upgrade;
		ok $old, 'an upgrade';
		ok eventually(sub { Test::Server::is_gone($old) }), '... and the old process ends';
		like $once->('-sess_in', '/counters'), qr/^server\.tls\.resumed: 1$/m, 'resumed in the new one';
		my @its = grep { my ($name, $value) = split /=/, $_, 2; ($ENV{$name} // '') ne ($value // '') } split /\0/, slurp('/proc/' . $s->pid . '/environ');
		unlike "@its", qr/[0-9a-f]{32}/, 'no key is in its environment';        # ours may have a commit
	}
	unlike $s->log, qr/upgrade\.tickets|[0-9a-f]{60}/, '... nor in the log';
};

subtest 'a reload takes a new certificate, and a wrong one is refused' => sub {
	my $conf = slurp($srv->run . '/server.conf');
	put($srv->run . '/server.conf', $conf =~ s/first\.key/other.key/r);
	$srv->signal('USR1');
	like $srv->wait_log(qr/ssl\.privkey: .*does not belong/), qr/ev=config\.unusable .*ssl\.privkey: .*does not belong/, 'the key of another certificate';
	my $refused = qr/level=error ev=reload\.refused what="it cannot start; [^"]*" then="the old configuration stays in use"/;
	like $srv->wait_log($refused), $refused, '... a reload that is refused says so';
	is +(curl($srv, '/a'))[1], 'safe', '... and the old certificate stays in use';
	my @idle = map { my $c = $conn->(); $c->send(req('/a')); $c->reply; $c } 1 .. 20;
	my $kept = $conn->();
	$kept->send(req('/app/steps', 'Connection: close'));
	is $kept->take(4) , 'HTTP', 'a reply has begun';
	put($srv->run . '/server.conf', $conf =~ s/first\./other./gr);
	$srv->signal('USR1');
	is scalar($srv->wait_lines(2, qr/ev=reloaded/)), 2, 'both';
	# a worker of before may accept once more
	ok eventually(sub { (curl($srv, '/a'))[0] != 0 }), 'a client that believes the old one only leaves';
	my $c = Test::Tls::connect($srv, ca => $other->{pem});
	$c->send(req('/a'));
	is $c->reply->{body}, 'safe', 'another is served';
	is scalar(grep { $_->send(req('/a')); (($_->reply // {})->{body} // '') eq 'safe' } @idle), 20, 'idle connections go on';
	$app->note('go');
	like $kept->rest, qr/two .*three/s, 'the old reply goes on';
};

subtest 'a reload gives TLS to a socket, or takes it: each connection stays what it is' => sub {
	my $s = Test::Server->start(conf => 'server.max-worker = 1');
	$s->write('a', 'safe');
	my $plain = slurp($s->run . '/server.conf');
	my $reloads = 0;
	my $reload = sub ($conf) {
		put($s->run . '/server.conf', $conf);
		$s->signal('USR1');
		return is scalar($s->wait_lines(++$reloads, qr/ev=reloaded/)), $reloads, 'a reload';
	};
	my $answered = sub ($what, @conns) {
		for (@conns) {
			$_->send(req('/a'));
			my $r = $_->reply // {};
			is $r->{body}, 'safe', "$what is answered";
			is $r->{header}{connection}, 'close', '... and told to come again';
		}
	};
	my ($silent, @kept) = map { $s->connect } 0 .. 10;        # accepted in this order
	for (@kept) { $_->send(req('/a')); is $_->reply->{body}, 'safe', 'plain' }
	$reload->(ssl() . $plain);
	$answered->('a plain connection', @kept);
	$answered->('... that was silent', $silent);
	my @secure = map { Test::Tls::client($s) } 1 .. 10;
	for (@secure) { $_->send(req('/a')); is $_->reply->{body}, 'safe', 'TLS' }
	$reload->($plain);
	$answered->('a connection with TLS', @secure);
	my $c = $s->connect;
	$c->send(req('/a'));
	is $c->reply->{body}, 'safe', 'a new one is plain';

	$reload->(ssl() . qq{server.proxy-protocol = ( "127.0.0.1" )\n$plain});
	my $waits = $s->connect(http1 => 1);
	$c = $s->connect(http1 => 1);
	$c->send("PROXY UNKNOWN\r\n" . hello());
	like $c->take(3), qr/^\x16\x03\x03/, 'the socket has TLS';
	$reload->(qq{server.proxy-protocol = ( "127.0.0.1" )\n$plain});
	$waits->send("PROXY UNKNOWN\r\n");
	is $waits->rest, '', 'one that has not begun its handshake ends';
	ok $waits->{eof}, '... at once';
};

# ---------------------------------------------------------------- hosts

subtest 'a host has a certificate of its own' => sub {
	my %of = map { $_ => Test::Tls::certificate($keys, $_, hosts => ["$_.example"]) } qw(a b);
	my $s = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n} . ssl() . join '', map { qq{\$HTTP["host"] == "$_.example" {\nssl.pemfile = "$of{$_}{pem}"\nssl.privkey = "$of{$_}{key}"\nserver.document-root = "\@DIR\@/$_"\n}\n} } qw(a b));
	$s->write("$_/who", $_) for qw(a b);
	$s->write('who', 'none');
	my $ask = sub ($host, $ca) {
		my @to = ('--resolve', "$host:@{[ $s->port ]}:127.0.0.1");
		my $rc = system $curl, '-s', '--max-time', 60, '--cacert', $ca->{pem}, '-o', "$keys/out", @to, "https://$host:@{[ $s->port ]}/who";
		return $rc == 0 ? slurp("$keys/out") : 'refused';
	};
	for (1, 2) {
		is $ask->("$_.example", $of{$_}), $_, "$_.example" for qw(a b);
		is $ask->('A.Example', $of{a}), 'a', 'in capitals';
		is $ask->('a.example', $of{b}), 'refused', '... and not the other one';
		is $ask->('localhost', $cert), 'none', 'any other host has that of the socket';
	}
	is +(curl($s, '/who'))[1], 'none', 'so has an address';
};

subtest 'ten thousand hosts share a certificate' => sub {
	my $long = { %$cert, pem => put("$keys/long.pem", "# a comment\n" x 700 . slurp($cert->{pem})) };        # 80 MB if each block reads it
	my $s = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n} . ssl($long) . join '', map { qq{\$HTTP["host"] == "h$_" { static-file.etags = "disable" }\n} } 1 .. 10_000);
	$s->write('a', 'x');
	is +(curl($s, '/a'))[1], 'x', 'the record of the load has it once';
};

# ---------------------------------------------------------------- sockets

subtest 'ssl.engine outside of blocks is for server.port' => sub {
	for my $case (['', 'http'], ['ssl.engine = "enable"', 'https'], ['ssl.engine = "disable"', 'http']) {
		my $s = Test::Server->start(conf => ssl() . qq{\$SERVER["socket"] == "127.0.0.1:\@PORT\@" {\n$case->[0]\n\$HTTP["url"] =~ "^/to" { url.redirect = ( "" => "https://\${url.authority}\${url.path}\${qsa}" ) }\n}\n});
		$s->write('a', 'x');
		is +(curl($s, '/a'))[1], 'x', "$case->[0]: https" if $case->[1] eq 'https';
		is $s->fetch('/a', Connection => 'close')->{body}, 'x', "$case->[0]: http" if $case->[1] eq 'http';
		is $s->fetch('/to?q', Connection => 'close')->{header}{location}, 'https://localhost/to?q', '... and the redirect of doc/server.md' if $case->[1] eq 'http';
	}
};

subtest 'commands of OpenSSL' => sub {
	my $s = Test::Server->start(conf => ssl() . qq{ssl.openssl.ssl-conf-cmd = ( "MinProtocol" => "TLSv1.3" )\n});
	$s->write('a', 'x');
	is +(curl($s, '/a'))[1], 'x', 'TLS 1.3';
	isnt +(curl($s, '/a', '--tls-max', '1.2'))[0], 0, '... and no older one';
};

subtest 'the header of the PROXY protocol is plain' => sub {
	my $s = Test::Server->start(conf => ssl() . qq{server.proxy-protocol = ( "127.0.0.1" )\naccesslog.filename = "\@RUN\@/access.log"\n});
	$s->write('a', 'x');
	my ($rc, $got) = curl($s, '/a', '--haproxy-protocol');
	is "$rc $got", '0 x', 'from curl';
	my $hello = hello();
	my $c = $s->connect;
	$c->send("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n" . substr $hello, 0, 100);
	$c->send(substr $hello, 100);
	like $c->take(3), qr/^\x16\x03\x03/, 'with the beginning of a hello';
	$c = $s->connect;
	$c->send($hello);
	is $c->rest, '', 'without it there is no handshake';
};

done_testing;
