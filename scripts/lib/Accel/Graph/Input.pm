package Accel::Graph::Input;
# What other programs of the kit measured, for a model: lanes of accel-top, sweeps of accel-bench, histograms of accel-load.
use v5.36;

use Accel::Command qw(fail EX_DATAERR EX_NOINPUT);
use Accel::Graph::Stats qw(summary cdf curve);
use JSON::PP   ();
use List::Util qw(max min);

use constant {
	MAX_FILE  => 64 << 20,    # bytes of a JSON document
	MAX_LINE  => 1 << 20,     # bytes of a line of lanes
	MAX_LANES => 1024,        # points; neighbours are averaged
	MAX_DISKS => 64,
	MAX_ROWS  => 10_000,      # of a sweep
	MAX_LOADS => 64,          # runs of accel-load
	MAX_WORDS => 40,          # facts about a machine
	MAX_WORD  => 200,         # characters of a name
	AROUND_S  => 1,           # lanes before the first and after the last request: one is a mean over a second
};

my $NUMBER  = qr{\A-?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,2})?\z};
my @MACHINE = qw(us sy id wa cs bi bo);
my @DISK    = qw(util queue await_ms read_mb_per_s);
my @AXES    = qw(read_threads stat_threads accel_threads concurrency read_ahead workers);
my @CELL    = (qw(label server backend storage files), @AXES, qw(noatime accel));
my @FIGURES = qw(mb_per_s requests_per_s p50_ms p90_ms p99_ms max_ms first_byte_p50_ms cpu_us);

sub number ($value) { return defined $value && !ref $value && $value =~ $NUMBER ? 0 + $value : undef }

# Text as bytes, like all names in a model.
sub word ($value) {
	return undef unless defined $value && !ref $value && length $value <= MAX_WORD;
	my $bytes = "$value";
	utf8::encode($bytes);
	return $bytes;
}

sub opened ($file) {
	return \*STDIN if $file eq '-';
	open my $fh, '<:raw', $file or fail(EX_NOINPUT, "$file: $!");
	-d $fh and fail(EX_NOINPUT, "$file: is a directory");
	return $fh;
}

