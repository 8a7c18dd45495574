package Accel::Backends;
# The file backends of accel-server, as accel-server -V lists them.
#
#     my ($known, $missing) = Accel::Backends::list();    # [name...], [[name, why it does not work here]...]
use v5.36;
use Accel::Util qw(program);

sub list () {
	state $list = [parse(scalar qx{"@{[ program('accel-server') ]}" -V 2>/dev/null})];
	return @$list;
}

sub parse ($text) {
	my ($section) = $text =~ /^Network backends:\n((?:[ ].*\n)*)/m or return ([], []);
	return ([$section =~ /^\s+\+ (\S+)/mg], [map { [/^\s+- (\S+)\s+(.*)/] } grep { /^\s+- / } split /\n/, $section]);
}

1;
