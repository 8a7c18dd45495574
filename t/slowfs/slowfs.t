# The slow disk of the tests is slow once per name and block, then fast.  N spindles serve N requests at a time.  Its bytes are
# those of the source.  Only what the test orders hangs or fails.  A waiting process can be killed, and nothing stays mounted.
use v5.36;
use Fcntl qw(O_DIRECT O_RDONLY);
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp;
use IO::Select;
use POSIX ();
use Test::More;
use Accel::Slowfs;
use Test::Util ();
use Time::HiRes qw(time sleep);

my ($ok, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $ok;

my $src = File::Temp->newdir;
my %size = (empty => 0, one => 1, page_less => 4095, page => 4096, block => 131072, odd => 300_007);

sub put ($name, $bytes) { return Test::Util::put("$src/$name", $bytes) }

sub slurp ($path) {
	open my $fh, '<:raw', $path or return "cannot open: $!";
	local $/;
	return scalar <$fh> // '';
}

sub seconds :prototype(&) ($code) {
	my $t = time;
	$code->();
	return time - $t;
}

# Seconds that n processes need to do this once each, all at the same time.
sub at_once ($n, $code) {
	return seconds {
		my @pids;
		for my $i (1 .. $n) {
			my $pid = fork // die "fork: $!";
			if (!$pid) { $code->($i); POSIX::_exit(0) }
			push @pids, $pid;
		}
		waitpid $_, 0 for @pids;
	};
}

put($_, join '', map { chr(($_ * 7 + $_ / 251) % 256) } 1 .. $size{$_}) for sort keys %size;
put("f$_", "file $_\n") for 1 .. 64;
mkdir "$src/sub" or die "sub: $!";
put("sub/deep", "deep\n");
symlink 'sub/deep', "$src/link" or die "link: $!";

subtest 'each open asks, or none with --no-open' => sub {
	my $slow = Accel::Slowfs->start(source => $src, lookup_ms => 0, read_ms => 0, open_ms => 1);
	is slurp($slow->dir . '/f1'), "file 1\n", 'a file' for 1 .. 3;
	is $slow->stop->{opens}, 3, 'three opens';
	$slow = Accel::Slowfs->start(source => $src, lookup_ms => 0, read_ms => 0, open_ms => 1, no_open => 1);
	is slurp($slow->dir . '/f1'), "file 1\n", 'a file' for 1 .. 3;
	is slurp($slow->dir . '/sub/deep'), "deep\n", 'another one';
	is slurp($slow->dir . '/odd'), slurp("$src/odd"), 'a file of several reads';
	is $slow->stop->{opens}, 0, 'no open takes time';
};

subtest 'each name, present or absent, has one look-up of 300 ms' => sub {
	my $slow = Accel::Slowfs->start(source => $src, spindles => 16, lookup_ms => 300, read_ms => 300);
	my $d = $slow->dir;

	cmp_ok seconds { ok -e "$d/f1", 'found' }, '>=', 0.29, 'the first look-up is slow';
	cmp_ok seconds { stat "$d/f1" }, '<', 0.2, 'the second is fast';
	cmp_ok seconds { ok !-e "$d/none", 'not found' }, '>=', 0.29, 'an absence is slow';
	cmp_ok seconds { stat "$d/none" }, '<', 0.2, 'and then known';
	cmp_ok seconds { is slurp("$d/f1"), "file 1\n", 'content' }, '>=', 0.29, 'the first read is slow';
	cmp_ok seconds { is slurp("$d/f1"), "file 1\n", 'content' }, '<', 0.2, 'the second is fast';
	cmp_ok seconds { ok -e "$d/sub/deep", 'found' }, '>=', 0.58, 'each directory of a path costs its own';
	my $n = $slow->counts;
	is_deeply [@$n{qw(lookups opens reads)}], [4, 2, 1], 'requests counted';
};

subtest 'sixteen spindles work in parallel, in one directory too' => sub {
	my $slow = Accel::Slowfs->start(source => $src, spindles => 16, lookup_ms => 500, read_ms => 0);
	my $took = at_once(16, sub { stat $slow->dir . "/f$_[0]" });
	cmp_ok $took, '>=', 0.49, 'as long as one look-up';
	cmp_ok $took, '<', 2.5, 'not as long as sixteen';
};

subtest 'one spindle does one thing after the other' => sub {
	my $slow = Accel::Slowfs->start(source => $src, spindles => 1, lookup_ms => 50, read_ms => 0);
	cmp_ok at_once(16, sub { stat $slow->dir . "/f$_[0]" }), '>=', 16 * 0.049, 'sixteen look-ups';
};

subtest 'open can be slow each time, as on a network file system' => sub {
	my $slow = Accel::Slowfs->start(source => $src, lookup_ms => 0, open_ms => 100, read_ms => 0);
	for (1, 2) {
		cmp_ok seconds { slurp($slow->dir . '/f1') }, '>=', 0.099, "open $_";
	}
};

subtest 'an open drops the pages, with --drop-at-open' => sub {
	for my $drops (0, 1) {
		my $slow = Accel::Slowfs->start(source => $src, lookup_ms => 0, read_ms => 0, drop_at_open => $drops);
		is length slurp($slow->dir . '/block'), $size{block}, 'a file';
		my $first = $slow->counts->{reads};
		is length slurp($slow->dir . '/block'), $size{block}, 'again';
		cmp_ok $slow->stop->{reads}, $drops ? '>' : '==', $first, $drops ? 'each reader asks' : 'only the first reader asks';
	}
};

subtest 'the bytes are the bytes of the source' => sub {
	my $slow = Accel::Slowfs->start(source => $src, spindles => 4, lookup_ms => 1, read_ms => 1, jitter => 20);
	my $d = $slow->dir;
	for my $name (sort keys %size) {
		ok slurp("$d/$name") eq slurp("$src/$name"), "$name, $size{$name} bytes, cold";
		ok slurp("$d/$name") eq slurp("$src/$name"), "$name, hot";
		is -s "$d/$name", $size{$name}, "$name, its size";
	}
	is readlink("$d/link"), 'sub/deep', 'a link is a link';
	is slurp("$d/link"), "deep\n", 'and leads where it should';
	opendir my $dh, $d or die "$d: $!";
	my @there = sort grep { !/^\.\.?$/ } readdir $dh;
	opendir $dh, "$src" or die "$src: $!";
	is_deeply \@there, [sort grep { !/^\.\.?$/ } readdir $dh], 'the listing is complete';
	closedir $dh;
	ok !open(my $fh, '>', "$d/new"), 'nothing can be written';
};

# Runs the code in a process of its own, which ends with it. Its pid.
sub aside ($code) {
	my $pid = fork // die "fork: $!";
	return $pid if $pid;
	$code->();
	POSIX::_exit(0);
}

# True if it has ended within this many seconds; then $? has its status.
sub ended ($pid, $within) {
	my $deadline = time + $within;
	while (time < $deadline) {
		return 1 if waitpid($pid, POSIX::WNOHANG()) == $pid;
		sleep 0.01;
	}
	return 0;
}

# Bytes until the end or an error, and the error.
sub read_on ($path, $flags = 0) {
	sysopen my $fh, $path, O_RDONLY | $flags or return ('', "$!");
	my $got = '';
	while (my $n = sysread $fh, $got, 10_000, length $got) { $! = 0 }
	return ($got, $! ? "$!" : '');
}

sub disk (@arg) { return Accel::Slowfs->start(source => $src, spindles => 4, lookup_ms => 1, read_ms => 1, @arg) }

my ($EIO, $ENOENT, $EINVAL) = map { local $! = $_; "$!" } POSIX::EIO, POSIX::ENOENT, POSIX::EINVAL;

subtest 'attributes can be slow, once' => sub {
	my $slow = disk(lookup_ms => 0, getattr_ms => 300);
	my $d = $slow->dir;
	open my $fh, '<', "$d/f1" or die "f1: $!";
	cmp_ok seconds { stat $fh }, '<', 0.2, 'they come with the name';
	$slow->forget('/f1');
	cmp_ok seconds { stat $fh }, '>=', 0.29, 'forgotten: the disk is asked';
	cmp_ok seconds { stat $fh }, '<', 0.2, 'once';
};

subtest 'forget makes names cold without a new mount' => sub {
	my $slow = disk(lookup_ms => 300, read_ms => 300);
	my $d = $slow->dir;
	stat "$d/$_" for qw(f1 none sub/deep);
	slurp("$d/f1");
	open my $held, '<', "$d/f2" or die "f2: $!";
	sysread $held, my $bytes, 100;
	cmp_ok seconds { stat "$d/none"; slurp("$d/f1"); stat "$d/sub/deep" }, '<', 0.25, 'all is known';

	$slow->forget('/f1');
	cmp_ok seconds { stat "$d/none"; stat "$d/sub/deep" }, '<', 0.25, 'others still are';
	cmp_ok seconds { is slurp("$d/f1"), "file 1\n", 'content' }, '>=', 0.58, 'look-up and read are slow again';

	$slow->forget;
	cmp_ok seconds { stat "$d/none" }, '>=', 0.29, 'so is an absence';
	cmp_ok seconds { stat "$d/sub/deep" }, '>=', 0.58, 'and a directory and what is in it';
	sysseek $held, 0, 0;
	cmp_ok seconds { sysread $held, $bytes, 100 }, '>=', 0.29, 'and the pages of an open file';
	is $bytes, "file 2\n", 'which has not changed';

	my $before = $slow->state->{lookups};
	put('none', "now it is there\n");
	$slow->forget('/none');
	is slurp("$d/none"), "now it is there\n", 'what was absent is found';
	unlink "$src/none";
	is $slow->state->{lookups}, $before + 1, 'by one look-up';
};

subtest 'hang lasts until go' => sub {
	my $slow = disk(spindles => 2);
	my $d = $slow->dir;
	slurp("$d/f1");
	stat "$d/f9";
	is $slow->hanging, 0, 'nothing hangs';
	$slow->hang('/f[2-9]');
	my @pids = map { my $n = $_; aside(sub { POSIX::_exit(slurp("$d/f$n") eq "file $n\n" ? 0 : 1) }) } 2 .. 9;
	ok $slow->wait_hanging(8), 'eight hang';
	cmp_ok $slow->state->{hanging}, '==', 8, 'no more than that';
	is slurp("$d/f1"), "file 1\n", 'what is known is there';
	is slurp("$d/f10"), "file 10\n", 'other files too: those that hang hold no spindle';
	ok !ended($pids[0], 0.2), 'they still wait';
	eval { $slow->forget };
	like $@, qr/`go` first/, 'forget would wait for them, so it refuses';
	$slow->go;
	is scalar(grep { ended($_, 10) && $? == 0 } @pids), 8, 'all go on and read what they should';
	is $slow->state->{rules}, 0, 'and the rule is gone';
};

subtest 'hang_spindle keeps the spindle' => sub {
	my $slow = disk(spindles => 2);
	my $d = $slow->dir;
	$slow->hang_spindle('/f[12]');
	my @pids = map { my $n = $_; aside(sub { slurp("$d/f$n") }) } 1, 2;
	ok $slow->wait_hanging(2), 'two hang';
	push @pids, aside(sub { slurp("$d/f3") });
	ok !ended($pids[2], 0.5), 'another file has to wait';
	kill KILL => $pids[0];
	ok ended($pids[0], 10), 'a reader can be killed';
	ok !ended($pids[2], 0.5), 'its spindle is still stuck';
	$slow->go;
	ok ended($_, 10), 'goes on' for @pids[1, 2];
};

subtest 'hang_after hangs in the middle of a file' => sub {
	my $slow = disk();
	my $d = $slow->dir;
	pipe my $rd, my $wr or die "pipe: $!";
	$slow->hang_after(200 * 1024, '/odd');
	my $pid = aside(sub {
		open my $fh, '<:raw', "$d/odd" or POSIX::_exit(1);
		while (my $n = sysread $fh, my $bytes, 4096) { syswrite $wr, $bytes }
	});
	close $wr;
	my $got = '';
	1 while length $got < 200 * 1024 and sysread $rd, $got, 65536, length $got;
	ok $slow->wait_hanging(1), 'hangs';
	ok !IO::Select->new($rd)->can_read(0.3), 'and nothing comes';
	is length $got, 200 * 1024, 'exactly there';
	is slurp("$d/f1"), "file 1\n", 'a shorter file does not';
	$slow->go;
	1 while sysread $rd, $got, 65536, length $got;
	ok $got eq slurp("$src/odd"), 'then the rest comes';
	ok ended($pid, 10), 'and the end';
};

subtest 'fail, fail_after' => sub {
	my $slow = disk();
	my $d = $slow->dir;
	my $odd = slurp("$src/odd");
	for my $offset (0, 4096, 200_704, 299_008) {
		$slow->forget;
		$slow->fail_after($offset, 'EIO', '/odd');
		my ($got, $error) = read_on("$d/odd");
		is $error, $EIO, "EIO after $offset";
		ok $got eq substr($odd, 0, $offset), 'exactly there, and what was before is right';
		$slow->go;
	}
	is_deeply [read_on("$d/odd")], [$odd, ''], 'after go, all of it';

	$slow->forget;
	$slow->fail_after(12_345, 'EIO', '/odd');
	my ($got, $error) = read_on("$d/odd", O_DIRECT);
	is $error, $EIO, 'a direct read fails, too';
	ok $got eq substr($odd, 0, 10_000), 'that which touches the offset';
	is -s "$d/odd", length $odd, 'and the kernel does not take that for the end of the file';
	$slow->go;

	$slow->fail('EACCES', '/s*');
	$slow->fail('ENOENT', '/sub/deep');
	is slurp("$d/f1"), "file 1\n", 'others do not fail';
	like slurp("$d/sub/deep"), qr/^cannot open: (?!\Q$ENOENT\E)/, 'the directory fails first';
	$slow->go;
	$slow->forget;
	$slow->fail('ENOENT', '/sub/deep');
	is slurp("$d/sub/deep"), "cannot open: $ENOENT", 'the error is the one ordered';
	ok -d "$d/sub", 'its directory is there';

	for my $wrong (['fail', 'EWHAT'], ['fail', 'ENOSYS'], ['fail-after', 'x', 'EIO'], ['fail-after', -1, 'EIO'],
	    ['hang', 'f1'], ['refuse-direct', 'perhaps'], ['what']) {
		ok !eval { $slow->order(@$wrong); 1 }, "refused: @$wrong";
	}
};

subtest 'direct reads, and a file system that has none' => sub {
	for my $arg ({}, { no_async_dio => 1 }) {
		my $slow = disk(spindles => 8, %$arg);
		my $d = $slow->dir;
		is_deeply [read_on("$d/odd", O_DIRECT)], [slurp("$src/odd"), ''], 'the bytes';
		cmp_ok $slow->state->{reads}, '>=', 31, 'each read reached the disk';
		$slow->refuse_direct(1);
		is_deeply [read_on("$d/odd", O_DIRECT)], ['', $EINVAL], 'refused';
		is slurp("$d/f1"), "file 1\n", 'others read on';
		$slow->refuse_direct(0);
		is_deeply [read_on("$d/one", O_DIRECT)], [slurp("$src/one"), ''], 'allowed again';
	}
	for my $case ([1, '<', 'at the same time'], [0, '>=', 'one after the other, without async-dio']) {
		my ($async, $cmp, $text) = @$case;
		my $slow = disk(spindles => 8, read_ms => 300, $async ? () : (no_async_dio => 1));
		sysopen my $fh, $slow->dir . '/odd', O_RDONLY | O_DIRECT or die "odd: $!";
		cmp_ok seconds { sysread $fh, my $bytes, 300_007 }, $cmp, 0.85, "three requests of 300 ms, $text";
	}
};

subtest 'a waiting process can be killed' => sub {
	my %wait = (
		'a look-up' => sub { stat "$_[0]/f1" },
		'a read'    => sub { slurp("$_[0]/odd") },
		'a direct read' => sub { read_on("$_[0]/odd", O_DIRECT) },
	);
	for my $what (sort keys %wait) {
		my $slow = disk();
		my $d = $slow->dir;
		$what =~ /read/ ? do { stat "$d/odd"; $slow->hang_after(0) } : $slow->hang;
		my $pid = aside(sub { local $SIG{USR1} = sub { }; $wait{$what}->($d) });
		ok $slow->wait_hanging(1), "$what hangs";
		kill USR1 => $pid;
		ok !ended($pid, 0.4), 'a signal with a handler does not end it';
		kill KILL => $pid;
		ok ended($pid, 10), 'KILL does';
		my $deadline = time + 10;
		sleep 0.01 while $slow->hanging && time < $deadline;
		is $slow->hanging, 0, 'nothing is left';
	}
	{
		my $slow = disk();
		$slow->hang;
		my $pid = aside(sub { stat $slow->dir . '/f1' });
		ok $slow->wait_hanging(1), 'a look-up hangs';
		kill TERM => $pid;
		ok ended($pid, 10), 'TERM without a handler ends it';
	}
	my $slow = disk(spindles => 1, lookup_ms => 5000);
	my @pids = map { my $n = $_; aside(sub { stat $slow->dir . "/f$n" }) } 1 .. 2;
	my $deadline = time + 4;
	sleep 0.01 while time < $deadline && ($slow->state->{serving} < 1 || $slow->state->{waiting} < 1);
	kill KILL => @pids;
	cmp_ok seconds { ended($_, 10) for @pids }, '<', 3, 'one that is served, one in the queue';
};

subtest 'two mounts are two devices' => sub {
	my ($one, $two) = (disk(), disk());
	isnt +(stat $one->dir)[0], (stat $two->dir)[0], 'st_dev differs';
	$one->hang;
	is slurp($two->dir . '/f1'), "file 1\n", 'one hangs, the other does not';
};

subtest 'slowfs ends while requests hang' => sub {
	for my $how (qw(TERM KILL)) {
		my $slow = disk();
		my ($d, $pid) = ($slow->dir, $slow->pid);
		$slow->hang;
		my $reader = aside(sub { POSIX::_exit(slurp("$d/f1") =~ /^cannot open/ ? 0 : 1) });
		ok $slow->wait_hanging(1), 'a reader hangs';
		kill $how => $pid;
		ok ended($reader, 10), "$how: it has an answer";
		is $?, 0, 'which is an error';
		cmp_ok seconds { $slow->stop }, '<', 5, 'stop does not wait';
		ok !$slow->mounted, 'not mounted any more';
	}
	# forget waits in the kernel for locks that waiting requests hold.  No signal reaches it there.
	for my $how (qw(TERM KILL)) {
		my $slow = disk(lookup_ms => 100);
		my ($d, $pid, $end) = ($slow->dir, $slow->pid, time + 2);
		my @busy = map { my $n = $_; aside(sub { while (time < $end) { stat "$d/f$_" for $n .. $n + 8 } }) } 1 .. 8;
		push @busy, aside(sub { eval { $slow->forget while 1 } });
		sleep 1;
		kill $how => $pid;
		ok ended($pid, 10), "$how while the kernel forgets";
		is scalar(grep { ended($_, 10) } @busy), 9, 'none is stuck';
		$slow->stop;
		ok !$slow->mounted, 'not mounted any more';
	}

	my $slow = disk();
	my $d = $slow->dir;
	$slow->hang;
	my $reader = aside(sub { slurp("$d/f1") });
	ok $slow->wait_hanging(1), 'a reader hangs';
	undef $slow;
	ok ended($reader, 10), 'the object goes, and lets it go';
};

subtest 'a mount below its own source is refused' => sub {
	mkdir "$src/mnt" or die "mnt: $!";
	like qx(@{[Accel::Slowfs::binary()]} $src $src/mnt 2>&1), qr/is inside of/, 'it would wait for itself';
	rmdir "$src/mnt";
};

subtest 'files can be written, slowly' => sub {
	put('written', 'a' x 200_000);
	my $slow = Accel::Slowfs->start(source => $src, lookup_ms => 0, read_ms => 0, spindles => 1);
	ok !open(my $no, '+<', $slow->dir . '/written'), 'not without --write-ms';
	like "$!", qr/read-only/i, 'the mount is read-only';
	$slow->stop;
	$slow = Accel::Slowfs->start(source => $src, lookup_ms => 0, read_ms => 0, write_ms => 100, spindles => 1);
	my $took = seconds {
		open my $fh, '+<:raw', $slow->dir . '/written' or die "written: $!";
		syswrite $fh, 'b' x 150_000;
		close $fh;
	};
	cmp_ok $took, '>=', 0.19, 'two requests of 100 ms';
	is $slow->counts->{writes}, 2, 'they are counted';
	is slurp("$src/written"), ('b' x 150_000) . ('a' x 50_000), 'the bytes are in the source';
	is slurp($slow->dir . '/written'), ('b' x 150_000) . ('a' x 50_000), 'and in the mount';
	$slow->fail('EIO', '/written');
	my $opened = open my $fh, '+<:raw', $slow->dir . '/written';
	ok !($opened && defined syswrite $fh, 'c'), 'it fails on order';
	$slow->stop;
};

subtest 'wrong options' => sub {
	for (['--read-ms -1', 'expected 0 to 60000'], ['--jitter 101', 'expected 0 to 100'], ['--spindles 0', 'expected 1 to 1024'], ['', 'expected SOURCE and MOUNTPOINT']) {
		my ($words, $why) = @$_;
		like qx(@{[Accel::Slowfs::binary()]} $words 2>&1), qr/^slowfs: .*$why/, $why;
		is $? >> 8, 64, 'its status';
	}
	like qx(@{[Accel::Slowfs::binary()]} --manual=roff), qr/^\.TH.*\.SH ORDERS/ms, 'the manual';
};

subtest 'nothing stays mounted' => sub {
	my $slow = Accel::Slowfs->start(source => $src);
	my $mnt = $slow->dir;
	ok $slow->mounted, 'mounted';
	$slow->stop;
	ok !$slow->mounted, 'not after stop';

	my $pid = fork // die "fork: $!";
	if (!$pid) {
		my $inner = Accel::Slowfs->start(source => $src);
		open my $fh, '>', "$src/../slowfs-mnt.$$" or POSIX::_exit(1);
		print $fh $inner->dir;
		close $fh;
		kill KILL => $$;
	}
	waitpid $pid, 0;
	my $lost = slurp("$src/../slowfs-mnt.$pid");
	unlink "$src/../slowfs-mnt.$pid";
	ok Test::Util::eventually(sub { slurp('/proc/self/mounts') !~ /\Q$lost\E/ }), 'nor after the test was killed';
	rmdir $lost;
};

done_testing;
