package Accel::Tune::Race;
# Measures settings in turn, round after round, and drops those that are clearly worse.
#
#     my $race = Accel::Tune::Race->new(measure => sub ($setting) { ... }, seconds => 300);
#     my ($best) = $race->run([$default, @others], until => 120, rounds => 4);
#     my $gain = $race->difference($best, $default);      # { mean, low, high }: 0.07 is 7 %
#
# A setting is a hash of names and values. `measure` returns { throughput, p99, seconds }, or { failed => why } for a
# setting that cannot be measured; such a setting is left out from then on. What a measurement yields becomes one number, its score: the
# logarithm of what the objective asks for, so that a difference of 0.05 is 5 %.
#
#     throughput   ln(MB/s)
#     latency      -ln(p99 of the hot file); below 1 ms nothing is gained
#     both         ln(MB/s) - 0.1 x log2(p99): a p99 twice as long counts as much as 10 % of the throughput
#
# One spread is estimated for all settings, from those that were measured more than once. It starts as 5 %, with the weight of two
# measurements. A difference is bounded on each side so that the true one is beyond that bound once in twenty.
#
# The clock is the sum of `seconds` of all measurements, or clock => sub { seconds since the start }.
use v5.36;
use List::Util qw(max min sum0);

use constant {
	PRIOR_SPREAD => 0.05, PRIOR_WEIGHT => 2,        # before anything was measured twice
	EARLIER_WEIGHT => 8,                            # at most, of what a search knows for its check
	ERRORS       => 1.65, LITTLE_KNOWN => 1.5,
	P99_FLOOR    => 1,                              # ms
	P99_WEIGHT   => 0.1,                            # of the throughput, for each doubling of p99
};

