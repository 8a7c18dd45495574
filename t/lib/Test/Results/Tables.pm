package Test::Results::Tables;
# Figures of scripts/bench as tables in Markdown.
#
#     my $block = Test::Results::Tables->blocks({ hot => $figures_of_bench_hot, ... });
#     print $block->{hot};
#
# A block needs figures of one step or of several. It is left out when they are missing. Numbers have three digits: no figure
# here repeats better than that.
use v5.36;
use POSIX qw(floor);

my %NEEDS = (
	hot => [qw(hot idle)], accel => ['accel'], cold => ['cold'], fcgi => ['fcgi'], asking => ['hotcost'], load => ['load'], pressure => ['pressure'], tls => ['tls'], http2 => ['http2'], floods => ['floods'],
);
my %MAKE = (hot => \&_hot, accel => \&_accel, cold => \&_cold, fcgi => \&_fcgi, asking => \&_asking, load => \&_load, pressure => \&_pressure, tls => \&_tls, http2 => \&_http2, floods => \&_floods);

sub blocks ($class, $figures) {
	my %block;
	for my $name (sort keys %NEEDS) {
		my @of = map { $figures->{$_} // () } @{ $NEEDS{$name} };
		$block{$name} = $MAKE{$name}->(@of) if @of == @{ $NEEDS{$name} };
	}
	return \%block;
}

# ------------------------------------------------------------- numbers and tables

# Three digits, and commas between thousands: 199,000  75.3  0.377.
sub number ($n) {
	return '-' unless defined $n;
	my $three = 0 + sprintf '%.3g', $n;
	my $digits = $three == 0 ? 0 : 2 - floor(log(abs $three) / log 10);
	my $text = sprintf '%.*f', $digits > 0 ? $digits : 0, $three;
	1 while $text =~ s/^(-?\d+)(\d{3})/$1,$2/;
	return $text;
}

sub ratio ($a, $b) { return defined $a && $b ? sprintf($a < 10 * $b ? '%.2f' : '%.1f', $a / $b) : '-' }

sub bold ($text) { return "**$text**" }

# A table: heads, then rows, each an array.
sub table ($heads, @rows) {
	return join '', map { '| ' . join(' | ', @$_) . " |\n" } $heads, [map { '---' } @$heads], @rows;
}

# ------------------------------------------------------------- the blocks

my @HOT = (
	['1k', '1 kB, keep-alive', 'req/s'], ['1k-1000', '1 kB, keep-alive, 1000 connections', 'req/s'], ['pipe', '1 kB, 16 pipelined', 'req/s'],
	['10k', '10 kB, keep-alive', 'req/s'], ['100k', '100 kB, keep-alive', 'req/s'], ['10m', '10 MB, 10 connections', 'GB/s'],
	['close', '1 kB, a connection each', 'req/s'], ['404', '404, keep-alive', 'req/s'],
);

sub _hot ($hot, $idle) {
	my @rows;
	for my $case (@HOT) {
		my ($name, $title, $unit) = @$case;
		my $of = $hot->{hot}{$name} // next;
		my $rate = $unit eq 'GB/s' ? $of->{accel}{mb} / 1000 : $of->{accel}{rps};
		my $full = ($of->{accel}{client_busy} // 0) > 94 ? ' (the load generator is full)' : '';
		push @rows, [$title, number($rate) . " $unit$full", (map { bold(ratio($of->{accel}{rps}, $of->{$_}{rps})) } qw(nginx lighttpd)),
			join ', ', map { number($of->{$_}{cpu}) } qw(accel nginx lighttpd floor)];
	}
	my $kb = $idle->{idle};
	push @rows, ['memory per idle connection', (map { sprintf '%.2f kB', $kb->{$_}{kb_each} } qw(accel nginx lighttpd)), ''];
	return table(['hot files, 100 connections', 'accel-server', '× nginx', '× lighttpd', 'CPU µs per request: ours, nginx, lighttpd, floor'], @rows);
}

sub _accel ($figures) {
	my $of = $figures->{accel};
	my @rows;
	my %called = ('nginx-aio' => 'nginx, `aio threads`');
	my %helped = ('' => '', '+accel' => ' + fcgi-stat-accel', '+module' => ' + module and fcgi-stat-accel');
	for my $server (qw(nginx nginx-aio lighttpd)) {
		for my $with ('', '+accel', '+module') {
			my $name = "$server$with";
			next unless $of->{'cold-100k-16'}{$name};
			my $emphasis = $with ? \&bold : sub ($text) { $text };
			my @beside = map { $of->{$_}{$name} // {} } map { "$_-16" } qw(1x100k 1x10m 20x100k);
			push @rows, [($called{$server} // $server) . $helped{$with}, ms($beside[0]{alone_p99}),
				(map { $emphasis->(ms($_->{p99})) } @beside),
				(map { $emphasis->(number($of->{$_}{$name}{mb})) } qw(cold-100k-16 cold-10m-16)), number($of->{'cold-100k-16'}{$name}{cpu})];
		}
	}
	my @disk = map { number($of->{"$_-16"}{'the rig'}{mb}) } qw(cold-100k cold-10m);
	return table(['', 'hot p99 alone, ms', 'beside 1 client of cold 100 kB', '1 of cold 10 MB', '20 of cold 100 kB',
		"cold 100 kB, MB/s of $disk[0]", "cold 10 MB, MB/s of $disk[1]", 'CPU µs per cold 100 kB'], @rows);
}

sub ms ($us) { return defined $us ? number($us / 1000) : '-' }

sub _cold ($figures) {
	my @rows;
	my ($beside, $through) = @$figures{qw(beside through)};
	for my $row (['adaptive', 'accel-server'], ['accel+fcgi', 'accel-server + fcgi-stat-accel'], ['nginx', 'nginx'], ['nginx-aio', 'nginx, `aio threads`'],
		['lighttpd', 'lighttpd'], ['apache', 'Apache, event']) {
		my ($name, $title) = @$row;
		my @cases = map { $beside->{$_}{$name} // {} } qw(1x100k 1x10m 20x100k);
		next unless defined $cases[0]{p99};
		my $emphasis = $name eq 'adaptive' ? \&bold : sub ($text) { $text };
		push @rows, [$title, ms($cases[0]{alone_p99}), (map { $emphasis->(ms($_->{p99})) } @cases), number($cases[2]{served}),
			$emphasis->(number($through->{'16-spindles'}{$name}{mb}))];
	}
	my $disk = number($through->{'16-spindles'}{rig}{mb});
	return table(['', 'alone', 'beside 1 client of cold 100 kB', '1 of cold 10 MB', '20 of cold 100 kB', 'hot served beside those, of 1000',
		"cold 100 kB files, MB/s of $disk"], @rows);
}

# Half of the files fit into memory.  A row for each server: how long the hot file waits, and what its loop did.
my @PRESSED = (map({ [$_, "accel-server, `$_`"] } qw(adaptive linux-sendfile gthread-aio writev gthread-sendfile posix-aio linux-aio-sendfile io-uring)),
	['nginx', 'nginx'], ['nginx-aio', 'nginx, `aio threads`'], ['lighttpd', 'lighttpd'], ['apache', 'Apache, event'],
	['nginx+accel', 'nginx + fcgi-stat-accel'], ['lighttpd+accel', 'lighttpd + fcgi-stat-accel']);

sub _pressure ($figures) {
	my ($slow, $hung) = @{ $figures->{pressure}{'50 %'} }{qw(slow hung)};
	my $slept = sub ($m) { return defined $m->{slept_ms} ? number($m->{slept_ms}) : '-' };
	my @rows;
	for my $row (@PRESSED) {
		my ($name, $title) = @$row;
		my ($s, $h) = ($slow->{$name} // next, $hung->{$name} // next);
		my $emphasis = $name eq 'adaptive' || $name =~ /\+accel/ ? \&bold : sub ($text) { $text };
		push @rows, [$title, number($s->{alone_p99}), $emphasis->(number($s->{p99})), $slept->($s), number($s->{cold_mb}),
			$emphasis->(sprintf '%.0f %%', $h->{answered_pc}), number($h->{p99}), $slept->($h), $h->{cold_stuck}];
	}
	return table(['memory for half of the files', 'hot p99 alone, ms', 'beside 20 cold clients, slow disk', 'longest sleep of the loop, ms', 'cold MB/s',
		'the disk hangs: hot requests answered', 'p99, ms', 'longest sleep of the loop, ms', 'cold requests without an end'], @rows);
}

sub _fcgi ($figures) {
	my $of = $figures->{fcgi};
	my ($ours) = sort { $a->{cpu} <=> $b->{cpu} } map { $of->{'hot-kept'}{$_} } grep { /^ours/ } keys %{ $of->{'hot-kept'} };
	my ($textbook) = sort { $a->{cpu} <=> $b->{cpu} } map { $of->{'hot-kept'}{$_} } grep { /^textbook/ } keys %{ $of->{'hot-kept'} };
	return table(['', 'fcgi-stat-accel', "the program in libfcgi's examples"],
		['CPU µs per hot request, kept connections', map { number($_->{cpu}) } $ours, $textbook],
		['of 200 kept connections on 4 threads, never answered', map { $of->{beyond}{$_}{never} } qw(ours textbook)],
		['memory of a kept connection, kB', sprintf('%.2f', $of->{idle}{bytes_each} / 1000), '-']);
}

my %LOAD = ('1k' => '1 kB, keep-alive, 50 connections', '100k' => '100 kB, keep-alive, 50 connections', '1k-1' => '1 kB, one connection');

sub _load ($figures) {
	my $of = $figures->{load};
	my @with = qw(accel-load wrk h2load);
	return table(['', (map { "$_, req/s" } @with), 'CPU µs per request: accel-load, wrk, h2load'],
		map { my $m = $of->{$_}; [$LOAD{$_}, (map { number($m->{$_}{rps}) } @with), join ', ', map { number($m->{$_}{cpu}) } @with] } grep { $of->{$_} } qw(1k 100k 1k-1));
}

my @TLS = (
	['new-ecdsa', 'a new connection, ECDSA P-256'], ['resumed-ecdsa', '... resumed'], ['new-rsa', '... RSA 2048'], ['resumed-rsa', '... resumed'],
	['1k', '1 kB, keep-alive, 100 connections'], ['1k-1000', '... 1000 connections'], ['100k', '100 kB, keep-alive'], ['10m', '10 MB'],
);
my @BESIDE_TLS = (
	['flood-4096-one', 'handshakes with RSA 4096, one address'], ['flood-4096-many', '... many addresses'],
	['flood-2048-one', '... RSA 2048, one address'], ['flood-2048-many', '... many addresses'], ['cold', '16 clients of cold files'],
);

# What CPU time a request takes, and how long hot ones wait.
sub _tls ($figures) {
	my ($of, @servers) = ($figures->{tls}, qw(accel nginx lighttpd h2o));
	my @cost = map { my ($name, $title) = @$_; my $m = $of->{$name};
		my ($best) = sort { $a <=> $b } grep { $_ } map { $m->{$_}{cpu} } @servers[1 .. 3];
		[$title, (map { number($m->{$_}{cpu}) } @servers), bold(ratio($m->{accel}{cpu}, $best))] } grep { $of->{ $_->[0] } } @TLS;
	my @wait = map { my ($name, $title) = @$_; my $m = $of->{$name};
		[$title, map { $m->{$_} ? _waits($m->{$_}) : '-' } @servers, 'accel-plain'] } grep { $of->{ $_->[0] } } @BESIDE_TLS;
	return table(['CPU µs per request', qw(accel-server nginx lighttpd h2o), 'ours / best other'], @cost) . "\n"
	    . table(['p99 in ms, alone and beside', qw(accel-server nginx lighttpd h2o), 'accel-server without TLS'], @wait);
}

sub _waits ($m) { return number(($m->{alone} // $m->{alone_p99}) / 1000) . ', ' . bold(number($m->{p99} / 1000)) }

my %BYTES = ('1k' => '1 kB', '10k' => '10 kB', '100k' => '100 kB');
my %HOW = (tls => 'TLS', clear => 'in clear');
my @FAIR = (['accel', 'accel-server'], ['nginx', 'nginx'], ['lighttpd', 'lighttpd'], ['h2o', 'h2o'], ['nginx+accel', 'nginx + fcgi-stat-accel']);

# A name of a cell: size, streams, connections, and how.
sub _http2 ($figures) {
	my ($of, $fair, @servers) = ($figures->{http2}, $figures->{fair} // {}, qw(accel nginx lighttpd h2o));
	my @cells = map { my ($size, $streams, $connections, $how) = split /-/; { name => $_, size => $size, streams => $streams, connections => $connections, how => $how } } keys %$of;
	my @cost;
	for my $c (sort { $b->{how} cmp $a->{how} || $a->{size} <=> $b->{size} || $a->{streams} <=> $b->{streams} || $a->{connections} <=> $b->{connections} }
	    map { { %$_, size => $_->{size} =~ s/k//r } } @cells) {
		my $m = $of->{ $c->{name} };
		my ($best) = sort { $a <=> $b } grep { $_ } map { $m->{$_}{cpu} } @servers[1 .. 3];
		push @cost, ["$BYTES{ $c->{size} . 'k' }, $HOW{ $c->{how} }: $c->{streams} × $c->{connections}", (map { number($m->{$_}{cpu}) } @servers),
			bold(ratio($m->{accel}{cpu}, $best)), bold(ratio($m->{accel}{cpu}, $m->{nginx}{cpu}))];
	}
	my @wait = map { my ($name, $title) = @$_; my $m = $fair->{$name};
		[$title, ms($m->{alone_p99}), $name eq 'accel' ? bold(ms($m->{p99})) : ms($m->{p99}), number($m->{served}), number($m->{cold_mb})] } grep { $fair->{ $_->[0] } } @FAIR;
	return table(['CPU µs per request: streams × connections', qw(accel-server nginx lighttpd h2o), 'ours / best other', 'ours / nginx'], @cost)
	    . (@wait ? "\n" . table(['50 hot streams of a connection', 'p99 alone, ms', 'beside 50 cold ones', 'hot served beside those, of 1000', 'cold MB/s'], @wait) : '');
}

# Each attack on accel-server: what healthy clients wait, and what it holds.
sub _floods ($figures) {
	my $of = $figures->{floods};
	return table(['attack', 'p99 alone, ms', 'beside it', 'failed', 'memory before, at most, after, MiB', 'what the server says'],
		map { my $m = $of->{$_}{accel}; ["`$_`", ms($m->{alone}), bold(ms($m->{p99})), $m->{errors}, join(', ', map { number($_) } @$m{qw(before_mib peak_mib after_mib)}), $m->{said}] }
		grep { $of->{$_}{accel} } sort keys %$of);
}

sub _asking ($figures) {
	my $of = $figures->{hotcost}{cost};
	return table(['a hot file of 1 kB', 'server, CPU µs', 'fcgi-stat-accel, CPU µs', 'more than alone'],
		map { my $m = $of->{$_}; my ($server) = /^(\w+)/; my $alone = $of->{"$server alone"};
			[$_, (map { sprintf '%.1f', $_ } @$m{qw(server accel)}), $alone == $m ? '' : sprintf '%.1f', $m->{cpu} - $alone->{cpu}] } sort keys %$of);
}

1;
