package Test::Bench::Accel;
# fcgi-stat-accel in front of nginx and lighttpd: what it gives, and what it costs.
#
# `run($bench)` measures nginx, nginx with `aio threads`, and lighttpd, each as it is and with fcgi-stat-accel in auth mode
# (`+accel`), and nginx with its module, which asks the same (`+module`): what 50 clients of a hot file see beside cold ones, how much of the disk is delivered in cold files of 100 kB and
# 10 MB, CPU time of server and accelerator together, what the disk was asked for, and what it costs when hot files
# go through the accelerator. In all but the last of these the hot file is exempt, as examples/ advise.
use v5.36;
use Accel::Figures qw(spread);
use Test::Bench::Beside qw(over print_beside rounds);
use Test::Bench::Hot;
use Accel::Bench::Rig;
use Test::Util ();

my $hot = '/1k.bin';
my $threads = 32;
my %disk = (lookup_ms => 8, read_ms => 8, jitter => 20);
my @spindles = (2, 16);
my @servers = (
	{ kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-aio', aio => 1 },
	{ kind => 'lighttpd', name => 'lighttpd' },
);

my @beside = map { my $n = $_; map { { %$_, what => 'beside', alone => 'once', name => "$_->{name}-$n", disk => { %disk, spindles => $n } } } (
	{ name => '1x100k', title => '1 cold client of 100 kB', clients => 1, list => 'small' },
	{ name => '1x10m', title => '1 cold client of 10 MB', clients => 1, list => 'large' },
	{ name => '20x100k', title => '20 cold clients of 100 kB', clients => 20, list => 'small' },
) } @spindles;
my @through = map { my $n = $_; map { { %$_, what => 'through', name => "$_->{name}-$n", disk => { %disk, spindles => $n } } } (
	{ name => 'cold-100k', title => 'Cold files of 100 kB', clients => 100, list => 'small', aim => 0.97 },
	{ name => 'cold-10m', title => 'Cold files of 10 MB', clients => 16, list => 'large', aim => 0.9 },
) } @spindles;
my @passing = map { { what => 'passing', name => "hot-$_", path => "/$_.bin", size => $_ } } qw(1k 100k);

# nginx as it is, with the accelerator, and so on.
sub kinds ($bench) {
	my @known = map { ({ %$_, front => 0 }, { %$_, name => "$_->{name}+accel", front => 1, threads => $threads, exempt => $hot },
		$_->{kind} eq 'nginx' ? { %$_, name => "$_->{name}+module", module => 'accel', module_file => Test::Util::nginx_module(), threads => $threads } : ()) } @servers;
	return $bench->wanted(map { { %$_, via_stat_accel => 0 } } @known);
}

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench);
	my @kinds = kinds($bench);
	my @cases = grep { !$bench->opt('quick') || ($_->{disk}{spindles} // 16) == 16 } Test::Bench::Hot::chosen($bench->opt('case'), @beside, @through, @passing);
	my @done = rounds($bench, $rig, 'accel', \@kinds, \@cases, passing => sub { return passing($bench, $rig, @_) });
	show($_, @kinds) for @done;
	print "\nAims\n";
	print_aims($bench, $_) for @done;
}

# Prints the table of a case.
sub show ($case, @kinds) {
	my @names = grep { $case->{of}{$_} } ('the rig', map { ($_->{name}, "$_->{name} exempt") } @kinds);
	return print_beside($case, "$case->{title}, $case->{disk}{spindles} spindles  ($case->{name})", @names) if $case->{what} eq 'beside';
	return $case->{what} eq 'through' ? print_through($case, @names) : print_passing($case, @names);
}

# ------------------------------------------------------------- how much arrives

sub print_through ($case, @names) {
	my ($of, $runs) = @$case{qw(of runs)};
	print "\n$case->{title}, each once, $case->{disk}{spindles} spindles (", Accel::Bench::Rig::price(\%disk), "), $case->{clients} clients  ($case->{name})\n";
	printf "  %-18s %9s %5s %9s %9s %9s %11s %9s %9s   %-22s %7s %6s\n", 'server', 'MB/s', '+-%', 'of rig', 'files/s', 'p99 ms', 'CPU us/file', 'of accel',
	    'of alone', 'look-ups opens reads', 'others%', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		my $alone = $of->{ $name =~ s/\+\w+$//r };
		$m->{of_rig} = over($m->{mb}, $of->{'the rig'}{mb});
		$m->{cpu_of_alone} = over($m->{cpu}, $alone->{cpu}) if $alone && $alone != $m;
		printf "  %-18s %9.1f %5.1f %9.3f %9.1f %9.0f %11.0f %9s %9s   %8.2f %5.2f %5.1f   %7.0f %6d\n", $name, $m->{mb}, spread(map { $_->{mb} } @{ $runs->{$name} }),
		    $m->{of_rig}, $m->{rps}, ($m->{p99} // 0) / 1000, $m->{cpu} // 0,
		    (map { defined $_->[1] ? sprintf $_->[0], $_->[1] : '' } ['%.0f', $m->{accel_cpu} || undef], ['%.2f', $m->{cpu_of_alone}]),
		    (map { $m->{$_} // 0 } qw(lookups opens reads)), $m->{others}, $m->{errors} // 0;
	}
}

# ------------------------------------------------------------- hot files through the accelerator

# Through the accelerator, and past it, on one server in one minute.
sub passing ($bench, $rig, $case, $kind) {
	my %run;
	for my $way ($kind->{front} ? ({ name => $kind->{name}, exempt => [] }, { name => "$kind->{name} exempt", exempt => $case->{path} }) : ()) {
		my $srv = $bench->server({ %$kind, %$way }, $rig->root);
		$run{ $way->{name} } = $bench->measure($srv, $case->{path}, [-c => 100]);
		$srv->stop;
	}
	return %run;
}

sub print_passing ($case, @names) {
	my ($of, $runs) = @$case{qw(of runs)};
	print "\nA hot file of $case->{size} through the accelerator, and exempt; 100 clients  ($case->{name})\n";
	printf "  %-24s %10s %5s %11s %9s %7s %6s\n", 'server', 'req/s', '+-%', 'CPU us/rq', 'p99 ms', 'others%', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-24s %10.0f %5.1f %11.1f %9.2f %7.0f %6d\n", $name, $m->{rps}, spread(map { $_->{rps} } @{ $runs->{$name} }), $m->{cpu} // 0, ($m->{p99} // 0) / 1000,
		    @$m{qw(others errors)};
	}
}

# ------------------------------------------------------------- aims

sub print_aims ($bench, $case) {
	return if $case->{what} eq 'passing';
	my ($of, $where) = ($case->{of}, "$case->{disk}{spindles} spindles");
	for my $name (sort grep { /\+\w+$/ } keys %$of) {
		my $m = $of->{$name};
		if ($case->{what} eq 'beside') {
			$bench->aim("$name: hot p99 beside $case->{title}, $where / alone", $m->{p99_ratio}, '<=', 1.5, $m);
			next;
		}
		$bench->aim("$name: \l$case->{title}, $where / the rig", $m->{of_rig}, '>=', $case->{aim}, $m, $of->{'the rig'});
		$bench->aim("$name: CPU, \l$case->{title}, $where / alone", $m->{cpu_of_alone}, '<=', 1.1, $m) if $m->{cpu_of_alone} && $case->{list} eq 'small';
	}
}

1;
