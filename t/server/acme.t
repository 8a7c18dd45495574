# Certificates by ACME: Debian's dehydrated gets one from Debian's pebble, a test authority on loopback, and renews it, with the
# configuration and the commands of doc/server.md.  The server takes both without a reload.
use v5.36;
use File::Temp ();
use FindBin;
use IO::Socket::INET ();
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use POSIX ();
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually find_program free_port put slurp);

my %program = map { $_ => find_program($_) } qw(pebble pebble-challtestsrv dehydrated curl openssl);
my @missing = grep { !$program{$_} } sort keys %program;
plan skip_all => "not installed: @missing (scripts/install-deps)" if @missing;

my $host = 'www.example.org';
my $dir = File::Temp->newdir('accel-acme-XXXXXX', TMPDIR => 1);
chmod 0755, $dir;
my %port = map { $_ => free_port() } qw(http https acme management dns dns_management);
my @running;

# Its output goes to a file; it ends with the test.
sub daemon ($name, $env, @args) {
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		$ENV{$_} = $env->{$_} for keys %$env;
		open my $out, '>', "$dir/$name.log" or POSIX::_exit(126);
		POSIX::dup2(fileno $out, $_) for 1, 2;
		{ no warnings; exec $program{$name}, @args }
		POSIX::_exit(127);
	}
	push @running, $pid;
	return;
}
END {
	local $?;
	for (@running) { kill 'TERM', $_; waitpid $_, 0 }
}

sub run (@cmd) {
	my $pid = open(my $out, q{-|}) // die "fork: $!";
	if (!$pid) { open STDERR, '>&', \*STDOUT; exec @cmd or POSIX::_exit(127) }
	my $said = do { local $/; <$out> };
	close $out;
	return ($? >> 8, $said);
}

# ---------------------------------------------------------------- the authority

my $api = Test::Tls::certificate($dir, 'api');
put("$dir/pebble.json", JSON::PP->new->encode({ pebble => {
	listenAddress => "127.0.0.1:$port{acme}", managementListenAddress => "127.0.0.1:$port{management}",
	certificate => $api->{pem}, privateKey => $api->{key}, httpPort => $port{http}, tlsPort => $port{https},
	ocspResponderURL => '', externalAccountBindingRequired => JSON::PP::false,
} }));
daemon('pebble-challtestsrv', {}, '-defaultIPv4', '127.0.0.1', '-defaultIPv6', '', '-http01', '', '-https01', '', '-tlsalpn01', '',
	'-dns01', "127.0.0.1:$port{dns}", '-management', "127.0.0.1:$port{dns_management}");
daemon('pebble', { PEBBLE_VA_NOSLEEP => 1, PEBBLE_WFE_NONCEREJECT => 0, PEBBLE_AUTHZREUSE => 0 }, '-config', "$dir/pebble.json", '-dnsserver', "127.0.0.1:$port{dns}");
my @curl = ($program{curl}, '-s', '--max-time', 60);
ok eventually(sub { (run(@curl, '--cacert', $api->{pem}, "https://127.0.0.1:$port{acme}/dir"))[0] == 0 }), 'the authority runs' or diag slurp("$dir/pebble.log");

