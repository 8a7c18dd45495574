# One configuration with TLS on lighttpd (mod_openssl) and on accel-server: that of Debian's package, and those of lighttpd's manual. Clients
# see the same versions, ciphers, certificates and replies. Where they differ, the table says why, and the test fails when that is no longer so.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
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
my $root = Test::Tls::issued($keys, 'root', ca => 1);
my $between = Test::Tls::issued($keys, 'between', ca => 1, by => $root);
my $leaf = Test::Tls::issued($keys, 'leaf', by => $between, hosts => ['leaf.example']);

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

# want: undef for the same, or what ours does.
sub same ($pair, $name, $want, @args) {
	my ($theirs, $ours) = map { shaken($_, @args) } @$pair;
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
	return join ' ', $reply->{status} // 'none', map { $reply->{header}{$_} // '-' } qw(location strict-transport-security content-length);
}
sub At::port ($self) { return $self->{port} }

subtest '10-ssl.conf of Debian' => sub {
	my $text = slurp($debian) =~ s{"/etc/lighttpd/server\.pem"}{"$keys/server.pem"}r =~ s{"0\.0\.0\.0:443"}{"{TLS}"}r
	    =~ s{(use-ipv6\.pl 443)"}{$1 | sed 's/\\[::\\]:443/[::1]:{PORT}/'"}r;
	my $pair = [both($text)];
	diag "$_->{who}: ", ciphers($_) for @$pair;
	same($pair, "TLS $_", undef, "-tls$_", '-cipher', 'ALL:@SECLEVEL=0') for qw(1 1_1 1_2 1_3);
	same($pair, "group $_", undef, '-groups', $_) for qw(X25519 P-256 P-384 P-521 X448);
};

done_testing;
