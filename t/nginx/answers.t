# An accelerator that answers late, in pieces, or not what was asked.  The test is the accelerator.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Http qw(request_head);
use Test::NginxModule;
use Test::Util qw(eventually free_port put slurp);
use Accel::Slowfs;
use File::Temp ();
use IO::Select;
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use Socket ();
use Time::HiRes qw(time);

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $tree = File::Temp->newdir('nginx-peer-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/disk";
put("$tree/disk/$_", 'x' x 3000) for qw(a b c);
put("$tree/disk/long$_", 'x' x 300_000) for 1 .. 3;
my $slow = Accel::Slowfs->start(source => "$tree/disk", spindles => 16, lookup_ms => 0, read_ms => 0, no_open => 1);
my $disk = $slow->dir;
my $listen;

use constant { FCGI_END => 3, FCGI_STDOUT => 6, FCGI_RESULT => 10 };
local $SIG{PIPE} = 'IGNORE';
sub record ($type, $id, $content = '', $pad = 0) { return pack('C2n2Cx', 1, $type, $id, length $content, $pad) . $content . 'p' x $pad }
sub answer ($status = '200 OK') { return record(FCGI_STDOUT, 1, "Status: $status\r\n\r\n", 3), record(FCGI_STDOUT, 1), record(FCGI_END, 1, "\0" x 8) }

sub nginx () {
	$slow->forget;
	unlink "$tree/socket";
	$listen = IO::Socket::UNIX->new(Local => "$tree/socket", Listen => 10) // die "socket: $!";
	chmod 0777, "$tree/socket";
	return Test::NginxModule->start("large_client_header_buffers 4 128k; server { listen 8080; root $disk; stat_accel unix:$tree/socket; stat_accel_open off; stat_accel_remember 0; stat_accel_deadline 20s; location /threads/ { alias $disk/; aio threads; } location /late/ { alias $disk/; stat_accel_deadline 200ms; } location = /counters { stat_accel_status; } location /anyway/ { alias $disk/; stat_accel_late off; } location /again/ { alias $disk/; error_page 503 = \@again; } location \@again { rewrite ^/again/(.*) /\$1 break; } }",
		root => $tree);
}
sub leave ($c) { setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0; close $c }
sub status ($c, $seconds = 8) {
	my ($raw, $until) = ('', time + $seconds);
	while (IO::Select->new($c)->can_read($until - time)) { sysread $c, $raw, 65536, length $raw or last }
	return $raw =~ m{^HTTP/1.1 (\d+)} ? $1 : "nothing in $seconds s";
}
# Bytes of the link, until they match.
sub bytes ($link, $match) {
	my ($in, $until) = ('', time + 8);
	while ($in !~ $match) {
		IO::Select->new($link)->can_read($until - time) or return "only: $in";
		sysread $link, $in, 65536, length $in or return "ended: $in";
	}
	return $in;
}
sub accepted () { return IO::Select->new($listen)->can_read(8) ? $listen->accept : die "nginx does not connect\n" }
sub asked ($name) { my $link = accepted(); like bytes($link, qr/WARM_PATH.*\x05\0\x01\0{4}\z/s), qr/\Q$disk\E\/$name/, "asked for $name"; return $link }
sub asked_on ($link, $name) { like bytes($link, qr/WARM_PATH.*\x05\0\x01\0{4}\z/s), qr/\Q$disk\E\/$name/, "... asked for $name" }
sub warm ($name) { slurp("$disk/$name") }
sub quiet ($ng) { unlike $ng->log, qr/\[(?:alert|emerg|error)\]/, 'no error is logged' }

subtest 'one that reads no more' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = asked('a');
	shutdown $link, 0;
	is status($c), 200, 'the file is served without it';
	like $ng->log, qr/\[error\] .*stat_accel/, '... and it is said';
};

subtest 'an answer in pieces of any size' => sub {
	my $ng = nginx();
	my $link;
	for my $size (1, 7, 8, 9, 30, 1000) {
		$slow->forget;
		my $c = $ng->begin('/a');
		$link ? bytes($link, qr/WARM_PATH.*\x05\0\x01\0{4}\z/s) : ($link = asked('a'));
		warm('a');
		for (unpack "(a$size)*", join '', answer()) { syswrite $link, $_; select undef, undef, undef, 0.005 }
		is status($c), 200, "$size: the file is served";
		is $ng->last->{status}, 'warmed', '... warmed';
	}
	quiet($ng);
};

