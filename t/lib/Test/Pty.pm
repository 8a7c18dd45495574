package Test::Pty;
# A program on a terminal of its own, for tests.
#
#     my $pty = Test::Pty->start([ 'accel-top', $url ], rows => 24, columns => 80, env => { NO_COLOR => 1 });
#     ok $pty->wait_for(qr/requests/), 'it draws';
#     $pty->type('q');
#     is $pty->finish, 0, 'q ends it';
#     ok $pty->is_cooked, 'the terminal is as it was';
#
# The program is the leader of a session, with the terminal as its controlling terminal: keys such as Ctrl-C and Ctrl-Z work. With
# `shell => 1` it is a job of a shell, which Ctrl-Z needs. `bytes` has all that was printed, `screen` what a terminal would show of the last screen.
use v5.36;
use Config;
use POSIX qw(:termios_h :sys_wait_h);
use Test::Util qw(PATIENCE);
use Time::HiRes qw(time);

# The values of Linux on x86, Arm and RISC-V.
use constant { TIOCSPTLCK => 0x40045431, TIOCGPTN => 0x80045430, TIOCSWINSZ => 0x5414, TIOCSCTTY => 0x540e };

sub start ($class, $command, %arg) {
	open my $master, '+<', '/dev/ptmx' or die "/dev/ptmx: $!";
	ioctl $master, TIOCSPTLCK, my $unlocked = pack 'i', 0 or die "TIOCSPTLCK: $!";
	ioctl $master, TIOCGPTN, my $number = pack 'I', 0 or die "TIOCGPTN: $!";
	open my $slave, '+<', '/dev/pts/' . unpack 'I', $number or die "/dev/pts: $!";
	my $self = bless { master => $master, slave => $slave, bytes => '', owner => $$ }, $class;
	$self->resize($arg{rows} // 24, $arg{columns} // 80, 1);
	defined($self->{pid} = fork) or die "fork: $!";
	if (!$self->{pid}) {
		POSIX::setsid();
		ioctl $slave, TIOCSCTTY, 0;
		POSIX::dup2(fileno $slave, $_) for 0 .. 2;
		%ENV = (%ENV, TERM => 'xterm', %{ $arg{env} // {} });
		delete $ENV{NO_COLOR} unless $arg{env} && defined $arg{env}{NO_COLOR};
		exec @$command or POSIX::_exit(127);
	}
	return $self;
}

# The program notices it by WINCH.
sub resize ($self, $rows, $columns, $quiet = 0) {
	@$self{qw(rows columns)} = ($rows, $columns);
	ioctl $self->{slave}, TIOCSWINSZ, my $size = pack 'S4', $rows, $columns, 0, 0 or die "TIOCSWINSZ: $!";
}

sub pid ($self) { return $self->{pid} }
sub bytes ($self) { return $self->{bytes} }
sub forget ($self) { $self->{bytes} = ''; return }
sub type ($self, $keys) { return syswrite $self->{master}, $keys }
sub signal ($self, $name) { return kill $name, $self->{pid} }

sub drain ($self, $seconds) {
	vec(my $bits = '', fileno $self->{master}, 1) = 1;
	return 0 unless select $bits, undef, undef, $seconds;
	return sysread $self->{master}, $self->{bytes}, 65536, length $self->{bytes};
}

# Reads until the whole output matches.  False when patience ends.
sub wait_for ($self, $re, $patience = PATIENCE) {
	my $until = time + $patience;
	while ($self->{bytes} !~ $re) {
		return 0 if time > $until;
		$self->drain(0.1);
	}
	return 1;
}

# The wait status; undef if it does not end.
sub finish ($self, $patience = PATIENCE) {
	my $until = time + $patience;
	until (waitpid($self->{pid}, WNOHANG) == $self->{pid}) {
		return undef if time > $until;
		$self->drain(0.05);
	}
	my $status = $?;
	delete $self->{pid};
	1 while $self->drain(0);
	return $status;
}

# Lines are edited and echoed, as a shell expects.
sub is_cooked ($self) {
	my $t = POSIX::Termios->new;
	$t->getattr(fileno $self->{slave});
	return ($t->getlflag & (ICANON | ECHO)) == (ICANON | ECHO);
}

# The last screen as lines of text: everything after the last "home", without escapes.
sub screen ($self) {
	my ($last) = $self->{bytes} =~ /.*\e\[H(.*)/s or return;
	return map { s/\e\[[\d;?]*[A-Za-z]//gr } split /\r*\n/, $last;
}

sub DESTROY ($self) {
	return if $$ != $self->{owner} || !$self->{pid};
	local ($?, $!, $@);
	kill KILL => $self->{pid};
	waitpid $self->{pid}, 0;
}

1;
