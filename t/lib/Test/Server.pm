package Test::Server;

=head1 NAME

Test::Server - one accel-server for one test, on a port of its own

=head1 SYNOPSIS

    my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n});
    $srv->write('hello.txt', "hi\n");
    like $srv->get('/hello.txt'), qr/^HTTP\S+ 200 .*\r\n\r\nhi\n\z/s, 'a small file';

    my $c = $srv->connect;                  # one connection, many requests
    $c->send("GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    is $c->reply->{status}, 200, 'kept alive';
    ok $c->closed, 'and closed by the server';

    my $app = Test::Server::Fcgi->start(args => ['--threads', 4]);      # through spawn-fcgi
    # ... proxy-core.backends = ( "unix:@{[ $app->socket ]}" )

=head1 DESCRIPTION

The listening socket is made here and inherited by the server, so there is no port to choose and
nothing to wait for. Two temporary directories go with it: C<dir> (in the configuration: C<@DIR@>), where
C<write> puts files, and C<run> (C<@RUN@>) for the configuration, logs and sockets. C<@PORT@> is the port.
C<server.errorlog>, C<server.bind>, C<server.port> and two workers are added unless the configuration names them.

When the object goes, the server gets TERM, then KILL; it must exit with status 0 and must not have
logged an alert or a sanitizer's report, or the test fails and its log is shown. C<unchecked> says that a test expects otherwise.

Options of C<start>: C<conf>; C<dir>, an existing document root to use instead; C<nofile>, descriptor limit;
C<env>, a hash of variables; C<args>, further arguments; C<under>, a command that is to start it and becomes it,
as C<[ 'nice' ]>; C<unchecked>.

=cut

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::INET ();
use POSIX qw(dup dup2 :sys_wait_h);
use Scalar::Util qw(weaken);
use Time::HiRes qw(time);

use constant PATIENCE => 60;    # seconds until a test gives up; sanitizers are slow
use constant SOON => 10;        # what happens "at once" has happened on a slow machine, too; what waits for a timeout has not

my %live;                       # weak: END stops what a test left behind

# The backends of server.network-backend that this program has and this kernel lets work.
sub backends {
	my ($list) = (join '', qx{"@{[ program('accel-server') ]}" -V}) =~ /^Network backends:\n((?: .*\n)+)/m or die "accel-server -V lists no backends\n";
	return $list =~ /^  \+ (\S+)/mg;
}

# What this test mounts from here on is seen by it alone and ends with it: it starts again in a mount namespace of its
# own.  False where that is not allowed.  To be called first.
sub own_mounts {
	return 1 if delete $ENV{TEST_OWN_MOUNTS};
	return 0 if $> != 0 || system('unshare -m true >/dev/null 2>&1') != 0;
	$ENV{TEST_OWN_MOUNTS} = 1;
	exec 'unshare', '-m', '--propagation', 'private', $^X, (map { "-I$_" } @INC), $0, @ARGV or die "unshare: $!";
}

sub build_dir { return ($ENV{B} // 'build') }
sub program   { my ($name) = @_; return build_dir() . "/bin/$name" }

# ---------------------------------------------------------------- start and stop

sub start {
	my ($class, %arg) = @_;
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 511) or die "listen: $!";
	my $self = bless {
		dir => $arg{dir} // File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1),
		run => File::Temp->newdir('accel-run-XXXXXX', TMPDIR => 1),
		port => $sock->sockport, owner => $$, unchecked => $arg{unchecked},
	}, $class;
	_put("$self->{run}/server.conf", $self->_conf($arg{conf} // ''));
	-x program('accel-server') or die program('accel-server') . " is missing: run make, or set B\n";
	my @cmd = (program('accel-server'), '-D', '--until-eof', '-f', "$self->{run}/server.conf", @{ $arg{args} // [] });
	unshift @cmd, @{ $arg{under} // [] };
	@cmd = ('sh', '-c', 'ulimit -n "$1" && shift && exec "$@"', 'sh', $arg{nofile}, @cmd) if $arg{nofile};

	pipe my $rd, $self->{lifeline} or die "pipe: $!";
	# A signal that comes before the server listens to signals waits for that: the mask goes through fork and exec.
	my $later = POSIX::SigSet->new($arg{under} ? () : map { POSIX->can("SIG$_")->() } qw(TERM INT QUIT HUP USR1));
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
	return $self;
}

sub _conf {
	my ($self, $conf) = @_;
	my %default = (
		'server.document-root' => '"@DIR@"', 'server.errorlog' => '"@RUN@/error.log"',
		'server.bind' => '"127.0.0.1"', 'server.port' => '@PORT@', 'server.max-worker' => 2,
	);
	$conf = join '', (map { $conf =~ /^\s*\Q$_\E\s*=/m ? () : "$_ = $default{$_}\n" } sort keys %default), $conf;
	my %is = (DIR => $self->{dir}, RUN => $self->{run}, PORT => $self->{port});
	# There before the server looks for it, which may be sooner than the test's first write().
	make_path("$self->{dir}/$1") if $conf =~ m{^server\.document-root\s*=\s*"\@DIR\@/(www[^"]*)"}m;
	return $conf =~ s/\@(DIR|RUN|PORT)\@/$is{$1}/gr;
}

sub dir  { return "$_[0]{dir}" }
sub run  { return "$_[0]{run}" }
sub port { return $_[0]{port} }
sub pid  { return $_[0]{pid} }

sub signal { my ($self, $sig) = @_; return kill $sig, $self->{pid} }

# Waits for the process to end: its wait status, or undef when it still runs at the deadline.
sub wait_exit {
	my ($self, $seconds) = @_;
	return $self->{status} if defined $self->{status};
	my $end = time + ($seconds // PATIENCE);
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

# TERM (or another signal) and the wait for it: (wait status or undef, seconds it took).
sub term {
	my ($self, $sig) = @_;
	my $t = time;
	$self->signal($sig // 'TERM') unless defined $self->{status};
	return ($self->wait_exit, time - $t);
}

# What is wrong with how it ended, or ''.
sub stop {
	my ($self) = @_;
	return '' if $self->{stopped}++;
	my ($status) = $self->term;
	if (!defined $status) {
		$self->signal('KILL');
		$self->wait_exit(5);
		return 'did not end after TERM';
	}
	return '' if $self->{unchecked};
	return sprintf 'ended with wait status 0x%x', $status if $status != 0;
	return 'logged an alert' if $self->log =~ /level=alert/;
	return "a sanitizer spoke up" if $self->log =~ /Sanitizer/;
	return '';
}

sub DESTROY {
	my ($self) = @_;
	return if $$ != ($self->{owner} // 0) || !$self->{pid};
	local ($?, $!, $@);
	my $wrong = $self->stop or return;
	_complain("accel-server $wrong", $self->log);
}

my $spoiled;

sub _complain {
	my ($what, $log) = @_;
	$spoiled = 1;
	my @lines = split /\n/, $log;
	@lines = @lines[-80 .. -1] if @lines > 80;
	print STDERR map { "# $_\n" } "$what; the end of its log:", @lines;
	return;
}

END {
	my $status = $?;
	$_->DESTROY for grep { defined } values %live;
	$? = $status || ($spoiled ? 1 : 0);
}

# ---------------------------------------------------------------- files and logs

sub _put {
	my ($path, $bytes) = @_;
	open my $fh, '>:raw', $path or die "$path: $!";
	print $fh $bytes;
	close $fh or die "$path: $!";
}

sub _slurp {
	my ($path) = @_;
	open my $fh, '<:raw', $path or return '';
	local $/;
	return scalar <$fh> // '';
}

sub path { my ($self, $name) = @_; return "$self->{dir}/$name" }

# Put whole under its name, by rename, as a careful publisher does.
sub write {
	my ($self, $name, $bytes) = @_;
	my $path = $self->path($name);
	make_path(dirname($path));
	_put("$path.new$$", $bytes);
	rename "$path.new$$", $path or die "$path: $!";
	return $path;
}

# Until the server will believe these files, which have just been written: then they have strong tags.
sub settle {
	my ($self, @name) = @_;
	for my $path (map { $self->path($_) } @name) {
		eventually(sub { time - (Time::HiRes::stat($path))[10] > 0.05 }) or die "$path is of the future\n";
	}
}

sub log {
	my ($self, $name) = @_;
	return _slurp("$self->{run}/$name") if defined $name;
	return _slurp("$self->{run}/error.log") . _slurp("$self->{run}/stderr");
}

# The log once it matches; what there is of it at the deadline.
sub wait_log {
	my ($self, $re, $name) = @_;
	my $log;
	eventually(sub { $log = $self->log($name); $log =~ $re });
	return $log;
}

# The lines that match, once there are n of them; what there is of them at the deadline.
sub wait_lines {
	my ($self, $n, $re, $name) = @_;
	my @line;
	eventually(sub { @line = grep { $_ =~ $re } split /\n/, $self->log($name); @line >= $n });
	return @line;
}

# Repeats what is to become true; false when it does not.
sub eventually {
	my ($code, $seconds) = @_;
	my $end = time + ($seconds // PATIENCE);
	while (1) {
		my $got = $code->();
		return $got if $got || time > $end;
		select undef, undef, undef, 0.01;
	}
}

sub cpu {       # seconds of CPU it has used
	my ($self) = @_;
	my @f = split ' ', _slurp("/proc/$self->{pid}/stat") =~ s/\A.*\)//sr;
	return ($f[11] + $f[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

sub descriptors {
	my ($self) = @_;
	opendir my $dh, "/proc/$self->{pid}/fd" or return 0;
	return scalar grep { !/^\./ } readdir $dh;
}

# ---------------------------------------------------------------- requests

sub connect {
	my ($self, %opt) = @_;
	return Test::Server::Conn->new($self->{port}, %opt);
}

# Raw bytes in, raw bytes out until the server closes.  $srv->{timed_out} tells that it did not.
sub request {
	my ($self, $bytes) = @_;
	my $c = $self->connect;
	$c->send($bytes);
	my $got = $c->rest;
	$self->{timed_out} = $c->{timed_out};
	return $got;
}

sub _head {
	my ($method, $path, %header) = @_;
	%header = (Host => 'localhost', Connection => 'close', %header);
	return join '', "$method $path HTTP/1.1\r\n", (map { "$_: $header{$_}\r\n" } sort keys %header), "\r\n";
}

sub get  { my ($self, $path, %header) = @_; return $self->request(_head('GET', $path, %header)) }
sub head { my ($self, $path, %header) = @_; return $self->request(_head('HEAD', $path, %header)) }

# The same, taken apart: { status, reason, header => { lower-case => value }, body }.
sub fetch {
	my ($self, $path, %header) = @_;
	return parse($self->get($path, %header));
}

sub parse {
	my ($raw) = @_;
	my ($head, $body) = split /\r\n\r\n/, $raw, 2;
	my ($line, @lines) = split /\r\n/, $head // '';
	my %r = (raw => $raw, head => $head // '', body => $body // '', header => {}, status => 0);
	@r{qw(status reason)} = ($1, $2) if ($line // '') =~ m{^HTTP/1\.1 ([0-9]{3}) (.*)\z};
	for (@lines) {
		my ($name, $value) = /^([^:\s]+): ?(.*)\z/ ? (lc $1, $2) : ('malformed line', $_);
		$r{header}{$name} = exists $r{header}{$name} ? "$r{header}{$name}, $value" : $value;
	}
	$r{body} = unchunk($r{body}) if lc($r{header}{'transfer-encoding'} // '') eq 'chunked';
	return \%r;
}

# [ content type, range, bytes ] of each part of a multipart reply, or undef if it is not well formed.
sub parts {
	my ($r) = @_;
	my ($b) = ($r->{header}{'content-type'} // '') =~ m{\Amultipart/byteranges; ?boundary="?([^"]+)"?\z} or return undef;
	my $in = $r->{body};
	$in =~ s/\A(?:\r\n)?--\Q$b\E\r\n// or return undef;
	$in =~ s/\r\n--\Q$b\E--(?:\r\n)?\z// or return undef;
	my @part;
	for (split /\r\n--\Q$b\E\r\n/, $in, -1) {
		my ($head, $body) = split /\r\n\r\n/, $_, 2;
		my %h = map { /^([^:]+): (.*)/ ? (lc $1, $2) : () } split /\r\n/, $head;
		push @part, [$h{'content-type'}, $h{'content-range'}, $body];
	}
	return \@part;
}

# A whole chunked body, or undef.
sub unchunk {
	my ($in) = @_;
	my $out = '';
	while ($in =~ s/\A([0-9a-fA-F]+)\r\n//) {
		my $n = hex $1;
		return $out if $n == 0;
		return undef if length $in < $n + 2;
		$out .= substr $in, 0, $n, '';
		return undef unless $in =~ s/\A\r\n//;
	}
	return undef;
}

# ---------------------------------------------------------------- one connection

package Test::Server::Conn;

use strict;
use warnings;
use IO::Socket::INET ();
use Socket qw(inet_aton INADDR_LOOPBACK IPPROTO_TCP MSG_NOSIGNAL SOL_SOCKET SO_RCVBUF SO_LINGER TCP_NODELAY pack_sockaddr_in);
use Time::HiRes qw(time);

# rcvbuf: a small receive buffer, so that a client that does not read stops the server soon.  from: the client's address,
# any of 127.0.0.0/8.
sub new {
	my ($class, $port, %opt) = @_;
	my $sock = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!";
	setsockopt $sock, SOL_SOCKET, SO_RCVBUF, $opt{rcvbuf} or die "SO_RCVBUF: $!" if $opt{rcvbuf};
	setsockopt $sock, IPPROTO_TCP, TCP_NODELAY, 1 or die "TCP_NODELAY: $!";
	bind $sock, pack_sockaddr_in(0, inet_aton($opt{from})) or die "bind $opt{from}: $!" if $opt{from};
	CORE::connect($sock, pack_sockaddr_in($port, INADDR_LOOPBACK)) or die "connect: $!";
	$sock->blocking(0);
	return bless { sock => $sock, in => '', eof => 0 }, $class;
}

sub sock { return $_[0]{sock} }

sub _wait {
	my ($self, $write, $end) = @_;
	my $left = $end - time;
	return 0 if $left <= 0;
	my $bits = '';
	vec($bits, fileno $self->{sock}, 1) = 1;
	return select($write ? undef : $bits, $write ? $bits : undef, undef, $left) > 0;
}

# Sends all of it, unless the server closes first; the number of bytes that went out.
sub send {
	my ($self, $bytes) = @_;
	my ($at, $end) = (0, time + Test::Server::PATIENCE);
	while ($at < length $bytes) {
		my $n = CORE::send($self->{sock}, substr($bytes, $at, 65536), MSG_NOSIGNAL);
		if (defined $n) { $at += $n; next }
		last unless $!{EAGAIN} || $!{EINTR};
		last unless $self->_wait(1, $end);
	}
	return $at;
}

# Reads once: true when something came; false at the end of the stream or of patience.
sub _more {
	my ($self, $end) = @_;
	return 0 if $self->{eof};
	while (1) {
		my $n = sysread $self->{sock}, my $piece, 1 << 18;
		if ($n) {
			$self->{in} .= $piece;  # reading behind a long string would copy it each time
			return 1;
		}
		if (defined $n || !($!{EAGAIN} || $!{EINTR})) {
			$self->{reset} = 1 if !defined $n;
			$self->{eof} = 1;
			return 0;
		}
		if (!$self->_wait(0, $end)) {
			$self->{timed_out} = 1;
			return 0;
		}
	}
}

# At least n bytes of what comes, taken away; fewer at the end.
sub take {
	my ($self, $n, $seconds) = @_;
	my $end = time + ($seconds // Test::Server::PATIENCE);
	while (length $self->{in} < $n) { $self->_more($end) or last }
	return substr $self->{in}, 0, $n, '';
}

sub rest {
	my ($self, $seconds) = @_;
	my $end = time + ($seconds // Test::Server::PATIENCE);
	1 while $self->_more($end);
	return substr $self->{in}, 0, length $self->{in}, '';
}

# Exactly n bytes, one in each read; fewer at the end.
sub sip {
	my ($self, $n) = @_;
	my ($got, $end) = (substr($self->{in}, 0, $n, ''), time + Test::Server::PATIENCE);
	while (length $got < $n) {
		my $is = sysread $self->{sock}, $got, 1, length $got;
		next if $is || (!defined $is && $!{EAGAIN} && $self->_wait(0, $end));
		last;
	}
	return $got;
}

# True when the server closes without sending another byte.
sub closed {
	my ($self, $seconds) = @_;
	return 0 if length $self->{in} || $self->_more(time + ($seconds // Test::Server::PATIENCE));
	return $self->{eof};
}

sub finish { my ($self) = @_; shutdown $self->{sock}, 1; return }

# Leaves as a crashed client does: RST, nothing more is read.
sub abort {
	my ($self) = @_;
	setsockopt $self->{sock}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0);
	close $self->{sock};
	return;
}

sub _up_to {
	my ($self, $mark, $end) = @_;
	my $at;
	while (($at = index $self->{in}, $mark) < 0) { $self->_more($end) or return undef }
	return substr $self->{in}, 0, $at + length $mark, '';
}

# One reply, as Test::Server::parse gives it; method HEAD has no body.  undef when none came; {cut} when it
# broke off.
sub reply {
	my ($self, $method) = @_;
	my $end = time + Test::Server::PATIENCE;
	my $head = $self->_up_to("\r\n\r\n", $end) // return undef;
	my $r = Test::Server::parse($head);
	return $r if ($method // '') eq 'HEAD' || $r->{status} < 200 || $r->{status} == 204 || $r->{status} == 304;
	if (defined(my $n = $r->{header}{'content-length'})) {
		$r->{body} = $self->take($n);
		$r->{cut} = length $r->{body} < $n;
	} elsif (lc($r->{header}{'transfer-encoding'} // '') eq 'chunked') {
		my $all = '';
		while (1) {
			my $line = $self->_up_to("\r\n", $end) // return { %$r, cut => 1, body => $all };
			my $n = hex($line =~ s/\r\n//r);
			my $chunk = $self->take($n + 2);
			return { %$r, cut => 1, body => $all . $chunk } if length $chunk < $n + 2;
			last if $n == 0;
			$all .= substr $chunk, 0, $n;
		}
		$r->{body} = $all;
	} else {
		$r->{body} = $self->rest;
	}
	return $r;
}

# ---------------------------------------------------------------- fcgi-stat-accel, as a user starts it

package Test::Server::Fcgi;

use strict;
use warnings;
use File::Temp ();
use IO::Socket::UNIX ();
use POSIX ();
use Time::HiRes qw(time);

# Through spawn-fcgi -n on a unix socket.  A guard process of ours holds it: when we go, in whatever
# way, the guard's pipe ends and it stops the application.
sub start {
	my ($class, %arg) = @_;
	my $self = bless { run => File::Temp->newdir('accel-fcgi-XXXXXX', TMPDIR => 1), owner => $$ }, $class;
	my @cmd = ('spawn-fcgi', '-n', '-s', $self->socket, @{ $arg{spawn_args} // [] }, '--',
		$arg{program} // Test::Server::program('fcgi-stat-accel'), @{ $arg{args} // [] });
	pipe my $rd, $self->{lifeline} or die "pipe: $!";
	pipe my $told, my $tell or die "pipe: $!";
	defined($self->{guard} = fork) or die "fork: $!";
	if (!$self->{guard}) {
		close $self->{lifeline};
		close $told;
		_guard($rd, $tell, "$self->{run}/stderr", $arg{env} // {}, @cmd);
	}
	close $tell;
	chomp($self->{pid} = <$told> // 0);
	my $up = Test::Server::eventually(sub { IO::Socket::UNIX->new(Peer => $self->socket) || !kill 0, $self->{pid} });
	die "fcgi-stat-accel did not start: " . $self->log . "\n" unless ref $up;
	return $self;
}

sub _guard {
	my ($rd, $tell, $err, $env, @cmd) = @_;
	my $app = fork // POSIX::_exit(126);
	if (!$app) {
		open my $fh, '>>', $err or POSIX::_exit(126);
		POSIX::dup2(fileno $fh, $_) for 1, 2;
		%ENV = (%ENV, %$env);
		{ no warnings; exec @cmd }
		POSIX::_exit(127);
	}
	syswrite $tell, "$app\n";
	close $tell;
	$SIG{$_} = 'IGNORE' for qw(INT TERM HUP PIPE);
	$SIG{CHLD} = sub { };                   # ends the wait when the application does
	my $pick = '';
	vec($pick, fileno $rd, 1) = 1;
	my $done;
	while (!($done = waitpid($app, POSIX::WNOHANG()) == $app)) {
		last if select(my $r = $pick, undef, undef, 0.5) > 0;
	}
	my $status = $?;
	if (!$done) {
		kill 'TERM', $app;
		for (1 .. 1000) {
			$done = waitpid($app, POSIX::WNOHANG()) == $app and last;
			select undef, undef, undef, 0.01;
		}
		$status = $?;
		if (!$done) { kill 'KILL', $app; waitpid $app, 0; $status = 9 }
	}
	POSIX::_exit($status & 0x7f ? 128 + ($status & 0x7f) : $status >> 8);
}

sub socket { return "$_[0]{run}/app.sock" }
sub pid    { return $_[0]{pid} }
sub log    { return Test::Server::_slurp("$_[0]{run}/stderr") }

# Exit status of the application after TERM: 0 when all is well, 128 + signal when one killed it.
sub stop {
	my ($self) = @_;
	return $self->{status} if defined $self->{status};
	close $self->{lifeline};
	waitpid $self->{guard}, 0;
	return $self->{status} = $? >> 8;
}

sub DESTROY {
	my ($self) = @_;
	return if $$ != ($self->{owner} // 0) || !$self->{guard} || defined $self->{status};
	local ($?, $!, $@);
	my $status = $self->stop;
	Test::Server::_complain("fcgi-stat-accel ended with $status", $self->log)
	    if $status != 0 || $self->log =~ /level=alert|Sanitizer/;
}

1;
