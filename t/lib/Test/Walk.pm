package Test::Walk;
# Runs accel-warm: to its end, or in the background while something happens to it.
use v5.36;
use Exporter qw(import);
use File::Temp;
use JSON::PP ();
use POSIX ();
use Test::More;
use Test::Util qw(eventually program put slurp);

our @EXPORT = qw($program run_with warm numbers start said finish put slurp eventually keys_in make_tree still_cold);

our $program = program('accel-warm');

sub run_with (@args) { return Test::Util::run_fed($program, @args) }

sub warm (@args) { return run_with('', @args) }

# The numbers of a run that ends well.
sub numbers (@args) {
	my ($rc, $out, $err) = warm('--json', @args);
	is "$rc $err", '0 ', "accel-warm @args" =~ s/[^ -~]/?/gr;
	return JSON::PP::decode_json($out || '{}');
}

# Starts it; { pid, out, err }.
sub start (@args) {
	my $self = { out => File::Temp->new, err => File::Temp->new };
	$self->{pid} = fork // die "fork: $!";
	if (!$self->{pid}) {
		POSIX::dup2(fileno $self->{out}, 1);
		POSIX::dup2(fileno $self->{err}, 2);
		{ no warnings; exec $program, '--json', @args }
		POSIX::_exit(127);
	}
	return $self;
}

sub said ($self) { return slurp("$self->{err}") }

# Waits for its end: exit status, or "signal N"; what it counted.
sub finish ($self, $seconds = 60) {
	local $SIG{ALRM} = sub { kill KILL => $self->{pid} };
	alarm $seconds;
	waitpid $self->{pid}, 0;
	alarm 0;
	my $rc = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
	return ($rc, eval { JSON::PP::decode_json(slurp("$self->{out}")) } // {});
}

sub keys_in ($state) { return scalar(() = slurp($state) =~ /^[0-9a-f]{32}$/mg) }

# dirs directories of files files each.
sub make_tree ($dir, $dirs, $files) {
	for my $d (1 .. $dirs) {
		mkdir "$dir/d$d" or die "d$d: $!";
		put("$dir/d$d/f$_", "$d.$_\n") for 1 .. $files;
	}
}

# How many of these are not touched yet. Names, not pages: a page that was read once was seen to be read again now and then.
sub still_cold ($slow, @files) {
	my $before = $slow->counts->{lookups};
	lstat $slow->dir . "/$_" or die "$_: $!" for @files;
	return $slow->counts->{lookups} - $before;
}

1;
