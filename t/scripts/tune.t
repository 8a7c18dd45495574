# accel-tune: copies of configurations, samples of files, and the program itself on a small slow disk, with few settings and little time.
use v5.36;
use FindBin ();
use lib map { "$FindBin::RealBin/../$_" } qw(lib ../scripts/lib);
use Cwd              qw(abs_path);
use File::Temp       ();
use IO::Select       ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use JSON::PP         ();
use Test::More;
use Accel::Slowfs        ();
use Accel::Tune::Config  ();
use Accel::Tune::Files   ();
use Accel::Tune::Report  ();
use Accel::Tune::Trial   ();
use Test::Util qw(eventually find_program put slurp temp_tree);

my $script = abs_path("$FindBin::RealBin/../../scripts/accel-tune");
my $dir = temp_tree();

# With these arguments: exit status, standard output, standard error.
sub tune (@args) {
	my ($out, $err) = map { File::Temp->new } 1 .. 2;
	my $rc = system 'sh', '-c', 'o=$1 e=$2; shift 2; exec "$@" </dev/null >"$o" 2>"$e"', 'sh', "$out", "$err", $^X, $script, @args;
	return ($rc & 127 ? "signal $rc" : $rc >> 8, slurp("$out"), slurp("$err"));
}

sub site ($path, $files, $bytes) {
	mkdir $path or die "$path: $!";
	put("$path/$_.bin", 'x' x $bytes) for 1 .. $files;
	return $path;
}

sub conf ($name, $text) { return put("$dir/$name.conf", $text) }

my $site = site("$dir/site", 20, 20_000);
my @quick = ('--seconds', 0.2, '--clients', 4, '--sweep', 'stat-threads', '--values', 'stat-threads=1,4');

