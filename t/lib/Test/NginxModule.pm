package Test::NginxModule;
# nginx with the module of nginx/, as a test configures it.
#
#     my $ng = Test::NginxModule->start(<<'CONF', root => $tree);
#     server { listen 8080; root /srv/www; stat_accel on; }
#     CONF
#     my $r = $ng->get('/a.txt');                 # as Test::Http::parse gives it
#     is $ng->last->{status}, 'remembered';       # line of the access log: request, code, status, time, bytes
#
# The text stands in http { }. /srv/www in it is the tree, /run/ the directory of the test, 8080 to 8082 are free ports. Started by root, nginx's
# workers run as www-data, and root_of() gives the tree to them. NGINX_UNDER are words before its command, as "valgrind --log-file=/tmp/%p".
use v5.36;
use parent 'Accel::Peer';
use Cwd ();
use File::Temp ();
use IO::Socket::INET ();
use Test::Http ();
use Test::Util qw(eventually free_port need_program put slurp);

sub start ($class, $http, %arg) {
	need_program('nginx', 'nginx-light');
	my $self = bless { %arg, name => 'nginx with the module', kind => 'nginx', owner => $$ }, $class;
	$self->{root} = Cwd::abs_path("$arg{root}");
	$self->{dir} = File::Temp->newdir('nginx-module-XXXXXX', TMPDIR => 1);
	chmod 0755, "$self->{dir}";
	$self->{ports} = { map { $_ => free_port() } 8080 .. 8082 };
	$self->{port} = $self->{ports}{8080};
	$self->{text} = $http;
	$self->_write;
	$self->_spawn(split(' ', $ENV{NGINX_UNDER} // ''), 'nginx', '-p', "$self->{dir}", '-e', "$self->{dir}/error.log", '-c', 'nginx.conf');
	eval { $self->_wait_for_port(time + 20); 1 } or die $@, $self->log;
	return $self;
}

sub _write ($self) {
	my $dir = $self->{dir};
	my $http = $self->{text} =~ s{/srv/www}{$self->{root}}gr =~ s{/run/}{$dir/}gr =~ s{\b(808[0-2])\b}{$self->{ports}{$1}}gr;
	my $load = $self->{without} ? '' : "load_module @{[ Test::Util::nginx_module() ]};";
	my $temp = join ' ', map { "${_}_temp_path $dir/temp;" } qw(client_body proxy fastcgi uwsgi scgi);
	my $log = $self->{without} ? '' : '$stat_accel_status $stat_accel_time';
	put("$dir/nginx.conf", <<"CONF");
$load
@{[ $> == 0 ? 'user www-data;' : '' ]}
daemon off;
worker_processes @{[ $self->{workers} // 1 ]};
pid $dir/pid;
error_log $dir/error.log info;
@{[ $self->{main} // '' ]}
events { worker_connections @{[ $self->{connections} // 1024 ]}; }
http {
	log_format t '\$request|\$status|\$body_bytes_sent|$log';
	access_log $dir/access.log t;
	$temp
$http
}
CONF
}

sub connect ($self, $port = 8080, $from = '127.0.0.1') {
	return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{ports}{$port}", LocalAddr => $from, Timeout => 20) // die "nginx: $@";
}

# The connection of a request whose reply is not awaited.
sub begin ($self, $path, $from = '127.0.0.1') {
	my $c = $self->connect(8080, $from);
	syswrite $c, Test::Http::request_head('GET', $path);
	return $c;
}

# The URL of the server that listens with http2.
sub url2 ($self) { return "http://127.0.0.1:$self->{ports}{8082}" }

# The bytes of the reply.
sub raw ($self, $head, $port = 8080) {
	my $c = $self->connect($port);
	syswrite $c, $head;
	return do { local $/; <$c> } // '';
}

sub get ($self, $path, %header) { return $self->ask('GET', $path, %header) }

sub ask ($self, $method, $path, %header) { return Test::Http::parse($self->raw(Test::Http::request_head($method, $path, %header))) }


# How the module found the file of the newest request.
sub last ($self) {
	my ($line) = reverse split /\n/, slurp("$self->{dir}/access.log");
	my ($request, $code, $bytes, $status, $time) = $line =~ /^(.*)\|(\d+)\|(\d+)\|(\S*) ?(\S*)$/;
	return { request => $request, code => $code, bytes => $bytes, status => $status, time => $time };
}

# Process ids of the workers; the first.
sub workers ($self) { return split ' ', slurp("/proc/$self->{pid}/task/$self->{pid}/children") }
sub worker ($self) { return ($self->workers)[0] }

sub log ($self) { return slurp("$self->{dir}/error.log") }

1;
