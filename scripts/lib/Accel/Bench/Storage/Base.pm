package Accel::Bench::Storage::Base;
# What all storages share: a place of their own, the disk below it in /proc.
use v5.36;
use Accel::Mounts ();
use Accel::Proc ();
use Accel::Util qw(put);

my $number = 0;

sub new ($class, %arg) {
	my $self = bless { %arg, proc => Accel::Proc->new }, $class;
	$self->{dir} = $arg{engine}->dir . '/storage-' . $number++;
	mkdir $self->{dir} or die "$self->{dir}: $!\n";
	return $self;
}

sub usable ($self) { return (1) }
sub sample ($self) { return }
sub end ($self)    { return }

# The file with these names, as paths of URLs.
sub list ($self, $set, @names) { return put("$self->{dir}/$set.list", join '', map { "/$_\n" } @names) }

# Figures of the disk that has this directory, from a row of lanes; undef if it has no disk.  A partition has the figures of its disk.
sub disk_of ($self, $dir, $lanes) {
	my $device = Accel::Mounts::stat_dev($dir) // return undef;
	my $name = $self->{proc}->device($device)->{disk} // return undef;
	my ($row) = ((grep { $_->{device} eq $device } values %{ $lanes->{disks} }), $lanes->{disks}{$name});
	return undef unless $row;
	return { map { $_ => $row->{$_} } qw(util queue await_ms read_mb_per_s write_mb_per_s) };
}

sub disk ($self, $seconds, $lanes) { return $self->disk_of($self->{root}, $lanes) }

1;
