package Accel::Graph::Charts::Memory;
# What the server logged about memory while the requests ran: lanes below each other, on the time axis of the others.  Values that were
# always 0 have no lane.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max sum0);
use Accel::Graph::Axis qw(linear_axis share_axis);
use Accel::Graph::Charts::Classic qw(time_of_start);

our @EXPORT_OK = qw(memory_chart);

# $memory of the model, with over_time; nothing if no line of it falls into the time of the requests.
sub memory_chart ($facts, $memory) {
	my $x    = time_of_start($facts->{span});
	my @rows = grep { $_->{at} > 0 && $_->{from} < $x->{max} } @{ $memory->{over_time} } or return;
	my $most = sub ($what) { max(0, map { $_->{$what} // 0 } @rows) };
	my @panels = (
		{ y => linear_axis('read again, MB/s', $most->('again_mb_per_s'), ticks => 3), series => [line('read', \@rows, $x, 'again_mb_per_s')] },
		{ y => share_axis('stalled', 50), series => [line('stat-queue', \@rows, $x, 'stalled')] },
	);
	my $events = max($most->('gone_per_s'), $most->('waits_per_s'));
	push @panels, { y => linear_axis('events per second', $events, ticks => 3), series => [
		{ line('other', \@rows, $x, 'gone_per_s')->%*, label => 'windows gone' }, { line('hot', \@rows, $x, 'waits_per_s')->%*, label => 'waits of a loop' }] } if $events > 0;
	push @panels, { y => linear_axis('held, MB', $most->('held_mb'), ticks => 3), series => [line('write', \@rows, $x, 'held_mb')] } if $most->('held_mb') > 0;
	$_->{x} = $x for @panels;
	$_->{shared_x} = 1 for @panels[0 .. $#panels - 1];
	return {
		id => 'memory', name => 'memory', title => "$facts->{name}: memory",
		alt => sprintf('What was dropped from memory and read again, at most %.3g MB/s; the share of the time in which a process waited for memory; windows that were gone before they were sent, '
			. 'and waits of event loops; what the server held itself.', $most->('again_mb_per_s')),
		table => table(\@rows), panels => \@panels,
	};
}

# A level from one look to the next; 0 where the server had nothing to say.
sub line ($as, $rows, $x, $what) {
	my (@data, $end);
	for my $row (@$rows) {
		my ($from, $to, $y) = (max(0, $row->{from}), $row->{at} < $x->{max} ? $row->{at} : $x->{max}, $row->{$what} // 0);
		push @data, [$end, 0], [$from, 0] if defined $end && $from > $end;
		push @data, [$from, $y], [$to, $y];
		$end = $to;
	}
	return { style => 'line', as => $as, data => \@data };
}

sub table ($rows) {
	my @line = (['read again, MB/s', 'again_mb_per_s', 1], ['stalled, %', 'stalled', 100], ['windows gone per second', 'gone_per_s', 1], ['waits of a loop per second', 'waits_per_s', 1], ['held, MB', 'held_mb', 1]);
	return { head => ['', 'mean', 'most'], rows => [ map {
		my ($name, $what, $unit) = @$_;
		my @values = map { $unit * ($_->{$what} // 0) } @$rows;
		[$name, map { sprintf '%.1f', $_ } sum0(@values) / @values, max(@values)]
	} @line ] };
}

1;
