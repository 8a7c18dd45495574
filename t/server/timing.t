# Timing lines: each file sent has one, the scripts of 2007 read them, accel-graph draws them.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use JSON::PP ();
use lib "$FindBin::Bin/../../scripts/lib";
use Accel::Slowfs;
use Test::More;
use Test::Server;
use Time::HiRes qw(time);

my %tag = (writev => qr/network_writev\.c\.\d+/, 'linux-sendfile' => qr/network_linux_sendfile\.c\.\d+/,
	'gthread-aio' => qr/network_gthread_aio\.c\.78/);
my @stage = qw(stat-queue stat proxy-queue proxy read-queue read handover write total);
my $keys = join ' ', map { "$_-us=\\d+" } @stage;

for my $backend (sort keys %tag) {
	subtest "$backend: one line per file, in the documented form" => sub {
		my $srv = Test::Server->start(conf => qq{server.network-backend = "$backend"\ndebug.log-timing = "enable"\n});
		my %size = ('a.txt' => 5, 'b.bin' => 102_400, 'c"d.bin' => 3_000_000);
		$srv->write($_, 'x' x $size{$_}) for keys %size;
		my $t = time;
		for my $name (sort keys %size) {
			my $c = $srv->connect;
			for (1 .. 2) {
				$c->send('GET /' . $name =~ s/"/%22/r . " HTTP/1.1\r\nHost: x\r\n\r\n");
				is length $c->reply->{body}, $size{$name}, $name;
			}
		}
		my @line = $srv->wait_lines(6, qr/ write-start: /);
		is scalar @line, 6, 'one line per file';
		for (@line) {
			like $_, qr/\A$tag{$backend}: \(trace\) write-start: \d+\.\d{6} read-queue-wait: \d+ ms read-time: \d+ ms write-time: \d+ ms id=\S+ status=200 bytes=\d+ hot=[01] $keys path="[^"]*"\z/, 'form';
		}
		my %bytes = map { /bytes=(\d+) .*path="([^"]*)"/ ? ($2 => $1) : () } @line;
		is_deeply \%bytes, { '/a.txt' => 5, '/b.bin' => 102_400, '/c\x22d.bin' => 3_000_000 }, 'whose bytes, quoted safely';
		my ($start) = $line[0] =~ /write-start: (\S+)/;
		ok $start > $t - 2 && $start < time + 2, 'write-start is the wall clock';
		my %id = map { /id=(\S+)/ ? ($1 => 1) : () } @line;
		is scalar keys %id, 6, 'each has an id of its own';
		for (@line) {
			my %us = /(\S+)-us=(\d+)/g;
			my $sum = 0;
			$sum += $us{$_} for qw(stat proxy write);
			cmp_ok $us{total}, '>=', $sum - 1000, 'no stage is longer than the whole' or diag $_;
		}
	};
}

subtest 'a range has a line, a missing file has none' => sub {
	my $srv = Test::Server->start(conf => qq{debug.log-timing = "enable"\n});
	$srv->write('f', 'x' x 100_000);
	$srv->get('/f', Range => 'bytes=0-999');
	$srv->get('/missing');
	$srv->get('/f?last');
	my @line = $srv->wait_lines(2, qr/ write-start: /);
	is scalar(grep { /status=206 bytes=1000 / } @line), 1, 'a part counts what was sent';
	is scalar(grep { /status=404/ } @line), 0, 'no file, no line';
};

subtest 'the pipeline of 2007 reads the lines' => sub {
	my $srv = Test::Server->start(conf => qq{server.network-backend = "gthread-aio"\ndebug.log-timing = "enable"\n});
	$srv->write("f$_", 'x' x 102_400) for 1 .. 5;
	$srv->get("/f$_") for 1 .. 5;
	$srv->wait_lines(5, qr/ write-start: /);
	my $file = $srv->run . '/error.log';
	my $out = qx{grep 'network_gthread_aio.c.78:' '$file' | awk '{ print \$4 " " \$6 " " \$9 " " \$12 }' | sort -n};
	my @rows = split /\n/, $out;
	is scalar @rows, 5, 'five rows';
	like $_, qr/\A\d{10}\.\d{6} \d+ \d+ \d+\z/, 'start, queue wait, read, write' for @rows;
};

