package Test::Module;
# Tables of requests and what they promise.
#
#     answers($srv,
#         # what it shows            request                      status  body or a header
#         [ 'a page',                '/a',                        200,    "a\n" ],
#         [ 'another host',          [ '/a', Host => 'b.org' ],   301,    qr{^Location: /b\r}m ],
#     );
#     logs($srv, qr/ev=x/, 'what it shows');       # waits for the line
#
# A text is the whole body; a pattern is for the whole reply. The status alone is enough for refusals.
use v5.36;
use Exporter qw(import);
use Test::More;

our @EXPORT_OK = qw(answers logs);

sub answers ($srv, @rows) {
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for (@rows) {
		my ($what, $request, $status, $wanted) = @$_;
		my $reply = $srv->get(ref $request ? @$request : $request) // '';
		my ($got) = $reply =~ m{^HTTP/1\.1 (\d+)};
		my ($body) = $reply =~ /\r\n\r\n(.*)\z/s;
		is $got, $status, "$what: $status" or diag $reply;
		next if !defined $wanted;
		ref $wanted ? like $reply, $wanted, '... as promised' : is $body, $wanted, '... as promised';
	}
	return;
}

sub logs ($srv, $wanted, $what) {
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like $srv->wait_log($wanted), $wanted, $what;
}

1;
