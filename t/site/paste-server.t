# The accel-server lines of the README, pasted: they serve the files of the document root.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Site;
use Test::Util qw(temp_tree);

my $tree = temp_tree();
my $lines = Test::Site->readme(qr/server\.document-root/);
is $lines =~ s{"/srv/www"}{"$tree"}, 1, 'a document root';
is $lines =~ s/\b8080\b/\@PORT\@/, 1, 'a port';
my $srv = Test::Server->start(dir => $tree, conf => $lines);
$srv->write('a.txt', 'A');
is $srv->fetch('/a.txt')->{body}, 'A', 'a file is served';
is $srv->fetch('/none')->{status}, 404, 'an absent one is not';

done_testing;
