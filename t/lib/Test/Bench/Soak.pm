package Test::Bench::Soak;
# Everything at once for twenty minutes: what is lost, what grows, what is explained, which alert fires.
#
# `run($bench)`: clients of Test::Soak::World go on all the time. Beside them, all the time: reloads, binary upgrades, log rotation, cold files that are
# cold again, clients that leave in the middle. One after the other, each for a while: the faults below. Only the clients of a fault may see an error.
#
# The bounds: no wrong byte, no failed request of a healthy client, memory and descriptors as flat as a line, one log line at least for each kind of
# error, and each alert by the fault that it names, and silent in the rest.
use v5.36;
use List::Util qw(max min sum0);
use Time::HiRes qw(time sleep);
use Accel::Figures qw(median);
use Accel::Util qw(slurp);
use Test::Bench::Panels;
use Test::Prometheus;
use Test::Soak::Stream;
use Test::Soak::World;

use constant FASTER => 20;      # times that alerts fire here, so that five minutes are 15 s

# Seconds between two chores: primes, so that each pair of chores meets.
my @chores = (
	[reload => 7, sub ($self) { $self->{world}->reload unless $self->fault eq 'bad-reload' }],
	[upgrade => 41, sub ($self) { $self->{world}->upgrade unless $self->fault eq 'bad-reload' }],
	[rotate => 23, sub ($self) { $self->{world}->rotate }],
	[cold => 17, sub ($self) { $self->{world}->disk($_)->forget('/*') for qw(cold app inside) }],
);

# clients: streams that only this fault has; they may see errors.  instead_of: a stream that stops meanwhile.  keep: an action that is
# repeated
my @faults = (
	{ name => 'device-hangs', alert => 'AccelDeviceHanging', clients => ['hung'],
		begin => sub ($w) { $w->disk('hung')->hang }, end => sub ($w) { $w->disk('hung')->go } },
	{ name => 'queue-full', alert => 'AccelQueueFull', clients => ['flood'] },
	{ name => 'useless-accelerator', alert => 'AccelUselessAccelerator', clients => ['outside'], instead_of => 'inside' },
	{ name => 'cache-thrashing', alert => 'AccelCacheThrashing', clients => ['names'] },
	{ name => 'descriptors', alert => 'AccelDescriptorShortage', clients => ['holders'] },
	{ name => 'backend-5xx', alert => 'AccelBackend5xx', clients => ['broken'],
		begin => sub ($w) { $w->broken(1) }, end => sub ($w) { $w->broken(0) } },
	{ name => 'bad-reload', alert => 'AccelReloadFailed',
		begin => sub ($w) { $w->reload('bad') }, end => sub ($w) { $w->reload } },
	{ name => 'disk-full', alert => 'AccelLogLinesLost', clients => ['chatter'], keep => sub ($w) { $w->fill }, end => sub ($w) { $w->unfill } },
	{ name => 'down', alert => 'AccelDown', begin => sub ($w) { $w->spare(0) }, end => sub ($w) { $w->spare(1) } },
);

