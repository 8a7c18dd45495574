# nginx as examples/nginx sets it up: auth_request, X-Accel-Redirect, and the lines of its README (t/site/paste-nginx.t has more).
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks;

Test::Site->need('nginx');

my $tree = tree();
my $page = qr{<center>nginx};

subtest 'auth.conf' => sub {
	my $site = Test::Site->start('nginx', 'auth.conf', root => "$tree/www");
	is $site->get('/stat-accel')->{status}, 404, 'no client reaches the accelerator';
	my $expected = qr/open\(\) ".*" failed \((?:2|13|20): |directory index of ".*" is forbidden/;
	check_example($site,
		absent => { body => $page, escape => 200 },      # --root says what is made warm, not what nginx serves
		directories => { slash => 301, bare => 403 },
		log => [$expected],
	);

	check_order($site, 'Status: 204 No Content');

	is $site->get('/one.txt')->{status}, 200, 'without the accelerator nginx still serves';
	is $site->complaints($expected, qr/connect\(\) to unix:.* failed .* subrequest: "\/stat-accel"/), '', '... and the log names the missing socket';
};

subtest 'accel-redirect.conf' => sub {
	my $site = Test::Site->start('nginx', 'accel-redirect.conf', root => "$tree/www");
	is $site->get('/protected/one.txt')->{status}, 404, 'no client reaches the internal name';
	check_example($site,
		absent => { body => qr/^40[34] \w/, escape => 403 },
		directories => { slash => 301, bare => 403 },
	);
	check_order($site, "X-Accel-Redirect: /protected/late.txt");
};

subtest 'files below an alias are warmed' => sub {
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

subtest 'the lines of its README' => sub {
	my $lines = Test::Site->block('nginx', 'nginx');
	is $lines, Test::Site->readme(qr/auth_request/), 'they are those of the README at the top';
	my $command = Test::Site->command('nginx', qr/--listen/);
	my $site = Test::Site->start('nginx', 'its lines', root => "$tree/www",
		text => Test::Site->shortest('nginx', $command, "\tserver {\n\t\tlisten 8080;\n\t\troot /srv/www;\n$lines\n\t}"));
	check_asked($site);
	is $site->get('/none')->{status}, 404, 'an absent file is 404';
	is $site->asked, 2, '... after a question, too';
	is $site->ask('POST', '/one.txt', 'Content-Length' => 0)->{status}, 405, 'POST of a file is 405';
	$site->stop_accel;
	is $site->get('/one.txt')->{status}, 200, 'without the accelerator nginx still serves';
	is scalar(my @l = split /\n/, $lines), 7, 'they are seven';
};

done_testing;
