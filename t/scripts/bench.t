# The benchmarks run, their slow disk is cold for each name, and their conclusions follow from their figures.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Accel::Backends ();
use Accel::Figures qw(median spread medians);
use Test::Bench::Backends;
use Test::Bench::Http2;
use Accel::Bench::Rig;
use Accel::Peer;
use Accel::Slowfs;

my $script = "$FindBin::Bin/../../scripts/bench";

subtest 'figures' => sub {
	is median(3, 1, 2), 2, 'the middle one';
	is median(4, 1, 2, 3), 2.5, 'between the middle two';
	is median(), undef, 'of nothing';
	is spread(90, 100, 110), 10, 'half of the range in percent of the median';
	is_deeply medians({ a => 1, errors => 1 }, { a => 5, errors => 2 }, { a => 3, errors => 0 }), { a => 3, errors => 3 },
	    'key by key, but errors add up';
};

subtest 'a benchmark without the disks of --storage says so' => sub {
	for my $name (qw(ngcache firstbyte hot)) {
		is `$^X $script --$name --storage ext4 2>&1`, "bench: --$name has no --storage; it goes with --accel, --cold\n", $name;
	}
};

subtest 'HTTP/2' => sub {
	my $said = "finished in 2.00s, 80326.67 req/s, 81.13MB/s\nrequests: 9 total, 9 started, 9 done, 7 succeeded, 2 failed, 1 errored, 0 timeout\nstatus codes: 7 2xx, 0 3xx, 2 4xx, 0 5xx\n"
	    . "                     min         max         mean         sd        +/- sd\ntime for request:     7.84ms     85.75ms     29.72ms     10.60ms    58.41%\n";
	is_deeply Test::Bench::Http2::read_h2load($said), { rps => 80326.67, errors => 5, mean => 29_720 }, 'what h2load prints';
	is_deeply Test::Bench::Http2::read_h2load("Application protocol: h2c\n"), { rps => 0, errors => 1 }, '... and fails to print';
	my ($cells, $fair, $attacks) = Test::Bench::Http2::chosen(undef, 0);
	is scalar @$cells, 54, 'all cells';
	ok $fair && @$attacks >= 20, '... and the other parts';
	($cells, $fair, $attacks) = Test::Bench::Http2::chosen(['matrix', '100k-1-1000-tls', 'h2-reset'], 1);
	is scalar(grep { $_->{name} eq '100k-1-1000-tls' } @$cells), 1, 'what is named is not left out by --quick';
	cmp_ok scalar @$cells, '<', 12, '... but most others are';
	is_deeply [$fair, $attacks], [undef, ['h2-reset']], 'one attack';
	eval { Test::Bench::Http2::chosen(['h2-wrong'], 0) };
	like $@, qr/^bench: no case h2-wrong; there are: matrix fair floods, .* h2-reset /, 'a wrong name';
};

subtest 'backends' => sub {
	my $said = "x/1\n\nNetwork backends:\n  + one     fine\n  - two     not here: one takes its place\n  + three   fine\n\nElse:\n  + four    no\n";
	is_deeply [Accel::Backends::parse($said)], [['one', 'three'], [['two', 'not here: one takes its place']]],
	    'what -V has and has not';
	is Test::Bench::Backends::best({ a => { cpu => 5 }, b => { cpu => 5.1 }, c => { cpu => 7 } }), 'a (within 3 %: b)',
	    'the cheapest, and those within its noise';
	is Test::Bench::Backends::calls_in("  60.00    0.1   3   300        recv\n------\n100.00    0.2   2   500   12 total\n"), 500,
	    'calls in a table of strace';
};

# What a sum of figures hides: Accel::Bench::Rig says that another name is cold in every respect.
subtest 'another build is measured beside this one' => sub {
	is system("$script --beside /nonexistent 2>/dev/null") >> 8, 2, 'a directory without a build is an error';
	my ($said, $r) = measured(answered(sub { $_[0]{hot}{'1k'} }, 'accel', 'beside'), '--beside', $ENV{B} // 'build', '--case', '1k', '--server', 'accel',
		'--server', 'beside');
	ok $r->{hot}{'1k'}{$_}{rps} > 0, "$_ is measured" for qw(accel beside);
	like $said, qr/^  beside +\d+ /m, 'a row of the table';
};

subtest 'each name is cold' => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	my $dir = File::Temp->newdir;
	open my $fh, '>', "$dir/one" or die "$dir/one: $!";
	print $fh 'x' x 100_000;
	close $fh or die "$dir/one: $!";
	link "$dir/one", "$dir/two" or die "$dir/two: $!";
	my $slow = Accel::Slowfs->start(source => "$dir", lookup_ms => 0, read_ms => 0);
	my $read = sub { open my $in, '<', $slow->dir . "/$_[0]" or die "$_[0]: $!"; local $/; length scalar <$in> };
	is $read->('one'), 100_000, 'one name';
	my $first = $slow->counts;
	is $read->('one'), 100_000, 'the same again';
	my $again = $slow->counts;
	is $again->{reads}, $first->{reads}, 'reads nothing';
	is $read->('two'), 100_000, 'another name of the same file';
	my $other = $slow->counts;
	is $other->{lookups}, $again->{lookups} + 1, 'is looked up';
	is $other->{reads}, 2 * $first->{reads}, 'and read as often as the first';
};

