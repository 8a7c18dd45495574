# stat_accel_status: each counter moves by what was done; workers are added up; a reload and a killed worker lose nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Fcgi ();
use Test::Http ();
use Test::NginxModule;
use Test::Util qw(eventually find_program put slurp);
use Accel::Slowfs;
use File::Temp ();
use JSON::PP ();

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-status-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(disk hot);
put("$tree/disk/$_", 'x' x 3000) for 1 .. 30;
put("$tree/hot/$_", 'hot') for 1 .. 9;
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1);
my $disk = $slow->dir;

sub http ($address, $more = '') {
	return <<"CONF";
	$more
	server { listen 8080; root $tree/hot; stat_accel $address; stat_accel_open off; stat_accel_remember 30s; stat_accel_deadline 20s;
		location /disk/ { alias $disk/; }
		location /now/ { alias $tree/hot/; stat_accel_remember 0; }
		location /late/ { alias $disk/; stat_accel_deadline 200ms; }
		location /given/ { alias $tree/hot/; stat_accel_open on; }
		location = /app { return 200 "app\\n"; }
		location = /status { stat_accel_status; }
		location = /json { stat_accel_status json; if (\$arg_if) { add_header X-If yes; } }
		location = /metrics { stat_accel_status prometheus; } }
CONF
}
sub status ($c) { return Test::Http::parse(do { local $/; <$c> } // '')->{status} }
sub reset_ ($c) { setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0; close $c }
sub page ($ng) { return JSON::PP::decode_json($ng->get('/json')->{body}) }
sub counters ($ng) { my $c = page($ng)->{counters}; return { map { s/^nginx\.//r => $c->{$_} } keys %$c } }

# What $do adds to which counter; as answers come when no request waits any more, it is read until it is as wanted.
sub adds ($ng, $what, $want, $do) {
	my $before = counters($ng);
	$do->();
	my $added;
	eventually(sub {
		my $now = counters($ng);
		$added = { map { $now->{$_} != $before->{$_} ? ($_ => $now->{$_} - $before->{$_}) : () } keys %$now };
		return JSON::PP->new->canonical->encode($added) eq JSON::PP->new->canonical->encode($want);
	});
	is_deeply $added, $want, $what;
	return;
}

subtest 'each counter' => sub {
	my $ng = Test::NginxModule->start(http('on'), root => $tree);
	my $get = sub ($path, $status = 200) { return sub { is $ng->get($path)->{status}, $status, "$path is answered with $status" } };
	$slow->forget;
	adds($ng, 'a cold file', { 'requests.warmed' => 1, 'questions.threads' => 1, 'questions.answered' => 1 }, $get->('/disk/1'));
	adds($ng, 'a remembered one', { 'requests.remembered' => 1 }, $get->('/disk/1'));
	adds($ng, 'a hot one', { 'requests.hot' => 1 }, $get->('/now/1'));
	my $head = sub ($path) { return sub { is $ng->ask('HEAD', $path)->{status}, 200, "HEAD $path" } };
	adds($ng, 'HEAD of what is remembered', { 'requests.remembered' => 1 }, $head->('/disk/1'));
	adds($ng, 'HEAD of another', { 'requests.hot' => 1 }, $head->('/3'));
	adds($ng, '... says nothing of its bytes', { 'requests.hot' => 1 }, $get->('/3'));
	adds($ng, '... which are remembered then', { 'requests.remembered' => 2 }, sub { $get->('/3')->(); $head->('/3')->() });
	adds($ng, 'no file at all', {}, $get->('/app'));
	adds($ng, 'an absent one', { 'requests.warmed' => 1, 'questions.threads' => 1, 'questions.answered' => 1 }, $get->('/disk/none', 404));
	adds($ng, 'a descriptor of a thread', { 'requests.warmed' => 1, 'questions.threads' => 1, 'questions.answered' => 1, 'descriptors.given' => 1 }, $get->('/given/2'));
	is page($ng)->{questions_out}, 0, 'no question is out';
	$slow->hang;
	adds($ng, 'one that is late', { 'requests.late' => 1, 'questions.threads' => 1 }, $get->('/late/2', 503));
	is page($ng)->{questions_out}, 1, '... whose question is out';
	adds($ng, '... is answered later', { 'questions.answered' => 1 }, sub { $slow->go });
	is page($ng)->{questions_out}, 0, '... and out no more';
	$slow->hang;
	my @c;
	adds($ng, 'equal misses', { 'questions.threads' => 1, 'questions.joined' => 2 }, sub { @c = map { $ng->begin('/disk/3') } 1 .. 3; $slow->wait_hanging(1) });
	adds($ng, '... one of which leaves', { 'requests.left' => 1 }, sub { reset_(pop @c) });
	adds($ng, '... the others get it', { 'requests.warmed' => 2, 'questions.answered' => 1 }, sub { $slow->go; is status($_), 200, 'a file' for @c });
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
};

subtest 'a memory that is too small' => sub {
	my $ng = Test::NginxModule->start(http('on', 'stat_accel_names 4;'), root => $tree);
	adds($ng, 'four names', { 'requests.hot' => 4 }, sub { $ng->get("/$_") for 1 .. 4 });
	adds($ng, 'a fifth', { 'requests.hot' => 1, 'names.forgotten' => 1 }, sub { $ng->get('/5') });
};

subtest 'a cache' => sub {
	my $ng = Test::NginxModule->start("proxy_cache_path /run/cache keys_zone=c:1m; " . http('on')
		=~ s{(?=location /now/)}{location /cache/ { stat_accel_remember 0; proxy_pass http://127.0.0.1:8081/; proxy_cache c; proxy_cache_min_uses 3; proxy_cache_valid 1h; } }r
		. "server { listen 8081; access_log off; root $tree/hot; }", root => $tree);
	my $get = sub { is $ng->get('/cache/7')->{body}, 'hot', 'an answer' };
	$get->();       # nginx has not read its cache yet, so the file may be there
	adds($ng, 'what nginx knows to be not in the cache', {}, $get);
	$get->();
	adds($ng, 'what is there', { 'requests.hot' => 1 }, $get);
};

subtest 'an accelerator' => sub {
	my $app = Test::Fcgi->start({ socket => "$tree/app\".sock" }, '--deadline=1000', "--root=$disk");
	chmod 0666, $app->socket;
	my $ng = Test::NginxModule->start(http("'unix:" . $app->socket . "'"), root => $tree);
	my $state = sub { my ($a) = @{ page($ng)->{accelerators} }; return $a };
	$slow->forget;
	adds($ng, 'a cold file', { 'requests.warmed' => 1, 'questions.accelerator' => 1, 'questions.answered' => 1 }, sub { $ng->get('/disk/4') });
	$slow->hang;
	adds($ng, 'its own deadline', { 'requests.late' => 1, 'questions.accelerator' => 1, 'questions.late' => 1 }, sub { is $ng->get('/disk/5')->{status}, 503, 'it is late' });
	adds($ng, 'nobody waits any more', { 'requests.left' => 1, 'questions.accelerator' => 1, 'questions.called-back' => 1 }, sub {
		my $c = $ng->begin('/disk/8');
		ok $slow->wait_hanging(2), 'the disk is asked';
		reset_($c);
	});
	$slow->go;
	is_deeply $state->(), { name => 'unix:' . $app->socket, up => JSON::PP::true, down_workers => 0 }, 'it is up';
	is $app->stop, 0, 'the accelerator ends';
	adds($ng, 'its last question', { 'requests.failed' => 1, 'accelerators.down' => 1, 'questions.refused' => 1 }, sub { $ng->get('/disk/6') });
	adds($ng, 'while it is down', { 'requests.failed' => 1, 'questions.refused' => 1 }, sub { $ng->get('/disk/7') });
	is_deeply $state->(), { name => 'unix:' . $app->socket, up => JSON::PP::false, down_workers => 1 }, 'it is down';
	like $ng->get('/status')->{body}, qr/^nginx\.accelerator\.unix:\Q$tree\E\/app"\.sock\.down-workers: 1$/m, '... in the text, too';
	like $ng->get('/metrics')->{body}, qr/^nginx_stat_accel_accelerator_down_workers\{accelerator="unix:\Q$tree\E\/app\\"\.sock"\} 1$/m, '... and in the metrics';
};

subtest 'two workers' => sub {
	my $ng = Test::NginxModule->start(http('on') =~ s/listen 8080;/listen 8080 reuseport; add_header X-Worker \$pid;/r, root => $tree, workers => 2);
	my %workers;
	adds($ng, 'are added up', { 'requests.hot' => 40 }, sub { $workers{ $ng->get('/now/1')->{header}{'x-worker'} }++ for 1 .. 40 });
	is scalar(keys %workers), 2, 'both have served';
};

subtest 'a reload, a killed worker' => sub {
	my $ng = Test::NginxModule->start("proxy_cache_path /run/cache keys_zone=c:1m; " . http('on'), root => $tree, workers => 2);
	my $workers = sub { return page($ng)->{workers} };
	ok eventually(sub { $workers->() == 2 }), 'two workers, without the cache manager';
	adds($ng, 'a file', { 'requests.hot' => 1 }, sub { $ng->get('/now/1') });
	my $before = counters($ng);
	kill 'HUP', $ng->{pid};
	ok eventually(sub { 2 <= (() = $ng->log =~ /worker process \d+ exited/g) && $workers->() == 2 }), 'two new workers after a reload';
	is_deeply counters($ng), $before, '... which go on with the counters';
	adds($ng, '... and count', { 'requests.hot' => 1 }, sub { $ng->get('/now/1') });

	$slow->forget;
	$slow->hang;
	my $c = $ng->begin('/disk/9');
	ok $slow->wait_hanging(1), 'a question is out';
	is page($ng)->{questions_out}, 1, '... and counted';
	$before = counters($ng);
	kill 'KILL', grep { slurp("/proc/$_/stat") =~ /^\S+ \(.*\) \S $ng->{pid} / && slurp("/proc/$_/cmdline") =~ /worker process/ } map { m{(\d+)} } glob '/proc/[0-9]*';
	$slow->go;
	ok eventually(sub { eval { $workers->() == 2 } }), 'killed workers are replaced';
	is page($ng)->{questions_out}, 0, '... their questions out no more';
	is_deeply counters($ng), $before, '... their counters kept';
};

subtest 'a worker that ends before its answers' => sub {
	my $app = Test::Fcgi->start({ socket => "$tree/ends.sock" }, "--root=$disk");
	chmod 0666, $app->socket;
	my $ng = Test::NginxModule->start(http('unix:' . $app->socket), root => $tree, main => 'worker_shutdown_timeout 100ms;');
	my $worker = $ng->worker;
	$slow->forget;
	$slow->hang;
	adds($ng, 'a reload that waits for no request', { 'requests.left' => 4, 'questions.accelerator' => 3, 'questions.joined' => 1, 'questions.called-back' => 3 }, sub {
		my @c = map { $ng->begin("/disk/$_") } 1, 2, 3, 3;
		ok eventually(sub { counters($ng)->{'questions.joined'} == 1 }), 'three questions are out';
		kill 'HUP', $ng->{pid};
		ok eventually(sub { !-e "/proc/$worker" }), 'the worker ends';
	});
	$slow->go;
};

subtest 'the page' => sub {
	my $ng = Test::NginxModule->start(http('on'), root => $tree);
	my %type = (text => 'text/plain; charset=utf-8', json => 'application/json', metrics => 'text/plain; version=0.0.4; charset=utf-8');
	my %starts = (text => qr/^nginx\.workers: 1$/m, json => qr/^\{"workers":1,/, metrics => qr/^nginx_stat_accel_workers 1$/m);
	for my $case (['/status', 'text'], ['/json', 'json'], ['/metrics', 'metrics'], ['/status?json', 'json'], ['/status?x&metrics=', 'metrics'], ['/status?prometheus', 'metrics'],
		['/json?text', 'text'], ['/json?jso', 'json'], ['/json?if=1', 'json']) {
		my ($path, $form) = @$case;
		my $r = $ng->get($path);
		is $r->{header}{'content-type'}, $type{$form}, "$path: $form";
		like $r->{body}, $starts{$form}, '... which begins so';
		is $r->{header}{'cache-control'}, 'no-store', '... and is not kept';
		is $r->{header}{'content-length'}, length $r->{body}, '... with its length';
	}
	is scalar(grep { !/^nginx\.[\w.-]+: \d+$/ } split /\n/, $ng->get('/status')->{body}), 0, 'text: a name and a value in each line';
	is $ng->ask('HEAD', '/status')->{body}, '', 'HEAD has no body';
	is $ng->ask('POST', '/status')->{status}, 405, 'POST is refused';
	my @names = map { "nginx.$_" } slurp("$FindBin::Bin/../../nginx/counters.def") =~ /^C\(\w+, "(\S+)"/mg;
	is_deeply [sort keys %{ page($ng)->{counters} }], [sort @names], 'all counters of counters.def';
	my $metrics = $ng->get('/metrics')->{body};
	is scalar(() = $metrics =~ /^nginx_stat_accel_\w+_total \d+$/mg), @names, '... in the metrics, too';
	is scalar(() = $metrics =~ /^# HELP (\S+) \S.*\n# TYPE \1 (?:counter|gauge)\n\1 \d+$/mg), @names + 2, 'each has its HELP and TYPE';
	SKIP: {
		skip 'no promtool', 1 unless find_program('promtool');
		put("$tree/page", $metrics);
		is `promtool check metrics <'$tree/page' 2>&1`, '', 'promtool has nothing to say';
	}
	ok !eval { Test::NginxModule->start('server { listen 8080; location /s { stat_accel_status xml; } }', root => $tree) }, 'another word';
	like $@, qr/stat_accel_status: expected "text", "json" or "prometheus", got "xml"/, '... is refused';
};

$slow->stop;
done_testing;
