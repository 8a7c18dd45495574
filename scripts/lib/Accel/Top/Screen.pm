package Accel::Top::Screen;
# A status, its rates and the lanes as lines of text, for a terminal of a given size or for a pipe.
use v5.36;

use Accel::Status::Form ();
use List::Util qw(max min sum0);

use constant { COLUMNS_MIN => 40, LEFT => 36 };

my %SORTS = (age => sub { $_[1]{age_ms} <=> $_[0]{age_ms} }, sent => sub { $_[1]{sent_bytes} <=> $_[0]{sent_bytes} }, client => sub { $_[0]{client} cmp $_[1]{client} });
our @SORTS = qw(age sent client);

# ---------------------------------------------------------------- numbers as people read them

sub scaled ($n, $base, @units) {
	return '-' unless defined $n;
	my $unit = shift @units;
	while ($n >= $base && @units) { $n /= $base; $unit = shift @units }
	my $digits = $n >= 100 || $n == int $n ? 0 : $n >= 10 ? 1 : 2;
	return sprintf('%.*f', $digits, $n) . ($unit ne '' ? " $unit" : '');
}

sub count ($n) { return scaled($n, 1000, '', 'k', 'M', 'G', 'T') }
sub bytes ($n) { return scaled($n, 1000, 'B', 'kB', 'MB', 'GB', 'TB') }
sub span ($ns) { return !defined $ns ? '-' : $ns == 0 ? '0' : $ns < 1e9 ? scaled($ns / 1000, 1000, 'us', 'ms') : $ns < 120e9 ? scaled($ns / 1e9, 1e9, 's') : sprintf '%.0f min', $ns / 60e9 }
sub percent ($n, $digits = 1) { return defined $n ? sprintf('%.*f %%', $digits, $n) : '-' }

sub uptime ($s) { return ($s >= 86400 ? int($s / 86400) . ' d ' : '') . sprintf '%02d:%02d:%02d', $s / 3600 % 24, $s / 60 % 60, $s % 60 }

# ---------------------------------------------------------------- text in columns

# Columns that a text takes in a terminal: two for wide characters, none for combining ones.
sub width ($text) { return length($text) + (() = $text =~ /[\p{East_Asian_Width=W}\p{East_Asian_Width=F}]/g) - (() = $text =~ /\p{M}/g) }

# Cut to n columns; what is cut is shown by "~".
sub cut ($text, $n) {
	return $text if length $text <= $n && width($text) <= $n;
	return '' if $n < 1;
	$text = substr $text, 0, $n;
	chop $text while length $text && width($text) > $n - 1;
	return "$text~";
}

sub left ($text, $n) { my $t = cut($text, $n); return $t . ' ' x ($n - width($t)) }
sub right ($text, $n) { my $t = cut($text, $n); return ' ' x ($n - width($t)) . $t }

# ---------------------------------------------------------------- parts of the screen

