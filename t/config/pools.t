# Settings of the pools of proxy-core: what does not fit is an error or a warning with its place.
use v5.36;
use Test::More;
use File::Temp ();
use FindBin    ();
use lib "$FindBin::Bin/../lib";
use Test::Util qw(slurp);

my $program = ($ENV{B} // 'build') . '/bin/accel-server';
my $dir = File::Temp->newdir;

# Exit status and standard error.
sub check ($lines) {
	my $file = Test::Util::put("$dir/x.conf", qq{server.document-root = "$dir"\nproxy-core.protocol = "fastcgi"\n$lines});
	my $err = qx{$program -tt -f $file 2>&1 >/dev/null </dev/null};
	return ($? >> 8, $err =~ s/\Q$dir\E/DIR/gr);
}

my $two = qq{proxy-core.backends = ( "127.0.0.1:1", "127.0.0.1:2" )\n};
my $long = 'x' x 107;

for my $case (
	['a weight for each', qq{${two}proxy-core.weights = ( 1, 256 )\n}, 0, qr/^$/],
	['no weights', qq{${two}proxy-core.weights = ()\n}, 0, qr/^$/],
	['weights around the block', qq{proxy-core.weights = ( 2, "3" )\n\$HTTP["url"] == "/" {\n$two}\n}, 0, qr/^$/],
	['one weight for two', qq{${two}proxy-core.weights = ( 1 )\n}, 78,
		qr{^DIR/x\.conf:4:22: proxy-core\.weights: expected a number from 1 to 256 for each of the 2 backends of DIR/x\.conf:3, got 1}],
	['weights of an outer block', qq{proxy-core.weights = ( 1, 2, 3 )\n\$HTTP["url"] == "/" {\n$two}\n}, 78,
		qr{^DIR/x\.conf:3:22: .* each of the 2 backends of DIR/x\.conf:5, got 3; write it in the block of proxy-core\.backends}],
	['a weight of 0', qq{${two}proxy-core.weights = ( 0, 1 )\n}, 78, qr{^DIR/x\.conf:4:22: proxy-core\.weights: expected a number from 1 to 256, got "0"}],
	['a weight of 257', qq{${two}proxy-core.weights = ( 1, 257 )\n}, 78, qr{expected a number from 1 to 256, got "257"}],
	['a weight in words', qq{${two}proxy-core.weights = ( 1, "much" )\n}, 78, qr{expected a number from 1 to 256, got "much"}],
	['weights elsewhere', qq{\$HTTP["url"] == "/" {\n$two}\nelse \$HTTP["url"] == "/b" {\nproxy-core.weights = ( 1, 2 )\n}\n}, 78,
		qr{proxy-core\.weights is a setting of the pool}],
	['balancer fair', qq{${two}proxy-core.balancer = "fair"\n}, 0, qr{^DIR/x\.conf:4:23: .*proxy-core\.balancer: "fair" is an old name; write "sqf"}],
	['balancer hash', qq{${two}proxy-core.balancer = "hash"\n}, 0, qr{"hash" is an old name; write "carp"}],
	['balancer sticky', qq{${two}proxy-core.balancer = "sticky"\n}, 0, qr{^$}],
	['an unknown balancer', qq{${two}proxy-core.balancer = "random"\n}, 78, qr{^DIR/x\.conf:4:23: proxy-core\.balancer: expected one of: round-robin sqf static}],
	['an abstract socket', qq{proxy-core.backends = ( "unix:\@app" )\n}, 0, qr/^$/],
	['an abstract socket without a name', qq{proxy-core.backends = ( "unix:\@" )\n}, 78, qr{^DIR/x\.conf:3:23: .*"unix:\@": expected a name after unix:\@}],
	['a long path', qq{proxy-core.backends = ( "unix:/$long" )\n}, 78, qr{^DIR/x\.conf:3:23: proxy-core\.backends: "unix:/x+": .*107}],
	['an IPv6 address without brackets', qq{proxy-core.backends = ( "::1" )\n}, 78, qr{^DIR/x\.conf:3:23: proxy-core\.backends: "::1": }],
	['a check', qq{${two}proxy-core.check-url = "/ping?a=b"\n}, 0, qr/^$/],
	['a check of a whole URL', qq{${two}proxy-core.check-url = "http://x/"\n}, 78, qr{^DIR/x\.conf:4:24: proxy-core\.check-url: expected a path like "/ping", got "http://x/"}],
	['IPv6', qq{proxy-core.backends = ( "[::1]", "[::1]:81" )\n}, 0, qr/^$/],
) {
	my ($what, $lines, $rc, $err) = @$case;
	my @got = check($lines);
	is $got[0], $rc, $what;
	like $got[1], $err, '... and what it says';
}

done_testing;
