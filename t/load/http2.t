#!/usr/bin/perl
# accel-load speaks HTTP/2 with nghttpd and nginx, over TLS and in clear: bodies that are verified, streams, priorities, requests beside others, servers
# that end connections or go away, and the report.

use v5.36;
use IPC::Open3 qw(open3);
use IO::Socket::INET;
use JSON::PP qw(decode_json);
use List::Util qw(sum0);
use Symbol qw(gensym);
use Test::AccelLoad qw(adds_up errors);
use Test::More;
use Test::Util qw(build_dir eventually free_port need_program put slurp temp_tree);
use Test::NginxModule;
use Test::Tls;

{
	# A server that ends with this process. PORT among its words is a free port.
	package Peer;
	use parent -norequire, 'Accel::Peer';

	sub start ($class, @command) {
		my $self = bless { name => $command[0], kind => $command[0], owner => $$, dir => File::Temp->newdir, port => Test::Util::free_port() }, $class;
		$self->{command} = [map { s/PORT/$self->{port}/r } @command];
		return $self->again;
	}

	sub again ($self) {
		$self->_spawn(@{ $self->{command} });
		$self->_wait_for_port(time + 20);
		return $self;
	}
}

my $bin = build_dir() . '/bin';
my $dir = temp_tree();
my $root = temp_tree();
my $cert = Test::Tls::certificate($dir, 'x');
for my $size (qw(1k 100k 3m)) {
	is system("$bin/accel-pool make -q --spec 1x4x$size $root/$size && $bin/accel-pool list --prefix /$size/ $root/$size >>$dir/urls"), 0, "files of $size";
}
system 'chmod', '-R', 'a+rX', $root;
put("$root/empty", '');
my $small = '/1k/1k/0000/0000.bin';
my $long = '/3m/3m/0000/0000.bin';

my $ng = Test::NginxModule->start(<<"CONF", root => $root, without => 1);
log_format two escape=none '\$connection \$server_protocol \$scheme \$host \$request_method \$uri \$status \$http_priority|\$http_user_agent|\$http_x_y|\$http_range|';
access_log /run/two.log two;
ssl_certificate $cert->{pem};
ssl_certificate_key $cert->{key};
keepalive_requests 100000;
server { listen 8080 ssl http2; root /srv/www; location = /gone { return 404; } }
server { listen 8081 ssl; root /srv/www; }
server { listen 8082 http2; root /srv/www; }
CONF
my $log = "$ng->{dir}/two.log";
my %ng = (tls => "https://127.0.0.1:$ng->{ports}{8080}", clear => $ng->url2);
my @nghttpd = (need_program('nghttpd', 'nghttp2-server'), '-v', '-a', '127.0.0.1', '-d', "$root");
my $secure = Peer->start(@nghttpd, 'PORT', $cert->{key}, $cert->{pem});
my $clear = Peer->start(@nghttpd, '--no-tls', 'PORT');
my %at = (map({ ("nginx $_" => $ng{$_}) } keys %ng), 'nghttpd tls' => "https://127.0.0.1:$secure->{port}", 'nghttpd clear' => "http://127.0.0.1:$clear->{port}");

