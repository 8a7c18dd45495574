package Test::Server;
# One accel-server for one test, on a port of its own.
#
#     my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n});
#     $srv->write('hello.txt', "hi\n");
#     like $srv->get('/hello.txt'), qr/^HTTP\S+ 200 .*\r\n\r\nhi\n\z/s, 'a small file';
#
#     my $c = $srv->connect;                  # one connection, many requests
#     $c->send("GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n");
#     is $c->reply->{status}, 200, 'kept alive';
#     ok $c->closed, 'and closed by the server';
#
# This module makes the listening socket, and the server inherits it: no port to choose, nothing to wait for.
# Two temporary directories go with it: `dir` (in the configuration: `@DIR@`), where `write` puts files, and `run` (`@RUN@`) for the configuration, logs and sockets. `@PORT@` is the port.
# `server.errorlog`, `server.bind`, `server.port` and two workers are added unless the configuration names them.
#
# When the object goes, the server gets TERM, then KILL; it must exit with status 0 and must not have
# logged an alert or a sanitizer's report, or the test fails and its log is shown. `unchecked` says that a test expects otherwise.
#
# With TEST_HTTP=2 in the environment `connect`, `request` and what uses them go through t/front: the server gets HTTP/2.
#
# Options of `start`: `conf`; `dir`, an existing document root to use instead; `nofile`, descriptor limit;
# `env`, a hash of variables; `args`, further arguments; `under`, a command that is to start it and becomes it,
# as `[ 'nice' ]`; `program`, another name of the program; `filter`,
# `kill` or `EPERM`, runs it under the system calls that its unit allows (Test::UnitFilter); `unchecked`.
use v5.36;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::INET ();
use POSIX qw(dup dup2 :sys_wait_h);
use Scalar::Util qw(weaken);
use Test::More ();
use Test::Front ();
use Test::Http qw(request_head parse parts unchunk);
use Test::UnitFilter ();
use Test::Util qw(PATIENCE SOON build_dir program eventually put slurp);
use Time::HiRes qw(time);
use Accel::Namespace qw(own_mounts);      # restarts the test in a mount namespace of its own; call it first

my %live;                       # weak: END stops what a test left behind

# The backends of server.network-backend that this program has and that work on this kernel.
sub backends {
	my ($list) = (join '', qx{"@{[ program('accel-server') ]}" -V}) =~ /^Network backends:\n((?: .*\n)+)/m or die "accel-server -V lists no backends\n";
	return $list =~ /^  \+ (\S+)/mg;
}

# ---------------------------------------------------------------- start and stop

