# Cold files and a hot one: whoever asks for the hot one does not notice that others wait for the disk.
# Equal questions to the disk are asked once; a long answer to one client leaves room for the short one to another.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use JSON::PP ();
use Test::More;
use Test::Server;
use Test::Slowfs;
use Time::HiRes qw(time);

my ($usable, $why) = Test::Slowfs->usable;
plan skip_all => $why unless $usable;

my @backends  = qw(gthread-aio linux-sendfile writev);
my $can_spawn = grep { -x "$_/spawn-fcgi" } split /:/, $ENV{PATH};
my $lookup_ms = 400;
my $rounds    = 5;              # of sixteen cold files: 2 s in which the hot one is watched for one
my $tries     = 5;              # the machine may be busy with something else; a server that blocks fails them all

# ---------------------------------------------------------------- the disk

my $www = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);

sub spew {
	my ($name, $bytes) = @_;
	open my $fh, '>:raw', "$www/$name" or die "$name: $!";
	print $fh $bytes;
	close $fh or die "$name: $!";
}

spew('hot', 'h' x 1024);
spew("cold$_", "cold $_ " x (1 + $_ * 37)) for 1 .. 16 * $rounds;
spew("large$_", "large $_ 45678\n" x 280_000) for 1 .. 4;       # 4 MB: 32 requests to the disk
spew("short$_", "short $_\n" x 2000) for 1 .. 4;
spew('list', join '', map { "/cold$_\n" } 1 .. 16 * $rounds);

sub disk { my (%arg) = @_; return Test::Slowfs->start(source => "$www", spindles => 16, read_ms => 0, lookup_ms => $lookup_ms, %arg) }

sub server {
	my ($slow, $conf) = @_;
	return Test::Server->start(dir => $slow->dir, conf => "server.max-worker = 1\n$conf");
}

# Load from a process of its own; its report comes with load_ends().
sub load {
	my ($srv, $path, @args) = @_;
	open my $fh, '-|', Test::Server::program('hload'), '--json', '--check', "$www", @args, 'http://127.0.0.1:' . $srv->port . $path
	    or die "hload: $!";
	return $fh;
}

sub load_ends {
	my ($fh) = @_;
	local $/;
	my $r = eval { JSON::PP::decode_json(scalar <$fh>) } or die "hload said nothing\n";
	close $fh;
	return $r;
}

sub has_ended {         # without waiting
	my ($fh) = @_;
	my $bits = '';
	vec($bits, fileno $fh, 1) = 1;
	return select($bits, undef, undef, 0) > 0;
}

sub req { my ($path) = @_; return "GET $path HTTP/1.1\r\nHost: x\r\n\r\n" }

# Nothing to read yet.
sub silent { my ($c) = @_; return !length $c->{in} && !$c->_wait(0, time + 0.0001) }

# ---------------------------------------------------------------- hot beside cold

# One second of 400 requests/s for the hot file on 50 connections, beside sixteen cold requests that never pause.
sub beside {
	my ($make) = @_;
	my $slow = disk();
	my ($srv, $more) = $make->($slow);
	$srv->fetch('/hot')->{status} == 200 or return { failed => 'the hot file is not served' };
	my $known = $slow->counts->{lookups};
	my $cold = load($srv, '/', '-c', 16, '-n', 16 * $rounds, '-t', 20, '-d', 40, '--urls', "$www/list");
	Test::Server::eventually(sub { $slow->counts->{lookups} >= $known + 16 });
	my $hot = load_ends(load($srv, '/hot', '-c', 50, '-r', 400, '-d', 1, '-t', 10));
	my $beside = !has_ended($cold);
	return { hot => $hot, beside => $beside, cold => load_ends($cold), lookups => $slow->counts->{lookups} - $known };
}

sub far_below {
	my ($what, $make) = @_;
	subtest "$what: a hot file does not wait for cold ones" => sub {
		my ($r, $p50, $p99);
		for my $try (1 .. $tries) {
			$r = beside($make);
			last if $r->{failed};
			($p50, $p99) = map { $r->{hot}{latency_us}{$_} / 1000 } qw(p50 p99);
			last if $r->{beside} && $p50 < $lookup_ms / 8 && $p99 < $lookup_ms * 0.75;
			diag "try $try: p50 $p50 ms, p99 $p99 ms" . ($r->{beside} ? '' : ', cold load ended early');
		}
		is $r->{failed}, undef, 'served' or return;
		ok $r->{beside}, 'sixteen cold requests were in flight all the time';
		cmp_ok $p50, '<', $lookup_ms / 8, 'the median of the hot file';
		cmp_ok $p99, '<', $lookup_ms * 0.75, "its p99, where one look-up takes $lookup_ms ms";
		is $r->{hot}{errors}{all}, 0, 'all of its requests were answered with its bytes' or diag explain $r->{hot};
		cmp_ok $r->{hot}{unanswered}, '<=', 50, '... but for those under way at the end, at most one for each connection';
		is $r->{cold}{errors}{all}, 0, 'and so were all cold ones' or diag explain $r->{cold};
		is $r->{cold}{answered}, 16 * $rounds, 'each of them';
		is $r->{lookups}, 16 * $rounds, 'for one look-up each';
		note sprintf 'p50 %.2f ms, p99 %.2f ms', $p50, $p99;
	};
}

