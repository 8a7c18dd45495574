# The access log has one line per request, in the combined format.  A client cannot forge a line.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use POSIX qw(strftime);
use Test::More;
use Test::Server;

my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\n});
$srv->write('a', 'x' x 1234);
$srv->write('big', 'y' x 100_001);
my $combined = qr/\A(\S+) (\S+) (\S+) \[([^\]]+)\] "([^"]*)" (\d{3}) (\d+) "([^"]*)" "([^"]*)"\z/;

sub lines { return split /\n/, $srv->log('access.log') }

# The line about a request whose target has this mark in it.
sub line_of {
	my ($mark) = @_;
	$srv->wait_log(qr/^.*\Q$mark\E.*\n/m, 'access.log');
	my ($line) = grep { /\Q$mark\E/ } lines();
	my @field = ($line // '') =~ $combined;
	return \@field;
}

my $before = time;
$srv->get('/a?first', Referer => 'http://here/', 'User-Agent' => 'test (1)');
my $f = line_of('?first');
is $f->[0], '127.0.0.1', 'client';
is "$f->[1] $f->[2]", '- -', 'no identity, no user';
like $f->[3], qr{\A\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\z}, 'date in UTC';
ok +(grep { strftime('%d/%b/%Y:%H:%M:%S +0000', gmtime $_) eq $f->[3] } $before - 1 .. time + 1), '... and now';
is $f->[4], 'GET /a?first HTTP/1.1', 'request line';
is "$f->[5] $f->[6]", '200 1234', 'status and bytes of the body';
is $f->[7], 'http://here/', 'referer';
is $f->[8], 'test (1)', 'agent';

$srv->get('/a?bare');
is_deeply [@{ line_of('?bare') }[7, 8]], ['-', '-'], 'no referer, no agent';
$srv->head('/a?head');
is line_of('?head')->[6], 0, 'HEAD sends no body';
$srv->get('/a?part', Range => 'bytes=0-9');
is_deeply [@{ line_of('?part') }[5, 6]], [206, 10], 'a part';
$srv->get('/missing?m');
is line_of('?m')->[5], 404, 'a missing file';
$srv->get('/big?big');
is line_of('?big')->[6], 100_001, 'a large one';

$srv->get('/a?forged', 'User-Agent' => qq{"\\ \x{e4}" - - [x] "GET /evil HTTP/1.1" 200 1 "});
$srv->wait_log(qr/forged/, 'access.log');
my ($line) = grep { /\?forged/ } lines();
like $line, $combined, 'quotes in the agent do not end the field';
like $line, qr/\\x22\\x5c /, '... they are escaped';
$srv->request("GET /a?ctl\x01 HTTP/1.1\r\nHost: x\r\n\r\n");
$srv->request("BAD\r\n\r\n");
$srv->get('/a?end');
line_of('?end');
unlike $srv->log('access.log'), qr/[\x00-\x09\x0b-\x1f\x7f]/, 'no control character reaches the log';
is_deeply [grep { $_ !~ $combined } lines()], [], 'every line has the combined format';

my $c = $srv->connect;
$c->send(join '', map { "GET /a?pipe$_ HTTP/1.1\r\nHost: x\r\n\r\n" } 1 .. 20);
$c->reply for 1 .. 20;
$srv->wait_log(qr/pipe20 /, 'access.log');
is join(' ', map { /pipe(\d+) / ? $1 : () } lines()), join(' ', 1 .. 20), 'pipelined requests: one line each, in order';

subtest 'the access log is off by default' => sub {
	my $quiet = Test::Server->start(dir => $srv->dir, conf => '');
	$quiet->get('/a');
	$quiet->term;
	unlike $quiet->log, qr/GET/, 'no line anywhere';
};

done_testing;
