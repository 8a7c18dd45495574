package Accel::Tune::Search;
# Finds good settings in a bounded time, and says which of them matter.
#
#     my $search = Accel::Tune::Search->new(
#         factors => [
#             { name => 'stat_threads', values => [1, 2, 4, 8, 16], now => 16, ordered => 1 },
#             { name => 'backend', values => ['adaptive', 'io-uring'], now => 'adaptive' },
#         ],
#         measure => sub ($setting) { return { throughput => 12.5, p99 => 3.1, seconds => 2.2 } },
#         seconds => 300);
#     my $found = $search->run;
#     print "$_->{name}: $_->{chosen}, $_->{verdict}\n" for @{ $found->{factors} };
#
# The search has three parts. `now` is the value that a factor has before.
#
# start: The present setting, the hints of `start`, and settings that change all ordered factors together: all low, middle and
#   high. This finds two bottlenecks of which either alone hides the other.
# factors: One measurement after the other, where most may be gained: a model (Accel::Tune::Model) says so from all measurements so far. Candidates
#   are the settings that differ from the best in one factor, or in two ordered factors by a step. What is clearly worse is never looked at. The part
#   ends when none of them can still be much better.
# check: A race in interleaved rounds (Accel::Tune::Race). New figures only, so that a lucky round of the search counts for nothing: the best
#   setting, the present one, and the best with each changed factor as it was before. A factor whose change brings nothing that is beyond the noise
#   gets its old value. Then the setting with all these old values is measured too: two factors that do the same work would both look needless. It is
#   rejected if it is clearly worse.
#
# The same seed and the same figures give the same result.
use v5.36;
use List::Util qw(first max min);
use Accel::Figures qw(median);
use Accel::Tune::Model ();
use Accel::Tune::Race ();

# Shares of the time at which a part ends. What a part leaves is used by the next.
use constant { START_ENDS => 0.15, FACTORS_END => 0.6, LAST_CALL => 0.8 };
# Rounds of a race at most: one round of the search tells where to look, the check decides.
# The present setting is measured again after this many others, to know the noise.
use constant { CONTROL => 8, RIVALS => 3 };
use constant { CHECK_ROUNDS => 12, CHECK_LEAST => 3 };
# A smaller difference is not a reason to change a setting, or to look further.
use constant { NEAR => 0.05, STEP => 0.01, TRIFLE => 0.03 };
# How many standard errors better than the model expects a setting may be.
use constant HOPE => 1.7;

