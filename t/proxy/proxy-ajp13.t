# The cases of proxy.t, with an application that speaks AJP 1.3.
use v5.36;
use FindBin ();

@ARGV = ('ajp13');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