subtest 'a copy of a configuration' => sub {
	put("$dir/threads.inc", "server.max-stat-threads = 5\n");
	my $file = conf('copied', <<~"EOT");
		server.document-root = "$site"
		server.port = 80
		server.bind = "192.0.2.1"
		server.pid-file = "$dir/pid"
		server.errorlog = "$dir/error.log"
		accesslog.filename = "$dir/access.log"
		server.max-connections-per-address = 2
		var.text = "a \\"b\\"
		server.port = 7"
		include "threads.inc"
		include_shell "echo server.max-write-threads = 3"
		server.kbytes-per-second = 100
		\$SERVER["socket"] == "192.0.2.1:81" { accesslog.filename = "$dir/other.log" server.kbytes-per-second = 0 }
		EOT
	my $config = Accel::Tune::Config->load($file);
	is $config->root, $site, 'the document root';
	is $config->now('server.max-stat-threads'), 5, 'a value of an included file';
	is $config->now('server.max-read-threads'), 3, 'a value of include_shell, under another name';
	is $config->now('server.network-backend'), 'adaptive', 'a default';
	ok !eval { $config->now('no.such'); 1 }, 'no value of what does not exist';
	is_deeply $config->bounds, { 'server.kbytes-per-second' => 100 }, 'what bounds the figures';
	my $copy = $config->copy(dir => '/tmp/a"b', settings => { 'server.max-read-threads' => 9 });
	unlike $copy, qr/^\s*(?:server\.pid-file|server\.errorlog|accesslog|server\.max-connections-per-address)/m, 'no log, no pid file, no bound by address';
	unlike $copy, qr/write-threads/, 'the other name of a setting is gone, too';
	like $copy, qr/^server\.max-read-threads = 9$/m, 'the setting that is tried';
	like $copy, qr/^server\.max-stat-threads = 5$/m, 'the others stay';
	like $copy, qr/^server\.port = env\.PORT$/m, 'another port';
	like $copy, qr/^server\.bind = "127\.0\.0\.1"$/m, '... of the loopback';
	like $copy, qr/^var\.text = "a \\"b\\"\nserver\.port = 7"$/m, 'a string with quotes and a line break stays whole';
	like $copy, qr{^\$SERVER\["socket"\] == "unix:/tmp/a\\"b/socket-0" \{}m, 'a further socket becomes a unix socket';
	ok !eval { Accel::Tune::Config->load("$dir/none.conf"); 1 }, 'no file, no copy';
	like $@, qr{none\.conf:1:1: cannot read}, '... with the words of accel-server';
};

subtest 'a sample of files' => sub {
	my $root = site("$dir/odd", 12, 2000);
	mkdir "$root/.git";
	put("$root/.git/secret", 'x');
	put("$root/$_", 'x' x 3000) for 'a b".bin', "new\nline.bin", '100%.bin';
	put("$root/empty", '');
	symlink '/etc/passwd', "$root/link";
	my @files = map { Accel::Tune::Files->walk($root, seed => $_) } 1, 1, 2;
	is $files[0]->count, 14, 'all files but the hot one; not the empty one, no link, nothing hidden';
	my @lists = map { slurp($_->list("$dir")) } @files;
	is $lists[0], $lists[1], 'the same seed gives the same order';
	isnt $lists[0], $lists[2], 'another seed another order';
	like $lists[0], qr{^/a%20b%22\.bin$}m, 'URLs are encoded';
	like $lists[0], qr{^/new%0Aline\.bin$}m, '... a line break, too';
	$files[0]->use(5);
	is slurp($files[0]->list("$dir")) =~ tr/\n//, 5, 'only some of them';
	is $files[0]->bytes, 5 * 2000 + 1000 * grep({ $_->[1] == 3000 } @{ $files[0]{files} }[0 .. 4]), '... and their bytes';
	$files[0]->make_cold;
	ok defined $files[0]{evicted}{in_memory_after}, 'they are dropped from memory';
	my $urls = put("$dir/urls.txt", join '', map { "$_\n" } (map { "/$_.bin" } 1 .. 9), 'http://example.org/10.bin?a=b', '/1.bin', '/a%20b%22.bin', '/../../etc/passwd', 'no path', '/none', '');
	is Accel::Tune::Files->listed($root, $urls)->count, 10, 'of a list the files that are there, each once';
	for (["$dir/nothing", qr/no such directory/], ["$dir/odd/.git", qr/at least 9 are needed, 1 were found/], ["$dir/urls.txt", qr/no such directory/]) {
		ok !eval { Accel::Tune::Files->walk($_->[0]); 1 }, "not $_->[0]";
		like $@, $_->[1], '... and why';
	}
	ok !eval { Accel::Tune::Files->listed($root, put("$dir/wrong.txt", "/none\n")) }, 'a list of other files';
	like $@, qr/none of its 1 lines is a file below/, '... and why';
};

subtest 'wrong options' => sub {
	my $file = conf('plain', qq{server.document-root = "$site"\n});
	for (
		[[], qr/--config FILE, or --accelerator/], [['--accelerator'], qr/needs --root/], [['-f', $file, '--time', '5x'], qr/--time: expected seconds/],
		[['-f', $file, '--time', '0'], qr/1 second to 24 hours/], [['-f', $file, '--clients', '1001'], qr/--clients: expected 1 to 1000, got "1001"/],
		[['-f', $file, '--seconds', '61'], qr/--seconds: expected 0.2 to 60/], [['-f', $file, '--objective', 'speed'], qr/--objective: expected throughput, latency or both/],
		[['-f', $file, '--sweep', 'colour'], qr/no "colour" to sweep; there are: stat-threads/], [['-f', $file, '--values', 'stat-threads=1,x'], qr/stat-threads cannot be "x"/],
		[['-f', $file, '--values', 'backend=a;b'], qr/backend cannot be "a;b"/], [['-f', $file, '--host', "a\r\nb"], qr/--host/], [['-f', $file, 'more'], qr/unexpected argument/],
	) {
		my ($rc, $out, $err) = tune(@{ $_->[0] });
		is $rc, 64, "status of @{$_->[0]}" =~ s/[\r\n]/?/gr;
		like $err, $_->[1], '... and why';
	}
	for (
		[78, qr{/none\.conf:1:1: cannot read}, '-f', '/none.conf'], [78, qr/broken\.conf:1:/, '-f', conf('broken', "server.port =\n")],
		[78, qr/server\.document-root is not set/, '-f', conf('rootless', "server.port = 81\n")],
		[66, qr/no such directory/, '-f', $file, '--root', "$dir/gone"], [66, qr/at least 9 are needed, 0 were found/, '-f', $file, '--root', abs_path(temp_tree())],
	) {
		my ($status, $why, @args) = @$_;
		my ($rc, $out, $err) = tune(@args);
		is $rc, $status, "status of @args[1 .. $#args]";
		like $err, $why, '... and why';
	}
};

sub descendants ($pid) {
	my @all = ($pid);
	for my $p (@all) { push @all, map { split ' ', slurp($_) } glob "/proc/$p/task/*/children" }
	return @all[1 .. $#all];
}

subtest 'beside the running server' => sub {
	my $busy = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
	my $port = $busy->sockport;
	my $file = conf('running', <<~"EOT");
		server.document-root = "$site"
		server.port = $port
		server.bind = "127.0.0.1"
		accesslog.filename = "$dir/running.log"
		server.pid-file = "$dir/running.pid"
		include_shell "echo 'server.max-stat-threads = 4'"
		EOT
	my ($rc, $out, $err) = tune('-f', $file, '--time', '1s', @quick);
	is $rc, 0, 'a server with that port may run' or diag $err;
	like $out, qr/sweeps\s+server\.max-stat-threads: 1, 4 \(now 4\)/, 'the plan comes first';
	like $out, qr/^\d+ measurements in \d+ s; one measurement is \d+ % off\.$/m, 'the result says how many measurements there were';
	like $out, qr/^  server\.max-stat-threads: (?:4 stays|1 instead of 4|4;)/m, 'a sentence for the setting';
	like $out, qr/^  MB\/s +p99 ms +rounds +gain +stat-threads$/m, 'and the evidence';
	ok !-e "$dir/running.log" && !-e "$dir/running.pid", 'log and pid file are not touched';
	ok !IO::Select->new($busy)->can_read(0), 'nobody has asked at the port of the running server';
	($rc, $out) = tune('-f', $file, '--plan');
	is $rc, 0, '--plan';
	unlike $out, qr/measurements in/, '... measures nothing';
};

# Applications of the running server: sockets, processes and scripts.
subtest 'applications of the running server' => sub {
	my $root = site("$dir/programs", 12, 2000);
	put("$root/$_", "#!/bin/sh\necho ran >>$dir/ran\n") for 'a.cgi', 'b.PHP', 'c.txt';
	chmod 0755, "$root/a.cgi";
	my $start = put("$dir/app", "#!/bin/sh\necho ran >>$dir/ran\nexec sleep 60\n");
	chmod 0755, $start;
	my $app = IO::Socket::UNIX->new(Local => "$dir/app.sock-0", Listen => 5) or die "listen: $!";
	my $inode = (stat "$dir/app.sock-0")[1];
	my $asked = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die "listen: $!";
	my $file = conf('programs', <<~"EOT");
		server.document-root = "$root"
		fastcgi.server = ( ".php" => (( "bin-path" => "$start", "socket" => "$dir/app.sock", "max-procs" => 1 )) )
		cgi.assign = ( ".cgi" => "", "a => \\"b" => "/bin/sh" )
		\$HTTP["url"] =~ "^/c" {
			proxy-core.protocol = "http"
			proxy-core.backends = ( "127.0.0.1:@{[$asked->sockport]}", "[::1]:1" )
			proxy-core.weights = ( "2", "1" )
			proxy-core.check-url = "/ping"
		}
		include_shell "echo >>$dir/shell"
		EOT
	my $config = Accel::Tune::Config->load($file);
	is_deeply [$config->endings], ['.cgi', '.php', 'a => "b'], 'their endings';
	my $copy = $config->copy(dir => '/d', settings => {});
	like $copy, qr{^\tproxy-core\.backends = \( "unix:/d/none-0", "unix:/d/none-1" \)$}m, 'a block keeps its backends, which nobody has';
	like $copy, qr{^cgi\.assign = \( "\.cgi" => "/bin/false", "a => \\"b" => "/bin/false" \)$}m, 'and its programs';
	unlike $copy, qr/spawn|check-url|app\.sock|"127\.0\.0\.1:/, 'nothing names the applications';
	put("$dir/shell", '');
	my ($rc, $out, $err) = tune('-f', $file, '--time', '1s', @quick);
	is $rc, 0, 'the other files are measured' or diag $out, $err;
	ok !-e "$dir/ran", 'no program was started';
	is((stat "$dir/app.sock-0")[1], $inode, 'the socket of an application is the same');
	ok !IO::Select->new($app, $asked)->can_read(0), '... and nobody has asked there';
	is slurp("$dir/shell"), "\n", 'include_shell ran once';
	my $files = Accel::Tune::Files->walk($root, skip => [$config->endings]);
	is $files->count + 1, 13, 'files of programs are not asked for';
};

subtest 'a setting that does not start' => sub {
	my $file = conf('backend', qq{server.document-root = "$site"\n});
	my ($rc, $out, $err) = tune('-f', $file, '--full', '--rounds', 1, '--json', @quick[0 .. 3], '--sweep', 'backend', '--values', 'backend=adaptive,nope');
	is $rc, 0, 'the others are measured' or diag $err;
	my $found = JSON::PP::decode_json($out);
	is $found->{advice}{backend}, 'adaptive', 'one that works is named';
	is $found->{failed}[0]{setting}{backend}, 'nope', 'the other is listed';
	like $found->{failed}[0]{why}, qr/nope/, '... with the words of the server';
	is scalar @{ $found->{failed} }, 1, '... and was tried once';
	my $wrong = conf('refuses', qq{server.document-root = "$site"\nurl.access-deny = ( ".bin" )\n});
	($rc, $out) = tune('-f', $wrong, '--time', '1s', @quick);
	is $rc, 69, 'a server that does not answer the files cannot be measured';
	like $out, qr/Left out: .*hot file .* is not served/, '... and why';
};

subtest 'Ctrl-C' => sub {
	my $file = conf('stopped', qq{server.document-root = "$site"\n});
	my $out = File::Temp->new;
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDOUT, '>', "$out";
		exec $^X, $script, '-f', $file, '--time', '10m', @quick, '--seconds', '60', '--json' or POSIX::_exit(127);
	}
	my @seen;
	ok eventually(sub { @seen = descendants($pid); (grep { slurp("/proc/$_/comm") =~ /^accel-load/ } @seen) >= 2 }), 'a measurement runs';
	kill INT => $pid;
	waitpid $pid, 0;
	is $? >> 8, 130, 'it ends, and says so';
	ok eventually(sub { !grep { kill 0 => $_ } @seen }), 'nothing is left running';
	my $found = eval { JSON::PP::decode_json(slurp("$out")) };
	ok $found && $found->{interrupted}, 'what is known is printed';
	is_deeply $found->{lines}, [], '... and nothing is advised that was not checked';
};

subtest 'a user who may not read the files' => sub {
	plan skip_all => 'only root can become another user' if $> != 0;
	my $closed = temp_tree();
	site("$closed/site", 10, 100);
	chmod 0700, "$closed/site";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		POSIX::setuid(65_534);
		POSIX::_exit(!eval { Accel::Tune::Files->walk("$closed/site"); 1 } && $@ =~ /no such directory|may not be read/ ? 0 : 1);
	}
	waitpid $pid, 0;
	is $?, 0, 'gets the reason';
};

subtest 'two slow disks' => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	my $slow = Accel::Slowfs->start(source => site("$dir/slow", 40, 100_000), spindles => 2, lookup_ms => 0, read_ms => 8);
	my $file = conf('slow', qq{server.document-root = "@{[$slow->dir]}"\nserver.max-stat-threads = 1\n});
	my ($rc, $out, $err) = tune('-f', $file, '--full', '--rounds', 1, '--json', '--objective', 'throughput', @quick, '--clients', '16');
	is $rc, 0, 'they are measured' or diag $err;
	my $found = JSON::PP::decode_json($out);
	is $found->{hot}, (grep { $found->{hot} eq "/$_.bin" } 1 .. 40) ? $found->{hot} : '', 'one of the files is hot';
	my %mb = map { $_->{setting}{'stat-threads'} => $_->{throughput} } @{ $found->{candidates} };
	ok $mb{1} && $mb{4}, 'both values have figures' or diag $out;
	is_deeply [grep { !/^server\.max-stat-threads = 4$/ } @{ $found->{lines} }], [], 'no line but the one for four threads';
	is $found->{interrupted}, JSON::PP::false(), 'it came to its end';
};

subtest 'the accelerator in front of nginx' => sub {
	plan skip_all => 'nginx is not installed' unless find_program('nginx');
	my ($rc, $out, $err) = tune('--accelerator', '--root', $site, '--full', '--rounds', 1, @quick[0 .. 3], '--values', 'threads=2,20', '--values', 'warm=read:16m');
	is $rc, 0, 'is measured' or diag $err;
	like $out, qr/^  --threads: (?:20 stays|2 instead of 20): /m, 'a sentence for the option';
	unlike $out, qr/--warm: /, 'none for the one with one value';
};

done_testing;
