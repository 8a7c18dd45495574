package Accel::Graph::Stats;
use v5.36;

use Accel::Graph::Read qw(@STAGES TOTAL US);
use Exporter   qw(import);
use List::Util qw(max min sum0);

our @EXPORT_OK = qw(@PERCENTILES %CLASS summary quantile share cdf curve);

use constant {
	UNKNOWN      => 2,         # neither hot nor cold: a line of lighttpd 1.5
	MAX_DISTINCT => 32_768,    # values kept exactly, per stage and class
	MAX_BINS     => 256,       # of time
	PER_DECADE   => 20,        # levels of duration, each 12 % above the one below
	FIRST_WIDTH  => 1 / 1024,  # seconds of a bin, before it is doubled
	MAX_BACKENDS => 32,        # names counted apart
	CDF_POINTS   => 200,
	CURVE_DECADES => 8, CURVE_STEPS => 16,    # up to 99.999999 %
	REQUESTS     => 0, BYTES => 1, OVER => 2, SUMS => 3,    # places in a cell
};

our @PERCENTILES = qw(p50 p90 p95 p99 p99.9 p99.99);
our %CLASS       = (cold => [0], hot => [1], all => [0, 1, 2]);    # class => its tallies
my $LEVELS_PER_E = PER_DECADE / log 10;
my @ZERO         = (0) x (SUMS + @STAGES);

sub new ($class, %arg) {
	return bless { give_up_us => $arg{give_up_us} // 4_000_000, count => [map { [map { {} } @STAGES] } 0 .. UNKNOWN],
		rounded => [map { [(0) x @STAGES] } 0 .. UNKNOWN],
		bins => {}, width => FIRST_WIDTH, backends => {}, cut => 0, first => undef, last => undef }, $class;
}

# Takes a row of Accel::Graph::Read.  Places of the row are written as numbers here, because this runs for each line.  The keys of the hash
# are the digits of the line, which Perl need not convert.
sub add ($self, $row) {
	my $class = $row->[3] // UNKNOWN;
	my $count = $self->{count}[$class];
	my $total = $row->[12];
	my $cell  = $self->{bins}{ int $row->[1] / $self->{width} }[$class][ $total > 0 ? 1 + int $LEVELS_PER_E * log $total : 0 ] //= [@ZERO];
	$cell->[0]++;
	$cell->[1] += $row->[2];
	$cell->[2]++ if $total > $self->{give_up_us};
	for my $stage (0 .. 10) {
		my $us = $row->[4 + $stage] // next;
		$count->[$stage]{$us}++;
		$cell->[3 + $stage] += $us;
	}
	$self->{backends}{ $row->[0] }++;
	$self->{cut}++ if $row->[15];
	return if defined $self->{first} && $row->[1] >= $self->{first} && $row->[1] <= $self->{last};
	$self->{first} = $row->[1] if !defined $self->{first} || $row->[1] < $self->{first};
	$self->{last}  = $row->[1] if !defined $self->{last}  || $row->[1] > $self->{last};
}

# ---------------------------------------------------------------- bounds

# Keeps memory bounded; to be called every some thousand rows.
sub shrink ($self) {
	for my $class (0 .. UNKNOWN) {
		for my $stage (0 .. $#STAGES) {
			my $most = $self->{rounded}[$class][$stage] ? 2 * MAX_DISTINCT : MAX_DISTINCT;
			$self->round_values($class, $stage) if keys %{ $self->{count}[$class][$stage] } > $most;
		}
	}
	$self->double_width while keys %{ $self->{bins} } > MAX_BINS;
	my $backends = $self->{backends};
	if (keys %$backends > MAX_BACKENDS) {
		my @rare = (sort { $backends->{$b} <=> $backends->{$a} || $a cmp $b } keys %$backends)[MAX_BACKENDS / 2 .. keys(%$backends) - 1];
		delete @$backends{@rare};
	}
}

# Rounds to four digits; the largest value keeps all digits.
sub round_values ($self, $class, $stage) {
	my ($count, %few) = $self->{count}[$class][$stage];
	my $max = max(keys %$count);
	while (my ($us, $n) = each %$count) {
		if (length $us > 4 && $us != $max) {
			my $step = 10**(length($us) - 4);
			$us = min($step * int($us / $step + 0.5), $max);
		}
		$few{$us} += $n;
	}
	$self->{count}[$class][$stage]   = \%few;
	$self->{rounded}[$class][$stage] = 1;
}

