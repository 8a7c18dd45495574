# Heads and bodies without an end or without bytes, windows of 0 and slow readers of many streams, over HTTP/2.  Victims of HTTP/1.1 and of
# HTTP/2 are served.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Hostile;

my $why = Test::Hostile::missing(app => 1);
plan skip_all => $why if $why;
my $world = Test::Hostile->new(app => 1);
my @both = (victims => ['hot', 'streams']);

for my $case (
	['a head that never ends', 'h2-continuation', 'failed'],
	['empty CONTINUATION frames', 'h2-empty-cont', 'failed'],
	['empty HEADERS frames', 'h2-empty-head', 'failed'],
	['empty DATA frames', 'h2-empty-data', 'flood-empty'],
	['heads that grow in HPACK', 'h2-bomb', 'flood-heads'],
) {
	my ($name, $attack, $counter) = @$case;
	$world->withstands($name, attacks => [$attack], @both, counter => "server.http2.$counter");
}
$world->withstands('frames by chance', attacks => ['h2-noise'], @both);
$world->withstands('windows of 0 and slow readers', attacks => ['h2-window-0', 'h2-slow-read'], @both, counter => 'server.http2.streams');
$world->withstands('slow heads and bodies, and silence', attacks => ['h2-slow-head', 'h2-slow-body', 'h2-silent'], @both);

done_testing;
