# HTTP/2 where it meets other features: disks that hang while the server ends, limits that are reached, bans, programs that die, and the
# numbers of the access log.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Slowfs;
use File::Temp ();
use Test::App;
use Test::Backend;
use Test::Http qw(req);
use Test::Http2 qw(:all);
use Test::More;
use Test::Server;
use Test::Util qw(eventually put sanitized slurp);

my ($fuse) = Accel::Slowfs->usable;
my $backend = Test::Backend->new;
my $app = Test::App->start;
my $ok = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
my $root = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1); # a mount lies in it
my $disk = File::Temp->newdir('accel-src-XXXXXX', TMPDIR => 1); # what it shows
put("$disk/cold$_", 'c' x 50_000) for 1 .. 100;
put("$disk/large$_", 'l' x 1_500_000) for 1 .. 20;
put("$root/near$_", 'n' x 10_000) for 1 .. 50;
put("$root/a", 'A');
put("$root/big", 'b' x 3_000_000);
put("$root/$_->[0].sh", $_->[1]) for ['hello', 'printf "Content-Type: text/plain\r\n\r\nhello"'],
	['hangs', "echo \$\$ >>pids; exec sleep 1000\n"], ['half', "printf 'Content-Type: text/plain\\r\\n\\r\\nhalf'; echo \$\$ >>pids; exec sleep 1000\n"];
mkdir "$root/disk" or die "disk: $!";

sub start ($conf = '', %arg) {
	return Test::Server->start(dir => "$root", %arg, conf => qq{server.max-worker = 1\nserver.max-keep-alive-idle = 100\nserver.tag = "g0"\n}
		. qq{server.pid-file = "\@RUN\@/pid"\nstatus.statistics-url = "/counters"\naccesslog.filename = "\@RUN\@/access.log"\n}
		. qq{accesslog.format = "%h %s %U %O %I %b %X"\n$conf} . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket)
		. Test::Server::proxy_block('^/back/', 'unix:' . $backend->socket, protocol => 'http'));
}

# How often each kind of reply came.
sub tally (@r) {
	my %n;
	$n{ join ' ', $_->{status}, $_->{cut} ? 'cut' : length $_->{body} }++ for @r;
	return \%n;
}

sub near_are_served ($h, $what) {
	return is_deeply tally($h->gather(map { $h->open(GET => "/near$_") } 1 .. 50)), { '200 10000' => 50 }, $what;
}

sub slow_disk { return Accel::Slowfs->start(source => "$disk", at => "$root/disk", spindles => 2, lookup_ms => 1, read_ms => 1) }

# ---------------------------------------------------------------- disks that hang

# Streams that wait for a disk: in their look-up, or in the middle of a file.
sub hang ($slow, $h, $phase) {
	$phase eq 'look-up' ? $slow->hang('/cold*') : $slow->hang_after(1 << 19, '/large*');
	my @id = map { $h->open(GET => "/disk/$_") } $phase eq 'look-up' ? map { "cold$_" } 1 .. 50 : map { "large$_" } 1 .. 20;
	$slow->wait_hanging(1) or die "nothing hangs\n";
	return @id;
}

