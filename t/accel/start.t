#!/usr/bin/perl
# fcgi-stat-accel as the posts of 2007 start it, by the real spawn-fcgi: which peers are served at a wildcard address, where the messages
# of a failed start go, and what is answered without --root.

use v5.36;
use Test::More;
use Cwd qw(abs_path);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Socket qw(SOCK_DGRAM);
use Test::Fcgi qw(request put eventually temp_tree);
use Test::Util qw(find_program need_program slurp);

# Port 1029 and /dev/log are in namespaces of this test.
own_namespaces();

my $tree = temp_tree();
my $dir = "$tree";
my $program = abs_path(Test::Fcgi::program());
my $spawn = need_program('spawn-fcgi', 'spawn-fcgi');
need_program('ip', 'iproute2');
my @children;
put("$dir/file", 'x' x 1000);
put("$dir/secret", 'x');
chmod 0600, "$dir/secret";
mkdir "$dir/www";
put("$dir/www/file", 'x');
my $syslog = private_dev();

sub own_namespaces {
	return if $ENV{ACCEL_START_INSIDE};
	plan skip_all => 'needs root and namespaces (unshare -n -m)' if $> != 0 || system('unshare -n -m true 2>/dev/null') != 0;
	local $ENV{ACCEL_START_INSIDE} = 1;
	exec 'unshare', '-n', '-m', '--propagation', 'private', $^X, (map { "-I$_" } @INC), $0, @ARGV or die "unshare: $!";
}

sub sh { my ($command) = @_; system($command) == 0 or die "$command: status $?\n" }

# A /dev with the devices of the system and a /dev/log of this test.  Returns the end that syslogd would have.
sub private_dev {
	my $dev = "$dir/dev";
	sh("ip link set lo up; mkdir $dev; mount -t tmpfs dev $dev; mkdir $dev/pts; ln -s pts/ptmx $dev/ptmx");
	sh("mount -t devpts -o newinstance,ptmxmode=0666 devpts $dev/pts");
	sh("touch $dev/$_; mount --bind /dev/$_ $dev/$_") for grep { -e "/dev/$_" } qw(null zero full random urandom tty);
	# No longer below $dir: the clean-up at the end must not remove a device.
	sh("mount --rbind $dev /dev; umount -l $dev; rmdir $dev");
	my $log = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => '/dev/log') or die "/dev/log: $!";
	chmod 0666, '/dev/log';
	return $log;
}

# Lines of syslog, up to the first that matches.
sub syslogged {
	my ($pattern) = @_;
	my @lines;
	until (@lines && $lines[-1] =~ $pattern) {
		IO::Select->new($syslog)->can_read(Test::Util::PATIENCE) or last;
		$syslog->recv(my $line, 65536);
		push @lines, $line;
	}
	return @lines;
}

# The messages of spawn-fcgi, and its exit status.  The program goes on in the background.
sub spawned ($how, @options) {
	unlink "$dir/pid";
	local $ENV{PHP_FCGI_CHILDREN};
	delete $ENV{PHP_FCGI_CHILDREN};
	my $said = `$spawn -P $dir/pid $how @options 2>&1`;
	my $status = $? >> 8;
	push @children, slurp("$dir/pid") if $status == 0;
	return ($status, $said);
}

# A process whose parent has ended: it has ended when its number is gone.
sub end {
	for my $pid (splice @children) {
		kill 'TERM', $pid;
		eventually(sub { !kill 0, $pid }) or fail "$pid ends after TERM";
	}
}
END { local $?; kill 'KILL', @children if @children }

# Status of the answer about a file, or "closed"; from the network namespace of a process.
sub ask {
	my ($address, $path, $pid) = @_;
	my $code = 'my $s = IO::Socket::IP->new(PeerAddr => $ARGV[0], PeerPort => 1029) or die "$ARGV[0]: $@";'
	    . 'my $c = Test::Fcgi::Conn->new($s); $c->send(request(1, 0, REQUEST_METHOD => "GET", SCRIPT_FILENAME => $ARGV[1]));'
	    . 'my $r = $c->reply; print $r ? $r->{status} : "closed"';
	my @enter = $pid ? ('nsenter', '-t', $pid, '-n') : ();
	open my $out, '-|', @enter, $^X, (map { "-I$_" } @INC), qw(-MIO::Socket::IP -MTest::Fcgi=request -e), $code, $address, $path
	    or die "fork: $!";
	local $/;
	return scalar <$out> // '';
}

