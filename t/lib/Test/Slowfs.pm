package Test::Slowfs;

=head1 NAME

Test::Slowfs - a slow disk for one test

=head1 SYNOPSIS

    my ($ok, $why) = Test::Slowfs->usable;
    plan skip_all => $why unless $ok;

    my $slow = Test::Slowfs->start(source => $dir, spindles => 16, lookup_ms => 200, read_ms => 8);
    open my $fh, '<', $slow->dir . '/file';     # the first time, this takes 200 ms
    my $n = $slow->stop;                        # { lookups => 1, opens => 1, reads => 0 }

=head1 DESCRIPTION

C<start> mounts F<build/bin/slowfs> on a directory of its own and returns once it answers. The mount
goes away with the object, with the process (slowfs ends when its standard input does), and at the
latest by a lazy unmount. Options: C<source>, C<spindles>, C<lookup_ms>, C<open_ms>, C<read_ms>,
C<jitter>, all but the first with the defaults of slowfs; C<at>, an empty directory to mount on;
C<deadline>, seconds to wait for the mount.

=cut

use strict;
use warnings;
use Cwd ();
use File::Temp ();
use POSIX ();
use Time::HiRes qw(time sleep);

sub binary { return ($ENV{B} // 'build') . '/bin/slowfs' }

# (1) or (0, reason). Tries a mount: /dev/fuse may be there and the mount refused all the same.
my @usable;
sub usable {
	my ($class) = @_;
	@usable = $class->_try unless @usable;
	return @usable;
}

sub _try {
	my ($class) = @_;
	return (0, 'no ' . binary() . ' (make rigs)') unless -x binary();
	return (0, 'no /dev/fuse here') unless -e '/dev/fuse';
	my $dir = File::Temp->newdir;
	my $slow = eval { $class->start(source => "$dir", lookup_ms => 0, read_ms => 0) };
	return (0, "FUSE is not allowed here: " . ($@ =~ s/\s+\z//r)) unless $slow;
	$slow->stop;
	return (1);
}

sub start {
	my ($class, %arg) = @_;
	my $source = delete $arg{source} // die "source is missing\n";
	my $deadline = time + (delete $arg{deadline} // 20);
	my $mnt = delete $arg{at} // File::Temp->newdir('slowfs-XXXXXX', TMPDIR => 1);
	my $self = bless { mnt => $mnt, owner => $$ }, $class;
	my @cmd = (binary(), '--until-eof');
	push @cmd, '--' . tr/_/-/r, delete $arg{$_} for sort keys %arg;

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
	return $self;
}

# What it printed until it matches, ends, or time is over.
sub _read_until {
	my ($self, $re, $deadline) = @_;
	my $said = '';
	while ($said !~ $re and (my $left = $deadline - time) > 0) {
		my $rin = '';
		vec($rin, fileno $self->{out}, 1) = 1;
		next unless select $rin, undef, undef, $left;
		last unless sysread $self->{out}, $said, 4096, length $said;
	}
	return $said;
}

sub dir { return "$_[0]{mnt}" }
sub pid { return $_[0]{pid} }

# Requests that reached the disks so far, as a hash.
sub counts {
	my ($self) = @_;
	kill USR1 => $self->{pid};
	return { $self->_read_until(qr/so-far .*\n/, time + 5) =~ /(\w+)=(\d+)/g };
}

sub mounted {
	my ($self) = @_;
	open my $fh, '<', '/proc/self/mounts' or die "/proc/self/mounts: $!";
	return scalar grep { (split ' ')[1] eq "$self->{mnt}" } <$fh>;
}

# Unmounts; returns what counts() would have said at the end.
sub stop {
	my ($self) = @_;
	my $pid = delete $self->{pid} or return {};
	close delete $self->{lifeline};
	kill TERM => $pid;              # a forked child may hold the pipe too
	my $said = $self->_read_until(qr/done .*\n/, time + 5);
	$self->_reap($pid, 5) or do { kill KILL => $pid; $self->_reap($pid, 5) };
	$self->_unmount if $self->mounted;
	return { ($said =~ /done (.*)/ ? $1 : '') =~ /(\w+)=(\d+)/g };
}

sub _reap {
	my ($self, $pid, $seconds) = @_;
	my $deadline = time + $seconds;
	while (time < $deadline) {
		return 1 if waitpid($pid, POSIX::WNOHANG()) != 0;
		sleep 0.01;
	}
	return 0;
}

sub _unmount {
	my ($self) = @_;
	my @quiet = ('sh', '-c', '"$@" >/dev/null 2>&1', 'sh');
	system(@quiet, 'fusermount3', '-u', '-z', $self->dir) == 0
	    or system(@quiet, 'umount', '-l', $self->dir);
}

sub DESTROY {
	my ($self) = @_;
	return unless $self->{owner} == $$;     # not in a forked child
	local ($?, $@, $!);
	$self->stop;
}

1;
