# make check fails if a test fails twice, or prove(1) does not end well; its output ends with what those tests said, in less than 2 kB.
use v5.36;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(put slurp temp_tree);

chdir "$FindBin::Bin/../.." or die "chdir: $!";
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS VARIANT)};
my $tree = temp_tree();

# The last lines of the recipe, with these tests: exit status, standard output, standard error.
sub check (%tests) {
	my @names = map { put("$tree/$_.t", "use Test::More;\n$tests{$_};\ndone_testing;\n") && "$tree/$_.t" } sort keys %tests;
	my ($recipe) = qx{make -n check B=$tree UNITS= TESTS='@names' 2>&1} =~ /^(rm -rf \S+prove\.state.*)/ms or die 'no recipe';
	local $ENV{TEST_SAID} = "$tree/said";
	return Test::Util::run_fed('sh', $recipe, '-e');
}

subtest 'all pass' => sub {
	my ($status, $out, $err) = check(a => 'diag "a word"; ok 1', b => 'ok 1');
	is $status, 0, 'well';
	unlike "$out$err", qr/FAILED/, '... and nothing has failed';
	like $err, qr/^# a word$/m, 'what a test says is heard';
};

subtest 'one fails beside others' => sub {
	my ($status, $out, $err) = check(a => "ok -e '$tree/again', 'a thing'; open my \$fh, '>', '$tree/again'", b => 'ok 1');
	is $status, 0, 'it passes alone: well';
	like $out, qr{^FAILED \Q$tree\E/a\.t\n  Failed test 'a thing' at \S+ line 2\.\n.*^Failed beside others;.*^\S+ \Q$tree\E/a\.t \.+ ok}ms, '... and the output has both results';
	unlike $err, qr/^FAILED/m, '... the first one only';
};

subtest 'two fail twice' => sub {
	my ($status, $out, $err) = check(a => 'subtest x => sub { is 1, 2, "a thing" }; diag "line $_ " . "x" x 300 for 1 .. 1000', b => 'print STDERR "died here\n"; kill KILL => $$', c => 'ok 1');
	isnt $status, 0, 'not well';
	my ($end) = $err =~ /^(FAILED .*)/ms;
	like $end, qr{^FAILED \Q$tree\E/a\.t\n  Failed test 'a thing' at \S+ line 2\.\n  got: '1'\n  expected: '2'\n.*^  line 1 x+\.\.\.\n}ms, 'the assertion comes first';
	like $end, qr{^  \.\.\. \d+ more lines \.\.\.\n(?:  line \d+ x+\.\.\.\n)+  \Q$tree\E/a\.t: exit status 1\n}ms, '... and the end of what it said';
	like $end, qr{^FAILED \Q$tree\E/b\.t\n  died here\n  \Q$tree\E/b\.t: signal 9\n\z}m, 'the other one';
	unlike $end, qr{/c\.t}, '... and no other';
	cmp_ok length $end, '<', 2000, 'it is short';
};

subtest 'prove is killed' => sub {
	my ($status, $out) = check(a => 'my $bounded = getppid; open my $fh, "<", "/proc/$bounded/stat"; kill KILL => (split " ", <$fh>)[3]; ok 1');
	isnt $status, 0, 'not well';
	like $out, qr/^No test has failed, but prove\(1\) did not end well\.$/m, '... and the output says why';
};

done_testing;
