package Accel::Peer::Conf;
# The configuration of each server that Accel::Peer starts.
# nginx($peer), lighttpd($peer), apache($peer), h2o($peer) and accel($peer) are whole configurations: for speed, without access log, keep-alive
# without end. front_lines($kind, $address) are the lines that ask fcgi-stat-accel first. Accel::Peer explains the options.
use v5.36;
use Accel::Lines ();
use Accel::Peer::Cache ();
use Accel::Peer::Proxy ();

sub nginx ($s) {
	my $user = $> == 0 ? 'user root root;' : '';
	my $aio = $s->{aio} ? 'aio threads;' : '';
	$aio .= ' directio 512; output_buffers 2 1m;' if $s->{directio};
	my $file_cache = $s->{file_cache} // 1 ? "open_file_cache max=10000 inactive=60s;\n\topen_file_cache_errors on;" : '';
	my $front = $s->{cache} ? Accel::Peer::Cache::lines($s) : $s->{front} ? _front_nginx($s) : Accel::Peer::Proxy::lines($s);
	# Segments of loopback have 64 kB. nginx ends TCP_CORK of a cached answer while Nagle's algorithm is on, so the last
	# segment waits for the client's delayed acknowledgement: 44 ms for 100 kB, instead of 0.1.
	my $nopush = $s->{cache} ? 'off' : 'on';
	# The same with HTTP/2 in clear, where nginx corks regardless of tcp_nopush: 22 replies of 1 kB in a second, one after the other.
	my $sendfile = $s->{http2} && !$s->{tls} ? 'off' : 'on';
	my $upstream = $s->{cache} ? Accel::Peer::Cache::http($s) : Accel::Peer::Proxy::upstream($s);
	my $temp = join "\n", map { "\t$_ $s->{dir};" } qw(client_body_temp_path proxy_temp_path
	    fastcgi_temp_path uwsgi_temp_path scgi_temp_path);
	my $load = $s->{module} ? "load_module $s->{module_file};" : '';
	my $accel = $s->{module} ? 'stat_accel ' . ($s->{stat_accel} ? $s->{stat_accel}->address : 'on') . ';' : '';
	return <<"CONF";
$load
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
	sendfile $sendfile;
	tcp_nopush $nopush;
	tcp_nodelay on;
	$aio
	keepalive_timeout 3600s;
	keepalive_requests 1000000000;
	$file_cache
$temp
	$upstream
	server {
		listen 127.0.0.1:$s->{port}@{[ $s->{tls} ? ' ssl' : '' ]}@{[ $s->{http2} ? ' http2' : '' ]} backlog=8192@{[ $s->{reuseport} ? ' reuseport' : '' ]};
		@{[ $s->{tls} ? "ssl_certificate $s->{tls}{pem}; ssl_certificate_key $s->{tls}{key}; ssl_protocols TLSv1.2 TLSv1.3;" : '' ]}
		root "$s->{root}";
		$accel
$front
	}
}
CONF
}

# lighttpd does not start the accelerator here, so "bin-path" and "max-procs" of the README are left out.
sub front_lines ($kind, $address) {
	$address = "unix:$address" if $address =~ m{^/};
	return split /\n/, Accel::Lines::nginx_ask('/stat-accel') . Accel::Lines::nginx_location('/stat-accel', $address) if $kind eq 'nginx';
	my $where = $address =~ /^unix:(.*)/ ? qq{"socket" => "$1"} : $address =~ s/(.*):(.*)/"host" => "$1", "port" => $2/r;
	return split /\n/, Accel::Lines::lighttpd_module() . <<"LINES";
fastcgi.server += ( "/" => (( "mode" => "authorizer", "check-local" => "disable", $where )) )
LINES
}

sub _exempt ($s) { return ref $s->{exempt} ? @{ $s->{exempt} } : $s->{exempt} // () }

# No keepalive: nginx ends the request of an auth_request with its head, and closes the connection. strace counts a
# connect(2) for each, regardless of fastcgi_keep_conn and upstream.
sub _front_nginx ($s) {
	my @line = front_lines('nginx', $s->{stat_accel}->address);
	return join "\n", 'location / {', @line, '}', map { "location = $_ { }" } _exempt($s);
}

sub _front_lighttpd ($s) {
	my ($modules, @line) = front_lines('lighttpd', $s->{stat_accel}->address);
	my ($open, $close) = $s->{exempt} ? ('$HTTP["url"] !~ "^(' . join('|', map { quotemeta } _exempt($s)) . ')$" {', '}') : ('', '');
	return join "\n", $modules, $open, @line, $close, '';
}

sub lighttpd ($s) {
	my $front = $s->{front} ? _front_lighttpd($s) : Accel::Peer::Proxy::lines($s);
	return <<"CONF";
server.document-root = "$s->{root}"
server.bind = "127.0.0.1"
server.port = $s->{port}
server.errorlog = "$s->{dir}/error.log"
@{[ _http2($s) ]}server.modules = (@{[ $s->{tls} ? '"mod_openssl"' : '' ]})
@{[ _ssl($s) ]}
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

sub _ssl ($s) {
	return $s->{tls} ? qq{ssl.engine = "enable"\nssl.pemfile = "$s->{tls}{pem}"\nssl.privkey = "$s->{tls}{key}"\n} : '';
}

# By ALPN over TLS, with prior knowledge in clear. Both are defaults of lighttpd 1.4.
sub _http2 ($s) { return $s->{http2} ? qq{server.feature-flags = ( "server.h2proto" => "enable", "server.h2c" => "enable" )\n} : '' }

# 400 threads: enough to wait for 400 files at the same time.
sub apache ($s) {
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
sub h2o ($s) {
	my $root = $s->{root} =~ s/(["\\])/\\$1/gr;
	my $user = $> == 0 ? "user: root\n" : '';
	return <<"CONF";
${user}pid-file: $s->{dir}/pid
error-log: $s->{dir}/error.log
num-threads: @{[ $s->{workers} // 1 ]}
max-connections: 15000
http1-request-timeout: 3600
http2-idle-timeout: 3600
listen:
  host: 127.0.0.1
  port: $s->{port}
@{[ $s->{tls} ? "  ssl:\n    certificate-file: $s->{tls}{pem}\n    key-file: $s->{tls}{key}\n    neverbleed: OFF" : '' ]}
hosts:
  default:
    paths:
      /:
        file.dir: "$root"
        file.send-compressed: OFF
CONF
}

sub accel ($s) {
	my $more = Accel::Peer::Proxy::lines($s) . _ssl($s) . _http2($s);
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
