# Each backend sends files of critical sizes from three kinds of file systems byte for byte, with each kind of request: cold
# first, then hot, on kept connections.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Fcntl qw(O_CREAT O_RDONLY O_WRONLY SEEK_SET);
use File::Temp ();
use Test::More;
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(put);

my $own_mounts = Test::Server::own_mounts();
my @backends   = Test::Server::backends();
my ($fuse, $no_fuse) = Accel::Slowfs->usable;

# ---------------------------------------------------------------- files

my @size   = (0, 1, 4095, 4096, 4097, 65_535, 65_537, 102_400, 100_001, (1 << 20) - 1, (1 << 20) + 1, 10 << 20);
my $sparse = 5 << 30;
my $block  = do { srand 11; join '', map { chr int rand 256 } 1 .. 65_521 };      # a prime: no window begins like another
my $all    = $block x (1 + $size[-1] / length $block);

sub disk {      # a directory on the file system of that directory; others may read it
	my ($where) = @_;
	my $dir = File::Temp->newdir('accel-www-XXXXXX', DIR => $where);
	chmod 0755, "$dir" or die "$dir: $!";
	return $dir;
}

sub spew { my ($dir, $name, $n) = @_; return put("$dir/$name", substr($all, 0, $n)) }

# Holes, and something in front, around 2 and 4 GiB, and at the end.
sub spew_sparse ($dir) {
	sysopen my $fh, "$dir/sparse", O_CREAT | O_WRONLY or die "sparse: $!";
	for my $at (0, (2 << 30) - 50_000, (4 << 30) - 50_000, $sparse - 100_000) {
		sysseek $fh, $at, SEEK_SET or die "seek: $!";
		syswrite $fh, $all, 100_000, $at % 1000 or die "write: $!";
	}
}

sub slice {
	my ($dir, $name, $from, $n) = @_;
	sysopen my $fh, "$dir/$name", O_RDONLY or die "$name: $!";
	sysseek $fh, $from, SEEK_SET or die "seek: $!";
	sysread($fh, my $bytes, $n) == $n or die "$name: short";
	return $bytes;
}

sub fill {
	my ($dir) = @_;
	spew($dir, "f$_", $_) for @size;
	spew($dir, 'left', $size[-1]);
	spew_sparse($dir);
	system('sync', glob "$dir/*") == 0 or die "sync failed\n";
	return $dir;
}

# Out of memory; where that is the only place of files (tmpfs), nothing happens.
sub make_cold ($dir) {
	system('sh', '-c', 'for f; do dd if="$f" iflag=nocache count=0 status=none || exit; done', 'sh', glob "$dir/*") == 0 or die "dd failed\n";
}

# ---------------------------------------------------------------- questions: [ path, Range or undef, bytes of each part ]

sub questions ($n) {
	my @q = (["/f$n", undef, substr $all, 0, $n]);
	return @q if !$n;
	my ($third, $rest) = (int $n / 3, int $n / 7);
	my @range = (["0-0", 0, 1], ["-1", $n - 1, 1], ["$third-" . ($n - 1 - $rest), $third, $n - $rest - $third]);
	push @q, ["/f$n", "bytes=$_->[0]", substr $all, $_->[1], $_->[2]] for @range;
	return @q if $n < 4095;
	my $half = int $n / 2;
	push @q, ["/f$n", "bytes=1-10,$half-" . ($half + $third) . ',-3', substr($all, 1, 10), substr($all, $half, $third + 1), substr $all, $n - 3, 3];
	return @q;
}

sub questions_sparse ($dir) {
	my @at = ([0, 100], [(2 << 30) - 100, 200], [(4 << 30) - 60_001, 120_002], [(3 << 30) + 1, 300_000], [$sparse - 5001, 5001]);
	my @q = map { ['/sparse', sprintf('bytes=%d-%d', $_->[0], $_->[0] + $_->[1] - 1), slice($dir, 'sparse', @$_)] } @at;
	return @q, ['/sparse', join(',', 'bytes=0-9', map { sprintf '%d-%d', $_->[0], $_->[0] + $_->[1] - 1 } @at[2, 4]),
		slice($dir, 'sparse', 0, 10), map { slice($dir, 'sparse', @$_) } @at[2, 4]];
}

sub head {
	my ($path, $range) = @_;
	return "GET $path HTTP/1.1\r\nHost: x\r\n" . (defined $range ? "Range: $range\r\n" : '') . "\r\n";
}

