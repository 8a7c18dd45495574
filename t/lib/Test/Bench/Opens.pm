package Test::Bench::Opens;
# File systems that ask again at each open: what the accelerator gives there, and what helps.
#
# `run($bench)` measures a hot file of 1 kB beside 16 clients of cold files of 100 kB on a slow disk whose open() takes 100 ms each time,
# as on NFS or FUSE far away: each web server alone, with fcgi-stat-accel, and with each remedy, one of which is an accel-server behind it
# (`proxy`), which opens in threads. There are 64 spindles, so
# no request queues: only waiting counts. In case `local` the hot file is on a local disk, in case `same` on the slow one. `no-open`
# is the same disk with a kernel that opens by itself. The hot file is exempt from the accelerator, as examples/ advise.
use v5.36;
use Test::Bench::Beside qw(beside rounds);
use Test::Bench::Hot;
use Accel::Bench::Rig;
use Test::Util ();

my ($clients, $rate, $threads, $enough_ms) = (16, 200, 32, 1);
my %disk = (lookup_ms => 8, read_ms => 8, open_ms => 100, jitter => 20, spindles => 64);
my @cases = (
	{ name => 'local', what => 'cell', hot => '/1k.bin', title => 'The hot file on a local disk' },
	{ name => 'same', what => 'cell', hot => '/slow/1k.bin', title => 'The hot file on the file system that asks' },
);
# helps: the server is said to help when files are cold, and has aims
my @kinds = (
	{ kind => 'nginx', name => 'nginx', file_cache => 0 },
	{ kind => 'nginx', name => 'nginx+accel', file_cache => 0, front => 1 },
	{ kind => 'nginx', name => 'nginx+accel, open_file_cache', front => 1 },
	{ kind => 'nginx', name => 'nginx+accel, aio threads', front => 1, aio => 1 },
	{ kind => 'nginx', name => 'nginx+accel, no-open', file_cache => 0, front => 1, no_open => 1, helps => 1 },
	{ kind => 'nginx', name => 'nginx, module', file_cache => 0, module => 'on', module_file => Test::Util::nginx_module(), helps => 1 },
	{ kind => 'nginx', name => 'nginx, proxy to accel-server', file_cache => 0, behind => 1, helps => 1 },
	{ kind => 'lighttpd', name => 'lighttpd', stat_cache => 'disable' },
	{ kind => 'lighttpd', name => 'lighttpd+accel', stat_cache => 'disable', front => 1 },
	{ kind => 'lighttpd', name => 'lighttpd+accel, simple', front => 1 },
	{ kind => 'lighttpd', name => 'lighttpd+accel, inotify', stat_cache => 'inotify', front => 1 },
	{ kind => 'lighttpd', name => 'lighttpd+accel, no-open', stat_cache => 'disable', front => 1, no_open => 1, helps => 1 },
	{ kind => 'lighttpd', name => 'lighttpd, proxy to accel-server', stat_cache => 'disable', behind => 1, helps => 1 },
	{ kind => 'apache', name => 'apache', helps => 1 },
	{ kind => 'accel', name => 'accel-server', helps => 1 },
	{ kind => 'accel', name => 'accel-server+accel', via_stat_accel => 1, helps => 1 },
);

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench);
	my @wanted = $bench->wanted(map { { front => 0, via_stat_accel => 0, threads => $threads, %$_ } } @kinds);
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @cases);
	my @done = rounds($bench, $rig, 'opens', \@wanted, \@chosen, cell => sub { return cell($bench, $rig, @_) });
	print_case($_, map { $_->{name} } @wanted) for @done;
	print "\nAims\n";
	print_aims($bench, $_, @wanted) for @done;
}

# A fresh server on a fresh disk: one request for the hot file, then cold clients, then hot ones by the clock beside them.
sub cell ($bench, $rig, $case, $kind) {
	my $behind = $kind->{behind} && $bench->server({ kind => 'accel', name => 'behind' }, $rig->root);
	my $run = $rig->with_server({ %$kind, exempt => $case->{hot}, $behind ? (proxy => { protocol => 'http', to => $behind }) : () }, { %disk, no_open => $kind->{no_open} }, sub ($srv) {
		$bench->load(-n => 1, -c => 1, -d => 5, -t => 20, $srv->url . $case->{hot});
		my ($hot, $cold) = beside($bench, $srv, { clients => $clients, list => $rig->list('small') }, path => $case->{hot}, rate => $rate);
		return { (map { $_ => $hot->{latency_us}{$_} } qw(p50 p99 max)), served => $hot->{requests_per_s} / $rate, cold_mb => $cold->{mb_per_s},
			opens => $hot->{opens} / $bench->opt('seconds'), errors => $hot->{errors}{all} + $cold->{errors}{all} };
	});
	$behind->stop if $behind;
	return ($kind->{name} => $run);
}

sub print_case ($case, @names) {
	print "\n$case->{title}, $rate requests/s by the clock, beside $clients clients of cold 100 kB files; open() takes $disk{open_ms} ms  ($case->{name})\n";
	printf "  %-30s %9s %9s %10s %8s %9s %8s %7s %6s\n", '', 'p50 ms', 'p99 ms', 'worst ms', 'served', 'cold MB/s', 'opens/s', 'others%', 'errors';
	for my $name (@names) {
		my $m = $case->{of}{$name};
		printf "  %-30s %9.2f %9.2f %10.1f %7.0f%% %9.1f %8.0f %7.0f %6d\n", $name, (map { ($m->{$_} // 0) / 1000 } qw(p50 p99 max)), 100 * $m->{served},
		    @$m{qw(cold_mb opens others errors)};
	}
}

# On a local disk the hot file waits for nobody. On the file system that asks it waits for an open() of its own at most.
sub print_aims ($bench, $case, @wanted) {
	my $own = $case->{name} eq 'local' ? 0 : $disk{open_ms} * (1 + $disk{jitter} / 100);
	for my $kind (grep { $_->{helps} } @wanted) {
		my $m = $case->{of}{ $kind->{name} };
		$bench->aim("$kind->{name}: hot p99, ms ($case->{name})", ($m->{p99} // 0) / 1000, '<=', $enough_ms + ($kind->{no_open} ? 0 : $own), $m);
	}
}

1;
