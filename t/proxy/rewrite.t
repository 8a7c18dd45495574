#!/usr/bin/perl
# proxy-core.rewrite-request and rewrite-response: headers and special names, in every protocol.

use v5.36;
use Test::More;

use Test::App;
use Test::Server;
use Test::Wire;

my %cgi = map { $_ => 1 } qw(fastcgi scgi uwsgi);

sub server {
	my ($app, $set) = @_;
	return Test::Server->start(conf => <<"END");
server.max-worker = 1
\$HTTP["url"] =~ "^/(?:app|in)/" {
	proxy-core.protocol = "$app->{protocol}"
	proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
	$set
}
END
}

sub env { my ($r) = @_; return { map { split /=/, $_, 2 } split /\n/, $r->{body} } }

# The whole body of every request in one place: what the application sees.
sub asked ($srv, $path, @header) {
	return env($srv->fetch($path, @header));
}

for my $protocol (@Test::Wire::PROTOCOLS) {
	subtest $protocol => sub {
		my $app = Test::App->start(protocol => $protocol);
		my $path = $protocol =~ /^(?:uwsgi|scgi)$/ ? 'PATH_INFO' : 'SCRIPT_NAME';          # where all of the path is
		my $srv = server($app, 'proxy-core.rewrite-request = ( "_uri" => ( "^/app/env/(.*)" => "/app/env/new/$1&more=$$" ) )');
		my $env = asked($srv, '/app/env/a%20b?x=1');
		my $uri = '/app/env/new/a%20b?x=1&more=$';
		if ($cgi{$protocol}) {
			is $env->{REDIRECT_URI}, $uri, '_uri sets REDIRECT_URI';
			is $env->{REQUEST_URI}, '/app/env/a%20b?x=1', '... REQUEST_URI stays';
			is $env->{$path}, '/app/env/a b', "... $path, too";
			is $env->{QUERY_STRING}, 'x=1', '... and QUERY_STRING';
			is asked($srv, '/app/env')->{REDIRECT_URI}, undef, '... if it differs only';
		} else {
			is $env->{REQUEST_URI} =~ s/\?.*//r, $uri =~ s/\?.*//r, '_uri changes the URI';
			is $env->{QUERY_STRING}, 'x=1&more=$', '... with its query';
		}

		$srv = server($app, 'proxy-core.rewrite-request = ( "_docroot" => ( "^.*$" => "/other/root" ), "_pathinfo" => ( "^/app/env(/.*)" => "$1" ),'
			. ' "X-One" => ( "^(.)(.*)$" => "$2$1" ), "x-absent" => ( ".*" => "there" ), "X-Never" => ( "." => "there" ), "User-Agent" => ( "old" => "new" ) )');
		$env = asked($srv, '/app/env/more%20info', 'X-One' => 'abc', 'User-Agent' => 'an old one', 'X-Two' => 'as it is');
		if ($cgi{$protocol}) {
			is $env->{DOCUMENT_ROOT}, '/other/root', '_docroot changes DOCUMENT_ROOT';
			is $env->{SCRIPT_FILENAME}, '/other/root/app/env', '... and SCRIPT_FILENAME';
			is $env->{PATH_INFO}, '/more info', '_pathinfo sets PATH_INFO';
			is $env->{SCRIPT_NAME}, '/app/env', '... and shortens SCRIPT_NAME';
			is $env->{PATH_TRANSLATED}, '/other/root/more info', '... PATH_TRANSLATED is below the root';
			is join('|', map { $_ // 'none' } @{ asked($srv, '/app/env') }{qw(SCRIPT_NAME PATH_INFO)}), '/app/env|none', '... without a match all of the path is in SCRIPT_NAME, as in lighttpd';
		}
		is $env->{HTTP_X_ONE}, 'bca', 'a header';
		is $env->{HTTP_USER_AGENT}, 'new', 'the whole value is replaced';
		is $env->{HTTP_X_TWO}, 'as it is', 'others stay';
		is $env->{HTTP_X_ABSENT}, 'there', 'a field that the client did not send is added';
		is $env->{HTTP_X_NEVER}, undef, '... if the regular expression matches the empty value';
		is asked($srv, '/app/env', 'X-Absent' => 'sent')->{HTTP_X_ABSENT}, 'there', '... and replaced if it did';
		is asked($srv, '/app/env', 'x-oNE' => 'xyz')->{HTTP_X_ONE}, 'yzx', 'case does not matter';

		if ($cgi{$protocol}) {
			$srv = server($app, 'proxy-core.rewrite-request = ( "_scriptname" => ( "^/in/(.*)$" => "/app/$1" ) )');
			is asked($srv, '/in/env')->{$path}, '/app/env', "_scriptname changes $path";
			like asked($srv, '/in/env')->{SCRIPT_FILENAME}, qr{/in/env$}, '... and not SCRIPT_FILENAME';
		}

		$srv = server($app, 'proxy-core.rewrite-response = ( "Location" => ( "^http://inner(.*)" => "https://outer$1" ), "X-Gone" => ( ".*" => "" ), "X-New" => ( ".*" => "x" ) )');
		my $r = $srv->fetch('/app/head?Location:%20http://inner/a|X-Gone:%20secret|X-Stays:%201');
		is $r->{header}{location}, 'https://outer/a', 'a reply header';
		is $r->{header}{'x-gone'}, '', '... may become empty';
		is $r->{header}{'x-stays'}, 1, '... others stay';
		is $r->{header}{'x-new'}, undef, '... none is added';
	};
}

# https://github.com/rack/rack/blob/main/lib/rack/sendfile.rb, with the address of this test
subtest 'the block in the documentation of Rack' => sub {
	my $app = Test::App->start(protocol => 'http');
	my $srv = Test::Server->start(conf => <<"END");
server.modules += ( "mod_proxy_core", "mod_proxy_backend_http" )
\$HTTP["host"] == "example.com" {
   proxy-core.protocol = "http"
   proxy-core.balancer = "round-robin"
   proxy-core.backends = (
     "unix:@{[ $app->socket ]}"
   )

   proxy-core.allow-x-sendfile = "enable"
   proxy-core.rewrite-request = (
     "X-Sendfile-Type" => (".*" => "X-Sendfile")
   )
 }
END
	$srv->write('file.txt', 'a file');
	for my $client ([], ['X-Sendfile-Type' => 'X-Accel-Redirect'], ['x-sendfile-type' => '', 'X-Sendfile-Type' => 'X-Lighttpd-Send-File']) {
		my $c = $srv->connect;
		my @h = @$client;
		my $lines = '';
		while (my ($name, $value) = splice @h, 0, 2) { $lines .= "$name: $value\r\n" }
		$c->send("GET /app/env HTTP/1.1\r\nHost: example.com\r\nX-Accel-Mapping: /=/evil\r\n$lines\r\n");
		my $env = env($c->reply);
		is $env->{HTTP_X_SENDFILE_TYPE}, 'X-Sendfile', 'X-Sendfile-Type, with ' . @$client / 2 . ' of the client';
		is $env->{HTTP_X_ACCEL_MAPPING}, undef, '... and nothing else of the client';
	}
	my $c = $srv->connect;
	$c->send("GET /app/head?X-Sendfile:%20@{[ $srv->dir ]}/file.txt HTTP/1.1\r\nHost: example.com\r\n\r\n");
	is $c->reply->{body}, 'a file', 'a file is sent';
};

subtest 'what is not a rule' => sub {
	my %bad = (
		'proxy-core.rewrite-request = ( "_path" => ( "a" => "b" ) )' => qr/expected the name of a header field, _uri/,
		'proxy-core.rewrite-request = ( "a b" => ( "a" => "b" ) )' => qr/expected the name of a header field/,
		'proxy-core.rewrite-request = ( "" => ( "a" => "b" ) )' => qr/expected the name of a header field/,
		'proxy-core.rewrite-response = ( "_uri" => ( "a" => "b" ) )' => qr/for proxy-core.rewrite-request/,
		'proxy-core.rewrite-request = ( "X" => ( "(" => "b" ) )' => qr/"\("/,
		'proxy-core.rewrite-request = ( "X" => ( "a" => "b", "c" => "d" ) )' => qr/exactly one/,
		qq{proxy-core.rewrite-request = ( "X" => ( "a" => "b\r\nY: z" ) )} => qr/printable text on one line/,
		qq{proxy-core.rewrite-response = ( "X" => ( "a" => "b\nY: z" ) )} => qr/printable text on one line/,
	);
	for my $line (sort keys %bad) {
		my $s = Test::Server->start(conf => "$line\n", unchecked => 1);
		$s->wait_exit;
		$s->log_has(qr/server\.conf:\d+:\d+: .*$bad{$line}/, $line =~ s/[\r\n]+/|/gr);
	}
};

done_testing;
