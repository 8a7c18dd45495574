#!/usr/bin/perl
# Deadlines of proxy-core in a server: the head, the whole reply, an idle socket; and a backend with an IPv6 address.

use v5.36;
use Test::More;

use Test::App;
use Test::Server;
use Test::Util qw(eventually);

my $app = Test::App->start;

sub start (%set) {
	my %all = (backends => qq{( "unix:@{[ $app->socket ]}" )}, protocol => '"fastcgi"', %set);
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
		. qq<\$HTTP["url"] =~ "^/app" {\n> . join('', map { "proxy-core.$_ = $all{$_}\n" } sort keys %all) . "}\n");
}

subtest 'proxy-core.reply-timeout' => sub {
	my $srv = start('reply-timeout' => 1, 'read-timeout' => 3600);
	is $srv->fetch('/app/silent')->{status}, 504, 'a head that does not come';
	is start('reply-timeout' => 60)->fetch('/app/env')->{status}, 200, 'one that comes';
};

subtest 'proxy-core.total-timeout' => sub {
	my $srv = start('total-timeout' => 1, 'read-timeout' => 3600);
	is $srv->fetch('/app/silent')->{status}, 504, 'a reply that does not begin';
	$srv = start('total-timeout' => 60);
	my $c = $srv->connect;
	$c->send("GET /app/lingers HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{body}, 'bye', 'a reply that ends in time';
};

subtest 'proxy-core.idle-timeout' => sub {
	my $srv = start('idle-timeout' => 1, 'max-keep-alive-requests' => 100);
	my $open = sub { $srv->fetch('/counters')->{body} =~ /pool_size: (\d+)/ ? $1 : -1 };
	is $srv->fetch('/app/env')->{status}, 200, 'a request';
	ok eventually(sub { $open->() == 0 }), 'its socket is closed some time later';
};

subtest 'a client that leaves frees the socket at once' => sub {
	# The application thinks for 20 s, and a request that waits for its socket for 10 s gets 503.
	my $srv = start('max-pool-size' => 1, 'read-timeout' => 3600, 'wait-timeout' => 10);
	my $c = $srv->connect;
	my $before = length $app->noted('connections');
	$c->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { length $app->noted('connections') > $before }), 'the application thinks';
	$c->abort;
	is $srv->fetch('/app/env')->{status}, 200, 'the only socket serves the next request';

	# Most clients send no reset: their side of the connection just ends.
	$srv = start('max-pool-size' => 1, 'read-timeout' => 3600, 'wait-timeout' => 10, 'abort-on-close' => '"enable"');
	$before = length $app->noted('connections');
	($c, my $half) = ($srv->connect, $srv->connect);
	$c->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { length $app->noted('connections') > $before }), 'it thinks once more';
	close $c->sock;
	is $srv->fetch('/app/env')->{status}, 200, 'the same for a client that closes its connection, with proxy-core.abort-on-close';

	$half->send("GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	shutdown $half->sock, 1;
	like $half->rest, qr/ 404 /, 'a client that sends no more still gets what needs no application';
};

subtest 'a client that sends no more gets its answer' => sub {
	my $srv = start('read-timeout' => 3600);
	my $c = $srv->connect;
	$c->send("GET /app/turn HTTP/1.0\r\nHost: x\r\n\r\n");
	shutdown $c->sock, 1;
	ok eventually(sub { $srv->counter('server.connections.client-ended') == 1 }), 'its end is noticed while the application thinks';
	Test::Util::put($app->file('gate'), '');
	like $c->rest, qr/ 200 .*turn\z/s, '... and the answer is sent';
};

package V6App {
	use parent -norequire, 'Test::App';

	sub listen {
		my ($self) = @_;
		$self->{v6} //= IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 128, Proto => 'tcp') // die "listen: $!";
		return $self->{v6};
	}
}

subtest 'IPv6' => sub {
	eval { require IO::Socket::IP; IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1) } or plan skip_all => 'no ::1 here';
	my $v6 = V6App->start;
	my $srv = start(backends => qq{( "[::1]:@{[ $v6->{v6}->sockport ]}" )});
	is $srv->fetch('/app/env')->{status}, 200, 'it answers';
	is length $v6->noted('connections'), 1, '... at its address';
};

done_testing;
