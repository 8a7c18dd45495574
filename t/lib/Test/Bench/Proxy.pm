package Test::Bench::Proxy;
# Requests that an application answers: accel-server beside nginx, HAProxy and lighttpd.
#
# `run($bench)` prints a table for each case and the aims. The application is t/bench/responder.c, on the core of the load
# generator; its CPU time is not counted. Servers are compared by requests per second of their CPU time, because the load
# generator and the application share the other core.
use v5.36;
use Accel::Figures qw(median);
use Test::Bench::Hot;
use Accel::Peer;
use Time::HiRes qw(time);

my $mib = 1 << 20;
my $upload = 100 * $mib;
my @slow = (200, '/slow', 5);           # clients, path, seconds of an answer

# best: the servers to compare with; ours must be this many times as good as the best of them.
my @pairs = map { my $p = $_; map { { name => "$p-$_->[0]", protocol => $p, title => "$_->[1], $p", path => $_->[2], load => $_->[3], aim => $_->[4] } }
	['1k', '1 kB, 100 connections', '/1k', [-c => 100], 1.2], ['1k-1000', '1 kB, 1000 connections', '/1k', [-c => 1000], 1.2],
	['1m', '1 MiB, 20 connections', '/1m', [-c => 20], 1], ['one', '1 kB, one connection', '/1k', [-c => 1]] } qw(fastcgi http);
my @cases = (@pairs,
	(map { { name => "$_-upload", protocol => $_, title => "uploads of 100 MiB, one after the other, $_", run => \&uploads, aim => 1 } } qw(fastcgi http)),
	{ name => 'stat-accel', title => '1 kB files by way of fcgi-stat-accel, its CPU included, 100 connections', run => \&stat_accel },
	{ name => 'slow', title => "a hot file beside $slow[0] clients that wait $slow[2] s for an application", run => \&slow });
my @kinds = map { { kind => $_, name => $_ } } qw(accel nginx haproxy lighttpd);

sub run ($bench) {
	my @wanted = $bench->wanted(@kinds, $bench->other_build);
	my $responder = Accel::Peer->start('responder', root => $bench->files);
	my %servers;
	for my $case (Test::Bench::Hot::chosen($bench->opt('case'), @cases)) {
		if (my $run = $case->{run}) {
			$run->($bench, $case, $responder, @wanted);
			next;
		}
		my @able = servers($bench, $case->{protocol}, $responder, \%servers, @wanted);
		my %runs;
		for my $round (1 .. $bench->opt('rounds')) {
			push @{ $runs{ $_->name } }, once($bench, $_, $case) for @able;
		}
		print_case($bench, $case, \%runs, @able);
	}
	print_aims($bench);
}

# The servers that pass requests of this protocol on, warmed up; started once.
sub servers ($bench, $protocol, $responder, $started, @wanted) {
	return @{ $started->{$protocol} } if $started->{$protocol};
	my @able;
	for my $k (grep { $protocol eq 'http' || $_->{kind} ne 'haproxy' } @wanted) {
		my $srv = $bench->server({ %$k, proxy => { protocol => $protocol, to => $responder } }, $bench->dir . '/root');
		my $r = $bench->load(-c => 10, -n => 500, $srv->url . '/1k');
		if ($r->{errors}{all}) { $bench->note("$k->{name} left out of $protocol: errors") }
		else                   { push @able, $srv }
	}
	return @{ $started->{$protocol} = \@able };
}

# A short run is not repeated, so that --quick stays quick.
sub once ($bench, $srv, $case) {
	my $run = sub { $bench->_measure_once($srv, $case->{path}, $case->{load}) };
	return $bench->opt('quick') ? $run->() : $bench->quietest($run);
}

