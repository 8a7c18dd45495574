package Test::Thread;
# One thread of a program stands still.
#
#     my $thread = Test::Thread->find($srv->pid, 'worker-2');
#     $thread->stop;
#     ...
#     $thread->go;
#
# A signal stops all threads of a process, ptrace(2) stops one. It needs root, and no other tracer.
use v5.36;
use POSIX ();
use Test::Util qw(slurp);

# Of <sys/ptrace.h> and <sys/wait.h>.
use constant { ATTACH => 16, DETACH => 17, WALL => 0x4000_0000 };
my %call = (x86_64 => { ptrace => 101, wait4 => 61 }, aarch64 => { ptrace => 117, wait4 => 260 });

# The thread of this name; undef: there is none, or it must not be traced.
sub find ($class, $pid, $name) {
	my $number = $call{ (POSIX::uname())[4] };
	my ($tid) = map { m{/(\d+)/comm\z} } grep { slurp($_) eq "$name\n" } glob "/proc/$pid/task/*/comm";
	$! = POSIX::ENOSYS() unless $number;
	return undef unless $number && $tid;
	my $self = bless { tid => $tid, call => $number, stopped => 0 }, $class;
	$self->stop or return undef;
	$self->go;
	return $self;
}

# Returns when the thread is stopped.
sub stop ($self) {
	return 0 if syscall($self->{call}{ptrace}, ATTACH, $self->{tid} + 0, 0, 0) < 0;
	my $status = pack 'i', 0;
	syscall($self->{call}{wait4}, $self->{tid} + 0, $status, WALL, 0) == $self->{tid} or die "wait4: $!";
	return $self->{stopped} = 1;
}

sub go ($self) {
	return unless $self->{stopped};
	syscall($self->{call}{ptrace}, DETACH, $self->{tid} + 0, 0, 0) == 0 or die "ptrace: $!";
	$self->{stopped} = 0;
	return;
}

sub DESTROY ($self) {
	$self->go if $self->{stopped};
}

1;
