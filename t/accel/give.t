#!/usr/bin/perl
# A client of the same user gets the descriptor of the file that it asked for, with the answer, or the error of open(2).

use v5.36;
use IPC::Open2 qw(open2);
use IO::Select;
use IO::Socket::INET;
use Test::More;
use Errno qw(ENOENT ENOTDIR EACCES ELOOP ENAMETOOLONG);
use Test::Fcgi qw(put temp_tree request eventually);
use Accel::Slowfs;

my $tree = temp_tree();
my $dir = "$tree";
chmod 0755, $dir;
mkdir "$dir/www";
mkdir "$dir/www/sub";
put("$dir/www/$_", 'x' x 1000) for qw(a b closed sub/index.html);
put("$dir/outside", 'x');
chmod 0, "$dir/www/closed";
symlink '../outside', "$dir/www/escape";
symlink 'loop', "$dir/www/loop";
symlink 'a', "$dir/www/link";
POSIX::mkfifo("$dir/www/fifo", 0644);

my @nobody = qw(setpriv --reuid=65534 --regid=65534 --clear-groups);
my ($app, $slow);
my $fifos = 0;
my $far = $dir;    # the same on a slow disk

# Its process id and output.
sub take_fds ($under, $where, $requests, @more) {
	my $id = 0;
	my $bytes = join '', map { request(++$id, 1, @$_) } @$requests;
	my $pid = open2(my $out, my $in, @$under, "$Test::Fcgi::B/bin/take-fds", scalar @$requests, $where, @more);
	print {$in} $bytes;
	close $in;
	return ($pid, $out);
}

# The lines of take-fds: "ID STATUS ERRNO DEV:INODE FLAGS".  The requests are pipelined on one connection.
#   took([before the command], where, [pairs of a request]...)
sub took ($under, $where, @requests) {
	my ($pid, $out) = take_fds($under, $where, \@requests);
	chomp(my @lines = <$out>);
	waitpid $pid, 0;
	is $? >> 8, 0, 'each descriptor comes with the first byte of its answer';
	return @lines;
}

