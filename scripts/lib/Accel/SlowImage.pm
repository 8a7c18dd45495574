package Accel::SlowImage;
# Ext4 or xfs on a slow disk, for one test.
#
#     Accel::SlowImage::private_mounts(@ARGV);     # first of all; runs the program anew in a mount namespace of its own
#     my ($ok, $why) = Accel::SlowImage->usable('ext4');
#     plan skip_all => $why unless $ok;
#
#     my $image = Accel::SlowImage->make(type => 'ext4', file => "$dir/disk.img", bytes => 1e6, files => 10,
#         fill => sub { my ($mnt) = @_; put("$mnt/file", 'bytes') });
#     my $slow = Accel::SlowImage->start(image => $image, spindles => 16, read_ms => 8);
#     open my $fh, '<', $slow->dir . '/file';     # this reads blocks of directories and inodes, 8 ms each
#     $slow->forget;                              # cold again
#
#     server --> ext4, read-only --> /dev/loopN, O_DIRECT --> disk.img on slowfs --> spindle 1 .. N --> disk.img
#
# `make` writes the image while it is fast. `start` takes the options of Accel::Slowfs, `image` instead of `source`; an
# object has the methods of Accel::Slowfs. What a name costs is what the file system reads for it, so `read_ms`
# is the only price; `lookup_ms`, `open_ms` and `getattr_ms` are ignored. Counters begin after the mount. An order
# is for the whole disk (a pattern would be matched against the name of the image). `forget` mounts anew; it dies while
# a file is in use.
#
# The image of ext4 has one inode in each block (4 KiB inodes) and the mount reads no inodes ahead, because a few
# thousand inodes would otherwise be read with a few requests. So it costs what a disk with millions of files costs: a
# read for each directory's inode, its block, the file's inode, and each 128 KiB of it. xfs reads inodes by 32 at least, and keeps small
# directories in their inodes.
#
# The disk is read-only, so the kernel writes no access times, as with `noatime`. With `writable` it writes one for each read (strictatime), within a
# second (commit=1), at `read_ms` for each request; only for ext4.
#
# The mount is private: when the last process of the namespace has ended, however it ends, the kernel unmounts, and the loop
# device detaches itself (LO_FLAGS_AUTOCLEAR).
use v5.36;
use parent 'Accel::Slowfs';
use File::Basename qw(basename dirname);
use File::Temp ();
use Accel::Namespace ();
use Accel::Util qw(find_program slurp);

use constant { LOOP_CTL_GET_FREE => 0x4C82, LOOP_CONFIGURE => 0x4C0A, BLKRASET => 0x1262,
	READ_ONLY => 1, AUTOCLEAR => 4, DIRECT => 16, EBUSY => 16, TRIES => 50, READ_AHEAD => 131_072,
	WRITABLE => 'strictatime,commit=1' };

# nouuid: a mount that a server still holds may be of the same image.
my %type = (
	ext4 => { package => 'e2fsprogs', least => 16e6, options => 'inode_readahead_blks=0',
		make => [qw(mke2fs -q -F -t ext4 -b 4096 -I 4096 -m 0 -J size=4 -E), 'lazy_itable_init=0,lazy_journal_init=0,nodiscard'] },
	xfs => { package => 'xfsprogs', least => 320e6, options => 'nouuid', make => [qw(mkfs.xfs -q -f -K)] },
);

sub types { return sort keys %type }

# ---------------------------------------------------------------- may we?

my $private = Accel::Namespace::entered();

sub private_mounts (@args) {
	local @ARGV = @args;
	$private ||= Accel::Namespace::own_mounts();
}

# (1) or (0, reason).  Tries it: the node of a loop device may exist although the device may not be configured.
my %usable;
sub usable ($class, $type) {
	$usable{$type} //= [$class->_try($type)];
	return @{ $usable{$type} };
}

