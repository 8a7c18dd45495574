#!/usr/bin/perl
# fcgi-stat-accel is replaced while nginx asks it: no request is lost, no download is cut, nothing is left behind.

use v5.36;
use File::Spec ();
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Bench::AccelLifecycle;
use Test::Fcgi qw(eventually put request slurp temp_tree);
use Test::Util qw(need_program);
use Accel::Slowfs;

my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www run);
put("$dir/www/file", 'x' x 1000);

need_program('nginx', 'nginx-light');
for (['replace', 'auth', 1], ['socket', 'accel', 0], ['restart', 'accel', 1]) {
	my ($way, $mode, $kept) = @$_;
	subtest "behind nginx: $way, $mode, " . ($kept ? 'kept connections' : 'a connection for each request') => sub {
		my $r = Test::Bench::AccelLifecycle::drive(mode => $mode, kept => $kept, way => $way, clients => 24, long => 4,
			seconds => 0.8, long_bytes => 200 << 10);
		cmp_ok $r->{restarts}, '>=', Test::Util::sanitized() ? 1 : 2, "replaced: $r->{restarts} times";
		cmp_ok $r->{reports}[0]{answered}, '>', 50, 'short requests';
		cmp_ok $r->{reports}[1]{answered}, '>', 0, 'long downloads';
		is $r->{errors}, 0, 'none is lost or cut' or diag explain($r->{kinds}), $r->{nginx_log};
		is_deeply $r->{left}, [], 'each old process has ended with 0, and no file is left';
		cmp_ok $r->{after}{nginx}{fds}, '<=', $r->{before}{nginx}{fds}, 'descriptors of nginx';
		is $r->{after}{accel}{fds}, $r->{before}{accel}{fds}, 'descriptors of the accelerator';
		cmp_ok $r->{after}{accel}{mib}, '<', 2 * $r->{before}{accel}{mib}, 'its memory' if !Test::Util::sanitized();
	};
}

# An accelerator that makes its socket itself.
sub own ($how, @options) {
	return Test::Fcgi->start({ own => 1, socket => "$dir/run/sock", %$how }, '--listen=unix:@SOCKET@', "--root=$dir/www", @options);
}

sub sockets { return map { s{.*/}{}r } glob "$dir/run/*" }

subtest '--replace' => sub {
	my $old = own({}, '--replace');
	is $old->get("$dir/www/file")->{status}, 200, 'nobody to replace';
	my $kept = $old->connect;
	$kept->send(request(1, 1, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => "$dir/www/file"));
	is $kept->reply->{status}, 200, 'a kept connection';
	my $new = own({ nowait => 1 }, '--replace', '--mode=auth');
	ok eventually(sub { $new->log_text =~ /ev=replaced pid=$old->{pid} / }), 'the new one says whom it replaced';
	ok eventually(sub { defined $old->ended }), 'the old one ends';
	is $old->ended, 0, 'cleanly';
	is $new->get("$dir/www/file")->{status}, 204, 'the new one answers, with its options';
	is_deeply [sockets()], ['sock'], 'one socket';
	is $new->stop, 0, 'it ends';
	is_deeply [sockets()], [], 'and removes its socket';
};

subtest 'a relative name' => sub {
	my @start = ('--listen=unix:' . File::Spec->abs2rel("$dir/run/sock"), '--replace', "--root=$dir/www");
	my $old = Test::Fcgi->start({ own => 1, socket => "$dir/run/sock" }, @start);
	my $new = Test::Fcgi->start({ own => 1, socket => "$dir/run/sock", nowait => 1 }, @start);
	ok eventually(sub { defined $old->ended }), 'the old one is replaced';
	is $new->get("$dir/www/file")->{status}, 200, 'the new one answers';
	is $new->stop, 0, 'it ends';
	ok eventually(sub { !sockets() }), '... and no socket is left' or diag sockets();
};

subtest 'a new process that fails leaves the old one alone' => sub {
	my $old = own({});
	my ($code, undef, $err) = Test::Fcgi::run("--listen=unix:$dir/run/sock", "--root=$dir/www", '--replace', "--log=$dir/none/log");
	is $code, 73, 'it cannot write its log';
	like $err, qr/--log /, 'it says so';
	is $old->get("$dir/www/file")->{status}, 200, 'the old one answers';
	ok eventually(sub { "@{[sockets()]}" eq 'sock' }), 'no other socket is left';
	$old->stop;
};

subtest 'what cannot be replaced' => sub {
	put("$dir/run/sock", 'a file');
	my ($code, undef, $err) = Test::Fcgi::run("--listen=unix:$dir/run/sock", "--root=$dir/www", '--replace');
	is $code, 73, 'a file that is not a socket';
	like $err, qr{--replace unix:\Q$dir\E/run/sock: Address already in use}, '... and the message';
	is slurp("$dir/run/sock"), 'a file', 'it stays';
	ok eventually(sub { "@{[sockets()]}" eq 'sock' }), 'no other socket is left';
	unlink "$dir/run/sock";
	($code, undef, $err) = Test::Fcgi::run('--listen=127.0.0.1:1', '--replace', "--root=$dir/www");
	is $code, 64, 'a TCP socket';
	like $err, qr/--replace needs --listen unix:PATH/, '... and the message';
};

subtest 'another program at the socket' => sub {
	my $sock = IO::Socket::UNIX->new(Local => "$dir/run/sock", Listen => 5) or die "listen: $!";
	my $new = own({ nowait => 1 }, '--replace');
	ok eventually(sub { $new->log_text =~ /level=warn ev=replaced\.unknown .*send USR1/ }), 'it gets no signal, and the log says what to do';
	is $new->get("$dir/www/file")->{status}, 200, 'its place is taken';
};

subtest 'USR1 waits for a slow file, TERM does not' => sub {
	my ($usable, $why) = Accel::Slowfs->usable;
	plan skip_all => $why if !$usable;
	my $slow = Accel::Slowfs->start(source => "$dir/www", lookup_ms => 0, read_ms => 0);
	for (['USR1', 200], ['TERM', 503]) {
		my ($signal, $status) = @$_;
		my $app = Test::Fcgi->start('--root', $slow->dir, '--deadline=60000');
		$slow->hang;
		my $c = $app->connect;
		$c->send(request(1, 0, REQUEST_METHOD => 'GET', SCRIPT_FILENAME => $slow->dir . "/file"));
		ok $slow->wait_hanging(1), "$signal while a file is opened";
		kill $app->{sent} = $signal, $app->{pid};
		if ($signal eq 'USR1') {
			select undef, undef, undef, 1.4;    # longer than TERM waits
			$slow->go;
		}
		is $c->reply->{status}, $status, $signal eq 'USR1' ? 'it is answered' : 'it is answered as late';
		$slow->go;
		ok eventually(sub { defined $app->ended }), 'the process ends';
		$slow->forget;
	}
	$slow->stop;
};

done_testing;
