# A configuration is read, checked and printed; a mistake stops the start and names its place.
use v5.36;
use Test::More;
use File::Temp ();
use FindBin    ();
use IO::Socket::INET ();
use lib "$FindBin::Bin/../lib";
use Test::Server;
use Test::Util qw(slurp);

my $program = ($ENV{B} // 'build') . '/bin/accel-server';
my $dir = File::Temp->newdir;

sub put ($name, $text) { return Test::Util::put("$dir/$name", $text) }

# Exit status, standard output, standard error; temporary directory written as DIR.
sub run (@args) {
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		open STDOUT, '>', "$dir/out" or die $!;
		open STDERR, '>', "$dir/err" or die $!;
		open STDIN, '<', '/dev/null' or die $!;
		exec $program, @args or die "$program: $!";
	}
	waitpid $pid, 0;
	my ($rc, $out, $err) = ($?, slurp("$dir/out"), slurp("$dir/err"));
	s/\Q$dir\E/DIR/g for $out, $err;
	return ($rc & 127 ? "signal $rc" : $rc >> 8, $out, $err);
}

my $root = qq{server.document-root = "$dir"\n};

# ---------------------------------------------------------------- shipped examples

for my $file (glob "$FindBin::Bin/../../examples/accel-server/*.conf") {
	# -t looks for the directories of X-Sendfile and of logs
	my $here = put('example.conf', slurp($file) =~ s{"/var/www/\w+"}{"$dir"}gr =~ s{"/var/log/accel-server/}{"$dir/}gr =~ s{"/srv/www(?:/\w+)?"}{"$dir"}gr);
	mkdir "$dir/$_" for qw(default example static downloads);
	my ($rc, $out, $err) = run('-t', '-f', $here);
	is "$rc $out$err", "0 Syntax OK\n", 'example ' . $file =~ s{.*/}{}r;
}

# ---------------------------------------------------------------- mistakes

for my $case (
	['a missing value', "server.port =\n", qr/^DIR\/x\.conf:2:14: expected a value .*, got the end of the line/],
	['a wrong type', "server.port = ( 80 )\n", qr/^DIR\/x\.conf:2:15: server\.port: expected a number from 0 to 65535, got a list$/m],
	['an open block', "\$HTTP[\"url\"] == \"/\" {\n", qr/^DIR\/x\.conf:3:1: the file ends inside of a block/],
	['a key set twice', "server.port = 1\nserver.port = 2\n", qr/^DIR\/x\.conf:3:1: server\.port was set at DIR\/x\.conf:2 already/],
	['a global key in a condition', "\$HTTP[\"url\"] == \"/\" { server.port = 1 }\n", qr/^DIR\/x\.conf:2:23: server\.port is for the whole server/],
	['a key that would have protected something', "evasive.silent = \"enable\"\n", qr/^DIR\/x\.conf:2:1: evasive\.silent cannot be used here\. /],
) {
	my ($what, $text, $want) = @$case;
	my $file = put('x.conf', $root . $text);
	my ($rc, $out, $err) = run('-t', '-f', $file);
	is "$rc $out", '78 ', "$what stops the start";
	like $err, $want, '... and is named with its place';
	($rc, $out, $err) = run('-D', '-f', $file);
	is $rc, 78, '... without -t too';
}

{
	my ($rc, $out, $err) = run('-t', '-f', put('x.conf', "server.port = 1\n"));
	is $rc, 78, 'a document root is required';
	like $err, qr{server\.document-root is not set; add server\.document-root = "/path"}, '... and how to give one is said';
	($rc, $out, $err) = run('-t', '-f', "$dir/none.conf");
	is "$rc $out$err", "78 DIR/none.conf:1:1: cannot read DIR/none.conf: No such file or directory\n", 'no such file';
	($rc, $out, $err) = run('-t', '-f', put('x.conf', "${root}server.max-read-thread = 3\n"));
	is "$rc $out", '78 ', 'an unknown key is an error';
	is $err, "DIR/x.conf:2:1: unknown setting server.max-read-thread; did you mean server.max-read-threads?\n",
	    '... named with its nearest neighbour';
	($rc, $out, $err) = run('-t', '-f', put('x.conf', "${root}server.breakagelog = \"/x\"\n"));
	like "$rc $err", qr/^0 DIR\/x\.conf:2:1: server\.breakagelog has no effect: /, 'an old one does not stop the start';
	($rc, $out, $err) = run('-tt', '-f', put('x.conf', qq{server.document-root = "$dir/none"\n}));
	is $rc, 78, '-tt wants a document root that exists';
	for my $handler (qw(poll linux-sysepoll)) {
		($rc, $out, $err) = run('-tt', '-f', put('x.conf', qq{${root}server.event-handler = "$handler"\n}));
		is "$rc $err", '0 ', "server.event-handler = \"$handler\" of lighttpd is accepted in silence";
	}
}

