# The client of the tests for HTTP/2, against nginx.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http2 qw(:all);
use Test::More;
use Test::Site ();
use Test::Tls ();
use Test::Util qw(put temp_tree);

my $dir = temp_tree();
my $cert = Test::Tls::certificate($dir, 'x');
my %file = (small => "hi\n", large => join '', map { "line $_\n" } 1 .. 60_000);
put("$dir/$_.txt", $file{$_}) for keys %file;
chmod 0777, "$dir";
Test::Site->need('nginx');
my $site = Test::Site->start('nginx', '', root => "$dir", behind => [], text => Test::Site->shortest('nginx', '', <<"CONF"));
	server {
		listen 8080 http2;
		listen 8081 ssl http2;
		ssl_certificate $cert->{pem};
		ssl_certificate_key $cert->{key};
		root /srv/www;
		http2_max_concurrent_streams 100;
		large_client_header_buffers 4 64k;
		client_max_body_size 10m;
		location /trailer/ { alias /srv/www/; add_trailer X-Trailer after always; }
		location /put/ { dav_methods PUT; create_full_put_path on; }
	}
CONF

for my $tls (0, 1) {
	my $h = Test::Http2->connect($site->{ports}{ 8080 + $tls }, tls => $tls);
	my $name = $tls ? 'TLS' : 'clear';
	is $h->{alpn}, 'h2', 'ALPN' if $tls;
	my $r = $h->get('/small.txt');
	is "$r->{status} $r->{body}", "200 hi\n", "$name: a file";
	is $r->{header}{'content-length'}, 3, 'its fields';
	is_deeply [$r->{error}, $r->{cut}], [undef, ''], 'it is whole';
	ok $h->get('/large.txt')->{body} eq $file{large}, 'a large one: windows are given back';
	my @id = map { $h->open(GET => $_ % 3 ? '/small.txt' : '/large.txt') } 1 .. 30;
	my @r = $h->gather(@id);
	is_deeply [map { length $_->{body} } @r], [map { length $file{ $_ % 3 ? 'small' : 'large' } } 1 .. 30], '30 streams';
	is @{ $h->{ended} }, 32, 'all have ended';
	is_deeply $h->get('/trailer/small.txt')->{trailers}, [['x-trailer', 'after']], 'trailers';
	is $h->get('/small.txt', 'X-Long' => 'a' x 40_000)->{status}, 200, 'a head with CONTINUATION';
	is $h->head('/large.txt')->{body}, '', 'HEAD';
	is $h->request(PUT => '/put/up.txt', body => $file{large}, 'Content-Length' => length $file{large})->{status}, $tls ? 204 : 201, 'an upload';
	ok $h->get('/put/up.txt')->{body} eq $file{large}, 'which is what was sent';
	my $id = $h->open(PUT => '/put/two.txt', end => 0, 'Content-Length' => 6);
	$h->data($id, 'abc');
	$h->data($id, 'def', end => 1);
	is(($h->gather($id))[0]{status}, $tls ? 204 : 201, 'an upload in parts');
	ok $h->alive, 'PING';
}

my $h = Test::Http2->connect($site->{port}, window => 10);
my $id = $h->open(GET => '/large.txt');
ok $h->await(sub ($f) { $f->{type} == DATA }), 'a window of ten bytes';
ok $h->alive, 'PING';
is $h->reply($id)->{body}, substr($file{large}, 0, 10), 'ten have come';
$h->reset($id);
$h->frame(DATA, 0, 0, 'no stream');
ok $h->closed, 'an error of the connection ends it';
is_deeply [$h->{goaway}[0] >= 1, error_name($h->{goaway}[1])], [1, 'PROTOCOL_ERROR'], 'with GOAWAY';
ok +($h->gather($id))[0]{cut}, 'the reply is cut';

$h = Test::Http2->connect($site->{port}, preface => 0);
$h->send(PREFACE)->settings(MAX_CONCURRENT_STREAMS => 5);
$h->send(Test::Http2::frame_bytes(HEADERS, END_STREAM | END_HEADERS, 1, hpack($h->request_fields(GET => '/small.txt'), huffman => 1, index => 1)));
my $f = $h->await(sub ($f) { $f->{type} == DATA });
is $f->{payload}, "hi\n", 'frames by hand';
ok $h->{settings}{ +MAX_CONCURRENT_STREAMS } == 100, 'settings of the server';
done_testing;
