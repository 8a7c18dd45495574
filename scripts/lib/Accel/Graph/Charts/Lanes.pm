package Accel::Graph::Charts::Lanes;
# What the processors and the disks did while the requests ran: lanes below the timeline, on the same time axis.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max min sum0);
use Accel::Graph::Axis qw(linear_axis time_axis share_axis count_text);
use Accel::Graph::Style qw(text_of);
use Accel::Graph::Charts::Classic qw(give_up_rule time_of_start stage_sum);

our @EXPORT_OK = qw(lanes_chart);

use constant {
	MAX_DISKS => 4,       # the busiest ones; more lines look alike
	IDLE      => 0.5,     # percent: less is not a line of its own beside the one at 0
	MAX_NAME  => 24,      # letters of a disk and its mount point
};

# $lanes of the model
sub lanes_chart ($facts, $lanes) {
	my $x     = time_of_start($facts->{span});
	my @rows  = grep { $_->{at} >= 0 && $_->{at} <= $x->{max} } @$lanes;
	my @disks = busiest(\@rows);
	my $y     = time_axis('UNIT per request', $facts->{ymax} // $facts->{max_ms}{total}, ticks => 4, exact => defined $facts->{ymax});
	my @panels = (
		{ x => $x, y => $y, height => 1.7, shared_x => 1, rules => [give_up_rule($facts, 'y', $y)],
			series => [{ style => 'points', as => 'total', label => 'a request', columns => { stage_sum($facts, 'total') } }] },
		{ x => $x, y => share_axis('processors', 50), shared_x => 1, series => [cpu_series(\@rows)] },
		{ x => $x, y => share_axis('disks busy', 50), shared_x => 1, series => [disk_series(\@rows, \@disks, util => 0.01)] },
	);
	my $queue = max(0, map { my $r = $_; map { $r->{disks}{$_}{queue} // 0 } @disks } @rows);
	my @queue = disk_series(\@rows, \@disks, queue => 1);
	delete $_->{label} for @queue;
	push @panels, { x => $x, y => linear_axis('requests in the queue of a disk', $queue, ticks => 2), series => \@queue };
	return {
		id => 'lanes', name => 'disks and processors', title => "$facts->{name}: requests, processors and disks",
		alt => sprintf('Above, each request with its duration; below, on the same time axis, what the processors and %d %s did.', scalar(@disks), @disks == 1 ? 'disk' : 'disks'),
		table  => lanes_table(\@rows, \@disks), panels => \@panels,
	};
}

sub busiest ($rows) {
	my (%busy, %most);
	for my $disks (map { $_->{disks} } @$rows) {
		for my $disk (keys %$disks) {
			my $util = $disks->{$disk}{util} // 0;
			$busy{$disk} += $util;
			$most{$disk} = max($most{$disk} // 0, $util);
		}
	}
	my ($first, @others) = sort { $busy{$b} <=> $busy{$a} || $a cmp $b } keys %busy or return;
	my @disks = ($first, grep { $most{$_} >= IDLE } @others);
	return @disks > MAX_DISKS ? @disks[0 .. MAX_DISKS - 1] : @disks;
}

# us, sy and wa, stacked.
sub cpu_series ($rows) {
	my (%data, @series);
	for my $row (@$rows) {
		my $below = 0;
		for my $part (qw(us sy wa)) {
			my $share = min(1 - $below, max(0, ($row->{$part} // 0) / 100));
			push @{ $data{$part} }, [$row->{at}, $below, $below + $share];
			$below += $share;
		}
	}
	my %as = (us => 'stat', sy => 'stat-queue', wa => 'read');    # neighbours differ in brightness
	my %label = (us => 'user', sy => 'system', wa => 'waiting for a disk');
	return map { { style => 'area', as => $as{$_}, label => $label{$_}, data => $data{$_} // [] } } qw(us sy wa);
}

sub disk_series ($rows, $disks, $what, $unit) {
	return map {
		my $disk  = $disks->[$_];
		my @seen  = grep { $_->{disks}{$disk} } @$rows;
		my $mount = (grep { defined } map { $_->{disks}{$disk}{mount} } @seen)[0];
		{ style => 'line', as => $_, label => disk_name($disk, $mount), data => [ map { [$_->{at}, $unit * ($_->{disks}{$disk}{$what} // 0)] } @seen ] }
	} 0 .. $#$disks;
}

# "sda (/srv/www)"; if the mount point is long, its end, which tells more than its beginning.
sub disk_name ($disk, $mount) {
	my ($name, $at) = map { text_of($_) } $disk, $mount // '';
	$name = substr($name, 0, MAX_NAME - 1) . '…' if length $name > MAX_NAME;
	return $name if $at eq '';
	my $room = max(MAX_NAME - length($name) - 3, 6);
	return "$name (" . (length $at > $room ? '…' . substr($at, 1 - $room) : $at) . ')';
}

sub lanes_table ($rows, $disks) {
	my $mean = sub ($of) { @$rows ? sprintf '%.1f', sum0(map { $of->($_) } @$rows) / @$rows : '-' };
	my $most = sub ($of) { @$rows ? sprintf '%.1f', max(map { $of->($_) } @$rows) : '-' };
	my @line = map { my $part = $_; [$part->[1], sub ($r) { $r->{ $part->[0] } // 0 }] } [us => 'user %'], [sy => 'system %'], [wa => 'waiting for a disk %'];
	for my $disk (@$disks) {
		push @line, map { my $part = $_; [text_of($disk) . ": $part->[1]", sub ($r) { $r->{disks}{$disk}{ $part->[0] } // 0 }] } [util => 'busy %'], [queue => 'queue'], [await_ms => 'wait of a request, ms'], [read_mb_per_s => 'read, MB/s'];
	}
	return { head => ['', 'mean', 'most'], rows => [ map { [$_->[0], $mean->($_->[1]), $most->($_->[1])] } @line ] };
}

1;
