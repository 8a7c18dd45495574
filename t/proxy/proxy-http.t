# The cases of proxy.t, with an application that speaks HTTP/1.1.
use v5.36;
use FindBin ();

@ARGV = ('http');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
