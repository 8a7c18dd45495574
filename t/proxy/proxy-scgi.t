# The cases of proxy.t, with an application that speaks SCGI.
use v5.36;
use FindBin ();

@ARGV = ('scgi');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
