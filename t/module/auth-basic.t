#!/usr/bin/perl
# auth.*, method basic: each kind of file and hash, each rule, and what must not let anybody in.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use MIME::Base64 qw(encode_base64);
use Test::App;
use Test::Http qw(parse request_head);
use Test::More;
use Test::Server;
use Test::Util qw(eventually find_program);
use Time::HiRes qw(time);

my %hash = (
	apr1 => '$apr1$AZixn0Os$gF4vpC0jaBMPhMjw3L8hI1', bcrypt => '$2y$05$m1j3TIYxC6AAzzGrfBTnreFJYu8drrGGkOFwB2ng.91qdR9p/ugAS',
	sha => '{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=', des => 'F0ZuXwFm1zG.U',
	sha256 => '$5$n1wHCKqKB9u4UrGD$FFkhvSdtoRH2NtoKpSB8mjFBjvYWA7QSmiX2OO8B8v6',
	sha512 => '$6$aZuZGHbd43KNjhUu$afTuHOqJcbwFsGGVsNyF3ntcdo8tYtm2w9Bk7o8/7xraZ5R45wrCm1IDoMy8sLIrmPGImenr1NFeqBR9a96gi/',
);
my %password = map { ($_ => $_ eq 'bcrypt' ? 'pw2' : 'pw') } keys %hash;

sub basic { my ($user, $password) = @_; return (Authorization => 'Basic ' . encode_base64("$user:$password", '')) }

my $app = Test::App->start;
my $block = Test::Server::proxy_block('^/app/', 'unix:' . $app->socket);
my $users = File::Temp->newdir('accel-users-XXXXXX', TMPDIR => 1);
chmod 0755, $users;
sub file { my ($name, $text) = @_; Test::Util::put("$users/$name.new", $text); chmod 0644, "$users/$name.new"; rename "$users/$name.new", "$users/$name" or die $! }

my $lines = join '', "# users\n\n", map { "$_:$hash{$_}:a comment\n" } sort keys %hash;
file('htpasswd', $lines . "locked:!$hash{apr1}\nstar:*\nempty:\nplain:pw\nshort:\$1\n");
file('plain', "agent007:secret\njan:with:colon\r\nann:pw\n");
file('group', "www: jan, bob\n# www: ann\nadmin:ann\n");
file('htdigest', "agent007:download area:8364d0044ef57b3defcfa141e8f77b65\nagent007:other:00000000000000000000000000000000\n");
my $srv = Test::Server->start(conf => <<"CONF");
accesslog.filename = "\@RUN\@/access.log"
index-file.names = ( "index.html" )
auth.backend = "htpasswd"
auth.cache = ( "max-age" => "1" )
auth.backend.htpasswd.userfile = "$users/htpasswd"
auth.backend.plain.userfile = "$users/plain"
auth.backend.plain.groupfile = "$users/group"
auth.backend.htdigest.userfile = "$users/htdigest"
auth.require = (
	"/download/" => ( "method" => "basic", "realm" => "a \\"quoted\\" realm", "require" => "valid-user" ),
	"/plain/" => ( "method" => "basic", "realm" => "p", "require" => "user=agent007|group=www" ),
	"/digestfile/" => ( "method" => "basic", "realm" => "download area", "require" => "user=agent007" ),
	"/here/" => ( "method" => "basic", "realm" => "p", "require" => "host=127.0.0.1|user=nobody" ),
	"/there/" => ( "method" => "basic", "realm" => "p", "require" => "host=192.168.2.10" ),
	"/app/env" => ( "method" => "basic", "realm" => "p", "require" => "valid-user" )
)
\$HTTP["url"] =~ "^/(plain|here|there)/" {
	auth.backend = "plain"
}
\$HTTP["url"] =~ "^/digestfile/" {
	auth.backend = "htdigest"
}
status.statistics-url = "/counters"
$block
CONF
$srv->write("$_/a.txt", 'secret') for qw(download plain digestfile here there open);
$srv->write('download/index.html', 'index');

my $r = $srv->fetch('/download/a.txt');
is $r->{status}, 401, 'without a password';
is $r->{header}{'www-authenticate'}, 'Basic realm="a \"quoted\" realm", charset="UTF-8"', '... the client is asked';
is $srv->fetch('/open/a.txt')->{body}, 'secret', 'a path without a rule';
for my $kind (sort keys %hash) {
	is $srv->fetch('/download/a.txt', basic($kind, $password{$kind}))->{body}, 'secret', "htpasswd: $kind";
}
is $srv->fetch($_, basic(apr1 => 'pw'))->{status}, 200, "$_: the rule lets the user in" for '/download/', '//download/./a.txt', '/%64ownload/a.txt', '/x/../download/a.txt';
is $srv->fetch($_)->{status}, 401, "$_: no other spelling goes round it" for '/download/', '//download/a.txt', '/%64ownload/%61.txt', '/x/../download/a.txt', '/./download//a.txt', '/download;x/a.txt', '/download/;x';

