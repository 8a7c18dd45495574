# Many questions: a mount that hangs leaves connections to others, clients take turns, and what is too much for one is late at once. The test is the accelerator.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http ();
use Test::NginxModule;
use Test::Util qw(eventually put);
use Accel::Slowfs;
use File::Temp ();
use IO::Select;
use IO::Socket::UNIX ();

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-turns-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(a b hot);
put("$tree/b/1", 'x');
put("$tree/hot/file", 'hot');
put("$tree/hot/page.shtml", join '', map { qq{<!--#include virtual="/a/part$_" -->\n} } 1 .. 5000);
my ($slow_a, $slow_b) = map { Accel::Slowfs->start(source => "$tree/$_", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1) } qw(a b);
my $listen = IO::Socket::UNIX->new(Local => "$tree/socket", Listen => 1000) // die "socket: $!";
chmod 0777, "$tree/socket";
local $SIG{PIPE} = 'IGNORE';

sub start () {
	return Test::NginxModule->start(<<"CONF", root => $tree);
	server { listen 8080; root $tree/hot; stat_accel unix:$tree/socket; stat_accel_open off; stat_accel_remember 0; stat_accel_deadline 60s;
		location /a/ { alias @{[ $slow_a->dir ]}/; } location /b/ { alias @{[ $slow_b->dir ]}/; }
		location /page.shtml { ssi on; default_type text/html; output_buffers 8 64k; } location = /counters { stat_accel_status; } }
CONF
}
sub status ($c) { return Test::Http::parse(do { local $/; readline $c } // '')->{status} }
sub out ($ng) { return $ng->get('/counters')->{body} =~ /^nginx\.questions\.out: (\d+)$/m ? $1 : -1 }

sub record ($type, $id, $content = '') { return pack('C2n2Cx', 1, $type, $id, length $content, 0) . $content }
sub answer ($question) { syswrite $question->{link}, record(6, 1, "Status: 404 Not Found\r\n\r\n") . record(3, 1, "\0" x 8) }

# Takes what has come: connections, questions, and GET_VALUES, which it answers, so it is up.
my (%in, %link, @asked);
sub take () {
	my $all = IO::Select->new($listen, values %link);
	for my $ready ($all->can_read(0.05)) {
		if ($ready == $listen) { my $new = $listen->accept; $link{$new} = $new; $in{$new} = ''; next }
		sysread $ready, $in{$ready}, 65536, length $in{$ready} or delete $link{$ready};
		while (length $in{$ready} >= 8) {
			my (undef, $type, $id, $content, $pad) = unpack 'C2n2C', $in{$ready};
			last if length $in{$ready} < 8 + $content + $pad;
			my $bytes = substr $in{$ready}, 0, 8 + $content + $pad, '';
			syswrite $ready, record(10, 0) if $type == 9;
			push @asked, { link => $ready, name => $bytes =~ m{/([^/\x00-\x1f]+)[\x00-\x1f]+REMOTE_ADDR} ? $1 : $bytes } if $type == 4 && $content;
		}
	}
}
sub comes ($what) { return eventually(sub { take(); $what->() }, 20) }
sub reset_all () { %in = %link = (); @asked = (); return }

subtest 'connections and turns' => sub {
	my $ng = start();
	my @c = map { $ng->begin("/a/a$_") } 1 .. 276;
	ok comes(sub { out($ng) == 276 && @asked >= 256 }), 'one client asks for 276 names of one mount';
	is scalar keys %link, 256, '... on 256 connections';
	like $ng->get('/counters')->{body}, qr/^nginx\.questions\.accelerator: 276$/m, '... and all are counted';
	is_deeply [sort map { $_->{name} } @asked], [sort map { "a$_" } 1 .. 256], '... for the first ones';
	my $b = $ng->begin('/b/1');
	ok comes(sub { @asked && $asked[-1]{name} eq '1' }), 'another mount has connections of its own';
	answer($asked[-1]);
	is status($b), 200, '... and is served';
	my $late = $ng->begin('/a/late', '127.0.0.2');
	ok comes(sub { out($ng) == 277 }), 'another client asks last';
	answer($_) for @asked[0, 1];
	ok comes(sub { @asked == 259 }), '... two connections are free';
	is_deeply [sort map { $_->{name} } @asked[257, 258]], ['a257', 'late'], '... and has its turn';
	$ng->stop;
	reset_all();
};

subtest 'too many questions' => sub {
	my $ng = start();
	my $page = $ng->begin('/page.shtml');
	ok comes(sub { out($ng) == 2048 }), 'one page has more parts than one client may ask for';
	my $c = $ng->begin('/b/none', '127.0.0.2');
	ok comes(sub { @asked && $asked[-1]{name} eq 'none' }), 'a cold name of another client is asked for';
	answer($asked[-1]);
	is status($c), 404, '... and served';
	is status($ng->begin('/b/more')), 503, 'one of the same client is late at once';
	is $ng->get('/file')->{body}, 'hot', 'a hot one is served';
	like $ng->get('/counters')->{body}, qr/^nginx\.questions\.refused: [1-9]/m, 'it is counted';
	unlike $ng->log, qr/\[(?:alert|emerg)\]/, 'no alert';
	$ng->stop;
};

$_->stop for $slow_a, $slow_b;
done_testing;
