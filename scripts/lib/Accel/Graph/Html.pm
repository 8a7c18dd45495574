package Accel::Graph::Html;
# One page that holds everything: advice, facts, pictures and their figures.  It loads nothing and runs nothing.
use v5.36;
use utf8;

use Digest::SHA qw(sha256_base64);
use Exporter    qw(import);
use POSIX       qw(strftime);
use Accel::Graph::Axis  qw(count_text duration);
use Accel::Graph::Style qw(text_of);
use Accel::Graph::Svg   qw(svg svg_css escape);

our @EXPORT_OK = qw(html_page);

my $LIGHT = '--bg:#ffffff;--fg:#1d1d1d;--soft:#5a5a5a;--grid:#e3e3e3;--axis:#808080;--box:#f3f5f8;--edge:#0b5fa5;';
my $DARK  = '--bg:#15181c;--fg:#e6e6e6;--soft:#a8adb3;--grid:#343a41;--axis:#8a9199;--box:#20252b;--edge:#7fbfff;';

my $LAYOUT = <<'CSS';
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:16px;max-width:60rem;background:var(--bg);color:var(--fg);font:16px/1.5 "DejaVu Sans",Verdana,Arial,sans-serif}
h1{font-size:1.5rem;line-height:1.2;overflow-wrap:anywhere}
h2{font-size:1.05rem;line-height:1.3;margin:0 0 .4rem;overflow-wrap:anywhere}
.advice{padding:.8rem 1rem;background:var(--box);border-left:4px solid var(--edge);font-size:1.1rem;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:1rem 0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
nav ul{padding:0;list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem}
a{color:var(--edge)}
figure{margin:2.2rem 0 0}
svg{display:block;width:100%;max-width:40rem;height:auto;font:13px "DejaVu Sans",Verdana,Arial,sans-serif;fill:var(--fg)}
svg .tick{fill:var(--soft);font-size:12px}
svg .grid{stroke:var(--grid);stroke-width:.8;fill:none}
svg .axis{stroke:var(--axis);stroke-width:1;fill:none}
svg .rule{stroke:var(--soft);stroke-width:1;stroke-dasharray:5 4;fill:none}
svg .halo{paint-order:stroke;stroke:var(--bg);stroke-width:3;stroke-linejoin:round}
svg .bar{stroke:var(--bg);stroke-width:.8}
svg [class^="l-"]{stroke-width:1.6}
svg .mark{stroke-width:1}
svg .dots{stroke-width:2;stroke-linecap:round}
.figures{overflow-x:auto;margin-top:.6rem}
table{border-collapse:collapse;font-size:.82rem;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .7rem .15rem 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th:first-child,td:first-child{text-align:left}
thead th{color:var(--soft);font-weight:normal}
footer{margin-top:2.5rem;color:var(--soft);font-size:.85rem}
@media (max-width:40rem){body{padding:10px;font-size:15px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.3rem}}
@media print{@page{margin:15mm}body{max-width:none;padding:0;font-size:10pt}nav{display:none}figure{break-inside:avoid;margin-top:8mm}svg{max-width:112mm;max-height:190mm}.figures{overflow:visible}table{font-size:8pt;line-height:1.25}h2{break-after:avoid}}
CSS

# $charts have their points; %arg: version, time (of drawing, seconds since 1970).  Returns characters.
sub html_page ($model, $charts, %arg) {
	my ($vars, $classes) = svg_css();
	my $css   = ":root{$LIGHT$vars->{light}}\n\@media screen and (prefers-color-scheme:dark){:root{$DARK$vars->{dark}}}\n$classes\n$LAYOUT";
	my $name  = escape(text_of($arg{title} // $model->{name}));
	my $id    = 0;
	my @links = map { my $n = $id++; "<li><a href=\"#chart-$n\">" . escape($_->{name}) . '</a></li>' } @$charts;
	$id = 0;
	return join "\n", '<!DOCTYPE html>', '<html lang="en">', '<head>', '<meta charset="utf-8"/>',
	    q{<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-} . sha256_base64($css) . q{='; base-uri 'none'; form-action 'none'"/>},
	    '<meta name="viewport" content="width=device-width, initial-scale=1"/>', "<title>$name</title>", "<style>$css</style>", '</head>', '<body>',
	    "<h1>$name</h1>", defined $model->{advice} ? '<p class="advice">' . escape(text_of($model->{advice})) . '</p>' : (), facts_list($model),
	    @links > 1 ? ('<nav aria-label="charts"><ul>', @links, '</ul></nav>') : (), map({ figure($_, 'chart-' . $id++) } @$charts),
	    '<footer><p>' . escape("Drawn by accel-graph $arg{version}, " . strftime('%Y-%m-%d %H:%M UTC', gmtime $arg{time})) . '</p></footer>', '</body>', '</html>', '';
}

sub facts_list ($model) {
	my @facts;
	if ($model->{requests}) {
		my $told = defined $model->{hot} ? sprintf ' (%s cold, %s hot)', map { count_text($_) } @$model{qw(cold hot)} : '';
		push @facts, ['Requests', count_text($model->{requests}) . $told],
			['Time', sprintf($model->{span} < 100 ? '%.4g s from %s' : '%.0f s from %s', $model->{span}, strftime('%Y-%m-%d %H:%M:%S UTC', gmtime $model->{first}))];
		push @facts, ['Over ' . duration($model->{'give-up-ms'}), sprintf '%s, where clients give up', count_text($model->{over}{all} // 0)];
		push @facts, ['Cut', count_text($model->{cut}) . ', not sent to the end'] if $model->{cut};
		push @facts, ['Rejected lines', count_text($model->{rejected})] if $model->{rejected};
		push @facts, ['Logs', join ', ', map { text_of($_ eq '-' ? 'standard input' : $_) } @{ $model->{files} }];
		push @facts, ['Written by', join ', ', map { text_of($_) } sort keys %{ $model->{backends} // {} }] if %{ $model->{backends} // {} };
	}
	push @facts, machine_facts($model->{sweep}{machine}) if $model->{sweep};
	return join "\n", '<dl>', map({ '<dt>' . escape($_->[0]) . '</dt><dd>' . escape($_->[1]) . '</dd>' } @facts), '</dl>';
}

# Where a benchmark ran.  What drew the page is not a fact about a log, which may come from elsewhere.
sub machine_facts ($machine) {
	my %fact = map { $_ => text_of($machine->{$_}) } grep { defined $machine->{$_} && !ref $machine->{$_} } keys %{ $machine // {} };
	my ($system, $kernel, $cpu, $cores, $memory, $versions) = delete @fact{qw(system kernel cpu cores memory_mb versions)};
	my @parts = ($system // (), defined $kernel ? "Linux $kernel" : (), defined $cpu ? (defined $cores ? "$cores × $cpu" : $cpu) : defined $cores ? "$cores cores" : (),
		defined $memory ? "$memory MB of memory" : (), map { s/_/ /gr . " $fact{$_}" } sort keys %fact);
	return ((@parts ? ['Measured on', join ', ', @parts] : ()), defined $versions ? ['Programs', $versions] : ());
}

sub figure ($chart, $id) {
	return join "\n", "<figure id=\"$id\">", '<figcaption><h2>' . escape($chart->{title}) . '</h2></figcaption>', svg($chart, $id), table($chart->{table}, $chart->{name}), '</figure>';
}

sub table ($table, $name) {
	my ($first, @head) = map { escape($_) } @{ $table->{head} };
	my @rows = map { my ($what, @cells) = map { escape($_) } @$_; "<tr><td>$what</td>" . join('', map { "<td>$_</td>" } @cells) . '</tr>' } @{ $table->{rows} };
	return join "\n", '<div class="figures" tabindex="0" role="region" aria-label="' . escape("figures: $name") . '"><table>',
	    "<thead><tr><th scope=\"col\">$first</th>" . join('', map { "<th scope=\"col\">$_</th>" } @head) . '</tr></thead>', '<tbody>', @rows, '</tbody></table></div>';
}

1;
