package Accel::Tune::Files;

=head1 NAME

Accel::Tune::Files - which files are asked for, and how they become cold again

=head1 SYNOPSIS

    my $files = Accel::Tune::Files->walk('/srv/www', seed => 1);
    my $files = Accel::Tune::Files->listed('/srv/www', 'urls.txt');
    $files->use(400);                           # the first 400 names
    $files->make_cold;
    say $files->hot, ' ', $files->list, ' ', $files->warning // '';

=head1 DESCRIPTION

C<walk> visits directories in an order that the seed decides, for at most 10 seconds and 200,000 names, and takes 20,000 files of them.
C<listed> reads a file with a URL or a path in each line. Both shuffle: a disk that reads files in the order in which they were written would look
faster than it is for clients. The hot file is the median of the files up to 100 kB, or the smallest one. It is not among the cold ones.

C<make_cold> drops the bytes of the used files, and of no others, from memory (POSIX_FADV_DONTNEED). Names and inodes stay in memory. With the
option C<forget>, a function, a rig may do more.

C<warning> tells what makes the figures doubtful: no file is on a disk, or the files stay in memory.

=cut

use v5.36;
use Cwd           ();
use Fcntl         qw(O_RDONLY O_NOFOLLOW O_NONBLOCK);
use List::Util    qw(min shuffle sum0);
use POSIX         ();
use Time::HiRes   qw(time);
use Accel::Mounts ();
use Accel::Proc   ();

use constant {
	VISITED_MAX => 200_000, SECONDS_MAX => 10, TAKEN_MAX => 20_000, LIST_BYTES_MAX => 64 * 1_048_576,
	HOT_BYTES   => 102_400, LEAST => 8, LOOKED_AT => 200, STILL_WARM => 0.2, DONTNEED => 4,
};

# Numbers of system calls: posix_fadvise is older than the common table, cachestat (Linux 6.5) is in it.
my %FADVISE = (x86_64 => 221, aarch64 => 223, riscv64 => 223, loongarch64 => 223, ppc64le => 233, s390x => 253);
use constant CACHESTAT => 451;

