# Floods of streams and frames over HTTP/2: the connection of the flood is closed, and victims of HTTP/1.1 and of HTTP/2 are served.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Hostile;

my $why = Test::Hostile::missing(slow => 1);
plan skip_all => $why if $why;
my $world = Test::Hostile->new(slow => 1);
my @both = (victims => ['hot', 'streams']);

for my $case (
	['streams that are reset', 'h2-reset', 'flood-resets'],
	['streams that the server must reset', 'h2-made-reset', 'failed'],
	['more streams than allowed', 'h2-many', 'flood-streams'],
	['PING frames', 'h2-ping', 'flood-control'],
	['SETTINGS frames', 'h2-settings', 'flood-control'],
	['PRIORITY_UPDATE frames', 'h2-prio-update', 'flood-priority'],
	['windows opened byte by byte', 'h2-window-1', 'flood-windows'],
) {
	my ($name, $attack, $counter) = @$case;
	$world->withstands($name, attacks => [$attack], @both, counter => "server.http2.$counter");
}
$world->withstands('PRIORITY frames, which cost nothing', attacks => ['h2-priority'], @both);
$world->withstands('streams for cold files that are reset', attacks => ['h2-reset-cold'], victims => ['hot', 'streams', 'cold'], ms => 1000, counter => 'server.http2.resets');

done_testing;