# ---------------------------------------------------------------- the language, from end to end

put('part.conf', qq{server.tag = var.who + "/" + 1\n});
my $file = put('all.conf', <<END);
var.who = "x"                   # a comment
${root}include "part.conf"
include_shell "echo server.port = 1\${PORT_TAIL:-234}"
index-file.names = (
	"a",
	"b",
)
\$HTTP["host"] == "h" {
	index-file.names += ( "c" )
}
else \$HTTP["url"] =~ "\\.x\$" {
	server.name = env.NAME_IN_TEST
} else {
	proxy-core.protocol = "ajp13"
	proxy-core.secret = "a word"
	proxy-core.backends = ( "127.0.0.1:1" )
}
END
local $ENV{NAME_IN_TEST} = 'say "hello"';
my ($rc, $printed, $err) = run('-p', '-f', $file);
is "$rc $err", '0 ', 'every part of the language at once';
is $printed, <<'END', '-p prints what was understood';
# listens on :1234
var.who = "x"
server.document-root = "DIR"
server.tag = "x/1"
server.port = 1234
index-file.names = ( "a", "b" )
$HTTP["host"] == "h" { # 1
	index-file.names = ( "a", "b", "c" )
} else $HTTP["url"] =~ "\.x$" { # 2
	server.name = "say \"hello\""
} else { # 3
	proxy-core.protocol = "ajp13"
	proxy-core.secret = "(set)"
	proxy-core.backends = ( "127.0.0.1:1" )
}
END
my (undef, $again) = run('-p', '-f', put('again.conf', $printed));
is $again, $printed, '... and that loads again, with the same meaning';

# ---------------------------------------------------------------- a start that fails

my $busy = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
my $pid_file = put('server.pid', "1\n");
$file = put('busy.conf', $root . qq{server.bind = "127.0.0.1"\nserver.port = @{[ $busy->sockport ]}\n}
	. qq{server.pid-file = "$pid_file"\nserver.max-worker = 1\n});
