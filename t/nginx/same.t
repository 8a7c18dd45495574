# With the module nginx gives the same answers as without: status, head, body and line of the access log, cold and hot, by HTTP/1.1 and HTTP/2.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Compress::Gzip qw(gzip);
use Test::App ();
use Test::More;
use Test::Http qw(request_head);
use Test::NginxModule;
use Test::Util qw(eventually need_program put slurp);

need_program('curl', 'curl');

my $tree = File::Temp->newdir('nginx-same-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(dir empty deny auth dir/sub upload wp);
my $text = join '', map { "line $_ of a text\n" } 1 .. 500;
put("$tree/$_", $text) for qw(a.txt dir/b.txt auth/c.txt deny/d.txt page.html page.shtml dir/sub/e.txt fallback.html);
put("$tree/index.html", 'front'), put("$tree/dir/index.htm", 'index of dir'), put("$tree/404.html", 'my own page'), put("$tree/none.txt", '');
gzip(\$text => "$tree/a.txt.gz", -Minimal => 1);
gzip(\$text => "$tree/onlygz.txt.gz", -Minimal => 1);
put("$tree/page.shtml", 'before <!--#include virtual="/a.txt" --> and <!--#include virtual="/none" --> after');
put("$tree/wp/$_", "<?php # $_") for qw(index.php wp-login.php .env style.css);
put("$tree/htpasswd", 'me:{PLAIN}secret');
symlink 'a.txt', "$tree/link.txt";
symlink '/etc/passwd', "$tree/outside.txt";
chmod 0, put("$tree/secret.txt", 'secret');
system 'chown', '-R', 'www-data', "$tree/upload" if $> == 0;

# An application answers with what it got: the name of its script, above all.
my $app = Test::App->start;
chmod 0755, $app->file(".");
chmod 0777, $app->socket;
my $fpm = 'fastcgi_pass unix:' . $app->socket . '; fastcgi_param SCRIPT_NAME /app/env; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; '
    . 'fastcgi_param REST $fastcgi_path_info; fastcgi_param URI $request_uri; fastcgi_param QUERY_STRING $query_string;';
my %auth = (Authorization => 'Basic bWU6c2VjcmV0');     # me:secret
my @files = map { [GET => $_] } qw(/a.txt /none /dir /dir/ /dir/sub/ /empty/ /none.txt /link.txt /secret.txt /a.txt/b /%2e%2e/x /dir/b.txt?x=1);
my @ranges = map { [GET => '/a.txt', Range => $_] } 'bytes=0-9', 'bytes=-5', 'bytes=5-', 'bytes=9-5', 'bytes=99999-', 'bytes=0-1,3-4', 'lines=1-2';
# name => lines of the location or server, requests
my @sites = (
	['root' => 'root /srv/www;', @files, @ranges, [HEAD => '/a.txt'], [HEAD => '/none'], [POST => '/a.txt'], [PUT => '/a.txt'], [DELETE => '/a.txt']],
	['alias' => 'location /x/ { alias /srv/www/; } location = /one { alias /srv/www/a.txt; }', map { [GET => $_] } qw(/x/a.txt /x/none /x/dir /x/dir/ /one /x)],
	['alias by expression' => 'location ~ ^/u/(.*)$ { alias /srv/www/$1; }', map { [GET => $_] } qw(/u/a.txt /u/none /u/dir/ /u/dir)],
	['try_files' => 'root /srv/www; location / { try_files $uri $uri.txt $uri/ /fallback.html; }', map { [GET => $_] } qw(/a.txt /a /dir /dir/ /empty /none)],
	['try_files, alias' => 'location /x/ { alias /srv/www/; try_files $uri $uri.txt =404; }', map { [GET => $_] } qw(/x/a.txt /x/a /x/none /x/dir/)],
	['try_files, a status' => 'root /srv/www; location / { try_files $uri =410; }', map { [GET => $_] } qw(/a.txt /none /dir)],
	['named location' => 'root /srv/www; location / { try_files $uri @app; } location @app { return 200 "app\n"; }', map { [GET => $_] } qw(/a.txt /none /dir/)],
	['named location with files' => 'root /srv/www/none; location / { try_files $uri @w; } location @w { root /srv/www; }', map { [GET => $_] } qw(/a.txt /none)],
	['index' => 'root /srv/www; index none.html index.htm index.html /fallback.html;', map { [GET => $_] } qw(/ /dir/ /empty/ /nodir/)],
	['index with a variable' => 'root /srv/www; index $arg_i index.html;', map { [GET => $_] } qw(/?i=a.txt /dir/?i=b.txt /dir/?i=none /)],
	['autoindex' => 'root /srv/www; index none.html; autoindex on; autoindex_exact_size on;', map { [GET => $_] } qw(/dir/ /empty/ /dir/sub/ /nodir/)],
	['random_index' => 'root /srv/www/dir; location / { random_index on; }', [GET => '/sub/']],
	['gzip_static' => 'root /srv/www; gzip_static on;', map { ([GET => $_], [GET => $_, 'Accept-Encoding' => 'gzip']) } qw(/a.txt /onlygz.txt /dir/b.txt /none)],
	['gzip_static always' => 'root /srv/www; gzip_static always;', map { [GET => $_] } qw(/a.txt /onlygz.txt /dir/b.txt)],
	['rewrite' => 'root /srv/www; rewrite ^/old/(.*) /$1 last; rewrite ^/brk/(.*) /dir/$1 break;', map { [GET => $_] } qw(/old/a.txt /old/none /brk/b.txt)],
	['error pages' => 'root /srv/www; error_page 404 /404.html; error_page 403 = /a.txt; location = /loop { error_page 404 /loop2; try_files /none =404; }',
	    map { [GET => $_] } qw(/none /secret.txt /loop /404.html)],
	['deny' => 'root /srv/www; location /deny/ { deny all; }', map { [GET => $_] } qw(/deny/d.txt /deny/none)],
	['auth_basic' => 'root /srv/www; location /auth/ { auth_basic x; auth_basic_user_file /srv/www/htpasswd; }',
	    map { ([GET => $_], [GET => $_, %auth]) } qw(/auth/c.txt /auth/none)],
	['satisfy any' => 'root /srv/www; location /auth/ { satisfy any; deny all; auth_basic x; auth_basic_user_file /srv/www/htpasswd; }',
	    map { ([GET => $_], [GET => $_, %auth]) } qw(/auth/c.txt /auth/none)],
	['auth_request of its own' => 'root /srv/www; location /auth/ { auth_request /ok; } location /deny/ { auth_request /no; } location = /ok { return 204; } location = /no { return 403; }',
	    map { [GET => $_] } qw(/auth/c.txt /deny/d.txt /auth/none)],
	['auth_request for a file' => 'root /srv/www; location /auth/ { auth_request /a.txt; } location /deny/ { auth_request /none; }', map { [GET => $_] } qw(/auth/c.txt /deny/d.txt)],
	['X-Accel-Redirect' => 'location / { proxy_pass http://127.0.0.1:8081; } location /inside/ { internal; alias /srv/www/; }',
	    map { [GET => $_] } qw(/redirect/a.txt /redirect/none /inside/a.txt)],
	['proxy' => 'location / { proxy_pass http://127.0.0.1:8081; }', map { [GET => $_] } qw(/a.txt /none /dir/)],
	['proxy_cache' => 'location / { proxy_pass http://127.0.0.1:8081; proxy_cache c; proxy_cache_valid 200 404 1m; add_header X-C $upstream_cache_status; }',
	    map { ([GET => $_], [GET => $_], [HEAD => $_]) } qw(/a.txt /none /a.txt?x)],
	['proxy_cache with keys, locks and a body' => 'location / { proxy_pass http://127.0.0.1:8081; proxy_cache c; proxy_cache_key "$arg_k $request_body"; proxy_cache_methods GET POST;
	    proxy_cache_lock on; proxy_cache_valid any 1m; add_header X-C $upstream_cache_status; proxy_cache_bypass $arg_b; }',
	    map { ([GET => $_], [GET => $_]) } qw(/a.txt?k=1 /dir/b.txt?k=1 /a.txt?k=2&b=1)],
	['SSI' => 'root /srv/www; ssi on; ssi_silent_errors on;', [GET => '/page.shtml'], [GET => '/page.html']],
	['addition' => 'root /srv/www; location / { add_after_body /dir/b.txt; addition_types *; }', [GET => '/a.txt'], [GET => '/none']],
	['slice' => 'location / { slice 1k; proxy_pass http://127.0.0.1:8081; proxy_cache c; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1m; }',
	    [GET => '/a.txt'], [GET => '/a.txt'], [GET => '/a.txt', Range => 'bytes=100-3000']],
	['open_file_cache' => 'root /srv/www; open_file_cache max=10 inactive=60s; open_file_cache_errors on;', @files, @ranges],
	['disable_symlinks' => 'root /srv/www; disable_symlinks on;', map { [GET => $_] } qw(/a.txt /link.txt /outside.txt)],
	['limits' => 'root /srv/www; limit_req zone=l burst=1 nodelay; limit_conn k 1;', map { [GET => $_] } qw(/a.txt /none /a.txt /a.txt)],
	['dav' => 'root /srv/www; location /upload/ { dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; }',
	    [DELETE => '/upload/none'], [MKCOL => '/upload/m/'], [DELETE => '/upload/m/'], [MOVE => '/upload/none', Destination => '/upload/x'], [GET => '/upload/']],
	['mp4 and flv' => 'root /srv/www; location ~ \.txt$ { mp4; } location ~ \.html$ { flv; }', [GET => '/a.txt'], [GET => '/page.html?start=5'], [GET => '/none.txt'], [GET => '/x.txt']],
	['php-fpm' => "root /srv/www/wp; index index.php; location ~ [^/]\\.php(/|\$) { fastcgi_split_path_info ^(.+?\\.php)(/.*)\$; if (!-f \$document_root\$fastcgi_script_name) { return 404; } $fpm }",
	    map { [GET => $_] } qw(/ /index.php /index.php/a/b?x=1 /none.php /style.css)],
	['WordPress' => "root /srv/www/wp; index index.php; location / { try_files \$uri \$uri/ /index.php?\$args; } location = /favicon.ico { log_not_found off; access_log off; }
	    location ~ /\\. { deny all; } location ~ \\.php\$ { try_files \$uri =404; fastcgi_index index.php; $fpm } location ~* \\.(js|css|png)\$ { expires max; log_not_found off; }",
	    map { [GET => $_] } qw(/ /2026/11/a-post/?p=1 /wp-login.php /wp-content/none.php /style.css /none.css /.env /favicon.ico), ],
	['proxy_cache in if and limit_except' => 'location / { proxy_pass http://127.0.0.1:8081; proxy_cache c; proxy_cache_valid 200 1m; add_header X-C $upstream_cache_status;
	    if ($arg_x) { add_header X-If $upstream_cache_status; } limit_except GET { allow 127.0.0.1; } }', map { ([GET => $_], [GET => $_], [POST => $_]) } qw(/a.txt /a.txt?x=1)],
	['if' => 'root /srv/www; location / { if ($arg_x) { rewrite .* /dir/b.txt break; } }', map { [GET => $_] } qw(/a.txt /a.txt?x=1)],
	['if with a handler' => 'proxy_cache c; proxy_cache_valid 200 1m; location / { proxy_pass http://127.0.0.1:8081; if ($arg_x) { set $y 1; } if ($arg_off) { stat_accel off; } }
	    location ~ \.html$ { root /srv/www; flv; if ($arg_x) { set $y 1; } if ($arg_off) { stat_accel off; } }',
	    map { [GET => $_] } qw(/a.txt /a.txt?x=1 /a.txt?off=1 /page.html?x=1 /page.html?off=1 /page.html?x=1&off=1)],
	['stub' => 'location / { stub_status; } location /r { return 302 /a; } location /gif { empty_gif; }', [GET => '/r'], [GET => '/gif']],
	['long names' => 'root /srv/www; large_client_header_buffers 4 32k;', [GET => '/' . 'n' x 5000], [GET => '/' . 'd/' x 2500 . 'x'], [GET => '/dir/' . 'n' x 255]],
);

