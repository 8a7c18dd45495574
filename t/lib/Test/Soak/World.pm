package Test::Soak::World;
# An accel-server in production: files, slow disks, applications, logs on a small disk.
#
#     my $world = Test::Soak::World->new(cores => [qw(taskset -c 1)]);
#     $world->rotate;                             # mv and HUP, as logrotate does
#     $world->reload('bad');                      # with a mistake in a file that the configuration includes
#     $world->upgrade;                            # USR2; the pid changes
#     my %now = $world->sample;                   # memory, descriptors, threads, processes
#     $world->stop;
#
#     /hot/    pool of small files in memory           /app/     files that fcgi-stat-accel names
#     /cold/   pool on a slow disk with 8 spindles     /broken/  an application that answers 200 or 500, as $world->broken says
#     /hung/   on a disk that hangs by order             /busy/    on a disk that is too slow for its load
#     /long/   files of 8 MB, 512 kB a second each     /names/   1000 files, more than server.max-cached-files
#     /inside/ a second fcgi-stat-accel is asked       /outside/ the same, about files outside of its root
#
# All files of pools prove their name and offset (accel-pool). Logs and spool files are on a tmpfs of 24 MB; `fill` and `unfill` make it full.
# The server starts as a user starts it: a configuration file, a pid file, a port. `spare` is a second, small server that may be stopped.
use v5.36;
use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::INET ();
use POSIX qw(WNOHANG);
use Time::HiRes qw(sleep time);
use Accel::Slowfs;
use Accel::Util qw(free_port program put slurp);
use Test::Fcgi ();
use Test::Server ();
use Test::Util qw(eventually);

use constant { DISK_MB => 24, STUCK_S => 3, CACHED_FILES => 400, NAMES => 1000, DESCRIPTORS => 3000, CONNECTIONS => 2750, QUEUE => 64 };

# Answers 500 while the file beside it exists, else 200.
my $BROKEN = <<'END';
use v5.36;
use FCGI;
my ($flag) = @ARGV;
alarm 7200;
my $request = FCGI::Request(\*STDIN, \*STDOUT, \*STDERR, \my %env, 0, FCGI::FAIL_ACCEPT_ON_INTR);
while ($request->Accept >= 0) {
	print -e $flag ? "Status: 500\r\nContent-Type: text/plain\r\n\r\nbroken\n" : "Content-Type: text/plain\r\n\r\nwhole\n";
}
END

# cores: command words that start the server on these cores
sub new ($class, %arg) {
	my $self = bless { %arg, dir => File::Temp->newdir('soak-XXXXXX', TMPDIR => 1), upgrades => 0, reloads => 0, bad => 0, rotated => 0, passed_on => 0, owner => $$ }, $class;
	chmod 0755, "$self->{dir}";
	$self->_disks;
	$self->_applications;
	$self->{port} = free_port();
	put($self->path('extra.conf'), '');
	put($self->path('server.conf'), $self->_conf);
	$self->{server} = $self->_start('server', 'server.conf');
	put($self->path('spare.conf'), $self->_spare_conf);
	$self->spare(1);
	return $self;
}

sub path ($self, $name) { return "$self->{dir}/$name" }
sub url ($self) { return "http://127.0.0.1:$self->{port}" }
sub targets ($self) {
	return [{ job => 'accel-server', target => "127.0.0.1:$self->{port}" }, { job => 'accel-server', target => "127.0.0.1:$self->{spare_port}", labels => { instance => 'spare' } },
		map { { job => 'fcgi-stat-accel', target => "127.0.0.1:$self->{port}", path => "/$_-metrics", labels => { instance => $_ } } } qw(app inside)];
}
sub log ($self) { return $self->path('error.log') }

# The reason why a program or right for it is missing, or undef.
sub missing {
	my ($ok, $why) = Accel::Slowfs->usable;
	return 'root mounts the small disk of the logs' if $> != 0;
	return $why unless $ok;
	return 'spawn-fcgi is not installed' unless grep { -x "$_/spawn-fcgi" } split /:/, $ENV{PATH};
	return 'the FCGI module of Perl is not installed' unless eval { require FCGI };
	return;
}

# ---------------------------------------------------------------- files and disks

# Files of slow disks are elsewhere, and mounted at their place.
sub _dir ($self, $name) { return $self->path(($name =~ /^(?:cold|hung|busy|app|inside)$/ ? 'pools/' : 'www/') . $name) }

sub _pool ($self, $name, $spec) {
	my $dir = $self->_dir($name);
	make_path($dir);
	system(program('accel-pool'), 'make', '--quiet', '--spec', $spec, $dir) == 0 or die "accel-pool make $name: exit status $?\n";
	chmod 0755, $dir;
	return $dir;
}

