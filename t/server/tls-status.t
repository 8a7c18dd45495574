#!/usr/bin/perl
# What a server says of TLS: handshakes by version and result, faults by their class, the stage of timing lines, the line of accel-top.

use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP qw(decode_json);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(build_dir eventually need_program temp_tree);

my $dir = temp_tree();
my $cert = Test::Tls::certificate($dir, 'x');
my $srv = Test::Server->start(conf => <<"CONF");
server.document-root = "\@DIR\@"
ssl.engine = "enable"
ssl.pemfile = "$cert->{pem}"
ssl.privkey = "$cert->{key}"
debug.log-timing = "enable"
accesslog.filename = "\@RUN\@/access.log"
accesslog.format = "%{handshake-us}x %{total-us}x %U"
\$HTTP["url"] == "/status" { status.status-url = "/status" }
status.metrics-url = "/metrics"
CONF
$srv->write('a', 'x' x 1000);
my $base = 'https://127.0.0.1:' . $srv->port;

sub load (@args) {
	my $json = qx{@{[build_dir()]}/bin/accel-load -q --json @args};
	return eval { decode_json($json) } // die "accel-load @args: $json";
}

my $curl = need_program('curl', 'curl');
sub page ($path) { return scalar qx{'$curl' -s --max-time 60 --cacert '$cert->{pem}' '$base$path'} }

my @done = map { my $v = $_; map { "$v.$_" } qw(full resumed) } qw(tlsv1.2 tlsv1.3);
my @failed = qw(plain-http not-tls nothing-common alert left late refused other);

# The page is a full handshake of TLS 1.3, too.
sub counts () {
	my $n = decode_json(page('/status?json'))->{counters};
	return { (map { $_ => $n->{"server.tls.done.$_"} } @done), (map { $_ => $n->{"server.tls.failed.$_"} } @failed), failed => $n->{'server.tls.failed'} };
}

subtest 'by version and result' => sub {
	my $old = counts();
	load(qw(-c 1 -n 5 --close), "--tls-conf=MaxProtocol=$_", "$base/a") for qw(TLSv1.2 TLSv1.3);
	load(qw(-c 1 -n 5 --close --tls-resume), "--tls-conf=MaxProtocol=$_", "$base/a") for qw(TLSv1.2 TLSv1.3);
	my $new = counts();
	my %grew = map { $_ => $new->{$_} - $old->{$_} } @done;
	is_deeply \%grew, { 'tlsv1.2.full' => 6, 'tlsv1.2.resumed' => 4, 'tlsv1.3.full' => 7, 'tlsv1.3.resumed' => 4 }, 'counted';
};

# What a client of a broken handshake does, and as what it counts.
my %faults = (
	'plain-http' => sub { $srv->request("GET / HTTP/1.1\r\nHost: x\r\n\r\n") },
	'not-tls' => sub { $srv->request("\0\1\2\3\4\5\6\7") },
	'nothing-common' => sub { load('-n 1 --tls-conf CipherString=AES128-SHA --tls-conf MaxProtocol=TLSv1.2', "$base/") },
	alert => sub { Test::Tls::connect($srv, ca => Test::Tls::certificate($dir, 'other')->{pem})->rest },
	left => sub { my $c = $srv->connect; $c->send("\x16\x03\x01"); $c->abort },
	late => sub { my $c = $srv->connect; $c->send("\x16\x03\x01"); $c->rest },
);

for my $class (sort keys %faults) {
	my $old = counts();
	$faults{$class}->();
	my $new;
	eventually(sub { $new = counts(); $new->{failed} > $old->{failed} });
	is_deeply { map { $_ => $new->{$_} - $old->{$_} } 'failed', @failed }, { (map { $_ => 0 } @failed), failed => 1, $class => 1 }, "a fault: $class";
}

subtest 'metrics' => sub {
	my $text = page('/metrics');
	my $n = counts();
	my $tls = join '', $text =~ /^accel_tls.*\n/mg;
	like $tls, qr/^accel_tls_handshakes_total\{version="TLSv1\.2",result="full"\} $n->{'tlsv1.2.full'}$/m, 'handshakes';
	like $tls, qr/^accel_tls_failed_total\{reason="late"\} 1$/m, 'faults';
	unlike $tls, qr/accel_tls_done/, '... once each';
	my ($count) = $text =~ /^accel_stage_seconds_count\{stage="handshake"\} (\d+)$/m;
	my $done = 0;
	$done += $n->{$_} for @done;
	is $count, $done - 1, 'the time of each handshake';
};

subtest 'the first request of a connection has the time of its handshake' => sub {
	$srv->write('b', 'x' x 1000);
	load(qw(-c 1 -n 3), "$base/b");
	my @line = $srv->wait_lines(3, qr/write-start.* path="\/b"/);
	like $line[0], qr/ total-us=\d+ handshake-us=[1-9]\d* path=/, 'in the error log';
	unlike $line[$_], qr/handshake/, '... once' for 1, 2;
	my @access = $srv->wait_lines(3, qr{^\d+ \d+ /b$}, 'access.log');
	is_deeply [map { /^0 / ? 'none' : 'its time' } @access], ['its time', 'none', 'none'], 'in the access log';
	my $graph = decode_json(scalar qx{$^X '$FindBin::Bin/../../scripts/accel-graph' --json --no-charts '${\ ($srv->run . '/error.log')}'});
	cmp_ok $graph->{stages}{handshake}{max}, '>', 0, 'accel-graph knows the stage';
	is $graph->{rejected}, 0, '... and each line';
};

done_testing;
