# One address takes every place with downloads that it does not read, on a site that no four addresses visit.  The only other client is
# served, and clients that read are not cut.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Http qw(req);
use Test::Util qw(eventually);
use Time::HiRes qw(time);

my $MAX = 20;
my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nserver.max-connections = $MAX\n}
	. qq{server.max-read-idle = 300\nserver.max-write-idle = 300\nstatus.statistics-url = "/statistics"\n});
$srv->write('a', 'A');
$srv->sparse('big', 8 << 30);

sub download { my (@opt) = @_; my $c = $srv->connect(@opt); $c->send(req('/big')); return $c }

my $reads = download(from => '127.0.0.1');
like $reads->take(12), qr/ 200/, 'a client that reads has begun';
my $got = 0;
sub read_on { while (my $n = sysread $reads->sock, my $bytes, 1 << 16) { $got += $n; last if $got % (1 << 20) < $n } return }

my @held = map { download(from => '127.0.0.1', rcvbuf => 4096) } 1 .. $MAX + 5;
is scalar(grep { $_->take(12) =~ / 200/ } @held[0 .. $MAX - 2]), $MAX - 1, 'every place is taken';

my $began = time;
my $other = $srv->connect(from => '127.0.0.2');
$other->send(req('/a', 'Connection: close'));
ok eventually(sub { read_on(); !$other->silent }, 30), 'another address is served';
like $other->rest, qr/^HTTP\S+ 200 .*\r\n\r\nA\z/s, sprintf 'and has its whole answer, after %.1f s', time - $began;
like $srv->wait_log(qr/closed=busy/), qr/ev=connection\.made-room why="[^"]*slow" closed=busy address=127\.0\.0\.1 /, 'the log says who made room, and why';

my $c = $srv->connect(from => '127.0.0.2');
$c->send(req('/statistics', 'Connection: close'));
like $c->rest, qr/^server\.connections\.room-slow: [1-9]/m, 'those cut are counted';
my $before = $got;
ok eventually(sub { read_on(); $got > $before + (2 << 20) }), 'the client that reads goes on';

done_testing;
