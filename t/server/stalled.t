# Clients stop reading: the memory that backends of files keep for them is bounded, and their bytes are right.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $slow = ($ENV{B} // '') =~ /san/ ? 5 : 1;    # sanitizers

sub stalled ($srv) {
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send("GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	$c->take(12);
	return $c;
}

# What a backend has read for a client that does not take it is bounded for all of them together.
subtest 'stalled clients use bounded memory' => sub {
	plan skip_all => 'sanitizers keep freed memory' if $slow > 1;
	my $bytes = join '', map { sprintf "%015d\n", $_ } 1 .. 8 << 16;        # 8 MiB, no two lines alike
	for my $backend (Test::Server::backends()) {
		my $srv = Test::Server->start(conf => qq{server.max-worker = 1\nserver.network-backend = "$backend"\n});
		$srv->write('big', $bytes);
		is length $srv->get('/big') > 8 << 20, 1, "$backend sends";
		my $before = $srv->rss;
		my @c = map { stalled($srv) } 1 .. 50;
		my $most = 0;
		my $still = 0;
		while ($still < 10) {
			my $now = $srv->rss;
			$still = $now > $most ? 0 : $still + 1;
			$most = $now if $now > $most;
			select undef, undef, undef, 0.01;
		}
		cmp_ok $most - $before, '<', 56, sprintf '... and holds %.1f MiB for 50 stalled clients', $most - $before;
		$_->abort for splice @c, 2;
		is +(grep { my $got = $_->rest; $got =~ s/\A.*?\r\n\r\n//s; substr($bytes, -length $got) eq $got } @c), 2, '... which get the right bytes';
	}
};

done_testing;
