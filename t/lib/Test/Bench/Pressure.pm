package Test::Bench::Pressure;
# Memory is short: what a hot file waits beside pages that come and go, and when the disk hangs.
#
# `run($bench)` prints a table for each memory limit and state of the disk:
#
#     hot clients --> server in a memory cgroup --> hot file on the disk of this machine
#     cold clients ------^                    `---> ext4 on a loop device on slowfs, which is outside of the cgroup
#
# The limit is a share of the bytes of the cold files. The pages of the files, their names and the server's own memory count; the binary and its
# libraries count for those who used them first. The hot file is dropped from memory before each server starts, so its page is the server's, too.
#
# A cell has a disk, a cgroup and a server of its own: the hot clients alone; each cold file once; then the hot clients beside 20 clients that ask for cold files at
# random. On the disk that hangs it hangs from the beginning of this last part on. accel-server gives up a file after `GIVES_UP` seconds there, and a
# cold client after some seconds more: a request that the client had to end counts as "not ended".
#
# Beside the figures of clients stands what the loop did, from the kernel (Test::Sleeps): the longest time that a loop slept, its longest system call, and
# the longest time that it could run and had no processor (what other programs on that core cost).
# Apache has no loop: each connection has a thread.
#
# Two cases are those of the claim that this benchmark was written for. `thrash`: 48 MB for 1000 files of 100 kB, slow, then hung; while it
# still hangs the server is reloaded (accel-server) and stopped. `leaving`: 150 hot files on a
# disk that is a FUSE mount, 1000 files of a healthy disk and a file of 20 bytes there; pages of the 150 files are dropped every 0.25 s, then the disk hangs.
use v5.36;
use Accel::Bench::Storage::Real ();
use Accel::Figures qw(median);
use Accel::SlowImage ();
use Accel::Slowfs ();
use Accel::Util qw(program put slurp);
use List::Util qw(any max min sum0);
use Test::Cgroup;
use Test::Sleeps;
use Time::HiRes qw(sleep time);

use constant { FILES => 1000, BYTES => 102_400, CLIENTS => 20, HOT_CLIENTS => 50, RATE => 1000, GIVES_UP => 1, PATIENCE => 3, HANGS => 4, STOPS => 5, AWAY => 150, SOME => 200, THREADS => 32 };

