package Accel::Bench::Storage::Image;
# ext4 in an image on slowfs, mounted anew for each cell. Its disk is a loop device, which /proc/diskstats knows.
use v5.36;
use parent 'Accel::Bench::Storage::Slow';
use Accel::Bench::Storage::Real ();
use Accel::SlowImage ();

use constant { BYTES => 128 * 1_048_576, NAMES => 1000 };

sub usable ($self) { return Accel::SlowImage->usable('ext4') }

# The inode and the block of a directory, the inode of the file: these are reads as well.
sub requests ($self, $bytes) { return (0, 2 + int(($bytes + 131_071) / 131_072)) }

sub make ($self, $set) {
	my ($count, $bytes) = Accel::Bench::Storage::parse_set($set);
	$count //= $bytes * NAMES <= BYTES ? NAMES : int(BYTES / $bytes) || 1;
	my @names;
	my $dir = "$self->{dir}/$set";
	mkdir $dir or die "$dir: $!\n";
	my $image = Accel::SlowImage->make(type => 'ext4', file => "$dir/disk.img", files => 2 * $count, bytes => $count * $bytes, fill => sub ($mnt) {
		@names = map { "files/$_" } Accel::Bench::Storage::Real::pool("$mnt/files", $count, $bytes);
	});
	return { image => $image, list => $self->list($set, @names), count => $count, bytes => $bytes, verify => 'pattern' };
}

sub mount ($self, $place, %times) {
	return Accel::SlowImage->start(image => $place->{image}, spindles => $times{spindles}, read_ms => $times{read_ms}, writable => $times{atime});
}

# With bi and bo in KiB per second of this disk: those of the machine count the requests to the image as well.
sub disk ($self, $seconds, $lanes) {
	my $disk = $self->disk_of($self->{root}, $lanes) // return undef;
	return { %$disk, bi => $disk->{read_mb_per_s} * 1e6 / 1024, bo => $disk->{write_mb_per_s} * 1e6 / 1024 };
}

1;
