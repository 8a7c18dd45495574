# accel-top beside real servers, on a terminal and without; and beside servers that answer garbage.
use v5.36;
use Test::More;
use Cwd qw(abs_path);
use FindBin ();
use IO::Socket::INET ();
use JSON::PP ();
use POSIX ();
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../scripts/lib";
use Accel::Status ();
use Accel::Top::Find ();
use Accel::Top::Hint ();
use Accel::Top::Screen ();
use MIME::Base64 qw(encode_base64);
use Test::Backend;
use Test::Fcgi ();
use Test::Pty;
use Test::Server;
use Test::Util qw(build_dir eventually put slurp temp_tree);

my $top = abs_path("$FindBin::Bin/../../scripts/accel-top");
my $dir = temp_tree();
my $json = JSON::PP->new->utf8;
local $ENV{PATH} = abs_path(build_dir()) . "/bin:$ENV{PATH}";

# Exit status, standard output, standard error.
sub run (@args) {
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		open STDIN,  '<', '/dev/null';
		open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
		open STDERR, '>', "$dir/err" or POSIX::_exit(126);
		exec $top, @args or POSIX::_exit(127);
	}
	waitpid $pid, 0;
	return ($? >> 8, slurp("$dir/out"), slurp("$dir/err"));
}

my $srv = Test::Server->start(conf => <<'CONF');
status.status-url = "/server-status"
CONF
$srv->write('hello.txt', 'x' x 1000);
my $url = 'http://127.0.0.1:' . $srv->port;

subtest 'accel-server: --once, --json, --record' => sub {
	my ($status, $text, $err) = run('--once', '--interval', 0.1, $url);
	is $status, 0, 'it ends well' or diag $err;
	like $text, qr{^accel-server \S+  \Q$url\E  up 0}, 'who answers';
	like $text, qr{ requests/s  sent .*\nconnections \d+ of \d+: \d+ idle }, 'rates and connections';
	like $text, qr{^STAGE +per s.*\|THREADS.*\n(?:.*\|stat .*\n)}m, 'stages of the interval, and threads';
	like $text, qr{^CPU us }m, 'processors of this machine';
	like $text, qr{^memory .*\d (?:GB|MB) .*  again \d.*/s  gone 0/s .*  loop waits \d+$}m, 'the memory';
	unlike $text, qr/[^\x20-\x7e\n]/, 'without a terminal there are no colours and no control characters';
	unlike $text, qr/json/, 'the request for the status itself is not shown';

	$srv->get('/hello.txt') for 1 .. 20;
	($status, $text) = run('--json', '--count', 2, '-i', 0.1, $url);
	my @looks = map { $json->decode($_) } split /\n/, $text;
	is scalar @looks, 2, 'a line for each look';
	is $looks[1]{status}{server}, 'accel-server', '... with the status';
	cmp_ok $looks[1]{status}{requests}, '>=', 20, '... its counters';
	ok exists $looks[1]{rates}{requests_per_s}, '... the rates';
	ok exists $looks[1]{lanes}{disks}, '... and the lanes';
	my ($total) = grep { $_->{name} eq 'total' } @{ $looks[1]{rates}{stages} };
	is $total->{whole}, 0, 'the percentiles are of the interval';

	($status, $text) = run('--record', "$dir/lanes", '--count', 3, '-i', 0.1, $url);
	is $text, '', '--record without a terminal prints nothing';
	my @rows = map { $json->decode($_) } split /\n/, slurp("$dir/lanes");
	is scalar @rows, 3, '... and has a row for each look';
	is_deeply [grep { !exists $rows[0]{$_} } qw(time us sy id wa cs bi bo disks server)], [], '... with the names of a lanes file';
	cmp_ok $rows[0]{server}{memory}{limit_bytes}, '>', 0, '... and the memory';
	cmp_ok $rows[2]{time}, '>', $rows[0]{time}, '... in order';
	run('--record', "$dir/lanes", '--count', 1, '-i', 0.1, '--no-server');
	@rows = map { $json->decode($_) } split /\n/, slurp("$dir/lanes");
	is scalar @rows, 4, 'a second run appends';
	ok !exists $rows[3]{server} && exists $rows[3]{disks}, '--no-server: the lanes alone';
};

