package Accel::Graph::Saturation;
# Has the disk no more to give?  Found from the lines themselves, as capacity planners do (Little's law):
#
#     requests/s                        requests/s
#       |        ______  more jobs at     |         /  more jobs at a time
#       |     /          a time bring     |       /    bring more: threads
#       |   /            only longer      |     /      were missing, or
#       | /              waits: disk      |   /        nothing was
#       +------------- jobs at a time     +------------- jobs at a time
#
#   my $found = Accel::Graph::Saturation::of($model);
#   say 'the disk' if ($found->{limit} // '') eq 'disk';
#
# The log is cut into stretches of time. In each, the time that requests spent in the stages `stat` and `read` divided by its length is the number of
# jobs that were at the disk at a time. Where many jobs bring as many requests a second as few, the disk is the limit. A log in which always
# as many were there tells nothing, and `limit` is undef; a second log with another number of threads does (`between`).
use v5.36;

use List::Util qw(min max sum0);

use constant {
	PARTS     => 6,      # stretches of time, at least
	REQUESTS  => 20,     # with disk jobs in a stretch, at least
	WIDER     => 2,      # a stretch is longer than that many times the p90, or what began in it ends elsewhere
	MORE      => 1.5,    # times as many jobs in the upper third as in the lower: fewer tell nothing
	FLAT      => 0.25,   # share of the growth of the jobs that requests/s show: below it is the disk ...
	RISING    => 0.75,   # ... above it is not
	BUSY_TIME => 0.5,    # a second with half as many requests as the mean is none in which the disk was idle
};

my @DISK = qw(stat read);    # stages in which a disk, or a thread at it, works

# { limit => 'disk' | 'threads' | undef, jobs => [fewer, more], rate => [at fewer, at more] }; jobs alone when nothing is known.
sub of ($model) {
	my @parts = sort { $a->{jobs} <=> $b->{jobs} } stretches($model);
	return {} if @parts < PARTS;
	my $third = int(@parts / 3);
	my ($low, $high) = map { mean(@$_) } [@parts[0 .. $third - 1]], [@parts[-$third .. -1]];
	return judged($low, $high);
}

# Two logs, with fewer and more threads.
sub between ($model, $other) {
	my ($low, $high) = sort { $a->{jobs} <=> $b->{jobs} } grep { $_ } map { whole($_) } $model, $other;
	return $high ? judged($low, $high) : {};
}

sub judged ($low, $high) {
	my %found = (jobs => [map { $_->{jobs} } $low, $high], rate => [map { $_->{rate} } $low, $high]);
	return \%found if $low->{jobs} <= 0 || $low->{rate} <= 0 || $high->{jobs} < MORE * $low->{jobs};
	my $share = ($high->{rate} / $low->{rate} - 1) / ($high->{jobs} / $low->{jobs} - 1);
	$found{limit} = $share < FLAT ? 'disk' : $share > RISING ? 'threads' : undef;
	return \%found;
}

sub mean (@parts) {
	return { map { my $key = $_; $key => sum0(map { $_->{$key} } @parts) / @parts } qw(jobs rate) };
}

sub whole ($model) {
	my @bins = @{ $model->{over_time}{bins} // [] };
	return $model->{span} && $model->{span} > 0 ? part($model->{span}, @bins) : undef;
}

# Neighbouring bins together; the first and the last are cut by the ends of the log.
sub stretches ($model) {
	my $over = $model->{over_time} or return;
	my $wide = max($over->{width}, WIDER * ($model->at('total', $model->class)->{p90} // 0) / 1000);
	my %part;
	push @{ $part{ int($_->{at} / $wide) } }, $_ for @{ $over->{bins} };
	my ($first, $last) = (min(keys %part) // return, max(keys %part));
	delete @part{ $first, $last };
	return grep { $_->{requests} >= REQUESTS } map { part($wide, @{ $part{$_} }) } sort { $a <=> $b } keys %part;
}

# jobs: at a time, on average; rate: of requests that were not hot.
sub part ($seconds, @bins) {
	my $busy = sum0(map { my $bin = $_; $bin->{requests} * sum0(map { $bin->{stages}{$_} // 0 } @DISK) / 1000 } @bins);
	my $n    = sum0(map { ($_->{cold} // 0) + ($_->{unknown} // 0) } @bins);
	return { jobs => $busy / $seconds, rate => $n / $seconds, requests => $n };
}

# ---------------------------------------------------------------- lanes

# Lanes of seconds in which the server worked: idle seconds before the load say nothing about the disk.
sub busy_lanes ($model) {
	my @lanes = @{ $model->{lanes} // [] };
	my $over  = $model->{over_time} // return @lanes;
	my $mean  = sum0(map { $_->{requests} } @{ $over->{bins} }) / max($model->{span}, $over->{width});
	my @busy  = grep { requests_in($over, $_->{at} - 1, $_->{at}) >= BUSY_TIME * $mean } @lanes;
	return @busy ? @busy : @lanes;
}

# The requests of the second before a lane: a lane is about the second before it.
sub requests_in ($over, $from, $to) {
	my $width = $over->{width};
	return sum0(map { $_->{requests} * max(0, min($to, $_->{at} + $width) - max($from, $_->{at})) / $width } @{ $over->{bins} }) / ($to - $from);
}

1;
