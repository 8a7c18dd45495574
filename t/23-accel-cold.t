#!/usr/bin/perl
# fcgi-stat-accel before a slow disk: cold files wait together and hold nobody, afterwards they are warm.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Test::Fcgi qw(put temp_tree request record until_true T_ABORT T_END);
use Test::Slowfs;

my ($usable, $why) = Test::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = temp_tree();
put("$tree/cold$_", 'x' x 300_000) for 1 .. 16;
my $hot = put("$tree/hot", 'x');

# Sends one request for each path, each on a connection of its own.
sub ask_all {
	my ($app, @paths) = @_;
	return map { my $c = $app->connect; $c->send(request(1, 0, SCRIPT_FILENAME => $_)); $c } @paths;
}

subtest 'cold files wait together' => sub {
	my $slow = Test::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 400, read_ms => 0);
	my $app = Test::Fcgi->start('-t', 17);
	my $start = time;
	my @cold = ask_all($app, map { $slow->dir . "/cold$_" } 1 .. 16);
	is $app->get($hot)->{status}, 200, 'a hot file beside them';
	cmp_ok time - $start, '<', 0.3, 'does not wait for the disk';
	is scalar(grep { $_->reply->{status} == 200 } @cold), 16, 'all sixteen are answered';
	cmp_ok time - $start, '>', 0.35, 'they were cold';
	cmp_ok time - $start, '<', 3.2, 'and did not queue up';     # one after the other: 6.4 s
	$start = time;
	is $app->get($slow->dir . '/cold1')->{status}, 200, 'once more';
	cmp_ok time - $start, '<', 0.3, 'it is warm';
	$app->stop;
	$slow->stop;
};

subtest 'a request is given up while its file is looked up' => sub {
	my $slow = Test::Slowfs->start(source => "$tree", spindles => 1, lookup_ms => 1000, read_ms => 0);
	my $app = Test::Fcgi->start('-t', 1, '--status-path=/status');
	my $c = $app->connect;
	my $start = time;
	$c->send(request(1, 1, SCRIPT_FILENAME => $slow->dir . '/cold1'), record(T_ABORT, 1, ''));
	is_deeply $c->record, [T_END, 1, "\0" x 8], 'an abort is confirmed';
	$c->send(request(2, 1, SCRIPT_FILENAME => $hot));
	is $c->reply->{status}, 200, 'and the connection goes on';
	cmp_ok time - $start, '<', 0.7, 'without a wait for the disk';
	($c) = ask_all($app, $slow->dir . '/cold2');
	my $counted = sub { $app->ask(SCRIPT_NAME => '/status')->{body} =~ /requests\.aborted: (\d+)/ ? $1 : -1 };
	is $counted->(), 1, 'one was aborted';
	close $c->{sock};
	ok until_true(sub { $counted->() == 2 }), 'a peer that goes is one, too';
	is $app->stop, 0, 'it ends with 0';
	$slow->stop;
};

subtest 'the start of a file is warm when the answer comes' => sub {
	my $slow = Test::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 0, read_ms => 400);
	my $app = Test::Fcgi->start('-t', 1, '--warm=read:128k');
	$app->get($slow->dir . '/cold1');
	cmp_ok $slow->counts->{reads}, '>', 0, 'it was read from the disk';
	my $start = time;
	open my $h, '<', $slow->dir . '/cold1' or die $!;
	my $n = 0;
	$n += sysread $h, my $buf, 131072 - $n while $n < 131072;
	cmp_ok time - $start, '<', 0.3, 'its first 128 KiB do not wait for it any more';
	close $h;
	$app->stop;
	$slow->stop;
};

subtest 'the end does not wait for a disk that hangs' => sub {
	my $slow = Test::Slowfs->start(source => "$tree", spindles => 1, lookup_ms => 3000, read_ms => 0);
	my $app = Test::Fcgi->start('-t', 1);
	my ($c) = ask_all($app, $slow->dir . '/cold1');     # read at the latest when it drains
	is $app->stop, 0, 'it ends with 0';
	like $app->log_text, qr/still waiting for a file/, 'and says what it left';
	$slow->stop;
};

done_testing;