subtest 'two answers' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = asked('a');
	warm('a');
	syswrite $link, join '', answer(), answer();
	is status($c), 200, 'the file is served';
	like $ng->log, qr/bytes that are not an answer in FastCGI/, '... and the accelerator not asked any more';
};

subtest 'an answer and the values that were asked for, at once' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = asked('a');
	like bytes($link, qr/FCGI_MPXS_CONNS/), qr/FCGI_MPXS/, 'after a second nginx asks whether it is alive';
	warm('a');
	syswrite $link, join '', answer(), record(FCGI_RESULT, 0);
	is status($c), 200, 'the file is served';
	$slow->forget;
	$c = $ng->begin('/b');
	like bytes($link, qr/WARM_PATH.*\x05\0\x01\0{4}\z/s), qr/\Q$disk\E\/b/, 'the connection is kept';
	warm('b');
	syswrite $link, join '', answer();
	is status($c), 200, '... and answers';
	quiet($ng);
};

# Its threads read what comes after.
subtest 'nginx sends in threads' => sub {
	my $ng = nginx();
	my $link;
	for my $case (['/threads/long1', 'HTTP_RANGEbytes=0-262143'], ['/threads/long2', 'HTTP_RANGEbytes=7-262150', Range => 'bytes=7-290000'], ['/long3', '']) {
		my ($path, $range, @header) = @$case;
		my $c = $ng->connect;
		syswrite $c, request_head('GET', $path, @header);
		$link //= accepted();
		my ($asked) = bytes($link, qr/WARM_PATH.*\x05\0\x01\0{4}\z/s) =~ /(HTTP_RANGEbytes=[0-9-]*)/;
		is $asked // '', $range, "$path: the bytes that are asked for";
		warm($path =~ s{.*/}{}r);
		syswrite $link, join '', answer();
		like status($c), qr/^20[06]$/, '... and it is sent';
	}
};

subtest 'who asks again while an answer is handed out' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/again/a');
	my $link = asked('a');
	syswrite $link, join '', answer('503 Service Unavailable');
	asked_on($link, 'a');
	warm('a');
	syswrite $link, join '', answer();
	is status($c), 200, 'gets an answer of its own';
	quiet($ng);
};

subtest 'what is late' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = accepted();
	like bytes($link, qr/\x05\0\x01\0{4}\z/), qr/\x09\x03WARM_LATE503/, 'the accelerator refuses it';
	my $anyway = $ng->begin('/anyway/a');
	my $second = accepted();
	unlike bytes($second, qr/\x05\0\x01\0{4}\z/), qr/WARM_LATE/, '... but not if nginx opens it';
	warm('a');
	syswrite $_, join '', answer() for $link, $second;
	is status($_), 200, 'in time' for $c, $anyway;
};

subtest 'one that is replaced' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = asked('a');
	warm('a');
	syswrite $link, join '', answer();
	is status($c), 200, 'a is answered';
	$c = $ng->begin('/b');
	asked_on($link, 'b');
	like bytes($link, qr/FCGI_MPXS_CONNS/), qr/FCGI_MPXS/, 'after a second nginx asks whether it is alive';
	close $link;
	$link = asked('b');
	like bytes($link, qr/FCGI_MPXS_CONNS/), qr/FCGI_MPXS/, '... and so with the new one';
	warm('b');
	syswrite $link, join '', answer();
	is status($c), 200, 'b is answered';
	ok !IO::Select->new($link)->can_read(1.3), 'nothing is asked while nothing is out';
	quiet($ng);
};

my $abort = qr/\A\x01\x02\0\x01\0{4}\z/;

