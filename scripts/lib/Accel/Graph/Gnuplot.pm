package Accel::Graph::Gnuplot;
# Writes gnuplot scripts from descriptions of charts, and runs gnuplot.  Accel::Graph::Charts says what a description is.
use v5.36;

use Exporter   qw(import);
use File::Temp ();
use List::Util qw(max min);
use Accel::Graph::Axis  qw(fitting);
use Accel::Graph::Style qw(style contrast @HEAT);
use Accel::Util         qw(find_program put slurp);

our @EXPORT_OK = qw(gnuplot_script picture run_gnuplot draw_picture);

use constant {
	LINE_PX => 1.75, LETTER_PX => 0.8,    # of a line and a letter for each point of the font
	PLOT        => 0.62,                  # part of the width that bars have
	KEY_LETTERS => 6,                     # around a name in a key
	LEAST_KEY   => 0.75,                  # smaller letters of a key cannot be read
};

use constant FOOT_KEY => 'set key at screen 0.5, screen %.4f center bottom horizontal maxcols %d reverse Left noenhanced samplen 1.2 spacing 1.1 font ""';

my %POINT = (
	'circle' => 7, 'open-circle' => 6, 'square' => 5, 'open-square' => 4, 'up' => 9, 'open-up' => 8,
	'down' => 11, 'open-down' => 10, 'diamond' => 13, 'open-diamond' => 12, 'cross' => 2,
);

