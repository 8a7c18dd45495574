# Caddy 2 as examples/caddy sets it up: asked before file_server, in both modes.
use strict;
use warnings;
use Test::More;
use Test::Site;
use Test::Site::Checks;

if (my $why = Test::Site->missing('caddy')) { plan skip_all => $why }

my $tree = tree();
my $ready = qr/"level":"info"|admin endpoint disabled|automatic HTTPS is completely disabled/;

subtest 'auth.Caddyfile' => sub {
	my $site = Test::Site->start('caddy', 'auth.Caddyfile', root => "$tree/www");
	check_files($site);
	check_absent($site, body => qr/^$/, escape => 200);     # --root says what is made warm, not what Caddy serves
	check_ranges($site);
	check_conditions($site);
	check_directories($site, slash => 308, bare => 404);
	check_names($site);
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->asked, $asked, '... and the accelerator is not asked';
	check_end($site, exempt => 1, log => [$ready]);

	check_order($site, 'Status: 204 No Content');
	my $r = $site->get('/one.txt');
	is "$r->{status} $r->{body}", '200 0', 'without the accelerator Caddy still serves';
};

subtest 'x-accel.Caddyfile' => sub {
	my $site = Test::Site->start('caddy', 'x-accel.Caddyfile', root => "$tree/www");
	check_files($site);
	check_absent($site, body => qr/^40[34] \w/, escape => 403);
	check_ranges($site);
	check_conditions($site);
	check_directories($site, slash => 301, bare => 403);
	check_names($site);
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->asked, $asked, '... and the accelerator is not asked';
	check_end($site, exempt => 1, log => [$ready]);
	check_order($site, 'X-Accel-Redirect: /late.txt');
};

subtest 'the lines of the README' => sub {
	my $lines = Test::Site->block('caddy', 'caddy');
	my $command = Test::Site->command('caddy', qr/--listen/);
	my $site = Test::Site->start('caddy', 'six lines', root => "$tree/www", text => <<"CONF");
#     $command
{
	admin off
	auto_https off
}
:8080 {
	root * /srv/www
$lines
}
CONF
	is $site->get('/names/%2541.txt')->{body}, 'I am %41.txt', 'a file';
	is $site->asked, 1, '... which the accelerator was asked for';
};

done_testing;