ok eventually(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port{dns_management}") }), '... and the names' or diag slurp("$dir/pebble-challtestsrv.log");

# ---------------------------------------------------------------- what the document says

my ($section) = slurp("$FindBin::Bin/../../doc/server.md") =~ /^### Certificates by ACME.*?\n(.*?)^## /ms;
my ($conf) = $section =~ /^((?:    .*\n)+)/m;
my ($alpn_conf) = $section =~ /^(    ssl\.acme-tls-1 .*\n)/m;
my ($commands, $alpn_commands) = $section =~ /^```sh\n(.*?)^```/msg;
my $put_here = sub ($text) {
	$text =~ s{/var/lib/dehydrated}{$dir}g;
	$text =~ s/^    //gm;
	$text =~ s/":80"/"127.0.0.1:$port{http}"/;
	$text =~ s/server\.port = 443/server.port = $port{https}\nserver.bind = "127.0.0.1"/;
	$text =~ s/ -g www-data// if $>;
	return $text;
};
$_ = $put_here->($_) for $conf, $commands, $alpn_conf, $alpn_commands;
mkdir "$dir/acme-challenges" or die "mkdir: $!";        # the package has it
put("$dir/config", <<"CONF");
CA="https://127.0.0.1:$port{acme}/dir"
BASEDIR="$dir"
WELLKNOWN="$dir/acme-challenges"
CURL_OPTS="--cacert $api->{pem}"
KEY_ALGO=prime256v1
KEYSIZE=2048
CONF
my ($first, $then) = $commands =~ /\A(.*?)^systemctl restart accel-server\n(.*)\z/ms;
my $program = $program{dehydrated};
s/^dehydrated/$program --config $dir\/config/gm for $then, $alpn_commands;
is +(run('sh', '-ec', $first))[0], 0, 'a certificate to start with';
my ($alpn_first, $alpn_then) = $alpn_commands =~ /\A(.*?)^systemctl restart accel-server\n(.*)\z/ms;
is +(run('sh', '-ec', $alpn_first))[0], 0, '... and a directory of challenges';

my $srv = Test::Server->start(env => { LISTEN_FDS => 0 }, conf => qq{server.max-worker = 1\n$conf$alpn_conf});     # it binds the ports itself
$srv->write('a', 'safe');
$srv->wait_log(qr/ev=listening/);

my $root = "$dir/root.pem";
sub ask (@args) { return run(@curl, '--resolve', "$host:$port{https}:127.0.0.1", '--cacert', $root, @args, "https://$host:$port{https}/a") }

# The number of the certificate that clients get.
sub number () { return (run('sh', '-c', "$program{openssl} s_client -connect 127.0.0.1:$port{https} -servername $host </dev/null 2>/dev/null | $program{openssl} x509 -noout -serial"))[1] }

# ---------------------------------------------------------------- a certificate, and the next one

subtest 'the first certificate' => sub {
	my ($rc, $said) = run('sh', '-ec', $then);
	is $rc, 0, 'dehydrated' or diag $said, slurp("$dir/pebble.log");
	($rc, my $pem) = run(@curl, '--cacert', $api->{pem}, "https://127.0.0.1:$port{management}/roots/0");
	put($root, $pem);
	my @got;
	ok $rc == 0 && eventually(sub { @got = ask(); $got[0] == 0 }), 'curl believes it';
	is $got[1], 'safe', '... and is served';
};

subtest 'the next one' => sub {
	my $before = number();
	my ($rc, $said) = run($program{dehydrated}, '--config', "$dir/config", '--cron', '--force', '--domain', $host);
	is $rc, 0, 'dehydrated' or diag $said;
	ok $rc == 0 && eventually(sub { number() ne $before }), 'another one is in use';
	is_deeply [ask()], [0, 'safe'], '... and curl believes it';
	is scalar($srv->wait_lines(2, qr/ev=certificate\.renewed/)), 2, 'two renewals';        # the line comes after the certificate
	unlike $srv->log, qr/ev=(?:reloaded|certificate\.refused)/, '... without a reload, and nothing was wrong meanwhile';
};

subtest 'by a handshake, without port 80' => sub {
	my $before = number();
	my ($rc, $said) = run('sh', '-ec', $alpn_then =~ s/--cron/--cron --force/r);
	is $rc, 0, 'dehydrated' or diag $said, slurp("$dir/pebble.log");
	$srv->log_has(qr/ev=tls\.challenge /, 'the authority has asked');
	ok $rc == 0 && eventually(sub { number() ne $before }), 'another certificate is in use';
	is_deeply [glob "$dir/alpn-certs/*"], [], 'nothing is left of the challenge';
};

subtest 'everything else on port 80 is redirected' => sub {
	my ($rc, $head) = run(@curl, '-I', "http://127.0.0.1:$port{http}/x?y");
	like $head, qr{^HTTP/1\.1 30[1278].*^Location: https://127\.0\.0\.1(?::\d+)?/x\?y\r}msi, 'to https';
	($rc, $head) = run(@curl, '-I', "http://127.0.0.1:$port{http}/.well-known/acme-challenge/none");
	like $head, qr{^HTTP/1\.1 404}, 'not a challenge that is not there';
	put("$dir/acme-challenges/t", 'token');
	is_deeply [run(@curl, "http://127.0.0.1:$port{http}/.well-known/acme-challenge/t")], [0, 'token'], 'a challenge is served';
};

done_testing;