sub object ($text, $where) {
	my $object = eval { JSON::PP->new->utf8->max_depth(16)->decode($text) };
	return $object if ref $object eq 'HASH';
	fail(EX_DATAERR, "$where: not a JSON object" . ($@ ? ' (' . ($@ =~ s/ at \S+ line \d+\.?\n?\z//r) . ')' : ''));
}

sub slurp ($file) {
	my $fh = opened($file);
	my $size = read($fh, my $text, MAX_FILE + 1) // fail(EX_NOINPUT, "$file: $!");
	fail(EX_DATAERR, "$file: larger than " . (MAX_FILE >> 20) . ' MiB') if $size > MAX_FILE;
	return $text;
}

# ---------------------------------------------------------------- lanes

sub lanes ($file, $first, $last) {
	my $fh    = opened($file);
	my $width = max(1, ($last - $first + 2 * AROUND_S) / MAX_LANES);
	my ($seen, %bins) = 0;
	my $next = line_reader($fh, $file);
	while (defined(my $line = $next->())) {
		$seen++;
		next unless $line =~ m/\S/;
		next if $line =~ m/"time":\s*([0-9]{1,11}(?:\.[0-9]+)?)/ && ($1 < $first - AROUND_S || $1 > $last + AROUND_S);    # before the slow part
		my $lane = object($line, "$file:$seen");
		my $time = number($lane->{time}) // fail(EX_DATAERR, "$file:$seen: no \"time\"; accel-top --record writes such a file");
		next if $time < $first - AROUND_S || $time > $last + AROUND_S;
		add_lane($bins{ int(($time - $first + AROUND_S) / $width) } //= {}, $lane, at => $time - $first, time => $time);
	}
	fail(EX_DATAERR, "$file: no line about the time of the log, " . join ' to ', map { scalar gmtime $_ } $first, $last) unless %bins;
	return [map { lane_means($bins{$_}) } sort { $a <=> $b } keys %bins];
}

# Returns a sub that returns the next line, however the file is cut into blocks.
sub line_reader ($fh, $file) {
	my ($rest, $nr) = ('', 1);
	return sub () {
		while (index($rest, "\n") < 0) {
			fail(EX_DATAERR, "$file:$nr: a line longer than " . (MAX_LINE >> 10) . ' KiB') if length $rest > MAX_LINE;
			next if read $fh, $rest, MAX_LINE, length $rest;
			return $rest eq '' ? undef : substr $rest, 0, length $rest, '';
		}
		$nr++;
		return substr $rest, 0, 1 + index($rest, "\n"), '';
	};
}

sub add_to ($sums, $key, $value) {
	$value = number($value) // return;
	$sums->{$key}[0]++;
	$sums->{$key}[1] += $value;
}

sub add_lane ($bin, $lane, %when) {
	add_to($bin->{sums} //= {}, $_, $lane->{$_}) for @MACHINE;
	add_to($bin->{sums} //= {}, $_, $when{$_}) for keys %when;
	return unless ref $lane->{disks} eq 'HASH';
	for my $name (sort keys %{ $lane->{disks} }) {
		my $disk = $lane->{disks}{$name};
		$name = word($name) // next;
		next unless ref $disk eq 'HASH' && ($bin->{disks}{$name} || keys %{ $bin->{disks} // {} } < MAX_DISKS);
		$bin->{disks}{$name}{mount} = word($disk->{mount});
		add_to($bin->{disks}{$name}{sums} //= {}, $_, $disk->{$_}) for @DISK;
	}
}

sub means ($sums) { return map { $_ => $sums->{$_}[1] / $sums->{$_}[0] } keys %{ $sums // {} } }

sub lane_means ($bin) {
	my $disks = $bin->{disks} // {};
	return { means($bin->{sums}), disks => { map { $_ => { mount => $disks->{$_}{mount}, means($disks->{$_}{sums}) } } keys %$disks } };
}

# ---------------------------------------------------------------- sweeps

sub sweep ($file) {
	my $bench = object(slurp($file), $file);
	my $rows  = $bench->{rows};
	fail(EX_DATAERR, "$file: no \"rows\"; accel-bench --json writes such a file") unless ref $rows eq 'ARRAY' && @$rows;
	fail(EX_DATAERR, "$file: more than " . MAX_ROWS . ' rows') if @$rows > MAX_ROWS;
	my @cells = map { my $row = $_; ref $row eq 'HASH' && ref $row->{median} eq 'HASH' ? $row : () } @$rows;
	fail(EX_DATAERR, "$file: no row has a \"median\"") unless @cells;
	my $x = axis(@cells);
	my @keys = differing($x, @cells);
	my (%series, @order, @clean);
	for my $cell (@cells) {
		my $label  = label($cell, @keys);
		my %figure = map { my $n = number($cell->{median}{$_}); defined $n ? ($_ => $n) : () } @FIGURES;
		my $spread = number($cell->{spread_percent}) // 0;
		push @clean, { map({ my $word = word($cell->{$_}); defined $word ? ($_ => $word) : () } @CELL), spread_percent => $spread, median => \%figure };
		push @order, $label unless $series{$label};
		push @{ $series{$label} }, { x => defined $x ? number($cell->{$x}) // 0 : 1, spread_percent => $spread, %figure };
	}
	return { title => word($bench->{title}) // word($bench->{scenario}) // $file, machine => words($bench->{machine}), x => $x, rows => \@clean,
		series => [map { { label => $_, points => [sort { $a->{x} <=> $b->{x} } @{ $series{$_} }] } } @order] };
}

# The facts about a machine; a table of versions becomes one text.
sub words ($hash) {
	return {} unless ref $hash eq 'HASH';
	my %fact = map { my $word = fact($hash->{$_}); length $_ <= 40 && defined $word ? ($_ => $word) : () } keys %$hash;
	my @keys = sort keys %fact;
	return { map { $_ => $fact{$_} } splice @keys, 0, MAX_WORDS };
}

sub fact ($value) {
	return $value ? 'yes' : 'no' if JSON::PP::is_bool($value);
	return word($value) unless ref $value eq 'HASH';
	my $text = join ', ', map { my $word = word($value->{$_}); defined $word ? "$_ $word" : () } sort keys %$value;
	return $text eq '' ? undef : word($text);
}

# The setting with most values; nothing if none varies.
sub axis (@cells) {
	my %n   = map { my $key = $_; (grep { defined number($_->{$key}) } @cells) == @cells ? ($key => groups(undef, [$key], @cells)) : () } @AXES;
	my ($x) = sort { $n{$b} <=> $n{$a} } grep { $n{$_} } @AXES;
	return defined $x && $n{$x} > 1 ? $x : undef;
}

# The keys that distinguish series, as few as possible.  A key that follows from others adds nothing, as the backend of a server with its
# name; nor does a label that repeats the value on the axis.  Without an axis, a label that differs in each cell is enough.
sub differing ($x, @cells) {
	return 'label' if !defined $x && groups(undef, ['label'], @cells) == @cells;
	my @keys;
	my $groups = groups($x, [], @cells);
	for my $key ((grep { $_ ne 'label' && $_ ne ($x // '') } @CELL), 'label') {
		my $n = groups($x, [@keys, $key], @cells);
		next if $n == $groups;
		push @keys, $key;
		$groups = $n;
	}
	return @keys;
}

# How many kinds of cells these keys and the axis tell apart.
sub groups ($x, $keys, @cells) {
	my %seen = map { my $cell = $_; (join("\0", map { word($cell->{$_}) // '' } @$keys, $x // ()) => 1) } @cells;
	return scalar keys %seen;
}

# Words that people use; a value without words here is shown as it is.
my %WORDS = (
	stat_threads => '%s threads that open files', read_threads => '%s threads that read', accel_threads => '%s threads of fcgi-stat-accel',
	concurrency => '%s clients', workers => '%s workers', noatime => 'noatime %s', accel => 'fcgi-stat-accel by %s',
);

sub in_words ($key, $value) {
	return sprintf $WORDS{$key} // '%s', $value if $key ne 'read_ahead';
	return "$value bytes at a time" if $value !~ /^\d+\z/ || $value % 1024;
	return $value % (1 << 20) ? ($value >> 10) . ' KiB at a time' : ($value >> 20) . ' MiB at a time';
}

sub label ($cell, @keys) {
	my @words = map { in_words($_, word($cell->{$_})) } grep { (word($cell->{$_}) // '') ne '' } @keys;
	return join(', ', @words) || (word($cell->{label}) // word($cell->{server}) // 'all');
}

# ---------------------------------------------------------------- load

# One object of accel-load --json for each line; several runs make several curves.
sub load ($file) {
	my ($nr, @runs) = 0;
	for my $line (split /\n/, slurp($file)) {
		$nr++;
		next unless $line =~ m/\S/;
		my $run = object($line, "$file:$nr");
		fail(EX_DATAERR, "$file:$nr: no \"histograms\"; accel-load --json writes such a line") unless ref $run->{histograms} eq 'HASH';
		push @runs, { label => @runs ? "$file:$nr" : $file, map({ my $n = number($run->{$_}); defined $n ? ($_ => $n) : () }
			    qw(requests answered unanswered seconds requests_per_s mb_per_s)),
			errors => numbers($run->{errors}), status => numbers($run->{status}),
			map { $_ => from_histogram($run->{histograms}{$_}, "$file:$nr: $_") } qw(latency first_byte connect) };
		fail(EX_DATAERR, "$file: more than " . MAX_LOADS . ' runs') if @runs > MAX_LOADS;
	}
	fail(EX_DATAERR, "$file: empty; accel-load --json writes such a file") unless @runs;
	return @runs;
}

sub numbers ($hash) {
	return {} unless ref $hash eq 'HASH';
	return { map { my $n = number($hash->{$_}); defined $n && length $_ <= 40 ? ($_ => $n) : () } keys %$hash };
}

# { sum_ns, max_ns, buckets => [[bound in ns, how many], ...] }; a bound of null is beyond all buckets.
sub from_histogram ($histogram, $where) {
	return undef unless ref $histogram eq 'HASH' && ref $histogram->{buckets} eq 'ARRAY' && @{ $histogram->{buckets} };
	my $max = number($histogram->{max_ns}) // fail(EX_DATAERR, "$where: no \"max_ns\"");
	my ($n, $last, @values, @below) = (0, 0);
	for my $bucket (@{ $histogram->{buckets} }) {
		my ($bound, $count) = ref $bucket eq 'ARRAY' && @$bucket == 2 ? (number($bucket->[0] // $max), number($bucket->[1])) : ();
		fail(EX_DATAERR, "$where: a bucket is [bound in ns, count above 0], in order") unless defined $bound && $count && $count > 0 && $bound >= $last;
		$last = $bound;
		push @values, min($bound, $max) / 1000;
		push @below, $n += $count;
	}
	my $dist = { n => $n, sum => (number($histogram->{sum_ns}) // 0) / 1000, values => \@values, below => \@below };
	return { %{ summary($dist) }, cdf => cdf($dist), curve => curve($dist) };
}

1;
