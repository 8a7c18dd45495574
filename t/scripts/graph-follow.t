# accel-graph --follow: a log that grows, is renamed, is cut; a terminal that is drawn again; the end by Ctrl-C.
use v5.36;
use Test::More;
use Test::Graph qw(@CLASSIC ours spew graph $SCRIPT);
use Test::Util qw(slurp);
use Fcntl      qw(O_RDWR O_NOCTTY);
use File::Temp ();
use IO::Select ();
use POSIX      qw(mkfifo);
use Time::HiRes qw(sleep time);

my $dir = File::Temp->newdir;
chdir $dir or die "chdir: $!";
mkdir my $tmp = "$dir/tmp" or die "mkdir: $!";
@ENV{qw(COLUMNS TMPDIR)} = (80, $tmp);

use constant PATIENCE => 60;    # seconds

my @running;
END { kill 'KILL', @running if @running }

sub started ($stdout, @args) {
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDIN,  '<',  '/dev/null' or die;
		open STDOUT, '>&', $stdout     or die;
		open STDERR, '>',  'err'       or die;
		exec $^X, $SCRIPT, '--follow', @args or die;
	}
	push @running, $pid;
	return $pid;
}

sub ended ($pid, $signal = undef) {
	kill $signal, $pid if $signal;
	waitpid $pid, 0;
	@running = grep { $_ != $pid } @running;
	return $? >> 8 | ($? & 127) << 8;
}

sub append ($file, @lines) {
	open my $fh, '>>:raw', $file or die "$file: $!";
	print $fh @lines;
	close $fh or die "$file: $!";
	return;
}