# The reply to a failure comes late; all failures run at once.
my @wrong = (
	[ '/download/a.txt', apr1 => 'wrong' ], [ '/download/a.txt', apr1 => '' ], [ '/download/a.txt', nobody => 'pw' ],
	[ '/download/a.txt', locked => 'pw' ], [ '/download/a.txt', star => '*' ], [ '/download/a.txt', empty => '' ],
	[ '/download/a.txt', plain => 'pw' ], [ '/download/a.txt', short => 'pw' ],
	[ '/plain/a.txt', ann => 'pw' ], [ '/there/a.txt', ann => 'pw' ],
);
my $t = time;
my @conn;
for my $w (@wrong) {
	my ($path, @who) = @$w;
	push @conn, my $c = $srv->connect(from => '127.0.0.' . (2 + @conn));
	$c->send(request_head('GET', $path, basic(@who)));
}
is $srv->fetch('/download/a.txt', basic(apr1 => 'pw'))->{status}, 200, 'others do not wait for failures';
for my $i (0 .. $#wrong) {
	my ($path, $user, $password) = @{ $wrong[$i] };
	is $conn[$i]->reply->{status}, 401, "$path, $user with \"$password\": refused";
}
cmp_ok time - $t, '>', 0.9, '... after a delay';
is $srv->counter('auth.failed'), scalar @wrong, '... and counted';
my $log = $srv->wait_log(qr/auth\.failed.*user=nobody client=127\.0\.0\.4 path=\/download\/a\.txt why="no such user"/);
like $log, qr/auth\.failed.*user=nobody client=127\.0\.0\.4/, '... and logged';

for (
	[ '/plain/a.txt', agent007 => 'secret', 'plain: a user' ], [ '/plain/a.txt', jan => 'with:colon', 'plain: a member of a group, a password with a colon' ],
	[ '/digestfile/a.txt', agent007 => 'secret', 'htdigest, by Basic' ], [ '/here/a.txt', ann => 'pw', 'host=' ],
) {
	my ($path, $user, $password, $name) = @$_;
	is $srv->fetch($path, basic($user, $password))->{status}, 200, $name;
}

for ([ 'Basic %%%', 400 ], [ 'Basic', 401 ], [ 'Basic ', 401 ], [ 'Digest', 401 ], [ 'Basic ' . encode_base64('nocolon', ''), 400 ], [ 'Basic ' . encode_base64(":pw", ''), 400 ],
	[ 'Basic ' . encode_base64("a\nb:pw", ''), 400 ], [ 'Basic ' . encode_base64("a:p\0w", ''), 400 ], [ 'Basic YXByMTpwdw', 400 ],
	[ 'Basic ' . encode_base64('x' x 300 . ':pw', ''), 400 ], [ 'Bearer x', 401 ], [ 'Digest username="x"', 400 ]) {
	my ($value, $status) = @$_;
	is $srv->fetch('/download/a.txt', Authorization => $value)->{status}, $status, substr("Authorization: $value", 0, 60);
}
like $srv->request("GET /download/a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic YXByMTpwdw==\r\nAuthorization: Basic YXByMTpwdw==\r\n\r\n"),
	qr/^HTTP\S+ 400 /, 'two fields Authorization';

