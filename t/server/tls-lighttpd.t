# One configuration with TLS on lighttpd (mod_openssl) and on accel-server: that of Debian's package, and those of lighttpd's manual. Clients
# see the same versions, ciphers, certificates and replies. The table says where they differ, and why. The test fails when they do not differ there.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Peer;
use Accel::Util qw(free_port);
use Test::Http qw(parse req);
use Test::More;
use Test::Tls;
use Test::Util qw(need_program put slurp);

need_program('lighttpd', 'lighttpd');
my $debian = '/etc/lighttpd/conf-available/10-ssl.conf';
die "$debian is missing: apt-get install lighttpd-mod-openssl\n" unless -r $debian;
my $dir = Test::Util::temp_tree();
mkdir "$dir/$_" or die for qw(www keys);
put("$dir/www/a.txt", "text\n");
my $keys = "$dir/keys";
my $cert = Test::Tls::certificate($keys, 'first');
my $rsa = Test::Tls::certificate($keys, 'rsa', rsa => 2048);
put("$keys/server.pem", slurp($cert->{key}) . slurp($cert->{pem}));
my $root = Test::Tls::certificate($keys, 'root', ca => 1);
my $between = Test::Tls::certificate($keys, 'between', ca => 1, by => $root);
my $leaf = Test::Tls::certificate($keys, 'leaf', by => $between, hosts => ['leaf.example']);

my $plain = <<'END';
server.modules = ( "mod_redirect", "mod_setenv" )
server.bind = "127.0.0.1"
server.port = env.PORT
server.document-root = env.RUN + "/www"
server.errorlog = env.RUN + "/error." + env.WHO
mimetype.assign = ( ".txt" => "text/plain" )
END

# Both servers with this configuration. {TLS}: the address of the socket.
sub both ($conf) {
	return map {
		my ($who, $port) = ($_, free_port());
		my $file = put("$dir/conf.$who", $plain . $conf =~ s/\{TLS\}/127.0.0.1:$port/gr =~ s/\{PORT\}/$port/gr);
		my $peer = Accel::Peer->start($who, root => "$dir/www", file => $file, env => { RUN => "$dir", WHO => $who });
		{ who => $who, peer => $peer, tls => $port, said => "$dir/error.$who" };
	} 'lighttpd', 'accel';
}

