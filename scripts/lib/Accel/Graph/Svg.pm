package Accel::Graph::Svg;
# Draws a chart as inline SVG for a web page.  Colours are CSS variables, so that one picture fits light and dark pages and print.
#
# The picture is 480 units wide with letters 13 units high: at the width of a telephone they stay legible.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max min);
use Accel::Graph::Axis  qw(position fitting);
use Accel::Graph::Style qw(style style_names contrast @HEAT @HEAT_DARK);

our @EXPORT_OK = qw(svg svg_css escape);

use constant {
	WIDTH => 480, LEFT => 62, RIGHT => 16, BOTTOM => 40, LINE => 17, LETTER => 6.7,
	PLOT_HEIGHT => 250, BAR => 40, PANEL_HEIGHT => 110, NAME_ROOM => 24, MARK => 2.1, SAMPLE => 22, MOST_MARKS => 3000,
};

# Text between tags or in a quoted attribute.
sub escape ($text) {
	$text =~ s/([&<>"'])/'&#' . ord($1) . ';'/ge;
	$text =~ s/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/\x{fffd}/g;    # no document may contain these
	return $text;
}

# The colours of light and dark, and how classes use them.
sub svg_css () {
	my %vars;
	for my $theme ('light', 'dark') {
		my @heat = $theme eq 'light' ? @HEAT : @HEAT_DARK;
		$vars{$theme} = join '', map({ my $c = style($_)->{$theme}; "--s-$_:$c;--on-$_:" . contrast($c) . ';' } style_names()),
		    map({ "--h$_:$heat[$_];" } 0 .. $#heat);
	}
	my $classes = join '', map({ ".f-$_\{fill:var(--s-$_);stroke:none\}.l-$_\{stroke:var(--s-$_);fill:none\}.on-$_\{fill:var(--on-$_)\}" } style_names()),
	    map({ ".h-$_\{fill:var(--h$_)\}" } 0 .. $#HEAT);
	return (\%vars, $classes);
}

# $id is unique in the page.
sub svg ($chart, $id) {
	my @panels = @{ $chart->{panels} };
	my ($top, @body) = (4);
	my @key = _key(\@panels, \$top);
	for my $panel (@panels) {
		my $bars   = grep { $_->{style} eq 'bars' } @{ $panel->{series} };
		my $height = $bars ? BAR * @{ $panel->{y}{ticks} } : @panels == 1 ? PLOT_HEIGHT : PANEL_HEIGHT * ($panel->{height} // 1);
		# Bars have words beside them.
		my $left   = $bars ? min(WIDTH / 2, 12 + LETTER * max(0, map { length $_->[1] } @{ $panel->{y}{ticks} })) : LEFT;
		my $last   = $panel == $panels[-1] || !$panel->{shared_x};
		push @body, _panel($panel, { left => $left, top => $top + NAME_ROOM, height => $height }, $last);
		$top += NAME_ROOM + $height + ($last ? BOTTOM : 0);
	}
	my ($title, $desc) = map { escape($_) } @$chart{qw(title alt)};
	return join "\n", sprintf('<svg viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d" xmlns="http://www.w3.org/2000/svg">', WIDTH, $top + 2, $id, $id),
	    "<title id=\"$id-t\">$title</title>", "<desc id=\"$id-d\">$desc</desc>", @key, @body, '</svg>';
}

# Samples and their labels in as many lines as they need.
sub _key ($panels, $top) {
	my @entries = map { my $p = $_; (map { [$_, undef] } grep { defined $_->{label} && !$_->{direct} } @{ $p->{series} }), map { [undef, $_] } @{ $p->{levels} // [] } } @$panels;
	my ($x, @out) = (LEFT);
	for my $entry (@entries) {
		my ($series, $level) = @$entry;
		my $label = $series ? $series->{label} : $level->[1];
		my $width = SAMPLE + 10 + LETTER * length $label;
		($x, $$top) = (LEFT, $$top + LINE) if $x > LEFT && $x + $width > WIDTH;
		my $y = $$top + 9;
		push @out, ($series ? _sample($series, $x, $y) : sprintf '<rect x="%.1f" y="%.1f" width="16" height="10" class="h-%d"/>', $x, $y - 5, $level->[0]),
		    sprintf '<text x="%.1f" y="%.1f">%s</text>', $x + SAMPLE, $y + 4.5, escape($label);
		$x += $width;
	}
	$$top += LINE if @entries;
	return @out;
}

sub _sample ($series, $x, $y) {
	my ($as, $kind) = @$series{qw(as style)};
	return sprintf '<rect x="%.1f" y="%.1f" width="16" height="10" class="f-%s"/>', $x, $y - 5, $as if $kind eq 'bars' || $kind eq 'area';
	return _marks([[$x + 8, $y]], $series, 3.4) if $kind eq 'points';
	return sprintf('<path d="M%.1f %.1fh18" class="l-%s"%s/>', $x, $y, $as, _dash($as)) . ($kind eq 'marked' ? _marks([[$x + 9, $y]], $series, 3) : '');
}

my @DASH = ('', '', ' stroke-dasharray="6 3"', ' stroke-dasharray="1.5 2.5"', ' stroke-dasharray="7 2.5 1.5 2.5"');
sub _dash ($as) { return $DASH[ style($as)->{dash} ] }

sub _panel ($panel, $box, $x_labels) {
	my ($x, $y) = @$panel{qw(x y)};
	@$box{qw(width bottom right)} = (WIDTH - RIGHT - $box->{left}, $box->{top} + $box->{height}, WIDTH - RIGHT);
	my $at_x = sub ($v) { $box->{left} + $box->{width} * position($x, $v) };
	my $at_y = sub ($v) { $box->{bottom} - $box->{height} * position($y, $v) };
	my @out;
	for my $tick (@{ $y->{ticks} }) {
		my $v = $at_y->($tick->[0]);
		push @out, sprintf('<path class="grid" d="M%.1f %.1fH%.1f"/>', $box->{left}, $v, $box->{right}) unless $panel->{bare};
		push @out, sprintf('<text class="tick" text-anchor="end" x="%.1f" y="%.1f">%s</text>', $box->{left} - 5, $v + 4, escape($tick->[1]));
	}
	my $free = -1e9;    # labels of the x axis that would overlap are left out
	for my $tick (@{ $x->{ticks} }) {
		my $v = $at_x->($tick->[0]);
		push @out, sprintf '<path class="grid" d="M%.1f %dV%.1f"/>', $v, $box->{top}, $box->{bottom};
		my $half = LETTER * length($tick->[1]) / 2;
		next if !$x_labels || $v - $half < $free;
		$free = $v + $half + 3;
		my ($anchor, $place) = $v + $half > WIDTH ? ('end', WIDTH) : ('middle', $v);
		push @out, sprintf '<text class="tick" text-anchor="%s" x="%.1f" y="%.1f">%s</text>', $anchor, $place, $box->{bottom} + 15, escape($tick->[1]);
	}
	push @out, map { _series($_, $at_x, $at_y) } @{ $panel->{series} };
	push @out, _annotations($panel, $box, $at_x, $at_y);
	push @out, sprintf('<path class="axis" d="M%.1f %.1fV%.1fH%.1f"/>', $box->{left}, $box->{top}, $box->{bottom}, $box->{right});
	push @out, sprintf('<text text-anchor="middle" x="%.1f" y="%.1f">%s</text>', ($box->{left} + $box->{right}) / 2, $box->{bottom} + 33, escape($x->{label})) if $x_labels;
	push @out, sprintf('<text x="2" y="%.1f">%s</text>', $box->{top} - 8, escape($y->{label})) if $y->{label} ne '';
	return @out;
}

sub _annotations ($panel, $box, $at_x, $at_y) {
	my @out;
	for my $rule (@{ $panel->{rules} // [] }) {
		my $v = $rule->{axis} eq 'y' ? $at_y->($rule->{at}) : $at_x->($rule->{at});
		my ($path, $tx, $ty) = $rule->{axis} eq 'y' ? (sprintf('M%.1f %.1fH%.1f', $box->{left}, $v, $box->{right}), $box->{right}, $v - 4)
		    : (sprintf('M%.1f %dV%.1f', $v, $box->{top}, $box->{bottom}), $v - 4, $box->{bottom} - 6);
		my $anchor = 'end';
		($tx, $anchor) = ($box->{left} + 5, 'start') if ($rule->{side} // '') eq 'left';
		push @out, "<path class=\"rule\" d=\"$path\"/>", sprintf '<text class="halo" text-anchor="%s" x="%.1f" y="%.1f">%s</text>', $anchor, $tx, $ty, escape($rule->{label});
	}
	for my $label (@{ $panel->{labels} // [] }) {
		my $text = fitting($label, $box->{width} / LETTER) // next;
		my $class = defined $label->{on} ? "on-$label->{on}" : 'halo';
		push @out, sprintf '<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>', $class,
		    { left => 'start', right => 'end', center => 'middle' }->{ $label->{align} // 'center' }, $at_x->($label->{x}), $at_y->($label->{y}) + 4, escape($text);
	}
	return @out;
}

sub _series ($series, $at_x, $at_y) {
	my ($kind, $as, $data) = @$series{qw(style as data)};
	return unless @$data;
	return map {
		my ($y, $x0, $x1) = @$_;
		my ($left, $right) = ($at_x->($x0), $at_x->($x1));
		my ($top, $bottom) = ($at_y->($y + 0.36), $at_y->($y - 0.36));
		sprintf '<rect class="bar f-%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>', $as, $left, $top, $right - $left, $bottom - $top;
	} @$data if $kind eq 'bars';
	return map {
		my ($x0, $x1, $y0, $y1, $level) = @$_;
		my ($left, $right, $bottom, $top) = ($at_x->($x0), $at_x->($x1), $at_y->($y0), $at_y->($y1));
		sprintf '<rect class="h-%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>', $level, $left, $top, $right - $left + 0.2, $bottom - $top + 0.2;
	} @$data if $kind eq 'cells';
	if ($kind eq 'area') {
		my @there = map { sprintf '%.1f %.1f', $at_x->($_->[0]), $at_y->($_->[2]) } @$data;
		my @back  = map { sprintf '%.1f %.1f', $at_x->($_->[0]), $at_y->($_->[1]) } reverse @$data;
		return '<path class="f-' . $as . '" d="M' . join('L', @there, @back) . 'Z"/>';
	}
	my @points = map { [$at_x->($_->[0]), $at_y->($_->[1])] } grep { defined $_->[1] } @$data;
	return _marks(\@points, $series, MARK) if $kind eq 'points';
	my $path = $kind eq 'steps'
	    ? sprintf('M%.1f %.1f', @{ $points[0] }) . join('', map { sprintf 'H%.1fV%.1f', @$_ } @points[1 .. $#points])
	    : 'M' . join('L', map { sprintf '%.1f %.1f', @$_ } @points);
	return ("<path class=\"l-$as\"" . _dash($as) . " d=\"$path\"/>", $kind eq 'marked' ? _marks(\@points, $series, 3) : ());
}

# All marks of a series in one path.  If there are so many that their shape cannot be seen, they are dots.
sub _marks ($points, $series, $r) {
	return "<path class=\"dots l-$series->{as}\" d=\"" . join('', map { sprintf 'M%.0f %.0fh0', @$_ } @$points) . '"/>' if @$points > MOST_MARKS;
	my $mark = style($series->{as})->{mark};
	my $open = $mark =~ s/\Aopen-//;
	my $d    = 2 * $r;
	my $form = {
		circle  => sprintf('m%.1f 0a%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0z', -$r, $r, $r, $d, $r, $r, -$d),
		square  => sprintf('m%.1f %.1fh%.1fv%.1fh%.1fz', -$r, -$r, $d, $d, -$d),
		up      => sprintf('m0 %.1fl%.1f %.1fh%.1fz', -$r * 1.2, $r * 1.1, $r * 2.1, -$r * 2.2),
		down    => sprintf('m0 %.1fl%.1f %.1fh%.1fz', $r * 1.2, $r * 1.1, -$r * 2.1, -$r * 2.2),
		diamond => sprintf('m0 %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz', -$r * 1.4, $r * 1.2, $r * 1.4, -$r * 1.2, $r * 1.4, -$r * 1.2, -$r * 1.4),
		cross   => sprintf('m%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f', -$r, -$r, $d, $d, -$d, -$d, $d),
	}->{$mark};
	my $class = $open || $mark eq 'cross' ? 'mark l' : 'f';
	return "<path class=\"$class-$series->{as}\" d=\"" . join('', map { sprintf 'M%.1f %.1f%s', @$_, $form } @$points) . '"/>';
}

1;