sub print_case ($bench, $case, $runs, @servers) {
	my $of = $bench->result->{proxy}{ $case->{name} } = { map { $_ => { %{ $bench->summary(@{ $runs->{$_} }) }, rounds => $runs->{$_} } } keys %$runs };
	print "\n$case->{title}  ($case->{name})\n";
	printf "  %-10s %9s %10s %12s %9s %9s %7s %7s %8s %6s\n", 'server', 'req/s', 'CPU us/rq', 'req/CPU s', 'p50 ms', 'p99 ms', 'busy%', 'others%',
	    'RSS MiB', 'errors';
	for my $srv (@servers) {
		my $s = $of->{ $srv->name };
		$s->{rss} = $srv->pss / $mib;
		printf "  %-10s %9.0f %10.2f %12.0f %9.3f %9.3f %7.0f %7.0f %8.1f %6d%s\n", $srv->name, $s->{rps}, $s->{cpu} // 0, $s->{cpu} ? 1e6 / $s->{cpu} : 0,
		    ($s->{p50} // 0) / 1000, ($s->{p99} // 0) / 1000, $s->{server_busy} // 0, $s->{others}, $s->{rss}, $s->{errors},
		    $srv->name ne 'accel' && $of->{accel} ? sprintf('   %.2fx', ratio($of, $srv->name)) : '';
	}
}

# Requests per CPU second, ours over theirs, within each round: both saw the same minute of the machine.
sub ratio ($of, $name) {
	my ($ours, $theirs) = map { $of->{$_}{rounds} } 'accel', $name;
	return median(map { $theirs->[$_]{cpu} / ($ours->[$_]{cpu} || 1) } 0 .. $#$ours);
}

sub print_aims ($bench) {
	print "\nAims\n";
	for my $case (@cases) {
		my $of = $bench->result->{proxy}{ $case->{name} } or next;
		if ($case->{name} eq 'slow') {
			$bench->aim('slow: p99 of the hot file, beside / alone', $of->{p99_ratio}, '<=', 1.5);
			next;
		}
		next unless $of->{accel} && $case->{aim};
		my ($best) = sort { $of->{$a}{cpu} <=> $of->{$b}{cpu} } grep { !/^(?:accel|beside)$/ } keys %$of or next;
		$bench->aim("$case->{name}: requests per CPU second / $best", ratio($of, $best), '>=', $case->{aim}, @$of{'accel', $best});
	}
}

# ------------------------------------------------------------- uploads

sub uploads ($bench, $case, $responder, @wanted) {
	my @able = servers($bench, $case->{protocol}, $responder, $bench->{uploaders}{ $case->{protocol} } //= {}, @wanted);
	my %runs;
	for my $round (1 .. $bench->opt('rounds')) {
		push @{ $runs{ $_->name } }, upload_once($bench, $_) for @able;
	}
	print_case($bench, $case, \%runs, @able);
}

sub upload_once ($bench, $srv) {
	my ($cpu, $others, $t) = ($srv->cpu, $bench->others_begin, time);
	my $answer = send_upload($srv->port);
	my ($used, $s) = ($srv->cpu - $cpu, time - $t);
	my $ok = $answer =~ /\r\n\r\n0*$upload\z/;
	return { others => $bench->others_end($others, $used), rps => 1 / $s, cpu => 1e6 * $used, errors => $ok ? 0 : 1, server_busy => 100 * $used / $s,
		p50 => 1e6 * $s, p99 => 1e6 * $s };
}

sub send_upload ($port) {
	my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or return "connect: $!";
	my $block = 'x' x $mib;
	my ($left, $answer) = ($upload, '');
	local $SIG{PIPE} = 'IGNORE';
	syswrite $sock, "POST /upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: $upload\r\n\r\n";
	while ($left > 0) {
		my $n = syswrite $sock, $block, $left < $mib ? $left : $mib;
		return "send: $!" unless $n;
		$left -= $n;
	}
	1 while sysread $sock, $answer, 65536, length $answer;
	return $answer;
}

# ------------------------------------------------------------- fcgi-stat-accel

# Where fcgi-stat-accel stands: accel-server asks it as an application; nginx and lighttpd ask it before they send their files.
sub stat_accel ($bench, $case, $responder, @wanted) {
	my $kept = "proxy-core.max-keep-alive-requests = 65535\n";
	my @able = map { $bench->server({ %$_, threads => 8, $_->{kind} eq 'accel' ? (via_stat_accel => 1, conf => $kept) : (front => 1) }, $bench->dir . '/root') }
	    grep { $_->{kind} ne 'haproxy' } @wanted;
	my %runs;
	$bench->load(-c => 10, -n => 500, $_->url . '/1k.bin') for @able;
	for my $round (1 .. $bench->opt('rounds')) {
		push @{ $runs{ $_->name } }, once($bench, $_, { path => '/1k.bin', load => [-c => 100] }) for @able;
	}
	print_case($bench, $case, \%runs, @able);
}

# ------------------------------------------------------------- a hot file beside slow applications

sub slow ($bench, $case, $responder, @wanted) {
	my ($kind) = grep { $_->{kind} eq 'accel' } @wanted or return;
	my $srv = $bench->server({ %$kind, proxy => { protocol => 'http', to => $responder, pool => 256 } }, $bench->dir . '/root');
	my @load = (-c => 50, '--rate' => 2000, -d => $bench->opt('quick') ? 2 : 5);
	my (@alone, @beside);
	my $hot = sub { $bench->load(@load, $srv->url . '/1k.bin')->{latency_us}{p99} };
	$hot->();
	for my $round (1 .. 3) {
		push @alone, $hot->();
		my $crowd = $bench->load_begin(-c => $slow[0], -n => $slow[0], -d => 3 * $slow[2], $srv->url . $slow[1]);
		push @beside, $hot->();
		my $r = $bench->load_end($crowd);
		$bench->note("slow: $r->{errors}{all} of the slow clients had errors") if $r->{errors}{all};
	}
	my %of = (p99_alone => median(@alone), p99_beside => median(@beside), p99_ratio => median(map { $beside[$_] / $alone[$_] } 0 .. $#alone));
	$bench->result->{proxy}{slow} = \%of;
	printf "\n%s  (slow)\n  p99 of 2000 requests a second: alone %.3f ms, beside %.3f ms\n", $case->{title}, map { $_ / 1000 } @of{qw(p99_alone p99_beside)};
}

1;
