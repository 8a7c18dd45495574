#!/usr/bin/perl
# scripts/lint musts: each must() has a row with a reason in doc/MUST.md, and each row a must().
use v5.36;
use File::Copy qw(copy);
use File::Temp;
use Test::More;

sub spew { my ($file, $text) = @_; open my $fh, '>', $file or die "$file: $!"; print $fh $text; close $fh or die "$file: $!"; return }

my $dir = File::Temp->newdir;
mkdir "$dir/$_" for qw(scripts base doc);
copy('scripts/lint', "$dir/scripts/lint") or die "scripts/lint: $!";
spew("$dir/base/a.c", <<'C');
#define must(e) ((e) ? (void)0 : abort())

/* must(in_a_comment) */
static void
first(int n)
{
	must(n > 0 &&
	    (n < 9 || n == '|'));
}

void
second(void)
{
	first(1);
	must(first);
}
C

sub findings (@row) {
	spew("$dir/doc/MUST.md", join '', "| file | function | must | why |\n| --- | --- | --- | --- |\n", map { "$_\n" } @row);
	return [ split /\n/, qx{sh $dir/scripts/lint musts 2>/dev/null} ];
}

my $one = q(| base/a.c | first | `n > 0 && (n < 9 \|\| n == '\|')` | its caller passes 1 |);
my $two = q(| base/a.c | second | `first` | a function has an address |);
is_deeply findings($one, $two), [], 'a row for each';
is $? >> 8, 0, '... has no finding';

my $none = findings($two);
is @$none, 1, 'a must() without a row';
like $none->[0], qr{^base/a\.c:7: musts: must\(n > 0 && \(n < 9 \|\| n == ' '\)\) in first\(\) has no row in doc/MUST\.md}, '... with its line and function';
is $? >> 8, 1, '... is an error';
like join("\n", @{ findings($one, $two =~ s/second/third/r) }), qr{a\.c:15: musts: must\(first\) in second\(\).*MUST\.md:4: musts: base/a\.c has no must\(first\) in third\(\)}s,
	'a row for another function';
is_deeply findings($one, $two =~ s/a function.*/|/r), ['doc/MUST.md:4: musts: no reason'], 'a row without a reason';
is_deeply findings($two, $one), ['doc/MUST.md:4: musts: rows are sorted and stand once'], 'rows out of order';
done_testing;
