package Test::Drill;
# A hostile application for each protocol, and what a client gets of it.
#
#     Test::Drill::run('fastcgi');        # DRILL=REGEX in the environment: only the cases whose names match
#
# Each case of Test::Drill::Cases is one request to an application that breaks a rule, and a second request, to a good application,
# on the same connection of the client. All cases run at the same time. A case is right if
#
# - the client gets the status of the case, or its connection is cut after the head;
# - the second request gets its own reply, so the framing is intact;
#
# and at the end no socket, request or descriptor is left over, and requests of others were all answered meanwhile.
#
# Only cases of a silent application have a short deadline, so a slow machine does not change a result.
use v5.36;
use Errno ();
use IO::Select ();
use IO::Socket::INET ();
use JSON::PP ();
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::Drill::Cases ();
use Test::Http ();
use Test::More;
use Test::Server;
use Test::Util qw(PATIENCE eventually);
use Test::Wire ();

use constant { PIECE => 16384, PAD => 66_000 };

# ---------------------------------------------------------------- the application

# The next bytes of a connection: moves actions to its output.  Strings are sent as they are.
sub _act ($c, $cases) {
	while (!length $c->{out} && @{ $c->{todo} }) {
		my $do = shift @{ $c->{todo} };
		if (!ref $do) { $c->{out} = $do; next }
		my ($what, $bytes) = @$do;
		if ($what eq 'drip')  { $c->{out} = substr $bytes, 0, 1, ''; unshift @{ $c->{todo} }, [drip => $bytes] if length $bytes; return }
		if ($what eq 'flood') { $c->{out} = $bytes; unshift @{ $c->{todo} }, $do; return }
		if ($what eq 'half')  { shutdown $c->{sock}, 1; next }
		if ($what eq 'reset') { setsockopt $c->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0; return 'close' }
		return $what if $what eq 'close';
		return if $what eq 'wait';      # for the end of the connection
	}
	return if length $c->{out} || !$c->{answered} || $c->{waits};
	my $q = $c->{wire}->request;
	return 'close' if !$q->{keep} || !$q->{whole};
	$c->{answered} = 0;
	$c->{wire}->next;
	_asked($c, $cases);     # the next request may be there
	return;
}

sub _has_work ($c) { return length $c->{out} || @{ $c->{todo} } || $c->{answered} && !$c->{waits} }

sub _asked ($c, $cases) {
	my $q = $c->{wire}->request or return;
	my ($n) = $q->{target} =~ m{^/\w+/(\d+)};
	my $case = defined $n ? $cases->[$n] : undef;
	return if $c->{answered} || !($q->{whole} || $case && $case->{early});
	$c->{answered} = 1;
	my @do = $case ? $case->{do}->($c->{wire}) : (_good($c->{wire}, $q));
	$c->{waits} = grep { ref && $_->[0] eq 'wait' } @do;
	$c->{todo} = \@do;
}

