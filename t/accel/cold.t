#!/usr/bin/perl
# fcgi-stat-accel before a slow disk: cold files wait together, delay no other request, and are warm afterwards.

use v5.36;
use POSIX ();
use Test::More;
use Test::Fcgi qw(put temp_tree request record eventually finish T_ABORT T_END);
use Accel::Slowfs;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = temp_tree();
put("$tree/cold$_", 'x' x 300_000) for 1 .. 16;
my $hot = put("$tree/hot", 'x');

# Sends one request for each path, each on a connection of its own.
sub ask_all ($app, @paths) {
	return map { my $c = $app->connect; $c->send(request(1, 0, SCRIPT_FILENAME => $_)); $c } @paths;
}

subtest 'cold files wait together' => sub {
	my $slow = Accel::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 0, read_ms => 0);
	my $app = Test::Fcgi->start('-t', 17);
	$slow->hang;
	my @cold = ask_all($app, map { $slow->dir . "/cold$_" } 1 .. 16);
	ok $slow->wait_hanging(16), 'sixteen look-ups are under way at once';
	is $app->get($hot)->{status}, 200, 'a hot file beside them';
	is $slow->hanging, 16, '... does not wait for the disk, which has not said a word';
	$slow->go;
	is scalar(grep { $_->reply->{status} == 200 } @cold), 16, 'all sixteen are answered';
	$slow->hang;
	is $app->get($slow->dir . '/cold1')->{status}, 200, 'once more: it is warm, the disk is not asked';
	$slow->go;
	$app->stop;
	$slow->stop;
};

subtest 'an aborted request does not wait for its look-up' => sub {
	my $slow = Accel::Slowfs->start(source => "$tree", spindles => 1, lookup_ms => 0, read_ms => 0);
	my $app = Test::Fcgi->start('-t', 1, '--status-path=/status');
	my $c = $app->connect;
	$slow->hang;
	$c->send(request(1, 1, SCRIPT_FILENAME => $slow->dir . '/cold1'), record(T_ABORT, 1, ''));
	is_deeply $c->record, [T_END, 1, "\0" x 8], 'an abort is confirmed';
	$c->send(request(2, 1, SCRIPT_FILENAME => $hot));
	is $c->reply->{status}, 200, 'and the connection goes on, without a wait for the disk';
	($c) = ask_all($app, $slow->dir . '/cold2');
	my $counted = sub { $app->ask(SCRIPT_NAME => '/status')->{body} =~ /requests\.aborted: (\d+)/ ? $1 : -1 };
	is $counted->(), 1, 'one was aborted';
	close $c->{sock};
	ok eventually(sub { $counted->() == 2 }), 'a peer that goes is one, too';
	$slow->go;
	is $app->stop, 0, 'it ends with 0';
	$slow->stop;
};

subtest 'the start of a file is warm when the answer comes' => sub {
	my $slow = Accel::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 0, read_ms => 1);
	my $app = Test::Fcgi->start('-t', 1, '--warm=read:128k');
	$app->get($slow->dir . '/cold1');
	cmp_ok $slow->counts->{reads}, '>', 0, 'it was read from the disk';
	open my $h, '<', $slow->dir . '/cold1' or die $!;
	$slow->hang;
	my $pid = fork // die "fork: $!";       # if it waits for the disk, then not we
	if (!$pid) {
		my $n = 0;
		$n += sysread $h, my $buf, 131072 - $n while $n < 131072;
		POSIX::_exit(0);
	}
	is finish($pid), 0, 'its first 128 KiB do not wait for it any more';
	$slow->go;
	close $h;
	$app->stop;
	$slow->stop;
};

subtest 'TERM does not wait for a disk that hangs' => sub {
	my $slow = Accel::Slowfs->start(source => "$tree", spindles => 1, lookup_ms => 3000, read_ms => 0);
	my $app = Test::Fcgi->start('-t', 1);
	my ($c) = ask_all($app, $slow->dir . '/cold1');     # read at the latest when it drains
	is $app->stop, 0, 'it ends with 0';
	like $app->log_text, qr/still waiting for a file/, 'and says what it left';
	$slow->stop;
};

done_testing;
