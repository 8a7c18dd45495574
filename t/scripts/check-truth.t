# accel-check says of each configuration what requests to the real server show: accelerated or not.
use v5.36;
use Test::More;
use Cwd ();
use File::Path qw(make_path);
use FindBin ();
use JSON::PP ();
use POSIX    ();
use lib "$FindBin::Bin/../lib";
use Test::Truth ();
use Test::Util qw(put temp_tree);

my $tree = temp_tree();
for (qw(www/one.txt www/two.jpg www/img/three.txt www/img/img/three.txt www/hot/four.txt www/index.html www-other/five.txt)) {
	make_path("$tree/$_" =~ s{/[^/]+\z}{}r);
	put("$tree/$_", "I am $_\n");
}

# All cases of a server, as lines of JSON.
sub measure_all ($kind) {
	my @all;
	for my $case (Test::Truth::packaged($kind), Test::Truth::cases($kind, "$FindBin::Bin/check/$kind")) {
		next if $ENV{ONLY} && $case->{name} !~ /$ENV{ONLY}/;
		my $r;
		for (1 .. 3) {    # a port that is free may be taken before the server does
			last if $r = eval { Test::Truth::measure($case, $tree) } or "$@" !~ /already in use/i;
		}
		$r //= { verdict => "failed: $@", truth => '?', status => -1, finds => [], answers => [], said => '' };
		push @all, { case => { map { $_ => $case->{$_} } grep { $_ ne 'text' } keys %$case }, %$r };
	}
	return @all;
}

# The servers beside each other: most of the time is waiting for one to start.
my %pipe;
my @kinds = @ARGV ? @ARGV : qw(nginx lighttpd apache);
for my $kind (@kinds) {
	my $pid = open $pipe{$kind}, '-|' // die "fork: $!";
	next if $pid;
	srand;    # other ports than those of the other two
	print JSON::PP->new->utf8->encode([measure_all($kind)]);
	close STDOUT;
	POSIX::_exit(0);
}

my @rows;
for my $kind (@kinds) {
	my $fh = $pipe{$kind};
	my $all = eval { JSON::PP->new->utf8->decode(do { local $/ = undef; <$fh> }) } // [];
	diag "$kind: Debian's package is not installed, its configuration is not checked" unless Test::Truth::packaged($kind);
	ok @$all, "$kind: there are configurations";
	for my $r (@$all) {
		my $case = $r->{case};
		my $good = is $r->{truth}, $case->{shows} // $case->{accelerated}, "$kind: $case->{name}: the requests show it";
		$good &= is $r->{verdict}, $case->{accelerated}, 'and accel-check says it';
		$good &= is_deeply [grep { my $id = $_; !grep { $_ eq $id } @{ $r->{finds} } } split ' ', $case->{finds} // ''], [], 'it names what is wrong';
		$good &= is $r->{status}, @{ $r->{finds} } ? 1 : 0, 'the exit status says whether something blocks';
		$good &= ok $r->{status} != 0 || $r->{truth} ne 'no', 'nothing is left only where files are accelerated';
		diag "@{ $r->{answers} } $r->{said}" unless $good;
		push @rows, [$kind, $case->{name}, "$r->{verdict} (@{ $r->{finds} })", $r->{truth}];
	}
}
note sprintf '%-9s %-60s %-50s %s', @$_ for ['server', 'configuration', 'verdict', 'truth'], @rows;
done_testing;
