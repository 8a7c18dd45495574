# accel-warm as examples/systemd/ starts it: the command of the service works, and the line for cron leaves a run that goes on alone.
use v5.36;
use Cwd ();
use Fcntl qw(:flock);
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(find_program put slurp temp_tree);

my $examples = Cwd::abs_path("$FindBin::Bin/../../examples/systemd");
my $bin = Cwd::abs_path(Test::Util::build_dir() . '/bin');
my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www);
put("$dir/www/$_", 'x' x 1000) for 1 .. 10;

# As it would be on this machine.
sub here { my ($text) = @_; return $text =~ s{/usr/local/bin}{$bin}gr =~ s{/var/www/html}{$dir/www}gr =~ s{/run/lock}{$dir}gr }

subtest 'the command of the service' => sub {
	my ($command) = slurp("$examples/accel-warm.service") =~ /^ExecStart=(.+)$/m;
	like $command, qr{^/usr/local/bin/accel-warm }, 'is accel-warm';
	is system(here($command)), 0, 'makes the tree warm';
};

subtest 'the line for cron' => sub {
	my ($user, $line) = slurp("$examples/README.md") =~ /^    0 5 \* \* \*\s+(\S+)\s+(.*accel-warm.*)$/m or return fail 'is in README.md';
	plan skip_all => "no $_" for grep { !find_program($_) } qw(flock ionice);
	$line = here($line);
	my $loud = $line =~ s/ --quiet//r;
	like qx{$loud 2>&1}, qr/\b10\b.*files?/s, 'makes the tree warm';
	open my $lock, '>>', "$dir/accel-warm" or die "lock: $!";
	flock $lock, LOCK_EX or die "flock: $!";
	is qx{$loud 2>&1}, '', 'a second run does nothing';
	is $?, 0, '... and is not an error';
	close $lock;
	isnt qx{$loud 2>&1}, '', 'the next one works again';
};

done_testing;
