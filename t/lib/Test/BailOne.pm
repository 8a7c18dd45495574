package Test::BailOne;
# A program of tests that bails out ends only itself.
#
#     prove -It/lib -PTest::BailOne build/unit/*/* t/*/*.t
#
# GTest prints "Bail out!" when an assertion fails, and prove(1) then ends without the other tests, and without their results in its state
# file: the second run of `make check`, of those that failed, found none and ended with 0. With this plug-in the program has failed,
# by its exit status, and the others go on.
use v5.36;
use TAP::Harness ();

sub load { return 1 }

no warnings 'redefine';
*TAP::Harness::_bailout = sub { return };

1;
