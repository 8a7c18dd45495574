# fcgi-stat-accel prints its manual page, and the page says all that --help says.
use v5.36;
use Test::More;

my $program = ($ENV{B} // 'build') . '/bin/fcgi-stat-accel';
my @sections = ('NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'ENVIRONMENT', 'EXIT STATUS', 'SIGNALS', 'EXAMPLES');

sub page ($option) {
	open my $fh, '-|', $program, $option or die "$program: $!";
	local $/;
	my $text = <$fh>;
	close $fh;
	return ($?, $text);
}

my ($rc, $help) = page('--help');
is $rc, 0, '--help';
my @options = $help =~ /^\s+(?:-\w, )?(--[a-z-]+)/mg;
cmp_ok scalar @options, '>', 8, '... lists options';

($rc, my $text) = page('--manual');
is $rc, 0, 'the manual as text';
is_deeply [grep { $text !~ /^    .*\Q$_\E(?![\w-])/m } @options], [], '... has every option';
is_deeply [grep { $text !~ /^\Q$_\E$/m } @sections], [], '... has every section';
like $text, qr/spawn-fcgi -s \S+ .*-- \S+/, '... shows how spawn-fcgi starts it';
unlike $text, qr/\\[-f&e]|^\./m, '... without roff';
is_deeply [(page('--manual=text'))], [$rc, $text], '... also by its name';

($rc, my $roff) = page('--manual=roff');
is $rc, 0, 'the manual as roff';
like $roff, qr/\A\.TH fcgi-stat-accel 1 /, '... begins with its title';
is_deeply [grep { $roff !~ /^\.SH \Q$_\E$/m } @sections], [], '... has every section';
is_deeply [grep { my $n = s/-/\\-/gr; $roff !~ /^\\fB.*\Q$n\E(?!\w|\\-)/m } @options], [], '... has every option';
is_deeply [grep { !/^\.(?:TH|SH|PP|TP|ad|nf|fi|br)\b/ } $roff =~ /^[.'].*/mg], [], '... knows the requests it uses';

is +(system "$program --manual=nonsense 2>/dev/null") >> 8, 64, 'an unknown page is a mistake';
like scalar qx{$program -t4x -r/srv 2>&1}, qr/: --threads: expected 1 to 1024, got "4x"/, 'a value in the same word as its option';

SKIP: {
	my ($groff) = grep { -x } map { "$_/groff" } split /:/, $ENV{PATH};
	skip 'groff is not installed', 1 unless $groff;
	is qx{$program --manual=roff | $groff -man -ww -Tutf8 2>&1 >/dev/null}, '', 'groff has nothing to say';
}

done_testing;
