# Chromium leaves pages of 80 files that hang, one after the other: it resets their streams, and goes on over the same connection.
use v5.36;
use File::Temp ();
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use List::Util qw(uniq);
use Test::More;
use Accel::Slowfs;
use Test::Browser ();
use Test::Server;
use Test::Tls ();
use Test::Util qw(eventually need_program put);

use constant { PAGES => 3, FILES => 80 };

my $mounts = Test::Server::own_mounts();
plan skip_all => 'no chromium; scripts/install-deps http2 installs it' if !Test::Browser::program();
my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why if !$usable;

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cold = File::Temp->newdir('accel-cold-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'x');
put("$cold/$_.gif", "\0" x 1000) for 1 .. PAGES * FILES;
my $slow = Accel::Slowfs->start(source => "$cold", lookup_ms => 0, read_ms => 0);
my $srv = Test::Server->start(conf => <<"CONF");
server.max-worker = 1
server.modules += ( "mod_accesslog", "mod_alias" )
accesslog.filename = "\@RUN\@/access.log"
accesslog.format = "%s %H %{remote}p %U"
status.statistics-url = "/counters"
ssl.engine = "enable"
ssl.pemfile = "$cert->{pem}"
ssl.privkey = "$cert->{key}"
alias.url = ( "/cold/" => "@{[ $slow->dir ]}/" )
CONF
my $base = 'https://127.0.0.1:' . $srv->port;

# A page asks for its files, and for /pN again and again until the test puts it there.  Then it is left.
sub page ($n) {
	my @names = map { ($n - 1) * FILES + $_ } 1 .. FILES;
	return join "\n", '<!DOCTYPE html>', "<title>page $n</title>", (map { qq{<img src="/cold/$_.gif" fetchpriority="high">} } @names), <<"HTML";
<script>
async function leave() {
	const r = await fetch('/p$n', { cache: 'no-store' });
	if (r.ok) location = '/page@{[ $n + 1 ]}.html';
	else setTimeout(leave, 20);
}
leave();
</script>
HTML
}

sub counter ($name) {
	my ($rc, $said) = Test::Util::run_fed(need_program('curl', 'curl'), '', '-s', '--max-time', 60, '--http1.1', '--cacert', $cert->{pem}, "$base/counters");
	return $said =~ /^\Q$name\E:? (\d+)/m ? $1 : die "no counter $name: $rc $said\n";
}

# Requests that are not for cold files and have ended.  One more may be on its way.
sub others () { return scalar grep { m{HTTP/2\.0 \d+ /(?!cold/)} } split /\n/, $srv->log('access.log') }

$srv->write("page$_.html", page($_)) for 1 .. PAGES;
$srv->write('page' . (PAGES + 1) . '.html', qq{<!DOCTYPE html>\n<title>the last one</title>\n<script>fetch('/end')</script>\n});
$srv->wait_log(qr/ev=listening/);        # it has looked at its directories
$slow->hang;
my $browser = Test::Browser->start("$base/page1.html", trust => $cert->{pem});
for my $n (1 .. PAGES) {
	ok eventually(sub { counter('server.http2.streams') - others() >= $n * FILES }), "page $n has asked for its files";
	$srv->write("p$n", '');
	is scalar($srv->wait_lines(1, qr{/page@{[ $n + 1 ]}\.html}, 'access.log')), 1, 'and is left';
	ok eventually(sub { counter('server.http2.resets') >= 0.9 * $n * FILES }), 'which resets their streams' or diag counter('server.http2.resets');
}
ok $srv->wait_lines(1, qr{/end}, 'access.log'), 'the last page is there';
my @lines = grep { m{HTTP/2\.0} } split /\n/, $srv->log('access.log');
is scalar(uniq map { (split ' ')[2] } @lines), 1, 'all over one connection' or diag join "\n", @lines;
unlike $srv->log, qr/ev=frames\.failed/, 'no rule was broken';
$slow->go;
done_testing;
