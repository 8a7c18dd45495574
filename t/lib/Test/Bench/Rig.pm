package Test::Bench::Rig;

=head1 NAME

Test::Bench::Rig - a slow disk full of cold files, with a server in front of it

=head1 SYNOPSIS

    my $rig = Test::Bench::Rig->new($bench);
    my %disk = (spindles => 2, lookup_ms => 8, read_ms => 8);
    my $run = $rig->fetch_each_once($kind, { %disk }, files => 500, connections => 64);
    print "$run->{mb} MB/s\n";

=head1 DESCRIPTION

The document root holds the hot files (Test::Bench) on a real disk, whose pages are in memory, and a slow
disk (t/slowfs) at C</slow>:

    root/1k.bin                 hot
    root/slow/small/17/33.bin   6400 names of 100 kB, two in a directory
    root/slow/large/3/3.bin     64 names of 10 MB
    root/slow/1k.bin            cold once

Hot files are apart because slowfs lets each open() wait, as network file systems do: a server that
opens a file for each request would never find one of its files hot. With two names in a directory,
as in the hashed trees of caches and image stores, a cold file takes 1.5 look-ups and one read.

Each name of the same size is a hard link to one file on the real disk. That is enough, since slowfs has a
node for each path, and the kernel keeps names, attributes and pages for each node: another name is
cold in all of them. t/scripts/bench.t counts it.

Every measurement gets a mount and a server of its own: nothing is warm, nothing is left in a queue.
A fixed number of files is fetched, not a fixed time: servers that look up 64 names before they read
64 files deliver in bursts, and a clock would cut such a burst anywhere.

=cut

use strict;
use warnings;
use Test::Peer;
use Test::Slowfs;

my %names = (small => [6400, '100k'], large => [64, '10m']);
my $apart = 64;                 # in the list, names of the same directory: never asked for together
my $patience = 1.5;             # a server that needs longer than the disk itself by this is cut off

# Dies with the reason when there is no FUSE.
sub new {
	my ($class, $bench) = @_;
	my ($ok, $why) = Test::Slowfs->usable;
	die "bench: no slow disk: $why\n" unless $ok;
	my $self = bless { bench => $bench, root => $bench->files, disk => $bench->dir . '/disk' }, $class;
	$self->{mount} = "$self->{root}/slow";
	mkdir $_ or die "$_: $!" for $self->{disk}, $self->{mount};
	$self->_link('1k', '1k.bin');
	$self->_fill($_, @{ $names{$_} }) for sort keys %names;
	return $self;
}

# More files for one benchmark: n names of files of this size, in a list of this kind.
sub add_names { my ($self, $kind, $n, $size) = @_; return $self->_fill($kind, $n, $size) }

sub _fill {
	my ($self, $kind, $n, $size) = @_;
	open my $list, '>', $self->list($kind) or die $self->list($kind) . ": $!";
	mkdir "$self->{disk}/$kind";
	for my $i (0 .. $n - 1) {
		my $folder = int($i / (2 * $apart)) * $apart + $i % $apart;
		mkdir "$self->{disk}/$kind/$folder";
		$self->_link($size, "$kind/$folder/$i.bin");
		print $list "/slow/$kind/$folder/$i.bin\n";
	}
	close $list or die $self->list($kind) . ": $!";
}

sub _link {
	my ($self, $size, $name) = @_;
	link "$self->{root}/$size.bin", "$self->{disk}/$name" or die "$self->{disk}/$name: $!";
}

# What a server serves.
sub root { return $_[0]{root} }

# The files of the slow disk where they are fast, and where it is mounted.
sub disk        { return $_[0]{disk} }
sub mount_point { return $_[0]{mount} }

# The file with the names of this kind, "small" or "large".
sub list { return $_[0]{bench}->dir . "/$_[1].list" }

