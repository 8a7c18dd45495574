# server.http-parseopts: what it refuses, what it makes of an encoded slash, and what cannot be switched off.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util;

my $everything = join ', ', map { qq{"$_" => "enable"} } qw(header-strict host-strict host-normalize url-normalize
	url-normalize-unreserved url-normalize-required url-ctrls-reject url-path-2f-decode url-path-dotseg-remove url-invalid-utf8-reject
	method-get-body);

sub status ($srv, $path) { return $srv->fetch($path)->{status} }

subtest 'without the setting' => sub {
	my $srv = Test::Server->start(conf => '');
	$srv->write($_, 'x') for "d/a", "c\x01d";
	is status($srv, $_->[0]), $_->[1], "$_->[0] gets $_->[1]"
	    for ['/d%2fa', 400], ['/d/%2e/a', 200], ['/c%01d', 200], ['/d/a?x=%ff%01', 200], ['/%ff', 404], ['/d%5ca', 400];
};

subtest 'what Debian enables' => sub {
	my $srv = Test::Server->start(conf => "server.http-parseopts = ( $everything )\n"
		. qq{\$HTTP["url"] =^ "/secret/" { url.access-deny = ( "" ) }\n});
	$srv->write($_, 'x') for "d/a", "c\x01d", 'secret/a';
	is status($srv, $_->[0]), $_->[1], "$_->[0] gets $_->[1]"
	    for ['/d%2fa', 200], ['/d%2F..%2fd/a', 200], ['/..%2fd/a', 400], ['/d/%2e/a', 200], ['/c%01d', 400], ['/d/a?x=%01', 400],
		['/%ff', 400], ['/d/a?x=%ff', 400], ['/d/a?x=%c3%a4', 200], ['/d%5ca', 400], ['/secret%2fa', 403], ['/d%2f..%2fsecret%2fa', 403];
};

subtest 'segments that leave a directory' => sub {
	my $srv = Test::Server->start(conf => 'server.http-parseopts = ( "url-path-dotseg-reject" => "enable" )');
	$srv->write('d/a', 'x');
	is status($srv, $_->[0]), $_->[1], "$_->[0] gets $_->[1]" for ['/d/a', 200], ['/d/./a', 400], ['/d/%2e%2e/d/a', 400], ['/d/...', 404];
};

my $file = Test::Util::put(($ENV{TMPDIR} // '/tmp') . "/accel-parseopts-$$.conf", '');
END { unlink $file if defined $file }
for my $case (
	['"host-strict" => "disable"', qr/"host-strict" cannot be disabled: a malformed host is always refused; remove it/],
	['"url-path-dotseg-remove" => "disable"', qr/cannot be disabled: a path may never leave its root/],
	['"url-path-2f-reject" => "disable"', qr/write "url-path-2f-decode" => "enable"/],
	['"url-path-backslash-trans" => "enable"', qr/cannot be enabled: a backslash/],
	['"url-query-20-plus" => "enable"', qr/cannot be enabled: /],
	['"url-path-2f-decode" => "enable", "url-path-2f-reject" => "enable"', qr/"url-path-2f-reject" contradicts another key/],
	['"url-path-dotseg-remove" => "enable", "url-path-dotseg-reject" => "enable"', qr/"url-path-dotseg-remove" contradicts another key/],
	['"url-ctrl-reject" => "enable"', qr/unknown key "url-ctrl-reject"; did you mean url-ctrls-reject\?/],
	['"url-ctrls-reject" => "perhaps"', qr/expected "enable" or "disable", got "perhaps"/],
) {
	my ($keys, $want) = @$case;
	Test::Util::put($file, qq{server.document-root = "/"\nserver.port = 8080\nserver.http-parseopts = ( $keys )\n});
	like qx{@{[ Test::Util::program('accel-server') ]} -t -f $file 2>&1}, qr/:3:\d+: server\.http-parseopts: .*$want/, $keys;
	is $? >> 8, 78, '... stops the start';
}

done_testing;
