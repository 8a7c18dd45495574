package Accel::Bench::Rig;
# A slow disk full of cold files, with a server in front of it.
#
#     my $rig = Accel::Bench::Rig->new($bench);
#     my %disk = (spindles => 2, lookup_ms => 8, read_ms => 8);
#     my $run = $rig->fetch_each_once($kind, { %disk }, files => 500, connections => 64);
#     print "$run->{mb} MB/s\n";
#
# The document root holds the hot files (Accel::Bench::Engine) on a real disk, whose pages are in memory, and a slow
# disk (t/slowfs) at /slow:
#
#     root/1k.bin                 hot
#     root/slow/small/17/33.bin   6400 names of 100 kB, two in a directory
#     root/slow/large/3/3.bin     64 names of 10 MB
#     root/slow/1k.bin            cold once
#
# Hot files are apart because slowfs lets each open() wait, as network file systems do: a server that
# opens a file for each request would never find one of its files hot. With two names in a directory,
# as in the hashed trees of caches and image stores, a cold file takes 1.5 look-ups and one read.
#
# Each name of the same size is a hard link to one file on the real disk. That is enough, since slowfs has a
# node for each path, and the kernel keeps names, attributes and pages for each node: another name is
# cold in all of them. t/scripts/bench.t counts it.
#
# With the option `storage` of the bench, ext4 or `xfs`, the slow disk is such a file system instead (Accel::SlowImage),
# and each name a file with its own bytes, 1.3 GB in all. Then each request to the disk costs `read_ms`.
#
# Every measurement gets a mount and a server of its own: nothing is warm, nothing is left in a queue.
# A fixed number of files is fetched, not a fixed time: servers that look up 64 names before they read
# 64 files deliver in bursts, and a clock would cut such a burst anywhere.
use v5.36;
use File::Find ();
use File::Path ();
use Accel::Peer;
use Accel::SlowImage;
use Accel::Slowfs;
use Accel::Util qw(program put slurp);

my %names = (small => [6400, '100k'], large => [64, '10m']);
my $apart = 64;                 # in the list, names of the same directory: never asked for together
# Look-ups and reads of up to 128 KiB for a file. Two small files share a directory. While a large one is asked for, no other file of its
# directory is.  On ext4 a name costs reads, too: the inode and the block of a directory, the inode of a file.  For xfs this is the minimum:
# 32 inodes are one read, and small directories are in their inodes.  A cache of nginx with levels=1:2 has 4096 directories; 2000 objects
# use about 1500 of them.
my %of_storage = (
	slowfs => { small => [1.5, 1], large => [2, 80], cached => [1.7, 1], 'cached-files' => [1.7, 1] },
	ext4 => { small => [0, 3], large => [0, 83], cached => [0, 3.6] },
	xfs => { small => [0, 1], large => [0, 80], cached => [0, 1] },
);
my $storage = 'slowfs';         # one rig in a process
my $patience = 1.5;             # a server that needs longer than the disk itself by this is cut off