# '' when the answer is right, else what it is.
sub judge {
	my ($r, $path, $range, @want) = @_;
	my $what = "$path" . (defined $range ? " $range" : '');
	return "$what: no reply" if !$r;
	return "$what: status $r->{status}" if $r->{status} != (defined $range ? 206 : 200);
	return "$what: cut after " . length $r->{body} if $r->{cut};
	my @got = @want == 1 ? $r->{body} : map { $_->[2] } @{ Test::Http::parts($r) // [] };
	return "$what: " . @got . ' parts' if @got != @want;
	return join '', map { $got[$_] eq $want[$_] ? () : "$what: other bytes, " . length($got[$_]) . ' of ' . length $want[$_] } 0 .. $#want;
}

# Asks all of them, four at a time; what was wrong.
sub ask ($srv, @q) {
	my @c = map { $srv->connect } 1 .. 4;
	my @wrong;
	while (my @now = splice @q, 0, 4) {
		$c[$_]->send(head(@{ $now[$_] })) for 0 .. $#now;
		push @wrong, grep { length } map { judge($c[$_]->reply, @{ $now[$_] }) } 0 .. $#now;
	}
	return \@wrong;
}

# One byte in each read, from a socket that holds little; of a long file, its first bytes.
sub sip ($srv) {
	my @wrong;
	for my $n (1, 4095, 4096, 4097, 65_537, (1 << 20) + 1) {
		my $c = $srv->connect(rcvbuf => 4096);
		$c->send(head("/f$n"));
		my $got = '';
		$got .= $c->sip(1) until $got =~ /\r\n\r\n\z/ || length $got > 2000;
		my $body = $c->sip($n < 100_000 ? $n : 5000);
		$body .= $c->take($n - length $body);
		push @wrong, "$n: " . length $body if $body ne substr $all, 0, $n;
	}
	return \@wrong;
}

# Clients that leave: before they read, after a bit, after more.
my $clients = 12;
sub vanish ($srv, $path) {
	my @c = map { $srv->connect(rcvbuf => 16_384) } 1 .. $clients;
	$_->send(head($path)) for @c;
	for my $i (0 .. $#c) {
		$c[$i]->take((0, 1000, 100_000)[$i % 3]);
		$c[$i]->abort;
	}
}

# ---------------------------------------------------------------- the matrix

sub server {
	my ($dir, $backend, $conf) = @_;
	return Test::Server->start(dir => $dir, conf => qq{server.network-backend = "$backend"\n} . ($conf // ''));
}

# Windows it brought in off the loop, and those it did not, as told at its end; -1: another backend did the work.
sub windows ($srv, $backend) {
	my $log = $srv->log;
	return (-1) if $log =~ /ev=backend\.fallback/;
	my $name = $backend eq 'linux-aio-sendfile' ? 'linux_aio' : $backend =~ tr/-/_/r;
	return map { $log =~ /ev=counters .*\b${name}_$_=(\d+)/ ? $1 : 0 } qw(async sync);
}

my @questions = map { questions($_) } @size;

sub matrix ($backend, $dir, $cold = undef, @sparse) {
	my $srv = server($dir, $backend, "server.max-cached-file-size = 0\n");         # all bytes are the backend's
	is_deeply ask($srv, ['/f1', undef, substr $all, 0, 1]), [], 'it serves';
	my $most = $srv->descriptors + 2 * $clients + 8;        # shared memory is kept for the next of as many clients
	vanish($srv, $_) for ('/left', '/sparse') x 3;
	ok Test::Util::eventually(sub { $srv->descriptors <= $most }), 'clients that leave leave no descriptor'
	    or diag $srv->descriptors . " descriptors, at most $most expected";
	is_deeply ask($srv, @questions, @sparse), [], 'the first time';
	is_deeply ask($srv, @questions, @sparse), [], 'and again';
	is_deeply sip($srv), [], 'a byte at a time';
	is_deeply ask($srv, ['/left', undef, substr $all, 0, $size[-1]]), [], 'what others did not wait for';
	is $srv->stop, '', 'the end is clean';
	my ($async, $sync) = windows($srv, $backend);
	cmp_ok $async, '!=', 0, 'what was not in memory came in off the loop' if $cold;
	note "$async windows off the loop, ", $sync // '-', ' not';
}

my $disk   = fill(disk('/var/tmp'));
my @sparse = questions_sparse($disk);
chomp(my $type = qx(stat -f -c %T "$disk"));
for my $backend (@backends) {
	make_cold($disk);
	subtest "$backend sends files on $type byte for byte" => sub { matrix($backend, "$disk", $type ne 'tmpfs', @sparse) };
}

SKIP: {
	skip 'no tmpfs on /dev/shm', scalar @backends unless -w '/dev/shm' && qx(stat -f -c %T /dev/shm) eq "tmpfs\n";
	my $shm = fill(disk('/dev/shm'));
	for my $backend (@backends) {
		subtest "$backend sends files on tmpfs byte for byte" => sub { matrix($backend, "$shm", 0, @sparse) };
	}
}

SKIP: {
	skip $no_fuse, scalar @backends unless $fuse;
	for my $backend (@backends) {
		my $slow = Accel::Slowfs->start(source => "$disk", spindles => 16, lookup_ms => 2, read_ms => 1);
		subtest "$backend sends files on FUSE byte for byte" => sub { matrix($backend, $slow->dir, 1, @sparse) };
	}
}

# ---------------------------------------------------------------- how much at a time, whose files, what for a disk

for my $backend (@backends) {
	subtest "$backend serves a client that reads little at a time" => sub {
		for my $chunk (4096, 5000) {
			make_cold($disk);
			my $srv = server("$disk", $backend, "server.network-chunk-size = $chunk\n");
			my @q = map { questions($_) } 1, 4097, 65_537, 102_400, (1 << 20) + 1;
			is_deeply ask($srv, @q, $sparse[2]), [], "server.network-chunk-size = $chunk";
			is $srv->stop, '', '... to the end';
		}
	};
}

# Read long ago: a system with relatime notes the next read.
sub read_long_ago ($path) {
	utime 1_000_000_000, 1_500_000_000, $path or die "$path: $!";
}

SKIP: {
	my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
	skip 'only root can give files away', scalar @backends unless $> == 0 && defined $uid;
	my $www = disk('/var/tmp');
	my @name = qw(own foreign);
	for my $backend (@backends) {
		spew($www, "$_$backend", 102_400) for @name;
		chown $uid, $gid, "$www/own$backend" or die "chown: $!";
		read_long_ago("$www/$_$backend") for @name;
		make_cold($www);
		subtest "$backend sends files of other users with server.use-noatime" => sub {
			my $srv = server("$www", $backend, qq{server.username = "nobody"\nserver.use-noatime = "enable"\n});
			my @q = map { ["/$_$backend", undef, substr $all, 0, 102_400] } @name;
			is_deeply ask($srv, @q, @q), [], 'served';
			is $srv->stop, '', 'the end is clean';
			unlike $srv->log, qr/level=(?:warn|error) (?!ev=backend\.fallback|ev=noatime\.refused)/, 'no other word in the log';
			my @lines = $srv->log =~ /ev=noatime\.refused file=foreign$backend owner=0 uid=$uid /g;
			is scalar @lines, 1, 'one line says which file its user does not own';
			is +(stat "$www/own$backend")[8], 1_000_000_000, 'the access time of its own file stays as it was';
		};
	}
}

SKIP: {
	my $ram = disk('/var/tmp');
	my $why = !$own_mounts ? 'no mount namespace of our own'
	    : system('mount', '-t', 'ramfs', 'none', "$ram") != 0 ? 'ramfs cannot be mounted' : '';
	skip $why, scalar @backends if $why;
	chmod 0755, "$ram" or die "$ram: $!";
	fill($ram);
	my $direct = eval { Fcntl::O_DIRECT() };
	my $opened = defined $direct && sysopen my $fh, "$ram/f1", O_RDONLY | $direct;
	for my $backend (@backends) {
		subtest "$backend sends files of a file system that refuses O_DIRECT" => sub {
			ok !$opened, 'it does';
			my $srv = server("$ram", $backend, "server.max-cached-file-size = 0\n");
			is_deeply ask($srv, @questions, @sparse), [], 'served';
			is $srv->stop, '', 'the end is clean';
		};
	}
	system 'umount', "$ram";
}

my @without = join('', qx{"@{[ Test::Util::program('accel-server') ]}" -V}) =~ /^  - (\S+) .*(?:liburing|ThreadSanitizer)/mg;   # optional; see posix_aio.c
is_deeply [sort @backends, @without], [qw(adaptive gthread-aio gthread-sendfile io-uring linux-aio-sendfile linux-sendfile posix-aio writev)],
    'all backends were here, except those that this program was built without';

done_testing;
