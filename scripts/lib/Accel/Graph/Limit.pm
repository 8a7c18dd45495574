package Accel::Graph::Limit;
# accel-graph --fail-if: limits for a log.
#
#   my @limits = parse('p99>50ms', 'cold.stat-queue.p50>=10ms, over>1%');
#   say for broken(\@limits, $model, $stats);
#
#   [ratio.][CLASS.][STAGE.]pNN[.N]|max|mean  OPERATOR  NUMBER us|ms|s     (ratio: no unit)
#   [CLASS.]over                              OPERATOR  NUMBER [%]
#   [CLASS.]requests                          OPERATOR  NUMBER
#   rejected|rate                             OPERATOR  NUMBER
#
# CLASS is all (default), cold or hot; STAGE is a stage, `other` or `total` (default); OPERATOR is > >= < or <=.
# `ratio` compares with the log of --before. Nothing is evaluated as code. `parse` and `broken` fail as
# Accel::Command does: 64 means that a limit is not understood, 65 that there was no request to judge.
use v5.36;

use Accel::Command qw(fail usage EX_DATAERR);
use Accel::Graph::Model qw(@SHOWN);
use Accel::Graph::Stats qw(%CLASS quantile);
use Accel::Graph::Text qw(brief);
use Exporter qw(import);

our @EXPORT_OK = qw(parse broken);

use constant MAX_LIMITS => 100;

my %STAGE   = map { $_ => 1 } @SHOWN;
my %UNIT    = (us => 1, ms => 1000, s => 1_000_000);
my %COMPARE = ('>' => sub { $_[0] > $_[1] }, '>=' => sub { $_[0] >= $_[1] }, '<' => sub { $_[0] < $_[1] }, '<=' => sub { $_[0] <= $_[1] });
my $EXAMPLE = 'as p99>50ms, cold.stat-queue.p99.9>=1s, over>1%, requests<1000';

# 'cold.stat.p99>50ms' -> { text, ratio, class, stage, metric, q, compare, value, unit }; several are separated by commas.
sub parse (@texts) {
	my @limits = map { one($_) } map { split /\s*,\s*/ } @texts;
	usage('--fail-if: empty; ' . $EXAMPLE) unless @limits;
	usage('--fail-if: more than ' . MAX_LIMITS . ' limits') if @limits > MAX_LIMITS;
	return @limits;
}

sub one ($text) {
	my $bad = sub ($why) { usage("--fail-if '$text': $why; $EXAMPLE") };
	my ($left, $operator, $number, $unit) = $text =~ m/\A\s*([a-z0-9.-]{1,60})\s*(>=|<=|>|<)\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(us|ms|s|%|)\s*\z/
	    or $bad->('not NAME, one of > >= < <=, number and unit');
	my %limit = (text => $text =~ s/\A\s+|\s+\z//gr, class => 'all', stage => 'total', compare => $operator, unit => $unit, number => $number);
	($limit{metric}) = $left =~ m/(?:\A|\.)(p[0-9]{1,2}(?:\.[0-9]{1,6})?|[a-z]+)\z/ or $bad->('no value is named ' . $left);
	my @before = split /\./, $left =~ s/\.?\Q$limit{metric}\E\z//r;
	$limit{ratio} = shift @before if @before && $before[0] eq 'ratio';
	$limit{class} = shift @before if @before && $CLASS{ $before[0] };
	$limit{stage} = shift @before if @before && $STAGE{ $before[0] };
	$bad->("'$before[0]' is neither a class (all cold hot) nor a stage (" . join(' ', @SHOWN) . ')') if @before;
	check_unit(\%limit, $bad);
	return \%limit;
}

sub check_unit ($limit, $bad) {
	my ($metric, $unit) = @$limit{qw(metric unit)};
	if ($metric =~ m/\Ap([0-9].*)/ || $metric =~ m/\A(?:max|mean)\z/) {
		$limit->{q} = $1 / 100 if defined $1;
		return $unit eq '' || $bad->('a ratio has no unit') if $limit->{ratio};
		return $UNIT{$unit} || $bad->("$metric needs a unit: us, ms or s");
	}
	$bad->("'$metric' is none of pNN max mean over requests rejected rate") unless $metric =~ m/\A(?:over|requests|rejected|rate)\z/;
	$bad->("$metric is not of a stage") if $limit->{stage} ne 'total';
	$bad->("$metric has no ratio") if $limit->{ratio};
	$bad->("$metric is of all requests") if $metric =~ m/\A(?:rejected|rate)\z/ && $limit->{class} ne 'all';
	return $unit eq '' || $unit eq '%' && $metric eq 'over' || $bad->("'$unit' is not a unit of $metric");
}

# The sentences of the limits that do not hold.
sub broken ($limits, $model, $stats, $stats_before = undef) {
	my @told;
	for my $limit (@$limits) {
		my ($value, $shown) = $limit->{ratio} ? ratio($limit, $stats, $stats_before) : value($limit, $model, $stats);
		my $bound = $limit->{number} * ($UNIT{ $limit->{unit} } // 1);
		push @told, "$limit->{text}: it is $shown" if $COMPARE{ $limit->{compare} }->($value, $bound);
	}
	return @told;
}

sub value ($limit, $model, $stats) {
	my $metric = $limit->{metric};
	return ($model->{rejected}, $model->{rejected}) if $metric eq 'rejected';
	if ($metric eq 'rate') {
		my $rate = $model->{span} > 0 ? $model->{requests} / $model->{span} : 0;
		return ($rate, brief($rate) . ' requests a second');
	}
	my $n = $model->at('total', $limit->{class}) ? $model->{stages}{total}{ $limit->{class} }{requests} : 0;
	return ($n, $n) if $metric eq 'requests';
	if ($metric eq 'over') {
		my $over = $model->{over}{ $limit->{class} } // 0;
		return ($over, "$over of $n requests") if $limit->{unit} ne '%';
		my $percent = $n ? 100 * $over / $n : 0;
		return ($percent, brief($percent) . " % ($over of $n requests)");
	}
	my $us = duration($limit, $stats);
	return ($us, brief($us / 1000) . ' ms');
}

sub duration ($limit, $stats) {
	my $dist = $stats->distribution($limit->{class}, $limit->{stage});
	fail(EX_DATAERR, "--fail-if '$limit->{text}': no request to judge by, the log has no $limit->{stage} of "
		. ($limit->{class} eq 'all' ? 'any' : "a $limit->{class}") . ' request') unless $dist->{n};
	return quantile($dist, $limit->{q}) if defined $limit->{q};
	return $limit->{metric} eq 'max' ? $dist->{values}[-1] : $dist->{sum} / $dist->{n};
}

sub ratio ($limit, $stats, $before) {
	my ($new, $old) = (duration($limit, $stats), duration($limit, $before));
	my $ratio = $old > 0 ? $new / $old : $new > 0 ? 9**9**9 : 1;
	return ($ratio, sprintf '%s (%s ms, before %s ms)', brief($ratio), brief($new / 1000), brief($old / 1000));
}

1;
