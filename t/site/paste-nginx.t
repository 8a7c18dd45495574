# The nginx lines of the README, pasted: the right name is made warm wherever they stand, and nothing is lost while the accelerator is down.
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks ();
use Test::Util qw(eventually put temp_tree);

Test::Site->need('nginx');

my $lines = Test::Site->readme(qr/auth_request/);
my $command = Test::Site->readme(qr/spawn-fcgi/) =~ s/\n\z/ --index=index.html\n/r;
# "Other names than root and URI" of examples/nginx/README.md
my $set = 'set $warm_path $request_filename;';
my $with_set = $lines =~ s/(?=error_page)/fastcgi_param WARM_PATH \$warm_path;\nuninitialized_variable_warn off;\n/r;
my $dir = temp_tree();
mkdir "$dir/$_" for qw(www www/a www/a/b www/b www/other www/other/a);
my $n = 0;

# Each file has its own length, so that a neighbour's is seen.
sub file ($name) {
	put("$dir/www/$name", "I am $name" . '.' x ++$n);
	return $name;
}

# Server blocks by name; a request chooses one by its host.
sub site (%server) {
	my $accel = delete $server{command} // $command;
	my $servers = join '', map { "\tserver { listen 8080; server_name $_;\n$server{$_}\n\t}\n" } sort keys %server;
	return Test::Site->start('nginx', 'the lines of the README', root => "$dir/www", text => Test::Site->shortest('nginx', $accel, $servers));
}

# The file in the answer, and no other, is what the accelerator was asked for.
sub is_warm {
	my ($site, $host, $uri, $file) = @_;
	my %before = $site->warmed;
	my $size = -s file($file);
	my $r = $site->get($uri, Host => $host);
	is $r->{status}, 200, "$host: $uri is served";
	my %new;
	my $asked = sub { my %now = $site->warmed; %new = map { $_ => $now{$_} } grep { !exists $before{$_} } keys %now };
	eventually($asked, 5);
	is_deeply \%new, { "$site->{root}/$file" => length $r->{body} }, "... which is $file, and is warm";
	return $r;
}

subtest 'where the root is' => sub {
	my $site = site(
		server => "root /srv/www; $lines",
		slash => "location / { root /srv/www; $lines }",
		below => "root /srv/www; location / { $lines }",
		nested => "root /srv/www; $lines location /a/ { location ~ txt { } }",
		one => "root /srv/www; location /a/ { auth_request /stat-accel; } " . $lines =~ s/^auth_request.*\n//r,
	);
	is_warm($site, $_ => "/$_.txt?query#fragment", "$_.txt") for qw(server slash below);
	is_warm($site, $_ => "/a/$_.txt", "a/$_.txt") for qw(nested one);
	file('free.txt');
	my $asked = $site->asked;
	is $site->get('/free.txt', Host => 'one')->{status}, 200, 'another location is served';
	is $site->asked, $asked, '... without a question';
	is $site->get($_, Host => 'server')->{status}, 404, "$_ is not a name for clients" for '/stat-accel', '/stat-accel/down';
	is $site->complaints, '', 'the error log has nothing';
};

subtest 'how clients spell a name' => sub {
	my $site = site(server => "root /srv/www; $lines");
	is_warm($site, server => @$_) for ['/a%2Fslash.txt', 'a/slash.txt'], ['//a///runs.txt', 'a/runs.txt'],
	    ['/b/%2e%2e/a/./steps.txt', 'a/steps.txt'], ['/%2541.txt', '%41.txt'], ['/back%5cslash.txt', 'back\\slash.txt'],
	    ['/semi;x=..;.txt', 'semi;x=..;.txt'], ['http://server/absolute.txt', 'absolute.txt'], ['/tab%09.txt', "tab\t.txt"];
};

subtest 'other names than root and URI' => sub {
	my $site = site(
		alias => "root /srv/www; $with_set location /p/ { alias /srv/www/other/; $set }",
		root => "root /srv/www; $with_set location /a/ { root /srv/www/other; $set }",
		nested => "root /srv/www; $with_set location /p/ { alias /srv/www/other/; $set location /p/q/ { alias /srv/www/b/; $set } }",
		regex => "root /srv/www; $with_set location ~ ^/p/(.*) { alias /srv/www/other/\$1; $set }",
		last => "root /srv/www; $with_set location /p/ { rewrite ^/p/(.*) /other/\$1 last; } location /other/ { $set }",
		outer => "root /srv/www; $with_set rewrite ^/p/(.*) /other/\$1; location / { $set }",
		break => "root /srv/www; $with_set location ~ ^/p/(.*) { set \$warm_path \$document_root/other/\$1; rewrite ^/p/(.*) /other/\$1 break; }",
		named => "root /srv/www; $with_set location / { auth_request off; try_files /none \@there; } location \@there { root /srv/www/other; $set }",
	);
	is_warm($site, $_ => "/p/$_.txt", "other/$_.txt") for qw(alias regex last outer break);
	is_warm($site, nested => '/p/q/nested.txt', 'b/nested.txt');
	is_warm($site, root => '/a/root.txt', 'other/a/root.txt');
	is_warm($site, named => '/named.txt', 'other/named.txt');
	is_warm($site, $_ => "/$_-plain.txt", "$_-plain.txt") for qw(alias last);
	is $site->complaints, '', 'the error log has nothing';
};

