# ext4 on a disk that hangs: a hot file on the same file system is answered while cold ones wait in the look-up of a
# directory, of a file, and in a read.  The disk goes on at a word of the test, so no answer depends on a clock.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp  ();
use Test::AccelLoad ();
use Test::More;
use Accel::Peer;
use Test::Server;
use Accel::SlowImage;
use Test::Util qw(eventually put slurp);

Accel::SlowImage::private_mounts(@ARGV);
my ($usable, $why) = Accel::SlowImage->usable('ext4');
plan skip_all => $why unless $usable;

use constant { COLD => 16, HOT => 200 };

my $dir = File::Temp->newdir('accel-image-XXXXXX', TMPDIR => 1);
mkdir "$dir/$_" or die "$dir/$_: $!" for qw(disk www);
chmod 0755, "$dir";

sub fill ($mnt) {
	put("$mnt/hot", 'h' x 1024);
	for my $n (1 .. COLD) {
		mkdir "$mnt/$n";
		put("$mnt/$n/cold", "cold $n " x 6000);
	}
}
fill("$dir/www");               # for comparison
put("$dir/list", join '', map { "/$_/cold\n" } 1 .. COLD);
my $image = Accel::SlowImage->make(type => 'ext4', file => "$dir/disk/disk.img", files => 3 * COLD, bytes => 2e6, fill => \&fill);

# What is known before the disk hangs; the next step of each cold request then waits.
my @stages = (
	['the look-up of a directory', sub ($d) { opendir my $dh, $d or die "$d: $!"; my @all = readdir $dh }],
	['the look-up of a file', sub ($d) { stat "$d/$_" or die "$_: $!" for 1 .. COLD }],
	['a read', sub ($d) { stat "$d/$_/cold" or die "$_: $!" for 1 .. COLD }],
);

sub beside ($make, $know) {
	my $slow = Accel::SlowImage->start(image => $image, spindles => COLD, read_ms => 0);
	my $srv = $make->($slow->dir);
	my $hot = sub (%more) { Test::AccelLoad->run($srv, '/hot', '-c', 20, '-n', $more{n}, '-t', 20, '-d', 40, '--verify', "dir:$dir/www") };
	# A young file is not kept; the second time is after the first answer.
	ok eventually(sub { my $r = $hot->(n => 20); $r->{answered} == 20 && !$r->{errors}{all} }), 'the hot file is served';
	$know->($slow->dir);
	$slow->hang;
	my $load = Test::AccelLoad->start($srv, '/', '-c', COLD, '-n', COLD, '-t', 50, '-d', 60, '--urls', "$dir/list", '--verify', "dir:$dir/www");
	ok $slow->wait_hanging(1), 'cold requests hang';
	my $r = $hot->(n => HOT);
	is $r->{answered}, HOT, HOT . ' requests of the hot file are answered meanwhile';
	is $r->{errors}{all}, 0, '... with its bytes' or diag explain $r;
	ok !$load->ended, '... before the cold requests end';
	$slow->go;
	$r = $load->report;
	is $r->{errors}{all}, 0, 'the cold requests get their bytes when the disk goes on' or diag explain $r;
	is $r->{answered}, COLD, '... each of them';
	$slow->stop;
}

sub accel ($backend) {
	return sub ($d) { Test::Server->start(dir => $d, conf => qq{server.max-worker = 1\nserver.network-backend = "$backend"\n}) };
}

sub peer ($kind, @more) {
	return sub ($d) { Accel::Peer->start($kind, root => $d, front => 1, threads => 20, @more) };
}

my %has = map { $_ => 1 } Test::Server::backends();
my @servers = map { [$_, accel($_)] } grep { $has{$_} } qw(adaptive linux-sendfile writev linux-aio-sendfile io-uring);
for my $kind (qw(nginx lighttpd)) {
	next if Accel::Peer->missing($kind);
	push @servers, ["$kind, the accelerator", peer($kind)], ["$kind, the accelerator, hot file exempt", peer($kind, exempt => '/hot')];
}

for my $server (@servers) {
	my ($name, $make) = @$server;
	for my $stage (@stages) {
		my ($what, $know) = @$stage;
		subtest "$name: a hot file does not wait for cold ones in $what" => sub { beside($make, $know) };
	}
}

done_testing;
