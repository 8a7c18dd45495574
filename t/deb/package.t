# The packages in a new Debian with a real systemd: installed, configured, upgraded under load, removed, purged.
# It needs root, and an archive of Debian in its first run, so it is not a part of make check: make check-deb.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP ();
use POSIX ();
use Test::Deb;
use Test::More;
use Test::Systemd;
use Test::Util qw(eventually find_program program put slurp temp_tree);

# The rate makes the loads last longer than the upgrade on a fast machine.  On a slow machine they last until all requests are answered.
use constant { KEPT => 50_000, CLOSED => 50_000, RATE => 2500, TIMEOUT => 400, CONF => '/etc/stat-accel/accel-server.conf', URL => 'http://127.0.0.1:8080' };
# nginx, which asks the accelerator before each file
use constant { ASKED => 16_000, ASKED_RATE => 400, NGINX => 'http://127.0.0.1:8081' };

my $why = Test::Deb::unusable() || Test::Systemd->unusable || (find_program('nginx') ? '' : 'no nginx (package nginx-light)');
plan skip_all => $why if $why;

my $next = Test::Deb::version() . '+next';
my @debs = Test::Deb::build();
is_deeply [sort map { m{([^/_]+)_[^/]+\.deb\z} } @debs], [sort map({ ($_, "$_-dbgsym") } qw(fcgi-stat-accel libnginx-mod-http-stat-accel stat-accel-server stat-accel-tools)), 'stat-accel-doc'],
	'make deb: five packages, and debugging symbols';
my @next = Test::Deb::build_next($next);

my $tree = temp_tree();
Test::Deb::debian("$tree", @debs);
my $sd = Test::Systemd->boot(root => "$tree");
my %before = Test::Deb::files("$tree");

# Runs it in the container; if it fails, its terminal output is the name of the test.
sub works ($name, @command) {
	my ($status, $text) = $sd->command(@command);
	return ok($status == 0, $name) || diag("@command: $status\n$text");
}

# A command of doc/operations.md, with the paths of the packages.
my @pasted = slurp("$FindBin::Bin/../../doc/operations.md") =~ /^(apt-get install .*)$/mg;
is scalar @pasted, 3, 'doc/operations.md installs, upgrades, and goes back';
sub paste ($command) { return works($command, 'sh', '-c', "cd /root/debs && $command") }

# A program of this tree in the network of the container.
sub inside_of (@command) { return ('nsenter', "--target=$sd->{init}", '--net', '--', @command) }
sub inside ($program, @args) { return inside_of(program($program), @args) }
sub fetch ($path) { return scalar qx{nsenter --target=$sd->{init} --net -- curl -s -m 10 -i '@{[URL]}$path'} }
sub main_pid ($unit = 'accel-server') { return $sd->show("$unit.service", 'MainPID') }

subtest 'install' => sub {
	paste($pasted[0]);
	works('the documents, too', 'sh', '-c', 'dpkg -i /root/debs/stat-accel-doc_*.deb');
	is $sd->show('accel-server.service', 'ActiveState'), 'active', 'the server runs';
	is $sd->show('accel-server.service', 'UnitFileState'), 'enabled', '... and starts with the machine';
	is $sd->show('fcgi-stat-accel.socket', 'ActiveState'), 'active', 'the accelerator listens';
	is $sd->show('accel-server.socket', 'ActiveState'), 'inactive', 'the optional socket does not';
	is $sd->show('accel-warm.timer', 'ActiveState'), 'inactive', 'and nothing is made warm without an order';
	is $sd->run('stat', '-c', '%U:%G %a', '/var/log/stat-accel'), "www-data:adm 2750\n", 'the group adm reads the logs';
	is $sd->run('sh', '-c', 'ps -o user= -C accel-server | sort -u'), "www-data\n", 'no process of root';
	like fetch('/'), qr{^HTTP/1.1 (?:403|404) }, 'the document root is empty';
	$sd->put('/var/www/html/hello.txt', "hello\n");
	like fetch('/hello.txt'), qr{^HTTP/1.1 200 .*\r\n\r\nhello\n\z}s, 'serves a file';
};

