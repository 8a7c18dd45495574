# Clients that are not ours: each gets a file of a megabyte, checks our certificate, and refuses that of another authority.
use v5.36;
use Cwd ();
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http ();
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(find_program need_program put slurp);

my $dir = File::Temp->newdir('accel-clients-XXXXXX', TMPDIR => 1);
my $big = join '', map { md5_hex($_) } 1 .. 32_768;
my $out = "$dir/out";
my $program = "$dir/program";

# Each is a function of port, path and authority: [status of HTTP, body], or [] if there was no answer.  It may expect what no client does.
my %client = (
	curl     => sub ($port, $path, $ca, @more) {
		my ($rc, $said) = Test::Util::run_fed(need_program('curl', 'curl'), '', '-s', '--max-time', 60, '--cacert', $ca, '-o', $out, '-w', '%{http_code}', @more, "https://localhost:$port$path");
		return $rc eq '0' ? [$said, slurp($out)] : [];
	},
	wget     => sub ($port, $path, $ca) {
		my ($rc, undef, $said) = Test::Util::run_fed(need_program('wget', 'wget'), '', '-S', '--no-hsts', '--timeout=60', '--tries=1', '--content-on-error', "--ca-certificate=$ca", '-O', $out, "https://localhost:$port$path");
		return $said =~ m{^  HTTP/1\.1 (\d+)}m ? [$1, slurp($out)] : [];
	},
	openssl  => sub ($port, $path, $ca, @more) {
		return whole(Test::Util::run_fed(need_program('openssl', 'openssl'), ask($path), qw(s_client -quiet -verify_return_error -servername localhost -verify_hostname localhost -CAfile), $ca, @more, '-connect', "127.0.0.1:$port"));
	},
	gnutls   => sub ($port, $path, $ca, @more) {
		return whole(Test::Util::run_fed(need_program('gnutls-cli', 'gnutls-bin'), ask($path), '--logfile=/dev/null', "--x509cafile=$ca", @more, '-p', $port, 'localhost'));
	},
	perl     => sub ($port, $path, $ca) {
		return whole(Test::Util::run_fed($^X, ask($path), '-MIO::Socket::SSL', '-e', <<'PERL', $port, $ca));
my $s = IO::Socket::SSL->new(PeerAddr => "localhost:$ARGV[0]", SSL_ca_file => $ARGV[1], SSL_verify_mode => SSL_VERIFY_PEER) or exit 1;
local $/;
print $s scalar <STDIN>;
print <$s>;
PERL
	},
	python   => sub ($port, $path, $ca) { return told(Test::Util::run_fed(find_program('/usr/bin/python3') || need_program('python3', 'python3'), '', '-c', <<'PYTHON', $port, $path, $ca)) },
import ssl, sys, urllib.request, urllib.error
port, path, ca = sys.argv[1:]
try:
    r = urllib.request.urlopen('https://localhost:' + port + path, context=ssl.create_default_context(cafile=ca), timeout=60)
except urllib.error.HTTPError as e:
    r = e
sys.stdout.buffer.write(b'%d\n' % r.status + r.read())
PYTHON
	java     => sub ($port, $path, $ca) { return told(Test::Util::run_fed(find_program('java'), '', '-XX:TieredStopAtLevel=1', '-cp', $dir, 'Get', $port, $path, $ca)) },
	go       => sub ($port, $path, $ca) { return told(Test::Util::run_fed($program, '', $port, $path, $ca)) },
);

sub ask ($path) { return "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" }
sub whole ($rc, $said, @) { my $r = Test::Http::parse($said); return $r->{status} ? [$r->{status}, $r->{body}] : [] }
sub told ($rc, $said, @) { return $rc eq '0' && $said =~ s/\A(\d+)\n// ? [$1, $said] : [] }

my $java = <<'JAVA';
import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import javax.net.ssl.*;

class Get {
	public static void main(String[] a) throws Exception {
		KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
		trusted.load(null, null);
		trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(a[2])));
		TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		managers.init(trusted);
		SSLContext tls = SSLContext.getInstance("TLS");
		tls.init(null, managers.getTrustManagers(), null);
		HttpsURLConnection c = (HttpsURLConnection) new URL("https://localhost:" + a[0] + a[1]).openConnection();
		c.setSSLSocketFactory(tls.getSocketFactory());
		System.out.println(c.getResponseCode());
		InputStream in = c.getResponseCode() < 400 ? c.getInputStream() : c.getErrorStream();
		in.transferTo(System.out);
		System.out.flush();
	}
}
JAVA

my $go = <<'GO';
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	pem, _ := os.ReadFile(os.Args[3])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	r, err := client.Get("https://localhost:" + os.Args[1] + os.Args[2])
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(r.StatusCode)
	io.Copy(os.Stdout, r.Body)
}
GO

my %cert = (
	ecdsa => Test::Tls::certificate($dir, 'ecdsa'),
	rsa   => Test::Tls::certificate($dir, 'rsa', rsa => 2048),
);
my %srv;
for (sort keys %cert) {
	$srv{$_} = Test::Server->start(conf => qq{ssl.engine = "enable"\nssl.pemfile = "$cert{$_}{pem}"\nssl.privkey = "$cert{$_}{key}"\n});
	$srv{$_}->write('big', $big);
}

sub serves ($name, @more) {
	my $client = $client{$name};
	for my $key (sort keys %cert) {
		my ($port, $ca) = ($srv{$key}->port, $cert{$key}{pem});
		my ($status, $body) = @{ $client->($port, '/big', $ca, @more) };
		is $status // 'none', 200, "a certificate of $key";
		is length($body // '') . ' ' . md5_hex($body // ''), length($big) . ' ' . md5_hex($big), '... and each byte';
		is $client->($port, '/none', $ca, @more)->[0] // 'none', 404, '... of what is not there';
		is $client->($port, '/big', $cert{ $key eq 'rsa' ? 'ecdsa' : 'rsa' }{pem}, @more)->[0] // 'none', 'none', '... and not with another authority';
	}
	return;
}

subtest $_->[0] => sub { serves(@$_[1 .. $#$_]) }
    for ['curl', 'curl'], ['curl, TLS 1.2', 'curl', '--tls-max', '1.2'], ['curl, HTTP/2 wanted', 'curl', '--http2'],
    ['wget', 'wget'], ['openssl, TLS 1.2', 'openssl', '-tls1_2'], ['openssl, TLS 1.3', 'openssl', '-tls1_3'],
    ['GnuTLS', 'gnutls'], ['GnuTLS, TLS 1.2', 'gnutls', '--priority', 'NORMAL:-VERS-TLS1.3'], ['Perl', 'perl'], ['Python', 'python'];

subtest Java => sub {
	plan skip_all => 'no javac; scripts/install-deps tls-clients installs it' unless find_program('java') && find_program('javac');
	put("$dir/Get.java", $java);
	is system('javac', '-d', $dir, "$dir/Get.java"), 0, 'it is compiled';
	serves('java');
};

subtest Go => sub {
	my $compiler = find_program('go') || find_program('/usr/local/go/bin/go');
	plan skip_all => 'no go; scripts/install-deps tls-clients installs it' unless $compiler;
	put("$program.go", $go);
	local $ENV{GOCACHE} = Cwd::abs_path(Test::Util::build_dir()) . '/go-cache';        # its libraries take a minute
	local $ENV{GO111MODULE} = 'off';
	local $ENV{CGO_ENABLED} = 0;
	is system($compiler, 'build', '-o', $program, "$program.go"), 0, 'it is compiled';
	serves('go');
};

done_testing;
