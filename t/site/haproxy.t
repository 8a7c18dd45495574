# HAProxy as examples/haproxy sets it up, in front of two nginx that each have an accelerator.
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks;

Test::Site->need($_) for qw(haproxy nginx);

my $tree = tree();
my @node = map { Test::Site->start('nginx', 'auth.conf', root => "$tree/www") } 1, 2;
my $site = Test::Site->start('haproxy', 'haproxy.cfg', root => "$tree/www", behind => \@node);
check_files($site);
check_ranges($site);
check_conditions($site);
check_names($site);

subtest 'a file belongs to one server' => sub {
	my @url = map { '/names/' . Test::Site::Checks::encoded($_) } @Test::Site::Checks::NAMES;
	my @share = (0, 0);
	for my $url (@url) {
		my @before = map { $_->asked } @node;
		$site->get($url) for 1 .. 3;
		my @n = map { $node[$_]->asked - $before[$_] } 0, 1;
		is_deeply [sort { $a <=> $b } @n], [0, 3], Test::Site::Checks::readable($url);
		$share[ $n[0] ? 0 : 1 ]++;
	}
	ok $share[0] && $share[1], "each has some: @share";
};

subtest 'files stay served when one server is gone' => sub {
	$node[1]->stop;
	is $site->get("/names/$_")->{status}, 200, $_ for 'A.txt', 'a@b.txt', '100%25.txt', '%2541.txt', 'plus+.txt', 'a%20space.txt';
};

subtest 'the lines of the README' => sub {
	my $text = Test::Util::slurp("$site->{dir}/conf");
	like $text, qr/^\s*\Q$_\E$/m, $_ for split /\n/, Test::Site->block('haproxy', 'haproxy');
};

done_testing;
