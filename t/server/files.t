# A file reaches the client byte for byte, at any size and with each backend.  Other names than regular files below the
# document root are refused.  A changed file is seen within a second.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::UNIX;
use POSIX qw(mkfifo);
use Test::More;
use Test::Server;
use Time::HiRes qw(time);

my @backends = qw(adaptive writev linux-sendfile gthread-aio);
my @sizes    = (0, 1, 4095, 4096, 16384, 16385, 102_400, 100_001, 262_145, 10 << 20);
my $sparse   = 5 << 30;

# The period is prime, so a window sent from the wrong offset shows.
my $pattern = do { srand 7; join '', map { chr int rand 256 } 1 .. 65_521 };

sub bytes { my ($n) = @_; return substr $pattern x (1 + $n / length $pattern), 0, $n }

sub same {      # a failing 10 MiB is must not be printed
	my ($got, $want, $name) = @_;
	ok($got eq $want, $name) or diag 'got ' . length($got) . ' bytes, expected ' . length $want;
}

for my $backend (@backends) {
	my $srv = Test::Server->start(conf => qq{server.network-backend = "$backend"\n});
	$srv->write("f$_", bytes($_)) for @sizes;

	my $c = $srv->connect;
	for my $round ('first', 'from the cache') {
		for my $size (@sizes) {
			$c->send("GET /f$size HTTP/1.1\r\nHost: x\r\n\r\n");
			my $r = $c->reply // { status => 'none', body => '' };
			same("$r->{status} $r->{body}", '200 ' . bytes($size), "$backend: $size bytes, $round");
		}
	}

	open my $fh, '>', $srv->path('sparse') or die $!;
	truncate $fh, $sparse or die $!;
	for my $at (0, (4 << 30) - 5, $sparse - 10) { seek $fh, $at, 0; print $fh '0123456789' }
	close $fh or die $!;
	my $r = Test::Http::parse($srv->head('/sparse'));
	is $r->{header}{'content-length'}, $sparse, "$backend: HEAD of a sparse 5 GiB file tells its length";
	for my $at ((4 << 30) - 5, $sparse - 10) {
		$r = $srv->fetch('/sparse', Range => sprintf 'bytes=%d-%d', $at, $at + 9);
		is "$r->{status} $r->{body}", '206 0123456789', "$backend: ten bytes at $at";
		is $r->{header}{'content-range'}, sprintf('bytes %d-%d/%d', $at, $at + 9, $sparse), '... and says which';
	}
	my ($from, $to) = ((4 << 30) - 100_000, (4 << 30) + 99_999);
	$r = $srv->fetch('/sparse', Range => "bytes=$from-$to");
	same $r->{body}, "\0" x 99_995 . '0123456789' . "\0" x 99_995, "$backend: a range across 4 GiB";
}

sub poke {      # writes in place
	my ($path, $at, $bytes) = @_;
	open my $fh, -e $path ? '+<' : '>', $path or die "$path: $!";
	seek $fh, $at, 0;
	print $fh $bytes;
	close $fh or die $!;
}

# ---------------------------------------------------------------- one server for the rest

my $out = File::Temp->newdir;           # beside the document root
Test::Util::put("$out/secret", 'top secret');
my $srv = Test::Server->start(conf => <<'CONF');
mimetype.assign = ( ".tar.gz" => "application/x-tgz", ".txt" => "text/plain; charset=utf-8" )
static-file.exclude-extensions = ( ".fcgi" )
CONF
$srv->write('hello.txt', "hi\n");
$srv->settle('hello.txt');
$srv->write('dir/index.html', '<p>index');
$srv->write('a b%c/index.html', '<p>odd name');
mkdir $srv->path('empty');

sub status_is {
	my ($path, $want, $name) = @_;
	my $r = $srv->fetch($path);
	ok((grep { $r->{status} == $_ } ref $want ? @$want : $want), $name) or diag "$path: $r->{head}";
	unlike $r->{body}, qr/secret|root:/, '... and nothing leaks' if $name =~ /out|travers/;
	return $r;
}

