# accel-pool make writes what --spec says, goes on where a run ended, and leaves other people's files alone; remove removes what it
# has made.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Pool;
use Test::Util qw(find_program);

subtest 'shapes and sizes' => sub {
	my $dir = temp_tree();
	my $n = numbers('make', '--spec', '3x2x1k', '--spec', '1x1x0', '--spec', '1x2x1m', "$dir/pool");
	is_deeply [@$n{qw(files bytes resumed errors)}], [9, 6 * 1024 + 2 * 1048576, 0, 0], 'counts';
	is_deeply files("$dir/pool"),
	    {
		'.accel-pool' => -s "$dir/pool/.accel-pool",
		(map { ("1k/000$_/0000.bin" => 1024, "1k/000$_/0001.bin" => 1024) } 0 .. 2),
		'0/0000/0000.bin'  => 0,
		'1m/0000/0000.bin' => 1048576,
		'1m/0000/0001.bin' => 1048576,
	    },
	    'names and sizes';
	isnt slurp("$dir/pool/1k/0000/0000.bin"), slurp("$dir/pool/1k/0000/0001.bin"), 'each file has contents of its own';
	like +(pool('make', '--spec', '4x2x1k', "$dir/pool"))[1], qr/^2 files, 1 directories, 2.0 kB in .*; 9 done by an earlier run; 0 errors\n\z/,
	    'a pool grows';
	my ($rc, $out, $err) = pool('make', '--spec', '1x9x1k', "$dir/pool");
	is $rc, 65, 'another shape of a size';
	like $err, qr/^accel-pool: --spec=1x9x1k: the pool has this size in another shape; it can grow only\n\z/, '... is refused';
};

subtest 'ranges of sizes follow from the seed' => sub {
	my $dir = temp_tree();
	pool('make', '-q', '-s', '2x50x512-64k', '--seed', $_->[1], "$dir/$_->[0]") for ['a', 7], ['b', 7], ['c', 8];
	my ($first, $same, $other) = map { my $f = files("$dir/$_"); delete $f->{'.accel-pool'}; $f } qw(a b c);
	is scalar(keys %$first), 100, 'files';
	is_deeply $same, $first, 'the same seed, the same sizes';
	isnt join(' ', map { $other->{$_} } sort keys %$other), join(' ', map { $first->{$_} } sort keys %$first), 'another seed, other ones';
	my @size = sort { $a <=> $b } values %$first;
	cmp_ok $size[0], '>=', 512, 'the smallest';
	cmp_ok $size[-1], '<=', 65536, 'the largest';
	cmp_ok scalar(grep { $_ < 5793 } @size), '>', 25, 'half of the files are below the geometric mean: some';
	cmp_ok scalar(grep { $_ > 5793 } @size), '>', 25, '... and some above';
	is +(pool('make', '--seed', 9, "$dir/a"))[0], 65, 'a pool has one seed';
};

subtest 'an interrupted run is resumed' => sub {
	my $dir = temp_tree();
	numbers('make', '-s', '2x10x8k', "$dir/pool");
	my $whole = slurp("$dir/pool/8k/0001/0003.bin");
	unlink "$dir/pool/8k/0000/0000.bin" or die $!;
	truncate "$dir/pool/8k/0001/0003.bin", 100 or die $!;
	put("$dir/pool/8k/0001/.0004.bin.part", 'half');
	rename "$dir/pool/8k/0001/0004.bin", "$dir/kept" or die $!;
	my $n = numbers('make', "$dir/pool");
	is_deeply [@$n{qw(files resumed)}], [3, 17], 'without --spec: what is missing, broken or half written';
	is slurp("$dir/pool/8k/0001/0003.bin"), $whole, '... has its contents again';
	is slurp("$dir/pool/8k/0001/0004.bin"), slurp("$dir/kept"), '... also beside the rest of a killed run';
	ok !-e "$dir/pool/8k/0001/.0004.bin.part", '... which is gone';

	my $pid = start("$dir/out", "$dir/err", 'make', '--json', '-j2', '-s', '1x40x10m', "$dir/killed");
	ok eventually(sub { -e "$dir/killed/10m/0000/0001.bin" || !kill 0 => $pid }), 'a run has begun';
	kill INT => $pid;
	waitpid $pid, 0;
	ok $? == 0 || $? >> 8 == 130, 'a signal ends it, if it has not ended';
	my @done = grep { /\A10m/ && !/part\z/ } keys %{ files("$dir/killed") };
	$n = numbers('make', "$dir/killed");
	is $n->{files} + $n->{resumed}, 40, '... and the same command writes the rest';
	cmp_ok $n->{resumed}, '>=', scalar @done, '... without the complete files';
	is_deeply [sort { $a <=> $b } values %{ files("$dir/killed") }], [-s "$dir/killed/.accel-pool", (10485760) x 40], '... all of them';
};

