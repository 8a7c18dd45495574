#!/usr/bin/perl
# fuzz_graph.pl - any bytes as lines of a log that accel-graph reads
#
#	perl t/fuzz/fuzz_graph.pl [SECONDS [DIR]]        DIR: files that are seeds, too
#
# Of each line accel-graph makes nothing (it is not about timing), a sentence about what is wrong, or a row whose figures are in their
# bounds.  No line takes more than half a second of processor time (a busy machine is not a finding), and none makes a warning.
use v5.36;
use FindBin;
use lib "$FindBin::RealBin/../../scripts/lib";
use Accel::Graph::Read qw(@STAGES START BYTES HOT US OTHER CUT parse_line);
use Time::HiRes qw(clock time);

my ($seconds, $dir) = @ARGV;
$seconds //= 5;

my $seven = 'read-queue-wait: 1 ms read-time: 2 ms write-time: 3 ms';
my @seed = (
	"network_gthread_aio.c.78: (trace) write-start: 1173101341.237616 $seven",
	"2009-01-02 03:04:05 (trace) (network_gthread_aio.c:73) write-start: 1173101341.2 $seven",
	"network_adaptive.c.78: (trace) write-start: 1.5 $seven id=c1.2 stat-queue-us=4 stat-us=5 read-queue-us=1000 read-us=2000 "
	    . 'handover-us=- write-us=3000 total-us=7009 hot=1 path="/a b\"c"',
	'{"write-start":1173101341.237616,"backend":"adaptive","stat-queue-us":1,"read-queue-us":2,"read-us":3,"write-us":4,'
	    . '"total-us":10,"hot":true,"path":"/a\u0041\\\\"}',
	'> ts=1 level=warn ev=x', '',
);
if (defined $dir) {
	for my $file (glob "$dir/*") {
		open my $fh, '<:raw', $file or die "$file: $!\n";
		push @seed, <$fh>;
	}
}
my @word = (' ', '"', '\\', '\\"', '{', '}', ',', ':', '=', "\t", "\0", "\xff", '-', '.', '1e9', '999999999', '1000000000',
	'-1', 'nan', 'inf', 'null', 'true', 'write-start', 'total-us', 'read-us=', 'path="', 'ms', ' (trace) ', '0' x 40, "\n");

sub piece ($s) {
	my $at = int rand 1 + length $s;
	return substr $s, $at, int rand 40;
}

sub mutate ($s) {
	my $at = int rand 1 + length $s;
	my $kind = int rand 6;
	if    ($kind == 0) { substr $s, $at, 0, $word[rand @word] }
	elsif ($kind == 1) { substr $s, $at, 1, chr int rand 256 if $at < length $s }
	elsif ($kind == 2) { substr $s, $at, 1 + int rand 20, '' if $at < length $s }
	elsif ($kind == 3) { substr $s, $at, 0, piece($s) }
	elsif ($kind == 4) { substr $s, $at, 0, piece($seed[rand @seed]) }
	else               { substr $s, $at, 0, $word[rand @word] x (1 + int rand 200) }
	return substr $s, 0, 16_384;
}

sub wrong ($line) {
	my ($warned, $begin) = ('', clock());
	local $SIG{__WARN__} = sub ($text) { $warned = $text };
	my @got = eval { parse_line($line) };
	return "died: $@" if $@;
	return "warned: $warned" if $warned;
	my $took = clock() - $begin;
	return sprintf 'took %.1f s', $took if $took > 0.5;
	return @got > 1 ? 'more than one result' : '' if !@got || !defined $got[0] || !ref $got[0];
	return wrong_row($got[0]);
}

sub wrong_row ($row) {
	return scalar(@$row) . ' places' if @$row != CUT + 1;
	return "start $row->[START]" unless $row->[START] > 0 && $row->[START] <= 1e11;
	return "bytes $row->[BYTES]" unless $row->[BYTES] =~ /\A[0-9]{1,15}\z/;
	return "hot $row->[HOT]" unless ($row->[HOT] // 0) =~ /\A[01]\z/;
	return "cut $row->[CUT]" unless $row->[CUT] =~ /\A[01]\z/;
	for my $place (US .. OTHER) {
		my $us = $row->[$place] // next;    # a stage that this line does not have
		return "$STAGES[$place - US] is $us" unless $us =~ /\A[0-9]+\z/ && $us <= 3.6e9 * @STAGES;
	}
	return '';
}

my ($end, $n) = (time + $seconds, 0);
while (time < $end) {
	for (1 .. 200) {
		my $line = $seed[ $n < @seed ? $n : rand @seed ];
		if ($n++ >= @seed) { $line = mutate($line) for 1 .. 1 + rand 6 }
		my $why = wrong($line) or next;
		printf "not ok 1 - input %d: %s\n# %s\n1..1\n", $n, $why, $line =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger;
		exit 1;
	}
}
print "1..1\nok 1 - $n inputs\n";
