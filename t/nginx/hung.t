# More requests hang on one disk than there are threads: files of other disks that are in memory are served. With an accelerator no thread of nginx
# hangs, so nginx reloads and stops.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Fcgi ();
use Test::Http qw(request_head);
use Test::NginxModule;
use Test::Util qw(eventually put slurp);
use Accel::Slowfs;
use File::Temp ();
use IO::Select;
use Socket ();
use Time::HiRes qw(time);

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-hung-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/disk";
put("$tree/file", 'hot');
put("$tree/disk/$_", 'x') for 1 .. 40;
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 64, lookup_ms => 0, read_ms => 0, no_open => 1);
my $ng = Test::NginxModule->start("server { listen 8080; root $tree; stat_accel on; stat_accel_open off; stat_accel_remember 50ms; stat_accel_deadline 5s; location /disk/ { alias ${\$slow->dir}/; } }", root => $tree);

$slow->forget;
$slow->hang;
my @c = map { my $c = $ng->connect; syswrite $c, request_head('GET', "/disk/$_"); $c } 1 .. 40;
ok $slow->wait_hanging(16), 'many hang';
for (1 .. 3) {
	select undef, undef, undef, 0.1;        # what was remembered is forgotten
	is $ng->get('/file')->{status}, 200, 'another is served';
	is $ng->last->{status}, 'hot', '... from memory';
}
$slow->go;
$ng->stop;
# ---------------------------------------------------------------- the accelerator opens

