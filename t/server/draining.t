# A reload or a graceful stop waits for running replies up to its limit.  Stalled downloads, silent connections and many
# reloads cost no threads, and no request is lost.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Select ();
use Test::Manager;
use Test::More;
use Test::Server;
use Test::Http qw(req);
use Time::HiRes qw(time);

my $slow = ($ENV{B} // '') =~ /san/ ? 5 : 1;    # sanitizers
my $limit = 'server.feature-flags = ( "server.graceful-shutdown-timeout" => %d )';

sub server {
	my (%arg) = @_;
	my $srv = Test::Server->start(nofile => $arg{nofile}, conf => sprintf("$limit\n", $arg{limit} // 300) . <<'CONF');
server.max-worker = 1
server.tag = "g0"
CONF
	$srv->sparse('big', 8 << 20);
	$srv->write('a', 'A');
	return $srv;
}

my $generation = 0;
sub reload ($srv, %change) {
	my $conf = $srv->run . '/server.conf';
	my $text = Test::Util::slurp($conf);
	my $tag = 'g' . ++$generation;
	$text =~ s/server\.tag = "\K\w+/$tag/;
	$text =~ s/^\Q$_\E = .*\n//mg, $text .= "$_ = $change{$_}\n" for keys %change;
	Test::Util::put($conf, $text);
	$srv->signal('USR1');
	return Test::Util::eventually(sub { ($srv->fetch('/a')->{header}{server} // '') eq $tag });
}

sub stalled ($srv) {
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send(req('/big'));
	$c->{head} = $c->up_to("\r\n\r\n", time + Test::Util::PATIENCE) // '';
	return $c;
}

# A download of the newest generation.  The one before may accept for a moment longer: such a download is left.
sub stalled_newest ($srv) {
	my $c;
	Test::Util::eventually(sub {
		$c->abort if $c;
		$c = stalled($srv);
		return $c->{head} =~ /^Server: g$generation\r$/m;
	});
	return $c;
}

sub threads { my ($srv) = @_; opendir my $dh, '/proc/' . $srv->pid . '/task' or return 0; return scalar grep { !/^\./ } readdir $dh }
sub counted { my ($srv, $name) = @_; return ($srv->log =~ /.*ev=counters .*\b\Q$name\E=(\d+)/s)[0] // 0 }

subtest 'few descriptors: ten reloads with a stalled download each keep four old generations' => sub {
	my $srv = server(nofile => 256);
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	my $before = threads($srv);
	my (@c, @reloaded);
	for (1 .. 10) {
		push @c, stalled_newest($srv);
		push @reloaded, reload($srv);
	}
	is scalar(grep { $_ } @reloaded), 10, 'each configuration is in force';
	ok Test::Util::eventually(sub { threads($srv) <= $before + 4 }), 'four old generations have a worker each, and share the other threads'
	    or diag threads($srv) . " threads, $before at the start";
	my @line = $srv->wait_lines(6, qr/ev=drain\.cut .*generations/);
	is scalar @line, 6, 'each further one has cut the oldest';
	is +(grep { length $_->rest(10) < 8 << 20 } @c[0 .. 5]), 6, 'their downloads broke off';
	is +(grep { length $_->take(8 << 20) == 8 << 20 } @c[6 .. 9]), 4, 'the others go on and end whole';
	is $srv->stop, '', 'the end is clean';
	is counted($srv, 'drain_cut'), 6, 'its cuts are counted';
};

subtest 'a reload changes the number of threads' => sub {
	my $srv = server();
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	my $before = threads($srv);
	my @c;
	for my $n (17 .. 20) {
		push @c, stalled($srv);
		ok reload($srv, 'server.max-stat-threads' => $n), "$n threads";
	}
	ok Test::Util::eventually(sub { threads($srv) <= $before + 4 + 4 * 5 }), 'the threads of old generations end when they have nothing to do'
	    or diag threads($srv) . " threads, $before at the start";
	is +(grep { length $_->take(8 << 20) == 8 << 20 } @c), 4, 'downloads from before go on and end whole';
};

subtest 'a stop and a reload end at their limits' => sub {
	my ($stops, $srv) = map { server(limit => 1) } 1 .. 2;
	my @c = map { stalled($stops) } 1 .. 2;
	my $c = stalled($srv);
	$stops->signal('INT');
	my $begin = time;
	ok reload($srv), 'reloaded';
	$srv->wait_log(qr/ev=drain\.cut/);
	cmp_ok time - $begin, '>=', 0.9, 'not before its time';
	cmp_ok length $c->rest, '<', 8 << 20, 'a stalled download of the old generation is cut';
	is $srv->fetch('/a')->{body}, 'A', 'the new one serves';

	is $stops->wait_exit(20 * $slow), 0, 'INT ends though clients have stalled';
	$stops->log_has(qr/ev=drain\.cut why="server\.graceful-shutdown-timeout is over" connections=2\b/, 'the log says what was cut');
	is counted($stops, 'drain_cut'), 2, 'counted';
};

# A service manager kills what takes longer than its time-out, which it tells nobody.
subtest 'a stop by a service manager' => sub {
	my $manager = Test::Manager->new;
	for my $set (0, 1) {
		my $srv = Test::Server->start(env => { $manager->env }, conf => qq{server.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\n} . ($set ? sprintf("$limit\n", 1) : ''));
		$srv->sparse('big', 8 << 20);
		ok $manager->wait(qr/^READY=1/m), 'ready';
		my $c = stalled($srv);
		$srv->signal('INT');
		like $srv->wait_log(qr/ev=stopping /), qr/by=INT how="after the running replies" limit_s=@{[ $set || 10 ]}\b/,
			$set ? 'a time-out that is set counts' : 'the one by default is less than TimeoutStopSec=';
		ok $manager->wait(qr/^EXTEND_TIMEOUT_USEC=\d{8}\n/), '... and the manager is asked for time';
		$manager->clear;
		$srv->signal('TERM') if !$set;
		is $srv->wait_exit(20 * $slow), 0, 'the server ends by itself, with status 0';
		ok !-e $srv->run . '/pid', '... without its pid file';
	}
};

subtest 'idle and silent connections move to the new generation' => sub {
	my $srv = server();
	my @silent = map { $srv->connect } 1 .. 5;
	my $idle = $srv->connect;
	$idle->send(req('/a'));
	is $idle->reply->{body}, 'A', 'one is idle, five have said nothing';
	my $tasks = threads($srv);
	ok reload($srv), 'reloaded';
	ok Test::Util::eventually(sub { threads($srv) <= $tasks }), 'the old worker has ended';
	my $last = pop @silent;
	for my $c ($idle, @silent) {
		$c->send(req('/a'));
		my $r = $c->reply;
		is $r->{header}{server}, "g$generation", 'the new generation answers on the same connection';
		isnt $r->{header}{connection} // '', 'close', '... which stays';
	}
	my $busy = $srv->connect(rcvbuf => 4096);
	$busy->send(req('/big'));
	ok(IO::Select->new($busy->sock)->can_read(20), 'a reply has begun');
	ok reload($srv), 'reloaded while a reply is sent';
	is length $busy->reply->{body}, 8 << 20, 'the reply ends whole';
	$busy->send(req('/a'));
	is $busy->reply->{header}{server}, "g$generation", 'then this connection moves, too';
	$last->send(req('/a'));
	is $last->reply->{body}, 'A', 'one that was silent for two reloads is answered';
	ok Test::Util::eventually(sub { $srv->signal('HUP'); counted($srv, 'adopted') >= 10 }, Test::Util::SOON), 'moves are counted';
	my @late = map { $srv->connect } 1 .. 3;
	$srv->fetch('/a');
	$srv->signal('INT');
	is $srv->wait_exit(20 * $slow), 0, 'INT does not wait for them either';
};

# Clients that connect, wait a little and ask: reloads in between lose none of them.
subtest 'a reload loses no request' => sub {
	my $srv = server();
	my ($asked, $answered) = (0, 0);
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	for my $round (1 .. 6) {
		my @fresh = map { $srv->connect } 1 .. 20;
		my $tag = 'g' . ++$generation;
		my $conf = $srv->run . '/server.conf';
		Test::Util::put($conf, Test::Util::slurp($conf) =~ s/server\.tag = "\K\w+/$tag/r);
		$srv->signal('USR1');
		for my $c (@fresh) {
			$c->send(req('/a'));
			select undef, undef, undef, 0.003;
		}
		$asked += @fresh;
		$answered += grep { my $r = $_->reply; $r && $r->{body} eq 'A' } @fresh;
		Test::Util::eventually(sub { ($srv->fetch('/a')->{header}{server} // '') eq $tag });
	}
	is $answered, $asked, "all $asked were answered";
};

subtest 'server.feature-flags takes known keys and names the others' => sub {
	my $srv = Test::Server->start(conf => 'server.feature-flags = ( "auth.delay-invalid-creds" => "disable" )');
	$srv->write('a', 'A');
	is $srv->fetch('/a')->{body}, 'A', 'a key without effect does not stop the start';
	$srv->log_has(qr/server\.feature-flags: \\?"auth\.delay-invalid-creds\\?" has no effect/, '... and is named');
	my $bad = $srv->run . '/bad.conf';
	Test::Util::put($bad, qq{server.document-root = "/"\nserver.feature-flags = ( "server.graceful-shutdown-timeout" => "soon" )\n});
	my $said = qx{"@{[ Test::Util::program('accel-server') ]}" -t -f $bad 2>&1};
	like $said, qr/bad\.conf:2:.*expected 0 to 86400 seconds, got "soon"/, 'an impossible limit is refused';
};

done_testing;