# A file with the first so many names of the small ones, as paths.
sub absolute_list {
	my ($self, $files, $kind) = @_;
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

sub mount_disk {
	my ($self, $disk) = @_;
	return $self->{bench}{disk} = Test::Slowfs->start(source => $self->{disk}, at => $self->{mount}, %$disk);
}

# Calls $code->($server) with a fresh server on a fresh disk; returns the hash that it returns, and adds
# what others used in percent of a core.
sub with_server {
	my ($self, $kind, $disk, $code) = @_;
	my $others = $self->{bench}->others_begin;
	my $slow = $self->mount_disk($disk);
	my $srv = $self->{bench}->server($kind, $self->{root});
	my $result = $code->($srv);
	$result->{others} = $self->{bench}->others_end($others, $srv->cpu + Test::Peer::process_cpu($slow->pid));
	$slow->stop;                            # first: a server that waits for the disk cannot end
	$srv->stop;
	return $result;
}

# MB/s, requests/s, latencies in us, and us of CPU per request (of accel_cpu those of the accelerator in front), for so many
# cold files, of 100 kB unless list is "large". What the disk was asked for comes as look-ups, opens and reads for each file.
sub fetch_each_once {
	my ($self, $kind, $disk, %arg) = @_;
	my $list = $arg{list} // 'small';
	return $self->with_server($kind, $disk, sub {
		my ($srv) = @_;
		my $front = $srv->stat_accel;
		my ($cpu, $accel, $asked) = ($srv->cpu, $front ? $front->cpu : 0, $self->{bench}{disk}->state);
		my $r = $self->{bench}->load(-c => $arg{connections}, -u => $self->list($list), -n => $arg{files},
			-d => $patience * ideal_seconds($disk, $arg{files}, $list), -t => 60, $srv->url . '/');
		$cpu = $srv->cpu - $cpu;
		$accel = $front->cpu - $accel if $front;
		my $each = sub { return $r->{answered} ? $_[0] / $r->{answered} : undef };
		return { mb => $r->{mb_per_s}, rps => $r->{rps}, errors => $r->{errors}{all},
			p50 => $r->{latency_us}{p50}, p99 => $r->{latency_us}{p99},
			cpu => $each->(1e6 * $cpu), accel_cpu => $each->(1e6 * $accel), $self->_asked($asked, $each) };
	});
}

# What the disk was asked since then.
sub _asked {
	my ($self, $before, $each) = @_;
	my $now = $self->{bench}{disk}->state;
	return map { $_ => $each->($now->{$_} - $before->{$_}) } qw(lookups opens reads);
}

# MB/s, files/s and us of CPU per file of 64 threads that just open and read (t/bench/plain.c): what the disk can do.
sub plain {
	my ($self, $disk, $files, $kind) = @_;
	my $others = $self->{bench}->others_begin;
	my $slow = $self->mount_disk($disk);
	my $list = $self->absolute_list($files, $kind);
	my $seconds = $patience * ideal_seconds($disk, $files, $kind);
	my $bench = $self->{bench};
	my $plain = $bench->begin($bench->on_server_core, $bench->bin . '/plain', -j => 64, -d => $seconds, $list);
	my %said = $bench->end($plain) =~ /(\w+)=([\d.]+)/g;
	my %asked = $self->_asked({ lookups => 0, opens => 0, reads => 0 }, sub { return $said{files} ? $_[0] / $said{files} : undef });
	$others = $bench->others_end($others, Test::Peer::process_cpu($slow->pid));
	$slow->stop;
	return { others => $others, mb => $said{mb_per_s}, rps => $said{files_per_s}, cpu => $said{cpu_us}, %asked };
}

# All spindles busy all the time. Two files of 100 kB take three look-ups and two reads of up to 128 KiB; one of 10 MB,
# alone in its directory for as long as it is asked for, two look-ups and 80 reads. A cache with levels=1:2 has 4096 directories.
my %work = (small => [1.5, 1], large => [2, 80], cached => [1.7, 1], 'cached-files' => [1.7, 1]);

sub ideal_seconds {
	my ($disk, $files, $kind) = @_;
	my ($lookups, $reads) = @{ $work{ $kind // 'small' } };
	return $files * ($lookups * $disk->{lookup_ms} + $reads * $disk->{read_ms}) / 1000 / $disk->{spindles};
}

# So many files keep the disk busy for about this time: no more than there are names, small ones in whole directories, large
# ones enough for 16 clients.
sub files_for {
	my ($disk, $seconds, $kind) = @_;
	my ($least, $most) = ($kind // 'small') eq 'small' ? (2 * $apart, $names{small}[0]) : (16, $names{large}[0]);
	my $n = $least * int($seconds / ideal_seconds($disk, $least, $kind) + 0.5);
	return $n < $least ? $least : $n > $most ? $most : $n;
}

1;
