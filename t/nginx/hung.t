# More requests hang on one disk than there are threads: files of other disks that are in memory are served.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http qw(request_head);
use Test::NginxModule;
use Test::Util qw(put);
use Accel::Slowfs;
use File::Temp ();

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-hung-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/disk";
put("$tree/file", 'hot');
put("$tree/disk/$_", 'x') for 1 .. 40;
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 64, lookup_ms => 0, read_ms => 0, no_open => 1);
my $ng = Test::NginxModule->start("server { listen 8080; root $tree; stat_accel on; stat_accel_open off; stat_accel_remember 50ms; stat_accel_deadline 5s; location /disk/ { alias ${\$slow->dir}/; } }", root => $tree);

$slow->forget;
$slow->hang;
my @c = map { my $c = $ng->connect; syswrite $c, request_head('GET', "/disk/$_"); $c } 1 .. 40;
ok $slow->wait_hanging(16), 'many hang';
for (1 .. 3) {
	select undef, undef, undef, 0.1;        # what was remembered is forgotten
	is $ng->get('/file')->{status}, 200, 'another is served';
	is $ng->last->{status}, 'hot', '... from memory';
}
$slow->go;
$ng->stop;
$slow->stop;
done_testing;
