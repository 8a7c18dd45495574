# Status pages: off by default, complete, in the formats of browsers and monitoring, and their numbers add up.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::App;
use Test::Fcgi ();
use Test::More;
use Test::Server;
use Test::Util qw(put);

my $urls = <<'END';
status.status-url = "/server-status"
status.statistics-url = "/server-statistics"
status.metrics-url = "/metrics"
END

sub json    { my ($srv) = @_; return JSON::PP->new->utf8->decode($srv->fetch('/server-status?json')->{body}) }
sub numbers { my ($srv) = @_; return map { /\A(.*): ([0-9]+)\z/ ? ($1 => $2) : die "no line: $_" } split /\n/, $srv->fetch('/server-statistics')->{body} }

# Every element is closed, in the order it was opened; quotes end; nothing but markup has angle brackets.
sub html_is_well_formed {
	my ($html) = @_;
	my %void = map { $_ => 1 } qw(meta link br hr img);
	my @open;
	return 'no doctype' unless $html =~ s/\A<!doctype html>//i;
	$html =~ s{<(script|style)>.*?</\1>}{}gs;
	while ($html =~ m{\G([^<>]*)(?:<(/?)([a-z][a-z0-9]*)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*(/?)>|\z)}gc) {
		last unless defined $3;
		my ($end, $name, $self) = ($2, $3, $5);
		return "bare & in '$1'" if $1 =~ /&(?!(?:[a-z]+|#[0-9]+|#x[0-9a-f]+);)/i;
		if ($end)                          { my $was = pop @open // 'nothing'; return "</$name> closes <$was>" if $was ne $name }
		elsif (!$void{$name} && !$self)    { push @open, $name }
	}
	return 'cannot be read from: ' . substr $html, pos($html) // 0, 60 if (pos($html) // 0) != length $html;
	return @open ? "<$open[-1]> stays open" : '';
}

subtest 'a status page exists only at its configured URL' => sub {
	my $off = Test::Server->start(conf => '');
	is $off->fetch($_)->{status}, 404, "$_ is nothing" for qw(/server-status /server-statistics /metrics);
	my $srv = Test::Server->start(conf => $urls);
	is $srv->fetch($_)->{status}, 200, $_ for qw(/server-status /server-statistics /metrics /server%2dstatus /x/../metrics);
	is $srv->fetch($_)->{status}, 404, "$_ is another path" for qw(/server-status/ /server-statu /metrics/x);
};

subtest 'each page has its type, and HEAD no body' => sub {
	my $srv = Test::Server->start(conf => $urls);
	my %type = ('/server-status' => 'text/html; charset=utf-8', '/server-status?json' => 'application/json',
		'/server-status?auto' => 'text/plain; charset=utf-8', '/server-statistics' => 'text/plain; charset=utf-8',
		'/metrics' => 'text/plain; version=0.0.4; charset=utf-8');
	for my $path (sort keys %type) {
		my $r = $srv->fetch($path);
		is $r->{header}{'content-type'}, $type{$path}, "$path: type";
		is $r->{header}{'cache-control'}, 'no-store', '... is not to be kept';
		is $r->{header}{'content-length'}, length $r->{body}, '... and whole';
		my $head = Test::Http::parse($srv->head($path));
		is "$head->{status} $head->{body}", '200 ', '... HEAD has no body';
	}
	for my $method (qw(POST PUT DELETE)) {
		my $r = Test::Http::parse($srv->request("$method /server-status HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
		is "$r->{status} $r->{header}{allow}", '405 GET, HEAD, OPTIONS', $method;
	}
};

subtest 'a condition guards a status page' => sub {
	my $conf = qq{\$HTTP["remoteip"] == "%s" {\n$urls}\n};
	my $open = Test::Server->start(conf => sprintf $conf, '127.0.0.0/8');
	my $shut = Test::Server->start(conf => sprintf $conf, '10.0.0.0/8');
	for (qw(/server-status /server-status?json /server-statistics /metrics)) {
		is $open->fetch($_)->{status}, 200, "$_ for those it is for";
		is $shut->fetch($_)->{status}, 404, '... and closed to every other address';
	}
};

subtest 'ignored settings of lighttpd are reported' => sub {
	my $srv = Test::Server->start(conf => qq{status.enable-sort = "enable"\n$urls});
	is $srv->fetch('/server-status')->{status}, 200, 'the page is there';
	$srv->log_has(qr/status\.enable-sort has no effect/, 'a warning');
};

subtest 'the HTML page shows every number' => sub {
	my $srv = Test::Server->start(conf => $urls);
	my $html = $srv->fetch('/server-status')->{body};
	is html_is_well_formed($html), '', 'well formed';
	my %id = map { $_ => 1 } $html =~ /\bid="([^"]+)"/g;
	ok $id{$_}, "has #$_" for qw(host_addr host_name uptime start_date start_time requests requests_mult traffic traffic_mult
	    requests_avg requests_avg_mult traffic_avg traffic_avg_mult requests_sliding_avg requests_sliding_avg_mult
	    requests_sliding_traffic requests_sliding_traffic_mult connections);
	like $html, qr{<noscript><meta http-equiv="refresh"}, 'reloads where there is no script';
	unlike $html, qr{(?:src|href)="(?!data:)|\bimport\b|https?:}, 'fetches nothing from elsewhere';
	my $json = json($srv);
	for my $key ($html =~ /data-[kgs]="([^"]+)"/g) {
		my $v = $json;
		$v = ref $v eq 'ARRAY' ? $v->[$_] : ref $v eq 'HASH' ? $v->{$_} : undef for split m{/}, $key;
		ok defined $v, "the script finds $key in ?json";
	}
};

# The files of /proc were opened before the sandbox; a look is at most a second old.
subtest 'the memory that there is, and who waits for it' => sub {
	my $srv = Test::Server->start(conf => $urls);
	my $m = json($srv)->{memory};
	my ($ram) = Test::Util::slurp('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB/m;
	ok $m->{limit_bytes} > 0 && $m->{limit_bytes} <= $ram * 1024, 'the limit is at most the memory of the machine' or diag $m->{limit_bytes};
	is exists $m->{pressure}{machine} ? 1 : 0, -r '/proc/pressure/memory' ? 1 : 0, 'pressure, where the kernel has it';
	my $p = $m->{pressure}{machine} // { full_10s => 0, some_10s => 0 };
	ok $p->{full_10s} <= $p->{some_10s} + 0.01 && $p->{some_10s} <= 1, '... as shares of the time';
	like $m->{refaults_of}, qr/\A(?:machine|cgroup)\z/, 'files that were dropped and read again';
	is $m->{hotset_bytes}, 0, 'no window is held';
	my $metrics = $srv->fetch('/metrics')->{body};
	like $metrics, qr/^accel_memory_limit_bytes $m->{limit_bytes}$/m, 'Prometheus reads the same limit';
	like $metrics, qr/^accel_$_ [0-9]+/m, "... and $_" for qw(io_loop_waits_total io_pages_gone_total hotset_bytes hotset_filled_total);
	my %n = numbers($srv);
	is $n{'server.memory.limit-bytes'}, $m->{limit_bytes}, 'the statistics, too';
	put($srv->dir . '/large', 'x' x (8 << 20));
	my $later;
	ok Test::Util::eventually(sub { $later = json($srv)->{memory}; ($later->{used_bytes} // -1) != ($m->{used_bytes} // 0) }), 'each page has a new look';
};

subtest '?auto has the format of Apache' => sub {
	my $srv = Test::Server->start(conf => $urls);
	my @idle = map { my $c = $srv->connect; $c->send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n"); $c->reply; $c } 1 .. 3;
	my $auto;
	# The third reply is here before its connection has gone back to waiting.
	Test::Util::eventually(sub { $auto = $srv->fetch('/server-status?auto')->{body}; $auto =~ /^IdleServers: 3$/m });
	like $auto, qr/\ATotal Accesses: [0-9]+\nTotal kBytes: [0-9]+\nUptime: [0-9]+\nBusyServers: [0-9]+\nIdleServers: 3\nTraffic: [0-9]+\nTraffic5s: [0-9]+\nScoreboard: [rRhWC]+___\n\z/,
	    'the order that is parsed elsewhere, a letter for each connection';
	my ($busy, $letters) = $auto =~ /BusyServers: (\d+).*Scoreboard: ([^_]*)/s;
	is length $letters, $busy, 'busy ones';
};

subtest 'the numbers add up' => sub {
	my $app  = Test::Fcgi->start('--threads', 4);
	my $name = 'unix:' . $app->socket;
	my $srv  = Test::Server->start(conf => <<"END");
$urls
server.max-worker = 3
proxy-core.protocol = "fastcgi"
\$HTTP["url"] =^ "/app/" {
	proxy-core.backends = ( "$name" )
	proxy-core.allow-x-sendfile = "enable"
	proxy-core.max-pool-size = 6
	proxy-core.max-keep-alive-requests = 100
}
\$HTTP["url"] =^ "/dead/" { proxy-core.backends = ( "unix:@{[ $app->socket ]}.none" ) }
END
	$srv->write('small', 'x' x 100);
	$srv->write('large', 'y' x 300_000);
	$srv->write('app/file', 'z' x 5000);
	my %want = (200 => 0, 206 => 0, 304 => 0, 404 => 0, 503 => 0);
	my $bytes = 0;
	for my $round (1 .. 6) {
		my $c = $srv->connect;          # goes to one of three workers
		for my $ask (['/small', 200], ['/large', 200], ['/large', 206, "Range: bytes=5-9\r\n"], ['/none', 404],
			['/small', 304, "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n"], ['/app/file', 200], ['/dead/x', 503]) {
			my ($path, $status, $line) = @$ask;
			$c->send("GET $path HTTP/1.1\r\nHost: x\r\n" . ($line // '') . "\r\n");
			my $r = $c->reply;
			is $r->{status}, $status, "round $round: $path";
			$want{$status}++;
			$bytes += length($r->{head}) + 4 + length $r->{body};
		}
		$c->send("GET /small HTTP/1.1\r\nHost: x\r\n\r\n" x 5);   # answered in one batch
		for (1 .. 5) { my $r = $c->reply; $want{200} += $r->{status} == 200; $bytes += length($r->{head}) + 4 + length $r->{body} }
		$c->send("broken\r\n\r\n");
		my $r = $c->reply;
		is $r->{status}, 400, 'no request';
		$bytes += length($r->{head}) + 4 + length $r->{body};
	}
	my $requests = 6 * 12;                  # and what was refused is a reply, too
	my $j;
	Test::Util::eventually(sub { $j = json($srv); $j->{requests}{replied} >= $requests + 6 && $j->{backends}[0]{stages}{reply}{count} == 6 });
	my $n   = $j->{counters};
	my $own = $n->{'server.requests.read'} - $requests;             # asking for numbers is counted
	cmp_ok $own, '>=', 1, 'the request for the page is counted';
	is $n->{'server.requests.replied'}, $requests + 6 + $own - 1, 'replies: all but the one under way';
	is $n->{'server.requests.replied-2xx'}, $want{200} + $want{206} + $own - 1, '2xx';
	is $n->{'server.requests.replied-3xx'}, $want{304}, '3xx';
	is $n->{'server.requests.replied-4xx'}, $want{404} + 6, '4xx';
	is $n->{'server.requests.replied-5xx'}, $want{503}, '5xx';
	is $n->{'server.requests.refused'}, 6, 'refused';
	is $n->{'server.connections.accepted'}, 6 + $own, 'connections';
	is $n->{'proxy-core.requests'}, 12, 'proxied';
	is $n->{'proxy-core.requests-failed'}, 6, '... without luck';
	is $n->{'proxy-core.sendfile-replies'}, 6, '... sent as files';
	cmp_ok $n->{'server.bytes-sent'}, '>=', $bytes, 'bytes';
	is $j->{stages}{total}{count}, $n->{'server.requests.replied'}, 'each reply is in the histogram of totals';
	is $j->{stages}{proxy}{count}, 12, 'each proxied one in that of its stage';
	cmp_ok $j->{stages}{stat}{count}, '>=', 3, 'cold look-ups left their time';
	my $looked = 0;
	$looked += $n->{"server.cache.$_"} for qw(hits misses joins absent-hits);
	cmp_ok $looked, '>=', $requests - 6 - 12, 'a look-up for each file';
	my $sum = 0;
	$sum += $_->{requests} for @{ $j->{workers} };
	is $sum, $n->{'server.requests.read'}, 'workers add up';
	is scalar @{ $j->{workers} }, 3, 'three of them';
	my ($live, $dead) = @{ $j->{backends} };
	is "$live->{block} $live->{name} $live->{requests} $live->{failed}", "0 $name 6 0", 'the application';
	is join(' ', map { "$_ $live->{stages}{$_}{count}" } qw(wait first-byte reply)), 'wait 6 first-byte 6 reply 6',
	    'each request left its times';
	cmp_ok $live->{stages}{connect}{count}, '>=', 1, 'each connect, too';
	is join(' ', map { $dead->{stages}{$_}{count} } qw(wait connect first-byte reply)), '0 0 0 0', 'the dead one has no times';
	is "$dead->{block} $dead->{requests}", '1 0', 'the dead one';
	cmp_ok $dead->{failed}, '>=', 1, '... failed';
	cmp_ok $j->{threads}{stat}{jobs}, '>=', 3, 'threads';

	my %stat = numbers($srv);
	is $stat{qq{proxy-core.0.backends."$name".requests}}, 6, 'a name as 1.5 had it';
	ok exists $stat{qq{proxy-core.0.backends."$name".$_}}, "... $_" for qw(load pool_size requests_failed);
	is $stat{qq{proxy-core.0.backends."$name".first-byte.count}}, 6, 'times by stage';
	ok exists $stat{qq{proxy-core.0.backends."$name".reply.$_}}, "... $_" for qw(p50-us p99-us max-us);
	is $stat{'proxy-core.0.backlogged'}, 0, 'no request waits';
	ok exists $stat{"server.io.$_"}, "server.io.$_" for map { ("$_.async-read", "$_.sync-read") }
	    qw(writev linux-sendfile gthread-aio gthread-sendfile posix-aio linux-aio io-uring adaptive);
	my @names = map { s/: \d+\z//r } split /\n/, $srv->fetch('/server-statistics')->{body};
	is_deeply \@names, [sort @names], 'sorted by name';

	my %metric = $srv->fetch('/metrics')->{body} =~ /^(accel_\S+) (\S+)$/mg;
	is $metric{'accel_requests_refused_total'}, 6, 'a counter for Prometheus';
	is $metric{qq{accel_backend_requests_total{block="0",backend="$name"}}}, 6, '... with labels';
	is $metric{'accel_stage_seconds_bucket{stage="proxy",le="+Inf"}'}, 12, '... and a histogram';
	is $metric{'accel_stage_seconds_count{stage="proxy"}'}, 12, '... that agrees with itself';
	is $metric{qq{accel_backend_stage_seconds_count{block="0",backend="$name",stage="reply"}}}, 6, '... of each backend and stage';
	html_is_well_formed($srv->fetch('/server-status')->{body}) and fail 'the page of a busy server is not well formed';
};

subtest 'promtool accepts the metrics page' => sub {
	plan skip_all => 'no promtool' unless grep { -x "$_/promtool" } split /:/, $ENV{PATH};
	my $srv = Test::Server->start(conf => $urls . qq{\$HTTP["url"] =^ "/dead/" {
	proxy-core.protocol = "fastcgi"\nproxy-core.backends = ( "unix:/nowhere/a\\\\b" ) }\n});
	$srv->get("/dead/$_") for 1 .. 3;
	open my $to, '|-', "promtool check metrics >'@{[ $srv->run ]}/promtool' 2>&1" or die $!;
	print $to $srv->fetch('/metrics')->{body};
	ok close $to, 'promtool has nothing to say' or diag $srv->log('promtool');
	is $srv->log('promtool'), '', '... not even as advice';
};

subtest 'the process, its configuration, and whose 5xx it is' => sub {
	my $app = Test::App->start(protocol => 'http');
	my $conf = $urls . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket, protocol => 'http');
	my $srv = Test::Server->start(conf => $conf, nofile => 200);
	my $metrics = sub { +{ $srv->fetch('/metrics')->{body} =~ /^([a-z]\S+) (\S+)$/mg } };
	my $first = $metrics->();
	my @open = map { my $c = $srv->connect; $c->send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n"); $c->reply; $c } 1 .. 10;
	my $busy = $metrics->();
	is $busy->{process_max_fds}, 200, 'the limit of descriptors';
	# two of the start may be closed by now
	cmp_ok $busy->{process_open_fds}, '>=', $first->{process_open_fds} + 8, 'those of ten connections are open';
	cmp_ok abs($busy->{process_open_fds} - $srv->descriptors), '<=', 2, 'as /proc has it' or diag $srv->descriptors;
	cmp_ok abs($busy->{process_resident_memory_bytes} / 1048576 - $srv->rss), '<', 20, 'so is the memory';
	cmp_ok abs($busy->{process_start_time_seconds} - time), '<', 60, 'it has just been started';
	cmp_ok $busy->{process_cpu_seconds_total}, '>', 0, 'processor time';
	is $srv->fetch('/app/head?Status:%20500%20no||x')->{status}, 500, 'the application fails';
	is $srv->fetch('/app/none')->{status}, 404, '... or has no such page';
	is $metrics->()->{qq{accel_backend_replies_5xx_total{block="0",backend="unix:@{[ $app->socket ]}"}}}, 1, 'a reply 5xx of that backend';
	is join(' ', @{ $busy }{map { "accel_$_" } qw(config_last_reload_successful config_reloads_total generations_draining)}), '1 0 0', 'no reload yet';
	put($srv->run . '/server.conf', "nonsense\n");
	$srv->signal('USR1');
	ok Test::Util::eventually(sub { $metrics->()->{accel_config_last_reload_successful} == 0 }), 'a refused reload is seen';
	is $metrics->()->{accel_config_last_reload_success_timestamp_seconds}, $busy->{accel_config_last_reload_success_timestamp_seconds}, 'the old configuration is in use';
	put($srv->run . '/server.conf', $srv->_conf($conf));
	$srv->signal('USR1');
	ok Test::Util::eventually(sub { my $m = $metrics->(); $m->{accel_config_last_reload_successful} == 1 && $m->{accel_config_reloads_total} == 1 }), 'a good one, too';
	ok Test::Util::eventually(sub { $metrics->()->{accel_generations_draining} == 0 }), 'the old generation ends';
};

subtest 'names with special characters are escaped' => sub {
	my $bad = q{unix:/tmp/<b>"&'};
	my $srv = Test::Server->start(conf => $urls . qq{\$HTTP["url"] =^ "/dead/" {
	proxy-core.protocol = "fastcgi"\nproxy-core.backends = ( "unix:/tmp/<b>\\"&'" ) }\n});
	is $srv->fetch('/dead/x')->{status}, 503, 'used once';
	my $html = $srv->fetch('/server-status')->{body};
	is html_is_well_formed($html), '', 'the page stays well formed';
	unlike $html, qr/<b>"/, 'nothing of the name is markup';
	like $html, qr/&lt;b&gt;&quot;&amp;/, 'it is shown';
	is json($srv)->{backends}[0]{name}, $bad, 'JSON gives it back';
	my %stat = numbers($srv);
	is_deeply [grep { /\Aproxy-core\.0\.backends\./ && !/\Aproxy-core\.0\.backends\."unix:\/tmp\/<b>\\x22&'"\./ } keys %stat], [], 'statistics quote it';
	for my $host ('"><script>alert(1)</script>', "a&b", "x'y\"z") {
		my $r = $srv->fetch('/server-status', Host => $host);
		next if $r->{status} == 400;            # refused is fine, too
		unlike $r->{body}, qr/<script>alert/, "Host $host is not a script";
		is html_is_well_formed($r->{body}), '', '... and breaks nothing';
		my $json = eval { JSON::PP->new->utf8->decode($srv->fetch('/server-status?json', Host => $host)->{body}) };
		is $json && $json->{host}{name}, $host, '... JSON';
	}
};

subtest 'a reload keeps the counters' => sub {
	my $dead = qq{\$HTTP["url"] =^ "/dead/" {\nproxy-core.protocol = "fastcgi"\nproxy-core.backends = ( "unix:/nowhere/a" )\n}\n};
	my $srv = Test::Server->start(conf => $urls . $dead);
	is_deeply [map { $_->{name} } @{ json($srv)->{backends} }], ['unix:/nowhere/a'], 'an application is shown before it is asked';
	$srv->get('/none') for 1 .. 20;
	$srv->get('/dead/x');
	my $before = json($srv);
	$srv->signal('USR1');
	$srv->wait_log(qr/ev=reloaded/);
	my $after;
	Test::Util::eventually(sub { $after = json($srv); @{ $after->{workers} } == 2 });     # the old ones have ended
	cmp_ok $after->{requests}{read}, '>', $before->{requests}{read}, 'requests go on from where they were';
	cmp_ok $after->{uptime_seconds}, '>=', $before->{uptime_seconds}, 'so does the time';
	is scalar @{ $after->{workers} }, 2, 'two workers';
	is_deeply [map { [@$_{qw(name failed)}] } @{ $after->{backends} }], [['unix:/nowhere/a', $before->{backends}[0]{failed}]],
	    'the application is still there, with what it did';
	cmp_ok $after->{stages}{total}{count}, '>=', 20, 'and what histograms hold';
};

done_testing;
