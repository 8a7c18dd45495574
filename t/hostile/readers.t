# Clients do not read, read slowly, stay silent, or leave.  A victim in the same /24 is served as when it is alone.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Hostile;

my $why = Test::Hostile::missing(app => 1);
plan skip_all => $why if $why;
my $world = Test::Hostile->new(app => 1);

$world->withstands('slow readers of a large file', attacks => ['slow-read']);
$world->withstands('pipelined requests whose answers are not read', attacks => ['no-read']);
$world->withstands('slow readers of what an application answers', attacks => ['slow-app'], victims => ['hot', 'run']);
$world->withstands('silent connections beyond server.max-connections', attacks => ['silent,conns=5000,rate=20000']);
$world->withstands('connections that are broken at once', attacks => ['connect-reset']);
$world->withstands('a connection for each request', attacks => ['one-each,rate=300']);

done_testing;
