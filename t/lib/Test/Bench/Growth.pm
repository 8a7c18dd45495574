package Test::Bench::Growth;
# What a request costs with ever more connections and ever more files.
#
# `run($bench)` measures accel-server, nginx and lighttpd in turn: a hot file for 1 to 10,000 kept connections, and 100 to 1,000,000
# names of 100 bytes, taken at random by 64 connections. Each server remembers at most 10,000 names, except `accel-all`, which remembers all, and
# lighttpd, which remembers for a second or two. Failed requests have a column if there are any. `stat-accel` is fcgi-stat-accel, asked for the same names. The names are hard links, 1000 of a
# file each, on a file system in memory where there is one.
#
# Opening the connections is measured apart and subtracted. `--write DIR` writes growth-connections.svg, growth-files.svg and the tables as growth.md.
use v5.36;
use File::Path qw(remove_tree);
use File::Temp ();
use Time::HiRes qw(sleep);
use Accel::Figures qw(medians);
use Accel::Util qw(put);
use Test::Bench::GrowthChart ();

my $bound = 10_000;             # names that a server remembers
my @kinds = (
	{ kind => 'accel', name => 'accel', conf => _cache($bound) },
	(map { { kind => $_, name => $_ } } qw(nginx lighttpd)),
	{ kind => 'accel', name => 'accel-all', conf => _cache(1_000_000), files_only => 1 },
	{ kind => 'stat-accel', name => 'stat-accel', files_only => 1 },
);
my @connections = (1, 100, 1000, 10_000);
my @files = (100, 1000, 10_000, 100_000, 1_000_000);
my $clients = 64;

sub _cache ($names) {
	return qq{server.max-cached-files = $names\nserver.max-cached-bytes = 10000000000\nstatus.statistics-url = "/counters"\n};
}

sub run ($bench) {
	my @want = $bench->wanted(@kinds);
	my $result = $bench->result->{growth} = { connections => {}, files => {}, bound => $bound };
	my @text = (_connections($bench, grep { !$_->{files_only} } @want), _files($bench, @want));
	print @text;
	my $dir = $bench->opt('write') // return;
	put("$dir/growth.md", join '', @text);
	Test::Bench::GrowthChart::draw($dir, $result);
}

# ---------------------------------------------------------------- connections

sub _connections ($bench, @want) {
	my $root = $bench->files;
	my @servers = map { $bench->server($_, $root) } @want;
	my (%runs, $of);
	for my $round (1 .. $bench->opt('rounds')) {
		for my $n (@connections) {
			for my $srv (@servers) { push @{ $runs{$n}{ $srv->name } }, _kept($bench, $srv, $n) }
		}
	}
	for my $n (@connections) {
		$of->{$n}{$_} = medians(@{ $runs{$n}{$_} }) for keys %{ $runs{$n} };
	}
	$bench->result->{growth}{connections} = $of;
	return _table('1 kB from memory, by kept connections', 'connections', $of, [cpu => 'CPU us'], [p99_ms => 'p99 ms'], [rps => 'req/s'], [errors => 'errors']);
}

# The first requests open the connections, so their cost is that of a run which ends after them.
sub _kept ($bench, $srv, $n) {
	my $url = $srv->url . '/1k.bin';
	my $cpu  = $srv->cpu;
	my $open = $bench->load(-c => $n, -n => $n, $url)->{answered};
	my $used = $srv->cpu - $cpu;
	my $all  = _measure($bench, $srv, -c => $n, -d => $bench->opt('seconds'), $url);
	my $more = $all->{answered} - $open;
	return { %$all, cpu => $more > 0 ? 1e6 * ($all->{used} - $used) / $more : undef };
}

sub _measure ($bench, $srv, @load) {
	my $once = sub {
		my ($cpu, $others) = ($srv->cpu, $bench->others_begin);
		my $r = $bench->load(@load);
		my $used = $srv->cpu - $cpu;
		return { used => $used, answered => $r->{answered}, rps => $r->{requests_per_s}, p99_ms => $r->{latency_us}{p99} / 1000,
			max_ms => $r->{latency_us}{max} / 1000, ($r->{errors}{all} ? (errors => $r->{errors}{all}) : ()), others => $bench->others_end($others, $used) };
	};
	return $bench->opt('quick') ? $once->() : $bench->quietest($once);
}

# ---------------------------------------------------------------- files

