#!/usr/bin/perl
# doc/operations.md: each command as a person pastes it, under a real systemd, with the faults that the sections are about.
# The commands of packages are in t/deb/package.t.

use v5.36;
use Cwd ();
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Systemd;
use Test::Util qw(eventually slurp);

plan skip_all => 'a sanitizer makes calls of its own' if Test::Util::sanitized();
my $why = Test::Systemd->unusable;
plan skip_all => $why if $why;

my $top = Cwd::abs_path("$FindBin::Bin/../..");
my $sd = Test::Systemd->boot;
$sd->install;
my $conf_d = '/etc/stat-accel/conf.d';

# What the packages do after that.
$sd->command(@$_) for ['systemd-tmpfiles', '--create', 'accel-server.conf', 'fcgi-stat-accel.conf'], ['mkdir', '-p', $conf_d], [qw(systemctl daemon-reload)];
is +($sd->systemctl('enable', '--now', 'accel-server.service', 'fcgi-stat-accel.socket'))[0], 0, 'they start' or diag $sd->messages;

# ---------------------------------------------------------------- what is arranged for a section, and what its blocks print

sub ctl ($command) { return $sd->command('accel-server', 'ctl', $command, '-f', '/etc/stat-accel/accel-server.conf') }
sub get ($path) { return $sd->run('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', "http://127.0.0.1:8080$path") }
sub set_conf ($text) { return $sd->put("$conf_d/test.conf", $text) }
sub unset_conf () { unlink $sd->path("$conf_d/test.conf"); return ctl('reload') }

sub add_line ($log, $line) {
	open my $fh, '>>', $sd->path("/var/log/stat-accel/$log") or die "$log: $!";
	print $fh "$line\n";
	return close $fh;
}

# An application that is not there, one that says why it fails, and descriptors that a file system does not give.
my $app = 'proxy-core.protocol = "http"' . "\n\tproxy-core.disable-time = 1\n\tproxy-core.backends = ";
my %section = (
	'First look' => { print => qr{Active: active \(running\).*^state +serving.*^DISK .*fcgi:/run/stat-accel\.sock}ms },
	'Status pages' => { print => qr{^reloaded$}m },
	'Start, reload, stop' => { print => qr{correct|ok|reloaded|configuration}i },
	'Behind a balancer' => { print => qr{^reloaded$}m },
	'Upgrade and rollback' => { print => qr{upgraded|pid \d+}i },
	'Logs' => { print => qr{ev=\S+.*^\d+$}ms },
	'Fields' => { before => \&json_from_now_on, after => \&unset_conf, print => [qr{}, qr{\treload\.refused\t}] },
	'One id for a request' => { before => sub { add_line('error.log', 'level=warn ev=exchange.failed id=c1.1/4bf92f3577b34da6a3ce929d0e0e4736') }, print => qr{ev=exchange\.failed} },
	'The access log as JSON' => { before => sub { add_line('access.log', '{"request":"r1","backend":"b","cache":"cold","url":"/slow","total-us":2000000}') }, print => qr{^r1\tb\tcold\t/slow$}m },
	'Metrics' => { print => qr{^process_open_fds \d+.*^accel_requests_replied_total \d+}ms },
	'Limits and bans' => { print => [qr{upgraded|pid \d+}i, qr{^server\.connections\.banned: 0$}m] },
	'Backup and restore' => { print => [qr{\A\z}, qr{upgraded|pid \d+}i] },
	'AccelDown' => { print => qr{Active: active}, more => qr{ev=} },
	'AccelDeviceHanging' => { print => qr{File: /var/www/html$}m },
	'AccelBackendAllFail' => { before => \&gone_app, after => \&unset_conf, print => qr{^accel_backend_own_5xx_total.*cause="connect"\} 1\n.*ev=exchange\.failed.*none\.sock}ms },
	'AccelBackendSomeFail' => { before => \&gone_app, after => \&unset_conf, print => qr{^ +\d+ url=/app/$}m },
	'AccelBackendFailing' => { before => \&gone_app, after => \&unset_conf, print => qr{^backends_out +1\n.*ev=exchange\.failed.*none\.sock}ms },
	'AccelCheckFailed' => { before => sub { gone_app("\n\tproxy-core.check-url = \"/\"\n\tproxy-core.check-interval = 1\n"); eventually(sub { ctl('status') =~ /check-failed/ }) }, after => \&unset_conf,
		print => qr{none\.sock check-failed since \S+ \S+: .*ev=check\.failed}s },
	'AccelOwn5xx' => { print => qr{^Filesystem}m },
	'AccelCrashLoop' => { print => qr{^NRestarts=0$}m },
	'AccelBackendUnreachable' => { before => \&gone_app, after => \&unset_conf,
		print => qr{ev=exchange\.failed.*none\.sock.*LISTEN}s },
	'AccelCacheThrashing' => { print => qr{^accel_cache_returned_total \d+$}m },
	'AccelLoopWaits' => { print => qr{^accel_io_loop_waits_total \d+$}m },
	'AccelReloadFailed' => { before => sub { set_conf("server.port = nonsense\n"); $sd->systemctl('reload', 'accel-server') }, after => \&unset_conf, status => 78, print => qr{ev=reload\.refused .*nonsense.*\n.*test\.conf:1:} },
	'AccelUpgradeFailed' => { before => \&upgrade_by_signal, after => \&unset_conf, status => 78, print => qr{ev=upgrade\.failed .*\n.*test\.conf:1:} },
	'AccelUselessAccelerator' => { status => 1, print => qr{^ADVICE\n.*outside-roots.*nginx\.conf|sites-enabled}ms },
	'AccelDescriptorShortage' => { print => qr{^\d+$}m },
	'AccelBackend5xx' => { before => \&stderr_of_app, after => \&unset_conf, print => qr{ev=app\.stderr.*disk of the application is full} },
	'AccelQueueFull' => { before => sub { get('/gone') }, print => qr{JOBS} },
	'AccelHelperLost' => { before => \&kill_helper, print => qr{^helper +runs\n.*^helpers_lost +1\n.*ev=helper\.lost by=signal status=9 .*ev=helper\.back}ms },
	'AccelCertificateRefused' => { print => qr{^certificates_refused +0$}m },
	'AccelCertificateEnds' => { print => qr{^certificates_end +never$}m },
	'AccelLogLinesLost' => { print => qr{^Filesystem}m },
);