my $hot = '/1k.bin';
my %DISK = (healthy => { spindles => 64, read_ms => 0.2 }, slow => { spindles => 16, read_ms => 8 }, hung => { spindles => 16, read_ms => 8 });
my @DISKS = qw(healthy slow hung);
my @LIMITS = (25, 50, 75, 110);
my @peers = (
	{ kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-aio', aio => 1 },
	{ kind => 'lighttpd', name => 'lighttpd' },
	{ kind => 'apache', name => 'apache' },
	map { { kind => $_, name => "$_+accel", front => 1, threads => THREADS, exempt => $hot } } qw(nginx lighttpd),
);
my %case = (
	matrix => { title => 'each limit, each disk', run => \&matrix },
	thrash => { title => '48 MB for 1000 files of 100 kB', run => \&matrix, limits => ['48m'], disks => [qw(slow hung)], ends => 1 },
	leaving => { title => 'hot files of a disk leave memory, and it hangs', run => \&leaving },
);

sub run ($bench) {
	my ($ok, $why) = usable();
	die "bench: $why\n" unless $ok;
	my @names = @{ $bench->opt('case') // ['matrix'] };
	for my $name (@names) { die "bench: no case \"$name\"; there are: @{[ sort keys %case ]}\n" unless $case{$name} }
	my $root = $bench->files;
	my $evict = put($bench->dir . '/hot.list', "$root$hot\n");
	my $self = bless { bench => $bench, root => $root, hot => $hot, hot_list => $evict, kinds => [kinds($bench)] }, __PACKAGE__;
	$case{$_}{run}->($self, $case{$_}) for @names;
	return;
}

# (1) or (0, reason).
sub usable () {
	my ($ok, $why) = Test::Cgroup->usable;
	return ($ok, $why) unless $ok;
	return Accel::SlowImage->usable('ext4');
}

# Each kind of server, and after each accel-server the accel-server of the other build.
sub kinds ($bench) {
	my @ours = map { { %$_, conf => 'server.max-open-idle = ' . GIVES_UP . "\nserver.max-write-idle = " . GIVES_UP . "\n" } } $bench->backends;
	my $other = $bench->other_build;
	return map { ($_, $other && $_->{kind} eq 'accel' ? { %$_, %$other, name => "$_->{name} beside" } : ()) } $bench->wanted(@ours, @peers);
}

# ------------------------------------------------------------- the matrix

sub matrix ($self, $case) {
	my $bench = $self->{bench};
	my @limits = map { limit($_) } @{ $case->{limits} // $bench->opt('limit') // ($bench->opt('quick') ? [50] : \@LIMITS) };
	my @disks = @{ $case->{disks} // $bench->opt('disk') // \@DISKS };
	for my $disk (@disks) { die "bench: no disk \"$disk\"; there are: @DISKS\n" unless $DISK{$disk} }
	$self->{image} //= $self->image;
	local $self->{ends} = $case->{ends};
	mkdir($self->{mount} = "$self->{root}/slow");
	my %runs;
	my ($done, $all) = (0, $bench->opt('rounds') * @limits * @disks * @{ $self->{kinds} });
	for my $round (1 .. $bench->opt('rounds')) {
		for my $limit (@limits) {
			for my $disk (@disks) {
				for my $kind (@{ $self->{kinds} }) {
					progress($done++, $all, "$kind->{name}, $limit->{name}, $disk");
					push @{ $runs{ $limit->{name} }{$disk}{ $kind->{name} } }, $self->cell($kind, $limit->{bytes}, $disk);
				}
			}
		}
	}
	progress($done, $all, '');
	for my $limit (@limits) {
		for my $disk (@disks) {
			my $of = $runs{ $limit->{name} }{$disk};
			my $table = $bench->result->{pressure}{ $limit->{name} }{$disk} = { map { $_ => summary(@{ $of->{$_} }) } keys %$of };
			print_cell($limit, $disk, $table, map { $_->{name} } @{ $self->{kinds} });
		}
	}
	$self->print_aims(\@limits, \@disks);
	return;
}

# "50" is a share of the files, "48m" is this many MiB.
sub limit ($text) {
	return { name => "$1 %", bytes => int($1 / 100 * FILES * BYTES) } if $text =~ /^(\d{1,3})%?\z/ && $1 >= 10;
	return { name => "$1 MB", bytes => $1 << 20 } if $text =~ /^(\d{1,4})m\z/ && $1 >= 8;
	die "bench: --limit: expected 10 to 999 percent of the files, or megabytes from 8m to 9999m; got \"$text\"\n";
}

sub progress ($done, $all, $what) {
	return unless -t STDERR;
	printf STDERR "\r\e[K%s", $done < $all ? sprintf '%d of %d  %s', $done + 1, $all, $what : '';
	return;
}

# ext4 with the cold files; their names are in $self->{list}.
sub image ($self) {
	my $bench = $self->{bench};
	my $dir = $bench->dir . '/disk';
	mkdir $dir or die "$dir: $!\n";
	my @names;
	my $image = Accel::SlowImage->make(type => 'ext4', file => "$dir/disk.img", files => 2 * FILES, bytes => FILES * BYTES,
		fill => sub ($mnt) { @names = Accel::Bench::Storage::Real::pool("$mnt/files", FILES, BYTES) });
	$self->{list} = put($bench->dir . '/cold.list', join '', map { "/slow/files/$_\n" } @names);
	return $image;
}

# ------------------------------------------------------------- one cell

sub cell ($self, $kind, $bytes, $disk) {
	my $bench = $self->{bench};
	my $slow = $bench->{disk} = Accel::SlowImage->start(image => $self->{image}, at => $self->{mount}, %{ $DISK{$disk} });
	my $group = Test::Cgroup->new(bytes => $bytes);
	my $srv = $self->server($kind, $group);
	my %run = eval { $self->measure($srv, $slow, $group, $disk) };
	my $why = $@;
	$slow->stop;                            # first: a server that waits for the disk cannot end
	delete $bench->{disk};
	$run{killed} = $group->killed;
	$srv->stop;
	$group->remove or $bench->note("$kind->{name}: a process does not leave its cgroup");
	die $why if $why;
	$bench->note("$kind->{name}: the kernel killed a process, because the cgroup was full") if $run{killed};
	return \%run;
}

sub server ($self, $kind, $group) {
	$self->evict($self->{hot_list});
	return $self->{bench}->server({ %$kind, group => $group->dir, at_end => sub { $group->remove } }, $self->{root});
}

sub evict ($self, $list) {
	system(program('accel-pool'), qw(evict --quiet --list), $list) == 0 or die "accel-pool evict: exit status " . ($? >> 8) . "\n";
}

sub measure ($self, $srv, $slow, $group, $disk) {
	my $bench = $self->{bench};
	my $seconds = $disk eq 'hung' ? max(HANGS, $bench->opt('seconds')) : $bench->opt('seconds');
	my $alone = $self->alone($srv, $seconds);
	$bench->load(-c => CLIENTS, -u => $self->{list}, -n => FILES, -d => 5, -t => 20, $srv->url . '/');
	my $refaults = $group->refaults;
	my %run = $self->beside($srv, $seconds, $alone, hangs => $disk eq 'hung' ? $slow : undef, cold => $self->{list});
	$run{refaults} = $group->refaults - $refaults;
	return %run if $disk ne 'hung';
	return (%run, $self->ends($srv)) if $self->{ends};
	$slow->go;
	my $again = $bench->load(-n => 1, -d => 5, -t => 5, $srv->url . $self->{hot});
	return (%run, again => $again->{answered} - $again->{errors}{all} > 0 ? 1 : 0);
}

# While the disk still hangs: hot requests answered after a reload, in percent (accel-server), and seconds until TERM has ended the server.
sub ends ($self, $srv) {
	my %run;
	if ($srv->kind eq 'accel') {
		kill USR1 => $srv->pid;
		sleep 0.5;
		my $hot = $self->hot($srv, 1);
		$run{reload_pc} = answered_pc($hot);
	}
	my $from = time;
	kill TERM => $srv->pid;
	sleep 0.01 while time < $from + STOPS && grep { slurp($_) =~ /.*\) [^ZX]/ } glob '/proc/' . $srv->pid . '/task/*/stat';
	return (%run, stop_s => time - $from);
}

# The quieter of two runs: other load of this machine must not be the measure of the other cells.
sub alone ($self, $srv, $seconds) {
	$self->{bench}->load(-n => 4 * HOT_CLIENTS, -c => HOT_CLIENTS, -d => 5, -t => 20, $srv->url . $self->{hot});
	my @runs = map { $self->hot($srv, max(0.5, $seconds / 4)) } 1 .. 2;
	return (sort { $a->{latency_us}{p99} <=> $b->{latency_us}{p99} } @runs)[0];
}

# The hot clients together with those of each list, at random.  hangs: a disk that hangs from now on; rate: requests a second of each list.
sub beside ($self, $srv, $seconds, $alone, %list) {
	my $bench = $self->{bench};
	my ($hangs, $rate) = delete @list{qw(hangs rate)};
	my $faults = major_faults($srv);
	my %load = map { $_ => $bench->load_begin(-c => CLIENTS, $rate ? ('--rate', $rate) : (), '--random', -u => $list{$_}, -d => $seconds + 0.5, -t => $hangs ? PATIENCE : 20, $srv->url . '/') } keys %list;
	sleep 0.3;
	my $sleeps = Test::Sleeps->start(loops($srv));
	$hangs->hang if $hangs;
	my $hot = $self->hot($srv, $seconds);
	my $seen = $sleeps->stop // {};
	$_ = $bench->load_end($_) for values %load;
	my %run = (figures($alone, $hot), (map { cold_figures($_, $load{$_}) } keys %load), map { $_ => $seen->{$_} } qw(how slept_ms slept_in sleeps call_ms call ready_ms lost));
	$run{slept_share} = $seen->{slept_sum_ms} / 10 / $seen->{seconds} if $seen->{seconds};
	$run{faults} = major_faults($srv) - $faults;
	return %run;
}

sub hot ($self, $srv, $seconds) {
	return $self->{bench}->load(-c => HOT_CLIENTS, '--rate', RATE, -d => $seconds, -t => 60, $srv->url . $self->{hot});
}

sub figures ($alone, $beside) {
	return ((map { ("alone_$_" => $alone->{latency_us}{$_} / 1000, $_ => $beside->{latency_us}{$_} / 1000) } qw(p50 p99 max)),
		asked => $beside->{requests}, answered => $beside->{answered} - $beside->{errors}{all}, answered_pc => answered_pc($beside),
		hot_errors => $beside->{errors}{all} + $alone->{errors}{all});
}

sub answered_pc ($r) { return $r->{requests} ? 100 * ($r->{answered} - $r->{errors}{all}) / $r->{requests} : 0 }

# ended: requests that the server ended without the file; stuck: requests that the client gave up.
sub cold_figures ($name, $r) {
	my $errors = $r->{errors};
	return ("${name}_mb" => $r->{mb_per_s}, "${name}_answered" => $r->{answered} - $errors->{status}, "${name}_stuck" => $errors->{timeout},
		"${name}_ended" => $errors->{all} - $errors->{timeout});
}

# The threads that must not sleep: one for all connections.
sub loops ($srv) {
	my @pids = $srv->pids;
	my $kind = $srv->kind;
	return $pids[0] if $kind eq 'lighttpd';
	return grep { slurp("/proc/$_/cmdline") =~ /^nginx: worker/ } @pids if $kind eq 'nginx';
	return if $kind ne 'accel';
	# Threads of the C library (posix-aio) have the name of the worker that made them; the worker is older.
	my %tid;
	for my $file (glob "/proc/$pids[0]/task/*/comm") {
		my ($name, $tid) = (slurp($file), $file =~ m{/(\d+)/comm\z});
		$tid{$name} = $tid if $name =~ /^worker/ && $tid < ($tid{$name} // 'inf');
	}
	return values %tid;
}

# Page faults of all its processes that had to read from a disk.
sub major_faults ($srv) {
	return sum0(map { slurp("/proc/$_/stat") =~ /.*\) \S+(?: \S+){8} (\d+) / ? $1 : 0 } $srv->pids);
}

# ------------------------------------------------------------- pages that leave

# Opens the files of a list and drops their pages again and again, until its parent ends.
my $dropper = <<'END';
my ($parent, $root, $list, $after, $every) = @ARGV;
my %fadvise64 = (x86_64 => 221, aarch64 => 223, riscv64 => 223);
my $number = $fadvise64{ (POSIX::uname())[4] } // die "no fadvise64(2)\n";
open my $names, '<', $list or die "$list: $!\n";
my @files = map { chomp; open my $fh, '<', "$root$_" or die "$root$_: $!\n"; $fh } <$names>;
select undef, undef, undef, $after;
while (getppid == $parent) {
	syscall $number, fileno $_, 0, 0, 4 for @files;         # POSIX_FADV_DONTNEED
	select undef, undef, undef, $every;
}
END

my @PARTS = (['stay', 'nothing is dropped'], ['dropped', 'pages of the 150 files are dropped every 0.25 s'], ['hung', '... and their disk hangs']);

# "away" is the disk that hangs, "here" the healthy one.
sub leaving ($self, $case) {
	my $bench = $self->{bench};
	my ($source, $away, $here) = ($bench->dir . '/away', "$self->{root}/away", "$self->{root}/here");
	mkdir $away or die "$away: $!\n";
	my %names = (away => [Accel::Bench::Storage::Real::pool($source, AWAY, BYTES)], here => [Accel::Bench::Storage::Real::pool($here, FILES, BYTES, '--sync')]);
	my %list = map { my $at = $_; $at => put($bench->dir . "/$at.list", join '', map { "/$at/$_\n" } @{ $names{$at} }) } keys %names;
	put("$self->{root}/20.txt", "twenty bytes of text");
	local $self->{hot} = '/20.txt';
	my %runs;
	my ($done, $all) = (0, $bench->opt('rounds') * @{ $self->{kinds} });
	for my $round (1 .. $bench->opt('rounds')) {
		for my $kind (@{ $self->{kinds} }) {
			progress($done++, $all, "$kind->{name}, pages leave");
			my $slow = $bench->{disk} = Accel::Slowfs->start(source => $source, at => $away, no_open => 1, spindles => 16, lookup_ms => 1, read_ms => 8);
			my $srv = $bench->server({ %$kind, workers => 2 }, $self->{root});
			my %part = eval { $self->parts($srv, $slow, %list) };
			my $why = $@;
			$slow->stop;
			delete $bench->{disk};
			$srv->stop;
			die $why if $why;
			push @{ $runs{$_}{ $kind->{name} } }, $part{$_} for keys %part;
		}
	}
	progress($done, $all, '');
	for my $part (@PARTS) {
		my ($name, $title) = @$part;
		my $of = $bench->result->{leaving}{$name} = { map { $_ => summary(@{ $runs{$name}{$_} }) } keys %{ $runs{$name} } };
		print_leaving($name, $title, $of, map { $_->{name} } @{ $self->{kinds} });
	}
	return;
}

sub parts ($self, $srv, $slow, %list) {
	my $bench = $self->{bench};
	my $seconds = $bench->opt('seconds');
	my $alone = $self->alone($srv, $seconds);
	my $warm = sub (@lists) { $bench->load(-c => CLIENTS, -u => $list{$_}, -n => $_ eq 'away' ? AWAY : FILES, -d => 20, -t => 20, $srv->url . '/') for @lists };
	my $drop = sub ($after) { $bench->begin($^X, '-MPOSIX', '-e', $dropper, $$, $self->{root}, $list{away}, $after, 0.25) };
	my @loads = (rate => SOME, %list);
	$warm->(qw(here away));
	my %part = (stay => { $self->beside($srv, $seconds, $alone, @loads) });
	my $dropping = $drop->(0);
	$part{dropped} = { $self->beside($srv, $seconds, $alone, @loads) };
	ended($bench, $dropping);
	# As in the measurement of the claim: files that were just found in memory leave it while their disk hangs.
	$warm->('away');
	$dropping = $drop->(0.8);
	$part{hung} = { $self->beside($srv, max(HANGS, $seconds), $alone, hangs => $slow, @loads) };
	$slow->go;
	ended($bench, $dropping);
	return %part;
}

sub ended ($bench, $program) {
	kill TERM => $program->{pid};
	$bench->end($program);
	return;
}

# ------------------------------------------------------------- figures

# Medians; for the sleeps of the loop and for errors, the worst of all rounds.
my %WORST = map { $_ => 1 } qw(slept_ms call_ms ready_ms cold_stuck away_stuck killed lost stop_s);

sub summary (@runs) {
	my %sum;
	for my $key (keys %{ $runs[0] }) {
		my @values = grep { defined } map { $_->{$key} } @runs;
		$sum{$key} = $WORST{$key} ? max(@values) : $key =~ /_pc\z/ ? min(@values) : median(@values) if $key !~ /^(?:how|slept_in|call|again)\z/;
	}
	for my $of ([slept_ms => 'slept_in'], [call_ms => 'call']) {
		my ($ms, $name) = @$of;
		my ($worst) = sort { ($b->{$ms} // 0) <=> ($a->{$ms} // 0) } @runs;
		$sum{$name} = $worst->{$name};
	}
	return { %sum, how => $runs[0]{how}, again => min(map { $_->{again} // 1 } @runs) };
}

sub number ($format, $value) { return defined $value ? sprintf $format, $value : '-' }

sub waited ($ms, $in) { return defined $ms ? sprintf('%.1f', $ms) . ($ms >= 0.05 && $in ? " $in" : '') : '-' }

sub print_cell ($limit, $disk, $of, @names) {
	my $hung = $disk eq 'hung';
	printf "\nMemory %s (%d MiB for %d files of 100 kB), %s disk; a hot 1 kB file %d times a second, %d cold clients\n", $limit->{name}, $limit->{bytes} >> 20,
	    FILES, $disk, RATE, CLIENTS;
	printf "  %-26s %9s   %29s %9s %6s   %-22s  %-22s %7s  %-22s %10s %8s %7s\n", '', 'alone p99', 'hot ms: p50       p99      max', 'answered', 'errors',
	    $hung ? 'cold: ok ended not ended' : 'cold MB/s     errors', 'loop slept, ms', 'of time', 'longest call, ms', 'no CPU, ms', 'refaults', 'majflt';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-26s %9.3f   %9.3f %9.3f %9.1f %7.1f %% %6d   %-22s  %-22s %7s  %-22s %10s %8d %7d%s\n", $name, @$m{qw(alone_p99 p50 p99 max)}, $m->{answered_pc},
		    $m->{hot_errors}, $hung ? sprintf('%8d %5d %9d', @$m{qw(cold_answered cold_ended cold_stuck)}) : sprintf('%9.1f %10d', $m->{cold_mb}, $m->{cold_ended} + $m->{cold_stuck}),
		    waited(@$m{qw(slept_ms slept_in)}), number('%.0f %%', $m->{slept_share}), waited(@$m{qw(call_ms call)}), number('%.1f', $m->{ready_ms}), @$m{qw(refaults faults)},
		    join '', defined $m->{reload_pc} ? sprintf '  %.1f %% answered after a reload', $m->{reload_pc} : (),
		    defined $m->{stop_s} ? $m->{stop_s} < STOPS ? sprintf '  stops in %.2f s', $m->{stop_s} : '  DOES NOT STOP' : (), $m->{killed} ? '  KILLED' : (), $m->{lost} ? "  $m->{lost} events lost" : (), $m->{again} ? () : '  no answer after the disk went on';
	}
	print "  (loops sampled every 2 ms: no trace of the scheduler here)\n" if any { ($_->{how} // '') eq 'sampled' } values %$of;
	return;
}

sub print_leaving ($part, $title, $of, @names) {
	printf "\n%d requests a second of %d files of a disk, %d of %d files of another; %s; a hot file of 20 bytes %d times a second; two workers\n", SOME, AWAY, SOME,
	    FILES, $title, RATE;
	printf "  %-26s %9s   %29s %9s %6s   %-24s %13s  %-22s %7s  %-22s %10s\n", '', 'alone p99', 'hot ms: p50       p99      max', 'answered', 'errors',
	    'away: ok ended not ended', 'here MB/s', 'loop slept, ms', 'of time', 'longest call, ms', 'no CPU, ms';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-26s %9.3f   %9.3f %9.3f %9.1f %7.1f %% %6d   %8d %5d %9d %13.1f  %-22s %7s  %-22s %10s%s\n", $name, @$m{qw(alone_p99 p50 p99 max)},
		    $m->{answered_pc}, @$m{qw(hot_errors away_answered away_ended away_stuck here_mb)}, waited(@$m{qw(slept_ms slept_in)}),
		    number('%.0f %%', $m->{slept_share}), waited(@$m{qw(call_ms call)}), number('%.1f', $m->{ready_ms}), $m->{lost} ? "  $m->{lost} events lost" : '';
	}
}

sub print_aims ($self, $limits, $disks) {
	my $bench = $self->{bench};
	print "\nAims\n";
	for my $limit (@$limits) {
		for my $disk (@$disks) {
			my $of = $bench->result->{pressure}{ $limit->{name} }{$disk};
			for my $name (map { $_->{name} } grep { $_->{kind} eq 'accel' && $_->{name} !~ / beside\z/ } @{ $self->{kinds} }) {
				my $m = $of->{$name};
				my $mark = max(1, 1.5 * $m->{alone_p99});
				my $disturbed = $m->{alone_p99} > 1 || ($m->{ready_ms} // 0) > $mark;
				$bench->aim("$name, $limit->{name}, $disk: hot p99 ms", $m->{p99}, '<=', $mark, { others => $disturbed ? 100 : 0 });
				$bench->aim("$name, $limit->{name}, $disk: cold requests not ended", $m->{cold_stuck}, '<=', 0) if $disk eq 'hung';
			}
		}
	}
}

1;
