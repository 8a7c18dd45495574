#!/usr/bin/perl
# fcgi-stat-accel as a web server sees it: which answer for which file, and what sets the number of threads.

use v5.36;
use Test::More;
use IO::Socket::INET;
use POSIX ();
use Socket;
use Test::Server ();
use Test::Fcgi qw(record begin params request run put temp_tree eventually T_STDIN);

my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/www";
mkdir "$dir/www/sub";
put("$dir/www/file", 'x' x 1000);
put("$dir/www/closed", 'x');
put("$dir/outside", 'x');
chmod 0, "$dir/www/closed";
POSIX::mkfifo("$dir/www/fifo", 0644);
symlink '../outside', "$dir/www/escape";
symlink 'file', "$dir/www/inner";
symlink 'loop', "$dir/www/loop";
my $listening = IO::Socket::UNIX->new(Local => "$dir/www/socket", Listen => 1);

sub is_refused {
	my ($r, $status, $what) = @_;
	is $r->{status}, $status, "$what: $status";
	unlike $r->{bytes}, qr/\Q$dir\E|www|\.\./, "$what: the answer does not say where files lie";
	is $r->{header}{'content-length'}, length $r->{body}, "$what: its length is right";
	is_deeply [grep { !/^(?:Status|Content-Type|Content-Length|Retry-After)$/ } @{ $r->{names} }], [],
	    "$what: no other header";
}

subtest 'each kind of file has its status' => sub {
	my $app = Test::Fcgi->start;
	my $r = $app->get("$dir/www/file");
	is $r->{bytes}, "Status: 200 OK\r\nX-Sendfile: $dir/www/file\r\n\r\n", 'a file';
	is $app->get("$dir/www/inner")->{status}, 200, 'a link to it';
	is_refused($app->get("$dir/www/none"), 404, 'no such file');
	is_refused($app->get("$dir/www/file/x"), 404, 'below a file');
	is_refused($app->get("$dir/www/" . 'n' x 300), 404, 'a name too long');
	is_refused($app->get('/' . 'n/' x 3000 . 'n'), 404, 'a path too long');
	is_refused($app->get('/' . 'n/' x 32_000 . 'n'), 404, 'as long as a request can be');
	is_refused($app->get("$dir/www/sub"), 403, 'a directory');
	is_refused($app->get("$dir/www/sub/"), 403, 'a directory by its slash');
	like $app->get("$dir/www/file/")->{status}, qr/^40[34]$/, 'a slash after a file';
	is_refused($app->get("$dir/www/fifo"), 403, 'a fifo');
	is_refused($app->get("$dir/www/socket"), 403, 'a socket');
	is_refused($app->get('/dev/null'), 403, 'a device');
	is_refused($app->get("$dir/www/loop"), 403, 'a loop of links');
	is_refused($app->ask(REQUEST_METHOD => 'GET'), 403, 'no path');
	is_refused($app->ask(), 403, 'no names at all');
	is_refused($app->get("$dir/www/file\0.gif"), 403, 'a NUL');
	is $app->stop >> 8, 0, 'it ends with 0';
	is $app->log_text, '', 'its log is empty';
};

subtest 'an unreadable file is 403' => sub {
	my @as = $> == 0 ? (spawn => ['-u', 'nobody']) : ();
	my $app = eval { Test::Fcgi->start({@as}) } or plan skip_all => "cannot run as nobody: $@";
	is_refused($app->get("$dir/www/closed"), 403, 'no permission');
	is $app->get("$dir/www/file")->{status}, 200, 'the one beside it';
};

subtest 'HEAD and GET have the same head' => sub {
	my $app = Test::Fcgi->start;
	for my $file (qw(file none sub)) {
		my ($get, $head) = map { $app->ask(REQUEST_METHOD => $_, SCRIPT_FILENAME => "$dir/www/$file") }
		    qw(GET HEAD);
		is $head->{head}, $get->{head}, $file;
		is $head->{body}, '', "$file: HEAD has no body";
	}
};

