# The cases of proxy.t, with an application that speaks AJP 1.3.
use strict;
use warnings;
use FindBin ();

@ARGV = ('ajp13');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
