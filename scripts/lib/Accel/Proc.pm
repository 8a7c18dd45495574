package Accel::Proc;
# What iostat -x and vmstat show, from two snapshots of /proc: each disk, the processors, paging.
#
#     my $proc   = Accel::Proc->new;                      # proc => DIR, sys => DIR: other roots
#     my $before = $proc->snapshot;
#     sleep 1;
#     my $row    = Accel::Proc::lanes($before, $proc->snapshot);
#     say "$row->{wa} % waiting, disk $row->{disks}{vda}{util} % busy";
#     say $proc->device('254:0')->{mount};
#
# A row:
#
#     { time, seconds, us, sy, id, wa, st, cs, bi, bo, running, blocked,
#       disks => { vda => { device, mount, util, queue, await_ms, reads_per_s, writes_per_s, read_mb_per_s, write_mb_per_s } } }
#
# `time` is seconds since 1970, `us` to `st` are percent of all processors, `cs` is per second, `bi` and `bo` are KiB per second. `util`
# is percent, `queue` the mean number of requests in the queue and the disk, MB are 10^6 bytes. A number that this kernel does
# not give is undef. Disks that have done nothing since the machine started are left out; so are partitions. At most 256 disks
# are in a row: the busiest.
use v5.36;

use Accel::Mounts ();
use Accel::Util  qw(slurp);
use List::Util  qw(max min sum0);
use Time::HiRes ();

use constant { DISKS_MAX => 256, SECTOR => 512, WRAP => 2**32 };

my @DISK = qw(reads reads_merged sectors_read read_ms writes writes_merged sectors_written write_ms in_flight busy_ms queue_ms);
my @CPU  = qw(user nice system idle iowait irq softirq steal);

sub new ($class, %arg) { return bless { proc => '/proc', sys => '/sys', %arg }, $class }

# ---------------------------------------------------------------- the texts