sub wants ($path, @more) { return [WARM_PATH => $path, WARM_OPEN => 1, @more] }
sub takes (@requests) { return took([], $app->socket, @requests) }
sub file ($path, $kind = 'r') { my @st = stat $path; return "$st[0]:$st[1] $kind" }
sub counter ($name) {
	my ($n) = $app->ask(SCRIPT_NAME => '/st')->{body} =~ /^accel\.descriptors\.\Q$name\E: (\d+)$/m;
	return $n;
}
# Descriptors of the program that are files of the tree.
sub held { return scalar grep { (readlink($_) // '') =~ m{^(?:\Q$dir\E|\Q$far\E)/} } glob '/proc/' . $app->pid . '/fd/*' }
sub up (@options) { $app = Test::Fcgi->start('--mode=auth', '--status-path=/st', '--remember=60000', @options) }

subtest 'a file, a directory, or why not' => sub {
	up("--root=$dir", '--index=index.html');
	my @asked = map { "$dir/www/$_" } 'a', 'link', 'sub', 'sub/', 'none', 'a/x', 'loop', 'n' x 300;
	my @want = (
		"1 204 0 " . file("$dir/www/a"),
		"2 204 0 " . file("$dir/www/a"),
		"3 204 0 " . file("$dir/www/sub", 'rd'),
		"4 204 0 " . file("$dir/www/sub", 'rd'),
		map { "$_->[0] 204 $_->[1] - -" } [5, ENOENT], [6, ENOTDIR], [7, ELOOP], [8, ENAMETOOLONG],
	);
	for my $time (qw(first second)) {
		is_deeply [takes(map { wants($_) } @asked)], \@want, "the $time time";
	}
	is counter('given'), 8, 'descriptors given';
	is counter('errno'), 8, 'errors';
	is counter('held'), 0, 'none is held';
	ok eventually(sub { held() == 0 }), 'nor open';
	unlink "$dir/www/b";
	is_deeply [takes(wants("$dir/www/b"))], ['1 204 ' . ENOENT . ' - -'], 'gone';
	put("$dir/www/b", 'y');
	is_deeply [takes(wants("$dir/www/b"))], ['1 204 0 - -'], 'it is back, and was remembered as missing: neither';
	is $app->stop, 0, 'it ends with 0';
};

subtest 'what the rules of the accelerator refuse is asked elsewhere' => sub {
	up("--root=$dir/www");
	is_deeply [takes(map { wants($_) } map { "$dir/$_" } qw(www/escape outside www/../outside www/fifo))],
	    [map { "$_ 204 0 - -" } 1 .. 4], 'neither descriptor nor error';
	is_deeply [takes([WARM_PATH => "$dir/www/a"], [WARM_PATH => "$dir/www/a", WARM_OPEN => 0], wants('a'))],
	    [map { "$_ 204 0 - -" } 1 .. 3], 'nor without WARM_OPEN=1, nor for a relative path';
	is $app->stop, 0, 'it ends with 0';
	unlike $app->log_text, qr/descriptor/, 'its log says nothing of that';
};

subtest 'each answer has its own' => sub {
	up("--root=$dir");
	my $plain = [WARM_PATH => "$dir/www/a"];
	is_deeply [takes(wants("$dir/www/a"), $plain, wants("$dir/www/b"), wants("$dir/www/none"), $plain, wants("$dir/www/sub"))],
	    ['1 204 0 ' . file("$dir/www/a"), '2 204 0 - -', '3 204 0 ' . file("$dir/www/b"), '4 204 ' . ENOENT . ' - -',
		'5 204 0 - -', '6 204 0 ' . file("$dir/www/sub", 'rd')], 'six questions in a row';
	is $app->stop, 0, 'it ends with 0';
};

subtest 'only a unix socket, and only the own user' => sub {
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
	$app = Test::Fcgi->start({ passed => $listen }, '--mode=auth', "--root=$dir");
	is_deeply [took([], $listen->sockport, wants("$dir/www/a"), wants("$dir/www/none"))], ['1 204 0 - -', '2 204 0 - -'], 'TCP';
	is $app->stop, 0, 'it ends with 0';
	my @told = grep { /ev=descriptor\.refused/ } split /\n/, $app->log_text;
	is scalar @told, 1, 'the log says so once';
	like $told[0], qr/ do="run this program as the user of the web server's workers/, 'and what to do';

	return if $> != 0;
	up("--root=$dir");
	chmod 0755, $app->{dir};
	chmod 0666, $app->socket;
	is_deeply [took([@nobody], $app->socket, wants("$dir/www/a"), wants("$dir/www/none"))], ['1 204 0 - -', '2 204 0 - -'], 'another user';
	is_deeply [takes(wants("$dir/www/a"))], ['1 204 0 ' . file("$dir/www/a")], 'the own user beside it';
	is $app->stop, 0, 'it ends with 0';
	is scalar(() = $app->log_text =~ /ev=descriptor\.refused/g), 1, 'said once';
};

subtest 'no permission' => sub {
	my @as = $> == 0 ? '--user=nobody' : ();
	$app = Test::Fcgi->start({ own => 1 }, '--listen', 'unix:@SOCKET@', '--mode=auth', "--root=$dir", @as);
	chmod 0755, $app->{dir};
	is_deeply [took([@as ? @nobody : ()], $app->socket, wants("$dir/www/closed"), wants("$dir/www/a"))],
	    ['1 204 ' . EACCES . ' - -', '2 204 0 ' . file("$dir/www/a")], 'EACCES, and the file beside it';
	is_deeply [took([@nobody[0 .. 2], '--groups=0'], $app->socket, wants("$dir/www/closed"), wants("$dir/www/none"))],
	    ['1 204 0 - -', '2 204 ' . ENOENT . ' - -'], 'a client with more groups tries itself' if @as;
	is $app->stop, 0, 'it ends with 0';
};

my ($usable, $why) = Accel::Slowfs->usable;
unless ($usable) {
	diag "without a slow disk: $why";
	done_testing;
	exit;
}

$slow = Accel::Slowfs->start(source => "$dir/www", open_ms => 1);
$far = $slow->dir;

subtest 'a remembered file is opened for each question' => sub {
	up("--root=$far");
	$app->ask(WARM_PATH => "$far/a");
	my $opens = $slow->counts->{opens};
	$app->ask(WARM_PATH => "$far/a") for 1 .. 3;
	is $slow->counts->{opens}, $opens, 'it is remembered';
	is_deeply [takes((wants("$far/a")) x 3)], [map { "$_ 204 0 " . file("$far/a") } 1 .. 3], 'three descriptors';
	is $slow->counts->{opens} - $opens, 3, 'three opens';
	is $app->stop, 0, 'it ends with 0';
};

subtest 'a disk that hangs' => sub {
	up("--root=$far", '--deadline=500');
	$app->ask(WARM_PATH => "$far/a");
	$slow->hang;
	is_deeply [takes(wants("$far/a"), wants("$far/a", WARM_LATE => 503), wants("$far/b", WARM_LATE => 503))],
	    ['1 204 0 - -', '2 503 0 - -', '3 503 0 - -'], 'late, remembered or not: no descriptor';
	$slow->go;
	is_deeply [takes(wants("$far/a"))], ['1 204 0 ' . file("$far/a")], 'it is well again';
	ok eventually(sub { held() == 0 }), 'what was opened too late is closed';
	is $app->stop, 0, 'it ends with 0';
};

subtest 'clients that leave, and clients that do not read' => sub {
	up("--root=$far");
	$app->ask(WARM_PATH => "$far/a");
	$slow->hang;
	my @gone = map { my $c = $app->connect; $c->send(request(1, 1, @{ wants("$far/a") })); $c } 1 .. 20;
	ok $slow->wait_hanging(20), 'twenty opens hang';
	@gone = ();
	my $aborted = sub { $app->ask(SCRIPT_NAME => '/st')->{body} =~ /^accel\.requests\.aborted: 20$/m };
	ok eventually($aborted), 'their clients have left';
	$slow->go;
	is_deeply [takes(wants("$far/a"))], ['1 204 0 ' . file("$far/a")], 'the next one gets its own';
	ok eventually(sub { held() == 0 }), 'all are closed';
	my @deaf = map { my $c = $app->connect; $c->send(map { request($_, 1, @{ wants("$far/a") }) } 1 .. 2000); $c } 1 .. 5;
	ok eventually(sub { counter('held') >= 5 }), 'five clients read no answer';
	cmp_ok counter('held'), '<=', 15, 'at most three descriptors for each';
	is_deeply [takes(wants("$far/a"))], ['1 204 0 ' . file("$far/a")], 'others get theirs';
	@deaf = ();
	ok eventually(sub { held() == 0 && counter('held') == 0 }), 'all are closed when they leave';
	is $app->stop, 0, 'it ends with 0';
};

# The disk hangs as soon as the client has its descriptor.  What it reads then, or why not.
sub reads_beside ($disk, $path, $from, $bytes, @more) {
	my $fifo = "$dir/fifo-" . ++$fifos;
	POSIX::mkfifo($fifo, 0600) or die "$fifo: $!";
	my ($pid, $out) = take_fds([], $app->socket, [wants($path, @more)], $fifo, $from, $bytes);
	my $said = readline $out;
	$disk->hang;
	open my $end, '>', $fifo or die "$fifo: $!";
	close $end;
	my $read = IO::Select->new($out)->can_read(5) ? readline $out : "nothing\n";
	$disk->go;
	waitpid $pid, 0;
	chomp $said;
	chomp $read;
	return "$said, $read";
}

subtest 'an open that drops the bytes from memory' => sub {
	put("$dir/www/long", 'x' x 900_000);
	my $drops = Accel::Slowfs->start(source => "$dir/www", open_ms => 1, drop_at_open => 1);
	$far = $drops->dir;
	for my $case (["--root=$far"], ["--root=$dir", "--root=$far"], ['--root=/'], ["--root=$far", '--remember=0']) {
		up(@$case);
		for my $time (qw(first second)) {
			my $st = '1 204 0 ' . file("$far/a");
			is reads_beside($drops, "$far/a", 0, 1000), "$st, read 1000", "@$case: a file, the $time time";
			$st = '1 204 0 ' . file("$far/long");
			is reads_beside($drops, "$far/long", 0, 900_000), "$st, read 900000", '... a long one';
			is reads_beside($drops, "$far/long", 400_000, 300_000, HTTP_RANGE => 'bytes=400000-699999'), "$st, read 300000", '... a range';
			is reads_beside($drops, "$far/long", 899_000, 1000, HTTP_RANGE => 'bytes=-1000'), "$st, read 1000", '... its end';
		}
		my $reads = $drops->counts->{reads};
		is_deeply [takes(wants("$far/long", REQUEST_METHOD => 'HEAD'), wants("$far/sub"))],
		    ['1 204 0 ' . file("$far/long"), '2 204 0 ' . file("$far/sub", 'rd')], '... a head, and a directory';
		is $drops->counts->{reads}, $reads, '... read nothing';
		ok eventually(sub { held() == 0 }), '... all are closed';
		is $app->stop, 0, '... it ends with 0';
	}
};

subtest 'it hangs while they are read' => sub {
	my $drops = Accel::Slowfs->start(source => "$dir/www", drop_at_open => 1);
	$far = $drops->dir;
	up("--root=$far", '--deadline=500');
	$app->ask(WARM_PATH => "$far/long");
	$drops->hang_after($_, '/long'), is_deeply [takes(wants("$far/long", WARM_LATE => 503))], ['1 503 0 - -'], "at $_: late" for 0, 300_000;
	is_deeply [takes(wants("$far/a"))], ['1 204 0 ' . file("$far/a")], 'another file beside it';
	my $left = $app->connect;
	$left->send(request(1, 1, @{ wants("$far/long") }));
	ok $drops->wait_hanging(1), 'a client waits';
	undef $left;
	ok eventually(sub { $app->ask(SCRIPT_NAME => '/st')->{body} =~ /^accel\.requests\.aborted: 1$/m }), '... and leaves';
	$drops->go;
	is_deeply [takes(wants("$far/long"))], ['1 204 0 ' . file("$far/long")], 'it is well again';
	$drops->fail_after(300_000, 'EIO', '/long');
	is_deeply [takes(wants("$far/long"))], ['1 204 0 ' . file("$far/long")], 'a read that fails is for the client';
	$drops->go;
	ok eventually(sub { held() == 0 }), 'all are closed';
	is $app->stop, 0, 'it ends with 0';
};

done_testing;
