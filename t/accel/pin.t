#!/usr/bin/perl
# Files that fcgi-stat-accel has answered stay in memory until the web server has probably sent them: another program cannot
# drop them, and a memory cgroup takes others. They leave when their time is over, and never take more than --pin.
use v5.36;
use File::Temp ();
use Test::More;
use Test::Fcgi qw(put eventually);
use Test::Cgroup;
use Test::Util qw(slurp);

use constant { SIZE => 100_000, PAGES => 25, MB => 1 << 20 };

# Not in /tmp, which may be tmpfs: that drops no pages.
my $dir = File::Temp->newdir('pin-XXXXXX', DIR => Test::Util::build_dir());
my $tree = Cwd::abs_path("$dir");
chmod 0755, $tree;
put("$tree/f$_", $_ x SIZE) for 1 .. 9;
put("$tree/g$_", 'x' x SIZE) for 1 .. 30;
put("$tree/long", 'x' x (3 * MB));
put("$tree/index.html", 'x' x SIZE);
system 'sync', '-f', $tree;

sub run_quietly (@command) { return system('sh', '-c', 'exec "$@" >/dev/null 2>&1', 'sh', @command) }

sub drop (@names) { run_quietly('dd', "if=$tree/$_", 'iflag=nocache', 'count=0') for @names; return }

sub pages ($name) {
	my $said = qx(fincore --noheadings --raw --output PAGES '$tree/$name');
	die "fincore: $said\n" unless $said =~ /^(\d+)/;
	return $1;
}

# The pages that remain after another program has tried to drop them.
sub stay ($name) { drop($name); return pages($name) }

sub up (@options) {
	my $how = ref $options[0] ? shift @options : {};
	return Test::Fcgi->start($how, '--status-path=/st', '--remember=0', "--root=$tree", @options);
}

sub status ($app) {
	my %v = $app->ask(SCRIPT_NAME => '/st')->{body} =~ /^accel\.(\S+): (\d+)$/mg;
	return \%v;
}

sub ask ($app, $name, @more) {
	return $app->ask(REQUEST_METHOD => 'GET', SCRIPT_FILENAME => "$tree/$name", @more)->{status};
}

# Waits until the accelerator pins no file any more.
sub over ($app) { return eventually(sub { status($app)->{'pins.locked'} == 0 }) }

sub down ($app) {
	is $app->stop, 0, 'it ends with 0';
	unlike $app->log_text, qr/level=(error|alert)/, 'no error in its log';
	return;
}

subtest 'a file that was read stays for a time' => sub {
	my $app = up();
	is stay('f1'), 0, 'a file that nobody asked for is dropped';
	is ask($app, 'f1'), 200, 'answered';
	is stay('f1'), PAGES, 'every page stays';
	is status($app)->{'pins.bytes'}, 4096 * PAGES, 'the status page shows its bytes';
	is status($app)->{'pins.windows'}, 1, '... and counts it';
	is ask($app, 'f1'), 200, 'answered again';
	is status($app)->{'pins.windows'}, 1, 'it is not locked twice';
	cmp_ok status($app)->{'pins.again'}, '>=', 1, 'it has a new time';
	ok over($app), 'the time ends, without a request';
	is stay('f1'), 0, 'then it is dropped';
	is status($app)->{'pins.bytes'}, 0, 'nothing is held';
	down($app);
};

subtest 'what is wanted of a file' => sub {
	my $app = up('--index=index.html');
	drop(qw(f2 f3 f4 long index.html));
	is ask($app, 'f2', HTTP_RANGE => 'bytes=40960-49151'), 200, 'a range';
	my $pages = stay('f2');
	ok $pages >= 2 && $pages < PAGES, 'its pages, and those that the kernel holds together with them' or diag "$pages pages";
	is $app->ask(REQUEST_METHOD => 'HEAD', SCRIPT_FILENAME => "$tree/f3")->{status}, 200, 'HEAD';
	is stay('f3'), 0, 'no page';
	is ask($app, 'none'), 404, 'a missing file';
	is ask($app, ''), 200, 'a directory';
	is stay('index.html'), PAGES, 'its index file';
	is ask($app, 'long'), 200, 'a long file';
	cmp_ok stay('long'), '>=', 3 * MB / 4096, 'all its windows';
	is status($app)->{'pins.refused'}, 0, 'none refused';
	down($app);
};

# If no file had to be read, no bytes leave memory, so none are locked.
subtest 'a file that was in memory' => sub {
	my $app = up();
	slurp("$tree/f5");
	is ask($app, 'f5'), 200, 'in memory, and nothing is short';
	is status($app)->{'pins.windows'}, 0, 'not locked';
	drop('f6');
	is ask($app, 'f6'), 200, 'a cold file';
	is ask($app, 'f5'), 200, 'in memory, beside a cold one';
	is status($app)->{'files.hot'}, 2, 'the loop has answered both times';
	ok eventually(sub { status($app)->{'pins.windows'} == 2 }), 'a thread locks it after the answer';
	is stay('f5'), PAGES, 'it stays';
	down($app);
};

