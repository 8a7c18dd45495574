# The alerts of examples/prometheus in a real Prometheus, which scrapes real servers: each fault is caused, its alert fires once, and no
# other one does.  Durations of the rules are divided, by 60; nothing else is changed.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Accel::Slowfs;
use Test::AccelLoad;
use Test::App;
use Test::Fcgi ();
use Test::Prometheus;
use Test::Server;
use Test::Site;
use Test::Util qw(PATIENCE put slurp temp_tree);
use Time::HiRes qw(time);

my ($fuse, $no_fuse) = Accel::Slowfs->usable;
plan skip_all => $no_fuse if !$fuse;
Test::Site->need('nginx');

my $dir = "$FindBin::Bin/../../examples/prometheus";
my ($metrics_conf, $front_conf) = slurp("$dir/README.md") =~ /^```conf\n(.*?)^```/msg;
my ($nginx_conf) = slurp("$dir/README.md") =~ /^```nginx\n(.*?)^```/ms;
my $tree = temp_tree();
mkdir "$tree/$_" for qw(www other disk);
for my $d (qw(www other disk)) { put("$tree/$d/f$_", "$_\n" x 100) for 1 .. 200 }
put("$tree/urls", join '', map { "/f$_\n" } 1 .. 200);
put("$tree/cold", join '', map { "/none$_\n" } 1 .. 2000);

# ---------------------------------------------------------------- a server for each fault

sub server ($conf, %arg) { return Test::Server->start(dir => "$tree/www", conf => "$metrics_conf$conf", %arg) }
sub app_block ($app, @set) { return Test::Server::proxy_block('^/app/', 'unix:' . $app->socket, protocol => 'http', @set) }

my $hang_fs  = Accel::Slowfs->start(source => "$tree/disk", lookup_ms => 0, read_ms => 0);
my $queue_fs = Accel::Slowfs->start(source => "$tree/disk", lookup_ms => 50, spindles => 1, read_ms => 0);
my ($app, $late) = map { Test::App->start(protocol => 'http') } 1, 2;
my $small_pool = app_block($app, 'max-pool-size' => 1, 'max-waiters' => 1);
my %srv = (
	well   => server(app_block($app)),
	hangs  => server("server.max-open-idle = 1\nserver.max-stat-threads = 2\n", dir => $hang_fs->dir),
	disk   => server("server.max-stat-threads = 1\nserver.max-blocking-queue = 2\nserver.max-worker = 1\n", dir => $queue_fs->dir),
	queue  => server("server.max-worker = 1\n$small_pool"),
	thrash => server("server.max-cached-files = 20\nserver.max-worker = 1\n"),
	few    => server("server.max-worker = 1\n", nofile => 64),
	errors => server(app_block($app)),
	gone   => server(app_block($late, 'disable-time' => 1)),
	reload => server(''),
	upgrade => server(''),
	helper => server(''),
	down   => server(''),
	log    => server(qq{accesslog.filename = "|while ! test -e $tree/go; do sleep 0.05; done; exec cat >/dev/null"\naccesslog.format = "%{User-Agent}i"\n}),
);

# nginx asks about files that --root does not have; accel-server passes on the page of a well one.
my $nginx = Test::Site->start('nginx', 'lines of a README', root => "$tree", text => Test::Site->shortest('nginx',
	'spawn-fcgi -s /run/stat-accel.sock -u www-data -g www-data -U www-data -- /usr/local/bin/fcgi-stat-accel --mode=auth --root=/srv/www/other --advice=200',
	"\tserver {\n\t\tlisten 8080;\n\t\troot /srv/www;\n$nginx_conf" . Test::Site->readme(qr/auth_request/) . "\n\t}"));
my $fcgi = Test::Fcgi->start('--status-path=/accel-status', "--root=$tree/www");
$srv{front} = server($front_conf =~ s{/run/stat-accel\.sock}{$fcgi->{socket}}r);

# ---------------------------------------------------------------- faults

# What to do, again and again, while a fault lasts.
my %pump;
my @idle;
my @load;

sub get ($name, $path, %header) { return $srv{$name}->fetch($path, %header) }
sub load ($name, $urls, @args) { push @load, my $l = Test::AccelLoad->start($srv{$name}, '/', '--urls', "$tree/$urls", '-d', 100, '-q', @args); return $l }
sub stop_load ($l) { return sub { $l->stop } }

sub hang () {
	$hang_fs->hang;
	my @waits = map { my $c = $srv{hangs}->connect; $c->send("GET /f$_ HTTP/1.1\r\nHost: x\r\n\r\n"); $c } 100 .. 104;
	$hang_fs->wait_hanging(2) or die "nothing hangs\n";
	return sub { $hang_fs->go; $_->reply for @waits };
}

# Ten windows of good questions end the advice; sixty would be another one: all files are warm.
sub useless () {
	$pump{useless} = sub { $nginx->get("/www/f$_") for 1 .. 20 };
	return sub {
		my $rounds = 50;
		$pump{useless} = sub { $rounds-- > 0 or return; $nginx->get("/other/f$_") for 1 .. 20 };
	};
}

