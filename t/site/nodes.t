# Four nodes behind HAProxy and behind accel-server, as examples/scale sets them up: each file is read by one node, a lost node moves
# its own share only, a new node is warm before its first request, and nothing is left when the rig is killed.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Accel::Namespace;
use File::Temp;
use IO::Socket::INET;
use Test::Http qw(request_head);
use Test::Nodes;
use Test::Util qw(eventually program put slurp);

my @name = map { my $d = $_; map { "d$d/f$_.html" } 1 .. 20 } 1 .. 4;

sub files () {
	my $tree = Test::Util::temp_tree();
	mkdir "$tree/d$_" or die $! for 1 .. 4;
	put("$tree/$_", "$_\n" x 500) for @name;
	return $tree;
}

# ---------------------------------------------------------------- nothing is left

if ($ENV{ACCEL_NODES_VICTIM}) {
	Test::Nodes::enter();
	my ($ok, $why) = Test::Nodes->usable;
	exit print "$why\n" unless $ok;
	my $tree = files();
	my $farm = Test::Nodes->new(source => "$tree", memory_mb => 64);
	$farm->up(1);
	$farm->front('haproxy', Test::Nodes->example('haproxy.cfg'));
	STDOUT->autoflush(1);
	print "ready\n";
	sleep 300;
	exit;
}

# What a rig makes, seen from outside: nothing.
sub outside () {
	return join "\n", (grep { /accel/ } qx(ip -o link)), (grep { /^n\d/ } qx(ip netns list)), (grep { m{ /srv/www } } split /\n/, slurp('/proc/self/mounts'));
}

if (!Accel::Namespace::entered() && $> == 0) {
	my $tmp = Test::Util::temp_tree();      # of files that nobody removes after KILL
	my $pid = open my $out, '-|' // die "fork: $!";
	if (!$pid) {
		@ENV{qw(ACCEL_NODES_VICTIM TMPDIR)} = (getppid, "$tmp");
		exec $^X, (map { "-I$_" } @INC), $0 or die "exec: $!";
	}
	my $said = <$out> // '';
	if ($said eq "ready\n") {
		my $left = sub { grep { slurp($_) =~ /\bACCEL_NODES_VICTIM=$$\b/ } glob '/proc/[0-9]*/environ' };
		die "the rig is not seen\n" unless $left->();
		kill KILL => $pid;
		close $out;
		$ENV{ACCEL_NODES_LEFT} = join "\n", eventually(sub { !$left->() }, 20) ? () : ('processes', $left->()),
		    eventually(sub { !(() = glob "/sys/fs/cgroup/memory/accel-nodes-$pid-*") }, 20) ? () : 'a cgroup', outside() || ();
	}
}

Test::Nodes::enter();
my ($ok, $why) = Test::Nodes->usable;
plan skip_all => $why unless $ok;
is $ENV{ACCEL_NODES_LEFT}, '', 'a rig that was killed leaves no process, cgroup, namespace, link or mount';

# ---------------------------------------------------------------- HAProxy

