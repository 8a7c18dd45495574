#!/usr/bin/perl
# fcgi-stat-accel serves good peers beside peers that are wrong, slow, greedy or gone, and ends cleanly.

use v5.36;
use Test::More;
use IO::Socket::INET;
use IO::Socket::UNIX;
use List::Util qw(sum);
use POSIX ();
use Time::HiRes qw(time);
use Test::Fcgi qw(record begin params pairs request finish put run temp_tree eventually parse_records
    T_ABORT T_END T_PARAMS T_STDIN T_STDOUT T_GET_VALUES T_GET_VALUES_RESULT T_UNKNOWN_TYPE);

my $tree = temp_tree();
my $dir = "$tree";
my $file = put("$dir/file", 'x' x 100);
my $good = request(1, 1, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $file);
my $app = Test::Fcgi->start('-t', 3);

# Two requests that never end: the deadline of the first runs during the other tests, and the last test looks at it.
my $half = $app->connect;
$half->send(substr $good, 0, length($good) - 30);
my $half_since = time;
my $endless = $app->connect;
$endless->send(begin(1), map { record(T_PARAMS, 1, "\0\0" x 30000) } 1 .. 10);

sub still_good ($what) {
	my $r = $app->get($file);
	is $r && $r->{status}, 200, "$what: others are served";
}

sub fds { my @f = glob "/proc/$app->{pid}/fd/*"; return scalar @f }
my $fds = fds();

subtest 'false lengths do not end the process' => sub {
	my %pair = (
		'two lengths of 2 GiB' => "\xff\xff\xff\xff\xff\xff\xff\xff",
		'a name of 2 GiB - 2' => "\xff\xff\xff\xfe\x00",
		'a sum above INT_MAX' => "\xc0\0\0\0\xc0\0\0\0x",
		'1 GiB' => "\x01\xc0\0\0\0x",
		'one byte more than there is' => "\x01\x05xabcd",
		'half a length' => "\x80\x00",
	);
	for my $what (sort keys %pair) {
		my $c = $app->connect;
		$c->send(begin(1, keep => 1), record(T_PARAMS, 1, $pair{$what}), record(T_PARAMS, 1, ''));
		ok $c->closed, "$what: closed";
		is $c->{buf}, '', "$what: without an answer";
	}
	still_good('after all');
};

subtest 'bytes that are not FastCGI end the connection' => sub {
	my %bytes = (
		'HTTP' => "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		'TLS' => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		'zeros' => "\0" x 64,
		'version 2' => record(1, 1, 'x' x 8, version => 2),
		'a BEGIN of 7 bytes' => record(1, 1, 'x' x 7),
		'a BEGIN of nothing' => record(1, 0, 'x' x 8),
		'a BEGIN twice' => begin(1) . begin(1),
		'an answer' => record(T_STDOUT, 1, 'x'),
	);
	for my $what (sort keys %bytes) {
		my $c = $app->connect;
		$c->send($bytes{$what});
		ok $c->closed, $what;
	}
	still_good('after all');
};

subtest '1 MB of variables is answered' => sub {
	my $big = Test::Fcgi->start('-t', 1);
	my @cookie = map { ("HTTP_COOKIE_$_" => 'c' x 10_000) } 1 .. 100;
	for my $case (['responder', 1, 431], ['authorizer', 2, 200]) {
		my ($role, $number, $status) = @$case;
		my $c = $big->connect;
		$c->send(begin(1, keep => 1, role => $number), params(1, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $file, @cookie));
		is $c->reply->{status}, $status, "$role: $status";
		$c->send($good);
		is $c->reply->{status}, 200, "$role: the connection goes on";
	}
	is $big->stop, 0, 'it ends with 0';
	like $big->log_text, qr/ev=request\.too-long /, 'the log says why';
};

subtest 'random changes of bytes do not end the process' => sub {
	srand 42;
	for (1 .. 400) {
		my $bytes = $good . record(T_GET_VALUES, 0, pairs(FCGI_MAX_REQS => '')) . $good;
		substr($bytes, int rand length $bytes, 1) = chr int rand 256 for 1 .. 1 + rand 4;
		my $c = $app->connect;
		$c->send($bytes);
		$c->shutdown;
		$c->closed or return fail 'a connection is stuck';
	}
	still_good('after 400');
};

