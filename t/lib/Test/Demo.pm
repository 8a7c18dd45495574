package Test::Demo;
# One visitor of a hot page beside 16 visitors of cold files, without and with fcgi-stat-accel.
#
#     my $demo = Test::Demo->new(seconds => 3, servers => ['nginx'], spindles => [2, 16], storage => 'slowfs');
#     my $rows = $demo->run(sub ($done, $of, $doing) { ... });
#     # [{ server => 'nginx', spindles => 2, before => { p50 => 1.1, p99 => 9.8, worst => 20, mb => 4.6, ... }, after => ... }, ...]
#
#     16 cold clients  -----.                          .--> root/slow/...  slowfs, 8 ms for each look-up and read; or
#                            >--->  nginx, lighttpd --<                     ext4 or xfs, 8 ms for each request
#      1 hot client    -----'            |             `--> root/1k.bin    in memory
#      100/s by the clock                `- after: asks fcgi-stat-accel about each cold name first
#
# The row "nginx, proxy_cache" has no files: nginx answers from a cache on the slow disk, which it filled before
# (Test::Bench::NgCache). The hot page is in a second cache, in memory. The row "nginx, module" is there if nginx/ is built; before is that of nginx.
#
# Each measurement has a mount and a server of its own. The hot client does not wait for an answer before it asks
# again, as visitors do not wait for each other: a server that stands still for a second cannot hide it. What is
# unanswered at the end counts with its age. Milliseconds and MB (10^6 bytes).
use v5.36;
use List::Util qw(max min);
use Accel::Bench::Engine;
use Test::Bench::Beside qw(beside hot);
use Test::Bench::NgCache;
use Accel::Bench::Rig;
use Accel::Peer;
use Test::Util ();

use constant { COLD_CLIENTS => 16, HOT_RATE => 100, HOT_CONNECTIONS => 64, HOT => '/1k.bin', MS => 8, FILE => 102_400,
	ALONE => 0.25, HEAD_START => 0.1, THREADS => 32, OBJECTS => 6400 };

# In the order of the table.
my @servers = (
	{ name => 'nginx', kind => 'nginx' },
	{ name => 'nginx, module', kind => 'nginx', module => 1, as => 'nginx' },
	{ name => 'nginx, aio threads', kind => 'nginx', aio => 1 },
	{ name => 'nginx, proxy_cache', kind => 'nginx', list => 'cached' },
	{ name => 'lighttpd', kind => 'lighttpd' },
);

sub server_kinds { return map { $_->{kind} } @servers }

# The module of nginx; undef if it is not built.
sub module () { my $file = Test::Util::nginx_module(); return -e $file ? $file : undef }

sub new ($class, %opt) {
	my $bench = Accel::Bench::Engine->new(rounds => 1, seconds => $opt{seconds}, storage => $opt{storage}, silent => 1);
	my %asked = map { $_ => 1 } @{ $opt{servers} };
	return bless { bench => $bench, rig => Accel::Bench::Rig->new($bench, lists => ['small']), spindles => $opt{spindles},
		servers => [map { { list => 'small', %$_ } } grep { $asked{ $_->{kind} } && (!$_->{module} || module()) } @servers] }, $class;
}

sub abandon ($self) { return $self->{bench}->abandon }

my %disk = (lookup_ms => MS, read_ms => MS, jitter => 20);

# MB/s that this many disks can give if no disk is ever idle.
sub disk_mb ($spindles, $list) { return FILE / 1e6 / Accel::Bench::Rig::ideal_seconds({ %disk, spindles => $spindles }, 1, $list) }

# The cache is filled once, with as many objects as the fastest disk can give in one measurement.
sub _fill ($self) {
	my @cached = grep { $_->{list} eq 'cached' } @{ $self->{servers} } or return;
	my $most = max(map { disk_mb($_, 'cached') } @{ $self->{spindles} }) * 1e6 / FILE;
	my $n = int $most * $self->{bench}->opt('seconds') * (1 + HEAD_START) + COLD_CLIENTS;
	my $cache = Test::Bench::NgCache::fill($self->{bench}, $self->{rig}, min OBJECTS, $n);
	$_->{cache} = $cache for @cached;
	return;
}

# The rows of the table. $tell->(measurements done, in all, what is being measured) before each.
sub run ($self, $tell) {
	my (@rows, $done, %before);
	my $all = (map { $_->{as} ? 1 : (1, 1) } @{ $self->{servers} }) * @{ $self->{spindles} };
	$tell->(0, $all, 'nginx fills its cache');
	$self->_fill;
	for my $spindles (@{ $self->{spindles} }) {
		for my $server (@{ $self->{servers} }) {
			my %row = (server => $server->{name}, spindles => $spindles, disk_mb => disk_mb($spindles, $server->{list}));
			$row{before} = $before{ $server->{as} } if $server->{as};
			for my $when (grep { !$row{$_} } qw(before after)) {
				$tell->($done++ // 0, $all, "$server->{name}, $spindles spindles, " . ($when eq 'before' ? 'as it is' : 'with fcgi-stat-accel'));
				$row{$when} = $self->_measure({ %$server, $when eq 'after' ? _after($server) : () }, $spindles);
			}
			$before{ $server->{name} } = $row{before};
			push @rows, \%row;
		}
	}
	$tell->($all, $all, '');
	return \@rows;
}

sub _after ($server) {
	return (threads => THREADS, $server->{module} ? (module => 'accel', module_file => module()) : (front => 1, exempt => HOT));
}

sub _measure ($self, $kind, $spindles) {
	return $self->{rig}->with_server($kind, { %disk, spindles => $spindles }, sub ($srv) {
		my $seconds = $self->{bench}->opt('seconds');
		my %hot = (path => HOT, clients => HOT_CONNECTIONS, rate => HOT_RATE);
		my $alone = hot($self->{bench}, $srv, %hot, seconds => $seconds * ALONE);
		my ($hot, $done) = beside($self->{bench}, $srv, { clients => COLD_CLIENTS, list => $self->{rig}->list($kind->{list}), head_start => $seconds * HEAD_START }, %hot);
		return { alone_p99 => $alone->{latency_us}{p99} / 1000, p50 => $hot->{latency_us}{p50} / 1000,
			p99 => $hot->{latency_us}{p99} / 1000, worst => $hot->{latency_us}{max} / 1000, mb => $done->{mb_per_s},
			asked => $hot->{answered} + $hot->{unanswered}, answered => $hot->{answered}, files => $done->{answered}, errors => $hot->{errors}{all} + $done->{errors}{all} };
	});
}

1;
