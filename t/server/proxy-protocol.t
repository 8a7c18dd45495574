# server.proxy-protocol: connections of a balancer begin with the address of its client.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Socket qw(inet_aton inet_pton AF_INET6);
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put);

my $signature = "\r\n\r\n\0\r\nQUIT\n";

sub v2  { my ($command, $family, @rest) = @_; my $rest = join '', @rest; return $signature . pack('CCn', $command, $family, length $rest) . $rest }
sub v4  { my ($addr, $port, @tlv) = @_; return v2(0x21, 0x11, inet_aton($addr) . inet_aton('192.0.2.1') . pack('nn', $port, 443), @tlv) }
sub v6  { my ($addr, $port) = @_; return v2(0x21, 0x21, inet_pton(AF_INET6, $addr) x 2 . pack('nn', $port, 443)) }
sub tlv { my ($type, $value) = @_; return pack('Cn', $type, length $value) . $value }
my $tls = tlv(0x20, pack 'CN', 1, 0);

my $srv = Test::Server->start(conf => <<'CONF');
accesslog.filename = "@RUN@/access.log"
server.proxy-protocol = ( "127.0.0.1", "10.0.0.0/8" )
server.max-read-idle = 60
status.statistics-url = "/counters"
$HTTP["remoteip"] == "203.0.113.0/24" { server.document-root = "@DIR@/office" }
$HTTP["scheme"] == "https" { server.document-root = "@DIR@/safe" }
CONF
$srv->write("$_/who", $_) for qw(office safe);
$srv->write('who', 'other');

my $n = 0;

