package Accel::Top::Screen;
# A status, its rates and the lanes as lines of text, for a terminal of a given size or for a pipe.
use v5.36;

use Accel::Status::Form ();
use Accel::Top::Hint    ();
use List::Util qw(max min sum0);

use constant { COLUMNS_MIN => 40, LEFT => 36, RIGHT => 44, BUSY_PERCENT => 90 };

my %SORTS = (
	age    => sub ($one, $other) { $other->{age_ms} <=> $one->{age_ms} },
	sent   => sub ($one, $other) { $other->{sent_bytes} <=> $one->{sent_bytes} },
	client => sub ($one, $other) { $one->{client} cmp $other->{client} },
);
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

sub span ($ns) {
	return '-' unless defined $ns;
	return '0' if $ns == 0;
	return $ns < 1e9 ? scaled($ns / 1000, 1000, 'us', 'ms') : $ns < 120e9 ? scaled($ns / 1e9, 1e9, 's') : sprintf '%.0f min', $ns / 60e9;
}

sub percent ($n, $digits = 1) { return defined $n ? sprintf('%.*f %%', $digits, $n) : '-' }

sub uptime ($s) { return ($s >= 86400 ? int($s / 86400) . ' d ' : '') . sprintf '%02d:%02d:%02d', $s / 3600 % 24, $s / 60 % 60, $s % 60 }

# ---------------------------------------------------------------- text in columns

# Columns that a text takes in a terminal: two for wide characters, none for combining ones.
sub width ($text) { return length($text) + (() = $text =~ /[\p{East_Asian_Width=W}\p{East_Asian_Width=F}]/g) - (() = $text =~ /\p{M}/g) }

# Cut to n columns; "~" shows that text was cut.
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
	my $who = $s ? "$s->{server} $s->{version}  $v->{where}  up " . uptime($s->{uptime_s}) : $v->{where} // 'this machine';
	my @out = (['', $who . ($v->{paused} ? '  PAUSED' : '')]);
	push @out, ['bad', "! $v->{error}"] if defined $v->{error};
	push @out, rate_line($s, $r), connection_line($s), tls_line($s, $r), memory_line($s, $r), map { ['bad', "! $_->{id}: $_->{seen} $_->{do}"] } @{ $s->{advice} } if $s;
	push @out, cpu_line($v->{lanes}) if $v->{lanes};
	my $hint = Accel::Top::Hint::sentence($v);
	return @out, $hint ne '' ? ['bad', "! $hint"] : ();
}

# Wraps sentences, so that they can be read to their end; numbers are cut.
sub wrapped ($line, $columns) {
	my ($mark, $text) = @$line;
	return $line if $text !~ /^! / || width($text) <= $columns;
	my @out = '';
	for my $word (split ' ', $text) {
		push @out, ' ' if width("$out[-1] $word") > $columns && $out[-1] =~ /\S/;
		$out[-1] .= length $out[-1] ? " $word" : $word;
	}
	return map { [$mark, $_] } @out;
}

sub rate_line ($s, $r) {
	my $bytes = $s->{server} eq 'accel-server' ? 'sent' : 'made warm';
	return ['', count($s->{requests}) . ' requests and ' . bytes($s->{bytes}) . " $bytes since the start; rates follow"] unless $r;
	my $failed = $r->{failed_per_s} > 0;
	return [$failed ? 'bad' : '', join '  ',
		count($r->{requests_per_s}) . ' requests/s',
		"$bytes " . bytes($r->{bytes_per_s}) . '/s',
		($failed ? '! ' : '') . 'failed ' . count($r->{failed_per_s}) . '/s',
		'gone ' . count($r->{gone_per_s}) . '/s',
		'in cache ' . percent(defined $r->{hit_ratio} ? 100 * $r->{hit_ratio} : undef),
		defined $r->{cpu_percent} ? 'CPU ' . percent($r->{cpu_percent}) : ()];
}

