# HTTP/2: a client that sends more frames of a kind than it may loses its connection, which is counted; the others go on, and
# nothing of it stays.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http2 qw(:all);
use Test::More;
use Test::Server;
use Test::Util qw(eventually rss sanitized);

my $srv = Test::Server->start(conf => qq{server.max-worker = 1\nserver.max-keep-alive-idle = 100\nserver.max-keep-alive-requests = 100000\nstatus.statistics-url = "/counters"\n});
$srv->write('a.txt', "hello\n");
$srv->write('large', 'x' x 3_000_000);
my $well = Test::Http2->connect($srv);
my $warm = Test::Http2->connect($srv);
$warm->gather(map { $warm->open(GET => '/a.txt') } 1 .. 100);
undef $warm;

# The sum of these counters.
sub count_of ($names) {
	my ($page, $sum) = ($well->get('/counters')->{body}, 0);
	for my $name (split ' ', $names) { $sum += $page =~ /^server\.http2\.\Q$name\E: (\d+)$/m ? $1 : die "no counter $name\n" }
	return $sum;
}

sub bytes (@frame) { return Test::Http2::frame_bytes(@frame) }
sub head_of ($h, $id, $path = '/a.txt', @field) { return bytes(HEADERS, END_STREAM | END_HEADERS, $id, hpack($h->request_fields(GET => $path, @field))) }

my $memory = rss($srv->pid);

# The frames cost the client its connection: the code of GOAWAY, and this counter has risen by one.
sub flood ($name, $code, $counter, $frames, %opt) {
	my $before = $counter && count_of($counter);
	my $h = Test::Http2->connect($srv, %opt);
	$frames->($h);
	ok $h->closed, "$name: the connection ends";
	is $h->{goaway} ? error_name($h->{goaway}[1]) : 'a reset', $code, 'with the reason';
	is count_of($counter), $before + 1, "counted as $counter" if $counter;
	is $well->get('/a.txt')->{body}, "hello\n", 'another client is served';
	return;
}

# They are allowed: the connection goes on.  An address that has flooded (WORKER_FLOODERS) is allowed less.
sub allowed ($name, $frames, %opt) {
	my $h = Test::Http2->connect($srv, from => '127.0.0.3', %opt);
	$frames->($h);
	ok $h->alive, "$name: allowed";
	is $h->get('/a.txt')->{body}, "hello\n", 'the connection goes on';
	return $h;
}

# ---------------------------------------------------------------- streams

subtest 'resets (CVE-2023-44487)' => sub {
	my $some = sub ($n) {
		return sub ($h) { $h->send(join '', map { head_of($h, 2 * $_ - 1) . bytes(RST_STREAM, 0, 2 * $_ - 1, pack 'N', CANCEL) } 1 .. $n); $h->{next} = 2 * $n + 1 };
	};
	flood('rapid reset', 'ENHANCE_YOUR_CALM', 'flood-resets', $some->(1000));
	flood('rapid reset of large files', 'ENHANCE_YOUR_CALM', 'flood-resets', sub ($h) {
		$h->send(join '', map { head_of($h, 2 * $_ - 1, '/large') . bytes(RST_STREAM, 0, 2 * $_ - 1, pack 'N', CANCEL) } 1 .. 1000);
	});
	allowed('a page that is left', $some->(100));
	flood('the next connection of the address', 'ENHANCE_YOUR_CALM', 'flood-resets', $some->(100));
	allowed('a smaller page', $some->(20), from => '127.0.0.1');
	# The server resets these itself: the client only makes it do so (CVE-2025-8671).
	# While its RST_STREAM waits to be sent, a stream is open.
	flood('streams that the server resets', 'ENHANCE_YOUR_CALM', 'flood-resets flood-streams', sub ($h) {
		$h->send(join '', map { head_of($h, 2 * $_ - 1, '/a.txt', 'Connection' => 'close') } 1 .. 1000);
	});
	flood('updates that overflow windows', 'ENHANCE_YOUR_CALM', 'flood-resets flood-streams', sub ($h) {
		$h->send(join '', map { head_of($h, 2 * $_ - 1, '/large') . bytes(WINDOW_UPDATE, 0, 2 * $_ - 1, pack 'N', 0x7fff_ffff) } 1 .. 1000);
	}, window => 10);
};

