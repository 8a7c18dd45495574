package Test::Nodes;
# Several machines on this one: nodes with accel-server in network namespaces, and a front before them.
#
#     Test::Nodes::enter(@ARGV);                  # runs the program anew; returns the second time, or when it may not
#     my ($ok, $why) = Test::Nodes->usable;
#     my $farm = Test::Nodes->new(source => $tree, memory_mb => 24);
#     $farm->up($_, read_ms => 4) for 1 .. 4;     # 10.77.0.11 to 10.77.0.14
#     $farm->front('haproxy', $text);             # 10.77.0.1:8080
#     $farm->power_off(3); $farm->power_on(3);
#
# The files of examples/scale/ are used as they are, with their addresses and paths. The program runs in a network and a mount namespace of
# its own, in which /run, /srv and /var/log are empty. Each node has a network namespace with one end of a veth pair; the other ends and
# 10.77.0.1 are at one bridge. It sees its own slowfs, so its own disks and its own part of the page cache, at /srv/www. With `memory_mb` it has a
# memory cgroup: its pages in memory, with those of the program, are at most this many.
#
# Nothing of this has a name outside of the namespaces, so it is gone with the last process, even after KILL; servers end with this
# program. The keeper of a node removes its cgroup.
use v5.36;
use Cwd ();
use File::Basename ();
use Accel::Namespace ();
use Accel::Slowfs ();
use Accel::Util qw(find_program program put);
use File::Temp ();
use IO::Socket::INET ();
use Scalar::Util ();
use Test::Util qw(eventually);
use IO::Socket::UNIX ();
use Time::HiRes qw(sleep time);

my $examples = Cwd::abs_path(File::Basename::dirname(__FILE__) . '/../../../examples/scale');
my %live;
my $cgroups = '/sys/fs/cgroup/memory';

# A server in a node or at the front: stopped by its command, but it answers at another address.
package Test::Nodes::Server {
	use parent 'Accel::Peer';

	sub _wait_for_port ($self, $deadline) {
		while (Time::HiRes::time() < $deadline) {
			return if IO::Socket::INET->new(PeerAddr => $self->{host}, PeerPort => $self->{port}, Timeout => 1);
			last unless $self->alive;
			Time::HiRes::sleep(0.02);
		}
		my $said = $self->said;
		$self->stop;
		die "$self->{name} does not answer\n$said";
	}
}

sub enter (@args) { return Accel::Namespace::enter(@args) }

