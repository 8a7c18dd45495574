package Accel::Graph::Text;
# A model as a table of at most 80 columns, as CSV and as JSON.
use v5.36;

use Accel::Graph::Model qw(@SHOWN);
use Accel::Util qw(printable);
use Accel::Graph::Stats qw(@PERCENTILES);
use Exporter qw(import);
use JSON::PP ();

our @EXPORT_OK = qw(table csv json brief plural);

my @COLUMNS = (@PERCENTILES, 'max');
use constant WIDTH => 9;    # 11 for the name and 7 columns of these make 74

sub plural ($word, $n) { return $n == 1 ? $word : "${word}s" }

# For prose: three digits are enough.
sub brief ($number) { return $number < 100 ? 0 + sprintf('%.3g', $number) : sprintf '%.0f', $number }

sub trimmed ($number, $digits) { return sprintf("%.${digits}f", $number) =~ s/(\.\d*?)0+\z/$1/r =~ s/\.\z//r }

# Four digits or more, in at most 8 characters.
sub ms ($ms, $whole) { return $whole || $ms >= 10_000 ? sprintf '%.0f', $ms : $ms >= 1000 ? sprintf '%.1f', $ms : $ms >= 100 ? sprintf '%.2f', $ms : sprintf '%.3f', $ms }

# ---------------------------------------------------------------- table

sub table ($model) {
	my @parts = $model->{requests} ? log_table($model) : ();
	push @parts, sweep_table($model->{sweep}) if $model->{sweep};
	push @parts, map { load_table($_) } @{ $model->{load} // [] };
	return join "\n", @parts;
}

sub log_table ($model) {
	if ($model->{before}) {
		require Accel::Graph::Compare;
		return Accel::Graph::Compare::table($model);
	}
	my $text = headline($model);
	my $cold = $model->{cold} && $model->{hot};
	$text .= block($model, 'cold', "cold: $model->{cold} " . plural('request', $model->{cold})) . "\n" if $cold;
	$text .= block($model, 'all', $cold ? "all: $model->{requests} requests" : undef);
	$text .= "(percentiles rounded to four digits)\n" if $model->{rounded};
	return $text;
}

sub headline ($model) {
	my $text = sprintf '%d %s in %s s', $model->{requests}, plural('request', $model->{requests}), trimmed($model->{span}, 3);
	$text .= ", $model->{cold} cold, $model->{hot} hot" if defined $model->{cold};
	$text .= ", $model->{cut} cut" if $model->{cut};
	return $text . sprintf ", %d over %s s (clients give up)\n\n", $model->{over}{all}, brief($model->{'give-up-ms'} / 1000);
}

sub block ($model, $class, $title) {
	my @shown = $model->shown_stages($class);
	my %of    = map { $_ => $model->{stages}{$_}{$class} } @shown;
	my $mixed = grep { $of{$_}{requests} != $of{total}{requests} } @shown;
	my $whole = !grep { $_ != int } map { @$_{@COLUMNS} } values %of;
	my $text  = defined $title ? "$title\n" : '';
	$text .= row('ms', @COLUMNS) . ($mixed ? " of\n" : "\n");
	$text .= row($_, map { ms($_, $whole) } @{ $of{$_} }{@COLUMNS}) . ($mixed ? " $of{$_}{requests}\n" : "\n") for @shown;
	my @zero = grep { $_ ne 'other' && $model->at($_, $class) && !$of{$_} } @SHOWN;
	$text .= '(0 in all of them: ' . join(', ', @zero) . ")\n" if @zero;
	return $text;
}

sub row ($name, @cells) { return join '', sprintf('%-11s', $name), map { sprintf '%*s', WIDTH, $_ } @cells }

sub sweep_table ($sweep) {
	my $x    = $sweep->{x} // '';
	my $line = '%-14s' . '%12s' x 5 . "\n";
	my $text = printable($sweep->{title}) . "\n";
	for my $series (@{ $sweep->{series} }) {
		$text .= "\n" . printable($series->{label}) . "\n" . sprintf($line, $x, 'MB/s', 'requests/s', 'p50 ms', 'p99 ms', 'spread %');
		$text .= sprintf $line, $x eq '' ? '' : $_->{x}, map { defined ? ms($_, 0) : '-' } @$_{qw(mb_per_s requests_per_s p50_ms p99_ms spread_percent)}
			for @{ $series->{points} };
	}
	return $text;
}

sub load_table ($load) {
	my $text = sprintf "%s: %s requests in %s s, %s answered, %s errors\n\n", printable($load->{label}), map({ $_ // '?' } @$load{qw(requests seconds answered)}),
	    $load->{errors}{all} // '?';
	return join '', $text, row('ms', @COLUMNS) . "\n",
		map { row(tr/_/ /r, map { ms($_, 0) } @{ $load->{$_} }{@COLUMNS}) . "\n" } grep { $load->{$_} } qw(latency first_byte connect);
}

# ---------------------------------------------------------------- for programs

sub csv ($model) {
	return csv_sweep($model->{sweep}) if !$model->{requests} && $model->{sweep};
	my $text = join(',', qw(log class stage requests mean), @COLUMNS) . "\n";
	for my $log ($model->{before} ? (['before', $model->{before}], ['after', $model]) : ['', $model]) {
		my ($label, $of) = @$log;
		for my $class (qw(all cold hot)) {
			for my $stage (grep { $of->at($_, $class) } @SHOWN) {
				my $line = $of->{stages}{$stage}{$class};
				$text .= join(',', $label, $class, $stage, $line->{requests}, map { trimmed($_, 6) } @$line{ 'mean', @COLUMNS }) . "\n";
			}
		}
	}
	return $text;
}

sub csv_sweep ($sweep) {
	my @keys = qw(mb_per_s requests_per_s p50_ms p90_ms p99_ms max_ms spread_percent);
	my $text = join(',', 'series', $sweep->{x} // 'x', @keys) . "\n";
	for my $series (@{ $sweep->{series} }) {
		my $label = '"' . printable($series->{label}) =~ s/"/""/gr . '"';
		$text .= join(',', $label, $_->{x}, map({ $_ // '' } @$_{@keys})) . "\n" for @{ $series->{points} };
	}
	return $text;
}

sub json ($model, $curves) {
	my $out = $model->{requests} ? log_json($model, $curves) : {};
	$out->{$_} = $model->{$_} for grep { $model->{$_} } qw(sweep load), $curves ? 'lanes' : ();
	$out->{before} = log_json($model->{before}, $curves) if $model->{before};
	return JSON::PP->new->canonical->pretty->ascii->encode(characters($out));
}

# A model holds bytes; JSON takes characters.  In text that is not UTF-8 each byte becomes a character.
sub characters ($value) {
	return { map { my ($key, $of) = ($_, $value->{$_}); utf8::decode($key); $key => characters($of) } keys %$value } if ref $value eq 'HASH';
	return [map { characters($_) } @$value] if ref $value eq 'ARRAY';
	utf8::decode($value) if defined $value && !ref $value && $value =~ m/[^\x00-\x7f]/;
	return $value;
}

sub log_json ($model, $curves) {
	my %stages;
	for my $stage (grep { $model->{stages}{$_} } @SHOWN) {
		my $of = $model->{stages}{$stage};
		$stages{$stage} = stage_json($of->{all}, $curves);
		$stages{$stage}{$_} = stage_json($of->{$_}, $curves) for grep { $of->{$_} } qw(cold hot);
	}
	my %out = (
		unit => 'ms', requests => $model->{requests}, over => $model->{over}, 'give-up-ms' => 0 + $model->{'give-up-ms'}, rejected => $model->{rejected}, cut => $model->{cut},
		bytes => 0 + $model->{bytes}, 'first-start' => 0 + $model->{first}, seconds => 0 + sprintf('%.6f', $model->{span}), backends => $model->{backends},
		stages => \%stages, rounded => $model->{rounded} ? JSON::PP::true : JSON::PP::false, files => [map { printable($_) } @{ $model->{files} }],
		map { defined $model->{$_} ? ($_ => $model->{$_}) : () } qw(hot cold advice),
	);
	if (my $memory = $model->{memory}) {
		$out{memory} = { %$memory };
		delete $out{memory}{over_time} unless $curves;
	}
	@out{qw(over-time heat breakdown)} = @$model{qw(over_time heat breakdown)} if $curves;
	return \%out;
}

sub stage_json ($of, $curves) {
	return { map { $_ => $of->{$_} } 'requests', 'mean', @COLUMNS, $curves ? qw(cdf curve) : () };
}

1;
