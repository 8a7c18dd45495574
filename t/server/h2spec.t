# h2spec in strict mode finds nothing wrong, over TLS and in clear.  `make check-http2` builds it.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http2 ();
use Test::More;
use Test::Server;
use Test::Tls ();
use Test::Util qw(slurp);

my $h2spec = "$FindBin::Bin/../../build/go/bin/h2spec";
my ($why) = slurp("$FindBin::Bin/../../build/go/why") =~ /(.*)\n?\z/;
plan skip_all => 'h2spec is not built: ' . ($why || 'make check-http2 builds it') if !-x $h2spec;
my $dir = File::Temp->newdir('accel-h2spec-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($dir, 'x');

# The part, section and title of each test that failed, and how many passed.
sub run ($srv, @args) {
	my $xml = "$dir/report.xml";
	unlink $xml;
	my ($rc, $said) = Test::Util::run_fed($h2spec, '', '--strict', '--junit-report', $xml, '-p', $srv->port, '-P', '/a.txt', '-o', 5, @args, qw(generic hpack http2));
	my @case = slurp($xml) =~ m{(<testcase .*?</testcase>)}sg;
	my @failed = map { m{package="([^"]*)" classname="([^"]*)".*?<(?:failure|error|skipped)}s ? "$1 $2" : () } @case;
	return ($rc, \@failed, @case - @failed, $said);
}

# In clear the port speaks HTTP/1.1, too: anything but a preface is a request there, which gets 400 before the connection is closed,
# and h2spec expects no bytes.
my $http1 = 'http2/3.5 Sends invalid connection preface';

for my $way (['in clear', [$http1], ''], ['over TLS', [], qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n}, qw(-t -k)]) {
	my ($name, $known, $conf, @args) = @$way;
	my $srv = Test::Server->start(conf => $conf);
	my $h = eval { Test::Http2->connect($srv, tls => scalar @args) };
	ok $h && $h->read, "$name: it speaks HTTP/2";
	$srv->write('a.txt', 'x' x 5000);
	my ($rc, $failed, $passed, $said) = run($srv, @args);
	is_deeply $failed, $known, "$name: " . (@$known ? 'one has failed that has to' : 'none has failed') or diag $said =~ s/^.*?(?=Failures)//sr;
	is $rc, @$known ? 1 : 0, 'nor h2spec itself';
	is $passed + @$known, 146, 'all were run';
}
done_testing;