# Dies with the reason when there is no slow disk.  Option lists: an array of the lists that are needed; default: both.
sub new ($class, $bench, %opt) {
	my $self = bless { bench => $bench, root => $bench->files, disk => $bench->dir . '/disk' }, $class;
	$storage = $bench->opt('storage') // 'slowfs';
	my ($ok, $why) = usable($storage);
	die "bench: no slow disk: $why\n" unless $ok;
	$self->{mount} = "$self->{root}/slow";
	mkdir $_ or die "$_: $!" for $self->{disk}, $self->{mount};
	$self->{names}{$_} = $names{$_} for @{ $opt{lists} // [keys %names] };
	return $self;
}

# More files for one benchmark, before the first mount: n names of files of this size, in a list of this kind.
sub add_names ($self, $kind, $n, $size) { $self->{names}{$kind} = [$n, $size] }

# The kind of slow disk of this rig.
sub storage ($rig = undef) { return $storage }

# The kinds of slow disk, and (like Accel::Slowfs->usable) whether they can be made.
sub storages () { return ('slowfs', Accel::SlowImage::types()) }

sub usable ($which) {
	return $which eq 'slowfs' ? Accel::Slowfs->usable : Accel::SlowImage->usable($which);
}

sub _make_image ($self) {
	my %bytes;              # of each hot file, read once
	my $copy = sub ($from, $to) { put($to, $bytes{$from} //= slurp($from)) };
	my ($files, $bytes) = (1, 0);
	my $before = "$self->{disk}/cache";     # a cache that was filled before (Test::Bench::NgCache)
	File::Find::find(sub { $files++; $bytes += -s _ if -f }, $before) if -d $before;
	for my $kind (values %{ $self->{names} }) {
		my ($n, $size) = @$kind;
		$files += 1 + 2 * $n;
		$bytes += $n * -s "$self->{root}/$size.bin";
	}
	$self->{image} = Accel::SlowImage->make(type => $storage, file => "$self->{disk}/disk.img", files => $files, bytes => $bytes,
		fill => sub {
			$self->_fill($_[0], $copy);
			-d $before && system('cp', '-r', $before, "$_[0]/") && die "$before: not copied\n";
		});
	File::Path::remove_tree($before);
}

# $put->(hot file, name) makes a cold file.
sub _fill ($self, $dir, $put) {
	$put->("$self->{root}/1k.bin", "$dir/1k.bin");
	for my $kind (sort keys %{ $self->{names} }) {
		my ($n, $size) = @{ $self->{names}{$kind} };
		open my $list, '>', $self->list($kind) or die $self->list($kind) . ": $!";
		mkdir "$dir/$kind";
		for my $i (0 .. $n - 1) {
			my $folder = int($i / (2 * $apart)) * $apart + $i % $apart;
			mkdir "$dir/$kind/$folder";
			$put->("$self->{root}/$size.bin", "$dir/$kind/$folder/$i.bin");
			print $list "/slow/$kind/$folder/$i.bin\n";
		}
		close $list or die $self->list($kind) . ": $!";
	}
}

# What a server serves.
sub root ($self) { return $self->{root} }

# The directory of the slow disk's files on the fast disk, and where the slow disk is mounted.
sub disk ($self) { return $self->{disk} }
sub mount_point ($self) { return $self->{mount} }

# The file with the names of this kind, "small" or "large".
sub list ($self, $name) { return $self->{bench}->dir . "/$name.list" }

# A file with the first N names of the small ones, as paths.
sub absolute_list ($self, $files, $kind = undef) {
	my $list = $self->{bench}->dir . '/absolute.list';
	open my $in, '<', $self->list($kind // 'small') or die "$list: $!";
	open my $out, '>', $list or die "$list: $!";
	while (defined(my $name = <$in>)) {
		last if $. > $files;
		print $out $self->{root}, $name;
	}
	close $out or die "$list: $!";
	return $list;
}

sub mount_disk ($self, $disk) {
	if (!$self->{made}++) {
		$storage ne 'slowfs' ? $self->_make_image : $self->_fill($self->{disk}, sub ($from, $to) { link $from, $to or die "$to: $!" });
	}
	return $self->{bench}{disk} = $self->{image} ? Accel::SlowImage->start(image => $self->{image}, at => $self->{mount}, %$disk)
	    : Accel::Slowfs->start(source => $self->{disk}, at => $self->{mount}, %$disk);
}

# Calls $code->($server) with a fresh server on a fresh disk.  Returns the hash that $code returns, with the CPU that others used, in
# percent of a core.
sub with_server ($self, $kind, $disk, $code) {
	my $others = $self->{bench}->others_begin;
	my $slow = $self->mount_disk($disk);
	my $srv = $self->{bench}->server($kind, $self->{root});
	my $result = $code->($srv);
	$result->{others} = $self->{bench}->others_end($others, $srv->cpu + Accel::Peer::process_cpu($slow->pid));
	$slow->stop;                            # first: a server that waits for the disk cannot end
	$srv->stop;
	return $result;
}

# MB/s, requests/s, latencies in us, and us of CPU per request (accel_cpu: of the accelerator in front), for this many cold files, of 100 kB
# unless list is "large".  Requests to the disk are look-ups, opens and reads per file.
sub fetch_each_once ($self, $kind, $disk, %arg) {
	my $list = $arg{list} // 'small';
	return $self->with_server($kind, $disk, sub ($srv) {
		my $front = $srv->stat_accel;
		my ($cpu, $accel, $asked) = ($srv->cpu, $front ? $front->cpu : 0, $self->{bench}{disk}->state);
		my $r = $self->{bench}->load(-c => $arg{connections}, -u => $self->list($list), -n => $arg{files},
			-d => $patience * ideal_seconds($disk, $arg{files}, $list), -t => 60, $srv->url . '/');
		$cpu = $srv->cpu - $cpu;
		$accel = $front->cpu - $accel if $front;
		my $each = sub { return $r->{answered} ? $_[0] / $r->{answered} : undef };
		return { mb => $r->{mb_per_s}, rps => $r->{requests_per_s}, errors => $r->{errors}{all},
			p50 => $r->{latency_us}{p50}, p99 => $r->{latency_us}{p99},
			cpu => $each->(1e6 * $cpu), accel_cpu => $each->(1e6 * $accel), $self->_asked($asked, $each) };
	});
}

# Requests to the disk since then.
sub _asked ($self, $before, $each) {
	my $now = $self->{bench}{disk}->state;
	return map { $_ => $each->($now->{$_} - $before->{$_}) } qw(lookups opens reads);
}

# MB/s, files/s and us of CPU per file of 64 threads that only open and read (t/bench/plain.c): what the disk can do.
sub plain ($self, $disk, $files, $kind = undef) {
	my $others = $self->{bench}->others_begin;
	my $slow = $self->mount_disk($disk);
	my $list = $self->absolute_list($files, $kind);
	my $seconds = $patience * ideal_seconds($disk, $files, $kind);
	my $bench = $self->{bench};
	my $plain = $bench->begin($bench->on_server_core, program('plain'), -j => 64, -d => $seconds, $list);
	my %said = $bench->end($plain) =~ /(\w+)=([\d.]+)/g;
	my %asked = $self->_asked({ lookups => 0, opens => 0, reads => 0 }, sub { return $said{files} ? $_[0] / $said{files} : undef });
	$others = $bench->others_end($others, Accel::Peer::process_cpu($slow->pid));
	$slow->stop;
	return { others => $others, mb => $said{mb_per_s}, rps => $said{files_per_s}, cpu => $said{cpu_us}, %asked };
}

# The times of the disk, for a title.
sub price ($disk) {
	my ($lookup, $open, $read) = map { $disk->{$_} // 0 } qw(lookup_ms open_ms read_ms);
	return "$read ms for each request of $storage" if $storage ne 'slowfs';
	return "$read ms for each look-up and read" if $lookup == $read && !$open;
	return "look-up $lookup ms, open $open ms, $read ms for each 128 KiB";
}

# Seconds if all spindles are busy all the time.
sub ideal_seconds ($disk, $files, $kind = undef) {
	my ($lookups, $reads) = @{ $of_storage{$storage}{ $kind // 'small' } };
	return $files * ($lookups * ($disk->{lookup_ms} // 0) + $reads * $disk->{read_ms}) / 1000 / $disk->{spindles};
}

# As many files as keep the disk busy for about this time: at most as many as there are names, small ones in whole directories, large ones
# at least enough for 16 clients.
sub files_for ($disk, $seconds, $kind = undef) {
	my ($least, $most) = ($kind // 'small') eq 'small' ? (2 * $apart, $names{small}[0]) : (16, $names{large}[0]);
	my $n = $least * int($seconds / ideal_seconds($disk, $least, $kind) + 0.5);
	return $n < $least ? $least : $n > $most ? $most : $n;
}

1;
