#!/usr/bin/perl
# proxy-core.next-upstream and proxy-core.max-fails: an application that fails before the first byte of its answer, in five protocols.
use v5.36;
use Test::More;

use Test::Drill;
use Test::Server;
use Test::Util qw(eventually);

my @protocols = qw(fastcgi scgi http ajp13 uwsgi);

# What the first backend does with a request, and the status if that is all that the client can get.
my @fault = (
	['hangs up', 502, sub { ['close'] }],
	['resets', 502, sub { ['reset'] }],
	['is silent', 504, sub { ['wait'] }],
	['sends a malformed head', 502, sub { ("\0\n\r garbage" x 10, ['close']) }],
	['ends within its head', 502, sub { (substr($_[0]->head(200, 'X-A' => 'b' x 100), 0, 60), ['close']) }],
);
my $last = $#fault + 1;

# That of the last number fails for some time, and then is well: while the file is there.
sub cases {
	my ($file) = @_;
	return [(map { { do => $_->[2] } } @fault), { do => sub { -e $file ? ['close'] : Test::Drill::Cases::whole($_[0], 'first') } }];
}

sub text { my ($r) = @_; return $r ? "$r->{status} " . $r->{body} =~ s/\n.*//sr : 'no answer' }

my $gone = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;

sub blocks ($protocol, $bad, $good) {
	my %all = (protocol => $protocol, balancer => 'static', 'reply-timeout' => 1, 'max-fails' => 0, 'max-pool-size' => 20);
	my $both = qq{( "$bad", "$good" )};
	return Test::Server::proxy_block('^/both/', '', %all, backends => $both)
	    . Test::Server::proxy_block('^/off/', '', %all, backends => $both, 'next-upstream' => '( "off" )')
	    . Test::Server::proxy_block('^/gone/', '', %all, backends => qq{( "127.0.0.1:$gone", "$bad", "$good" )})
	    . Test::Server::proxy_block('^/fails/', '', %all, backends => $both, 'max-fails' => 3, 'fail-timeout' => 1, 'reply-timeout' => 60)
	    . Test::Server::proxy_block('^/alone/', $bad, %all, 'max-fails' => 1, 'fail-timeout' => 60, 'reply-timeout' => 60);
}

# All requests run at the same time; [path, method, status, name].
sub ask_all ($srv, @ask) {
	my @conn = map { my $c = $srv->connect; $c->send("$_->[1] $_->[0] HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); $c } @ask;
	for my $i (0 .. $#ask) {
		my $r = $conn[$i]->reply($ask[$i][1]);
		is $r ? $r->{status} : 'none', $ask[$i][2], $ask[$i][3];
	}
	return;
}

for my $protocol (@protocols) {
	subtest $protocol => sub {
		my $srv;
		my $dir = File::Temp->newdir;
		my $cases = cases("$dir/fails");
		my ($bad, $bad_at) = Test::Drill::start($protocol, $cases, []);
		my ($good, $good_at) = Test::Drill::start($protocol, [], []);
		$srv = Test::Server->start(conf => qq{server.max-worker = 2\nstatus.statistics-url = "/counters"\n} . blocks($protocol, $bad_at, $good_at));
		my @ask;
		for my $i (0 .. $#fault) {
			my ($how, $status) = @{ $fault[$i] };
			push @ask, ["/both/$i", $_, 200, "$how: $_ gets the answer of the next one"] for qw(GET HEAD PUT DELETE);
			push @ask, ["/both/$i", 'POST', $status, "$how: POST may have run"], ["/off/$i", 'GET', $status, "$how: off"];
		}
		push @ask, ['/gone/0', 'GET', 200, 'one is gone, one hangs up: the third answers'];
		ask_all($srv, @ask);
		is $srv->counter('proxy-core.next-upstream'), 4 * @fault + 1, 'counted';
		is scalar($srv->wait_lines(4 * @fault + 2, qr/ev=exchange\.failed .* then="next backend"/)), 4 * @fault + 2, '... and logged';

		Test::Util::put("$dir/fails", '');
		my @got = map { text($srv->fetch("/fails/$last")) } 1 .. 20;
		is_deeply [grep { !/^200 good/ } @got], [], 'a backend that always fails: no client notices';
		is $srv->counter('proxy-core.taken-out'), 1, '... it is taken out';
		is $srv->counter('proxy-core.next-upstream'), 4 * @fault + 1 + 3, '... after three requests, of all workers';
		my $alone = join ' ', map { $srv->fetch("/alone/$last")->{status} } 1 .. 5;
		is $alone, '502 502 502 502 502', 'the only backend is asked each time';
		is $srv->counter('proxy-core.next-upstream-none'), 5, '... and nothing is left';
		unlink "$dir/fails";
		is text($srv->fetch("/alone/$last")), '200 first', '... and answers as soon as it is well';
		ok eventually(sub { text($srv->fetch("/fails/$last")) eq '200 first' }), 'the other one comes back';
		kill 'KILL', $bad, $good;
		waitpid $_, 0 for $bad, $good;
	};
}

done_testing;
