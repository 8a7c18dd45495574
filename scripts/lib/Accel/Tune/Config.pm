package Accel::Tune::Config;
# A copy of a configuration of accel-server that disturbs nobody.
#
#     my $config = Accel::Tune::Config->load('/etc/accel/accel.conf');
#     say $config->root, ' ', $config->now('server.max-stat-threads');
#     my $text = $config->copy(dir => $tmp, settings => { 'server.max-stat-threads' => 4 });
#
# `load` lets accel-server read the file (--translate), so included files and the output of `include_shell` are in it. `copy` listens on
# 127.0.0.1 only. It has no log, no pid file, no bounds for clients by address, and the settings that are tried.
# Further sockets of the configuration become unix sockets in `dir`, because conditions may depend on them.
#
# The copy starts no application and asks none, since those belong to the running server: backends and authorizers become addresses in `dir` at
# which nobody listens, and each program of cgi.assign becomes /bin/false. The blocks stay, or the sources of programs would be sent
# as files. `endings` are those of programs. All other lines stay as they are.
#
# The commands of `include_shell` run once, in `load`.
#
# `load` dies with the words of accel-server.
use v5.36;
use POSIX       ();
use Accel::Util qw(program);

# Settings that belong to the running server, and settings that would refuse the load of one client.
my $OWN = qr/^(?:server\.(?:port|bind|use-ipv6|errorlog|errorlog-use-syslog|errorlog-format|breakagelog|pid-file|proxy-protocol|max-connections-per-address)
	|accesslog\.(?:filename|use-syslog)|evasive\.[\w-]+|proxy-core\.(?:spawn|check-url)|(?:deflate|compress)\.cache-dir)\z/x;
my $APPLICATION = qr/^proxy-core\.(?:backends|authorizer)\z/;
my $ENDINGS     = qr/^(?:cgi\.assign|static-file\.script-extensions)\z/;
# A statement per line; a string may hold a line break, and only \" is an escape.
my $STRING = qr/"(?:\\"|[^"])*"/;
my $LINE   = qr/(?:[^"\n]|$STRING)*\n/;
my %ALIAS = ('server.max-write-threads' => 'server.max-read-threads');
my $BYTES_MAX = 16 * 1_048_576;

sub load ($class, $file) {
	my $text = _output('--translate', '-f', $file);
	my @lines = grep { !/^#/ } $text =~ /\G($LINE)/g;
	my %global = map { /^([\w.-]+) = (.*)\n\z/s ? ($ALIAS{$1} // $1 => $2) : () } @lines;
	return bless { file => $file, lines => \@lines, global => \%global, defaults => defaults() }, $class;
}

# The output of accel-server; dies with its message if it fails.
sub _output (@args) {
	my $program = program('accel-server');
	open my $err, '+>', undef or die "temporary file: $!\n";
	my $pid = open(my $out, '-|') // die "fork: $!\n";
	if (!$pid) {
		open STDERR, '>&', $err;
		{ no warnings 'exec'; exec $program, @args }
		print STDERR "$program: $!\n";
		POSIX::_exit(127);
	}
	read $out, my $text, $BYTES_MAX + 1;
	close $out;
	my $status = $?;
	seek $err, 0, 0;
	my $said = join '', <$err>;
	die length $said ? $said =~ s/\n?\z/\n/r : "$program @args: status " . ($status >> 8) . "\n" if $status;
	die "accel-server @args: more than $BYTES_MAX bytes\n" if length($text // '') > $BYTES_MAX;
	return $text // '';
}

# Defaults as the manual has them: name => value.
sub defaults () {
	my (%default, $name);
	for my $line (split /\n/, _output('--manual')) {
		$name = $1 if $line =~ /^ {4}([a-z][\w.-]+)$/;
		$default{$name} //= $1 if defined $name && $line =~ /\bdefault ([\w.-]+)[;.]/;
	}
	return \%default;
}

sub unquoted ($value) { return $value =~ /^"(.*)"\z/s ? $1 =~ s/\\"/"/gr : $value }

# The value of a setting outside of conditions, or its default.
sub now ($self, $name) {
	my $value = $self->{global}{$name} // $self->{defaults}{$name} // die "no setting $name\n";
	return unquoted($value);
}

sub root ($self) { return $self->now('server.document-root') }

# Settings that may limit what a measurement shows, wherever they are set.
sub bounds ($self) {
	my %found;
	for (@{ $self->{lines} }) {
		$found{$1} = $2 if /^\s*((?:server|connection)\.kbytes-per-second|server\.max-connections|auth\.require|proxy-core\.authorizer) = (.*)\n/ && $2 ne '0' && $2 ne '( )';
	}
	return \%found;
}

# Endings of programs, wherever they are set.
sub endings ($self) {
	my %found;
	for (@{ $self->{lines} }) {
		my ($name, $list) = /^\s*([\w.-]+) = (.*)\n\z/s or next;
		next unless $name =~ $ENDINGS;
		$found{ unquoted($1) } = 1 while $list =~ /($STRING)(?: => $STRING)?/g;
	}
	return sort grep { /^[^\/]/ } keys %found;             # of cgi.assign also directories, and "" for all
}

# Replaces addresses and programs of the running server.
sub _disarmed ($name, $line, $dir) {
	my $n = 0;
	return $line =~ s/$STRING/quoted("unix:$dir\/none-" . $n++)/ger if $name =~ $APPLICATION;
	return $line =~ s/($STRING) => $STRING/$1 => "\/bin\/false"/gr if $name eq 'cgi.assign';
	return $line;
}

# Text of the copy: dir of unix sockets, settings => { name => value }. The port is that of the variable PORT of the environment.
sub copy ($self, %arg) {
	my ($text, $sockets) = ('', 0);
	for my $kept (@{ $self->{lines} }) {
		my ($name) = (my $line = $kept) =~ /^\s*([\w.-]+) = /;
		$name = $ALIAS{$name} // $name if defined $name;
		next if defined $name && ($name =~ $OWN || exists $arg{settings}{$name});
		$line = _disarmed($name, $line, $arg{dir}) if defined $name;
		$line =~ s/(\$SERVER\["socket"\] == )$STRING/$1 . quoted("unix:$arg{dir}\/socket-" . $sockets++)/ge;
		$text .= $line;
	}
	my %own = (%{ $arg{settings} }, 'server.bind' => '127.0.0.1');
	return join '', $text, "server.port = env.PORT\n", map { statement($_, $own{$_}) } sort keys %own;
}

sub quoted ($value) { return '"' . $value =~ s/"/\\"/gr . '"' }

# A line of a configuration.
sub statement ($name, $value) { return "$name = " . ($value =~ /^\d+\z/ ? $value : quoted($value)) . "\n" }

1;