($rc, undef, $err) = run('-f', $file);
isnt $rc, 0, 'a port that is taken: no start';
like $err, qr/listen\.failed/, '... which is said';
is slurp($pid_file), "1\n", '... and the pid file of the server that runs stays';
run('-1', '-f', $file);
is slurp($pid_file), "1\n", '-1 removes none either';
$file = put('nowhere.conf', $root . qq{server.bind = "no-such-host.invalid"\nserver.port = 8080\nserver.max-worker = 1\n});
($rc, undef, $err) = run('-f', $file);
isnt $rc, 0, 'a name without an address: no start';
like $err, qr/ev=listen\.failed .* error="[^"]*(?:[Nn]ame|resolution)[^"]*"/, '... and the log has the words of the resolver';

# ---------------------------------------------------------------- what a condition names must be there at the start

my $free = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
my $port = $free->sockport;
close $free;

for my $case (
	['a document root', qq{server.document-root = "$dir/none"}, qr{DIR/[a-z]+\.conf:\d+:\d+: server\.document-root: "DIR/none": No such file}],
	['a directory of X-Sendfile', qq{proxy-core.allow-x-sendfile = "enable" proxy-core.x-sendfile-docroot = ( "$dir/none" )},
		qr{DIR/[a-z]+\.conf:\d+:\d+: proxy-core\.x-sendfile-docroot: "DIR/none": No such file}],
	['a directory of temporary files', qq{proxy-core.allow-x-sendfile = "enable" proxy-core.x-sendfile-tempdir = ( "$dir/none" )},
		qr{DIR/[a-z]+\.conf:\d+:\d+: proxy-core\.x-sendfile-tempdir: "DIR/none": No such file}],
	['a backend', 'proxy-core.protocol = "fastcgi" proxy-core.backends = ( "no-such-host.invalid:1" )',
		qr{proxy-core\.backends: "no-such-host\.invalid:1": .*; the address in numbers needs no look-up}],
	['a protocol', 'proxy-core.backends = ( "127.0.0.1:1" )', qr{proxy-core\.protocol is not set; expected one of: fastcgi, scgi, http, ajp13, uwsgi}],
	['a protocol that exists', 'proxy-core.protocol = "fcgi" proxy-core.backends = ( "127.0.0.1:1" )',
		qr{proxy-core\.protocol: expected one of: fastcgi, scgi, http, ajp13, uwsgi; got "fcgi"}],
) {
	my ($what, $lines, $want) = @$case;
	$lines =~ s/" proxy/"\n\t\tproxy/g;
	$file = put('inner.conf', $root . <<~END);
		server.bind = "127.0.0.1"
		server.port = $port
		server.max-worker = 1
		\$HTTP["host"] == "a" { \$HTTP["url"] =~ "^/b/" {
			$lines
		} }
		END
	($rc, my $out, $err) = run('-tt', '-f', $file);
	is "$rc $out", '78 ', "$what that is not there, within conditions: -tt refuses it";
	like $err, $want, '... and names it';
	($rc, undef, $err) = run('-f', $file);
	is $rc, 78, '... nothing is started';
	like $err =~ s/\\x22/"/gr, $want, '... and the log names it';
}

# ---------------------------------------------------------------- -t, -tt and a start agree on proxy-core

my $where = 'DIR/proxy\.conf:[0-9]+:[0-9]+: ';
my $ajp = qq{proxy-core.protocol = "ajp13"\nproxy-core.backends = ( "127.0.0.1:1" )\n};
for my $case (
	['no protocol', 'proxy-core.backends = ( "127.0.0.1:1" )', qr{^${where}proxy-core\.protocol is not set; expected one of: fastcgi, scgi, http, ajp13, uwsgi$}],
	['an unknown protocol', 'proxy-core.protocol = "fcgi"', qr{^${where}proxy-core\.protocol: expected one of: fastcgi, scgi, http, ajp13, uwsgi; got "fcgi"$}],
	['an unknown balancer', 'proxy-core.balancer = "fairest"', qr{^${where}proxy-core\.balancer: expected one of: .*, got "fairest"$}],
	['not an address', 'proxy-core.protocol = "http"' . "\n" . 'proxy-core.backends = ( "127.0.0.1:99999" )', qr{^${where}proxy-core\.backends: "127\.0\.0\.1:99999": .*an address is}],
	['a host without an address', 'proxy-core.protocol = "http"' . "\n" . 'proxy-core.backends = ( "no-such-host.invalid:1" )', qr{proxy-core\.backends: "no-such-host\.invalid:1": }],
	['a directory of X-Sendfile', qq{proxy-core.allow-x-sendfile = "enable"\nproxy-core.x-sendfile-docroot = ( "$dir/none" )}, qr{DIR/[a-z]+\.conf:\d+:\d+: proxy-core\.x-sendfile-docroot: "DIR/none": No such file}],
	['a rewrite of requests', 'proxy-core.rewrite-request = ( "A" => ( "(" => "b" ) )', qr{^${where}proxy-core\.rewrite-request: }],
	['a rewrite of replies', 'proxy-core.rewrite-response = ( "A" => ( "(" => "b" ) )', qr{^${where}proxy-core\.rewrite-response: }],
	['a ping that the protocol does not have', $ajp =~ s/ajp13/scgi/r . 'proxy-core.check-url = "*"', qr{^${where}proxy-core\.check-url: the protocol scgi of the backends of DIR/proxy\.conf:\d+ has no ping; write a path}],
	['a secret that nobody wants', $ajp =~ s/ajp13/scgi/r . 'proxy-core.secret = "x"', qr{^${where}proxy-core\.secret: the protocol scgi of the backends of DIR/proxy\.conf:\d+ sends none; remove it$}],
	['a secret around such backends', qq{proxy-core.secret = "x"\n\$HTTP["url"] =~ "^/x" {\nproxy-core.protocol = "http"\nproxy-core.backends = ( "127.0.0.1:1" )\n}}, qr{^${where}proxy-core\.secret: the protocol http}],
	['a secret of two lines', $ajp . qq{proxy-core.secret = "hush\nhush"}, qr{^${where}proxy-core\.secret: expected at most 256 bytes of printable text, got a value that is not shown$}],
	['a long secret', $ajp . 'proxy-core.secret = "' . 'hush' x 65 . '"', qr{^${where}proxy-core\.secret: expected at most 256 bytes}],
	['a secret that is a list', $ajp . 'proxy-core.secret = ( "hush" )', qr{^${where}proxy-core\.secret: expected a string, got a value that is not shown$}],
) {
	my ($what, $lines, $want) = @$case;
	$file = put('proxy.conf', "${root}server.bind = \"127.0.0.1\"\nserver.port = $port\nserver.max-worker = 1\n$lines\n");
	for my $option ('-t', '-tt', '-D') {
		($rc, my $out, $err) = run($option, '-f', $file);
		is "$rc $out", '78 ', "$what: $option refuses it";
		like $err =~ s/\\x22/"/gr, qr/$want/m, '... with the same words';
		unlike $err, qr/hush/, '... and a secret stays one' if $what =~ /secret/;
	}
}
$file = put('proxy.conf', "$root${ajp}proxy-core.secret = \"hush\"\nvar.same = \"hush\"\n");
($rc, my $shown, $err) = run('-t', '-p', '-f', $file);
is "$rc $err", '0 ', 'a secret of AJP';
like $shown, qr/^proxy-core\.secret = "\(set\)"$/m, '... is printed as set';
unlike $shown, qr/hush/, '... even where a variable has it';

# ---------------------------------------------------------------- settings of a pool stand where its backends stand

my $protocol = qq{proxy-core.protocol = "fastcgi"\n};
my $own = 'proxy-core.backends = ( "127.0.0.1:1" )';
for my $case (
	['beside the block of the backends', 5, 3, <<"END"],
\$HTTP["host"] == "a" { $own }
\$HTTP["url"] =~ "^/b/" {
	SETTING
}
END
	['inside of it', 6, 4, <<"END"],
\$HTTP["host"] == "a" {
	$own
	\$HTTP["url"] =~ "^/b/" {
		SETTING
	}
}
END
	['inside of it, around the block of others', 5, 3, <<"END"],
$own
\$HTTP["url"] =~ "^/b/" {
	SETTING
	\$HTTP["host"] == "a" { $own }
}
END
	['in the else after it', 6, 4, <<"END"],
\$HTTP["url"] =~ "^/b/" {
	$own
} else {
	SETTING
}
END
) {
	my ($what, $line, $backends, $lines) = @$case;
	for my $setting ('protocol = "scgi"', 'balancer = "static"', 'max-pool-size = 3', 'max-keep-alive-requests = 3', 'split-hostnames = "disable"',
		'disable-time = 3', 'max-backlog-size = 0', 'max-waiters = 3', 'connect-timeout = 3', 'idle-timeout = 3', 'slow-start = 3', 'max-fails = 3', 'fail-timeout = 3', 'weights = ( 3 )',
		'resolve-interval = 3', 'check-url = "/"', 'check-interval = 3') {
		my ($name) = $setting =~ /^(\S+)/;
		$file = put('pool.conf', "$root$protocol" . $lines =~ s/SETTING/proxy-core.$setting/r);
		($rc, undef, $err) = run('-t', '-f', $file);
		is $rc, 78, "proxy-core.$name $what";
		like $err, qr{^DIR/pool\.conf:$line:\d+: proxy-core\.$name is a setting of the pool .*: the backends are those of DIR/pool\.conf:$backends; write it there}m,
			'... is refused, with what to write';
	}
	$file = put('pool.conf', "$root$protocol" . $lines =~ s/SETTING/proxy-core.read-timeout = 3\n\tproxy-core.debug = 1/r);
	($rc, undef, $err) = run('-tt', '-f', $file);
	is "$rc $err", '0 ', '... but a setting of the request is not';
}
for my $n (64, 65) {
	my $list = join ', ', map { qq{"127.0.0.1:$_"} } 1 .. $n;
	$file = put('many.conf', "$root${protocol}proxy-core.backends = ( $list )\n");
	($rc, undef, $err) = run('-tt', '-f', $file);
	is $rc, $n == 64 ? 0 : 78, "$n backends";
	like $err, $n == 64 ? qr/^$/ : qr/proxy-core\.backends: more than 64 addresses; write fewer/, '... and what is possible';
}
for my $lines ("$own\nproxy-core.max-pool-size = 3\n", qq{\$HTTP["url"] =~ "^/b/" {\nproxy-core.max-pool-size = 3\n\$HTTP["host"] == "a" {\n$own\n}\n}\n},
	qq{\$HTTP["url"] =~ "^/b/" {\nproxy-core.max-pool-size = 3\n}\n}, qq{\$HTTP["url"] =~ "^/b/" {\nproxy-core.max-pool-size = 3\n$own\n}\n}) {
	$file = put('pool.conf', "$root$protocol$lines");
	($rc, undef, $err) = run('-tt', '-f', $file);
	is "$rc $err", '0 ', 'beside the backends, around them, and without any it stands well';
}

# ---------------------------------------------------------------- a reload for which memory is short

SKIP: {
	skip 'a sanitizer needs more than any limit of memory', 6 if $program =~ /asan|tsan/;
	skip 'prlimit64 is numbered differently here', 6 unless qx{uname -m} eq "x86_64\n";
	my $large = join '', 'var.a = "' . 'x' x 200_000 . qq{"\n}, (map { "var.b$_ = var.a + var.a\n" } 1 .. 90),
		(map { qq{\$HTTP["url"] == "/$_" { server.name = "x$_"\n server.tag = "y$_" }\n} } 1 .. 3000);
	for my $spare (10, 20, 30) {    # MiB; the file needs some 40
		my $srv = Test::Server->start(conf => '', env => { MALLOC_ARENA_MAX => 1 });
		$srv->write('x', 'x');
		$srv->fetch('/x');
		my ($before, $pages, $same) = (0, 0, 0);
		Test::Util::eventually(sub {  # all threads are there
			($before, $pages) = ($pages, split ' ', slurp('/proc/' . $srv->pid . '/statm'));
			select undef, undef, undef, 0.05;
			$same = $before == $pages ? $same + 1 : 0;
			return $same == 3;
		});
		my $limit = sub {
			my $what = pack 'Qq', $_[0], -1;
			syscall(302, $srv->pid + 0, 9, $what, 0) == 0 or die "prlimit64: $!";    # RLIMIT_AS
		};
		$limit->(4096 * $pages + ($spare << 20));
		open my $fh, '>>', $srv->run . '/server.conf' or die $!;
		print $fh $large;
		close $fh or die $!;
		$srv->signal('USR1');
		like $srv->wait_log(qr/ev=reload\.refused|must\.failed|GLib-ERROR|ev=reloaded/), qr/ev=reload\.refused.*not enough memory/, "a reload with $spare MiB of memory left is refused";
		$limit->(1 << 40);
		is eval { $srv->fetch('/x')->{status} }, 200, '... and the old configuration serves on';
	}
}

# ---------------------------------------------------------------- the command line

($rc, my $out, $err) = run('--nothing');
is "$rc $out", '64 ', 'an unknown option: status 64';
like $err, qr/\A.*--nothing.*--help.*\n\z/, '... one line with a hint';
($rc, $out, $err) = run('-t');
is "$rc $out", '64 ', 'no configuration file: status 64';
($rc, $out, $err) = run('-h');
is "$rc $err", '0 ', '-h';
like $out, qr/^\s+-f, --config=FILE\s+\w/m, '... shows the options on standard output';
($rc, $out, $err) = run('-v');
like "$rc $out", qr{^0 accel-server/\d+\.\d+\.\d+$}, '-v';
($rc, $out, $err) = run('-V');
like $out, qr/^  \+ linux-sendfile /m, '-V marks what works';
SKIP: {
	skip 'io-uring is not built in', 1 unless $out =~ /^  \+ io-uring /m;
	my $refuse = $program =~ s/accel-server\z/refuse/r;
	like qx{$refuse io_uring_setup=EPERM -- $program -V}, qr/^  - io-uring +io_uring is forbidden here/m, '... and says why something does not';
}

done_testing;
