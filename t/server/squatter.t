#!/usr/bin/perl
# Another local user holds locks where a unix socket is made: on its directory, which everybody may open, and on a lock file
# that it made first, in a directory such as /tmp.  Both programs start at once, and after a crash too.  Without root the other
# user is this one, and only the lock on the directory is shown.
use v5.36;
use Fcntl qw(:flock O_CREAT O_RDONLY O_RDWR);
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::UNIX ();
use POSIX ();
use Test::Fcgi;
use Test::More;
use Test::Server;
use Test::Util ();

my $other = $> == 0 ? getpwnam 'nobody' : undef;
die "no user nobody\n" if $> == 0 && !$other;
diag 'not root: locks of this user only' unless $other;

my $top = Test::Util::temp_tree();
chmod 0755, $top;
mkdir "$top/run" or die $!;
mkdir "$top/tmp" or die $!;
chmod 0755, "$top/run";
chmod 01777, "$top/tmp";

my @squatters;
END { local $?; kill 'KILL', @squatters if @squatters }

# A process of the other user that holds these locks until the test ends.
sub squat (@files) {
	pipe my $rd, my $wr or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		@squatters = ();
		close $rd;
		alarm 300;
		if ($other) { POSIX::setgid((getpwnam 'nobody')[3]); POSIX::setuid($other) }
		umask 0;
		my (@held, $bad);
		for (@files) {
			sysopen(my $fh, $_, -d $_ ? O_RDONLY : O_RDWR | O_CREAT, 0666) or $bad .= "$_: $!\n";
			$bad .= "$_: no lock\n" unless $fh && flock $fh, LOCK_EX | LOCK_NB;
			push @held, $fh;
		}
		syswrite $wr, $bad // "held\n";
		close $wr;
		sleep 300;
		POSIX::_exit(0);
	}
	push @squatters, $pid;
	close $wr;
	my $said = join '', <$rd>;
	is $said, "held\n", "another user holds @{[ map { s{.*/(?=.*/)}{}r } @files ]}";
	return;
}

my @dirs = ($top . '/run', $other ? "$top/tmp" : ());
squat("$top/run");
squat("$top/tmp", map { "$top/tmp/$_.sock.lock" } qw(server accel replaced)) if $other;

sub answers { my ($path) = @_; return !!IO::Socket::UNIX->new(Type => IO::Socket::SOCK_STREAM, Peer => $path) }

for my $dir (@dirs) {
	my $name = $dir =~ s{.*/}{}r;
	for my $what ('starts', 'replaces the socket of a dead server') {
		my $srv = Test::Server->start(conf => qq{server.bind = "$dir/server.sock"\n}, env => { LISTEN_PID => 1 }, unchecked => 1);
		ok Test::Util::eventually(sub { answers("$dir/server.sock") }, 20), "$name: accel-server $what" or diag $srv->log('stderr'), $srv->log;
		$srv->stop;
	}
	for my $how ([ accel => '--listen' ], [ replaced => '--replace', '--listen' ]) {
		my ($sock, @options) = @$how;
		my $fcgi = eval { Test::Fcgi->start({ own => 1, socket => "$dir/$sock.sock" }, @options, 'unix:@SOCKET@') };
		ok $fcgi, "... fcgi-stat-accel @options starts" or diag $@;
		if ($sock eq 'replaced') {
			my $next = eval { Test::Fcgi->start({ own => 1, socket => "$dir/$sock.sock" }, @options, 'unix:@SOCKET@') };
			ok $next, '... and another takes its place' or diag $@;
			ok Test::Util::eventually(sub { defined $fcgi->ended }), '... which ends the first' if $next;
		}
	}
	is_deeply [grep { -e } glob "$dir/*.lock"], $name eq 'tmp' ? [map { "$dir/$_.sock.lock" } qw(accel replaced server)] : [], '... no lock file of ours is left';
}

# What a program leaves that is killed while it holds the lock.
my $left = "$top/run/crashed.sock.lock";
sysopen my $fh, $left, O_RDWR | O_CREAT, 0600 or die $!;
close $fh;
my $fcgi = eval { Test::Fcgi->start({ own => 1, socket => "$top/run/crashed.sock" }, '--listen', 'unix:@SOCKET@') };
ok $fcgi, 'a program starts beside the lock file of a crash' or diag $@;
ok !-e $left, '... and is removed';
done_testing;