sub http ($site, $accel) {
	my ($name, $lines) = @$site;
	return <<"HTTP";
	proxy_cache_path /run/cache levels=1:2 keys_zone=c:1m;
	limit_req_zone \$server_addr zone=l:1m rate=1r/m;
	limit_conn_zone \$server_addr zone=k:1m;
	server { listen 8080; listen 8082 http2; $accel $lines }
	server { listen 8081; access_log off; root /srv/www; location /redirect/ { add_header X-Accel-Redirect /inside/; rewrite ^/redirect/(.*) /\$1; }
		location /inside/ { return 404; } location = /redirect/a.txt { add_header X-Accel-Redirect /inside/a.txt; return 200 x; }
		location = /redirect/none { add_header X-Accel-Redirect /inside/none; return 200 x; } }
HTTP
}

# A reply without what differs from one second to the next.
sub plain ($ng, $raw) {
	return $raw =~ s/^(?:Date|Expires): .*\r\n//mgir =~ s/\b(?:$ng->{ports}{8080}|$ng->{ports}{8082})\b/PORT/gr =~ s/\b\d{20}\b/BOUNDARY/gr;
}

sub replies ($ng, $requests) {
	return map { my ($method, $path, %header) = @$_; plain($ng, $ng->raw(request_head($method, $path, %header))) } @$requests;
}

