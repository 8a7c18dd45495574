package Accel::Util;
# Small files, where programs are, text for terminals.
#
#     use Accel::Util qw(program find_program put slurp);
#     exec program('accel-server'), '-V';
#     my $nginx = find_program('nginx') // die "nginx is not installed\n";
#
# `program` is the path of a program of this project, there or not. Beside an installed script it is in the bin of the
# same installation. In the source tree scripts are in scripts, and other programs in $B/bin, or build/bin if B is not set.
#
# `find_program` looks in PATH and in the directories of root. A name with a slash is a path. It returns undef when there is none.
#
# `free_port` is a TCP port that nobody has now, for a program that opens it itself.
#
# `escaped` is text of others without control characters, and `printable` also has a bound.
#
# `put` writes a file of these bytes and returns its path. `slurp` reads a file; the empty string if it cannot.
use v5.36;
use Cwd            ();
use Exporter       qw(import);
use File::Basename qw(dirname);

our @EXPORT_OK = qw(program find_program free_port printable escaped put slurp $UNPRINTABLE);

use constant MAX_SHOWN => 500;    # characters of a text of others

my $lib  = dirname(__FILE__) . '/..';
my $tree = "$lib/../..";        # of an installation: its share

sub program ($name) {
	return Cwd::abs_path("$tree/scripts/$name") if -e "$tree/Makefile" && -x "$tree/scripts/$name";
	my $bin = !-e "$tree/Makefile" ? "$tree/../bin" : ($ENV{B} // "$tree/build") . '/bin';
	return (Cwd::abs_path($bin) // $bin) . "/$name";
}

sub find_program ($name) {
	return -x $name && !-d _ ? $name : undef if $name =~ m{/};
	my ($path) = grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH} // ''), qw(/usr/sbin /usr/local/sbin);
	return $path;
}

# A port below those that the kernel gives to clients: otherwise a client may take it before the server does.  Each is another one.
sub free_port () {
	require IO::Socket::INET;
	state %given;
	for (1 .. 100) {
		my $port = 10_000 + int rand 22_000;
		next if $given{$port}++;
		return $port if IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => $port, Listen => 1);
	}
	die "no port is free: $!\n";
}

# Characters that control a terminal, break lines, are not seen or turn the direction of writing.
our $UNPRINTABLE = qr/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/;

# Foreign text for a terminal: no control character, nothing that changes the direction of writing, and of bounded length.
sub printable ($text) {
	$text = substr($text, 0, MAX_SHOWN) . '...' if length $text > MAX_SHOWN;
	return escaped($text);
}

sub escaped ($text) {
	return $text unless $text =~ m/[^ -~]/;
	return $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger unless utf8::decode($text);
	$text =~ s/($UNPRINTABLE)/sprintf '\\x%02x', ord $1/ge;
	utf8::encode($text);
	return $text;
}

sub put ($path, $bytes) {
	open my $fh, '>:raw', $path or die "$path: $!\n";
	print $fh $bytes;
	close $fh or die "$path: $!\n";
	return $path;
}

sub slurp ($path) {
	open my $fh, '<:raw', $path or return '';
	local $/;
	return scalar <$fh> // '';
}

1;