sub start ($class, %arg) {
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 511) or die "listen: $!";
	my $self = bless {
		dir => $arg{dir} // File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1),
		run => File::Temp->newdir('accel-run-XXXXXX', TMPDIR => 1),
		port => $sock->sockport, owner => $$, unchecked => $arg{unchecked},
	}, $class;
	put("$self->{run}/server.conf", $self->_conf($arg{conf} // ''));
	-x program('accel-server') or die program('accel-server') . " is missing: run make, or set B\n";
	my @cmd = ($arg{program} // program('accel-server'), '-D', '--until-eof', '-f', "$self->{run}/server.conf", @{ $arg{args} // [] });
	unshift @cmd, @{ $arg{under} // [] }, Test::UnitFilter::prefix('accel-server', $arg{filter} // $ENV{UNIT_FILTER});
	@cmd = ('sh', '-c', 'ulimit -n "$1" && shift && exec "$@"', 'sh', $arg{nofile}, @cmd) if $arg{nofile};

	pipe my $rd, $self->{lifeline} or die "pipe: $!";
	# A signal that comes before the server listens for signals waits until then: the mask is kept by fork and exec.
	my $later = POSIX::SigSet->new($arg{under} ? () : map { POSIX->can("SIG$_")->() } qw(TERM INT QUIT HUP USR1 USR2));
	POSIX::sigprocmask(POSIX::SIG_BLOCK(), $later, my $mask = POSIX::SigSet->new);
	defined($self->{pid} = fork) or die "fork: $!";
	POSIX::sigprocmask(POSIX::SIG_SETMASK(), $mask) if $self->{pid};
	if (!$self->{pid}) {
		close $self->{lifeline};
		open my $err, '>>', "$self->{run}/stderr" or POSIX::_exit(126);
		dup2(fileno $rd, 0);                    # our death is its end of file: no orphans
		dup2(fileno $err, $_) for 1, 2;
		my $high = dup(fileno $sock);           # 3 may be taken by what is moved there
		dup2($high, 3);
		POSIX::close($high) if $high != 3;
		%ENV = (%ENV, LISTEN_FDS => 1, LISTEN_PID => $$, %{ $arg{env} // {} });
		{ no warnings; exec @cmd }
		POSIX::_exit(127);
	}
	weaken($live{ $self->{pid} } = $self);
	$self->{front} = Test::Front->start($self->{port}) if Test::Front::wanted($arg{conf} // '');
	return $self;
}

sub _conf ($self, $conf) {
	my %default = (
		'server.document-root' => '"@DIR@"', 'server.errorlog' => '"@RUN@/error.log"',
		'server.bind' => '"127.0.0.1"', 'server.port' => '@PORT@', 'server.max-worker' => 2,
	);
	$conf = join '', (map { $conf =~ /^\s*\Q$_\E\s*=/m ? () : "$_ = $default{$_}\n" } sort keys %default), $conf;
	my %is = (DIR => $self->{dir}, RUN => $self->{run}, PORT => $self->{port});
	# The server may look for it before the first write() of the test.
	make_path("$self->{dir}/$1") if $conf =~ m{^server\.document-root\s*=\s*"\@DIR\@/(www[^"]*)"}m;
	return $conf =~ s/\@(DIR|RUN|PORT)\@/$is{$1}/gr;
}

sub dir  { return "$_[0]{dir}" }
sub run  { return "$_[0]{run}" }
sub port { return $_[0]{port} }
sub pid  { return $_[0]{pid} }

# Upgrades it: the same program is executed anew.  Needs server.pid-file = "\@RUN\@/pid".  Returns the number of the process that
# served until now, or undef: it still does.
sub upgrade ($self) {
	my $old = $self->{pid};
	$self->signal('USR2');
	my $pid = 0;
	eventually(sub { ($pid) = $self->log('pid') =~ /^(\d+)\n\z/; $pid && $pid != $old }) or return undef;
	# Until then a stop of the old server stops both.
	eventually(sub { $self->log =~ /\bupgraded\b.*\b$pid\b/ }, SOON);
	$self->upgraded_to($pid);
	return $old;
}

# From now on this process is the server.
sub upgraded_to ($self, $pid) {
	delete $live{ $self->{pid} };
	weaken($live{$pid} = $self);
	$self->{pid} = $pid;
	$self->{orphan} = 1;
}

# True if the process does not run, or is a zombie that its parent has not asked for yet.
sub is_gone ($pid) { return slurp("/proc/$pid/stat") !~ /\A\d+ \(.*\) [^ZX]/s }

# The process with this name among the children of the server, and theirs: accel-guardian or accel-helper.
sub process ($self, $name, @of) {
	my @child = map { split ' ', slurp("/proc/$_/task/$_/children") } @of ? @of : $self->{pid};
	my ($found) = grep { slurp("/proc/$_/comm") eq "$name\n" && !is_gone($_) } @child;
	$found //= $self->process($name, @child) if @child;
	return $found // (@of ? undef : $self->_orphan($name));
}

# The children of a guardian that was killed are children of init.
sub _orphan ($self, $name) {
	my ($found) = grep { slurp("/proc/$_/comm") eq "$name\n" && index(slurp("/proc/$_/cmdline"), "\0$self->{run}/server.conf\0") >= 0 && !is_gone($_) }
		map { m{(\d+)$} } glob '/proc/[0-9]*';
	return $found;
}

sub helper ($self) { return $self->process('accel-helper') }

# Kills both at once: a helper that still runs would fork the next guardian.
sub kill_helper_and_guardian ($self) {
	my @both = ($self->helper, $self->process('accel-guardian'));
	kill STOP => $both[0];
	kill KILL => $_ for reverse @both;
	return;
}

sub signal ($self, $sig) { return kill $sig, $self->{pid} }

# Waits for the process to end: its wait status, or undef when it still runs at the deadline.
sub wait_exit ($self, $seconds = undef) {
	return $self->{status} if defined $self->{status};
	my $end = time + ($seconds // PATIENCE);
	return _wait_orphan($self, $seconds) if $self->{orphan};
	while (1) {
		my $got = waitpid $self->{pid}, WNOHANG;
		if ($got == $self->{pid} || $got < 0) {
			delete $live{ $self->{pid} };
			return $self->{status} = $got < 0 ? -1 : $?;
		}
		return undef if time > $end;
		select undef, undef, undef, 0.005;
	}
}

# A process that is nobody's child here: its log has the status.
sub _wait_orphan ($self, $seconds) {
	eventually(sub { is_gone($self->{pid}) }, $seconds // PATIENCE) or return undef;
	delete $live{ $self->{pid} };
	my ($how) = $self->log =~ /.*ev(?:=|":")stopped(?:",")?\s?how(?:=|":")(\w+)/s;
	return $self->{status} = ($how // '') eq 'cleanly' ? 0 : -1;
}

# Sends TERM (or another signal) and waits: (wait status or undef, seconds it took).
sub term ($self, $sig = undef) {
	my $t = time;
	$self->signal($sig // 'TERM') unless defined $self->{status};
	return ($self->wait_exit, time - $t);
}

# Stops it.  Returns what went wrong, or ''.
sub stop ($self) {
	return '' if $self->{stopped}++;
	my ($status) = $self->term;
	if (!defined $status) {
		$self->signal('KILL');
		$self->wait_exit(5);
		return 'did not end after TERM';
	}
	return '' if $self->{unchecked};
	return sprintf 'ended with wait status 0x%x', $status if $status != 0;
	return 'logged an alert' if $self->log =~ /level=alert|"level":"alert"/;
	return 'has a report of a sanitizer' if $self->log =~ /Sanitizer/;
	return '';
}

sub DESTROY ($self) {
	return if $$ != ($self->{owner} // 0) || !$self->{pid};
	local ($?, $!, $@);
	my $wrong = $self->stop or return;
	_complain("accel-server $wrong", $self->log);
}

my $spoiled;

sub _complain ($what, $log) {
	$spoiled = 1;
	my @lines = split /\n/, $log;
	@lines = @lines[-80 .. -1] if @lines > 80;
	print STDERR map { "# $_\n" } "$what; the end of its log:", @lines;
}

END {
	my $status = $?;
	$_->DESTROY for grep { defined } values %live;
	$? = $status || ($spoiled ? 1 : 0);
}

# ---------------------------------------------------------------- files and logs

sub path ($self, $name) { return "$self->{dir}/$name" }

# Writes a file by rename, so that no reader sees a part of it.
sub write ($self, $name, $bytes) {
	my $path = $self->path($name);
	make_path(dirname($path));
	put("$path.new$$", $bytes);
	rename "$path.new$$", $path or die "$path: $!";
	return $path;
}

# A file of zeros that takes no room on the disk.
sub sparse ($self, $name, $bytes) {
	open my $fh, '>', $self->path($name) or die "$name: $!";
	truncate $fh, $bytes or die "$name: $!";
	close $fh;
	return $self->path($name);
}

# Waits until these new files have settled, so that the server gives them strong tags.
sub settle ($self, @name) {
	for my $path (map { $self->path($_) } @name) {
		eventually(sub { time - (Time::HiRes::stat($path))[10] > 0.05 }) or die "$path is of the future\n";
	}
}

sub log ($self, $name = undef) {
	return slurp("$self->{run}/$name") if defined $name;
	return slurp("$self->{run}/error.log") . slurp("$self->{run}/stderr");
}

# A test: the log has it, or will soon.  A thread writes the lines, which may come after the reply.
sub log_has ($self, $re, $what) {
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return Test::More::like($self->wait_log($re), $re, $what);
}

# Waits until the log matches.  Returns it, in any case at the deadline.
sub wait_log ($self, $re, $name = undef) {
	my $log;
	eventually(sub { $log = $self->log($name); $log =~ $re });
	return $log;
}

# Waits for n lines that match.  Returns them, fewer at the deadline.
sub wait_lines ($self, $n, $re, $name = undef) {
	my @line;
	eventually(sub { @line = grep { $_ =~ $re } split /\n/, $self->log($name); @line >= $n });
	return @line;
}

sub cpu ($self) {       # seconds of CPU it has used
	my @f = split ' ', slurp("/proc/$self->{pid}/stat") =~ s/\A.*\)//sr;
	return ($f[11] + $f[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

sub rss ($self) { return Test::Util::rss($self->{pid}) }       # MiB

sub descriptors ($self) {
	opendir my $dh, "/proc/$self->{pid}/fd" or return 0;
	return scalar grep { !/^\./ } readdir $dh;
}

# The block of a configuration that sends URLs to an application: proxy_block('^/app/', "unix:$socket", 'max-pool-size' => 4).
sub proxy_block ($url, $backend, %set) {
	my %all = (protocol => 'fastcgi', backends => qq{( "$backend" )}, 'allow-x-sendfile' => 'enable', %set);
	my @line = map { "\tproxy-core.$_ = " . ($all{$_} =~ /^[0-9(]/ ? $all{$_} : qq{"$all{$_}"}) . "\n" } sort keys %all;
	return join '', qq<\$HTTP["url"] =~ "$url" {\n>, @line, "}\n";
}

# ---------------------------------------------------------------- requests

# http1: without t/front.
sub connect ($self, %opt) {
	my $through = delete $opt{http1} ? undef : $self->{front};
	return Test::Http::Conn->new($through ? $through->port : $self->{port}, %opt);
}

# Sends raw bytes and returns what comes until the server closes.  $srv->{timed_out}: it did not close in time.
sub request ($self, $bytes) {
	my $c = $self->connect;
	$c->send($bytes);
	my $got = $c->rest;
	$self->{timed_out} = $c->{timed_out};
	return $got;
}

sub get  ($self, $path, %header) { return $self->request(request_head('GET', $path, %header)) }
sub head ($self, $path, %header) { return $self->request(request_head('HEAD', $path, %header)) }

# As get(), with the reply taken apart: { status, reason, header => { lower-case => value }, body }.
sub fetch ($self, $path, %header) {
	return parse($self->get($path, %header));
}

# A number of the page /counters, which is status.statistics-url.
sub counter ($self, $name) {
	return $self->fetch('/counters')->{body} =~ /^\Q$name\E: ([0-9]+)$/m ? $1 : die "no counter $name\n";
}

1;
