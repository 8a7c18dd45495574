package Test::Bench::Meet;
# Seeds of Test::Meet that no test has run, for as long as there is time.
#
# `run($bench)` begins at a seed made of the clock, or at the seed of `--case`. It prints each seed that fails, and at the end the pairs of features that met.
use v5.36;
use Test::Meet;
use Time::HiRes qw(time);

use constant SEEDS => 4000;     # without a look at the clock, at most

sub run ($bench) {
	my ($first) = @{ $bench->opt('case') // [] };
	die "bench: --case: the first seed is a number from 1, got \"$first\"\n" if defined $first && $first !~ /\A[1-9][0-9]{0,14}\z/;
	$first //= 1 + Test::Meet::GROUP * int(time / 60);
	my ($begun, $stop) = (time);
	my $end = $begun + $bench->opt('seconds');
	local @SIG{qw(INT TERM)} = (sub { $stop = 1 }) x 2;
	print "seeds from $first; a failing one: t/tools/meet --seed N\n";
	my $run = Test::Meet->new(jobs => 4, until => $end, heard => sub { print map { "seed $_[0]{seed}: $_\n" } @{ $_[0]{wrong} // [] } });
	for (my $seed = $first; time < $end && !$stop; $seed += SEEDS) {
		$run->seeds($seed .. $seed + SEEDS - 1);
		printf "%.0f s: %d seeds, %d requests, %d seeds fail\n", time - $begun, @$run{qw(done requests)}, scalar keys %{ $run->{wrong} };
	}
	print "\n", $run->pairs, "\nBounds\n";
	$bench->bound('seeds that fail', scalar keys %{ $run->{wrong} }, 0);
	$bench->result->{meet} = { first => $first, seeds => $run->{done}, requests => $run->{requests}, wrong => $run->{wrong} };
	return;
}

1;
