package Accel::Bench::Storage::Real;
# Files in a directory of this machine: in memory (hot), or dropped from it before each cell (evict).
use v5.36;
use parent 'Accel::Bench::Storage::Base';
use Accel::Util qw(program slurp);
use File::Find ();

use constant { HOT_BYTES => 80 * 1_048_576, COLD_BYTES => 256 * 1_048_576, FILES_MAX => 1_000_000 };

sub usable ($self) {
	return (1) if $self->{kind} eq 'hot';
	return (0, 'accel-pool is not built') unless -x program('accel-pool');
	my $where = $self->{files_dir} // $self->{dir};
	my $type = $self->{proc}->device(Accel::Bench::Storage::Base::device($where))->{type} // '';
	return (0, "$where is in memory ($type); name a directory on a disk with --dir") if $type =~ /^(?:tmpfs|ramfs)\z/;
	return (1);
}

sub begin ($self, $cell) {
	my $place = $self->{places}{ $cell->{files} } //= defined $self->{files_dir} ? $self->_theirs : $self->_made($cell->{files});
	$self->{root} = $place->{root};
	$self->{kind} eq 'hot' ? _read($place) : _evict($place);
	return $place;
}

# The user's files, by his list or all of them.
sub _theirs ($self) {
	my $root = $self->{files_dir};
	return { root => $root, list => $self->{urls}, count => (slurp($self->{urls}) =~ tr/\n//) } if defined $self->{urls};
	my @names;
	File::Find::find({ no_chdir => 1, wanted => sub {
		push @names, substr $_, 1 + length $root if @names < FILES_MAX && -f && -r _ && !/\n/;
	} }, $root);
	die "$root: no files\n" unless @names;
	return { root => $root, list => $self->list('files', sort map { s/([^\w.\/~-])/sprintf '%%%02X', ord $1/ger } @names), count => scalar @names };
}

sub _made ($self, $set) {
	my ($count, $bytes) = Accel::Bench::Storage::parse_set($set);
	my $room = $self->{kind} eq 'hot' ? HOT_BYTES : COLD_BYTES;
	$count //= $bytes > $room ? 1 : int($room / $bytes) > 1000 ? 1000 : int($room / $bytes);
	my $root = "$self->{dir}/$set";
	mkdir $root or die "$root: $!\n";
	my $block = join '', map { chr int rand 256 } 1 .. 65_536;
	my @names = Accel::Bench::Storage::fill($root, $count, sub ($path) { write_file($path, $bytes, $block) });
	system 'sync', '-f', $root if $self->{kind} eq 'evict';      # dirty pages are not dropped
	return { root => $root, list => $self->list($set, @names), count => $count, bytes => $bytes };
}

sub write_file ($path, $bytes, $block) {
	open my $fh, '>:raw', $path or die "$path: $!\n";
	for (my $left = $bytes; $left > 0; $left -= length $block) {
		print $fh $left >= length $block ? $block : substr $block, 0, $left;
	}
	close $fh or die "$path: $!\n";
	return;
}

sub _paths ($place) {
	open my $fh, '<', $place->{list} or die "$place->{list}: $!\n";
	return map { chomp; s{^https?://[^/]+}{}r =~ s/[?#].*//r =~ s/%([\da-fA-F]{2})/chr hex $1/ger } <$fh>;
}

sub _read ($place) {
	for my $path (_paths($place)) {
		open my $fh, '<:raw', "$place->{root}$path" or next;
		1 while sysread $fh, my $bytes, 1_048_576;
	}
	return;
}

sub _evict ($place) {
	system(program('accel-pool'), 'evict', $place->{root}) == 0 or die "accel-pool evict $place->{root}: status " . ($? >> 8) . "\n";
	return;
}

1;