sub walk ($class, $root, %arg) {
	$root = _directory($root);
	srand($arg{seed} // 1);
	my ($until, $visited, @todo, @found) = (time + SECONDS_MAX, 0, '');
	while (@todo && $visited < VISITED_MAX && time < $until) {
		my ($dir) = splice @todo, int rand @todo, 1;
		opendir my $dh, "$root$dir" or next;
		for my $name (sort grep { !/^\./ } readdir $dh) {
			last if ++$visited > VISITED_MAX;
			my $path = "$dir/$name";
			lstat "$root$path" or next;
			if (-d _) { push @todo, $path }
			elsif (-f _ && -s _) { push @found, [$path, -s _] }
		}
	}
	return $class->_made($root, \@found, %arg, visited => $visited, partly => @todo ? 1 : 0);
}

# A URL or a path in each line, as of an access log.
sub listed ($class, $root, $file, %arg) {
	$root = _directory($root);
	srand($arg{seed} // 1);
	open my $fh, '<:raw', $file or die "$file: $!\n";
	read $fh, my $text, LIST_BYTES_MAX;
	my (%seen, @found, $lines);
	for my $line (split /\n/, $text // '') {
		$lines++;
		my $path = $line =~ s{^https?://[^/]*}{}r =~ s/[?#\s].*//sr =~ s/%([\da-fA-F]{2})/chr hex $1/ger;
		next if $path !~ m{^/} || $path =~ m{/\.\.(?:/|\z)|\0} || $seen{$path}++;
		push @found, [$path, -s _] if lstat "$root$path" and -f _ && -s _;
	}
	die "$file: none of its " . ($lines // 0) . " lines is a file below $root\n" unless @found;
	return $class->_made($root, \@found, %arg, visited => $lines);
}

sub _directory ($root) {
	my $path = Cwd::abs_path($root);
	die "$root: no such directory\n" unless defined $path && -d $path;
	die "$root: may not be read by this user\n" unless -r _ && -x _;
	return $path;
}

sub _made ($class, $root, $found, %arg) {
	my @files = shuffle(grep { -r "$root$_->[0]" } sort { $a->[0] cmp $b->[0] } @$found);
	die "$root: no files to ask for; at least " . (LEAST + 1) . " are needed, " . @files . " were found\n" if @files <= LEAST;
	my @small = sort { $a->[1] <=> $b->[1] } grep { $_->[1] <= HOT_BYTES } @files;
	my ($hot) = @small ? $small[$#small / 2] : sort { $a->[1] <=> $b->[1] } @files;
	@files = grep { $_->[0] ne $hot->[0] } @files;
	splice @files, TAKEN_MAX if @files > TAKEN_MAX;
	return bless { root => $root, files => \@files, used => scalar @files, hot => $hot->[0], %arg }, $class;
}

sub root   ($self) { return $self->{root} }
sub hot    ($self) { return _url($self->{hot}) }
sub count  ($self) { return scalar @{ $self->{files} } }
sub used   ($self) { return $self->{used} }
sub bytes  ($self) { return sum0(map { $_->[1] } @{ $self->{files} }[0 .. $self->{used} - 1]) }
sub partly ($self) { return $self->{partly} }

# The same names below another directory: a mount that is slow to walk.
sub move ($self, $root) { $self->{root} = $root; return }

# Only the first so many of them from now on.
sub use ($self, $n) { $self->{used} = min($n, $self->count); delete $self->{list}; return }

sub _url ($path) { return $path =~ s{([^\w./~-])}{sprintf '%%%02X', ord $1}ger }

# Path of a file with the URLs. "absolute" has the paths of files as the accelerator is asked for them.
sub list ($self, $dir) {
	return $self->_written("$dir/urls", map { _url($_->[0]) } $self->_names);
}

sub absolute_list ($self, $dir) {
	return $self->_written("$dir/paths", map { "$self->{root}$_->[0]" } grep { $_->[0] !~ /[\n\s]/ } $self->_names);
}

sub _names ($self) { return @{ $self->{files} }[0 .. $self->{used} - 1] }

sub _written ($self, $path, @lines) {
	open my $fh, '>:raw', $path or die "$path: $!\n";
	print $fh map { "$_\n" } @lines;
	close $fh or die "$path: $!\n";
	return $path;
}

# ---------------------------------------------------------------- cold

sub make_cold ($self) {
	return $self->{forget}->() if $self->{forget};
	my $call = $FADVISE{ _machine() } // die 'no posix_fadvise for ' . _machine() . " in accel-tune\n";
	for my $file ($self->_names) {
		my $fh = $self->_opened($file) // next;
		syscall $call, fileno $fh, 0, 0, DONTNEED;
	}
	return;
}

sub _machine () { return state $machine = (POSIX::uname())[4] }

# A file may have become a pipe or a link since.
sub _opened ($self, $file) {
	sysopen my $fh, "$self->{root}$file->[0]", O_RDONLY | O_NOFOLLOW | O_NONBLOCK or return undef;
	return $fh;
}

# Share of the bytes that are in memory, of some files; undef where the kernel does not tell.
sub in_memory ($self) {
	my ($pages, $cached) = (0, 0);
	for my $file (($self->_names)[0 .. min($self->{used}, LOOKED_AT) - 1]) {
		my $fh = $self->_opened($file) // next;
		my ($range, $stat) = (pack('QQ', 0, 0), "\0" x 40);
		return undef if syscall(CACHESTAT, fileno $fh, $range, $stat, 0) != 0;
		$cached += unpack 'Q', $stat;
		$pages  += int(($file->[1] + 4095) / 4096);
	}
	return $pages ? $cached / $pages : undef;
}

# After make_cold: what makes the figures doubtful, or undef.
sub warning ($self) {
	my $share = $self->{forget} ? 0 : $self->in_memory;
	return undef if defined $share && $share <= STILL_WARM;
	return 'this kernel does not tell which files are in memory (cachestat is of Linux 6.5); nothing checks that the files are cold' unless defined $share;
	my $type = $self->_file_system;
	return sprintf '%.0f %% of the bytes stay in memory after they were dropped%s: no disk is read, so these figures are those of memory and say nothing '
	    . 'about threads', 100 * $share, $type =~ /^(?:tmpfs|ramfs)\z/ ? ", because $self->{root} is a $type" : '; a program may keep them mapped, or they are not written back yet (sync)';
}

sub _file_system ($self) { return device($self->{root})->{type} // '' }

# { mount, type, source, disk } of a directory, as far as they are known.
sub device ($dir) { return Accel::Proc->new->device(Accel::Mounts::stat_dev($dir) // '') }

1;
