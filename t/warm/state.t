# accel-warm: state files of lists, where none can be, and on a disk that is full.
use v5.36;
use File::Temp;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use POSIX ();
use Test::More;
use Accel::Slowfs;
use Test::Walk;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

subtest 'a killed run of a list goes on where it was' => sub {
	my ($src, $run_dir) = map { File::Temp->newdir } 1 .. 2;
	my $state = "$run_dir/state";
	make_tree("$src", 1, 1000);
	put("$run_dir/list", join '', map { "d1/f$_\n" } 1 .. 1000);
	my $slow = Accel::Slowfs->start(source => "$src", spindles => 8, lookup_ms => 0, read_ms => 0);
	my @same = ('-j', '4', '--state', $state, '--list', "$run_dir/list", '--root', $slow->dir);
	$slow->hang('/d1/f900');
	my $run = start(@same);
	ok eventually(sub { keys_in($state) == 3 }), '768 entries are done, and 231 of a batch that is not' or diag slurp($state);
	kill KILL => $run->{pid};
	finish($run);
	$slow->go;
	my $n = numbers(@same);
	is "$n->{resumed} $n->{files}", '768 232', 'the next run does the rest';
	is still_cold($slow, map { "d1/f$_" } 1 .. 1000), 0, 'every file is warm after both';
	cmp_ok $slow->counts->{reads}, '>=', 1000, '... and was read';
	$slow->stop;
};

subtest 'a state file in a wrong place is refused' => sub {
	my $dir = File::Temp->newdir;
	put("$dir/file", 'x');
	my ($rc, $out, $err) = warm('--state', "$dir/none/state", "$dir");
	is $rc, 73, 'no such directory';
	like $err, qr/^accel-warm: state file \S+: No such file or directory\n\z/, '... is reported';
	($rc) = warm('--state', "$dir/file", "$dir");
	is $rc, 65, 'something else';
	is slurp("$dir/file"), 'x', '... is not touched';
	POSIX::mkfifo("$dir/fifo", 0600) or die $!;
	open my $sparse, '>', "$dir/sparse" or die $!;
	truncate $sparse, 2**40;
	for my $other ("$dir/fifo", '/dev/zero', "$dir/sparse") {
		($rc, $out, $err) = warm('--state', $other, "$dir/none");
		is $rc, 65, "$other: accel-warm refuses it without waiting";
		like $err, qr/: this is not a state file\n\z/, '... is reported';
	}
	symlink "$dir/file", "$dir/link" or die $!;
	is((warm('--state', "$dir/link", "$dir"))[0], 73, 'a symbolic link is refused');
	is slurp("$dir/file"), 'x', '... and where it leads';
	put("$dir/bad", "accel-warm state 1\nwarm=\e[31m\n\n");
	($rc, $out, $err) = warm('--state', "$dir/bad", "$dir");
	is $rc, 65, 'that of another run';
	like $err, qr/written for "warm=\\033\[31m"/, '... no terminal obeys it';
};

subtest 'a full disk stops the state file, not the run' => sub {
	my ($src, $disk) = map { File::Temp->newdir } 1 .. 2;
	plan skip_all => 'a small file system cannot be mounted' if $> != 0 || system("mount -t tmpfs -o size=32k none $disk 2>/dev/null") != 0;
	my $state = "$disk/state";
	make_tree("$src", 600, 2);
	my $slow = Accel::Slowfs->start(source => "$src", spindles => 4, lookup_ms => 0, read_ms => 0);
	my @same = ('-j', '4', '--state', $state, $slow->dir);
	$slow->hang("/d$_/f1") for 3, 300;
	my $fill = sub { open my $fh, '>', "$disk/fill" or die; 1 while syswrite $fh, 'x' x 512 };

	$fill->();
	my ($rc, undef, $err) = warm(@same);
	is $rc, 73, 'none from the start';
	like $err, qr/No space left on device/, '... is reported';
	ok !-e $state && !-e "$state.new", '... and leaves nothing behind';

	unlink "$disk/fill";
	my $run = start(@same, '--rate', '100');
	ok eventually(sub { keys_in($state) >= 5 }), 'there was some';
	my $saved = slurp($state);
	$fill->();
	ok eventually(sub { said($run) =~ /No space left/ }), 'a full disk is reported';
	is substr(slurp($state), 0, length $saved), $saved, 'what was written is there';
	my $before = keys_in($state);
	unlink "$disk/fill";
	ok eventually(sub { keys_in($state) > $before + 20 }), 'when there is room again it goes on';
	is slurp($state) =~ s/\A.*?\n\n//sr =~ s/^[0-9a-f]{32}\n//mgr, '', '... without a gap';
	kill KILL => $run->{pid};
	finish($run);
	$slow->go;
	my $n = numbers(@same);
	is $n->{resumed} + $n->{files}, 1200, 'and the next run is complete';
	$slow->stop;
	system "umount $disk";
};

done_testing;
