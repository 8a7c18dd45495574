package Test::Fcgi;

# fcgi-stat-accel as spawn-fcgi starts it, and FastCGI from the web server's side.
#
#   my $app = Test::Fcgi->start('--root', $dir);        # options are passed on
#   my $r = $app->get("$dir/file");                     # one connection, one request
#   is $r->{status}, 200;                               # also header (a hash), body, head, bytes
#   my $c = $app->connect;  $c->send(begin(1, keep => 1), params(1, A => 'b'));  $c->reply;

use v5.36;
use Exporter 'import';
use File::Temp ();
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(WNOHANG);
use Test::Fcgi::Codec qw(:all);
use Test::More ();
use Test::UnitFilter ();
use Test::Util qw(eventually put slurp temp_tree);
use Time::HiRes qw(time);

our @EXPORT_OK = (qw(program finish run eventually put slurp temp_tree), @Test::Fcgi::Codec::EXPORT_OK);

our $B = Test::Util::build_dir();
my $as_root = '--user=root';    # without --root it would become www-data, which cannot read the files of a test
our $patience = Test::Util::PATIENCE;
my %running;                    # pid => 1, those of this process

sub program { "$B/bin/fcgi-stat-accel" }

# ---------------------------------------------------------------- to its end

# Runs it to its end.  Returns exit code (or 128 + signal), standard output and standard error.
#   run({stdin => FILE, env => {...}}, @options)
sub run (@options) {
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

# Wait status of $pid, or undef when it still runs.
sub finish ($pid, $limit = undef) {
	my $status;
	eventually(sub { waitpid($pid, WNOHANG) == $pid and ($status = $?, 1) }, $limit);
	delete $running{$pid} if defined $status;
	return $status;
}

# ---------------------------------------------------------------- the application

# start({env => {...}, spawn => [...], own => 1, passed => $socket}, @options)
#   spawn   options for spawn-fcgi
#   program an application other than fcgi-stat-accel
#   own     without spawn-fcgi, for --listen; '@SOCKET@' in @options is replaced by the path of the socket
#   socket  the path of the socket
#   under   before the command: strace and its options
#   filter  'kill' or 'EPERM': under the system calls that its unit allows, see Test::UnitFilter
#   passed  this listening socket becomes descriptor 3, with LISTEN_FDS
#   nowait  returns before the application answers
sub start ($class, @options) {
	my $how = ref $options[0] eq 'HASH' ? shift @options : {};
	my $self = bless { dir => File::Temp->newdir, owner => $$ }, $class;
	$self->{socket} = $how->{socket} // "$self->{dir}/app.sock";
	$self->{log} = "$self->{dir}/stderr";
	s/\@SOCKET\@/$self->{socket}/ for @options;
	$self->{passed} = $how->{passed};
	$self->{filter} = [$how->{program} ? () : Test::UnitFilter::prefix('fcgi-stat-accel', $how->{filter} // $ENV{UNIT_FILTER})];
	$self->{pid} = fork // die "fork: $!";
	$self->_exec($how, @options) if $self->{pid} == 0;
	$running{ $self->{pid} } = 1;
	return $self if $how->{nowait};
	eventually(sub { $self->_try or defined $self->ended }) or die "no answer on $self->{socket}";
	die "it ended at once: " . $self->log_text if defined $self->{status};
	$self->_ready unless $how->{program};
	return $self;
}

# spawn-fcgi listens before the program runs.  An answer proves that the program runs.
sub _ready ($self) {
	my $c = $self->connect;
	$c->send(record(T_GET_VALUES, 0, ''));
	$c->record;                     # undef if it refuses this client
}

sub _exec ($self, $how, @options) {
	delete @ENV{qw(FCGI_STAT_THREADS PHP_FCGI_CHILDREN FCGI_WEB_SERVER_ADDRS LISTEN_FDS LISTEN_PID)};
	$ENV{$_} = $how->{env}{$_} for keys %{ $how->{env} || {} };
	open STDERR, '>', $self->{log} or POSIX::_exit(126);
	if (my $sock = $how->{passed}) {
		open STDIN, '<', '/dev/null';
		POSIX::dup2(POSIX::dup(fileno $sock), 3);    # a copy: 3 itself would close on exec
		@ENV{qw(LISTEN_FDS LISTEN_PID)} = (1, $$);
	}
	push @options, $as_root if $> == 0 && !$how->{program} && !grep { /^-(?:-root|r|-user|u)/ } @options, @{ $how->{spawn} || [] };
	my @spawn = ('spawn-fcgi', '-n', '-s', $self->{socket}, @{ $how->{spawn} || [] }, '--');
	@spawn = () if $how->{own} || $how->{passed};
	# A test that is killed takes the application with it.
	exec qw(setpriv --pdeathsig TERM --), @{ $how->{under} || [] }, @spawn, @{ $self->{filter} }, $how->{program} // program(), @options or POSIX::_exit(127);
}

# The wait status of the application if it has ended.
sub ended ($self) {
	$self->{status} //= finish($self->{pid}, 0);
	return $self->{status};
}

sub _try ($self) {
	my $p = $self->{passed};
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $p->sockport)
	    if $p && $p->isa('IO::Socket::INET');
	return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $self->{socket});
}

sub connect ($self) {
	my $sock = $self->_try or die "connect $self->{socket}: $!";
	return Test::Fcgi::Conn->new($sock);
}

sub ask ($self, @pairs) {
	my $c = $self->connect;
	$c->send(request(1, 0, @pairs));
	return $c->reply;
}

sub get ($self, $path) { return $self->ask(REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $path) }

# Clients share kept connections, as in the pool of a web server.  Each asks again after its answer.  drive(conns => 20, clients => 200, requests => 10000, paths => [[path, status]...])
# Returns {answered, errors => [...], seconds}.
sub drive ($self, %arg) {
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
sub threads ($self) {
	my @names;
	for my $file (glob "/proc/$self->{pid}/task/*/comm") {
		open my $h, '<', $file or next;
		chomp(my $name = <$h> // '');
		push @names, $name if $name =~ /^stat-/;
	}
	return @names;
}

sub tasks ($self) { my @t = glob "/proc/$self->{pid}/task/*"; return scalar @t }

# The log without the warning of every start without --root (t/accel/start.t tests it).
sub log_text ($self) {
	return slurp($self->{log}) =~ s/^ts=\S+ level=warn ev=root\.none .*\n//mr;
}

sub socket { return $_[0]{socket} }
sub pid    { return $_[0]{pid} }

sub alive ($self) { return !defined $self->ended }

# Sends TERM, or another signal, and returns the wait status; undef if it does not end in time.
sub stop ($self, $signal = undef, $limit = undef) {
	return $self->{status} unless $running{ $self->{pid} };
	kill $self->{sent} = $signal // 'TERM', $self->{pid};
	return $self->{status} = finish($self->{pid}, $limit);
}

sub DESTROY ($self) {
	return if $self->{owner} != $$;
	local ($?, $!);
	if ($running{ $self->{pid} } && !defined $self->stop('TERM', 10)) {
		kill 'KILL', $self->{pid};
		finish($self->{pid});
		Test::More::fail('fcgi-stat-accel ends after TERM');
	}
	Test::More::fail("fcgi-stat-accel ends without a signal or a report of a sanitizer: " . $self->log_text)
	    if (($self->{status} // 0) & 127 && ($self->{sent} // '') ne 'KILL') || $self->log_text =~ /Sanitizer|runtime error/;
}

# A test that dies must leave no process behind.
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
my $owner = $$;
END { if ($$ == $owner) { local $?; kill 'KILL', $_ for keys %running } }

# ---------------------------------------------------------------- a connection

package Test::Fcgi::Conn;

use Errno qw(EINTR);
use Time::HiRes qw(time);

sub new ($class, $sock = undef) {
	return bless { sock => $sock, buf => '', eof => 0 }, $class;
}

sub send ($self, @bytes) {
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

# Reads once, within $limit seconds.  False at the end of the stream.
sub more ($self, $limit = undef) {
	return 0 unless IO::Select->new($self->{sock})->can_read($limit // $Test::Fcgi::patience);
	my $n = sysread $self->{sock}, $self->{buf}, 65536, length $self->{buf};
	$self->{eof} = 1 unless $n;
	return $n ? 1 : 0;
}

# The next record, or undef at the end of the connection.
sub record ($self) {
	$self->{records} ||= [];
	until (@{ $self->{records} }) {
		push @{ $self->{records} }, Test::Fcgi::Codec::parse_records(\$self->{buf});
		last if @{ $self->{records} };
		$self->more or return undef;
	}
	return shift @{ $self->{records} };
}

# One answer up to its END_REQUEST; undef if the connection ends before.
sub reply ($self) {
	my $r = { bytes => '' };
	while (my $rec = $self->record) {
		my ($type, $id, $content) = @$rec;
		$r->{bytes} .= $content if $type == Test::Fcgi::Codec::T_STDOUT;
		next unless $type == Test::Fcgi::Codec::T_END;
		@$r{qw(id app protocol)} = ($id, unpack 'NC', $content);
		return _parse($r);
	}
	return undef;
}

sub _parse ($r) {
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
sub closed ($self, $limit = undef) {
	my $end = time + ($limit // $Test::Fcgi::patience);
	while (!$self->{eof} && time < $end) { $self->more($end - time) }
	return $self->{eof};
}

sub shutdown ($self) { CORE::shutdown($self->{sock}, 1) }

1;