subtest 'JSON lines become a chart' => sub {
	my $srv = Test::Server->start(conf => qq{debug.log-timing = "json"\n});
	$srv->write("f$_", 'x' x 1000 x $_) for 1 .. 30;
	for (1 .. 30) { $srv->get("/f$_") }
	my @rows = map { JSON::PP->new->decode($_) } $srv->wait_lines(30, qr/^\{.*"write-start"/);
	is scalar @rows, 30, 'thirty objects';
	is_deeply [sort keys %{ $rows[0] }], [sort 'write-start', 'backend', 'id', 'status', 'bytes', 'hot', 'path', map { "$_-us" } @stage], 'the same names';
	is $rows[4]{bytes}, 5000, 'bytes';
	is $rows[4]{path}, '/f5', 'path';

	my $lines = Test::Server->start(dir => $srv->dir, conf => qq{debug.log-timing = "enable"\n});
	$lines->get("/f$_") for 1 .. 30;
	$lines->wait_lines(30, qr/ write-start: /);
	for ([$srv, 'JSON'], [$lines, 'lines']) {
		my ($s, $what) = @$_;
		my $to = File::Temp->newdir;
		my $err = "$to/stderr";
		my $file = $s->run . '/error.log';
		my $out = qx{$^X '$FindBin::Bin/../../scripts/accel-graph' --ascii '$file' 2>'$err'};
		is $? >> 8, 0, "accel-graph reads the $what" or diag $out, Test::Util::slurp($err);
		like $out, qr/\btotal\b.*\n/, '... prints the table';
		like $out, qr/\b30\b/, '... of all thirty';
	}
};

for my $format ('enable', 'json') {
	subtest "$format: a client that leaves has a line, with cut" => sub {
		my $srv = Test::Server->start(conf => qq{server.network-backend = "gthread-aio"\ndebug.log-timing = "$format"\n});
		$srv->write('big', 'x' x (32 << 20));
		my $c = $srv->connect(rcvbuf => 4096);
		$c->send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
		$c->take(12);
		$c->abort;
		$srv->get('/big');
		my @line = $srv->wait_lines(2, qr/write-start/);
		my ($cut, @more) = grep { /\bcut\b/ } @line;
		is scalar @more, 0, 'the other client has the whole file';
		like $cut // '', $format eq 'json' ? qr/,"total-us":\d+,"cut":true,"path":/ : qr/ total-us=\d+ cut=1 path=/, 'it is marked';
		my ($bytes) = ($cut // '') =~ /\bbytes\b\W+(\d+)/;
		cmp_ok $bytes // 0, '>', 0, 'bytes that were sent';
		cmp_ok $bytes // 0, '<', 32 << 20, '... and no others';
		my $graph = JSON::PP->new->decode(scalar qx{$^X '$FindBin::Bin/../../scripts/accel-graph' --json --no-charts '${\ ($srv->run . '/error.log')}'});
		is_deeply [@$graph{qw(requests cut rejected)}], [2, 1, 0], 'accel-graph reads both';
	};
}

subtest 'a client that starves has the time that it waited for a read thread' => sub {
	my ($usable, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $usable;
	my $disk = File::Temp->newdir;
	for my $name (qw(hangs starves)) {
		open my $fh, '>', "$disk/$name" or die "$name: $!";
		print $fh 'x' x (2 << 20);
		close $fh or die "$name: $!";
	}
	my $slow = Accel::Slowfs->start(source => "$disk", spindles => 16, lookup_ms => 0, read_ms => 0);
	my $srv = Test::Server->start(dir => $slow->dir,
		conf => qq{server.max-worker = 1\nserver.network-backend = "gthread-aio"\nserver.max-read-threads = 1\nserver.max-write-idle = 1\ndebug.log-timing = "enable"\n});
	$slow->hang_after(1 << 20, '/hangs');
	my @c = map { my $c = $srv->connect; $c->send("GET /hangs HTTP/1.1\r\nHost: x\r\n\r\n"); $c } 1;
	ok $slow->wait_hanging(1), 'the only read thread hangs';
	push @c, $srv->connect;
	$c[1]->send("GET /starves HTTP/1.1\r\nHost: x\r\n\r\n");
	my %line = map { m{path="/(\w+)"} ? ($1 => $_) : () } $srv->wait_lines(2, qr/ cut=1 /);
	my %us = map { my $name = $_; $name => { $line{$name} =~ /(\S+)-us=(\d+)/g } } keys %line;
	cmp_ok $us{starves}{'read-queue'} // 0, '>=', 900_000, 'one waited for the thread';
	cmp_ok $us{hangs}{read} // 0, '>=', 900_000, 'the other one for the disk';
	cmp_ok $us{hangs}{'read-queue'} // 0, '<', 900_000, '... which is not the wait for a thread';
	like $line{$_} // '', qr/ hot=0 /, "$_ is not hot" for qw(hangs starves);
	$slow->go;
	$srv->stop;
	$slow->stop;
};

subtest 'timing lines are off by default' => sub {
	my $srv = Test::Server->start(conf => '');
	$srv->write('f', 'x');
	$srv->get('/f');
	$srv->term;
	unlike $srv->log, qr/write-start/, 'no line';
};

done_testing;