subtest 'links and files that were there before' => sub {
	my $dir = temp_tree();
	numbers('make', '-s', '1x3x1k', "$dir/pool");
	put("$dir/victim", 'precious');
	unlink "$dir/pool/1k/0000/$_.bin" or die $! for qw(0000 0001);
	link "$dir/victim", "$dir/pool/1k/0000/.0000.bin.part" or die $!;
	symlink "$dir/victim", "$dir/pool/1k/0000/.0001.bin.part" or die $!;
	my $n = numbers('make', "$dir/pool");
	is $n->{files}, 2, 'links under temporary names do not hinder';
	is slurp("$dir/victim"), 'precious', '... and lead to nothing that is written';
	ok !-l "$dir/pool/1k/0000/0001.bin", '... nor become files of the pool';

	mkdir "$dir/$_" or die $! for qw(forced forced/1k forced/1k/0000);
	put("$dir/forced/1k/0000/0000.bin", 'x' x 1024);
	put("$dir/forced/1k/0000/0001.bin", 'mine');
	my ($rc, $out, $err) = pool('make', '--force', '-j1', '-s', '1x3x1k', "$dir/forced");
	is $rc, 74, 'a file of others under a name of the pool';
	like $err, qr{^accel-pool: 1k/0000/0001\.bin: File exists$}m, '... is named';
	is slurp("$dir/forced/1k/0000/0001.bin"), 'mine', '... and stays';
	is +(pool('remove', "$dir/forced"))[0], 1, 'remove';
	is slurp("$dir/forced/1k/0000/0000.bin"), 'x' x 1024, '... leaves it even if its size is right';
	is slurp("$dir/forced/1k/0000/0001.bin"), 'mine', '... and the other one';
};

subtest 'other people\'s files' => sub {
	my $dir = temp_tree();
	put("$dir/mine", 'x');
	my ($rc, $out, $err) = pool('make', '-s', '1x1x1k', "$dir");
	is $rc, 73, 'a directory with other files';
	is $err, "accel-pool: \"$dir\": has other files in it and is not a pool; name an empty directory, or use --force\n", '... is refused';
	is_deeply files("$dir"), { mine => 1 }, '... and untouched';
	is +(pool('remove', "$dir"))[0], 65, '... remove does not take it for a pool';
	numbers('make', '--force', '-s', '1x2x1k', "$dir");
	mkdir "$dir/outside" or die $!;
	put("$dir/outside/0001.bin", 'y' x 1024);
	put("$dir/1k/0000/0001.bin", 'changed');
	put("$dir/1k/0000/guest", 'x');
	($rc, $out, $err) = pool('remove', "$dir");
	is $rc, 1, 'a changed file';
	like $err, qr/differ from those that accel-pool made are kept/, '... stays, and it is said';
	is_deeply [sort keys %{ files("$dir") }], [qw(.accel-pool 1k/0000/0001.bin 1k/0000/guest mine outside/0001.bin)], '... with the rest';
	unlink "$dir/1k/0000/0001.bin" or die $!;
	is numbers('remove', "$dir")->{files}, 0, 'without it';
	is_deeply [sort keys %{ files("$dir") }], [qw(1k/0000/guest mine outside/0001.bin)], '... what accel-pool has not made stays';
};

