package Test::AccelLoad;
# accel-load in a process of its own.
#
#     my $load = Test::AccelLoad->start($srv, '/a', '-c', 20, '-n', 1000);
#     is $load->report->{errors}{all}, 0, 'no request fails';
#
# `start` returns at once; so does `start_with`, whose arguments name their URLs. `report` waits for the end and returns the
# JSON object that `accel-load --json` prints, with the exit status as `exit`.
#
# Functions about reports: `errors` are those that are not 0, as text: "reset 3"; `adds_up` tests that the numbers fit together.
use v5.36;
use Exporter 'import';
use JSON::PP ();
use List::Util qw(sum0);
use Test::More ();
use Test::Util ();

our @EXPORT_OK = qw(errors adds_up);

sub start ($class, $srv, $path, @args) { return $class->start_with(@args, 'http://127.0.0.1:' . $srv->port . $path) }

sub start_with ($class, @args) {
	my $pid = open my $fh, '-|', Test::Util::program('accel-load'), '--json', @args or die "accel-load: $!";
	return bless { pid => $pid, fh => $fh, args => "@args" }, $class;
}

# True once the report can be read.
sub ended ($self) {
	my $bits = '';
	vec($bits, fileno $self->{fh}, 1) = 1;
	return select($bits, undef, undef, 0) > 0;
}

sub report ($self) {
	my $fh = $self->{fh};
	local $/;
	my $text = <$fh> // '';
	close $fh;
	my $exit = $? >> 8;
	my $r = eval { JSON::PP::decode_json($text) } // die "accel-load $self->{args}: no report: $text\n";
	return { %$r, exit => $exit };
}

# Ends it without a report.
sub stop ($self) { kill TERM => $self->{pid}; close $self->{fh}; return }

# Runs it to its end.
sub run ($class, @load) { return $class->start(@load)->report }
sub run_with ($class, @args) { return $class->start_with(@args)->report }

sub errors ($r) {
	return join ' ', map { "$_ $r->{errors}{$_}" } grep { $_ ne 'all' && $r->{errors}{$_} } sort keys %{ $r->{errors} };
}

sub adds_up ($r, $what) {
	my %e = %{ $r->{errors} };
	my $all = delete $e{all};
	Test::More::is($all, sum0(values %e), "$what: all errors are the sum of their kinds");
	Test::More::is($r->{requests}, sum0(@$r{qw(answered failed aborted unanswered)}), "$what: each request ends in one way");
	Test::More::is($r->{answered}, sum0(values %{ $r->{status} }), "$what: each answer has a status");
}

1;
