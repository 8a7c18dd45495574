# Text of clients in logs and pages: one line each, without control characters, at a bounded rate.  Text of a configuration
# in replies: one line.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use JSON::PP ();

my @bad = ("\xc2\x9b31m", "\x9b31m", "\xe2\x80\xae", "\xe2\x80\xa8", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xef\xbb\xbf", "\xff\xfe", "\xc0\xaf", "\xed\xa0\x80");
my $bad = join '', @bad;
my $good = "caf\xc3\xa9 \xf0\x9f\x98\x80";
my $odd = qr/[\x00-\x09\x0b-\x1f\x7f]|[\xc2][\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf/;

sub is_utf8 { my ($bytes) = @_; return utf8::decode(my $copy = $bytes) }
sub escaped { my ($bytes) = @_; return join '', map { /[a-z0-9]/i ? $_ : sprintf '\\x%02x', ord } split //, $bytes }
sub urlenc  { my ($bytes) = @_; return join '', map { sprintf '%%%02X', ord } split //, $bytes }

subtest 'the logs have what a client sends as escaped text' => sub {
	for my $timing ('enable', 'json') {
		my $srv = Test::Server->start(conf => <<"CONF");
accesslog.filename = "\@RUN\@/access.log"
debug.log-timing = "$timing"
status.status-url = "/status"
CONF
		$srv->write("x$bad$good.txt", 'A');
		is $srv->fetch('/x' . urlenc("$bad$good") . '.txt', 'User-Agent' => "u$bad$good", Referer => "r$bad$good")->{body}, 'A', "$timing: a file with such a name";
		$srv->fetch("/$bad");
		my ($access) = $srv->wait_lines(2, qr/./, 'access.log');
		my $error = $srv->wait_log($timing eq 'json' ? qr/"path"/ : qr/ path=/);
		my $want = quotemeta(escaped($bad)) . quotemeta($good);
		like $access, qr/"r$want" "u$want"$/, 'the access log has them as \xHH, and other UTF-8 as it is';
		if ($timing eq 'json') {
			my ($line) = $error =~ /^(\{.*"path".*\})$/m;
			my $path = eval { JSON::PP->new->utf8->decode($line)->{path} } // '';
			like $path, qr/\x{9b}31m.*\x{202e}.*caf\x{e9} \x{1f600}/, 'the JSON line is JSON, and has the name';
		} else {
			like $error, qr/ path="\/x$want\.txt"/, 'and so does the timing line';
		}
		for my $log ('access.log', 'error.log') {
			ok is_utf8($srv->log($log)), "$log is UTF-8";
			unlike $srv->log($log), $odd, '... without a control character';
		}
		for my $page ('/status', '/status?json', '/status?auto') {
			my $r = $srv->fetch($page, 'User-Agent' => $bad);
			ok is_utf8($r->{body}) && $r->{body} !~ /\xc2\x9b|\xe2\x80\xae/, "$page is UTF-8 without them";
		}
	}
};

subtest 'a storm of refused requests is counted, not written' => sub {
	my ($n, $per_second) = (400, 10);
	my $srv = Test::Server->start(conf => "status.statistics-url = \"/statistics\"\nserver.max-connections = 2000\n");
	my $count = sub { my $log = $srv->log; my $lines = () = $log =~ /ev=request\.refused/g; my $told = 0; $told += $_ for $log =~ /ev=request\.refused.* suppressed=([0-9]+)$/mg; $told += $_ for $log =~ /ev=log\.suppressed of=request\.refused lines=([0-9]+)$/mg; return ($lines, $told) };
	my $began = time;
	for (1 .. $n) {
		my $c = $srv->connect;
		$c->send("NONSENSE\r\n\r\n");
		$c->take(12);
	}
	my $seconds = time - $began + 2;        # of the clock, in part
	$srv->signal('HUP');
	ok Test::Util::eventually(sub { my ($lines, $told) = $count->(); $lines + $told == $n }), 'each is written, or counted'
	    or diag join ' ', $count->();
	my ($lines, $told) = $count->();
	cmp_ok $lines, '<=', $per_second * $seconds, "at most $per_second a second are written";
	cmp_ok $lines, '>=', $per_second, '... and this many are';
	like $srv->get('/statistics'), qr/^server\.log\.suppressed: ([0-9]+)/m, 'a counter has the rest';
};

# Lines that stand in code which requests pass through have a limit.
subtest 'each line that a client can cause has a limit' => sub {
	my %said_once = map { $_ => 1 } qw(posix-aio.refused linux-aio.fallback userdir.unknown alias.missing noatime.refused);
	my %asked_for = ('pool.lease' => 1);    # proxy-core.debug; those of debug.log-* are debug.NAME
	my @without;
	for my $file (glob("$FindBin::Bin/../../{wire,wire/*,server,server/*,server/config/*,proxy-core,io,io/*}/*.c")) {
		next if $file =~ m{server/(process/\w+|config/(?:\w+/)?(?!record|mime|rewrite|resources)\w+|main|options|manual)\.c$|io/(start/(?:sandbox|listen)|log/logfile)\.c$};
		my $code = Test::Util::slurp($file);
		while ($code =~ /\blog_event\([^;"]*"([^"]+)"/g) {
			push @without, "$file: $1" unless $said_once{$1} || $asked_for{$1} || $1 =~ /^debug\./;
		}
	}
	is_deeply \@without, [], 'log_limited() everywhere';
};

subtest 'a configuration value cannot add a header' => sub {
	my $program = Test::Util::program('accel-server');
	my $dir = File::Temp->newdir;
	for my $case (
		['server.tag', '"a%sX-Evil: 1"'], ['server.name', '"a%sb"'], ['mimetype.assign', '( ".x" => "text/x%sX-Evil: 1" )'],
		['mimetype.assign', '( ".x%s" => "text/x" )'], ['proxy-core.backends', '( "unix:/a%sb" )'],
		['proxy-core.rewrite-response', '( "Location" => ( "^a" => "b%sX-Evil: 1" ) )'],
		['proxy-core.rewrite-request', '( "X%s" => ( "^a" => "b" ) )'],
	) {
		my ($name, $value) = @$case;
		for my $char ("\n", "\r\n", "\x1b", "\x7f", "\xc2\x9b") {
			Test::Util::put("$dir/x.conf", "server.document-root = \"$dir\"\n$name = " . sprintf($value, $char) . "\n");
			my $said = qx{"$program" -t -f "$dir/x.conf" 2>&1};
			my $shown = escaped($char);
			ok $? != 0 && $said =~ /^\Q$dir\E\/x\.conf:[0-9]+:[0-9]+: \Q$name\E: expected printable text on one line, got ".*\Q$shown\E/m, "$name: $shown" or diag $said;
		}
	}
	Test::Util::put("$dir/x.conf", "server.document-root = \"$dir\"\nserver.tag = \"caf\xc3\xa9 (fast)\"\n");
	is system("$program -t -f $dir/x.conf >/dev/null 2>&1"), 0, 'other text is fine';
};

done_testing;
