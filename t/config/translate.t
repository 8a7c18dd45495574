# fastcgi.server, scgi.server, proxy.server and ajp13.server become blocks of proxy-core.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::Util qw(program put);

my $dir = File::Temp->newdir('accel-translate-XXXXXX', TMPDIR => 1);

sub run ($text, @option) {
	put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.port = 8080\n$text\n});
	my $said = qx{@{[ program('accel-server') ]} @option -f $dir/x.conf 2>&1};
	return ($? >> 8, $said =~ s/\Q$dir\E/DIR/gr);
}

# The blocks of -p, each with its settings: "condition | condition" => { setting => value }.
sub blocks {
	my ($rc, $said) = run($_[0], '-p');
	is $rc, 0, 'it loads' or diag $said;
	(my $again = $said) =~ s/^# listens.*\n//mg;
	put("$dir/again.conf", $said =~ s/DIR/$dir/gr);
	is qx{@{[ program('accel-server') ]} -p -f $dir/again.conf 2>&1} =~ s/\Q$dir\E/DIR/gr, $said, '... and what is printed loads to the same';
	my (%block, @at);
	for (split /\n/, $said) {
		pop @at if /^\s*\}/;
		if (/^\s*(?:\} else )?(\$.*?) \{ (?:\} else \$.* \{ )?# \d+$/) { push @at, $1; $block{ join ' | ', @at } //= {} }
		elsif (/^\s*(\S+) = (.*)$/) { $block{ join ' | ', @at }{$1} = $2 }
	}
	return \%block;
}

