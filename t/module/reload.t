# All modules at once, while the configuration is loaded again and again and clients leave in the middle of their requests.
# Each request of a client that stays has its answer, and afterwards the server has the descriptors and processes it had.
# STRESS_SECONDS: for how long.

use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::INET ();
use MIME::Base64 qw(encode_base64);
use POSIX ();
use Test::More;
use Test::Server;
use Test::Util qw(eventually find_program put slurp);
use Time::HiRes qw(time);

my $sanitizer = ($ENV{B} // '') =~ /san/;
my $seconds   = $ENV{STRESS_SECONDS} // 1;
my $clients   = 6;
my $growth    = $sanitizer ? 200 : 30;  # MiB: caches of files, threads, sanitizers

# ---------------------------------------------------------------- a site with all of it

my $dir = File::Temp->newdir('accel-reload-XXXXXX', TMPDIR => 1);
chmod 0755, $dir;
mkdir "$dir/cache", 0700;
sub file ($name, $bytes, $mode = undef) {
	make_path("$dir/$name" =~ s{/[^/]*\z}{}r);
	put("$dir/$name", $bytes);
	chmod $mode // 0644, "$dir/$name";
}
my $text = join '', map { "Line $_ of a page that is long enough to be compressed.\n" } 1 .. 400;
file('www/index.html', 'front');
file("www/page/$_.html", "$_ $text") for 1 .. 40;
file("www/list/$_.txt", 'x') for 1 .. 50;
file('www/big.html', $text x 60);
file('www/secret/a.txt', 'secret');
file('www/error.html', 'nothing here');
file('www/cgi/hello.cgi', "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\necho hello\n", 0755);
file('www/cgi/slow.cgi', "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nsleep 0.3\necho slow\n", 0755);
file('www/app.php', '<?php header("Content-Type: text/html"); echo str_repeat("php says\n", 500);');
file('icons/a.png', 'icon');
file('htpasswd', 'ann:$apr1$AZixn0Os$gF4vpC0jaBMPhMjw3L8hI1' . "\n");
file('copy.pl', 'open my $o, ">>", $ARGV[0]; while (sysread STDIN, my $b, 65536) { syswrite $o, $b }');

my $php  = find_program('php-cgi');
my $conf = <<"CONF";
server.document-root = "$dir/www"
server.error-handler-404 = "/error.html"
index-file.names = ( "index.html" )
accesslog.filename = "|exec $^X $dir/copy.pl $dir/piped.log"
accesslog.format = "%s %U"
status.statistics-url = "/counters"
url.access-deny = ( "~", ".inc" )
url.redirect = ( "^/old/(.*)" => "/new/\$1" )
url.rewrite-once = ( "^/nice/(.*)" => "/page/\$1.html?nice" )
alias.url = ( "/icons/" => "$dir/icons/" )
auth.backend = "htpasswd"
auth.backend.htpasswd.userfile = "$dir/htpasswd"
auth.require = ( "/secret/" => ( "method" => "basic", "realm" => "r", "require" => "valid-user" ) )
deflate.mimetypes = ( "text/" )
deflate.allowed-encodings = ( "gzip", "br" )
deflate.cache-dir = "$dir/cache"
dir-listing.activate = "enable"
expire.url = ( "/icons/" => "access plus 1 days" )
setenv.add-response-header = ( "X-Site" => "here" )
secdownload.secret = "a-secret"
secdownload.document-root = "$dir/www/"
secdownload.uri-prefix = "/sec/"
userdir.path = "public_html"
userdir.include-user = ( "nobody-here" )
server.kbytes-per-second = 100000
\$HTTP["url"] =^ "/cgi/" { cgi.assign = ( ".cgi" => "" ) }
CONF
$conf .= qq{fastcgi.server = ( ".php" => (( "bin-path" => "$php", "socket" => "$dir/php.sock", "max-procs" => 1 )) )\n} if $php;

my $zip = 'Accept-Encoding: gzip';
sub user { return 'Authorization: Basic ' . encode_base64("ann:$_[0]", '') }
my @wanted = (
	# request                                    status  in the reply
	[ '/',                                       200,    qr/X-Site: here\r\n.*front\z/s ],
	[ '/page/%n.html',                           200,    qr/ Line 1 of / ],
	[ '/page/%n.html', $zip,                     200,    qr/^Vary: /m ],
	[ '/big.html', 'Accept-Encoding: br',        200,    qr/^Vary: /m ],
	[ '/nice/%n',                                200,    qr/ Line 1 of / ],
	[ '/old/x',                                  301,    qr{^Location: .*/new/x\r}m ],
	[ '/a.inc',                                  200,    qr/nothing here/ ],   # as lighttpd
	[ '/none',                                   200,    qr/nothing here/ ],
	[ '/icons/a.png',                            200,    qr/^Cache-Control: max-age=.*icon\z/ms ],
	[ '/secret/a.txt',                           401 ],
	[ '/secret/a.txt', user('pw'),               200,    qr/secret\z/ ],
	[ '/secret/a.txt', user('no'),               401 ],
	[ '/list/',                                  200,    qr/7\.txt/ ],
	[ '/list/?sort=size', $zip,                  200 ],
	[ '/cgi/hello.cgi',                          200,    qr/hello/ ],
	[ '/cgi/slow.cgi', $zip,                     200 ],
	[ '/sec/x/y/z',                              200,    qr/nothing here/ ],
	$php ? ([ '/app.php', 200, qr/php says/ ], [ '/app.php', $zip, 200, qr/^Content-Encoding: gzip/m ]) : (),
);

# ---------------------------------------------------------------- clients

# One request.  What is wrong with the answer, or ''.
sub ask {
	my ($srv, $row, $n) = @_;
	my @line = grep { !ref && !/\A\d+\z/ } @$row;
	my ($status, $in) = ((grep { /\A\d+\z/ } @$row)[0], (grep { ref } @$row)[0]);
	my $path = shift(@line) =~ s/%n/$n/r;
	my $got = $srv->request(join "\r\n", "GET $path HTTP/1.1", 'Host: x', 'Connection: close', @line, '', '') // '';
	return "$path: no answer" if $got eq '';
	return "$path @line: " . substr($got, 0, 60) =~ s/\s+/ /gr if $got !~ m{\AHTTP/1\.1 $status };
	return defined $in && $got !~ $in ? "$path: not as promised" : '';
}

sub leave {
	my ($srv, $row, $n) = @_;
	my ($path, @line) = grep { !ref && !/\A\d+\z/ } @$row;
	my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $srv->port) or return;
	$path =~ s/%n/$n/;
	syswrite $s, join "\r\n", "GET $path HTTP/1.1", 'Host: x', @line, '', '';
	select undef, undef, undef, rand 0.02;
	setsockopt $s, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack('ii', 1, 0) if rand() < 0.5;
	close $s;
}

