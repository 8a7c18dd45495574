#!/usr/bin/perl
# What accel-load asks for, and when: options, lists, orders, ranges, sockets, threads, rates, and whom it does not load.

use v5.36;
use File::Temp ();
use IO::Handle;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::IP;
use IO::Socket::UNIX;
use IPC::Open3 qw(open3);
use JSON::PP qw(decode_json);
use POSIX ();
use Test::More;
use Test::Pty ();
use Test::Util qw(build_dir eventually put sanitized slurp temp_tree);

my $load = build_dir() . '/bin/accel-load';
my $tree = temp_tree();
my $log = "$tree/heads";

# ---------------------------------------------------------------- a server that writes down what it is asked

# Answers /stall never, a Range with that part of 10000 bytes, anything else with its path.
sub answer ($head) {
	my ($method, $path) = $head =~ m{\A(\w+) (\S+)} or return '';
	return '' if $path eq '/stall';
	my $body = $path;
	my $first = "HTTP/1.1 200 OK\r\n";
	if ($head =~ /^Range: bytes=(\d+)-(\d*)/m) {
		my $last = $2 eq '' || $2 > 9999 ? 9999 : $2;
		$body = 'x' x ($last - $1 + 1);
		$first = "HTTP/1.1 206 Part\r\nContent-Range: bytes $1-$last/10000\r\n";
	}
	my $close = $head =~ /^Connection: close/m ? "Connection: close\r\n" : '';
	return "$first${close}Content-Length: " . length($body) . "\r\n\r\n" . ($method eq 'HEAD' ? '' : $body);
}

sub read_client ($client, $out) {
	my $got = sysread $client->{socket}, $client->{in}, 65536, length $client->{in};
	return 0 if !$got;
	while ($client->{in} =~ s{\A(.*?\r\n\r\n)}{}s) {
		my $head = $1;
		syswrite $out, "$client->{from}\n$head\0";
		my $answer = answer($head);
		syswrite $client->{socket}, $answer;
		return 0 if $answer =~ /^Connection: close/m;
	}
	return 1;
}

# One process; it ends with this one, which holds the other end of the pipe.
sub start_server (@listeners) {
	pipe my $alive, my $keep or die "pipe: $!";
	defined(my $pid = fork) or die "fork: $!";
	return { pid => $pid, keep => $keep } if $pid;
	close $keep;
	$SIG{PIPE} = 'IGNORE';
	open my $out, '>>', $log or POSIX::_exit(1);
	my $all = IO::Select->new($alive, @listeners);
	my %client;
	while (my @ready = $all->can_read) {
		for my $socket (@ready) {
			POSIX::_exit(0) if $socket == $alive;
			if (my $client = $client{$socket}) {
				next if read_client($client, $out);
				$all->remove($socket);
				close delete($client{$socket})->{socket};
			} elsif (my $new = $socket->accept) {
				$all->add($new);
				$client{$new} = { socket => $new, in => '', from => $new->isa('IO::Socket::UNIX') ? 'unix' : $new->peerhost };
			}
		}
	}
}

