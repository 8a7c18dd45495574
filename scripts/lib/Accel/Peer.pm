package Accel::Peer;

=head1 NAME

Accel::Peer - other servers, and ours, side by side for tests and benchmarks

=head1 SYNOPSIS

    my $nginx = Accel::Peer->start('nginx', root => $docroot, cpu => 1);
    print $nginx->url, "\n";                    # http://127.0.0.1:PORT
    my $before = $nginx->cpu;                   # seconds, user and system, all its processes
    $nginx->stop;

=head1 DESCRIPTION

Kinds: C<nginx>, C<lighttpd> (1.4), C<apache> (2.4, event MPM: one process, 400 threads), C<accel>
(accel-server), C<floor> (t/bench/floor.c), C<haproxy>, C<h2o>, C<command> (the words of C<command>, with C<{port}> and C<{root}> replaced), C<responder> (t/bench/responder.c), and on a unix socket, C<< $peer->socket >>, C<stat-accel> (fcgi-stat-accel) and
C<textbook> (t/bench/textbook.c; C<mutex> for its C<-m>). Each is configured for speed, one worker, no access log, keep-alive without
end, on a free port of 127.0.0.1. Started by root, apache serves as www-data: the document root must be
open to it. C<start> returns when the port answers and dies with the server's own words when it does
not; C<< Accel::Peer->missing($kind) >> says what is not installed, or nothing.

Options: C<root> the document root; C<cpu> the core to stay on; C<conf> lines added to the
configuration; C<http> lines for nginx's http block; C<name> what to call it; C<backend> accel's server.network-backend; C<aio> nginx's
C<aio threads>; C<file_cache> 0 for nginx without C<open_file_cache>; C<stat_cache> lighttpd's C<server.stat-cache-engine>; C<directio> nginx's C<directio> for all files; C<workers> processes or threads (1);
C<read_ahead>, C<noatime> and C<timing> of accel; C<accel_tcp> for a stat-accel on 127.0.0.1; C<threads> for accel's stat and read pools and for stat-accel; C<stat_threads> and
C<read_threads> for one of these pools; C<via_stat_accel> makes accel ask a stat-accel of its own
first; C<file> is a configuration of lighttpd to use as it is, with C<env>, a hash of variables for it (PORT is added); C<proxy> makes it pass requests on, see L<Accel::Peer::Proxy>; C<cache> makes nginx answer from its cache, see L<Accel::Peer::Cache>; C<port>; C<program>, another build of this kind.

C<front> puts a stat-accel of its own before nginx or lighttpd: each request is first asked there (auth_request, an
authorizer) and served when the file is warm; its CPU time counts. C<exempt> is a path, or a list of them, that goes
past it; C<stat_accel_args> are more words for its command line.
C<< Accel::Peer->front_lines($kind, $socket) >> are the lines that a user adds to a configuration, as a list.

A keeper process between caller and server sees the caller's end through a pipe, and ends the server
by its process id, so that nothing is left over however the caller dies.

=cut

use strict;
use warnings;
use Cwd ();
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use POSIX ();
use Accel::Lines ();
use Accel::Peer::Cache ();
use Accel::Peer::Proxy ();
use Accel::Util qw(find_program program put);
use Time::HiRes qw(time sleep clock_gettime);

my %program = (
	nginx    => sub { find_program('nginx') },
	lighttpd => sub { find_program('lighttpd') },
	apache   => sub { find_program('apache2') },
	accel    => sub { _built('accel-server') },
	floor    => sub { _built('floor') },
	haproxy  => sub { find_program('haproxy') },
	h2o      => sub { find_program('h2o') },
	command  => sub { $_[0] && find_program($_[0]) },
	responder => sub { _built('responder') },
	'stat-accel' => sub { _built('fcgi-stat-accel') },
	textbook => sub { _built('textbook') },
);
my %conf = (nginx => \&_conf_nginx, lighttpd => \&_conf_lighttpd, apache => \&_conf_apache, accel => \&_conf_accel, h2o => \&_conf_h2o,
	haproxy => \&Accel::Peer::Proxy::haproxy);