subtest 'half a request holds no thread' => sub {
	my @slow = map { my $c = $app->connect; $c->send(substr $good, 0, 1 + $_ * 4); $c } 1 .. 20;
	push @slow, map { $app->connect } 1 .. 20;          # and some that say nothing
	still_good("beside $#slow on 3 threads");
	for my $i (0 .. 19) {
		my $c = $slow[$i];
		$c->send($_) for split //, substr $good, 1 + ($i + 1) * 4;
		my $r = $c->reply;
		is $r && $r->{status}, 200, "request $i, byte by byte";
	}
};

subtest 'a request is answered without its body' => sub {
	my $c = $app->connect;
	$c->send(begin(1, keep => 1), params(1, SCRIPT_FILENAME => $file), record(T_STDIN, 1, 'b' x 60000));
	is $c->reply->{status}, 200, 'answered before its end';
	$c->send(map { record(T_STDIN, 1, 'b' x 60000) } 1 .. 20);
	$c->send(record(T_STDIN, 1, ''), $good);
	is $c->reply->{status}, 200, 'the next request after it';
	$c = $app->connect;
	$c->send(begin(1), params(1, SCRIPT_FILENAME => $file));
	$c->send(record(T_STDIN, 1, 'b' x 60000)) for 1 .. 5;
	is $c->reply->{status}, 200, 'not kept: no reset overtakes the answer';
	ok $c->closed, 'then closed';
};

subtest 'management records follow the specification' => sub {
	my $c = $app->connect;
	$c->send(record(T_GET_VALUES, 0, pairs(map { $_ => '' } qw(FCGI_MPXS_CONNS FCGI_MAX_REQS FCGI_MAX_CONNS ELSE))));
	my $values = $c->record;
	my ($conns) = $values->[2] =~ /FCGI_MAX_CONNS(\d+)/;
	cmp_ok $conns, '>', 100, 'GET_VALUES promises many connections, regardless of the number of threads';
	is_deeply $values, [T_GET_VALUES_RESULT, 0,
	    pairs(FCGI_MAX_CONNS => $conns, FCGI_MAX_REQS => $conns, FCGI_MPXS_CONNS => 0)], 'and a request on each';
	$c->send(record(123, 0, 'what'));
	is_deeply $c->record, [T_UNKNOWN_TYPE, 0, chr(123) . "\0" x 7], 'UNKNOWN_TYPE';
	$c->send(begin(1, keep => 1), begin(2, keep => 1), params(2, A => 1), params(1, SCRIPT_FILENAME => $file));
	is_deeply $c->record, [T_END, 2, pack 'NCx3', 0, 1], 'no multiplexing';
	my $r = $c->reply;
	is "$r->{id} $r->{status}", '1 200', 'and the first one goes on';
	$c->send(begin(4, keep => 1, role => 9), params(4, A => 1));
	is_deeply $c->record, [T_END, 4, pack 'NCx3', 0, 3], 'unknown role';
	$c->send(begin(5, keep => 1), record(T_ABORT, 5, ''));
	is_deeply $c->record, [T_END, 5, pack 'NCx3', 0, 0], 'abort';
	$c->send(begin(65535, keep => 1), record(T_PARAMS, 65535, pairs(SCRIPT_FILENAME => $file), padding => 255),
	    params(65535));
	$r = $c->reply;
	is "$r->{id} $r->{status}", '65535 200', 'the largest number, with padding';
	$c->send(request(1, 0, SCRIPT_FILENAME => $file));
	is $c->reply->{status}, 200, 'a last request, without KEEP_CONN';
	ok $c->closed, 'then it closes';
};

subtest 'requests in a row are answered, also to a peer that does not read' => sub {
	my $c = $app->connect;
	$c->send($good x 500);
	is sum(map { $c->reply->{status} == 200 } 1 .. 500), 500, '500 at once';
	# Long answers, so that they do not fit the socket: each dot is one byte here, three there.
	mkdir "$dir/" . "\1" x 200;
	my $long = "$dir/" . ("\1" x 200 . '/../') x 18 . 'file';
	my $ask = request(1, 1, SCRIPT_FILENAME => $long);
	my $greedy = $app->connect;
	my $n = 0;
	$greedy->{sock}->blocking(0);
	$n++ while $n < 1000 && defined syswrite $greedy->{sock}, $ask;
	still_good("beside $n requests whose answers are not read");
	$greedy->{sock}->blocking(1);
	my $r = $greedy->reply;
	is length $r->{header}{'x-sendfile'}, length($dir) + 18 * 604 + 5, 'a long answer is whole';
};

