# The error log says how short memory is: in the line of counters, and in a line of its own while files are dropped and read again.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util qw(eventually put slurp);

sub fields ($line) { return { $line =~ /(\w+)=(\d+)/g } }
sub lines ($srv, $event) { return map { fields($_) } grep { /ev=\Q$event\E / } split /\n/, $srv->log }

subtest 'the counters line has the memory' => sub {
	my $srv = Test::Server->start(conf => '');
	$srv->write('f', 'x');
	is $srv->fetch('/f')->{status}, 200, 'a file';
	$srv->signal('HUP');
	ok eventually(sub { lines($srv, 'counters') }), 'a line of counters';
	my ($c) = lines($srv, 'counters');
	my ($ram) = slurp('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB/m;
	ok $c->{memory_limit} && $c->{memory_limit} <= $ram * 1024, 'how much it may use';
	ok defined $c->{refault_bytes}, 'what was dropped and read again';
	is defined $c->{stalled_some_us} ? 1 : 0, -r '/proc/pressure/memory' ? 1 : 0, 'how long processes waited for memory, where the kernel has it';
};

# ---------------------------------------------------------------- 40 MB of files in 24 MB

my $top = '/sys/fs/cgroup/memory';
my $group = "$top/accel-memory-$$";
my $made;
END { rmdir $group if $made && $$ == $made }

SKIP: {
	skip 'a sanitizer needs more memory than the cgroup has', 1 if Test::Util::sanitized();
	skip "no memory cgroup (v1) that this user may make: $top", 1 unless -w "$top/cgroup.procs" && mkdir $group;
	$made = $$;
	put("$group/memory.limit_in_bytes", 24 << 20);
	subtest 'files are dropped and read again' => sub {
		my $srv = Test::Server->start(conf => qq{status.status-url = "/status"\n}, under => ['sh', '-c', 'echo $$ >"$0" && exec "$@"', "$group/cgroup.procs"]);
		my @names = map { "f$_" } 1 .. 40;
		$srv->write($_, 'x' x (1 << 20)) for @names;
		# The files are the pages of the test, and not of the server's cgroup, until they are dropped.
		system('sh', '-c', 'sync "$@"; for f; do dd if="$f" iflag=nocache count=0 status=none || exit; done', 'sh', map { $srv->dir . "/$_" } @names) == 0 or die "dd failed\n";
		my @line;
		ok eventually(sub { $srv->fetch("/$_") for @names; @line = lines($srv, 'memory') }, 3 * Test::Util::PATIENCE), 'a line while memory is short' or diag $srv->log;
		is $line[0]{memory_limit}, 24 << 20, '... with the limit of the cgroup';
		cmp_ok $line[0]{refault_bytes}, '>', 1 << 20, '... what was read again';
		cmp_ok $line[0]{file_reads}, '>', @names, '... windows that came from the disk';
		like $srv->fetch('/status?json')->{body}, qr/"refaults_of":"cgroup"/, 'the status page has the same cgroup';
	};
}

done_testing;
