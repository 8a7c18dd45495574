package Test::Cgroup;
# A memory cgroup for one server: what it may use, what it was refused.
#
#     my ($ok, $why) = Test::Cgroup->usable;
#     plan skip_all => $why unless $ok;
#     my $group = Test::Cgroup->new(bytes => 48 << 20);
#     my $srv = Accel::Peer->start('accel', root => $root, group => $group->dir, at_end => sub { $group->remove });
#     print $group->refaults, " pages came back\n";
#
# Version 1 (memory.limit_in_bytes) or version 2 (memory.max) of the kernel's memory controller, whichever this machine has. The pages of files that a
# process of the group reads first belong to the group. The directory is named after this process and is a child of the root of the controller.
#
# A group is removed when its object goes, if no process is in it. With `at_end` the keeper of an Accel::Peer removes it, even when this program is
# killed. `new` removes groups of programs that were killed with their keepers.
use v5.36;
use Accel::Util qw(put slurp);
use Time::HiRes qw(sleep time);

use constant PREFIX => 'accel-test-';

# The place of the controller: { dir, version }, or { why }.
sub _controller () {
	state $found = _find();
	return $found;
}

sub _find () {
	return { why => 'a memory cgroup is for root' } if $> != 0;
	my %at;
	for my $line (split /\n/, slurp('/proc/self/mounts')) {
		my (undef, $point, $type, $options) = split ' ', $line;
		$at{1} //= $point if $type eq 'cgroup' && $options =~ /(?:^|,)memory(?:,|\z)/;
		$at{2} //= $point if $type eq 'cgroup2';
	}
	return { dir => $at{1}, version => 1 } if defined $at{1} && -w "$at{1}/cgroup.procs";
	return { why => 'no memory controller: neither cgroup version 1 nor version 2 with it' }
	    if !defined $at{2} || slurp("$at{2}/cgroup.controllers") !~ /\bmemory\b/;
	return { dir => $at{2}, version => 2 } if slurp("$at{2}/cgroup.subtree_control") =~ /\bmemory\b/;
	eval { put("$at{2}/cgroup.subtree_control", "+memory\n"); 1 } or return { why => "$at{2}/cgroup.subtree_control: " . $@ =~ s/\s+\z//r };
	return { dir => $at{2}, version => 2 };
}

# (1) or (0, reason). Tries it: a file system that is read-only or a container refuses.
sub usable ($class) {
	my $c = _controller();
	return (0, $c->{why}) if $c->{why};
	my $try = eval { $class->new(bytes => 64 << 20) } or return (0, 'a memory cgroup is not allowed here: ' . $@ =~ s/\s+\z//r);
	return (1);
}

my $number = 0;

sub new ($class, %arg) {
	my $c = _controller();
	die "$c->{why}\n" if $c->{why};
	/-(\d+)-\d+\z/ && !-d "/proc/$1" && rmdir for glob "$c->{dir}/@{[ PREFIX ]}*";
	my $self = bless { %$c, owner => $$, dir => "$c->{dir}/" . PREFIX . "$$-" . $number++ }, $class;
	mkdir $self->{dir} or die "$self->{dir}: $!\n";
	put("$self->{dir}/" . ($self->{version} == 1 ? 'memory.limit_in_bytes' : 'memory.max'), $arg{bytes});
	return $self;
}

sub dir ($self)   { return $self->{dir} }
sub pids ($self)  { return split ' ', slurp("$self->{dir}/cgroup.procs") }
sub bytes ($self) { return 0 + slurp("$self->{dir}/" . ($self->{version} == 1 ? 'memory.usage_in_bytes' : 'memory.current')) }

# Pages of files that were dropped and read again.
sub refaults ($self) {
	my ($n) = slurp("$self->{dir}/memory.stat") =~ /^workingset_refault_file (\d+)$/m;
	return $n // 0;
}

# Processes that the kernel killed because the group was full.
sub killed ($self) {
	my ($n) = slurp("$self->{dir}/" . ($self->{version} == 1 ? 'memory.oom_control' : 'memory.events')) =~ /^oom_kill (\d+)$/m;
	return $n // 0;
}

# True when it is removed.  The kernel needs a moment after the last process has ended.
sub remove ($self) {
	my $deadline = time + 2;
	while (!rmdir $self->{dir}) {
		return 1 if !-d $self->{dir};
		return 0 if time > $deadline;
		sleep 0.02;
	}
	return 1;
}

sub DESTROY ($self) {
	return if $self->{owner} != $$ || !-d $self->{dir};
	local ($?, $@, $!);
	$self->remove unless $self->pids;
}

1;
