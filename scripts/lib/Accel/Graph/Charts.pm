package Accel::Graph::Charts;
# What a model says, as descriptions of charts.
# charts($model, only => [...], ymax => MS) returns descriptions. Accel::Graph::Gnuplot makes a script of
# them, Accel::Graph::Svg pictures for a page, Accel::Graph::Ascii text. Text is characters, no longer bytes.
#
#   chart   { id => end of the file's name, name, title, alt => one or two sentences, table => { head, rows }, panels => [...] }
#   panel   { x => axis, y => axis, series => [...], rules => [{ axis => 'x'|'y', at, label, side => 'left' or nothing }],
#             labels => [{ x, y, text, or texts (longest first) and room (part of the width), align, on => style of the bar below, of => name of the line }], levels => [[heat level, text], ...],
#             bands => [[from, to, name], ...] of x in grey, height => weight among several, shared_x => true if the panel below has the labels }
#   axis    { label, min, max, log => 0|1, ticks => [[value, text], ...], minor => [value, ...] }
#   series  { style, as => name of a colour and mark, label, direct => named by a label of the panel, and either data or columns }
#           columns => { sum => [column, ...], scale => divisor, only => "COLUMN == 1" } of the data file
#           points, line, marked, steps: data of [x, y]; area: [x, y from, y to];
#           bars: [y, x from, x to]; cells: [x from, x to, y from, y to, heat level]
#
# The facts that the modules below Accel::Graph::Charts take: name, requests, hot, cold, first, span, give_up_ms, ymax, class and kind (what
# percentiles are of: cold requests if there are cold and hot ones), column (name => number), max_ms (stage => most), table (of all stages),
# table_of (of some stages, for all, cold and hot requests).
use v5.36;
use utf8;

use Exporter qw(import);
use Accel::Graph::Style qw(@STACK text_of);
use Accel::Graph::Charts::Classic qw(stacked_chart stage_chart);
use Accel::Graph::Charts::Compare qw(compare_chart);
use Accel::Graph::Charts::Lanes   qw(lanes_chart);
use Accel::Graph::Charts::Memory  qw(memory_chart);
use Accel::Graph::Charts::Spread  qw(breakdown_chart curve_chart cdf_chart heat_chart percentile_table);
use Accel::Graph::Charts::Sweep   qw(sweep_chart load_chart);

our @EXPORT_OK = qw(charts chart_names);

# name => how to make it from the facts and the model; it returns nothing if the model has no data for it.  Charts are shown in this order.
my @CHARTS = (
	[stages            => sub ($f, $m) { $m->{data} ? stacked_chart($f) : () }],
	['read-queue-wait' => sub ($f, $m) { $m->{data} ? stage_chart($f, 'read-queue-wait', 'read-queue', $m->{accel} ? 'stat-queue' : ()) : () }],
	[read              => sub ($f, $m) { $m->{data} ? stage_chart($f, 'read', 'read', $m->{accel} ? 'stat' : ()) : () }],
	[write             => sub ($f, $m) { $m->{data} ? stage_chart($f, 'write', 'write', 'handover') : () }],
	[breakdown         => sub ($f, $m) { $f->{requests} ? breakdown_chart($f, $m->{breakdown}{ $f->{class} }, $f->{kind}) : () }],
	[percentiles       => sub ($f, $m) { $f->{requests} ? curve_chart($f, [ map { { as => $_, label => $_, of => $m->{stages}{total}{$_} } } grep { $m->{stages}{total}{$_} } $f->{cold} && $f->{hot} ? qw(all cold hot) : 'all' ]) : () }],
	[cdf               => sub ($f, $m) { $f->{requests} ? cdf_chart($f, { map { $_ => $m->{stages}{$_}{ $f->{class} } } keys %{ $m->{stages} } }, $f->{kind}) : () }],
	[heat              => sub ($f, $m) { $f->{requests} ? heat_chart($f, $m->{heat}) : () }],
	[compare           => sub ($f, $m) { $f->{requests} && $m->{before} ? compare_chart($f, $m->{before}, $m) : () }],
	[lanes             => sub ($f, $m) { $m->{data} && $m->{lanes} ? lanes_chart($f, $m->{lanes}) : () }],
	[memory            => sub ($f, $m) { $f->{requests} && $m->{memory} && $m->{memory}{over_time} ? memory_chart($f, $m->{memory}) : () }],
	[sweep             => sub ($f, $m) { $m->{sweep} ? sweep_chart($f, $m->{sweep}) : () }],
	[load              => sub ($f, $m) { $m->{load} ? load_chart($f, $m->{load}) : () }],
);

sub chart_names () { return map { $_->[0] } @CHARTS }

# The charts of a model that %opt names: only => [names], ymax => ms.
sub charts ($model, %opt) {
	my $facts = facts($model, %opt);
	my %only  = map { $_ => 1 } $opt{only} ? @{ $opt{only} } : chart_names();
	return map { $_->[1]->($facts, $model) } grep { $only{ $_->[0] } } @CHARTS;
}

sub facts ($model, %opt) {
	my %facts = (name => text_of($model->{name}), give_up_ms => $model->{'give-up-ms'} // 4000, ymax => $opt{ymax}, class => 'all', kind => 'requests',
		map { $_ => $model->{$_} // 0 } qw(requests hot cold first span));
	@facts{qw(class kind)} = ('cold', 'cold requests') if $facts{hot} && $model->class eq 'cold';
	my $stages = $model->{stages} // {};
	$facts{max_ms} = { map { $_ => $stages->{$_}{all}{max} } keys %$stages };
	my @shown = grep { my $of = $stages->{$_} && $stages->{$_}{ $facts{class} }; $of && ($of->{max} > 0 || $_ eq 'total') } @STACK, 'handshake', 'total';
	$facts{table} = percentile_table("stage, $facts{kind}", [ map { [$_, $stages->{$_}{ $facts{class} }] } @shown ]);
	$facts{table_of} = sub (@of) {
		return percentile_table('stage', [ map { my $s = $_; map { ["$s, $_", $stages->{$s}{$_}] } grep { $stages->{$s}{$_} } qw(all cold hot) } @of ]);
	};
	if (my $data = $model->{data}) {
		my @columns = map { s/\[\w+\]\z//r } @{ $data->{columns} };
		$facts{column} = { 'read-queue-wait-time' => 2, 'read-time' => 3, 'write-time' => 4, map { $columns[$_] => $_ + 1 } 4 .. $#columns };
		$facts{max_classic_ms} = { map { $_ => $data->{max_us}{$_} / 1000 } qw(read-queue-wait read write) };
	}
	return \%facts;
}

1;
