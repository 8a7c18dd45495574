package Accel::Graph::Style;
# Colours, marks and letters of what charts show.
#
# Waiting is dark and working is light, on a light page; on a dark page the other way round; what belongs to no stage is
# grey.  So neighbours in a stack differ in brightness, which remains visible in grey print and with every kind of colour blindness.  Each
# stage also has a mark of its own.
use v5.36;
use utf8;

use Accel::Util qw($UNPRINTABLE);
use Exporter qw(import);
use POSIX    qw(ceil);

our @EXPORT_OK = qw(text_of style style_names contrast @STACK @HEAT @HEAT_DARK HEAT_LEVELS heat_levels);

our @STACK = qw(stat-queue stat proxy-queue proxy read-queue read handover write other);

# name => [on a light page, on a dark one, mark, letter, dash]
my %STYLE = (
	'stat-queue'  => ['#0b3c7d', '#9cccff', 'square',       'S', 1],
	'stat'        => ['#4a8fd0', '#5595da', 'circle',       's', 2],
	'proxy-queue' => ['#4d4000', '#ffe98a', 'down',         'P', 3],
	'proxy'       => ['#c9ad1a', '#a8921c', 'open-down',    'p', 4],
	'read-queue'  => ['#a33200', '#ffbd91', 'up',           'R', 1],
	'read'        => ['#f9ab62', '#96420f', 'diamond',      'r', 2],
	'handover'    => ['#004d3d', '#97f0da', 'open-square',  'h', 3],
	'write'       => ['#34a386', '#38b392', 'open-up',      'w', 1],
	'other'       => ['#4a4a4a', '#c0c0c0', 'cross',        'o', 4],
	'handshake'   => ['#7a3b8f', '#d9a6ea', 'open-circle',  'k', 3],
	'total'       => ['#222222', '#eeeeee', 'circle',       '*', 1],
	'all'         => ['#222222', '#eeeeee', 'circle',       'a', 1],
	'cold'        => ['#0b5fa5', '#7fbfff', 'square',       'c', 1],
	'hot'         => ['#d98200', '#ffc766', 'open-circle',  '.', 2],
	'before'      => ['#757575', '#a0a0a0', 'open-circle',  'b', 2],
	'after'       => ['#0b5fa5', '#7fbfff', 'square',       'a', 1],
);

# Series without a name of their own, in the order of their brightness.
my @NUMBERED = (
	['#222222', '#eeeeee', 'circle',      '1', 1], ['#0b5fa5', '#7fbfff', 'square',    '2', 2],
	['#a33200', '#ffbd91', 'up',          '3', 3], ['#1f8f72', '#97f0da', 'down',      '4', 4],
	['#d98200', '#ffc766', 'diamond',     '5', 1], ['#79b4e8', '#3f7fc0', 'open-circle', '6', 2],
	['#8a8a8a', '#a0a0a0', 'open-square', '7', 3], ['#c9a800', '#a8921c', 'open-up',   '8', 4],
);

use constant HEAT_LEVELS => 6;
our @HEAT      = ('#ecbd7c', '#dd984a', '#c4732a', '#9c4c14', '#6d2a07', '#360e02');    # few to many, ever darker
our @HEAT_DARK = ('#86390f', '#ad5a1c', '#cf7d33', '#e6a35c', '#f3c890', '#fff0d8');    # ever lighter; one request is seen on a dark page, too

# { light, dark, mark, letter, dash } of a name, or of a number from 0.
sub style ($name) {
	my %style;
	@style{qw(light dark mark letter dash)} = @{ $STYLE{$name} // $NUMBERED[ $name =~ /\A\d+\z/ ? $name % @NUMBERED : 0 ] };
	return \%style;
}

# Characters of a text from outside: UTF-8 if it is that, else each byte by itself.
sub text_of ($bytes) {
	my $text = $bytes // '';
	utf8::decode($text) unless utf8::is_utf8($text);
	return $text =~ s/$UNPRINTABLE/_/gr;
}

sub style_names () { return (sort(keys %STYLE), 0 .. $#NUMBERED) }

# A text colour that can be read on this colour: nearly black or white.
sub contrast ($color) {
	my ($r, $g, $b) = map { hex } $color =~ /([0-9a-f]{2})/gi;
	return 0.3 * $r + 0.59 * $g + 0.11 * $b > 135 ? '#101010' : '#ffffff';
}

# The heat level of a count; each level spans the same factor.  Returns the level and a text for each level.
sub heat_levels ($most) {
	my $factor = $most > 1 ? $most**(1 / HEAT_LEVELS) : 1;
	my @least  = map { ceil($factor**$_ - 1e-9) } 0 .. HEAT_LEVELS - 1;
	for my $level (1 .. $#least) { $least[$level] = $least[$level - 1] + 1 if $least[$level] <= $least[$level - 1] }
	pop @least while @least > 1 && $least[-1] > $most;
	my @text = map {
		my $last = $_ < $#least ? $least[ $_ + 1 ] - 1 : $most < $least[$_] ? $least[$_] : $most;
		$last > $least[$_] ? "$least[$_]–$last" : $least[$_];
	} 0 .. $#least;
	my $of = sub ($n) {
		my $level = 0;
		$level++ while $level < $#least && $n >= $least[ $level + 1 ];
		return @least == 1 ? int(HEAT_LEVELS / 2) : int($level * (HEAT_LEVELS - 1) / $#least + 0.5);
	};
	return ($of, [ map { [$of->($least[$_]), $text[$_]] } 0 .. $#least ]);
}

1;
