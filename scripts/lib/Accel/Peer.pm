package Accel::Peer;
# Other servers, and ours, side by side for tests and benchmarks.
#
#     my $nginx = Accel::Peer->start('nginx', root => $docroot, cpu => 1);
#     print $nginx->url, "\n";                    # http://127.0.0.1:PORT
#     my $before = $nginx->cpu;                   # seconds, user and system, all its processes
#     $nginx->stop;
#
# Kinds: `nginx`, `lighttpd` (1.4), `apache` (2.4, event MPM: one process, 400 threads), `accel` (accel-server), `floor` (t/bench/floor.c),
# `haproxy`, h2o, `command` (the words of `command`, with {port} and {root} replaced), `responder` (t/bench/responder.c), and on a unix socket,
# $peer->socket, stat-accel (fcgi-stat-accel) and `textbook` (t/bench/textbook.c; `mutex` for its -m). Each is configured for speed, one worker, no
# access log, keep-alive without end, on a free port of 127.0.0.1. Started by root, apache serves as www-data: the document root must be open to it.
# `start` returns when the port answers and dies with the server's own words when it does not; Accel::Peer->missing($kind) says what is not
# installed, or nothing.
#
# Options: `root` the document root; `cpu` the core to stay on; `conf` lines added to the configuration; `http` lines for nginx's http block; `name`
# what to call it; `backend` accel's server.network-backend; `aio` nginx's aio threads; `file_cache` 0 for nginx without `open_file_cache`;
# `stat_cache` lighttpd's server.stat-cache-engine; `directio` nginx's `directio` for all files; `workers` processes or threads (1); `read_ahead`,
# `noatime` and `timing` of accel; `accel_tcp` for a stat-accel on 127.0.0.1; `threads` for accel's stat and read pools and for stat-accel;
# `stat_threads` and `read_threads` for one of these pools; `via_stat_accel` makes accel ask a stat-accel of its own first; `file` is a
# configuration of lighttpd to use as it is, with `env`, a hash of variables for it (PORT is added); `proxy` makes it pass requests on, see
# Accel::Peer::Proxy; `cache` makes nginx answer from its cache, see Accel::Peer::Cache; `port`; `program`, another build of this kind; `group`, the
# directory of a cgroup for its processes; `tls`, a hash with `pem` and `key`, the files of a certificate and its key (nginx, lighttpd, h2o, accel); `http2`, by ALPN with `tls`, otherwise with prior knowledge (the same four); `at_end`, code that the keeper runs when all processes have ended.
#
# `module_file` is nginx's module, which `module` switches on: `on`, or `accel` with a stat-accel of its own, whose CPU time counts.
#
# `front` puts a stat-accel of its own before nginx or lighttpd: each request is first asked there (auth_request, an
# authorizer) and served when the file is warm; its CPU time counts. `exempt` is a path, or a list of them, that goes
# past it; `stat_accel_args` are more words for its command line.
#
# A keeper process between caller and server sees the caller's end through a pipe, and ends the server
# and all processes that come from it, so that nothing is left over however the caller dies.
use v5.36;
use Cwd ();
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use List::Util qw(sum0);
use POSIX ();
use Accel::Peer::Cache ();
use Accel::Peer::Conf ();
use Accel::Peer::Proxy ();
use Accel::Util qw(find_program free_port program put slurp);
use Time::HiRes qw(time sleep clock_gettime);

my %program = (
	nginx    => sub { find_program('nginx') },
	lighttpd => sub { find_program('lighttpd') },
	apache   => sub { find_program('apache2') },
	accel    => sub { _built('accel-server') },
	floor    => sub { _built('floor') },
	haproxy  => sub { find_program('haproxy') },
	h2o      => sub { find_program('h2o') },
	command  => sub { $_[0] && find_program($_[0]) },
	responder => sub { _built('responder') },
	'stat-accel' => sub { _built('fcgi-stat-accel') },
	textbook => sub { _built('textbook') },
);
my %conf = (map({ $_ => Accel::Peer::Conf->can($_) } qw(nginx lighttpd apache accel h2o)),
	haproxy => \&Accel::Peer::Proxy::haproxy);
