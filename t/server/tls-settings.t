# TLS: ciphers, curves, certificates between ours and a root; what is offered without settings.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually program put slurp);

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'first');
my $rsa = Test::Tls::certificate($keys, 'rsa', rsa => 2048);
my $root = Test::Tls::certificate($keys, 'root', ca => 1);
my $between = Test::Tls::certificate($keys, 'between', ca => 1, by => $root);
my $leaf = Test::Tls::certificate($keys, 'leaf', by => $between, hosts => ['leaf.example']);

sub ssl ($c = $cert) { return qq{ssl.engine = "enable"\nssl.pemfile = "$c->{pem}"\nssl.privkey = "$c->{key}"\n} }
sub block ($when, $lines) { return "\$$when {\n$lines}\n" }
sub start ($conf) { return Test::Server->start(conf => $conf) }
sub shaken ($srv, @args) { return Test::Tls::shaken($srv->port, @args) // {} }

sub check ($lines) {
	my $file = put("$keys/x.conf", qq{server.document-root = "$keys"\nserver.port = 0\n$lines});
	my $said = qx{@{[ program('accel-server') ]} -t -f $file 2>&1 </dev/null};
	return ($? >> 8) . ' ' . $said =~ s/\Q$keys\E/DIR/gr;
}

# ---------------------------------------------------------------- without settings

subtest 'defaults' => sub {
	my $srv = start(ssl() . qq{server.max-worker = 1\n});
	$srv->write('a', 'safe');
	is shaken($srv, "-tls$_", '-cipher', 'ALL:@SECLEVEL=0')->{version}, undef, "TLS $_ is refused" for qw(1 1_1);
	is shaken($srv, "-tls$_")->{version}, 'TLSv' . tr/_/./r, "TLS $_" for qw(1_2 1_3);
	is shaken($srv, '-tls1_2', '-groups', 'P-256:P-384:X25519')->{group}, 'X25519', 'X25519 first, whatever the order of the client: TLS 1.2';
	is shaken($srv, '-tls1_3', '-groups', 'P-256:P-384:X25519')->{group}, 'ECDH, prime256v1', 'TLS 1.3: the group whose share the client has sent, without another round trip';
	is shaken($srv, "-tls$_", '-groups', 'X25519:P-256')->{group}, 'X25519', "X25519, TLS $_" for qw(1_2 1_3);
	is_deeply [grep { shaken($srv, '-tls1_2', '-cipher', "$_:\@SECLEVEL=0")->{cipher} } split /[:\s]+/, Test::Tls::run(qw(ciphers -tls1_2 -s ALL:COMPLEMENTOFALL:@SECLEVEL=0))],
	    [qw(ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-GCM-SHA256)], 'ciphers of TLS 1.2: forward secrecy, authenticated';
	like shaken($srv, '-tls1_2', '-comp')->{said}, qr/^Compression: NONE$/m, 'no compression';
	like shaken($srv, '-tls1_2', '-cipher', 'ALL')->{said}, qr/^Secure Renegotiation IS supported$/m, 'no renegotiation is spliced in (RFC 5746)';
	my $session = "$keys/session";
	my $c = Test::Tls::connect($srv, args => ['-tls1_3', '-sess_out', $session]);
	$c->send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	is $c->reply->{body}, 'safe', 'a session';
	ok eventually(sub { -s $session }), '... that a client keeps';
	my $again = shaken($srv, '-tls1_3', '-sess_in', $session)->{said};
	like $again, qr/^Reused, TLSv1\.3/m, '... is resumed';
	like Test::Tls::run('sess_id', '-in', $session, '-text', '-noout'), qr/^ *Max Early Data: 0$/m, '... and allows no request before the handshake (0-RTT)';
};

# ---------------------------------------------------------------- ciphers

# The first two: whose order counts.  The client of the third has other ciphers only.
my ($strong, $weaker) = qw(ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-AES128-GCM-SHA256);
subtest 'ssl.cipher-list' => sub {
	my @old = ('-tls1_2', '-cipher', "$strong:$weaker");      # the order of the client
	for my $case (
		['', $weaker, 'the server chooses without it'],
		['ssl.honor-cipher-order = "disable"', $strong, '... unless it does not want to'],
		[qq{ssl.cipher-list = "$strong:$weaker"}, $strong, 'its order counts'],
		[qq{ssl.cipher-list = "$weaker:$strong"\nssl.honor-cipher-order = "disable"}, $strong, '... or that of the client'],
		[qq{ssl.cipher-list = "ECDHE+CHACHA20"}, undef, 'no other cipher is taken'],
	) {
		is shaken(start(ssl() . "$case->[0]\n"), @old)->{cipher}, $case->[1], $case->[2];
	}
	is shaken(start(ssl()), '-tls1_2', '-cipher', "ECDHE-ECDSA-CHACHA20-POLY1305:$weaker")->{cipher}, 'ECDHE-ECDSA-CHACHA20-POLY1305', 'a client without instructions for AES';
	is shaken(start(ssl()), '-ciphersuites', "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256")->{cipher}, 'TLS_AES_128_GCM_SHA256', 'TLS 1.3';
	my $srv = start(ssl() . qq{ssl.cipher-list = "ECDHE+CHACHA20"\n});
	is shaken($srv)->{version}, 'TLSv1.3', 'TLS 1.3 has ciphers of its own';
	like check(ssl() . qq{ssl.cipher-list = "NO-SUCH"\n}), qr/^78 DIR\/x\.conf:6:19: ssl\.cipher-list: "NO-SUCH": expected names of ciphers/, 'a name that does not exist';
	like check(qq{\$HTTP["host"] == "x" { ssl.cipher-list = "ECDHE" }\n}), qr/^78 DIR\/x\.conf:3:24: ssl\.cipher-list is for a listening socket/, 'in the block of a host';
};

subtest 'old clients need an old level' => sub {
	my @old = ('-tls1', '-cipher', 'ALL:@SECLEVEL=0');
	my $srv = start(ssl() . qq{ssl.cipher-list = "ALL:\@SECLEVEL=0"\nssl.openssl.ssl-conf-cmd = ( "MinProtocol" => "TLSv1" )\n});
	is shaken($srv, @old)->{version}, 'TLSv1', 'TLS 1.0 where it is allowed';
	is shaken(start(ssl()), @old)->{version}, undef, '... and nowhere else';
	my $weak = Test::Tls::certificate($keys, 'weak', rsa => 1024);
	like check(ssl($weak)), qr/^78 DIR\/x\.conf:4:15: ssl\.pemfile: "DIR\/weak\.pem": /, 'a key of 1024 bits';
	is check(ssl($weak) . qq{ssl.cipher-list = "ALL:\@SECLEVEL=0"\n}), "0 Syntax OK\n", '... is taken at level 0';
};

# ---------------------------------------------------------------- exchange of keys

subtest 'ssl.ec-curve' => sub {
	is shaken(start(ssl()))->{group}, 'X25519', 'X25519 without it';
	my $srv = start(ssl() . qq{ssl.ec-curve = "secp384r1"\n});
	is shaken($srv, @$_)->{group}, 'ECDH, secp384r1', "secp384r1: @$_" for ['-tls1_2'], ['-tls1_3'];
	is shaken($srv, '-groups', 'X25519')->{group}, undef, '... and no other';
	like check(ssl() . qq{ssl.ec-curve = "secp9"\n}), qr/^78 DIR\/x\.conf:6:16: ssl\.ec-curve: "secp9": expected names of curves/, 'a name that does not exist';
};

subtest 'ssl.dh-file' => sub {
	my @old = ('-tls1_2', '-cipher', 'DHE');
	Test::Tls::run(qw(dhparam -out), "$keys/dh512", 512);
	Test::Tls::run(qw(genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out), "$keys/dh2048");
	is shaken(start(ssl($rsa)), @old)->{cipher}, undef, 'no cipher with DHE without a list';
	like shaken(start(ssl($rsa) . qq{ssl.cipher-list = "DHE"\n}), @old)->{cipher}, qr/^DHE-RSA/, 'with one, parameters of OpenSSL';
	my $srv = start(ssl($rsa) . qq{ssl.cipher-list = "DHE"\nssl.dh-file = "$keys/dh2048"\n});
	like shaken($srv, @old)->{cipher}, qr/^DHE-RSA/, 'and those of a file';
	for ([dh512 => 'the parameters are too weak'], ['first.pem' => 'no parameters are in the file'], [none => 'No such file']) {
		like check(ssl() . qq{ssl.dh-file = "$keys/$_->[0]"\n}), qr/^78 DIR\/x\.conf:6:15: ssl\.dh-file: "DIR\/\Q$_->[0]\E": $_->[1]/, $_->[0];
	}
};

# ---------------------------------------------------------------- the chain

subtest 'ssl.ca-file' => sub {
	put("$keys/all.pem", join '', map { slurp($_->{pem}) } $root, $rsa, $between);
	put("$keys/whole.pem", slurp($leaf->{pem}) . slurp($between->{pem}));
	my $all = qq{ssl.ca-file = "$keys/all.pem"\n};
	is_deeply shaken(start(ssl($leaf)))->{chain}, ['leaf'], 'a certificate alone';
	is_deeply shaken(start(ssl($leaf) . $all))->{chain}, ['leaf', 'between'], 'those between it and the root come from the file';
	is_deeply shaken(start(ssl() . $all))->{chain}, ['first'], 'not for one that is its own root';
	is_deeply shaken(start(ssl({ %$leaf, pem => "$keys/whole.pem" }) . $all))->{chain}, ['leaf', 'between'], 'nor beside those that ssl.pemfile has';
	my $srv = start(ssl($leaf) . $all);
	is Test::Tls::shaken($srv->port, '-CAfile', $root->{pem}, '-verify_return_error') && 'yes', 'yes', 'a client that knows the root believes it';
	my $host = start(ssl() . block('HTTP["host"] == "leaf.example"', $all . ssl($leaf) =~ s/^.*\n//r));
	is_deeply shaken($host, '-servername', 'leaf.example')->{chain}, ['leaf', 'between'], 'in the block of a host';
	is_deeply shaken($host)->{chain}, ['first'], '... and only there';
	# A certificate is one with what completes it; where no block has both, the first one with it counts.
	my $set = ssl($leaf) =~ s/^.*\n//r;
	my $two = start(ssl() . block('HTTP["host"] == "a"', $set) . block('HTTP["host"] == "leaf.example"', $all . $set) . block('HTTP["host"] =~ "^c"', $set) . block('HTTP["host"] == "c"', qq{ssl.ca-file = "$keys/whole.pem"\n}));
	is join('|', map { "@{ shaken($two, '-servername', $_)->{chain} }" } 'a', 'leaf.example', 'c'), 'leaf|leaf between|leaf', 'the same certificate with it, and without';
	put("$keys/empty", '');
	put("$keys/cut.pem", slurp($root->{pem}) . substr slurp($between->{pem}), 0, 300);
	for ([empty => 'no certificate is in the file'], ['cut.pem' => 'a certificate cannot be read'], [none => 'No such file']) {
		like check(ssl() . qq{ssl.ca-file = "$keys/$_->[0]"\n}), qr/^78 DIR\/x\.conf:6:15: ssl\.ca-file: "DIR\/\Q$_->[0]\E": $_->[1]/, $_->[0];
	}
};

subtest 'RSA and ECDSA side by side' => sub {
	my $ec = Test::Tls::certificate($keys, 'ec', by => $between);
	my $r = Test::Tls::certificate($keys, 'r', by => $between, rsa => 2048);
	my $file = sub ($name, @parts) { put("$keys/$name", join '', map { slurp($_) } @parts) };
	my $one = $file->('one.pem', map { ($_->{key}, $_->{pem}, $between->{pem}) } $r, $ec);
	my $two = $file->('two.pem', $ec->{pem}, $between->{pem}, $r->{pem}, $between->{pem});
	my $two_keys = $file->('two.key', $r->{key}, $ec->{key});
	my $bare = $file->('bare.pem', $r->{pem}, $ec->{pem});
	for my $case (
		[qq{ssl.pemfile = "$one"\n}, 'all in one file'],
		[qq{ssl.pemfile = "$two"\nssl.privkey = "$two_keys"\n}, 'keys in another one'],
		[qq{ssl.pemfile = "$bare"\nssl.privkey = "$two_keys"\nssl.ca-file = "$between->{pem}"\n}, 'chains from ssl.ca-file'],
	) {
		my $conf = qq{ssl.engine = "enable"\n$case->[0]};
		is check($conf), "0 Syntax OK\n", $case->[1];
		my $srv = start($conf);
		for my $version (qw(1_2 1_3)) {
			for (['RSA-PSS+SHA256', 'r'], ['ECDSA+SHA256', 'ec'], ['ECDSA+SHA256:RSA-PSS+SHA256', 'ec']) {
				is_deeply shaken($srv, "-tls$version", '-sigalgs', $_->[0])->{chain}, [$_->[1], 'between'], "TLS $version, a client with $_->[0]";
			}
		}
	}
	is_deeply shaken(start(ssl({ pem => $two, key => $ec->{key} })))->{chain}, [qw(ec between r between)], 'a certificate whose key is missing is one of the chain';
	like check(ssl({ pem => $two, key => $r->{key} })), qr/^78 DIR\/x\.conf:5:15: ssl\.privkey: "DIR\/r\.key": the key does not belong to/, 'the key of the first one must be there';
	my $over = Test::Tls::certificate($keys, 'over', from => time - 9 * 86400, to => time - 86400);
	like check('ssl.engine = "enable"' . qq{\nssl.pemfile = "@{[ $file->('half.pem', map { ($_->{key}, $_->{pem}) } $rsa, $over) ]}"\n}), qr/^0 DIR.*half\.pem": the certificate of "\/CN=over" ended at [^\n]*\nSyntax OK\n\z/, 'dates of both are looked at';
};

# ---------------------------------------------------------------- sockets and hosts

subtest 'a host has the settings of its socket' => sub {
	my $host = block('HTTP["host"] == "leaf.example"', ssl($leaf) =~ s/^.*\n//r);
	my $srv = start(block('SERVER["socket"] == "127.0.0.1:@PORT@"', ssl() . qq{ssl.ec-curve = "P-384"\n}) . $host);
	my @name = ('-servername', 'leaf.example');
	is_deeply shaken($srv, @name)->{chain}, ['leaf'], 'its certificate';
	is shaken($srv, @name)->{group}, 'ECDH, secp384r1', '... with the curve of the socket';
	my $broken = block('HTTP["host"] == "b"', qq{ssl.pemfile = "$keys/none"\n});
	my $tls = block('SERVER["socket"] == ":0"', ssl());
	is check($tls . block('SERVER["socket"] == "127.0.0.1:0"', $broken)), "0 Syntax OK\n", 'one that no socket with TLS can reach';
	like check($tls . $broken), qr/^78 DIR\/x\.conf:9:15: ssl\.pemfile: "DIR\/none": No such file/, 'one that a socket can reach';
};

subtest 'what lighttpd has, and this server has not' => sub {
	for (qw(ssl.use-sslv2 ssl.use-sslv3 ssl.use-compression)) {
		like check(qq{$_ = "disable"\n}), qr/^0 .*Syntax OK$/s, "$_: disable";
		like check(qq{$_ = "enable"\n}), qr/^78 DIR\/x\.conf:3:1: \Q$_\E cannot be used here\. /, "$_: enable";
	}
	like check(qq{ssl.ech-opts = ( "keydir" => "/x" )\n}), qr/^78 .*ssl\.ech-opts cannot be used here\. .*OpenSSL 3 has no ECH/, 'ssl.ech-opts';
};

# The service manager passes 127.0.0.1, and the configuration names 127.0.0.2 only.
subtest 'ssl.engine by a pattern' => sub {
	my $pattern = block('SERVER["socket"] =~ "^127.0.0.1"', ssl());
	is shaken(start($pattern), '-tls1_3')->{version}, 'TLSv1.3', 'of a socket that has a name';
	my $srv = Test::Server->start(conf => qq{server.bind = "127.0.0.2"\n$pattern}, unchecked => 1);
	is $srv->wait_exit >> 8, 78, 'another one does not speak plain text';
	$srv->log_has(qr/ev=config\.unusable why="ssl\.engine is enabled for \\x22127\.0\.0\.1:\d+\\x22, a socket that no setting names; write its lines into a block/, '... and the log says why');
};

done_testing;
