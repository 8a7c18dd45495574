# A hostile application that speaks uwsgi: each case gets its status, and nobody else notices.
use v5.36;
use Test::Drill ();

Test::Drill::run('uwsgi');
