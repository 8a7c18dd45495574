# ssl.stapling-file: clients get the OCSP response of an authority with the certificate. A file that is replaced is used without a
# reload; one that cannot be used is left out with a warning, and stops neither the start nor a renewed certificate.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually program put slurp);

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $root = Test::Tls::certificate($keys, 'root', ca => 1);
my %leaf = map { $_ => Test::Tls::certificate($keys, $_, by => $root, hosts => ['localhost']) } qw(one two);

# What the authority says of a certificate: V, it is valid, or R, revoked.
sub response ($cert, $state = 'V') {
	my ($serial) = Test::Tls::run(qw(x509 -noout -serial -in), $cert->{pem}) =~ /^serial=(\w+)$/m;
	put("$keys/index", join "\t", $state, '491231235959Z', $state eq 'R' ? '200101000000Z' : '', $serial, 'unknown', "/CN=x\n");
	Test::Tls::run(qw(ocsp -issuer), $root->{pem}, '-cert', $cert->{pem}, '-reqout', "$keys/request");
	Test::Tls::run(qw(ocsp -ndays 1 -index), "$keys/index", '-CA', $root->{pem}, '-rsigner', $root->{pem}, '-rkey', $root->{key}, '-reqin', "$keys/request", '-respout', "$keys/response");
	return slurp("$keys/response");
}

# Its nextUpdate has passed; the client would find that its signature is wrong, the server does not look at that.
sub over ($response) {
	$response =~ s/(\xa0\x11\x18\x0f)\d{14}Z/${1}20200101000000Z/ or die 'no nextUpdate';
	return $response;
}

my %response = map { $_ => response($leaf{$_}) } keys %leaf;
isnt $response{one}, $response{two}, 'openssl ocsp answers for two certificates';

# By rename, as clients of ACME do.
sub replace ($dir, %file) {
	for (sort keys %file) {
		put("$dir/new", $file{$_});
		rename "$dir/new", "$dir/x.$_" or die "rename: $!";
	}
	return;
}

sub certificate ($name) { return (key => slurp($leaf{$name}{key}), pem => slurp($leaf{$name}{pem}) . slurp($root->{pem})) }

sub ssl ($dir) { return qq{ssl.engine = "enable"\nssl.pemfile = "$dir/x.pem"\nssl.privkey = "$dir/x.key"\nssl.stapling-file = "$dir/x.ocsp"\n} }

sub start (%file) {
	my $dir = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
	replace($dir, certificate('one'), %file);
	my $srv = Test::Server->start(conf => ssl($dir) . qq{server.max-worker = 1\n});
	return ($srv, $dir);
}

# The state that a client of this version gets with the certificate of this name.
sub stapled ($srv, @args) {
	my $is = Test::Tls::shaken($srv->port, '-status', '-servername', 'localhost', '-CAfile', $root->{pem}, @args) or return 'no handshake';
	my $name = $is->{chain}[0] // '?';
	return "$name: nothing" if $is->{said} =~ /^OCSP response: no response sent$/m;
	return $is->{said} =~ /OCSP Response Status: successful \(0x0\).*Cert Status: (\w+)/s ? "$name: $1" : "$name: ?";
}

sub lines ($srv, $what) { return scalar(() = $srv->log =~ /ev=\Q$what\E /g) }
# The n-th warning of a file that has changed.
sub warns ($srv, $n, $why, $what) {
	ok eventually(sub { lines($srv, 'certificate.unstapled') >= $n }), "$what: a line tells it";
	my @line = grep { /ev=certificate\.unstapled / } split /\n/, $srv->log;
	is scalar @line, $n, '... once';
	like $line[-1] // '', qr{level=warn ev=certificate\.unstapled why="\S+/server\.conf:\d+:\d+: ssl\.stapling-file: \\x22\S+/x\.ocsp\\x22: $why}, '... with the reason';
	return;
}

