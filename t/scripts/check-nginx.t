# accel-check on nginx: each broken configuration gives its findings at their lines, and nginx accepts the snippets.
use v5.36;
use Test::More;
use File::Path qw(make_path);
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::Check;
use Test::Util ();

broken nginx => 'nothing', asking();

broken nginx => 'files without auth_request', nginx(<<'EOT');
		#! no-auth-request
		location / { # files
		}
		#! no-auth-request
		location /img/ {
			alias @DIR@/www/img/;
			location /img/php { return 403; }
			#! no-auth-request
			location "/img/#{} x/" {
				expires max;
			}
		}
		location /app/ { proxy_pass http://127.0.0.1:1; }
		location ~ \.php$ { fastcgi_pass 127.0.0.1:1; }
		location /x { deny all; }
		location /old { rewrite ^ /app/new last; }
		location /hot/ { auth_request off; }
EOT

broken nginx => 'what no location matches', nginx("\t\tlocation /a {\n$ASK\t\t}\n$ASKED") =~ s/\tserver \{/\t#! no-auth-request\n\tserver {/r;

broken nginx => 'reading in the event loop', nginx("\t\t#! no-auth-request\n\t\tlocation / {\n\t\t}\n", "\tsendfile on;\n");
broken nginx => 'aio switched off', nginx("\t\t#! no-auth-request\n\t\tlocation / {\n\t\t\taio off;\n\t\t}\n");
broken nginx => 'past the page cache', asking("\t\t\t#! directio\n\t\t\tdirectio 4m;\n");

broken nginx => 'auth_request where no file is served', nginx(<<"EOT");
		location / {
$ASK		}
$ASKED
		location /app/ {
			#! auth-proxy
			auth_request /stat-accel;
			proxy_pass http://127.0.0.1:1;
		}
		location /old/ {
			#! auth-return
			auth_request /stat-accel;
			return 410;
		}
EOT
broken nginx => 'auth_request to a location that returns 404', asking() =~ s/auth_request /auth_request \/no;\n\t\t#/r
	=~ s/(\t\t\tauth_request)/\t\t\t#! auth-404\n$1/r =~ s/(\t\tlocation = )/\t\tlocation = \/no { return 404; }\n$1/r;
broken nginx => 'auth_request to nothing', nginx("\t\tlocation / {\n\t\t\tset \$warm_path \$document_root\$uri;\n\t\t\t#! auth-404\n\t\t\tauth_request /no;\n\t\t}\n");
broken nginx => 'auth_request to a constant', nginx("\t\tlocation / {\n\t\t\tset \$warm_path \$document_root\$uri;\n\t\t\t#! auth-other\n\t\t\tauth_request /yes;\n\t\t}\n"
	. "\t\tlocation = /yes { return 200; }\n");
broken nginx => 'auth_request to another service', nginx("\t\tlocation / {\n\t\t\t#! auth-other\n\t\t\tauth_request /sso;\n\t\t}\n"
	. "\t\tlocation /sso { internal; proxy_pass http://127.0.0.1:4180; proxy_pass_request_body off; }\n");

broken nginx => 'the location that is asked', nginx("\t\tlocation / {\n$ASK\t\t}\n" . <<'EOT');
		#! auth-internal auth-body
		location = /stat-accel {
			#! auth-try-files
			try_files $uri =404;
			fastcgi_pass 127.0.0.1:1029;
			#! auth-uri
			fastcgi_param WARM_PATH $document_root$uri;
		}
EOT
broken nginx => 'the raw URI instead of a path', asking() =~ s/(\t\t\tfastcgi_param WARM_PATH) \S+/\t\t\t#! auth-uri\n$1 \$document_root\$request_uri;/r;
broken nginx => 'no name at all', asking() =~ s/\t\t\tfastcgi_param.*\n//r =~ s/(\t\tlocation = )/\t\t#! auth-path\n$1/r;
broken nginx => 'variables inherited from http', nginx("\t\tlocation / {\n$ASK\t\t}\n" . $ASKED =~ s/.*fastcgi_param.*\n//r,
	"\taio threads;\n\t#! auth-uri\n\tfastcgi_param SCRIPT_FILENAME \$document_root\$fastcgi_script_name;\n");

broken nginx => 'set is not inherited', nginx(<<"EOT");
		location / {
$ASK
			#! warm-path
			location /in {
			}
		}
$ASKED
EOT
broken nginx => 'set in the server block', nginx(<<"EOT");
		#! set-server
		set \$warm_path \$document_root\$uri;
		auth_request /stat-accel;
		location / {
		}
		location /img/ {
			alias \@DIR\@/www/img/;
		}
$ASKED
EOT
broken nginx => 'alias', nginx(<<"EOT");
		location / {
			alias \@DIR\@/www/;
			#! warm-path
			set \$warm_path \$document_root\$uri;
			auth_request /stat-accel;
		}
$ASKED
EOT
broken nginx => 'a rewrite after set', asking("\t\t\trewrite ^/a/(.*) /b/\$1 break;\n") =~ s/(\t\t\tset )/\t\t\t#! warm-path\n$1/r;
broken nginx => 'satisfy any', asking("\t\t\t#! satisfy\n\t\t\tsatisfy any;\n\t\t\tallow 127.0.0.1;\n\t\t\tdeny all;\n");

broken nginx => 'if -f, to be replaced', asking("\t\t\t#! if-file\n\t\t\tif (!-e \$request_filename) {\n\t\t\t\trewrite ^/(.*) /index.php?q=\$1 last;\n\t\t\t}\n");
broken nginx => 'if -f, with advice', asking("\t\t\t#! if-file\n\t\t\tif (-f \$document_root/maintenance.html) {\n\t\t\t\treturn 503;\n\t\t\t}\n");
broken nginx => 'a listing', asking("\t\t\t#! autoindex\n\t\t\tautoindex on;\n");
broken nginx => 'subrequests', asking("\t\t\t#! subrequest\n\t\t\tssi on;\n\t\t\t#! subrequest\n\t\t\tadd_after_body /foot.html;\n");

my $KEEP = "\taio threads;\n\tupstream accel {\n\t\tserver unix:/run/stat-accel.sock;\n\t\tkeepalive 4;\n\t}\n";
broken nginx => 'an upstream by name; whether it keeps connections makes no difference, nginx closes them', nginx("\t\tlocation / {\n$ASK\t\t}\n" . $ASKED =~ s/unix:\S+/accel; fastcgi_keep_conn on;/r, $KEEP);

my $REDIRECT = <<'EOT';
		location / {
			fastcgi_pass unix:/run/stat-accel.sock;
			fastcgi_param SCRIPT_FILENAME $document_root$uri;
		}
		location /.files/ {
			internal;
			alias @DIR@/www/;
		}
EOT
broken nginx => 'X-Accel-Redirect as it should be', nginx($REDIRECT);
broken nginx => 'X-Accel-Redirect to what clients can ask for', nginx($REDIRECT =~ s/\t\t\tinternal.*\n//r =~ s/(\t\tlocation \/\.files)/\t\t#! accel-internal\n$1/r);
broken nginx => 'X-Accel-Redirect to nowhere', nginx($REDIRECT =~ s/\t\tlocation \/\.files.*//sr =~ s/^/\t\t#! accel-target\n/r);
broken nginx => 'X-Accel-Redirect without a name, ignored', nginx($REDIRECT =~ s/fastcgi_param.*\n/#! accel-ignored\n\t\t\tfastcgi_ignore_headers X-Accel-Redirect;\n/r =~ s/^/\t\t#! accel-path\n/r);

broken nginx => 'files on NFS', asking(<<'EOT') =~ s{root \S+;}{root \@DIR\@/nfs;}r;
			#! open-file-cache
			open_file_cache max=1000;
			#! disable-symlinks
			disable_symlinks on;
			#! access-log
			access_log @DIR@/nfs/access.log;
			#! error-page
			error_page 404 /404.html;
			location = /404.html { internal; auth_request off; }
EOT
broken nginx => 'the same on a local disk', asking(<<'EOT');
			open_file_cache max=1000;
			disable_symlinks on;
			access_log @DIR@/www/access.log;
			error_page 404 /404.html;
			location = /404.html { internal; auth_request off; }
EOT
# A cache on a slow disk, with one location that uses it.
my $KEYED = "\t\t\tproxy_cache a;\n\t\t\tproxy_cache_key \$scheme\$host\$request_uri;\n\t\t\tproxy_pass http://127.0.0.1:1;\n";
my $KEY_ASKED = $ASKED =~ s/(WARM_PATH) \S+;/WARM_CACHE_KEY \$scheme\$host\$request_uri;/r;
sub cached ($server, $mark = '', $fs = 'fuse') {
	return nginx($server, "\taio threads;\n\tsendfile on;\n$mark\tproxy_cache_path \@DIR\@/$fs/cache levels=1:2 keys_zone=a:1m;\n") =~ s/\t\troot .*\n//r;
}
sub keyed ($more = '') { return "\t\tlocation / {\n$KEYED$more\t\t}\n" }

broken nginx => 'a cache on FUSE that no location uses', cached('', "\t#! cache-path\n");
broken nginx => 'a cache on FUSE', cached(keyed(), "\t#! cache-path\n");
broken nginx => 'a cache on FUSE with the usual key', cached("\t\tlocation / {\n\t\t\tproxy_cache a;\n\t\t\tproxy_pass http://127.0.0.1:1;\n\t\t}\n", "\t#! cache-path\n");
broken nginx => 'a cache on FUSE with a key that is made late', cached("\t\tlocation / {\n\t\t\tproxy_cache a;\n\t\t\tproxy_pass http://127.0.0.1:1/x/;\n\t\t}\n", "\t#! cache-path\n");
broken nginx => 'a cache in memory', cached(keyed(), '', 'mem');
broken nginx => 'a cache of the answers of the accelerator', cached("\t\tlocation / {\n\t\t\troot \@DIR\@/www;\n$ASK\t\t}\n"
	. $ASKED =~ s/(\tfastcgi_pass)/\tfastcgi_cache a;\n\t\t\tfastcgi_cache_key \$warm_path;\n\t\t$1/r) =~ s/proxy_cache_path/fastcgi_cache_path/r;
broken nginx => 'a cache that is asked about', cached(keyed("\t\t\tauth_request /stat-accel;\n") . $KEY_ASKED);
broken nginx => 'a cache that is asked about without its key', cached(keyed("\t\t\tauth_request /stat-accel;\n")
	. $KEY_ASKED =~ s/\t\t\tfastcgi_param WARM_CACHE_KEY.*\n//r =~ s/(\t\tlocation = )/\t\t#! cache-key\n$1/r);
broken nginx => 'a cache that is asked about with another key', cached(keyed("\t\t\tauth_request /stat-accel;\n")
	. $KEY_ASKED =~ s/\t\t\t(fastcgi_param WARM_CACHE_KEY )\S+;/\t\t\t#! cache-key\n\t\t\t$1\$host\$request_uri;/r);
broken nginx => 'a cache that is asked about with the URI of the subrequest', cached(keyed("\t\t\tauth_request /stat-accel;\n") =~ s/request_uri/uri\$is_args\$args/r
	. $KEY_ASKED =~ s/\t\t\t(fastcgi_param WARM_CACHE_KEY )\S+;/\t\t\t#! cache-key\n\t\t\t$1\$scheme\$host\$uri\$is_args\$args;/r);
broken nginx => 'two caches, and no word which', cached(keyed("\t\t\tauth_request /stat-accel;\n") . $KEY_ASKED =~ s/(\t\tlocation = )/\t\t#! cache-name\n$1/r)
	=~ s/(\tproxy_cache_path).*\n\K/\tproxy_cache_path \@DIR\@\/www\/cache keys_zone=b:1m;\n/r;

# The module takes the names from nginx itself: what helps the lines that ask is not advised.
sub with_module ($server, $http = "") { return "load_module @{[ Test::Util::nginx_module() ]};\n" . nginx($server, "\tstat_accel on;\n$http") }
my $NAMES = "\t\tlocation / {\n\t\t\tindex a.html;\n\t\t\ttry_files \$uri \$uri.html =404;\n\t\t\tssi on;\n\t\t\tautoindex on;\n\t\t}\n";
broken nginx => 'the module', with_module("$NAMES\t\tlocation = /status { stat_accel_status; }\n");
broken nginx => 'the module, off in a location', with_module("\t\tlocation / {\n\t\t}\n\t\tlocation /off/ {\n\t\t\tstat_accel off;\n\t\t\t#! subrequest\n\t\t\tssi on;\n\t\t}\n");
broken nginx => 'the module, a listing on NFS', with_module("\t\tlocation / {\n\t\t\t#! autoindex\n\t\t\tautoindex on;\n\t\t}\n") =~ s{root \S+;}{root \@DIR\@/nfs;}r;
broken nginx => 'the module, a cache on FUSE', with_module(keyed(), "\tproxy_cache_path \@DIR\@/fuse/cache levels=1:2 keys_zone=a:1m;\n");
broken nginx => 'the module, an error page on NFS', with_module("\t\terror_page 404 /404.html;\n\t\tlocation = /404.html { internal; root \@DIR\@/nfs; }\n");

subtest 'nginx: the module: no notes on names' => sub {
	my $of = sub ($line) {
		my $text = with_module($NAMES =~ s/\{\n/{\n\t\t\t$line\n/r) =~ s/\@DIR\@/$dir/gr;
		my (undef, $report) = report(nginx => write_file('nginx.conf', $text));
		return [sort grep { /^(?:index|siblings|try-files)\z/ } map { $_->{id} } @{ $report->{notes} }];
	};
	is_deeply $of->(''), [], 'where it is on';
	is_deeply $of->('stat_accel off;'), ['index', 'try-files'], 'where it is off';
};

subtest 'nginx: includes are relative to the main file and may have wildcards' => sub {
	make_path("$dir/sites", "$dir/temp");
	write_file('sites/a.conf', "server {\n\tlisten 127.0.0.1:1;\n\tinclude snip/*.conf;\n}\n");
	write_file('sites/b.conf', "server {\n\tlisten 127.0.0.1:2;\n\troot \"$dir/www\";\n\tlocation / {\n\t}\n}\n");
	write_file('snip/x.conf', "root '$dir/www';\nlocation / {\n}\n");
	my $file = write_file('nginx.conf', "events { }\nhttp {\n\taio threads;\n\tinclude sites/*.conf;\n\tinclude none/*.conf;\n}\n");
	my (undef, $report) = report(nginx => $file);
	is_deeply [map { "$_->{id} " . $_->{file} =~ s/^\Q$dir\E\///r . " $_->{line}" } @{ $report->{findings} }],
		['no-auth-request snip/x.conf 2', 'no-auth-request sites/b.conf 4'], 'each in its own file';
};

subtest 'nginx: unknown directives are ignored' => sub {
	my $lua = <<'EOT';
		content_by_lua_block {
			local s = "}" -- } it's
			local t = [[ } ' ]] --[==[ } ]] ]==]
			if a[1] - 2 then ngx.say('\'}') end
		}
EOT
	my $text = nginx("\t\tlocation /lua {\n$lua\t\t}\n\t\tbrand_new on \${var}x '\$a;{' \"}\\\"\";\n\t\tlocation / { proxy_pass http://127.0.0.1:1; }\n",
		"\tmap \$uri \$x { default \"a;b\"; ~^/(?<n>.*)\\.x\$ 1; }\n\tperl_set \$y 'sub { return \"}\"; }';\n") =~ s/\@DIR\@/$dir/gr;
	my ($status, $report) = report(nginx => write_file('nginx.conf', $text));
	is $status, 2, 'nothing is found, no place serves files' or diag explain $report;
	is_deeply found($report), [], 'and nothing is found';
};

done_testing;
