# server.ban-file: read at the start and after each change; connections of banned peers are closed, clients behind a proxy get
# 403, broken lines are named, and nothing else is affected.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Accel::Slowfs;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually put);

my $common = <<'CONF';
server.ban-file = "@RUN@/bans/list"
status.statistics-url = "/statistics"
extforward.forwarder = ( "127.0.0.3" => "trust" )
server.proxy-protocol = ( "127.0.0.4" )
CONF

sub start (%opt) {
	my $dir = File::Temp->newdir;
	chmod 0755, $dir;
	my $srv = Test::Server->start(conf => ($common =~ s/\@RUN\@\/bans/$dir/r) . ($opt{conf} // ''));
	$srv->write('a', 'A');
	return ($srv, $dir);
}

# By rename, as a program should.
sub ban {
	my ($dir, @line) = @_;
	put("$dir/list.new", join '', map { "$_\n" } @line);
	rename "$dir/list.new", "$dir/list" or die $!;
	return;
}

# The status of a new request from there; '' if the connection is closed.
sub ask ($srv, $from, @field) {
	my $c = eval { $srv->connect(from => $from) } or return '';     # the server may reset it so soon
	$c->send(req('/a', @field)) or return '';
	my $r = $c->reply or return '';
	return $r->{status};
}

sub counter ($srv, $name) {
	return $srv->get('/statistics') =~ /^server\.\Q$name\E: ([0-9]+)/m ? $1 : -1;
}

subtest 'a file that comes, changes and goes' => sub {
	my ($srv, $dir) = start();
	is ask($srv, '127.0.0.2'), 200, 'without the file everybody is served';
	$srv->wait_lines(1, qr/ev=bans\.missing file=\S+list/);
	my $kept = $srv->connect(from => '127.0.0.2');
	$kept->send(req('/a'));
	is $kept->reply->{status}, 200, 'a kept connection';
	ban($dir, '# of the operator', '', '127.0.0.2', '198.51.100.0/24  # a network', '2001:db8::/32');
	$srv->wait_lines(1, qr/ev=bans\.read file=\S+ entries=3 broken=0/);
	is ask($srv, '127.0.0.2'), '', 'a banned address gets no reply';
	$kept->send(req('/a'));
	ok !$kept->reply, '... and a kept connection ends at its next request';
	is ask($srv, '127.0.0.1'), 200, 'another address is served';
	like join('', $srv->wait_lines(1, qr/ev=connection\.banned/)), qr/level=info .* address=127\.0\.0\.2 .*server\.ban-file/, 'a line names it';
	cmp_ok counter($srv, 'connections.banned'), '>=', 2, 'connections are counted';
	open my $fh, '>>', "$dir/list" or die $!;
	print $fh "127.0.0.6\n";
	close $fh;
	ok eventually(sub { ask($srv, '127.0.0.6') eq '' }), 'a line is added';
	ban($dir, '127.0.0.6');
	ok eventually(sub { ask($srv, '127.0.0.2') eq '200' }), 'the ban of the first one ends';
	is ask($srv, '127.0.0.6'), '', 'that of the other one goes on';
	unlink "$dir/list";
	ok eventually(sub { ask($srv, '127.0.0.6') eq '200' }), 'without the file it ends, too';
};

subtest 'clients behind proxies' => sub {
	my ($srv, $dir) = start();
	ban($dir, '192.0.2.0/24', '2001:db8::/32');
	$srv->wait_lines(1, qr/ev=bans\.read .* entries=2/);
	my $c = $srv->connect(from => '127.0.0.3');
	my @got;
	for my $client ('192.0.2.7', '203.0.113.1', '2001:db8::7', '192.0.2.8') {
		$c->send(req('/a', "X-Forwarded-For: $client"));
		push @got, ($c->reply // { status => 'closed' })->{status};
	}
	is_deeply \@got, [403, 200, 403, 403], 'a banned client gets 403; the connection of the proxy goes on';
	is counter($srv, 'requests.banned'), 3, 'they are counted';
	$c->send("POST /a HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\nContent-Length: 9\r\n\r\nabc");
	my $r = $c->reply;
	is "$r->{status} $r->{header}{connection}", '403 close', 'with a body the connection ends';
	like join('', $srv->wait_lines(1, qr/ev=request\.banned/)), qr/ id=c\S+ address=192\.0\.2\.7 /, 'a line names the client';
	is ask($srv, '127.0.0.5', 'X-Forwarded-For: 192.0.2.7'), 200, 'what a stranger writes is not read';
	for my $row (['192.0.2.7', ''], ['203.0.113.1', 200]) {
		$c = $srv->connect(from => '127.0.0.4');
		$c->send("PROXY TCP4 $row->[0] 127.0.0.1 4711 80\r\n" . req('/a'));
		is(($c->reply // { status => '' })->{status}, $row->[1], "PROXY header of $row->[0]");
	}
};

subtest 'broken lines, times' => sub {
	my ($srv, $dir) = start();
	my $soon = time + 3600;
	ban($dir, '127.0.0.2 2001-01-01T00:00:00Z', 'localhost', "127.0.0.6 $soon", '127.0.0.7 next week', '127.0.0.8 2999-12-31T23:59:59+01:00');
	my @line = $srv->wait_lines(2, qr/ev=bans\.line/);
	like $line[0], qr{level=warn .* at=$dir/list:2 text=localhost why="expected an address}, 'a broken line is named';
	like $line[1], qr{ at=$dir/list:4 .*expected a time}, '... each';
	$srv->wait_lines(1, qr/ev=bans\.read .* entries=2 broken=2/);
	is_deeply [map { ask($srv, "127.0.0.$_") } 2, 6, 7, 8], [200, '', 200, ''], 'the rest counts; a ban whose time is over does not';
	put("$dir/list", '');
	truncate "$dir/list", 17 << 20 or die $!;
	like join('', $srv->wait_lines(1, qr/ev=bans\.unreadable/)), qr/File too large.*the last list stays in force/, 'a file that is too long';
	is ask($srv, '127.0.0.6'), '', '... leaves the last list in force';
};

subtest 'a hundred thousand entries; a reload' => sub {
	my ($srv, $dir) = start();
	ban($dir, (map { join '.', 10, $_ >> 16, $_ >> 8 & 255, $_ & 255 } 1 .. 100_010), '127.0.0.2');
	$srv->wait_lines(1, qr/ev=bans\.read .* entries=100000 broken=1/);
	like join('', $srv->wait_lines(1, qr/ev=bans\.line/)), qr/list:100001 .*at most 100000/, 'the first line too many is named';
	is ask($srv, '127.0.0.2'), 200, 'and what follows is left out';
	ban($dir, '127.0.0.2');
	ok eventually(sub { ask($srv, '127.0.0.2') eq '' }), 'a short list again';
	my $conf = Test::Util::slurp($srv->run . '/server.conf');
	put($srv->run . '/server.conf', $conf =~ s/^server\.ban-file.*\n//mr);
	$srv->signal('USR1');
	ok eventually(sub { ask($srv, '127.0.0.2') eq '200' }), 'a reload without the setting bans nobody';
	put($srv->run . '/server.conf', $conf);
	$srv->signal('USR1');
	ok eventually(sub { ask($srv, '127.0.0.2') eq '' }), 'and one with it again';
};

subtest 'the list is in force at the first connection, and wrong paths are refused' => sub {
	my $dir = File::Temp->newdir;
	chmod 0755, $dir;
	ban($dir, '127.0.0.2');
	my $srv = Test::Server->start(conf => qq{server.ban-file = "$dir/list"\n});
	is ask($srv, '127.0.0.2'), '', 'from the start';
	put("$dir/conf", qq{server.document-root = "$dir"\nserver.port = 80\nserver.ban-file = "list"\n});
	my $said = join '', qx{"@{[ Test::Util::program('accel-server') ]}" -t -f "$dir/conf" 2>&1};
	like $said, qr{conf:3:\d+: server\.ban-file: .*expected a path that begins with "/"|begins with "/"}, 'a relative path';
};

subtest 'a disk that hangs, and a file on another one' => sub {
	my ($fuse, $why) = Accel::Slowfs->usable;
	plan skip_all => $why if !$fuse;
	my ($source, $dir) = map { File::Temp->newdir } 1 .. 2;
	chmod 0755, $dir;
	ban($source, '127.0.0.5');
	ban($dir, '127.0.0.2');
	my $disk = Accel::Slowfs->start(source => "$source", lookup_ms => 0, read_ms => 0);
	my $old = $disk->dir;
	my $srv = Test::Server->start(conf => qq{server.ban-file = "$old/list"\nserver.sandbox-paths = ( "$dir" )\n});
	$srv->write('a', 'A');
	is ask($srv, '127.0.0.5'), '', 'a list';
	$disk->hang;
	my $conf = $srv->run . '/server.conf';
	put($conf, Test::Util::slurp($conf) =~ s{\Q$old/list}{$old/other}r);
	$srv->signal('USR1');
	ok $disk->wait_hanging(1), 'the next one hangs';
	put($conf, Test::Util::slurp($conf) =~ s{\Q$old/other}{$dir/list}r);
	$srv->signal('USR1');
	ok eventually(sub { ask($srv, '127.0.0.2') eq '' }), 'another one is read while the disk of the first hangs';
	is ask($srv, '127.0.0.5'), 200, '... and replaces it';
	$disk->go;
	$srv->stop;
	$disk->stop;
};

done_testing;
