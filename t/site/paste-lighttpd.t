# The lighttpd lines of the README, pasted: the right name is made warm wherever they stand, and what becomes of requests while the accelerator
# is down.
use v5.36;
use Test::More;
use Test::Site;
use Test::Site::Checks ();
use Test::Util qw(eventually put slurp temp_tree);

Test::Site->need('lighttpd');

my $lines = Test::Site->readme(qr/fastcgi\.server/);
my $socket = '/run/lighttpd/stat-accel.sock';
my $dir = temp_tree();
mkdir "$dir/www/$_" for '', qw(dir other host site site/a.example);
my %size;
for (qw(one.txt dir/index.html other/two.txt other/three.txt host/four.txt site/a.example/five.txt six.txt)) {
	put("$dir/www/$_", "I am $_");
	$size{$_} = -s "$dir/www/$_";
}

# lighttpd with these lines in a configuration that has all that can change a name.
sub site ($pasted, %arg) {
	my $before = $arg{before} // '';
	my $more = '--status-path=/accel-status --timing=json --index=index.html';
	return Test::Site->start('lighttpd', 'the lines of the README', root => "$dir/www", own_accel => "$socket-0", %arg, text => <<"CONF");
@{[ $arg{command} // '' ]}
server.port = 8080
server.document-root = "/srv/www"
server.errorlog = "/var/log/lighttpd/error.log"
server.username = "www-data"
server.modules = ( "mod_rewrite", "mod_alias", "mod_simple_vhost", "mod_indexfile" )
index-file.names = ( "index.html" )
alias.url = ( "/alias/" => "/srv/www/other/" )
url.rewrite-once = ( "^/old/(.*)" => "/other/\$1" )
$before
\$HTTP["host"] == "host" { server.document-root = "/srv/www/host" }
\$HTTP["host"] == "a.example" {
	simple-vhost.server-root = "/srv/www/site/"
	simple-vhost.document-root = "/"
}
@{[ $pasted =~ s/--mode=auth/--mode=auth $more/r ]}
CONF
}

# lighttpd's error log without what it says of an accelerator that ends; the accelerator's own lines are in it, too.
my @usual = (qr/server started/, qr/^(?:ts=|\{)/);

sub is_right_everywhere {
	my ($site) = @_;
	my @want = (['/one.txt?a=b', x => 'one.txt'], ['/dir/', x => 'dir/index.html'], ['/alias/two.txt', x => 'other/two.txt'],
		['/old/three.txt', x => 'other/three.txt'], ['/four.txt', host => 'host/four.txt'], ['/five.txt', 'a.example' => 'site/a.example/five.txt']);
	is $site->get($_->[0], Host => $_->[1])->{body}, "I am $_->[2]", "$_->[1] $_->[0]" for @want;
	Test::Site::Checks::warmed_are($site, map { s{/index\.html$}{/}r => $size{$_} } map { $_->[2] } @want);
	is $site->complaints(@usual), '', 'the error log has nothing';
}

# The only child of lighttpd is the accelerator.
sub pid_of_accel ($site) {
	my $pid = $site->pid;
	return +(split ' ', slurp("/proc/$pid/task/$pid/children"))[0];
}

subtest 'at the top level' => sub {
	my $site = site($lines);
	is_right_everywhere($site);
	is $lines, Test::Site->block('lighttpd', 'lighttpd'), 'examples/lighttpd has the same lines';
	is scalar(my @l = split /\n/, $lines), 3, 'they are three';
};

subtest 'in a condition' => sub {
	my ($modules, $rest) = $lines =~ /\A(server\.modules\N*\n)(.+)\z/s;
	my $site = site("$modules\$HTTP[\"url\"] !~ \"^/six\" {\n$rest}\n");
	is_right_everywhere($site);
	my $asked = $site->asked;
	is $site->get('/six.txt')->{status}, 200, 'another file is served';
	is $site->asked, $asked, '... without a question';
	is $site->get('/one.txt')->{status}, 200, 'one more';
	is $site->asked, $asked + 1, '... after a question';
};

subtest 'beside another application' => sub {
	is_right_everywhere(site($lines, before => 'fastcgi.server = ( ".php" => (( "socket" => "/run/php.sock" )) )'));
};

subtest 'with docroot other names are lost' => sub {
	my $site = site($lines =~ s/"mode"/"docroot" => "\/srv\/www", "mode"/r);
	is $site->get('/one.txt')->{status}, 200, 'a file below it';
	is $site->get('/alias/two.txt')->{status}, 404, 'an alias is not found';
};

subtest 'the accelerator is killed' => sub {
	my $site = site($lines);
	for my $round (1, 2) {
		is $site->get('/one.txt')->{status}, 200, 'a file';
		my $pid = pid_of_accel($site);
		kill KILL => $pid;
		# The sockets of the accelerator are closed when the last of its threads has ended.
		ok eventually(sub { slurp("/proc/$pid/stat") !~ /\) [^ZX]/ && (my @left = glob "/proc/$pid/task/*") <= 1 }), '... and the end of the accelerator';
		# lighttpd starts a program at most once a second.
		my @status;
		ok eventually(sub { push @status, $site->get("/one.txt?$round")->{status}; $status[-1] == 200 }), 'a request starts it again';
		is scalar(grep { !/^(?:200|503)$/ } @status), 0, '... before that there were 503 at most';
		isnt pid_of_accel($site), $pid, '... and asks another process';
	}
	my $lines = () = $site->said =~ /child signalled: 9/g;
	is $lines, 2, 'each end is a line in the error log';
};

my $by_command = $lines =~ s/\s*"bin-path" => "[^"]*", "max-procs" => 1//r =~ s/,(?= \)\))//r;
my $command = "#    spawn-fcgi -s $socket -u www-data -g www-data -U www-data -- /usr/local/bin/fcgi-stat-accel --mode=auth --root=/srv/www";

subtest 'a process of its own is down, and back' => sub {
	my $site = site($by_command, command => $command, own_accel => undef);
	is $site->get('/one.txt')->{status}, 200, 'a file';
	$site->stop_accel;
	is_deeply [map { $site->get('/one.txt')->{status} } 1 .. 5], [(503) x 5], 'requests are 503 while it is down';
	my $lines = () = $site->said =~ /establishing connection failed/g;
	cmp_ok $lines, '<=', 2, '... and the error log says so once, or after disable-time again';
	$site->start_accel;
	ok eventually(sub { $site->get('/one.txt')->{status} == 200 }), 'files are served when it is back';
};

done_testing;
