package Accel::Graph::Read;
use v5.36;

use Accel::Util qw(printable);
use Exporter    qw(import);

our @EXPORT_OK = qw(@STAGES BACKEND START BYTES HOT US TOTAL OTHER HANDSHAKE CUT parse_line);

use constant {
	BACKEND => 0, START => 1, BYTES => 2, HOT => 3, US => 4,    # places in a row
	TOTAL   => 12, OTHER => 13, HANDSHAKE => 14, CUT => 15,
};

use constant {
	ABSURD_US   => 3_600_000_000,    # nobody waits an hour for a file
	MAX_LINE    => 65_536,           # bytes; the longest path of a request is a quarter of it
	BLOCK       => 262_144,          # bytes read at a time
	MAX_REJECTS => 10,               # kept with file and line
};

our @STAGES = qw(stat-queue stat proxy-queue proxy read-queue read handover write total other handshake);
my @LOGGED  = @STAGES[0 .. 8];
my %PLACE   = map { ("$STAGES[$_]-us" => US + $_) } 0 .. $#STAGES;

# ---------------------------------------------------------------- one line

my $N    = qr{[0-9]{1,9}};           # far from absurd
my $TIME = qr{[1-9][0-9]{0,9}(?:\.[0-9]{1,9})?};

# Lines of this project as base/timing.c writes them, which are nearly all lines.  The captures are the row.
my $OURS = do {
	my $stages = join ' ', map { "$_-us=($N)" } @LOGGED;
	qr{\A(network_\w+)\.c\.\d+: \(trace\) write-start: ($TIME) read-queue-wait: [0-9]{1,7} ms read-time: [0-9]{1,7} ms write-time: [0-9]{1,7} ms id=\S+ status=[0-9]+ bytes=([0-9]{1,15}) hot=([01]) $stages(?: handshake-us=($N))?( cut=1)?(?= |\z)};
};
my $STRING    = qr{"(?:[^"\\]|\\.)*+"};
my $OURS_JSON = do {
	my $stages = join ',', map { "\"$_-us\":($N)" } @LOGGED;
	qr{\A\{"write-start":($TIME),"backend":"([^"\\.]*)[^"\\]*","id":$STRING,"status":[0-9]+,"bytes":([0-9]{1,15}),"hot":(true|false),$stages(?:,"handshake-us":($N))?(,"cut":true)?,"path":$STRING\}\s*\z};
};

# Any line of 2007 and later, and of other versions of this project.
my $TAG = qr{\A(?:
	(network_\w+)\.c\.\d+:\ \(trace\)                                       # 2007, and ours
	| \d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\ \(trace\)\ \((network_\w+)\.c:\d+\)  # 2009
)\ write-start:\ }x;
my $REST   = qr{\G(\S+)\ read-queue-wait:\ (\S+)\ ms\ read-time:\ (\S+)\ ms\ write-time:\ (\S+)\ ms(?=\s|\z)};
my $NUMBER = qr{\A-?[0-9]{1,20}(?:\.[0-9]{1,20})?\z};