subtest 'finding the server' => sub {
	my ($status, $text, $err) = run('--once', '-i', 0.1, '-f', $srv->run . '/server.conf');
	is $status, 0, 'by its configuration' or diag $err;
	like $text, qr/^accel-server .*:@{[ $srv->port ]}\/server-status/, '... at the address and path in it';
	put("$dir/no.conf", "server.document-root = \"/tmp\"\nserver.port = 1\n");
	($status, undef, $err) = run('--once', '-f', "$dir/no.conf");
	is $status, 69, 'a configuration without a status page';
	like $err, qr{there is no status page\n\n.*status\.status-url = "/server-status"}s, '... tells what to add';
	($status, undef, $err) = run('--once', "$url/elsewhere");
	is $status, 69, 'a server without one';
	like $err, qr{status 404: there is no status page at /elsewhere\n.*status\.status-url}s, '... too';
	($status, undef, $err) = run('--once', '-f', "$dir/none.conf");
	like $err, qr{none\.conf: .*cannot read it}, 'a configuration that is not there';
	my ($listens, $pages) = Accel::Top::Find::pages(<<'CONF');
# listens on :8080
# listens on [::]:90
server.document-root = "/tmp" # {
$HTTP["host"] == "a.b" { # 1
	status.status-url = "/of-a-host"
}
else $HTTP["host"] == "c" { # 2
	server.tag = "}"
}
$HTTP["remoteip"] == "127.0.0.0/8" { # 3
	status.status-url = "/s"
}
CONF
	is_deeply $listens, [':8080', '[::]:90'], 'where it listens';
	is_deeply $pages, [{ path => '/of-a-host', host => 'a.b' }, { path => '/s', host => undef }], 'its pages, and the host of one';
	is_deeply [map { Accel::Top::Find::place_of($_) } ':80', '0.0.0.0:80', '[::]:80', '10.1.1.1:80', '/run/x'],
		['http://127.0.0.1:80', 'http://127.0.0.1:80', 'http://[::1]:80', 'http://10.1.1.1:80', 'unix:/run/x:'], 'an address that can be asked';
};

