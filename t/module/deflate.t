#!/usr/bin/perl
# deflate.* for files: each coding, who gets which, tags and conditions, what is never compressed, the cache on disk.

use strict;
use warnings;
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
