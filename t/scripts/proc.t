# Disk and CPU lanes from /proc, and names for device numbers, from saved samples.
use v5.36;
use Test::More;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use FindBin ();
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../scripts/lib";
use Accel::Mounts ();
use Accel::Proc   ();
use JSON::PP      ();
use Test::Util    qw(put temp_tree);

# major minor name, then reads merged sectors ms, writes merged sectors ms, in flight, busy ms, queue ms; discards and flushes
sub disk ($number, $name, @n) { return sprintf "%4d %7d %s %s\n", split(/:/, $number), $name, join ' ', @n, (0) x 6 }

sub lanes ($before, $after, $seconds = 2) {
	my @shot = map { Accel::Proc::parsed($_->[0], { diskstats => '', stat => '', vmstat => '', %{ $_->[1] } }, { vda => '/' }) } [100, $before], [100 + $seconds, $after];
	return Accel::Proc::lanes(@shot);
}

subtest 'a disk: what iostat -x shows' => sub {
	my $row = lanes({ diskstats => disk('254:0', 'vda', 1000, 5, 80000, 900, 200, 1, 16000, 100, 0, 3000, 9000) },
		{ diskstats => disk('254:0', 'vda', 1180, 5, 80000 + 39062.5 * 2, 900 + 2500, 220, 1, 16000 + 3906.25 * 2, 200, 3, 4500, 9000 + 7400) =~ s/\.5//gr });
	is_deeply $row->{disks}{vda}, { device => '254:0', mount => '/', util => 75, queue => 3.7, await_ms => 13, reads_per_s => 90, writes_per_s => 10,
		read_mb_per_s => 20, write_mb_per_s => 2 }, 'util, queue, await, requests and MB' or diag explain $row;
	is $row->{seconds}, 2, 'the interval';
	is $row->{time}, 102, 'the time of the second snapshot';
	is $row->{us}, undef, 'no number is invented for what the kernel does not give';
};

subtest 'processors and paging: what vmstat shows' => sub {
	my $row = lanes(
		{ stat => "cpu  100 0 50 800 40 1 9 0 7 7\ncpu0 1 1 1 1\nctxt 1000\nprocs_running 2\nprocs_blocked 0\n", vmstat => "nr_free_pages 5\npgpgin 1000\npgpgout 500\n" },
		{ stat => "cpu  120 20 80 880 80 2 18 10 9 9\ncpu0 1 1 1 1\nctxt 3000\nprocs_running 3\nprocs_blocked 17\n", vmstat => "pgpgin 201000\npgpgout 1500\n" });
	is_deeply [@$row{qw(us sy id wa st)}], [map { sprintf('%.1f', $_ / 2.1) + 0 } 40, 40, 80, 40, 10], 'user with nice, system with interrupts, idle, waiting, stolen';
	is_deeply [@$row{qw(cs bi bo blocked running)}], [1000, 100000, 500, 17, 3], 'context switches, KiB in and out, blocked processes';
	is_deeply { %{ lanes({ stat => "cpu 1 2 3 4\n" }, { stat => "cpu 2 4 6 8\n" }) }{qw(us id st)} }, { us => 30, id => 40, st => 0 }, 'a kernel with four columns';
	is lanes({ stat => "cpu 5 5 5 5\n" }, { stat => "cpu 5 5 5 5\n" })->{id}, undef, 'no tick in between';
};

subtest 'which rows are disks' => sub {
	my $text = join '', map { disk("8:$_->[0]", $_->[1], 5, (0) x 10) }
		[0, 'sda'], [1, 'sda1'], [2, 'sda12'], [3, 'nvme0n1'], [4, 'nvme0n1p2'], [5, 'dm-1'], [6, 'dm-10'], [7, 'xvda1'], [8, 'md127'], [9, 'md127p1'], [10, 'mmcblk0boot0'], [11, 'sdaa'];
	$text .= disk('7:0', 'loop0', (0) x 11);
	is join(' ', sort keys %{ Accel::Proc::parse_diskstats($text) }), 'dm-1 dm-10 md127 mmcblk0boot0 nvme0n1 sda sdaa xvda1', 'no partitions, and nothing that was never used';
};

subtest 'odd and hostile texts' => sub {
	for my $text ('', "\n\n", "254 0 vda\n", "254 0 vda 1 2 3 4 5 6 7 8 9 10\n", "x y vda " . join(' ', (1) x 11) . "\n", "254 0 vda -1 " . join(' ', (1) x 10) . "\n", "\0\xff" x 1000) {
		is_deeply Accel::Proc::parse_diskstats($text), {}, 'not a row of a disk: ' . length $text;
	}
	is_deeply lanes({}, {})->{disks}, {}, 'a container without /proc/diskstats';
	my $wrapped = lanes({ diskstats => disk('8:0', 'sda', 10, 0, 0, 0, 0, 0, 0, 0, 0, 2**32 - 500, 0) }, { diskstats => disk('8:0', 'sda', 10, 0, 0, 0, 0, 0, 0, 0, 0, 500, 0) });
	is $wrapped->{disks}{sda}{util}, 50, 'a counter of 32 bits wraps';
	my $again = lanes({ diskstats => disk('8:0', 'sda', (5_000_000) x 11) }, { diskstats => disk('8:0', 'sda', (10) x 11) });
	is $again->{disks}{sda}{read_mb_per_s}, 0, 'a disk that was exchanged counts from the start';
	is_deeply lanes({ diskstats => disk('8:0', 'sda', (5) x 11) }, { diskstats => disk('8:16', 'sda', (9) x 11) })->{disks}, {}, 'another disk of that name';
	is lanes({ diskstats => disk('8:0', 'sda', (5) x 11) }, { diskstats => disk('8:0', 'sda', (99999999) x 11) })->{disks}{sda}{util}, 100, 'at most 100 %';
	is lanes({}, {}, 0), undef, 'a clock that stands still';
	is lanes({}, {}, -5), undef, 'a clock that was set back';
	my $many = join '', map { disk("8:$_", 'sd' . join('', map { chr(97 + $_) } int($_ / 26) % 26, $_ % 26), 5, (0) x 8, $_, 0) } 0 .. 299;
	my $row = lanes({ diskstats => $many =~ s/ \d+ 0( 0){6}$/ 0 0$1/gmr }, { diskstats => $many });
	is scalar keys %{ $row->{disks} }, Accel::Proc::DISKS_MAX, 'a machine with 300 disks: the busiest are kept';
	ok eval { JSON::PP->new->encode($row) }, 'it is data for JSON';
};

subtest 'the table of mounts' => sub {
	my $table = Accel::Mounts::parse(<<'EOT' . "garbage\n1 2 x:y / /q rw - ext4 none rw\n30 1 9:9 /\n");
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
28 27 254:0 /srv/www /var/www rw shared:5 master:1 - ext4 /dev/vda rw
29 27 8:1 / /srv/a\040b\134c\012d rw - xfs /dev/sda1 rw
30 27 0:53 / /mnt/ssh rw - fuse.sshfs user@host:/ rw
31 27 0:54 / /mnt/nfs rw - nfs4 host:/export rw
32 27 8:2 / /mnt/hidden rw - ext4 /dev/sda2 rw
33 27 0:55 / /mnt/hidden rw - tmpfs none rw
34 27 0:60 /a /deep/one rw - btrfs /dev/sdb rw
35 27 0:60 / /deep/longer rw - btrfs /dev/sdb rw
EOT
	is scalar @$table, 9, 'malformed lines are left out';
	my $at = Accel::Mounts::by_device($table);
	is_deeply { map { $_ => $at->{$_}{point} } keys %$at }, { '254:0' => '/', '8:1' => "/srv/a b\\c\nd", '0:53' => '/mnt/ssh', '0:54' => '/mnt/nfs', '0:55' => '/mnt/hidden', '0:60' => '/deep/longer' },
		'each device by the mount of its root, then the shortest; a hidden mount names nothing';
	is $at->{'0:53'}{type}, 'fuse.sshfs', 'with its type';
};

subtest 'disks below mounts: partitions, dm, loop' => sub {
	my $root = temp_tree();
	my ($sys, $proc) = ("$root/sys", "$root/proc");
	my $add = sub ($dir, %file) {
		for my $path (map { "$sys/$dir/$_" } keys %file) {
			make_path(dirname($path));
			put($path, $file{ substr $path, length "$sys/$dir/" });
		}
	};
	make_path("$sys/block/sda", "$sys/block/loop3", "$sys/class/block/sda/sda2", "$proc/self");
	put("$sys/class/block/sda/sda2/partition", "2\n");
	$add->('class/block/sda', dev => "8:0\n");
	$add->('class/block/sda2', dev => "8:2\n");
	make_path("$sys/class/block/sda2/holders/dm-0");
	$add->('class/block/dm-0', dev => "253:0\n");
	make_path("$sys/class/block/dm-0/holders/dm-0");    # a loop in a broken /sys ends
	$add->('class/block/loop3', dev => "7:3\n");
	$add->('dev/block/253:0', uevent => "MAJOR=253\nDEVNAME=dm-0\n", 'dm/name' => "vg-www\n");
	$add->('dev/block/7:3', uevent => "DEVNAME=loop3\n", 'loop/backing_file' => "/srv/disk image\n");
	put("$proc/self/mountinfo", "1 0 253:0 / /srv rw - ext4 /dev/mapper/vg-www rw\n2 0 7:3 / /mnt rw - xfs /dev/loop3 rw\n");
	put("$proc/diskstats", disk('8:0', 'sda', (1) x 11) . disk('7:3', 'loop3', (1) x 11));
	my $p = Accel::Proc->new(proc => $proc, sys => $sys);
	is_deeply $p->snapshot->{places}, { sda => '/srv', loop3 => '/mnt' }, 'the disk that carries a mount';
	is_deeply $p->device('253:0'), { mount => '/srv', type => 'ext4', source => '/dev/mapper/vg-www', disk => 'dm-0 (vg-www)' }, 'a device of the mapper';
	is $p->device('7:3')->{disk}, 'loop3 (/srv/disk image)', 'the file behind a loop device';
	is_deeply $p->device($_), {}, "nothing is known: $_" for '9:9', 'unknown', '../../etc';
	put("$proc/self/mountinfo", "1 0 253:0 / /moved rw - ext4 /dev/mapper/vg-www rw\n");
	is $p->device('253:0')->{mount}, '/moved', 'the table is read again when it changes';
};

subtest 'this machine' => sub {
	my $p = Accel::Proc->new;
	my $before = $p->snapshot;
	select undef, undef, undef, 0.05;
	my $row = Accel::Proc::lanes($before, $p->snapshot);
	cmp_ok $row->{cs}, '>', 0, 'context switches';
	my ($dev) = map { $_->{dev} } grep { $_->{point} eq '/proc' } @{ Accel::Mounts::read_table() };
	is $p->device(Accel::Mounts::stat_dev('/proc'))->{mount}, '/proc', 'stat(2) and the table of mounts name devices in the same way' if defined $dev;
};

done_testing;
