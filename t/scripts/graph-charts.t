# The charts of accel-graph: axes, marks, limits, what each picture shows, as PNG, SVG and text.
use v5.36;
use utf8;
use Test::More;
use Test::Timing qw(timing_lines full_model);
use Test::Util   qw(need_program put slurp);
use Cwd          qw(abs_path);
use File::Temp   ();
use FindBin      ();
use lib "$FindBin::Bin/../../scripts/lib";
use Accel::Graph::Ascii   qw(ascii);
use Accel::Graph::Axis    qw(duration linear_axis time_axis log_time_axis tail_axis position);
use Accel::Graph::Charts  qw(charts chart_names);
use Accel::Graph::Gnuplot qw(gnuplot_script picture run_gnuplot);
use Accel::Graph::Labels  qw(direct_labels);
use Accel::Graph::Style   qw(style @STACK @HEAT heat_levels);
use Accel::Graph::Thin    qw(with_points);

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output);
my $gnuplot = need_program('gnuplot', 'gnuplot-nox');
my $script  = abs_path("$FindBin::Bin/../../scripts/accel-graph");
my $dir     = File::Temp->newdir;
chdir $dir or die "chdir: $!";
put('cold.log', join "\n", timing_lines(500), '');
my $EVIL  = "'; system('touch pwned') #%s\"\\\n";
my $model = full_model('cold.log', 'cold', $dir);
my %chart = map { $_->{id} => $_ } charts($model);

sub brightness ($color) { my ($r, $g, $b) = map { hex } $color =~ /([0-9a-f]{2})/g; return (0.3 * $r + 0.59 * $g + 0.11 * $b) / 255 }
sub series_of ($id, $panel = 0) { return map { $_->{as} } @{ $chart{$id}{panels}[$panel]{series} } }

# Runs accel-graph; returns its status and its words.
sub graph (@args) {
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDOUT, '>', 'out' or die;
		open STDERR, '>&', \*STDOUT or die;
		exec $^X, $script, @args or die;
	}
	waitpid $pid, 0;
	return ($? >> 8, slurp('out'));
}

subtest 'words and axes' => sub {
	is_deeply [map { duration($_) } 0, 0.02, 0.25, 12.3456, 999.4, 1279, 61_000, 654_321], ['0 ms', '20 µs', '0.25 ms', '12.3 ms', '999 ms', '1.28 s', '61 s', '654 s'], 'durations';
	is_deeply [map { time_axis('UNIT', $_)->{label} } 0.5, 9_000, 30_000], ['µs', 'ms', 's'], 'the unit follows the range';
	is_deeply [map { $_->[1] } @{ time_axis('UNIT', 30_000)->{ticks} }], [0, 5, 10, 15, 20, 25, 30], 'and 30000 ms are 30 s';
	is_deeply [map { $_->[1] } @{ log_time_axis('', 0.5, 3_000)->{ticks} }], ['1 ms', '10 ms', '100 ms', '1 s'], 'decades';
	is_deeply [map { $_->[1] } @{ log_time_axis('', 6, 80)->{ticks} }], ['5 ms', '10 ms', '20 ms', '50 ms', '100 ms'], 'and what is between them on a short axis';
	is_deeply [map { $_->[1] } @{ tail_axis('', 5_000)->{ticks} }], ['0 %', '50 %', '90 %', '99 %', '99.9 %'], 'nines, as far as there are requests';
	my $tail = tail_axis('', 1e9);
	is sprintf('%.6f', position($tail, 1000) - position($tail, 100)), sprintf('%.6f', position($tail, 100) - position($tail, 10)), 'each nine is as wide as the last one';
	for my $odd (0, 1e-9, 1e15, 1e300) {
		for my $axis (time_axis('', $odd), log_time_axis('', $odd, $odd)) {
			ok $axis->{max} > $axis->{min} && @{ $axis->{ticks} } > 1 && @{ $axis->{ticks} } < 40, "a range up to $odd ms";
		}
	}
};

