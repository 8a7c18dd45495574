# accel-check says of each configuration what requests to the real server show: accelerated or not.
use v5.36;
use Test::More;
use Cwd ();
use File::Path qw(make_path);
use FindBin ();
use JSON::PP ();
use lib "$FindBin::Bin/../lib";
use Test::Truth ();
use Test::Util qw(put temp_tree);

my $tree = temp_tree();
for (qw(www/one.txt www/two.jpg www/img/three.txt www/img/img/three.txt www/hot/four.txt www/index.html www-other/five.txt)) {
	make_path("$tree/$_" =~ s{/[^/]+\z}{}r);
	put("$tree/$_", "I am $_\n");
}

my @rows;
for my $kind (@ARGV ? @ARGV : qw(nginx lighttpd apache)) {
	for my $case (Test::Truth::cases($kind, "$FindBin::Bin/check/$kind")) {
		next if $ENV{ONLY} && $case->{name} !~ /$ENV{ONLY}/;
		my $r = eval { Test::Truth::measure($case, $tree) } // { verdict => "failed: $@", truth => '?', status => -1, finds => [], answers => [] };
		my $good = is $r->{truth}, $case->{shows} // $case->{accelerated}, "$kind: $case->{name}: the requests show it";
		$good &= is $r->{verdict}, $case->{accelerated}, 'and accel-check says it';
		$good &= is_deeply [grep { my $id = $_; !grep { $_ eq $id } @{ $r->{finds} } } split ' ', $case->{finds} // ''], [], 'it names what is wrong';
		$good &= is $r->{status}, @{ $r->{finds} } ? 1 : 0, 'the exit status says whether something blocks';
		$good &= ok $r->{status} != 0 || $case->{accelerated} ne 'no', 'nothing is left only where files are accelerated';
		diag "@{ $r->{answers} } $r->{said}" unless $good;
		push @rows, [$kind, $case->{name}, "$r->{verdict} (@{ $r->{finds} })", $r->{truth}];
	}
}
note sprintf '%-9s %-60s %-50s %s', @$_ for ['server', 'configuration', 'verdict', 'truth'], @rows;
done_testing;
