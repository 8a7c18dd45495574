package Test::Bench::Backends;
# Files in memory: each way of accel-server from disk to socket.
#
# `run($bench)` prints requests per second, CPU time and system calls per request for each backend and four
# sizes, and which is best. System calls are counted over all threads by strace in a run of their own, since
# being watched costs time; their number hardly depends on speed.
use v5.36;
use Test::Bench::Hot;

my %size = map { $_ => 1 } qw(1k 10k 100k 10m);
my $same = 1.03;                # CPU times this close are not told apart

sub run ($bench) {
	my $root = $bench->files;
	my @servers = map { $bench->server($_, $root) } $bench->wanted($bench->backends);
	my @cases = Test::Bench::Hot::chosen($bench->opt('case'), grep { $size{ $_->{name} } } @Test::Bench::Hot::cases);
	for my $case (@cases) {
		my @able = Test::Bench::Hot::able($bench, $case, $root, @servers);
		my %runs;
		for my $round (1 .. $bench->opt('rounds')) {
			push @{ $runs{ $_->name } }, $bench->measure($_, $case->{path}, $case->{load}, $case->{crowd}) for @able;
		}
		my $of = $bench->result->{backends}{ $case->{name} } = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
		$of->{ $_->name }{syscalls} = syscalls($bench, $_, $case) for @able;
		$of->{$_}{errors} and $bench->note("$_ at $case->{name}: $of->{$_}{errors} errors") for sort keys %$of;
	}
	print_table($bench, \@cases, map { $_->name } @servers);
	print_best($bench, @cases);
}

# System calls per request, all threads; undef where strace may not look.
sub syscalls ($bench, $srv, $case) {
	my $requests = $case->{name} eq '10m' ? 500 : 5000;
	my $table = $bench->dir . '/strace.table';
	my $strace = strace($bench, $srv, $table) // return undef;
	my $r = $bench->load(@{ $case->{load} }, -c => 10, -n => $requests, -d => 30, $srv->url . $case->{path});
	kill INT => $strace->{pid};
	$bench->end($strace);
	open my $fh, '<', $table or return undef;
	my $calls = calls_in(join '', <$fh>);
	return $r->{answered} && $calls ? $calls / $r->{answered} : undef;
}

# The sum below the table of `strace -c`.
sub calls_in ($text) {
	return $text =~ /^\s*100\.00\s+[\d.]+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$/m ? $1 : undef;
}

# Follows a server, all its threads; returns once it does.
sub strace ($bench, $srv, $table) {
	my $strace = $bench->begin('sh', '-c', 'exec strace -f -c -o "$0" -p "$1" 2>&1', $table, $srv->pid);
	my $said = '';
	while (my $line = readline $strace->{fh}) {
		return $strace if $line =~ /attached/;
		$said .= $line;
	}
	$bench->end($strace);
	$bench->note('system calls are not counted: ' . $said =~ s/\n.*//sr);
	return undef;
}

# ------------------------------------------------------------- tables

sub print_table ($bench, $cases, @names) {
	print "\nFiles in memory, 100 connections (10m: 10); thousand requests per second, us of CPU and system calls for each\n";
	printf '  %-18s', '';
	printf "  %26s", "$_->{name}: k req/s     CPU  calls" for @$cases;
	print "\n";
	for my $name (@names) {
		printf '  %-18s', $name;
		for my $case (@$cases) {
			my $m = $bench->result->{backends}{ $case->{name} }{$name};
			if (!$m) {
				printf '  %26s', '-';
				next;
			}
			my $cpu = $m->{cpu} // 0;    # undef: it answered nothing
			printf '  %12.*f %7.*f %5s', $m->{rps} < 20_000 ? (2) : (0), $m->{rps} / 1000,
			    $cpu < 100 ? (2) : (0), $cpu, defined $m->{syscalls} ? sprintf '%.1f', $m->{syscalls} : '-';
		}
		print "\n";
	}
}

sub print_best ($bench, @cases) {
	print "\nLeast CPU per request: ", join('; ', map { "$_->{name}: " . best($bench->result->{backends}{ $_->{name} }) }
	    @cases), "\n";
}

# The cheapest, and those within its noise.
sub best ($of) {
	my @by_cpu = sort { $of->{$a}{cpu} <=> $of->{$b}{cpu} || $a cmp $b } grep { $of->{$_}{cpu} } keys %$of or return 'none';
	my $best = shift @by_cpu;
	my @near = grep { $of->{$_}{cpu} <= $same * $of->{$best}{cpu} } @by_cpu;
	return $best . (@near ? ' (within 3 %: ' . join(', ', @near) . ')' : '');
}

1;
