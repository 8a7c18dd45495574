package Accel::Graph::Model;
# What a log says, ready to be drawn.
#
#   my $model = Accel::Graph::Model->of_log($stats, name => 'error', files => ['error.log']);
#   say $model->{stages}{'stat-queue'}{cold}{p99}, ' ms';
#
# Tables, charts and the HTML report read this hash and nothing else. All durations are in
# milliseconds unless a name ends in `_us`; shares are between 0 and 1; times are seconds since the first
# request (`first`, seconds since 1970). A key whose value is not known is missing or undef. Every array is bounded,
# whatever the length of the log. Text that came from outside (`name`, `files`, titles, labels, mount points) is raw bytes: it
# is escaped where it is printed.
#
# A log:
#   name       of the output files, no slash and no control character
#   files      the logs
#   requests   all; cold, hot: how many of them, undef if the lines do not tell
#   accel      written by fcgi-stat-accel
#   rejected   timing lines with absurd values
#   cut        lines of files that were not sent to their end
#   first last span
#   bytes      of all requests
#   backends   { network_gthread_aio => requests }
#   give-up-ms where clients give up (--give-up, 4000)
#   over       { all => requests above that, cold => ..., hot => ... }
#   rounded    true if percentiles of a stage are rounded to four digits
#   advice     one sentence
#   stages     see below
#   over_time  see below
#   heat       see below
#   breakdown  see below
#   data       { path, columns }, see below; only if a data file is written
#   before     another model: the older log of --before, or missing
#   memory     see below, or missing
#   lanes      see below, or missing
#   sweep      see below, or missing
#   load       see below, or missing
#
# --sweep or --load alone gives no log. `requests` is 0 then, and the keys of a log are missing.
#
# stages:
#   $model->{stages}{STAGE}{CLASS} = { requests, mean, p50, p90, p95, p99, "p99.9", "p99.99", max,
#       cdf => [[ms, share], ...], curve => [[log10(1/(1-q)), q, ms], ...] }
#
# STAGE: stat-queue stat proxy-queue proxy read-queue read handover write other handshake total (@SHOWN, in the
# order of a stack, but handshake, which total is without). `other` is the total without the stages. A stage that no line has is missing; lines of lighttpd 1.5 have
# only read-queue, read, write. CLASS: all, cold, hot; cold and hot are missing without such requests.
# `cdf`: at most 201 exact points, from the fastest value to the maximum; draw as steps.
# `curve`: nearest ranks, 16 per decade of 1/(1-q), from the minimum (0) to the last request.
#
# $model->class: what advice and charts are about, cold if each line tells and some are, else all. $model->at($stage, $class): that hash or nothing.
# $model->shown_stages($class): the stages with a value above zero, total last.
#
# over_time:
#   { width => seconds of a bin, bins => [{ at, requests, cold, hot, unknown, over, bytes, requests_per_s, mb_per_s,
#       p50_ms, p90_ms, p99_ms, max_ms, stages => { STAGE => mean ms } }, ...] }
#
# At most 256 bins. Bins without requests are left out. Percentiles are those of the total, from levels (6 % off at most).
#
# heat:
#   { width => seconds, bins => how many, level_ms => [0, 0.001, ...], cells => [[bin, level, requests], ...] }
#
# Duration of all requests. Level N covers level_ms[N] to level_ms[N+1]; 20 levels a decade; level 0 is zero.
#
# breakdown:
#   $model->{breakdown}{CLASS} = [{ from => 0, to => 0.05, requests, stages => { STAGE => mean ms } }, ...]
#
# Requests in order of their total: twentieths, then 0.99, 0.999, 0.9999, 1 as far as there are requests.
#
# data: `path` is a file with a line per request, sorted by start; `columns` its names, which is also its first line:
# start[s] and, in milliseconds as in 2007, read-queue-wait, read-time, write-time; then, in microseconds, the eleven stages in the
# order of @Accel::Graph::Read::STAGES; then hot (1, 0, or -1: not told). A stage that a line lacks is 0.
# `max_us`: { stacked, "read-queue-wait", read, write }, the largest values of the columns of 2007.
#
# before: The model of the older log, with all keys of a log but `data` and `advice`.
#
# memory:
#   { files, bytes => of files that were asked for more than once, each counted once; sampled => 1 if there were too many to count,
#     again, again_bytes => cold requests for a file that had been served before, limit => bytes that the server may use,
#     refault_bytes, stalled_some_us, pages_gone, loop_waits => how much they grew,
#     over_time => [{ from, at => seconds since the first request, again_mb_per_s, stalled => share, gone_per_s, waits_per_s, held_mb }, ...] }
#
# From the lines ev=memory and ev=counters of the same log; a number that they lack is undef, and over_time is missing with fewer than two lines.
#
# lanes:
#   [{ time => seconds since 1970, at => seconds since the first request, us, sy, id, wa => percent, cs, bi, bo => per second,
#      disks => { vda => { mount => "/", util => percent, queue, await_ms, read_mb_per_s } } }, ...]
#
# Only from a second before the first request to a second after the last one; at most 1024, then means of neighbours.
#
# sweep:
#   { title, machine => { key => text }, x => "read_threads",
#     series => [{ label => "accel:threads, ext4:2", points => [{ x => 4, mb_per_s, requests_per_s, p50_ms, p90_ms, p99_ms, max_ms, spread_percent }, ...] }, ...],
#     rows => [{ server, backend, storage, read_threads, ..., median => { mb_per_s, ... }, spread_percent }, ...] }
#
# From accel-bench --json. x is the key of a cell that takes most values; each other combination is a series. Points are sorted by x.
# `rows` are the cells themselves.
#
# load:
#   [{ label, requests, answered, seconds, requests_per_s, mb_per_s, errors => {}, latency => { requests, p50, ..., max, cdf, curve },
#      first_byte => same, connect => same }, ...]
#
# From accel-load --json, one for each object.
use v5.36;

