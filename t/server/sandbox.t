#!/usr/bin/perl
# The sandbox of a running program: its threads as the kernel reports them, --user, and unreachable paths.
# t/unit/io/sandbox_calls.c has each system call, t/unit/io/sandbox.c each kind of path.

use v5.36;
use Test::More;
use Cwd qw(abs_path);
use FindBin ();
use Test::Fcgi qw(put temp_tree eventually);
use Test::Server;
use Test::Util qw(slurp);

my $abi = syscall 444, 0, 0, 1;    # landlock_create_ruleset; asks for the version only
my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www log run);
put("$dir/www/file", 'x' x 1000);

# One field of /proc/PID/status, of each thread: { value => number of threads }.
sub field {
	my ($pid, $name) = @_;
	my %seen;
	for my $file (glob "/proc/$pid/task/*/status") {
		$seen{$1}++ if slurp($file) =~ /^\Q$name\E:\s*(.*?)\s*$/m;
	}
	return \%seen;
}

subtest 'fcgi-stat-accel: every thread is confined' => sub {
	my $app = Test::Fcgi->start({ own => 1 }, '--listen=unix:@SOCKET@', "--root=$dir/www", '--threads=4');
	is $app->get("$dir/www/file")->{status}, 200, 'it serves';
	is_deeply [keys %{ field($app->{pid}, 'Seccomp') }], [2], 'each thread has a filter';
	is_deeply [keys %{ field($app->{pid}, 'NoNewPrivs') }], [1], 'no thread can gain privileges';
	is $app->stop, 0, 'it ends with 0';
	$app = Test::Fcgi->start({ own => 1 }, '--listen=unix:@SOCKET@');
	is_deeply [keys %{ field($app->{pid}, 'Seccomp') }], [2], 'without --root, too';
	$app = Test::Fcgi->start({ own => 1 }, '--listen=unix:@SOCKET@', "--root=$dir/www", '--no-sandbox');
	is_deeply [keys %{ field($app->{pid}, 'Seccomp') }], [0], 'with --no-sandbox it has none';
};

