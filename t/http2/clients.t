# Clients of HTTP/2 that are not ours, over TLS and in clear: curl, nghttp, h2load, h2 of Python, net/http of Go.  `make check-http2` runs it.
use v5.36;
use Cwd ();
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::More;
use Test::Server;
use Test::Tls ();
use Test::Util qw(find_program need_program put slurp);

my $dir = File::Temp->newdir('accel-clients-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($dir, 'x');
my $app = Test::App->start;
my $large = join '', map { md5_hex($_) } 1 .. 65_536;
my $large_sum = length($large) . ' ' . md5_hex($large);
my $up = put("$dir/up", substr $large, 0, 1_000_000);
my $up_sum = '1000000 ' . md5_hex(slurp($up));

sub start ($tls) {
	my $srv = Test::Server->start(conf => join "\n", 'server.max-worker = 1', 'server.max-streams-per-connection = 250', 'status.statistics-url = "/counters"',
		$tls ? qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"} : (), Test::Server::proxy_block('^/app/', 'unix:' . $app->socket));
	$srv->write("f/$_", "file $_\n") for 1 .. 200;
	$srv->write('large', $large);
	return $srv;
}

# What a client prints: a figure and its value on each line.
sub figures ($rc, $said, $err) {
	is $rc, 0, 'it ends well' or diag $said, substr $err, 0, 2000;
	return { $said =~ /^(\S+) (.*)$/mg };
}

sub curl ($ca, @args) {
	my ($rc, $said) = Test::Util::run_fed(need_program('curl', 'curl'), '', '-s', '--max-time', 60, '-w', ' %{http_version} %{http_code}', @$ca, @args);
	return "$rc $said";
}

# In clear the second request of curl 7.88 on a connection fails, against nghttpd, too.
sub try_curl ($base, $tls) {
	my $ca = $tls ? ['--cacert', $cert->{pem}] : ['--http2-prior-knowledge'];
	is curl($ca, "$base/f/1"), "0 file 1\n 2 200", 'GET';
	is curl($ca, '--data-binary', "\@$up", "$base/app/upload"), "0 $up_sum 2 200", 'an upload';
	is curl($ca, '-T', $up, '-H', 'Expect:', "$base/f/1") =~ s/.*(?= 2 \d+\z)//sr, ' 2 405', 'an upload that is refused';
	is curl($ca, '-r', '5-5', "$base/f/7"), '0 7 2 206', 'a range';
	return if !$tls;
	my ($rc, $said, $err) = Test::Util::run_fed(need_program('curl', 'curl'), '', qw(-s --max-time 60 -Z --parallel-max 50 -w), '%{stderr}\nHTTP/%{http_version}\n', @$ca, "$base/f/[1-100]");
	is $rc, 0, '100 in parallel';
	is_deeply [sort split /^/, $said], [sort map { "file $_\n" } 1 .. 100], 'each is whole';
	is scalar(() = $err =~ m{^HTTP/2$}mg), 100, 'over HTTP/2';
	return;
}

sub try_nghttp ($base, $tls) {
	my $nghttp = need_program('nghttp', 'nghttp2-client');
	my ($rc, $said) = Test::Util::run_fed($nghttp, '', '-t', 60, "$base/f/1");
	is "$rc $said", "0 file 1\n", 'GET';
	($rc, $said) = Test::Util::run_fed($nghttp, '', '-t', 60, '-d', $up, "$base/app/upload");
	is "$rc $said", "0 $up_sum", 'an upload';
	($rc, $said) = Test::Util::run_fed($nghttp, '', '-t', 60, '-w', 9, '-W', 9, "$base/large");
	ok $rc eq '0' && $said eq $large, 'windows of 511 bytes';
	($rc, $said) = Test::Util::run_fed($nghttp, '', '-nsv', '-t', 60, map { "$base/f/$_" } 1 .. 100);
	is $rc, 0, '100 at once';
	is scalar(() = $said =~ /:status: 200$/mg), 100, 'each is there';
	is scalar(() = $said =~ /^\[[^\]]*\] (?:\S*)Connected/mg), 1, 'over one connection';
	return;
}

sub try_h2load ($base, $tls) {
	my ($rc, $said) = Test::Util::run_fed(need_program('h2load', 'nghttp2-client'), '', qw(-n 5000 -c 5 -m 50), map { "$base/f/$_" } 1 .. 20);
	is $rc, 0, 'it ends well';
	like $said, qr/^Application protocol: h2c?$/m, 'its protocol';
	like $said, qr/^requests: 5000 total, 5000 started, 5000 done, 5000 succeeded, 0 failed, 0 errored, 0 timeout$/m, 'all requests succeed';
	like $said, qr/^status codes: 5000 2xx, 0 3xx, 0 4xx, 0 5xx$/m, 'all have status 200';
	return;
}

sub try_python ($base, $tls) {
	my $python = find_program('/usr/bin/python3') // find_program('python3');
	plan skip_all => 'no h2 for Python; scripts/install-deps http2 installs it' if !$python || (Test::Util::run_fed($python, '', '-c', 'import h2'))[0];
	my ($port) = $base =~ /(\d+)\z/;
	my $is = figures(Test::Util::run_fed($python, '', "$FindBin::Bin/client.py", $port, $tls ? $cert->{pem} : ()));
	is $is->{alpn}, 'h2', 'ALPN' if $tls;
	is $is->{gets}, 50, '50 at once';
	is $is->{large}, $large_sum, 'a large one';
	is $is->{upload}, '200 whole', 'an upload';
	is $is->{'after-reset'}, 200, 'the connection goes on after a reset';
	is $is->{windows}, '1000 1500 False', 'no byte beyond the windows of the client';
	is $is->{rest}, $large_sum, 'the rest comes once there is room';
	return;
}

sub goclient () {
	my $go = find_program('go') // find_program('/usr/local/go/bin/go') // return (undef, 'no go; scripts/install-deps http2 installs it');
	my $out = Cwd::abs_path(Test::Util::build_dir()) . '/go';
	mkdir $out;
	local @ENV{qw(GOCACHE GOTOOLCHAIN GO111MODULE CGO_ENABLED GOFLAGS)} = ("$out/../go-cache", 'local', 'on', 0, '-buildvcs=false');
	my ($rc, undef, $err) = Test::Util::run_fed('env', '', '-C', "$FindBin::Bin/goclient", $go, 'build', '-o', "$out/goclient", '.');
	return $rc eq '0' ? ("$out/goclient") : (undef, "go build: $err");
}

# In clear Go of Debian 12 has no client.
sub try_go ($base, $tls) {
	plan skip_all => 'Go has no HTTP/2 in clear before 1.24' if !$tls;
	my ($program, $why) = goclient();
	plan skip_all => $why if !$program;
	my $is = figures(Test::Util::run_fed($program, '', $base, $cert->{pem}));
	is $is->{first}, 'good', 'GET';
	is $is->{parallel}, 200, '200 at once';
	like $is->{upload}, qr{^HTTP/2 200 length="\d+"$}, 'an upload of unknown length, which the application gets with its length';
	is $is->{uploaded}, 'whole', 'is whole';
	is $is->{'after-reset'}, 'good', 'the connection goes on after a reset';
	is $is->{large}, $large_sum, 'a large one';
	is $is->{connections}, 1, 'over one connection';
	return;
}

for my $tls (0, 1) {
	my $srv = start($tls);
	my $base = ($tls ? 'https' : 'http') . '://localhost:' . $srv->port;
	my %try = (curl => \&try_curl, nghttp => \&try_nghttp, h2load => \&try_h2load, Python => \&try_python, Go => \&try_go);
	for my $name (qw(curl nghttp h2load Python Go)) {
		subtest "$name, " . ($tls ? 'TLS' : 'clear') => sub { $try{$name}->($base, $tls) };
	}
}
done_testing;