sub said (@args) {
	my $pid = open3(my $in, my $out, my $err = gensym, "$bin/accel-load", '-q', @args);
	close $in;
	my ($text, $complaint) = map { local $/; readline($_) // '' } $out, $err;
	waitpid $pid, 0;
	return ($? >> 8, $text, $complaint);
}

sub run (@args) {
	my ($status, $out, $err) = said('--json', '--http2', @args);
	my $r = eval { decode_json($out) } // die "accel-load @args: no report: $out$err\n";
	adds_up($r, "@args");
	adds_up($r->{beside}, "beside: @args") if $r->{beside};
	return { %$r, exit => $status, said => $err };
}

sub counts ($r, @names) { return join ' ', map { "$_ $r->{$_}" } @names }

# The lines of nginx's log about a run of n requests.
sub logged ($n, @args) {
	truncate $log, 0;
	my $r = run(@args);
	eventually(sub { split(/\n/, slurp($log)) >= $n });
	return ($r, split /\n/, slurp($log));
}

# ---------------------------------------------------------------- servers that answer

for my $name (sort keys %at) {
	my $url = $at{$name};
	my @list = ('--verify=pattern', '-u', "$dir/urls", "$url/");
	subtest $name => sub {
		my $r = run('-c', 3, '-n', 120, @list);
		is $r->{exit}, 0, 'a stream at a time: each byte is right' or diag errors($r);
		is counts($r, qw(answered connects)), 'answered 120 connects 3', '... on kept connections';
		is $r->{handshakes}, $name =~ /tls/ ? 3 : 0, '... with a handshake each, of TLS';
		$r = run('-c', 3, '-n', 240, '--streams', 20, '--threads', 2, @list);
		is $r->{exit}, 0, '20 streams, two threads: each byte is right' or diag errors($r);
		is counts($r, qw(answered connects)), 'answered 240 connects 3', '... on as many connections';
		$r = run('-n', 1500, '--streams', 1000, "$url$small");
		is counts($r, qw(exit answered connects)), 'exit 0 answered 1500 connects 1', 'more streams than the server allows';
		$r = run('-c', 2, '-n', 40, '--streams', 4, '--close', @list);
		is counts($r, qw(exit answered connects)), 'exit 0 answered 40 connects 10', 'connections of four requests';
		$r = run('-c', 2, '-n', 60, '--streams', 3, '--abort=100', "$url$long");
		is counts($r, qw(exit aborted connects)), 'exit 0 aborted 60 connects 2', 'answers that are left, on kept connections';
		$r = run('-c', 2, '-r', 500, '-n', 100, '--streams', 10, "$url$small");
		is counts($r, qw(exit answered connects)), 'exit 0 answered 100 connects 2', 'an open loop';
		cmp_ok $r->{seconds}, '>=', 0.198, '... by the clock';
		$r = run('-n', 20, '--streams', 5, '--head', "$url$long");
		is counts($r, qw(exit answered body_bytes)), 'exit 0 answered 20 body_bytes 0', 'HEAD';
		$r = run('-n', 20, '--streams', 5, "$url/empty");
		is counts($r, qw(exit answered body_bytes)), 'exit 0 answered 20 body_bytes 0', 'an empty file';
		$r = run('-n', 20, '--streams', 5, "$url/none");
		is "$r->{exit} " . errors($r), '1 status 20', 'a status that is not expected';
		$r = run('-n', 20, '--streams', 5, '--status=404', "$url/none");
		is $r->{exit}, 0, '... and one that is';
	};
}

subtest 'what nginx sees' => sub {
	my (undef, @line) = logged(2, '-n', 2, "$ng{clear}$small");
	like $line[0], qr{^\d+ HTTP/2\.0 http 127\.0\.0\.1 GET \Q$small\E 200 \|accel-load\|\|\|$}, 'in clear';
	(undef, @line) = logged(1, '-n', 1, '--priority', 'u=1,i', '-H', 'X-Y: Z z', '-H', 'Host: www.example.org', '-H', 'User-Agent: me', "$ng{tls}$small");
	like $line[0], qr{^\d+ HTTP/2\.0 https www\.example\.org GET \Q$small\E 200 u=1,i\|me\|Z z\|\|$}, 'over TLS, with fields and a priority';
	(undef, @line) = logged(1, '-n', 1, '--head', "$ng{tls}$small");
	like $line[0], qr{ HEAD }, 'HEAD';
	(undef, @line) = logged(1, '-n', 1, '--range', '5-9', '--status', 206, "$ng{tls}$small");
	like $line[0], qr{ 206 .*\|bytes=5-9\|$}, 'a part';
	my $r = run('-c', 2, '-n', 100, '--streams', 10, '--range=random:1k', '--verify=pattern', "$ng{tls}$long");
	is $r->{exit}, 0, 'parts of a file' or diag errors($r);
};

subtest 'connections that nginx ends' => sub {
	my $few = Test::NginxModule->start('keepalive_requests 10; server { listen 8080 http2; root /srv/www; }', root => $root, without => 1);
	my $r = run('-c', 2, '-n', 200, '--streams', 5, '--verify=pattern', "http://127.0.0.1:$few->{port}$small");
	is "$r->{exit} $r->{answered} " . errors($r), '0 200 ', 'no request is lost';
	cmp_ok $r->{connects}, '>=', 14, '... on new connections' or diag counts($r, qw(connects goaways again));
	cmp_ok $r->{goaways}, '>=', 13, '... after GOAWAY';
};

# ---------------------------------------------------------------- hot requests beside others

subtest 'beside' => sub {
	put("$dir/cold", join '', map { "/3m/3m/0000/000$_.bin\n" } 0 .. 3);
	my @args = ('-c', 2, '--streams', 4, '--beside', "$dir/cold", '--beside-streams', 3);
	for my $more ([], ['-r', 300], ['--threads', 2]) {
		my ($r, @line) = logged(1, @args, @$more, '-d', 0.5, '--verify=pattern', "$ng{tls}$small");
		is $r->{exit}, 0, "@$more: no errors" or diag errors($r), errors($r->{beside});
		my %of;
		$of{ / GET \/3m/ ? 'beside' : 'hot' }{ (split)[0] }++ for @line;
		is join(' ', sort keys %{ $of{hot} }), join(' ', sort keys %{ $of{beside} }), '... on the same connections';
		is keys %{ $of{hot} }, 2, '... two';
		cmp_ok $r->{beside}{answered}, '>', 5, '... others are answered';
		cmp_ok abs($r->{answered} - sum0(values %{ $of{hot} })), '<=', 8, '... and counted apart';
		cmp_ok $r->{beside}{unanswered}, '<=', 6, '... three at a time on each connection';
		cmp_ok $r->{beside}{unanswered}, '>=', 1, '... to the end';
		cmp_ok $r->{body_bytes}, '==', $r->{answered} * 1024, '... with their bytes';
	}
	my (undef, @line) = logged(50, @args, '-d', 0.3, '--priority', 'u=1', '--beside-priority', 'u=6,i', "$ng{clear}$small");
	is_deeply [grep { ! m{ GET /1k\S+ \d+ u=1\|| GET /3m\S+ \d+ u=6,i\|} } @line], [], 'priorities of both';
	put("$dir/gone", "/gone\n");
	my $r = run('-n', 50, '--beside', "$dir/gone", "$ng{tls}$small");
	is "$r->{exit} " . errors($r), '1 ', 'errors of the others are theirs';
	like errors($r->{beside}), qr/^status \d+$/, '... and errors';
	put("$dir/gone", "/gone 404\n");
	$r = run('-d', 0.3, '--warm-up', 0.2, '--beside', "$dir/gone", "$ng{tls}$small");
	is "$r->{exit} " . errors($r), '0 ', 'an expected status, and a warm-up';
	$r = run('-n', 100, '--abort=50', '--beside', "$dir/cold", "$ng{tls}$long");
	is "$r->{exit} $r->{beside}{aborted}", '0 0', 'they are not left';
};

# ---------------------------------------------------------------- servers that do not

subtest 'errors' => sub {
	my $r = run('-c', 2, '-n', 6, "https://127.0.0.1:$ng->{ports}{8081}/");
	is errors($r), 'tls 6', 'a server that takes no h2';
	like $r->{said}, qr/^accel-load: handshake: tlsv1 alert no application protocol$/m, '... is said';
	my $old = Peer->start(Test::Tls::openssl(), 's_server', '-accept', 'PORT', '-www', '-cert', $cert->{pem}, '-key', $cert->{key});
	$r = run('-c', 2, '-n', 6, "https://127.0.0.1:$old->{port}/");
	is errors($r), 'tls 6', 'one that knows no ALPN';
	like $r->{said}, qr/^accel-load: handshake: the server does not take the protocol \(ALPN\)$/m, '... is said';
	$r = run('-c', 2, '-n', 6, '--streams', 3, "http://127.0.0.1:$ng->{ports}{8081}/");
	is errors($r), 'malformed 6', 'a server of HTTP/1.1';
	$r = run('-c', 2, '-n', 6, '--streams', 3, "https://127.0.0.1:$ng->{ports}{8082}/");
	is errors($r), 'tls 6', 'https to a server in clear';
	my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16) // die "listen: $!";
	for my $scheme (qw(http https)) {
		$r = run('-c', 2, '-n', 6, '--streams', 3, '-t', 0.2, "$scheme://127.0.0.1:" . $mute->sockport . '/');
		is errors($r), 'timeout 6', "$scheme: a server that says nothing";
	}
};

