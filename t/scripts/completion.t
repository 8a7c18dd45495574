# Completion of the command line in bash: each option of each program, the words of an option, commands.  t/deb/completion.t has zsh and fish.
use v5.36;
use Cwd qw(abs_path);
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(build_dir program slurp temp_tree);

my $top = abs_path("$FindBin::Bin/../..");
my $dir = temp_tree();
my @programs = ((map { abs_path(build_dir()) . "/bin/$_" } qw(accel-server fcgi-stat-accel accel-warm accel-load accel-pool)), glob "$top/scripts/accel-*");
is system("$top/scripts/completion", "$dir", @programs), 0, 'makes the files' or die 'no completion';

# What bash offers for the last of these words.
sub offered ($name, @words) {
	my $script = '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _' . $name =~ tr/-/_/r . '; printf "%s\n" "${COMPREPLY[@]}"';
	open my $out, '-|', 'bash', '-c', $script, "$dir/bash/$name", $name, @words or die "bash: $!";
	my @replies = map { chomp; $_ } <$out>;
	close $out or fail "bash fails for $name @words";
	return grep { $_ ne '' } @replies;
}

for my $path (@programs) {
	my $name = $path =~ s{.*/}{}r;
	subtest $name => sub {
		my $help = qx{$path --help};
		my %offered = map { $_ => 1 } offered($name, '-');
		my @options = $help =~ /^\s{1,6}(?:-\w, )?(--[a-z][a-z0-9-]*)/mg;
		cmp_ok scalar @options, '>', 1, '--help has options';
		is_deeply [grep { !$offered{$_} } @options], [], 'each is offered';
		is_deeply [grep { !/^--?[a-z0-9]/i } keys %offered], [], 'nothing else is';
		for my $shell ("zsh/_$name", "fish/$name.fish") {
			my $text = slurp("$dir/$shell");
			is_deeply [grep { my $long = s/^--//r; $text !~ /(?:--|-l )\Q$long\E\b/ } @options], [], "... in $shell, too";
		}
	};
}

is_deeply [offered('accel-server', '--manual', '=', 'pro')], [qw(program program-roff)], 'the words of an option, after =';
is_deeply [offered('accel-warm', '--manual', '')], [qw(text roff)], '... or as a word of its own';
my %values = (
	'fcgi-stat-accel' => [
		[['--mode', '='], [qw(auth sendfile)]], [['--for', ''], [sort map { /^D\("([^"]+)"/ ? $1 : () } split /\n/, slurp("$top/fcgi-stat-accel/dialects.def")]],
		[['--for=', 'n'], []], [['--for', '=', 'ng'], ['nginx']], [['--late', ''], [qw(503 go-on)]], [['--log-format', ''], [qw(json text)]],
		[['-w', ''], [qw(auto auto:threads open read: read:all stat)]], [['--warm', '=', 'read', ':'], ['', 'all']], [['--warm', '=', 'read', ':', 'a'], ['all']],
		[['--warm', 'auto', ':', 'th'], ['threads']], [['--listen', ''], ['unix:']], [['--check', 'l'], ['lighttpd']], [['--behind', ''], [qw(all none)]],
	],
	'accel-warm' => [[['--warm', 'read', ':'], ['', 'all']], [['--balance', ''], [qw(carp path uri)]], [['--hash', '=', 'c'], [qw(crc32 crc32-avalanche)]]],
	'accel-load' => [[['--verify', ''], [qw(dir: hash: length pattern)]], [['--range', 'r'], ['random:']]],
	'accel-bench' => [[['--noatime', ''], [qw(off on)]], [['--accel', ''], [qw(none tcp unix)]], [['--storage', 'e'], [qw(evict ext4:)]],
		[['--server', 'accel', ':', 'g'], [qw(gthread-aio gthread-sendfile)]], [['-s', 'ng'], [qw(nginx nginx:aio nginx:directio)]]],
	'accel-tune' => [[['--objective', ''], [qw(both latency throughput)]], [['--sweep', ''], [qw(backend read-ahead stat-threads read-threads threads warm)]]],
	'accel-graph' => [[['--chart', 'h'], ['heat']]],
);
for my $name (sort keys %values) {
	is_deeply [sort(map { $_ // '' } offered($name, @{ $_->[0] }))], [sort grep { $_ ne '' } @{ $_->[1] }], "$name @{ $_->[0] }" for @{ $values{$name} };
}

is_deeply [sort(offered('accel-pool', ''))], [qw(check evict list make remove state)], 'commands';
is_deeply [offered('accel-pool', 'make', '--sp')], ['--spec'], 'options of a command';
is_deeply [offered('accel-pool', '--se')], [], '... are not those of the program';
is_deeply [sort(offered('accel-server', 'ctl', 'st'))], [qw(status stop)], 'what accel-server ctl does';
is_deeply [offered('accel-warm', '--list', $dir)], [], 'a file: bash does that';
mkdir "$dir/files";
is_deeply [sort(offered('accel-warm', '--root', "$dir/f"))], ["$dir/files", "$dir/fish"], 'a directory';

done_testing;
