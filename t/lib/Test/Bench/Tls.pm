package Test::Bench::Tls;
# TLS: accel-server beside nginx, lighttpd and h2o of Debian, each with one worker and the same certificate.
#
# `run($bench)` prints a table for each case and the aims. The client chooses cipher and group, so they are the same everywhere. A case with
# `flood` measures hot requests by the clock on kept connections, alone and beside clients that make full handshakes only.
use v5.36;
use Accel::Bench::Rig;
use Test::Bench::Beside qw(print_beside rounds);
use Test::Bench::Hot;
use Test::Tls;
use List::Util qw(sum0);
use Time::HiRes qw(sleep time);
use Accel::Util qw(program slurp);

my @settings = map { "--tls-conf=$_" } 'MinProtocol=TLSv1.3', 'Ciphersuites=TLS_AES_128_GCM_SHA256', 'Groups=X25519';
my @kinds = map { { kind => $_, name => $_ } } qw(accel nginx lighttpd h2o);
my %bits = (rsa => 2048, 'rsa-4096' => 4096);
my $settle = 0.3;
my $warm = 1;    # seconds: the hot clients connect, and then the flood

# aims: "ours over the best other server's CPU time, or over nginx's, at most".
my @cases = (
	(map { my $key = $_; (
		{ name => "new-$key", title => "new connections with one request of 1 kB, $key, full handshakes", path => '/1k.bin', cert => $key,
		  load => [-c => 50, '--close'], aims => [[best => 1]] },
		{ name => "resumed-$key", title => "... $key, resumed", path => '/1k.bin', cert => $key, load => [-c => 50, '--close', '--tls-resume'], aims => [[best => 1]] },
	) } qw(ecdsa rsa)),
	{ name => '1k', title => '1 kB, keep-alive, 100 connections', path => '/1k.bin', load => [-c => 100], warm => 0.5, aims => [[best => 1], [nginx => 0.8]] },
	{ name => '1k-1000', title => '1 kB, keep-alive, 1000 connections', path => '/1k.bin', load => [-c => 1000], warm => 2.5, aims => [[best => 1], [nginx => 0.8]] },
	{ name => '100k', title => '100 kB, keep-alive, 50 connections', path => '/100k.bin', load => [-c => 50], warm => 0.5, aims => [[best => 1]] },
	{ name => '10m', title => '10 MB, keep-alive, 10 connections', path => '/10m.bin', load => [-c => 10], warm => 0.5, aims => [[best => 1]] },
	(map { my ($bits, $from) = @$_; { name => "flood-$bits-$from", cert => $bits == 2048 ? 'rsa' : 'rsa-4096', flood => $from,
		title => "a hot 1 kB file on 4 kept connections, 1000 req/s by the clock, beside full handshakes with RSA $bits from " . ($from eq 'one' ? 'one address' : 'many addresses') } }
		[4096, 'one'], [4096, 'many'], [2048, 'one'], [2048, 'many']),
);

# Hot clients beside those of cold files, all of them over TLS; and accel-server without TLS in the same rounds.
my $cold = { name => 'cold', what => 'beside', disk => { spindles => 16, lookup_ms => 200, open_ms => 100, read_ms => 20, jitter => 20 }, clients => 16, list => 'small', warm => 0.5 };
my $plain = { kind => 'accel', name => 'accel-plain' };

sub run ($bench) {
	my $root = $bench->files;
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @cases, $cold);
	my @wanted = ($bench->wanted(@kinds), $bench->other_build // ());
	my (%cert, %servers);
	for my $case (grep { $_ != $cold } @chosen) {
		my $key = $case->{cert} // 'ecdsa';
		my $cert = $cert{$key} //= Test::Tls::certificate($bench->dir, $key, rsa => $bits{$key});
		my $servers = $servers{$key} //= [map { $bench->server({ %$_, tls => $cert }, $root) } @wanted];
		my %runs;
		for my $round (1 .. $bench->opt('rounds')) {
			push @{ $runs{ $_->name } }, $case->{flood} ? flooded($bench, $_, $case) : crowd($bench, $_, $case) for @$servers;
		}
		my $of = $bench->result->{tls}{ $case->{name} } = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
		($case->{flood} ? \&print_flood : \&print_case)->($bench, $case, $of, map { $_->{name} } @wanted);
	}
	cold($bench, @wanted) if grep { $_ == $cold } @chosen;
	print "\nAims\n";
	aims($bench, $_, $bench->result->{tls}{ $_->{name} }) for @chosen;
}

