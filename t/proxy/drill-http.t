# A hostile application that speaks http: each case gets its status, and nobody else notices.
use strict;
use warnings;
use Test::Drill ();

Test::Drill::run('http');