sub files { my ($kind, $key) = @_; return qq{\$PHYSICAL["existing-path"] =~ "(?#$kind.server files)(?:$key)\\z"} }
sub urls  { my ($kind, $key, $tag) = @_; return qq{\$HTTP["url"] =~ "(?#$kind.server@{[ $tag // '' ]})} . ($key =~ m{^/} ? "^(?:$key)" : "(?:$key)\\z") . '"' }
my $exists = '$PHYSICAL["existing-path"] =~ "(?#exists)"';
my %pool = ('proxy-core.balancer' => '"sqf"', 'proxy-core.max-pool-size' => '"1024"');
sub pool { my ($protocol, $list, %more) = @_; return { %pool, 'proxy-core.protocol' => qq{"$protocol"}, 'proxy-core.backends' => "( $list )", map { ("proxy-core.$_" => $more{$_}) } keys %more } }

# Lines of lighttpd => a block, and what it must have.
my @cases = (
	['fastcgi.server = ( ".php" => (( "socket" => "/run/a.sock" )) )', files(fastcgi => '\.php'), pool(fastcgi => '"unix:/run/a.sock"')],
	['fastcgi.server = ( ".php" => ( "label" => ( "host" => "127.0.0.1", "port" => "9000" )) )', files(fastcgi => '\.php'), pool(fastcgi => '"127.0.0.1:9000"')],
	['fastcgi.server = ( ".php" => (( "host" => "::1", "port" => 1 ), ( "host" => "b.example", "port" => 2 )) )', files(fastcgi => '\.php'), pool(fastcgi => '"[::1]:1", "b.example:2"')],
	['fastcgi.server = ( "" => (( "socket" => "/s" )) )', files(fastcgi => ''), pool(fastcgi => '"unix:/s"')],
	['fastcgi.server = ( "/a.b" => (( "socket" => "/s" )) )', urls(fastcgi => '/a\.b', ' files') . " | $exists", pool(fastcgi => '"unix:/s"')],
	['fastcgi.server = ( "/a.b" => (( "socket" => "/s", "check-local" => "disable" )) )', urls(fastcgi => '/a\.b'),
		pool(fastcgi => '"unix:/s"', 'rewrite-request' => '( "_pathinfo" => ( "(?s)^/a\.b[^/]*(/.*)$" => "$1" ) )')],
	['fastcgi.server = ( "/" => (( "socket" => "/s", "check-local" => "disable", "fix-root-scriptname" => "enable" )) )', urls(fastcgi => '/'),
		pool(fastcgi => '"unix:/s"', 'rewrite-request' => '( "_pathinfo" => ( "(?s)^(/.*)$" => "$1" ) )')],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "check-local" => "disable" )) )', urls(fastcgi => '\.php'), pool(fastcgi => '"unix:/s"')],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "docroot" => "/srv/$1", "strip-request-uri" => "/x", "broken-scriptfilename" => "enable" )) )', files(fastcgi => '\.php'),
		pool(fastcgi => '"unix:/s"', 'rewrite-request' => '( "_docroot" => ( "(?s)^.*$" => "/srv/$$1" ) )', 'strip-request-uri' => '"/x"', 'broken-scriptfilename' => '"enable"')],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "x-sendfile" => "enable", "x-sendfile-docroot" => ( "/a", "/b" ) )) )', files(fastcgi => '\.php'),
		pool(fastcgi => '"unix:/s"', 'allow-x-sendfile' => '"enable"', 'x-sendfile-docroot' => '( "/a", "/b" )')],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "allow-x-send-file" => "enable", "x-sendfile-docroot" => "/a" )) )', files(fastcgi => '\.php'),
		pool(fastcgi => '"unix:/s"', 'allow-x-sendfile' => '"enable"', 'x-sendfile-docroot' => '( "/a" )')],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "disable-time" => 3, "connect-timeout" => 4, "read-timeout" => 5, "min-procs" => 1, "idle-timeout" => 2, "max-load-per-proc" => 1, "max-procs" => 4 )) )',
		files(fastcgi => '\.php'), pool(fastcgi => '"unix:/s"', 'disable-time' => 3, 'connect-timeout' => 4, 'read-timeout' => 5)],
	[qq{fastcgi.balance = "hash"\nfastcgi.debug = 1\nfastcgi.server = ( ".php" => (( "socket" => "/s" )) )}, files(fastcgi => '\.php'), pool(fastcgi => '"unix:/s"', balancer => '"carp"', debug => 1)],
	[qq{proxy-core.max-pool-size = 5\nproxy-core.balancer = "static"\nfastcgi.server = ( ".php" => (( "socket" => "/s" )) )}, files(fastcgi => '\.php'), { 'proxy-core.protocol' => '"fastcgi"', 'proxy-core.backends' => '( "unix:/s" )' }],
	[qq{fastcgi.map-extensions = ( ".php3" => ".php" )\nfastcgi.server = ( ".php" => (( "socket" => "/s" )) )}, files(fastcgi => '\.php|\.php3'), pool(fastcgi => '"unix:/s"')],
	['fastcgi.server = ( "/" => (( "socket" => "/s", "mode" => "authorizer", "check-local" => "disable", "docroot" => "/d" )) )', urls(fastcgi => '/', ' authorizer'),
		{ %pool, 'proxy-core.authorizer' => '( "unix:/s" )', 'proxy-core.authorizer-protocol' => '"fastcgi"', 'server.document-root' => '"/d"' }],
	['scgi.server = ( "/" => (( "host" => "127.0.0.1", "port" => 4000, "check-local" => "disable" )) )', urls(scgi => '/'), pool(scgi => '"127.0.0.1:4000"', 'rewrite-request' => '( "_pathinfo" => ( "(?s)^/[^/]*(/.*)$" => "$1" ) )')],
	[qq{scgi.protocol = "uwsgi"\nscgi.server = ( "/u" => (( "socket" => "/s" )) )}, urls(scgi => '/u', ' files') . " | $exists", pool(uwsgi => '"unix:/s"')],
	['ajp13.server = ( "/app" => (( "host" => "127.0.0.1" )) )', urls(ajp13 => '/app'), pool(ajp13 => '"127.0.0.1:8009"')],
	['proxy.server = ( "" => (( "host" => "10.0.0.1" ), ( "host" => "/run/p.sock" )) )', urls(proxy => ''), pool(http => '"10.0.0.1:80", "unix:/run/p.sock"')],
	[qq{proxy.header = ( "upgrade" => "enable", "connect" => "disable" )\nproxy.forwarded = ( "for" => 1, "host" => 0 )\nproxy.server = ( ".x" => (( "host" => "a", "port" => 80 )) )}, urls(proxy => '\.x'),
		pool(http => '"a:80"', upgrade => '( "websocket" )', forwarded => '( "x-forwarded", "forwarded" )')],
	[qq{proxy.replace-http-host = "enable"\nproxy.server = ( ".x" => ( "int.example" => ( "host" => "a" )) )}, urls(proxy => '\.x'), pool(http => '"a:80"', 'rewrite-request' => '( "Host" => ( "^.*$" => "int.example" ) )')],
	[qq{proxy.header = ( "map-host-request" => ( "-" => "int.example" ) )\nproxy.server = ( ".x" => (( "host" => "a" )) )}, urls(proxy => '\.x'), pool(http => '"a:80"', 'rewrite-request' => '( "Host" => ( "^.*$" => "int.example" ) )')],
);
for my $case (@cases) {
	my ($text, $where, $want) = @$case;
	subtest $text => sub {
		my $got = blocks($text)->{$where};
		ok $got, "a block $where" or return;
		is_deeply $got, $want, '... with these settings';
	};
}

