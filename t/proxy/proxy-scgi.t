# The cases of proxy.t, with an application that speaks SCGI.
use strict;
use warnings;
use FindBin ();

@ARGV = ('scgi');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
