package Accel::Namespace;
# Run this program anew, with mounts and a network of its own.
#
#     Accel::Namespace::enter(@ARGV);             # network and mounts, as root; does not return the first time
#     my $private = Accel::Namespace::own_mounts();       # mounts only; true in a namespace of our own
use v5.36;
use Exporter qw(import);

our @EXPORT_OK = qw(own_mounts);

# Runs the program anew in a mount namespace of its own, which the kernel unmounts at its end, even after KILL.  Returns true in the
# namespace, and false if the user may not have one.
sub own_mounts () {
	return 1 if delete $ENV{ACCEL_OWN_MOUNTS};
	return 0 if $> != 0 || system('unshare -m true >/dev/null 2>&1') != 0;
	$ENV{ACCEL_OWN_MOUNTS} = 1;
	exec 'unshare', '-m', '--propagation', 'private', $^X, (map { "-I$_" } @INC), $0, @ARGV or die "unshare: $!";
}

# A network of our own: default congestion control and listen queues, all ports free, and no other traffic.  Mounts of our own, too.  If the
# user may not have this, nothing changes.
sub enter (@args) {
	return if entered() || $> != 0 || system('unshare -n -m true 2>/dev/null') != 0;
	$ENV{ACCEL_BENCH_INSIDE} = 1;
	exec 'unshare', '-n', '-m', $^X, $0, @args or die "unshare: $!";
}

sub entered () { return $ENV{ACCEL_BENCH_INSIDE} }

1;