subtest 'the command of 2007' => sub {
	my ($status, $said) = spawned('', "-f $program -p 1029 -C 1");
	is $status, 0, 'spawn-fcgi is content' or diag $said;
	my ($pid) = @children;
	is ask('127.0.0.1', "$dir/file"), 200, 'a peer on this host is served';
	is ask('127.0.0.1', "$dir/secret"), 403, 'not about a file that the web server may not read';
	is ask('127.0.0.1', '/etc/shadow'), 403, 'such as /etc/shadow';
	my @stat = grep { slurp($_) =~ /^stat-/ } glob "/proc/$pid/task/*/comm";
	is scalar @stat, 20, 'with 20 threads: -C means processes';
	like slurp("/proc/$pid/status"), qr/^Uid:\t(?!0\t)(\d+)\t\1\t\1\t\1$/m, 'as the user of web servers';
	my @lines = syslogged(qr/ev=root\.none/);
	like $lines[0], qr/^<30>fcgi-stat-accel\[$pid\]: ts=\S+ level=info ev=listen\.everywhere address=0\.0\.0\.0:1029 served="peers on this host/,
	    'syslog says which peers are served';
	like $lines[-1], qr/^<28>.* level=warn ev=root\.none user=www-data answered="every file that this user may read.*--root=DIR/, 'and what is answered';
	end();
};

# Another host: a network namespace behind a cable.
sub neighbour {
	pipe my $up, my $ready or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		close $up;
		POSIX::dup2(fileno $ready, 1);
		exec qw(setpriv --pdeathsig KILL unshare -n sh -c), 'ip link set lo up; echo up; exec sleep 600' or POSIX::_exit(127);
	}
	close $ready;
	readline $up;
	sh("ip link add here type veth peer name there netns $pid");
	sh('ip addr add 10.99.0.1/24 dev here; ip -6 addr add fd99::1/64 dev here nodad; ip link set here up');
	sh("nsenter -t $pid -n sh -c 'ip addr add 10.99.0.2/24 dev there; ip -6 addr add fd99::2/64 dev there nodad; ip link set there up'");
	return $pid;
}

