# accel-graph: what it counts, what it advises, what it leaves behind.
use v5.36;
use Test::More;
use Test::Graph qw(@CLASSIC @LATE ours json_line spew graph table);
use Test::Util qw(slurp);
use File::Temp ();
use FindBin    ();
use lib "$FindBin::Bin/../../scripts/lib";
use Accel::Graph::Memory ();
use JSON::PP   ();

my $dir     = File::Temp->newdir;
my $gnuplot = grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
chdir $dir or die "chdir: $!";
mkdir my $tmp = "$dir/tmp" or die "mkdir: $!";
@ENV{qw(COLUMNS TMPDIR)} = (90, $tmp);

# The columns of 2007.
sub rows ($file) { return map { join ' ', (split / /)[0 .. 3] } grep { !/^#/ } split /\n/, slurp($file) }

my @only_with_gnuplot = $gnuplot ? () : (skip_all => 'gnuplot is not installed');

subtest 'percentiles are exact nearest ranks' => sub {
	my $t = table(map { ours('read-queue' => $_ * 1000, write => 5) } reverse 1 .. 1000);
	my %want = (p50 => 500, p90 => 900, p95 => 950, p99 => 990, 'p99.9' => 999, 'p99.99' => 1000, max => 1000, requests => 1000, mean => 500.5);
	is_deeply $t->{stages}{'read-queue'}{cold}, \%want, '1 to 1000 ms in reverse';
	is $t->{stages}{write}{$_}, 0.005, "a constant: $_" for qw(p50 p99.9 max);
	is_deeply [map { table(map { ours(read => $_ * 1000) } @$_)->{stages}{read}{p50} } [7], [1, 9], [1, 2, 9]], [7, 1, 2], 'of one, two, three values';
	my $s = table(@CLASSIC)->{stages};
	is_deeply [sort keys %$s], [qw(other read read-queue total write)], 'classic lines have three stages, their total and no rest';
	is $s->{total}{max}, 710, 'the total of 576/0/134';
};

subtest 'a stage is about all requests, even where the line lacks it' => sub {
	# lines of 2007 have three stages; the slow ones of this log are theirs
	my @old = map { "network_gthread_aio.c.78: (trace) write-start: 1173101342.$_ read-queue-wait: 40 ms read-time: 16 ms write-time: 0 ms" } 100 .. 298;
	my @new = ours('stat-queue' => 160_000);
	my $t   = table(@old, @new);
	is_deeply [map { $t->{stages}{$_}{requests} } sort keys %{ $t->{stages} }], [(200) x keys %{ $t->{stages} }], 'each is counted over all of them';
	is $t->{stages}{'stat-queue'}{p99}, 0, 'one of 200 waited for a look-up: the p99 is 0';
	is $t->{stages}{'stat-queue'}{max}, 160, '... the maximum is not';
	ok !(grep { my $stage = $t->{stages}{$_}; grep { $stage->{$_} > $t->{stages}{total}{$_} } qw(p50 p90 p99 max mean) } keys %{ $t->{stages} }), 'no stage is above the total';
	like $t->{advice}, qr/^The longest stage is read-queue with a p99 of 40 ms/, 'and the advice is about what most requests waited for';
	is table(@old)->{stages}{'stat-queue'}, undef, 'a stage that no line has is not there';
};

subtest 'a stage with very many values is rounded, its maximum is not' => sub {
	my $n = 40_000;    # more than 32,768
	my $t = table(map { ours('read-queue' => $_ * 17 + 3) } 1 .. $n);
	ok $t->{rounded}, 'it says so';
	for my $p ([p50 => 0.5], [p99 => 0.99], ['p99.9' => 0.999]) {
		my $true = ($n * $p->[1] * 17 + 3) / 1000;
		cmp_ok abs($t->{stages}{'read-queue'}{ $p->[0] } / $true - 1), '<', 0.0006, "$p->[0] within 0.06 %";
	}
	is $t->{stages}{'read-queue'}{max}, ($n * 17 + 3) / 1000, 'max';
};

subtest 'requests over 4 s, where clients give up' => sub {
	my $t = table(ours('read-queue' => 4_000_000), ours('read-queue' => 4_000_001), ours(stat => 2_000_001, write => 2_000_000), ours(read => 9_000_000));
	is $t->{over}{all}, 3, 'the sum counts; 4 s itself is not over';
	my ($status, $out) = graph('--no-charts', 't.log');
	like $out, qr/^4 requests in 0 s, 4 cold, 0 hot, 3 over 4 s/, 'in the table too';
};

subtest 'one sentence of advice follows from the numbers' => sub {
	my %case = (
		'stat-queue'  => qr/cannot tell.*raise server\.max-stat-threads/,
		'stat'        => qr/inodes in memory/,
		'proxy-queue' => qr/proxy-core\.max-pool-size/,
		'proxy'       => qr/application/,
		'read-queue'  => qr/cannot tell.*raise server\.max-read-threads/,
		'read'        => qr/lower server\.max-read-threads/,
		'handover'    => qr/server\.max-worker/,
		'write'       => qr/network/,
	);
	for my $stage (sort keys %case) {
		my $advice = table(map { ours(read => 15_000, write => 9_000, $stage => $_ * 10_000) } 1 .. 200)->{advice};
		like $advice, qr/^The longest stage is $stage with a p99 of 1980 ms: /, "$stage is named";
		like $advice, $case{$stage}, "$stage: what to change";
		unlike $advice, qr/[.] \S/, "$stage: one sentence";
	}
	like table(map { ours(read => 3_000) } 1 .. 200)->{advice}, qr/^Nothing to change: the p99 is 3 ms\.$/, 'a fast log needs none';
	like table(@CLASSIC)->{advice}, qr/read-queue with a p99 of 681 ms \(of only 3 requests\)/, 'a small sample is called small';
	like table(ours(read => 5_000_000))->{advice}, qr/\(1 of 1 took over 4 s\)/, 'requests that gave up are mentioned';
};

# Two minutes; every ten seconds the load changes between [jobs at the disk, requests a second] and another such pair.
sub load_changes (@pairs) {
	return map {
		my ($jobs, $rate) = @{ $pairs[$_ % @pairs] };
		my $phase = $_;
		map { ours(start => 1173101341 + 10 * $phase + $_ / $rate, stat => int(1e6 * $jobs / $rate), 'stat-queue' => 900_000) } 0 .. 10 * $rate - 1;
	} 0 .. 11;
}

subtest 'a saturated disk is not a lack of threads' => sub {
	my $disk = qr/the disk is the limit: \d[\d.]* jobs at a time brought (?:19|2\d)[\d.]* requests a second, and 1\d[\d.]* brought (?:19|2\d)[\d.]*, so more threads only make each request slower/;
	like table(load_changes([2, 20], [16, 20]))->{advice}, $disk, 'eight times the jobs bring nothing';
	my $rises = table(load_changes([2, 20], [8, 80]))->{advice};
	like $rises, qr/requests wait for a thread that opens files; raise server\.max-stat-threads/, 'more jobs bring more: threads';
	unlike $rises, qr/cannot tell/, '... and it is sure of it';
	like table(load_changes([8, 40]))->{advice}, qr/cannot tell; measure once with half as many threads/, 'always the same number of jobs';
	like table(load_changes([2, 20], [8, 50]))->{advice}, qr/cannot tell/, 'a bit of both';
	spew('few.log', load_changes([8, 40]));
	spew('many.log', load_changes([32, 40]));
	like +(graph('--no-charts', '--before', 'few.log', 'many.log'))[1], qr/the disk is the limit, since 8 jobs at a time brought 40 requests a second and 32 brought 40: go back to fewer threads\.$/m, 'two logs tell what one cannot';
};

# Lines of a server whose files do not fit: $again of the 400 cold requests are for files that were served before.
sub cold_lines ($again) { return map { ours(start => 1173101341 + $_ / 10, read => 90_000, path => '/f' . ($_ <= $again ? $_ % 20 : $_)) } reverse 1 .. 400 }
sub memory_lines (@mb) { return map { sprintf 'ts=%d.5 level=info ev=memory memory_limit=48000000 memory_used=47000000 refault_bytes=%d pages_gone=%d', 1173101341 + 10 * $_, 1e6 * $mb[$_], 3 * $_ } 0 .. $#mb }

subtest 'memory is short' => sub {
	my $t = table(cold_lines(300), memory_lines(100, 130, 160));
	like $t->{advice}, qr/^The longest stage is read .* memory is short: the working set of 20 files needs about 2\.05 MB, and the server may use 48 MB, of which other programs have a part; 70 % of the cold requests were for files that had been served before, 60 MB of files were dropped and read again and 6 windows were gone before they were sent; give it more memory/, 'the advice has the evidence'
		or diag $t->{advice};
	unlike $t->{advice}, qr/[.] \S/, 'one sentence';
	is_deeply [@{ $t->{memory} }{qw(files limit refault_bytes pages_gone)}], [20, 48e6, 60e6, 6], 'the figures are in the JSON';
	like table(cold_lines(300), memory_lines(60))->{advice}, qr/60 MB of files were dropped/, 'one line has what happened since the start';
	like table(cold_lines(300), map { my ($ts, $n) = /ts=(\S+) .*refault_bytes=(\d+)/; qq({"ts":$ts,"level":"info","ev":"memory","memory_limit":48000000,"refault_bytes":$n}) } memory_lines(100, 130, 160))->{advice}, qr/60 MB of files were dropped/, 'JSON';
	like table(cold_lines(300), map { s/ev=memory/ev=counters accepts=3/r } memory_lines(100, 160))->{advice}, qr/60 MB of files/, 'the lines of counters';
	like table(cold_lines(300), memory_lines(100, 130, 7, 37))->{advice}, qr/67 MB of files/, 'a server that was started again counts from 0';
	my %other = (
		'enough memory: files are cold once' => [cold_lines(0), memory_lines(0, 40)], 'enough memory: nothing was dropped' => [cold_lines(300), memory_lines(900, 900, 900)],
		'a log without these lines' => [cold_lines(300)], 'little was dropped' => [cold_lines(300), memory_lines(0, 15)],
	);
	unlike table(@{ $other{$_} })->{advice}, qr/memory is short/, $_ for sort keys %other;
	unlike table((map { ours(start => 1173101341 + $_ / 10, write => 90_000) } 1 .. 400), memory_lines(0, 900))->{advice}, qr/memory is short/, 'the clients take the time, not the disk';
	like table((map { ours(start => 1173101341 + $_ / 10, read => 3_000) } 1 .. 400), memory_lines(0, 900))->{advice}, qr/^Nothing to change/, 'a fast log needs no advice';
};

subtest 'memory: any line, any number of files' => sub {
	my @warned;
	local $SIG{__WARN__} = sub ($text) { push @warned, $text };
	my $m = Accel::Graph::Memory->new;
	$m->other_line($_) for 'ts=1 level=info ev=memory ', 'ts=1 level=info ev=memory refault_bytes=', 'ts=1 level=info ev=memory refault_bytes=-5 pages_gone=1e9', 'ts=x level=info ev=memory refault_bytes=5',
		'ts=1 level=info ev=memories refault_bytes=5', 'ts=1 level=warn ev=reply.failed path=" ev=memory refault_bytes=5"', 'ts=1 level=info ev=memory refault_bytes=' . '9' x 40,
		'{"ts":1,"level":"info","ev":"memory","refault_bytes":"5"}', '{"ts":1,"level":"info","ev":"memory","refault_bytes":5', '{"ts":1,"level":"info","ev":"memory"}', "\xff" x 1000;
	is_deeply $m->{samples}, [], 'no figure, no sample';
	$m->other_line("ts=$_ level=info ev=memory refault_bytes=$_") for 1 .. 10_000;
	cmp_ok scalar @{ $m->{samples} }, '<=', 1024, 'samples are bounded';
	my $facts = $m->facts(1);
	cmp_ok $facts->{refault_bytes}, '>', 9_900, '... and have nearly all of the time';
	for my $round (1, 2) { $m->timing_line(qq(... path="/$_"), ['x', 1, 1000, 0]) for 1 .. 100_000 }
	cmp_ok scalar keys %{ $m->{files} }, '<=', 32_768, 'files are bounded';
	$facts = $m->facts(1);
	ok abs($facts->{files} - 100_000) < 5_000 && abs($facts->{bytes} - 1e8) < 5e6 && abs($facts->{again} - 100_000) < 5_000, '... and counted by a sample' or diag "$facts->{files} $facts->{bytes} $facts->{again}";
	is $facts->{sampled}, 1, '... which the report can say';
	is_deeply \@warned, [], 'no warning';
};

subtest 'the advice is about cold requests, and about the backend in use' => sub {
	my @hot  = map { ours(hot => 1, write => 30_000) } 1 .. 900;
	my @cold = map { ours('stat-queue' => 300_000) } 1 .. 100;
	like table(@hot, @cold)->{advice}, qr/^The longest stage of the cold requests is stat-queue with a p99 of 300 ms: /, 'one cold request of ten decides';
	my $t = table(@hot, @cold);
	is $t->{stages}{'stat-queue'}{p50}, 0, 'though the median of all is 0';
	is $t->{stages}{'stat-queue'}{cold}{p50}, 300, '... and that of the cold ones is not';
	like table(map { ours(hot => 1, write => 30_000) } 1 .. 200)->{advice}, qr/^The longest stage is write /, 'only hot requests: all of them';
	my @uring = map { ours(tag => 'network_io_uring.c.78:', 'read-queue' => 90_000) } 1 .. 200;
	like table(@uring)->{advice}, qr/server\.max-read-jobs/, 'reads in the kernel have a directive of their own';
	like table(map { ours(other => 90_000) } 1 .. 200)->{advice}, qr/^The longest stage is other .*server\.max-worker/, 'the rest of the total is a stage';
	my ($status, $out) = graph('--no-charts', spew('t.log', @hot, @cold));
	like $out, qr/^cold: 100 requests\n.*^stat-queue +300 .*^all: 1000 requests\n.*^stat-queue +0 /ms, 'the table has both';
};

subtest 'lines of fcgi-stat-accel have charts and advice' => sub {
	my @accel = (tag => 'network_fcgi_stat_accel.c.78:');
	my %line  = (
		line => sub (%arg) { ours(@accel, %arg) },
		json => sub (%arg) { json_line(%arg) =~ s/"gthread-aio"/"network_fcgi_stat_accel.c.78"/r },
	);
	my %case = (
		'stat-queue' => qr/raise fcgi-stat-accel --threads/,
		'stat'       => qr/inodes in memory.*fcgi-stat-accel --threads = two per disk/,
		'read'       => qr/lower fcgi-stat-accel --threads.*--warm=read/,
	);
	for my $format (sort keys %line) {
		for my $stage (sort keys %case) {
			my $advice = table(map { $line{$format}->(stat => 9_000, $stage => $_ * 10_000) } 1 .. 200)->{advice};
			like $advice, qr/^The longest stage is $stage with a p99 of 1980 ms: /, "$format: $stage is named";
			like $advice, $case{$stage}, "$format: $stage: what to change";
			unlike $advice, qr/server\.max|[.] \S/, "$format: $stage: one sentence, about the right program";
		}
		my @late = map { $line{$format}->(stat => 1_000) =~ s/(total-us\D+)\d+/${1}10000000/r } 1 .. 9;
		like table(@late)->{advice}, qr/^The longest stage is other with a p99 of 9999 ms \(of only 9 requests\) \(9 of 9 took over 4 s\): .*--deadline/,
		    "$format: those that were given up";
	}
	my @most = map { ours(@accel, 'stat-queue' => 50_000) } 1 .. 3;
	like table(@most, map { ours('stat-queue' => 50_000) } 1 .. 2)->{advice}, qr/fcgi-stat-accel/, 'most lines decide';
	like table(@most, map { ours('stat-queue' => 50_000) } 1 .. 3)->{advice}, qr/server\.max-stat-threads/, 'half of them do not';

	my ($status, $out, $err) = graph(spew('accel.log', ours(@accel, 'stat-queue' => 40_000, stat => 7_000, read => 5_000, hot => 0)));
	is $status, $gnuplot ? 0 : 69, 'charts: status' or diag $err;
	is_deeply [rows('accel.data')], ['0.000000 40 12 0'], 'waited for a thread, then opened and read by it';
	like $out, qr/^stat +7 +7/m, 'the table shows both apart';
	ok -s 'accel-read-queue-wait.png', 'the chart of waiting' if $gnuplot;
};

subtest 'four charts as PNG' => sub {
	plan @only_with_gnuplot if @only_with_gnuplot;
	my ($status, $out, $err) = graph('--output', 'deep/er', spew('error.log', @CLASSIC, map { ours(start => 1173101341 + $_, read => $_ * 1e6) } 1 .. 9));
	is $status, 0, 'status' or diag $err;
	is $err,    '', 'nothing to complain about';
	for my $chart ('error', 'error-read-queue-wait', 'error-read', 'error-write') {
		like slurp("deep/er/$chart.png"), qr/\A\x89PNG\r\n\x1a\n.*IEND.{4}\z/s, "$chart.png is a whole PNG";
		like $out, qr{^wrote deep/er/$chart\.png$}m, 'and is announced';
	}
	my $gp = slurp('deep/er/error.gp');
	like $gp, qr/set xlabel 'start-time of a request/, 'the horizontal axis';
	like $gp, qr/set ylabel 'ms per request'/,         'the vertical axis';
	like $gp, qr/set yrange \[0:9360\]/,              'fits its values';
	unlink 'deep/er/error.png';
	is system("cd deep/er && gnuplot error.gp >/dev/null 2>&1"), 0, 'the script left behind runs by itself';
	ok -s 'deep/er/error.png', 'and draws the chart again';
	graph(qw(--ymax 30000 --name y error.log));
	is scalar(() = slurp('y.gp') =~ /set yrange \[0:30000\]/g), 4, '--ymax holds for all four';
};

subtest 'four charts as SVG' => sub {
	plan @only_with_gnuplot if @only_with_gnuplot;
	my ($status, $out, $err) = graph('--svg', '--name', 'v', spew('error.log', @CLASSIC));
	is $status, 0, 'status' or diag $err;
	like slurp("v$_.svg"), qr/\A<\?xml.*<svg .*<\/svg>\s*\z/s, "v$_.svg is whole" for '', '-read-queue-wait', '-read', '-write';
	ok !-e 'v.png', 'and no PNG';
};

subtest 'charts on the terminal' => sub {
	plan @only_with_gnuplot if @only_with_gnuplot;
	my ($status, $out, $err) = graph('--ascii', '--name', 'term', spew('error.log', @CLASSIC));
	is $status, 0, 'status' or diag $err;
	like $out, qr/term: $_, 3 requests/, "chart: $_" for 'all stages', 'read-queue-wait', 'read', 'write';
	unlike $out, qr/[^\n\x20-\x7e]/, 'printable characters only';
	my ($widest) = sort { $b <=> $a } map { length } grep { /[|+]/ } split /\n/, $out;
	cmp_ok $widest, '<=', 90, 'as wide as COLUMNS';
	cmp_ok $widest, '>',  75, 'but not much less';
	is_deeply [glob 'term*'], [], 'no files';
	($status) = graph(qw(--ascii --svg --name term error.log));
	is scalar(() = glob 'term*'), 10, 'with --svg: eight charts, data and script';
};

subtest 'odd values do not stop gnuplot' => sub {
	plan @only_with_gnuplot if @only_with_gnuplot;
	for my $case (['one request' => $CLASSIC[0]], ['all zero' => (ours()) x 3], ['same start' => @CLASSIC[0, 0]], ['an hour' => ours(read => 3_600_000_000)]) {
		my ($what, @lines) = @$case;
		my ($status, $out, $err) = graph('--name', 'odd', spew('odd.log', @lines));
		is $status, 0, $what or diag $err;
	}
};

subtest 'a name cannot run commands of gnuplot' => sub {
	plan @only_with_gnuplot if @only_with_gnuplot;
	spew('error.log', @CLASSIC);
	mkdir 'trap';    # in any working directory
	spew('trap/pwn', '#!/bin/sh', "touch '$dir/pwned'");
	chmod 0755, 'trap/pwn';
	local $ENV{PATH} = "$dir/trap:$ENV{PATH}";
	my $call = "system('pwn')";
	for my $name ("a'; $call; '", "a\n$call\n#", "a\"; $call; \"", '`pwn`', '$(pwn)', '|pwn', '<pwn', '-e',
		'~root', '%s%n', '{:Bold}_x^2', 'a\\', "a'", 'b c', '@macro', "a\r!pwn") {
		mkdir 'evil';
		my ($status, $out, $err) = graph(qw(--svg --output evil --chart), 'stages,heat', "--name=$name", 'error.log');
		(my $shown = $name) =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
		is $status, 0, "name: $shown" or diag $err;
		opendir my $dh, 'evil' or die;
		my @files = grep { !/^\.\.?$/ } readdir $dh;
		is scalar(@files), 4, 'four files' or diag "@files";
		is scalar(grep { -s "evil/$_" } @files), 4, 'none of them empty';
		ok !-e 'pwned', 'and nothing else happened';
		unlink map { "evil/$_" } @files;
		next unless $name =~ /[`']/;    # the terminal is drawn without gnuplot
		($status) = graph(qw(--ascii --chart stages), "--name=$name", 'error.log');
		ok $status == 0 && !-e 'pwned', 'nor on the terminal';
	}
	rename 'error.log', "x'\n$call.log";
	my ($status) = graph("x'\n$call.log");
	ok $status == 0 && !-e 'pwned', 'nor by the name of a log';
	is system('pwn'), 0, 'the trap itself';
	ok -e 'pwned', 'would have been noticed';
};

subtest 'exit statuses and messages' => sub {
	spew('error.log', @CLASSIC);
	spew('other.log', 'GET / HTTP/1.1', 'nothing here');
	spew('empty.log');
	my @case = (
		[64, qr/no-such-option/, '--no-such-option'], [64, qr/choose one/, qw(--ascii --json error.log)],
		[64, qr/not a path/, qw(--name a/b error.log)], [64, qr/ymax/, qw(--ymax -3 error.log)], [64, qr/ymax/i, qw(--ymax many error.log)],
		[64, qr/no-charts/, qw(--no-charts --svg error.log)],
		[65, qr/other\.log: no timing line in 2 lines; debug\.log-timing = "enable"/, 'other.log'], [65, qr/debug\.log-timing/, 'empty.log'],
		[66, qr/absent\.log: No such file/, 'absent.log'], [66, qr/absent\.log/, 'error.log', 'absent.log'], [66, qr/directory/, '.'],
		[73, qr{error\.log/x}, qw(--output error.log/x error.log)],
	);
	for my $case (@case) {
		my ($want, $text, @args) = @$case;
		my ($status, $out, $err) = graph(@args);
		is $status, $want, "@args: $want";
		like $err, $text, 'and why';
		is $out, '', 'nothing on standard output';
	}
	my ($status, $out) = graph('--help');
	is $status, 0, '--help';
	like $out, qr/^Usage:\n\s+accel-graph/m, 'shows how it is used';
	($status, $out) = graph('--version');
	my ($version) = slurp("$FindBin::Bin/../../Makefile") =~ /^VERSION\s*:?=\s*(\S+)/m;
	is $out, "accel-graph $version\n", '--version is that of the Makefile';
};

subtest 'without gnuplot: the data and the script are kept' => sub {
	mkdir 'bin';
	for my $program (qw(sort)) {
		my ($path) = grep { -x } map { "$_/$program" } split /:/, $ENV{PATH};
		symlink $path, "bin/$program";
	}
	spew('error.log', @CLASSIC);
	local $ENV{PATH} = "$dir/bin";
	my ($status, $out, $err) = graph(qw(--name bare error.log));
	is $status, 69, 'exit status 69';
	like $err, qr/gnuplot is not installed/, 'it says why';
	like $out, qr/^read-queue\s+680\s+681/m, 'the table is still printed';
	is scalar(rows('bare.data')), 3, 'data';
	like slurp('bare.gp'), qr/^plot/m, 'script';
	ok !-e 'bare.png', 'no empty chart';
	($status) = graph(qw(--no-charts error.log));
	is $status, 0, '--no-charts does not need it';
};

is_deeply [glob "$tmp/*"], [], 'none of all these left a temporary file';

chdir '/';
done_testing;
