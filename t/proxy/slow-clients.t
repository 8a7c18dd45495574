#!/usr/bin/perl
# Slow clients before an application with two sockets hold memory and a temporary file, never a socket.

use v5.36;
use Digest::MD5 qw(md5_hex);
use Test::More;
use Time::HiRes qw(sleep time);

use Test::App;
use Test::Server;

use constant SLOW => 8;

my $app = Test::App->start;

sub start (%set) {
	my %all = ('protocol' => '"fastcgi"', 'backends' => qq{( "unix:@{[ $app->socket ]}" )}, 'max-pool-size' => 2,
		'max-keep-alive-requests' => 100, 'wait-timeout' => 60);
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\n}
		. qq{status.statistics-url = "/counters"\nserver.upload-dirs = ( "\@RUN\@" )\n}
		. join('', map { "$_ = $set{$_}\n" } sort keys %set)
		. qq<\$HTTP["url"] =~ "^/app" {\n> . join('', map { "  proxy-core.$_ = $all{$_}\n" } sort keys %all) . "}\n");
}

sub open_files { my ($srv) = @_; return $srv->counter('server.spool.files-opened') - $srv->counter('server.spool.files-closed') }

my $srv = start();

subtest 'clients that send slowly hold no socket of the application' => sub {
	my @c = map { $srv->connect } 1 .. SLOW;
	$_->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n0123456789") for @c;
	is join(' ', map { $srv->fetch('/app/env')->{status} } 1 .. 4), '200 200 200 200', 'others are answered before their bodies have come';
	my $body = '0123456789' x 100;
	$_->send(substr $body, 10) for @c;
	is join(' ', map { $_->reply->{body} } @c), join(' ', ('1000 ' . md5_hex($body)) x SLOW), 'and they are when theirs have';
};

subtest 'clients that read slowly hold no socket of the application' => sub {
	my $piece = join '', map { chr($_ % 251) } 1 .. 50000;
	my @c = map { $srv->connect(rcvbuf => 4096) } 1 .. SLOW;
	$_->send("GET /app/big?120 HTTP/1.1\r\nHost: x\r\n\r\n") for @c;
	ok Test::Util::eventually(sub { length $app->noted('ended') == SLOW }),
		'the application has ended all their replies before one of them was read';
	is join(' ', map { $srv->fetch('/app/env')->{status} } 1 .. 4), '200 200 200 200', 'others are answered';
	cmp_ok open_files($srv), '>=', SLOW, 'the replies lie in temporary files';
	is_deeply [map { my $r = $_->reply; length($r->{body}) . ' ' . md5_hex($r->{body}) } @c[0, 1]],
		[('6000000 ' . md5_hex($piece x 120)) x 2], 'and are whole when they are read';
	$_->abort for @c;
	ok Test::Util::eventually(sub { open_files($srv) == 0 }), 'clients that have read all, and those that leave, leave no file';
	is $srv->counter('server.spool.refused'), 0, 'nothing was refused';
};

subtest 'a client that reads a little now and then gets its whole reply' => sub {
	my $slow = start('server.max-write-idle' => 3, 'server.min-write-rate' => 100_000_000);
	$slow->write('large', 'x' x 12_000_000);
	my @path = qw(/large /app/big?240);
	my @c = map { $slow->connect(rcvbuf => 16384) } @path;
	$c[$_]->send("GET $path[$_] HTTP/1.1\r\nHost: x\r\n\r\n") for 0 .. $#path;
	my @got = (0) x @path;
	for (1 .. 200) {        # five seconds, of which it has three
		$got[$_] += sysread($c[$_]->sock, my $bytes, 16384) // 0 for 0 .. $#path;
		sleep 0.025;
	}
	for (0 .. $#path) {
		$got[$_] += length $c[$_]->rest;
		cmp_ok $got[$_], '<', 12_000_000, "$path[$_]: is cut, as it is slower than server.min-write-rate";
	}
	is length $slow->fetch('/large')->{body}, 12_000_000, 'a client that reads all the time is not';
};

done_testing;
