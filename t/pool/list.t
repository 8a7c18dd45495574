# accel-pool list prints URLs of the files of a tree, under any name, and of the requests of an access log.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Pool;

sub lines ($text) { return [split /\n/, $text] }

subtest 'a tree' => sub {
	my $dir = temp_tree();
	numbers('make', '--force', '-s', '2x2x1k', '-s', '1x1x8k', "$dir");
	put("$dir/$_", 'x' x 100) for 'a b', "new\nline", '50%#?', "\xc3\xa4\xff", '-dash', 'q"\'';
	symlink '/etc/passwd', "$dir/link" or die $!;
	my @pool = map { "/1k/$_.bin" } qw(0000/0000 0000/0001 0001/0000 0001/0001);
	my @all = sort @pool, '/8k/0000/0000.bin', '/a%20b', '/new%0Aline', '/50%25%23%3F', '/%C3%A4%FF', '/-dash', "/q%22'";
	my ($rc, $out, $err) = pool('list', "$dir");
	is "$rc$err", '0', 'is listed';
	is_deeply lines($out), \@all, '... sorted and encoded, without links and the marker';
	is_deeply lines((pool('list', '--base', 'http://[::1]:81', '--prefix', '/img/', '--include', '0001.bin', "$dir"))[1]),
	    ['http://[::1]:81/img/1k/0000/0001.bin', 'http://[::1]:81/img/1k/0001/0001.bin'], '--base, --prefix and --include';
	is_deeply lines((pool('list', '--min', '1k', '--max', '1k', "$dir"))[1]), \@pool, '--min and --max';
	is_deeply lines((pool('list', '--exclude', '8k', '--min', '101', "$dir"))[1]), \@pool, '--exclude';
	is_deeply lines((pool('list', '--limit', '2', "$dir"))[1]), [@all[0, 1]], '--limit';
	my $shuffled = (pool('list', '--shuffle', "$dir"))[1];
	is_deeply [sort @{ lines($shuffled) }], \@all, '--shuffle has all files';
	isnt $shuffled, $out, '... in another order';
	is +(pool('list', '--shuffle', '--seed', 1, '-j3', "$dir"))[1], $shuffled, '... which is the same each time';
	isnt +(pool('list', '--shuffle', '--seed', 2, "$dir"))[1], $shuffled, '... and another one with another seed';
	is +(pool('list', '--min', '1g', "$dir"))[0], 66, 'no file';
	is +(pool('list', '--unique', "$dir/1k", "$dir/1k"))[1], (pool('list', "$dir/1k"))[1], '--unique over two trees';
};

my $log = <<'END';
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET /a.jpg HTTP/1.1" 200 5120
192.0.2.1 - kim [23/Nov/2026:06:00:00 +0000] "GET /b%20c?d=e%2f HTTP/1.1" 206 5 "http://h/" "curl/8 \"x\""
example.org 192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET /a.jpg HTTP/1.0" 200 5120 "-" "-"
2001:db8::1 - od"d [23/Nov/2026:06:00:00 +0000] "GET /q\x22\"%zz HTTP/2.0" 200 1 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET http://h:8080/abs HTTP/1.1" 200 1 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET /two words HTTP/1.1" 200 1 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "HEAD /head HTTP/1.1" 200 0 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "POST /post HTTP/1.1" 200 0 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET /gone HTTP/1.1" 404 0 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET /same HTTP/1.1" 304 0 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "-" 400 0 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "\x16\x03\x01\x00" 400 0 "-" "-"
192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] "GET /cut
garbage

END

