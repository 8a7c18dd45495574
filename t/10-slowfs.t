# The slow disk of the tests is what it claims to be: slow once per name and block, then fast; N
# spindles serve N requests at a time; the bytes are the file's; nothing stays mounted.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp;
use POSIX ();
use Test::More;
use Test::Slowfs;
use Time::HiRes qw(time sleep);

my ($ok, $why) = Test::Slowfs->usable;
plan skip_all => $why unless $ok;

my $src = File::Temp->newdir;
my %size = (empty => 0, one => 1, page_less => 4095, page => 4096, block => 131072, odd => 300_007);

sub put {
	my ($name, $bytes) = @_;
	open my $fh, '>:raw', "$src/$name" or die "$name: $!";
	print $fh $bytes;
	close $fh or die "$name: $!";
}

sub slurp {
	my ($path) = @_;
	open my $fh, '<:raw', $path or return "cannot open: $!";
	local $/;
	return scalar <$fh> // '';
}

sub seconds(&) {
	my ($code) = @_;
	my $t = time;
	$code->();
	return time - $t;
}

# Seconds that n processes need to do this once each, all at the same time.
sub at_once {
	my ($n, $code) = @_;
	return seconds {
		my @pids;
		for my $i (1 .. $n) {
			my $pid = fork // die "fork: $!";
			if (!$pid) { $code->($i); POSIX::_exit(0) }
			push @pids, $pid;
		}
		waitpid $_, 0 for @pids;
	};
}

put($_, join '', map { chr(($_ * 7 + $_ / 251) % 256) } 1 .. $size{$_}) for sort keys %size;
put("f$_", "file $_\n") for 1 .. 64;
mkdir "$src/sub" or die "sub: $!";
put("sub/deep", "deep\n");
symlink 'sub/deep', "$src/link" or die "link: $!";

subtest 'one look-up of 300 ms per name, there or not' => sub {
	my $slow = Test::Slowfs->start(source => $src, spindles => 16, lookup_ms => 300, read_ms => 300);
	my $d = $slow->dir;

	cmp_ok seconds { ok -e "$d/f1", 'found' }, '>=', 0.29, 'the first look-up is slow';
	cmp_ok seconds { stat "$d/f1" }, '<', 0.2, 'the second is fast';
	cmp_ok seconds { ok !-e "$d/none", 'not found' }, '>=', 0.29, 'an absence is slow';
	cmp_ok seconds { stat "$d/none" }, '<', 0.2, 'and then known';
	cmp_ok seconds { is slurp("$d/f1"), "file 1\n", 'content' }, '>=', 0.29, 'the first read is slow';
	cmp_ok seconds { is slurp("$d/f1"), "file 1\n", 'content' }, '<', 0.2, 'the second is fast';
	cmp_ok seconds { ok -e "$d/sub/deep", 'found' }, '>=', 0.58, 'each directory of a path costs its own';
	is_deeply $slow->counts, { lookups => 4, opens => 2, reads => 1 }, 'requests counted';
};

subtest 'sixteen spindles work in parallel, in one directory too' => sub {
	my $slow = Test::Slowfs->start(source => $src, spindles => 16, lookup_ms => 500, read_ms => 0);
	my $took = at_once(16, sub { stat $slow->dir . "/f$_[0]" });
	cmp_ok $took, '>=', 0.49, 'as long as one look-up';
	cmp_ok $took, '<', 2.5, 'not as long as sixteen';
};

subtest 'one spindle does one thing after the other' => sub {
	my $slow = Test::Slowfs->start(source => $src, spindles => 1, lookup_ms => 50, read_ms => 0);
	cmp_ok at_once(16, sub { stat $slow->dir . "/f$_[0]" }), '>=', 16 * 0.049, 'sixteen look-ups';
};

subtest 'open can be slow each time, as on a network file system' => sub {
	my $slow = Test::Slowfs->start(source => $src, lookup_ms => 0, open_ms => 100, read_ms => 0);
	for (1, 2) {
		cmp_ok seconds { slurp($slow->dir . '/f1') }, '>=', 0.099, "open $_";
	}
};

subtest 'the bytes are the bytes of the source' => sub {
	my $slow = Test::Slowfs->start(source => $src, spindles => 4, lookup_ms => 1, read_ms => 1, jitter => 20);
	my $d = $slow->dir;
	for my $name (sort keys %size) {
		ok slurp("$d/$name") eq slurp("$src/$name"), "$name, $size{$name} bytes, cold";
		ok slurp("$d/$name") eq slurp("$src/$name"), "$name, hot";
		is -s "$d/$name", $size{$name}, "$name, its size";
	}
	is readlink("$d/link"), 'sub/deep', 'a link is a link';
	is slurp("$d/link"), "deep\n", 'and leads where it should';
	opendir my $dh, $d or die "$d: $!";
	my @there = sort grep { !/^\.\.?$/ } readdir $dh;
	opendir $dh, "$src" or die "$src: $!";
	is_deeply \@there, [sort grep { !/^\.\.?$/ } readdir $dh], 'the listing is complete';
	closedir $dh;
	ok !open(my $fh, '>', "$d/new"), 'nothing can be written';
};

subtest 'nothing stays mounted' => sub {
	my $slow = Test::Slowfs->start(source => $src);
	my $mnt = $slow->dir;
	ok $slow->mounted, 'mounted';
	$slow->stop;
	ok !$slow->mounted, 'not after stop';

	my $pid = fork // die "fork: $!";
	if (!$pid) {
		my $inner = Test::Slowfs->start(source => $src);
		open my $fh, '>', "$src/../slowfs-mnt.$$" or POSIX::_exit(1);
		print $fh $inner->dir;
		close $fh;
		kill KILL => $$;
	}
	waitpid $pid, 0;
	my $lost = slurp("$src/../slowfs-mnt.$pid");
	unlink "$src/../slowfs-mnt.$pid";
	my $deadline = time + 10;
	sleep 0.05 while time < $deadline && slurp('/proc/self/mounts') =~ /\Q$lost\E/;
	unlike slurp('/proc/self/mounts'), qr/\Q$lost\E/, 'nor after the test was killed';
	rmdir $lost;
};

done_testing;
