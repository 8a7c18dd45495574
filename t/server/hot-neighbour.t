# A hot file beside cold ones: its clients do not wait for the disk.  Equal look-ups share one system call.  Long replies
# leave room for a short one.  The disk hangs and goes on at a word of the test, so no answer depends on a clock.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use Test::Fcgi ();
use Test::AccelLoad ();
use Test::More;
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(need_program put);
use Test::Http qw(req);

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my @backends = qw(adaptive gthread-aio linux-sendfile writev);
my $cold     = 16;              # requests that wait for the disk

# ---------------------------------------------------------------- the disk

my $www = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);

put("$www/hot", 'h' x 1024);
put("$www/cold$_", "cold $_ " x (1 + $_ * 37)) for 1 .. $cold;
put("$www/large$_", "large $_ 45678\n" x 280_000) for 1 .. 4;   # 4 MB: 32 reads
put("$www/short$_", "short $_\n" x 2000) for 1 .. 4;
put("$www/list", join '', map { "/cold$_\n" } 1 .. $cold);

sub disk { my (%arg) = @_; return Accel::Slowfs->start(source => "$www", spindles => 16, read_ms => 0, lookup_ms => 0, %arg) }

sub server {
	my ($slow, $conf) = @_;
	return Test::Server->start(dir => $slow->dir, conf => "server.max-worker = 1\n$conf");
}

# A strong tag says that the file has settled: from then on the server keeps it.
sub is_hot ($srv) {
	return Test::Util::eventually(sub { ($srv->fetch('/hot')->{header}{etag} // '') =~ /^"/ });
}

# ---------------------------------------------------------------- hot beside cold

# Stage by stage: sixteen cold requests hang in it, and the hot file is still served.
my %hang = (
	'look-up' => sub { $_[0]->hang('/cold*') },
	'read' => sub { $_[0]->hang_after(0, '/cold*') },
);

sub beside ($stage, $make) {
	my $slow = disk();
	my $srv = $make->($slow);
	ok is_hot($srv), 'the hot file is served from memory' or return;
	my $known = $slow->counts->{lookups};
	$hang{$stage}->($slow);
	my $load = Test::AccelLoad->start($srv, '/', '-c', $cold, '-n', $cold, '-t', 50, '-d', 60, '--urls', "$www/list", '--verify', "dir:$www");
	# Two requests of one file wait for one read; each look-up hangs on its own.
	ok $slow->wait_hanging($stage eq 'read' ? 1 : $cold), "cold requests hang in their $stage";
	my $hot = Test::AccelLoad->run($srv, '/hot', '-c', 50, '-n', 400, '-t', 20, '-d', 40, '--verify', "dir:$www");
	is $hot->{answered}, 400, '400 requests of the hot file are answered meanwhile';
	is $hot->{errors}{all}, 0, '... with its bytes' or diag explain $hot;
	ok !$load->ended, '... before the cold requests end';
	$slow->go;
	my $r = $load->report;
	is $r->{errors}{all}, 0, 'the cold requests get their bytes when the disk goes on' or diag explain $r;
	is $r->{answered}, $cold, '... each of them';
	is $slow->counts->{lookups} - $known, $cold, '... for one look-up each';
	note sprintf 'p99 of the hot file %.2f ms', $hot->{latency_us}{p99} / 1000;
}

sub far_below ($what, $make) {
	for my $stage (sort keys %hang) {
		subtest "$what: a hot file does not wait for cold ones in their $stage" => sub { beside($stage, $make) };
	}
}

for my $backend (@backends) {
	far_below("$backend, static", sub { server($_[0], qq{server.network-backend = "$backend"\n}) });
}

need_program('spawn-fcgi', 'spawn-fcgi');
for my $backend (qw(adaptive gthread-aio)) {
	my $app;
	far_below("$backend, the accelerator", sub {
		my ($slow) = @_;
		undef $app;
		$app = Test::Fcgi->start('--threads', 20, '--root', $slow->dir);
		return server($slow, qq{server.network-backend = "$backend"\n}
			. Test::Server::proxy_block('^/', 'unix:' . $app->socket, 'max-pool-size' => 20, 'max-keep-alive-requests' => 1000));
	});
}

# ---------------------------------------------------------------- look-ups

subtest 'sixteen equal misses share one look-up' => sub {
	my $slow = disk();
	my $srv = server($slow, '');
	ok is_hot($srv), 'the hot file is served from memory' or return;
	my $before = $slow->counts;
	$slow->hang('/cold*');
	my @c = map { $srv->connect } 1 .. 16;
	$_->send(req('/cold1')) for @c;
	ok $slow->wait_hanging(1), 'the look-up hangs';
	is $srv->fetch('/hot')->{status}, 200, '... when all sixteen requests have arrived';
	$slow->go;
	my $body = Test::Util::slurp("$www/cold1");
	is scalar(grep { my $r = $_->reply; $r && $r->{body} eq $body } @c), 16, 'all sixteen are answered';
	my $after = $slow->counts;
	is $after->{lookups} - $before->{lookups}, 1, 'the disk sees one look-up';
	is $after->{opens} - $before->{opens}, 1, '... and one open';   # the kernel joins look-ups, but not opens
};

# The only thread for look-ups hangs.
subtest 'absences and hot files are answered without the disk' => sub {
	my %want = ('/none' => 404, '/hot' => 200);
	for my $path (sort keys %want) {
		my $slow = disk();
		my $srv = server($slow, "server.max-stat-threads = 1\n");
		ok is_hot($srv), 'the hot file is served from memory' or return;
		is $srv->fetch($path)->{status}, $want{$path}, "$path is $want{$path}";
		my $before = $slow->counts;
		$slow->hang('/cold*');
		my $busy = $srv->connect;
		$busy->send(req('/cold1'));
		ok $slow->wait_hanging(1), 'a cold look-up hangs';
		is $srv->fetch($path)->{status}, $want{$path}, "... $path is $want{$path} again";
		ok $busy->silent, '... before the cold file';
		$slow->go;
		is $busy->reply->{status}, 200, 'the cold file is served when the disk goes on';
		is $slow->counts->{lookups} - $before->{lookups}, 1, 'the disk sees the cold look-up only';
	}
};

# ---------------------------------------------------------------- long and short

for my $backend (@backends) {
	subtest "$backend: four long cold files leave room for a short one" => sub {
		my $slow = disk(spindles => 1, lookup_ms => 0, read_ms => 20);
		my $srv = server($slow, qq{server.network-backend = "$backend"\nserver.max-read-threads = 2\n});
		my @long = map { Test::AccelLoad->start($srv, "/large$_", '-n', 1, '-t', 30, '--verify', "dir:$www") } 1 .. 4;
		ok Test::Util::eventually(sub { $slow->counts->{reads} >= 12 }), 'the long files are being read';
		my $r = $srv->fetch('/short1');
		ok $r->{body} eq "short 1\n" x 2000, 'the short file is served';
		is scalar(grep { $_->ended } @long), 0, '... before the end of any long one';
		my @end = map { $_->report } @long;
		is scalar(grep { $_->{answered} == 1 && $_->{errors}{all} == 0 } @end), 4, 'the long files arrive byte for byte' or diag explain \@end;
	};
}

done_testing;
