package Accel::Bench;
# Measures servers: one cell, or a matrix of cells in interleaved rounds.
#
#     Accel::Namespace::enter(@ARGV);             # as root: a network and mounts of our own
#     my $bench = Accel::Bench->new(rounds => 2, seconds => 4);
#     my $result = $bench->measure({ server => 'accel:adaptive', storage => 'slowfs:2', files => '100k', concurrency => 100, read_threads => 16 });
#     say "$result->{mb_per_s} MB/s, p99 $result->{p99_ms} ms";
#
#     my @rows = $bench->matrix(map { { server => $_, storage => 'hot', files => '100k' } } qw(accel nginx));
#     say "$_->{server}: $_->{median}{requests_per_s}" for @rows;
#     say for $bench->notes;
#
# A cell:
#
# `server` (Accel::Bench::Servers), `backend` (of accel; part of the name otherwise), `storage` and `files` (Accel::Bench::Storage), `concurrency`
# (100), `stat_threads`, `read_threads`, `read_ahead` (server.network-chunk-size, bytes), `noatime`, `accel` (none, tcp or unix: fcgi-stat-accel in
# front), `accel_threads`, `workers` (1), `timeout` (60 s without a byte), `seconds`, `fetches` (the cell ends after this many requests, too),
# `timing` (a line of stage times for each file in the error log), `conf` (lines added to the configuration), `lookup_ms`, `read_ms` of slow disks,
# `atime` (ext4 writes access times). Keys with another name are kept and shown, for example `label`.
#
# On a slow disk a cell of files up to 1 MiB ends after as many files as keep the disk busy for `seconds`, because servers that look up 64 names
# before they read 64 files deliver in bursts, and a clock would cut such a burst anywhere. Larger files are cut by the clock, and their
# requests_per_s are bytes per second over the size.
#
# A result:
#
# `mb_per_s` (10^6 bytes of bodies), `requests_per_s`, p50_ms, p90_ms, p99_ms, `max_ms`, first_byte_p50_ms, `first_byte_max_ms`, connect_p50_ms,
# `errors` (by kind), `cpu_us` (of the server, for each request), `server_cpu_percent` (of one core), `us` `sy` `id` `wa` (percent of the machine),
# `cs_per_s`, `bi_per_s`, `bo_per_s` (KiB), `disk` (`util`, `queue`, `await_ms`, `read_mb_per_s`). What cannot be known is undef.
#
# A row of `matrix` is the cell with `median`, `rounds` (the results) and `spread_percent` (half of the range of requests_per_s). A cell that cannot
# be measured has no row; `notes` say why.
use v5.36;
use Accel::Bench::Engine  ();
use Accel::Bench::Servers ();
use Accel::Bench::Storage ();
use Accel::Figures qw(medians spread);
use Accel::Machine ();
use Accel::Util qw(slurp);
use Accel::Proc    ();
use File::Copy  ();
use IO::Select  ();
use JSON::PP    ();
use POSIX       ();
use Time::HiRes qw(time);

use constant { SAMPLE_S => 0.1, LINES_S => 3, WARM_UP_S => 5, PATIENCE => 4, CONCURRENCY_MAX => 10_000, THREADS_MAX => 1024,
	READ_AHEAD_MAX => 1_048_576, SECONDS_MAX => 3600, ROUNDS_MAX => 100, WORKERS_MAX => 64, FETCHES_MAX => 1_000_000_000 };

# The numbers of a cell: [least, most, default].
my %number = (
	concurrency => [1, CONCURRENCY_MAX, 100], stat_threads => [0, THREADS_MAX], read_threads => [0, THREADS_MAX],
	read_ahead => [4096, READ_AHEAD_MAX], accel_threads => [1, THREADS_MAX], workers => [1, WORKERS_MAX, 1],
	timeout => [1, SECONDS_MAX, 60], fetches => [1, FETCHES_MAX], seconds => [0.2, SECONDS_MAX], lookup_ms => [0, 10_000], read_ms => [0, 10_000],
);

# rounds, seconds: of each cell; dir, urls: files of the user; keep: a directory for error logs; yes: load other hosts without asking;
# progress: called with (cells done, cells in all, cell).
sub new ($class, %opt) {
	my $self = bless { rounds => 2, seconds => 3, %opt, notes => [], storages => {}, left_out => {} }, $class;
	check_number('rounds', $self->{rounds}, 1, ROUNDS_MAX);
	$self->{engine} = Accel::Bench::Engine->new(silent => 1, rounds => $self->{rounds}, seconds => $self->{seconds});
	$self->{proc} = Accel::Proc->new;
	return $self;
}

# What the figures depend on.
sub machine ($self) {
	my $facts = Accel::Machine::facts();
	return { %$facts, cpu => $facts->{cpu} // 'unknown', system => $facts->{system} // 'Linux',
		pinned => $self->{engine}->cpu_of_servers ? JSON::PP::true() : JSON::PP::false(),
		versions => { map { my $v = Accel::Bench::Servers::version($_); defined $v ? ($_ => $v) : () } qw(accel nginx lighttpd apache h2o) } };
}

