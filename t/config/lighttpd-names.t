# Each name of lighttpd has one kind here: honoured, harmless or refused.  Nothing that a file says is ignored in silence.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::Util qw(slurp);

my $program = Test::Util::program('accel-server');
my $top = "$FindBin::Bin/../..";
my $dir = File::Temp->newdir('accel-names-XXXXXX', TMPDIR => 1);

sub check ($text) {
	my $file = Test::Util::put("$dir/x.conf", qq{server.document-root = "$dir"\n} . ($text =~ /server\.port/ ? '' : "server.port = 8080\n") . $text);
	my $said = qx{$program -t -f $file 2>&1};
	return ($? >> 8) . ' ' . $said =~ s/\Q$dir\E/DIR/gr;
}

# ---------------------------------------------------------------- the table

my $page = qx{$program --manual=lighttpd};
is $?, 0, 'the table is printed';
ok $page eq slurp("$top/doc/lighttpd.md"), 'doc/lighttpd.md is what the program prints; if not: make doc/lighttpd.md';
my (%kind, %says, %module);
for (split /\n/, $page) {
	$module{$1} = $2 if /^\| `(mod_\w+)` \| 1\.\d \| (built in|harmless|refused) \|$/;
	next unless /^\| `([a-z][^`]*\.[^`]*)` \| (\w+) \| (.*) \|$/;
	ok !$kind{$1}, "$1 has one kind" if $kind{$1};
	($kind{$1}, $says{$1}) = ($2, $3);
}
cmp_ok scalar keys %kind, '>', 300, 'the table has the names of lighttpd';
is_deeply [grep { $kind{$_} eq 'unknown' } sort keys %kind], [], 'no name of lighttpd is unknown';
is_deeply [grep { $kind{$_} ne 'honoured' && $says{$_} eq '' } sort keys %kind], [], 'a name that is not honoured has a reason';
cmp_ok scalar keys %module, '>', 60, 'the table has the modules of lighttpd';

# ---------------------------------------------------------------- the installed lighttpd

SKIP: {
	my @binaries = grep { -r } '/usr/sbin/lighttpd', glob '/usr/lib/lighttpd/*.so';
	skip 'lighttpd is not installed', 1 unless @binaries;
	my %family = map { /^([^.]+)\./ ? ($1 => 1) : () } keys %kind;
	# Counters, flags of server.feature-flags, places in a list: none is a setting.
	my %other = map { $_ => 1 } qw(fastcgi.requests proxy.requests scgi.requests ajp13.requests sockproxy.requests wstunnel.requests
		cgi.requests server.metrics-high-precision server.pcre_jit server.absolute-dir-redirect server.clock-jump-restart server.pcre_jit
		server.errorlog-high-precision server.graceful-restart-bg server.graceful-shutdown-timeout server.h1-discard-backend-1xx
		server.h2-discard-backend-1xx auth.delay-invalid-creds server.breakagelog-placeholder-moved-to-config-insert
		server.errorlog-placeholder-moved-to-config-insert);
	my %found;
	for my $bytes (map { slurp($_) } @binaries) {
		$found{$1} = 1 while $bytes =~ /\0([a-z][a-z0-9-]*(?:\.[a-zA-Z0-9_-]+)+)(?=\0)/g;
	}
	my @settings = grep { /^([^.]+)\./ && $family{$1} && !$other{$_} && !/\.(?:c|so|h|html|json|debug)$/ } sort keys %found;
	cmp_ok scalar @settings, '>', 150, 'settings were found in the programs of lighttpd';
	is_deeply [grep { !$kind{$_} } @settings], [], '... and each has a kind';
}

# ---------------------------------------------------------------- what each kind does

# A value that some setting of each type takes.
for my $name (grep { $kind{$_} eq 'refused' } sort keys %kind) {
	like check("$name = \"x\"\n"), qr/^78 DIR\/x\.conf:3:1: \Q$name\E cannot be used here\. [A-Z].*\. [A-Z].*\.$/m, "refused: $name";
}
for my $name (grep { $kind{$_} eq 'harmless' } sort keys %kind) {
	like check("$name = \"x\"\n"), qr/^0 (?:DIR\/x\.conf:3:1: \Q$name\E has no effect.*\n)?Syntax OK$/, "harmless: $name";
}
for my $name (grep { $kind{$_} eq 'honoured' } sort keys %kind) {
	unlike check("$name = \"x\"\n"), qr/unknown setting|has no effect|cannot be used/, "honoured: $name";
}

for my $name (sort keys %module) {
	my $said = check("server.modules = ( \"$name\" )\n");
	my $want = { 'built in' => qr/^0 Syntax OK$/, harmless => qr/^0 DIR\/x\.conf:3:18: server\.modules: $name has no effect here\. .+\nSyntax OK$/,
		refused => qr/^78 DIR\/x\.conf:3:18: server\.modules: $name is not built in\. [A-Z].*\. [A-Z].*\.$/ }->{ $module{$name} };
	like $said, $want, "module: $name is $module{$name}";
}

# ---------------------------------------------------------------- names in no table

for my $case (
	['ssl.engin = "disable"', qr/^78 .*unknown setting ssl\.engin; did you mean ssl\.engine\?|^0 .*ssl\.engin is not built in/],
	['url.acces-deny = ( "~" )', qr/^78 .*unknown setting url\.acces-deny; did you mean url\.access-deny\?/],
	['auht.require = ()', qr/^78 .*unknown setting auht\.require; did you mean auth\.require\?/],
	['server.frobnicate-everything = 1', qr/^78 .*unknown setting server\.frobnicate-everything/],
	['basicauth.users = ()', qr/^78 .*unknown setting basicauth\.users/],
	['my-plugin.colour = "red"', qr/^0 DIR\/x\.conf:3:1: unknown setting my-plugin\.colour has no effect.*\nSyntax OK$/],
	['server.modules = ( "mod_acess" )', qr/^78 .*unknown module mod_acess; did you mean mod_access\?/],
	['server.modules = ( "mod_of_my_own_making" )', qr/^0 .*unknown module mod_of_my_own_making has no effect/],
	["server.modules = ( \"mod_access\" )\nserver.modules += ( \"mod_webdav\" )", qr/^78 DIR\/x\.conf:4:19: server\.modules: mod_webdav/],
	["server.modules = ( \"mod_webdav\" )\nserver.modules := ( \"mod_access\" )", qr/^0 Syntax OK$/],
	["server.modules = ( \"mod_webdav\" )\nwebdav.activate = \"disable\"", qr/^0 .*mod_webdav is not built in; its settings are "disable"/s],
	["server.modules = ( \"mod_webdav\" )\nwebdav.activate = \"disable\"\n\$HTTP[\"host\"] == \"a\" { webdav.is-readonly = \"enable\" }", qr/^78 .*mod_webdav is not built in\. /s],
	["server.modules = ( \"mod_openssl\" )\nssl.engine = \"disable\"", qr/^0 Syntax OK$/],
) {
	my ($text, $want) = @$case;
	like check("$text\n"), $want, $text =~ s/\n/; /gr;
}

done_testing;
