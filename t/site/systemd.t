#!/usr/bin/perl
# The units of examples/systemd/ under a real systemd: rights, reload, watchdog, restarts, sockets, log rotation.

use v5.36;
use Cwd ();
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use IO::Socket::UNIX;
use Test::Fcgi qw(request);
use Test::Systemd;
use Test::Util qw(eventually slurp);

plan skip_all => 'a sanitizer makes calls of its own' if Test::Util::sanitized();
my $why = Test::Systemd->unusable;
plan skip_all => $why if $why;

my $examples = Cwd::abs_path("$FindBin::Bin/../../examples");
my $sd = Test::Systemd->boot;

my $readme = slurp("$examples/systemd/README.md");

# The first block of commands of README.md after a line, without sudo.
sub lines ($from) {
	my ($block) = $readme =~ /^\Q$from\E(?s:.*?)\n\n((?:    .*\n)+)/m or die "README.md: nothing below $from";
	return map { s/\bsudo //gr } $block =~ /^    (.*)$/mg;
}

sub paste (@lines) {
	for my $line (@lines) {
		my ($status, $said) = $sd->command('sh', '-c', $line);
		is $status, 0, $line or diag $said;
	}
	return;
}

subtest 'accel-server as README.md installs it' => sub {
	my ($make, @start) = lines('## accel-server');
	is $make, 'make && make install install-service', 'make';
	$sd->install;
	$sd->put('/var/www/html/index.html', "hello\n");
	chmod 0644, $sd->path('/var/www/html/index.html');
	paste(@start);
	like $sd->run('curl', '--silent', 'http://127.0.0.1:8080/'), qr/^hello$/, 'it serves';
	paste(lines('It serves'));
};

# The real one would be too slow for a test; all else is as it is installed.
sub watch_closely {
	$sd->put("/etc/systemd/system/$_.service.d/test.conf", "[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\nRestartSec=0\n") for qw(accel-server fcgi-stat-accel);
	$sd->systemctl('stop', 'accel-server');
	$sd->put('/var/www/html/hello.txt', "hello\n");
	chmod 0644, $sd->path('/var/www/html/hello.txt');
	$sd->systemctl('daemon-reload');
	return;
}

my $conf = <<'END';
server.document-root = "/var/www/html"
server.port = 80
server.pid-file = "/run/stat-accel/accel-server.pid"
server.errorlog = "/var/log/stat-accel/error.log"
accesslog.filename = "/var/log/stat-accel/access.log"
server.max-worker = 2
$HTTP["url"] =~ "^/never/(\d+)" {
	server.document-root = "/srv"
}
END

sub get { my ($path) = @_; return $sd->run('curl', '--silent', '--max-time', '20', "http://127.0.0.1$path") }

sub main_pid { my ($unit) = @_; return $sd->show($unit, 'MainPID') }

watch_closely();
$sd->put('/etc/stat-accel/accel-server.conf', $conf);

subtest 'accel-server starts, with no more rights than it needs' => sub {
	is +($sd->systemctl('start', 'accel-server'))[0], 0, 'it starts' or diag $sd->messages;
	is get('/hello.txt'), "hello\n", 'it serves a file at port 80';
	like $sd->show('accel-server', 'StatusText'), qr/^\d+ connections, configuration 1 since the start$/, 'a line for people';
	my $pid = main_pid('accel-server');
	my $status = slurp($sd->path("/proc/$pid/status"));
	my $www = getpwnam 'www-data';
	like $status, qr/^Uid:\s+$www\s+$www\s+$www\s+$www$/m, 'www-data';
	like $status, qr/^CapBnd:\s+0*400$/m, 'one capability, for ports below 1024';
	like $status, qr/^NoNewPrivs:\s+1$/m, 'no new privileges';
	like $status, qr/^Seccomp_filters:\s+([2-9]|\d\d+)$/m, 'the filter of systemd, and its own';
	like $status, qr/^VmLck:\s+[1-9]\d{3,} kB$/m, 'the program is locked in memory';
	is slurp($sd->path('/run/stat-accel/accel-server.pid')) =~ s/\s//gr, $pid, 'its pid file';
	my @log = stat $sd->path('/var/log/stat-accel/access.log');
	is getgrgid($log[5]), 'adm', 'the group adm reads logs';
	is $log[2] & 0777, 0640, '... and no other';
	isnt $sd->run('journalctl', '--no-pager', '-u', 'accel-server', '-o', 'cat'), '', 'the journal has the start';
	unlike slurp($sd->path('/var/log/stat-accel/error.log')), qr/sandbox\.partial|core-files|level=(?:warn|error)/, 'nothing was refused';
};

subtest 'a reload' => sub {
	$sd->put('/etc/stat-accel/accel-server.conf', $conf . qq{alias.url = ( "/new.txt" => "/var/www/html/hello.txt" )\n});
	my $pid = main_pid('accel-server');
	is +($sd->systemctl('reload', 'accel-server'))[0], 0, 'it is done';
	is $sd->show('accel-server', 'ActiveState'), 'active', 'the unit is active';
	is main_pid('accel-server'), $pid, 'in the same process';
	is get('/new.txt'), "hello\n", 'with the new configuration';
	$sd->put('/etc/stat-accel/accel-server.conf', "server.port = nonsense\n");
	isnt +($sd->systemctl('reload', 'accel-server'))[0], 0, 'a wrong configuration: the reload fails';
	is $sd->show('accel-server', 'ActiveState'), 'active', '... the unit is active';
	is get('/hello.txt'), "hello\n", '... the old configuration serves';
	like $sd->messages('-u', 'accel-server'), qr/nonsense/, '... and the journal has the reason';
	like slurp($sd->path('/var/log/stat-accel/error.log')), qr/ev=reload\.refused .*nonsense/, '... so has its own log: the server itself refused it';
};

subtest 'it is restarted after a crash, not after a wrong configuration' => sub {
	$sd->put('/etc/stat-accel/accel-server.conf', $conf);
	my $pid = main_pid('accel-server');
	$sd->systemctl('kill', '--signal=KILL', '--kill-whom=main', 'accel-server');
	ok $sd->wait_show('accel-server', NRestarts => 1), 'a restart' or diag $sd->show('accel-server', 'NRestarts');
	ok $sd->wait_show('accel-server', ActiveState => 'active'), 'it is there again';
	isnt main_pid('accel-server'), $pid, 'another process';
	is get('/hello.txt'), "hello\n", 'it serves';
	$sd->systemctl('stop', 'accel-server');
	$sd->put('/etc/stat-accel/accel-server.conf', "server.port = nonsense\n");
	isnt +($sd->systemctl('start', 'accel-server'))[0], 0, 'a wrong configuration';
	is $sd->show('accel-server', 'ActiveState'), 'failed', 'it has failed';
	is $sd->show('accel-server', 'ExecMainStatus'), 78, 'with the status for a wrong configuration';
	$sd->put('/etc/stat-accel/accel-server.conf', $conf);
	is +($sd->systemctl('start', 'accel-server'))[0], 0, 'the correct one';
};

subtest 'a binary upgrade' => sub {
	my $pid = main_pid('accel-server');
	$sd->systemctl('kill', '--signal=USR2', '--kill-whom=main', 'accel-server');
	ok eventually(sub { main_pid('accel-server') !~ /^(?:0|$pid)$/ }), 'systemd knows the new process';
	my $new = main_pid('accel-server');
	is slurp($sd->path('/run/stat-accel/accel-server.pid')) =~ s/\s//gr, $new, '... which the pid file names';
	is $sd->show('accel-server', 'ActiveState'), 'active', 'the unit is active';
	is get('/hello.txt'), "hello\n", 'it serves';
	ok eventually(sub { !-d $sd->path("/proc/$pid") }), 'the old process ends';
	my $told = $sd->show('accel-server', 'WatchdogTimestampMonotonic');
	ok eventually(sub { $sd->show('accel-server', 'WatchdogTimestampMonotonic') > $told }), 'the new one is watched';
	my $before = $sd->show('accel-server', 'NRestarts');
	$sd->systemctl('kill', '--signal=KILL', '--kill-whom=main', 'accel-server');
	ok $sd->wait_show('accel-server', NRestarts => $before + 1), 'systemd sees its end';
	ok $sd->wait_show('accel-server', ActiveState => 'active'), 'and starts it again';
};

subtest 'the watchdog bites when it stands still' => sub {
	my $pid = main_pid('accel-server');
	my $before = $sd->show('accel-server', 'NRestarts');
	$sd->systemctl('kill', '--signal=STOP', '--kill-whom=main', 'accel-server');
	ok eventually(sub { main_pid('accel-server') !~ /^(?:0|$pid)$/ }), 'another process';
	ok $sd->wait_show('accel-server', ActiveState => 'active'), 'it is there again';
	is $sd->show('accel-server', 'NRestarts'), $before + 1, 'systemd restarted it once';
	like $sd->messages('_PID=1', '-u', 'accel-server'), qr/Watchdog timeout/, 'the journal says why';
	is get('/hello.txt'), "hello\n", 'it serves';
};

subtest 'logrotate' => sub {
	plan skip_all => 'no logrotate' if !-x '/usr/sbin/logrotate';
	my ($status, $said) = $sd->command('logrotate', '--force', '--state=/run/rotate-state', '/etc/logrotate.d/accel-server');
	is $status, 0, 'it rotates' or diag $said;
	is $said, '', 'and has nothing to say';
	ok -e $sd->path('/var/log/stat-accel/access.log.1'), 'the old log';
	is get('/hello.txt'), "hello\n", 'a request';
	ok eventually(sub { slurp($sd->path('/var/log/stat-accel/access.log')) =~ /hello/ }), 'is in the new log';
};

subtest 'stop' => sub {
	is +($sd->systemctl('stop', 'accel-server'))[0], 0, 'it stops';
	is $sd->show('accel-server', 'Result'), 'success', 'cleanly';
	ok !-e $sd->path('/run/stat-accel/accel-server.pid'), 'the pid file is gone';
	ok -d $sd->path('/run/stat-accel'), 'the directory stays, for fcgi-stat-accel';
};

subtest 'accel-server started by root, as README.md has it' => sub {
	my ($row) = slurp("$examples/systemd/README.md") =~ /^\| (files of root .*)$/m;
	my @lines = $row =~ /`([A-Z]\w+=[^`]*)`/g;
	cmp_ok scalar(@lines), '>=', 4, 'lines of a drop-in file';
	$sd->put('/etc/systemd/system/accel-server.service.d/root.conf', join "\n", '[Service]', @lines, '');
	$sd->put('/etc/stat-accel/accel-server.conf', $conf . qq{server.username = "www-data"\n});
	$sd->systemctl('daemon-reload');
	is +($sd->systemctl('start', 'accel-server'))[0], 0, 'it starts' or diag $sd->messages('-u', 'accel-server');
	is get('/hello.txt'), "hello\n", 'it serves';
	my $www = getpwnam 'www-data';
	like slurp($sd->path('/proc/' . main_pid('accel-server') . '/status')), qr/^Uid:\s+$www\s+$www\s/m, 'the server is www-data';
	is +($sd->systemctl('reload', 'accel-server'))[0], 0, 'it reloads';
	is +($sd->systemctl('stop', 'accel-server'))[0], 0, 'it stops';
	unlink $sd->path('/etc/systemd/system/accel-server.service.d/root.conf');
	$sd->put('/etc/stat-accel/accel-server.conf', $conf);
	$sd->systemctl('daemon-reload');
};

subtest 'accel-server with a socket of systemd' => sub {
	is +($sd->systemctl('start', 'accel-server.socket'))[0], 0, 'systemd listens';
	is get('/hello.txt'), "hello\n", 'the first request starts it';
	is +($sd->systemctl('restart', 'accel-server'))[0], 0, 'a restart';
	is get('/hello.txt'), "hello\n", 'it serves';
	$sd->systemctl('stop', 'accel-server.socket', 'accel-server');
};

# The entries of a program, once there is one with this field.
sub entries ($unit, $ev, @filter) {
	my @all;
	eventually(sub { @all = $sd->journal('-u', $unit, '_TRANSPORT=journal', "ACCEL_EV=$ev", @filter); @all > 0 });
	return @all;
}

subtest 'accel-server logs to the journal, with fields' => sub {
	$sd->put('/etc/stat-accel/accel-server.conf', $conf =~ s/^server\.errorlog.*\n//mr . qq{server.errorlog-format = "json"\ndebug.log-timing = "enable"\n});
	symlink '/etc/passwd', $sd->path('/var/www/html/out') or die $!;
	is +($sd->systemctl('start', 'accel-server'))[0], 0, 'it starts';
	my $pid = main_pid('accel-server');
	get('/out');
	my ($e) = entries('accel-server', 'link.refused', 'PRIORITY=4');
	is_deeply { map { $_ => $e->{$_} } qw(SYSLOG_IDENTIFIER SYSLOG_FACILITY PRIORITY _PID ACCEL_LINK ACCEL_TARGET) },
	    { SYSLOG_IDENTIFIER => 'accel-server', SYSLOG_FACILITY => 3, PRIORITY => 4, _PID => $pid, ACCEL_LINK => 'out', ACCEL_TARGET => '/etc/passwd' }, 'a warning';
	like $e->{MESSAGE}, qr/^ts=\S+ level=warn ev=link\.refused .* target=\/etc\/passwd/, 'and the line as text, also with the format json';
	is +(entries('accel-server', 'listening'))[0]{PRIORITY}, 6, 'information';
	get('/hello.txt');
	ok eventually(sub { grep { $_->{MESSAGE} =~ /write-start.*hello/ && $_->{PRIORITY} == 6 } $sd->journal('-u', 'accel-server', '_TRANSPORT=journal') }), 'stage times';
	$sd->put('/etc/stat-accel/accel-server.conf', $conf . qq{server.errorlog-format = "json"\n});
	$sd->systemctl('kill', '--signal=USR1', '--kill-whom=main', 'accel-server');
	is scalar(entries('accel-server', 'reloaded')), 1, 'a reload that names a file: the journal is the log until a restart';
	$sd->systemctl('restart', 'systemd-journald');
	$sd->put('/etc/stat-accel/accel-server.conf', "server.port = nonsense\n");
	$sd->systemctl('kill', '--signal=USR1', '--kill-whom=main', 'accel-server');
	is +(entries('accel-server', 'reload.refused'))[0]{PRIORITY}, 3, 'an error, for a journal that was started again';
	$sd->put('/etc/stat-accel/accel-server.conf', $conf);
	$sd->systemctl('stop', 'accel-server');
};

# One request; its status.
sub ask {
	my $sock = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $sd->path('/run/stat-accel.sock')) or return "connect: $!";
	my $c = Test::Fcgi::Conn->new($sock);
	$c->send(request(1, 0, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => '/var/www/html/hello.txt'));
	return $c->reply->{status};
}

subtest 'fcgi-stat-accel and accel-warm as README.md installs them' => sub {
	my ($make, @start) = lines('## fcgi-stat-accel');
	is $make, 'make && make install install-service', 'make';
	paste(@start);
	is ask(), 204, 'it answers';
	paste(lines('### Every day'), lines('## accel-warm by a timer'));
	$sd->systemctl('stop', 'accel-warm.timer', 'fcgi-stat-accel.socket', 'fcgi-stat-accel');
};

subtest 'fcgi-stat-accel starts with its first request' => sub {
	is +($sd->systemctl('start', 'fcgi-stat-accel.socket'))[0], 0, 'systemd listens';
	my @socket = stat $sd->path('/run/stat-accel.sock');
	is getgrgid($socket[5]), 'www-data', 'for the group of the web server';
	is $sd->show('fcgi-stat-accel', 'ActiveState'), 'inactive', 'the program does not run';
	is ask(), 204, 'the first request';
	is $sd->show('fcgi-stat-accel', 'ActiveState'), 'active', 'it runs';
	my $status = slurp($sd->path('/proc/' . main_pid('fcgi-stat-accel') . '/status'));
	like $status, qr/^CapBnd:\s+0+$/m, 'without a capability';
	like $status, qr/^Seccomp_filters:\s+([2-9]|\d\d+)$/m, 'with the filter of systemd, and its own';
	my ($e) = entries('fcgi-stat-accel', 'sandbox.entered', '_PID=' . main_pid('fcgi-stat-accel'));
	is_deeply [@$e{qw(SYSLOG_IDENTIFIER PRIORITY)}], ['fcgi-stat-accel', 6], 'the journal has its lines, with fields';
	$sd->put('/etc/default/fcgi-stat-accel', "OPTIONS=--mode=sendfile --root=/var/www --log=/var/log/stat-accel/fcgi-stat-accel.log\n");
	is +($sd->systemctl('restart', 'fcgi-stat-accel'))[0], 0, 'other options, and a log';
	is ask(), 200, 'the answer of the other mode';
	is +($sd->command('logrotate', '--force', '--state=/run/rotate-state', '/etc/logrotate.d/fcgi-stat-accel'))[0], 0, 'its log is rotated';
	ok eventually(sub { slurp($sd->path('/var/log/stat-accel/fcgi-stat-accel.log')) =~ /ev=log\.reopen by=HUP/ }), 'it writes to the new one';
};

subtest 'fcgi-stat-accel is watched and restarted' => sub {
	my $pid = main_pid('fcgi-stat-accel');
	$sd->systemctl('kill', '--signal=STOP', '--kill-whom=main', 'fcgi-stat-accel');
	is ask(), 200, 'a request waits until the next one is there';
	isnt main_pid('fcgi-stat-accel'), $pid, 'another process';
	like $sd->messages('_PID=1', '-u', 'fcgi-stat-accel'), qr/Watchdog timeout/, 'the journal says why';
	is +($sd->systemctl('stop', 'fcgi-stat-accel.socket', 'fcgi-stat-accel'))[0], 0, 'it stops';
	is $sd->show('fcgi-stat-accel', 'Result'), 'success', 'cleanly';
};

done_testing;
