# Files without requests are closed, so a mount below the document root can be unmounted while the server runs.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

Test::Server::own_mounts() or plan skip_all => 'no mount namespace of our own';

my $srv = Test::Server->start(conf => <<'CONF');
server.max-worker = 1
server.cache.max-idle = 1
status.statistics-url = "/counters"
CONF
my $mount = $srv->path('mount');
mkdir $mount or die $!;
system('mount', '-t', 'tmpfs', '-o', 'size=8m', 'none', $mount) == 0 or plan skip_all => 'tmpfs cannot be mounted';

sub open_files {        # of the server, on this mount
	return grep { (readlink($_) // '') =~ m{^\Q$mount\E/} } glob '/proc/' . $srv->pid . '/fd/*';
}
sub unmounted { return system("umount '$mount' 2>/dev/null") == 0 }

$srv->write('mount/large', 'L' x 300_000);
$srv->write('mount/small', 's' x 100);
$srv->write('beside', 'B' x 300_000);
is length $srv->fetch("/mount/$_")->{body}, -s "$mount/$_", "$_: sent" for qw(large small);
ok Test::Util::eventually(sub { open_files() == 1 }), 'the large one is held open, the small one is in memory';
ok !unmounted(), '... so it cannot be unmounted';

my $c = $srv->connect;
my $asked = 0;
ok Test::Util::eventually(sub {
	$c->send("GET /beside HTTP/1.1\r\nHost: x\r\n\r\n");
	$asked++ if ($c->reply // { status => 0 })->{status} == 200;
	$c = $srv->connect if $c->{eof};
	return unmounted();
}), 'it can, after a while without requests of its files';
is $srv->counter('server.cache.idle-closed'), 1, '... they were closed and counted, those in demand were not';
cmp_ok $srv->counter('server.cache.misses'), '<', $asked + 3, '... nor opened again';
is $srv->fetch('/mount/large')->{status}, 404, 'what was there is no more';
is $srv->fetch('/beside')->{status}, 200, 'the server goes on';

done_testing;
