package Test::Meet::Conf;
# A random configuration of accel-server.
#
#     my $conf = Test::Meet::Conf->new($dice, $dir);      # the sockets of Test::Meet::Apps are in $dir, files in $dir/www
#     Test::Server->start(dir => "$dir/www", conf => $conf->{text});
#
# `/PROTOCOL/` is an application, `/x.cgi` a program, `/files/` and `/cold/` are files. What begins with `/auth` is asked for first.
# `/rw` in front of a path is rewritten away. `facts` are the features, for the table of pairs.
use v5.36;
use Test::Server ();
use Test::Wire ();

use constant {
	IDLE     => 3,          # seconds that a peer may be silent, of clients and applications
	PATIENCE => 1,          # before these seconds no time-out is an excuse
};

my @BACKENDS;

# The path of the handler that answers errors.
sub _handler ($dice, $kind, $word) {
	return '/files/error.html' if $kind eq 'page';
	return '/files/none.html' if $kind eq 'missing';
	return "/x.cgi?a=echo&h=$word" if $kind eq 'cgi';
	my $p = $dice->pick(@Test::Wire::PROTOCOLS);
	return "/$p/?a=garbage&h=$word" if $kind eq 'broken';
	return "/$p/?a=control&h=$word&x=X-Sendfile&v=/nowhere/$word" if $kind eq 'stale';
	return "/$kind/?a=echo&h=$word";
}

sub new ($class, $dice, $dir) {
	@BACKENDS = sort(Test::Server::backends()) unless @BACKENDS;
	my %is = (
		workers => $dice->weigh(1 => 4, 2 => 1), stream => $dice->n(3), keep => $dice->pick(0, 100), pool => $dice->pick(2, 4, 16),
		eh => $dice->weigh(none => 6, page => 6, missing => 2, (map { $_ => 1 } @Test::Wire::PROTOCOLS, 'cgi'), broken => 1, stale => 2),
		eh404 => $dice->weigh(none => 6, page => 2, missing => 1, (map { $_ => 1 } @Test::Wire::PROTOCOLS, 'cgi'), broken => 1, stale => 2),
		intercept => $dice->chance(25), xsend => !$dice->chance(10), authorizer => $dice->pick(@Test::Wire::PROTOCOLS),
		io => $dice->weigh(adaptive => 3, map { $_ => 1 } @BACKENDS), module => $dice->pick('none', qw(accesslog setenv expire deflate)),
	);
	my $self = bless { %is, dir => $dir }, $class;
	$self->{text} = $self->_text($dice);
	$self->{facts} = [ "stream=$is{stream}", "eh=$is{eh}", "eh404=$is{eh404}", 'intercept=' . ($is{intercept} ? 1 : 0), "keep=$is{keep}", "io=$is{io}", "module=$is{module}", "workers=$is{workers}" ];
	return $self;
}

sub _text ($self, $dice) {
	my ($dir, $idle) = ($self->{dir}, IDLE);
	my $able = sub { $_[0] ? 'enable' : 'disable' };
	my $conf = <<"END";
server.max-worker = $self->{workers}
server.max-read-idle = $idle
server.max-keep-alive-idle = $idle
server.max-write-idle = $idle
server.stream-request-body = $self->{stream}
server.upload-dirs = ( "\@RUN\@" )
server.network-backend = "$self->{io}"
server.error-intercept = "@{[ $able->($self->{intercept}) ]}"
status.status-url = "/status"
mimetype.assign = ( ".html" => "text/html", ".bin" => "application/octet-stream" )
url.rewrite-once = ( "^/rw(/.*)" => "\$1" )
cgi.assign = ( ".cgi" => "$^X" )
cgi.limits = ( "read-timeout" => $idle, "write-timeout" => $idle )
cgi.x-sendfile = "@{[ $able->($self->{xsend}) ]}"
proxy-core.wait-timeout = 10
proxy-core.read-timeout = $idle
END
	$self->{eh_path} = _handler($dice, $self->{eh}, 'eh') if $self->{eh} ne 'none';
	$self->{eh404_path} = _handler($dice, $self->{eh404}, 'eh404') if $self->{eh404} ne 'none';
	$conf .= qq{server.error-handler = "$self->{eh_path}"\n} if $self->{eh_path};
	$conf .= qq{server.error-handler-404 = "$self->{eh404_path}"\n} if $self->{eh404_path};
	$conf .= qq{accesslog.filename = "\@RUN\@/access.log"\n} if $self->{module} eq 'accesslog';
	$conf .= qq{setenv.add-response-header = ( "X-Meet" => "1" )\nsetenv.set-request-header = ( "X-Set" => "1" )\n} if $self->{module} eq 'setenv';
	$conf .= qq{expire.url = ( "/" => "access 1 hours" )\n} if $self->{module} eq 'expire';
	$conf .= qq{deflate.mimetypes = ( "text/" )\n} if $self->{module} eq 'deflate';
	$conf .= <<"END";
\$HTTP["url"] =~ "^/auth/" {
	proxy-core.authorizer = ( "unix:$dir/auth-$self->{authorizer}.sock" )
	proxy-core.authorizer-protocol = "$self->{authorizer}"
	proxy-core.max-pool-size = 8
	proxy-core.max-keep-alive-requests = 100
}
END
	for my $p (@Test::Wire::PROTOCOLS) {
		$conf .= Test::Server::proxy_block("^(?:/auth)?/$p/", "unix:$dir/$p.sock", protocol => $p, 'max-pool-size' => $self->{pool},
			'max-keep-alive-requests' => $self->{keep}, 'disable-time' => 0, 'allow-x-sendfile' => $able->($self->{xsend}), 'allow-x-rewrite' => 'enable');
	}
	return $conf;
}

1;
