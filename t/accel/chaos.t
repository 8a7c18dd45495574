#!/usr/bin/perl
# Web servers ask for cold files and do not wait: they abort, leave, half close, ask for the next before the
# first is answered, send bodies in between.  Answers that do come are right, in order, and each comes once.

use v5.36;
use Test::More;
use Test::Fcgi qw(record begin params request put temp_tree eventually program T_ABORT T_END T_STDIN T_STDOUT);
use Accel::Slowfs;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $seed = $ENV{CHAOS_SEED} // time;
srand $seed;
note "CHAOS_SEED=$seed";
my $turns = $ENV{CHAOS_TURNS} // (program() =~ m{/[at]san/} ? 1500 : 4000);
my $disk = temp_tree();
my $hot = temp_tree();
put("$disk/f$_", 'x' x 2000) for 0 .. 199;
put("$hot/f$_", 'x' x 2000) for 0 .. 19;
my $slow = Accel::Slowfs->start(source => "$disk", spindles => 8, lookup_ms => 3, read_ms => 3, jitter => 100);
my $dir = $slow->dir;
my $app = Test::Fcgi->start('-t', 3, '-H', 'X-Sendfile', '--deadline', 2000, '--remember', 20);
is join(' ', map { $app->get($_)->{status} } "$dir/f0", "$hot/f0", "$dir/none"), '200 200 404', 'it serves';
my $fds = fds();                # with all that stays open
sub fds { my @f = glob "/proc/$app->{pid}/fd/*"; return scalar @f }

my ($asked, $answered, $wrong) = (0, 0, 0);

sub path {
	my $kind = rand;
	return $kind < 0.5 ? "$dir/f" . int rand 200 : $kind < 0.8 ? "$hot/f" . int rand 20 : $kind < 0.9 ? "$dir/none" . int rand 50 : "$hot/none";
}

# Asks; what is expected goes to the end of its list.
sub ask ($c, %arg) {
	my $path = path();
	my $id = ++$c->{ids} % 65535 + 1;
	my $bytes = request($id, 1, SCRIPT_FILENAME => $path, HTTP_COOKIE => 'c' x int rand 300);
	push @{ $c->{due} }, { id => $id, path => $path };
	$asked++;
	return $c->send($bytes) unless $arg{split};
	my $at = int rand length $bytes;
	$c->send(substr $bytes, 0, $at);
	$c->send(substr $bytes, $at);
}

# Takes one answer, and checks that it is the one that is due.
sub take ($c) {
	my $due = shift @{ $c->{due} } or return 1;
	my $r = $c->reply;
	if ($r && $due->{aborted} && $r->{bytes} eq '') {
		$answered++;
		return $r->{id} == $due->{id} && $r->{app} == 0;
	}
	my $want = $due->{path} =~ /none/ ? 404 : 200;
	my $good = $r && $r->{id} == $due->{id} && $r->{status} == $want
	    && ($want == 404 || $r->{header}{'x-sendfile'} eq $due->{path});
	$good ? $answered++ : diag explain { due => $due, got => $r };
	return $good;
}

my @actions = (
	sub { ask($_[0]) },
	sub { ask($_[0], split => 1) },
	sub { ask($_[0]) for 1 .. 1 + rand 8 },
	sub { my ($c) = @_; $c->send(record(T_STDIN, $c->{ids} % 65535 + 1, 'b' x int rand 5000, padding => int rand 256)) if $c->{ids} },
	sub { my ($c) = @_; $wrong += !take($c) while @{ $c->{due} || [] } },
	sub { $wrong += !take($_[0]) },
	sub {                                           # the last one that was asked for, answered or not
		my ($c) = @_;
		my $last = $c->{due} && $c->{due}[-1] or return;
		$c->send(record(T_ABORT, $last->{id}, ''));
		$last->{aborted} = 1;
	},
	sub { $_[0]{gone} = 1 },
	sub {
		my ($c) = @_;
		$c->send(substr request(1, 1, SCRIPT_FILENAME => path()), 0, 5 + rand 60);
		$c->{gone} = 1;
	},
	sub { my ($c) = @_; ask($c); $c->shutdown; $c->{gone} = 1 },
);

my @conns;
for (1 .. $turns) {
	push @conns, $app->connect if @conns < 20;
	my $i = int rand @conns;
	$actions[rand @actions]->($conns[$i]);
	splice @conns, $i, 1 if $conns[$i]{gone};
	$slow->forget if $_ % 500 == 0;
}
for my $c (@conns) {
	$wrong += !take($c) while @{ $c->{due} || [] };
}
is $wrong, 0, 'every answer is the one that was due';
cmp_ok $answered, '>', $turns / 10, "$answered of $asked were waited for";
@conns = ();
ok eventually(sub { fds() <= $fds }, 10), 'every descriptor is back' or diag fds() . " above $fds";

# The end, with some of everything under way.
$slow->forget;
@conns = map { my $c = $app->connect; ask($c); ask($c) if $_ % 2; $c->send(record(T_ABORT, $c->{due}[0]{id}, '')) if $_ % 5 == 0; $c } 1 .. 30;
is $app->stop, 0, 'a clean end';
is $app->log_text, '', 'a silent one';
$slow->stop;
done_testing;