my %end = (
	HUP => sub ($srv, $h) {
		$srv->signal('HUP');
		ok $srv->wait_log(qr/ev=logs\.reopened/), 'logs are opened again';
		near_are_served($h, 'and the connection goes on');
		return $srv->term;
	},
	reload => sub ($srv, $h) {
		my $conf = $srv->run . '/server.conf';
		put($conf, slurp($conf) =~ s/g0/g1/r);
		$srv->signal('USR1');
		ok eventually(sub { ($srv->fetch('/a')->{header}{server} // '') eq 'g1' }), 'the next generation serves';
		ok $h->closed, 'the old one ends at its limit';
		return $srv->term;
	},
	map { my $how = $_; $how => sub ($srv, $h) { $srv->term($how) } } qw(QUIT TERM),
);

for my $how (sort keys %end) {
	subtest "$how while a disk hangs for ever" => sub {
		plan skip_all => 'no FUSE' unless $fuse;
		for my $phase ($how =~ /QUIT|reload/ ? () : 'look-up', 'read') {
			my $slow = slow_disk();
			# LeakSanitizer would wait for the threads that hang.
			my $srv = start(qq{server.feature-flags = ( "server.graceful-shutdown-timeout" => 1 )\n}, env => { ASAN_OPTIONS => 'detect_leaks=0' });
			my $h = Test::Http2->connect($srv);
			my @id = hang($slow, $h, $phase);
			near_are_served($h, "$phase: files of another disk are served");
			is +($end{$how}->($srv, $h))[0], 0, 'the server ends';
			ok $h->closed, 'so does the connection';
			is +(grep { $_->{status} && !$_->{cut} } map { $h->reply($_) } @id), 0, 'and no reply looks whole';
			$slow->stop;
		}
	};
}

subtest 'resets of streams that wait for a disk' => sub {
	plan skip_all => 'no FUSE' unless $fuse;
	my $slow = slow_disk();
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	for my $phase ('look-up', 'read') {
		$h->reset($_) for hang($slow, $h, $phase);
		near_are_served($h, "$phase: the connection goes on");
		$slow->go;
	}
	my @id = hang($slow, $h, 'look-up');
	$h->abort;
	my $next = Test::Http2->connect($srv);
	near_are_served($next, 'a client that leaves costs no other');
	$slow->go;
	is_deeply tally($next->gather(map { $next->open(GET => "/disk/cold$_") } 1 .. 100)), { '200 50000' => 100 }, 'and its files are sent to the next one';
	undef $srv;
	$slow->stop;
};

# ---------------------------------------------------------------- limits that are reached

subtest 'one job at a time, and few descriptors' => sub {
	plan skip_all => 'no FUSE' unless $fuse;
	my $slow = slow_disk();
	for my $limit ('server.max-blocking-queue = 1', 'server.max-fds = 40') {
		my $srv = start("$limit\n");
		my $h = Test::Http2->connect($srv);
		$h->get("/near$_") for 1 .. 50;
		my @r = $h->gather(map { $h->open(GET => "/disk/cold$_") } 1 .. 100);
		is +(grep { $_->{status} != 503 && ($_->{status} != 200 || (!$_->{cut} && length $_->{body} != 50_000)) } @r), 0, "$limit: 200 or 503";
		is $h->get('/near1')->{status}, 200, 'then it goes on';
		is $h->{goaway}, undef, 'on the same connection';
		undef $srv;
		$slow->forget;
	}
	$slow->stop;
};

subtest 'memory is short' => sub {
	plan skip_all => 'sanitizers need more' if sanitized();
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	near_are_served($h, 'files');
	my ($kib) = slurp("/proc/@{[ $srv->pid ]}/status") =~ /VmSize:\s+(\d+)/;
	syscall(302, $srv->pid + 0, 9, pack('QQ', ($kib + 4096) * 1024, ~0), 0) == 0 or die "prlimit64: $!";       # RLIMIT_AS
	my @k = map { Test::Http2->connect($srv, window => 0) } 1 .. 20;
	for my $k (@k) {
		$k->open(GET => '/big', 'X-Long' => 'x' x 4000) for 1 .. 95;
		$k->open(POST => '/app/env', end => 0) for 1 .. 5;
		$k->alive;
	}
	near_are_served($h, 'a client that has its connection is served');
	$_->abort for @k;
	near_are_served(Test::Http2->connect($srv), 'so is a new one when the others are gone');
	is +($srv->term)[0], 0, 'the server ends';
};

subtest 'server.max-connections' => sub {
	my $srv = start("server.max-connections = 20\n");
	my @busy = map { my $h = Test::Http2->connect($srv); [$h, $h->open(GET => '/back/x'), $backend->accept] } 1 .. 8;
	$_->[2]->head for @busy;
	my %other = (
		'half a preface' => sub { Test::Http2->connect($srv, preface => 0)->send(substr PREFACE, 0, 20) },
		'a preface' => sub { Test::Http2->connect($srv) },
		'half a head' => sub { Test::Http2->connect($srv)->frame(HEADERS, 0, 1, "\x82") },
		'idle' => sub { my $h = Test::Http2->connect($srv); $h->get('/a'); return $h },
		'PING' => sub { my $h = Test::Http2->connect($srv); $h->alive; return $h },
	);
	for my $name (sort keys %other) {
		my @held = map { $other{$name}->() } 1 .. 30;
		is(Test::Http2->connect($srv)->get('/a')->{body}, 'A', "$name: others make room");
		next if $name ne 'idle';
		ok $held[0]->closed && $held[0]{goaway}, 'the first has lost its place, with GOAWAY';
		is_deeply [@{ $held[0]{goaway} // [] }[0, 1]], [1, NO_ERROR], 'that tells what was taken';
	}
	$_->[2]->send($ok) for @busy;
	is_deeply tally(map { $_->[0]->gather($_->[1]) } @busy), { '200 2' => 8 }, 'those with a request have kept their place';
};

# ---------------------------------------------------------------- other features

subtest 'server.ban-file' => sub {
	my $srv = start(qq{server.ban-file = "\@RUN\@/bans"\n});
	my ($idle, $busy) = map { Test::Http2->connect($srv) } 1 .. 2;
	$idle->get('/a');
	my $id = $busy->open(GET => '/back/x');
	(my $b = $backend->accept)->head;
	put($srv->run . '/bans', "127.0.0.1\n");
	$srv->wait_log(qr/ev=bans\.read/);
	is_deeply tally($idle->request(GET => '/a')), { '0 cut' => 1 }, 'a banned peer gets no reply';
	ok $idle->closed, 'and loses its connection';
	is_deeply [@{ $idle->{goaway} // [] }[0, 1]], [3, NO_ERROR], 'after GOAWAY';
	my $late = $busy->open(GET => '/a');
	$busy->gather($late);
	$b->send($ok);
	is_deeply tally($busy->gather($id)), { '200 2' => 1 }, 'a reply that is on its way is sent';
	ok $busy->closed, 'before the connection ends';
	is +(grep { / 200 .*\/a / } $srv->log('access.log') =~ /^.*\n/mg), 1, 'and nothing was answered after the ban';
};

subtest 'the helper is killed under CGI programs' => sub {
	my $srv = start(qq{cgi.assign = ( ".sh" => "/bin/sh" )\n});
	my $h = Test::Http2->connect($srv);
	is_deeply tally($h->gather(map { $h->open(GET => '/hello.sh') } 1 .. 50)), { '200 5' => 50 }, '50 programs';
	my $programs = sub { return split /\n/, slurp("$root/pids") };
	my @id = map { $h->open(GET => $_) } ('/hangs.sh') x 3, ('/half.sh') x 3;
	ok eventually(sub { 6 == (() = $programs->()) && 3 == grep { length $h->reply($_)->{body} || !$h->alive } @id }), 'six that do not end';
	kill KILL => $srv->helper;
	is_deeply tally($h->gather(@id)), { '502 445' => 3, '200 cut' => 3 }, '502, or a cut reply';
	ok eventually(sub { $h->get('/hello.sh')->{body} eq 'hello' }), 'programs run again';
	@id = map { $h->open(GET => $_) } ('/hangs.sh') x 3, ('/half.sh') x 3;
	ok eventually(sub { 12 == (() = $programs->()) }), 'six more';
	$h->reset($_) for @id;
	ok eventually(sub { !grep { !Test::Server::is_gone($_) } $programs->() }), 'end with their streams';
	is $h->get('/a')->{body}, 'A', 'the connection goes on';
};

subtest 'replies that begin in one round of the loop' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	my %b;
	my @id = map { my $id = $h->open(GET => "/back/$_"); ($b{$id} = $backend->accept)->head; $id } 1 .. 8;
	kill STOP => $srv->pid;
	$_->send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\nhalf") for values %b;
	kill CONT => $srv->pid;
	$h->await(sub ($f) { 8 == grep { length $h->reply($_)->{body} } @id });
	$h->reset($_) for @id;
	ok eventually(sub { 8 == grep { $_->closed(0) } values %b }), 'each application learns that its client has left'
		or diag scalar grep { $_->closed(0) } values %b;
	is $h->get('/a')->{body}, 'A', 'the connection goes on';
};

subtest 'uploads that are spooled' => sub {
	my $srv = start(qq{server.stream-request-body = 0\nserver.upload-dirs = ( "\@RUN\@" )\n});
	$srv->fetch('/app/env');
	my $spools = sub { return scalar grep { (readlink($_) // '') =~ /\(deleted\)/ } glob "/proc/@{[ $srv->pid ]}/fd/*" };
	for my $way (qw(reset abort finish)) {
		my $h = Test::Http2->connect($srv);
		my @id;
		for (1 .. 5) { push @id, my $id = $h->open(POST => '/app/env', end => 0); $h->data($id, 'x' x 300_000) }
		ok eventually(sub { $h->alive && $spools->() == 5 }), 'five files';
		if ($way eq 'reset') { $h->reset($_) for @id }
		else { $h->$way; close $h->{conn}->sock }
		ok eventually(sub { $spools->() == 0 }), "$way: they are gone";
	}
};

subtest 'the access log' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	$h->get('/big');
	$h->head('/big');
	$h->request(POST => '/app/env', body => 'u' x 200_000);
	my $k = Test::Http2->connect($srv, window => 100_000);
	$k->open(GET => '/big');
	$k->await(sub ($f) { length $k->reply(1)->{body} == 100_000 });
	$k->reset(1);
	$k->alive;
	my $few = Test::Http2->connect($srv, window => 1000);
	$few->open(GET => '/back/few');
	(my $b = $backend->accept)->head;
	$b->send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10000\r\n\r\n" . 'x' x 10_000);
	$few->await(sub ($f) { length $few->reply(1)->{body} == 1000 });
	$few->reset(1);
	my @line = map { [split] } $srv->wait_lines(5, qr/./, 'access.log');
	is_deeply [map { "@$_[1, 2, 6]" } @line], ['200 /big -', '200 /big -', '200 /app/env -', '200 /big X', '200 /back/few X'], 'a line for each';
	is_deeply [map { $_->[5] } @line[0, 1]], [3_000_000, 0], '%b: bytes of bodies';
	is +(grep { $_->[3] - $_->[5] < 50 || $_->[3] - $_->[5] > 500 } @line), 0, '%O: with their heads' or diag join '|', map { "@$_" } @line;
	cmp_ok abs($line[2][4] - 200_000), '<', 200, '%I: with the body that came';
	cmp_ok abs($line[3][5] - 100_000), '<', 500, 'a cut reply: what was sent of it';
	cmp_ok abs($line[4][5] - 1000), '<', 500, 'even if it was less than the first piece' or diag join '|', map { "@$_" } @line;
};

subtest 'the access log, when a client leaves while its application thinks' => sub {
	my $srv = start(qq{cgi.assign = ( ".sh" => "/bin/sh" )\n});
	my %leave = (
		'HTTP/1, GET' => sub { my $c = $srv->connect; $c->send(req('/half.sh')); $c->take(12); $c->abort },
		'HTTP/1, HEAD' => sub { my $c = $srv->connect; $c->send("HEAD /half.sh HTTP/1.1\r\nHost: x\r\n\r\n"); $c->take(12); $c->abort },
		(map { my $how = $_; ("HTTP/2, $how" => sub ($h = Test::Http2->connect($srv), $id = $h->open(GET => '/half.sh')) {
			$h->await(sub ($f) { length $h->reply($id)->{body} });
			$how eq 'reset' ? $h->reset($id)->alive : $h->abort;
		}) } qw(reset abort)),
		'HTTP/2, HEAD' => sub ($h = Test::Http2->connect($srv)) { $h->head('/half.sh'); $h->abort },
	);
	my $n = 0;
	for my $how (sort keys %leave) {
		$leave{$how}->();
		my @line = $srv->wait_lines(++$n, qr/./, 'access.log');
		like $line[-1], qr{ 200 /half\.sh .* X$}, "$how: a line, and the reply is cut";
	}
};

done_testing;