subtest 'one for which nobody waits any more' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = asked('a');
	my $joined = $ng->begin('/a');
	ok eventually(sub { $ng->get('/counters')->{body} =~ /questions\.joined: 1$/m }), 'two wait for it';
	leave($c);
	is status($ng->begin('/late/a')), 503, '... and a third, until its deadline';
	ok !IO::Select->new($link)->can_read(0), 'nothing is said while one waits';
	leave($joined);
	like bytes($link, $abort), $abort, 'the last has left: it is called back';
	$c = $ng->begin('/a');
	my $second = asked('a');                # nobody waits for what was called back
	syswrite $link, record(FCGI_END, 1, "\0" x 8);
	warm('a');
	syswrite $second, join '', answer();
	is status($c), 200, 'who asks again is answered';
	my %c = map { $_ => $ng->begin("/$_") } qw(b c);
	for ($link, $second) { like bytes($_, qr/WARM_PATH.*\x05\0\x01\0{4}\z/s), qr/WARM_PATH/, 'both connections are used again' }
	warm($_) for qw(b c);
	syswrite $_, join '', answer() for $link, $second;
	is status($_), 200, '... and answer' for values %c;

	$slow->forget;
	$c = $ng->begin('/late/a');
	my ($asked) = IO::Select->new($link, $second)->can_read(8);
	asked_on($asked, 'a');
	is status($c), 503, 'one that is late';
	like bytes($asked, $abort), $abort, '... has left, too';
	quiet($ng);
};

subtest 'one that waits for a connection, and for which nobody waits' => sub {
	my $ng = nginx();
	my %c = (a => $ng->begin('/a'));
	my $link = asked('a');
	unlink "$tree/socket";
	is status($ng->begin('/late/b')), 503, 'it is late before it is asked';
	$c{c} = $ng->begin('/c');
	warm('a');
	syswrite $link, join '', answer();
	is status($c{a}), 200, 'a is answered';
	asked_on($link, 'c');
	warm('c');
	syswrite $link, join '', answer();
	is status($c{c}), 200, 'c is answered';
	quiet($ng);
};

subtest 'more questions than connections' => sub {
	my $ng = nginx();
	my %c = (a => $ng->begin('/a'));
	my $link = asked('a');
	unlink "$tree/socket";                  # no more connections
	$c{$_} = $ng->begin("/$_") for qw(b c);
	warm('a');
	syswrite $link, join '', answer();
	is status($c{a}), 200, 'a is answered';
	asked_on($link, 'b');
	close $link;
	is status($c{$_}), 200, "$_ is served without it" for qw(b c);
	is scalar(() = $ng->log =~ /\[error\]/g), 1, '... and it is said once';
};

subtest 'a name that is too long for a question' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/a');
	my $link = asked('a');
	my %seen;
	# after a moment nothing is looked up without asking
	ok eventually(sub { $seen{ $ng->get('/' . 'n' x 70_000)->{status} }++; $ng->get('/counters')->{body} =~ /questions\.refused: [1-9]/ }), 'is not asked for';
	is join(' ', keys %seen), 404, '... and not there';
	warm('a');
	syswrite $link, join '', answer();
	is status($c), 200, 'the accelerator is asked as before';
	unlike $ng->log, qr/\[error\] .*stat_accel/, '... and not said to be down';
};

subtest 'a worker ends while it is asked' => sub {
	my $ng = nginx();
	my $link;
	my $c = $ng->begin('/late/a');
	$link = asked('a');
	is status($c), 503, 'who asked has left';
	kill 'HUP', $ng->{pid};
	ok eventually(sub { $ng->log =~ /worker process \d+ exited/ }), 'the worker ends';
	unlike $ng->log, qr/\[alert\]/, 'no alert';
};

subtest 'one that is not there' => sub {
	$slow->forget;
	my $port = free_port();
	my $ng = Test::NginxModule->start("server { listen 8080; root $disk; stat_accel 127.0.0.1:$port; stat_accel_open off; }", root => $tree);
	is status($ng->begin('/a')), 200, 'the file is served';
	my $there = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:$port", ReuseAddr => 1) // die "listen: $!";
	for (1 .. 2) {
		ok IO::Select->new($there)->can_read(8), 'nginx looks whether it is back';
		$there->accept;
	}
	is scalar(() = $ng->log =~ /\[error\]/g), 1, 'it is said once';
};

$slow->stop;
done_testing;
