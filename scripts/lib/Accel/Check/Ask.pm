package Accel::Check::Ask;
# Asks at an address of a configuration whether fcgi-stat-accel answers there, and with which --mode and --root.
#
# The question is a FastCGI request with the SCRIPT_NAME "stat-accel:about" (fcgi-stat-accel/about.h).  Root asks as the user
# of the web server, because that user has to be able to connect.  A child does this, so the rights of this process stay.
use v5.36;

use Accel::Connect ();
use Accel::Fcgi    ();
use Errno qw(EACCES EAGAIN ECONNREFUSED ENOENT EPERM);
use JSON::PP ();
use POSIX    ();

use constant { PATIENCE_S => 5, ANSWER_MAX => 1 << 20 };

# { state, why, about }: state is
#     accel    it answers, about has what it says of itself
#     dead     nothing answers there, or another program does: why says so
#     unknown  this user cannot find out
sub ask ($address, $user, $patience = PATIENCE_S) {
	pipe my $in, my $out or return { state => 'unknown', why => "pipe: $!" };
	my $pid = fork // return { state => 'unknown', why => "fork: $!" };
	if (!$pid) {
		close $in;
		my $found = eval { become($user) // question($address, $user, $patience) } // { state => 'unknown', why => "$@" =~ s/\s+\z//r };
		print {$out} JSON::PP->new->utf8->encode($found);
		close $out;
		POSIX::_exit(0);
	}
	close $out;
	local $/ = undef;
	my $text = <$in> // '';
	close $in;
	waitpid $pid, 0;
	return eval { JSON::PP->new->utf8->decode($text) } // { state => 'unknown', why => 'the question ended without an answer' };
}

# Takes the rights of the server's user; returns what is wrong, if that fails.
sub become ($user) {
	return if $> != 0 || !defined $user;
	my ($uid, $gid) = $user =~ /^#?(\d+)\z/ ? ($1, (getpwuid $1)[3] // $1) : (getpwnam $user)[2, 3];
	return { state => 'unknown', why => "there is no user '$user', whom the configuration names" } unless defined $uid;
	return if $uid == 0;
	my @groups = ($gid, $gid);
	while (my @g = getgrent) { push @groups, $g[2] if grep { $_ eq $user } split ' ', $g[3] }
	$) = "@groups";
	POSIX::setgid($gid);
	return POSIX::setuid($uid) ? undef : { state => 'unknown', why => "cannot become '$user': $!" };
}

sub name_of () { return 'user ' . (getpwuid($>) // $>) }

# Does this process have the rights of the web server now?
sub is_user ($user) { return defined $user && ((getpwnam $user)[2] // $user) eq $> }

sub question ($address, $user, $patience) {
	my $sock = Accel::Connect::connected($address, $patience);
	return no_connection($address, $user, $!, "$@") unless $sock;
	local $SIG{PIPE} = 'IGNORE';
	syswrite $sock, Accel::Fcgi::question(REQUEST_METHOD => 'GET', SCRIPT_NAME => 'stat-accel:about');
	my ($answer, $ended) = Accel::Connect::answer($sock, $patience, ANSWER_MAX, \&Accel::Fcgi::is_whole);
	return verdict($answer, $ended);
}

sub no_connection ($address, $user, $errno, $why) {
	return { state => 'dead', why => "there is no socket $address: fcgi-stat-accel does not run, or listens elsewhere" } if $errno == ENOENT;
	if ($errno == EACCES || $errno == EPERM) {
		my $why = name_of() . ' may not connect to it (' . rights($address) . ')';
		return { state => 'dead', why => $why } if is_user($user);
		return { state => 'unknown', why => "$why; root, or the user of the web server, can ask" };
	}
	return { state => 'dead', why => -e $address && !-S _ ? "$address is not a socket" : "nobody listens at $address" . ($address =~ m{^/} ? ': the socket is left from a process that has ended' : '') }
		if $errno == ECONNREFUSED;
	return { state => 'dead', why => 'its queue is full of connections that nobody takes: the program there hangs' } if $errno == EAGAIN;
	return { state => 'dead', why => "cannot connect: " . ($errno ? POSIX::strerror($errno) : $why) };
}

# "it is root:root 0600", or the directory that is in the way.
sub rights ($path) {
	my @st = stat $path;
	return 'a directory of its path is closed' unless @st;
	return sprintf '%s:%s, mode %04o', (getpwuid $st[4]) // $st[4], (getgrgid $st[5]) // $st[5], $st[2] & 07777;
}

# Words and lists of words, as fcgi-stat-accel/about.c writes them: another program may answer anything.
sub is_about ($about) {
	return unless ref $about eq 'HASH' && ($about->{program} // '') eq 'fcgi-stat-accel';
	return if grep { !defined $about->{$_} || ref $about->{$_} } qw(version mode header);
	return !grep { my $list = $about->{$_} // []; ref $list ne 'ARRAY' || grep { !defined || ref } @$list } qw(roots index path_from);
}

sub verdict ($bytes, $ended) {
	return { state => 'dead', why => 'it takes the connection and does not answer' } if $bytes eq '' && $ended eq 'silent';
	return { state => 'dead', why => 'it closes the connection without an answer: fcgi-stat-accel does so to peers that FCGI_WEB_SERVER_ADDRS or --peer-user leave out' }
		if $bytes eq '';
	my $text = Accel::Fcgi::output($bytes);
	my (undef, $body) = split /\r?\n\r?\n/, $text, 2;
	my $about = eval { JSON::PP->new->utf8->decode($body // '') };
	return { state => 'accel', about => $about } if is_about($about);
	my ($line) = ($text ne '' ? $text : $bytes) =~ /\A([^\r\n]{0,60})/;
	return { state => 'dead', why => 'what answers there is not fcgi-stat-accel' . ($ended eq 'end' ? ', but another FastCGI application' : ', and does not speak FastCGI')
			. ($line =~ /^[\x20-\x7e]{3,}\z/ ? " (\"$line\")" : '') };
}

1;
