#!/usr/bin/perl
# One of three applications is killed under load and started again.  Only requests that it was answering may fail, and it gets
# requests again soon.  Prints the time.

use v5.36;
use Test::More;
use Time::HiRes qw(sleep time);

use Test::App;
use Test::Http;
use Test::Server;
use Test::Util qw(PATIENCE eventually slurp);

use constant { CLIENTS => 6, APPS => 3 };

# An application at a TCP port, which stays the same when it starts again.
package TcpApp {
	use parent -norequire, 'Test::App';
	use IO::Socket::INET ();

	# A socket that does not listen keeps the port while the application is down.
	sub listen {
		my ($self) = @_;
		$self->{held} //= IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp', ReusePort => 1) // die "bind: $!";
		return IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $self->{held}->sockport, Listen => 128, ReusePort => 1)
			// die "listen: $!";
	}
	sub address { return '127.0.0.1:' . $_[0]{held}->sockport }
}

package UnixApp {
	use parent -norequire, 'Test::App';
	sub address { return 'unix:' . $_[0]->socket }
}

# One client: requests, one after the other, until the file "stop" is there.  A line for each: its end, status and beginning.
sub client {
	my ($srv, $dir, $n) = @_;
	defined(my $pid = fork) or die "fork: $!";
	return $pid if $pid;
	alarm 2 * PATIENCE;
	open my $fh, '>', "$dir/client$n" or POSIX::_exit(1);
	$fh->autoflush;
	my $c;
	while (!-e "$dir/stop") {
		my $begin = time;
		$c //= $srv->connect;
		$c->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
		my $r = $c->reply;
		printf $fh "%.6f %s %.6f\n", time, $r->{status} // 'cut', $begin;
		undef $c if ($r->{header}{connection} // '') eq 'close' || !$r->{status};
	}
	POSIX::_exit(0);
}

sub answers { my ($dir) = @_; return map { [split] } map { split /\n/, slurp("$dir/client$_") } 1 .. CLIENTS }

sub requests_of { my ($app) = @_; return length $app->noted('connections') }

sub more_answers ($dir, $n) {
	my $before = answers($dir);
	return eventually(sub { answers($dir) >= $before + $n });
}

sub test_restart {
	my ($class, %set) = @_;
	my @app = map { $class->start } 1 .. APPS;
	my $backends = join ', ', map { '"' . $_->address . '"' } @app;
	my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nproxy-core.protocol = "fastcgi"\n}
		. qq{proxy-core.backends = ( $backends )\nproxy-core.disable-time = 1\nproxy-core.max-pool-size = 8\n}
		. join('', map { "proxy-core.$_ = $set{$_}\n" } sort keys %set));
	my $dir = File::Temp->newdir('accel-restart-XXXXXX', TMPDIR => 1);
	my @pid = map { client($srv, "$dir", $_) } 1 .. CLIENTS;
	ok more_answers("$dir", 30), 'the clients are at work';
	ok !grep({ !requests_of($_) } @app), 'each application has a part of it';

	$app[1]->down;
	my $killed = time;
	ok more_answers("$dir", 40), 'two applications go on';
	like $srv->wait_log(qr/ev=pool\.down.*\n/), qr/ev=pool\.down level=\S+|level=\S+ ev=pool\.down/, 'the dead one was noticed';
	my $before = requests_of($app[1]);
	$app[1]->up;
	my $up = time;
	ok eventually(sub { requests_of($app[1]) > $before }), 'it gets requests again';
	my $recovered = time - $up;
	ok more_answers("$dir", 30), 'and all go on';
	$before = requests_of($app[1]);
	ok eventually(sub { requests_of($app[1]) > $before + 5 }), 'it has its part again' if !$set{'max-keep-alive-requests'};

	Test::Util::put("$dir/stop", '');
	waitpid $_, 0 for @pid;
	my @all = answers("$dir");
	my @bad = grep { $_->[1] ne '200' } @all;
	cmp_ok scalar(@bad), '<=', CLIENTS, scalar(@all) . ' answers, ' . scalar(@bad) . ' of them errors: not more than it had in hand';
	is_deeply [grep { $_->[0] < $killed - 1 || $_->[2] > $up } @bad], [], '... and none before it was killed or after it was back';
	diag sprintf '%s, keep-alive %d: it gets requests %.2f s after its start; %d of %d requests failed', $class,
		$set{'max-keep-alive-requests'} // 0, $recovered, scalar @bad, scalar @all;
}

subtest 'unix sockets, a connection for each request' => sub { test_restart('UnixApp') };
subtest 'unix sockets, kept' => sub { test_restart('UnixApp', 'max-keep-alive-requests' => 1000) };
subtest 'TCP, a connection for each request' => sub { test_restart('TcpApp') };

done_testing;
