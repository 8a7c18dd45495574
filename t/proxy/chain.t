# The whole way: client, accel-server, proxy-core, pool, fcgi-stat-accel under spawn-fcgi, X-LIGHTTPD-send-file,
# file backend, client; then its log as a chart.  Every byte is compared, every request answered.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Fcntl qw(F_SETFD SEEK_SET);
use File::Temp ();
use IO::Socket::INET ();
use Test::Fcgi ();
use Test::AccelLoad ();
use Test::Http ();
use Test::More;
use Test::Server;
use Test::Util qw(need_program put);

need_program('spawn-fcgi', 'spawn-fcgi');

my $slow     = ($ENV{B} // '') =~ /san/;        # sanitizers
my $requests = 10_000;
my @backends = qw(adaptive linux-sendfile writev gthread-aio);
my %tag = (adaptive => 'network_adaptive.c', writev => 'network_writev.c', 'linux-sendfile' => 'network_linux_sendfile.c', 'gthread-aio' => 'network_gthread_aio.c.78');

# ---------------------------------------------------------------- files

my $www  = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
my %size = ('1.bin' => 1, '4095.bin' => 4095, '4096.bin' => 4096, '100k.bin' => 102_400, '100001.bin' => 100_001, '10M.bin' => 10 << 20);
my $huge = 5 << 30;
my %mark = (0 => 'first', 4_294_967_290 => 'around 4 GiB', $huge - 4 => 'last');        # in the sparse one

srand 2007;
my $block = join '', map { chr int rand 256 } 1 .. 65_521;      # a prime: no two windows of a file are equal
my %bytes = map { $_ => substr $block x (1 + $size{$_} / length $block), 0, $size{$_} } keys %size;

mkdir "$www/seek-bound" or die "mkdir: $!";
symlink 'seek-bound', "$www/direct" or die "symlink: $!";
put("$www/seek-bound/$_", $bytes{$_}) for keys %bytes;
{
	open my $fh, '>:raw', "$www/seek-bound/huge.bin" or die "huge.bin: $!";
	truncate $fh, $huge or die "huge.bin: $!";
	for (keys %mark) {
		seek $fh, $_, SEEK_SET or die "huge.bin: $!";
		print $fh $mark{$_};
	}
	close $fh or die "huge.bin: $!";
}
my $ends = (sort { $b <=> $a } keys %mark)[0] + length 'last';  # as long as it says

# ---------------------------------------------------------------- application and server

sub app { my ($threads) = @_; return Test::Fcgi->start('--threads', $threads, '--root', "$www") }

# As app(), but on TCP: (application, "address:port").  The test makes the socket, so no other program has the port.  The unix
# socket of spawn-fcgi stays open as descriptor 9, since start() connects to it.
sub app_tcp ($threads) {
	my $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 511) or die "listen: $!";
	fcntl $sock, F_SETFD, 0 or die "fcntl: $!";
	my $app = Test::Fcgi->start({ program => '/bin/sh' }, '-c', 'exec "$@" 9<&0 <&' . fileno($sock), 'sh',
		Test::Fcgi::program(), '--threads', $threads, '--root', "$www");
	return ($app, '127.0.0.1:' . $sock->sockport);
}

# The block of 2007 around /seek-bound/; /direct/ is the same directory by a name that the block does not know.
sub server ($to, $network) {
	return Test::Server->start(dir => "$www", conf => <<"CONF");
server.network-backend = "$network"
debug.log-timing = "enable"
\$SERVER["socket"] == "127.0.0.1:\@PORT\@" {
  \$HTTP["url"] =~ "^/seek-bound/" {
    proxy-core.protocol = "fastcgi"
    proxy-core.backends = ( "$to" )
    proxy-core.allow-x-sendfile = "enable"
    proxy-core.max-pool-size = 20
    proxy-core.max-keep-alive-requests = 1000
  }
}
CONF
}

sub lines_of { my ($srv) = @_; return grep { / write-start: / } split /\n/, $srv->log }

# ---------------------------------------------------------------- byte for byte

my $app = app(20);