subtest 'a server that goes away and comes back' => sub {
	my $peer = Peer->start(@nghttpd, '--no-tls', 'PORT');
	my $pid = open my $out, '-|', "$bin/accel-load", '--json', '--http2', '-q', '-c', 4, '--streams', 10, '-d', 60, "http://127.0.0.1:$peer->{port}$small" or die "accel-load: $!";
	my $answers = sub { -s "$peer->{dir}/out" > 100_000 };
	ok eventually($answers), 'it answers';
	kill KILL => $peer->{pid};
	ok eventually(sub { !IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $peer->{port}) }), 'it is killed';
	truncate "$peer->{dir}/out", 0;
	$peer->again;
	ok eventually($answers), 'it comes back, and answers again';
	kill INT => $pid;
	my $r = decode_json(do { local $/; <$out> });
	close $out;
	adds_up($r, 'killed');
	like errors($r), qr/\A(?:(?:refused|reset|short) \d+ ?)+\z/, 'requests on its connections, and those until it is back, are errors';
	is $r->{connects}, 8, '... of four connections before and four after';
	cmp_ok $r->{unanswered}, '<=', 40, '... some are under way at the end';
};

subtest 'command lines that are wrong' => sub {
	for my $row ([qr/need --http2/, '--streams', 2], [qr/need --http2/, '--priority', 'u=1'], [qr/need --http2/, '--beside', 'x'], [qr/need --beside/, '--http2', '--beside-streams', 2],
		[qr/expected u=0 to u=7/, '--http2', '--priority', 'u=8'], [qr/expected 1 to 1000/, '--http2', '--streams', 1001], [qr/cannot be used/, '--http2', '-p', 2],
		[qr/cannot be used/, '--http2', '--fastcgi'], [qr/cannot be used/, '--http2', '--hold', '--streams', 2], [qr/of one host/, '--http2', $ng{tls}]) {
		my ($why, @args) = @$row;
		my ($status, undef, $err) = said('-d', 1, @args, "$ng{clear}$small");
		is $status, 64, "@args";
		like $err, $why, '... says why';
	}
	my ($status) = said('--http2', '--beside', "$dir/none", "$ng{clear}$small");
	is $status, 66, 'a list that is not there';
};

