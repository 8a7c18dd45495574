package Test::Manager;
# A service manager's socket, for the messages of a program.
#
#     my $manager = Test::Manager->new;
#     my $srv = Test::Server->start(env => { $manager->env, WATCHDOG_USEC => 400_000 });
#     ok $manager->wait(qr/^READY=1$/m), 'it is ready';
#     my @all = $manager->messages;           # those that have come
use v5.36;
use File::Temp ();
use IO::Socket::UNIX ();
use Socket qw(MSG_DONTWAIT SOCK_DGRAM);
use Test::Util qw(eventually);

sub new ($class) {
	my $dir = File::Temp->newdir('accel-manager-XXXXXX', TMPDIR => 1);
	chmod 0755, "$dir";
	my $sock = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$dir/notify") or die "notify: $!";
	chmod 0666, "$dir/notify";
	return bless { dir => $dir, sock => $sock, got => [] }, $class;
}

sub env ($self) { return (NOTIFY_SOCKET => "$self->{dir}/notify") }

sub messages ($self) {
	while (defined $self->{sock}->recv(my $bytes, 4096, MSG_DONTWAIT)) { push @{ $self->{got} }, $bytes }
	return @{ $self->{got} };
}

# Forgets the messages so far.
sub clear ($self) {
	$self->messages;
	$self->{got} = [];
}

# The first message that matches, or undef at the deadline.
sub wait ($self, $re) {
	my $found;
	eventually(sub { ($found) = grep { $_ =~ $re } $self->messages; defined $found });
	return $found;
}

1;