sub _good ($w, $q) {
	my $pad = length($q->{env}{HTTP_X_PAD} // '');
	my $body = "good $q->{target} $pad\n";
	return $w->head(200, 'Content-Length' => length $body) . $w->body($body) . $w->end;
}

# One loop for all connections.  {greets}: what is done to a connection before it sends anything.
sub _application ($protocol, $cases, @listen) {
	my $select = IO::Select->new(map { $_->{sock} } @listen);
	my %listens = map { fileno $_->{sock} => $_ } @listen;
	my %conn;
	my $drop = sub ($c) { $select->remove($c->{sock}); delete $conn{ fileno $c->{sock} }; close $c->{sock} };
	while (1) {
		my $writes = IO::Select->new(map { $_->{sock} } grep { _has_work($_) } values %conn);
		my ($can_read, $can_write) = IO::Select->select($select, $writes, undef, 60);
		for my $sock (@{ $can_read // [] }) {
			if (my $l = $listens{ fileno $sock }) {
				my $new = $sock->accept or next;
				$new->blocking(0);
				$select->add($new);
				my $c = $conn{ fileno $new } = { sock => $new, wire => Test::Wire->new($protocol), out => '', todo => [@{ $l->{greets} }], answered => 0 };
				$drop->($c) if (_act($c, $cases) // '') eq 'close';
				next;
			}
			my $c = $conn{ fileno $sock } or next;
			my $n = sysread $sock, my $bytes, 65536;
			next if !defined $n && ($!{EAGAIN} || $!{EINTR});
			if (!$n) { $drop->($c); next }
			next if $c->{waits};
			eval { $c->{wire}->feed($bytes); 1 } or do { print STDERR "# a malformed request: $@"; $drop->($c); next };
			$c->{out} .= $c->{wire}->answers;
			_asked($c, $cases);
		}
		for my $sock (@{ $can_write // [] }) {
			my $c = $conn{ fileno $sock // next } or next;
			if ((_act($c, $cases) // '') eq 'close' && !length $c->{out}) { $drop->($c); next }
			next unless length $c->{out};
			my $n = syswrite $sock, $c->{out}, PIECE;
			if (defined $n) { substr($c->{out}, 0, $n) = '' }
			elsif (!$!{EAGAIN} && !$!{EINTR}) { $drop->($c) }
		}
	}
}

# Starts it: the process, and the address of each way to greet.
sub start ($protocol, $cases, @greets) {
	my @listen = map { { greets => $_, sock => IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 511) || die "listen: $!" } } @greets;
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		$SIG{PIPE} = 'IGNORE';
		$SIG{ALRM} = 'DEFAULT';
		alarm 300;
		eval { _application($protocol, $cases, @listen) };
		print STDERR "# the application ends: $@";
		POSIX::_exit(1);
	}
	return ($pid, map { '127.0.0.1:' . $_->{sock}->sockport } @listen);
}

# ---------------------------------------------------------------- the clients

sub _request ($case, $i) {
	my $method = $case->{method} // 'GET';
	my $body = $case->{body} // '';
	return join "\r\n", "$method /$case->{block}/$i HTTP/1.1", 'Host: x', (length $body ? 'Content-Length: ' . length $body : ()), @{ $case->{fields} // [] }, '', $body;
}

# The outcome for a client: "cut", or the status and the rest.
sub _outcome ($case, $c) {
	my $r;
	do { $r = $c->reply($case->{method}) } while $r && $r->{status} >= 100 && $r->{status} < 200 && $r->{status} != 101;
	return (($c->{timed_out} ? 'late' : 'cut'), undef) if !$r || $r->{cut};
	return ($r->{status}, $r);
}

sub _judge ($case, $i, $c) {
	my ($got, $r) = _outcome($case, $c);
	my @want = ref $case->{want} ? @{ $case->{want} } : $case->{want};
	return "expected @want, got $got" unless grep { $_ eq $got } @want;
	return $c->closed ? '' : 'the connection stays open' if $got eq 'cut';
	return "body '" . substr($r->{body}, 0, 60) . "'" if defined $case->{text} && $r->{body} ne $case->{text};
	return "a control field: $r->{head}" if $r->{head} =~ /^(?:x-sendfile|x-accel-|x-lighttpd-|x-reproxy|evil)/mi;
	return '503 without Retry-After' if $got eq '503' && !defined $case->{text} && !$r->{header}{'retry-after'};
	return $c->closed ? '' : 'the connection stays open' if ($r->{header}{connection} // '') eq 'close';
	my $next = $c->reply;
	return 'the next reply is not its own: ' . ($next ? "$next->{status} " . substr $next->{body}, 0, 40 : 'none')
	    unless $next && $next->{status} == 200 && $next->{body} eq "good /good/next$i 0\n";
	return '';
}

sub _conf ($protocol, %backend) {
	my %all = ('max-pool-size' => 400, 'max-keep-alive-requests' => 1000, 'wait-timeout' => PATIENCE, 'connect-timeout' => PATIENCE,
		'read-timeout' => PATIENCE, 'reply-timeout' => PATIENCE, protocol => $protocol);
	my %set = (
		(map { $_ => { 'read-timeout' => 1, 'reply-timeout' => 1 } } qw(silent quiet)),
		stalls => { 'read-timeout' => 1 },
		pad => { 'rewrite-request' => '( "X-Pad" => ( ".*" => "' . 'p' x PAD . '" ) )' },
	);
	return qq{status.status-url = "/status"\n} . join '', map { Test::Server::proxy_block("^/$_/", $backend{$_}, %all, %{ $set{$_} // {} }) } sort keys %backend;
}

sub _backends ($srv) {
	return @{ JSON::PP::decode_json($srv->fetch('/status?json')->{body})->{backends} };
}

sub run ($protocol) {
	my $cases = [grep { !$ENV{DRILL} || $_->{name} =~ /$ENV{DRILL}/ } @{ Test::Drill::Cases::all($protocol) }];
	my ($bad, $bad_at, $hangs_at, $greets_at, $resets_at) = start($protocol, $cases, [], [['close']], ["\0\n\r garbage" x 10], [['reset']]);
	my ($good, $good_at) = start($protocol, [], []);
	my $gone = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;
	my $srv = Test::Server->start(conf => _conf($protocol, drill => $bad_at, (map { $_ => $bad_at } qw(silent stalls quiet uploads)), pad => $good_at, good => $good_at,
		hangsup => $hangs_at, greets => $greets_at, resets => $resets_at, gone => "127.0.0.1:$gone"));
	is $srv->fetch('/good/first')->{body}, "good /good/first 0\n", 'the good application answers';
	my $before = $srv->descriptors;

	my @conn = map { my $c = $srv->connect;
		$c->send(_request($cases->[$_], $_) . "GET /good/next$_ HTTP/1.1\r\nHost: x\r\n\r\n"); $c } 0 .. $#$cases;
	my ($other, $disturbed) = ($srv->connect, 0);
	for (1 .. 50) {
		$other->send("GET /good/other HTTP/1.1\r\nHost: x\r\n\r\n");
		my $r = $other->reply;
		$disturbed++ unless $r && $r->{status} == 200 && $r->{body} eq "good /good/other 0\n";
	}
	is $disturbed, 0, 'others are answered meanwhile';
	my $right = 0;
	for my $i (0 .. $#$cases) {
		my $wrong = _judge($cases->[$i], $i, $conn[$i]);
		if ($wrong eq '') { $right++ }
		else { fail("$cases->[$i]{name}: $wrong"); diag grep { m{/$cases->[$i]{block}/$i\b} } split /^/m, $srv->log }
		undef $conn[$i];
	}
	is $right, scalar @$cases, 'every case is right';
	undef $other;
	# Idle sockets close when their application ends.
	kill 'KILL', $bad, $good;
	waitpid $_, 0 for $bad, $good;
	my $left;
	ok eventually(sub { $left = join ' ', map { $_->{load} + $_->{waiting} } _backends($srv); $left =~ /\A[0 ]+\z/ }), 'no request is left' or diag $left;
	ok eventually(sub { $srv->descriptors <= $before }), 'nor a descriptor' or diag $srv->descriptors . " instead of $before";
	printf "# %s %d of %d right\n", $protocol, $right, scalar @$cases;
	return done_testing;
}

1;
