# accel-graph --fail-if: limits for CI, and what is said about those that do not hold.
use v5.36;
use Test::More;
use Test::Graph qw(@CLASSIC ours spew graph);
use File::Temp ();

my $dir = File::Temp->newdir;
chdir $dir or die "chdir: $!";

# 90 hot requests of 1 ms, 10 cold ones of 101 to 110 ms, of which 100 ms are stat-queue.
spew('ci.log', map({ ours(start => 1173101341 + $_ / 100, hot => 1, write => 1_000) } 1 .. 90),
	map { ours(start => 1173101342 + $_ / 100, 'stat-queue' => 100_000, stat => $_ * 1_000) } 1 .. 10);

sub judged (@limits) {
	my ($status, $out, $err) = graph('--no-charts', map({ ('--fail-if', $_) } @limits), 'ci.log');
	return ($status, $err, $out);
}

subtest 'a limit holds or does not' => sub {
	my @case = (
		['p50>1ms' => 0], ['p50>=1ms' => 'it is 1 ms'], ['p50 < 2 ms' => 'it is 1 ms'], ['p50<1ms' => 0], ['p90>1000us' => 0], ['p90.1>1.5ms' => 'it is 101 ms'],
		['max>0.1s' => 'it is 110 ms'], ['max>0.11s' => 0], ['mean>11ms' => 'it is 11.4 ms'], ['cold.p50>104ms' => 'it is 105 ms'], ['hot.max>1ms' => 0],
		['stat-queue.p50>0us' => 0], ['cold.stat-queue.p50>=100ms' => 'it is 100 ms'], ['cold.stat.p99.9>9.5ms' => 'it is 10 ms'], ['all.total.p50>1ms' => 0],
		['other.max>0ms' => 0], ['over>0' => 0], ['over>=0%' => 'it is 0 % (0 of 100 requests)'], ['requests<101' => 'it is 100'], ['cold.requests<10' => 0],
		['rejected>0' => 0], ['rate<1000' => qr/it is [\d.]+ requests a second/],
	);
	for my $case (@case) {
		my ($limit, $want) = @$case;
		my ($status, $err) = judged($limit);
		is $status, $want ? 1 : 0, "$limit: status " . ($want ? 1 : 0) or diag $err;
		my $said = $err =~ s/\Aaccel-graph: \Q$limit\E: //r;
		$want ? like($said, ref $want ? $want : qr/\A\Q$want\E\n\z/, '... and what it is') : is($err, '', '... silently');
	}
};

subtest 'several limits; the give-up limit' => sub {
	my ($status, $err, $out) = judged('p50>1ms, max>100ms', 'cold.p50>1ms');
	is $status, 1, 'one of them is enough';
	is $err, "accel-graph: max>100ms: it is 110 ms\naccel-graph: cold.p50>1ms: it is 105 ms\n", 'those that do not hold are named';
	like $out, qr/^total/m, 'the table is printed as ever';
	($status, $out, $err) = graph(qw(--no-charts --give-up 105ms --fail-if over>4%), 'ci.log');
	is $status, 1, '--give-up says what over means';
	is $err, "accel-graph: over>4%: it is 5 % (5 of 100 requests)\n", 'with both numbers';
	($status, $out) = graph(qw(--json --no-charts --give-up 105ms), 'ci.log');
	like $out, qr/"give-up-ms" : 105\b/, 'and is in the JSON';
};

subtest 'the ratio of two logs' => sub {
	spew('old.log', map { ours('stat-queue' => 50_000) } 1 .. 100);
	my $run = sub ($limit) { return graph(qw(--no-charts --before old.log --fail-if), $limit, 'ci.log') };
	my ($status, $out, $err) = $run->('ratio.cold.stat-queue.p50>1.9');
	is $status, 1, 'twice as long';
	is $err, "accel-graph: ratio.cold.stat-queue.p50>1.9: it is 2 (100 ms, before 50 ms)\n", 'with both values';
	is +($run->('ratio.cold.stat-queue.p50>2'))[0], 0, 'not more than twice';
};

subtest 'a limit that cannot be judged is not a success' => sub {
	my ($status, $out, $err) = graph(qw(--no-charts --fail-if cold.p99>1s), spew('classic.log', @CLASSIC));
	is $status, 65, 'no request is known to be cold: 65';
	like $err, qr/no request to judge by/, 'and why';
};

subtest 'what is not understood' => sub {
	my @case = (
		['p99>50' => qr/needs a unit/], ['p99' => qr/not NAME/], ['p99>' => qr/not NAME/], ['p99=50ms' => qr/not NAME/], ['>50ms' => qr/not NAME/],
		['p101>1ms' => qr/no value is named p101|not/], ['pp>1ms' => qr/none of pNN max mean/], ['lukewarm.p99>1ms' => qr/'lukewarm' is neither a class/],
		['cold.nap.p99>1ms' => qr/'nap' is neither/], ['stat.over>1%' => qr/not of a stage/], ['over>1ms' => qr/not a unit of over/], ['p99>1%' => qr/needs a unit/],
		['stat.cold.p99>1ms' => qr/'cold' is neither|'stat'|neither/], ['ratio.p99>2' => qr/needs --before/], ['ratio.p99>2ms' => qr/a ratio has no unit/],
		['ratio.over>2' => qr/has no ratio/], ['hot.rate>2' => qr/of all requests/], ['' => qr/empty|not NAME/], ['p99>1ms,' x 101 => qr/more than 100/],
		['system("touch pwned")>1ms' => qr/not NAME/], ["p99>1ms\nx" => qr/not NAME/], ["p\e[31m>1ms" => qr/not NAME/], ['p99>1e3ms' => qr/not NAME/],
	);
	for my $case (@case) {
		my ($limit, $why) = @$case;
		my ($status, $err, $out) = judged($limit);
		my $name = $limit =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger;
		is $status, 64, "'" . substr($name, 0, 40) . "': 64";
		like $err, $why, '... and why';
		is $out, '', '... before anything is read';
		unlike $err, qr/[^\n -~]/, '... printable';
	}
	ok !-e 'pwned', 'nothing was run';
};

chdir '/';
done_testing;
