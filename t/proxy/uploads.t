#!/usr/bin/perl
# Request bodies on their way to an application: collected in memory, then in temporary files, within limits.

use v5.36;
use Digest::MD5 qw(md5_hex);
use IO::Socket::INET ();
use Test::More;

use Test::App;
use Test::Server;

my $mounts = Test::Server::own_mounts();
my $app = Test::App->start;

# Lines of server settings, then those of proxy-core.
sub start {
	my ($lines, %arg) = @_;
	my $sock = $app->socket;
	return Test::Server->start(%arg, conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n$lines\n}
	    . Test::Server::proxy_block('^/app', "unix:$sock", 'max-pool-size' => 4, 'max-keep-alive-requests' => 100));
}

sub all_closed { my ($srv) = @_; return Test::Util::eventually(sub { $srv->counter('server.spool.files-opened') == $srv->counter('server.spool.files-closed') }) }

sub body_of { my ($n) = @_; return substr join('', map { md5_hex($_) } 1 .. 1 + $n / 32), 0, $n }

sub post {
	my ($body, $framing, $path) = @_;
	my $head = 'POST ' . ($path // '/app/upload') . " HTTP/1.1\r\nHost: x\r\n";
	return "${head}Content-Length: " . length($body) . "\r\n\r\n$body" if $framing eq 'length';
	return "${head}Transfer-Encoding: chunked\r\n\r\n"
	    . join('', map { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a50000)*', $body) . "0\r\n\r\n";
}

# A connection from another address.
sub from ($srv, $addr) {
	my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $srv->port, LocalAddr => $addr) or die "connect: $!";
	$sock->blocking(0);
	return bless { sock => $sock, in => '', eof => 0 }, 'Test::Http::Conn';
}

my $srv = start('server.upload-dirs = ( "@RUN@" )');

subtest 'bodies of all sizes arrive with both framings' => sub {
	my $c = $srv->connect;          # one connection: what follows a body is a request
	for my $framing (qw(length chunked)) {
		for my $n (1, 65535, 65536, 65537, 200_000, 3_000_000) {
			my $body = body_of($n);
			$c->send(post($body, $framing));
			my $r = $c->reply;
			is $r->{body}, "$n " . md5_hex($body), "$n bytes, $framing";
			is $r->{header}{'x-length'}, $n, 'and the application knows how many';
		}
	}
	my $none = "POST /app/upload HTTP/1.1\r\nHost: x\r\n\r\n";
	for my $case (['chunked', post('', 'chunked')], ['length', post('', 'length')], ['no framing', $none]) {
		$c->send($case->[1]);
		my $r = $c->reply;
		is $r->{body}, '0 ' . md5_hex(''), "an empty body, $case->[0]";
		is $r->{header}{'x-length'}, 0, 'and the application knows that it is empty';
	}
	$c->send("GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n");
	unlike $c->reply->{body}, qr/^CONTENT_LENGTH=/m, 'a GET has no body';
	cmp_ok $srv->counter('server.spool.bytes-written'), '>', 6_000_000, 'the large ones went through a temporary file';
	ok all_closed($srv), 'which is closed afterwards';
	is_deeply [glob $srv->run . '/.accel*'], [], 'and had no name';
};

subtest 'a request after a body is answered' => sub {
	for my $framing (qw(length chunked)) {
		my $c = $srv->connect;
		my $body = body_of(300_000);
		$c->send(post($body, $framing) . "GET /app/env HTTP/1.1\r\nHost: x\r\n\r\n" . post($body, $framing));
		is $c->reply->{body}, '300000 ' . md5_hex($body), "$framing: the first";
		like $c->reply->{body}, qr/^REQUEST_METHOD=GET$/m, 'the second';
		is $c->reply->{body}, '300000 ' . md5_hex($body), 'the third';
	}
};

subtest 'a chunked body gets its CONTENT_LENGTH by counting' => sub {
	my $c = $srv->connect;
	$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	$c->send("4;x=y\r\ndefg\r\n0\r\nContent-Length: 9\r\n\r\n");
	is $c->reply->{header}{'x-length'}, 7, 'CONTENT_LENGTH of a chunked body';
};

subtest 'Expect: 100-continue gets its answer before the body' => sub {
	my $small = start(qq{server.upload-dirs = ( "\@RUN\@" )\nserver.max-request-size = 300});
	my $c = $small->connect;
	my $body = body_of(300 * 1024);
	$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " . length($body) . "\r\n\r\n");
	is $c->take(25), "HTTP/1.1 100 Continue\r\n\r\n", 'a body that is welcome';
	$c->send($body);
	is $c->reply->{body}, length($body) . ' ' . md5_hex($body), 'arrives';
	$c->send("POST /app/upload HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 307201\r\n\r\n");
	is $c->reply->{status}, 413, 'one that is too long is refused before it is sent';
	for my $framing (qw(length chunked)) {
		is Test::Http::parse($small->request(post(body_of(307201), $framing)))->{status}, 413, "$framing: and so without Expect";
	}
	ok all_closed($small), 'no file is left';
};

subtest 'a client that leaves in mid-upload leaves no file' => sub {
	my $s = start(qq{server.upload-dirs = ( "\@RUN\@" )\nserver.max-read-idle = 1});
	for my $how (qw(leaves resets)) {
		my @c = map { $s->connect } 1 .. 5;
		$_->send(substr post(body_of(900_000), 'length'), 0, 500_000) for @c;
		ok Test::Util::eventually(sub { $s->counter('server.spool.files-opened') - $s->counter('server.spool.files-closed') == 5 }), 'five files are open';
		$how eq 'resets' ? $_->abort : close $_->sock for @c;
		ok all_closed($s), "a client $how: its file is closed";
	}
	my $c = $s->connect;
	$c->send(substr post(body_of(900_000), 'chunked'), 0, 500_000);
	is $c->reply->{status}, 408, 'silence ends an upload, however fast its first part was';
	ok all_closed($s), 'its file is closed';
};

subtest 'many chunked uploads use bounded memory' => sub {
	my @c = map { $srv->connect } 1 .. 30;
	my $before = $srv->counter('server.spool.bytes-written');
	$_->send(substr post(body_of(900_000), 'chunked'), 0, 850_000) for @c;
	ok Test::Util::eventually(sub { $srv->counter('server.spool.bytes-written') - $before > 30 * (850_000 - 2 * 65536) }),
	    'all but two pieces of each are on disk';
	$_->abort for @c;
	ok all_closed($srv), 'their files are closed';
};

subtest 'one client gets half of server.max-spool-size' => sub {
	my $s = start(qq{server.upload-dirs = ( "\@RUN\@" )\nserver.max-spool-size = 1024});
	my @c = map { $s->connect } 1 .. 2;
	$c[0]->send(substr post(body_of(500_000), 'length'), 0, 450_000);
	ok Test::Util::eventually(sub { $s->counter('server.spool.bytes-written') > 300_000 }), 'a body that is collected';
	$c[1]->send(post(body_of(450_000), 'chunked'));
	my $r = $c[1]->reply;
	is $r->{status}, 503, 'a second one of the same client finds no room';
	like $r->{header}{'retry-after'}, qr/^[1-9]/, 'with Retry-After';
	is $s->counter('server.spool.refused'), 1, 'which is counted';
	my $other = from($s, '127.0.0.2');
	$other->send(post(body_of(200_000), 'chunked'));
	is $other->reply->{body}, '200000 ' . md5_hex(body_of(200_000)), 'another client does';
	$c[0]->send(substr post(body_of(500_000), 'length'), 450_000);
	is $c[0]->reply->{body}, '500000 ' . md5_hex(body_of(500_000)), 'the first one is answered';
	is Test::Http::parse($s->request(post(body_of(600_000), $_)))->{status}, 413, "$_: more than the half is never taken" for qw(length chunked);
};

subtest 'an unusable spool directory gives way to the next one' => sub {
	my $next = start('server.upload-dirs = ( "/proc", "@RUN@" )');
	my $c = $next->connect;
	$c->send(post(body_of(500_000), 'length'));
	is $c->reply->{body}, '500000 ' . md5_hex(body_of(500_000)), 'gives way to the next';
	like $next->wait_log(qr/ev=spool\.failed/), qr{ev=spool\.failed .*directory=/proc .*then="?next}, 'with a line that names it';
	my $none = start('server.upload-dirs = ( "/proc" )');
	is Test::Http::parse($none->request(post(body_of(500_000), 'length')))->{status}, 500, '500 when it is the only one';
	my $c2 = $none->connect;
	$c2->send(post(body_of(60_000), 'length'));
	is $c2->reply->{body}, '60000 ' . md5_hex(body_of(60_000)), 'small bodies need none';
};

subtest 'a temporary file that cannot be read makes no second reply' => sub {
	my $s = start('server.upload-dirs = ( "@RUN@" )');
	my %reply = ('' => qr{\AHTTP/1\.1 500 }, early => qr{\AHTTP/1\.1 200 .*\r\n\r\nearly\z}s);
	for my $said (sort keys %reply) {
		unlink $app->file('go');
		my $written = $s->counter('server.spool.bytes-written');
		my $c = $s->connect;
		$c->send(post(body_of(3_000_000), 'length', "/app/reads?$said"));
		ok Test::Util::eventually(sub { $s->counter('server.spool.bytes-written') - $written > 2_800_000 }), "'$said': a body on disk";
		my $begun = $said eq '' ? '' : $c->take(9);     # truncated before that, the file makes a 500
		my ($fd) = grep { (readlink // '') =~ m{^\Q@{[ $s->run ]}\E/.* \(deleted\)} } glob "/proc/@{[ $s->pid ]}/fd/*";
		truncate $fd, 0 or die "$fd: $!";
		$app->note('go');
		like $begun . $c->rest, $reply{$said}, 'one reply';
		ok all_closed($s), 'the file is closed';
	}
};

SKIP: {
	skip 'needs mounts of its own', 1 if !$mounts;
	subtest 'a full disk is 507' => sub {
		my $dir = File::Temp->newdir('accel-full-XXXXXX', TMPDIR => 1);
		system('mount', '-t', 'tmpfs', '-o', 'size=256k', 'none', "$dir") == 0 or die "mount\n";
		my $full = start(qq{server.upload-dirs = ( "$dir" )});
		is Test::Http::parse($full->request(post(body_of(900_000), $_)))->{status}, 507, "$_: is 507" for qw(length chunked);
		like $full->wait_log(qr/ev=spool\.failed/), qr{ev=spool\.failed .*directory=\Q$dir\E .*then="?refused}, 'with a line that names it';
		is $full->counter('server.spool.refused'), 2, 'and counted';
		my $next = start(qq{server.upload-dirs = ( "$dir", "\@RUN\@" )});
		my $c = $next->connect;
		$c->send(post(body_of(900_000), 'length'));
		is $c->reply->{body}, '900000 ' . md5_hex(body_of(900_000)), 'what had been written there is joined with the rest';
		is $next->counter('server.spool.files-opened'), 2, 'in two files';
		undef $_ for $full, $next;
		system('umount', "$dir");
	};
}

done_testing;
