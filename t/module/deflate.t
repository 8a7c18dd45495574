#!/usr/bin/perl
# deflate.* for files: each coding, who gets which, tags and conditions, what is never compressed, the cache on disk.

use v5.36;
use Test::More;

use Test::Coding qw(plain);
use Test::Http qw(req parse);
use Test::Server;
use Test::Util qw(eventually slurp put);

my $text = join '', map { "line $_ of a page that is worth it\n" } 1 .. 400;
my $long = join '', map { sprintf "%04x %d\n", $_ * 2_654_435_761 % 65_536, $_ } 1 .. 60_000;

sub start {
	my ($conf) = @_;
	my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
		. qq{mimetype.assign = ( ".html" => "text/html", ".css" => "text/css", ".jpg" => "image/jpeg", ".js" => "application/javascript", }
		. qq{".txt" => "text/plain" )\n$conf});
	$srv->write('index.html', $text);
	$srv->write('style.css', $text);
	$srv->write('image.jpg', $text);
	$srv->write('code.js', $text);
	$srv->write('text.txt', $text);
	$srv->write('short.txt', 'x' x 255);
	$srv->write('enough.txt', 'x' x 256);
	$srv->settle(qw(index.html style.css image.jpg code.js text.txt short.txt enough.txt));
	return $srv;
}

# The coding that a request gets; '-': none.  Its body is checked.
sub coding {
	my ($srv, $path, $accept, $want, $name) = @_;
	my $r = $srv->fetch($path, defined $accept ? ('Accept-Encoding' => $accept) : ());
	is $r->{header}{'content-length'}, length $r->{body}, "$name: length";
	is plain($r), slurp($srv->path($path)), '... contents';
	return is $r->{header}{'content-encoding'} // '-', $want, '... coding';
}

# ---- the examples of the documentation

my @examples = (
	[ 'the types of a site', 'deflate.mimetypes = ("text/html", "text/plain", "text/css", "text/javascript", "text/xml")',
		'/index.html' => 'gzip', '/text.txt' => 'gzip', '/style.css' => 'gzip', '/image.jpg' => '-', '/code.js' => '-' ],
	[ 'all types of text', 'deflate.mimetypes = ("text/")', '/index.html' => 'gzip', '/code.js' => '-' ],
	[ 'all settings', <<'END', '/index.html' => 'gzip', '/short.txt' => '-', '/enough.txt' => 'gzip' ],
deflate.mimetypes = ("text/")
deflate.allowed-encodings = ( "bzip2", "gzip", "deflate" )
deflate.max-compress-size = 131072
deflate.min-compress-size = 256
deflate.compression-level = 9
deflate.output-buffer-size = 8192
deflate.work-block-size = 2048
deflate.max-loadavg = "350.00"
END
	[ 'Debian', <<'END', '/code.js' => 'gzip', '/index.html' => 'gzip', '/image.jpg' => '-' ],
deflate.mimetypes = ( "application/javascript", "text/css", "text/html", "text/plain" )
deflate.allowed-encodings = ( "brotli", "gzip", "deflate" )
END
	[ 'mod_compress', <<'END', '/index.html' => 'gzip', '/text.txt' => 'gzip', '/style.css' => '-' ],
compress.filetype = ("text/plain", "text/html")
compress.allowed-encodings = ("bzip2", "gzip", "deflate")
compress.max-filesize = 1000
END
	[ 'nothing', '', '/index.html' => '-' ],
	[ 'too long', qq{deflate.mimetypes = ( "text/" )\ndeflate.max-compress-size = 1}, '/index.html' => '-', '/enough.txt' => 'gzip' ],
	[ 'parameters', <<'END', '/index.html' => 'gzip' ],
deflate.mimetypes = ( "text/" )
deflate.params = ( "gzip.level" => 1, "gzip.windowBits" => 9, "gzip.memLevel" => 1, "BROTLI_PARAM_QUALITY" => 11, "BROTLI_PARAM_LGWIN" => 24,
	"ZSTD_c_compressionLevel" => 22, "ZSTD_c_windowLog" => 31, "ZSTD_c_strategy" => 9 )
END
);
for my $example (@examples) {
	my ($name, $conf, @want) = @$example;
	my $srv = start($conf);
	while (my ($path, $want) = splice @want, 0, 2) {
		coding($srv, $path, 'gzip', $want, "$name: $path") for 1 .. 2;
	}
	coding($srv, '/index.html', 'br', 'br', 'largest settings') if $name eq 'parameters';
	coding($srv, '/index.html', 'zstd', 'zstd', 'largest settings') if $name eq 'parameters';
}

