#!/usr/bin/perl
# scripts/lint walls: a room of server/ calls only those that server/walls.def allows, and no figure exceeds its limit.
use v5.36;
use File::Temp;
use Test::More;

my $dir = File::Temp->newdir;
mkdir "$dir/scripts";
system('cp', '-r', 'server', "$dir/") == 0 or die 'cp server';
system('cp', 'scripts/lint', 'scripts/walls', "$dir/scripts/") == 0 or die 'cp scripts';

sub slurp { my ($file) = @_; open my $fh, '<', $file or die "$file: $!"; local $/ = undef; return scalar <$fh> }
sub spew { my ($file, $text) = @_; open my $fh, '>', $file or die "$file: $!"; print $fh $text; close $fh or die "$file: $!"; return }
sub findings { return [ split /\n/, qx{sh $dir/scripts/lint walls 2>/dev/null} ] }

# Changes a file of the copy, looks, and changes it back.
sub findings_with {
	my ($file, $change) = @_;
	my $was = slurp("$dir/$file");
	spew("$dir/$file", $change->($was));
	my $found = findings();
	spew("$dir/$file", $was);
	return $found;
}

is_deeply findings(), [], 'the tree as it is has no finding';
is $? >> 8, 0, '... and the status is 0';

my $found = findings_with('server/config/config.c', sub { "$_[0]\nvoid\nconfig_ends(struct worker *w)\n{\n\tworker_free(w);\n}\n" });
like $found->[0], qr{^server/config/config\.c:\d+: walls: calls worker_free\(\) of server/worker/worker\.c; room config may not call worker$},
    'a call against the arrow is found, with its line';

$found = findings_with('server/walls.def', sub { $_[0] =~ s/^ROOM\(status,.*\n//mr });
is_deeply $found, ['server/walls.def:1: walls: no line ROOM(status, ...)'], 'a room needs a row';

$found = findings_with('server/config/config.c', sub { "$_[0]\n#if X\nint\nconfig_x(void)\n{\n}\n#else\nint\nconfig_x(void)\n{\n}\n#endif\n" });
is_deeply $found, [], 'a name of two branches of an #if is one';

my $limit = 'files of server that see server/worker/worker.h';
$found = findings_with('server/config/config.h', sub { $_[0] =~ s{^(#include "base/text\.h")}{#include "server/worker/worker.h"\n$1}mr });
ok((grep { /^server\/walls\.def:1: walls: \Q$limit\E: \d+, at most \d+; / } @$found), 'a header that is seen by all breaks the limit of its figure');

done_testing();