subtest 'the first key that matches decides' => sub {
	my (undef, $said) = run('fastcgi.server = ( ".php" => (( "socket" => "/1" )), "/a" => (( "socket" => "/2", "check-local" => "disable" )), ".cgi" => (( "socket" => "/3" )) )', '-p');
	my ($files, $urls, $other) = map { quotemeta } files(fastcgi => '\.php'), urls(fastcgi => '\.php'), urls(fastcgi => '/a');
	like $said, qr/^$files \{.*^\} else \$HTTP.*^\} else \$PHYSICAL.*^$urls \{ # \d+\n\} else $other \{/ms, 'as a chain of else, files first, then URLs';
};

subtest 'proxies come after applications, because the last block wins' => sub {
	my (undef, $said) = run(qq{proxy.server = ( "" => (( "host" => "a" )) )\nfastcgi.server = ( "/x" => (( "socket" => "/1", "check-local" => "disable" )) )}, '-p');
	cmp_ok index($said, '(?#fastcgi.server)'), '>', 0, 'both are there';
	cmp_ok index($said, '(?#fastcgi.server)'), '>', index($said, '(?#proxy.server)'), 'without server.modules fastcgi.server comes before proxy.server, so its block is last';
	(undef, $said) = run(qq{server.modules = ( "mod_proxy", "mod_fastcgi" )\nproxy.server = ( "" => (( "host" => "a" )) )\nfastcgi.server = ( "/x" => (( "socket" => "/1", "check-local" => "disable" )) )}, '-p');
	cmp_ok index($said, '(?#fastcgi.server)'), '<', index($said, '(?#proxy.server)'), '... and with it in its order';
};

subtest 'an inner list replaces the outer one' => sub {
	my $b = blocks(qq{fastcgi.server = ( ".php" => (( "socket" => "/1" )), ".cgi" => (( "socket" => "/2" )) )\n\$HTTP["host"] == "a" {\n fastcgi.server = ( ".php" => (( "socket" => "/3" )) )\n}\n\$HTTP["host"] == "b" {\n fastcgi.server = ( )\n}});
	my $old = sub { qq{\$HTTP["host"] == "$_[0]" | \$PHYSICAL["existing-path"] =~ "(?#fastcgi.server of another block)(?:$_[1])\\z"} };
	is $b->{ '$HTTP["host"] == "a" | ' . files(fastcgi => '\.php') }{'proxy-core.backends'}, '( "unix:/3" )', 'a: its own backends';
	is_deeply $b->{ $old->(a => '\.cgi') }, { 'proxy-core.backends' => '()' }, '... none for the other key';
	is $b->{ $old->(a => '\.php') }, undef, '... and nothing more';
	is_deeply $b->{ $old->(b => $_) }, { 'proxy-core.backends' => '()' }, "b: none for $_" for '\.php', '\.cgi';
	is $b->{$_}{'static-file.script-extensions'}, '( ".php", ".cgi" )', "no source in: $_" for '', '$HTTP["host"] == "a"', '$HTTP["host"] == "b"';
};

subtest '--translate' => sub {
	my $text = qq{\$HTTP["host"] == "j" {\n proxy-core.secret = "s3cret"\n ajp13.server = ( "/a" => (( "host" => "h" )) )\n}\nfastcgi.server = ( ".php" => (( "bin-path" => "/bin/x y", "socket" => "/s", "max-procs" => 2, "listen-backlog" => 5, "kill-signal" => 10,\n}
	    . qq{ "bin-environment" => ( "A" => "1 2" ), "bin-copy-environment" => ( "PATH", "B" ) )) )};
	my ($rc, $said) = run($text, '--translate');
	is $rc, 0, 'it prints';
	unlike $said, qr/fastcgi\.server =|ajp13\.server =|^# listens/m, '... without the settings of lighttpd';
	like $said, qr/^\tproxy-core\.secret = "s3cret"$/m, '... with secrets, because it replaces the file';
	my $app = '( "command" => "/bin/x y", "backlog" => "5", "signal" => "10", "env.A" => "1 2", "copy-env" => "PATH B" )';
	like $said, qr/proxy-core\.spawn = \( "unix:\/s-0" => \Q$app\E, "unix:\/s-1" => \Q$app\E \)$/m, '... and programs that are started';
	put("$dir/again.conf", $said =~ s/DIR/$dir/gr);
	is qx{@{[ program('accel-server') ]} --translate -f $dir/again.conf 2>&1} =~ s/\Q$dir\E/DIR/gr, $said, 'what it prints loads to the same';
};

