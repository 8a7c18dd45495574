# A renewed certificate is used without a reload: whatever way its files come, new connections get it and running ones go on.  What
# cannot be used leaves the last one in use, and is said once.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use POSIX ();
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually program put slurp);

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my %made;

# The n-th certificate of a host; each is another one.
sub made ($n, $host = undef) { return $made{$n . ($host // '')} //= Test::Tls::certificate($keys, "n$n" . ($host // ''), $host ? (hosts => [$host]) : ()) }

sub start ($conf = '', %arg) {
	my $dir = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
	$arg{files}->($dir) if $arg{files};
	replace($dir, made(1)) if !$arg{files};
	my $srv = Test::Server->start(conf => <<"CONF" . $conf);
ssl.engine = "enable"
ssl.pemfile = "$dir/x.pem"
ssl.privkey = "$dir/x.key"
server.max-worker = 1
server.pid-file = "\@RUN\@/pid"
status.statistics-url = "/counters"
status.status-url = "/status"
status.metrics-url = "/metrics"
server.max-keep-alive-idle = 600
CONF
	$srv->write('a', 'safe');
	$srv->wait_log(qr/ev=listening/);
	return ($srv, $dir);
}

# By rename, as clients of ACME do.
sub replace ($dir, $cert, $name = 'x') {
	for (qw(key pem)) {
		put("$dir/new", slurp($cert->{$_}));
		rename "$dir/new", "$dir/$name.$_" or die "rename: $!";
	}
	return;
}

sub ask ($srv, $cert, $path = '/a', @args) {
	my $c = Test::Tls::connect($srv, ca => $cert->{pem}, args => \@args);
	$c->send(req($path, 'Connection: close'));
	return ($c->reply // {})->{body} // '';
}

sub counter ($srv, $cert, $name) { return (ask($srv, $cert, '/counters') =~ /^\Qserver.tls.$name\E: (\d+)$/m)[0] }
sub lines ($srv, $what) { return scalar(() = $srv->log =~ /ev=\Q$what\E /g) }
# The pages and the line come after the certificate, and the pages after the line.
sub counts ($srv, $cert, $name, $n, $what) { my $is; eventually(sub { $is = counter($srv, $cert, $name); ($is // -1) == $n }); return is $is, $n, $what }
sub told ($srv, $n, $what) { eventually(sub { lines($srv, 'certificate.renewed') >= $n }); return is lines($srv, 'certificate.renewed'), $n, $what }
sub comes ($srv, $cert, $what, @args) { return ok eventually(sub { ask($srv, $cert, '/a', @args) eq 'safe' }), $what }

subtest 'files replaced by rename' => sub {
	my ($srv, $dir) = start();
	my @kept = map { my $c = Test::Tls::connect($srv, ca => made(1)->{pem}); $c->send(req('/a')); $c->reply; $c } 1 .. 3;
	is counter($srv, made(1), 'renewals'), 0, 'the first one is not a renewal';
	replace($dir, made(2));
	comes($srv, made(2), 'new connections get the new one');
	is ask($srv, made(1)), '', '... and not the old one';
	told($srv, 1, 'a line tells it');
	$srv->log_has(qr{level=info ev=certificate\.renewed file=\Q$dir\E/x\.pem$}m, '... with its file');
	$_->send(req('/a')) for @kept;
	is_deeply [map { ($_->reply // {})->{body} } @kept], [('safe') x 3], 'running connections go on';
	replace($dir, made(3));
	comes($srv, made(3), 'the next one comes, too');
	told($srv, 2, 'so does its line');
	is counter($srv, made(3), 'renewals'), 2, 'both are counted';
	counts($srv, made(3), 'certificates', 1, 'one certificate');
	my $ends = counter($srv, made(3), 'certificate-ends-in-s');
	ok $ends > 86400 && $ends <= 60 * 86400, 'its end is known';
	is lines($srv, 'reloaded'), 0, 'no reload';
	is lines($srv, 'certificate.refused'), 0, 'nothing was wrong meanwhile';
};

subtest 'files written in place' => sub {
	my ($srv, $dir) = start();
	put("$dir/x.$_", slurp(made(2)->{$_})) for qw(pem key);
	comes($srv, made(2), 'certificate first');
	put("$dir/x.$_", slurp(made(3)->{$_})) for qw(key pem);
	comes($srv, made(3), 'key first');
};

subtest 'links, as those of certbot' => sub {
	my ($srv, $dir) = start('', files => sub ($dir) {
		mkdir "$dir/archive" or die "mkdir: $!";
		for my $n (1, 2) { put("$dir/archive/$n.$_", slurp(made($n)->{$_})) for qw(pem key) }
		symlink "archive/1.$_", "$dir/x.$_" or die "symlink: $!" for qw(pem key);
	});
	is ask($srv, made(1)), 'safe', 'the first one';
	for (qw(key pem)) {
		symlink "archive/2.$_", "$dir/new" or die "symlink: $!";
		rename "$dir/new", "$dir/x.$_" or die "rename: $!";
	}
	comes($srv, made(2), 'a link to another file');
};

subtest 'what cannot be used' => sub {
	my ($srv, $dir) = start();
	my $refused = sub ($n, $why, $what) {
		ok eventually(sub { lines($srv, 'certificate.refused') >= $n }), "$what: a line tells it";
		like((grep { /certificate\.refused/ } split /\n/, $srv->log)[-1], $why, '... and the reason');
		is ask($srv, made(1)), 'safe', '... the last one stays in use';
	};
	put("$dir/x.key", slurp(made(2)->{key}));
	$refused->(1, qr{level=error ev=certificate\.refused why="\S+/server\.conf:\d+:\d+: ssl\.privkey: \\x22\Q$dir\E/x\.key\\x22: the key does not belong}, 'a key without its certificate');
	counts($srv, made(1), 'certificates-refused', 1, 'the pages tell it');
	like ask($srv, made(1), '/status'), qr{<p id="certificates">certificates: the first one ends in \d+ days; <b>new files of 1 cannot be used}, '... that for people';
	like ask($srv, made(1), '/metrics'), qr{^accel_tls_certificates_refused 1\n(?s:.*)^accel_tls_renewals_refused_total 1$}m, '... and that of Prometheus';
	my $said = qx{@{[ program('accel-server') ]} ctl status --json --socket=@{[ $srv->run ]}/pid.ctl};
	is_deeply [@{ JSON::PP::decode_json($said) }{qw(certificates certificates_refused)}], [1, 1], '... and ctl';
	put("$dir/x.pem", substr slurp(made(2)->{pem}), 0, 200);
	$refused->(2, qr{ssl\.pemfile: .*cannot be read}, 'half a file');
	unlink "$dir/x.pem" or die "unlink: $!";
	$refused->(3, qr{ssl\.pemfile: .*No such file}, 'a file that is gone');
	put("$dir/x.pem", slurp(made(2)->{pem}));
	comes($srv, made(2), 'the whole pair is used');
	counts($srv, made(2), 'certificates-refused', 0, 'the pages tell that, too');
	is counter($srv, made(2), 'renewals-refused'), 3, 'each was said once';
	replace($dir, made(1));
	comes($srv, made(1), 'and the next one');
};

subtest 'a host has its own' => sub {
	my $dir2 = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
	replace($dir2, made(1, 'b.example'), 'b');
	my ($srv, $dir) = start(qq{\$HTTP["host"] == "b.example" {\nssl.pemfile = "$dir2/b.pem"\nssl.privkey = "$dir2/b.key"\n}\n});
	my @host = (-servername => 'b.example');
	is ask($srv, made(1, 'b.example'), '/a', @host), 'safe', 'the first one';
	replace($dir2, made(2, 'b.example'), 'b');
	comes($srv, made(2, 'b.example'), 'the next one of the host', @host);
	is ask($srv, made(1)), 'safe', 'that of the socket stays';
	told($srv, 1, '... and is not renewed');
};

subtest 'the helper dies, the configuration is read again, the program is replaced' => sub {
	my ($srv, $dir) = start();
	my $helper = $srv->helper;
	kill KILL => $helper;
	ok eventually(sub { lines($srv, 'helper.back') == 1 }), 'another helper';
	replace($dir, made(2));
	comes($srv, made(2), 'it has the files, too');
	my $dir2 = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
	replace($dir2, made(3));
	my $conf = slurp($srv->run . '/server.conf');
	put($srv->run . '/server.conf', $conf =~ s/\Q$dir\E/$dir2/gr);
	$srv->signal('USR1');
	comes($srv, made(3), 'a reload names other files');
	replace($dir2, made(4));
	comes($srv, made(4), '... which are watched from now on');
	replace($dir, made(5));
	ok $srv->upgrade, 'an upgrade';
	is ask($srv, made(4)), 'safe', 'the new server has the newest';
	replace($dir2, made(6));
	comes($srv, made(6), '... and sees the next one');
	unlike $srv->log =~ s/.*ev=reloaded//sr, qr{ev=certificate\.renewed file=\Q$dir\E/}, 'files that are not named any more are nothing';
	unlike $srv->log, qr/ev=certificate\.(?:refused|unwatched)/, '... and nothing was wrong';
};

# The helper has read it without an error, so it knows the names of the refused one last.
subtest 'a reload that the server refuses' => sub {
	for my $after ('the next renewal', 'after the death of the helper') {
		my ($srv, $dir) = start();
		my $dir2 = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
		replace($dir2, made(3));
		put("$dir2/x.key", slurp(made(4)->{key}));
		my $conf = slurp($srv->run . '/server.conf');
		put($srv->run . '/server.conf', $conf =~ s/\Q$dir\E/$dir2/gr);
		$srv->signal('USR1');
		ok eventually(sub { lines($srv, 'reload.refused') == 1 }), "$after: a certificate does not load";
		if ($after =~ /death/) {
			kill KILL => $srv->helper;
			ok eventually(sub { lines($srv, 'helper.back') == 1 }), '... another helper';
		}
		replace($dir, made(2));
		comes($srv, made(2), '... one that is in use is renewed');
		replace($dir, made(5));
		comes($srv, made(5), '... and again');
		is lines($srv, 'certificate.refused'), 0, '... the refused one is nothing';
		put($srv->run . '/server.conf', "$conf\nnonsense");
		$srv->signal('USR1');
		ok eventually(sub { lines($srv, 'reload.refused') == 2 }), '... nor is a broken configuration';
		replace($dir, made(6));
		comes($srv, made(6), '... renewed still');
	}
};

# Of the helper: those that wait for a change, at least this old.
sub waiting ($srv, $seconds) {
	my $helper = $srv->helper;
	my $up = (split ' ', slurp('/proc/uptime'))[0] - $seconds;
	return grep { -r "/proc/$_/stat" && (slurp("/proc/$_/stat") =~ /.*\) (?:\S+ ){19}(\d+)/s)[0] / POSIX::sysconf(POSIX::_SC_CLK_TCK()) < $up }
		split ' ', slurp("/proc/$helper/task/$helper/children");
}

subtest 'a directory in which others are busy' => sub {
	my ($srv, $dir) = start();
	my $waits;
	ok eventually(sub { ($waits) = waiting($srv, 1.2); $waits }), 'it waits';
	my $wakes = sub { (slurp("/proc/$waits/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m)[0] };
	my $before = $wakes->();
	put("$dir/busy", '');
	for (1 .. 10_000) { rename "$dir/busy", "$dir/busier"; rename "$dir/busier", "$dir/busy" }
	cmp_ok $wakes->() - $before, '<', 100, '20,000 changes of another file wake it now and then';
	replace($dir, made(2));
	comes($srv, made(2), '... and a change of its own is seen');
};

subtest 'the end of what waits for a change' => sub {
	my ($srv, $dir) = start();
	for (1, 2) {
		my ($old, $new);
		ok eventually(sub { ($old) = waiting($srv, 1.2) }), 'it has waited';
		kill KILL => $old;
		ok eventually(sub { ($new) = waiting($srv, 0); $new && $new != $old }), '... and another one does';
	}
	is lines($srv, 'certificate.unwatched'), 0, 'nothing is logged';
	ok eventually(sub { kill KILL => waiting($srv, 0); lines($srv, 'certificate.unwatched') }), 'one that always ends at once is logged';
	replace($dir, made(2));
	comes($srv, made(2), 'then it is well again');
	is lines($srv, 'certificate.unwatched'), 1, '... and there is one line';
};

subtest 'certificates change under load' => sub {
	my ($srv, $dir) = start();
	put("$keys/all.pem", join '', map { slurp(made($_)->{pem}) } 1 .. 6);
	my $all = { pem => "$keys/all.pem" };
	my $bad = 0;
	for my $n (2 .. 4) {
		replace($dir, made($n));
		eventually(sub { $bad += ask($srv, $all) ne 'safe'; lines($srv, 'certificate.renewed') >= $n - 1 });
	}
	is lines($srv, 'certificate.renewed'), 3, 'three renewals';
	is $bad, 0, 'each connection was served';
};

done_testing;
