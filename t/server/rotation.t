# Log rotation of a server that has dropped root: each request has exactly one line over all rotated files, with mv and with
# create of logrotate.  Root follows no link of another user.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use File::Temp ();
use Test::Load;
use Test::Server;

my $rotations = $ENV{ROTATIONS} // 6;
my $www = $> == 0 && getpwnam('www-data');
plan skip_all => 'needs root and the user www-data' unless $www;

sub start {
	my ($conf) = @_;
	my $dir = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1);
	chmod 0755, $dir or die "$dir: $!";
	my $srv = Test::Server->start(conf => qq{server.username = "www-data"\naccesslog.filename = "\@RUN\@/access.log"\n$conf}, dir => $dir);
	$srv->write('a', 'A');
	is $srv->fetch('/a?start')->{body}, 'A', 'it serves';
	return $srv;
}

# HUP until the new files are in use.
sub hup ($srv) {
	my $before = -s $srv->run . '/access.log' // 0;
	$srv->signal('HUP');
	return Test::Util::eventually(sub {
		$srv->fetch('/a?probe');
		(-s $srv->run . '/access.log' // 0) > $before && $srv->log('error.log') =~ /logs\.reopened/;
	});
}

subtest 'rotations under load lose no line' => sub {
	my $srv = start('');
	my $run = $srv->run;
	my $load = Test::Load->start($srv, clients => 4, path => '/a', want => 'A');
	my $done = 0;
	for my $i (1 .. $rotations) {
		rename "$run/$_.log", "$run/$_.log.$i" or die "$_: $!" for qw(access error);
		if ($i % 2) {           # create 0640 root adm
			for my $name (qw(access error)) {
				Test::Util::put("$run/$name.log", '');
				chmod 0640, "$run/$name.log";
			}
		}
		$done++ if hup($srv);
	}
	is $done, $rotations, "$rotations rotations, every other one with a file made by logrotate";
	my ($asked, $wrong) = $load->stop;
	is "@$wrong", '', "$asked requests, each answered";
	is $srv->wait_exit(0), undef, 'the same process serves';
	my ($status) = $srv->term;
	is $status, 0, 'it ends';
	my (%lines, $torn);
	for my $file (glob "$run/access.log*") {
		for (split /^/, Test::Util::slurp($file)) {
			$torn++ unless /\A127\.0\.0\.1 - - \[[^]]+\] "GET \S+ HTTP\/1\.1" 200 1 .*\n\z/;
			$lines{$1}++ if m{"GET /a\?(\d+\.\d+) };
		}
	}
	is scalar keys %lines, $asked, 'each request has a line';
	is scalar(grep { $_ != 1 } values %lines), 0, '... and no more than one';
	is $torn // 0, 0, '... which is whole';
	unlike join('', map { Test::Util::slurp($_) } glob "$run/error.log*"), qr/\.reopen |log\.dropped/, 'nothing went wrong';
};

# The main thread waits for the helper while it opens the logs of a new configuration.
subtest 'a rotation during a reload loses no line' => sub {
	my $srv = start('');
	my $conf = Test::Util::slurp($srv->run . '/server.conf');
	$conf .= sprintf qq{\$HTTP["host"] == "h%d" { accesslog.filename = "%s/h%d.log" }\n}, $_, $srv->run, $_ for 1 .. 300;
	Test::Util::put($srv->run . '/server.conf', $conf);
	$srv->signal('USR1');
	my $signals = 30;
	ok Test::Util::eventually(sub { $srv->signal('HUP') if $signals-- > 0; return $srv->log('error.log') =~ /ev=reloaded/ }), 'the reload ends';
	my $run = $srv->run;
	rename $_, "$_.1" or die "$_: $!" for glob "$run/h*.log";
	ok hup($srv), 'HUP';
	ok Test::Util::eventually(sub { 300 == (() = glob "$run/h*.log") }), '... opens 300 logs anew';
	my $fds = '/proc/' . $srv->pid . '/fd';
	ok Test::Util::eventually(sub { !grep { (readlink $_ // '') =~ /log\.1\z/ } glob "$fds/*" }), '... and lets go of the old ones';
	unlike $srv->log('error.log'), qr/\.reopen |accesslog\.unusable/, 'each of them';
};

subtest 'root follows no link in a directory of another user' => sub {
	my $srv = start('');
	my $run = $srv->run;
	Test::Util::put("$run/target", '');
	chown $www, -1, "$run" or die "$run: $!";
	rename "$run/access.log", "$run/access.old" or die $!;
	symlink "$run/target", "$run/access.log" or die $!;
	$srv->signal('HUP');
	like $srv->wait_log(qr/accesslog\.reopen/), qr/accesslog\.reopen .*symbolic links.*writing to the old file.* do="name the file itself/, 'is not followed';
	is $srv->fetch('/a?linked')->{body}, 'A', 'the server goes on';
	like $srv->wait_log(qr/linked/, 'access.old'), qr/linked/, '... and writes to the old file';
	is -s "$run/target", 0, '... not to the target';

	unlink "$run/access.log" or die $!;
	link "$run/target", "$run/access.log" or die $!;
	$srv->signal('HUP');
	like $srv->wait_log(qr/reopen.*the other name/), qr/accesslog\.reopen .*remove the other name of the file/, 'a hard link is refused';
	unlink "$run/access.log" or die $!;
	ok hup($srv), 'a file of its own is taken';
};

subtest 'root follows no link in a directory that every user may write to' => sub {
	my $srv = start('');
	my $run = $srv->run;
	chmod 0777, $run or die $!;
	$srv->signal('HUP');
	like $srv->wait_log(qr/accesslog\.reopen/), qr/accesslog\.reopen .*other users cannot write to/, 'is refused';
	chmod 01777, $run or die $!;
	ok hup($srv), '... unless it is sticky';
};

subtest 'root writes no pid file through a link of another user' => sub {
	my $run = File::Temp->newdir('accel-pid-XXXXXX', TMPDIR => 1);
	Test::Util::put("$run/target", 'precious');
	symlink "$run/target", "$run/pid" or die $!;
	chown $www, -1, "$run" or die $!;
	my $srv = Test::Server->start(conf => qq{server.pid-file = "$run/pid"\n}, unchecked => 1);
	isnt $srv->wait_exit, 0, 'the server does not start';
	$srv->log_has(qr/pidfile\.failed/, '... and says why');
	is Test::Util::slurp("$run/target"), 'precious', 'the target is as it was';
};

done_testing;
