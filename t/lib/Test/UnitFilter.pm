package Test::UnitFilter;
# Runs programs of tests under the system calls that their unit allows.
#
#     unshift @command, Test::UnitFilter::prefix('accel-server', $ENV{UNIT_FILTER});      # nothing, unless it is set
#     my %may = map { $_ => 1 } Test::UnitFilter::calls('accel-server');
#
#     make rigs all && B=build UNIT_FILTER=kill prove -It/lib t/server
#
# The calls come from SystemCallFilter= in examples/systemd/NAME.service; systemd-analyze(1) opens up its sets. With `UNIT_FILTER=kill` any other call ends
# the program, so that a test fails; with `UNIT_FILTER=EPERM` it fails as it does under systemd. A test that root runs gets the
# calls that the drop-in file for root adds, see examples/systemd/README.md: the unit's own user needs none of them.
use v5.36;
use Cwd ();
use File::Basename qw(dirname);
use File::Temp ();
use Test::Util qw(program put slurp);

my $examples = Cwd::abs_path(dirname(__FILE__) . '/../../../examples/systemd');

# systemd 252 has no name for cachestat(2), which io/disk/hot.c does without.
my @unnamed = ('cachestat');
my %file;

# Names in a set of systemd's, sets within it opened up.
sub set ($name) {
	state %known;
	$known{$name} //= [map { /^\s+(@\S+)/ ? set($1) : /^\s+(\w+)/ ? $1 : () } `systemd-analyze syscall-filter --no-pager $name`];
	return @{ $known{$name} };
}

sub expand (@words) {
	return map { /^@/ ? set($_) : $_ } @words;
}

# The calls that a unit allows.
sub calls ($unit) {
	my %may;
	for (slurp("$examples/$unit.service") =~ /^SystemCallFilter=(.*)$/mg) {
		my $not = s/^~//;
		my @names = expand(split ' ');
		if ($not) { delete @may{@names} }
		else { @may{@names} = (1) x @names }
	}
	return sort keys %may;
}

# What the drop-in file for root adds.
sub of_root {
	my ($line) = slurp("$examples/README.md") =~ /`SystemCallFilter=([^`]*)`/;
	return expand(split ' ', $line);
}

sub file ($unit, @more) {
	my $key = "$unit @more";
	return "$file{$key}" if $file{$key};
	my @calls = (calls($unit), expand(@more), $> == 0 ? of_root() : ());
	$file{$key} = File::Temp->new(TEMPLATE => 'accel-calls-XXXXXX', TMPDIR => 1);
	chmod 0644, "$file{$key}";
	put("$file{$key}", join '', map {"$_\n"} @calls);
	return "$file{$key}";
}

# The command before a program.
sub prefix ($unit, $how) {
	return () if !$how;
	return (program('call-filter'), $how, file($unit, $how eq 'kill' ? @unnamed : ()));
}

1;