for my $backend (@backends) {
	far_below("$backend, static", sub { server($_[0], qq{server.network-backend = "$backend"\n}) });
}

SKIP: {
	skip 'the accelerator: spawn-fcgi is not installed', 1 unless $can_spawn;
	my $app;
	far_below('the accelerator', sub {
		my ($slow) = @_;
		undef $app;
		$app = Test::Server::Fcgi->start(args => ['--threads', 20, '--root', $slow->dir]);
		return server($slow, <<"CONF");
server.network-backend = "gthread-aio"
\$HTTP["url"] =~ "^/" {
  proxy-core.protocol = "fastcgi"
  proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
  proxy-core.allow-x-sendfile = "enable"
  proxy-core.max-pool-size = 20
  proxy-core.max-keep-alive-requests = 1000
}
CONF
	});
}

# ---------------------------------------------------------------- questions to the disk

subtest 'sixteen equal misses are one question to the disk' => sub {
	my $slow = disk();
	my $srv = server($slow, '');
	$srv->fetch('/hot');
	my $before = $slow->counts;
	my @c = map { $srv->connect } 1 .. 16;
	$_->send(req('/cold1')) for @c;
	my $cold = Test::Server::_slurp("$www/cold1");
	is scalar(grep { my $r = $_->reply; $r && $r->{body} eq $cold } @c), 16, 'all are answered';
	my $after = $slow->counts;
	is $after->{lookups} - $before->{lookups}, 1, 'one look-up';
	is $after->{opens} - $before->{opens}, 1, 'one open';   # the kernel joins look-ups, but not these
};

# Its only thread that opens files is at work; what it answers meanwhile it knows, or finds out beside that.
subtest 'absences and hot files are answered without the disk' => sub {
	my $slow = disk(lookup_ms => 600);
	my $srv = server($slow, "server.max-stat-threads = 1\n");
	for my $path ('/none', '/hot') {
		my $answered;
		for my $try (1 .. $tries) {
			my $status = $path eq '/hot' ? 200 : 404;
			my $name = $path eq '/hot' ? $path : "$path$try";
			is $srv->fetch($name)->{status}, $status, "$name: $status";
			my $before = $slow->counts;
			my ($busy, $c) = ($srv->connect, $srv->connect);
			$busy->send(req($path eq '/hot' ? "/cold$try" : "/cold1$try"));
			$c->send(req($name));
			my $r = $c->reply // {};
			$answered = silent($busy);
			is $r->{status}, $status, '... once more';
			is $busy->reply->{status}, 200, 'a cold one, asked before it';
			is $slow->counts->{lookups} - $before->{lookups}, 1, 'the disk was asked for the cold one only';
			last if $answered;
		}
		ok $answered, "$path was answered before it";
	}
};

# ---------------------------------------------------------------- long and short

for my $backend (@backends) {
	subtest "$backend: four long cold files leave room for a short one" => sub {
		my $slow = disk(spindles => 1, lookup_ms => 0, read_ms => 20);
		my $srv = server($slow, qq{server.network-backend = "$backend"\nserver.max-read-threads = 2\n});
		my @long = map { load($srv, "/large$_", '-n', 1, '-t', 30) } 1 .. 4;
		ok Test::Server::eventually(sub { $slow->counts->{reads} >= 12 }), 'they are being read';
		my $r = $srv->fetch('/short1');
		ok $r->{body} eq "short 1\n" x 2000, 'the short one is answered';
		is scalar(grep { has_ended($_) } @long), 0, 'before any of the long ones is through';
		my @end = map { load_ends($_) } @long;
		is scalar(grep { $_->{answered} == 1 && $_->{errors}{all} == 0 } @end), 4, 'these arrive byte for byte too' or diag explain \@end;
	};
}

done_testing;
