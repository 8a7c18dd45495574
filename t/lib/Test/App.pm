package Test::App;
# A small application of each protocol, with a process for each connection.
#
#     my $app = Test::App->start;         # or start(protocol => 'scgi'); see Test::Wire
#     # proxy-core.backends = ( "unix:@{[ $app->socket ]}" )
#
# A request for `/app/NAME...` is answered by `do_NAME`, when its body is there, or by `early_NAME`, before. `note` and
# `noted` tell the test what happened. The functions below do not know the protocol: `out`, `err` and `end` do.  The first `out`
# begins with the head in CGI style. Without notes in the protocol `err` does nothing.
use v5.36;
use Digest::MD5 ();
use File::Temp ();
use IO::Select ();
use IO::Socket::UNIX ();
use POSIX ();

use Test::Server ();
use Test::Wire ();

my ($wire, $has_head);          # of the connection that this process serves

sub start ($class, %arg) {
	my $self = bless { protocol => $arg{protocol} // 'fastcgi', dir => $arg{dir} // File::Temp->newdir('accel-app-XXXXXX', TMPDIR => 1), owner => $$ }, $class;
	$self->up;
	return $self;
}

sub socket { return "$_[0]{dir}/app.sock" }
sub file   ($self, $name) { return "$self->{dir}/$name" }

# The socket to listen on; a test of other sockets overrides it.
sub listen ($self) {
	unlink $self->socket;
	return IO::Socket::UNIX->new(Local => $self->socket, Listen => 128) // die "listen: $!";
}

sub up ($self) {
	my $listen = $self->listen;
	defined($self->{pid} = fork) or die "fork: $!";
	return if $self->{pid};
	POSIX::setpgid(0, 0);
	$SIG{CHLD} = 'IGNORE';
	$SIG{ALRM} = 'DEFAULT';
	alarm 300;                              # never an orphan
	while (my $c = $listen->accept) {
		$self->note('connections');
		my $pid = fork // next;
		next if $pid;
		close $listen;
		alarm 300;
		$SIG{PIPE} = 'IGNORE';
		eval { 1 while $self->serve($c) };
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}

sub down ($self) {
	my $pid = delete $self->{pid} or return;
	kill 'KILL', -$pid;
	kill 'KILL', $pid;
	waitpid $pid, 0;
}

sub DESTROY ($self) { local ($?, $!); $self->down if $$ == $self->{owner} }

# Counts in a file: one byte each.
sub note ($self, $what, $text = undef) {
	open my $fh, '>>', $self->file($what) or return;
	syswrite $fh, $text // '.';
}

sub noted ($self, $what) { return Test::Util::slurp($self->file($what)) }

sub _read ($c, $n) {
	my $got = '';
	while (length $got < $n) { sysread($c, $got, $n - length $got, length $got) or die "gone\n" }
	return $got;
}

sub _send ($c, $bytes) {
	my $at = 0;
	while ($at < length $bytes) { $at += syswrite($c, $bytes, length($bytes) - $at, $at) // die "gone\n" }
}

sub out ($c, $bytes) {
	my $head = '';
	if (!$has_head++) { $head = $wire->raw_head($bytes =~ s/\A(.*?\r\n\r\n|\r\n|.*)//s ? $1 : '') }
	_send($c, $head . $wire->body($bytes));
}
sub err ($c, $bytes) { _send($c, $wire->note($bytes)) if $wire->can('note') }

# Whether the protocol said that the reply ends; the end of the connection says it otherwise.
sub end ($c, $status = undef) {
	my $bytes = $wire->end(defined $status ? $status : ());
	_send($c, $bytes);
	return length $bytes;
}

# One request: false when the connection is to be closed.
sub serve ($self, $c) {
	my $q;
	$wire = ${*$c}{wire} //= Test::Wire->new($self->{protocol});
	$has_head = 0;
	while (!($q = $wire->request) || !$q->{whole}) {
		last if $q && $self->can('early_' . _what($q->{env}));
		sysread $c, my $piece, 65536 or die "gone\n";
		_send($c, $wire->feed($piece)->answers);
	}
	$self->{role} = $q->{role};
	my $do = $self->can('early_' . _what($q->{env})) // $self->can('do_' . _what($q->{env})) // \&do_none;
	my $go_on = $do->($self, $c, $q->{env}, $q->{body}) && $q->{keep} && $q->{whole};
	$wire->next if $go_on;
	return $go_on;
}

sub _path ($p) { return ($p->{SCRIPT_NAME} // '') . ($p->{PATH_INFO} // '') }
sub _what ($p) { return _path($p) =~ m{/app/(\w+)} ? $1 : 'none' }

sub do_none { out($_[1], "Status: 404 Not Found\r\n\r\nnone"); end($_[1]); return 1 }

sub do_env ($self, $c, $p, @) {
	out($c, "Content-Type: text/plain\r\n\r\n" . join '', map { "$_=$p->{$_}\n" } sort keys %$p);
	end($c);
	return 1;
}

sub do_head ($self, $c, $p, @) {           # the query is the head: \n as |
	my $head = $p->{QUERY_STRING} =~ s/%([0-9a-f]{2})/chr hex $1/gier;
	out($c, $head =~ s/\|/\r\n/gr . "\r\n\r\nbody");
	end($c);
	return 1;
}

sub do_file ($self, $c, $p, @) {           # names the file of the query, and ends when the test says so
	out($c, "X-Sendfile: $p->{QUERY_STRING}\r\n\r\n");
	Test::Util::eventually(sub { -e $self->file('ended') }, 30);
	return 0;
}

sub do_upload ($self, $c, $p, $body) {
	out($c, "X-Length: " . ($p->{CONTENT_LENGTH} // '') . "\r\n\r\n" . length($body) . ' ' . Digest::MD5::md5_hex($body));
	end($c);
	return 1;
}

sub early_refuse ($self, $c, @) { out($c, "Status: 413 x\r\nContent-Length: 8\r\n\r\ntoo much"); end($c); return 0 }

sub early_vanish ($self, $c, $p, @) {      # a close with unread bytes is a reset; without them it ends the reply
	out($c, "\r\nhalf of it");
	IO::Select->new($c)->can_read(Test::Util::PATIENCE) if $p->{CONTENT_LENGTH};
	return 0;
}

sub early_reads ($self, $c, $p, @) {       # reads the body when the test says so; the query is said before
	out($c, "Content-Length: 5\r\n\r\n$p->{QUERY_STRING}") if $p->{QUERY_STRING};
	Test::Util::eventually(sub { -e $self->file('go') });
	1 while sysread $c, my $body, 65536;
	return 0;
}

# The bytes of the body, as they come: '' at its end.
sub _piece ($c) {
	my $q = $wire->request;
	while ($q->{body} eq '' && !$q->{whole}) {
		sysread $c, my $piece, 65536 or die "gone\n";
		_send($c, $wire->feed($piece)->answers);
	}
	my $bytes = $q->{body};
	$q->{body} = '';
	return $bytes;
}

sub early_echo ($self, $c, $p, @) {        # sends the body back while it comes
	out($c, "\r\n");
	while (length(my $piece = _piece($c))) { out($c, $piece) }
	end($c);
	return 1;
}

sub early_sum ($self, $c, $p, @) {         # its length and checksum, without keeping it
	my ($sum, $n) = (Digest::MD5->new, 0);
	while (length(my $piece = _piece($c))) { $sum->add($piece); $n += length $piece }
	out($c, "\r\n$n " . $sum->hexdigest);
	end($c);
	return 1;
}

sub do_steps ($self, $c, @) {          # each step when the test says so
	out($c, "\r\none ");
	Test::Util::eventually(sub { -e $self->file('go') });
	out($c, "two ");
	out($c, "three");
	end($c);
	return 1;
}

sub do_big ($self, $c, $p, @) {
	my ($n, $piece) = ($p->{QUERY_STRING}, join '', map { chr($_ % 251) } 1 .. 50000);
	out($c, "Content-Length: " . $n * 50000 . "\r\n\r\n");
	for (1 .. $n) { out($c, $piece); $self->note('written', 'x') if _path($p) =~ /count/ }
	end($c);
	$self->note('ended');
	return 1;
}

sub do_stderr ($self, $c, @) {
	err($c, "PHP Notice: first\nsecond \x1b[31m");
	out($c, "\r\nok");
	err($c, "line\n");
	end($c);
	return 1;
}

sub do_garbage { _send($_[1], "HTTP/9 200 OK\r\n\r\n"); return 0 }
sub do_hangup  { return 0 }
sub do_nohead  { end($_[1]); return 1 }
sub do_cuthead { out($_[1], "Content-Type: te"); return 0 }
sub do_cut     { out($_[1], "\r\nhalf of it"); return 0 }
sub do_cutlen  { out($_[1], "Content-Length: 100\r\n\r\nhalf of it"); return end($_[1]) }
sub do_full    { end($_[1], 2); return 1 }
sub do_silent  { Test::Util::eventually(sub { 0 }, 20); return 0 }
sub do_halfclose { out($_[1], "\r\nbye"); end($_[1]); shutdown $_[1], 1; Test::Util::eventually(sub { 0 }, 1); return 0 }

sub do_lingers { out($_[1], "Content-Length: 3\r\n\r\nbye"); end($_[1]); Test::Util::eventually(sub { 0 }, 20); return 0 }

sub do_turn ($self, $c, $p, @) {           # when the test says so; notes whose turn it was: the last digit of the address
	Test::Util::eventually(sub { -e $self->file('gate') });
	$self->note('turns', substr $p->{REMOTE_ADDR}, -1);
	out($c, "\r\nturn");
	end($c);
	return 1;
}

sub do_once ($self, $c, @) {           # keeps the socket, and closes it when the next request comes
	out($c, "\r\nonce");
	end($c);
	_read($c, 8);
	return 0;
}

1;