# scripts/bench for this long with these arguments: what it printed and its JSON.
sub bench_for ($seconds, @args) {
	my $json = File::Temp->new;
	open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', $^X, $script, '--rounds', 1, '--seconds', $seconds, '--json', "$json",
	    @args or die "bench: $!";
	my $said = do { local $/; <$fh> };
	close $fh;
	is $?, 0, "bench @args" or diag $said;
	return ($said, eval { JSON::PP::decode_json(do { local $/; <$json> }) } // {});
}

sub bench { return bench_for(0.2, @_) }

# Beside other load a run of 0.2 s may see nothing, so what does not hold is measured again, twice at most and for longer.
sub measured {
	my ($holds, @args) = @_;
	my ($said, $r);
	for my $seconds (0.2, 0.5, 2) {
		($said, $r) = bench_for($seconds, @args);
		last if $holds->($r);
	}
	return ($said, $r);
}

sub compared { return (measured(@_))[1] }

# A predicate: each of these has requests per second.
sub answered {
	my ($of, @names) = @_;
	return sub { my $cells = $of->($_[0]) // {}; return !grep { !$cells->{$_}{rps} } @names };
}

subtest 'backends in memory' => sub {
	my ($said, $r) = measured(answered(sub { $_[0]{backends}{'1k'} }, 'linux-sendfile'), '--backends', '--server', 'linux-sendfile', '--case', '1k');
	my $m = $r->{backends}{'1k'}{'linux-sendfile'};
	cmp_ok $m->{rps}, '>', 0, 'it answered';
	cmp_ok $m->{cpu}, '>', 0, 'which took CPU time';
	is $m->{errors}, 0, 'without errors';
	like $said, qr/^Least CPU per request: 1k: linux-sendfile$/m, 'the best of one';
};

subtest 'fcgi-stat-accel and the textbook' => sub {
	my @programs = map { "$_ x 100" } qw(ours textbook textbook-m);
	my $cpu = sub { my ($got) = @_; return !grep { !$got->{fcgi}{'none-close'}{$_}{cpu} } @programs };
	my ($said, $r) = measured($cpu, '--fcgi', '--case', 'none-close', '--case', 'beyond');
	my $of = $r->{fcgi}{'none-close'};
	cmp_ok $of->{"$_ x 100"}{cpu}, '>', 0, "$_ was measured" for qw(ours textbook textbook-m);
	is $of->{"$_ x 100"}{errors}, 0, "$_ without errors" for qw(ours textbook textbook-m);
	is $r->{fcgi}{beyond}{textbook}{never}, 196, 'a thread for each connection: the others starve';
	is $r->{fcgi}{beyond}{ours}{never}, 0, 'ours answers all';
	like $said, qr/^  none-close: CPU per request, ours x 100 \/ textbook /m, 'an aim';
};

subtest 'requests that an application answers' => sub {
	my @cases = qw(fastcgi-1k http-1k http-1m fastcgi-upload);
	my $cpu = sub { my ($got) = @_; return !grep { !$got->{proxy}{$_}{accel}{cpu} } @cases };
	my ($said, $r) = measured($cpu, '--proxy', '--server', 'accel', map { ('--case', $_) } @cases);
	for my $case (@cases) {
		my $m = $r->{proxy}{$case}{accel};
		cmp_ok $m->{cpu}, '>', 0, "$case was measured";
		is $m->{errors}, 0, "$case: no errors";
		cmp_ok $m->{rss}, '>', 0, "$case: memory";
	}
	like $said, qr/^  server +req\/s +CPU us\/rq +req\/CPU s/m, 'a table';
};

subtest 'cold' => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	my $more = sub {
		my ($few, $many) = map { $_[0]{through}{"$_-spindles"}{'linux-sendfile'}{mb} } 2, 16;
		return $many > 2 * $few;
	};
	my $r = compared($more, '--cold', '--server', 'linux-sendfile', map { ('--case', $_) } qw(1x100k 2-spindles 16-spindles));
	my $m = $r->{beside}{'1x100k'}{'linux-sendfile'};
	cmp_ok $m->{served}, '>', 100, 'hot requests are answered';
	ok $more->($r), 'more disks, more bytes';
	cmp_ok $r->{through}{'16-spindles'}{rig}{cpu}, '>', 0, 'CPU time of the rig';
	is scalar @{ $r->{aims} }, 2, 'the aims that need no peer';
};

subtest 'the accelerator' => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	plan skip_all => 'lighttpd is not installed' if Accel::Peer->missing('lighttpd');
	my $more = sub {
		my ($alone, $with) = map { $_[0]{accel}{'cold-100k-16'}{$_}{mb} } 'lighttpd', 'lighttpd+accel';
		return $with > 3 * $alone;
	};
	my $cheaper = sub {
		my ($accel, $exempt) = map { $_[0]{accel}{'hot-1k'}{"lighttpd+accel$_"}{cpu} } '', ' exempt';
		return $exempt < $accel;
	};
	my $rig = sub { return $_[0]{accel}{'cold-100k-16'}{'the rig'}{reads} };    # undef: it finished no file
	my $once = sub { return $_[0]{accel}{'cold-100k-16'}{'lighttpd+accel'}{reads} < 1.5 * $rig->(@_) };
	my $r = compared(sub { $rig->(@_) && $more->(@_) && $cheaper->(@_) && $once->(@_) }, '--accel', map({ ('--case', $_) } qw(1x100k-16 cold-100k-16 hot-1k)),
		map { ('--server', $_) } 'lighttpd', 'lighttpd+accel');
	my $with = $r->{accel}{'cold-100k-16'}{'lighttpd+accel'};
	ok $more->($r), 'more arrives';
	is $with->{errors}, 0, 'without errors';
	ok $once->($r), 'nothing is read twice';
	cmp_ok $with->{accel_cpu}, '>', 0, 'the CPU time of the accelerator';
	cmp_ok $with->{cpu}, '>', $with->{accel_cpu}, '... counts in';
	ok $cheaper->($r), 'exempt is cheaper';
	is scalar @{ $r->{aims} }, 3, 'an aim for each figure that has one';
};

