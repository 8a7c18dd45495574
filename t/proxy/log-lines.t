#!/usr/bin/perl
# Each try at a backend that fails leaves one line: backend, stage, why, and what was done about it.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Time::HiRes qw(time);

use Test::App;
use Test::Fcgi::Codec qw(end_request);
use Test::Server;

# ---------------------------------------------------------------- an application that fails in each way

package Failing {
	our @ISA = 'Test::App';
	my $served = 0;         # requests of this connection

	sub early_hangup { return 0 }
	sub do_garbage   { Test::App::_send($_[1], "no FastCGI record at all, nor the beginning of one"); return 0 }
	sub do_full      { Test::App::_send($_[1], Test::Fcgi::Codec::end_request(1, 2)); return 1 }
	sub do_short     { Test::App::out($_[1], "Content-Length: 10\r\n\r\nfive."); Test::App::end($_[1]); return 1 }
	sub do_silent    { sysread $_[1], my $end, 1; return 0 }
	sub do_fine      { $served++; Test::App::out($_[1], "\r\nfine"); Test::App::end($_[1]); return 1 }
	sub do_stale     { return 0 if $served; goto &do_fine }

	sub do_hold {
		my ($self, $c) = @_;
		$self->note('holds');
		Test::Util::eventually(sub { -e $self->file('go') });
		goto &do_fine;
	}
	sub do_halt { Test::App::out($_[1], "Content-Length: 10\r\n\r\nfive."); sysread $_[1], my $end, 1; return 0 }
}

my $app  = Failing->start;
my $live = 'unix:' . $app->socket;
my $dead = "$live.none";

sub block {
	my ($url, @set) = @_;
	return Test::Server::proxy_block("^/$url/", $live, 'max-keep-alive-requests' => 100, @set);
}

my $srv = Test::Server->start(conf => join '', "server.max-worker = 1\n",
	block('app', 'max-pool-size' => 8),
	block('hasty', 'max-pool-size' => 8, 'read-timeout' => 1, 'reply-timeout' => 60),
	block('mute', 'max-pool-size' => 8, 'reply-timeout' => 1),
	block('two', backends => qq{( "$dead", "$live" )}, balancer => 'static', 'disable-time' => 1),
	block('none', backends => qq{( "$dead" )}, 'disable-time' => 600),
	block('tight', 'max-pool-size' => 1, 'max-waiters' => 0),
	block('late', 'max-pool-size' => 1, 'wait-timeout' => 1),
	block('again', 'max-pool-size' => 1));

# The lines about a URL, as hashes.
sub lines ($url) {
	return map { my $l = $_; +{ level => $l =~ /level=(\w+)/, map { my ($v) = $l =~ / $_=("[^"]*"|\S+)/; ($_ => ($v // '') =~ tr/"//dr) }
		qw(id backend stage url why error tries ms then) } } grep { / ev=exchange\.failed .*url="?\Q$url\E"?(?: |$)/ } split /\n/, $srv->log;
}

# Asks, and compares the one line.
sub one_line {
	my ($what, $url, $status, %want) = @_;
	my $r = $want{body} ? Test::Http::parse($srv->request("POST $url HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
	    . length($want{body}) . "\r\n\r\n$want{body}")) : $srv->fetch($url);
	delete $want{body};
	is $r->{status}, $status, "$what: the client gets $status";
	is_line($what, $url, %want);
}

sub is_line ($what, $url, %want) {
	Test::Util::eventually(sub { scalar lines($url) });
	my @is = lines($url);
	is scalar @is, 1, "$what: one line" or diag explain \@is;
	is_deeply { map { $_ => $is[0]{$_} } keys %want }, \%want, "$what: it says what happened" or diag explain $is[0];
	like $is[0]{id}, qr{\Ac[0-9]+\.[0-9]+/[0-9a-f]{32}\z}, "$what: it names the client's connection";
	like $is[0]{ms}, qr/\A[0-9]+\z/, "$what: its age";
}

subtest 'each stage' => sub {
	one_line('connect', '/none/x', 503, stage => 'connect', backend => $dead, tries => 1, then => 'reply 503',
		error => 'No such file or directory', level => 'warn');
	one_line('paused', '/none/y', 503, stage => 'wait', backend => '', why => 'every backend is paused', tries => 0,
		then => 'reply 503', error => 'Host is down');
	one_line('send', '/app/hangup/send', 502, stage => 'send', backend => $live, then => 'reply 502', body => 'x' x 3_000_000);
	one_line('head', '/app/garbage', 502, stage => 'head', backend => $live, then => 'reply 502', error => 'Protocol error');
	one_line('overloaded', '/app/full', 503, stage => 'head', backend => $live, then => 'reply 503');
	one_line('silent', '/mute/app/silent', 504, stage => 'head', backend => $live, then => 'reply 504', error => 'Connection timed out');
};

subtest 'a reply that breaks off' => sub {
	for (['/app/short', 'Protocol error'], ['/hasty/app/halt', 'Connection timed out'], ['/app/vanish', 'Connection reset by peer']) {
		my ($url, $error) = @$_;
		$srv->get($url);
		is_line($url, $url, stage => 'body', backend => $live, error => $error, tries => 1,
			then => "cut the client's connection");
	}
};

subtest 'another backend, or another socket, answers' => sub {
	is $srv->fetch('/two/app/fine')->{body}, 'fine', 'the second backend answers';
	is_line('next backend', '/two/app/fine', stage => 'connect', backend => $dead, tries => 1, then => 'next backend');
	is $srv->fetch('/again/app/fine')->{body}, 'fine', 'a socket is kept';
	is $srv->fetch('/again/app/stale')->{body}, 'fine', 'the application closes it, and a fresh one answers';
	is_line('fresh socket', '/again/app/stale', level => 'info', stage => 'head', backend => $live, tries => 1, then => 'fresh socket');
	is scalar lines('/again/app/fine'), 0, 'nothing is said of what succeeds';
};

subtest 'no socket' => sub {
	my @hold = map { my $c = $srv->connect; $c->send("GET /$_/app/hold HTTP/1.1\r\nHost: x\r\n\r\n"); $c } qw(tight late);
	ok Test::Util::eventually(sub { length $app->noted('holds') == 2 }), 'two pools are full';
	one_line('full queue', '/tight/x', 503, stage => 'wait', backend => $live, why => 'the queue is full', then => 'reply 503');
	my $left = $srv->connect;
	$left->send("GET /late/left HTTP/1.1\r\nHost: x\r\n\r\n");
	$left->abort;
	one_line('no place in time', '/late/x', 503, stage => 'wait', backend => $live, error => 'Connection timed out', tries => 1,
		then => 'reply 503');
	is scalar lines('/late/left'), 0, 'nothing is said of a client that left';
	$app->note('go');
	is $_->reply->{body}, 'fine', 'who was served, was' for @hold;
};

subtest 'a flood has a bound' => sub {
	my ($begin, $n) = (time, 400);
	my $c = $srv->connect;
	$c->send("GET /none/flood HTTP/1.1\r\nHost: x\r\n\r\n" x $n);
	is scalar(grep { $c->reply->{status} == 503 } 1 .. $n), $n, 'all are answered';
	my $most = 100 * (2 + int(time - $begin));
	cmp_ok scalar lines('/none/flood'), '<=', $most, "at most $most lines of $n";
	ok Test::Util::eventually(sub { scalar lines('/none/flood') }), '... and some';
};

done_testing;
