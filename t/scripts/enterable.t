# make check by root below a directory that others cannot enter: t/tools/enterable lets programs of tests become another user there.
use v5.36;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use File::Copy ();
use Test::More;
use Test::Util qw(put slurp temp_tree);

my $top = "$FindBin::Bin/../..";
like slurp("$top/Makefile"), qr{^\tB=\$B t/tools/enterable \$\(PROVE\) }m, 'make check uses it';
plan skip_all => 'only root has tests that become another user' if $> != 0;

my $tree = temp_tree();
my $dir = "$tree/closed/clone";
mkdir $_ for "$tree/closed", $dir, "$dir/t", "$dir/t/tools";
put("$dir/Makefile", "all:\n");
File::Copy::copy("$top/t/tools/enterable", "$dir/t/tools/enterable") or die "copy: $!";
chmod 0755, $dir, "$dir/t", "$dir/t/tools", "$dir/t/tools/enterable";
chmod 0700, "$tree/closed";

my $as_nobody = 'setpriv --reuid=65534 --regid=65534 --clear-groups -- cat "$PWD/Makefile"';
sub run ($command) {
	my $said = qx{cd "$dir" && $command 2>&1};
	return ($? >> 8, $said);
}

cmp_ok +(run("sh -c '$as_nobody'"))[0], '>', 0, 'another user cannot enter it';
chmod 0755, "$tree/closed";
is_deeply [run("t/tools/enterable sh -c '$as_nobody; exit 3'")], [3, "all:\n"], 'an open directory: the command, with its status';
is +(run('t/tools/enterable pwd'))[1], "$dir\n", '... where it is';
chmod 0700, "$tree/closed";
my $said = qx{cd "$dir" && t/tools/enterable sh -c '$as_nobody; pwd; exit 3' 2>&1};
is $? >> 8, 3, 'a closed one: the status';
like $said, qr{\Aall:\n/\S+\n\z}, '... and another user has entered it';
my ($at) = $said =~ m{^(/\S+)$}m;
ok !-e $at, '... and nothing is left';
chmod 0700, $dir;
$said = qx{cd "$dir" && t/tools/enterable true 2>&1};
is $? >> 8, 69, 'a clone of mode 0700 itself';
like $said, qr/^make check: other users cannot read this directory; .*: chmod -R go\+rX \.$/m, '... it says what to do';

done_testing;