# ---- who gets what

my $srv = start(qq{deflate.mimetypes = ( "text/" )\n});
coding($srv, '/index.html', @$_, $_->[0] // 'no Accept-Encoding') for [ undef, '-' ], [ '', '-' ], [ 'br', 'br' ], [ 'zstd', 'zstd' ],
    [ 'gzip', 'gzip' ], [ 'x-gzip', 'gzip' ], [ 'deflate', 'deflate' ], [ 'gzip, deflate, br, zstd', 'br' ], [ '*', 'br' ],
    [ 'gzip;q=0', '-' ], [ 'br;q=0, gzip', 'gzip' ], [ 'identity, gzip;q=0.5', '-' ], [ 'identity;q=0, gzip', 'gzip' ], [ 'bzip2', '-' ];

subtest 'heads' => sub {
	my %r = map { $_ => $srv->fetch('/text.txt', 'Accept-Encoding' => $_) } qw(identity gzip br zstd deflate);
	my %tag = map { $r{$_}{header}{etag} => 1 } keys %r;
	is scalar keys %tag, 5, 'each form has a tag of its own';
	like $r{gzip}{header}{etag}, qr/^".*-gzip"\z/, 'its end is the coding';
	is $r{$_}{header}{vary}, 'Accept-Encoding', "$_: Vary" for sort keys %r;
	is $r{$_}{header}{'last-modified'}, $r{identity}{header}{'last-modified'}, "$_: date" for sort keys %r;
	is $r{$_}{header}{'content-type'}, 'text/plain', "$_: type" for sort keys %r;
	is $srv->fetch('/image.jpg')->{header}{vary}, undef, 'no Vary for a type that is not compressed';
	is $srv->fetch('/short.txt')->{header}{vary}, undef, '... for a short file';
	my $head = parse($srv->head('/text.txt', 'Accept-Encoding' => 'gzip'));
	is $head->{body}, '', 'HEAD: no body';
	delete $_->{header}{date} for $head, $r{gzip};
	is_deeply $head->{header}, $r{gzip}{header}, '... the head of GET';
};

subtest 'conditions' => sub {
	$srv->write('cond.txt', $text);
	$srv->settle('cond.txt');
	my $tag = $srv->fetch('/cond.txt')->{header}{etag};
	my $gzip = $tag =~ s/"\z/-gzip"/r;
	my @rows = ([ 304, 'gzip', $gzip ], [ 200, 'gzip', $tag ], [ 200, 'identity', $gzip ], [ 304, 'identity', $tag ], [ 304, 'gzip', "$tag, $gzip" ],
		[ 304, 'gzip', '*' ], [ 304, 'gzip', "W/$gzip" ]);
	for my $pass ('before', 'after') {
		for (@rows) {
			my ($want, $accept, $match) = @$_;
			my $r = $srv->fetch('/cond.txt', 'Accept-Encoding' => $accept, 'If-None-Match' => $match);
			is $r->{status}, $want, "$pass compression, $accept, If-None-Match: $match";
			is $r->{header}{vary}, 'Accept-Encoding', '... Vary';
			is $r->{header}{etag}, $accept eq 'gzip' ? $gzip : $tag, '... tag';
			is $r->{header}{'content-encoding'}, undef, '... no coding of no body' if $want == 304;
		}
	}
	my $r = $srv->fetch('/cond.txt', 'Accept-Encoding' => 'gzip', 'If-Match' => '"other"');
	is $r->{status}, 412, 'If-Match: another';
};

subtest 'ranges are parts of the file' => sub {
	my $r = $srv->fetch('/text.txt', 'Accept-Encoding' => 'gzip', Range => 'bytes=5-14');
	is $r->{status}, 206, 'a part';
	is $r->{body}, substr($text, 5, 10), '... of the file';
	is $r->{header}{'content-encoding'}, undef, '... without coding';
	is $r->{header}{vary}, 'Accept-Encoding', '... but with Vary';
	$r = $srv->fetch('/text.txt', 'Accept-Encoding' => 'gzip, identity;q=0', Range => 'bytes=5-14');
	is "$r->{status} $r->{header}{'content-encoding'}", '200 gzip', 'a client that takes only gzip gets all of it';
};

subtest 'pipelined requests' => sub {
	my $c = $srv->connect;
	$c->send(join '', map { req($_, 'Accept-Encoding: gzip') } qw(/style.css /short.txt /style.css /image.jpg /index.html));
	my @got = map { $c->reply } 1 .. 5;
	is plain($got[$_]), $_ == 1 ? 'x' x 255 : $text, "reply $_" for 0 .. 4;
	is join(' ', map { $_->{header}{'content-encoding'} // '-' } @got), 'gzip - gzip - gzip', 'their codings';
};

subtest 'another version' => sub {
	$srv->write('new.txt', $text);
	is plain($srv->fetch('/new.txt', 'Accept-Encoding' => 'gzip')), $text, 'the first one';
	$srv->write('new.txt', "other\n$text");
	eventually(sub { plain($srv->fetch('/new.txt', 'Accept-Encoding' => 'gzip')) eq "other\n$text" });
	is plain($srv->fetch('/new.txt', 'Accept-Encoding' => 'gzip')), "other\n$text", 'the second one';
	my $noise = pack 'L*', map { $_ * 2_654_435_761 % 4_294_967_296 ^ int rand 2**32 } 1 .. 4096;
	$srv->write('noise.txt', $noise);
	my $r = $srv->fetch('/noise.txt', 'Accept-Encoding' => 'gzip');
	is "$r->{status} " . ($r->{header}{'content-encoding'} // '-'), '200 -', 'what does not become shorter is sent as it is';
	is $r->{header}{vary}, 'Accept-Encoding', '... with Vary';
};

subtest 'equal requests join' => sub {
	$srv->write('join.txt', $long);
	$srv->settle('join.txt');
	my $made = sub { $srv->counter('server.deflate.files') + $srv->counter('server.deflate.not-shorter') };
	my $before = $made->();
	my @c = map { $srv->connect } 1 .. 8;
	$_->send(req('/join.txt', 'Accept-Encoding: zstd')) for @c;
	my @got = map { $_->reply } @c;
	my $same = grep { ($_->{header}{'content-encoding'} // '-') eq '-' || plain($_) eq $long } @got;
	is $same, 8, 'all get the file';
	is $made->() - $before, 1, 'it was compressed once';
	my $c = $srv->connect;
	$srv->write('gone.txt', $long);
	$c->send(req('/gone.txt', 'Accept-Encoding: br'));
	$c->abort;
	is plain($srv->fetch('/text.txt', 'Accept-Encoding' => 'br')), $text, 'a client that leaves disturbs nobody';
};

# ---- files that are compressed already

$srv = start(qq{static-file.precompressed = ( "br", "gzip" )\ndeflate.mimetypes = ( "text/css" )\n});

sub pack_with {
	my ($program, $text) = @_;
	my $file = File::Temp->new;
	print {$file} $text;
	close $file or die $!;
	my $packed = qx{$program <$file};
	return $packed;
}

subtest 'siblings' => sub {
	my $old = time - 100;
	$srv->write($_, $text) for 'a.html', 'b.html', 'sub/a.jpg', 'old.html', 'dir.html';
	$srv->write('a.html.gz', pack_with('gzip -nc', $text));
	$srv->write('a.html.br', pack_with('brotli -c', $text));
	$srv->write('sub/a.jpg.gz', pack_with('gzip -nc', $text));
	$srv->write('old.html.gz', pack_with('gzip -nc', "an older version\n"));
	mkdir $srv->path('dir.html.gz');
	utime $old, $old, $srv->path('old.html.gz');
	$srv->settle(qw(a.html b.html a.html.gz a.html.br sub/a.jpg sub/a.jpg.gz old.html));
	for (1 .. 2) {
		my %r = map { $_ => $srv->fetch('/a.html', 'Accept-Encoding' => $_) } 'gzip', 'br', 'gzip, br', 'zstd', 'identity';
		is plain($r{$_}), $text, "$_: contents" for sort keys %r;
		is $r{gzip}{body}, slurp($srv->path('a.html.gz')), 'the bytes of FILE.gz';
		is_deeply [ map { $r{$_}{header}{'content-encoding'} } 'gzip', 'br', 'gzip, br', 'zstd', 'identity' ], [ 'gzip', 'br', 'br', undef, undef ], 'codings';
		is $r{$_}{header}{vary}, 'Accept-Encoding', "$_: Vary" for sort keys %r;
		is $r{$_}{header}{'content-type'}, 'text/html', "$_: type" for sort keys %r;
		is $r{$_}{header}{'last-modified'}, $r{identity}{header}{'last-modified'}, "$_: date" for sort keys %r;
		my %tag = map { $r{$_}{header}{etag} => 1 } qw(gzip br identity);
		is scalar keys %tag, 3, 'tags of their own';
		is $srv->fetch('/a.html', 'Accept-Encoding' => 'gzip', 'If-None-Match' => $r{gzip}{header}{etag})->{status}, 304, 'a tag is known again';
	}
	is $srv->fetch('/a.html', 'Accept-Encoding' => 'br', Range => 'bytes=0-3')->{body}, substr($text, 0, 4), 'a range is of the file';
	is plain($srv->fetch('/sub/a.jpg', 'Accept-Encoding' => 'gzip')), $text, 'another type, in a directory';
	for my $name (qw(b.html old.html dir.html)) {
		my $r = $srv->fetch("/$name", 'Accept-Encoding' => 'gzip');
		is $r->{body}, $text, "$name: no sibling, an older one, or none that is a file";
		is $r->{header}{vary}, 'Accept-Encoding', '... Vary';
	}
	coding($srv, '/style.css', 'gzip', 'gzip', 'deflate.* comes after');
	my $c = $srv->connect;
	$c->send(join '', map { req($_, 'Accept-Encoding: gzip') } qw(/a.html /b.html /sub/a.jpg /style.css));
	is plain($c->reply), $text, "pipelined: $_" for 1 .. 4;
	$srv->write('a.html.gz', pack_with('gzip -nc', "new\n"));
	eventually(sub { plain($srv->fetch('/a.html', 'Accept-Encoding' => 'gzip')) eq "new\n" });
	is plain($srv->fetch('/a.html', 'Accept-Encoding' => 'gzip')), "new\n", 'another version of FILE.gz';
	cmp_ok $srv->counter('server.deflate.siblings'), '>', 5, 'they are counted';
};

# ---- the cache on disk

subtest 'deflate.cache-dir' => sub {
	my $cache = File::Temp->newdir('accel-cache-XXXXXX', TMPDIR => 1);
	my @conf = (qq{deflate.mimetypes = ( "text/" )\ndeflate.cache-dir = "$cache"\ndeflate.allowed-encodings = ( "gzip" )\n});
	my $files = sub { my @name = grep { !/^\./ } do { opendir my $dh, "$cache" or die $!; readdir $dh }; return @name };
	my $root = File::Temp->newdir('accel-root-XXXXXX', TMPDIR => 1);
	put("$root/a.html", $text);
	put("$root/long.html", $long);
	push @conf, qq{server.document-root := "$root"\n};
	for my $pass (1 .. 2) {
		my $with = start(join '', @conf);
		is plain($with->fetch("/$_.html", 'Accept-Encoding' => 'gzip')), $_ eq 'a' ? $text : $long, "start $pass: $_" for qw(a long a long);
		is $with->counter($pass == 1 ? 'server.deflate.files' : 'server.deflate.from-cache'), 2, $pass == 1 ? '... compressed' : '... found in the cache';
		is scalar(my @all = $files->()), 2, '... two files in it';
	}
	# a file that was cut, replaced by a link, or is of another version is not sent
	my ($name) = map { "$cache/$_" } grep { -s "$cache/$_" < 20_000 } $files->();
	unlink $name or die $!;
	symlink '/etc/passwd', $name or die $!;
	my $with = start(join '', @conf);
	is plain($with->fetch('/a.html', 'Accept-Encoding' => 'gzip')), $text, 'a link in the cache is not followed';
	ok !-l $name, '... and replaced';
	put("$root/a.html", "$text again");
	eventually(sub { plain($with->fetch('/a.html', 'Accept-Encoding' => 'gzip')) eq "$text again" });
	is plain($with->fetch('/a.html', 'Accept-Encoding' => 'gzip')), "$text again", 'another version';
	chmod 0500, "$cache" or die $!;
	undef $with;
	chmod 0777, "$cache" or die $!;
	my $file = File::Temp->new;
	print {$file} qq{server.document-root = "/tmp"\nserver.port = 0\n$conf[0]};
	close $file or die $!;
	my $said = qx{$ENV{B}/bin/accel-server -D -f $file 2>&1};
	isnt $?, 0, 'a directory in which others may write is refused';
	like $said, qr/deflate\.cache-dir: .*others may write/, '... with the reason';
};

subtest 'the bound of the cache' => sub {
	my $cache = File::Temp->newdir('accel-cache-XXXXXX', TMPDIR => 1);
	my $with = start(qq{deflate.mimetypes = ( "text/" )\ndeflate.cache-dir = "$cache"\ndeflate.max-cache-size = 1\ndeflate.allowed-encodings = ( "gzip" )\n});
	put("$cache/left.over", 'x' x 900_000);
	utime 1, 1, "$cache/left.over";
	for (1 .. 3) {
		my $body = join '', map { pack 'w', $_ * 7 + rand 250 } 1 .. 150_000;
		$with->write("n$_.txt", $body . 'x' x 200_000);
		$with->settle("n$_.txt");
		ok plain($with->fetch("/n$_.txt", 'Accept-Encoding' => 'gzip')) eq slurp($with->path("n$_.txt")), "file $_";
	}
	my $sum = 0;
	$sum += -s $_ for glob "$cache/*";
	cmp_ok $sum, '<=', 1 << 20, 'the oldest are removed';
	ok !-e "$cache/left.over", '... those of earlier servers, too';
};

# ---- bad values

for (
	[ 'deflate.allowed-encodings = ( "lzma" )', qr/expected one of/ ], [ 'deflate.params = ( "gzip.level" => 10 )', qr/deflate\.params: .*gzip\.level/ ],
	[ 'deflate.params = ( "BROTLI_PARAM_SIZE" => 1 )', qr/unknown setting/ ], [ 'deflate.max-loadavg = "much"', qr/expected a number/ ],
	[ 'deflate.compression-level = 10', qr/from 0 to 9/ ], [ qq{deflate.mimetypes = ( "text/" )\ndeflate.cache-dir = "/nonexistent"}, qr/deflate\.cache-dir/ ]) {
	my ($line, $why) = @$_;
	my $file = File::Temp->new;
	print {$file} qq{server.document-root = "/tmp"\nserver.port = 0\n$line\n};
	close $file or die $!;
	my $said = qx{$ENV{B}/bin/accel-server -D -f $file 2>&1};
	isnt $?, 0, "refused: $line";
	like $said, $why, '... with the reason';
}
done_testing;