# The body of the reply, and the address in the access log.
sub ask {
	my ($header, %from) = @_;
	my $c = $srv->connect(%from);
	$n++;
	$c->send($header . req("/who?$n"));
	my $r = $c->reply or return 'closed';
	my ($line) = $srv->wait_lines(1, qr{"GET /who\?$n HTTP}, 'access.log');
	return join ' ', $r->{body}, $line =~ /^(\S+)/;
}

sub ask_body ($header) {
	my $c = $srv->connect;
	$c->send($header . req('/who'));
	return $c->reply->{body};
}

sub counter {
	my ($name) = @_;
	my $c = $srv->connect;
	$c->send("PROXY UNKNOWN\r\n" . req('/counters', 'Connection: close'));
	return ($c->reply->{body} =~ /^\Qserver.connections.$name\E: (\d+)$/m)[0];
}

subtest 'the client of a header' => sub {
	is ask("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n"), 'office 203.0.113.7', 'version 1';
	is ask("PROXY TCP4 198.51.100.1 192.0.2.1 40000 443\r\n"), 'other 198.51.100.1', 'another client';
	is ask("PROXY TCP6 2001:db8::7 2001:db8::1 40000 443\r\n"), 'other 2001:db8::7', 'IPv6';
	is ask("PROXY TCP6 ::ffff:203.0.113.7 ::1 40000 443\r\n"), 'office 203.0.113.7', 'IPv4 as IPv6';
	is ask("PROXY UNKNOWN\r\n"), 'other 127.0.0.1', 'UNKNOWN is the peer';
	is ask(v4('203.0.113.7', 40000)), 'office 203.0.113.7', 'version 2';
	is ask(v4('203.0.113.7', 40000, tlv(1, 'http/1.1'), $tls)), 'safe 203.0.113.7', 'a client with TLS';
	is ask(v4('198.51.100.1', 40000, tlv(4, 'x' x 4000), $tls)), 'safe 198.51.100.1', 'a long header';
	is ask(v6('2001:db8::7', 1)), 'other 2001:db8::7', 'version 2, IPv6';
	is ask(v2(0x20, 0)), 'other 127.0.0.1', 'LOCAL';
	is ask(v2(0x21, 0x31, "/run/x\0" . 'x' x 209)), 'other 127.0.0.1', 'a unix socket';
};

subtest 'one header for all requests of a connection' => sub {
	my $c = $srv->connect;
	$c->send($_) for 'PROXY TCP4 203.0.113.9 192.', "0.2.1 1 2\r", "\n" . req('/who?a') . req('/who?b');
	is $c->reply->{body}, 'office', 'the same client' for 1, 2;
	$c->send("PROXY TCP4 203.0.113.9 192.0.2.1 1 2\r\n" . req('/who'));
	is $c->reply->{status}, 400, 'a second one is not a request';
	ok $c->closed, 'and closes the connection';
	is scalar($srv->wait_lines(3, qr/^203\.0\.113\.9 /, 'access.log')), 3, 'all have its client in the log';
};

subtest 'each byte alone' => sub {
	for my $header ("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n", v4('203.0.113.7', 1, $tls)) {
		my $c = $srv->connect;
		$c->send($_) for split //, $header . req('/who');
		like $c->reply->{body}, qr/office|safe/, 'one answer';
	}
};

subtest 'a peer of the list without a header' => sub {
	my @bad = (req('/who'), "PROXY TCP4 x\r\n", 'PROXY ' . 'x' x 200, "$signature\x21\x11\xff\xff", v4('1.2.3.4', 1, "\1"), "\x16\3\1");
	for my $bytes (@bad) {
		my $c = $srv->connect;
		$c->send($bytes);
		ok $c->closed, 'closed without a reply';
	}
	like $srv->wait_log(qr/proxy-protocol\.failed/), qr/ev=proxy-protocol\.failed address=127\.0\.0\.1 listener=\S+ why="[^"]*PROXY/,
		'the log says what was expected';
	is counter('proxy-headers-refused'), @bad, 'counted';
	cmp_ok counter('proxy-headers'), '>', 10, 'and so are headers';
};

subtest 'others' => sub {
	is ask('', from => '127.0.0.2'), 'other 127.0.0.2', 'send no header';
	for my $header ("PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n", v4('203.0.113.7', 1)) {
		my $c = $srv->connect(from => '127.0.0.2');
		$c->send($header . req('/who'));
		is $c->reply->{status}, 400, 'a header is a malformed request';
	}
};

subtest 'a reload keeps the client of an idle connection, and expects no second header' => sub {
	my @c = map { $srv->connect } 1 .. 3;
	my $before = counter('proxy-headers');
	$_->send("PROXY TCP4 203.0.113.77 192.0.2.1 1 2\r\n") for @c[0, 1];
	$c[0]->send(req('/who'));
	is $c[0]->reply->{body}, 'office', 'one has had a request, one a header only, one nothing';
	my $asked = 0;
	ok eventually(sub { counter('proxy-headers') >= $before + 3 + $asked++ }), 'headers are read';
	$srv->signal('USR1');
	ok eventually(sub { counter('adopted') >= 3 }), 'the new generation has them';
	$c[2]->send("PROXY TCP4 203.0.113.78 192.0.2.1 1 2\r\n");
	$_->send(req('/who?moved')) for @c;
	is $_->reply->{body}, 'office', 'answered' for @c;
	my @who = map { /^(\S+)/ } $srv->wait_lines(3, qr/who\?moved/, 'access.log');
	is_deeply [sort @who], [('203.0.113.77') x 2, '203.0.113.78'], 'the same clients';
};

sub refused {
	my ($text) = @_;
	put($srv->run . '/x.conf', qq{server.document-root = "/"\n$text\n});
	my $said = qx{@{[ program('accel-server') ]} -t -f @{[ $srv->run ]}/x.conf 2>&1};
	return $? == 0 ? '' : $said;
}

subtest 'settings' => sub {
	like refused('server.proxy-protocol = ( "10.0.0.0/33" )'), qr/x\.conf:2:\d+: .*expected an address or network.*10\.0\.0\.0\/33/, 'not a network';
	like refused('$HTTP["host"] == "x" { server.proxy-protocol = ( "all" ) }'), qr/x\.conf:2:\d+: .*listening socket/, 'not by host';
	like refused('extforward.hap-PROXY-ssl-client-verify = "enable"'), qr/x\.conf:2:\d+: .*cannot be used here/, 'a setting of lighttpd that protects';
	is refused(qq{\$SERVER["socket"] == ":1" { server.proxy-protocol = ( "all", "unix" ) }\nelse { server.proxy-protocol = ( "::1" ) }}), '', 'by socket';
};

undef $srv;
$srv = Test::Server->start(conf => <<'CONF');
accesslog.filename = "@RUN@/access.log"
extforward.forwarder = ( "all" => "trust" )
extforward.hap-PROXY = "enable"
CONF
$srv->write('who', 'other');
is ask("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n"), 'other 203.0.113.7', 'extforward.hap-PROXY';
undef $srv;

$srv = Test::Server->start(conf => <<'CONF');
server.proxy-protocol = ( "all" )
server.max-read-idle = 1
server.max-connections = 32
CONF
$srv->write('who', 'other');
subtest 'a header that does not come' => sub {
	my ($silent, $slow, $late) = map { $srv->connect } 1 .. 3;
	$slow->send('PROXY TCP4 ');
	$late->send("PROXY UNKNOWN\r\nGET /");
	ok $slow->closed, 'closed at the deadline of a head';
	is $late->reply->{status}, 408, 'a head after a header has it, too';
	ok $silent->closed, 'and a silent connection';
	like $srv->wait_log(qr/proxy-protocol\.failed/), qr/longer than server\.max-read-idle/, 'the log says so';
};
undef $srv;

$srv = Test::Server->start(conf => <<'CONF');
server.proxy-protocol = ( "all" )
server.max-connections = 32
status.statistics-url = "/counters"
CONF
$srv->write('who', 'other');
subtest 'a flood of beginnings of headers' => sub {
	my @c = map { $srv->connect } 1 .. 80;
	$_->send("\r\n\r\n\0\r\nQU") for @c;
	is ask_body("PROXY UNKNOWN\r\n"), 'other', 'leaves a place for others';
	cmp_ok counter('room-silent'), '>=', 40, 'they count as connections without a head';
};
undef $srv;

done_testing;
