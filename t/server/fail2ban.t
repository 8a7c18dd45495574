# examples/fail2ban: the filters find what the logs have and nothing else; a fail2ban with the jail bans and unbans at a real
# server.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Path qw(make_path);
use MIME::Base64 qw(encode_base64);
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Util qw(eventually find_program put slurp);

my $example = "$FindBin::Bin/../../examples/fail2ban";
plan skip_all => 'fail2ban is not installed' if !find_program('fail2ban-server');

my $dir = File::Temp->newdir('accel-f2b-XXXXXX', TMPDIR => 1);
chmod 0755, $dir;
make_path("$dir/bans");
put("$dir/bans/list", "127.0.0.99 # of the operator\n");
put("$dir/users", "ann:pw\n");
chmod 0644, "$dir/users", "$dir/bans/list";
my $srv = Test::Server->start(conf => <<"CONF");
server.ban-file = "$dir/bans/list"
server.max-requests-per-second-per-address = 1
server.request-burst-per-address = 3
accesslog.filename = "\@RUN\@/access.log"
auth.backend = "plain"
auth.backend.plain.userfile = "$dir/users"
auth.require = ( "/secret" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )
CONF
$srv->write('a', 'A');

sub ask ($from, @field) {
	my $c = eval { $srv->connect(from => $from) } or return '';     # the server may reset it so soon
	$c->send(req('/a', @field)) or return '';
	return ($c->reply // { status => '' })->{status};
}

sub flood { my ($from) = @_; return grep { $_ eq 429 } map { ask($from) } 1 .. 12 }

# The addresses that a filter finds.
sub found {
	my ($log, $filter, $of) = @_;
	open my $fh, '-|', 'fail2ban-regex', '-c', $dir, '--raw', '--usedns=no', '-o', 'ip', ($of // $srv)->run . "/$log", "$example/filter.d/$filter" or die $!;
	return sort map { chomp; $_ } grep { /^[0-9a-f:.]+$/ } <$fh>;
}

make_path("$dir/$_.d") for qw(filter action jail fail2ban);
symlink "$example/$_", "$dir/$_" or die $! for 'filter.d/accel-server.conf', 'filter.d/accel-server-auth.conf', 'action.d/accel-server.conf';
put("$dir/fail2ban.conf", "[Definition]\nloglevel = INFO\nlogtarget = $dir/log\nsyslogsocket = none\nsocket = $dir/sock\npidfile = $dir/pid\ndbfile = None\ndbpurgeage = 1d\ndbmaxmatches = 10\n[Thread]\n");
put("$dir/jail.conf", "[DEFAULT]\nusedns = no\nignoreself = false\nlogencoding = auto\nenabled = false\nmaxmatches = 10\n");
my $jail = slurp("$example/jail.d/accel-server.conf");
my $run = $srv->run;
$jail =~ s{/var/log/stat-accel}{$run}g;
$jail =~ s{^action .*}{action = accel-server[banfile="$dir/bans/list"]}mg;
$jail =~ s{^backend .*}{backend = polling}mg;
$jail =~ s{^maxretry = 50}{maxretry = 5}m or die 'the jail has changed';
put("$dir/jail.d/accel-server.conf", $jail);

subtest 'the filters' => sub {
	flood('127.0.0.2');
	is ask('127.0.0.3', 'User-Agent: x" 429 17', 'X: 127.0.0.4'), 200, 'a client that writes of 429';
	my $c = $srv->connect(from => '127.0.0.5');
	$c->send("NONSENSE\r\n\r\n");
	$c->reply;
	for my $user ('bob', 'b" client=127.0.0.4 x') {
		$c = $srv->connect(from => '127.0.0.6');
		$c->send(req('/secret', 'Authorization: Basic ' . encode_base64("$user:nonsense", '')));        # 401 comes seconds later
	}
	$srv->wait_lines(2, qr/ev=auth\.failed/);
	$srv->wait_lines(14, qr/./, 'access.log');
	my @limit = found('access.log', 'accel-server.conf');
	cmp_ok scalar @limit, '>=', 1, 'refused requests are found';
	is_deeply [grep { $_ ne '127.0.0.2' } @limit], [], '... of that client only';
	is_deeply [found('access.log', 'accel-server.conf[mode=probe]')], ['127.0.0.5'], 'a malformed request';
	is_deeply [found('error.log', 'accel-server-auth.conf')], ['127.0.0.6', '127.0.0.6'], 'wrong passwords, also of a user who writes of another client';
};

subtest 'the error log as JSON' => sub {
	my $json = Test::Server->start(conf => <<"CONF");
server.errorlog-format = "json"
auth.backend = "plain"
auth.backend.plain.userfile = "$dir/users"
auth.require = ( "/secret" => ( "method" => "basic", "realm" => "x", "require" => "valid-user" ) )
CONF
	for my $user ('bob', 'b","client":"127.0.0.4","path":"x') {
		my $c = $json->connect(from => '127.0.0.6');
		$c->send(req('/secret', 'Authorization: Basic ' . encode_base64("$user:nonsense", '')));
	}
	$json->wait_lines(2, qr/"ev":"auth\.failed"/);
	is_deeply [found('error.log', 'accel-server-auth.conf', $json)], ['127.0.0.6', '127.0.0.6'], 'wrong passwords, and no other client';
};

sub client { my @said = qx{fail2ban-client -c "$dir" -s "$dir/sock" -p "$dir/pid" @_ 2>&1}; return join '', @said }

subtest 'ban, refused, unban, served' => sub {
	my $pid = fork // die $!;
	if (!$pid) {
		open STDOUT, '>', "$dir/out" or POSIX::_exit(1);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(1);
		{ no warnings; exec 'fail2ban-server', '-f', '-x', '-c', "$dir", '-s', "$dir/sock", '-p', "$dir/pid", 'start' }
		POSIX::_exit(127);
	}
	ok eventually(sub { client('status') =~ /accel-server-auth, accel-server-limit/ }), 'fail2ban runs the jail' or diag slurp("$dir/out"), slurp("$dir/log");
	ok eventually(sub { flood('127.0.0.7'); ask('127.0.0.7') eq '' }), 'a client that floods is not served any more' or diag slurp("$dir/log");
	like slurp("$dir/bans/list"), qr/^127\.0\.0\.7 \d{10} # fail2ban accel-server-limit$/m, 'the file has the ban, with its end';
	is ask('127.0.0.8'), 200, 'another client is served';
	client('set accel-server-auth banip 2001:db8:1:2::3');
	like slurp("$dir/bans/list"), qr{^2001:db8:1:2::3/64 \d{10} # fail2ban accel-server-auth$}m, 'an IPv6 address, with its network';
	is client('set accel-server-limit unbanip 127.0.0.7') =~ s/\s//gr, '1', 'unban';
	# fail2ban may read of further requests of the flood, and ban it again
	ok eventually(sub { client('set accel-server-limit unbanip 127.0.0.7'); ask('127.0.0.7') ne '' }), 'it is served again';
	client('stop');
	waitpid $pid, 0;
	like slurp("$dir/bans/list"), qr/\A127\.0\.0\.99 # of the operator\n\z/, 'at its end fail2ban leaves the lines of others';
	is ask('127.0.0.99'), '', '... in force';
};

done_testing;