subtest 'every program' => sub {
	for my $program (qw(accel-server fcgi-stat-accel accel-load accel-pool accel-warm slowfs accel-bench accel-check accel-graph accel-load-merge accel-top accel-tune)) {
		my ($version) = Test::Deb::version();
		like $sd->run($program, '--version'), qr{^\Q$program\E[ /]\Q$version\E$}m, "$program --version";
		works("$program: completion", 'test', '-s', "/usr/share/bash-completion/completions/$program");
		works("$program: manual page", 'sh', '-c', "ls /usr/share/man/man[18]/$program.[18].gz");
	}
	works('the installed configuration is right', 'accel-server', '-t', '-f', CONF);
	works('logrotate reads its files', 'logrotate', '-d', '/etc/logrotate.d/accel-server', '/etc/logrotate.d/fcgi-stat-accel');
};

subtest 'fcgi-stat-accel answers' => sub {
	my $socket = $sd->path('/run/stat-accel.sock');
	my $text = qx{@{[join ' ', inside('accel-load', '--fastcgi', '--json', '-q', '-n', 10, '--status', 200, '--urls', '-', "unix:$socket")]} <<'END'
/hello.txt
END
};
	cmp_ok $sd->show('fcgi-stat-accel.service', 'ActiveState'), 'eq', 'active', 'the first question starts it' or diag $text, $sd->messages;
};

subtest 'the module of nginx' => sub {
	my ($package, $enabled, $conf) = ('libnginx-mod-http-stat-accel', '/etc/nginx/modules-enabled/50-mod-http-stat-accel.conf', '/etc/nginx/conf.d/module.conf');
	works('beside nginx-light', 'sh', '-c', "dpkg -i /root/debs/${package}_*.deb");
	ok -l "$tree$enabled", 'nginx loads it';
	works('... and accepts its own configuration', 'nginx', '-t');
	$sd->put($conf, <<'END');
log_format waits '$request_uri $status $stat_accel_status';
stat_accel unix:/run/stat-accel.sock;
server { listen 127.0.0.1:8082; root /var/www/html; access_log /var/log/nginx/waits waits; }
END
	works('... and the line of the README', 'nginx', '-t');
	works('nginx starts', 'systemctl', 'start', 'nginx');
	is scalar qx{@{[join ' ', inside_of('curl', '-s', '-m', 5, 'http://127.0.0.1:8082/hello.txt')]}}, "hello\n", 'a file';
	like slurp("$tree/var/log/nginx/waits"), qr{^/hello\.txt 200 (?:hot|warmed)$}m, '... was looked at';
	my ($nginx) = slurp("$tree/var/lib/dpkg/status") =~ /^Package: nginx\n.*?^Version: (\S+)/ms;
	my $old = $sd->show('nginx.service', 'MainPID');
	works('nginx itself is upgraded while it runs with it', 'dpkg', '-i', Test::Deb::repack("$tree", 'nginx', "$nginx+1"));
	ok eventually(sub { my $new = $sd->show('nginx.service', 'MainPID'); $new && $new ne $old }), '... is another process then';
	is scalar qx{@{[join ' ', inside_of('curl', '-s', '-m', 5, 'http://127.0.0.1:8082/hello.txt')]}}, "hello\n", '... which serves';
	is scalar(() = slurp("$tree/var/log/nginx/waits") =~ m{^/hello\.txt 200 (?:hot|warmed|remembered)$}mg), 2, '... with the module';
	my ($abi) = slurp("$tree/var/lib/dpkg/status") =~ /^Package: nginx\n.*?^Provides: [^\n]*(nginx-abi-[\w.-]+)/ms;
	like $sd->run('dpkg', '-s', $package), qr/^Depends: .*\Q$abi\E/m, 'an nginx of another binary interface is not installed beside it';
	works('without the line', 'rm', $conf);
	works('remove', 'dpkg', '--remove', $package);
	works('nginx accepts its configuration without the module', 'nginx', '-t');
	works('... and restarts', 'systemctl', 'restart', 'nginx');
	works('nginx stops', 'systemctl', 'stop', 'nginx');
	works('purge', 'dpkg', '--purge', $package);
	is_deeply [grep { -e || -l } glob "$tree$enabled* $tree/usr/share/nginx/modules-available/*stat-accel* $tree/usr/lib/nginx/modules/*stat_accel*"], [], '... leaves nothing';
};