sub _files ($bench, @want) {
	my @sizes = $bench->opt('quick') ? grep { $_ <= 100_000 } @files : @files;
	my $tree = _tree($sizes[-1]);
	my @servers = map { $bench->server($_, "$tree/root") } @want;
	my (%runs, $of);
	for my $n (@sizes) {
		for my $prefix ('', "$tree/root") { _list($tree, $prefix, $n) }
		for my $srv (@servers) { _warm($bench, $tree, $srv, $n) }
		for my $round (1 .. $bench->opt('rounds')) {
			for my $srv (@servers) { push @{ $runs{$n}{ $srv->name } }, _asked($bench, $tree, $srv, $n) }
		}
		$of->{$n}{$_} = medians(@{ $runs{$n}{$_} }) for keys %{ $runs{$n} };
	}
	$_->stop for @servers;
	$bench->result->{growth}{files} = $of;
	return _table("100 bytes, one of this many names at random, $clients connections", 'names', $of, [cpu => 'CPU us'], [p99_ms => 'p99 ms'], [max_ms => 'max ms'],
		[hit => 'hits %'], [mib => 'MiB'], [errors => 'errors']);
}

# Hard links cost no inode where the file system has hard links; 1000 per file stay below all limits.
sub _tree ($n) {
	my $at = -d '/dev/shm' && -w '/dev/shm' ? '/dev/shm' : undef;
	my $tree = File::Temp->newdir('growth-XXXXXX', $at ? (DIR => $at) : (TMPDIR => 1));
	chmod 0755, "$tree";
	mkdir "$tree/root" or die "$tree/root: $!\n";
	for my $i (0 .. $n / 1000 - 1) {
		my $dir = "$tree/root/$i";
		mkdir $dir or die "$dir: $!\n";
		put("$dir/0", 'x' x 100);
		for my $j (1 .. 999) { link "$dir/0", "$dir/$j" or die "$dir/$j: $!\n" }
	}
	return $tree;
}

sub _list ($tree, $prefix, $n) {
	open my $out, '>', "$tree/" . ($prefix eq '' ? 'urls' : 'names') or die "$tree: $!\n";
	for my $i (0 .. $n - 1) { printf $out "%s/%d/%d\n", $prefix, int $i / 1000, $i % 1000 }
	close $out or die "$tree: $!\n";
}

sub _load_of ($tree, $srv) {
	return ('--fastcgi', -u => "$tree/names", 'unix:' . $srv->socket) if $srv->kind eq 'stat-accel';
	return (-u => "$tree/urls", $srv->url . '/');
}

# Asks for each name once if the server remembers all names, else for twice as many names as it remembers.
sub _warm ($bench, $tree, $srv, $n) {
	my $most = $srv->name eq 'accel-all' ? $n : 2 * $bound;
	$bench->load(-c => $clients, -n => $n < $most ? $n : $most, _load_of($tree, $srv));
}

sub _asked ($bench, $tree, $srv, $n) {
	my @before = _counters($srv);
	my $run = _measure($bench, $srv, -c => $clients, -d => $bench->opt('seconds'), '--random', _load_of($tree, $srv));
	my @after = _counters($srv);
	my ($hits, $misses) = map { $after[$_] - $before[$_] } 0 .. $#before;
	return { %$run, cpu => $run->{answered} ? 1e6 * $run->{used} / $run->{answered} : undef, mib => $srv->pss / (1 << 20),
		defined $hits && $hits + $misses > 0 ? (hit => 100 * $hits / ($hits + $misses)) : () };
}

# Answers from the cache, and names that were looked up.
sub _counters ($srv) {
	return if $srv->kind ne 'accel';
	require HTTP::Tiny;
	my $page = HTTP::Tiny->new(timeout => 20)->get($srv->url . '/counters')->{content};
	return map { my $name = $_; $page =~ /^server\.cache\.$name: (\d+)$/m ? $1 : 0 } qw(hits misses);
}

# ---------------------------------------------------------------- tables

# A row for each count and server, as Markdown.
sub _table ($title, $what, $of, @columns) {
	my @name = grep { my $n = $_; grep { $_->{$n} } values %$of } map { $_->{name} } @kinds;
	my @text = ("\n$title\n\n", '| ' . join(' | ', $what, map { my $c = $_; map { "$_ $c->[1]" } grep { my $n = $_; grep { defined $_->{$n}{ $c->[0] } } values %$of } @name } @columns) . " |\n");
	push @text, '|' . ' ---: |' x ($text[1] =~ tr/|// - 1) . "\n";
	for my $n (sort { $a <=> $b } keys %$of) {
		my @cell;
		for my $c (@columns) {
			push @cell, map { _number($of->{$n}{$_}{ $c->[0] }) } grep { my $name = $_; grep { defined $_->{$name}{ $c->[0] } } values %$of } @name;
		}
		push @text, '| ' . join(' | ', $n, @cell) . " |\n";
	}
	return @text;
}

sub _number ($value) { return !defined $value ? '-' : $value >= 1000 ? sprintf('%.0f', $value) : sprintf '%.3g', $value }

1;
