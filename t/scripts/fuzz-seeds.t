# Every fuzz target takes its seeds, the committed corpus and some changes of both.  The corpus holds the inputs of bugs that were fixed.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

chdir "$FindBin::Bin/../.." or die "chdir: $!";
my @name = map { m{/fuzz_(\w+)\.c\z} } glob 't/fuzz/fuzz_*.c';
cmp_ok scalar @name, '>=', 13, 'targets';
for my $name (@name) {
	my $program = Test::Util::build_dir() . "/fuzz/$name";
	ok -d "t/fuzz/corpus/$name", "$name has a corpus";
	my $said = qx{$program 0 1 t/fuzz/corpus/$name 2>&1};
	is $?, 0, "$name takes it" or diag $said =~ s/[^\n -~]/?/gr;
}
my $said = qx{$^X t/fuzz/fuzz_graph.pl 0.3 t/fuzz/corpus/graph 2>&1};
is $?, 0, 'so does accel-graph' or diag $said;

my ($all, @large) = (0);
for my $file (glob 't/fuzz/corpus/*/*') {
	$all += -s $file;
	push @large, $file if -s $file > 16_384;
}
is_deeply \@large, [], 'no file of a corpus is larger than 16 kB';
cmp_ok $all, '<', 500_000, 'all of them together are small';
done_testing;
