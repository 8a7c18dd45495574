# Signals and shortage: TERM stops at once, INT completes, reloading loses no connection, and a server out
# of descriptors waits instead of spinning.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use IO::Socket::UNIX ();
use Test::Server;
use Test::Http qw(req);
use Time::HiRes qw(time);

my $slow = ($ENV{B} // '') =~ /san/ ? 5 : 1;    # sanitizers

sub big {       # a file that does not fit into the buffers between server and client
	my ($srv) = @_;
	$srv->sparse('big', 32 << 20);
	$srv->write('a', 'A');
}

# Clients in the middle of a download.
sub downloads ($srv, $n) {
	my @c = map { $srv->connect(rcvbuf => 65536) } 1 .. $n;
	$_->send(req('/big', 'Connection: close')) for @c;
	like $_->take(12), qr/ 200/, 'a download has begun' for @c;
	return @c;
}

subtest 'TERM stops under load' => sub {
	my $srv = Test::Server->start(conf => '');
	big($srv);
	my @c = downloads($srv, 8);
	my @idle = map { $srv->connect } 1 .. 20;
	my ($status, $seconds) = $srv->term;
	is $status, 0, 'exit status 0';
	cmp_ok $seconds, '<', Test::Util::SOON, 'in time';
	my $whole = grep { length $_->rest > 32 << 20 } @c;
	is $whole, 0, 'running downloads were cut';
};

subtest 'INT lets running replies end' => sub {
	my $srv = Test::Server->start(conf => '');
	big($srv);
	my @c = downloads($srv, 3);
	my $idle = $srv->connect;
	$idle->send(req('/a'));
	is $idle->reply->{body}, 'A', 'an idle connection';
	$srv->signal('INT');
	ok $idle->closed, '... is closed';
	for my $c (@c) {
		my $got = $c->rest;
		$got =~ s/\A.*?\r\n\r\n//s;
		is length $got, 32 << 20, 'a running download ends whole';
	}
	is $srv->wait_exit, 0, 'then it exits with status 0';
};

subtest 'INT twice stops now' => sub {
	my $srv = Test::Server->start(conf => '');
	big($srv);
	my @c = downloads($srv, 2);
	my $idle = $srv->connect;
	$idle->send(req('/a'));
	$idle->reply;
	$srv->signal('INT');
	ok $idle->closed, 'the first was seen';
	my ($status, $seconds) = $srv->term('INT');
	is $status, 0, 'exit status 0';
	cmp_ok $seconds, '<', Test::Util::SOON, 'in time';
};

subtest 'HUP reopens the logs' => sub {
	my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\n});
	$srv->write('a', 'A');
	$srv->get('/a?before');
	like $srv->wait_log(qr/before/, 'access.log'), qr/before/, 'logged';
	rename $srv->run . "/$_.log", $srv->run . "/$_.old" or die "$_: $!" for qw(access error);
	$srv->signal('HUP');
	ok Test::Util::eventually(sub { -e $srv->run . '/access.log' && -e $srv->run . '/error.log' }), 'new files';
	$srv->get('/a?after');
	like $srv->wait_log(qr/after/, 'access.log'), qr/after/, 'the new file is used';
	unlike $srv->log('access.old'), qr/after/, '... and the old one no more';
};