subtest 'file systems that ask again at open' => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	plan skip_all => 'nginx is not installed' if Accel::Peer->missing('nginx');
	my @servers = ('nginx+accel', 'nginx+accel, no-open', 'nginx, proxy to accel-server');
	my $more = sub {
		my ($asks, @helped) = map { $_[0]{opens}{local}{$_}{cold_mb} } @servers;
		return !grep { $_ < 2 * $asks } @helped;
	};
	my $r = compared($more, '--opens', '--quick', '--case', 'local', map { ('--server', $_) } @servers);
	ok $more->($r), 'each remedy delivers more';
	is $r->{opens}{local}{'nginx+accel, no-open'}{opens}, 0, 'a kernel that opens by itself does not ask';
	is scalar @{ $r->{aims} }, 2, 'an aim for each remedy';
};

subtest 'what a question costs' => sub {
	my @ways = map { "nginx $_" } qw(alone auth.conf cached.conf module);
	my ($said, $r) = measured(answered(sub { $_[0]{hotcost}{cost} }, @ways), '--hotcost', map { ('--server', $_) } @ways);
	my $cost = $r->{hotcost}{cost};
	is $cost->{'nginx alone'}{asked}, 0, 'alone: no question';
	cmp_ok $cost->{'nginx auth.conf'}{asked}, '>=', 999, 'as the README says: one for each request';
	cmp_ok $cost->{'nginx cached.conf'}{asked}, '<', 900, 'cached: fewer';
	cmp_ok $cost->{'nginx module'}{asked}, '<', 1, 'the module: what is in memory is not asked for';
	cmp_ok $cost->{$_}{rps}, '>', 0, "$_: a rate" for sort keys %$cost;
	like $said, qr/nginx (?:module|cached\.conf): CPU us more than alone +-?[\d.]+  aim <= 12/, 'the aim';
	unlike $said, qr/wrong answer/, 'the bytes of the file';
};

subtest "nginx's own cache" => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	plan skip_all => 'nginx is not installed' if Accel::Peer->missing('nginx');
	my @with = ('nginx+accel', 'nginx+module');
	my $more = sub {
		my ($alone, @mb) = map { $_[0]{ngcache}{'cold-100k-16'}{$_}{mb} } 'nginx', @with;
		return !grep { $_ < 3 * $alone } @mb;
	};
	my $rig = sub { return $_[0]{ngcache}{'cold-100k-16'}{'the rig'}{reads} };
	my $r = compared(sub { $rig->(@_) && $more->(@_) }, '--ngcache', '--quick', '--case', 'cold-100k-16', map { ('--server', $_) } 'nginx', @with);
	ok $more->($r), 'more arrives';
	for my $name (@with) {
		my $m = $r->{ngcache}{'cold-100k-16'}{$name};
		is $m->{errors}, 0, "$name: without errors, so all from the cache";
		cmp_ok $m->{reads}, '<', 1.5 * $rig->($r), '... and nothing is read twice';
	}
	is scalar @{ $r->{aims} }, 4, 'aims beside the server, and beside the rig';
};

done_testing;
