# accel-check: each broken configuration gives exactly its findings, at their lines; the lines it says to add are
# accepted by the server itself, and with them the findings are gone.
#
# "#! ID..." stands above the line that a finding names.
use v5.36;
use Test::More;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp ();
use FindBin    ();
use JSON::PP   ();

my $check = abs_path("$FindBin::Bin/../../scripts/accel-check");
my $dir = File::Temp->newdir;

sub write_file ($name, $text) {
	my $path = $name =~ m{^/} ? $name : "$dir/$name";
	make_path(dirname($path));
	open my $fh, '>:raw', $path or die "$path: $!";
	print $fh $text;
	close $fh or die "$path: $!";
	return $path;
}

sub lines_of ($file) {
	open my $fh, '<:raw', $file or die "$file: $!";
	return <$fh>;
}

# Exit status and all that was printed.
sub run (@command) {
	my $pid = open my $fh, '-|' // die "fork: $!";
	if (!$pid) {
		open STDERR, '>&', \*STDOUT;
		open STDIN, '<', '/dev/null';
		exec { $command[0] } @command or exit 127;
	}
	local $/ = undef;
	my $text = <$fh> // '';
	close $fh;
	return ($? >> 8, $text);
}

sub program ($name) { return (grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin', '/sbin')[0] }

# A disk of each kind, whatever this machine has.
my $mounts = write_file('mountinfo', <<"EOT");
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:30 / $dir/nfs rw - nfs4 host:/x rw
22 20 0:31 / $dir/fuse rw - fuse.slowfs slowfs rw
23 20 8:17 / $dir/disk\\040one rw - xfs /dev/sdb1 rw
24 20 0:32 / $dir/mem rw - tmpfs tmpfs rw
EOT
write_file('sys/dev/block/8:1/queue/rotational', "0\n");
write_file('sys/dev/block/8:17/queue/rotational', "1\n");
make_path(map { "$dir/$_" } qw(www www/img nfs fuse mem), 'disk one');
my @COMMON = ('--mountinfo', $mounts, '--sysfs', "$dir/sys");

sub report ($server, $file, @more) {
	my ($status, $text) = run($check, @COMMON, '--json', @more, $server, $file);
	my $found = eval { JSON::PP->new->decode($text) };
	return ($status, $found // { broken => $text, findings => [], notes => [], mounts => [] });
}

sub found ($report) { return [sort map { "$_->{id} $_->{line}" } @{ $report->{findings} }] }

# What the marks of a configuration promise.
sub promised ($text) {
	my ($line, @waiting, @all) = 0;
	for (split /\n/, $text) {
		$line++;
		if (/^\s*#! (.+)/) { push @waiting, split ' ', $1; next }
		push @all, map { "$_ $line" } splice @waiting;
	}
	return [sort @all];
}

# Pastes every snippet of a report where it says.
sub paste ($report) {
	my %edits;
	for my $s (map { @{ $_->{snippets} } } @{ $report->{findings} }) {
		next if $s->{as_above} || $s->{advice};
		my ($how) = grep { $s->{$_} } qw(after before_end replace);
		push @{ $edits{ $s->{$how}{file} } }, [$how, $s->{$how}, $s->{text}];
	}
	for my $file (keys %edits) {
		my @lines = lines_of($file);
		my (%before, %after);
		for (@{ $edits{$file} }) {
			my ($how, $at, $text) = @$_;
			if ($how eq 'after') { $after{ $at->{line} } .= $text; next }
			$before{ $at->{line} } .= $text;
			@lines[$at->{line} - 1 .. $at->{to} - 1] = ('') x ($at->{to} - $at->{line} + 1) if $how eq 'replace';
		}
		write_file($file, join '', $after{0} // '', map { ($before{ $_ + 1 } // '', $lines[$_], $after{ $_ + 1 } // '') } 0 .. $#lines);
	}
	return scalar keys %edits;
}

my %TEST = (    # server => the command with which it reads its own configuration
	nginx    => sub ($file) { my $p = program('nginx')    or return; return ($p, '-t', '-q', '-p', "$dir", '-c', $file) },
	lighttpd => sub ($file) { my $p = program('lighttpd') or return; return ($p, '-tt', '-f', $file) },
	apache   => sub ($file) { my $p = program('apache2')  or return; return ($p, '-t', '-f', $file) },
);

# Findings are where the marks are; pasted, the server reads it, and nothing but advice is left.
sub broken ($server, $name, $text, @more) {
	subtest "$server: $name" => sub {
		$text =~ s/\@DIR\@/$dir/g;
		my $file = write_file("$server.conf", $text);
		my ($status, $report) = report($server, $file, @more);
		is_deeply found($report), promised($text), 'exactly these findings' or diag explain $report;
		is $status, @{ $report->{findings} } ? 1 : 0, 'and its exit status says so';
		my @command = $TEST{$server}->($file);
		SKIP: {
			skip "$server is not installed", 1 unless @command;
			my ($exit, $said) = run(@command);
			is $exit, 0, 'the server accepts it as it is' or diag $said;
		}
		my @advice = map { my $f = $_; grep({ $_->{advice} } @{ $f->{snippets} }) ? "$f->{id}" : () } @{ $report->{findings} };
		paste($report) or return;
		(undef, my $again) = report($server, $file, @more);
		is_deeply [sort map { $_->{id} } @{ $again->{findings} }], [sort @advice], 'with the lines it says to add, nothing is left'
			or diag explain($again), lines_of($file);
		SKIP: {
			skip "$server is not installed", 1 unless @command;
			my ($exit, $said) = run(@command);
			is $exit, 0, 'and the server accepts them' or diag $said, lines_of($file);
		}
	};
	return;
}

# ---------------------------------------------------------------- nginx

my $TEMP = join '', map { "\t${_}_temp_path \@DIR\@/temp/$_;\n" } qw(client_body proxy fastcgi uwsgi scgi);
make_path("$dir/temp");

sub nginx ($server, $http = "\taio threads;\n\tsendfile on;\n") {
	return "pid \@DIR\@/pid;\nerror_log stderr;\nevents { }\nhttp {\n\taccess_log off;\n$TEMP$http"
		. "\tserver {\n\t\tlisten 127.0.0.1:8080;\n\t\tserver_name a.example;\n\t\troot \@DIR\@/www;\n$server\t}\n}\n";
}

my $ASKED = <<'EOT';
		location = /stat-accel {
			internal;
			fastcgi_pass unix:/run/stat-accel.sock;
			fastcgi_pass_request_body off;
			fastcgi_param WARM_PATH $warm_path;
		}
EOT
my $ASK = "\t\t\tset \$warm_path \$document_root\$uri;\n\t\t\tauth_request /stat-accel;\n";

# A location that asks, as it should be.
sub asking ($more = '', $before = '') { return nginx("\t\tlocation / {\n$before$ASK$more\t\t}\n$ASKED") }

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
		location /old { rewrite ^ /new last; }
		location /hot/ { auth_request off; }
EOT

broken nginx => 'what no location matches', nginx("\t\tlocation /a {\n$ASK\t\t}\n$ASKED") =~ s/\tserver \{/\t#! no-auth-request\n\tserver {/r;

broken nginx => 'reading in the event loop', nginx("\t\t#! no-auth-request\n\t\tlocation / {\n\t\t}\n", "\tsendfile on;\n") =~ s/^http/#! aio\nhttp/mr;
broken nginx => 'aio switched off', nginx("\t\t#! no-auth-request\n\t\tlocation / {\n\t\t\t#! aio\n\t\t\taio off;\n\t\t}\n");
broken nginx => 'past the page cache', asking("\t\t\t#! directio\n\t\t\tdirectio 4m;\n");

broken nginx => 'auth_request to a location that returns 404', asking() =~ s/auth_request /auth_request \/no;\n\t\t#/r
	=~ s/(\t\t\tauth_request)/\t\t\t#! auth-404\n$1/r =~ s/(\t\tlocation = )/\t\tlocation = \/no { return 404; }\n$1/r;
broken nginx => 'auth_request to nothing', nginx("\t\tlocation / {\n\t\t\tset \$warm_path \$document_root\$uri;\n\t\t\t#! auth-404\n\t\t\tauth_request /no;\n\t\t}\n");
broken nginx => 'auth_request to a constant', nginx("\t\tlocation / {\n\t\t\tset \$warm_path \$document_root\$uri;\n\t\t\t#! auth-other\n\t\t\tauth_request /yes;\n\t\t}\n"
	. "\t\tlocation = /yes { return 200; }\n");
broken nginx => 'auth_request to somebody else', nginx("\t\tlocation / {\n\t\t\t#! auth-other\n\t\t\tauth_request /sso;\n\t\t}\n"
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
		set \$warm_path \$document_root\$uri;
		auth_request /stat-accel;
		location / { }
		#! warm-path
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
broken nginx => 'an upstream by name; whether it keeps connections is all the same, nginx closes them', nginx("\t\tlocation / {\n$ASK\t\t}\n" . $ASKED =~ s/unix:\S+/accel; fastcgi_keep_conn on;/r, $KEEP);

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
broken nginx => 'a cache on FUSE', nginx("\t\tlocation / {\n$ASK\t\t}\n$ASKED", "\taio threads;\n\t#! cache-path\n\tproxy_cache_path \@DIR\@/fuse/cache keys_zone=a:1m;\n");

subtest 'nginx: includes, relative to the main file, with wildcards' => sub {
	make_path("$dir/sites", "$dir/temp");
	write_file('sites/a.conf', "server {\n\tlisten 127.0.0.1:1;\n\tinclude snip/*.conf;\n}\n");
	write_file('sites/b.conf', "server {\n\tlisten 127.0.0.1:2;\n\troot \"$dir/www\";\n\tlocation / {\n\t}\n}\n");
	write_file('snip/x.conf', "root '$dir/www';\nlocation / {\n}\n");
	my $file = write_file('nginx.conf', "events { }\nhttp {\n\taio threads;\n\tinclude sites/*.conf;\n\tinclude none/*.conf;\n}\n");
	my (undef, $report) = report(nginx => $file);
	is_deeply [map { "$_->{id} " . $_->{file} =~ s/^\Q$dir\E\///r . " $_->{line}" } @{ $report->{findings} }],
		['no-auth-request snip/x.conf 2', 'no-auth-request sites/b.conf 4'], 'each in its own file';
};

subtest 'nginx: what is none of our business is left alone' => sub {
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
	is $status, 0, 'nothing is found' or diag explain $report;
};

# ---------------------------------------------------------------- lighttpd

sub lighttpd ($rest, $modules = '"mod_access", "mod_alias", "mod_fastcgi"') {
	return "server.port = 8080\nserver.modules = ( $modules )\nserver.document-root = \"\@DIR\@/www\"\n$rest";
}

my $HOST = '"socket" => "/run/stat-accel.sock", "mode" => "authorizer", "check-local" => "disable"';
my $SEND = '"socket" => "/run/stat-accel.sock", "x-sendfile" => "enable", "x-sendfile-docroot" => ( "@DIR@/www" ), "check-local" => "disable"';

broken lighttpd => 'an authorizer as it should be', lighttpd("fastcgi.server = ( \"/\" => (( $HOST )) )\n");
broken lighttpd => 'X-Sendfile as it should be', lighttpd("fastcgi.server = ( \"/\" => (( $SEND )) )\n");
broken lighttpd => 'files without accelerator', <<'EOT';
server.port = 8080
# "quotes" and ( lists in a comment
var.base = "@DIR@" + "/"
#! no-accel
server.document-root = var.base + "www"
server.modules = ( "mod_access",
	"mod_alias" )
EOT
broken lighttpd => 'beside another application', lighttpd(<<'EOT');
#! no-accel
fastcgi.server = ( ".php" => (( "socket" => "/run/php.sock", "bin-path" => "/usr/bin/php-cgi", "max-procs" => 1 )) )
EOT
broken lighttpd => 'check-local', lighttpd("#! check-local\nfastcgi.server = ( \"/\" => (( " . $HOST =~ s/, "check-local".*//r . " )) )\n");
broken lighttpd => 'check-local, with X-Sendfile, in a block', lighttpd(<<'EOT') =~ s/^server.document-root/#! no-accel\nserver.document-root/mr;
$HTTP["host"] =~ "^(www\.)?a\.example$" {
	fastcgi.server += (
		#! check-local x-sendfile-docroot
		"/" => ( "accel" => (
			"host" => "127.0.0.1", "port" => 1029,
			"allow-x-send-file" => "enable" ) ) )
} else $HTTP["host"] == "b.example" {
	proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => 1 )) )
}
EOT

broken lighttpd => 'a header that nobody takes', lighttpd("#! mode x-sendfile-docroot\nfastcgi.server = ( \"/\" => (( \"socket\" => \"/run/stat-accel.sock\", \"check-local\" => \"disable\" )) )\n");
broken lighttpd => 'four of them', lighttpd("#! max-procs\nfastcgi.server = ( \"/\" => (( $HOST, \"bin-path\" => \"/bin/true\" )) )\n");
broken lighttpd => 'mod_fastcgi is missing', lighttpd("#! mod-fastcgi\nfastcgi.server = ( \"/\" => (( $HOST )) )\n", '"mod_access"');
broken lighttpd => 'modules in steps', lighttpd("server.modules += ( \"mod_fastcgi\" )\nfastcgi.server = ( \"/\" => (( $HOST )) )\n", '"mod_access"');

broken lighttpd => 'docroot as it should be', lighttpd("fastcgi.server = ( \"/\" => (( $HOST, \"docroot\" => \"\@DIR\@/www/\" )) )\n");
broken lighttpd => 'docroot hides alias.url', lighttpd(<<"EOT");
#! docroot
fastcgi.server = ( "/" => (( $HOST, "docroot" => "\@DIR\@/www" )) )
\$HTTP["url"] =~ "^/pub" { alias.url = ( "/pub" => "\@DIR\@/nfs" ) }
EOT
broken lighttpd => 'docroot hides another root', lighttpd(<<"EOT");
#! docroot
fastcgi.server = ( "/" => (( $HOST, "docroot" => "\@DIR\@/www" )) )
\$HTTP["host"] == "b.example" { server.document-root = "\@DIR\@/nfs" }
EOT
broken lighttpd => 'a block that takes the accelerator away, and one that means it', lighttpd(<<"EOT");
fastcgi.server = ( "/" => (( $HOST )) )
\$HTTP["host"] == "b.example" {
	#! no-accel
	fastcgi.server = ( ".php" => (( "socket" => "/run/php.sock" )) )
} elsif \$HTTP["url"] =^ "/hot/" {
	fastcgi.server = ( )
} else {
	server.tag = "b"
}
EOT
broken lighttpd => 'a listing', lighttpd("fastcgi.server = ( \"/\" => (( $HOST )) )\n#! dir-listing\ndir-listing.activate = \"enable\"\n", '"mod_fastcgi", "mod_dirlisting"');
broken lighttpd => 'files on NFS', lighttpd(<<"EOT") =~ s{/www"}{/nfs"}r;
fastcgi.server = ( "/" => (( $HOST )) )
#! stat-cache
server.stat-cache-engine = "inotify"
#! follow-symlink
server.follow-symlink = "disable"
#! error-page
server.errorfile-prefix = "\@DIR\@/nfs/status-"
EOT
broken lighttpd => 'the same on a local disk', lighttpd(<<"EOT");
fastcgi.server = ( "/" => (( $HOST )) )
server.stat-cache-engine = "inotify"
server.follow-symlink = "disable"
server.errorfile-prefix = "\@DIR\@/www/status-"
EOT

subtest 'lighttpd: includes' => sub {
	write_file('conf.d/10-fastcgi.conf', "server.modules += ( \"mod_fastcgi\" )\n");
	write_file('conf.d/20-accel.conf', "fastcgi.server = ( \"/\" => (( " . $HOST =~ s/, "check-local".*//r . " )) )\n");
	my $file = write_file('lighttpd.conf', "server.document-root = \"$dir/www\"\ninclude \"conf.d/*.conf\"\ninclude_shell \"touch $dir/was-run\"\n");
	my (undef, $report) = report(lighttpd => $file);
	is_deeply [map { "$_->{id} $_->{file} $_->{line}" } @{ $report->{findings} }], ["check-local $dir/conf.d/20-accel.conf 1"], 'are read';
	is_deeply [grep { $_->{id} eq 'not-run' } @{ $report->{notes} }],
		[{ id => 'not-run', file => $file, line => 3, where => ['the whole server'], why => "include_shell is not run; what 'touch $dir/was-run' prints is not seen" }], 'programs are named';
	ok !-e "$dir/was-run", 'and not run';
};

# ---------------------------------------------------------------- Apache

my $SO = '/usr/lib/apache2/modules';

sub load (@names) { return join '', map { "LoadModule ${_}_module $SO/mod_$_.so\n" } @names }

my $NONE = "<Directory />\n\tAllowOverride None\n</Directory>\n";

sub apache ($rest, $mpm = 'mpm_event') {
	return "ServerRoot \@DIR\@\nServerName a.example\nListen 127.0.0.1:8080\nPidFile \@DIR\@/pid\nErrorLog \@DIR\@/err\nDefaultRuntimeDir \@DIR\@\n"
		. load($mpm, 'authz_core', 'dir', 'mime') . "TypesConfig /dev/null\n$NONE$rest";
}

my $PROXY = load(qw(proxy proxy_fcgi xsendfile)) . <<'EOT';
DocumentRoot @DIR@/www
ProxyPass / unix:/run/stat-accel.sock|fcgi://localhost/ enablereuse=on
XSendFile On
XSendFilePath @DIR@/www
EOT
my $AUTHNZ = load(qw(authn_core authz_user authnz_fcgi)) . <<'EOT';
DocumentRoot "@DIR@/www"
AuthnzFcgiDefineProvider authn stat-accel fcgi://127.0.0.1:9000/
<Directory @DIR@/www>
	AuthnzFcgiCheckAuthnProvider stat-accel RequireBasicAuth Off \
		UserExpr "%{reqenv:ACCEL_USER}" DefaultUser warm
	Require valid-user
</Directory>
EOT

broken apache => 'X-Sendfile as it should be', apache($PROXY);
broken apache => 'an authorizer as it should be', apache($AUTHNZ);
broken apache => 'files without accelerator', apache("#! no-accel\nDocumentRoot \"\@DIR\@/www\"\n");
broken apache => 'files without accelerator, TCP', apache("#! no-accel\nDocumentRoot \"\@DIR\@/www\"\n"), '--socket=127.0.0.1:9000';
broken apache => 'virtual hosts', apache(load(qw(proxy proxy_fcgi xsendfile)) . <<'EOT');
DocumentRoot @DIR@/nfs
<VirtualHost 127.0.0.1:8080>
	ServerName b.example
	#! no-accel
	DocumentRoot @DIR@/www
</VirtualHost>
<VirtualHost 127.0.0.1:8080>
	DocumentRoot @DIR@/www
	ProxyPass / unix:/run/stat-accel.sock|fcgi://localhost/
	XSendFile On
	XSendFilePath @DIR@/www
</VirtualHost>
EOT
broken apache => 'X-Sendfile that nobody takes', apache($PROXY =~ s/^XSend.*\n//gmr =~ s/^ProxyPass/#! xsendfile xsendfile-path\nProxyPass/mr);
broken apache => 'X-Sendfile without a path', apache($PROXY =~ s/^XSendFilePath.*\n//gmr =~ s/^ProxyPass/#! xsendfile-path\nProxyPass/mr);
broken apache => 'SetHandler', apache($PROXY =~ s/^ProxyPass.*/#! set-handler\nSetHandler "proxy:unix:\/run\/stat-accel.sock|fcgi:\/\/localhost\/"/mr);
broken apache => 'a provider that nobody asks', apache($AUTHNZ =~ s/^<Directory.*//msr =~ s/^Authnz/#! authnz-unused\nAuthnz/mr);
broken apache => 'a provider without a user', apache($AUTHNZ =~ s/^\s+AuthnzFcgiCheck.*?\n.*?\n//mr =~ s/^\s+Require.*/\t#! authnz-user\n\tRequire stat-accel/mr =~ s/authn stat/authz stat/r);
broken apache => 'a provider that wants a password', apache($AUTHNZ =~ s/RequireBasicAuth.*?\n.*?\n/\\\n\t\tAuthoritative On\n/r =~ s/^(\tAuthnz)/\t#! authnz-password\n$1/mr);
broken apache => 'directories', apache("$AUTHNZ" . load(qw(autoindex negotiation)) . <<'EOT');
<Directory />
	Options None
	AllowOverride None
</Directory>
<Directory @DIR@/www>
	#! symlinks autoindex
	Options Indexes SymLinksIfOwnerMatch
	#! allow-override
	allowoverride FileInfo
</Directory>
<Directory @DIR@/www/img>
	#! multiviews
	Options -Indexes +MultiViews +FollowSymLinks
	AllowOverride None
</Directory>
EOT
broken apache => 'no AllowOverride at all', apache($AUTHNZ) =~ s/\Q$NONE\E//r =~ s/^DocumentRoot/#! allow-override\nDocumentRoot/mr;
broken apache => 'directories that no proxied request looks at', apache($PROXY . "<Directory />\n\tOptions None\n\tAllowOverride All\n</Directory>\n");
broken apache => 'files on NFS', apache($AUTHNZ =~ s{/www}{/nfs}gr =~ s/^DocumentRoot/#! mmap\nDocumentRoot/mr . "#! sendfile\nEnableSendfile on\n");
broken apache => 'files on NFS, proxied', apache($PROXY =~ s{/www}{/nfs}gr =~ s/^DocumentRoot/#! mmap\nDocumentRoot/mr . "<Directory \@DIR\@/nfs>\n\tEnableMMAP off\n</Directory>\n");
broken apache => 'EnableSendfile on a local disk', apache("${PROXY}EnableSendfile on\n");
broken apache => 'prefork', apache($PROXY, 'mpm_prefork') =~ s/^LoadModule/#! mpm\nLoadModule/mr;
broken apache => 'connections and names', apache("$PROXY#! keepalive\nKeepAlive Off\n#! hostname-lookups\nHostnameLookups On\n");

subtest 'apache: includes, conditions, variables' => sub {
	write_file('envvars', "# shell\nexport SUFFIX=\nexport SITE_DIR=$dir/sub\$SUFFIX\n");
	write_file('sub/a.conf', "DocumentRoot $dir/www\n");
	write_file('more/deep/b.conf', "<IfModule mod_proxy.c>\nKeepAlive Off\n</IfModule>\n<IfModule !mod_proxy.c>\nHostnameLookups On\n</IfModule>\n<IfDefine NOT>\nAllowOverride All\n</IfDefine>\n");
	my $file = write_file('apache.conf', "ServerRoot $dir\n" . load('mpm_event') . "${NONE}Include \${SITE_DIR}/*.conf\nInclude more\nIncludeOptional none/*.conf\nDefine X y\n<IfDefine X>\nKeepAlive Off\n</IfDefine>\n");
	my (undef, $report) = report(apache => $file);
	is_deeply [sort map { "$_->{id} " . $_->{file} =~ s/^\Q$dir\E\///r . " $_->{line}" } @{ $report->{findings} }],
		['hostname-lookups more/deep/b.conf 5', 'keepalive apache.conf 11', 'no-accel sub/a.conf 1'], 'as the server reads them';
	unlink "$dir/envvars";
	my (undef, $again) = report(apache => $file, '-D', "SITE_DIR=$dir/sub");
	is scalar @{ $again->{findings} }, 3, 'a variable can be given';
};

# ---------------------------------------------------------------- what is no configuration

my %LOOP = (nginx => "include loop.conf;\n", lighttpd => "include \"loop.conf\"\n", apache => "Include loop.conf\n");

for my $server (sort keys %LOOP) {
	my $refused = sub ($what, $text, $why, $line) {
		my $file = ref $text ? $$text : write_file("loop.conf", $text);
		my $before = time;
		my ($status, $said) = run($check, $server, $file);
		is $status, 66, "$server: $what is refused" or diag $said;
		like $said, qr/\Aaccel-check: \Q$file\E(?::$line)?: .*$why.*\n\z/, 'in one line that says where';
		cmp_ok time - $before, '<', 10, 'and at once';
	};
	my $open = $server eq 'apache' ? "DocumentRoot /a\nAlias \"/b\n" : $server eq 'nginx' ? "worker_processes 1;\nuser \"a;\n" : "server.port = 1\nserver.tag = \"a\n";
	$refused->('a quote that does not end', $open, 'quote', 2);
	$refused->('a loop', "\n$LOOP{$server}", 'includes itself', 2);
	$refused->('a binary', "\n\n\x7fELF\0\1", 'zero byte', 3);
	$refused->('10 MB', "# a\n" x 2_600_000, 'larger than', 1);
	my $long = 'x' x 900_000;
	my (undef, $read) = run($check, $server, write_file('loop.conf', $server eq 'nginx' ? "a \"$long\" '$long' $long;\nb \"" : $server eq 'apache' ? "A \"$long\"\nB \"" : "a = \"$long\"\nb = \""));
	like $read, qr/\Aaccel-check: \S+:2: a quote.*\n\z/, "$server: a word of a million letters is no trouble";
	my $grow = $server eq 'apache' ? "Define A0 aaaaaaaaaa\n" . join('', map { "Define A$_ \"" . "\${A@{[$_ - 1]}}" x 10 . "\"\n" } 1 .. 20)
		: "var.a = \"aaaaaaaaaa\"\n" . "var.a = a + a + a + a + a + a + a + a + a + a\n" x 20;
	$refused->('a value that doubles', $grow, 'grows', qr/[67]/) if $server ne 'nginx';    # nginx has no such thing
	$refused->('nothing', \"$dir/not-there", 'No such file', '');
	$refused->('a directory', \"$dir/www", 'directory', '');
	$refused->('an include that is not there', $LOOP{$server} =~ s/loop/gone/r, 'gone.conf', 1);
	my $deep = $server eq 'nginx' ? "a {\n" x 9999 : $server eq 'apache' ? "<A>\n" x 9999 : "\$HTTP[\"url\"] == \"\" {\n" x 9999;
	$refused->('a block in a block in a block', $deep, '.', qr/\d+/);
	my ($status, $said) = run($check, $server, write_file('loop.conf', $server eq 'apache' ? "# a\n" x 1_500_000 : "# a\n" x 1_500_000));
	like $status, qr/^[01]\z/, "$server: 6 MB are read" or diag $said;
}

for my $case (['{', 'unexpected'], ["a;\n}", 'unexpected "}"', 2], ["http {\n", 'not closed'], ['a', 'not ended'], ["a_by_lua_block {\n'", 'does not end']) {
	my ($text, $why, $line) = @$case;
	my (undef, $said) = run($check, 'nginx', write_file('nginx.conf', $text));
	like $said, qr/^accel-check: \Q$dir\E\/nginx.conf:@{[$line \/\/ 1]}: .*\Q$why\E/, 'nginx: ' . $text =~ s/\n/\\n/gr;
}
for my $case (['a = ', 'missing'], ["a = (\n1\n", 'list'], ['$HTTP["x"] {', 'comparison'], ['} else', 'not expected'], ['a = 1 )', 'not expected'], ['a ! 1', 'cannot be read']) {
	my ($text, $why) = @$case;
	my (undef, $said) = run($check, 'lighttpd', write_file('lighttpd.conf', $text));
	like $said, qr/^accel-check: \Q$dir\E\/lighttpd.conf:\d+: .*\Q$why\E/, 'lighttpd: ' . $text =~ s/\n/\\n/gr;
}
for my $case (["<A>\n", 'not closed'], ["</A>\n", 'without'], ["<A\n", "'>'"], ["<A>\n</B>\n", 'without <B>']) {
	my ($text, $why) = @$case;
	my (undef, $said) = run($check, 'apache', write_file('apache.conf', $text));
	like $said, qr/^accel-check: \Q$dir\E\/apache.conf:\d+: .*\Q$why\E/, 'apache: ' . $text =~ s/\n/\\n/gr;
}

# ---------------------------------------------------------------- usage and text

for my $args ([], ['nginx'], ['caddy', 'x'], ['--socket=a b', 'nginx', 'x'], ['--root=www', 'nginx', 'x'], ['--nonsense', 'nginx', 'x']) {
	my ($status, $said) = run($check, @$args);
	is $status, 64, "usage: @$args";
	like $said, qr/\Aaccel-check: .*--help.*\n\z/, 'in one line';
}

subtest 'text for people' => sub {
	my $file = write_file('nginx.conf', nginx("\t\tlocation \"/\e[2J\" {\n\t\t}\n\t\tlocation / {\n\t\t}\n") =~ s/\@DIR\@\/www/$dir\/nfs/r =~ s/\@DIR\@/$dir/gr);
	my ($status, $said) = run($check, @COMMON, '--socket', '127.0.0.1:9000', 'nginx', $file);
	is $status, 1, 'findings';
	like $said, qr/^\Q$file\E:19: blocks: no-auth-request: server a\.example, location \/\n/m, 'file, line, kind, place';
	like $said, qr/^ +auth_request \/stat-accel;\n/m, 'what to add';
	is scalar(() = $said =~ /fastcgi_pass 127\.0\.0\.1:9000;/g), 1, 'once, with the address that was given';
	like $said, qr/ as above\./, 'and a word where it is wanted again';
	like $said, qr/^ +\Q$dir\E\/nfs \(nfs4, network\): /m, 'where the files lie';
	like $said, qr/^2 findings: 2 blocks\n\z/m, 'how many';
	my (undef, $json) = run($check, @COMMON, '--json', 'nginx', write_file('nginx.conf', "http { server { root /\xff; location /\xc3\xa4 { } } }\n"));
	my $location = eval { JSON::PP->new->utf8->decode($json) };
	is scalar @{ $location->{findings} // [] }, 3, 'JSON is UTF-8 whatever the configuration is' or diag $json;
	unlike $said, qr/\e/, 'no control characters of the configuration';
	is scalar(grep { length > 110 && !/:\d+: / } split /\n/, $said), 0, 'no long lines';
};

subtest 'kinds of disks' => sub {
	my %KIND = (www => 'solid', nfs => 'network', fuse => 'fuse', 'disk one' => 'rotating', mem => 'memory');
	for my $name (sort keys %KIND) {
		my $text = nginx("\t\tlocation / {\n$ASK\t\t}\n$ASKED") =~ s{root \S+;}{root "\@DIR\@/$name/";}r;
		my (undef, $report) = report(nginx => write_file('nginx.conf', $text =~ s/\@DIR\@/$dir/gr));
		is_deeply [map { "$_->{root} $_->{kind}" } @{ $report->{mounts} }], ["$dir/$name $KIND{$name}"], $name;
	}
};

# ---------------------------------------------------------------- our own examples

my $examples = abs_path("$FindBin::Bin/../../examples");
for my $server (qw(nginx lighttpd apache)) {
	for my $file (glob "$examples/$server/*.conf") {
		my ($status, $report) = report($server, $file);
		is_deeply found($report), [], "nothing is found in examples/$server/" . $file =~ s{.*/}{}r or diag explain $report->{findings};
		is $status, 0, 'and the exit status says so';
	}
}

done_testing;
