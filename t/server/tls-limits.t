# TLS when the kernel gives no more: no thread. Handshakes fail at once and the log says why; when there is some again,
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
my $cert = Test::Tls::certificate($keys, 'x');
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
	replace($dir, $cert);
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
	my $user = $> == 0 ? getpwnam('www-data') ? qq{server.username = "www-data"\n} : plan skip_all => 'there is no user www-data' : '';
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

done_testing;
