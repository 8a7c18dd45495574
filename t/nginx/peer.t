# The module asks fcgi-stat-accel: over kept connections, and without it nginx serves as without the module.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Fcgi qw(eventually record put T_STDOUT T_END T_PARAMS T_STDIN);
use Test::Http qw(request_head);
use Test::NginxModule;
use Accel::Slowfs;
use File::Temp ();
use IO::Select;
use IO::Socket::UNIX ();
use Socket qw(pack_sockaddr_un);
use Time::HiRes qw(time);

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-peer-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(disk hot);
put("$tree/disk/$_", 'x' x 300_000) for 1 .. 60;
put("$tree/hot/file", 'hot');
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1);
my $disk = $slow->dir;

sub http ($address) {
	return <<"CONF";
	server { listen 8080; root $tree/hot; stat_accel $address; stat_accel_open off;
		location /disk/ { alias $disk/; }
		location /late/ { alias $disk/; stat_accel_deadline 300ms; }
	}
CONF
}
my $cold = 0;
sub next_cold { return '/disk/' . ++$cold }
sub began_ago ($ng, $path) { my $began = time; my $r = $ng->get($path); return ($r, time - $began) }

subtest 'an accelerator' => sub {
	my $app = Test::Fcgi->start({ socket => "$tree/app.sock" }, "--root=$disk", '--status-path=/status');
	chmod 0666, $app->socket;
	my $ng = Test::NginxModule->start(http('unix:' . $app->socket), root => $tree);
	my $answers = sub { $app->ask(SCRIPT_NAME => '/status', REQUEST_METHOD => 'GET')->{body} =~ /^accel\.answers\.go-on: (\d+)/m ? $1 : 0 };
	$slow->hang;
	my @c = map { my $c = $ng->connect; syswrite $c, request_head('GET', next_cold()); $c } 1 .. 5;
	ok $slow->wait_hanging(5), 'five questions are out';
	my ($r, $took) = began_ago($ng, '/file');
	is $r->{status}, 200, 'a hot file beside them';
	$slow->go;
	is length Test::Http::parse(do { local $/; <$_> })->{body}, 300_000, '... are answered' for @c;
	is $ng->last->{status}, 'warmed', 'the log says so';
	# While a question is out for long, the hot file is asked for, too.
	like $answers->(), qr/^[56]$/, 'the accelerator has answered five times';
	is $ng->get("/disk/$cold")->{status}, 200, 'once more';
	is $ng->last->{status}, 'remembered', '... without a question';
	my $connects = sub { $app->ask(SCRIPT_NAME => '/status', REQUEST_METHOD => 'GET')->{body} =~ /^accel\.connections\.accepted: (\d+)/m ? $1 : 0 };
	my $before = $connects->();
	$ng->get(next_cold()) for 1 .. 10;
	is $connects->() - $before, 1, 'ten more questions need no new connection';        # the one of the status page

	$slow->hang;
	is $ng->get('/late/' . ++$cold)->{status}, 503, 'a hung disk ends at the deadline';
	ok eventually(sub { $app->ask(SCRIPT_NAME => '/status', REQUEST_METHOD => 'GET')->{body} =~ /^accel\.requests\.aborted: 1$/m }), '... and the question is called back';
	$slow->go;

	my $pid = $app->pid;
	kill 'STOP', $pid;
	($r, $took) = began_ago($ng, next_cold());
	is length $r->{body}, 300_000, 'stopped: the file is served';
	cmp_ok $took, '<', 8, '... after two seconds';
	cmp_ok $took, '>', 0.5, '... of silence';
	($r, $took) = began_ago($ng, next_cold());
	is length $r->{body}, 300_000, 'the next one';
	cmp_ok $took, '<', 1, '... at once';
	is $ng->last->{status}, 'none', '... without a question';
	is scalar(() = $ng->log =~ /\[error\].*does not answer/g), 1, 'one line says so';
	kill 'CONT', $pid;
	ok eventually(sub { $ng->log =~ /answers again/ }), 'it goes on, and another line says so';
	$ng->get(next_cold());
	is $ng->last->{status}, 'warmed', 'it is asked again';

	is $app->stop, 0, 'the accelerator ends';
	is length $ng->get(next_cold())->{body}, 300_000, 'gone: the file is served';
	is $ng->get(next_cold())->{status}, 200, '... and the next';
	is scalar(() = $ng->log =~ /\[error\] .*stat_accel: "unix/g), 2, 'one line more';
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
	is $ng->stop, 0, 'nginx ends' if $ng->can('ended');
};

# The accelerator itself opens what is late, as its default is.
subtest 'an accelerator with a deadline of its own' => sub {
	my $app = Test::Fcgi->start({ socket => "$tree/app.sock" }, "--root=$disk", '--deadline=1000');
	chmod 0666, $app->socket;
	my $ng = Test::NginxModule->start(http('unix:' . $app->socket), root => $tree);
	$slow->hang;
	is $ng->get('/disk/60')->{status}, 503, 'a file that is late: 503, as stat_accel_late says';
	is $ng->last->{status}, 'late', '... in the log, too';
	$slow->go;
	is $app->stop, 0, 'the accelerator ends';
};

# ---------------------------------------------------------------- one that the test plays

# Reads the question; what play() returns is sent, in these pieces.
sub played ($name, $status, $play) {
	subtest $name => sub {
		my $path = "$tree/played";
		unlink $path;
		my $listening = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die "$path: $!";
		chmod 0666, $path;
		my $ng = Test::NginxModule->start(http("unix:$path"), root => $tree);
		my $file = next_cold();
		my $client = $ng->connect;
		syswrite $client, request_head('GET', $file);
		IO::Select->new($listening)->can_read(20) or die 'no question';
		my $c = Test::Fcgi::Conn->new(scalar $listening->accept);
		my $asked = '';
		while (my $record = $c->record) {
			$asked .= $record->[2] if $record->[0] == T_PARAMS;
			last if $record->[0] == T_STDIN;
		}
		like $asked, qr/WARM_PATH\Q$disk\E\//, 'it asks for the file';
		like $asked, qr/REMOTE_ADDR127\.0\.0\.1/, '... for this client';
		for my $piece ($play->()) { $c->send($piece) }
		shutdown $c->{sock}, 1;
		close $listening;
		my $r = Test::Http::parse(do { local $/; <$client> } // '');
		is $r->{status}, $status, "the client gets $status";
		is length $r->{body}, 300_000, '... the file' if $status == 200;
		unlike $ng->log, qr/\[(?:alert|emerg)\]|signal 11/, 'no alert';
		is $ng->get('/file')->{status}, 200, 'nginx goes on';
		ok $ng->log =~ /stat_accel: "unix.*"/ == ($name =~ /garbage|another|closed|after/), '... and says what was wrong, if something was';
	};
}

my $head = "Status: 204 No Content\r\n\r\n";
my $end = record(T_END, 1, "\0" x 8);
my $good = record(T_STDOUT, 1, $head) . record(T_STDOUT, 1, '') . $end;
played('an answer in one piece', 200, sub { $good });
played('byte by byte', 200, sub { split //, $good });
played('with padding', 200, sub { record(T_STDOUT, 1, $head, padding => 200) . record(T_END, 1, "\0" x 8, padding => 7) });
played('with words on its standard error', 200, sub { record(7, 1, 'a warning') . $good });
played('a head of 60 kB', 200, sub { record(T_STDOUT, 1, $head . 'x' x 60_000) . $end });
played('late', 503, sub { record(T_STDOUT, 1, "Status: 503 Service Unavailable\r\n\r\n") . $end });
played('garbage', 200, sub { "HTTP/1.1 200 OK\r\n\r\n" x 10 });
played('another request id', 200, sub { record(T_STDOUT, 2, $head) });
played('another type', 200, sub { record(6 + 100, 1, $head) });
played('closed in the middle', 200, sub { substr $good, 0, 20 });
played('closed at once', 200, sub { '' });
played('bytes after the answer', 200, sub { $good . $good });

subtest 'a socket that is full' => sub {
	my $path = "$tree/full";
	my $listening = IO::Socket::UNIX->new(Local => $path, Listen => 1) or die "$path: $!";
	chmod 0666, $path;
	my @fill;
	while (@fill < 10) {
		my $s = IO::Socket::UNIX->new(Type => IO::Socket::UNIX::SOCK_STREAM(), Blocking => 0) or last;
		connect $s, pack_sockaddr_un($path) or last;
		push @fill, $s;
	}
	my $ng = Test::NginxModule->start(http("unix:$path"), root => $tree);
	my ($r, $took) = began_ago($ng, next_cold());
	is length $r->{body}, 300_000, 'the file is served';
	cmp_ok $took, '<', 1, '... at once';
	like $ng->log, qr/cannot be connected to/, 'the log says why';
};

subtest 'an address without a port' => sub {
	ok !eval { Test::NginxModule->start(http('127.0.0.1'), root => $tree) }, 'nginx does not start';
	like $@, qr/stat_accel: expected "on", "off", "unix:\/PATH" or "ADDRESS:PORT", got "127\.0\.0\.1"/, '... and says what is wrong';
};

subtest 'kept connections are not taken from clients' => sub {
	my $app = Test::Fcgi->start({ socket => "$tree/kept.sock" }, "--root=$disk");
	chmod 0666, $app->socket;
	my $ng = Test::NginxModule->start(http('unix:' . $app->socket), root => $tree, connections => 150);
	my $kept = sub { scalar grep { (readlink $_ // '') =~ /^socket:/ } glob "/proc/${\$ng->worker}/fd/*" };
	ok eventually(sub { $ng->log =~ /client closed connection/ }), 'the client that saw it start has left';
	my $before = $kept->();
	$slow->forget;
	$slow->hang;
	my @c = map { my $c = $ng->connect; syswrite $c, request_head('GET', "/disk/$_"); $c } 1 .. 55;
	ok eventually(sub { $kept->() >= $before + 110 }), 'each of 55 clients has a connection to the accelerator';
	$slow->go;
	is scalar(grep { length Test::Http::parse(do { local $/; <$_> } // '')->{body} == 300_000 } @c), 55, '... and is answered';
	@c = map { my $c = $ng->connect; syswrite $c, "GET /file HTTP/1.1\r\nHost: x\r\n"; $c } 1 .. 120;
	ok eventually(sub { $kept->() >= $before + 120 }), 'then come 120 clients at once';
	local $SIG{PIPE} = 'IGNORE';
	syswrite $_, "Connection: close\r\n\r\n" for @c;
	is scalar(grep { (Test::Http::parse(do { local $/; <$_> } // '')->{body} // '') eq 'hot' } @c), 120, '... and are answered';
	is $ng->get(next_cold())->{status}, 200, 'the accelerator is asked again';
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
};

$slow->stop;
done_testing;
