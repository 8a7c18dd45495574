# The search of accel-tune, on simulated disks: near the best of a full sweep, in a fifth of its time, for many seeds.
use v5.36;
use Test::More;
use FindBin ();
use List::Util qw(max min);
use lib "$FindBin::RealBin/../../scripts/lib";
use Accel::Tune::Search ();

use constant { SEEDS => $ENV{TUNE_SEEDS} // 20, FULL_ROUNDS => 3, SECONDS => 2.5 };

# A repeatable normal deviate: the sum of twelve even ones has variance 1.
my $random;
sub normal () {
	my $sum = -6;
	for (1 .. 12) {
		$random = ($random * 1_103_515_245 + 12_345) % 2**31;
		$sum += $random / 2**31;
	}
	return $sum;
}

# Busy spindles when this many threads wait, each for any of them.
sub busy ($spindles, $threads) { return $spindles * (1 - (1 - 1 / $spindles)**$threads) }

my @counts = (1, 2, 4, 8, 16, 32, 64);
my %backend = (adaptive => 1, 'linux-sendfile' => 0.97, 'gthread-aio' => 0.9, 'io-uring' => 1.02, 'posix-aio' => 0.55);

# The figures of a setting without noise. A disk's rate follows its busy spindles; threads beyond them make hot files slower.
sub disk ($spindles, $s) {
	my $stat = busy($spindles, $s->{stat});
	my $read = busy($spindles, $s->{read});
	return { throughput => 10 / (0.6 / $stat + 0.4 / $read), p99 => 1 + 0.02 * ($s->{stat} + $s->{read}) };
}

my @threads = map { { name => $_, values => [@counts], now => 16, ordered => 1 } } qw(stat read);
my %model = (
	'2 spindles'           => { factors => [@threads], yields => sub ($s) { disk(2, $s) } },
	'7 spindles'           => { factors => [@threads], yields => sub ($s) { disk(7, $s) } },
	'7 spindles, 1 thread' => { factors => [map { { %$_, now => 1 } } @threads], yields => sub ($s) { disk(7, $s) } },
	'backends'             => {
		factors => [@threads, { name => 'backend', values => [sort keys %backend], now => 'posix-aio' }],
		yields => sub ($s) { my $d = disk(2, $s); return { %$d, throughput => $d->{throughput} * $backend{ $s->{backend} } } },
	},
	# The narrower of two stages: from 1 and 1, neither alone helps.
	'two bottlenecks' => {
		factors => [map { { %$_, now => 1 } } @threads],
		yields => sub ($s) { return { throughput => min(disk(7, { stat => $s->{stat}, read => 64 })->{throughput}, busy(7, $s->{read})), p99 => 1 } },
	},
	'a plateau' => { factors => [@threads], yields => sub ($s) { return { throughput => 100, p99 => 2 } } },
	'too many threads hurt' => {
		factors => [map { { %$_, now => 64 } } @threads],
		yields => sub ($s) { my $d = disk(4, $s); return { %$d, throughput => $d->{throughput} / (1 + max(0, $s->{stat} + $s->{read} - 16) / 40) } },
	},
	# Large pieces are good with few threads only.
	'an interaction' => {
		factors => [{ %{ $threads[0] } }, { name => 'chunk', values => [64, 128, 256, 512, 1024], now => 64, ordered => 1 }],
		yields => sub ($s) {
			my $work = disk(4, { stat => $s->{stat}, read => 64 })->{throughput} * log($s->{chunk}) / log 1024;
			return { throughput => $work / (1 + max(0, $s->{stat} * $s->{chunk} - 8192) / 8192), p99 => 1 };
		},
	},
);

sub copy_of (@factors) { return map { { %$_, values => [@{ $_->{values} }] } } @factors }

# One search, and what is true about the setting it chose: share of the best, share of the time of the full sweep.
sub search ($model, $noise, $seed, %arg) {
	$random = 7 * $seed + 1;
	my @factors = copy_of(@{ $model->{factors} });
	my $full = FULL_ROUNDS * SECONDS;
	$full *= @{ $_->{values} } for @factors;
	my $search = Accel::Tune::Search->new(factors => \@factors, objective => 'throughput', seed => $seed, seconds => $full / 5,
		measure => sub ($s) {
			my $true = $model->{yields}->($s);
			return { throughput => $true->{throughput} * exp($noise * normal()), p99 => $true->{p99} * exp(4 * $noise * normal()), seconds => SECONDS };
		},
		%arg);
	my $found = $search->run;
	my $best = max map { $model->{yields}->($_)->{throughput} } $search->all;
	return ($found, $model->{yields}->($found->{chosen})->{throughput} / $best, $found->{seconds} / $full);
}

# Of all seeds, this many end within 5 % of the best. Where the present setting is 9 % below the best (7 spindles) and one measurement
# is 10 % off, a fifth of the time cannot show it: then the present setting stays. Large pieces with few threads are a cliff.
my %LEAST = (0.03 => 0.95, 0.1 => 0.8);
my %LEAST_OF = ('7 spindles' => { 0.03 => 0.75, 0.1 => 0 }, 'an interaction' => { 0.03 => 0.55, 0.1 => 0.45 }, 'too many threads hurt' => { 0.1 => 0.6 });

for my $name (sort keys %model) {
	for my $noise (sort keys %LEAST) {
		my ($near, $time, $claims, $least) = (0, 0, 0, 1);
		my $present = present($model{$name});
		for my $seed (1 .. SEEDS) {
			my ($found, $share, $used) = search($model{$name}, $noise, $seed);
			$near++ if $share >= 0.95;
			$claims++ if grep { $_->{verdict} eq 'changed' } @{ $found->{factors} };
			$time  = max($time, $used);
			$least = min($least, $share / $present);
		}
		my $what = sprintf '%s, noise of %.0f %%', $name, 100 * $noise;
		cmp_ok $near, '>=', SEEDS * ($LEAST_OF{$name}{$noise} // $LEAST{$noise}), "$what: near the best";
		cmp_ok $time, '<=', 0.2 + 1e-9, "$what: in a fifth of the time of the full sweep";
		cmp_ok $least, '>', 0.96, "$what: never clearly worse than before";
		cmp_ok $claims, '<=', 0.25 * SEEDS, "$what: few false claims" if $name eq 'a plateau';
	}
}

# What the present setting yields, as a share of the best.
sub present ($model) {
	my @all = ({});
	for my $f (@{ $model->{factors} }) {
		@all = map { my $s = $_; map { { %$s, $f->{name} => $_ } } @{ $f->{values} } } @all;
	}
	my $now = { map { $_->{name} => $_->{now} } @{ $model->{factors} } };
	return $model->{yields}->($now)->{throughput} / max map { $model->{yields}->($_)->{throughput} } @all;
}

is_deeply [search($model{backends}, 0.1, 5)], [search($model{backends}, 0.1, 5)], 'the same seed gives the same result';

{
	my ($found) = search($model{'a plateau'}, 0.03, 1);
	is_deeply $found->{chosen}, $found->{now}, 'nothing is changed on a plateau';
	like $found->{factors}[0]{verdict}, qr/^(?:same|noise)$/, '... and the verdict says so';
	cmp_ok scalar(map { @{ $_->{within} } } @{ $found->{factors} }), '>=', 3, '... values within 5 % are named';
}

{
	my %broken = (%{ $model{backends} }, yields => $model{backends}{yields});
	my $refused = 0;
	my ($found) = search(\%broken, 0.03, 3, measure => sub ($s) {
		return { failed => 'no io_uring here', seconds => 0.1 } if $s->{backend} =~ /io-uring|adaptive/ && ++$refused;
		return { throughput => $broken{yields}->($s)->{throughput}, p99 => 1, seconds => SECONDS };
	});
	is $found->{chosen}{backend}, 'linux-sendfile', 'a setting that does not start is left out';
	is $found->{factors}[2]{refused}{'io-uring'}, 'no io_uring here', '... with its reason';
	cmp_ok $refused, '<=', 2, '... and each is tried once';
}

{
	my ($found) = search($model{backends}, 0, 1, measure => sub ($s) { return { failed => 'port in use', seconds => 0.1 } });
	is_deeply $found->{chosen}, $found->{now}, 'without any figures nothing is changed';
	is $found->{gain}, undef, '... and no gain is claimed';
	is $found->{failed}[0]{why}, 'port in use', '... but the reason is known';
}

{
	my ($n, $search) = 0;
	$search = Accel::Tune::Search->new(factors => [copy_of(@threads)], objective => 'throughput', seconds => 1000, measure => sub ($s) {
		$search->stop if ++$n == 4;
		return { throughput => disk(7, $s)->{throughput}, p99 => 1, seconds => 1 };
	});
	my $found = $search->run;
	is $n, 4, 'stop() ends the search after the measurement that runs';
	is_deeply [$found->{interrupted}, $found->{measurements}, scalar @{ $found->{candidates} }], [1, 4, 4], '... what is known is in the result';
	is_deeply $found->{chosen}, $found->{now}, '... and nothing unchecked is advised';
}

{
	my %p99 = (1 => 1, 4 => 2, 16 => 60);
	my $choose = sub ($objective) {
		my $search = Accel::Tune::Search->new(factors => [{ name => 'stat', values => [1, 4, 16], now => 4, ordered => 1 }], objective => $objective,
			seconds => 100, measure => sub ($s) { return { throughput => 10 + $s->{stat} / 16, p99 => $p99{ $s->{stat} }, seconds => 1 } });
		return $search->run->{chosen}{stat};
	};
	is $choose->('throughput'), 16, 'objective throughput';
	is $choose->('latency'), 1, 'objective latency';
	is $choose->('both'), 1, 'objective both: 9 % more throughput is not worth a p99 thirty times as long';
	ok !eval { $choose->('speed'); 1 }, 'no other objective';
}

done_testing;
