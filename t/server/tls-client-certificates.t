# Certificates of clients: ssl.verifyclient.* at sockets and hosts, what applications and logs get, revocation, resumption; and a client
# that names one host in its handshake and another one in its request.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually program put slurp);

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'server');
my %ca = map { $_ => Test::Tls::certificate($keys, $_, ca => 1) } qw(ours theirs);
my $alice = Test::Tls::certificate($keys, 'alice', by => $ca{ours}, subject => '/C=DE/O=Org/OU=one/OU=two/CN=alice/emailAddress=a@example.org/UID=al');
my $bob = Test::Tls::certificate($keys, 'bob', by => $ca{theirs});
my $late = Test::Tls::certificate($keys, 'late', by => $ca{ours}, from => time - 9 * 86400, to => time - 86400);
my $app = Test::App->start;
my $ajp = Test::App->start(protocol => 'ajp13');

my $ssl = qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n};
sub verify (%set) {
	my %all = (activate => '"enable"', 'ca-file' => qq{"$ca{ours}{pem}"}, %set);
	return join '', map { defined $all{$_} ? "ssl.verifyclient.$_ = $all{$_}\n" : '' } sort keys %all;
}
sub host ($name, %set) { return qq<\$HTTP["host"] == "$name" {\n> . verify(%set) . "}\n" }
sub start ($conf, %arg) {
	my $s = Test::Server->start(conf => $ssl . qq{accesslog.filename = "\@RUN\@/access.log"\naccesslog.format = "%{SSL_CLIENT_VERIFY}x|%{SSL_CLIENT_S_DN}x|%u"\n} . $conf
		. Test::Server::proxy_block('^/app/', 'unix:' . $app->socket) . Test::Server::proxy_block('^/ajp/', 'unix:' . $ajp->socket, protocol => 'ajp13'), %arg);
	$s->write('a', 'x');
	return $s;
}

# The variables of an application, or {} if there was no reply, or { status => } of another one.
sub ask ($srv, $host, %arg) {
	my @who = $arg{who} ? ('-cert', $arg{who}{pem}, '-key', $arg{who}{key}, map { ('-cert_chain', $_->{pem}) } $arg{by} // ()) : ();
	my $sni = $arg{sni} // $host;
	my $c = Test::Tls::connect($srv, ca => $cert->{pem}, args => ["-tls$arg{version}", $sni ne '' ? ('-servername', $sni) : '-noservername', @who, @{ $arg{args} // [] }]);
	$c->send(req($arg{path} // '/app/env', 'Connection: close') =~ s/^Host: .*?\r$/Host: $host\r/mr);
	my $reply = $c->reply // return {};
	$c->closed;
	return { status => $reply->{status} } if $reply->{status} != 200;
	# The last line of a certificate may look like a variable: "GNUJPkFoA==".
	return { $reply->{body} =~ /^(\w+)=(-----BEGIN .*?^-----END [^\n]*|[^\n]*)/msg };
}

my $srv = start(host('open') =~ s/activate = "enable"/activate = "disable"/r . host('soft', enforce => '"disable"', username => '"SSL_CLIENT_S_DN_emailAddress"') . host('hard', exportcert => '"enable"', username => '"SSL_CLIENT_S_DN"')
	. host('theirs', 'ca-file' => qq{"$ca{theirs}{pem}"}) . qq{server.max-worker = 1\nstatus.statistics-url = "/counters"\n});

for my $version (qw(1_2 1_3)) {
	my @v = (version => $version);
	my $dn = 'C = DE, O = Org, OU = one, OU = two, CN = alice, emailAddress = a@example.org, UID = al';
	subtest "a host that asks, TLS $version" => sub {
		my $env = ask($srv, 'soft', @v, who => $alice);
		my %want = (VERIFY => 'SUCCESS', S_DN => $dn, S_DN_C => 'DE', S_DN_O => 'Org', S_DN_OU => 'two', S_DN_CN => 'alice', S_DN_EMAILADDRESS => 'a@example.org', S_DN_UID => 'al', M_SERIAL => '4D');
		is_deeply { map { /^SSL_CLIENT_(.*)/ ? ($1, $env->{$_}) : () } keys %$env }, \%want, 'what lighttpd says of a certificate that is believed';
		is "$env->{REMOTE_USER} $env->{AUTH_TYPE}", 'a@example.org SSL_CLIENT_VERIFY', 'it names the user';
		for ([NONE => undef], ['FAILED:unable to verify the first certificate' => $bob], ['FAILED:certificate has expired' => $late]) {
			$env = ask($srv, 'soft', @v, who => $_->[1]);
			is join('|', map { "$_=$env->{$_}" } sort grep { /^SSL_CLIENT|^REMOTE_USER|^AUTH/ } keys %$env), "SSL_CLIENT_VERIFY=$_->[0]", $_->[0];
		}
		$env = ask($srv, 'soft', @v, who => $alice, path => '/ajp/app/env');
		is "$env->{REMOTE_USER} $env->{AUTH_TYPE} " . defined $env->{SSL_CERT}, 'a@example.org SSL_CLIENT_VERIFY ', 'AJP';
	};

	subtest "a host that insists, TLS $version" => sub {
		my $env = ask($srv, 'hard', @v, who => $alice);
		is "$env->{SSL_CLIENT_VERIFY} $env->{REMOTE_USER}", "SUCCESS $dn", 'a certificate that is believed';
		is $env->{SSL_CLIENT_CERT} =~ s/\n*\z/\n/r, slurp($alice->{pem}), '... and exported';
		$env = ask($srv, 'hard', @v, who => $alice, path => '/ajp/app/env');
		is $env->{SSL_CERT} =~ s/\n*\z/\n/r, slurp($alice->{pem}), 'AJP';
		is_deeply ask($srv, 'hard', @v, who => $_->[1]), {}, "no reply: $_->[0]" for ['none', undef], ['of others', $bob], ['expired', $late];
		like $srv->wait_log(qr/ev=tls\.failed .*why="certificate has expired"/) // '', qr/why="certificate has expired"/, '... and the log says why';
	};

	subtest "one host in the handshake, another in the request, TLS $version" => sub {
		is ask($srv, 'hard', @v, sni => 'open')->{status}, 421, 'one that asks nobody does not lead to one that insists';
		is ask($srv, 'hard', @v, sni => 'soft', who => $_)->{status}, 421, '... nor one that asks' for $alice, $bob;
		is ask($srv, 'soft', @v, sni => 'open')->{status}, 421, '... nor to one that asks';
		is ask($srv, 'hard', @v, sni => 'theirs', who => $bob)->{status}, 421, '... nor one with other authorities';
		is ask($srv, 'hard', @v, sni => 'none', who => $alice)->{status}, 421, '... nor an unknown one';
		is ask($srv, 'hard', @v, sni => '', who => $alice)->{status}, 421, '... nor none';
		is ask($srv, 'hard', @v, sni => 'open', path => '/a')->{status}, 421, '... nor to its files';
		my $env = ask($srv, 'open', @v, sni => 'hard', who => $alice);
		is_deeply [$env->{SSL_PROTOCOL} =~ s/\./_/r, grep { /^SSL_CLIENT|^REMOTE_USER/ } keys %$env], ["TLSv$version"], 'one that asks nobody is not told';
		$env = ask($srv, 'HARD', @v, who => $alice);
		is $env->{SSL_CLIENT_VERIFY}, 'SUCCESS', 'a host in capitals is the same';
	};

	subtest "resumption, TLS $version" => sub {
		my $counter = sub ($name) { my $c = Test::Tls::connect($srv, ca => $cert->{pem}); $c->send(req('/counters')); return ($c->reply->{body} =~ /^\Qserver.tls.$name\E: (\d+)$/m)[0] };
		my $file = "$keys/session";
		my $once = sub ($host, $who, @how) { my $before = $counter->('resumed'); my $env = ask($srv, $host, @v, who => $who, args => [@how, $file]); return ($env->{SSL_CLIENT_VERIFY} // $env->{status} // '') . ' ' . ($counter->('resumed') - $before) };
		for my $case (['soft', $alice, 'SUCCESS'], ['soft', $bob, 'FAILED:unable to verify the first certificate'], ['soft', undef, 'NONE'], ['hard', $alice, 'SUCCESS']) {
			is $once->(@$case[0, 1], '-sess_out'), "$case->[2] 0", "$case->[0], $case->[2]";
			ok eventually(sub { -s $file }), '... has a session';
			is $once->(@$case[0, 1], '-sess_in'), "$case->[2] 1", '... with what was known';
			is $once->($_, $alice, '-sess_in'), 'SUCCESS 0', "... not for $_" for grep { $_ ne $case->[0] } qw(soft hard);
			is $once->('hard', undef, '-sess_in'), ' 0', '... which insists' if $case->[0] eq 'soft';
			is $once->('theirs', $bob, '-sess_in'), 'SUCCESS 0', '... nor for other authorities';
			unlink $file;
		}
	};
}

subtest 'the access log' => sub {
	my $s = start(verify(enforce => '"disable"', username => '"SSL_CLIENT_S_DN_CN"'));
	my $evil = Test::Tls::certificate($keys, 'evil', by => $ca{ours}, subject => '/O=a"|b/CN=x"y');
	my @lines;
	for my $who ($alice, $bob, undef, $evil) {
		ask($s, 'x', version => '1_3', who => $who, path => '/a');
		push @lines, ($s->wait_lines(1 + @lines, qr/./, 'access.log'))[-1];
	}
	is $lines[0], 'SUCCESS|C = DE, O = Org, OU = one, OU = two, CN = alice, emailAddress = a@example.org, UID = al|alice', 'who it is';
	is $lines[1], 'FAILED:unable to verify the first certificate|-|-', 'who it is not';
	is $lines[2], 'NONE|-|-', 'nobody';
	is $lines[3], 'SUCCESS|O = a\\\\\"|b, CN = x\\\\\"y|x\"y', 'quotes are escaped';
};

subtest 'depth' => sub {
	my $middle = Test::Tls::certificate($keys, 'middle', by => $ca{ours}, ca => 1);
	my $carol = Test::Tls::certificate($keys, 'carol', by => $middle);
	for ([0, $alice, undef, ''], [1, $alice, undef, 'SUCCESS'], [1, $carol, $middle, ''], [2, $carol, $middle, 'SUCCESS'], [9, $carol, undef, '']) {
		my $s = start(verify(depth => $_->[0]));
		is ask($s, 'x', version => '1_3', who => $_->[1], by => $_->[2])->{SSL_CLIENT_VERIFY} // '', $_->[3], "depth $_->[0]" . ($_->[2] ? ', with one between' : '');
	}
};

subtest 'names for the choice of clients' => sub {
	my $both = put("$keys/both.pem", slurp($ca{ours}{pem}) . slurp($ca{theirs}{pem}));
	my $s = start(verify('ca-file' => qq{"$both"}));
	is ask($s, 'x', version => '1_3', who => $_)->{SSL_CLIENT_VERIFY}, 'SUCCESS', 'two authorities' for $alice, $bob;
	for my $name ('ssl.verifyclient.ca-dn-file', 'ssl.ca-dn-file') {
		$s = start(verify('ca-file' => qq{"$both"}) . qq{$name = "$ca{ours}{pem}"\n});
		is ask($s, 'x', version => '1_3', who => $alice)->{SSL_CLIENT_VERIFY}, 'SUCCESS', "$name: the one that is named";
		is_deeply ask($s, 'x', version => '1_3', who => $bob), {}, '... and not the other one';
		my $said = qx{@{[ Test::Tls::openssl() ]} s_client -connect 127.0.0.1:@{[ $s->port ]} </dev/null 2>/dev/null};
		is_deeply [$said =~ /^Acceptable client certificate CA names\n((?:.*CN = .*\n)+)/m ? split /\n/, $1 : ()], ['CN = ours'], '... and clients see its name';
	}
	$s = start(verify('ca-file' => undef) . qq{ssl.ca-file = "$ca{ours}{pem}"\n});
	is ask($s, 'x', version => '1_3', who => $alice)->{SSL_CLIENT_VERIFY}, 'SUCCESS', 'ssl.ca-file in place of ssl.verifyclient.ca-file';
	is_deeply ask($s, 'x', version => '1_3', who => $bob), {}, '... which believes nobody else';
};

subtest 'files that are renewed, without a reload' => sub {
	my $crl = "$keys/renewed.crl";
	my $carol = Test::Tls::certificate($keys, 'renewed', by => $ca{ours});
	Test::Tls::revoke($keys, $ca{ours}, $crl);
	my $list = slurp($crl);
	my $s = start(host('x', 'ca-crl-file' => qq{"$crl"}) . "server.max-worker = 1\n");
	my $is = sub { return ask($s, 'x', version => '1_3', who => $carol, @_)->{SSL_CLIENT_VERIFY} // 'no' };
	is $is->(), 'SUCCESS', 'not revoked';
	my $kept = Test::Tls::connect($s, ca => $cert->{pem}, args => ['-servername', 'x', '-cert', $carol->{pem}, '-key', $carol->{key}]);
	$kept->send(req('/a'));
	is $kept->reply->{status}, 200, 'a connection';
	my $file = "$keys/renewed.session";
	$is->(args => ['-sess_out', $file]);
	ok eventually(sub { -s $file }), 'a session';
	Test::Tls::revoke($keys, $ca{ours}, "$crl.new", $carol);
	rename "$crl.new", $crl or die;
	ok eventually(sub { $is->() eq 'no' }), 'revoked';
	is $is->(args => ['-sess_in', $file]), 'no', '... and with the session of before';
	$kept->send(req('/a'));
	is +($kept->reply // { status => 'closed' })->{status} =~ /^(?:421|closed)$/, 1, '... and a connection from before goes no further';
	put("$crl.new", substr $list, 0, 200);
	rename "$crl.new", $crl or die;
	like $s->wait_log(qr/ev=certificate\.refused /) // '', qr/why=".*ssl\.verifyclient\.ca-crl-file: .*renewed\.crl.* cannot be read/, 'half a list is refused';
	is $is->(), 'no', '... and the last one stays in use';
	put("$crl.new", $list);
	rename "$crl.new", $crl or die;
	ok eventually(sub { $is->() eq 'SUCCESS' }), 'the first one is back';
	unlike $s->log, qr/ev=reloaded/, 'without a reload';
};

subtest 'revocation, and a reload' => sub {
	my $crl = "$keys/ours.crl";
	Test::Tls::revoke($keys, $ca{ours}, $crl);
	my $s = start(host('x', 'ca-crl-file' => qq{"$crl"}) . "server.max-worker = 1\n");
	is ask($s, 'x', version => '1_3', who => $alice)->{SSL_CLIENT_VERIFY}, 'SUCCESS', 'not revoked';
	my $kept = Test::Tls::connect($s, ca => $cert->{pem}, args => ['-servername', 'x', '-cert', $alice->{pem}, '-key', $alice->{key}]);
	$kept->send(req('/a'));
	is $kept->reply->{status}, 200, 'a connection';
	my $file = "$keys/revoked";
	ask($s, 'x', version => '1_3', who => $alice, args => ['-sess_out', $file]);
	ok eventually(sub { -s $file }), 'a session';
	Test::Tls::revoke($keys, $ca{ours}, $crl, $alice);
	$s->signal('USR1');
	$s->log_has(qr/ev=reloaded/, 'a reload');
	# a worker of before may accept once more
	ok eventually(sub { !%{ ask($s, 'x', version => '1_3', who => $alice) } }), 'revoked';
	is_deeply ask($s, 'x', version => '1_3', who => $alice, args => ['-sess_in', $file]), {}, '... and with the session of before';
	like $s->wait_log(qr/ev=tls\.failed .*why="certificate revoked"/) // '', qr/why="certificate revoked"/, '... and the log says why';
	$kept->send(req('/a'));
	is +($kept->reply // { status => 'closed' })->{status} =~ /^(?:421|closed)$/, 1, 'a connection from before goes no further';
};

subtest 'other ways to a wrong answer' => sub {
	my $s = start(qq{\$HTTP["host"] =~ "^x" { ssl.verifyclient.activate = "enable"\nssl.verifyclient.ca-file = "$ca{ours}{pem}"\n}\n}
		. qq{\$HTTP["host"] =~ "y\$" { ssl.verifyclient.depth = 3 }\n});
	is ask($s, 'x', version => '1_3', who => $alice)->{SSL_CLIENT_VERIFY}, 'SUCCESS', 'a host of one block';
	is_deeply ask($s, 'xy', version => '1_3', who => $alice), {}, 'settings of two blocks together believe nobody';
	is ask($s, 'xy', version => '1_3', who => $alice, sni => 'x')->{status}, 421, '... whatever the handshake names';
	is ask($s, 'open', version => '1_3')->{SSL_PROTOCOL}, 'TLSv1.3', 'others are served';
	my $plain = Test::Server->start(conf => verify());
	$plain->write('a', 'x');
	is $plain->fetch('/a', Connection => 'close')->{status}, 200, 'a socket without TLS asks nobody, as in lighttpd';
};

subtest '-t says what is wrong' => sub {
	my $dir = File::Temp->newdir('accel-check-XXXXXX', TMPDIR => 1);
	put("$dir/empty", '');
	put("$dir/cut.pem", substr slurp($ca{ours}{pem}), 0, 300);
	my $check = sub ($lines, $first = $ssl) {
		my $file = put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.port = 0\n$first$lines});
		my $said = qx{@{[ program('accel-server') ]} -t -f $file 2>&1 </dev/null};
		return ($? >> 8) . ' ' . $said =~ s/\Q$dir\E|\Q$keys\E/DIR/gr;
	};
	is $check->(verify(depth => 2)), "0 Syntax OK\n", 'good ones';
	is $check->(verify('ca-file' => undef), ''), "0 Syntax OK\n", 'no socket with TLS';
	for ([verify('ca-file' => undef), qr/^78 DIR\/x\.conf:6:29: ssl\.verifyclient\.activate: ssl\.verifyclient\.ca-file is not set; write/, 'no authorities'],
		[verify('ca-file' => qq{"$dir/none"}), qr/^78 DIR\/x\.conf:7:28: ssl\.verifyclient\.ca-file: "DIR\/none": No such file/, 'a missing file'],
		[verify('ca-file' => qq{"$dir/empty"}), qr/^78 DIR\/x\.conf:7:28: ssl\.verifyclient\.ca-file: "DIR\/empty": no certificate is in the file/, 'an empty one'],
		[verify('ca-file' => qq{"$dir/cut.pem"}), qr/^78 DIR\/x\.conf:7:28: ssl\.verifyclient\.ca-file: "DIR\/cut\.pem": a certificate cannot be read/, 'a cut one'],
		[verify('ca-file' => undef) . qq{ssl.ca-file = "$dir/empty"\n}, qr/^78 DIR\/x\.conf:7:\d+: ssl\.ca-file: "DIR\/empty": no certificate/, 'an old name'],
		[verify('ca-dn-file' => qq{"$dir/empty"}), qr/^78 DIR\/x\.conf:7:31: ssl\.verifyclient\.ca-dn-file: "DIR\/empty": no certificate is/, 'names'],
		[verify('ca-crl-file' => qq{"$ca{ours}{pem}"}), qr/^78 DIR\/x\.conf:7:32: ssl\.verifyclient\.ca-crl-file: "DIR\/ours\.pem": no list of revoked/, 'no list of revoked ones'],
		[host('x', 'ca-file' => qq{"$dir/none"}), qr/^78 DIR\/x\.conf:8:28: ssl\.verifyclient\.ca-file: "DIR\/none": No such file/, 'that of a host'],
		[verify(depth => 256), qr/^78 DIR\/x\.conf:8:26: ssl\.verifyclient\.depth: /, 'an absurd depth'],
		[qq<\$HTTP["url"] =~ "^/x" {\n> . verify() . "}\n", qr/^78 DIR\/x\.conf:7:1: ssl\.verifyclient\.activate is needed before there is a request/, 'another condition'],
	) {
		like $check->($_->[0]), $_->[1], $_->[2];
	}
};

done_testing;