subtest 'peers that vanish leave nothing' => sub {
	for my $i (1 .. 300) {
		my $c = $app->connect;
		$c->send(substr $good, 0, $i % 3 ? length $good : $i % length $good);
	}
	still_good('after 300 of them');
	ok eventually(sub { fds() <= $fds }), 'every descriptor is back' or diag fds() . " above $fds";
};

subtest 'it serves again after running out of descriptors' => sub {
	my $old = qx(prlimit --nofile --raw --noheadings --output SOFT --pid $app->{pid} 2>/dev/null);
	plan skip_all => 'no prlimit(1)' unless $old && $old =~ /^(\d+)$/;
	chomp $old;
	my $kept = $app->connect;
	$kept->send($good);
	is $kept->reply->{status}, 200, 'a kept connection';
	my $new = put("$dir/new", 'x');         # nothing that is remembered
	system 'prlimit', '--nofile=3:', '--pid', $app->{pid};
	$kept->send(request(1, 1, SCRIPT_FILENAME => $new));
	my $r = $kept->reply;
	is $r->{status}, 503, 'no descriptor for the file: 503';
	is $r->{header}{'retry-after'}, 1, 'with Retry-After';
	my @new = map { $app->connect } 1 .. 3;
	$_->send($good) for @new;
	my $ticks = sub { my @s = split ' ', Test::Util::slurp("/proc/$app->{pid}/stat"); $s[13] + $s[14] };
	my $before = $ticks->();
	ok !$new[0]->more(0.5), 'none for a connection: it waits';
	cmp_ok $ticks->() - $before, '<', 20, 'without spinning';
	system 'prlimit', "--nofile=$old:", '--pid', $app->{pid};
	is $_->reply->{status}, 200, 'answered when there are some again' for @new;
};

