# Reloads in a row, under load: no download of an earlier configuration is cut, each such configuration costs little, and what it
# had goes back when its last download has ended.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually program sanitized);
use Time::HiRes qw(sleep);

use constant { RELOADS => 12, WORKERS => 4, SIZE => 8 << 20, ROOM_MIB => 3, EACH_MIB => 1.5, EACH_FDS => 12 };

my $srv = Test::Server->start(conf => "server.max-worker = @{[WORKERS]}\nserver.max-keep-alive-idle = 1\nserver.cache.max-idle = 1\nserver.hotset-percent = 0\n"); # what it holds of /big is not a leak
my $url = 'http://127.0.0.1:' . $srv->port;
$srv->sparse('big', SIZE);
$srv->write("f$_", 'x' x 8000) for 1 .. 20;

sub clients { open my $out, '-|', program('accel-load'), '-q', '-c', 100, '-n', 4000, map { "$url/f$_" } 1 .. 20 or die "accel-load: $!"; return $out }
sub report ($from) { local $/ = undef; return readline $from }
sub threads { my @task = glob '/proc/' . $srv->pid . '/task/*'; return scalar @task }

sub reload {
	my $seen = () = $srv->log =~ /ev=reloaded/g;
	$srv->signal('USR1');
	return eventually(sub { (() = $srv->log =~ /ev=reloaded/g) > $seen });
}

# The server as it is without clients: all connections of the load have ended, and its loops have rested.
sub quiet ($descriptors = 0) {
	eventually(sub { $srv->descriptors <= $descriptors }) if $descriptors;
	my $last = $srv->rss;
	eventually(sub { my $is = $last; $last = $srv->rss; sleep 1.1; return abs($last - $is) < 0.1 });
	return (rss => $srv->rss, descriptors => $srv->descriptors, threads => threads());
}

like report(clients()), qr/no errors/, 'a usual load';
is length $srv->fetch('/big')->{body}, SIZE, 'a large file';
is reload(), 1, 'and a reload';
like report(clients()), qr/no errors/, 'and another load';
my %before = quiet();
my @downloads;
my $load = clients();
for my $n (1 .. RELOADS) {
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send(req('/big'));
	like $c->up_to("\r\n\r\n", time + Test::Util::PATIENCE), qr/ 200 /, "download $n begins";
	push @downloads, $c;
	ok reload(), "reload $n";
}
like report($load), qr/no errors/, 'clients beside see nothing of it';
my %most = quiet();
cmp_ok $most{threads}, '<=', $before{threads} + RELOADS + 1, 'each old generation keeps one thread of ' . WORKERS;
cmp_ok $most{descriptors}, '<=', $before{descriptors} + RELOADS * EACH_FDS, '... and few descriptors';
is scalar(grep { length $_->take(SIZE) == SIZE } @downloads), RELOADS, 'all downloads end whole';
unlike $srv->log, qr/ev=drain\.cut/, '... none was cut';
undef @downloads;
my %after = quiet($before{descriptors});
is $after{descriptors}, $before{descriptors}, 'descriptors are back';
cmp_ok $after{threads}, '<=', $before{threads} + 1, 'threads are back, except one that gives memory back';
SKIP: {
	skip 'a sanitizer keeps freed memory', 2 if sanitized();
	cmp_ok $most{rss}, '<=', $before{rss} + RELOADS * EACH_MIB, 'an old generation takes little memory';
	cmp_ok $after{rss}, '<=', $before{rss} + ROOM_MIB, '... and gives it back';
}
note sprintf 'RSS %.1f MiB before, %.1f with %d old generations, %.1f after; descriptors %d, %d, %d', $before{rss}, $most{rss}, RELOADS, $after{rss}, $before{descriptors}, $most{descriptors}, $after{descriptors};
done_testing;
