#!/usr/bin/perl
# The files of examples/systemd/ and examples/apparmor/ without a running systemd: they are valid, they leave few rights, and the
# programs run under the system calls that the units allow.

use v5.36;
use Cwd ();
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Fcgi;
use Test::Server;
use Test::UnitFilter;
use Test::Util qw(eventually find_program need_program put slurp temp_tree);

my $examples = Cwd::abs_path("$FindBin::Bin/../../examples");
my $bin = Cwd::abs_path(Test::Util::build_dir() . '/bin');
my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www units);
put("$dir/www/file", 'x' x 1000);
put("$dir/units/$_", slurp("$examples/systemd/$_") =~ s{/usr/local/bin}{$bin}gr)
    for map { m{([^/]+)\z} } glob "$examples/systemd/*.{service,socket,timer}";

# What systemd-analyze says about a unit; undef: it does not work here.
sub analyze ($verb, @options) {
	my $said = qx{cd $dir/units && SYSTEMD_LOG_LEVEL=warning systemd-analyze $verb --no-pager @options 2>&1};
	return $said =~ /Failed to (?:initialize|connect|create|allocate|setup)/i ? undef : $said;
}

subtest 'systemd accepts the units' => sub {
	plan skip_all => 'no systemd-analyze' if !find_program('systemd-analyze');
	for my $unit (map { m{([^/]+)\z} } glob "$dir/units/*") {
		my $said = analyze('verify', '--man=no', "./$unit") // plan skip_all => 'systemd-analyze does not work here';
		is join("\n", grep {/\Q$unit\E/} split /\n/, $said), '', $unit;
	}
};

# The scale ends at 10.  The packaged units of nginx and lighttpd have 9.6.
my %exposure = ('accel-server' => 2.2, 'fcgi-stat-accel' => 1.1);

subtest 'few rights' => sub {
	plan skip_all => 'no systemd-analyze' if !find_program('systemd-analyze');
	for my $unit (sort keys %exposure) {
		my $said = analyze('security', '--offline=true', "./$unit.service") // plan skip_all => 'systemd-analyze does not work here';
		my ($score) = $said =~ /Overall exposure level for \S+: (\S+)/ or return fail "a score: $said";
		cmp_ok $score, '<=', $exposure{$unit}, "$unit: $score";
	}
};

subtest 'the server may lock its memory' => sub {
	plan skip_all => 'no systemd-analyze' if !find_program('systemd-analyze');
	like slurp("$examples/systemd/accel-server.service"), qr/^LimitMEMLOCK=infinity$/m, 'as much as it has';
	my %may = map { $_ => 1 } Test::UnitFilter::calls('accel-server');
	is_deeply [grep { !$may{$_} } qw(mlock mlock2 mlockall setrlimit prlimit64)], [], 'with the calls that it uses';
};

subtest 'every file that a unit names has its other half' => sub {
	for my $unit (qw(accel-server fcgi-stat-accel)) {
		my $text = slurp("$examples/systemd/$unit.service");
		my $made = slurp("$examples/systemd/$unit.tmpfiles");
		for my $path ($text =~ m{^ReadWritePaths=-?(\S+)}mg) { like $made, qr/^d \Q$path\E /m, "$unit: $path" }
		like $text, qr/^User=www-data$/m, "$unit: the user of web servers";
		like slurp("$examples/systemd/$unit.logrotate"), qr/\Q$unit\E\.service/, "$unit: logrotate names it";
		unlike $text, qr/^(?:RestrictSUIDSGID=|RemoveIPC=)/m, "$unit: neither openat2() nor the memory of others is taken away";
	}
};

subtest 'logrotate accepts its files' => sub {
	my $logrotate = find_program('logrotate') or plan skip_all => 'no logrotate';
	for my $file (glob "$examples/systemd/*.logrotate") {
		put("$dir/rotate", slurp($file));
		chmod 0644, "$dir/rotate";
		my $said = qx{$logrotate --debug --state=$dir/state $dir/rotate 2>&1};
		unlike $said, qr/^error:|unknown option|skipping\.\.\./m, $file =~ s{.*/}{}r;
	}
};

# The commands after postrotate, with these paths for those of an installation.
sub postrotate ($unit, %is) {
	my ($script) = slurp("$examples/systemd/$unit.logrotate") =~ /^\tpostrotate\n(.*?)^\tendscript/ms;
	$script =~ s/\Q$_\E/$is{$_}/g for keys %is;
	put("$dir/postrotate", $script);
	return system('sh', '-eu', "$dir/postrotate");
}

