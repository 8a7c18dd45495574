# Generated configurations of 10 to 50,000 lines: hosts with logs, aliases, directories and applications.  What -t accepts starts,
# reloads, upgrades and starts again.  A limit is said by -t, with file and line, and never found by a start alone.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::UNIX ();
use Test::More;
use Test::Util qw(eventually program put slurp);
use Time::HiRes qw(time);

use constant { PER_HOST => 5, LOGS => 200, SECONDS => 60 };

my $program = program('accel-server');
my $dir = Test::Util::temp_tree();
my $conf = "$dir/x.conf";
mkdir "$dir/$_" for qw(www log);
put("$dir/www/a", 'A');

sub pid () { return slurp("$dir/pid") =~ /(\d+)/ ? $1 : 0 }

END { local $?; kill 'KILL', pid() if pid() }

sub base () {
	return <<"END";
server.document-root = "$dir/www"
server.errorlog = "$dir/error.log"
server.bind = "$dir/sock"
server.pid-file = "$dir/pid"
server.max-worker = 1
proxy-core.protocol = "http"
accesslog.filename = "$dir/log/all"
END
}

sub host ($n) {
	my $what = ($n % 2 ? qq{proxy-core.backends = ( "127.0.0.1:@{[ 20_000 + $n % 500 ]}" )} : qq{server.document-root = "$dir/www"}) . "\n";
	my $log = $n % 3 ? '' : qq{accesslog.filename = "$dir/log/@{[ $n % LOGS ]}"};
	return qq{\$HTTP["host"] == "h$n.example" {\n$log\nalias.url = ( "/a$n/" => "$dir/www/" )\n$what}\n};
}

# Exit status and messages; a test fails if it takes longer than SECONDS.
sub run ($what, @args) {
	my $began = time;
	my ($rc, $out, $err) = Test::Util::run_fed($program, '', @args, '-f', $conf);
	my $took = time - $began;
	is $rc, 0, sprintf('%-10s %6.2f s', $what, $took) or diag $out, $err, slurp("$dir/error.log");
	cmp_ok $took, '<', SECONDS, '... in time';
	return $took;
}

sub ask ($path, $host) {
	my $c = IO::Socket::UNIX->new(Peer => "$dir/sock") or return '';
	print {$c} "GET $path HTTP/1.0\r\nHost: $host\r\n\r\n";
	return do { local $/; <$c> } // '';
}

sub serves ($last) {
	like ask('/a', 'x'), qr/ 200 .*\bA\z/s, '... serves';
	like ask("/a$last/a", "h$last.example"), qr/ 200 .*\bA\z/s, '... and so does the last host' if $last;
}