subtest 'the bound' => sub {
	my $app = up('--pin=1m');
	drop(map {"g$_"} 1 .. 30);
	my $most = 0;
	for (1 .. 30) {
		is ask($app, "g$_"), 200, "file $_" if $_ % 10 == 0 or ask($app, "g$_") != 200;
		my $s = status($app);
		$most = $s->{'pins.bytes'} if $most < $s->{'pins.bytes'};
	}
	cmp_ok $most, '<=', MB, 'never more than --pin';
	cmp_ok $most, '>', MB - 2 * SIZE, '... and nearly all of it is used';
	my $s = status($app);
	is $s->{'pins.windows'}, 30, 'all files were locked';
	cmp_ok $s->{'pins.locked'}, '<=', 10, '... and older ones had to go';
	is stay('g30'), PAGES, 'the last one stays';
	is stay('g1'), 0, 'the first one does not';
	drop('long');
	is ask($app, 'long'), 200, 'a longer file than --pin';
	cmp_ok status($app)->{'pins.refused'}, '>', 0, 'its windows over half of --pin are not locked (accel.pins.refused)';
	cmp_ok status($app)->{'pins.bytes'}, '<=', MB, 'within the bound';
	down($app);
	$app = up('--pin=0');
	is ask($app, 'f7'), 200, '--pin=0';
	is stay('f7'), 0, 'nothing stays';
	is status($app)->{'pins.limit'}, 0, 'the status page shows it';
	down($app);
};

subtest 'an earlier answer holds while the file is pinned' => sub {
	my $app = up('--remember=60000', '--pin=1m');
	drop(map {"g$_"} 1 .. 30);
	is ask($app, 'g1'), 200, 'read';
	drop('g1');
	is ask($app, 'g1'), 200, 'asked again';
	is status($app)->{'files.remembered'}, 1, 'the earlier answer counts';
	ask($app, "g$_") for 2 .. 30;
	drop('g1');
	is ask($app, 'g1'), 200, 'asked again, when it has left';
	my $s = status($app);
	is $s->{'files.remembered'}, 1, 'the earlier answer does not count';
	is $s->{'files.cold'}, 31, 'it was read again';
	down($app);
};

subtest 'a file that changes' => sub {
	my $app = up();
	drop('f8', 'f9');
	is ask($app, 'f8'), 200, 'pinned';
	truncate "$tree/f8", 10;
	is ask($app, 'f8'), 200, 'shorter than its pin';
	is ask($app, 'f9'), 200, 'pinned';
	unlink "$tree/f9";
	is ask($app, 'f9'), 404, 'removed';
	ok over($app), 'both end';
	ok !(grep { /pin-.*f[89]/ } split /\n/, slurp("/proc/" . $app->pid . "/maps")), 'no mapping is left';
	down($app);
};

# Root must not have the rights to raise the limit and to ignore it.
subtest 'a small limit of the system' => sub {
	my @limit = ('prlimit', '--memlock=' . MB, $> == 0 ? ('setpriv', '--bounding-set=-ipc_lock,-sys_resource') : ());
	my $app = up({ under => \@limit }, '--pin=3m');
	is status($app)->{'pins.limit'}, MB, 'what fits is used';
	my @said = $app->log_text =~ /^.*ev=pin\.limit.*$/mg;
	is scalar @said, 1, 'one line says so';
	like $said[0], qr/level=warn.*asked=3145728 locked=1048576.*LimitMEMLOCK=.*ulimit -l/, '... with numbers and what to do';
	drop(map {"g$_"} 1 .. 15);
	ask($app, "g$_") for 1 .. 15;
	is stay('g15'), PAGES, 'files are pinned';
	is status($app)->{'pins.refused'}, 0, 'the system refuses none';
	down($app);
};

subtest 'the limit is raised before root is dropped' => sub {
	plan skip_all => 'only root can drop root' unless $> == 0;
	my $limit = '--memlock=65536:' . 4 * MB;        # soft and hard
	my $app = up({ own => 1, under => ['prlimit', $limit] }, '--listen=unix:@SOCKET@', '--user=nobody', '--pin=2m');
	is status($app)->{'pins.limit'}, 2 * MB, 'all of --pin';
	unlike $app->log_text, qr/pin\.limit/, 'no warning';
	drop('f1');
	is ask($app, 'f1'), 200, 'answered';
	is stay('f1'), PAGES, 'and pinned, in the sandbox';
	down($app);
};

# The other files are holes: they need memory and no disk.
subtest 'a memory cgroup takes other files' => sub {
	plan skip_all => 'a sanitizer does not fit into the cgroup' if Test::Util::sanitized();
	my ($usable, $why) = Test::Cgroup->usable;
	plan skip_all => $why unless $usable;
	my $group = Test::Cgroup->new(bytes => 32 * MB);
	put("$tree/holes", '');
	truncate "$tree/holes", 64 * MB;
	my @inside = ('sh', '-c', 'echo $$ >"$1/cgroup.procs" || exit; shift; exec "$@"', 'sh', $group->dir);
	for my $pin ('8m', 0) {
		my $app = up({ under => \@inside }, "--pin=$pin");
		my $cold = 0;
		for (1 .. 5) {
			drop('f1', 'holes');
			ask($app, 'f1');
			my $before = status($app)->{'files.cold'};
			run_quietly(@inside, 'cat', "$tree/holes");
			ask($app, 'f1');
			$cold += status($app)->{'files.cold'} - $before;
		}
		$pin ? is $cold, 0, 'a pinned file stays' : cmp_ok $cold, '>', 0, 'without --pin it leaves';
		down($app);
	}
};

done_testing;
