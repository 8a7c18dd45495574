package Accel::Graph::Compare;
# Two logs: before, after, and the ratio.
use v5.36;

use Accel::Graph::Model qw(@SHOWN);
use Accel::Graph::Saturation ();
use Accel::Graph::Text  ();
use Exporter qw(import);

our @EXPORT_OK = qw(table sentence);

my @COLUMNS = qw(p50 p99 p99.9);

sub headline ($label, $model) { return sprintf '%-8s%s', "$label:", Accel::Graph::Text::headline($model) =~ s/\n\n\z/\n/r }

# 80 columns: name 11, then three percentiles of 23.
sub table ($model) {
	my $before = $model->{before};
	my $text   = headline('before', $before) . headline('after', $model) . "\n";
	my @both   = grep { $model->at('total', $_) && $before->at('total', $_) } qw(cold all);
	shift @both if @both == 2 && !$model->{hot} && !$before->{hot};
	for my $class (@both) {
		$text .= sprintf "%s: %d and %d requests\n", $class, map { $_->{stages}{total}{$class}{requests} } $before, $model;
		$text .= sprintf("%-11s", '') . join('', map { sprintf '%12s%-11s', $_, ' ms' } @COLUMNS) =~ s/\s+\z//r . "\n";
		$text .= sprintf("%-11s", '') . join('', map { sprintf '%8s%8s%7s', qw(before after ratio) } @COLUMNS) . "\n";
		for my $stage (grep { shown($model, $_, $class) || shown($before, $_, $class) } @SHOWN) {
			$text .= sprintf '%-11s', $stage;
			$text .= cells($before->at($stage, $class), $model->at($stage, $class), $_) for @COLUMNS;
			$text .= "\n";
		}
		$text .= "\n";
	}
	$text .= "(percentiles rounded to four digits)\n\n" if $model->{rounded} || $before->{rounded};
	return $text =~ s/\n\n\z/\n/r;
}

sub shown ($model, $stage, $class) { return $stage eq 'total' || $model->at($stage, $class) && $model->{stages}{$stage}{$class}{max} > 0 }

sub cells ($old, $new, $key) {
	my ($was, $is) = map { $_ ? $_->{$key} : undef } $old, $new;
	return sprintf '%8s%8s%7s', (map { defined $_ ? short($_) : '-' } $was, $is), ratio($was, $is);
}

# At most seven characters.
sub short ($ms) { return sprintf $ms >= 1000 ? '%.0f' : $ms >= 100 ? '%.1f' : $ms >= 10 ? '%.2f' : '%.3f', $ms }

sub ratio ($was, $is) {
	return '-' unless defined $was && defined $is && $was > 0;
	my $ratio = $is / $was;
	return $ratio >= 999.5 ? '>999' : sprintf $ratio >= 10 ? '%.0f' : $ratio >= 1 ? '%.2f' : '%.3f', $ratio;
}

# The one sentence about the change.
sub sentence ($model) {
	my $before = $model->{before};
	my $class  = $model->class eq $before->class ? $model->class : 'all';
	my ($was, $is) = map { $_->{stages}{total}{$class}{p99} } $before, $model;
	my $of = $class eq 'cold' ? ' of the cold requests' : '';
	return "The p99$of is 0 ms in both logs." if $was == 0 && $is == 0;
	my ($old, $new) = map { Accel::Graph::Text::brief($_) } $was, $is;
	my $now = "The p99$of is $new ms, and was $old ms";
	return "$now." if $was == 0 || $is == 0 || abs($is - $was) < 0.05 * $was;
	my %change = map { $_ => $model->{stages}{$_}{$class}{mean} - $before->{stages}{$_}{$class}{mean} }
	    grep { $_ ne 'total' && $model->at($_, $class) && $before->at($_, $class) } @SHOWN;
	my ($most) = sort { ($is > $was ? $change{$b} <=> $change{$a} : $change{$a} <=> $change{$b}) || $a cmp $b } keys %change;
	return sprintf '%s (%s as long); %s changed most, its mean from %s to %s ms%s.', $now, ratio($was, $is) . ' times', $most,
	    (map { Accel::Graph::Text::brief($_->{stages}{$most}{$class}{mean}) } $before, $model), saturated($before, $model);
}

# True if more jobs at a time brought no more requests.
sub saturated ($before, $model) {
	my $found = Accel::Graph::Saturation::between($before, $model);
	return '' unless ($found->{limit} // '') eq 'disk';
	return sprintf '; the disk is the limit, since %s jobs at a time brought %s requests a second and %s brought %s: go back to fewer threads',
	    map { Accel::Graph::Text::brief($_) } map { $found->{jobs}[$_], $found->{rate}[$_] } 0, 1;
}

1;
