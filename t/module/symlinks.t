#!/usr/bin/perl
# server.follow-symlink: which links are followed, and what the log says of the others; with each way to open files.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use POSIX qw(mkfifo);
use Test::More;
use Test::Module qw(answers logs);
use Test::Server;
use Test::Util qw(put eventually);

my $dir = File::Temp->newdir('accel-links-XXXXXX', TMPDIR => 1);
make_path("$dir/$_") for qw(www/sub www/deep/er www/index outside/d);
symlink "$dir/www", "$dir/alias-of-www" or die $!;
put("$dir/$_", "$_\n") for qw(www/file www/sub/x outside/secret outside/d/x www/index/own.html);
mkfifo("$dir/www/fifo", 0600) or die "mkfifo: $!";
my %link = (
	'in' => 'sub/x', 'in-dir' => 'sub', 'up' => 'sub/../file', 'deep/er/back' => '../../file', 'chain' => 'in', 'around' => '../www/file',
	'absolute' => "$dir/www/file", 'absolute-dir' => "$dir/www/sub", 'other-name' => "$dir/alias-of-www/file", 'absolute-chain' => "$dir/www/absolute",
	'dots' => "$dir/outside/../www/file", 'index/index.html' => "$dir/www/index/own.html",
	'out' => '../outside/secret', 'out-dir' => '../outside/d', 'absolute-out' => "$dir/outside/secret", 'chain-out' => 'out', 'beside' => "$dir/www-not",
	'passwd' => '/etc/passwd', 'root' => '/', 'self' => '/proc/self/environ', 'fds' => '/proc/self/fd/1',
	'loop' => 'pool', 'pool' => 'loop', 'gone' => 'nothing', 'gone-out' => '/nothing/here', 'to-fifo' => 'fifo', 'to-device' => '/dev/zero', 'through' => "$dir/www/in-dir/x",
);
symlink $link{$_}, "$dir/www/$_" or die "$_: $!" for keys %link;
put("$dir/www-not", "www-not\n");

my @inside = ([ '/in', "www/sub/x\n" ], [ '/in-dir/x', "www/sub/x\n" ], [ '/up', "www/file\n" ], [ '/deep/er/back', "www/file\n" ], [ '/chain', "www/sub/x\n" ]);
my @absolute = map { [ "/$_", "www/file\n" ] } qw(absolute other-name absolute-chain dots around);
push @absolute, [ '/absolute-dir/x', "www/sub/x\n" ], [ '/through', "www/sub/x\n" ], [ '/index/', "www/index/own.html\n" ];
my @outside = ([ '/out', "outside/secret\n" ], [ '/out-dir/x', "outside/d/x\n" ], [ '/absolute-out', "outside/secret\n" ], [ '/chain-out', "outside/secret\n" ], [ '/beside', "www-not\n" ]);
my @never = ('/loop', '/to-fifo', '/fifo', '/to-device', '/in-dir/x/y', '/fds');

sub server { my ($follow, $more) = @_; return Test::Server->start(dir => $dir, conf => qq{server.document-root = "\@DIR\@/www"\n$follow\n} . ($more // '')) }

sub only_inside {
	my ($srv, $how) = @_;
	answers($srv, map { [ "$how: a link inside, $_->[0]", $_->[0], 200, $_->[1] ] } @inside, @absolute);
	answers($srv, map { [ "$how: a link out, $_", $_, 403 ] } (map { $_->[0] } @outside), '/passwd', '/root/etc/passwd', '/self');
	for (@never, '/gone', '/gone-out') {
		like $srv->get($_), qr{^HTTP/1\.1 40[34] }, "$how: $_";
	}
	return;
}

{
	my $srv = server('');
	only_inside($srv, 'by default');
	logs $srv, qr/level=warn ev=link\.refused directory=\S+www link=out target=\.\.\/outside\/secret why=/, 'the log has the link and its target';
	logs $srv, qr/ev=link\.refused directory=\S+www link=out-dir target=/, '... of a directory in the path';
	logs $srv, qr/link=loop target=pool why="links lead in a circle"/, '... and a loop';
	unlink "$dir/www/turn";
	symlink 'file', "$dir/www/turn" or die $!;
	answers($srv, [ 'a link that is followed', '/turn', 200, "www/file\n" ]);
	unlink "$dir/www/turn";
	symlink '/etc/passwd', "$dir/www/turn" or die $!;
	ok eventually(sub { $srv->get('/turn') =~ m{^HTTP/1\.1 403 } }), '... is refused when it has turned outwards';
}

{
	my $srv = server('server.follow-symlink = "enable"');
	answers($srv, map { [ "enable: $_->[0]", $_->[0], 200, $_->[1] ] } @inside, @absolute, @outside);
	answers($srv, [ 'enable: an absolute link to the root', '/root/etc/passwd', 200, qr/^root:/m ], [ 'enable: nothing there', '/gone', 404 ]);
	like $srv->get($_), qr{^HTTP/1\.1 40[34] }, "enable: $_" for @never;
	like $srv->get('/out-dir/../../outside/secret'), qr{^HTTP/1\.1 400 }, 'a path still does not leave the root';
}

{
	my $srv = server('server.follow-symlink = "enable"', qq{server.sandbox-paths = ( "\@DIR\@/outside" )\n});
	answers($srv, [ 'enable, with server.sandbox-paths: a target in them', '/out', 200, "outside/secret\n" ]);
	if ($srv->log =~ /ev=sandbox\.entered/) {
		answers($srv, [ '... and no other', '/passwd', 403 ]);
		logs $srv, qr/link=passwd target=\/etc\/passwd why="the server may not read its target, see server\.sandbox-paths"/, '... which is logged';
	}
}

{
	my $srv = server('server.follow-symlink = "disable"');
	answers($srv, [ 'disable: a file', '/file', 200, "www/file\n" ], map { [ "disable: $_->[0]", $_->[0], 403 ] } @inside, @absolute, @outside);
	logs $srv, qr/link=in target=sub\/x why="server\.follow-symlink is disable"/, 'disable: the log has the link and its target';
}

{
	my $srv = server("server.follow-symlink = \"disable\"\n\$HTTP[\"url\"] =~ \"^/out\" { server.follow-symlink = \"enable\" }\n\$HTTP[\"url\"] =~ \"^/(in|abs)\" { server.follow-symlink = \"inside\" }");
	answers($srv, [ 'in a block: enable', '/out', 200, "outside/secret\n" ], [ 'in a block: inside', '/in', 200, "www/sub/x\n" ],
		[ '... and not out', '/absolute-out', 403 ], [ 'outside of them', '/chain', 403 ]);
}

only_inside(server('', qq{server.network-backend = "$_"\n}), $_) for grep { /uring/ } Test::Server::backends();
only_inside(server('', "server.max-stat-threads = 0\n"), 'without threads');
done_testing;
