# Files of 2007 work as they are: configurations load and serve, lines of logs become charts.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::Server;
use Test::Util qw(put);

my $www = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
my $dir = File::Temp->newdir('accel-formats-XXXXXX', TMPDIR => 1);
my $body = join '', map { "line $_\n" } 1 .. 20_000;

mkdir "$www/seek-bound" or die "mkdir: $!";
put("$www/$_", $body) for 'file.txt', 'seek-bound/file.txt';

# ---------------------------------------------------------------- the files

my %conf = (
	'minimal-server.conf' => <<'END',
server.document-root = "/home/jan/wwwroot/servers/grisu.home.kneschke.de/pages/"
server.port = 1025
server.errorlog = "/home/jan/wwwroot/logs/lighttpd.error.log"
server.network-backend = "linux-aio-sendfile"
server.event-handler = "linux-sysepoll"
server.use-noatime = "enable"
server.max-stat-threads = 2
server.max-read-threads = 64
END
	'proxy-core-block.conf' => <<'END',
$SERVER["socket"] == ":1025" {
  $HTTP["url"] =~ "^/seek-bound/" {
    proxy-core.protocol = "fastcgi"
    proxy-core.backends = ( "127.0.0.1:1029" )
    proxy-core.allow-x-sendfile = "enable"
    proxy-core.max-pool-size = 20
  }
}
END
	'threaded-stat.conf' => <<'END',
server.max-stat-threads = 4
server.max-write-threads = 8
server.network-backend = "gthread-aio"
END
);
my %log = (
	'timing-lines-classic.log' => <<'END',
network_gthread_aio.c.78: (trace) write-start: 1173101341.237616 read-queue-wait: 680 ms read-time: 0 ms write-time: 21 ms
network_gthread_aio.c.78: (trace) write-start: 1173101341.229014 read-queue-wait: 576 ms read-time: 0 ms write-time: 134 ms
network_gthread_aio.c.78: (trace) write-start: 1173101341.240815 read-queue-wait: 681 ms read-time: 6 ms write-time: 19 ms
END
	# Lines that end in a blank.
	'timing-lines-late.log' => join('', map { "$_ \n" } split /\n/, <<'END'),
2009-10-16 12:00:01 (trace) (network_gthread_aio.c:73) write-start: 1255694401.237616 read-queue-wait: 680 ms read-time: 0 ms write-time: 21 ms
2009-10-16 12:00:02 (trace) (network_gthread_sendfile.c:59) write-start: 1255694402.001200 read-queue-wait: 5 ms read-time: 44 ms write-time: 1 ms
END
);

my @file = map { put("$dir/$_", $conf{$_} // $log{$_}) } sort keys %conf, sort keys %log;
# A collection beside the source tree, when there is one.
push @file, grep { -f } glob "$FindBin::Bin/../../../shared/reference/formats/*.{conf,log}";

# ---------------------------------------------------------------- configurations

sub said (@command) {
	open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', @command or die "sh: $!";
	local $/;
	my $text = <$fh> // '';
	close $fh;
	return ($? >> 8) . " $text";
}

my $nr = 0;

sub loads ($file, $name) {
	my $main = "$dir/main" . ++$nr . '.conf';
	put($main, qq{include "$file"\nserver.document-root := "$www"\nserver.errorlog := "$dir/error.log"\n});
	# One name of 2007 is different now; the old one works, and a message says so.
	for ('-t', '-tt') {
		my $said = said(Test::Util::program('accel-server'), $_, '-f', $main);
		$said =~ s/^0 \K\S+: server.max-write-threads is an old name; write server.max-read-threads\n// if $name =~ /threaded/;
		is $said, "0 Syntax OK\n", "$name: $_";
	}

	# The log and the address of the example belong to another machine, so they are replaced, too.
	put($main, <<"CONF");
include "$file"
server.document-root := "$www"
server.errorlog := "$dir/error$nr.log"
server.bind := "127.0.0.1"
server.port := 0
CONF
	my $srv = Test::Server->start(dir => "$www", args => ['-f', $main]);
	for my $path ('/file.txt', '/seek-bound/file.txt') {
		my $r = $srv->fetch($path);
		is $r->{status}, 200, "$name: serves $path";
		ok $r->{body} eq $body, '... byte for byte';
	}
	is $srv->stop, '', '... and ends well';
	unlike $srv->log . Test::Util::slurp("$dir/error$nr.log"), qr/unknown setting|no effect/, '... with nothing it did not understand';
}

# ---------------------------------------------------------------- logs

sub charted {
	my ($file, $name) = @_;
	my $to = File::Temp->newdir;
	my $gnuplot = grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
	my $said = said($^X, "$FindBin::Bin/../../scripts/accel-graph", '--svg', '--chart', 'stages,read-queue-wait,read,write', '--verbose', '--name', 'old', '--output', "$to", $file);
	my @want = map { /write-start: (\S+) .*?: (\d+) ms .*?: (\d+) ms .*?: (\d+) ms/ ? [$1, $2, $3, $4] : () } split /\n/, Test::Util::slurp($file);
	my ($first) = sort { $a <=> $b } map { $_->[0] } @want;
	my $rows = join '', map { sprintf "%.6f %d %d %d\n", $_->[0] - $first, @$_[1 .. 3] } sort { $a->[0] <=> $b->[0] } @want;
	cmp_ok scalar @want, '>', 0, "$name: has lines";
	is join('', map { join(' ', (split / /)[0 .. 3]) . "\n" } grep { !/^#/ } split /\n/, Test::Util::slurp("$to/old.data")), $rows, "$name: each of its @{[ scalar @want ]} lines is a row of data" or diag $said;
	SKIP: {
		skip "$name, charts: gnuplot is not installed", 2 unless $gnuplot;
		like $said, qr/\A0 /, '... accel-graph ends with 0';
		is scalar(grep { Test::Util::slurp($_) =~ /<\/svg>/ } glob "$to/*.svg"), 4, '... and four charts are drawn';
	}
}

for my $file (@file) {
	my $name = $file =~ s{.*/}{}r . ($file =~ m{^\Q$dir/} ? '' : ' of the collection');
	$file =~ /\.conf\z/ ? loads($file, $name) : charted($file, $name);
}

done_testing;
