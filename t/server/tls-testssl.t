# testssl.sh of Debian judges the defaults: no finding of medium severity or worse.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(need_program slurp);

# What a certificate of ours cannot have.
my %not_ours = (
	cert_revocation => 'no authority that could revoke it',
);

my $dir = File::Temp->newdir('accel-testssl-XXXXXX', TMPDIR => 1);
my $testssl = need_program('testssl', 'testssl.sh');
for my $key ([], [rsa => 2048]) {
	my $name = $key->[0] // 'ecdsa';
	my $cert = Test::Tls::certificate($dir, $name, @$key, to => time + 86400 * 200);
	my $srv = Test::Server->start(conf => qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n});
	my @checks = @$key ? qw(-P -U) : qw(-p -s -f -P -S -U);        # without 36 simulated clients, and each cipher in turn
	my @cmd = ($testssl, qw(--quiet --color 0 --warnings off --ip 127.0.0.1 --add-ca), $cert->{pem}, '--jsonfile', "$dir/$name.json", @checks, 'localhost:' . $srv->port);
	my $said = qx{@cmd 2>&1 </dev/null};
	my @found = @{ JSON::PP::decode_json(slurp("$dir/$name.json") || '[]') };
	cmp_ok scalar(grep { $_->{severity} eq 'OK' } @found), '>=', @$key ? 15 : 30, "$name: what is well is said" or diag $said;
	is_deeply [grep { !/^\S+ (?:@{[ join '|', keys %not_ours ]}):/ } map { "$_->{severity} $_->{id}: $_->{finding}" } grep { $_->{severity} =~ /^(?:MEDIUM|HIGH|CRITICAL|FATAL)$/ } @found], [], '... and nothing of medium severity or worse';
}
done_testing;
