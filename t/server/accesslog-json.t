# accesslog.format = "json": each line is an object with the same fields, whatever clients and applications send.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::App ();
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(slurp);

my $app = Test::App->start;
my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\naccesslog.format = "json"\nserver.errorlog-format = "json"\n}
	. qq{extforward.forwarder = ( "127.0.0.3" => "trust" )\nserver.traceparent = "enable"\n}
	. Test::Server::proxy_block('^/app/', 'unix:' . $app->socket) . Test::Server::proxy_block('^/dead/', 'unix:' . $app->file('nobody')));
$srv->write('a.txt', "hello\n");
my $json = JSON::PP->new->utf8;
my $asked = 0;

# The object of a request, the last one that these bytes ask.
sub line_of ($bytes, $from = '127.0.0.2', $requests = 1) {
	my $c = $srv->connect(from => $from);
	$c->send($bytes);
	$c->reply;
	$c->rest;
	$asked += $requests;
	my @line = $srv->wait_lines($asked, qr/./, 'access.log');
	my $object = eval { $json->decode($line[-1] // '') };
	ok ref $object eq 'HASH', 'an object' or diag "$@: $line[-1]";
	return $object // {};
}

my @stages = map { "$_-us" } qw(handshake stat-queue stat proxy-queue proxy read-queue read handover write total);
my @fields = sort qw(ts id request client user host method url protocol status bytes state referer agent trace backend cache tls cipher), @stages;
my $numbers = join '|', qw(ts status bytes), @stages;

my $cold = line_of(req('/a.txt?q', 'Referer: http://x/', 'User-Agent: me', 'Connection: close'));
is_deeply [sort keys %$cold], \@fields, 'the fields';
cmp_ok abs($cold->{ts} - time), '<', 100, 'ts is now';
like "$cold->{id} $cold->{request}", qr/\Ac\d+\.1 [0-9a-f]{32}\z/, 'id and request';
my %want = (client => '127.0.0.2', user => '', host => 'x', method => 'GET', url => '/a.txt?q', protocol => 'HTTP/1.1', status => 200, bytes => 6, state => '-',
	referer => 'http://x/', agent => 'me', trace => '', backend => '', cache => 'cold', tls => '', cipher => '');
is $cold->{$_}, $want{$_}, $_ for sort keys %want;
cmp_ok $cold->{'total-us'}, '>', 0, 'total-us';
my $hot = line_of(req('/a.txt') . req('/a.txt', 'Connection: close'), '127.0.0.2', 2); # within the second that a name is remembered
is "$hot->{cache} " . join(' ', @$hot{grep { !/total|write/ } @stages}), 'hot' . ' 0' x 8, 'a hot file waits for nobody';
my $proxied = line_of(req('/app/env', 'Connection: close'));
is $proxied->{backend}, 'unix:' . $app->socket, 'backend';
cmp_ok $proxied->{'proxy-us'}, '>', 0, 'proxy-us';
is $proxied->{trace}, $proxied->{request}, 'trace';
my $named = line_of(req('/app/env', 'X-Request-ID: a/b', 'X-Forwarded-For: 192.0.2.9', 'Connection: close'), '127.0.0.3');
is "$named->{client} $named->{request}", '192.0.2.9 a/b', 'what a trusted peer says';
my $dead = line_of(req('/dead/x', 'Connection: close'));
is "$dead->{status} $dead->{backend}", '503 unix:' . $app->file('nobody'), 'a dead backend is named';
my ($failed) = map { $json->decode($_) } $srv->wait_lines(1, qr/"ev":"exchange\.failed"/);
is "$failed->{id} $failed->{request}", "$dead->{id} $dead->{request}", 'the error log has the same id and request';

# Hostile bytes, in each place that a client fills.
my @bytes = ('"', '\\', "\t", "\xff\xfe", "\xc3", "\xe2\x80\xae", "\xed\xa0\x80", "\x7f", '{"a":1}', '\\u0000', "'", '%00', '</script>', 'x' x 6000, '"' x 3000);
for my $b (@bytes) {
	my $shown = $b =~ s/[^ -~]/?/gr;
	my $line = line_of("GET /a.txt HTTP/1.1\r\nHost: x\r\nReferer: r${b}r\r\nUser-Agent: $b\r\nX-Request-ID: $b\r\nCookie: $b\r\ntraceparent: $b\r\nConnection: close\r\n\r\n", '127.0.0.3');
	is_deeply [sort keys %$line], \@fields, 'in fields: ' . substr $shown, 0, 20;
	$line = line_of("GET /$b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	is_deeply [sort keys %$line], \@fields, '... in the URL';
	$line = line_of("GET / HTTP/1.1\r\nHost: $b\r\nConnection: close\r\n\r\n");
	is_deeply [sort keys %$line], \@fields, '... in Host';
	$line = line_of("$b\r\n\r\n");
	is_deeply [sort keys %$line], \@fields, '... in place of a head';
}
for my $line (split /\n/, $srv->log('access.log')) {
	unlike $line, qr/[\x00-\x1f]|"(?:$numbers)":(?![0-9])/, 'no control byte, and numbers are numbers' or last;
}

done_testing;
