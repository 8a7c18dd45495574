#!/usr/bin/perl
# A host name of proxy-core.backends gets other addresses while the server runs.  A private /etc/hosts, in a mount namespace
# that ends with the test, plays the resolver.

use v5.36;
use Test::More;

use Test::App;
use Test::Server;
use Test::Util qw(eventually put);

Test::Server::own_mounts() or plan skip_all => 'needs root and mount namespaces (unshare -m)';

# An application on one of the addresses 127.0.0.2 and so on, all at the same port.
package HostApp {
	use parent -norequire, 'Test::App';
	use IO::Socket::INET ();

	sub listen {
		my ($self) = @_;
		return IO::Socket::INET->new(LocalAddr => $HostApp::host, LocalPort => $HostApp::port, Listen => 128, ReuseAddr => 1)
			// die "listen: $!";
	}
}

my $dir = File::Temp->newdir('accel-names-XXXXXX', TMPDIR => 1);

sub play ($name, $text) {
	put("$dir/$name", $text);
	system('mount', '--bind', "$dir/$name", "/etc/$name") == 0;
}

sub hosts { put("$dir/hosts", "127.0.0.1 localhost\n" . join '', map { "$_ app.test\n" } @_) }

-e "/etc/$_" or plan skip_all => "no /etc/$_" for qw(hosts nsswitch.conf);
play('hosts', "127.0.0.2 app.test\n") && play('nsswitch.conf', "hosts: files\n") or plan skip_all => 'mount --bind is not permitted';

my $any = IO::Socket::INET->new(LocalAddr => '127.0.0.2', Proto => 'tcp', ReuseAddr => 1) or die "bind: $!";
our ($host, $port);
$HostApp::port = $any->sockport;
my @app = map { $HostApp::host = "127.0.0.$_"; HostApp->start } 2 .. 3;

sub start {
	my %set = ('resolve-interval' => 1, @_);
	hosts('127.0.0.2');
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nproxy-core.protocol = "fastcgi"\n}
		. qq{proxy-core.backends = ( "app.test:$HostApp::port" )\n}
		. qq{status.statistics-url = "/counters"\n}
		. join('', map { qq{proxy-core.$_ = $set{$_}\n} } sort keys %set));
}

sub status { my ($srv) = @_; return $srv->fetch('/app/env')->{status} }
sub requests_of { return length $app[ $_[0] ]->noted('connections') }

# True if requests come to that application, and only there.
sub only ($srv, $n) {
	my @before = map { requests_of($_) } 0, 1;
	my @status = map { status($srv) } 1 .. 6;
	return "@status" eq join(' ', (200) x 6) && requests_of(1 - $n) == $before[ 1 - $n ] && requests_of($n) >= $before[$n] + 6;
}

subtest 'each address is a backend' => sub {
	my $srv = start();
	ok only($srv, 0), 'the first address';
	hosts('127.0.0.3');
	ok eventually(sub { my $was = requests_of(1); status($srv) == 200 && requests_of(1) > $was }), 'another address is found, without an error';
	ok only($srv, 1), '... and the old one gets no request';
	$srv->log_has(qr/ev=resolve\.done .*added=1 removed=1/, '... with a line');

	hosts('127.0.0.3', '127.0.0.2');
	$srv->wait_log(qr/ev=resolve\.done .*added=1 removed=0/);
	my @before = map { requests_of($_) } 0, 1;
	is join(' ', map { status($srv) } 1 .. 12), join(' ', (200) x 12), 'two addresses';
	ok requests_of($_) >= $before[$_] + 4, "... application $_ gets its part" for 0, 1;

	hosts();
	like $srv->wait_log(qr/ev=resolve\.failed/), qr/level=warn.* ev=resolve\.failed|ev=resolve\.failed.* name="?app\.test/, 'a look-up fails';
	is join(' ', map { status($srv) } 1 .. 6), join(' ', (200) x 6), '... and the old addresses stay';
	hosts('127.0.0.3', '127.0.0.2');
	$srv->wait_log(qr/ev=resolve\.done .*added=0 removed=0/);
	is scalar(() = $srv->log =~ /ev=resolve\.failed/g), 1, '... with one line until it works again';
};

subtest 'an application moves' => sub {
	my $srv = start('split-hostnames' => '"disable"', 'max-keep-alive-requests' => 100, 'disable-time' => 1);
	is status($srv), 200, 'it answers';
	$app[0]->down;
	ok eventually(sub { status($srv) == 503 }), 'it is gone';
	hosts('127.0.0.3');
	ok eventually(sub { status($srv) == 200 }), 'it is found at its new address';
	$srv->log_has(qr/ev=resolve\.done .*added=1 removed=1/, '... with a line');
	like $srv->fetch('/counters')->{body}, qr/app\.test:\d+/, 'one backend has the name of all addresses';
};

subtest 'never' => sub {
	my $srv = start('resolve-interval' => 0);
	is status($srv), 503, 'nobody listens there';
	hosts('127.0.0.3');
	is status($srv), 503, 'the old address stays';
	unlike $srv->log, qr/ev=resolve/, 'no look-up';
};

done_testing;
