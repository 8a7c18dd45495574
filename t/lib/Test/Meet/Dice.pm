package Test::Meet::Dice;
# Chance that is the same for a seed on every machine.
use v5.36;

# splitmix64 spreads the seed, so that neighbours have nothing in common.
sub new ($class, $seed) {
	my $z = $seed + 0x1e3779b9;
	for (1 .. 3) {
		$z ^= $z << 21;
		$z ^= $z >> 35;
		$z ^= $z << 4;
	}
	my $self = bless \$z, $class;
	$self->n(2) for 1 .. 8;
	return $self;
}

# 0 .. k - 1
sub n ($self, $k) {
	my $x = $$self;
	$x ^= $x << 13;
	$x ^= $x >> 7;
	$x ^= $x << 17;
	$$self = $x;
	return int(($x >> 16) % $k);
}

sub chance ($self, $percent) { return $self->n(100) < $percent }
sub pick   ($self, @of) { return $of[$self->n(scalar @of)] }

# pairs of value and weight
sub weigh ($self, @pairs) {
	my $all = 0;
	$all += $pairs[ 2 * $_ + 1 ] for 0 .. $#pairs / 2;
	my $n = $self->n($all);
	while (my ($value, $weight) = splice @pairs, 0, 2) {
		return $value if ($n -= $weight) < 0;
	}
}

1;