sub usable ($class) {
	return (0, 'network namespaces need root and unshare(1)') unless Accel::Namespace::entered();
	for my $program (qw(ip nsenter mount haproxy)) {
		return (0, "$program is missing; run scripts/install-deps") unless find_program($program);
	}
	my $said = qx(ip link add accel-probe0 type veth peer name accel-probe1 2>&1 && ip link del accel-probe0 2>&1);
	return (0, 'veth: ' . ($said =~ s/\s+\z//r)) if $?;
	return Accel::Slowfs->usable;
}

sub example ($class, $file) { return Accel::Util::slurp("$examples/$file") }

sub _do (@command) {
	system(@command) == 0 or die "@command: failed\n";
	return;
}

sub new ($class, %arg) {
	my $self = bless { %arg, owner => $$, dir => File::Temp->newdir('nodes-XXXXXX', TMPDIR => 1), node => {} }, $class;
	chmod 0755, "$self->{dir}";
	_world();
	Scalar::Util::weaken($live{$self} = $self);
	$self->{memory_mb} = 0 unless -w "$cgroups/cgroup.procs";
	return $self;
}

# Before the objects go in any order.
END { local $?; $_ && $_->close for values %live }

# Once: the bridge, and the directories of the examples.
my $made;

sub _world () {
	return if $made++;
	for my $at (qw(/run /srv /var/log)) { _do(qw(mount -t tmpfs -o mode=755 tmpfs), $at) }
	mkdir $_ or die "$_: $!\n" for qw(/run/netns /run/haproxy /run/stat-accel /srv/www /var/log/stat-accel);
	_do(split ' ') for 'ip link set lo up', 'ip link add accel0 type bridge', 'ip addr add 10.77.0.1/24 dev accel0', 'ip link set accel0 up';
}

sub address ($self, $k) { return '10.77.0.' . (10 + $k) }

# A node with its network, its disk and its server.
sub up ($self, $k, %disk) {
	my $node = $self->{node}{$k} //= $self->_wire($k);
	$node->{slow} = Accel::Slowfs->start(source => $self->{source}, spindles => 2, lookup_ms => 0, read_ms => 4, %disk);
	$node->{group} = $self->_group($k);
	return $self->back($k);
}

sub _wire ($self, $k) {
	my $ns = "n$k";
	if (!-e "/run/netns/$ns") {
		_do(split ' ') for "ip netns add $ns", "ip link add accel-$ns type veth peer name eth0 netns $ns", "ip link set accel-$ns master accel0 up",
		    "ip -n $ns addr add @{[ $self->address($k) ]}/24 dev eth0", "ip -n $ns link set eth0 up", "ip -n $ns link set lo up";
	}
	for my $own (map {"$self->{dir}/$_$k"} qw(log run)) {
		mkdir $own or -d $own or die "$own: $!\n";
		chown +(getpwnam 'www-data')[2, 3], $own;
	}
	return {};
}

sub _group ($self, $k) {
	return '' unless $self->{memory_mb};
	/-(\d+)-\d+\z/ && !-d "/proc/$1" && rmdir for glob "$cgroups/accel-nodes-*";    # of a keeper that was killed
	my $group = "$cgroups/accel-nodes-$$-$k";
	mkdir $group or -d $group or die "$group: $!\n";
	put("$group/memory.limit_in_bytes", $self->{memory_mb} << 20);
	return $group;
}

# The server of a node: in its cgroup and network, with its disk, its log and its pid file.
my $inside = 'test -z "$1" || echo $$ >"$1/cgroup.procs"; mount --bind "$2" /srv/www; mount --bind "$3" /var/log/stat-accel
mount --bind "$4" /run/stat-accel; n=$5; shift 5
exec nsenter --net=/run/netns/$n "$@"';

sub back ($self, $k) {
	my $node = $self->{node}{$k};
	my $group = $node->{group};
	$node->{server} = Test::Nodes::Server->start('command', name => "node $k", root => $self->{source}, host => $self->address($k), port => 8080,
		at_end => sub { $group && (rmdir $group || (sleep(0.2), rmdir $group)) },
		command => ['unshare', '-m', 'sh', '-ec', $inside, 'sh', $group, $node->{slow}->dir, "$self->{dir}/log$k", "$self->{dir}/run$k", "n$k",
			program('accel-server'), '-D', '-f', "$examples/node.conf"]);
	if ($group && !-d $group) { die "node $k has no cgroup\n" }
	return;
}

# Ends a node as a power cut does: its connections are not closed in order.
sub power_off ($self, $k) {
	my $node = $self->{node}{$k};
	_do('ip', 'link', 'set', "accel-n$k", 'down');
	CORE::kill KILL => $node->{server}->pids;
	return;
}

# Power is back: an empty cache, the same disk.
sub power_on ($self, $k) {
	my $node = $self->{node}{$k};
	$node->{server}->stop;
	$node->{slow}->forget;
	$self->_group($k) if $node->{group};
	_do('ip', 'link', 'set', "accel-n$k", 'up');
	return $self->back($k);
}

sub down ($self, @k) {
	for my $k (@k ? @k : sort keys %{ $self->{node} }) {
		my $node = delete $self->{node}{$k} or next;
		$node->{server}->stop if $node->{server};
		$node->{slow}->stop if $node->{slow};
	}
	return;
}

# accel-warm on a node: its pages count as the node's.
sub warm ($self, $k, @args) {
	my $node = $self->{node}{$k};
	_do('sh', '-ec', 'test -z "$1" || echo $$ >"$1/cgroup.procs"; shift; exec "$@"', 'sh', $node->{group}, program('accel-warm'), '-q', @args, $node->{slow}->dir);
}

sub slow ($self, $k) { return $self->{node}{$k}{slow} }

# The front; text: its configuration.
my %front = (haproxy => [8080, 'haproxy', '-db', '-f'], 'accel-server' => [8081, program('accel-server'), '-D', '-f']);

sub front ($self, $kind, $text) {
	delete $self->{front};
	my ($port, @command) = @{ $front{$kind} };
	put("$self->{dir}/front.conf", $text);
	$self->{front} = Test::Nodes::Server->start('command', name => $kind, root => $self->{source}, host => '10.77.0.1', port => $port,
		command => [@command, "$self->{dir}/front.conf"]);
	$self->{url} = "http://10.77.0.1:$port";
	return $self->{front};
}

sub url ($self) { return $self->{url} }

# One order to HAProxy's socket, as an operator gives it.  It comes after the port that the start waits for.
sub tell ($self, $order) {
	my $sock;
	eventually(sub { $sock = IO::Socket::UNIX->new(Peer => '/run/haproxy/admin.sock') }) or die "haproxy: $!\n";
	print $sock "$order\n";
	$sock->flush;
	local $/;
	return <$sock> // '';
}

# HAProxy's counters of each node: by name, a hash by column.
sub stat ($self) {
	my ($head, @line) = split /\n/, $self->tell('show stat') =~ s/^# //r;
	my @column = split /,/, $head;
	my %node;
	for (@line) {
		my %v;
		@v{@column} = split /,/, $_, -1;
		$node{ $v{svname} } = \%v if ($v{pxname} // '') eq 'files' && $v{svname} =~ /^n\d+$/;
	}
	return \%node;
}

sub DESTROY ($self) {
	local ($?, $@, $!);
	$self->close;
}

sub close ($self) {
	return unless $self->{owner} == $$;
	delete $self->{front};
	return $self->down;
}

1;
