# Chromium loads a page of 200 files over one connection of HTTP/2.  20 of them are on a disk that hangs until all others are there.
# How they came is drawn: build/http2-waterfall.svg.
use v5.36;
use File::Temp ();
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use JSON::PP ();
use List::Util qw(uniq);
use Test::More;
use Accel::Slowfs;
use Test::App ();
use Test::Browser ();
use Test::Server;
use Test::Tls ();
use Test::Util qw(build_dir eventually put);
use Test::Waterfall ();

my $mounts = Test::Server::own_mounts();
plan skip_all => 'no chromium; scripts/install-deps http2 installs it' if !Test::Browser::program();
my ($usable, $why) = Accel::Slowfs->usable;
my %count = (css => 40, js => 60, gif => 80, cold => $usable ? 20 : 0);
my $hot = $count{css} + $count{js} + $count{gif};

# ---------------------------------------------------------------- the page

# One point, and bytes after its end, which decoders ignore.
sub gif ($bytes) { return pack('H*', '47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b') . "\0" x $bytes }
sub css ($n) { return ".c$n { color: #000 }\n" . "/* nothing */\n" x ($n * 40) }
sub js ($n) { return "scripts++;\n" . "// nothing\n" x ($n * 50) }

# The browser learns of the cold files first, and wants them most.
sub page () {
	my $on = 'onload="loaded()" onerror="failed++"';
	return join "\n", <<'HTML', (map { qq{<img src="/cold/$_.gif" fetchpriority="high" onerror="failed++">} } 1 .. $count{cold}),
<!DOCTYPE html>
<title>200 files</title>
<script>
let scripts = 0, failed = 0, hot = 0;
const HOT = %HOT%, ALL = %ALL%;
performance.setResourceTimingBufferSize(1000);
function loaded() { if (++hot == HOT) fetch('/all-hot'); }
function files() { return performance.getEntriesByType('resource').filter(e => e.name.match(/\.(css|js|gif)$/)); }
function tell() {
	if (files().length < ALL) return setTimeout(tell, 20);
	const images = [...document.images].filter(i => i.complete && i.naturalWidth == 1).length;
	const page = performance.getEntriesByType('navigation')[0].nextHopProtocol;
	fetch('/app/timing', { method: 'POST', body: JSON.stringify({ page, images, scripts, failed, styles: document.styleSheets.length, files: files() }) });
}
addEventListener('load', tell);
</script>
HTML
		(map { qq{<link rel="stylesheet" href="/$_.css" $on>} } 1 .. $count{css}), (map { qq{<script async src="/$_.js" $on></script>} } 1 .. $count{js}),
		(map { qq{<img src="/$_.gif" $on>} } 1 .. $count{gif}), '';
}

package Timing { our @ISA = ('Test::App'); sub do_timing ($self, $c, $p, $body) { $self->note(timing => $body); $self->note('whole'); Test::App::out($c, "\r\n"); Test::App::end($c); return 1 } }

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $cold = File::Temp->newdir('accel-cold-XXXXXX', TMPDIR => 1);
my $cert = Test::Tls::certificate($keys, 'x');
my $app = Timing->start;
put("$cold/$_.gif", gif(20_000)) for 1 .. $count{cold};
my $slow = $usable ? Accel::Slowfs->start(source => "$cold", spindles => 2, lookup_ms => 15, read_ms => 15) : undef;
my $srv = Test::Server->start(conf => <<"CONF" . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket));
server.max-worker = 1
server.modules += ( "mod_accesslog", "mod_alias" )
accesslog.filename = "\@RUN\@/access.log"
accesslog.format = "%s %H %{remote}p %U"
ssl.engine = "enable"
ssl.pemfile = "$cert->{pem}"
ssl.privkey = "$cert->{key}"
index-file.names = ( "index.html" )
alias.url = ( "/cold/" => "@{[ $slow ? $slow->dir : $cold ]}/" )
CONF
$srv->write("$_.css", css($_)) for 1 .. $count{css};
$srv->write("$_.js", js($_)) for 1 .. $count{js};
$srv->write("$_.gif", gif($_ * 500)) for 1 .. $count{gif};
$srv->write('index.html', page() =~ s/%HOT%/$hot/r =~ s/%ALL%/$hot + $count{cold}/er);

# ---------------------------------------------------------------- what the browser gets

$srv->wait_log(qr/ev=listening/);        # it has looked at its directories
$slow->hang if $slow;
my $browser = Test::Browser->start('https://127.0.0.1:' . $srv->port . '/', trust => $cert->{pem});
is scalar($srv->wait_lines(1, qr{/all-hot}, 'access.log')), 1, 'all hot files have loaded while the cold ones hang';
$slow->go if $slow;
ok eventually(sub { $app->noted('whole') }), 'the whole page has loaded' or BAIL_OUT($browser->said . $srv->log('access.log'));
my $page = JSON::PP::decode_json($app->noted('timing'));
is_deeply [@$page{qw(styles scripts images failed)}], [$count{css}, $count{js}, $count{gif} + $count{cold}, 0], 'each file is what it should be';
is $page->{page}, 'h2', 'the page came over HTTP/2';

my @lines = $srv->wait_lines($hot + $count{cold} + 1, qr{^\d+ \S+ \d+ /(?:\S+\.(?:css|js|gif))?$}, 'access.log');
is_deeply [uniq map { (split ' ')[0, 1] } @lines], [200, 'HTTP/2.0'], 'the server has seen nothing else';
is scalar(uniq map { (split ' ')[2] } @lines), 1, 'and one connection';

# ---------------------------------------------------------------- the waterfall

my $json = JSON::PP::encode_json($page->{files});
my @files = Test::Waterfall::files($json, qr{^/cold/});
my $is = Test::Waterfall::figures(@files);
is $is->{files}, $hot + $count{cold}, 'an entry for each file';
is $is->{protocols}, 'h2', 'over HTTP/2';
is_deeply $is->{count}, { style => $count{css}, script => $count{js}, image => $count{gif}, $usable ? (cold => $count{cold}) : (), h2 => $hot + $count{cold} }, 'of each kind';
SKIP: {
	skip $why, 3 if !$usable;
	cmp_ok $is->{hot_before_cold}, '>=', 0.9 * $hot, 'the hot files do not wait for the cold ones';
	cmp_ok $is->{hot_end_ms}, '<=', $is->{first_cold_ms}, 'not even the last one';
	my ($late) = sort { $b <=> $a } map { $_->{asked} } grep { $_->{kind} eq 'cold' } @files;
	cmp_ok $late, '<', $is->{hot_end_ms}, 'though all cold ones were asked for by then';
}
my $title = sprintf '%d files over one connection; %d of them on a disk that hung until all others were there', scalar @files, $count{cold};
my $svg = Test::Waterfall::svg($title, @files);
is scalar(() = $svg =~ /<g>/g), scalar @files, 'a line for each file in the picture';
put(build_dir() . '/http2-waterfall.json', $json);
put(build_dir() . '/http2-waterfall.svg', $svg);
my ($rc, $said) = Test::Util::run_fed($^X, '', "$FindBin::Bin/../tools/waterfall", '--cold', '^/cold/', '--title', $title, build_dir() . '/http2-waterfall.json');
ok $rc eq '0' && $said eq $svg, 't/tools/waterfall draws it again';
note sprintf 'hot files: %.0f ms; all: %.0f ms', @$is{qw(hot_end_ms end_ms)};
done_testing;
