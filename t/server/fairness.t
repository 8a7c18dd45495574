# One client floods a slow disk with cold names.  Its neighbours in the network wait no longer than strangers.  A full queue
# refuses the client that filled it.  A client that leaves takes its requests along.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use IO::Select;
use JSON::PP ();
use Test::More;
use Test::App;
use Test::Server;
use Accel::Slowfs;
use Test::Http qw(req);
use Test::Util qw(put);
use Time::HiRes qw(time);

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my ($flooder, $neighbour, $stranger) = qw(127.0.0.2 127.0.0.3 127.77.0.1);
my $www = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);

put("$www/f$_", "file $_\n" x 10) for 1 .. 200;
mkdir "$www/d$_" and put("$www/d$_/index.html", "index $_\n") for 1 .. 20;

sub server {
	my ($slow, $conf) = @_;
	return Test::Server->start(dir => $slow->dir, conf => <<"CONF" . ($conf // ''));
server.max-worker = 1
server.max-stat-threads = 2
index-file.names = ( "index.html" )
status.status-url = "/status"
CONF
}

# A process that keeps n cold look-ups waiting, until the test lets it go.
sub flood ($srv, $n) {
	pipe my $rd, my $wr or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	return { pid => $pid, end => $wr } if $pid;
	close $wr;
	my $name = 0;
	my %conn = map { my $c = $srv->connect(from => $flooder); ($c->sock => $c) } 1 .. $n;
	my $ready = IO::Select->new($rd, map { $_->sock } values %conn);
	$_->send(req('/cold' . $name++)) for values %conn;
	while (1) {
		for my $sock ($ready->can_read) {
			POSIX::_exit(0) if $sock == $rd;
			sysread $sock, my $reply, 65536 or POSIX::_exit(1);
			$conn{$sock}->send(req('/cold' . $name++));
		}
	}
}

sub flood_ends { my ($f) = @_; close $f->{end}; waitpid $f->{pid}, 0; return $? }

sub status { my ($srv) = @_; return JSON::PP::decode_json($srv->fetch('/status?json')->{body}) }

sub waiting { my ($srv) = @_; return status($srv)->{threads}{stat}{queued} }

sub counted { my ($srv, $name) = @_; return ($srv->log =~ /ev=counters .*\b\Q$name\E=(\d+)/)[0] // 0 }

subtest 'a flood delays its neighbours no more than strangers' => sub {
	my $slow = Accel::Slowfs->start(source => "$www", spindles => 16, lookup_ms => 50, read_ms => 0);
	my $srv = server($slow);
	my ($file, $wrong, %took) = (0, 0);
	my $ask = sub {
		my ($who, $c) = @_;
		my $begin = time;
		$c->send(req('/f' . ++$file));
		my $r = $c->reply;
		$took{$who} += time - $begin;
		$wrong++ unless $r && $r->{body} eq "file $file\n" x 10;
	};
	my $alone = $srv->connect(from => $stranger);
	$ask->(alone => $alone) for 1 .. 5;
	my $flood = flood($srv, 150);
	ok Test::Util::eventually(sub { waiting($srv) > 100 }), 'a client has more than a hundred look-ups waiting';
	my %conn = map { $_ => $srv->connect(from => $_) } $neighbour, $stranger;
	for (1 .. 5) { $ask->($_, $conn{$_}) for $neighbour, $stranger }
	is flood_ends($flood), 0, 'it has got answers all the time';
	is $wrong, 0, 'so have the others';
	# At the end of the flood it would be more than fifty times.
	cmp_ok $took{$neighbour}, '<', 5 * $took{$stranger}, 'a neighbour in its network waits as long as a stranger';
	cmp_ok $took{$_}, '<', 10 * $took{alone}, "... and not for the flood: $_" for $neighbour, $stranger;
	diag join ', ', map { sprintf '%s: %.0f ms', $_, 200 * $took{$_} } 'alone', $neighbour, $stranger;
};

subtest 'a full queue refuses the client that has most' => sub {
	my $slow = Accel::Slowfs->start(source => "$www", spindles => 16, lookup_ms => 1, read_ms => 0);
	my $srv = server($slow, "server.max-blocking-queue = 40\nserver.max-open-idle = 60\n");
	is waiting($srv), 0, 'it serves';
	$slow->hang;
	my $floods = sub { my $c = $srv->connect(from => $flooder); $c->send(req("/f$_[0]")); return $c };
	my @many = map { $floods->($_) } 1 .. 2;
	ok $slow->wait_hanging(2), 'both threads hang';
	push @many, map { $floods->($_) } 3 .. 42;
	ok Test::Util::eventually(sub { waiting($srv) == 40 }), 'one client has filled it';
	my @few = map { my $c = $srv->connect(from => $neighbour); $c->send(req("/f$_")); $c } 101 .. 110;
	is((grep { ($_->reply // {})->{status} == 503 } splice @many, -10), 10, 'its newest requests make room');
	push @many, map { $floods->($_) } 61 .. 65;
	is((grep { ($_->reply // {})->{status} == 503 } splice @many, -5), 5, 'what it asks for now is refused');
	my ($device) = grep { $_->{queued} == 40 } @{ status($srv)->{devices} };
	is $device->{refused}, 15, 'the device counts both';
	$slow->go;
	is((grep { ($_->reply // {})->{status} == 200 } @few), 10, 'another client loses nothing');
	is((grep { ($_->reply // {})->{status} == 200 } @many), 32, 'the old requests of the first one stay');
	is $srv->stop, '', 'the end is clean';
	is counted($srv, 'queue_displaced'), 10, 'counted';
};

subtest 'a client that resets its connection leaves the queue' => sub {
	my $slow = Accel::Slowfs->start(source => "$www", spindles => 16, lookup_ms => 1, read_ms => 0);
	my $srv = server($slow, "server.max-open-idle = 60\n");
	my @kept = map { my $c = $srv->connect; $c->send(req('/nothing')); $c->reply; $c } 1 .. 5;
	$slow->hang;
	my @holds = map { my $c = $srv->connect; $c->send(req("/f$_")); $c } 1 .. 2;
	ok $slow->wait_hanging(2), 'both threads hang';
	my @fresh = map { $srv->connect } 1 .. 10;
	$_->send(req('/f' . ++$main::n)) for @kept[0 .. 3], @fresh[0 .. 4];
	$_->send(req('/d' . ++$main::n . '/')) for $kept[4], @fresh[5 .. 9];
	my ($half, $together) = map { $srv->connect } 1 .. 2;
	$half->send(req('/f150'));
	$half->finish;
	my @same = map { my $c = $srv->connect; $c->send(req('/f151')); $c } 1 .. 3;
	ok Test::Util::eventually(sub { waiting($srv) >= 13 }), 'others wait' or diag waiting($srv);
	$_->abort for @kept, @fresh, $same[0];
	ok Test::Util::eventually(sub { waiting($srv) <= 4 }), 'the requests of closed connections leave the queue'
	    or diag waiting($srv);
	$slow->go;
	is +($half->reply // {})->{status}, 200, 'a client that only stopped sending is served';
	is +($_->reply // {})->{status}, 200, 'and so is one that asked for the same as one that left' for @same[1, 2];
	is +($_->reply // {})->{status}, 200, 'and one whose look-up was on its way' for @holds;
	is $srv->stop, '', 'the end is clean';
};

subtest 'a client that resets its connection gives up an X-Sendfile look-up' => sub {
	my $slow = Accel::Slowfs->start(source => "$www", spindles => 16, lookup_ms => 1, read_ms => 0);
	my $app = Test::App->start;
	my $srv = server($slow, "server.max-open-idle = 60\n" . Test::Server::proxy_block('^/app', 'unix:' . $app->socket));
	my $send = sub { my $c = $srv->connect; $c->send(req("/app/head?X-Sendfile:%20@{[ $slow->dir ]}/f$_[0]")); return $c };
	is $send->(20)->reply->{status}, 200, 'it serves';
	$slow->hang;
	my @holds = map { my $c = $srv->connect; $c->send(req("/f$_")); $c } 1 .. 2;
	ok $slow->wait_hanging(2), 'both threads hang';
	my @c = map { $send->($_) } 31 .. 40;
	ok Test::Util::eventually(sub { waiting($srv) == 10 }), 'ten look-ups wait' or diag waiting($srv);
	$_->abort for @c[1 .. 9];
	ok Test::Util::eventually(sub { waiting($srv) == 1 }), 'those of clients that have left do not' or diag waiting($srv);
	$slow->go;
	is +($_->reply // {})->{status}, 200, 'the others are answered' for $c[0], @holds;
	is $srv->stop, '', 'the end is clean';
};

done_testing;
