package Accel::Peer::Proxy;
# What each server needs to pass requests to t/bench/responder.c.
# lines($peer) are the lines of configuration for $peer->{proxy}: { protocol => 'fastcgi' or 'http', to => $responder }.
# Sockets to the responder are kept wherever the server can: nginx by `keepalive`, HAProxy by http-reuse always, accel-server by
# its pool; lighttpd 1.4 opens one for each FastCGI request. Bodies of requests and replies are not written to files.
# haproxy($peer) is a whole configuration. Requests for /1k.bin are not passed on, so that a static file can be measured beside
# the others; HAProxy has no files. With `under`, a path that ends with a slash, only what is below it is passed on.
use v5.36;

my %lines = (accel => \&_accel, nginx => \&_nginx, lighttpd => \&_lighttpd);

sub lines ($peer) {
	return $peer->{proxy} && $lines{ $peer->{kind} } ? $lines{ $peer->{kind} }->($peer, %{ $peer->{proxy} }) : '';
}

sub _address ($to, $protocol) {
	return $protocol eq 'http' ? '127.0.0.1:' . $to->port : 'unix:' . $to->socket;
}

# The condition of lighttpd and accel-server.
sub _passed (%p) { return $p{under} ? qq{\$HTTP["url"] =~ "^$p{under}"} : '$HTTP["url"] != "/1k.bin"' }

sub _accel ($peer, %p) {
	my $size = $p{pool} // 128;
	return <<"LINES";
server.max-request-size = 0
server.stream-request-body = 2
@{[ _passed(%p) ]} {
	proxy-core.protocol = "$p{protocol}"
	proxy-core.backends = ( "@{[ _address($p{to}, $p{protocol}) ]}" )
	proxy-core.max-pool-size = $size
	proxy-core.max-keep-alive-requests = 65535
}
LINES
}

# As Debian's fastcgi.conf.
my @variables = (['QUERY_STRING', '$query_string'], ['REQUEST_METHOD', '$request_method'], ['CONTENT_TYPE', '$content_type'],
	['CONTENT_LENGTH', '$content_length'], ['SCRIPT_FILENAME', '$document_root$fastcgi_script_name'],
	['SCRIPT_NAME', '$fastcgi_script_name'], ['REQUEST_URI', '$request_uri'], ['DOCUMENT_URI', '$document_uri'],
	['DOCUMENT_ROOT', '$document_root'], ['SERVER_PROTOCOL', '$server_protocol'], ['REQUEST_SCHEME', '$scheme'],
	['GATEWAY_INTERFACE', 'CGI/1.1'], ['SERVER_SOFTWARE', 'nginx/$nginx_version'], ['REMOTE_ADDR', '$remote_addr'],
	['REMOTE_PORT', '$remote_port'], ['SERVER_ADDR', '$server_addr'], ['SERVER_PORT', '$server_port'],
	['SERVER_NAME', '$server_name'], ['REDIRECT_STATUS', '200']);

sub _nginx ($peer, %p) {
	my $pass = $p{protocol} eq 'http'
	    ? 'proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; '
		. 'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;'
	    : join ' ', 'fastcgi_pass app; fastcgi_keep_conn on;', map { "fastcgi_param $_->[0] $_->[1];" } @variables;
	my $word = $p{protocol} eq 'http' ? 'proxy' : 'fastcgi';
	return <<"LINES";
client_max_body_size 0;
@{[ $p{under} ? "location $p{under} {" : "location = /1k.bin { }\nlocation / {" ]}
	$pass
	${word}_request_buffering off;
	${word}_max_temp_file_size 0;
	${word}_buffer_size 16k;
	${word}_buffers 16 32k;
}
LINES
}

# Outside of its server block.
sub upstream ($peer) {
	return '' if !$peer->{proxy};
	my $address = _address($peer->{proxy}{to}, $peer->{proxy}{protocol});
	return "upstream app { server $address; keepalive 1024; keepalive_requests 1000000000; }\n";
}

sub _lighttpd ($peer, %p) {
	my ($module, $where) = $p{protocol} eq 'http' ? ('proxy', '"host" => "127.0.0.1", "port" => ' . $p{to}->port)
	    : ('fastcgi', '"socket" => "' . $p{to}->socket . '", "check-local" => "disable"');
	return <<"LINES";
server.modules += ( "mod_$module" )
server.max-request-size = 0
server.stream-request-body = 2
server.stream-response-body = 2
@{[ _passed(%p) ]} {
	$module.server = ( "" => (( $where )) )
}
LINES
}

sub haproxy ($peer) {
	my $address = _address($peer->{proxy}{to}, 'http');
	return <<"CONF";
global
	nbthread 1
	maxconn 8000
defaults
	mode http
	option http-keep-alive
	option forwardfor
	http-reuse always
	timeout client 1h
	timeout server 1h
	timeout connect 5s
	timeout http-keep-alive 1h
frontend in
	bind 127.0.0.1:$peer->{port} backlog 8192
	default_backend app
backend app
	server one $address pool-max-conn 1024
CONF
}

1;
