#!/usr/bin/perl
# Peers send without reading, break off in every state, half close, and keep on sending.  Other peers are served, and the
# memory for them is bounded.

use v5.36;
use Test::More;
use IO::Select;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::Fcgi qw(record begin params pairs request put temp_tree eventually program
    T_BEGIN T_ABORT T_END T_PARAMS T_STDIN T_STDOUT T_GET_VALUES T_GET_VALUES_RESULT T_UNKNOWN_TYPE);

use constant { T_DATA => 8, MB => 1 << 20 };

my $sanitized = program() =~ m{/[at]san/};      # what is freed stays a while in their hands
my $tree = temp_tree();
my $file = put("$tree/file", 'x' x 100);
my $good = request(1, 1, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $file);
my $app = Test::Fcgi->start('-t', 2);
is $app->get($file)->{status}, 200, 'it serves';
my $fds = fds();

sub fds { my @f = glob "/proc/$app->{pid}/fd/*"; return scalar @f }
sub memory { Test::Util::slurp("/proc/$app->{pid}/statm") =~ /^\d+ (\d+)/; return $1 * 4096 }

sub still_good ($what) {
	my $r = $app->get($file);
	is $r && $r->{status}, 200, "$what: others are served";
}

# Sends $bytes again and again and reads nothing, until the peer takes no more for this many seconds or $most is sent.  Returns how
# much was taken.
sub flood {
	my ($c, $bytes, $most, $seconds) = @_;
	local $SIG{PIPE} = 'IGNORE';
	my ($taken, $at, $writable) = (0, 0, IO::Select->new($c->{sock}));
	$c->{sock}->blocking(0);
	while ($taken < $most && $writable->can_write($seconds)) {
		my $n = syswrite $c->{sock}, $bytes, length($bytes) - $at, $at;
		last unless defined $n || $!{EAGAIN};
		$taken += $n // 0;
		$at = ($at + ($n // 0)) % length $bytes;
	}
	$c->{sock}->blocking(1);
	return $taken;
}

subtest 'peers that do not read hold bounded memory' => sub {
	my %flood = (
		GET_VALUES => record(T_GET_VALUES, 0, pairs(FCGI_MAX_CONNS => '', FCGI_MAX_REQS => '', FCGI_MPXS_CONNS => '')),
		'unknown types' => record(200, 0, ''),
		'unknown roles' => begin(5, keep => 1, role => 99),
		'aborted requests' => begin(5, keep => 1) . record(T_ABORT, 5, ''),
		requests => $good,
	);
	for my $what (sort keys %flood) {
		my $before = memory();
		my $c = $app->connect;
		my $taken = flood($c, $flood{$what} x 100, 32 * MB, 0.3);
		cmp_ok $taken, '<', 16 * MB, "$what: it stops to read";
		still_good("beside $what");
		cmp_ok memory() - $before, '<', ($sanitized ? 512 : 4) * MB, "$what: and to keep";
	}
};

subtest 'floods of ignored records hold no memory' => sub {
	my %flood = (
		'a body without end' => record(T_STDIN, 1, 'b' x 65535, padding => 255),
		'data without end' => record(T_DATA, 1, 'b' x 60000),
		'bodies of others' => join('', map { record(T_STDIN, $_, 'b') } 2 .. 500),
		'names of others' => join('', map { record(T_PARAMS, $_, pairs(A => 'b')) } 2 .. 500),
		'aborts of others' => join('', map { record(T_ABORT, $_, '') } 2 .. 500),
	);
	my $most = $sanitized ? 4 * MB : 64 * MB;
	for my $what (sort keys %flood) {
		my $before = memory();
		my $c = $app->connect;
		$c->send($good);
		is $c->reply->{status}, 200, "$what: after a request that was answered";
		my $whole = length($flood{$what}) * (1 + int($most / length $flood{$what}));
		is flood($c, $flood{$what}, $whole, $Test::Fcgi::patience), $whole, 'all of it is taken';
		cmp_ok memory() - $before, '<', ($sanitized ? 512 : 2) * MB, 'none of it is kept';
		$c->send($good);
		is $c->reply->{status}, 200, 'then the next request';
	}
};

subtest 'large records are taken whole' => sub {
	my $c = $app->connect;
	$c->send(map { record($_, 0, 'w' x 65535, padding => 255) } 12 .. 20);
	is join(' ', map { my $r = $c->record; "$r->[0] " . ord $r->[2] } 12 .. 20), join(' ', map { "11 $_" } 12 .. 20), 'unknown types of 64 KiB';
	my $pair = length pairs(A => 'x' x 65000);
	my $fill = pairs(A => 'x' x (65535 - $pair - length(pairs(SCRIPT_FILENAME => $file)) - 6)) . pairs(A => 'x' x 65000);
	my @sent = ($fill . pairs(SCRIPT_FILENAME => $file));
	is length $sent[0], 65535, 'as long as may be';
	$c->send(begin(1, keep => 1), record(T_PARAMS, 1, $sent[0], padding => 255), record(T_PARAMS, 1, ''));
	is $c->reply->{status}, 200, 'names of 65535 bytes';
	$c->send(begin(1, keep => 1), record(T_PARAMS, 1, $sent[0]), record(T_PARAMS, 1, 'x'));
	ok $c->closed, 'one more: closed';
	$c = $app->connect;
	$c->send(begin(1, keep => 1), record(T_PARAMS, 1, pairs('', '') x 10000 . pairs(SCRIPT_FILENAME => $file)), record(T_PARAMS, 1, ''));
	is $c->reply->{status}, 200, '10,000 names that are empty';
	$c->send(request(1, 1, SCRIPT_FILENAME => '/' . 'x/' x 32000));
	is $c->reply->{status}, 404, 'a path of 64 kB';
	$c->send(request(1, 1, SCRIPT_FILENAME => '/' . "\xff" x 60000));
	like $c->reply->{status}, qr/^40[34]$/, 'a path that is three times as long when encoded';
	$c->send(request(1, 1, map { (SCRIPT_FILENAME => "$tree/other$_") } 1 .. 500), $good);
	like $c->reply->{status}, qr/^(200|404)$/, 'a name 500 times';
	is $c->reply->{status}, 200, 'and goes on';
};

# The pieces that a request is cut into: after each byte something else happens.
subtest 'a connection may end in each state' => sub {
	my $step = $sanitized ? 7 : 1;
	my ($halves, $resets, $aborts) = (0, 0, 0);
	for (my $n = 0; $n <= length $good; $n += $step) {
		my $c = $app->connect;
		$c->send(substr $good, 0, $n);
		$c->shutdown;                                   # reads on
		my $r = $c->reply;
		$halves++ if $r ? $r->{status} == 200 && $n >= length($good) - 8 : $n < length $good;
		$c->closed or return fail "still open after $n bytes and the end";
		$c = $app->connect;
		$c->send($good, substr $good, 0, $n);
		setsockopt $c->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
		close $c->{sock};                               # an answer unread
		$resets++;
	}
	cmp_ok $halves, '>', length($good) / $step - 2, 'half closed: an answer when it was whole, the end otherwise';
	still_good("after $resets that were cut off");
	my @records = (begin(1, keep => 1), record(T_PARAMS, 1, pairs(A => 'b')), record(T_PARAMS, 1, pairs(SCRIPT_FILENAME => $file)));
	for my $n (1 .. @records) {
		my $c = $app->connect;
		$c->send(@records[0 .. $n - 1], record(T_ABORT, 1, 'why', padding => 5), record(T_ABORT, 1, ''), $good);
		my $r = $c->record;
		$aborts++ if $r->[0] == T_END && $r->[1] == 1 && $c->reply->{status} == 200;
	}
	is $aborts, @records, 'aborted after each record: its end, then the next request';
	ok eventually(sub { fds() <= $fds }), 'every descriptor is back' or diag fds() . " above $fds";
};

subtest 'a thousand half requests delay no other' => sub {
	my $n = 1000;
	plan skip_all => 'too few descriptors' if `sh -c 'ulimit -n'` !~ /unlimited/ && `sh -c 'ulimit -n'` < 2 * $n + 100;
	my $half = length($good) - 20;
	my @c = map { my $c = $app->connect; $c->send(substr $good, 0, $half); $c } 1 .. $n;
	still_good("beside $n halves");
	$_->send(substr $good, $half) for @c;
	my $answered = grep { my $r = $_->reply; $r && $r->{status} == 200 } @c;
	is $answered, $n, 'each is answered when it is whole';
	@c = ();
	ok eventually(sub { fds() <= $fds }), 'every descriptor is back' or diag fds() . " above $fds";
};

subtest 'requests in one burst are answered in order' => sub {
	put("$tree/n$_", 'x') for 0 .. 99;
	my $c = $app->connect;
	$c->send(map { request($_ + 1, 1, SCRIPT_FILENAME => $tree . ($_ % 3 ? "/n$_" : "/none$_")) } 0 .. 99);
	my @got = map { my $r = $c->reply; "$r->{id}:$r->{status}" } 0 .. 99;
	is "@got", join(' ', map { $_ + 1 . ($_ % 3 ? ':200' : ':404') } 0 .. 99), 'found and not found';
};

is $app->stop, 0, 'it was the same process all the time';
is $app->log_text, '', 'and had nothing to complain of';
done_testing;
