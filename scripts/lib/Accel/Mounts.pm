package Accel::Mounts;
# The table of mounts, and names for device numbers: "254:0" is the disk vda, mounted at /.
#
# Nothing here touches a file system of the table: a mount of a dead server would hang the caller. btrfs is the exception in
# stat_dev(), because its files have device numbers that are not in the table.
#
#     my $mounts = Accel::Mounts::read_table();                       # of /proc/self/mountinfo
#     my $at     = Accel::Mounts::names($mounts);
#     say $at->{'0:53'}{point};                                       # a FUSE mount
#     say Accel::Mounts::disk_name('254:0');                          # vda
#     say join ' ', Accel::Mounts::devices_on('sda');                 # 8:0 8:1 253:0
use v5.36;

use Accel::Util qw(slurp);

# The lines of /proc/self/mountinfo as [{ point, type, source, dev, root }...]; a malformed line is left out.
sub parse ($text) {
	my @mounts;
	for my $line (split /\n/, $text) {
		my ($left, $right) = split / - /, $line, 2;
		my (undef, undef, $dev, $root, $point) = split ' ', $left // '';
		my ($type, $source) = split ' ', $right // '';
		next unless defined $type && defined $point && $dev =~ /^\d+:\d+\z/;
		push @mounts, { point => unescaped($point), type => $type, source => unescaped($source // ''), dev => $dev, root => unescaped($root) };
	}
	return \@mounts;
}

sub unescaped ($word) { return $word =~ s/\\([0-3][0-7]{2})/chr oct $1/ger }

sub read_table ($file = '/proc/self/mountinfo') { return parse(slurp($file)) }

# The mount to name a device by: a mount of the whole file system rather than of a directory of it; among equal ones the shortest path.  The
# last mount of a path hides the others.
sub by_device ($mounts) {
	my (%at, %best);
	$at{ $_->{point} } = $_ for @$mounts;
	for my $m (@$mounts) {
		next if $at{ $m->{point} } != $m;
		my $old = $best{ $m->{dev} };
		$best{ $m->{dev} } = $m if !$old || rank($m) lt rank($old);
	}
	return \%best;
}

sub rank ($m) { return sprintf '%d %06d %s', $m->{root} eq '/' ? 0 : 1, length $m->{point}, $m->{point} }

# As by_device(), with the numbers that files on btrfs have.
sub names ($mounts) {
	my $best = by_device($mounts);
	for my $m (grep { $_->{type} eq 'btrfs' } values %$best) {
		my $dev = stat_dev($m->{point}) // next;
		$best->{$dev} //= { %$m, dev => $dev };
	}
	return $best;
}

sub stat_dev ($path) {
	my $dev = (stat $path)[0] // return;
	return sprintf '%d:%d', ($dev >> 8 & 0xfff) | ($dev >> 32 & ~0xfff), ($dev & 0xff) | ($dev >> 12 & 0xfff00);
}

# What a block device is called: vda1, the name that the administrator gave (dm), or the file behind a loop.
sub disk_name ($dev, $sys = '/sys') {
	my $dir = "$sys/dev/block/$dev";
	my ($name) = slurp("$dir/uevent") =~ /^DEVNAME=(.+)$/m or return;
	chomp(my $mapped = slurp("$dir/dm/name"));
	chomp(my $file = slurp("$dir/loop/backing_file"));
	return $mapped ne '' ? "$name ($mapped)" : $file ne '' ? "$name ($file)" : $name;
}

# The numbers of a disk, of its partitions, and of the devices on them (dm, md): its mounts may be on any of these.
sub devices_on ($name, $sys = '/sys', $depth = 0) {
	return if $depth > 8;
	my $dir = "$sys/class/block/" . $name =~ tr{/}{!}r;
	my ($dev) = slurp("$dir/dev") =~ /^(\d+:\d+)/;
	my @parts = grep { -e "$dir/$_/partition" } entries($dir);
	return (defined $dev ? $dev : ()), map { devices_on($_, $sys, $depth + 1) } @parts, entries("$dir/holders");
}

sub entries ($dir) {
	opendir my $dh, $dir or return;
	return sort grep { !/^\./ } readdir $dh;
}

1;
