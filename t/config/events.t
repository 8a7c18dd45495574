# Each ev= of a log is explained: doc/events.md and the manuals come from base/events.def, which `scripts/lint events` compares with the
# programs, and documents name no others.
use v5.36;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(slurp);

my $top = "$FindBin::Bin/../..";
my ($server, $accel) = map { Test::Util::program($_) } qw(accel-server fcgi-stat-accel);
my %row = map { /^E\("([^"]+)", "(\w+)", "([^"]+)", "((?:[^"\\]|\\.)+)", "((?:[^"\\]|\\.)*)"\)$/ ? ($1 => { who => $2, level => $3, means => $4, next => $5 }) : () }
	split /\n/, slurp("$top/base/events.def");
cmp_ok scalar keys %row, '>', 130, 'events.def was read';
is qx{cd $top && scripts/lint events 2>/dev/null}, '', 'each name in the programs has a row, and each row a place';

my $page = qx{$server --manual=events};
ok $page eq slurp("$top/doc/events.md"), 'doc/events.md is what the program prints; if not: make doc/events.md';
is_deeply [grep { $page !~ /^\| `\Q$_\E` \| \S+ \| \Q$row{$_}{level}\E \| \S/m } sort keys %row], [], '... with every row';
for ([$server, 'program', 'server'], [$accel, 'text', 'accel']) {
	my ($program, $name, $who) = @$_;
	my $manual = qx{$program --manual=$name};
	my ($events) = $manual =~ /^EVENTS$(.*)^SEE ALSO$/ms;
	is_deeply [sort $events =~ /^    (\S+)$/mg], [grep { $row{$_}{who} =~ /^(?:$who|both)$/ } sort keys %row], "the manual of $program has its own";
}

is_deeply [grep { $row{$_}{level} =~ /warn|error|alert/ && $row{$_}{next} eq '' && !/^worker\.goes-on$/ } sort keys %row], [], 'what is more than information has something to do';
my %known = map { $_ => 1 } keys %row, slurp("$top/server/config/directives.def") =~ /"([a-z0-9-]+(?:\.[a-z0-9-]+)+)\\?"/g, 'fs.aio-max-nr';
is_deeply [map { my $name = $_; grep { !$known{$_} } "$row{$name}{means} $row{$name}{next}" =~ /(?<![\w\/.-])([a-z][a-z-]*(?:\.[a-z][a-z-]*)+)(?![\w\/])/g } sort keys %row],
	[], 'settings and events that the table names are there';

my %said;
for my $file (split /\n/, qx{cd $top && ls README.md CONTRIBUTING.md doc/*.md fcgi-stat-accel/manual.txt server/manual.txt server/manual-conf.txt; find examples debian -type f}) {
	my $text = slurp("$top/$file");
	$said{$1} //= $file while $text =~ /(?<![\w-])ev=([a-z-]++(?:\\?\.[a-z-]+)*)(?!\\?\.\()/g;
}
cmp_ok scalar keys %said, '>', 20, 'documents name events';
is_deeply [map { "$said{$_}: $_" } grep { !$row{s/\\//gr} } sort keys %said], [], '... which are in the table';

done_testing;
