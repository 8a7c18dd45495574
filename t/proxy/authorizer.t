#!/usr/bin/perl
# proxy-core.authorizer: nothing of a request happens before the authorizer said 200, and whatever else it says or does refuses it.

use v5.36;
use File::Temp ();
use Test::More;
use Time::HiRes qw(time);

use Test::App;
use Test::Http qw(parse request_head);
use Test::Server;
use Test::Util qw(eventually);

# A request without SCRIPT_NAME, or with one outside /app/, is for an authorizer, which does what the header X-Auth names.
{
	no warnings 'redefine';
	my $what = \&Test::App::_what;
	*Test::App::_what = sub { my ($p) = @_; return ($p->{SCRIPT_NAME} // '') =~ m{/app/} ? $what->($p) : $p->{HTTP_X_AUTH} // 'deny' };
	sub Test::App::do_deny {
		my ($self, $c, $p) = @_;
		$self->note("asked");
		Test::App::out($c, qq{Status: 401 No\r\nWWW-Authenticate: Basic realm="x"\r\nVariable-USER: leak\r\nX-Sendfile: /etc/passwd\r\nX-Accel-Redirect: /open/file\r\n\r\nwho are you?});
		Test::App::end($c);
		return 1;
	}
	sub Test::App::do_grant {
		my ($self, $c, $p) = @_;
		$self->note("asked");
		Test::App::out($c, "Status: 200 OK\r\nVariable-AUTH_USER: joe\r\nVariable-HTTP_X_USER: joe\r\nVariable-SCRIPT_FILENAME: /etc/passwd\r\n"
			. "Variable-BAD-NAME: x\r\nX-Sendfile: /etc/passwd\r\nSet-Cookie: a=b\r\n\r\nsome text") if $self->{role} == 2 && !exists $p->{CONTENT_LENGTH};
		Test::App::end($c);
		return 1;
	}
	sub Test::App::do_flood {
		my ($self, $c, $p) = @_;
		Test::App::out($c, "Status: 200 OK\r\n\r\n");
		Test::App::out($c, 'x' x 60000) for 1 .. 3;
		Test::App::end($c);
		return 1;
	}
	sub Test::App::do_plain { my ($self, $c, $p) = @_; Test::App::out($c, "Status: $p->{HTTP_X_STATUS}\r\n\r\n"); Test::App::end($c); return 1 }
}
my ($auth, $app) = map { Test::App->start } 1, 2;

sub server {
	my ($more, $backends, $inner) = @_;
	$backends //= 'unix:' . $auth->socket;
	my $srv = Test::Server->start(conf => <<"END");
server.max-worker = 1
index-file.names = ( "index.html" )
$more
\$HTTP["url"] =~ "^/front/app/" {
	proxy-core.protocol = "fastcgi"
	proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
	proxy-core.allow-x-sendfile = "enable"
	proxy-core.allow-x-rewrite = "enable"
}
\$HTTP["url"] =~ "^/private/" {
	proxy-core.authorizer = ( "$backends" )
	proxy-core.max-pool-size = 4
	proxy-core.max-keep-alive-requests = 100
	@{[ $inner // '' ]}
	\$HTTP["url"] =~ "^/private/app/" {
		proxy-core.protocol = "fastcgi"
		proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
		proxy-core.allow-x-sendfile = "enable"
	}
	\$HTTP["url"] =~ "^/private/open/" {
		proxy-core.authorizer = ( )
	}
}
END
	$srv->write("private/$_", "secret $_") for qw(file.txt index.html open/file);
	return $srv;
}

sub ask ($srv, $path, @header) {
	my $got = $srv->get($path, @header);
	my $r = parse($got);
	$r->{raw} = $got;
	return $r;
}

my $srv = server('');
subtest 'a file' => sub {
	my $r = ask($srv, '/private/file.txt');
	is $r->{status}, 401, 'refused';
	is $r->{body}, 'who are you?', '... with the body of the authorizer';
	is $r->{header}{'www-authenticate'}, 'Basic realm="x"', '... and its fields';
	unlike $r->{raw}, qr/leak|variable|sendfile|accel-/i, '... without those for the server';
	like $srv->wait_log(qr/control\.dropped.*X-Accel-Redirect/s), qr/ev=control\.dropped .*header=X-Sendfile .*authorizer/, '... which are in the log';
	$r = ask($srv, '/private/file.txt', 'X-Auth' => 'grant');
	is "$r->{status} $r->{body}", '200 secret file.txt', 'granted';
	unlike $r->{raw}, qr/set-cookie|variable|some text/i, '... without the fields of the authorizer';
	is ask($srv, '/private/open/file')->{status}, 200, 'an empty list asks nobody';
};

subtest 'once for each request' => sub {
	my $asked = sub { my $n = length $auth->noted('asked'); $_[0]->(); return length($auth->noted('asked')) - $n };
	my %how = (
		'a range' => sub { is ask($srv, '/private/file.txt', 'X-Auth' => 'grant', Range => 'bytes=0-5')->{body}, 'secret', 'the range' },
		HEAD => sub { is parse($srv->head('/private/file.txt', 'X-Auth' => 'grant'))->{status}, 200, 'HEAD' },
		'an index file' => sub { is ask($srv, '/private/', 'X-Auth' => 'grant')->{body}, 'secret index.html', 'the index file' },
		'a file that is not there' => sub { is ask($srv, '/private/none', 'X-Auth' => 'grant')->{status}, 404, "... 404" },
		'a directory' => sub { is ask($srv, '/private/open', 'X-Auth' => 'grant')->{status}, 301, "... 301" },
		'an application' => sub { is ask($srv, '/private/app/env', 'X-Auth' => 'grant')->{status}, 200, 'the application' },
		'X-Sendfile' => sub { is ask($srv, "/private/app/head?X-Sendfile:%20@{[ $srv->dir ]}/private/file.txt", 'X-Auth' => 'grant')->{body}, 'secret file.txt', 'the file' },
		'X-Accel-Redirect' => sub { is ask($srv, '/private/app/head?X-Accel-Redirect:%20/private/file.txt', 'X-Auth' => 'grant')->{body}, 'secret file.txt', 'the file' },
		'X-Accel-Redirect from outside' => sub { is ask($srv, '/front/app/head?X-Accel-Redirect:%20/private/file.txt', 'X-Auth' => 'grant')->{body}, 'secret file.txt', 'the file' },
		'X-Accel-Redirect from outside, refused' => sub { is ask($srv, '/front/app/head?X-Accel-Redirect:%20/private/file.txt')->{status}, 401, '... 401' },
		'X-Rewrite-URI from outside' => sub { is ask($srv, '/front/app/head?X-Rewrite-URI:%20/private/file.txt', 'X-Auth' => 'grant')->{body}, 'secret file.txt', 'the file' },
		'X-Rewrite-URI from outside, refused' => sub { is ask($srv, '/front/app/head?X-Rewrite-URI:%20/private/')->{status}, 401, '... 401' },
		'a refused one' => sub { is ask($srv, '/private/file.txt')->{status}, 401, "... 401" },
	);
	is $asked->($how{$_}), 1, $_ for sort keys %how;
	is $asked->(sub {
		my $c = $srv->connect;
		$c->send(join '', map { "GET /private/file.txt HTTP/1.1\r\nHost: x\r\nX-Auth: $_\r\n\r\n" } qw(grant deny grant deny));
		is $c->reply->{status}, $_, "... $_" for 200, 401, 200, 401;
	}), 4, 'each request of a connection';
	is ask($srv, $_)->{status}, 401, $_ for '/%70rivate/file.txt', '//private//file.txt', '/x/../private/file.txt', '/private/./file.txt', '/private/index.html', '/private/',
		'/private/none', '/private/app/env', '/private/file.txt?/private/open/', '/private/open/../file.txt', '/private/open/%2e%2e/file.txt';
	is ask($srv, $_)->{status}, 404, "$_ is another name" for '/PRIVATE/file.txt', '/private;/file.txt';
};

subtest 'variables' => sub {
	my $r = ask($srv, '/private/app/env', 'X-Auth' => 'grant', 'X-User' => 'root', 'Variable-X' => 'mine');
	like $r->{body}, qr/^AUTH_USER=joe$/m, 'the application gets them';
	like $r->{body}, qr/^HTTP_X_USER=joe$/m, '... in place of what the client sent';
	like $r->{body}, qr{^SCRIPT_FILENAME=\Q@{[ $srv->dir ]}\E/private/app/env$}m, '... and not in place of what the server knows';
	my $c = $srv->connect;
	$c->send("GET /private/app/env HTTP/1.1\r\nHost: x\r\nX-Auth: grant\r\n\r\nGET /private/file.txt HTTP/1.1\r\nHost: x\r\nX-Auth: env\r\n\r\n");
	$c->reply;
	unlike $c->reply->{body}, qr/joe/, 'the next request does not';
};

subtest 'a request with a body' => sub {
	my $c = $srv->connect;
	$c->send("POST /private/app/upload HTTP/1.1\r\nHost: x\r\nX-Auth: deny\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
	my $r = $c->reply;
	is $r->{status}, 401, 'refused before the body comes';
	is $r->{header}{connection}, 'close', '... and nothing after it is read as a request';
	for my $body ('short', 'x' x 300_000) {
		$c = $srv->connect;
		$c->send("POST /private/app/upload HTTP/1.1\r\nHost: x\r\nX-Auth: grant\r\nContent-Length: " . length($body) . "\r\n\r\n$body");
		like $c->reply->{body}, qr/^@{[ length $body ]} /, 'granted: the application gets ' . length $body;
		$c->send("POST /private/file.txt HTTP/1.1\r\nHost: x\r\nX-Auth: grant\r\nContent-Length: " . length($body) . "\r\n\r\n$body");
		is $c->reply->{status}, 405, '... a file does not';
	}
	$c = $srv->connect;
	$c->send("POST /private/app/upload HTTP/1.1\r\nHost: x\r\nX-Auth: grant\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	is $c->reply->{status}, 100, 'granted: 100 Continue';
	$c->send('body');
	like $c->reply->{body}, qr/^4 /, '... then the application';
};

subtest 'a failing authorizer lets nothing pass' => sub {
	my ($s, $hasty) = (server(''), server('', undef, 'proxy-core.read-timeout = 1'));
	my %status = (garbage => 502, hangup => 502, nohead => 502, cuthead => 502, cut => 502, cutlen => 502, full => 503, silent => 504, flood => 502);
	for my $how (sort keys %status) {
		my $r = ask($how eq 'silent' ? $hasty : $s, '/private/file.txt', 'X-Auth' => $how);
		is $r->{status}, $status{$how}, "$how: $status{$how}";
		unlike $r->{raw}, qr/secret/, '... and no file';
	}
	for my $status (201, 204, 206, 301, 304, 400, 403, 404, 500, 503) {
		my $r = ask($s, '/private/file.txt', 'X-Auth' => 'plain', 'X-Status' => $status);
		is $r->{status}, $status, "$status goes to the client";
		unlike $r->{raw}, qr/secret/, '... without the file';
	}
	is ask($s, '/private/file.txt', 'X-Auth' => 'plain', 'X-Status' => 200)->{body}, 'secret file.txt', '200 does not';
	$s = server('', 'unix:' . $auth->file('none'));
	my $r = ask($s, '/private/file.txt', 'X-Auth' => 'grant');
	is $r->{status}, 503, 'dead: 503';
	like $r->{header}{'retry-after'}, qr/^[1-9]/, '... with Retry-After';
	is ask($s, '/private/open/file')->{status}, 200, '... others do not notice';
};

subtest 'clients that leave' => sub {
	my $s = server('');
	my @c = map { $s->connect } 1 .. 8;
	$_->send("GET /private/file.txt HTTP/1.1\r\nHost: x\r\nX-Auth: silent\r\n\r\n") for @c;
	$_->abort for @c;
	is ask($s, '/private/file.txt', 'X-Auth' => 'grant')->{status}, 200, 'give their sockets back';
};

subtest 'other protocols' => sub {
	for my $protocol (grep { $_ ne 'fastcgi' } @Test::Wire::PROTOCOLS) {
		my $other = Test::App->start(protocol => $protocol);
		my $s = server('', 'unix:' . $other->socket, qq{proxy-core.authorizer-protocol = "$protocol"});
		is ask($s, '/private/file.txt', 'X-Auth' => 'plain', 'X-Status' => $_)->{body}, 'secret file.txt', "$protocol: $_ grants" for 200, 204, 299;
		is ask($s, '/private/file.txt', 'X-Auth' => 'plain', 'X-Status' => $_)->{status}, $_, "... $_ does not" for 302, 401, 500;
		my $c = $s->connect;
		$c->send("POST /private/file.txt HTTP/1.1\r\nHost: x\r\nX-Auth: plain\r\nX-Status: 200\r\nContent-Length: 4\r\n\r\nbody");
		is $c->reply->{status}, 405, '... it gets no body';
	}
};

subtest 'an application gets the path that conditions saw' => sub {
	for my $protocol (@Test::Wire::PROTOCOLS) {
		my $open = Test::App->start(protocol => $protocol);
		my $s = Test::Server->start(conf => qq[\$HTTP["url"] =~ "^/private/" {\n\tproxy-core.authorizer = ( "unix:@{[ $auth->socket ]}" )\n}\n]
		    . Test::Server::proxy_block('^/', 'unix:' . $open->socket, protocol => $protocol));
		for my $path ('/private/../app/env', '/private//../app/env', '/private/./../app/env', '/private/%2e%2E/app/env', '/private/x/.%2e/%2e./app/%65nv') {
			my %env = map { split /=/, $_, 2 } split /\n/, ask($s, "$path?a=../b%20", 'X-Auth' => 'env')->{body};
			is $env{REQUEST_URI}, '/app/env?a=../b%20', "$protocol $path: without steps" or diag explain \%env;
		}
		my %env = map { split /=/, $_, 2 } split /\n/, ask($s, '/app/env//.x/%65?a=/../', 'X-Auth' => 'env')->{body};
		is $env{REQUEST_URI}, '/app/env//.x/%65?a=/../', '... others stay as they are';
	}
};

subtest 'one authorizer after the other' => sub {
	my $s = Test::Server->start(conf => <<"END");
index-file.names = ( "index.html" )
proxy-core.authorizer = ( "unix:@{[ $auth->socket ]}" )
\$HTTP["url"] == "/index.html" { proxy-core.authorizer = ( "unix:@{[ $auth->file('none') ]}" ) }
END
	$s->write('index.html', 'secret');
	is ask($s, '/', 'X-Auth' => 'grant')->{status}, 503, 'the block of the index file asks its own, too';
	is ask($s, '/', 'X-Auth' => 'deny')->{status}, 401, 'after the first one';
};

subtest 'settings that cannot hold' => sub {
	my $s = Test::Server->start(conf => qq{proxy-core.authorizer = ( "unix:/x" )\nproxy-core.authorizer-protocol = "smtp"\n}, unchecked => 1);
	$s->wait_exit;
	$s->log_has(qr/proxy-core\.authorizer-protocol: expected one of: .*fastcgi.*got ..?.?.?smtp/, 'an unknown protocol');
};

done_testing;
