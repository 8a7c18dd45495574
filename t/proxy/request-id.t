# The id of a request: in both logs, at applications in every protocol, at clients; a trusted peer's, or one that this server makes.
# And traceparent.
use v5.36;
use Test::More;

use Test::App;
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(eventually put);

my $ID = qr/[0-9a-f]{32}/;
my $FORMAT = 'accesslog.format = "%L %s %U %{trace}x %{backend}x %{cache}x %{total-us}x"';

package Named {
	use parent -norequire, 'Test::App';

	sub do_sendfile {
		my ($self, $c, $p) = @_;
		$self->note('asked', $p->{HTTP_X_REQUEST_ID});
		Test::App::out($c, "X-Sendfile: $p->{QUERY_STRING}\r\nX-Request-ID: of-the-application\r\n\r\n");
		Test::App::end($c);
		return 1;
	}
}

sub vars { my ($r) = @_; return { map { split /=/, $_, 2 } split /\n/, $r->{body} } }

# A reply on a connection of its own, by default of a peer that nobody trusts.
sub ask {
	my ($srv, $path, $from, @fields) = @_;
	my $c = $srv->connect(from => $from);
	$c->send(req($path, @fields, 'Connection: close'));
	return $c->reply;
}
my ($trusted, $stranger) = ('127.0.0.1', '127.0.0.2');

sub conf {
	my ($app, $more, %set) = @_;
	return qq{server.document-root = "\@DIR\@"\naccesslog.filename = "\@RUN\@/access.log"\n$FORMAT\nextforward.forwarder = ( "$trusted" => "trust" )\n$more}
	    . Test::Server::proxy_block('^/app', 'unix:' . $app->socket, protocol => $app->{protocol}, %set);
}

my @mine = ('X-Request-ID: from-a-peer:1', 'x-request-id: abc/DEF_9.=+@-', 'X-Request-ID: ' . 'x' x 128);
my @others = ('X-Request-ID: ' . 'x' x 129, 'X-Request-ID: ' . 'x' x 7000, 'X-Request-ID: {"a":"b"}', "X-Request-ID: a\tb", "X-Request-ID: \xff\xfe", 'X-Request-ID: a b',
	"X-Request-ID: a'b;\$(x)", 'X-Request-ID:', 'X-Request-ID: %0d%0aEvil: 1', "X-Request-ID: one\r\nX-Request-ID: two", 'X_Request_ID: under', '');

for my $protocol (qw(fastcgi scgi http ajp13 uwsgi)) {
	subtest "$protocol: what an application gets" => sub {
		my $app = Test::App->start(protocol => $protocol);
		my $srv = Test::Server->start(conf => conf($app, ''));
		my %seen;
		for my $field (@mine) {
			my $value = $field =~ s/\A[^:]*: //r;
			my $r = ask($srv, '/app/env', $trusted, $field);
			is vars($r)->{HTTP_X_REQUEST_ID}, $value, 'a trusted peer\'s: ' . substr $value, 0, 40;
			is $r->{header}{'x-request-id'}, undef, '... which the client does not get';
			like join('', $srv->wait_lines(1, qr/^\Q$value\E 200 /, 'access.log')), qr/./, '... is in the log';
			my $got = vars(ask($srv, '/app/env', $stranger, $field))->{HTTP_X_REQUEST_ID};
			like $got, qr/\A$ID\z/, '... a stranger\'s is replaced';
			$seen{$got}++;
		}
		for my $field (@others) {
			my $r = ask($srv, '/app/env', $trusted, $field);
			is $r->{status}, 200, 'answered: ' . substr $field =~ s/[^ -~]/?/gr, 0, 40;
			my ($got, @more) = $r->{body} =~ /^\w*X_REQUEST_ID=(.*)$/mg;
			like $got // '', qr/\A$ID\z/, '... and replaced';
			is_deeply \@more, [], '... once';
			$seen{$got}++;
		}
		is_deeply [grep { $_ > 1 } values %seen], [], 'no id twice';
		is ask($srv, '/app/env', $trusted, "X-Request-ID: a\rEvil: 1")->{status}, 400, 'a CR is not a field';
	};
}

