# accel-graph: what it reads, what it rejects, what it counts, what it draws, what it advises.
use v5.36;
use Test::More;
use Test::Util qw(slurp);
use Cwd qw(abs_path);
use File::Temp ();
use FindBin    ();
use JSON::PP   ();

my $script  = abs_path("$FindBin::Bin/../../scripts/accel-graph");
my $dir     = File::Temp->newdir;
my $gnuplot = grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
chdir $dir or die "chdir: $!";
mkdir my $tmp = "$dir/tmp" or die "mkdir: $!";
@ENV{qw(COLUMNS TMPDIR)} = (90, $tmp);

# ---------------------------------------------------------------- lines of every shape

my @CLASSIC = (
	'network_gthread_aio.c.78: (trace) write-start: 1173101341.237616 read-queue-wait: 680 ms read-time: 0 ms write-time: 21 ms',
	'network_gthread_aio.c.78: (trace) write-start: 1173101341.229014 read-queue-wait: 576 ms read-time: 0 ms write-time: 134 ms',
	'network_gthread_aio.c.78: (trace) write-start: 1173101341.240815 read-queue-wait: 681 ms read-time: 6 ms write-time: 19 ms',
);
my $BLANK = ' ';    # lighttpd 1.5 ended its lines with one
my @LATE  = (
	'2009-10-16 12:00:01 (trace) (network_gthread_aio.c:73) write-start: 1255694401.237616 read-queue-wait: 680 ms read-time: 0 ms write-time: 21 ms' . $BLANK,
	'2009-10-16 12:00:02 (trace) (network_gthread_sendfile.c:59) write-start: 1255694402.001200 read-queue-wait: 5 ms read-time: 44 ms write-time: 1 ms' . $BLANK,
);
my @STAGES = qw(stat-queue stat proxy-queue proxy read-queue read handover write);

