package Test::Systemd;
# Boots a real systemd in a container, for units.
#
#     my $why = Test::Systemd->unusable;
#     plan skip_all => $why if $why;
#     my $sd = Test::Systemd->boot;                       # this machine's files, changes go to memory
#     my $sd = Test::Systemd->boot(root => $tree);        # a Debian tree; changes stay in it
#
#     $sd->install;                                       # make install install-service
#     $sd->put('/etc/systemd/system/x.service', $text);
#     $sd->systemctl('daemon-reload');
#     my ($status, $text) = $sd->systemctl('start', 'x');
#     is $sd->show('x', 'ActiveState'), 'active';
#     ok $sd->wait_show('x', NRestarts => 1);
#     like $sd->run('curl', '-s', 'http://127.0.0.1/'), qr/hello/;
#     my @entries = $sd->journal('-u', 'x');              # hashes of fields
#
# systemd-nspawn starts systemd as process 1 of namespaces of its own: processes, mounts, names, and a network that is a loopback
# interface. It gets control groups of its own. It boots to basic.target, with the journal. The container ends with the object.
#
# `bind` has names of directories that it sees, too: `[ '/the/build' ]`. /tmp and /run are its own.
use v5.36;
use Cwd ();
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp ();
use JSON::PP ();
use POSIX qw(WNOHANG);
use Test::Util qw(eventually find_program slurp);

my $serial = 0;

# The reason why it cannot work here, or ''.
sub unusable ($class) {
	return 'only root can start a container' if $> != 0;
	for my $program (qw(systemd-nspawn nsenter)) {
		return "no $program (package systemd-container)" if !find_program($program);
	}
	return 'no systemd' if !-x '/lib/systemd/systemd';
	return 'no control groups of systemd' if !hierarchies();
	return '';
}

# Where control groups are mounted that systemd can use: name=systemd, version 2.
sub hierarchies {
	my @at;
	for (split /\n/, slurp('/proc/self/mountinfo')) {
		my ($mounted, $type, $options) = m{^\S+ \S+ \S+ \S+ (\S+) .* - (\S+) \S+ (\S+)$} or next;
		push @at, $mounted if ($type eq 'cgroup2' || $type eq 'cgroup' && $options =~ /name=systemd/) && -w $mounted;
	}
	return @at;
}

# Names that do not collide with those of another test.
sub _control_groups ($self) {
	$self->{groups} = [map { "$_/$self->{name}" } hierarchies()];
	for (@{ $self->{groups} }) { mkdir $_ or die "$_: $!\n" }
}

