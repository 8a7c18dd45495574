# h2o as examples/h2o sets it up: X-Reproxy-URL.
use strict;
use warnings;
use Test::More;
use Test::Site;
use Test::Site::Checks;

if (my $why = Test::Site->missing('h2o')) { plan skip_all => $why }

my $tree = tree();

subtest 'reproxy.conf' => sub {
	my $site = Test::Site->start('h2o', 'reproxy.conf', root => "$tree/www");
	check_files($site);
	check_absent($site, body => qr/^40[34] \w/, escape => 403);
	check_ranges($site);
	check_conditions($site, if_range => 206);       # h2o 2.2 does not look at If-Range, nor without us: see below
	check_directories($site, slash => 301, bare => 403);
	check_names($site);
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'what is exempt is served';
	is $site->get('/hot/one.txt', Range => 'bytes=0-0', 'If-Range' => '"other"')->{status}, 206, '... If-Range or not';
	is $site->asked, $asked, '... and the accelerator is not asked';
	check_end($site, exempt => 1, log => [qr/^\[INFO\]/, qr/is ready to serve requests$/]);
	check_order($site, "Status: 307 Temporary Redirect\r\nX-Reproxy-URL: /protected/late.txt");
};

subtest 'the lines of the README' => sub {
	my $lines = Test::Site->block('h2o', 'yaml') =~ s/^/      /gmr;
	my $command = Test::Site->command('h2o', qr/--listen/);
	my $site = Test::Site->start('h2o', 'five lines', root => "$tree/www", text => <<"CONF");
#     $command
user: www-data
listen: { host: 127.0.0.1, port: 8080 }
hosts:
  default:
    paths:
$lines
CONF
	is $site->get('/names/%2541.txt')->{body}, 'I am %41.txt', 'a file';
	is $site->asked, 1, '... which the accelerator was asked for';
};

done_testing;
