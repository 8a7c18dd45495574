package Accel::Bench::Storage::Real;
# Files in a directory of this machine: in memory (hot), or dropped from it before each cell (evict; names stay known).
use v5.36;
use parent 'Accel::Bench::Storage::Base';
use Accel::Mounts ();
use Accel::Util qw(program slurp);
use File::Find ();

use constant { HOT_BYTES => 80 * 1_048_576, COLD_BYTES => 256 * 1_048_576, FILES_MAX => 1_000_000 };

sub usable ($self) {
	return (1) if $self->{kind} eq 'hot';
	return (0, 'accel-pool is not built') unless -x program('accel-pool');
	my $where = $self->{files_dir} // $self->{dir};
	my $type = $self->{proc}->device(Accel::Mounts::stat_dev($where) // '')->{type} // '';
	return (0, "$where is in memory ($type); name a directory on a disk with --dir") if $type =~ /^(?:tmpfs|ramfs)\z/;
	return (1);
}

sub begin ($self, $cell) {
	my $place = $self->{places}{ $cell->{files} } //= defined $self->{files_dir} ? $self->_theirs : $self->_made($cell->{files});
	$self->{root} = $place->{root};
	$self->{kind} eq 'hot' ? _read($place) : _evict($place);
	return $place;
}

# The user's files, from a list or all of them.
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
	my @names = pool($root, $count, $bytes, $self->{kind} eq 'evict' ? '--sync' : ());       # dirty pages are not dropped
	return { root => $root, list => $self->list($set, @names), count => $count, bytes => $bytes, verify => 'pattern' };
}

# Files whose bytes prove their name. Two share a directory, as in the hashed trees of caches and image stores, and are far
# apart in the list, so that they are never asked for at the same time. Returns their names.
sub pool ($dir, $count, $bytes, @options) {
	my $dirs = int(($count + 1) / 2);
	my @make = (program('accel-pool'), 'make', '--quiet', @options, '--spec', $dirs . 'x' . ($count > 1 ? 2 : 1) . "x$bytes", $dir);
	system(@make) == 0 or die "accel-pool make $dir: exit status " . ($? >> 8) . "\n";
	my @names;
	File::Find::find({ no_chdir => 1, wanted => sub { push @names, substr $_, 1 + length $dir if /\.bin\z/ } }, $dir);
	@names = sort { substr($a, -8) cmp substr($b, -8) || $a cmp $b } @names;
	return @names[0 .. $count - 1];
}

sub _read ($place) {
	open my $list, '<', $place->{list} or die "$place->{list}: $!\n";
	while (my $line = <$list>) {
		chomp $line;
		my $path = $line =~ s{^https?://[^/]+}{}r =~ s/[?#].*//r =~ s/%([\da-fA-F]{2})/chr hex $1/ger;
		open my $fh, '<:raw', "$place->{root}$path" or next;
		1 while sysread $fh, my $bytes, 1_048_576;
	}
}

sub _evict ($place) {
	my @evict = (program('accel-pool'), qw(evict --quiet --urls --root), $place->{root}, '--list', $place->{list});
	system(@evict) == 0 or die "accel-pool evict: exit status " . ($? >> 8) . "\n";
}

1;