our %OBJECTIVE = (
	throughput => sub ($r) { return log $r->{throughput} },
	latency    => sub ($r) { return -log max(P99_FLOOR, $r->{p99}) },
	both       => sub ($r) { return log($r->{throughput}) - P99_WEIGHT * log(max(P99_FLOOR, $r->{p99} // 0)) / log 2 },
);

sub new ($class, %arg) {
	my $self = bless { objective => 'both', seed => 1, seconds => 300, spent => 0, measured => 0, shown => sub { }, %arg, runs => {}, failed => {}, order => [] }, $class;
	die "no objective \"$self->{objective}\"; there are: @{[sort keys %OBJECTIVE]}\n" unless $OBJECTIVE{ $self->{objective} };
	$self->{random} = $self->{seed} * 2_654_435_761 % 2**32;
	return $self;
}

# One text for equal settings.
sub key ($setting) { return join "\0", map { "$_=$setting->{$_}" } sort keys %$setting }

sub now ($self) { return $self->{clock} ? $self->{clock}->() : $self->{spent} }

# Seconds that one measurement may take, to know whether another one ends in time: those of the longest so far, or half more than the mean.
# The first one is left out, because it counts files.
sub cost ($self) {
	return 0 unless $self->{measured};
	my $mean = $self->{spent} / $self->{measured};
	return min($self->{dearest} // $mean, 1.5 * $mean);
}

# False when the next measurement would end too late, and after stop().
sub has_time ($self, $until) { return !$self->{stopped} && $self->now + $self->cost <= $until }

sub stop ($self) { $self->{stopped} = 1; return }

sub stopped ($self) { return $self->{stopped} }

# One measurement; false if the setting does not work.
sub measure ($self, $setting) {
	my $key = key($setting);
	return 0 if $self->{failed}{$key};
	my $result = $self->{measure}->({%$setting});
	return 0 if !$result;                           # it was interrupted: neither a result nor a fault of the setting
	$self->{spent} += $result->{seconds} // 0;
	$self->{dearest} = max($self->{dearest} // 0, $result->{seconds} // 0) if $self->{measured}++;
	push @{ $self->{order} }, $setting unless $self->{runs}{$key} || $result->{failed};
	if (defined $result->{failed}) {
		$self->{failed}{$key} = { setting => {%$setting}, why => $result->{failed} };
	} else {
		push @{ $self->{runs}{$key} }, { %$result, score => $OBJECTIVE{ $self->{objective} }->($result) };
	}
	$self->{shown}->($setting, $result);
	return !defined $result->{failed};
}

sub runs ($self, $setting) { return @{ $self->{runs}{ key($setting) } // [] } }

sub works ($self, $setting) { return !$self->{failed}{ key($setting) } }

sub failures ($self) { return map { $self->{failed}{$_} } sort keys %{ $self->{failed} } }

# All that was measured, in this order.
sub settings ($self) { return @{ $self->{order} } }

# Forgets the figures, and remembers what does not work: for the last check, whose figures decide.
sub afresh ($self) {
	return bless { %$self, earlier => $self->spread, weight => min(EARLIER_WEIGHT, $self->_weight), runs => {}, order => [] }, ref $self;
}

sub measured ($self) { return $self->{measured} }

# ---------------------------------------------------------------- figures

sub mean (@x) { return @x ? sum0(@x) / @x : undef }

sub score ($self, $setting) { return mean(map { $_->{score} } $self->runs($setting)) }

# The standard deviation of one measurement.
sub spread ($self) {
	my $squares = ($self->{weight} // PRIOR_WEIGHT) * ($self->{earlier} // PRIOR_SPREAD)**2;
	for my $key (sort keys %{ $self->{runs} }) {            # sums do not depend on the order of a hash
		my $runs = $self->{runs}{$key};
		my $mean = mean(map { $_->{score} } @$runs);
		$squares += sum0(map { ($_->{score} - $mean)**2 } @$runs);
	}
	return sqrt($squares / $self->_weight);
}

# How many measurements the spread is estimated from; those before this race count too.
sub _weight ($self) { return ($self->{weight} // PRIOR_WEIGHT) + sum0(map { @$_ - 1 } values %{ $self->{runs} }) }

# Standard errors on each side of a difference: about Student's t for once in twenty. More while the spread is not yet well known.
sub _errors ($self) { return ERRORS * (1 + LITTLE_KNOWN / $self->_weight) }

# How much better the first one is: { mean, low, high }, or undef as long as one of them has no figures.
sub difference ($self, $one, $other) {
	my @n = map { scalar $self->runs($_) } $one, $other;
	return undef unless $n[0] && $n[1];
	my $mean = $self->score($one) - $self->score($other);
	my $error = key($one) eq key($other) ? 0 : $self->_errors * $self->spread * sqrt(1 / $n[0] + 1 / $n[1]);
	return { mean => $mean, low => $mean - $error, high => $mean + $error };
}

# The best first.
sub ranked ($self, @settings) {
	return sort { $self->score($b) <=> $self->score($a) } grep { scalar $self->runs($_) } @settings;
}

# ---------------------------------------------------------------- a race

# By the numbers of a small generator: the same seed gives the same order on each machine.
sub shuffled ($self, @list) {
	for my $i (reverse 1 .. $#list) {
		$self->{random} = ($self->{random} * 1_664_525 + 1_013_904_223) % 2**32;
		my $j = int $self->{random} / 2**32 * ($i + 1);
		@list[$i, $j] = @list[$j, $i];
	}
	return @list;
}

sub unique (@settings) {
	my %seen;
	return grep { !$seen{ key($_) }++ } @settings;
}

# Measures the settings in rounds, each round in another order, and returns those that are left, the best first. Options:
#   until    the time at which it ends
#   rounds   at most this many
#   keep     settings that are never dropped
#   settled  called after each round; true ends the race
sub run ($self, $settings, %arg) {
	my @alive = grep { $self->works($_) } unique(@$settings);
	my %keep = map { key($_) => 1 } @{ $arg{keep} // [] };
	for my $round (1 .. $arg{rounds}) {
		last unless $self->_round($round, $arg{until}, \@alive);
		@alive = grep { $self->works($_) } @alive;
		my @ranked = $self->ranked(@alive);
		last unless @ranked;
		@alive = grep { $keep{ key($_) } || ($self->difference($ranked[0], $_) // { low => 0 })->{low} <= 0 } @ranked;
		last if @alive < 2 || $arg{settled} && $arg{settled}->(@alive);
	}
	return $self->ranked(@alive);
}

# Earlier measurements count as the first round.  False when time is over.
sub _round ($self, $round, $until, $alive) {
	for my $setting ($self->shuffled(@$alive)) {
		next if $self->runs($setting) >= $round;
		return 0 unless $self->has_time($until);
		$self->measure($setting);
	}
	return 1;
}

1;
