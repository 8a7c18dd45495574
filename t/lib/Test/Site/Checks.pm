package Test::Site::Checks;

# What every server does with every example of examples/.  A test says what differs by arguments.  Each check is one subtest;
# check_example runs all of them.
#
#   my $www = tree();
#   my $site = Test::Site->start('nginx', 'auth.conf', root => $www);
#   check_example($site, absent => { body => qr/<html/, escape => 200 }, directories => { slash => 301, bare => 403 });

use v5.36;
use Exporter 'import';
use Test::Fcgi qw(put temp_tree eventually);
use Test::More;

our @EXPORT = qw(tree check_files check_absent check_ranges check_conditions check_directories check_names check_end
	check_order check_example check_asked);

# Bytes of a file: no two kilobytes are the same, so that a range from elsewhere is seen.
sub bytes_of ($size) {
	my $bytes = join '', map { sprintf '%-1023d%s', $_, "\n" } 0 .. $size / 1024;
	return substr $bytes, 0, $size;
}

my %size = ('one.txt' => 1, '100k.bin' => 100_000, '10m.bin' => 10_000_000);
my %bytes = map { $_ => bytes_of($size{$_}) } keys %size;

# Names that caused errors in the past.  Each file contains its own name, so that a neighbour's bytes are noticed.
our @NAMES = ('a space.txt', 'end ', '100%.txt', '%41.txt', 'A.txt', '%2541.txt', 'what?.txt', 'a#b.txt', 'a@b.txt', 'plus+.txt',
	'a:b;c&d=e,f.txt', q{"quotes'.txt}, 'back\\slash.txt', '<[{$`|^~*!}]>.txt', "\xc3\xa4\xe2\x82\xac.txt", "\xff\xfe.txt",
	"tab\t.txt", "new\nline.txt", "return\r\nX-Evil: 1.txt", "del\x7f.txt");

sub tree {
	my $dir = temp_tree();
	mkdir "$dir/$_" for qw(www www/names www/dir www/bare www/hot);
	put("$dir/www/$_", $bytes{$_}) for keys %size;
	put("$dir/www/names/$_", "I am $_") for @NAMES;
	put("$dir/www/dir/index.html", "index of dir\n");
	put("$dir/www/hot/one.txt", 'h');
	put("$dir/www/closed.txt", "secret\n");
	chmod 0, "$dir/www/closed.txt";
	put("$dir/outside.txt", "outside\n");
	symlink '../outside.txt', "$dir/www/escape.txt";
	return $dir;                    # the root is below it, so that there is an outside
}

sub encoded { return $_[0] =~ s/([^A-Za-z0-9._~\/-])/sprintf '%%%02X', ord $1/ger }

sub readable { return $_[0] =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger }

# Options are hashes of arguments by check: absent, conditions, directories, names; and log, for check_end.
sub check_example ($site, %want) {
	check_files($site);
	check_absent($site, %{ $want{absent} });
	check_ranges($site);
	check_conditions($site, %{ $want{conditions} // {} });
	check_directories($site, %{ $want{directories} });
	check_names($site, %{ $want{names} // {} });
	my $asked = $site->asked;
	is $site->get('/hot/one.txt')->{body}, 'h', 'an exempt file is served';
	is $site->asked, $asked, '... without a question to the accelerator';
	check_end($site, exempt => 1, log => $want{log});
	return;
}

# The lines of a README: they serve a file, and ask the accelerator.
sub check_asked ($site) {
	is $site->get('/names/%2541.txt')->{body}, 'I am %41.txt', 'a file is served';
	is $site->asked, 1, '... after a question to the accelerator';
}

sub check_files ($site) {
	subtest "$site->{name}: files" => sub {
		for my $file (sort keys %size) {
			my $r = $site->get("/$file");
			is $r->{status}, 200, $file;
			is $r->{header}{'content-length'}, $size{$file}, '... has its length';
			ok $r->{body} eq $bytes{$file}, '... has its bytes';
			ok $r->{header}{'last-modified'}, '... has a date';
			my $h = $site->head("/$file");
			is "$h->{status} $h->{header}{'content-length'} [$h->{body}]", "200 $size{$file} []", '... HEAD';
		}
		like $site->get('/one.txt')->{header}{'content-type'}, qr{^text/plain}, 'a type by its extension';
		is $site->get($_)->{body}, $bytes{'one.txt'}, $_ for '/one.txt?a=b', '/dir/../one.txt', '//one.txt';
		warmed_are($site, map { $_ => $size{$_} } keys %size);
	};
}

# These files, and not others of the same name, are what the accelerator has made warm.
sub warmed_are ($site, %want) {
	my %got;
	my $in_log = sub { "$site->{root}/$_[0]" =~ s/[\xfe\xff]/\xef\xbf\xbd/gr };       # U+FFFD for what is not UTF-8
	eventually(sub { %got = $site->warmed; !grep { !defined $got{ $in_log->($_) } } keys %want }, 5);
	my @wrong = grep { ($got{ $in_log->($_) } // -1) != $want{$_} } sort keys %want;
	is_deeply [map { readable($_) } @wrong], [], 'the accelerator has made these files warm';
}

# check_absent($site, body => qr/whose page/, escape => 200 or 403, below => what /one.txt/x gives, if not 404)
sub check_absent ($site, %want) {
	subtest "$site->{name}: names that are not served" => sub {
		for (['/none.txt', 404], ['/one.txt/x', $want{below} // 404], ['/none/none.txt', 404], ['/closed.txt', 403],
			['/escape.txt', $want{escape}]) {
			my ($url, $status) = @$_;
			my $r = $site->get($url);
			is $r->{status}, $status, $url;
			like $r->{body}, $want{body}, '... has the error page of the expected side' if $status != 200;
			unlike $r->{body} . $r->{head}, qr/\Q$site->{root}\E|secret/, '... which does not name the root';
			is $site->head($url)->{status}, $status, '... HEAD';
		}
	};
}

# check_ranges($site, multi => 0 when the server sends one part or all instead of several)
sub check_ranges ($site, %how) {
	subtest "$site->{name}: ranges" => sub {
		my $all = $bytes{'10m.bin'};
		for (['0-0', 0, 1], ['5000000-5000999', 5_000_000, 1000], ['9999000-', 9_999_000, 1000], ['-1000', 9_999_000, 1000],
			['9999999-20000000', 9_999_999, 1]) {
			my ($range, $from, $n) = @$_;
			my $r = $site->get('/10m.bin', Range => "bytes=$range");
			is $r->{status}, 206, $range;
			is $r->{header}{'content-range'}, sprintf('bytes %d-%d/10000000', $from, $from + $n - 1), '... has its Content-Range';
			ok $r->{body} eq substr($all, $from, $n), '... has its bytes';
		}
		my $r = $site->get('/10m.bin', Range => 'bytes=10000000-');
		is $r->{status}, 416, 'after the end';
		$r = $site->get('/100k.bin', Range => 'bytes=0-9,50000-50009');
		if ($how{multi} // 1) {
			is $r->{status}, 206, 'two at once';
			like $r->{header}{'content-type'}, qr{^multipart/byteranges; *boundary=}, '... in parts';
			my @parts = $r->{body} =~ /^Content-Range: bytes (\S+)\r\n(?:[^\r]+\r\n)*\r\n([^\r]{10})/gim;
			is_deeply \@parts, ['0-9/100000', substr($all, 0, 10), '50000-50009/100000', substr($all, 50_000, 10)],
			    '... each with its bytes';
		}
		else {
			is $r->{status}, 200, 'two at once: all of the file instead';
			ok $r->{body} eq $bytes{'100k.bin'}, '... has its bytes';
		}
	};
}

# check_conditions($site, etag => 0 when the server makes none, if_range => 206 when it does not know If-Range)
sub check_conditions ($site, %how) {
	subtest "$site->{name}: conditions" => sub {
		my $r = $site->get('/100k.bin');
		my ($date, $etag) = @{ $r->{header} }{qw(last-modified etag)};
		ok defined $etag == ($how{etag} // 1), 'an ETag, or none as expected';
		my @same = (['If-Modified-Since' => $date], defined $etag ? ['If-None-Match' => $etag] : ());
		for (@same) {
			my $again = $site->get('/100k.bin', @$_);
			is "$again->{status} [$again->{body}]", '304 []', "$_->[0]: not changed";
		}
		is $site->get('/100k.bin', 'If-Modified-Since' => 'Sat, 01 Jan 2000 00:00:00 GMT')->{status}, 200, 'an older one';
		return unless defined $etag;
		is $site->get('/100k.bin', 'If-None-Match' => '"other"')->{status}, 200, 'another one';
		is $site->get('/100k.bin', 'If-Range' => '"other"', Range => 'bytes=0-9')->{status}, $how{if_range} // 200, 'If-Range of another one';
	};
}

# check_directories($site, slash => 301 or what /dir gives, bare => status of a directory without an index file)
sub check_directories ($site, %want) {
	subtest "$site->{name}: directories" => sub {
		my $r = $site->get('/dir/');
		is "$r->{status} $r->{body}", "200 index of dir\n", 'its index file';
		like $r->{header}{'content-type'}, qr{^text/html}, '... with its type';
		my $is_warm = sub { my %warm = $site->warmed; grep { ($warm{"$site->{root}/dir/$_"} // 0) == length $r->{body} } '', 'index.html' };
		ok eventually($is_warm, 5), '... was made warm';
		$r = $site->get('/dir');
		is $r->{status}, $want{slash}, 'without the slash';
		like $r->{header}{location}, qr{^(?:http://[^/]+)?/dir/$}, '... where to go' if $want{slash} =~ /^3/;
		is $site->get('/bare/')->{status}, $want{bare}, 'without an index file';
	};
}

# check_names($site, NAME => STATUS...): names that the server does not serve, with its answer.
sub check_names ($site, %not) {
	subtest "$site->{name}: names" => sub {
		my %warm;
		for my $name (@NAMES) {
			my $r = $site->get('/names/' . encoded($name));
			my $status = delete $not{$name} // 200;
			is $r->{status}, $status, readable($name);
			is $r->{body}, "I am $name", '... has its own bytes' if $status == 200;
			$warm{"names/$name"} = length "I am $name" if $status == 200;
			unlike $r->{body}, qr/I am/, '... is not a neighbour' if $status != 200;
			unlike $r->{head}, qr/^X-Evil/m, '... is not a header';
		}
		is_deeply [sort keys %not], [], 'each name that may fail was tried';
		warmed_are($site, %warm);
	};
}

# check_end($site, exempt => N files that were not asked for, log => [patterns of lines that may be there]): last, since it looks back.
sub check_end ($site, %want) {
	subtest "$site->{name}: counts and logs" => sub {
		cmp_ok $site->asked, '>=', $site->served - ($want{exempt} // 0), 'the accelerator was asked for every file';
		is_deeply [grep { /sendfile|send-file|accel|reproxy|litespeed-location/i } $site->seen], [],
		    'no client saw a header that names a file';
		is $site->complaints(@{ $want{log} // [] }), '', 'the error log has nothing unexpected';
		unlike $_->said, qr/level=(?:err|alert|crit)|Sanitizer/, 'the log of the accelerator has nothing unexpected' for $site->apps;
	};
}

# check_order($site, $answer, status => what comes of it if not 200): after check_end, since it ends the accelerator.  The file
# appears while the server waits for the answer: a server that has looked for it before has found nothing.
sub check_order ($site, $answer, %want) {
	subtest "$site->{name}: the question comes before the look-up" => sub {
		my $file = "$site->{root}/late.txt";
		unlink $file;
		my ($params, $r) = $site->answer_as_accel("$answer\r\n\r\n", sub { put($file, 'x' x 1000) }, '/late.txt',
			Range => 'bytes=10-19');
		like $params, qr/HTTP_RANGEbytes=10-19/, 'the accelerator gets the range';
		like $params, qr/REMOTE_ADDR127\.0\.0\.1/, '... and the client, whose files wait in a row of their own';
		is $r->{status}, $want{status} // 206, 'the server looks for the file after the answer';
	};
}

1;
