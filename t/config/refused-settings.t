# A setting that protects and is not built in stops the start, -t and a reload, so no protected file goes out.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::Server;

my $program = Test::Util::program('accel-server');
my $dir = File::Temp->newdir('accel-refused-XXXXXX', TMPDIR => 1);

sub put {
	my ($name, $text) = @_;
	open my $fh, '>', "$dir/$name" or die "$dir/$name: $!";
	print $fh qq{server.document-root = "$dir"\n} x ($name =~ /conf/), $text;
	close $fh or die "$dir/$name: $!";
	return "$dir/$name";
}

sub check {
	my ($text, $option) = @_;
	my $file = put('x.conf', $text);
	my $said = qx{$program @{[ $option // '-t' ]} -f $file 2>&1};
	return ($? >> 8, $said =~ s/\Q$dir\E/DIR/gr);
}

# Settings that people had in their files in 2007 and have today.
my @refused = (
	'access.deny-all = "enable"',
	'auth.backend.ldap.hostname = "localhost"',
	'evasive.max-conns-per-ip = 2', 'trigger-b4-dl.deny-url = "http://x/"',
	'fastcgi.unknown = 1', 'uwsgi.server = ( "/" => 1 )', 'sockproxy.server = ( 1 )',
	'cgi.upgrade = "enable"', 'ssi.extension = ( ".shtml" )',
	'magnet.attract-raw-url-to = ( "/x.lua" )', 'webdav.activate = "enable"', 'webdav.is-readonly = "enable"',
	'ssl.ech-opts = ( "keydir" => "/x" )', 'ssl.use-sslv3 = "enable"', 'extforward.params = ( "host" => 1 )',
	'mysql-vhost.db = "x"',
	'server.chroot = "/srv"',
);
for my $line (@refused) {
	my ($name) = $line =~ /^(\S+)/;
	my ($rc, $said) = check("$line\n");
	is $rc, 78, "$name stops -t";
	like $said, qr/^DIR\/x\.conf:2:1: \Q$name\E cannot be used here\. [A-Z].*\. [A-Z].*\.$/m, '... with its place, why, and what to do instead';
}

for my $name (qw(url.acces-deny static-file.exclude-extension auht.require server.folow-symlink $nothing)) {
	next if $name =~ /^\$/;
	my ($rc, $said) = check("$name = \"disable\"\n");
	like "$rc $said", qr/^78 DIR\/x\.conf:2:1: unknown setting \Q$name\E/, "$name, a name that does not exist, stops it too";
}
my ($rc, $said) = check(qq{\$HTTP["languages"] =~ "de" {\n}\n});
like "$rc $said", qr/^78 .*unknown condition/, '... and a condition on something that does not exist';

for my $line ('ssl.use-sslv3 = "disable"', 'ssi.extension = ( )', 'sockproxy.server = ()', 'magnet.attract-raw-url-to = ( )', 'server.breakagelog = "disable"') {
	($rc, $said) = check("$line\n");
	like "$rc $said", qr/^0 DIR\/x\.conf:2:1: \S+ (has no effect|is not built).*\nSyntax OK\n\z/s, "harmless: $line";
}

put('part.inc', qq{\nevasive.silent = "x"\n});
($rc, $said) = check(qq{\$HTTP["url"] =~ "x" {\n include "part.inc"\n}\n});
like "$rc $said", qr/^78 DIR\/part\.inc:2:1: evasive\.silent/, 'in an included file, in a condition';
($rc, $said) = check("evasive.silent = \"x\"\n", '-D');
is $rc, 78, 'the start is refused as well';

subtest 'a refused reload keeps the running configuration' => sub {
	my $srv = Test::Server->start(conf => qq{static-file.exclude-extensions = ( ".php" )\n});
	$srv->write('x.php', 'source');
	is $srv->fetch('/x.php')->{status}, 403, 'before';
	open my $fh, '>>', "$srv->{run}/server.conf" or die $!;
	print $fh qq{static-file.exclude-extensions := ()\nssi.extension = ( ".shtml" )\n};
	close $fh or die $!;
	$srv->signal('USR1');
	ok $srv->wait_log(qr/ssi\.extension cannot be used here/), 'refused, which is logged';
	is $srv->fetch('/x.php')->{status}, 403, '... and the old configuration serves on';
};

subtest 'excluded suffixes are not served' => sub {
	my $srv = Test::Server->start(conf => qq{static-file.exclude-extensions = ( ".php" )\nindex-file.names = ( "index.php" )\n});
	$srv->write("$_.php", 'source') for 'x', 'index', 'sub/index';
	$srv->write('y.PHP', 'source');
	is $srv->fetch($_)->{status}, 403, $_ for '/x.php', '/', '/sub/', '/%78.php', '/x%2ephp', '/./x.php', '//x.php', '/y.PHP', '/a/../x.php';
	is $srv->fetch($_)->{status}, 404, $_ for '/x.php/', '/x.php/info', '/x.php.', '/x.php%20';
};

my $manual = qx{$program --manual=text};
open my $fh, '<', "$FindBin::Bin/../../server/config/lighttpd/refused.def" or die $!;
my @rows = map { /^F\([A-Z]+, "([^"]+)"/ ? $1 : () } <$fh>;
cmp_ok scalar @rows, '>', 50, 'server/config/lighttpd/refused.def was read';
is_deeply [grep { $manual !~ /^    \Q$_\E$/m } @rows], [], 'the manual names every row';

done_testing;
