# ssl.key-process: private keys are in a process of their own; no other process of the server has their bytes.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp ();
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually put sanitized slurp);

my $dir = File::Temp->newdir;
my %cert = (ec => Test::Tls::certificate($dir, 'ec'), rsa => Test::Tls::certificate($dir, 'rsa', rsa => 2048));

sub start ($conf) {
	$conf = qq{ssl.key-process = "enable"\n$conf} if $conf !~ /ssl\.key-process/;
	my $srv = Test::Server->start(conf => qq{server.pid-file = "\@RUN\@/pid"\nssl.engine = "enable"\n$conf});
	$srv->write('a', "A\n");
	return $srv;
}

sub of ($cert) { return qq{ssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n} }

# The numbers of a private key as bytes: d of ECDSA; d, p and q of RSA.
sub secrets ($cert) {
	my $text = Test::Tls::run(qw(pkey -noout -text -in), $cert->{key});
	my @secrets;
	while ($text =~ /^(?:priv|privateExponent|prime[12]):\n((?:    +[0-9a-f:]+\n)+)/mg) {
		push @secrets, pack('H*', $1 =~ s/[^0-9a-f]//gr) =~ s/\A\0+//r;
	}
	return @secrets;
}

# True if a process has one of them, as a file has it, or as OpenSSL computes with it; or the text of the file.
sub has_secret ($pid, $cert) {
	my $line = slurp($cert->{key}) =~ /KEY-----\n.*\n(.{32})/ ? $1 : undef;
	my $any = join '|', map { quotemeta } $line // (), map { ($_, scalar reverse $_) } secrets($cert);
	open my $mem, '<:raw', "/proc/$pid/mem" or die "/proc/$pid/mem: $!";
	for my $map (split /\n/, slurp("/proc/$pid/maps")) {
		my ($from, $to) = $map =~ /^([0-9a-f]+)-([0-9a-f]+) rw/ or next;
		no warnings 'portable';
		my ($at, $n) = (hex $from, hex($to) - hex $from);
		next if $n > 1 << 28;
		sysseek $mem, $at, 0 or next;
		my $bytes;
		my $got = sysread $mem, $bytes, $n;
		return 1 if $got && $bytes =~ /$any/;
	}
	return 0;
}

sub finds ($want, $pid, $cert, $name) {
	SKIP: {
		skip 'the memory of a sanitizer is too large to be read', 1 if sanitized();
		is has_secret($pid, $cert), $want, $name;
	}
	return;
}

sub ask ($srv, @args) {
	my $c = Test::Tls::connect($srv, args => [@args]);
	$c->send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	return $c->rest =~ /\r\n\r\nA\n\z/ ? 1 : 0;
}

for my $kind (sort keys %cert) {
	my $srv = start(of($cert{$kind}));
	ok ask($srv, '-tls1_3'), "$kind: TLS 1.3";
	ok ask($srv, '-tls1_2'), "$kind: TLS 1.2";
	finds 0, $srv->pid, $cert{$kind}, "$kind: the server does not have the key";
	my $held = start(qq{ssl.key-process = "disable"\n} . of($cert{$kind}));
	ok ask($held), "$kind: without the process";
	finds 1, $held->pid, $cert{$kind}, "$kind: ... it has the key";
}

# ---------------------------------------------------------------- the process

sub keeper ($srv) { return $srv->process('accel-keys') }
sub status ($pid, $key) { return slurp("/proc/$pid/status") =~ /^$key:\s*(.*)/m ? $1 : '' }
sub lost ($srv) { return scalar(() = $srv->log =~ /ev=keys\.lost/g) }

subtest 'it has no rights' => sub {
	my $srv = start(of($cert{ec}));
	ok ask($srv), 'it signs';
	my $pid = keeper($srv);
	is hex status($pid, $_), 0, "$_ is empty" for qw(CapEff CapPrm CapInh);
	is status($pid, 'NoNewPrivs'), 1, 'it gets none';
	is status($pid, 'Seccomp'), 2, 'its calls are filtered';
	like slurp("/proc/$pid/limits"), qr/^Max core file size +0 +0 /m, 'no core file';
	$srv->stop;
	ok Test::Server::is_gone($pid), 'it ends with the server';
};

subtest 'without TLS there is none' => sub {
	my $srv = Test::Server->start(conf => qq{ssl.key-process = "enable"\n});
	$srv->write('a', "A\n");
	is $srv->fetch('/a')->{body}, "A\n", 'served';
	ok !keeper($srv), 'no process';
	my $held = start(qq{ssl.key-process = "disable"\n} . of($cert{ec}));
	ok ask($held), 'the server signs itself';
	ok !keeper($held), 'no process';
};

subtest 'it is killed' => sub {
	my $srv = start(of($cert{ec}));
	ok ask($srv), 'it signs';
	my $first = keeper($srv);
	kill KILL => $first;
	ok eventually(sub { lost($srv) == 1 }), 'the log says so';
	ok ask($srv), 'the next handshake starts another one';
	isnt keeper($srv), $first, '... which has read the key again';
	my ($guardian, $second) = ($srv->process('accel-guardian'), keeper($srv));
	kill KILL => $guardian;
	ok eventually(sub { $srv->log =~ /ev=guardian\.lost/ }), 'the guardian is killed';
	ok eventually(sub { Test::Server::is_gone($second) }), '... and its process with it: of two, each would have keys that the other lacks';
	ok ask($srv), 'the next guardian has one, too';
	finds 0, $srv->pid, $cert{ec}, 'the server still does not have the key';
};

subtest 'it hangs' => sub {
	my $srv = start(of($cert{ec}));
	my $kept = Test::Tls::connect($srv);
	my $get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
	$kept->send($get);
	is $kept->reply->{body}, "A\n", 'a connection is up';
	my $pid = keeper($srv);
	kill STOP => $pid;
	my $new = Test::Tls::connect($srv);
	$new->send($get);
	for (1 .. 3) {
		$kept->send($get);
		is $kept->reply->{body}, "A\n", 'it is served while a handshake hangs';
	}
	ok eventually(sub { $srv->log =~ /ev=tls\.failed/ }, 30), 'a handshake ends at its deadline';
	kill CONT => $pid;
	ok ask($srv), 'and goes on afterwards';
};

# ---------------------------------------------------------------- configurations

subtest 'many hosts' => sub {
	my %of = map { $_ => Test::Tls::certificate($dir, "h$_", host => "h$_.example") } 1 .. 20;
	my $srv = start(of($cert{ec}) . join '', map { qq(\$HTTP["host"] == "h$_.example" {\n) . of($of{$_}) . "}\n" } sort keys %of);
	for (sort keys %of) {
		my $is = Test::Tls::shaken($srv->port, '-servername', "h$_.example", '-CAfile', $of{$_}{pem});
		like $is->{said}, qr/Verify return code: 0 /, "h$_.example has its own";
	}
	finds 0, $srv->pid, $of{$_}, 'the server does not have its key' for 1, 20;
};

subtest 'RSA without ECDHE' => sub {
	my $srv = start(of($cert{rsa}) . qq{ssl.cipher-list = "AES256-GCM-SHA384:ECDHE+AESGCM"\n});
	my $is = Test::Tls::shaken($srv->port, qw(-tls1_2 -cipher AES256-GCM-SHA384));
	is $is && $is->{cipher}, 'AES256-GCM-SHA384', 'the secret is decrypted';
};

subtest 'a key in the file of its certificate' => sub {
	my $both = put("$dir/both.pem", slurp($cert{ec}{key}) . slurp($cert{ec}{pem}));
	my $srv = start(qq{ssl.pemfile = "$both"\n});
	ok ask($srv), 'it signs';
	finds 0, $srv->pid, $cert{ec}, 'the server does not have it';
};

subtest 'a reload, an upgrade' => sub {
	my $srv = start(of($cert{ec}));
	ok ask($srv), 'the first one';
	my $conf = slurp($srv->run . '/server.conf');
	put($srv->run . '/server.conf', $conf =~ s/ec\.(pem|key)/rsa.$1/gr);
	$srv->signal('USR1');
	$srv->log_has(qr/ev=reloaded/, 'a reload');
	my $is = Test::Tls::shaken($srv->port, '-CAfile', $cert{rsa}{pem});
	like $is->{said}, qr/Verify return code: 0 /, 'the next certificate';
	my $pid = keeper($srv);
	ok $srv->upgrade, 'an upgrade';
	$is = Test::Tls::shaken($srv->port, '-CAfile', $cert{rsa}{pem});
	like $is->{said}, qr/Verify return code: 0 /, 'the new server signs';
	ok eventually(sub { Test::Server::is_gone($pid) }), 'the process of the old one ends';
	finds 0, $srv->pid, $cert{rsa}, 'the server does not have the key';
	put($srv->run . '/server.conf', $conf =~ s/key-process = "\Kenable/disable/r);
	my $n = () = $srv->log =~ /ev=reloaded/g;
	$srv->signal('USR1');
	ok eventually(sub { $n < (() = $srv->log =~ /ev=reloaded/g) }), 'a reload without the process';
	ok ask($srv), 'the server signs itself';
};

done_testing;
