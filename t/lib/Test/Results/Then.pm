package Test::Results::Then;
# Figures of accel-bench as tables in Markdown, beside those of 2007.
#
#     my $block = Test::Results::Then->blocks({ '2007-hot' => $json_of_accel_bench, ... });
#
# A block for each scenario, with all its tables. Columns are those of `accel-bench`; what 2007 has of them stands after the figure of today. Rows of 2007
# that no program of today can stand for have only that.
use v5.36;
use Accel::Bench::Table   ();
use Test::Results::Tables ();

sub blocks ($class, $figures) {
	my %block = map { $_ => _scenario($figures->{$_}) } grep { /^(?:2007-|starvation)/ && $figures->{$_} } keys %$figures;
	my ($any) = map { $figures->{$_} } grep { /^2007-/ && $figures->{$_} } sort keys %$figures;
	$block{machine} = _machine($any->{machine}) if $any;
	return \%block;
}

sub _machine ($m) {
	my %called = (accel => 'accel-server', apache => 'Apache');
	my ($kernel) = ($m->{kernel} // '') =~ /^(\d+\.\d+)/;
	my $versions = $m->{versions} // {};
	return sprintf "Measured on: %s, %d cores, %.0f GB, Linux %s, %s; %s.\n", $m->{cpu} // 'a CPU without a name', $m->{cores}, $m->{memory_mb} / 1024, $kernel // '-',
	    $m->{system} // '', join ', ', map { ($called{$_} // $_) . " $versions->{$_}" } sort keys %$versions;
}

sub _scenario ($of) {
	my @tables = @{ $of->{tables} };
	my @lines;
	for my $table (@tables) {
		my $then = $of->{then}{ $table->{title} };
		my @rows = grep { $_->{table} eq $table->{title} } @{ $of->{rows} };
		push @lines, "\u$table->{title}:\n\n" if @tables > 1;
		push @lines, _table($table, $then, @rows), "\n";
		push @lines, "2007: $then->{load}; $then->{machine}.\n\n" if $then;
	}
	pop @lines if $lines[-1] eq "\n";
	return join('', @lines) =~ s/\n+\z/\n/r;
}

sub _table ($table, $then, @rows) {
	my @keys = @{ $table->{columns} };
	@keys = grep { my $k = $_; $k ne 'errors' || grep { Accel::Bench::Table::value($k, $_->{median}) } @rows } @keys;
	my %old = map { $_ => 1 } map { keys %$_ } values %{ $then->{rows} // {} };
	my %today = map { Accel::Bench::Table::label($_) => $_ } @rows;
	my @names = ((map { Accel::Bench::Table::label($_) } @rows), grep { !$today{$_} } @{ $then->{order} // [] });
	my @heads = ($table->{first}, map { my $h = Accel::Bench::Table::header($_); $old{$_} ? ($h, '2007') : $h } @keys);
	return Test::Results::Tables::table(\@heads, map { [$_, _cells(\@keys, \%old, $today{$_}, $then->{rows}{$_})] } @names);
}

sub _cells ($keys, $old, $row, $then) {
	return map {
		my $now = $row ? Accel::Bench::Table::shown($_, Accel::Bench::Table::value($_, $row->{median})) : '';
		$old->{$_} ? ($now, Accel::Bench::Table::shown($_, $then->{$_})) : $now;
	} @$keys;
}

1;