# fault_s: seconds that a fault lasts.  The flood asks for no name twice; otherwise it would thrash the cache, too.
sub streams ($w, $fault_s) {
	my $stream = sub ($name, %arg) {
		my ($conns, $pool, $prefix, $more) = delete @arg{qw(conns pool prefix more)};
		my @urls = $pool ? ('--urls', $w->list($pool, $prefix // "/$pool/"), $w->url . '/') : $w->url . $prefix;
		return $name => Test::Soak::Stream->new(name => $name, %arg, args => ['-c', $conns, '-t', 30, @{ $more // [] }, @urls]);
	};
	my @proof = ('--verify', 'pattern', '--from', '127.0.0.9');
	return (
		$stream->('hot', pool => 'hot', conns => 20, rate => 200, healthy => 1, more => \@proof),
		$stream->('fresh', pool => 'hot', conns => 20, rate => 50, healthy => 1, more => [@proof, '--close']),
		$stream->('cold', pool => 'cold', conns => 20, rate => 10, healthy => 1, more => \@proof),
		$stream->('app', pool => 'app', conns => 10, rate => 50, healthy => 1, more => \@proof),
		$stream->('long', pool => 'long', conns => 6, requests => 12, healthy => 1, more => ['--verify', 'pattern', '--from', '127.0.0.9', '-t', 120]),
		$stream->('vanish', pool => 'long', conns => 10, rate => 10, more => ['--abort', 100, '--from', '127.0.0.61', '-t', 120]),
		$stream->('hung', pool => 'hung', conns => 20, rate => 5, more => ['--from', '127.0.0.62']),
		$stream->('flood', pool => 'busy', conns => 300, rate => 200, seconds => max(5, int $fault_s - 5), more => ['--from', '127.0.0.63']),
		$stream->('chatter', pool => 'hot', conns => 20, rate => 1000, more => ['--from', '127.0.0.68']),
		$stream->('inside', pool => 'inside', conns => 4, rate => 20, seconds => 5, healthy => 1, more => ['--from', '127.0.0.64']),
		$stream->('outside', pool => 'hot', prefix => '/outside/', conns => 4, rate => 100, seconds => 5, more => ['--from', '127.0.0.64']),
		$stream->('names', pool => 'names', conns => 20, rate => 1000, seconds => 5, more => ['--from', '127.0.0.65', '--random']),
		$stream->('holders', prefix => '/hot/', conns => 2700, seconds => 20, more => ['--from', '127.0.0.66', '--hold', '--status', 403]),
		$stream->('broken', prefix => '/broken/', conns => 4, rate => 20, seconds => 5, more => ['--from', '127.0.0.67']),
	);
}

sub run ($bench) {
	my $why = Test::Soak::World::missing();
	die "bench: $why\n" if $why;
	my $self = bless { bench => $bench, begun => time, samples => [] }, __PACKAGE__;
	local @SIG{qw(INT TERM)} = (sub { $self->{stop} = 1 }) x 2;
	$self->{world} = Test::Soak::World->new(cores => [$bench->on_server_core]);
	$self->{world}->answers or die 'bench: the server does not answer: ' . slurp($self->{world}->log) . slurp($self->{world}->path('server.out'));
	$self->{streams} = { streams($self->{world}, $self->share * 2 / 3) };
	$self->{prometheus} = Test::Prometheus->start(rules => Test::Prometheus::shorter(slurp('examples/prometheus/stat-accel.rules.yml'), FASTER),
		targets => $self->{world}->targets, every => '1s');
	$self->{healthy} = [grep { $self->{streams}{$_}{healthy} } sort keys %{ $self->{streams} }];
	$self->go;
	$self->finish;
	return;
}

# ---------------------------------------------------------------- the time

# A fault takes two thirds of its share; the last third is silent.
sub go ($self) {
	my $seconds = $self->{bench}->opt('seconds');
	my @faults = $self->asked;
	my $share = $self->share;
	$self->{due} = { map { $_->[0] => time + $_->[1] } @chores };
	while (!$self->{stop} && (my $at = time - $self->{begun}) < $seconds) {
		my $i = int($at / $share) - 1;
		my $now = $i >= 0 && $i < @faults && $at - ($i + 1) * $share < $share * 2 / 3 ? $faults[$i] : undef;
		$self->turn($now) if ($now // 0) != ($self->{fault} // 0);
		$self->{fault}{keep}->($self->{world}) if $self->{fault} && $self->{fault}{keep};
		$self->chores;
		$_->poll for map { $self->{streams}{$_} } $self->running;
		$self->sample if time >= ($self->{sampled} // 0) + 5;
		sleep 0.1;
	}
	$self->turn(undef);
	return;
}

# Seconds of one fault and the silence after it; the first share is silent.
sub share ($self) {
	my @faults = $self->asked;
	return $self->{bench}->opt('seconds') / (@faults + 1);
}

sub fault ($self) { return $self->{fault} ? $self->{fault}{name} : '' }

# The names of the streams that run now.
sub running ($self) {
	my $fault = $self->{fault} // {};
	return (grep { $_ ne ($fault->{instead_of} // '') } @{ $self->{healthy} }, 'vanish'), @{ $fault->{clients} // [] };
}

sub asked ($self) {
	my $names = $self->{bench}->opt('case') or return @faults;
	my @asked = grep { my $f = $_; grep { $_ eq $f->{name} } @$names } @faults;
	return @asked ? @asked : die 'bench: no such fault; there are: ' . join(' ', map { $_->{name} } @faults) . "\n";
}

# From one fault to the next, or to none.
sub turn ($self, $to) {
	my $world = $self->{world};
	if (my $from = delete $self->{fault}) {
		$from->{end}->($world) if $from->{end};
		$self->{streams}{$_}->end for @{ $from->{clients} // [] };
		$self->{ended}{ $from->{name} } = time;
	}
	return unless $to;
	$self->{streams}{ $to->{instead_of} }->end if $to->{instead_of};
	$self->{fault} = $to;
	$self->{began}{ $to->{name} } = time;
	$to->{begin}->($world) if $to->{begin};
}

sub chores ($self) {
	for my $chore (@chores) {
		my ($name, $every, $do) = @$chore;
		next if time < $self->{due}{$name};
		$do->($self);
		$self->{due}{$name} += $every;
	}
}

# ---------------------------------------------------------------- samples

my $form = "%6s %-20s %8s %7s %6s %6s %6s %8s %8s\n";

sub sample ($self) {
	$self->{sampled} = time;
	my %s = ($self->{world}->sample, at => time - $self->{begun}, fault => $self->fault);
	$s{$_} //= 0 for qw(rss descriptors);
	my @sums = map { $self->{streams}{$_}->sum } @{ $self->{healthy} };
	$s{requests} = sum0(map { $_->{requests} } @sums);
	$s{failed} = sum0(map { failed($_) } @sums);
	printf $form, 's', 'fault', 'pid', 'RSS MiB', 'fds', 'thr', 'procs', 'requests', 'failed' if !@{ $self->{samples} };
	printf $form, sprintf('%.0f', $s{at}), @s{qw(fault pid)}, sprintf('%.1f', $s{rss}), @s{qw(descriptors threads processes requests failed)};
	push @{ $self->{samples} }, \%s;
	return;
}

sub failed ($sum) { return ($sum->{errors}{all} // 0) + $sum->{unanswered} }

# ---------------------------------------------------------------- the report

sub finish ($self) {
	my ($world, $bench) = @$self{qw(world bench)};
	$_->end for values %{ $self->{streams} };
	$self->sample;
	my @fired = $self->{prometheus}->fired($self->{begun}, time, max 1, int((time - $self->{begun}) / 5000));
	$self->{prometheus}->stop;
	my $ended = $world->stop;
	my $log = slurp($world->log);
	printf "\n%.0f s: %d reloads, %d upgrades, %d rotations\n", time - $self->{begun}, @$world{qw(reloads upgrades rotated)};
	$self->print_streams;
	print "\nBounds\n";
	for my $name (@{ $self->{healthy} }) {
		my $sum = $self->{streams}{$name}->sum;
		$self->{bench}->bound("$name: requests that failed, of $sum->{requests}", failed($sum), 0);
		$self->{bench}->bound("$name: wrong bytes", $sum->{errors}{wrong} // 0, 0);
	}
	$self->growth;
	$self->alerts(@fired);
	my %events = events($log);
	$self->explained(\%events);
	$self->{bench}->bound('alerts and reports of sanitizers in the log', scalar(() = $log =~ /Sanitizer|level=alert/g), 0);
	$self->{bench}->bound('processes that did not end after INT', $ended ? 0 : 1, 0);
	$bench->result->{samples} = $self->{samples};
	$bench->result->{streams} = { map { $_ => $self->{streams}{$_}->sum } keys %{ $self->{streams} } };
	print_events(\%events);
	$self->chart;
	return;
}

sub chart ($self) {
	my @samples = grep { $_->{rss} } @{ $self->{samples} };
	my @bands = map { [$self->{began}{$_} - $self->{begun}, $self->{ended}{$_} - $self->{begun}, $_] } sort keys %{ $self->{began} // {} };
	my $curve = sub ($what) { return [$what, [map { [$_->{at}, $_->{$what}] } @samples]] };
	my @p99 = map { my $name = $_; [$name, [map { [$_->[0] - $self->{begun}, $_->[1]] } @{ $self->{streams}{$name}->sum->{p99} }]] } qw(hot fresh cold app);
	Test::Bench::Panels::draw($self->{bench}, 'soak',
		{ title => 'p99 of healthy clients, in slices of 10 s', unit => 'ms', log => 1, series => \@p99, bands => \@bands },
		{ title => 'memory of the newest server', unit => 'MiB', series => [$curve->('rss')], bands => \@bands },
		{ title => 'descriptors of the newest server', unit => '', log => 1, series => [$curve->('descriptors')], bands => \@bands },
		{ title => 'threads of the newest server, processes of all', unit => '', series => [map { $curve->($_) } qw(threads processes)], bands => \@bands });
}

# Compares the last third of the time with the first, without the samples during faults that hold descriptors by design.
sub growth ($self) {
	my @calm = grep { $_->{fault} eq '' && $_->{rss} } @{ $self->{samples} };
	my $third = max 1, int @calm / 3;
	for my $what ([rss => 24], [descriptors => 300], [threads => 16], [processes => 4]) {
		my ($name, $room) = @$what;
		$self->{bench}->bound("$name: median of the last third of the quiet time above the first third",
			median(map { $_->{$name} } @calm[-$third .. -1]) - median(map { $_->{$name} } @calm[0 .. $third - 1]), $room);
	}
}

# Each alert must fire during the fault that names it, and be silent in the rest.  It may end a while after its fault.
sub alerts ($self, @fired) {
	my %by = map { $_->{alert} => $_ } grep { $_->{alert} } @faults;
	print "\nAlerts\n";
	for my $f (@fired) {
		printf "  %-28s %6.0f s to %6.0f s  %s\n", $f->{labels}{alertname}, (map { $_ - $self->{begun} } @$f{qw(from to)}), $self->during($f->{from}) // 'no fault';
	}
	for my $fault (grep { $_->{alert} && $self->{began}{ $_->{name} } } $self->asked) {
		my @mine = grep { $_->{labels}{alertname} eq $fault->{alert} } @fired;
		my @in = grep { ($self->during($_->{from}) // '') eq $fault->{name} } @mine;
		$self->{bench}->bound("$fault->{alert} not seen firing during $fault->{name}", @in ? 0 : 1, 0);
		$self->{bench}->bound("$fault->{alert} fired at another time", @mine - @in, 0);
	}
	my @others = grep { !$by{ $_->{labels}{alertname} } } @fired;
	$self->{bench}->bound('other alerts: ' . join(' ', map { $_->{labels}{alertname} } @others), scalar @others, 0);
	return;
}

# The fault that was on, or had just ended.
sub during ($self, $at) {
	my @on = grep { $self->{began}{$_} <= $at && $at <= $self->{ended}{$_} + 10 } keys %{ $self->{began} };
	return (sort { $self->{began}{$b} <=> $self->{began}{$a} } @on)[0];
}

sub print_streams ($self) {
	my $row = "%-9s %9s %9s %9s  %-40s %s\n";
	print "\n";
	printf $row, 'clients', 'requests', 'failed', 'p99 ms', 'errors', 'status';
	for my $name (sort keys %{ $self->{streams} }) {
		my $sum = $self->{streams}{$name}->sum;
		next unless $sum->{slices};
		printf $row, $name, $sum->{requests}, failed($sum), sprintf('%.2f', median(map { $_->[1] } @{ $sum->{p99} })), counts($sum->{errors}, 'all'), counts($sum->{status});
	}
}

sub counts ($of, @but) {
	return join ', ', map { "$_ $of->{$_}" } grep { my $k = $_; $of->{$k} && !grep { $_ eq $k } @but } sort keys %$of;
}

# Each error that a client saw has a line that says why: a line of its own, or one that counts suppressed lines.  Replies 5xx of an
# application are passed on; they are in the access log.
sub explained ($self, $events) {
	my %seen;
	for my $name (sort keys %{ $self->{streams} }) {
		my $sum = $self->{streams}{$name}->sum;
		my $kind = $name eq 'broken' ? 'application' : 'server';
		$seen{$kind} += sum0(map { $sum->{status}{$_} } grep { /^5/ } keys %{ $sum->{status} });
		$seen{cut} += sum0(map { $sum->{errors}{$_} // 0 } qw(refused reset short)) if $name ne 'vanish';
	}
	my $told = sub (@names) { sum0(map { ($_->{lines} // 0) + ($_->{suppressed} // 0) } map { $events->{$_} // () } @names) };
	my %told = (server => $told->(qw(reply.failed exchange.failed)), cut => $told->(qw(connection.made-room file.stalled)), application => $self->{world}->passed_on);
	print "\nErrors and the lines that explain them\n";
	for my $kind (sort keys %seen) {
		$self->{bench}->bound("$kind: $seen{$kind} seen by clients, $told{$kind} told; not told", max(0, $seen{$kind} - $told{$kind}), 0);
	}
}

# How often each event was logged, and how often it was suppressed.
sub events ($log) {
	my %n;
	while ($log =~ /^.* ev=(\S+)(.*)$/mg) {
		my ($event, $rest) = ($1, $2);
		$n{$event}{lines}++;
		$n{$event}{suppressed} += $1 if $rest =~ / suppressed=(\d+)/;
		$n{$1}{suppressed} += $2 if $event eq 'log.suppressed' && $rest =~ / of=(\S+) lines=(\d+)/;
	}
	return %n;
}

sub print_events ($n) {
	print "\nEvents of the error log\n";
	printf "  %-32s %8d lines%s\n", $_, $n->{$_}{lines} // 0, $n->{$_}{suppressed} ? ", $n->{$_}{suppressed} suppressed" : '' for sort keys %$n;
}

1;
