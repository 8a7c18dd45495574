# The cases of proxy.t, with an application that speaks HTTP/1.1.
use strict;
use warnings;
use FindBin ();

@ARGV = ('http');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
