package Accel::Graph::Advice;
# One sentence: what takes longest, and the setting that changes it.
use v5.36;

use Accel::Graph::Model qw(@SHOWN);
use Accel::Graph::Saturation ();
use Accel::Graph::Text qw(brief plural);

use constant {
	FINE_MS     => 20,     # a p99 below this needs no advice
	FEW         => 100,    # requests: too few for a p99
	BUSY        => 90,     # percent of the time that a disk works: it has no more to give
	MOST        => 0.5,    # share of requests that decides which program wrote the log
	AGAIN       => 0.1,    # share of cold requests for files that had been served before: a cold start has none
	DROPPED     => 16e6,   # bytes that the kernel dropped and read again: with fewer, memory is not short
};

# The reads of these backends wait in the kernel; no thread of the server reads.
my %KERNEL_READS = map { ("network_$_" => 1) } qw(io_uring posix_aio linux_aio);

my %SERVER = (
	'stat-queue'  => 'requests wait for a thread that opens files; raise server.max-stat-threads (about twice the number of disks)',
	'stat'        => 'the disk takes that long to find a name; keep more inodes in memory (vm.vfs_cache_pressure below 100, '
	    . 'more RAM), since more than server.max-stat-threads = two per disk only moves the wait',
	'proxy-queue' => 'requests wait for a free connection to the application; raise proxy-core.max-pool-size, '
	    . 'and the threads of the application with it',
	'proxy'       => 'the application takes that long to answer; give it more threads (fcgi-stat-accel --threads) '
	    . 'or more instances in proxy-core.backends',
	'read-queue'  => 'requests wait for a thread that reads; raise server.max-read-threads, up to two per disk',
	'read'        => 'the disk takes that long to read; lower server.max-read-threads to two per disk so that fewer reads compete, '
	    . 'raise server.network-chunk-size so that each reads more, or add disks or memory',
	'handover'    => 'data is read but the event loop is busy; raise server.max-worker, up to one per core',
	'write'       => 'the network or the clients take that long to accept the data; look at the link first, '
	    . 'since no directive for threads or disks will change it',
	'other'       => 'it belongs to no stage, so the event loop was busy with other requests; raise server.max-worker, up to one per core',
);

my %KERNEL = (
	%SERVER,
	'stat-queue' => 'look-ups wait for their turn; raise server.max-stat-threads (about twice the number of disks)',
	'read-queue' => 'reads wait for their turn in the kernel; raise server.max-read-jobs',
	'read'       => 'the disk takes that long to read; lower server.max-read-jobs so that fewer reads compete, '
	    . 'raise server.network-chunk-size so that each reads more, or add disks or memory',
);

# One thread of fcgi-stat-accel opens a file and reads its start, in one job.
my %ACCEL = (
	%SERVER,
	'stat-queue' => 'requests wait for a thread that opens files; raise fcgi-stat-accel --threads (about twice the number of disks)',
	'stat'       => 'the disk takes that long to find a name; keep more inodes in memory (vm.vfs_cache_pressure below 100, '
	    . 'more RAM), since more than fcgi-stat-accel --threads = two per disk only moves the wait',
	'read'       => 'the disk takes that long to read; lower fcgi-stat-accel --threads to two per disk so that fewer reads compete, '
	    . 'lower --warm=read:BYTES so that less is read before the answer, or add disks or memory',
	'other'      => 'it belongs to no stage, so a disk kept those requests until fcgi-stat-accel --deadline ended them; '
	    . 'the status page names the device that is stuck',
);

# Stages that a faster disk would shorten.
my %OF_DISK = map { $_ => 1 } qw(stat-queue stat read-queue read);

my $FEWER = 'fewer reads at a time, larger ones (server.network-chunk-size), more memory or more disks help';

sub sentence ($model) {
	if ($model->{before}) {
		require Accel::Graph::Compare;
		return Accel::Graph::Compare::sentence($model);
	}
	my $class = $model->class;
	my $total = $model->{stages}{total}{$class};
	my $n     = $total->{requests};
	my $of    = $class eq 'cold' && $model->{hot} ? ' of the cold requests' : '';
	my $small = $n < FEW ? " (of only $n " . plural('request', $n) . ')' : '';
	return sprintf 'Nothing to change: the p99%s is %s ms%s.', $of, brief($total->{p99}), $small if $total->{p99} < FINE_MS;

	my %p99     = map { $_ => $model->{stages}{$_}{$class}{p99} } grep { $_ ne 'total' && $model->at($_, $class) } @SHOWN;
	my ($worst) = sort { $p99{$b} <=> $p99{$a} || $a cmp $b } keys %p99;
	my $over    = $model->{over}{$class};
	return sprintf 'The longest stage%s is %s with a p99 of %s ms%s%s: %s.', $of, $worst, brief($p99{$worst}), $small,
	    ($over ? sprintf ' (%d of %d took over %s s)', $over, $n, brief($model->{'give-up-ms'} / 1000) : ''), reason($model, $worst);
}