subtest 'marks and colours' => sub {
	my @pairs = ((map { [@STACK[ $_ - 1, $_ ]] } 1 .. $#STACK), [qw(stat read)], [qw(read write)], [qw(read other)], [qw(stat other)]);
	for my $pair (@pairs) {    # also those that meet where nothing waited
		my ($below, $above) = map { style($_) } @$pair;
		cmp_ok abs(brightness($above->{$_}) - brightness($below->{$_})), '>', 0.19, "$pair->[1] upon $pair->[0]: brightness ($_)" for qw(light dark);
	}
	my %mark = map { style($_)->{mark} => 1 } @STACK;
	is keys %mark, @STACK, 'each stage has a mark of its own';
	my @heat = map { brightness($_) } @HEAT;
	ok !(grep { $heat[ $_ - 1 ] - $heat[$_] < 0.1 } 1 .. $#heat), 'the heat map gets darker in steps that can be seen in grey';
	for my $most (1, 2, 7, 1000, 10**7) {
		my ($of, $levels) = heat_levels($most);
		is $of->($most), $levels->[-1][0], "heat: $most is in the last level";
		is_deeply [map { $_->[0] } @$levels], [sort { $a <=> $b } map { $_->[0] } @$levels], 'levels ascend';
	}
};

subtest 'what the charts show' => sub {
	is_deeply [sort keys %chart], [sort '', grep { $_ ne 'stages' } chart_names()], 'every chart can be drawn';
	is_deeply [series_of('')], [qw(hot read read-queue stat stat-queue)], 'all stages: the highest first; what is too short to be seen is left out';
	my $tall = (charts($model, only => ['stages'], ymax => 200))[0];
	is_deeply [map { $_->{as} } @{ $tall->{panels}[0]{series} }], [qw(hot write read read-queue stat stat-queue)], 'unless the axis ends below';
	is_deeply [map { scalar @{ $_->{columns}{sum} } } @{ $tall->{panels}[0]{series} }], [1, 6, 4, 3, 2, 1], 'each upon those below';
	is_deeply [map { $_->{columns}{only} } @{ $chart{read}{panels}[0]{series} }], ['16 == 1', '16 != 1'], 'hot and cold ones are separate';
	is_deeply [series_of('breakdown')], [qw(stat-queue stat read-queue read handover write other)], 'every stage in the breakdown';
	like $chart{breakdown}{title}, qr/cold requests/, 'which is about the cold ones';
	for my $bar (0 .. 3) {
		my @parts = map { grep { $_->[0] == $bar } @{ $_->{data} } } @{ $chart{breakdown}{panels}[0]{series} };
		is sprintf('%.6f', $parts[-1][2]), '1.000000', "bar $bar: parts make a whole";
	}
	is_deeply [series_of('percentiles')], [qw(all cold hot)], 'curves of all, cold and hot requests';
	my ($one) = charts(bless({ %$model, hot => 0, cold => 500 }, ref $model), only => ['percentiles']);
	is_deeply [map { $_->{as} } @{ $one->{panels}[0]{series} }], ['all'], '... one if all are cold';
	my @outlier = ([0, 0, 0.01], @{ $model->{stages}{total}{cold}{curve} }[1 .. 16]);
	my $with = { %{ $model->{stages} }, total => { cold => { %{ $model->{stages}{total}{cold} }, curve => \@outlier } } };
	my ($steady) = charts(bless({ %$model, stages => { %$with, total => { %{ $with->{total} }, all => $with->{total}{cold} } }, hot => 0, cold => 500 }, ref $model), only => ['percentiles']);
	cmp_ok $steady->{panels}[0]{y}{min}, '>', 0.1, 'one fast request does not stretch the axis';
	my ($cold) = grep { $_->{as} eq 'cold' } @{ $chart{percentiles}{panels}[0]{series} };
	is $cold->{data}[-1][1], $model->{stages}{total}{cold}{max}, 'up to the slowest request';
	ok !(grep { $_->{data}[-1][1] != 1 } @{ $chart{cdf}{panels}[0]{series} }), 'a distribution ends at 100 %';
	my $cells = 0;
	$cells += $_->[1] + $_->[2] + $_->[3] + $_->[4] + $_->[5] for @{ $chart{heat}{table}{rows} };
	is $cells, 500, 'the cells of the heat map are all requests';
	is scalar(@{ $chart{lanes}{panels} }), 4, 'lanes: requests, processors, disks, queues';
	is_deeply [map { scalar @{ $_->{series} } } @{ $chart{sweep}{panels} }], [2, 2], 'sweep: throughput and p99, a line for each server';
	is_deeply $chart{sweep}{panels}[1]{labels}, [], '... and no label, since each cell has a p99';
	my %cut = (%{ $model->{sweep} }, series => [map { { %$_, points => [map { { %$_, p99_ms => undef } } @{ $_->{points} }] } } $model->{sweep}{series}[0]]);
	like +Accel::Graph::Charts::Sweep::sweep_chart({ give_up_ms => 4000 }, \%cut)->{panels}[1]{labels}[0]{text}, qr/no request ended/, 'a cell without a p99 is not left out without a word';
	for my $id (sort keys %chart) {
		my $c = $chart{$id};
		ok length $c->{title} && length $c->{alt} > 40 && @{ $c->{table}{rows} }, "$c->{name}: title, words instead of the picture, figures";
		is_deeply [grep { @$_ != @{ $c->{table}{head} } } @{ $c->{table}{rows} }], [], 'a figure for each column';
	}
};

subtest 'memory: a level from look to look' => sub {
	my @panels = @{ $chart{memory}{panels} };
	is_deeply [map { $_->{y}{label} } @panels], ['read again, MB/s', 'stalled', 'events per second', 'held, MB'], 'what was read again, who waited, what was gone, what is held';
	is_deeply $panels[0]{series}[0]{data}, [[0, 1], [10, 1], [10, 2], [20, 2], [20, 0], [30, 0], [30, 4], [40, 4]], '0 where the server had nothing to say';
	my %calm = (%$model, memory => { over_time => [{ from => 0, at => 10, again_mb_per_s => 3, stalled => 0, gone_per_s => 0, waits_per_s => 0 }] });
	my ($calm) = charts(bless(\%calm, ref $model), only => ['memory']);
	is scalar @{ $calm->{panels} }, 2, 'no lane for what never happened';
	for my $none ({ over_time => undef }, { over_time => [{ from => 900, at => 910 }] }, undef) {
		is_deeply [charts(bless({ %$model, memory => $none }, ref $model), only => ['memory'])], [], 'no chart without lines about the time of the requests';
	}
};

subtest 'names of lines' => sub {
	my ($x, $y) = map { linear_axis('', 100, exact => 1) } 1, 2;
	my $line = sub ($name, @points) { return { style => 'line', as => $name, label => $name, data => \@points } };
	my $placed = sub (@lines) { my %at = map { $_->{of} => $_ } direct_labels($x, $y, \@lines); return map { $at{ $_->{as} } } @lines };
	my ($low, $high) = $placed->($line->(low => [0, 10], [60, 10], [100, 40]), $line->(high => [0, 11], [60, 11], [100, 90]));
	ok $_->{x} > 62, "$_->{text}: where the lines are apart" for $low, $high;
	is sprintf('%.3f', $low->{y}), sprintf('%.3f', 10 + 30 * ($low->{x} - 60) / 40), 'on its line';
	my @same = $placed->(map { $line->($_ => [0, 50], [100, 50]) } 'a' .. 'e');
	my @x = sort { $a <=> $b } map { $_->{x} } @same;
	ok !(grep { $x[$_] - $x[ $_ - 1 ] < 3 } 1 .. $#x), 'names of equal lines are beside each other';
	my ($long) = $placed->($line->('n' x 500, [0, 0], [100, 100]));
	ok $long->{x} >= 0 && $long->{x} <= 100, 'a name wider than the plot has a place';
	is_deeply [direct_labels($x, $y, [$line->('empty')])], [], 'a line without points has no name';
	for my $c (grep { $_->{panels}[0]{labels} && $_->{id} =~ /\A(?:percentiles|cdf|compare|load)\z/ } charts($model)) {
		my ($panel) = @{ $c->{panels} };
		is scalar @{ $panel->{labels} }, scalar @{ $panel->{series} }, "$c->{name}: a name for each line";
		is_deeply [grep { $_->{x} < $panel->{x}{min} || $_->{x} > $panel->{x}{max} || $_->{y} < $panel->{y}{min} || $_->{y} > $panel->{y}{max} } @{ $panel->{labels} }], [], '... within the plot';
	}
};

subtest 'disks that a reader can tell apart' => sub {
	my $lanes = sub (%util) { return { %$model, lanes => [map { my $at = $_; +{ at => $at, us => 1, sy => 1, wa => 1, disks => { map { $_ => { mount => "/srv/a-long-name/of/$_", util => $util{$_}, queue => 1 } } keys %util } } } 1 .. 3] } };
	my $names = sub ($of) { return map { $_->{label} } @{ (charts(bless($of, ref $model), only => ['lanes']))[0]{panels}[2]{series} } };
	is_deeply [$names->($lanes->(sda => 90, sdb => 0.1, sdc => 3))], ["sda (\x{2026}-long-name/of/sda)", "sdc (\x{2026}-long-name/of/sdc)"], 'those that worked, by the end of a long mount point';
	is_deeply [map { length } $names->($lanes->('x' x 99, 0))], [24 + 9], 'one is always shown, with a name of bounded length';
};

subtest 'a key stands where it has room' => sub {
	my $script = sub ($name) {
		my %sweep = (%{ $model->{sweep} }, series => [map { { %$_, label => $_->{label} . $name } } @{ $model->{sweep}{series} }]);
		return gnuplot_script([charts(bless({ %$model, sweep => \%sweep }, ref $model), only => ['sweep'])], name => 'x', requests => 500, kind => 'png', size => [960, 600], font => 'Sans,13', title => 1);
	};
	my ($short, $long) = map { $script->($_) } '', ' a name that is as long as half of the picture';
	like $short, qr/^set key at graph 1, graph 1\.01 right/m, 'short names: beside the name of the panel';
	unlike $short, qr/^set key at screen/m, '... only';
	like $long, qr/^set key at screen 0\.5, .* maxcols 1 /m, 'long names: below all panels, one upon the other';
	my ($room_short, $room_long) = map { my ($last) = (/^set bmargin at screen ([0-9.]+)$/mg)[-1]; $last } $short, $long;
	cmp_ok $room_long - $room_short, '>', 2 * 13 * 1.6 / 600, '... for which there is room';
};

subtest 'where clients give up' => sub {
	my %has = map { my $c = $_; $c->{id} => scalar grep { @{ $_->{rules} // [] } } @{ $c->{panels} } } charts($model);
	is_deeply [grep { $has{$_} } sort keys %has], ['', qw(cdf compare heat lanes load percentiles sweep)], 'a line wherever the range reaches 4 s';
	my ($fast) = charts($model, only => ['stages'], ymax => 3000);
	is_deeply $fast->{panels}[0]{rules}, [], 'none below it';
	is $fast->{panels}[0]{y}{max}, 3000, '--ymax is the end of the axis';
	my ($other) = charts(bless({ %$model, 'give-up-ms' => 1500 }, ref $model), only => ['stages']);
	like $other->{panels}[0]{rules}[0]{label}, qr/^1\.5 s/, '--give-up moves it';
};

subtest 'pictures of the size and kind that was asked' => sub {
	my @all = charts(full_model('cold.log', 'evil', $dir, $EVIL));
	my %how = (name => 'evil', requests => 500, font => 'DejaVu Sans,10', title => 1);
	for my $kind ('png', 'svg') {
		my %this = (%how, kind => $kind, size => [640, 400]);
		put('evil.gp', gnuplot_script(\@all, %this));
		my ($status, $err) = run_gnuplot($gnuplot, "$dir", 'evil.gp');
		is $status, 0, "$kind: gnuplot reads the script" or diag $err;
		is $err, '', 'without a complaint';
		for my $picture (map { picture($_, %this) } @all) {
			my $bytes = slurp($picture);
			my @size  = $kind eq 'png' ? unpack('x16 N2', $bytes) : $bytes =~ /viewBox="0 0 (\d+) (\d+)"/;
			is_deeply \@size, [640, 400], $picture;
			cmp_ok length $bytes, '>', 3_000, 'and something is in it';
		}
	}
	ok !-e 'pwned', 'text from outside runs no command';
};

subtest 'text of at most 80 columns' => sub {
	for my $c (@{ with_points([charts($model)], $model->{data}{path}, 80, 40) }) {
		my @lines = split /\n/, ascii($c, 80);
		is_deeply [grep { length > 80 || /[^\x20-\x7e]/ } @lines], [], "$c->{name}: width and letters";
		cmp_ok scalar(@lines), '<', 45, 'fits a terminal, or nearly';
		my @drawn = grep { /\|.*\S/ } @lines;
		cmp_ok scalar(@drawn), '>', 4, 'and something is in it';
	}
	my ($breakdown) = charts($model, only => ['breakdown']);
	like ascii($breakdown, 80), qr/p45-p55: \d+ ms \|.* read \d+ %/, 'bars name their parts';
	my $far = bless { %$model, lanes => [{ at => 1, us => 1, sy => 1, wa => 1, disks => { sda => { mount => '/srv/' . 'd' x 40, util => 9, queue => 1 } } }] }, ref $model;
	like ascii(@{ with_points([charts($far, only => ['lanes'])], $model->{data}{path}, 80, 40) }, 80), qr/ sda \(\.\.\.d+\)/, 'what is left out of a name is three dots';
	ok !(grep { length > 40 } split /\n/, ascii($breakdown, 10)), 'a narrow terminal has 40';
};

subtest 'options' => sub {
	my ($status, $out) = graph('--chart', 'cdf,heat', '--chart', 'stages', '--size', '500x300', '--font', 'Sans,9', '--no-title', 'cold.log');
	is $status, 0, 'status' or diag $out;
	is_deeply [sort glob 'cold*.png'], [qw(cold-cdf.png cold-heat.png cold.png)], '--chart draws these only';
	my $gp = slurp('cold.gp');
	unlike $gp, qr/^set title/m, '--no-title';
	like $gp, qr/size 500,300 font 'Sans,9'/, '--size and --font';
	like slurp('cold.data'), qr/^# start\[s\] read-queue-wait\[ms\] read-time\[ms\] write-time\[ms\] /, 'the columns of 2007 come first';
	unlink glob 'cold*.png';
	is system('gnuplot cold.gp 2>/dev/null'), 0, 'the script left behind draws again';
	is scalar(() = glob 'cold*.png'), 3, 'all of it';
	($status, $out) = graph('--chart', 'stages', '--title', "Größe 'x'", 'cold.log');
	like slurp('cold.gp'), qr/set title 'Gr\xc3\xb6\xc3\x9fe ''x'''/, '--title';
	($status, $out) = graph(qw(--ascii --chart lanes cold.log));
	like $out, qr/^accel-graph: --chart lanes: there is no data for it$/m, 'a chart without data';
	for my $bad ([qw(--chart nothing)], [qw(--size 10x10)], [qw(--size 999999x10)], [qw(--size big)], ['--font', q(x'y,9)], [qw(--font Sans)], [qw(--title a --no-title)], ['--html', ''], [qw(--no-charts --html x)]) {
		($status, $out) = graph(@$bad, 'cold.log');
		is $status, 64, "@$bad";
		like $out, qr/^accel-graph: --/, 'and why';
	}
};

chdir '/';
done_testing;