# Returns nothing for a line that is not about timing, the mistake as text, or a row.
sub parse_line ($line) {
	if (my @row = $line =~ $OURS) {
		return finished(\@row);
	}
	if (my ($start, $backend, @rest) = $line =~ $OURS_JSON) {
		$rest[1] = $rest[1] eq 'true' ? 1 : 0;
		return finished([$backend, $start, @rest]);
	}
	return any_line($line) if $line =~ m/$TAG/gc;
	return any_json($line) if $line =~ m/\A\s*\{/ && index($line, '"write-start"') > 0;
	return;
}

# The last captures are the handshake, which the total is without, and whether the transfer was cut.  The rest of the total belongs to no stage.
sub finished ($row) {
	my $known = $row->[4] + $row->[5] + $row->[6] + $row->[7] + $row->[8] + $row->[9] + $row->[10] + $row->[11];
	@$row[HANDSHAKE, CUT] = ($row->[13], $row->[14] ? 1 : 0);
	$row->[OTHER] = $row->[TOTAL] > $known ? $row->[TOTAL] - $known : 0;
	return $row;
}

sub any_line ($line) {
	my ($backend) = grep { defined } $line =~ m/$TAG/g;
	pos($line) = $+[0];
	$line =~ m/$REST/gc or return 'cut short';
	my ($start, @ms) = ($1, $2, $3, $4);
	my %us;
	for my $stage (qw(read-queue read write)) {
		my $ms  = shift @ms;
		my $why = absurd("$stage time", $ms, 'ms', 1000);
		return $why if $why;
		$us{"$stage-us"} = $ms * 1000;
	}
	my %pair;
	while ($line =~ m/\G ([a-z-]+)=(?!")(\S+)/gc) { $pair{$1} = $2 }    # stops at path="...", which may contain anything
	return checked($backend, $start, { %us, %pair });
}

sub any_json ($line) {
	my $pair = flat_json($line) or return 'not a flat JSON object';
	return unless exists $pair->{'write-start'};
	my ($backend) = ($pair->{backend} // '') =~ m/\A"(\w+)/;
	return checked($backend // 'unknown', $pair->{'write-start'}, $pair);
}

# One object without nesting, as the server writes it.  A general decoder takes ten times as long.
sub flat_json ($line) {
	my %pair;
	$line =~ m/\A\s*\{/gc;
	while ($line =~ m/\G\s*($STRING)\s*:\s*($STRING|[-+.\w]+)\s*(,|\}\s*\z)/gc) {
		$pair{ substr $1, 1, -1 } = $2;
		return \%pair if $3 ne ',';
	}
	return;
}

sub checked ($backend, $start, $pair) {
	return "write-start is \"$start\", not a time" unless $start =~ $NUMBER;
	return "write-start $start is not a time in seconds" if $start <= 0 || $start > 1e11;
	my $bytes = $pair->{bytes} // '';
	my $hot   = $pair->{hot};
	my @row   = ($backend, $start, $bytes =~ m/\A[0-9]{1,15}\z/ ? $bytes : 0, defined $hot ? $hot =~ m/\A(?:1|true)\z/ ? 1 : 0 : undef);
	my $known = 0;
	for my $stage (@LOGGED, 'handshake') {
		my $value = $pair->{"$stage-us"} // next;
		next if $value eq '-' || $value eq 'null';
		my $why = absurd("$stage-us", $value, 'us', 1);
		return $why if $why;
		$row[ $PLACE{"$stage-us"} ] = int($value + 0.5);
		$known += $row[ $PLACE{"$stage-us"} ] if $stage !~ /\A(?:total|handshake)\z/;
	}
	defined $row[ $PLACE{"$_-us"} ] or return "no $_-us" for qw(read-queue read write);
	$row[TOTAL] //= $known;
	$row[OTHER] = $row[TOTAL] > $known ? $row[TOTAL] - $known : 0;
	$row[CUT] = ($pair->{cut} // '') =~ m/\A(?:1|true)\z/ ? 1 : 0;
	return \@row;
}

sub absurd ($what, $value, $unit, $to_us) {
	return "$what is \"$value\", not a number" unless $value =~ $NUMBER;
	return "$what $value $unit is negative" if $value < 0;
	return "$what $value $unit is over an hour" if $value * $to_us > ABSURD_US;
	return;
}

# ---------------------------------------------------------------- many lines

sub new ($class, %arg) {
	return bless { on_row => $arg{on_row}, on_block => $arg{on_block} // sub { }, memory => $arg{memory}, lines => 0, timing => 0, rejected => 0, first_rejects => [],
		warn => $arg{warn} // sub ($text) { warn "$text\n" } }, $class;
}

# The state of a log that will be fed.
sub begin ($self, $label) { return { label => $label, nr => 0, rest => '', skipping => 0 } }

# Takes any piece of a log; a line may be cut anywhere.
sub feed ($self, $log, $bytes) {
	if ($log->{skipping}) {
		my $end = index $bytes, "\n";
		return if $end < 0;
		substr $bytes, 0, $end + 1, '';
		$log->{skipping} = 0;
	}
	my $last = rindex $bytes, "\n";
	if ($last < 0) {
		$log->{rest} .= $bytes;
		return $self->check_length($log);
	}
	my $rest = substr $bytes, $last + 1;
	substr $bytes, $last, length($bytes), '';
	$bytes = $log->{rest} . $bytes;
	$self->lines($log, $bytes eq '' ? '' : split /\n/, $bytes, -1);
	$log->{rest} = $rest;
	$self->check_length($log);
	$self->{on_block}->($log);
	return;
}

sub check_length ($self, $log) {
	return if length $log->{rest} <= MAX_LINE;
	@$log{qw(rest skipping)} = ('', 1);
	$log->{nr}++;
	$self->{lines}++;
	return $self->reject($log->{label}, $log->{nr}, 'longer than ' . MAX_LINE . ' bytes');
}

# The last line may lack its end.
sub end ($self, $log) {
	$self->lines($log, $log->{rest}) if $log->{rest} ne '';
	$log->{rest} = '';
	$self->{on_block}->($log);
}

sub lines ($self, $log, @lines) {
	my ($on_row, $memory) = @$self{qw(on_row memory)};
	my $nr     = $log->{nr};
	my $rows   = 0;
	for my $line (@lines) {
		$nr++;
		my $row = length $line <= MAX_LINE ? parse_line($line) : 'longer than ' . MAX_LINE . ' bytes';
		if (!defined $row) {
			$memory->other_line($line) if $memory;
		} elsif (ref $row) {
			$rows++;
			$on_row->($row);
			$memory->timing_line($line, $row) if $memory;
		} else {
			$self->reject($log->{label}, $nr, $row);
		}
	}
	$self->{timing} += $rows;
	$self->{lines}  += @lines;
	$log->{nr} = $nr;
}

sub reject ($self, $label, $nr, $why) {
	$self->{rejected}++;
	push @{ $self->{first_rejects} }, printable("$label:$nr: $why") if @{ $self->{first_rejects} } < MAX_REJECTS;
}

# Reads a whole log; "-" is standard input.  Returns nothing, or why it cannot be opened.
sub file ($self, $file) {
	my $log = $self->begin($file eq '-' ? 'standard input' : $file);
	my ($fh, $why) = opened($file);
	return "$log->{label}: $why" unless $fh;
	my $zip = ref $fh ne 'GLOB';
	my ($got, $bytes);
	$self->feed($log, $bytes) while ($got = $zip ? $fh->read($bytes) : read $fh, $bytes, BLOCK) && $got > 0;
	my $error = defined $got && $got >= 0 ? '' : $zip ? $fh->error : "$!";
	$self->end($log);
	$self->{warn}->(printable("$log->{label}: reading stopped after line $log->{nr}: $error")) if $error;
	return;
}

sub opened ($file) {
	my $fh;
	if ($file eq '-') {
		$fh = \*STDIN;
	} else {
		open $fh, '<', $file or return (undef, "$!");
		-d $fh and return (undef, 'is a directory');
	}
	binmode $fh;
	read($fh, my $magic, 2) // return (undef, "$!");
	if ($magic eq "\x1f\x8b") {
		require IO::Uncompress::Gunzip;
		my $zip = IO::Uncompress::Gunzip->new($fh, Prime => $magic, MultiStream => 1);
		return $zip // (undef, 'not readable as gzip');
	}
	$fh->ungetc(ord $_) for reverse split //, $magic;
	return $fh;
}

1;
