# ssl.stek-file: machines with the same key of tickets resume each other's sessions. A new key is taken without a reload, and tickets of
# the last three go on; a file that cannot be used leaves them in use. lighttpd reads the same file.
use v5.36;
use File::Temp ();
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Peer;
use Accel::Util qw(free_port);
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually need_program program put sanitized slurp);

my $dir = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($dir, 'first');
my $ssl = qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n};
my $random = join '', map { chr int rand 256 } 1 .. 64;

sub secret ($letter) { return $random ^. $letter x 64 }

# Its name is 16 times this letter.
sub key ($letter, $from = -60, $to = 3600) { return pack('iii', 0, time + $from, time + $to) . $letter x 16 . secret($letter) }

sub replace ($bytes, $file = "$dir/stek") {
	put("$file.new", $bytes);
	rename "$file.new", $file or die "rename: $!";
	return $file;
}

sub conf ($file) { return $ssl . ($file ? qq{ssl.stek-file = "$file"\n} : '') . qq{server.max-worker = 1\nserver.pid-file = "\@RUN\@/pid"\nstatus.statistics-url = "/counters"\n} }

sub start ($file = "$dir/stek", $more = '') {
	my $s = Test::Server->start(conf => conf($file) . $more);
	$s->write('a', 'safe');
	$s->wait_log(qr/ev=listening/);
	return $s;
}

# A session that a client gets with this version; undef: it got no answer.
my $nsessions = 0;
sub session ($port, $v, @args) {
	my $file = "$dir/session." . $nsessions++;
	my $c = Test::Tls::connect(bless({ port => $port }, 'At'), ca => $cert->{pem}, args => ["-tls$v", '-sess_out', $file, @args]);
	$c->send(req('/a', 'Connection: close'));
	my $is = $c->reply;
	$c->closed;
	return $is && $is->{body} eq 'safe' && eventually(sub { -s $file }) ? $file : undef;
}
sub At::port ($self) { return $self->{port} }