sub connection_line ($s) {
	my $c = $s->{connections};
	my $state = $c->{by_state};
	return ['', "connections $c->{open} of $c->{limit}: " . (%$state ? join('  ', map { "$state->{$_} $_" } qw(idle head body handle write close)) : "$c->{busy} requests wait") . ($c->{streams} ? "  streams $c->{streams}" : '')];
}

# Nothing for a server that nobody has asked for TLS.
sub tls_line ($s, $r) {
	my $t = $s->{tls};
	return unless $t && ($t->{done} || $t->{failed});
	my $n = $r && $r->{tls} or return ['', 'TLS ' . count($t->{done}) . ' handshakes, ' . count($t->{resumed}) . ' resumed, ' . count($t->{failed}) . ' failed'];
	my ($stage) = grep { $_->{name} eq 'handshake' } @{ $r->{stages} };
	my $refused = $n->{refused_per_s} > 0;
	return [$refused ? 'bad' : '', join '  ',
		'TLS ' . count($n->{done_per_s}) . ' handshakes/s',
		'resumed ' . percent(defined $n->{resumed} ? 100 * $n->{resumed} : undef),
		'failed ' . count($n->{failed_per_s}) . '/s',
		$refused ? '! refused ' . count($n->{refused_per_s}) . '/s' : (),
		$stage ? 'p99 ' . span($stage->{p99_ns}) : ()];
}

