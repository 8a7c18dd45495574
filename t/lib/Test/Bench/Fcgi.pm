package Test::Bench::Fcgi;
# fcgi-stat-accel by itself, beside the same application written the textbook libfcgi way.
#
# `run($bench)` prints: memory of 10,000 kept connections, whether 200 connections get all their answers, requests per second and
# CPU time beside t/bench/textbook.c, what becomes of that with more connections than threads, cold files.
#
# The textbook reads the start of each file it opens, 128 KiB; the files here have 1 kB, so that this costs it next to nothing.
# The textbook gets as many kept connections as it has threads, since it cannot serve more.
use v5.36;
use File::Temp ();
use JSON::PP qw(decode_json);
use List::Util qw(max);
use POSIX ();
use Accel::Figures qw(median medians);
use Test::Bench::Hot;
use Accel::Bench::Rig;
use Accel::Slowfs;
use Accel::Util qw(program);

my $threads = 4;
my $connections = 10_000;
my ($few, $many) = (200, 50_000);       # files; in a second not all of the many are asked for twice
my $ours = { kind => 'stat-accel', name => 'ours', threads => $threads, stat_accel_args => ['-H', 'X-Sendfile'] };
my $textbook = { kind => 'textbook', name => 'textbook', threads => $threads };
my $locked = { kind => 'textbook', name => 'textbook-m', threads => $threads, mutex => 1 };

my @kept = ([$ours, $threads], [$ours, 200], [$textbook, $threads]);
my @close = map { [$_, 100, '--close'] } $ours, $textbook, $locked;
my @lists = (
	{ name => 'hot', title => "$few files in memory" },
	{ name => 'memory', title => "$few files on tmpfs" },
	{ name => 'each', title => "$many files in memory, in turn" },
	{ name => 'none', title => "$few names that are not there" },
);
my @load = map { ({ name => "$_->{name}-kept", list => $_->{name}, title => "$_->{title}, kept connections", rows => \@kept },
	{ name => "$_->{name}-close", list => $_->{name}, title => "$_->{title}, a connection per request", rows => \@close }) } @lists;
my @single = (
	{ name => 'idle', run => \&idle },
	{ name => 'many', run => \&all_answered },
	{ name => 'beyond', run => \&beyond },
	{ name => 'cold', run => \&cold },
);
my %disk = (spindles => 16, lookup_ms => 8, read_ms => 8, jitter => 20);

sub run ($bench) {
	$bench->wanted($ours, $textbook);
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @single[0, 1], @load, @single[2, 3]);
	my $files = files($bench);
	for my $case (@chosen) {
		$case->{run} ? $case->{run}->($bench, $files) : side_by_side($bench, $files, $case);
	}
	print "\nAims\n";
	aims_alone($bench, $bench->result->{fcgi});
	aims_beside($bench, $_, $bench->result->{fcgi}{ $_->{name} }) for grep { $_->{rows} } @chosen;
}

# ------------------------------------------------------------- files and load

# Lists of paths, by name. Those on tmpfs are left out where there is none.
sub files ($bench) {
	my $root = $bench->dir;
	my %files;
	mkdir "$root/$_" or die "$root/$_: $!" for 'hot', 'each';
	$files{memory_dir} = File::Temp->newdir('bench-XXXXXX', DIR => '/dev/shm') if -w '/dev/shm';
	$files{hot} = list($bench, 'hot', map { make("$root/hot/$_") } 1 .. $few);
	$files{memory} = list($bench, 'memory', map { make("$files{memory_dir}/$_") } 1 .. $few) if $files{memory_dir};
	$files{each} = list($bench, 'each', map { make("$root/each/$_") } 1 .. $many);
	$files{none} = list($bench, 'none', map { "$root/none/$_ 404" } 1 .. $few);
	return \%files;
}

sub make ($name) {
	open my $fh, '>', $name or die "$name: $!";
	print $fh 'x' x 1000;
	close $fh or die "$name: $!";
	return $name;
}

