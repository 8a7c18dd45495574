#!/usr/bin/perl
# accel-load speaks TLS, to accel-server and to nginx: full handshakes and resumed ones, bodies that are verified, settings, and servers that do not
# answer in TLS.

use v5.36;
use IO::Select;
use IO::Socket::INET;
use IPC::Open3 qw(open3);
use JSON::PP qw(decode_json);
use POSIX ();
use Symbol qw(gensym);
use Test::More;
use Test::Util qw(build_dir eventually put slurp temp_tree);
use Test::NginxModule;
use Test::Server;
use Test::Tls;

my $bin = build_dir() . '/bin';
my $dir = temp_tree();
my $cert = Test::Tls::certificate($dir, 'x');
my $srv = Test::Server->start(conf => <<"CONF");
server.document-root = "\@DIR\@"
ssl.engine = "enable"
ssl.pemfile = "$cert->{pem}"
ssl.privkey = "$cert->{key}"
CONF
my $root = $srv->dir;
for my $size (qw(1k 100k 3m)) {
	is system("$bin/accel-pool make -q --spec 1x2x$size $root/$size && $bin/accel-pool list --prefix /$size/ $root/$size >>$dir/urls"), 0, "files of $size";
}
system 'chmod', '-R', 'a+rX', $root;
my $small = '/1k/1k/0000/0000.bin';
my $long = '/3m/3m/0000/0000.bin';

my $ng = Test::NginxModule->start(<<"CONF", root => $root, without => 1);
log_format tls '\$ssl_server_name \$ssl_protocol \$ssl_cipher \$ssl_curve \$ssl_session_reused \$ssl_alpn_protocol';
ssl_certificate $cert->{pem};
ssl_certificate_key $cert->{key};
ssl_protocols TLSv1.2 TLSv1.3;
server { listen 8080 ssl backlog=1024; access_log /run/tls.log tls; root /srv/www; }
server { listen 8081 ssl; ssl_protocols TLSv1.2; ssl_session_tickets off; ssl_session_cache shared:s:1m; root /srv/www; }
server { listen 8082; root /srv/www; }
CONF

