# lighttpd 1.4 as examples/lighttpd sets it up: authorizer, X-Sendfile by unix socket and TCP (t/site/paste-lighttpd.t has the lines of its README).
use v5.36;
use Test::Fcgi qw(eventually);
use Test::More;
use Test::Site;
use Test::Site::Checks;

Test::Site->need('lighttpd');

my $tree = tree();
# What lighttpd refuses before it asks the accelerator (server.http-parseopts): bytes that are not UTF-8, control characters.
my %refused = map { $_ => 400 } "\xff\xfe.txt", "tab\t.txt", "new\nline.txt", "return\r\nX-Evil: 1.txt", "del\x7f.txt";
my $started = qr/server started|server stopped/;
my $by_command = \&Test::Site::by_command;

subtest 'auth.conf' => sub {
	my $site = Test::Site->start('lighttpd', 'auth.conf', root => "$tree/www", edit => $by_command);
	check_example($site,
		# --root says what is made warm, not what lighttpd serves; and /x is path info to it.
		absent => { body => qr/<\?xml/, escape => 200, below => 200 },
		directories => { slash => 301, bare => 403 },
		names => { %refused },
		log => [$started],
	);
	is $site->get('/names/A.txt/x/y')->{body}, 'I am A.txt', 'the file in front of a path info';
	my @lines;
	ok eventually(sub { @lines = $site->timing; @lines >= $site->asked }, 20), '... is asked about';
	is $lines[-1]{path}, "$site->{root}/names/A.txt", '... by its own name';
	check_order($site, 'Status: 200 OK');
};

for my $file ('x-sendfile.conf', 'x-sendfile-tcp.conf') {
	subtest $file => sub {
		my $site = Test::Site->start('lighttpd', $file, root => "$tree/www");
		check_example($site,
			absent => { body => qr/^40[34] \w/, escape => 403 },
			directories => { slash => 301, bare => 403 },
			names => { %refused },
			log => [$started],
		);
		check_order($site, "X-Sendfile: $site->{root}/late.txt");
	};
}

subtest 'a name that is not UTF-8 is 403, even if lighttpd lets it pass' => sub {
	my $site = Test::Site->start('lighttpd', 'x-sendfile.conf', root => "$tree/www",
		edit => sub { $_[0] . qq{server.http-parseopts = ( "url-invalid-utf8-reject" => "disable" )\n} });
	my $r = $site->get('/names/%FF%FE.txt');
	is $r->{status}, 403, 'the accelerator refuses what X-Sendfile cannot say';
	is $site->complaints($started), '', '... so that lighttpd does not make a 502 of it';
};

subtest 'without check-local lighttpd looks first' => sub {
	my $site = Test::Site->start('lighttpd', 'auth.conf', root => "$tree/www", edit => sub { $by_command->($_[0] =~ s/"check-local" => "disable",//r) });
	is $site->get('/one.txt')->{body}, '0', 'a file is served';
	is $site->get('/none.txt')->{status}, 404, 'an absent file is 404';
	is $site->asked, 1, '... without a question: lighttpd looks first';
};

subtest 'without the accelerator files are 503' => sub {
	my $site = Test::Site->start('lighttpd', 'auth.conf', root => "$tree/www", edit => $by_command);
	$site->stop_accel;
	is $site->get('/one.txt')->{status}, 503, 'files are 503';
	is $site->get('/hot/one.txt')->{status}, 200, '... except exempt ones';
};

done_testing;
