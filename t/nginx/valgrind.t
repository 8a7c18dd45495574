# The module under valgrind: nothing is read that was freed or never set.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::Util qw(eventually need_program slurp);

need_program('valgrind', 'valgrind');
my $dir = File::Temp->newdir('nginx-valgrind-XXXXXX', TMPDIR => 1);
chmod 0777, "$dir";     # workers of another user
local $ENV{NGINX_UNDER} = "valgrind --log-file=$dir/%p";
open my $said, '-|', $^X, (map { "-I$_" } @INC), "$FindBin::Bin/cold.t" or die "cold.t: $!";
my $text = do { local $/; <$said> };
ok close $said, 'cold.t passes' or diag $text;
my @logs = glob "$dir/*";
cmp_ok scalar @logs, '>=', 4, 'master and worker of each nginx';
ok eventually(sub { slurp($_) =~ /ERROR SUMMARY: 0 errors/ }), 'no errors' or diag slurp($_) for @logs;

done_testing;
