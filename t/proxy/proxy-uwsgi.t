# The cases of proxy.t, with an application that speaks the uwsgi protocol.
use v5.36;
use FindBin ();

@ARGV = ('uwsgi');
do "$FindBin::Bin/proxy.t";
die $@ if $@;
