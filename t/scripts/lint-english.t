#!/usr/bin/perl
# scripts/lint english: words that are wrong everywhere, and those that are wrong in some places only.
use v5.36;
use File::Copy qw(copy);
use File::Temp;
use Test::More;

my $dir = File::Temp->newdir;
mkdir "$dir/$_" for qw(scripts base);
copy('scripts/lint', "$dir/scripts/lint") or die "scripts/lint: $!";

# The lines with a finding.  Words in capitals are written small, so that this file has none.
sub found {
	my ($text) = @_;
	open my $fh, '>', "$dir/base/a.c" or die "a.c: $!";
	print $fh $text =~ s/\b([A-Z]{2,}(?: [A-Z]{2,})?)\b/\L$1/gr;
	close $fh or die "a.c: $!";
	return join ' ', sort { $a <=> $b } map { /^base\/a\.c:(\d+): english: / } qx{sh $dir/scripts/lint english 2>/dev/null};
}

is found(<<'C'), '1 2 3 4 5 6', 'what comes after';
/* a NUL BEHIND it */
/* The text BEHIND
 * the host. */ /* The part BEHIND the name of the server. */
/* *rest moves BEHIND the point */
/* the number BEHIND the type; BEHIND a proxy */
/* Puts the row BEHIND those with fewer. */
C
is $? >> 8, 1, '... is an error';
is found(<<'C'), '', 'places, waits, delays and names are right';
/* the client's address BEHIND a trusted proxy, BEHIND HAProxy and BEHIND a TLS terminator */
/* a request waits BEHIND a cold file; nothing is left BEHIND; 5 s BEHIND 64 KiB/s */
/* how far the client is BEHIND its rate; the servers BEHIND it */
int BEHIND = conf->BEHIND + accel_BEHIND_skipped("files.BEHIND-skipped");
C
is $? >> 8, 0, '... and no error';
is found("/* SO MANY bytes */\n/* after SO LONG */\n/* SO MANY wait that one more fails */\n"), '1 2', 'a number';
is found("/* this IS NO error */\n/* they ARE NO files */\n/* there IS NO file; it IS NO longer there */\n"), '1 2', 'what a thing is not';
is found("/* ALSO IF it fails */\n/* ALSO\n * if it fails; also sent if it fails; if it fails, too */\n"), '1', 'what holds nevertheless';
is found("/* ANOTHER user THAN root */\n/* ANOTHER user, rather than root */\n"), '1', 'what differs';
is found("/* it is sent ALL THE SAME */\n/* ALL THE SAME size */\n/* all, BUT FOR one */\n"), '1 3', 'still, except';
is found("/* a line THAT IS NONE */\n/* it IS NONE */\n/* there IS NONE */\n"), '1 2', 'not one';
is found(join '', '/* ple', "ase */\n"), '1', 'words without a place';
done_testing;
