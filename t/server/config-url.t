# status.config-url shows what the server has, and no setting; server.core-files raises the limit.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util qw(slurp);

my $srv = Test::Server->start(conf => <<'END');
$HTTP["host"] != "stranger" { status.config-url = "/config" }
server.name = "a-secret-name"
server.core-files = "enable"
END
my $page = $srv->fetch('/config');
is $page->{status}, 200, 'the page is there';
like $page->{body}, qr/^server: accel-server\/\S+\nworkers: \d+\nnetwork-backends:.* gthread-aio.*\nmodules:.* mod_access\b.*\n\z/s, 'it names version, workers and modules'
    or diag $page->{body};
unlike $page->{body}, qr/mod_webdav|secret/, '... nothing that is not built in, and no setting';
is $srv->fetch('/config', Host => "stranger")->{status}, 404, 'a condition restricts it';

my ($soft, $hard) = slurp("/proc/$srv->{pid}/limits") =~ /^Max core file size\s+(\S+)\s+(\S+)/m;
is $soft, $hard, 'core files may be as large as the system allows';

done_testing;
