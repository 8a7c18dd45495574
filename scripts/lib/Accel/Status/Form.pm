package Accel::Status::Form;
# One form for the status of accel-server and of fcgi-stat-accel; the rates between two of them.
#
# What a server sends may be anything: each number is a number or 0, each text has no control characters and has a bound.
use v5.36;

use List::Util qw(max min sum0);
use Time::HiRes ();

use constant { TEXT_MAX => 512, ROWS_MAX => 1000, BUCKETS_MAX => 1000 };

# ---------------------------------------------------------------- safe values

sub number ($v) { return defined $v && !ref $v && $v =~ /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\z/a && abs $v < 1e19 ? max(0, $v + 0) : 0 }

# Control characters, including those of C1 and of the direction of text, must not reach a terminal.
sub text ($v) {
	return '' if !defined $v || ref $v;
	my $t = substr $v, 0, TEXT_MAX;
	return $t =~ s/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/?/gr;
}

sub hash ($v) { return ref $v eq 'HASH'  ? $v : {} }
sub rows ($v) { return ref $v eq 'ARRAY' ? grep { ref eq 'HASH' } @$v[0 .. min($#$v, ROWS_MAX - 1)] : () }
sub numbers ($v, @names) { return map { $_ => number(hash($v)->{$_}) } @names }

# ---------------------------------------------------------------- the form

sub form ($page) {
	my $counters = hash($page->{counters});
	my $form = exists $counters->{'server.requests.read'} ? server($page, $counters) : exists $counters->{'accel.requests.read'} ? accel($page, $counters) : return;
	my %pools = %{ hash($page->{threads}) };
	return {
		%$form,
		version  => text($page->{version}),
		time     => Time::HiRes::time(),
		uptime_s => number($page->{uptime_seconds}),
		stages   => stages($page->{stages}, $form->{stage_order}),
		pools    => [map { { name => text($_), numbers($pools{$_}, qw(threads busy queued jobs oldest_ns)) } } order([qw(stat recheck read reread work tls)], keys %pools)],
		devices  => [map { device($_) } rows($page->{devices})],
		memory   => memory($page->{memory}, $counters),
		oldest_ns => max(0, map { number(hash($_)->{oldest_ns}) } values %pools),
		counters => { map { text($_) => number($counters->{$_}) } (sort keys %$counters)[0 .. min(ROWS_MAX, scalar keys %$counters) - 1] },
	};
}

# Known names first, in their order.
sub order ($known, @names) {
	my %left = map { $_ => 1 } @names;
	return (grep { delete $left{$_} } @$known), (sort keys %left)[0 .. min(ROWS_MAX, scalar keys %left) - 1];
}

sub device ($d) {
	return { device => text($d->{device}), mount => text($d->{mount}), numbers($d, qw(busy queued oldest_ns refused)), stuck => $d->{stuck} ? 1 : 0 };
}

# undef: the server is too old; a number that its kernel does not have is undef, too.  The pressure is that of the cgroup, else of the machine.
sub memory ($m, $c) {
	return undef unless ref $m eq 'HASH' && defined $m->{limit_bytes};
	my $of = hash(hash($m->{pressure})->{cgroup} // hash($m->{pressure})->{machine});
	return {
		(map { $_ => defined $m->{$_} ? number($m->{$_}) : undef } qw(limit_bytes used_bytes refault_bytes hotset_bytes)),
		refaults_of => text($m->{refaults_of}), stalled_ns => defined $of->{some_ns} ? number($of->{some_ns}) : undef,
		pages_gone => number($c->{'server.io.pages-gone'}), loop_waits => number($c->{'server.io.loop-waits'}),
	};
}

sub stages ($all, $order) {
	$all = hash($all);
	return [map { { name => text($_), numbers($all->{$_}, qw(count sum_ns p50_ns p99_ns max_ns)), buckets => buckets(hash($all->{$_})->{buckets}) } } order($order, keys %$all)];
}

# [[bound, count]...], or undef if the server is too old to send them.
sub buckets ($list) {
	return undef unless ref $list eq 'ARRAY';
	return [map { [map { number($_) } @$_[0, 1]] } grep { ref eq 'ARRAY' } @$list[0 .. min($#$list, BUCKETS_MAX - 1)]];
}

sub server ($page, $c) {
	my %n = map { s/^server\.//r => number($c->{$_}) } grep { /^server\./ } keys %$c;
	my $running = hash($page->{running});
	return {
		server => 'accel-server', name => text(hash($page->{host})->{address}),
		requests => $n{'requests.replied'} // 0, bytes => $n{'bytes-sent'} // 0, failed => $n{'requests.replied-5xx'} // 0, gone => $n{'connections.client-gone'} // 0,
		hits => ($n{'cache.hits'} // 0) + ($n{'cache.absent-hits'} // 0),
		lookups => sum0(map { $n{"cache.$_"} // 0 } qw(hits absent-hits misses joins)),
		connections => { numbers($page->{connections}, qw(open busy limit)), by_state => { numbers(hash($page->{connections})->{by_state}, qw(idle head body handle write close)) } },
		tls => { done => sum0(map { $n{$_} } grep { /^tls\.done\./ } keys %n), resumed => sum0(map { $n{$_} } grep { /^tls\.done\..*\.resumed\z/ } keys %n),
			failed => $n{'tls.failed'} // 0, refused => $n{'tls.failed.refused'} // 0 },
		stage_order => [qw(handshake stat-queue stat proxy-queue proxy read-queue read handover write total)],
		applications => [map { application($_) } rows($page->{backends})],
		running => { numbers($running, qw(requests more)), rows => [map { running($_) } rows($running->{rows})] },
		waiting => number(hash($page->{disk})->{jobs}), advice => [],
	};
}

sub application ($b) {
	return { (map { $_ => text($b->{$_}) } qw(name state reason)), numbers($b, qw(block requests failed load waiting sockets sockets_idle workers_that_find_it_down own_5xx_sum since)),
		stages => stages($b->{stages}, [qw(wait connect first-byte reply)]) };
}

sub running ($r) {
	return { (map { $_ => text($r->{$_}) } qw(id client method url state backend device)), numbers($r, qw(age_ms sent_bytes)) };
}

sub accel ($page, $c) {
	my %n = map { s/^accel\.//r => number($c->{$_}) } grep { /^accel\./ } keys %$c;
	my $hits = ($n{'files.hot'} // 0) + ($n{'files.remembered'} // 0);
	my $advice = $page->{advice};
	return {
		server => 'fcgi-stat-accel', name => text($page->{mode}),
		requests => number(hash(hash($page->{stages})->{total})->{count}), bytes => ($n{'bytes.before'} // 0) + ($n{'bytes.behind'} // 0),
		failed => ($n{'answers.503'} // 0) + ($n{'answers.500'} // 0), gone => $n{'requests.aborted'} // 0,
		hits => $hits, lookups => $hits + ($n{'files.cold'} // 0) + ($n{'files.joined'} // 0),
		connections => { numbers($page->{connections}, qw(open limit)), busy => number(hash($page->{requests})->{waiting}), by_state => {} },
		stage_order => [qw(stat-queue stat read total)],
		applications => [], running => { requests => number(hash($page->{requests})->{waiting}), more => 0, rows => [] },
		waiting => number(hash($page->{requests})->{waiting}), cpu_ns => number($page->{cpu_ns}),
		advice => [map { { id => text($_->{id}), seen => text($_->{seen}), do => text($_->{do}) } } rows($advice)],
	};
}

# ---------------------------------------------------------------- two of them

# undef: the server was started again in between, or another one answers.
sub rates ($before, $after) {
	my $seconds = $after->{time} - $before->{time};
	return undef if $seconds <= 0 || $before->{server} ne $after->{server} || $after->{uptime_s} < $before->{uptime_s} || $after->{requests} < $before->{requests};
	my %per_s = map { ("${_}_per_s" => max(0, $after->{$_} - $before->{$_}) / $seconds) } qw(requests bytes failed gone);
	my %app = map { ("$_->{block} $_->{name}" => $_) } @{ $before->{applications} };
	my %pool = map { ($_->{name} => $_) } @{ $before->{pools} };
	my $lookups = $after->{lookups} - $before->{lookups};
	return {
		seconds => $seconds, %per_s,
		hit_ratio => $lookups > 0 ? max(0, $after->{hits} - $before->{hits}) / $lookups : undef,
		cpu_percent => defined $after->{cpu_ns} ? max(0, $after->{cpu_ns} - $before->{cpu_ns}) / 1e7 / $seconds : undef,
		tls => tls_between($before->{tls}, $after->{tls}, $seconds),
		memory => memory_between($before->{memory}, $after->{memory}, $seconds),
		stages => stages_between($before->{stages}, $after->{stages}, $seconds),
		pools => { map { $_->{name} => max(0, $_->{jobs} - ($pool{ $_->{name} } // { jobs => 0 })->{jobs}) / $seconds } @{ $after->{pools} } },
		applications => [map { application_between($app{"$_->{block} $_->{name}"}, $_, $seconds) } @{ $after->{applications} }],
	};
}

# Bytes and events in a second; stalled is the share of the time in which a process waited for memory.
sub memory_between ($before, $after, $seconds) {
	return undef unless $before && $after;
	my %per_s = map { ("${_}_per_s" => defined $before->{$_} && defined $after->{$_} ? max(0, $after->{$_} - $before->{$_}) / $seconds : undef) } qw(refault_bytes pages_gone loop_waits stalled_ns);
	my $stalled = delete $per_s{stalled_ns_per_s};
	return { %per_s, stalled => defined $stalled ? min(1, $stalled / 1e9) : undef };
}

# Handshakes in a second; resumed is their share.
sub tls_between ($before, $after, $seconds) {
	return undef unless $before && $after;
	my %n = map { $_ => max(0, $after->{$_} - $before->{$_}) } qw(done resumed failed refused);
	return { (map { ("${_}_per_s" => $n{$_} / $seconds) } qw(done failed refused)), resumed => $n{done} > 0 ? min(1, $n{resumed} / $n{done}) : undef };
}

sub application_between ($before, $after, $seconds) {
	$before //= { requests => 0, failed => 0, stages => [] };
	return { name => $after->{name}, stages => stages_between($before->{stages}, $after->{stages}, $seconds),
		map { ("${_}_per_s" => max(0, $after->{$_} - $before->{$_}) / $seconds) } qw(requests failed) };
}

# Stages of the time between, if both have buckets; otherwise since the start of the server, and then whole is 1.
sub stages_between ($before, $after, $seconds) {
	my %old = map { ($_->{name} => $_) } @$before;
	my @rows;
	for my $s (@$after) {
		my $was = $old{ $s->{name} } // { count => 0, buckets => $s->{buckets} ? [] : undef };
		my $count = max(0, $s->{count} - $was->{count});
		my %row = (name => $s->{name}, count => $count, per_s => $count / $seconds);
		if ($s->{buckets} && $was->{buckets}) {
			my $new = difference($was->{buckets}, $s->{buckets});
			@row{qw(p50_ns p99_ns whole)} = ((map { percentile($new, $count, $_, $s->{max_ns}) } 0.5, 0.99), 0);
		} else {
			@row{qw(p50_ns p99_ns whole)} = (@$s{qw(p50_ns p99_ns)}, 1);
		}
		push @rows, \%row;
	}
	return \@rows;
}

sub difference ($before, $after) {
	my %was = map { ($_->[0] => $_->[1]) } @$before;
	return [sort { $a->[0] <=> $b->[0] } grep { $_->[1] > 0 } map { [$_->[0], $_->[1] - ($was{ $_->[0] } // 0)] } @$after];
}

# The bound of the bucket that has the value; for a value beyond all bounds, the largest value ever.  undef: no value.
sub percentile ($buckets, $count, $p, $max_ns) {
	return undef unless $count > 0;
	my $seen = 0;
	for my $b (@$buckets) {
		return min($b->[0], $max_ns) if ($seen += $b->[1]) >= $p * $count;
	}
	return $max_ns;
}

1;
