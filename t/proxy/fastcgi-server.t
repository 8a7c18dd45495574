# fastcgi.server and its kin: which application gets a request, and the names that it gets.  The variables are those of lighttpd 1.4.69.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http qw(parse request_head);
use Test::More;
use Test::Server;
use Test::Util qw(eventually);

my @names = qw(SCRIPT_NAME SCRIPT_FILENAME PATH_INFO PATH_TRANSLATED DOCUMENT_ROOT REQUEST_URI QUERY_STRING);
{
	no warnings 'redefine';
	*Test::App::_what = sub { return 'ran' };
	sub Test::App::do_ran {
		my ($self, $c, $p) = @_;
		return $self->do_ask($c, $p) if ($self->{role} // 0) == 2;
		$self->note('ran');
		Test::App::out($c, ($p->{QUERY_STRING} =~ /^file=(.*)/ ? "X-Sendfile: $1\r\n" : '') . "Content-Type: text/plain\r\n\r\n" . join '|', map { $_ // '' } @$p{@names});
		Test::App::end($c);
		return 1;
	}
	sub Test::App::do_ask {
		my ($self, $c, $p) = @_;
		$self->note('asked');
		Test::App::out($c, 'Status: ' . ($p->{REQUEST_URI} =~ /secret/ ? "403 Forbidden\r\n\r\n" : "200 OK\r\n\r\n"));
		Test::App::end($c);
		return 1;
	}
}
my $app = Test::App->start;
my $scgi = Test::App->start(protocol => 'scgi');
my $uwsgi = Test::App->start(protocol => 'uwsgi');

sub server {
	my ($conf) = @_;
	my %is = (S => $app->socket, SCGI => $scgi->socket, UWSGI => $uwsgi->socket);
	my $srv = Test::Server->start(conf => qq{index-file.names = ( "index.php", "index.html" )\n} . $conf =~ s/\@(S|SCGI|UWSGI)\@/$is{$1}/gr);
	$srv->write($_, "SOURCE $_") for qw(a.php d/index.php cgi/foo cgi/foo.bin a.cgi);
	$srv->write('a.html', 'page');
	return $srv;
}

sub get { my ($srv, $path, @header) = @_; return parse($srv->request(request_head(GET => $path, @header))) }

# Settings of a host in fastcgi.server => [ path, SCRIPT_NAME, SCRIPT_FILENAME, PATH_INFO, PATH_TRANSLATED, DOCUMENT_ROOT, REQUEST_URI, QUERY_STRING ] or a status.  ~ is the document root.
my @names_of = (
	['".php"', '', ['/a.php', '/a.php', '~/a.php', '', '', '~', '/a.php', ''], ['/a.php/foo/x?q=1', '/a.php', '~/a.php', '/foo/x', '~/foo/x', '~', '/a.php/foo/x?q=1', 'q=1'],
		['/d/', '/d/index.php', '~/d/index.php', '', '', '~', '/d/', ''], ['/none.php', 404], ['/none.php/x', 404], ['/a.html', 'page'], ['/a.html/a.php', 404]],
	['".php"', '"broken-scriptfilename" => "enable"', ['/a.php/foo', '/a.php', '~/a.php/foo', '/foo', '~/foo', '~', '/a.php/foo', '']],
	['".php"', '"check-local" => "disable"', ['/x/none.php', '/x/none.php', '~/x/none.php', '', '', '~', '/x/none.php', ''], ['/a.php/foo', '/a.php', '~/a.php', '/foo', '~/foo', '~', '/a.php/foo', ''],
		['/none.php/foo', 404], ['/a.html/x.php', '/a.html/x.php', '~/a.html/x.php', '', '', '~', '/a.html/x.php', '']],
	['"/cgi-bin/"', '"check-local" => "disable"', ['/cgi-bin/foo/bar', '/cgi-bin/foo', '~/cgi-bin/foo', '/bar', '~/bar', '~', '/cgi-bin/foo/bar', ''],
		['/cgi-bin/', '/cgi-bin/', '~/cgi-bin/', '', '', '~', '/cgi-bin/', ''], ['/other', 404]],
	['"/app"', '"check-local" => "disable", "strip-request-uri" => "/app", "docroot" => "/other"', ['/app', '/app', '/other/app', '', '', '/other', '/app', ''],
		['/app/x/y?z=1', '/app', '/other/app', '/x/y', '/other/x/y', '/other', '/x/y?z=1', 'z=1'], ['/apple/x', '/apple', '/other/apple', '/x', '/other/x', '/other', '/apple/x', '']],
	['"/"', '"check-local" => "disable"', ['/foo/bar', '/foo', '~/foo', '/bar', '~/bar', '~', '/foo/bar', ''], ['/', '/', '~/', '', '', '~', '/', '']],
	['"/"', '"check-local" => "disable", "fix-root-scriptname" => "enable"', ['/foo/bar', '', '~', '/foo/bar', '~/foo/bar', '~', '/foo/bar', '']],
	['"/cgi/"', '', ['/cgi/foo/bar', '/cgi/foo', '~/cgi/foo', '/bar', '~/bar', '~', '/cgi/foo/bar', ''], ['/cgi/none', 404]],
	['""', '', ['/a.html', '/a.html', '~/a.html', '', '', '~', '/a.html', ''], ['/none', 404]],
);
for my $case (@names_of) {
	my ($key, $more, @asked) = @$case;
	for my $kind ([fastcgi => '@S@'], [scgi => '@SCGI@']) {
		next if $kind->[0] eq 'scgi' && $more =~ /strip|broken/;
		subtest "$kind->[0].server, $key, $more" => sub {
			my $srv = server(qq{$kind->[0].server = ( $key => (( "socket" => "$kind->[1]"@{[ $more && ", $more" ]} )) )\n});
			for (@asked) {
				my ($path, @want) = @$_;
				my $r = get($srv, $path);
				if (@want > 1) { is $r->{body}, join('|', map { s/~/$srv->dir/er } @want), $path }
				elsif ($want[0] =~ /^\d+$/) { is $r->{status}, $want[0], "$path: $want[0]" }
				else { is $r->{body}, $want[0], "$path: the file" }
			}
		};
	}
}

subtest 'uwsgi' => sub {
	my $srv = server(qq{scgi.protocol = "uwsgi"\nscgi.server = ( ".php" => (( "socket" => "\@UWSGI\@" )) )\n});
	like get($srv, '/a.php')->{body}, qr{^.*\|/.*a\.php\|}, 'the application runs';
};

subtest 'the first key that matches' => sub {
	my $srv = server(qq{fastcgi.server = ( "/d/" => (( "socket" => "\@S\@", "check-local" => "disable", "docroot" => "/first" )), ".php" => (( "socket" => "\@S\@", "docroot" => "/second" )) )\n});
	like get($srv, '/d/index.php')->{body}, qr{/first/}, 'a prefix';
	like get($srv, '/a.php')->{body}, qr{/second/}, 'an ending';
	$srv = server(qq{fastcgi.server = ( ".php" => (( "socket" => "\@S\@", "docroot" => "/second" )), "/d/" => (( "socket" => "\@S\@", "check-local" => "disable", "docroot" => "/first" )) )\n});
	like get($srv, '/d/index.php')->{body}, qr{/second/}, 'the ending, which comes first';
	like get($srv, '/d/x')->{body}, qr{/first/}, 'the prefix';
	is get($srv, '/d/none.php')->{status}, 404, 'an ending that needs a file hides the prefix after it';
};

subtest 'an inner list replaces the outer one' => sub {
	my $srv = server(<<'END');
fastcgi.server = ( ".php" => (( "socket" => "@S@" )), "/x" => (( "socket" => "@S@", "check-local" => "disable" )) )
$HTTP["host"] == "off" { fastcgi.server = ( ) }
$HTTP["host"] == "cgi" { fastcgi.server = ( ".cgi" => (( "socket" => "@S@" )) ) }
END
	my $ask = sub { my ($host, $path) = @_; my $r = parse($srv->request("GET $path HTTP/1.0\r\nHost: $host\r\n\r\n")); unlike $r->{body} // '', qr/SOURCE/, "$host$path: no source"; return $r };
	is $ask->(on => '/a.php')->{status}, 200, 'outside';
	is $ask->(on => '/x/y')->{status}, 200, '... a prefix, too';
	is $ask->(off => '/a.php')->{status}, 403, 'an empty list: no application, and no source';
	is $ask->(off => '/x/y')->{status}, 404, '... no prefix';
	like $ask->(cgi => '/a.cgi')->{body}, qr{^/a\.cgi\|}, 'another list: its key';
	is $ask->(cgi => '/a.php')->{status}, 403, '... not the others';
	is $ask->(cgi => '/x/y')->{status}, 404, '... nor their prefixes';
};

subtest 'an authorizer' => sub {
	my $srv = server(qq{fastcgi.server = ( "/" => (( "socket" => "\@S\@", "mode" => "authorizer", "check-local" => "disable" )), ".php" => (( "socket" => "\@S\@" )) )\n});
	is get($srv, '/a.html')->{body}, 'page', 'lets a file go out';
	is get($srv, '/a.html?secret')->{status}, 403, '... or not';
	like get($srv, '/a.php')->{body}, qr{^/a\.php}, 'and a script run';
	is get($srv, '/a.php?secret')->{status}, 403, '... or not';
};

subtest 'X-Sendfile' => sub {
	my $srv = server(qq{fastcgi.server = ( ".php" => (( "socket" => "\@S\@", "x-sendfile" => "enable", "x-sendfile-docroot" => ( "\@DIR\@" ) )) )\n});
	is get($srv, "/a.php?file=@{[ $srv->dir ]}/a.html")->{body}, 'page', 'a file';
	is get($srv, "/a.php?file=@{[ $srv->dir ]}/a.php")->{status}, 403, 'no source';
	$srv = server(qq{fastcgi.server = ( ".php" => (( "socket" => "\@S\@" )) )\n});
	like get($srv, "/a.php?file=@{[ $srv->dir ]}/a.html")->{body}, qr{^/a\.php\|}, 'has no effect where it is not enabled';
};

subtest 'proxy.server' => sub {
	my $backend = server(qq{fastcgi.server = ( "/v1/" => (( "socket" => "\@S\@", "check-local" => "disable" )) )\n});
	my $srv = server(qq{proxy.server = ( "/api/" => (( "host" => "127.0.0.1", "port" => @{[ $backend->port ]} )) )\nproxy.header = ( "map-urlpath" => ( "/api/" => "/v1/" ) )\n});
	like get($srv, '/api/x/y?z')->{body}, qr{\|/v1/x/y\?z\|z$}, 'reaches its backend, with map-urlpath';
	is get($srv, '/a.html')->{body}, 'page', '... and nothing else does';
	$srv = server(qq{proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => @{[ $backend->port ]} )) )\nfastcgi.server = ( ".php" => (( "socket" => "\@S\@" )) )\n});
	is get($srv, '/a.html')->{body}, 'page', 'the key "" stands for all';
};

subtest 'several hosts are one pool' => sub {
	my $other = Test::App->start;
	my $srv = server(qq{fastcgi.balance = "round-robin"\nfastcgi.server = ( ".php" => (( "socket" => "\@S\@" ), ( "socket" => "@{[ $other->socket ]}" )) )\n});
	is get($srv, '/a.php')->{status}, 200, 'a request' for 1 .. 8;
	cmp_ok scalar(() = $other->noted('ran') =~ /./g), '>', 0, 'each gets some';
	$other->down;
	is get($srv, '/a.php')->{status}, 200, 'one is dead: the other answers' for 1 .. 4;
};

subtest 'a dead application' => sub {
	my $dead = Test::App->start;
	my $srv = server(qq{fastcgi.server = ( ".php" => (( "socket" => "@{[ $dead->socket ]}" )) )\n});
	is get($srv, '/a.php')->{status}, 200, 'while it lives';
	$dead->down;
	for my $path ('/a.php', '/d/', '/a.php/x', '/%61.php') {
		my $r = get($srv, $path);
		like $r->{status}, qr/^50[234]$/, "$path: an error";
		unlike $r->{body} // '', qr/SOURCE/, '... and no source';
	}
};

done_testing;
