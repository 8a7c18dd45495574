#!/usr/bin/perl
# accel-server reports to its service manager: its state, and that each of its loops goes round.

use v5.36;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Manager;
use Test::Server;
use Test::Util qw(eventually program temp_tree);
use Accel::Slowfs;

my $interval_us = 300_000;

# Messages that come until there are n that match.
sub some ($manager, $n, $re) {
	$manager->clear;
	return eventually(sub { $n <= grep { $_ =~ $re } $manager->messages });
}

sub status ($srv) {
	my ($rc, $out, $err) = Test::Util::run_fed(program('accel-server'), '', 'ctl', 'status', '--socket=' . $srv->run . '/ctl');
	return ($rc, $out . $err);
}

subtest 'the state, with a line for people' => sub {
	my $manager = Test::Manager->new;
	my $srv = Test::Server->start(env => { $manager->env });
	like $manager->wait(qr/READY/), qr/\AREADY=1\nSTATUS=0 connections, configuration 1 since the start\z/, 'it is ready';
	my $c = $srv->connect;
	$c->send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{status}, 404, 'a connection';
	$manager->clear;
	$srv->signal('USR1');
	like $manager->wait(qr/RELOADING/), qr/\ARELOADING=1\nMONOTONIC_USEC=\d+\z/, 'it reloads';
	like $manager->wait(qr/READY/), qr/\AREADY=1\nSTATUS=\d+ connections, configuration 2 since the start(?:, older ones drain)?\z/, 'it has reloaded';
	$srv->term;
	like $manager->wait(qr/STOPPING/), qr/\ASTOPPING=1\nSTATUS=stopping: \d+ connections/, 'it stops';
	is scalar(grep { /WATCHDOG/ } $manager->messages), 0, 'nobody watches, so it reports no more';
};

subtest 'idle and busy loops go round' => sub {
	my $manager = Test::Manager->new;
	my $srv = Test::Server->start(conf => "server.max-worker = 4\n", env => { $manager->env, WATCHDOG_USEC => $interval_us });
	ok some($manager, 3, qr/^WATCHDOG=1$/m), 'four idle workers';
	like +($manager->messages)[-1], qr/\AWATCHDOG=1\nSTATUS=0 connections, /, 'with a line for people';
	$srv->signal('USR1');
	ok $manager->wait(qr/^READY=1$/m), 'a reload';
	ok some($manager, 3, qr/^WATCHDOG=1$/m), 'those of the new configuration';
	unlike $srv->log, qr/worker\.stands-still/, 'none stood still';
};

subtest 'another process is watched' => sub {
	my $manager = Test::Manager->new;
	my $srv = Test::Server->start(env => { $manager->env, WATCHDOG_USEC => $interval_us, WATCHDOG_PID => $$ });
	ok $manager->wait(qr/READY/), 'it is ready';
	select undef, undef, undef, 2 * $interval_us / 1e6;
	is scalar(grep { /WATCHDOG/ } $manager->messages), 0, 'it does not report in its place';
};

subtest 'one worker stands still' => sub {
	my ($usable, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $usable;
	my $manager = Test::Manager->new;
	my $tree = temp_tree();
	my $slow = Accel::Slowfs->start(source => "$tree", lookup_ms => 0, read_ms => 0);
	my $srv = Test::Server->start(
		conf => qq{server.control-socket = "\@RUN\@/ctl"\nserver.max-stat-threads = 0\nserver.document-root = "} . $slow->dir . qq{"\n},
		env => { $manager->env, WATCHDOG_USEC => $interval_us });
	ok some($manager, 1, qr/^WATCHDOG=1$/m), 'it goes round';
	$slow->hang;
	my $c = $srv->connect;
	$c->send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n");
	ok $slow->wait_hanging(1), 'its loop opens a file on a disk that hangs';
	like $srv->wait_log(qr/worker\.stands-still.*/), qr/level=error ev=worker\.stands-still worker=[01] seconds=0 then=/, 'the log says which';
	$manager->clear;
	select undef, undef, undef, 2 * $interval_us / 1e6;
	is scalar(grep { /WATCHDOG/ } $manager->messages), 0, 'no word to the manager, although the other worker is well';
	my ($rc, $said) = status($srv);
	is $rc, 75, 'ctl status asks each loop, and one does not answer: status 75';
	like $said, qr/^state +serving, but a loop stands still.*^loops_still +[01]\n.*a loop stands still/ms, '... and says which';
	$slow->go;
	is $c->reply->{status}, 404, 'the disk answers';
	ok some($manager, 2, qr/^WATCHDOG=1$/m), 'it goes round again';
	$srv->log_has(qr/worker\.goes-on/, '... and the log says so');
	is scalar(() = $srv->log =~ /worker\.stands-still/g), 1, 'one line for all of it';
	($rc, $said) = status($srv);
	is $rc, 0, 'ctl status, too';
	like $said, qr/^state +serving\n/m, '... says so';
	unlike $said, qr/loops_still/, '... and names no loop';
	undef $srv;
	$slow->stop;
};

done_testing;
