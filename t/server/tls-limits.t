# TLS when the kernel gives no more: no thread, no descriptor. Handshakes fail at once and the log says why; when there is some again,
# all works again, and nothing is counted for ever.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually find_program put slurp);

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my %cert = map { $_ => Test::Tls::certificate($keys, "n$_") } 1 .. 3;
my $prlimit = find_program('prlimit');

# By rename, as clients of ACME do.
sub replace ($dir, $cert) {
	for (qw(key pem)) {
		put("$dir/new", slurp($cert->{$_}));
		rename "$dir/new", "$dir/x.$_" or die "rename: $!";
	}
	return;
}

sub start ($conf = '', %arg) {
	my $dir = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
	replace($dir, $cert{1});
	my $srv = Test::Server->start(%arg, conf => qq{ssl.engine = "enable"\nssl.pemfile = "$dir/x.pem"\nssl.privkey = "$dir/x.key"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n$conf});
	chmod 0755, $srv->dir or die "chmod: $!";
	$srv->write('a', 'safe');
	return ($srv, $dir);
}

# The body, or '' without a handshake.
sub ask ($srv, $path = '/a', %arg) {
	my $c = Test::Tls::client($srv, %arg) or return '';
	$c->send(req($path, 'Connection: close'));
	return ($c->reply // {})->{body} // '';
}

sub counters ($srv) { return { ask($srv, '/counters') =~ /^server\.(\S+): (\d+)$/mg } }
sub lines ($srv, $what) { return scalar(() = $srv->log =~ /ev=\Q$what\E /g) }

subtest 'no thread can be started' => sub {
	plan skip_all => 'prlimit is missing (util-linux)' if !$prlimit;
	my @as = $> == 0 ? ('setpriv', qw(--reuid=www-data --regid=www-data --clear-groups)) : ();        # it is asked by its own user
	my $user = $> == 0 ? qq{server.username = "www-data"\n} : '';      # Debian has it
	my ($srv, $dir) = start($user);
	$srv->wait_log(qr/ev=listening/);
	my $limit = sub ($n) { return system(@as, $prlimit, '--pid', $srv->pid, "--nproc=$n:") == 0 };
	my ($most) = qx{@as $prlimit --pid @{[ $srv->pid ]} --nproc -o SOFT --noheadings} =~ /(\w+)/;
	ok $limit->(1), 'the user has all its processes';
	is ask($srv), '', 'a handshake fails' for 1 .. 30;
	like $srv->wait_log(qr/ev=threads\.none /), qr/level=warn ev=threads\.none kind=tls error="Resource temporarily unavailable"/, 'the log says why';
	cmp_ok lines($srv, 'threads.none'), '<', 15, '... not for each of them';
	ok $limit->($most), 'it may have more';
	is ask($srv), 'safe', 'the next one is served';
	is counters($srv)->{'tls.failed.refused'}, 30, 'they are counted';
	ok eventually(sub { counters($srv)->{'connections.open'} == 1 }), '... and gone';
};

# Takes all descriptors of the server with connections that are silent; the server closes some of them to make room.
sub take_all ($srv) {
	$srv->wait_log(qr/ev=listening/);
	my @c = map { $srv->connect(from => '127.0.0.2') } 1 .. 120;
	like $srv->wait_log(qr/ev=connection\.made-room why="no descriptors are left"/), qr/ev=connection\.made-room/, 'no descriptor is left';
	return \@c;
}

my $full = "server.max-connections = 500\nserver.max-read-idle = 600\n";
my $none = 'no descriptors are left; raise server.max-fds';

for my $process ('disable', 'enable') {
	subtest "no descriptor is left, ssl.key-process is $process" => sub {
		my ($srv, $dir) = start(qq{ssl.key-process = "$process"\n$full}, nofile => 100);
		my $c = take_all($srv);
		isnt ask($srv, '/a', from => '127.0.0.3'), 'safe', 'a client is not served' for 1 .. 3;
		like $srv->wait_log(qr/ev=(?:tls|reply)\.failed /), qr/ev=(?:tls|reply)\.failed .*why="\Q$none\E"/, 'the log says why';
		for my $n (2, 3) {
			replace($dir, $cert{$n});
			ok eventually(sub { lines($srv, 'certificate.renewed') == $n - 1 }), 'what waits for changes has descriptors';
		}
		$_->abort for @$c;
		is ask($srv, '/a', from => '127.0.0.3'), 'safe', 'a client is served' for 1 .. 3;
		ok eventually(sub { counters($srv)->{'connections.open'} == 1 }), 'no connection is left';
	};
}

# By default clients get a part of the descriptors.
subtest 'clients take what they can get' => sub {
	my ($srv, $dir) = start(qq{ssl.key-process = "enable"\nserver.max-read-idle = 600\n}, nofile => 100);
	$srv->wait_log(qr/ev=listening/);
	my @c = map { $srv->connect(from => '127.0.0.2') } 1 .. 120;
	is ask($srv, '/a', from => '127.0.0.3'), 'safe', 'another one is served' for 1 .. 3;
	for (2, 3) {
		replace($dir, $cert{$_});
		ok eventually(sub { lines($srv, 'certificate.renewed') == $_ - 1 }), 'a certificate is renewed';
	}
	is ask($srv, '/a', from => '127.0.0.3'), 'safe', 'another one is served' for 1 .. 3;
	unlike $srv->log, qr/\Q$none\E|unwatched/, 'nothing was missing';
};

subtest 'no descriptor is left for a challenge' => sub {
	my $challenges = File::Temp->newdir('accel-challenges-XXXXXX', TMPDIR => 1);
	put("$challenges/a.example.$_->[0]", slurp($cert{2}{$_->[1]})) for ['crt.pem', 'pem'], ['key.pem', 'key'];
	my ($srv, $dir) = start(qq{ssl.acme-tls-1 = "$challenges"\n$full}, nofile => 100);
	my $asks = sub { Test::Tls::shaken($srv->port, qw(-bind 127.0.0.3:0 -alpn acme-tls/1 -servername a.example)) };
	my $c = take_all($srv);
	ok !$asks->(), 'it fails';
	like $srv->wait_log(qr/ev=tls\.failed /), qr/ev=tls\.failed .*why="\Q$none\E"/, 'the log says why';
	$_->abort for @$c;
	ok $asks->(), 'with descriptors it works';
};

done_testing;
