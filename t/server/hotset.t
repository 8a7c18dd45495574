# server.hotset-percent: what is wanted again is held in the server's own memory, within a budget, and is sent whole while its
# disk hangs.  Each byte is looked at, because pieces of that memory are used again and again.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Slowfs;
use File::Temp ();
use Test::Cgroup;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually put);

use constant { FILES => 60, SIZE => 300_000, BUDGET => 12, LIMIT => 64 << 20 };

sub bytes ($name) { return substr "$name " x (SIZE / length("$name ") + 1), 0, SIZE }
sub count ($srv, $name) { my ($n) = $srv->fetch('/statistics')->{body} =~ /^server\.hotset\.$name: (\d+)/m; return $n }
my $stats = qq{status.statistics-url = "/statistics"\n};

# Twice each, with half of a reply left behind in between.
sub ask_all ($srv, @name) {
	my $wrong = 0;
	for (1 .. 2) {
		for my $name (@name) {
			my $c = $srv->connect(rcvbuf => 4096);
			$c->send(req("/$name"));
			$c->take(20_000);
			$c->abort;
			my $r = $srv->fetch("/$name");
			$wrong++ if $r->{status} != 200 || $r->{body} ne bytes($name);
		}
	}
	return $wrong;
}

subtest 'none' => sub {
	my $srv = Test::Server->start(conf => "server.hotset-percent = 0\n$stats");
	$srv->write('f', bytes('f'));
	is ask_all($srv, 'f', 'f', 'f'), 0, 'files are sent';
	is count($srv, $_), 0, "$_: 0" for qw(filled sent evicted);
};

subtest 'a budget' => sub {
	my ($usable, $why) = Test::Cgroup->usable;
	plan skip_all => $why unless $usable;
	plan skip_all => 'a sanitizer does not fit into the cgroup' if Test::Util::sanitized();
	my $group = Test::Cgroup->new(bytes => LIMIT);
	my $srv = Test::Server->start(conf => "server.hotset-percent = @{[BUDGET]}\nserver.max-worker = 1\n$stats",
		under => ['sh', '-c', 'echo $$ >"$0" && exec "$@"', $group->dir . '/cgroup.procs']);
	my @name = map { "file$_" } 1 .. FILES;
	$srv->write($_, bytes($_)) for @name;
	is ask_all($srv, @name), 0, 'each file is sent as it is, again and again';
	is ask_all($srv, map { ($_) x 3 } @name[0 .. 9]), 0, '... and those that are wanted most';
	cmp_ok count($srv, 'sent'), '>', 20, 'many from the memory of the server';
	ok eventually(sub { ask_all($srv, @name); count($srv, 'evicted') > 0 }), 'windows make room (server.hotset.evicted)';
	my ($held) = $srv->fetch('/statistics')->{body} =~ /hotset\.bytes: (\d+)/;
	cmp_ok $held, '<=', LIMIT / 100 * BUDGET, 'it takes no more than its budget';
	$srv->write($name[0], bytes('other'));
	ok eventually(sub { $srv->fetch("/$name[0]")->{body} eq bytes('other') }), 'a new file is sent when the cache has seen it';
	$srv->stop;
	undef $srv;
	$group->remove;
};

subtest 'a disk that hangs' => sub {
	my ($usable, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $usable;
	my $www = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
	put("$www/$_", bytes($_)) for qw(hot other);
	for my $backend (grep { /^(?:adaptive|linux-sendfile|writev|io-uring)\z/ } Test::Server::backends()) {
		my $disk = Accel::Slowfs->start(source => "$www", spindles => 16, read_ms => 0, lookup_ms => 0);
		my $srv = Test::Server->start(dir => $disk->dir, conf => qq{server.max-worker = 1\nserver.network-backend = "$backend"\n$stats});
		ok eventually(sub { $srv->fetch('/hot'); count($srv, 'filled') >= 2 }), "$backend: it is held";
		$disk->hang('*');
		my $cold = $srv->connect;
		$cold->send(req('/other'));
		ok $disk->wait_hanging(1), '... another file of its disk hangs';
		is scalar(grep { $srv->fetch('/hot')->{body} ne bytes('hot') } 1 .. 5), 0, '... and it is sent whole';
		my $slow = $srv->connect(rcvbuf => 4096);
		$slow->send(req('/hot'));
		like $slow->up_to("\r\n\r\n", time + Test::Util::PATIENCE), qr/ 200 /, '... to a slow reader, too';
		is $slow->take(SIZE), bytes('hot'), '... byte for byte';
		$disk->go;
		like $cold->up_to("\r\n\r\n", time + Test::Util::PATIENCE), qr/ 200 /, '... the other one when the disk answers';
		$srv->stop;
		$disk->stop;
	}
};

done_testing;