# Nothing for a server that does not report memory.
sub memory_line ($s, $r) {
	my $m = $s->{memory} or return;
	my $n = $r && $r->{memory};
	my $waits = $n && ($n->{loop_waits_per_s} // 0) > 0;
	return [$waits ? 'bad' : '', join '  ',
		'memory ' . (defined $m->{used_bytes} ? bytes($m->{used_bytes}) . ' of ' : 'limit ') . bytes($m->{limit_bytes}),
		$m->{hotset_bytes} ? 'held ' . bytes($m->{hotset_bytes}) : (),
		$n ? (defined $n->{refault_bytes_per_s} ? 'again ' . bytes($n->{refault_bytes_per_s}) . '/s' : (), 'gone ' . count($n->{pages_gone_per_s}) . '/s',
			defined $n->{stalled} ? 'stalled ' . percent(100 * $n->{stalled}) : ()) : (),
		($waits ? '! ' : '') . "loop waits $m->{loop_waits}"];
}

sub cpu_line ($l) {
	my %n = map { my $v = $l->{$_}; ($_ => defined $v ? sprintf('%.0f', $v) : '-') } qw(us sy id wa st blocked);
	my %per_s = map { my $v = $l->{$_}; ($_ => (defined $v ? bytes($v * 1024) : '-') . '/s') } qw(bi bo);
	return ['', 'CPU ' . join(' ', map { "$_ $n{$_}" } qw(us sy id wa st)) . " %  blocked $n{blocked}  cs " . count($l->{cs}) . "/s  in $per_s{bi} out $per_s{bo}"];
}

# [text, width]... beside each other, at the right of their columns.
sub columns (@cells) { return join '', map { right(@$_) } @cells }

sub stage_lines ($s, $r) {
	my %seen = map { ($_->{name} => 1) } grep { $_->{count} || $_->{name} eq 'total' } @{ $s->{stages} };
	my @rows = $r ? @{ $r->{stages} } : map { { %$_, whole => 1 } } @{ $s->{stages} };
	my $title = 'STAGE' . (grep({ $_->{whole} } @rows) ? ' (all)' : '');
	return ['head', left($title, 12) . columns(['per s', 7], ['p50', 8], ['p99', 8])],
		map { ['', left($_->{name}, 12) . columns([$r ? count($_->{per_s}) : '-', 7], [span($_->{p50_ns}), 8], [span($_->{p99_ns}), 8])] }
		grep { $seen{ $_->{name} } } @rows;
}

sub pool_lines ($s, $r) {
	my @out = (['head', left('THREADS', 8) . columns(['busy', 9], ['queued', 8], ['jobs/s', 9], ['oldest', 9])]);
	for my $p (grep { $_->{threads} || $_->{jobs} } @{ $s->{pools} }) {
		my $rate = $r ? count($r->{pools}{ $p->{name} }) : '-';
		push @out, [$p->{busy} >= $p->{threads} && $p->{queued} ? 'bad' : '', left($p->{name}, 8)
			. columns(["$p->{busy} of $p->{threads}", 9], [count($p->{queued}), 8], [$rate, 9], [span($p->{oldest_ns}), 9])];
	}
	return @out;
}

# Two parts side by side; one below the other if the screen is narrow.
sub beside ($columns, $one, $other) {
	return (@$one, @$other) if $columns < LEFT + RIGHT;
	my @out;
	for my $i (0 .. max($#$one, $#$other)) {
		my ($l, $r) = ($one->[$i] // ['', ''], $other->[$i] // ['', '']);
		push @out, [$l->[0] || $r->[0], left($l->[1], LEFT) . '|' . $r->[1]];
	}
	return @out;
}

# ---------------------------------------------------------------- tables of which any number of rows can be shown

# [{ title, rows => [[mark, text]...], all }...]; a title has "(n of m)" if rows are left out, all is their number if not all are known.
sub tables ($v, $columns) {
	my ($s, $r) = @$v{qw(status rates)};
	my @all = $v->{lanes} ? disk_table($v->{lanes}{disks}, $columns) : ();
	push @all, device_table($s, $columns), application_table($s, $r, $columns), request_table($s, $v->{sort}, $columns) if $s;
	return grep { @{ $_->{rows} } } @all;
}

# Without disks that do nothing and are not mounted.
sub disk_table ($disks, $columns) {
	my $wide = max(14, $columns - 58);
	my @rows;
	for my $name (sort { $disks->{$b}{util} <=> $disks->{$a}{util} || $disks->{$b}{queue} <=> $disks->{$a}{queue} || $a cmp $b } keys %$disks) {
		my $d = $disks->{$name};
		next unless defined $d->{mount} || $d->{util};
		push @rows, [$d->{util} >= BUSY_PERCENT ? 'bad' : '', left(join(' ', map { Accel::Status::Form::text($_) } $name, $d->{mount} // ()), $wide)
			. columns([percent($d->{util}, 0), 7], [$d->{queue}, 8], [scaled($d->{await_ms}, 1e6, 'ms'), 9], [count($d->{reads_per_s}), 9],
				[bytes($d->{read_mb_per_s} * 1e6) . '/s', 12], [bytes($d->{write_mb_per_s} * 1e6) . '/s', 12])];
	}
	my $title = columns(['util', 7], ['queue', 8], ['await', 9], ['reads/s', 9], ['read', 12], ['written', 12]);
	return { title => sub ($of) { left("DISK$of", $wide) . $title }, rows => \@rows };
}

sub device_table ($s, $columns) {
	my $wide = max(14, $columns - 47);
	my @rows;
	for my $d (sort { $b->{oldest_ns} <=> $a->{oldest_ns} || $b->{busy} <=> $a->{busy} } @{ $s->{devices} }) {
		my $name = $d->{mount} eq '' ? $d->{device} : "$d->{mount} ($d->{device})";
		push @rows, [$d->{stuck} || $d->{refused} ? 'bad' : '', left($name, $wide)
			. columns([$d->{busy}, 7], [count($d->{queued}), 8], [span($d->{oldest_ns}), 10], [count($d->{refused}), 10]) . ($d->{stuck} ? '  ! STUCK' : '')];
	}
	my $title = columns(['busy', 7], ['queued', 8], ['oldest', 10], ['refused', 10], ['', 12]);
	return { title => sub ($of) { left("JOBS FOR$of", $wide) . $title }, rows => \@rows };
}

# "! check-failed: HTTP 500"; a server that is too old for this gives a number of workers.
sub application_state ($a) {
	return $a->{workers_that_find_it_down} ? "! $a->{workers_that_find_it_down}" : 0 if $a->{state} eq '';
	return $a->{state} if $a->{state} eq 'up' || $a->{state} eq 'slow-start';
	return "! $a->{state}" . ($a->{reason} ne '' ? ": $a->{reason}" : '');
}

sub application_table ($s, $r, $columns) {
	my @state = map { application_state($_) } @{ $s->{applications} };
	my $last = 2 + max(5, min($columns - 68, 40, max(5, map { length } @state)));
	my $wide = max(20, $columns - 46 - $last);
	my @rows;
	for my $i (sort { $s->{applications}[$b]{load} <=> $s->{applications}[$a]{load} || $a <=> $b } 0 .. $#{ $s->{applications} }) {
		my ($a, $n) = ($s->{applications}[$i], $r ? $r->{applications}[$i] : undef);
		my ($first) = grep { $_->{name} eq 'first-byte' } @{ ($n // $a)->{stages} };
		push @rows, [$state[$i] =~ /^!/ || $n && $n->{failed_per_s} > 0 ? 'bad' : '', left($a->{name}, $wide)
			. columns([$n ? count($n->{requests_per_s}) : '-', 8], [max(0, $a->{load} - $a->{waiting}), 7], [$a->{waiting}, 9],
				[$n ? count($n->{failed_per_s}) : '-', 10], [span($first ? $first->{p99_ns} : undef), 12], [cut($state[$i], $last - 2), $last])];
	}
	my $title = columns(['req/s', 8], ['busy', 7], ['waiting', 9], ['failed/s', 10], ['first byte', 12], ['state', $last]);
	return { title => sub ($of) { left("APPLICATION$of", $wide) . $title }, rows => \@rows };
}

sub request_table ($s, $sort, $columns) {
	my $by = $SORTS{ $sort // 'age' };
	my $wide = max(10, $columns - 48);
	my @rows;
	for my $q (sort { $by->($a, $b) || $b->{age_ms} <=> $a->{age_ms} } @{ $s->{running}{rows} }) {
		my $what = "$q->{method} $q->{url}" . ($q->{backend} ne '' ? " > $q->{backend}" : $q->{device} ne '' ? " on $q->{device}" : '');
		push @rows, ['', columns([span($q->{age_ms} * 1e6), 9], [bytes($q->{sent_bytes}), 10]) . '  ' . left($q->{state}, 7) . ' ' . left($q->{client}, 16) . ' ' . cut($what, $wide)];
	}
	my $title = columns(['AGE', 9], ['SENT', 10]) . '  ' . left('STATE', 8) . left('CLIENT', 17);
	return { title => sub ($of) { $title . left("REQUEST$of", $wide) }, rows => \@rows, all => $s->{running}{requests} };
}

# ---------------------------------------------------------------- all of it

# Lines for a screen; rows 0: as many as there are, for a pipe.
sub lines ($v, $columns, $rows, $colour) {
	$columns = max(COLUMNS_MIN, $columns);
	my @out = map { $rows && $_->[0] eq 'bad' ? wrapped($_, $columns) : $_ } head_lines($v);
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

# Each table gets its title and a row; then the tables share the room that is left.
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
memory     again: files dropped and read again; gone: windows that left before
           they were sent; stalled: time that processes waited for memory
DISK       of the kernel, as iostat -x: util, requests in the queue, time of one
CPU        as vmstat: us sy id wa st; cs: context switches; blocked: processes
           that wait for a disk

tuning.md, in share/doc/stat-accel/doc, goes from a symptom to the setting.
                                                            any key goes back
EOT
	splice @text, $rows if @text > $rows;
	return map { cut($_, $columns) } @text;
}

1;
