package Test::Bench::Hot;
# Files in memory: accel-server beside other servers and a floor program.
#
# `run($bench)` prints a table for each case and the aims. With `--beside DIR` the accel-server of another build is one more
# row. The floor (t/bench/floor.c) receives and sends
# a prepared answer without looking at the request: what is left of a server when it costs nothing.
#
# A case with a `crowd` measures its load beside other clients: those of the crowd ask for the same file all the time.
use v5.36;
use HTTP::Tiny;
use POSIX ();

# aims: "ours over theirs at least"; for cpu and p99 "ours over theirs at most".
our @cases = (
	{ name => '1k', title => '1 kB, keep-alive, 100 connections', path => '/1k.bin',
	  load => [-c => 100], aims => [[rps => nginx => 1.5], [rps => lighttpd => 1.3], [cpu => floor => 1.2]] },
	{ name => '1k-1000', title => '1 kB, keep-alive, 1000 connections', path => '/1k.bin',
	  load => [-c => 1000], aims => [[rps => lighttpd => 1.2], [cpu => floor => 1.1]] },
	{ name => '1k-4000', title => '1 kB, keep-alive, 4000 connections', path => '/1k.bin',
	  load => [-c => 4000], aims => [[rps => lighttpd => 1.2]] },
	{ name => 'new', title => '1 kB, 100 new connections a second beside 4000 busy ones', path => '/1k.bin',
	  crowd => [-c => 4000], load => [-c => 100, '--close', '--rate', 100], aims => [[p99 => lighttpd => 1]] },
	{ name => 'pipe', title => '1 kB, 16 pipelined, 100 connections', path => '/1k.bin',
	  load => [-c => 100, -p => 16], aims => [[rps => lighttpd => 4]] },
	{ name => '10k', title => '10 kB, keep-alive, 100 connections', path => '/10k.bin',
	  load => [-c => 100], aims => [[rps => nginx => 1.15]] },
	{ name => '100k', title => '100 kB, keep-alive, 100 connections', path => '/100k.bin',
	  load => [-c => 100], aims => [[rps => best => 1.1]] },
	{ name => '10m', title => '10 MB, keep-alive, 10 connections', path => '/10m.bin',
	  load => [-c => 10], aims => [[rps => nginx => 0.98]] },
	{ name => 'close', title => '1 kB, one connection per request, 100 at a time', path => '/1k.bin',
	  load => [-c => 100, '--close'], aims => [[rps => nginx => 1.05]] },
	{ name => '404', title => 'a name that is not there, keep-alive, 100 connections', path => '/none',
	  load => [-c => 100, '--status', 404], status => 404, aims => [] },
	{ name => 'range', title => '10 kB out of 10 MB, keep-alive, 100 connections', path => '/10m.bin',
	  load => [-c => 100, '--status', 206, -H => 'Range: bytes=1000001-1010240'],
	  range => [1_000_001, 1_010_240], status => 206, aims => [], not => { floor => 1 } },
);
my @kinds = map { { kind => $_, name => $_ } } qw(accel nginx lighttpd apache floor);

sub run ($bench) {
	my $root = $bench->files;
	my @servers = map { $bench->server($_, $root) } $bench->wanted(@kinds, $bench->other_build);
	my @chosen = chosen($bench->opt('case'), @cases);
	for my $case (@chosen) {
		my @able = able($bench, $case, $root, grep { !$case->{not}{ $_->kind } } @servers);
		my %runs;
		for my $round (1 .. $bench->opt('rounds')) {
			push @{ $runs{ $_->name } }, $bench->measure($_, $case->{path}, $case->{load}, $case->{crowd}) for @able;
		}
		$bench->result->{hot}{ $case->{name} } = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
		print_case($bench, $case, map { $_->name } @able);
	}
	print_aims($bench, @chosen);
}

sub list { return map { sprintf "%-8s %s\n", @$_{qw(name title)} } @cases }

