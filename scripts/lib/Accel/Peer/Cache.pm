package Accel::Peer::Cache;
# What nginx needs to answer from files of proxy_cache.
#
#     my $cache = { cold => "$dir/cold", hot => "$dir/hot" };
#     my $nginx = Accel::Peer->start('nginx', root => $docroot, cache => { %$cache, origin => 1 });
#     # GET /cold/NAME is 100k.bin of the root, kept below cold; GET /1k.bin is kept below hot
#
# http($peer) and lines($peer) are lines for the http block and the server block. Without `origin` nginx has only what is cached, and
# anything else is 502. With `front` each request asks the accelerator first, which args($peer) tell of both caches. file($dir, $uri) is the
# file of an answer.
use v5.36;
use Digest::MD5 qw(md5_hex);

sub file ($dir, $uri) {
	my $hash = md5_hex($uri);
	return join '/', $dir, substr($hash, -1), substr($hash, -3, 2), $hash;
}

sub args ($s) { return map { "--nginx-cache=$_=$s->{cache}{$_}:1:2" } qw(cold hot) }

sub http ($s) {
	my $c = $s->{cache};
	my @paths = map { "\tproxy_cache_path $c->{$_} levels=1:2 keys_zone=$_:10m inactive=30d use_temp_path=off;" } qw(cold hot);
	return join "\n", @paths, $c->{origin} ? <<"LINES" : '';
	server {
		listen unix:$s->{dir}/origin;
		root "$s->{root}";
		rewrite ^/cold/ /100k.bin break;
	}
LINES
}

sub lines ($s) {
	my $keep = join ' ', "proxy_pass http://unix:$s->{dir}/origin;", 'proxy_cache_key $request_uri;', 'proxy_cache_valid 200 30d;',
	    $s->{front} ? 'auth_request /stat-accel;' : '';
	return <<"LINES" . ($s->{front} ? <<"FRONT" : '');
		location /cold/ { set \$cache cold; proxy_cache cold; $keep }
		location = /1k.bin { set \$cache hot; proxy_cache hot; $keep }
LINES
		location = /stat-accel { internal;
			fastcgi_pass unix:@{[ $s->{stat_accel}->socket ]};
			fastcgi_pass_request_body off;
			fastcgi_param WARM_CACHE_KEY \$request_uri;
			fastcgi_param WARM_CACHE \$cache;
			fastcgi_param REMOTE_ADDR \$remote_addr;
			fastcgi_param REQUEST_METHOD \$request_method; }
FRONT
}

1;
