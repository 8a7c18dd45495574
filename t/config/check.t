# accel-server -t finds what the start would refuse, and makes nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use Test::More;
use Test::Server ();
use Test::Util;

my $program = Test::Util::program('accel-server');
my $dir = File::Temp->newdir('accel-check-XXXXXX', TMPDIR => 1);
mkdir "$dir/$_" or die $! for qw(www all);
chmod 0777, "$dir/all" or die $!;
my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
my $port = $taken->sockport;
my $base = qq{server.document-root = "$dir/www"\nserver.bind = "127.0.0.1"\n};

sub run ($option, $text) {
	my $file = Test::Util::put("$dir/x.conf", ($text =~ /server\.port|socket/ ? '' : "server.port = $port\n") . $text);
	my $said = qx{timeout 60 $program $option -f $file 2>&1 </dev/null};
	return ($? >> 8, $said =~ s/\Q$dir\E/DIR/gr);
}

my @before = sort glob "$dir/*";
for my $case (
	['a good file', $base, 0, qr/^Syntax OK$/],
	['a log and a pid file that do not exist yet', $base . qq{server.errorlog = "$dir/error.log"\nserver.pid-file = "$dir/pid"\naccesslog.filename = "$dir/access.log"\n}, 0, qr/^Syntax OK$/],
	['a missing document root', qq{server.document-root = "$dir/none"\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: server\.document-root: "DIR\/none": No such file/m],
	['one of a condition', $base . qq{\$HTTP["host"] == "x" { server.document-root = "$dir/none" }\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: server\.document-root: "DIR\/none": No such file/m],
	['a log that cannot be written', $base . qq{server.errorlog = "$dir/none/error.log"\n}, 73, qr/^DIR\/x\.conf:\d+:\d+: server\.errorlog: "DIR\/none\/error\.log": No such file or directory; make its directory$/m],
	['an access log that cannot be written', $base . qq{accesslog.filename = "$dir/www"\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: accesslog\.filename: "DIR\/www": .*name a (?:regular )?file/m],
	['one of a condition', $base . qq{\$HTTP["host"] == "x" { accesslog.filename = "$dir/none/a" }\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: accesslog\.filename: "DIR\/none\/a": No such file/m],
	['a pid file that cannot be written', $base . qq{server.pid-file = "$dir/none/pid"\n}, 73, qr/^DIR\/x\.conf:\d+:\d+: server\.pid-file: "DIR\/none\/pid": No such file or directory; make its directory$/m],
	(map { ["$_ in a directory that everybody can write to", $base . qq{$_ = "$dir/all/x"\n}, /^acc/ ? 78 : 73, qr/^DIR\/x\.conf:\d+:\d+: \Q$_\E: "DIR\/all\/x": Operation not permitted; root opens nothing where everybody can put files: use a directory that other users cannot write to$/m] }
		$> == 0 ? qw(server.errorlog accesslog.filename server.pid-file) : ()),
	['an unknown backend of files', $base . qq{server.network-backend = "telepathy"\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: server\.network-backend: "telepathy": is unknown; accel-server -V lists them/m],
	['an unknown protocol', $base . qq{proxy-core.protocol = "smoke"\nproxy-core.backends = ( "127.0.0.1:1" )\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: .*"smoke"/m],
	['an unknown user', $base . qq{server.username = "nobody-has-this-name"\n}, 77, qr/^DIR\/x\.conf:\d+:\d+: server\.username: "nobody-has-this-name": does not exist/m],
	['an unknown group', $base . qq{server.groupname = "nobody-has-this-name"\n}, 77, qr/^DIR\/x\.conf:\d+:\d+: server\.groupname: "nobody-has-this-name": does not exist/m],
	['an address of another machine', qq{server.document-root = "$dir/www"\nserver.bind = "192.0.2.77"\nserver.port = 8080\n}, 69, qr/^listening on "192\.0\.2\.77:8080": Cannot assign/m],
	['a socket in a missing directory', qq{server.document-root = "$dir/www"\nserver.bind = "$dir/none/socket"\n}, 69, qr/^listening on "DIR\/none\/socket": No such file/m],
	['a missing directory of the sandbox', $base . qq{server.sandbox-paths = ( "$dir/none" )\n}, 78, qr/^DIR\/x\.conf:\d+:\d+: server\.sandbox-paths: "DIR\/none": No such file/m],
) {
	my ($what, $text, $status, $want) = @$case;
	for my $option ('-t', '-tt') {
		my ($rc, $said) = run($option, $text);
		is $rc, $status, "$what: $option exits with $status";
		like $said, $want, '... and says why' . ($status ? '' : ' not');
	}
	next if $status == 0;
	# The port is free, so that only the fault can stop the start.
	close $taken;
	my ($rc, $started) = run('-D', $text);
	$taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1, ReuseAddr => 1) or die "listen: $!";
	is $rc, $status, '... as the start does';
	like $started, qr/^accel-server: cannot open server\.errorlog "[^"]+": [A-Z][^;]+; \w|^accel-server: not started; the log on standard error says why$|^DIR\/x\.conf:\d+:\d+: /m, '... which says where the reason is';
	my ($do) = $want =~ /; (make its directory|root opens nothing)/;
	like $started, qr/\Q$do\E/, '... and what to do' if $do;
	unlike $started, qr/ev=start\.failed (?!.* do=)/, '... with what to do';
}
if ($> == 0) {
	my $file = Test::Util::put("$dir/x.conf", $base . qq{server.port = 0\nserver.username = "nobody"\n});
	my $said = qx{timeout 60 setpriv --bounding-set=-setuid,-setgid --inh-caps=-setuid,-setgid $program -D -f $file 2>&1 </dev/null};
	is $? >> 8, 77, 'a user that it cannot become';
	like $said, qr/ev=user\.failed user=nobody group=- error="Operation not permitted" do="give root CAP_SETUID/, '... is named, with what to do';
}
is_deeply [sort glob "$dir/*"], [sort @before, "$dir/x.conf"], '-t has made no file';

{
	my ($rc, $said) = run('-D', $base . qq{server.errorlog = "$dir/error.log"\nserver.network-backend = "telepathy"\n});
	like $said, qr/^accel-server: not started; the error log says why: DIR\/error\.log$/m, 'a failed start names the log that has the reason';
	like Test::Util::slurp("$dir/error.log"), qr/ev=(?:backend\.unknown|listen\.failed)/, '... which has it';
	unlink "$dir/error.log";
}

my ($rc, $said) = run('-t', $base . qq{server.username = "nobody-has-this-name"\nserver.pid-file = "$dir/none/pid"\nserver.network-backend = "telepathy"\n});
is scalar(() = $said =~ /^\S+:\d+:\d+: server\.\S+: "/mg), 3, 'all faults are reported at once';

# Settings that are compiled after the file is read: an error names their place, inside a condition and outside.
my $require = 'auth.backend = "plain"' . "\n" . qq{auth.backend.plain.userfile = "$dir/x.conf"\n};
my @broken = (
	[alias => 'alias.url = ( "/a/" => "b" )'],
	[evhost => 'evhost.path-pattern = "b"'],
	[expire_url => 'expire.url = ( "/" => "soon" )'],
	[expire_mimetypes => 'expire.mimetypes = ( "text/" => "soon" )'],
	(map { (my $name = "setenv.$_") =~ tr/_/-/; ["setenv_$_" => qq{$name-header = ( "A B:" => "c" )}] }
		qw(add_request set_request add_response set_response)),
	[setenv_add_environment => 'setenv.add-environment = ( "A B=" => "c" )'],
	[setenv_set_environment => 'setenv.set-environment = ( "A B=" => "c" )'],
	[log_format => 'accesslog.format = "%{"'],
	[cgi_assign => 'cgi.assign = ( ".x" => "b" )'],
	[cgi_limits => 'cgi.limits = ( "a" => "1" )'],
	[rewrite => 'url.rewrite-once = ( "(" => "/" )'],
	[rewrite => 'url.rewrite-repeat = ( "(" => "/" )'],
	[rewrite_not_file => 'url.rewrite-repeat-if-not-file = ( "(" => "/" )'],
	[redirect => 'url.redirect = ( "(" => "/" )'],
	[deflate_params => 'deflate.params = ( "a" => "1" )'],
	[deflate_load => 'deflate.max-loadavg = "high"'],
	[deflate_load => 'compress.max-loadavg = "high"'],
	[deflate_cache => qq{deflate.cache-dir = "$dir/none"}, qq{deflate.mimetypes = ( "text/" )\n}],
	[auth_require => 'auth.require = ( "/" => ( "method" => "x", "realm" => "r", "require" => "valid-user" ) )', $require],
	[auth_cache => 'auth.cache = ( "max-age" => "long" )'],
	[auth_plain_users => qq{auth.backend.plain.userfile = "$dir/none"}],
	[auth_groups => qq{auth.backend.plain.groupfile = "$dir/none"}],
	[auth_htpasswd => qq{auth.backend.htpasswd.userfile = "$dir/none"}],
	[auth_htdigest => qq{auth.backend.htdigest.userfile = "$dir/none"}],
	[error_handler => 'server.error-handler = "b"'],
	[error_handler_404 => 'server.error-handler-404 = "b"'],
	[dir_exclude => 'dir-listing.exclude = ( "(" )'],
	[dir_header => 'dir-listing.show-header = "a/b"'],
	[dir_readme => 'dir-listing.show-readme = "a/b"'],
	[dir_cache => 'dir-listing.cache = ( "max-age" => "long" )'],
	[secdownload => qq{secdownload.document-root = "$dir/none"}, qq{secdownload.secret = "12345678"\nsecdownload.uri-prefix = "/s/"\n}],
	['of resources' => qq{simple-vhost.server-root = "$dir/none"}],
	['of resources' => 'mimetype.assign = ( ".a" => "" )'],
	['of resources' => qq{userdir.basepath = "$dir/none"}, qq{userdir.path = "www"\n}],
	['of resources' => qq{accesslog.filename = "$dir/www"}],
	['of resources' => qq{proxy-core.x-sendfile-docroot = ( "$dir/none" )}, qq{proxy-core.allow-x-sendfile = "enable"\n}],
	['of resources' => qq{proxy-core.backends = ( "no-such-host.invalid:1" )}, qq{proxy-core.protocol = "http"\n}],
);
for (@broken) {
	my ($kind, $line, $before) = (@$_, '');
	my ($name) = $line =~ /^(\S+)/;
	my $column = 1 + index($line, '= ') + 2;
	my ($rc, $said) = run('-t', qq{server.port = $port\n$base\$HTTP["host"] == "x" {\n${before}$line\n\$HTTP["url"] =~ "^/y" {\nstatus.status-url = "/s"\n}\n}\n});
	my $number = 5 + ($before =~ tr/\n//);
	is $rc, 78, "$kind: $line: exit status";
	like $said, qr/^DIR\/x\.conf:$number:$column: \Q$name\E: \S/m, '... and it says where';
}
{
	open my $fh, '<', "$FindBin::Bin/../../server/module/rules.def" or die "rules.def: $!";
	my %tested = map { $_->[0] => 1 } @broken, [rate => 'cannot be wrong'];
	is_deeply [grep { !$tested{$_} } map { /^R\((\w+)\)/ ? $1 : () } <$fh>], [], 'each kind of rule has such a test';
}

{
	my $srv = Test::Server->start;
	$srv->get('/');
	my $conf = $srv->run . '/server.conf';
	my $lines = (my $text = Test::Util::slurp($conf)) =~ tr/\n//;
	Test::Util::put($conf, $text . qq{url.redirect = ( "(" => "/" )\n});
	$srv->signal('USR1');
	like $srv->wait_log(qr/ev=config\.unusable/), qr{ev=config\.unusable why="\Q$conf\E:@{[$lines + 1]}:16: url\.redirect: }, 'a reload says where, too';
}

SKIP: {
	skip 'only root can be refused here', 2 if $> == 0;
	($rc, $said) = run('-t', qq{server.document-root = "$dir/www"\nserver.port = 80\n});
	is $rc, 69, 'a port that needs root';
	like $said, qr/ports below 1024 need root/, '... is named';
}

done_testing;
