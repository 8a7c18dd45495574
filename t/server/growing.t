# A log that is written to while it is sent: the promised bytes come, with each backend.  A file that is not what it was is cut.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util qw(put);

my $n = 12 << 20;       # more than all buffers between the server and its client hold
my $log = join '', map { sprintf "%07d a line of a log, no two are equal\n", $_ } 1 .. $n / 40;
$log = substr $log, 0, $n;

# Older than a tick of the clock of its file system, and written to within the hour.
sub make {
	my ($path) = @_;
	put($path, $log);
	utime time - 100, time - 100, $path or die "$path: $!";
	return;
}

sub append {
	my ($path, $bytes) = @_;
	open my $fh, '>>', $path or die "$path: $!";
	syswrite $fh, $bytes or die "$path: $!";
	close $fh or die $!;
	return;
}

sub overwrite ($path, $off, $bytes) {
	open my $fh, '+<', $path or die "$path: $!";
	sysseek $fh, $off, 0;
	syswrite $fh, $bytes or die "$path: $!";
	close $fh or die $!;
	return;
}

# Connection, and the first bytes of the body.
sub begin ($srv, $name) {
	my $c = $srv->connect(rcvbuf => 65536);
	$c->send("GET /$name HTTP/1.1\r\nHost: x\r\n\r\n");
	my $got = $c->take(65536);
	$got =~ s/\A(\S+ 200.*?\r\n\r\n)//s or die "no reply: $got";
	like $1, qr/^Content-Length: $n\r$/m, '... its length is promised';
	return ($c, $got);
}

my %change = (
	'longer, and written to from its beginning' => sub { overwrite($_[0], 0, scalar reverse $log); append($_[0], 'more') },
	'replaced by a longer one in place'         => sub { put($_[0], "another head\n$log") },
	'as long as before, with other bytes'       => sub { overwrite($_[0], $n - 100, 'NEW') },
	'shorter'                                   => sub { truncate $_[0], 65536 or die $! },
	'longer, with an older time'                => sub { append($_[0], 'more'); utime 1_600_000_000, 1_600_000_000, $_[0] or die $! },
);

for my $backend (Test::Server::backends()) {
	my $srv = Test::Server->start(conf => <<"CONF");
server.max-worker = 1
server.network-backend = "$backend"
status.statistics-url = "/counters"
CONF
	subtest "$backend: a file that grows" => sub {
		make($srv->path('log'));
		my ($c, $got) = begin($srv, 'log');
		for my $i (1 .. 100) {
			append($srv->path('log'), "line $i after the promise\n");
			$got .= $c->take(int(($n - length $got) / (101 - $i)));
		}
		is length $got, $n, 'as many bytes as promised';
		ok $got eq $log, '... and they are the first ones of the file';
		cmp_ok $srv->counter('server.io.grew'), '>', 0, '... which is counted';
		is $srv->counter('server.io.changed'), 0, '... and nothing is cut';
		my $again = $srv->fetch('/log')->{body};
		cmp_ok length $again, '>', $n, 'the next request has the new length';
	};

	subtest "$backend: a file that grows, and is cut back" => sub {
		make($srv->path('back'));
		my ($c, $got) = begin($srv, 'back');
		append($srv->path('back'), 'x' x 100_000);
		$got .= $c->take(5 << 20);
		truncate $srv->path('back'), $n + 10 or die $!;
		$got .= $c->take($n - length $got);
		cmp_ok length $got, '<', $n, 'the reply is cut';
		ok index($log, $got) == 0, '... and what came is of one version';
	};

	for my $what (sort keys %change) {
		subtest "$backend: $what" => sub {
			make($srv->path('other'));
			my ($c, $got) = begin($srv, 'other');
			$change{$what}->($srv->path('other'));
			my $rest = $c->take($n - length $got);
			cmp_ok length($got) + length($rest), '<', $n, 'the reply is cut';
			ok !$c->{timed_out}, '... by the server';
		};
	}

	subtest "$backend: replaced by rename" => sub {
		make($srv->path('old'));
		my ($c, $got) = begin($srv, 'old');
		put($srv->path('new'), 'new' . $log);
		rename $srv->path('new'), $srv->path('old') or die $!;
		$got .= $c->take($n - length $got);
		ok $got eq $log, 'the old one is sent whole';
	};
	unlink map { $srv->path($_) } qw(log back other old);
}

done_testing;
