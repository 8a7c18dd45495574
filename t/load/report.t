#!/usr/bin/perl
# Reports of accel-load: as text, as the lines of http_load, as JSON, and as the sum of several runs; a pool that is verified.

use v5.36;
use IPC::Open3 ();
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Symbol qw(gensym);
use Test::More;
use Test::Server;
use Test::Util qw(build_dir put temp_tree);

my $bin = build_dir() . '/bin';
my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n});
my $root = $srv->dir;
my $dir = temp_tree();
my $url = 'http://127.0.0.1:' . $srv->port;
is system("$bin/accel-pool", 'make', '-q', '--spec', '3x4x20k', "$root/pool"), 0, 'a pool';

# Exit status, standard output and standard error.
sub said (@args) {
	my $pid = IPC::Open3::open3(my $in, my $out, my $err = gensym, "$bin/accel-load", '-q', @args);
	close $in;
	my ($text, $complaint) = map { local $/; readline($_) // '' } $out, $err;
	waitpid $pid, 0;
	return ($? >> 8, $text, $complaint);
}

sub json (@args) {
	my ($code, $text, $complaint) = said('--json', @args);
	return eval { decode_json($text) } // die "accel-load @args: $code $text $complaint\n";
}

# The errors of a run by kind, as text: '' of one without.
sub faults ($report) {
	my $n = $report->{errors};
	return join ' ', map { "$_ $n->{$_}" } grep { $_ ne 'all' && $n->{$_} } sort keys %$n;
}

# Those of several reports, added up by hand.
sub buckets ($name, @reports) {
	my %n;
	for my $pair (map { @{ $_->{histograms}{$name}{buckets} } } @reports) {
		$n{ $pair->[0] // 'longer' } += $pair->[1];
	}
	return \%n;
}

subtest 'two merged runs are one' => sub {
	my @file = map { "$dir/$_.json" } 1, 2;
	my @run = (json('-n', 300, '-c', 4, "$url/pool/20k/0000/0000.bin"), json('-n', 500, '-c', 8, '--close', "$url/none"));
	put($file[$_], JSON::PP->new->canonical->encode($run[$_])) for 0, 1;
	my $sum = json('--merge', @file);
	for my $name (qw(latency first_byte connect)) {
		is_deeply buckets($name, $sum), buckets($name, @run), "$name: bucket by bucket";
		is $sum->{histograms}{$name}{sum_ns}, sum0(map { $_->{histograms}{$name}{sum_ns} } @run), "$name: the sum";
	}
	is $sum->{$_}, $run[0]{$_} + $run[1]{$_}, $_ for qw(requests answered failed unanswered connects body_bytes);
	is_deeply $sum->{status}, { 200 => 300, 404 => 500 }, 'statuses';
	is $sum->{errors}{status}, 500, 'errors';
	put("$dir/both.json", join "\n", map { JSON::PP->new->pretty->encode($_) } @run);
	is_deeply json('--merge', "$dir/both.json"), $sum, 'from one file, in another form';
	is_deeply json('--merge', $file[1], $file[0]), $sum, 'in the other order';
	my ($code, $text) = said('--merge', @file);
	is $code, 0, 'as text';
	like $text, qr/\A800 requests in .*^\s+500  status .*^status     200: 300, 404: 500$/ms, '... with the same numbers';
};

subtest 'reports that are none' => sub {
	my ($code, $text, $complaint) = said('--merge', put("$dir/bad", qq({"program":"accel-load",\n  "requests": -1})));
	is "$code $text$complaint", "65 accel-load: $dir/bad:2:15: expected an integer from 0 to 2^53\n", 'file, line and column';
	($code, $text, $complaint) = said('--merge', "$dir/none");
	is "$code $complaint", "66 accel-load: $dir/none: No such file or directory\n", 'a file that is not there';
	($code) = said('--merge', put("$dir/empty", ''));
	is $code, 65, 'an empty file';
	($code, $text, $complaint) = said('--merge', put("$dir/wrk", qq({"program":"wrk"})));
	like $complaint, qr{wrk:1:17: expected a report of accel-load --json}, 'of another program';
};

# A report with each kind of number, as accel-load printed it before it spoke TLS.
my $good = '{"program":"accel-load","seconds":1.5,"requests":16,"answered":9,"failed":3,"aborted":2,"unanswered":2,"connects":16,"held":0,'
	. '"requests_per_s":6.0,"body_bytes":10,"errors":{"all":3,' . join(',', map { qq("$_":0) } qw(connect refused timeout short long wrong status malformed))
	. ',"reset":3},"status":{"200":8,"404":1},"histograms":{"latency":{"sum_ns":9000,"max_ns":4000,"buckets":[[1000,1],[4000,2]]},'
	. '"first_byte":{"sum_ns":18446744073709551615,"max_ns":7,"buckets":[]},"connect":{"sum_ns":1,"max_ns":1,"buckets":[[1010,1],[null,1]]}},'
	. '"client":{"threads":1,"connections":2,"never":0,"least":1,"cpu_s":0.25,"busy_percent":16.7}}';

subtest 'each fault of a report' => sub {
	my @row = (
		['accel-load', 'wrk', 'a report of accel-load'],
		['"requests":16', '"requests":17', 'requests = '],
		(map { ['"requests":16', qq("requests":$_), 'an integer'] } '-16', '16.0', '9007199254740993', '18446744073709551616', '"16"'),
		['"requests":16', '"requests":16,"requests":16', 'each member once'],
		['"requests":16,', '', 'all members'],
		(map { ['"seconds":1.5', qq("seconds":$_), 'a number'] } '1e400', '-3', 'nan'),
		['"refused":', '"refsued":', 'each kind of error'],
		['"404":1', '"404":1,"404":1', 'each status once'],
		['"404":1', '"4040":1', 'a status of three digits'],
		['"sum_ns":', '"sun_ns":', 'sum_ns, max_ns and buckets'],
		(map { ['"buckets":[[', qq("buckets":[[$_,1],[), 'the bound of a bucket'] } '1001', '990', '20000000000000', 'null'),
		['"buckets":[[1000', '"buckets":[[18446744073709551616', 'an integer below 2^64'],
		['"buckets":[[', '"buckets":[', '[bound in ns'],
		['"buckets":[[', '"buckets":{[', 'an array'],
		['{"program"', '["program"', 'an object'],
		['{"program"', '{"x":[[[[[[[[[1]]]]]]]]],"program"', 'fewer objects'],
		['"client":{', '"client":{"x', ''],
	);
	for my $row (@row) {
		my ($from, $to, $why) = @$row;
		my ($code, undef, $complaint) = said('--merge', put("$dir/bad", $good =~ s/\Q$from\E/$to/r));
		like "$code $complaint", qr/^65 accel-load: \S+:1:\d+: expected \Q$why\E.*\n\z/, $to;
	}
	my ($code, undef, $complaint) = said('--merge', put("$dir/bad", qq({"program":"accel-load" ")));
	is $complaint, qq(accel-load: $dir/bad:1:25: expected "," or "}"\n), 'where a list should go on';
	for my $at (grep { $_ % 8 == 1 } 1 .. length($good) - 1) {
		($code, undef, $complaint) = said('--merge', put("$dir/bad", substr $good, 0, $at));
		"$code $complaint" =~ /^65 .* expected / or fail("the first $at bytes of a report: $code $complaint");
	}
};

subtest 'what a report is made of' => sub {
	my $one = json('--merge', put("$dir/good", $good));
	my $other = $good =~ s/\{"program"/{"x":[[[[[[1,true,"\\"]"]]]]]],\n\t"program"/r;
	is_deeply json('--merge', put("$dir/other", $other)), $one, 'members that are not known, blanks';
	is_deeply delete $one->{histograms}{handshake}, { sum_ns => 0, max_ns => 0, buckets => [] }, 'no handshakes';
	is_deeply $one->{histograms}, decode_json($good)->{histograms}, 'histograms as they were';
	is_deeply $one->{client}, { %{ decode_json($good)->{client} }, streams => 0 }, 'and the client';
	my $two = json('--merge', "$dir/good", put("$dir/longer", $good =~ s/"seconds":1\.5/"seconds":2.25/r =~ s/"least":1/"least":0/r));
	is "@{$two}{qw(seconds requests)} @{ $two->{client} }{qw(threads least cpu_s)}", '2.25 32 2 0 0.5', 'at the same time';
	is_deeply $two->{histograms}{connect}, { sum_ns => 2, max_ns => 1, buckets => [[1010, 2], [undef, 2]] }, 'buckets are added';
	is $two->{histograms}{first_byte}{sum_ns}, '18446744073709551615', 'a sum stays at its largest value';
	my ($code, undef, $complaint) = said('--merge', put("$dir/large", ' ' x (1 + (16 << 20))));
	is "$code $complaint", "65 accel-load: $dir/large: expected at most 16 MiB of reports\n", 'a file that is too large';
	is qx{"$bin/accel-load" --merge --json - <"$dir/good"}, qx{"$bin/accel-load" --merge --json "$dir/good"}, 'standard input';
};

subtest 'text' => sub {
	my ($code, $text) = said('-n', 100, '-c', 5, "$url/pool/20k/0000/0001.bin");
	is $code, 0, 'no errors';
	like $text, qr/\A100 requests in [\d.]+ s, 100 answered: [\d.]+ requests\/s, [\d.]+ MB\/s\n/, 'what was done';
	like $text, qr/^ms +p50 +p90 +p95 +p99 +p99\.9 +p99\.99 +max +mean\n(?:(?:latency|first byte|connect)(?: +[\d.]+){8}\n){3}/m, 'times';
	like $text, qr/^no errors\n\nstatus     200: 100\n\z/m, 'errors and statuses';
	is length((sort { length $b <=> length $a } split /\n/, $text)[0]) <= 84, 1, 'lines are short';
};

subtest 'the lines of http_load' => sub {
	my ($code, $text) = said('-parallel', 5, '-fetches', 100, '-verbose', "$url/pool/20k/0000/0001.bin");
	my $number = qr/[\d.e+-]+/;
	like $text, qr/^100 fetches, 5 max parallel, 2\.048e\+06 bytes, in $number seconds$/m, 'fetches';
	like $text, qr/^20480 mean bytes\/connection\n$number fetches\/sec, $number bytes\/sec$/m, 'rates';
	like $text, qr/^msecs\/connect: $number mean, $number max, $number min$/m, 'connect';
	like $text, qr/^msecs\/first-response: $number mean, $number max, $number min$/m, 'first response';
	like $text, qr/^HTTP response codes:\n  code 200 -- 100\n\z/m, 'codes';
};

subtest 'a pool proves itself' => sub {
	is scalar(my @urls = split /\n/, my $listed = qx("$bin/accel-pool" list --prefix /pool/ "$root/pool")), 12, 'its list';
	my $list = put("$dir/urls", $listed);
	my $sums = put("$dir/SUMS", scalar qx(cd "$root" && find pool -name '*.bin' -exec sha256sum {} +));
	for my $verify ('pattern', "hash:$sums", "dir:$root", 'length') {
		is faults(json('-n', 60, '-c', 3, "--verify=$verify", '-u', $list, "$url/")), '', "$verify: whole files";
	}
	for my $verify ('pattern', "dir:$root") {
		my $r = json('-n', 200, '-c', 3, '--range=random:1000', "--verify=$verify", '-u', $list, "$url/");
		is faults($r), '', "$verify: ranges";
		is $r->{body_bytes}, 200_000, '... of this length';
	}
	my $file = "$root/pool/20k/0001/0002.bin";
	open my $fh, '+<', $file or die "$file: $!";
	sysseek $fh, 12_345, 0;
	syswrite $fh, 'x';
	close $fh;
	my $r = json('-n', 24, '--verify=pattern', '-u', $list, "$url/");
	is faults($r), 'wrong 2', 'one byte of one file, twice in two turns';
	my (undef, undef, $complaint) = said('-n', 1, '--verify=pattern', "$url/pool/20k/0001/0002.bin");
	is $complaint, "accel-load: /pool/20k/0001/0002.bin: wrong byte at 12345\n", '... and where it is';
};

$srv->stop;
done_testing;
