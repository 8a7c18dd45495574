package Test::Bench::Http2;
# HTTP/2: accel-server beside nginx, lighttpd and h2o of Debian, each with one worker, over TLS (ALPN) and in clear (prior knowledge).
#
# `run($bench)` has three parts; --case names a part or one of its cases:
#
#     matrix     h2load: a size, streams at a time and connections, over TLS or in clear: `1k-10-100-tls` is 1 kB, 10 streams, 100 connections
#     fair       one connection: hot streams beside cold ones (Test::Bench::Http2::Fair)
#     floods     each attack of HTTP/2 beside healthy clients (Test::Bench::Http2::Floods); a case is the name of an attack
#
# h2load keeps as many streams open as the server allows: nginx 128, h2o 100, lighttpd 8.
use v5.36;
use List::Util qw(max sum0);
use Time::HiRes qw(sleep time);
use Accel::Util qw(find_program);
use Test::Bench::Http2::Fair ();
use Test::Bench::Http2::Floods ();
use Test::Tls;

my @kinds = map { { kind => $_, name => $_, http2 => 1 } } qw(accel nginx lighttpd h2o);
my @sizes = (['1k', '1 kB'], ['10k', '10 kB'], ['100k', '100 kB']);
my @streams = (1, 10, 100);
my @connections = (1, 100, 1000);
my @transports = (['tls', 'over TLS'], ['clear', 'in clear']);
my %quick = map { $_ => 1 } qw(1k-10-100-tls 1k-100-1-tls 100k-10-100-tls 1k-1-100-clear 1k-10-100-clear 1k-100-1-clear 10k-10-100-clear 100k-10-100-clear);
my %most = (best => 1, nginx => 1 / 1.3);       # aims: our CPU time for a request over theirs
my $grace = 20;                                 # seconds after which h2load has failed

my @cells = map { my ($how) = @$_; map { my ($size) = @$_; map { my $m = $_; map {
	{ name => "$size-$m-$_-$how", size => $size, streams => $m, connections => $_, how => $how } } @connections } @streams } @sizes } @transports;

sub run ($bench) {
	my ($cells, $fair, $attacks) = chosen($bench->opt('case'), $bench->opt('quick'));
	matrix($bench, @$cells) if @$cells;
	Test::Bench::Http2::Fair::run($bench, @kinds) if $fair;
	Test::Bench::Http2::Floods::run($bench, \@kinds, @$attacks) if @$attacks;
	return;
}

