# The manual says all that the tables hold, as roff and as text.
use v5.36;
use Test::More;
use FindBin ();

my $program = ($ENV{B} // 'build') . '/bin/accel-server';

sub page ($name) {
	open my $fh, '-|', $program, "--manual=$name" or die "$program: $!";
	local $/;
	my $text = <$fh>;
	close $fh;
	return ($?, $text);
}

open my $fh, '<', "$FindBin::Bin/../../server/config/directives.def" or die $!;
my %row = do { local $/; <$fh> =~ /^D\(\w+,\s*"([^"]+)",\s*([A-Z]+),/mg };
cmp_ok scalar keys %row, '>', 50, 'directives.def was read';

my ($rc, $text) = page('text');
is $rc, 0, 'accel-server.conf as text';
is_deeply [grep { $text !~ /^    \Q$_\E$/m } sort keys %row], [], '... names every directive';
is_deeply [grep { length > 80 } split /\n/, $text], [], '... in lines that fit a terminal';
my @pool = map { /^D\(\w+,\s*"([^"]+)",.*, POOL,/ ? $1 : () } do { open my $def, '<', "$FindBin::Bin/../../server/config/directives.def" or die $!; <$def> };
cmp_ok scalar @pool, '>', 5, 'settings of pools were read';
my $flat = $text =~ s/\s+/ /gr;
is_deeply [grep { $flat !~ / \Q$_\E (?:(?! proxy-core\.[a-z-]+ [A-Z]).)*of the pool: write it in the block of proxy-core\.backends/ } @pool], [], '... and says where they stand';
unlike $text, qr/\\fB|^\.TP/m, '... without roff';
my ($choice) = $text =~ /^    server\.network-backend$(.*?)^    server\./ms;
my %choice = map { $_ => 1 } $choice =~ /^ +"([a-z-]+)": /mg;
my ($backends) = qx{$program -V} =~ /^Network backends:\n(.*)/ms;
is_deeply [grep { !$choice{$_} } $backends =~ /^  \+ (\S+)/mg], [], '... and every way to send files that works here';

open $fh, '<', "$FindBin::Bin/../../wire/codec/codecs.def" or die $!;
my @codec = do { local $/; <$fh> =~ /^P\((\w+)\)$/mg };
cmp_ok scalar @codec, '>', 1, 'codecs.def was read';
my ($protocols) = $text =~ /^    proxy-core\.protocol$(.*?)^    proxy-core\./ms;
is_deeply [grep { $protocols !~ /^ +"$_": /m } @codec], [], '... and every protocol to applications';

open $fh, '<', "$FindBin::Bin/../../proxy-core/balance.c" or die $!;
my @balancer = do { local $/; <$fh> =~ /^\t\{ "([a-z-]+)", NULL,/mg };
cmp_ok scalar @balancer, '>', 4, 'the table of balancers was read';
my ($balancers) = $text =~ /^    proxy-core\.balancer$(.*?)^    proxy-core\./ms;
is_deeply [grep { $balancers !~ /^ +"$_": /m } @balancer], [], '... and every balancer';

open $fh, '<', "$FindBin::Bin/../../wire/codec/controls.def" or die $!;
my @control = do { local $/; <$fh> =~ /^C\(\w+, "([\w-]+)"/mg };
cmp_ok scalar @control, '>', 10, 'controls.def was read';
is_deeply [grep { $text !~ /^ +$_: \S/m } @control], [], '... and every control header';

($rc, my $roff) = page('roff');
is $rc, 0, 'the same as roff';
is_deeply [grep { my $n = s/-/\\-/gr; $roff !~ /^\\fB\Q$n\E\\fR$/m } sort keys %row], [], '... names every directive';
like $roff, qr/\A\.TH accel-server\.conf 5 /, '... begins with its title';

($rc, my $options) = page('program');
is $rc, 0, 'accel-server as text';
my @help = qx{$program --help} =~ /(--[a-z-]+)/g;
cmp_ok scalar @help, '>', 8, '--help lists options';
is_deeply [grep { $options !~ /\Q$_\E\b/ } @help], [], '... all of which are in the manual';
($rc, my $program_roff) = page('program-roff');
like $program_roff, qr/\A\.TH accel-server 8 /, 'accel-server as roff';

isnt((system "$program --manual=nonsense 2>/dev/null") >> 8, 0, 'an unknown page is a mistake');

SKIP: {
	my ($groff) = grep { -x } map { "$_/groff" } split /:/, $ENV{PATH};
	skip 'groff is not installed', 2 unless $groff;
	for my $page ('roff', 'program-roff') {
		is qx{$program --manual=$page | $groff -man -ww -Tutf8 2>&1 >/dev/null}, '', "groff has nothing to say about $page";
	}
}

done_testing;
