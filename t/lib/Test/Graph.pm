package Test::Graph;
# Lines of every shape for the tests of accel-graph, and a run of it.
use v5.36;

use Cwd        qw(abs_path);
use Exporter   qw(import);
use File::Basename qw(dirname);
use JSON::PP   ();
use Test::More ();
use Test::Util qw(slurp);

our @EXPORT_OK = qw(@CLASSIC @LATE @STAGES ours json_line spew graph table $SCRIPT);

our $SCRIPT = abs_path(dirname(__FILE__) . '/../../../scripts/accel-graph');

our @CLASSIC = (
	'network_gthread_aio.c.78: (trace) write-start: 1173101341.237616 read-queue-wait: 680 ms read-time: 0 ms write-time: 21 ms',
	'network_gthread_aio.c.78: (trace) write-start: 1173101341.229014 read-queue-wait: 576 ms read-time: 0 ms write-time: 134 ms',
	'network_gthread_aio.c.78: (trace) write-start: 1173101341.240815 read-queue-wait: 681 ms read-time: 6 ms write-time: 19 ms',
);
my $BLANK = ' ';    # lighttpd 1.5 ended its lines with one
our @LATE = (
	'2009-10-16 12:00:01 (trace) (network_gthread_aio.c:73) write-start: 1255694401.237616 read-queue-wait: 680 ms read-time: 0 ms write-time: 21 ms' . $BLANK,
	'2009-10-16 12:00:02 (trace) (network_gthread_sendfile.c:59) write-start: 1255694402.001200 read-queue-wait: 5 ms read-time: 44 ms write-time: 1 ms' . $BLANK,
);
our @STAGES = qw(stat-queue stat proxy-queue proxy read-queue read handover write);

# One line of this project; stages that are not named take 0 us.  other => the time that belongs to no stage.
sub ours (%arg) {
	my $us    = sub ($stage) { $arg{$stage} // 0 };
	my $total = $us->('other');
	$total += $us->($_) for @STAGES;
	my $tag = $arg{tag} // 'network_gthread_aio.c.78:';
	return sprintf('%s (trace) write-start: %.6f read-queue-wait: %d ms read-time: %d ms write-time: %d ms ',
		$tag, $arg{start} // 1173101341, map { $_ / 1000 } $us->('read-queue'), $us->('read'), $us->('handover') + $us->('write'))
	    . sprintf('id=%s status=200 bytes=102400 hot=%d ', $arg{id} // 'c17.3', $arg{hot} // 0)
	    . join(' ', map { "$_-us=" . $us->($_) } @STAGES)
	    . " total-us=$total path=\"" . ($arg{path} // '/a/b.jpg') . '"';
}

sub json_line (%arg) {
	my %line = ('write-start' => $arg{start} // 1173101341.5, backend => 'gthread-aio', id => 'c1.1', status => 200, bytes => 5, hot => JSON::PP::true,
		path => $arg{path} // '/x', 'total-us' => 0);
	$line{"$_-us"} = $arg{$_} // 0 for @STAGES;
	$line{'total-us'} += $line{"$_-us"} for @STAGES;
	return JSON::PP->new->canonical->encode(\%line);
}

sub spew ($file, @lines) {
	open my $fh, '>:raw', $file or die "$file: $!";
	print $fh map { "$_\n" } @lines;
	close $fh or die "$file: $!";
	return $file;
}

# Runs accel-graph in the current directory; a reference is the text of its standard input.
# Returns exit status, standard output, standard error.
sub graph (@args) {
	my $stdin = ref $args[0] ? ${ shift @args } : '';
	open my $in, '>:raw', '.in' or die ".in: $!";
	print $in $stdin;
	close $in or die ".in: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDIN,  '<', '.in'  or die;
		open STDOUT, '>', '.out' or die;
		open STDERR, '>', '.err' or die;
		exec $^X, $SCRIPT, @args or die;
	}
	waitpid $pid, 0;
	return ($? >> 8 | ($? & 127) << 8, slurp('.out'), slurp('.err'));
}

# The JSON of a log of these lines.
sub table (@lines) {
	my ($status, $out, $err) = graph(qw(--json --no-charts), spew('t.log', @lines));
	Test::More::is $status, 0, 'exit status 0' or Test::More::diag $err;
	return JSON::PP::decode_json($out);
}

1;