subtest 'clients get it, of each version' => sub {
	my ($srv, $dir) = start(ocsp => $response{one});
	is stapled($srv, "-$_"), 'one: good', $_ for qw(tls1_2 tls1_3);
	unlike Test::Tls::shaken($srv->port)->{said}, qr/^OCSP/m, 'a client that does not ask';
	unlike $srv->log, qr/ev=config\.warning/, 'nothing to warn of';
};

subtest 'a file that is replaced' => sub {
	my ($srv, $dir) = start(ocsp => 'nonsense');
	my $line = qr{level=warn ev=config\.warning what="\S+:\d+:21: ssl\.stapling-file: \\x22\S+/x\.ocsp\\x22: clients do not get it: it is no OCSP response};
	like $srv->wait_log($line), $line, 'the start warns';
	is stapled($srv), 'one: nothing', '... and clients get none';
	replace($dir, ocsp => $response{one});
	ok eventually(sub { stapled($srv) eq 'one: good' }), 'the next one is sent, without a reload';
	replace($dir, ocsp => over($response{one}));
	warns($srv, 1, 'it is over \(nextUpdate\)', 'one that is over');
	is stapled($srv), 'one: nothing', '... is not sent';
	replace($dir, ocsp => response($leaf{one}, 'R'));
	warns($srv, 2, 'it says that the certificate is revoked', 'a revoked certificate');
	unlink "$dir/x.ocsp" or die "unlink: $!";
	warns($srv, 3, 'No such file', 'one that is gone');
	is stapled($srv), 'one: nothing', '... is not sent';
	replace($dir, ocsp => $response{one});
	ok eventually(sub { stapled($srv) eq 'one: good' }), 'it is back';
	is lines($srv, 'certificate.refused'), 0, 'no certificate was refused';
};

subtest 'a renewed certificate comes before its response' => sub {
	my ($srv, $dir) = start(ocsp => $response{one});
	is stapled($srv), 'one: good', 'the first one';
	replace($dir, certificate('two'));
	ok eventually(sub { stapled($srv) eq 'two: nothing' }), 'the next one, without the old response';
	warns($srv, 1, 'it is not about a certificate in ssl\.pemfile', 'that of the old certificate');
	replace($dir, ocsp => $response{two});
	ok eventually(sub { stapled($srv) eq 'two: good' }), 'its own response';
};

subtest 'a reload and a missing file' => sub {
	my ($srv, $dir) = start();
	my $line = qr{ev=config\.warning what="[^"]*ssl\.stapling-file: \\x22\S+\\x22: clients do not get it: No such file};
	like $srv->wait_log($line), $line, 'the server starts without it';
	is stapled($srv), 'one: nothing', '... and serves';
	$srv->signal('USR1');
	is scalar($srv->wait_lines(2, $line)), 2, 'a reload warns, too';
	replace($dir, ocsp => $response{one});
	ok eventually(sub { stapled($srv) eq 'one: good' }), 'the file comes';
};

subtest '-t' => sub {
	my $dir = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
	my $check = sub (%file) {
		replace($dir, certificate('one'), %file);
		put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.port = 0\n} . ssl($dir));
		my $said = qx{@{[ program('accel-server') ]} -t -f $dir/x.conf 2>&1 </dev/null};
		return ($? >> 8) . ' ' . $said =~ s/\Q$dir\E/DIR/gr;
	};
	my $says = sub ($why) { return qr/^0 DIR\/x\.conf:6:21: ssl\.stapling-file: "DIR\/x\.ocsp": clients do not get it: $why[^\n]*\nSyntax OK\n\z/ };
	like $check->(), $says->('No such file'), 'no file';
	is $check->(ocsp => $response{one}), "0 Syntax OK\n", 'a good one';
	for (['', 'it is no OCSP response', 'an empty one'], [over($response{one}), 'it is over', 'one that is over'], [$response{two}, 'it is not about', 'of another certificate']) {
		like $check->(ocsp => $_->[0]), $says->($_->[1]), $_->[2];
	}
};

done_testing;
