package Accel::Graph::Follow;
# Logs that grow, as tail -F follows them: a new file of the same name is read from its start, after the rest of the old one;
# a file that became shorter is read from its start.
use v5.36;

use Accel::Command qw(complain);
use Fcntl       qw(O_RDONLY O_NONBLOCK O_NOCTTY);
use IO::Select  ();
use Time::HiRes ();

use constant { BLOCK => 262_144, LOOK_S => 0.25 };    # seconds between two looks at the files

# on_look is called after each look; it returns false to end.
sub follow ($read, $files, $on_look) {
	my @logs = map { { file => $_, log => $read->begin($_ eq '-' ? 'standard input' : $_) } } @$files;
	while ($on_look->()) {
		my $more = 0;
		$more += look($read, $_) for @logs;
		last if @logs == grep { $_->{ended} } @logs;    # standard input only
		Time::HiRes::sleep(LOOK_S) unless $more;
	}
	return;    # a line that is still being written does not count
}

# Reads one block at most, so that each log has its turn.  Returns whether there may be more.
sub look ($read, $log) {
	return stdin($read, $log) if $log->{file} eq '-';
	reopen($read, $log) if !$log->{fh};
	my $fh = $log->{fh} // return 0;
	if (-s $fh < $log->{at}) {
		complain("$log->{file}: became shorter; it is read from its start");
		seek $fh, 0, 0;
		$log->{at} = 0;
		$read->end($log->{log});
	}
	my $got = sysread $fh, my $bytes, BLOCK;
	if ($got) {
		$log->{at} += $got;
		$read->feed($log->{log}, $bytes);
		return 1;
	}
	return exchanged($log) ? reopen($read, $log) : 0;
}

sub stdin ($read, $log) {
	return 0 if $log->{ended} || !IO::Select->new(\*STDIN)->can_read(LOOK_S);
	my $got = sysread STDIN, my $bytes, BLOCK;
	$log->{ended} = !$got;
	$read->feed($log->{log}, $bytes) if $got;
	return $got ? 1 : 0;
}

# The name belongs to another file now.
sub exchanged ($log) {
	my @now = stat $log->{file} or return 0;
	return "$now[0] $now[1]" ne $log->{id};
}

# Opens a regular file, or returns nothing.  A pipe may have the name of a log by now, and opening it would wait for a writer.
sub open_log ($file) {
	sysopen my $fh, $file, O_RDONLY | O_NONBLOCK | O_NOCTTY or return;
	return -f $fh ? $fh : undef;
}

sub reopen ($read, $log) {
	my $fh = open_log($log->{file}) // return 0;    # between two names: the next look may find it
	$read->end($log->{log}) if $log->{fh};
	my @is = stat $fh;
	@$log{qw(fh at id)} = ($fh, 0, "$is[0] $is[1]");
	return 1;
}

1;
