# Two programs know where each open() asks another program or machine: what one of them learns, the other one must know.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(slurp);

my $top = "$FindBin::Bin/../..";
my ($rows)  = slurp("$top/fcgi-stat-accel/open_asks.c") =~ /^\} rows\[\] = \{\n(.*?)^\};/ms or die 'no rows';
my ($types) = slurp("$top/nginx/mounts.c") =~ /types\[\] = \{(.*?)\};/s or die 'no types';
my @accelerator = $rows =~ /^\t\{ "([^"]+)",/mg;
my @module = $types =~ /"([^"]+)"/g;
cmp_ok scalar(@accelerator), '>', 10, 'types of the accelerator';
like slurp("$top/nginx/mounts.c"), qr/strncmp\(type, "fuse\.", 5\) == 0/, 'the module knows each fuse.*';
is_deeply [sort @module], [sort qw(ceph afs), grep { !/^fuse\./ } @accelerator], 'the module knows them, and two where open() asks sometimes';

done_testing;
