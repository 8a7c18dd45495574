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
use Test::Util qw(need_program slurp);

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

sub openssl { return state $path = need_program('openssl', 'openssl') }

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
