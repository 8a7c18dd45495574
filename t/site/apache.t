# Apache 2.4 as examples/apache sets it up: mod_authnz_fcgi, and mod_xsendfile behind mod_proxy_fcgi.
use v5.36;
use Test::More;
use Test::Fcgi qw(put);
use Test::Site;
use Test::Site::Checks;

Test::Site->need('apache');
-e '/usr/lib/apache2/modules/mod_xsendfile.so' or die "mod_xsendfile is missing; the package is libapache2-mod-xsendfile; run scripts/install-deps\n";

my $tree = tree();
my $ready = qr/AH00489|AH00094/;

subtest 'auth.conf' => sub {
	my $site = Test::Site->start('apache', 'auth.conf', root => "$tree/www");
	check_example($site,
		absent => { body => qr/<!DOCTYPE HTML/, escape => 200 },     # --root says what is made warm, not what Apache serves
		directories => { slash => 301, bare => 404 },                # without mod_autoindex there is no directory
		log => [$ready, qr/AH00132: file permissions deny server access/],
	);
	# Apache looks at the file before it asks an authorizer.  It opens and reads the file after that.
	check_order($site, 'Status: 200 OK', status => 404);
};

subtest 'x-sendfile.conf' => sub {
	my $site = Test::Site->start('apache', 'x-sendfile.conf', root => "$tree/www");
	# The module alone sends ETag: "0" for every file; --etag of the accelerator replaces it.
	my $other = $site->get('/one.txt')->{header}{etag};
	isnt $site->get('/100k.bin')->{header}{etag}, $other, 'files do not share an ETag';
	check_example($site,
		absent => { body => qr/^40[34] \w/, escape => 403 },
		directories => { slash => 301, bare => 403 },
		# mod_xsendfile 0.12 takes the header as it is: what cannot stand in a header cannot be sent.
		names => { map { $_ => 403 } 'end ', "tab\t.txt", "new\nline.txt", "return\r\nX-Evil: 1.txt", "del\x7f.txt" },
		# AH01075: a range after the end of a file
		log => [$ready, qr/AH01075: Error dispatching request to : \(passing brigade to output filters\)/],
	);
	check_order($site, "X-Sendfile: $site->{root}/late.txt");
};

subtest 'the lines of the README' => sub {
	my $lines = Test::Site->block('apache', 'apache');
	is $lines, Test::Site->readme(qr/XSendFilePath/), 'they are those of the README at the top';
	my $at_top = Test::Site->readme(qr/--for=apache/) =~ s/\\\n\s*//r;
	is $at_top, Test::Site->command('apache', qr/spawn-fcgi/) . "\n", '... and so is the command';
	my ($command) = Test::Site->command('apache', qr/--listen/);
	my $modules = join '', map { "LoadModule ${_}_module /usr/lib/apache2/modules/mod_$_.so\n" } qw(mpm_event authz_core mime proxy proxy_fcgi xsendfile);
	my $site = Test::Site->start('apache', 'three lines', root => "$tree/www", text => Test::Site->shortest('apache', $command, "$modules$lines"));
	check_asked($site);
};

done_testing;
