#!/usr/bin/perl
# Which of three applications gets a request: each balancer, weights, abstract sockets, checks.

use v5.36;
use Test::More;

use Test::App;
use Test::Server;
use Test::Util qw(eventually put);

# A member listens at an abstract socket, and is well until a file says that it is sick.
package Member {
	use parent -norequire, 'Test::App';
	use IO::Socket::UNIX ();
	use Socket ();

	sub name { return "accel-$$-" . (0 + $_[0]) }

	sub listen {
		my ($self) = @_;
		$self->{name} //= $self->name;
		CORE::socket(my $s, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0) or die "socket: $!";
		bind $s, Socket::pack_sockaddr_un("\0$self->{name}") or die "bind: $!";
		CORE::listen($s, 128) or die "listen: $!";
		return bless $s, 'IO::Socket::UNIX';
	}

	sub do_ping {
		my ($self, $c) = @_;
		Test::App::out($c, -e $self->file('sick') ? "Status: 500 sick\r\n\r\n" : "Status: 204 well\r\n\r\n");
		Test::App::end($c);
		return 1;
	}
}

my @app = map { Member->start } 1 .. 3;

sub start (%set) {
	my $backends = join ', ', map { qq{"unix:\@$_->{name}"} } @app;
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nproxy-core.protocol = "fastcgi"\n}
		. qq{proxy-core.backends = ( $backends )\nproxy-core.max-pool-size = 4\n} . join '', map { "proxy-core.$_ = $set{$_}\n" } sort keys %set);
}

# How many requests each application gets, of those that the code makes.
sub shares ($code) {
	my @before = map { length $_->noted('connections') } @app;
	$code->();
	return join ' ', map { length($app[$_]->noted('connections')) - $before[$_] } 0 .. 2;
}

sub gets { my ($srv, @path) = @_; return shares(sub { $srv->get($_) for @path }) }

my @same = ('/app/env') x 12;

is gets(start(), @same), '4 4 4', 'round-robin is the default';
is gets(start(weights => '( 3, 2, 1 )'), @same), '6 4 2', '... by weight';
is gets(start(balancer => '"sqf"'), @same), '4 4 4', 'sqf without load takes turns';
is gets(start(balancer => '"static"'), @same), '12 0 0', 'static takes the first';
like gets(start(balancer => '"carp"'), @same), qr/^(?:12 0 0|0 12 0|0 0 12)$/, 'carp: one URL has one backend';
like gets(start(balancer => '"carp"'), map { "/app/env?$_" } 1 .. 6), qr/^(?:6 0 0|0 6 0|0 0 6)$/, '... whatever the query is';
unlike gets(start(balancer => '"hash"'), map { "/app/env/$_" } 1 .. 12), qr/\b0\b/, '... and many URLs have all of them';
like gets(start(balancer => '"sticky"'), map { "/app/env/$_" } 1 .. 12), qr/^(?:12 0 0|0 12 0|0 0 12)$/, 'sticky: one client has one backend';

subtest 'a hot URL spills, a busy backend is spared' => sub {
	for my $balancer ('carp', 'sqf', 'fair') {
		my $srv = start(balancer => qq{"$balancer"});
		my @c = map { $srv->connect } 1 .. 6;
		my @before = map { length $_->noted('connections') } @app;
		$_->send("GET /app/silent HTTP/1.1\r\nHost: x\r\n\r\n") for @c;
		my @now;
		eventually(sub { @now = map { length($app[$_]->noted('connections')) - $before[$_] } 0 .. 2; $now[0] + $now[1] + $now[2] == 6 });
		is join(' ', sort @now), $balancer eq 'carp' ? '0 3 3' : '2 2 2', $balancer;
		$_->abort for @c;
	}
};

subtest 'checks' => sub {
	put($app[1]->file('sick'), '');
	my $srv = start('check-url' => '"/app/ping"', 'check-interval' => 1);
	$srv->get('/app/env');
	like $srv->wait_log(qr/ev=check\.failed/), qr/ev=check\.failed.*status=500/, 'one fails its check';
	$srv->log_has(qr/ev=check\.failed.*\Q$app[1]{name}\E/, '... and is named');
	is join(' ', map { $srv->fetch('/app/env')->{status} } 1 .. 6), join(' ', (200) x 6), 'the others answer';
	unlink $app[1]->file('sick');
	$srv->log_has(qr/ev=check\.passed/, 'it is well again');
};

done_testing;