# The script is bytes: characters become UTF-8, names of files stay what they are.
# gnuplot expands nothing between single quotes; only a line break could end them.
sub quote ($text) { utf8::encode($text); return quote_bytes($text) }
sub quote_bytes ($text) { return "'" . $text =~ s/[\x00-\x1f\x7f]/_/gr =~ s/'/''/gr . "'" }
sub comment ($text) { utf8::encode($text); return '# ' . $text =~ s/[\x00-\x1f\x7f]/_/gr }

# A leading "<" or "|" would start a program, a leading "~" would name a home directory.
sub quote_file ($file) { return quote_bytes($file =~ m/\A\w/ ? $file : "./$file") }

# The script that draws charts.  %arg: name, requests, kind (png or svg), size [width, height], font "NAME,SIZE", title 0|1.
sub gnuplot_script ($charts, %arg) {
	my @gp = "# Charts of $arg{name}.  Edit and draw again, in this directory: gnuplot $arg{name}.gp" =~ s/[\x00-\x1f\x7f]/_/gr;
	my $n  = $arg{requests};
	push @gp, 'reset', 'set encoding utf8', 'data = ' . quote_file("$arg{name}.data"),
		'size = ' . ($n <= 500 ? 0.8 : $n <= 5_000 ? 0.5 : $n <= 50_000 ? 0.3 : 0.2) . '    # of a point', terminal(%arg), frame(), '';
	my %number = style_lines($charts, \@gp);
	my $block  = 0;
	for my $chart (@$charts) {
		push @gp, '', comment($chart->{title}), 'set output ' . quote_file(picture($chart, %arg));
		push @gp, draw_chart($chart, \%number, \$block, %arg), 'unset output';
	}
	return join "\n", @gp, '';
}

sub picture ($chart, %arg) { return $arg{name} . ($chart->{id} eq '' ? '' : "-$chart->{id}") . ".$arg{kind}" }

sub terminal (%arg) {
	my $size = join ',', @{ $arg{size} };
	my $font = quote($arg{font});
	return "set terminal svg noenhanced size $size dynamic font $font background '#ffffff'" if $arg{kind} eq 'svg';
	return ("if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {",
		"	set terminal pngcairo noenhanced size $size font $font background '#ffffff'",
		'} else {', "	set terminal png size $size", '}');
}

# "NAME,SIZE" with another size.
sub font ($font, $factor) { return $font =~ s/,([0-9]+)\z/',' . int($1 * $factor + 0.5)/er }

sub frame () {
	return (q{set border 3 linecolor '#808080' linewidth 0.8}, q{set tics nomirror out scale 0.6,0.3 textcolor '#303030'},
		q{set grid xtics ytics linecolor '#e0e0e0' linetype 1 linewidth 0.6},
		'set style fill solid noborder', q{set style textbox opaque noborder margins 0.5,0.3 fillcolor '#ffffff'},
		'heat(level) = ' . join(' : ', map({ "level < $_ + 0.5 ? " . hex(substr $HEAT[$_], 1) } 0 .. $#HEAT - 1), hex substr $HEAT[-1], 1));
}

# One numbered line style for each name in use, so that a colour is changed in one place.
sub style_lines ($charts, $gp) {
	my %number;
	for my $as (map { $_->{as} } map { @{ $_->{series} } } map { @{ $_->{panels} } } @$charts) {
		next if $number{$as};
		my $style = style($as);
		$number{$as} = 1 + keys %number;
		push @$gp, sprintf q{set style line %d linecolor rgb '%s' pointtype %d dashtype %d linewidth 1.8    # %s}, $number{$as}, $style->{light},
		    $POINT{ $style->{mark} }, $style->{dash}, $as =~ s/[\x00-\x1f\x7f]/_/gr;
	}
	return %number;
}

# Titles that are too long for the picture get smaller letters.
sub title_line ($chart, %arg) {
	return 'unset title' unless $arg{title};
	my $title = $arg{title_text} // $chart->{title};
	my ($size) = $arg{font} =~ /,([0-9]+)\z/;
	my $bars  = grep { $_->{style} eq 'bars' } map { @{ $_->{series} } } @{ $chart->{panels} };    # have words beside them
	my $fits  = $arg{size}[0] * ($bars ? 0.75 : 1) / ((length($title) + 4) * $size * LETTER_PX);
	return 'set title ' . quote($title) . ' noenhanced font ' . quote(font($arg{font}, $fits > 1.1 ? 1.1 : $fits));
}

sub draw_chart ($chart, $number, $block, %arg) {
	my @panels = @{ $chart->{panels} };
	my @gp     = (title_line($chart, %arg), 'set key default');
	my ($size) = $arg{font} =~ /,([0-9]+)\z/;
	my $line   = $size * LINE_PX / $arg{size}[1];
	return (@gp, single_key($panels[0], $size, $line, %arg), draw_panel($panels[0], $number, $block, %arg), 'unset bmargin') if @panels == 1;
	my $top    = 1 - $line * ($arg{title} ? 2.7 : 1.3);
	my ($foot) = grep { key_fits($_, $size, %arg) < LEAST_KEY } @panels;    # a key too long for its place stands below all panels
	my ($columns, $lines) = $foot ? key_grid($foot, $size, %arg) : (0, 0);
	my ($bottom, $gap, $weight) = (foot($lines) * $line, 1.5 * $line, 0);
	$weight += $_->{height} // 1 for @panels;
	my $room = $top - $bottom - $gap * $#panels;
	push @gp, 'set multiplot', 'set lmargin 9', 'set rmargin 3';
	for my $panel (@panels) {
		my $high = $room * ($panel->{height} // 1) / $weight;
		push @gp, sprintf('set tmargin at screen %.4f', $top), sprintf('set bmargin at screen %.4f', $top - $high), $panel == $panels[0] ? () : 'unset title';
		push @gp, $foot && $panel == $foot ? sprintf(FOOT_KEY, 0.1 * $line, $columns) : panel_key($panel, $size, %arg);
		push @gp, draw_panel($panel, $number, $block, %arg, several => 1, no_words => $panel != $panels[-1] && $panel->{shared_x});
		$top -= $high + $gap;
	}
	return (@gp, 'unset multiplot', 'unset tmargin', 'unset bmargin', 'unset lmargin', 'unset rmargin');
}

# Lines of letters below the plot: the words of the axis, then a key.
sub foot ($lines) { return 3.1 + ($lines ? 0.4 + $lines : 0) }

# The key of a picture with one panel.
sub single_key ($panel, $size, $line, %arg) {
	my ($columns, $lines) = key_grid($panel, $size, %arg);
	return $lines ? (sprintf('set bmargin at screen %.4f', foot($lines) * $line), sprintf FOOT_KEY, 0.1 * $line, $columns) : ();
}

# The key of one panel among several: at the right of the line above it, with letters that fit beside the panel's name.
sub panel_key ($panel, $size, %arg) {
	my $factor = max(LEAST_KEY, min(1, key_fits($panel, $size, %arg)));
	return 'set key at graph 1, graph 1.01 right bottom horizontal maxrows 1 reverse Left noenhanced samplen 1.2 font ' . quote(font($arg{font}, $factor));
}

# How many times a key of one line fits beside the name of its panel.
sub key_fits ($panel, $size, %arg) {
	my @names = key_names($panel) or return 1;
	my $room  = $arg{size}[0] * 0.82 - length($panel->{y}{label}) * $size * LETTER_PX;
	return $room / (@names * (max(@names) + KEY_LETTERS) * $size * LETTER_PX);
}

# Lengths of the names in a key.
sub key_names ($panel) { return ((map { length $_->{label} } grep { defined $_->{label} && !$_->{direct} } @{ $panel->{series} }), map { length $_->[1] } @{ $panel->{levels} // [] }) }

# Columns and lines of a key that has the whole width.
sub key_grid ($panel, $size, %arg) {
	my @names   = key_names($panel) or return (0, 0);
	my $columns = max(1, min(scalar @names, int($arg{size}[0] * 0.95 / ((max(@names) + KEY_LETTERS) * $size * LETTER_PX))));
	return ($columns, int((@names + $columns - 1) / $columns));
}

sub draw_panel ($panel, $number, $block, %arg) {
	my ($x, $y) = @$panel{qw(x y)};
	my (@gp, @plot, @key);
	push @gp, axis('x', $x, !$arg{no_words}), axis('y', $y, 1), annotations($panel, %arg);
	push @gp, 'unset ylabel', 'set label ' . quote($y->{label}) . ' at graph 0, graph 1 left offset 0.3,0.55 noenhanced' if $arg{several};    # upright ones would overlap
	for my $series (@{ $panel->{series} }) {
		my $source = series_source($series, $block, \@gp);
		my $style  = "linestyle $number->{ $series->{as} }";
		my ($plot, $sample) = plot_of($series, $style, $x, $y);
		push @plot, "$source $plot notitle";
		# entries of their own: the points of a long log are too small to show their shape
		push @key, 'NaN ' . $sample . ' title ' . quote($series->{label}) if defined $series->{label} && !$series->{direct};
	}
	push @key, map { "NaN with boxes fillcolor rgb '$HEAT[ $_->[0] ]' title " . quote($_->[1]) } @{ $panel->{levels} // [] };
	return (@gp, "plot \\\n	" . join(", \\\n	", @key, @plot), 'unset label', 'unset arrow', $panel->{bands} ? 'unset object' : ());
}

sub axis ($which, $axis, $labels) {
	my @ticks = map { quote($labels ? $_->[1] =~ s/%/%%/gr : '') . ' ' . number($_->[0]) } @{ $axis->{ticks} };    # they are formats
	push @ticks, map { "'' " . number($_) . ' 1' } @{ $axis->{minor} // [] };
	my ($min, $max) = map { number($_) } @$axis{qw(min max)};
	return ($axis->{log} ? "set logscale $which" : "unset logscale $which",
		"set ${which}label " . quote($labels ? $axis->{label} : '') . ($which eq 'x' ? ' offset 0,0.5' : ''), "set ${which}range [$min:$max] noextend",
		"set ${which}tics (" . join(', ', @ticks) . ')');
}

sub number ($value) { return 0 + sprintf '%.10g', $value }

# Limits and words in the picture.
sub annotations ($panel, %arg) {
	my ($size) = $arg{font} =~ /,([0-9]+)\z/;
	my $letters = PLOT * $arg{size}[0] / ($size * LETTER_PX);
	my @gp;
	for my $rule (@{ $panel->{rules} // [] }) {
		my $at = number($rule->{at});
		my ($from, $to, $place) = $rule->{axis} eq 'y'
		    ? ("graph 0, first $at", "graph 1, first $at", ($rule->{side} // '') eq 'left' ? "graph 0, first $at left offset 0.8,0.6" : "graph 1, first $at right offset -0.5,0.6")
		    : ("first $at, graph 0", "first $at, graph 1", "first $at, graph 0.05 right offset -0.5,0");
		push @gp, "set arrow from $from to $to nohead dashtype 2 linewidth 1.2 linecolor '#606060'",
		    'set label ' . quote($rule->{label}) . " at $place front noenhanced textcolor '#404040' boxed";
	}
	for my $band (@{ $panel->{bands} // [] }) {
		my ($from, $to) = map { number($_) } @$band[0, 1];
		push @gp, "set object rectangle from first $from, graph 0 to first $to, graph 1 behind fillcolor rgb '#e8e8e8' fillstyle solid noborder",
		    'set label ' . quote($band->[2]) . " at first $from, graph 0.95 left noenhanced textcolor '#404040'";
	}
	for my $label (@{ $panel->{labels} // [] }) {
		my $text  = fitting($label, $letters) // next;
		my $color = defined $label->{on} ? contrast(style($label->{on})->{light}) : '#202020';
		my $box   = defined $label->{of} ? ' boxed' : '';
		push @gp, 'set label ' . quote($text) . sprintf " at %s,%s %s front noenhanced textcolor '%s'%s",
		    number($label->{x}), number($label->{y}), $label->{align} // 'center', $color, $box;
	}
	return @gp;
}

# Where the points of a series come from: columns of the data file, or a block in the script.
sub series_source ($series, $block, $gp) {
	if (my $from = $series->{columns}) {
		my $sum = join '+', map { "\$$_" } @{ $from->{sum} };
		$sum = "($sum)/$from->{scale}" if $from->{scale};
		$sum = "\$$from->{only} ? $sum : NaN" if $from->{only};
		return "data using 1:($sum)";
	}
	my $name = '$d' . ++$$block;
	push @$gp, "$name << EOD", (map { join ' ', map { number($_) } @$_ } @{ $series->{data} }), 'EOD';
	return $name;
}

# How a series is drawn, and its sample in the key.
sub plot_of ($series, $style, $x, $y) {
	my $kind = $series->{style};
	return ("with points $style pointsize size", "with points $style pointsize 1.1") if $kind eq 'points';
	return ("with linespoints $style pointsize 0.8", "with linespoints $style pointsize 0.8") if $kind eq 'marked';
	return ('using 1:2 with ' . ($kind eq 'steps' ? 'steps' : 'lines') . " $style", "with lines $style") if $kind eq 'line' || $kind eq 'steps';
	return ("using 1:2:3 with filledcurves $style dashtype solid fillstyle solid", "with boxes $style dashtype solid fillstyle solid") if $kind eq 'area';
	return ("using ((\$2+\$3)/2):1:2:3:(\$1-0.36):(\$1+0.36) with boxxyerror $style dashtype solid fillstyle solid border linecolor '#ffffff'",
		"with boxes $style dashtype solid fillstyle solid") if $kind eq 'bars';
	# a little larger; otherwise the page shows between neighbours
	return ('using (($1+$2)/2):(($3+$4)/2):1:($2+0.05*($2-$1)):3:($4*1.01):(heat($5)) with boxxyerror fillcolor rgb variable',
		'with boxes') if $kind eq 'cells';
	die "no such style of a series: $kind";
}

# Draws one chart into a file. Returns false if gnuplot is not installed.
sub draw_picture ($file, $chart, %how) {
	my $gnuplot = find_program('gnuplot') // return 0;
	my $work = File::Temp->newdir;
	put("$work/chart.gp", gnuplot_script([$chart], %how));
	my ($failed, $err) = run_gnuplot($gnuplot, "$work", 'chart.gp');
	die "gnuplot: $err\n" if $failed;
	my $bytes = slurp("$work/" . picture($chart, %how));
	put($file, $how{kind} eq 'svg' ? $bytes =~ s/[ \t]+$//mgr : $bytes);    # gnuplot ends lines with blanks
	return 1;
}

# Runs gnuplot on a script in a directory.  Returns its wait status and its error messages.
sub run_gnuplot ($gnuplot, $dir, $script) {
	my $err = File::Temp->new;
	my $pid = fork // die "fork: $!\n";
	if (!$pid) {
		if (chdir $dir and open STDOUT, '>', '/dev/null' and open STDERR, '>&', $err and open STDIN, '<', '/dev/null') {
			no warnings 'exec';
			exec { $gnuplot } 'gnuplot', "./$script";
		}
		require POSIX;
		POSIX::_exit(127);
	}
	waitpid $pid, 0;
	my $status = $?;
	local $/ = undef;
	seek $err, 0, 0;
	return ($status, <$err> // '');
}

1;
