# dir-listing.*: pages of directories: what each setting does, order, bounds, and names that try to be something else.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Test::Http qw(request_head parse);
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(eventually program put);

my $www = File::Temp->newdir;
mkdir "$www/$_" for qw(d d/sub d/another e many vhosts vhosts/a);
put("$www/d/$_", $_) for 'a.txt', 'b.txt', '.dot', 'old~', 'x.inc', 'HEADER.txt', 'README.txt', 'INTRO';
put("$www/d/HEADER.txt", "top <i>\r\nline");
put("$www/d/README.txt", "<b>bottom</b>");
put("$www/d/INTRO", "an introduction");
put("$www/d/big.bin", 'x' x 123_456);
utime 1_000_000_000, 1_000_000_000, "$www/d/a.txt";
my $odd = qq{q"<b>&'?#%25\xff\n.txt};
put("$www/e/$odd", 'odd');
put("$www/e/caf\xc3\xa9", 'x');
symlink 'a.txt', "$www/d/link";
symlink '/nowhere', "$www/d/broken";
symlink '/etc/passwd', "$www/d/outside";
symlink 'd', "$www/relative";
symlink "$www/d", "$www/absolute";
symlink '/etc', "$www/away";
put("$www/vhosts/a/own.txt", 'own');
symlink "$www/vhosts/a", "$www/vhosts/a/again";
symlink "$www/d", "$www/vhosts/a/out";
POSIX::mkfifo("$www/d/fifo", 0600);
put("$www/many/" . sprintf('f%03d', $_), '') for 1 .. 120;

sub start { return Test::Server->start(dir => $www, conf => qq{index-file.names = ( "none" )\n$_[0]}) }

sub names { return [$_[0] =~ m{^<tr><td><a href="([^"]+)"}mg] }

my $on = qq{dir-listing.activate = "enable"\n};

# [ settings, URL, what the page has, what it has not ]
my @cases = (
	[ '', '/d/', [ qr/^HTTP\S+ 403/ ], [ qr/a\.txt/ ] ],
	[ qq{server.dir-listing = "enable"\n}, '/d/', [ qr/^HTTP\S+ 200/, qr{href="a\.txt"} ], [] ],
	[ qq{\$HTTP["url"] =~ "^/d(\$|/)" { $on}\n}, '/d/', [ qr/^HTTP\S+ 200/ ], [] ],
	[ qq{\$HTTP["url"] =~ "^/d(\$|/)" { $on}\n}, '/e/', [ qr/^HTTP\S+ 403/ ], [] ],
	[ $on, '/d/', [ qr{Content-Type: text/html; charset=utf-8\r}, qr{<title>/d/</title>}, qr{href="\.\./"}, qr{href="sub/">sub/</a>},
		qr{<data value=123456>123\.4 kB</data>}, qr{<time datetime="2001-09-09T01:46:40Z">2001-09-09 01:46</time>}, qr{name=viewport},
		qr{color-scheme:light dark}, qr{href="link"} ], [ qr/\.dot/, qr/<script/, qr/href="fifo"/, qr/>top/ ] ],
	[ $on, '/', [ qr{href="d/"} ], [ qr{href="\.\./"} ] ],
	[ qq{${on}dir-listing.hide-dotfiles = "disable"\n}, '/d/', [ qr{href="\.dot"} ], [] ],
	[ qq{${on}dir-listing.exclude = ( "~\$", "^big" )\n}, '/d/', [ qr{href="a\.txt"} ], [ qr/old~/, qr/big/ ] ],
	[ qq{${on}url.access-deny = ( "~", ".INC" )\n}, '/d/', [ qr{href="a\.txt"} ], [ qr/old~/, qr/x\.inc/ ] ],
	[ qq{${on}dir-listing.encoding = "iso-8859-1"\n}, '/e/', [ qr{charset=iso-8859-1\r}, qr{<meta charset="iso-8859-1">}, qr{>caf\xc3\xa9</a>} ], [] ],
	[ qq{${on}dir-listing.external-css = "/dir.css"\n}, '/d/', [ qr{<link rel=stylesheet href="/dir\.css">} ], [ qr/<style>/ ] ],
	[ qq{${on}dir-listing.external-js = "/dir.js"\n}, '/d/', [ qr{<script src="/dir\.js"></script>} ], [] ],
	[ qq{${on}dir-listing.show-header = "enable"\n}, '/d/', [ qr{<pre>top &lt;i&gt;\nline\n</pre>\n<table>}, qr{href="HEADER\.txt"} ], [ qr/>bottom/ ] ],
	[ qq{${on}dir-listing.show-header = "enable"\ndir-listing.hide-header-file = "enable"\n}, '/d/', [ qr{top} ], [ qr{href="HEADER\.txt"} ] ],
	[ qq{${on}dir-listing.show-header = "INTRO"\n}, '/d/', [ qr{an introduction} ], [ qr/>top/ ] ],
	[ qq{${on}dir-listing.show-readme = "enable"\n}, '/d/', [ qr{</table>\n<pre>&lt;b&gt;bottom} ], [] ],
	[ qq{${on}dir-listing.show-readme = "enable"\ndir-listing.encode-readme = "disable"\n}, '/d/', [ qr{</table>\n<b>bottom</b>} ], [] ],
	[ qq{${on}dir-listing.show-header = "enable"\ndir-listing.encode-header = "disable"\n}, '/d/', [ qr{top <i>} ], [ qr/<pre>/ ] ],
	[ qq{${on}dir-listing.hide-readme-file = "enable"\n}, '/d/', [], [ qr{href="README\.txt"} ] ],
	[ qq{${on}dir-listing.set-footer = "<b>ours</b>"\n}, '/d/', [ qr{<footer class=foot><b>ours</b></footer>} ], [] ],
	[ qq{${on}dir-listing.auto-layout = "disable"\n}, '/d/', [ qr{\r\n\r\n<table>}, qr{</table>\n\z} ], [ qr/doctype/ ] ],
	[ qq{${on}dir-listing.max-entries = 3\n}, '/many/', [ qr{f001}, qr{f003}, qr{117 more entries} ], [ qr/>f004</ ] ],
	[ qq{${on}dir-listing.sort = "disable"\n}, '/d/', [ qr{<th>Name<th} ], [ qr/\?sort=/ ] ],
	[ qq{${on}dir-listing.cache = ( "path" => "/tmp", "max-age" => 60 )\n}, '/d/', [ qr{href="a\.txt"} ], [] ],
	# links to directories
	[ $on, '/relative/', [ qr{^HTTP\S+ 200}, qr{href="a\.txt"} ], [] ],
	[ $on, '/absolute/', [ qr{^HTTP\S+ 200}, qr{href="a\.txt"}, qr{<data value=123456>} ], [] ],
	[ $on, '/absolute/sub/', [ qr{^HTTP\S+ 200} ], [] ],
	[ $on, '/away/', [ qr{^HTTP\S+ 403} ], [ qr/passwd/ ] ],
	[ qq{${on}server.follow-symlink = "disable"\n}, '/absolute/', [ qr{^HTTP\S+ 403} ], [ qr/a\.txt/ ] ],
	[ qq{${on}server.follow-symlink = "enable"\n}, '/absolute/', [ qr{^HTTP\S+ 200}, qr{href="a\.txt"} ], [] ],
	(map { [ qq{${on}simple-vhost.server-root = "\@DIR\@/vhosts/"\nsimple-vhost.default-host = "a"\n}, @$_ ] } [ '/', [ qr{href="own\.txt"} ], [] ],
		[ '/again/', [ qr{^HTTP\S+ 200}, qr{href="own\.txt"} ], [] ], [ '/out/', [ qr{^HTTP\S+ 403} ], [ qr/a\.txt/ ] ]),
	# names of others
	[ $on, '/e/', [ qr{href="q%22%3Cb%3E%26%27%3F%23%2525%FF%0A\.txt">q&quot;&lt;b&gt;&amp;&#39;\?#%25\\xff\\x0a\.txt</a>}, qr{>caf\xc3\xa9</a>} ],
		[ qr/<b>/ ] ],
);
for my $case (@cases) {
	my ($conf, $url, $has, $not) = @$case;
	my $got = start($conf)->get($url);
	my $name = ($conf =~ s/\n/ /gr) . $url;
	like $got, $_, "$name: $_" for @$has;
	unlike $got, $_, "$name: not $_" for @$not;
}

my $srv = start($on);
# [ query, names in this order ]
for my $c (
	[ '', 'another/ sub/ HEADER.txt INTRO README.txt a.txt b.txt big.bin' ],
	[ '?sort=name&order=desc', 'sub/ another/ big.bin b.txt a.txt README.txt INTRO HEADER.txt' ],
	[ '?sort=size&order=desc', 'big.bin INTRO' ],
	[ '?sort=time', 'a.txt' ],
	[ '?C=S;O=D', 'big.bin INTRO' ],
	[ '?sort=%00&x', 'HEADER.txt INTRO README.txt a.txt' ],
) {
	my $page = $srv->get("/d/$c->[0]");
	my @want = split ' ', $c->[1];
	my %want = map { $_ => 1 } @want;
	is_deeply [grep { $want{$_} } @{ names($page) }], \@want, "order of /d/$c->[0]";
}
like $srv->get('/d/?sort=size&order=asc'), qr{sort=size&amp;order=desc">Size</a>}, 'the column of the order turns it round';

my $r = $srv->fetch('/d/');
is $srv->fetch('/d/', 'If-None-Match' => $r->{header}{etag})->{status}, 304, '304 for its tag';
my $head = $srv->head('/d/');
like $head, qr/Content-Length: @{[ length $r->{body} ]}\r/, 'HEAD';
like $head, qr/\r\n\r\n\z/, '... without the page';
put("$www/d/new", 'x');
ok eventually(sub { $srv->get('/d/') =~ /href="new"/ }), 'a new file is listed';
isnt $srv->fetch('/d/')->{header}{etag}, $r->{header}{etag}, '... under another tag';
is $srv->fetch('/nowhere/')->{status}, 404, 'a directory that is not there';
is parse($srv->request(request_head('POST', '/d/', 'Content-Length' => 0)))->{status}, 405, 'POST';
my $c = $srv->connect;
$c->send("GET /d/ HTTP/1.1\r\nHost: x\r\n\r\nGET /d/a.txt HTTP/1.1\r\nHost: x\r\n\r\n" x 3);
is_deeply [map { $c->reply->{status} } 1 .. 6], [(200) x 6], 'pipelined';

for my $bad (
	[ qq{dir-listing.exclude = ( "(" )}, 'dir-listing.exclude' ],
	[ qq{dir-listing.show-header = "/etc/passwd"}, 'without a slash' ],
	[ qq{dir-listing.cache = ( "age" => 3 )}, 'max-age' ],
) {
	put($srv->run . '/bad.conf', qq{server.document-root = "$www"\n$bad->[0]\n});
	my $said = qx{@{[ program('accel-server') ]} -tt -f @{[ $srv->run ]}/bad.conf 2>&1};
	like $said, qr/\Q$bad->[1]\E/, "refused: $bad->[0]";
}

subtest 'a slow directory' => sub {
	my ($ok, $why) = Accel::Slowfs->usable;
	plan skip_all => $why unless $ok;
	my $slow = Accel::Slowfs->start(source => "$www/many", lookup_ms => 0, read_ms => 0, getattr_ms => 0);
	my $s = Test::Server->start(dir => $slow->dir, conf => qq{${on}index-file.names = ( "none" )\nserver.max-worker = 1\n
		\$HTTP["host"] == "fast" { server.document-root = "$www" }\n});
	is $s->fetch('/d/a.txt', Host => 'fast')->{status}, 200, 'another root';
	is $s->fetch('/')->{status}, 200, 'it is listed while it is quick';
	$slow->forget;
	$slow->hang('/f*');
	my @wait = map { $s->connect } 1 .. 8;
	$_->send("GET /?sort=size HTTP/1.1\r\nHost: x\r\n\r\n") for @wait;
	ok $slow->wait_hanging(1), 'a thread waits for a name';
	is $s->fetch('/d/a.txt', Host => 'fast')->{status}, 200, 'hot requests go on';
	is $slow->hanging, 1, 'one listing for all who wait for it';
	$wait[0]->abort;
	$slow->go;
	is_deeply [map { $_->reply->{status} } @wait[1 .. 7]], [(200) x 7], 'all get it';
};

done_testing;
