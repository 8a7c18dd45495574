#!/usr/bin/perl
# fcgi-stat-accel notices by itself when its web server's questions accelerate nothing: one line in the log, and on the status page.

use v5.36;
use Test::More;
use IO::Socket::INET;
use JSON::PP ();
use Test::Fcgi qw(put request temp_tree eventually);
use Test::Site;
use Test::Util qw(slurp);

my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/www";
chmod 0755, $dir;
put("$dir/www/$_", 'x' x 20000) for 'a' .. 'z';
system 'sync', glob "$dir/www/?";    # the kernel drops only what is on the disk

my $app;

# A window is 50 ms, so always-warm takes three seconds.
sub up (@options) {
	$app = Test::Fcgi->start('--status-path=/st', '--advice=50', '--mode=auth', "--root=$dir/www", @options);
}

sub page { my ($query) = @_; return $app->ask(REQUEST_METHOD => 'GET', SCRIPT_NAME => '/st', QUERY_STRING => $query // '')->{body} }

# The ids that hold now.
sub advices { return map { $_->{id} } @{ JSON::PP::decode_json(page('json'))->{advice} } }

# Questions on one kept connection, each with the next path of $next, until $enough says so.
sub ask_until ($next, $enough) {
	my $c = $app->connect;
	my $n = 0;
	return eventually(sub {
		for (1 .. 50) {
			$c->send(request(1, 1, REQUEST_METHOD => 'GET', $next->($n++)));
			defined $c->reply or die 'no answer: ' . $app->log_text;
		}
		$enough->();
	});
}

# The questions lead to this advice, and files that exist end it.
sub notices {
	my ($id, $next, $example) = @_;
	ok ask_until($next, sub { "@{[advices()]}" eq $id }), "$id: on the page" or diag page();
	my ($advice) = @{ JSON::PP::decode_json(page('json'))->{advice} };
	cmp_ok $advice->{percent}, '>=', 90, 'with its share';
	is $advice->{example}, $example, 'with an example' if defined $example;
	like page(), qr/^accel\.advice\.$id: Nearly \w.*\)? [A-Z].*\.$/m, 'as text';
	like page(), qr{^accel\.advice.*; --root is "\Q$dir\E/www"\) }m, 'with the root' if $id =~ /^(?:absent|outside-roots)$/;
	like page('metrics'), qr/^fcgi_stat_accel_advice\{id="$id"\} 1$/m, 'as a metric';
	ok ask_until(\&healthy, sub { !advices() }), 'other questions end it';
	like page(), qr/^accel\.advice: none$/m, 'as text';
	unlike page('metrics'), qr/_advice\{.*1$/m, 'as a metric';
	my $log;
	ok eventually(sub { ($log = $app->log_text) =~ /ev=advice\.ends id=$id / }), 'and the log says so';
	is scalar(() = $log =~ /ev=advice\.begins id=$id percent=\d+ of=\d+ example=\S+ .*do="[A-Z]/g), 1, 'once in the log' or diag $log;
	is scalar(() = $log =~ /ev=advice/g), 2, 'nothing else' or diag $log;
	is $app->stop, 0, 'it ends with 0';
}

# Files that exist; some names do not.
sub healthy {
	my ($n) = @_;
	return SCRIPT_FILENAME => "$dir/www/" . ($n % 20 ? ('a' .. 'z')[$n % 26] : "none$n");
}

subtest 'absent' => sub { up(); notices('absent', sub { SCRIPT_FILENAME => "$dir/www/none/$_[0]" }) };

subtest 'outside of the roots' => sub {
	up();
	notices('outside-roots', sub { SCRIPT_FILENAME => "/srv/other/$_[0]" });
};

subtest 'no path' => sub {
	up();
	notices('no-path', sub { WARM_PATH => "file/$_[0]" }, 'file/0');
	up();
	notices('no-path', sub { SERVER_NAME => 'x' }, '');
};

subtest 'directories' => sub {
	mkdir "$dir/www/d$_" for 0 .. 9;
	up();
	notices('directories', sub { SCRIPT_FILENAME => "$dir/www/d" . $_[0] % 10 }, "$dir/www/d0");
};

subtest 'one path' => sub {
	up();
	notices('equal-names', sub { WARM_PATH => "$dir/www/stat-accel" }, "$dir/www/stat-accel");
};

subtest 'no permission' => sub {
	mkdir "$dir/www/mine";
	chmod 0, "$dir/www/mine";
	up($> == 0 ? '--user=nobody' : ());
	notices('denied', sub { SCRIPT_FILENAME => "$dir/www/mine/$_[0]" });
	chmod 0700, "$dir/www/mine";
};

# Only a file system that can tell what is in memory, and drops it, shows the order.
sub warm_id {
	my ($id) = @_;
	chomp(my $type = `stat -f -c %T '$dir'`);
	return $type =~ m{^(?:ext2/ext3|xfs|btrfs)$} ? qr/$id/ : qr/$id|warm-or-late/;
}

subtest 'always warm' => sub {
	up('--advice=1', '--remember=5', '--prove-order');
	ok ask_until(sub { REQUEST_METHOD => 'GET', SCRIPT_FILENAME => "$dir/www/" . ('a' .. 'z')[$_[0] % 26] }, sub { advices() }), 'an advice';
	my $id = warm_id('always-warm');
	like +(advices())[0], qr/\A$id\z/, 'on the page';
	is $app->stop, 0, 'it ends with 0';
};

subtest 'what is not known without --prove-order' => sub {
	up('--advice=1', '--remember=5');
	ok ask_until(sub { REQUEST_METHOD => 'GET', SCRIPT_FILENAME => "$dir/www/" . ('a' .. 'z')[$_[0] % 26] }, sub { advices() }), 'an advice';
	is_deeply [advices()], ['warm-or-late'], 'on the page';
	like page(), qr{^accel\.advice\.warm-or-late: Almost no .* \(100 % of \d{4,}, as "\Q$dir\E/www/[a-z]"; they waited \d+ ms and cost \d{2,} ms of CPU\) Two causes\.}m, 'with what it costs';
	is $app->stop, 0, 'it ends with 0';
	like $app->log_text, qr{ev=advice\.begins id=warm-or-late percent=100 of=\d+ example=\S+/www/[a-z] .*waited-ms=\d+ cost-ms=\d+ }, 'in the log';
};

subtest 'peers that may not connect' => sub {
	$app = Test::Fcgi->start('--advice=1', '--peer-user=nobody', '--status-path=/st') if $> == 0;
	plan skip_all => 'only root can be another user' unless $app && $> == 0;
	chmod 0755, "$app->{dir}";
	chmod 0777, $app->socket;
	my $asks = 'use IO::Socket::UNIX; while (1) { my $s = IO::Socket::UNIX->new($ARGV[0]) or exit; sysread $s, my $b, 1 }';
	my $pid = fork // die "fork: $!";
	exec qw(setpriv --reuid=www-data --clear-groups --pdeathsig=TERM --), $^X, '-e', $asks, $app->socket or POSIX::_exit(127) if $pid == 0;
	ok eventually(sub { advices() }), 'an advice';
	is_deeply [advices()], ['peers-refused'], 'on the page' or diag page();
	kill 'TERM', $pid;
	waitpid $pid, 0;
	is $app->stop, 0, 'it ends with 0';
	like $app->log_text, qr/ev=advice\.begins id=peers-refused .*FCGI_WEB_SERVER_ADDRS/, 'in the log';
};

# ---------------------------------------------------------------- nginx

# A server block with these lines in front of its locations.
sub nginx {
	my ($lines, $location) = @_;
	my $site = Test::Site->start('nginx', 'advice', root => "$dir/www", text => Test::Site->shortest('nginx', <<'ACCEL', <<"LINES"));
/usr/local/bin/fcgi-stat-accel --listen unix:/run/stat-accel.sock --mode=auth --root=/srv/www --advice=1 --remember=5 --prove-order
ACCEL
	server {
		listen 8080;
		root /srv/www;
$lines
		location / {
			$location
		}
	}
LINES
	return $site;
}

# What the accelerator of the site says until it has an advice.
sub site_says ($site) {
	my $said;
	my @requests = map { "GET /$_ HTTP/1.1\r\nHost: a\r\n" } 'a' .. 'z';
	my $all = join("\r\n", @requests, @requests) . "Connection: close\r\n\r\n";
	eventually(sub {
		my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $site->port) or die "nginx: $!";
		syswrite $c, $all;
		1 while sysread $c, my $bytes, 1 << 20;
		($said = ($site->apps)[0]->said) =~ /ev=advice/;
	});
	is $site->get('/a')->{status}, 200, 'nginx serves';
	return join "\n", grep { /ev=advice/ } split /\n/, $said;
}

sub question ($name) {
	return <<"CONF";
location = $name { internal;
	fastcgi_pass unix:/run/stat-accel.sock;
	fastcgi_pass_request_body off;
	fastcgi_param REQUEST_METHOD \$request_method;  fastcgi_param WARM_PATH \$warm_path; }
CONF
}

subtest 'nginx: set in server {} runs again for the subrequest' => sub {
	Test::Site->need('nginx');
	my $lines = "set \$warm_path \$document_root\$uri;\nauth_request NAME;\n";
	for my $name ('/stat-accel', '/warm') {
		my $site = nginx($lines =~ s/NAME/$name/r . question($name), '');
		like site_says($site), qr{\A\N+ id=equal-names percent=100 of=\d+ example="?\Q$site->{root}\E$name"? \N+ do="\N+ from server \{\} into the locations \N+\z}, $name;
		$site->stop;
	}
};

subtest 'nginx: the lines in a location say nothing' => sub {
	my $site = nginx(question('/stat-accel'), 'set $warm_path $document_root$uri; auth_request /stat-accel;');
	is $site->get("/$_")->{status}, 200, $_ for 'a' .. 'z';
	$site->get('/' . ('a' .. 'z')[$_ % 26]) for 1 .. 400;
	is $site->asked, 426, 'the accelerator was asked';
	unlike +($site->apps)[0]->said, qr/ev=advice/, 'no advice';
	$site->stop;
};

subtest 'nginx: mirror asks without waiting' => sub {
	my $site = nginx(question('/late'), 'set $warm_path $document_root$request_uri; mirror /late;');
	my $id = warm_id('asked-late');
	like site_says($site), qr{ id=$id \N+ do="\N+mirror, post_action}, 'the advice names the order';
	$site->stop;
};

subtest 'a healthy set-up, and few questions' => sub {
	up('--advice=1');
	ask_until(\&healthy, sub { 1 }) for 1 .. 20;
	is_deeply [advices()], [], 'nothing to say';
	is $app->stop, 0, 'it ends with 0';
	up('--advice=1');
	$app->ask(SCRIPT_FILENAME => "$dir/www/none") for 1 .. 20;
	is_deeply [advices()], [], 'nothing to say';
	is $app->stop, 0, 'it ends with 0';
	unlike $app->log_text, qr/ev=advice/, 'nothing in the log';
};

done_testing;