# Mistakes stop the start, with their place.
my @wrong = (
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "max-proc" => 1 )) )', qr/"\.php": did you mean "max-procs"\? unknown key "max-proc"/],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "frobnicate" => 1 )) )', qr/"\.php": unknown key "frobnicate"/],
	['fastcgi.server = ( ".php" => ( "socket" => "/s" ) )', qr/with two brackets/],
	['fastcgi.server = ( ".php" => () )', qr/a list of hosts, got none/],
	['fastcgi.server = ( ".php" => (()) )', qr/expected "socket", or "host" and "port"/],
	['fastcgi.server = (( ".php" => (( "socket" => "/s" ))))', qr/expected a list like/],
	['fastcgi.server = "x"', qr/expected a list like/],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "host" => "a" )) )', qr/either "socket", or/],
	['fastcgi.server = ( ".php" => (( "host" => "a" )) )', qr/expected a number for "port"/],
	['fastcgi.server = ( ".php" => (( "host" => "a", "port" => 70000 )) )', qr/from 1 to 65535/],
	['fastcgi.server = ( ".php" => (( "host" => "a", "port" => "x" )) )', qr/expected a number for "port"/],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "check-local" => "off" )) )', qr/"enable" or "disable" for "check-local"/],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "mode" => "filter" )) )', qr/"responder" or "authorizer"/],
	['scgi.server = ( ".php" => (( "socket" => "/s", "mode" => "authorizer" )) )', qr/only fastcgi\.server has authorizers/],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "docroot" => "/a" ), ( "socket" => "/t", "docroot" => "/b" )) )', qr/the same value for "docroot"/],
	[qq{fastcgi.balance = "best"\nfastcgi.server = ( ".php" => (( "socket" => "/s" )) )}, qr/fastcgi\.balance: expected one of/],
	[qq{fastcgi.server = ( ".php" => (( "socket" => "/s" )) )\n\$HTTP["host"] == "a" { fastcgi.balance = "hash" }}, qr/fastcgi\.balance holds for the pools of fastcgi\.server and cannot stand in this block/],
	[qq{proxy.header = ( "https-remap" => "enable" )\nproxy.server = ( "" => (( "host" => "a" )) )}, qr/write "disable" for "https-remap"/],
	[qq{proxy.header = ( "x" => "enable" )\nproxy.server = ( "" => (( "host" => "a" )) )}, qr/unknown key "x"/],
	[qq{proxy.forwarded = ( "by" => 1 )\nproxy.server = ( "" => (( "host" => "a" )) )}, qr/only for, proto and host can be sent; remove "by"/],
	['fastcgi.server = ( ".php" => (( "socket" => "/s", "bin-environment" => ( "A" => "b" ) )) )', qr/without "bin-path" nothing is started/],
	['fastcgi.server = ( ".php" => (( "bin-path" => "/bin/x" )) )', qr/expected the "socket" that the application listens on/],
	['fastcgi.server = ( ".php" => (( "bin-path" => "relative", "socket" => "/s" )) )', qr/absolute path of a program/],
	['fastcgi.server = ( ".php" => (( "bin-path" => "/bin/x", "socket" => "/s", "max-procs" => 65 )) )', qr/from 1 to 64 for "max-procs"/],
	['fastcgi.server = ( ".php" => (( "bin-path" => "/bin/x", "socket" => "/s", "kill-signal" => 99 )) )', qr/the number of a signal/],
	['fastcgi.server = ( ".php" => (( "bin-path" => "/bin/x", "socket" => "/s", "listen-backlog" => 0 )) )', qr/from 1 to 65535 for "backlog"/],
	['fastcgi.server = ( ".php" => (( "bin-path" => "/bin/x ' . 'y' x 1000 . '", "socket" => "/s" )) )', qr/longer than 1000 bytes together/],
	[qq{proxy-core.protocol = "fastcgi"\nproxy-core.backends = ( "unix:/s" )\nproxy-core.spawn = ( "unix:/s" => ( "command" => "/x", "frob" => "1" ) )}, qr/expected the keys command, backlog/],
	['proxy.server = ( "/a" => (( "host" => "a", "strip-request-uri" => "/a" )) )', qr/write map-urlpath/],
	[qq{scgi.protocol = "http"\nscgi.server = ( "/a" => (( "socket" => "/s" )) )}, qr/scgi\.protocol: expected one of/],
);
for my $case (@wrong) {
	my ($text, $why) = @$case;
	my ($rc, $said) = run($text, '-t');
	is $rc, 78, "refused: $text";
	like $said, qr/^(DIR\/x\.conf:[345]:\d+): .*$why/m, '... with its place and why';
}

my ($rc, $said) = run(qq{fastcgi.server = ( ".php" => (( "socket" => "/s" )) )\nfastcgi.server += ( ".php" => (( "socket" => "/t" )) )}, '-t');
like "$rc $said", qr/^78 .*has the key "\.php" twice/, 'a key twice is refused, as by lighttpd';

done_testing;
