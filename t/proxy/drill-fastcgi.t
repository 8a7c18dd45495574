# A hostile application that speaks fastcgi: each case gets its status, and nobody else notices.
use v5.36;
use Test::Drill ();

Test::Drill::run('fastcgi');
