# examples/prometheus: promtool accepts the rules; each alert fires for its fault, no other one does, and it ends with the fault.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use JSON::PP ();
use Test::Util qw(need_program put slurp temp_tree);

need_program('promtool', 'prometheus');
my $dir   = "$FindBin::Bin/../../examples/prometheus";
my $rules = "$dir/stat-accel.rules.yml";
my $tmp   = temp_tree();

sub promtool (@args) {
	my $said = qx{promtool @args 2>&1};
	return ($? >> 8, $said);
}

my ($status, $said) = promtool('check', 'rules', $rules);
is $status, 0, 'promtool accepts the rules' or diag $said;
my $doc = "$FindBin::Bin/../../doc";
# The anchors of a document, as GitHub makes them of its headings.
sub anchors ($file) { return map { lc(s/[^\w -]//gr) =~ tr/ /-/r => 1 } slurp($file) =~ /^#+ (.*)$/mg }
my %doc = anchors("$doc/operations.md");
my %tuning = anchors("$doc/tuning.md");
is_deeply [grep { !$doc{$_} } slurp("$doc/operations.md") =~ /\]\(#([^)]+)\)/g], [], 'its links to its own sections lead somewhere';
is_deeply [grep { !$tuning{$_} } slurp("$doc/operations.md") =~ /\]\(tuning\.md#([^)]+)\)/g], [], 'those to tuning.md, too';
my $text = slurp($rules);
my @alerts = $text =~ /- alert: (\S+)/g;
my $operations = slurp("$doc/operations.md");
my %at_once;    # alerts that do not wait

# What a rule leaves out, or the documents say otherwise.
sub lacks ($name, $rule) {
	my ($severity) = $rule =~ /^          severity: (critical|warning)$/m;
	my ($anchor) = $rule =~ /^          runbook: operations\.md#(\S+)$/m;
	my ($section) = $operations =~ /^## $name\n(.*?)(?=^## |\z)/ms;
	my ($wake) = $operations =~ /^\| \[$name\]\(#\L$name\E\) \| [^|]+ \| (.*) \|$/m;
	$at_once{$name} = 1 if $rule =~ /^        for: 0s$/m;
	return (
		(map { $rule =~ /^ {8,10}$_: +\S/m ? () : $_ } qw(expr for summary description)), $severity ? () : 'severity',
		$rule =~ /description: >-\n(?: {12}.*\n)*? {12}(?:.*\. )?(?:Look|Raise|Correct) /m ? () : 'what to do, in its description',
		($anchor // '') eq lc $name && $doc{$anchor} ? () : 'its section of operations.md',
		(map { ($section // '') =~ /^$_\b/m ? () : "$_ in its section" } qw(Look Do)),
		(map { !defined ? 'a row in the table of operations.md' : ($_ eq 'yes') == (($severity // '') eq 'critical') ? () : 'one opinion on whether to wake a person' } $wake),
		slurp("$dir/README.md") =~ /^\| $name \| /m ? () : 'a row in the README',
	);
}
is_deeply [lacks(/^(\S+)/, $_)], [], /^(\S+)/ ? "the alert $1 is whole" : () for $text =~ /- alert: (.*?)(?=- alert: |\z)/gs;

# ---------------------------------------------------------------- the commands of the README

# As pasted, beside a copy of the file of Debian's package.
my ($commands) = slurp("$dir/README.md") =~ /^```sh\n(.*?)^```/ms;
mkdir "$tmp/etc";
put("$tmp/etc/prometheus.yml", slurp('/etc/prometheus/prometheus.yml') || "rule_files:\nscrape_configs:\n");
put("$tmp/install", "set -e\ncd $dir\n" . $commands =~ s{/etc/prometheus}{$tmp/etc}gr);
$said = qx{sh $tmp/install 2>&1};
is $?, 0, 'the commands of the README install the files, and promtool accepts the configuration' or diag $said;
like $said, qr/1 rule files found/, 'with the rules';
is_deeply [slurp("$tmp/etc/prometheus.yml") =~ /^  - job_name: (accel-server|fcgi-stat-accel)$/mg], [qw(accel-server fcgi-stat-accel)], 'and the jobs';

# ---------------------------------------------------------------- series

use constant { BEFORE => 40, FAULT => 100, AFTER => 80 };      # scrapes, one each 15 s: 10, 25 and 20 minutes
my ($server, $fcgi) = ('job="accel-server",instance="a:80"', 'job="fcgi-stat-accel",instance="b:80"');

sub gauge ($well, $ill) { return join ' ', ($well) x BEFORE, ($ill) x FAULT, ($well) x AFTER }

# How much it grows with each scrape.
sub counter ($well, $ill) {
	my ($v, @v) = (0);
	push @v, $v += $_ for ($well) x BEFORE, ($ill) x FAULT, ($well) x AFTER;
	return "@v";
}

# Of the application unix:/a
sub app_series ($name) { return qq(accel_backend_$name\{$server,block="0",backend="unix:/a"}) }
sub own_5xx ($cause) { return qq(accel_backend_own_5xx_total{$server,block="0",backend="unix:/a",status="502",cause="$cause"}) }
sub state_is ($state) { return qq(accel_backend_state{$server,block="0",backend="unix:/a",state="$state"}) }
# A request in four scrapes, each the same amount of $ill while the fault lasts.
sub quiet ($ill) { return (map { $_ => counter(0, 0) } app_series('replies_5xx_total'), app_series('cut_total'), own_5xx('hang-up'), own_5xx('reply-timeout')), app_series('replies_total') => counter(0.25, 0.25 - $ill) }

# A gauge that changes each $n-th scrape while the fault lasts.
sub changing ($n) { return join ' ', (1000) x BEFORE, (map { 1000 + int $_ / $n } 1 .. FAULT), (2000) x AFTER }

# A healthy server and a healthy accelerator.
my %well = (
	(map { $_ => gauge(1, 1) } "up{$server}", "up{$fcgi}", "accel_config_last_reload_successful{$server}", "accel_helper_up{$server}",
		qq(accel_device_info{$server,device="8:1",mount="/srv"}), qq(accel_device_info{$server,device="0:50",mount="/nfs"}),
		qq(fcgi_stat_accel_device_info{$fcgi,device="8:1",mount="/srv"})),
	(map { $_ => gauge(0, 0) } qq(accel_device_stuck{$server,device="8:1"}), qq(accel_device_stuck{$server,device="0:50"}),
		qq(fcgi_stat_accel_device_stuck{$fcgi,device="8:1"}), qq(accel_backend_down{$server,block="0",backend="unix:/a"}),
		qq(fcgi_stat_accel_advice{$fcgi,id="absent"}), qq(fcgi_stat_accel_advice{$fcgi,id="outside-roots"}),
		qq(accel_device_oldest_job_seconds{$server,device="0:50"})),
	"accel_tls_certificates_refused{$server}" => gauge(0, 0), "accel_tls_certificate_end_timestamp_seconds{$server}" => gauge(90 * 86_400, 90 * 86_400),
	(map { $_ => gauge(100, 100) } "process_open_fds{$server}", "process_open_fds{$fcgi}"),
	(map { $_ => gauge(1000, 1000) } "process_max_fds{$server}", "process_max_fds{$fcgi}"),
	(map { $_ => counter(0, 0) } qq(accel_device_refused_total{$server,device="8:1",reason="full"}), qq(accel_device_refused_total{$server,device="0:50",reason="full"}),
		qq(accel_device_refused_total{$server,device="0:50",reason="hangs"}), qq(fcgi_stat_accel_device_refused_total{$fcgi,device="8:1",reason="full"}),
		qq(accel_backend_refused_total{$server,block="0",backend="unix:/a"}), "accel_log_dropped_total{$server}", "fcgi_stat_accel_log_dropped_total{$fcgi}",
		"accel_upgrades_failed_total{$server}", "accel_helpers_lost_total{$server}", "accel_io_loop_waits_total{$server}"),
	(map { $_ => counter(0, 0) } map { "accel_connections_${_}_total{$server}" } qw(room_idle room_silent room_busy room_refused accept_pauses)),
	"accel_connections_limit{$server}" => gauge(650, 650),
	(map { $_ => counter(15, 15) } "accel_cache_evicted_total{$server}", "accel_cache_returned_total{$server}", "accel_cache_absent_hits_total{$server}", "accel_cache_misses_total{$server}"),
	"accel_cache_hits_total{$server}" => counter(15_000, 15_000),
	qq(accel_backend_requests_total{$server,block="0",backend="unix:/a"}) => counter(1500, 1500),
	app_series('replies_total') => counter(1490, 1490), app_series('replies_5xx_total') => counter(2, 2),
	app_series('cut_total') => counter(1, 1), own_5xx('hang-up') => counter(1, 1), own_5xx('reply-timeout') => counter(1, 1), own_5xx('queue-full') => counter(0, 0),
	state_is('up') => gauge(1, 1), (map { state_is($_) => gauge(0, 0) } qw(slow-start failing unreachable check-failed)),
	(map { (qq(accel_own_5xx_total{$server,cause="$_"}) => counter(0, 0)) } qw(file descriptors memory other)),
	qq(accel_own_5xx_total{$server,cause="application"}) => counter(2, 2),
	"accel_first_start_time_seconds{$server}" => gauge(1000, 1000), (map { ("process_start_time_seconds{$_}" => gauge(1000, 1000)) } $server, $fcgi),
);

my %of_server = (job => 'accel-server', instance => 'a:80');
my %of_fcgi   = (job => 'fcgi-stat-accel', instance => 'b:80');
my %app       = (block => 0, backend => 'unix:/a');

# Fault, alert, its labels, series that differ.
my @case = (
	[ 'the server is down', AccelDown => { %of_server, severity => 'critical' }, "up{$server}" => gauge(1, 0) ],
	[ 'the accelerator is down', AccelDown => { %of_fcgi, severity => 'critical' }, "up{$fcgi}" => gauge(1, 0) ],
	[ 'a device hangs, and its queue fills', AccelDeviceHanging => { %of_server, severity => 'critical', device => '0:50', mount => '/nfs' },
		qq(accel_device_stuck{$server,device="0:50"}) => gauge(0, 1), qq(accel_device_refused_total{$server,device="0:50",reason="hangs"}) => counter(0, 50),
		qq(accel_device_refused_total{$server,device="0:50",reason="full"}) => counter(0, 50) ],
	[ 'one file hangs', AccelDeviceHanging => { %of_server, severity => 'critical', device => '0:50', mount => '/nfs' },
		qq(accel_device_oldest_job_seconds{$server,device="0:50"}) => gauge(0, 61) ],
	[ 'a device of the accelerator hangs', AccelDeviceHanging => { %of_fcgi, severity => 'critical', device => '8:1', mount => '/srv' },
		qq(fcgi_stat_accel_device_stuck{$fcgi,device="8:1"}) => gauge(0, 1) ],
	[ 'the queue of a device is full', AccelQueueFull => { %of_server, severity => 'warning', queue => 'device', device => '8:1' },
		qq(accel_device_refused_total{$server,device="8:1",reason="full"}) => counter(0, 5) ],
	[ 'the queue of an accelerator is full', AccelQueueFull => { %of_fcgi, severity => 'warning', queue => 'device', device => '8:1' },
		qq(fcgi_stat_accel_device_refused_total{$fcgi,device="8:1",reason="full"}) => counter(0, 5) ],
	[ 'the queue of an application is full', AccelQueueFull => { %of_server, %app, severity => 'warning', queue => 'application' },
		qq(accel_backend_refused_total{$server,block="0",backend="unix:/a"}) => counter(0, 5) ],
	[ 'the accelerator has a wrong root', AccelUselessAccelerator => { %of_fcgi, severity => 'warning', id => 'outside-roots' },
		qq(fcgi_stat_accel_advice{$fcgi,id="outside-roots"}) => gauge(0, 1) ],
	[ 'the cache is too small', AccelCacheThrashing => { %of_server, severity => 'warning' },
		"accel_cache_evicted_total{$server}" => counter(15, 1500), "accel_cache_misses_total{$server}" => counter(15, 1500),
		"accel_cache_returned_total{$server}" => counter(15, 300), "accel_cache_hits_total{$server}" => counter(150_000, 150_000) ],
	[ 'loops wait for a disk', AccelLoopWaits => { %of_server, severity => 'warning' }, "accel_io_loop_waits_total{$server}" => counter(0, 1) ],
	[ 'few descriptors are left', AccelDescriptorShortage => { %of_server, severity => 'warning' }, "process_open_fds{$server}" => gauge(100, 900) ],
	[ 'clients make room for each other', AccelDescriptorShortage => { %of_server, severity => 'warning' }, "accel_connections_room_idle_total{$server}" => counter(0, 30) ],
	[ 'few descriptors of the accelerator are left', AccelDescriptorShortage => { %of_fcgi, severity => 'warning' }, "process_open_fds{$fcgi}" => gauge(100, 900) ],
	[ 'an application answers 500', AccelBackend5xx => { %of_server, %app, severity => 'warning' }, app_series('replies_5xx_total') => counter(2, 100) ],
	[ 'a quiet site: one reply of four is a 500', AccelBackend5xx => { %of_server, %app, severity => 'warning' }, quiet(0), app_series('replies_5xx_total') => counter(0, 0.0625) ],
	[ 'an application hangs up, always', AccelBackendAllFail => { %of_server, %app, severity => 'critical' },
		app_series('replies_total') => counter(1490, 0), own_5xx('hang-up') => counter(1, 1500) ],
	[ 'an application is silent, always, on a quiet site', AccelBackendAllFail => { %of_server, %app, severity => 'critical' }, quiet(0.25), own_5xx('reply-timeout') => counter(0, 0.25) ],
	[ 'an application answers 500, always', AccelBackendAllFail => { %of_server, %app, severity => 'critical' }, app_series('replies_5xx_total') => counter(2, 1491) ],
	[ 'an application hangs up now and then', AccelBackendSomeFail => { %of_server, %app, severity => 'warning' }, own_5xx('hang-up') => counter(1, 150) ],
	[ 'the replies of an application break off now and then', AccelBackendSomeFail => { %of_server, %app, severity => 'warning' }, app_series('cut_total') => counter(1, 150) ],
	[ 'one of four requests of a quiet site is lost', AccelBackendSomeFail => { %of_server, %app, severity => 'warning' }, quiet(0.0625), own_5xx('hang-up') => counter(0, 0.0625) ],
	[ 'a check fails', AccelCheckFailed => { %of_server, %app, severity => 'critical', state => 'check-failed' }, state_is('check-failed') => gauge(0, 1), state_is('up') => gauge(1, 0),
		app_series('replies_total') => counter(1490, 0), own_5xx('hang-up') => counter(1, 1500) ],
	[ 'a check fails, and nobody listens', AccelCheckFailed => { %of_server, %app, severity => 'critical', state => 'check-failed' }, state_is('check-failed') => gauge(0, 1), state_is('up') => gauge(1, 0),
		qq(accel_backend_down{$server,block="0",backend="unix:/a"}) => gauge(0, 2), app_series('replies_total') => counter(1490, 0), own_5xx('connect') => counter(0, 1500) ],
	[ 'requests fail at one backend, others have them', AccelBackendFailing => { %of_server, %app, severity => 'warning', state => 'failing' },
		state_is('failing') => join(' ', (0) x BEFORE, (1, 0, 0) x (FAULT / 3), (0) x (AFTER + 1)) ],
	[ 'the server has no memory', AccelOwn5xx => { %of_server, severity => 'warning', cause => 'memory' }, qq(accel_own_5xx_total{$server,cause="memory"}) => counter(0, 1) ],
	[ 'a disk fails', AccelOwn5xx => { %of_server, severity => 'warning', cause => 'file' }, qq(accel_own_5xx_total{$server,cause="file"}) => counter(0, 1) ],
	[ 'the server crashes each two minutes', AccelCrashLoop => { %of_server, severity => 'critical' }, "accel_first_start_time_seconds{$server}" => changing(8),
		"process_start_time_seconds{$server}" => changing(8) ],
	[ 'the accelerator crashes each two minutes', AccelCrashLoop => { %of_fcgi, severity => 'critical' }, "process_start_time_seconds{$fcgi}" => changing(8) ],
	[ 'an application is gone', AccelBackendUnreachable => { %of_server, %app, severity => 'critical' },
		qq(accel_backend_down{$server,block="0",backend="unix:/a"}) => gauge(0, 2), state_is('unreachable') => gauge(0, 1), state_is('up') => gauge(1, 0),
		app_series('replies_total') => counter(1490, 0), own_5xx('hang-up') => counter(1, 1500) ],
	[ 'a reload is refused', AccelReloadFailed => { %of_server, severity => 'warning' }, "accel_config_last_reload_successful{$server}" => gauge(1, 0) ],
	[ 'an upgrade fails, again and again', AccelUpgradeFailed => { %of_server, severity => 'warning' }, "accel_upgrades_failed_total{$server}" => counter(0, 1) ],
	[ 'the helper process dies, again and again', AccelHelperLost => { %of_server, severity => 'warning' }, "accel_helpers_lost_total{$server}" => counter(0, 1) ],
	[ 'there is no helper process', AccelHelperLost => { %of_server, severity => 'warning' }, "accel_helper_up{$server}" => gauge(1, 0) ],
	[ 'a renewed certificate cannot be used', AccelCertificateRefused => { %of_server, severity => 'warning' }, "accel_tls_certificates_refused{$server}" => gauge(0, 1) ],
	[ 'a certificate is not renewed', AccelCertificateEnds => { %of_server, severity => 'warning' }, "accel_tls_certificate_end_timestamp_seconds{$server}" => gauge(90 * 86_400, 13 * 86_400) ],
	[ 'the disk of a log is full', AccelLogLinesLost => { %of_server, severity => 'warning' }, "accel_log_dropped_total{$server}" => counter(0, 50) ],
	[ 'the disk of the log of an accelerator is full', AccelLogLinesLost => { %of_fcgi, severity => 'warning' }, "fcgi_stat_accel_log_dropped_total{$fcgi}" => counter(0, 50) ],
	# What must stay silent.
	[ 'a loop waits once, and its device is left to threads', undef, {}, "accel_io_loop_waits_total{$server}" => counter(0, 0.05) ],
	[ 'a crawler reads each file once', undef, {}, (map { ("accel_cache_${_}_total{$server}" => counter(15, 15_000)) } qw(evicted misses)),
		"accel_cache_hits_total{$server}" => counter(150, 50) ],
	[ 'a crawler, and some files that came back', undef, {}, (map { ("accel_cache_${_}_total{$server}" => counter(15, 15_000)) } qw(evicted misses)),
		"accel_cache_returned_total{$server}" => counter(15, 300) ],
	[ 'a few files come back', undef, {}, (map { ("accel_cache_${_}_total{$server}" => counter(15, 100)) } qw(evicted misses returned)) ],
	[ 'server.max-connections is low, and reached', undef, {}, "accel_connections_room_idle_total{$server}" => counter(0, 30), "accel_connections_limit{$server}" => gauge(100, 100) ],
	[ 'one 500 in ten minutes', undef, {}, quiet(0), app_series('replies_5xx_total') => counter(0, 0.025) ],
	[ 'two of a few requests fail', undef, {}, quiet(0), app_series('replies_5xx_total') => join(' ', (0) x BEFORE, (1) x 20, (2) x (FAULT + AFTER - 20)) ],
	[ 'the server is upgraded each two minutes', undef, {}, "process_start_time_seconds{$server}" => changing(8) ],
	[ 'two restarts', undef, {}, "accel_first_start_time_seconds{$server}" => join(' ', (1000) x BEFORE, (1001) x 10, (1002) x (FAULT + AFTER - 10)) ],
	[ 'a check failed for half a minute', undef, {}, state_is('check-failed') => join(' ', (0) x BEFORE, (1) x 2, (0) x (FAULT + AFTER - 2)) ],
	[ 'the files of a disk are cold', undef, {}, "accel_cache_misses_total{$server}" => counter(15, 30_000),
		qq(accel_device_oldest_job_seconds{$server,device="0:50"}) => gauge(0, 20) ],
	[ 'another job is down', undef, {}, 'up{job="node",instance="a:9100"}' => gauge(1, 0), 'process_open_fds{job="node",instance="a:9100"}' => gauge(999, 999),
		'process_max_fds{job="node",instance="a:9100"}' => gauge(1000, 1000) ],
);

# ---------------------------------------------------------------- cases

sub firing ($at, @labels) { return { expr => 'ALERTS{alertstate="firing"}', eval_time => $at, exp_samples => [map { { labels => $_, value => 1 } } @labels] } }

sub test_of ($name, $alert, $labels, %ill) {
	my @labels = $alert ? 'ALERTS{' . join(',', map { qq($_="$labels->{$_}") } sort keys %$labels) . qq(,alertname="$alert",alertstate="firing"}) : ();
	my %all = (%well, %ill);
	return { interval => '15s', name => $name, input_series => [map { { series => $_, values => $all{$_} } } sort keys %all],
		promql_expr_test => [ firing('9m'), $alert && $at_once{$alert} ? () : firing('10m15s'), firing('34m', @labels), firing('54m') ] };
}

my %seen = map { $_->[1] // '' => 1 } @case;
is_deeply [grep { !$seen{$_} } @alerts], [], 'each alert has its fault';
sub run_tests (@cases) {
	put("$tmp/test.yml", JSON::PP->new->canonical->encode({ rule_files => [$rules], evaluation_interval => '1m', tests => [ map { test_of(@$_) } @cases ] }));
	return promtool('test', 'rules', "$tmp/test.yml");
}

# All in one run; one by one to see which of them fails.
my ($failed) = run_tests(@case);
for my $case (@case) {
	my ($wrong, $why) = $failed ? run_tests($case) : (0);
	is $wrong, 0, "$case->[0]: " . ($case->[1] // 'nothing') or diag substr $why, 0, 2000;
}

done_testing;
