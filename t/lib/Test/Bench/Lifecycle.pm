package Test::Bench::Lifecycle;
# Reloads and binary upgrades under load: what is lost, what is cut, what stays behind.
#
# `run($bench)`: one accel-server, as a user starts it: a configuration, a pid file, a port. 200 clients go on all the time: 150 keep their
# connections, 50 make one for each request. Beside them downloads, which the server slows down, so that each runs across many reloads and upgrades.
# Each round is `accel-server ctl reload`, a pause, `accel-server ctl upgrade`, a pause. Then come as many reloads of the last process: a download
# runs across some 20 of them. All bodies prove their name and offset.
#
# The aims: no request lost, none cut, no wrong byte; memory and descriptors of the process that serves in the end as those of the first one, within
# 2 MiB and a tenth; no process left but the server, its helper and the guardian of that.
use v5.36;
use File::Path qw(make_path);
use List::Util qw(max sum0);
use POSIX ();
use Time::HiRes qw(sleep time);
use Accel::Figures qw(median);
use Accel::Util qw(free_port program put slurp);
use Test::Soak::Stream;
use Test::Util qw(eventually);

use constant { KEPT => 150, FRESH => 50, LONG => 10, SLICE_S => 10, LONG_S => 8 };

my @lost = qw(connect refused reset timeout malformed status);
my @cut = qw(short long);

sub run ($bench) {
	my $self = bless { bench => $bench, dir => $bench->dir, ops => {} }, __PACKAGE__;
	$self->begin;
	my %before = $self->quiet;
	my @streams = $self->streams;
	$_->poll for @streams;
	$self->round($_, [qw(reload upgrade)], @streams) for 1 .. $bench->opt('rounds');
	$self->round($_, ['reload'], @streams) for 1 .. $bench->opt('rounds');
	$_->end for @streams;
	my $alone = eventually(sub { $self->processes == 3 }, 60);
	my %after = $self->quiet;
	$bench->result->{lifecycle} = { before => \%before, after => \%after, most_processes => $self->{most},
		streams => { map { $_->name => $_->sum } @streams }, operations => $self->{ops} };
	$self->report(\%before, \%after, $alone, @streams);
	$self->ctl('stop');
	return;
}

# ---------------------------------------------------------------- the server

sub path ($self, $name) { return "$self->{dir}/$name" }

sub pool ($self, $name, $spec) {
	my $dir = $self->path("www/$name");
	make_path($dir);
	system(program('accel-pool'), 'make', '--quiet', '--spec', $spec, $dir) == 0 or die "accel-pool make $name: exit status $?\n";
	system('sh', '-c', '"$1" list --shuffle --prefix "$2" "$3" >"$4"', 'sh', program('accel-pool'), "/$name/", $dir, $self->path("$name.urls")) == 0
	    or die "accel-pool list $name: exit status $?\n";
	return;
}

sub begin ($self) {
	chmod 0755, $self->{dir};
	$self->pool(hot => '4x50x2k-16k');
	$self->pool(long => '1x10x' . LONG_S . 'm');
	$self->{port} = free_port();
	my $user = $> == 0 && getpwnam('www-data') ? qq{server.username = "www-data"\n} : '';
	put($self->path('server.conf'), $user . <<"END");
server.document-root = "$self->{dir}/www"
server.bind = "127.0.0.1"
server.port = $self->{port}
server.pid-file = "$self->{dir}/server.pid"
server.errorlog = "$self->{dir}/error.log"
accesslog.filename = "$self->{dir}/access.log"
server.max-worker = 2
\$HTTP["url"] =^ "/long/" { connection.kbytes-per-second = 1024 }
END
	system(program('accel-server'), '--daemon', '-f', $self->path('server.conf')) == 0 or die "bench: accel-server did not start\n";
	return;
}

sub pid ($self) { return slurp($self->path('server.pid')) =~ /^(\d+)$/m ? $1 : 0 }

sub processes ($self) {
	my $conf = $self->path('server.conf');
	return grep { index(slurp("/proc/$_/cmdline"), "\0-f\0$conf\0") >= 0 } map { m{/proc/(\d+)$} } glob '/proc/[0-9]*';
}

# Seconds that it took, or undef if it failed.
sub ctl ($self, $verb) {
	my $begun = time;
	my $said = qx{"@{[ program('accel-server') ]}" ctl $verb -f "@{[ $self->path('server.conf') ]}" 2>&1};
	return time - $begun if $? == 0;
	$self->{bench}->note("ctl $verb: exit status " . ($? >> 8) . ": " . ($said =~ s/\s+/ /gr));
	return;
}

