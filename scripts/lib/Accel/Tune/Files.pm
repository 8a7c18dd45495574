package Accel::Tune::Files;
# Which files are asked for, and how they become cold again.
#
#     my $files = Accel::Tune::Files->walk('/srv/www', seed => 1);
#     my $files = Accel::Tune::Files->listed('/srv/www', 'urls.txt');
#     $files->use(400);                           # the first 400 names
#     $files->make_cold;
#     say $files->hot, ' ', $files->list, ' ', $files->warning // '';
#
# `walk` visits directories in an order that the seed decides, for at most 10 seconds and 200,000 names, and takes 20,000 files of them.
# `listed` reads a file with a URL or a path in each line. Both shuffle: a disk that reads files in the order in which they were written would look
# faster than it is for clients. The hot file is the median of the files up to 100 kB, or the smallest one. It is not among the cold ones.
#
# Names with one of the endings of `skip` are left out: a server gives them to programs.
#
# `make_cold` drops the bytes of the used files, and of no others, from memory (accel-pool evict). Names and inodes stay in memory. With the
# option `forget`, a function, a rig may do more.
#
# `warning` tells what makes the figures doubtful: the files stay in memory, and why.
use v5.36;
use Cwd           ();
use File::Temp    ();
use JSON::PP      ();
use List::Util    qw(min shuffle sum0);
use Time::HiRes   qw(time);
use Accel::Mounts ();
use Accel::Proc   ();
use Accel::Util   qw(program put);

use constant {
	VISITED_MAX => 200_000, SECONDS_MAX => 10, TAKEN_MAX => 20_000, LIST_BYTES_MAX => 64 * 1_048_576,
	HOT_BYTES   => 102_400, LEAST => 8, STILL_WARM => 0.2,
};

sub walk ($class, $root, %arg) {
	$root = _directory($root);
	srand($arg{seed} // 1);
	my ($until, $visited, @todo, @found) = (time + SECONDS_MAX, 0, '');
	my $skip = _skipped(%arg);
	while (@todo && $visited < VISITED_MAX && time < $until) {
		my ($dir) = splice @todo, int rand @todo, 1;
		opendir my $dh, "$root$dir" or next;
		for my $name (sort grep { !/^\./ } readdir $dh) {
			last if ++$visited > VISITED_MAX;
			my $path = "$dir/$name";
			lstat "$root$path" or next;
			if (-d _) { push @todo, $path }
			elsif (-f _ && -s _ && $name !~ $skip) { push @found, [$path, -s _] }
		}
	}
	return $class->_made($root, \@found, %arg, visited => $visited, partly => @todo ? 1 : 0);
}

# A URL or a path in each line, as from an access log.
sub listed ($class, $root, $file, %arg) {
	$root = _directory($root);
	srand($arg{seed} // 1);
	open my $fh, '<:raw', $file or die "$file: $!\n";
	read $fh, my $text, LIST_BYTES_MAX;
	my (%seen, @found, $lines);
	my $skip = _skipped(%arg);
	for my $line (split /\n/, $text // '') {
		$lines++;
		my $path = $line =~ s{^https?://[^/]*}{}r =~ s/[?#\s].*//sr =~ s/%([\da-fA-F]{2})/chr hex $1/ger;
		next if $path !~ m{^/} || $path =~ m{/\.\.(?:/|\z)|\0} || $path =~ $skip || $seen{$path}++;
		push @found, [$path, -s _] if lstat "$root$path" and -f _ && -s _;
	}
	die "$file: none of its " . ($lines // 0) . " lines is a file below $root\n" unless @found;
	return $class->_made($root, \@found, %arg, visited => $lines);
}

sub _skipped (%arg) {
	my $endings = join '|', map { quotemeta } @{ $arg{skip} // [] };
	return length $endings ? qr/(?:$endings)\z/i : qr/(?!)/;
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

# Takes the names as names below another directory, used for a mount that is slow to walk.
sub move ($self, $root) { $self->{root} = $root; return }

# From now on uses only the first n files.
sub use ($self, $n) { $self->{used} = min($n, $self->count); return }

sub _url ($path) { return $path =~ s{([^\w./~-])}{sprintf '%%%02X', ord $1}ger }

# Path of a file with the URLs.
sub list ($self, $dir) { return put("$dir/urls", join '', map { _url($_->[0]) . "\n" } $self->_names) }

sub _names ($self) { return @{ $self->{files} }[0 .. $self->{used} - 1] }

# ---------------------------------------------------------------- cold

sub make_cold ($self) {
	return $self->{forget}->() if $self->{forget};
	my $list = File::Temp->new(TEMPLATE => 'accel-tune-XXXXXX', TMPDIR => 1);
	print $list map { "$_->[0]\0" } $self->_names;
	close $list or die "$list: $!\n";
	open my $fh, '-|', program('accel-pool'), 'evict', '--json', '--null', '--root', $self->{root}, '--list', "$list" or die "accel-pool: $!\n";
	my $text = join '', <$fh>;
	close $fh;
	$self->{evicted} = eval { JSON::PP::decode_json($text) } // die "accel-pool evict printed no report\n";
	return;
}

my %WHY = (tmpfs => 'they are on a tmpfs', dirty => 'they are not written to the disk yet (sync)', locked => 'a program has locked them',
	mapped => 'a program has mapped them', other => 'the kernel does not say why');

# After make_cold: the reason why the figures are doubtful, or undef.
sub warning ($self) {
	my $e = $self->{evicted} // return undef;
	return 'this kernel does not tell what is in memory (cachestat is of Linux 6.5), so nothing checks that the files are cold' if $e->{unknown} && $e->{unknown} == $e->{files};
	my $share = $e->{bytes} ? $e->{in_memory_after} / $e->{bytes} : 0;
	return undef if $share <= STILL_WARM;
	my ($reason) = sort { $e->{stayed}{$b} <=> $e->{stayed}{$a} || $a cmp $b } keys %{ $e->{stayed} };
	return sprintf '%.0f %% of the bytes stay in memory: %s; what is in memory is not read from a disk, so these figures say little about threads',
	    100 * $share, $WHY{ $reason // 'other' } // $reason;
}

# { mount, type, source, disk } of a directory, as far as they are known.
sub device ($dir) { return Accel::Proc->new->device(Accel::Mounts::stat_dev($dir) // '') }

1;
