# Both programs as in a container: a user that has no name, a root file system and /tmp that nobody can write to, no capability,
# system calls that a filter refuses; and a socket on a volume, for a web server that is another user.
use v5.36;
use File::Copy ();
use FindBin ();
use IO::Socket::INET ();
use POSIX ();
use Test::Fcgi qw(put temp_tree eventually);
use Test::Http ();
use Test::More;
use Accel::Peer;
use Test::Util qw(free_port slurp);

plan skip_all => 'only root can make a container' if $> != 0;
plan skip_all => 'no mount namespaces here' if system('unshare -m true 2>/dev/null') != 0;

my ($uid, $gid) = (10_001, 10_101);
my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www bin run);
chown $uid, $gid, "$dir/run";
put("$dir/www/file", 'x' x 1000);
for my $name (qw(fcgi-stat-accel accel-server refuse)) {
	File::Copy::copy(Test::Util::program($name), "$dir/bin/$name") or die "$name: $!";
	chmod 0755, "$dir/bin/$name";
}

# Words before a command: all mounts are read-only but the volume of the socket, then the user, then the filter.
my $script = <<'EOT';
volume=$1; shift
mount --bind "$volume" "$volume"
for at in $(cut -d' ' -f2 /proc/self/mounts); do
	[ "$at" = "$volume" ] || mount -o remount,bind,ro "$at" 2>/dev/null || true
done
if [ -d /dev/shm ]; then mount -t tmpfs -o ro none /dev/shm; fi
for at in / /tmp /dev/shm; do if touch "$at/x" 2>/dev/null; then echo "$at can be written" >&2; exit 99; fi; done
exec "$@"
EOT
sub inside (@refused) {
	return ['unshare', '-m', '--propagation', 'private', 'sh', '-ec', $script, 'sh', "$dir/run", 'setpriv', "--reuid=$uid", "--regid=$gid", '--clear-groups',
		'--bounding-set=-all', '--inh-caps=-all', "$dir/bin/refuse", @refused, '--'];
}

