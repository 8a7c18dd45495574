# HTTP/2: a stream that waits for a slow disk holds no other stream.  The order of ends shows it, and a disk that hangs until the
# test lets it go.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use Test::Http2 qw(:all);
use Test::More;
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(eventually put);

my ($fuse, $no_fuse) = Accel::Slowfs->usable;
plan skip_all => $no_fuse unless $fuse;

my $root = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1); # a mount lies in it
my $disk = File::Temp->newdir('accel-src-XXXXXX', TMPDIR => 1); # what it shows
my %body = (hot => 'h' x 10_000, cold => 'c' x 50_000, large => join '', map { sprintf "%015d\n", $_ } 1 .. 1 << 16);
put("$disk/hot$_", $body{hot}) for 1 .. 50;
put("$disk/cold$_", $body{cold}) for 1 .. 150;
put("$disk/large$_", $body{large}) for 1 .. 4;
put("$root/near$_", $body{hot}) for 1 .. 50;
mkdir "$root/disk" or die "disk: $!";
my $slow = Accel::Slowfs->start(source => "$disk", at => "$root/disk", spindles => 2, lookup_ms => 1, read_ms => 1);

sub start ($conf = '') {
	return Test::Server->start(dir => "$root", conf => qq{server.max-worker = 1\nserver.max-keep-alive-idle = 100\nstatus.statistics-url = "/counters"\n$conf});
}

sub cold_again { $slow->forget; return }
sub wrong ($body, @r) { return scalar grep { $_->{status} != 200 || $_->{body} ne $body } @r }

for my $backend (Test::Server::backends()) {
	subtest $backend => sub {
		cold_again();
		my $srv = start(qq{server.network-backend = "$backend"\n});
		my $h = Test::Http2->connect($srv);
		$h->gather(map { $h->open(GET => "/disk/hot$_") } 1 .. 50);
		$slow->hang('/cold*');
		my @cold = map { $h->open(GET => "/disk/cold$_") } 1 .. 10;
		ok $slow->wait_hanging(1), 'cold files wait for their disk';
		my @near = map { $h->open(GET => "/near$_") } 1 .. 50;
		is wrong($body{hot}, $h->gather(@near)), 0, '50 files of another disk, asked for after them, are sent';
		my %ended = map { $_ => 1 } @{ $h->{ended} };
		is +(grep { $ended{$_} } @cold), 0, 'before any of the cold ones';
		$slow->go;
		is wrong($body{cold}, $h->gather(@cold)), 0, 'the cold ones come when their disk does';
		is $h->{goaway}, undef, 'on the same connection';
	};
}

subtest 'the middle of a large file' => sub {
	cold_again();
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	$slow->hang_after(1 << 19, '/large*');
	my @large = map { $h->open(GET => "/disk/large$_") } 1 .. 4;
	ok $h->await(sub ($f) { 4 == grep { length $h->reply($_)->{body} > 0 } @large }), 'four are on their way';
	ok $slow->wait_hanging(1), 'their next bytes do not come';
	is wrong($body{hot}, $h->gather(map { $h->open(GET => "/near$_") } 1 .. 50)), 0, 'the small ones overtake them';
	is +(grep { $h->{stream}{$_}{over} } @large), 0, 'which are not ready';
	$slow->go;
	is wrong($body{large}, $h->gather(@large)), 0, 'then they are, byte for byte';
};

subtest 'a reset withdraws what waits' => sub {
	cold_again();
	my $srv = start("server.max-stat-threads = 1\n");
	my $h = Test::Http2->connect($srv);
	$slow->hang('/cold*');
	my $first = $h->open(GET => '/disk/cold1');
	ok $slow->wait_hanging(1), 'the only thread waits';
	my @id = map { $h->open(GET => "/disk/cold$_") } 11 .. 60;
	ok $h->alive, '50 wait behind it';
	$h->reset($_) for @id;
	ok $h->alive, 'and are reset';
	my $before = $slow->state;
	$slow->go;
	is wrong($body{cold}, $h->gather($first)), 0, 'the first one is sent';
	is wrong($body{cold}, $h->get('/disk/cold2')), 0, 'so is one that was asked for afterwards';
	my $after = $slow->state;
	cmp_ok $after->{lookups} - $before->{lookups}, '<', 10, 'the disk was not asked for those' if defined $after->{lookups};
	is $h->{goaway}, undef, 'the connection goes on';
};

subtest 'a disk that hangs' => sub {
	cold_again();
	my $srv = start("server.max-open-idle = 2\n");
	my ($h, $other) = map { Test::Http2->connect($srv) } 1 .. 2;
	$slow->hang('/cold*');
	my @cold = map { $h->open(GET => "/disk/cold$_") } 1 .. 99;
	ok $slow->wait_hanging(2), '99 streams of a connection wait for it';
	is wrong($body{hot}, map { $h->get("/near$_") } 1 .. 20), 0, 'its last stream is good for 20 files';
	is wrong($body{hot}, $other->gather(map { $other->open(GET => "/near$_") } 1 .. 50)), 0, 'other connections have all of theirs';
	like $srv->get('/near1'), qr{^HTTP/1\.1 200 }, 'of HTTP/1, too';
	my @r = $h->gather(@cold);
	is_deeply [map { $_->{status} } @r], [(503) x 99], '503 after server.max-open-idle';
	is wrong($body{hot}, $h->get('/near1')), 0, 'the connection goes on';
	$slow->go;
	ok eventually(sub { wrong($body{cold}, $h->get('/disk/cold1')) == 0 }), 'and so does the disk';
	is $srv->stop, '', 'the end is clean';
};

subtest 'a client that leaves while its streams wait' => sub {
	cold_again();
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	my $sockets = sub () { scalar grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/@{[ $srv->pid ]}/fd/*" };
	ok $h->alive, 'a client that stays';
	my $few = $sockets->();
	my $gone = Test::Http2->connect($srv);
	$slow->hang('/cold*');
	$gone->open(GET => "/disk/cold$_") for 1 .. 100;
	ok $slow->wait_hanging(2), '100 streams wait';
	$gone->abort;
	is wrong($body{hot}, $h->get('/near1')), 0, 'another client is served';
	$slow->go;
	ok eventually(sub { $sockets->() <= $few }), 'nothing is left of the connection';
	is wrong($body{cold}, $h->get('/disk/cold1')), 0, 'and the disk is free';
};

done_testing;
