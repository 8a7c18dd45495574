package Test::Bench::Accel;
# fcgi-stat-accel in front of nginx and lighttpd: what it gives, and what it costs.
#
# `run($bench)` measures nginx, nginx with `aio threads`, and lighttpd, each as it is and with fcgi-stat-accel in auth mode
# (`+accel`): what 50 clients of a hot file see beside cold ones, how much of the disk is delivered in cold files of 100 kB and
# 10 MB, CPU time of server and accelerator together, what the disk was asked for, and what it costs when hot files
# go through the accelerator. In all but the last of these the hot file is exempt, as examples/ advise.
use v5.36;
use Accel::Figures qw(medians spread);
use Test::Bench::Cold;
use Test::Bench::Hot;
use Accel::Bench::Rig;

my $hot = '/1k.bin';
my $threads = 32;
my %disk = (lookup_ms => 8, read_ms => 8, jitter => 20);
my @spindles = (2, 16);
my @servers = (
	{ kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-aio', aio => 1 },
	{ kind => 'lighttpd', name => 'lighttpd' },
);

my @beside = map { my $n = $_; map { { %$_, what => 'beside', name => "$_->{name}-$n", spindles => $n } } (
	{ name => '1x100k', title => '1 cold client of 100 kB', clients => 1, list => 'small' },
	{ name => '1x10m', title => '1 cold client of 10 MB', clients => 1, list => 'large' },
	{ name => '20x100k', title => '20 cold clients of 100 kB', clients => 20, list => 'small' },
) } @spindles;
my @through = map { my $n = $_; map { { %$_, what => 'through', name => "$_->{name}-$n", spindles => $n } } (
	{ name => 'cold-100k', title => 'Cold files of 100 kB', clients => 100, list => 'small', aim => 0.97 },
	{ name => 'cold-10m', title => 'Cold files of 10 MB', clients => 16, list => 'large', aim => 0.9 },
) } @spindles;
my @passing = map { { what => 'passing', name => "hot-$_", path => "/$_.bin", size => $_ } } qw(1k 100k);

# nginx as it is, with the accelerator, and so on.
sub kinds ($bench) {
	my @known = map { ({ %$_, front => 0 }, { %$_, name => "$_->{name}+accel", front => 1, threads => $threads, exempt => $hot }) } @servers;
	return $bench->wanted(map { { %$_, via_stat_accel => 0 } } @known);
}

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench);
	my @kinds = kinds($bench);
	my @cases = grep { !$bench->opt('quick') || ($_->{spindles} // 16) == 16 } Test::Bench::Hot::chosen($bench->opt('case'), @beside, @through, @passing);
	my %runs;
	for my $round (1 .. $bench->opt('rounds')) {
		for my $k (@kinds) {
			neighbours($bench, $rig, $k, \%runs, grep { $_->{what} eq 'beside' } @cases);
		}
		arrivals($bench, $rig, $_, $runs{ $_->{name} } //= {}, @kinds) for grep { $_->{what} eq 'through' } @cases;
		passing($bench, $rig, $_, $runs{ $_->{name} } //= {}, @kinds) for grep { $_->{what} eq 'passing' } @cases;
		print "# round $round done\n" if $bench->opt('rounds') > 1;
	}
	my %print = (beside => \&print_beside, through => \&print_through, passing => \&print_passing);
	for my $case (@cases) {
		my $of = $bench->result->{accel}{ $case->{name} } = { map { $_ => medians($bench->undisturbed(@{ $runs{ $case->{name} }{$_} })) }
		    keys %{ $runs{ $case->{name} } } };
		$print{ $case->{what} }->($case, $of, $runs{ $case->{name} }, names($of, @kinds));
	}
	print "\nAims\n";
	print_aims($bench, $_, $bench->result->{accel}{ $_->{name} }) for @cases;
}

sub names ($of, @kinds) {
	return grep { $of->{$_} } ('the rig', map { ($_->{name}, "$_->{name} exempt") } @kinds);
}

# ------------------------------------------------------------- hot files beside cold ones

sub neighbours ($bench, $rig, $kind, $runs, @cases) {
	my $alone;
	for my $case (@cases) {
		my %slow = (%disk, spindles => $case->{spindles});
		$alone //= $rig->with_server($kind, \%slow, sub { Test::Bench::Cold::hot_load($bench, $_[0], $hot) });
		my $run = $rig->with_server($kind, \%slow, sub { Test::Bench::Cold::beside($bench, $rig, $case, $alone, $_[0], $hot) });
		Test::Bench::Cold::disturbed_as($run, $alone);
		push @{ $runs->{ $case->{name} }{ $kind->{name} } }, $run;
	}
}

sub print_beside ($case, $of, $runs, @names) {
	print "\n50 clients of a hot 1 kB file, 1000 req/s by the clock, beside $case->{title}, $case->{spindles} spindles  ($case->{name})\n";
	printf "  %-18s %26s   %29s %8s %8s %8s %9s %7s %6s\n", '', 'alone: p50  p99  max ms', 'beside: p50   p99   max ms',
	    'p50 x', 'p99 x', 'served/s', 'cold MB/s', 'others%', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-18s %8.3f %8.3f %8.1f   %9.3f %9.3f %9.1f %8.2f %8.2f %8.0f %9.2f %7.0f %6d\n", $name,
		    (map { $m->{$_} / 1000 } qw(alone_p50 alone_p99 alone_max p50 p99 max)),
		    @$m{qw(p50_ratio p99_ratio served cold_mb others errors)};
	}
}

# ------------------------------------------------------------- how much arrives

sub arrivals ($bench, $rig, $case, $runs, @kinds) {
	my %slow = (%disk, spindles => $case->{spindles});
	my $files = Accel::Bench::Rig::files_for(\%slow, $bench->opt('seconds'), $case->{list});
	push @{ $runs->{'the rig'} }, $rig->plain(\%slow, $files, $case->{list});
	push @{ $runs->{ $_->{name} } }, $rig->fetch_each_once($_, \%slow, files => $files, connections => $case->{clients}, list => $case->{list})
	    for @kinds;
}

sub print_through ($case, $of, $runs, @names) {
	print "\n$case->{title}, each once, $case->{spindles} spindles (", Accel::Bench::Rig::price(\%disk), "), $case->{clients} clients  ($case->{name})\n";
	printf "  %-18s %9s %5s %9s %9s %9s %11s %9s %9s   %-22s %7s %6s\n", 'server', 'MB/s', '+-%', 'of rig', 'files/s', 'p99 ms', 'CPU us/file', 'of accel',
	    'of alone', 'look-ups opens reads', 'others%', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		my $alone = $of->{ $name =~ s/\+accel$//r };
		$m->{of_rig} = Test::Bench::Cold::over($m->{mb}, $of->{'the rig'}{mb});
		$m->{cpu_of_alone} = Test::Bench::Cold::over($m->{cpu}, $alone->{cpu}) if $name =~ /\+accel$/ && $alone;
		printf "  %-18s %9.1f %5.1f %9.3f %9.1f %9.0f %11.0f %9s %9s   %8.2f %5.2f %5.1f   %7.0f %6d\n", $name, $m->{mb}, spread(map { $_->{mb} } @{ $runs->{$name} }),
		    $m->{of_rig}, $m->{rps}, ($m->{p99} // 0) / 1000, $m->{cpu} // 0,
		    (map { defined $_->[1] ? sprintf $_->[0], $_->[1] : '' } ['%.0f', $m->{accel_cpu} || undef], ['%.2f', $m->{cpu_of_alone}]),
		    (map { $m->{$_} // 0 } qw(lookups opens reads)), $m->{others}, $m->{errors} // 0;
	}
}

# ------------------------------------------------------------- hot files through the accelerator

# Through the accelerator, and past it, on one server in one minute.
sub passing ($bench, $rig, $case, $runs, @kinds) {
	for my $k (grep { $_->{front} } @kinds) {
		for my $way ({ name => $k->{name}, exempt => [] }, { name => "$k->{name} exempt", exempt => $case->{path} }) {
			my $srv = $bench->server({ %$k, %$way }, $rig->root);
			push @{ $runs->{ $way->{name} } }, $bench->measure($srv, $case->{path}, [-c => 100]);
			$srv->stop;
		}
	}
}

sub print_passing ($case, $of, $runs, @names) {
	print "\nA hot file of $case->{size} through the accelerator, and exempt; 100 clients  ($case->{name})\n";
	printf "  %-24s %10s %5s %11s %9s %7s %6s\n", 'server', 'req/s', '+-%', 'CPU us/rq', 'p99 ms', 'others%', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-24s %10.0f %5.1f %11.1f %9.2f %7.0f %6d\n", $name, $m->{rps}, spread(map { $_->{rps} } @{ $runs->{$name} }), $m->{cpu} // 0, ($m->{p99} // 0) / 1000,
		    @$m{qw(others errors)};
	}
}

# ------------------------------------------------------------- aims

sub print_aims ($bench, $case, $of) {
	return if $case->{what} eq 'passing';
	my $where = "$case->{spindles} spindles";
	for my $name (sort grep { /\+accel$/ } keys %$of) {
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