my $nginx_pid;
END { local $?; kill TERM => $nginx_pid if $nginx_pid }

# nginx of this machine in the network of the container, with the files and the accelerator of the container.
sub nginx () {
	my $dir = temp_tree();
	put("$dir/conf", <<"END");
daemon off; pid $dir/pid; error_log $dir/error.log; user root; worker_processes 1;
events { worker_connections 512; }
http {
	access_log off; client_body_temp_path $dir; proxy_temp_path $dir; fastcgi_temp_path $dir; uwsgi_temp_path $dir; scgi_temp_path $dir;
	server {
		listen 127.0.0.1:8081; root $tree/var/www/html;
		auth_request /stat-accel;
		location = /stat-accel {
			internal;
			fastcgi_pass unix:@{[ $sd->path('/run/stat-accel.sock') ]};
			fastcgi_param REQUEST_METHOD \$request_method;
			fastcgi_param DOCUMENT_ROOT /var/www/html;
			fastcgi_param REQUEST_URI \$request_uri;
			fastcgi_pass_request_body off;
		}
	}
}
END
	$nginx_pid = fork // die "fork: $!";
	if (!$nginx_pid) { exec inside_of('nginx', '-p', "$dir", '-e', "$dir/error.log", '-c', "$dir/conf") or POSIX::_exit(127) }
	ok eventually(sub { qx{@{[join ' ', inside_of('curl', '-s', '-m', 5, NGINX . '/hello.txt')]}} eq "hello\n" }), 'nginx serves a file' or diag slurp("$dir/error.log");
	return $dir;
}

# Three loads at a fixed rate, long enough for the upgrade in between: kept connections, one connection for each request, and through nginx.
sub load (@args) {
	my @command = inside('accel-load', '--json', '-q', '-c', 20, '-t', TIMEOUT, '--verify', 'pattern', '--urls', "$tree/root/urls", @args);
	my $pid = open(my $from, '-|', @command) // die "fork: $!";
	return { pid => $pid, from => $from };
}
sub report ($load) { return JSON::PP::decode_json(do { local $/ = undef; readline $load->{from} }) }
sub running ($load) { return kill(0, $load->{pid}) && slurp("/proc/$load->{pid}/stat") !~ /\) Z / }

