#!/usr/bin/perl
# fcgi-stat-accel in operation: status and ping, log and its rotation, timing lines, the sandbox, systemd.

use v5.36;
use Test::More;
use Cwd qw(abs_path);
use FindBin ();
use IO::Socket::INET;
use JSON::PP ();
use Test::Fcgi qw(begin params put request temp_tree eventually);
use Test::Manager;
use Test::Util qw(find_program slurp);
use Accel::Slowfs;

my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www log run elsewhere);
put("$dir/www/file", 'x' x 1000);
put("$dir/www/other", 'x');
my $top = abs_path("$FindBin::Bin/../..");

# The answer to a request for one of its own pages.
sub page {
	my ($app, $name, $query, $method) = @_;
	return $app->ask(REQUEST_METHOD => $method // 'GET', SCRIPT_NAME => $name, QUERY_STRING => $query // '');
}

sub numbers { my ($app) = @_; return JSON::PP::decode_json(page($app, '/st', 'json')->{body}) }

# Waits until a line of the log matches; what has been logged until then.
sub logged {
	my ($file, $line, $what) = @_;
	ok eventually(sub { slurp($file) =~ $line }), $what or diag slurp($file);
	return slurp($file);
}

subtest 'the status page and ping answer' => sub {
	my $app = Test::Fcgi->start('--status-path=/st', '--ping-path=/up', '--mode=auth');
	is page($app, '/up')->{bytes}, "Status: 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n"
	    . "Cache-Control: no-store\r\n\r\npong\n", 'ping';
	is page($app, '/up', 'json')->{body}, "{\"ok\":true}\n", 'as JSON';
	is page($app, '/up', '', 'HEAD')->{body}, '', 'HEAD has no body';
	is $app->get("$dir/www/file")->{status}, 204, 'a file in between';
	is $app->get("$dir/www/none")->{status}, 204, 'and none';
	my $n = numbers($app);
	is $n->{mode}, 'auth', 'its mode';
	is $n->{counters}{'accel.answers.go-on'}, 2, 'two answers';
	is $n->{counters}{'accel.requests.read'}, 6, 'six requests, its own included';
	is $n->{connections}{open}, 1, 'this connection';
	is $n->{requests}{waiting}, 0, 'no request waits';
	is $n->{stages}{total}{count}, 2, 'the time of each file';
	cmp_ok $n->{threads}{stat}{threads}, '>', 0, 'its threads';
	my $text = page($app, '/st')->{body};
	like $text, qr/^accel\.answers\.go-on: 2$/m, 'as text';
	like $text, qr/^accel\.summary: 2 answers, \d+ % needed no thread, the last answer was \d+ s ago; .* \d+\.\d+ s of CPU, \d+ us per answer$/m, 'a summary';
	is scalar(grep { !/^accel\.[\w.:-]+: \S/ } split /\n/, $text), 0, 'a name and a value in each line';
	is $app->ask(SCRIPT_NAME => '/st/x', SCRIPT_FILENAME => "$dir/www/file")->{status}, 204, 'only that path';
	my $c = $app->connect;
	$c->send(begin(1, role => 2), params(1, SCRIPT_NAME => '/up'));
	is $c->reply->{body}, "pong\n", 'an authorizer gets it, too';
	is $app->stop, 0, 'it ends with 0';
};

subtest 'the status page shows a disk that hangs' => sub {
	my ($usable, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $usable;
	my $slow = Accel::Slowfs->start(source => "$dir/www", spindles => 1, lookup_ms => 0, read_ms => 0);
	my $app = Test::Fcgi->start('--status-path=/st', '--threads=2', '--deadline=0');
	$slow->hang;
	my $c = $app->connect;
	$c->send(request(1, 0, SCRIPT_FILENAME => $slow->dir . '/file'));
	ok $slow->wait_hanging(1), 'a look-up hangs';
	my $n = numbers($app);
	is $n->{requests}{waiting}, 1, 'one request waits';
	is $n->{threads}{stat}{busy}, 1, 'one thread hangs';
	my @busy = grep { $_->{busy} == 1 && $_->{oldest_ns} > 0 } @{ $n->{devices} };
	is_deeply [map { $_->{mount} } @busy], [$slow->dir], 'on one device, which has the name of its mount point';
	like page($app, '/st', '')->{body}, qr/^accel\.devices\.\Q$busy[0]{device}\E\.mount: \Q@{[ $slow->dir ]}\E$/m, '... in the text, too';
	is $n->{devices_stuck}, 0, 'which is not given up yet';
	$slow->go;
	is $c->reply->{status}, 200, 'it goes on';
	is numbers($app)->{requests}{waiting}, 0, 'no request waits any more';
	$app->stop;
	$slow->stop;
};

subtest 'promtool accepts the metrics page' => sub {
	plan skip_all => 'no promtool' unless find_program('promtool');
	my $app = Test::Fcgi->start('--status-path=/st');
	$app->get("$dir/www/file");
	my $r = page($app, '/st', 'metrics');
	is $r->{header}{'content-type'}, 'text/plain; version=0.0.4; charset=utf-8', 'its type';
	put("$dir/metrics", $r->{body});
	is `promtool check metrics <'$dir/metrics' 2>&1`, '', 'promtool has nothing to say';
	is $?, 0, 'and is content';
};

subtest 'HUP reopens the log, USR2 writes all numbers to it' => sub {
	my $log = "$dir/log/accel";
	my $app = Test::Fcgi->start("--log=$log", "--root=$dir/www", '--status-path=/st');
	is $app->get("$dir/www/file")->{status}, 200, 'a file';
	kill 'USR2', $app->{pid};
	my $text = logged($log, qr/ev=accel\.stage name=total/, 'USR2: the numbers');
	like $text, qr/ev=accel\.stats mode=sendfile uptime-s=\d+ connections=\d+ /, 'a line about all';
	like $text, qr/ev=accel\.answers file=1 /, 'a line for each group';
	rename $log, "$log.1" or die "rename: $!";
	kill 'HUP', $app->{pid};
	logged($log, qr/ev=log\.reopen by=HUP/, 'HUP: a new file');
	kill 'USR2', $app->{pid};
	logged($log, qr/ev=accel\.stats/, 'what follows is there');
	unlike slurp("$log.1"), qr/ev=log\.reopen/, 'and not in the old one';
	is $app->get("$dir/www/file")->{status}, 200, 'it serves on';
	is $app->stop, 0, 'it ends with 0';
	is $app->log_text, '', 'nothing on standard error';
	my ($code, undef, $err) = Test::Fcgi::run("--log=$dir/none/log", '--listen', "unix:$dir/run/x");
	is $code, 73, 'a log that cannot be made: exit status';
	like $err, qr/--log .*No such file/, 'and why';
};

subtest 'accel-graph reads the timing lines' => sub {
	for my $format (['--timing'], ['--timing=json']) {
		my $log = "$dir/log/timing$format->[0]";
		my $app = Test::Fcgi->start(@$format, "--log=$log", '--status-path=/st', '--remember=0');
		is $app->get("$dir/www/$_")->{status}, /none/ ? 404 : 200, $_ for qw(file other none);
		page($app, '/st');
		is $app->stop, 0, 'it ends with 0';
		my @lines = grep { /write-start/ } split /\n/, slurp($log);
		is scalar @lines, 3, "@$format: a line for each file, none for the status" or diag slurp($log);
		like $lines[2], qr/status\W+404\b.*path\W+\Q$dir\E\/www\/none"/, 'the one that is not there';
		is scalar(() = "@lines" =~ /id\W+(c\d+\.\d+)\b/g), 3, 'each has an id';
		my $out = `$^X '$top/scripts/accel-graph' --no-charts --json '$log' 2>&1`;
		is $?, 0, 'accel-graph reads it' or diag $out;
		my $sum = JSON::PP::decode_json($out);
		is $sum->{requests}, 3, 'all three';
		is $sum->{rejected}, 0, 'none rejected';
		like $sum->{advice}, qr/\A[A-Z][^\n]+\.\z/, 'one sentence of advice';
	}
};

# ---------------------------------------------------------------- sandbox

# 444: landlock_create_ruleset; asks for the version only.
my $abi = syscall 444, 0, 0, 1;

# /proc does not show Landlock, so the test tries something forbidden: a log whose directory is another one by now.
sub writes_elsewhere (@options) {
	my $log = "$dir/log/sandbox";
	my $app = Test::Fcgi->start("--log=$log", "--root=$dir/www", '--status-path=/st', @options);
	rename "$dir/log", "$dir/log.moved" or die "rename: $!";
	symlink 'elsewhere', "$dir/log" or die "symlink: $!";
	kill 'HUP', $app->{pid};
	my $text = '';
	eventually(sub { $text = slurp("$dir/log.moved/sandbox") . slurp("$dir/elsewhere/sandbox"); $text =~ /ev=log\.failed/ || -e "$dir/elsewhere/sandbox" });
	my $wrote = -e "$dir/elsewhere/sandbox";
	unlink "$dir/log", "$dir/elsewhere/sandbox";
	rename "$dir/log.moved", "$dir/log" or die "rename: $!";
	my $served = $app->get("$dir/www/file")->{status};
	return ($wrote, $text, $served, numbers($app)->{landlock_abi});
}

subtest 'the sandbox confines every thread' => sub {
	my ($wrote, $text, $served, $shown) = writes_elsewhere('--no-sandbox');
	ok $wrote, 'without: it can write where it likes';
	is $shown, 0, 'and the status says so';
	SKIP: {
		skip "this kernel has no Landlock ($!)", 5 if $abi < 1;
		($wrote, $text, $served, $shown) = writes_elsewhere();
		ok !$wrote, 'with: it cannot';
		like $text, qr/ev=log\.failed path=\S+ error="Permission denied"/, 'which it tells the old log';
		is $served, 200, 'and it serves on';
		is $shown, $abi, 'the status names the version';
		like $text, qr/ev=sandbox\.entered names=landlock abi=$abi calls=seccomp/, 'the log, too';
	}
};

subtest 'the sandbox allows a root that is a link, and removes the socket' => sub {
	symlink 'www', "$dir/current";
	my $socket = "$dir/run/sock";
	my $app = Test::Fcgi->start({ own => 1, socket => $socket }, '--listen=unix:@SOCKET@', "--root=$dir/current/", '--status-path=/st');
	is numbers($app)->{landlock_abi}, $abi < 1 ? 0 : $abi, 'confined, where there is Landlock';
	is $app->get("$dir/current/file")->{status}, 200, 'by the name of the link';
	is $app->get("$dir/www/other")->{status}, 200, 'by that of the directory';
	is $app->stop, 0, 'it ends with 0';
	ok !-e $socket, 'and its socket with it';
};

# ---------------------------------------------------------------- systemd

subtest 'the service manager gets READY=1' => sub {
	my $manager = Test::Manager->new;
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
	my $app = Test::Fcgi->start({ passed => $sock, env => { $manager->env, WATCHDOG_USEC => 300_000 } }, "--root=$dir/www");
	ok $manager->wait(qr/\AREADY=1\z/), 'when it listens';
	ok $manager->wait(qr/\AWATCHDOG=1\nSTATUS=\d+ connections\z/), 'while its loop goes round';
	kill 'STOP', $app->{pid};
	$manager->clear;
	select undef, undef, undef, 0.4;
	is_deeply [$manager->messages], [], 'no word while it stands still';
	kill 'CONT', $app->{pid};
	ok $manager->wait(qr/\AWATCHDOG=1\n/), 'it goes on';
	is $app->stop, 0, 'it ends with 0';
	ok $manager->wait(qr/\ASTOPPING=1\z/), 'when it ends';
};

subtest 'the options of the unit' => sub {
	my ($options) = slurp("$top/examples/systemd/fcgi-stat-accel.service") =~ /^Environment="OPTIONS=(.*)"$/m;
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
	my $app = Test::Fcgi->start({ passed => $sock }, map { s{/var/www/html}{$dir/www}r } split / /, $options);
	is $app->get("$dir/www/file")->{status}, 204, 'they work';
	is page($app, '/accel-status')->{status}, 200, 'with a status page';
};

done_testing;
