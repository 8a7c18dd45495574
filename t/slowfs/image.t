# A file system in an image on a slow disk reads the blocks that it should, and is cold again after a new mount.  However the
# program ends, no mount and no loop device is left.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use POSIX      ();
use Test::More;
use Accel::SlowImage;
use Test::Util qw(eventually put slurp);
use Time::HiRes qw(time);

Accel::SlowImage::private_mounts(@ARGV);

use constant { FILES => 40, SIZE => 100_000 };

my $unique = "image-test-$$";
my $dir = File::Temp->newdir('image-test-XXXXXX', TMPDIR => 1);
mkdir "$dir/disk" or die "$dir/disk: $!";

sub bytes ($n) { return substr "$n," x SIZE, 0, SIZE }

# 1/1 1/2 2/3 2/4 ...
sub path ($n) { return int(($n + 1) / 2) . "/$n" }

# Made once.
my %image;
sub image ($type) {
	return $image{$type} //= Accel::SlowImage->make(type => $type, file => "$dir/disk/$unique.$type", files => 2 * FILES, bytes => SIZE * FILES, fill => sub ($mnt) {
		for my $n (1 .. FILES) {
			mkdir "$mnt/" . int(($n + 1) / 2);
			put("$mnt/" . path($n), bytes($n));
		}
	});
}

