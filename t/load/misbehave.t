#!/usr/bin/perl
# A server that misbehaves on purpose: accel-load counts each fault as what it is, once, and the numbers add up.

use v5.36;
use List::Util qw(sum0);
use Test::AccelLoad qw(errors);
use Test::Misbehave qw(cut);
use Test::More;
use Test::Util qw(build_dir free_port put temp_tree);

my $load = build_dir() . '/bin/accel-load';
my $tree = temp_tree();
my $size = 3000;    # of a file; more than accel-load copies of an answer that it need not verify
my $right = join '', map { sprintf "%07d\n", $_ } 1 .. $size / 8;
my $ok = "HTTP/1.1 200 OK\r\nContent-Length: $size\r\n\r\n";

# What the server does, and as what it counts. Each is a list of: bytes to send, a number of seconds to wait,
# 'fin', 'reset', 'keep' (the connection serves another request).
my %behaves = (
	right => { does => [$ok, $right, 'keep'], is => 'ok' },
	right_close => { does => ["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: $size\r\n\r\n", $right, 'fin'], is => 'ok' },
	until_eof => { does => ["HTTP/1.0 200 OK\r\n\r\n", $right, 'fin'], is => 'ok' },
	chunked => { does => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks($right), "0\r\n\r\n", 'keep'], is => 'ok' },
	drip => { does => [map({ ($_, 0.002) } unpack '(a400)*', "$ok$right"), 'keep'], is => 'ok' },
	interim => { does => ["HTTP/1.1 103 Early Hints\r\n\r\n$ok", $right, 'keep'], is => 'ok' },
	short => { does => [$ok, substr($right, 0, 1000), 'fin'], is => 'short' },
	short_chunked => { does => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks($right), 'fin'], is => 'short' },
	short_head => { does => [substr($ok, 0, 20), 'fin'], is => 'short' },
	shorter_file => { does => ["HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", substr($right, 0, 2000), 'keep'], is => 'short', verified => 1 },
	long => { does => ["$ok${right}more", 'fin'], is => 'long' },
	longer_file => { does => ["HTTP/1.1 200 OK\r\nContent-Length: @{[$size + 4]}\r\n\r\n", "${right}more", 'keep'], is => 'long', verified => 1 },
	reset_first => { does => ['reset'], is => 'reset' },
	reset_head => { does => [substr($ok, 0, 20), 0.05, 'reset'], is => 'reset' },
	reset_body => { does => [$ok, substr($right, 0, 1000), 0.05, 'reset'], is => 'reset' },
	closed => { does => ['fin'], is => 'reset' },
	stall => { does => [60], is => 'timeout' },
	stall_head => { does => [substr($ok, 0, 20), 60], is => 'timeout' },
	stall_body => { does => [$ok, substr($right, 0, 1000), 60], is => 'timeout' },
	wrong => { does => [$ok, scalar reverse($right), 'keep'], is => 'wrong', verified => 1 },
	wrong_byte => { does => [$ok, substr($right, 0, -2), 'x', "\n", 'keep'], is => 'wrong', verified => 1 },
	missing => { does => ["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", 'keep'], is => 'status', status => 404 },
	broken => { does => ["HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", 'keep'], is => 'status', status => 500 },
	slow => { does => [map({ ($_, 0.15) } unpack '(a200)*', "$ok$right"), 'keep'], is => 'ok' },
	no_http => { does => ["220 mail.example.org ESMTP\r\n\r\n", 'fin'], is => 'malformed' },
	no_status => { does => ["HTTP/1.1 abc\r\n\r\n", 'fin'], is => 'malformed' },
	two_lengths => { does => ["HTTP/1.1 200 OK\r\nContent-Length: $size\r\nContent-Length: 1\r\n\r\n", $right, 'fin'], is => 'malformed' },
	bad_length => { does => ["HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", $right, 'fin'], is => 'malformed' },
	bad_chunk => { does => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n$right", 'fin'], is => 'malformed' },
	chunk_without_end => { does => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n$right", 'fin'], is => 'malformed' },
	long_head => { does => ["HTTP/1.1 200 OK\r\nX: ", map({ 'x' x 1000 } 1 .. 200), 'fin'], is => 'malformed' },
);

sub chunks ($bytes) {
	return map { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a700)*', $bytes;
}

# ---------------------------------------------------------------- the server

sub behave ($client, @does) {
	for my $step (@does) {
		if ($step eq 'keep') { return 1 }
		elsif ($step eq 'fin') { return 0 }
		elsif ($step eq 'reset') { cut($client); return 0 }
		elsif ($step =~ /\A[\d.]+\z/) { wait_for($client, $step) }
		else { syswrite $client, $step or return 0 }
	}
	return 0;
}

# Until the client closes, or the time is over.
sub wait_for ($client, $seconds) {
	my $bits = '';
	vec($bits, fileno $client, 1) = 1;
	select $bits, undef, undef, $seconds;
}

sub serve ($client) {
	my $in = '';
	while (sysread $client, $in, 65536, length $in) {
		while ($in =~ s{\AGET /(\w+) HTTP.*?\r\n\r\n}{}s) {
			return if !behave($client, @{ $behaves{$1}{does} });
		}
	}
}

# ---------------------------------------------------------------- the tests

sub run (@args) { return Test::AccelLoad->run_with('-q', @args) }

# In a closed loop, where requests that fail have no latency.
sub adds_up ($r, $what) {
	Test::AccelLoad::adds_up($r, $what);
	is sum0(map { $_->[1] } @{ $r->{histograms}{latency}{buckets} }), $r->{answered}, "$what: each answer has a latency";
}

my $server = Test::Misbehave->start(all => \&serve);
my $base = $server->url('all');
put("$tree/$_", $right) for keys %behaves;
my @verify = ("--verify=dir:$tree");

sub one ($name, $n) {
	my $b = $behaves{$name};
	my @wait = ('-t', $b->{is} eq 'timeout' ? 0.1 : 60);
	my $r = run('-c', 2, '-n', $n, @wait, @verify, "$base/$name");
	my $is = $b->{is} eq 'ok' ? '' : "$b->{is} $n";
	is errors($r), $is, "$name: counts as $b->{is}" or diag explain $r->{errors};
	is $r->{requests}, $n, "$name: ... of $n requests";
	is $r->{exit}, $is eq '' ? 0 : 1, "$name: exit status";
	is $r->{status}{ $b->{status} }, $n, "$name: status $b->{status}" if $b->{status};
	adds_up($r, $name);
}

subtest 'one fault at a time' => sub {
	one($_, 4) for sort grep { $_ ne 'slow' } keys %behaves;
};

subtest 'without verification' => sub {
	for my $name (sort grep { $behaves{$_}{is} ne 'timeout' && $_ ne 'slow' } keys %behaves) {
		my $r = run('-c', 2, '-n', 4, '-t', 60, "$base/$name");
		my $is = $behaves{$name}{is} eq 'ok' || $behaves{$name}{verified} ? '' : "$behaves{$name}{is} 4";
		is errors($r), $is, "$name: counts as @{[$is || 'ok']}";
		adds_up($r, $name);
	}
};

subtest 'all of them together' => sub {
	my @names = sort grep { $behaves{$_}{is} ne 'timeout' && $_ ne 'slow' } keys %behaves;
	my $urls = put("$tree/urls", join '', map { "$base/$_\n" } @names, reverse @names);
	my $n = 3 * 2 * @names;
	my %expected;
	$expected{ $behaves{$_}{is} } += 6 for @names;
	my $ok = delete $expected{ok};
	my $r = run('-c', 8, '--threads', 2, '-n', $n, '-t', 60, @verify, '-u', $urls);
	is errors($r), join(' ', map { "$_ $expected{$_}" } sort keys %expected), 'each fault counts once';
	is $r->{requests}, $n, 'all are requested';
	is $r->{requests} - $r->{errors}{all}, $ok, 'the others are right';
	adds_up($r, 'together');
};

subtest 'nobody listens' => sub {
	my $r = run('-c', 2, '-n', 4, 'http://127.0.0.1:' . free_port() . '/');
	is errors($r), 'refused 4', 'counts as refused';
	adds_up($r, 'refused');
};

subtest 'hashes and patterns' => sub {
	my $sums = put("$tree/SUMS", scalar qx(cd "$tree" && sha256sum right wrong wrong_byte));
	my $urls = put("$tree/urls", join '', map { "/$_\n" } qw(right wrong wrong_byte));
	my $r = run('-n', 6, "--verify=hash:$sums", '-u', $urls, "$base/");
	is errors($r), 'wrong 4', 'hash: other bytes are wrong';
	$r = run('-n', 4, '--verify=pattern', "$base/right");
	is errors($r), 'wrong 4', 'pattern: a file that accel-pool did not make is wrong';
	is_deeply [run('-n', 2, '--verify=length', "$base/right")->{errors}{all}], [0], 'length: the same length';
};

subtest 'silence' => sub {
	my $r = run('-n', 1, '-timeout', 2, @verify, "$base/slow");
	is errors($r), '', 'a body that takes longer, but never pauses this long, is right';
	cmp_ok $r->{latency_us}{max}, '>', 2_000_000, '... it took longer';
	$r = run('-n', 2, '-c', 2, '--silence', 0.1, "$base/stall_body");
	is errors($r), 'timeout 2', 'no further byte is a time-out';
	like qx("$load" -t 1 --silence 1 $base/right 2>&1), qr/--timeout and --silence exclude each other/, 'one of both';
};

subtest 'the open loop' => sub {
	my $r = run('-r', 100, '-n', 20, '-c', 4, '-t', 60, "$base/short");
	is errors($r), 'short 20', 'the same kinds';
	is $r->{requests}, sum0(@$r{qw(answered failed aborted unanswered)}), 'each request ends in one way';
};

done_testing;
