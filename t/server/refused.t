# A reload or an upgrade that cannot be done leaves the server as it is.  The error log, accel-server ctl and the service manager's
# line for people say so.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use Test::Manager;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp temp_tree);

my $bin = temp_tree();
chmod 0755, "$bin";
my $point = sub ($to) { unlink "$bin/program"; symlink $to, "$bin/program" or die $! };
$point->(program('accel-server'));
my $manager = Test::Manager->new;
my $srv = Test::Server->start(program => "$bin/program", env => { $manager->env, LISTEN_PID => 1 }, conf => qq{server.bind = "\@RUN\@/sock"\nserver.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\n});
$srv->write('a', 'A');
my ($pid, $conf) = ($srv->pid, $srv->run . '/server.conf');
my $good = slurp($conf);
$srv->wait_log(qr/ev=listening/);
my $rival = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "a port: $@";
my $port = $rival->sockport;

put("$bin/text", "no program\n");
put("$bin/crash", "#!/bin/sh\nkill -SEGV \$\$\n");
chmod 0755, "$bin/crash";

sub serves () {
	my $c = IO::Socket::UNIX->new(Peer => $srv->run . '/sock') or return '';
	print {$c} "GET /a HTTP/1.0\r\n\r\n";
	return do { local $/; <$c> } // '';
}

sub ctl ($verb) {
	my ($rc, $out, $err) = Test::Util::run_fed(program('accel-server'), '', 'ctl', $verb, '--socket=' . $srv->run . '/pid.ctl');
	return ($rc, $out . $err);
}

sub refused ($verb, $what, $status, $cause) {
	my $seen = length slurp($srv->run . '/error.log');
	$manager->clear;
	my ($rc, $said) = ctl($verb);
	is $rc, $status, "$verb, $what: the status of ctl";
	like $said, $cause, '... its output has the cause';
	like substr($srv->wait_log($cause), $seen), $cause, '... as has the error log';
	like $manager->wait(qr/^STATUS=.* failed/m), qr/^STATUS=.*, the last $verb failed: see the error log$/m, '... and the manager knows it';
	like serves(), qr/ 200 .*\nA\z/s, '... and the server serves';
	is slurp($srv->run . '/pid'), "$pid\n", '... with its number';
	return;
}

for my $verb (qw(reload upgrade)) {
	for my $case (
		['a syntax error', sub { $good . "server.tag = \n" }, 78, qr{server\.conf:\d+:\d+: }],
		['a directory that is missing', sub { $good =~ s/document-root = "\K[^"]*/\/nonexistent/r }, 78, qr{/nonexistent.*No such file}],
		['a port in use', sub { $good . qq{\$SERVER["socket"] == "127.0.0.1:$port" { }\n} }, 69, qr{127\.0\.0\.1:$port.*(?:another program listens there|in use)}],
	) {
		my ($what, $text, $status, $cause) = @$case;
		put($conf, $text->());
		refused($verb, $what, $status, $cause);
	}
	put($conf, $good);
}
for my $case (
	['a program that is missing', "$bin/none", 127, qr{/program: No such file}],
	['a program that is not executable', "$bin/text", 127, qr{/program: Permission denied}],
	['a program that crashes', "$bin/crash", 70, qr{ended by signal 11}],
) {
	my ($what, $to, $status, $cause) = @$case;
	$point->($to);
	refused('upgrade', $what, $status, $cause);
}

$point->(program('accel-server'));
$manager->clear;
is_deeply [ctl('reload')], [0, "reloaded\n"], 'then a reload succeeds';
unlike $manager->wait(qr/^READY=1\nSTATUS=/m), qr/reload failed/, '... and the manager knows it';
ok $srv->upgrade, 'and an upgrade does';
unlike $manager->wait(qr/^MAINPID=(?s:.*)|^READY=1\nSTATUS=.* configuration 1 /m), qr/failed/, '... and the manager knows it';
like serves(), qr/ 200 .*\nA\z/s, 'the new process serves';

done_testing;
