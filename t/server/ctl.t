# accel-server ctl: asks a running server through its control socket, waits for the outcome and prints it.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::UNIX ();
use JSON::PP ();
use POSIX ();
use Socket qw(SOCK_STREAM);
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp);

my $program = program('accel-server');

sub server (%arg) {
	my $srv = Test::Server->start(%arg, conf => qq{server.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\nserver.tag = "one"\n} . ($arg{conf} // ''));
	$srv->sparse('big', 8 << 20);
	$srv->write('a', 'A');
	$srv->wait_log(qr/ev=listening/);
	return $srv;
}

# Exit status, and what it printed.
sub ctl ($srv, @words) {
	my ($rc, $out, $err) = Test::Util::run_fed($program, '', 'ctl', @words, grep({ /^--(?:pid|socket)/ } @words) ? () : ('-f', $srv->run . '/server.conf'));
	return ($rc, $out . $err);
}

sub change ($srv, $from, $to) {
	my $conf = $srv->run . '/server.conf';
	put($conf, slurp($conf) =~ s/$from/$to/r);
}

subtest 'status and reload' => sub {
	my $srv = server();
	my ($rc, $said) = ctl($srv, 'status');
	is $rc, 0, 'status';
	like $said, qr/^pid +${\$srv->pid}$/m, '... has the process';
	like $said, qr/^last_reload +never$/m, '... and no reload yet';
	change($srv, '"one"', '"two"');
	is_deeply [ctl($srv, 'reload')], [0, "reloaded\n"], 'reload';
	is $srv->fetch('/a')->{header}{server}, 'two', '... which is in force when the command ends';
	put($srv->run . '/extra.conf', "server.max-worker = 1\n");
	change($srv, qr/\z/, qq{include "extra.conf"\n});
	change($srv, qr/^server\.max-worker.*\n/m, '');
	is((ctl($srv, 'reload'))[0], 0, 'one with an included file');
	put($srv->run . '/extra.conf', qq{server.max-worker = "x"\n});
	($rc, $said) = ctl($srv, 'reload');
	is $rc, 78, 'a configuration that does not load';
	like $said, qr{/extra\.conf:1:\d+: server\.max-worker: expected}, '... is printed with its file and line';
	($rc, $said) = ctl($srv, 'reload', '--socket=' . $srv->run . '/pid.ctl');
	is $rc, 78, 'the server refuses it, too';
	like $said, qr{/extra\.conf:1:\d+: server\.max-worker: expected}, '... and says why';
	my @both = ('-f', $srv->run . '/server.conf', '--socket=' . $srv->run . '/pid.ctl');
	($rc, $said) = ctl($srv, 'reload', @both);
	is $rc, 78, 'with both options, too';
	like $said, qr{\A[^\n]*/extra\.conf:1:\d+: server\.max-worker: expected}, '... which says it';
	ok eventually(sub { 3 == (() = $srv->log =~ /ev=reload\.refused/g) }), '... and the log of the server has it, as it has those before';
	is +(ctl($srv, 'status', @both))[0], 0, 'status works without a configuration that loads';
	is $srv->fetch('/a')->{header}{server}, 'two', 'the old configuration serves';
	($rc, $said) = ctl($srv, 'status', '--json', '--socket=' . $srv->run . '/pid.ctl');
	my $status = eval { JSON::PP::decode_json($said) } // {};
	is $status->{last_reload_status}, 78, 'status has the outcome of the last reload';
	like $status->{last_reload_said}, qr{/extra\.conf:1:}, '... and what was wrong';
	is $status->{generation}, 3, '... and the configurations so far';
	put($srv->run . '/extra.conf', qq{server.document-root = "/nonexistent"\n});
	change($srv, qr/^server\.document-root.*\n/m, '');
	($rc, $said) = ctl($srv, 'reload');
	is $rc, 78, 'a directory that is missing';
	like $said, qr{/extra\.conf:1:\d+: server\.document-root: .*/nonexistent.*No such file}, '... is named with file and line';
};

# Each way to a refusal has a line in the log, and the metrics have it.
subtest 'a configuration that does not load' => sub {
	my $at = qq{status.metrics-url = "/metrics"\n};
	my %conf = ('after the names' => $at, 'without a control socket' => qq{$at} . qq{server.control-socket = "disable"\n});
	for my $what (sort keys %conf) {
		my $srv = server(conf => $conf{$what});
		my $good = slurp($srv->run . '/server.conf');
		my $metric = sub { return $srv->fetch('/metrics')->{body} =~ /^accel_config_last_reload_successful (\d)/m ? $1 : 'none' };
		my $refused = sub { return scalar(() = $srv->log =~ /ev=(?:reload\.refused|upgrade\.failed) .*server\.conf:\d+/g) };
		is $metric->(), 1, "$what: at first";
		my %broken = (setting => $good . "server.max-workers = 1\n", syntax => "}\n$good");
		for my $mistake (sort keys %broken) {
			for my $verb (qw(reload upgrade)) {
				my $lines = $refused->();
				put($srv->run . '/server.conf', $broken{$mistake});
				my ($rc, $said) = ctl($srv, $verb);
				is $rc, 78, "$verb, $mistake: status";
				like $said, qr{server\.conf:\d+:\d+: .*goes on as it is}s, '... it is printed';
				ok eventually(sub { $refused->() > $lines }, Test::Util::SOON), '... and logged' or diag $srv->log;
				ok eventually(sub { $metric->() eq '0' }, Test::Util::SOON), '... and the metrics have it';
				put($srv->run . '/server.conf', $good);
				is +(ctl($srv, 'reload'))[0], 0, 'a good one';
				ok eventually(sub { $metric->() eq '1' }, Test::Util::SOON), '... and so have they';
			}
		}
		put($srv->run . '/server.conf', $broken{syntax});
		is +(ctl($srv, 'stop'))[0], 0, 'stop works without a configuration that loads';
		is $srv->wait_exit(0), 0, '... cleanly';
	}
};

subtest 'reopen' => sub {
	my $srv = server(conf => qq{accesslog.filename = "\@RUN\@/access.log"\n});
	my $log = $srv->run . '/access.log';
	$srv->fetch('/a?first');
	rename $log, "$log.1" or die $!;
	is_deeply [ctl($srv, 'reopen')], [0, "reopened\n"], 'after a rotation';
	ok -e $log, '... the new log is there when the command ends';
	$srv->fetch('/a?second');
	like $srv->wait_log(qr/second/, 'access.log'), qr/second/, '... and is written to';
	$srv->log_has(qr/ev=logs\.reopened by=ctl/, '... and the error log names who asked');
	rename $log, "$log.2" or die $!;
	mkdir $log or die $!;
	my ($rc, $said) = ctl($srv, 'reopen');
	is $rc, 73, 'a log that cannot be opened: status 73';
	like $said, qr{access\.log: Is a directory: writing to the old file; it is a directory: name a file in it}, '... with the reason, and what to do';
	rmdir $log;
	is +(ctl($srv, 'reopen'))[0], 0, 'then it can';
	is_deeply [ctl($srv, 'reopen', '--pid=' . $srv->pid)], [0, 'signal ' . POSIX::SIGHUP() . ' was sent to process ' . $srv->pid . "; the error log has the outcome\n"],
		'without the control socket it is HUP';
};

subtest 'upgrade' => sub {
	my $srv = server();
	my $old = $srv->pid;
	my ($rc, $said) = ctl($srv, 'upgrade');
	is $rc, 0, 'done';
	my ($new) = $said =~ /^process (\d+) serves now; process $old ends/m or diag $said;
	is $srv->log('pid'), "$new\n", 'the new process is named';
	$srv->upgraded_to($new);
	like +(ctl($srv, 'status'))[1], qr/^pid +$new$/m, '... and answers on the control socket';
	change($srv, '"one"', 'one');
	($rc, $said) = ctl($srv, 'upgrade', '--socket=' . $srv->run . '/pid.ctl');
	is $rc, 78, 'a new server that fails: its status';
	like $said, qr{server\.conf:\d+:\d+: var\.one has no value.*goes on as it is}s, '... and what it said';
	is $srv->fetch('/a')->{header}{server}, 'one', 'the old one serves';
};

subtest 'stop and quit wait for the end' => sub {
	my $srv = server();
	is_deeply [ctl($srv, 'stop')], [0, "stopped\n"], 'stop';
	is $srv->wait_exit(0), 0, 'the process has ended with status 0';
	my ($rc, $said) = ctl($srv, 'status');
	is $rc, 69, 'then there is no server';
	like $said, qr/no server runs.*No such file/, '... which is said';
	unlink $srv->run . '/pid.ctl';
	put($srv->run . '/pid', '');
	like +(ctl($srv, 'status'))[1], qr/no server runs.*it has no process number/, '... as it is of an empty pid file';

	$srv = server();
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send(req('/big', 'Connection: close'));
	$c->up_to("\r\n\r\n", time + Test::Util::PATIENCE);
	pipe my $rd, my $wr or die $!;
	my $ctl = fork // die $!;
	if (!$ctl) {
		close $rd;
		my ($quit) = ctl($srv, 'quit');
		syswrite $wr, "quit $quit";
		POSIX::_exit(0);
	}
	close $wr;
	like $srv->wait_log(qr/ev=stopping by=ctl/), qr/ev=stopping by=ctl how="after/, 'quit drains';
	is length $c->rest, 8 << 20, '... the running reply ends whole';
	is do { local $/; <$rd> }, 'quit 0', '... then the command ends, too';
	waitpid $ctl, 0;
	is $srv->wait_exit, 0, 'and the process has, with status 0';
};

subtest 'nobody else uses or blocks the socket' => sub {
	my $srv = server();
	my $path = $srv->run . '/pid.ctl';
	is sprintf('%o', (stat $path)[2] & 07777), '600', 'its mode';
	my $connect = sub { IO::Socket::UNIX->new(Peer => $path, Type => SOCK_STREAM) };
	SKIP: {
		skip 'needs root and the user nobody', 1 unless $> == 0 && defined getpwnam 'nobody';
		chmod 0755, $srv->run;
		my $pid = fork // die $!;
		if (!$pid) {
			POSIX::setuid(scalar getpwnam 'nobody');
			POSIX::_exit($connect->() ? 1 : 0);
		}
		waitpid $pid, 0;
		is $?, 0, 'another user cannot connect';
	}
	my @silent = map { $connect->() } 1 .. 12;
	my @said = grep { defined } map { $_ && scalar readline $_ } @silent[0 .. 7];
	is scalar(@said), 8, 'eight clients are greeted';
	like $said[0], qr{^accel-server/\S+ \d+$}, '... with version and process';
	is $srv->fetch('/a')->{body}, 'A', 'silent ones delay no request';
	is scalar(readline($silent[0]) // 'end'), 'end', '... and are dropped';
	@silent = ();
	is((ctl($srv, 'status'))[0], 0, 'then the next ones are served');
	my $c = $connect->();
	print {$c} 'x' x 100;
	$c->flush;
	like do { local $/; <$c> }, qr/^exit 64$/m, 'a request that is too long is refused';
	$c = $connect->();
	print {$c} "frobnicate\n";
	$c->flush;
	like do { local $/; <$c> }, qr/^exit 64\n.*does not know/m, '... as is an unknown one';
};

subtest 'without a control socket' => sub {
	my $srv = server(conf => qq{server.control-socket = "disable"\n});
	ok !-e $srv->run . '/pid.ctl', 'there is none';
	change($srv, '"one"', '"two"');
	my ($rc, $said) = ctl($srv, 'reload');
	is $rc, 0, 'reload sends a signal';
	like $said, qr/signal \d+ was sent to process ${\$srv->pid}; the error log/, '... and says where the outcome is';
	$srv->log_has(qr/ev=reloaded/, '... which arrives');
	($rc, $said) = ctl($srv, 'status');
	is $rc, 69, 'there is no status';
	($rc, $said) = ctl($srv, 'reload', "--pid=$$");
	is $rc, 69, 'another program is not signalled';
	like $said, qr/process $$ is not an accel-server/, '... which is said';
	is_deeply [ctl($srv, 'stop', '--pid=' . $srv->pid)], [0, "stopped\n"], 'stop waits for the end';
	is $srv->wait_exit(0), 0, '... of the process';
};

subtest 'the command line' => sub {
	for my $case (['no verb', qr/expected one of reload/], ['an unknown one', qr/got "fly"/, 'fly', '-f', 'x'], ['two', qr/got "stop"/, 'reload', 'stop', '-f', 'x'],
		['no server', qr/expected one of -f FILE/, 'reload'], ['two servers', qr/expected one of -f FILE/, 'reload', '-f', 'x', '--pid=2'])
	{
		my ($name, $said, @words) = @$case;
		my ($rc, undef, $err) = Test::Util::run_fed($program, '', 'ctl', @words);
		is $rc, 64, $name;
		like $err, $said, '... is named';
	}
	my ($rc, $out) = Test::Util::run_fed($program, '', 'ctl', '--help');
	is $rc, 0, '--help';
	like $out, qr/upgrade  execute the program file anew/, '... lists the verbs';
};

done_testing;
