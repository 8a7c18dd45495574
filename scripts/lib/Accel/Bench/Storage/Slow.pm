package Accel::Bench::Storage::Slow;
# A mount of slowfs for each cell: all names and bytes are cold.
use v5.36;
use parent 'Accel::Bench::Storage::Base';
use Accel::Slowfs ();

use constant { NAMES => 6400, BIG_NAMES => 200, LOOKUP_MS => 6, READ_MS => 4, READ_BYTES => 131_072 };

my @COUNTS = qw(lookups getattrs opens reads);

sub usable ($self) { return Accel::Slowfs->usable }

# The times of the disk of this cell.
sub times ($self, $cell) {
	return (spindles => $self->{spindles}, lookup_ms => $cell->{lookup_ms} // LOOKUP_MS, read_ms => $cell->{read_ms} // READ_MS,
		atime => $cell->{atime});
}

# Requests for a file of this size: [look-ups, reads].  Two files share a directory.
sub requests ($self, $bytes) { return (1.5, int(($bytes + READ_BYTES - 1) / READ_BYTES)) }

# Seconds in which the disk delivers this many files, if it is always busy.
sub ideal_seconds ($self, $cell, $files, $bytes) {
	my ($lookups, $reads) = $self->requests($bytes);
	my %t = $self->times($cell);
	return $files * ($lookups * $t{lookup_ms} + $reads * $t{read_ms}) / 1000 / $t{spindles};
}

sub begin ($self, $cell) {
	my $set = $cell->{files};
	my $place = $self->{places}{$set} //= $self->make($set);
	my %t = $self->times($cell);
	$self->{disk} = $self->{engine}{disk} = $self->mount($place, %t);
	@$self{qw(times root)} = (\%t, $self->{disk}->dir);
	my %got = (root => $self->{root}, map { $_ => $place->{$_} } qw(list count bytes verify));
	if (!Accel::Bench::Storage::by_clock($place->{bytes})) {
		my $n = int($cell->{seconds} / $self->ideal_seconds($cell, 1, $place->{bytes}) + 0.5);
		$got{at_most} = $n < 1 ? 1 : $n > $place->{count} ? $place->{count} : $n;
	}
	@$self{qw(before samples queued)} = ($self->{disk}->state, 0, 0);
	return \%got;
}

# One file on the real disk, many names.
sub make ($self, $set) {
	my ($count, $bytes) = Accel::Bench::Storage::parse_set($set);
	$count //= Accel::Bench::Storage::by_clock($bytes) ? BIG_NAMES : NAMES;
	my $source = "$self->{dir}/$set";
	my $one = "$self->{dir}/$set.bin";
	mkdir $source or die "$source: $!\n";
	open my $fh, '>', $one or die "$one: $!\n";
	truncate $fh, $bytes or die "$one: $!\n";
	close $fh or die "$one: $!\n";
	my @names = links($source, $count, $one);
	return { source => $source, list => $self->list($set, @names), count => $count, bytes => $bytes };
}

# Two names share a directory and are 64 apart in the list, as in Accel::Bench::Storage::Real::pool().
sub links ($dir, $count, $file) {
	my @names;
	for my $i (0 .. $count - 1) {
		my $folder = int($i / 128) * 64 + $i % 64;
		mkdir "$dir/$folder";
		link $file, "$dir/$folder/$i.bin" or die "$dir/$folder/$i.bin: $!\n";
		push @names, "$folder/$i.bin";
	}
	return @names;
}

sub mount ($self, $place, %times) { return Accel::Slowfs->start(source => $place->{source}, map { $_ => $times{$_} } qw(spindles lookup_ms read_ms)) }

# The queue is the mean of samples: requests that wait and requests that are served.
sub sample ($self) {
	my $now = eval { $self->{disk}->state } // return;
	$self->{samples}++;
	$self->{queued} += $now->{waiting} + $now->{serving};
}

# util is the time that the requests cost, divided by the time of all spindles; await follows from the queue and the rate (Little).
sub disk ($self, $seconds, $lanes) {
	my $now = $self->{disk}->state;
	my %n = map { $_ => $now->{$_} - $self->{before}{$_} } @COUNTS;
	my $busy = $self->busy_ms(%n) / 1000 / $self->{times}{spindles} / $seconds;
	my $rate = $self->rate(%n) / $seconds;
	my $queue = $self->{samples} ? $self->{queued} / $self->{samples} : undef;
	return { util => $busy > 1 ? 100 : 100 * $busy, queue => $queue, await_ms => $rate && defined $queue ? 1000 * $queue / $rate : undef,
		read_mb_per_s => undef };
}

sub busy_ms ($self, %n) { return $n{lookups} * $self->{times}{lookup_ms} + $n{reads} * $self->{times}{read_ms} }
sub rate ($self, %n)    { return $n{lookups} + $n{reads} }

# Before the server ends: a server that waits for the disk cannot end.
sub end ($self) {
	my $disk = delete $self->{disk} // return;
	delete $self->{engine}{disk};
	$disk->stop;
}

1;