subtest 'connections that are held' => sub {
	my $pid = open3(my $in, my $out, undef, "$bin/accel-load", '-q', '--http2', '--hold', '-c', 5, "$ng{tls}$small");
	is scalar <$out>, "held 5 answered 5 errors 0\n", 'each has an answer';
	print $in "\n";
	is scalar <$out>, "held 5 answered 10 errors 0\n", '... and another';
	close $in;
	waitpid $pid, 0;
	is $? >> 8, 0, 'no errors';
};

# ---------------------------------------------------------------- the report

subtest 'the report' => sub {
	put("$dir/cold", "$long\n");
	my @args = ('--http2', '--streams', 4, '--beside', "$dir/cold");
	my ($status, $text) = said('-n', 100, @args, "$ng{tls}$small");
	like $text, qr/^\d+ requests beside, \d+ answered: [\d.]+ requests\/s, [\d.]+ MB\/s$/m, 'others';
	like $text, qr/^beside (?: +[\d.]+){8}$/m, '... and their time' or diag $text;
	my @file = map { put("$dir/$_.json", (said('--json', '-n', 100 * $_, @args, "$ng{clear}$small"))[1]) } 1, 2;
	my @run = map { decode_json(slurp($_)) } @file;
	my $sum = decode_json((said('--merge', '--json', @file))[1]);
	is $sum->{answered}, 300, 'merged';
	is $sum->{client}{streams}, 4, '... with the streams of one';
	is $sum->{beside}{$_}, $run[0]{beside}{$_} + $run[1]{beside}{$_}, "... and $_ of others" for qw(requests answered body_bytes);
	is_deeply $sum->{beside}{status}, { 200 => $sum->{beside}{answered} }, '... and their statuses';
	is sum0(map { $_->[1] } @{ $sum->{beside}{histograms}{latency}{buckets} }), $sum->{beside}{answered}, '... and their times';
	is decode_json((said('--merge', '--json', put("$dir/one.json", (said('--json', '-n', 1, '--http2', "$ng{clear}$small"))[1])))[1])->{beside}, undef, 'without others';
};

done_testing;