# Clients that stay, each in the place of an older one.
sub few () {
	$pump{few} = sub {
		my $c = $srv{few}->connect;
		$c->send("GET /f1 HTTP/1.1\r\nHost: x\r\n\r\n");
		$c->reply;
		push @idle, $c;
	};
	return sub { delete $pump{few}; @idle = () };
}

sub errors () {
	$pump{errors} = sub { get('errors', '/app/head?Status:%20500%20no'); get('errors', '/app/none') };      # 500 alone would be another alert
	return sub { $pump{errors} = sub { get('errors', '/app/none') } };
}

# One request at a time has the socket, one waits, the others are refused.
sub queue () {
	unlink $app->file('go');
	$pump{queue} = sub {
		my @c = map { my $c = $srv{queue}->connect; $c->send("GET /app/steps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); $c } 1 .. 4;
		put($app->file('go'), '');
		$_->rest for @c;
		unlink $app->file('go');
	};
	return sub { delete $pump{queue} };
}

sub gone () {
	$late->down;
	$pump{gone} = sub { get('gone', '/app/none') };
	return sub { $late->up };
}

sub reload () {
	my $file = $srv{reload}->run . '/server.conf';
	my $was  = slurp($file);
	put($file, "server.document-root = nonsense\n");
	$srv{reload}->signal('USR1');
	return sub { put($file, $was); $srv{reload}->signal('USR1') };
}

# The new process refuses the configuration, the old one serves on.  A reload of it would fail, too, until there was a good one.
sub upgrade () {
	my $file = $srv{upgrade}->run . '/server.conf';
	put("$file.good", slurp($file));
	put($file, "server.document-root = nonsense\n");
	$srv{upgrade}->signal('USR2');
	return sub { rename "$file.good", $file; $srv{upgrade}->signal('USR1') };
}

sub lost () {
	$pump{log} = sub {
		my $c = $srv{log}->connect;
		my $request = "GET /f1 HTTP/1.1\r\nHost: x\r\nUser-Agent: " . 'x' x 3000 . "\r\n\r\n";
		$c->send($request x 8);
		$c->reply for 1 .. 8;
	};
	return sub { put("$tree/go", ''); delete $pump{log} };
}

# The instance, the alert with labels of its own, and the fault: it returns what ends it.
my $address = sub ($name) { '127.0.0.1:' . $srv{$name}->port };
my @fault = (
	[ $address->('hangs'), { alertname => 'AccelDeviceHanging', mount => $hang_fs->dir }, \&hang ],
	[ $address->('disk'), { alertname => 'AccelQueueFull', queue => 'device' }, sub { stop_load(load('disk', 'cold', '-c', 20, '-r', 200)) } ],
	[ $address->('queue'), { alertname => 'AccelQueueFull', queue => 'application', backend => 'unix:' . $app->socket }, \&queue ],
	[ '127.0.0.1:' . $nginx->port, { alertname => 'AccelUselessAccelerator', id => 'outside-roots' }, \&useless ],
	[ $address->('thrash'), { alertname => 'AccelCacheThrashing' }, sub { stop_load(load('thrash', 'urls', '-r', 100)) } ],
	[ $address->('few'), { alertname => 'AccelDescriptorShortage', job => 'accel-server' }, \&few ],
	[ $address->('errors'), { alertname => 'AccelBackend5xx', backend => 'unix:' . $app->socket }, \&errors ],
	[ $address->('gone'), { alertname => 'AccelBackendUnreachable', backend => 'unix:' . $late->socket }, \&gone ],
	[ $address->('reload'), { alertname => 'AccelReloadFailed' }, \&reload ],
	[ $address->('upgrade'), { alertname => 'AccelUpgradeFailed' }, \&upgrade ],
	[ $address->('upgrade'), { alertname => 'AccelReloadFailed' }, sub { sub { } } ],
	[ $address->('helper'), { alertname => 'AccelHelperLost' }, sub { kill KILL => $srv{helper}->helper; sub { } } ],
	[ $address->('log'), { alertname => 'AccelLogLinesLost' }, \&lost ],
	[ $address->('down'), { alertname => 'AccelDown', job => 'accel-server' }, sub { $srv{down}->term; sub { } } ],
);

# ---------------------------------------------------------------- Prometheus, with the files as they are installed

my @accel = map { $address->($_) } grep { $_ ne 'front' } sort keys %srv;
my @stat  = ('127.0.0.1:' . $nginx->port, $address->('front'));
my $json  = JSON::PP->new;
my $scrape = slurp("$dir/scrape.yml") =~ s/targets: \[ "127\.0\.0\.1:8080" \]/'targets: ' . $json->encode(\@accel)/er
	=~ s/targets: \[ "127\.0\.0\.1:8081" \]/'targets: ' . $json->encode(\@stat)/er;
# Time-outs of a scrape are 10 s as they come, and 200 ms here, as intervals are: on a busy machine the answers of a server that is well may be
# late for a second, so AccelDown keeps a sixth of its minute.
use constant DOWN_MS => 10_000;
# A program under a sanitizer on a busy machine needs more than 200 ms for a page now and then.
my $slower = Test::Util::sanitized() ? 2 : 1;
my $prom = Test::Prometheus->start(config => $scrape, every => 200 * $slower . 'ms',
	rules => Test::Prometheus::shorter(slurp("$dir/stat-accel.rules.yml"), 60 / $slower)
		=~ s/(- alert: AccelDown\n.*\n\s+for: )\S+/$1 . DOWN_MS . 'ms'/er);

# Calls the pumps until the condition holds.  What does not answer in time, a server or Prometheus, is tried again.
sub pump_until ($condition, $seconds = PATIENCE) {
	my $end = time + $seconds;
	while (1) {
		my $got = eval { $condition->() };
		note "Prometheus: $@" if $@;
		return $got if $got || time > $end;
		for my $fault (sort keys %pump) { eval { $pump{$fault}->(); 1 } or note "$fault: $@" }
		select undef, undef, undef, 0.02;
	}
}

sub is_of ($labels, $instance, $want) {
	return $labels->{instance} eq $instance && !grep { ($labels->{$_} // '') ne $want->{$_} } keys %$want;
}
sub named ($labels) { return join ' ', map { "$_=$labels->{$_}" } sort grep { !/^(?:__name__|alertstate|severity)$/ } keys %$labels }

load('well', 'urls', '-r', 200, '-c', 4);
my $asked = 0;
$pump{well} = sub { get('well', '/app/none'); get('front', '/f' . (1 + $asked++ % 200)) };        # one name alone would be advice
my $evaluated = sub { ($prom->query('count_over_time(instance:process_open_fds:ratio[1m])'))[0]{value} // 0 };
ok pump_until(sub { $prom->targets_up == @accel + @stat }), 'Prometheus reads all servers, as scrape.yml says' or diag $prom->log;
ok pump_until(sub { $evaluated->() >= 10 }), 'the rules are evaluated';
is_deeply [map { named($_->{labels}) } grep { $_->{state} eq 'firing' } $prom->alerts], [], 'no alert while all is well';

my @ends = map { [$_, $_->[2]->()] } @fault;
my $fires = sub ($fault) { scalar grep { $_->{state} eq 'firing' && is_of($_->{labels}, @$fault[0, 1]) } $prom->alerts };
my @waiting = @fault;
ok pump_until(sub { @waiting = grep { !$fires->($_) } @waiting; !@waiting }, 3 * PATIENCE), 'each fault has its alert'
    or diag 'not seen: ', join ', ', map { named({ %{ $_->[1] }, instance => $_->[0] }) } @waiting;
my %text = map { $_->{labels}{alertname} => $_->{annotations} } $prom->alerts;
is_deeply [grep { join('', values %$_) =~ /<no value>|%!|\{\{/ } values %text], [], 'their texts are whole';
like $text{AccelDeviceHanging}{summary}, qr/^\Q@{[ $hang_fs->dir ]}\E hangs on 127/, 'one names the mount point';
diag map { "$_->{summary}\n" } values %text if $ENV{TEST_VERBOSE};

my %page = (well => '/metrics', front => '/accel-status?metrics');
for my $name (sort keys %page) {
	put("$tree/page", get($name, $page{$name})->{body});
	is qx{promtool check metrics <$tree/page 2>&1}, '', "promtool has nothing to say about the page of $name";
}

# ---------------------------------------------------------------- the end of the faults

$_->[1]->() for @ends;
# A backend that was away for half a minute is tried again a minute later.  Until then its alert is right, and may begin again.
ok pump_until(sub { get('gone', '/app/none')->{status} < 500 }, 3 * PATIENCE), 'the application is used again';
my $ended = time;
my ($stays) = grep { $_->[1]{alertname} eq 'AccelDown' } @fault;
my @left;
ok pump_until(sub { @left = grep { !is_of($_->{labels}, @$stays[0, 1]) } $prom->alerts; !@left }, 3 * PATIENCE), 'each alert ends with its fault; the server that is down stays down'
    or diag join ', ', map { named($_->{labels}) } @left;

# ---------------------------------------------------------------- what fired

my @fired = $prom->fired;
for my $fault (@fault) {
	my @by = grep { is_of($_->{labels}, @$fault[0, 1]) } @fired;
	# A scrape that comes too late on a busy machine ends it for a moment.
	is_deeply [scalar(@by) > 0, scalar grep { $_->{from} > $ended + 2 } @by], [1, 0], named({ %{ $fault->[1] }, instance => $fault->[0] }) . ': while its fault lasts';
}
my @other = grep { my $f = $_; !grep { is_of($f->{labels}, @$_[0, 1]) } @fault } @fired;
my %who = map { $address->($_) => $_ } keys %srv;
is_deeply [map { named($_->{labels}) . sprintf ' of %s, %.1f to %.1f s', $who{ $_->{labels}{instance} } // 'nginx', $_->{from} - $ended, $_->{to} - $ended } @other], [], 'no other alert';
is_deeply [$prom->rule_errors], [], 'no rule failed';
$_->stop for @load;
ok $prom->stop, 'Prometheus ends';
%srv = ();

done_testing;