# New or Reused
sub is_at ($port, $v, $session) { return ((Test::Tls::shaken($port, "-tls$v", '-sess_in', $session) // {})->{said} // '') =~ /^(New|Reused), /m ? $1 : 'no handshake' }

# The letter of its key.
sub letter ($session) { return letter_in(Test::Tls::run('sess_id', '-in', $session, '-text', '-noout')) }

sub letter_in ($said) {
	my ($hex) = $said =~ /TLS session ticket:\n +0000 - ([0-9a-f -]{47})/;
	my $name = pack 'H*', ($hex // '') =~ s/[ -]//gr;
	return $name =~ /\A([A-Z])\1{15}\z/ ? $1 : 'none';
}

sub counter ($s, $name) {
	my $c = Test::Tls::connect($s, ca => $cert->{pem});
	$c->send(req('/counters', 'Connection: close'));
	return (($c->reply // {})->{body} // '') =~ /^\Qserver.tls.$name\E: (\d+)$/m ? $1 : undef;
}

sub lines ($s, $what) { return scalar(() = $s->log =~ /ev=\Q$what\E /g) }
sub comes ($s, $n) { return ok eventually(sub { lines($s, 'tickets.renewed') >= $n }), "the new key is taken ($n)" }

sub reload ($s, $conf) {
	my $n = lines($s, 'reloaded');
	put($s->run . '/server.conf', slurp($s->run . '/server.conf') =~ s/^ssl\.stek-file.*\n//mr . $conf);
	$s->signal('USR1');
	return ok eventually(sub { lines($s, 'reloaded') > $n }), 'a reload';
}

# In how many maps of the server these bytes are: hidden ones are in no core file.
sub places ($s, $bytes) {
	my ($from, $to, %n);
	open my $memory, '<:raw', '/proc/' . $s->pid . '/mem' or die "mem: $!";
	for (split /\n/, slurp('/proc/' . $s->pid . '/smaps')) {
		($from, $to) = map { unpack 'Q>', pack 'H16', substr '0' x 16 . $_, -16 } $1, $2 if /^([0-9a-f]+)-([0-9a-f]+) rw/;
		my ($flags) = /^VmFlags: (.*)$/ or next;
		if (defined $from && sysseek($memory, $from, 0) && sysread $memory, my $there, $to - $from) {
			$n{ $flags =~ /\bdd\b/ ? 'hidden' : 'dumped' }++ if index($there, $bytes) >= 0;
		}
		$from = undef;
	}
	return \%n;
}

my $warned = qr/level=(?:warn|error) ev=(?!running\.as-root )/;

subtest 'two machines' => sub {
	replace(key('A'));
	my ($one, $two) = map { start() } 1, 2;
	my $other = start(replace(key('Z'), "$dir/other"));
	for my $v (qw(1_2 1_3)) {
		for ([$one, $two], [$two, $one]) {
			my $session = session($_->[0]->port, $v);
			is letter($session), 'A', "TLS $v: a ticket of the file";
			is is_at($_->[1]->port, $v, $session), 'Reused', '... is resumed at the other machine';
			is is_at($other->port, $v, $session), 'New', '... and not where there is another key';
		}
	}
	unlike $_->log, $warned, 'nothing to warn of' for $one, $two;
	SKIP: {
		skip 'the memory of a sanitizer is too large to be read', 1 if sanitized();
		is_deeply places($one, substr secret('A'), 0, 32), { hidden => 1 }, 'the key is in memory that core files leave out, and nowhere else';
	}
};

subtest 'new keys' => sub {
	replace(key('A'));
	my ($s, $two) = map { start() } 1, 2;
	my $renewals = counter($s, 'renewals');
	my %of = map { $_ => { A => session($s->port, $_) } } qw(1_2 1_3);
	replace(key('B'));
	comes($_, 1) for $s, $two;
	is counter($s, 'renewals'), $renewals + 1, '... and counted';
	for my $v (qw(1_2 1_3)) {
		is is_at($s->port, $v, $of{$v}{A}), 'Reused', "TLS $v: a ticket of the old key goes on";
	}
	# openssl writes a file of the next ticket with TLS 1.3 only
	is letter_in(Test::Tls::shaken($s->port, '-tls1_2', '-sess_in', $of{'1_2'}{A})->{said}), 'B', 'TLS 1_2: ... and is replaced by one of the new key';
	my $next = session($s->port, '1_3', '-sess_in', $of{'1_3'}{A});
	is letter($next), 'B', '... TLS 1_3, too';
	is is_at($two->port, '1_3', $next), 'Reused', '... which the other machine takes';
	replace(key('C', 3600, 7200));
	comes($s, 2);
	is letter(session($s->port, '1_3')), 'B', 'one that begins later is not used yet';
	my $early = start(replace(key('C', 3600, 7200), "$dir/early"));
	my $session;
	ok $session = session($early->port, $_), "TLS $_: without any that has begun, clients are served" for qw(1_2 1_3);
	is is_at($early->port, '1_3', $session), 'New', '... and do not resume';
	replace(key('D'));
	comes($s, 3);
	is is_at($s->port, '1_3', $of{'1_3'}{A}), 'New', 'after three newer ones a ticket is of no use';
	is letter(session($s->port, '1_3')), 'D', '... and the newest is used';
	is lines($s, 'reloaded'), 0, 'no reload';
};

subtest 'a reload and an upgrade' => sub {
	replace(key('A'));
	my $s = start();
	my $old = session($s->port, '1_3');
	replace(key('B'));
	comes($s, 1);
	reload($s, qq{ssl.stek-file = "$dir/stek"\n});
	is is_at($s->port, '1_3', $old), 'Reused', 'the keys stay';
	is letter(session($s->port, '1_3')), 'B', '... and the newest is used';
	my $before = $s->upgrade;
	ok $before, 'an upgrade';
	ok eventually(sub { Test::Server::is_gone($before) }), '... and the old process ends';
	is is_at($s->port, '1_3', $old), 'Reused', 'the next process has the older key, too';
	is letter(my $new = session($s->port, '1_3')), 'B', '... and uses the newest';
	reload($s, '');
	is is_at($s->port, '1_3', $new), 'New', 'without the setting, keys of the file count no longer';
	is letter(my $own = session($s->port, '1_3')), 'none', '... and tickets are of our own';
	is is_at($s->port, '1_3', $own), 'Reused', '... which are resumed';
	reload($s, qq{ssl.stek-file = "$dir/stek"\n});
	is is_at($s->port, '1_3', $own), 'New', 'with it, those of our own do not';
	is is_at($s->port, '1_3', $new), 'Reused', '... and those of the file do';
	unlike $s->log, qr/upgrade\.tickets|A{16}|(?:41){16}/, 'no key is in the log';
};

subtest 'what cannot be used' => sub {
	replace(key('A'));
	my $s = start();
	my $session = session($s->port, '1_3');
	my $n = 0;
	my @bad = (
		[sub { replace(substr key('B'), 0, 91) }, 'it is not a key of tickets: expected 92 bytes', 'a short one'],
		[sub { replace(key('B') . 'x') }, 'it is not a key of tickets: expected 92 bytes', 'a long one'],
		[sub { replace('') }, 'it is not a key of tickets: expected 92 bytes', 'an empty one'],
		[sub { replace(pack('i', 1) . substr key('B'), 4) }, 'it is not a key of tickets: expected four bytes of zero', 'another format'],
		[sub { replace(key('B', 60, -60)) }, 'its key ends before it begins', 'times in the wrong order'],
		[sub { replace(key('B', -3600, -60)) }, 'its key has ended', 'one that has ended'],
		[sub { unlink "$dir/stek" or die "unlink: $!" }, 'No such file', 'none'],
	);
	for (@bad) {
		$n++;
		$_->[0]->();
		ok eventually(sub { lines($s, 'tickets.refused') >= $n }), "$_->[2]: a line tells it";
		my @line = grep { /ev=tickets\.refused / } split /\n/, $s->log;
		is scalar @line, $n, '... once';
		like $line[-1] // '', qr{level=error ev=tickets\.refused why="\S+/server\.conf:\d+:\d+: ssl\.stek-file: \\x22\Q$dir\E/stek\\x22: \Q$_->[1]\E}, '... with the reason';
		is is_at($s->port, '1_3', $session), 'Reused', '... and the last key stays in use';
	}
	my $count = sub ($name, $want) { my $is; eventually(sub { ($is = counter($s, $name)) == $want }); return $is };
	is $count->('certificates-refused', 1), 1, 'the pages tell it';
	is $count->('renewals-refused', $n), $n, '... each time';
	reload($s, qq{ssl.stek-file = "$dir/stek"\n});
	my $line = qr{level=warn ev=config\.warning what="[^"]*ssl\.stek-file: \\x22\S+\\x22: clients do not resume their sessions with it: No such file};
	like $s->wait_log($line), $line, '... which warns';
	is is_at($s->port, '1_3', $session), 'Reused', '... and leaves the last key in use, too';
	replace(key('B'));
	comes($s, 1);
	is is_at($s->port, '1_3', $session), 'Reused', 'a new one is taken, and the ticket goes on';
	is letter(session($s->port, '1_3')), 'B', '... the next one is of the new key';
	is $count->('certificates-refused', 0), 0, 'the pages tell that, too';
};

subtest 'the end of the last key' => sub {
	replace(key('A', -60, 8));
	my $s = start();
	my $session = session($s->port, '1_3');
	is letter($session), 'A', 'a ticket';
	my $line = qr/level=warn ev=tickets\.ended /;
	like $s->wait_log($line), $line, 'a line tells it';
	is is_at($s->port, '1_3', $session), 'New', 'its ticket has ended, too';
	for my $v (qw(1_2 1_3)) {
		ok my $of_none = session($s->port, $v), "TLS $v: clients are served";
		is is_at($s->port, $v, $of_none), 'New', '... and do not resume';
	}
	replace(key('B'));
	comes($s, 1);
	is letter(session($s->port, '1_3')), 'B', 'the next one';
	is lines($s, 'tickets.ended'), 1, 'the log has it once';
};

subtest 'the start and -t' => sub {
	my $check = sub ($bytes) {
		unlink "$dir/checked";
		put("$dir/checked", $bytes) if defined $bytes;
		put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.port = 0\n${ssl}ssl.stek-file = "$dir/checked"\n});
		my $said = qx{@{[ program('accel-server') ]} -t -f $dir/x.conf 2>&1 </dev/null};
		return ($? >> 8) . ' ' . $said =~ s/\Q$dir\E/DIR/gr;
	};
	my $says = sub ($why) { return qr/^0 DIR\/x\.conf:6:17: ssl\.stek-file: "DIR\/checked": clients do not resume their sessions with it: $why[^\n]*\nSyntax OK\n\z/ };
	is $check->(key('A')), "0 Syntax OK\n", 'a good one';
	like $check->(key('A', -60, -1)), $says->('its key has ended'), 'one that has ended';
	like $check->('x' x 92), $says->('it is not a key of tickets'), 'nonsense';
	like $check->(undef), $says->('No such file'), 'none';
	my $s = start("$dir/checked");
	ok my $none = session($s->port, '1_3'), 'the server starts without it';
	is is_at($s->port, '1_3', $none), 'New', '... and clients do not resume';
	replace(key('A'), "$dir/checked");
	comes($s, 1);
	is letter(session($s->port, '1_3')), 'A', 'the file comes';
};

subtest 'the job of doc/server.md' => sub {
	my ($section) = slurp("$FindBin::Bin/../../doc/server.md") =~ /^### Several machines with one name\n(.*?)^### /ms;
	my ($line) = $section =~ /^    (ssl\.stek-file = .*\n)/m;
	my ($job) = $section =~ /^```sh\n(.*?)^```/ms;
	s{/run/stek}{$dir/run}g for $line, $job;
	$job =~ s/^others=.*$/others=""/m or die 'no machines';
	(my $first = $job) =~ s/time \+ 300/time/ or die 'no delay';
	my $run = sub ($text) { put("$dir/job", $text); return system('sh', "$dir/job") };
	is $run->($first), 0, 'the first key';
	my $file = "$dir/run/key";
	is sprintf('%o', (stat $file)[2] & 07777), '600', '... for the owner only';
	my $s = Test::Server->start(conf => $ssl . $line . "server.max-worker = 1\n");
	$s->write('a', 'safe');
	$s->wait_log(qr/ev=listening/);
	my $name = sub ($session) { return Test::Tls::run('sess_id', '-in', $session, '-text', '-noout') =~ /TLS session ticket:\n +0000 - ([0-9a-f -]{47})/ ? $1 =~ s/[ -]//gr : '' };
	my $of_file = sub { return unpack 'H*', substr slurp($file), 12, 16 };
	my $before = $of_file->();
	is $name->(session($s->port, '1_3')), $before, '... is used';
	is $run->($job), 0, 'the next one';
	my ($format, $from, $to) = unpack 'iii', slurp($file);
	ok !$format && abs($from - time - 300) < 60 && abs($to - time - 86400) < 60, '... from five minutes on, for a day';
	comes($s, 1);
	is $name->(session($s->port, '1_3')), $before, '... so the first one is used until then';
	unlike $s->log, $warned, 'nothing to warn of';
};

subtest 'lighttpd reads the same file' => sub {
	need_program('lighttpd', 'lighttpd');
	replace(key('L'));
	mkdir "$dir/www" or die "mkdir: $!";
	put("$dir/www/a", 'safe');
	my %port;
	my @peer = map {
		$port{$_} = free_port();
		my $text = qq{server.modules = ( "mod_openssl" )\nserver.bind = "127.0.0.1"\nserver.port = env.PORT\nserver.document-root = env.RUN + "/www"\nserver.errorlog = env.RUN + "/error.$_"\n};
		my $tls = qq{\$SERVER["socket"] == "127.0.0.1:$port{$_}" {\n$ssl}\nssl.stek-file = "$dir/stek"\n};
		Accel::Peer->start($_, root => "$dir/www", file => put("$dir/conf.$_", $text . $tls), env => { RUN => "$dir" });
	} 'lighttpd', 'accel';
	for my $who (sort keys %port) {
		ok eventually(sub { Test::Tls::shaken($port{$who}) }), "$who listens";
	}
	for my $v (qw(1_2 1_3)) {
		my %of = map { $_ => session($port{$_}, $v) } sort keys %port;
		for my $who (sort keys %of) {
			is letter($of{$who}), 'L', "$who, TLS $v: its ticket has the key of the file";
			is is_at($port{$who}, $v, $of{$who}), 'Reused', '... and is resumed';
			is is_at($port{$who eq 'accel' ? 'lighttpd' : 'accel'}, $v, $of{$who}), 'New', '... at the other one a full handshake follows, because a session belongs to a server';
		}
	}
};

done_testing;