sub _try ($class, $type) {
	return (0, "no file system \"$type\"; there are: " . join ' ', types()) unless $type{$type};
	my ($ok, $why) = Accel::Slowfs->usable;
	return (0, $why) unless $ok;
	return (0, 'loop devices are for root') if $> != 0;
	return (0, 'a mount namespace is not allowed here') unless $private;
	return (0, 'no /dev/loop-control here') unless -e '/dev/loop-control';
	my $mkfs = $type{$type}{make}[0];
	return (0, "$mkfs is missing; the package is $type{$type}{package}") unless find_program($mkfs);
	my $dir = File::Temp->newdir('image-XXXXXX', TMPDIR => 1);
	my $slow = eval { $class->start(image => $class->make(type => $type, file => "$dir/try.img"), read_ms => 0) };
	return (0, "$type on a loop device is not allowed here: " . $@ =~ s/\s+\z//r) unless $slow;
	$slow->stop;
	return (1);
}

# ---------------------------------------------------------------- the image

# { type => ..., file => ... } for start(). $fill->(mount point) puts in this many files, this many bytes in all.
sub make ($class, %arg) {
	my ($type, $file) = @arg{qw(type file)};
	my $files = 64 + ($arg{files} // 0);
	my $bytes = $type{$type}{least} + 1.1 * ($arg{bytes} // 0) + $files * 16_384;
	open my $fh, '>', $file or die "$file: $!\n";
	truncate $fh, 4096 * int $bytes / 4096 or die "$file: $!\n";
	close $fh or die "$file: $!\n";
	_run(@{ $type{$type}{make} }, $type eq 'ext4' ? ('-N', $files) : (), $file);
	if ($arg{fill}) {
		my $mnt = File::Temp->newdir('image-XXXXXX', TMPDIR => 1);
		_mount($type, $file, "$mnt", 'noatime');
		my $filled = eval { $arg{fill}->("$mnt"); 1 };
		my $why = $@;
		_run('umount', "$mnt");
		die $why unless $filled;
	}
	return { type => $type, file => $file };
}

sub _run (@cmd) {
	my $out = File::Temp->new;
	my $status = system 'sh', '-c', 'out=$1; shift; exec "$@" >"$out" 2>&1', 'sh', "$out", @cmd;
	return if $status == 0;
	my $said = slurp("$out") =~ s/\s+/ /gr;
	die "$cmd[0]: " . ($said || "exit status " . ($status >> 8)) . "\n";
}

sub _mount ($type, $file, $mnt, $options) {
	my ($fh, $device) = _attach($file, $options eq 'ro' ? READ_ONLY | DIRECT : $options eq WRITABLE ? DIRECT : 0);
	_run('mount', '-t', $type, '-o', "$options,$type{$type}{options}", $device, $mnt);
	return;                         # the mount holds the device now
}

# An open loop device.  It detaches itself when it is closed and not mounted, even if this process is killed in between.
sub _attach ($file, $flags) {
	open my $image, $flags & READ_ONLY ? '<' : '+<', $file or die "$file: $!\n";
	open my $control, '+<', '/dev/loop-control' or die "/dev/loop-control: $!\n";
	for (1 .. TRIES) {
		my $n = ioctl($control, LOOP_CTL_GET_FREE, 0) // die "/dev/loop-control: $!\n";
		my $device = '/dev/loop' . (0 + $n);
		open my $fh, $flags & READ_ONLY ? '<' : '+<', $device or die "$device: $!\n";
		# struct loop_config: fd, block size, struct loop_info64 with its flags and a name for losetup(8)
		my $config = pack 'L L x40 x12 L a64 x112 x64', fileno $image, 0, $flags | AUTOCLEAR, substr $file, -63;
		if (ioctl $fh, LOOP_CONFIGURE, $config) {
			# Without direct I/O the loop device would read one block after the other, through the page cache of the image.
			die "$device: no direct I/O\n" if $flags & DIRECT && slurp('/sys/block/' . basename($device) . '/loop/dio') !~ /^1/;
			ioctl $fh, BLKRASET, READ_AHEAD / 512 or die "$device: read-ahead: $!\n";
			return ($fh, $device);
		}
		die "$device: $!\n" unless $! == EBUSY;         # another program was faster
	}
	die "no free loop device\n";
}

# ---------------------------------------------------------------- the disk

sub start ($class, %arg) {
	my $image = delete $arg{image} // die "image is missing\n";
	my $at = delete $arg{at} // File::Temp->newdir('image-XXXXXX', TMPDIR => 1);
	delete @arg{qw(lookup_ms open_ms getattr_ms)};
	my $writable = delete $arg{writable};
	my $self = $class->SUPER::start(source => dirname($image->{file}), lookup_ms => 0, %arg,
		$writable ? (write_ms => $arg{read_ms} // 8) : ());
	$self->{writable} = $writable;
	@$self{qw(image at)} = ($image, $at);
	$self->_mount_image;
	return $self;
}

sub _mount_image ($self) {
	_mount($self->{image}{type}, "$self->{mnt}/" . basename($self->{image}{file}), $self->dir, $self->{writable} ? WRITABLE : 'ro');
	$self->{mounted} = 1;
	$self->{before} = {};
	$self->{before} = $self->state;
}

sub dir ($self) { return "$self->{at}" }

sub forget ($self) {
	_run('umount', $self->dir);
	$self->{mounted} = 0;
	return $self->_mount_image;
}

# The counts without those of the mount itself.
sub _since ($self, $now) {
	my $before = $self->{before} // {};
	return { %$now, map { $_ => $now->{$_} - $before->{$_} } grep { defined $before->{$_} } qw(lookups getattrs opens reads) };
}

sub counts ($self) { return $self->_since($self->SUPER::counts) }
sub state ($self)  { return $self->_since($self->SUPER::state) }

# A server may still have files open; then the kernel unmounts when it has ended.
sub stop ($self) {
	return {} unless $self->{pid};
	eval { $self->go };
	if (delete $self->{mounted}) {
		eval { _run('umount', $self->dir); 1 } or eval { _run('umount', '-l', $self->dir); 1 } or warn "umount: $@";
	}
	return $self->_since($self->SUPER::stop);
}

1;
