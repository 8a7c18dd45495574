# Connections are spread evenly over the workers, whatever the order in which they come and go.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use List::Util qw(max sum0);
use Test::AccelLoad;
use Test::More;
use Test::Server;
use Test::Http qw(req);
use Test::Util qw(eventually put slurp);

my ($WORKERS, $CLIENTS) = (4, 400);

my $srv = Test::Server->start(conf => <<"CONF");
server.max-worker = $WORKERS
server.max-connections = 2000
server.max-keep-alive-requests = 1000000
status.status-url = "/status"
status.statistics-url = "/counters"
debug.log-request-header = "enable"
server.tag = "g0"
CONF
$srv->write('a', 'A');

# The connections of each worker, and the one that asks, as the status page counts them.
sub counts { return map { $_->{connections} } @{ JSON::PP::decode_json($srv->fetch('/status?json')->{body})->{workers} } }

# True if all are counted and the busiest worker has at most 1.3 x the mean.
sub is_even {
	my ($n, $workers, @count) = @_;
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
sub reload {
	my ($workers) = @_;
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
	my %id = reverse $srv->log =~ m{ev=debug\.request id=c(\d+)\.\d+ line="?GET /a\?client-(\d+)}g;
	is keys %id, $CLIENTS, 'the log has the numbers of their connections';
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

subtest 'one request each' => sub {
	my $report = Test::AccelLoad->run($srv, '/a', '-c', 64, '-n', 4_000, '--close');
	is $report->{errors}{all}, 0, 'no request fails';
	is $report->{answered}, 4_000, 'all are answered';
};

done_testing;
