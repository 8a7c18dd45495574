#!/usr/bin/perl
# proxy-core.max-pool-size is not set: requests that an application holds do not hold the next one.
use v5.36;
use Test::More;

use Test::Drill;
use Test::Server;

my ($pid, $at) = Test::Drill::start('http', [{ do => sub { ['wait'] } }], []);
my $srv = Test::Server->start(conf => "server.max-worker = 1\n" . Test::Server::proxy_block('^/app/', $at, protocol => 'http'));
my @held = map { my $c = $srv->connect; $c->send("GET /app/0 HTTP/1.1\r\nHost: x\r\n\r\n"); $c } 1 .. 31;
is $srv->fetch('/app/next')->{body}, "good /app/next 0\n", 'beside 31 requests without an answer, one more gets its own';
undef @held;
kill 'KILL', $pid;
waitpid $pid, 0;

done_testing;
