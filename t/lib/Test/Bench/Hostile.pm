package Test::Bench::Hostile;
# Every attack at once against one server, and what a victim sees of it.
#
# `run($bench)` goes through cycles: the victim alone for a quarter of the time, beside all attacks for the rest. Reloads (USR1, with an
# include_shell in the configuration) and log rotations (mv and HUP) go on all the time. The victim asks for hot files and, at the same
# time, for cold ones on a slow disk.
#
# The bounds: the p99 of hot files beside the attacks is at most twice that of the same run alone. Cold look-ups take turns by client
# address, so with `n` clients a victim's fair share of the time alone is `n` times as long; its p99 is at most twice that. No wrong byte, no
# failed request, one process, descriptors, threads and memory as flat as a line, and a line in the access log for each reply.
use v5.36;
use List::Util qw(max min sum0);
use POSIX ();
use Accel::Figures qw(median);
use Accel::Peer;
use Test::Bench::Panels;
use Test::Hostile;
use Test::Server;
use Time::HiRes qw(time sleep);

# Attacks that hold connections, memory, descriptors, places in queues or sockets of applications run without pause.  Attacks that only cost
# processor time have a pause, because the server does not divide processor time by client (doc/LIMITS.md).
my @attacks = (
	'slow-read,conns=100', 'slow-app,conns=20', 'no-read,conns=50', 'slow-head,conns=200', 'slow-body,conns=20', 'slow-chunks,conns=20',
	'stop-body,conns=20', 'silent,conns=600', 'half-head,conns=1000', 'connect-reset,conns=20,rate=200', 'cold-reset,conns=20,rate=50',
	'cold,conns=50,pause=50', 'absent,conns=10,pause=20', 'absent,conns=250,pause=500,from=127.0.1.1-250', 'ranges,conns=5,pause=1000',
	'agents,conns=10,pause=50', 'big-head,conns=10,pause=50,rate=50', 'bad-chunks,conns=10,rate=50,pause=50', 'noise,conns=10,rate=50',
	'one-each,conns=20,rate=200', 'bad-stream,conns=10,rate=50,pause=50', 'behind-cold,conns=5,pause=200', 'stale-name,conns=5,pause=50',
	'leave-behind,conns=10,rate=50',
	'h2-reset,conns=5,rate=20', 'h2-reset-cold,conns=5,rate=20,pause=20', 'h2-made-reset,conns=5,rate=20', 'h2-many,conns=5,rate=20', 'h2-continuation,conns=5,rate=20',
	'h2-empty-cont,conns=5,rate=20', 'h2-empty-head,conns=5,rate=20', 'h2-empty-data,conns=5,rate=20', 'h2-bomb,conns=5,rate=20', 'h2-ping,conns=5,rate=20',
	'h2-settings,conns=5,rate=20', 'h2-priority,conns=5,rate=20,pause=50', 'h2-prio-update,conns=5,rate=20', 'h2-window-0,conns=10', 'h2-window-1,conns=5,rate=20',
	'h2-slow-read,conns=10', 'h2-slow-head,conns=50', 'h2-slow-body,conns=20', 'h2-silent,conns=200', 'h2-noise,conns=10,rate=50',
);
my $cold_clients = 2;                           # they keep the slow disk busy: the attacker's address and the victim
my @growth = (descriptors => 400, threads => 64, rss => 64); # room for it; MiB for rss

my $stop;

sub run ($bench) {
	my $why = Test::Hostile::missing(app => 1, slow => 1);
	die "bench: $why\n" if $why;
	local @SIG{qw(INT TERM)} = (sub { $stop = 1 }) x 2;
	my $self = bless { bench => $bench, samples => [], rotated => 0, reloads => 0, lines => 0, begun => time }, __PACKAGE__;
	$self->start;
	$self->{world}->base_line;
	my $end = time + $bench->opt('seconds');
	my $beside = max 3, min 45, $bench->opt('seconds') / 4;
	$self->cycle($beside / 3, $beside, $end) while !$stop && time < $end;
	$self->finish;
}