subtest 'index and try_files' => sub {
	my $site = site(
		index => "root /srv/www; index index.html; $lines",
		first => "root /srv/www; $lines location / { try_files \$uri \$uri/ =404; }",
		fallback => "root /srv/www; $with_set location / { try_files \$uri /page.html; $set }",
		error => "root /srv/www; $with_set error_page 404 /error.html; location = /error.html { $set }",
	);
	put("$dir/www/b/index.html", 'I am the index');
	my $r = $site->get('/b/', Host => 'index');
	is $r->{body}, 'I am the index', 'index: a directory';
	ok eventually(sub { my %w = $site->warmed; grep { ($w{"$site->{root}/b/$_"} // 0) == 14 } '', 'index.html' }, 5), '... its index file is warm';
	is_warm($site, first => '/first.txt', 'first.txt');
	put("$dir/www/page.html", 'I am the page');
	is $site->get('/absent', Host => 'fallback')->{body}, 'I am the page', 'try_files: the fallback';
	put("$dir/www/error.html", 'I am the error');
	is $site->get('/absent', Host => 'error')->{body}, 'I am the error', 'error_page: its file';
	Test::Site::Checks::warmed_are($site, 'page.html' => 13, 'error.html' => 14);
};

subtest 'try_files with an ending' => sub {
	my $site = site(ending => "root /srv/www; $lines location / { try_files \$uri \$uri.html =404; }", command => $command =~ s/$/ --siblings=.html/r);
	put("$dir/www/clean.html", 'I am clean');
	is $site->get('/clean', Host => 'ending')->{body}, 'I am clean', 'its file is served';      # t/unit/files/warm.c: and made warm
};

# The mistake that the lines of old made.
subtest 'a set in the server block' => sub {
	my $wrong = $with_set =~ s/^/set \$warm_path \$document_root\$uri;\n/r;
	my $old = $wrong =~ s/.*DOCUMENT_ROOT.*\n//r;
	my $site = site(with => "root /srv/www; $wrong", old => "root /srv/www; $old");
	is_warm($site, with => '/with.txt', 'with.txt');
	file('old.txt');
	my $asked = $site->asked;
	is $site->get('/old.txt', Host => 'old')->{status}, 200, 'with WARM_PATH alone the file is served';
	is $site->asked, $asked + 1, '... after a question';
	ok !(grep { /stat-accel$/ } keys %{ { $site->warmed } }), '... and the name of the question is not made warm';
};

subtest 'the accelerator is down, and back' => sub {
	my $site = site(server => "root /srv/www; $lines", slash => "location / { root /srv/www; $lines }");
	is_warm($site, $_ => "/$_-up.txt", "$_-up.txt") for qw(server slash);
	my $socket = qr/connect\(\) to unix:\S+ failed \(\d+: [\w ]+\) while connecting to upstream.* subrequest: "\/stat-accel"/;
	for my $how ('killed', 'its socket gone') {
		my $before = () = $site->said =~ /$socket/g;
		$site->stop_accel;
		unlink $site->{app}{address} if $how ne 'killed';
		for my $host (qw(server slash)) {
			is_deeply [map { $site->get("/$host-up.txt", Host => $host)->{status} } 1 .. 5], [(200) x 5], "$how, $host: files are served";
		}
		is $site->get('/none', Host => 'server')->{status}, 404, '... absent ones are 404';
		my $lines = () = $site->said =~ /$socket/g;
		is $lines - $before, 11, '... and each question makes one line in the error log';
		like $site->complaints($socket), qr/\A(?:.*"\/\S+\/none" failed \(2: .*\n?)*\z/, '... which has no others';
		$site->start_accel;
		is_warm($site, $_ => "/$_-back-$before.txt", "$_-back-$before.txt") for qw(server slash);
	}
};

subtest 'a port instead of a socket' => sub {
	my $tcp = $lines =~ s/unix:[^;]+/127.0.0.1:9000/r;
	my $site = site(command => $command =~ s{-s \S+}{-a 127.0.0.1 -p 9000}r, server => "root /srv/www; $tcp");
	is_warm($site, server => '/tcp-up.txt', 'tcp-up.txt');
	$site->stop_accel;
	is_deeply [map { $site->get('/tcp-up.txt', Host => 'server')->{status} } 1 .. 5], [(200) x 5], 'files are served without it';
	$site->start_accel;
	is_warm($site, server => '/tcp-back.txt', 'tcp-back.txt');
};

subtest 'the command of the README as it is written' => sub {
	my $site = site(server => "root /srv/www; $lines");
	$site->stop_accel;
	my $written = $site->spawn_as_written(Test::Site->readme(qr/spawn-fcgi/));
	like $written->{said}, qr/\Aspawn-fcgi: child spawned successfully: PID: \d+\n\z/, 'the terminal shows that it runs';
	is $written->{status}, 0, '... and its status does';
	my @asked = (REQUEST_METHOD => 'GET', DOCUMENT_ROOT => $site->{root}, REQUEST_URI => '/server.txt');
	is $site->ask_accel(@asked)->{status}, 204, 'it answers';
	is $site->get('/server.txt', Host => 'server')->{status}, 200, 'a file is served';
	is $site->complaints, '', '... and the error log has nothing';
};

done_testing;
