package Accel::Bench::Table;
# Rows of accel-bench as text and as CSV, with the figures of 2007 beside them.
#
#     print Accel::Bench::Table::text('server', [qw(mb_per_s requests_per_s)], $then, @rows);
#     print Accel::Bench::Table::csv(@rows);
use v5.36;
use List::Util qw(max sum);

# Header, decimals, and the name of the figure if it differs in the medians.
my %column = (
	mb_per_s => ['MByte/s', 2], requests_per_s => ['req/s', 2], p50_ms => ['p50 ms', 1], p90_ms => ['p90 ms', 1], p99_ms => ['p99 ms', 1], max_ms => ['max ms', 0],
	first_byte_p50_ms => ['first ms', 2], first_byte_max_ms => ['first max ms', 0], connect_p50_ms => ['connect ms', 2], cpu_us => ['CPU us/rq', 0], server_cpu_percent => ['CPU %', 0], seconds => ['seconds', 1],
	us => ['user', 1], sy => ['sys', 1], wa => ['iowait', 1], id => ['idle', 1], cs_per_s => ['cs', 0], bi_per_s => ['bi', 0], bo_per_s => ['bo', 0],
	util => ['util %', 0, sub ($m) { $m->{disk}{util} }], queue => ['queue', 1, sub ($m) { $m->{disk}{queue} }],
	await_ms => ['await ms', 1, sub ($m) { $m->{disk}{await_ms} }], read_mb_per_s => ['disk MB/s', 1, sub ($m) { $m->{disk}{read_mb_per_s} }],
	user_sys => ['us+sy', 0, sub ($m) { defined $m->{us} && defined $m->{sy} ? $m->{us} + $m->{sy} : undef }],
	errors => ['errors', 0, sub ($m) { $m->{errors}{all} // 0 }], timeouts => ['gave up', 0, sub ($m) { $m->{errors}{timeout} // 0 }],
);

sub known ($key)  { return exists $column{$key} }
sub header ($key) { return $column{$key}[0] }

sub value ($key, $median) {
	my $get = $column{$key}[2];
	return $get ? $get->($median) : $median->{$key};
}

sub shown ($key, $value) {
	return '-' unless defined $value;
	my $decimals = $column{$key}[1];
	return sprintf '%.*f', $value >= 1000 && $decimals > 1 ? 0 : $decimals, $value;
}

sub label ($row) { return clean($row->{label} // $row->{server}) }

# Names that users chose, on a terminal.
sub clean ($text) { return $text =~ s/[^\x20-\x7e]/?/gr }

# Today's columns (errors if there are any), the spread, then the columns of 2007.  Rows of 2007 without a measurement of today come last.
sub text ($first, $keys, $then, @rows) {
	$keys = [grep { my $k = $_; $k ne 'errors' || grep { value($k, $_->{median}) } @rows } @$keys];
	my %today = map { label($_) => $_ } @rows;
	my %shown = map { $_ => 1 } @$keys;
	my %known = map { $_ => 1 } map { keys %$_ } values %{ $then->{rows} // {} };
	my @then_keys = grep { $known{$_} } @$keys;
	my @gone = grep { !$today{$_} } @{ $then->{order} // [] };
	my @lines = ([$first, (map { header($_) } @$keys), '+-%', @then_keys ? ('|', map { header($_) } @then_keys) : ()]);
	for my $name ((map { label($_) } @rows), @gone) {
		my $r = $today{$name};
		my $old = $then->{rows}{$name} // {};
		push @lines, [$name, (map { $r ? shown($_, value($_, $r->{median})) : '' } @$keys), $r ? sprintf('%.0f', $r->{spread_percent}) : '',
			@then_keys ? ('|', map { shown($_, $old->{$_}) } @then_keys) : ()];
	}
	my @width = map { my $i = $_; max map { length $_->[$i] } @lines } 0 .. $#{ $lines[0] };
	# 2007 stands above the first column after the bar.
	my $head = @then_keys ? ' ' x (2 + sum map { $_ + 2 } @width[0 .. @$keys + 2]) . "2007\n" : '';
	return join '', $head,
		map { my $l = $_; '  ' . join('  ', map { sprintf $_ ? '%*s' : '%-*s', $width[$_], $l->[$_] } 0 .. $#width) =~ s/\s+\z//r . "\n" } @lines;
}

# ---------------------------------------------------------------- CSV

my @CELL = qw(table label server backend storage files concurrency stat_threads read_threads read_ahead noatime accel workers timeout);
my @FIGURES = qw(mb_per_s requests_per_s p50_ms p90_ms p99_ms max_ms first_byte_p50_ms connect_p50_ms cpu_us server_cpu_percent cs_per_s bi_per_s bo_per_s us sy id wa util queue
	await_ms read_mb_per_s errors);

sub csv (@rows) {
	my @lines = ([@CELL, @FIGURES, 'spread_percent', 'rounds']);
	for my $r (@rows) {
		push @lines, [@$r{@CELL}, (map { value($_, $r->{median}) } @FIGURES), $r->{spread_percent}, scalar @{ $r->{rounds} }];
	}
	return join '', map { join(',', map { quoted($_ // '') } @$_) . "\r\n" } @lines;
}

# RFC 4180.
sub quoted ($text) { return $text =~ /[",\r\n]/ ? '"' . $text =~ s/"/""/gr . '"' : $text }

1;
