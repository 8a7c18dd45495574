package Accel::Bench::Storage;
# Where the files of a cell are, and what their disk did.
#
#     my $storage = Accel::Bench::Storage->new($engine, 'slowfs:2');
#     my ($ok, $why) = $storage->usable;
#     my $place = $storage->begin({ files => '100k', ... });      # { root, list, count, at_most }
#     $storage->sample while load_runs();
#     my $disk = $storage->disk($seconds, $lanes);                # { util, queue, await_ms, read_mb_per_s }
#     $storage->end;
#
# Kinds:
#
# hot: Files in a directory, read before each cell. With the option `dir` those of the user.
# evict: The same, but dropped from memory before each cell (POSIX_FADV_DONTNEED).
# slowfs:SPINDLES: A mount of slowfs(1), new for each cell, so all names and bytes are cold. Names are hard links to one file: slowfs has a node for
#   each name. The times are those of a disk of 2007: 6 ms for a name and 4 ms for each 128 KiB, so two spindles give 15.7 MB/s in files of
#   100 kB and 65 MB/s in files of 10 MB.
# ext4:SPINDLES: ext4 in an image on slowfs, mounted anew for each cell. Each request to the disk takes 4 ms.
#
# A file set is SIZE or COUNTxSIZE: 100k, 1000x10m. Sizes count in thousands, as in 2007: 100k is 102,400 bytes as there, 10m is
# 10,485,760.
use v5.36;
use Accel::Bench::Storage::Real  ();
use Accel::Bench::Storage::Image ();
use Accel::Bench::Storage::Slow  ();

use constant { SPINDLES_MAX => 64, FILES_MAX => 1_000_000, BIG => 1_048_576 };

my %size = (k => 1024, m => 1_048_576, g => 1_073_741_824);

my %class = (hot => 'Real', evict => 'Real', slowfs => 'Slow', ext4 => 'Image');

# ($kind, $spindles); dies with the reason.
sub parse ($spec) {
	my ($kind, $spindles) = $spec =~ /^(hot|evict|slowfs|ext4)(?::(\d{1,4}))?\z/
	    or die "no storage \"$spec\"; there are: hot evict slowfs:SPINDLES ext4:SPINDLES\n";
	die "storage \"$spec\": $kind has no spindles\n" if defined $spindles && $class{$kind} eq 'Real';
	$spindles //= 2;
	die "storage \"$spec\": expected 1 to " . SPINDLES_MAX . " spindles\n" unless $spindles >= 1 && $spindles <= SPINDLES_MAX;
	return ($kind, $spindles);
}

# ($count or undef, bytes of a file); dies with the reason.
sub parse_set ($set) {
	my ($count, $number, $unit) = $set =~ /^(?:(\d{1,7})x)?(\d{1,6})([kmg]?)\z/
	    or die "no file set \"$set\"; expected SIZE or COUNTxSIZE: 100k, 1000x10m\n";
	my $bytes = $number * ($unit ? $size{$unit} : 1);
	die "file set \"$set\": expected 1 to " . FILES_MAX . " files\n" if defined $count && ($count < 1 || $count > FILES_MAX);
	die "file set \"$set\": expected at most 4g a file\n" if $bytes > 4 * $size{g} || $bytes < 1;
	return ($count, $bytes);
}

sub new ($class, $engine, $spec, %opt) {
	my ($kind, $spindles) = parse($spec);
	return "Accel::Bench::Storage::$class{$kind}"->new(%opt, engine => $engine, kind => $kind, spindles => $spindles);
}

# Whether transfers are cut by the clock: a few large files do not end together.
sub by_clock ($bytes) { return $bytes > BIG }

1;
