package Test::Site;
# A web server as examples/ sets it up, with its fcgi-stat-accel, asked over HTTP.
#
#     my $site = Test::Site->start('nginx', 'auth.conf', root => $docroot);
#     my $r = $site->get('/one.txt', Range => 'bytes=0-0');
#     print $r->{status}, $r->{header}{'content-type'}, $r->{body};
#     print $site->asked;                                 # answers of the accelerator
#     my %size = $site->warmed;                           # files it was asked for
#     print $site->complaints;                            # the server's error log
#     my $lines = Test::Site->readme(qr/auth_request/);   # the indented lines of the README with that word
#
# How an example becomes a test:
#
# The file in examples/ is used as it is, and so is the command in its first comment, which starts the
# accelerator. Only these words are replaced, wherever they stand:
#
#     /srv/www                  the tree of the test
#     /run/ /var/log/NAME/      its own directory
#     /var/lib/NAME/            the same, and /var/cache/NAME/; the directories of --nginx-cache are made
#     /usr/local/bin/           the directory of the program under test
#     /etc/NAME/*.lua           copies of those in examples/
#     8080 8081 8082 9000       free ports of 127.0.0.1
#
# Not by a replacement: the command line of the server keeps it in the foreground (so is
# spawn-fcgi, with -n) and, nginx, where its error log is before it has read where it is; nginx gets directories for
# temporary files after its "http {". Started by root, everything runs as www-data, as in the file;
# by others, lines and options that change the user are left out, since they cannot work.
#
# The accelerator gets `--status-path=/accel-status --timing=json` in addition: this is how `asked` and `warmed` know
# that a test did not pass without it, or with another file.
#
# Options of start:
#
# `root`; `cpu` the core of server and accelerator; `quiet`: no timing lines, so that `warmed` is empty; `edit` a function that changes the text of the configuration; `text` a configuration in place of
# a file; `behind => [$site...]` those that 8081, 8082... stand for; without it 8081 is
# free, for the test.
use v5.36;
use Test::Util ();
use parent 'Accel::Peer';
use Cwd ();
use File::Basename qw(dirname);
use File::Copy ();
use File::Path qw(make_path);
use File::Temp ();
use IO::Select;
use JSON::PP ();
use List::Util qw(sum);
use Test::Fcgi ();
use Test::Fcgi::Codec qw(:all);
use Test::Http ();
use Test::More ();
use Time::HiRes qw(time);

my $examples = Cwd::abs_path(dirname(__FILE__) . '/../../../examples');
my $status_path = '/accel-status';

# The command line of each server with a configuration of ours, in the foreground.
my %argv = (
	nginx    => sub { ('nginx', '-p', $_[0]{dir}, '-e', "$_[0]{dir}/error.log", '-g', 'daemon off;', '-c', $_[1]) },
	lighttpd => sub { ('lighttpd', '-D', '-f', $_[1]) },
	apache   => sub { ('apache2', '-D', 'FOREGROUND', '-f', $_[1]) },
	h2o      => sub { ('h2o', '-c', $_[1]) },
	caddy    => sub { ('caddy', 'run', '--adapter', 'caddyfile', '--config', $_[1]) },
	haproxy  => sub { ('haproxy', '-db', '-f', $_[1]) },
	hitch    => sub { ('hitch', '--config', $_[1]) },
);
my @as_www_data = qw(setpriv --reuid=www-data --regid=www-data --clear-groups);
# Lines that only root may use.
my %of_root = (
	nginx => qr/^user .*\n/m, lighttpd => qr/^server\.(?:user|group)name .*\n/m, apache => qr/^(?:User|Group) .*\n/m,
	h2o => qr/^user: .*\n/m, haproxy => qr/^\s*(?:user|group) .*\n/m, caddy => qr/(?!)/, hitch => qr/^(?:user|group) .*\n/m,
);

my %package = (nginx => 'nginx-light', apache => 'apache2-bin');

