# accel-warm touches every file of a tree or a list, under any name.  It reports what it cannot read.  A run that was killed
# goes on where it was.
use v5.36;
use File::Temp;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use JSON::PP ();
use POSIX ();
use Test::More;
use Accel::Slowfs;
use Test::Walk;
use Time::HiRes qw(time sleep);

subtest 'every file of a tree is touched' => sub {
	my $dir = File::Temp->newdir;
	mkdir "$dir/$_" or die $! for qw(a a/b empty);
	put("$dir/$_", 'x' x 1000) for qw(one a/two a/b/three);
	symlink 'one', "$dir/link" or die $!;
	for my $how (qw(stat open read:100 read:all)) {
		my $n = numbers("--warm=$how", "$dir");
		is "$n->{files} $n->{directories} $n->{others}", '3 4 1', "... counts with --warm=$how";
		is $n->{bytes}, { 'read:100' => 300, 'read:all' => 3000 }->{$how} // 0, '... and reads what it should';
	}
	my ($rc, $out) = warm("$dir");
	like $out, qr/^3 files, 4 directories, 3.0 kB in \d+\.\d+ s: \d+ files\/s, .*; 1 links and other names; 0 errors\n\z/, 'the summary';
	is_deeply [warm('-q', "$dir")], [0, '', ''], '--quiet';
	is numbers('-j3', '-wstat', "$dir")->{bytes}, 0, 'values in the same word';
	like +(warm('-jx', "$dir"))[2], qr/^accel-warm: --threads: expected 1 to \d+, got "x"$/m, '... wrong ones, too';
};

my ($rig, $no_rig) = Accel::Slowfs->usable;

subtest 'names with any bytes and deep trees are touched' => sub {
	my $dir = File::Temp->newdir;
	my @names = ("new\nline", "\xff\xfe invalid", ' blank ', '-dash', '"quotes\\"', 'x' x 255, "\e[31m", '%41', '*');
	put("$dir/$_", 'x') for @names;
	mkdir "$dir/deep" or die $!;
	my $pid = fork // die "fork: $!";
	if (!$pid) {            # its paths are too long, so from step to step
		chdir "$dir/deep";
		for (1 .. 200) { mkdir 'd' x 40; chdir 'd' x 40 or POSIX::_exit(1); put('file', 'x') }
		POSIX::_exit(0);
	}
	waitpid $pid, 0;
	is $?, 0, '200 levels, 8200 bytes of path';
	my $n = numbers("$dir");
	is "$n->{files} $n->{directories}", (@names + 200) . ' 202', 'all of them';
	my ($rc, $out) = run_with(join("\0", map { "$dir/$_" } @names), '--json', '-0', '-l', '-');
	is $rc, 0, 'the same from a list with NUL bytes';
	is JSON::PP::decode_json($out)->{files}, scalar @names, '... all of them';
	$n = numbers("$dir/-dash", "$dir/\xff\xfe invalid");
	is $n->{files}, 2, 'files on the command line';
};

subtest 'few descriptors are enough' => sub {
	my $dir = File::Temp->newdir;
	make_tree("$dir", 60, 3);
	mkdir "$dir/" . join('/', ('e') x $_) or die $! for 1 .. 40;
	for ([100, 11], [60, 4]) {
		my ($n, $threads) = @$_;
		my $err = File::Temp->new;
		my $out = qx{ulimit -n $n; $program --json $dir 2>$err};
		is $?, 0, "ulimit -n $n";
		is_deeply [@{ JSON::PP::decode_json($out) }{qw(files directories errors)}], [180, 101, 0], '... all was walked';
		like slurp("$err"), qr/^accel-warm: using $threads threads instead of 32: .*\n\z/, '... by fewer threads';
	}
};

