package Test::Drill::Applications;
# Applications that fail, behind accel-server, nginx and HAProxy: what clients get, and what tells.
#
#     my $drill = Test::Drill::Applications->new(servers => ['accel'], protocols => ['http'], kinds => ['silent'], seconds => 10, rate => 2);
#     $drill->run;
#     print $drill->table;
#     my $cell = $drill->cell('accel', 'http', 'silent', backends => 2, checks => 1);    # { asked, good, longest_s, tells }
#
# A cell is a kind of failure, a protocol, one or two backends (the second one is well), with or without checks. Each cell has applications,
# a URL and a block of its own; all cells of a server run at the same time, a request each 1/rate seconds. A request is good if the whole
# answer came. Servers have their usual settings; deadlines are a second for all of them, and checks come each second. nginx has no checks.
#
# `tells`: for accel-server the first alert of examples/prometheus whose condition the metrics of the run have; for HAProxy
# "DOWN" if the statistics had a server in that state, "counters" if they count errors; for nginx "log" if the error log has lines of the URL.
use v5.36;
use Errno ();
use File::Temp ();
use IO::Select ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use JSON::PP ();
use List::Util qw(any max sum0);
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER SOMAXCONN);
use Test::Http ();
use Test::Server;
use Test::Util qw(eventually find_program put slurp);
use Test::Wire ();
use Time::HiRes qw(sleep time);

use constant { LATE => 15, SLOW => 0.5, DIES_AFTER => 10, DEAD => 1.5, CELLS_OF_CLIENT => 50 };

our @KINDS = (
	[refuses => 'refuses connections'], ['never-accepts' => 'never accepts'], [silent => 'accepts, and is silent'], ['hangs-up' => 'hangs up before the first byte'],
	[resets => 'resets'], ['half-head' => 'half a head, then silence'], [malformed => 'a malformed head'], ['answers-500' => 'answers 500'],
	[dies => 'dies under load, and comes back'], ['half-body' => 'half a body, then silence'], [slow => 'slow: 0.5 s'],
);
our @SERVERS = (
	{ name => 'accel', title => 'accel-server', protocols => [qw(fastcgi scgi http ajp13 uwsgi)], checks => [0, 1] },
	{ name => 'nginx', title => 'nginx', protocols => [qw(fastcgi scgi http uwsgi)], checks => [0] },
	{ name => 'haproxy', title => 'HAProxy', protocols => [qw(fastcgi http)], checks => [0, 1] },
);

sub new ($class, %arg) {
	my $self = bless { seconds => 10, rate => 2, kinds => [map { $_->[0] } @KINDS], servers => [map { $_->{name} } @SERVERS], protocols => [@Test::Wire::PROTOCOLS], %arg }, $class;
	$self->{dir} = File::Temp->newdir('drill-XXXXXX', TMPDIR => 1);
	chmod 0755, $self->{dir};
	return $self;
}

# ---------------------------------------------------------------- the applications: one process for each protocol

sub good ($w) { return $w->head(200, 'Content-Length' => 5) . $w->body("good\n") . $w->end }

# What is sent after a whole request, and what follows: keep, close, reset, wait.
my %does = (
	good => sub ($w) { (good($w), 'keep') },
	silent => sub ($w) { ('', 'wait') },
	'hangs-up' => sub ($w) { ('', 'close') },
	resets => sub ($w) { ('', 'reset') },
	'half-head' => sub ($w) { (substr($w->head(200, 'X-A' => 'b' x 100), 0, 60), 'wait') },
	malformed => sub ($w) { ("\0\n\r garbage" x 10, 'close') },
	'answers-500' => sub ($w) { ($w->head(500, 'Content-Length' => 4) . $w->body("bad\n") . $w->end, 'keep') },
	'half-body' => sub ($w) { ($w->head(200, 'Content-Length' => 5) . $w->body('go'), 'wait') },
	dies => sub ($w) { (good($w), 'keep') },
	slow => sub ($w) { (good($w), 'keep') },
);

