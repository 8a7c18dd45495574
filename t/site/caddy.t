# Caddy 2 as examples/caddy sets it up: asked before file_server, in both modes.
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks;

Test::Site->need('caddy');

my $tree = tree();
my $ready = qr/"level":"info"|admin endpoint disabled|automatic HTTPS is completely disabled/;

subtest 'auth.Caddyfile' => sub {
	my $site = Test::Site->start('caddy', 'auth.Caddyfile', root => "$tree/www");
	check_example($site,
		absent => { body => qr/^$/, escape => 200 },     # --root says what is made warm, not what Caddy serves
		directories => { slash => 308, bare => 404 },
		log => [$ready],
	);

	check_order($site, 'Status: 204 No Content');
	my $r = $site->get('/one.txt');
	is "$r->{status} $r->{body}", '200 0', 'without the accelerator Caddy still serves';
};

subtest 'x-accel.Caddyfile' => sub {
	my $site = Test::Site->start('caddy', 'x-accel.Caddyfile', root => "$tree/www");
	check_example($site,
		absent => { body => qr/^40[34] \w/, escape => 403 },
		directories => { slash => 301, bare => 403 },
		log => [$ready],
	);
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
	check_asked($site);
};

done_testing;