# The URLs of a pool, in a file.
sub list ($self, $name, $prefix = "/$name/") {
	my $file = $self->path("$name" . ($prefix =~ tr{/}{-}r) . 'urls');
	return $file if -e $file;
	system('sh', '-c', '"$1" list --shuffle --prefix "$2" "$3" >"$4"', 'sh', program('accel-pool'), $prefix, $self->_dir($name), $file) == 0
	    or die "accel-pool list $name: exit status $?\n";
	return $file;
}

sub _disks ($self) {
	my $www = $self->path('www');
	make_path("$www/$_") for qw(cold hung busy app inside);
	my %spec = (hot => '4x50x2k-16k', app => '2x50x2k-100k', inside => '2x20x1k', cold => '20x100x20k', hung => '10x50x20k', busy => '40x400x1k', long => '1x20x8m', names => '10x' . NAMES / 10 . 'x1k');
	$self->_pool($_, $spec{$_}) for sort keys %spec;
	my %slow = ((map { $_ => { spindles => 8, lookup_ms => 4, read_ms => 4 } } qw(cold app inside)), hung => { spindles => 4, lookup_ms => 4, read_ms => 4 },
		busy => { spindles => 1, lookup_ms => 10, read_ms => 10 });
	$self->{disk}{$_} = Accel::Slowfs->start(source => $self->path("pools/$_"), at => "$www/$_", %{ $slow{$_} }) for sort keys %slow;
	my $logs = $self->path('logs');
	make_path($logs);
	system('mount', '-t', 'tmpfs', '-o', 'mode=0755,size=' . DISK_MB . 'm', 'tmpfs', $logs) == 0 or die "mount: exit status $?\n";
	mkdir "$logs/spool" or die "mkdir: $!";
	chmod 0777, "$logs/spool";
	$self->{mounted} = $logs;
}

sub disk ($self, $name) { return $self->{disk}{$name} }
# Fills the disk until it has no room; again after a rotation.
sub fill ($self) {
	open my $fh, '>>', $self->path('logs/filler') or die "filler: $!";
	my $chunk = "\0" x 65_536;
	1 while syswrite $fh, $chunk;
	return;
}
sub unfill ($self) { unlink $self->path('logs/filler'); return }

# ---------------------------------------------------------------- applications

sub _applications ($self) {
	my @open = (spawn => ['-M', '0666']);
	my @accel = ('--threads', 16, '--advice', 5000);
	$self->{app} = Test::Fcgi->start({ @open }, @accel, '--status-path', '/app-status', '--mode', 'sendfile', '--for', 'accel-server', '--root', $self->path('www'));
	$self->{inside} = Test::Fcgi->start({ @open }, @accel, '--status-path', '/inside-status', '--mode', 'auth', '--root', $self->path('www/inside'));
	put($self->path('broken.pl'), $BROKEN);
	$self->{broken} = Test::Fcgi->start({ program => $^X, @open }, $self->path('broken.pl'), $self->path('broken.flag'));
	chmod 0711, "$_->{dir}" for @$self{qw(app inside broken)};
	return;
}

sub broken ($self, $on) { return $on ? put($self->path('broken.flag'), '') : unlink $self->path('broken.flag') }

# ---------------------------------------------------------------- servers

sub _conf ($self) {
	my %is = (DIR => "$self->{dir}", PORT => $self->{port}, STUCK => STUCK_S, FILES => CACHED_FILES, FDS => DESCRIPTORS, CONNS => CONNECTIONS, QUEUE => QUEUE);
	my $app = sub ($url, $of, %set) { return Test::Server::proxy_block("^$url", 'unix:' . $self->{$of}->socket, 'max-pool-size' => 8, %set) };
	return <<'END' =~ s/\@([A-Z]+)\@/$is{$1}/gr . $app->('/app/', 'app') . $app->('/(?:in|out)side/', 'inside') . $app->('/app-status', 'app') . $app->('/inside-status', 'inside') . $app->('/broken/', 'broken') . $self->_user;
server.document-root = "@DIR@/www"
server.bind = "127.0.0.1"
server.port = @PORT@
server.pid-file = "@DIR@/run.pid"
server.errorlog = "@DIR@/error.log"
accesslog.filename = "@DIR@/logs/access.log"
server.upload-dirs = ( "@DIR@/logs/spool" )
server.max-worker = 2
server.max-fds = @FDS@
server.max-connections = @CONNS@
server.max-open-idle = @STUCK@
server.max-keep-alive-idle = 30
server.max-cached-files = @FILES@
server.max-blocking-queue = @QUEUE@
server.feature-flags = ( "server.graceful-shutdown-timeout" => 60 )
status.status-url = "/server-status"
status.statistics-url = "/statistics"
status.metrics-url = "/metrics"
url.rewrite-once = ( "^/(app|inside)-metrics$" => "/$1-status?metrics" )
$HTTP["url"] =^ "/long/" { connection.kbytes-per-second = 512 }
include "@DIR@/extra.conf"
END
}