sub reason ($model, $stage) {
	my $short = $OF_DISK{$stage} ? memory_short($model) : undef;
	return $short if defined $short;
	my $limit = $OF_DISK{$stage} ? disk_limit($model) : undef;
	return $limit if defined $limit;
	return threads($model, $stage);
}

# A sentence if the disk is the limit, or undef.  The lines count more than the busy time of the kernel: a solid-state disk does many things
# at a time, but is "100 % busy" with one.
sub disk_limit ($model) {
	my $found = Accel::Graph::Saturation::of($model);
	my $limit = $found->{limit} // '';
	return sprintf 'the disk is the limit: %s jobs at a time brought %s requests a second, and %s brought %s, so more threads only make each request slower; %s',
	    map({ brief($_) } map { $found->{jobs}[$_], $found->{rate}[$_] } 0, 1), $FEWER if $limit eq 'disk';
	my $disk = busiest_disk($model);
	return "the disk $disk->{name} is the limit, busy $disk->{util} % of the time, so more threads only make each request slower; $FEWER"
	    if $limit eq '' && $disk && $disk->{util} >= BUSY;
	return undef;
}

# What to set.  More threads are advised only if the log shows that they help.
sub threads ($model, $stage) {
	my $set = setting($model, $stage);
	return $set unless $stage =~ /-queue\z/ && $OF_DISK{$stage} && !Accel::Graph::Saturation::of($model)->{limit} && !$model->{lanes};
	return 'whether threads or the disk are the limit, this log cannot tell; measure once with half as many threads: if as many requests a second are answered, the disk is the limit '
	    . "($FEWER), else " . $set =~ s/.*?; //r;
}

sub setting ($model, $stage) {
	my $n = $model->{requests};
	return $ACCEL{$stage} if $model->{accel} > $n * MOST;
	my $kernel = 0;
	$kernel += $model->{backends}{$_} for grep { $KERNEL_READS{$_} } keys %{ $model->{backends} };
	return ($kernel > $n * MOST ? \%KERNEL : \%SERVER)->{$stage};
}

# The sentence, or undef.  Two things must be seen: the server reads files again that it had served, and the kernel says that it dropped
# them (refaults), which happens only when memory is short.  Files that are cold because they are new, or forgotten by the server, are not
# enough.
sub memory_short ($model) {
	my $m    = $model->{memory} // return undef;
	my $cold = $model->{cold} || $model->{requests};
	return undef unless ($m->{refault_bytes} // 0) >= DROPPED && $m->{again} >= AGAIN * $cold && $m->{refault_bytes} >= AGAIN * $m->{again_bytes};
	my $set = sprintf 'memory is short: the working set of %d files needs about %s', $m->{files}, megabytes($m->{bytes});
	$set .= sprintf ', and the server may use %s', megabytes($m->{limit}) if $m->{limit};
	$set .= ', of which other programs have a part' if $m->{limit} && $m->{bytes} < $m->{limit} / 2;
	my $gone = $m->{pages_gone} ? " and $m->{pages_gone} windows were gone before they were sent" : '';
	return $set . sprintf '; %.0f %% of the cold requests were for files that had been served before, %s of files were dropped and read again%s; '
	    . 'give it more memory (MemoryMax= of its unit, or the machine), or fewer files', 100 * $m->{again} / $cold, megabytes($m->{refault_bytes}), $gone;
}

sub megabytes ($bytes) { return $bytes >= 10e9 ? sprintf '%.0f GB', $bytes / 1e9 : brief($bytes / 1e6) . ' MB' }

# { name, util }: means over the lanes of busy seconds.
sub busiest_disk ($model) {
	my (%sum, %n, %mount);
	for my $lane (Accel::Graph::Saturation::busy_lanes($model)) {
		for my $name (keys %{ $lane->{disks} }) {
			$sum{$name} += $lane->{disks}{$name}{util} // 0;
			$n{$name}++;
			$mount{$name} = $lane->{disks}{$name}{mount};
		}
	}
	my ($name) = sort { $sum{$b} / $n{$b} <=> $sum{$a} / $n{$a} || $a cmp $b } keys %sum or return;
	my $mount = $mount{$name} // '';
	return { name => $name . ($mount ne '' ? " ($mount)" : ''), util => sprintf('%.0f', $sum{$name} / $n{$name}) };
}

1;
