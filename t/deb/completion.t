# Completion in fish, and that zsh accepts the files.  t/scripts/completion.t has bash.
use v5.36;
use Cwd qw(abs_path);
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(build_dir need_program temp_tree);

my ($fish, $zsh) = (need_program('fish', 'fish'), need_program('zsh', 'zsh'));
my $top = abs_path("$FindBin::Bin/../..");
my $dir = temp_tree();
my @programs = ((map { abs_path(build_dir()) . "/bin/$_" } qw(accel-server fcgi-stat-accel accel-warm accel-load accel-pool)), glob "$top/scripts/accel-*");
is system("$top/scripts/completion", "$dir", @programs), 0, 'makes the files' or die 'no completion';
local $ENV{HOME} = "$dir";

sub offered ($name, $line) {
	open my $out, '-|', $fish, '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', "$dir/fish/$name.fish", "$name $line" or die "fish: $!";
	return map { chomp; (split /\t/)[0] } <$out>;
}

for my $path (@programs) {
	my $name = $path =~ s{.*/}{}r;
	my %offered = map { $_ => 1 } offered($name, '--');
	is_deeply [grep { !$offered{$_} } qx{$path --help} =~ /^\s{1,6}(?:-\w, )?(--[a-z][a-z0-9-]*)/mg], [], "fish: $name";
	is system($zsh, '-n', "$dir/zsh/_$name"), 0, "zsh: $name";
}
is_deeply [offered('accel-warm', '--manual=')], [qw(--manual=roff --manual=text)], 'the words of an option';
is_deeply [sort(offered('accel-pool', ''))], [qw(check evict list make remove state)], 'commands';
is_deeply [offered('accel-pool', 'make --sp')], ['--spec'], 'options of a command';

done_testing;
