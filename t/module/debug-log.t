# debug.log-*: each setting writes its lines, and only where it is on; values that let others in are not written.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $secret = 'c2VjcmV0OnNlY3JldA';

# [ setting, request, what the log has, what it has not ]
my @cases = (
	[ 'request-header', "GET /a.txt?q HTTP/1.1\r\nHost: x\r\nX-Odd: \"\\\tb\xff\r\n",
		[ qr{ev=debug\.request id=c\S+ line="GET /a\.txt\?q HTTP/1\.1"\n}, qr{ev=debug\.request-header id=\S+ name=Host value=x\n},
			qr{name=X-Odd value="\\x22\\x5c\\x09b\\xff"\n}, qr{name=Authorization value="\*\*\*"\n}, qr{name=Cookie value="\*\*\*"} ],
		[ qr/debug\.(response|condition|handling|not-found|state)/ ] ],
	[ 'request-header-on-error', "GET /a.txt HTTP/1.1\r\nHost: x\r\n", [], [ qr/ev=debug\./ ] ],
	[ 'request-header-on-error', "GET /missing HTTP/1.1\r\nHost: x\r\n", [ qr{ev=debug\.request .*/missing}, qr{name=Host value=x} ], [] ],
	[ 'response-header', "GET /a.txt HTTP/1.1\r\nHost: x\r\n",
		[ qr{ev=debug\.response id=\S+ line="HTTP/1\.1 200 OK"\n}, qr{ev=debug\.response-header id=\S+ name=Content-Length value=6\n} ], [ qr/debug\.request/ ] ],
	[ 'request-handling', "GET /dir/../a.txt?q=1 HTTP/1.1\r\nHost: x\r\n",
		[ qr{ev=debug\.handling id=\S+ uri="/dir/\.\./a\.txt\?q=1" scheme=http host=x path=/a\.txt query="q=1" root=\S+ file=/a\.txt handler=static\n},
			qr{ev=debug\.replied id=\S+ status=200 bytes=6\n} ], [] ],
	[ 'condition-handling', "GET /a.txt HTTP/1.1\r\nHost: y\r\n",
		[ qr{ev=debug\.condition id=\S+ file=\S+ line=\d+ condition="\$HTTP\[\\x22host\\x22\] == \\x22y\\x22" is=true\n},
			qr{condition="else \$HTTP\[\\x22url\\x22\] =\^ \\x22/d\\x22" is=false\n|is=unknown} ], [] ],
	[ 'condition-cache-handling', "GET /a.txt HTTP/1.1\r\nHost: y\r\n", [ qr{ev=debug\.condition-cache id=\S+ sets=\d+\n} ], [] ],
	[ 'file-not-found', "GET /missing HTTP/1.1\r\nHost: x\r\n", [ qr{ev=debug\.not-found id=\S+ uri=/missing root=\S+ file=/missing\n} ], [] ],
	[ 'file-not-found', "GET /a.txt HTTP/1.1\r\nHost: x\r\n", [], [ qr/ev=debug\./ ] ],
	[ 'state-handling', "GET /a.txt HTTP/1.1\r\nHost: x\r\n", [ qr{ev=debug\.state connection=\d+ state=route means=}, qr{state=close} ], [] ],
	[ 'ssl-noise', "GET /a.txt HTTP/1.1\r\nHost: x\r\n", [], [ qr/ev=debug\./, qr/no effect/ ] ],
);

for my $case (@cases) {
	my ($setting, $head, $has, $not) = @$case;
	my $srv = Test::Server->start(conf => qq{
		debug.log-$setting = "enable"
		\$HTTP["host"] == "y" { server.tag = "a" }
		else \$HTTP["url"] =^ "/d" { server.tag = "b" }
	});
	$srv->write('a.txt', "hello\n");
	$srv->write('dir/x', '');
	my $got = $srv->request("${head}Authorization: Basic $secret\r\nCookie: id=$secret\r\nConnection: close\r\n\r\n");
	like $got, qr/^HTTP/, "debug.log-$setting: an answer";
	$srv->term;
	my $log = $srv->log;
	like $log, $_, "... has $_" for @$has;
	unlike $log, $_, "... has not $_" for @$not;
	unlike $log, qr/\Q$secret\E/, '... without secrets';
}

my $srv = Test::Server->start(conf => qq{debug.log-timeouts = "enable"\nserver.max-keep-alive-idle = 1\n});
$srv->write('a.txt', 'x');
my $c = $srv->connect;
$c->send("GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n");
$c->reply;
ok $c->closed, 'a silent connection is closed';
like $srv->wait_log(qr/debug\.timeout/), qr{ev=debug\.timeout connection=\d+ requests=1 then=closed}, 'debug.log-timeouts';

subtest 'in a block' => sub {
	my $s = Test::Server->start(dir => $srv->dir, conf => qq{\$HTTP["url"] == "/a.txt" { debug.log-request-handling = "enable" }\n});
	$s->get('/b');
	$s->get('/a.txt');
	$s->term;
	is_deeply [$s->log =~ /ev=debug\.handling .*? uri=(\S+)/g], ['/a.txt'], 'only its requests';
};

done_testing;