for my $lines (10, 1000, 10_000, 50_000) {
	subtest "$lines lines" => sub {
		my $base = base();
		my $hosts = int(($lines - $base =~ tr/\n//) / PER_HOST);
		my $last = $hosts - $hosts % 2;          # one with a directory
		put($conf, join '', $base, map { host($_) } 1 .. $hosts);
		unlink "$dir/error.log";
		run('-t', '-t');
		for my $start ('start', 'again') {
			run($start, '--daemon');
			serves($last);
			next if $start eq 'again';
			run('reload', 'ctl', 'reload');
			serves($last);
			my $old = pid();
			run('upgrade', 'ctl', 'upgrade');
			isnt pid(), $old, '... another process serves';
			serves($last);
			run('stop', 'ctl', 'stop');
			ok eventually(sub { !kill 0, $old }), '... the old one has ended';
		}
		run('stop', 'ctl', 'stop');
		unlike slurp("$dir/error.log"), qr/level=(?:error|alert)/, 'no error is logged';
	};
}

# The limits of server/config/check/limits.h, from CFG_LOGS_MAX on, and CFG_BLOCKS_MAX.
sub refused ($what, $text, $line, $message) {
	put($conf, base() . $text);
	my ($rc, undef, $said) = Test::Util::run_fed($program, '', '-t', '-f', $conf);
	is $rc, 78, "$what: -t refuses it";
	like $said, qr/\A\Q$conf\E:$line:\d+: $message; \w.*\n\z/, '... with the line, and what to do' or diag substr $said, 0, 500;
	my ($started, undef, $why) = Test::Util::run_fed($program, '', '--daemon', '-f', $conf);
	is "$started\n$why", "78\n$said", '... and so does a start';
}

subtest 'limits are said' => sub {
	my $first = 1 + base() =~ tr/\n//;
	my $many = sub ($n, $text) { return join '', map { $text =~ s/%/$_/gr } 1 .. $n };
	refused('access logs', $many->(4096, qq{\$HTTP["host"] == "%" { accesslog.filename = "$dir/log/own%" }\n}), $first + 4095, 'accesslog.filename: more than 4096 different access logs');
	refused('addresses', $many->(64, qq{\$SERVER["socket"] == "$dir/s%" { }\n}), $first + 63, 'more than 64 addresses to listen on');
	refused('hosts of applications', $many->(4097, qq{\$HTTP["host"] == "%" { proxy-core.backends = ( "h%.invalid:80" ) }\n}), $first + 4096, 'proxy-core.backends: more than 4096 different hosts of applications');
	refused('applications', $many->(257, qq{\$HTTP["host"] == "%" { proxy-core.spawn = ( "$dir/app%" => ( "command" => "/bin/false" ) ) }\n}), $first + 256, 'proxy-core.spawn: more than 256 applications to start');
	refused('scripts', "cgi.assign = ( \".pl\" => \"/usr/bin/perl\" )\n" . $many->(3, qq{\$HTTP["host"] == "%" { alias.url = ( @{[ join ', ', map { qq{"/$_/" => "$dir/%/$_/"} } 1 .. 11_000 ]} ) }\n}), $first + 3, 'alias.url: more than 32768 different directories, interpreters and variables beside cgi.assign');
	refused('blocks', $many->(20_001, qq{\$HTTP["host"] == "%" { }\n}), $first + 20_000, 'more than 20000 conditional blocks');
	refused('a long name', qq{accesslog.filename := "$dir/@{[ 'x' x 1100 ]}"\n}, $first, 'accesslog.filename: ".*\.\.\." is longer than 1023 bytes');
};

subtest 'mistakes that are left out are said' => sub {
	put($conf, base() . join '', map { "server.none$_ = 1\n" } 1 .. 30);
	my (undef, undef, $said) = Test::Util::run_fed($program, '', '-t', '-f', $conf);
	is scalar(() = $said =~ /unknown setting/g), 20, '20 of 30 are printed';
	like $said, qr/^\Q$conf\E:28:1: further mistakes are left out, from here on$/m, '... and where the others begin';
};

# A new server takes over each of them by a message, and a socket has room for about 90 messages.
subtest 'many sockets and applications' => sub {
	put("$dir/app", "#!/bin/sh\nexec sleep 1000\n");
	chmod 0755, "$dir/app";
	put($conf, join '', base(), map({ qq{\$SERVER["socket"] == "$dir/s$_" { }\n} } 1 .. 63),
		map { qq{\$HTTP["host"] == "$_" { proxy-core.spawn = ( "$dir/app$_" => ( "command" => "$dir/app @{[ 'x' x 600 ]}" ) ) }\n} } 1 .. 130);
	unlink "$dir/error.log";
	run('-t', '-t');
	run('start', '--daemon');
	my $old = pid();
	run('upgrade', 'ctl', 'upgrade');
	isnt pid(), $old, '... another process serves';
	unlike slurp("$dir/error.log"), qr/ev=(?:application|upgrade)\.failed/, '... with all of them';
	serves(0);
	run('stop', 'ctl', 'stop');
};

# Each directory and log takes a descriptor.  -t says how many more a start would need.
subtest 'descriptors' => sub {
	mkdir "$dir/www/$_" for 1 .. 120;
	put($conf, base() . join '', map { qq{\$HTTP["host"] == "$_" { server.document-root = "$dir/www/$_" accesslog.filename = "$dir/log/own$_" }\n} } 1 .. 120);
	my $t = sub ($limit) { return Test::Util::run_fed('sh', '', '-c', 'ulimit -n "$1"; exec "$2" -t -f "$3"', 'sh', $limit, $program, $conf) };
	my ($rc, undef, $said) = $t->(300);
	is $rc, 78, '-t refuses more than the limit';
	like $said, qr/121 access logs .* need \d+ descriptors, and the limit is 300: raise server\.max-fds/, '... and says what to raise';
	is +($t->(400))[0], 0, 'with more of them it is fine';
};

done_testing;
