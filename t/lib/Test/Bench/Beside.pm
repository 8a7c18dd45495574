package Test::Bench::Beside;
# Hot files beside cold ones: the one measurer, and the rounds of the benchmarks that measure a slow disk.
#
#     my ($hot, $cold) = beside($bench, $srv, { clients => 16, list => $rig->list('small') }, path => '/1k.bin', rate => 1000);
#     for my $case (rounds($bench, $rig, 'accel', \@kinds, \@cases)) { print "$_: $case->{of}{$_}{p99} us\n" for sort keys %{ $case->{of} } }
#
# The hot clients are an open loop: their requests start by the clock, and latency counts from the scheduled start, so that a server which
# answers no request for a second cannot hide it.
#
# A case: `name`; `disk`, as Accel::Bench::Rig has it; `clients` and `list` of the cold files; `warm`, seconds that hot clients do not count at first; `what`:
#
#     beside     hot files beside cold ones; `hot` is their path, `alone` names the cases that share a measurement without cold clients
#     through    cold files, each once, after the rig itself (its row is `rig`); `files` of them, `plain` is the list for the rig
#     another    a function of the benchmark measures it
use v5.36;
use Exporter qw(import);
use Time::HiRes qw(sleep);
use Accel::Bench::Rig;
use Accel::Figures qw(medians);

our @EXPORT_OK = qw(hot alone beside figures over rounds print_beside);

my $head_start = 0.5;           # seconds that the cold clients run before the hot ones are measured

