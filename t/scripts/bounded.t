# make check goes on when a test hangs or leaves a process behind: t/tools/bounded ends that test and says what it waited for.
use v5.36;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(eventually put slurp temp_tree);
use Time::HiRes qw(time);

chdir "$FindBin::Bin/../.." or die "chdir: $!";
like slurp('Makefile'), qr{^PROVE := .* --exec t/tools/bounded$}m, 'make check uses it';

my $tree = temp_tree();
sub bounded ($text, $name = 'unit', %env) {
	local @ENV{qw(TEST_LIMIT TEST_GRACE)} = (60, 60);
	local @ENV{keys %env} = values %env;
	put("$tree/$name", $text);
	chmod 0755, "$tree/$name";
	my $said = qx{t/tools/bounded $tree/$name 2>&1};
	return ($?, $said);
}
sub alive ($pid) { return slurp("/proc/$pid/stat") =~ /\) [^ZX]/ }

is_deeply [bounded("#!/bin/sh\necho ok 1; exit 3\n")], [3 << 8, "ok 1\n"], 'a program: its output and its status';
is_deeply [bounded("use Test::Util; print qq{ok 1\\n};\n", 'some.t')], [0, "ok 1\n"], 'a Perl test: with t/lib';
is +(bounded("#!/bin/sh\nkill -TERM \$\$\n"))[0] >> 8, 143, 'a signal ends it: its number and 128, as in a shell';

my $began = time;
my ($status, $said) = bounded("#!/bin/sh\nsleep 300 & echo \$!\nwait\n", 'hangs', TEST_LIMIT => 1);
my ($pid) = $said =~ /^(\d+)$/m;
is $status >> 8, 1, 'one that hangs fails';
like $said, qr/^# \S+hangs: not done after 1 s\n#   \d+: \S+sh \S+hangs waits in \S+.*\n#   $pid: sleep 300 waits in /m, '... what it waited for';
ok !-e "/proc/$pid" || !alive($pid), '... and its child has ended';

($status, $said) = bounded("#!/bin/sh\nsetsid sleep 300 & echo \$!\n", 'leaves', TEST_GRACE => 1);
($pid) = $said =~ /^(\d+)$/m;
is $status >> 8, 1, 'one that leaves a process behind fails';
like $said, qr/^# \S+leaves: left running for 1 s after its end\n#   $pid: sleep 300 waits in /m, '... which one';
ok !-e "/proc/$pid" || !alive($pid), '... and that has ended';
is_deeply [bounded("#!/bin/sh\nsleep 0.3 &\n", 'soon')], [0, ''], 'one that ends by itself in time is none';

done_testing;
