# Parts of a file: the right bytes with the right label, or the whole file; never more than the file.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $abc  = join '', 'a' .. 'z';
my $past = 1_600_000_000;               # long ago, so that entity tags are strong
my $date = 'Sun, 13 Sep 2020 12:26:40 GMT';

# [Range, status, body or undef for the whole file, Content-Range]
my @table = (
	['bytes=0-0',      206, 'a',       'bytes 0-0/26'],
	['bytes=0-4',      206, 'abcde',   'bytes 0-4/26'],
	['bytes=25-25',    206, 'z',       'bytes 25-25/26'],
	['bytes=23-',      206, 'xyz',     'bytes 23-25/26'],
	['bytes=-3',       206, 'xyz',     'bytes 23-25/26'],
	['bytes=-26',      206, $abc,      'bytes 0-25/26'],
	['bytes=-100',     206, $abc,      'bytes 0-25/26'],
	['bytes=0-',       206, $abc,      'bytes 0-25/26'],
	['bytes=24-100',   206, 'yz',      'bytes 24-25/26'],
	['bytes=24-99999999999999999999999', 206, 'yz', 'bytes 24-25/26'],
	['bytes=-99999999999999999999999',   206, $abc, 'bytes 0-25/26'],
	['BYTES=0-1',      206, 'ab',      'bytes 0-1/26'],
	['bytes=0-1 ',     206, 'ab',      'bytes 0-1/26'],
	['bytes=0-1 , 2-3', 206, 'abcd',   'bytes 0-3/26'],
	['bytes=0-1,',     206, 'ab',      'bytes 0-1/26'],
	['bytes=0-5,3-8',  206, 'abcdefghi', 'bytes 0-8/26'],
	['bytes=0-1,2-3',  206, 'abcd',    'bytes 0-3/26'],
	['bytes=0-1,30-40', 206, 'ab',     'bytes 0-1/26'],
	['bytes=26-',      416, '',        'bytes */26'],
	['bytes=26-30',    416, '',        'bytes */26'],
	['bytes=-0',       416, '',        'bytes */26'],
	['bytes=99999999999999999999999-',  416, '', 'bytes */26'],
	['bytes=18446744073709551616-18446744073709551617', 416, '', 'bytes */26'],
	['bytes=30-31,40-41', 416, '',     'bytes */26'],
	map({ [$_, 200, $abc, undef] } 'bytes=5-4', 'bytes=', 'bytes=-', 'bytes=a-b', 'bytes=0-1-2', 'bytes=+0-1',
	    'bytes=0x0-1', 'bytes', '0-4', 'lines=0-1', 'bytes=0-1;2-3', 'bytes=0-1,x', 'bytes 0-4', 'bytes=0 - 4', 'bytes = 0-1', 'bytes =0-1', 'bytes= 0-1', "bytes=\t0-1", 'bytes=0-,0-,0-',
	    'bytes=0-25,0-25', 'bytes=' . join(',', map { $_ . '-' . $_ } map { 2 * $_ % 26 } 0 .. 17)),
);

my $srv = Test::Server->start(conf => '');
sub put { my ($name, $bytes) = @_; utime $past, $past, $srv->write($name, $bytes) or die $! }

put('abc', $abc);
$srv->settle('abc');
put('empty', '');
for my $case (@table) {
	my ($range, $status, $body, $label) = @$case;
	my $r = $srv->fetch('/abc', Range => $range);
	is_deeply [@$r{qw(status body)}, $r->{header}{'content-range'}, $r->{header}{'content-length'}],
	    [$status, $body, $label, length $body], "$range: $status";
}

sub parts { return Test::Http::parts(@_) }

