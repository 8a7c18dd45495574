# Disks fail in the middle of a file or hang, and the kernel refuses what a backend needs.  Hot files are served all the time.
# A cold request gets an error or a cut connection, never wrong bytes, never a short body that looks complete.  The server
# always ends.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use Test::Hot;
use Test::More;
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(put);
use Time::HiRes qw(time);

my ($fuse, $no_fuse) = Accel::Slowfs->usable;
my $slow     = ($ENV{B} // '') =~ /san/ ? 5 : 1;
my @backends = Test::Server::backends();

# ---------------------------------------------------------------- files

my $root  = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);       # mounts lie in it
my $disk  = File::Temp->newdir('accel-src-XXXXXX', TMPDIR => 1);       # what they show
my $block = do { srand 47; join '', map { chr int rand 256 } 1 .. 65_521 };
my $large = 1_500_001;
my $bad   = 655_360;                    # from here on a disk fails or hangs

sub bytes ($n) { return substr $block x (1 + $n / length $block), 0, $n }

sub spew ($dir, $name, $n) { return put("$dir/$name", bytes($n)) }

spew($root, 'hot', 1000);
spew($root, 'hot-large', 400_000);
spew($root, "cold$_", 50_000) for 1 .. 4;
spew($disk, 'hot', 1000);
spew($disk, "cold$_", 50_000) for 1 .. 40;
spew($disk, "large$_", $large) for 1 .. 20;

# A disk that is mounted below the root: the object, and the path of its files as clients ask for them.
my $disks = 0;
sub disk {
	my $at = '/disk' . ++$disks;
	mkdir "$root$at" or die "$at: $!";
	return (Accel::Slowfs->start(source => "$disk", at => "$root$at", spindles => 16, lookup_ms => 2, read_ms => 2), $at);
}

# ---------------------------------------------------------------- questions

sub server ($backend, $conf, @more) {
	return Test::Server->start(dir => "$root", conf => qq{server.network-backend = "$backend"\n$conf}, @more);
}

sub ask ($srv, $path, $range = undef) {
	my $c = $srv->connect;
	$c->send("GET $path HTTP/1.1\r\nHost: x\r\n" . ($range ? "Range: bytes=$range\r\n" : '') . "\r\n");
	return $c;
}

# An answer in a few words; $want are the bytes that it should have.
sub verdict ($r, $want) {
	return 'no reply' if !$r;
	return "error $r->{status}" if $r->{status} >= 500;
	return "status $r->{status}" if $r->{status} != 200 && $r->{status} != 206;
	return 'WRONG BYTES' if $r->{body} ne substr $want, 0, length $r->{body};
	return 'right' if length $r->{body} == length $want;
	return $r->{cut} ? 'cut' : 'SHORT, BUT LOOKS COMPLETE';
}

# Their replies.  After the first missing reply, it waits for no other.
sub replies {
	my @r = (undef) x @_;
	for my $i (0 .. $#_) {
		$r[$i] = $_[$i]->reply // last;
		last if $_[$i]{timed_out};
	}
	return @r;
}