subtest 'links are followed with -L only' => sub {
	my $dir = File::Temp->newdir;
	mkdir "$dir/$_" or die $! for qw(tree tree/sub other);
	put("$dir/$_", 'x') for qw(tree/file other/file);
	symlink $_->[0], "$dir/tree/$_->[1]" or die $!
	    for ['..', 'up'], ['.', 'sub/here'], ['../other', 'out'], ['self', 'self'], ['nowhere', 'dead'], ['file', 'again'];
	my $n = numbers("$dir/tree");
	is_deeply [@$n{qw(files directories others)}], [1, 2, 6], 'are not followed, but looked up';
	$n = numbers('-L', "$dir/tree");
	is_deeply [@$n{qw(files directories others)}], [3, 4, 2], 'are followed, loops end, what leads nowhere is looked up';
	cmp_ok $n->{again}, '>=', 2, '... directories that were met again are counted';
	symlink 'tree', "$dir/root" or die $!;
	is numbers("$dir/root")->{files}, 1, 'a root may be a link';
};

subtest 'patterns select files' => sub {
	my $dir = File::Temp->newdir;
	mkdir "$dir/$_" or die $! for qw(img img/old css);
	put("$dir/$_", 'x') for qw(a.jpg img/b.jpg img/c.png img/old/d.jpg css/e.css);
	my %seen = (
		'--include=*.jpg'                            => 3,
		'--exclude=old'                              => 4,
		'--include=*.jpg --exclude=old'              => 2,
		'--include=img/*.jpg'                        => 1,
		'--exclude=/img/*'                           => 2,
		'--include=*.jpg --include=*.css'            => 4,
		'--include=[ac].*'                           => 2,
	);
	is numbers((split ' '), "$dir")->{files}, $seen{$_}, "$_" for sort keys %seen;
	symlink '../a.jpg', "$dir/css/link.gif" or die $!;
	is numbers('-L', '--include=*.css', "$dir")->{files}, 1, 'the name of the link counts';
};

subtest 'lists name files' => sub {
	my $dir = File::Temp->newdir;
	mkdir "$dir/sub" or die $!;
	put("$dir/$_", 'x') for 'one', 'sub/two', 'a b', '50%';
	my ($rc, $out, $err) = run_with("one\n/sub/two\n\n\nsub\nsub/nothing\na b\n../../../none\n" . 'y' x 300 . "\n" . 'z' x 200_000 . "\n50%",
	    '--json', '-l', '-', '-r', "$dir");
	my $n = JSON::PP::decode_json($out);
	is $rc, 1, 'garbage between good lines';
	is_deeply [@$n{qw(files directories errors)}], [4, 1, 4], '... what is good is warm, the rest is counted';
	like $err, qr/^accel-warm: "\Q$dir\E\/sub\/nothing": No such file or directory$/m, '... and told';
	like $err, qr/zzz": not a path$/m, '... a line without an end, too';

	put("$dir/urls", "http://example.org/a%20b?x=1#y\r\n/50%25\n//sub/../one\n/../../etc/passwd\n/bad%zz\nhttps://example.org\n");
	($rc, $out, $err) = warm('--json', '--list', "$dir/urls", '--urls', '--root', "$dir");
	$n = JSON::PP::decode_json($out);
	is_deeply [$rc, @$n{qw(files directories errors)}], [1, 3, 1, 2], 'URLs are decoded, and do not leave their root';
	like $err, qr/etc\/passwd": not a path/, '... and it is said which would';
	is +(warm('-l', "$dir/none"))[0], 66, 'no list';
	is +(warm('-l', "$dir/urls", '-r', "$dir/none"))[0], 66, 'no root';
	is numbers('-l', '/dev/null')->{found}, 0, 'an empty list';
};

