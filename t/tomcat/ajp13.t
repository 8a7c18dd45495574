# Tomcat 10 behind proxy-core, through AJP 1.3 with a secret: pages, uploads, large replies, kept sockets, a Tomcat that is killed.
# It starts a JVM, so it is not a part of make check: make check-tomcat.
use v5.36;
use Digest::MD5 qw(md5_hex);
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Http ();
use Test::More;
use Test::Server;
use Test::Tomcat;
use Test::Util qw(eventually need_program rss);
use Time::HiRes qw(time);

my $tomcat = Test::Tomcat->start(secret => 'Geheimnis');
my $page = '<%@ page session="false" trimDirectiveWhitespaces="true" import="java.util.*,java.io.*,java.security.*" %>';
$tomcat->write('env.jsp', $page . <<'END');
<% for (String h : Collections.list(request.getHeaderNames()))
	for (String v : Collections.list(request.getHeaders(h))) out.print(h.toLowerCase() + "=" + v + "\n");
out.print("URI=" + request.getRequestURI() + "\nQUERY=" + request.getQueryString() + "\nMETHOD=" + request.getMethod() + "\n");
out.print("ADDR=" + request.getRemoteAddr() + "\nPORT=" + request.getRemotePort() + "\nSERVER=" + request.getServerName() + ":" + request.getServerPort() + "\n");
out.print("SCHEME=" + request.getScheme() + "\nPARAMETER=" + request.getParameter("x") + "\n"); %>
END
$tomcat->write("$_.jsp", "${page}a page") for qw(unasked wrong);
$tomcat->write('upload.jsp', $page . <<'END');
<% MessageDigest sum = MessageDigest.getInstance("MD5"); byte[] b = new byte[65536]; long all = 0; int n;
InputStream in = request.getInputStream();
while ((n = in.read(b)) > 0) { sum.update(b, 0, n); all += n; }
out.print(all + " " + HexFormat.of().formatHex(sum.digest())); %>
END
$tomcat->write('big.jsp', $page . '<% byte[] b = new byte[20000]; for (int i = 0; i < b.length; i++) b[i] = (byte)(97 + i % 26);'
	. ' OutputStream o = response.getOutputStream(); for (int i = 0; i < 1000; i++) o.write(b); o.flush(); %>');
$tomcat->write('form.jsp', $page . '<% out.print(request.getMethod() + " " + request.getParameter("a") + " " + request.getParameter("b")); %>');
$tomcat->write('cookies.jsp', $page . '<% response.addCookie(new jakarta.servlet.http.Cookie("a", "1")); response.addCookie(new jakarta.servlet.http.Cookie("b", "2"));'
	. ' for (jakarta.servlet.http.Cookie c : request.getCookies()) out.print(c.getName() + ":" + c.getValue() + " "); %>');
$tomcat->write('status.jsp', $page . '<% int s = Integer.parseInt(request.getParameter("s")); if (s == 304 || s == 204) response.setStatus(s);'
	. ' else if (s == 302) response.sendRedirect("/elsewhere?q"); else response.sendError(s, "as asked"); %>');
$tomcat->write('flush.jsp', $page . '<% out.print("one "); out.flush(); out.print("two "); response.flushBuffer(); out.print("three"); %>');
$tomcat->write('refuse.jsp', $page . '<% response.setStatus(413); out.print("too much"); %>');
$tomcat->write('static.txt', 'static ' x 2000);

sub conf {
	my ($url, %set) = @_;
	return Test::Server::proxy_block($url, '127.0.0.1:' . $tomcat->port, protocol => 'ajp13', 'max-pool-size' => 4,
		'max-keep-alive-requests' => 10_000, %set);
}

my $srv = Test::Server->start(conf => qq{server.max-worker = 1\nserver.upload-dirs = ( "\@RUN\@" )\nserver.stream-request-body = 1\n}
	. conf('^/', secret => 'Geheimnis') . conf('^/unasked.jsp$') . conf('^/wrong.jsp$', secret => 'guessed'));
my $one = Test::Server->start(conf => "server.max-worker = 1\n" . conf('^/', secret => 'Geheimnis', 'max-pool-size' => 1, debug => 1,
	'check-url' => '*', 'check-interval' => 1));

sub post {
	my ($path, $body, @lines) = @_;
	return Test::Http::parse($srv->request(join("\r\n", "POST $path HTTP/1.1", 'Host: x', 'Connection: close', @lines, '', '') . $body));
}

subtest 'a page, and what it learns' => sub {
	my $r = $srv->fetch('/env.jsp;v=1?x=a%20b&y', 'User-Agent' => 'test', 'X-Two' => 'words here', 'X-Forwarded-For' => 'evil', Proxy => 'evil');
	is $r->{status}, 200, 'answered';
	my %env = map { split /=/, $_, 2 } split /\n/, $r->{body};
	is "$env{METHOD} $env{URI} $env{QUERY} $env{PARAMETER}", 'GET /env.jsp;v=1 x=a%20b&y a b', 'the path as it was sent, the query decoded by Tomcat';
	is $env{ADDR}, '127.0.0.1', 'the address of the client';
	like $env{PORT}, qr/^[1-9]\d*\z/, 'its port';
	is "$env{'user-agent'} $env{'x-two'} $env{SCHEME}", 'test words here http', 'fields';
	unlike $r->{body}, qr/evil|Geheimnis/, 'nothing that a client made up, and no secret';
	is $srv->fetch('/static.txt')->{body}, 'static ' x 2000, 'a file';
	is $srv->fetch('/flush.jsp')->{body}, 'one two three', 'a page in three pieces';
};

