package Test::Bench::Walk;
# accel-warm over 100,000 files beside find, xargs stat and a shell loop.
#
# `run($bench)` prints the table. The tree: 1000 directories with 100 names each, hard links to one file of 2 kB a
# directory; on the slow disk (t/slowfs, 16 spindles) each name is cold by itself. What does one thing after the other walks
# a part of the tree there, since all of it would take minutes; files per second is what is compared. `find -type f` gets types
# with the names and looks no file up: it makes nothing warm, and shows what reading the directories costs.
use v5.36;
use JSON::PP ();
use Accel::Figures qw(median);
use Accel::Slowfs;
use Time::HiRes qw(time);
use Accel::Util qw(program);

my ($dirs, $each) = (1000, 100);
my %disk = (spindles => 16, lookup_ms => 2, read_ms => 2);

# Commands of a shell for directories; the number of cold directories, and whether the command looks up the names in them; the number of hot
# ones.
my @rows = (
	{ name => 'accel-warm --warm=stat', run => '"$WARM" -q --warm=stat "$@"', cold => [1000, 1], hot => 1000 },
	{ name => 'accel-warm --warm=open', run => '"$WARM" -q --warm=open "$@"', cold => [100, 1], hot => 1000 },
	{ name => 'accel-warm', run => '"$WARM" -q "$@"', cold => [100, 1], hot => 1000 },
	{ name => 'find -type f', run => 'find "$@" -type f >/dev/null', cold => [1000, 0], hot => 1000 },
	{ name => 'find -type f -size +0', run => 'find "$@" -type f -size +0 >/dev/null', cold => [10, 1], hot => 1000 },
	{ name => 'find | xargs stat', run => 'find "$@" -type f -print0 | xargs -0 stat -c "" >/dev/null', cold => [10, 1], hot => 1000 },
	{ name => 'find | xargs -P 32 stat', run => 'find "$@" -type f -print0 | xargs -0 -n 100 -P 32 stat -c "" >/dev/null', cold => [100, 1],
		hot => 1000 },
	{ name => 'a loop of stat', run => 'find "$@" -type f | while read -r f; do stat -c "" "$f"; done >/dev/null', cold => [5, 1], hot => 10 },
);

sub run ($bench) {
	my ($ok, $why) = Accel::Slowfs->usable;
	die "bench: no slow disk: $why\n" unless $ok;
	my $tree = $bench->dir . '/tree';
	fill($tree);
	files_per_s($bench, $rows[0], $tree, $dirs);            # in memory from now on
	my (%cold, %hot);
	my $slow = $bench->{disk} = Accel::Slowfs->start(source => $tree, %disk);
	for (1 .. $bench->opt('rounds')) {
		for my $row (@rows) {
			push @{ $hot{ $row->{name} } }, files_per_s($bench, $row, $tree, $row->{hot});
			$slow->forget;
			my $before = $slow->counts->{lookups};
			push @{ $cold{ $row->{name} } }, files_per_s($bench, $row, $slow->dir, $row->{cold}[0]);
			check($row, $slow->counts->{lookups} - $before);
		}
	}
	(delete $bench->{disk})->stop;
	report($bench, \%cold, \%hot);
}

sub fill ($tree) {
	mkdir $tree or die "$tree: $!\n";
	for my $d (1 .. $dirs) {
		mkdir "$tree/$d" or die "$tree/$d: $!\n";
		open my $fh, '>', "$tree/$d/1" or die "$tree/$d/1: $!\n";
		print $fh 'x' x 2048;
		close $fh or die "$tree/$d/1: $!\n";
		link "$tree/$d/1", "$tree/$d/$_" or die "$tree/$d/$_: $!\n" for 2 .. $each;
	}
}

# A program that did not look up all names is not compared.
sub check ($row, $lookups) {
	my ($n, $files) = @{ $row->{cold} };
	my $should = $n * (1 + $files * $each);
	die "bench: $row->{name}: $lookups names were looked up, not $should\n" unless $lookups == $should;
}

sub files_per_s ($bench, $row, $tree, $n) {
	my @cores = $bench->{pinned} ? ('taskset', '-c', '0,1') : ();
	local $ENV{WARM} = program('accel-warm');
	my @part = $n == $dirs ? $tree : map { "$tree/$_" } 1 .. $n;
	my $t = time;
	system(@cores, 'sh', '-c', $row->{run}, 'sh', @part) == 0 or die "bench: $row->{name}: status $?\n";
	return $n * $each / (time - $t);
}

sub report ($bench, $cold, $hot) {
	printf "\n%d files in %d directories, files per second\n", $dirs * $each, $dirs;
	printf "  %-26s %14s %14s\n", '', "cold, $disk{spindles} disks", 'in memory';
	my $of = $bench->result->{walk} = {};
	for my $name (map { $_->{name} } @rows) {
		my $m = $of->{$name} = { cold => median(@{ $cold->{$name} }), hot => median(@{ $hot->{$name} }) };
		printf "  %-26s %14.0f %14.0f\n", $name, $m->{cold}, $m->{hot};
	}
	my $most = 1000 * $disk{spindles} / $disk{lookup_ms} * $each / ($each + 1);
	$of->{disks} = $most;
	printf "  %-26s %14.0f\n", 'what the disks give', $most;
	$bench->note("one look-up takes $disk{lookup_ms} ms, and so does a read; find -type f looks up directories only");
	print "\nAims\n";
	my $stat = $of->{'accel-warm --warm=stat'};
	$bench->aim('accel-warm --warm=stat, cold, of what the disks give', $stat->{cold} / $most, '>=', 0.8);
	$bench->aim('accel-warm --warm=stat, cold, against find | xargs stat', $stat->{cold} / $of->{'find | xargs stat'}{cold}, '>=', 10);
	$bench->aim('accel-warm --warm=stat, in memory, against find | xargs stat', $stat->{hot} / $of->{'find | xargs stat'}{hot}, '>=', 1);
}

1;