# One line of ours; stages not named take 0 us.
sub ours (%arg) {
	my $us    = sub ($stage) { $arg{$stage} // 0 };
	my $total = 0;
	$total += $us->($_) for @STAGES;
	my $tag = $arg{tag} // 'network_gthread_aio.c.78:';
	return sprintf('%s (trace) write-start: %.6f read-queue-wait: %d ms read-time: %d ms write-time: %d ms ',
		$tag, $arg{start} // 1173101341, map { $_ / 1000 } $us->('read-queue'), $us->('read'), $us->('handover') + $us->('write'))
	    . sprintf('id=%s status=200 bytes=102400 hot=%d ', $arg{id} // 'c17.3', $arg{hot} // 0)
	    . join(' ', map { "$_-us=" . $us->($_) } @STAGES)
	    . " total-us=$total path=\"" . ($arg{path} // '/a/b.jpg') . '"';
}

sub json_line (%arg) {
	my %line = ('write-start' => $arg{start} // 1173101341.5, backend => 'gthread-aio', id => 'c1.1', status => 200, bytes => 5, hot => JSON::PP::true,
		path => $arg{path} // '/x', 'total-us' => 0);
	$line{"$_-us"} = $arg{$_} // 0 for @STAGES;
	$line{'total-us'} += $line{"$_-us"} for @STAGES;
	return JSON::PP->new->canonical->encode(\%line);
}

# ---------------------------------------------------------------- helpers

sub spew ($file, @lines) {
	open my $fh, '>:raw', $file or die "$file: $!";
	print $fh map { "$_\n" } @lines;
	close $fh or die "$file: $!";
	return $file;
}

# Runs accel-graph.  Returns exit status, standard output, standard error.
sub graph (@args) {
	my $stdin = ref $args[0] ? ${ shift @args } : '';
	spew('.in', $stdin eq '' ? () : $stdin =~ s/\n\z//r);
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDIN,  '<', '.in'  or die;
		open STDOUT, '>', '.out' or die;
		open STDERR, '>', '.err' or die;
		exec $^X, $script, @args or die;
	}
	waitpid $pid, 0;
	return ($? >> 8 | ($? & 127) << 8, slurp('.out'), slurp('.err'));
}

sub table (@lines) {
	my ($status, $out, $err) = graph(qw(--json --no-charts), spew('t.log', @lines));
	is $status, 0, 'exit status 0' or diag $err;
	return JSON::PP::decode_json($out);
}

# The columns of 2007.
sub rows ($file) { return map { join ' ', (split / /)[0 .. 3] } grep { !/^#/ } split /\n/, slurp($file) }

my @only_with_gnuplot = $gnuplot ? () : (skip_all => 'gnuplot is not installed');

# ---------------------------------------------------------------- tests

subtest 'every line of 2007 and 2009 is charted' => sub {
	for my $set ([classic => @CLASSIC], [late => @LATE], [both => @CLASSIC, @LATE]) {
		my ($name, @lines) = @$set;
		my ($status, $out, $err) = graph(spew("$name.log", @lines));
		is $status, $gnuplot ? 0 : 69, "$name: status" or diag $err;
		is scalar(rows("$name.data")), scalar(@lines), "$name: as many rows as lines";
		for my $line (@lines) {
			my ($start, $queue, $read, $write) = $line =~ /write-start: (\S+).*?wait: (\d+).*?time: (\d+).*?time: (\d+)/;
			ok scalar(grep { / $queue $read $write$/ } rows("$name.data")), "$name: row of $queue/$read/$write ms";
		}
	}
	is_deeply [rows('classic.data')], ['0.000000 576 0 134', '0.008602 680 0 21', '0.011801 681 6 19'],
	    'sorted by start, which counts from the first';
	like slurp('classic.data'), qr/^0\.000000 /m, 'four columns, separated by blanks';
};

subtest 'a line of accel-server has microseconds and the classic words' => sub {
	my @lines = (
		ours(start => 100_000_000.5, 'read-queue' => 1_500, read => 250, handover => 40, write => 60, stat => 7, hot => 1),
		ours(start => 100_000_001, tag => 'network_linux_sendfile.c.31:', 'proxy-queue' => 9, proxy => 8, 'stat-queue' => 6, write => 2),
		ours(start => 100_000_002, tag => 'network_writev.c.7:', path => '/evil read-us=-1 total-us=x" write-us=9'),
	);
	my $t = table(@lines);
	is $t->{requests}, 3, 'three backends, three requests';
	is $t->{rejected}, 0, 'what a path says is not believed';
	is $t->{hot},      1, 'hot ones are counted';
	my %max = ('stat-queue' => .006, stat => .007, 'proxy-queue' => .009, proxy => .008, 'read-queue' => 1.5, read => .25,
		handover => .04, write => .06, total => 1.857);
	is $t->{stages}{$_}{max}, $max{$_}, "max of $_ in ms" for sort keys %max;
	graph('t.log');
	is_deeply [rows('t.data')], ['0.000000 1.5 0.25 0.1', '0.500000 0 0 0.002', '1.500000 0 0 0'],
	    'write in the chart begins at the handover, as it did in 2007';
};

subtest 'JSON lines give the same table' => sub {
	my %a = (start => 1173101341.25, hot => 1, 'read-queue' => 5_000, read => 70, write => 9, stat => 3);
	my ($text, $json) = (table(ours(%a)), table(json_line(%a)));
	is_deeply $json->{stages}, $text->{stages}, 'same stages';
	is $json->{hot}, 1, '"hot": true counts';
	my $evil = table(json_line(%a, path => '/q"x\\","read-us":-5,{"write-start":1'), '{"ev":"other"}', '{"write-start" is cut');
	is $evil->{requests}, 1, 'quotes in a path stay inside it';
	is $evil->{rejected}, 1, 'an object that is cut short is rejected, another object is skipped';
};

subtest 'other lines of a log are skipped' => sub {
	my @others = ('ts=1173101341.237616 level=warn ev=exchange.failed id=c17.3', '', '2009-10-16 12:00:01 (server.c.1) started',
		'127.0.0.1 - - "GET /?network_gthread_aio.c.78: (trace) write-start: 1 HTTP/1.1" 200', "\x00\xff\xfe", '{"a":1}', '{');
	my ($status, $out, $err) = graph(qw(--no-charts -v), spew('t.log', $others[0], $CLASSIC[0], @others[1 .. $#others], $LATE[0]));
	is $status, 0, 'exit status 0';
	like $err, qr/^accel-graph: 9 lines read, 2 charted, 0 rejected, 7 others skipped$/m, '--verbose counts the skipped';
	($status, $out, $err) = graph(qw(--no-charts), 't.log');
	is $err, '', 'and silence without it';
};

subtest 'absurd values are rejected and counted' => sub {
	my $line = sub ($start, @ms) {
		return sprintf 'network_gthread_aio.c.78: (trace) write-start: %s read-queue-wait: %s ms read-time: %s ms write-time: %s ms', $start, @ms;
	};
	my @bad = (
		$line->('1173101341.1', 0, 0, '1795225838293'),         # the epoch: a stamp that was never set
		$line->('1173101341.1', -3, 0, 1), $line->('1173101341.1', 0, -1, 1), $line->('1173101341.1', 0, 0, 3_600_001),
		$line->('1795225838293', 0, 0, 1), $line->('0.000000', 0, 0, 1), $line->('soon', 0, 0, 1), $line->('1173101341.1', 'nan', 0, 1),
		'network_gthread_aio.c.78: (trace) write-start: 1173101341.1 read-queue-wait: 3 ms read-ti',
		ours(stat => -1), ours(write => 3_600_000_001), ours() =~ s/ read-us=0/ read-us=1e3/r,
		'2009-10-16 12:00:01 (trace) (network_gthread_aio.c:73) write-start: 1255694401.1 read-queue-wait: 0 ms read-time: 0 ms write-time: 1255694401237 ms' . $BLANK,
		json_line(read => -7), json_line(start => 1795225838293),
	);
	my $t = table($line->('1173101341.1', 0, 0, 3_600_000), @bad);
	is $t->{rejected}, scalar(@bad), 'each of them is counted';
	is $t->{requests}, 1,            'an hour itself is allowed';
	for my $bad (@bad) {
		my ($status, $out, $err) = graph('--no-charts', spew('bad.log', $CLASSIC[0], $bad));
		like $err, qr/^accel-graph: 1 timing line rejected; the first: bad\.log:2: \S/, 'file and line: ' . ($err =~ /2: (.*)/)[0];
	}
	my ($status, $out, $err) = graph('--no-charts', spew('bad.log', @bad));
	is $status, 65, 'nothing but absurd lines: 65';
	like $err, qr/no usable timing line/, 'and it says so';
};

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

subtest 'a stage with very many values is rounded, its maximum is not' => sub {
	my $n = 150_000;
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
		'stat-queue'  => qr/server\.max-stat-threads/,
		'stat'        => qr/inodes in memory/,
		'proxy-queue' => qr/proxy-core\.max-pool-size/,
		'proxy'       => qr/application/,
		'read-queue'  => qr/raise server\.max-read-threads/,
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

subtest 'input: several logs, standard input, gzip' => sub {
	require IO::Compress::Gzip;
	spew('one.log', @CLASSIC);
	spew('two.log', @LATE);
	my $n = sub (@args) {
		my ($status, $out, $err) = graph(@args);
		is $status, 0, "status of: @args[grep { !ref $args[$_] } 0 .. $#args]" or diag $err;
		return JSON::PP::decode_json($out)->{requests};
	};
	my @quiet = qw(--json --no-charts);
	my $stdin = slurp('two.log');
	is $n->(@quiet, 'one.log', 'two.log'), 5, 'two files';
	is $n->(\$stdin, @quiet), 2, 'no name: standard input';
	is $n->(\$stdin, @quiet, 'one.log', '-'), 5, '"-" among files';
	IO::Compress::Gzip::gzip('one.log', 'one.log.gz') or die;
	is $n->(@quiet, 'one.log.gz', 'two.log'), 5, 'gzip';
	open my $fh, '>:raw', 'cat.gz' or die;
	print $fh slurp('one.log.gz') x 2;
	close $fh or die;
	is $n->(@quiet, 'cat.gz'), 6, 'concatenated gzip members';
	my $zipped = slurp('one.log.gz');
	is $n->(\$zipped, @quiet, '-'), 3, 'gzip on standard input';
	open $fh, '>:raw', 'cut.log' or die;
	print $fh join("\r\n", @CLASSIC);
	close $fh or die;
	is $n->(@quiet, 'cut.log'), 3, 'CR LF, and no line break at the end';
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
		my ($status, $out, $err) = graph(qw(--chart stages,heat --output evil), "--name=$name", 'error.log');
		(my $shown = $name) =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
		is $status, 0, "name: $shown" or diag $err;
		opendir my $dh, 'evil' or die;
		my @files = grep { !/^\.\.?$/ } readdir $dh;
		is scalar(@files), 4, 'four files' or diag "@files";
		is scalar(grep { -s "evil/$_" } @files), 4, 'none of them empty';
		ok !-e 'pwned', 'and nothing else happened';
		unlink map { "evil/$_" } @files;
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
	like $out, qr/^Usage:\n\s+accel-graph/, 'shows how it is used';
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
	like $out, qr/^read-queue\s+680\s+681/m, 'the table is printed all the same';
	is scalar(rows('bare.data')), 3, 'data';
	like slurp('bare.gp'), qr/^plot/m, 'script';
	ok !-e 'bare.png', 'no empty chart';
	($status) = graph(qw(--no-charts error.log));
	is $status, 0, '--no-charts does not need it';
};

subtest 'the pipeline of 2007 reads the lines of accel-server' => sub {
	spew('error.log', ours(start => 1173101341.237616, 'read-queue' => 680_400, read => 300, handover => 1_000, write => 20_500), $CLASSIC[1],
		'ts=1 level=info ev=start', ours(start => 1173101342, tag => 'network_writev.c.7:'));
	my $picked = `grep 'network_gthread_aio.c.78:' error.log | awk '{print \$4,\$6,\$9,\$12}'`;
	is $picked, "1173101341.237616 680 0 21\n1173101341.229014 576 0 134\n", 'words 4, 6, 9 and 12';
};

is_deeply [glob "$tmp/*"], [], 'none of all these left a temporary file';

chdir '/';
done_testing;
