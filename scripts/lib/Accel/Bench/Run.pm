package Accel::Bench::Run;
# A scenario, or the matrix of the options, from cells to tables and files.
use v5.36;
use Accel::Bench ();
use Accel::Bench::Scenario ();
use Accel::Bench::Table    ();
use Accel::Bench::Then     ();
use Accel::Util qw(put);
use JSON::PP ();
use POSIX    ();

use constant CELLS_MAX => 10_000;

my @AXES = qw(server storage files concurrency stat_threads read_threads read_ahead noatime accel);

# The groups of a scenario, each with its cells; or one group: the product of all lists in $axes.
sub groups ($scenario, $axes, $fixed) {
	return map { { %$_, cells => [map { { %$fixed, %$_ } } @{ $_->{cells}->() }] } } @{ $scenario->{groups} } if $scenario;
	my @cells = ({%$fixed});
	for my $axis (grep { $axes->{$_} } @AXES) {
		@cells = map { my $c = $_; map { { %$c, $axis => $_ } } @{ $axes->{$axis} } } @cells;
		die 'more than ' . CELLS_MAX . " cells; give fewer values\n" if @cells > CELLS_MAX;
	}
	my @varied = grep { @{ $axes->{$_} // [] } > 1 } @AXES;
	@varied = ('server') unless @varied;
	for my $c (@cells) { $c->{label} = join ' ', map { named($_, $c->{$_}) } @varied }
	return { title => 'matrix', first => join(' ', map { tr/_/-/r } @varied), cells => \@cells,
		columns => [qw(mb_per_s requests_per_s p50_ms p99_ms util cpu_us errors)] };
}

sub named ($axis, $value) {
	return $value if $axis =~ /^(?:server|storage|files)\z/;
	return { noatime => $value ? 'noatime' : 'atime', accel => $value eq 'none' ? 'alone' : "accel:$value" }->{$axis} // "$value";
}

# Measures all groups; each row knows its table and its figures of 2007.
sub measure ($bench, @groups) {
	my @rows;
	for my $g (@groups) {
		my $then = defined $g->{then} ? Accel::Bench::Then::table($g->{then}) : undef;
		for my $row ($bench->matrix(@{ $g->{cells} })) {
			my $old = $then ? $then->{rows}{ $row->{label} } : undef;
			push @rows, { %$row, table => $g->{title}, $old ? (then => $old) : () };
		}
	}
	return @rows;
}

sub text ($group, @rows) {
	my $then = defined $group->{then} ? Accel::Bench::Then::table($group->{then}) : undef;
	my @mine = grep { $_->{table} eq $group->{title} } @rows;
	return "\n$group->{title}\n" . Accel::Bench::Table::text($group->{first}, $group->{columns}, $then, @mine)
	    . ($then ? "  2007: $then->{load}\n" : '');
}

# What --json writes.
sub report ($name, $scenario, $bench, $started, $groups, $rows) {
	my %then = map { defined $_->{then} ? ($_->{title} => { %{ Accel::Bench::Then::table($_->{then}) }, name => $_->{then} }) : () } @$groups;
	return { scenario => $name, title => $scenario ? $scenario->{title} : 'matrix', about => $scenario ? $scenario->{about} : [],
		machine => $bench->machine, started => $started, seconds => $bench->{seconds}, rounds => $bench->{rounds}, rows => $rows,
		tables => [map { { title => $_->{title}, first => $_->{first}, columns => $_->{columns},
			headers => [map { Accel::Bench::Table::header($_) } @{ $_->{columns} }] } } @$groups],
		then => \%then, notes => [$bench->notes] };
}

sub write_json ($file, $report) { put($file, JSON::PP->new->ascii->canonical->pretty->encode($report)) }

# A progress line on a terminal, which the next one overwrites.
sub progress ($done, $all, $cell) {
	my $what = $cell ? Accel::Bench::label($cell) : '';
	printf STDERR "\r\e[K%s", $cell ? sprintf '%d of %d  %.60s', $done + 1, $all, Accel::Bench::Table::clean($what) : '';
}

1;
