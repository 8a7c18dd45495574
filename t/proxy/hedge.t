#!/usr/bin/perl
# proxy-core.hedge-after: a second try at another backend when the first is slow.
use v5.36;
use Test::More;

use Test::App;
use Test::Server;
use Test::Thread;
use Test::Util qw(eventually put);

my $MUCH = 1_000_000;

# What it does with a request is in its file "how".
package Member {
	use parent -norequire, 'Test::App';

	sub do_x {
		my ($self, $c, $p) = @_;
		$self->note('asked', "$p->{REQUEST_METHOD} ");
		my $how = Test::Util::slurp($self->file('how'));
		Test::Util::eventually(sub { -e $self->file('gate') || $self->left($c) }) if $how =~ /waits/;
		return 0 if $how =~ /hangs up/;
		$self->note('answered');
		Test::App::out($c, ($how =~ /fails/ ? "Status: 500 x\r\n" : '') . "\r\n" . ($how =~ /much/ ? 'ok' x $MUCH : 'ok'));
		Test::App::end($c);
		return 1;
	}

	sub do_none { my ($self, @rest) = @_; return $self->do_x(@rest) }       # an authorizer has no path

	# The server has closed the socket: notes it, and ends.
	sub left {
		my ($self, $c) = @_;
		return 0 unless IO::Select->new($c)->can_read(0);
		sysread($c, my $in, 4096) and return 0;
		$self->note('left');
		die "left\n";
	}
}

my @app = map { Member->start } 1, 2;
my ($one, $two) = @app;

sub do_now {
	my @how = @_;
	for my $i (0, 1) {
		unlink map { $app[$i]->file($_) } qw(gate asked answered left);
		put($app[$i]->file('how'), $how[$i]);
	}
	return;
}

sub start (%set) {
	my %all = (backends => '( ' . join(', ', map { qq{"unix:@{[ $_->socket ]}"} } @app) . ' )', protocol => '"fastcgi"', balancer => '"static"',
		'reply-timeout' => 60, 'hedge-after' => 50, 'hedge-percent' => 100, 'max-pool-size' => 4, %set);
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
		. qq<\$HTTP["url"] =~ "^/app" {\n> . join('', map { "proxy-core.$_ = $all{$_}\n" } sort keys %all) . "}\n");
}

sub hedges { my ($srv) = @_; return join ' ', map { $srv->counter("proxy-core.hedges$_") } '', '-won', '-refused' }

sub asked { return join '|', map { $_->noted('asked') } @app }

subtest 'a slow backend: the second one answers' => sub {
	my $patient = start('hedge-after' => 30_000);
	do_now('answers', 'answers');
	is $patient->fetch('/app/x')->{status}, 200, 'without need';
	is asked(), 'GET |', '... only the first is asked';
	is hedges($patient), '0 0 0', '... no second try';
	my $srv = start();
	for my $method ('GET', 'HEAD') {
		do_now('waits', 'answers');
		my $c = $srv->connect;
		$c->send("$method /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
		is $c->reply($method)->{status}, 200, "$method: an answer";
		is asked(), "$method |$method ", '... both are asked';
		ok eventually(sub { $one->noted('left') }), '... and the socket of the first is closed';
	}
	is hedges($srv), '2 2 0', 'counters';
	my ($line) = $srv->wait_log(qr/ev=exchange\.hedged/) =~ /(.*exchange\.hedged.*)/;
	like $line, qr{slow=unix:\Q@{[ $one->socket ]}\E answered=unix:\Q@{[ $two->socket ]}\E stage=head url=/app/x ms=\d+}, 'a line names both';
	is $srv->counter('proxy-core.requests-failed'), 0, 'no failure';
};

subtest 'a late answer of the first wins over a second that waits' => sub {
	my $srv = start();
	do_now('waits', 'waits');
	my $c = $srv->connect;
	$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { $two->noted('asked') }), 'the second is asked';
	put($one->file('gate'), '');
	is $c->reply->{status}, 200, 'an answer';
	ok eventually(sub { $two->noted('left') }), 'the socket of the second is closed';
	is hedges($srv), '1 0 0', 'it did not win';
};

subtest 'what may not be repeated is not' => sub {
	my $srv = start();
	my $sized = "Content-Length: 1\r\n\r\nx";
	my $chunked = "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
	my @what = (['POST', $sized], ['GET', $sized], ['GET', $chunked], ['POST', "Content-Length: 0\r\n\r\n"], ['DELETE', "\r\n"]);
	for my $what (@what) {
		do_now('waits', 'answers');
		my ($first, $rest) = @$what;
		my ($c, $get) = ($srv->connect, $srv->connect);
		$c->send("$first /app/x HTTP/1.1\r\nHost: x\r\n$rest");
		ok eventually(sub { $one->noted('asked') }), "$first with " . $rest =~ s/\r\n.*//sr;
		$get->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
		is $get->reply->{status}, 200, '... a GET after it has a second try';
		is $two->noted('asked'), 'GET ', '... and it has none, though it is older';
		put($one->file('gate'), '');
		is $c->reply->{status}, 200, '... the first answers';
	}
	is hedges($srv), '5 5 0', 'counters';
};

subtest 'an authorizer is asked once' => sub {
	my $srv = start('reply-timeout' => 1, 'next-upstream' => '( "off" )', authorizer => '( ' . join(', ', map { qq{"unix:@{[ $_->socket ]}"} } @app) . ' )');
	do_now('waits', 'answers');
	is $srv->fetch('/app/x')->{status}, 504, 'it is late';
	is asked(), 'GET |', '... only the first is asked';
};

