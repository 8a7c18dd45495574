package Test::Prometheus::Dashboard;

=head1 NAME

Test::Prometheus::Dashboard - a dashboard of Grafana, checked, asked and drawn without Grafana

=head1 SYNOPSIS

    my $board = Test::Prometheus::Dashboard->read('examples/prometheus/dashboard.json');
    is_deeply [$board->problems], [], 'its structure';
    $board->ask($prom, $from, $to);                 # runs all queries of all panels
    is_deeply [$board->empty], [], 'each query has an answer';
    put('dashboard.html', $board->page);            # one picture for each panel

=head1 DESCRIPTION

C<ask> replaces the variables: all jobs, all instances, and C<range> (2 s) for C<$__rate_interval>. It dies when Prometheus
refuses a query. C<page> draws with the parts of accel-graph, for a person who looks at it once; Grafana draws stacks and
colours in its own way.

=cut

use v5.36;
use utf8;
use JSON::PP   ();
use List::Util qw(max uniq);
use Test::Util qw(slurp);
use Accel::Graph::Axis  qw(linear_axis share_axis time_axis);
use Accel::Graph::Html  qw(html_page);
use Accel::Graph::Style qw(heat_levels);

use constant { WIDTH => 24, DATASOURCE => '${datasource}', MOST_LINES => 12, STEP => 0.4 };