subtest 'the path comes from the configured variable' => sub {
	my $app = Test::Fcgi->start;
	my @root = (DOCUMENT_ROOT => $dir);
	my $file = "$dir/www/file";
	my $of = sub { ($app->ask(@_)->{header}{'x-sendfile'} // 'none') };
	is $of->(@root, SCRIPT_NAME => '/www', PATH_INFO => '/file'), $file, 'root + name + info';
	is $of->(@root, SCRIPT_NAME => '/www/file'), $file, 'without info';
	is $of->(@root, SCRIPT_NAME => '/www', PATH_INFO => '/file', SCRIPT_FILENAME => "$dir/www"), $file,
	    'split between name and info, as lighttpd 1.4 does';
	is $of->(WARM_PATH => $file, SCRIPT_FILENAME => '/nope'), $file, 'WARM_PATH overrides';
	is $of->(SCRIPT_FILENAME => $file, SCRIPT_NAME => '/x', @root), $file, 'SCRIPT_FILENAME is complete';
	is $of->(SCRIPT_FILENAME => $file, SCRIPT_FILENAME => '/nope'), $file, 'the first one counts';
	is $of->(SCRIPT_FILENAME => 'www/file'), 'none', 'not a relative one';
	is $of->(SCRIPT_FILENAME => "proxy:fcgi://localhost:9000$file"), $file, 'as mod_proxy_fcgi writes it';
	$app = Test::Fcgi->start('--path-from', 'MY_FILE,DOCUMENT');
	is $of->(MY_FILE => $file, SCRIPT_FILENAME => '/nope', WARM_PATH => '/nope'), $file, '--path-from: a variable of your own';
	is $of->(SCRIPT_FILENAME => '/nope', @root, SCRIPT_NAME => '/www/file'), $file, '--path-from: the next one';
	is $of->(SCRIPT_FILENAME => $file), 'none', '--path-from: no other';
};

subtest 'a name cannot add a header' => sub {
	my $name = "a\r\nSet-Cookie: x=1\r\n\r\n<b>\t%41 ?#\xc3\xa4\x7f";
	(my $encoded = $name) =~ s/([^A-Za-z0-9._~\/-])/sprintf '%%%02X', ord $1/ge;
	put("$dir/www/$name", 'x');
	put("$dir/www/100% \xc3\xa4", 'x');
	put("$dir/www/\xff.gif", 'x');
	my $app = Test::Fcgi->start;
	my $r = $app->get("$dir/www/$name");
	is_deeply $r->{names}, ['Status', 'X-Sendfile'], 'one header, encoded';
	is $r->{header}{'x-sendfile'}, "$dir/www/$encoded", 'and it names that file';
	is_refused($app->get("$dir/www/\xff.gif"), 403, 'lighttpd takes UTF-8 only');
	is_refused($app->get("$dir/www/no\r\nX-Sendfile: /etc/passwd"), 404, 'no such name');

	$app = Test::Fcgi->start('--encode=raw', '--header', 'X-Sendfile');
	is_refused($app->get("$dir/www/$name"), 403, 'raw');
	is $app->get("$dir/www/100% \xc3\xa4")->{header}{'x-sendfile'}, "$dir/www/100% \xc3\xa4", 'raw is raw';
};

# One name, in the form that each server reads.
subtest 'each dialect has its header' => sub {
	my $name = "100% \xc3\xa4?\@#+";
	put("$dir/www/$name", 'x');
	put("$dir/www/%41", 'x');
	put("$dir/www/\xff", 'x');
	my $percent = '100%25%20%C3%A4%3F%40%23%2B';
	my @cases = (
		['lighttpd', 'X-Sendfile', "$dir/www/$percent", "$dir/www/%2541"],
		['lighttpd-2007', 'X-LIGHTTPD-send-file', "$dir/www/$name", "$dir/www/%41", "$dir/www/\xff"],
		['nginx', 'X-Accel-Redirect', "$dir/www/$percent", "$dir/www/%2541", "$dir/www/%FF"],
		['apache', 'X-Sendfile', "$dir/www/$name", "$dir/www/%41", "$dir/www/\xff"],
		['litespeed', 'X-LiteSpeed-Location', "$dir/www/$percent", "$dir/www/%2541", "$dir/www/%FF"],
		['h2o', 'X-Reproxy-URL', "$dir/www/$percent", "$dir/www/%2541", "$dir/www/%FF"],
		['caddy', 'X-Accel-Redirect', "$dir/www/$percent", "$dir/www/%2541", "$dir/www/%FF"],
		['accel-server', 'X-LIGHTTPD-send-file', "$dir/www/$percent", "$dir/www/%2541", "$dir/www/%FF"],
	);
	for my $case (@cases) {
		my ($for, $header, @want) = @$case;
		my $app = Test::Fcgi->start("--for=$for");
		for my $file ($name, '%41', "\xff") {
			my $want = shift @want or next;
			my $r = $app->get("$dir/www/$file");
			is_deeply $r->{names}, ['Status', $header], "$for: the header";
			is $r->{header}{ lc $header }, $want, "$for: its value";
		}
	}
	my ($code, $out) = run('--manual');
	is_deeply [grep { $out !~ /^    \Q$_->[0]\E$/m } @cases], [], 'the manual lists them';
};

subtest 'single options override --for' => sub {
	my $app = Test::Fcgi->start('--for=nginx', '--header=X-Other', '--encode=raw', '--map', "$dir/www=/protected",
	    '--map', "$dir/www/sub/=http://127.0.0.1:81/s%20b/");
	put("$dir/www/sub/a b", 'x');
	put("$dir/wwwroot", 'x');
	is $app->get("$dir/www/file")->{header}{'x-other'}, '/protected/file', 'header, encoding and map';
	is $app->get("$dir/www/sub/a b")->{header}{'x-other'}, 'http://127.0.0.1:81/s%20b/a b', 'the longest map, its URI as it is';
	is_refused($app->get("$dir/wwwroot"), 403, 'whole segments only');
	is_refused($app->get("$dir/outside"), 403, 'what no map knows');
};

subtest 'validators and cache headers are set' => sub {
	my $app = Test::Fcgi->start('--etag', '--last-modified', '--expires=3600');
	utime 1_000_000_000, 1_000_000_000, "$dir/www/file";
	my $r;		# its time of change is now: no tag for a moment
	Test::Util::eventually(sub { $r = $app->get("$dir/www/file"); defined $r->{header}{etag} });
	is $r->{header}{'last-modified'}, 'Sun, 09 Sep 2001 01:46:40 GMT', 'Last-Modified';
	is $r->{header}{etag}, '"3e8-de0b6b3a7640000"', 'ETag: size and time of change';
	is $r->{header}{'cache-control'}, 'max-age=3600', 'Cache-Control';
	like $r->{header}{expires}, qr/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'Expires';
	is_refused($app->get("$dir/www/none"), 404, 'none of them for an error');
};

subtest 'an authorizer gets "go on" for every path' => sub {
	my %app = (sendfile => Test::Fcgi->start, auth => Test::Fcgi->start('--mode=auth'));
	for my $file ('file', 'none', 'sub', 'fifo', "\xff") {
		for my $mode (sort keys %app) {
			my $c = $app{$mode}->connect;
			$c->send(begin(1, role => 2), params(1, SCRIPT_FILENAME => "$dir/www/$file"));
			is $c->reply->{bytes}, "Status: 200 OK\r\n\r\n", "$file, --mode=$mode, without a body stream";
		}
		is $app{auth}->get("$dir/www/$file")->{bytes}, "Status: 204 No Content\r\n\r\n", "$file, asked as a responder";
	}
	is $app{auth}->ask->{status}, 204, 'no path at all';
};

subtest '--root confines the answers' => sub {
	my $app = Test::Fcgi->start('--root', "$dir/www");
	is $app->get("$dir/www/file")->{status}, 200, 'inside';
	is $app->get("$dir/www/inner")->{status}, 200, 'a link inside';
	is_refused($app->get("$dir/www/escape"), 403, 'a link that leaves');
	is_refused($app->get("$dir/www/../outside"), 403, 'two dots');
	is_refused($app->get("$dir/www/sub/../../outside"), 403, 'two dots, twice');
	is_refused($app->get("$dir/outside"), 403, 'elsewhere');
	is_refused($app->get("$dir/wwwx"), 403, 'a name that starts alike');
	is_refused($app->get('/etc/passwd'), 403, 'far elsewhere');
	is_refused($app->get("/proc/self/cwd$dir/outside"), 403, 'a magic link');
	is_refused($app->get("$dir/www/none"), 404, 'nothing inside');
	$app = Test::Fcgi->start('--root', "$dir/www/sub", '--root', $dir);
	is $app->get("$dir/www/escape")->{status}, 200, 'a second root allows more';
	mkdir "$dir/cache" or die "$dir/cache: $!";
	put("$dir/cache/file", 'x');
	$app = Test::Fcgi->start('--root', "$dir/www/sub", "--nginx-cache=$dir/cache");
	is $app->get("$dir/cache/file")->{status}, 200, 'a cache is a root, too';
	is_refused($app->get("$dir/www/file"), 403, 'and allows nothing else');
	is $app->stop, 0, 'it ends with 0';    # a sanitizer would report that the list of roots is lost
};

subtest 'exactly N threads touch files' => sub {
	my %env = (FCGI_STAT_THREADS => 5, PHP_FCGI_CHILDREN => 24);
	my @cases = (
		[{}, [], 20, 'the default'],
		[{ PHP_FCGI_CHILDREN => 24 }, [], 24, 'PHP_FCGI_CHILDREN'],
		[{ PHP_FCGI_CHILDREN => 1 }, [], 20, 'spawn-fcgi -C 1, which means processes'],
		[{%env}, [], 5, 'FCGI_STAT_THREADS before it'],
		[{%env}, ['-t', 3], 3, '-t before both'],
		[{%env}, ['--threads=1'], 1, 'one is enough'],
		[{ %env, FCGI_STAT_THREADS => 'many' }, [], 24, 'garbage is passed over', qr/FCGI_STAT_THREADS: expected 1 to 1024, got "many"/],
		[{ %env, FCGI_STAT_THREADS => '0' }, [], 24, '0 too', qr/"0"/],
		[{ FCGI_STAT_THREADS => '', PHP_FCGI_CHILDREN => '7x' }, [], 20, 'both', qr/"7x"/],
	);
	for my $case (@cases) {
		my ($env, $options, $n, $what, $log) = @$case;
		my $app = Test::Fcgi->start({ env => $env }, @$options);
		is $app->get("$dir/www/file")->{status}, 200, "$what: works";
		ok eventually(sub { $app->threads == $n }), "$what: $n threads" or diag join ' ', $app->threads;
		like $app->log_text, $log // qr/^\z/, "$what: stderr";
	}
	my $app = Test::Fcgi->start({ spawn => ['-C', 26] });
	ok eventually(sub { $app->threads == 26 }), 'spawn-fcgi -C 26';
};

subtest 'it listens on a descriptor or on --listen' => sub {
	my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
	is(Test::Fcgi->start({ passed => $tcp })->get("$dir/www/file")->{status}, 200, 'LISTEN_FDS');
	is(Test::Fcgi->start({ env => { LISTEN_FDS => 1, LISTEN_PID => 1 } })->get("$dir/www/file")->{status},
	    200, 'LISTEN_FDS of another process is ignored: descriptor 0');
	my $app = Test::Fcgi->start({ own => 1 }, '--listen', 'unix:@SOCKET@');
	is $app->get("$dir/www/file")->{status}, 200, '--listen';
	is +(stat $app->{socket})[2] & 0777, 0660, 'for owner and group';
	my ($code, undef, $err) = run('--listen', "unix:$app->{socket}");
	is $code, 69, 'an address in use';
	like $err, qr/in use/, 'says so';
	my $path = $app->{socket};
	$app->stop;
	ok !-e $path, 'the socket is gone with it';
	$app = Test::Fcgi->start({ own => 1 }, '--listen', '@SOCKET@');
	is $app->get("$dir/www/file")->{status}, 200, '--listen PATH is a unix socket, too';
	$path = $app->{socket};
	$app->stop;
	ok !-e $path, 'which goes with it';
	$path = "$dir/left";
	IO::Socket::UNIX->new(Local => $path, Listen => 1)->close;
	ok -S $path, 'a socket that a crash left behind';
	$app = Test::Fcgi->start({ own => 1, socket => $path }, '--listen=unix:@SOCKET@', '-t', 2);
	is $app->get("$dir/www/file")->{status}, 200, 'is replaced';
};

# The port that the kernel chose: the listening (0A) sockets in /proc, searched by the number of the socket.
sub port_of ($pid) {
	my %mine = map { (readlink // '') =~ /^socket:\[(\d+)\]/ ? ($1 => 1) : () } glob "/proc/$pid/fd/*";
	open my $h, '<', '/proc/net/tcp' or return;
	for (<$h>) {
		my ($local, $state, $inode) = (split)[1, 3, 9];
		return hex +(split /:/, $local)[1] if $state eq '0A' && $mine{$inode};
	}
	return;
}

subtest '--listen HOST:PORT listens on TCP' => sub {
	my $app = Test::Fcgi->start({ own => 1, nowait => 1 }, '--listen', '127.0.0.1:0');
	my $port;
	ok eventually(sub { $port = port_of($app->{pid}) }), 'it listens';
	my $c = Test::Fcgi::Conn->new(IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port));
	$c->send(request(1, 0, SCRIPT_FILENAME => "$dir/www/file"));
	is $c->reply->{status}, 200, 'and answers';
};

subtest 'TCP accepts its listed addresses only' => sub {
	my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
	my $app = Test::Fcgi->start({ passed => $tcp, env => { FCGI_WEB_SERVER_ADDRS => '10.1.2.3' } });
	ok $app->connect->closed, 'an address that is not listed is refused';
	$app = Test::Fcgi->start({ passed => $tcp, env => { FCGI_WEB_SERVER_ADDRS => '10.1.2.3, 127.0.0.1' } });
	is $app->get("$dir/www/file")->{status}, 200, 'a listed address is served';
	my $any = IO::Socket::INET->new(LocalAddr => '0.0.0.0', Listen => 5);
	is(Test::Fcgi->start({ passed => $any }, '--allow-any')->get("$dir/www/file")->{status}, 200,
	    'everywhere, when asked to');
};

subtest 'each mistake has one message and its exit code' => sub {
	my @cases = (
		[[], 64, qr/descriptor 0 is something else, not a listening socket.*spawn-fcgi.*--listen/s],
		[[{ stdin => '/dev/ptmx' }], 64, qr/descriptor 0 is a terminal/],
		[['--threads', '0'], 64, qr/--threads: expected 1 to 1024, got "0"/],
		[['--threads', '3x'], 64, qr/--threads: expected 1 to 1024, got "3x"/],
		[['-t', '-1'], 64, qr/--threads: expected 1 to 1024, got "-1"/],
		[['--threads', '99999999999999999999'], 64, qr/1 to 1024/],
		[['--nonsense'], 64, qr/nonsense.*--help/],
		[['argument'], 64, qr/argument/],
		[['--header', "X\r\nY: z"], 64, qr/--header/],
		[['--encode', 'base64'], 64, qr/percent or raw/],
		[['--readahead', '5'], 64, qr/readahead/],
		[['--mode', 'both'], 64, qr/sendfile or auth/],
		[['--for', 'iis'], 64, qr/--manual/],
		[['--map', '/a'], 64, qr/--map/],
		[['--map', 'a=/b'], 64, qr/--map/],
		[['--map', '/a/=/b'], 64, qr/slash/],
		[['--map', "/a=/b\r\nX: y"], 64, qr/--map/],
		[['--index', "a.html,b\r\nX: y"], 64, qr/--index: .*control characters/],
		[['--warm', 'read'], 64, qr/read:BYTES/],
		[['--warm', 'read:-5'], 64, qr/read:BYTES/],
		[['--warm', 'read:1t'], 64, qr/read:BYTES/],
		[['--warm', 'read:99999999999g'], 64, qr/read:BYTES/],
		[['--warm=stat', '--behind=1m'], 64, qr/--behind/],
		[['--behind', 'some'], 64, qr/--behind/],
		[['--expires', '-1'], 64, qr/--expires/],
		[['--deadline', '1s'], 64, qr/--deadline/],
		[['--queue', '0'], 64, qr/--queue: expected 1 to/],      # what a thread takes at once has been in it, too
		[['--late', '504'], 64, qr/go-on or 503/],
		[['--timing=xml'], 64, qr/line or json/],
		[['--status-path', 'status'], 64, qr/--status-path/],
		[['--peer-user', ''], 64, qr/--peer-user/],
		[['--check', 'nginx'], 64, qr/one configuration file/],
		[['--root', 'relative'], 64, qr/absolute/],
		[['--root', "$dir/none"], 78, qr/No such file/],
		[['--root', "$dir/www/file"], 78, qr/Not a directory/],
		[['--listen', 'nowhere'], 64, qr/--listen nowhere: expected a port after the host; an address is unix:PATH, HOST:PORT/],
		[['--listen', '::1:9000'], 64, qr/expected an IPv6 address in brackets/],
		[['--listen', 'localhost:http'], 64, qr/expected a port of 0 to 65535/],
		[['--listen', 'unix:' . 'x' x 108], 64, qr/expected a path of at most 107 bytes/],
		[['--listen', "unix:$dir/none/sock"], 73, qr/No such file/],
		[['--listen', '192.0.2.1:0'], 69, qr/192\.0\.2\.1/],
	);
	for my $case (@cases) {
		my ($args, $want, $message) = @$case;
		my ($code, $out, $err) = run(@$args);
		my $what = join ' ', map { ref ? 'alone' : $_ } @$args;
		is $code, $want, "'$what' ends with $want";
		like $err, $message, "'$what' says why";
		is scalar(() = $err =~ /^fcgi-stat-accel: /mg), 1, "'$what' is one line of the program";
		is $out, '', "'$what' on stderr";
	}
	for my $flag (qw(--version -V)) {
		my ($code, $out, $err) = run($flag);
		is "$code$err", '0', $flag;
		like $out, qr/^fcgi-stat-accel \d+\.\d+\.\d+\n\z/, "$flag prints the version";
	}
	for my $flag (qw(--help -h)) {
		my ($code, $out, $err) = run($flag);
		is "$code$err", '0', $flag;
		like $out, qr/--threads.*--root.*--listen.*spawn-fcgi/s, "$flag lists the options";
	}
};

done_testing;