sub new ($class, %arg) {
	my @factors = @{ delete $arg{factors} };
	for my $f (@factors) {
		die "$f->{name}: no values\n" unless @{ $f->{values} };
		push @{ $f->{values} }, $f->{now} unless grep { $_ eq $f->{now} } @{ $f->{values} };
		@{ $f->{values} } = sort { $a <=> $b } @{ $f->{values} } if $f->{ordered};
	}
	my $start = delete $arg{start} // [];
	my $race = Accel::Tune::Race->new(%arg);
	return bless { factors => \@factors, start => $start, race => $race, part => $arg{part} // sub ($name) { } }, $class;
}

sub race ($self) { return $self->{check} // $self->{race} }

sub stop ($self) { $_->stop for grep { defined } @$self{qw(race check)}; return }

sub factors ($self) { return @{ $self->{factors} } }

sub now ($self) { return { map { $_->{name} => $_->{now} } $self->factors } }

# Settings of a full sweep.
sub all ($self) {
	my @all = ({});
	for my $f ($self->factors) {
		@all = map { my $s = $_; map { { %$s, $f->{name} => $_ } } @{ $f->{values} } } @all;
	}
	return @all;
}

sub run ($self) {
	my $race = $self->{race};
	my $now = $self->now;
	$self->{part}->('start');
	$race->measure($now) or return $self->_result($now);
	my ($first) = $race->run([$now, $self->_starts], until => START_ENDS * $race->{seconds}, rounds => 1);
	my $ahead = $first ? $race->difference($first, $now) : undef;
	return $self->_result($self->_check($self->_climb($ahead && $ahead->{mean} > STEP ? $first : $now)));
}

# A full sweep: every setting this many times, in interleaved rounds.  The best setting is the one with the best mean; of its changes, those
# beyond the noise count.
sub full ($self, $rounds) {
	my $race = $self->{race};
	my @all = $self->all;
	$self->{part}->('full sweep');
	$race->run(\@all, until => $race->{seconds}, rounds => $rounds, keep => \@all);
	my ($best) = $race->ranked($race->settings) or return $self->_result($self->now);
	$_->{seen_with} = $best for $self->factors;
	$self->_learn_failures;
	@$self{qw(best check)} = ($best, $race);
	my @changed = grep { $best->{ $_->{name} } ne $_->{now} } $self->factors;
	return $self->_result($race->stopped ? $self->now : $self->_without_needless($best, \@changed, [map { { %$best, $_->{name} => $_->{now} } } @changed]));
}

# ---------------------------------------------------------------- start

sub _starts ($self) {
	my $now = $self->now;
	my @ordered = grep { $_->{ordered} && @{ $_->{values} } > 1 } $self->factors;
	my @starts = map { $self->_nearest({ %$now, %$_{ grep { exists $now->{$_} } keys %$_ } }) } @{ $self->{start} };
	return @starts if @ordered < 2;
	for my $share (0.15, 0.5, 0.85) {
		push @starts, { %$now, map { $_->{name} => $_->{values}[$share * $#{ $_->{values} } + 0.5] } @ordered };
	}
	return @starts;
}

# A hint may name values that are not among those of the factor.
sub _nearest ($self, $setting) {
	for my $f (grep { $_->{ordered} } $self->factors) {
		my $wanted = $setting->{ $f->{name} };
		($setting->{ $f->{name} }) = sort { abs($a - $wanted) <=> abs($b - $wanted) || $a <=> $b } @{ $f->{values} };
	}
	return $setting;
}

# ---------------------------------------------------------------- factors

# Makes one measurement after the other where the model expects the best score: among the settings that differ from the best in one factor,
# or in two ordered ones by a step. Ends when none of them can still be much better.
sub _climb ($self, $best) {
	my $race = $self->{race};
	my $model = $self->{model} = Accel::Tune::Model->new(factors => $self->{factors});
	$self->{part}->('factors');
	my $steps = 0;
	while ($race->has_time($self->_climb_ends($best))) {
		$self->_fit;
		$best = $self->_best_so_far($best);
		my ($next, $hope) = $self->_most_promising($best);
		last if !$next || $hope < NEAR / 2;
		$race->measure($next) or $self->_learn_failures;
		$race->measure($self->now) if $steps++ % CONTROL == CONTROL / 2 && $race->has_time($self->_climb_ends($best));
	}
	$best = $self->_confirmed($best);
	$_->{seen_with} = $best for $self->factors;
	return $best;
}

# If nothing looks better than the present setting, it is measured once more beside those that come next.
sub _confirmed ($self, $best) {
	my ($race, $now) = ($self->{race}, $self->now);
	if (Accel::Tune::Race::key($best) eq Accel::Tune::Race::key($now)) {
		my @next = grep { Accel::Tune::Race::key($_) ne Accel::Tune::Race::key($now) } $race->ranked($race->settings);
		my @race = ($now, grep { defined } @next[0 .. RIVALS - 1]);
		$race->run(\@race, until => LAST_CALL * $race->{seconds}, rounds => CHECK_LEAST, keep => \@race);
	}
	$self->_fit;
	return $self->_best_so_far($best);
}

# A check needs a measurement of the best setting, of the present one, and of the best without each change. As long as the
# present setting is the best, there is nothing to check.
sub _climb_ends ($self, $best) {
	my $race = $self->{race};
	my $changed = grep { $best->{ $_->{name} } ne $_->{now} } $self->factors;
	return LAST_CALL * $race->{seconds} unless $changed;
	return min(FACTORS_END * $race->{seconds}, $race->{seconds} - (2 + $changed) * $race->cost);
}

sub _fit ($self) {
	my $race = $self->{race};
	return $self->{model}->fit([map { [$_, $race->score($_), scalar $race->runs($_)] } $race->settings], $race->spread);
}

# The best of the measured settings.  The present one stays if the difference is a trifle.
sub _best_so_far ($self, $best) {
	my ($most) = $self->{model}->at($best);
	for my $setting ($self->{race}->settings) {
		my ($mean) = $self->{model}->at($setting);
		($best, $most) = ($setting, $mean) if $mean > $most + STEP;
	}
	return $best;
}

# The setting that may exceed the best by most, and by how much.
sub _most_promising ($self, $best) {
	my ($most) = $self->{model}->at($best);
	my ($next, $hope);
	for my $setting (grep { Accel::Tune::Race::key($_) ne Accel::Tune::Race::key($best) } $self->_around($best)) {
		next if !$self->{race}->works($setting) || grep { exists $_->{refused}{ $setting->{ $_->{name} } } } $self->factors;
		my ($mean, $error) = $self->{model}->at($setting);
		my $above = ($mean + HOPE * $error - $most) / (1 + $self->{race}->runs($setting));      # new ones tell more
		($next, $hope) = ($setting, $above) if !defined $hope || $above > $hope;
	}
	return ($next, $hope);
}

# All settings that differ in one factor, and those that differ by a step in two ordered ones.
sub _around ($self, $best) {
	my @factors = $self->factors;
	my @around = map { my $f = $_; map { { %$best, $f->{name} => $_ } } @{ $f->{values} } } @factors;
	my @ordered = grep { $_->{ordered} } @factors;
	for my $i (0 .. $#ordered) {
		for my $j (0 .. $i - 1) {
			my ($one, $other) = @ordered[$i, $j];
			for my $value (_neighbours($one, $best->{ $one->{name} })) {
				push @around, map { { %$best, $one->{name} => $value, $other->{name} => $_ } } _neighbours($other, $best->{ $other->{name} });
			}
		}
	}
	return @around;
}

sub _neighbours ($f, $value) {
	my @values = @{ $f->{values} };
	my $at = first { $values[$_] eq $value } 0 .. $#values;
	return @values[grep { $_ >= 0 && $_ <= $#values } $at - 1, $at + 1];
}

# A value that failed, and that never worked in any setting, is left out everywhere.
sub _learn_failures ($self) {
	for my $f ($self->factors) {
		my %worked = map { $_->{ $f->{name} } => 1 } $self->{race}->settings;
		for my $failed ($self->{race}->failures) {
			my $value = $failed->{setting}{ $f->{name} };
			$f->{refused}{$value} = $failed->{why} unless $worked{$value};
		}
	}
}

# ---------------------------------------------------------------- check

sub _check ($self, $best) {
	my $now = $self->now;
	my @changed = grep { $best->{ $_->{name} } ne $_->{now} } $self->factors;
	$self->{best} = $best;
	return $now if !@changed || $self->{race}->stopped;
	$self->{part}->('check');
	my $check = $self->{check} = $self->{race}->afresh;
	my @without = map { { %$best, $_->{name} => $_->{now} } } @changed;
	$check->measure($_) for grep { $check->has_time($check->{seconds}) } $best, $now;
	$check->run([$best, $now, @without], until => $check->{seconds}, rounds => CHECK_ROUNDS, keep => [$best, $now, @without],
		settled => sub { return $self->_is_settled($best, $now, @without) });
	return $self->_without_needless($best, \@changed, \@without);
}

# Each difference is either beyond the noise, or too small to matter.
sub _is_settled ($self, $best, @others) {
	return 0 if $self->{check}->runs($best) < CHECK_LEAST;
	return !grep { $_->{low} <= 0 && $_->{high} >= NEAR } grep { defined } map { $self->{check}->difference($best, $_) } @others;
}

sub _without_needless ($self, $best, $changed, $without) {
	my $check = $self->{check};
	my $now = $self->now;
	my $gain = $check->difference($best, $now);
	return $now if !$gain || $gain->{low} <= 0;
	my %effect = map { $changed->[$_]{name} => $check->difference($best, $without->[$_]) } 0 .. $#$changed;
	my @needless = sort { $effect{$a}{mean} <=> $effect{$b}{mean} } grep { $effect{$_} && $effect{$_}{low} <= 0 } keys %effect;
	while (@needless) {
		last if $self->_is_as_good({ %$best, map { $_ => $now->{$_} } @needless }, $best);
		pop @needless;                  # the one that seemed to matter most
	}
	return { %$best, map { $_ => $now->{$_} } @needless };
}

sub _is_as_good ($self, $plain, $best) {
	my $check = $self->{check};
	my $least = max(CHECK_LEAST, scalar $check->runs($best));
	$check->run([$best, $plain], until => $check->{seconds}, rounds => $least, keep => [$best, $plain]);
	my $loss = $check->difference($best, $plain) // return 0;
	return $loss->{low} <= 0 && $loss->{mean} < TRIFLE;
}

# ---------------------------------------------------------------- result

sub _result ($self, $chosen) {
	my $race = $self->race;
	my $now = $self->now;
	return {
		now => $now, chosen => $chosen, best => $self->{best} // $chosen, gain => $race->difference($chosen, $now),
		spread => $race->spread, seconds => $race->now, measurements => $race->measured, interrupted => $race->stopped ? 1 : 0,
		factors => [map { $self->_factor($_, $chosen) } $self->factors],
		candidates => [map { $self->_figures($race, $_) } $race->ranked($race->settings)],
		failed => [$race->failures],
	};
}

# Medians of a setting.
sub _figures ($self, $race, $setting) {
	my @runs = $race->runs($setting);
	return {
		setting => $setting, rounds => scalar @runs, gain => $race->difference($setting, $self->now),
		map { my $k = $_; $k => median(map { $_->{$k} } @runs) } qw(throughput p99),
	};
}

# What became of a factor. Its verdict is
#   only      it has one value
#   changed   the new value is better, beyond the noise
#   needed    the new value is better together with another one only
#   noise     the new value was not better beyond the noise: the present one stays
#   same      no value was better than the present one
#   unknown   it was not measured
sub _factor ($self, $f, $chosen) {
	my ($name, $race) = ($f->{name}, $self->{race});
	my $found = { name => $name, now => $f->{now}, chosen => $chosen->{$name}, refused => $f->{refused} // {}, values => [] };
	my $around = $f->{seen_with} // {};
	for my $value (@{ $f->{values} }) {
		my $setting = { %$around, $name => $value };
		next unless $f->{seen_with} && $race->runs($setting);
		push @{ $found->{values} }, { value => $value, %{ $self->_figures($race, $setting) },
			gain => $race->difference($setting, { %$around, $name => $f->{now} }) };
	}
	$found->{within} = [map { $_->{value} } grep { $_->{gain} && abs $_->{gain}{mean} < NEAR } @{ $found->{values} }];
	# What the best setting loses without the change of this factor.
	my $best = $self->{best};
	$found->{effect} = $self->{check} && $best->{$name} ne $f->{now} ? $self->{check}->difference($best, { %$best, $name => $f->{now} }) : undef;
	$found->{verdict} = $self->_verdict($f, $found);
	return $found;
}

sub _verdict ($self, $f, $found) {
	return 'only' if @{ $f->{values} } < 2;
	if ($found->{chosen} ne $f->{now}) {
		return $found->{effect} && $found->{effect}{low} > 0 ? 'changed' : 'needed';
	}
	return 'noise' if $self->{best} && $self->{best}{ $f->{name} } ne $f->{now};
	return @{ $found->{values} } > 1 ? 'same' : 'unknown';
}

1;