sub read ($class, $file, %arg) {
	return bless { doc => JSON::PP->new->utf8->decode(slurp($file)), range => $arg{range} // '2s' }, $class;
}

sub panels ($self) { return grep { $_->{type} ne 'row' } @{ $self->{doc}{panels} } }

# ---------------------------------------------------------------- structure

sub problems ($self) {
	my $doc = $self->{doc};
	my @ids = map { $_->{id} } @{ $doc->{panels} };
	return (
		@ids == uniq(@ids) ? () : 'two panels have one id',
		$doc->{schemaVersion} >= 38 ? () : 'the schema is older than Grafana 10',
		map({ my $p = $_; map { "$p->{title}: $_" } _panel($p) } $self->panels),
		map({ _uid($_) ? () : "annotation $_->{name}: no data source" } @{ $doc->{annotations}{list} }),
		map({ $_->{type} eq 'datasource' || _uid($_) ? () : "variable $_->{name}: no data source" } @{ $doc->{templating}{list} }),
		_overlaps(@{ $doc->{panels} }),
	);
}

sub _uid ($what) { return ($what->{datasource}{uid} // '') eq DATASOURCE && $what->{datasource}{type} eq 'prometheus' }

sub _panel ($p) {
	my $defaults = $p->{fieldConfig}{defaults};
	my @refs = map { $_->{refId} } @{ $p->{targets} };
	return (
		_uid($p) ? () : 'no data source', @refs ? () : 'no query', @refs == uniq(@refs) ? () : 'two queries have one name',
		map({ (_uid($_) ? () : 'a query without a data source'), ($_->{expr} // '') =~ /\S/ ? () : 'a query without text', defined $_->{legendFormat} ? () : 'no legend' } @{ $p->{targets} }),
		map({ ($defaults->{$_} // '') ne '' ? () : "no $_" } qw(unit noValue)), defined $p->{description} ? () : 'no description',
		# A range in a query is that of the resolution, or that of a rule.
		map({ $_->{expr} =~ /\[(?!\$__rate_interval\])/ ? 'a range that does not fit other resolutions' : () } @{ $p->{targets} }),
	);
}

sub _overlaps (@panels) {
	my (%taken, @wrong);
	for my $p (@panels) {
		my ($x, $y, $w, $h) = @{ $p->{gridPos} }{qw(x y w h)};
		push @wrong, "$p->{title}: outside of the grid" if $x < 0 || $x + $w > WIDTH || $w < 1 || $h < 1;
		for my $place (map { my $row = $_; map { "$_ $row" } $x .. $x + $w - 1 } $y .. $y + $h - 1) {
			push @wrong, "$p->{title} is on $taken{$place}" if $taken{$place};
			$taken{$place} = $p->{title};
		}
	}
	return uniq(@wrong);
}

# ---------------------------------------------------------------- queries

sub _expr ($self, $expr) {
	my %is = ('$job' => '.*', '$instance' => '.*', '$__rate_interval' => $self->{range});
	return $expr =~ s/(\$\w+)/$is{$1} \/\/ die "$1: no such variable\n"/ger;
}

sub ask ($self, $prom, $from, $to) {
	@$self{qw(from to)} = ($from, $to);
	for my $p ($self->panels) {
		$self->{got}{ $p->{id} } = [map { my $t = $_; [map { { name => _legend($t, $_->{labels}), %$_ } } $prom->query_range($self->_expr($t->{expr}), $from, $to, STEP)] } @{ $p->{targets} }];
	}
	$prom->query($self->_expr($_->{expr})) for @{ $self->{doc}{annotations}{list} };
	return;
}

sub _legend ($target, $labels) {
	my $name = $target->{legendFormat} =~ s/\{\{(\w+)\}\}/$labels->{$1} \/\/ ''/ger;
	return $name ne '' ? $name : join ', ', map { "$_ $labels->{$_}" } grep { $_ ne '__name__' } sort keys %$labels;
}

# Queries that nothing answered, as "panel: query".
sub empty ($self) {
	return map { my $p = $_; map { @{ $self->{got}{ $p->{id} }[$_] } ? () : "$p->{title}: $p->{targets}[$_]{expr}" } 0 .. $#{ $p->{targets} } } $self->panels;
}

# ---------------------------------------------------------------- pictures

sub page ($self) {
	my ($row, @charts) = ('');
	for my $p (@{ $self->{doc}{panels} }) {
		$row = $p->{title} if $p->{type} eq 'row';
		push @charts, $self->_chart($p, $row) if $p->{type} ne 'row';
	}
	my $page = html_page({ name => $self->{doc}{title} }, \@charts, version => 'of the tests', time => $self->{to});
	utf8::encode($page);
	return $page;
}

sub _chart ($self, $p, $row) {
	my @rows = map { @$_ } @{ $self->{got}{ $p->{id} } };
	my $span = $self->{to} - $self->{from};
	my $x = linear_axis('seconds', $span, exact => 1);
	my @panel = $p->{type} eq 'table' ? () : $p->{type} eq 'heatmap' ? $self->_heat($x, @rows) : $self->_lines($p, $x, @rows);
	my @figures = map { my @v = map { $_->[1] } grep { $_->[1] eq $_->[1] + 0 || $_->[1] !~ /nan/i } @{ $_->{values} }; [$_->{name}, map { sprintf '%.4g', $_ // 0 } $v[-1], max(@v)] } @rows;
	return { name => $p->{title}, title => "$row: $p->{title} ($p->{fieldConfig}{defaults}{unit})", alt => $p->{description}, panels => \@panel,
		table => { head => ['', 'last', 'most'], rows => [$p->{type} eq 'heatmap' ? () : @figures] } };
}

sub _lines ($self, $p, $x, @rows) {
	my $unit = $p->{fieldConfig}{defaults}{unit};
	my $scale = $unit eq 's' ? 1000 : 1;
	my @series = map { [map { [$_->[0] - $self->{from}, $_->[1] * $scale] } grep { $_->[1] !~ /nan|inf/i } @{ $_->{values} }] } @rows;
	my $most = max(0, map { $_->[1] } map { @$_ } @series);
	my $y = $unit eq 's' ? time_axis('UNIT', $most) : $unit eq 'percentunit' && $most <= 1 ? share_axis('') : linear_axis($unit, $most);
	my @shown = grep { @{ $series[$_] } } 0 .. $#rows;
	splice @shown, MOST_LINES if @shown > MOST_LINES;
	return { x => $x, y => $y, series => [map { { style => 'line', as => $_ % 8, label => $rows[$_]{name}, data => $series[$_] } } @shown] };
}

# A row of cells for each bucket; the series of Prometheus add up from below.
sub _heat ($self, $x, @rows) {
	my @le = sort { ($a->{labels}{le} =~ s/\+//r) <=> ($b->{labels}{le} =~ s/\+//r) } @rows;
	my %below;
	my @cells;
	for my $i (0 .. $#le) {
		for my $v (@{ $le[$i]{values} }) {
			my $n = $v->[1] - ($below{ $v->[0] } // 0);
			$below{ $v->[0] } = $v->[1];
			push @cells, [$v->[0] - $self->{from}, $i, int($n * 10 + 0.5)] if $n > 0.05;
		}
	}
	my ($level, $levels) = heat_levels(max(1, map { $_->[2] } @cells));
	my %y = (label => 'at most', min => 0, max => $#le + 1, ticks => [map { [$_ + 0.5, $le[$_]{labels}{le} . ' s'] } grep { $_ % 3 == 0 } 0 .. $#le]);
	return { x => $x, y => \%y, levels => $levels,
		series => [{ style => 'cells', as => 0, data => [map { [$_->[0] - STEP / 2, $_->[0] + STEP / 2, $_->[1], $_->[1] + 1, $level->($_->[2])] } @cells] }] };
}

1;
