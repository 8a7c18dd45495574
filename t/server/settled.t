# The server keeps a file after it has settled.  A file that is written twice within one tick of the clock of its file system,
# with a request between, is sent with its last contents.  No strong tag stands for two contents.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Time::HiRes ();

my $own_mounts = Test::Server::own_mounts();
my $n = 15;             # files for each backend
my $size = 700;

sub overwrite {         # in place, and with one call
	my ($path, $bytes) = @_;
	open my $fh, '+<', $path or die "$path: $!";
	syswrite $fh, $bytes;
	close $fh or die $!;
}

sub moment { my @s = Time::HiRes::stat($_[0]); return "$s[9] $s[10]" }

# ramfs has the clock of every file system before Linux 6.13.
my $ram = File::Temp->newdir;
my $why = !$own_mounts ? 'no mount namespace of our own' : system('mount', '-t', 'ramfs', 'none', "$ram") ? 'no ramfs' : '';

sub served {
	my ($conf) = @_;
	return Test::Server->start(dir => "$ram", conf => qq{server.max-worker = 1\nserver.max-keep-alive-requests = 1000000\nstatus.statistics-url = "/counters"\n$conf});
}

SKIP: {
	skip $why, 1 if $why;
	subtest 'a file written twice within a tick is sent with its last contents' => sub {
		my (%srv, %first, %tags, %strong);
		$srv{$_} = served(qq{server.network-backend = "$_"\n}) for Test::Server::backends();
		my $same = 0;
		for my $backend (sort keys %srv) {
			my $c = $srv{$backend}->connect;
			for my $i (1 .. $n) {
				my $path = "$ram/$backend$i";
				Test::Util::put($path, 'a' x $size);
				my $before = moment($path);
				$c->send("GET /$backend$i HTTP/1.1\r\nHost: x\r\n\r\n");
				$first{"$backend$i"} = $c->reply;
				my $tag = $first{"$backend$i"}{header}{etag};
				$tags{"$backend$i$tag"}{ 'a' x $size } = 1 if $tag !~ /\AW/;
				overwrite($path, 'b' x $size);
				$same += $before eq moment($path);
			}
		}
		cmp_ok $same, '>', 0, 'the clock of the file system has ticks';
		my %weak = map { $_ => $first{$_}{header}{etag} } grep { $first{$_}{header}{etag} =~ m{\AW/"} } keys %first;
		cmp_ok scalar(keys %weak), '>', 0, 'a weak tag for what was just written';
		for my $backend (sort keys %srv) {
			my %old = map { $_ => 1 } 1 .. $n;
			my $c = $srv{$backend}->connect;
			Test::Util::eventually(sub {
				for my $i (sort keys %old) {
					$c->send("GET /$backend$i HTTP/1.1\r\nHost: x\r\n\r\n");
					my $r = $c->reply;
					my $tag = $r->{header}{etag};
					$tags{"$backend$i$tag"}{ $r->{body} } = 1 if $tag !~ /\AW/;
					delete $old{$i} if $r->{body} eq 'b' x $size && $tag !~ /\AW/;
				}
				return !%old;
			}, 8);
			is join(' ', sort keys %old), '', "$backend: the last contents are sent, with a strong tag";
		}
		is scalar(grep { keys %$_ > 1 } values %tags), 0, 'no strong tag stood for two contents';
		my ($name) = sort keys %weak;
		my ($backend) = $name =~ /(.*?)\d+\z/;
		my $r = $srv{$backend}->fetch("/$name", 'If-None-Match' => $weak{$name});
		is "$r->{status} $r->{body}", '200 ' . 'b' x $size, 'the weak tag of the first contents is not a match for the last';
		cmp_ok $srv{adaptive}->counter('server.cache.unsettled'), '<=', 4 * $n, 'each is read a few times, not with every request';
	};

	subtest 'an unsettled file has a weak tag' => sub {
		my $srv = served('');
		my $bare = served(qq{etag.use-size = "disable"\netag.use-mtime = "disable"\n});
		Test::Util::put("$ram/later", 'x' x 10);
		my $ahead = time + 1000;
		utime $ahead, $ahead, "$ram/later" or die $!;
		my $r = $srv->fetch('/later');
		like $r->{header}{etag}, qr{\AW/"}, 'a date in the future: a weak tag';
		is $srv->fetch('/later', 'If-Modified-Since' => $r->{header}{'last-modified'})->{status}, 200, '... its date says nothing';
		is $srv->fetch('/later', Range => 'bytes=0-1', 'If-Range' => $r->{header}{etag})->{status}, 200, '... nor its tag, of parts';
		is $srv->fetch('/later', Range => 'bytes=0-1', 'If-Range' => $r->{header}{'last-modified'})->{status}, 200, '... nor its date';
		is $srv->fetch('/later', Range => 'bytes=0-1')->{status}, 206, 'a part without a condition is sent';
		is $bare->fetch('/later')->{header}{'last-modified'}, undef, 'without tags it has no date either, which would stand for it';
		my $tag;
		ok Test::Util::eventually(sub { ($tag = $srv->fetch('/later')->{header}{etag}) !~ /\AW/ }), 'settled when it was watched for long enough';
		is $srv->fetch('/later', 'If-None-Match' => $tag)->{status}, 304, '... with a tag that counts';
		ok Test::Util::eventually(sub { defined $bare->fetch('/later')->{header}{'last-modified'} }), '... and a date';
		cmp_ok $srv->counter('server.cache.unsettled'), '<', 20, '... after a few reads';
	};
}

# ---------------------------------------------------------------- tags

subtest 'tags of files with the same size and time differ by etag.use-ctime' => sub {
	my $srv = Test::Server->start(conf => <<'CONF');
server.max-worker = 1
server.stat-cache-engine = "disable"
$HTTP["user-agent"] == "ctime" { etag.use-ctime = "enable" }
CONF
	my ($path, %tag) = ($srv->write('same', 'one'));
	my $settled = sub {     # its tags when it has settled
		my @t;
		Test::Util::eventually(sub {
			@t = map { $srv->fetch('/same', 'User-Agent' => $_)->{header}{etag} } qw(- ctime);
			return !grep { /\AW/ } @t;
		});
		return @t;
	};
	my @one = $settled->();
	overwrite($path, 'two');
	my @two = $settled->();
	isnt $two[0], $one[0], 'the same size, changed within a second: another tag';
	utime 1_600_000_000, 1_600_000_000, $path or die $!;
	my @old = $settled->();
	overwrite($path, 'six');
	utime 1_600_000_000, 1_600_000_000, $path or die $!;
	my @forged = $settled->();
	is $forged[0], $old[0], 'the same size and time: the same tag, as on another machine';
	isnt $forged[1], $old[1], 'etag.use-ctime: another one';
	like $forged[1], qr/\A\Q@{[ substr $forged[0], 0, -1 ]}\E-[0-9a-f]+"\z/, '... with a part more';
};

system 'umount', '-l', "$ram" unless $why;
# Beyond server.max-cached-file-size bytes come from the descriptor, and may be newer than the head that was prepared for them.
subtest 'a cached file that is overwritten is read again' => sub {
	my $srv = Test::Server->start(conf => "server.max-worker = 1\n");
	my $path = $srv->path('large');
	my (%tags, $wrong);
	for my $round (1 .. 5) {
		my $byte = chr(64 + $round);
		Test::Util::put($path, $byte x 40_000) if $round == 1;
		overwrite($path, $byte x 40_000) if $round > 1;
		my $now = $srv->fetch('/large');
		$wrong++ if $now->{body} ne $byte x 40_000;
		$tags{ $now->{header}{etag} }{$byte} = 1;
		$srv->settle('large');
		my $settled = $srv->fetch('/large');
		$tags{ $settled->{header}{etag} }{$byte} = 1 if $settled->{body} eq $byte x 40_000;
	}
	is $wrong, undef, 'the bytes are those of the last writing';
	is_deeply [grep { keys %{ $tags{$_} } > 1 } keys %tags], [], 'no tag stands for two contents';
	open my $fh, '>>', $path or die $!;
	print $fh 'x' x 10_000;
	close $fh or die $!;
	is length $srv->fetch('/large')->{body}, 50_000, 'what is longer is sent whole at once';
	truncate $path, 20_000 or die $!;
	is length $srv->fetch('/large')->{body}, 20_000, 'and what is shorter';
};

done_testing;
