package Test::Pool;
# Runs accel-pool, and looks at the files of a pool.
use v5.36;
use Exporter qw(import);
use File::Find ();
use JSON::PP ();
use POSIX ();
use Test::More;
use Test::Util qw(eventually program put slurp temp_tree);

our @EXPORT = qw($program pool numbers run_with start files put slurp eventually temp_tree);

our $program = program('accel-pool');

sub run_with (@args) { return Test::Util::run_fed($program, @args) }

sub pool (@args) { return run_with('', @args) }

# The numbers of a run that succeeds.
sub numbers ($command, @args) {
	my ($rc, $out, $err) = pool($command, '--json', @args);
	is "$rc $err", '0 ', "accel-pool $command @args" =~ s/[^ -~]/?/gr;
	return JSON::PP::decode_json($out || '{}');
}

# Starts it in the background; returns its pid.  Standard output and error go to the files.
sub start ($out, $err, @args) {
	my $pid = fork // die "fork: $!";
	return $pid if $pid;
	open STDOUT, '>', $out or POSIX::_exit(126);
	open STDERR, '>', $err or POSIX::_exit(126);
	{ no warnings; exec $program, @args }
	POSIX::_exit(127);
}

# The paths of all files below, with their sizes.
sub files ($dir) {
	my %size;
	File::Find::find({ no_chdir => 1, wanted => sub { $size{ substr $_, length("$dir/") } = -s _ if -f } }, "$dir");
	return \%size;
}

1;