sub engine ($self) { return $self->{engine} }
sub notes ($self)  { return (@{ $self->{notes} }, $self->{engine}->notes) }

sub note ($self, $text) {
	push @{ $self->{notes} }, $text unless grep { $_ eq $text } @{ $self->{notes} };
}

sub check_number ($name, $value, $least, $most) {
	die "$name: expected $least to $most, got \"$value\"\n" unless $value =~ /^\d+(?:\.\d+)?\z/ && $value >= $least && $value <= $most;
}

# The cell with its defaults; dies with the reason when it is wrong.
sub complete ($self, $cell) {
	my %c = (server => 'accel', storage => 'hot', files => '100k', accel => 'none', noatime => 0, seconds => $self->{seconds}, %$cell);
	$c{server} .= ":$c{backend}" if $c{server} eq 'accel' && defined $c{backend};
	$c{server} = 'accel:adaptive' if $c{server} eq 'accel';
	($c{backend}) = $c{server} =~ /^accel:(.*)/;
	for my $name (keys %number) {
		my ($least, $most, $default) = @{ $number{$name} };
		$c{$name} //= $default;
		defined $c{$name} ? check_number($name =~ tr/_/-/r, $c{$name}, $least, $most) : delete $c{$name};
	}
	die "accel: expected none, tcp or unix, got \"$c{accel}\"\n" unless $c{accel} =~ /^(?:none|tcp|unix)\z/;
	Accel::Bench::Servers::parse($c{server});
	Accel::Bench::Storage::parse($c{storage});
	Accel::Bench::Storage::parse_set($c{files});
	return \%c;
}

# What is left out and why, if this cell cannot be measured here; or undef.
sub left_out ($self, $cell) {
	my $c = $self->complete($cell);
	my $why = $self->{left_out}{"$c->{server} $c->{accel}"} //= Accel::Bench::Servers::missing($c->{server}, $c->{accel}) // '';
	return label($cell) . " left out: $why" if $why ne '';
	return if Accel::Bench::Servers::parse($c->{server})->{url};
	my ($ok, $no) = $self->storage($c->{storage})->usable;
	return $ok ? undef : "$c->{storage} left out: $no";
}

sub storage ($self, $spec) {
	return $self->{storages}{$spec} //= Accel::Bench::Storage->new($self->{engine}, $spec, files_dir => $self->{dir}, urls => $self->{urls});
}

# ---------------------------------------------------------------- one cell, once

sub measure ($self, $cell) {
	my $c = $self->complete($cell);
	my $spec = Accel::Bench::Servers::parse($c->{server});
	return $self->_load($c, undef, $spec->{url} . '/', { list => $self->{urls} }) if $spec->{url} && defined $self->{urls};
	return $self->_load($c, undef, $spec->{url}, {}) if $spec->{url};
	my $storage = $self->storage($c->{storage});
	my $place = $storage->begin($c);
	my ($srv, $result);
	my $done = eval {
		$srv = Accel::Bench::Servers::start($c, $place->{root}, $self->{engine}->cpu_of_servers);
		$self->_warm_up($srv, $c, $place) if $c->{storage} eq 'hot';
		$result = $self->_load($c, $srv, $srv->url . '/', $place, $storage);
		1;
	};
	my $why = $@;
	$self->_keep($c, $srv, $result) if $srv && defined $self->{keep};
	$storage->end;
	$srv->stop if $srv;
	die $why unless $done;
	return $result;
}

# Fetches each file once, so that caches of the server hold what they can.  The bytes are checked here: checking later would cost the load
# generator more than receiving them from memory.
sub _warm_up ($self, $srv, $c, $place) {
	my $r = $self->{engine}->load(-c => 10, -n => $place->{count}, -u => $place->{list}, -d => WARM_UP_S, verify($place), $srv->url . '/');
	die "$c->{server}: $r->{errors}{wrong} of $r->{requests} answers have wrong bytes\n" if $r->{errors}{wrong};
}

sub verify ($place) { return $place->{verify} ? ('--verify', $place->{verify}) : () }

sub load_args ($c, $place) {
	my @args = (-c => $c->{concurrency}, '--silence' => $c->{timeout}, defined $place->{list} ? (-u => $place->{list}) : ());
	push @args, verify($place) if $c->{storage} ne 'hot';
	return (@args, -n => $c->{fetches}, -d => $c->{seconds}) if $c->{fetches};
	return (@args, -n => $place->{at_most}, -d => POSIX::ceil(PATIENCE * $c->{seconds})) if $place->{at_most};
	return (@args, -n => $place->{count}, -d => $c->{seconds}) if $c->{storage} eq 'evict';
	return (@args, -d => $c->{seconds});
}