# What the files in examples/container/ start.
my $examples = "$FindBin::Bin/../../examples/container";
my %words = map { $_->[0] => [slurp("$examples/$_->[0]") =~ /^\s+$_->[1]: \[("--listen.*)\]/m ? $1 =~ /"([^"]+)"/g : ()] } ['compose.yaml', 'command'], ['pod.yaml', 'args'];
is_deeply $words{'compose.yaml'}, $words{'pod.yaml'}, 'the examples start it with the same words';

# Workers of a user other than 101 could not connect: the socket is for user and group 101.
my $auth = slurp("$examples/../nginx/auth.conf");
my @other = slurp("$examples/README.md") =~ /^    (\w+ [^\n]*;)$/mg;
is_deeply [map { (split)[0] } @other], [qw(user fastcgi_pass)], 'nginx in its image: its user, and the socket';
like $auth, qr/^\s*@{[(split)[0]]}\s+\S+;$/m, "... $_ replaces a line of auth.conf" for @other;

subtest 'examples/container' => sub {
	my @words = map { s{/run/stat-accel/socket}{$dir/run/socket}r =~ s{/srv/www}{$dir/www}r } @{ $words{'pod.yaml'} };
	my $app = Test::Fcgi->start({ own => 1, socket => "$dir/run/socket", under => inside('io_uring_setup=EPERM'), program => "$dir/bin/fcgi-stat-accel" }, @words);
	is $app->get("$dir/www/file")->{status}, 204, 'it serves';
	is $app->stop, 0, 'it ends with 0';
	my %packages = map { $_ => 1 } slurp("$examples/Containerfile") =~ /\b(lib[\w.-]+)/g;
	SKIP: {
		skip 'other names of packages than those of Debian 12', 1 unless -r '/etc/debian_version' && slurp('/etc/debian_version') =~ /^12/ && !Test::Util::sanitized();
		my @libraries = map { `ldd $dir/bin/$_` =~ m{=> (/\S+)}g } 'fcgi-stat-accel';
		my %needed = map { $_ => 1 } map { qx{dpkg -S "\$(readlink -f $_)" 2>/dev/null} =~ /^(lib[\w.-]+?)(?::\w+)?:/m } @libraries;
		is_deeply [grep { !$packages{$_} && $_ ne 'libc6' } sort keys %needed], [], 'the image has each library';
	}
};

# fcgi-stat-accel in a container whose filter refuses these calls.
sub start ($how, @refused) {
	return Test::Fcgi->start({ own => 1, socket => "$dir/run/socket", under => inside(@refused), program => "$dir/bin/fcgi-stat-accel", %$how },
		'--listen=unix:@SOCKET@', "--root=$dir/www", '--threads=4');
}

# True if this user may connect to the socket.
sub may_connect {
	my ($user, $group) = @_;
	return system('setpriv', "--reuid=$user", "--regid=$group", '--clear-groups', '--', $^X, '-MIO::Socket::UNIX',
		'-e', 'exit !IO::Socket::UNIX->new(Peer => shift)', "$dir/run/socket") == 0;
}

for my $error (qw(ENOSYS EPERM)) {
	subtest "fcgi-stat-accel, a filter that gives $error" => sub {
		my $app = start({}, "landlock_create_ruleset=$error", "io_uring_setup=$error");
		is $app->get("$dir/www/file")->{status}, 200, 'it serves';
		is $app->get('/etc/passwd')->{status}, 403, '... below its root only';
		like slurp("/proc/$app->{pid}/status"), qr/^Uid:\s+$uid\s.*^CapEff:\s+0+$/ms, '... as a user without rights';
		ok eventually(sub { $app->log_text =~ /ev=sandbox\.partial names="this kernel has no Landlock" abi=0 calls=seccomp/ }), 'the log says what is missing';
		ok may_connect($uid, $gid), 'its own user may connect';
		ok may_connect(10_002, $gid), 'another user of its group, too';
		ok !may_connect(10_003, 10_003), 'other users may not';
		is $app->stop, 0, 'it ends with 0';
		ok !-e "$dir/run/socket", '... and its socket is gone';
	};
	subtest "fcgi-stat-accel, a filter that gives $error for openat2" => sub {
		my $app = start({ nowait => 1 }, "openat2=$error");
		ok eventually(sub { defined $app->ended }), 'it ends';
		is $app->ended >> 8, 71, '... with an error of the system';
		like $app->log_text, qr/^fcgi-stat-accel: --root \S+: openat2\(2\) is refused; .* in a container a seccomp filter that allows it$/m, '... and says why';
		unlink "$dir/run/socket";
	};
}

# accel-server, until $code->(port, pid) has returned; its exit status, and what it logged.
sub serve ($code, @refused) {
	my $port = free_port();
	put("$dir/server.conf", qq{server.document-root = "$dir/www"\nserver.bind = "127.0.0.1"\nserver.port = $port\n});
	put("$dir/log", '');
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDERR, '>>', "$dir/log" or POSIX::_exit(126);
		open STDOUT, '>&', \*STDERR;
		exec qw(setpriv --pdeathsig TERM --), @{ inside(@refused) }, "$dir/bin/accel-server", '-D', '-f', "$dir/server.conf" or POSIX::_exit(127);
	}
	$code->($port);
	kill 'TERM', $pid;
	waitpid $pid, 0;
	return ($?, slurp("$dir/log"));
}

sub status_of ($port) {
	my $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or return 0;
	syswrite $sock, Test::Http::request_head('GET', '/file');
	my $bytes = '';
	1 while sysread $sock, $bytes, 65_536, length $bytes;
	return Test::Http::parse($bytes)->{status} // 0;
}

subtest 'accel-server' => sub {
	my ($status, $log) = serve(sub {
		my ($port) = @_;
		ok eventually(sub { status_of($port) == 200 }, 20), 'it serves';
	}, map { "$_=EPERM" } qw(landlock_create_ruleset io_uring_setup));
	is $status, 0, 'it ends with 0' or diag $log;
	like $log, qr/ev=sandbox\.partial/, 'the log says what is missing';
	unlike $log, qr/level=error|level=alert/, '... and nothing else';
};

subtest 'accel-server, a filter that refuses openat2' => sub {
	my ($status, $log) = serve(sub { eventually(sub { slurp("$dir/log") =~ /ev=stopped/ }, 20) }, 'openat2=EPERM');
	isnt $status, 0, 'it does not start';
	like $log, qr/ev=config\.unusable .*openat2\(2\) is refused; .* in a container/, '... and says why';
};

done_testing;