my $env = $srv->fetch('/app/env', basic(apr1 => 'pw'))->{body};
like $env, qr/^REMOTE_USER=apr1$/m, 'an application gets the user';
like $env, qr/^AUTH_TYPE=Basic$/m, '... and the method';
like $srv->request(join "\r\n", 'POST /app/env HTTP/1.1', 'Host: x', 'Content-Length: 100000', 'Connection: close', '', ''), qr/^HTTP\S+ 401 /, 'a refused body is not read';
is $srv->fetch('/app/env', basic(apr1 => 'pw'), 'X-Remote-User' => 'root')->{body} =~ /^REMOTE_USER=(.*)$/m && $1, 'apr1', 'a client cannot set it';
ok eventually(sub { $srv->log('access.log') =~ / - bcrypt \[.*"GET \/download\/a\.txt HTTP\/1\.1" 200/ }), 'the access log has the user';

file('htpasswd', "new:$hash{apr1}\n");
is $srv->fetch('/download/a.txt', basic(new => 'pw'))->{status}, 200, 'a new file counts at once';
ok eventually(sub { $srv->fetch('/download/a.txt', basic(apr1 => 'pw'))->{status} == 401 }), '... and a removed user is out when the cache forgets him';
unlink "$users/htpasswd";
is $srv->fetch('/download/a.txt', basic(gone => 'pw'))->{status}, 500, 'without the file nobody gets in';
like $srv->wait_log(qr/auth\.unusable/), qr/auth\.unusable.*file=\S+htpasswd.*No such file/, '... which is logged';
unlike $srv->log . $srv->log('access.log'), qr/with:colon|YXByMTpwdw|wrong"? |\$apr1/, 'no log has a password';

my $auth = qq{auth.backend = "plain"\nauth.backend.plain.userfile = "$users/plain"\n};
for (
	[ qq{auth.require = ( "/" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )\n}, 'auth\.backend is not set' ],
	[ qq{auth.backend = "plain"\nauth.require = ( "/" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )\n}, 'file of users is not set' ],
	[ qq{auth.backend.plain.userfile = "$users/absent"\n}, 'cannot be read by the server.s user: No such file' ],
	[ qq{auth.backend.htpasswd.userfile = "$users"\n}, 'cannot be read' ],
	[ qq{auth.backend = "ldap"\n}, 'expected one of: plain htpasswd htdigest, got "ldap"' ],
	map({ [ "${auth}auth.require = ( \"/\" => ( $_->[0] ) )\n", $_->[1] ] }
		[ '"method" => "basic", "realm" => "x"', 'are needed' ], [ '"method" => "ntlm", "realm" => "x", "require" => "valid-user"', '"method" is' ],
		[ '"method" => "basic", "require" => "valid-user"', '"realm" is needed' ], [ '"method" => "basic", "realm" => "x", "require" => "anybody"', '"require" is' ],
		[ '"method" => "basic", "realm" => "x", "require" => ""', '"require" is' ], [ '"method" => "basic", "realm" => "x", "require" => "user="', 'a name is empty' ],
		[ '"method" => "digest", "realm" => "x", "require" => "valid-user", "algorithm" => "MD4"', '"algorithm" is' ],
		[ '"method" => "digest", "realm" => "x", "require" => "valid-user", "userhash" => "enable"', 'the keys are' ],
		[ '"method" => "digest", "realm" => "x", "require" => "valid-user", "nonce_secret" => "short"', 'at least 16' ]),
	[ "auth.cache = ( \"max-age\" => \"4000\" )\n", 'at most 3600' ],
) {
	my ($conf, $why) = @$_;
	my $bad = Test::Server->start(conf => $conf, unchecked => 1);
	ok $bad->wait_exit, 'no start: ' . ($conf =~ s/\n+/; /gr);
	like $bad->log =~ s/\\x22/"/gr, qr/$why/, '... which says why';
}

subtest 'what lighttpd accepts, and lets nobody in' => sub {
	my $rule = 'auth.require = ( "/" => ( "method" => "basic", "realm" => "x", "require" => "%s" ) )' . "\n";
	my %conf = (
		group => $auth . sprintf($rule, 'group=a'),
		host => $auth . sprintf($rule, 'host=192.0.2.1'),
		around => sprintf($rule, 'valid-user') . qq<\$HTTP["url"] =~ "^/in" {\n$auth}\n>,
	);
	my %srv = map { ($_ => Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\n$conf{$_}})) } keys %conf;
	$srv{around}->write($_, 'secret') for qw(in.txt out.txt);
	is $srv{group}->fetch('/a.txt', basic(ann => "pw"))->{status}, 401, 'group= without a file of groups';
	like $srv{group}->wait_log(qr/auth\.failed/), qr/why=".*auth\.backend\.plain\.groupfile"/, '... which the log says';
	is $srv{host}->fetch('/a.txt', basic(ann => "pw"))->{status}, 401, 'host= of another client';
	is $srv{around}->fetch('/in.txt')->{status}, 401, 'auth.require around a block with users: a password is asked for';
	is $srv{around}->fetch('/in.txt', basic(ann => "pw"))->{body}, 'secret', '... and lets in';
	is $srv{around}->fetch('/out.txt', basic(ann => "pw"))->{status}, 500, '... and outside of the block nobody gets in';
};

SKIP: {
	my $htpasswd = find_program('htpasswd') or skip 'htpasswd is not installed', 1;
	file('made', '');
	system($htpasswd, '-bB', "$users/made", 'joe', 'pass word') == 0 or die 'htpasswd';
	my $made = Test::Server->start(conf => qq{auth.backend = "htpasswd"\nauth.backend.htpasswd.userfile = "$users/made"\n}
		. qq{auth.require = ( "" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )\n});
	$made->write('a.txt', 'x');
	is $made->fetch('/a.txt', basic(joe => 'pass word'))->{status}, 200, 'a file of htpasswd';
}
done_testing;
