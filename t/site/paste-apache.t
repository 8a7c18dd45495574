# The Apache lines of examples/apache, pasted: the right name is made warm, and what becomes of requests while the accelerator is down.
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks ();
use Test::Util qw(eventually put slurp temp_tree);

Test::Site->need('apache');

my $dir = temp_tree();
mkdir "$dir/www/$_" for '', qw(dir other);
my %size;
for (qw(one.txt two%3F.txt dir/index.html other/three.txt other/four.txt)) {
	put("$dir/www/$_", "I am $_");
	$size{$_} = -s "$dir/www/$_";
}
my $ready = qr/AH00489|AH00094/;

sub modules { return join '', map { "LoadModule ${_}_module /usr/lib/apache2/modules/mod_$_.so\n" } qw(mpm_event authz_core mime alias rewrite), @_ }

# Apache with these lines, and what can change a name.
sub site {
	my ($command, $modules, $lines) = @_;
	return Test::Site->start('apache', 'pasted lines', root => "$dir/www", text => Test::Site->shortest('apache', $command, <<"LINES"));
$modules
Alias /alias/ /srv/www/other/
RewriteEngine On
RewriteRule ^/old/(.*) /other/\$1 [PT]
$lines
LINES
}

sub is_warm {
	my ($site, %want) = @_;
	is $site->get($_)->{body}, "I am $want{$_}", "$_ is served" for sort keys %want;
	Test::Site::Checks::warmed_are($site, map { $_ => $size{$_} } values %want);
}

my %plain = ('/one.txt?a=b' => 'one.txt', '/two%253F.txt' => 'two%3F.txt');
my $lines = Test::Site->block('apache', 'apache');
my $command = Test::Site->command('apache', qr/spawn-fcgi/);
my @proxy = qw(proxy proxy_fcgi xsendfile);

subtest 'X-Sendfile, in the main server and in a virtual host' => sub {
	my $site = site($command, modules(@proxy), $lines);
	is_warm($site, %plain);
	is $site->get('/alias/three.txt')->{status}, 404, 'an alias is not served';
	$site->stop_accel;
	is $site->get('/one.txt')->{status}, 503, 'nothing is served without the accelerator';
	is_warm(site($command, modules(@proxy), "<VirtualHost *:8080>\n$lines</VirtualHost>"), %plain);
};

subtest 'X-Sendfile beside an alias that is exempt' => sub {
	my $site = site($command, modules(@proxy), "ProxyPass /alias/ !\n$lines");
	is_warm($site, %plain);
	is $site->get('/alias/three.txt')->{body}, 'I am other/three.txt', 'the alias is served';
};

subtest 'X-Sendfile with a fallback' => sub {
	my $fallback = Test::Site->block('apache', 'apache-fallback');
	my $site = site($command, modules(@proxy, qw(proxy_http proxy_balancer slotmem_shm lbmethod_byrequests)), $fallback);
	is_warm($site, %plain);
	for my $round (1, 2) {
		$site->stop_accel;
		is_deeply [map { $site->get('/one.txt')->{body} } 1 .. 10], [('I am one.txt') x 10], 'files are served without the accelerator';
		is $site->get('/none')->{status}, 404, '... absent ones are 404';
		my $lines = () = $site->said =~ /attempt to connect to Unix domain socket/g;
		cmp_ok $lines, '>', 0, '... and the error log says why';
		$site->start_accel;
		my $asked = $site->asked;
		ok eventually(sub { $site->get('/one.txt'); $site->asked > $asked }), 'it is asked again when it is back';
	}
	is $site->complaints($ready, qr/AH02454|AH00959|AH01079/), '', 'the error log has nothing else';
};

subtest 'an authorizer' => sub {
	my $conf = slurp('examples/apache/auth.conf');
	my ($auth) = $conf =~ /^(AuthnzFcgiDefineProvider.*\n\n<Directory (?:.*\n)*?<\/Directory>)/m;
	my ($command) = Test::Site::commands($conf);
	my $site = site($command, modules(qw(authn_core authz_user authnz_fcgi)), $auth);
	is_warm($site, %plain, '/alias/three.txt' => 'other/three.txt', '/old/four.txt' => 'other/four.txt');
	$site->stop_accel;
	is $site->get('/one.txt')->{status}, 500, 'nothing is served without the accelerator';
	$site->start_accel;
	is_warm($site, %plain);
};

done_testing;
