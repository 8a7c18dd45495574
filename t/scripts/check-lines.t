# The lines that accel-check tells to add are those of the README and of examples/nginx/README.md.
use v5.36;
use Test::More;
use FindBin ();
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../scripts/lib";
use Accel::Lines ();
use Test::Site   ();
use Test::Util   qw(program slurp);

sub words ($text) { return join ' ', split ' ', $text }

my $lines = Accel::Lines::nginx_ask('/stat-accel') . Accel::Lines::nginx_location('/stat-accel', 'unix:/run/stat-accel.sock');
is words($lines), words(Test::Site->readme(qr/auth_request/)), 'nginx: the lines of the README';
is words($lines), words(Test::Site->block('nginx', 'nginx')), 'and of examples/nginx/README.md';
my $program = program('fcgi-stat-accel');
my $manual = words(scalar `$program --manual`);
like $manual, qr/\Q@{[words($lines)]}\E/, 'and of the manual';
my $cached = Accel::Lines::nginx_location('/stat-accel', 'unix:/run/stat-accel.sock', "fastcgi_param WARM_CACHE_KEY \$scheme\$host\$request_uri;\n");
like $manual, qr/\Q@{[words($cached)]}\E/, "the manual's lines for a cache differ in the name only";

my $more = slurp("$FindBin::Bin/../../examples/nginx/README.md");
like words($more), qr/\Q@{[words(Accel::Lines::nginx_warm_path())]}\E/, 'two lines for another name';
like words($more), qr/`\Q@{[words(Accel::Lines::nginx_set())]}\E`/, 'and the set';

my $lighttpd = words(Accel::Lines::lighttpd_module() . Accel::Lines::lighttpd_server('/srv/www'));
is $lighttpd, words(Test::Site->readme(qr/fastcgi\.server/)), 'lighttpd: the lines of the README';
like $manual, qr/\Q$lighttpd\E/, 'and of the manual';
my $apache = slurp("$FindBin::Bin/../../examples/apache/auth.conf");
like words($apache), qr/\Q@{[words($_)]}\E/, 'Apache: lines of examples/apache/auth.conf' for Accel::Lines::apache_define('127.0.0.1:9000'), Accel::Lines::apache_ask();

done_testing;
