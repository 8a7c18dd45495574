#!/usr/bin/perl
# A server of HTTP/2 that misbehaves on purpose: accel-load counts each fault of a stream or a connection as what it is, once, and the numbers add up.

use v5.36;
use Test::AccelLoad qw(adds_up errors);
use Test::Http2 qw(:all);
use Test::Misbehave qw(cut end);
use Test::More;
use Test::Util qw(build_dir free_port put temp_tree);

my $load = build_dir() . '/bin/accel-load';
my $tree = temp_tree();
my $size = 3000;
my $right = join '', map { sprintf "%07d\n", $_ } 1 .. $size / 8;
put("$tree/x", $right);

# ---------------------------------------------------------------- frames

use constant { HEAD => 9, LAST => 0x7fffffff };    # bytes of a frame before its payload; the last stream that there can be

sub frame ($type, $flags, $id, $payload = '') { return Test::Http2::frame_bytes($type, $flags, $id, $payload) }
sub field ($name, $value) { return hpack([[$name, $value]]) }
sub head ($id, $status, $flags = 0, @fields) {
	my $block = field(':status', $status);
	$block .= field(splice @fields, 0, 2) while @fields;
	return frame(HEADERS, END_HEADERS | $flags, $id, $block);
}
sub ok200 ($id, $length = $size) { return head($id, 200, 0, 'content-length', $length) }
sub body ($id, $bytes, $end = END_STREAM) { return frame(DATA, $end, $id, $bytes) }
sub rst ($id, $code) { return frame(RST_STREAM, 0, $id, pack 'N', $code) }
sub goaway ($last, $code = 0) { return frame(GOAWAY, 0, 0, pack 'NN', $last, $code) }

