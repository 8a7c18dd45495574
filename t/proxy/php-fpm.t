#!/usr/bin/perl
# php-fpm behind accel-server, with the configuration of examples/accel-server/php.conf.

use v5.36;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use FindBin ();
use POSIX ();
use Test::More;

use Test::Http qw(parse request_head);
use Test::Server;
use Test::Util qw(eventually need_program put slurp);

my $fpm = Test::Util::find_program('php-fpm8.2') // need_program('php-fpm', 'php-fpm');
my $run = File::Temp->newdir('accel-php-XXXXXX', TMPDIR => 1);
my $files = "$run/files";
mkdir $_ or die "$_: $!" for "$run/sessions", $files;
my $owner = getpwuid $>;
put("$run/fpm.conf", <<"END");
[global]
error_log = $run/fpm.log
[test]
user = $owner
listen = $run/php.sock
pm = static
pm.max_children = 3
php_admin_value[session.save_path] = $run/sessions
php_admin_value[upload_max_filesize] = 10M
php_admin_value[post_max_size] = 12M
php_admin_value[memory_limit] = 128M
php_admin_value[upload_tmp_dir] = $run
php_admin_flag[display_errors] = off
php_admin_flag[log_errors] = on
END

# timeout(1) ends it whatever happens to this process.
my $pid = fork // die "fork: $!";
if (!$pid) {
	open STDOUT, '>', "$run/out" or POSIX::_exit(126);
	open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
	exec 'timeout', '300', $fpm, '-n', '-F', '-R', '-y', "$run/fpm.conf" or POSIX::_exit(127);
}
END {
	local $?;
	if ($pid) { kill 'TERM', $pid; waitpid $pid, 0 }
}
ok eventually(sub { -S "$run/php.sock" }), 'php-fpm runs' or die(slurp("$run/out") . slurp("$run/fpm.log"));

my $conf = slurp("$FindBin::Bin/../../examples/accel-server/php.conf");
$conf =~ s{"/var/www/html"}{"\@DIR\@"};
$conf =~ s{8080}{\@PORT\@};
$conf =~ s{/run/php/php8.2-fpm.sock}{$run/php.sock};
$conf =~ s{/var/www/files}{$files}g;
$conf =~ s{(max-pool-size\s*=) 5}{$1 3};
my $srv = Test::Server->start(conf => "server.max-worker = 1\n$conf");
$srv->write('index.php', '<?php header("Content-Type: text/plain"); foreach (["REQUEST_METHOD", "SCRIPT_NAME", "SCRIPT_FILENAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI",
	"PHP_SELF", "DOCUMENT_ROOT"] as $k) echo "$k=", $_SERVER[$k] ?? "", "\n"; echo "body=", file_get_contents("php://input"), "\n"; ?>');
$srv->write('dir/index.php', '<?php echo "dir"; ?>');
$srv->write('lib/secret.inc', '<?php SOURCE ?>');
$srv->write('old.PHP', '<?php SOURCE ?>');
$srv->write('index.php~', '<?php SOURCE ?>');
$srv->write('plain.html', '<p>plain');
$srv->write('upload.php', '<?php $f = $_FILES["f"]; echo $f["error"], " ", $f["name"], " ", $f["size"], " ", md5_file($f["tmp_name"]), " ", $_POST["field"]; ?>');
$srv->write('big.php', '<?php header("X-Sum: 1"); for ($i = 0; $i < 320; $i++) echo str_repeat(chr(65 + $i % 26), 65536); ?>');
$srv->write('visits.php', '<?php session_start(); $_SESSION["n"] = ($_SESSION["n"] ?? 0) + 1; setcookie("two", "b c"); echo $_SESSION["n"]; ?>');
$srv->write('fatal.php', '<?php no_such_function(); ?>');
$srv->write('sendfile.php', '<?php header("Content-Type: application/pdf"); header("X-Sendfile: ' . $files . '/" . $_GET["f"]); echo "not this"; ?>');
$srv->write('status.php', '<?php http_response_code(418); header("X-A: 1"); header("X-A: 2", false); echo "teapot"; ?>');
put("$files/report.pdf", 'the report');

sub env { my ($r) = @_; return { map { split /=/, $_, 2 } split /\n/, $r->{body} } }

