package Test::Fcgi;

# FastCGI from the web server's side, records built by hand, so that wrong ones can be sent too; and
# fcgi-stat-accel as spawn-fcgi starts it.  Core modules only.
#
#   my $app = Test::Fcgi->start('--root', $dir);        # options are passed on
#   my $r = $app->get("$dir/file");                     # one connection, one request
#   is $r->{status}, 200;                               # also header (a hash), body, head, bytes
#   my $c = $app->connect;  $c->send(begin(1, keep => 1), params(1, A => 'b'));  $c->reply;

use strict;
use warnings;
use Exporter 'import';
use File::Temp ();
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(WNOHANG);
use Test::More ();
use Time::HiRes qw(time);

our @EXPORT_OK = qw(record begin params pairs request until_true parse_records program finish run
	temp_tree put
	T_BEGIN T_ABORT T_END T_PARAMS T_STDIN T_STDOUT T_GET_VALUES T_GET_VALUES_RESULT T_UNKNOWN_TYPE);

use constant { T_BEGIN => 1, T_ABORT => 2, T_END => 3, T_PARAMS => 4, T_STDIN => 5, T_STDOUT => 6,
	T_GET_VALUES => 9, T_GET_VALUES_RESULT => 10, T_UNKNOWN_TYPE => 11 };

our $B = $ENV{B} // 'build';
our $patience = 60;             # seconds until a test calls something lost; never slept through
my %running;                    # pid => 1, those of this process

sub program { "$B/bin/fcgi-stat-accel" }

# ---------------------------------------------------------------- records