my $app = Test::Fcgi->start({ socket => "$tree/app.sock" }, "--root=${\$slow->dir}", $> == 0 ? '--user=www-data' : ());
chmod 0666, $app->socket;
my $http = <<"CONF";
	server { listen 8080; root $tree; stat_accel unix:${\$app->socket}; stat_accel_deadline 2s;
		location /disk/ { alias ${\$slow->dir}/; }
		location /proxied/ { proxy_pass http://127.0.0.1:8081/; }
		location = /counters { stat_accel_status; } }
	server { listen 8081; access_log off; location / { return 200 proxied; } }
CONF
sub status ($c) { return Test::Http::parse(do { local $/; readline $c } // '')->{status} }
sub took ($do) { my $began = time; $do->(); return time - $began }
sub hung_threads ($pid) { return grep { slurp("$_/wchan") =~ /fuse|request_wait/ } glob "/proc/$pid/task/*" }
sub held ($pid) { return grep { (readlink $_ // '') =~ /^\Q${\$slow->dir}\E/ } glob "/proc/$pid/fd/*" }
sub gone ($pid) { return eventually(sub { !-e "/proc/$pid" }, 10) }
# Requests that hang, for names that nobody has looked up.
my $next = 0;
sub hang ($ng, $n) { return map { $ng->begin('/disk/new' . ++$next) } 1 .. $n }

subtest 'a mount that hangs for ever' => sub {
	my $ng = Test::NginxModule->start($http, root => $tree);
	is $ng->get('/disk/1')->{body}, 'x', 'a file';
	like $ng->get('/counters')->{body}, qr/questions\.threads: 0\n.*descriptors\.given: 1\n/s, '... whose descriptor came from the accelerator';
	$slow->forget;
	$slow->hang;
	my @hung = hang($ng, 40);
	ok $slow->wait_hanging(1), 'many requests hang';
	cmp_ok took(sub { is $ng->get('/file')->{body}, 'hot', 'another file' }), '<', 1.9, '... at once';
	cmp_ok took(sub { is $ng->get('/proxied/')->{body}, 'proxied', 'a proxied request' }), '<', 1.9, '... at once';
	cmp_ok took(sub { is scalar(grep { status($_) == 503 } @hung), 40, 'the hung ones end' }), '<', 10, '... at the deadline';
	my $worker = $ng->worker;
	is scalar(hung_threads($worker)), 0, 'no thread hangs';
	is scalar(held($worker)), 0, 'no descriptor is left';

	@hung = hang($ng, 3);
	ok eventually(sub { $ng->get('/counters')->{body} =~ /questions\.out: [1-9]/ }), 'nginx reloads while requests hang';
	kill 'HUP', $ng->{pid};
	ok gone($worker), 'the old worker ends';
	is scalar(grep { status($_) == 503 } @hung), 3, '... after its requests';
	is $ng->get('/file')->{body}, 'hot', 'the new one serves';

	@hung = hang($ng, 3);
	$worker = $ng->worker;
	ok eventually(sub { $ng->get('/counters')->{body} =~ /questions\.out: [1-9]/ }), 'nginx quits while requests hang';
	kill 'QUIT', $ng->{pid};
	ok gone($worker), 'the worker ends';
	is scalar(grep { status($_) == 503 } @hung), 3, '... after its requests';
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';

	$ng = Test::NginxModule->start($http, root => $tree);
	@hung = hang($ng, 3);
	$worker = $ng->worker;
	ok eventually(sub { $ng->get('/counters')->{body} =~ /questions\.out: [1-9]/ }), 'nginx stops while requests hang';
	kill 'TERM', $ng->{pid};
	ok gone($worker), 'the worker ends';
	ok $slow->hanging, 'the mount hangs all the time';
	$slow->go;
};

is $app->stop, 0, 'the accelerator ends';

subtest 'close(2) hangs' => sub {
	mkdir "$tree/flushed";
	put("$tree/flushed/long", 'x' x 8_000_000);
	my $flushed = Accel::Slowfs->start(source => "$tree/flushed", spindles => 64, lookup_ms => 0, read_ms => 0, no_open => 1, flush => 1);
	my $ng = Test::NginxModule->start("server { listen 8080; root $tree; stat_accel on; location /flushed/ { alias ${\$flushed->dir}/; } }", root => $tree);
	my $c = $ng->begin('/flushed/long');
	ok sysread($c, my $head, 1), 'nginx sends a file';
	$flushed->hang;
	setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0;
	close $c;
	ok $flushed->wait_hanging(1), 'its client leaves, and closing it hangs';
	my $other = $ng->begin('/file');
	ok IO::Select->new($other)->can_read(1), 'another file is served at once';
	$flushed->go;
	is status($other), 200, '... with its reply';
	ok eventually(sub { !grep { (readlink $_ // '') =~ m{/long$} } glob "/proc/${\$ng->worker}/fd/*" }), 'no descriptor stays';
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
	$ng->stop;
	$flushed->stop;
};

# An open() drops the bytes of the file from memory. They are read through the descriptor that nginx sends.
put("$tree/disk/long", 'x' x 10_000_000);
my $drops = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, drop_at_open => 1);
for my $mode ('accelerator', 'threads') {
	my $app = Test::Fcgi->start({ socket => "$tree/drops.sock" }, '--mode=auth', "--root=${\$drops->dir}", $> == 0 ? '--user=www-data' : ());
	chmod 0666, $app->socket;
	my $where = $mode eq 'threads' ? 'on' : 'unix:' . $app->socket;
	my $ng = Test::NginxModule->start("server { listen 8080; root $tree; stat_accel $where; stat_accel_deadline 20s; location /disk/ { alias ${\$drops->dir}/; } }", root => $tree);
	for my $time (qw(first second)) {
		subtest "the disk hangs while nginx sends ($mode, the $time time)" => sub {
			my $c = $ng->begin('/disk/long');
			is sysread($c, my $in, 1), 1, 'the reply begins';
			$drops->hang;
			my $reads = $drops->counts->{reads};
			cmp_ok took(sub { is $ng->get('/file')->{body}, 'hot', 'another file' }), '<', 5, '... at once';
			1 while IO::Select->new($c)->can_read(5) && sysread $c, $in, 1 << 20, length $in;
			is length(Test::Http::parse($in)->{body}), 10_000_000, 'the whole file comes';
			is $drops->counts->{reads}, $reads, 'nginx reads nothing from the disk';
			is $drops->hanging, 0, '... nor does it wait for it';
			$drops->go;
		};
	}
	$ng->stop;
	is $app->stop, 0, 'the accelerator ends';
}
$drops->stop;
$slow->stop;
done_testing;
