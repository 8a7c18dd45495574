# nginx as examples/nginx sets it up: auth_request, X-Accel-Redirect, and the six lines of its README.
use strict;
use warnings;
use Test::More;
use Test::Site;
use Test::Site::Checks;

if (my $why = Test::Site->missing('nginx')) { plan skip_all => $why }

my $tree = tree();
my $page = qr{<center>nginx};

subtest 'auth.conf' => sub {
	my $site = Test::Site->start('nginx', 'auth.conf', root => "$tree/www");
	check_files($site);
	check_absent($site, body => $page, escape => 200);      # --root says what is made warm, not what nginx serves
	check_ranges($site);
	check_conditions($site);
	check_directories($site, slash => 301, bare => 403);
	check_names($site);
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->asked, $asked, '... and the accelerator is not asked';
	is $site->get('/stat-accel')->{status}, 404, 'nobody asks it from outside';
	my $expected = qr/open\(\) ".*" failed \((?:2|13|20): |directory index of ".*" is forbidden/;
	check_end($site, exempt => 1, log => [$expected]);

	check_order($site, 'Status: 204 No Content');

	is $site->get('/one.txt')->{status}, 200, 'without the accelerator nginx still serves';
	is $site->complaints($expected, qr/connect\(\) to unix:.* failed .* subrequest: "\/stat-accel"/), '', '... and says why it was slower';
};

subtest 'accel-redirect.conf' => sub {
	my $site = Test::Site->start('nginx', 'accel-redirect.conf', root => "$tree/www");
	check_files($site);
	check_absent($site, body => qr/^40[34] \w/, escape => 403);
	check_ranges($site);
	check_conditions($site);
	check_directories($site, slash => 301, bare => 403);
	check_names($site);
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->asked, $asked, '... and the accelerator is not asked';
	is $site->get('/protected/one.txt')->{status}, 404, 'nobody asks for the internal name from outside';
	check_end($site, exempt => 1);
	check_order($site, "X-Accel-Redirect: /protected/late.txt");
};

subtest 'below an alias' => sub {
	my $site = Test::Site->start('nginx', 'auth.conf', root => "$tree/www", edit => sub {
		$_[0] =~ s{(?=location /hot/)}{location /alias/ {
			alias $tree/www/names/;
			set \$warm_path \$request_filename;
			auth_request /stat-accel;
		}\n}r;
	});
	is $site->get('/alias/%2541.txt')->{body}, 'I am %41.txt', 'a file';
	Test::Site::Checks::warmed_are($site, 'names/%41.txt' => length 'I am %41.txt');
};

subtest 'the six lines of the README' => sub {
	my $lines = Test::Site->block('nginx', 'nginx');
	my $command = Test::Site->command('nginx', qr/--listen/);
	my $site = Test::Site->start('nginx', 'six lines', root => "$tree/www", text => <<"CONF");
#     $command
error_log /var/log/nginx/error.log;
pid /run/nginx.pid;
user www-data;
events { }
http {
	access_log off;
	server {
		listen 8080;
		root /srv/www;
$lines
	}
}
CONF
	is $site->get('/names/%2541.txt')->{body}, 'I am %41.txt', 'a file';
	is $site->asked, 1, '... which the accelerator was asked for';
	is $site->get('/none')->{status}, 404, 'none';
	is $site->asked, 2, '... and here as well';
	is $site->ask('POST', '/one.txt', 'Content-Length' => 0)->{status}, 405, 'POST is nothing for files';
	$site->stop_accel;
	is $site->get('/one.txt')->{status}, 500, 'without the accelerator it takes more lines to serve';
	my @code = grep { /\S/ && !/^\s*}/ && !/^location \/ / } split /\n/, $lines;
	is scalar @code, 6, 'six they are';
};

done_testing;
