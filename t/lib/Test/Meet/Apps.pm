package Test::Meet::Apps;
# One process that is an application and an authorizer of every protocol.
#
#     my $apps = Test::Meet::Apps->start($dir);           # listens on $dir/PROTOCOL.sock and $dir/auth-PROTOCOL.sock
#     put("$dir/www/app.cgi", Test::Meet::Apps::program("$dir/journal"));
#
# The query says what to do: `a`, the action; `h`, a word that tells the hops of a request apart; `p`, bytes of padding; `s`, a status;
# `x` and `v`, name and value of a control header. The field X-Id names the request. A reply says what arrived: "ID HOP METHOD LENGTH
# DIGEST". The same goes to the file journal, after it "whole", or "part" if the connection ended before the body did. An authorizer
# does what the field X-Auth says.
use v5.36;
use Digest::MD5 qw(md5_hex);
use IO::Select ();
use IO::Socket::UNIX ();
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::Wire ();
use Time::HiRes qw(time);

use constant LATE => 0.03;

my $journal;

sub start ($class, $dir) {
	my @listen;
	for my $p (@Test::Wire::PROTOCOLS) {
		for my $auth (0, 1) {
			my $path = "$dir/" . ($auth ? 'auth-' : '') . "$p.sock";
			push @listen, { protocol => $p, auth => $auth, sock => IO::Socket::UNIX->new(Local => $path, Listen => 511) // die "listen: $!" };
		}
	}
	my $self = bless { dir => $dir, owner => $$ }, $class;
	open $journal, '>>', "$dir/journal" or die "journal: $!";
	my $parent = $$;
	defined($self->{pid} = fork) or die "fork: $!";
	return $self if $self->{pid};
	$SIG{PIPE} = 'IGNORE';
	$SIG{$_} = 'DEFAULT' for qw(TERM INT HUP ALRM);
	eval { _loop($parent, @listen); 1 } or print STDERR "# the applications end: $@";
	POSIX::_exit(1);
}

sub DESTROY ($self) {
	return if $$ != $self->{owner} || !$self->{pid};
	local ($?, $!);
	kill KILL => $self->{pid};
	waitpid $self->{pid}, 0;
}

sub note { syswrite $journal, join(' ', @_) . "\n" }

# ---------------------------------------------------------------- the loop

my ($reads, %conn);

sub _loop ($parent, @listen) {
	my %listens = map { fileno $_->{sock} => $_ } @listen;
	$reads = IO::Select->new(map { $_->{sock} } @listen);
	while (getppid == $parent) {
		my $wait = 2;
		for (values %conn) { $wait = $_->{at} - time if defined $_->{at} && $_->{at} - time < $wait }
		my $writes = IO::Select->new(map { $_->{sock} } grep { length $_->{out} } values %conn);
		my ($can_read, $can_write) = IO::Select->select($reads, $writes, undef, $wait < 0 ? 0 : $wait);
		for my $c (grep { defined $_->{at} && $_->{at} <= time } values %conn) {
			delete $c->{at};
			_answer($c);
			_go($c);
		}
		for my $sock (@{ $can_read // [] }) {
			my $l = $listens{ fileno $sock // next };
			if ($l) { _accept($l) }
			else    { _read($conn{ fileno $sock } // next) }
		}
		for my $sock (@{ $can_write // [] }) { _go($conn{ fileno $sock // next } // next) }
	}
}

sub _accept ($l) {
	my $new = $l->{sock}->accept or return;
	$new->blocking(0);
	$reads->add($new);
	$conn{ fileno $new } = { sock => $new, protocol => $l->{protocol}, auth => $l->{auth}, wire => Test::Wire->new($l->{protocol}), out => '' };
}

sub _drop ($c) {
	_journal($c) if $c->{q};
	$reads->remove($c->{sock});
	delete $conn{ fileno $c->{sock} };
	close $c->{sock};
	return;
}

sub _read ($c) {
	my $n = sysread $c->{sock}, my $bytes, 65536;
	return if !defined $n && ($!{EAGAIN} || $!{EINTR});
	return _drop($c) if !$n;
	if (!eval { $c->{wire}->feed($bytes); 1 }) {
		note($c->{id} // '-', 'malformed', $c->{protocol}, $@ =~ s/\s+/_/gr);
		return _drop($c);
	}
	_asked($c);
	return _go($c);
}

# Sends what there is, and does what follows it.
sub _go ($c) {
	$c->{out} .= $c->{wire}->answers unless $c->{mute};
	while (length $c->{out}) {
		my $n = syswrite $c->{sock}, $c->{out}, 65536;
		if (defined $n) { substr($c->{out}, 0, $n) = ''; next }
		return if $!{EAGAIN} || $!{EINTR};
		return _drop($c);
	}
	my $then = $c->{then} // return;
	setsockopt $c->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $then eq 'reset';
	return _drop($c) if $then =~ /^(?:close|reset)\z/;
	return unless $then eq 'next' && $c->{q}{whole};
	_journal($c);
	return _drop($c) if !$c->{q}{keep};
	delete @$c{qw(q then noted answered)};
	$c->{wire}->next;
	_asked($c);
	return _go($c) if length $c->{out} || $c->{then};
}

# ---------------------------------------------------------------- requests

sub _got ($c) {
	my $q = $c->{q};
	return ($c->{id}, $c->{do}{h} // 0, $q->{method}, length $q->{body}, md5_hex($q->{body}));
}

sub _journal ($c) {
	return if $c->{noted}++ || $c->{auth};
	note(_got($c), $c->{q}{whole} ? 'whole' : 'part');
}

sub query { return map { my ($k, $v) = split /=/, $_, 2; $k => ($v // '') =~ s/%([0-9a-fA-F]{2})/chr hex $1/ger } split /&/, $_[0] }

sub _asked ($c) {
	my $q = $c->{wire}->request or return;
	if (!$c->{q}) {
		my $env = $q->{env};
		$c->{q} = $q;
		$c->{id} = $env->{HTTP_X_ID} // '-';
		$c->{do} = $c->{auth} ? { a => 'auth', how => $env->{HTTP_X_AUTH} // '' } : { query($env->{QUERY_STRING} // '') };
	}
	my $a = $c->{do}{a} // '';
	return if $c->{answered} || !($q->{whole} || $a =~ /^(?:early|auth)/);
	$c->{answered} = 1;
	_journal($c) if $q->{whole};
	if ($a eq 'late' || ($c->{do}{how} // '') eq 'late') { $c->{at} = time + LATE }
	else                                                 { _answer($c) }
}

sub _reply ($c, $status, $body, @pairs) {
	my $w = $c->{wire};
	$c->{out} .= $w->head($status, 'Content-Type' => 'text/plain', @pairs) . ($c->{q}{method} eq 'HEAD' ? '' : $w->body($body)) . $w->end;
	$c->{then} = 'next';
	# an AJP13 application cannot answer and then ask for the rest
	if (!$c->{q}{whole} && $c->{protocol} eq 'ajp13') { $c->{mute} = 1; $c->{then} = 'close' }
}

sub said ($do, @got) { return join(' ', @got) . "\n" . 'x' x ($do->{p} || 0) }

sub _answer ($c) {
	my $a = $c->{do}{a} // '';
	no strict 'refs';
	return defined &{"do_$a"} ? &{"do_$a"}($c, $c->{do}) : do_echo($c, $c->{do});
}

sub do_echo ($c, $do, @) {
	my $body = said($do, _got($c));
	_reply($c, $do->{s} || 200, $body, 'Content-Length' => length $body);
}
{ no warnings 'once'; *do_late = \&do_echo; *do_earlycontrol = \&do_control }

sub do_open  ($c, $do, @) { _reply($c, $do->{s} || 200, said($do, _got($c))) }    # without a length
sub do_early ($c, @) { my $body = "early $c->{id}\n"; _reply($c, 200, $body, 'Content-Length' => length $body) }

sub do_earlyclose ($c, @) { do_early($c); $c->{then} = 'close' }
sub do_earlybreak ($c, @) { $c->{then} = 'close' }
sub do_breakhead  ($c, @) { $c->{then} = 'close' }
sub do_reset      ($c, @) { $c->{then} = 'reset' }
sub do_silent     ($c, @) { $c->{then} = 'never' }
sub do_garbage    ($c, @) { $c->{out} .= "\0garbage \xff\r\n" x 3; $c->{then} = 'close' }

sub do_break ($c, @) {
	my $w = $c->{wire};
	$c->{out} .= $w->head(200, 'Content-Length' => 1000, 'Content-Type' => 'text/plain') . $w->body('half');
	$c->{then} = 'close';
}

sub do_control ($c, $do, @) {
	my $body = "control $c->{id}\n";
	_reply($c, $do->{s} || 200, $body, 'Content-Length' => length $body, $do->{x} => $do->{v});
}

sub do_auth ($c, $do, @) {
	return do_silent($c) if $do->{how} eq 'silent';
	return do_garbage($c) if $do->{how} eq 'garbage';
	return do_breakhead($c) if $do->{how} eq 'break';
	return _reply($c, 200, '', 'Content-Length' => 0) if $do->{how} =~ /^(?:grant|late)\z/;
	my $body = "denied $c->{id}\n";
	return _reply($c, 403, $body, 'Content-Length' => length $body);
}

# ---------------------------------------------------------------- a program of cgi.assign

my $program = <<'END';
use Digest::MD5 qw(md5_hex);
use POSIX ();
my %do = map { my ($k, $v) = split /=/, $_, 2; $v =~ s/%([0-9a-fA-F]{2})/chr hex $1/ge; ($k => $v) } split /&/, $ENV{QUERY_STRING};
my ($a, $id) = ($do{a}, $ENV{HTTP_X_ID});
my ($body, $n) = ('', $ENV{CONTENT_LENGTH} || 0);
if ($a !~ /^early/) { while (length $body < $n) { sysread(STDIN, $body, 65536, length $body) or last } }
my @got = ($id, $do{h} || 0, $ENV{REQUEST_METHOD}, length $body, md5_hex($body));
open my $j, '>>', 'JOURNAL';
syswrite $j, "@got " . (length $body == $n && $a !~ /^early/ ? 'whole' : 'part') . "\n";
sub finish { my ($out, $status) = @_; syswrite STDOUT, $out; POSIX::_exit($status || 0) }
select undef, undef, undef, 0.03 if $a eq 'late';
finish("Content-Type: text/plain\r\nContent-Length: " . (7 + length $id) . "\r\n\r\nearly $id\n") if $a =~ /^early(?:close)?$/;
finish("Content-Length: 1000\r\n\r\nhalf", 1) if $a eq 'break';
finish('', 1) if $a =~ /^(?:breakhead|earlybreak|reset)$/;
finish("\0garbage \xff\r\n") if $a eq 'garbage';
if ($a eq 'silent') { sleep 30; finish('') }
my $text = $a =~ /control/ ? "control $id\n" : "@got\n" . 'x' x ($do{p} || 0);
my $head = $do{s} ? "Status: $do{s}\r\n" : '';
$head .= "$do{x}: $do{v}\r\n" if $a =~ /control/;
$head .= 'Content-Length: ' . length($text) . "\r\n" if $a ne 'open';
$text = "${head}Content-Type: text/plain\r\n\r\n" . ($ENV{REQUEST_METHOD} eq 'HEAD' ? '' : $text);
while (length $text) { my $k = syswrite STDOUT, $text or last; substr($text, 0, $k) = '' }
POSIX::_exit(0);
END

sub program ($file) { return $program =~ s/JOURNAL/$file/r }

1;
