package Test::Bench::Http2::Fair;
# One connection: 50 hot streams, alone and beside 50 streams for cold files on a slow disk with 2 spindles.
#
# accel-load opens both kinds on the same connection (--http2, --beside), in clear. Hot requests start by the clock, and latency counts from
# the scheduled start: a server that answers none for a second cannot hide it. Servers are those of Test::Bench::Http2, and nginx that asks
# fcgi-stat-accel first. "apart" has the same two loads on a server each: what it adds to the latency is the machine's, which runs the clients
# and the slow disk as well, and no server can do better.
use v5.36;
use Accel::Bench::Rig;
use Accel::Figures ();
use Accel::Slowfs;
use Accel::Util qw(program);
use Test::Bench::Beside ();

my %disk = (spindles => 2, lookup_ms => 8, read_ms => 8);
my ($streams, $rate, $hot) = (50, 1000, '/1k.bin');
my $most = 1.5;                 # aim: p99 beside cold streams over that without them
my $most_apart = 1.2;           # ... over that beside the same load on another server

# True if accel-load speaks HTTP/2.
sub has_http2 () {
	my $said = qx(@{[ program('accel-load') ]} --help 2>&1);
	return $said =~ /--http2/ && $said =~ /--beside/;
}

sub run ($bench, @kinds) {
	my ($ok, $why) = Accel::Slowfs->usable;
	return $bench->note("fair is left out: $why") unless $ok;
	return $bench->note('fair is left out: this accel-load has no --http2') unless has_http2();
	my $rig = Accel::Bench::Rig->new($bench, lists => ['small']);
	my @wanted = $bench->wanted(@kinds, { kind => 'nginx', name => 'nginx+accel', http2 => 1, front => 1, threads => 32, exempt => $hot });
	push @wanted, map { +{ %$_, name => 'apart', apart => 1 } } grep { $_->{name} eq 'accel' } @wanted;
	my %runs;
	for my $round (1 .. $bench->opt('rounds')) {
		push @{ $runs{ $_->{name} } }, once($bench, $rig, $_) for @wanted;
	}
	my $of = $bench->result->{fair} = { map { $_ => Accel::Figures::medians($bench->undisturbed(@{ $runs{$_} })) } keys %runs };
	print_fair($of, map { $_->{name} } @wanted);
	return unless $of->{accel};
	print "\nAims\n";
	$bench->aim('fair: hot p99 beside cold streams / without them', $of->{accel}{p99_ratio}, '<=', $most, $of->{accel});
	$bench->aim('fair: hot p99 beside cold streams / apart', $of->{accel}{p99} / $of->{apart}{p99}, '<=', $most_apart, @$of{qw(accel apart)});
}

# The reports on hot and on cold streams: of one connection, or of two servers.
sub both ($bench, $rig, $kind, $srv, @hot) {
	if (!$kind->{apart}) {
		my $r = $bench->load(@hot, '--beside' => $rig->list('small'), '--beside-streams' => $streams, $srv->url . $hot);
		return ($r, $r->{beside} // {});
	}
	my $other = $bench->server($kind, $rig->{root});
	my $cold = $bench->load_begin('--http2', -c => 1, '--streams' => $streams, -u => $rig->list('small'), -d => $bench->opt('seconds'), -t => 60, $srv->url . '/');
	my $r = $bench->load(@hot, $other->url . $hot);
	$cold = $bench->load_end($cold);
	$other->stop;
	return ($r, $cold);
}

# Each half has a disk and a server of its own, so that the cold files are cold.
sub once ($bench, $rig, $kind) {
	my @hot = ('--http2', -c => 1, '--streams' => $streams, '--rate' => $rate, -d => $bench->opt('seconds'), -t => 60);
	my ($alone, $beside, $cold);
	my @others = map { $_->{others} } $rig->with_server($kind, \%disk, sub ($srv) {
		$bench->load('--http2', -c => 1, '--streams' => $streams, -n => 200, -d => 5, $srv->url . $hot);
		$alone = $bench->load(@hot, $srv->url . $hot);
		return {};
	}), $rig->with_server($kind, \%disk, sub ($srv) {
		$bench->load('--http2', -c => 1, '--streams' => $streams, -n => 200, -d => 5, $srv->url . $hot);
		($beside, $cold) = both($bench, $rig, $kind, $srv, @hot);
		return {};
	});
	return { others => ($others[0] > $others[1] ? $others[0] : $others[1]), errors => $alone->{errors}{all} + $beside->{errors}{all},
		%{ Test::Bench::Beside::figures($alone, $beside, $cold) } };
}

sub print_fair ($of, @names) {
	print "\nOne connection in clear: $streams hot streams of 1 kB, $rate req/s by the clock, alone and beside $streams streams for cold files of 100 kB, 2 spindles, 8 ms for each look-up and read  (fair)\n";
	printf "  %-12s %27s   %29s %8s %8s %9s %9s %7s %6s\n", 'server', 'alone: p50  p99  max ms', 'beside: p50   p99   max ms', 'p50 x', 'p99 x', 'served/s', 'cold MB/s', 'others%', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-12s %9.3f %8.3f %8.1f   %9.3f %9.3f %9.1f %8.2f %8.2f %9.0f %9.2f %7.0f %6d\n", $name,
		    (map { ($m->{$_} // 0) / 1000 } qw(alone_p50 alone_p99 alone_max p50 p99 max)), map { $_ // 0 } @$m{qw(p50_ratio p99_ratio served cold_mb others errors)};
	}
}

1;
