package Test::Sleeps;
# How long threads sleep where they must not, as the kernel's scheduler saw it.
#
#     my $sleeps = Test::Sleeps->start(@tids);
#     load();
#     my $seen = $sleeps->stop;
#     printf "%.1f ms in %s\n", $seen->{slept_ms}, $seen->{slept_in};     # 48.2 ms in sendfile
#
# Two ways. `trace` is exact: an instance of tracefs of its own records sched_switch and sched_waking, and the system calls of these threads. A sleep is the time
# between the switch away from a thread and its wake-up: in state D, or in state S inside a system call that does not wait for events (FUSE waits in
# state S). A thread that waits for a processor does not sleep. `sampled` reads /proc/PID/task/TID/stat every 2 ms where there is no tracefs: it
# sees state D only.
#
# `stop` returns `how`, `slept_ms` (the longest sleep), `slept_in` (the system call, or "a page fault"), `slept_sum_ms`, `seconds` (of all threads together), `sleeps` (those of 1 ms and more), `call_ms`
# and `call` (the longest system call, with its waits for a processor), `ready_ms` (the longest time that a thread could run and had no processor), and `lost`, events that did not fit.
use v5.36;
use Accel::Namespace ();
use Accel::Util qw(put slurp);
use List::Util qw(min);
use POSIX ();
use Time::HiRes qw(sleep time);

use constant { PREFIX => 'accel-test-', BUFFER_KB => 262_144, SAMPLE_S => 0.002, AT => '/sys/kernel/tracing' };

# Names of system calls of x86_64; others are numbers.
my %CALL = (0 => 'read', 1 => 'write', 2 => 'open', 3 => 'close', 4 => 'stat', 5 => 'fstat', 9 => 'mmap', 10 => 'mprotect', 11 => 'munmap', 12 => 'brk', 16 => 'ioctl', 17 => 'pread64',
	19 => 'readv', 20 => 'writev', 28 => 'madvise', 40 => 'sendfile', 44 => 'sendto', 45 => 'recvfrom', 46 => 'sendmsg', 47 => 'recvmsg', 48 => 'shutdown',
	54 => 'setsockopt', 56 => 'clone', 72 => 'fcntl', 149 => 'mlock', 187 => 'readahead', 202 => 'futex', 209 => 'io_submit', 221 => 'fadvise64', 233 => 'epoll_ctl',
	257 => 'openat', 262 => 'newfstatat', 275 => 'splice', 288 => 'accept4', 295 => 'preadv', 327 => 'preadv2', 332 => 'statx', 437 => 'openat2', 451 => 'cachestat');
# Those that wait for events, or for nothing but time: poll select nanosleep epoll_wait pselect6 ppoll epoll_pwait io_getevents io_pgetevents io_uring_enter epoll_pwait2
my @WAITS = (7, 23, 35, 208, 230, 232, 270, 271, 281, 333, 426, 441);

my $number = 0;

sub start ($class, @tids) {
	my $self = bless { tids => \@tids, owner => $$ }, $class;
	return $self if @tids && (POSIX::uname())[4] eq 'x86_64' && eval { $self->_trace; 1 };
	$self->{why} = $@ =~ s/\s+\z//r;
	$self->_sample if @tids;
	return $self;
}

# ---------------------------------------------------------------- the trace

# Mounted in the mount namespace of this program; its instances are for all.
sub _mounted () {
	return 1 if -d AT . '/instances';
	return Accel::Namespace::entered() && -d AT && system('mount -t tracefs tracefs ' . AT . ' 2>/dev/null') == 0;
}

