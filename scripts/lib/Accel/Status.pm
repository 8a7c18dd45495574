package Accel::Status;
# Asks accel-server or fcgi-stat-accel for its status: over HTTP or FastCGI, tcp or a unix socket.
#
#     my $server = Accel::Status->new('http://127.0.0.1/server-status');      # or unix:SOCKET:/PATH, fcgi:SOCKET:/PATH
#     my $before = $server->ask;                                              # dies with a message for people
#     sleep 1;
#     my $rates = Accel::Status::Form::rates($before, $server->ask);
#     say "$rates->{requests_per_s} requests/s, p99 $rates->{stages}[-1]{p99_ns} ns";
#
# Accel::Status::Form has the names of the numbers.
use v5.36;

use Accel::Connect ();
use Accel::Fcgi    ();
use Accel::Status::Form ();
use JSON::PP     ();
use MIME::Base64 ();

use constant { PATIENCE_S => 5, ANSWER_MAX => 2 << 20, DEPTH_MAX => 16 };

my $QUERY = 'json&buckets';
my %PATH = (http => '/server-status', fcgi => '/accel-status');

# ---------------------------------------------------------------- where

# { kind, address, host, path, login } of http://USER:PASSWORD@HOST:PORT/PATH, unix:SOCKET[:/PATH], fcgi:SOCKET|HOST:PORT[:/PATH];
# dies with what was expected.
sub place ($text, %opt) {
	my $at = { kind => 'http', host => 'localhost', login => $opt{login} };
	if ($text =~ m{^https:}) {
		die "'$text': https is not supported; ask on the machine itself, http://127.0.0.1/server-status\n";
	} elsif (my ($login, $host, $port, $path) = $text =~ m{^http://(?:([^/@]*)@)?(\[[\da-fA-F:.]+\]|[^/:?#@\s]+)(:\d+)?(/[^?#]*)?\z}) {
		$at->{login} //= decoded($login) if defined $login;
		@$at{qw(host address path)} = ($host . ($port // ''), $host . ($port // ':80'), $path);
	} elsif ($text =~ m{^(unix|fcgi):(/.*?)(?::(/[^?#]*))?\z}s) {
		@$at{qw(kind address path)} = ($1 eq 'fcgi' ? 'fcgi' : 'http', $2, $3);
	} elsif ($text =~ m{^fcgi:((?:\[[\da-fA-F:.]+\]|[^/:?#@\s]+):\d+)(?::?(/[^?#]*))?\z}) {
		@$at{qw(kind address path)} = ('fcgi', $1, $2);
	} else {
		die "'$text': expected http://HOST[:PORT][/PATH], unix:SOCKET[:/PATH] or fcgi:SOCKET[:/PATH]\n";
	}
	$at->{path} //= $PATH{ $at->{kind} };
	$at->{host} = $opt{host} if defined $opt{host};
	return $at;
}

sub decoded ($text) { return $text =~ s/%([\da-fA-F]{2})/chr hex $1/ger }

# ---------------------------------------------------------------- asking

sub new ($class, $text, %opt) {
	return bless { text => $text =~ s{//[^/]*@}{//}r, patience => $opt{patience} // PATIENCE_S, place => place($text, %opt) }, $class;
}

sub where ($self) { return $self->{text} }

# True if it is on this machine, as far as the last connection shows.
sub is_local ($self) { return $self->{local} }

# A status in the common form (Accel::Status::Form), or dies: "what is wrong\n".
sub ask ($self) {
	my $at = $self->{place};
	local $SIG{PIPE} = 'IGNORE';
	local ($!, $@);
	my $sock = Accel::Connect::connected($at->{address}, $self->{patience})
		or die "$self->{text}: cannot connect: " . ($! ? "$!" : "$@" =~ s/\s+\z//r) . "\n";
	$self->{local} = $at->{address} =~ m{^/} || ($sock->peerhost // '') eq ($sock->sockhost // '-');
	my $body = eval { $at->{kind} eq 'fcgi' ? $self->over_fcgi($sock) : $self->over_http($sock) } // die "$self->{text}: $@";
	my $form = Accel::Status::Form::form($self->json($body)) // die "$self->{text}: this is not a status of accel-server or fcgi-stat-accel\n";
	# Without the request for the status: the user does not look for it.
	my $running = $form->{running};
	my @others = grep { $_->{url} ne "$at->{path}?$QUERY" } @{ $running->{rows} };
	$running->{requests} -= @{ $running->{rows} } - @others;
	$running->{rows} = \@others;
	return $form;
}

sub answer ($self, $sock, $whole) {
	my ($bytes, $ended) = Accel::Connect::answer($sock, $self->{patience}, ANSWER_MAX, $whole);
	die "no answer within $self->{patience} s\n"                  if $ended eq 'silent';
	die 'the answer is longer than ' . (ANSWER_MAX >> 20) . " MB\n" if $ended eq 'endless';
	die "the connection is closed without an answer\n"            if $bytes eq '';
	return $bytes;
}

sub over_http ($self, $sock) {
	my $at = $self->{place};
	my $path = $at->{path} =~ s{([^\x21-\x7e])}{sprintf '%%%02X', ord $1}ger;
	my $login = defined $at->{login} ? 'Authorization: Basic ' . MIME::Base64::encode_base64($at->{login}, '') . "\r\n" : '';
	syswrite $sock, "GET $path?$QUERY HTTP/1.0\r\nHost: $at->{host}\r\nUser-Agent: accel-top\r\n${login}Connection: close\r\n\r\n";
	my ($head, $body) = split /\r?\n\r?\n/, $self->answer($sock, sub ($) { 0 }), 2;
	my ($status) = $head =~ m{^HTTP/1\.[01] (\d{3})\b} or die "what answers does not speak HTTP\n";
	return $body // '' if $status == 200;
	my %why = (401 => ': wrong or no user and password; --login FILE has them', 403 => ': the configuration does not let this address see the page',
		404 => ": there is no status page at $at->{path}");
	die "status $status", $why{$status} // '', "\n";
}

sub over_fcgi ($self, $sock) {
	syswrite $sock, Accel::Fcgi::question(REQUEST_METHOD => 'GET', SCRIPT_NAME => $self->{place}{path}, QUERY_STRING => $QUERY);
	my $bytes = $self->answer($sock, \&Accel::Fcgi::is_whole);
	die "the answer is not FastCGI\n" unless Accel::Fcgi::is_whole($bytes);
	my (undef, $body) = split /\r?\n\r?\n/, Accel::Fcgi::output($bytes), 2;
	return $body // '';
}

sub json ($self, $body) {
	my $page = eval { JSON::PP->new->utf8->max_depth(DEPTH_MAX)->decode($body) };
	return $page if ref $page eq 'HASH';
	my ($kind, $path) = @{ $self->{place} }{qw(kind path)};
	die "$self->{text}: there is no status at $path: ", $kind eq 'fcgi' ? "start fcgi-stat-accel with --status-path=$path\n"
		: "the answer is not JSON; is this the status.status-url of accel-server?\n";
}

1;
