package Accel::Top::Hint;
# One sentence about what the screen shows, and the chapter of tuning.md that has the setting.  The order is that of its table.
use v5.36;

use constant { BUSY_PERCENT => 90, SLOW_NS => 1e9, OF_TOTAL => 0.5, AGAIN_BYTES => 1e6 };

# '' if nothing stands out.
sub sentence ($view) {
	my ($s, $r, $l) = @$view{qw(status rates lanes)};
	return '' unless $s;
	my ($stuck) = grep { $_->{stuck} } @{ $s->{devices} };
	return 'a device is stuck: ' . ($stuck->{mount} ne '' ? $stuck->{mount} : $stuck->{device}) . chapter('Pages hang while the disk is busy') if $stuck;
	my $again = $r && $r->{memory} ? $r->{memory}{refault_bytes_per_s} // 0 : 0;
	return sprintf('memory is short: files that were dropped are read again, %.0f MB/s', $again / 1e6) . chapter('Memory is short') if $again >= AGAIN_BYTES;
	my ($disk) = $l ? sort { $l->{disks}{$b}{util} <=> $l->{disks}{$a}{util} || $a cmp $b } keys %{ $l->{disks} } : ();
	my ($full) = grep { $_->{threads} && $_->{busy} >= $_->{threads} && $_->{queued} } @{ $s->{pools} };
	return "the disk $disk is the limit" . chapter('The disk is at 100 %') if $full && defined $disk && $l->{disks}{$disk}{util} >= BUSY_PERCENT;
	return "all $full->{threads} $full->{name} threads are busy and $full->{queued} jobs wait" . chapter('All threads are busy') if $full;
	my ($waits) = sort { $b->{waiting} <=> $a->{waiting} } grep { $_->{waiting} } @{ $s->{applications} };
	return "$waits->{waiting} requests wait for $waits->{name}" . chapter('The application is slow') if $waits;
	return $r ? of_stages($r) : '';
}

sub chapter ($name) { return "; tuning.md: $name" }

my %CHAPTER = (
	'stat-queue' => 'The first byte is late', stat => 'The first byte is late', 'read-queue' => 'All threads are busy', read => 'The disk is at 100 %',
	'proxy-queue' => 'The application is slow', proxy => 'The application is slow', write => 'The network or the clients are slow',
);

# True if requests take a second and one stage takes most of it.
sub of_stages ($r) {
	my %p99 = map { ($_->{name} => $_->{p99_ns} // 0) } grep { !$_->{whole} && $_->{count} } @{ $r->{stages} };
	my $total = delete $p99{total} // 0;
	my ($worst) = sort { $p99{$b} <=> $p99{$a} || $a cmp $b } grep { $CHAPTER{$_} } keys %p99;
	return '' if $total < SLOW_NS || !defined $worst || $p99{$worst} < OF_TOTAL * $total;
	return "most time of slow requests is $worst" . chapter($CHAPTER{$worst});
}

1;
