package Accel::Slowfs;
# A slow disk for one test.
#
#     my ($ok, $why) = Accel::Slowfs->usable;
#     plan skip_all => $why unless $ok;
#
#     my $slow = Accel::Slowfs->start(source => $dir, spindles => 16, lookup_ms => 200, read_ms => 8);
#     open my $fh, '<', $slow->dir . '/file';     # the first time, this takes 200 ms
#     my $n = $slow->stop;                        # { lookups => 1, opens => 1, reads => 0 }
#
# `start` mounts build/bin/slowfs on a directory of its own and returns once it answers. The mount
# goes away with the object, with the process (slowfs ends when its standard input does), and at the
# latest by a lazy unmount; what hangs is let go first. Options: `source`, `spindles`, `lookup_ms`,
# `getattr_ms`, `open_ms`, `read_ms`, `write_ms`, `jitter`, `no_async_dio` (1), `no_open` (1), `flush` (1), `drop_at_open` (1), all but the first with the
# defaults of slowfs; `at`, an empty directory to mount on; `deadline`, seconds to wait for the mount.
#
# Orders:
#
# At any time; each returns when it is in force, and dies with the reason when slowfs refuses. PATTERN is
# a glob against the path below the mount, /a/*.bin; * matches / too; without one, all. The newest
# rule that matches decides. doc/slowfs.md has the details.
#
# hang([PATTERN]), hang_spindle([PATTERN]): Look-ups, getattrs, opens and reads are not answered any more; the second keeps the spindle of each.
# hang_after(OFFSET, [PATTERN]): Only reads at or after OFFSET hang.
# fail(ERRNO, [PATTERN]), fail_after(OFFSET, ERRNO, [PATTERN]): They fail, ERRNO is a name like EIO.
# refuse_direct(BOOL): Whether open with O_DIRECT gives EINVAL.
# forget([PATTERN]): The kernel drops names, attributes and pages: cold again. Not while something hangs.
# go: Answers all that hangs; no rules any more.
# hanging, wait_hanging(N, [SECONDS]): How many requests hang now. The second waits until there are at least N, and returns false when there are
#   not within 10 seconds.
use v5.36;
use Cwd ();
use File::Temp ();
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(time sleep);
use Accel::Mounts ();
use Accel::Util qw(program);

sub binary () { return program('slowfs') }

# (1) or (0, reason).  Tries a mount: it may be refused although /dev/fuse exists.
my @usable;
sub usable ($class) {
	@usable = $class->_try unless @usable;
	return @usable;
}

