package Accel::Top::Terminal;
# The terminal of accel-top: single keys, the alternate screen, its size; put back at every end.
#
#   begin() --> raw keys, alternate screen --> end()     also by DESTROY, die, TERM, INT, HUP, QUIT; TSTP ends, CONT begins again
use v5.36;

use POSIX       qw(:termios_h :signal_h);
use Time::HiRes qw(time);

use constant { COLUMNS => 80, ROWS => 24, SIZE_MAX => 1000, KEYS_MAX => 256 };

my @ENDS = qw(INT TERM HUP QUIT);

sub new ($class, %arg) {
	my $self = bless { in => \*STDIN, out => \*STDOUT, on => 0, resized => 1, keys => '', owner => $$, %arg }, $class;
	my $t = $self->{saved} = POSIX::Termios->new;
	$t->getattr(fileno $self->{in}) // die "accel-top: the terminal: $!\n";
	my $signal = sub ($name) { $self->{got} //= $name };
	$SIG{$_} = $signal for @ENDS, 'TSTP';
	$SIG{WINCH} = sub ($) { $self->{resized} = 1 };
	$SIG{CONT}  = sub ($) { $self->{resized} = 1 };
	$self->begin;
	return $self;
}

sub begin ($self) {
	my $raw = POSIX::Termios->new;
	$raw->getattr(fileno $self->{in});
	$raw->setlflag($raw->getlflag & ~(ICANON | ECHO));
	$raw->setcc(VMIN, 0);
	$raw->setcc(VTIME, 0);
	$raw->setattr(fileno $self->{in}, TCSANOW);
	$self->put("\e[?1049h\e[?25l\e[H\e[2J");
	@$self{qw(on resized)} = (1, 1);
}

sub end ($self) {
	return unless $self->{on} && $$ == $self->{owner};
	$self->{on} = 0;
	$self->put("\e[0m\e[?25h\e[?1049l");
	$self->{saved}->setattr(fileno $self->{in}, TCSANOW);
}

sub DESTROY ($self) { local ($?, $!, $@); $self->end; return }

# Writes nothing to a terminal that is gone.
sub put ($self, $bytes) {
	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes) {
		my $n = syswrite $self->{out}, $bytes;
		if (defined $n) { substr $bytes, 0, $n, '' }
		elsif (!$!{EINTR}) { $self->{got} //= 'HUP'; return }
	}
	return;
}

# Stops this process as the terminal's stop key does; continues after CONT.
sub stop ($self) {
	$self->end;
	kill STOP => $$;
	$self->begin;
}

# Ends the process as the signal would have done.
sub die_of ($self, $name) {
	$self->end;
	$SIG{$name} = 'DEFAULT';
	kill $name => $$;
}

# (columns, rows), asked again after a change of the window.
sub size ($self) {
	if ($self->{resized}) {
		$self->{resized} = 0;
		open my $stty, '-|', 'stty size 2>/dev/null' or return (COLUMNS, ROWS);
		my ($rows, $columns) = (<$stty> // '') =~ /^(\d+) (\d+)/;
		close $stty;
		@$self{qw(columns rows)} = map { $_->[0] && $_->[0] <= SIZE_MAX ? $_->[0] : $_->[1] } [$columns, COLUMNS], [$rows, ROWS];
	}
	return @$self{qw(columns rows)};
}

# Waits: a key, 'signal NAME', 'resize', or '' when the time has come.
sub key ($self, $until) {
	while (1) {
		if (defined(my $name = delete $self->{got})) { return "signal $name" }
		return 'resize' if $self->{resized};
		return substr $self->{keys}, 0, 1, '' if length $self->{keys};
		my $left = $until - time;
		return '' if $left <= 0;
		vec(my $bits = '', fileno $self->{in}, 1) = 1;
		next if select($bits, undef, undef, $left) <= 0;
		my $n = sysread $self->{in}, my $keys, KEYS_MAX;
		return 'signal HUP' if defined $n && $n == 0 && !-t $self->{in};
		return 'signal HUP' if !defined $n && !$!{EINTR} && !$!{EAGAIN};
		$self->{keys} = $keys =~ s/\e(?:\[[\d;]*[ -~]|O.)//gr if $n;    # not arrow keys and others of several bytes
	}
}

# A whole screen: lines are as wide as the screen at most. Each line is erased just before it is written, so that nothing flickers;
# after a line as wide as the screen, erasing would remove its last character.
sub show ($self, @lines) {
	my (undef, $rows) = $self->size;
	splice @lines, $rows if @lines > $rows;
	$self->put("\e[H" . join("\r\n", map { "\e[K$_" } @lines) . (@lines < $rows ? "\r\n\e[J" : ''));
}

1;