# Each part is a list of [mark, text]: mark is '', 'head' or 'bad'.
sub head_lines ($v) {
	my ($s, $r) = @$v{qw(status rates)};
	my @out = (['', ($s ? "$s->{server} $s->{version}  $v->{where}  up " . uptime($s->{uptime_s}) : $v->{where} // 'this machine') . ($v->{paused} ? '  PAUSED' : '')]);
	push @out, ['bad', "! $v->{error}"] if defined $v->{error};
	return @out, ($s ? status_lines($s, $r) : ()), lane_lines($v->{lanes});
}

sub status_lines ($s, $r) {
	my $gone = $s->{server} eq 'accel-server' ? 'clients gone' : 'aborted';
	my $bytes = $s->{server} eq 'accel-server' ? 'sent' : 'made warm';
	my @out;
	if ($r) {
		push @out, [$r->{failed_per_s} > 0 ? 'bad' : '', join '  ', count($r->{requests_per_s}) . ' requests/s', "$bytes " . bytes($r->{bytes_per_s}) . '/s',
			($r->{failed_per_s} > 0 ? '! ' : '') . 'failed ' . count($r->{failed_per_s}) . '/s', "$gone " . count($r->{gone_per_s}) . '/s',
			'in cache ' . percent(defined $r->{hit_ratio} ? 100 * $r->{hit_ratio} : undef), defined $r->{cpu_percent} ? 'CPU ' . percent($r->{cpu_percent}) : ()];
	} else {
		push @out, ['', count($s->{requests}) . " requests and " . bytes($s->{bytes}) . " $bytes since the start; rates follow"];
	}
	my $c = $s->{connections};
	push @out, ['', "connections $c->{open} of $c->{limit}: " . (%{ $c->{by_state} } ? join('  ', map { "$c->{by_state}{$_} $_" } qw(idle head body handle write close)) : "$c->{busy} requests wait")];
	push @out, map { ['bad', "! $_->{id}: $_->{seen}. $_->{do}"] } @{ $s->{advice} };
	return @out;
}

sub lane_lines ($l) {
	return unless $l;
	my $n = sub ($v, $f) { defined $v ? $f->($v) : '-' };
	return ['', 'CPU ' . join(' ', map { "$_ " . $n->($l->{$_}, sub ($v) { sprintf '%.0f', $v }) } qw(us sy id wa st)) . ' %  cs ' . $n->($l->{cs}, \&count) . '/s  in '
			. $n->($l->{bi}, sub ($v) { bytes($v * 1024) }) . '/s  out ' . $n->($l->{bo}, sub ($v) { bytes($v * 1024) }) . '/s  blocked ' . ($l->{blocked} // '-')];
}

sub stage_lines ($s, $r) {
	my %seen = map { ($_->{name} => 1) } grep { $_->{count} || $_->{name} eq 'total' } @{ $s->{stages} };
	my @rows = $r ? @{ $r->{stages} } : map { { %$_, whole => 1 } } @{ $s->{stages} };
	my $since = grep({ $_->{whole} } @rows) ? '(all)' : '';
	return ['head', left("STAGE $since", 12) . right('per s', 7) . right('p50', 8) . right('p99', 8)],
		map { ['', left($_->{name}, 12) . right($r ? count($_->{per_s}) : '-', 7) . right(span($_->{p50_ns}), 8) . right(span($_->{p99_ns}), 8)] } grep { $seen{ $_->{name} } } @rows;
}

sub pool_lines ($s, $r) {
	return ['head', left('THREADS', 8) . right('busy', 9) . right('queued', 8) . right('jobs/s', 9) . right('oldest', 9)],
		map { [$_->{busy} >= $_->{threads} && $_->{queued} ? 'bad' : '', left($_->{name}, 8) . right("$_->{busy} of $_->{threads}", 9) . right(count($_->{queued}), 8)
				. right($r ? count($r->{pools}{ $_->{name} }) : '-', 9) . right(span($_->{oldest_ns}), 9)] } grep { $_->{threads} || $_->{jobs} } @{ $s->{pools} };
}

# Two parts beside each other; below each other if the screen is narrow.
sub beside ($columns, $one, $other) {
	return (@$one, @$other) if $columns < LEFT + 43;
	my @out;
	for my $i (0 .. max($#$one, $#$other)) {
		my ($l, $r) = ($one->[$i] // ['', ''], $other->[$i] // ['', '']);
		push @out, [$l->[0] || $r->[0], left($l->[1], LEFT) . '|' . $r->[1]];
	}
	return @out;
}

# Tables of which any number of rows can be shown: { title, rows => [[mark, text]...] }; the title has "(n of m)" if some are left out.
sub tables ($v, $columns) {
	my $s = $v->{status};
	my @all = (disk_table($v->{lanes}, $columns));
	push @all, device_table($s, $columns), application_table($s, $v->{rates}, $columns), request_table($s, $v->{sort}, $columns) if $s;
	return grep { @{ $_->{rows} } } @all;
}

sub disk_table ($l, $columns) {
	my $disks = $l ? $l->{disks} : {};
	my @names = sort { $disks->{$b}{util} <=> $disks->{$a}{util} || $disks->{$b}{queue} <=> $disks->{$a}{queue} || $a cmp $b } grep { my $d = $disks->{$_}; defined $d->{mount} || $d->{util} } keys %$disks;
	my $wide = max(14, $columns - 58);
	return { title => sub ($of) { left("DISK$of", $wide) . join('', map { right(@$_) } ['util', 7], ['queue', 8], ['await', 9], ['reads/s', 9], ['read', 12], ['written', 12]) },
		rows => [map { my $d = $disks->{$_}; [$d->{util} >= 90 ? 'bad' : '', left(Accel::Status::Form::text($_) . (defined $d->{mount} ? ' ' . Accel::Status::Form::text($d->{mount}) : ''), $wide)
			. right(percent($d->{util}, 0), 7) . right($d->{queue}, 8) . right(scaled($d->{await_ms}, 1e6, 'ms'), 9) . right(count($d->{reads_per_s}), 9) . right(bytes($d->{read_mb_per_s} * 1e6) . '/s', 12) . right(bytes($d->{write_mb_per_s} * 1e6) . '/s', 12)] } @names] };
}

sub device_table ($s, $columns) {
	my $wide = max(14, $columns - 47);
	return { title => sub ($of) { left("JOBS FOR$of", $wide) . join('', map { right(@$_) } ['busy', 7], ['queued', 8], ['oldest', 10], ['refused', 10], ['', 12]) },
		rows => [map { [$_->{stuck} || $_->{refused} ? 'bad' : '', left(device_name($_), $wide) . right($_->{busy}, 7) . right(count($_->{queued}), 8) . right(span($_->{oldest_ns}), 10) . right(count($_->{refused}), 10) . ($_->{stuck} ? '  ! STUCK' : '')] }
			sort { $b->{oldest_ns} <=> $a->{oldest_ns} || $b->{busy} <=> $a->{busy} } @{ $s->{devices} }] };
}

sub device_name ($d) { return $d->{mount} eq '' ? $d->{device} : "$d->{mount} ($d->{device})" }

sub application_table ($s, $r, $columns) {
	my $wide = max(20, $columns - 54);
	my @rows = map { [$s->{applications}[$_], $r ? $r->{applications}[$_] : undef] } 0 .. $#{ $s->{applications} };
	return { title => sub ($of) { left("APPLICATION$of", $wide) . join('', map { right(@$_) } ['req/s', 8], ['busy', 7], ['waiting', 9], ['failed/s', 10], ['first byte', 12], ['down', 6]) },
		rows => [map { my ($a, $n) = @$_; my ($first) = grep { $_->{name} eq 'first-byte' } @{ ($n // $a)->{stages} };
			[($n && $n->{failed_per_s} > 0) || $a->{workers_that_find_it_down} ? 'bad' : '', left($a->{name}, $wide) . right($n ? count($n->{requests_per_s}) : '-', 8) . right(max(0, $a->{load} - $a->{waiting}), 7) . right($a->{waiting}, 9)
			. right($n ? count($n->{failed_per_s}) : '-', 10) . right(span($first ? $first->{p99_ns} : undef), 12) . right($a->{workers_that_find_it_down} ? '! ' . $a->{workers_that_find_it_down} : 0, 6)] }
			sort { $b->[0]{load} <=> $a->[0]{load} || $a->[0]{name} cmp $b->[0]{name} } @rows] };
}

sub request_table ($s, $sort, $columns) {
	my $by = $SORTS{ $sort // 'age' };
	my @rows = sort { $by->($a, $b) || $b->{age_ms} <=> $a->{age_ms} } @{ $s->{running}{rows} };
	my $wide = max(10, $columns - 48);
	return { title => sub ($of) { right('AGE', 9) . right('SENT', 10) . '  ' . left('STATE', 8) . left('CLIENT', 17) . left("REQUEST$of", $wide) }, all => $s->{running}{requests},
		rows => [map { ['', right(span($_->{age_ms} * 1e6), 9) . right(bytes($_->{sent_bytes}), 10) . '  ' . left($_->{state}, 7) . ' ' . left($_->{client}, 16) . ' '
			. cut("$_->{method} $_->{url}" . ($_->{backend} ne '' ? " > $_->{backend}" : ''), $wide)] } @rows] };
}

# ---------------------------------------------------------------- all of it

# Lines for a screen; rows 0: as many as there are, for a pipe.
sub lines ($v, $columns, $rows, $colour) {
	$columns = max(COLUMNS_MIN, $columns);
	my @out = head_lines($v);
	push @out, ['', ''] if $v->{status};
	push @out, beside($columns, [stage_lines(@$v{qw(status rates)})], [pool_lines(@$v{qw(status rates)})]) if $v->{status};
	push @out, fitted([tables($v, $columns)], $rows ? max(0, $rows - @out - 1) : undef);
	if ($rows) {
		splice @out, $rows - 1 if @out > $rows - 1;
		push @out, ['', ''] while @out < $rows - 1;
		push @out, ['head', 'q quit  p ' . ($v->{paused} ? 'go on' : 'pause') . "  s sort by $v->{sort}  ? help"];
	}
	return map { painted($_->[0], $columns, $rows, $colour ? $_ : ['', $_->[1]]) } @out;
}

sub painted ($mark, $columns, $rows, $line) {
	my $text = $rows ? cut($line->[1], $columns) : $line->[1] =~ s/\s+\z//r;
	return $line->[0] eq 'bad' ? "\e[1;31m$text\e[0m" : $line->[0] eq 'head' ? "\e[7m" . left($text, $columns) . "\e[0m" : $text;
}

# Each table gets its title and a row, then the room that is left goes around.
sub fitted ($tables, $room) {
	my @shown = map { scalar @{ $_->{rows} } } @$tables;
	if (defined $room) {
		my $used = 0;
		@shown = map { my $fits = $used + 2 <= $room; $used += 2 if $fits; $fits ? 1 : 0 } @$tables;
		my $more = 1;
		while ($more && $used < $room) {
			$more = 0;
			for my $i (grep { $shown[$_] && $shown[$_] < @{ $tables->[$_]{rows} } } 0 .. $#shown) {
				last if $used >= $room;
				$shown[$i]++; $used++; $more = 1;
			}
		}
	}
	my @out;
	for my $i (grep { $shown[$_] } 0 .. $#shown) {
		my ($t, $all) = ($tables->[$i], max(scalar @{ $tables->[$i]{rows} }, $tables->[$i]{all} // 0));
		push @out, ['head', $t->{title}->($shown[$i] < $all ? " ($shown[$i] of $all)" : '')], @{ $t->{rows} }[0 .. $shown[$i] - 1];
	}
	return @out;
}

sub help ($columns, $rows) {
	my @text = split /\n/, <<'EOT';
q  quit      p  pause, go on      s  sort the running requests      ?  this page

in cache   look-ups of names that needed no thread
STAGE      where requests spend their time; p50, p99: of the last interval
           stat-queue, read-queue: waiting for a thread   stat, read: the disk
           write: the client and the network    proxy: the application
           "(all)": since the start of the server, which is too old to tell
THREADS    busy = all, and a queue: more threads, or a faster disk
JOBS FOR   what the threads wait for; refused: its queue is full, or it is stuck
DISK       of the kernel, as iostat -x: util, requests in the queue, time of one
CPU        as vmstat: us sy id wa st; cs: context switches; blocked: processes
           that wait for a disk

doc/tuning.md goes from a symptom to the setting.           any key goes back
EOT
	splice @text, $rows if @text > $rows;
	return map { cut($_, $columns) } @text;
}

1;
