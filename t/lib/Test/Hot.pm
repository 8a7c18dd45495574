package Test::Hot;
# A client that asks for hot files all the time.
#
#     my $hot = Test::Hot->start($srv, '/hot' => $bytes, '/mnt/hot' => $other);
#     # ... what must not disturb them
#     my $r = $hot->stop;         # { answers => 812, worst_ms => 3.1, wrong => [] }
#
# A process of its own asks for each path in turn, on one connection, about 500 times a second, and compares
# status and body; `start` returns when it has asked for each of them once. `wrong` tells of the first few answers that were not 200 with these bytes. It ends with `stop`, with the
# object, or with the test.
use v5.36;
use POSIX ();
use Time::HiRes qw(time);
use Test::Server;

use constant PACE => 0.002;     # seconds between two questions

sub start ($class, $srv, %want) {
	pipe my $told, my $lifeline or die "pipe: $!";
	pipe my $out, my $in or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		close $_ for $lifeline, $out;
		syswrite $in, join "\n", _ask($srv, $told, $in, %want);
		POSIX::_exit(0);
	}
	close $in;
	readline $out;
	return bless { pid => $pid, lifeline => $lifeline, out => $out, owner => $$ }, $class;
}

# Runs until the pipe ends.  Returns answers, worst time in ms, and errors.
sub _ask ($srv, $told, $in, %want) {
	my ($n, $worst, $c, @wrong) = (0, 0);
	my @path = sort keys %want;
	while (!_ended($told)) {
		my $path = $path[$n % @path];
		my $t = time;
		$c //= $srv->connect;
		$c->send("GET $path HTTP/1.1\r\nHost: x\r\n\r\n");
		my $r = $c->reply // { status => 'no reply', body => '', cut => 1 };
		my $ms = 1000 * (time - $t);
		$n++;
		$worst = $ms if $ms > $worst;
		push @wrong, "$path: $r->{status}, " . length($r->{body}) . sprintf ' bytes, after %.0f ms', $ms
		    if @wrong < 5 && ($r->{status} ne '200' || $r->{body} ne $want{$path});
		syswrite $in, "all are hot\n" if $n == @path;
		undef $c if $r->{cut} || ($r->{header}{connection} // '') eq 'close';
	}
	return ($n, sprintf('%.1f', $worst), @wrong);
}

sub _ended ($told) {
	my $bits = '';
	vec($bits, fileno $told, 1) = 1;
	return select($bits, undef, undef, PACE) > 0;
}

sub stop ($self) {
	close delete $self->{lifeline};
	local $/;
	my ($n, $worst, @wrong) = split /\n/, readline $self->{out};
	waitpid delete $self->{pid}, 0;
	return { answers => $n // 0, worst_ms => $worst, wrong => \@wrong };
}

sub DESTROY ($self) {
	return if $self->{owner} != $$ || !$self->{pid};
	local ($?, $!, $@);
	kill KILL => $self->{pid};
	$self->stop;
}

1;
