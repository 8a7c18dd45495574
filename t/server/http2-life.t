# HTTP/2 across reload, upgrade and stop: GOAWAY names the last stream, no request is lost, and a client that asks again reaches the
# next generation.  A client that vanishes leaves nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::Backend;
use Test::Http2 qw(:all);
use Test::More;
use Test::Server;
use Test::Util qw(eventually put slurp);

my $backend = Test::Backend->new;
my $ok = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
my $mib = 1 << 20;

sub start ($conf = '', %arg) {
	my $srv = Test::Server->start(%arg, conf => qq{server.tag = "g0"\nserver.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\nserver.max-keep-alive-idle = 100\n}
		. qq{status.statistics-url = "/counters"\nstatus.status-url = "/status"\nserver.stream-request-body = 1\n$conf}
		. Test::Server::proxy_block('^/app/', 'unix:' . $backend->socket, protocol => 'http', upgrade => '( "websocket" )'));
	$srv->write('a', 'A');
	$srv->sparse('big', 8 * $mib);
	return $srv;
}

my $generation = 0;

sub reload ($srv) {
	my ($conf, $tag) = ($srv->run . '/server.conf', 'g' . ++$generation);
	put($conf, slurp($conf) =~ s/server\.tag = "\K\w+/$tag/r);
	$srv->signal('USR1');
	return eventually(sub { ($srv->fetch('/a')->{header}{server} // '') eq $tag });
}

# A connection with a stream in each phase: [name, stream, what ends it].
sub busy ($srv) {
	my $h = Test::Http2->connect($srv, window => 0);
	$h->window_update(0, 64 * $mib);
	my $big = $h->open(GET => '/big');
	my $app = $h->open(GET => '/app/wait');
	(my $b = $backend->accept)->head;
	my $up = $h->open(POST => '/app/up', end => 0);
	$h->data($up, 'part');
	(my $u = $backend->accept)->head;
	$u->take(9);
	$h->await(sub ($f) { $h->reply($big)->{status} });
	return ($h, $big, $app, $b, $up, $u);
}

# Ends them: true if each is whole.
sub finish ($h, $big, $app, $b, $up, $u) {
	$h->settings(INITIAL_WINDOW_SIZE => 16 * $mib);
	$b->send($ok);
	$h->data($up, 'last', end => 1);
	$u->take(14);
	$u->send($ok);
	return join ' ', map { "$_->{status} " . length($_->{body}) . ($_->{cut} ? ' cut' : '') } $h->gather($big, $app, $up);
}

my $whole = "200 @{[ 8 * $mib ]} 200 2 200 2";

subtest 'streams in each phase' => sub {
	my $srv = start();
	my @h = busy($srv);
	is finish(@h), $whole, 'end whole';
	is $h[0]->{goaway}, undef, 'without GOAWAY';
};

subtest 'server.max-keep-alive-idle = 0' => sub {
	my $srv = Test::Server->start(conf => "server.max-worker = 1\nserver.max-keep-alive-idle = 0\n"
		. Test::Server::proxy_block('^/app/', 'unix:' . $backend->socket, protocol => 'http'));
	$srv->write('a', 'A');
	my $h = Test::Http2->connect($srv);
	my $app = $h->open(GET => '/app/wait');
	(my $b = $backend->accept)->head;
	is $h->get('/a')->{body}, 'A', 'a file beside a running stream';
	$b->send($ok);
	is +($h->gather($app))[0]{body}, 'ok', 'that one is not cut';
	ok $h->closed, 'then the connection ends';
};

subtest 'reload' => sub {
	my $srv = start();
	my @h = busy($srv);
	my ($h) = @h;
	ok reload($srv), 'the new configuration serves';
	ok $h->await(sub ($f) { $f->{type} == GOAWAY && $h->{goaway}[0] < 0x7fff_ffff }), 'GOAWAY on the old connection names the last stream';
	is_deeply [@{ $h->{goaway} }[0, 1]], [5, NO_ERROR], 'the third';
	my $late = $h->open(GET => '/a');
	is finish(@h), $whole, 'its streams end whole';
	ok $h->closed, 'then it ends';
	is $h->reply($late)->{status}, 0, 'a later one has no reply';
	my $next = Test::Http2->connect($srv);
	my $r = $next->get('/a');
	is "$r->{body} $r->{header}{server}", "A g$generation", 'asked again it is answered by the new generation';
	my $idle = Test::Http2->connect($srv);
	$idle->get('/a');
	ok reload($srv), 'reloaded';
	ok $idle->closed, 'an idle connection ends';
	is_deeply [@{ $idle->{goaway} }[0, 1]], [1, NO_ERROR], 'with GOAWAY';
	my ($fresh, $silent) = map { my $c = Test::Http2->connect($srv); $c->await(sub ($f) { $f->{type} == SETTINGS }); $c } 1, 2;
	ok reload($srv), 'again';
	ok $fresh->alive, 'all that the old generation has said is read';
	is $fresh->get('/a')->{body}, 'A', 'a connection whose first request is on its way has its reply';
	ok $fresh->closed && $silent->closed, 'then it ends, and so does one that stays silent';
	is_deeply [map { $_->{goaway}[0] } $fresh, $silent], [1, 0], 'with GOAWAY';
};

# A client that obeys GOAWAY and asks again for what was not taken: each request is answered once.
sub client ($srv, $state, $n) {
	for (1 .. $n) {
		my $h = $state->{h} //= Test::Http2->connect($srv);
		my $id = $h->open(GET => '/a');
		my ($r) = $h->gather($id);
		if ($r->{status} == 200 && $r->{body} eq 'A' && !$r->{cut}) { $state->{good}++; $state->{seen}{ $r->{header}{server} }++ }
		elsif (!$r->{status} && ($h->{goaway} && $id > $h->{goaway}[0] || ($r->{error} // -1) == REFUSED_STREAM)) { $state->{again}++; delete $state->{h}; redo }
		else { $state->{lost}++ }
		delete $state->{h} if $h->{goaway};
	}
	return;
}

subtest 'no request is lost' => sub {
	my $srv = start();
	my @client = map { {} } 1 .. 5;
	my $last = $generation + 10;
	while ($generation < $last) {
		client($srv, $_, 5) for @client;
		my ($conf, $tag) = ($srv->run . '/server.conf', 'g' . ++$generation);
		put($conf, slurp($conf) =~ s/server\.tag = "\K\w+/$tag/r);
		$srv->signal('USR1');
		client($srv, $_, 20) for @client;
		eventually(sub { client($srv, $_, 1) for @client; ($srv->fetch('/a')->{header}{server} // '') eq $tag });
	}
	is +(grep { $_->{lost} } @client), 0, join ', ', 'ten reloads', map { ($_->{good} // 0) . ' answered, ' . ($_->{again} // 0) . ' asked again' } @client;
	ok !(grep { keys %{ $_->{seen} } < 3 } @client), 'all clients have met several generations';
};

subtest 'upgrade' => sub {
	my $srv = start();
	my @h = busy($srv);
	my ($h) = @h;
	my $idle = Test::Http2->connect($srv);
	$idle->get('/a');
	my $old = $srv->upgrade;
	ok $old, 'another process serves';
	ok $h->await(sub ($f) { $f->{type} == GOAWAY && $h->{goaway}[0] == 5 }), 'the old one tells its last stream';
	is finish(@h), $whole, 'and ends its streams';
	ok $h->closed && $idle->closed, 'then its connections';
	is(Test::Http2->connect($srv)->get('/a')->{body}, 'A', 'the new one answers');
	ok eventually(sub { Test::Server::is_gone($old) }), 'the old one ends';
};

for my $how (qw(INT QUIT)) {
	subtest "stop by $how" => sub {
		my $srv = start();
		my @h = busy($srv);
		my ($h) = @h;
		$srv->signal($how);
		ok $h->await(sub ($f) { $f->{type} == GOAWAY && $h->{goaway}[0] == 5 }), 'GOAWAY tells the last stream';
		is finish(@h), $whole, 'running streams end whole';
		ok $h->closed, 'then the connection';
		is $srv->wait_exit, 0, 'and the server';
	};
}

subtest 'stop by INT at its limit, and by TERM' => sub {
	my $srv = start(qq{server.feature-flags = ( "server.graceful-shutdown-timeout" => 1 )\n});
	my @h = busy($srv);
	$srv->signal('INT');
	is $srv->wait_exit, 0, 'it ends though streams run';
	ok $h[0]->closed, 'they are cut';
	ok +($h[0]->gather($h[1]))[0]{cut}, 'without an end that looks whole';
	$srv = start();
	@h = busy($srv);
	is +($srv->term)[0], 0, 'TERM ends at once';
	ok $h[0]->closed && ($h[0]->gather($h[1]))[0]{cut}, 'streams are cut';
};

subtest 'tunnels and a reload' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv);
	my $id = $h->open(CONNECT => '/app/ws', ':protocol' => 'websocket', 'Sec-WebSocket-Version' => 13, end => 0);
	(my $b = $backend->accept)->head;
	$b->send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	ok $h->await(sub ($f) { $h->reply($id)->{status} == 200 }), 'a tunnel';
	ok reload($srv), 'reloaded';
	$h->data($id, 'to');
	is $b->take(2), 'to', 'it goes on';
	$b->send('back');
	ok $h->await(sub ($f) { $h->reply($id)->{body} eq 'back' }), 'both ways';
	$h->data($id, '', end => 1);
	close $b->sock;
	ok $h->closed, 'its connection ends with it';
};

# ---------------------------------------------------------------- clients that vanish

sub status_of ($srv) { return JSON::PP::decode_json($srv->fetch('/status?json')->{body})->{connections} }

subtest 'a client that vanishes' => sub {
	my $srv = start();
	my $few = sub { my $s = status_of($srv); return ($s->{open} <= 1 && !($s->{streams} // 0)) };
	ok eventually($few), 'alone';
	my $descriptors = $srv->descriptors;
	my %phase = (
		'the preface' => sub ($h) { },
		'half a preface' => sub ($h) { Test::Http2->connect($srv, preface => 0)->send(substr PREFACE, 0, 20) },
		'half a head' => sub ($h) { $h->frame(HEADERS, 0, 1, "\x82") },
		'half a frame' => sub ($h) { $h->send("\0\0\x10\0") },
		'a reply without windows' => sub ($h) { $h->open(GET => '/big') for 1 .. 100 },
		'a request that waits' => sub ($h) { $h->open(GET => '/app/x'); return $backend->accept },
		'an upload' => sub ($h) { $h->data($h->open(POST => '/app/x', end => 0), 'x' x 1000); return $backend->accept },
	);
	for my $how (qw(abort finish)) {
		for my $name (sort keys %phase) {
			my $h = Test::Http2->connect($srv, window => 0);
			$h->alive;
			my $b = $phase{$name}->($h);
			$how eq 'abort' ? $h->abort : close $h->{conn}->sock;
			undef $b;
			undef $h;
			ok eventually($few, 20), "$name, then $how: no connection and no stream is left" or diag JSON::PP::encode_json(status_of($srv));
		}
	}
	ok eventually(sub { $srv->descriptors <= $descriptors + 2 }), 'nor a descriptor' or diag $srv->descriptors, " $descriptors";
	is $srv->stop, '', 'the end is clean';
};

done_testing;