# What the server does with a stream, and as what it counts. Each is a list of: bytes to send, 'fin', 'reset' (of the connection). Nothing: silence.
my %behaves = (
	right => { does => sub ($id) { (ok200($id), body($id, $right)) }, is => 'ok' },
	without_length => { does => sub ($id) { (head($id, 200), body($id, $right)) }, is => 'ok' },
	one_byte_each => { does => sub ($id) { (ok200($id), map { body($id, $_, 0) } (split //, $right), ''), body($id, '') }, is => 'ok' },
	padded => { does => sub ($id) { (ok200($id), frame(DATA, PADDED | END_STREAM, $id, chr(200) . $right . "\0" x 200)) }, is => 'ok' },
	interim => { does => sub ($id) { (head($id, 103, 0, 'link', '</x>'), head($id, 100), ok200($id), body($id, $right)) }, is => 'ok' },
	trailers => { does => sub ($id) { (ok200($id), body($id, $right, 0), frame(HEADERS, END_HEADERS | END_STREAM, $id, field('x-sum', '1'))) }, is => 'ok' },
	missing => { does => sub ($id) { (head($id, 404, 0, 'content-length', 4), body($id, 'none')) }, is => 'status', status => 404 },
	empty => { does => sub ($id) { head($id, 500, END_STREAM) }, is => 'status', status => 500 },
	reset_first => { does => sub ($id) { rst($id, INTERNAL_ERROR) }, is => 'stream' },
	reset_body => { does => sub ($id) { (ok200($id), body($id, substr($right, 0, 1000), 0), rst($id, CANCEL)) }, is => 'stream' },
	reset_no_error => { does => sub ($id) { (ok200($id), body($id, substr($right, 0, 1000), 0), rst($id, 0)) }, is => 'stream' },
	refused => { does => sub ($id) { rst($id, REFUSED_STREAM) }, is => 'refused_stream' },
	short => { does => sub ($id) { (ok200($id), body($id, substr $right, 0, 1000)) }, is => 'short' },
	short_without_body => { does => sub ($id) { head($id, 200, END_STREAM, 'content-length', $size) }, is => 'malformed' },
	long => { does => sub ($id) { (ok200($id, 1000), body($id, $right)) }, is => 'long' },
	long_later => { does => sub ($id) { (ok200($id, 1000), body($id, substr($right, 0, 1000), 0), body($id, 'more')) }, is => 'long' },
	shorter_file => { does => sub ($id) { (ok200($id, 2000), body($id, substr $right, 0, 2000)) }, is => 'short', verified => 1 },
	longer_file => { does => sub ($id) { (ok200($id, $size + 4), body($id, "${right}more")) }, is => 'long', verified => 1 },
	wrong => { does => sub ($id) { (ok200($id), body($id, scalar reverse $right)) }, is => 'wrong', verified => 1 },
	no_status => { does => sub ($id) { (frame(HEADERS, END_HEADERS, $id, field('content-length', $size)), body($id, $right)) }, is => 'malformed' },
	bad_status => { does => sub ($id) { (head($id, 'abc'), body($id, $right)) }, is => 'malformed' },
	of_http1 => { does => sub ($id) { (head($id, 200, 0, 'connection', 'close'), body($id, $right)) }, is => 'malformed' },
	upper_case => { does => sub ($id) { (head($id, 200, 0, 'X-Y', 'z'), body($id, $right)) }, is => 'malformed' },
	two_lengths => { does => sub ($id) { (head($id, 200, 0, 'content-length', $size, 'content-length', 1), body($id, $right)) }, is => 'malformed' },
	no_head => { does => sub ($id) { body($id, $right) }, is => 'malformed', whole => 1 },
	no_http2 => { does => sub ($id) { "HTTP/1.1 400 Bad Request\r\n\r\n" }, is => 'malformed', whole => 1 },
	bad_block => { does => sub ($id) { frame(HEADERS, END_HEADERS, $id, "\xff\xff\xff\xff\xff") }, is => 'malformed', whole => 1 },
	even_stream => { does => sub ($id) { (head(2, 200), body($id, $right)) }, is => 'malformed', whole => 1 },
	closed => { does => sub ($id) { 'fin' }, is => 'reset', whole => 1 },
	closed_in_body => { does => sub ($id) { (ok200($id), body($id, substr($right, 0, 1000), 0), 'fin') }, is => 'short', whole => 1 },
	reset => { does => sub ($id) { 'reset' }, is => 'reset', whole => 1 },
	goaway => { does => sub ($id) { (goaway(0, ENHANCE_YOUR_CALM), 'fin') }, is => 'goaway', whole => 1 },
	goaway_in_body => { does => sub ($id) { (ok200($id), body($id, substr($right, 0, 1000), 0), goaway($id, INTERNAL_ERROR), 'fin') }, is => 'goaway', whole => 1 },
	stall => { does => sub ($id) { () }, is => 'timeout' },
	stall_body => { does => sub ($id) { (ok200($id), body($id, substr($right, 0, 1000), 0)) }, is => 'timeout' },
);

# ---------------------------------------------------------------- the server

# Reads frames until the client leaves. Calls $on->($id, $n) for the n-th request; what it returns is sent, and true ends the connection.
sub serve ($client, $settings, $on) {
	my ($in, $n) = ('', 0);
	my $send = sub (@steps) {
		for my $step (@steps) {
			if ($step eq 'fin') { end($client); return 1 }
			if ($step eq 'reset') { cut($client); return 1 }
			syswrite $client, $step or return 1;
		}
		return 0;
	};
	my $want = sub ($bytes) {
		while (length $in < $bytes) { sysread $client, $in, 65536, length $in or return 0 }
		return 1;
	};
	$want->(length PREFACE) or return;
	substr $in, 0, length PREFACE, '';
	$send->(frame(SETTINGS, 0, 0, $settings)) and return;
	while ($want->(HEAD)) {
		my ($high, $low, $type, $flags, $id) = unpack 'CnCCN', $in;
		my $length = $high << 16 | $low;
		$want->(HEAD + $length) or return;
		substr $in, 0, HEAD + $length, '';
		my @steps = $type == SETTINGS && !($flags & ACK) ? frame(SETTINGS, ACK, 0)
		    : $type == HEADERS ? $on->($id, ++$n)
		    : $type == RST_STREAM ? $on->($id, 0) : ();
		$send->(@steps) and return;
	}
}

# ---------------------------------------------------------------- the tests

sub run (@args) { return Test::AccelLoad->run_with('-q', '--http2', @args) }

# Those with a state of their own: a function that begins a connection returns its settings and the function of its requests.
my %special = (
	# Answers when this many wait; more than its limit at once would be a fault of the client.
	(map { my $gate = $_; ("gate$gate" => sub { my @open; (pack('nN', 3, $gate), sub ($id, $n) {
		push @open, $id if $n;
		return goaway(0, PROTOCOL_ERROR), 'fin' if @open > $gate;
		return if @open < $gate;
		return map { (ok200($_), body($_, $right)) } splice @open;
	}) }) } 3, 8),
	# Takes 3 requests, then GOAWAY, and answers those; with and without the first one of a graceful end.
	(map { my $name = $_; ($name => sub { ('', sub ($id, $n) {
		return if !$n || $n > 3;
		return ok200($id) if $n < 3;
		return ($name eq 'drains' ? () : goaway(LAST)), goaway($id), map({ body($_, $right) } $id - 4, $id - 2), ok200($id), body($id, $right);
	}) }) } qw(drains drains_twice)),
	never => sub { ('', sub ($id, $n) { goaway(0) }) },
	# Answers the first request; those after it get nothing.
	first => sub { ('', sub ($id, $n) { $n == 1 ? (ok200($id), body($id, $right)) : () }) },
	# The end of a body never comes.
	endless => sub { ('', sub ($id, $n) { $n ? (ok200($id), body($id, $right, 0)) : () }) },
);
my %of = (%special, map { my $does = $behaves{$_}{does}; ($_ => sub { ('', sub ($id, $n) { $n ? $does->($id) : () }) }) } keys %behaves);
my $server = Test::Misbehave->start(map { my $begins = $of{$_}; ($_ => sub ($client) { serve($client, $begins->()) }) } keys %of);
my @verify = ("--verify=dir:$tree");
sub url ($name) { return $server->url($name) . '/x' }

sub one ($name, $streams, $n) {
	my $b = $behaves{$name};
	my $r = run('-c', 2, '--streams', $streams, '-n', $n, '-t', $b->{is} eq 'timeout' ? 0.1 : 60, @verify, url($name));
	my $is = $b->{is} eq 'ok' ? '' : "$b->{is} $n";
	# A fault of the connection has all streams in it, some before their first byte.
	if ($b->{whole} && $streams > 1) { is $r->{errors}{all}, $n, "$name, $streams streams: each counts once" }
	else { is errors($r), $is, "$name, $streams streams: counts as $b->{is}" or diag explain $r->{errors} }
	is $r->{requests}, $n, "$name: ... of $n requests";
	is $r->{exit}, $is eq '' ? 0 : 1, "$name: exit status";
	is $r->{status}{ $b->{status} }, $n, "$name: status $b->{status}" if $b->{status};
	adds_up($r, $name);
}

subtest 'one fault at a time' => sub {
	one($_, 1, 4) for sort keys %behaves;
};

subtest 'on many streams' => sub {
	one($_, 7, 28) for sort keys %behaves;
};

subtest 'a fault of a stream leaves its connection' => sub {
	for my $name (sort grep { !$behaves{$_}{whole} && $behaves{$_}{is} ne 'timeout' } keys %behaves) {
		my $r = run('-c', 2, '--streams', 3, '-n', 12, @verify, url($name));
		is $r->{connects}, 2, $name;
	}
};

subtest 'without verification' => sub {
	for my $name (sort grep { $behaves{$_}{verified} } keys %behaves) {
		is errors(run('--streams', 2, '-n', 4, url($name))), '', $name;
	}
};

subtest 'streams at once' => sub {
	my $r = run('--streams', 8, '-n', 48, @verify, url('gate8'));
	is errors($r), '', '8 at a time are asked and answered';
	is $r->{connects}, 1, '... on one connection';
	$r = run('--streams', 8, '-n', 48, @verify, url('gate3'));
	is errors($r), '', 'no more than the server allows';
	is $r->{connects}, 1, '... on one connection';
	$r = run('--streams', 7, '-n', 7, '-t', 0.2, url('gate8'));
	is errors($r), 'timeout 7', 'and no others';
};

subtest 'GOAWAY without an error' => sub {
	for my $name (qw(drains drains_twice)) {
		my $r = run('--streams', 5, '-n', 60, @verify, url($name));
		is errors($r), '', "$name: no request is lost";
		is "$r->{connects} $r->{answered}", '20 60', '... three on each connection';
		cmp_ok $r->{goaways}, '>=', 20, '... each ends with GOAWAY';
		cmp_ok $r->{again}, '>=', 20, '... and others are asked again';
		adds_up($r, $name);
	}
	my $r = run('--streams', 5, '-n', 5, '-t', 0.2, url('never'));
	is errors($r), 'timeout 5', 'a server that never takes one';
	cmp_ok $r->{connects}, '>', 1, '... is asked again';
	cmp_ok $r->{connects}, '<', 30, '... after pauses';
	my ($text) = join '', qx($load -q --http2 -n 6 --streams 6 @{[url('drains')]});
	like $text, qr/^2 GOAWAY, 3 requests asked again$/m, 'the text';
};

subtest 'time-outs' => sub {
	my $r = run('--streams', 2, '-n', 3, '-t', 0.2, url('first'));
	is "$r->{answered} " . errors($r), '1 timeout 2', 'those that wait';
	cmp_ok $r->{latency_us}{max}, '<', 200_000, '... and the first one did not';
	$r = run('--streams', 2, '-n', 2, '--silence', 0.1, url('stall_body'));
	is errors($r), 'timeout 2', 'silence';
	$r = run('-r', 100, '-n', 10, '--streams', 5, '-t', 0.1, url('stall'));
	is errors($r), 'timeout 10', 'the open loop';
	adds_up($r, 'open loop');
};

subtest 'answers that are left' => sub {
	my $r = run('-c', 2, '--streams', 4, '-n', 100, '--abort=100', url('endless'));
	is errors($r), '', 'no errors';
	is "$r->{aborted} $r->{connects}", '100 2', 'all by RST_STREAM';
};

subtest 'nobody listens' => sub {
	my $r = run('-c', 2, '--streams', 3, '-n', 12, 'http://127.0.0.1:' . free_port() . '/');
	is errors($r), 'refused 12', 'counts as refused';
	adds_up($r, 'refused');
};

done_testing;
