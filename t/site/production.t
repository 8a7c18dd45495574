# doc/production.md, as it stands there.  doc/operations.md has its own test (operations.t), and the packages have theirs (t/deb).
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Fcgi;
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp temp_tree);

my $top = "$FindBin::Bin/../..";
my $chapter = slurp("$top/doc/production.md");
my ($packages, $ctl, $replace, $limits) = map { s/^ {4}//mgr } $chapter =~ /^((?: {4}.*\n)+)/mg;
my $www = $> == 0 && getpwnam('www-data');

subtest 'packages' => sub {
	my $makefile = slurp("$top/Makefile");
	my @targets = map { split } "$packages$chapter" =~ /\bmake ((?:[a-z-]+|doc\S+png)(?=[\s`]))/g;
	cmp_ok scalar @targets, '>=', 3, 'targets of make';
	is_deeply [grep { $makefile !~ /^\Q$_\E(?: .*)?:/m } @targets], [], '... are in the Makefile';
	my %built = map { $_ => 1 } slurp("$top/debian/control") =~ /^Package: (\S+)/mg;
	my ($list) = $packages =~ m{build/deb/: (.*)};
	is_deeply [sort split /, /, $list], [sort keys %built], 'all packages are named';
	is_deeply [grep { !$built{$_} } $chapter =~ m{build/deb/([a-z-]+)_\*}g], [], '... and those that are installed are built';
};

subtest 'limits, reload, upgrade' => sub {
	my $tree = temp_tree();
	my $bans = "$tree/list";
	$limits =~ s{"/var/lib/stat-accel/bans/list"}{"$bans"} or die 'no ban file';
	my $srv = Test::Server->start(dir => $tree, conf => qq{server.pid-file = "\@RUN\@/pid"\nserver.max-worker = 1\n$limits} . ($www ? qq{server.username = "www-data"\n} : ''));
	chmod 0755, $srv->run;
	$srv->write('a', 'A');
	my $conf = $srv->run . '/server.conf';
	$srv->wait_log(qr/ev=listening/);
	my @commands = $ctl =~ /^(accel-server ctl .*)$/mg;
	is scalar @commands, 3, 'commands';
	for my $command (@commands) {
		my $line = $command =~ s{^accel-server}{program('accel-server')}er =~ s{/etc/stat-accel/accel-server\.conf}{$conf}r =~ s/\s+#.*//r;
		my $said = qx{$line 2>&1};
		is $?, 0, $command =~ s/ +-f.*//r or diag $said, $srv->log;
		$srv->upgraded_to(slurp($srv->run . '/pid') + 0) if $command =~ / upgrade /;
	}
	my $get = sub { my $r = eval { $srv->fetch('/a') }; return $r && $r->{status} };
	is $get->(), 200, 'with these limits it serves a client that keeps them';
	put($bans, "127.0.0.1\n");
	ok eventually(sub { !$get->() }), 'a banned client is not served';
	put($bans, '');
	ok eventually($get), '... until the line is gone';
};

subtest 'the accelerator' => sub {
	my $dir = temp_tree();
	put("$dir/a", 'A');
	my ($program, @options) = split ' ', $replace;
	is $program, 'fcgi-stat-accel', 'it is the accelerator';
	@options = map { s{/run/stat-accel\.sock}{$dir/sock}r =~ s{/srv/www}{$dir}r } grep { $www || !/^--user/ } @options;
	my $first = Test::Fcgi->start({ own => 1, socket => "$dir/sock" }, @options);
	my $go_on = sub ($fcgi) { $fcgi->ask(REQUEST_METHOD => 'GET', DOCUMENT_ROOT => "$dir", REQUEST_URI => '/a', FCGI_ROLE => 'AUTHORIZER')->{head} =~ /^Status: (\d+)/ ? $1 : 'none' };
	my $before = $go_on->($first);
	like $before, qr/^20/, 'it answers';
	my $second = Test::Fcgi->start({ own => 1, socket => "$dir/sock" }, @options);
	ok eventually(sub { defined $first->ended }), 'the same command again: the first one ends';
	is $first->ended, 0, '... without an error';
	is $go_on->($second), $before, '... and the second one answers';
};

done_testing;
