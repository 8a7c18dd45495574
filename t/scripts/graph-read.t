# accel-graph: what it reads, what it skips, what it rejects.
use v5.36;
use Test::More;
use Test::Graph qw(@CLASSIC @LATE ours json_line spew graph table);
use Test::Util qw(slurp);
use File::Temp ();
use FindBin    ();
use JSON::PP   ();

use lib "$FindBin::Bin/../../scripts/lib";
use Accel::Graph::Read qw(@STAGES parse_line);
use Accel::Util        qw(printable);
use Accel::Graph::Stats ();
use Accel::Graph::Style ();

my $dir     = File::Temp->newdir;
my $gnuplot = grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
chdir $dir or die "chdir: $!";
mkdir my $tmp = "$dir/tmp" or die "mkdir: $!";
@ENV{qw(COLUMNS TMPDIR)} = (90, $tmp);

# The columns of 2007.
sub rows ($file) { return map { join ' ', (split / /)[0 .. 3] } grep { !/^#/ } split /\n/, slurp($file) }

subtest 'every line of 2007 and 2009 is charted' => sub {
	for my $set ([classic => @CLASSIC], [late => @LATE], [both => @CLASSIC, @LATE]) {
		my ($name, @lines) = @$set;
		my ($status, $out, $err) = graph(qw(--chart read), spew("$name.log", @lines));
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
	graph(qw(--chart read t.log));
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

subtest 'lines of transfers that were cut are counted' => sub {
	my $cut = sub ($line) { return $line =~ s/(?= path=)/ cut=1/r =~ s/(?=,"path":)/,"cut":true/r };
	my $json = '{"write-start":1173101341.5,"backend":"network_x.c.1","id":"c1.1","status":200,"bytes":5,"hot":false,'
	    . join(',', map { "\"$_-us\":7" } @Test::Graph::STAGES, 'total') . ',"path":"/x"}';
	my @whole = (ours(read => 5), $json, json_line(read => 5), ours(path => '/x cut=1'), @CLASSIC);
	my @cut = map { $cut->($_) } ours(read => 6), $json;
	push @cut, json_line(read => 6) =~ s/\}\z/,"cut":true}/r;    # keys in another order
	my $t = table(@whole, @cut);
	is_deeply [@$t{qw(requests cut rejected)}], [10, 3, 0], 'three of ten';
	my ($status, $out) = graph(qw(--no-charts t.log));
	like $out, qr/^10 requests in .*, 3 cut, /m, 'also for people';
	is table(@whole)->{cut}, 0, 'and none in an old log';
	unlike +(graph(qw(--no-charts t.log)))[1], qr/\bcut\b/, '... which is not worth a word';
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
		'2009-10-16 12:00:01 (trace) (network_gthread_aio.c:73) write-start: 1255694401.1 read-queue-wait: 0 ms read-time: 0 ms write-time: 1255694401237 ms ',
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

subtest 'the pipeline of 2007 reads the lines of accel-server' => sub {
	spew('error.log', ours(start => 1173101341.237616, 'read-queue' => 680_400, read => 300, handover => 1_000, write => 20_500), $CLASSIC[1],
		'ts=1 level=info ev=start', ours(start => 1173101342, tag => 'network_writev.c.7:'));
	my $picked = `grep 'network_gthread_aio.c.78:' error.log | awk '{print \$4,\$6,\$9,\$12}'`;
	is $picked, "1173101341.237616 680 0 21\n1173101341.229014 576 0 134\n", 'words 4, 6, 9 and 12';
};

sub fed (@pieces) {
	my @rows;
	my $read = Accel::Graph::Read->new(on_row => sub ($row) { push @rows, $row });
	my $log  = $read->begin('log');
	$read->feed($log, $_) for @pieces;
	$read->end($log);
	return ($read, @rows);
}

subtest 'the fast way and the general way agree' => sub {
	my %slow = (ours => sub ($line) { $line =~ s/ hot=/ extra=1 hot=/r }, json => sub ($line) { $line =~ s/\{/{ /r });
	for my $hot (0, 1) {
		my %us   = map { $STAGES[$_] => 7 ** $_ } 0 .. 7;
		my $line = ours(%us, other => 99, hot => $hot, start => 1173101341.237616);
		my $fast = parse_line($line);
		is_deeply $fast, [network_gthread_aio => '1173101341.237616', 102400, $hot, @us{ @STAGES[0 .. 7] }, 960_800 + 99, 99, undef, 0], "a line, hot=$hot";
		is_deeply parse_line($line =~ s{(?= path=)}{ cut=1}r), [@$fast[0 .. 14], 1], "... cut";
		my $shaken = parse_line($line =~ s{(?= path=)}{ handshake-us=7 cut=1}r);
		is_deeply $shaken, [@$fast[0 .. 13], 7, 1], '... with a handshake, which total is without';
		is_deeply parse_line($slow{ours}->($line =~ s{(?= path=)}{ handshake-us=7 cut=1}r)), $shaken, '... and a word more';
		is_deeply parse_line($slow{ours}->($line)), $fast, '... with a word more';
		my $json = sprintf '{"write-start":1173101341.237616,"backend":"network_gthread_aio.c.78","id":"c17.3","status":200,"bytes":102400,"hot":%s,%s,"path":"/x\\"y"}',
		    $hot ? 'true' : 'false', join ',', map({ "\"$_-us\":$us{$_}" } @STAGES[0 .. 7]), '"total-us":960899';
		is_deeply parse_line($json), $fast, '... as JSON';
		is_deeply parse_line($slow{json}->($json)), $fast, '... with a blank more';
		is_deeply parse_line($json =~ s/(?=,"path")/,"handshake-us":7,"cut":true/r), $shaken, '... and a handshake';
	}
	is parse_line(ours(other => -5, read => 10))->[13], 0, 'stages that overlap leave no rest below 0';
	is_deeply [@{ parse_line($CLASSIC[1]) }[0 .. 3, 4, 8, 9, 10, 11, 12, 13]], ['network_gthread_aio', '1173101341.229014', 0, undef, undef, 576_000, 0, undef, 134_000, 710_000, 0],
	    'what a classic line does not tell is undef';
};

subtest 'a log cut anywhere' => sub {
	my $text = join "\n", $CLASSIC[0], 'noise', ours(read => 3), $LATE[0] . "\r", '', ours();
	my ($whole, @rows) = fed($text);
	is scalar @rows, 4, 'four lines of it count';
	my $wrong = 0;
	for my $at (1 .. length($text) - 1) {
		my ($read, @cut) = fed(substr($text, 0, $at), substr $text, $at);
		$wrong++ if "@{[map { join ',', map { $_ // '-' } @$_ } @cut]}" ne "@{[map { join ',', map { $_ // '-' } @$_ } @rows]}" || $read->{lines} != $whole->{lines};
	}
	is $wrong, 0, 'in two pieces, at each byte';
	my ($read, @bytes) = fed(split //, $text);
	is_deeply \@bytes, \@rows, 'byte by byte';
};

subtest 'hostile logs' => sub {
	my $long = 'network_gthread_aio.c.78: (trace) write-start: ' . '9' x 70_000;
	my ($read, @rows) = fed("$long\n", ours() . "\n", 'x' x 200_000, 'y' x 200_000, "\n" . ours() . "\n", 'z' x 70_000);
	is scalar @rows, 2, 'lines longer than 64 KiB hide no others';
	is_deeply [$read->{rejected}, $read->{lines}], [3, 5], 'and are counted';
	like $read->{first_rejects}[1], qr/\Alog:3: longer than 65536 bytes\z/, 'with their place';
	my $log = $read->begin('log');
	$read->feed($log, 'x' x 60_000) for 1 .. 100;
	cmp_ok length $log->{rest}, '<=', 65_536, 'a line without an end takes no memory';

	my $evil = "network_gthread_aio.c.78: (trace) write-start: \e[31mred\x07\xc2\x9b read-queue-wait: 1 ms read-time: 1 ms write-time: 1 ms";
	my $name = "a'\"\n\e[2J\$(touch pwned)`touch pwned`<b>.log";
	my ($status, $out, $err) = graph('-v', '--no-charts', spew($name, $evil, ours(path => "/\e[31m\"<script>")));
	is $status, 0, 'control characters in a line and in the name of a log' or diag $err;
	unlike $err . $out, qr/[^\n -~]/, 'no control character is printed';
	like $err, qr/\\x0a\\x1b\[2J.*:1: write-start is "\\x1b\[31mred\\x07\\x9b", not a time/, 'they are shown as what they are';
	($status, $out) = graph('--json', '--no-charts', $name);
	unlike $out, qr/[^\n -~]/, 'nor in JSON';
	($status, $out, $err) = graph('--no-charts', spew('evil.log', $evil));
	is $status, 65, 'nothing else in it: 65';
	unlike $err, qr/[^\n -~]/, '... said without control characters';
	is printable("\xc3\xa9\xc3\x9f.log"), "\xc3\xa9\xc3\x9f.log", 'UTF-8 stays readable';
	is printable("\xe9\xff \xe2\x80\xae"), '\xe9\xff \xe2\x80\xae', 'other bytes are shown as numbers';
	is printable("a\xe2\x80\xaeb"), 'a\x202eb', 'nothing turns the direction of writing';
	is printable("a\xd8\x9cb\xe2\x80\x8bc"), 'a\x61cb\x200bc', '... and nothing is unseen';
	is Accel::Graph::Style::text_of("a\xe2\x80\xae\xd8\x9c\xc2\x9bb\xc3\xa4"), "a___b\xe4", '... on a chart, too';
	($status, $out) = graph('--json', '--no-charts', spew("\xc3\xa9.log", ours()));
	like $out, qr/"\\u00e9\.log"/, 'JSON is ASCII';
	ok !-e 'pwned', 'nothing was run';
	is length printable('x' x 10_000), 503, 'long texts are cut';
	for my $number ('1e400', '0x10', ' 7', '٣', '9' x 30, '-0', '1_000', 'inf', '') {
		my $row = parse_line(ours() =~ s/ read-us=0/ read-us=$number/r);
		ok !ref $row || $row->[9] == 0, 'read-us=' . ($number =~ s/[^ -~]/?/gr) . ': ' . (ref $row ? 'zero' : printable($row // 'no timing line'));
	}
};

subtest 'memory is bounded' => sub {
	my $stats = Accel::Graph::Stats->new;
	my $n     = 0;
	for my $i (1 .. 150_000) {
		$stats->add(["network_$i", $i * 1000, 1, undef, (undef) x 4, 0, $i * 13, undef, 0, $i * 13, 0]);
		$stats->shrink if $i % 500 == 0;
	}
	$stats->shrink;
	cmp_ok scalar keys %{ $stats->{bins} }, '<=', Accel::Graph::Stats::MAX_BINS, 'bins of time';
	cmp_ok scalar keys %{ $stats->{backends} }, '<=', Accel::Graph::Stats::MAX_BACKENDS, 'names of backends';
	cmp_ok scalar keys %{ $stats->{count}[2][8] }, '<=', 2 * Accel::Graph::Stats::MAX_DISTINCT, 'values of a stage';
	my $dist = $stats->distribution('all', 'total');
	is $dist->{n}, 150_000, 'and no request is lost';
	is $dist->{values}[-1], 150_000 * 13, 'the maximum is exact';
	cmp_ok abs($dist->{values}[0] / 13 - 1), '<', 0.001, 'the minimum nearly so';
	my $cdf = Accel::Graph::Stats::cdf($dist);
	ok @$cdf > 150 && @$cdf <= 201, 'points of a CDF' or diag scalar @$cdf;
	is_deeply $cdf->[-1], [150_000 * 13 / 1000, 1], '... whose last one is the maximum';
};

is_deeply [glob "$tmp/*"], [], 'none of all these left a temporary file';

chdir '/';
done_testing;