sub start ($self) {
	my $agents = join '', map { qq{\$HTTP["useragent"] =~ "a$_ " { server.name = "a$_" }\n} } 0 .. 14;
	my $user = $> == 0 && getpwnam 'www-data' ? qq{server.username = "www-data"\nserver.groupname = "www-data"\n} : '';
	$self->{bench}->note('not started by root: the server does not change its user') unless $user;
	$self->{responder} = Accel::Peer->start('responder', root => $self->{bench}->files);
	my $stream = Test::Server::proxy_block('^/stream/', '127.0.0.1:' . $self->{responder}->port, protocol => 'http', 'max-pool-size' => 8);
	$stream =~ s/\}\n\z/\tserver.stream-request-body = 1\n\tserver.error-handler = "\/hot\/0.bin"\n}\n/;
	$self->{world} = Test::Hostile->new(app => 1, slow => 1, conf => qq{$stream\ninclude_shell "echo server.max-keep-alive-idle = 5"\nserver.max-worker = 1\n$user$agents},
		server => { under => [$self->{bench}->on_server_core, 'env'], unchecked => 1 });
	$self->{pid} = $self->server->pid;
}

# The attacks with these names, all when none is named.
sub asked ($names) {
	return @attacks unless $names;
	my @asked = grep { my ($name) = /^([\w-]+)/; grep { $_ eq $name } @$names } @attacks;
	return @asked if @asked;
	my %known = map { /^([\w-]+)/ => 1 } @attacks;
	die 'bench: no such attack; there are: ' . join(' ', sort keys %known) . "\n";
}

sub server { return $_[0]{world}->server }

# ---------------------------------------------------------------- measuring

sub cycle ($self, $alone, $beside, $end) {
	$self->{world}->slow->forget;           # the files of the cycle before are cold again
	sleep 1.1;                              # what a thread read counts as being in memory for a second (io_file_proved)
	$self->sample(0, min $alone, $end - time) unless $stop;
	return if $stop || time >= $end;
	my $attack = $self->{world}->attack(\($beside + 60), asked($self->{bench}->opt('case')));
	my $until = min $end, time + $beside;
	$self->sample(1, max 1, min 5, $until - time) while !$stop && time < $until;
	push @{ $self->{did} }, $self->ended($attack, 'INT') // ();
	return;
}

# The report of a program; undef if Ctrl-C ended it, too.
sub ended ($self, @kid) {
	my $report = eval { $self->{world}->end(@kid) };
	die $@ if !$report && !$stop;
	return $report;
}

# One sample: the victim for some seconds, and what the server has in the middle of it.
sub sample ($self, $attacked, $seconds) {
	my $world = $self->{world};
	my @kinds = qw(hot cold);
	my %kid = map { $_ => $world->_victim_begin($_, max 0.5, $seconds) } @kinds;
	my ($cpu, $begun) = ($self->server->cpu, time);
	$self->storm($seconds);
	my $busy = 100 * ($self->server->cpu - $cpu) / (time - $begun);
	my %s = (at => time - $self->{begun}, attacked => $attacked, busy => $busy, descriptors => $self->server->descriptors, rss => $world->server->rss,
		threads => scalar(() = glob "/proc/$self->{pid}/task/*"), alive => defined $self->server->wait_exit(0) ? 0 : 1);
	for my $kind (@kinds) {
		my $r = $self->ended($kid{$kind}) // return;
		$s{$kind} = { p50 => $r->{latency_us}{p50} / 1000, p99 => $r->{latency_us}{p99} / 1000, max => $r->{latency_us}{max} / 1000,
			requests => $r->{requests}, failed => $r->{errors}{all} + $r->{unanswered}, wrong => $r->{errors}{wrong}, errors => { %{ $r->{errors} }, unanswered => $r->{unanswered} }, mb => $r->{mb_per_s} };
	}
	push @{ $self->{samples} }, \%s;
	$self->print_sample(\%s);
	$stop = 1 unless $s{alive};
	return;
}

