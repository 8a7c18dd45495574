package Test::Bench::NgCache;
# nginx with proxy_cache on a slow disk, without fcgi-stat-accel, with it, and with the module that asks it.
#
# `run($bench)` lets nginx fill a cache with 10,000 objects of 100 kB (2,000 with `--quick`) on the source of the slow disk, and then
# measures nginx and nginx with `aio threads`, each as it is, with the accelerator, and with the module, on the slow disk: what 50 clients of a
# hot object see beside 20 clients of cold ones, and how much of the disk 100 clients of cold objects get. Each measurement has a fresh mount and a
# fresh server, so each object is cold and nginx knows no key, as after a restart.
#
# The hot object is cached, too, in a second cache that is in memory, because each `open()` on the slow disk would wait. It goes through the
# accelerator like all others.
use v5.36;
use List::Util qw(max min);
use Test::Bench::Accel;
use Test::Bench::Beside qw(over rounds);
use Test::Bench::Hot;
use Accel::Bench::Rig;
use Accel::Peer::Cache;
use Test::Util ();

my %objects = (full => 10_000, quick => 2000);
my $threads = 32;
my %disk = (lookup_ms => 8, read_ms => 8, jitter => 20);
my @cases = map { my $n = $_; map { { %$_, name => "$_->{name}-$n", alone => $n, disk => { %disk, spindles => $n } } } (    # alone on each disk anew
	{ what => 'beside', name => '20x100k', title => '20 clients of cold cached objects of 100 kB', clients => 20, list => 'cached' },
	{ what => 'through', name => 'cold-100k', title => 'Cold cached objects of 100 kB', clients => 100, list => 'cached', plain => 'cached-files' },
) } 2, 16;

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench);
	my $n = $objects{ $bench->opt('quick') ? 'quick' : 'full' };
	my @kinds = kinds($bench, fill($bench, $rig, $n));
	my @chosen = map { { %$_, files => files($bench, $_->{disk}, $n) } } Test::Bench::Hot::chosen($bench->opt('case'), @cases);
	my @done = rounds($bench, $rig, 'ngcache', \@kinds, \@chosen);
	Test::Bench::Accel::show($_, @kinds) for @done;
	print "\nAims\n";
	print_aims($bench, $_) for @done;
}

# As many objects as keep the disk busy.
sub files ($bench, $disk, $most) { return min($most, max(200, int($bench->opt('seconds') / Accel::Bench::Rig::ideal_seconds($disk, 1, 'cached')))) }

sub kinds ($bench, $cache) {
	my @nginx = ({ name => 'nginx' }, { name => 'nginx-aio', aio => 1 });
	my %module = (module => 'accel', module_file => Test::Util::nginx_module());
	return $bench->wanted(map { { %$_, kind => 'nginx', cache => $cache, via_stat_accel => 0, threads => $threads } }
		map { ($_, { %$_, front => 1, name => "$_->{name}+accel" }, { %$_, %module, name => "$_->{name}+module" }) } @nginx);
}

# Fills the caches with n objects through nginx, on the fast disk itself, before the slow disk is first mounted. Writes their names to
# the list "cached". Returns where the caches are when the slow disk is mounted.
sub fill ($bench, $rig, $n) {
	my ($disk, $mount, $hot) = ($rig->disk . '/cache', $rig->mount_point . '/cache', $bench->dir . '/hot');
	my (%uris, %files);
	open my $uris, '>', $rig->list('cached') or die "cached.list: $!";
	open my $files, '>', $rig->list('cached-files') or die "cached-files.list: $!";
	for my $uri (map { "/cold/$_" } 1 .. $n) {
		print $uris "$uri\n";
		print $files Accel::Peer::Cache::file($mount, $uri) =~ s/^\Q@{[ $rig->root ]}\E//r, "\n";
	}
	close $_ or die "list: $!" for $uris, $files;
	my $srv = $bench->server({ kind => 'nginx', name => 'nginx that fills the cache', cache => { cold => $disk, hot => $hot, origin => 1 } }, $rig->root);
	for my $args ([-n => $n, -u => $rig->list('cached'), $srv->url . '/'], [-n => 10, $srv->url . '/1k.bin']) {
		my $r = $bench->load(-c => 16, -d => 120, -t => 60, @$args);
		die "bench: the cache was not filled: $r->{errors}{all} errors\n" if $r->{errors}{all} || $r->{answered} < $args->[1];
	}
	$srv->stop;
	print "# $n objects of 100 kB cached\n" unless $bench->opt('silent');
	return { cold => $mount, hot => $hot };
}

# As for files: the better of the two servers without the accelerator, and twice the hot p99 alone or a millisecond.
sub print_aims ($bench, $case) {
	my ($of, $where) = ($case->{of}, "$case->{disk}{spindles} spindles");
	for my $name (sort grep { /\+\w+$/ } keys %$of) {
		my $m = $of->{$name};
		if ($case->{what} eq 'beside') {
			$bench->aim("$name: hot p99 in ms, $where", $m->{p99} / 1000, '<=', max(1, 2 * $m->{alone_p99} / 1000), $m);
			next;
		}
		my ($best) = sort { $b->{mb} <=> $a->{mb} } map { $of->{$_} } grep { /^nginx(?:-aio)?$/ } keys %$of;
		$bench->aim("$name: cold MB/s / the better without, $where", over($m->{mb}, $best->{mb}), '>=', 0.95, $m, $best) if $best;
		$bench->aim("$name: cold MB/s / the rig, $where", $m->{of_rig}, '>=', 0.95, $m, $of->{'the rig'});
	}
}

1;
