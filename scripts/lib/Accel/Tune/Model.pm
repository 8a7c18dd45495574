package Accel::Tune::Model;
# What a few noisy measurements say about the settings between them.
#
#     my $model = Accel::Tune::Model->new(factors => \@factors);
#     $model->fit([[$setting, $mean, $rounds], ...], $spread);
#     my ($mean, $error) = $model->at($other);
#
# A Gaussian process over the settings. It expects three things:
#
# - Neighbouring values of an ordered factor (8 and 16 threads) are alike; values two steps apart less so.
# - Two values of a named factor (backends) have half in common.
# - Most of the effect of a factor is the same beside all values of the others; a smaller part is an interaction.
#
# Scores are logarithms, so errors are relative: 0.05 is 5 %.
use v5.36;
use List::Util qw(max product sum0);

use constant {
	STEPS   => 1.5,           # a distance, in values of an ordered factor, at which two settings have 40 % in common
	ALIKE   => 0.5,         # what two values of a named factor have in common
	SEPARATE => 0.6,        # the share of an effect that does not depend on other factors
	LEAST   => 0.15,         # standard deviation of settings, if the measured ones are nearly alike
	UNKNOWN => 0.3,         # ... and before some were measured
	ENOUGH  => 5,
};

sub new ($class, %arg) {
	my %place;
	for my $f (@{ $arg{factors} }) {
		$place{ $f->{name} }{ $f->{values}[$_] } = $_ for 0 .. $#{ $f->{values} };
	}
	my @common = map { my $f = $_; [map { my $d = $_; $f->{ordered} ? exp -$d**2 / 2 / STEPS**2 : $d ? ALIKE : 1 } 0 .. $#{ $f->{values} }] } @{ $arg{factors} };
	return bless { names => [map { $_->{name} } @{ $arg{factors} }], common => \@common, place => \%place }, $class;
}

sub _places ($self, $setting) { return [map { $self->{place}{$_}{ $setting->{$_} } } @{ $self->{names} }] }

# How much two settings have in common, from 0 to 1.
sub _common ($self, $one, $other) {
	my @each = map { $self->{common}[$_][abs $one->[$_] - $other->[$_]] } 0 .. $#$one;
	return 1 unless @each;
	return SEPARATE * sum0(@each) / @each + (1 - SEPARATE) * product(@each);
}

# Rows are [setting, mean score, number of measurements]; the spread is that of one measurement.
sub fit ($self, $rows, $spread) {
	my @places = map { $self->_places($_->[0]) } @$rows;
	my $mean = sum0(map { $_->[1] } @$rows) / @$rows;
	my $variance = @$rows < ENOUGH ? UNKNOWN**2 : max(LEAST**2, sum0(map { ($_->[1] - $mean)**2 } @$rows) / $#$rows);
	@$self{qw(places mean variance)} = (\@places, $mean, $variance);
	my @matrix;
	for my $i (0 .. $#$rows) {
		$matrix[$i][$_] = $variance * $self->_common($places[$i], $places[$_]) for 0 .. $i;
		$matrix[$i][$i] += $spread**2 / $rows->[$i][2];
	}
	$self->{root} = _cholesky(\@matrix);
	$self->{half} = $self->_solve([map { $_->[1] - $mean } @$rows]);
	return $self;
}

# Expected score of a setting, and its standard error.
sub at ($self, $setting) {
	my $here = $self->_places($setting);
	my $half = $self->_solve([map { $self->{variance} * $self->_common($here, $_) } @{ $self->{places} }]);
	my $mean = $self->{mean} + sum0(map { $half->[$_] * $self->{half}[$_] } 0 .. $#$half);
	return ($mean, sqrt max(0, $self->{variance} - sum0(map { $_**2 } @$half)));
}

# The lower triangle whose product with its transpose is the matrix.
sub _cholesky ($matrix) {
	my @root;
	for my $i (0 .. $#$matrix) {
		for my $j (0 .. $i) {
			my $rest = $matrix->[$i][$j] - sum0(map { $root[$i][$_] * $root[$j][$_] } 0 .. $j - 1);
			$root[$i][$j] = $i == $j ? sqrt max(1e-12, $rest) : $rest / $root[$j][$j];
		}
	}
	return \@root;
}

# Solves root x = y.
sub _solve ($self, $y) {
	my ($root, @x) = $self->{root};
	for my $i (0 .. $#$y) {
		my $row = $root->[$i];
		my $rest = $y->[$i];
		$rest -= $row->[$_] * $x[$_] for 0 .. $i - 1;
		push @x, $rest / $row->[$i];
	}
	return \@x;
}

1;
