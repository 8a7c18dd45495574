package Test::Demo::Chart;
# What Test::Demo measured, as a table, as bars of text, as a PNG and as a page.
#
#     print Test::Demo::Chart::table($rows);
#     print Test::Demo::Chart::bars($rows, width => 80, colour => 1, unicode => 1);
#     Test::Demo::Chart::png($rows, 'build/demo/demo.png') // die;
#     print {$fh} Test::Demo::Chart::page($rows, title => ..., story => [...], lines => { nginx => [...] });
#
# Latencies are on a scale of powers of ten, from a tenth of a millisecond: before and after are a factor of a hundred and more
# apart, and both have to be seen. What is written beside a bar is the figure itself.
use v5.36;
use List::Util qw(max min uniq);
use POSIX      ();

use constant { FLOOR => 0.1, NAMES => 20 };

my @when = (['before', 'as it is'], ['after', 'with fcgi-stat-accel']);

# Three digits are enough for the eye.
sub figure ($x) { return $x >= 100 ? sprintf '%.0f', $x : $x >= 10 ? sprintf '%.1f', $x : sprintf '%.2f', $x }

# A latency.  If more requests had no answer than the quantile leaves out, the true latency is longer.
my %left_out = (p50 => 0.5, p99 => 0.01, worst => 0.01);

sub latency ($m, $what) {
	my $open = $m->{asked} && 1 - $m->{answered} / $m->{asked} > $left_out{$what};
	return ($open ? '>' : '') . figure($m->{$what});
}

sub answered ($m) { return $m->{asked} ? sprintf '%.0f %%', 100 * $m->{answered} / $m->{asked} : '-' }

sub spindles ($rows) { return uniq map { $_->{spindles} } @$rows }

sub rows_of ($rows, $spindles) { return grep { $_->{spindles} == $spindles } @$rows }

sub table ($rows) {
	my $form = "  %-18s %-7s %9s %7s %7s %7s %8s   %9s %7s\n";
	my $text = sprintf($form, '', '', 'p99 alone', 'p50', 'p99', 'worst', 'answered', 'cold MB/s', 'of disk');
	for my $n (spindles($rows)) {
		$text .= "$n spindles\n";
		for my $row (rows_of($rows, $n)) {
			for my $when (map { $_->[0] } @when) {
				my $m = $row->{$when};
				$text .= sprintf $form, $when eq 'before' ? $row->{server} : '', $when, figure($m->{alone_p99}), (map { latency($m, $_) } qw(p50 p99 worst)),
				    answered($m), sprintf('%.1f', $m->{mb}), sprintf('%.0f %%', 100 * $m->{mb} / $row->{disk_mb});
			}
		}
	}
	return $text;
}

# ---------------------------------------------------------------- text

# The position of a value, 0 to 1, between FLOOR and the power of ten above all values.
sub scale ($rows) {
	my $top = max map { ($_->{before}{worst}, $_->{after}{worst}) } @$rows;
	my $decades = max 1, POSIX::ceil(log(max($top, 1) / FLOOR) / log 10);
	return ($decades, sub ($x) { min 1, max 0, log(max($x, FLOOR) / FLOOR) / log(10) / $decades });
}

sub tick ($decade) { return 0 + sprintf '%.4g', FLOOR * 10**$decade }

sub bars ($rows, %opt) {
	my $room = max 20, min(100, $opt{width}) - NAMES - 18;
	my ($decades, $at) = scale($rows);
	my $text = axis($room, $decades);
	for my $n (spindles($rows)) {
		$text .= "$n spindles\n";
		for my $row (rows_of($rows, $n)) {
			for my $when (map { $_->[0] } @when) {
				my $m = $row->{$when};
				$text .= sprintf '  %-' . NAMES . "s%-7s%s %s\n", $when eq 'before' ? $row->{server} : '', $when,
				    bar($when, max(1, int 0.5 + $room * $at->($m->{p99})), %opt), latency($m, 'p99');
			}
		}
	}
	return $text;
}

sub bar ($when, $length, %opt) {
	my $bar = ($opt{unicode} ? "\x{2588}" : '#') x $length;
	return $opt{colour} ? sprintf("\e[%dm%s\e[0m", $when eq 'before' ? 31 : 32, $bar) : $bar;
}

