# doc/LIMITS.md is true: directives, constants, counters and tests of its tables exist, and each test names its limit.  Limits
# that no other test reaches follow.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $root = "$FindBin::Bin/../..";

sub slurp { my ($file) = @_; return Test::Util::slurp("$root/$file") }
sub names { my ($file, $re) = @_; return map { $_ => 1 } slurp($file) =~ /$re/mg }

my %directive = names('server/config/directives.def', qr/^D\(\w+, "([^"]+)", (?!NOP|OLD|ALIAS|BLOCK)/m);
%directive = (%directive, names('nginx/module.c', qr/ngx_string\("(stat_accel\w*)"\)/));
my %counter = map { names($_, qr/^C\((?:[\w.]+, )?\w+, "([^"]+)"/m) } 'server/status/counters.def', 'fcgi-stat-accel/counters.def';
%counter = (%counter, map { ("nginx.$_" => 1) } slurp('nginx/counters.def') =~ /^C\(\w+, "([^"]+)"/mg);
my $source = join '', map { slurp($_ =~ s{^\Q$root\E/}{}r) } glob "$root/{base,wire,io,files,proxy-core,server,fcgi-stat-accel,walk,accel-warm,accel-pool,nginx}/{,*/,*/*/}*.[ch]";
my %seen;

subtest 'each row of the tables names what exists' => sub {
	my @row = map { [map { s/^\s+|\s+\z//gr } split /\|/, $_] } grep { /^\| / && !/^\| (?:resource|---)/ } split /\n/, slurp('doc/LIMITS.md');
	cmp_ok scalar @row, '>', 20, 'rows';
	for my $row (@row) {
		my (undef, $what, $limit, $share, $rule, $shown, $held) = @$row;
		my @limit = $limit =~ /`([^`]+)`/g;
		my @shown = $shown =~ /`([^`]+)`/g;
		ok @limit && length $share && length $rule && @shown && $held, "$what: the row is whole";
		for my $name (@limit, $rule =~ /`([a-z-]+\.[a-z-]+)`/g) {
			my $known = $name =~ /^[A-Z0-9_]+\z/ ? $source =~ /#define $name\b/ : $directive{$name};
			ok $known, "$what: $name is a directive or a constant";
			$seen{$name} = 1;
		}
		ok $counter{$_} || (/^ev=(.+)/ && $source =~ /["=]\Q$1\E[" ]/), "$what: $_ is counted" for @shown;
		my $test = slurp($held) =~ s/\\\././gr;      # in patterns, too
		ok length $test, "$what: $held exists";
		ok scalar(grep { index($test, $_) >= 0 } map { s/^ev=|^(?:server|proxy-core)\.//r } @limit, @shown), "$what: $held names the limit or the counter";
	}
};

# Directives whose name says that they limit what others may take.
my @missing = grep { !$seen{$_} && /max-|-timeout|min-|upload/ } sort keys %directive;
my %other = map { $_ => 1 } qw(
	server.max-worker server.max-read-jobs server.max-keep-alive-requests server.max-cached-bytes server.max-cached-file-size
	proxy-core.max-keep-alive-requests proxy-core.max-backlog-size proxy-core.connect-timeout proxy-core.read-timeout
	debug.log-timeouts deflate.min-compress-size deflate.max-loadavg
);
is_deeply [grep { !$other{$_} } @missing], [], 'no directive that limits something is missing';

subtest 'server.max-connections busy ones: accepting pauses, and goes on' => sub {
	my $srv = Test::Server->start(conf => qq{server.max-connections = 4\nserver.max-worker = 1\nstatus.statistics-url = "/statistics"\n});
	$srv->sparse('big', 32 << 20);
	my @busy = map { $srv->connect(rcvbuf => 4096) } 1 .. 8;
	$_->send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n") for @busy;
	like $_->take(12), qr/ 200/, 'a download has begun' for @busy[0 .. 3];
	is $busy[-1]->take(1, 0.2), '', 'the last of twice as many waits';
	$_->abort for @busy;
	my $r = $srv->fetch('/statistics');
	is $r->{status}, 200, 'the next one is served when they have left';
	my ($pauses) = $r->{body} =~ /^server\.connections\.accept-pauses: (\d+)/m;
	cmp_ok $pauses // 0, '>=', 1, 'accept-pauses shows it';
};

subtest 'no descriptors: accepting pauses, and goes on' => sub {
	my $srv = Test::Server->start(nofile => 64, conf => qq{server.max-connections = 1000\nserver.max-fds = 64\nserver.max-worker = 1\nstatus.statistics-url = "/statistics"\n});
	my @c = map { $srv->connect } 1 .. 120;
	$_->send('GET /') for @c;
	my $waits = $srv->connect;
	$waits->send("GET /statistics HTTP/1.1\r\nHost: x\r\n\r\n");
	$_->abort for @c;
	my $r = $waits->reply // {};
	is $r->{status}, 200, 'a client that waited is served';
	note(($r->{body} // '') =~ /^(server\.connections\..*)/mg);
};

done_testing;
