#!/usr/bin/perl
# Uploads of 100 MB, streamed to an application of each protocol: every byte arrives, and memory stays small.

use v5.36;
use Digest::MD5 ();
use POSIX ();
use Test::More;

use Test::App;
use Test::Backend;
use Test::Server;

my $backend = Test::Backend->new;
my %app = map { $_ => Test::App->start(protocol => $_) } qw(fastcgi scgi ajp13 uwsgi http);
my $mb = Test::Util::sanitized() ? 10 : 100;
my $piece = join '', map { chr $_ % 251 } 1 .. 1_000_000;

local $ENV{ASAN_OPTIONS} = join ':', grep { length } $ENV{ASAN_OPTIONS} // '', 'quarantine_size_mb=8';
my $srv = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nstatus.statistics-url = "/counters"\n}
    . qq{server.upload-dirs = ( "\@RUN\@" )\nserver.stream-request-body = 2\n}
    . Test::Server::proxy_block('^/raw/http', 'unix:' . $backend->socket, protocol => 'http')
    . join '', map { Test::Server::proxy_block("^/app/sum/$_", 'unix:' . $app{$_}->socket, protocol => $_) } sort keys %app);

# The body, sent by a process of its own; its sum.
sub upload ($c, $framing) {
	my $sum = Digest::MD5->new;
	$sum->add(substr($piece, $_) . substr $piece, 0, $_) for 1 .. $mb;
	defined(my $pid = fork) or die "fork: $!";
	return ($pid, $sum->hexdigest) if $pid;
	for (1 .. $mb) {
		my $bytes = substr($piece, $_) . substr $piece, 0, $_;
		$c->send($framing eq 'length' ? $bytes : sprintf("%x\r\n%s\r\n", length $bytes, $bytes));
	}
	$c->send("0\r\n\r\n") if $framing ne 'length';
	POSIX::_exit(0);
}

sub head ($path, $framing) {
	return "POST $path HTTP/1.1\r\nHost: x\r\n" . ($framing eq 'length' ? "Content-Length: ${mb}000000" : 'Transfer-Encoding: chunked') . "\r\n\r\n";
}

$srv->counter("server.spool.files-opened");      # it is up
my $before = $srv->rss;
my $max = Test::Util::sanitized() ? 60 : 10;

for my $name (sort keys %app) {
	my $c = $srv->connect;
	$c->send(head("/app/sum/$name", 'length'));
	my ($pid, $sum) = upload($c, 'length');
	is $c->reply->{body}, "${mb}000000 $sum", "$name: $mb MB";
	waitpid $pid, 0;
}

for my $framing (qw(chunked)) {
	my $c = $srv->connect;
	$c->send(head('/raw/http', $framing));
	my $b = $backend->accept;
	$b->head;
	my ($pid, $sum) = upload($c, $framing);
	my ($got, $left) = (Digest::MD5->new, 1_000_000 * $mb);
	while ($left > 0) {
		my $n = $left;
		if ($framing eq 'chunked') { $n = hex(($b->up_to("\r\n", time + Test::Util::PATIENCE) // last) =~ s/\r\n//r) || last }
		for (my $more = $n; $more > 0;) {
			my $bytes = $b->take($more < 200_000 ? $more : 200_000);
			last if $bytes eq '';
			$got->add($bytes);
			$more -= length $bytes;
		}
		$b->take(2) if $framing eq 'chunked';
		$left -= $n;
	}
	is $got->hexdigest, $sum, "http, $framing: $mb MB";
	$b->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	is $c->reply->{body}, 'ok', 'and a reply';
	waitpid $pid, 0;
}

my $grown = $srv->rss - $before;
diag sprintf '%d MB streamed six times: %.1f MiB of memory', $mb, $grown;
cmp_ok $grown, '<', $max, 'memory stays small';
is $srv->counter('server.spool.files-opened'), 0, 'no file was needed';

done_testing;