sub axis ($room, $decades) {
	my ($labels, $marks) = ('', '');
	for my $d (0 .. $decades) {
		my $column = int 0.5 + $room * $d / $decades;
		$labels .= ' ' x max(0, $column - length $labels) . tick($d);
		$marks .= ' ' x ($column - length $marks) . '|';
	}
	my $margin = ' ' x (NAMES + 9);
	return "$margin$labels ms\n$margin$marks\n";
}

# ---------------------------------------------------------------- PNG

# Draws the PNG and returns its name; undef without gnuplot.  Data and script go through a pipe, so no other file is left.
sub png ($rows, $file) {
	my ($gnuplot) = grep { -x } map { "$_/gnuplot" } split /:/, $ENV{PATH};
	return undef unless $gnuplot;
	open my $to, '|-', $gnuplot, '-' or die "gnuplot: $!\n";
	print $to gnuplot_script($rows, $file);
	close $to or die "gnuplot: exit status " . ($? >> 8) . "\n";
	return $file;
}

sub quoted ($text) { return "'" . $text =~ s/'/''/gr . "'" }

# The upper panel shows how long hot requests take, the lower one how much of the disk's rate arrives; one column for each number of
# spindles.
sub gnuplot_script ($rows, $file) {
	my @spindles = spindles($rows);
	my ($decades) = scale($rows);
	my $script = join "\n", 'set terminal pngcairo size ' . 620 * @spindles . ",780 noenhanced font 'sans,11'", 'set output ' . quoted($file),
	    'set style data histograms', 'set style histogram clustered gap 1', 'set style fill solid 0.85 noborder', 'set boxwidth 0.9',
	    'set grid ytics lc rgb "#dddddd"', 'set border 3', 'set tics nomirror', 'set key top right horizontal', 'set bmargin 3.5',
	    'set xrange [-0.6:' . (@$rows / @spindles - 0.4) . ']', '';    # names of two lines, side by side
	for my $n (@spindles) {
		$script .= "\$d$n << EOD\n" . join('', map { data_line($_) } rows_of($rows, $n)) . "EOD\n";
	}
	$script .= 'set multiplot layout 2,' . @spindles . "\n";
	# Room for the key above the highest bar.
	$script .= 'set logscale y; set yrange [' . FLOOR / 2 . ':' . 3 * tick($decades) . "]; set ylabel 'ms'\n";
	$script .= "set title 'Hot requests beside 16 cold clients, $_ spindles: p99, worst as a dash'\nplot " . panel($_, 2, 4) . "\n" for @spindles;
	$script .= "unset logscale y; set ylabel 'MB/s'\n";
	for my $n (@spindles) {
		$script .= 'set yrange [0:' . 1.2 * (max map { $_->{disk_mb} } rows_of($rows, $n)) . "]\n"
		    . "set title 'Cold files of 100 kB, $n spindles: what arrives, what the disk has as a dash'\nplot " . panel($n, 6, 8) . "\n";
	}
	return $script . "unset multiplot\n";
}

sub data_line ($row) {
	my ($b, $a) = @$row{qw(before after)};
	return sprintf qq{"%s" %g %g %g %g %g %g %g %g\n}, $row->{server} =~ s/, /\\n/r, map({ max FLOOR / 2, $_ } $b->{p99}, $a->{p99}, $b->{worst}, $a->{worst}),
	    $b->{mb}, $a->{mb}, ($row->{disk_mb}) x 2;
}

# Bars from two columns, and a mark over each at the height in the two columns after.
sub panel ($n, $bars, $marks) {
	my @part = (qq{\$d$n using $bars:xtic(1) lc rgb "#c0392b" title "before"}, "'' using " . ($bars + 1) . q{ lc rgb "#1e8449" title "after"});
	push @part, map { sprintf q{'' using ($0%+.3f):%d:(0.14) with xerrorbars lw 2 pt 0 lc rgb "#444444" notitle}, ($_ ? 1 : -1) / 6, $marks + $_ } 0, 1;
	return join ', ', @part;
}

# ---------------------------------------------------------------- page

sub escaped ($text) { return $text =~ s/([&<>"])/'&#' . ord($1) . ';'/ger }

# A page that loads no other file: its drawings are inline SVG, and colours follow the reader's light or dark mode.
sub page ($rows, %arg) {
	my $title = escaped($arg{title});
	my $story = join '', map { '<p>' . escaped($_) . "</p>\n" } @{ $arg{story} };
	my $charts = join '', map { drawing($rows, $_) } spindles($rows);
	my $lines = join '', map { "<h3>$_</h3>\n<pre>" . escaped(join "\n", @{ $arg{lines}{$_} }) . "</pre>\n" } sort keys %{ $arg{lines} };
	my $body = join '', map { html_rows($rows, $_) } spindles($rows);
	return <<"END";
<!doctype html><html lang=en><meta charset=utf-8><title>$title</title>
<meta name=viewport content="width=device-width">
<style>:root{color-scheme:light dark;--b:#c0392b;--a:#1e8449}\@media(prefers-color-scheme:dark){:root{--b:#e57368;--a:#58c27d}}
body{font:1em/1.5 system-ui,sans-serif;max-width:52em;margin:5vh auto;padding:0 1em}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.1em .8em;text-align:right}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}
th[colspan]{padding-top:1em}.before{color:var(--b)}.after{color:var(--a)}svg{width:100%;height:auto;font:12px system-ui,sans-serif}
svg text{fill:currentColor}rect.before{fill:var(--b)}rect.after{fill:var(--a)}line{stroke:currentColor;stroke-opacity:.2}pre{overflow:auto;padding:.6em 1em;border-left:3px solid var(--a)}</style>
<h1>$title</h1>
$story<h2>How long hot requests take</h2>
<p>p99 in ms, on a scale of powers of ten; <span class=before>before</span> and <span class=after>after</span>. The thin line is the worst request.</p>
$charts<h2>The figures</h2>
<table><tr><th>server<th><th>p99 alone<th>p50<th>p99<th>worst ms<th>answered<th>cold MB/s<th>of disk
$body</table>
<h2>What was added to the configuration</h2>
$lines</html>
END
}

sub html_rows ($rows, $n) {
	my $text = "<tr><th colspan=9>$n spindles\n";
	for my $row (rows_of($rows, $n)) {
		for my $when (map { $_->[0] } @when) {
			my $m = $row->{$when};
			$text .= join '<td>', "<tr class=$when>", $when eq 'before' ? escaped($row->{server}) : '', $when,
			    figure($m->{alone_p99}), (map { escaped(latency($m, $_)) } qw(p50 p99 worst)), answered($m), sprintf('%.1f', $m->{mb}), sprintf("%.0f %%\n", 100 * $m->{mb} / $row->{disk_mb});
		}
	}
	return $text;
}

sub drawing ($rows, $n) {
	my ($decades, $at) = scale($rows);
	my ($left, $room, $row_height) = (150, 500, 46);
	my @rows = rows_of($rows, $n);
	my $height = 40 + $row_height * @rows;
	my $svg = qq{<svg viewBox="0 0 720 $height" role=img aria-label="p99 of hot requests, $n spindles"><text x="0" y="14">$n spindles</text>\n};
	for my $d (0 .. $decades) {
		my $x = $left + $room * $d / $decades;
		$svg .= sprintf qq{<line x1="%1\$.0f" x2="%1\$.0f" y1="22" y2="%2\$d"/><text x="%1\$.0f" y="14" text-anchor="middle">%3\$s ms</text>\n}, $x, $height, tick($d);
	}
	for my $i (0 .. $#rows) {
		my $y = 30 + $row_height * $i;
		$svg .= sprintf qq{<text x="0" y="%d">%s</text>\n}, $y + 22, escaped($rows[$i]{server});
		for my $when (map { $_->[0] } @when) {
			my ($p99, $worst) = @{ $rows[$i]{$when} }{qw(p99 worst)};
			my ($long, $thin) = map { max 2, $room * $at->($_) } $p99, $worst;
			$svg .= sprintf qq{<rect class=%s x="$left" y="%d" width="%.0f" height="15"/><rect class=%s x="$left" y="%d" width="%.0f" height="1.5"/>}
			    . qq{<text x="%.0f" y="%d">%s</text>\n}, $when, $y, $long, $when, $y + 7, $thin, $left + $thin + 6, $y + 12, escaped(latency($rows[$i]{$when}, 'p99'));
			$y += 17;
		}
	}
	return "$svg</svg>\n";
}

1;
