#!/usr/bin/perl
# Many clients share a pool of kept connections.  No pool size and no number of threads stalls it.

use v5.36;
use Test::More;
use Test::Fcgi qw(put temp_tree program);

# Sanitizers cost a factor; what they look for shows in fewer requests.
my $requests = program() =~ m{/[at]san/} ? 2000 : 10000;

my $tree = temp_tree();
my @paths = map { [put("$tree/$_", 'x' x ($_ * 1000)), 200] } 1 .. 40;
push @paths, map { ["$tree/none$_", 404] } 1 .. 5;
push @paths, ["$tree", 403];

sub all_answered {
	my ($what, $threads, %arg) = @_;
	my $app = Test::Fcgi->start('-t', $threads);
	my $r = $app->drive(requests => $requests, paths => \@paths, %arg);
	is $r->{answered}, $requests, "$what: all answered, rightly";
	is_deeply $r->{errors}, [], "$what: no errors";
	is scalar($app->threads), $threads, "$what: by $threads threads";
	is $app->stop, 0, "$what: a clean end";
	is $app->log_text, '', "$what: a silent one";
	note sprintf '%s: %.0f requests a second', $what, $requests / $r->{seconds};
}

all_answered('200 clients, 20 kept connections, 20 threads', 20, clients => 200, conns => 20);
all_answered('200 clients, 20 kept connections, 3 threads', 3, clients => 200, conns => 20);
all_answered('200 clients, each with its connection, 3 threads', 3, clients => 200, conns => 200);
all_answered('2000 kept connections of which 20 are busy, 1 thread', 1, clients => 20, conns => 2000)
    if `sh -c 'ulimit -n'` > 4200;

done_testing;
