# Two accel-servers behind HAProxy as doc/operations.md sets it up: one drains, stops and comes back, and no request fails.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use POSIX ();
use Test::Http qw(req);
use Test::More;
use Test::Site;
use Test::Util qw(eventually program put slurp);

Test::Site->need('haproxy');

my $dir = File::Temp->newdir('accel-drain-XXXXXX', TMPDIR => 1);
mkdir "$dir/www";
put("$dir/www/a", 'A' x 1000);

# ---------------------------------------------------------------- the processes

my @started;
my $owner = $$;

sub run ($stdin, @words) {
	my $pid = fork // die $!;
	return push(@started, $pid) && $pid if $pid;
	open STDIN, '<&', $stdin if $stdin;
	open STDOUT, '>>', "$dir/stdout";
	open STDERR, '>>', "$dir/stderr";
	exec @words or POSIX::_exit(127);
}

pipe my $rd, my $lifeline or die $!;    # its end ends the servers

sub server ($name) {
	put("$dir/$name.conf", <<"CONF");
server.document-root = "$dir/www"
server.bind = "$dir/$name"
server.errorlog = "$dir/$name.log"
server.pid-file = "$dir/$name.pid"
server.max-worker = 1
status.health-url = "/health"
CONF
	return run($rd, program('accel-server'), '-D', '--until-eof', '-f', "$dir/$name.conf");
}

my @lines = slurp("$FindBin::Bin/../../doc/operations.md") =~ /^```haproxy\n(.*?)^```/ms;
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100) or die $!;

sub haproxy () {
	put("$dir/haproxy.cfg", <<"CONF");
global
	stats socket $dir/stats mode 600 level admin
defaults
	mode http
	timeout connect 2s
	timeout client 30s
	timeout server 30s
frontend web
	bind fd\@99
	default_backend files
backend files
	balance roundrobin
@{[ $lines[0] =~ s/inter 2s/inter 200/r ]}
	server a unix\@$dir/a
	server b unix\@$dir/b
CONF
	$^F = 99;
	POSIX::dup2(fileno $listen, 99) or die $!;
	my $pid = run(undef, find('haproxy'), '-db', '-f', "$dir/haproxy.cfg");
	POSIX::close(99);
	return $pid;
}

sub find ($name) { return (grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin')[0] // $name }

# UP, DOWN... of a server, as HAProxy sees it.
sub seen ($name) {
	my $s = IO::Socket::UNIX->new(Peer => "$dir/stats") or return '';
	print {$s} "show stat\n";
	return (do { local $/; <$s> } =~ /^files,$name,(?:[^,]*,){15}([^,]*)/m)[0] // '';
}

# One client until the file "end" is there: "REQUESTS FAILURES" in a file.
sub client ($n, $keeps) {
	my $pid = fork // die $!;
	return push(@started, $pid) && $pid if $pid;
	my ($done, $failed, $c) = (0, 0);
	while (!-e "$dir/end") {
		$c = undef if !$keeps;
		$c //= Test::Http::Conn->new($listen->sockport);
		$c->send(req('/a', $keeps ? () : 'Connection: close'));
		my $r = $c->reply;
		$done++;
		$failed++ if ($r->{status} // 0) != 200 || length($r->{body} // '') != 1000;
		$c = undef if ($r->{header}{connection} // '') eq 'close' || ($r->{status} // 0) != 200;
		select undef, undef, undef, 0.002;
	}
	put("$dir/client$n", "$done $failed");
	POSIX::_exit(0);
}

# ---------------------------------------------------------------- the drill

my $a = server('a');
server('b');
ok eventually(sub { -S "$dir/a" && -S "$dir/b" }), 'two servers';
my $haproxy = haproxy();
ok eventually(sub { seen('a') =~ /^UP/ && seen('b') =~ /^UP/ }), 'HAProxy sees both' or diag slurp("$dir/stderr"), slurp("$dir/a.log");
my @client = map { client($_, $_ % 2) } 1 .. 4;

my $ctl = run(undef, program('accel-server'), 'ctl', 'drain', '--delay=4', "--socket=$dir/a.ctl");
ok eventually(sub { seen('a') =~ /^DOWN/ }), 'one drains, and HAProxy takes it out';
unlike slurp("$dir/a.log"), qr/ev=stopping/, '... while it serves';
waitpid $ctl, 0;
is $?, 0, 'it stops after the time' or diag slurp("$dir/stderr");
ok eventually(sub { waitpid($a, POSIX::WNOHANG()) == $a }) && $? == 0, '... with status 0';
like slurp("$dir/a.log"), qr/ev=drain\.started .*ev=stopping by="ctl drain".*ev=stopped how=cleanly/s, '... as its log says';
server('a');
ok eventually(sub { seen('a') =~ /^UP/ }), 'it comes back';
put("$dir/end", '');
waitpid $_, 0 for @client;
my ($done, $failed) = (0, 0);
for (map { slurp("$dir/client$_") } 1 .. 4) { my ($d, $f) = split; $done += $d; $failed += $f }
cmp_ok $done, '>', 100, "requests meanwhile: $done";
is $failed, 0, '... and none failed';

END {
	my $status = $?;
	if ($owner == $$) {
		put("$dir/end", '') if $dir;
		close $lifeline if $lifeline;
		kill TERM => $haproxy if $haproxy;
		waitpid $_, 0 for @started;
	}
	$? = $status;
}

done_testing;
