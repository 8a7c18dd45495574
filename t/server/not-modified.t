#!/usr/bin/perl
# A 304 has the fields of the 200 that a cache needs (RFC 9110, 15.4.5), from whichever module or application they come.  A 206
# has them too.  A 416 has none about freshness.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::More;
use Test::Server;
use Test::Util ();

my $app = Test::App->start;
my $dir = Test::Util::temp_tree();
my $srv = Test::Server->start(dir => $dir, conf => <<"CONF" . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket));
server.document-root = "\@DIR\@"
mimetype.assign = ( ".css" => "text/css", ".txt" => "text/plain", ".bin" => "application/octet-stream" )
expire.url = ( "/year/" => "access plus 1 years", "/old/" => "modification plus 2 years", "/list/" => "access plus 2 minutes", "/app/head" => "access plus 5 minutes" )
expire.mimetypes = ( "text/css" => "access plus 3 minutes", "image/x-page" => "access plus 4 minutes" )
deflate.mimetypes = ( "text/" )
deflate.allowed-encodings = ( "gzip" )
setenv.add-response-header = ( "X-All" => "1" )
\$HTTP["url"] =~ "^/set/" {
	setenv.set-response-header = ( "Cache-Control" => "no-cache", "Vary" => "Cookie" )
	setenv.add-response-header = ( "Expires" => "Thu, 01 Jan 2037 00:00:00 GMT", "Content-Location" => "/set/other" )
}
\$HTTP["url"] =~ "^/list/" { dir-listing.activate = "enable" }
CONF
my $text = join '', map { "line $_ of a style sheet\n" } 1 .. 400;
$srv->write($_, $text) for qw(year/a.bin old/a.txt a.css set/a.txt list/a.txt plain.bin app.page);
utime time - 86400, time - 86400, map { $srv->path($_) } qw(year/a.bin old/a.txt a.css set/a.txt list/a.txt plain.bin app.page);
my $file = "/app/head?X-Sendfile:%20" . $srv->path('app.page') . '|Content-Type:%20image/x-page|';

my @needed = qw(cache-control expires vary etag content-location x-all);

sub about ($r, @name) {
	return { map { $_ => $r->{header}{$_} } grep { defined $r->{header}{$_} } @name };
}

# The rest of the life of a reply is a second shorter when the clock has gone on.
sub same {
	my ($got, $want, $name) = @_;
	my ($g, $w) = map { $_->{'cache-control'} // '' } $got, $want;
	$got = { %$got, 'cache-control' => $w } if "$g $w" =~ /\Amax-age=(\d+) max-age=(\d+)\z/ && abs($1 - $2) < 30;
	return is_deeply($got, $want, $name);
}

for (
	[ '/year/a.bin', 'an age', qr/^max-age=31536000$/ ],
	[ '/old/a.txt', 'an age since the modification', qr/^max-age=629\d+$/ ],
	[ '/a.css', 'an age of a media type', qr/^max-age=180$/ ],
	[ '/set/a.txt', 'set fields', qr/^no-cache$/ ],
	[ '/plain.bin', 'no age', undef ],
	[ '/list/', 'a list', qr/^max-age=120$/ ],
	[ "${file}Content-Location:%20/page|Vary:%20Cookie|Cache-Control:%20private", 'a file of an application that says how long', qr/^private$/ ],
	[ "${file}Expires:%20Thu,%2001%20Jan%202037%2000:00:00%20GMT", '... when it ends', undef ],
	[ $file, '... or nothing', qr/^max-age=300$/ ],
	[ $file =~ s{/head}{//head}r, '... in another place', qr/^max-age=300$/ ],
) {
	my ($url, $name, $want) = @$_;
	for my $more ([], [ 'Accept-Encoding' => 'gzip' ]) {
		my $coded = @$more ? ', compressed' : '';
		my $full = $srv->fetch($url, @$more);
		is $full->{status}, 200, "$name$coded";
		my ($age, $tag) = @{ $full->{header} }{qw(cache-control etag)};
		defined $want ? like($age, $want, '... has its Cache-Control') : is($age, undef, '... has no Cache-Control');
		ok $tag, '... and a tag' or next;
		my $none = $srv->fetch($url, @$more, 'If-None-Match' => $tag);
		is $none->{status}, 304, '... which makes it a 304';
		same(about($none, @needed), about($full, @needed), '... with the same fields');
		ok $none->{header}{date}, '... a date';
		is_deeply about($none, qw(content-length content-encoding transfer-encoding)), {}, '... and none about a body';
		next if $url =~ /list/;
		my $part = $srv->fetch($url, @$more, Range => 'bytes=1-2');
		is $part->{status}, 206, '... a part';
		same(about($part, grep { $_ ne 'etag' } @needed), about($full, grep { $_ ne 'etag' } @needed), '... with the same fields');
		my $past = $srv->fetch($url, @$more, Range => 'bytes=99999-');
		is $past->{status} . ($past->{header}{'cache-control'} // ''), $url =~ /set/ ? '416no-cache' : '416', '... none after the end'
			unless $url =~ /app/;
	}
}

# Within the second of its last change a date does not tell two versions apart.
my $since;
Test::Util::eventually(sub {
	$since = $srv->fetch('/year/a.bin', 'If-Modified-Since' => $srv->fetch('/year/a.bin')->{header}{'last-modified'});
	return $since->{status} == 304;
});
is "$since->{status} $since->{header}{'cache-control'}", '304 max-age=31536000', 'a 304 by its date';
my $old = Test::Http::parse($srv->request("GET /year/a.bin HTTP/1.0\r\nIf-None-Match: *\r\n\r\n"));
is $old->{status}, 304, 'a 304 in HTTP/1.0';
like $old->{header}{expires}, qr/GMT$/, '... has Expires';

# What an application says itself with a 304 stays.
my $said = $srv->fetch('/app/head?Status:%20304|ETag:%20%22a%22|Cache-Control:%20private');
is "$said->{status} $said->{header}{'cache-control'} $said->{header}{vary}", '304 private Accept-Encoding', 'a 304 of an application keeps its own';
$said = $srv->fetch('/app/head?Status:%20304|ETag:%20%22a%22|Vary:%20Cookie');
is "$said->{header}{'cache-control'} $said->{header}{vary} $said->{header}{etag}", 'max-age=300 Cookie, Accept-Encoding "a"',
	'... and gets what its 200 would get';
is $srv->fetch('/app/head?Status:%20304|Content-Type:%20image/png')->{header}{vary}, undef, '... but no Vary, if its type is not compressed';
done_testing;
