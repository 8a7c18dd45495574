#!/usr/bin/perl
# The end of CGI programs: with their client, their time, the server; and how many run at a time.

use v5.36;
use Test::More;

use Test::Http qw(parse req);
use Test::Server;
use Test::Util qw(eventually slurp);

# Each program writes its number to a file beside it when it runs.
sub program ($srv, $name, $text) {
	$srv->write("$name.pl", qq{open my \$fh, '>>', 'pid.$name' or die; syswrite \$fh, "\$\$\\n"; close \$fh; \$| = 1;\n$text\n});
	return;
}

sub pids { my ($srv, $name) = @_; my $file = $srv->path("pid.$name"); return -e $file ? split /\n/, slurp($file) : () }

# The number of the nth program of this name, once it runs.
sub pid_of ($srv, $name, $n = undef) {
	return eventually(sub { my @all = pids($srv, $name); return $all[($n // 1) - 1] });
}

# No process, not even a zombie.
sub is_gone { my ($pid) = @_; return !kill 0, $pid }

my $srv = Test::Server->start(conf => <<'END');
server.document-root = "@DIR@"
status.statistics-url = "/counters"
server.max-worker = 1
cgi.assign = ( ".pl" => "/usr/bin/perl" )
cgi.max-programs = 12
$HTTP["url"] =~ "^/silent" { cgi.limits = ( "read-timeout" => 1 ) }
$HTTP["url"] =~ "^/endless" { cgi.max-run-time = 1 }
$HTTP["url"] =~ "^/deaf" { cgi.limits = ( "write-timeout" => 1 ) }
$HTTP["url"] =~ "^/hup" { cgi.limits = ( "tcp-fin-propagate" => "SIGHUP" ) }
END
program($srv, 'hangs', 'sleep 1000');
program($srv, 'stubborn', '$SIG{TERM} = "IGNORE"; print "Content-Type: text/plain\n\nx"; sleep 1 while 1');
program($srv, 'silent', 'sleep 1000');
program($srv, 'endless', 'print "Content-Type: text/plain\n\n"; while (1) { print "x"; select undef, undef, undef, 0.05 }');
program($srv, 'deaf', 'sleep 1000');
program($srv, 'hup', '$SIG{HUP} = sub { open my $fh, ">", "got.hup"; exit }; sleep 1000');
program($srv, 'waits', '1 until -e "went.half"; print "Content-Type: text/plain\n\nwhole"');
program($srv, 'crashes', 'print "Content-Type: text/plain\n\nhalf"; kill 11, $$; sleep 9');
program($srv, 'dies', 'kill 9, $$; sleep 9');
program($srv, 'fails', 'print "Content-Type: text/plain\n\nwhole"; exit 3');
program($srv, 'goes_on', 'print "Content-Type: text/plain\n\nwhole"; close STDOUT; close STDERR; open my $d, "<", "/dev/null"; 1 until -e "go.on"; open my $fh, ">", "went.on"; exit');
program($srv, 'family', 'if (!fork) { close STDOUT; close STDERR; open my $fh, ">>", "pid.child"; syswrite $fh, "$$\n"; sleep 1000 } 1 until -s "pid.child"; print "Content-Type: text/plain\n\nparent"');
program($srv, 'chatty', 'print STDERR "line $_ of many\n" for 1 .. 20_000; print "Content-Type: text/plain\n\ndone"');

# ---------------------------------------------------------------- the client leaves

my @left = map { my $c = $srv->connect; $c->send(req("/$_.pl")); [$_, $c] } qw(hangs stubborn hup);
my %pid = map { ($_ => pid_of($srv, $_)) } qw(hangs stubborn hup);
$_->[1]->abort for @left;
ok eventually(sub { is_gone($pid{hangs}) }), 'a program ends with its client';
ok eventually(sub { -e $srv->path('got.hup') }), 'tcp-fin-propagate names the first signal';
ok eventually(sub { is_gone($pid{hup}) }), '... and the program ends';

my $half = $srv->connect;
$half->send("GET /waits.pl HTTP/1.0\r\nHost: x\r\n\r\n");
shutdown $half->sock, 1;
ok eventually(sub { $srv->counter('server.connections.client-ended') == 1 }), 'a client that sends no more has not left';
$srv->write('went.half', '');
like $half->rest, qr/whole\z/, '... and gets its reply';
unlink $srv->path('got.hup');
my $fin = $srv->connect;
$fin->send(req('/hup.pl'));
my $hup = pid_of($srv, 'hup', 2);
shutdown $fin->sock, 1;
ok eventually(sub { -e $srv->path('got.hup') && is_gone($hup) }), '... but with tcp-fin-propagate';

# ---------------------------------------------------------------- deadlines

my %slow = map { my $c = $srv->connect; $c->send(req("/$_.pl")); ($_ => $c) } qw(silent endless);
my $deaf = $srv->connect;
$deaf->send("POST /deaf.pl HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" . 'x' x 1_000_000);
is $slow{silent}->reply->{status}, 504, 'a program that is silent for cgi.limits read-timeout';
ok $slow{endless}->reply->{cut}, 'a program that runs longer than cgi.max-run-time: its reply is cut';
is $deaf->reply->{status}, 502, 'a program that does not read for cgi.limits write-timeout';
for my $name (qw(silent endless deaf)) {
	my $pid = pid_of($srv, $name);
	ok eventually(sub { is_gone($pid) }), "$name has ended";
}
like $srv->wait_log(qr/took no byte/), qr/ev=app\.stderr .*deaf\.pl.*it took no byte of the request body in time/, '... and the log has the reason';

# ---------------------------------------------------------------- the program ends

my $c = $srv->connect;
$c->send(req('/crashes.pl'));
my $r = $c->reply;
ok $r->{cut} && $r->{body} eq 'half', 'a program that crashes: its reply is cut';
like $srv->wait_log(qr/signal 11/), qr/crashes\.pl.*it was ended by signal 11/, '... and the log names the signal';
is $srv->fetch('/dies.pl')->{status}, 502, '... before its head: 502';
is $srv->fetch('/fails.pl')->{body}, 'whole', 'a status other than 0 does not matter';
is $srv->fetch('/goes_on.pl')->{body}, 'whole', 'a program that closed its output has replied';
$srv->write('go.on', '');
ok eventually(sub { -e $srv->path('went.on') }), '... and may go on';
is $srv->fetch('/family.pl')->{body}, 'parent', 'a program with a child';
my $child = pid_of($srv, 'child');
ok eventually(sub { is_gone($child) }), '... which ends with it';

is $srv->fetch('/chatty.pl')->{body}, 'done', 'a flood of lines on standard error';
my @lines = $srv->log =~ /ev=app\.stderr .*of many/g;
cmp_ok scalar @lines, '<', 10_000, '... is not written whole';
cmp_ok scalar @lines, '>', 10, '... but a part of it';

ok eventually(sub { is_gone($pid{stubborn}) }), 'a program that ignores SIGTERM has ended with its client';

# ---------------------------------------------------------------- how many

my $few = Test::Server->start(conf => <<'END');
server.document-root = "@DIR@"
server.max-worker = 1
cgi.assign = ( ".pl" => "/usr/bin/perl" )
cgi.max-programs = 4
cgi.max-waiters = 3
cgi.wait-timeout = 1
END
program($few, 'waits', '1 until -e "go"; print "Content-Type: text/plain\n\nran"');
my @storm = map { my $x = $few->connect; $x->send(req('/waits.pl')); $x } 1 .. 8;
pid_of($few, 'waits', 2);
my %status;
is scalar(pids($few, 'waits')), 2, 'a client has half of cgi.max-programs';
$status{ $_->reply->{status} }++ for @storm[2 .. 7];
is_deeply \%status, { 503 => 6 }, 'the others get 503: at once beyond cgi.max-waiters, or after cgi.wait-timeout';
$few->log_has(qr/ev=exchange\.failed .*the queue is full/, '... with a line in the log');
like $few->wait_log(qr/in time/), qr/ev=exchange\.failed .*no socket became free in time/, '... each';
$few->write('go', '');
is $_->reply->{body}, 'ran', 'a program that had a place' for @storm[0, 1];
is scalar(pids($few, 'waits')), 2, 'no other program was started';
is $few->fetch('/waits.pl')->{body}, 'ran', 'then there is room again';

# ---------------------------------------------------------------- the server ends

program($few, 'stays', '$SIG{TERM} = "IGNORE"; sleep 1 while 1');
my $stays = $few->connect;
$stays->send(req('/stays.pl'));
my $stays_pid = pid_of($few, 'stays');
$few->term;

# The helper dies: its runners end their programs.
$c = $srv->connect;
$c->send(req('/hangs.pl'));
my $pid = pid_of($srv, 'hangs', 2);
my $helper = $srv->helper;
ok $helper && kill('KILL', $helper), 'the helper is killed';
ok eventually(sub { is_gone($pid) }), '... and its programs end';
is $c->reply->{status}, 502, '... and their clients get 502';
ok eventually(sub { ($srv->fetch('/fails.pl')->{body} // '') eq 'whole' }), '... and later ones run';

ok eventually(sub { is_gone($stays_pid) }), 'a program does not outlive the server';

done_testing;