# The report of accel-load on hot clients: path, clients, rate (of all, per second), seconds; warm: seconds before these, for handshakes of TLS.
sub hot ($bench, $srv, %hot) {
	return $bench->load(-c => $hot{clients} // 50, '--rate', $hot{rate} // 1000, -d => $hot{seconds} // $bench->opt('seconds'), -t => 60,
		(map { ('--warm-up', $_) } $hot{warm} // ()),
		$srv->url . ($hot{path} // '/1k.bin'));
}

sub warm_up ($bench, $srv, $path) { return $bench->load(-n => 200, -c => 50, -d => 5, -t => 20, $srv->url . $path) }

# The hot clients without cold ones, as long after the first request as beside them.
sub alone ($bench, $srv, %hot) {
	warm_up($bench, $srv, $hot{path});
	sleep $head_start;
	return hot($bench, $srv, %hot);
}

# The reports on hot and on cold clients. $cold: clients, list (a file), head_start in seconds. $hot->{opens}: of the slow disk meanwhile.
sub beside ($bench, $srv, $cold, %hot) {
	my ($ahead, $disk) = ($cold->{head_start} // $head_start, $bench->{disk});
	my $load = $bench->load_begin(-c => $cold->{clients}, -u => $cold->{list}, -d => $bench->opt('seconds') + $ahead + ($hot{warm} // 0), -t => 60, $srv->url . '/');
	sleep $ahead;
	my $before = $disk->state->{opens};
	my $hot = hot($bench, $srv, %hot);
	$hot->{opens} = $disk->state->{opens} - $before;
	return ($hot, $bench->load_end($load));
}

# What most tables have. Both figures of a ratio come from the same minute of the machine.
sub figures ($alone, $hot, $cold) {
	my ($was, $is) = map { $_->{latency_us} } $alone, $hot;
	return { (map { ("alone_$_" => $was->{$_}, $_ => $is->{$_}) } qw(p50 p99 max)),
		(map { ("${_}_ratio" => $is->{$_} / ($was->{$_} || 1)) } qw(p50 p99)),
		served => $hot->{requests_per_s}, cold_mb => $cold->{mb_per_s}, cold_rps => $cold->{requests_per_s},
		errors => $hot->{errors}{all} + $alone->{errors}{all} + $cold->{errors}{all} };
}

sub over ($a, $b) { return ($b // 0) > 0 ? ($a // 0) / $b : 0 }

# ------------------------------------------------------------- rounds

# Measures all cases in rounds. %own: how a case of another kind is measured, $own{what}->($case, $kind) for each kind of server. Returns
# the cases with `of`, the medians of each row, and `runs`; the medians are result->{$as}, too, or those that the case names in `as`.
sub rounds ($bench, $rig, $as, $kinds, $cases, %own) {
	my %runs = map { $_->{name} => {} } @$cases;
	for my $round (1 .. $bench->opt('rounds')) {
		_neighbours($bench, $rig, $_, \%runs, grep { $_->{what} eq 'beside' } @$cases) for @$kinds;
		for my $case (grep { $_->{what} ne 'beside' } @$cases) {
			my ($of, $own) = ($runs{ $case->{name} }, $own{ $case->{what} });
			_arrivals($bench, $rig, $case, $of, @$kinds) unless $own;
			for my $kind ($own ? @$kinds : ()) {
				my %run = $own->($case, $kind);
				push @{ $of->{$_} }, $run{$_} for keys %run;
			}
		}
		print "# round $round done\n" if $bench->opt('rounds') > 1;
	}
	my @done = map { +{ %$_, runs => $runs{ $_->{name} } } } @$cases;
	for my $case (@done) {
		my $all = $case->{runs};
		$case->{of} = $bench->result->{ $case->{as} // $as }{ $case->{name} } = { map { $_ => medians($bench->undisturbed(@{ $all->{$_} })) } keys %$all };
	}
	return @done;
}

# One round of one server: the hot clients alone, then beside each kind of cold client. A ratio is disturbed as much as either half of it.
sub _neighbours ($bench, $rig, $kind, $runs, @cases) {
	my %alone;
	for my $case (@cases) {
		my $path = $case->{hot} // '/1k.bin';
		my @hot = (path => $path, warm => $case->{warm});
		my $alone = $alone{ $case->{alone} // $path } //= $rig->with_server($kind, $case->{disk}, sub { alone($bench, $_[0], @hot) });
		my $run = $rig->with_server($kind, $case->{disk}, sub {
			warm_up($bench, $_[0], $path);
			return figures($alone, beside($bench, $_[0], { %$case, list => $rig->list($case->{list}) }, @hot));
		});
		$run->{others} = $alone->{others} if $alone->{others} > $run->{others};
		push @{ $runs->{ $case->{name} }{ $kind->{name} } }, $run;
	}
}

# One round: the disk itself, then each server.
sub _arrivals ($bench, $rig, $case, $runs, @kinds) {
	my ($disk, $list) = @$case{qw(disk list)};
	my $files = $case->{files} // Accel::Bench::Rig::files_for($disk, $bench->opt('seconds'), $list);
	push @{ $runs->{ $case->{rig} // 'the rig' } }, $rig->plain($disk, $files, $case->{plain} // $list);
	push @{ $runs->{ $_->{name} } }, $rig->fetch_each_once($_, $disk, files => $files, connections => $case->{clients}, list => $list) for @kinds;
}

sub print_beside ($case, $title, @names) {
	print "\n50 clients of a hot 1 kB file, 1000 req/s by the clock, beside $title\n";
	printf "  %-18s %26s   %29s %8s %8s %8s %9s %7s %6s\n", '', 'alone: p50  p99  max ms', 'beside: p50   p99   max ms',
	    'p50 x', 'p99 x', 'served/s', 'cold MB/s', 'others%', 'errors';
	for my $name (@names) {
		my $m = $case->{of}{$name};
		printf "  %-18s %8.3f %8.3f %8.1f   %9.3f %9.3f %9.1f %8.2f %8.2f %8.0f %9.2f %7.0f %6d\n", $name,
		    (map { $m->{$_} / 1000 } qw(alone_p50 alone_p99 alone_max p50 p99 max)),
		    @$m{qw(p50_ratio p99_ratio served cold_mb others errors)};
	}
}

1;
