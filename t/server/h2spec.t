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

for my $way (['in clear', ''], ['over TLS', qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n}, qw(-t -k)]) {
	my ($name, $conf, @args) = @$way;
	my $srv = Test::Server->start(conf => $conf);
	my $h = eval { Test::Http2->connect($srv, tls => scalar @args) };
	plan skip_all => 'accel-server speaks no HTTP/2' if !$h || !$h->read;
	$srv->write('a.txt', 'x' x 5000);
	my ($rc, $failed, $passed, $said) = run($srv, @args);
	is_deeply $failed, [], "$name: none has failed" or diag $said =~ s/^.*?(?=Failures)//sr;
	is $rc, 0, 'nor h2spec itself';
	cmp_ok $passed, '>=', 146, "$passed have passed";
}
done_testing;
