package Accel::Tune::Report;
# The output of accel-tune: the plan, the lines to paste, the evidence.
#
#     print Accel::Tune::Report::plan($plan);
#     print Accel::Tune::Report::text($plan, $found);
#     print Accel::Tune::Report::json($plan, $found);
#
# The plan is a hash: `what` is measured, `where` the lines belong, `root`, `files`, `bytes`, `hot`, `objective`, `time`, `seconds`, `combinations`,
# `factors`, `name_of` and `lines` (functions), `warnings`. What was found is the result of Accel::Tune::Search.
#
# Text from outside (names of files, words of a server) is printed without control characters.
use v5.36;
use JSON::PP   ();
use List::Util qw(max min);

use constant { MB => 1e6, EVIDENCE_MAX => 12, FULL_ROUNDS => 3 };

sub clean ($text) { return $text =~ s/([\x00-\x1f\x7f])/sprintf '\\x%02x', ord $1/ger }

sub duration ($seconds) {
	return sprintf '%.0f s', $seconds if $seconds < 100;
	return sprintf '%d min %02d s', $seconds / 60, $seconds % 60 if $seconds < 6000;
	return sprintf '%.1f h', $seconds / 3600;
}

sub percent ($score) { return sprintf '%+.0f %%', 100 * (exp($score) - 1) }

# "+12 % (9 to 15 %)"
sub gain ($g) {
	my ($low, $high) = map { sprintf '%.0f', 100 * (exp($g->{$_}) - 1) } qw(low high);
	return percent($g->{mean}) . " ($low to $high %)";
}

sub plan ($plan) {
	my @rows = (
		['measures', $plan->{what}],
		['files', sprintf '%d%s, %.0f MB below %s', $plan->{files}, $plan->{partly} ? ' of more' : '', $plan->{bytes} / MB, clean($plan->{root})],
		['hot file', clean($plan->{hot})],
		(map { ['sweeps', $plan->{name_of}->($_->{name}) . ': ' . join(', ', @{ $_->{values} }) . " (now $_->{now})"] } grep { @{ $_->{values} } > 1 } @{ $plan->{factors} }),
		['objective', $plan->{objective}],
		['time', $plan->{full}
			? sprintf('%s for all %d combinations, %d times %s s each', duration($plan->{time}), $plan->{combinations}, $plan->{full}, $plan->{seconds})
			: sprintf('%s at most; all %d combinations, %d times %s s each, would take %s', duration($plan->{time}), $plan->{combinations},
				FULL_ROUNDS, $plan->{seconds}, duration($plan->{combinations} * FULL_ROUNDS * $plan->{seconds}))],
	);
	return join '', map { sprintf "  %-10s %s\n", @$_ } @rows;
}

sub text ($plan, $found) {
	my $head = sprintf '%d measurements in %s; one measurement is %.0f %% off.', $found->{measurements}, duration($found->{seconds}), 100 * $found->{spread};
	$head = "Interrupted. $head What follows was not checked." if $found->{interrupted};
	my @factors = map { '  ' . $plan->{name_of}->($_->{name}) . ': ' . sentence($_) . "\n" } grep { $_->{verdict} ne 'only' } @{ $found->{factors} };
	my @notes = map { 'Note: ' . clean($_) . "\n" } @{ $plan->{warnings} };
	return join "\n", grep { length } "$head\n", join('', @factors), _lines($plan, $found), _evidence($plan, $found), _failed($plan, $found), join('', @notes);
}

my %SENTENCE = (
	unknown => sub ($f) { return "$f->{now}; there was no time to try another value" },
	changed => sub ($f) { return "$f->{chosen} instead of $f->{now}: " . gain($f->{effect}) },
	needed  => sub ($f) { return "$f->{chosen} instead of $f->{now}: it helps together with the other changes" },
	noise   => sub ($f) { return "$f->{now} stays: " . ($f->{effect} && $f->{effect}{mean} > 0 ? 'another value was ' . gain($f->{effect}) . ', which is within the noise' : 'no gain was proved') },
	same    => sub ($f) { return "$f->{now} stays: no value was better" },
);