# The cases with these names; all if no name is given.
sub chosen ($names = undef, @all) {
	return @all unless $names;
	for my $name (@$names) {
		grep { $_->{name} eq $name } @all
		    or die "bench: no case $name; there are: " . join(' ', map { $_->{name} } @all) . "\n";
	}
	return grep { my $c = $_; grep { $c->{name} eq $_ } @$names } @all;
}

# The servers that give the right answer, after a warm-up.
sub able ($bench, $case, $root, @servers) {
	my @able;
	for my $srv (@servers) {
		my $why = verify($srv, $case, $root);
		if ($why) {
			$bench->note($srv->name . " left out of $case->{name}: $why");
			next;
		}
		$bench->load(@{ $case->{load} }, -d => 0.3, $srv->url . $case->{path});
		push @able, $srv;
	}
	return @able;
}

# Byte for byte the file, or the range of it: no server is fast with wrong answers.
sub verify ($srv, $case, $root) {
	my %h = $case->{range} ? (Range => "bytes=$case->{range}[0]-$case->{range}[1]") : ();
	my $r = HTTP::Tiny->new(timeout => 20)->get($srv->url . $case->{path}, { headers => \%h });
	my $want = $case->{status} // 200;
	return "status $r->{status} instead of $want" if $r->{status} != $want;
	return if $want == 404;
	open my $fh, '<:raw', "$root$case->{path}" or return "$case->{path}: $!";
	my $bytes = do { local $/; <$fh> };
	$bytes = substr $bytes, $case->{range}[0], $case->{range}[1] - $case->{range}[0] + 1 if $case->{range};
	return $r->{content} eq $bytes ? undef : 'wrong bytes';
}

sub print_case ($bench, $case, @names) {
	my $of = $bench->result->{hot}{ $case->{name} };
	print "\n$case->{title}  ($case->{name})\n";
	printf "  %-10s %10s %5s %9s %9s %8s %8s %6s %6s %7s %6s %s\n", 'server', 'req/s', '+-%', 'CPU us/rq', 'MB/s',
	    'p50 ms', 'p99 ms', 'busy%', 'load%', 'others%', 'errors', $of->{accel} ? 'accel is: req/s, CPU' : '';
	for my $name (@names) {
		my $s = $of->{$name};
		printf "  %-10s %10.0f %5.1f %9.2f %9.0f %8.3f %8.3f %6.0f %6.0f %7.0f %6d", $name, $s->{rps}, $s->{spread},
		    $s->{cpu} // 0, $s->{mb}, $s->{p50} / 1000, $s->{p99} / 1000,
		    @$s{qw(server_busy client_busy others errors)};
		$bench->note(sprintf '%s of %s: others used %.0f %% of a core, req/s are too low', $name, $case->{name},
		    $s->{others}) if $bench->disturbed($s);
		printf "   %.2fx  %.2fx", ratio(rps => $of, $name), ratio(cpu => $of, $name)
		    if $of->{accel} && $name ne 'accel';
		print "\n";
	}
	$bench->note('where load% is near 100 the load generator is the limit: compare CPU per request instead');
}

# Ours over theirs; theirs may be "best" of nginx and lighttpd.
sub ratio ($what, $of, $name) {
	($name) = sort { $of->{$b}{rps} <=> $of->{$a}{rps} } grep { $of->{$_} } qw(nginx lighttpd) if $name eq 'best';
	my ($ours, $theirs) = map { $_ && $of->{$_} && $of->{$_}{$what} } 'accel', $name;
	return $ours && $theirs ? $ours / $theirs : 0;
}

sub print_aims ($bench, @chosen) {
	return unless $bench->result->{hot}{ $chosen[0]{name} }{accel};
	my %less = (cpu => 'CPU per request', p99 => 'p99');
	print "\nAims\n";
	for my $case (@chosen) {
		my $of = $bench->result->{hot}{ $case->{name} };
		for my $aim (@{ $case->{aims} }) {
			my ($what, $peer, $mark) = @$aim;
			my $is = ratio($what, $of, $peer) or next;
			$bench->aim("$case->{name}: " . ($less{$what} // 'req/s') . " / $peer", $is,
			    $less{$what} ? '<=' : '>=', $mark, grep { $_ } @$of{'accel', $peer});
		}
	}
}

1;
