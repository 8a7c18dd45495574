package Accel::Graph::Spool;
# The data file: a line for each request, sorted by start.  sort(1) sorts it, because its memory does not grow with the log.
use v5.36;

use Accel::Command qw(fail EX_UNAVAILABLE EX_CANTCREAT);
use Accel::Graph::Read qw(@STAGES BACKEND HANDSHAKE);
use File::Temp ();
use List::Util qw(max);

our @COLUMNS = ('start[s]', 'read-queue-wait[ms]', 'read-time[ms]', 'write-time[ms]', map({ "$_\[us]" } @STAGES), 'hot');

my $sorting;    # the one that runs: sort must be over before its file is removed, or it would make it again

END { sort_ends() }

sub DESTROY ($self) { return sort_ends() }

sub sort_ends () {
	local ($?, $!, $@);
	close $sorting->{pipe} if $sorting;
	$sorting = undef;
}

sub new ($class) {
	my $tmp = File::Temp->new(TEMPLATE => 'accel-graph-XXXXXXXX', TMPDIR => 1);
	local $ENV{LC_ALL} = 'C';
	my $pid = open my $pipe, '|-', 'sort', '-n', '-s', '-k1,1', '-S', '64M', '-o', $tmp->filename
	    or fail(EX_UNAVAILABLE, "cannot start sort: $!");
	$sorting = { pipe => $pipe };
	return bless { pipe => $pipe, tmp => $tmp, max => [0, 0, 0, 0] }, $class;
}

# Takes a row of Accel::Graph::Read.
sub add ($self, $row) {
	no warnings 'uninitialized';
	my ($backend, $start, undef, $hot, @us) = @$row[BACKEND .. HANDSHAKE];
	my ($queue, $read, $write) = ($us[4], $us[5], $us[6] + $us[7]);    # as in 2007, writing begins after the handover
	($queue, $read) = ($queue + $us[0], $read + $us[1]) if $backend eq 'network_fcgi_stat_accel';    # one thread opens and reads
	my $max = $self->{max};
	$max->[0] = $queue + $read + $write if $queue + $read + $write > $max->[0];
	$max->[1] = $queue if $queue > $max->[1];
	$max->[2] = $read if $read > $max->[2];
	$max->[3] = $write if $write > $max->[3];
	local $, = ' ';
	print { $self->{pipe} } $start, $queue / 1000, $read / 1000, $write / 1000, map({ $_ + 0 } @us), ($hot // -1) . "\n";
}

# Writes $path, with starts counted from $first, for the key 'data' of a model.  The spool is empty then.
sub write_data ($self, $path, $first) {
	$sorting = undef;
	close $self->{pipe} or fail(EX_CANTCREAT, 'sort failed, ' . ($! ? "$!" : "wait status $?") . '; is the temporary directory full?');
	open my $in,  '<', $self->{tmp}->filename or fail(EX_CANTCREAT, "temporary file: $!");
	open my $out, '>', $path or fail(EX_CANTCREAT, "$path: $!");
	print $out '# ', join(' ', @COLUMNS), "\n";
	while (defined(my $line = <$in>)) {
		my ($start, $rest) = split / /, $line, 2;
		printf $out '%.6f %s', $start - $first, $rest or last;
	}
	close $out or fail(EX_CANTCREAT, "$path: $!");
	delete $self->{tmp};
	my %max;
	@max{qw(stacked read-queue-wait read write)} = @{ $self->{max} };
	return { path => $path, columns => \@COLUMNS, max_us => \%max };
}

1;