sub DESTROY ($self) { kill KILL => $_ for $self->processes; return }

# ---------------------------------------------------------------- load

sub streams ($self) {
	my $stream = sub ($name, $pool, $conns, %arg) {
		my $args = ['-c', $conns, '-t', 30, '--verify', 'pattern', @{ delete $arg{more} // [] }, '--urls', $self->path("$pool.urls"), "http://127.0.0.1:$self->{port}/"];
		return Test::Soak::Stream->new(name => $name, seconds => SLICE_S, args => $args, %arg);
	};
	return (
		$stream->('kept', 'hot', KEPT, rate => 1000),
		$stream->('fresh', 'hot', FRESH, rate => 200, more => ['--close']),
		$stream->('long', 'long', LONG, rate => 1, seconds => 2 * SLICE_S),
	);
}

sub round ($self, $n, $verbs, @streams) {
	for my $verb (@$verbs) {
		my $took = $self->ctl($verb);
		push @{ $self->{ops}{$verb} }, $took if defined $took;
		$self->{most} = max($self->{most} // 0, scalar $self->processes);
		$self->{asked}{$verb}++;
		my $end = time + $self->{bench}->opt('seconds');
		do { $_->poll for @streams; sleep 0.02 } while time < $end;
	}
	print "# round $n\n" if $n % 10 == 0;
}

# Without clients: after the same load, so that both ends of the comparison have had as many connections.
sub quiet ($self) {
	my @warm = $self->streams;
	$_->begin for @warm;
	$_->end for @warm;
	eventually(sub { !grep { m{/www/} } map { readlink // '' } glob '/proc/' . $self->pid . '/fd/*' }, 20);
	my $pid = $self->pid;
	my %s = (processes => scalar $self->processes, threads => scalar(() = glob "/proc/$pid/task/*"), descriptors => scalar(() = glob "/proc/$pid/fd/*"));
	my $rollup = slurp("/proc/$pid/smaps_rollup");
	$s{ lc $_ } = $rollup =~ /^$_:\s+(\d+)/m ? $1 / 1024 : 0 for qw(Rss Pss);
	return %s;
}

# ---------------------------------------------------------------- the tables

sub errors ($sum, @kinds) { return sum0(map { $sum->{errors}{$_} // 0 } @kinds) }

sub report ($self, $before, $after, $alone, @streams) {
	my $bench = $self->{bench};
	printf "\n%-10s %6s %6s %8s %8s\n", 'operation', 'asked', 'done', 'median ms', 'max ms';
	for my $verb (qw(reload upgrade)) {
		my @took = map { 1000 * $_ } @{ $self->{ops}{$verb} // [0] };
		printf "%-10s %6d %6d %8.0f %8.0f\n", $verb, $self->{asked}{$verb}, scalar @took, median(@took), max(@took);
	}
	printf "\n%-10s %9s %9s %6s %6s %6s\n", 'clients', 'requests', 'answered', 'lost', 'cut', 'wrong';
	my %all;
	for my $s (@streams) {
		my $sum = $s->sum;
		my %is = (lost => errors($sum, @lost), cut => errors($sum, @cut), wrong => errors($sum, 'wrong'));
		$all{$_} += $is{$_} for keys %is;
		printf "%-10s %9d %9d %6d %6d %6d\n", $s->name, @$sum{qw(requests answered)}, @is{qw(lost cut wrong)};
	}
	printf "\n%-14s %10s %10s\n", 'server, quiet', 'before', 'after';
	printf "%-14s %10.1f %10.1f\n", "$_ MiB", $before->{$_}, $after->{$_} for qw(rss pss);
	printf "%-14s %10d %10d\n", $_, $before->{$_}, $after->{$_} for qw(descriptors threads processes);
	print "\nat most $self->{most} processes at a time\n\nAims\n";
	$bench->aim("$_ requests", $all{$_}, '<=', 0) for qw(lost cut wrong);
	$bench->aim("$_ done", scalar @{ $self->{ops}{$_} // [] }, '>=', $self->{asked}{$_}) for qw(reload upgrade);
	$bench->aim("$_, MiB more than before", $after->{$_} - $before->{$_}, '<=', 2) for qw(rss pss);
	$bench->aim("$_, after / before", $after->{$_} / ($before->{$_} || 1), '<=', 1.1) for qw(descriptors threads);
	$bench->aim('processes left', $alone ? $after->{processes} : scalar $self->processes, '<=', 3);
	return;
}

1;