# The kernel's answer to one call, made by strace, under which no leaks can be looked for.
sub injected { return ['env', 'ASAN_OPTIONS=' . join(':', $ENV{ASAN_OPTIONS} // (), 'detect_leaks=0'), 'strace', '-f', '-qq', '-o', '/dev/null', '-e', "inject=$_[0]"] }

subtest 'fcgi-stat-accel: a sandbox that fails stops the start' => sub {
	plan skip_all => 'this kernel has no Landlock' if $abi < 1;
	plan skip_all => 'no strace' unless grep { -x "$_/strace" } split /:/, $ENV{PATH};
	my @options = ('--listen=unix:@SOCKET@', "--root=$dir/www", "--log=$dir/log/injected");
	for my $call (qw(landlock_add_rule landlock_restrict_self seccomp)) {
		my $app = Test::Fcgi->start({ own => 1, nowait => 1, under => injected("$call:error=EPERM") }, @options);
		ok eventually(sub { defined $app->ended }), "$call: it ends";
		is $app->ended >> 8, 71, 'with an error of the system';
		like $app->log_text, qr/^fcgi-stat-accel: cannot enter the sandbox: (?:Landlock|seccomp): .*\n--no-sandbox starts without it$/m,
		    'the message says what to do';
	}
	my $app = Test::Fcgi->start({ own => 1, under => injected('landlock_create_ruleset:error=ENOSYS') }, @options);
	is $app->get("$dir/www/file")->{status}, 200, 'a kernel without Landlock: it serves';
	my $warnings = sub { scalar(() = slurp("$dir/log/injected") =~ /level=warn ev=sandbox\.partial names="this kernel has no Landlock"/g) };
	ok eventually(sub { $warnings->() > 0 }), 'with a warning';
	is $warnings->(), 1, '... one';
	kill 'TERM', slurp("/proc/$app->{pid}/task/$app->{pid}/children") =~ /(\d+)/;
	ok eventually(sub { defined $app->ended }), 'and ends';
};

subtest 'fcgi-stat-accel --user drops root' => sub {
	plan skip_all => 'only root can become another user' if $> != 0;
	my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
	chown $uid, $gid, "$dir/log";
	my $socket = "$dir/run/socket";
	my $app = Test::Fcgi->start({ own => 1, socket => $socket }, '--listen=unix:@SOCKET@', "--root=$dir/www", "--log=$dir/log/log",
	    '--user=nobody');
	is_deeply [keys %{ field($app->{pid}, 'Uid') }], [join "\t", ($uid) x 4], 'no thread is root';
	is_deeply [keys %{ field($app->{pid}, 'Gid') }], [join "\t", ($gid) x 4], 'nor of its group';
	is_deeply [keys %{ field($app->{pid}, 'CapEff') }], ['0' x 16], 'nor has a capability';
	is_deeply [(stat $socket)[4, 5]], [$uid, $gid], 'the socket is that of the user';
	is $app->get("$dir/www/file")->{status}, 200, 'it serves';
	rename "$dir/log/log", "$dir/log/log.1";
	kill 'HUP', $app->{pid};
	ok eventually(sub { slurp("$dir/log/log") =~ /ev=log\.reopen/ || -e "$dir/log/log" }), 'HUP opens a new log';
	is $app->stop, 0, 'it ends with 0';
	ok eventually(sub { !-e $socket }), 'and its socket goes, from a directory of root';

	$app = Test::Fcgi->start({ own => 1, socket => $socket }, '--listen=unix:@SOCKET@', "--root=$dir/www", '--user=nobody');
	kill 'KILL', $app->{pid};
	Test::Fcgi::finish($app->{pid});
	$app->{status} = 0;
	ok eventually(sub { !-e $socket }), 'the socket goes after a KILL, too';

	$app = Test::Fcgi->start({ own => 1, nowait => 1 }, '--listen=unix:@SOCKET@', '--user=no-such-user');
	ok eventually(sub { defined $app->ended }), 'an unknown user';
	is $app->ended >> 8, 67, 'is refused';
	like $app->log_text, qr/--user: expected NAME\[:GROUP\] of an existing user and group, got "no-such-user"/, 'by name';
};

# ---------------------------------------------------------------- accel-server

sub error_log { my ($srv) = @_; return slurp($srv->run . '/error.log') }

subtest 'accel-server: every thread is confined' => sub {
	my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access.log"\n});
	$srv->write('file', "hi\n");
	like $srv->get('/file'), qr/^HTTP\S+ 200 .*hi\n\z/s, 'it serves';
	is_deeply [keys %{ field($srv->pid, 'Seccomp') }], [2], 'each thread has a filter, those of its logs too';
	is_deeply [keys %{ field($srv->pid, 'NoNewPrivs') }], [1], 'no thread can gain privileges';
	like error_log($srv), qr/level=info ev=sandbox\.entered names=landlock abi=$abi calls=seccomp/, 'the error log says so' if $abi > 0;
	$srv = Test::Server->start(conf => qq{server.sandbox = "disable"\n});
	$srv->write('file', "hi\n");
	like $srv->get('/file'), qr/^HTTP\S+ 200 /, 'without';
	is_deeply [keys %{ field($srv->pid, 'Seccomp') }], [0], 'it has none';
};

subtest 'accel-server: many sites fit into the sandbox' => sub {
	my @conf = map { qq{\$HTTP["host"] == "h$_" { server.tag = "h$_" }} } 1 .. 300;
	my $srv = Test::Server->start(conf => join "\n", @conf, '');
	$srv->write('file', "hi\n");
	like $srv->get('/file'), qr/^HTTP\S+ 200 /, '300 conditions with one document root';
	mkdir "$dir/sites";
	for (1 .. 300) {
		mkdir "$dir/sites/$_" or die $!;
		put("$dir/sites/$_/file", "site $_\n");
	}
	@conf = map { qq{\$HTTP["host"] == "h$_" { server.document-root = "$dir/sites/$_" }} } 1 .. 300;
	$srv = Test::Server->start(conf => join "\n", @conf, '');
	$srv->write('file', "hi\n");
	is $srv->fetch('/file', Host => "h$_")->{body}, "site $_\n", "document root $_ of 300" for 1, 300;
	reload($srv, slurp($srv->run . '/server.conf'), qr/ev=reloaded/);
};

# Puts a configuration in place of the running one, and waits for what the error log says of it.
sub reload {
	my ($srv, $conf, $line) = @_;
	put($srv->run . '/server.conf', $conf);
	kill 'USR1', $srv->pid;
	ok eventually(sub { error_log($srv) =~ $line }), "reload: $line" or diag error_log($srv);
}

subtest 'accel-server: a reload out of reach is refused as a whole' => sub {
	plan skip_all => 'this kernel has no Landlock' if $abi < 1;
	mkdir "$dir/$_" for qw(roots roots/a roots/b far);
	put("$dir/roots/$_/file", "$_\n") for qw(a b);
	put("$dir/far/file", "far\n");
	my $conf = qq{server.document-root = "$dir/roots/a"\nserver.errorlog = "\@RUN\@/error.log"\nserver.sandbox-paths = ( "$dir/roots" )\n};
	my $srv = Test::Server->start(dir => "$dir/roots/a", conf => $conf);
	like $srv->get('/file'), qr/\r\n\r\na\n\z/, 'the first root';
	my $was = slurp($srv->run . '/server.conf');

	reload($srv, $was =~ s{roots/a"}{far"}r, qr/ev=reload\.refused what="server\.document-root \S+\Q$dir\E\/far\S+ .*server\.sandbox-paths/);
	like $srv->get('/file'), qr/\r\n\r\na\n\z/, 'the old configuration goes on';
	reload($srv, $was . qq{server.errorfile-prefix = "$dir/far/page-"\n}, qr/ev=reload\.refused what="server\.errorfile-prefix/);
	reload($srv, $was . qq{\$HTTP["host"] == "x" { server.document-root = "$dir/far" }\n}, qr/(?:ev=reload\.refused.*){3}/s);
	reload($srv, $was . qq{proxy-core.allow-x-sendfile = "enable"\nproxy-core.x-sendfile-tempdir = ( "$dir/roots/b" )\n},
		qr/ev=reload\.refused what="proxy-core\.x-sendfile-tempdir \S+\/roots\/b\S+ .*may not remove files/);
	like $srv->get('/file'), qr/\r\n\r\na\n\z/, 'still';

	reload($srv, $was =~ s{roots/a"}{roots/b"}r, qr/ev=reloaded/);
	ok eventually(sub { $srv->get('/file') =~ /\r\n\r\nb\n\z/ }), 'a root below server.sandbox-paths is served';
	rename "$dir/roots/b", "$dir/roots/was" or die $!;
	rename "$dir/roots/a", "$dir/roots/b" or die $!;
	reload($srv, $was =~ s{roots/a"}{roots/b"}r, qr/(?:ev=reloaded.*){2}/s);
	ok eventually(sub { $srv->get('/file') =~ /\r\n\r\na\n\z/ }), 'and so is a directory that was put in its place';

	$srv = Test::Server->start(dir => "$dir/roots/b", conf => qq{server.document-root = "$dir/roots/b"\nserver.errorlog = "\@RUN\@/error.log"\n});
	like $srv->get('/file'), qr/\r\n\r\na\n\z/, 'without server.sandbox-paths';
	$was = slurp($srv->run . '/server.conf');
	rename "$dir/roots/b", "$dir/roots/a" or die $!;
	rename "$dir/roots/was", "$dir/roots/b" or die $!;
	reload($srv, $was, qr/ev=reload\.refused what="server\.document-root/);
	like $srv->get('/file'), qr/\r\n\r\na\n\z/, 'a directory that was put in its place is refused, and the old one is served on';
};

subtest 'accel-server: a sandbox that fails stops the start' => sub {
	plan skip_all => 'this kernel has no Landlock' if $abi < 1;
	plan skip_all => 'no strace' unless grep { -x "$_/strace" } split /:/, $ENV{PATH};
	for my $call (qw(landlock_add_rule landlock_restrict_self seccomp)) {
		my $srv = Test::Server->start(under => injected("$call:error=EPERM"), unchecked => 1);
		ok eventually(sub { waitpid($srv->pid, 1) == $srv->pid }), "$call: it ends";
		is $? >> 8, 78, 'as for a wrong configuration';
		like error_log($srv), qr/level=error ev=sandbox\.failed why=.* do=".*server\.sandbox = \S+disable/, 'the log says what to do';
	}
	my $srv = Test::Server->start(conf => qq{server.sandbox-paths = ( "/nonexistent" )\n}, unchecked => 1);
	ok eventually(sub { waitpid($srv->pid, 1) == $srv->pid }), 'a path that is not there: it ends';
	like error_log($srv), qr{ev=sandbox\.failed why="Landlock: /nonexistent: No such file or directory"}, 'the log names it';
};

subtest 'accel-server: a directory that is missing is an error of its directive, not of the sandbox' => sub {
	my $proxy = qq{proxy-core.protocol = "http"\nproxy-core.backends = ( "127.0.0.1:1" )\nproxy-core.allow-x-sendfile = "enable"\n};
	my %missing = (
		'server.document-root' => '"/nonexistent"', 'server.upload-dirs' => '( "/nonexistent" )',
		'proxy-core.x-sendfile-docroot' => '( "/nonexistent" )', 'proxy-core.x-sendfile-tempdir' => '( "/nonexistent" )',
	);
	for my $name (sort keys %missing) {
		my $srv = Test::Server->start(conf => "$name = $missing{$name}\n$proxy", unchecked => 1);
		is $srv->wait_exit >> 8, 78, "$name: it ends as for a wrong configuration";
		like error_log($srv), qr{ev=config\.unusable why="\S+:\d+:\d+: \Q$name\E: \S+/nonexistent\S*: No such file or directory"}, 'the log names it';
	}
};

# The descriptors of a process above 2, and which of them a program that it starts would inherit.
sub descriptors {
	my ($pid) = @_;
	my (@all, @inherited);
	for my $fd (grep { $_ > 2 } map { m{/(\d+)\z} } glob "/proc/$pid/fdinfo/*") {
		open my $info, '<', "/proc/$pid/fdinfo/$fd" or next;    # it may be closed by now
		my ($flags) = join('', <$info>) =~ /^flags:\s*([0-7]+)/m or next;
		push @all, "$fd: " . (readlink "/proc/$pid/fd/$fd" // '');
		push @inherited, $all[-1] if !(oct($flags) & 02000000);
	}
	return (\@all, \@inherited);
}

subtest 'a program that a server starts would inherit none of its descriptors' => sub {
	my $srv = Test::Server->start(conf => qq{accesslog.filename = "\@RUN\@/access"\nserver.pid-file = "\@RUN\@/pid"\n}, env => { NOTIFY_SOCKET => "$dir/run/notify" });
	put($srv->dir . '/file', 'x');
	is $srv->fetch('/file')->{status}, 200, 'it serves';
	my ($all, $inherited) = descriptors($srv->pid);
	cmp_ok @$all, '>', 5, 'it has descriptors';
	my %from_outside = map { $_ => 1 } @{ (descriptors($$))[1] };
	is_deeply [grep { !$from_outside{$_} } @$inherited], [], 'all are close-on-exec';
};

done_testing;