subtest 'upgrade under load' => sub {
	$sd->command('accel-pool', 'make', '--spec', '2x50x1k-100k', '--quiet', '/var/www/html/pool');
	put("$tree/root/urls", $sd->run('accel-pool', 'list', '--prefix', '/pool/', '--shuffle', '/var/www/html/pool'));
	put("$tree" . CONF, slurp("$tree" . CONF) . qq{server.tag = "changed by its administrator"\n});
	works('a reload uses what the administrator wrote', 'systemctl', 'reload', 'accel-server');
	like fetch('/hello.txt'), qr{^Server: changed by its administrator\r$}m, '... at once';

	my ($old, $old_accel) = map { main_pid($_) } qw(accel-server fcgi-stat-accel);
	my $nginx = nginx();
	my @loads = (load('-n', KEPT, '-r', RATE, URL . '/'), load('-n', CLOSED, '-r', RATE, '--close', URL . '/'), load('-n', ASKED, '-r', ASKED_RATE, NGINX . '/'));
	eventually(sub { slurp("$tree/var/log/stat-accel/access.log") =~ /pool/ });
	Test::Deb::copy_debs("$tree", @next);
	paste($pasted[1]);
	works('the accelerator of the next version', 'sh', '-c', 'dpkg -i /root/debs/fcgi-stat-accel_*.deb');
	my $during = grep { running($_) } @loads;
	ok eventually(sub { main_pid() ne $old }), 'another process is the server for systemd' or diag slurp("$tree/var/log/stat-accel/error.log");
	is $during, 3, '... while all loads run';
	ok eventually(sub { my $new = main_pid('fcgi-stat-accel'); $new && $new ne $old_accel }), 'another accelerator answers nginx';
	my @reports = map { report($_) } @loads;
	is $_->{errors}{all}, 0, 'no request fails' or diag explain $_->{errors}, $_->{status} for @reports;
	is_deeply [map { $_->{answered} } @reports], [KEPT, CLOSED, ASKED], 'and all are answered';
	is slurp("$nginx/error.log"), '', 'nginx has nothing to complain about';
	kill TERM => $nginx_pid;
	waitpid $nginx_pid, 0;
	$nginx_pid = 0;
	note sprintf '%d requests in %.1f s, %d connections; slowest %.3f s', $_->{answered}, $_->{seconds}, $_->{connects}, $_->{latency_us}{max} / 1e6 for @reports;
	is readlink('/proc/' . $sd->outside(main_pid()) . '/exe'), '/usr/bin/accel-server', 'the program is that of the package';
	like $sd->run('accel-server', '--version'), qr/\Q$next\E/, '... the new one';
	like fetch('/hello.txt'), qr{^Server: changed by its administrator\r$}m, 'the changed configuration survives';
	is $sd->show('accel-server.service', 'NRestarts'), 0, 'systemd restarted nothing';
	is $sd->show('accel-server.service', 'ActiveState'), 'active', '... and sees it run';
};

subtest 'rollback' => sub {
	my $old = main_pid();
	works('the other packages of the next version', 'sh', '-c', 'dpkg -i /root/debs/*.deb');
	Test::Deb::copy_debs("$tree", @debs);
	paste($pasted[2]);
	ok eventually(sub { main_pid() ne $old }), 'another process is the server for systemd' or diag slurp("$tree/var/log/stat-accel/error.log");
	unlike $sd->run('accel-server', '--version'), qr/\Q$next\E/, '... with the program of before';
	like fetch('/hello.txt'), qr{^Server: changed by its administrator\r$}m, '... which serves';
	is $sd->show('accel-server.service', 'NRestarts'), 0, 'systemd restarted nothing';
};

subtest 'purge leaves nothing' => sub {
	$sd->command('rm', '-rf', '/var/www/html/pool', '/var/www/html/hello.txt', '/root/urls');
	my @names = qw(stat-accel-server fcgi-stat-accel libnginx-mod-http-stat-accel stat-accel-tools stat-accel-doc);
	works('remove', 'dpkg', '--remove', @names);
	isnt $sd->show('accel-server.service', 'ActiveState'), 'active', 'the server is stopped';
	ok -s "$tree" . CONF, 'the configuration stays';
	works('purge', 'dpkg', '--purge', @names);
	my %after = Test::Deb::files("$tree");
	is_deeply [map { "$_: $after{$_}" } sort grep { !exists $before{$_} } keys %after], [], 'no new file';
	is_deeply [sort grep { !exists $after{$_} } keys %before], [], 'no file is missing';
	my @changed = grep { exists $after{$_} && $after{$_} ne $before{$_} && $before{$_} !~ /^directory/ } keys %before;
	is_deeply [sort @changed], [], 'no file is changed';
	is $sd->run('sh', '-c', 'ls -d /run/stat-accel* 2>/dev/null'), '', 'nothing in /run';
	is $sd->run('ps', '-o', 'pid,args', '--no-headers', '-C', 'accel-server,fcgi-stat-accel'), '', 'no process';
};

done_testing;