subtest 'methods and replies without a body' => sub {
	like $srv->head('/static.txt'), qr/^HTTP\S+ 200 .*^Content-Length: 14000\r\n.*\r\n\r\n\z/ms, 'HEAD';
	my $tag = $srv->fetch('/static.txt')->{header}{etag};
	like $srv->get('/static.txt', 'If-None-Match' => $tag), qr/^HTTP\S+ 304 .*\r\n\r\n\z/s, "304 for the tag $tag";
	like $srv->get('/status.jsp?s=204'), qr/^HTTP\S+ 204 .*\r\n\r\n\z/s, 'a page without content';
	my $r = $srv->fetch('/status.jsp?s=302');
	like "$r->{status} $r->{header}{location}", qr{^302 \S*/elsewhere\?q\z}, 'a redirect';
	$r = $srv->fetch("/status.jsp?s=$_"), like "$r->{status} $r->{body}", qr/^$_ .*as asked/s, "an error page of Tomcat: $_" for 403, 404, 500, 503;
	is $srv->fetch('/none.jsp')->{status}, 404, 'a page that is not there';
	is post('/form.jsp', 'a=1&b=%32', 'Content-Type: application/x-www-form-urlencoded', 'Content-Length: 9')->{body}, 'POST 1 2', 'a form';
	$r = $srv->fetch('/cookies.jsp', Cookie => 'c=3; d=4');
	is "$r->{body}|$r->{header}{'set-cookie'}", 'c:3 d:4 |a=1, b=2', 'cookies in both directions';
};

subtest 'the secret' => sub {
	is $srv->fetch('/unasked.jsp')->{status}, 403, 'none: 403';
	is $srv->fetch('/wrong.jsp')->{status}, 403, 'a wrong one: 403';
	is $srv->fetch('/env.jsp')->{status}, 200, 'the right one';
	unlike $srv->log, qr/Geheimnis|guessed/, 'the log has none';
};

subtest 'uploads' => sub {
	for my $n (1, 8186, 8187, 65_536, 5_000_000) {
		my $body = substr '0123456789abcdef!' x (1 + $n / 17), 0, $n;
		my $t = time;
		is post('/upload.jsp', $body, "Content-Length: $n")->{body}, "$n " . md5_hex($body), "$n bytes";
		diag sprintf '5 MB in packets that Tomcat asks for: %.2f s', time - $t if $n == 5_000_000;
	}
	my $body = join '', map { md5_hex($_) } 1 .. 10_000;
	my $chunks = join '', map { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a7000)*', $body;
	is post('/upload.jsp', "${chunks}0\r\n\r\n", 'Transfer-Encoding: chunked')->{body}, length($body) . ' ' . md5_hex($body), 'in chunks, without a length';
	is post('/upload.jsp', "0\r\n\r\n", 'Transfer-Encoding: chunked')->{body}, '0 ' . md5_hex(''), 'no chunk';
	is post('/upload.jsp', '', 'Content-Length: 0')->{body}, '0 ' . md5_hex(''), 'a length of 0';
	my $r = post('/refuse.jsp', 'x' x 300_000, 'Content-Length: 300000');
	is "$r->{status} $r->{body}", '413 too much', 'a page that does not read its upload';
	is $srv->fetch('/env.jsp')->{status}, 200, 'and the next request is well';
};

subtest 'a large reply' => sub {
	my ($want, $before, $t) = (join('', map { chr(97 + $_ % 26) } 0 .. 19_999) x 1000, rss($srv->pid), time);
	my $curl = need_program('curl', 'curl');
	open my $fh, '-|', $curl, '-s', 'http://127.0.0.1:' . $srv->port . '/big.jsp' or die "curl: $!";
	is md5_hex(do { local $/; <$fh> }), md5_hex($want), '20 MB';
	diag sprintf '20 MB: %.2f s, %.1f MiB more memory', time - $t, rss($srv->pid) - $before;
};

subtest 'one socket' => sub {
	my ($c, $t) = ($one->connect, time);
	for my $i (1 .. 500) {
		my $n = $i % 5 * 3000;
		$c->send($n ? "POST /upload.jsp HTTP/1.1\r\nHost: x\r\nContent-Length: $n\r\n\r\n" . 'u' x $n : "GET /flush.jsp HTTP/1.1\r\nHost: x\r\n\r\n");
		my $r = $c->reply;
		$r->{body} eq ($n ? "$n " . md5_hex('u' x $n) : 'one two three') or fail "request $i: $r->{status}";
	}
	diag sprintf '500 requests, 400 of them uploads: %.2f s', time - $t;
	$one->log_has(qr/ev=pool\.lease .*served=499/, '500 requests on it');
};

subtest 'Tomcat is killed, and comes back' => sub {
	unlike $one->log, qr/ev=check\.failed/, 'it has answered each CPing';
	$tomcat->kill;
	my $t = time;
	is $srv->fetch('/env.jsp')->{status}, 503, 'without it: 503';
	diag sprintf 'the 503 took %.2f s', time - $t;
	$one->log_has(qr/ev=check\.failed/, 'a CPing notices it');
	$tomcat->up;
	$t = time;
	ok eventually(sub { $srv->fetch('/env.jsp')->{status} == 200 }), 'it is back, and so are its pages';
	diag sprintf 'after its start: %.2f s', time - $t;
	$one->log_has(qr/ev=check\.passed/, 'and so does a CPing');
	is $one->fetch('/env.jsp')->{status}, 200, 'its backend serves';
};

done_testing;