# { vda => { reads, ... , device => '254:0' } } of /proc/diskstats: disks that have done something, without their partitions.
sub parse_diskstats ($text) {
	my %disk;
	for my $line (split /\n/, $text) {
		my ($major, $minor, $name, @n) = split ' ', $line;
		next if @n < @DISK || grep { !/^\d+\z/ } $major, $minor, @n[0 .. $#DISK];
		my %row = (device => "$major:$minor");
		@row{@DISK} = @n;
		$disk{$name} = \%row;
	}
	my @parts = grep { is_partition($_, \%disk) } keys %disk;
	delete @disk{@parts};
	return { map { $_ => $disk{$_} } grep { $disk{$_}{reads} + $disk{$_}{writes} } keys %disk };
}

# sda1 is one of sda, nvme0n1p2 of nvme0n1; dm-10 is not one of dm-1.
sub is_partition ($name, $disks) {
	return 0 unless $name =~ /^(.*?\D)\d+\z/;
	my $disk = $1;
	return 1 if $disks->{$disk};
	return $disk =~ s/(?<=\d)p\z// && exists $disks->{$disk};
}

# { cpu => [...], cs, running, blocked } of /proc/stat; what is not there is undef.
sub parse_stat ($text) {
	my ($cpu) = $text =~ /^cpu +(\d[\d ]*)$/m;
	my %n = $text =~ /^(ctxt|procs_running|procs_blocked) (\d+)$/mg;
	my %got = (cs => $n{ctxt}, map { my $v = $n{"procs_$_"}; ($_ => defined $v ? $v + 0 : undef) } qw(running blocked));
	@{ $got{cpu} }{@CPU} = map { $_ // 0 } (split ' ', $cpu)[0 .. $#CPU] if defined $cpu;
	return \%got;
}

# ---------------------------------------------------------------- snapshots

sub snapshot ($self) {
	my $p = $self->{proc};
	my %text = map { $_ => slurp("$p/$_") } qw(diskstats stat vmstat);
	return parsed(Time::HiRes::time(), \%text, $self->places);
}

# The figures in saved texts of these files.  $places: { vda => '/' }.
sub parsed ($time, $text, $places = {}) {
	my %kib = $text->{vmstat} =~ /^(pgpgin|pgpgout) (\d+)$/mg;    # that came from and went to disks
	return { time => $time, disks => parse_diskstats($text->{diskstats}), places => $places, %{ parse_stat($text->{stat}) },
		bi => $kib{pgpgin}, bo => $kib{pgpgout} };
}

# { vda => '/' }: the mount point with the shortest path that lies on each disk; read again when the table of mounts changes.
sub places ($self) {
	my $table = slurp("$self->{proc}/self/mountinfo");
	return $self->{places} if defined $self->{table} && $table eq $self->{table};
	$self->{table} = $table;
	my $at = $self->{at} = Accel::Mounts::names(Accel::Mounts::parse($table));
	my %place;
	for my $name (map { tr{!}{/}r } Accel::Mounts::entries("$self->{sys}/block")) {
		my @points = map { $at->{$_} ? $at->{$_}{point} : () } Accel::Mounts::devices_on($name, $self->{sys});
		($place{$name}) = sort { length $a <=> length $b || $a cmp $b } @points if @points;
	}
	return $self->{places} = \%place;
}

# { mount, type, source, disk } of a device number as servers write it, "254:0"; what is not known is missing.
sub device ($self, $number) {
	$self->places;
	return {} unless $number =~ /^\d+:\d+\z/;
	my $m    = $self->{at}{$number};
	my $disk = Accel::Mounts::disk_name($number, $self->{sys});
	return { $m ? (mount => $m->{point}, type => $m->{type}, source => $m->{source}) : (), defined $disk ? (disk => $disk) : () };
}

# ---------------------------------------------------------------- two snapshots: a row of lanes

# The counters of disks are 32 bits wide on small machines and may wrap; those of a disk that was exchanged start again.
sub grown ($before, $after) {
	return $after - $before if $after >= $before;
	my $wrapped = $after + WRAP - $before;
	return $before < WRAP && $wrapped < WRAP / 2 ? $wrapped : 0;
}

sub rounded ($n) { return $n >= 100 ? sprintf('%.0f', $n) + 0 : sprintf('%.2f', $n) + 0 }

sub disk_lane ($before, $after, $seconds, $mount) {
	my %d = map { $_ => grown($before->{$_}, $after->{$_}) } @DISK;
	my $done = $d{reads} + $d{writes};
	return {
		device => $after->{device}, mount => $mount,
		util => rounded(min(100, $d{busy_ms} / 10 / $seconds)),
		queue => rounded($d{queue_ms} / 1000 / $seconds),
		await_ms => $done ? rounded(($d{read_ms} + $d{write_ms}) / $done) : 0,
		reads_per_s => rounded($d{reads} / $seconds), writes_per_s => rounded($d{writes} / $seconds),
		read_mb_per_s => rounded($d{sectors_read} * SECTOR / 1e6 / $seconds),
		write_mb_per_s => rounded($d{sectors_written} * SECTOR / 1e6 / $seconds),
	};
}

sub cpu_lanes ($before, $after) {
	return map { $_ => undef } qw(us sy id wa st) unless $before && $after;
	my %d = map { $_ => max(0, $after->{$_} - $before->{$_}) } @CPU;
	my $all = sum0(values %d) or return map { $_ => undef } qw(us sy id wa st);
	my %part = (us => $d{user} + $d{nice}, sy => $d{system} + $d{irq} + $d{softirq}, id => $d{idle}, wa => $d{iowait}, st => $d{steal});
	return map { $_ => sprintf('%.1f', 100 * $part{$_} / $all) + 0 } keys %part;
}

# A row of a lanes file.  undef: the clock did not move.
sub lanes ($before, $after) {
	my $seconds = $after->{time} - $before->{time};
	return undef if $seconds <= 0;
	my %per_s = map { $_ => defined $before->{$_} && defined $after->{$_} ? rounded(grown($before->{$_}, $after->{$_}) / $seconds) : undef } qw(cs bi bo);
	my %disk;
	for my $name (keys %{ $after->{disks} }) {
		my $old = $before->{disks}{$name} // next;
		next if $old->{device} ne $after->{disks}{$name}{device};
		$disk{$name} = disk_lane($old, $after->{disks}{$name}, $seconds, $after->{places}{$name});
	}
	my @busiest = sort { $disk{$b}{util} <=> $disk{$a}{util} || $a cmp $b } keys %disk;
	delete @disk{ @busiest[DISKS_MAX .. $#busiest] } if @busiest > DISKS_MAX;
	return { time => sprintf('%.6f', $after->{time}) + 0, seconds => sprintf('%.3f', $seconds) + 0, %per_s,
		cpu_lanes($before->{cpu}, $after->{cpu}), running => $after->{running}, blocked => $after->{blocked}, disks => \%disk };
}

1;