subtest 'other hosts are served if they are meant' => sub {
	my $far = neighbour();
	my @cases = (
		# what, command, environment, answers to peers, the line of the log
		['by default', "-n -f $program -p 1029", {}, { near => 200, far => 'closed' }, qr/served="peers on this host/],
		['--allow-any', "-n -p 1029 -- $program --allow-any", {}, { near => 200, far => 200 }, qr/served=everyone/],
		['listed', "-n -f $program -p 1029", { FCGI_WEB_SERVER_ADDRS => '10.99.0.2' }, { near => 'closed', far => 200 }, qr/served="addresses of FCGI_WEB/],
		['an address of its own', "-n -f $program -a 10.99.0.1 -p 1029", {}, { near => 200, far => 200 }],
		['by its own hand', '--listen 0.0.0.0:1029', {}, { near => 200, far => 'closed' }, qr/served="peers on this host/],
		['on IPv6, too', '--listen [::]:1029', {}, { near => 200, far => 'closed', 'fd99::1' => 1 }, qr/served="peers on this host/],
	);
	for my $case (@cases) {
		my ($what, $command, $env, $served, $line) = @$case;
		my $app = background(($command =~ /^-n/ ? $spawn : $program) . " $command", $env);
		ok eventually(sub { IO::Socket::INET->new(PeerAddr => '10.99.0.1', PeerPort => 1029) }), "$what: it listens";
		is ask('10.99.0.1', "$dir/file"), $served->{near}, "$what: a peer that has the address of this host";
		is ask('10.99.0.1', "$dir/file", $far), $served->{far}, "$what: another host";
		if ($served->{'fd99::1'}) {
			is ask('fd99::1', "$dir/file"), 200, "$what: by IPv6";
			is ask('fd99::1', "$dir/file", $far), 'closed', "$what: another host by IPv6";
		}
		my $log = finish_background($app);
		like $log, $line, "$what: the log says so" if $line;
		unlike $log, qr/listen\.everywhere/, "$what: nothing to say" if !$line;
		like $log, qr/level=warn ev=peer\.refused peer=10\.99\.0\.[12] served="\S.*" change="?\S/, "$what: and who was refused"
		    if grep { $_ eq 'closed' } values %$served;
	}
	kill 'KILL', $far;
	waitpid $far, 0;
};

# A command, with standard error in a file.
sub background {
	my ($command, $env) = @_;
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		$ENV{$_} = $env->{$_} for keys %$env;
		open STDERR, '>', "$dir/stderr" or POSIX::_exit(126);
		exec qw(setpriv --pdeathsig KILL), split / /, $command or POSIX::_exit(127);
	}
	return $pid;
}

sub finish_background ($pid) {
	kill 'TERM', $pid;
	is Test::Fcgi::finish($pid), 0, 'it ends with 0';
	return slurp("$dir/stderr");
}

# spawn-fcgi waits for 100 ms; then it reports success.  A busy machine gets several tries.  If no try was in time there is no status.
sub failed ($fits, $how, @options) {
	my ($line, $status, $said);
	for (1 .. 10) {
		($status, $said) = spawned($how, @options);
		$line = (syslogged($fits))[-1] if $fits;
		end();
		return ($line, $status, $said) if $status != 0;
	}
	return $line;
}

my $slow = 'spawn-fcgi waits for 100 ms, and the program took longer each time';

subtest 'the messages of a failed start' => sub {
	my ($line, $status, $said) = failed(qr/./, '', "-p 1029 -- $program --root $dir/none");
	like $line, qr/\A<27>fcgi-stat-accel\[\d+\]: --root \Q$dir\E\/none: No such file or directory\z/, 'syslog has the message';
	SKIP: {
		skip $slow, 2 unless $status;
		is $status, 78, 'spawn-fcgi has the exit status';
		is $said, "fcgi-stat-accel: --root $dir/none: No such file or directory\nspawn-fcgi: child exited with: 78\n", 'and its standard error has the message, too';
	}
	($line) = failed(qr/./, '', "-p 1029 -- $program --thread=0 --nonsense");
	like $line, qr/\]: .*(?:nonsense|--thread)/, 'a mistake in the command line, too';
	($line, $status, $said) = failed(qr/--log/, '', "-p 1029 -- $program --root $dir/www --log $dir/none/log");
	like $line, qr/\]: --log \Q$dir\E\/none\/log: No such file or directory; make its directory$/, 'a log that cannot be made';
	SKIP: {
		skip $slow, 1 unless $status;
		like $said, qr/\Afcgi-stat-accel: --log \Q$dir\E\/none\/log: No such file.*child exited with: 73$/s, '... is not a silent 73';
	}
	(undef, $said) = spawned('-n', "-p 1029 -- $program --root $dir/www '--log=|cat'");
	is $said, "fcgi-stat-accel: --log |cat: Operation not supported; name a file; no program is started for these lines\n", 'a program in place of a log';
	(undef, $said) = spawned('-n', "-p 1029 -- $program --root $dir/none");
	is $said, "fcgi-stat-accel: --root $dir/none: No such file or directory\n", 'with -n standard error has it';
	ok !IO::Select->new($syslog)->can_read(0), 'and syslog has not';
	rename '/dev/log', '/dev/log.away';
	(undef, $status) = failed(undef, '', "-p 1029 -- $program --root $dir/none");
	rename '/dev/log.away', '/dev/log';
	SKIP: {
		skip $slow, 1 unless $status;
		is $status, 78, 'without syslogd it ends likewise';
	}
};

subtest 'a start that fails on a terminal' => sub {
	need_program('script', 'bsdutils');
	my ($said, $line);
	for (1 .. 10) {
		$said = `script -qefc '$spawn -p 1029 -- $program --root $dir/none' /dev/null </dev/null 2>&1`;
		($line) = syslogged(qr/./);
		last if $said =~ /child exited/;
	}
	like $line, qr/--root \Q$dir\E\/none: No such file/, 'syslog has the message';
	SKIP: {
		skip $slow, 1 if $said =~ /\Aspawn-fcgi: child spawned successfully: PID: \d+\r\n\z/;
		like $said, qr/^fcgi-stat-accel: --root \Q$dir\E\/none: No such file or directory\r\n.*child exited with: 78/ms, 'and so has the terminal';
	}
};

subtest 'a log in a file, and with --root no warning' => sub {
	my $log = "$dir/log";
	my ($status) = spawned('', "-p 1029 -- $program --root $dir/www --log $log");
	is $status, 0, 'it starts';
	my ($pid) = @children;
	is ask('127.0.0.1', "$dir/www/file"), 200, 'and serves';
	is ask('127.0.0.1', "$dir/file"), 403, 'below its root only';
	like slurp("/proc/$pid/status"), qr/^Uid:\t0\t0\t0\t0$/m, 'as the user that started it';
	ok eventually(sub { slurp($log) =~ /ev=listen\.everywhere/ }), 'the log is in its file';
	unlike slurp($log), qr/root\.none/, 'without a warning';
	ok !IO::Select->new($syslog)->can_read(0), 'nothing in syslog';
	end();
};

subtest 'a default user that it cannot become' => sub {
	my ($status, $said) = spawned('-n', "-p 1029 -f 'setpriv --bounding-set=-setuid,-setgid --inh-caps=-setuid,-setgid $program'");
	is $status, 77, 'it does not serve as root';
	like $said, qr/^fcgi-stat-accel: --user www-data: Operation not permitted; it is the default without --root=DIR$/m, 'and says why';
};

done_testing;
