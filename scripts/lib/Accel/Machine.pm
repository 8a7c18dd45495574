package Accel::Machine;
# The facts about this machine, for reports.
#
#     my $m = Accel::Machine::facts();    # { cpu, cores, memory_mb, kernel, system, congestion_control }; what is not known is undef
use v5.36;
use Accel::Util qw(slurp);
use POSIX       ();

sub facts () {
	my $cpus = slurp('/proc/cpuinfo');
	my ($cpu) = $cpus =~ /^model name\s*:\s*(.*)/m;
	my ($kb) = slurp('/proc/meminfo') =~ /^MemTotal:\s*(\d+)/m;
	my ($system) = slurp('/etc/os-release') =~ /^PRETTY_NAME="?([^"\n]*)/m;
	my ($control) = slurp('/proc/sys/net/ipv4/tcp_congestion_control') =~ /(\S+)/;
	return {
		cpu => $cpu, cores => scalar(() = $cpus =~ /^processor\s*:/mg), memory_mb => defined $kb ? int $kb / 1024 : undef,
		kernel => (POSIX::uname())[2], system => $system, congestion_control => $control,
	};
}

1;
