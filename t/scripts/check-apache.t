# accel-check on Apache: each broken configuration gives its findings at their lines, and Apache accepts the snippets.
use v5.36;
use Test::More;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::Check;

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
broken apache => 'X-Sendfile without a server that reads it', apache($PROXY =~ s/^XSend.*\n//gmr =~ s/^ProxyPass/#! xsendfile xsendfile-path\nProxyPass/mr);
broken apache => 'X-Sendfile without a path', apache($PROXY =~ s/^XSendFilePath.*\n//gmr =~ s/^ProxyPass/#! xsendfile-path\nProxyPass/mr);
broken apache => 'SetHandler', apache($PROXY =~ s/^ProxyPass.*/#! set-handler\nSetHandler "proxy:unix:\/run\/stat-accel.sock|fcgi:\/\/localhost\/"/mr);
broken apache => 'a provider without a directory that asks it', apache($AUTHNZ =~ s/^<Directory.*//msr =~ s/^Authnz/#! authnz-unused\nAuthnz/mr);
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

subtest 'apache: includes, conditions and variables are read' => sub {
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

done_testing;
