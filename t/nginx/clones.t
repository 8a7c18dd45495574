# Subrequests that begin at the content handler: slices after the first, and proxy_cache_background_update. Their files are waited for, too.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http ();
use Test::NginxModule;
use Test::Util qw(eventually put slurp);
use Accel::Slowfs;
use Digest::MD5 qw(md5_hex);
use File::Temp ();
use IO::Select;
use JSON::PP ();

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-clones-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(www disk disk/cache);
chmod 0777, "$tree/disk/cache";
put("$tree/www/big", join '', map { sprintf "%09d\n", $_ } 1 .. 300);
put("$tree/www/small", 'small');

sub start ($cache) {
	return Test::NginxModule->start(<<"CONF", root => $tree);
	proxy_cache_path $cache keys_zone=c:1m use_temp_path=off;
	server { listen 8080; root $tree/www; stat_accel on; stat_accel_open off; stat_accel_remember 0; postpone_output 0; stat_accel_deadline 20s;
		proxy_cache c; add_header X-C \$upstream_cache_status;
		location /sliced/ { slice 1k; proxy_pass http://127.0.0.1:8081/; proxy_cache_key \$uri\$slice_range; proxy_set_header Range \$slice_range; proxy_cache_valid 206 1h; }
		location /late/ { slice 1k; proxy_pass http://127.0.0.1:8081/; proxy_cache_key /sliced/big\$slice_range; proxy_set_header Range \$slice_range; proxy_cache_valid 206 1h;
			stat_accel_deadline 300ms; }
		location /stale/ { proxy_pass http://127.0.0.1:8081/; proxy_cache_valid 200 1s; proxy_cache_use_stale updating; proxy_cache_background_update on; }
		location = /status { stat_accel_status json; }
	}
	server { listen 8081; access_log off; root $tree/www; }
CONF
}
sub all ($c) {
	my ($raw, $until) = ('', time + 20);
	while (IO::Select->new($c)->can_read($until - time)) { sysread $c, $raw, 65536, length $raw or last }
	return $raw;
}
sub counters ($ng) { return JSON::PP::decode_json($ng->get('/status')->{body})->{counters} }
sub requests ($ng) { my $c = counters($ng); my $n = 0; $n += $c->{$_} for grep { /^nginx\.requests\./ } keys %$c; return $n }
# Does it answer a hot file now?
sub answers ($ng) { my $c = $ng->begin('/small'); return IO::Select->new($c)->can_read(3) ? Test::Http::parse(all($c))->{body} : 'nothing in 3 s' }

my $big = slurp("$tree/www/big");
my $filled = start("$tree/disk/cache");
is $filled->get('/sliced/big')->{body}, $big, 'slices are cached';
$filled->stop;
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1);
my $second = md5_hex('/sliced/bigbytes=1024-2047');
ok -e "$tree/disk/cache/$second", '... the second one, too';
my $ng = start($slow->dir . '/cache');

subtest 'the second slice waits' => sub {
	$slow->forget;
	$slow->hang("*$second");
	my $c = $ng->begin('/sliced/big');
	ok $slow->wait_hanging(1), 'its file is asked for';
	is answers($ng), 'small', '... while nginx answers another request';
	$slow->go;
	is Test::Http::parse(all($c))->{body}, $big, 'the answer is whole';
};

subtest 'the second slice is late' => sub {
	$slow->forget;
	$slow->hang("*$second");
	my $raw = all($ng->begin('/late/big'));
	like $raw, qr/^HTTP\S+ 200 /, 'the answer begins';
	is Test::Http::parse($raw)->{body}, substr($big, 0, 1024), '... and ends after the first slice';
	is answers($ng), 'small', 'nginx goes on';
	$slow->go;
};

subtest 'a client that leaves meanwhile' => sub {
	$slow->forget;
	$slow->hang("*$second");
	my $c = $ng->begin('/sliced/big');
	ok $slow->wait_hanging(1), 'it waits';
	my $left = counters($ng)->{'nginx.requests.left'};
	setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0;
	close $c;
	ok eventually(sub { counters($ng)->{'nginx.requests.left'} == $left + 1 }), 'its request ends';
	is answers($ng), 'small', 'nginx goes on';
	$slow->go;
	is $ng->get('/sliced/big')->{body}, $big, '... and serves the file';
};

subtest 'an update in the background' => sub {
	my $ng = start('/run/cache');
	is $ng->get('/stale/small')->{header}{'x-c'}, 'MISS', 'it is fetched';
	my ($before, $r);
	ok eventually(sub { $before = requests($ng); $r = $ng->get('/stale/small'); $r->{header}{'x-c'} eq 'STALE' }), '... is stale later';
	is $r->{body}, 'small', '... and served';
	ok eventually(sub { requests($ng) == $before + 2 }), 'the request that updates it has looked at its file';
	is $ng->get('/stale/small')->{header}{'x-c'}, 'HIT', 'it is up to date';
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
};

unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
$ng->stop;
$slow->stop;
done_testing;