subtest 'without systemd, logs are reopened after a rotation' => sub {
	my @none = ('/run/systemd/system' => "$dir/no-systemd");
	my $srv = Test::Server->start(conf => qq{server.pid-file = "\@RUN\@/pid"\n});
	my $log = $srv->run . '/error.log';
	rename $log, "$log.1";
	is postrotate('accel-server', @none, '/run/stat-accel/accel-server.pid' => $srv->run . '/pid'), 0, 'accel-server: the commands work';
	ok eventually(sub { -e $log }), '... and it opens its log again';
	$srv->stop;
	is postrotate('accel-server', @none, '/run/stat-accel/accel-server.pid' => "$dir/no-pid"), 0, 'no server: nothing to do';

	# start-stop-daemon finds processes by their program: a copy is that of this test alone.
	need_program('start-stop-daemon', 'dpkg');
	system('cp', "$bin/fcgi-stat-accel", "$dir/accelerator") == 0 or die 'cp';
	my $app = Test::Fcgi->start({ program => "$dir/accelerator" }, "--root=$dir/www", "--log=$dir/rotated");
	ok eventually(sub { -s "$dir/rotated" }), 'fcgi-stat-accel logs';
	rename "$dir/rotated", "$dir/rotated.1";
	is postrotate('fcgi-stat-accel', @none, '/usr/local/bin/fcgi-stat-accel' => "$dir/accelerator"), 0, 'fcgi-stat-accel: the commands work';
	ok eventually(sub { -e "$dir/rotated" }), '... and it opens its log again';
	$app->stop;
	is postrotate('fcgi-stat-accel', @none, '/usr/local/bin/fcgi-stat-accel' => "$dir/accelerator"), 0, 'no accelerator: nothing to do';
};

subtest 'without systemd-tmpfiles, the packages make the directories' => sub {
	plan skip_all => 'only root can give directories away' if $> != 0;
	for my $r (['stat-accel-server', 'accel-server'], ['fcgi-stat-accel', 'fcgi-stat-accel']) {
		my ($package, $unit) = @$r;
		my ($script) = slurp("$examples/../debian/$package.postinst") =~ /^(.*?)^#DEBHELPER#/ms or return fail "$package has a postinst";
		my $made = slurp("$examples/systemd/$unit.tmpfiles") =~ s{^d /}{d $dir/$unit/}mgr;
		put("$dir/tmpfiles", $made);
		put("$dir/postinst", $script =~ s{/usr/lib/tmpfiles\.d/\Q$unit\E\.conf}{$dir/tmpfiles}r);
		is system('sh', "$dir/postinst", 'configure'), 0, "$package: configured";
		for my $row (map { [split] } grep {/^d /} split /\n/, $made) {
			chomp(my $is = qx{stat -c '%a %U %G' $row->[1]});
			is $is, ($row->[2] =~ s/^0//r) . " $row->[3] $row->[4]", $row->[1] =~ s/\Q$dir\E//r;
		}
	}
};

subtest 'apparmor_parser accepts the profiles' => sub {
	my $parser = find_program('apparmor_parser') or plan skip_all => 'no apparmor_parser';
	for my $file (grep { !/README/ } glob "$examples/apparmor/*") {
		my $said = qx{$parser --skip-kernel-load --skip-cache --skip-read-cache $file 2>&1};
		is $?, 0, $file =~ s{.*/}{}r or diag $said;
	}
};

subtest 'accel-server makes no call that its unit forbids' => sub {
	plan skip_all => 'no systemd-analyze' if !find_program('systemd-analyze');
	plan skip_all => 'a sanitizer makes calls of its own' if Test::Util::sanitized();
	my @calls = Test::UnitFilter::calls('accel-server');
	cmp_ok scalar(@calls), '>', 100, 'systemd knows the sets';
	for my $backend (Test::Server::backends()) {
		my $srv = Test::Server->start(conf => qq{server.network-backend = "$backend"\nserver.pid-file = "\@RUN\@/pid"\n\$HTTP["url"] =~ "^/a+\$" {\n}\n},
			filter => 'kill');
		$srv->write('hello.txt', "hi\n");
		like $srv->get('/hello.txt'), qr/ 200 /, "$backend: a file";
		$srv->signal('HUP');
		$srv->signal('USR1');
		$srv->log_has(qr/ev=reloaded/, '... a reload');
		like $srv->get('/none'), qr/ 404 /, '... and no file';
		is $srv->stop, '', '... it ends with 0';
	}
	my $srv = Test::Server->start(filter => 'kill', under => [program('call-filter'), 'kill', without('openat2')], unchecked => 1);
	$srv->wait_exit;
	is $srv->{status} & 127, POSIX::SIGSYS(), 'the filter sees a forbidden call';
};

# The list of calls without one of them.
sub without ($call) {
	put("$dir/calls", join '', map {"$_\n"} grep { $_ ne $call } Test::UnitFilter::calls('accel-server'), Test::UnitFilter::of_root(), 'cachestat');
	return "$dir/calls";
}

sub program ($name) { return Test::Util::program($name) }

subtest 'fcgi-stat-accel makes no call that its unit forbids' => sub {
	plan skip_all => 'no systemd-analyze' if !find_program('systemd-analyze');
	plan skip_all => 'a sanitizer makes calls of its own' if Test::Util::sanitized();
	my $app = Test::Fcgi->start({ filter => 'kill', own => 1 }, '--listen=unix:@SOCKET@', '--replace', "--root=$dir/www", "--log=$dir/log", '--timing',
		'--status-path=/st');
	is $app->get("$dir/www/file")->{status}, 200, 'a file';
	is $app->get("$dir/www/none")->{status}, 404, 'no file';
	like $app->ask(SCRIPT_NAME => '/st')->{body}, qr/accel\.answers/, 'its status page';
	kill $_, $app->pid for qw(HUP USR2);
	ok eventually(sub { slurp("$dir/log") =~ /ev=accel\.threads/ }), 'HUP and USR2';
	is $app->stop('USR1'), 0, 'it ends with 0';
};

done_testing;
