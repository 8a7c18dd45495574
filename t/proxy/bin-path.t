# bin-path: the server starts the application, starts it again when it ends, and takes it along when it goes.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http qw(parse request_head);
use Test::More;
use Test::Server;
use File::Temp ();
use IO::Socket::UNIX ();
use Test::Util qw(eventually put slurp);

my $lib = "$FindBin::Bin/../lib";

# Answers with its number, its environment and its arguments; /die ends it.
my $dir = File::Temp->newdir('accel-bin-XXXXXX', TMPDIR => 1);
put("$dir/app.pl", <<'END');
use strict; use warnings; use Test::App;
{
	no warnings 'redefine';
	*Test::App::_what = sub { 'me' };
	sub Test::App::do_me {
		my ($self, $c, $p) = @_;
		Test::App::out($c, "Content-Type: text/plain\r\n\r\n" . join '|', getppid, "@ARGV", map { "$_=" . ($ENV{$_} // '') } qw(A B PATH PHP_FCGI_CHILDREN SECRET));
		Test::App::end($c);
		kill 'KILL', getppid if $p->{REQUEST_URI} =~ /die/;
		return 1;
	}
}
package App;
our @ISA = 'Test::App';
sub listen { open my $l, '<&=', 0 or die; bless $l, 'IO::Socket::UNIX'; return $l }
package main;
alarm 300;
my $self = bless { protocol => 'fastcgi', dir => $ENV{DIR}, owner => 0 }, 'App';
my $listen = $self->listen;
$SIG{CHLD} = 'IGNORE';
while (my $c = $listen->accept) {
	next if fork;
	alarm 60;
	eval { 1 while $self->serve($c) };
	POSIX::_exit(0);
}
END

sub conf {
	my ($more, $args) = @_;
	return <<"END";
fastcgi.server = ( "/app" => ((
	"bin-path" => "$^X -I$lib $dir/app.pl @{[ $args // 'one two' ]}",
	"socket" => "\@RUN\@/app.sock",
	"check-local" => "disable",
	"bin-environment" => ( "A" => "1 2", "DIR" => "$dir" ),
	$more
)) )
END
}

sub get { my ($srv, $path) = @_; return parse($srv->request(request_head(GET => $path))) }
sub parts { return split /\|/, get(@_)->{body} // '', -1 }
sub gone { my ($pid) = @_; return eventually(sub { !kill(0, $pid) || slurp("/proc/$pid/stat") =~ /\) Z/ }) }

subtest 'it starts, with its arguments and environment' => sub {
	my $srv = Test::Server->start(conf => conf(''), env => { SECRET => 'x' });
	my ($pid, @rest) = parts($srv, '/app/x');
	cmp_ok $pid, '>', 1, 'it answers';
	is_deeply \@rest, ['one two', 'A=1 2', 'B=' . ($ENV{B} // ''), "PATH=$ENV{PATH}", 'PHP_FCGI_CHILDREN=1', 'SECRET=x'], 'the whole environment of the server, and bin-environment';
	ok -S $srv->run . '/app.sock-0', 'its socket has the name that lighttpd gives it';
	is sprintf('%o', (stat _)[2] & 0777), '660', '... and a mode';
	undef $srv;
	ok gone($pid), 'it ends with the server';
};

subtest 'only chosen variables' => sub {
	my $srv = Test::Server->start(conf => conf('"bin-copy-environment" => ( "PATH", "NONE" ),'), env => { SECRET => 'x' });
	is_deeply [(parts($srv, '/app'))[2 .. 6]], ['A=1 2', 'B=', "PATH=$ENV{PATH}", 'PHP_FCGI_CHILDREN=1', 'SECRET='], 'bin-copy-environment';
};

subtest 'several processes' => sub {
	my $srv = Test::Server->start(conf => conf('"max-procs" => 3,'));
	my %seen = map { (parts($srv, '/app'))[0] => 1 } 1;
	ok -S $srv->run . "/app.sock-$_", "socket $_" for 0 .. 2;
	ok eventually(sub { $seen{ (parts($srv, '/app'))[0] } = 1; keys %seen == 3 }), 'each answers';
	undef $srv;
	ok gone($_), 'and ends' for sort keys %seen;
};

subtest 'it dies' => sub {
	my $srv = Test::Server->start(conf => conf(''));
	my ($pid) = parts($srv, '/app');
	get($srv, '/app/die');
	ok gone($pid), 'it is dead';
	my ($next) = parts($srv, '/app');
	isnt $next, $pid, 'another one runs; the request has waited for it';
	like $srv->wait_log(qr/ev=application\.ended/), qr/ev=application\.ended address=unix:\S+app\.sock-0 signal=9 again_ms=1000 /, '... in the log';
};

subtest 'a reload' => sub {
	my $srv = Test::Server->start(conf => conf(''));
	my ($pid) = parts($srv, '/app');
	my $reload = sub {
		my ($conf) = @_;
		my $before = () = $srv->log =~ /ev=reloaded/g;
		put($srv->run . '/server.conf', $srv->_conf($conf));
		$srv->signal('USR1');
		ok eventually(sub { (() = $srv->log =~ /ev=reloaded/g) > $before }), 'reloaded';
	};
	$reload->("server.tag = \"other\"\n" . conf(''));
	is +(parts($srv, '/app'))[0], $pid, 'without a change it stays';
	$reload->(conf('', 'three'));
	ok eventually(sub { ((parts($srv, '/app'))[1] // '') eq 'three' }), 'a changed one is replaced';
	ok gone($pid), '... and the old one ends';
	($pid) = parts($srv, '/app');
	$reload->("server.tag = \"none\"\n");
	ok gone($pid), 'one that is not named any more ends';
	ok eventually(sub { !-e $srv->run . '/app.sock-0' }), '... and its socket is removed';
};

subtest 'the server is killed' => sub {
	my $srv = Test::Server->start(conf => conf(''), unchecked => 1);
	my ($pid) = parts($srv, '/app');
	$srv->signal('KILL');
	ok gone($pid), 'the application ends, too';
	ok eventually(sub { !-e $srv->run . '/app.sock-0' }), '... and its socket is removed';
};

subtest 'a stale socket is replaced' => sub {
	my $stale = IO::Socket::UNIX->new(Local => "$dir/stale.sock-0", Listen => 1) or die "listen: $!";
	close $stale;
	my $srv = Test::Server->start(conf => conf('') =~ s/\@RUN\@\/app/$dir\/stale/r);
	cmp_ok +(parts($srv, '/app'))[0], '>', 1, 'the application listens there';
};

subtest 'what cannot be started' => sub {
	for my $case (['/none/app', 'missing'], ["$dir/app.pl", 'not executable']) {
		my $srv = Test::Server->start(conf => qq{fastcgi.server = ( "/app" => (( "bin-path" => "$case->[0]", "socket" => "\@RUN\@/app.sock" )) )\n}, unchecked => 1);
		isnt $srv->wait_exit, 0, "a program that is $case->[1] stops the start";
		$srv->log_has(qr/ev=application\.failed address=unix:\S+ error="the program of bin-path is missing or not executable"/, '... and the log says why');
	}
};

subtest 'php-cgi' => sub {
	my $php = '/usr/bin/php-cgi';
	plan skip_all => 'php-cgi is not installed' if !-x $php;
	my $srv = Test::Server->start(conf => <<"END");
index-file.names = ( "index.php" )
fastcgi.server += ( ".php" => (( "bin-path" => "$php", "socket" => "\@RUN\@/php.socket", "max-procs" => 1,
	"bin-environment" => ( "PHP_FCGI_CHILDREN" => "2", "PHP_FCGI_MAX_REQUESTS" => "1000" ),
	"bin-copy-environment" => ( "PATH", "SHELL", "USER" ), "broken-scriptfilename" => "enable" )) )
END
	$srv->write('index.php', '<?php echo $_SERVER["SCRIPT_NAME"], "|", $_SERVER["PATH_INFO"] ?? "", "|", $_SERVER["PHP_SELF"], "|", file_get_contents("php://input");');
	is get($srv, '/')->{body}, '/index.php||/index.php|', 'an index file';
	is get($srv, '/index.php/a/b?c')->{body}, '/index.php|/a/b|/index.php/a/b|', 'PATH_INFO';
	is parse($srv->request("POST /index.php HTTP/1.0\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody"))->{body}, '/index.php||/index.php|body', 'a body';
	is get($srv, '/none.php')->{status}, 404, 'no such script';
};

done_testing;