# The same by HTTP/2, each on a connection of its own.
sub replies2 ($ng, $requests) {
	return map {
		my ($method, $path, %header) = @$_;
		my @method = $method eq 'HEAD' ? '-I' : ('-X', $method);
		open my $curl, '-|', 'curl', '-s', '-i', '--http2-prior-knowledge', '--path-as-is', '--max-time', 20, @method, (map { ('-H', "$_: $header{$_}") } sort keys %header), $ng->url2 . $path
		    or die "curl: $!";
		plain($ng, do { local $/; <$curl> } // '');
	} @$requests;
}

# The lines of the log, of which there are n; they are written after the replies.
sub access ($ng, $n) {
	my @line;
	eventually(sub { @line = split /\n/, slurp("$ng->{dir}/access.log"); @line >= $n });
	return join "\n", map { s/\|[^|]*$//r } @line;
}

my (%found, $scripts);
for my $site (@sites) {
	my ($name, undef, @requests) = @$site;
	my $without = Test::NginxModule->start(http($site, '') =~ s/stat_accel off;//gr, root => $tree, without => 1);
	my @want = (replies($without, \@requests), replies2($without, \@requests));
	ok !grep({ !m{^HTTP/2 \d} } @want[@requests .. $#want]), "$name: HTTP/2";
	$scripts += grep { /^SCRIPT_FILENAME=\Q$tree\E\/wp\//m } @want;
	my $lines = 2 * grep { $_->[1] ne '/favicon.ico' } @requests;
	for my $how ('stat_accel_remember 50ms;', 'stat_accel_open on;') {
		my $with = Test::NginxModule->start(http($site, "stat_accel on; $how"), root => $tree);
		my @got = (replies($with, \@requests), replies2($with, \@requests));
		is $got[$_], $want[$_], "$how $name: @{ $requests[$_ % @requests] }[0, 1]" =~ s/(.{90}).*/$1.../r . ($_ < @requests ? '' : ', HTTP/2') for keys @got;
		is access($with, $lines), access($without, $lines), '... and its lines in the log';
		unlike $with->log, qr/\[(?:alert|emerg)\]/, '... no alert';
		$found{$_}++ for map { /(\w+) \S+$/ } split /\n/, slurp("$with->{dir}/access.log");
	}
}
cmp_ok $scripts, '>=', 10, 'applications got the names of their scripts';
cmp_ok $found{$_}, '>', 5, "$found{$_} were $_" for qw(hot remembered warmed none);

done_testing;
