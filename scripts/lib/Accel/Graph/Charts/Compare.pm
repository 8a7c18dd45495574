package Accel::Graph::Charts::Compare;
# Before and after: the percentile curves of two logs in one picture, and each stage in a table.
use v5.36;
use utf8;

use Exporter qw(import);
use Accel::Graph::Axis  qw(duration);
use Accel::Graph::Style qw(@STACK text_of);
use Accel::Graph::Charts::Spread qw(curve_chart);

our @EXPORT_OK = qw(compare_chart);

# Two models; only cold requests if both are about those.
sub compare_chart ($facts, $before, $after) {
	my $class = $after->class eq $before->class ? $after->class : 'all';
	my @of    = map { $_->{stages}{total}{$class} } $before, $after;
	my @name  = map { text_of($_->{name}) } $before, $after;
	my $kind  = $class eq 'cold' ? 'cold requests' : 'requests';
	return curve_chart($facts, [
		{ as => 'before', label => $name[0] eq $name[1] ? 'before' : "before: $name[0]", of => $of[0] },
		{ as => 'after',  label => $name[0] eq $name[1] ? 'after'  : "after: $name[1]",  of => $of[1] },
	], id => 'compare', name => 'before and after', title => "$name[1]: $kind before and after", table => table_of($before, $after, $class));
}

sub table_of ($before, $after, $class) {
	my @rows;
	for my $stage (@STACK, 'total') {
		my ($old, $new) = map { $_->{stages}{$stage}{$class} } $before, $after;
		next unless $old && $new && ($old->{max} > 0 || $new->{max} > 0 || $stage eq 'total');
		push @rows, [$stage, map { my $p = $_; (duration($old->{$p}), duration($new->{$p}), change($old->{$p}, $new->{$p})) } qw(p50 p99)];
	}
	return { head => ['stage', 'p50 before', 'p50 after', 'change', 'p99 before', 'p99 after', 'change'], rows => \@rows };
}

sub change ($old, $new) {
	return '=' if $old == $new;
	return '-' unless $old > 0;
	my $percent = 100 * ($new / $old - 1);
	return $percent >= 1000 ? sprintf('×%.0f', $new / $old) : sprintf('%+.0f %%', $percent) =~ s/-/−/r;
}

1;
