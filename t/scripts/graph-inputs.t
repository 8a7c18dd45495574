# accel-graph: two logs, and what accel-top, accel-bench and accel-load measured.
use v5.36;
use Test::More;
use Test::Graph qw(ours spew graph);
use Test::Util qw(slurp);
use File::Temp ();
use JSON::PP   ();

my $dir = File::Temp->newdir;
chdir $dir or die "chdir: $!";
$ENV{COLUMNS} = 80;

my $START = 1_173_101_341;

sub encode ($value) { return JSON::PP->new->canonical->encode($value) }

sub ran (@args) {
	my ($status, $out, $err) = graph('--no-charts', @args);
	is $status, 0, "status of @args" or diag $err;
	is $err, '', '... silently';
	return $out;
}

sub widest ($text) { return (sort { $b <=> $a } map { length } grep { !/\.$/ } split /\n/, $text)[0] }

spew('old.log', map({ ours(start => $START + $_, 'stat-queue' => $_ * 1_000, write => 1_000) } 1 .. 200), map { ours(start => $START, hot => 1, write => 1_000) } 1 .. 50);
spew('new.log', map({ ours(start => $START + $_, 'stat-queue' => $_ * 100, write => 1_000, read => 500) } 1 .. 200), map { ours(start => $START, hot => 1, write => 1_000) } 1 .. 50);

subtest 'two logs' => sub {
	my $out = ran(qw(--before old.log new.log));
	like $out, qr/^before: 250 requests .*200 cold, 50 hot/m, 'the old one';
	like $out, qr/^cold: 200 and 200 requests$/m, 'cold requests first';
	like $out, qr/^stat-queue +100\.0 +10\.00 +0\.100 +198\.0 +19\.80 +0\.100/m, 'before, after, ratio';
	like $out, qr/^read +0\.000 +0\.500 +- /m, 'no ratio to 0';
	like $out, qr/^The p99 of the cold requests is 21\.3 ms, and was 199 ms \(0\.107 times as long\); stat-queue changed most, its mean from 10[01] to 10\.1 ms\.$/m, 'one sentence';
	cmp_ok widest($out), '<=', 80, '80 columns';
	my $json = JSON::PP::decode_json(ran(qw(--json --before old.log new.log)));
	is $json->{before}{stages}{'stat-queue'}{cold}{p50}, 100, 'JSON has the old one in "before"';
	is $json->{stages}{'stat-queue'}{cold}{p50}, 10, '... and the new one as ever';
	like ran(qw(--csv --before old.log new.log)), qr/^before,cold,stat-queue,200,100\.5,100,.*^after,cold,stat-queue,200,10\.05,10,/ms, 'CSV has a column that tells them apart';
	like ran(qw(--before new.log new.log)), qr/^The p99 of the cold requests is 21\.3 ms, and was 21\.3 ms\.$/m, 'no change is called none';
};

