#!/usr/bin/perl
# A mount hangs.  Requests of its files get 503 at the deadline, all others are served as before, a bounded number of threads
# hangs.  When the mount is back, its files are served.

use v5.36;
use IO::Select;
use Test::More;
use Time::HiRes qw(time);
use Test::Fcgi qw(put temp_tree request eventually);
use Accel::Slowfs;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $THREADS = 4;
my $DEADLINE = 2;       # seconds; what waits for a mount that hangs takes as long
my $SOON = 10;          # ... and what takes longer is never answered
my $tree = temp_tree();
put("$tree/f$_", 'x' x 1000) for 1 .. 200;
put("$tree/big$_", 'x' x 1_000_000) for 1 .. 4;
my $hot = put("$tree/hot", 'x');

my ($sick, $well, $app);

sub up (@options) {
	$sick = Accel::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 1, read_ms => 1);
	$well = Accel::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 1, read_ms => 1);
	$app = Test::Fcgi->start('-t', $THREADS, '--deadline', 1000 * $DEADLINE, '--remember', 60_000, @options);
}

sub down {
	$sick->go;
	is $app->stop, 0, 'it ends with 0';
	$_->stop for $sick, $well;
}

sub ask_all (@paths) {
	return map { my $c = $app->connect; $c->send(request(1, 0, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $_)); $c } @paths;
}

# Seconds of the slowest request; each is asked for alone on one kept connection.
sub worst (@paths) {
	my $c = $app->connect;
	my ($worst, $wrong) = (0, 0);
	for my $path (@paths) {
		my $start = time;
		$c->send(request(1, 1, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $path));
		my $r = $c->reply;
		my $took = time - $start;
		$worst = $took if $took > $worst;
		$wrong++ unless $r && $r->{status} == 200;
	}
	return ($worst, $wrong);
}

# A busy machine may delay one round.  A request that waited for the mount would delay all rounds, until the deadline.
sub not_held_up {
	my ($what, @paths) = @_;
	my ($best, $wrong) = ($SOON, 0);
	for (1 .. 5) {
		my ($took, $bad) = worst(@paths);
		$best = $took if $took < $best;
		$wrong += $bad;
		last if $best < $DEADLINE / 20;
	}
	is $wrong, 0, "$what: all are answered";
	cmp_ok $best, '<', $DEADLINE / 20, "$what: the slowest of a round in a twentieth of the deadline";
	diag sprintf '%s beside a hung mount: worst of %d requests %.2f ms', $what, scalar @paths, $best * 1000;
}

sub answered { my @ready = IO::Select->new(map { $_->{sock} } @_)->can_read(0); return scalar @ready }

