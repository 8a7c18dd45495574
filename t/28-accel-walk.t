# accel-warm: every file of a tree or a list is touched, whatever its name; what is in the way is told; a run that was
# killed goes on where it was.
use v5.36;
use File::Temp;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP ();
use Test::More;

my $program = ($ENV{B} // 'build') . '/bin/accel-warm';

# With these arguments: exit status, standard output, standard error.
sub run_with ($in, @args) {
	my ($stdin, $out, $err) = map { File::Temp->new } 1 .. 3;
	print $stdin $in;
	$stdin->flush;
	my $rc = system 'sh', '-c', 'p=$1 i=$2 o=$3 e=$4; shift 4; exec "$p" "$@" <"$i" >"$o" 2>"$e"', 'sh', $program, "$stdin", "$out",
	    "$err", @args;
	return ($rc & 127 ? "signal $rc" : $rc >> 8, map { local $/; open my $fh, '<:raw', "$_" or die; scalar <$fh> // '' } $out, $err);
}

sub warm (@args) { return run_with('', @args) }

# The numbers of a run that ends well.
sub numbers (@args) {
	my ($rc, $out, $err) = warm('--json', @args);
	is "$rc $err", '0 ', "accel-warm @args" =~ s/[^ -~]/?/gr;
	return JSON::PP::decode_json($out || '{}');
}

sub put ($path, $bytes) {
	open my $fh, '>:raw', $path or die "$path: $!";
	print $fh $bytes;
	close $fh or die "$path: $!";
}

subtest 'a tree' => sub {
	my $dir = File::Temp->newdir;
	mkdir "$dir/$_" or die $! for qw(a a/b empty);
	put("$dir/$_", 'x' x 1000) for qw(one a/two a/b/three);
	symlink 'one', "$dir/link" or die $!;
	for my $how (qw(stat open read:100 read:all)) {
		my $n = numbers("--warm=$how", "$dir");
		is "$n->{files} $n->{directories} $n->{others}", '3 4 1', "... counts with --warm=$how";
		is $n->{bytes}, { 'read:100' => 300, 'read:all' => 3000 }->{$how} // 0, '... and reads what it should';
	}
	my ($rc, $out) = warm("$dir");
	like $out, qr/^3 files, 4 directories, 3.0 kB in \d+\.\d+ s: \d+ files\/s, .*; 1 links and other names; 0 errors\n\z/, 'the summary';
	is_deeply [warm('-q', "$dir")], [0, '', ''], '--quiet';
};

done_testing;