# In the child: the mounts, then the container.
sub _container ($self, %arg) {
	open STDIN, '<', '/dev/null';
	open STDOUT, '>', "$self->{dir}/console" or POSIX::_exit(126);
	open STDERR, '>&', \*STDOUT;
	Test::Util::put("$_/cgroup.procs", $$) for @{ $self->{groups} };
	my @nspawn = ('systemd-nspawn', '--register=no', '--keep-unit', '--quiet', '--private-network', '--link-journal=no', '--console=pipe',
		"--machine=$self->{name}", "--setenv=ACCEL_TEST=$self->{name}", '--system-call-filter=openat2 landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp @known', '--resolv-conf=off', '--timezone=off', (map {"--bind=$_"} @{ $arg{bind} // [] }));
	my @systemd = ('--boot', 'systemd.unit=basic.target', 'systemd.default_timeout_start_sec=20');
	my $mounts = '';
	if (!$arg{root}) {
		$mounts = 'mount -t overlay overlay -o lowerdir=/,upperdir="$1/up",workdir="$1/work" "$1/root" && ';
	}
	exec 'setpriv', '--pdeathsig', 'TERM', '--', 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', "${mounts}shift && exec \"\$@\"", 'sh',
		"$self->{dir}", @nspawn, '-D', $arg{root} // "$self->{dir}/root", @systemd or POSIX::_exit(127);
}

# Units of a machine's start that are of no use to a test, and take time.
my @masked = qw(systemd-udevd.service systemd-udev-trigger.service systemd-networkd.service systemd-networkd.socket systemd-resolved.service
	systemd-timesyncd.service systemd-logind.service apparmor.service systemd-hwdb-update.service systemd-journal-catalog-update.service
	systemd-sysctl.service ldconfig.service systemd-update-utmp.service keyboard-setup.service console-setup.service);

sub _prepare ($self) {
	make_path(map {"$self->{dir}/$_"} qw(root work up/etc/systemd/system up/usr/local/bin));
	symlink '/dev/null', "$self->{dir}/up/etc/systemd/system/$_" for @masked, 'timers.target', 'sockets.target';
}

sub boot ($class, %arg) {
	my $name = sprintf 'accel-test-%d-%d', $$, ++$serial;
	my $self = bless { name => $name, owner => $$ }, $class;
	# Not on the disk of the machine: an overlay cannot lie upon itself.
	$self->{dir} = File::Temp->newdir('accel-systemd-XXXXXX', DIR => -d '/dev/shm' ? '/dev/shm' : '/tmp');
	$self->_prepare if !$arg{root};
	$self->_control_groups;
	defined($self->{pid} = fork) or die "fork: $!";
	$self->_container(%arg) if !$self->{pid};
	eventually(sub { $self->{init} = $self->_find_init or waitpid($self->{pid}, WNOHANG) == $self->{pid} });
	$self->{init} or die "no container: " . slurp("$self->{dir}/console");
	$self->{root} = "/proc/$self->{init}/root";
	eventually(sub { ($self->systemctl('is-active', 'basic.target'))[1] =~ /^active/ }) or die "it does not boot: " . $self->systemctl('list-jobs');
	return $self;
}

# Process 1 of the container, as this machine numbers it.
sub _find_init ($self) {
	for my $status (glob '/proc/[0-9]*/status') {
		my $pid = $status =~ s{/status\z}{}r;
		next if slurp($status) !~ /^NSpid:\s+\d+\s+1$/m;
		next if slurp("$pid/environ") !~ /\bACCEL_TEST=\Q$self->{name}\E\0/;
		return $pid =~ s{.*/}{}r;
	}
	return undef;
}

# ---------------------------------------------------------------- in the container

# The command that runs another one there.
sub enter ($self, @command) {
	return ('nsenter', "--target=$self->{init}", qw(--mount --uts --ipc --net --pid --cgroup --root -- env --chdir=/), @command);
}

# (wait status, standard output and error)
sub command ($self, @command) {
	my $pid = open(my $out, '-|') // die "fork: $!";
	if (!$pid) {
		open STDIN, '<', '/dev/null';
		open STDERR, '>&', \*STDOUT;
		exec $self->enter(@command) or POSIX::_exit(127);
	}
	my $text = join '', <$out>;
	close $out;
	return ($?, $text);
}

sub run ($self, @command) { return ($self->command(@command))[1] }

sub systemctl ($self, @words) {
	return $self->command('systemctl', '--no-pager', '--full', @words);
}

sub path ($self, $path) { return "$self->{root}$path" }

sub put ($self, $path, $text) {
	my $at = $self->path($path);
	make_path(dirname($at));
	Test::Util::put($at, $text);
	return;
}

# Installs as a user without packages does.
sub install ($self) {
	my $top = Cwd::abs_path(dirname(__FILE__) . '/../../..');
	my $variant = Test::Util::build_dir() =~ m{build/(\w+)\z} ? $1 : 'release';
	my $said = qx{make -s -C "$top" VARIANT=$variant DESTDIR="$self->{root}" install install-service 2>&1};
	$? == 0 or die "make install: $said";
}

# A property of a unit.
sub show ($self, $unit, $property) {
	return ($self->systemctl('show', '--value', '--property', $property, $unit))[1] =~ s/\n\z//r;
}

# False: it has another value at the deadline.
sub wait_show ($self, $unit, $property, $value) {
	return eventually(sub { $self->show($unit, $property) eq $value });
}

# The fields of each entry.
sub journal ($self, @filter) {
	my $text = $self->run('journalctl', '--no-pager', '--quiet', '--output=json', @filter);
	return map { JSON::PP::decode_json($_) } grep {/^\{/} split /\n/, $text;
}

# The messages, as a text.
sub messages ($self, @filter) {
	return join '', map { ref $_->{MESSAGE} ? "(bytes)\n" : "$_->{MESSAGE}\n" } $self->journal(@filter);
}

# The process of this machine that is a process of the container.
sub outside ($self, $pid) {
	for my $status (glob '/proc/[0-9]*/status') {
		next if slurp($status) !~ /^NSpid:\s+\d+\s+$pid$/m;
		my $found = $status =~ s{\D}{}gr;
		return $found if (readlink("/proc/$found/ns/pid") // '') eq readlink("/proc/$self->{init}/ns/pid");
	}
	return undef;
}

# ---------------------------------------------------------------- the end

sub stop ($self) {
	return if !$self->{pid};
	local ($?, $!);
	kill 'KILL', $self->{init} // $self->{pid};
	eventually(sub { waitpid($self->{pid}, WNOHANG) != 0 }) or kill 'KILL', $self->{pid};
	waitpid delete $self->{pid}, 0;
	for my $group (@{ $self->{groups} }) {
		eventually(sub { _remove_group($group) });
	}
	return;
}

# From below.
sub _remove_group ($group) {
	_remove_group($_) for grep {-d} glob "$group/*";
	return rmdir($group) || !-d $group;
}

sub DESTROY ($self) {
	$self->stop if $$ == ($self->{owner} // 0);
}

1;
