# accel-pool evict takes files out of memory, just these, and says what stays and why; state tells how much is there; check finds the
# first wrong byte.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Pool;
use Test::Util qw(find_program);

# The kernel may drop pages at any time, so "in memory" is only claimed of pages that cannot go: dirty ones are written first, and
# mapped ones are looked at once.
subtest 'just these files' => sub {
	my $dir = temp_tree();
	numbers('make', '-s', '4x10x64k', $_) for "$dir/ours", "$dir/theirs";
	plan skip_all => 'this file system keeps its files in memory' if numbers('evict', "$dir/ours")->{in_memory_after} > 0;
	is numbers('state', "$dir/ours")->{in_memory}, 0, 'nothing is in memory after evict, also of pages that were dirty';
	slurp("$dir/ours/64k/0001/0002.bin");
	slurp("$dir/theirs/64k/0001/0002.bin");
	my $n = numbers('state', "$dir/ours");
	is_deeply [@$n{qw(files bytes unknown errors)}], [41, 40 * 65536 + -s "$dir/ours/.accel-pool", 0, 0], 'state counts files';
	cmp_ok $n->{in_memory}, '<=', 2 * 65536, '... and memory, also of what is read ahead';
	my $before = numbers('state', "$dir/theirs")->{in_memory};
	$n = numbers('evict', "$dir/ours");
	is_deeply [@$n{qw(in_memory_after interrupted)}], [0, JSON::PP::false], 'evict again';
	cmp_ok $n->{in_memory_before}, '<=', 2 * 65536, '... tells what was there';
	cmp_ok $before, '>', 0, 'files of others';
	cmp_ok numbers('state', "$dir/theirs")->{in_memory}, '>', $before / 2, '... stay';
	like +(pool('evict', "$dir/ours"))[1], qr/^41 files, 2\.6 MB: 0 B \(0 %\) in memory before, 0 B \(0 %\) after; 0 errors\n\z/, 'for people';
	like +(pool('state', "$dir/ours"))[1], qr/^41 files, 2\.6 MB: 0 B \(0 %\) in memory; 0 files whole, 0 in part, 41 not at all; 0 errors\n\z/,
	    '... state, too';
};