subtest 'a wrong option has one message' => sub {
	for my $args ([], ['a', '-l', 'b'], ['-0', 'a'], ['-u', '-l', 'a'], ['-w', 'all', 'a'], ['-w', 'read:', 'a'], ['-j', '0', 'a'],
		['--rate', '0', 'a'], ['--bandwidth', 'fast', 'a'], ['-x', '-l', 'a'], ['--none', 'a'], ['--manual=none']) {
		my ($rc, $out, $err) = warm(@$args);
		is "$rc $out", '64 ', "@$args";
		like $err, qr/^accel-warm: .+\n\z/, '... one line says why';
	}
	my ($rc, $out, $err) = warm('/nonexistent/path');
	is $rc, 1, 'a root that is not there';
	like $err, qr/^accel-warm: "\/nonexistent\/path": No such file or directory\n\z/, '... is named';
};

subtest 'unreadable files are reported' => sub {
	my $dir = File::Temp->newdir;
	make_tree("$dir", 3, 30);
	chmod 0755, "$dir";
	chmod 0, "$dir/d1" or die $!;
	chmod 0, "$dir/d2/f$_" or die $! for 1 .. 30;
	my $pid = open(my $fh, '-|') // die "fork: $!";
	if (!$pid) {
		POSIX::dup2(1, 2);
		if ($> == 0) { POSIX::setgid(65534); POSIX::setuid(65534) }
		{ no warnings; exec $program, "$dir" }
		POSIX::_exit(127);
	}
	my $said = do { local $/; <$fh> };
	close $fh;
	is $? >> 8, 1, 'exit status';
	like $said, qr/^30 files, 3 directories, .*; 31 errors$/m, 'what is left is done, with how many errors';
	is scalar(() = $said =~ /Permission denied$/mg), 20, 'twenty are reported';
	like $said, qr/^accel-warm: further failures are counted/m, '... and that there are more';
	chmod 0755, "$dir/d1";
};

subtest 'a rate limits the run' => sub {
	my $dir = File::Temp->newdir;
	make_tree("$dir", 2, 60);
	my $t = time;
	is numbers('--rate', '200', "$dir")->{files}, 120, '120 files';
	cmp_ok time - $t, '>=', 0.55, '... at 200 a second';
	put("$dir/large", 'x' x 1_000_000);
	$t = time;
	is numbers('--bandwidth', '1m', '-w', 'read:all', '-j', '4', "$dir/large")->{bytes}, 1_000_000, '1 MB';
	cmp_ok time - $t, '>=', 0.8, '... at 1 MiB a second';
};

subtest '-x skips other file systems' => sub {
	plan skip_all => $no_rig unless $rig;
	my ($src, $dir) = map { File::Temp->newdir } 1 .. 2;
	put("$src/there", 'x');
	put("$dir/here", 'x');
	mkdir "$dir/mnt" or die $!;
	my $slow = Accel::Slowfs->start(source => "$src", at => "$dir/mnt", lookup_ms => 0, read_ms => 0);
	is numbers("$dir")->{files}, 2, 'are walked';
	$slow->forget;
	$slow->hang;
	my $n = numbers('-x', "$dir");
	is "$n->{files} $n->{elsewhere}", '1 1', '... but not with -x';
	is $slow->hanging, 0, '... which does not even ask what is mounted there';
	$slow->stop;
};

subtest 'each file of a slow disk is read once' => sub {
	plan skip_all => $no_rig unless $rig;
	my $src = File::Temp->newdir;
	make_tree("$src", 8, 50);
	my @files = map { my $d = $_; map { "d$d/f$_" } 1 .. 50 } 1 .. 8;
	my $slow = Accel::Slowfs->start(source => "$src", spindles => 16, lookup_ms => 10, read_ms => 10);
	my $n = numbers($slow->dir);
	is $n->{files}, 400, 'all files';
	is_deeply [@{ $slow->counts }{qw(lookups reads)}], [408, 400], 'one look-up a name, one read a file';
	is still_cold($slow, @files), 0, 'nothing is cold';
	cmp_ok $n->{seconds}, '<', (408 + 400) * 0.010 / 2, 'it had many requests under way';
	$slow->forget;
	numbers('--warm=stat', $slow->dir);
	is $slow->counts->{reads}, 400, '--warm=stat leaves what is in files';
	is still_cold($slow, @files), 0, '... but its names and inodes are warm';

	$slow->fail('EIO', '/d3/f7');
	$slow->forget;
	my ($rc, $out, $err) = warm('--json', $slow->dir);
	is $rc, 1, 'a file that cannot be read';
	is JSON::PP::decode_json($out)->{files}, 399, '... the others can';
	is $err, 'accel-warm: "' . $slow->dir . "/d3/f7\": Input/output error\n", '... and it is named';
	$slow->stop;
};

