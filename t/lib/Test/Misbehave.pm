package Test::Misbehave;
# Servers of the test that misbehave on purpose: a port for each name, a process for each connection.
#
#     my $server = Test::Misbehave->start(short => sub ($client) { syswrite $client, 'HTTP/1.1 200'; end($client) });
#     my $url = $server->url('short');    # http://127.0.0.1:PORT
#
# The function of a name serves one connection, which is closed when it returns. `end` sends the end of the stream and waits
# until the client has closed; `cut` makes the close a reset. All processes end with this one, which holds the other end of a pipe.
use v5.36;
use Exporter 'import';
use IO::Select ();
use IO::Socket::INET ();
use POSIX ();
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_LINGER TCP_NODELAY);

our @EXPORT_OK = qw(cut end);

sub start ($class, %serve) {
	my %socket = map { $_ => IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128) // die "listen: $!" } keys %serve;
	pipe my $alive, my $keep or die "pipe: $!";
	defined(my $pid = fork) or die "fork: $!";
	return bless { owner => $$, pid => $pid, keep => $keep, port => { map { $_ => $socket{$_}->sockport } keys %socket } }, $class if $pid;
	close $keep;
	_accept($alive, map { [$socket{$_}, $serve{$_}] } keys %serve);
	POSIX::_exit(0);
}

# @of: [socket, function] each. Returns when the process of the test has ended.
sub _accept ($alive, @of) {
	$SIG{$_} = 'IGNORE' for qw(CHLD PIPE);
	my %serve = map { $_->[0] => $_->[1] } @of;
	my $all = IO::Select->new($alive, map { $_->[0] } @of);
	while (my @ready = $all->can_read) {
		for my $socket (@ready) {
			return if $socket == $alive;
			my $client = $socket->accept or next;
			next if fork // die "fork: $!";
			alarm 120;
			setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1;
			$serve{$socket}->($client);
			close $client;
			POSIX::_exit(0);
		}
	}
}

sub url ($self, $name) { return "http://127.0.0.1:$self->{port}{$name}" }

# Bytes of the client that nobody reads would make the close a reset.
sub end ($client) {
	shutdown $client, 1;
	1 while sysread $client, my $rest, 65536;
	return;
}

sub cut ($client) { setsockopt $client, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0; return }

sub DESTROY ($self) {
	return if $$ != $self->{owner};
	local ($?, $!, $@);
	close delete $self->{keep};
	waitpid $self->{pid}, 0;
}

1;
