# The recipes for hot files: the server asks fcgi-stat-accel about a name once a second, and never serves one that is cold.
use v5.36;
use Test::More;
use Test::Fcgi qw(put eventually);
use Test::Site;
use Test::Site::Checks;
use Accel::Slowfs;
use Test::Util qw(slurp);

my $tree = tree();
# lua_shared_dict takes 12k at least; warm.lua gets room for one name.
sub small_dict { return (edit => sub { $_[0] =~ s/lua_shared_dict warm \S+;/lua_shared_dict warm 12k;/r }) }

sub one_name {
	my $lua = "$tree/warm.lua";
	put($lua, slurp('examples/lighttpd/warm.lua') =~ s/room = \d+/room = 1/r);
	return (edit => sub { $_[0] =~ s{"\S+/warm\.lua"}{"$lua"}gr });
}

my @recipes = (
	{ kind => 'nginx', file => 'cached.conf', absent => { body => qr{<center>nginx}, escape => 200 }, bare => 403 },
	{ kind => 'nginx', file => 'lua.conf', needs => '/usr/lib/nginx/modules/ngx_http_lua_module.so',
	  absent => { body => qr{<center>nginx}, escape => 200 }, bare => 403, full => \&small_dict },
	{ kind => 'lighttpd', file => 'magnet.conf', needs => '/usr/lib/lighttpd/mod_magnet.so',
	  absent => { body => qr{<h1>}, escape => 200, below => 200 }, bare => 403, full => \&one_name,    # as t/site/lighttpd.t
	  names => { map { $_ => 400 } "\xff\xfe.txt", "tab\t.txt", "new\nline.txt", "return\r\nX-Evil: 1.txt", "del\x7f.txt" } },
);

sub example { return slurp("examples/$_[0]{kind}/$_[0]{file}") }

# The accelerator is a process of its own, and its lines are not in the log of the server.
sub start {
	my ($r, %arg) = @_;
	my $edit = $arg{edit} // sub { $_[0] };
	return Test::Site->start($r->{kind}, $r->{file}, root => "$tree/www", %arg, edit => sub { Test::Site::by_command($edit->($_[0])) });
}

# Answers of the accelerator to this many requests for this file.
sub asked_for ($site, $n, $target) {
	my $asked = $site->asked;
	$site->get($target)->{status} == 200 or die "$target\n" for 1 .. $n;
	return $site->asked - $asked;
}