my $tree = files();
my $farm = Test::Nodes->new(source => "$tree");
$farm->up($_, lookup_ms => 0, read_ms => 0) for 1 .. 4;
ok eventually(sub { !grep { !-S "$farm->{dir}/run$_/accel-server.ctl" } 1 .. 4 }), 'accel-server ctl can reload and upgrade each node';
# With a bound the next request of a node may spill before HAProxy has counted the end of the one before.
my $conf = Test::Nodes->example('haproxy.cfg') =~ s/inter 1s/inter 200ms/r;
$farm->front('haproxy', $conf =~ s/^\s*hash-balance-factor.*\n//mr);

sub get ($name) {
	my $sock = IO::Socket::INET->new(PeerAddr => substr($farm->url, 7), Timeout => 60) or die "connect: $!";
	my $c = Test::Http::Conn->over($sock);
	$c->send(request_head('GET', "/$name"));
	return $c->reply // { status => 'none', header => {}, body => '' };
}

# The node of each file; fails if a reply is not the file.
sub served () {
	my (%node, @bad);
	for my $name (@name) {
		my $r = get($name);
		push @bad, "$name: $r->{status}" unless $r->{status} == 200 && $r->{body} eq "$name\n" x 500;
		$node{$name} = $r->{header}{'x-served-by'} // '';
	}
	is "@bad", '', 'all files are served';
	return \%node;
}

sub reads (@k) { my $n = 0; $n += $farm->slow($_)->counts->{reads} for @k; return $n }
# The kernel may drop a page on a machine that needs memory.
sub is_about ($got, $want, $what) {
	ok $got >= $want && $got <= $want + @name / 10, "$what: $got of $want";
	return;
}

sub is_up ($k) { return $farm->stat->{"n$k"}{status} =~ /^UP/ }
sub all_are_up () { return eventually(sub { 4 == grep { is_up($_) } 1 .. 4 }) }

ok all_are_up(), 'four nodes';
my $first = served();

subtest 'each file belongs to one node' => sub {
	my %warm;
	for my $k (1 .. 4) {
		my ($rc, $out) = Test::Util::run_fed(program('accel-warm'), '', '--print', '--shard', "$k/4", '--weight', 100, "$tree");
		$warm{ s{^\Q$tree\E/}{}r } = "n$k" for split /\n/, $out;
	}
	is_deeply $first, \%warm, 'the one that accel-warm --shard computes';
	my $reads = reads(1 .. 4);
	is_deeply served(), $first, 'the same at the second time';
	is_about(reads(1 .. 4), $reads, '... and no disk is asked again');
};

subtest 'a lost node' => sub {
	$farm->power_off(3);
	ok eventually(sub { !is_up(3) }), 'HAProxy notices';
	my $now = served();
	is_deeply [grep { $now->{$_} ne $first->{$_} } @name], [grep { $first->{$_} eq 'n3' } @name], 'its own share has moved, and nothing else';
	$farm->power_on(3);
	ok all_are_up(), 'it is back';
	is_deeply served(), $first, '... with its share';
};

# The lines of the README: commands, and orders at HAProxy's socket.
my $readme = Test::Nodes->example('README.md');

sub line ($pattern) { return $readme =~ /^ {4}(.*(?:$pattern).*)$/m ? $1 : die "README.md: no line with $pattern\n" }

sub order ($pattern) { return line($pattern) =~ /^echo "(.*)" \| socat stdio / ? $1 : die "README.md: no order with $pattern\n" }

subtest 'a new node is warm before its first request' => sub {
	$farm->up(5, lookup_ms => 0, read_ms => 0);
	my $before = reads(5);
	my (undef, @args) = split ' ', line('accel-warm --shard 5/5 --weight 100 /srv/www');
	is pop @args, '/srv/www', 'accel-warm --shard';
	$farm->warm(5, @args);
	my $warm = reads(5);
	like $farm->tell(order('add server')), qr/^New server registered/, 'HAProxy takes the new node';
	unlike $farm->tell(order('enable server')), qr/\w/, '... and enables it';
	ok eventually(sub { is_up(5) }), 'it gets requests';
	my $now = served();
	my @mine = grep { $now->{$_} eq 'n5' } @name;
	is_deeply [grep { $now->{$_} ne $first->{$_} } @name], \@mine, 'its share has moved, and nothing else: ' . @mine;
	is_about($warm - $before, scalar @mine, 'it had read its share, and nothing else');
	is_about(reads(5), $warm, '... and does not ask its disk again');
};

subtest 'a node is removed' => sub {
	my $now = served();
	unlike $farm->tell(order('state drain')), qr/\w/, 'HAProxy drains it';
	my $then = served();
	is_deeply [grep { $now->{$_} ne $then->{$_} } @name], [grep { $now->{$_} eq 'n4' } @name], 'its share has moved, and nothing else';
};

subtest 'the lines of the README are those of the file' => sub {
	my ($head) = line('server n5 ') =~ /^(server n)5 10\.77\.0\.15:8080 id 5$/;
	like $conf, qr/^\t\Q${head}4 10.77.0.14:8080 id 4\E$/m, 'the line of a node';
	my ($default) = Test::Nodes->example('haproxy.cfg') =~ /^\tdefault-server (.*)$/m;
	like $default, qr/(?:^| )\Q$_\E(?: |$)/, "default-server has $_" for order('add server') =~ /(weight 100|check inter 1s fall 2 rise 2|send-proxy-v2 check-send-proxy)/g;
};

subtest 'the file as it is, with bounded load' => sub {
	$farm->front('haproxy', $conf);
	served();
	is get('node-statistics')->{status}, 403, 'the page of the nodes is not for clients';
};

# ---------------------------------------------------------------- accel-server

subtest 'accel-server as the front: a node that hangs' => sub {
	$farm->front('accel-server', Test::Nodes->example('front.conf') =~ s/(hedge-percent = )5/${1}100/r =~ s/(hedge-after   = )200/${1}50/r);
	put("$tree/d1/new$_", 'new') for 1 .. 20;
	$farm->slow(2)->hang;
	is_deeply [map { get("d1/new$_")->{status} } 1 .. 20], [(200) x 20], 'its files are still sent';
	cmp_ok get('front-statistics')->{body} =~ /^proxy-core\.hedges-won: (\d+)/m ? $1 : 0, '>', 0, 'others answer for it';
	$farm->slow(2)->go;
};

undef $farm;
done_testing;