# A new file, with a line that is worse than "info".
sub json_from_now_on () {
	set_conf(qq{server.errorlog-format = "json"\n});
	ctl('reload');
	$sd->run('logrotate', '-f', '/etc/logrotate.d/accel-server');
	eventually(sub { slurp($sd->path('/var/log/stat-accel/error.log')) =~ /logs\.reopened/ });
	set_conf(qq{server.errorlog-format = "json"\nserver.document-root = "/none"\n});
	$sd->systemctl('reload', 'accel-server');
	return set_conf(qq{server.errorlog-format = "json"\n});
}

# An application that is not there.
sub gone_app ($more = '') {
	set_conf(qq{\$HTTP["url"] =^ "/app/" {\n\t$app( "unix:/run/none.sock" )$more\n}\n});
	ctl('upgrade');
	return get('/app/');
}

# A CGI program that writes to stderr.
sub stderr_of_app () {
	$sd->put('/var/www/html/app.sh', "echo the disk of the application is full >&2\nprintf 'Status: 500\\r\\n\\r\\n'\n");
	set_conf(qq{cgi.assign = ( ".sh" => "/bin/sh" )\n});
	ctl('upgrade');         # a reload cannot open a directory for uploads
	return get('/app.sh');
}

# accel-server ctl would print the mistake, and ask nobody.
sub kill_helper () {
	$sd->run('sh', '-c', 'kill -KILL $(grep -lx accel-helper /proc/[0-9]*/comm | cut -d/ -f3)');
	return eventually(sub { slurp($sd->path('/var/log/stat-accel/error.log')) =~ /ev=helper\.back/ });
}

sub upgrade_by_signal () {
	set_conf("server.port = nonsense\n");
	$sd->systemctl('kill', '--signal=USR2', '--kill-whom=main', 'accel-server');
	return eventually(sub { slurp($sd->path('/var/log/stat-accel/error.log')) =~ /ev=upgrade\.failed/ });
}

# ---------------------------------------------------------------- the page

my $page = slurp("$top/doc/operations.md");
my (undef, @parts) = split /^#{2,3} (.+)\n/m, $page;
my %text = @parts;
my (%seen, @unknown);
# In the order of the page; the status pages are for all of it.
for my $name ('Status pages', grep { $_ ne 'Status pages' } map { $parts[ 2 * $_ ] } 0 .. $#parts / 2) {
	my $text = $text{$name};
	my @blocks = $text =~ /^```sh\n(.*?)^```/msg;
	push @unknown, $text =~ /^    \S.*$/mg;
	next if !@blocks;
	my $is = $section{$name} // {};
	$seen{$name} = 1;
	$is->{before}->() if $is->{before};
	my @print = ref $is->{print} eq 'ARRAY' ? @{ $is->{print} } : $is->{print};
	for my $block (grep { !/^apt-get / } @blocks) {
		my $print = @print > 1 ? shift @print : $print[0] // qr/\S/;
		my ($status, $said);
		my $run = sub {
			($status, $said) = $sd->command('bash', '-e', '-c', $block =~ s{/the/mount/point}{/var/www/html}r =~ s/sleep 5/sleep 0.2/r);
			return $said =~ $print;
		};
		$block =~ /\bgrep\b/ ? eventually($run) : $run->();        # a thread writes the log
		my ($first) = split /\n/, $block;
		is $status >> 8, $is->{status} // 0, "$name: $first ..." or diag $said;
		unlike $said, qr/command not found|nvalid option|unrecognized|^Usage:/m, '... is known to the programs';
		like $said, $print, '... and says what it is to say';
	}
	$is->{after}->() if $is->{after};
}
is_deeply [grep { !$seen{$_} } sort keys %section], [], 'no section is gone';
is_deeply \@unknown, [], 'no command is in a block that is not pasted';

# ---------------------------------------------------------------- what the page says of states

is get('/none'), '404', 'in the end it serves';
is $sd->show('accel-server', 'ActiveState'), 'active', '... under systemd';
is $sd->run('sh', '-c', 'ls -d /etc/stat-accel /etc/default/fcgi-stat-accel /var/lib/stat-accel /var/log/stat-accel /var/cache/stat-accel /run/stat-accel | wc -l') + 0, 6,
	'and has the directories of the table';
$sd->systemctl('stop', 'accel-server');

done_testing;