subtest 'files that come and go do not stop a run' => sub {
	my $dir = File::Temp->newdir;
	make_tree("$dir", 20, 20);
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		my $parent = getppid;
		for (my $i = 0; getppid == $parent; $i++) {
			my $d = "$dir/d" . (1 + $i % 20);
			rename "$d/f" . (1 + $i % 19), "$d/g$i";
			unlink "$d/f20";
			rename $d, "$d.x";
			rename "$d.x", $d;
			rename "$d/g$i", "$d/f" . (1 + $i % 19);
			put("$d/f20", 'x');
		}
		POSIX::_exit(0);
	}
	my (%seen, @bad);
	for (1 .. 60) {
		my ($rc, $out, $err) = warm('--json', "$dir");
		push @bad, "$rc $err" if $rc != 0 || $err ne '';
		my $n = JSON::PP::decode_json($out);
		$seen{$_} += $n->{$_} for qw(files vanished);
	}
	kill KILL => $pid;
	waitpid $pid, 0;
	is_deeply \@bad, [], 'are not errors';
	cmp_ok $seen{files}, '>', 1000, 'what is there is touched';
	note "$seen{vanished} vanished";
};

subtest 'a killed run goes on where it was' => sub {
	plan skip_all => $no_rig unless $rig;
	my ($src, $run_dir) = map { File::Temp->newdir } 1 .. 2;
	my $state = "$run_dir/state";
	make_tree("$src", 40, 10);
	my @files = map { my $d = $_; map { "d$d/f$_" } 1 .. 10 } 1 .. 40;
	my $slow = Accel::Slowfs->start(source => "$src", spindles => 4, lookup_ms => 1, read_ms => 1);
	my @same = ('-j', '4', '--state', $state, $slow->dir);

	$slow->hang("/d$_/f5") for 7, 23;
	my $run = start(@same);
	ok eventually(sub { keys_in($state) == 38 }), 'finished directories are in the state file' or diag said($run);
	is +(warm(@same))[0], 75, 'a second run must wait for the first one';
	kill KILL => $run->{pid};
	is +(finish($run))[0], 'signal 9', 'killed';
	$slow->go;

	my ($rc, undef, $err) = warm('-w', 'stat', @same);
	is $rc, 65, 'a run with other options does not go on';
	like $err, qr/"warm=read:131072", now it is "warm=stat".*use the options of that run, or remove the file/, '... and it is said what to do';
	is +(warm('--state', $state, "$src"))[0], 65, 'nor with other paths';
	is keys_in($state), 38, '... and nothing is lost by that';

	my $saved = slurp($state);
	put($state, $saved . '0123456789abcdef');       # as a crash in the middle of a line leaves it
	put("$src/new", "new\n");
	rename "$src/new", "$src/d1/f10" or die $!;
	put("$src/d2/fresh", 'x');
	$slow->forget('/d1*');
	$slow->forget('/d2*');
	my $n = numbers(@same);
	cmp_ok $n->{resumed}, '>=', 360, 'the next run leaves out what was done';
	is $n->{resumed} + $n->{files}, 401, '... and nothing else';
	is still_cold($slow, 'd1/f10', 'd2/fresh'), 0, '... what is new or was replaced is warm';
	is still_cold($slow, grep { !m{^d[12]\d*/} } @files), 0, 'every file is warm after both';
	ok !-e $state, 'the state file is gone';
	is numbers(@same)->{resumed}, 0, 'the next run begins anew';

	for my $round (1 .. 6) {                # wherever it is when it is killed
		$slow->forget if $round == 1;
		my $aside = start(@same);
		sleep rand 0.1;
		kill KILL => $aside->{pid};
		finish($aside);
	}
	numbers(@same);
	is still_cold($slow, @files), 0, 'killed six times, at any time: every file is warm in the end';

	$slow->forget;
	$slow->hang('/d40/f1');
	$run = start(@same);
	ok $slow->wait_hanging(1), 'one hangs';
	my $lookups = $slow->counts->{lookups};
	kill TERM => $run->{pid};
	is +(finish($run))[0], 143, 'TERM';
	ok -e $state, '... leaves a state file';
	$slow->go;
	$n = numbers(@same);
	is $n->{resumed} + $n->{files}, 401, '... with which the next run is complete';
	is still_cold($slow, @files), 0, '... every file is warm';
	$slow->stop;
};

