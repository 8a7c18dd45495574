# A number that a document gives for a setting is its default in the table that the manual is made from.
#
#     `server.max-cached-files`, 16384, in each worker
#     `server.hotset-percent` (12 % of memory)
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(slurp);

chdir "$FindBin::Bin/../.." or die "chdir: $!";
my %UNIT = (KiB => 1 << 10, MiB => 1 << 20, GiB => 1 << 30);

# name => default
my %default;
for (slurp('server/config/directives.def') =~ /^D\(\w+, ("[^"]+", \w+, "[^"]*")/mg) {
	my ($name, $kind, $value) = /"([^"]+)", (\w+), "([^"]*)"/;
	$default{$name} = $value if $value =~ /^\d+\z/;
}

# Where it stands in a document: [line, name, number as bytes or as it is, the text].
sub mentions ($file) {
	my @found;
	my @lines = split /\n/, slurp($file);
	for my $i (0 .. $#lines) {
		while ($lines[$i] =~ /`([a-z-]+\.[a-z.-]+)`(?:, | \(| is )(?:default )?(\d[\d,]*)(?: ?(KiB|MiB|GiB))?(?![\d.])/g) {
			push @found, [$i + 1, $1, $2 =~ tr/,//dr * ($UNIT{ $3 // '' } // 1), $&] if exists $default{$1};
		}
	}
	return @found;
}

cmp_ok scalar keys %default, '>', 50, 'defaults';
my $seen = 0;
for my $file ('README.md', glob('doc/*.md examples/*.md examples/*/*.md')) {
	for my $m (mentions($file)) {
		my ($line, $name, $number, $text) = @$m;
		next if $text =~ /`server\.stream-request-body`/;    # its modes have numbers, too
		is $number, $default{$name}, "$file:$line: $text";
		$seen++;
	}
}
cmp_ok $seen, '>=', 5, 'the documents have numbers';
my ($more) = slurp('doc/tuning.md') =~ /^ +server\.max-cached-files = (\d+)$/m;
cmp_ok $more, '>=', 2 * $default{'server.max-cached-files'}, 'what tuning.md calls more is more';

# The limits of the kit, whose constants are in the sources.
my ($limits, $spec) = map { slurp($_) } 'doc/LIMITS.md', 'accel-pool/spec.h';
for my $pair (['SPEC_DIRS_MAX', '%s directories of a shape'], ['SPEC_FILES_MAX', '%s files in each']) {
	my ($name, $says) = @$pair;
	my ($number) = $spec =~ /#define $name\s+(\d+)u/ or die "no $name";
	my $text = sprintf $says, scalar reverse join ',', unpack '(A3)*', reverse $number;
	ok index($limits, $text) >= 0, "LIMITS.md says $text";
}
done_testing;