sub client ($srv, $seed) {
	my ($asked, @wrong) = (0);
	srand $seed;
	while (!-e "$dir/stop" && @wrong < 5) {
		my $row = $wanted[rand @wanted];
		# each failure of a client costs a second, so there are few
		next if grep({ /Basic/ } @$row) && $row->[-1] == 401 && rand() < 0.95;
		if ($seed % 2 && rand() < 0.7) {
			leave($srv, $row, 1 + int rand 40);
			next;
		}
		my $why = ask($srv, $row, 1 + int rand 40);
		$asked++;
		push @wrong, $why if $why ne '';
	}
	return ($asked, @wrong);
}

# ---------------------------------------------------------------- what the server has

sub processes {
	my ($of) = @_;
	my %parent = map { slurp($_) =~ /^(\d+) \(.*\) (\S) (\d+)/s ? ($1 => [$3, $2]) : () } glob '/proc/[0-9]*/stat';
	my @all = ($of);
	for (my $i = 0; $i < @all; $i++) { push @all, grep { $parent{$_}[0] == $all[$i] } keys %parent }
	return map { [$_, $parent{$_}[1]] } grep { $parent{$_} } @all;
}

sub has ($srv) {
	my @p = processes($srv->pid);
	my $fds = 0;
	$fds += () = glob "/proc/$_/fd/*" for grep { defined } $srv->pid, map { $srv->process("accel-$_") } qw(guardian helper);
	return { processes => scalar @p, zombies => scalar(grep { $_->[1] eq 'Z' } @p), descriptors => $fds };
}

# Workers of old generations, at least one for each.  Four old generations may drain; a fifth one cuts the first.
sub old_workers {
	return (grep { slurp($_) =~ /^worker-/ } glob '/proc/' . $_[0]->pid . '/task/*/comm') - 2;
}

sub shown { my ($h) = @_; return join ' ', map { "$_=$h->{$_}" } sort keys %$h }

my $srv = Test::Server->start(conf => $conf);
ok eventually(sub { !grep { ask($srv, $_, 1) ne '' } $wanted[0] }), 'it serves';
is join('; ', grep { $_ ne '' } map { ask($srv, $_, 1) } @wanted), '', 'each kind of request has its answer';
# Connections to applications, generations and programs end in their own time.
my $before;
eventually(sub { my $now = has($srv); my $same = $before && shown($now) eq shown($before); $before = $now; select undef, undef, undef, 0.3 if !$same; $same });
my $rss = $srv->rss;

my $until = time + $seconds;
my @client;
for my $c (1 .. $clients) {
	pipe my $rd, my $wr or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		close $srv->{lifeline};
		print {$wr} join "\n", client($srv, $c);
		close $wr;
		POSIX::_exit(0);
	}
	close $wr;
	push @client, [$pid, $rd];
}
my $loads = 0;
while (time < $until || $loads < 3) {
	last if !eventually(sub { old_workers($srv) < 4 });
	$srv->signal('USR1');
	$loads++;
	$srv->signal('HUP') if $loads % 2;
	last if !eventually(sub { my $n = () = $srv->log =~ /ev=reloaded/g; $n >= $loads });
	select undef, undef, undef, rand 0.2;
}
put("$dir/stop", '');
my ($asked, @wrong) = (0);
for (@client) {
	my ($n, @more) = split /\n/, do { local $/; readline $_->[1] } // '';
	waitpid $_->[0], 0;
	$asked += $n // 0;
	push @wrong, @more;
}
is join('; ', @wrong), '', "$asked requests during $loads reloads: each has its answer";
is scalar(() = $srv->log =~ /ev=reloaded/g), $loads, 'each reload is there';
is join('; ', grep { $_ ne '' } map { ask($srv, $_, 1) } @wanted), '', 'all of it works';

my $after;
ok eventually(sub { $after = has($srv); $after->{zombies} == 0 && $after->{processes} <= $before->{processes} && $after->{descriptors} <= $before->{descriptors} + 4 }),
    'no process and no descriptor is left' or diag 'before ' . shown($before) . ', after ' . shown($after);
cmp_ok $srv->rss - $rss, '<', $growth, 'nor memory';
unlike $srv->log, qr/reload\.refused|drain\.cut|level=alert/, 'the log has no complaint';

done_testing;