sub record {
	my ($type, $id, $content, %arg) = @_;
	my $pad = $arg{padding} // 0;
	return pack('CCnnCC', $arg{version} // 1, $type, $id, $arg{length} // length $content, $pad, 0)
	    . $content . ("\0" x $pad);
}

sub begin {
	my ($id, %arg) = @_;
	return record(T_BEGIN, $id, pack('nCx5', $arg{role} // 1, $arg{keep} ? 1 : 0));
}

sub _length { $_[0] < 128 ? pack 'C', $_[0] : pack 'N', $_[0] | 0x80000000 }

sub pairs {
	my $s = '';
	while (my ($name, $value) = splice @_, 0, 2) {
		$s .= _length(length $name) . _length(length $value) . $name . $value;
	}
	return $s;
}

# The whole stream: as many records as needed, and the empty one.
sub params {
	my ($id, @pairs) = @_;
	my $bytes = pairs(@pairs);
	return join('', map { record(T_PARAMS, $id, $_) } unpack '(a65535)*', $bytes) . record(T_PARAMS, $id, '');
}

sub request {
	my ($id, $keep, @pairs) = @_;
	return begin($id, keep => $keep) . params($id, @pairs) . record(T_STDIN, $id, '');
}

# Complete records at the start of $$buf, taken off it: [type, id, content]...
sub parse_records {
	my ($buf) = @_;
	my @got;
	while (length $$buf >= 8) {
		my (undef, $type, $id, $len, $pad) = unpack 'CCnnC', $$buf;
		last if length $$buf < 8 + $len + $pad;
		push @got, [$type, $id, substr $$buf, 8, $len];
		substr($$buf, 0, 8 + $len + $pad) = '';
	}
	return @got;
}

# ---------------------------------------------------------------- waiting

# Calls $try until it is true; false when patience has run out.
sub until_true {
	my ($try, $limit) = @_;
	my $end = time + ($limit // $patience);
	until (my $r = $try->()) {
		return 0 if time > $end;
		select undef, undef, undef, 0.005;      # between two looks, not instead of one
	}
	return 1;
}

# Runs it to its end: exit code (or 128 + signal), standard output, standard error.
#   run({stdin => FILE, env => {...}}, @options)
sub run {
	my (@options) = @_;
	my $how = ref $options[0] eq 'HASH' ? shift @options : {};
	my $dir = File::Temp->newdir;
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		delete @ENV{qw(FCGI_STAT_THREADS PHP_FCGI_CHILDREN FCGI_WEB_SERVER_ADDRS LISTEN_FDS)};
		$ENV{$_} = $how->{env}{$_} for keys %{ $how->{env} || {} };
		open STDIN, '+<', $how->{stdin} // '/dev/null' or POSIX::_exit(126);
		open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
		open STDERR, '>', "$dir/err" or POSIX::_exit(126);
		exec program(), @options or POSIX::_exit(127);
	}
	$running{$pid} = 1;
	my $status = finish($pid) // die "@options: still running";
	return ($status & 127 ? 128 + ($status & 127) : $status >> 8, map { slurp("$dir/$_") } qw(out err));
}

sub slurp {
	my ($file) = @_;
	open my $h, '<', $file or return '';
	local $/;
	return scalar(<$h>) // '';
}

sub put {
	my ($file, $bytes) = @_;
	open my $h, '>', $file or die "$file: $!";
	print $h $bytes;
	close $h or die "$file: $!";
	return $file;
}

# A directory that others may enter.
sub temp_tree {
	my $dir = File::Temp->newdir;
	chmod 0755, "$dir";
	return $dir;
}

# Wait status of $pid, or undef when it still runs.
sub finish {
	my ($pid, $limit) = @_;
	my $status;
	until_true(sub { waitpid($pid, WNOHANG) == $pid and ($status = $?, 1) }, $limit);
	delete $running{$pid} if defined $status;
	return $status;
}

# ---------------------------------------------------------------- the application

# start({env => {...}, spawn => [...], own => 1, passed => $socket}, @options)
#   spawn   options for spawn-fcgi
#   own     without spawn-fcgi, for --listen; '@SOCKET@' in @options is where we look for it
#   socket  the path of the socket, where the test cares
#   under   before the command: strace and its options
#   passed  this listening socket goes in as descriptor 3, with LISTEN_FDS
sub start {
	my ($class, @options) = @_;
	my $how = ref $options[0] eq 'HASH' ? shift @options : {};
	my $self = bless { dir => File::Temp->newdir, owner => $$ }, $class;
	$self->{socket} = $how->{socket} // "$self->{dir}/app.sock";
	$self->{log} = "$self->{dir}/stderr";
	s/\@SOCKET\@/$self->{socket}/ for @options;
	$self->{passed} = $how->{passed};
	$self->{pid} = fork // die "fork: $!";
	$self->_exec($how, @options) if $self->{pid} == 0;
	$running{ $self->{pid} } = 1;
	return $self if $how->{nowait};
	until_true(sub { $self->_try or defined $self->ended }) or die "no answer on $self->{socket}";
	die "it ended at once: " . $self->log_text if defined $self->{status};
	$self->_ready;
	return $self;
}

# spawn-fcgi listens before the program runs; a word from the program itself says that it does.
sub _ready {
	my ($self) = @_;
	my $c = $self->connect;
	$c->send(record(T_GET_VALUES, 0, ''));
	$c->record;                     # nothing, when we are not welcome
}

sub _exec {
	my ($self, $how, @options) = @_;
	delete @ENV{qw(FCGI_STAT_THREADS PHP_FCGI_CHILDREN FCGI_WEB_SERVER_ADDRS LISTEN_FDS LISTEN_PID)};
	$ENV{$_} = $how->{env}{$_} for keys %{ $how->{env} || {} };
	open STDERR, '>', $self->{log} or POSIX::_exit(126);
	if (my $sock = $how->{passed}) {
		open STDIN, '<', '/dev/null';
		POSIX::dup2(POSIX::dup(fileno $sock), 3);    # a copy: 3 itself would close on exec
		@ENV{qw(LISTEN_FDS LISTEN_PID)} = (1, $$);
	}
	my @spawn = ('spawn-fcgi', '-n', '-s', $self->{socket}, @{ $how->{spawn} || [] }, '--');
	@spawn = () if $how->{own} || $how->{passed};
	exec @{ $how->{under} || [] }, @spawn, program(), @options or POSIX::_exit(127);
}

# Its wait status if it has ended.
sub ended {
	my ($self) = @_;
	$self->{status} //= finish($self->{pid}, 0);
	return $self->{status};
}

sub _try {
	my ($self) = @_;
	my $p = $self->{passed};
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $p->sockport)
	    if $p && $p->isa('IO::Socket::INET');
	return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $self->{socket});
}

sub connect {
	my ($self) = @_;
	my $sock = $self->_try or die "connect $self->{socket}: $!";
	return Test::Fcgi::Conn->new($sock);
}

sub ask {
	my ($self, @pairs) = @_;
	my $c = $self->connect;
	$c->send(request(1, 0, @pairs));
	return $c->reply;
}

sub get { my ($self, $path) = @_; return $self->ask(REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $path) }

# Many clients share kept connections, as a web server's pool does: each asks again as soon as it has been
# answered.  drive(conns => 20, clients => 200, requests => 10000, paths => [[path, status]...])
# Returns {answered, errors => [...], seconds}.
sub drive {
	my ($self, %arg) = @_;
	my @conns = map { $self->connect } 1 .. $arg{conns};
	my $select = IO::Select->new(map { $_->{sock} } @conns);
	my %conn = map { fileno $_->{sock} => $_ } @conns;
	my %r = (answered => 0, errors => []);
	my ($asked, $start) = (0, time);
	my @idle = @conns;
	my @waiting = (1 .. $arg{clients});
	while ($r{answered} + @{ $r{errors} } < $arg{requests}) {
		while (@idle && @waiting && $asked < $arg{requests}) {
			my $c = shift @idle;
			$c->{client} = shift @waiting;
			$c->{wanted} = $arg{paths}[ $asked++ % @{ $arg{paths} } ];
			$c->send(request(1, 1, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $c->{wanted}[0]));
		}
		my @ready = $select->can_read($patience);
		push @{ $r{errors} }, 'stalled' and last unless @ready;
		for my $c (map { $conn{ fileno $_ } } @ready) {
			push @{ $r{errors} }, 'closed' and $select->remove($c->{sock}) and next unless $c->more;
			$c->{bytes} .= $_->[2] for my @got = parse_records(\$c->{buf});
			next unless grep { $_->[0] == T_END } @got;
			my ($path, $status) = @{ $c->{wanted} };
			my $good = $c->{bytes} =~ /^Status: $status /
			    && ($status != 200 || index($c->{bytes}, "X-Sendfile: $path\r\n") > 0);
			$good ? $r{answered}++ : push @{ $r{errors} }, $c->{bytes};
			$c->{bytes} = '';
			push @waiting, $c->{client};
			push @idle, $c;
		}
	}
	$r{seconds} = time - $start;
	return \%r;
}

# Names of its threads that open files.
sub threads {
	my ($self) = @_;
	my @names;
	for my $file (glob "/proc/$self->{pid}/task/*/comm") {
		open my $h, '<', $file or next;
		chomp(my $name = <$h> // '');
		push @names, $name if $name =~ /^stat-/;
	}
	return @names;
}

sub tasks { my ($self) = @_; my @t = glob "/proc/$self->{pid}/task/*"; return scalar @t }

sub log_text {
	my ($self) = @_;
	return slurp($self->{log});
}

sub alive { my ($self) = @_; return !defined $self->ended }

# TERM, and its wait status; undef when it did not end in time.
sub stop {
	my ($self, $signal, $limit) = @_;
	return $self->{status} unless $running{ $self->{pid} };
	kill $signal // 'TERM', $self->{pid};
	return $self->{status} = finish($self->{pid}, $limit);
}

sub DESTROY {
	my ($self) = @_;
	return if $self->{owner} != $$;
	local ($?, $!);
	if ($running{ $self->{pid} } && !defined $self->stop('TERM', 10)) {
		kill 'KILL', $self->{pid};
		finish($self->{pid});
		Test::More::fail('fcgi-stat-accel ends when it is asked to');
	}
	Test::More::fail("fcgi-stat-accel ends in peace: " . $self->log_text)
	    if ($self->{status} // 0) & 127 || $self->log_text =~ /Sanitizer|runtime error/;
}

# A test that dies leaves nothing behind.
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
my $owner = $$;
END { if ($$ == $owner) { local $?; kill 'KILL', $_ for keys %running } }

# ---------------------------------------------------------------- a connection

package Test::Fcgi::Conn;

use Errno qw(EINTR);
use Time::HiRes qw(time);

sub new {
	my ($class, $sock) = @_;
	return bless { sock => $sock, buf => '', eof => 0 }, $class;
}

sub send {
	my ($self, @bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	my $all = join '', @bytes;
	my $at = 0;
	while ($at < length $all) {
		my $n = syswrite $self->{sock}, $all, length($all) - $at, $at;
		next if !defined $n && $! == EINTR;
		return 0 if !defined $n;
		$at += $n;
	}
	return 1;
}

# Receives what there is, at most $limit seconds later; false at the end of it.
sub more {
	my ($self, $limit) = @_;
	return 0 unless IO::Select->new($self->{sock})->can_read($limit // $Test::Fcgi::patience);
	my $n = sysread $self->{sock}, $self->{buf}, 65536, length $self->{buf};
	$self->{eof} = 1 unless $n;
	return $n ? 1 : 0;
}

# The next record, or undef at the end of the connection.
sub record {
	my ($self) = @_;
	$self->{records} ||= [];
	until (@{ $self->{records} }) {
		push @{ $self->{records} }, Test::Fcgi::parse_records(\$self->{buf});
		last if @{ $self->{records} };
		$self->more or return undef;
	}
	return shift @{ $self->{records} };
}

# One answer up to its END_REQUEST; undef when the connection ended before.
sub reply {
	my ($self) = @_;
	my $r = { bytes => '' };
	while (my $rec = $self->record) {
		my ($type, $id, $content) = @$rec;
		$r->{bytes} .= $content if $type == Test::Fcgi::T_STDOUT;
		next unless $type == Test::Fcgi::T_END;
		@$r{qw(id app protocol)} = ($id, unpack 'NC', $content);
		return _parse($r);
	}
	return undef;
}

sub _parse {
	my ($r) = @_;
	($r->{head}, $r->{body}) = split /\r\n\r\n/, $r->{bytes}, 2;
	for my $line (split /\r\n/, $r->{head} // '') {
		my ($name, $value) = split /: /, $line, 2;
		$r->{header}{ lc $name } = $value;
		push @{ $r->{names} }, $name;
	}
	($r->{status}) = ($r->{header}{status} // '') =~ /^(\d+)/;
	return $r;
}

# True when the other side ends the connection.
sub closed {
	my ($self, $limit) = @_;
	my $end = time + ($limit // $Test::Fcgi::patience);
	while (!$self->{eof} && time < $end) { $self->more($end - time) }
	return $self->{eof};
}

sub shutdown { my ($self) = @_; CORE::shutdown($self->{sock}, 1) }

1;
