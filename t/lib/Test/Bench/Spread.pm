package Test::Bench::Spread;
# Kept connections by worker, and what a connection of one request costs.
#
# `run($bench)` prints two tables.
#
# The first: 400 kept connections to 4 workers, by accel-server, nginx, and nginx with `reuseport`. Each figure is the busiest worker
# in terms of the mean, so 1 is even. The connections are opened at once, or one after the other, each with one request. Then the first 200
# leave. `p99` is the time from connect(2) to the whole first answer, one after the other.
#
# The second: a new connection for each request. Two programs that only compute have two thirds of the server's core, so the load generator is
# not the limit: its core has time left. (With one such program the generator used 98 % of its core, with accel-server.) `CPU us` is what the server needs for a connection, `calls` its system calls (strace, in a run apart).
use v5.36;
use List::Util qw(max sum0);
use Time::HiRes qw(sleep time);
use Accel::Util qw(find_program);
use Test::Http qw(req);

my ($WORKERS, $CLIENTS) = (4, 400);
# With 64 connections the server was idle while it had the core: it used 44 of its 50 %.
my $PARALLEL = 256;
my $RIVALS = 2;

my @spread = ({ kind => 'accel', name => 'accel', conf => "status.status-url = \"/status\"\n" }, { kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-reuseport', reuseport => 1 });
my @cost = map { { kind => $_, name => $_ } } qw(accel nginx lighttpd);

sub run ($bench) {
	my $root = $bench->files;
	connections($bench, $root);
	costs($bench, $root);
}

# ---------------------------------------------------------------- kept connections

sub connections ($bench, $root) {
	my @want = grep { $bench->asked($_->{name}) } @spread or return;
	print "\n$CLIENTS kept connections, $WORKERS workers: the busiest worker / the mean\n";
	printf "  %-16s %9s %10s %13s %12s\n", 'server', 'at once', 'in turn', '200 have left', 'p99 us';
	my $of = $bench->result->{spread} = {};
	for my $k (@want) {
		next if Accel::Peer->missing($k->{kind});
		my @runs = map { spread_once($bench, $k, $root) } 1 .. $bench->opt('rounds');
		my %worst = map { my $what = $_; $what => max(map { $_->{$what} } @runs) } qw(at_once in_turn left p99);
		$of->{ $k->{name} } = \%worst;
		printf "  %-16s %9.2f %10.2f %13.2f %12.0f\n", $k->{name}, @worst{qw(at_once in_turn left p99)};
	}
	return unless $of->{accel};
	print "\nAims\n";
	$bench->aim("accel: busiest worker / mean, $_", $of->{accel}{$_}, '<=', 1.3) for qw(at_once in_turn left);
}

sub spread_once ($bench, $k, $root) {
	my $srv = Accel::Peer->start($k->{kind}, %$k, root => $root, workers => $WORKERS);
	sleep 0.3;
	my $before = sockets($srv);
	my %got;
	my @c = map { Test::Http::Conn->new($srv->port) } 1 .. $CLIENTS;
	$_->send(req('/1k.bin')) for @c;
	$_->reply for @c;
	$got{at_once} = uneven($srv, $before);
	$_->abort for splice @c;
	sleep 0.3;
	my @took;
	for (1 .. $CLIENTS) {
		my $at = time;
		push @c, Test::Http::Conn->new($srv->port);
		$c[-1]->send(req('/1k.bin'));
		$c[-1]->reply;
		push @took, 1e6 * (time - $at);
	}
	$got{in_turn} = uneven($srv, $before);
	$_->abort for splice @c, 0, $CLIENTS / 2;
	sleep 0.5;
	$got{left} = uneven($srv, $before);
	$got{p99} = (sort { $a <=> $b } @took)[0.99 * @took];
	$srv->stop;
	return \%got;
}

# Sockets of each process.
sub sockets ($srv) {
	my %n;
	for my $pid ($srv->pids) {
		$n{$pid} = grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$pid/fd/*";
	}
	return \%n;
}

# accel-server's workers are threads: its status page has their counts.
sub uneven ($srv, $before) {
	my @n;
	if ($srv->kind eq 'accel') {
		my $c = Test::Http::Conn->new($srv->port);
		$c->send(req('/status?json', 'Connection: close'));
		@n = map { $_->{connections} } @{ JSON::PP::decode_json($c->reply->{body})->{workers} };
	} else {
		my $now = sockets($srv);
		@n = map { $now->{$_} - ($before->{$_} // 0) } grep { $_ != $srv->pid } keys %$now;
	}
	return max(@n) / ((sum0(@n) || 1) / $WORKERS);
}

# ---------------------------------------------------------------- connections of one request

sub costs ($bench, $root) {
	my @want = $bench->wanted(@cost);
	my %runs;
	my @load = (-c => $PARALLEL, '--close');
	my %srv = map { $_->{name} => $bench->server($_, $root) } @want;
	for my $srv (values %srv) { $bench->load(@load, -n => 2000, $srv->url . '/1k.bin') }
	my @rival = map { $bench->begin($bench->on_server_core, $^X, '-e', 'alarm 3600; 1 while 1') } 1 .. $RIVALS;
	for my $round (1 .. $bench->opt('rounds')) {
		for my $k (@want) {
			push @{ $runs{ $k->{name} } }, $bench->quietest(sub { cost_once($bench, $srv{ $k->{name} }, [map { $_->{pid} } @rival], @load) });
		}
	}
	kill KILL => map { $_->{pid} } @rival;
	$bench->end($_) for @rival;
	my $of = $bench->result->{cost} = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
	print "\n1 kB, a connection for each request, $PARALLEL at a time; a third of a core for the server\n";
	printf "  %-16s %9s %5s %9s %9s %13s %7s\n", 'server', 'conn/s', '+-%', 'CPU us', 'server %', 'generator %', 'calls';
	for my $k (@want) {
		my $s = $of->{ $k->{name} };
		$s->{calls} = calls($bench, $srv{ $k->{name} }, @load);
		printf "  %-16s %9.0f %5.1f %9.2f %9.0f %13.0f %7.2f\n", $k->{name}, @$s{qw(rps spread cpu server_busy client_busy)}, $s->{calls};
	}
	$_->stop for values %srv;
	my ($ours, $nginx) = @$of{qw(accel nginx)};
	return unless $ours && $nginx;
	print "\nAims\n";
	$bench->aim('connections per second, accel / nginx', $ours->{rps} / $nginx->{rps}, '>=', 1.05, $ours, $nginx);
	$bench->aim('connections per CPU second, accel / nginx', $nginx->{cpu} / $ours->{cpu}, '>=', 1.05, $ours, $nginx);
	$bench->aim("$_: percent of its core that the generator uses", $of->{$_}{client_busy}, '<=', 90) for qw(accel nginx);
}

# The programs that compute do not count as others.
sub cost_once ($bench, $srv, $rivals, @load) {
	my $rival_cpu = sub { return sum0(map { Accel::Peer::process_cpu($_) } @$rivals) };
	my @before = ($bench->others_begin, $srv->cpu, $rival_cpu->(), $bench->own_cpu);
	my $r = $bench->load(@load, -d => $bench->opt('seconds'), $srv->url . '/1k.bin');
	my ($used, $computed, $client) = ($srv->cpu - $before[1], $rival_cpu->() - $before[2], $bench->own_cpu - $before[3]);
	return { others => $bench->others_end($before[0], $used + $computed), rps => $r->{requests_per_s}, errors => $r->{errors}{all},
		cpu => $r->{answered} ? 1e6 * $used / $r->{answered} : 0,
		server_busy => 100 * $used / $r->{seconds}, client_busy => 100 * $client / $r->{seconds} };
}

# System calls for a connection; 0: strace is missing.
sub calls ($bench, $srv, @load) {
	if (!find_program('strace')) {
		$bench->note('system calls left out: strace is not installed');
		return 0;
	}
	my $n = 3000;
	my $file = $bench->dir . '/strace';
	my $tracer = $bench->begin('strace', '-q', '-f', '-c', '-o', $file, map { ('-p', $_) } $srv->pids);
	sleep 0.5;
	$bench->load(@load, -n => $n, $srv->url . '/1k.bin');
	kill INT => $tracer->{pid};
	$bench->end($tracer);
	open my $fh, '<', $file or return 0;
	my ($total) = map { /^100\.00\s+\S+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$/ ? $1 : () } <$fh>;
	return ($total // 0) / $n;
}

1;