sub _load ($self, $c, $srv, $url, $place, $storage = undef) {
	my $engine = $self->{engine};
	my ($before, $cpu, $at) = ($self->{proc}->snapshot, $srv ? $srv->cpu : undef, time);
	my $load = $engine->load_begin(load_args($c, $place), $self->{yes} ? '--yes' : (), $url);
	my $ready = IO::Select->new($load->{fh});
	until ($ready->can_read(SAMPLE_S)) { $storage->sample if $storage }
	my $used = $srv ? $srv->cpu - $cpu : undef;
	my $report = $engine->load_end($load);
	my $lanes = Accel::Proc::lanes($before, $self->{proc}->snapshot);
	my $seconds = time - $at;
	my $f = figures($report, $used, $seconds, $lanes, $storage ? $storage->disk($seconds, $lanes) : undef);
	# Most transfers are cut by the clock.
	$f->{requests_per_s} = $f->{mb_per_s} * 1e6 / $place->{bytes}
	    if $place->{bytes} && $c->{storage} ne 'hot' && Accel::Bench::Storage::by_clock($place->{bytes});
	return $f;
}

# Figures from the report of the load generator, the seconds of CPU time of the server, and lanes.
sub figures ($report, $used, $seconds, $lanes, $disk) {
	my %us = $report->{answered} ? %{ $report->{latency_us} // {} } : ();
	my $ms = sub ($us) { return defined $us ? $us / 1000 : undef };
	return {
		mb_per_s => $report->{mb_per_s}, requests_per_s => $report->{requests_per_s}, requests => $report->{requests}, answered => $report->{answered},
		(map { ("${_}_ms" => $ms->($us{$_})) } qw(p50 p90 p99 max)), (map { ("${_}_p50_ms" => $ms->($report->{"${_}_us"}{p50})) } qw(first_byte connect)), first_byte_max_ms => $ms->($report->{first_byte_us}{max}),
		errors => $report->{errors} // {},
		cpu_us => defined $used && $report->{answered} ? 1e6 * $used / $report->{answered} : undef,
		server_cpu_percent => defined $used ? 100 * $used / $seconds : undef,
		(map { ("${_}_per_s" => $disk->{$_} // $lanes->{$_}) } qw(cs bi bo)), (map { $_ => $lanes->{$_} } qw(us sy id wa)),
		disk => $disk, seconds => $seconds,
	};
}

# The server notices that a client has left only when it sends, and then writes the line of the request.
sub await_lines ($file, $requests) {
	my $until = time + LINES_S;
	until (time > $until) {
		my $lines = () = (-e $file ? slurp($file) : '') =~ /^.*\bwrite-start\b/mg;
		return $lines if $lines >= $requests;
		select undef, undef, undef, SAMPLE_S;
	}
	return;
}

# The error log of this cell, under a name that tells which cell it is.
sub _keep ($self, $c, $srv, $result = undef) {
	await_lines($srv->error_log, $result->{requests}) if $c->{timing} && $result;
	my $name = join '_', map { s/[^\w.-]+/-/gr } map { "$_" } $c->{label} // (grep { defined } @$c{qw(server storage files concurrency)});
	my $from = $srv->error_log;
	File::Copy::copy($from, "$self->{keep}/$name.log") or $self->note("$self->{keep}/$name.log: $!") if -e $from;
}

# ---------------------------------------------------------------- many cells

# Each round measures all cells and begins with another one each time, so that a noisy minute affects all of them.
sub matrix ($self, @cells) {
	my @rows;
	for my $cell (map { $self->complete($_) } @cells) {
		my $why = $self->left_out($cell);
		$why ? $self->note($why) : push @rows, { %$cell, rounds => [] };
	}
	my ($done, $all) = (0, @rows * $self->{rounds});
	for my $round (0 .. $self->{rounds} - 1) {
		for my $row (rotated($round, @rows)) {
			$self->{progress}->($done++, $all, $row) if $self->{progress};
			next if $row->{failed};
			my $result = eval { $self->measure($row) };
			if (!$result) {
				$row->{failed} = 1;
				$self->note(label($row) . ' left out: ' . $@ =~ s/\s*\n\s*/; /gr =~ s/; \z//r);
				next;
			}
			push @{ $row->{rounds} }, $result;
		}
	}
	$self->{progress}->($all, $all, undef) if $self->{progress};
	return map { summed($_) } grep { !$_->{failed} } @rows;
}

sub label ($cell) { return $cell->{label} // $cell->{server} // 'accel' }

sub rotated ($by, @list) { return @list ? (@list[$by % @list .. $#list], @list[0 .. $by % @list - 1]) : () }

# Medians of all figures, including those of the disk; errors add up.
sub summed ($row) {
	my @rounds = @{ $row->{rounds} };
	my %m = %{ medians(@rounds) };
	$m{disk} = medians(grep { $_ } map { $_->{disk} } @rounds) if grep { $_->{disk} } @rounds;
	my %errors;
	for my $errors (map { $_->{errors} } @rounds) { $errors{$_} += $errors->{$_} for keys %$errors }
	return { %$row, median => { %m, errors => \%errors }, spread_percent => spread(map { $_->{requests_per_s} } @rounds) };
}

1;
