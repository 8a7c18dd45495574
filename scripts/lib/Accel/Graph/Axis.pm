package Accel::Graph::Axis;
# Ranges, tick marks and units of axes, so that every form of a chart (gnuplot, SVG, text) shows the same ones.
use v5.36;
use utf8;

use Exporter qw(import);
use POSIX    qw(floor ceil);

our @EXPORT_OK = qw(linear_axis time_axis log_time_axis share_axis log_axis tail_axis fitting duration count_text position value_at);

use constant {
	LEAST_MS => 0.001,    # a log axis has no 0: what took less than a microsecond stands at its foot
	HIGHEST  => 9e15,     # numbers above are not exact
};

# 0.25 ms, 12 ms, 1.28 s: three digits, the unit that a reader would choose.
sub duration ($ms) {
	return '0 ms'                                   if $ms == 0;
	return sprintf('%.3g', $ms * 1000) + 0 . ' µs'  if $ms < 0.1;
	return sprintf('%.3g', $ms) + 0 . ' ms'         if $ms < 999.5;
	return ($ms < 100_000 ? sprintf('%.3g', $ms / 1000) + 0 : sprintf '%.0f', $ms / 1000) . ' s';
}

# 12345678 -> 12,345,678
sub count_text ($n) {
	my $text = sprintf '%.0f', $n;
	1 while $text =~ s/\A(-?\d+)(\d{3})/$1,$2/;
	return $text;
}

# Positions whose distance is 1, 2 or 5 times a power of ten, about $want of them.
sub _steps ($max, $want) {
	my $raw  = $max / $want;
	my $ten  = 10**floor(log($raw) / log 10);
	my ($step) = grep { $_ >= $raw * 0.8 } map { $_ * $ten } 1, 2, 5, 10;
	return map { $_ * $step } 0 .. int($max / $step * 1.000001);
}

# From 0 to $max in steps of $unit; the labels count units.
sub linear_axis ($label, $max, %arg) {
	my $unit = $arg{unit} // 1;
	$max = $unit if !($max > 0);
	$max = HIGHEST if $max > HIGHEST;
	$max *= 1.04 unless $arg{exact};
	my @ticks = map { [$_ * $unit, sprintf '%.10g', $_] } _steps($max / $unit, $arg{ticks} // 6);
	return { label => $label, min => 0, max => $max, ticks => \@ticks };
}

# Milliseconds on a linear axis, whose labels are microseconds or seconds where milliseconds have too many digits.
# "UNIT" in the text becomes the name of the unit.
sub time_axis ($what, $max_ms, %arg) {
	my ($unit, $name) = $max_ms >= 10_000 ? (1000, 's') : $max_ms > 0 && $max_ms < 1 ? (0.001, 'µs') : (1, 'ms');
	return { %{ linear_axis($what =~ s/UNIT/$name/r, $max_ms, %arg, unit => $unit) }, unit => $name };
}

# The next 1, 2 or 5 times a power of ten, below or above.
sub _round_down ($value) { my $ten = 10**floor(log($value) / log(10) + 1e-9); return (grep { $_ <= $value * 1.0001 } map { $_ * $ten } 1, 2, 5)[-1] }
sub _round_up ($value)   { my $ten = 10**floor(log($value) / log(10) + 1e-9); return (grep { $_ >= $value * 0.9999 } map { $_ * $ten } 1, 2, 5, 10)[0] }

sub log_axis ($label, $min, $max, $text = sub ($v) { sprintf '%.10g', $v }) {
	($min, $max) = (_round_down($min), _round_up($max));
	$max = $min * 10 if $max < $min * 10;
	my ($low, $high) = (floor(log($min) / log(10) + 1e-9), ceil(log($max) / log(10) - 1e-9));
	my $every  = $high - $low > 8 ? 2 : 1;
	my $inside = sub ($v) { $v >= $min * 0.9999 && $v <= $max * 1.0001 };
	my @steps  = $max / $min > 200 ? 1 : (1, 2, 5);    # a short axis has room for more words
	my @ticks  = map { [$_, $text->($_)] } grep { $inside->($_) } map { my $ten = 10**$_; $_ % $every ? () : map { $_ * $ten } @steps } $low .. $high;
	my @minor  = grep { $inside->($_) } map { my $ten = 10**$_; map { $_ * $ten } 2 .. 9 } $low .. $high - 1;
	return { label => $label, min => $min, max => $max, log => 1, ticks => \@ticks, minor => \@minor };
}

sub log_time_axis ($label, $min_ms, $max_ms) {
	my $floor = $min_ms > LEAST_MS ? $min_ms : LEAST_MS;
	return log_axis($label, $floor, $max_ms > $floor ? $max_ms : $floor * 10, \&duration);
}

sub share_axis ($label, $step = 25) {
	return { label => $label, min => 0, max => 1, ticks => [ map { [$_ * $step / 100, $_ * $step . ' %'] } 0 .. 100 / $step ] };
}

# Percentiles, each further nine as wide as the last: the position is 1 / (1 - q).
sub tail_axis ($label, $requests) {
	my @nines = ([1, '0 %'], [2, '50 %'], [10, '90 %'], [100, '99 %'], [1000, '99.9 %'], [10_000, '99.99 %'], [100_000, '99.999 %']);
	my $max = $requests < 10 ? 10 : $requests > 100_000 ? 100_000 : $requests;
	return { label => $label, min => 1, max => $max, log => 1, ticks => [ grep { $_->[0] <= $max * 1.0001 } @nines ], minor => [] };
}

# The longest text of a label that fits its room; the room is a part of the plot, which is $letters wide.
sub fitting ($label, $letters) {
	return $label->{text} unless $label->{texts};
	return (grep { length() + 0.5 <= $label->{room} * $letters } @{ $label->{texts} })[0];
}

# Position of a value on its axis, 0 to 1; values outside are at the edge.
sub position ($axis, $value) {
	my ($min, $max) = @$axis{qw(min max)};
	if ($axis->{log}) {
		$value = $min if $value < $min;
		($min, $max, $value) = map { log } $min, $max, $value;
	}
	my $at = ($value - $min) / ($max - $min);
	return $at < 0 ? 0 : $at > 1 ? 1 : $at;
}

# The value at a place, 0 to 1.
sub value_at ($axis, $part) {
	my ($min, $max) = @$axis{qw(min max)};
	return $axis->{log} ? $min * ($max / $min)**$part : $min + ($max - $min) * $part;
}

1;
