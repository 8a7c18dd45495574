#!/usr/bin/perl
# Streamed uploads whose client or application vanishes, at each stage: the other side hears of it, nothing stays open.

use v5.36;
use Test::More;

use Test::Backend;
use Test::Server;
use Test::Util qw(eventually);

my $backend = Test::Backend->new;
my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
    . qq{server.upload-dirs = ( "\@RUN\@" )\nserver.stream-request-body = 1\n}
    . Test::Server::proxy_block('^/http', 'unix:' . $backend->socket, protocol => 'http', 'max-pool-size' => 100, 'disable-time' => 0));

my $head = "POST /http HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n";
my $ok = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";

sub gone { my ($b) = @_; return eventually(sub { $b->rest(0.001); $b->{eof} }) }

$srv->counter('server.requests.read');
my $fds = $srv->descriptors;

# Each stage: what the client has sent, and what it has heard, when one side vanishes.
my @stages = (
	['before a byte of the body', sub { }],
	['in the body', sub { my ($c, $b) = @_; $c->send('x' x 100_000); $b->take(100_000) }],
	['while the application does not read', sub {
		my ($c) = @_;
		my $idle = 0;
		while ($idle < 5) { $idle = $c->push('x' x 100_000) ? 0 : $idle + 1; select undef, undef, undef, 0.005 }
	}],
	['after an early head', sub { my ($c, $b) = @_; $b->send($ok); $c->head }],
	['in an early reply', sub { my ($c, $b) = @_; $b->send("${ok}begun"); $c->head; $c->take(5) }],
	['after the body', sub { my ($c, $b) = @_; for (1 .. 30) { $c->send('x' x 100_000); $b->take(100_000) } }],
);

for my $stage (@stages) {
	my ($name, $until) = @$stage;
	for my $how (qw(closes resets)) {
		my $c = $srv->connect;
		$c->send($head);
		my $b = $backend->accept;
		$b->head;
		$until->($c, $b);
		$how eq 'resets' || $name =~ /does not read/ ? $c->abort : close $c->sock;
		if ($name eq 'after the body' && $how eq 'closes') {
			$b->send("${ok}0123456789");    # the client may have closed its direction only
		}
		ok gone($b), "$name: the client $how, the application hears of it";
	}
	my $c = $srv->connect;
	$c->send($head);
	my $b = $backend->accept;
	$b->head;
	$until->($c, $b);
	$name =~ /does not read/ ? $b->abort : close $b->sock;
	if ($name =~ /early/) { is $c->rest, '', "$name: the application leaves, the reply is cut" }
	else { is $c->reply->{status}, 502, "$name: the application leaves, the client gets 502" }
}

subtest 'an application that is not there' => sub {
	my $s = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.stream-request-body = 1\n}
	    . Test::Server::proxy_block('^/http', 'unix:/nonexistent/socket', protocol => 'http'));
	my $c = $s->connect;
	$c->send($head);
	$c->send('x' x 3_000_000);
	my $r = $c->reply;
	is $r->{status}, 503, 'the client that sends its body first gets its reply';
	is $r->{header}{connection}, 'close', 'and the end of the connection';
	is $c->rest, '', 'after it';
};

ok eventually(sub { $srv->descriptors <= $fds }), 'every socket is closed';
is $srv->counter('server.spool.files-opened'), 0, 'no file was needed';

done_testing;