my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128) or die "listen: $!";
my $six = IO::Socket::IP->new(LocalHost => '::1', Family => Socket::AF_INET6(), Listen => 8);
my $unix = IO::Socket::UNIX->new(Local => "$tree/socket", Listen => 128) or die "listen: $!";
my $server = start_server($tcp, $unix, $six // ());
my $base = 'http://127.0.0.1:' . $tcp->sockport;

# ---------------------------------------------------------------- running it

# Exit status, standard output, standard error.
sub said (@args) {
	my $pid = open3(my $in, my $out, my $err = IO::Handle->new, @args);
	close $in;
	local $/;
	my @texts = (scalar <$out>, scalar <$err>);
	waitpid $pid, 0;
	return ($? >> 8, map { $_ // '' } @texts);
}

# The report, and the requests that the server saw.
sub run (@args) {
	truncate $log, 0;
	my ($status, $out, $err) = said($load, '--json', @args);
	my $r = eval { decode_json($out) } // die "accel-load @args: no report: $out$err\n";
	$r->{exit} = $status;
	$r->{seen} = [split /\0/, slurp($log)];
	$r->{paths} = [map { /^(?:GET|HEAD) (\S+)/m } @{ $r->{seen} }];
	return $r;
}

sub refused ($status, $why, @args) {
	my ($is, $out, $err) = said($load, @args);
	is $is, $status, "@args: status $status" =~ s/\Q$tree\E/TREE/gr;
	like $err, $why, '... says why';
	is $out, '', '... and prints no report';
}

# ---------------------------------------------------------------- the command line

subtest 'options' => sub {
	my ($status, $out) = said($load, '--help');
	is $status, 0, '--help';
	like $out, qr/^  -c, --parallel=N/m, '... lists the options';
	like((said($load, '--version'))[1], qr/^accel-load \d/, '--version');
	like((said($load, '--manual'))[1], qr/CLOSED AND OPEN LOOP/, '--manual');
	refused(64, qr/expected a URL/);
	refused(64, qr/--parallel: expected 1 to 60000, got "0"/, '-c', 0, "$base/");
	refused(64, qr/--rate: expected requests a second/, '--rate', 'inf', "$base/");
	refused(64, qr/--header: expected "NAME: value"/, '-H', "a: b\r\nc: d", "$base/");
	refused(64, qr/--range: expected/, '--range', '9-1', "$base/");
	refused(64, qr/--pipeline/, '-p', 2, '--close', "$base/");
	refused(64, qr/--pipeline: expected URLs of one host/, '-p', 2, "$base/", 'http://127.0.0.2/');
	refused(64, qr/--urls FILE reads a list/, 'urls.txt');
	refused(66, qr/No such file/, '-u', "$tree/none", "$base/");
	refused(68, qr/^accel-load: nosuchhost\.invalid: /, 'http://nosuchhost.invalid/');
};

subtest 'the options of http_load' => sub {
	my $r = run('-parallel', 3, '-fetches', 30, '-timeout', 60, "$base/x");
	is $r->{answered}, 30, '-parallel, -fetches, -timeout';
	is $r->{connects}, 3, 'three connections';
	$r = run('-rate', 1000, '-seconds', 0.05, '-verbose', "$base/x");
	cmp_ok $r->{requests}, '>', 0, '-rate, -seconds, -verbose';
};

# ---------------------------------------------------------------- what is asked for

subtest 'a list, in turn and at random' => sub {
	my @paths = map { "/f$_" } 1 .. 20;
	my $list = put("$tree/list", join "\r\n", '# files', '', @paths);
	is_deeply run('-n', 30, '-u', $list, "$base/")->{paths}, [@paths, @paths[0 .. 9]], 'in turn, then from the beginning';
	my @random = map { run('-n', 30, '--random', '--seed', $_, '-u', $list, "$base/")->{paths} } 1, 1, 2;
	is_deeply $random[0], $random[1], 'the same seed, the same order';
	isnt "@{ $random[0] }", "@{ $random[2] }", 'another seed, another order';
	my $whole = put("$tree/whole", "$base/a\n/b\n");
	is_deeply run('-n', 2, '-u', $whole)->{paths}, ['/a', '/b'], 'a path belongs to the host before it';
	refused(65, qr/list2:2: expected printable ASCII/, '-u', put("$tree/list2", "/a\n/b c\n"), "$base/");
	refused(65, qr/list3:1: expected a host/, '-u', put("$tree/list3", "/a\n"));
	refused(65, qr/expected a URL or a path in each line, got none/, '-u', put("$tree/list4", "\n"), "$base/");
};

subtest 'heads' => sub {
	my $r = run('-n', 1, '--head', '-H', 'X-Test: yes', '-H', 'Host: other', "$base/a?b=c#d");
	is $r->{seen}[0], "127.0.0.1\nHEAD /a?b=c HTTP/1.1\r\nUser-Agent: accel-load\r\nX-Test: yes\r\nHost: other\r\n\r\n", 'HEAD, fields, another Host';
	is $r->{answered}, 1, 'an answer without a body';
	is run('-n', 1, "$base/")->{exit}, 0, 'status 0 without errors';
	is run('-n', 2, '--status', 404, "$base/")->{exit}, 1, 'status 1 with errors';
};

subtest 'ranges' => sub {
	my $r = run('-n', 3, '--range', '100-199', "$base/r");
	is $r->{body_bytes}, 300, 'a fixed range';
	is run('-n', 1, '--range', '9000-', "$base/r")->{body_bytes}, 1000, 'a range to the end';
	$r = run('-n', 50, '--range', 'random:64', "$base/r");
	is $r->{body_bytes}, 50 * 64, 'random ranges, each whole';
	my %first = map { /^Range: bytes=(\d+)/m ? ($1 => 1) : () } @{ $r->{seen} };
	cmp_ok scalar keys %first, '>', 20, '... at many places';
	ok $first{0}, '... the first of which is the beginning';
};

# ---------------------------------------------------------------- connections

subtest 'sockets and addresses' => sub {
	my $r = run('-n', 10, '-c', 2, '--unix', "$tree/socket", 'http://example.org/u');
	is $r->{answered}, 10, 'a unix socket';
	like $r->{seen}[0], qr{\Aunix\nGET /u HTTP/1.1\r\nHost: example.org\r\n}, '... the host is only sent';
	is run('-n', 4, '--from', '127.0.0.9', "$base/")->{seen}[3] =~ s/\n.*//sr, '127.0.0.9', '--from';
	is run('-n', 1, 'http://localhost:' . $tcp->sockport . '/')->{answered} ? 1 : 0, 1, 'a name' if !$six;
	SKIP: {
		skip 'no IPv6 here', 1 if !$six;
		is run('-n', 4, 'http://[::1]:' . $six->sockport . '/')->{answered}, 4, 'IPv6';
	}
};

subtest 'keep-alive, close, pipelining' => sub {
	my $r = run('-n', 20, '-c', 2, '--close', "$base/");
	is $r->{connects}, 20, '--close: a connection for each request';
	is $r->{errors}{all}, 0, '... without errors';
	$r = run('-n', 50, '-c', 2, '-p', 8, "$base/");
	is "$r->{answered} $r->{connects} $r->{errors}{all}", '50 2 0', '--pipeline';
	my ($one, $two) = ("$base/1", "http://127.0.0.2:@{[$tcp->sockport]}/2");
	my $other = IO::Socket::INET->new(LocalAddr => '127.0.0.2', LocalPort => $tcp->sockport, Listen => 8);
	SKIP: {
		skip 'the port is taken', 2 if !$other;
		my $second = start_server($other);
		$r = run('-n', 6, '-u', put("$tree/two", "$one\n$two\n"));
		is $r->{connects}, 6, 'a connection goes to one host';
		is_deeply $r->{paths}, [('/1', '/2') x 3], '... and the list stays in order';
		close $second->{keep};
		waitpid $second->{pid}, 0;
	}
};

subtest 'threads' => sub {
	my $list = put("$tree/list", join '', map { "/f$_\n" } 1 .. 10);
	my $r = run('-n', 101, '-c', 6, '--threads', 4, '-u', $list, "$base/");
	is "$r->{answered} $r->{connects} $r->{errors}{all}", '101 6 0', 'share requests and connections';
	my %seen;
	$seen{$_}++ for @{ $r->{paths} };
	is scalar(keys %seen), 10, '... and the list';
};

subtest 'clients that leave' => sub {
	my $r = run('-n', 200, '-c', 4, '--abort', 50, "$base/long");
	is $r->{requests}, $r->{answered} + $r->{aborted}, 'each request is answered or left';
	cmp_ok $r->{aborted}, '>', 50, 'about half are left';
	cmp_ok $r->{aborted}, '<', 150, '... not more';
};

# ---------------------------------------------------------------- time

subtest 'the open loop' => sub {
	my $r = run('-r', 100, '-n', 21, '-c', 4, '--threads', 2, "$base/");
	is $r->{answered}, 21, 'all are answered';
	cmp_ok $r->{seconds}, '>=', 0.19, 'by the clock';
	# 20 requests are due in 0.2 s. Two connections wait, the others never start: all count.
	$r = run('-r', 100, '-d', 0.2, '-c', 2, "$base/stall");
	is "$r->{requests} $r->{unanswered}", '20 20', 'requests that are due count without a connection';
	cmp_ok $r->{latency_us}{p50}, '>=', 80_000, '... with their age';
	is scalar(@{ $r->{seen} }), 2, '... and were not sent';
};

subtest 'a warm-up is not in the report' => sub {
	my $r = run('-r', 100, '--warm-up', 0.2, '-d', 0.3, '-c', 2, "$base/");
	is "$r->{connects} $r->{errors}{all}", '0 0', 'connections from before';
	ok $r->{requests} >= 30 && $r->{requests} < 50, 'requests after it' or diag $r->{requests};
	is $r->{requests}, $r->{answered} + $r->{unanswered}, '... each of which ends once';
	ok $r->{seconds} >= 0.3 && $r->{seconds} < 0.5, 'its time does not count';
	# Two wait since the warm-up, the others never start.
	$r = run('-r', 100, '--warm-up', 0.1, '-d', 0.1, '-c', 2, "$base/stall");
	is "$r->{requests} $r->{unanswered}", '20 20', 'requests from before that have no answer count';
	cmp_ok $r->{latency_us}{max}, '>=', 190_000, '... with their whole age';
	refused(64, qr/--warm-up is without --hold and --fetches/, '--warm-up', 1, '-n', 1, "$base/");
};

subtest 'the end' => sub {
	my $r = run('-d', 0.05, '-c', 2, "$base/stall");
	is "$r->{requests} $r->{unanswered} $r->{exit}", '2 2 0', 'closed loop: what is in flight at the end is not an error';
	my $pid = open3(my $in, my $out, undef, $load, '--json', '-d', 60, '-c', 2, "$base/int");
	truncate $log, 0;
	ok eventually(sub { -s $log }), 'it runs';
	kill INT => $pid;
	$r = decode_json(scalar <$out>);
	waitpid $pid, 0;
	cmp_ok $r->{answered}, '>', 0, 'SIGINT: the report';
	cmp_ok $r->{seconds}, '<', 50, '... at once';
};

subtest 'connections that are held' => sub {
	my $pid = open3(my $in, my $out, undef, $load, '--hold', '-c', 5, '--threads', 2, '-d', 60, "$base/held");
	like scalar <$out>, qr/^held 5 answered 5 /, 'each is answered and stays open';
	close $in;
	local $/;
	like scalar <$out>, qr/^5 requests/, 'until standard input ends';
	waitpid $pid, 0;
	is $?, 0, 'status 0';
};

# ---------------------------------------------------------------- whom it does not load

# An address for documentation (RFC 5737), in a network of its own without any route.
subtest 'addresses of others' => sub {
	my @alone = ('unshare', '-n');
	plan skip_all => 'unshare(1) may not be used' if system('unshare -n true 2>/dev/null') != 0;
	my ($status, $out, $err) = said(@alone, $load, '-n', 1, 'http://192.0.2.1/');
	is $status, 77, 'without a terminal: refused';
	like $err, qr/192\.0\.2\.1:80\) is not an address of this host; --yes/, '... says how';
	($status, $out, $err) = said(@alone, $load, '--json', '-n', 1, '--yes', 'http://192.0.2.1/');
	is $status, 1, '--yes: it tries';
	is decode_json($out)->{errors}{connect}, 1, '... and there is no way';
	for (['n', 77], ['y', 1]) {
		my ($key, $code) = @$_;
		my $pty = Test::Pty->start([@alone, $load, '-n', 1, 'http://192.0.2.1/']);
		ok $pty->wait_for(qr/load test\? \[y\/N\]/), 'a terminal: it asks';
		$pty->type("$key\n");
		is $pty->finish >> 8, $code, "... $key: status $code";
	}
};

subtest 'limits' => sub {
	my ($status, $out, $err) = said('sh', '-c', 'ulimit -n 64 && exec "$@"', 'sh', $load, '-c', 1000, '-n', 1, "$base/");
	is $status, 71, 'too few open files';
	like $err, qr/only 64 files may be open, and \d+ are needed; raise the limit \(ulimit -Hn\) or use at most \d+ connections/, '... says how many';
	my ($most) = $err =~ /at most (\d+) connections/;
	($status) = said('sh', '-c', 'ulimit -n 64 && exec "$@"', 'sh', $load, '-c', $most, '-n', $most, "$base/");
	is $status, 0, '... and this many work';
	SKIP: {
		my @ports = split ' ', slurp('/proc/sys/net/ipv4/ip_local_port_range');
		skip 'this host has ports for all', 2 if $ports[1] - $ports[0] + 1 >= 60_000;
		refused(64, qr/this host has \d+ ports/, '-c', 60_000, "$base/");
	}
};

close $server->{keep};
waitpid $server->{pid}, 0;
done_testing;