my %argv = (
	nginx    => sub { ('-e', "$_[0]{dir}/error.log", '-p', "$_[0]{dir}", '-c', "$_[0]{dir}/conf") },
	lighttpd => sub { ('-D', '-f', $_[0]{file} // "$_[0]{dir}/conf") },
	apache   => sub { ('-D', 'FOREGROUND', '-f', "$_[0]{dir}/conf") },
	accel    => sub { ('-D', '-f', $_[0]{file} // "$_[0]{dir}/conf") },
	floor    => sub { ('--port', $_[0]{port}, $_[0]{root}) },
	haproxy  => sub { ('-db', '-f', "$_[0]{dir}/conf") },
	h2o      => sub { ('-c', "$_[0]{dir}/conf") },
	command  => sub { my ($s) = @_; my (undef, @words) = @{ $s->{command} }; map { s/\{(port|root)\}/$s->{$1}/gr } @words },
	responder => sub { ('--port', $_[0]{port}, '--socket', $_[0]->socket) },
	'stat-accel' => sub { ('--listen', $_[0]->address, '-t', $_[0]{threads} // 20, '--root', $_[0]{root},
		$_[0]{auth} ? '--mode=auth' : (), $_[0]{cache} ? Accel::Peer::Cache::args($_[0]) : (), @{ $_[0]{stat_accel_args} // [] }) },
	textbook => sub { ('-s', $_[0]->socket, '-t', $_[0]{threads} // 20, '-r', 131_072, $_[0]{mutex} ? '-m' : ()) },
);

sub _built {
	my $path = program($_[0]);
	return -x $path ? $path : undef;
}

sub missing {
	my ($class, $kind, @command) = @_;
	die "no such kind of server: $kind\n" unless $program{$kind};
	return if $program{$kind}->(@command);
	return "no program \"" . ($command[0] // '') . '"' if $kind eq 'command';
	return $kind =~ /accel|floor|responder/ ? "$kind is not built" : "$kind is not installed";
}

sub start {
	my ($class, $kind, %arg) = @_;
	if (my $why = $class->missing($kind, @{ $arg{command} // [] })) { die "$why\n" }
	my $self = bless { name => $kind, %arg, kind => $kind, owner => $$ }, $class;
	$self->{root} = Cwd::abs_path($arg{root} // die "root is missing\n");
	$self->{dir} = File::Temp->newdir("$kind-XXXXXX", TMPDIR => 1);
	$self->{port} //= _free_port();
	$self->{stat_accel} = $class->start('stat-accel', %arg, name => "stat-accel of $self->{name}",
		via_stat_accel => 0, front => 0, auth => $arg{front}, tcp => $arg{accel_tcp}, port => undef) if $arg{via_stat_accel} || $arg{front};
	put("$self->{dir}/conf", $self->configuration) if $conf{$kind} && !$arg{file};
	my @cmd = ($self->{program} // $program{$kind}->(@{ $arg{command} // [] }), $argv{$kind}->($self));
	unshift @cmd, 'env', "PORT=$self->{port}", map { "$_=$arg{env}{$_}" } sort keys %{ $arg{env} } if $arg{env};
	unshift @cmd, 'taskset', '-c', $self->{cpu} if defined $self->{cpu};
	$self->_spawn(@cmd);
	$self->_wait_for_port(time + 20);
	return $self;
}

# One that is not started, to see its configuration.
sub sample {
	my ($class, $kind, %arg) = @_;
	return bless { name => $kind, port => 8080, dir => '/run/' . $kind, %arg, kind => $kind, owner => $$ }, $class;
}

# The text of its configuration file; for servers without one the words of the command.
sub configuration {
	my ($self) = @_;
	my $kind = $self->{kind};
	return $conf{$kind}->($self) . ($self->{conf} // '') if $conf{$kind};
	return join(' ', $self->{command} ? $self->{command}[0] : $kind, $argv{$kind}->($self)) . "\n";
}

# Below the ports that the kernel gives to clients, or one of them takes it before the server does.
sub _free_port {
	for (1 .. 100) {
		my $port = 10_000 + int rand 22_000;
		return $port if IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => $port, Listen => 1);
	}
	die "no port is free: $!\n";
}

sub _spawn {
	my ($self, @cmd) = @_;
	pipe my $life, $self->{lifeline} or die "pipe: $!";
	pipe my $told, my $tell or die "pipe: $!";
	defined($self->{keeper} = fork) or die "fork: $!";
	if (!$self->{keeper}) {
		close $self->{lifeline};
		eval { _keep($self, $life, $tell, @cmd) };
		POSIX::_exit(0);
	}
	close $tell;
	chomp($self->{pid} = <$told> // '');
}

# The keeper: starts the server, tells its pid, waits for the caller's end, ends the server.
sub _keep {
	my ($self, $life, $tell, @cmd) = @_;
	POSIX::setpgid(0, 0);                   # Ctrl-C is the caller's business
	$SIG{$_} = 'DEFAULT' for qw(INT HUP CHLD);
	$SIG{TERM} = sub { };                   # only ends the wait below
	# Others' pipes would keep others' servers alive.
	my %mine = map { $_ => 1 } fileno $life, fileno $tell;
	m{(\d+)$} && $1 > 2 && !$mine{$1} && POSIX::close($1) for glob '/proc/self/fd/*';
	my $pid = fork // return;
	if (!$pid) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$self->{dir}/out";
		open STDERR, '>&', \*STDOUT;
		$SIG{TERM} = 'DEFAULT';
		{ no warnings; exec @cmd }
		POSIX::_exit(127);
	}
	syswrite $tell, "$pid\n";
	close $tell;
	sysread $life, my $nothing, 1;
	my @pids = _family($pid);               # nginx's worker outlives its master's KILL
	kill TERM => $pid;
	for (1 .. 300) {
		return if waitpid($pid, POSIX::WNOHANG()) != 0;
		sleep 0.01;
	}
	kill KILL => $_ for @pids, _family($pid);
	waitpid $pid, 0;
}

sub _wait_for_port {
	my ($self, $deadline) = @_;
	while (time < $deadline) {
		return if $self->{kind} =~ /^(stat-accel|textbook)$/
		    ? $self->_reached
		    : IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port});
		last unless $self->alive;
		sleep 0.02;
	}
	my $said = $self->said;
	$self->stop;
	die "$self->{name} does not answer\n$said";
}

sub _reached {
	my ($self) = @_;
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) if $self->{tcp};
	return IO::Socket::UNIX->new(Peer => $self->socket);
}

# Where FastCGI is spoken, as fcgi-stat-accel and accel-server write it.
sub address {
	my ($self) = @_;
	return $self->{tcp} ? "127.0.0.1:$self->{port}" : 'unix:' . $self->socket;
}

# What it wrote: standard output and error, and its error log.
sub said {
	my ($self) = @_;
	my $text = '';
	for my $file ("$self->{dir}/out", "$self->{dir}/error.log") {
		open my $fh, '<', $file or next;
		local $/;
		$text .= <$fh> // '';
	}
	return $text;
}

sub error_log { return "$_[0]{dir}/error.log" }
sub stat_accel { return $_[0]{stat_accel} }
sub name { return $_[0]{name} }
sub kind { return $_[0]{kind} }
sub port { return $_[0]{port} }
sub pid  { return $_[0]{pid} }
sub socket { return "$_[0]{dir}/socket" }
sub url  { return "http://127.0.0.1:$_[0]{port}" }

sub alive {
	my ($self) = @_;
	open my $fh, '<', "/proc/$self->{pid}/stat" or return 0;
	return (<$fh> // '') =~ /.*\) [^ZX]/ ? 1 : 0;
}

# A process and its descendants.
sub _family {
	my ($pid) = @_;
	my @all = ($pid);
	for my $p (@all) {
		for my $file (glob "/proc/$p/task/*/children") {
			open my $fh, '<', $file or next;
			push @all, split ' ', <$fh> // '';
		}
	}
	return @all;
}

sub pids {
	my ($self) = @_;
	return (_family($self->{pid}), $self->{stat_accel} ? $self->{stat_accel}->pids : ());
}

# CPU seconds, user and system, of all its processes and their threads.
sub cpu {
	my ($self) = @_;
	my $seconds = 0;
	$seconds += process_cpu($_) for $self->pids;
	return $seconds;
}

# CPU seconds of a process, also those of its threads that ended; 0 when it has ended itself. Each process
# has a clock that counts nanoseconds (clock_getcpuclockid(3) makes its number in this way);
# /proc/PID/stat counts hundredths of a second, which is all that some runs on a slow disk take.
sub process_cpu {
	my ($pid) = @_;
	my $seconds = clock_gettime(2 - 8 * ($pid + 1));
	return $seconds > 0 ? $seconds : 0;
}

# User memory in bytes, shared pages counted by their share.
sub pss {
	my ($self) = @_;
	my $kb = 0;
	for my $pid ($self->pids) {
		open my $fh, '<', "/proc/$pid/smaps_rollup" or next;
		while (<$fh>) { $kb += $1 if /^Pss:\s+(\d+)/ }
	}
	return $kb * 1024;
}

sub stop {
	my ($self) = @_;
	my $keeper = delete $self->{keeper} or return;
	close delete $self->{lifeline};
	kill TERM => $keeper;                   # a forked child of the caller may hold the pipe too
	waitpid $keeper, 0;
	delete $self->{stat_accel};
}

sub DESTROY {
	my ($self) = @_;
	return unless $self->{owner} == $$;
	local ($?, $@, $!);
	$self->stop;
}

# ------------------------------------------------------------- configurations

sub _conf_nginx {
	my ($s) = @_;
	my $user = $> == 0 ? 'user root root;' : '';
	my $aio = $s->{aio} ? 'aio threads;' : '';
	$aio .= ' directio 512; output_buffers 2 1m;' if $s->{directio};
	my $file_cache = $s->{file_cache} // 1 ? "open_file_cache max=10000 inactive=60s;\n\topen_file_cache_errors on;" : '';
	my $front = $s->{cache} ? Accel::Peer::Cache::lines($s) : $s->{front} ? _front_nginx($s) : Accel::Peer::Proxy::lines($s);
	# Segments of loopback have 64 kB. nginx ends TCP_CORK of a cached answer while Nagle's algorithm is on, so the last
	# segment waits for the client's delayed acknowledgement: 44 ms for 100 kB, instead of 0.1.
	my $nopush = $s->{cache} ? 'off' : 'on';
	my $upstream = $s->{cache} ? Accel::Peer::Cache::http($s) : Accel::Peer::Proxy::upstream($s);
	my $temp = join "\n", map { "\t$_ $s->{dir};" } qw(client_body_temp_path proxy_temp_path
	    fastcgi_temp_path uwsgi_temp_path scgi_temp_path);
	return <<"CONF";
daemon off;
$user
worker_processes @{[ $s->{workers} // 1 ]};
worker_rlimit_nofile 20000;
pid $s->{dir}/pid;
error_log $s->{dir}/error.log error;
events { worker_connections 15000; }
http {
	access_log off;
	log_not_found off;
	default_type application/octet-stream;
	@{[ $s->{http} // '' ]}
	sendfile on;
	tcp_nopush $nopush;
	tcp_nodelay on;
	$aio
	keepalive_timeout 3600s;
	keepalive_requests 1000000000;
	$file_cache
$temp
	$upstream
	server {
		listen 127.0.0.1:$s->{port} backlog=8192;
		root $s->{root};
$front
	}
}
CONF
}

# lighttpd does not start the accelerator here, so "bin-path" and "max-procs" of the README are left out.
sub front_lines {
	my ($class, $kind, $address) = @_;
	$address = "unix:$address" if $address =~ m{^/};
	return split /\n/, Accel::Lines::nginx_ask('/stat-accel') . Accel::Lines::nginx_location('/stat-accel', $address) if $kind eq 'nginx';
	my $where = $address =~ /^unix:(.*)/ ? qq{"socket" => "$1"} : $address =~ s/(.*):(.*)/"host" => "$1", "port" => $2/r;
	return split /\n/, Accel::Lines::lighttpd_module() . <<"LINES";
fastcgi.server += ( "/" => (( "mode" => "authorizer", "check-local" => "disable", $where )) )
LINES
}

sub _exempt { my ($s) = @_; return ref $s->{exempt} ? @{ $s->{exempt} } : $s->{exempt} // () }

# No keepalive: nginx ends the request of an auth_request with its head, and closes the connection. strace counts a
# connect(2) for each, regardless of fastcgi_keep_conn and upstream.
sub _front_nginx {
	my ($s) = @_;
	my @line = __PACKAGE__->front_lines('nginx', $s->{stat_accel}->address);
	return join "\n", 'location / {', @line, '}', map { "location = $_ { }" } _exempt($s);
}

sub _front_lighttpd {
	my ($s) = @_;
	my ($modules, @line) = __PACKAGE__->front_lines('lighttpd', $s->{stat_accel}->address);
	my ($open, $close) = $s->{exempt} ? ('$HTTP["url"] !~ "^(' . join('|', map { quotemeta } _exempt($s)) . ')$" {', '}') : ('', '');
	return join "\n", $modules, $open, @line, $close, '';
}

sub _conf_lighttpd {
	my ($s) = @_;
	my $front = $s->{front} ? _front_lighttpd($s) : Accel::Peer::Proxy::lines($s);
	return <<"CONF";
server.document-root = "$s->{root}"
server.bind = "127.0.0.1"
server.port = $s->{port}
server.errorlog = "$s->{dir}/error.log"
server.modules = ()
server.event-handler = "linux-sysepoll"
server.network-backend = "@{[ $s->{backend} // 'sendfile' ]}"
@{[ ($s->{workers} // 1) > 1 ? "server.max-worker = $s->{workers}" : '' ]}
server.stat-cache-engine = "@{[ $s->{stat_cache} // 'simple' ]}"
server.max-fds = 20000
server.max-connections = 15000
server.listen-backlog = 8192
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 3600
mimetype.assign = ( "" => "application/octet-stream" )
$front
CONF
}

# 400 threads: as many as it takes to wait for 400 files at the same time.
sub _conf_apache {
	my ($s) = @_;
	my $modules = '/usr/lib/apache2/modules';
	return <<"CONF";
ServerRoot "$s->{dir}"
DefaultRuntimeDir "$s->{dir}"
PidFile "$s->{dir}/pid"
ErrorLog "$s->{dir}/error.log"
LogLevel error
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
User www-data
Group www-data
ServerName 127.0.0.1
Listen 127.0.0.1:$s->{port}
ListenBacklog 8192
StartServers @{[ $s->{workers} // 1 ]}
ServerLimit @{[ $s->{workers} // 1 ]}
ThreadLimit 400
ThreadsPerChild 400
MaxRequestWorkers @{[ 400 * ($s->{workers} // 1) ]}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
Timeout 3600
EnableSendfile On
DocumentRoot "$s->{root}"
<Directory />
	Options FollowSymLinks
	AllowOverride None
	Require all granted
</Directory>
CONF
}

# The root is a value of YAML in double quotes.
sub _conf_h2o {
	my ($s) = @_;
	my $root = $s->{root} =~ s/(["\\])/\\$1/gr;
	my $user = $> == 0 ? "user: root\n" : '';
	return <<"CONF";
${user}pid-file: $s->{dir}/pid
error-log: $s->{dir}/error.log
num-threads: @{[ $s->{workers} // 1 ]}
max-connections: 15000
http1-request-timeout: 3600
listen:
  host: 127.0.0.1
  port: $s->{port}
hosts:
  default:
    paths:
      /:
        file.dir: "$root"
        file.send-compressed: OFF
CONF
}

sub _conf_accel {
	my ($s) = @_;
	my $more = Accel::Peer::Proxy::lines($s);
	$more .= qq{server.network-backend = "$s->{backend}"\n} if $s->{backend};
	for my $pool (qw(stat read)) {
		my $n = $s->{"${pool}_threads"} // $s->{threads};
		$more .= "server.max-$pool-threads = $n\n" if defined $n;
	}
	$more .= "server.network-chunk-size = $s->{read_ahead}\n" if $s->{read_ahead};
	$more .= qq{server.use-noatime = "enable"\n} if $s->{noatime};
	$more .= qq{debug.log-timing = "enable"\n} if $s->{timing};
	$more .= <<"PROXY" if $s->{stat_accel};
proxy-core.protocol = "fastcgi"
proxy-core.backends = ( "@{[ $s->{stat_accel}->address ]}" )
proxy-core.allow-x-sendfile = "enable"
proxy-core.max-pool-size = @{[ $s->{threads} // 20 ]}
PROXY
	return <<"CONF";
server.document-root = "$s->{root}"
server.bind = "127.0.0.1"
server.port = $s->{port}
server.errorlog = "$s->{dir}/error.log"
server.max-worker = @{[ $s->{workers} // 1 ]}
server.listen-backlog = 8192
server.max-keep-alive-requests = 100000000
server.max-keep-alive-idle = 3600
$more
CONF
}

1;