my $type = 'application/octet-stream';
subtest 'several ranges give a multipart reply' => sub {
	my $r = $srv->fetch('/abc', Range => 'bytes=0-1,4-5,-1');
	is $r->{status}, 206, 'status';
	is $r->{header}{'content-length'}, length $r->{body}, 'length';
	is $r->{header}{'content-range'}, undef, 'the label is in the parts only';
	is_deeply parts($r), [[$type, 'bytes 0-1/26', 'ab'], [$type, 'bytes 4-5/26', 'ef'], [$type, 'bytes 25-25/26', 'z']], 'parts';
	is_deeply parts($srv->fetch('/abc', Range => 'bytes=20-21,2-3')),
	    [[$type, 'bytes 20-21/26', 'uv'], [$type, 'bytes 2-3/26', 'cd']], 'in the order asked for';
	is scalar @{ parts($srv->fetch('/abc', Range => 'bytes=' . join ',', map { 2 * $_ - 2 . '-' . (2 * $_ - 2) } 1 .. 13)) // [] }, 13, 'thirteen parts';
	my $c = $srv->connect;
	$c->send("GET /abc HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1,4-5\r\n\r\nGET /abc HTTP/1.1\r\nHost: x\r\n\r\n");
	is_deeply [map { my $r = $c->reply; $r && $r->{status} } 1, 2], [206, 200], 'and the next request is answered after it';
};

subtest 'Range has no effect on HEAD, errors and empty files' => sub {
	my $r = Test::Http::parse($srv->head('/abc', Range => 'bytes=0-1'));
	is_deeply [$r->{status}, $r->{header}{'content-length'}], [200, 26], 'HEAD';
	is $srv->fetch('/nothing', Range => 'bytes=0-1')->{status}, 404, 'a missing file';
	is $srv->fetch('/empty', Range => 'bytes=0-')->{status}, 416, 'an empty file has no first byte';
	is $srv->fetch('/empty', Range => 'bytes=-5')->{status}, 200, 'all of nothing';
	my $twice = Test::Http::parse($srv->request("GET /abc HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nRange: bytes=4-5\r\nConnection: close\r\n\r\n"));
	is $twice->{status}, 200, 'two Range fields';
	is $srv->fetch('/abc')->{header}{'accept-ranges'}, 'bytes', 'Accept-Ranges';
	my $off = Test::Server->start(dir => $srv->dir, conf => qq{server.range-requests = "disable"\n});
	$r = $off->fetch('/abc', Range => 'bytes=0-1');
	is_deeply [@$r{qw(status body)}, $r->{header}{'accept-ranges'}], [200, $abc, undef], 'server.range-requests = "disable"';
};

subtest 'If-Range gives a part of the same version only' => sub {
	my $tag = $srv->fetch('/abc')->{header}{etag};
	like $tag, qr/\A"[^"]+"\z/, 'strong tag';
	my @case = (
		[$tag, 206, 'the same tag'], ["W/$tag", 200, 'a weak tag'], ['"other"', 200, 'another tag'],
		[$date, 206, 'the same date'], ['Sun, 13 Sep 2020 12:26:39 GMT', 200, 'an older date'],
		['Sun, 13 Sep 2020 12:26:41 GMT', 200, 'a newer date'], ['nonsense', 200, 'nonsense'],
	);
	for (@case) {
		my ($value, $status, $name) = @$_;
		is $srv->fetch('/abc', Range => 'bytes=0-1', 'If-Range' => $value)->{status}, $status, $name;
	}
	is $srv->fetch('/abc', Range => 'bytes=99-', 'If-Range' => '"other"')->{status}, 200, 'no 416 for another version';
	is $srv->fetch('/abc', Range => 'bytes=0-1', 'If-None-Match' => $tag)->{status}, 304, 'a condition comes before the range';
};

for my $backend (qw(writev linux-sendfile gthread-aio)) {
	subtest "$backend: ranges at the edges of pages and windows" => sub {
		my $srv = Test::Server->start(conf => qq{server.network-backend = "$backend"\n});
		my $n = 1 << 20;
		my $all = do { srand 11; join '', map { chr int rand 256 } 1 .. 65_521 };
		$all = substr $all x 17, 0, $n;
		$srv->write('big', $all);
		my @edges = (0, 1, 4095, 4096, 4097, 16_383, 16_385, 65_535, 65_537, 262_143, 262_144, 262_145, $n - 1);
		my @wrong;
		my $c = $srv->connect;
		for my $from (@edges) {
			for my $to (grep { $_ >= $from } @edges) {
				$c->send("GET /big HTTP/1.1\r\nHost: x\r\nRange: bytes=$from-$to\r\n\r\n");
				my $r = $c->reply // { body => '' };
				push @wrong, "$from-$to" if $r->{body} ne substr $all, $from, $to - $from + 1;
			}
		}
		is_deeply \@wrong, [], 'every range between two edges';
		my $r = $srv->fetch('/big', Range => 'bytes=10-100009,300000-600000,-5');
		my $got = parts($r) // [];
		ok +(join '', map { $_->[2] } @$got) eq substr($all, 10, 100_000) . substr($all, 300_000, 300_001) . substr($all, -5),
		    'large parts';
	};
}

done_testing;
