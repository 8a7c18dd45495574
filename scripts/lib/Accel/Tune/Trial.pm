package Accel::Tune::Trial;
# One measurement: cold files for many clients, a hot file beside them.
#
#     package My::Trial;
#     use parent 'Accel::Tune::Trial';
#     sub begin ($self, $setting) { ... return $peer }    # an Accel::Peer; dies with the reason
#
#     my $trial = My::Trial->new(files => $files, seconds => 2, clients => 64);
#     my $result = $trial->measure($setting);     # { throughput, p99, seconds, ... } or { failed => why, seconds }
#
# Each measurement makes the files cold, starts a server of its own on the loopback, loads the hot file into memory, and asks for the cold files, each
# once, in the same order each time. Meanwhile a few clients ask for the hot file by the clock, whether it answers or not: its p99 is what
# a visitor of the site notices.
#
# Before the first measurement, one of `seconds` tells how many files that is. All others ask for this many files, for twice `seconds` at most. A
# server that looks up many names before it reads the first file delivers in bursts, and a clock would cut such a burst anywhere.
#
# `interrupt` ends the load that runs; `measure` then returns undef.
use v5.36;
use File::Temp       ();
use JSON::PP         ();
use List::Util       qw(max min);
use Time::HiRes      qw(sleep time);
use Accel::Util      qw(program);

use constant { HOT_RATE => 200, HOT_CLIENTS => 4, HOT_FROM => '127.0.0.2', PATIENCE => 2, ENDS_S => 2, REPORT_MAX => 1_048_576 };

sub new ($class, %arg) {
	return bless { seconds => 2, clients => 64, headers => [], %arg, dir => File::Temp->newdir('accel-tune-XXXXXX', TMPDIR => 1), kids => {} }, $class;
}

sub measure ($self, $setting) {
	my $start = time;
	eval { $self->_count($self->_run($setting, $self->{seconds})->{answered}) } unless $self->{counted}++;
	my $result = eval { $self->_run($setting, PATIENCE * $self->{seconds}) } // { failed => _reason($@) };
	return undef if $self->{interrupted};
	$result->{seconds} = time - $start;
	return $result;
}

# The message of a server or of perl, on one line.  From a log only the lines with errors.
sub _reason ($text) {
	my @lines = grep { /\S/ && !/ level=(?:debug|info|notice) / } split /\n/, $text;
	my @wrong = grep { !/ level=warn / } @lines;
	@lines = @wrong if @wrong > 1;
	s/^ts=[\d.]+ // for @lines;
	return join('; ', @lines[0 .. min(2, $#lines)]) =~ s/ at \S+ line \d+\.?//r =~ s/[\x00-\x1f\x7f]/?/gr;
}

# The server ends with this function.
sub _run ($self, $setting, $limit) {
	my $files = $self->{files};
	$files->make_cold;
	$self->{warning} //= $files->warning // '';
	my $server = $self->begin($setting);
	my $url = $server->url;
	eval { $self->_check_hot($url); 1 } or die _ends($server) ? $server->said : $@;
	my $hot = $self->_load('-c', HOT_CLIENTS, '-r', HOT_RATE, '-d', $self->{seconds}, '--from', HOT_FROM, $self->_headers, $url . $files->hot);
	my $cold = $self->_load('-c', $self->{clients}, '-n', $files->used, '-d', $limit, '-t', 60, $self->_headers, '-u', $files->list($self->{dir}), "$url/");
	($cold, $hot) = ($self->_report($cold), $self->_report($hot));
	return $self->_result($cold, $hot);
}

# A server may listen before it finds that it cannot start.
sub _ends ($server) {
	for (1 .. ENDS_S / 0.02) {
		return 1 unless $server->alive;
		sleep 0.02;
	}
	return 0;
}

sub _result ($self, $cold, $hot) {
	die "none of the cold files was answered: @{[_errors($cold)]}\n" unless $cold->{answered} && $cold->{mb_per_s} > 0;
	die "the hot file was not answered: @{[_errors($hot)]}\n" unless $hot->{answered};
	$self->{errors} += $cold->{errors}{all} + $hot->{errors}{all};
	return {
		throughput => $cold->{mb_per_s}, p99 => $hot->{latency_us}{p99} / 1000, answered => $cold->{answered},
		cold_p99 => $cold->{latency_us}{p99} / 1000, errors => $cold->{errors}{all} + $hot->{errors}{all},
	};
}

# Requests that failed, in all measurements.
sub errors ($self) { return $self->{errors} // 0 }

# The reason why the figures are doubtful, or undef.
sub warning ($self) { return $self->{warning} || undef }

# From now on uses as many files as the first measurement got, and a few more for faster settings.
sub _count ($self, $answered) {
	$self->{files}->use(max(2 * $self->{clients}, $answered));
}

sub _errors ($report) {
	my $errors = $report->{errors};
	my @seen = map { "$errors->{$_} $_" } grep { $_ ne 'all' && $errors->{$_} } sort keys %$errors;
	return @seen ? join(', ', @seen) : 'no answer in time';
}

sub _headers ($self) { return map { ('-H', $_) } @{ $self->{headers} } }

# The first request of the hot file loads it; it must be a file.
sub _check_hot ($self, $url) {
	my $report = $self->_report($self->_load('-n', 1, '-d', 10, $self->_headers, $url . $self->{files}->hot));
	return if $report->{answered} && !$report->{errors}{all};
	die "the hot file $self->{files}{hot} is not served (" . _errors($report) . "); is the document root $self->{files}{root} right for this host name?\n";
}

# ---------------------------------------------------------------- the load generator

sub _load ($self, @args) {
	die "interrupted\n" if $self->{interrupted};
	my $pid = open my $fh, '-|', program('accel-load'), '--json', @args or die "accel-load: $!\n";
	$self->{kids}{$pid} = 1;
	return { fh => $fh, pid => $pid };
}

sub _report ($self, $load) {
	my $text = '';
	while (length $text < REPORT_MAX) {
		my $n = sysread $load->{fh}, $text, 65_536, length $text;
		next if !defined $n && $!{EINTR};
		last unless $n;
	}
	close $load->{fh};
	delete $self->{kids}{ $load->{pid} };
	die "interrupted\n" if $self->{interrupted};
	return eval { JSON::PP::decode_json($text) } // die "accel-load printed no report\n";
}

# For a handler of signals.
sub interrupt ($self) {
	$self->{interrupted} = 1;
	kill TERM => keys %{ $self->{kids} };
}

1;