sub _trace ($self) {
	die "no tracefs\n" if $> != 0 || !_mounted();
	my $instances = AT . '/instances/';
	/-(\d+)-\d+\z/ && !-d "/proc/$1" && rmdir for glob $instances . PREFIX . '*';
	my $at = $instances . PREFIX . "$$-" . $number++;
	mkdir $at or die "$at: $!\n";
	$self->{trace} = $at;
	$self->_keeper($at);
	put("$at/tracing_on", 0);
	put("$at/buffer_size_kb", min(BUFFER_KB / 4, BUFFER_KB / (() = glob "$at/per_cpu/cpu*")));
	put("$at/set_event_pid", join ' ', @{ $self->{tids} });
	put("$at/events/raw_syscalls/filter", join ' && ', map { "id != $_" } @WAITS);
	put("$at/events/$_/enable", 1) for qw(raw_syscalls/sys_enter raw_syscalls/sys_exit sched/sched_switch sched/sched_waking);
	put("$at/tracing_on", 1);
	put("$at/trace_marker", "begin\n");
	$self->{asleep} = { map { my ($nr) = _asleep($_); defined $nr ? ($_ => $nr) : () } @{ $self->{tids} } };
	return;
}

# Instances outlive their makers.  The child ends them when this program ends, however it ends.
sub _keeper ($self, $at) {
	pipe my $life, $self->{lifeline} or die "pipe: $!";
	$self->{keeper} = fork // die "fork: $!";
	return if $self->{keeper};
	close $self->{lifeline};
	@SIG{qw(INT TERM HUP)} = ('IGNORE') x 3;
	sysread $life, my $nothing, 1;
	rmdir $at or sleep(0.2), rmdir $at;
	POSIX::_exit(0);
}

# For a thread that already sleeps where it must not: the number of its system call, -1 in a page fault.
sub _asleep ($tid) {
	# A thread that is just running has no number: "running".
	my ($nr) = slurp("/proc/$tid/syscall") =~ /^(-?\d+)/ or return;
	my ($state) = slurp("/proc/$tid/stat") =~ /.*\) (\S)/ or return;
	return if $state ne 'D' && ($state ne 'S' || grep { $_ == $nr } @WAITS, -1);
	return $nr;
}

# Follows one event of a thread at $t seconds; %$now: what it does.
sub _enter ($now, $t, $nr) { @$now{qw(nr entered)} = ($nr, $t); return }

