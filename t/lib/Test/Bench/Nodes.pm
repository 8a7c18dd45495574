package Test::Bench::Nodes;
# Several machines: what each node has in memory, what a lost, new or slow node costs.
#
# `run($bench)` prints tables for 1, 2 and 4 nodes behind HAProxy (examples/scale), in network namespaces. Each node has 24 MB of memory for
# its program and its pages, and a disk of its own (t/slowfs) with two heads and 4 ms for each read. 960 files of 64 kB, 60 MB, are requested at random: too
# much for one node, enough for four. All nodes share two cores, so throughput does not grow by CPU here: it grows with memory and with disks.
#
# The tables are Markdown, as doc/scale.md has them. The full form takes some six minutes.
use v5.36;
use Accel::Util qw(program put);
use Accel::Figures qw(median spread);
use List::Util qw(first sum sum0 min max);
use Test::Nodes;
use Test::Results::Tables ();
use Time::HiRes qw(sleep time);

my ($dirs, $each, $size) = (10, 96, 65536);
my $clients = 32;
my %disk = (spindles => 2, lookup_ms => 0, read_ms => 4);
my $memory_mb = 24;
my $hot_rate = 100;
my $unbound = qr/^\s*hash-balance-factor.*\n/m;

my @steps = (
	{ name => '1 node', nodes => 1 },
	{ name => '2 nodes', nodes => 2 },
	{ name => '4 nodes', nodes => 4 },
	{ name => '4 nodes, factor 125', nodes => 4, edit => sub ($text) { $text =~ s/(hash-balance-factor) 200/$1 125/r } },
	{ name => '4 nodes, no bound', nodes => 4, edit => sub ($text) { $text =~ s/$unbound//r } },
	{ name => '4 nodes, round robin', nodes => 4, edit => sub ($text) { $text =~ s/$unbound//r =~ s/balance hash.*/balance roundrobin/r =~ s/^\s*hash-type.*\n//mr } },
);

sub run ($bench) {
	my ($ok, $why) = Test::Nodes->usable;
	die "bench: $why\n" unless $ok;
	system "taskset -cp 0-1 $$ >/dev/null 2>&1";    # nodes and load share all cores
	my $r = $bench->result->{nodes} = {};
	_files($bench);
	my %run;
	for my $round (1 .. $bench->opt('rounds')) {
		push @{ $run{ $_->{name} } }, _step($bench, $_) for @steps;
	}
	$r->{steps} = [map { _median(@{ $run{ $_->{name} } }) } @steps];
	_print_steps($bench, $r->{steps});
	my ($lost, $back, $new) = (2, 9, 2);    # slices
	$r->{lost} = _lost($bench, $lost, $back);
	$r->{added}{$_} = _added($bench, $_ eq 'warm', $new) for qw(cold warm);
	$r->{costs} = [
		_cost('a node of four loses its power', $r->{lost}, $lost, $back),
		_cost('it is back with an empty memory', $r->{lost}, $back),
		_cost('a node is added cold, 20 ms for a read', $r->{added}{cold}, $new),
		_cost('a node is added after accel-warm --shard', $r->{added}{warm}, $new),
	];
	_print_costs($r->{costs});
	_print_times('A node is lost, and comes back', $r->{lost});
	_print_times('A node is added, cold; 20 ms for each read', $r->{added}{cold});
	_print_times('A node is added after accel-warm --shard', $r->{added}{warm});
	$r->{slow} = [_slow($bench)];
	_print_slow($r->{slow});
	$bench->note('two cores for all: requests/s does not grow with CPU here, it grows with the disks and the memory of the nodes');
	return;
}

# ---------------------------------------------------------------- the world

sub _files ($bench) {
	my $tree = $bench->dir . '/tree';
	mkdir $tree or die "$tree: $!\n";
	my @url;
	for my $d (1 .. $dirs) {
		mkdir "$tree/d$d" or die "$tree/d$d: $!\n";
		for my $f (1 .. $each) {
			put("$tree/d$d/$f.bin", pack('N', $d * 1000 + $f) x ($size / 4));
			push @url, "/d$d/$f.bin";
		}
	}
	put($bench->dir . '/all.list', join '', map { "$_\n" } @url);
}

sub _farm ($bench, $nodes, %arg) {
	my $farm = Test::Nodes->new(source => $bench->dir . '/tree', memory_mb => $memory_mb, %arg);
	$bench->note('no memory cgroups here: every node keeps all files in memory') if !$farm->{memory_mb} && !exists $arg{memory_mb};
	$farm->up($_, %disk, %{ $arg{disk} // {} }) for 1 .. $nodes;
	return $farm;
}

sub _haproxy ($farm, $nodes, $edit = undef) {
	my $text = Test::Nodes->example('haproxy.cfg') =~ s/^\s*server n(\d+) .*\n/$1 <= $nodes ? $& : ''/mger;
	$farm->front('haproxy', $edit ? $edit->($text) : $text);
}

sub _load ($bench, $farm, $seconds, @more) {
	return $bench->load(-c => $clients, -d => $seconds, -t => 10, '--random', -u => $bench->dir . '/all.list', @more, $farm->url . '/');
}

# Requests and reads of each node so far.
sub _counts ($farm) {
	my $stat = $farm->stat;
	return { map { $_ => [$stat->{"n$_"}{hrsp_2xx} // 0, $farm->slow($_)->counts->{reads}] } keys %{ $farm->{node} } };
}

# For each node the share of its requests that needed no disk; and for all together.
sub _hits ($before, $after) {
	my (@share, @all);
	for my $k (sort keys %$after) {
		my ($requests, $reads) = map { $after->{$k}[$_] - ($before->{$k} // [0, 0])->[$_] } 0, 1;
		push @all, [$requests, $reads];
		push @share, $requests > 0 ? max(0, 1 - $reads / $requests) : undef;
	}
	my $requests = sum0(map { $_->[0] } @all);
	return (\@share, $requests > 0 ? max(0, 1 - sum(map { $_->[1] } @all) / $requests) : undef);
}

sub _percent ($share) { return defined $share ? sprintf '%.0f %%', 100 * $share : '-' }

# ---------------------------------------------------------------- 1, 2, 4 nodes

sub _step ($bench, $step) {
	my $farm = _farm($bench, $step->{nodes});
	_haproxy($farm, $step->{nodes}, $step->{edit});
	_load($bench, $farm, $bench->opt('seconds'));
	my $before = _counts($farm);
	my $hot = $bench->load_begin(-c => 4, '--rate', $hot_rate, -d => $bench->opt('seconds'), -t => 10, $farm->url . '/d1/1.bin');
	my $run = _load($bench, $farm, $bench->opt('seconds'));
	$hot = $bench->load_end($hot);
	my ($share, $all) = _hits($before, _counts($farm));
	$farm->close;
	return { name => $step->{name}, per_s => $run->{requests_per_s}, errors => $run->{errors}{all} + $hot->{errors}{all}, hot_p99 => $hot->{latency_us}{p99},
		p99 => $run->{latency_us}{p99}, hits => $share, all => $all };
}

# The medians of several runs of a step; the nodes in their order.
sub _median (@runs) {
	my %of = map { my $k = $_; $k => median(map { $_->{$k} } @runs) } qw(per_s p99 hot_p99 all);
	my $nodes = $#{ $runs[0]{hits} };
	return { %of, name => $runs[0]{name}, spread => spread(map { $_->{per_s} } @runs), errors => sum(map { $_->{errors} } @runs),
		hits => [map { my $i = $_; median(map { $_->{hits}[$i] } @runs) } 0 .. $nodes] };
}

sub _print_steps ($bench, $steps) {
	_print_table(sprintf('%d files of %d kB at random, %d connections; %d requests/s of one hot file beside them', $dirs * $each, $size / 1024, $clients, $hot_rate),
		['', 'requests/s', '+-%', 'p99 ms', 'p99 ms of the hot file', 'errors', 'hit ratio', 'of each node'],
		map { [$_->{name}, sprintf('%.0f', $_->{per_s}), sprintf('%.0f', $_->{spread}), _ms($_->{p99}), _ms($_->{hot_p99}), $_->{errors}, _percent($_->{all}),
			join ', ', map { _percent($_) } @{ $_->{hits} }] } @$steps);
}

sub _ms ($us) { return sprintf $us < 100_000 ? '%.1f' : '%.0f', $us / 1000 }

sub _print_table ($title, $heads, @rows) {
	print "\n$title\n\n", Test::Results::Tables::table($heads, @rows);
	return;
}

# ---------------------------------------------------------------- over time

# One line for each slice; events: slice => [name, code].
sub _times ($bench, $farm, $slices, %event) {
	my $slice = $bench->opt('quick') ? 0.5 : 1;
	my ($start, $before, @line) = (time, _counts($farm));
	for my $i (0 .. $slices - 1) {
		my $event = $event{$i};
		if ($event) {
			$event->[1]->();
			$before = _counts($farm);
		}
		my $at = time - $start;
		my $run = _load($bench, $farm, $slice);
		my $after = _counts($farm);
		my (undef, $all) = _hits($before, $after);
		$before = $after;
		push @line, { at => $at, event => $event ? $event->[0] : '', per_s => $run->{requests_per_s}, errors => $run->{errors}{all},
			p99 => $run->{latency_us}{p99}, max => $run->{latency_us}{max}, hits => $all // 0 };
	}
	return \@line;
}

sub _print_times ($title, $lines) {
	_print_table($title, ['second', 'requests/s', 'errors', 'p99 ms', 'max ms', 'hit ratio', ''],
		map { [sprintf('%.1f', $_->{at}), sprintf('%.0f', $_->{per_s}), $_->{errors}, _ms($_->{p99}), _ms($_->{max}), _percent($_->{hits}), $_->{event}] } @$lines);
}

# What the event of slice $at costs until slice $end, compared with the time before all events. It is over when the hit ratio is within five
# points of that time again, and no slice has twice the p99.
sub _cost ($name, $lines, $at, $end = @$lines) {
	my $quiet = first { $lines->[$_]{event} ne '' } 0 .. $#$lines;
	my @before = @$lines[0 .. $quiet - 1];
	my @after = @$lines[$at .. $end - 1];
	my %was = map { my $k = $_; $k => median(map { $_->{$k} } @before) } qw(hits p99);
	my $bad = first { $after[$_]{hits} < $was{hits} - 0.05 || $after[$_]{p99} > 2 * $was{p99} } reverse 0 .. $#after;
	my $seconds = !defined $bad ? 0 : $bad == $#after ? undef : $after[$bad + 1]{at} - $after[0]{at};
	return { name => $name, errors => sum0(map { $_->{errors} } @after), hits => [$was{hits}, min map { $_->{hits} } @after],
		p99 => [$was{p99}, max map { $_->{p99} } @after], seconds => $seconds };
}

sub _print_costs ($costs) {
	_print_table("What an event costs, $clients connections", ['event', 'errors', 'hit ratio, before and worst', 'p99 ms, before and worst', 'for how long'],
		map { [$_->{name}, $_->{errors}, join(' to ', map { _percent($_) } @{ $_->{hits} }), join(' to ', map { _ms($_) } @{ $_->{p99} }),
			!defined $_->{seconds} ? 'to the end' : $_->{seconds} == 0 ? 'no time' : sprintf '%.1f s', $_->{seconds}] } @$costs);
}

sub _lost ($bench, $lost, $back) {
	my $farm = _farm($bench, 4);
	_haproxy($farm, 4);
	_load($bench, $farm, $bench->opt('seconds'));
	my $lines = _times($bench, $farm, 16, $lost => ['node 3 loses its power', sub { $farm->power_off(3) }],
		$back => ['node 3 is back, cold', sub { $farm->power_on(3) }]);
	$farm->close;
	return $lines;
}

sub _added ($bench, $warm, $new) {
	my $farm = _farm($bench, 4, disk => { read_ms => 20 });
	_haproxy($farm, 4, sub ($text) { $text =~ s/$unbound//r });
	$farm->tell('disable server files/n4');
	_load($bench, $farm, $bench->opt('seconds'));
	my $lines = _times($bench, $farm, 8, $new => ['node 4 is added', sub {
		$farm->warm(4, '--shard=4/4', '--weight=100') if $warm;
		$farm->tell('enable server files/n4');
	}]);
	$farm->close;
	return $lines;
}

# ---------------------------------------------------------------- a slow node

# A directory hangs on the disk of node 2: a sixth of its files, 4 % of all requests. Each front has a directory of its own, of which
# no node has a file open.
sub _slow ($bench) {
	my $farm = _farm($bench, 4, memory_mb => 0);
	my $front = Test::Nodes->example('front.conf');
	my $haproxy = Test::Nodes->example('haproxy.cfg');
	my @front = (
		['accel-server, no second try', 'accel-server', $front =~ s/(hedge-after +=) 200/$1 0/r],
		['accel-server, hedge-after = 200', 'accel-server', $front],
		['HAProxy, no bound', 'haproxy', $haproxy =~ s/$unbound//r],
		['HAProxy, bounded', 'haproxy', $haproxy],
		['HAProxy, timeout server 200ms, response-timeout', 'haproxy', $haproxy =~ s/(timeout server\s+)40s/${1}200ms/r =~ s/(retry-on .*)/$1 response-timeout/r],
	);
	my ($known, $some) = map { $bench->dir . "/$_.list" } qw(known some);
	my @url = map { "$_\n" } split /\n/, Accel::Util::slurp($bench->dir . '/all.list');
	put($known, join '', grep { !m{^/d[1-5]/} } @url);
	my @row;
	for my $i (0 .. $#front) {
		my ($name, $kind, $text) = @{ $front[$i] };
		$farm->front($kind, $text);
		$bench->load(-c => $clients, -d => 1, '--random', -u => $known, $farm->url . '/');
		my $dir = $i + 1;
		put($some, join '', grep { !m{^/d[1-5]/} || m{^/d$dir/} } @url);
		$farm->slow(2)->hang("/d$dir/*");
		my $run = $bench->load(-c => 400, '--rate', 200, -d => 2 * $bench->opt('seconds'), -t => 3, '--random', -u => $some, $farm->url . '/');
		push @row, { name => $name, map({ $_ => $run->{latency_us}{$_} } qw(p50 p99 p999)), errors => $run->{errors}{all}, answered => $run->{answered},
			unanswered => $run->{unanswered} };
		$farm->slow(2)->go;
	}
	$farm->close;
	return @row;
}

sub _print_slow ($rows) {
	_print_table('A directory hangs on the disk of node 2, a sixth of its files, 4 % of the requests; 200 requests/s, each has 3 s',
		['front', 'answered', 'without an answer', 'errors', 'p50 ms', 'p99 ms', 'p99.9 ms'],
		map { [$_->{name}, @$_{qw(answered unanswered errors)}, map { _ms($_) } @$_{qw(p50 p99 p999)}] } @$rows);
}

1;