subtest 'both logs, clients, files, errors, a second backend' => sub {
	my $app = Named->start;
	my $srv = Test::Server->start(conf => conf($app, qq{server.request-id = ( "application", "client" )\nserver.error-handler = "/app/env"\n}
		. qq<\$HTTP["url"] =~ "^/none" { server.error-handler = "" }\n>, balancer => 'static',
		backends => '( "unix:' . $app->file('nobody') . '", "unix:' . $app->socket . '" )'));
	$srv->write('a.txt', 'A');
	my %ids;
	for my $of (['/a.txt', 200], ['/a.txt', 200], ['/none', 404], ['/%zz', 400]) {
		my ($path, $status) = @$of;
		my $r = ask($srv, $path, $stranger);
		is $r->{status}, $status, "$path: $status";
		like my $id = $r->{header}{'x-request-id'}, qr/\A$ID\z/, '... with an id';
		is scalar $srv->wait_lines(1, qr/^$id $status /, 'access.log'), 1, '... that is in the log';
		$ids{$id}++;
	}
	is ask($srv, '/a.txt', $trusted, 'X-Request-ID: mine')->{header}{'x-request-id'}, 'mine', 'a trusted peer gets its own back';
	like ask($srv, '/a.txt', $trusted, 'X-Request-ID: {"a":1}')->{header}{'x-request-id'}, qr/\A$ID\z/, '... unless it is malformed';
	my $r = ask($srv, '/app/env', $stranger);
	my $id = vars($r)->{HTTP_X_REQUEST_ID};
	like $id, qr/\A$ID\z/, 'behind a backend that is down';
	is $r->{header}{'x-request-id'}, $id, '... the client has the application\'s id';
	like join('', $srv->wait_lines(1, qr/ev=exchange\.failed/)), qr{ id=c\d+\.1/$id backend=\S*nobody }, '... and so has the line of the first try';
	like join('', $srv->wait_lines(1, qr/^$id /, 'access.log')), qr/^$id 200 \/app\/env - unix:\S*app\.sock hot \d+$/m, '... and the access log, with the backend that answered';
	$r = ask($srv, '/missing', $stranger);
	is vars($r)->{HTTP_X_REQUEST_ID}, $r->{header}{'x-request-id'}, 'an error handler keeps it';
	$r = ask($srv, '/app/sendfile?' . $srv->path('a.txt'), $stranger);
	is $r->{body}, 'A', 'X-Sendfile';
	is $r->{header}{'x-request-id'}, $app->noted('asked'), '... keeps it, and that of the application does not pass';
	is_deeply [grep { $_ > 1 } values %ids], [], 'no id twice';
};

subtest 'server.request-id = ( ): what a client sends passes, and nobody gets one' => sub {
	my $app = Test::App->start;
	my $srv = Test::Server->start(conf => conf($app, qq{server.request-id = ( )\n}));
	is vars(ask($srv, '/app/env', $stranger, 'X-Request-ID: theirs'))->{HTTP_X_REQUEST_ID}, 'theirs', 'passes';
	is vars(ask($srv, '/app/env', $stranger))->{HTTP_X_REQUEST_ID}, undef, 'nobody';
};

subtest 'programs of cgi.assign' => sub {
	my $srv = Test::Server->start(conf => qq{cgi.assign = ( ".cgi" => "" )\nextforward.forwarder = ( "$trusted" => "trust" )\nserver.traceparent = "enable"\n});
	put($srv->path('a.cgi'), "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nenv\n");
	chmod 0755, $srv->path('a.cgi');
	is vars(ask($srv, '/a.cgi', $trusted, 'X-Request-ID: peers'))->{HTTP_X_REQUEST_ID}, 'peers', 'a trusted peer\'s';
	my $v = vars(ask($srv, '/a.cgi', $stranger, 'X-Request-ID: peers'));
	like $v->{HTTP_X_REQUEST_ID}, qr/\A$ID\z/, 'a stranger\'s is replaced';
	like $v->{HTTP_TRACEPARENT}, qr/\A00-$v->{HTTP_X_REQUEST_ID}-[0-9a-f]{16}-01\z/, 'traceparent';
};

subtest 'traceparent' => sub {
	my $app = Test::App->start;
	my $srv = Test::Server->start(conf => conf($app, qq{server.traceparent = "enable"\n}));
	my ($trace, $parent) = ('4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7');
	my @valid = ("00-$trace-$parent-01", "00-$trace-$parent-00", "cc-$trace-$parent-01", "cc-$trace-$parent-01-more");
	my @invalid = ("00-$trace-$parent-01-more", "ff-$trace-$parent-01", "00-" . uc($trace) . "-$parent-01", '00-' . '0' x 32 . "-$parent-01", "00-$trace-" . '0' x 16 . '-01',
		"00-$trace-$parent", "00-$trace-$parent-0", "00-$trace-$parent-1g", '', 'x' x 7000, '{"a":1}', "00-$trace-$parent-01\r\ntraceparent: 00-$trace-$parent-01");
	for (@valid) {
		my $v = vars(ask($srv, '/app/env', $trusted, "traceparent: $_", 'tracestate: a=b'));
		is "$v->{HTTP_TRACEPARENT} $v->{HTTP_TRACESTATE}", "$_ a=b", "a trusted peer's passes: $_";
		like join('', $srv->wait_lines(1, qr/ $trace /, 'access.log')), qr/./, '... and is in the log';
	}
	for (map({ [$trusted, $_] } @invalid), map { [$stranger, $_] } @valid) {
		my ($from, $field) = @$_;
		my $v = vars(ask($srv, '/app/env', $from, "traceparent: $field", 'tracestate: a=b'));
		like $v->{HTTP_TRACEPARENT}, qr/\A00-$v->{HTTP_X_REQUEST_ID}-[0-9a-f]{16}-01\z/, "$from: replaced: " . substr $field =~ s/\s+/ /gr, 0, 60;
		is $v->{HTTP_TRACESTATE}, undef, '... without its tracestate';
	}
	my $v = vars(ask($srv, '/app/env', $trusted, 'X-Request-ID: mine'));
	like $v->{HTTP_TRACEPARENT}, qr/\A00-$ID-[0-9a-f]{16}-01\z/, 'beside an id that is not a number';
	my $off = Test::Server->start(conf => conf($app, ''));
	is vars(ask($off, '/app/env', $stranger))->{HTTP_TRACEPARENT}, undef, 'off: none';
	is vars(ask($off, '/app/env', $stranger, 'traceparent: theirs'))->{HTTP_TRACEPARENT}, 'theirs', 'off: what a client sent passes';
};

done_testing;
