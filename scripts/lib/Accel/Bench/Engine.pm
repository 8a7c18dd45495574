package Accel::Bench::Engine;
# The bench that servers are measured on: two cores, a network, load, figures, aims.
#
#     Accel::Namespace::enter(@ARGV);        # a network and mounts of our own, as root
#     my $bench = Accel::Bench::Engine->new(rounds => 3, seconds => 2);
#     my ($kind) = $bench->wanted({ kind => 'nginx', name => 'nginx' });
#     my $srv = $bench->server($kind, $bench->files);
#     my $run = $bench->measure($srv, '/1k.bin', [-c => 100]);
#     print "$run->{rps} req/s, $run->{cpu} us of CPU each\n";
#     $bench->finish;                             # notes, JSON
#
# What Accel::Bench and the benchmarks in Test::Bench share.
# Servers run on core 1, this process and the load generator on core 0. Everything that was started ends
# with the object and, through pipes, with the process.
use v5.36;
use File::Temp ();
use IO::Socket::INET ();
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(time sleep);
use Accel::Backends ();
use Accel::Figures qw(medians spread);
use Accel::Machine ();
use Accel::Namespace ();
use Accel::Peer ();
use Accel::Util qw(program);

my %size = ('1k' => 1024, '10k' => 10_240, '100k' => 102_400, '10m' => 10_485_760);

# If others use more than this many percent of a core during a run, the run is repeated, at most this often.
my ($quiet, $tries) = (15, 3);
# Seconds until each connection of a crowd has asked.
my $settle = 0.5;

sub new ($class, %opt) {
	my $self = bless { opt => \%opt, notes => [], result => {}, kids => {},
		owner => $$ }, $class;
	$self->{dir} = File::Temp->newdir('bench-XXXXXX', TMPDIR => 1);
	chmod 0755, "$self->{dir}";             # Apache does not serve as root
	_prepare_namespace();
	$self->_pin;
	print map { "# $_\n" } $opt{silent} ? () : $self->_machine;
	return $self;
}

sub opt ($self, $name) { return $self->{opt}{$name} }
sub dir ($self) { return "$self->{dir}" }
sub result ($self) { return $self->{result} }

# Said once, below the tables.
sub note ($self, $text) {
	push @{ $self->{notes} }, $text unless grep { $_ eq $text } @{ $self->{notes} };
}

sub notes ($self) { return @{ $self->{notes} } }

sub finish ($self) {
	print "# note: $_\n" for @{ $self->{notes} };
	my $file = $self->opt('json') // return;
	open my $fh, '>', $file or die "bench: $file: $!\n";
	print $fh JSON::PP->new->pretty->canonical->encode({ %{ $self->{result} }, notes => $self->{notes},
		rounds => $self->opt('rounds'), seconds => $self->opt('seconds') });
	close $fh or die "bench: $file: $!\n";
}

# Ends what is under way. The slow disk goes first: a server that waits for it cannot end.
sub abandon ($self) {
	kill KILL => $_ for keys %{ $self->{kids} };
	(delete $self->{disk})->stop if $self->{disk};
}

sub DESTROY ($self) {
	$self->abandon if $self->{owner} == $$;
}

# ------------------------------------------------------------- surroundings

sub _prepare_namespace () {
	return unless Accel::Namespace::entered();
	my $s = IO::Socket::INET->new(Proto => 'udp') or die "socket: $!";
	my $req = pack 'a16 s x22', 'lo', 0x1 | 0x40;           # IFF_UP | IFF_RUNNING
	ioctl $s, 0x8914, $req or die "cannot bring up lo: $!"; # SIOCSIFFLAGS
	_sysctl('net/ipv4/tcp_congestion_control', 'reno');
	_sysctl('net/core/somaxconn', 8192);
	_sysctl('net/ipv4/tcp_max_syn_backlog', 8192);
	_sysctl('net/ipv4/ip_local_port_range', '1024 65535');
}

sub _sysctl ($name, $value) {
	open my $fh, '+<', "/proc/sys/$name" or return;
	syswrite $fh, $value;
	close $fh;
}

sub _pin ($self) {
	chomp(my $n = `nproc 2>/dev/null` || 1);
	if ($n < 2 || system('taskset -c 1 true 2>/dev/null') != 0) {
		$self->note('one core only, or no taskset: nothing is pinned, figures are of little worth');
		return;
	}
	system("taskset -cp 0 $$ >/dev/null 2>&1");
	$self->{pinned} = 1;
}