subtest 'a bounded share' => sub {
	my $srv = start('hedge-percent' => 5, 'max-keep-alive-requests' => 100);
	do_now('answers', 'answers');
	$srv->fetch('/app/x') for 1 .. 19;
	do_now('waits', 'answers');
	is $srv->fetch('/app/x')->{status}, 200, 'one of 20 has a second try';
	my $c = $srv->connect;
	$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { hedges($srv) eq '1 1 1' }), 'the next one has none, and is counted';
	put($one->file('gate'), '');
	is $c->reply->{status}, 200, '... the first answers';
};

subtest 'a second try that fails' => sub {
	my $srv = start();
	for my $how ('fails', 'hangs up') {
		do_now('waits', $how);
		my $c = $srv->connect;
		$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
		ok eventually(sub { $two->noted('asked') }), "the second $how";
		put($one->file('gate'), '');
		is $c->reply->{status}, 200, '... the first answers';
	}
	is hedges($srv), '2 0 0', 'none won';
};

subtest 'a first try that fails leaves the request to the second' => sub {
	my $srv = start();
	do_now('waits, hangs up', 'waits');
	my $c = $srv->connect;
	$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { $two->noted('asked') }), 'both are asked';
	put($one->file('gate'), '');
	like $srv->wait_log(qr/the other try goes on/), qr/ev=exchange\.failed .*then="the other try goes on"/, 'the first fails, and the log says what follows';
	put($two->file('gate'), '');
	is $c->reply->{status}, 200, 'the second answers';
	is $srv->counter('proxy-core.requests-failed'), 0, 'no failure for the client';
};

subtest 'even while the request waits for a socket' => sub {
	my $srv = start('max-pool-size' => 1);
	do_now('waits', 'answers');
	my ($holder, $c) = ($srv->connect, $srv->connect);
	$holder->send("POST /app/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
	ok eventually(sub { $one->noted('asked') }), 'a POST has the only socket of the first';
	$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
	is $c->reply->{status}, 200, 'a GET gets the second';
	is asked(), 'POST |GET ', '... the first never sees it';
	$holder->abort;
};

subtest 'a client that leaves ends both tries' => sub {
	my $srv = start();
	do_now('waits', 'waits');
	my $c = $srv->connect;
	$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { $two->noted('asked') }), 'both are asked';
	$c->abort;
	ok eventually(sub { $one->noted('left') && $two->noted('left') }), 'both sockets are closed';
};

# The worker finds all of it in one round.
subtest 'what happens at the same time' => sub {
	my $srv = start('max-keep-alive-requests' => 100);
	my $thread = Test::Thread->find($srv->pid, 'worker-0') or plan skip_all => "its thread cannot be stopped: $!";
	my $at_once = sub {
		my ($name, @how) = @_;
		do_now(map { "waits, $_" } @how);
		my $c = $srv->connect;
		$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
		ok eventually(sub { $two->noted('asked') }), "$name: both are asked";
		$thread->stop;
		put($_->file('gate'), '') for @app;
		ok eventually(sub { !grep { !$_->noted('answered') } grep { $how[$_ == $two] !~ /hangs up/ } @app }), '... they answer, or hang up';
		return $c;
	};
	# A POST has no second try, which a busy machine would note during the next case.
	my $works = sub {
		my ($c) = @_;
		do_now('answers', 'answers');
		$c->send("POST /app/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
		is $c->reply->{body}, 'ok', '... and the next request has its own answer';
	};
	$works->($srv->connect);
	for my $case (['two answers', 'answers', 'answers'], ['the first hangs up', 'hangs up', 'answers'],
		['the second hangs up', 'answers', 'hangs up'], ['the second fails', 'answers', 'fails']) {
		my $c = $at_once->(@$case);
		$thread->go;
		my $r = $c->reply;
		is "$r->{status} $r->{body}", '200 ok', '... the client gets one answer';
		$works->($c);
	}
	my $both = $at_once->('both hang up', 'hangs up', 'hangs up');
	$thread->go;
	like $both->reply->{status}, qr/^50[0234]$/, '... one error';
	my $left = $at_once->('two answers, and the client leaves', 'much', 'much');
	$left->abort;
	$thread->go;
	$works->($srv->connect);
	cmp_ok $srv->counter('proxy-core.hedges'), '>=', 6, 'each had a second try';
};

subtest 'a large answer of the second, to a slow client' => sub {
	my $srv = start();
	do_now('waits', 'much');
	my $c = $srv->connect(rcvbuf => 4096);
	$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
	ok eventually(sub { $one->noted('left') }), 'the first is left';
	my $r = $c->reply;
	is "$r->{status} " . length $r->{body}, '200 ' . 2 * $MUCH, 'it comes whole';
	is $r->{body}, 'ok' x $MUCH, '... and right';
};

subtest 'a reload between both tries' => sub {
	for my $who (0, 1) {
		my $srv = start();
		do_now('waits', 'waits');
		my $c = $srv->connect;
		$c->send("GET /app/x HTTP/1.1\r\nHost: x\r\n\r\n");
		ok eventually(sub { $two->noted('asked') }), 'both are asked';
		$srv->signal('USR1');
		$srv->wait_log(qr/ev=reloaded/);
		put($app[$who]->file('gate'), '');
		is $c->reply->{body}, 'ok', ('the first', 'the second')[$who] . ' answers';
		ok eventually(sub { $app[!$who]->noted('left') }), '... the other is left';
		do_now('answers', 'answers');
		is $srv->fetch('/app/x')->{status}, 200, '... the new generation answers';
	}
};

done_testing;
