package Test::Bench::Idle;
# User memory for each of 10,000 idle keep-alive connections.
#
# `run($bench)` prints the table. Apache is not asked: with as many threads as connections in use it
# closes what is idle.
use v5.36;
use POSIX ();
use Time::HiRes qw(time sleep);
use Accel::Util qw(program);

my @kinds = map { { kind => $_, name => $_ } } qw(accel nginx lighttpd);
my $connections = 10_000;

sub run ($bench) {
	my $root = $bench->files;
	printf "\n%d idle keep-alive connections, user memory (PSS)\n", $connections;
	printf "  %-10s %12s %12s %10s %14s %s\n", 'server', 'before kB', 'after kB', 'held', 'kB/connection', 's to open';
	my $of = $bench->result->{idle} = {};
	for my $k ($bench->wanted(@kinds)) {
		my $srv = $bench->server($k, $root);
		$bench->load(-c => 100, -n => 5000, $srv->url . '/1k.bin');
		sleep 1;
		my $before = $srv->pss;
		my ($held, $took, $after) = hold($bench, $srv);
		my $each = $held ? ($after - $before) / $held / 1024 : 0;
		$of->{ $srv->name } = { before => $before, after => $after, held => $held, kb_each => $each };
		printf "  %-10s %12.0f %12.0f %10d %14.2f %.2f\n", $srv->name, $before / 1024, $after / 1024, $held, $each, $took;
		$srv->stop;
	}
	return unless $of->{accel};
	print "\nAims\n";
	$bench->aim('accel: kB for each idle connection', $of->{accel}{kb_each}, '<=', 0.5);
}

# Opens the connections and keeps them: how many, in how many seconds, and the server's memory then.
sub hold ($bench, $srv) {
	my $t = time;
	pipe my $hold_in, my $release or die "pipe: $!";
	pipe my $said, my $say or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
		POSIX::dup2(fileno $hold_in, 0);        # ends when we do
		POSIX::dup2(fileno $say, 1);
		exec program('accel-load'), '--hold', -c => $connections, -d => 60, -t => 30, $srv->url . '/1k.bin'
		    or POSIX::_exit(127);
	}
	close $say;
	my $line = <$said> // '';
	my $took = time - $t;
	sleep 1.5;
	my $after = $srv->pss;
	close $release;
	1 while <$said>;
	waitpid $pid, 0;
	return ($line =~ /held (\d+)/ ? $1 : 0, $took, $after);
}

1;