# warm: connections are kept, and their handshakes are over before anything counts: those of 1000 take longer than the requests of a second.
# Otherwise after a first connection of each client, which is not measured.
sub crowd ($bench, $srv, $case) {
	my @load = (@{ $case->{load} }, @settings);
	$bench->load(@load, -d => 0.3, $srv->url . $case->{path}) unless $case->{warm};
	return $bench->measure($srv, $case->{path}, \@load, undef, $case->{warm} // 0);
}

# ------------------------------------------------------------- hot requests beside a flood

# Their own handshakes are over before anything counts.
sub hot ($bench, $srv) {
	return $bench->load_begin(-c => 4, '--rate', 1000, '--warm-up', $warm, -d => $bench->opt('seconds'), -t => 60, @settings, $srv->url . '/1k.bin');
}

# Clients of one address, or one client of each of many. They share a core with the hot clients, which must not wait for it: they are nice.
sub flood ($bench, $srv, $from) {
	my @load = ('nice', '-n', 19, program('accel-load'), '--json', @settings, '--close', -t => 60, -d => $bench->opt('seconds') + $warm + 2 * $settle);
	return $bench->begin(@load, -c => 100, $srv->url . '/1k.bin') if $from eq 'one';
	my $n = $bench->opt('quick') ? 50 : 250;
	return map { $bench->begin(@load, -c => 1, '--from', "127.0.1.$_", $srv->url . '/1k.bin') } 1 .. $n;
}

# Seconds that the threads which answer requests waited for the core: what the scheduler adds. Handshakes of accel-server wait in threads of their own.
sub waited ($srv) {
	my @tasks = grep { slurp("$_/comm") !~ /^tls-/ } map { glob "/proc/$_/task/*" } $srv->pids;
	return sum0(map { (split ' ', slurp("$_/schedstat"))[1] // 0 } @tasks) / 1e9;
}

# The connections of the hot clients are made before the flood: handshakes of new clients wait for each other anywhere.
sub flooded ($bench, $srv, $case) {
	my $alone = $bench->load_end(hot($bench, $srv));
	my ($cpu, $others, $waited, $at) = ($srv->cpu, $bench->others_begin, waited($srv), time);
	my $kept = hot($bench, $srv);
	sleep $settle;
	my @flood = map { $bench->load_end($_) } flood($bench, $srv, $case->{flood});
	my $beside = $bench->load_end($kept);
	$waited = (waited($srv) - $waited) / (time - $at);
	my $shaken = 0;
	$shaken += $_->{handshakes} / $_->{seconds} for @flood;
	return { others => $bench->others_end($others, $srv->cpu - $cpu), rps => $beside->{requests_per_s}, shaken => $shaken, waits => 100 * $waited,
		errors => $beside->{errors}{all} + $alone->{errors}{all}, alone => $alone->{latency_us}{p99}, p50 => $beside->{latency_us}{p50}, p99 => $beside->{latency_us}{p99},
		max => $beside->{latency_us}{max}, ratio => $beside->{latency_us}{p99} / ($alone->{latency_us}{p99} || 1) };
}

# ------------------------------------------------------------- hot requests beside cold files

sub cold ($bench, @wanted) {
	my $rig = Accel::Bench::Rig->new($bench);
	my $cert = Test::Tls::certificate($bench->dir, 'cold');
	my @tls = map { { %$_, tls => $cert } } grep { $_->{name} ne 'h2o' } @wanted;
	my @servers = (@tls, grep { grep { $_->{name} eq 'accel' } @tls } $plain);
	my ($case) = rounds($bench, $rig, 'tls', \@servers, [$cold]);
	print_beside($case, "$cold->{clients} clients of cold files of 100 kB, all over TLS but those of $plain->{name}  ($cold->{name})", map { $_->{name} } @servers);
}

# ------------------------------------------------------------- tables

# The other server with the least CPU time for an answer.
sub best ($of) { return (sort { $of->{$a}{cpu} <=> $of->{$b}{cpu} } grep { $_ ne 'accel' && $of->{$_}{cpu} } sort keys %$of)[0] }

sub print_case ($bench, $case, $of, @names) {
	print "\n$case->{title}  ($case->{name})\n";
	printf "  %-10s %9s %5s %10s %9s %8s %8s %6s %6s %7s %6s %s\n", 'server', 'req/s', '+-%', 'CPU us/rq', 'MB/s', 'p50 ms', 'p99 ms', 'busy%', 'load%', 'others%', 'errors', 'CPU, accel / it';
	for my $name (@names) {
		my $s = $of->{$name};
		printf "  %-10s %9.0f %5.1f %10.2f %9.0f %8.3f %8.3f %6.0f %6.0f %7.0f %6d %s\n", $name, $s->{rps}, $s->{spread}, $s->{cpu} // 0, $s->{mb}, $s->{p50} / 1000, $s->{p99} / 1000,
		    @$s{qw(server_busy client_busy others errors)}, $name ne 'accel' && $of->{accel} && $s->{cpu} ? sprintf('%.2fx', $of->{accel}{cpu} / $s->{cpu}) : '';
	}
}

sub print_flood ($bench, $case, $of, @names) {
	print "\n$case->{title}  ($case->{name})\n  the clients of the flood are nice, so that the hot ones need not wait for their core; loop%: time that the server's loop waits for its own\n";
	printf "  %-10s %12s %9s %9s %9s %8s %14s %7s %7s %6s\n", 'server', 'alone p99 ms', 'p50 ms', 'p99 ms', 'max ms', 'p99 x', 'handshakes/s', 'loop%', 'others%', 'errors';
	for my $name (@names) {
		my $s = $of->{$name};
		printf "  %-10s %12.3f %9.3f %9.3f %9.1f %8.2f %14.0f %7.1f %7.0f %6d\n", $name, (map { $_ / 1000 } @$s{qw(alone p50 p99 max)}), @$s{qw(ratio shaken waits others errors)};
	}
}

sub aims ($bench, $case, $of) {
	my $ours = $of->{accel} or return;
	return $bench->aim('cold: hot p99 beside / alone, over TLS / without', $ours->{p99_ratio} / $of->{ $plain->{name} }{p99_ratio}, '<=', 1.1, $ours, $of->{ $plain->{name} }) if $case == $cold;
	return $bench->aim("$case->{name}: p99 beside / alone", $ours->{ratio}, '<=', 1.5, $ours) if $case->{flood};
	for my $aim (@{ $case->{aims} }) {
		my ($peer, $most) = @$aim;
		$peer = best($of) // next if $peer eq 'best';
		my $theirs = $of->{$peer};
		$bench->aim("$case->{name}: CPU per request, accel / $peer", $ours->{cpu} / $theirs->{cpu}, '<=', $most, $ours, $theirs) if $ours->{cpu} && $theirs && $theirs->{cpu};
	}
}

1;