subtest 'scripts' => sub {
	my $dir = $srv->dir;
	for my $case (['/index.php?a=b', '/index.php', ''], ['/?a=b', '/index.php', ''], ['/index.php/more/in%20fo?a=b', '/index.php', '/more/in fo'], ['/index.php/?a=b', '/index.php', '/']) {
		my ($path, $script, $info) = @$case;
		my $env = env($srv->fetch($path));
		is $env->{SCRIPT_NAME}, $script, "$path: SCRIPT_NAME";
		is $env->{SCRIPT_FILENAME}, "$dir$script", '... SCRIPT_FILENAME';
		is $env->{PATH_INFO}, $info, '... PATH_INFO';
		is $env->{PHP_SELF}, "$script$info", '... PHP_SELF';
		is $env->{QUERY_STRING}, 'a=b', '... QUERY_STRING';
		is $env->{REQUEST_URI}, $path, '... REQUEST_URI';
	}
	is $srv->fetch('/dir/')->{body}, 'dir', 'the index.php of a directory';
	is $srv->fetch('/dir')->{status}, 301, 'its name without a slash';
	is $srv->fetch('/none.php')->{status}, 404, 'a script that is not there';
	is $srv->fetch('/none.php/x')->{status}, 404, '... with more after it';
	is $srv->fetch('/plain.html')->{body}, '<p>plain', 'a file';
	my $r = $srv->fetch('/plain.html/x.php');
	unlike $r->{body}, qr/plain/, 'a file is not a script' or diag $r->{body};
	for my $path ('/lib/secret.inc', '/old.PHP', '/index.php~') {
		is $srv->fetch($path)->{status}, 403, "$path is not sent";
	}
};

subtest 'a request body' => sub {
	my $c = $srv->connect;
	for my $path ('/index.php', '/') {
		$c->send("POST $path HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
		my $env = env($c->reply);
		is "$env->{REQUEST_METHOD} $env->{body}", 'POST body', "POST $path";
	}
	$c->send("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n");
	is env($c->reply)->{body}, 'body', 'chunked';
};

subtest 'an upload' => sub {
	my $data = join '', map { chr($_ * 7 % 256) } 1 .. 65536;
	$data = substr $data x 49, 0, 3_145_729;
	my $body = qq{--B\r\nContent-Disposition: form-data; name="field"\r\n\r\nvalue\r\n--B\r\nContent-Disposition: form-data; name="f"; filename="a.bin"\r\n\r\n$data\r\n--B--\r\n};
	my $r = parse($srv->request("POST /upload.php HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: "
		. length($body) . "\r\n\r\n$body"));
	is $r->{body}, '0 a.bin 3145729 ' . md5_hex($data) . ' value', '3 MB arrive in $_FILES';
};

subtest 'replies' => sub {
	my $r = $srv->fetch('/big.php');
	is length $r->{body}, 320 * 65536, '20 MB';
	is md5_hex($r->{body}), md5_hex(join '', map { chr(65 + $_ % 26) x 65536 } 0 .. 319), '... unchanged';
	$r = $srv->fetch('/status.php');
	is "$r->{status} $r->{body}", '418 teapot', 'a status';
	$r = $srv->fetch('/fatal.php');
	is $r->{status}, 500, 'a fatal error';
	like $srv->wait_log(qr/no_such_function/), qr/ev=app\.stderr .*no_such_function/, '... is in the log';
	is parse($srv->head('/big.php'))->{status}, 200, 'HEAD';
};

subtest 'a session' => sub {
	my $r = $srv->fetch('/visits.php');
	my ($id) = ($srv->get('/visits.php') =~ /^Set-Cookie: (PHPSESSID=[^;\r]+)/mi);
	ok $id, 'a cookie';
	is $srv->fetch('/visits.php', Cookie => $id)->{body}, $_, "visit $_" for 2, 3;
	my @cookies = $srv->get('/visits.php') =~ /^Set-Cookie: (\w+)=/mgi;
	is "@cookies", 'PHPSESSID two', 'several cookies';
};

subtest 'X-Sendfile' => sub {
	my $r = $srv->fetch('/sendfile.php?f=report.pdf');
	is $r->{body}, 'the report', 'sends the file';
	is $r->{header}{'content-type'}, 'application/pdf', '... with the type of the script';
	is $srv->fetch('/sendfile.php?f=report.pdf', Range => 'bytes=4-')->{body}, 'report', '... a part of it';
	is $srv->fetch('/sendfile.php?f=../php.sock')->{status}, 403, '... not above its directory' or diag $srv->log;
	is $srv->fetch('/sendfile.php?f=none')->{status}, 404, '... not if it is not there';
};

done_testing;