my %argv = (
	nginx    => sub { ('-e', "$_[0]{dir}/error.log", '-p', "$_[0]{dir}", '-c', "$_[0]{dir}/conf") },
	lighttpd => sub { ('-D', '-f', $_[0]{file} // "$_[0]{dir}/conf") },
	apache   => sub { ('-D', 'FOREGROUND', '-f', "$_[0]{dir}/conf") },
	accel    => sub { ('-D', '-f', $_[0]{file} // "$_[0]{dir}/conf") },
	floor    => sub { ('--port', $_[0]{port}, $_[0]{root}) },
	haproxy  => sub { ('-db', '-f', "$_[0]{dir}/conf") },
	h2o      => sub { ('-c', "$_[0]{dir}/conf") },
	command  => sub ($s) { my (undef, @words) = @{ $s->{command} }; map { s/\{(port|root)\}/$s->{$1}/gr } @words },
	responder => sub { ('--port', $_[0]{port}, '--socket', $_[0]->socket) },
	'stat-accel' => sub { ('--listen', $_[0]->address, '-t', $_[0]{threads} // 20, '--root', $_[0]{root},
		$_[0]{auth} ? '--mode=auth' : (), $_[0]{cache} ? Accel::Peer::Cache::args($_[0]) : (), @{ $_[0]{stat_accel_args} // [] }) },
	textbook => sub { ('-s', $_[0]->socket, '-t', $_[0]{threads} // 20, '-r', 131_072, $_[0]{mutex} ? '-m' : ()) },
);

sub _built ($name) {
	my $path = program($name);
	return -x $path ? $path : undef;
}

sub missing ($class, $kind, @command) {
	die "no such kind of server: $kind\n" unless $program{$kind};
	return if $program{$kind}->(@command);
	return "no program \"" . ($command[0] // '') . '"' if $kind eq 'command';
	return $kind =~ /accel|floor|responder/ ? "$kind is not built" : "$kind is not installed";
}

sub start ($class, $kind, %arg) {
	if (my $why = $class->missing($kind, @{ $arg{command} // [] })) { die "$why\n" }
	my $self = bless { name => $kind, %arg, kind => $kind, owner => $$ }, $class;
	$self->{root} = Cwd::abs_path($arg{root} // die "root is missing\n");
	# nginx has no escape for a dollar sign, lighttpd none for a backslash.
	die "$self->{root}: the configuration of $kind cannot name a directory with one of \" \\ \$ or a line break\n"
	    if $conf{$kind} && $self->{root} =~ /["\\\$\x00-\x1f]/;
	$self->{dir} = File::Temp->newdir("$kind-XXXXXX", TMPDIR => 1);
	$self->{port} //= free_port();
	$self->{stat_accel} = $class->start('stat-accel', %arg, name => "stat-accel of $self->{name}",
		via_stat_accel => 0, front => 0, module => undef, auth => $arg{front}, tcp => $arg{accel_tcp}, port => undef)
	    if $arg{via_stat_accel} || $arg{front} || ($arg{module} // '') eq 'accel';
	put("$self->{dir}/conf", $self->configuration) if $conf{$kind} && !$arg{file};
	my @cmd = ($self->{program} // $program{$kind}->(@{ $arg{command} // [] }), $argv{$kind}->($self));
	unshift @cmd, 'env', "PORT=$self->{port}", map { "$_=$arg{env}{$_}" } sort keys %{ $arg{env} } if $arg{env};
	unshift @cmd, 'taskset', '-c', $self->{cpu} if defined $self->{cpu};
	$self->_spawn(@cmd);
	$self->_wait_for_port(time + 20);
	return $self;
}

# A peer that is not started, to see its configuration.
sub sample ($class, $kind, %arg) {
	return bless { name => $kind, port => 8080, dir => '/run/' . $kind, %arg, kind => $kind, owner => $$ }, $class;
}

# The text of its configuration file; for servers without one the words of the command.
sub configuration ($self) {
	my $kind = $self->{kind};
	return $conf{$kind}->($self) . ($self->{conf} // '') if $conf{$kind};
	return join(' ', $self->{command} ? $self->{command}[0] : $kind, $argv{$kind}->($self)) . "\n";
}

sub _spawn ($self, @cmd) {
	pipe my $life, $self->{lifeline} or die "pipe: $!";
	pipe my $told, my $tell or die "pipe: $!";
	defined($self->{keeper} = fork) or die "fork: $!";
	if (!$self->{keeper}) {
		close $self->{lifeline};
		eval { _keep($self, $life, $tell, @cmd) };
		$self->{at_end}->() if $self->{at_end};
		POSIX::_exit(0);
	}
	close $tell;
	chomp($self->{pid} = <$told> // '');
}

# The keeper: starts the server, tells its pid, waits for the caller's end, ends the server.
sub _keep ($self, $life, $tell, @cmd) {
	POSIX::setpgid(0, 0);                   # Ctrl-C is the caller's business
	$SIG{$_} = 'DEFAULT' for qw(INT HUP CHLD);
	$SIG{TERM} = sub { };                   # only ends the wait below
	adopt();
	# Pipes of other peers would keep their servers alive.
	my %mine = map { $_ => 1 } fileno $life, fileno $tell;
	m{(\d+)$} && $1 > 2 && !$mine{$1} && POSIX::close($1) for glob '/proc/self/fd/*';
	my $pid = fork // return;
	if (!$pid) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$self->{dir}/out";
		open STDERR, '>&', \*STDOUT;
		$SIG{TERM} = 'DEFAULT';
		put("$self->{group}/cgroup.procs", $$) if $self->{group};
		{ no warnings; exec @cmd }
		POSIX::_exit(127);
	}
	syswrite $tell, "$pid\n";
	close $tell;
	sysread $life, my $nothing, 1;
	_end($pid);
}

# A server that forks away still belongs to the keeper: Linux gives its processes to the nearest subreaper.
sub adopt () {
	my %prctl = (x86_64 => 157, aarch64 => 167, riscv64 => 167, armv7l => 172, i686 => 172, ppc64le => 171, s390x => 172);
	my $number = $prctl{ (POSIX::uname())[4] } // return;
	syscall $number, 36, 1, 0, 0, 0;        # PR_SET_CHILD_SUBREAPER
}

# TERM for the server, then for processes that outlive it, such as nginx's workers; KILL for all that is left.
sub _end ($pid) {
	kill TERM => $pid;
	my $told;
	for (1 .. 300) {
		return if _all_ended();
		my (undef, @left) = family($$);
		kill TERM => @left if !$told && !grep({ $_ == $pid } @left) && ($told = 1);
		sleep 0.01;
	}
	for (1 .. 300) {
		my (undef, @left) = family($$);
		kill KILL => @left;
		return if _all_ended();
		sleep 0.01;
	}
	waitpid $pid, 0;
}

sub _all_ended () {
	my $ended;
	do { $ended = waitpid -1, POSIX::WNOHANG() } while $ended > 0;
	return $ended < 0;
}

sub _wait_for_port ($self, $deadline) {
	while (time < $deadline) {
		return if $self->{kind} =~ /^(stat-accel|textbook)$/ && !$self->{tcp} ? IO::Socket::UNIX->new(Peer => $self->socket)
		    : IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port});
		last unless $self->alive;
		sleep 0.02;
	}
	my $said = $self->said;
	$self->stop;
	die "$self->{name} does not answer\n$said";
}

# The FastCGI address, as fcgi-stat-accel and accel-server write it.
sub address ($self) {
	return $self->{tcp} ? "127.0.0.1:$self->{port}" : 'unix:' . $self->socket;
}

# All that it wrote: standard output and error, and its error log.
sub said ($self) { return join '', map { slurp("$self->{dir}/$_") } qw(out error.log) }

sub error_log ($self) { return "$self->{dir}/error.log" }
sub stat_accel ($self) { return $self->{stat_accel} }
sub name ($self) { return $self->{name} }
sub kind ($self) { return $self->{kind} }
sub port ($self) { return $self->{port} }
sub pid ($self) { return $self->{pid} }
sub socket ($self) { return "$self->{dir}/socket" }
sub url ($self) { return ($self->{tls} ? 'https' : 'http') . "://127.0.0.1:$self->{port}" }

sub alive ($self) { return slurp("/proc/$self->{pid}/stat") =~ /.*\) [^ZX]/ ? 1 : 0 }

# A process and its descendants.
sub family ($pid) {
	my @all = ($pid);
	for my $p (@all) {
		push @all, map { split ' ', slurp($_) } glob "/proc/$p/task/*/children";
	}
	return @all;
}

sub pids ($self) {
	return (family($self->{pid}), $self->{stat_accel} ? $self->{stat_accel}->pids : ());
}

# CPU seconds, user and system, of all its processes and their threads.
sub cpu ($self) { return sum0(map { process_cpu($_) } $self->pids) }

# CPU seconds of a process, including its threads that have ended; 0 if the process has ended. Each process has a clock that counts
# nanoseconds (clock_getcpuclockid(3) makes its number in this way); /proc/PID/stat counts hundredths of a second, which is all that some
# runs on a slow disk take.
sub process_cpu ($pid) {
	my $seconds = clock_gettime(2 - 8 * ($pid + 1));
	return $seconds > 0 ? $seconds : 0;
}

# User memory in bytes, shared pages counted by their share.
sub pss ($self) {
	return 1024 * sum0(map { slurp("/proc/$_/smaps_rollup") =~ /^Pss:\s+(\d+)/mg } $self->pids);
}

sub stop ($self) {
	my $keeper = delete $self->{keeper} or return;
	close delete $self->{lifeline};
	kill TERM => $keeper;                   # a forked child of the caller may hold the pipe too
	waitpid $keeper, 0;
	delete $self->{stat_accel};
}

sub DESTROY ($self) {
	return unless $self->{owner} == $$;
	local ($?, $@, $!);
	$self->stop;
}

1;
