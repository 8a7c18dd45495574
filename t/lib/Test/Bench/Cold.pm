package Test::Bench::Cold;
# Slow disks: how long hot files wait beside cold ones, and how much of the disk is delivered.
#
# `run($bench)` prints tables of what 50 clients of a hot file see beside cold clients, two tables of
# cold throughput, and the aims. The hot file is on a disk of its own; without --quick, also on the
# slow disk, where a server that opens it for each request has to wait each time.
use v5.36;
use Accel::Figures qw(spread);
use Test::Bench::Beside qw(over print_beside rounds);
use Test::Bench::Hot;
use Accel::Bench::Rig;

# Disks are not in step.  Without the spread all cold clients get their answers in the same instant, every time, and p99 shows
# how many of them fit in a hundredth of a second rather than the wait: 2 to 20 times as much, for Apache too.
# On ext4 and xfs each request takes the same time, and a cold file of 100 kB is one to four of them.
my $image_ms = 100;
my %slow = (spindles => 16, lookup_ms => 200, open_ms => 100, read_ms => 20, jitter => 20);
my @beside = map { { %$_, what => 'beside', as => 'beside', disk => \%slow } } (
	{ name => '16x100k', title => '16 cold clients of 100 kB', clients => 16, list => 'small' },
	{ name => '1x100k', title => '1 cold client of 100 kB', clients => 1, list => 'small' },
	{ name => '1x10m', title => '1 cold client of 10 MB', clients => 1, list => 'large' },
	{ name => '20x100k', title => '20 cold clients of 100 kB', clients => 20, list => 'small' },
	{ name => 'same-disk', title => '16 cold clients of 100 kB on its own disk', clients => 16, list => 'small',
	  hot => '/slow/1k.bin', not_quick => 1 },
);
my @through = map { { name => "$_-spindles", what => 'through', as => 'through', rig => 'rig', clients => 64, list => 'small',
	disk => { spindles => $_, lookup_ms => 8, read_ms => 8, jitter => 20 } } } 2, 16;
my @peers = (
	{ kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-aio', aio => 1 },
	{ kind => 'lighttpd', name => 'lighttpd' },
	{ kind => 'apache', name => 'apache' },
);
my $accel_fcgi = { kind => 'accel', name => 'accel+fcgi', threads => 32, via_stat_accel => 1 };

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench);
	$slow{read_ms} = $image_ms if $rig->storage ne 'slowfs';
	my @kinds = $bench->wanted($bench->backends, $accel_fcgi, @peers);
	my @chosen = grep { !($_->{not_quick} && $bench->opt('quick')) } Test::Bench::Hot::chosen($bench->opt('case'), @beside, @through);
	my @done = rounds($bench, $rig, undef, \@kinds, \@chosen);
	my @names = map { $_->{name} } @kinds;
	for my $case (grep { $_->{what} eq 'beside' } @done) {
		print_beside($case, "$case->{title}  ($case->{name})\n  " . Accel::Bench::Rig::price(\%slow) . " (+-$slow{jitter} %), $slow{spindles} spindles", @names);
	}
	print_through($_, @names) for grep { $_->{what} eq 'through' } @done;
	print_aims($bench, \@done, @names);
}

sub print_through ($case, @names) {
	my ($disk, $of, $runs) = @$case{qw(disk of runs)};
	my $best = best_peer($of);
	print "\nCold files of 100 kB, each once, $disk->{spindles} spindles (", Accel::Bench::Rig::price($disk), "), "
	    . "$case->{clients} connections  ($case->{name})\n";
	printf "  %-18s %9s %5s %9s %9s %9s %9s %9s %9s %7s %6s\n", 'server', 'MB/s', '+-%', 'of rig', 'of best', 'req/s', 'p99 ms',
	    'CPU us/rq', 'of apache', 'others%', 'errors';
	printf "  %-18s %9.1f %5.1f %9.2f %9s %9.0f %9s %9.1f %9s %7.0f   (64 threads that open and read)\n", 'the rig', $of->{rig}{mb},
	    spread(map { $_->{mb} } @{ $runs->{rig} }), 1, '', $of->{rig}{rps}, '', $of->{rig}{cpu}, '', $of->{rig}{others};
	for my $name (@names) {
		my $m = $of->{$name};
		$m->{of_rig} = over($m->{mb}, $of->{rig}{mb});
		$m->{of_best} = $best && over($m->{mb}, $of->{$best}{mb});
		$m->{cpu_of_apache} = $of->{apache} && over($m->{cpu}, $of->{apache}{cpu});
		printf "  %-18s %9.1f %5.1f %9.2f %9s %9.0f %9.0f %9.1f %9s %7.0f %6d\n", $name, $m->{mb},
		    spread(map { $_->{mb} } @{ $runs->{$name} }), $m->{of_rig},
		    (defined $m->{of_best} ? sprintf '%.2f', $m->{of_best} : '-'), $m->{rps}, ($m->{p99} // 0) / 1000,
		    $m->{cpu} // 0, (defined $m->{cpu_of_apache} ? sprintf '%.2f', $m->{cpu_of_apache} : '-'),
		    @$m{qw(others errors)};
	}
}

sub best_peer ($of) {
	my ($best) = sort { $of->{$b}{mb} <=> $of->{$a}{mb} } grep { $of->{$_} } map { $_->{name} } @peers;
	return $best;
}

# ------------------------------------------------------------- aims

sub print_aims ($bench, $cases, @names) {
	my $ours = $bench->ours(@names) // return;
	print "\nAims of $ours\n";
	for my $case (@$cases) {
		my ($of, $m) = ($case->{of}, $case->{of}{$ours});
		if ($case->{what} eq 'beside') {
			$bench->aim("hot p99 beside $case->{title} / alone", $m->{p99_ratio}, '<=', 2, $m);
			$bench->aim("hot p50 beside $case->{title} / alone", $m->{p50_ratio}, '<=', 1.1, $m);
			next;
		}
		my ($n, $best) = ($case->{disk}{spindles}, best_peer($of));
		$bench->aim("cold MB/s, $n spindles / $best", $m->{of_best}, '>=', 0.97, $m, $of->{$best}) if $best;
		$bench->aim("CPU per cold request, $n spindles / apache", $m->{cpu_of_apache}, '<=', 1 / 3, $m, $of->{apache}) if $of->{apache};
		$bench->aim("cold MB/s, $n spindles / nginx-aio", over($m->{mb}, $of->{'nginx-aio'}{mb}), '>=', 9, $m, $of->{'nginx-aio'})
		    if $n == 16 && $of->{'nginx-aio'};
	}
}

1;