subtest 'an access log that a reload drops is closed' => sub {
	my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/one.log"\n});
	big($srv);
	my $is_open = sub { my $log = $srv->run . "/$_[0].log"; scalar grep { (readlink // '') eq $log } glob '/proc/' . $srv->pid . '/fd/*' };
	my $use = sub {
		my ($name, $mark) = @_;
		my $conf = $srv->run . '/server.conf';
		Test::Util::put($conf, Test::Util::slurp($conf) =~ s/(?:one|two)(?=\.log")/$name/r);
		$srv->signal('USR1');
		return Test::Util::eventually(sub { $srv->fetch("/a?$mark"); ($srv->log("$name.log") // '') =~ /$mark/ });
	};
	my ($download) = downloads($srv, 1);
	ok $use->(two => 'second'), 'another log is named';
	is $is_open->('one'), 1, 'a download from before still needs the first';
	$download->rest;
	ok Test::Util::eventually(sub { !$is_open->('one') }), 'it is closed when that has ended';
	like $srv->log('one.log'), qr{/big}, '... and has its line';
	is $is_open->('two'), 1, 'the other one stays open';
	ok $use->(one => 'third'), 'the first is named again';
	like $srv->log('one.log'), qr{/big.*third}s, '... and goes on after what it has';
};

subtest 'USR1 reloads without losing a connection' => sub {
	my $srv = Test::Server->start(conf => qq{server.tag = "one"\n});
	big($srv);
	my @c = downloads($srv, 2);
	my $kept = $srv->connect;
	my $conf = $srv->run . '/server.conf';
	my ($answered, $asked, $tag) = (0, 0, '');
	for my $new (qw(two three)) {
		my $text = Test::Util::slurp($conf) =~ s/(server\.tag = )"\w+"/$1"$new"/r;
		Test::Util::put($conf, $text);
		$srv->signal('USR1');
		Test::Util::eventually(sub {
			my $r = $srv->fetch('/a');
			$asked++;
			$answered++ if $r->{status} == 200 && $r->{body} eq 'A';
			$tag = $r->{header}{server} // '';
			$tag eq $new;
		});
		is $tag, $new, "the configuration \"$new\" is in force";
	}
	is $answered, $asked, "all $asked requests meanwhile were answered";
	for my $c (@c) {
		my $got = $c->rest(10 * $slow);
		$got =~ s/\A.*?\r\n\r\n//s;
		is length $got, 32 << 20, 'a download from before ends whole';
	}
	Test::Util::put($conf, "server.document-root = \n");
	$srv->signal('USR1');
	$srv->wait_log(qr/reload.*(?:fail|refus|kept|old)|(?:fail|refus|kept|old).*reload|server\.conf:1/i);
	is $srv->fetch('/a')->{status}, 200, 'a broken configuration changes nothing';
};

subtest 'a reload changes sockets only if it succeeds' => sub {
	my $srv = Test::Server->start(conf => qq{server.bind = "\@RUN\@/one.sock"\nserver.max-worker = 2\n}, env => { LISTEN_PID => 1 });
	my $run = $srv->run;
	my $answers = sub {
		my $c = IO::Socket::UNIX->new(Peer => "$run/$_[0].sock") or return 0;
		print {$c} "GET /a HTTP/1.0\r\n\r\n";
		return (<$c> // '') =~ / 200 /;
	};
	my $reload = sub {
		my ($name, $root) = @_;
		my $text = Test::Util::slurp("$run/server.conf") =~ s/\w+\.sock/$name.sock/r;
		Test::Util::put("$run/server.conf", $text =~ s/(document-root = ")[^"]*/$1$root/r);
		$srv->signal('USR1');
	};
	big($srv);
	ok Test::Util::eventually(sub { $answers->('one') }), 'it serves';
	my $slow_client = IO::Socket::UNIX->new(Peer => "$run/one.sock") or die "one.sock: $!";
	print {$slow_client} "GET /big HTTP/1.0\r\n\r\n";
	like scalar <$slow_client>, qr/ 200 /, 'a download has begun';

	$reload->('two', '/nonexistent');
	$srv->wait_log(qr/start\.failed/);
	ok !$answers->('two'), 'refused: the new address is not served';
	ok $answers->('one'), '... and the old one is';
	$reload->('two', $srv->dir);
	ok Test::Util::eventually(sub { $answers->('two') }), 'a corrected configuration is served';
	ok Test::Util::eventually(sub { !$answers->('one') }), '... and the old one is not';
	my $got = do { local $/; <$slow_client> };
	$got =~ s/\A.*?\r\n\r\n//s;
	is length $got, 32 << 20, 'the download ends whole';
	unlike $srv->log, qr/ev=accept/, 'the log has no error about the closed socket';
};

subtest 'out of descriptors: idle connections make room, without a spin' => sub {
	my $limit = 64;
	my $srv = Test::Server->start(nofile => $limit, conf => "server.max-worker = 1\nserver.max-connections = 1000\nserver.max-keep-alive-idle = 60\n");
	$srv->write('a', 'A');
	is $srv->fetch('/a')->{body}, 'A', 'it serves with so few';
	my @c;
	for (1 .. 2 * $limit) {
		push @c, $srv->connect;
		$c[-1]->send(req('/a'));
	}
	my $answered = grep { my $r = $_->reply; $r && $r->{body} eq 'A' } @c[-20 .. -1];
	is $answered, 20, 'those that came last are served while the others stay connected';
	cmp_ok $srv->descriptors, '<=', $limit + 4, 'within the limit'; # and what it inherited above it
	my ($cpu, $t) = ($srv->cpu, time);
	ok !$c[-1]->closed(1), 'the one that was busy last stays';
	cmp_ok $srv->cpu - $cpu, '<', 0.3 * $slow, 'waiting costs next to nothing' or diag time - $t;
	is $srv->wait_exit(0), undef, 'it lives';
	undef @c;
	is $srv->fetch('/a')->{body}, 'A', 'and new ones are served';
	my $lines = () = $srv->log =~ /descriptor|EMFILE|Too many open files/gi;
	cmp_ok $lines, '<', 20, 'the log is not flooded';
};

done_testing;