for my $network (@backends) {
	my $srv = server('unix:' . $app->socket, $network);
	for my $way (['through fcgi-stat-accel', 'seek-bound'], ['directly', 'direct']) {
		my ($how, $dir) = @$way;
		my $direct = $dir eq 'direct';
		subtest "$network, $how: a file of any size arrives byte for byte" => sub {
			my $before = lines_of($srv);
			my $c = $srv->connect;
			for my $name (sort { $size{$a} <=> $size{$b} } keys %size) {
				for my $temper ('cold', 'hot') {
					$c->send("GET /$dir/$name HTTP/1.1\r\nHost: x\r\n\r\n");
					my $r = $c->reply // {};
					is $r->{status}, 200, "$name, $temper: 200";
					ok +($r->{body} // '') eq $bytes{$name}, '... byte for byte';
					unlike $r->{head} // '', qr/send-?file|x-accel/i, '... and no control field' unless $direct;
				}
			}
			my @part = map { [$_, $_ + length($mark{$_}) - 1, $mark{$_}] } sort { $a <=> $b } keys %mark;
			push @part, [1 << 32, (1 << 32) + 99_999, substr($mark{4_294_967_290}, 6) . "\0" x (100_000 - 6)];
			for (@part) {
				my ($from, $to, $want) = @$_;
				my $r = $srv->fetch("/$dir/huge.bin", Range => "bytes=$from-$to");
				is $r->{status}, 206, "5 GiB, bytes $from to $to: 206";
				is $r->{header}{'content-range'}, "bytes $from-$to/$ends", '... Content-Range';
				ok $r->{body} eq $want, '... byte for byte';
			}
			is $srv->fetch("/$dir/huge.bin", Range => 'bytes=-4')->{body}, 'last', '5 GiB, the last four bytes';
			my $head = Test::Http::parse($srv->head("/$dir/huge.bin"));
			is $head->{header}{'content-length'}, $ends, '5 GiB, HEAD tells the length';
			my $sent = 2 * keys(%size) + @part + 1;
			$srv->wait_lines($before + $sent, qr/ write-start: /);
			my @line = lines_of($srv);
			is @line - $before, $sent, 'a timing line for each file sent';
			my $asked = grep { /proxy-us=[1-9]/ } @line[$before .. $#line];
			is $asked, $direct ? 0 : $sent, $direct ? '... none of which the application saw' : '... all of which the application answered';
		};
	}
	my $r = $srv->fetch('/seek-bound/none.bin');
	is $r->{status}, 404, "$network: a missing file";
	unlike $r->{raw}, qr/\Q$www/, '... whose path the client is not told';
}

# ---------------------------------------------------------------- many clients

open my $list, '>', "$www/list" or die "list: $!";
print $list map { "/seek-bound/$_\n" } qw(1.bin 4095.bin 4096.bin 4095.bin 100001.bin 4096.bin 100k.bin);
close $list or die "list: $!";

# Through the graph and through the pipeline of 2007: as many rows as files.
sub charted ($srv, $network, $n) {
	my @line = $srv->wait_lines($n, qr/ write-start: /);
	is scalar @line, $n, 'a timing line for each';
	my $file = $srv->run . '/error.log';
	my @row = split /\n/, qx{grep '$tag{$network}' '$file' | awk '{ print \$4, \$6, \$9, \$12 }'};
	is scalar(grep { /\A\d{10}\.\d{6} \d+ \d+ \d+\z/ } @row), $n, 'grep and awk: four numbers from each line';
	my $to = File::Temp->newdir;
	my $said = qx{$^X '$FindBin::Bin/../../scripts/accel-graph' --svg --name week --output '$to' '$file' 2>&1};
	SKIP: {
		skip 'charts: gnuplot is not installed', 3 unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
		is $? >> 8, 0, 'accel-graph: status 0' or diag $said;
		my @data = grep { !/^#/ } split /\n/, Test::Util::slurp("$to/week.data");
		is scalar @data, $n, '... a row of data for each file sent';
		my @chart = glob "$to/*.svg";
		is scalar(grep { Test::Util::slurp($_) =~ /<svg.*<\/svg>/s } @chart), 8, '... and eight charts' or diag "@chart";
	}
}

my $limit = 5 * ($slow ? 3 : 1);        # seconds; a stalled request takes the whole wait-timeout or more

for my $case (['unix socket, 20 threads', 'linux-sendfile', 20], ['unix socket, 3 threads', 'gthread-aio', 3],
	['TCP, 20 threads', 'writev', 20, 1], ['TCP, 3 threads', 'gthread-aio', 3, 1]) {
	my ($what, $network, $threads, $tcp) = @$case;
	subtest "200 clients over a pool of 20, $what: all are answered soon" => sub {
		my ($with, $to) = $tcp ? app_tcp($threads) : $threads == 20 ? ($app, 'unix:' . $app->socket) : app($threads);
		$to //= 'unix:' . $with->socket;
		my $srv = server($to, $network);
		my $n = $tcp ? int $requests / 4 : $requests;
		my $r = Test::AccelLoad->run($srv, '/', '-n', $n, '-c', 200, '-t', 30, '-d', 90, '--urls', "$www/list", '--verify', "dir:$www");
		is $r->{answered}, $n, "$n answers";
		is $r->{errors}{all}, 0, 'no error, no wrong byte' or diag explain $r->{errors};
		cmp_ok $r->{latency_us}{max} / 1e6, '<', $limit, 'the slowest one in time';
		diag sprintf '%s: %.0f requests/s, p50 %.1f p99 %.1f max %.1f ms', $what, $r->{rps},
		    map { $r->{latency_us}{$_} / 1e3 } qw(p50 p99 max) if $ENV{TEST_VERBOSE};
		unlike $srv->log, qr/pool\.stalled|pool\.down/, 'the pool never stalled';
		charted($srv, $network, $n) unless $tcp;
	};
}

is $app->stop, 0, 'fcgi-stat-accel ends with 0';
done_testing;
