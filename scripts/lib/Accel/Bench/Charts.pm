package Accel::Bench::Charts;
# One chart for each table of accel-bench, drawn by accel-graph.
#
#     my @failed = Accel::Bench::Charts::draw($dir, $name, $report, @groups);
#
# Each table becomes DIR/NAME-N.json, which accel-graph --sweep reads, and its pictures. Where a number varies, rows are points of curves, and the
# figures of 2007 are a curve of their own; else rows are bars.
use v5.36;
use Accel::Bench::Run  ();
use Accel::Bench::Then ();
use Accel::Util qw(program);

my @NUMBERS = qw(concurrency stat_threads read_threads read_ahead workers);
my @WORDS = qw(server storage files noatime accel);

sub draw ($dir, $name, $report, @groups) {
	my @failed;
	for my $i (0 .. $#groups) {
		my @rows = grep { $_->{table} eq $groups[$i]{title} } @{ $report->{rows} };
		next unless @rows;
		my $base = $name . (@groups > 1 ? '-' . ($i + 1) : '');
		my $json = "$dir/$base.json";
		Accel::Bench::Run::write_json($json, { %$report, title => "$report->{title}: $groups[$i]{title}", rows => [points($groups[$i], @rows)] });
		my @draw = (program('accel-graph'), '--sweep', $json, '--output', $dir, '--name', $base);
		# The table of accel-bench as input of accel-graph.
		push @failed, "accel-graph --sweep $json: exit status " . ($? >> 8) if system('sh', '-c', 'exec "$@" >/dev/null', 'sh', @draw) != 0;
	}
	return @failed;
}

# The cells with the names by which accel-graph distinguishes them.
sub points ($group, @rows) {
	my ($axis) = grep { varies($_, @rows) } @NUMBERS;
	return map { { label => $_->{label}, median => $_->{median}, spread_percent => $_->{spread_percent} } } @rows unless defined $axis;
	my @keys = grep { varies($_, @rows) } @NUMBERS, @WORDS;
	my $then = defined $group->{then} ? Accel::Bench::Then::table($group->{then})->{rows} : {};
	my @old = @keys == 1 ? grep { $then->{ $_->{label} } } @rows : ();
	return ((map { point($_, \@keys, @old ? 'today' : undef, $_->{median}) } @rows), map { point($_, \@keys, '2007', $then->{ $_->{label} }) } @old);
}

sub point ($row, $keys, $label, $figures) {
	return { (map { $_ => $row->{$_} } @$keys), defined $label ? (label => $label) : (), median => $figures, spread_percent => $row->{spread_percent} };
}

sub varies ($key, @rows) {
	my %seen = map { ($_->{$key} // '') => 1 } @rows;
	return keys %seen > 1;
}

1;
