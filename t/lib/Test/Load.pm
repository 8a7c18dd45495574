package Test::Load;
# Clients that ask again and again, a connection for each request.
#
#     my $load = Test::Load->start($srv, clients => 4, path => '/a', want => 'A');
#     # ... reload, rotate ...
#     my ($asked, $wrong) = $load->stop;
#     is "@$wrong", '', "$asked requests, each answered in full";
#
# Each client is a process. The n-th request of client c has the query `c.n`, so that logs can be compared with what was asked.
use v5.36;
use POSIX ();

sub start ($class, $srv, %arg) {
	my $self = bless { owner => $$ }, $class;
	pipe my $stop, $self->{stop} or die "pipe: $!";
	for my $c (1 .. $arg{clients} // 4) {
		pipe my $rd, my $wr or die "pipe: $!";
		my $pid = fork // die "fork: $!";
		if (!$pid) {
			close $_ for $self->{stop}, $srv->{lifeline};   # whose end of file others wait for
			_client($srv, $c, $wr, $stop, %arg);
		}
		close $wr;
		push @{ $self->{clients} }, [$pid, $rd];
	}
	return $self;
}

sub _client ($srv, $c, $wr, $stop, %arg) {
	my ($n, $mask, @wrong) = (0, '');
	vec($mask, fileno $stop, 1) = 1;
	until (select(my $r = $mask, undef, undef, $arg{pause} // 0.001)) {
		my $got = eval { $srv->fetch("$arg{path}?$c.$n") } // { status => 0, body => $@ };
		$n++;
		push @wrong, "$c.$n: $got->{status} $got->{body}" =~ s/\s+/ /gr if $got->{status} != 200 || $got->{body} ne $arg{want};
		last if @wrong > 5;
	}
	print {$wr} join "\n", $n, @wrong;
	close $wr;
	POSIX::_exit(0);
}

# How many requests there were, and those that went wrong.
sub stop ($self) {
	my ($asked, @wrong) = (0);
	close delete $self->{stop} if $self->{stop};
	for my $c (splice @{ $self->{clients} }) {
		my ($n, @w) = split /\n/, do { local $/; readline($c->[1]) } // '';
		$asked += $n // 0;
		push @wrong, defined $n ? @w : 'a client died';
		waitpid $c->[0], 0;
	}
	return ($asked, \@wrong);
}

sub DESTROY ($self) {
	return if $$ != $self->{owner};
	local ($?, $!, $@);
	$self->stop;
}

1;