subtest 'HEAD has the headers of GET, OPTIONS the allowed methods' => sub {
	my $get  = $srv->fetch('/hello.txt');
	my $head = Test::Http::parse($srv->head('/hello.txt'));
	delete $_->{header}{date} for $get, $head;
	is_deeply $head->{header}, $get->{header}, 'HEAD has the headers of GET';
	is $head->{body}, '', '... and no body';
	my $r = Test::Http::parse($srv->request("OPTIONS /hello.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
	is $r->{status}, 200, 'OPTIONS of a file';
	is $r->{header}{allow}, 'GET, HEAD, OPTIONS', '... says what is allowed';
	$r = Test::Http::parse($srv->request("OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
	is $r->{status}, 200, 'OPTIONS *';
	is $r->{header}{'content-length'}, 0, '... without a body';
};

subtest 'a directory gives its index file or a redirect' => sub {
	is status_is('/dir/', 200, 'index file')->{body}, '<p>index', '... is sent';
	is status_is('/dir', 301, 'directory without slash')->{header}{location}, '/dir/', '... to the one with';
	is status_is('/dir?a=b&c', 301, 'with a query')->{header}{location}, '/dir/?a=b&c', '... which is kept';
	is status_is('/a%20b%25c', 301, 'odd name')->{header}{location}, '/a%20b%25c/', '... encoded again';
	is status_is('//dir', 301, 'two slashes')->{header}{location}, '/dir/', '... are not another host';
	is status_is('/./empty/../dir/.', 200, 'dot segments inside the root')->{body}, '<p>index', '... are taken away';
	status_is('/empty/', [403, 404], 'directory without index file');
	status_is('/hello.txt/', [403, 404], 'slash after a file');
	status_is('/hello.txt/x', 404, 'file used as a directory');
};

subtest 'a suffix sets the media type' => sub {
	my %want = (
		'a.tar.gz' => 'application/x-tgz', 'a.txt' => 'text/plain; charset=utf-8', 'a.html' => 'text/html',
		'A.PNG' => 'image/png', 'noext' => 'application/octet-stream', 'a.unheard-of' => 'application/octet-stream',
	);
	for (sort keys %want) {
		$srv->write($_, 'x');
		is $srv->fetch("/$_")->{header}{'content-type'}, $want{$_}, $_;
	}
};

subtest 'absent and hidden files are not served' => sub {
	my $r = status_is('/nothing', 404, 'missing file');
	like $r->{header}{'content-type'}, qr{^text/html}, '... with a page';
	like $r->{body}, qr/<b>404<\/b>.*There is nothing/s, '... that says so';
	unlike status_is('/%3Cscript%3E', 404, 'markup in the path')->{body}, qr/<script/, '... stays harmless';
	$srv->write('a.fcgi', 'source');
	status_is('/a.fcgi', 403, 'excluded ending');
	status_is('/' . 'x' x 300, 404, 'a name too long for the file system');
	SKIP: {
		skip 'root may read everything', 1 if $> == 0;
		$srv->write('locked', 'x');
		chmod 0, $srv->path('locked');
		status_is('/locked', 403, 'unreadable file');
	}
};

subtest 'special files are refused at once' => sub {
	mkfifo($srv->path('fifo'), 0666) or die $!;
	my $unix = IO::Socket::UNIX->new(Local => $srv->path('socket'), Listen => 1) or die $!;
	my $t = time;
	status_is('/fifo', 403, 'fifo');
	status_is('/socket', 403, 'socket');
	cmp_ok time - $t, '<', Test::Util::SOON, '... without a wait for a writer';
};

subtest 'symbolic links stay inside' => sub {
	symlink 'hello.txt', $srv->path('in') or die $!;
	symlink "$out/secret", $srv->path('out') or die $!;
	symlink "$out", $srv->path('outdir') or die $!;
	symlink '../../../../../../etc/passwd', $srv->path('outrel') or die $!;
	symlink 'nowhere', $srv->path('dangling') or die $!;
	symlink 'loop', $srv->path('loop') or die $!;
	is status_is('/in', 200, 'link inside')->{body}, "hi\n", '... is followed';
	status_is('/out', [403, 404], 'link out of the root');
	status_is('/outdir/secret', [403, 404], 'directory link out of the root');
	status_is('/outrel', [403, 404], 'relative link out of the root');
	status_is('/dangling', 404, 'dangling link');
	status_is('/loop', [403, 404], 'loop of links');
	my $strict = Test::Server->start(dir => $srv->dir, conf => qq{server.follow-symlink = "disable"\n});
	like $strict->get('/in'), qr/^HTTP\S+ 403 /, 'no link at all with server.follow-symlink = "disable"';
};

subtest 'changes are seen within a second' => sub {
	# One worker: each has its own cache, so two may differ for that second.
	my $srv = Test::Server->start(conf => "server.max-worker = 1\nserver.max-keep-alive-requests = 1000000000\n");
	# Polled all the time: the name stays in the cache, which must notice by itself.
	my $until = sub {
		my ($path, $old, $new, $name) = @_;
		my ($t, $odd) = (time, 0);
		my $c = $srv->connect;
		while (1) {
			$c->send("GET $path HTTP/1.1\r\nHost: x\r\n\r\n");
			my $r = $c->reply // { status => 'nothing' };
			my $got = $r->{status} == 200 ? $r->{body} : $r->{status};
			last if $got eq $new || time - $t > Test::Util::PATIENCE;
			$odd++ if $got ne $old;
		}
		cmp_ok time - $t, '<', 5, $name;        # a second, on a busy machine
		is $odd, 0, '... and every answer was whole, old or new';
	};
	for my $n (100, 50_000) {
		$srv->write("news$n", 'a' x $n);
		is length $srv->fetch("/news$n")->{body}, $n, "$n bytes" or next;
		$srv->write("news$n", 'b' x $n);
		$until->("/news$n", 'a' x $n, 'b' x $n, 'replaced by rename, same length');
		$srv->write("news$n", 'c' x ($n + 7));
		$until->("/news$n", 'b' x $n, 'c' x ($n + 7), 'replaced by rename, longer');
		unlink $srv->path("news$n");
		$until->("/news$n", 'c' x ($n + 7), 404, 'removed');
		$srv->write("news$n", 'd' x $n);
		$until->("/news$n", 404, 'd' x $n, 'there again');
	}
};

subtest 'stat-cache-engine = "disable" asks the file system each time' => sub {
	my $srv = Test::Server->start(conf => qq{server.stat-cache-engine = "disable"\n});
	for my $i (1 .. 20) {
		$srv->write('x', "version $i");
		is $srv->fetch('/x')->{body}, "version $i", "version $i";
	}
};

subtest 'conditions that do not change a reply share its cached file' => sub {
	my $srv = Test::Server->start(conf => <<'CONF');
server.max-worker = 1
status.statistics-url = "/counters"
$HTTP["user-agent"] =~ "a" { server.max-write-idle = 100 }
$HTTP["user-agent"] =~ "b" { server.max-read-idle = 100 }
$HTTP["user-agent"] =~ "c" { proxy-core.debug = 1 }
$HTTP["user-agent"] =~ "x" { etag.use-inode = "enable" }
CONF
	$srv->write('large', 'x' x 100_000);
	my %tag;
	$tag{$_} = $srv->fetch('/large', 'User-Agent' => $_)->{header}{etag} for qw(- a b c ab ac bc abc);
	is $srv->counter('server.cache.misses'), 1, 'eight sets of conditions, one look-up';
	$tag{$_} = $srv->fetch('/large', 'User-Agent' => $_)->{header}{etag} for qw(x ax);
	is $srv->counter('server.cache.misses'), 2, 'another form of tag needs a look-up of its own, once';
	isnt $tag{x}, $tag{a}, '... and has its own tag';
	is $tag{ax}, $tag{x}, '... for all sets with that form';
};

# A page boundary: truncation would clear the rest of a partial page that is already queued in the socket.
for my $backend (@backends) {
	subtest "$backend: a removed file is sent whole, a truncated one is cut" => sub {
		my $srv = Test::Server->start(conf => qq{server.network-backend = "$backend"\n});
		my $n = 48 << 20;
		for my $name (qw(gone cut)) {
			open my $fh, '>', $srv->path($name) or die $!;
			print $fh 'x' x (1 << 20) for 1 .. $n >> 20;
			close $fh or die $!;
		}
		my $c = $srv->connect(rcvbuf => 65536);
		$c->send("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
		like $c->take(15), qr/ 200/, 'begun';
		unlink $srv->path('gone');
		my $rest = $c->take($n);
		like $rest, qr/\r\n\r\nx/, 'unlinked';
		cmp_ok length($rest), '>=', $n, '... is sent to its end';
		my $d = $srv->connect(rcvbuf => 65536);
		$d->send("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n");
		like $d->take(15), qr/ 200/, 'begun';
		truncate $srv->path('cut'), 1 << 20 or die $!;
		$rest = $d->rest;
		ok !$d->{timed_out}, 'truncated: the connection is cut';
		$rest =~ s/\A.*?\r\n\r\n//s;
		cmp_ok length($rest), '<', $n, '... before the promised length';
		is $rest =~ tr/x//c, 0, '... and nothing is padded';
		is $srv->fetch('/cut', Range => 'bytes=0-9')->{body}, 'x' x 10, 'the server goes on';
	};
}

# The client pauses, so that no backend has sent more than the buffers hold when the file is written to.
subtest 'each change of a file while it is sent cuts the reply or leaves it whole' => sub {
	my ($n, $past) = (12 << 20, 1_600_000_000);
	my %change = (
		'overwritten in place'                     => [sub { poke($_[0], $n - 100, 'NEW') }, 0],
		'overwritten, and its time set back'       => [sub { poke($_[0], $n - 100, 'NEW'); utime $past, $past, $_[0] or die $! }, 0],
		'overwritten between two ranges'           => [sub { poke($_[0], $n - 100, 'NEW') }, 0, "Range: bytes=0-10485759,-4096\r\n"],
		'longer than before'                       => [sub { poke($_[0], $n, 'NEW') }, 'seen'],
		'replaced by rename'                       => [sub { poke("$_[0].2", 0, 'NEW'); rename "$_[0].2", $_[0] or die $! }, 1],
		'of another mode'                          => [sub { chmod 0600, $_[0] or die $! }, 1],
		'overwritten, where that is allowed'       => [sub { poke($_[0], $n - 100, 'NEW') }, 1],
	);
	for my $backend (Test::Server::backends()) {
		my $srv = Test::Server->start(conf => <<"CONF");
server.max-worker = 1
server.network-backend = "$backend"
status.statistics-url = "/counters"
\$HTTP["url"] =~ "allowed" { server.cut-changed-files = "disable" }
CONF
		my ($cuts, $since) = (0, time);
		for my $what ($backend =~ /^(?:adaptive|writev|gthread-sendfile)$/ ? sort keys %change : ('overwritten in place', 'replaced by rename')) {
			my ($change, $whole, $lines) = (@{ $change{$what} }, '');
			# A thread that sends by sendfile(2) has no sample of a file that has rested for years.
			$whole = $backend ne 'gthread-sendfile' if $whole eq 'seen';
			my $name = $what =~ s/\W+/-/gr;
			open my $fh, '>', $srv->path($name) or die $!;
			print $fh 'x' x $n;
			close $fh or die $!;
			utime $past, $past, $srv->path($name) or die $!;
			my $c = $srv->connect(rcvbuf => 65536);
			$c->send("GET /$name HTTP/1.1\r\nHost: x\r\n$lines\r\n");
			my $begin = $c->take(65536);
			like $begin, qr/\A\S+ 20[06]/, "$backend: $what: begun";
			$change->($srv->path($name));
			my $left = index($begin, "\r\n\r\n") + 4 - length $begin;
			$left += $1 if $begin =~ /^Content-Length: (\d+)/m;
			my $got = length $c->take($left);
			ok $whole ? $got == $left : $got < $left, '... and ' . ($whole ? 'sent whole' : 'cut') or diag "$got of $left bytes";
			$cuts += !$whole;
			is $srv->fetch("/$name", Range => 'bytes=-5')->{status}, 206, '... and the next one is served' unless $whole;
			unlink $srv->path($name);
		}
		like $srv->fetch('/counters')->{body}, qr/^server\.io\.changed: $cuts$/m, "$backend: cuts are counted";
		my $logged = () = $srv->wait_lines(1, qr/ev=file\.changed/);
		cmp_ok $logged, '<=', 2 + time - $since, '... and logged, once a second' if $backend eq 'adaptive';
	}
};

subtest 'a file that is partly in memory is sent in large steps' => sub {
	for my $backend (@backends) {
		my $srv = Test::Server->start(conf => qq{server.network-backend = "$backend"\n});
		open my $fh, '>', $srv->path('holes') or die $!;
		truncate $fh, 32 << 20 or die $!;
		for (0 .. 31) { seek $fh, ($_ << 20) + 70_000, 0; print $fh 'x' x 5000 }
		close $fh or die $!;
		my $c = $srv->connect(rcvbuf => 65536);
		$c->send("GET /holes HTTP/1.1\r\nHost: x\r\n\r\n");
		my $cpu = $srv->cpu;
		select undef, undef, undef, 0.3;        # a client that pauses, until every buffer is full
		my $r = $c->reply;
		is $r->{body} =~ tr/x//, 32 * 5000, "$backend: whole";
		cmp_ok $srv->cpu - $cpu, '<', ($ENV{B} // '') =~ /san/ ? 5 : 1, '... without a call for every byte';
	}
};

done_testing;
