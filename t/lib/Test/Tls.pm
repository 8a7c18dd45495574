package Test::Tls;
# Certificates, and connections that speak TLS: Debian's openssl carries the bytes of a Test::Http::Conn.
#
#     my $cert = Test::Tls::certificate($dir, 'x');      # { pem, key }: the names of two files
#     my $c = Test::Tls::connect($srv, ca => $cert->{pem});
#     $c->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
use v5.36;
use IO::Socket ();
use POSIX ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);
use Test::Http ();
use Test::Util qw(need_program put slurp);

# Signed by itself, for localhost and 127.0.0.1, or for a host.
sub certificate ($dir, $name, %arg) {
	my %is = (pem => "$dir/$name.pem", key => "$dir/$name.key");
	my @key = $arg{rsa} ? ('-newkey', "rsa:$arg{rsa}") : ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256');
	my @cmd = (openssl(), qw(req -x509 -days 2 -subj), "/CN=$name", '-addext', 'subjectAltName=' . ($arg{host} ? "DNS:$arg{host}" : 'DNS:localhost,IP:127.0.0.1'), @key,
		$arg{passphrase} ? ('-passout', "pass:$arg{passphrase}") : '-nodes', '-keyout', $is{key}, '-out', $is{pem});
	my $said = qx{@{[ join ' ', map { "'$_'" } @cmd ]} 2>&1};
	die "openssl req: $said" if $?;
	return \%is;
}

# Signed by another one (by), or by itself; for hosts; ca: it may sign others; from, to: times; md: of its signature.
#
#     my $root = Test::Tls::issued($dir, 'root', ca => 1);
#     my $leaf = Test::Tls::issued($dir, 'leaf', by => $root, hosts => ['a.example']);
sub issued ($dir, $name, %arg) {
	my %is = (pem => "$dir/$name.pem", key => "$dir/$name.key");
	my $by = $arg{by} // \%is;
	my @ext = $arg{ca} ? ('basicConstraints=critical,CA:TRUE', 'keyUsage=keyCertSign,cRLSign') : ('basicConstraints=CA:FALSE');
	push @ext, 'subjectAltName=' . join ',', map { "DNS:$_" } @{ $arg{hosts} } if $arg{hosts};
	put("$dir/ca.conf", "[ca]\ndefault_ca=x\n[x]\ndatabase=$dir/ca.list\nnew_certs_dir=$dir\nrand_serial=yes\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n");
	put("$dir/ca.list", '');
	put("$dir/ca.ext", join '', map { "$_\n" } @ext, 'subjectKeyIdentifier=hash', 'authorityKeyIdentifier=keyid');
	my $date = sub ($t) { POSIX::strftime('%Y%m%d%H%M%SZ', gmtime $t) };
	my @key = $arg{rsa} ? ('-newkey', "rsa:$arg{rsa}") : ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256');
	run(qw(req -new -nodes -subj), "/CN=$name", @key, '-keyout', $is{key}, '-out', "$dir/csr");
	run(qw(ca -batch -notext -config), "$dir/ca.conf", '-md', $arg{md} // 'sha256', '-keyfile', $by->{key}, $arg{by} ? ('-cert', $by->{pem}) : '-selfsign',
		'-in', "$dir/csr", '-out', $is{pem}, '-extfile', "$dir/ca.ext", '-startdate', $date->($arg{from} // time - 3600), '-enddate', $date->($arg{to} // time + 86400 * 60));
	return \%is;
}

sub run (@args) {
	my $said = qx{@{[ join ' ', map { "'$_'" } openssl(), @args ]} 2>&1};
	die "openssl @args: $said" if $?;
	return $said;
}

sub openssl { return state $path = need_program('openssl', 'openssl') }

# What a client sees of a handshake with a port of this machine: version, cipher, group, signature, and the names in the chain. args:
# options of openssl s_client.  undef: there was no handshake.
sub shaken ($port, @args) {
	my $said = qx{@{[ join ' ', map { "'$_'" } openssl(), qw(s_client -connect), "127.0.0.1:$port", @args ]} 2>&1 </dev/null};
	my %is = (said => $said, chain => [$said =~ /^ *\d+ s:CN = (\S+)$/mg]);
	($is{cipher}) = $said =~ /^(?:New|Reused), \S+, Cipher is (?!\(NONE\))(\S+)$/m;
	$is{version} = $said =~ /^ *Protocol *: (\S+)$/m ? $1 : 'TLSv1.3';
	($is{group}) = $said =~ /^Server Temp Key: (.*?), \d+ bits$/m;
	($is{signature}) = $said =~ /^Peer signature type: (\S+)$/m;
	return defined $is{cipher} ? \%is : undef;
}

# ca: a file; args: options of openssl s_client; said: a file for what it writes.
sub connect ($srv, %arg) {
	socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
	my @cmd = (openssl(), qw(s_client -quiet -connect), '127.0.0.1:' . $srv->port, $arg{ca} ? ('-verify_return_error', '-CAfile', $arg{ca}) : (), @{ $arg{args} // [] });
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open my $err, '>', $arg{said} // '/dev/null' or POSIX::_exit(126);
		POSIX::dup2(fileno $theirs, $_) for 0, 1;
		POSIX::dup2(fileno $err, 2);
		{ no warnings; exec @cmd }
		POSIX::_exit(127);
	}
	bless $ours, 'IO::Socket';
	my $c = bless Test::Http::Conn->over($ours), 'Test::Tls::Conn';
	$c->{client} = $pid;
	return $c;
}

package Test::Tls::Conn;
our @ISA = 'Test::Http::Conn';

# The client ends without a word to the server, unless it has ended.
sub leave ($self) {
	my $pid = delete $self->{client} or return;
	local $?;
	kill 'KILL', $pid;
	waitpid $pid, 0;
	return;
}

sub DESTROY ($self) { $self->leave; return }

1;
