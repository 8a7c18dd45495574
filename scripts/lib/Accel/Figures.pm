package Accel::Figures;
# Median, spread and medians of runs.
#
#     use Accel::Figures qw(median spread medians);
#     median(3, 1, 2);                                        # 2; undef does not count
#     spread(90, 100, 110);                                   # 10: half of the range, in percent of the median
#     medians({ a => 1, errors => 1 }, { a => 3 });           # { a => 2, errors => 1 }: errors add up
use v5.36;
use Exporter   qw(import);
use List::Util qw(sum0);

our @EXPORT_OK = qw(median spread medians);

sub median (@figures) {
	my @s = sort { $a <=> $b } grep { defined } @figures or return undef;
	return ($s[@s / 2] + $s[$#s / 2]) / 2;
}

sub spread (@figures) {
	my @s = sort { $a <=> $b } grep { defined } @figures;
	my $m = median(@s);
	return $m && $m > 0 ? 50 * ($s[-1] - $s[0]) / $m : 0;
}

# Makes one hash of many: the median of each key that is a number.
sub medians (@runs) {
	my %key = map { $_ => 1 } map { my $r = $_; grep { !ref $r->{$_} } keys %$r } @runs;
	my $errors = delete $key{errors};
	return {
		(map { my $k = $_; $k => median(map { $_->{$k} } @runs) } keys %key),
		$errors ? (errors => sum0(map { $_->{errors} // 0 } @runs)) : (),
	};
}

1;