sub _try ($class) {
	return (0, 'no ' . binary() . ' (make rigs)') unless -x binary();
	return (0, 'no /dev/fuse here') unless -e '/dev/fuse';
	my $dir = File::Temp->newdir;
	my $slow = eval { $class->start(source => "$dir", lookup_ms => 0, read_ms => 0) };
	return (0, "FUSE is not allowed here: " . ($@ =~ s/\s+\z//r)) unless $slow;
	$slow->stop;
	return (1);
}

sub start ($class, %arg) {
	my $source = delete $arg{source} // die "source is missing\n";
	my $deadline = time + (delete $arg{deadline} // 20);
	my $mnt = delete $arg{at} // File::Temp->newdir('slowfs-XXXXXX', TMPDIR => 1);
	my $self = bless { mnt => $mnt, owner => $$ }, $class;
	$self->{run} = File::Temp->newdir('slowfs-XXXXXX', TMPDIR => 1);        # of the socket; the mount would hide it
	my @cmd = (binary(), '--until-eof', '--control', "$self->{run}/control");
	delete $arg{$_} and push @cmd, '--' . tr/_/-/r for qw(no_async_dio no_open flush drop_at_open);
	push @cmd, '--' . tr/_/-/r, $arg{$_} for sort keys %arg;

	pipe my $rd, $self->{lifeline} or die "pipe: $!";
	pipe $self->{out}, my $wr or die "pipe: $!";
	defined($self->{pid} = fork) or die "fork: $!";
	if (!$self->{pid}) {
		close $self->{lifeline};
		POSIX::dup2(fileno $rd, 0);
		POSIX::dup2(fileno $wr, 1);
		POSIX::dup2(fileno $wr, 2);     # why it could not start, for the message below
		{ no warnings; exec @cmd, Cwd::abs_path($source), "$self->{mnt}" }
		POSIX::_exit(127);
	}
	close $wr;
	my $said = $self->_read_until(qr/^ready$/m, $deadline);
	die "slowfs: " . ($said || "not ready in time") . "\n" unless $said =~ /^ready$/m;
	$self->{minor} = $self->mounted =~ s/.*://r;
	return $self;
}

# The kernel's number of this mount, read from a table that does not ask the mount; '' if there is none.
sub mounted ($self) {
	my @mine = grep { $_->{point} eq "$self->{mnt}" } @{ Accel::Mounts::read_table() };
	return @mine ? $mine[-1]{dev} : '';
}

# Reads its output until it matches, ends, or time is over.
sub _read_until ($self, $re, $deadline) {
	my $said = '';
	while ($said !~ $re and (my $left = $deadline - time) > 0) {
		my $rin = '';
		vec($rin, fileno $self->{out}, 1) = 1;
		next unless select $rin, undef, undef, $left;
		last unless sysread $self->{out}, $said, 4096, length $said;
	}
	return $said;
}

sub dir ($self) { return "$self->{mnt}" }
sub pid ($self) { return $self->{pid} }

# Requests that reached the disks so far, as a hash.
sub counts ($self) {
	kill USR1 => $self->{pid};
	return { $self->_read_until(qr/so-far .*\n/, time + 5) =~ /(\w+)=(\d+)/g };
}

# One order, one answer: what follows "ok". Dies after "error: why".
sub order ($self, @words) {
	my $sock = IO::Socket::UNIX->new(Peer => "$self->{run}/control") or die "slowfs: control: $!\n";
	local $SIG{PIPE} = 'IGNORE';
	syswrite $sock, join(' ', grep { defined } @words) . "\n";
	my ($said, $deadline) = ('', time + 30);
	while ($said !~ /\n/ and IO::Select->new($sock)->can_read($deadline - time)) {
		sysread $sock, $said, 4096, length $said or last;
	}
	return $1 if $said =~ /^ok ?(.*)\n\z/;
	die "slowfs: $words[0]: " . ($said =~ s/^error: |\s+\z//gr || 'no answer') . "\n";
}

sub hang ($self, $pattern = undef) { $self->order('hang', $pattern) }
sub hang_spindle ($self, $pattern = undef) { $self->order('hang-spindle', $pattern) }
sub hang_after ($self, $from, $pattern = undef) { $self->order('hang-after', $from, $pattern) }
sub fail ($self, $errno, $pattern = undef) { $self->order('fail', $errno, $pattern) }
sub fail_after ($self, $from, $errno, $pattern = undef) { $self->order('fail-after', $from, $errno, $pattern) }
sub refuse_direct ($self, $on) { $self->order('refuse-direct', $on ? 'on' : 'off') }
sub forget ($self, $pattern = undef) { $self->order('forget', $pattern) }
sub go ($self) { $self->order('go') }

# Counters and what is going on now, as a hash.
sub state ($self) {
	return { $self->order('stat') =~ /(\w+)=(\d+)/g };
}

sub hanging ($self) { return $self->state->{hanging} }

sub wait_hanging ($self, $n, $seconds = 10) {
	my $deadline = time + $seconds;
	while ($self->hanging < $n) {
		return 0 if time > $deadline;
		sleep 0.01;
	}
	return 1;
}

# Unmounts; returns what counts() would have said at the end.
sub stop ($self) {
	my $pid = delete $self->{pid} or return {};
	eval { $self->go };
	close delete $self->{lifeline};
	kill TERM => $pid;              # a forked child may hold the pipe too
	my $said = $self->_read_until(qr/done .*\n/, time + 5);
	$self->_reap($pid, 5) or do { kill KILL => $pid; $self->_reap($pid, 5) };
	$self->_unmount if $self->mounted;
	return { ($said =~ /done (.*)/ ? $1 : '') =~ /(\w+)=(\d+)/g };
}

sub _reap ($self, $pid, $seconds) {
	my $deadline = time + $seconds;
	while (time < $deadline) {
		return 1 if waitpid($pid, POSIX::WNOHANG()) != 0;
		sleep 0.01;
	}
	return 0;
}

# For a slowfs that had to be killed: first the kernel ends all requests that still wait for an answer.
sub _unmount ($self) {
	if (open my $abort, '>', "/sys/fs/fuse/connections/$self->{minor}/abort") {
		print $abort "1\n";
	}
	my @quiet = ('sh', '-c', '"$@" >/dev/null 2>&1', 'sh');
	system(@quiet, 'fusermount3', '-u', '-z', "$self->{mnt}") == 0
	    or system(@quiet, 'umount', '-l', "$self->{mnt}");
}

sub DESTROY ($self) {
	return unless $self->{owner} == $$;     # not in a forked child
	local ($?, $@, $!);
	$self->stop;
}

1;
