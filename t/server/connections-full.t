# A client that takes every connection shuts no other client out.  Idle connections make room first, then silent ones of the
# address with most of them, then busy ones of an address with more than half of all.  An address may have
# server.max-connections-per-address, in all workers and over a reload.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Http qw(req);
use Time::HiRes qw(time);

my $MAX = 100;
my $slow = Test::Util::build_dir() =~ /asan|tsan/ ? 4 : 1;

sub counter ($srv, $name) {
	my $c = $srv->connect(from => '127.0.0.9');
	$c->send(req('/statistics', 'Connection: close'));
	return $c->rest =~ /^server\.connections\.\Q$name\E: ([0-9]+)/m ? $1 : -1;
}

# Connections of a well-behaved client: how many get their reply.  Idle connections live for 300 s, so a reply within the
# patience of a test comes from room that was made.
sub served ($srv, $n, $from = undef) {
	my $ok = 0;
	for (1 .. $n) {
		my $c = $srv->connect(from => $from // '127.0.0.1');
		$c->send(req('/a'));
		$ok++ if $c->take(12) eq 'HTTP/1.1 200';
		last if $_ == 2 && !$ok;        # none is served: do not wait for the rest
	}
	return $ok;
}

# A kind of line is logged once a second: at most this many since the time given.
sub most_lines { my ($began) = @_; return 2 + time - $began }

# How many of these connections have the head of a 200, once there are n of them or patience ends.
sub heads ($n, @conn) {
	my %got;
	Test::Util::eventually(sub {
		for my $c (grep { !$got{$_} } @conn) { $got{$c} = 1 if $c->take(12, 0.001) =~ / 200/ }
		keys %got >= $n;
	});
	return scalar keys %got;
}

my $common = "server.max-connections = $MAX\nserver.max-read-idle = 300\nserver.max-keep-alive-idle = 300\nstatus.statistics-url = \"/statistics\"\n";

my %hostile = (
	'silent' => ['', 'room-silent'],
	'half a head' => ["GET /a HTTP/1.1\r\nHost: x\r\nX-Half: ", 'room-silent'],
	'idle after a reply' => [req('/a'), 'room-idle'],
);
for my $kind (sort keys %hostile) {
	my ($bytes, $counter) = @{ $hostile{$kind} };
	subtest "one address fills server.max-connections: $kind" => sub {
		my $srv = Test::Server->start(conf => $common);
		$srv->write('a', 'A');
		my $began = time;
		my @held;
		for (1 .. 2 * $MAX) {
			push @held, $srv->connect(from => '127.0.0.2');
			$held[-1]->send($bytes);
			$held[-1]->take(12) if $counter eq 'room-idle';         # before its reply a connection is busy
		}
		is served($srv, 20), 20, 'another address gets 20 of 20 replies';
		ok Test::Util::eventually(sub { counter($srv, $counter) >= $MAX }), "... and $counter counts";
		my @lines = $srv->wait_lines(1, qr/ev=connection\.made-room/);
		like $lines[0] // '', qr/ address=127\.0\.0\.2 /, 'the log names the address that made room';
		cmp_ok scalar @lines, '<=', most_lines($began), 'one line a second';
		unlike $srv->log, qr/ev=accept\.paused/, 'accepting never paused';
	};
}

subtest 'a request in progress is never cut to make room' => sub {
	my $srv = Test::Server->start(conf => "$common" . "server.max-worker = 1\n");
	$srv->write('a', 'A');
	$srv->sparse('big', 64 << 20);
	my $download = $srv->connect(rcvbuf => 65536);
	$download->send(req('/big'));
	like $download->take(12), qr/ 200/, 'a download has begun';
	my $upload = $srv->connect;
	$upload->send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	my @held = map { $srv->connect(from => '127.0.0.2') } 1 .. 2 * $MAX;
	is served($srv, 5), 5, 'others are served';
	$upload->send('defghij');
	my $r = $upload->reply;
	is $r && $r->{status}, 405, 'the upload ends as it should';
	is length $download->take(1 << 20), 1 << 20, 'the download goes on';
};

# Clients do not read their downloads: a file too large for the buffers of sockets.
sub stalled ($srv, $from, $n) {
	return map { my $c = $srv->connect(rcvbuf => 4096, from => $from); $c->send(req('/big')); $c } 1 .. $n;
}

sub with_big {
	my $srv = Test::Server->start(conf => $common . ($_[0] // ''));
	$srv->write('a', 'A');
	$srv->sparse('big', 64 << 20);
	return $srv;
}

subtest 'one address fills server.max-connections with stalled downloads' => sub {
	my $srv = with_big();
	my $began = time;
	# Each worker has seen clients of several addresses.
	for my $from (map { "127.0.1.$_" } 1 .. 40) {
		my $c = $srv->connect(from => $from);
		$c->send(req('/a', 'Connection: close'));
		$c->rest;
	}
	my $early = $srv->connect(from => '127.0.0.3', rcvbuf => 65536);
	$early->send(req('/big'));
	like $early->take(12), qr/ 200/, 'a download of another address has begun';
	my @held = stalled($srv, '127.0.0.2', 2 * $MAX);
	is served($srv, 20), 20, 'a third address gets 20 of 20 replies';
	ok Test::Util::eventually(sub { counter($srv, 'room-busy') > 0 }), '... and room-busy counts';
	ok Test::Util::eventually(sub { counter($srv, 'room-refused') > 0 }), 'what the address asks for on top is refused';
	like $srv->wait_log(qr/closed=busy/), qr/ev=connection\.made-room .*closed=busy address=127\.0\.0\.2 /, 'the log names the address that made room';
	my @lines = grep { /ev=connection\.(?:made-room|refused)/ } split /\n/, $srv->log;
	cmp_ok scalar @lines, '<=', 2 * most_lines($began), 'a line of each kind a second';
	is length $early->take(1 << 20), 1 << 20, 'the first download goes on';
	cmp_ok heads($MAX / 2 + 1, @held), '>', $MAX / 2, 'most of its downloads stay';
};

subtest 'the address with most connections makes room' => sub {
	my $srv = with_big("server.max-worker = 1\n");
	my @held = stalled($srv, '127.0.0.2', $MAX);
	is scalar(grep { $_->take(12) =~ / 200/ } @held), $MAX, 'every place is taken';
	is served($srv, 20), 20, 'another address gets 20 of 20 replies';
};

subtest 'all connections from one address: none is cut' => sub {
	my $srv = with_big();
	is served($srv, 2), 2, 'another address, which looks whether the server is well';
	my @held = stalled($srv, '127.0.0.2', 2 * $MAX);
	$srv->wait_log(qr/ev=accept\.paused/);
	cmp_ok heads($MAX - 2, @held), '>=', $MAX - 2, 'as many as may are served';
	unlike $srv->log, qr/ev=connection\.refused|another address needs/, 'none is refused, or cut for another address';
	$_->abort for @held[0 .. $MAX + $MAX / 2];
	is scalar(grep { $_->take(12) =~ / 200/ } @held[-20 .. -1]), 20, 'waiting clients are served when others leave';
};

subtest 'many addresses with one silent connection each leave room' => sub {
	my $srv = Test::Server->start(conf => $common);
	$srv->write('a', 'A');
	my @held = map { $srv->connect(from => "127.1." . ($_ >> 8) . '.' . ($_ & 255)) } 1 .. 2 * $MAX;
	is served($srv, 20), 20, 'a new one is served';
};

subtest 'server.max-connections-per-address limits one address' => sub {
	my $limit = 10;
	my $srv = Test::Server->start(conf => "$common" . "server.max-connections-per-address = $limit\n");
	$srv->write('a', 'A');
	my @held = map { $srv->connect(from => '127.0.0.2') } 1 .. 3 * $limit;
	is served($srv, 5), 5, 'another address is served';
	ok Test::Util::eventually(sub { counter($srv, 'address-full') == 2 * $limit }), 'what is above the limit is refused, over all workers';
	my @refused;                    # two workers accept: not always the last ones
	Test::Util::eventually(sub { @refused = grep { $_->closed(0.01) } @held; @refused >= 2 * $limit });
	my @within = grep { !$_->closed(0.1) } @held;
	is scalar @refused, 2 * $limit, '... at once, without a byte';
	like $srv->wait_log(qr/ev=connection\.refused/), qr/ev=connection\.refused address=127\.0\.0\.2 connections=$limit /, 'the log names the address';
	$_->send(req('/a')) for @within;
	is scalar(grep { ($_->reply // {})->{status} } @within), $limit, 'what is within the limit is served';
	$srv->signal('USR1');
	$srv->wait_log(qr/ev=reloaded/);
	close $_->sock for @held;
	ok Test::Util::eventually(sub { served($srv, 1, '127.0.0.2') }), 'an address that left may come again';
	my @new;
	Test::Util::eventually(sub {
		@new = map { $srv->connect(from => '127.0.0.2') } 1 .. $limit;
		$_->send(req('/a')) for @new;
		$limit == grep { $_->take(12) eq 'HTTP/1.1 200' } @new;
	});
	my $over = $srv->connect(from => '127.0.0.2');
	$over->send(req('/a'));
	is $over->take(12), '', '... up to the limit, after a reload too';
};

subtest 'half heads hold no more memory than they sent' => sub {
	my $n = 1000;
	my $srv = Test::Server->start(conf => "server.max-worker = 1\nserver.max-read-idle = 300\n");
	$srv->write('a', 'A');
	is $srv->fetch('/a')->{body}, 'A', 'warm';
	my $rss = sub { my ($kb) = Test::Util::slurp('/proc/' . $srv->pid . '/status') =~ /^VmRSS:\s+([0-9]+)/m; $kb };
	my @held = map { $srv->connect } 1 .. $n;
	Test::Util::eventually(sub { $srv->descriptors > $n });
	my $before = $rss->();
	my $half = "GET /a HTTP/1.1\r\nHost: x\r\nX-Half: " . 'x' x 60;
	$_->send($half) for @held;
	is $srv->fetch('/a')->{body}, 'A', 'they have been read';
	my $each = ($rss->() - $before) * 1024 / $n;
	diag sprintf '%.0f bytes', $each if $ENV{TEST_VERBOSE};
	SKIP: {
		skip 'sanitizers keep more', 1 if $slow > 1;
		cmp_ok $each, '<', 2048, 'memory of each' or diag $each;
	}
	$_->send("\r\n\r\n") for @held;
	is scalar(grep { ($_->reply // {})->{status} == 200 } @held), $n, 'and all are answered when the rest comes';
};

done_testing;
