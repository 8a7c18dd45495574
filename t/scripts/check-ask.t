# accel-check asks at the socket of a configuration: what answers there, or why nothing does.
use v5.36;
use Test::More;
use FindBin ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../scripts/lib";
use Accel::Check::Ask ();
use Test::Check;
use Test::Fcgi;
use Test::Fcgi::Codec qw(:all);
use Test::Util qw(temp_tree);

my @READ = grep { !/^--no-ask/ } @COMMON;
my $run = temp_tree();
chmod 0777, $run;
my $ME = $> == 0 ? 'root' : scalar getpwuid $>;

sub conf ($address, $user = $ME) {
	return write_file('nginx.conf', "user $user;\n" . asking('', '') =~ s/fastcgi_pass \S+;/fastcgi_pass $address;/r =~ s/\@DIR\@/$dir/gr);
}

sub verdict ($address, $user = $ME) {
	my ($status, $text) = run($check, @READ, '--json', 'nginx', conf($address, $user));
	my $r = eval { JSON::PP->new->decode($text) } // { broken => $text };
	return { %$r, exit => $status, why => join(' ', map { $_->{why} } grep { $_->{id} eq 'socket' } @{ $r->{findings} // [] }, @{ $r->{notes} // [] }) };
}

sub says ($what, $r, $exit, $accelerated, $why) {
	is $r->{exit}, $exit, "$what: exit status $exit" or diag explain $r;
	is $r->{accelerated}, $accelerated, "... accelerated: $accelerated";
	like $r->{why}, $why, '... and why';
	return;
}

# A program that answers each connection in its own way, until the end of the test.
my @children;
sub answering ($how) {
	my $path = "$run/other." . @children;
	my $listening = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die "$path: $!";
	chmod 0777, $path;
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		alarm 120;
		while (my $c = $listening->accept) { sysread $c, my $asked, 65536; $how->($c) }
		POSIX::_exit(0);
	}
	push @children, $pid;
	return $path;
}
END { if (@children) { local $?; kill TERM => @children; waitpid $_, 0 for @children } }

says('no socket', verdict("unix:$run/none.sock"), 1, 'no', qr/there is no socket \Q$run\E\/none\.sock/);
says('a file', verdict('unix:' . write_file('file', 'x')), 1, 'no', qr/is not a socket/);
my $left = IO::Socket::UNIX->new(Local => "$run/left.sock", Listen => 1);
close $left;
says('a socket without a process', verdict("unix:$run/left.sock"), 1, 'no', qr/left from a process that has ended/);
my $port = do { my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1); $s->sockport };
says('a port without a process', verdict("127.0.0.1:$port"), 1, 'no', qr/nothing listens at|nobody listens at/);
says('an HTTP server', verdict('unix:' . answering(sub ($c) { print {$c} "HTTP/1.1 400 Bad Request\r\n\r\n" })), 1, 'no', qr/does not speak FastCGI.*HTTP\/1\.1 400/);
says('another application', verdict('unix:' . answering(sub ($c) {
	print {$c} record(T_STDOUT, 1, "Status: 404 Not Found\r\n\r\nFile not found.\n"), record(T_STDOUT, 1, ''), end_request(1);
})), 1, 'no', qr/another FastCGI application.*404/);
says('one that closes', verdict('unix:' . answering(sub ($c) { })), 1, 'no', qr/closes the connection.*FCGI_WEB_SERVER_ADDRS/);
says('one that answers half', verdict('unix:' . answering(sub ($c) { print {$c} "\1\6\0\1\xff\xff\0\0half" })), 1, 'no', qr/not fcgi-stat-accel/);
says('one that lies', verdict('unix:' . answering(sub ($c) {
	print {$c} record(T_STDOUT, 1, "\r\n\r\n{\"program\":\"fcgi-stat-accel\""), end_request(1);
})), 1, 'no', qr/not fcgi-stat-accel/);
says('one that lies about its roots', verdict('unix:' . answering(sub ($c) {
	print {$c} record(T_STDOUT, 1, "\r\n\r\n" . '{"program":"fcgi-stat-accel","version":"1","mode":"auth","header":"X","roots":{"a":1}}'), end_request(1);
})), 1, 'no', qr/not fcgi-stat-accel/);
my $silent = Accel::Check::Ask::ask(answering(sub ($c) { sleep 100 }), undef, 0.2);
is $silent->{state}, 'dead', 'one that is silent';
like $silent->{why}, qr/does not answer/, '... and why';
my $full = IO::Socket::UNIX->new(Local => "$run/full.sock", Listen => 1);
chmod 0777, "$run/full.sock";
my @queue;
while (my $c = IO::Socket::UNIX->new(Peer => "$run/full.sock", Timeout => 1)) { push @queue, $c }
$silent = Accel::Check::Ask::ask("$run/full.sock", undef, 0.2);
is $silent->{state}, 'dead', 'one that takes no connection, and whose queue is full';
like $silent->{why}, qr/queue is full/, '... and why';
says('an address that only a request knows', verdict('$backend', $ME), 2, 'unknown', qr/^/);

my $app = Test::Fcgi->start('--mode=auth', '--root', "$dir");
my $good = verdict("unix:$app->{socket}");
says('fcgi-stat-accel', $good, 0, 'yes', qr/^$/);
is $good->{asked}[0]{about}{mode}, 'auth', '... tells its mode';
my (undef, $text) = run($check, @READ, 'nginx', conf("unix:$app->{socket}"));
like $text, qr/^Who answers:\n.*--mode=auth, --root=\Q$dir\E\.$/m, '... which the text shows';
like $text, qr/^accelerated: all files\nnothing left that blocks\n\z/m, '... and the last line says that nothing is left';
(undef, $text) = run($check, @COMMON, 'nginx', conf("unix:$run/none.sock"));
like $text, qr/was not asked\n\z/, 'with --no-ask the last line says that it was not asked';

SKIP: {
	skip 'only root can ask as another user', 7 if $> != 0;
	my $path = $app->{socket};
	chmod 0600, $path;
	says('a socket of another user', verdict("unix:$path", 'www-data'), 1, 'no', qr/user www-data may not connect to it/);
	says('a user that does not exist', verdict("unix:$path", 'no-such-user'), 2, 'unknown', qr/no user 'no-such-user'/);
	chmod 0666, $path;
	is verdict("unix:$path", 'root')->{exit}, 0, 'root may';
}

my $two = $app->{socket};
my ($status, $both) = run($check, @READ, '--json', 'nginx', write_file('nginx.conf', "user $ME;\n" . asking() =~ s/fastcgi_pass \S+;/fastcgi_pass both;/r
	=~ s/^http \{\n/http {\n\tupstream both { server unix:$two; server unix:$run\/none.sock; }\n/mr =~ s/\@DIR\@/$dir/gr));
is $status, 1, 'one of two servers of an upstream is missing';

done_testing;
