# The module before a slow disk: nginx answers hot files while cold ones wait, and a hung disk costs its own requests only.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http qw(request_head);
use Test::NginxModule;
use Test::Util qw(eventually put);
use Accel::Slowfs;
use File::Temp ();
use Time::HiRes qw(time);

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-cold-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(disk disk/dir hot);
put("$tree/disk/$_", 'x' x 300_000) for 1 .. 30, 'dir/index.html', 'dir/a', 'dir/b';
put("$tree/hot/file", 'hot');
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1);
my $disk = $slow->dir;

my $http = <<"CONF";
	server { listen 8080; root $tree/hot; stat_accel on; stat_accel_deadline 20s; stat_accel_open off;
		location /disk/ { alias $disk/; }
		location /try/ { alias $disk/; try_files \$uri \$uri.txt \$uri/ /file; }
		location /list/ { alias $disk/; index none; autoindex on; }
		location /late/ { alias $disk/; stat_accel_deadline 300ms; }
		location /late504/ { alias $disk/; stat_accel_deadline 300ms; stat_accel_late 504; error_page 504 =504 /file; }
		location /app/ { proxy_pass http://127.0.0.1:8081/; }
	}
	server { listen 8081; access_log off; return 200 "app\\n"; }
CONF
my $ng = Test::NginxModule->start($http, root => $tree);

# Sends a request and does not wait for its reply.
sub reply ($c) { return Test::Http::parse(do { local $/; <$c> } // '') }
sub hot_beside ($what) {
	for my $path ('/file', '/app/x') {
		my $began = time;
		is $ng->get($path)->{status}, 200, "$what: $path is answered";
		cmp_ok time - $began, '<', 5, '... at once';
	}
}
my $waiting = sub { return $slow->hanging };

for my $case (['/disk/1', 200, 300_000], ['/disk/none', 404], ['/disk/dir/', 200, 300_000], ['/disk/dir', 301], ['/try/2', 200, 300_000], ['/try/nothing', 200, 3],
	['/list/dir/', 200]) {
	my ($path, $status, $bytes) = @$case;
	$slow->forget;
	$slow->hang;
	my $c = $ng->begin($path);
	ok $slow->wait_hanging(1), "$path asks the disk";
	hot_beside($path);
	$slow->go;
	my $r = reply($c);
	is $r->{status}, $status, "... and gets $status then";
	is length $r->{body}, $bytes, '... whole' if $bytes;
	ok eventually(sub { $ng->last->{request} =~ m{^GET \Q$path\E } }), '... is logged';
	is $ng->last->{status}, 'warmed', '... as warmed';
	cmp_ok $ng->last->{time}, '>', 0, '... with its time';
}

subtest 'equal misses share a question' => sub {
	$slow->forget;
	$slow->hang;
	my @c = map { $ng->begin('/disk/3') } 1 .. 8;
	ok $slow->wait_hanging(1), 'the disk is asked';
	hot_beside('joined');
	is $slow->hanging, 1, '... once';
	$slow->go;
	is scalar(grep { reply($_)->{status} == 200 } @c), 8, 'all are answered';
};

subtest 'clients that leave' => sub {
	$slow->forget;
	$slow->hang;
	my @c = map { $ng->begin("/disk/$_") } 4 .. 9;
	ok $slow->wait_hanging(6), 'six wait';
	for my $c (@c[0 .. 2]) { setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0; close $c }         # a reset
	ok eventually(sub { 3 == (() = $ng->log =~ /499|reset by peer/g) || 3 == scalar grep { /\|499\|/ } split /\n/, Test::Util::slurp("$ng->{dir}/access.log") }), 'a reset ends the request';
	shutdown $c[3], 1;      # sends no more, but reads
	hot_beside('left');
	$slow->go;
	is scalar(grep { reply($_)->{status} == 200 } @c[3 .. 5]), 3, 'the others get their files, one that only sends no more, too';
};

subtest 'a deadline' => sub {
	$slow->forget;
	$slow->hang;
	is $ng->get('/late/10')->{status}, 503, 'the reply says so';
	is $ng->last->{status}, 'late', '... and the log';
	my $r = $ng->get('/late504/11');
	is $r->{status}, 504, 'the status that is set';
	is $r->{body}, 'hot', '... with its page';
	like $ng->log, qr{\[warn\] .*"\Q$disk\E/10" was not in memory after \d+ ms}, 'the error log names the file';
	hot_beside('hung');
	$slow->go;
	ok eventually(sub { $ng->get('/late/10')->{status} == 200 }), 'it is served when the disk is back';
};

subtest 'reload and stop beside a waiting request' => sub {
	$slow->forget;
	$slow->hang;
	my $c = $ng->begin('/disk/12');
	ok $slow->wait_hanging(1), 'it waits';
	kill 'HUP', $ng->{pid};
	ok eventually(sub { 2 <= (() = $ng->log =~ /start worker process \d/g) }), 'new workers';
	hot_beside('reloaded');
	$slow->go;
	is length reply($c)->{body}, 300_000, 'the old worker ends its request';
};

subtest 'where each open asks' => sub {
	my $asks = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0);
	my $far = $asks->dir;
	my $ng = Test::NginxModule->start(<<"CONF", root => $tree);
	server { listen 8080; root $tree/hot; stat_accel on; stat_accel_deadline 20s;
		location /disk/ { alias $far/; }
		location /try/ { alias $far/; try_files \$uri \$uri/ =404; }
		location /late/ { alias $far/; stat_accel_deadline 300ms; }
	}
CONF
	is length $ng->get('/disk/1')->{body}, 300_000, 'a file';
	for my $case (['/disk/1', 200, 300_000], ['/disk/dir/', 200, 300_000], ['/try/2', 200, 300_000]) {
		my ($path, $status, $bytes) = @$case;
		$asks->hang;
		my $c = $ng->connect;
		syswrite $c, request_head('GET', $path);
		ok $asks->wait_hanging(1), "$path asks the file system";
		my $began = time;
		is $ng->get('/file')->{status}, 200, '... a hot file beside it';
		cmp_ok time - $began, '<', 5, '... at once';
		$asks->go;
		is length reply($c)->{body}, $bytes, '... the file';
	}
	$asks->hang;
	is $ng->get('/late/1')->{status}, 503, 'a hung mount ends at the deadline';
	is $ng->get('/file')->{status}, 200, '... and costs no other file';
	$asks->go;
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
	is $ng->get('/disk/none')->{status}, 404, 'an absent file';
	$ng->stop;
	cmp_ok $asks->stop->{opens}, '<=', 5, 'nginx has opened none itself';
};

# It does not know RWF_NOWAIT, and its files are in memory.
subtest 'files on tmpfs' => sub {
	plan skip_all => 'valgrind does not know openat2(2)' if $ENV{NGINX_UNDER};
	plan skip_all => '/dev/shm is not on tmpfs' if (qx{stat -f -c %T /dev/shm} // '') ne "tmpfs\n" || !-w '/dev/shm';
	my $shm = File::Temp->newdir('nginx-XXXXXX', DIR => '/dev/shm');
	chmod 0755, "$shm";
	put("$shm/file", 'y' x 20_000);
	my $ng = Test::NginxModule->start("server { listen 8080; root $shm; stat_accel on; stat_accel_remember 0; }", root => $tree);
	for my $range ([], [Range => 'bytes=5000-9000']) {
		like $ng->get('/file', @$range)->{status}, qr/^20[06]$/, 'a file';
		ok eventually(sub { $ng->last->{code} =~ /^20[06]$/ }), '... is logged';
		is $ng->last->{status}, 'hot', '... as hot';
	}
	$ng->stop;
};

unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
$ng->stop;
$slow->stop;
done_testing;
