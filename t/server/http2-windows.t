# HTTP/2: clients that open their windows little, late or never.  The memory for them is bounded, their bytes are right, the others
# go on, and the time for a client that takes nothing is that of HTTP/1.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http2 qw(:all);
use Test::More;
use Test::Server;
use Test::Util qw(eventually rss sanitized);
use Time::HiRes qw(time);

my $large = join '', map { sprintf "%015d\n", $_ } 1 .. 4 << 16;        # 4 MiB, no two lines alike

sub start ($conf = '') {
	my $srv = Test::Server->start(conf => qq{server.max-worker = 1\nserver.max-keep-alive-idle = 100\nstatus.statistics-url = "/counters"\n$conf});
	$srv->write('a.txt', "hello\n");
	$srv->write('large', $large);
	return $srv;
}

sub body ($h, $id) { return $h->reply($id)->{body} }
sub error_of ($r) { return defined $r->{error} ? error_name($r->{error}) : 'none' }

# The most memory while it still grows, in MiB more than at the beginning.
sub grown ($srv, $from) {
	my ($most, $still) = (0, 0);
	while ($still < 10) {
		my $now = rss($srv->pid);
		$still = $now > $most ? 0 : $still + 1;
		$most = $now if $now > $most;
		select undef, undef, undef, 0.01;
	}
	return $most - $from;
}

subtest 'windows of nothing and of one byte' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv, window => 0);
	my @id = map { $h->open(GET => $_) } ('/a.txt', '/large') x 5;
	ok $h->await(sub ($f) { 10 == grep { $h->reply($_)->{status} == 200 } @id }), 'the heads of ten streams come';
	ok $h->alive, 'nothing else does';
	is_deeply [map { length body($h, $_) } @id], [(0) x 10], 'and no byte';
	is $h->head('/large')->{error}, undef, 'a reply without a body needs no window';
	is $h->get('/a.txt', 'If-None-Match' => $h->reply($id[0])->{header}{etag})->{status}, 304, 'another one';
	my $got = '';
	for my $n (1 .. 5) {
		$h->window_update($id[0], 1);
		$h->await(sub ($f) { length body($h, $id[0]) == $n });
		$got .= substr body($h, $id[0]), $n - 1, 1;
	}
	is $got, 'hello', 'byte by byte';
	ok !$h->{stream}{ $id[0] }{over}, 'it is not whole';
	$h->window_update($id[0], 1);
	is(($h->gather($id[0]))[0]{body}, "hello\n", 'the last byte ends it');
	$h->settings(INITIAL_WINDOW_SIZE => 100);
	ok $h->await(sub ($f) { 4 == grep { length body($h, $_) == 100 } @id[1, 3, 5, 7] }), 'SETTINGS open all of them';
	is(($h->gather($id[2]))[0]{body}, "hello\n", 'which ends the small ones');
	$h->settings(INITIAL_WINDOW_SIZE => 10);
	ok $h->alive, 'windows below zero';
	is length body($h, $id[1]), 100, 'give nothing';
	$h->window_update(0, 5 << 20);
	$h->window_update($id[1], 5 << 20);
	ok +($h->gather($id[1]))[0]{body} eq $large, 'and go on with the right byte';
};

subtest 'the window of the connection' => sub {
	my $srv = start();
	my $h = Test::Http2->connect($srv, window => 0);
	my @id = map { $h->open(GET => '/large') } 1 .. 20;
	ok $h->await(sub ($f) { 20 == grep { $h->{stream}{$_}{reply} } @id }), 'each has its head';
	$h->settings(INITIAL_WINDOW_SIZE => 1 << 30);
	my $sum = 0;
	ok $h->await(sub ($f) { $sum += length $f->{payload} if $f->{type} == DATA; $sum >= 65_535 }), 'one that is never opened';
	ok $h->alive, 'the client is there';
	is $sum, 65_535, 'not a byte more';
	is +(grep { length body($h, $_) } @id) > 1, 1, 'several streams had a part of it';
	my $other = Test::Http2->connect($srv);
	is $other->get('/a.txt')->{body}, "hello\n", 'another client is served';
	ok $other->get('/large')->{body} eq $large, 'with large files, too';
	$h->reset($_) for @id[1 .. 19];
	for (1 .. 80) { $h->window_update(0, 1 << 16) }
	ok +($h->gather($id[0]))[0]{body} eq $large, 'the stream that is left gets it all';
};