# Fails without the server, and names its package.
sub need ($class, $kind) {
	my ($program) = $argv{$kind}->({ dir => '' }, '');
	Test::Util::need_program($program, $package{$kind} // $kind);
}

# The fenced block of that language in the server's README.
sub block ($class, $kind, $language) {
	my ($block) = Test::Util::slurp("$examples/$kind/README.md") =~ /^```$language\n(.*?)^```/ms;
	return $block // die "$examples/$kind/README.md: no $language\n";
}

# The command in the README that fits.
sub command ($class, $kind, $pattern) {
	my ($line) = grep { /$pattern/ } Test::Util::slurp("$examples/$kind/README.md") =~ /^    (\S.*fcgi-stat-accel.*)$/mg;
	return $line // die "$examples/$kind/README.md: no command\n";
}

# The indented block of the README at the top that has a line that fits, without the indent.
sub readme ($class, $pattern) {
	my $file = "$examples/../README.md";
	my ($block) = grep { /$pattern/ } Test::Util::slurp($file) =~ /^((?: {4}.*\n)+)/mg;
	return ($block // die "$file: no lines with $pattern\n") =~ s/^ {4}//mgr;
}

# The text of the shortest configuration with these lines: nginx's inside http, Apache's in the main server. The command starts
# the accelerator.
my %shortest = (nginx => [<<'BEFORE', "}\n"], apache => [<<'BEFORE', '']);
error_log /var/log/nginx/error.log;
pid /run/nginx.pid;
user www-data;
events { }
http {
	access_log off;
BEFORE
ServerName localhost
PidFile /run/apache2.pid
DefaultRuntimeDir /run/
ErrorLog /var/log/apache2/error.log
User www-data
Group www-data
TypesConfig /etc/mime.types
Listen 8080
DocumentRoot /srv/www
<Directory /srv/www>
	Require all granted
</Directory>
BEFORE

sub shortest ($class, $kind, $command, $lines) {
	my ($before, $after) = @{ $shortest{$kind} };
	return ($command =~ s{^}{#   }mgr) . "\n$before$lines\n$after";
}

# lighttpd's examples start the accelerator themselves; without these words the command of the first comment does.
sub by_command { return $_[0] =~ s/"bin-path" *=>.*\n//r =~ s/,\s*"max-procs" *=> 1//r }

sub start ($class, $kind, $file, %arg) {
	my $self = bless { %arg, name => "$kind with $file", kind => $kind, owner => $$ }, $class;
	$self->{root} = Cwd::abs_path($arg{root});
	$self->{dir} = File::Temp->newdir("site-$kind-XXXXXX", TMPDIR => 1);
	chmod 0755, "$self->{dir}";
	my $example = $arg{text} // Test::Util::slurp("$examples/$kind/$file") || die "$examples/$kind/$file: $!";
	$self->{ports} = { map { $_ => Test::Util::free_port() } qw(8080 8081 9000) };
	$self->{ports}{ 8081 + $_ } = $arg{behind}[$_]->port for 0 .. $#{ $arg{behind} // [] };
	$self->{port} = $self->{ports}{8080};
	$self->_programs;
	if ($arg{own_accel}) {
		$self->{app} = bless { %$self, name => 'fcgi-stat-accel', address => $self->_replaced($arg{own_accel}) }, $class;
	}
	elsif (!$arg{behind}) {         # these have one
		$self->_start_accel($example);
	}
	$self->_write_conf($example);
	$self->_run_server;
	return $self;
}

# ---------------------------------------------------------------- the accelerator

# The commands in the first comment: its indented lines, joined where one ends in a backslash.
sub commands ($text) {
	my ($head) = $text =~ /\A((?:#.*\n)+)/ or die "an example begins with a comment\n";
	$head =~ s/^# ?//mg;
	$head =~ s/\\\n\s*//g;
	return grep { /fcgi-stat-accel/ } $head =~ /^  +(\S.*)$/mg;
}

sub _start_accel ($self, $example) {
	$self->{example} = $example;
	my ($line) = commands($example) or die "$self->{name}: no command\n";
	my @cmd = split ' ', $self->_replaced($line);
	$self->_make_cache($_) for map { m{^--nginx-cache=(?:\w+=)?([^:]+)} } @cmd;
	my ($program) = grep { $cmd[$_] =~ /fcgi-stat-accel$/ } 0 .. $#cmd;
	my @spawn = splice @cmd, 0, $program;
	if (my ($at) = grep { $spawn[$_] eq 'spawn-fcgi' } 0 .. $#spawn) {
		splice @spawn, $at + 1, 0, '-n';
		@spawn = _without_user(@spawn) if $> != 0;
		unshift @spawn, 'env';          # there may be NAME=value in front
	}
	elsif ($> == 0) {
		@spawn = @as_www_data;
	}
	push @cmd, "--status-path=$status_path", $self->{quiet} ? () : '--timing=json';
	my $app = bless { %$self, name => 'fcgi-stat-accel', kind => 'stat-accel' }, ref $self;
	delete $app->{lifeline};
	$app->{dir} = File::Temp->newdir('site-accel-XXXXXX', TMPDIR => 1);     # its own output
	my ($socket) = $line =~ m{(?:-s |unix:)(/run/\S+)};
	$app->{address} = $socket ? $self->_replaced($socket) : "127.0.0.1:$self->{ports}{9000}";
	$app->_spawn($self->_on_cpu, @spawn, @cmd);
	$self->{app} = $app;
	Test::Util::eventually(sub { $app->{sock} = $app->_connect or !$app->alive }, 20);
	die "$line: does not answer\n" . $app->said unless delete $app->{sock};
}

# As "install -d -o www-data -m 700" does.
sub _make_cache ($self, $dir) {
	make_path($dir, { mode => 0700 });
	if ($> == 0) { chown +(getpwnam 'www-data')[2, 3], $dir }
}

sub _without_user {
	my @cmd = @_;
	for (my $i = 0; $i < @cmd; $i++) {
		splice @cmd, $i--, 2 if $cmd[$i] =~ /^-[ugUG]$/;
	}
	return @cmd;
}

sub _connect ($app) {
	return IO::Socket::UNIX->new(Peer => $app->{address}) if $app->{address} =~ m{^/};
	return IO::Socket::INET->new(PeerAddr => $app->{address});
}

# The accelerator, or those of the servers behind this one.
sub apps ($self) { return $self->{behind} ? map { $_->apps } @{ $self->{behind} } : $self->{app} // () }

# Answers the accelerator has given until now, its status page not counted.
sub asked ($self) {
	return sum map { $_->_answers } $self->apps;
}

sub _answers ($app) {
	my $page = $app->_ask(REQUEST_METHOD => 'GET', SCRIPT_NAME => $status_path)->{body};
	my @count = $page =~ /^accel\.answers\.[\w-]+\W+(\d+)/gm or die "no counts on the status page: $page\n";
	return sum @count;
}

# The answer of the accelerator itself.
sub ask_accel ($self, @params) { return $self->{app}->_ask(@params) }

sub _ask ($app, @params) {
	my $c = Test::Fcgi::Conn->new($app->_connect // die "the accelerator is gone: $!\n");
	$c->send(request(1, 0, @params));
	return $c->reply;
}

# Path => size of the files that it has made warm; 0 for files that it was asked for and did not find.
sub warmed ($self) {
	return map { $_->{path} => $_->{bytes} } $self->timing;
}

# The timing lines of the accelerator, one for each request.
sub timing ($self) {
	my @lines = map { grep { /^\{.*\}$/ } split /\n/, $_->said } $self->apps;
	return map { JSON::PP->new->decode($_) } @lines;
}

# The test plays the accelerator for one request: what the server asks, and what it does with the answer.
#   my ($params, $r) = $site->answer_as_accel($bytes, sub { before the answer }, TARGET, headers)
sub answer_as_accel ($self, $answer, $before, @request) {
	my $address = $self->{app}{address};
	$self->stop_accel;
	unlink $address;
	my $listening = $address =~ m{^/} ? IO::Socket::UNIX->new(Local => $address, Listen => 1)
	    : IO::Socket::INET->new(LocalAddr => $address, Listen => 1, ReuseAddr => 1);
	die "$address: $!\n" unless $listening;
	chmod 0777, $address;
	my $client = $self->_send('GET', @request);
	IO::Select->new($listening)->can_read(20) or die "$self->{name}: no request to the accelerator\n";
	my $c = Test::Fcgi::Conn->new(scalar $listening->accept);
	my $params = '';
	while (my $record = $c->record) {
		my ($type, $id, $content) = @$record;
		$params .= $content if $type == T_PARAMS;
		last if $type == T_PARAMS && $content eq '';
	}
	$before->();
	$c->send(record(T_STDOUT, 1, $answer), record(T_STDOUT, 1, ''), end_request(1));
	shutdown $c->{sock}, 1;
	1 while $c->more;                       # closed with something unread, it would reset the connection
	return ($params, $self->_reply($client));
}

# Runs the command of the README with other paths only, so that the accelerator is a process of its own: {said, status}.
sub spawn_as_written ($self, $command) {
	my @cmd = split ' ', $self->_replaced($command) =~ s/\\\n//gr;
	@cmd = _without_user(@cmd) if $> != 0;
	open my $out, '-|', @cmd or die "$cmd[0]: $!\n";
	my $said = do { local $/; <$out> };
	close $out;
	($self->{daemon}) = $said =~ /PID: (\d+)/;
	return { said => $said, status => $? };
}

# ---------------------------------------------------------------- the server

sub _replaced ($self, $text) {
	$text =~ s{/srv/www}{$self->{root}}g;
	$text =~ s{/etc/$self->{kind}/(?=\w+\.lua)}{$self->{dir}/}g;
	$text =~ s{/usr/local/bin/}{$self->{dir}/bin/}g;
	$text =~ s{/run/}{$self->{dir}/run/}g;
	$text =~ s{/var/(?:log|lib|cache)/\w+}{$self->{dir}}g;
	$text =~ s{\b(8080|8081|8082|9000)\b}{$self->{ports}{$1}}g;
	return $text;
}

# A place where www-data finds the programs, wherever they were built.
sub _programs ($self) {
	my $bin = "$self->{dir}/bin";
	my @run = ("$self->{dir}/run", "$self->{dir}/run/lighttpd");
	make_path($bin, @run);
	File::Copy::copy(Test::Fcgi::program(), "$bin/fcgi-stat-accel") or die Test::Fcgi::program() . ": $!";
	chmod 0755, "$bin/fcgi-stat-accel";
	File::Copy::copy($_, "$self->{dir}") or die "$_: $!" for glob "$examples/$self->{kind}/*.lua";
	symlink '/usr/lib/nginx/modules', "$self->{dir}/modules" if $self->{kind} eq 'nginx';   # load_module looks here
	if ($> == 0) { chown +(getpwnam 'www-data')[2, 3], "$self->{dir}", @run }
}

sub _write_conf ($self, $text) {
	$text = $self->_replaced($text);
	$text =~ s/$of_root{$self->{kind}}//g if $> != 0;
	if ($self->{kind} eq 'nginx') {
		my @temp = map { "${_}_temp_path $self->{dir}/temp;" } qw(client_body proxy fastcgi uwsgi scgi);
		$text =~ s/^http \{\n/http { @temp\n/m or die "$self->{name}: no http block\n";
	}
	$text = $self->{edit}->($text) if $self->{edit};
	Test::Util::put("$self->{dir}/conf", $text);
}

sub _run_server ($self) {
	my ($program, @arg) = $argv{ $self->{kind} }->($self, "$self->{dir}/conf");
	my @as = $> == 0 && $self->{kind} eq 'caddy' ? @as_www_data : ();       # has no directive for that
	local @ENV{qw(HOME XDG_CONFIG_HOME XDG_DATA_HOME)} = ("$self->{dir}") x 3;
	$self->_spawn($self->_on_cpu, @as, Test::Util::find_program($program), @arg);
	$self->_wait_for_port(time + 20);
}

sub _on_cpu ($self) { return defined $self->{cpu} ? ('taskset', '-c', $self->{cpu}) : () }

# How many answers were files.
sub served { $_[0]{served} }

# Names of all headers that any client got.
sub seen ($self) { return sort keys %{ $self->{seen} } }

# The error log of the web server without the lines that fit one of these patterns.
sub complaints ($self, @expected) {
	return join "\n", grep { my $line = $_; length && !grep { $line =~ $_ } @expected } split /\n/, $self->said;
}

sub stop_accel ($self) { $self->{app}->stop }

# Again, by the same command.
sub start_accel ($self) { $self->_start_accel($self->{example}) }

sub stop ($self) {
	$self->SUPER::stop;
	kill TERM => delete $self->{daemon} if $self->{daemon};
	my $app = delete $self->{app} or return;
	$app->stop;
	Test::More::fail("$app->{name} ends without a report of a sanitizer: " . $app->said) if $app->said =~ /Sanitizer|runtime error/;
}

# ---------------------------------------------------------------- the client

# get(TARGET, Name => 'value'...): {status, head, header => {...}, body}
sub get  ($self, @ask) { return $self->ask('GET', @ask) }
sub head ($self, @ask) { return $self->ask('HEAD', @ask) }

sub ask ($self, @ask) { return $self->_reply($self->_send(@ask)) }

sub _send ($self, $method, $target, @headers) {
	my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 20)
	    or die "$self->{name}: $!\n";
	syswrite $sock, Test::Http::request_head($method, $target, @headers);
	return $sock;
}

sub _reply ($self, $sock) {
	my $bytes = '';
	1 while sysread $sock, $bytes, 1 << 18, length $bytes;
	my $r = Test::Http::parse($bytes);
	$self->{seen}{$_}++ for keys %{ $r->{header} };
	$self->{served}++ if $r->{status} =~ /^(?:20[06]|304)$/;
	return $r;
}

1;
