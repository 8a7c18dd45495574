package Test::Bench::Load;
# accel-load beside wrk and h2load, on the same server.
#
# `run($bench)` starts one accel-server and asks it for files in memory with each load generator in turn, round after round. The table has
# the requests per second that each gets out of the server, and the CPU time that it needs for a request itself: that time is not there
# for the server on a small machine. The aims: within noise of the others, for no more CPU time.
#
# h2load gets a number of requests, not seconds: with a duration and large files it can hang in its end.
use v5.36;
use Test::Bench::Hot;
use Time::HiRes ();
use Accel::Util qw(find_program program);

my $noise = 0.95;    # of another's requests per second
my $grace = 20;      # seconds; then a generator that hangs is ended

my @cases = (
	{ name => '1k', title => '1 kB, keep-alive, 50 connections', path => '/1k.bin', clients => 50 },
	{ name => '100k', title => '100 kB, keep-alive, 50 connections', path => '/100k.bin', clients => 50 },
	{ name => '1k-1', title => '1 kB, one connection', path => '/1k.bin', clients => 1 },
);

# The command line of each generator, and how many answers its output reports.
my %generator = (
	'accel-load' => {
		command => sub ($o) { return (program('accel-load'), '--json', '-q', -c => $o->{clients}, -d => $o->{seconds}, $o->{url}) },
		answers => sub ($text) { return $text =~ /"answered":(\d+)/ ? $1 : 0 },
	},
	wrk => {
		command => sub ($o) { return ('wrk', '-t1', "-c$o->{clients}", "-d$o->{whole}", $o->{url}) },
		answers => sub ($text) { return $text =~ /(\d+) requests in/ ? $1 : 0 },
	},
	h2load => {
		command => sub ($o) { return ('h2load', '--h1', '-t1', "-c$o->{clients}", "-n$o->{requests}", $o->{url}) },
		answers => sub ($text) { return $text =~ /(\d+) succeeded/ ? $1 : 0 },
	},
);

sub run ($bench) {
	my @names = grep { installed($bench, $_) } 'accel-load', 'wrk', 'h2load';
	my $srv = $bench->server({ kind => 'accel', name => 'accel' }, $bench->files);
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @cases);
	for my $case (@chosen) {
		my %runs;
		my %o = (%$case, url => $srv->url . $case->{path}, seconds => $bench->opt('seconds'));
		$o{whole} = int($o{seconds} + 0.999);
		$o{requests} = int($o{seconds} * once($bench, $srv, 'accel-load', { %o, seconds => 0.5 })->{rps}) + 1;
		for my $round (1 .. $bench->opt('rounds')) {
			for my $name (@names) {
				push @{ $runs{$name} }, $bench->quietest(sub { once($bench, $srv, $name, \%o) });
			}
		}
		my $of = $bench->result->{load}{ $case->{name} } = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
		print_case($case, $of, @names);
	}
	$srv->stop;
	print "\nAims\n";
	aims($bench, $_, $bench->result->{load}{ $_->{name} }, @names) for @chosen;
}

sub installed ($bench, $name) {
	return if !$bench->asked($name) && $name ne 'accel-load';
	return 1 if $name eq 'accel-load' || find_program($name);
	$bench->note("$name left out: it is not installed");
	return;
}

# Seconds of CPU of children that have ended.
sub children () { my @t = times; return $t[2] + $t[3] }

sub once ($bench, $srv, $name, $o) {
	my $g = $generator{$name};
	my ($cpu, $server, $others, $at) = (children(), $srv->cpu, $bench->others_begin, Time::HiRes::time());
	my $text = $bench->end($bench->begin('timeout', $o->{seconds} + $grace, $g->{command}->($o)));
	my $took = Time::HiRes::time() - $at;
	my ($used, $served, $n) = (children() - $cpu, $srv->cpu - $server, $g->{answers}->($text));
	$bench->note("$name gave no result for $o->{name}") if !$n;
	return { others => $bench->others_end($others, $served), rps => $n / $took, cpu => $n ? 1e6 * $used / $n : undef,
		server_cpu => $n ? 1e6 * $served / $n : undef };
}

sub print_case ($case, $of, @names) {
	print "\n$case->{title}  ($case->{name})\n";
	printf "  %-12s %9s %5s %9s %14s %8s %8s\n", 'generator', 'req/s', '+-%', 'CPU us/rq', 'of accel-load', 'server', 'others%';
	my $ours = $of->{'accel-load'};
	for my $name (@names) {
		my $s = $of->{$name};
		printf "  %-12s %9.0f %5.1f %9.2f %14.2f %8.2f %8.0f\n", $name, $s->{rps}, $s->{spread}, $s->{cpu} // 0,
		    $ours->{cpu} ? ($s->{cpu} // 0) / $ours->{cpu} : 0, $s->{server_cpu} // 0, $s->{others};
	}
}

sub aims ($bench, $case, $of, @names) {
	my $ours = $of->{'accel-load'};
	for my $name (grep { $_ ne 'accel-load' && $of->{$_}{cpu} && $ours->{cpu} } @names) {
		my $theirs = $of->{$name};
		$bench->aim("$case->{name}: req/s, accel-load / $name", $ours->{rps} / $theirs->{rps}, '>=', $noise, $ours, $theirs);
		$bench->aim("$case->{name}: CPU per request, accel-load / $name", $ours->{cpu} / $theirs->{cpu}, '<=', 1, $ours, $theirs);
	}
}

1;
