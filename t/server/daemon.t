# --daemon: the command ends when the server accepts connections, or when the start has failed.  Messages until then go to the
# terminal.  Without it, also with -D, the server stays in the foreground.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Socket::UNIX ();
use POSIX ();
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp);

my $program = program('accel-server');
my $dir = Test::Util::temp_tree();
put("$dir/a", "A");

sub conf ($text = '') {
	my $base = qq{server.document-root = "$dir"\nserver.bind = "$dir/sock"\nserver.pid-file = "$dir/pid"\nserver.max-worker = 1\n};
	return put("$dir/x.conf", ($text =~ /errorlog/ ? '' : qq{server.errorlog = "$dir/error.log"\n}) . $base . $text);
}

# Exit status and messages.  What the daemon would keep open of standard output and error would delay the end of file.
sub daemonize (@words) {
	pipe my $rd, my $wr or die $!;
	my $pid = fork // die $!;
	if (!$pid) {
		open STDOUT, '>&', $wr or die $!;
		open STDERR, '>&', $wr or die $!;
		close $_ for $rd, $wr;
		exec $program, '--daemon', '-f', "$dir/x.conf", @words or POSIX::_exit(127);
	}
	close $wr;
	my $said = do { local $/; <$rd> };
	waitpid $pid, 0;
	return ($? >> 8, $said);
}

sub ask () {
	my $c = IO::Socket::UNIX->new(Peer => "$dir/sock") or return '';
	print {$c} "GET /a HTTP/1.0\r\n\r\n";
	return do { local $/; <$c> } // '';
}

sub ctl ($verb) { return (Test::Util::run_fed($program, '', 'ctl', $verb, '-f', "$dir/x.conf"))[0] }

sub pid () { return slurp("$dir/pid") =~ /(\d+)/ ? $1 : 0 }

END { kill 'KILL', pid() if pid() }

subtest 'a start that succeeds' => sub {
	conf();
	my ($rc, $said) = daemonize();
	is $rc, 0, 'status 0';
	unlike $said // '', qr/error/, 'no error';
	like ask(), qr/ 200 .*\bA\z/s, 'it accepts connections at once';
	my $pid = pid();
	my @stat = split ' ', slurp("/proc/$pid/stat") =~ s/\A.*\) //sr;
	is $stat[3], $pid, 'it is in a session of its own';
	is $stat[4], 0, '... without a terminal';
	my ($helper) = grep { slurp("/proc/$_/stat") =~ /\A\d+ \(.*\) \S $pid / } map { m{(\d+)} } glob '/proc/[0-9]*';
	for my $p ($pid, $helper) {
		is join(' ', map { readlink "/proc/$p/fd/$_" } 0 .. 2), '/dev/null /dev/null /dev/null', 'process ' . ($p == $pid ? 'server' : 'helper') . ' has no standard descriptors';
	}
	my ($again, $why) = daemonize();
	is $again, 69, 'a second one';
	like $why, qr/listen\.failed address=.*another program listens there/, '... says that the address is in use';
	is pid(), $pid, '... and leaves the pid file';
	is ctl('upgrade'), 0, 'upgrade';
	isnt pid(), $pid, '... has put a new process in its place';
	like ask(), qr/ 200 /, '... which serves';
	is ctl('stop'), 0, 'stop';
	ok !-e "$dir/pid", '... removes the pid file';
};

subtest 'a start that fails' => sub {
	for my $case (
		['a setting that does not exist', qq{server.max-workers = 1\n}, 78, qr{x\.conf:\d+:\d+: .*max-workers}],
		['a directory that is missing', qq{\$HTTP["host"] == "x" { server.document-root = "$dir/none" }\n}, 78, qr{$dir/none.*No such file}],
		['an error log that cannot be made', qq{server.errorlog = "$dir/none/error.log"\n}, 73, qr{$dir/none/error\.log.*No such file}],
	) {
		my ($what, $text, $status, $why) = @$case;
		conf($text);
		my ($rc, $said) = daemonize();
		is $rc, $status, "$what: its status";
		like $said, $why, '... and the reason on the terminal';
	}
	my ($rc, $said) = daemonize('--until-eof');
	is $rc, 64, 'not with --until-eof';
};

subtest '-D stays in the foreground' => sub {
	my $srv = Test::Server->start(args => ['-D']);
	$srv->write('a', 'A');
	is $srv->fetch('/a')->{body}, 'A', 'it serves';
	is $srv->wait_exit(0), undef, '... in the process that was started';
};

done_testing;
