package Accel::Graph::Charts::Sweep;
# Curves over the cells of a benchmark: threads against throughput and p99, one line for each server; or bars, if no number varies.
use v5.36;
use utf8;

use Exporter   qw(import);
use List::Util qw(max min uniq);
use Accel::Graph::Axis qw(linear_axis time_axis log_axis duration);
use Accel::Graph::Style qw(text_of);
use Accel::Graph::Charts::Classic qw(give_up_rule);

our @EXPORT_OK = qw(sweep_chart);

use constant MAX_LINES => 8;    # more cannot be told apart

my %NUMBER = (    # what a line may run along, and how an axis calls it
	stat_threads => 'threads that open files', read_threads => 'threads that read',
	concurrency  => 'clients at the same time', read_ahead => 'read-ahead (KiB)', rate => 'requests started per second',
);
my @NAMES = qw(server backend storage files concurrency stat_threads read_threads read_ahead noatime accel);

sub is_number ($value) { return defined $value && !ref $value && $value =~ /\A[0-9]+(?:\.[0-9]+)?\z/ }

# $bench as accel-bench writes it: { title, rows => [{ server, ..., median => { mb_per_s, p99_ms, ... } }] }
sub sweep_chart ($facts, $bench) {
	my @rows  = grep { ref eq 'HASH' && ref $_->{median} eq 'HASH' && is_number($_->{median}{mb_per_s}) } @{ ref $bench->{rows} eq 'ARRAY' ? $bench->{rows} : [] };
	my %values = map { my $key = $_; $key => [ uniq(map { is_number($_->{$key}) ? $_->{$key} : () } @rows) ] } keys %NUMBER;
	my ($along) = sort { @{ $values{$b} } <=> @{ $values{$a} } || $a cmp $b } keys %values;
	my @vary  = grep { my $key = $_; $key ne $along && uniq(map { $_->{$key} // '' } @rows) > 1 } @NAMES;
	my $title = defined $bench->{title} && !ref $bench->{title} && $bench->{title} ne '' ? text_of($bench->{title}) : $facts->{name};
	return @{ $values{$along} } > 1 ? curves($facts, $title, $along, \@vary, \@rows) : bars($title, \@vary, \@rows);
}

sub line_name ($row, $vary) {
	return join ', ', map { my $v = text_of($row->{$_}); /\A(?:server|storage|files)\z/ ? $v : $_ . ' ' . $v } grep { !ref($row->{$_}) && ($row->{$_} // '') ne '' } @$vary;
}

sub curves ($facts, $title, $along, $vary, $rows) {
	my (%line, @order);
	for my $row (grep { is_number($_->{$along}) } @$rows) {
		my $of = line_name($row, $vary);
		push @order, $of unless $line{$of};
		push @{ $line{$of} }, $row;
	}
	my @shown = @order > MAX_LINES ? @order[0 .. MAX_LINES - 1] : @order;
	my @x     = map { $_->{$along} } map { @{ $line{$_} } } @shown;
	my $wide  = min(@x) > 0 && max(@x) / min(@x) > 8;
	my $x     = $wide ? doubling_axis($NUMBER{$along}, min(@x), max(@x)) : linear_axis($NUMBER{$along}, max(@x));
	my $panel = sub ($y, $key, $labels) {
		my @series = map {
			my $n = $_;
			my @data = sort { $a->[0] <=> $b->[0] } map { is_number($_->{median}{$key}) ? [$_->{$along}, $_->{median}{$key}] : () } @{ $line{ $shown[$n] } };
			{ style => 'marked', as => $n, data => \@data, $labels && $shown[$n] ne '' ? (label => $shown[$n]) : () }
		} 0 .. $#shown;
		return { x => $x, y => $y, shared_x => $labels, series => \@series };
	};
	my $mb = linear_axis('throughput (MB/s)', max(map { $_->{median}{mb_per_s} } @$rows), ticks => 4);
	my $p9 = time_axis('p99 of a request (UNIT)', max(0, map { is_number($_->{median}{p99_ms}) ? $_->{median}{p99_ms} : () } @$rows), ticks => 4);
	my $low = $panel->($p9, 'p99_ms', 0);
	$low->{rules} = [give_up_rule($facts, 'y', $p9)];
	return {
		id => 'sweep', name => 'sweep', title => $title,
		alt => "Two panels over $NUMBER{$along}: throughput above, p99 of the duration of a request below; a line for each of " . scalar(@shown) . ' series.',
		table => table_of($rows, [uniq($along, @$vary)]), panels => [$panel->($mb, 'mb_per_s', 1), $low],
	};
}

# 1, 2, 4, 8, ...: what thread counts are.
sub doubling_axis ($label, $min, $max) {
	my ($at, @ticks) = (1);
	while ($at <= $max * 1.001) { push @ticks, [$at, "$at"] if $at >= $min / 1.001; $at *= 2 }
	return { label => $label, min => $min / 1.1, max => $max * 1.1, log => 1, ticks => \@ticks, minor => [] };
}

sub bars ($title, $vary, $rows) {
	my (@series, @ticks, @labels);
	my $most = max(1e-9, map { $_->{median}{mb_per_s} } @$rows);
	for my $i (0 .. $#$rows) {
		my ($y, $mb) = ($#$rows - $i, $rows->[$i]{median}{mb_per_s});
		push @ticks,  [$y, line_name($rows->[$i], $vary)];
		push @labels, $mb > $most * 0.85 ? { x => $mb - $most * 0.01, y => $y, text => sprintf('%.3g', $mb), align => 'right', on => 'stat' }
		    : { x => $mb + $most * 0.01, y => $y, text => sprintf('%.3g', $mb), align => 'left' };
		push @series, { style => 'bars', as => 'stat', data => [[$y, 0, $mb]] };
	}
	return {
		id => 'sweep', name => 'throughput', title => $title, alt => 'Bars of the throughput: ' . join(', ', map { line_name($_, $vary) . sprintf ' %.3g MB/s', $_->{median}{mb_per_s} } @$rows),
		table  => table_of($rows, $vary),
		panels => [ { x => linear_axis('throughput (MB/s)', $most), series => \@series, labels => \@labels, bare => 1,
			y => { label => '', min => -0.6, max => $#$rows + 0.6, ticks => \@ticks } } ],
	};
}

sub table_of ($rows, $vary) {
	my @figures = (['MB/s' => 'mb_per_s'], ['requests/s' => 'requests_per_s'], ['p50 ms' => 'p50_ms'], ['p99 ms' => 'p99_ms'], ['spread %' => 'spread_percent']);
	return { head => [@$vary, map { $_->[0] } @figures], rows => [ map {
		my $r = $_;
		[map({ my $v = $r->{$_} // '-'; ref $v ? '-' : text_of($v) } @$vary), map { my $v = $r->{median}{ $_->[1] }; is_number($v) ? sprintf('%.4g', $v) + 0 : '-' } @figures];
	} @$rows ] };
}

1;
