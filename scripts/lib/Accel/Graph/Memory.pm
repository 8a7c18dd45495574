package Accel::Graph::Memory;
# The lines of a log about memory, ev=memory and ev=counters, and the files of its requests.
use v5.36;

use Digest::MD5 qw(md5);
use List::Util  qw(max min sum0);

use constant {
	MAX_FILES   => 32_768,     # kept; of more, a sample by their hash is kept
	MAX_SAMPLES => 1024,
	WINDOW      => 256 << 10,  # bytes of a window of io/hotset.h
	LOOK_S      => 10,         # the server looks so often while files come from a disk (MEMORY_LOOK_S)
	BYTES => 0, ASKED => 1, AGAIN => 2, AGAIN_BYTES => 3,    # places in a file
};

my $TIME = qr/[0-9]{1,11}(?:\.[0-9]{1,9})?/;
my %KEPT = map { $_ => 1 } qw(memory_limit refault_bytes stalled_some_us pages_gone loop_waits hotset_filled hotset_evicted);

sub new ($class) { return bless { files => {}, mask => 0, samples => [], every => 1, skipped => 0 }, $class }

# ---------------------------------------------------------------- lines

# Takes a line that is not about timing.
sub other_line ($self, $line) {
	if (my ($time, $rest) = $line =~ m/\Ats=($TIME) level=info ev=(?:accel\.)?(?:memory|counters)( .*)/s) {
		$self->sample($time, $rest =~ m/ ([a-z_]{1,20})=([0-9]{1,18})(?= |\z)/g);
	} elsif (($time, $rest) = $line =~ m/\A\{"ts":($TIME),"level":"info","ev":"(?:accel\.)?(?:memory|counters)"(.*)\}\s*\z/s) {
		$self->sample($time, $rest =~ m/,"([a-z_]{1,20})":([0-9]{1,18})(?=,|\z)/g);
	}
}

# Takes a sample of counts, which grow until the server is started again.
sub sample ($self, $time, %field) {
	my %kept = map { $_ => 0 + $field{$_} } grep { $KEPT{$_} } keys %field;
	return unless %kept;
	return if $self->{skipped}++ % $self->{every};
	push @{ $self->{samples} }, { time => $time, %kept };
	return if @{ $self->{samples} } <= MAX_SAMPLES;
	my $samples = $self->{samples};
	$self->{samples} = [map { $samples->[2 * $_] } 0 .. $#$samples / 2];
	$self->{every} *= 2;
}

# Takes a timing line and its row.  The file is the end of the line, from the path on.
sub timing_line ($self, $line, $row) {
	my $at = index $line, ' path="';
	$at = index $line, ',"path":"' if $at < 0;
	return if $at < 0 || !$row->[2];
	my $key = md5(substr $line, $at);
	return if $self->{mask} && unpack('N', $key) & $self->{mask};
	my $file = $self->{files}{$key} //= [0, 0, 0, 0];
	$file->[BYTES] = $row->[2] if $row->[2] > $file->[BYTES];
	if ($file->[ASKED]++ && defined $row->[3] && !$row->[3]) {
		$file->[AGAIN]++;
		$file->[AGAIN_BYTES] += $row->[2];
	}
	$self->halve if keys %{ $self->{files} } > MAX_FILES;
}

sub halve ($self) {
	$self->{mask} = $self->{mask} << 1 | 1;
	delete @{ $self->{files} }{ grep { unpack('N', $_) & $self->{mask} } keys %{ $self->{files} } };
}

# ---------------------------------------------------------------- answers

# How much a count grew from the first sample on.  If there is a single sample, it is the count since the start of the server.
sub growth ($samples, $name) {
	my @values = map { $_->{$name} // () } @$samples;
	return undef unless @values;
	return $values[0] if @values == 1;
	return sum0(map { $values[$_] >= $values[ $_ - 1 ] ? $values[$_] - $values[ $_ - 1 ] : $values[$_] } 1 .. $#values);
}

# See Accel::Graph::Model.
sub facts ($self, $first) {
	my @samples = sort { $a->{time} <=> $b->{time} } @{ $self->{samples} };
	my @files   = grep { $_->[ASKED] > 1 } values %{ $self->{files} };
	my $each    = $self->{mask} + 1;
	my %facts   = (
		files => $each * @files, bytes => $each * sum0(map { $_->[BYTES] } @files),
		again => $each * sum0(map { $_->[AGAIN] } @files), again_bytes => $each * sum0(map { $_->[AGAIN_BYTES] } @files),
		limit => min(grep { defined } map { $_->{memory_limit} } @samples), sampled => $each > 1 ? 1 : 0,
		map { $_ => growth(\@samples, $_) } qw(refault_bytes stalled_some_us pages_gone loop_waits),
	);
	$facts{over_time} = over_time(\@samples, $first) if @samples > 1;
	return \%facts;
}

# The difference of two lines, for each second between them.  A line that comes late is about the last look only.
sub over_time ($samples, $first) {
	my @out;
	for my $i (1 .. $#$samples) {
		my ($old, $new) = @$samples[ $i - 1, $i ];
		my $gap   = $new->{time} - $old->{time};
		next if $gap <= 0;
		my $width = min($gap, max(1, 1.5 * LOOK_S));
		my %grown = map { my $n = growth([$old, $new], $_); defined $n ? ($_ => $n / $width) : () } qw(refault_bytes stalled_some_us pages_gone loop_waits);
		my $held  = defined $new->{hotset_filled} ? max(0, $new->{hotset_filled} - ($new->{hotset_evicted} // 0)) * WINDOW : undef;
		push @out, { from => $new->{time} - $width - $first, at => $new->{time} - $first, again_mb_per_s => ($grown{refault_bytes} // 0) / 1e6,
			stalled => min(1, ($grown{stalled_some_us} // 0) / 1e6), gone_per_s => $grown{pages_gone} // 0, waits_per_s => $grown{loop_waits} // 0,
			defined $held ? (held_mb => $held / 1e6) : () };
	}
	return \@out;
}

1;
