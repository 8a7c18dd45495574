# The list of running requests on the status page: of all workers, oldest first, bounded, escaped, and only where the page is.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use Test::App ();
use Test::More;
use Test::Server;
use lib "$FindBin::Bin/../../scripts/lib";
use Accel::Slowfs;

package Waiting {
	our @ISA = 'Test::App';

	sub do_hold {
		my ($self, $c) = @_;
		$self->note('holds');
		Test::Util::eventually(sub { -e $self->file('go') });
		Test::App::out($c, "\r\nfine");
		Test::App::end($c);
		return 1;
	}

	sub do_half {           # a head and some bytes, then silence
		my ($self, $c) = @_;
		Test::App::out($c, "Content-Length: 4000\r\n\r\n" . 'x' x 1000);
		$self->note('holds');
		Test::Util::eventually(sub { -e $self->file('go') });
		return 0;
	}
}

my $app  = Waiting->start;
my $name = 'unix:' . $app->socket;
my $most = 200;

sub server (%arg) {
	my $srv = Test::Server->start(conf => qq{server.max-worker = 3\nserver.max-connections-per-address = 0\n$arg{status}}
	    . Test::Server::proxy_block('^/app/', $name, 'max-pool-size' => $arg{pool} // 30, 'max-waiters' => 1000));
	return $srv;
}

sub running { my ($srv) = @_; return JSON::PP->new->utf8->decode($srv->fetch('/status?json')->{body})->{running} }

# Those that the status page itself is not.
sub rows { return [grep { $_->{url} !~ m{^/status} } @{ $_[0]{rows} }] }

sub ask ($srv, $url, $method = undef) {
	my $c = $srv->connect;
	$c->send(($method // 'GET') . " $url HTTP/1.1\r\nHost: x\r\n\r\n");
	return $c;
}

my $open = qq{status.status-url = "/status"\n};

subtest 'each running request has a row, whichever worker has it' => sub {
	my $srv = server(status => $open);
	my $url = '/app/hold?<b>"&\\';
	my @c = ask($srv, $url);
	ok Test::Util::eventually(sub { @{ rows(running($srv)) } == 1 }), 'the first';
	push @c, map { ask($srv, "/app/hold/$_") } 1 .. 8;
	push @c, ask($srv, '/app/half');
	my $r;
	ok Test::Util::eventually(sub { $r = running($srv); @{ rows($r) } == 10 && grep { $_->{state} eq 'body' } @{ $r->{rows} } }),
	    'ten rows' or diag explain $r;
	my @row = @{ rows($r) };
	is $row[0]{url}, $url, 'the oldest comes first';
	is_deeply [@{ $row[0] }{qw(method client state backend sent_bytes)}], ['GET', '127.0.0.1', 'head', $name, 0], 'what it is';
	ok !$row[0]{url_cut}, 'its URL is whole';
	like $row[0]{id}, qr/\Ac[0-9]+\.1\z/, 'the id of log lines';
	my ($half) = grep { $_->{url} =~ /half/ } @row;
	cmp_ok $half->{sent_bytes}, '>=', 1000, 'bytes that were sent';
	is_deeply [map { $_->{age_ms} } @row], [sort { $b <=> $a } map { $_->{age_ms} } @row], 'by age';
	is "$r->{requests} $r->{more} @{ $r->{silent_workers} }", (scalar @{ $r->{rows} }) . ' 0 ', 'no more, and no worker is silent';
	my $html = $srv->fetch('/status')->{body};
	like $html, qr{<td>GET /app/hold\?&lt;b&gt;&quot;&amp;.*</td><td>127\.0\.0\.1</td><td>c[0-9]+\.1</td><td>head</td><td>\Q$name\E</td><td></td>}, 'HTML';
	unlike $html, qr/hold\?<b>/, 'nothing of a URL is markup';
	my $text = $srv->fetch('/status?running')->{body};
	like $text, qr{\Aage_ms\tsent_bytes\tclient\tid\tstate\tbackend\tdevice\tmethod\turl\n[0-9]+\t0\t127\.0\.0\.1\tc[0-9]+\.1\thead\t\S+\t-\tGET\t/app/hold\?}, 'text';
	like $text, qr/^# [0-9]+ running, 0 more; 0 of 3 workers did not answer$/m, '... with a sum';
	$_->abort for @c;
	$app->note('go');
	ok Test::Util::eventually(sub { @{ rows(running($srv)) } == 0 }), 'no row stays';
	unlink $app->file('go');
};

subtest 'a request that waits for a disk names it' => sub {
	my ($fuse, $no_fuse) = Accel::Slowfs->usable;
	plan skip_all => $no_fuse unless $fuse;
	my $source = File::Temp->newdir('accel-src-XXXXXX', TMPDIR => 1);
	my $srv = server(status => $open);
	mkdir $srv->path('disk') or die $!;
	Test::Util::put("$source/$_", 'x' x (8 << 20)) for 'one', 'large';
	my $disk = Accel::Slowfs->start(source => "$source", at => $srv->path('disk'), spindles => 4);
	my $mount = $disk->dir;
	$disk->hang_after(4 << 20, '/large');
	my $half = $srv->connect(rcvbuf => 65536);
	$half->send("GET /disk/large HTTP/1.1\r\nHost: x\r\n\r\n");
	my $row;
	my $is = sub { my ($re, $state) = @_; return Test::Util::eventually(sub { ($row) = grep { $_->{url} =~ $re && $_->{state} =~ $state } @{ rows(running($srv)) } }) };
	ok $is->(qr/large/, qr/^(?:send|read)$/), 'a file that is sent' or diag explain rows(running($srv));
	is $row->{device}, $mount, 'the mount point';
	$disk->hang;
	my $c = ask($srv, '/disk/one');
	ok $is->(qr/one/, qr/^open$/), 'a file that is looked for' or diag explain rows(running($srv));
	is_deeply [@$row{qw(url device backend)}], ['/disk/one', $mount, ''], 'its path and mount point';
	cmp_ok $row->{age_ms}, '>=', 0, 'how long it has waited';
	like $srv->fetch('/status?running')->{body}, qr{\topen\t-\t\Q$mount\E\tGET\t/disk/one$}m, 'text';
	like $srv->fetch('/status')->{body}, qr{<td>open</td><td></td><td>\Q$mount\E</td>}, 'HTML';
	$disk->go;
	$_->abort for $c, $half;
};

subtest 'a long list is cut, and says so' => sub {
	my $srv = server(status => $open, pool => 3);
	my $long = '/app/hold/' . 'y' x 500;
	my @c = ask($srv, $long, 'HEAD');
	ok Test::Util::eventually(sub { @{ rows(running($srv)) } == 1 }), 'the first';
	push @c, map { ask($srv, "/app/hold/$_") } 1 .. $most + 50;
	my $r;
	ok Test::Util::eventually(sub { $r = running($srv); $r->{requests} >= $most + 51 }), 'all are counted' or diag explain [@$r{qw(requests more)}];
	is scalar @{ $r->{rows} }, $most, 'rows have a bound';
	is $r->{more}, $r->{requests} - $most, 'how many more there are';
	my $first = $r->{rows}[0];
	is $first->{url}, substr($long, 0, 160), 'a long URL is cut';
	ok $first->{url_cut}, '... which is said';
	is $first->{method}, 'HEAD', 'its method';
	ok scalar(grep { $_->{state} eq 'wait' } @{ $r->{rows} }), 'some wait for a socket';
	like $srv->fetch('/status')->{body}, qr/more are not shown/, 'the page says so, too';
	$_->abort for @c;
};

subtest 'the list is where the status page is' => sub {
	my $srv = server(status => qq{\$HTTP["remoteip"] == "10.0.0.0/8" {\n$open}\n});
	is $srv->fetch("/status$_")->{status}, 404, "/status$_: not for this address" for '', '?json', '?running';
	my $none = server(status => '');
	is $none->fetch('/status?running')->{status}, 404, 'no URL, no list';
};

subtest 'a client that leaves while the page is made' => sub {
	my $srv = server(status => $open);
	for (1 .. 50) {
		my $c = $srv->connect;
		$c->send("GET /status?json HTTP/1.1\r\nHost: x\r\n\r\n");
		$c->abort;
	}
	my $c = $srv->connect;
	$c->send("GET /status?json HTTP/1.1\r\nHost: x\r\n\r\n" x 3);
	is $c->reply->{status}, 200, 'one after the other' for 1 .. 3;
};

$app->note('go');
done_testing;