sub shaken ($s, @args) {
	my $is = Test::Tls::shaken($s->{tls}, @args) or return 'no handshake';
	return join ' ', map { $_ // '-' } @$is{qw(version cipher group signature)}, "@{ $is->{chain} }";
}

# want: undef for the same, or what ours does. Where the server chooses, AES-128 comes first here, AES-256 there, unless a list is set.
sub same ($pair, $name, $want, @args) {
	my ($theirs, $ours) = map { shaken($_, @args) } @$pair;
	s/AES(_?)(?:128|256)([-_])GCM([-_])SHA\d+/AES$1$2GCM/ for grep { $name !~ /list|CipherString/ } $theirs, $ours;
	is $ours, $want // $theirs, "$name: $theirs";
	isnt $ours, $theirs, '... which differs' if defined $want;
	return;
}

sub ciphers ($s, @args) {
	return join ' ', grep { Test::Tls::shaken($s->{tls}, '-tls1_2', '-cipher', "$_:\@SECLEVEL=0", @args) } split /[:\s]+/, Test::Tls::run(qw(ciphers -tls1_2 -s), 'ALL:@SECLEVEL=0');
}

sub ask ($port, $tls, $path, @args) {
	my $c = $tls ? Test::Tls::connect(bless({ port => $port }, 'At'), args => \@args) : Test::Http::Conn->new($port);
	$c->send(req($path, 'Connection: close'));
	my $reply = parse($c->rest);
	return join ' ', $reply->{status} // 'none', map { $reply->{header}{$_} // '-' } qw(location strict-transport-security);
}
sub At::port ($self) { return $self->{port} }

subtest '10-ssl.conf of Debian' => sub {
	my $text = slurp($debian) =~ s{"/etc/lighttpd/server\.pem"}{"$keys/server.pem"}r =~ s{"0\.0\.0\.0:443"}{"{TLS}"}r
	    =~ s{(use-ipv6\.pl 443)"}{$1 | sed 's/\\[::\\]:443/[::1]:{PORT}/'"}r;
	my $pair = [both($text)];
	same($pair, "TLS $_", undef, "-tls$_", '-cipher', 'ALL:@SECLEVEL=0') for qw(1 1_1 1_2 1_3);
	same($pair, "group $_", undef, '-groups', $_) for qw(X25519 P-256 P-384 X25519:P-256 P-256:X25519);
	same($pair, "group $_", 'no handshake', '-groups', $_) for qw(P-521 X448);        # slower, and no browser has only these
	my ($theirs, $ours) = map { ciphers($_) } @$pair;
	is $theirs =~ s/ \S+CCM8?(?= )//gr, $ours, "ciphers: all but those of CCM, which no browser has: $theirs";
	is ask($_->{tls}, 1, '/a.txt'), '200 - -', "$_->{who} answers" for @$pair;
};

# From the page of mod_openssl, with other names: a certificate, its key and its chain; hosts by SNI, equal and by pattern; old names.
my $manual = <<END;
server.modules += ( "mod_openssl" )
ssl.pemfile = "$rsa->{pem}"
ssl.privkey = "$rsa->{key}"
\$SERVER["socket"] == "{TLS}" {
	ssl.engine = "enable"
	MORE
}
\$HTTP["host"] == "leaf.example" {
	ssl.pemfile = "$leaf->{pem}"
	ssl.privkey = "$leaf->{key}"
	ssl.ca-file = "$between->{pem}"
}
\$HTTP["host"] =~ "(^|\\.)first\\.example\$" {
	ssl.pemfile = "$keys/server.pem"
}
END
# lighttpd wants the certificate beside other settings of a socket.
my @pair = (qq{ssl.pemfile = "$rsa->{pem}"}, qq{ssl.privkey = "$rsa->{key}"});
sub manual (@lines) { return [both($manual =~ s/MORE/join "\n", @lines/er)] }

subtest 'a certificate for each host' => sub {
	my $pair = manual();
	same($pair, $_->[0], undef, '-servername', $_->[0]) for ['leaf.example'], ['LEAF.example'], ['first.example'], ['www.first.example'], ['notfirst.example'];
	same($pair, 'no name', undef, '-noservername');
	same($pair, 'a client that knows the root', undef, '-servername', 'leaf.example', '-CAfile', $root->{pem}, '-verify_return_error');
};

subtest 'settings of the manual' => sub {
	my @aes = ('-tls1_2', '-cipher', 'ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256');
	my $list = 'ssl.cipher-list = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"';
	same(manual(@pair, $list), 'ssl.cipher-list', undef, @aes);
	same(manual(@pair, 'ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1.3")'), 'MinProtocol', undef, '-tls1_2');
	my $pair = manual(@pair, 'ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1.2", "Options" => "-ServerPreference", "CipherString" => "ECDHE+AESGCM:ECDHE+CHACHA20", "Curves" => "P-384:X25519")');
	same($pair, 'CipherString', undef, @aes);
	same($pair, 'Curves', undef, '-groups', 'X25519:P-384');
	$pair = manual(@pair, 'ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1", "CipherString" => "ALL:@SECLEVEL=0")');
	same($pair, "TLS $_", undef, "-tls$_", '-cipher', 'ALL:@SECLEVEL=0') for qw(1 1_1);
};

subtest 'the redirect and the HSTS of doc/server.md' => sub {
	my @lines = slurp("$FindBin::Bin/../../doc/server.md") =~ /^    (\$HTTP\["scheme"\] == .*\})$/mg;
	is scalar @lines, 2, 'two lines of the document';
	my $pair = [both(join "\n", $manual =~ s/MORE//r, @lines, '')];
	for my $case ([0, '/a.txt?q=1'], [0, '/'], [0, '/b%20c/'], [1, '/a.txt']) {
		my ($theirs, $ours) = map { ask($case->[0] ? $_->{tls} : $_->{peer}->port, @$case) } @$pair;
		is $ours, $theirs, "$case->[1]: $theirs";
	}
	is ask($pair->[1]{peer}->port, 0, '/a.txt?q=1'), '301 https://x/a.txt?q=1 -', 'a redirect';
	is ask($pair->[1]{tls}, 1, '/a.txt'), '200 - max-age=31536000', '... and then the file, for a year over TLS';
};

done_testing;