subtest 'a hanging mount delays its own files only' => sub {
	up();
	my @kept = map { $sick->dir . "/f$_" } 1 .. 20;
	is $app->get($_)->{status}, 200, "$_ is known" for @kept[0, 1];
	worst(@kept);
	my @beside = map { $well->dir . "/f$_" } 1 .. 20;
	worst(@beside, $hot);
	my $tasks = $app->tasks;

	$sick->hang;
	my $since = time;
	my @hung = ask_all(map { $sick->dir . "/f$_" } 101 .. 140);
	ok $sick->wait_hanging($THREADS), 'as many look-ups hang as there are threads';
	not_held_up('files on a local disk', ($hot) x 40);
	not_held_up('files of another mount', @beside, map { $well->dir . '/f' . (40 + $_) } 1 .. 20);
	not_held_up('remembered files of the mount itself', @kept);
	is $sick->hanging, $THREADS, 'it is not asked for more';
	cmp_ok $app->tasks - $tasks, '<=', 2 * $THREADS, 'others got as many threads once more, for opening and for reading'
	    or diag $app->tasks . " tasks, $tasks before";
	is answered(@hung), 0, 'no request has an answer yet' if time - $since < $DEADLINE * 0.8;

	my @replies = map { $_->reply } @hung;
	my $took = time - $since;
	is scalar(grep { $_->{status} == 503 } @replies), 40, 'all forty get 503';
	is scalar(grep { ($_->{header}{'retry-after'} // '') =~ /^\d+$/ } @replies), 40, '... and when to come again';
	cmp_ok $took, '>=', $DEADLINE * 0.9, 'not before the deadline';
	cmp_ok $took, '<', $DEADLINE + $SOON, 'and then at once';

	@hung = ask_all(map { $sick->dir . "/f$_" } 141 .. 150);
	is scalar(grep { $_->reply->{status} == 503 } @hung), 10, 'later requests get 503, too';
	is $sick->hanging, $THREADS, 'without another look-up';

	$sick->go;
	is scalar(grep { $_->reply->{status} == 200 } ask_all(map { $sick->dir . "/f$_" } 101 .. 160)), 60, 'the mount is back, and its files are served';
	@hung = ();
	down();
};

# Together the mounts want more threads than there are.
subtest 'several hanging mounts delay their own files only' => sub {
	up();
	my @sick = ($sick, map { Accel::Slowfs->start(source => "$tree", spindles => 16, lookup_ms => 1, read_ms => 1) } 2 .. 6);
	$_->hang for @sick;
	my @hung = map { my $dir = $_->dir; ask_all(map { "$dir/f$_" } 101 .. 120) } @sick;
	ok $_->wait_hanging(1), 'one hangs' for @sick;
	my @got = map { $app->get($well->dir . "/f$_")->{status} } 1 .. 20;
	is_deeply \@got, [(200) x 20], 'cold files of a mount that is well are served';
	is $app->get("$tree/f$_")->{status}, 200, 'and those of the local disk' for 1 .. 3;
	is scalar(grep { $_->reply->{status} == 503 } @hung), scalar @hung, 'requests that wait for the others get 503';
	$_->go for @sick;
	is $app->get($_->dir . '/f1')->{status}, 200, 'the mount is back' for @sick;
	@hung = ();
	down();
	$_->stop for @sick;
};

subtest 'equal names hang in one look-up' => sub {
	up();
	$sick->hang;
	my @c = ask_all(($sick->dir . '/none') x 20);
	ok $sick->wait_hanging(1), 'it hangs';
	not_held_up('files of another mount', map { $well->dir . "/f$_" } (1 .. 20) x 2);
	is $sick->hanging, 1, 'once';
	is scalar(grep { $_->reply->{status} == 503 } @c), 20, 'twenty get 503';
	@c = ask_all(($sick->dir . '/none') x 20);
	$sick->go;
	is scalar(grep { $_->reply->{status} == 404 } @c), 20, 'twenty new requests get the result of the first look-up';
	is $sick->counts->{lookups}, 1, 'the mount was asked once';
	@c = ();
	down();
};

subtest 'a full queue refuses at once' => sub {
	up('-t', 1, '--per-device=1', '--queue=2', '--deadline=0', '--status-path=/st');
	my $mount = $sick->dir;
	$sick->hang;
	my @first = ask_all("$mount/f1");
	ok $sick->wait_hanging(1), 'a thread has the first';
	my @next = ask_all(map { "$mount/f$_" } 2, 3);
	ok eventually(sub { $app->ask(SCRIPT_NAME => '/st')->{body} =~ /^accel\.threads\.stat\.queued: 2$/m }), 'two wait for it';
	my ($late) = ask_all("$mount/f4");
	my $r = $late->reply;
	is $r->{status}, 503, 'the fourth need not';
	is $r->{header}{'retry-after'}, 1, 'and may ask again';
	$sick->go;
	is_deeply [map { $_->reply->{status} } @first, @next], [(200) x 3], 'the others are answered, without a deadline';
	down();
};

subtest 'a hanging read delays its own file only' => sub {
	up('--warm=read:1m');
	$sick->hang_after(300_000);
	my @c = ask_all(map { $sick->dir . "/big$_" } 1 .. 4);
	ok $sick->wait_hanging(1), 'the disk hangs in the middle of a file';
	not_held_up('files of another mount', map { $well->dir . "/f$_" } 1 .. 20);
	is scalar(grep { $_->reply->{status} == 503 } @c), 4, 'their deadline holds';
	$sick->go;
	is $app->get($sick->dir . '/big1')->{status}, 200, 'and then it is well again';
	@c = ();
	down();
};

subtest 'an authorizer goes on, or refuses' => sub {
	up('--mode=auth');
	$sick->hang;
	my ($c) = ask_all($sick->dir . '/f1');
	ok $sick->wait_hanging(1), 'it hangs';
	is $c->reply->{status}, 204, 'the server may go on';
	undef $c;
	down();
	up('--mode=auth', '--late=503');
	$sick->hang;
	($c) = ask_all($sick->dir . '/f1');
	is $c->reply->{status}, 503, 'or not';
	undef $c;
	down();
};

subtest 'a request says itself what is answered when its file is late' => sub {
	up('-t', 1, '--per-device=1', '--queue=1', '--mode=auth', '--status-path=/st');
	$sick->hang;
	my %c;
	for my $late (503, 504) {    # the second one is the queue
		$c{$late} = $app->connect;
		$c{$late}->send(request(1, 0, WARM_PATH => $sick->dir . "/f$late", WARM_LATE => $late));
		ok $sick->wait_hanging(1), 'a thread hangs';
	}
	ok eventually(sub { $app->ask(SCRIPT_NAME => '/st')->{body} =~ /^accel\.threads\.stat\.queued: 1$/m }), 'the queue is full';
	my $start = time;
	is $app->ask(WARM_PATH => $sick->dir . '/f9', WARM_LATE => 503)->{status}, 503, 'WARM_LATE=503: a full queue';
	is $app->ask(WARM_PATH => $sick->dir . '/f9')->{status}, 204, 'without it the server goes on';
	cmp_ok time - $start, '<', $DEADLINE, 'both at once';
	is $c{503}->reply->{status}, 503, 'WARM_LATE=503: the deadline';
	is $c{504}->reply->{status}, 204, 'another value changes nothing';
	%c = ();
	down();
};

subtest 'the log names the slow file and the stage' => sub {
	for my $case (['f1', 'stat'], ['big1', 'read']) {
		my ($name, $stage) = @$case;
		up('--slow-ms=100', '--warm=read:1m');
		my $path = $sick->dir . "/$name";
		$stage eq 'stat' ? $sick->hang : $sick->hang_after(0);
		is $app->get($path)->{status}, 503, "$stage hangs";
		my $line = qr/ev=file\.slow path="?\Q$path\E"? stage=$stage ms=[1-9]\d{3,} error=/;
		ok eventually(sub { $app->log_text =~ $line }), 'its path, the stage and how long' or diag $app->log_text;
		down();
	}
};

done_testing;