# Cells of the matrix, whether fair is wanted, and attacks: those that are named, or all. --quick leaves out cells that are not named.
sub chosen ($names, $quick) {
	my %asked = map { $_ => 1 } @{ $names // [qw(matrix fair floods)] };
	my @attacks = Test::Bench::Http2::Floods::attacks();
	my %valid = map { $_ => 1 } qw(matrix fair floods), @attacks, map { $_->{name} } @cells;
	for my $name (sort keys %asked) {
		die "bench: no case $name; there are: matrix fair floods, cells of the matrix like 1k-10-100-tls, and attacks: @attacks\n" unless $valid{$name};
	}
	return ([grep { $asked{ $_->{name} } || ($asked{matrix} && (!$quick || $quick{ $_->{name} })) } @cells], $asked{fair},
		[grep { $asked{floods} || $asked{$_} } @attacks]);
}

# ------------------------------------------------------------- the matrix

# Each round measures all servers in turn.
sub matrix ($bench, @chosen) {
	return $bench->note('the matrix is left out: h2load is not installed') unless find_program('h2load');
	my @wanted = ($bench->wanted(@kinds), map { { %$_, http2 => 1 } } $bench->other_build // ());
	my $of = $bench->result->{http2} = {};
	for my $transport (@transports) {
		my ($how, $title) = @$transport;
		my @now = grep { $_->{how} eq $how } @chosen or next;
		my $cert = $how eq 'tls' ? Test::Tls::certificate($bench->dir, 'http2') : undef;
		my @servers = map { $bench->server({ %$_, tls => $cert }, $bench->files) } @wanted;
		for my $cell (@now) {
			my %runs;
			for my $round (1 .. $bench->opt('rounds')) {
				push @{ $runs{ $_->name } }, crowd($bench, $_, $cell) for @servers;
			}
			$of->{ $cell->{name} } = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
		}
		for my $size (@sizes) {
			my @rows = grep { $_->{size} eq $size->[0] } @now;
			print_rows("$size->[1] $title", \@rows, $of, map { $_->{name} } @wanted) if @rows;
		}
	}
	print "\nAims\n";
	aims($bench, $_, $of->{ $_->{name} }) for @chosen;
	return;
}

# Seconds until all connections are made; their handshakes are not measured.
sub warm ($cell) { return $cell->{connections} < 1000 ? 0.4 : $cell->{how} eq 'tls' ? 2.5 : 1 }

sub crowd ($bench, $srv, $cell) {
	return $bench->quietest(sub { once($bench, $srv, $cell) });
}

# CPU time of a second in the middle of the run over the requests of a second: the windows of h2load and of this clock need not be the same.
sub once ($bench, $srv, $cell) {
	my ($seconds, $warm, $first, $others) = ($bench->opt('seconds'), warm($cell), $srv->cpu, $bench->others_begin);
	my $client = Accel::Bench::Engine::own_cpu();
	my $began = time;
	my $load = $bench->begin('timeout', $seconds + $warm + $grace, 'h2load', -c => $cell->{connections}, -m => $cell->{streams}, -D => int(1000 * $seconds) . 'ms',
		'--warm-up-time' => int(1000 * $warm) . 'ms', $cell->{how} eq 'tls' ? qw(--tls13-ciphers=TLS_AES_128_GCM_SHA256 --groups=X25519) : (), $srv->url . "/$cell->{size}.bin");
	sleep $warm;
	my ($cpu, $at) = ($srv->cpu, time);
	sleep $seconds;
	my ($used, $took) = ($srv->cpu - $cpu, time - $at);
	my $said = read_h2load($bench->end($load));
	$bench->note("h2load gave no result for $cell->{name} by " . $srv->name) unless $said->{rps};
	$client = Accel::Bench::Engine::own_cpu() - $client;
	return { others => $bench->others_end($others, $srv->cpu - $first), %$said, cpu => $said->{rps} ? 1e6 * $used / $took / $said->{rps} : undef,
		server_busy => 100 * $used / $took, client_busy => 100 * $client / (time - $began) };
}

# Answers, errors, and the mean latency in us, from what h2load prints.
sub read_h2load ($text) {
	my ($rps) = $text =~ m{^finished in [^,]+, ([\d.]+) req/s}m;
	my ($good, @bad) = $text =~ /(\d+) succeeded, (\d+) failed, (\d+) errored/;
	push @bad, $text =~ /^status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/m;
	my ($mean, $unit) = $text =~ /^time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)\s/m;
	return { rps => 0, errors => 1 } unless $rps && $good;
	return { rps => $rps, errors => sum0(@bad), mean => $mean * { us => 1, ms => 1000, s => 1e6 }->{$unit} };
}

# The other server with the least CPU time for an answer.
sub best ($of) { return (sort { $of->{$a}{cpu} <=> $of->{$b}{cpu} } grep { !/^(?:accel|beside)\z/ && $of->{$_}{cpu} } sort keys %$of)[0] }

sub print_rows ($title, $cells, $of, @names) {
	print "\n$title: CPU us/rq and req/s\n";
	printf "  %-22s" . ' %20s' x @names . " %8s %8s %6s %7s %6s\n", 'streams x connections', @names, '/ best', '/ nginx', 'load%', 'others%', 'errors';
	for my $cell (@$cells) {
		my $m = $of->{ $cell->{name} };
		my $best = best($m);
		my $over = sub ($name) { return $name && $m->{accel}{cpu} && $m->{$name}{cpu} ? sprintf '%.2f', $m->{accel}{cpu} / $m->{$name}{cpu} : '-' };
		printf "  %-22s" . ' %20s' x @names . " %8s %8s %6.0f %7.0f %6d\n", "$cell->{streams} x $cell->{connections}",
		    (map { $_->{cpu} ? sprintf '%.2f %9.0f', @$_{qw(cpu rps)} : '-' } @$m{@names}), $over->($best), $over->('nginx'),
		    (map { my $what = $_; max map { $_->{$what} // 0 } @$m{@names} } qw(client_busy others)), sum0(map { $_->{errors} } @$m{@names});
	}
}

sub aims ($bench, $cell, $of) {
	my $ours = $of->{accel};
	return unless $ours && $ours->{cpu};
	my %peer = (best => best($of), nginx => 'nginx');
	for my $which (sort keys %peer) {
		my $theirs = $of->{ $peer{$which} // next } // next;
		$bench->aim("$cell->{name}: CPU per request, accel / $peer{$which}", $ours->{cpu} / $theirs->{cpu}, '<=', $most{$which}, $ours, $theirs) if $theirs->{cpu};
	}
}

1;
