package Test::Tomcat;
# Tomcat 10 with an AJP connector on a port of its own.
#
#     my $tomcat = Test::Tomcat->start(secret => 'word');
#     $tomcat->write('hello.jsp', 'Hello <%= request.getRemoteAddr() %>');
#     # proxy-core.backends = ( "127.0.0.1:@{[ $tomcat->port ]}" )
#     $tomcat->kill; $tomcat->up;         # the same port
#
# `start` takes `secret` (undef: the connector wants none) and `attributes`, more attributes of the connector. Pages are files of
# the application ROOT, which Tomcat compiles at their first request. The instance is a directory that goes with the object.
use v5.36;
use File::Path qw(make_path);
use File::Temp ();
use POSIX ();
use Test::Util qw(eventually need_program put slurp);

my $HOME = '/usr/share/tomcat10';
my $START_S = 240;      # a JVM on a loaded machine

sub start ($class, %arg) {
	my $java = need_program('java', 'tomcat10-user');
	-r "$HOME/bin/bootstrap.jar" or die "Tomcat 10 is missing: run scripts/install-deps tomcat\n";
	my $self = bless { %arg, java => $java, port => 0, owner => $$,
		dir => File::Temp->newdir('accel-tomcat-XXXXXX', TMPDIR => 1) }, $class;
	make_path(map { "$self->{dir}/$_" } qw(conf logs temp work webapps/ROOT/WEB-INF));
	put("$self->{dir}/conf/web.xml", slurp("$HOME/skel/conf/web.xml"));
	$self->up;
	return $self;
}

sub port { return $_[0]{port} }
sub log  { return slurp("$_[0]{dir}/logs/out") }

sub write ($self, $name, $bytes) {
	return put("$self->{dir}/webapps/ROOT/$name", $bytes);
}

sub _conf ($self) {
	my $secret = defined $self->{secret} ? qq{secret="$self->{secret}"} : 'secretRequired="false"';
	return <<"END";
<Server port="-1"><Service name="Catalina">
<Connector protocol="AJP/1.3" address="127.0.0.1" port="$self->{port}" $secret @{[ $self->{attributes} // '' ]}/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="false"/></Engine>
</Service></Server>
END
}

sub up ($self) {
	put("$self->{dir}/conf/server.xml", $self->_conf);
	put("$self->{dir}/logs/out", '');
	defined($self->{pid} = fork) or die "fork: $!";
	if (!$self->{pid}) {
		alarm 900;              # goes through exec: never an orphan
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', "$self->{dir}/logs/out";
		open STDERR, '>&', \*STDOUT;
		{ no warnings; exec $self->{java}, '-Xmx256m', '-XX:+UseSerialGC', "-Dcatalina.home=$HOME", "-Dcatalina.base=$self->{dir}",
			"-Djava.io.tmpdir=$self->{dir}/temp", '-cp', "$HOME/bin/bootstrap.jar:$HOME/bin/tomcat-juli.jar",
			'org.apache.catalina.startup.Bootstrap', 'start' }
		POSIX::_exit(127);
	}
	eventually(sub { $self->log =~ /Server startup in/ || waitpid($self->{pid}, POSIX::WNOHANG()) }, $START_S);
	my $log = $self->log;
	die "Tomcat did not start:\n$log" if $log !~ /Server startup in/ || $log !~ /Starting ProtocolHandler \["ajp-nio-127\.0\.0\.1-(?:auto-\d+-)?(\d+)"\]/;
	$self->{port} = $1;
	return;
}

sub kill ($self) {
	my $pid = delete $self->{pid} or return;
	CORE::kill('KILL', $pid);
	waitpid $pid, 0;
	return;
}

sub DESTROY ($self) { local ($?, $!); $self->kill if $$ == $self->{owner} }

1;
