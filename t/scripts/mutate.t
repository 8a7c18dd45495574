# t/tools/mutate: which lines it changes and how; which tests belong to a file; on a small tree of its own, what it says of changes
# that are noticed, unnoticed, without effect and no C, and that it leaves all as it was.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Find ();
use File::Path qw(make_path);
use File::Temp ();
use POSIX      qw(mkfifo);
use Test::More;
use Test::Mutate qw(changes sample areas area_of tests_of);

my $root   = "$FindBin::Bin/../..";
my $mutate = "$FindBin::Bin/../tools/mutate";

sub slurp ($file) {
	open my $fh, '<:raw', $file or die "$file: $!";
	local $/ = undef;
	return <$fh> // '';
}

sub spew ($file, $text) {
	make_path($file =~ s{/[^/]*\z}{}r);
	open my $fh, '>:raw', $file or die "$file: $!";
	print $fh $text;
	close $fh or die "$file: $!";
	return;
}

# ---------------------------------------------------------------- changes

# One line of C => what mutate makes of it, kind by kind.
sub made_of ($line, $file = 'a.c') { return [map { "$_->{kind}: $_->{after}" } changes($file, "$line\n")] }

subtest 'changes' => sub {
	is_deeply made_of("\tif (f(a) && b)"), ["condition negated: \tif (!(f(a) && b))"], 'a condition';
	is_deeply made_of("\twhile (1)"), [], 'a loop without a condition';
	is_deeply made_of("\tx = a <= b ? c >> 1 : d;"), ["comparison off by one: \tx = a < b ? c >> 1 : d;"], 'a comparison; a shift is none';
	is_deeply made_of("\t\treturn (-EINVAL);"), ["error swallowed: \t\treturn (0);"], 'an error';
	is_deeply made_of("\t\treturn (false);"), ["error swallowed: \t\treturn (true);"], 'a refusal';
	is_deeply made_of("\treturn (EX_OK);"), [], 'success is not an error';
	is_deeply made_of("\t(void)f(a, g(b)); /* why */"), ["call dropped: \t; /* why */"], 'a call';
	is_deeply made_of("\tfree(a);"), [], 'a leak is for sanitizers';
	is_deeply made_of("\tlog_event(a, b);"), [], 'a line of a log is text';
	is_deeply made_of('#include "a.h" /* f(1); */'), [], 'an include';
	is_deeply made_of("int f(int);"), [], 'a declaration is not a call';
	is_deeply made_of('#define ROOM (4 * 1024) /* bytes */'), ['limit doubled: #define ROOM (2 * (4 * 1024)) /* bytes */'], 'a limit';
	is_deeply made_of('#define NONE 0'), [], 'twice nothing is nothing';
	is_deeply made_of("\tfd = open(p, O_RDWR | O_CLOEXEC);"),
	    ["flag dropped: \tfd = open(p, O_RDWR);", "flag dropped: \tfd = open(p, O_CLOEXEC);"], 'each flag';
	is_deeply made_of(qq{\tsay("if (a) a < b", '"'); // if (a)}), ["call dropped: \t; // if (a)"], 'strings and comments are left alone';
	is_deeply [changes('a.c', "/*\n\tf(a);\n\tif (b)\n */\n")], [], '... those of several lines, too';
	is_deeply made_of("\tif (a < b)", 'a.h'), [], 'in a header limits only';
	is((changes('a.c', "\n\n\tf(a);\n"))[0]{line}, 3, 'the number of the line');
};

subtest 'a sample' => sub {
	my @all  = map { changes("$_.c", "\tif (a < b)\n\t\tf(c);\n\treturn (-EIO);\n") } 'a' .. 'z';
	my $list = sub (@sample) { join ' ', map { "$_->{file}:$_->{line}:$_->{kind}" } @sample };
	my $ten  = $list->(sample(10, 7, @all));
	is $list->(sample(10, 7, @all)), $ten, 'is the same for the same seed';
	isnt $list->(sample(10, 8, @all)), $ten, '... another one for another seed';
	like $list->(sample(20, 7, @all)), qr/^\Q$ten\E /, '... and a larger one begins with it';
	my %kinds = map { $_->{kind} => 1 } sample(4, 7, @all);
	is scalar keys %kinds, 4, 'the kinds take turns';
	is scalar(my @lines = sample(1000, 7, @all)), 78, 'each line once';
};

subtest 'areas' => sub {
	for my $area (areas()) {
		ok -d "$root/$area", "$area is there";
		is_deeply [grep { !-f "$root/$_" } tests_of($area)], [], '... and so are its tests';
	}
	my %has = map { s{[^/]*\z}{}r => 1 } split /\n/, qx{cd '$root' && find . -name '*.c' -printf '%P\n'};
	my @product = grep { !m{\A(?:t|build|examples)/} } sort keys %has;
	cmp_ok @product, '>', 20, 'folders with C files';
	is_deeply [grep { area_of("${_}x.c") ne $_ } @product], [], '... have a row each';
	is area_of('io/disk/x.c'), 'io/disk/', 'the most special one';
	is area_of('new/x.c'), '', 'a new layer';
};

# ---------------------------------------------------------------- runs

my $tree = File::Temp->newdir;
my %file = (
	'Makefile' => <<'END',
LAYERS := tiny
below_tiny := tiny
UNITS := build/unit/tiny/sum
all rigs:
units: $(UNITS)
build/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O1 -I. -c -o $@ $<
build/unit/tiny/sum: build/obj/t/unit/tiny/sum.o build/obj/tiny/sum.o
	@mkdir -p $(@D)
	$(CC) -o $@ $^
END
	'tiny/sum.c' => <<'END',
#include <errno.h>
#define TERMS_MAX 8
_Static_assert(TERMS_MAX == 8, "eight");
int sum(int n)
{
	int s = 0;

	if (n > TERMS_MAX)
		return (-EINVAL);
	for (; n > 0; n--)
		s += n;
	return (s);
}
int untested(int n)
{
	return (n < 10);
}
int same(int n)
{
	if (n == 10)
		return (n);
	return (n);
}
END
	't/unit/tiny/sum.c' => <<'END',
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int sum(int);
int main(void)
{
	if (sum(9) != -EINVAL && getenv("FIFO") != NULL && open(getenv("FIFO"), O_WRONLY) >= 0)
		pause();
	printf("1..2\n%sok 1\n%sok 2\n", sum(9) == -EINVAL ? "" : "not ", sum(8) == 36 ? "" : "not ");
	return (0);
}
END
);
spew("$tree/$_", $file{$_}) for keys %file;

# All files of the small tree but build/, with their times and contents.
sub state_of () {
	my %state;
	File::Find::find({ no_chdir => 1, wanted => sub {
		return $File::Find::prune = 1 if $_ eq "$tree/build";
		$state{$_} = join ' ', (stat)[9], slurp($_) if -f;
	} }, "$tree");
	return \%state;
}

sub mutate (@argument) {
	open my $fh, '-|', "exec 2>&1; " . join ' ', map { "'$_'" } $mutate, "--tree=$tree", @argument or die "mutate: $!";
	local $/ = undef;
	my $said = <$fh>;
	close $fh;
	return $said;
}
my $before = state_of();

subtest 'each outcome' => sub {
	is mutate('--list', 5, 3), mutate('--list', 5, 3), 'the same list for the same seed';
	my $said = mutate(50, 1);
	is $?, 0, 'status 0' or diag $said;
	like $said, qr/^\d+ killed BY build\/unit\/tiny\/sum tiny\/sum\.c:9 \(error swallowed\) return \(-EINVAL\); -> return \(0\);/m,
	    'killed, and by which test';
	like $said, qr/^\d+ killed BY \S+ tiny\/sum\.c:8 /m, 'another one';
	like $said, qr/^\d+ survived tiny\/sum\.c:16 \(comparison off by one\)/m, 'survived';
	like $said, qr/^\d+ no effect tiny\/sum\.c:20 /m, 'without effect';
	like $said, qr/^\d+ not compiled tiny\/sum\.c:2 /m, 'no C';
	like $said, qr/^tiny +2 +2 +1 +1 +0 +50 %$/m, 'a line for the layer';
	like $said, qr/^survivors:\n(?:\t.*\n|\n)*\ttiny\/sum\.c:16 /m, 'a list of survivors';
	like $said, qr/^\t\t-\treturn \(n < 10\);\n\t\t\+\treturn \(n <= 10\);\n/m, '... with its diff';
	like mutate('--resume', 50, 1), qr/^measuring 0 tests\n\nlayer.*^tiny +2 +2 +1 /ms, '--resume does nothing twice';
	is slurp("$tree/build/mutate/1/tiny/sum.c"), $file{'tiny/sum.c'}, 'the copy is as it was';
	like mutate('--resume', 50, 2), qr/another tree, seed/, '... and refuses another seed';
	my $one = mutate(1, 1, 'tiny/sum.c:9');
	like $one, qr/ out of 1 changes.*^1 killed BY /ms, 'one line alone';
};

subtest 'a test that fails anyway proves nothing' => sub {
	spew("$tree/t/unit/tiny/sum.c", $file{'t/unit/tiny/sum.c'} =~ s/36/37/r);
	like mutate(1, 1, 'tiny/sum.c:9'), qr/^# build\/unit\/tiny\/sum fails without a change.*^1 survived /ms, 'and is left out';
	spew("$tree/t/unit/tiny/sum.c", $file{'t/unit/tiny/sum.c'});
};

subtest 'a test without an end' => sub {
	mkfifo("$tree/build/fifo", 0600) or die "mkfifo: $!";
	local $ENV{FIFO} = "$tree/build/fifo";
	like mutate('--limit=1', 1, 1, 'tiny/sum.c:9'), qr/^1 killed BY /m, 'has noticed the change';
};

subtest 'interrupted' => sub {
	local $ENV{FIFO} = "$tree/build/fifo";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDOUT, '>', '/dev/null' or POSIX::_exit(1);
		exec $mutate, "--tree=$tree", 1, 1, 'tiny/sum.c:9' or POSIX::_exit(127);
	}
	open my $fifo, '<', $ENV{FIFO} or die "fifo: $!";    # waits until the test of the changed program opens it
	isnt slurp("$tree/build/mutate/1/tiny/sum.c"), $file{'tiny/sum.c'}, 'the copy is changed';
	kill INT => $pid;
	waitpid $pid, 0;
	is $? >> 8, 130, 'status 130';
	is sysread($fifo, my $byte, 1), 0, 'the test has ended';
	is slurp("$tree/build/mutate/1/tiny/sum.c"), $file{'tiny/sum.c'}, 'the copy is as it was';
};

$before->{"$tree/t/unit/tiny/sum.c"} = state_of()->{"$tree/t/unit/tiny/sum.c"};    # written by this test
is_deeply state_of(), $before, 'no file of the tree was written';

subtest 'usage' => sub {
	for (['x', 1, 'N: expected'], [1, 0, 'SEED: expected'], [1, 1, 'nowhere', 'no line to change in nowhere'], ['--no-such-option', 'no-such-option']) {
		my ($message, @argument) = (pop @$_, @$_);
		like mutate(@argument), qr/\Q$message\E/, "mutate @argument";
		isnt $?, 0, '... and a status';
	}
	is qx{$mutate --version}, "mutate 0.2.0\n", '--version';
};

done_testing;
