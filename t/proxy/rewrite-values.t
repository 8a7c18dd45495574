#!/usr/bin/perl
# What a client or an application cannot do with a value that is rewritten: no line break, no NUL, no other header, no other
# request comes out of it, in any protocol.

use v5.36;
use Test::More;

use Test::App;
use Test::Http qw(parse);
use Test::Server;
use Test::Wire;

# The application sends back all it got, each variable on a line, with other bytes as numbers.
{
	no warnings 'redefine';
	*Test::App::_what = sub { my ($p) = @_; return ($p->{QUERY_STRING} // '') =~ /^X-/ ? 'head' : 'all' };
	sub Test::App::do_all {
		my ($self, $c, $p) = @_;
		$self->note('requests');
		my $all = join '', map { my $v = $p->{$_}; $v =~ s/([^ -~])/sprintf '<%02x>', ord $1/ge; "$_=$v\n" } sort keys %$p;
		Test::App::out($c, "Content-Length: " . length($all) . "\r\n\r\n$all");
		Test::App::end($c);
		return 1;
	}
}

my $rules = <<'END';
	proxy-core.rewrite-request = (
		"_uri" => ( "^/app/(.*)$" => "/app/u/$1" ),
		"_pathinfo" => ( "^/app/[^/]*(/.*)$" => "$1" ),
		"_scriptname" => ( "^/app/(.*)$" => "/app/s/$1" ),
		"_docroot" => ( "^(.*)$" => "$1/root" ),
		"X-One" => ( "^(.*)$" => "one $1" ),
		"X-Two" => ( "(.)$" => "$1$1$1" ),
	)
	proxy-core.rewrite-response = (
		"X-Reply" => ( "^(.*)$" => "reply $1" ),
		"Location" => ( "^(.*)$" => "$1" ),
	)
END

# Paths with what could break a line, a request or a variable when it is decoded.
my @path = ('/app/x/a%0d%0aX-Evil:%20yes', '/app/x/a%0aX-Evil:%20yes', '/app/x/%0d%0a%0d%0aGET%20/evil%20HTTP/1.1%0d%0a', '/app/x/a%20HTTP/1.1', '/app/x/$0$1$2%24',
	'/app/x/%e2%80%a8', '/app/x/%ff%fe', '/app/x/%7f%01%1b%5b31m', "/app/x/'%22%3c%3e&amp;");

for my $protocol (@Test::Wire::PROTOCOLS) {
	subtest $protocol => sub {
		my $app = Test::App->start(protocol => $protocol);
		my $srv = Test::Server->start(conf => "server.max-worker = 1\n\$HTTP[\"url\"] =~ \"^/app\" {\nproxy-core.protocol = \"$protocol\"\n"
			. "proxy-core.backends = ( \"unix:@{[ $app->socket ]}\" )\nproxy-core.max-keep-alive-requests = 100\n$rules}\n");
		for my $path (@path) {
			my $before = length $app->noted('requests');
			my $r = $srv->fetch($path, 'X-One' => "a\tb", 'X-Two' => 'c');
			is $r->{status}, 200, $path or next;
			is length($app->noted('requests')) - $before, 1, '... is one request';
			unlike $r->{body}, qr/^(?:HTTP_)?X_EVIL=/m, '... without a header of its own';
			like $r->{body}, qr/^HTTP_X_ONE=one a<09>b$/m, '... X-One is rewritten';
			like $r->{body}, qr/^HTTP_X_TWO=ccc$/m, '... X-Two is rewritten';
			unlike $r->{body}, qr/^REQUEST_URI=.*<0[ad]>/m, '... and the URI stays encoded';
		}
		is $srv->fetch("/app/x/a%00b")->{status}, 400, 'NUL is refused';
		my $before = length $app->noted('requests');
		for my $value ("a\rb", "a\nb", "a\0b", "a\r\n b") {
			like $srv->request("GET /app/x/ HTTP/1.1\r\nHost: x\r\nX-One: $value\r\nConnection: close\r\n\r\n"), qr/^HTTP\S+ 400 /, 'a control character in a field: 400';
		}
		is length($app->noted('requests')) - $before, 0, '... and nothing reaches the application';
		for my $value ('$1', '$0$9', '%0d%0a', '\r\n', '"', 'x' x 4000) {
			my ($got) = $srv->fetch('/app/x/', 'X-One' => $value)->{body} =~ /^HTTP_X_ONE=(.*)$/m;
			is $got, "one $value", 'the value is not a replacement: ' . substr $value, 0, 10;
		}

		for my $value ('$1', "a\tb", '%0d%0aSet-Cookie: x', '\r\nSet-Cookie: x', 'x' x 3000) {
			my $r = $srv->fetch('/app/head?X-Reply:%20' . $value =~ s/([^A-Za-z0-9])/sprintf '%%%02x', ord $1/ger);
			is $r->{header}{'x-reply'}, "reply $value", 'a reply header: ' . substr $value, 0, 10;
			is $r->{header}{'set-cookie'}, undef, '... and no other';
		}
		for my $break ('%0d', '%00', '%01', '%7f') {
			my $r = $srv->fetch("/app/head?X-Reply:%20a${break}Set-Cookie:%20x");
			is $r->{status}, 502, "a control character in a reply header ($break): 502" or diag explain $r;
		}
	};
}

done_testing;
