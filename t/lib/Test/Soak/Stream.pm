package Test::Soak::Stream;
# Clients of one kind that go on for ever, in slices with a report each.
#
#     my $hot = Test::Soak::Stream->new(name => 'hot', seconds => 10, rate => 300, args => [ '-c', 20, '--urls', $list, $url ]);
#     $hot->poll;                 # starts, collects reports, starts again
#     my $sum = $hot->sum;        # { requests, answered, errors => { reset => 0, ... }, status => { 200 => N }, p99 => [ ... ] }
#     $hot->end;
#
# Each slice is a run of accel-load: `rate` requests a second by the clock for `seconds`, or `requests` as fast as they are answered,
# or as many as go into `seconds`. Reports are added up.
use v5.36;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(time);
use Accel::Util qw(program);

sub new ($class, %arg) {
	return bless { seconds => 10, %arg, sum => { slices => 0, requests => 0, answered => 0, unanswered => 0, body_bytes => 0, errors => {}, status => {}, p99 => [] } }, $class;
}

sub sum ($self) { return $self->{sum} }
sub name ($self) { return $self->{name} }

# Begins a slice. The standard input of accel-load is open until the slice shall end: --hold waits for that.
sub begin ($self) {
	pipe my $in, my $lifeline or die "pipe: $!";
	my $pid = open(my $fh, '-|') // die "fork: $!";
	if ($pid == 0) {
		close $lifeline;
		open STDIN, '<&', $in or POSIX::_exit(126);
		exec 'nice', '-n', $self->{nice} // 0, program('accel-load'), '--json', $self->_length, @{ $self->{args} } or POSIX::_exit(127);
	}
	$self->{run} = { pid => $pid, fh => $fh, begun => time, text => '', lifeline => $lifeline };
	return;
}

# With a rate, a number of requests, so that each request of a slice gets its answer.
sub _length ($self) {
	return defined $self->{rate} ? (-r => $self->{rate}, -n => $self->{rate} * $self->{seconds}) : defined $self->{requests} ? (-n => $self->{requests}) : (-d => $self->{seconds});
}

# Starts the next slice when the current one has ended.
sub poll ($self) {
	$self->begin unless $self->{run};
	$self->begin if $self->_read(0);
	return;
}

# True once the slice has ended and is counted.
sub _read ($self, $wait) {
	my $run = $self->{run};
	my $bits = '';
	vec($bits, fileno $run->{fh}, 1) = 1;
	while (select my $ready = $bits, undef, undef, $wait) {
		next if sysread $run->{fh}, $run->{text}, 65_536, length $run->{text};
		close $run->{fh};
		delete $self->{run};
		$self->_add($run);
		return 1;
	}
	return 0;
}

sub _add ($self, $run) {
	my ($line) = $run->{text} =~ /^(\{.*)$/m;
	my $r = eval { JSON::PP::decode_json($line // '') } // die "$self->{name}: accel-load printed no report: " . substr($run->{text}, 0, 500) . "\n";
	my $sum = $self->{sum};
	$sum->{slices}++;
	$sum->{$_} += $r->{$_} for qw(requests answered unanswered body_bytes);
	for my $kind (qw(errors status)) {
		$sum->{$kind}{$_} += $r->{$kind}{$_} for keys %{ $r->{$kind} };
	}
	push @{ $sum->{p99} }, [$run->{begun}, $r->{latency_us}{p99} / 1000];
}

# The running slice ends by itself; waits for it.  Another poll() starts again.
sub end ($self) {
	close $self->{run}{lifeline} if $self->{run};
	$self->_read(0.5) or 1 while $self->{run} && time < $self->{run}{begun} + $self->{seconds} + 60;
	kill KILL => $self->{run}{pid} if $self->{run};
	return $self->{sum};
}

sub DESTROY ($self) {
	local ($?, $@, $!);
	kill KILL => $self->{run}{pid} if $self->{run};
}

1;