sub serves_as_before ($r) {
	my $site = start($r);
	Test::Site::Checks::check_files($site);
	Test::Site::Checks::check_absent($site, %{ $r->{absent} });
	Test::Site::Checks::check_ranges($site);
	Test::Site::Checks::check_conditions($site);
	Test::Site::Checks::check_directories($site, slash => 301, bare => $r->{bare});
	Test::Site::Checks::check_names($site, %{ $r->{names} // {} });
	if ($r->{kind} eq 'nginx') {
		my $asked = $site->asked;
		is $site->get('/hot/one.txt')->{body}, 'h', 'an exempt file is served';
		is $site->asked, $asked, '... without a question';
	}
	isnt $site->get('/stat-accel')->{status}, 204, 'no client reaches the accelerator';
	check_order($site, $r->{kind} eq 'nginx' ? 'Status: 204 No Content' : 'Status: 200 OK');
}

# Without a recipe twenty requests are twenty questions.  On a slow machine they take some seconds.
sub asks_once_a_second ($r) {
	my $site = start($r);
	my $once = 0;
	ok eventually(sub { return asked_for($site, 20, '/one.txt') <= 10 }, 20), 'twenty requests are fewer questions';
	ok eventually(sub { return asked_for($site, 1, '/one.txt') == 1 }, 20), '... and it asks again later';
	cmp_ok asked_for($site, 20, '/names/A.txt'), '>', 0, 'another name is another question';
	ok eventually(sub { return asked_for($site, 20, '/dir/') <= 10 }, 20), 'an index file is remembered, too';
	my $asked = $site->asked;
	$site->get('/one.txt', Range => 'bytes=0-0') for 1 .. 3;
	is $site->asked - $asked, 3, 'so is each range';
}

sub serves_without_accelerator ($r) {
	my $site = start($r);
	is $site->get('/one.txt')->{status}, 200, 'with the accelerator';
	$site->stop_accel;
	ok eventually(sub { $site->get('/names/A.txt')->{status} == 200 }, 20), 'without it, a name not asked about before';
	return if $r->{kind} ne 'nginx';        # lighttpd answers 503 once a second, to find out
	is $site->get('/names/a%20space.txt')->{status}, 200, '... and each other one';
}

# More names than it remembers: each is served, and what has no room is asked about again.
sub dictionary_is_full ($r) {
	put("$tree/www/bare/$_.txt", $_) for 1 .. 300;
	my $site = start($r, $r->{full}->());
	my @wrong = grep { $site->get("/bare/$_.txt")->{body} ne $_ } (1 .. 300) x 2;
	is_deeply \@wrong, [], 'six hundred requests for three hundred names';
	cmp_ok $site->asked, '>=', 300, '... each is asked about';
	is $site->complaints(qr/server started/), '', '... and nothing is said about it';
	unlink map { "$tree/www/bare/$_.txt" } 1 .. 300;
}

sub asks_whatever_the_client_says ($r) {
	my $site = start($r);
	my $asked = $site->asked;
	$site->get("/names/$_.txt", 'X-Ask' => '0') for 'A', 'a%20space';
	is $site->asked - $asked, 2, 'a header of the client hides no name';
}

# An answer about a HEAD request says nothing about the bytes, and the next client wants them.  lua.conf asks as for GET.
sub head_makes_nothing_warm ($r) {
	my $site = start($r);
	my $asked = $site->asked;
	is $site->head('/names/A.txt')->{status}, 200, 'HEAD';
	is $site->get('/names/A.txt')->{status}, 200, '... then GET';
	cmp_ok $site->asked - $asked, '>=', $r->{file} eq 'lua.conf' ? 1 : 2, '... is a question of its own';
	my ($first) = grep { $_->{path} =~ /A\.txt\z/ } $site->timing;
	isnt $first->{bytes}, 0, '... and HEAD is asked about as GET' if $r->{file} eq 'lua.conf';
}

sub forgets_when_told ($r) {
	my $site = start($r, text => example($r) =~ s/--mode=auth/--mode=auth --remember=999/r);
	is asked_for($site, 10, '/one.txt'), 10, 'answers that hold for less than a second are not kept';
}

# The disk has not said a word when the hot file is there: no clock is needed.
sub cold_files_delay_nobody {
	my ($r) = @_;
	my ($usable, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $usable;
	my $slow = Accel::Slowfs->start(source => "$tree/www/names", at => "$tree/www/bare", lookup_ms => 0, read_ms => 0);
	my $site = start($r, edit => sub { $_[0] =~ s/^worker_processes .*/worker_processes 1;/mr });
	is $site->get('/one.txt')->{status}, 200, 'the hot file';
	$slow->hang;
	my @cold = map { $site->_send('GET', '/bare/A.txt') } 1 .. 2;      # the second must not take the first for an answer
	ok $slow->wait_hanging(1), 'a cold file hangs';
	is $site->get('/one.txt')->{status}, 200, '... and a hot one does not' for 1 .. 3;
	is $slow->hanging, 1, '... though the disk has not said a word';
	$slow->go;
	is $site->_reply($_)->{body}, 'I am A.txt', 'the cold one is served' for @cold;
	my %warm;
	ok eventually(sub { %warm = $site->warmed; exists $warm{"$site->{root}/bare/A.txt"} }, 5), '... after a question with its name';
	$site->stop;
	$slow->stop;
}

for my $r (@recipes) {
	subtest "$r->{kind} $r->{file}" => sub {
		Test::Site->need($r->{kind});
		plan skip_all => "no $r->{needs}: scripts/install-deps installs it" if $r->{needs} && !-e $r->{needs};
		subtest 'serves as before' => sub { serves_as_before($r) };
		subtest 'asks once a second' => sub { asks_once_a_second($r) };
		subtest 'HEAD makes nothing warm' => sub { head_makes_nothing_warm($r) };
		subtest 'forgets when told' => sub { forgets_when_told($r) };
		subtest 'a client cannot say what is warm' => sub { asks_whatever_the_client_says($r) } if $r->{kind} eq 'lighttpd';
		subtest 'serves without accelerator' => sub { serves_without_accelerator($r) };
		subtest 'dictionary is full' => sub { dictionary_is_full($r) } if $r->{full};
		subtest 'cold files delay nobody' => sub { cold_files_delay_nobody($r) };
	};
}

subtest 'nginx: a map exempts' => sub {
	my ($map, $if) = slurp('examples/nginx/README.md') =~ /^    (map .*)\n    (if .*)$/m or die 'no map';
	put("$tree/www/style.css", 'css');
	my $site = Test::Site->start('nginx', 'auth.conf', root => "$tree/www",
		edit => sub { $_[0] =~ s/^(?=\tserver \{)/\t$map\n/mr =~ s/(location = \/stat-accel \{\n)/$1$if\n/r });
	my $asked = $site->asked;
	is $site->get('/style.css?1')->{body}, 'css', 'a popular file';
	is $site->asked, $asked, '... is not asked about';
	is $site->get('/one.txt')->{status}, 200, 'another one';
	is $site->asked, $asked + 1, '... is';
};

done_testing;
