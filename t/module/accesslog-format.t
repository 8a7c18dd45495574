# accesslog.format: each part of lighttpd 1.4, what it writes, and what is refused.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use POSIX qw(strftime);
use Test::More;
use Test::Server;
use Test::Util qw(program put);

my $iso = strftime('%z', localtime);

# [ part, path of the request, headers, what the line has ]; PORT and DIR are those of the server.
my @parts = (
	[ '%%', '/a.txt', {}, '%' ],
	[ '%h', '/a.txt', {}, '127.0.0.1' ],
	[ '%a', '/a.txt', {}, '127.0.0.1' ],
	[ '%A', '/a.txt', {}, '127.0.0.1' ],
	[ '%l', '/a.txt', {}, '-' ],
	[ '%u', '/a.txt', {}, '-' ],
	[ '%t', '/a.txt', {}, qr{\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \Q$iso\E\]} ],
	[ '%{%Y-%m-%dT%H:%M:%S}t', '/a.txt', {}, qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/ ],
	[ '%{begin:%s}t %{end:%s}t', '/a.txt', {}, qr/\d{10} \d{10}/ ],
	[ '%{sec}t', '/a.txt', {}, qr/\d{10}/ ],
	[ '%{msec}t', '/a.txt', {}, qr/\d{13}/ ],
	[ '%{usec}t', '/a.txt', {}, qr/\d{16}/ ],
	[ '%{nsec}t', '/a.txt', {}, qr/\d{19}/ ],
	[ '%{sec}t.%{msec_frac}t', '/a.txt', {}, qr/\d{10}\.\d{3}/ ],
	[ '%{usec_frac}t', '/a.txt', {}, qr/\d{6}/ ],
	[ '%{begin:nsec_frac}t', '/a.txt', {}, qr/\d{9}/ ],
	[ '%r', '/a.txt?q=1', {}, 'GET /a.txt?q=1 HTTP/1.1' ],
	[ '%s %>s %<s', '/a.txt', {}, '200 200 200' ],
	[ '%s', '/missing', {}, '404' ],
	[ '%b %B', '/a.txt', {}, '6 6' ],
	[ '%{Referer}i', '/a.txt', { Referer => 'http://x/' }, 'http://x/' ],
	[ '%{Referer}i', '/a.txt', {}, '-' ],
	[ '%{x-any}i', '/a.txt', { 'X-Any' => 'v' }, 'v' ],
	[ '%{Content-Type}o', '/a.txt', {}, 'text/plain' ],
	[ '%{content-length}o', '/a.txt', {}, '6' ],
	[ '%{Content-Range}o', '/a.txt', { Range => 'bytes=1-2' }, 'bytes 1-2/6' ],
	[ '%{Server}o', '/missing', {}, 'the tag' ],
	[ '%{Location}o', '/dir', {}, '/dir/' ],
	[ '%{Nope}o', '/a.txt', {}, '-' ],
	[ '%{foo}C', '/a.txt', { Cookie => 'x=y; foo=bar; z' }, 'bar' ],
	[ '<%{foo}C>', '/a.txt', { Cookie => 'x=y' }, '<>' ],
	[ '%{REMOTE_USER}e', '/a.txt', {}, '-' ],
	[ '%{ratio}n', '/a.txt', {}, '-' ],
	[ '%f', '/a.txt', {}, 'DIR/a.txt' ],
	[ '%f', '/missing', {}, '-' ],
	[ '%H', '/a.txt', {}, 'HTTP/1.1' ],
	[ '%m', '/a.txt', {}, 'GET' ],
	[ '%p %{local}p %{canonical}p', '/a.txt', {}, 'PORT PORT PORT' ],
	[ '%{remote}p', '/a.txt', {}, qr/[1-9]\d+/ ],
	[ '<%P>', '/a.txt', {}, '<>' ],
	[ '%q', '/a.txt?a=b&c', {}, 'a=b&c' ],
	[ '<%q>', '/a.txt', {}, '<>' ],
	[ '%T %{s}T', '/a.txt', {}, qr/\d \d/ ],
	[ '%{ms}T %{us}T %{ns}T %D', '/a.txt', {}, qr/\d+ \d+ \d+ \d+/ ],
	[ '%U', '/a%2etxt?q', {}, '/a%2etxt' ],
	[ '%v', '/a.txt', {}, 'the.name' ],
	[ '%V', '/a.txt', { Host => 'other.example:81' }, 'other.example:81' ],
	[ '%X', '/a.txt', {}, '-' ],
	[ '%X', '/a.txt', { Connection => undef }, '+' ],
	[ '%I', '/a.txt', {}, qr/[1-9]\d+/ ],
	[ '%O', '/a.txt', {}, qr/[1-9]\d\d/ ],
	[ '%k', '/a.txt', {}, '0' ],
	# lighttpd's documentation: the default, and hosts in front
	[ '%h %V %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"', '/a.txt', { Host => 'h' },
		qr{127\.0\.0\.1 h - \[[^]]+\] "GET /a\.txt HTTP/1\.1" 200 6 "-" "-"} ],
	# a client cannot forge a line, or leave its quotes
	[ '\"%{Referer}i\"', '/a.txt', { Referer => qq{a"b\\c\td\xc3\xa9} }, '"a\\"b\\\\c\\td\\xC3\\xA9"' ],
);

# One server; each part has a block of its own, so all formats are in one file.
my $block = join '', map {
	qq<\$HTTP["useragent"] == "t$_" {\n\taccesslog.format = "$_ $parts[$_][0]"\n}\n> } 0 .. $#parts;
$block =~ s/"t$_" \{/"" {/ for grep { $parts[$_][0] =~ /User-Agent/ } 0 .. $#parts;
my $srv = Test::Server->start(conf => qq{
	server.name = "the.name"
	server.tag = "the tag"
	accesslog.filename = "\@RUN\@/access.log"
	$block});
$srv->write('a.txt', "hello\n");
$srv->write('dir/b', 'b');

for my $i (0 .. $#parts) {
	my ($part, $path, $header) = @{ $parts[$i] };
	my %header = (($part =~ /User-Agent/ ? () : ('User-Agent' => "t$i")), Host => 'x', Connection => 'close', %$header);
	my $keeps = exists $header->{Connection};
	my $head = "GET $path HTTP/1.1\r\n" . join('', map { defined $header{$_} ? "$_: $header{$_}\r\n" : () } sort keys %header) . "\r\n";
	if ($keeps) {
		my $c = $srv->connect;
		$c->send($head);
		$c->reply;
	} else {
		$srv->request($head);
	}
}
my %line;
Test::Util::eventually(sub { %line = map { /^(\d+) (.*)/ ? ($1 => $2) : () } split /\n/, $srv->log('access.log'); keys %line == @parts });
for my $i (0 .. $#parts) {
	my ($part, $path, undef, $want) = @{ $parts[$i] };
	my ($port, $dir) = ($srv->port, $srv->dir);
	$want =~ s/PORT/$port/g, $want =~ s/DIR/$dir/ unless ref $want;
	ref $want ? like($line{$i}, qr/\A$want\z/, "$part of $path") : is($line{$i}, $want, "$part of $path");
}

my $answer;

# Lines of a server with this configuration, after these bytes.
sub lines_of {
	my ($conf, $bytes, $n) = @_;
	my $s = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\n$conf});
	$s->write('a.txt', "hello\n");
	$answer = $s->request($bytes);
	$s->wait_lines($n, qr/./, 'access.log');
	$s->term;
	return split /\n/, $s->log('access.log');
}

sub get { return "GET $_[0] HTTP/1.1\r\nHost: x\r\n" . ($_[1] // '') . "\r\n" }

my @piped = lines_of(qq{accesslog.format = "%k %X %s %O"\n}, join('', map { get('/a.txt') } 1 .. 3) . get('/a.txt', "Connection: close\r\n"), 4);
is_deeply [map { s/ \d+\z//r } @piped], [(map { "$_ + 200" } 0 .. 2), '3 - 200'], 'pipelined requests: one line each, with their own numbers';
my $sum = 0;
$sum += /(\d+)\z/ ? $1 : 0 for @piped;
is $sum, length $answer, '%O: together, all bytes that came';

like +(lines_of(qq{accesslog.escaping = "json"\naccesslog.format = "{ \\"a\\": \\"%{User-Agent}i\\" }"\n},
	get('/a.txt', qq{User-Agent: q"\\\tz\xff\r\nConnection: close\r\n}), 1))[0],
	qr/\A\{ "a": "q\\"\\\\\\(?:t|u0009)z.*" \}\z/, 'accesslog.escaping = "json"';

my @bad = lines_of(qq{accesslog.format = "%m %U %V %s %{Referer}i %H %f"\n}, "BAD\r\n\r\n", 1);
is $bad[0], '- - - 400 - - -', 'a request that could not be read';

# [ format, what the error says ]
for my $c (
	[ '%y', '"%y": expected one of %% %a' ],
	[ '%h %{x', 'expected a closing brace' ],
	[ '%i', 'expected a name in braces' ],
	[ '%{secs}t', 'strftime' ],
	[ '%{m}T', 'expected s, ms, us or ns' ],
	[ '%{x}p', 'expected canonical, local or remote' ],
) {
	put($srv->run . '/bad.conf', qq{server.document-root = "/tmp"\n\naccesslog.format = "$c->[0]"\n});
	my $said = qx{@{[ program('accel-server') ]} -t -f @{[ $srv->run ]}/bad.conf 2>&1};
	like $said, qr{bad\.conf:3:\d+: accesslog\.format: .*\Q$c->[1]\E}, "refused with its line: $c->[0]";
}

done_testing;
