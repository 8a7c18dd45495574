package Test::Bench::Http2::Floods;
# Each attack of HTTP/2 (t/bench/hostile) from 127.0.0.2 beside healthy clients of 127.0.0.1.
#
# Healthy clients ask for a hot file by the clock over HTTP/2, alone and beside the attack: with accel-load if it speaks HTTP/2, otherwise
# with h2load, whose latencies do not count the time that a request waits for its turn. Attackers are nice: a healthy client that waits for
# its own processor measures nothing. A server is new for each attack. Its memory (PSS) and sockets are counted before, at most during, and after.
use v5.36;
use IO::Select ();
use JSON::PP ();
use List::Util qw(max);
use Time::HiRes qw(sleep time);
use Accel::Peer;
use Accel::Util qw(program put slurp);
use Test::Bench::Http2::Fair ();

my $attacker = '127.0.0.2';
my ($connections, $streams, $rate) = (4, 10, 400);      # of the healthy clients; requests a second of all
my ($usual, $alone_most, $rest, $sample) = (30, 5, 5, 0.2);     # seconds
my ($most_p99, $room) = (2, 16);                        # bounds: times the p99 alone; MiB more than before

sub attacks () {
	state @names = qx(@{[ program('hostile') ]} --help 2>/dev/null) =~ /^  (h2-\S+) /mg;
	return @names;
}

sub run ($bench, $kinds, @attacks) {
	my $app = Accel::Peer->start('responder', root => $bench->files);
	my $seconds = $bench->opt('asked_seconds') // ($bench->opt('quick') ? $bench->opt('seconds') : $usual);
	my @wanted = map { { %$_, proxy => { protocol => 'http', to => $app, under => '/app/' } } } $bench->wanted(@$kinds);
	$bench->note('floods: h2o passes nothing to the application') if grep { $_->{kind} eq 'h2o' } @wanted;
	link_cold($bench->files);
	my $of = $bench->result->{floods} = {};
	my $client = Test::Bench::Http2::Fair::has_http2() ? \&by_accel_load : \&by_h2load;
	print "\nHealthy clients: $connections connections with $streams streams of HTTP/2 in clear, 1 kB, $rate req/s; beside each attack for $seconds s  (floods)\n";
	for my $attack (@attacks) {
		for my $kind (@wanted) {
			my $m = once($bench, $kind, $attack, $seconds, $client) // next;
			$of->{$attack}{ $kind->{name} } = $m;
			print_row($attack, $kind->{name}, $m);
		}
	}
	my @ours = grep { $of->{$_}{accel} } @attacks or return;
	print "\nBounds\n";
	bounds($bench, $_, $of->{$_}{accel}) for @ours;
	$bench->bound('deaths of the server', scalar(grep { !$of->{$_}{accel}{alive} } @ours), 0);
	return;
}

sub link_cold ($root) {
	for my $n (0 .. 999) { link "$root/1k.bin", "$root/c$n" or die "$root/c$n: $!" }
}

sub once ($bench, $kind, $attack, $seconds, $client) {
	my $srv = $bench->server($kind, $bench->files);
	if (!$client->($bench, $srv, 0.5)->{rps}) {     # from here on it has what it keeps anyway
		$bench->note("floods: $kind->{name} is left out: it answers no HTTP/2");
		return;
	}
	my $alone = $client->($bench, $srv, max 1, $seconds < $alone_most ? $seconds : $alone_most);
	my %before = state_of($srv);
	my $peak = $before{pss};
	my $flood = $bench->begin('nice', '-n', 19, program('hostile'), -d => $seconds + 1, '--file' => '/1k.bin', '--big' => '/10m.bin', '--app' => '/app/upload', '--cold' => '/c:1000',
		'http://127.0.0.1:' . $srv->port, "$attack,from=$attacker");
	readline $flood->{fh};                          # "running"
	my $running = $client->($bench, $srv, $seconds, sub { $peak = max $peak, $srv->pss / 2**20 });
	my ($did) = $bench->end($flood) =~ /^(\{.*\})$/m;
	$did = $did ? JSON::PP::decode_json($did)->{attacks}[0] : {};
	my $alive = $srv->alive;
	$peak = max $peak, $srv->pss / 2**20;
	my %after = $alive ? settled($srv, %before) : (pss => 0, sockets => 0);
	my $again = $alive ? $client->($bench, $srv, 1) : { p99 => 0, errors => 1 };
	$srv->stop;
	return { alone => $alone->{p99}, p50 => $running->{p50}, p99 => $running->{p99}, max => $running->{max}, rps => $running->{rps},
		errors => $running->{errors} + $again->{errors}, ratio => $running->{p99} / ($alone->{p99} || 1), before_mib => $before{pss}, peak_mib => $peak, after_mib => $after{pss},
		left => $after{sockets} - $before{sockets}, alive => $alive, did => $did, said => said($did) };
}