# Waits until the process has read the file to its end.
sub has_read ($pid, $file) {
	my @want = stat $file;
	for (my $until = time + PATIENCE; time < $until; sleep 0.02) {
		for my $fd (glob "/proc/$pid/fd/*") {
			my @is = stat $fd or next;
			next unless $is[0] == $want[0] && $is[1] == $want[1];
			my ($at) = (eval { slurp($fd =~ s{/fd/}{/fdinfo/}r) } // '') =~ /^pos:\s*(\d+)/;
			return 1 if defined $at && $at >= -s $file;
		}
	}
	return fail "$file was not read";
}

sub out_file () { open my $fh, '>', 'out' or die "out: $!"; return $fh }

my $n = 0;
sub lines ($count, %arg) { return map { ours(start => 1173101341 + $n++ / 10, %arg) . "\n" } 1 .. $count }

subtest 'a log grows' => sub {
	append('grow.log', lines(3, read => 5_000), 'something else' . "\n");
	my $pid = started(out_file(), 'grow.log');
	has_read($pid, 'grow.log');
	my ($cut) = lines(1, read => 5_000);
	append('grow.log', lines(2, read => 5_000), substr $cut, 0, 100);
	has_read($pid, 'grow.log');
	append('grow.log', substr($cut, 100), lines(1, read => 5_000) =~ s/\n//r);
	has_read($pid, 'grow.log');
	is ended($pid, 'INT'), 0, 'Ctrl-C ends it with 0' or diag slurp('err');
	like slurp('out'), qr/\A6 requests in 0\.5 s, 6 cold/, 'the final table; a line cut by time is read, one that has no end yet does not count';
	unlike slurp('out'), qr/\e/, 'no escapes where there is no terminal';
	is slurp('err'), '', 'silently';
};

subtest 'a log is renamed and begun anew, or cut' => sub {
	append('turn.log', lines(4));
	my $pid = started(out_file(), 'turn.log');
	has_read($pid, 'turn.log');
	rename 'turn.log', 'turn.log.1' or die;
	append('turn.log.1', lines(2));
	has_read($pid, 'turn.log.1');
	append('turn.log', lines(3));
	has_read($pid, 'turn.log');
	open my $fh, '>', 'turn.log' or die;    # copytruncate
	append('turn.log', lines(1));
	has_read($pid, 'turn.log');
	for (my $until = time + PATIENCE; time < $until && slurp('err') !~ /shorter/; sleep 0.02) { }
	has_read($pid, 'turn.log');
	is ended($pid, 'TERM'), 0, 'TERM ends it, too';
	like slurp('out'), qr/\A10 requests /, 'all lines of all three files';
	is slurp('err'), "accel-graph: turn.log: became shorter; it is read from its start\n", 'and one message';
};

subtest 'limits; several logs; standard input' => sub {
	append('one.log', lines(2, read => 90_000));
	append('two.log', lines(2, read => 5_000));
	my $pid = started(out_file(), '--fail-if', 'max>50ms', 'one.log', 'two.log');
	has_read($pid, $_) for 'one.log', 'two.log';
	is ended($pid, 'INT'), 1, '--fail-if judges at the end';
	like slurp('err'), qr/max>50ms: it is 90 ms/, '... and says why';
	like slurp('out'), qr/\A4 requests/, 'both logs';
	my ($status, $out, $err) = graph(\join("\n", @CLASSIC, ''), qw(--follow -));
	is $status, 0, 'standard input ends by itself' or diag $err;
	like $out, qr/\A3 requests/, '... after all its lines';
	append('empty.log');
	$pid = started(out_file(), 'empty.log');
	has_read($pid, 'empty.log');
	is ended($pid, 'INT'), 65, 'nothing was seen: 65';
};

subtest 'a pipe under the name of a log' => sub {
	append('pipe.log', lines(2));
	my $pid = started(out_file(), 'pipe.log');
	has_read($pid, 'pipe.log');
	mkfifo('next', 0600) or die "mkfifo: $!";
	rename 'next', 'pipe.log' or die;
	append('after.log', lines(1));
	sleep 0.5;                              # two looks
	rename 'after.log', 'pipe.log' or die;
	has_read($pid, 'pipe.log');
	is ended($pid, 'INT'), 0, 'it is not waited for';
	like slurp('out'), qr/\A3 requests/, '... and the next log is read';
};

subtest 'what cannot be followed' => sub {
	mkfifo('fifo', 0600) or die "mkfifo: $!";
	for my $case ([66, 'absent.log'], [66, 'fifo'], [66, '.'], [64, 'x.log.gz'], [64, '--png', 'one.log'], [64, '--before', 'one.log', 'two.log'], [64, '--interval', '0', 'one.log'], [64, '--interval', 'nan', 'one.log']) {
		my ($want, @args) = @$case;
		my ($status, $out, $err) = graph('--follow', @args);
		is $status, $want, "@args: $want";
		like $err, qr/\Aaccel-graph: \S/, '... and why';
	}
};

# The two ends of a pseudo terminal; nothing if this system has none.
sub terminal () {
	sysopen my $master, '/dev/ptmx', O_RDWR | O_NOCTTY or return;
	my $number = pack 'i', 0;
	ioctl $master, 0x40045431, $number or return;    # TIOCSPTLCK: unlock
	ioctl $master, 0x80045430, $number or return;    # TIOCGPTN
	sysopen my $slave, '/dev/pts/' . unpack('i', $number), O_RDWR | O_NOCTTY or return;
	return ($master, $slave);
}

subtest 'on a terminal it is drawn again' => sub {
	my ($master, $slave) = terminal();
	plan skip_all => 'no pseudo terminal here' unless $master;
	append('live.log', lines(5, read => 5_000, path => "/\e[31m"));
	my $pid  = started($slave, qw(--ascii --chart read --interval 0.1 live.log));
	my $seen = '';
	my $sees = sub ($pattern) {
		for (my $until = time + PATIENCE; time < $until && $seen !~ $pattern;) {
			sysread $master, $seen, 65_536, length $seen if IO::Select->new($master)->can_read(1);
		}
		return like $seen, $pattern, "sees $pattern";
	};
	$sees->(qr/\e\[H\e\[J.*5 requests in/s);
	append('live.log', lines(2, read => 5_000));
	$sees->(qr/\e\[H\e\[J.*5 requests in.*\e\[H\e\[J.*7 requests in/s);
	like $seen, qr/ms/, 'with a chart';
	kill 'INT', $pid;
	$seen = '';
	$sees->(qr/\e\[H\e\[J.*7 requests in .*Nothing to change/s);
	is ended($pid), 0, 'it ends with the final table';
	unlike $seen =~ s/\e\[[HJ]//gr, qr/\e/, 'nothing else controls the terminal';
};

is_deeply [glob "$tmp/*"], [], 'none of all these left a temporary file';

chdir '/';
done_testing;