subtest 'memory' => sub {
	plan skip_all => 'sanitizers keep freed memory' if sanitized();
	for my $case (['windows of nothing', 0], ['windows of one byte', 1], ['windows of 64 KiB', 65_535], ['sockets that are full', 1 << 30]) {
		my ($name, $window) = @$case;
		my $srv = start();
		Test::Http2->connect($srv)->get('/large');
		my $before = rss($srv->pid);
		my @h = map { Test::Http2->connect($srv, window => $window, update => 0, rcvbuf => 4096) } 1 .. 10;
		for my $h (@h) { $h->open(GET => '/large') for 1 .. 100 }
		my $grown = grown($srv, $before);
		cmp_ok $grown, '<', 56, sprintf '%s: %.1f MiB for 10 clients with 100 streams each', $name, $grown;
		my $other = Test::Http2->connect($srv);
		ok $other->get('/large')->{body} eq $large, 'another client is served';
		$_->abort for @h;
		ok eventually(sub { $srv->descriptors < 60 }), 'they are gone';
		ok eventually(sub { rss($srv->pid) - $before < 16 }, 10), 'the memory is back' or diag rss($srv->pid) - $before;
	}
};

subtest 'uploads that nobody reads' => sub {
	my $srv = start(Test::Server::proxy_block('^/app/', 'unix:@RUN@/nobody', protocol => 'http', 'connect-timeout' => 60));
	my $h = Test::Http2->connect($srv);
	ok $h->alive, 'connected';
	cmp_ok $h->{window}, '<=', 1 << 20, 'the window of the connection bounds what the server keeps';
	is $h->{settings}{ +INITIAL_WINDOW_SIZE } // 65_535, 65_535, 'that of a stream, too';
};

subtest 'server.max-write-idle' => sub {
	my $srv = start("server.max-write-idle = 1\n");
	my $h = Test::Http2->connect($srv, window => 0);
	my ($never, $late) = map { $h->open(GET => '/large') } 1 .. 2;
	my $begin = time;
	my ($r) = $h->gather($never);
	isnt error_of($r), 'none', 'a stream whose window is never opened is reset';
	cmp_ok time - $begin, '>=', 0.8, 'not before its time';
	ok $h->alive, 'the connection goes on';
	$h->settings(INITIAL_WINDOW_SIZE => 1 << 20);
	is $h->get('/a.txt')->{body}, "hello\n", 'with other streams';
	my $few = $srv->descriptors;
	my $full = Test::Http2->connect($srv, rcvbuf => 4096);
	$full->open(GET => '/large') for 1 .. 10;
	ok eventually(sub { $srv->descriptors > $few }), 'a client that does not read at all';
	ok eventually(sub { $srv->descriptors <= $few }), 'loses its connection';
	ok $h->alive, 'the other one goes on';
};

subtest 'a stream that waits for its turn is not late' => sub {
	my $srv = start("server.max-write-idle = 1\nserver.min-write-rate = 0\n");
	my $h = Test::Http2->connect($srv, window => 0);
	$h->settings(INITIAL_WINDOW_SIZE => 1 << 30);
	my $first = $h->open(GET => '/large', Priority => 'u=0');
	my $last = $h->open(GET => '/large', Priority => 'u=7');       # it has a turn only while the other's bytes are being read
	my $end = time + 3;
	while (time < $end) {
		$h->window_update(0, 2000);
		my $next = time + 0.05;
		1 while $next > time && $h->read($next - time);
	}
	is_deeply [map { $h->reply($_)->{error} } $first, $last], [undef, undef], 'after three times server.max-write-idle';
	$h->window_update(0, 1 << 30);
	is_deeply [map { $_->{body} eq $large } $h->gather($first, $last)], [1, 1], 'both are sent when the client lets them';
};

done_testing;
