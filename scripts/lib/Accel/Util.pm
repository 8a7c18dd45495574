package Accel::Util;

=head1 NAME

Accel::Util - small files, and where programs are

=head1 SYNOPSIS

    use Accel::Util qw(program find_program put slurp);
    exec program('accel-server'), '-V';
    my $nginx = find_program('nginx') // die "nginx is not installed\n";

=head1 DESCRIPTION

C<program> is the path of a program of this project, there or not. Beside an installed script it is in the F<bin> of the
same installation. In the source tree scripts are in F<scripts>, and other programs in C<$B/bin>, or F<build/bin> if C<B> is not set.

C<find_program> looks in C<PATH> and in the directories of root. A name with a slash is a path. It returns undef when there is none.

C<put> writes a file of these bytes and returns its path. C<slurp> reads a file; the empty string if it cannot.

=cut

use v5.36;
use Cwd            ();
use Exporter       qw(import);
use File::Basename qw(dirname);

our @EXPORT_OK = qw(program find_program put slurp);

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

sub put ($path, $bytes) {
	open my $fh, '>:raw', $path or die "$path: $!";
	print $fh $bytes;
	close $fh or die "$path: $!";
	return $path;
}

sub slurp ($path) {
	open my $fh, '<:raw', $path or return '';
	local $/;
	return scalar <$fh> // '';
}

1;