subtest 'more peers than descriptors are all answered' => sub {
	for my $n (40, 64) {
		my $one = Test::Fcgi->start({ own => 1, under => ['prlimit', "--nofile=$n:$n"] }, '-t', 2, '--listen', 'unix:@SOCKET@');
		my @quiet = map { $one->connect } 1 .. 100;
		my @asks = map { my $c = $one->connect; $c->send(request(1, $_ % 2, SCRIPT_FILENAME => $file)); $c } 1 .. 100;
		is scalar(grep { ($_->reply // {})->{status} } @asks), 100, "ulimit -n $n: all requests are answered";
		is $one->stop, 0, 'it ends with 0';
	}
};

subtest 'it starts with descriptors 0 to 2 closed' => sub {
	my $one = Test::Fcgi->start({ own => 1, under => ['sh', '-c', 'exec "$@" 0<&- 1>&- 2>&-', 'sh'] }, '-t', 2, '--timing', '--listen', 'unix:@SOCKET@');
	is $one->get($file)->{status}, 200, 'it serves';
	is readlink "/proc/$one->{pid}/fd/$_", '/dev/null', "descriptor $_ is /dev/null" for 0 .. 2;
	is $one->stop, 0, 'it ends with 0';
};

subtest 'a unix socket accepts its listed users only' => sub {
	plan skip_all => 'needs root, to become another user' if $> != 0;
	my ($uid, $other) = map { scalar getpwnam $_ } qw(nobody daemon);
	my $as = sub {                          # the status that a user gets
		my ($one, $user) = @_;
		pipe my $rd, my $wr or die;
		if (!(my $pid = fork)) {
			$> = $user;
			my $r = $one->get($file);
			syswrite $wr, $r ? $r->{status} : 'none';
			POSIX::_exit(0);
		}
		wait;
		close $wr;
		return scalar <$rd>;
	};
	for my $name ('nobody', $uid) {
		my $one = Test::Fcgi->start('-t', 1, '--peer-user', "bin,$name");
		chmod 0666, $one->{socket};
		chmod 0755, $one->{dir};
		is $as->($one, $uid), 200, "--peer-user $name: he";
		is $as->($one, $other), 'none', 'another user is refused';
		is $one->get($file)->{status}, 200, 'but root';
	}
	my ($code, undef, $err) = run('--peer-user', 'nobody-of-that-name', '--listen', "unix:$dir/never");
	is $code, 67, 'an unknown user is an error';
	like $err, qr/nobody-of-that-name/, '... which names the user';
	ok !-e "$dir/never", 'before anything is listened on';
};

subtest 'TERM finishes running requests' => sub {
	for my $signal (qw(TERM INT USR1)) {
		my $one = Test::Fcgi->start('-t', 2, '--warm=read:64m');
		open my $h, '>', "$dir/sparse" or die;
		truncate $h, 64 << 20;                  # takes a while to read
		my @c = map { my $c = $one->connect; $c->send(request(1, 1, SCRIPT_FILENAME => "$dir/sparse")); $c }
		    1 .. 6;
		my $idle = $one->connect;
		my $start = time;
		my $status = $one->stop($signal);
		is $status, 0, "$signal: ends with 0";
		cmp_ok time - $start, '<', 8, "$signal: before a request is given up, which takes ten seconds";
		my @replies = map { $_->reply } @c;
		is scalar(grep { $_ && $_->{status} == 200 } @replies), 6, "$signal: all six were answered";
		ok $idle->closed, "$signal: idle ones are closed";
		is $one->log_text, '', "$signal: nothing to complain of";
	}
};

subtest 'a path to listen on that is taken is refused' => sub {
	my $path = put("$dir/taken", 'precious');
	my ($code, undef, $err) = run('--listen', "unix:$path");
	is $code, 69, 'by a file: refused';
	like $err, qr/\Q$path/, 'with its name';
	is -s $path, 8, 'and the file is left alone';
	unlink $path;
	IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => $path, Listen => 1)->close;
	my $one = Test::Fcgi->start({ own => 1, socket => $path }, '-t', 1, '--listen', 'unix:@SOCKET@');
	is $one->get($file)->{status}, 200, 'a socket without listener is taken over';
	($code) = run('--listen', "unix:$path");
	is $code, 69, 'by a process that is alive: refused';
	is $one->get($file)->{status}, 200, 'which goes on';
};

# The application sleeps while the requests come, so that it sees the signal first.
subtest 'requests from before the signal are answered' => sub {
	my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1024);
	for my $how ({}, { passed => $tcp }) {
		my $one = Test::Fcgi->start($how, '-t', 2);
		my $by = $how->{passed} ? 'TCP' : 'unix';
		my @kept = map { my $c = $one->connect; $c->send($good); $c->reply; $c } 1 .. 150;
		kill 'STOP', $one->{pid};
		my @new = map { $one->connect } 1 .. 150;
		$_->send($good) for @new, @kept;
		kill $_, $one->{pid} for 'TERM', 'CONT';
		is scalar(grep { ($_->reply // {})->{status} } @kept), 150, "$by: on kept connections";
		is scalar(grep { ($_->reply // {})->{status} } @new), 150, "$by: connections that were not accepted yet are served";
		is finish($one->{pid}), 0, "$by: it ends with 0";
	}
};

subtest 'TERM does not wait for half a request' => sub {
	my $one = Test::Fcgi->start('-t', 2);
	my $c = $one->connect;
	$c->send(substr $good, 0, 20);
	my $start = time;
	is $one->stop, 0, 'it ends with 0';
	cmp_ok time - $start, '<', 8, 'before half a request is given up, which takes ten seconds';

	$one = Test::Fcgi->start('-t', 2);
	$c = $one->connect;
	my $kept = $one->connect;
	$c->send(substr $good, 0, 20);
	$kept->send($good);
	is $kept->reply->{status}, 200, 'running, and the half request lies there';
	kill 'TERM', $one->{pid};
	ok $kept->closed, 'TERM: it drains';
	kill 'INT', $one->{pid};
	is finish($one->{pid}) >> 8, 128 + 2, 'a second signal: at once';
};

subtest 'half a request ends at the deadline' => sub {
	ok $half->closed, 'half a request: closed after ten seconds';
	cmp_ok time - $half_since, '>', 5, 'but not before';
	is $half->{buf}, '', 'and without an answer';
	ok $endless->closed, 'variables without an end: closed after as long';
	still_good('then');
};

is $app->stop, 0, 'it was the same process all the time';
is $app->log_text, '', 'and had nothing to complain of';
done_testing;
