#!/usr/bin/perl
# auth.*, method digest (RFC 7616): MD5 and SHA-256, nonces, and answers that are not of this request.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Digest::MD5 qw(md5_hex);
use Digest::SHA qw(sha256_hex);
use Test::More;
use Test::Http qw(request_head);
use Test::Server;
use Test::Util qw(find_program);

my $users = File::Temp->newdir('accel-users-XXXXXX', TMPDIR => 1);
chmod 0755, $users;
Test::Util::put("$users/plain", "joe:pw\n");
Test::Util::put("$users/htdigest", 'joe:download archive:' . md5_hex('joe:download archive:pw') . "\njoe:download archive:" . sha256_hex('joe:download archive:pw') . "\n");
chmod 0644, glob "$users/*";
my $srv = Test::Server->start(conf => <<"CONF");
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "$users/htdigest"
auth.backend.plain.userfile = "$users/plain"
auth.require = (
	"/both/" => ( "method" => "digest", "realm" => "download archive", "require" => "user=joe", "algorithm" => "MD5|SHA-256" ),
	"/" => ( "method" => "digest", "realm" => "download archive", "require" => "valid-user", "nonce_secret" => "0123456789abcdef" )
)
\$HTTP["url"] =~ "^/plain/" {
	auth.backend = "plain"
}
CONF
$srv->write("$_/a.txt", 'secret') for qw(both md5 plain);

my %hash = (MD5 => \&md5_hex, 'SHA-256' => \&sha256_hex);
sub nonce { my ($path, $algorithm) = @_; return $srv->fetch($path)->{head} =~ /algorithm=\Q$algorithm\E, nonce="([^"]+)"/ && $1 }

# The header of a client; %set changes what it says.
sub header ($path, $algorithm, %set) {
	my %f = (user => 'joe', realm => 'download archive', nonce => nonce($path, $algorithm), uri => $path, qop => 'auth', nc => '00000001', cnonce => 'abc',
		password => 'pw', method => 'GET', %set);
	my $h = $hash{$algorithm};
	my $response = $h->(join ':', $h->("$f{user}:$f{realm}:$f{password}"), @f{qw(nonce nc cnonce qop)}, $h->("$f{method}:$f{uri}"));
	return (Authorization => qq{Digest username="$f{user}", realm="$f{realm}", nonce="$f{nonce}", uri="$f{uri}", algorithm=$algorithm, } . ($f{more} // '')
		. join ', ', qq{response="} . ($f{response} // $response) . '"', $f{qop} ? ("qop=$f{qop}", "nc=$f{nc}", qq{cnonce="$f{cnonce}"}) : ());
}

like $srv->fetch('/both/a.txt')->{head}, qr/algorithm=SHA-256, nonce="[^"]+", qop="auth"\r\n.*algorithm=MD5, /s, 'the better algorithm comes first';
unlike $srv->fetch('/md5/a.txt')->{head}, qr/SHA-256/, 'MD5 alone without a setting';
for (
	[ '/both/a.txt', 'MD5', 200 ], [ '/both/a.txt', 'SHA-256', 200 ], [ '/md5/a.txt', 'MD5', 200 ], [ '/plain/a.txt', 'MD5', 200 ],
	[ '/both/a.txt', 'MD5', 200, uri => 'http://x/both/a.txt' ],
	[ '/both/a.txt', 'MD5', 400, uri => '/md5/a.txt' ], [ '/both/a.txt', 'MD5', 400, nc => '1' ], [ '/both/a.txt', 'MD5', 400, nc => '00000000' ],
	[ '/both/a.txt', 'MD5', 401, qop => '' ], [ '/both/a.txt', 'MD5', 400, qop => 'auth-int' ], [ '/both/a.txt', 'MD5', 400, response => 'short' ],
	[ '/both/a.txt', 'MD5', 400, more => 'userhash=true, ' ], [ '/both/a.txt', 'MD5', 400, more => 'nc=00000002, ' ],
	[ '/both/a.txt', 'MD5', 401, realm => 'other' ],
) {
	my ($path, $algorithm, $status, %set) = @$_;
	is $srv->fetch($path, header($path, $algorithm, %set))->{status}, $status, join ' ', "$path $algorithm:", %set, $status;
}
for my $nonce ('', 'x', '0-', nonce('/md5/a.txt', 'MD5'), (nonce('/both/a.txt', 'MD5') =~ s/.$//r), sprintf('%x-%s', time - 700, 'a' x 32)) {
	my $r = $srv->fetch('/both/a.txt', header('/both/a.txt', 'MD5', nonce => $nonce));
	like "$r->{status} " . $r->{header}{'www-authenticate'}, qr/^401 Digest .*stale=true/, "nonce \"$nonce\": a new one, and no new password";
}
my @wrong = ([ password => 'no' ], [ user => 'ann' ], [ method => 'POST' ], [ response => '0' x 32 ]);
my @conn;
for my $w (@wrong) {
	push @conn, my $c = $srv->connect(from => '127.0.0.' . (2 + @conn));
	$c->send(request_head('GET', '/both/a.txt', header('/both/a.txt', 'MD5', @$w)));
}
for my $i (0 .. $#wrong) {
	my $r = $conn[$i]->reply;
	is $r->{status}, 401, "wrong: @{ $wrong[$i] }";
	unlike $r->{head}, qr/stale/, '... and the client is asked for a password';
}
my $later = Test::Server->start(conf => qq{auth.backend = "htpasswd"\nauth.backend.htpasswd.userfile = "$users/plain"\n}
	. qq{auth.require = ( "/" => ( "method" => "digest", "realm" => "x", "require" => "valid-user" ) )\n});
is $later->fetch('/')->{status}, 500, 'htpasswd has nothing for Digest: nobody gets in';

SKIP: {
	my $curl = find_program('curl') or skip 'curl is not installed', 1;
	is qx{$curl -s --digest -u joe:pw http://127.0.0.1:@{[ $srv->port ]}/both/a.txt}, 'secret', 'curl --digest';
}
done_testing;