# Reloads and rotations for this many seconds.
sub storm ($self, $seconds) {
	my $end = time + $seconds;
	for (my $i = 0; !$stop && time < $end; $i++) {
		$self->server->signal('USR1');
		$self->{reloads}++;
		$self->rotate if $i % 3 == 0;
		sleep max 0, min 0.7, $end - time;
	}
}

# The file before the last one is complete: counts its lines and removes it.
sub rotate ($self) {
	my ($log, $n) = ($self->{world}->access_log, $self->{rotated});
	return unless -e $log;
	rename $log, "$log.$n" or die "rename: $!";
	$self->server->signal('HUP');
	$self->{rotated}++;
	$self->count_lines("$log." . ($n - 4)) if $n >= 4;
	return;
}

sub count_lines ($self, $file) {
	open my $fh, '<', $file or return;
	$self->{lines}++ while <$fh>;
	unlink $file;
}

# ---------------------------------------------------------------- the report

my $form = "%6s %-7s %5s %9s %9s %9s %9s %9s %9s %7s %6s %6s %7s\n";

sub print_sample ($self, $s) {
	printf $form, 's', 'victim', 'CPU %', 'hot p50', 'hot p99', 'hot max', 'cold p50', 'cold p99', 'cold MB/s', 'failed', 'fds', 'thr', 'RSS MiB' if @{ $self->{samples} } == 1;
	printf $form, sprintf('%.0f', $s->{at}), $s->{attacked} ? 'beside' : 'alone', sprintf('%.0f', $s->{busy}), map({ sprintf '%.2f', $_ } @{ $s->{hot} }{qw(p50 p99 max)}, @{ $s->{cold} }{qw(p50 p99 mb)}),
	    $s->{hot}{failed} + $s->{cold}{failed}, $s->{descriptors}, $s->{threads}, sprintf '%.0f', $s->{rss};
}

sub of ($self, $attacked, $kind, $what) { return map { $_->{$kind}{$what} } grep { $_->{attacked} == $attacked } @{ $self->{samples} } }

