# A real application that speaks SCGI: uwsgi with a few lines of Perl.
use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Fcgi ();
use Test::Http ();
use Test::More;
use Test::Server;
use Test::Util qw(need_program);

my $uwsgi = need_program('uwsgi-core', 'uwsgi-core');

my $dir = File::Temp->newdir('accel-uwsgi-XXXXXX', TMPDIR => 1);
open my $fh, '>', "$dir/app.psgi" or die "app.psgi: $!";
print $fh <<'END';
use v5.36;
use Digest::MD5 ();

sub body ($env) {
	my ($all, $left) = ('', $env->{CONTENT_LENGTH} || 0);
	while ($left > 0 && (my $n = $env->{'psgi.input'}->read(my $piece, $left))) { $all .= $piece; $left -= $n }
	return $all;
}

my %page = (
	env => sub { my ($env) = @_; (200, [], [map { "$_=$env->{$_}\n" } grep { !ref $env->{$_} } sort keys %$env]) },
	upload => sub { my $b = body($_[0]); my $said = length($b) . ' ' . Digest::MD5::md5_hex($b); (201, ['Content-Length' => length $said], [$said]) },
	big => sub { (200, [], [map { chr(97 + $_ % 26) x 50_000 } 1 .. 200]) },
	file => sub { (200, ['X-Sendfile' => $_[0]{QUERY_STRING}, 'Content-Type' => 'x/y'], []) },
	gone => sub { (404, ['X-A' => 'b'], ['no']) },
	short => sub { (200, ['Content-Length' => 100], ['half of it']) },
	dies => sub { kill 'KILL', $$; sleep 60 },
);

sub {
	my ($env) = @_;
	my ($name) = $env->{REQUEST_URI} =~ m{^/app/(\w+)};
	my ($status, $head, $body) = $page{$name}->($env);
	return [$status, ['Content-Type' => 'text/plain', @$head], $body];
}
END
close $fh or die "app.psgi: $!";

my $app = Test::Fcgi->start({ program => $uwsgi }, '--plugin', 'psgi', '--scgi-socket', 'fd://0', '--psgi', "$dir/app.psgi",
	'--processes', 2, '--master', '--die-on-term', '--need-app', '--no-orphans');
my $srv = Test::Server->start(conf => Test::Server::proxy_block('^/app/', 'unix:' . $app->socket, protocol => 'scgi',
	'max-pool-size' => 2, 'max-keep-alive-requests' => 100));

my $r = $srv->fetch('/app/env/a%20b?x=1', 'User-Agent' => 'test');
is $r->{status}, 200, 'answered';
my %env = map { split /=/, $_, 2 } split /\n/, $r->{body};
is "$env{REQUEST_METHOD} $env{REQUEST_URI} $env{QUERY_STRING}", 'GET /app/env/a%20b?x=1 x=1', 'the request';
is "$env{SCGI} $env{CONTENT_LENGTH} $env{HTTP_USER_AGENT} $env{REMOTE_ADDR}", '1 0 test 127.0.0.1', 'its variables';
like $srv->head('/app/env'), qr/^HTTP\S+ 200 .*\r\n\r\n\z/s, 'HEAD has no body';

for my $n (1, 65_536, 3_000_000) {
	my $body = substr '0123456789abcdef!' x (1 + $n / 17), 0, $n;
	$r = Test::Http::parse($srv->request("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: $n\r\n\r\n$body"));
	is "$r->{status} $r->{body}", "201 $n " . md5_hex($body), "a body of $n bytes";
}

my $c = $srv->connect;
for (1 .. 50) {
	$c->send("GET /app/gone HTTP/1.1\r\nHost: x\r\n\r\n");
	$r = $c->reply;
	"$r->{status} $r->{header}{'x-a'} $r->{body}" eq '404 b no' or fail "request $_";
}
pass '50 replies without a length, on one connection of the client';
$r = $srv->fetch('/app/big');
is md5_hex($r->{body}), md5_hex(join '', map { chr(97 + $_ % 26) x 50_000 } 1 .. 200), '10 MB without a length';

$srv->write('f.txt', 'the file');
for my $range ([], [Range => 'bytes=4-7']) {
	$r = $srv->fetch('/app/file?' . $srv->path('f.txt'), @$range);
	is "$r->{body} $r->{header}{'content-type'}", (@$range ? 'file' : 'the file') . ' x/y', 'X-Sendfile' . (@$range ? ' and a range' : '');
	unlike $r->{head}, qr/sendfile/i, '... without that field';
}
is $srv->fetch('/app/file?/etc/passwd')->{status}, 403, 'not outside of the root';

$c = $srv->connect;
$c->send("GET /app/short HTTP/1.1\r\nHost: x\r\n\r\n");
ok $c->reply->{cut}, 'less than was promised: cut';
is $srv->fetch('/app/dies')->{status}, 502, 'a process that dies';
ok Test::Util::eventually(sub { $srv->fetch('/app/gone')->{status} == 404 }), '... and the next one serves';

done_testing;