sub said (@args) {
	my $pid = open3(my $in, my $out, my $err = gensym, "$bin/accel-load", '-q', @args);
	close $in;
	my ($text, $complaint) = map { local $/; readline($_) // '' } $out, $err;
	waitpid $pid, 0;
	return ($? >> 8, $text, $complaint);
}

sub run (@args) {
	my ($status, $out, $err) = said('--json', @args);
	my $r = eval { decode_json($out) } // die "accel-load @args: no report: $out$err\n";
	return { %$r, exit => $status, said => $err };
}

sub counts ($r, @names) { return join ' ', map { "$_ $r->{$_}" } @names }

my %at = (accel => 'https://127.0.0.1:' . $srv->port, nginx => "https://127.0.0.1:$ng->{ports}{8080}");
my $plain = "http://127.0.0.1:$ng->{ports}{8082}";

# ---------------------------------------------------------------- servers that answer

for my $name (sort keys %at) {
	my $url = $at{$name};
	subtest $name => sub {
		my @list = ('--verify=pattern', '-u', "$dir/urls", "$url/");
		my $r = run('-c', 4, '-n', 200, @list);
		is $r->{exit}, 0, 'kept connections: each byte is right';
		is counts($r, qw(answered connects handshakes resumed)), 'answered 200 connects 4 handshakes 4 resumed 0', '... a handshake each';
		$r = run('-c', 4, '-n', 200, '--threads', 2, '-p', 5, @list);
		is $r->{exit}, 0, 'pipelined, by two threads';
		$r = run('-c', 4, '-n', 100, '--close', @list);
		is $r->{exit}, 0, 'closed connections: each byte is right';
		is counts($r, qw(connects handshakes resumed)), 'connects 100 handshakes 100 resumed 0', '... full handshakes';
		cmp_ok $r->{connects_per_s}, '>', 0, '... by time';
		for my $version ('TLSv1.2', 'TLSv1.3') {
			$r = run('-c', 1, '-n', 30, '--close', '--tls-resume', "--tls-conf=MaxProtocol=$version", @list);
			is $r->{exit}, 0, "$version: each byte is right";
			is counts($r, qw(handshakes resumed)), 'handshakes 30 resumed 29', '... all but the first session is resumed';
		}
		$r = run('-c', 8, '-n', 200, '--close', '--tls-resume', "$url$small");
		cmp_ok $r->{resumed}, '>=', 192, 'connections at the same time resume the newest session';
		$r = run('-c', 2, '-n', 50, '--range=random:1k', '--verify=pattern', "$url$long");
		is $r->{exit}, 0, 'parts of a file';
		$r = run('-c', 2, '-n', 50, '--abort=100', "$url$long");
		is counts($r, qw(exit aborted handshakes)), 'exit 0 aborted 50 handshakes 50', 'answers that are left';
		$r = run('-c', 2, '-r', 500, '-d', 0.2, "$url$small");
		is $r->{exit}, 0, 'an open loop';
	};
}

# On loopback both ends are in one table: the state of this side is that of the line whose other port is the server's.
subtest 'TIME_WAIT is on the side of the server' => sub {
	for my $port ($srv->port, $ng->{ports}{8080}) {
		my $wait = sub ($column) { scalar grep { $_->[$column] =~ /:0*([0-9A-F]+)\z/ && hex $1 == $port && $_->[3] eq '06' } map { [split] } split /\n/, slurp('/proc/net/tcp') };
		my $before = $wait->(2);
		run('-c', 4, '-n', 50, '--close', '--tls-resume', "https://127.0.0.1:$port$small");
		cmp_ok $wait->(2), '<=', $before, 'not of this one';        # older ones may end meanwhile
	}
};

subtest 'what nginx sees' => sub {
	my $log = "$ng->{dir}/tls.log";
	my $last = sub (@args) {
		truncate $log, 0;
		run('-n', 1, @args);
		eventually(sub { -s $log });
		return slurp($log);
	};
	put("$dir/host", "$small\n");
	my @name = ('-u', "$dir/host", "https://localhost:$ng->{ports}{8080}/");
	my @address = ('-u', "$dir/host", "$at{nginx}/");
	like $last->(@name), qr/^localhost TLSv1\.3 \S+ \S+ \. http\/1\.1$/, 'the name of the host, and what is spoken';
	like $last->(@address), qr/^- TLSv1\.3/, 'an address is not sent';
	like $last->(qw(--tls-conf MaxProtocol=TLSv1.2 --tls-conf CipherString=ECDHE-ECDSA-CHACHA20-POLY1305), @name), qr/ TLSv1\.2 ECDHE-ECDSA-CHACHA20-POLY1305 /, 'a version and a cipher';
	like $last->(qw(--tls-conf Ciphersuites=TLS_AES_128_GCM_SHA256 --tls-conf Groups=P-384), @name), qr/ TLSv1\.3 TLS_AES_128_GCM_SHA256 secp384r1 /, 'a cipher of TLS 1.3, and a group';
};

subtest 'sessions that the server keeps' => sub {
	my $r = run('-c', 1, '-n', 20, '--close', '--tls-resume', "https://127.0.0.1:$ng->{ports}{8081}$small");
	is counts($r, qw(handshakes resumed)), 'handshakes 20 resumed 19', 'are resumed, too';
};

subtest 'several servers' => sub {
	put("$dir/mixed", join '', map { "$_$small\n" } values %at, $plain);
	my $r = run('-c', 1, '-n', 60, '--tls-resume', '-u', "$dir/mixed");
	is $r->{exit}, 0, 'http and https in one list';
	is counts($r, qw(connects handshakes resumed)), 'connects 60 handshakes 40 resumed 38', '... with a handshake for https only, and sessions for each';
	$r = run('-c', 1, '-n', 4, map { "$_://localhost:$ng->{ports}{8082}$small" } qw(http https));
	is counts({ %$r, %{ $r->{errors} } }, qw(answered tls)), 'answered 2 tls 2', 'one address with and without TLS';
};

# ---------------------------------------------------------------- servers that do not

# Closes each connection after its first bytes; ends with this process, which holds the other end of the pipe.
sub deaf () {
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16) // die "listen: $!";
	pipe my $alive, my $keep or die "pipe: $!";
	defined(my $pid = fork) or die "fork: $!";
	return { port => $listen->sockport, keep => $keep } if $pid;
	close $keep;
	my $all = IO::Select->new($alive, $listen);
	while (my @ready = $all->can_read) {
		for my $s (@ready) {
			POSIX::_exit(0) if $s == $alive;
			if ($s == $listen) { $all->add($listen->accept // next); next }
			$all->remove($s);
			sysread $s, my $hello, 16384;
			close $s;
		}
	}
}

subtest 'errors' => sub {
	my $is = sub ($r) { join ' ', map { "$_ $r->{errors}{$_}" } grep { $_ ne 'all' && $r->{errors}{$_} } sort keys %{ $r->{errors} } };
	my $r = run('-c', 2, '-n', 6, $plain =~ s/http/https/r . '/');
	is $is->($r), 'tls 6', 'a server of plain HTTP';
	like $r->{said}, qr/^accel-load: handshake: .*wrong version number$/m, '... is said';
	is $r->{exit}, 1, '... and an error';
	$r = run('-c', 2, '-n', 6, '--tls-conf=MinProtocol=TLSv1.3', "https://127.0.0.1:$ng->{ports}{8081}/");
	is $is->($r), 'tls 6', 'no version in common';
	like $r->{said}, qr/^accel-load: handshake: tlsv1 alert protocol version$/m, '... is what the server says';
	my $deaf = deaf();
	$r = run('-c', 2, '-n', 6, "https://127.0.0.1:$deaf->{port}/");
	is $is->($r), 'reset 6', 'a server that closes';
	my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16) // die "listen: $!";
	$r = run('-c', 2, '-n', 2, '-t', 0.2, 'https://127.0.0.1:' . $mute->sockport . '/');
	is $is->($r), 'timeout 2', 'a server that says nothing';
	$r = run('-n', 1, 'http://127.0.0.1:' . $srv->port . '/');
	cmp_ok $r->{errors}{all}, '==', 1, 'http to a server of https';
};

subtest 'settings that OpenSSL does not have' => sub {
	for my $row (['MaxProtocol=SSLv9', qr/^accel-load: --tls-conf "MaxProtocol" => "SSLv9": /], ['Nothing=1', qr/"Nothing" => "1"/],
		['MaxProtocol', qr/expected NAME=VALUE, .*got "MaxProtocol"/], ['=x', qr/expected NAME=VALUE/], ['x' x 64 . '=y', qr/expected NAME=VALUE/]) {
		my ($status, $out, $err) = said('-n', 1, "--tls-conf=$row->[0]", "$at{accel}/");
		is $status, 64, $row->[0];
		like $err, $row->[1], '... says why';
	}
	my ($status) = said('-n', 1, '--tls-resume', '--fastcgi', '127.0.0.1:1');
	is $status, 64, '--fastcgi has no TLS';
};

# ---------------------------------------------------------------- the report

subtest 'the report' => sub {
	my @args = ('-c', 1, '--close', '--tls-resume', "$at{accel}$small");
	my ($status, $text) = said('-n', 10, '-v', @args);
	like $text, qr/^10 handshakes of TLS, 9 resumed: [\d.]+ connections\/s$/m, 'handshakes';
	like $text, qr/^handshake (?: +[\d.]+){8}$/m, '... and their time';
	like $text, qr/^msecs\/handshake: /m, '... and in the form of http_load';
	(undef, $text) = said('-n', 1, '-v', "$plain$small");
	unlike $text, qr/handshake/, 'nothing of it without TLS';
	my @file = map { put("$dir/$_.json", (said('--json', '-n', 10 * $_, @args))[1]) } 1, 2;
	my $sum = decode_json((said('--merge', '--json', @file))[1]);
	is counts($sum, qw(handshakes resumed)), 'handshakes 30 resumed 28', 'merged';
	my $n = 0;
	$n += $_->[1] for @{ $sum->{histograms}{handshake}{buckets} };
	is $n, 30, '... with their times';
};

done_testing;