subtest 'streams at once' => sub {
	my $h = Test::Http2->connect($srv, window => 0);
	$h->settings(INITIAL_WINDOW_SIZE => 0);
	my @id = map { $h->open(GET => '/large') } 1 .. 110;
	$h->gather(@id[100 .. 109]);
	ok $h->alive, 'ten too many';
	is $h->{settings}{ +MAX_CONCURRENT_STREAMS }, 100, 'SETTINGS name the limit';
	is_deeply [map { $h->reply($_)->{error} // 'none' } @id], [('none') x 100, (REFUSED_STREAM) x 10], 'those are refused, to be sent again';
	$h->abort;
	flood('again and again', 'ENHANCE_YOUR_CALM', 'flood-streams', sub ($k) {
		$k->settings(INITIAL_WINDOW_SIZE => 0);
		$k->send(join '', map { head_of($k, 2 * $_ - 1, '/large') } 1 .. 1000);
	}, window => 0);
};

# ---------------------------------------------------------------- frames of the connection

subtest 'PING and SETTINGS' => sub {
	flood('PING', 'ENHANCE_YOUR_CALM', 'flood-control', sub ($h) { $h->send(bytes(PING, 0, 0, '12345678') x 20_000) });
	flood('SETTINGS', 'ENHANCE_YOUR_CALM', 'flood-control', sub ($h) { $h->send(bytes(SETTINGS, 0, 0, settings_payload(INITIAL_WINDOW_SIZE => 100)) x 20_000) });
	flood('empty SETTINGS', 'ENHANCE_YOUR_CALM', 'flood-control', sub ($h) { $h->send(bytes(SETTINGS, 0, 0) x 20_000) });
	allowed('some', sub ($h) { $h->send(bytes(PING, 0, 0, '12345678') x 50) });
};

subtest 'frames that change nothing' => sub {
	flood('DATA', 'ENHANCE_YOUR_CALM', 'flood-empty', sub ($h) {
		my $id = $h->open(POST => '/a.txt', end => 0);
		$h->send(bytes(DATA, 0, $id) x 20_000);
	});
	flood('DATA that is padding only', 'ENHANCE_YOUR_CALM', 'flood-empty', sub ($h) {
		my $id = $h->open(POST => '/a.txt', end => 0);
		$h->send(bytes(DATA, PADDED, $id, "\x05\0\0\0\0\0") x 5000);
	});
	flood('unknown types', 'ENHANCE_YOUR_CALM', 'flood-empty', sub ($h) { $h->send(bytes(0x55, 0, 0, 'any') x 20_000) });
	flood('answers to no PING', 'ENHANCE_YOUR_CALM', 'flood-empty', sub ($h) { $h->send(bytes(PING, ACK, 0, '12345678') x 20_000) });
	flood('resets of a stream that has ended', 'ENHANCE_YOUR_CALM', 'flood-empty', sub ($h) {
		$h->gather(my $id = $h->open(GET => '/a.txt'));
		$h->send(bytes(RST_STREAM, 0, $id, pack 'N', CANCEL) x 20_000);
	});
	allowed('an unknown frame and a late reset for each of 500 requests', sub ($h) {
		for (1 .. 5) {
			my @id = map { $h->send(bytes(0x55, 0, 0)); $h->open(GET => '/a.txt') } 1 .. 100;
			$h->gather(@id);
			$h->send(join '', map { bytes(RST_STREAM, 0, $_, pack 'N', CANCEL) } @id);
		}
	});
	flood('CONTINUATION', 'ENHANCE_YOUR_CALM', 'flood-heads', sub ($h) {
		$h->send(bytes(HEADERS, END_STREAM, 1, hpack($h->request_fields(GET => '/a.txt'))) . bytes(CONTINUATION, 0, 1) x 20_000);
	});
};

subtest 'windows' => sub {
	flood('WINDOW_UPDATE of one byte', 'ENHANCE_YOUR_CALM', 'flood-windows', sub ($h) {
		$h->open(GET => '/large');
		$h->send(bytes(WINDOW_UPDATE, 0, 0, pack 'N', 1) x 20_000);
	}, window => 10);
	flood('... for one byte of a reply each', 'ENHANCE_YOUR_CALM', 'flood-windows', sub ($h) {
		my $id = $h->open(GET => '/large');
		$h->await(sub ($f) {
			$h->window_update($id, 1) if $f->{type} == DATA;
			return defined $h->{goaway};
		});
	}, window => 1);
	my $h = allowed('a client that gives each frame back', sub ($h) { $h->get('/large') });
	is length $h->get('/large')->{body}, 3_000_000, 'a whole file';
	flood('an update of nothing', 'PROTOCOL_ERROR', undef, sub ($k) { $k->window_update(0, 0) });
	flood('a window that overflows', 'FLOW_CONTROL_ERROR', undef, sub ($k) { $k->window_update(0, 0x7fff_ffff) });
};

subtest 'priorities' => sub {
	flood('PRIORITY', 'ENHANCE_YOUR_CALM', 'flood-priority', sub ($h) { $h->send(join '', map { bytes(PRIORITY, 0, 2 * $_ + 1, pack 'NC', 0, 1) } 1 .. 20_000) });
	flood('PRIORITY_UPDATE', 'ENHANCE_YOUR_CALM', 'flood-priority', sub ($h) { $h->send(join '', map { bytes(PRIORITY_UPDATE, 0, 0, pack('N', 2 * $_ - 1) . "u=$_") } map { $_ % 8 } 1 .. 20_000) });
	flood('PRIORITY_UPDATE of one stream', 'ENHANCE_YOUR_CALM', 'flood-priority', sub ($h) {
		my $id = $h->open(GET => '/large');
		$h->send(join '', map { bytes(PRIORITY_UPDATE, 0, 0, pack('N', $id) . 'u=' . $_ % 8) } 1 .. 20_000);
	}, window => 10);
	allowed('one for each stream', sub ($h) {
		for (1 .. 300) {
			my $id = $h->open(GET => '/a.txt');
			$h->frame(PRIORITY_UPDATE, 0, 0, pack('N', $id) . 'u=1, i');
			$h->gather($id);
		}
	});
};

# ---------------------------------------------------------------- heads

subtest 'heads' => sub {
	my $h = Test::Http2->connect($srv);
	is $h->get('/a.txt', 'X-Long' => 'l' x 9000)->{status}, 431, 'a head that is too long';
	is $h->get('/a.txt' . 'l' x 9000)->{status}, 414, 'a path';
	is $h->get('/a.txt', map { ("X-$_" => 'v') } 1 .. 1000)->{status}, 431, 'many fields';
	is $h->get('/a.txt')->{body}, "hello\n", 'the connection goes on';
	flood('CONTINUATION without an end', 'ENHANCE_YOUR_CALM', 'flood-heads', sub ($k) {
		my $fields = hpack([map { ["x-$_", 'v' x 1000] } 1 .. 15]);
		$k->send(bytes(HEADERS, END_STREAM, 1, hpack($k->request_fields(GET => '/a.txt'))));
		$k->send(bytes(CONTINUATION, 0, 1, $fields)) for 1 .. 100;
	});
	# Each field is one byte: an entry of 4,000 bytes in the table.
	flood('a bomb of HPACK', 'ENHANCE_YOUR_CALM', 'flood-heads', sub ($k) {
		my $bomb = hpack([['x-bomb', 'b' x 3900]], index => 1) . "\xbe" x 12_000;
		$k->send(bytes(HEADERS, END_STREAM | END_HEADERS, 1, hpack($k->request_fields(GET => '/a.txt')) . $bomb));
	});
	flood('a table that is too large', 'COMPRESSION_ERROR', undef, sub ($k) { $k->frame(HEADERS, END_STREAM | END_HEADERS, 1, "\x3f\xe1\x7f\x82") });
	flood('another frame in a head', 'PROTOCOL_ERROR', undef, sub ($k) {
		$k->frame(HEADERS, END_STREAM, 1, hpack($k->request_fields(GET => '/a.txt')));
		$k->frame(PING, 0, 0, '12345678');
	});
	my $tiny = Test::Http2->connect($srv);
	$tiny->settings(HEADER_TABLE_SIZE => 0);
	is $tiny->get('/a.txt')->{status}, 200, 'a client without a table';
	my $huge = Test::Http2->connect($srv);
	$huge->settings(HEADER_TABLE_SIZE => 0x7fff_ffff);
	is_deeply [map { $_->{status} } $huge->gather(map { $huge->open(GET => "/a.txt?$_") } 1 .. 100)], [(200) x 100], 'with a huge one';
};

subtest 'a frame that is too large' => sub {
	flood('DATA', 'FRAME_SIZE_ERROR', undef, sub ($h) { $h->send(bytes(DATA, 0, 1, 'x' x 20_000)) });
	flood('PUSH_PROMISE', 'PROTOCOL_ERROR', undef, sub ($h) { $h->frame(PUSH_PROMISE, END_HEADERS, 1, pack('N', 2) . "\x82") });
	flood('a stream with an even number', 'PROTOCOL_ERROR', undef, sub ($h) { $h->send(head_of($h, 2)) });
	allowed('an unknown type', sub ($h) { $h->frame(99, 255, 7, 'anything') });
};

# ---------------------------------------------------------------- afterwards

subtest 'nothing stays' => sub {
	ok $well->alive, 'the client that was well has one connection all the time';
	is $well->{goaway}, undef, 'without GOAWAY';
	$srv->log_has(qr/ev=frames.failed address=127\.0\.0\.1 connection=\d+ why="too many streams were reset" then="connection closed"/, 'the log names the rule');
	SKIP: {
		skip 'a sanitizer keeps memory', 1 if sanitized();
		cmp_ok rss($srv->pid) - $memory, '<', 8, 'the memory is back';
	}
	$well->abort;
	ok eventually(sub { $srv->descriptors < 60 }), 'and the sockets' or diag $srv->descriptors;
};

done_testing;
