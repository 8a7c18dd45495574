package Test::Prometheus::Dashboard;
# A dashboard of Grafana, checked, asked and drawn without Grafana.
#
#     my $board = Test::Prometheus::Dashboard->read('examples/prometheus/dashboard.json');
#     is_deeply [$board->problems], [], 'its structure';
#     $board->ask($prom, $from, $to);                 # runs all queries of all panels
#     is_deeply [$board->empty], [], 'each query has an answer';
#     Test::Prometheus::Picture::draw($board, 'dashboard.png');
#
# `ask` replaces the variables: all jobs, all instances, and `range` (2 s) for `$__rate_interval`. It dies when Prometheus
# refuses a query. `problems` compares with what Grafana documents as its JSON model, and with what this dashboard is to be.
use v5.36;
use utf8;
use JSON::PP   ();
use List::Util qw(uniq);
use Test::Prometheus::Picture ();
use Test::Util qw(slurp);

use constant { WIDTH => 24, DATASOURCE => '${datasource}' };

sub read ($class, $file, %arg) {
	return bless { doc => JSON::PP->new->utf8->decode(slurp($file)), range => $arg{range} // '2s' }, $class;
}

sub panels ($self) { return grep { $_->{type} ne 'row' } @{ $self->{doc}{panels} } }

# The rows of the dashboard: { title, panels }.
sub rows ($self) {
	my @rows;
	for my $p (@{ $self->{doc}{panels} }) {
		if   ($p->{type} eq 'row') { push @rows, { title => $p->{title}, panels => [] } }
		else                       { push @{ $rows[-1]{panels} }, $p }
	}
	return @rows;
}

# The answers to the queries of a panel: rows { name, labels, values }.
sub answers ($self, $p) { return map { @$_ } @{ $self->{got}{ $p->{id} } } }

# ---------------------------------------------------------------- structure

sub problems ($self) {
	my $doc = $self->{doc};
	my @ids = map { $_->{id} } @{ $doc->{panels} };
	return (
		@ids == uniq(@ids) ? () : 'two panels have one id', (grep { !/^[1-9][0-9]*$/ } @ids) ? 'an id is not a number' : (),
		$doc->{schemaVersion} >= 38 ? () : 'the schema is older than Grafana 10',
		($doc->{uid} // '') =~ /^[\w-]{1,40}$/ ? () : 'no uid of 1 to 40 letters', defined $doc->{id} ? 'an id, which only the data base gives' : (),
		map({ ($doc->{time}{$_} // '') =~ /^now/ ? () : "no time $_" } qw(from to)),
		$doc->{panels}[0]{type} eq 'row' ? () : 'a panel before the first row', _variables($doc),
		map({ my $p = $_; map { "$p->{title}: $_" } _panel($p) } $self->panels),
		map({ _uid($_) ? () : "annotation $_->{name}: no data source" } @{ $doc->{annotations}{list} }),
		map({ $_->{type} eq 'datasource' || _uid($_) ? () : "variable $_->{name}: no data source" } @{ $doc->{templating}{list} }),
		_overlaps(@{ $doc->{panels} }),
	);
}

# One variable chooses the data source, the others ask it.  Each name that a string has is one of them, or one of Grafana.
sub _variables ($doc) {
	my @list = @{ $doc->{templating}{list} };
	my %known = map { $_->{name} => 1 } @list, { name => '__rate_interval' };
	my @used = uniq(JSON::PP->new->encode([@$doc{qw(panels annotations)}, map { $_->{query} } @list]) =~ /\$\{?(\w+)/g);
	return (
		(grep { $_->{name} eq 'datasource' && $_->{type} eq 'datasource' && $_->{query} eq 'prometheus' } @list) == 1 ? () : 'no variable for the data source',
		(map { "\$$_: no such variable" } grep { !$known{$_} } @used), (map { "\$$_->{name} is not used" } grep { my $name = $_->{name}; !grep { $_ eq $name } @used } @list),
	);
}

sub _uid ($what) { return ($what->{datasource}{uid} // '') eq DATASOURCE && $what->{datasource}{type} eq 'prometheus' }

sub _panel ($p) {
	my $defaults = $p->{fieldConfig}{defaults};
	my @refs = map { $_->{refId} } @{ $p->{targets} };
	return (
		_type($p), (grep { $_ eq ($defaults->{unit} // '') } Test::Prometheus::Picture::units()) ? () : 'a unit that is not known here',
		_uid($p) ? () : 'no data source', @refs ? () : 'no query', @refs == uniq(@refs) ? () : 'two queries have one name',
		map({ (_uid($_) ? () : 'a query without a data source'), ($_->{expr} // '') =~ /\S/ ? () : 'a query without text', defined $_->{legendFormat} ? () : 'no legend' } @{ $p->{targets} }),
		map({ ($defaults->{$_} // '') ne '' ? () : "no $_" } qw(unit noValue)), defined $p->{description} ? () : 'no description',
		# Behind one web server both daemons are the same instance.
		map({ $p->{type} ne 'timeseries' || $_->{expr} !~ /\(fcgi_stat_\)\?/ || $_->{expr} =~ /^max by \(stage\)/ || $_->{legendFormat} =~ /\{\{job\}\}/ ? () : 'a legend that does not tell the daemons apart' } @{ $p->{targets} }),
		# A range in a query is that of the resolution, or that of a rule.
		map({ $_->{expr} =~ /\[(?!\$__rate_interval\])/ ? 'a range that does not fit other resolutions' : () } @{ $p->{targets} }),
	);
}

# What each kind of panel must have to look right.
sub _type ($p) {
	my ($options, $custom, $steps) = ($p->{options} // {}, $p->{fieldConfig}{defaults}{custom}, $p->{fieldConfig}{defaults}{thresholds}{steps});
	my %bad = (
		stat       => !$options->{reduceOptions}{calcs} || !$steps || defined $steps->[0]{value} || (grep { !defined $_->{value} } @$steps) > 1,
		timeseries => !$custom->{drawStyle} || ($custom->{stacking}{mode} // '') !~ /^(?:none|normal)$/ || !$options->{legend},
		heatmap    => !defined $options->{calculate} || $options->{calculate} || grep({ ($_->{format} // '') ne 'heatmap' || $_->{legendFormat} ne '{{le}}' } @{ $p->{targets} }) > 0,
		table      => grep({ !$_->{instant} || ($_->{format} // '') ne 'table' } @{ $p->{targets} }) > 0,
	);
	return 'a kind of panel that is not known here' if !exists $bad{ $p->{type} };
	return $bad{ $p->{type} } ? "not what Grafana needs for $p->{type}" : ();
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

sub ask ($self, $prom, $from, $to, $step = 0.4) {
	@$self{qw(from to step)} = ($from, $to, $step);
	for my $p ($self->panels) {
		$self->{got}{ $p->{id} } = [map { my $t = $_; [map { { name => _legend($t, $_->{labels}), %$_ } } $prom->query_range($self->_expr($t->{expr}), $from, $to, $step)] } @{ $p->{targets} }];
	}
	$prom->query($self->_expr($_->{expr})) for @{ $self->{doc}{annotations}{list} };
	return;
}

sub _legend ($target, $labels) {
	my $name = $target->{legendFormat} =~ s/\{\{(\w+)\}\}/$labels->{$1} \/\/ ''/ger;
	return $name ne '' ? $name : join ', ', map { "$_ $labels->{$_}" } grep { $_ ne '__name__' } sort keys %$labels;
}

# Queries without an answer, as "panel: query".
sub empty ($self) {
	return map { my $p = $_; map { @{ $self->{got}{ $p->{id} }[$_] } ? () : "$p->{title}: $p->{targets}[$_]{expr}" } 0 .. $#{ $p->{targets} } } $self->panels;
}

1;
