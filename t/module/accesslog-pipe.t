# Logs that a command reads: started by the helper process, started again, and ended with the server after the last line.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Util qw(eventually put slurp);

# A program that says its number and copies lines; it ends at a line with "quit", and at the end of its input says so.
my $program = <<'PERL';
my ($out) = @ARGV;
$SIG{HUP} = sub { say_('hup') };
sub say_ { open my $fh, '>>', $out or die; syswrite $fh, "$_[0]\n" }
say_("start $$");
while (<STDIN>) { chomp; say_($_); exit if /quit/ }
say_('eof');
PERL

sub start {
	my ($conf, %arg) = @_;
	my $srv = Test::Server->start(conf => '', %arg, conf => $conf);
	return $srv;
}

my $dir = File::Temp->newdir;
put("$dir/copy.pl", $program);
my $command = "exec $^X $dir/copy.pl";

subtest 'an access log' => sub {
	my $srv = start(qq{accesslog.filename = "|$command $dir/a"\naccesslog.format = "%U %s"\n});
	$srv->write('a.txt', 'x');
	$srv->get('/a.txt');
	ok eventually(sub { slurp("$dir/a") =~ m{^/a\.txt 200$}m }), 'the command gets lines';
	my ($pid) = slurp("$dir/a") =~ /^start (\d+)/;
	my ($ppid) = slurp("/proc/$pid/stat") =~ /\) \S (\d+)/;
	isnt $ppid, $srv->pid, 'it is not a child of the server';
	my @fd = map { s{.*/}{}r } glob "/proc/$pid/fd/*";
	is_deeply [grep { $_ > 2 && (readlink("/proc/$pid/fd/$_") // '') =~ /socket|pipe|\Q@{[ $srv->run ]}/ } @fd], [], 'it has no descriptor of the server';
	$srv->signal('HUP');
	$srv->wait_log(qr/logs\.reopened/);
	$srv->get('/missing');
	ok eventually(sub { slurp("$dir/a") =~ m{^/missing 404$}m }), 'after HUP it still gets lines';
	unlike slurp("$dir/a"), qr/hup/, '... and no signal';

	$srv->get('/quit');
	ok eventually(sub { !kill 0, $pid }), 'a command that ends';
	$srv->get('/again');
	ok eventually(sub { $srv->get('/more'); slurp("$dir/a") =~ m{^start (?!$pid$)\d+$}m }), '... is started again by a later line';
	ok eventually(sub { $srv->get('/more2'); slurp("$dir/a") =~ m{^/more2 404$}m }), '... and gets lines';
	like $srv->wait_log(qr/ev=log\.program/), qr/ev=log\.program command="?exec/, '... which is logged';

	my ($second) = slurp("$dir/a") =~ /.*^start (\d+)$/ms;
	$srv->get('/last');
	$srv->term;
	ok eventually(sub { slurp("$dir/a") =~ m{^/last 404\neof\n\z}m }), 'it gets the last line, then the end of its input';
	ok eventually(sub { !kill 0, $second }), '... and ends';
};

subtest 'the error log' => sub {
	my $srv = start(qq{server.errorlog = "|$command $dir/e"\n});
	ok eventually(sub { -e "$dir/e" && slurp("$dir/e") =~ /ev=listening/ }), 'has its lines from the start';
	$srv->term;
	ok eventually(sub { slurp("$dir/e") =~ /^eof$/m }), 'to the end';
};

subtest 'a command that does not read' => sub {
	my $go = "$dir/go";
	my $srv = start(qq{accesslog.filename = "|while ! test -e $go; do sleep 0.05; done; exec cat > $dir/slow"\n} .
		qq{accesslog.format = "%{User-Agent}i"\n});
	$srv->write('a.txt', 'x');
	my $c = $srv->connect;
	my $agent = 'y' x 7000;
	for my $round (1 .. 40) {
		$c->send("GET /a.txt HTTP/1.1\r\nHost: x\r\nUser-Agent: $agent\r\n\r\n" x 8);
		$c->reply for 1 .. 8;
	}
	is $srv->fetch('/a.txt')->{status}, 200, 'holds no request';
	put($go, '');
	like $srv->wait_log(qr/ev=log\.dropped/), qr{ev=log\.dropped path="\|while [^"]*slow" lines=[1-9]\d* why=}, '... and the lines that did not fit are counted in the error log';
	is scalar(grep { !/\A(y{7000}|-)\z/ } split /\n/, slurp("$dir/slow")), 0, 'lines are whole, and only those of requests';
};

subtest 'a program that is not there' => sub {
	my $srv = start(qq{accesslog.filename = "|/nowhere/prog"\n}, unchecked => 1);
	my $status = $srv->wait_exit;
	ok $status, 'the server does not start';
	$srv->log_has(qr{/nowhere/prog.*No such file}s, '... and says why');
};

done_testing;