sub finish ($self) {
	my $bench = $self->{bench};
	my @samples = @{ $self->{samples} };
	$self->{replies} = $self->replies if @samples && $samples[-1]{alive};
	$self->end_server;
	print map { "# $_\n" } grep { defined } (split /\n/, $self->{log})[-20 .. -1] if @samples && !$samples[-1]{alive};
	return print "nothing was measured\n" unless (grep { $_->{attacked} } @samples) && grep { !$_->{attacked} } @samples;
	printf "\n%d reloads, %d log rotations, %d replies, %d lines in the access log, %.0f s\n", @$self{qw(reloads rotated replies lines)}, time - $self->{begun};
	$self->print_attacks;
	print "\nBounds (medians of the samples; ms)\n";
	my %alone = map { $_ => median($self->of(0, $_, 'p99')) } qw(hot cold);
	$self->{bench}->bound('hot files: p99 beside the attacks, twice that alone', median($self->of(1, 'hot', 'p99')), 2 * $alone{hot});
	$self->{bench}->bound("cold files: p99 beside the attacks, twice the fair share of $cold_clients clients", median($self->of(1, 'cold', 'p99')), 2 * $cold_clients * $alone{cold});
	$self->{bench}->bound('cold files: MB/s missing of what was asked for', max(0, median($self->of(0, 'cold', 'mb')) - median($self->of(1, 'cold', 'mb'))),
		median($self->of(0, 'cold', 'mb')) / $cold_clients);
	for my $what (qw(wrong failed)) {
		$self->{bench}->bound("requests of the victim: $what", sum0(map { $self->of($_->[0], $_->[1], $what) } [0, 'hot'], [0, 'cold'], [1, 'hot'], [1, 'cold']), 0);
	}
	$self->print_errors;
	$self->{bench}->bound('deaths of the server', $samples[-1]{alive} ? 0 : 1, 0);
	$self->{bench}->bound('sanitizer reports and alerts in the log', scalar(() = $self->{log} =~ /Sanitizer|level=alert/g), 0);
	my @beside = grep { $_->{attacked} } @samples;
	my $third = max 1, int @beside / 3;
	for (my $i = 0; $i < @growth; $i += 2) {
		my ($what, $room) = @growth[$i, $i + 1];
		$self->{bench}->bound("$what: the last third of the time above the first third",
			median(map { $_->{$what} } @beside[-$third .. -1]) - max(map { $_->{$what} } @beside[0 .. $third - 1]), $room);
	}
	$self->{bench}->bound('replies without a line in the access log, or lines without a reply', abs(($self->{replies} // 0) - $self->{lines}), 0);
	$bench->result->{samples} = \@samples;
	$bench->result->{attacks} = $self->{did};
	$self->charts;
	return;
}

# Replies after all clients have left: whole and cut ones, with this request for the figures.
sub replies ($self) {
	my $n = -1;
	Test::Util::eventually(sub {
		my $counters = $self->{world}->counters;
		my $now = $counters->{'server.requests.replied'} + $counters->{'server.requests.cut'};
		my $same = $now == $n + 1;
		$n = $now;
		sleep 0.3 unless $same;
		return $same;
	}, 15);
	return $n + 1;
}

# INT: running requests end, and the logs are written out.
sub end_server ($self) {
	my $server = $self->server;
	my ($status) = $server->term('INT');
	$self->bound_note($status);
	my $log = $self->{world}->access_log;
	$self->count_lines($_) for glob("$log.*"), $log;
	$self->{log} = $server->log;
}

sub bound_note ($self, $status) {
	$self->{bench}->note('the server did not end within ' . Test::Util::PATIENCE() . ' s of INT') unless defined $status;
	$self->{bench}->note(sprintf 'the server ended with wait status 0x%x', $status) if $status;
}

# The failures by kind.
sub print_errors ($self) {
	my %sum;
	for my $errors (map { ($_->{hot}{errors}, $_->{cold}{errors}) } @{ $self->{samples} }) {
		$sum{$_} += $errors->{$_} for grep { $_ ne 'all' && $errors->{$_} } keys %$errors;
	}
	print '    that is ', join(', ', map { "$_ $sum{$_}" } sort keys %sum), "\n" if %sum;
}

sub print_attacks ($self) {
	my %sum;
	for my $run (map { @{ $_->{attacks} } } @{ $self->{did} // [] }) {
		my $s = $sum{ $run->{attack} } //= {};
		$s->{$_} += $run->{$_} for qw(connections failed requests sent received closed broken);
		$s->{$_} += $run->{answers}{$_} for qw(2xx 3xx 4xx 5xx);
	}
	my @of = qw(connections failed requests 2xx 4xx 5xx closed broken sent received);
	my $row = '%-16s' . ' %11s' x @of . "\n";
	print "\n";
	printf $row, 'attack', @of;
	printf $row, $_, @{ $sum{$_} }{@of} for sort keys %sum;
}

# ---------------------------------------------------------------- charts

sub charts ($self) {
	my @samples = @{ $self->{samples} };
	my $p99 = sub ($kind, $attacked) { return [map { [$_->{at}, $_->{$kind}{p99}] } grep { $_->{attacked} == $attacked } @samples] };
	my $all = sub ($what) { return [map { [$_->{at}, $_->{$what}] } @samples] };
	Test::Bench::Panels::draw($self->{bench}, 'hostile',
		{ title => 'p99 of the victim', unit => 'ms', log => 1, series => [map { ["$_, alone", $p99->($_, 0)], ["$_, beside attacks", $p99->($_, 1)] } qw(hot cold)] },
		{ title => 'memory of the server', unit => 'MiB', series => [['RSS', $all->('rss')]] },
		{ title => 'descriptors and threads of the server', unit => '', series => [map { [$_, $all->($_)] } qw(descriptors threads)] });
}

1;
