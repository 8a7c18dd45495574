# Storms of look-ups, absent names and ranges come from one address and from many.  Hot and cold files of a victim are served.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Hostile;

my $why = Test::Hostile::missing(slow => 1);
plan skip_all => $why if $why;
my $world = Test::Hostile->new(slow => 1, conf => "server.max-cached-files = 256\n");
my @both = (victims => ['hot', 'cold']);
my @slow = (@both, ms => 1000);

$world->withstands('look-ups on a slow disk by one address', attacks => ['cold'], @slow, counter => 'server.cache.evicted');
$world->withstands('connections broken during the look-up', attacks => ['cold-reset'], @slow, counter => 'server.cache.misses');
$world->withstands('absent names, one address', attacks => ['absent'], @slow, counter => 'server.requests.replied-4xx');
$world->withstands('absent names, 250 addresses', attacks => ['absent,conns=250,from=127.0.1.1-250'], victims => ['hot'],
    counter => 'server.requests.replied-4xx');
$world->withstands('ranges', attacks => ['ranges'], counter => 'server.requests.replied-2xx');

done_testing;
