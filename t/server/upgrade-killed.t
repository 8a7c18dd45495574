# A process is killed in the middle of a binary upgrade: the old server, the new one, their helpers, the supervisor between them.
# A server serves afterwards, and the pid file names it; if the old server was killed before the new one was ready, a start works.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::INET ();
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp);
use Time::HiRes qw(sleep time);

my $rounds = $ENV{ROUNDS} // 4;

sub server ($conf = '') {
	my $srv = Test::Server->start(conf => qq{server.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\n$conf}, unchecked => 1);
	$srv->write('a', 'A');
	eventually(sub { -s $srv->run . '/pid' }) or die 'no pid file';
	return $srv;
}

sub parent ($pid) { return (slurp("/proc/$pid/stat") =~ /\A\d+ \(.*\) \S (\d+)/)[0] // 0 }
sub comm ($pid) { return slurp("/proc/$pid/comm") =~ s/\n//r }

# All that have the configuration file of this server, alive.
sub processes ($srv) {
	my $conf = $srv->run . '/server.conf';
	return grep { index(slurp("/proc/$_/cmdline"), "\0$conf\0") >= 0 && !Test::Server::is_gone($_) } map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# The processes of an upgrade that runs, by their part in it.
sub parts ($srv) {
	my %p = (old => $srv->pid, helper => $srv->helper, guardian => $srv->process('accel-guardian'));
	($p{new}) = grep { $_ != $p{old} && comm($_) eq 'accel-server' } processes($srv);
	return %p unless $p{new};
	$p{supervisor} = parent($p{new});
	$p{"$_ of the new one"} = $srv->process("accel-$_", $p{new}) for qw(helper guardian);
	return %p;
}

sub kill_part ($srv, $part) {
	my %p = parts($srv);
	my $pid = $p{$part};
	return 0 if !$pid;
	return 0 if $part eq 'supervisor' && comm($pid) !~ /^accel-helper/;       # it has ended, and init is the parent
	return kill(KILL => $pid) && $pid;
}

sub serves ($srv) { return ($srv->fetch('/a')->{body} // '') eq 'A' }
sub named ($srv) { return (slurp($srv->run . '/pid') =~ /\A(\d+)\n\z/)[0] }

# The upgrade is over: one server, and what belongs to it.
sub settled ($srv) {
	return eventually(sub {
		my @all = processes($srv);
		return 3 == @all && 1 == grep { comm($_) eq 'accel-server' } @all;
	});
}

# One server is left: it serves, the pid file names it, and it can be upgraded.
sub is_well ($srv, $what) {
	my $settled = settled($srv);
	my ($main) = grep { comm($_) eq 'accel-server' } processes($srv);
	my $ok = $settled && eventually(sub { (named($srv) // 0) == $main });
	ok $ok && serves($srv), "$what: one server serves, and the pid file names it"
	    or diag "processes: @{[ map { \"$_ \" . comm($_) } processes($srv) ]}, pid file: @{[ named($srv) // 'none' ]}\n" . $srv->log . $srv->log('stderr');
	$srv->upgraded_to($main) if $main && $main != $srv->pid;
	return $ok;
}

# ---------------------------------------------------------------- at the step that writes the pid file

# A command of the configuration stops the helper of the new server, which then waits for its pid file to be written.
sub stopped_at_pidfile () {
	my $srv = server(qq{server.errorlog = ""\n});
	my $conf = $srv->run . '/server.conf';
	my $helper = $srv->run . '/helper';
	my $good = slurp($conf);
	put($conf, qq{${good}include_shell "read -r n name state helper rest </proc/\$PPID/stat; echo \$helper >$helper; kill -STOP \$helper"\n});
	$srv->signal('USR2');
	eventually(sub { slurp($helper) =~ /\n/ }) or die 'no upgrade';
	my ($pid) = slurp($helper) =~ /(\d+)/;
	my %p = parts($srv);
	# Wait until the new server has workers: then it sleeps in poll(2), and has read all that it reads before.
	eventually(sub { 2 <= (() = glob "/proc/$p{new}/task/*") }) or die 'the new server has no worker';
	put($conf, $good);
	return ($srv, $pid);
}

for my $part ('helper', 'supervisor', 'new') {
	my ($srv, $stopped) = stopped_at_pidfile();
	my $old = $srv->pid;
	ok kill_part($srv, $part), "$part is killed while the new server waits for its pid file";
	# The old server does what it does then, at once.
	sleep 0.01 until !Test::Server::is_gone($old) && $srv->fetch('/a');
	kill CONT => $stopped;
	is_well($srv, "$part, at the pid file") or next;
	ok $srv->upgrade, '... and the next upgrade is done';
	my ($status) = $srv->term;
	is $status, 0, '... and it stops';
	ok !-e $srv->run . '/pid', '... and its pid file is gone';
}

# ---------------------------------------------------------------- at any time

{
	my $srv = server();
	my $begun = time;
	$srv->upgrade or die 'no upgrade';
	settled($srv);
	my $takes = time - $begun;
	for my $part ('helper', 'guardian', 'new', 'supervisor', 'helper of the new one', 'guardian of the new one') {
		for my $round (1 .. $rounds) {
			my $seen = () = $srv->log =~ /ev=upgrade\.started/g;
			$srv->signal('USR2');
			eventually(sub { $seen < (() = $srv->log =~ /ev=upgrade\.started/g) });
			sleep $takes * ($round - rand) / $rounds;
			my $killed = kill_part($srv, $part);
			my $over = eventually(sub { my $n = () = $srv->log =~ /ev=(?:upgraded|upgrade\.undone) /g; $n >= $seen + 1 });
			ok $over, "$part, round $round: the upgrade ends";
			# A server that was ready is as any that is killed: nothing is left.
			if ($part eq 'new' && $killed && $srv->log =~ /.*ev=upgraded pid=(\d+)/s && $1 == $killed) {
				ok eventually(sub { !processes($srv) }), '... it was ready';
				$srv = server();
				next;
			}
			is_well($srv, "$part, round $round" . ($killed ? '' : ', too late')) or $srv = server();
		}
	}
	is +($srv->term)[0], 0, 'it stops in the end';
}

# ---------------------------------------------------------------- the old one

for my $round (1 .. 2 * $rounds) {
	my $srv = server();
	my $old = $srv->pid;
	$srv->signal('USR2');
	sleep 0.15 * ($round - rand) / $rounds / 2;
	kill KILL => $old;
	$srv->wait_exit;
	eventually(sub { my @all = processes($srv); my $named = named($srv) // 0; !@all || 3 == @all && grep { $_ == $named } @all });
	my ($new) = grep { comm($_) eq 'accel-server' } processes($srv);
	if ($new) {
		is named($srv), $new, "old, round $round: the new one serves, and the pid file names it";
		kill TERM => $new;
		ok eventually(sub { !processes($srv) }), '... and it ends';
	} else {
		pass "old, round $round: nothing is left";
	}
	ok !-e $srv->run . '/pid', '... and no pid file';
	my $again = Test::Server->start(conf => slurp($srv->run . '/server.conf'), dir => $srv->dir);
	ok serves($again), '... and a start works';
}

done_testing;
