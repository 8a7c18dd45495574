# accel-warm reports what hangs, and goes on with the rest.
use v5.36;
use File::Temp;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Accel::Slowfs;
use Test::Walk;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

# It takes five seconds to be sure that something hangs: both runs take them at the same time.
my ($src, $local) = map { File::Temp->newdir } 1 .. 2;
make_tree("$src", 1, 100);
make_tree("$local", 40, 20);
my $hung = Accel::Slowfs->start(source => "$src", spindles => 4, lookup_ms => 0, read_ms => 0);
$hung->hang('/d1/*');
my $run = start('-j', '4', '--rate', '400', "$local", $hung->dir);    # the last one is read first

subtest 'a file that hangs does not stop the others' => sub {
	my $src = File::Temp->newdir;
	make_tree("$src", 4, 20);
	my $slow = Accel::Slowfs->start(source => "$src", spindles => 4, lookup_ms => 1, read_ms => 1);
	$slow->hang('/d2/f3');
	my $run = start('-j', '4', $slow->dir);
	ok $slow->wait_hanging(1), 'a thread waits for it';
	ok eventually(sub { $slow->counts->{reads} == 79 }), 'the others go on';
	ok eventually(sub { said($run) =~ /no answer/ }), 'the hanging file is reported';
	like said($run), qr/\Aaccel-warm: ".*\/d2\/f3": no answer yet; continuing with other files\n\z/, '... and says which file it is';
	$slow->go;
	my ($rc, $n) = finish($run);
	is "$rc $n->{files} $n->{without_answer}", '0 80 0', 'when it is back all is done';

	$slow->forget;
	$slow->hang('/d2/f3');
	$run = start('-j', '4', $slow->dir);
	ok $slow->wait_hanging(1), 'it hangs again';
	ok eventually(sub { $slow->counts->{reads} == 80 + 79 }), 'the others are done';
	kill INT => $run->{pid};
	($rc, $n) = finish($run);
	is $rc, 130, 'Ctrl-C ends it, although the disk does not answer';
	is "$n->{files} $n->{interrupted}", '79 1', '... with a summary';
	$slow->stop;
};

subtest 'a mount that hangs does not stop the others' => sub {
	ok $hung->wait_hanging(4), 'all threads are in it';
	ok eventually(sub { kill USR1 => $run->{pid}; said($run) =~ /^accel-warm: .* 800 of 900 /m }), 'other threads do what lies elsewhere'
	    or diag said($run);
	cmp_ok $hung->hanging, '<=', 8, '... and stay away';
	$hung->go;
	my ($rc, $n) = finish($run);
	is "$rc $n->{files}", '0 900', 'when it is back all is done';
	$hung->stop;
};

done_testing;
