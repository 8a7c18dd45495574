#!/usr/bin/perl
# The process of a CGI program: its user, descriptors, session and limits; who may have one started; reloads.

use v5.36;
use Socket qw(AF_UNIX SOCK_STREAM);
use Test::More;

use Test::Http qw(parse req);
use Test::Server;
use Test::Util qw(eventually put slurp);

my $www = $> == 0 && getpwnam('www-data') ? qq{server.username = "www-data"\nserver.groupname = "www-data"\n} : '';

sub script { my ($srv, $name, $text, $mode) = @_; $srv->write($name, $text); chmod $mode // 0755, $srv->path($name) or die "$name: $!"; return }

my $tree = Test::Util::temp_tree();
my $conf = $www . <<'END';
server.document-root = "@DIR@"
server.max-worker = 2
server.stream-request-body = 1
cgi.assign = ( ".cgi" => "", ".pl" => "/usr/bin/perl" )
END
my $srv = Test::Server->start(dir => $tree, conf => $conf);
chmod 0755, $srv->run;

# ---------------------------------------------------------------- a clean process

script($srv, 'is.pl', <<'END', 0644);
use POSIX ();
print "Content-Type: text/plain\n\n";
for my $fd (0 .. 255) { my $to = readlink "/proc/self/fd/$fd"; print "fd $fd $to\n" if defined $to && $to ne __FILE__ && $to ne $ENV{SCRIPT_FILENAME} }
print "user $> $<\ngroups @{[ sort keys %{ { map { $_ => 1 } split ' ', $) } } ]}\nleader @{[ getpgrp == $$ ]}\n";
open my $status, '<', '/proc/self/status';
/^(SigBlk|SigIgn|NoNewPrivs|Seccomp):\s*(\S+)/ and print "$1 $2\n" for <$status>;
print "nice @{[ POSIX::nice(0) && getpriority 0, 0 ]}\numask @{[ umask ]}\nargs @ARGV\n";
open my $stat, '<', '/proc/self/stat';
my @stat = split ' ', <$stat> =~ s/.*\) //r;
print "session @{[ $stat[3] == $$ ]}\ntty $stat[4]\n";
open my $limits, '<', '/proc/self/limits';
/^Max core file size\s+(\S+)/ and print "core $1\n" for <$limits>;
END
my $is = $srv->fetch('/is.pl?a+b')->{body};
my %fd = $is =~ /^fd (\d+) (\S+)/mg;
is join(' ', sort keys %fd), '0 1 2', 'three descriptors';
like $fd{$_}, qr/^pipe:/, "... $_ is a pipe" for 0 .. 2;
if ($www) {
	my @pw = getpwnam 'www-data';
	like $is, qr/^user $pw[2] $pw[2]$/m, 'it is server.username';
	like $is, qr/^groups $pw[3]$/m, '... with its groups only';
}
like $is, qr/^leader 1$/m, 'a process group of its own';
like $is, qr/^session 1\ntty 0$/m, '... and a session, without a terminal';
like $is, qr/^SigBlk 0+$/m, 'no signal is blocked';
# Perl ignores SIGFPE; signals 32 and 33 are those of the C library, which nobody can set.
my ($high, $low) = unpack 'NN', pack 'H16', ($is =~ /^SigIgn (\S+)/m)[0];
is(($high & ~1) | ($low & ~0x8000_0080), 0, '... or ignored') or diag $is;
like $is, qr/^Seccomp 0$/m, 'the sandbox of the server does not hold for it';
like $is, qr/^nice @{[ getpriority 0, 0 ]}$/m, 'as nice as the server';
like $is, qr/^core 0$/m, 'it leaves no core';
like $is, qr/^args $/m, 'a query is not an argument';

# ---------------------------------------------------------------- who may ask

my $helper = $srv->helper;
my %inode = map { /socket:\[(\d+)\]/ ? ($1 => 1) : () } map { readlink($_) // '' } glob "/proc/$helper/fd/*";
my ($name) = map { $_->[7] } grep { $_->[7] && $inode{ $_->[6] } } map { [split ' ', $_, 8] } split /\n/, slurp('/proc/net/unix');
ok defined $name, 'the helper has an address';
$name =~ s/^\@/\0/;
chomp $name;
socket my $c, AF_UNIX, SOCK_STREAM, 0 or die "socket: $!";
ok connect($c, pack('S a*', AF_UNIX, $name)), 'another process may connect';
local $SIG{PIPE} = 'IGNORE';
syswrite $c, pack('C2nnxx n C6', 1, 1, 1, 8, 1, (0) x 6);
sysread $c, my $got, 100;
ok !length($got // ''), '... and is closed at once';

# ---------------------------------------------------------------- streams

script($srv, 'count.pl', <<'END', 0644);
$| = 1;
print "Content-Type: text/plain\n\nbegun\n";
my $n = 0;
while (my $got = sysread STDIN, my $piece, 65536) { $n += $got }
print "$n\n";
END
$c = $srv->connect;
$c->send("POST /count.pl HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\nfirst");
like $c->head, qr/^HTTP\S+ 200/, 'a program replies before it has the whole body';
$c->send('x' x (3_000_000 - 5));
is $c->chunks, "begun\n3000000\n", '... and gets the rest';

# ---------------------------------------------------------------- reloads

script($srv, 'waits.cgi', "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\ncat\necho end\n");
script($srv, 'new.new', "printf 'Content-Type: text/plain\\n\\nnew'\n", 0644);
is $srv->fetch('/new.new')->{body}, slurp("$tree/new.new"), 'a file without a rule is a file';
$c = $srv->connect;
$c->send("POST /waits.cgi HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\nfirst");
like $c->head, qr/^HTTP\S+ 200/, 'a program runs';
put($srv->run . '/server.conf', slurp($srv->run . '/server.conf') . qq{cgi.assign += ( ".new" => "/bin/sh" )\n});
$srv->signal('USR1');
$srv->wait_log(qr/ev=reloaded/);
is eventually(sub { my $r = $srv->fetch('/new.new'); $r->{body} eq 'new' && $r->{body} }), 'new', 'a new rule holds after a reload';
$c->send('-last');
is $c->chunks, "first-lastend\n", 'the old program ends its reply';

done_testing;
