# Settings of listening sockets: server.use-ipv6, server.set-v6only, server.v4mapped, server.defer-accept.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Select ();
use IO::Socket::INET ();
use IO::Socket::IP ();
use Socket qw(SOCK_STREAM);
use Test::More;
use Test::Util qw(eventually slurp);

my $program = Test::Util::program('accel-server');
my $dir = File::Temp->newdir('accel-listening-XXXXXX', TMPDIR => 1);
Test::Util::put("$dir/a", "hello\n");
plan skip_all => 'no IPv6 on this machine' unless IO::Socket::IP->new(LocalHost => '::1', Listen => 1, Type => SOCK_STREAM);

# Port 0: the system chooses, and the log tells.
sub start ($text) {
	my $file = Test::Util::put("$dir/x.conf", qq{server.document-root = "$dir"\nserver.max-worker = 1\nserver.sandbox = "disable"\n$text});
	unlink "$dir/log";
	pipe my $rd, my $lifeline or die $!;
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		close $lifeline;
		open STDIN, '<&', $rd or die $!;
		open STDERR, '>', "$dir/log" or die $!;
		exec $program, '--until-eof', '-f', $file or die $!;
	}
	eventually(sub { slurp("$dir/log") =~ /ev=listening|not started/ });
	my ($port) = slurp("$dir/log") =~ /ev=listening address=\S+?:(\d+) /;
	return { pid => $pid, lifeline => $lifeline, port => $port };
}

sub stop ($s) {
	close $s->{lifeline};
	waitpid $s->{pid}, 0;
	return $? >> 8;
}

sub connects ($host, $port) { return IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Type => SOCK_STREAM, Timeout => 20) }

# A port that is free for both families now.
sub free_port () {
	my $s = IO::Socket::IP->new(LocalHost => '::', LocalPort => 0, Listen => 1, Type => SOCK_STREAM, V6Only => 0) or die "listen: $!";
	return $s->sockport;
}

for my $case (
	['server.bind unset', '', 1, 0],
	['server.use-ipv6', qq{server.use-ipv6 = "enable"\n}, 0, 1],
	['server.use-ipv6 and v4mapped', qq{server.use-ipv6 = "enable"\nserver.v4mapped = "enable"\n}, 1, 1],
	['server.use-ipv6 without v6only', qq{server.use-ipv6 = "enable"\nserver.set-v6only = "disable"\n}, 1, 1],
	['v4mapped of one socket', qq{\$SERVER["socket"] == "[::]:PORT" { server.v4mapped = "enable" }\n}, 1, 1],
	['a socket as Debian makes it', qq{\$SERVER["socket"] == "[::]:PORT" { }\n}, 0, 1],
) {
	my ($what, $text, $v4, $v6) = @$case;
	my $port = free_port();
	my $s = start(($text =~ /PORT/ ? '' : "server.port = $port\n") . $text =~ s/PORT/$port/r);
	ok !!connects('127.0.0.1', $port) == !!$v4, "$what: " . ($v4 ? 'IPv4' : 'no IPv4');
	ok !!connects('::1', $port) == !!$v6, "$what: " . ($v6 ? 'IPv6' : 'no IPv6');
	is stop($s), 0, '... and it ends';
}

subtest 'server.defer-accept' => sub {
	my $port = free_port();
	my $s = start(qq{server.port = $port\nserver.bind = "127.0.0.1"\nserver.defer-accept = 30\nstatus.statistics-url = "/s"\n});
	my $accepted = sub {
		my $c = connects('127.0.0.1', $port) or return -1;
		print $c "GET /s HTTP/1.0\r\n\r\n";
		my $reply = do { local $/; <$c> };
		return $reply =~ /^server\.connections\.accepted: (\d+)/m ? $1 : -1;
	};
	my $before = $accepted->();
	my @silent = map { connects('127.0.0.1', $port) } 1 .. 5;
	is scalar(grep { defined } @silent), 5, 'silent clients connect';
	my $after = $accepted->();
	is $after - $before, 1, '... and the server does not see them' or diag "before $before, after $after";
	is stop($s), 0, 'it ends';
};

done_testing;
