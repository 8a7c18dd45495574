# The examples of lighttpd's own documentation pages: each configuration loads as it is written there (with other paths), and each request
# gets what the page promises.  The pages are those of the Debian package lighttpd-doc.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Uncompress::Gunzip ();
use MIME::Base64 qw(encode_base64);
use Test::App;
use Test::Http qw(parse request_head);
use Test::More;
use Test::Server;
use Test::Util qw(eventually need_program);

need_program('php-cgi', 'php-cgi');

# An application at a port, which answers each request with its variables.
package AnyApp;
our @ISA = 'Test::App';
my $listening = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16) or die "listen: $!";
sub listen { return $listening }
sub can { my ($self, $name) = @_; return $name =~ /^do_/ ? \&Test::App::do_env : $self->SUPER::can($name) }

package main;
my $app = AnyApp->start;
my $app_port = $listening->sockport;

# A row: page, what it shows, { conf, files, ask }.  A file that is code runs.  ask: a list of [ path, status, pattern of head and body, header lines ].
my @rows;
sub page { my ($page, @examples) = @_; while (my ($what, $row) = splice @examples, 0, 2) { push @rows, [$page, $what, $row] } }

page('access',
	'endings are denied' => { conf => 'url.access-deny = ( "~", ".inc")', files => { 'example~' => 'x', 'example.inc' => 'x', 'example.txt' => 'x' },
	    ask => [['/example~', 403], ['/example.inc', 403], ['/example.txt', 200, qr/x\z/]] },
);
page('accesslog',
	'a format' => { conf => 'accesslog.filename = "@RUN@/access.log" accesslog.format = "%h %l %u %t \"%r\" %b %>s \"%{User-Agent}i\" \"%{Referer}i\""', files => { 'a.txt' => 'abc' },
	    ask => [['/a.txt', 200, qr/abc\z/, 'User-Agent' => 'me', Referer => 'http://r/']], log => qr{^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /a\.txt HTTP/1\.1" 3 200 "me" "http://r/"$}m },
	'a log of a host goes to a program' => { conf => 'accesslog.filename = "@RUN@/access.log"' . "\n" . '$HTTP["host"] == "mail.example.org" { accesslog.filename = "|/bin/sed -u -e s/GET/piped/ -n -e w@RUN@/piped" }',
	    files => { 'a.txt' => 'abc' }, ask => [['/a.txt', 200, undef, Host => 'mail.example.org']], log => qr/"piped \/a\.txt/, log_file => 'piped' },
	'a field of an application, which the client does not get' => { files => { 'sid.php' => '<?php header("X-LIGHTTPD-SID: abc123"); ?>x' }, php => 1,
	    conf => 'accesslog.filename = "@RUN@/access.log" accesslog.format = "%h %l %u %t \"%r\" %b %>s \"%{User-Agent}i\" \"%{Referer}i\" \"%{X-LIGHTTPD-SID}o\""',
	    ask => [['/sid.php', 200, qr/\A(?!.*X-LIGHTTPD-SID).*\r\n\r\nx\z/s]], log => qr/"abc123"$/m },
);
page('alias',
	'a directory elsewhere' => { conf => 'alias.url = ( "/cgi-bin/" => "@RUN@/cgi-bin/" )', run => { 'cgi-bin/x.txt' => 'elsewhere' }, ask => [['/cgi-bin/x.txt', 200, qr/elsewhere\z/], ['/x.txt', 404]] },
);
for my $file (['plain', 'agent007:secret'], ['htpasswd', 'agent007:XWY5JwrAVBXsQ']) {
	page('authentication', "basic, $file->[1]" => { conf => qq{auth.backend = "$file->[0]" auth.backend.$file->[0].userfile = "\@RUN\@/users"} .
	    ' auth.require = ( "/download/" => ( "method" => "basic", "realm" => "download archive", "require" => "user=agent007|user=agent008" ), "/server-info" => ( "method" => "basic", "realm" => "download archive", "require" => "valid-user" ) )',
	    run => { users => "$file->[1]\n" }, files => { 'download/x.txt' => 'secret' },
	    ask => [['/download/x.txt', 401, qr/WWW-Authenticate: Basic realm="download archive"/i], ['/server-info', 401],
		['/download/x.txt', 200, qr/secret\z/, Authorization => 'Basic ' . encode_base64('agent007:secret', '')],
		['/download/x.txt', 401, undef, Authorization => 'Basic ' . encode_base64('agent007:other', '')]] });
}
page('authentication',
	'digest, a line of htdigest' => { conf => 'auth.backend = "htdigest" auth.backend.htdigest.userfile = "@RUN@/users"
	    auth.require = ( "/download/" => ( "method" => "digest", "realm" => "download area", "require" => "user=agent007|user=agent008" ) )',
	    run => { users => "agent007:download area:8364d0044ef57b3defcfa141e8f77b65\n" }, files => { 'download/x.txt' => 'secret' },
	    ask => [['/download/x.txt', 401, qr/WWW-Authenticate: Digest realm="download area"/i]],
	    curl => [['--digest', '-u', 'agent007:secret', '/download/x.txt', 200], ['--digest', '-u', 'agent007:other', '/download/x.txt', 401]] },
);
page('cgi',
	'endings of programs' => { conf => 'cgi.assign = ( ".pl"  => "/usr/bin/perl", ".cgi" => "/usr/bin/perl" )', files => { 'a.pl' => 'print "Content-Type: text/plain\r\n\r\nperl $ENV{QUERY_STRING}"', 'a.cgi' => 'print "Status: 201\r\n\r\n"' },
	    ask => [['/a.pl?x', 200, qr/perl x\z/], ['/a.cgi', 201]] },
	'a program that runs itself' => { conf => 'cgi.assign = ( ".sh" => "" )', files => { 'a.sh' => "#!/bin/sh\nprintf '\\r\\nshell'" }, ask => [['/a.sh', 200, qr/shell\z/]] },
	'without an ending' => { conf => 'cgi.assign = ( "/testfile" => "" )', files => { testfile => "#!/bin/sh\nprintf '\\r\\nfile'" }, ask => [['/testfile', 200, qr/file\z/]] },
);
my $pages = "words that come again\n" x 100;
page('compress',
	'types and a directory' => { conf => 'compress.allowed-encodings = ("gzip", "deflate") compress.cache-dir = "@RUN@/cache/" compress.filetype = ("text/plain", "text/html") compress.max-filesize = 1000', run => { 'cache/' => undef },
	    files => { 'a.txt' => $pages, 'a.css' => $pages }, gunzip => $pages,
	    ask => [['/a.txt', 200, qr/Content-Encoding: gzip/i, 'Accept-Encoding' => 'gzip'], ['/a.txt', 200, qr/\A(?!.*Content-Encoding)/si], ['/a.css', 200, qr/\A(?!.*Content-Encoding)/si, 'Accept-Encoding' => 'gzip']] },
	'a file that is compressed already' => { conf => '$HTTP["url"] =~ "\.diff\.gz" { setenv.add-response-header = ( "Content-Encoding" => "gzip" ) mimetype.assign = () }', files => { 'x.diff.gz' => 'z' },
	    ask => [['/x.diff.gz', 200, qr/Content-Encoding: gzip/i]] },
);
page('configuration',
	'variables and modules' => { conf => 'server.modules = ( "mod_access", "mod_rewrite" ) var.mymodule = "redirect" server.modules += ( "mod_" + var.mymodule )', files => { x => 'x' }, ask => [['/x', 200]] },
	'listings except in one directory' => { conf => "dir-listing.activate = \"enable\"\n" . '$HTTP["url"] =~ "^/download/" { dir-listing.activate = "disable" }', files => { 'pub/a' => 'x', 'download/a' => 'x' },
	    ask => [['/pub/', 200, qr/href="a"/], ['/download/', 403]] },
	'all hosts of a domain' => { conf => '$HTTP["host"] =~ "(^|\.)example\.org$" { server.document-root = "@RUN@/org" }', run => { 'org/x' => 'org' }, files => { x => 'other' },
	    ask => [['/x', 200, qr/org\z/, Host => 'a.example.org'], ['/x', 200, qr/org\z/, Host => 'example.org'], ['/x', 200, qr/other\z/, Host => 'badexample.org']] },
	'one robot' => { conf => '$HTTP["useragent"] =~ "Google" { url.access-deny = ( "" ) }', files => { x => 'x' }, ask => [['/x', 403, undef, 'User-Agent' => 'Googlebot'], ['/x', 200, undef, 'User-Agent' => 'me']] },
	'image stealers' => { conf => '$HTTP["referer"] !~ "^($|http://www\.example\.org)" { url.access-deny = ( ".jpg", ".jpeg", ".png" ) }', files => { 'x.png' => 'x', 'x.txt' => 'x' },
	    ask => [['/x.png', 200], ['/x.png', 200, undef, Referer => 'http://www.example.org/a'], ['/x.png', 403, undef, Referer => 'http://thief.example/'], ['/x.txt', 200, undef, Referer => 'http://thief.example/']] },
	'a network' => { conf => '$HTTP["host"] == "www.example.org" { $HTTP["remoteip"] != "10.0.0.0/8" { url.access-deny = ( "" ) } }', files => { x => 'x' }, ask => [['/x', 403, undef, Host => 'www.example.org'], ['/x', 200]] },
	'the global context' => { conf => '$HTTP["host"] == "www.example.org" { global { static-file.exclude-extensions += (".php") } }', files => { 'x.php' => 'x' }, ask => [['/x.php', 403]] },
	'a language, a method' => { conf => '$HTTP["language"] =~ "^de" { server.document-root = "@RUN@/de" }' . "\n" . '$HTTP["method"] == "HEAD" { server.tag = "head" }', run => { 'de/x' => 'deutsch' }, files => { x => 'x' },
	    ask => [['/x', 200, qr/deutsch\z/, 'Accept-Language' => 'de-AT'], ['/x', 200, qr/x\z/, 'Accept-Language' => 'en']] },
);
page('dirlisting',
	'switched on' => { conf => 'dir-listing.activate = "enable" dir-listing.encoding = "utf-8"', files => { 'd/a.txt' => 'x', 'd/.hidden' => 'x', 'd/sub/x' => 'x' }, ask => [['/d/', 200, qr/charset=utf-8.*href="sub\/".*href="a\.txt"/si], ['/d/', 200, qr/\A(?!.*\.hidden)/s]] },
	'for one directory' => { conf => '$HTTP["url"] =~ "^/download($|/)" { dir-listing.activate = "enable" }', files => { 'download/a.txt' => 'x', 'd/a.txt' => 'x' }, ask => [['/download/', 200, qr/a\.txt/], ['/d/', 403]] },
	'by a program' => { conf => 'index-file.names = ( "/dir-generator.php" )', php => 1, files => { 'dir-generator.php' => '<?php echo "list of ", $_SERVER["REQUEST_URI"]; ?>', 'd/a.txt' => 'x' }, ask => [['/d/', 200, qr/list of \/d\/\z/]] },
	'names left out, a text below' => { conf => 'dir-listing.activate = "enable" dir-listing.exclude = ( "\.bak$" ) dir-listing.show-readme = "enable" dir-listing.hide-readme-file = "enable"',
	    files => { 'd/a.bak' => 'x', 'd/b.txt' => 'x', 'd/README.txt' => 'read <me>' }, ask => [['/d/', 200, qr/b\.txt.*read &(lt|#x3c);me&(gt|#x3e);/s], ['/d/', 200, qr/\A(?!.*a\.bak)(?!.*href="README)/s]] },
);
page('evhost',
	'a pattern' => { conf => 'evhost.path-pattern = "@RUN@/servers/%3/pages/"', run => { 'servers/www/pages/x' => 'www', 'servers/mail/pages/x' => 'mail' }, ask => [['/x', 200, qr/www\z/, Host => 'www.example.org'], ['/x', 200, qr/mail\z/, Host => 'mail.example.org']] },
);
page('expire', 'a directory' => { conf => 'expire.url = ( "/images/" => "access 1 hour" )', files => { 'images/x' => 'x', y => 'y' }, ask => [['/images/x', 200, qr/Cache-Control: max-age=3600/i], ['/y', 200, qr/\A(?!.*Cache-Control)/si]] });
page('fastcgi',
	'two endings at one application' => { conf => 'fastcgi.server = ( ".php" => (( "host" => "127.0.0.1", "port" => @APP@ )), ".php4" => (( "host" => "127.0.0.1", "port" => @APP@ )) )', tcp => 1, files => { 'x.php' => 'src', 'x.php4' => 'src' },
	    ask => [['/x.php', 200, qr/SCRIPT_NAME=\/x\.php$/m], ['/x.php4', 200, qr/SCRIPT_NAME=\/x\.php4$/m], ['/none.php', 404]] },
	'a prefix' => { conf => 'fastcgi.server = ( "/remote_scripts/" => (( "host" => "127.0.0.1", "port" => @APP@, "check-local" => "disable", "docroot" => "/" )) )', tcp => 1,
	    ask => [['/remote_scripts/test.cgi', 200, qr/SCRIPT_NAME=\/remote_scripts\/test\.cgi$/m], ['/remote_scripts/test.cgi', 200, qr/^DOCUMENT_ROOT=\/$/m]] },
	'an application of its own' => { conf => 'fastcgi.server = ( ".php" => (( "socket" => "@RUN@/php-fastcgi.socket", "bin-path" => "/usr/bin/php-cgi", "max-procs" => 1,
	    "bin-environment" => ( "PHP_FCGI_CHILDREN" => "1", "PHP_FCGI_MAX_REQUESTS" => "10000" ), "bin-copy-environment" => ( "PATH", "SHELL", "USER" ) )) )',
	    files => { 'x.php' => '<?php echo "children ", getenv("PHP_FCGI_CHILDREN"); ?>' }, ask => [['/x.php', 200, qr/children 1\z/]] },
	'an ending for another' => { conf => 'fastcgi.map-extensions = ( ".php3" => ".php" ) fastcgi.server = ( ".php" => (( "host" => "127.0.0.1", "port" => @APP@ )) )', tcp => 1, files => { 'x.php3' => 'src' }, ask => [['/x.php3', 200, qr/SCRIPT_NAME=\/x\.php3$/m]] },
);
page('proxy',
	'an ending' => { conf => 'proxy.server = ( ".jsp" => ( ( "host" => "127.0.0.1", "port" => @HTTP@ ) ) )', http => 1, files => { 'x.txt' => 'file' }, ask => [['/x.jsp', 200, qr/behind\z/], ['/x.txt', 200, qr/file\z/]] },
	'a whole host, by hash' => { conf => '$HTTP["host"] == "www.example.org" { proxy.balance = "hash" proxy.server = ( "" => ( ( "host" => "127.0.0.1", "port" => @HTTP@ ), ( "host" => "127.0.0.1", "port" => @HTTP@ ) ) ) }', http => 1, files => { 'x.txt' => 'file' },
	    ask => [['/x.jsp', 200, qr/behind\z/, Host => 'www.example.org'], ['/x.txt', 200, qr/file\z/]] },
);
page('redirect',
	'numbers' => { conf => 'url.redirect = ( "^/show/([0-9]+)/([0-9]+)$" => "http://www.example.org/show.php?isdn=$1&page$2", "^/get/([0-9]+)/([0-9]+)$"  => "http://www.example.org/get.php?isdn=$1&page$2" )',
	    ask => [['/show/12/34', 301, qr/Location: http:\/\/www\.example\.org\/show\.php\?isdn=12&page34\r/], ['/get/5/6', 301, qr/get\.php\?isdn=5&page6\r/], ['/show/a/b', 404]] },
	'without www' => { conf => '$HTTP["host"] =~ "^www\.(.*)" { url.redirect = ( "^/(.*)" => "http://%1/$1" ) }', files => { 'a' => 'x' }, ask => [['/a?b', 301, qr/Location: http:\/\/example\.org\/a\?b\r/, Host => 'www.example.org'], ['/a', 200]] },
);
page('rewrite',
	'numbers and words' => { conf => 'url.rewrite-once = ( "^/id/([0-9]+)$" => "/index.php?id=$1", "^/link/([a-zA-Z]+)" => "/index.php?link=$1" )', php => 1, files => { 'index.php' => '<?php echo $_SERVER["QUERY_STRING"]; ?>' },
	    ask => [['/id/17', 200, qr/id=17\z/], ['/link/abc', 200, qr/link=abc\z/]] },
	'a directory for each host' => { conf => '$HTTP["host"] =~ "^.*\.([^.]+\.com)$" { url.rewrite-once = ( "^/(.*)" => "/%0/$1" ) }', files => { 'any.domain.com/url/x' => 'domain' }, ask => [['/url/x', 200, qr/domain\z/, Host => 'any.domain.com']] },
);
page('setenv', 'three kinds' => { conf => 'setenv.add-environment = ( "TRAC_ENV" => "lighttpd" ) setenv.add-response-header = ( "X-Secret-Message" => "42" ) setenv.add-request-header = ( "X-Asked" => "yes" )', php => 1,
	    files => { 'x.php' => '<?php echo $_SERVER["TRAC_ENV"], " ", $_SERVER["HTTP_X_ASKED"]; ?>' }, ask => [['/x.php', 200, qr/X-Secret-Message: 42\r.*lighttpd yes\z/s]] });
my $vhost = 'simple-vhost.server-root = "@RUN@/servers/" simple-vhost.default-host = "www.example.org" simple-vhost.document-root = "pages"';
my %vhosts = ('servers/www.example.org/pages/x' => 'www', 'servers/mail.example.org/pages/x' => 'mail', 'servers/news2.example.org/pages/x' => 'news2');
page('simple-vhost',
	'hosts and the default' => { conf => $vhost, run => \%vhosts, ask => [['/x', 200, qr/mail\z/, Host => 'mail.example.org'], ['/x', 200, qr/www\z/, Host => 'unknown.example.org']] },
	'a document root in a condition is overwritten' => { conf => "$vhost\n" . '$HTTP["host"] == "news.example.org" { server.document-root = "@RUN@/servers/news2.example.org/pages/" }', run => \%vhosts, ask => [['/x', 200, qr/www\z/, Host => 'news.example.org']] },
	'unless the host is exempt' => { conf => '$HTTP["host"] !~ "^(news\.example\.org)$" { ' . $vhost . ' } $HTTP["host"] == "news.example.org" { server.document-root = "@RUN@/servers/news2.example.org/pages/" }', run => \%vhosts,
	    ask => [['/x', 200, qr/news2\z/, Host => 'news.example.org'], ['/x', 200, qr/mail\z/, Host => 'mail.example.org']] },
);
page('status',
	'for a network, with a password' => { conf => '$HTTP["remoteip"] == "127.0.0.0/8" { status.status-url = "/server-status" status.config-url = "/server-config" status.statistics-url = "/server-statistics" }',
	    ask => [['/server-status?auto', 200, qr/Total Accesses: \d+\nTotal kBytes: \d+\nUptime: \d+\nBusyServers: \d+/], ['/server-config', 200], ['/server-statistics', 200]] },
);
page('traffic-shaping', 'a host' => { conf => '$HTTP["host"] == "www.example.org" { server.kbytes-per-second = 128 }', files => { x => 'x' }, ask => [['/x', 200, undef, Host => 'www.example.org']] });
page('userdir', 'without /etc/passwd' => { conf => 'userdir.path = "htdocs" userdir.basepath = "@RUN@/users/" userdir.exclude-user = ( "root", "postmaster" )', run => { 'users/jan/htdocs/index.html' => 'jan', 'users/root/htdocs/index.html' => 'root' },
	    ask => [['/~jan/index.html', 200, qr/jan\z/], ['/~root/index.html', 404]] });

# ---------------------------------------------------------------- asking

my $behind = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n});
$behind->write($_, 'behind') for 'x.jsp';

sub run_row ($row) {
	my $conf = qq{server.document-root = "\@DIR\@"\nmimetype.assign = ( ".txt" => "text/plain", ".css" => "text/css", ".html" => "text/html" )\n};
	$conf .= qq{fastcgi.server = ( ".php" => (( "socket" => "\@RUN\@/php.socket", "bin-path" => "/usr/bin/php-cgi", "max-procs" => 1, "bin-environment" => ( "PHP_FCGI_CHILDREN" => "1" ) )) )\n} if $row->{php};
		$conf .= $row->{conf} =~ s/\@APP\@/$app_port/gr =~ s/\@HTTP\@/$behind->port/ger . "\n";
	$conf =~ s/^mimetype\.assign.*\n//m if $row->{conf} =~ /mimetype/ && $row->{conf} !~ /\{[^}]*mimetype/;
	# The directories that the configuration names must be there when it is read.
	my $run = File::Temp->newdir('accel-doc-XXXXXX', TMPDIR => 1);
	chmod 0755, $run;
	for my $name (keys %{ $row->{run} // {} }) {
		my ($folder) = "$run/$name" =~ m{(.*)/};
		File::Path::make_path($folder);
		Test::Util::put("$run/$name", $row->{run}{$name}) if defined $row->{run}{$name};
	}
	$conf =~ s/\@RUN\@/$run/g;
	my $srv = Test::Server->start(conf => $conf);
	my $files = $row->{files} // {};
	for my $name (keys %$files) {
		$srv->write($name, $files->{$name});
		chmod 0755, $srv->path($name) if $files->{$name} =~ /^#!/;
	}
	for my $ask (@{ $row->{ask} }) {
		my ($path, $status, $pattern, %header) = @$ask;
		my $c = $srv->connect;
		$c->send(request_head('GET', $path, %header));
		my $raw = $c->rest;
		my $r = parse($raw);
		my $said = join ' ', $path, map { "$_: $header{$_}" } sort keys %header;
		is $r->{status}, $status, "$said: $status";
		like "$r->{head}\r\n\r\n$r->{body}", $pattern, "$said: what is promised" if $pattern;
		next unless $row->{gunzip} && ($r->{header}{'content-encoding'} // '') eq 'gzip';
		IO::Uncompress::Gunzip::gunzip(\$r->{body}, \my $plain);
		is $plain, $row->{gunzip}, '... and its bytes';
	}
	for my $curl (@{ $row->{curl} // [] }) {
		my @args = @$curl;
		my ($path, $status) = splice @args, -2;
		is qx{curl -s -o /dev/null -w '%{http_code}' @{[ map { "'$_'" } @args ]} 'http://127.0.0.1:@{[ $srv->port ]}$path'}, $status, "@args $path: $status";
	}
	my $file = "$run/" . ($row->{log_file} // 'access.log');
	ok eventually(sub { -e $file && Test::Util::slurp($file) =~ $row->{log} }), 'the log' or diag -e $file ? Test::Util::slurp($file) : "no $file" if $row->{log};
}

for my $row (grep { !@ARGV || "$_->[0]: $_->[1]" =~ /$ARGV[0]/ } @rows) {
	my ($page, $what, $of) = @$row;
	subtest "$page: $what" => sub { eval { run_row($of); 1 } or fail("$@") };
}
done_testing;