subtest 'wrong arguments' => sub {
	for (['--interval', 0, qr/--interval: expected 0.1 to 3600 seconds, got "0"/], ['--interval', 'x', qr/got "x"/], ['--count', 0, qr/--count: expected 1/], ['ftp://x', qr/expected http:/],
		['https://x/', qr/https is not supported/], ["a\e[1mb", qr/'a\?\[1mb'/], ['http://a b/', qr/expected http:/], ['fcgi:relative', qr/expected http:/]) {
		my ($status, undef, $err) = run('--once', @$_[0 .. $#$_ - 1]);
		ok $status == 64 || $status == 69, "@$_[0 .. $#$_ - 1]: status $status";
		like $err, $_->[-1], '... says why';
		unlike $err, qr/[^\x20-\x7e\n]/, '... in plain text';
	}
	my ($status, undef, $err) = run('a', 'b');
	is $status, 64, 'two servers';
	put("$dir/login", "nobody\n");
	like +(run('--once', '--login', "$dir/login", $url))[2], qr/expected a line USER:PASSWORD/, 'a login without a password';
	like +(run('--once', '--record', "$dir/none/x", $url))[2], qr{none/x: No such file}, 'a record that cannot be made';
	($status, undef, $err) = run('--once', '-i', 0.1, '--record', '/dev/full', $url);
	is $status, 74, 'a full disk';
	like $err, qr{^accel-top: /dev/full: No space left}, '... is named';
	is +(run('--json', '--record', '-', $url))[0], 64, 'two kinds of lines on standard output';
};

subtest 'fcgi-stat-accel' => sub {
	my $accel = Test::Fcgi->start('--mode=auth', '--status-path=/accel-status', '--root', "$dir");
	my ($status, $text, $err) = run('--once', '-i', 0.1, "fcgi:$accel->{socket}");
	is $status, 0, 'over FastCGI' or diag $err;
	like $text, qr{^fcgi-stat-accel .*\n.* requests/s  made warm .*in cache }, 'its own words';
	($status, $text) = run('--once', '-i', 0.1, $accel->{socket});
	like $text, qr{^fcgi-stat-accel }, 'a path of a socket is enough';
	put("$dir/file", 'x' x 100);
	my $before = Accel::Status->new("fcgi:$accel->{socket}")->ask;
	$accel->get("$dir/file") for 1 .. 5;
	my $after = Accel::Status->new("fcgi:$accel->{socket}")->ask;
	is $after->{requests} - $before->{requests}, 5, 'answers are counted, questions for the status are not';
	my $rates = Accel::Status::Form::rates($before, $after);
	is $rates->{stages}[-1]{count}, 5, '... and are in the stages of the interval';
	ok defined $rates->{stages}[-1]{p99_ns}, '... with percentiles';
	($status, undef, $err) = run('--once', "fcgi:$accel->{socket}:/other");
	is $status, 69, 'without that page';
	like $err, qr{start fcgi-stat-accel with --status-path=/other}, '... tells what to do';
};

subtest 'a unix socket, Basic authentication, a server of long ago' => sub {
	my $b = Test::Backend->new;
	my $whole = $srv->fetch('/server-status?json')->{body};
	put("$dir/login", "Aladdin:open sesame\n");
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		for (1 .. 3) {
			my $c = $b->accept // last;
			my $head = $c->head;
			my $ok = $head =~ /^Authorization: Basic \Q@{[ encode_base64('Aladdin:open sesame', '') ]}\E\r$/m;
			$c->send($ok ? "HTTP/1.0 200 OK\r\n\r\n$whole" : "HTTP/1.0 401 No\r\n\r\n");
			undef $c;
		}
		POSIX::_exit(0);
	}
	my ($status, $text, $err) = run('--once', '-i', 0.1, '--login', "$dir/login", 'unix:' . $b->socket . ':/server-status');
	waitpid $pid, 0;
	is $status, 0, 'it asks with user and password over the socket' or diag $err;
	like $text, qr/STAGE \(all\)/, 'a status without counts: the stages since the start, which the title says';
};

# Plays a server: each element of @answers is sent to one connection, then it is closed. Returns its URL.
my @players;
sub playing (@answers) {
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 9) or die "listen: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		for my $answer (@answers) {
			my $c = $listen->accept;
			sysread $c, my $head, 4096;
			local $SIG{PIPE} = 'IGNORE';
			print {$c} $answer;
			close $c;
		}
		POSIX::_exit(0);
	}
	push @players, $pid;
	return 'http://127.0.0.1:' . $listen->sockport;
}