subtest 'USR1 prints the progress' => sub {
	plan skip_all => $no_rig unless $rig;
	my $src = File::Temp->newdir;
	make_tree("$src", 4, 20);
	my $slow = Accel::Slowfs->start(source => "$src", spindles => 4, lookup_ms => 0, read_ms => 0);
	$slow->hang('/d2/f3');
	my $run = start('-q', $slow->dir);
	ok eventually(sub { $slow->counts->{reads} == 79 }), 'all but one';
	is said($run), '', 'nothing is said unasked';
	ok eventually(sub { kill USR1 => $run->{pid}; said($run) =~ / 79 of 80 / }), 'USR1 asks';
	like said($run), qr/^accel-warm:  98 %  79 of 80  \d+\/s  \d+ B(?:  ETA 0:\d\d)?$/m, '... for percent and rate';
	$slow->go;
	is +(finish($run))[0], 0, 'it ends well';
	$slow->stop;
	is_deeply [(warm('-v', "$src"))[0, 2]], [0, ''], '--verbose says nothing within ten seconds';
	SKIP: {
		skip 'no script(1)', 2 if system('script -qec true /dev/null >/dev/null 2>&1') != 0;
		my $log = File::Temp->new;
		is system("script -qec '$program --rate 100 -w stat $src' $log >/dev/null 2>&1 </dev/null"), 0, 'on a terminal';
		like slurp("$log"), qr/\r\[=*>? *\]  [ \d]+ %  \d+ of 80  \d+\/s(?:  ETA \d:\d\d)?\e\[K/, '... there is a bar';
	}
};

subtest 'the manual has every option' => sub {
	my @sections = ('NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'HOW MUCH TO WARM', 'LISTS', 'PATTERNS', 'NODES BEHIND A BALANCER', 'STATE',
		'DISKS THAT ARE BUSY OR HANG', 'EXIT STATUS', 'SIGNALS', 'EXAMPLES', 'SEE ALSO');
	my ($rc, $help) = warm('--help');
	is $rc, 0, '--help';
	my @options = $help =~ /^\s+(?:-\w, )?(--[a-z-]+)/mg;
	cmp_ok scalar @options, '>', 12, '... lists options';
	my (undef, $text) = warm('--manual');
	is_deeply [grep { $text !~ /^    .*\Q$_\E(?![\w-])/m } @options], [], 'the manual has every option';
	is_deeply [$text =~ /^([A-Z][A-Z ]+)$/mg], \@sections, '... and every section';
	my (undef, $roff) = warm('--manual=roff');
	like $roff, qr/\A\.TH accel-warm 1 /, '... as roff too';
	is_deeply [grep { !/^\.(?:TH|SH|PP|TP|ad|nf|fi|br)\b/ } $roff =~ /^[.'].*/mg], [], '... which knows the requests it uses';
	like +(warm('-V'))[1], qr/^accel-warm \d/, 'the version';
};

done_testing;
