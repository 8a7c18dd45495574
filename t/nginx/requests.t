# Requests that nginx makes of requests, and those whose client leaves: each keeps its own state.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http ();
use Test::NginxModule;
use Test::Util qw(eventually put slurp);
use Accel::Slowfs;
use File::Temp ();
use IO::Select;
use IO::Socket::INET;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-requests-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(disk disk/dir hot cache);
chmod 0777, "$tree/cache";
put("$tree/disk/$_", 'x' x 3000) for qw(2 file);
put("$tree/hot/file", 'hot' x 1000);
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1);
my $disk = $slow->dir;
symlink $disk, "$tree/cache/$_" for 0 .. 9, 'a' .. 'f';        # cached files are on the disk, which cannot be written to

sub body ($c) { return Test::Http::parse(do { local $/; <$c> } // '')->{body} }
sub reset_ ($c) { setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0; close $c }
sub well ($ng) { unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert' }

sub server ($lines) { return "server { listen 8080; root $tree/hot; stat_accel on; $lines location /disk/ { alias $disk/; } } server { listen 8081; access_log off; root $tree/hot; }" }

for my $what (['a file' => "alias $disk/;"], ['proxy_cache' => 'proxy_pass http://127.0.0.1:8081/; proxy_cache c;']) {
	my ($name, $lines) = @$what;
	subtest "$name: post_action of a client that has left" => sub {
		my $ng = Test::NginxModule->start("proxy_cache_path $tree/cache levels=1 keys_zone=c:1m use_temp_path=off;" . server("location /left/ { $lines post_action /disk/2; }"), root => $tree);
		$slow->forget;
		$slow->hang;
		my $c = $ng->begin('/left/file');
		ok $slow->wait_hanging(1), 'it waits';
		my $other = $ng->begin('/left/file');
		reset_($c);
		ok $slow->wait_hanging(2), 'its action waits for another file';
		$slow->go;
		ok length body($other), 'who waits for the same is answered';
		ok eventually(sub { 2 == (() = slurp("$ng->{dir}/access.log") =~ m{^GET /left/file}mg) }), 'both are logged';
		well($ng);
	};
}

# Without the module, so nothing takes the request out of its question.
subtest 'post_action of a client that has left leads to a location without the module' => sub {
	my $backend = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') // die "listen: $!";
	my $ng = Test::NginxModule->start(server("location /left/ { alias $disk/; post_action /off; } location = /off { stat_accel off; proxy_pass http://127.0.0.1:${\$backend->sockport}; }"), root => $tree);
	$slow->forget;
	$slow->hang;
	my $c = $ng->begin('/left/file');
	ok $slow->wait_hanging(1), 'it waits';
	my $other = $ng->begin('/disk/file');
	reset_($c);
	my $asked = IO::Select->new($backend);
	ok $asked->can_read(8), 'its action asks a backend';
	my $first = $backend->accept;
	$slow->go;
	is length body($other), 3000, 'who waits for the same is answered';
	ok !$asked->can_read(0), '... and the backend is not asked again';
	syswrite $first, "HTTP/1.0 200 OK\r\n\r\nx";
	close $first;
	ok eventually(sub { slurp("$ng->{dir}/access.log") =~ m{^GET /left/file}m }), 'it ends';
	well($ng);
};

subtest 'no thread is started for nothing' => sub {
	my $threads = sub ($word) {
		my $ng = Test::NginxModule->start("server { listen 8080; root $tree/hot; stat_accel $word; location /in/ { alias $tree/hot/; } }", root => $tree);
		is length $ng->get($_)->{body}, 3000, "$word: $_" for '/file', '/in/file';
		return scalar(my @all = glob "/proc/${\$ng->worker}/task/*");
	};
	is $threads->('off'), 1, 'off: the event loop alone';
	cmp_ok $threads->('on'), '>', 1, 'on: threads, too';
};

subtest 'a memory of no names' => sub {
	my $ng = Test::NginxModule->start('stat_accel_names 0; ' . server(''), root => $tree);
	is length body($ng->begin('/file')), 3000, 'files are served';
	well($ng);
	ok !eval { Test::NginxModule->start('stat_accel_names 1152921504606846976; ' . server(''), root => $tree) }, 'one that no machine has';
	like $@, qr/value must be between 0 and 1073741824/, '... is refused';
};

subtest 'a long memory' => sub {
	my $ng = Test::NginxModule->start(server('stat_accel_remember 30d;'), root => $tree);
	is length body($ng->begin('/file')), 3000, 'a file' for 1 .. 2;
	is $ng->last->{status}, 'remembered', '... is remembered';
};

subtest 'try_files ends at a directory' => sub {
	my $ng = Test::NginxModule->start(server("location /try/ { alias $disk/; stat_accel_deadline 3s; try_files \$uri/ \$uri.2 =404; }"), root => $tree);
	$slow->forget;
	my $c = $ng->begin('/disk/dir');
	body($c);
	$slow->hang('*.2');
	is Test::Http::parse(do { local $/; readline $ng->begin('/try/dir') } // '')->{status}, 301, 'nothing else is looked for';
	is $slow->hanging, 0, '... nor asked';
	$slow->go;
};

# HTTP/2 without a library: one stream, its head in literals.
sub frame ($type, $flags, $id, $content = '') { return substr(pack('N', length $content), 1) . pack('CCN', $type, $flags, $id) . $content }

subtest 'HTTP/2: a body of no bytes whose end comes later' => sub {
	my $backend = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') // die "listen: $!";
	my $ng = Test::NginxModule->start("proxy_cache_path /run/cache keys_zone=c:1m; server { listen 8080 http2; stat_accel on; location / { proxy_pass http://127.0.0.1:${\$backend->sockport}; proxy_cache c; } }", root => $tree);
	my $c = $ng->connect;
	syswrite $c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . frame(4, 0, 0) . frame(1, 4, 1, "\x82\x86\x84\x01\x01x\x0f\x0d\x010");
	my $asked = IO::Select->new($backend);
	ok !$asked->can_read(0.3), 'the request is not passed on before';
	syswrite $c, frame(0, 1, 1);
	ok $asked->can_read(5), '... but then';
	my $first = $backend->accept;
	ok !$asked->can_read(0.3), '... once';
	syswrite $first, "HTTP/1.0 200 OK\r\n\r\nx";
	close $first;
	ok eventually(sub { slurp("$ng->{dir}/access.log") =~ /HTTP\/2.0\|200/ }), 'it is answered';
	well($ng);
};

$slow->stop;
done_testing;