sub list ($bench, $name, @lines) {
	my $file = $bench->dir . "/$name.paths";
	open my $fh, '>', $file or die "$file: $!";
	print $fh map { "$_\n" } @lines;
	close $fh or die "$file: $!";
	return $file;
}

sub command { return (program('accel-load'), '--fastcgi', '--json', '--expect=X-Sendfile', @_) }

# What accel-load says, as a flat hash.
sub load ($bench, $app, @args) {
	my $text = $bench->end($bench->begin(command(@args, 'unix:' . $app->socket)));
	my $r = eval { decode_json($text) } // die "bench: accel-load said: $text\n";
	my $l = $r->{latency_us};
	return { answered => $r->{answered}, errors => $r->{errors}{all}, rps => $r->{requests_per_s}, never => $r->{client}{never},
		p50_us => $l->{p50}, p99_us => $l->{p99} };
}

# Files lie on two file systems. A root above both, "/", would be dearer: for each open() Landlock goes up to the next root.
sub start ($bench, $app) {
	my @memory = -w '/dev/shm' ? ('--root', '/dev/shm') : ();
	return $bench->server({ %$app, stat_accel_args => [@{ $app->{stat_accel_args} // [] }, @memory] }, $bench->dir);
}

# ------------------------------------------------------------- idle connections

sub idle ($bench, $files) {
	my $app = start($bench, $ours);
	load($bench, $app, -c => 100, -n => 5000, -u => $files->{hot});
	my ($before, $kernel) = ($app->pss, slab());
	my ($first, $again, $after, $kernel_after) = hold($bench, $app, $files->{hot});
	my $held = $first->{held} || 1;
	my %is = (%$first, again => $again->{answered} - $first->{answered}, errors => $again->{errors},
		bytes_each => ($after - $before) / $held, kernel_each => ($kernel_after - $kernel) / $held, before => $before, after => $after);
	$bench->result->{fcgi}{idle} = \%is;
	printf "\n%d kept connections on %d threads\n", $connections, $threads;
	printf "  %-52s %d, %d errors\n", 'answered at first', @is{qw(answered errors)};
	printf "  %-52s %d\n", 'answered again, after silence', $is{again};
	printf "  %-52s %.0f -> %.0f kB: %.0f bytes each\n", 'memory of the process (PSS)', $before / 1024, $after / 1024, $is{bytes_each};
	printf "  %-52s %.0f bytes each\n", 'memory of the kernel, both ends (slab)', $is{kernel_each};
	$app->stop;
}

# Opens connections, one request each; then silence, in which memory is read; then all once more.
sub hold ($bench, $app, $list) {
	pipe my $in, my $order or die "pipe: $!";
	pipe my $said, my $say or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
		POSIX::dup2(fileno $in, 0);             # ends when we do
		POSIX::dup2(fileno $say, 1);
		exec command('--hold', -c => $connections, -u => $list, 'unix:' . $app->socket) or POSIX::_exit(127);
	}
	close $say;
	my %first = (readline($said) // '') =~ /(\w+) (\d+)/g;
	my ($pss, $kernel) = ($app->pss, slab());
	syswrite $order, "again\n";
	my %again = (readline($said) // '') =~ /(\w+) (\d+)/g;
	close $order;
	1 while <$said>;
	waitpid $pid, 0;
	return (\%first, \%again, $pss, $kernel);
}

sub slab {
	open my $fh, '<', '/proc/meminfo' or return 0;
	return (join '', <$fh>) =~ /^Slab:\s+(\d+)/m ? $1 * 1024 : 0;
}

# ------------------------------------------------------------- all are answered

sub all_answered ($bench, $files) {
	my $requests = 200 * ($bench->opt('quick') ? 100 : 1000);
	my $app = start($bench, $ours);
	my $r = load($bench, $app, -c => 200, -n => $requests, -u => $files->{hot});
	$app->stop;
	$bench->result->{fcgi}{many} = { %$r, asked => $requests };
	printf "\n200 kept connections, %d requests on %d threads: %d answered, %d errors, %.0f a second, p99 %.1f ms\n", $requests,
	    $threads, @$r{qw(answered errors rps)}, $r->{p99_us} / 1000;
}

# ------------------------------------------------------------- beside the textbook

sub row_name ($row) {
	return "$row->[0]{name} x $row->[1]";
}

sub side_by_side ($bench, $files, $case) {
	my $list = $files->{ $case->{list} };
	return $bench->note("$case->{name} left out: no tmpfs") unless $list;
	my (%app, %runs);
	for my $row (@{ $case->{rows} }) {
		my $app = $app{ row_name($row) } = start($bench, $row->[0]);
		load($bench, $app, load_of($row), -n => 2000, -u => $list);
	}
	for my $round (1 .. $bench->opt('rounds')) {
		for my $row (@{ $case->{rows} }) {
			my $name = row_name($row);
			push @{ $runs{$name} }, $bench->quietest(sub { measure($bench, $app{$name}, load_of($row), -u => $list) });
		}
	}
	my $of = $bench->result->{fcgi}{ $case->{name} } = { map { $_ => { %{ $bench->summary(@{ $runs{$_} }) }, rounds => $runs{$_} } } keys %runs };
	print_table($case, $of);
	$_->stop for values %app;
}

sub load_of ($row) {
	my (undef, $conns, @more) = @$row;
	return (-c => $conns, @more);
}

sub measure ($bench, $app, @load) {
	my ($cpu, $others) = ($app->cpu, $bench->others_begin);
	my $r = load($bench, $app, -d => $bench->opt('seconds'), @load);
	my $used = $app->cpu - $cpu;
	return { others => $bench->others_end($others, $used), rps => $r->{rps}, errors => $r->{errors}, never => $r->{never},
		cpu => $r->{answered} ? 1e6 * $used / $r->{answered} : undef, p50 => $r->{p50_us}, p99 => $r->{p99_us} };
}

sub print_table ($case, $of) {
	print "\n$case->{title}  ($case->{name})\n";
	printf "  %-18s %9s %5s %9s %8s %8s %7s %6s\n", 'application x conns', 'req/s', '+-%', 'CPU us/rq', 'p50 ms', 'p99 ms', 'others%', 'errors';
	for my $row (@{ $case->{rows} }) {
		my $s = $of->{ row_name($row) };
		printf "  %-18s %9.0f %5.1f %9.2f %8.3f %8.3f %7.0f %6d\n", row_name($row), $s->{rps}, $s->{spread}, $s->{cpu} // 0,
		    $s->{p50} / 1000, $s->{p99} / 1000, $s->{others}, $s->{errors};
	}
}

# ------------------------------------------------------------- more connections than threads

sub beyond ($bench, $files) {
	my $deadline = 5 * $bench->opt('seconds');
	printf "\n200 kept connections on %d threads, for %g s  (beyond)\n", $threads, $deadline;
	printf "  %-12s %9s %22s %9s\n", 'application', 'req/s', 'never answered', 'errors';
	for my $kind ($ours, $textbook, $locked) {
		my $app = start($bench, $kind);
		my $r = load($bench, $app, -c => 200, -d => $deadline, -t => $deadline, -u => $files->{hot});
		$app->stop;
		$bench->result->{fcgi}{beyond}{ $kind->{name} } = $r;
		printf "  %-12s %9.0f %10d connections %9d\n", $kind->{name}, @$r{qw(rps never errors)};
	}
}

# ------------------------------------------------------------- cold files

sub cold ($bench) {
	my ($ok, $why) = Accel::Slowfs->usable;
	return $bench->note("cold left out: $why") unless $ok;
	my $rig = Accel::Bench::Rig->new($bench);
	my $files = Accel::Bench::Rig::files_for(\%disk, $bench->opt('quick') ? 2 : 5);
	my @rows = ([$ours, 100], [$ours, 100, '--close'], [$textbook, 32], [$textbook, 100, '--close']);
	my %runs;
	for my $round (1 .. ($bench->opt('quick') ? 1 : 3)) {
		push @{ $runs{rig} }, $rig->plain(\%disk, $files);
		push @{ $runs{ cold_name($_) } }, cold_once($bench, $rig, $files, @$_) for @rows;
	}
	my $of = $bench->result->{fcgi}{cold} = { map { $_ => medians(@{ $runs{$_} }) } keys %runs };
	printf "\n%d cold files of 100 kB, %d spindles, 32 threads  (cold)\n", $files, $disk{spindles};
	printf "  %-26s %9s %9s %9s %9s %6s\n", 'application x conns', 'files/s', 'CPU us/rq', 'p50 ms', 'p99 ms', 'errors';
	for my $name ('rig', map { cold_name($_) } @rows) {
		my $s = $of->{$name};
		printf "  %-26s %9.0f %9.0f %9.1f %9.1f %6d\n", $name, $s->{rps}, $s->{cpu} // 0, map({ ($_ // 0) / 1000 } @$s{qw(p50 p99)}),
		    $s->{errors} // 0;
	}
}

sub cold_name ($row) {
	return row_name($row) . ($row->[2] ? ' closed' : ' kept');
}

sub cold_once ($bench, $rig, $files, $kind, $conns, @more) {
	my $list = $rig->absolute_list($files);
	return $rig->with_server({ %$kind, threads => 32, stat_accel_args => [@{ $kind->{stat_accel_args} // [] }, '--warm=read:128k'] }, \%disk, sub ($app) {
		my $cpu = $app->cpu;
		my $r = load($bench, $app, -c => $conns, -n => $files, -t => 60, -u => $list, @more);
		return { rps => $r->{rps}, errors => $r->{errors}, p50 => $r->{p50_us}, p99 => $r->{p99_us},
			cpu => $r->{answered} ? 1e6 * ($app->cpu - $cpu) / $r->{answered} : undef };
	});
}

# ------------------------------------------------------------- aims

sub aims_alone ($bench, $of) {
	if (my $idle = $of->{idle}) {
		$bench->aim('idle: connections answered twice', ($idle->{answered} + $idle->{again}) / 2, '>=', $connections);
		$bench->aim('idle: bytes of each connection', $idle->{bytes_each}, '<=', 512);
	}
	$bench->aim('many: share that was answered', $of->{many}{answered} / $of->{many}{asked}, '>=', 1) if $of->{many};
	return unless $of->{cold};
	my %rps = map { $_ => $of->{cold}{$_}{rps} } keys %{ $of->{cold} };
	# The disk is the limit for both, and runs differ from one another.
	$bench->aim('cold: files/s, ours / textbook', $rps{'ours x 100 kept'} / $rps{'textbook x 32 kept'}, '>=', 0.98);
	$bench->aim('cold: files/s, ours / textbook, a connection each', $rps{'ours x 100 closed'} / $rps{'textbook x 100 closed'},
	    '>=', 0.98);
}

# Every row of ours against the better textbook of the case.
sub aims_beside ($bench, $case, $of) {
	my ($theirs) = sort { $a->{cpu} <=> $b->{cpu} } map { $of->{$_} } grep { /^textbook/ } keys %$of;
	for my $name (sort grep { /^ours/ } keys %$of) {
		my $s = $of->{$name};
		$bench->aim("$case->{name}: CPU per request, $name / textbook", ratio($bench, cpu => $s, $theirs), '<=', 1, $s, $theirs);
		$bench->aim("$case->{name}: req/s, $name / textbook", ratio($bench, rps => $s, $theirs), '>=', 1, $s, $theirs);
	}
}

# Taken within each round, so that both saw the same minute of the machine; of quiet rounds as long as there is one.
sub ratio ($bench, $what, $ours, $theirs) {
	my @rounds = map { { others => max($ours->{rounds}[$_]{others}, $theirs->{rounds}[$_]{others}),
		ratio => $ours->{rounds}[$_]{$what} / ($theirs->{rounds}[$_]{$what} || 1) } } 0 .. $#{ $ours->{rounds} };
	return median(map { $_->{ratio} } $bench->undisturbed(@rounds));
}

1;
