#!/usr/bin/perl
# The source of a script never leaves, however it is asked for: index files, odd names, methods, ranges.

use v5.36;
use Test::More;

use Test::App;
use Test::Http qw(parse request_head);
use Test::Server;

# Every request is answered with the variables that say which script it was.
{
	no warnings 'redefine';
	*Test::App::_what = sub { my ($p) = @_; return $p->{SCRIPT_NAME} =~ /loop/ ? 'loop' : $p->{SCRIPT_NAME} =~ m{/b\.php$} ? 'env' : $p->{QUERY_STRING} =~ /^X-/ ? 'head' : 'ran' };
	sub Test::App::do_loop { my ($self, $c) = @_; $self->note('loops'); Test::App::out($c, "X-Accel-Redirect: /php/loop.php\r\n\r\n"); Test::App::end($c); return 1 }
	sub Test::App::do_env {
		my ($self, $c, $p) = @_;
		Test::App::out($c, "Content-Type: text/plain\r\n\r\nenv " . join '|', map { $_ // '' } @$p{qw(SCRIPT_NAME SCRIPT_FILENAME PATH_INFO PATH_TRANSLATED)});
		Test::App::end($c);
		return 1;
	}
	sub Test::App::do_ran {
		my ($self, $c, $p, $body) = @_;
		Test::App::out($c, "Content-Type: text/plain\r\n\r\n" . join '|', "ran $p->{SCRIPT_NAME}", @$p{qw(REQUEST_METHOD QUERY_STRING REQUEST_URI)},
			$p->{REDIRECT_URI} // '', $p->{SCRIPT_FILENAME}, "$body.");
		Test::App::end($c);
		return 1;
	}
}
my $app = Test::App->start;

# With $PHYSICAL["existing-path"] what follows a script is its PATH_INFO.
my %info = map { $_ => '/php/a.php' } '/php/a.php/', '/php/a.php//', '/php/a.php/x', '/php/a.php/x/', '/php/a.php/.';

# The ways in which a configuration names scripts.
my @conditions = ('$HTTP["url"] =~ "\.php$"', '$PHYSICAL["path"] =~ "\.php$"', '$PHYSICAL["existing-path"] =~ "\.php$"');

# ... and those of lighttpd 1.4.
my $scgi = Test::App->start(protocol => 'scgi');
my @lists = ('fastcgi.server', 'scgi.server', 'fastcgi.server, check-local = "disable"');

sub part ($how, $socket) {
	return qq{$1.server = ( ".php" => (( "socket" => "@{[ $socket // ($1 eq 'scgi' ? $scgi : $app)->socket ]}", "x-sendfile" => "enable"@{[ $how =~ /disable/ ? ', "check-local" => "disable"' : '' ]} )) )\n}
	    if $how =~ /^(fastcgi|scgi)\.server/;
	return <<"END";
$how {
	proxy-core.protocol = "fastcgi"
	proxy-core.backends = ( "unix:@{[ $socket // $app->socket ]}" )
	proxy-core.max-pool-size = 4
	proxy-core.allow-x-sendfile = "enable"
}
END
}

sub server {
	my ($how, $more, $socket, @options) = @_;
	my $srv = Test::Server->start(@options, conf => qq{index-file.names = ( "index.php", "index.html" )\n@{[ $more // '' ]}\n} . part($how, $socket));
	$srv->write($_, "<?php SOURCE $_ ?>") for qw(php/index.php php/a.php x.php/index.php both/index.php shared.php);
	$srv->write($_, "<p>$_</p>") for qw(plain/index.html both/index.html php/a.html);
	$srv->write('none/file.txt', 'text');
	return $srv;
}

sub ask {
	my ($srv, $method, $path, @header) = @_;
	my $got = $srv->request(request_head($method, $path, @header));
	unlike $got, qr/SOURCE/, "$method $path: no source";
	return parse($got);
}

# Request target => the script that runs, or the status.
my %answer = (
	'/php/' => '/php/index.php',
	'/php' => 301,
	'/php/?a=b' => '/php/index.php',
	'/php/.' => '/php/index.php',
	'//php///' => '/php/index.php',
	'/x/../php/' => '/php/index.php',
	'/%70hp/' => '/php/index.php',
	'/both/' => '/both/index.php',
	'/plain/' => 200,
	'/none/' => 403,
	'/absent/' => 404,
	'/x.php/' => '/x.php/index.php',
	'/php/a.php' => '/php/a.php',
	'/php/a.php?x=/a.html' => '/php/a.php',
	'/php/a%2ephp' => '/php/a.php',
	'/php/a.%70%68%70' => '/php/a.php',
	'//php//a.php' => '/php/a.php',
	'/php/./a.php' => '/php/a.php',
	'/php/b/../a.php' => '/php/a.php',
	'/php/a.php/' => 404,
	'/php/a.php//' => 404,
	'/php/a.php/x' => 404,
	'/php/a.php/x/' => 404,
	'/php/a.php/.' => 404,
	'/php/a.php.' => 404,
	'/php/a.php%20' => 404,
	'/php/a.php%09' => 404,
	'/php/a.PHP' => 404,
	'/php/A.php%20.html' => 404,
	'/php/a.php;x' => 404,
	'/php/a.php;.html' => 404,
	'/php/a.php~' => 404,
	'/php/a.php%3fx' => 404,
	'/php/a.php%23' => 404,
	'/php/a.php::$DATA' => 404,
	'/php/a.php.gz' => 404,
	'/php/a%c0%aephp' => 404,
	'/php/a.php%2f' => 400,
	'/php/a.php%5c' => 400,
	'/php/a.php%00' => 400,
	'/php/a.php%00.html' => 400,
	'/php/a.php%252e' => 404,
	'/../php/a.php' => 400,
);

for my $condition (@conditions, @lists) {
	my $by_file = $condition =~ /existing/ || $condition =~ /\.server$/;     # what does not exist, does not run
	my $with_info = $by_file || $condition =~ /disable/;
	subtest $condition => sub {
		my $srv = server($condition);
		for my $path (sort keys %answer) {
			my $r = ask($srv, GET => $path);
			my $answer = $with_info && $info{$path} || $answer{$path};
			if ($answer =~ /^\//) { like $r->{body} // '', qr/^ran \Q$answer\E\|/, '... the script runs' }
			else { is $r->{status}, $answer, "... $answer" }
		}
		for my $header ([Range => 'bytes=0-3'], [Range => 'bytes=-4'], ['Accept-Encoding' => 'gzip'], ['If-Modified-Since' => 'Sun, 06 Nov 2044 08:49:37 GMT'],
			['If-None-Match' => '*'], [TE => 'trailers'], [Expect => '100-continue']) {
			like ask($srv, GET => $_, @$header)->{body}, qr/^ran /, "... $header->[0]: the script runs" for '/php/', '/php/a.php';
		}
		is ask($srv, HEAD => $_)->{status}, 200, '... HEAD' for '/php/', '/php/a.php';
		# For a name that does not exist, only the URL tells whether it is a script.
		my $r = ask($srv, GET => '/php/none.php');
		$by_file ? is $r->{status}, 404, '... nothing runs' : like $r->{body}, qr/^ran /, '... the application answers';
	};
}

subtest 'the script of a directory gets the whole request' => sub {
	my $srv = server($conditions[0]);
	is ask($srv, GET => '/php/?q=1')->{body}, "ran /php/index.php|GET|q=1|/php/?q=1|/php/index.php?q=1|@{[ $srv->dir ]}/php/index.php|.", 'the variables';
	for my $method (qw(POST PUT DELETE OPTIONS)) {
		my $c = $srv->connect;
		$c->send("$method /php/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody" x 2);
		like $c->reply->{body}, qr/^ran .*\|\Q$method\E\|.*\|body\.$/, "$method with a body" for 1, 2;
		$c->send("$method /php/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n");
		like $c->reply->{body}, qr/^ran .*\|\Q$method\E\|.*\|body\.$/, '... chunked';
		$c->send("$method /php/ HTTP/1.1\r\nHost: x\r\n\r\n");
		like $c->reply->{body}, qr/^ran .*\|\Q$method\E\|.*\|\.$/, '... without one';
	}
	my $c = $srv->connect;
	$c->send("POST /php/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	is $c->reply->{status}, 100, '100 Continue comes';
	$c->send('body');
	like $c->reply->{body}, qr/\|body\.$/, '... and the body goes to the script';
};

subtest 'what follows a script is its PATH_INFO' => sub {
	my $srv = Test::Server->start(conf => <<"END");
\$PHYSICAL["existing-path"] =~ "\\.php\$" {
	proxy-core.protocol = "fastcgi"
	proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
}
END
	my $dir = $srv->dir;
	$srv->write('a/b.php', 'SOURCE');
	$srv->write('d.php/file', 'text');
	symlink 'b.php', "$dir/a/link.php" or die "symlink: $!";
	my %is = (
		'/a/b.php' => ['/a/b.php', ''], '/a/b.php/' => ['/a/b.php', '/'], '/a/b.php/x/y%20z?q' => ['/a/b.php', '/x/y z'], '/a/b.php/c.php' => ['/a/b.php', '/c.php'],
		'/a/b.php/' . 'x/' x 40 => ['/a/b.php', '/' . 'x/' x 40], '/a/b.php/' . 'x' x 300 => ['/a/b.php', '/' . 'x' x 300], '/a/b.php/' . 'x/' x 2500 => ['/a/b.php', '/' . 'x/' x 2500],
	);
	for my $path (sort keys %is) {
		my ($script, $info) = @{ $is{$path} };
		my $translated = $info eq '' ? '' : "$dir$info";
		is ask($srv, GET => $path)->{body}, "env $script|$dir$script|$info|$translated", substr "$path: SCRIPT_NAME, SCRIPT_FILENAME, PATH_INFO, PATH_TRANSLATED", 0, 100;
	}
	is ask($srv, GET => $_)->{status}, 404, "$_: no script" for '/a/none.php', '/a/none.php/x', '/a/x/b.php/y', '/d.php/none/x', '/d.php/file/x';
	is ask($srv, GET => '/d.php/file')->{body}, 'text', 'a directory named like a script';
	like ask($srv, POST => '/a/b.php/x', 'Content-Length' => 0)->{body}, qr/\|\/x\|/, 'POST';
};

subtest 'a directory without a script' => sub {
	my $srv = server($conditions[0]);
	for my $what ([405, 'Content-Length: 4', 'body'], [405, 'Transfer-Encoding: chunked', "0\r\n\r\n"], [405, 'X: y', '']) {
		my $r = parse($srv->request("POST /plain/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n$what->[1]\r\n\r\n$what->[2]"));
		is $r->{status}, $what->[0], "POST with $what->[1]";
		is $r->{header}{allow}, 'GET, HEAD, OPTIONS', '... says what it takes';
	}
	my $body = "GET /php/a.html HTTP/1.1\r\nHost: x\r\n\r\n";
	for my $what (['/plain/', 405, 'is skipped'], ['/none/', 405, 'ends the connection']) {
		my $c = $srv->connect;
		$c->send("POST $what->[0] HTTP/1.1\r\nHost: x\r\nContent-Length: " . length($body) . "\r\n\r\n${body}GET /php/a.php HTTP/1.0\r\n\r\n");
		is $c->reply->{status}, $what->[1], "a body that nobody takes $what->[2]";
		my $rest = $c->rest;
		unlike $rest, qr/<p>/, '... and is not read as a request';
		$what->[0] eq '/none/' ? is $rest, '', '... nor is what follows' : like $rest, qr/ran/, '... the next request is';
	}
	is ask($srv, OPTIONS => '/plain/')->{status}, 200, 'OPTIONS';
	is parse($srv->request("OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))->{status}, 200, 'OPTIONS *';
};

subtest 'pipelined requests keep their order' => sub {
	my $srv = server($conditions[2]);
	my $c = $srv->connect;
	my @path = qw(/plain/ /php/ /php/a.html /php/ /plain/ /x.php/ /php/none /php/);
	$c->send(join '', map { "GET $_ HTTP/1.1\r\nHost: x\r\n\r\n" } @path);
	is substr($c->reply->{body} // '', 0, 4), { '/plain/' => '<p>p', '/php/a.html' => '<p>p', '/php/none' => '<!do' }->{$_} // 'ran ', $_ for @path;
};

subtest 'a file that has become a script since the look-up' => sub {
	my $srv = server($conditions[0]);
	is ask($srv, GET => '/plain/')->{body}, '<p>plain/index.html</p>', 'before';
	$srv->write('plain/index.php', '<?php SOURCE ?>');
	ok Test::Util::eventually(sub { ask($srv, GET => '/plain/')->{body} =~ /^ran/ }), 'after';
};

subtest 'one index file for all directories' => sub {
	my $srv = server($conditions[0], qq{index-file.names += ( "/shared.php" )\n});
	like ask($srv, GET => $_->[0])->{body}, qr/^ran $_->[1]\|/, "$_->[0]: $_->[1]" for ['/php/', '/php/index.php'], ['/none/', '/shared.php'], ['/', '/shared.php'];
	is ask($srv, GET => '/plain/')->{status}, 200, 'a file in the directory comes first';
};

subtest 'static-file.exclude-extensions where no application is' => sub {
	my $srv = server('$HTTP["host"] == "none"', qq{static-file.exclude-extensions = ( ".php" )\n});
	is ask($srv, GET => $_)->{status}, 403, $_ for '/php/', '/php/a.php', '/none/';
};

# Links in every form: name, target, what it is, path that is asked for.
my @forms = (
	['/plain/l.html', '../php/a.php', 'a relative link'], ['/plain/abs.html', '@DIR@/php/a.php', 'an absolute link'], ['/plain/chain.html', 'l.html', 'a chain'],
	['/dir', 'php', 'a link to a directory', ''], ['/dir.html', '@DIR@/php', 'an absolute link to a directory', ''],
	['/php/l.html', 'a.php', 'a link in a directory'], ['/chain', 'dir.html', 'a chain of directories', '/chain/l.html'],
	['/plain/odd.html', '../php/b.PHP', 'a link to a name in upper case'], ['/plain/dot.html', '../php/c.php.', 'a link to a name with a dot'],
);
for my $how ('fastcgi.server', 'scgi.server', 'static-file.exclude-extensions', 'cgi.assign', @conditions) {
	subtest "no source by a link: $how" => sub {
		my $list = $how =~ /^static/ ? qq{$how = ( ".php" )\n} : qq{$how = ( ".php" => "/bin/cat" )\n};
		my $more = qq{index-file.names += ( "page.html" )\nalias.url = ( "/alias/" => "\@DIR\@/php/", "/one.html" => "\@DIR\@/plain/l.html" )\nstatic-file.precompressed = ( "gzip" )\n};
		# An alias is looked up when the configuration is read.
		my $dir = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
		chmod 0755, $dir;
		mkdir "$dir/plain" or die "plain: $!";
		symlink '../php/a.php', "$dir/plain/l.html" or die "symlink: $!";
		my $srv = $how =~ /\.server|\[/ ? server($how, $more, undef, dir => "$dir") : server('$HTTP["host"] == "none"', $more . $list, undef, dir => "$dir");
		$srv->write($_, "SOURCE $_") for 'php/b.PHP', 'php/c.php.';
		for (@forms) {
			my ($name, $to, $what, $path) = @$_;
			-l "$dir$name" or symlink $to =~ s/\@DIR\@/$dir/r, $dir . $name or die "symlink $name: $!";
			$path //= $name;
			next if $path eq '';
			is ask($srv, GET => $path)->{status}, 403, "... $what: 403" for 1, 2;
			is ask($srv, GET => $path, Range => 'bytes=0-3')->{status}, 403, '... a range';
			is ask($srv, HEAD => $path)->{status}, 403, '... HEAD';
		}
		is ask($srv, GET => $_)->{status}, 403, "... $_" for '/alias/l.html', '/one.html', '/dir/l.html', '/dir.html/l.html';
		like $srv->wait_log(qr/link\.script/), qr{ev=link\.script .*link=plain/l\.html target=\S*/php/a\.php }, '... in the log, with both names';

		symlink 'a.html', "$dir/php/fine.html" or die "symlink: $!";
		is ask($srv, GET => $_)->{body}, '<p>php/a.html</p>', "... $_: a link to another file" for '/php/fine.html', '/dir/fine.html', '/dir.html/a.html';
		symlink '../php/a.php', "$dir/none/page.html" or die "symlink: $!";
		is ask($srv, GET => '/none/')->{status}, 403, '... an index file';
		symlink 'a.php', "$dir/php/a.html.gz" or die "symlink: $!";
		utime 2_000_000_000, 2_000_000_000, "$dir/php/a.php";
		is ask($srv, GET => '/php/a.html', 'Accept-Encoding' => 'gzip')->{body}, '<p>php/a.html</p>', '... a compressed form';
		unlink "$dir/php/fine.html.new";
		symlink 'a.php', "$dir/php/fine.html.new" or die "symlink: $!";
		rename "$dir/php/fine.html.new", "$dir/php/fine.html" or die "rename: $!";
		ok Test::Util::eventually(sub { ask($srv, GET => '/php/fine.html')->{status} == 403 }), '... a link that changes while it is cached';
		rename "$dir/php/a.html", "$dir/php/was.php" or die "rename: $!";
		symlink 'was.php', "$dir/php/a.html" or die "symlink: $!";
		ok Test::Util::eventually(sub { ask($srv, GET => '/php/a.html')->{status} == 403 }), '... a file that becomes one';
		return if $how ne 'fastcgi.server';
		is ask($srv, GET => "/php/a.php?X-Sendfile:%20$dir/plain/l.html")->{status}, 403, '... X-Sendfile';
		is ask($srv, GET => "/php/a.php?X-Sendfile2:%20$dir/plain/l.html%200-3")->{status}, 403, '... X-Sendfile2';
	};
}

# Names that another file system knows as the name of a script, and names that lead to one.
for my $how (@lists, 'static-file.exclude-extensions') {
	subtest "no source by another name: $how" => sub {
		my $srv = $how =~ /static/ ? server('$HTTP["host"] == "none"', qq{$how = ( ".php" )\n}) : server($how);
		my @odd = ('/php/a.PHP', '/php/a.Php', '/php/a.php.', '/php/a.php ', '/php/a.php. .', '/php/a.PHP .');
		$srv->write($_, 'SOURCE') for map { s{^/}{}r } @odd;
		for my $path (@odd) {
			is ask($srv, GET => $path =~ s/ /%20/gr)->{status}, 403, "... $path: 403";
			is ask($srv, GET => $path =~ s/ /%20/gr, Range => 'bytes=0-3')->{status}, 403, '... a range';
		}
		is ask($srv, GET => '/php/a.html')->{status}, 200, '... other files are there';
		return if $how =~ /static/;
		my $name = sub { my ($file) = @_; return ask($srv, GET => "/php/a.php?X-Sendfile:%20@{[ $srv->dir ]}$file") };
		is $name->($_)->{status}, 403, "... X-Sendfile: $_" for '/php/a.php', '/php/./a.php', '/php/../php/a.php', '/php/a.PHP', '/php/a.php.';
		is $name->('/php/a.html')->{body}, '<p>php/a.html</p>', '... X-Sendfile of another file';
		ask($srv, GET => '/php/a.php?X-Sendfile2:%20' . $srv->dir . '/php/a.php%200-3');
	};
}

for my $how (@conditions, @lists) {
	subtest "a dead application shows no source: $how" => sub {
		my $dead = Test::App->start(protocol => $how =~ /^scgi/ ? 'scgi' : 'fastcgi');
		my $socket = $dead->socket;
		$dead->down;
		my $srv = server($how, '', $socket);
		like ask($srv, GET => $_)->{status}, qr/^50[234]$/, '... an error' for '/php/a.php', '/php/', '/php/a%2ephp', '//php//a.php', '/php/a.php?x';
		is ask($srv, GET => '/php/a.html')->{status}, 200, '... files are there';
	};
}

subtest 'a part of the site may send its sources' => sub {
	my $srv = server('fastcgi.server', qq{\$HTTP["url"] =~ "^/both/" {\n fastcgi.server = ( )\n static-file.script-extensions := ( )\n}\n});
	like $srv->get('/both/index.php'), qr/SOURCE/, 'where it is said';
	is ask($srv, GET => '/php/a.php')->{status}, 200, 'not elsewhere';
};

subtest 'the settings are those of the name that was found' => sub {
	my $srv = server($conditions[0], <<'END');
$HTTP["url"] == "/plain/index.html" { server.tag = "found" }
$HTTP["url"] == "/plain/" { server.tag = "asked" }
END
	is ask($srv, GET => '/plain/')->{header}{server}, 'found', 'not those of the directory';
};

subtest 'X-Accel-Redirect is routed again' => sub {
	my $srv = server($conditions[0], '$HTTP["url"] =~ "^/moved/" { server.document-root = "@DIR@/php" }');
	$srv->write('php/moved/page.html', 'moved');
	my $to = sub { my ($uri, @header) = @_; return ask($srv, GET => '/php/index.php?X-Extra:%201|X-Accel-Redirect:%20' . $uri =~ s/\?/%3f/gr, @header) };
	like $to->($_->[0])->{body}, qr{^ran \Q$_->[1]\E\|GET\|\Q$_->[2]\E\|}, "$_->[0]: the script runs"
	    for ['/php/a.php', '/php/a.php', ''], ['/php/a.php?b=c', '/php/a.php', 'b=c'], ['/php/', '/php/index.php', ''], ['/php/./x/../a%252ephp', '/php/a.php', ''];
	my $r = $to->('/php/a.html');
	is "$r->{body} $r->{header}{'x-extra'}", '<p>php/a.html</p> 1', 'a file, with the fields of the script';
	is $to->('/plain/')->{body}, '<p>plain/index.html</p>', 'an index file';
	is $to->('/moved/page.html')->{body}, 'moved', 'conditions see the URI';
	is $to->('/php/a.html', Range => 'bytes=0-2')->{body}, '<p>', 'a range';
	is $to->('/php')->{status}, 403, 'a directory without a slash';
	is $to->('/php/index.php?X-Accel-Redirect:/php/a.html')->{body}, '<p>php/a.html</p>', 'twice';
	my $c = $srv->connect;
	$c->send("POST /php/index.php?X-Accel-Redirect:/php/a.php HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody" x 2);
	like $c->reply->{body}, qr{^ran /php/a\.php\|GET\|.*\|\.$}, 'a POST becomes a GET without a body' for 1, 2;
	$c->send(join '', map { "GET $_ HTTP/1.1\r\nHost: x\r\n\r\n" } '/php/index.php?X-Accel-Redirect:/plain/', '/php/a.html', '/php/a.php', '/php/index.php?X-Accel-Redirect:/php/a.html');
	like $c->reply->{body}, $_, "pipelined: $_" for qr/plain/, qr/a\.html/, qr/^ran/, qr/a\.html/;
	is ask($srv, GET => '/php/a.php?X-Accel-Redirect:/php/a.php')->{status}, 200, 'the query of the first request is gone';
	is ask($srv, GET => '/php/loop.php')->{status}, 500, 'a loop ends';
	is length $app->noted('loops'), 11, '... after ten times';
	like $srv->wait_log(qr/route\.loop/), qr/ev=route\.loop .*url=\/php\/loop\.php .*limit=10 /, '... in the log';
};

subtest 'X-Sendfile may name a script' => sub {
	my $srv = server($conditions[0]);
	like $srv->get("/php/a.php?X-Sendfile:%20@{[ $srv->dir ]}/php/a.php"), qr/SOURCE/, 'its source is what the application asked for';
};

done_testing;
