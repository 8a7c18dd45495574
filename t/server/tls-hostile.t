# TLS: clients that send anything, in any state, in any pieces, or leave at any step.  Each costs itself, and others are served.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Slowfs;
use File::Temp ();
use Socket ();
use Test::App;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually put sanitized slurp);
use Time::HiRes qw(time);

use constant LATE => 10;        # seconds: the time for a handshake

my $mounts = Test::Server::own_mounts();
my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'first');
my $slow = Test::Tls::certificate($keys, 'slow', rsa => 4096);        # 5 ms in a thread
my $other = Test::Tls::certificate($keys, 'other');
my $app = Test::App->start;

sub ssl ($c = $cert) { return qq{ssl.engine = "enable"\nssl.pemfile = "$c->{pem}"\nssl.privkey = "$c->{key}"\n} }

sub server ($conf = '', $c = $cert) {
	my $srv = Test::Server->start(conf => ssl($c) . qq{server.max-worker = 1\nstatus.statistics-url = "/counters"\n$conf});
	$srv->write('a', 'safe');
	$srv->write('big', 'x' x 3_000_000);
	return $srv;
}

sub served ($srv, $what, %arg) {
	my $c = Test::Tls::client($srv, %arg) or return fail("others are served $what");
	$c->send(req('/a'));
	return is +($c->reply // {})->{body}, 'safe', "others are served $what";
}

sub counter ($srv, $name) {
	my $c = Test::Tls::client($srv);
	$c->send(req('/counters'));
	return ($c->reply->{body} =~ /^\Qserver.$name\E: (\d+)$/m)[0];
}

# ---------------------------------------------------------------- records and hellos

sub record ($type, $bytes, $version = "\x03\x03") { return pack('Ca2n', $type, $version, length $bytes) . $bytes }
sub records ($bytes, $size) { return join '', map { record(22, $_) } unpack "(a$size)*", $bytes }
sub extension ($type, $bytes = '') { return pack('nn', $type, length $bytes) . $bytes }
sub message ($type, $bytes) { return pack('CCn', $type, length($bytes) >> 16, length($bytes) & 0xffff) . $bytes }
sub name ($host, $kind = 0) { my $one = pack('Cn', $kind, length $host) . $host; return extension(0, pack('n', length $one) . $one) }

my $needed = extension(10, pack 'nnn', 4, 29, 23) . extension(11, "\1\0") . extension(13, pack 'nnn', 4, 0x0403, 0x0804);

# The hello of a client that speaks TLS 1.2, with these extensions.
sub hello ($extensions = $needed) {
	return message(1, "\x03\x03" . 'r' x 32 . "\0" . pack('nnn', 4, 0xc02b, 0xc02f) . "\1\0" . (length $extensions ? pack('n', length $extensions) . $extensions : ''));
}
my $hello = record(22, hello());

# What comes to a client that sends this: "hello", "alert" or "nothing" before the end, or "silence" for these seconds.
sub answer ($srv, $bytes, $seconds = LATE - 1) {
	my $c = $srv->connect;
	my $sent = $c->send($bytes);
	my $got = $c->take(1, $seconds);
	return $got eq "\x16" ? 'hello' : $got eq "\x15" ? 'alert' : $c->{eof} ? 'nothing' : 'silence';
}

my $srv = server(qq{server.upload-dirs = ( "\@RUN\@" )\n} . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket));

