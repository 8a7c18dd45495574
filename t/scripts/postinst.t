# The package's maintainer script upgrades the running server.  A new program that refuses the configuration says why, and the
# old one serves on.  t/deb/ does it with real packages and systemd.
use v5.36;
use Cwd qw(abs_path);
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util qw(eventually program put slurp temp_tree);

my $bin = temp_tree();
symlink abs_path(program('accel-server')), "$bin/accel-server" or die $!;
my $script = slurp("$FindBin::Bin/../../debian/stat-accel-server.postinst");

# As dpkg runs it after an upgrade.  Status, and what it says.
sub postinst ($srv) {
	my $run = $srv->run;
	put("$run/tmpfiles", "d $run/logs 0750 root root\n");
	put("$run/postinst", $script =~ s{/usr/lib/tmpfiles\.d/accel-server\.conf}{$run/tmpfiles}r =~ s{/etc/stat-accel/accel-server\.conf|/var/log/stat-accel|/run/stat-accel(?=/)}{ $& =~ /conf/ ? "$run/server.conf" : "$run" }ger);
	local $ENV{PATH} = "$bin:$ENV{PATH}";
	my ($rc, $out, $err) = Test::Util::run_fed('/bin/sh', '', "$run/postinst", 'configure', '0.0.1');
	return ($rc, $out . $err);
}

sub server ($conf = '') {
	my $srv = Test::Server->start(conf => qq{server.pid-file = "\@RUN\@/accel-server.pid"\nserver.max-worker = 1\n$conf});
	$srv->write('a', 'A');
	$srv->wait_log(qr/ev=listening/);
	return $srv;
}

sub pid ($srv) { return slurp($srv->run . '/accel-server.pid') =~ /(\d+)/ ? $1 : 0 }

for my $conf ('', qq{server.control-socket = "disable"\n}) {
	subtest $conf ? 'without a control socket' : 'with a control socket' => sub {
		my $srv = server($conf);
		my $old = pid($srv);
		my ($rc, $said) = postinst($srv);
		is $rc, 0, 'an upgrade';
		ok eventually(sub { pid($srv) != $old }), '... another process serves' or diag $said;
		$srv->upgraded_to(pid($srv));
		unlike $said, qr/refuses|goes on/, '... and nothing is wrong';
		is $srv->fetch('/a')->{body}, 'A', '... which serves';

		my $good = slurp($srv->run . '/server.conf');
		for my $bad ($good . "server.max-workers = 1\n", "}\n$good") {
			$old = pid($srv);
			put($srv->run . '/server.conf', $bad);
			($rc, $said) = postinst($srv);
			is $rc, 0, 'a configuration that the new program refuses: dpkg goes on';
			like $said, qr{server\.conf:\d+:\d+: \S.*the running server goes on}s, '... it is printed, with the line';
			is pid($srv), $old, '... the same process runs';
			is $srv->fetch('/a')->{body}, 'A', '... and serves';
		}
		put($srv->run . '/server.conf', $good);
	};
}

subtest 'no server runs' => sub {
	my $srv = server();
	$srv->stop;
	is_deeply [postinst($srv)], [0, ''], 'nothing is done, and nothing said';
	put($srv->run . '/server.conf', "nonsense\n");
	my ($rc, $said) = postinst($srv);
	is $rc, 0, 'a configuration that does not load';
	like $said, qr{server\.conf:1:\d+: .*this version refuses}s, '... is said before it is missed';
};

done_testing;