# Backing files of loop devices that have such a name; the kernel names the path in slowfs.
sub loops ($name) {
	return grep { /\Q$name\E$/ } map { slurp($_) =~ s/\n//r } glob '/sys/block/loop*/loop/backing_file';
}

sub mounts ($what) { return grep { index($_, $what) >= 0 } split /\n/, slurp('/proc/self/mounts') }

# Reads of the disk while the code runs.
sub reads ($slow, $code) {
	my $before = $slow->counts->{reads};
	$code->();
	return $slow->counts->{reads} - $before;
}

for my $type (Accel::SlowImage::types()) {
	subtest $type => sub {
		my ($ok, $why) = Accel::SlowImage->usable($type);
		plan skip_all => $why unless $ok;
		my $slow = Accel::SlowImage->start(image => image($type), spindles => 4, read_ms => 0);
		my $d = $slow->dir;
		is slurp('/proc/self/mounts') =~ /^\S+ \Q$d\E $type ro,/m, 1, 'mounted, read-only';
		is $slow->counts->{reads}, 0, 'the mount itself is not counted';
		ok !(grep { slurp("$d/" . path($_)) ne bytes($_) } 1 .. FILES), 'the bytes are those of the files';
		is reads($slow, sub { slurp("$d/" . path($_)) for 1 .. FILES }), 0, 'what was read is in memory';

		$slow->forget;
		is $slow->counts->{reads}, 0, 'forgotten: the counters begin again';
		cmp_ok reads($slow, sub { slurp("$d/" . path(1)) }), '>=', 2, '... and a file is read again';
		cmp_ok reads($slow, sub { stat "$d/" . path(1) }), '==', 0, '... once';
		my $open = do { open my $fh, '<', "$d/" . path(1) or die "$!"; $fh };
		ok !eval { $slow->forget; 1 } && $@ =~ /busy/, 'what is in use is not forgotten';
		close $open;
		is_deeply [sort keys %{ $slow->stop }], [qw(getattrs lookups opens reads writes)], 'counters at the end';
		is_deeply [mounts($d)], [], 'not mounted any more';
		ok eventually(sub { !loops("$unique.$type") }), 'no loop device is left' or diag loops("$unique.$type");
	};
}

my ($ok, $why) = Accel::SlowImage->usable('ext4');

subtest 'ext4: each block of metadata is a read' => sub {
	plan skip_all => $why unless $ok;
	my $slow = Accel::SlowImage->start(image => image('ext4'), spindles => 4, read_ms => 0);
	my $d = $slow->dir;
	stat "$d/" . path(FILES);               # inodes and blocks of the root directory
	is reads($slow, sub { stat "$d/1" }), 1, 'the inode of a directory';
	is reads($slow, sub { stat "$d/" . path(1) }), 2, 'its block, and the inode of a file';
	is reads($slow, sub { stat "$d/" . path(2) }), 1, 'the inode of another file there';
	is reads($slow, sub { stat "$d/1/none" }), 0, 'an absence costs nothing in a block that is known';
	is reads($slow, sub { stat "$d/" . path(3) }), 3, 'all that again in another directory';
};

subtest 'a request takes its time, and orders hold' => sub {
	plan skip_all => $why unless $ok;
	my $slow = Accel::SlowImage->start(image => image('ext4'), spindles => 4, read_ms => 100);
	my $d = $slow->dir;
	my $t = time;
	stat "$d/" . path(1);
	cmp_ok time - $t, '>=', 0.29, 'at least three reads of 100 ms';
	$slow->hang;
	my $pid = fork // die "fork: $!";
	if (!$pid) { POSIX::_exit(slurp("$d/" . path(1)) eq bytes(1) ? 0 : 1) }
	ok $slow->wait_hanging(1), 'hang: a reader waits';
	$slow->go;
	waitpid $pid, 0;
	is $?, 0, 'go: it has the bytes';
};

subtest 'access times are written' => sub {
	my ($ok, $why) = Accel::SlowImage->usable('ext4');
	plan skip_all => $why unless $ok;
	my $dir = File::Temp->newdir;
	my $image = Accel::SlowImage->make(type => 'ext4', file => "$dir/disk.img", bytes => 1e5, files => 4, fill => sub { my ($mnt) = @_; Test::Util::put("$mnt/file", 'x' x 5000) });
	my $slow = Accel::SlowImage->start(image => $image, spindles => 4, read_ms => 0, writable => 1);
	my $before = $slow->counts->{writes} // 0;
	is length slurp($slow->dir . '/file'), 5000, 'a file is read';
	system 'sync', '-f', $slow->dir;
	cmp_ok $slow->counts->{writes}, '>', $before, 'its access time reaches the disk';
	ok((stat $slow->dir . '/file')[8] >= time - 3600, 'and is new');
	$slow->stop;
};

# The program prints the directory of its slow disk, and waits for its end.
my $holder = <<'END';
use v5.36;
use POSIX ();
use Time::HiRes qw(sleep);
use Accel::SlowImage;
my $slow = Accel::SlowImage->start(image => { type => 'ext4', file => $ARGV[0] }, spindles => 1, read_ms => $ARGV[1]);
$| = 1;
say join ' ', $slow->dir, $slow->pid;
if ($ARGV[2]) {
	$slow->hang;
	fork // die or do { sleep 0.01 until $slow->hanging; say 'hangs'; POSIX::_exit(0) };
	opendir my $dh, $slow->dir . '/1';
}
say 'waits';
sleep 60;
END

for my $case ([KILL => 0, 'killed'], [KILL => 1, 'killed while it waits for the disk'], [TERM => 0, 'ended by TERM']) {
	my ($signal, $hangs, $what) = @$case;
	subtest "a program that is $what leaves nothing" => sub {
		plan skip_all => $why unless $ok;
		local $ENV{TMPDIR} = "$dir";
		my $image = image('ext4');
		my $pid = open my $from, '-|', 'unshare', '-m', $^X, map({ "-I$_" } @INC), '-e', $holder, $image->{file}, 0, $hangs or die "unshare: $!";
		my ($at, $slowfs) = split ' ', readline($from) // '';
		ok $slowfs, 'it has a slow disk';
		is scalar loops("$unique.ext4"), 1, 'and a loop device';
		is_deeply [mounts($at)], [], 'that other programs do not see mounted';
		is readline($from), $hangs ? "hangs\n" : "waits\n", $hangs ? 'its read hangs' : 'and goes on';
		kill $signal => $pid;
		ok eventually(sub { !loops("$unique.ext4") }), 'the loop device is detached' or diag loops("$unique.ext4");
		ok eventually(sub { slurp("/proc/$slowfs/cmdline") eq '' }), 'slowfs has ended';     # init reaps it later
		close $from;
	};
}

subtest 'the reason is said where it cannot be' => sub {
	is_deeply [Accel::SlowImage->usable('ext5')], [0, 'no file system "ext5"; there are: ext4 xfs'], 'no such file system';
	my ($may, $reason) = split ' ', qx{"$^X" -I"$FindBin::Bin/../../scripts/lib" -MAccel::SlowImage -e 'print join " ", Accel::SlowImage->usable("ext4")'}, 2;
	ok $may eq '0' && length $reason, 'no mount namespace' or diag $reason;
};

done_testing;