subtest 'hellos' => sub {
	my $pad = sub ($n) { return $needed . extension(21, "\0" x ($n - length(hello($needed . extension(21))))) };
	for my $case (
		['a plain one', hello(), 'hello'],
		['in 100 records', hello($pad->(400)), 'hello', 4],
		['of 16 KiB', hello($pad->(16_384 + 4)), 'hello', 16_000],
		['... and a byte', hello($pad->(16_384 + 5)), 'alert', 16_000],
		['with a name', hello($needed . name('a.example')), 'hello'],
		['an empty name', hello($needed . name('')), 'hello'],
		['a NUL in the name', hello($needed . name("a\0b.example")), 'alert'],
		['a name of 255 bytes', hello($needed . name('a' x 255)), 'hello'],
		['a name of 256 bytes', hello($needed . name('a' x 256)), 'alert'],
		['a name of 10,000 bytes', hello($needed . name('a' x 10_000)), 'alert'],
		['a name of spaces and controls', hello($needed . name(" \r\n\t\x7f\xff")), 'hello'],
		['a name of another kind', hello($needed . name('x', 1)), 'alert'],
		['an empty list of names', hello($needed . extension(0, pack 'n', 0)), 'alert'],
		['an extension of names without bytes', hello($needed . extension(0)), 'alert'],
		['a list of names that is too long', hello($needed . extension(0, pack 'nCna*', 500, 0, 1, 'x')), 'alert'],
		['two extensions of names', hello($needed . name('a') . name('b')), 'alert'],
		['the same extension twice', hello($needed x 2), 'alert'],
		['an unknown extension without bytes', hello($needed . extension(0x4a4a)), 'hello'],
		['1000 unknown extensions', hello($needed . join '', map { extension(0x5000 + $_) } 1 .. 1000), 'hello'],
		['no extension', hello(''), 'alert'],
		['an extension that is longer than the hello', hello($needed . pack 'nn', 0x4a4a, 500), 'alert'],
		['a message of no bytes', message(1, ''), 'alert'],
		['half of a random number', message(1, "\x03\x03rrrr"), 'alert'],
		['a hello of SSL 3', message(1, "\x03\x00" . 'r' x 32 . "\0" . pack('nn', 2, 0xc02b) . "\1\0"), 'alert'],
	) {
		is answer($srv, records($case->[1], $case->[3] // 16_384)), $case->[2], $case->[0];
	}
	served($srv, 'beside these');
};

# Those of real clients; one to three bytes differ, or are missing, and then the client ends.
subtest '600 changed hellos' => sub {
	my @real = map { slurp($_) } glob "$FindBin::Bin/../fuzz/corpus/tls_flight/*";
	srand 26;
	my %is;
	for (1 .. 600) {
		my $bytes = $real[rand @real];
		substr $bytes, rand length $bytes, rand 2, chr rand 256 for 0 .. rand 3;
		my $c = $srv->connect;
		$c->send($bytes);
		$c->finish;
		my $got = $c->rest;
		$is{ !$c->{eof} ? 'open' : $got =~ /^\x16/ ? 'hello' : $got =~ /^\x15/ ? 'alert' : 'nothing' }++;
	}
	is_deeply [sort keys %is], [qw(alert hello nothing)], 'each ends' or diag explain \%is;
	served($srv, 'afterwards');
};

my %garbage = (
	'an alert that is fatal'          => record(21, "\2\x28"),
	'close_notify'                    => record(21, "\1\0"),
	'100 warnings'                    => record(21, "\1\x5a") x 100,
	'an alert of one byte'            => record(21, "\1"),
	'a change of ciphers'             => record(20, "\1"),
	'10,000 changes of ciphers'       => record(20, "\1") x 10_000,
	'bytes of an application'         => record(23, 'GET / HTTP/1.1'),
	'1000 empty records'              => record(23, '') x 1000,
	'an empty record of a handshake'  => record(22, ''),
	'1000 of them'                    => record(22, '') x 1000,
	'a heartbeat'                     => record(24, "\1\x40\0"),
	'a record of an unknown kind'     => record(99, 'x'),
	'a record that is too long'       => "\x17\x03\x03\x41\x01" . 'x' x 20_000,
	'a record of 64 KiB'              => "\x16\x03\x03\xff\xff" . 'x' x 70_000,
	'another version'                 => record(22, message(14, ''), "\x09\x09"),
	'plain HTTP'                      => "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	'zeros'                           => "\0" x 30_000,
	'a message of the server'         => record(22, message(14, '')),
	'a last message'                  => record(22, message(20, 'x' x 12)),
	'a message of 16 MB'              => record(22, "\x10\xff\xff\xff" . 'x' x 10_000) x 10,
	'200 messages of a byte a record' => record(22, "\x10") . record(22, "\0") x 200,
);

subtest 'anything instead of a hello' => sub {
	for my $what (sort keys %garbage) {
		like answer($srv, $garbage{$what}), qr/^(?:alert|nothing)\z/, "$what: the end, at once";
	}
	is answer($srv, substr($hello, 0, -1), 2), 'silence', 'a hello without its last byte waits';
	served($srv, 'afterwards');
};

subtest 'anything after a hello' => sub {
	my $waits = qr{an empty record of a handshake|1000 of them|a change of ciphers\z};        # each may be the beginning of what is right
	my $says = sub ($what) {
		my $c = $srv->connect;
		$c->send($hello);
		like $c->take(500), qr/^\x16\x03\x03/, 'our flight';
		$c->send($garbage{$what} // $hello);
		return $c;
	};
	my %waiting = map { $_ => $says->($_) } grep { /$waits/ } sort keys %garbage;
	for my $what (grep { !/$waits/ } sort keys %garbage, 'another hello') {
		my $c = $says->($what);
		my $began = time;
		$c->rest;
		ok $c->{eof}, "$what: the end";
		cmp_ok time - $began, '<', LATE - 1, '... before the deadline';
	}
	for my $what (sort keys %waiting) {
		$waiting{$what}->rest;
		ok $waiting{$what}{eof}, "$what: the end";
	}
	served($srv, 'afterwards');
};

subtest 'anything after the handshake' => sub {
	for my $version (0x303, 0x304) {
		for my $what (sort keys %garbage) {
			my $c = Test::Tls::client($srv, version => $version);
			$c->send("GET /a HTTP/1.1\r\n");
			$c->{conn}->push($garbage{$what});
			$c->{conn}->finish;
			is $c->take, '', sprintf '%x, %s: no reply', $version, $what;
		}
	}
	served($srv, 'afterwards');
};

subtest 'small records, and segments' => sub {
	my $c = Test::Tls::client($srv);
	$c->send($_) for split //, req('/a', 'X: ' . 'y' x 2000);
	is +($c->reply // {})->{body}, 'safe', 'a request of one byte a record';
	my $body = 'b' x 20_000;
	$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n");
	$c->send($_) for split //, $body;
	is +($c->reply // {})->{header}{'x-length'}, 20_000, 'an upload of one byte a record';
	my $alone = $srv->connect;
	for (split //, $hello) { $alone->send($_) }
	is ord $alone->take(1), 22, 'a hello of one byte a segment';
};

subtest 'renegotiation and new keys' => sub {
	for my $case (['-tls1_2', R => 0, 'safe'], ['-tls1_2', R => 1, ''], ['-tls1_3', K => 5, 'safe'], ['-tls1_3', K => 50, '']) {
		my ($version, $command, $times, $body) = @$case;
		my $said = put("$keys/said", '');
		my $c = Test::Tls::connect($srv, said => $said, args => [$version, '-no_ign_eof']);
		for my $n (1 .. $times) {       # s_client takes a command only as the first byte of what it reads
			$c->send("$command\n");
			eventually(sub { $c->{eof} || (() = slurp($said) =~ /^(?:RENEGOTIATING|KEYUPDATE)$/mg) >= $n || $c->take(1, 0.001) ne '' });
		}
		$c->send(req('/a', 'Connection: close'));
		is +($c->reply // {})->{body} // '', $body, "$version, $times times";
	}
	served($srv, 'afterwards');
};

subtest 'clients that leave at each step, even while a thread computes' => sub {
	my $s = server('', $slow);
	served($s, 'at first');
	my $before = $s->descriptors;
	for my $how ('abort', 'finish') {
		my @gone = map { my $c = $s->connect; $c->send($hello); $c->$how; $c } 1 .. 20;     # 10 s are enough for all, on any machine
		served($s, "beside them: $how");
	}
	for my $n (0, 1, 100, 1000) {
		my $c = $s->connect;
		$c->send($hello);
		$c->take($n);
		$c->abort;
	}
	ok eventually(sub { $s->descriptors <= $before }), 'no descriptor is left';
	served($s, 'afterwards');
};

subtest 'a flood of one address takes turns with another address' => sub {
	my $s = server('', $slow);
	my @flood = map { $s->connect(from => '127.0.0.2') } 1 .. 300;
	$_->send($hello) for @flood;
	served($s, 'beside it', from => '127.0.0.3');
	cmp_ok scalar(grep { $_->silent } @flood), '>', 0, 'while the flood waits';
	$_->abort for @flood;
	served($s, 'afterwards');
};

# The others wait in the row of their address, however many threads there are.
subtest 'handshakes of one address, one at a time' => sub {
	my $s = server('server.max-handshakes-per-address = 1', $slow);
	my @mine = map { $s->connect(from => '127.0.0.2') } 1 .. 12;
	$_->send($hello) for @mine;
	served($s, 'meanwhile', from => '127.0.0.3');
	is scalar(grep { $_->take(1) eq "\x16" } @mine), 12, 'each has its turn';
	cmp_ok counter($s, 'tls.address-waits'), '>', 0, 'that they waited is counted';
	is counter($s, 'tls.failed.refused'), 0, 'none is refused';
};

subtest 'half an upload is not taken for a whole one' => sub {
	my $half = "POST /app/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" . 'x' x 500;
	my $chunked = "POST /app/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\n" . 'x' x 500 . "\r\n";
	for my $bytes ($half, $chunked) {
		for my $case (['FIN', sub ($c) { shutdown $c->sock, 1 }], ['close_notify', sub ($c) { $c->say_end }], ['both', sub ($c) { $c->say_end; shutdown $c->sock, 1 }]) {
			my $c = Test::Tls::client($srv);
			$c->send($bytes);
			$case->[1]->($c);
			unlike $c->take, qr/^HTTP\S+ 200/, $case->[0];
		}
	}
	served($srv, 'afterwards');
};

subtest 'slow readers and those that leave during a reply' => sub {
	my @slow = map { Test::Tls::client($srv, rcvbuf => 4096) } 1 .. 20;
	$_->send(req('/big')) for @slow;
	like $_->take(5000), qr/^HTTP\S+ 200/, 'the beginning' for @slow;
	served($srv, 'beside them');
	is length $slow[0]->take(1_000_000), 1_000_000, 'a slow one gets its bytes';
	$_->{conn}->abort for @slow[0 .. 9];
	shutdown $_->sock, 1 for @slow[10 .. 19];
	served($srv, 'afterwards');
};

subtest 'requests of all kinds' => sub {
	my $c = Test::Tls::client($srv);
	my $ask = sub ($method, @lines) { $c->send("$method /big HTTP/1.1\r\nHost: x\r\n" . join('', map { "$_\r\n" } @lines) . "\r\n") };
	$ask->('HEAD');
	my ($head) = do { $c->{in} .= Net::SSLeay::read($c->{ssl}, 16_384) while $c->{in} !~ /\r\n\r\n/; $c->{in} =~ s/\A(.*?\r\n\r\n)//s; $1 };
	like $head, qr/^HTTP\S+ 200 .*^Content-Length: 3000000/ms, 'HEAD';
	my ($tag) = $head =~ /^ETag: (\S+)/m;
	$ask->('GET', "If-None-Match: $tag");
	is $c->reply->{status}, 304, 'a 304';
	$ask->('GET', 'Range: bytes=10-19,30-34');
	my $r = $c->reply;
	is $r->{status}, 206, 'two ranges';
	is_deeply [map { $_->[2] } @{ Test::Http::parts($r) }], ['x' x 10, 'x' x 5], '... and their bytes';
};

subtest 'an application that hangs, and X-Sendfile' => sub {
	my @waits = map { Test::Tls::client($srv) } 1 .. 10;
	$_->send("POST /app/steps HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" . 'x' x 10_000) for @waits;
	$_->send('x' x 10_000) for map { ($_) x 9 } @waits;
	served($srv, 'beside them');
	$_->{conn}->abort for @waits[0 .. 4];
	$_->say_end for @waits[5 .. 9];
	$app->note('go');
	like $waits[$_]->take, qr/^HTTP\S+ 200 .*three/s, 'a client that said its end has its reply' for 5 .. 9;
	my $c = Test::Tls::client($srv);
	my $file = $srv->path('big') =~ s/([^\w])/sprintf '%%%02x', ord $1/ger;
	for (1 .. 2) {
		$c->send(req("/app/head?X-Sendfile: $file" =~ s/ /%20/r));
		is length $c->reply->{body}, 3_000_000, 'a file for an application';
	}
};

subtest 'a client that is silent after its reply' => sub {
	my $s = server('server.max-keep-alive-idle = 1');
	my $c = Test::Tls::client($s);
	$c->send(req('/a'));
	is $c->reply->{body}, 'safe', 'a reply';
	is $c->take, '', '... and the end';
	is Net::SSLeay::get_shutdown($c->{ssl}) & 2, 2, '... with close_notify';
};

subtest 'a disk that hangs while clients wait and leave' => sub {
	my ($fuse, $no_fuse) = Accel::Slowfs->usable;
	plan skip_all => $no_fuse unless $fuse;
	my $source = Test::Util::temp_tree();
	put("$source/$_", "file $_ " x 30_000) for 1 .. 20;
	my $s = server();
	mkdir $s->dir . '/disk' or die "mkdir: $!";
	my $disk = Accel::Slowfs->start(source => "$source", at => $s->dir . '/disk', spindles => 16, lookup_ms => 1, read_ms => 1);
	$disk->hang;
	my @c = map { Test::Tls::client($s) } 1 .. 20;
	$c[$_]->send(req("/disk/@{[ $_ + 1 ]}")) for 0 .. 19;
	ok $disk->wait_hanging(1), 'they wait';
	served($s, 'beside them');
	$_->{conn}->abort for @c[0 .. 4];
	shutdown $_->sock, 1 for @c[5 .. 9];
	served($s, 'while some leave');
	$disk->go;
	is length +($c[$_]->reply // {})->{body} // '', length("file @{[ $_ + 1 ]} " x 30_000), "file $_" for 10 .. 19;
	undef $_ for @c;
	$s->stop;
	$disk->stop;
};

# ---------------------------------------------------------------- reload, upgrade, files of certificates

# Each of these connections asks; then this happens; then each is answered.
sub round ($conns, $happens) {
	my $lost = 0;
	$_->send(req('/a')) for @$conns;
	$happens->();
	for (@$conns) { $lost++ unless (($_->reply // {})->{body} // '') eq 'safe' }
	return $lost;
}

my $MANY = sanitized() ? 50 : 200;

subtest "reloads with $MANY clients, and files of certificates that vanish, are cut or swapped" => sub {
	my %is = (pem => "$keys/now.pem", key => "$keys/now.key");
	my $have = sub ($pem, $key) { put($is{pem}, $pem); put($is{key}, $key) };
	$have->(slurp($cert->{pem}), slurp($cert->{key}));
	my $s = server('server.max-keep-alive-idle = 60', \%is);
	my @conn = map { Test::Tls::client($s) } 1 .. $MANY;
	is round(\@conn, sub {}), 0, 'each is served';
	my $session = $conn[0]->session;
	my $reloads = 0;
	for my $case (
		['a reload', sub { }, 1],
		['a certificate that is cut', sub { put($is{pem}, substr slurp($cert->{pem}), 0, 200) }, 0],
		['one without a key', sub { $have->(slurp($cert->{pem}), '') }, 0],
		['the key of another', sub { $have->(slurp($cert->{pem}), slurp($other->{key})) }, 0],
		['no file', sub { unlink $is{pem} }, 0],
		['the old one again', sub { $have->(slurp($cert->{pem}), slurp($cert->{key})) }, 1],
	) {
		my ($what, $do, $well) = @$case;
		$do->();
		my ($re, $n) = $well ? (qr/ev=reloaded/, ++$reloads) : (qr/ev=config\.unusable/, undef);
		my $bad = () = $s->log =~ /ev=config\.unusable/g;
		is round(\@conn, sub { $s->signal('USR1'); ok $s->wait_lines($n // $bad + 1, $re), $what }), 0, '... loses nobody';
		served($s, 'by a new connection, too');
	}
	my $again = Test::Tls::client($s, session => $session);
	ok $again->resumed, 'a session of before is resumed';
};

subtest "a binary upgrade with $MANY clients" => sub {
	my $s = server(qq{server.max-keep-alive-idle = 60\nserver.pid-file = "\@RUN\@/pid"});
	my @conn = map { Test::Tls::client($s) } 1 .. $MANY;
	is round(\@conn, sub { ok $s->upgrade, 'upgraded' }), 0, 'nobody is lost';
	is round(\@conn, sub {}), 0, '... nor later';
	served($s, 'by the new process');
};

subtest 'a graceful stop' => sub {
	my $s = server();
	my $c = Test::Tls::client($s, rcvbuf => 65_536);
	$c->send(req('/big'));
	like $c->take(1000), qr/^HTTP\S+ 200/, 'a reply has begun';
	$s->signal('INT');
	ok eventually(sub { my $new = eval { $s->connect }; !$new }), 'nobody is accepted any more';
	cmp_ok length $c->take, '>', 2_999_000, 'it is sent to its end';
};

done_testing;
