# Tests of HTTP/1.1 that pass over HTTP/2, unchanged: a selection.  `make check-http2` runs all of them.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Front ();
use Test::Http2 ();
use Test::More;
use Test::Server;
use Test::Util ();

my @selection = qw(server/not-modified server/ranges server/conditions module/rewrite module/auth-basic module/deflate
	module/cgi proxy/proxy proxy/http proxy/streams);
$ENV{TEST_HTTP} = 2;
my $srv = Test::Server->start(conf => qq{server.modules += ("mod_accesslog")\naccesslog.filename = "\@RUN\@/access.log"\naccesslog.format = "%H %U %h"\n});
plan skip_all => 'accel-server speaks no HTTP/2' if !Test::Http2->connect($srv)->read;
$srv->write('a.txt', "hi\n");
my $c = $srv->connect(from => '127.0.0.7');
$c->send(Test::Http::req('/a.txt'));
is $c->reply->{body}, "hi\n", 'a client of HTTP/1.1';
is_deeply [$srv->wait_lines(1, qr/a\.txt/, 'access.log')], ['HTTP/2.0 /a.txt 127.0.0.7'], 'for the server it is one of HTTP/2';

for my $name (@selection) {
	my ($rc, $said, $err) = Test::Util::run_fed($^X, '', '-It/lib', "t/$name.t");
	is $rc, 0, $name or diag join '', map { "$_\n" } (grep { /^not ok/ } split /\n/, $said), substr $err, 0, 4000;
}
is_deeply [grep { !-e "t/$_->[0].t" } @Test::Front::HTTP1], [], 'each test that is about HTTP/1 exists';
done_testing;
