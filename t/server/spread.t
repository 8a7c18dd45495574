# Connections are spread evenly over the workers, whatever the order in which they come and go.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use List::Util qw(max sum0);
use Test::AccelLoad;
use Test::More;
use Test::Server;
use Test::Http qw(req);
use Test::Thread;
use Test::Util qw(eventually put slurp);

my ($WORKERS, $CLIENTS) = (4, 400);

my $srv = Test::Server->start(conf => <<"CONF");
server.max-worker = $WORKERS
server.max-connections = 2000
server.max-connections-per-address = 900
server.max-keep-alive-requests = 1000000
status.status-url = "/status"
status.statistics-url = "/counters"
debug.log-request-header = "enable"
server.tag = "g0"
server.pid-file = "\@RUN\@/pid"
CONF
$srv->write('a', 'A');

# The connections of each worker, and the one that asks, as the status page counts them.
sub counts { return map { $_->{connections} } @{ JSON::PP::decode_json($srv->fetch('/status?json')->{body})->{workers} } }

# True if all are counted and the busiest worker has at most 1.3 x the mean.
sub is_even ($n, $workers, @count) {
	my $all = sum0 @count;
	return @count == $workers && $all >= $n && max(@count) <= 1.3 * $all / $workers;
}

sub ok_even {
	my ($name, $n, $workers) = @_;
	my @count;
	ok eventually(sub { @count = counts(); is_even($n, $workers // $WORKERS, @count) }), $name or diag "connections by worker: @count";
	return;
}

sub ask {
	my ($path, @client) = @_;
	$_->send(req($path)) for @client;
	return scalar grep { ($_->reply->{body} // '') eq 'A' } @client;
}

sub ends { $_->abort for @_; return eventually(sub { sum0(counts()) <= 2 }) }

my $generation = 0;
sub reload ($workers) {
	my $conf = $srv->run . '/server.conf';
	my $tag = 'g' . ++$generation;
	put($conf, slurp($conf) =~ s/server\.tag = "\K\w+/$tag/r =~ s/max-worker = \K\d+/$workers/r);
	$srv->signal('USR1');
	return eventually(sub { ($srv->fetch('/a')->{header}{server} // '') eq $tag });
}

subtest 'opened at once' => sub {
	my @c = map { $srv->connect } 1 .. $CLIENTS;
	is ask('/a', @c), $CLIENTS, 'all are answered';
	ok_even('no worker has too many', $CLIENTS);
	ok reload($WORKERS), 'reloaded';
	ok_even('a reload keeps it so', $CLIENTS);
	is ask('/a', @c), $CLIENTS, 'all are answered on the same connections';
	for my $n (3, 2, $WORKERS) {
		ok reload($n), "reloaded with $n workers";
		ok_even('they share the connections', $CLIENTS, $n);
	}
	is ask('/a', @c), $CLIENTS, 'none is lost';
	ok ends(@c), 'all leave';
};

# The kernel gives a lone connection to the worker that was last to sleep.
subtest 'opened one after the other' => sub {
	my ($good, @c) = (0);
	for (1 .. $CLIENTS) {
		push @c, $srv->connect;
		$good += ask('/a', $c[-1]);
	}
	is $good, $CLIENTS, 'each is answered';
	ok_even('no worker has too many', $CLIENTS);
	cmp_ok $srv->counter('server.connections.spread'), '>', 0, 'the moves are counted';
	ok ends(@c), 'all leave';
};

subtest 'clients that leave unevenly' => sub {
	my @c = map { $srv->connect } 1 .. $CLIENTS;
	is ask('/a', @c), $CLIENTS, 'all are answered';
	ok_even('no worker has too many', $CLIENTS);
	$c[$_]->send(req("/a?client-$_")) for 0 .. $#c;
	is scalar(grep { ($_->reply->{body} // '') eq 'A' } @c), $CLIENTS, 'asked again, each by a name of its own';
	my %id;
	ok eventually(sub {
		%id = reverse $srv->log =~ m{ev=debug\.request id=c(\d+)\.\d+/\S+ line="?GET /a\?client-(\d+) }g;
		keys %id == $CLIENTS;
	}), 'the log has the numbers of their connections';
	my (%left, @stay, @go);
	for my $i (0 .. $#c) {
		my $worker = ($id{$i} - 1) % $WORKERS;
		if ($worker == 0 || $left{$worker}++ < 10) { push @stay, $c[$i] } else { push @go, $c[$i] }
	}
	cmp_ok scalar(@stay), '<', $CLIENTS / 2, 'those of one worker stay, and a few of the others';
	$_->abort for @go;
	ok eventually(sub { sum0(counts()) < @stay + 3 }), 'the others have left';
	ok_even('those that stay are even again', scalar @stay);
	is ask('/a', @stay), @stay, 'and are answered';
	ok ends(@stay), 'all leave';
};

subtest 'under load' => sub {
	my $load = Test::AccelLoad->start($srv, '/a', '-c', $CLIENTS, '-r', 4_000, '-d', 3);
	ok_even('no worker has too many', $CLIENTS);
	my @c = map { $srv->connect } 1 .. 100;
	is ask('/a', @c), 100, 'new ones are answered';
	my $report = $load->report;
	is $report->{errors}{all}, 0, 'no request fails';
	ok_even('those that stay are even', 100);
	ok ends(@c), 'all leave';
};

# The new server begins with no connections: they come back to it after the reply that says "close".
subtest 'a binary upgrade' => sub {
	my @stay = map { $srv->connect } 1 .. $CLIENTS;
	is ask('/a', @stay), $CLIENTS, 'all are answered';
	my $load = Test::AccelLoad->start($srv, '/a', '-c', 100, '-r', 2_000, '-d', 2);
	ok $srv->upgrade, 'upgraded under load';
	ok_even('what comes to the new server is even', 90);
	is ask('/a', @stay), $CLIENTS, 'the old one answers on the connections that stayed';
	is scalar(grep { $_->closed } @stay), $CLIENTS, '... and ends them';
	my @back = map { $srv->connect } 1 .. $CLIENTS;
	is ask('/a', @back), $CLIENTS, 'their clients come back';
	ok_even('and are even', $CLIENTS);
	is $load->report->{errors}{all}, 0, 'no request of the load fails';
	ok_even('... even when it has ended', $CLIENTS);
	is ask('/a', @back), $CLIENTS, 'none is lost';
	ok reload($WORKERS), 'reloaded after the upgrade';
	ok_even('still even', $CLIENTS);
	ok ends(@back), 'all leave';
};

subtest 'a worker that stands still' => sub {
	my $thread = Test::Thread->find($srv->pid, 'worker-2') or plan skip_all => "its thread cannot be stopped: $!";
	my @before = map { $srv->connect } 1 .. 40;
	is ask('/a', @before), 40, 'all are answered';
	$thread->stop;
	my @c = map { $srv->connect } 1 .. $CLIENTS;
	is ask('/a', @c), $CLIENTS, 'new connections are answered by the others';
	$thread->go;
	ok_even('when it goes on, it gets its share', $CLIENTS + 40);
	is ask('/a', @before, @c), $CLIENTS + 40, 'all are answered';
	ok ends(@before, @c), 'all leave';
};

# Half of each wave leaves. The count of their address moves with connections: a leak would refuse the last waves.
subtest 'a client that makes connections move' => sub {
	my @victim = map { $srv->connect } 1 .. 8;
	my $before = $srv->counter('server.connections.spread');
	my $closed = 0;
	for (1 .. 5) {
		my @c = map { $srv->connect } 1 .. $CLIENTS;
		is ask('/a', @c), $CLIENTS, 'a wave comes';
		my @go = splice @c, 0, $CLIENTS / 2;
		$closed += $CLIENTS;
		$_->abort for @go;
		is ask('/a', @victim), 8, '... others are answered';
		ok_even('... it is even', $CLIENTS / 2);
		$_->abort for @c;
	}
	cmp_ok $srv->counter('server.connections.spread') - $before, '<=', $closed, 'a move needs a connection that opens or closes';
	ok ends(@victim), 'all leave';
};

subtest 'one request each' => sub {
	my $report = Test::AccelLoad->run($srv, '/a', '-c', 64, '-n', 4_000, '--close');
	is $report->{errors}{all}, 0, 'no request fails';
	is $report->{answered}, 4_000, 'all are answered';
};

done_testing;
