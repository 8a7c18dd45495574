# The error log as JSON: each line is an object with the fields of the text form, whatever clients send; severities of syslog;
# accel-server ctl and status pages show text in any case.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Select;
use IO::Socket::UNIX ();
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Socket qw(SOCK_DGRAM);
use Test::Fcgi ();
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp PATIENCE);

my $dir = File::Temp->newdir('accel-json-XXXXXX', TMPDIR => 1);
chmod 0755, $dir;
put("$dir/users", "ann:pw\n");
my $json = JSON::PP->new->utf8;

# The objects of a log.  A line that is not an object fails.
sub objects ($log) {
	my @all;
	for my $line (split /\n/, $log) {
		my $object = eval { $json->decode($line) };
		ref $object eq 'HASH' ? push(@all, $object) : fail("an object: $line");
	}
	return @all;
}

sub event ($srv, $ev) {
	my ($line) = $srv->wait_lines(1, qr/"ev":"\Q$ev\E"/, 'error.log');
	return eval { $json->decode($line) } // {};
}

my $AUTH = qq{auth.backend = "plain"\nauth.backend.plain.userfile = "$dir/users"\n}
    . qq{auth.require = ( "/secret" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )\n};

subtest 'each line is an object' => sub {
	my $srv = Test::Server->start(conf => qq{server.errorlog-format = "json"\ndebug.log-timing = "enable"\nserver.pid-file = "\@RUN\@/pid"\n$AUTH});
	my $name = "x\xff\"\\\xe2\x80\xae" . 'y' x 200;
	$srv->write('a', 'A');
	$srv->get('/a');
	my $c = $srv->connect(from => '127.0.0.6');
	$c->send(req('/secret/' . '%22' x 1400, 'Authorization: Basic ' . encode_base64("$name:nonsense", '')));
	my $failed = event($srv, 'auth.failed');
	is $failed->{level}, 'warn', 'level';
	like $failed->{ts}, qr/^\d{10}\.\d{1,6}$/, 'time in seconds';
	cmp_ok abs($failed->{ts} - time), '<', 100, '... of now';
	like $failed->{id}, qr/^c\d+\.\d+$/, 'the number of the request';
	is $failed->{client}, '127.0.0.6', 'a field';
	is $failed->{user}, "x\x{fffd}\"\\\x{202e}" . 'y' x 200, 'what a client sent; a byte that is not UTF-8 is U+FFFD';
	my $start = event($srv, 'listening');
	is $start->{level}, 'info', 'a line that came before the log was open';
	my ($timing) = $srv->wait_lines(1, qr/"write-start"/);
	is eval { $json->decode($timing)->{path} }, '/a', 'stage times are JSON, too';

	my $conf = $srv->run . '/server.conf';
	my $right = slurp($conf);
	put($conf, "$right\nserver.max-worker = \"x\"\n");
	my ($rc, $out, $err) = Test::Util::run_fed(program('accel-server'), '', 'ctl', 'reload', '--socket=' . $srv->run . '/pid.ctl');
	is $rc, 78, 'a wrong configuration';
	unlike "$out$err", qr/[{}]|","/, '... is explained as text';
	is event($srv, 'reload.refused')->{level}, 'error', 'the log has an object';
	$srv->signal('HUP');
	event($srv, 'logs.reopened');
	put($conf, $right =~ s/"json"/"text"/r);
	($rc, $out, $err) = Test::Util::run_fed(program('accel-server'), '', 'ctl', 'reload', '-f', $conf);
	is $rc, 0, 'a reload with the text form' or diag $out, $err;
	$srv->signal('HUP');
	like $srv->wait_log(qr/ ev=logs\.reopened/, 'error.log'), qr/^ts=\S+ level=info ev=logs\.reopened by=HUP$/m, '... which is in use';
	my ($before) = $srv->log('error.log') =~ /\A((?:\{.*\n)+)/;
	my @all = objects($before);
	cmp_ok scalar @all, '>', 5, 'all lines before it are objects';
	my @number = grep { /"(?:status|lines|bytes|workers|waited-ms)":"\d+"/ } split /\n/, $before;
	is_deeply \@number, [], 'numbers are numbers';
};

subtest 'syslog has the severity of each line' => sub {
	my $d = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$dir/log") or die $!;
	my $srv = Test::Server->start(conf => qq{server.errorlog-format = "json"\nserver.errorlog-use-syslog = "enable"\nserver.syslog-socket = "$dir/log"\n}
		. qq{server.pid-file = "\@RUN\@/pid"\ndebug.log-timing = "enable"\n$AUTH});
	my %severity;
	my $until = sub ($re) {
		my $end = time + PATIENCE;
		while (time < $end) {
			IO::Select->new($d)->can_read(0.2) or next;
			$d->recv(my $line, 65536);
			my ($n, $text) = $line =~ /\A<(\d+)>accel-server\[\d+\]: (\{.*\})\z/ or fail("a datagram: $line"), next;
			my $o = $json->decode($text);
			$severity{ $o->{ev} // 'timing' } = $n & 7;
			return if $text =~ $re;
		}
		fail("no line with $re");
	};
	$srv->write('a', 'A');
	$srv->get('/a');
	$until->(qr/"write-start"/);
	$srv->connect->send(req('/secret', 'Authorization: Basic ' . encode_base64('bob:x', '')));
	$until->(qr/"auth.failed"/);
	put($srv->run . '/server.conf', 'nonsense');
	$srv->signal('USR1');
	$until->(qr/"reload.refused"/);
	is_deeply { map { $_ => $severity{$_} } 'listening', 'timing', 'auth.failed', 'reload.refused' },
	    { listening => 6, timing => 6, 'auth.failed' => 4, 'reload.refused' => 3 }, 'information, information, warning, error';
};

subtest 'fcgi-stat-accel --log-format=json' => sub {
	my $tree = Test::Fcgi::temp_tree();
	put("$tree/a", 'A');
	my $app = Test::Fcgi->start('--root', "$tree", '--log-format=json', '--timing');
	$app->get("$tree/a");
	ok eventually(sub { $app->log_text =~ /"write-start"/ }), 'it logs';
	my @all = objects($app->log_text);
	cmp_ok scalar @all, '>=', 2, 'objects only';
	is +(grep { ($_->{path} // '') eq "$tree/a" } @all)[0]{status}, 200, 'stage times, too';
	ok scalar(grep { ($_->{ev} // '') =~ /^sandbox/ } @all), 'and its events';
};

done_testing;