sub _machine ($self) {
	my $machine = Accel::Machine::facts();
	my $cc = $machine->{congestion_control} // '';
	$self->note('bbr paces large files over loopback: 10m is far below what the servers can do; '
	    . 'as root a network namespace with reno is used') if $cc eq 'bbr';
	return (POSIX::strftime('%Y-%m-%d %H:%M', localtime) . ", Linux $machine->{kernel}, " . ($machine->{cpu} // 'CPU unknown'),
		$self->opt('rounds') . ' rounds of ' . $self->opt('seconds') . " s, interleaved; medians; congestion control $cc; "
		. ($self->{pinned} ? 'servers on core 1, load on core 0' : 'not pinned'));
}

# ------------------------------------------------------------- files and servers

# A document root with 1k.bin, 10k.bin, 100k.bin and 10m.bin; its name.
sub files ($self) {
	my $root = "$self->{dir}/root";
	return $root if -d $root;
	mkdir $root or die "$root: $!";
	srand 1;
	my $block = join '', map { chr int rand 256 } 1 .. 65_536;
	for my $name (keys %size) {
		open my $fh, '>:raw', "$root/$name.bin" or die "$name: $!";
		print $fh substr $block x (1 + $size{$name} / length $block), 0, $size{$name};
		close $fh or die "$name: $!";
	}
	return $root;
}

# accel-server with each of its file backends.  Backends that this build or this kernel lacks are noted.
sub backends ($self) {
	my ($known, $missing) = Accel::Backends::list();
	$self->note("$_->[0] left out: $_->[1]") for grep { $self->asked($_->[0]) } @$missing;
	return map { { kind => 'accel', name => $_, backend => $_ } } @$known;
}

# The backend that the aims are about: adaptive, or the first available one.
sub ours ($self, @names) {
	my ($known) = Accel::Backends::list();
	my ($ours) = sort { ($b eq 'adaptive') <=> ($a eq 'adaptive') }
	    grep { my $name = $_; grep { $_ eq $name } @names } @$known;
	return $ours;
}

# True if --server names it or is not given.
sub asked ($self, $name) {
	my $names = $self->opt('server');
	return !$names || grep { $_ eq $name } @$names;
}

# The kinds that are installed, built, and asked for.
sub wanted ($self, @kinds) {
	my @want;
	for my $k (grep { $self->asked($_->{name}) } @kinds) {
		my ($why) = grep { defined } map { Accel::Peer->missing($_) } $k->{kind}, $k->{via_stat_accel} ? 'stat-accel' : ();
		if ($why) {
			$self->note("$k->{name} left out: $why");
			next;
		}
		push @want, $k;
	}
	die 'bench: no server to measure; there are: ' . join(' ', map { $_->{name} } @kinds) . "\n" unless @want;
	return @want;
}

# The accel-server of another build, as given to --beside.
sub other_build ($self) {
	my $dir = $self->opt('beside') // return;
	return { kind => 'accel', name => 'beside', program => "$dir/bin/accel-server" };
}

sub server ($self, $k, $root) {
	return Accel::Peer->start($k->{kind}, %$k, root => $root, $self->cpu_of_servers);
}

# The option that puts an Accel::Peer or a Test::Site where servers run.
sub cpu_of_servers ($self) { return $self->{pinned} ? (cpu => 1) : () }

# Words before a command that is to run on the core of the servers.
sub on_server_core ($self) { return $self->{pinned} ? qw(taskset -c 1) : () }

# ------------------------------------------------------------- load

# Starts a program in the background: { fh => what it prints, pid => ... }, for end().
sub begin ($self, @cmd) {
	my $pid = open my $fh, '-|', @cmd or die "$cmd[0]: $!\n";
	$self->{kids}{$pid} = 1;
	return { fh => $fh, pid => $pid };
}

# Waits for the end of the program.  Returns the output that was not read before.
sub end ($self, $program) {
	my $text = do { local $/; readline $program->{fh} } // '';
	close $program->{fh};
	delete $self->{kids}{ $program->{pid} };
	return $text;
}

sub load_begin ($self, @args) {
	return $self->begin(program('accel-load'), '--json', @args);
}

sub load_end ($self, $load) {
	my $text = $self->end($load);
	my ($json) = $text =~ /^(\{.*\})$/m or die "bench: accel-load said: $text\n";
	return JSON::PP::decode_json($json);
}

sub load ($self, @args) {
	return $self->load_end($self->load_begin(@args));
}

# Runs opt(seconds) on a hot path.  A run that other programs disturb is repeated, and the quietest one counts.  crowd: runs at the same
# time as that load, whose figures do not count, but whose CPU time does.  warm: seconds before, in which connections are made; they count
# for nothing.
sub measure ($self, $srv, $path, $load, $crowd = undef, $warm = 0) {
	return $self->quietest(sub { $self->_measure_once($srv, $path, [@$load, $warm ? ('--warm-up', $warm) : ()], $crowd, $warm) });
}

sub quietest ($self, $measure) {
	my $best;
	for (1 .. $tries) {
		my $run = $measure->();
		$best = $run if !$best || $run->{others} < $best->{others};
		last if $best->{others} <= $quiet;
	}
	return $best;
}

sub _measure_once ($self, $srv, $path, $load, $crowd = undef, $warm = 0) {
	my ($first, $client, $others) = ($srv->cpu, own_cpu(), $self->others_begin);
	my $beside = $crowd && $self->load_begin(@$crowd, -d => $self->opt('seconds') + 2 * $settle, $srv->url . $path);
	sleep $settle if $beside;
	my $running = $self->load_begin(@$load, -d => $self->opt('seconds'), $srv->url . $path);
	sleep $warm if $warm;
	my $cpu = $warm ? $srv->cpu : $first;
	my $r = $self->load_end($running);
	$self->load_end($beside) if $beside;
	my $last = $srv->cpu;
	my $used = $last - $cpu;
	my $seconds = $r->{seconds} + ($crowd ? 2 * $settle : 0);
	$client = (own_cpu() - $client) * $seconds / ($seconds + $warm);
	return { others => $self->others_end($others, $last - $first), rps => $r->{requests_per_s}, mb => $r->{mb_per_s},
		errors => $r->{errors}{all}, cpu => $r->{answered} && !$crowd ? 1e6 * $used / $r->{answered} : undef,
		server_busy => 100 * $used / $seconds, client_busy => 100 * $client / $seconds,
		map { $_ => $r->{latency_us}{$_} } qw(p50 p99 p999 max) };
}

# Percent of a core that others use: all that was used between begin and end, without our own, that of our children that have ended, and
# that of the servers.
sub others_begin ($self) { return { all => _machine_cpu(), own => own_cpu(), at => time } }

sub others_end ($self, $begin, $used) {
	my $others = _machine_cpu() - $begin->{all} - (own_cpu() - $begin->{own}) - $used;
	return $others > 0 ? 100 * $others / (time - $begin->{at}) : 0;
}

# Seconds of CPU that were used, or that the host took away; all cores.
sub _machine_cpu () {
	open my $fh, '<', '/proc/stat' or return 0;
	my (undef, $user, $nice, $system, undef, undef, $irq, $softirq, $steal) = split ' ', <$fh>;
	return ($user + $nice + $system + $irq + $softirq + ($steal // 0)) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

sub own_cpu () {
	my (undef, @seconds) = map { $_ / POSIX::sysconf(POSIX::_SC_CLK_TCK()) } POSIX::times();
	return $seconds[0] + $seconds[1] + $seconds[2] + $seconds[3];
}

sub disturbed ($self, $run) { return $run->{others} > $quiet }

sub undisturbed ($self, @runs) {
	my @undisturbed = grep { !$self->disturbed($_) } @runs;
	return @undisturbed ? @undisturbed : @runs;
}

# Medians over the undisturbed runs if there are any, otherwise over all; errors add up.
sub summary ($self, @runs) {
	@runs = $self->undisturbed(@runs);
	return { %{ medians(@runs) }, runs => scalar @runs, spread => spread(map { $_->{rps} } @runs) };
}

# ------------------------------------------------------------- figures

# Prints whether a figure reaches its aim, and keeps it for the JSON: what it is, "<=" or ">=", the mark, and the summaries that it comes
# from.
sub aim ($self, $what, $is, $op, $mark, @from) {
	my $met = $op eq '<=' ? $is <= $mark : $is >= $mark;
	my $remark = (grep { $self->disturbed($_) } @from) ? ', but others disturbed the runs' : '';
	printf "  %-60s %6.2f  aim %s %.2f  %s%s\n", $what, $is, $op, $mark, $met ? 'met' : 'NOT MET', $remark;
	push @{ $self->{result}{aims} }, { what => $what, is => $is, op => $op, aim => $mark,
		met => $met ? JSON::PP::true() : JSON::PP::false() };
}

# Prints whether a bound was kept, and keeps it for the JSON.  An aim is for speed; a bound is a promise.
sub bound ($self, $what, $is, $most) {
	my $kept = $is <= $most;
	printf "  %-84s %10.2f  at most %8.2f  %s\n", $what, $is, $most, $kept ? 'kept' : 'MISSED';
	push @{ $self->{result}{bounds} }, { what => $what, is => $is, most => $most, kept => $kept ? JSON::PP::true() : JSON::PP::false() };
}

1;