sub sentence ($f) {
	my @near = ranges($f);
	my $text = $SENTENCE{ $f->{verdict} }->($f);
	return $text if @{ $f->{values} } < 2;
	my @tried = sort { $b->{gain}{mean} <=> $a->{gain}{mean} } grep { $_->{gain} } @{ $f->{values} };
	$text .= '; ' . join(', ', @near) . ' are within 5 % of each other: no difference measured' if @near && @{ $f->{within} } > 1;
	my @worse = grep { $_->{gain}{high} < 0 } @tried;
	$text .= '; clearly worse: ' . join(', ', map { "$_->{value} (" . percent($_->{gain}{mean}) . ')' } @worse) if @worse;
	return $text;
}

# Values within 5 % of the chosen one: "2 to 8", or their names.
sub ranges ($f) {
	my @within = @{ $f->{within} };
	return @within unless $f->{ordered} && @within > 1;
	my %within = map { $_ => 1 } @within;
	my (@ranges, @run);
	for my $value (map({ $_->{value} } @{ $f->{values} }), undef) {
		if (defined $value && $within{$value}) { push @run, $value; next }
		push @ranges, @run > 1 ? "$run[0] to $run[-1]" : $run[0] if @run;
		@run = ();
	}
	return @ranges;
}

sub changed ($found) { return { map { $_->{name} => $_->{chosen} } grep { $_->{chosen} ne $_->{now} } @{ $found->{factors} } } }

sub _lines ($plan, $found) {
	my $changed = changed($found);
	return "Nothing to change: no setting is better than the present one beyond the noise.\n" unless %$changed;
	my $gain = $found->{gain} ? ', together ' . gain($found->{gain}) : '';
	return "$plan->{where}$gain:\n\n" . join('', map { "    $_" } $plan->{lines}->($changed));
}

# The candidates of the last check, or of the search when there was none.
sub _evidence ($plan, $found) {
	my @names = map { $_->{name} } grep { $_->{verdict} ne 'only' } @{ $found->{factors} };
	my $n = min(EVIDENCE_MAX, scalar @{ $found->{candidates} }) || return '';
	my @rows = @{ $found->{candidates} }[0 .. $n - 1];
	my @table = (['MB/s', 'p99 ms', 'rounds', 'gain', @names]);
	for my $c (@rows) {
		push @table, [sprintf('%.1f', $c->{throughput}), sprintf('%.1f', $c->{p99} // 0), $c->{rounds}, $c->{gain} ? gain($c->{gain}) : '-',
			map { $c->{setting}{$_} . ($c->{setting}{$_} eq $found->{now}{$_} ? '' : ' *') } @names];
	}
	my @width = map { my $i = $_; max map { length $_->[$i] } @table } 0 .. $#{ $table[0] };
	my $more = @{ $found->{candidates} } - @rows;
	return "Evidence (medians; p99 is that of the hot file; the gain is that of the objective, against the present setting; * is another value):\n\n"
	    . join('', map { my $row = $_; '  ' . join('  ', map { sprintf "%-$width[$_]s", $row->[$_] } 0 .. $#$row) =~ s/ +\z//r . "\n" } @table)
	    . ($more > 0 ? "  ... and $more more; --json has all\n" : '');
}

sub _failed ($plan, $found) {
	my %why;
	for my $f (@{ $found->{failed} }) {
		my @other = grep { $f->{setting}{$_} ne $found->{now}{$_} } sort keys %{ $f->{setting} };
		$why{ join(', ', map { $plan->{name_of}->($_) . " $f->{setting}{$_}" } @other) || 'the present setting' } //= clean($f->{why});
	}
	return join '', map { "Left out: $_: $why{$_}\n" } sort keys %why;
}

# One object on one line.
sub json ($plan, $found) {
	my %out = (
		program => 'accel-tune', map({ $_ => $plan->{$_} } qw(what root files bytes hot objective time combinations warnings)), measurement_s => $plan->{seconds},
		lines => [map { s/\n\z//r } $plan->{lines}->(changed($found))], map({ $_ => $found->{$_} } qw(now gain spread seconds measurements factors candidates failed)),
		advice => $found->{chosen}, interrupted => $found->{interrupted} ? JSON::PP::true() : JSON::PP::false(),
	);
	return JSON::PP->new->canonical->encode(\%out) . "\n";
}

1;
