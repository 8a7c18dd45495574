package Accel::Build;
# The version, and the directory of the programs.  Both are in the Makefile.  make install does not copy this file; it writes one with the
# two values.
use v5.36;
use Cwd            qw(abs_path);
use File::Basename qw(dirname);

my $makefile = dirname(abs_path(__FILE__)) . '/../../../Makefile';
open my $fh, '<', $makefile or die "$makefile: $!";
our ($VERSION) = join('', <$fh>) =~ /^VERSION := (\S+)$/m;
our $BINDIR = '/usr/local/bin';

1;
