# extforward.*: the client of a request that came through trusted proxies.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(program put);

my $srv = Test::Server->start(conf => <<'CONF');
accesslog.filename = "@RUN@/access.log"
extforward.forwarder = ( "127.0.0.1" => "trust", "10.0.0.0/8" => "trust", "10.66.0.0/16" => "untrusted", "2001:db8:ffff::/48" => "trust" )
extforward.headers = ( "X-Forwarded-For", "Forwarded", "X-Real-IP" )
$HTTP["remoteip"] == "203.0.113.0/24" { server.document-root = "@DIR@/office" }
$HTTP["scheme"] == "https" { server.document-root = "@DIR@/safe" }
CONF
$srv->write("$_/who", $_) for qw(office safe);
$srv->write('who', 'other');

my $n = 0;

# The body of the reply, and the address in the access log.
sub ask ($field, %opt) {
	$n++;
	my $c = $opt{c} // $srv->connect(%opt);
	$c->send(req("/who?$n", grep { length } @$field));
	my $r = $c->reply or return 'closed';
	my ($line) = $srv->wait_lines(1, qr{"GET /who\?$n HTTP}, 'access.log');
	return join ' ', $r->{body}, $line =~ /^(\S+)/;
}

my $xff = 'X-Forwarded-For:';
my @rows = (
	['other 127.0.0.1',    'no field', ''],
	['office 203.0.113.7', 'one address', "$xff 203.0.113.7"],
	['office 203.0.113.7', 'in mixed case', 'x-FORWARDED-for: 203.0.113.7'],
	['office 203.0.113.7', 'what the client sent is not read', "$xff 198.51.100.1, 203.0.113.7"],
	['other 198.51.100.1', 'nor if it looks like the office', "$xff 203.0.113.7, 198.51.100.1"],
	['office 203.0.113.7', 'behind two proxies', "$xff 198.51.100.1, 203.0.113.7, 10.1.1.1"],
	['other 10.66.1.1',    'an excluded network', "$xff 203.0.113.7, 10.66.1.1"],
	['office 203.0.113.7', 'lines are joined in their order', "$xff 198.51.100.1", "$xff 203.0.113.7", "$xff 10.1.1.1, "],
	['office 203.0.113.7', 'IPv4 as IPv6', "$xff ::ffff:203.0.113.7, ::ffff:10.0.0.1"],
	['other 2001:db8::1',  'IPv6 with a port', "$xff [2001:db8::1]:4711, 2001:db8:ffff::2"],
	['office 203.0.113.7', 'empty members', "$xff , ,203.0.113.7,,"],
	['other 127.0.0.1',    'an empty field', $xff],
	['other 127.0.0.1',    'unknown', "$xff unknown"],
	['other 10.1.1.1',     'what is not an address is its writer', "$xff 203.0.113.7, nonsense, 10.1.1.1"],
	['other 10.2.2.2',     'only proxies: the first', "$xff 10.2.2.2, 10.1.1.1"],
	['office 203.0.113.7', '31 proxies', "$xff 203.0.113.7" . ', 10.1.1.1' x 31],
	['other 10.1.1.1',     '1000 proxies are too many', "$xff 203.0.113.7" . ', 10.1.1.1' x 600],
	['safe 203.0.113.7',   'https', "$xff 203.0.113.7", 'X-Forwarded-Proto: HTTPS'],
	['office 203.0.113.7', 'the last scheme is the proxy\'s', "$xff 203.0.113.7", 'X-Forwarded-Proto: https', 'X-Forwarded-Proto: http'],
	['other 127.0.0.1',    'a scheme without an address', 'X-Forwarded-Proto: https'],
	['office 203.0.113.7', 'another scheme', "$xff 203.0.113.7", 'X-Forwarded-Proto: gopher'],
	['office 203.0.113.7', 'the first field of the list counts', 'Forwarded: for=198.51.100.1;proto=https', "$xff 203.0.113.7", 'X-Real-IP: 198.51.100.1'],
	['safe 203.0.113.7',   'Forwarded', 'Forwarded: for=198.51.100.1, For="203.0.113.7:4711";Proto=https;by=_x'],
	['other 2001:db8::1',  'Forwarded, IPv6', 'Forwarded: for="[2001:db8::1]:4711"', 'Forwarded: for="[2001:db8:ffff::9]"'],
	['office 203.0.113.7', 'an open quote before it', 'Forwarded: for="198.51.100.1, for=203.0.113.7'],
	['other 127.0.0.1',    'a hidden name', 'Forwarded: for=203.0.113.7, for=_hidden'],
	['other 127.0.0.1',    'malformed', 'Forwarded: for=203.0.113.7;for=203.0.113.8'],
	['office 203.0.113.7', 'Forwarded without a scheme, beside one', 'Forwarded: for=203.0.113.7', 'X-Forwarded-Proto: https'],
	['office 203.0.113.7', 'any other field', 'X-Real-IP: 203.0.113.7'],
);

subtest 'a trusted peer' => sub {
	is ask([@$_[2 .. $#$_]]), $_->[0], $_->[1] for @rows;
};

subtest 'others' => sub {
	is ask([@$_[2 .. $#$_]], from => '127.0.0.2'), 'other 127.0.0.2', $_->[1] for @rows;
};

subtest 'a connection with requests of several clients' => sub {
	my $c = $srv->connect;
	is ask([@$_[2 .. $#$_]], c => $c), $_->[0], $_->[1] for grep { length "@$_[2 .. $#$_]" < 500 } @rows, reverse @rows;
	$c = $srv->connect;
	my @who = ("$xff 203.0.113.50", 'X-Other: x', "$xff 198.51.100.50", 'Forwarded: for=203.0.113.50;proto=https');
	$c->send(join '', map { req('/who?batch', $_) } @who);
	is join(' ', map { $c->reply->{body} } @who), 'office other other safe', 'in one send';
	is join(' ', map { /^(\S+)/ } $srv->wait_lines(4, qr/who\?batch/, 'access.log')), '203.0.113.50 127.0.0.1 198.51.100.50 203.0.113.50', 'and in the log';
	$c->send(req('/who?x', "$xff 203.0.113.51") . "NONSENSE\r\n\r\n");
	is $c->reply->{body}, 'office', 'a client';
	is $c->reply->{status}, 400, 'then a malformed head';
	is join(' ', map { /^(\S+)/ } $srv->wait_lines(1, qr/" 400 /, 'access.log')), '127.0.0.1', 'is the peer\'s';
};

sub refused {
	my ($text) = @_;
	put($srv->run . '/x.conf', qq{server.document-root = "/"\n$text\n});
	my $said = qx{@{[ program('accel-server') ]} -t -f @{[ $srv->run ]}/x.conf 2>&1};
	return $? == 0 ? '' : $said;
}

subtest 'settings' => sub {
	my $at = qr/x\.conf:2:\d+: /;
	like refused('extforward.forwarder = ( "10.0.0.1" => "yes" )'), qr/$at.*expected one of: trust untrusted, got "yes"/, 'a word for trust';
	like refused('extforward.forwarder = ( "proxy.example" => "trust" )'), qr/$at.*expected an address or network/, 'names are not looked up';
	like refused('extforward.headers = ( "X Y" )'), qr/$at.*expected the name of a header field/, 'a field';
	like refused('$HTTP["url"] =~ "x" { extforward.forwarder = ( "all" => "trust" ) }'), qr/$at.*listening socket/, 'a request does not decide it';
	like refused('extforward.params = ( "host" => 1 )'), qr/$at.*cannot be used here/, 'extforward.params';
	like refused('extforward.forwarders = ( "all" => "trust" )'), qr/$at.*extforward\.forwarder/, 'a misspelled name';
	is refused('$SERVER["socket"] == ":1" { extforward.forwarder = ( "all" => "trust" ) }'), '', 'by socket';
};

undef $srv;
$srv = Test::Server->start(conf => <<'CONF');
accesslog.filename = "@RUN@/access.log"
extforward.forwarder = ( "all" => "trust" )
CONF
$srv->write('who', 'other');
subtest 'all peers' => sub {
	is ask(["$xff 203.0.113.7, 10.1.1.1"], from => '127.0.0.9'), 'other 10.1.1.1', 'but nobody behind them';
};
undef $srv;

done_testing;
