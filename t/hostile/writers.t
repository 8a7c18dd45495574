# Clients send slowly, stop, or send bytes that are not HTTP.  A victim in the same /24 is served as when it is alone.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Hostile;

my $why = Test::Hostile::missing(app => 1);
plan skip_all => $why if $why;
my $agents = join '', map { qq{\$HTTP["useragent"] =~ "a$_ " { server.name = "a$_" }\n} } 0 .. 14;
my $world = Test::Hostile->new(app => 1, conf => "server.max-unfinished-head-bytes = 1048576\n$agents");
my @both = (victims => ['hot', 'run']);

$world->withstands('heads byte by byte', attacks => ['slow-head']);
$world->withstands('heads that stop', attacks => ['half-head'], counter => 'server.connections.room-heads');
$world->withstands('bodies for an application, 10 bytes at a time', attacks => ['slow-body'], @both);
$world->withstands('chunks of one byte for an application', attacks => ['slow-chunks'], @both);
$world->withstands('bodies that stop', attacks => ['stop-body'], @both);
$world->withstands('heads near the limit and beyond it', attacks => ['big-head'], counter => 'server.requests.refused');
$world->withstands('chunked bodies that are none', attacks => ['bad-chunks'], counter => 'server.requests.refused', @both);
$world->withstands('random bytes', attacks => ['noise'], counter => 'server.requests.refused');
$world->withstands('15 words of User-Agent in every combination', attacks => ['agents'], counter => 'server.requests.read');

done_testing;