subtest 'lanes' => sub {
	my $lane = sub ($at, $util) {
		return encode({ time => $START + $at, us => 5, sy => 6, id => 50, wa => 39, cs => 1000, bi => 9, bo => undef,
			disks => { vda => { mount => "/a\e[31m\"", util => $util, queue => 3, await_ms => 9, read_mb_per_s => 40 }, vdb => { mount => undef, util => 1 } } });
	};
	spew('busy.json', map({ $lane->(-500 + $_, 0) } 1 .. 400), map { $lane->($_, 90 + $_ % 10) } 0 .. 199);
	my $out = ran(qw(--lanes busy.json old.log));
	like $out, qr/^The longest stage of the cold requests is stat-queue .*: the disk vda \(\/a\\x1b\[31m"\) is the limit, busy 9[45] % of the time/m, 'the disk is blamed before the threads';
	unlike $out, qr/\e/, 'no control character reaches the terminal';
	spew('idle.json', map { $lane->($_, 20) } 0 .. 199);
	like ran(qw(--lanes idle.json old.log)), qr/server\.max-stat-threads/, 'an idle disk is not';
	spew('burst.log', map { ours(start => $START + 20 + $_ / 100, 'stat-queue' => 100_000) } 1 .. 1000);
	spew('burst.json', map { $lane->($_, $_ > 20 && $_ <= 30 ? 95 : 0) } 0 .. 40);
	like ran(qw(--lanes burst.json burst.log)), qr/ is the limit, busy 9\d % of the time/, 'seconds without requests do not count';
	my $json = JSON::PP::decode_json(ran(qw(--json --curves --lanes busy.json old.log)));
	is $json->{lanes}[0]{at}, 0, 'lanes begin with the log';
	is $json->{lanes}[-1]{disks}{vda}{queue}, 3, 'and have the numbers of disks';
	spew('long.log', ours(start => $START), ours(start => $START + 86_400));
	spew('long.json', map { $lane->($_ * 20, 50) } 0 .. 4320);
	$json = JSON::PP::decode_json(ran(qw(--json --curves --lanes long.json long.log)));
	cmp_ok scalar @{ $json->{lanes} }, '<=', 1025, 'a long recording is averaged';
	cmp_ok scalar @{ $json->{lanes} }, '>', 900, '... but not more than it must';
	is $json->{lanes}[5]{disks}{vda}{util}, 50, '... to means';
};

subtest 'a sweep' => sub {
	my $row = sub ($server, $threads, $mb, %more) {
		return { server => $server, backend => undef, read_threads => $threads, concurrency => 100, spread_percent => 2,
			median => { mb_per_s => $mb, requests_per_s => $mb * 10, p50_ms => 3, p99_ms => 70, errors => {} }, rounds => [], %more };
	};
	spew('bench.json', encode({ title => "Threads\e[2J", machine => { cpu => 'one', more => [1], pinned => JSON::PP::true, versions => { nginx => '1.22', accel => '0.1', odd => [] } }, rows => [map { $row->(@$_) } ['accel:threads', 16, 12], ['accel:threads', 4, 10], [nginx => 4, 9], [nginx => 16, 8]] }));
	my $out = ran(qw(--sweep bench.json));
	like $out, qr/^Threads\\x1b\[2J\n\naccel:threads\nread_threads +MB\/s +.*\n4 +10\.000 +100\.00.*\n16 +12\.000 .*\n\nnginx\n/m, 'a block for each server, sorted by threads';
	cmp_ok widest($out), '<=', 80, '80 columns';
	like ran(qw(--csv --sweep bench.json)), qr/^series,read_threads,mb_per_s,.*\n"accel:threads",4,10,100,3,,70,,2\n/, 'CSV';
	my $sweep = JSON::PP::decode_json(ran(qw(--json --sweep bench.json)))->{sweep};
	is $sweep->{x}, 'read_threads', 'the axis is what varies';
	is_deeply [map { $_->{x} } @{ $sweep->{series}[1]{points} }], [4, 16], 'points of a series';
	is_deeply $sweep->{machine}, { cpu => 'one', pinned => 'yes', versions => 'accel 0.1, nginx 1.22' }, 'facts about the machine';
	my @labelled = map { my ($server, $n) = @$_; $row->("accel:$server", $n, 1, backend => $server, label => "accel:$server $n") } map { my $s = $_; map { [$s, $_] } 4, 16 } qw(threads sendfile);
	spew('two.json', encode({ rows => [map { my $threads = $_; map { { server => 'accel', read_threads => $threads, read_ahead => $_, median => { mb_per_s => $threads } } } 65_536, 1 << 20 } 4, 64] }));
	is_deeply [map { $_->{label} } @{ JSON::PP::decode_json(ran(qw(--json --sweep two.json)))->{sweep}{series} }], ['64 KiB at a time', '1 MiB at a time'], 'series have words, and no names of variables';
	spew('labelled.json', encode({ rows => \@labelled }));
	$sweep = JSON::PP::decode_json(ran(qw(--json --sweep labelled.json)))->{sweep};
	is_deeply [map { [$_->{label}, scalar @{ $_->{points} }] } @{ $sweep->{series} }], [['accel:threads', 2], ['accel:sendfile', 2]], 'a label that repeats the axis makes no series, a backend that follows from the server no words';
	spew('then.json', encode({ rows => [map { my ($label, $n) = @$_; $row->(accel => $n, 1, label => $label) } ['now', 4], ['then', 4], ['now', 16]] }));
	$sweep = JSON::PP::decode_json(ran(qw(--json --sweep then.json)))->{sweep};
	is_deeply [map { $_->{label} } @{ $sweep->{series} }], [qw(now then)], 'but one that tells cells apart does';
	spew('bars.json', encode({ scenario => 'x', rows => [$row->(accel => 4, 1), $row->(nginx => 4, 2)] }));
	is JSON::PP::decode_json(ran(qw(--json --sweep bars.json)))->{sweep}{x}, undef, 'no axis if nothing varies';
};

subtest 'accel-load' => sub {
	my $load = sub (@buckets) {
		return encode({ program => 'accel-load', seconds => 2, requests => 20, answered => 19, errors => { all => 1, timeout => 1 },
			histograms => { latency => { sum_ns => 40_000_000, max_ns => 90_000_000, buckets => \@buckets }, connect => { sum_ns => 0, max_ns => 0, buckets => [] } } });
	};
	spew('load.json', $load->([1_000_000, 10], [2_000_000, 9], [undef, 1]), $load->([5_000_000, 20]));
	my $out = ran(qw(--load load.json));
	like $out, qr/^load\.json: 20 requests in 2 s, 19 answered, 1 errors$/m, 'counts';
	like $out, qr/^latency +1\.000 +2\.000 +2\.000 +90\.000 /m, 'percentiles of buckets';
	like $out, qr/^load\.json:2: 20 requests/m, 'a second run';
	my $curve = JSON::PP::decode_json(ran(qw(--json --load load.json)))->{load}[0]{latency}{curve};
	is_deeply $curve->[0], [0, 0, 1], 'the curve begins with the fastest';
	is $curve->[-1][2], 2, '... and ends where one request is above it';
};

subtest 'hostile files' => sub {
	spew('a.log', ours(start => $START));
	my $row = '{"server":"x","median":{"mb_per_s":1}}';
	my @case = (
		[65, qr/bench\.json: not a JSON object/, sweep => '[1]'], [65, qr/not a JSON object/, sweep => '{"rows":'], [65, qr/no "rows"/, sweep => '{}'],
		[65, qr/no row has a "median"/, sweep => '{"rows":[1,{"median":3}]}'], [65, qr/more than 10000 rows/, sweep => '{"rows":[' . join(',', (1) x 10_001) . ']}'],
		[65, qr/not a JSON object/, sweep => '{"rows":' . '[' x 100_000], [65, qr/not a JSON object/, sweep => "\x00\xff"],
		[0, qr/\A\z/, sweep => qq({"title":["x"],"machine":[1],"rows":[$row,{"server":{"a":1},"read_threads":"many","median":{"mb_per_s":"fast","p99_ms":[1]}}]})],
		[65, qr/lanes\.json:1: not a JSON object/, lanes => 'x'], [65, qr/lanes\.json:2: no "time"/, lanes => "\n{}"], [65, qr/no line about the time of the log/, lanes => '{"time":5}'],
		[65, qr/longer than 1024 KiB/, lanes => ' ' x 3_000_000], [0, qr/\A\z/, lanes => qq({"time":$START,"us":"x","disks":{"a":1,"b":{"util":"much","mount":[1]}}})],
		[0, qr/\A\z/, lanes => qq({"time":$START,"disks":[1]})], [65, qr/load\.json: empty/, load => ''], [65, qr/load\.json:1: no "histograms"/, load => '{}'],
		[65, qr/a bucket is/, load => '{"histograms":{"latency":{"max_ns":5,"buckets":[[9]]}}}'], [65, qr/a bucket is/, load => '{"histograms":{"latency":{"max_ns":5,"buckets":[[5,1],[4,1]]}}}'],
		[65, qr/a bucket is/, load => '{"histograms":{"latency":{"max_ns":5,"buckets":[[5,-1]]}}}'], [65, qr/no "max_ns"/, load => '{"histograms":{"latency":{"max_ns":"x","buckets":[[5,1]]}}}'],
		[0, qr/\A\z/, load => '{"histograms":{"latency":7}}'], [65, qr/more than 64 runs/, load => '{"histograms":{}}' . "\n{\"histograms\":{}}" x 64],
	);
	my $nr = 0;
	for my $case (@case) {
		my ($want, $why, $option, $text) = @$case;
		my $file = spew({ sweep => 'bench', lanes => 'lanes', load => 'load' }->{$option} . '.json', $text);
		my ($status, $out, $err) = graph('--no-charts', "--$option", $file, 'a.log');
		is $status, $want, ++$nr . ": --$option: $want " . substr($text =~ s/[^ -~]/?/gr, 0, 50) or diag $err;
		like $err, $why, '... and why';
		unlike $err . $out, qr/[^\n -~]|HASH\(|ARRAY\(/, '... printable';
	}
	for my $case ([66, '--sweep', 'absent'], [66, '--lanes', '.', 'a.log'], [66, '--before', 'absent', 'a.log'], [64, '--lanes', 'lanes.json', '--sweep', 'bench.json'], [64, '--before', '-', '-']) {
		my ($want, @args) = @$case;
		my ($status, $out, $err) = graph('--no-charts', @args);
		$args[0] eq '--lanes' && @args == 4 ? is($status, 64, 'lanes without a log') : is($status, $want, "@args: $want");
		like $err, qr/\Aaccel-graph: \S/, '... and why';
	}
};

chdir '/';
done_testing;
