# Clients vanish, applications are killed, files are cut and replaced while they are sent, descriptors and log space run
# out.  No byte is wrong, each status says what happened, and afterwards the server has what it had before.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use POSIX ();
use Test::Fcgi ();
use Test::AccelLoad ();
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(need_program put rss);
use Time::HiRes qw(time);

my $own_mounts = Test::Server::own_mounts();
need_program('spawn-fcgi', 'spawn-fcgi');

my $sanitizer = ($ENV{B} // '') =~ /san/;
my $slow      = $sanitizer ? 5 : 1;
# MiB.  ThreadSanitizer keeps what it knows of each address.
my $growth    = ($ENV{B} // '') =~ /tsan/ ? 80 : $sanitizer ? 20 : 4;
my $transfers = $sanitizer ? 3000 : 10_000;
my @backends  = qw(adaptive gthread-aio linux-sendfile writev);
# The sanitizer keeps freed memory to catch later uses.  It keeps less here, or that looks like a leak.
# Freed windows of files return to the system, so what stays is a leak.  In the heap of the C library a window stays while
# anything lies after it: up to two for each client of the busiest moment.
my %env = (
	ASAN_OPTIONS => join(':', grep { length } $ENV{ASAN_OPTIONS} // '', 'quarantine_size_mb=8'),
	MALLOC_MMAP_THRESHOLD_ => 128 << 10,
);

# ---------------------------------------------------------------- files

my $www   = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
my $block = join '', map { chr(1 + $_ * 7 % 255) } 1 .. 65_521; # a prime, and no zero byte in it

sub pattern { my ($n) = @_; return substr $block x (1 + $n / length $block), 0, $n }

mkdir "$www/app" or die "mkdir: $!";
my @size = (1, 4096, 20_000, 102_400, 400_001, 1 << 20);
put("$www/app/$_", pattern($_)) for @size;
put("$www/list", join '', map { "/app/$_\n" } @size);
symlink 'app', "$www/direct" or die "symlink: $!";
put("$www/list-direct", join '', map { "/direct/$_\n" } @size);

# ---------------------------------------------------------------- processes

# Static files, except in /app/.
sub server ($network, $to = undef, %arg) {
	my $conf = qq{server.network-backend = "$network"\n} . (delete $arg{conf} // '');
	$conf .= Test::Server::proxy_block('^/app/', "unix:$to", 'max-pool-size' => 20, 'max-keep-alive-requests' => 50) if $to;
	return Test::Server->start(dir => "$www", conf => $conf, env => \%env, %arg);
}

sub app { return Test::Fcgi->start({ env => \%env }, '--threads', 8, '--root', "$www") }

# True once the server uses less than a third of a processor while the code waits: it does not spin.
sub idles {
	my ($srv, $wait) = @_;
	return Test::Util::eventually(sub {
		my ($cpu, $t) = ($srv->cpu, time);
		$wait->();
		return $srv->cpu - $cpu < 0.3 * (time - $t);
	});
}

sub descriptors { my ($pid) = @_; my @all = glob "/proc/$pid/fd/*"; return scalar @all }

# ---------------------------------------------------------------- clients

sub vanish {
	my ($network, $proxied) = @_;
	my $app = $proxied && app();
	my $srv = server($network, $app && $app->socket);
	my @list = ("$www/list-direct", $app ? "$www/list" : ());
	$srv->fetch("/direct/$_") for @size;
	# Each of two workers may keep each file open by both of its names, and sockets to the application.
	my $most = $srv->descriptors + 2 * 2 * @size + ($app ? 20 : 0);
	my ($app_before, @rss, $app_rss) = $app ? descriptors($app->pid) : ();
	my $each = int $transfers / 3 / @list;
	for my $round (1 .. 3) {
		my $left = 0;
		my @load = map { Test::AccelLoad->start($srv, '/', '-c', 50, '-n', $each, '-t', 60, '-d', 300, '--abort', 40, '--seed', $round, '--verify', "dir:$www", '--random', '--urls', $_) } @list;
		for my $r (map { $_->report } @load) {
			is $r->{errors}{all}, 0, "round $round: clients that stay get every byte" or diag explain $r->{errors};
			$left += $r->{aborted};
		}
		cmp_ok $left, '>', $each / 5, "round $round: $left left in the middle";
		my @c = map { $srv->connect } 1 .. 100;         # these do not even wait for the first byte
		for my $i (0 .. $#c) {
			my $bytes = req(($app ? '/app/' : '/direct/') . $size[$i % @size]) x (1 + $i % 3);
			$c[$i]->send($i % 2 ? $bytes : substr $bytes, 0, -1 - $i % 9);
			$i % 3 ? $c[$i]->abort : close $c[$i]->sock;
		}
		ok Test::Util::eventually(sub { $srv->descriptors <= $most }), "round $round: descriptors are back"
		    or diag "at most $most expected, now " . $srv->descriptors;
		push @rss, $srv->rss;
		$app_rss //= rss($app->pid) if $app;
	}
	is $srv->fetch("/direct/$_")->{body}, pattern($_), "$_ bytes are served as before" for $size[1], $size[4];
	cmp_ok $rss[2] - $rss[0], '<', $growth, 'memory does not grow' or diag "MiB: @rss";
	if ($app) {
		ok Test::Util::eventually(sub { descriptors($app->pid) <= $app_before + 20 }), 'descriptors of fcgi-stat-accel are back';
		cmp_ok rss($app->pid) - $app_rss, '<', 2 * $growth, 'nor does its memory grow';
	}
	note "MiB: @rss";
	is $srv->stop, '', 'the end is clean';
	is $app->stop, 0, 'also that of fcgi-stat-accel' if $app;
}

for my $network (@backends) {
	subtest "$network: clients vanish during $transfers transfers" => sub { vanish($network) };
}
subtest "$_, proxied: clients vanish during $transfers transfers" => sub { vanish($_, 1) } for qw(adaptive gthread-aio);

# ---------------------------------------------------------------- the server, the application

subtest 'TERM ends the server under load, with slow clients connected' => sub {
	my $app = app();
	for my $network (@backends) {
		my $srv = server($network, $app->socket);
		my @load = map { Test::AccelLoad->start($srv, '/', '-c', 100, '-d', 300, '--random', '--urls', $_) } "$www/list", "$www/list-direct";
		my @slow = map { my $c = $srv->connect(rcvbuf => 4096); $c->send(req("/app/$size[-1]")); $c } 1 .. 5;
		like $_->take(12), qr/ 200/, 'a slow client is being served' for @slow;
		is +($srv->term)[0], 0, "$network: the server ends with 0";
		$_->stop for @load;
	}
	is $app->stop, 0, 'the application ends well too';
};

subtest 'a killed application causes 502 to 504 until it is back' => sub {
	my $at = "$www/../" . ("$www" =~ s{.*/}{}r) . '.sock';        # a link to the running application
	my $app = app();
	my $point = sub { symlink $app->socket, "$at.new" or die "symlink: $!"; rename "$at.new", $at or die "rename: $!" };
	$point->();
	my $srv = server('linux-sendfile', $at);
	$srv->fetch("/app/$_") for @size;
	my $most = $srv->descriptors + 2 * 2 * @size + 20;
	my $load = Test::AccelLoad->start($srv, '/', '-c', 50, '-d', 5, '-t', 30, '--urls', "$www/list", '--random', '--verify', "dir:$www");
	my (%seen, @wrong);
	my $ask = sub {
		my $r = $srv->fetch('/app/4096');
		$seen{ $r->{status} }++;
		push @wrong, length $r->{body} if $r->{status} == 200 && $r->{body} ne pattern(4096);
		push @wrong, 'no Retry-After' if $r->{status} == 503 && !$r->{header}{'retry-after'};
		return $r->{status};
	};
	for my $round (1 .. 3) {
		ok Test::Util::eventually(sub { $ask->() == 200 }), "round $round: it lives";
		$ask->() for 1 .. 20;
		is $app->stop('KILL'), 9, '... killed';
		ok Test::Util::eventually(sub { $ask->() != 200 }), '... and clients see it';
		$ask->() for 1 .. 20;
		$app = app();
		$point->();
	}
	ok Test::Util::eventually(sub { $ask->() == 200 }), 'and it lives again';
	is_deeply [grep { !/^(?:200|502|503|504)$/ } keys %seen], [], 'only 502, 503 and 504 in between' or diag explain \%seen;
	is_deeply \@wrong, [], 'every 200 has the right bytes, every 503 says when to come back';
	my $r = $load->report;
	is $r->{errors}{all} - $r->{errors}{status}, 0, "the same for $r->{requests} requests of others" or diag explain $r->{errors};
	cmp_ok $r->{answered} - $r->{errors}{status}, '>', 0, '... some of which were answered';
	ok Test::Util::eventually(sub { $srv->descriptors <= $most }), 'descriptors are back' or diag $srv->descriptors . " of $most";
	unlink $at;
};

# ---------------------------------------------------------------- files

subtest 'a reply of a truncated file is cut, never padded' => sub {
	my $size = 48 << 20;
	my $want = pattern($size);
	for my $network (@backends) {
		my $srv = server($network);
		# Before what has arrived, after what is under way, and anywhere between.
		for my $to (1000, (47 << 20) + 777, map { $_ << 18 } 1, 5, 13, 30) {
			put("$www/victim", $want);
			utime 1, $to, "$www/victim" or die "utime: $!";         # not a version the server knows
			Test::Util::eventually(sub { (Test::Http::parse($srv->head('/victim'))->{header}{'content-length'} // 0) == $size });
			my $c = $srv->connect(rcvbuf => 65_536);
			$c->send(req('/victim'));
			my $head = $c->up_to("\r\n\r\n", time + Test::Util::PATIENCE) // '';
			like $head, qr/^Content-Length: $size\r$/mi, "$network: $size bytes are promised";
			my $got = $c->take(300_000);
			truncate "$www/victim", $to or die "truncate: $!";
			$got .= $c->rest;
			ok !$c->{timed_out}, '... and the connection ends';
			cmp_ok length $got, '<', $size, "... before that many, cut at $to";
			ok $got eq substr($want, 0, length $got), '... no wrong byte in ' . length $got;
		}
		is $srv->fetch('/direct/1')->{status}, 200, "$network: it goes on";
	}
	unlink "$www/victim";
};

subtest 'a reply of a replaced file is the old or the new version' => sub {
	my $app = app();
	for my $network (@backends) {
		my $srv = server($network, $app && $app->socket);
		# A letter and a length belong together.
		my %length = (A => 300_001, B => 150_000, C => 700_003, a => 5000, b => 4096, c => 9000);
		my $publish = sub {
			my ($letter) = @_;
			my $name = $letter =~ /[A-Z]/ ? 'app/large' : 'app/small';
			put("$www/$name.new", $letter x $length{$letter});
			rename "$www/$name.new", "$www/$name" or die "rename: $!";
		};
		$publish->($_) for qw(A a);
		my $pid = fork // die "fork: $!";
		if (!$pid) {            # the publisher
			alarm 60;
			my $parent = getppid;
			for (my $i = 1; getppid == $parent; $i++) {
				$publish->((qw(A B C))[$i % 3]);
				$publish->((qw(a b c))[$i % 3]) if $i % 2;
				select undef, undef, undef, 0.003;
			}
			POSIX::_exit(0);
		}
		my (%seen, @wrong);
		my @path = map { ("/$_/large", "/$_/small") } 'direct', $app ? 'app' : ();
		my @c = map { $srv->connect($_ % 2 ? (rcvbuf => 16_384) : ()) } 0 .. 7;
		my $end = time + 2.2;           # longer than anything is believed unchecked
		my $patience = $end + Test::Util::PATIENCE;     # on a busy machine the publisher is late
		while (time < $end || keys %seen < 4 && time < $patience) {
			$c[$_]->send(req($path[$_ % @path])) for 0 .. $#c;
			for (0 .. $#c) {
				my $r = $c[$_]->reply // {};
				my $letter = substr $r->{body} // '', 0, 1;
				$seen{$letter}++;
				$c[$_] = $srv->connect if !$r->{status} || $r->{cut} || ($r->{header}{connection} // '') eq 'close';
				next if $r->{status} && $r->{status} == 200 && $length{$letter} && $r->{body} eq $letter x $length{$letter};
				push @wrong, ($r->{status} // 'nothing') . ', ' . length($r->{body} // '') . " bytes that begin with \"$letter\"";
			}
		}
		kill KILL => $pid;
		waitpid $pid, 0;
		is_deeply \@wrong, [], "$network: each of the bodies is whole and of one version";
		cmp_ok scalar(keys %seen), '>=', 4, '... and new versions are seen' or diag explain \%seen;
	}
};

# ---------------------------------------------------------------- shortage

subtest 'descriptors run out: the server idles, and all come back' => sub {
	my $app = app();
	my $limit = 90;
	my $srv = server('gthread-aio', $app && $app->socket, nofile => $limit,
		conf => "server.max-worker = 1\nserver.max-keep-alive-idle = 60\n");
	my $path = $app ? '/app/20000' : '/direct/20000';
	is $srv->fetch($_)->{status}, 200, 'it serves with so few' for $path, '/direct/1';
	my $before = $srv->descriptors;
	my $load = Test::AccelLoad->start($srv, '/', '-c', 300, '-n', int 3000 / $slow, '-t', 60, '-d', 300, '--close', '--urls', $app ? "$www/list" : "$www/list-direct", '--verify', "dir:$www");
	my $r = $load->report;
	is $r->{answered}, int 3000 / $slow, 'far more clients than descriptors: each is answered';
	is $r->{errors}{all} - $r->{errors}{status}, 0, '... with the right bytes or a refusal' or diag explain $r->{errors};
	my @kept = map { my $c = $srv->connect; $c->send(req('/direct/1')); $c } 1 .. 2 * $limit;
	my $served = 0;
	for (@kept) { $served += (($_->reply // {})->{status} // 0) == 200 }
	is $served, 2 * $limit, 'more clients stay than there are descriptors: each has had its reply';
	# Clients that do not read their downloads are busy.  All have one address, so none makes room for another.
	open my $fh, '>', "$www/stalled" or die "stalled: $!";
	truncate $fh, 64 << 20 or die "truncate: $!";
	close $fh;
	my @c = map { my $c = $srv->connect(rcvbuf => 4096); $c->send(req('/stalled')); $c } 1 .. 2 * $limit;
	like $c[0]->take(12), qr/ 200/, 'the first of those that are busy is served';
	ok Test::Util::eventually(sub { grep({ $_->closed(0) } @kept) == @kept }), 'all that were idle have made room';
	$srv->wait_log(qr/ev=accept\.paused/);
	my $held = '';
	ok idles($srv, sub { $held .= $c[-1]->take(1, 0.5) }), 'the server idles while the last one waits';
	is $held, '', '... which gets nothing';
	$_->abort for splice @c, 0, -20;
	is scalar(grep { $_->take(12) =~ / 200/ } @c), 20, 'waiting clients are served when the others leave';
	$_->abort for splice @c;
	ok Test::Util::eventually(sub { $srv->descriptors <= $before + @size + 20 }), 'descriptors are back' or diag $srv->descriptors;
	is $srv->fetch($path)->{status}, 200, 'and so is everything else';
};

SKIP: {
	my $why = $> != 0 ? 'only root can mount' : !$own_mounts ? 'no mount namespace of our own' : '';
	my $disk = File::Temp->newdir('accel-log-XXXXXX', TMPDIR => 1);
	$why ||= 'tmpfs cannot be mounted' if $own_mounts && system('mount', '-t', 'tmpfs', '-o', 'size=4m', 'none', "$disk") != 0;
	skip "the disk of the log is full: $why", 1 if $why;
	subtest 'a full disk of the log stops no reply, and lost lines are counted' => sub {
		my $log = "$disk/error.log";
		open my $ballast, '>', "$disk/ballast" or die "ballast: $!";
		print $ballast 'x' x (4_096_000);
		close $ballast or die "ballast: $!";
		my $srv = server('linux-sendfile', undef, conf => qq{server.errorlog = "$log"\ndebug.log-timing = "enable"\n});
		# More lines than fit on the disk and into the two buffers before it.
		my $r = Test::AccelLoad->run($srv, '/', '-c', 20, '-n', 12_000, '-d', 300, '--urls', "$www/list-direct", '--verify', "dir:$www");
		is $r->{errors}{all}, 0, '12000 requests, no error' or diag explain $r->{errors};
		cmp_ok -s $log, '<', 12_000 * 100, 'whose lines did not fit';
		my $c = $srv->connect;
		ok idles($srv, sub { $c->take(1, 0.5) }), 'the server idles while the disk stays full';
		unlink "$disk/ballast" or die "ballast: $!";
		ok Test::Util::eventually(sub { $srv->fetch('/direct/1'); Test::Util::slurp($log) =~ /ev=log\.dropped .*lines=[1-9]/ }), 'with room again, it counts the lines that are missing';
		is $srv->stop, '', 'and ends well';
	};
	system 'umount', "$disk";
}

done_testing;