sub _exit ($seen, $now, $t) {
	my $nr = delete $now->{nr} // return;
	my $ms = 1000 * ($t - $now->{entered});
	@$seen{qw(call_ms call)} = ($ms, $CALL{$nr} // $nr) if $ms > $seen->{call_ms};
	return;
}

sub _leave ($now, $t, $state) {
	$now->{ready} = $t if $state =~ /^R/;
	$now->{away} = $t if $state =~ /^D/ || $state =~ /^S/ && defined $now->{nr};
}

sub _run ($seen, $now, $t) {
	my $ms = 1000 * ($t - (delete $now->{ready} // return));
	$seen->{ready_ms} = $ms if $ms > $seen->{ready_ms};
}

sub _wake ($seen, $now, $t) {
	$now->{ready} //= $t;
	my $since = delete $now->{away} // return;
	my $ms = 1000 * ($t - $since);
	$seen->{slept_sum_ms} += $ms;
	$seen->{sleeps}++ if $ms >= 1;
	return if $ms <= $seen->{slept_ms};
	@$seen{qw(slept_ms slept_in)} = ($ms, defined $now->{nr} ? $CALL{ $now->{nr} } // $now->{nr} : 'a page fault');
	return;
}

sub _parsed ($self, $fh) {
	my %seen = (how => 'trace', slept_ms => 0, slept_in => '', slept_sum_ms => 0, sleeps => 0, call_ms => 0, call => '', ready_ms => 0);
	my %now = map { my $nr = $self->{asleep}{$_}; $_ => defined $nr ? { away => $self->{begin}, $nr >= 0 ? (nr => $nr, entered => $self->{begin}) : () } : {} }
	    @{ $self->{tids} };
	while (<$fh>) {
		my ($tid, $t, $event) = /-(\d+)\s+\[\d+\]\s+\S+\s+([\d.]+): (\w+):/ or next;
		if ($event eq 'sys_enter') { _enter($now{$tid}, $t, $1) if $now{$tid} && /: NR (\d+)/ }
		elsif ($event eq 'sys_exit') { _exit(\%seen, $now{$tid}, $t) if $now{$tid} }
		elsif ($event eq 'sched_switch') {
			my ($from, $state, $to) = / prev_pid=(\d+) .*prev_state=(\S+) .* next_pid=(\d+)/ or next;
			_leave($now{$from}, $t, $state) if $now{$from};
			_run(\%seen, $now{$to}, $t) if $now{$to};
		}
		elsif ($event eq 'sched_waking') { _wake(\%seen, $now{$1}, $t) if / pid=(\d+)/ && $now{$1} }
	}
	# A sleep that still goes on at the end counts until the end.
	for my $now (values %now) {
		_wake(\%seen, $now, $self->{end});
		_exit(\%seen, $now, $self->{end});
	}
	return \%seen;
}

# Marks in the trace show when it began and ended, on the clock of the trace.
sub _traced ($self) {
	my $at = $self->{trace};
	put("$at/trace_marker", "end\n");
	put("$at/tracing_on", 0);
	my $lost = 0;
	$lost += $_ for map { slurp($_) =~ /^overrun: (\d+)/m } glob "$at/per_cpu/cpu*/stats";
	open my $fh, '<', "$at/trace" or die "$at/trace: $!\n";
	while (<$fh>) {
		$self->{$2} = $1 if / ([\d.]+): tracing_mark_write: (begin|end)$/;
	}
	$self->{$_} // die "$at: no mark of the $_\n" for qw(begin end);
	seek $fh, 0, 0;
	my $seen = $self->_parsed($fh);
	close $fh;
	return { %$seen, seconds => ($self->{end} - $self->{begin}) * @{ $self->{tids} }, lost => $lost };
}

# ---------------------------------------------------------------- samples

sub _sample ($self) {
	pipe my $life, $self->{lifeline} or die "pipe: $!";
	pipe $self->{told}, my $tell or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		close $self->{lifeline};
		my %file = map { my ($f) = glob "/proc/[0-9]*/task/$_/stat"; $f ? ($_ => $f) : () } @{ $self->{tids} };
		my (%since, %seen);
		@seen{qw(slept_ms slept_sum_ms sleeps)} = (0, 0, 0);
		my $end = sub ($tid, $t) {
			my $ms = 1000 * ($t - (delete $since{$tid} // return));
			$seen{slept_sum_ms} += $ms;
			$seen{sleeps}++;
			$seen{slept_ms} = $ms if $ms > $seen{slept_ms};
		};
		my $rin = '';
		vec($rin, fileno $life, 1) = 1;
		while (!select my $ready = $rin, undef, undef, SAMPLE_S) {
			for my $tid (keys %file) { slurp($file{$tid}) =~ /.*\) D/ ? ($since{$tid} //= time) : $end->($tid, time) }
		}
		$end->($_, time) for keys %since;
		syswrite $tell, join ' ', @seen{qw(slept_ms slept_sum_ms sleeps)};
		POSIX::_exit(0);
	}
	@$self{qw(sampler begin)} = ($pid, time);
}

sub _sampled ($self) {
	close delete $self->{lifeline};
	sysread $self->{told}, my $said, 200;
	waitpid delete $self->{sampler}, 0;
	my %seen = (how => 'sampled', slept_in => 'state D', call_ms => undef, ready_ms => undef, call => '', lost => 0, seconds => (time - $self->{begin}) * @{ $self->{tids} });
	@seen{qw(slept_ms slept_sum_ms sleeps)} = split ' ', $said // '0 0 0';
	return \%seen;
}

# ---------------------------------------------------------------- the end

# The figures; undef when there were no threads.
sub stop ($self) {
	my $seen = $self->{trace} ? $self->_traced : $self->{sampler} ? $self->_sampled : undef;
	$self->_remove;
	return $seen;
}

sub _remove ($self) {
	return unless delete $self->{trace};
	close delete $self->{lifeline};
	waitpid $self->{keeper}, 0;
}

sub DESTROY ($self) {
	return if $self->{owner} != $$;
	local ($?, $@, $!);
	$self->_remove;
	kill KILL => $self->{sampler} if $self->{sampler};
}

1;