subtest 'garbage' => sub {
	my %bad = (
		'nothing' => '', 'no HTTP' => "220 mail\r\n", 'no JSON' => "HTTP/1.0 200 OK\r\n\r\n<html>", 'another JSON' => "HTTP/1.0 200 OK\r\n\r\n{\"a\":1}", 'a list' => "HTTP/1.0 200 OK\r\n\r\n[]",
		'deep' => "HTTP/1.0 200 OK\r\n\r\n" . '[' x 5000, 'an error' => "HTTP/1.0 500 \e[31mred\r\n\r\n", 'half' => "HTTP/1.0 200 OK\r\n\r\n{\"counters\":{",
	);
	for my $what (sort keys %bad) {
		my ($status, $out, $err) = run('--once', '-i', 0.1, playing(($bad{$what}) x 2));
		is $status, 69, "$what: no server";
		like $err, qr/^accel-top: http:\S+: \S/, '... says what is wrong';
		unlike $err, qr/[^\x20-\x7e\n]/, '... in plain text';
	}
	my ($rc, undef, $why) = run('--once', '-i', 0.1, playing("HTTP/1.0 200 OK\r\n\r\n[" . '1,' x (2 << 20)));
	is $rc, 69, 'an answer that takes long to read';
	like $why, qr/longer than 2 MB/, '... is refused';
	my $evil = "\e]0;x\a\x{9b}1m\x{202e}\n";
	my $odd = $json->encode({ version => $evil, uptime_seconds => 'nan', counters => { 'server.requests.read' => -5, 'server.requests.replied' => '1e999', $evil => {} },
		stages => { total => [], $evil => { count => 3, buckets => [1, [2], {}, ['x', 'y']] } }, threads => { stat => 7, $evil => { busy => [] } },
		devices => [3, { device => $evil, mount => $evil, stuck => 1 }], memory => { limit_bytes => 'x', used_bytes => {}, refault_bytes => [], refaults_of => $evil, pressure => { cgroup => { some_ns => $evil } } }, backends => [{ name => $evil, stages => 5 }, undef], connections => [],
		running => { requests => 9, rows => [{ url => "/$evil" . 'x' x 9000, client => $evil, age_ms => -1 }, 'row'] } });
	my ($status, $out, $err) = run('--once', '-i', 0.1, playing(("HTTP/1.0 200 OK\r\n\r\n$odd") x 3));
	is $status, 0, 'a status that is odd everywhere is shown' or diag $err;
	is $err, '', '... without a warning';
	unlike $out, qr/[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae/, '... and no control character of it';
	like $out, qr/STUCK/, '... the device that hangs, too';
};
waitpid $_, 0 for map { kill TERM => $_; $_ } @players;

subtest 'the screen: any size, and what fits' => sub {
	my $form = Accel::Status->new($url)->ask;
	$form->{running} = { requests => 40, rows => [map { { age_ms => $_, sent_bytes => 1000 - $_, client => '::1', state => 'write', method => 'GET', url => "/\x{30c6}\x{30b9}$_" . 'x' x 200, backend => '', device => '/srv/9' } } 1 .. 40] };
	$form->{devices} = [map { { device => "8:$_", mount => "/srv/$_", busy => 1, queued => $_, oldest_ns => $_ * 1e6, refused => 0, stuck => 0 } } 1 .. 9];
	my %view = (status => $form, where => $url, sort => 'age');
	for my $size ([80, 24], [80, 10], [40, 24], [200, 60], [100, 4]) {
		my ($columns, $rows) = @$size;
		my @lines = Accel::Top::Screen::lines(\%view, $columns, $rows, 0);
		cmp_ok scalar @lines, '<=', $rows, "$columns x $rows: no more rows";
		is_deeply [grep { Accel::Top::Screen::width($_) > $columns } @lines], [], '... and none is too long';
		like $lines[-1], qr/^q quit/, '... keys at the end';
	}
	my $advice = { %view, status => { %$form, advice => [{ id => 'equal', seen => 'word ' x 30, do => 'Do the last thing.' }] } };
	like join("\n", Accel::Top::Screen::lines($advice, 80, 40, 0)), qr/^! equal: word .*\n  word .*\n  word Do the last thing\.$/m, 'advice is not cut';
	my $text = join "\n", Accel::Top::Screen::lines(\%view, 80, 24, 0);
	like $text, qr/^ *AGE .* REQUEST \(\d+ of 40\)/m, 'a table that is cut says so';
	like $text, qr{^/srv/9 \(8:9\)}m, 'devices have their mount points';
	like $text, qr/^ +40 ms /m, 'the longest request comes first';
	like join("\n", Accel::Top::Screen::lines({ %view, sort => 'sent' }, 80, 24, 0)), qr/^ +1 ms /m, '... or the one with most bytes';
};

subtest 'the hint' => sub {
	my $form = Accel::Status->new($url)->ask;
	my %calm = (status => $form, rates => Accel::Status::Form::rates($form, { %$form, time => $form->{time} + 1 }), lanes => { disks => { vda => { util => 95 } } });
	my $hint = sub (%change) { Accel::Top::Hint::sentence({ %calm, status => { %$form, %change } }) };
	is $hint->(), '', 'none without a reason, even if a disk is busy';
	my %full = (pools => [{ name => 'read', threads => 16, busy => 16, queued => 3 }]);
	like $hint->(%full), qr/^the disk vda is the limit; tuning.md: The disk is at 100 %\z/, 'a disk that is busy, and threads that wait for it';
	$calm{lanes} = { disks => { vda => { util => 50 } } };
	like $hint->(%full), qr/^all 16 read threads are busy and 3 jobs wait; .*: All threads/, 'threads';
	like $hint->(%full, devices => [{ device => '0:53', mount => '', stuck => 1 }]), qr/^a device is stuck: 0:53; .*: Pages hang/, 'a stuck device comes first';
	my %short = (time => $form->{time} + 2, memory => { %{ $form->{memory} }, refault_bytes => $form->{memory}{refault_bytes} + 24e6, pages_gone => 8, loop_waits => 2, stalled_ns => ($form->{memory}{stalled_ns} // 0) + 1e8 });
	{
		local $calm{rates} = Accel::Status::Form::rates($form, { %$form, %short });
		like $hint->(%full), qr/^memory is short: .* again, 12 MB\/s; .*: Memory is short\z/, 'memory, before the disk that has to read it all again';
		my ($line) = grep { $_->[1] =~ /^memory / } Accel::Top::Screen::memory_line({ memory => { limit_bytes => 50e6, used_bytes => 49e6, hotset_bytes => 3e6, loop_waits => 2 } }, $calm{rates});
		is_deeply $line, ['bad', 'memory 49 MB of 50 MB  held 3 MB  again 12 MB/s  gone 4/s  stalled 5.0 %  ! loop waits 2'], '... and its line';
	}
	$calm{rates}{memory}{refault_bytes_per_s} = 0.9e6;
	is $hint->(), '', 'a few files that are read again are nothing';
	my ($then, $later) = map { Accel::Status::Form::form({ counters => { 'server.requests.read' => 1, 'server.tls.done.tlsv1.3.full' => $_, 'server.tls.done.tlsv1.2.resumed' => 3 * $_,
		'server.tls.failed' => $_ / 10, 'server.tls.failed.refused' => $_ / 20 } }) } 100, 200;
	$later->{time} = $then->{time} + 10;
	is_deeply [Accel::Top::Screen::tls_line($later, Accel::Status::Form::rates($then, $later))], [['bad', 'TLS 40 handshakes/s  resumed 75.0 %  failed 1/s  ! refused 0.50/s']], 'TLS';
	is_deeply [Accel::Top::Screen::tls_line($then, undef)], [['', 'TLS 400 handshakes, 300 resumed, 10 failed']], '... since the start';
	is_deeply [Accel::Top::Screen::tls_line(Accel::Status::Form::form({ counters => { 'server.requests.read' => 1 } }), undef)], [], '... only where there is some';
	is_deeply [Accel::Top::Screen::memory_line({ memory => undef }, $calm{rates})], [], 'a server that does not tell has no line';
	like $hint->(applications => [{ name => 'a', waiting => 0 }, { name => 'b', waiting => 2 }]), qr/^2 requests wait for b; .*: The application/, 'an application';
	$calm{rates} = { stages => [{ name => 'write', whole => 0, count => 5, p99_ns => 3e9 }, { name => 'stat', whole => 0, count => 5, p99_ns => 1e6 }, { name => 'total', whole => 0, count => 5, p99_ns => 4e9 }] };
	like $hint->(), qr/^most time of slow requests is write; .*: The network/, 'the longest stage';
	my $doc = slurp("$FindBin::Bin/../../doc/tuning.md");
	my $code = slurp("$FindBin::Bin/../../scripts/lib/Accel/Top/Hint.pm");
	like $doc, qr/^## \Q$_\E$/m, "the chapter $_" for $code =~ /(?:chapter\(|=> )'([A-Z][^']+)'/g;
};

subtest 'applications' => sub {
	my $out = { name => 'unix:/a', load => 0, waiting => 0, stages => [] };
	my $text = sub ($columns, %change) { Accel::Top::Screen::application_table({ applications => [{ %$out, state => 'up', reason => '', %change }] }, undef, $columns)->{rows}[0] };
	is_deeply [map { $_->[0], $_->[1] =~ /(\S+)$/ } $text->(100)], ['', 'up'], 'one that is well';
	is_deeply [map { $_->[0], $_->[1] =~ /(!.*)$/ } $text->(120, state => 'check-failed', reason => 'HTTP 500')], ['bad', '! check-failed: HTTP 500'], 'one that is out, and why';
	cmp_ok length $text->(80, state => 'check-failed', reason => 'HTTP 500')->[1], '<=', 80, '... in the width that there is';
	like $text->(100, state => '', workers_that_find_it_down => 2)->[1], qr/! 2$/, 'a server that does not tell the state has a number of workers';
};

subtest 'live: keys, window size, restored' => sub {
	my $pty = Test::Pty->start([$top, '-i', 0.2, $url], env => { NO_COLOR => 1 });
	ok $pty->wait_for(qr/requests\/s.*q quit/s), 'it draws' or diag $pty->bytes;
	is scalar(() = $pty->screen), 24, 'all rows of the window';
	unlike $pty->bytes, qr/\e\[[\d;]*[1-9]m/, 'NO_COLOR: no colours';
	ok !$pty->is_cooked, 'keys come one by one';
	$pty->forget;
	$pty->type('?');
	ok $pty->wait_for(qr/any key goes back/), '? explains';
	$pty->type(' p');
	ok $pty->wait_for(qr/PAUSED/), 'p pauses';
	$pty->type('p');
	$pty->type('s');
	ok $pty->wait_for(qr/sort by sent/), 's sorts';
	$pty->forget;
	$pty->resize(40, 100);
	ok eventually(sub { $pty->drain(0.1); 40 == (() = $pty->screen) }), 'a larger window is filled';
	$pty->type("\e[A");
	$pty->type('q');
	is $pty->finish, 0, 'q ends it; an arrow key does nothing';
	ok $pty->is_cooked, 'the terminal is as it was';
	like $pty->bytes, qr/\e\[\?25h\e\[\?1049l\z/, '... with its cursor and its text';
};

subtest 'live: signals' => sub {
	for my $name (qw(INT TERM HUP QUIT)) {
		my $pty = Test::Pty->start([$top, '-i', 0.2, $url]);
		$pty->wait_for(qr/q quit/);
		$name eq 'INT' ? $pty->type("\cC") : $pty->signal($name);
		my $status = $pty->finish // -1;
		is $status & 127, POSIX->can("SIG$name")->(), "$name ends it, as seen by its parent";
		ok $pty->is_cooked, '... with the terminal as it was';
	}
	my $pty = Test::Pty->start([$top, '-i', 0.2, $url]);
	$pty->wait_for(qr/q quit/);
	$pty->forget;
	$pty->signal('TSTP');
	ok eventually(sub { $pty->drain(0); slurp('/proc/' . $pty->pid . '/stat') =~ /\) T / }), 'TSTP stops it';
	ok $pty->is_cooked, '... with the terminal as it was';
	$pty->forget;
	$pty->signal('CONT');
	ok $pty->wait_for(qr/\e\[\?1049h.*q quit/s), 'CONT draws it again';
	$pty->type('q');
	is $pty->finish, 0, 'and it ends';
};

subtest 'live: a server that vanishes and comes back' => sub {
	my $page = $srv->fetch('/server-status?json')->{body};
	my $answer = "HTTP/1.0 200 OK\r\n\r\n$page";
	my $at = playing(($answer) x 3, ("HTTP/1.0 500 no\r\n\r\n") x 3, '', ($answer) x 200);
	my $pty = Test::Pty->start([$top, '-i', 0.1, '--record', "$dir/vanished", $at]);
	ok $pty->wait_for(qr/! http:\S+: status 500/), 'the error is shown';
	$pty->forget;
	ok $pty->wait_for(qr/requests\/s/), '... and then the server again';
	$pty->type('q');
	is $pty->finish, 0, 'q ends it';
	my @rows = map { $json->decode($_) } split /\n/, slurp("$dir/vanished");
	ok scalar(grep { ($_->{error} // '') =~ /status 500/ } @rows), 'the record has the error';
	ok $rows[-1]{server}, '... and what came after it';
	waitpid $_, 0 for map { kill TERM => $_; $_ } pop @players;
};

done_testing;