sub listen_at ($port, $n) { return IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => $n, ReuseAddr => 1, Blocking => 0) || die "listen: $!\n" }

# A socket with its port; the queue of a socket whose connections are never accepted is full.
sub open_socket ($kind) {
	return IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp') || die "bind: $!\n" if $kind eq 'refuses';
	return listen_at(0, SOMAXCONN) if $kind ne 'never-accepts';
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) || die "listen: $!\n";
	my @fill = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $sock->sockport, Blocking => 0) } 1 .. 4;
	${*$sock}{fill} = \@fill;
	return $sock;
}

sub serve ($protocol, @listens) {
	my ($select, %listen, %conn, @due) = (IO::Select->new);
	my $add = sub ($l) { $select->add($l->{sock}); $listen{ fileno $l->{sock} } = $l };
	my $drop = sub ($c, $reset = 0) {
		setsockopt $c->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $reset;
		$select->remove($c->{sock});
		delete $conn{ fileno $c->{sock} };
		close $c->{sock};
	};
	my $answer = sub ($c) {
		my ($bytes, $then) = $does{ $c->{l}{kind} }->($c->{wire});
		syswrite $c->{sock}, $bytes if length $bytes;
		if ($then eq 'wait') { $c->{waits} = 1; return }
		return $drop->($c, $then eq 'reset') if $then ne 'keep' || !$c->{wire}->request->{keep};
		$c->{wire}->next;
	};
	my $die = sub ($l) {
		$drop->($_, 1) for grep { $_->{l} == $l } values %conn;
		$select->remove($l->{sock});
		delete $listen{ fileno $l->{sock} };
		shutdown $l->{sock}, 2;         # nobody listens, and the port stays ours
		push @due, [time + DEAD, sub { listen $l->{sock}, SOMAXCONN or die "listen: $!\n"; $l->{n} = 0; $add->($l) }];
	};
	$add->($_) for grep { $_->{kind} !~ /^(?:refuses|never-accepts)$/ } @listens;
	while (1) {
		for my $sock ($select->can_read(0.02)) {
			if (my $l = $listen{ fileno($sock) // next }) {
				my $new = $sock->accept or next;
				$new->blocking(0);
				$select->add($new);
				$conn{ fileno $new } = { sock => $new, l => $l, wire => Test::Wire->new($protocol) };
				next;
			}
			my $c = $conn{ fileno $sock } or next;
			my $n = sysread $sock, my $bytes, 65536;
			next if !defined $n && ($!{EAGAIN} || $!{EINTR});
			if (!$n) { $drop->($c); next }
			next if $c->{waits};
			eval { $c->{wire}->feed($bytes); 1 } or do { $drop->($c); next };
			my $answers = $c->{wire}->answers;
			syswrite $sock, $answers if length $answers;
			my $q = $c->{wire}->request;
			next if !$q || !$q->{whole};
			if ($c->{l}{kind} eq 'slow') { push @due, [time + SLOW, sub { $answer->($c) if ($conn{ fileno($c->{sock}) // -1 } // 0) == $c }]; next }
			if ($c->{l}{kind} eq 'dies' && ++$c->{l}{n} > DIES_AFTER) { $die->($c->{l}); next }
			$answer->($c);
		}
		my $now = time;
		my @now = grep { $_->[0] <= $now } @due;
		@due = grep { $_->[0] > $now } @due;
		$_->[1]->() for @now;
	}
}

sub start_applications ($self, @cells) {
	my %of;
	for my $cell (@cells) {
		my @kinds = ($cell->{kind}, $cell->{backends} == 2 ? 'good' : ());
		for my $kind (@kinds) {
			my $sock = open_socket($kind);
			push @{ $of{ $cell->{protocol} } }, { kind => $kind, sock => $sock, port => $sock->sockport, n => 0 };
			push @{ $cell->{at} }, '127.0.0.1:' . $sock->sockport;
		}
	}
	my @pid;
	for my $protocol (sort keys %of) {
		push @pid, _fork(sub { serve($protocol, @{ $of{$protocol} }) });
	}
	$self->{sockets} = [map { $_->{sock} } grep { $_->{kind} =~ /^(?:refuses|never-accepts)$/ } map { @$_ } values %of];
	close $_->{sock} for grep { $_->{kind} !~ /^(?:refuses|never-accepts)$/ } map { @$_ } values %of;
	return @pid;
}

sub _fork ($do) {
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;
	$SIG{PIPE} = 'IGNORE';
	$SIG{$_} = 'DEFAULT' for qw(ALRM TERM INT);
	alarm 1200;                     # never an orphan
	eval { $do->(); 1 } or print STDERR "# $@";
	POSIX::_exit(0);
}

# ---------------------------------------------------------------- the clients

# Requests of these cells for a while: { number => { asked, good, longest_s, status => { 502 => n } } }
sub ask ($self, $port, @cells) {
	my (%seen, %open) = ();
	my $select = IO::Select->new;
	my ($began, $every) = (time, 1 / $self->{rate});
	my %next = map { $cells[$_]{number} => $began + $every * $_ / @cells } 0 .. $#cells;
	my $end = $began + $self->{seconds};
	my $over = sub ($c, $how) {
		my $s = $seen{ $c->{cell}{number} } //= { asked => 0, good => 0, longest_s => 0, status => {} };
		$s->{asked}++;
		$s->{good}++ if $how eq 'good';
		$s->{status}{$how}++;
		$s->{longest_s} = max($s->{longest_s}, time - $c->{at});
		$select->remove($c->{sock});
		delete $open{ fileno $c->{sock} };
		close $c->{sock};
	};
	while (time < $end || %open) {
		my $now = time;
		for my $cell (@cells) {
			next if $now >= $end || $now < $next{ $cell->{number} };
			$next{ $cell->{number} } += $every;
			my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or next;
			$sock->blocking(0);
			syswrite $sock, "GET /c$cell->{number}/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
			$open{ fileno $sock } = { sock => $sock, cell => $cell, at => $now, in => '' };
			$select->add($sock);
		}
		for my $sock ($select->can_read(0.02)) {
			my $c = $open{ fileno $sock } or next;
			my $n = sysread $sock, $c->{in}, 65536, length $c->{in};
			next if $n || !defined $n && ($!{EAGAIN} || $!{EINTR});
			my ($status) = $c->{in} =~ m{\AHTTP/1\.[01] (\d+)};
			$over->($c, !defined $status ? 'cut' : $status != 200 ? $status : $c->{in} =~ /good\n(?:\r\n0\r\n\r\n)?\z/ ? 'good' : 'cut');
		}
		$over->($_, 'late') for grep { $now - $_->{at} > LATE } values %open;
	}
	return \%seen;
}

sub ask_all ($self, $port, @cells) {
	my @client;
	while (my @some = splice @cells, 0, CELLS_OF_CLIENT) {
		pipe my $rd, my $wr or die "pipe: $!\n";
		my $pid = _fork(sub { print $wr JSON::PP::encode_json($self->ask($port, @some)); close $wr });
		close $wr;
		push @client, [$pid, $rd];
	}
	return @client;
}

# ---------------------------------------------------------------- the servers

package Test::Drill::Applications::accel;
use Test::Util qw(slurp);

sub start ($class, $dir, @cells) {
	my $conf = qq{status.metrics-url = "/metrics"\n};
	for my $c (@cells) {
		$conf .= Test::Server::proxy_block("^/c$c->{number}/", join('", "', @{ $c->{at} }), protocol => $c->{protocol},
			(map { ("$_-timeout" => 1) } qw(connect reply read)), $c->{checks} ? ('check-url' => '/check', 'check-interval' => 1) : ());
	}
	return bless { srv => Test::Server->start(conf => $conf), state => {} }, $class;
}

sub port ($self) { return $self->{srv}->port }

sub look ($self) {
	$self->{n} = {};
	for my $row (grep { /^accel_backend_/ && !/_stage_/ } split /\n/, $self->{srv}->fetch('/metrics')->{body}) {
		my ($name, $to, $more, $v) = $row =~ /^accel_backend_(\w+)\{block="\d+",backend="([^"]+)"(.*)\} (\d+)\z/ or next;
		if ($name eq 'state') { $self->{state}{$to}{ $more =~ s/.*"(.*)"/$1/r } = 1 if $v }
		elsif ($name =~ /^(replies|replies_5xx|cut|own_5xx)_total\z/) { $self->{n}{$to}{$1} += $v }
	}
	return;
}

# The conditions of examples/prometheus, over the whole run.
sub tells ($self, $c) {
	my %state = map { %{ $self->{state}{$_} // {} } } @{ $c->{at} };
	my %n = map { my $name = $_; $name => List::Util::sum0(map { $self->{n}{$_}{$name} // 0 } @{ $c->{at} }) } qw(replies replies_5xx cut own_5xx);
	my $all = $n{replies} + $n{own_5xx} || 1;
	my $lost = $n{own_5xx} + $n{cut};
	return 'CheckFailed' if $state{'check-failed'};
	return 'BackendUnreachable' if $state{unreachable};
	return 'BackendAllFail' if ($lost + $n{replies_5xx}) / $all > 0.99;
	return 'BackendFailing' if $state{failing};
	return 'BackendSomeFail' if $lost / $all > 0.05;
	return 'Backend5xx' if $n{replies_5xx} / $all > 0.05;
	return '';
}

sub stop ($self) { $self->{srv}->stop; return }

package Test::Drill::Applications::nginx;
use Test::Util qw(eventually find_program free_port put slurp);

my @variables = ([QUERY_STRING => '$query_string'], [REQUEST_METHOD => '$request_method'], [CONTENT_TYPE => '$content_type'], [CONTENT_LENGTH => '$content_length'],
	[REQUEST_URI => '$request_uri'], [SCRIPT_NAME => '$uri'], [SERVER_PROTOCOL => '$server_protocol'], [REMOTE_ADDR => '$remote_addr'],
	[SERVER_PORT => '$server_port'], [SERVER_NAME => '$server_name']);

# SCGI: nginx itself writes CONTENT_LENGTH first.
sub variables ($protocol) { return $protocol eq 'scgi' ? ([SCGI => 1], grep { $_->[0] ne 'CONTENT_LENGTH' } @variables) : @variables }

sub start ($class, $dir, @cells) {
	my $port = free_port();
	my ($up, $where) = ('', '');
	for my $c (@cells) {
		$up .= "upstream c$c->{number} { @{[ map { qq(server $_; ) } @{ $c->{at} } ]}}\n";
		my $p = $c->{protocol};
		$where .= "location /c$c->{number}/ { " . ($p eq 'http' ? "proxy_pass http://c$c->{number}; proxy_http_version 1.1; proxy_set_header Connection \"\";"
			: join ' ', "${p}_pass c$c->{number};", map { "${p}_param $_->[0] $_->[1];" } variables($p)) . " }\n";
	}
	my $deadlines = join "\n", map { my $p = $_; map { "${p}_${_}_timeout 1s;" } qw(connect read send) } qw(proxy fastcgi scgi uwsgi);
	my $temp = join "\n", map { "${_}_temp_path $dir/nginx-$_;" } qw(client_body proxy fastcgi uwsgi scgi);
	put("$dir/nginx.conf", <<"CONF");
daemon off;
worker_processes 2;
pid $dir/nginx.pid;
error_log $dir/nginx.log error;
events { worker_connections 4000; }
http {
access_log off;
$deadlines
$temp
$up
server {
listen 127.0.0.1:$port;
$where
}
}
CONF
	my $pid = Test::Drill::Applications::_exec($dir, find_program('nginx'), '-c', "$dir/nginx.conf", '-p', "$dir/", '-e', "$dir/nginx.log");
	my $self = bless { dir => $dir, port => $port, pid => $pid }, $class;
	eventually(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }) or die 'nginx does not start: ', slurp("$dir/nginx.log"), slurp("$dir/out"), "\n";
	return $self;
}

sub port ($self) { return $self->{port} }
sub look ($self) { return }
sub tells ($self, $c) {
	$self->{log} //= slurp("$self->{dir}/nginx.log");
	return $self->{log} =~ m{"GET /c$c->{number}/} ? 'log' : '';
}
sub stop ($self) { kill TERM => $self->{pid}; waitpid $self->{pid}, 0; return }

package Test::Drill::Applications::haproxy;
use Test::Util qw(eventually find_program free_port put slurp);

sub start ($class, $dir, @cells) {
	my $port = free_port();
	my ($use, $back) = ('', '');
	for my $c (@cells) {
		$use .= "\tuse_backend c$c->{number} if { path_beg /c$c->{number}/ }\n";
		$back .= "backend c$c->{number}\n" . ($c->{protocol} eq 'fastcgi' ? "\tuse-fcgi-app app\n" : '') . ($c->{checks} ? "\toption httpchk\n\thttp-check send meth GET uri /check ver HTTP/1.1 hdr Host x\n" : '');
		my $n = 0;
		$back .= "\tserver s@{[ $n++ ]} $_" . ($c->{protocol} eq 'fastcgi' ? ' proto fcgi' : '') . ($c->{checks} ? ' check inter 1s' : '') . "\n" for @{ $c->{at} };
	}
	put("$dir/haproxy.cfg", <<"CONF");
global
	maxconn 8000
	nbthread 2
	stats socket $dir/haproxy.sock
fcgi-app app
	docroot $dir
defaults
	mode http
	option redispatch
	timeout connect 1s
	timeout client 30s
	timeout server 1s
	timeout check 1s
frontend in
	bind 127.0.0.1:$port
$use
$back
CONF
	my $pid = Test::Drill::Applications::_exec($dir, find_program('haproxy'), '-db', '-f', "$dir/haproxy.cfg");
	my $self = bless { dir => $dir, port => $port, pid => $pid, down => {}, errors => {} }, $class;
	eventually(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }) or die 'HAProxy does not start: ', slurp("$dir/out"), "\n";
	return $self;
}

sub port ($self) { return $self->{port} }

sub look ($self) {
	my $sock = IO::Socket::UNIX->new(Peer => "$self->{dir}/haproxy.sock") or return;
	print $sock "show stat\n";
	my ($head, @rows) = grep { /,/ } <$sock>;
	my @names = split /,/, $head =~ s/^# //r;
	for my $row (@rows) {
		my %v;
		@v{@names} = split /,/, $row;
		$self->{down}{ $v{pxname} } = 1 if $v{svname} =~ /^s\d/ && $v{status} =~ /^DOWN/;
		$self->{errors}{ $v{pxname} } = 1 if $v{svname} =~ /^s\d/ && grep { $v{$_} } qw(econ eresp wretr wredis hrsp_5xx srv_abrt);
	}
	return;
}

sub tells ($self, $c) {
	my $name = "c$c->{number}";
	return $self->{down}{$name} ? 'DOWN' : $self->{errors}{$name} ? 'counters' : '';
}
sub stop ($self) { kill TERM => $self->{pid}; waitpid $self->{pid}, 0; return }

package Test::Drill::Applications;

sub _exec ($dir, @cmd) {
	die "a server is not installed\n" if !$cmd[0];
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;
	open STDOUT, '>>', "$dir/out" or POSIX::_exit(126);
	open STDERR, '>&', \*STDOUT;
	no warnings 'exec';
	exec @cmd or POSIX::_exit(127);
}

# ---------------------------------------------------------------- all of it

sub cells_of ($self, $server) {
	my ($is) = grep { $_->{name} eq $server } @SERVERS;
	my @cells;
	for my $protocol (@{ $is->{protocols} }) {
		next if !any { $_ eq $protocol } @{ $self->{protocols} };
		for my $kind (@{ $self->{kinds} }) {
			for my $checks (@{ $is->{checks} }) {
				push @cells, map { { server => $server, protocol => $protocol, kind => $kind, backends => $_, checks => $checks, number => 1 + @cells + $_ - 1 } } 1, 2;
			}
		}
	}
	return @cells;
}

sub run ($self) {
	for my $server (@{ $self->{servers} }) {
		my @cells = $self->cells_of($server) or next;
		my @apps = $self->start_applications(@cells);
		my $srv = eval { "Test::Drill::Applications::$server"->start($self->{dir}, @cells) };
		my $why = $@;
		if ($srv) {
			my @client = $self->ask_all($srv->port, @cells);
			my %by = map { $_->{number} => $_ } @cells;
			my $end = time + $self->{seconds};
			while (time < $end) { $srv->look; sleep 0.5 }
			for my $client (@client) {
				my ($pid, $rd) = @$client;
				my $seen = JSON::PP::decode_json(join '', <$rd>);
				waitpid $pid, 0;
				$by{$_}{seen} = $seen->{$_} for keys %$seen;
			}
			$srv->look;
			$_->{tells} = $srv->tells($_) for @cells;
			$srv->stop;
			push @{ $self->{cells} }, @cells;
		}
		kill KILL => @apps;
		waitpid $_, 0 for @apps;
		delete $self->{sockets};
		die $why if !$srv;
	}
	return $self;
}

sub cell ($self, $server, $protocol, $kind, %is) {
	my ($c) = grep { $_->{server} eq $server && $_->{protocol} eq $protocol && $_->{kind} eq $kind && $_->{backends} == $is{backends} && $_->{checks} == ($is{checks} // 0) } @{ $self->{cells} };
	return if !$c;
	my $s = $c->{seen} // { asked => 0, good => 0, longest_s => 0, status => {} };
	return { %$s, tells => $c->{tells} };
}

# "95 % 1.0 s alert"
sub text ($cell) {
	return '' if !$cell;
	return 'not asked' if !$cell->{asked};
	return sprintf '%.0f %%, %.1f s, %s', 100 * $cell->{good} / $cell->{asked}, $cell->{longest_s}, $cell->{tells} || '-';
}

sub table ($self) {
	my @columns;
	for my $s (grep { my $n = $_->{name}; any { $_ eq $n } @{ $self->{servers} } } @SERVERS) {
		for my $backends (1, 2) {
			push @columns, map { { server => $s, backends => $backends, checks => $_ } } @{ $s->{checks} };
		}
	}
	my $out = '';
	for my $protocol (@{ $self->{protocols} }) {
		my @of = grep { my $c = $_; any { $_ eq $protocol } @{ $c->{server}{protocols} } } @columns;
		next if !@of;
		$out .= "### $protocol\n\n| the application | " . join(' | ', map { "$_->{server}{title}, $_->{backends} backend" . ($_->{backends} > 1 ? 's' : '') . ($_->{checks} ? ', checked' : '') } @of) . " |\n";
		$out .= '| --- |' . ' --- |' x @of . "\n";
		for my $kind (grep { my $k = $_->[0]; any { $_ eq $k } @{ $self->{kinds} } } @KINDS) {
			$out .= "| $kind->[1] | " . join(' | ', map { text($self->cell($_->{server}{name}, $protocol, $kind->[0], backends => $_->{backends}, checks => $_->{checks})) } @of) . " |\n";
		}
		$out .= "\n";
	}
	return $out;
}

1;