sub serves {    # all of these, at once and right
	my ($srv, $what, %want) = @_;
	my @path = sort keys %want;
	my @r = replies(map { ask($srv, $_) } @path);
	is_deeply { map { ($path[$_] => verdict($r[$_], bytes($want{ $path[$_] }))) } 0 .. $#path },
	    { map { $_ => 'right' } @path }, $what;
}

sub hot_was_served ($hot) {
	my $r = $hot->stop;
	is_deeply $r->{wrong}, [], "hot files were served all the time: $r->{answers} answers, the worst after $r->{worst_ms} ms";
	cmp_ok $r->{answers}, '>', 20, '... during the test';
}

# ---------------------------------------------------------------- EIO

sub breaks ($backend) {
	my ($fs, $at) = disk();
	my $srv = server($backend, '');
	serves($srv, 'before', '/hot' => 1000, '/hot-large' => 400_000, "$at/hot" => 1000);
	my $hot = Test::Hot->start($srv, '/hot' => bytes(1000), '/hot-large' => bytes(400_000), "$at/hot" => bytes(1000));

	$fs->fail_after($bad, 'EIO', '/large*');
	$fs->fail('EIO', '/cold*');
	my @c = map { ask($srv, "$at/large$_") } 1 .. 8;
	my @verdict = map { verdict($_, bytes($large)) } replies(@c);
	is_deeply [grep { !/^(?:cut|error 500)$/ } @verdict], [], 'a disk that breaks in mid-file: an error, or cut after right bytes';
	is verdict(ask($srv, "$at/large9", "0-99999")->reply, bytes(100_000)), 'right', 'what lies well before is served';
	like verdict(ask($srv, "$at/large10", ($bad + 1) . '-')->reply, substr bytes($large), $bad + 1), qr/^(?:cut|error 500)$/, 'what lies after is not';
	my $parts = ask($srv, "$at/large11", "0-9," . ($bad + 300_000) . '-' . ($bad + 400_000))->reply;
	ok !$parts || $parts->{cut} || $parts->{status} >= 500, 'nor are parts, one of which does';
	is_deeply [map { verdict(ask($srv, "$at/cold$_")->reply, bytes(50_000)) } 1 .. 3], [('error 500') x 3], 'a disk that does not read at all';

	$fs->go;
	serves($srv, 'repaired: all is served', (map { ("$at/large$_" => $large) } 1 .. 11), map { ("$at/cold$_" => 50_000) } 1 .. 3);
	hot_was_served($hot);
	is $srv->stop, '', 'the end is clean';
	my %count = $srv->log =~ /ev=counters (.*)/ ? $1 =~ /(\w+)=(\d+)/g : ();
	my $cut = grep { $_ eq 'cut' } @verdict;
	cmp_ok $count{file_failed} // 0, '>=', $cut, 'counted as failures of the disk';
	is $count{client_gone} // 0, 0, '... not as clients that left';
}

# ---------------------------------------------------------------- a disk that never answers

# Two of each kind, and one worker: what the kernel does for a loop is divided between workers, and one may get all clients.
my $few = <<'CONF';
server.max-worker = 1
server.max-stat-threads = 2
server.max-read-threads = 2
server.max-read-jobs = 2
server.max-open-idle = 1
CONF

sub seconds :prototype(&) ($code) {
	my $t = time;
	$code->();
	return time - $t;
}

sub hangs ($backend) {
	my ($sick, $at) = disk();
	my ($well, $there) = disk();
	my $srv = server($backend, $few);
	serves($srv, 'before', '/hot' => 1000, '/hot-large' => 400_000, "$at/hot" => 1000, "$there/hot" => 1000);
	my $before = $srv->descriptors;
	my $hot = Test::Hot->start($srv, '/hot' => bytes(1000), '/hot-large' => bytes(400_000), "$at/hot" => bytes(1000), "$there/hot" => bytes(1000));

	$sick->hang_after($bad, '/large*');
	my @reads = map { ask($srv, "$at/large$_") } 1 .. 6;
	ok $sick->wait_hanging(2), 'more reads hang than there are threads';
	serves($srv, 'other disks are still read', '/cold1' => 50_000, '/cold2' => 50_000, map { ("$there/large$_" => $large) } 1 .. 3);

	$sick->hang;
	my (@r, $took);
	$took = seconds { @r = replies(map { ask($srv, "$at/cold$_") } 1 .. 6) };
	is_deeply [map { $_ && $_->{status} } @r], [(503) x 6], 'more look-ups hang than there are threads: 503';
	ok $r[0]{header}{'retry-after'}, '... that says when to come back';
	cmp_ok $took, '>', 0.9, '... after server.max-open-idle';
	cmp_ok $took, '<', Test::Util::SOON, '... and not much later';
	my $status;     # on a busy machine the threads began later than the requests
	ok Test::Util::eventually(sub {
		$took = seconds { $status = (ask($srv, "$at/cold7")->reply // {})->{status} };
		return $took <= 0.5 * $slow;
	}), 'soon the next one is answered at once';
	is $status, 503, '... with 503, too';
	serves($srv, 'names on other disks are still looked up', '/cold3' => 50_000, '/cold4' => 50_000,
	    (map { ("$there/cold$_" => 50_000) } 1 .. 4), map { ("$there/large$_" => $large) } 4 .. 6);

	$sick->go;
	is_deeply [map { verdict($_, bytes($large)) } replies(@reads)], [('right') x 6], 'the disk goes on: waiting clients get the rest';
	ok Test::Util::eventually(sub { ask($srv, "$at/cold7")->reply->{status} == 200 }), '... and new ones are served';
	serves($srv, '... all of them', (map { ("$at/cold$_" => 50_000) } 1 .. 10), map { ("$at/large$_" => $large) } 7 .. 10);
	hot_was_served($hot);
	my $most = $before + 2 * (10 + 10 + 4 + 4 + 6);         # two workers may keep each file open
	ok Test::Util::eventually(sub { $srv->descriptors <= $most }), 'descriptors are back' or diag $srv->descriptors . " of $most";
	is $srv->stop, '', 'the end is clean';
}

sub ends ($backend) {
	my ($sick, $at) = disk();
	# To look for leaks at exit a sanitizer stops all threads, which takes those that hang for ever.
	my $srv = server($backend, '', env => { ASAN_OPTIONS => 'detect_leaks=0' });
	serves($srv, 'before', '/hot' => 1000, "$at/hot" => 1000);
	$sick->hang_after($bad, '/large*');
	$sick->hang('/cold*');
	my @c = map { ask($srv, "$at/$_") } 'large1', 'large2', 'cold1', 'cold2';
	ok $sick->wait_hanging(4), 'two reads and two look-ups hang';
	my ($status, $seconds) = $srv->term;
	is $status, 0, 'TERM: exit status 0';
	cmp_ok $seconds, '<', Test::Util::SOON, '... soon';
	is_deeply [grep { !/^(?:cut|no reply)$/ } map { verdict($_->reply, bytes($large)) } @c], [], 'no client got a reply that looks complete';
}

SKIP: {
	skip $no_fuse, 3 * @backends unless $fuse;
	for my $backend (@backends) {
		subtest "$backend: EIO in the middle of a file cuts the reply" => sub { breaks($backend) };
		subtest "$backend: hot files are served while a disk hangs" => sub { hangs($backend) };
		subtest "$backend: TERM ends the server while a disk hangs" => sub { ends($backend) };
	}
}

# ---------------------------------------------------------------- a kernel that refuses

sub refused ($backend, @what) {
	my $srv = server($backend, "server.max-cached-file-size = 0\n", under => [Test::Util::program('refuse'), @what, '--']);
	spew($root, "refused$_", $large) for 1 .. 4;
	serves($srv, 'served', '/hot' => 1000, '/hot-large' => 400_000, map { ("/refused$_" => $large) } 1 .. 4);
	serves($srv, 'and again', '/hot' => 1000, '/hot-large' => 400_000, map { ("/refused$_" => $large) } 1 .. 4);
	is $srv->stop, '', 'the end is clean';
	return $srv->log;
}

# [ backend, system call, error, what the reason says ]
my @start = (
	['io-uring', 'io_uring_setup', 'EPERM', qr/permi|forbid|not allowed|seccomp|disabled/i],
	['io-uring', 'io_uring_setup', 'ENOSYS', qr/kernel|implemented|io_uring/i],
	['io-uring', 'io_uring_setup', 'ENOMEM', qr/memory|memlock/i],
	['linux-aio-sendfile', 'io_setup', 'EAGAIN', qr/aio-max-nr|slots/i],
	['linux-aio-sendfile', 'io_setup', 'ENOSYS', qr/kernel|implemented|io_setup/i],
);

for my $case (@start) {
	my ($backend, $call, $error, $reason) = @$case;
	SKIP: {
		skip "$backend is not built in", 1 unless grep { $_ eq $backend } @backends;
		subtest "$backend: $call gives $error at start" => sub {
			my @line = grep { /ev=backend\.fallback/ } split /\n/, refused($backend, "$call=$error");
			is @line, 1, 'one line in the log';
			like $line[0] // '', qr/level=warn .*asked=$backend used=\S+ why=/, '... says what is used instead';
			like $line[0] // '', qr/why=.*$reason/, '... and why';
		};
	}
}

# The ways that it prefers are closed: it takes another.
SKIP: {
	skip 'adaptive is not built in', 1 unless grep { $_ eq 'adaptive' } @backends;
	subtest 'adaptive works without io_uring and aio' => sub {
		my @line = grep { /level=(?:warn|error)/ } split /\n/, refused('adaptive', 'io_uring_setup=EPERM', 'io_setup=EAGAIN');
		cmp_ok scalar @line, '<=', 1, 'not worth more than a line' or diag join "\n", @line;
	};
}

# In the middle of work: no memory to share with the kernel.
for my $case (['memfd_create', 'ENOMEM'], ['ftruncate', 'ENOSPC'], ['fallocate', 'ENOSPC'], ['io_submit', 'EAGAIN']) {
	SKIP: {
		skip 'linux-aio-sendfile is not built in', 1 unless grep { $_ eq 'linux-aio-sendfile' } @backends;
		subtest "linux-aio-sendfile: $case->[0] gives $case->[1]" => sub {
			my @line = grep { /level=(?:warn|error)/ } split /\n/, refused('linux-aio-sendfile', join '=', @$case);
			cmp_ok scalar @line, '<=', 2, 'the log is not flooded' or diag join "\n", @line;
		};
	}
}

done_testing;
