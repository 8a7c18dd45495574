package Test::Waterfall;
# How the files of a page came: figures and a picture of the timing entries of a browser.
#
#     my @files = Test::Waterfall::files($json, qr{^/cold/});      # PerformanceResourceTiming.toJSON() of each file, in one array
#     my $figures = Test::Waterfall::figures(@files);
#     put('waterfall.svg', Test::Waterfall::svg('the page', @files));
#
# A file is a hash: `path`, `kind`, `protocol`, `bytes`, and milliseconds since the page began: `start`, `asked`, `first`, `end`.
# What matches the pattern is of the kind `cold`.
use v5.36;
use JSON::PP ();
use List::Util qw(max min uniq);

use constant { LEFT => 150, PLOT => 800, TOP => 46, ROW => 7, RIGHT => 50 };

my %KIND = (css => 'style', js => 'script', map { $_ => 'image' } qw(png gif jpg svg webp));
my %COLOUR = (style => '#3b6fb6', script => '#d9822b', image => '#3f9142', other => '#777777', cold => '#a83279');

sub files ($json, $cold = undef) {
	return sort { $a->{start} <=> $b->{start} || $a->{end} <=> $b->{end} } map { _file($_, $cold) } @{ JSON::PP::decode_json($json) };
}

sub _file ($entry, $cold) {
	my $path = $entry->{name} =~ s{^\w+://[^/]*}{}r =~ s/[?#].*//r;
	my ($suffix) = $path =~ /\.(\w+)\z/;
	return {
		path => $path, kind => $cold && $path =~ $cold ? 'cold' : $KIND{ $suffix // '' } // 'other',
		protocol => $entry->{nextHopProtocol}, bytes => $entry->{encodedBodySize},
		start => $entry->{startTime}, asked => $entry->{requestStart}, first => $entry->{responseStart}, end => $entry->{responseEnd},
	};
}

# The numbers of each kind and protocol; what was there before the first cold file ended; when all was there.
sub figures (@files) {
	my @cold = grep { $_->{kind} eq 'cold' } @files;
	my @hot = grep { $_->{kind} ne 'cold' } @files;
	my $first_cold = min map { $_->{end} } @cold;
	my %count;
	$count{$_}++ for map { ($_->{kind}, $_->{protocol} || 'unknown') } @files;
	return {
		files => scalar @files, hot => scalar @hot, count => \%count, end_ms => max(map { $_->{end} } @files), hot_end_ms => max(map { $_->{end} } @hot),
		first_cold_ms => $first_cold, hot_before_cold => defined $first_cold ? scalar(grep { $_->{end} < $first_cold } @hot) : scalar @hot,
		protocols => join(' ', sort { $a cmp $b } uniq map { $_->{protocol} || 'unknown' } @files),
	};
}

# ---------------------------------------------------------------- the picture

# A line for each file: thin until it is asked for, light until its first byte, full until its last.
sub svg ($title, @files) {
	my $end = max(1, map { $_->{end} } @files);
	my $scale = PLOT / $end;
	my $bottom = TOP + ROW * @files;
	return join "\n", sprintf('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">', LEFT + PLOT + RIGHT, $bottom + 22),
		'<rect width="100%" height="100%" fill="#ffffff"/>', _key($title, @files), _axis($end, $scale, $bottom),
		(map { _row($files[$_], TOP + ROW * $_, $scale) } 0 .. $#files), "</svg>\n";
}

sub _key ($title, @files) {
	my @kinds = sort { $a cmp $b } uniq map { $_->{kind} } @files;
	my @out = sprintf '<text x="4" y="14" font-weight="bold">%s</text>', _escape($title);
	my $x = LEFT + PLOT + RIGHT - 75 * @kinds;
	for my $kind (@kinds) {
		push @out, sprintf('<rect x="%d" y="6" width="9" height="9" fill="%s"/><text x="%d" y="14">%s</text>', $x, $COLOUR{$kind}, $x + 13, $kind);
		$x += 75;
	}
	return @out;
}

sub _axis ($end, $scale, $bottom) {
	my $step = 1;
	for my $i (0 .. 30) {
		$step = (1, 2, 5)[$i % 3] * 10**int($i / 3);
		last if $end / $step <= 10;
	}
	return map {
		my $x = LEFT + $_ * $step * $scale;
		(sprintf('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#dddddd"/>', $x, TOP - 4, $x, $bottom + 4),
			map { sprintf '<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">%d ms</text>', $x, $_->[0], $_->[1] } [TOP - 8, $_ * $step], [$bottom + 16, $_ * $step]);
	} 0 .. int $end / $step;
}

sub _row ($f, $y, $scale) {
	my ($start, $asked, $first, $end) = map { LEFT + $_ * $scale } @$f{qw(start asked first end)};
	my $bar = sub ($from, $to, $height, $opacity) {
		sprintf '<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s" fill-opacity="%s"/>', $from, $y + (ROW - $height) / 2, max(0.5, $to - $from), $height, $COLOUR{ $f->{kind} }, $opacity;
	};
	return sprintf('<g><title>%s</title><text x="%d" y="%.1f" font-size="6" text-anchor="end">%s</text>', _escape(_words($f)), LEFT - 4, $y + ROW - 1.5, _escape($f->{path})),
		$bar->($start, $asked, 1, 1), $bar->($asked, $first, ROW - 1, 0.4), $bar->($first, $end, ROW - 1, 1), '</g>';
}

sub _words ($f) { return sprintf '%s: %s, %d bytes, asked at %.1f ms, waited %.1f ms, received in %.1f ms', @$f{qw(path protocol bytes asked)}, $f->{first} - $f->{asked}, $f->{end} - $f->{first} }

sub _escape ($text) { return $text =~ s/([&<>"])/'&#' . ord($1) . ';'/ger }

1;
