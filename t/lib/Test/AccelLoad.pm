package Test::AccelLoad;
# accel-load in a process of its own.
#
#     my $load = Test::AccelLoad->start($srv, '/a', '-c', 20, '-n', 1000);
#     is $load->report->{errors}{all}, 0, 'no request fails';
#
# `start` returns at once. `report` waits for the end and returns the JSON object that `accel-load --json` prints.
use v5.36;
use JSON::PP ();
use Test::Util ();

sub start ($class, $srv, $path, @args) {
	my $pid = open my $fh, '-|', Test::Util::program('accel-load'), '--json', @args, 'http://127.0.0.1:' . $srv->port . $path
	    or die "accel-load: $!";
	return bless { pid => $pid, fh => $fh }, $class;
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
	return eval { JSON::PP::decode_json($text) } // die "accel-load printed no report: $text\n";
}

# Ends it without a report.
sub stop ($self) { kill TERM => $self->{pid}; close $self->{fh}; return }

# Runs it to its end.
sub run ($class, @load) { return $class->start(@load)->report }

1;
