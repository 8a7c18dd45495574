package Test::Tls;
# Certificates, and connections that speak TLS: Debian's openssl carries the bytes of a Test::Http::Conn.
#
#     my $cert = Test::Tls::certificate($dir, 'x');      # { pem, key }: the names of two files
#     my $c = Test::Tls::connect($srv, ca => $cert->{pem});
#     $c->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
use v5.36;
use IO::Socket ();
use POSIX ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC SOL_SOCKET SO_RCVTIMEO);
use Test::Http ();
use Test::Util qw(need_program put slurp);

# Signed by another one (by) for hosts, or by itself, for localhost and 127.0.0.1 unless there are hosts.  ca: it may sign others.  subject;
# from, to: times; md: of its signature; rsa: bits; passphrase: of its key.
#
#     my $root = Test::Tls::certificate($dir, 'root', ca => 1);
#     my $leaf = Test::Tls::certificate($dir, 'leaf', by => $root, hosts => ['a.example']);
sub certificate ($dir, $name, %arg) {
	my %is = (pem => "$dir/$name.pem", key => "$dir/$name.key");
	my @names = $arg{hosts} ? map { "DNS:$_" } @{ $arg{hosts} } : $arg{by} || $arg{ca} ? () : qw(DNS:localhost IP:127.0.0.1);
	my $ext = put("$dir/$name.ext", join '', map { "$_\n" } 'subjectKeyIdentifier=hash', 'authorityKeyIdentifier=keyid',
		$arg{by} && !$arg{ca} ? 'basicConstraints=CA:FALSE' : 'basicConstraints=critical,CA:TRUE', $arg{ca} ? 'keyUsage=keyCertSign,cRLSign' : (),
		@names ? 'subjectAltName=' . join(',', @names) : ());
	my @key = $arg{rsa} ? ('-newkey', "rsa:$arg{rsa}") : qw(-newkey ec -pkeyopt ec_paramgen_curve:P-256);
	run(qw(req -new -utf8 -subj), $arg{subject} // "/CN=$name", @key, $arg{passphrase} ? ('-passout', "pass:$arg{passphrase}") : '-nodes', '-keyout', $is{key}, '-out', "$dir/$name.csr");
	my $date = sub ($t) { POSIX::strftime('%Y%m%d%H%M%SZ', gmtime $t) };
	_ca($dir, $arg{by} // \%is, $arg{by} ? () : '-selfsign', $arg{passphrase} ? ('-passin', "pass:$arg{passphrase}") : (), '-extfile', $ext, '-md', $arg{md} // 'sha256',
		qw(-policy any -notext -batch -preserveDN -in), "$dir/$name.csr", '-out', $is{pem}, '-startdate', $date->($arg{from} // time - 3600), '-enddate', $date->($arg{to} // time + 86400 * 60));
	return \%is;
}

sub run (@args) {
	my $said = qx{@{[ join ' ', map { "'" . s/'/'\\''/gr . "'" } openssl(), @args ]} 2>&1};
	die "openssl @args: $said" if $?;
	return $said;
}

# Writes the list of those that this authority has revoked.
sub revoke ($dir, $by, $list, @certs) {
	_ca($dir, $by, '-revoke', $_->{pem}) for @certs;
	_ca($dir, $by, qw(-gencrl -crldays 2 -out), $list);
	return;
}

# Each authority counts from 77, and one that signs itself draws its number: a client remembers it.
sub _ca ($dir, $by, @args) {
	my $base = $by->{pem} =~ s/\.pem\z//r;
	my $self = grep { $_ eq '-selfsign' } @args;
	if (!-e "$base.db") {
		put("$base.db", '');
		put("$base.serial", "4D\n");
		put("$base.cnf", "[ca]\ndefault_ca = it\n[it]\ndatabase = $base.db\nserial = $base.serial\nnew_certs_dir = $dir\ndefault_md = sha256\nunique_subject = no\n[any]\n");
	}
	run('ca', '-config', "$base.cnf", '-keyfile', $by->{key}, $self ? '-rand_serial' : ('-cert', $by->{pem}), @args);
	put("$base.serial", "4D\n") if $self;        # which has become the number after its own
	return;
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

# A client whose records are in our hands; it waits where a call of Net::SSLeay does.  rcvbuf, from: as for Test::Http::Conn; version,
# ciphers; session: of an earlier one.  undef: the handshake failed.
sub client ($srv, %arg) {
	local $SIG{PIPE} = 'IGNORE';
	require Net::SSLeay;
	state $ready = Net::SSLeay::initialize();
	my $c = $srv->connect(http1 => 1, map { $_ => $arg{$_} } grep { $arg{$_} } qw(rcvbuf from));
	my $sock = $c->sock;
	$sock->blocking(1);
	setsockopt $sock, SOL_SOCKET, SO_RCVTIMEO, pack 'l!l!', Test::Util::PATIENCE, 0 or die "SO_RCVTIMEO: $!";
	my $ctx = Net::SSLeay::CTX_new_with_method(Net::SSLeay::TLS_client_method()) or die 'CTX_new';
	Net::SSLeay::CTX_set_max_proto_version($ctx, $arg{version}) if $arg{version};
	my $ssl = Net::SSLeay::new($ctx) or die 'SSL_new';
	my $self = bless { conn => $c, ctx => $ctx, ssl => $ssl, in => '' }, 'Test::Tls::Client';
	Net::SSLeay::set_tlsext_host_name($ssl, $arg{host}) if $arg{host};
	Net::SSLeay::set_session($ssl, $arg{session}) if $arg{session};
	Net::SSLeay::set_fd($ssl, fileno $sock);
	return Net::SSLeay::connect($ssl) == 1 ? $self : undef;
}

# Each call may write, an alert at least, to a server that has closed.
package Test::Tls::Client;

# One record.
sub send ($self, $bytes) { local $SIG{PIPE} = 'IGNORE'; return Net::SSLeay::write($self->{ssl}, $bytes) }

# The next n bytes, or fewer at the end; undef: all there are.
sub take ($self, $n = undef) {
	local $SIG{PIPE} = 'IGNORE';
	while (!defined $n || length $self->{in} < $n) {
		my $more = Net::SSLeay::read($self->{ssl}, 16_384);
		last if !length($more // '');
		$self->{in} .= $more;
	}
	return substr $self->{in}, 0, $n // length $self->{in}, '';
}

# A reply whose head has Content-Length. Without a head it is undef.
sub reply ($self) {
	local $SIG{PIPE} = 'IGNORE';
	1 while $self->{in} !~ /\r\n\r\n/ && length($self->{in} .= Net::SSLeay::read($self->{ssl}, 16_384) // last);
	$self->{in} =~ s/\A(.*?\r\n\r\n)//s or return undef;
	my $r = Test::Http::parse($1);
	$r->{body} = $self->take($r->{header}{'content-length'} // 0);
	return $r;
}

sub say_end ($self) { local $SIG{PIPE} = 'IGNORE'; return Net::SSLeay::shutdown($self->{ssl}) }       # close_notify
sub sock ($self) { return $self->{conn}->sock }
sub session ($self) { return Net::SSLeay::get1_session($self->{ssl}) }
sub resumed ($self) { return Net::SSLeay::session_reused($self->{ssl}) }

sub DESTROY ($self) {
	Net::SSLeay::free($self->{ssl});
	Net::SSLeay::CTX_free($self->{ctx});
	return;
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