subtest 'what stays, and why' => sub {
	my $dir = temp_tree();
	put("$dir/mapped", slurp(find_program('cat')));      # a program that runs is mapped
	chmod 0755, "$dir/mapped" or die $!;
	put("$dir/free", 'f' x 4096);
	my $n = numbers('evict', "$dir");
	plan skip_all => 'this file system keeps its files in memory' if $n->{stayed}{tmpfs};
	my $pid = open(my $run, '|-', "$dir/mapped") or plan skip_all => "no program runs in $dir: $!";
	ok eventually(sub { (readlink("/proc/$pid/exe") // '') eq "$dir/mapped" }), 'a program runs';
	$n = numbers('evict', "$dir");
	cmp_ok $n->{stayed}{mapped}, '>=', 4096, '... its file stays';
	is $n->{in_memory_after}, $n->{stayed}{mapped}, '... alone';
	like +(pool('evict', "$dir"))[1], qr/^stayed: \d.* of 1 files, mapped by a process: mapped \($pid\)$/m, '... and its process is named';
	close $run;
	is numbers('evict', "$dir")->{in_memory_after}, 0, '... it goes when nobody maps it';

	my $shm = File::Temp->newdir('accel-XXXXXX', DIR => '/dev/shm');
	put("$shm/x", 'x' x 5000);
	like +(pool('evict', "$shm"))[1], qr/^stayed: 5\.0 kB of 1 files, on a file system without a disk$/m, 'a file in memory only';
};

subtest 'lists' => sub {
	my $dir = temp_tree();
	numbers('make', '-s', '1x3x4k', "$dir/pool");
	put("$dir/secret", 'x');
	symlink '../../../secret', "$dir/pool/4k/0000/out" or die $!;
	symlink '0000.bin', "$dir/pool/4k/0000/in" or die $!;
	my ($rc, $out, $err) = run_with("/4k/0000/0000.bin\n4k/0000/in\n/4k/0000/out\n../secret\nnone\n", 'evict', '--json', '--list', '-', '--root',
	    "$dir/pool");
	is $rc, 1, 'a list with names that lead out';
	is JSON::PP::decode_json($out)->{files}, 2, '... does what is in its root';
	like $err, qr/^accel-pool: ".*\/out": leads out of its root$/m, '... and no link out of it';
	like $err, qr/^accel-pool: ".*\/\.\.\/secret": leads out of its root$/m, '... and no step up';
	($rc, $out) = run_with("http://h/4k/0000/0001.bin?x\n", 'evict', '--json', '-l', '-', '-u', '-r', "$dir/pool");
	is_deeply [$rc, JSON::PP::decode_json($out)->{files}], [0, 1], 'URLs';
	is numbers('evict', "$dir/pool")->{files}, 4, 'a tree: links are not followed';
	is +(pool('evict'))[0], 64, 'neither directory nor list';
	is +(pool('evict', '-l', "$dir/x", "$dir"))[0], 64, 'both';
	is +(pool('evict', '-r', "$dir", "$dir"))[0], 64, '--root without --list';
	is +(pool('check', '-l', "$dir/x"))[0], 64, 'check of a list without its pool';
	is +(pool('evict', "$dir/none"))[0], 1, 'no such directory';
};

subtest 'check' => sub {
	my $dir = temp_tree();
	my $pool = "$dir/pool";
	numbers('make', '-s', '2x5x100k', '-s', '1x4x1k-8k', $pool);
	is_deeply [@{ numbers('check', $pool) }{qw(files wrong missing errors)}], [14, 0, 0, 0], 'a good pool';
	put("$pool/note", 'not of the pool');
	open my $fh, '+<', "$pool/100k/0001/0003.bin" or die $!;
	seek $fh, 77_777, 0;
	read $fh, my $byte, 1;
	seek $fh, 77_777, 0;
	print $fh chr(ord($byte) ^ 1);
	close $fh;
	truncate "$pool/100k/0000/0001.bin", 99;
	unlink "$pool/100k/0000/0004.bin";
	rename "$pool/100k/0001/0000.bin", "$pool/x" or die $!;
	rename "$pool/100k/0001/0001.bin", "$pool/100k/0001/0000.bin" or die $!;
	rename "$pool/x", "$pool/100k/0001/0001.bin" or die $!;
	my ($rc, $out, $err) = pool('check', '--json', $pool);
	is $rc, 1, 'a bad one';
	is_deeply [@{ JSON::PP::decode_json($out) }{qw(files wrong missing errors)}], [13, 4, 1, 4], '... counts';
	like $err, qr/^accel-pool: "\Q$pool\E\/100k\/0001\/0003\.bin": the first wrong byte is at offset 77777$/m, '... one bit';
	like $err, qr/^accel-pool: "\Q$pool\E\/100k\/0000\/0001\.bin": has 99 bytes instead of 102400$/m, '... a short file';
	like $err, qr/^accel-pool: "\Q$pool\E\/100k\/0001\/000$_\.bin": the first wrong byte is at offset \d$/m, '... two that changed places'
	    for 0, 1;
	($rc, $out) = run_with("/100k/0000/0000.bin\n/note\n", 'check', '--json', '-l', '-', '-r', $pool);
	is_deeply [$rc, @{ JSON::PP::decode_json($out) }{qw(files wrong missing)}], [1, 1, 1, 0], 'a list';
	is +(pool('check', "$dir"))[0], 65, 'no pool';
	numbers('make', $pool);
	($rc, $out) = pool('check', '--json', $pool);
	is JSON::PP::decode_json($out)->{wrong}, 3, 'make repairs what its size tells';
};

done_testing;