use Accel::Graph::Read qw(@STAGES);
use Accel::Graph::Stats qw(@PERCENTILES %CLASS summary cdf curve share);
use Exporter   qw(import);
use List::Util qw(max sum0);

our @EXPORT_OK = qw(@SHOWN);

our @SHOWN = ((grep { $_ ne 'total' } @STAGES), 'total');    # the order of tables and stacks

use constant { PER_DECADE => Accel::Graph::Stats::PER_DECADE, BREAKDOWN => 20 };

# Stats -> what the comment above describes.
sub of_log ($class, $stats, %arg) {
	my $self = bless { name => $arg{name}, files => $arg{files} // [], first => $stats->{first}, last => $stats->{last},
		span => $stats->{last} - $stats->{first}, rejected => $arg{rejected} // 0, cut => $stats->{cut}, 'give-up-ms' => $stats->{give_up_us} / 1000,
		backends => { %{ $stats->{backends} } }, stages => {} }, $class;
	for my $stage (@SHOWN) {
		for my $of (sort keys %CLASS) {
			my $dist = $stats->distribution($of, $stage);
			my $sum  = summary($dist) // next;
			$self->{stages}{$stage}{$of} = { %$sum, cdf => cdf($dist), curve => curve($dist) };
			$self->{rounded} ||= $dist->{rounded};
		}
	}
	my $total = $self->{stages}{total};
	$self->{requests} = $total->{all}{requests};
	my $told = ($total->{cold}{requests} // 0) + ($total->{hot}{requests} // 0);
	@$self{qw(cold hot)} = $told ? map { $total->{$_}{requests} // 0 } qw(cold hot) : (undef, undef);
	delete $total->{$_} for grep { !$total->{$_}{requests} } keys %$total;
	$self->{accel} = $self->{backends}{network_fcgi_stat_accel} // 0;
	$self->add_cells($stats);
	$self->{memory} = $arg{memory}->facts($stats->{first}) if $arg{memory};
	return $self;
}

# A model without a log: only what other programs measured.
sub of_nothing ($class, %arg) { return bless { name => $arg{name}, files => [], requests => 0, stages => {} }, $class }

# The line of a stage, or nothing if no request of that class has it.
sub at ($self, $stage, $class) { return $self->{stages}{$stage} && $self->{stages}{$stage}{$class} }

# The class of requests that advice and charts are about: cold ones, because hot ones cost little with any setting.  If some lines do not
# tell the class, or if only few are cold, it is all requests.
sub class ($self) {
	my $cold = $self->{cold} // 0;
	return $cold && $cold + ($self->{hot} // 0) == $self->{requests} ? 'cold' : 'all';
}

# Stages with a value above zero, in order; the total is always there.
sub shown_stages ($self, $class = 'all') {
	return grep { my $at = $self->at($_, $class); $at && ($_ eq 'total' || $at->{max} > 0) } @SHOWN;
}

# ---------------------------------------------------------------- over time, heat map, breakdown: from cells

sub add_cells ($self, $stats) {
	my ($width, $bins) = @$stats{qw(width bins)};
	my $from = int($stats->{first} / $width);
	my (@time, @heat, %by_level, %sum);
	for my $bin (sort { $a <=> $b } keys %$bins) {
		my (@merged, %bin);
		for my $class (0 .. $#{ $bins->{$bin} }) {
			my $levels = $bins->{$bin}[$class] // next;
			for my $level (grep { $levels->[$_] } 0 .. $#$levels) {
				my $cell = $levels->[$level];
				$bin{ (qw(cold hot unknown))[$class] } += $cell->[0];
				for my $of (grep { grep { $_ == $class } @{ $CLASS{$_} } } keys %CLASS) {
					Accel::Graph::Stats::add_cell($by_level{$of}[$level] //= [(0) x @$cell], $cell);
					$sum{$of}[0] += $cell->[1];
					$sum{$of}[1] += $cell->[2];
				}
				Accel::Graph::Stats::add_cell($merged[$level] //= [(0) x @$cell], $cell);
			}
		}
		push @time, { %bin, $self->time_bin(($bin - $from) * $width, $width, \@merged) };
		push @heat, map { $merged[$_] ? [$bin - $from, $_, $merged[$_][0]] : () } 0 .. $#merged;
	}
	$self->{over}     = { map { $_ => $sum{$_}[1] } keys %sum };
	$self->{bytes}    = $sum{all}[0];
	$self->{over_time} = { width => $width, bins => \@time };
	$self->{heat}      = { width => $width, bins => 1 + (sort { $b <=> $a } map { $_->[0] } @heat)[0], level_ms => [map { level_ms($_) } 0 .. 1 + max(map { $_->[1] } @heat)],
		cells => \@heat };
	$self->{breakdown} = { map { $_ => breakdown($by_level{$_}) } keys %by_level };
}

# Where a level begins.
sub level_ms ($level) { return $level ? 10**(($level - 1) / PER_DECADE) / 1000 : 0 }

# The middle of a level, on a logarithmic axis.
sub middle_ms ($level) { return $level ? 10**(($level - 0.5) / PER_DECADE) / 1000 : 0 }

sub time_bin ($self, $at, $width, $levels) {
	my @sum = (0) x (3 + @STAGES);
	Accel::Graph::Stats::add_cell(\@sum, $_) for grep { defined } @$levels;
	my ($n, $bytes, $over, @us) = @sum;
	return (at => $at, requests => $n, over => $over, bytes => $bytes, requests_per_s => $n / $width, mb_per_s => $bytes / $width / 1e6,
		max_ms => level_ms(1 + $#$levels), map({ ("${_}_ms" => level_quantile($levels, $n, share($_))) } qw(p50 p90 p99)),
		stages => { map { $STAGES[$_] => $us[$_] / $n / 1000 } 0 .. $#STAGES });
}

sub level_quantile ($levels, $n, $q) {
	my $below = 0;
	for my $level (0 .. $#$levels) {
		$below += $levels->[$level][0] if $levels->[$level];
		return middle_ms($level) if $below >= $q * $n;
	}
	return 0;
}

# Mean of each stage over requests of about the same total, from the fastest to the slowest; sizes are at least 1/20 of all,
# and the last tenth is cut finer: 90 95 99 99.9 99.99.
sub breakdown ($levels) {
	my $n = sum0(map { $_ ? $_->[0] : () } @$levels) or return [];
	my @ends = ((map { $_ / BREAKDOWN } 1 .. BREAKDOWN - 1), grep({ (1 - $_) * $n >= 1 } 0.99, 0.999, 0.9999), 1);
	my (@slices, @sum, $done);
	my $below = 0;
	for my $level (grep { $levels->[$_] } 0 .. $#$levels) {
		my $cell = $levels->[$level];
		my $left = $cell->[0];
		while ($left > 1e-9) {
			my $want = $ends[0] * $n - $below;
			my $take = $left < $want || @ends == 1 ? $left : $want;
			$sum[$_] += $cell->[$_] * $take / $cell->[0] for 0 .. $#$cell;
			$below += $take;
			$left  -= $take;
			next unless $below >= $ends[0] * $n - 1e-6;
			push @slices, { from => $done // 0, to => $ends[0], requests => $sum[0], stages => { map { $STAGES[$_] => $sum[3 + $_] / $sum[0] / 1000 } 0 .. $#STAGES } };
			$done = shift @ends;
			@sum  = ();
		}
	}
	return \@slices;
}

1;
