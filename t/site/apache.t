# Apache 2.4 as examples/apache sets it up: mod_authnz_fcgi, and mod_xsendfile behind mod_proxy_fcgi.
use strict;
use warnings;
use Test::More;
use Test::Fcgi qw(put);
use Test::Site;
use Test::Site::Checks;

if (my $why = Test::Site->missing('apache')) { plan skip_all => $why }

my $tree = tree();
my $ready = qr/AH00489|AH00094/;

subtest 'auth.conf' => sub {
	my $site = Test::Site->start('apache', 'auth.conf', root => "$tree/www");
	check_files($site);
	check_absent($site, body => qr/<!DOCTYPE HTML/, escape => 200);     # --root says what is made warm, not what Apache serves
	check_ranges($site);
	check_conditions($site);
	check_directories($site, slash => 301, bare => 404);                # without mod_autoindex there is no directory
	check_names($site);
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->asked, $asked, '... and the accelerator is not asked';
	check_end($site, exempt => 1, log => [$ready, qr/AH00132: file permissions deny server access/]);
	# Not so here: Apache has looked at the file before it asks an authorizer. What it is spared is to open and read it.
	check_order($site, 'Status: 200 OK', status => 404);
};

plan_xsendfile() and subtest 'x-sendfile.conf' => sub {
	my $site = Test::Site->start('apache', 'x-sendfile.conf', root => "$tree/www");
	check_files($site);
	check_absent($site, body => qr/^40[34] \w/, escape => 403);
	check_ranges($site);
	check_conditions($site);
	check_directories($site, slash => 301, bare => 403);
	# mod_xsendfile 0.12 takes the header as it is: what cannot stand in a header cannot be sent.
	check_names($site, map { $_ => 403 } 'end ', "tab\t.txt", "new\nline.txt", "return\r\nX-Evil: 1.txt", "del\x7f.txt");
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->asked, $asked, '... and the accelerator is not asked';

	# By itself the module says ETag: "0" of every file; --etag of the accelerator is better than that.
	my $other = $site->get('/one.txt')->{header}{etag};
	isnt $site->get('/100k.bin')->{header}{etag}, $other, 'files do not share an ETag';
	# Apache's own line about a range behind the end of a file.
	check_end($site, exempt => 1, log => [$ready, qr/AH01075: Error dispatching request to : \(passing brigade to output filters\)/]);
	check_order($site, "X-Sendfile: $site->{root}/late.txt");
};

plan_xsendfile() and subtest 'the lines of the README' => sub {
	my $lines = Test::Site->block('apache', 'apache');
	my ($command) = Test::Site->command('apache', qr/--listen/);
	my $modules = join '', map { "LoadModule ${_}_module /usr/lib/apache2/modules/mod_$_.so\n" } qw(mpm_event authz_core mime proxy proxy_fcgi xsendfile);
	my $site = Test::Site->start('apache', 'three lines', root => "$tree/www", text => <<"CONF");
#     $command
ServerName localhost
PidFile /run/apache2.pid
DefaultRuntimeDir /run/
ErrorLog /var/log/apache2/error.log
User www-data
Group www-data
$modules
TypesConfig /etc/mime.types
Listen 8080
DocumentRoot /srv/www
<Directory /srv/www>
	Require all granted
</Directory>
$lines
CONF
	is $site->get('/names/%2541.txt')->{body}, 'I am %41.txt', 'a file';
	is $site->asked, 1, '... which the accelerator was asked for';
};

sub plan_xsendfile {
	return 1 if -e '/usr/lib/apache2/modules/mod_xsendfile.so';
	note 'libapache2-mod-xsendfile is not installed';
	return 0;
}

done_testing;