# Sockets, because files that stay open in a cache are not left over.
sub state_of ($srv) {
	return (pss => $srv->pss / 2**20, sockets => scalar grep { (readlink // '') =~ /^socket:/ } map { glob "/proc/$_/fd/*" } $srv->pids);
}

# What the server has once its clients have left: the state at which memory stops falling, at the latest after $rest seconds.
sub settled ($srv, %before) {
	my $until = time + $rest;
	my %is = state_of($srv);
	while (time < $until && ($is{sockets} > $before{sockets} || $is{pss} > $before{pss} + 1)) {
		sleep $sample;
		%is = state_of($srv);
	}
	return %is;
}

# ------------------------------------------------------------- healthy clients

# Calls $meanwhile again and again until the program has ended; returns its output.
sub await ($bench, $program, $meanwhile) {
	my ($ready, $text, $due) = (IO::Select->new($program->{fh}), '', 0);
	while (1) {
		if ($meanwhile && time >= $due) {
			$meanwhile->();
			$due = time + $sample;
		}
		next unless $ready->can_read($sample);
		sysread($program->{fh}, $text, 65536, length $text) or last;
	}
	$bench->end($program);
	return $text;
}

sub by_accel_load ($bench, $srv, $seconds, $meanwhile = undef) {
	my $text = await($bench, $bench->load_begin('--http2', -c => $connections, '--streams' => $streams, '--rate' => $rate, -n => int $rate * $seconds, -d => $seconds + 10, -t => 10, $srv->url . '/1k.bin'), $meanwhile);
	my ($json) = $text =~ /^(\{.*\})$/m or die "bench: accel-load said: $text\n";
	my $r = JSON::PP::decode_json($json);
	return { rps => $r->{requests_per_s}, errors => $r->{errors}{all} + ($r->{unanswered} // 0), map { $_ => $r->{latency_us}{$_} } qw(p50 p99 max) };
}

# A line of its log: start, status, duration in us.
sub by_h2load ($bench, $srv, $seconds, $meanwhile = undef) {
	my $log = $bench->dir . '/h2load.log';
	put($log, '');
	my $text = await($bench, $bench->begin('timeout', $seconds + 20, 'h2load', "--log-file=$log", -c => $connections, -m => $streams, '--rps' => $rate / $connections, -D => int(1000 * $seconds) . 'ms',
		$srv->url . '/1k.bin'), $meanwhile);
	my @lines = map { [split /\t/] } split /\n/, slurp($log);
	my @us = sort { $a <=> $b } map { $_->[2] } grep { $_->[1] == 200 } @lines;
	my $at = sub ($share) { return @us ? $us[$share * $#us] : 1e6 * $seconds };
	return { rps => @us / $seconds, errors => @lines - @us, p50 => $at->(0.5), p99 => $at->(0.99), max => $at->(1) };
}

# ------------------------------------------------------------- what was seen

# The most frequent code, and how many others there are.
sub said ($did) {
	my @said;
	for my $what (['goaway', 'GOAWAY'], ['reset_streams', 'RST_STREAM']) {
		my $codes = $did->{ $what->[0] } // {};
		my ($most) = sort { $codes->{$b} <=> $codes->{$a} || $a cmp $b } keys %$codes;
		push @said, "$what->[1] $most" . ($codes->{$most} > 1 ? " x $codes->{$most}" : '') if $most;
	}
	return join ', ', @said ? @said : 'nothing';
}

sub print_row ($attack, $name, $m) {
	state $head = printf "  %-16s %-9s %8s %9s %9s %7s %6s %7s %7s %7s %5s %8s %10s  %s\n", 'attack', 'server', 'p99 ms', 'beside', 'max', 'p99 x', 'errors', 'MiB', 'peak', 'after', 'left', 'conns', 'frames', 'the server says';
	printf "  %-16s %-9s %8.2f %9.2f %9.1f %7.2f %6d %7.1f %7.1f %7.1f %5d %8d %10d  %s\n", $attack, $name, (map { $_ / 1000 } @$m{qw(alone p99 max)}), @$m{qw(ratio errors before_mib peak_mib after_mib left)},
	    $m->{did}{connections} // 0, $m->{did}{frames} // 0, ($m->{alive} ? '' : 'IT IS DEAD; ') . $m->{said};
}

sub bounds ($bench, $attack, $m) {
	$bench->bound("$attack: p99 in ms of healthy clients, $most_p99 times that alone", $m->{p99} / 1000, $most_p99 * $m->{alone} / 1000);
	$bench->bound("$attack: failed requests of healthy clients", $m->{errors}, 0);
	$bench->bound("$attack: MiB more after it", $m->{after_mib} - $m->{before_mib}, $room);
	$bench->bound("$attack: sockets more after it", $m->{left}, 0);
}

1;
