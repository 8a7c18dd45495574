# h2o as examples/h2o sets it up: X-Reproxy-URL.
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks;

Test::Site->need('h2o');

my $tree = tree();

subtest 'reproxy.conf' => sub {
	my $site = Test::Site->start('h2o', 'reproxy.conf', root => "$tree/www");
	is $site->get('/hot/one.txt', Range => 'bytes=0-0', 'If-Range' => '"other"')->{status}, 206, 'h2o without the accelerator ignores If-Range';
	check_example($site,
		absent => { body => qr/^40[34] \w/, escape => 403 },
		conditions => { if_range => 206 },       # h2o 2.2 ignores If-Range, see above
		directories => { slash => 301, bare => 403 },
		log => [qr/^\[INFO\]/, qr/is ready to serve requests$/],
	);
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
	check_asked($site);
};

done_testing;
