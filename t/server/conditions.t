# Conditional requests: a current copy gives 304, an outdated one the whole file.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $past = 1_600_000_000;
my ($older, $date, $newer) = map { "Sun, 13 Sep 2020 12:26:$_ GMT" } 39, 40, 41;

sub put ($srv, $name, $bytes, $when = undef) {
	utime $when // $past, $when // $past, $srv->write($name, $bytes) or die $!;
	$srv->settle($name);
}

my $srv = Test::Server->start(conf => '');
put($srv, 'a', 'content');
my $r   = $srv->fetch('/a');
my $tag = $r->{header}{etag};
is $r->{header}{'last-modified'}, $date, 'Last-Modified is the time of the file';
like $tag, qr/\A"[^"\s]+"\z/, 'a strong entity tag';

my @table = (
	[304, 'the tag',                     'If-None-Match' => $tag],
	[304, 'the tag, weak',               'If-None-Match' => "W/$tag"],
	[304, 'a list with the tag',         'If-None-Match' => qq{"x", "a,b", $tag}],
	[304, 'any',                         'If-None-Match' => '*'],
	[200, 'another tag',                 'If-None-Match' => '"x"'],
	[200, 'the tag without quotes',      'If-None-Match' => $tag =~ tr/"//dr],
	[304, 'the same date',               'If-Modified-Since' => $date],
	[304, 'a newer date',                'If-Modified-Since' => $newer],
	[200, 'an older date',               'If-Modified-Since' => $older],
	[304, 'RFC 850 date',                'If-Modified-Since' => 'Sunday, 13-Sep-20 12:26:40 GMT'],
	[304, 'asctime date',                'If-Modified-Since' => 'Sun Sep 13 12:26:40 2020'],
	[200, 'no date at all',              'If-Modified-Since' => 'yesterday'],
	[200, 'another tag beats a date',    'If-None-Match' => '"x"', 'If-Modified-Since' => $newer],
	[304, 'the tag beats an older date', 'If-None-Match' => $tag, 'If-Modified-Since' => $older],
	[200, 'the tag',                     'If-Match' => $tag],
	[200, 'any',                         'If-Match' => '*'],
	[412, 'another tag',                 'If-Match' => '"x"'],
	[412, 'weak never matches',          'If-Match' => "W/$tag"],
	[200, 'the same date',               'If-Unmodified-Since' => $date],
	[412, 'an older date',               'If-Unmodified-Since' => $older],
	[200, 'no date at all',              'If-Unmodified-Since' => 'tomorrow'],
	[412, 'If-Match comes first',        'If-Match' => '"x"', 'If-None-Match' => $tag],
	[304, 'then If-None-Match',          'If-Match' => $tag, 'If-None-Match' => $tag],
	[404, 'a missing file has no tag',   'If-None-Match' => '*', path => '/missing'],
);
for my $case (@table) {
	my ($status, $name, %header) = @$case;
	my $path = delete $header{path} // '/a';
	my ($field) = sort keys %header;
	my $r = $srv->fetch($path, %header);
	is $r->{status}, $status, "$field: $name: $status";
	is $r->{body}, '', '... without a body' if $status == 304;
}

subtest 'a 304 has the headers for a cache and keeps the connection' => sub {
	my $c = $srv->connect;
	$c->send("GET /a HTTP/1.1\r\nHost: x\r\nIf-None-Match: $tag\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
	my ($not, $all) = ($c->reply, $c->reply);
	is $not->{header}{etag}, $tag, 'tag';
	ok exists $not->{header}{date}, 'date';
	is $not->{header}{'transfer-encoding'}, undef, 'no framing of a body that is not there';
	is $all && $all->{body}, 'content', 'the next reply follows';
	is +(Test::Http::parse($srv->head('/a', 'If-None-Match' => $tag)))->{status}, 304, 'HEAD too';
};

subtest 'the tag follows the content' => sub {
	my %seen = ($tag => 1);
	put($srv, 'b', 'contenu');              # same time, same length, another file: not told apart
	put($srv, 'c', 'contents');
	put($srv, 'd', 'content', $past + 1);
	my %tag = map { $_ => $srv->fetch("/$_")->{header}{etag} } qw(b c d);
	is $tag{b}, $tag, 'equal size and time: equal tag';
	isnt $tag{c}, $tag, 'another length: another tag';
	isnt $tag{d}, $tag, 'another time: another tag';
	my $other = Test::Server->start(conf => '');
	put($other, 'a', 'content');
	is $other->fetch('/a')->{header}{etag}, $tag, 'the same on every machine';
	my $inode = Test::Server->start(dir => $srv->dir, conf => qq{etag.use-inode = "enable"\n});
	isnt $inode->fetch('/a')->{header}{etag}, $inode->fetch('/b')->{header}{etag}, 'unless the inode is a part of it';
	my $none = Test::Server->start(dir => $srv->dir, conf => qq{etag.use-mtime = "disable"\netag.use-size = "disable"\n});
	is $none->fetch('/a')->{header}{etag}, undef, 'all parts off: no tag';
	is $none->fetch('/a', 'If-None-Match' => $tag)->{status}, 200, '... and no match';
};

subtest 'two contents within one moment never share a strong tag' => sub {
	my %strong;
	my $twice = 0;
	my $uncached = Test::Server->start(conf => qq{server.stat-cache-engine = "disable"\n});
	for my $i (1 .. 50) {
		$uncached->write('fast', sprintf 'v%03d', $i);
		my $r = $uncached->fetch('/fast');
		is $r->{body}, sprintf('v%03d', $i), "version $i" if $i % 25 == 0;
		my $t = $r->{header}{etag} // '';
		next if $t =~ m{\AW/};
		$twice++ if exists $strong{$t} && $strong{$t} ne $r->{body};
		$strong{$t} = $r->{body};
	}
	is $twice, 0, 'over fifty quick changes';
};

done_testing;
