package Test::Bench::Pins;
# Memory is short: how often nginx and lighttpd meet pages that have left, with and without --pin of fcgi-stat-accel.
#
# `run($bench)` measures nginx and lighttpd alone, and behind fcgi-stat-accel with several values of `--pin`, in the cells of
# Test::Bench::Pressure: server and accelerator in one memory cgroup, 1000 files of 100 kB on ext4 on a slow disk, 20 clients that ask for
# them at random, and a hot file of another disk that goes past the accelerator. Each round measures all of them, one after the other.
#
# "The server read" is what the server's own processes read from the disk (/proc/PID/io), for each MB that was sent: 0 if the accelerator
# kept each promise. Names and inodes count, too.
use v5.36;
use parent 'Test::Bench::Pressure';
use Accel::Figures qw(spread);
use Accel::Util qw(slurp);
use List::Util qw(sum0);

use constant THREADS => 32;

my $hot = '/1k.bin';
my @pins = ('0', '3m', '8m', '16m');

# --server=nginx+pin=64k measures another value.
sub kinds ($bench) {
	my @names = map { my $server = $_; ($server, map {"$server+pin=$_"} @pins) } qw(nginx lighttpd);
	return $bench->wanted(map { kind($_) } $bench->opt('server') ? @{ $bench->opt('server') } : @names);
}

sub kind ($name) {
	my ($server, $pin) = $name =~ /^(nginx|lighttpd)(?:\+pin=(\d+[kmg]?))?\z/ or die "bench: --server: expected nginx or lighttpd, or nginx+pin=BYTES; got \"$name\"\n";
	return { kind => $server, name => $name, defined $pin ? (front => 1, threads => THREADS, exempt => $hot, stat_accel_args => ["--pin=$pin"]) : () };
}

sub run ($bench) {
	my ($ok, $why) = Test::Bench::Pressure::usable();
	die "bench: $why\n" unless $ok;
	my $root = $bench->files;
	my $self = bless { bench => $bench, root => $root, hot => $hot, hot_list => Accel::Util::put($bench->dir . '/hot.list', "$root$hot\n"), kinds => [kinds($bench)] }, __PACKAGE__;
	$self->{image} = $self->image;
	mkdir($self->{mount} = "$root/slow");
	my @limits = map { Test::Bench::Pressure::limit($_) } @{ $bench->opt('limit') // ['48m'] };
	my @disks = @{ $bench->opt('disk') // ['slow'] };
	for my $limit (@limits) {
		for my $disk (@disks) {
			my %runs;
			for my $round (1 .. $bench->opt('rounds')) {
				for my $kind (@{ $self->{kinds} }) {
					push @{ $runs{ $kind->{name} } }, $self->cell($kind, $limit->{bytes}, $disk);
				}
			}
			my $of = $bench->result->{pins}{ $limit->{name} }{$disk} = { map { $_ => Test::Bench::Pressure::summary(@{ $runs{$_} }) } keys %runs };
			print_table($limit, $disk, $of, \%runs, map { $_->{name} } @{ $self->{kinds} });
		}
	}
	return;
}

# The last load of hot files in a cell is the one that runs together with cold clients.
sub hot ($self, $srv, @more) {
	my $before = own_reads($srv);
	my $load = $self->SUPER::hot($srv, @more);
	@$self{qw(read seconds)} = (own_reads($srv) - $before, $load->{seconds});
	return $load;
}

sub cell ($self, @args) {
	my $run = $self->SUPER::cell(@args);
	my $read = $self->{read} / 1e6;
	return { %$run, read_mb => $read, read_share => $run->{cold_mb} ? 100 * $read / $self->{seconds} / $run->{cold_mb} : 0 };
}

# Bytes that the server's processes read from disks, without those of the accelerator.
sub own_reads ($srv) {
	my %front = map { $_ => 1 } $srv->stat_accel ? $srv->stat_accel->pids : ();
	return sum0(map { !$front{$_} && slurp("/proc/$_/io") =~ /^read_bytes: (\d+)/m ? $1 : 0 } $srv->pids);
}

sub print_table ($limit, $disk, $of, $runs, @names) {
	printf "\nMemory %s, %s disk; a hot 1 kB file 1000 times a second, 20 clients of 1000 files of 100 kB at random\n", $limit->{name}, $disk;
	printf "  %-18s %9s   %29s %16s %20s %11s %9s %9s\n", '', 'alone p99', 'hot ms: p50       p99      max', 'cold MB/s   +-%', 'the server read: %', 'MB', 'loop slept', 'errors';
	for my $name (@names) {
		my $m = $of->{$name};
		printf "  %-18s %9.3f   %9.3f %9.3f %9.1f %9.1f %6.1f %20.2f %11.2f %7.0f %% %9d\n", $name, @$m{qw(alone_p99 p50 p99 max cold_mb)},
		    spread(map { $_->{cold_mb} } @{ $runs->{$name} }), @$m{qw(read_share read_mb)}, $m->{slept_share} // 0,
		    sum0(map { $m->{$_} // 0 } qw(hot_errors stuck ended cold_ended cold_stuck));
		printf "  %-18s %s\n", '', join '   ', map { sprintf 'p99 %.1f, %.1f MB/s, %.2f %%', @$_{qw(p99 cold_mb read_share)} } @{ $runs->{$name} };
	}
}

1;