sub _user ($self) { return getpwnam('www-data') ? qq{server.username = "www-data"\nserver.groupname = "www-data"\n} : '' }

sub _spare_conf ($self) {
	$self->{spare_port} = free_port();
	return qq{server.document-root = "$self->{dir}/www"\nserver.bind = "127.0.0.1"\nserver.port = $self->{spare_port}\n}
	    . qq{server.errorlog = "$self->{dir}/spare.log"\nstatus.metrics-url = "/metrics"\nserver.max-worker = 1\n};
}

sub _start ($self, $name, $conf) {
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $self->path("$name.out");
		open STDERR, '>&', \*STDOUT;
		exec @{ $self->{cores} // [] }, program('accel-server'), '-D', '-f', $self->path($conf) or POSIX::_exit(127);
	}
	return $pid;
}

# True once it answers.
sub answers ($self, $port = $self->{port}) {
	return eventually(sub { defined IO::Socket::INET->new("127.0.0.1:$port") }, 20);
}

sub spare ($self, $on) {
	if ($on && !$self->{spare}) {
		$self->{spare} = $self->_start('spare', 'spare.conf');
	} elsif (!$on && $self->{spare}) {
		kill TERM => $self->{spare};
		waitpid delete $self->{spare}, 0;
	}
	return;
}

# The newest server's.
sub pid ($self) { return slurp($self->path('run.pid')) =~ /^(\d+)$/m ? $1 : 0 }

# Process 0 would be this process itself.
sub _signal ($self, $name) {
	my $pid = $self->pid or die "no server: " . substr slurp($self->log), -2000;
	return kill $name => $pid;
}

# Replies 5xx of the application, by the access logs; after stop().
sub passed_on ($self) { return $self->{passed_on} }

sub _count_broken ($self, $which) {
	$self->{passed_on} += () = slurp($self->path("logs/access.log$which")) =~ m{^.*"GET /broken/\S* \S+" 5\d\d }mg;
	return;
}

# As logrotate does: removes the file before the last one.
sub rotate ($self) {
	my $log = $self->path('logs/access.log');
	$self->_count_broken('.1');
	rename "$log.1", "$log.2";
	rename $log, "$log.1";
	$self->_signal('HUP');
	$self->{rotated}++;
	return;
}

sub reload ($self, $bad = 0) {
	put($self->path('extra.conf'), $bad ? "server.max-worker = \n" : "# $self->{reloads}\n");
	$self->_signal('USR1');
	$self->{ $bad ? 'bad' : 'reloads' }++;
	return;
}

# Returns at once; the pid file changes when the new server is ready.
sub upgrade ($self) {
	$self->_signal('USR2');
	$self->{upgrades}++;
	return;
}

# ---------------------------------------------------------------- looking

# All processes that serve this configuration: the newest, its helper, and those that drain.
sub processes ($self) {
	my $conf = $self->path('server.conf');
	return grep { index(slurp("/proc/$_/cmdline"), "\0$conf\0") >= 0 } map { m{/proc/(\d+)$} } glob '/proc/[0-9]*';
}

sub sample ($self) {
	my $pid = $self->pid;
	my %s = (pid => $pid, processes => scalar(() = $self->processes), threads => scalar(() = glob "/proc/$pid/task/*"));
	$s{descriptors} = () = glob "/proc/$pid/fd/*";
	($s{rss}) = map { $_ / 1024 } slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m;
	return %s;
}

# TERM to all that is left; false: one did not end.
sub stop ($self) {
	return 1 if $self->{stopped}++;
	eval { $_->go } for values %{ $self->{disk} };
	$self->spare(0);
	$self->_signal('INT') if $self->pid;
	my $ended = eventually(sub { waitpid $self->{server}, WNOHANG; !$self->processes }, 70);
	kill KILL => $_ for $self->processes;
	delete $self->{$_} for qw(broken inside app);
	(delete $self->{disk}{$_})->stop for keys %{ $self->{disk} };
	$self->_count_broken($_) for '.1', '';
	system('umount', '-l', delete $self->{mounted}) if $self->{mounted};
	return $ended;
}

sub DESTROY ($self) {
	return if $$ != $self->{owner};
	local ($?, $@, $!);
	$self->stop;
}

1;