subtest 'links lead nowhere' => sub {
	my $dir = temp_tree();
	mkdir "$dir/out" or die $!;
	put("$dir/out/0000.bin", 'z' x 1024);
	numbers('make', '-s', '2x1x1k', "$dir/pool");
	unlink "$dir/pool/1k/0000/0000.bin" or die $!;
	rmdir "$dir/pool/1k/0000" or die $!;
	symlink "$dir/out", "$dir/pool/1k/0000" or die $!;
	my ($rc, $out, $err) = pool('make', "$dir/pool");
	is $rc, 74, 'a link instead of a directory';
	like $err, qr/^accel-pool: 1k\/0000\/0000\.bin: /m, '... is named';
	($rc) = pool('remove', "$dir/pool");
	is $rc, 74, '... and remove does not follow it';
	is slurp("$dir/out/0000.bin"), 'z' x 1024, 'what it leads to is unchanged';
	unlink "$dir/pool/1k/0000" or die $!;
	mkdir "$dir/pool/1k/0000" or die $!;
	symlink "$dir/out/0000.bin", "$dir/pool/1k/0000/.0000.bin.part" or die $!;
	is +(pool('make', "$dir/pool"))[0], 0, 'a link instead of the temporary file is removed';
	is slurp("$dir/out/0000.bin"), 'z' x 1024, '... is not written through';
};

subtest 'a disk that is full' => sub {
	my $dir = temp_tree();
	my ($rc, $out, $err) = pool('make', '-s', '1000x1000x1g', "$dir/pool");
	is $rc, 73, 'no room';
	like $err, qr/^accel-pool: ".*\/pool": needs 1\.1 PB and 1000000 files, the file system has room for .*; use a smaller --spec, or another disk\n\z/,
	    '... is said before the first file';
	ok !-e "$dir/pool", '... and no directory is left';
	$rc = system 'sh', '-c', 'ulimit -f 64; exec "$@" 2>/dev/null', 'sh', $program, qw(make -q -s 1x1x1m), "$dir/large";
	is $rc >> 8, 74, 'a file that may not be so large';
	is_deeply [grep { /^1m/ } keys %{ files("$dir/large") }], [], '... leaves no half of it';
	plan skip_all => 'mounting needs root and mount(8)' if $> != 0 || !find_program('mount');
	mkdir "$dir/small" or die $!;
	plan skip_all => 'no tmpfs here' if system(qw(mount -t tmpfs -o size=1m none), "$dir/small") != 0;
	put("$dir/small/hole", '');
	($rc, $out, $err) = pool('make', '--force', '-j1', '-s', '1x3x512k', "$dir/small");
	is $rc, 73, 'a small file system';
	system 'umount', "$dir/small";
};

subtest 'the command line' => sub {
	my $dir = temp_tree();
	for my $bad ('1x1', '1x1x', 'x1x1', '0x1x1', '1x0x1', '1x1x1y', '1x1x2-1', '1x1x0-1', '1x1x1-', '1x1x1-2-3', '9999999x1x1', ' 1x1x1', '') {
		my ($rc, $out, $err) = pool('make', '--spec', $bad, "$dir/x");
		is $rc, 64, "--spec '$bad'";
		is $err, "accel-pool make: --spec: expected DIRSxFILESxSIZE, as 1000x100x100k or 10x10x4k-1m, got \"$bad\"\n", '... is explained';
	}
	is +(pool())[0], 64, 'no command';
	is +(pool('walk', "$dir"))[0], 64, 'not a command';
	is +(pool('make'))[0], 64, 'no directory';
	is +(pool('make', "$dir/a", "$dir/b"))[0], 64, 'two directories';
	is +(pool('remove', "$dir/none"))[0], 66, 'no such directory';
	like +(pool('make', '--help'))[1], qr/^Usage: accel-pool make \[OPTION\]\.\.\. DIR$/m, 'help of a command';
	like +(pool('--manual=roff'))[1], qr/\A\.TH accel-pool 1 /, 'the manual';
	like +(pool('-V'))[1], qr/\Aaccel-pool \d/, 'the version';
	put("$dir/.accel-pool", "accel-pool 1\nspec ../..x1\n");
	is +(pool($_, "$dir"))[0], 65, "$_: a marker that is not ours" for qw(make remove);
};

done_testing;
