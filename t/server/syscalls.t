# The number of system calls per request, counted by strace.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use POSIX ();
use Test::AccelLoad ();
use Test::More;
use Test::Server;

plan skip_all => 'strace is not installed' unless grep { -x "$_/strace" } split /:/, $ENV{PATH};
plan skip_all => 'sanitizers ask the kernel for things of their own' if ($ENV{B} // '') =~ /san/;

my $dir = File::Temp->newdir;

# Follows the server until the code is done: { system call => how often }, or undef and why in $why.
my $why;
sub counted {
	my ($srv, $code) = @_;
	unlink "$dir/said", "$dir/table";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDERR, '>', "$dir/said" or die "$dir/said: $!";
		{ no warnings; exec 'strace', '-f', '-c', '-o', "$dir/table", '-p', $srv->pid }
		POSIX::_exit(127);
	}
	my $said = '';
	my $over = 0;
	Test::Util::eventually(sub {
		$said = Test::Util::slurp("$dir/said");
		return $said =~ /attached/ || ($over = waitpid($pid, POSIX::WNOHANG()) == $pid);
	});
	if ($over || $said !~ /attached/) {
		if (!$over) { kill KILL => $pid; waitpid $pid, 0 }
		$why = 'strace may not look: ' . ($said =~ s/\s+\z//r =~ s/\n.*//sr);
		return undef;
	}
	$code->();
	kill INT => $pid;
	waitpid $pid, 0;
	my %calls = map { /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$/ ? ($2 => $1) : () } split /\n/, Test::Util::slurp("$dir/table");
	delete $calls{total};
	return \%calls;
}

my $srv = Test::Server->start(conf => <<'CONF');
server.max-worker = 1
server.network-backend = "linux-sendfile"
server.max-keep-alive-requests = 1000000
status.statistics-url = "/statistics"
CONF
$srv->write('1k', 'k' x 1024);
$srv->write('100k', 'K' x 102_400);
$srv->fetch("/$_")->{status} == 200 or die 'it does not serve' for qw(1k 100k);
Test::Util::eventually(sub { $srv->fetch('/100k'); return $srv->fetch('/statistics')->{body} =~ /^server\.hotset\.filled: [1-9]/m })
	or die 'a file that is wanted again is not held';

# name, path, requests, options, system calls allowed for each request
for my $case (
	['1 kB, kept connections: a receive and a send', '/1k', 10_000, ['-c', 50], 2.1],
	['100 kB, kept connections: a receive, a send of the head, vmsplice and splice; a look in each round', '/100k', 10_000, ['-c', 10], 4.25],
	['1 kB, sixteen requests in a packet: their share of both', '/1k', 16_000, ['-c', 10, '-p', 16], 0.3],
	['1 kB, a connection for each', '/1k', 2000, ['-c', 10, '--close'], undef],
) {
	my ($name, $path, $n, $args, $allowed) = @$case;
	my $r;
	my $calls = counted($srv, sub { $r = Test::AccelLoad->run($srv, $path, '-n', $n, '-d', 60, @$args) });
	SKIP: {
		skip "$name: $why", 2 unless $calls;
		is $r->{answered} - $r->{errors}{all}, $n, "$name: all answered";
		my @by = sort { $calls->{$b} <=> $calls->{$a} } keys %$calls;
		my $table = join ', ', map { sprintf '%s %.3f', $_, $calls->{$_} / $n } grep { $calls->{$_} > $n / 1000 } @by;
		my $sum = 0;
		$sum += $calls->{$_} for grep { !/^epoll_p?wait/ } @by;
		if (defined $allowed) {
			cmp_ok $sum / $n, '<=', $allowed, "$name: system calls for each request, waiting apart" or diag $table;
			cmp_ok $sum / $n, '>', $allowed / 20, "$name: they were counted";
		} else {
			cmp_ok $sum / $n, '<', 6, "$name: not many more than accept, receive, send, close";
		}
		note sprintf '%s: %.3f (%s)', $name, $sum / $n, $table;
	}
}

done_testing;