sub double_width ($self) {
	my %wide;
	while (my ($at, $classes) = each %{ $self->{bins} }) {
		my $into = $wide{ int $at / 2 } //= [];
		for my $class (0 .. UNKNOWN) {
			my $levels = $classes->[$class] // next;
			defined $levels->[$_] && add_cell($into->[$class][$_] //= [@ZERO], $levels->[$_]) for 0 .. $#$levels;
		}
	}
	$self->{bins} = \%wide;
	$self->{width} *= 2;
}

sub add_cell ($into, $cell) {
	$into->[$_] += $cell->[$_] for 0 .. $#$cell;
}

# ---------------------------------------------------------------- answers

# The values of a stage, in microseconds.  A request whose line lacks a stage that others have did not need that stage: it took 0.  So each
# stage is about the same requests as the total, and none of its percentiles is above that of the total.  { n, sum, rounded, values =>
# sorted, below => requests up to and with each value }.
sub distribution ($self, $class, $stage_name) {
	my ($stage) = grep { $STAGES[$_] eq $stage_name } 0 .. $#STAGES;
	my @counts  = map { $self->{count}[$_][$stage] } @{ $CLASS{$class} };
	my $rounded = grep { $self->{rounded}[$_][$stage] } @{ $CLASS{$class} };
	my ($most, @few) = sort { keys %$b <=> keys %$a } @counts;
	my %all = %$most;
	for my $count (@few) { $all{$_} += $count->{$_} for keys %$count }
	my $lacking = %all ? sum0(map { values %{ $self->{count}[$_][TOTAL - US] } } @{ $CLASS{$class} }) - sum0(values %all) : 0;
	$all{0} += $lacking if $lacking > 0;
	my @values = sort { $a <=> $b } keys %all;
	my ($n, $sum, @below) = (0, 0);
	for my $us (@values) {
		push @below, $n += $all{$us};
		$sum += $us * $all{$us};
	}
	return { n => $n, sum => $sum, rounded => $rounded > 0, values => \@values, below => \@below };
}

# Nearest rank: the smallest value that at least the share $q of all do not exceed.
sub quantile ($dist, $q) {
	my ($n, $values, $below) = @$dist{qw(n values below)};
	return 0 unless $n;
	my $rank = $q * $n;
	$rank = int($rank) + ($rank - int($rank) > 1e-6 ? 1 : 0);
	my ($low, $high) = (0, $#$below);
	while ($low < $high) {
		my $middle = ($low + $high) >> 1;
		if   ($below->[$middle] < $rank) { $low  = $middle + 1 }
		else                             { $high = $middle }
	}
	return $values->[$low];
}

# "p99.9" => 0.999
sub share ($percentile) { return substr($percentile, 1) / 100 }

# The table's line of a stage, in milliseconds; nothing if no request has it.
sub summary ($dist) {
	return unless $dist->{n};
	return { requests => $dist->{n}, mean => $dist->{sum} / $dist->{n} / 1000, max => $dist->{values}[-1] / 1000,
		map { $_ => quantile($dist, share($_)) / 1000 } @PERCENTILES };
}

# [ms, share of requests that took at most this long]; exact points, at most CDF_POINTS + 1 of them, the last one is the maximum.
sub cdf ($dist) {
	my ($n, $values, $below) = @$dist{qw(n values below)};
	my (@points, $next);
	for my $i (0 .. $#$values) {
		my $share = $below->[$i] / $n;
		next if $i < $#$values && @$values > CDF_POINTS && defined $next && $share < $next;
		push @points, [$values->[$i] / 1000, $share];
		$next = $share + 1 / CDF_POINTS;
	}
	return \@points;
}

# [log10(1 / (1 - q)), q, ms] from the median to the last percentile that the log can distinguish; the tail is drawn straight.
sub curve ($dist) {
	my ($n, @points) = $dist->{n};
	for my $i (0 .. CURVE_DECADES * CURVE_STEPS) {
		my $nines = $i / CURVE_STEPS;
		last if 10**$nines > $n;
		push @points, [$nines, 1 - 10**-$nines, quantile($dist, 1 - 10**-$nines) / 1000];
	}
	my $end = log($n) / log 10;
	push @points, [$end, 1 - 1 / $n, quantile($dist, 1 - 1 / $n) / 1000] if $end - $points[-1][0] > 1e-9;
	return \@points;
}

1;