subtest 'a log' => sub {
	my @all = ('/a.jpg', '/b%20c?d=e%2F', '/a.jpg', '/q%22%22%25zz', '/abs', '/two%20words');
	my ($rc, $out, $err) = run_with($log, 'list', '--log', '-');
	is $rc, 0, 'is read';
	is_deeply lines($out), \@all, '... GET with 200 and 206, in its order, encoded';
	is $err, "accel-pool: 6 URLs of 15 lines; 6 other requests, 0 too long, 2 lines that are not of an access log\n", '... and what is left out is counted';
	($rc, $out, $err) = run_with($log, 'list', '-q', '--log', '-', '--unique');
	is "$err", '', '--quiet';
	is_deeply lines($out), [@all[0, 1, 3, 4, 5]], '--unique';
	is +(run_with($log, 'list', '-q', '--log', '-', '--status', '304,404'))[1], "/gone\n/same\n", '--status';
	is +(run_with($log, 'list', '-q', '--log', '-', '--limit', 2, '--base', 'http://h'))[1], "http://h/a.jpg\nhttp://h/b%20c?d=e%2F\n",
	    '--limit and --base';
	is_deeply [sort @{ lines((run_with($log, 'list', '-q', '--log', '-', '--shuffle'))[1]) }], [sort @all], '--shuffle';
	my $dir = temp_tree();
	put("$dir/log", $log);
	is_deeply lines((pool('list', '-q', '--log', "$dir/log"))[1]), \@all, 'from a file';
	is_deeply lines(scalar qx{gzip -c "$dir/log" | gzip -dc | $program list -q --log -}), \@all, 'and from a pipe';
	is +(pool('list', '--log', "$dir/none"))[0], 66, 'no such log';
	is +(run_with("\n", 'list', '--log', '-'))[0], 65, 'a log without requests';
};

subtest 'a hostile log' => sub {
	my $long = '1 - - [x] "GET /' . 'a' x 9000 . ' HTTP/1.1" 200 1';
	my $longer = '1 - - [x] "GET /' . 'b' x 200_000 . ' HTTP/1.1" 200 1';
	my ($rc, $out, $err) = run_with("$long\n$longer\n\0\xff\n" . '1 - - [x] "GET /../%00\x00\\' . "\n" . '1 - - [x] "GET /\x0a\n\x7f" 200 1' . "\n",
	    'list', '--log', '-');
	is $out, "/%0A%0A%7F\n", 'one URL a line, whatever is in it';
	is $err, "accel-pool: 1 URLs of 5 lines; 0 other requests, 1 too long, 3 lines that are not of an access log\n", 'bounds';
	is $rc, 0, 'status';
};

subtest 'many names' => sub {
	plan skip_all => 'a sanitizer needs more memory' if Test::Util::sanitized();
	my $dir = temp_tree();
	open my $fh, '>', "$dir/log" or die $!;
	printf $fh "1 - - [x] \"GET /%08d HTTP/1.1\" 200 1\n", $_ * 7919 % 200_000 for 1 .. 200_000;
	close $fh or die $!;
	my $sum = 0;
	open my $run, '-|', 'sh', '-c', 'ulimit -v 300000; exec "$@"', 'sh', $program, qw(list -q --shuffle --unique --log), "$dir/log" or die $!;
	$sum += substr $_, 1 while <$run>;
	close $run;
	is $sum, 200_000 * 199_999 / 2, '200,000 URLs, each once, in 300 MB of addresses';
};

subtest 'the command line' => sub {
	my $dir = temp_tree();
	is +(pool('list'))[0], 64, 'neither directory nor log';
	is +(pool('list', '--log', "$dir/x", "$dir"))[0], 64, 'both';
	is +(pool('list', '--log', "$dir/x", '--min', 1))[0], 64, 'sizes of a log';
	is +(pool('list', '--prefix', 'img', "$dir"))[0], 64, 'a prefix without slashes';
	is +(pool('list', '--base', 'h:80', "$dir"))[0], 64, 'a base that is not a URL';
	my ($rc, $out, $err) = pool('list', "$dir/none");
	is $rc, 1, 'no such directory';
	like $err, qr/^accel-pool: ".*\/none": No such file or directory$/m, '... is named';
	SKIP: {
		skip 'no /dev/full', 1 if !-e '/dev/full';
		put("$dir/f", 'x');
		is system("$program list $dir >/dev/full 2>/dev/null") >> 8, 74, 'output that cannot be written';
	}
};

done_testing;
