# server.lock-memory: the program stays in memory, and a small limit of locked memory breaks nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Digest::MD5 qw(md5_hex);
use Test::App;
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually find_program program put slurp);

use constant { SIZE => 2 << 20, SMALL_KIB => 512, GROUPS => '/sys/fs/cgroup/memory' };

plan skip_all => 'sanitizers lock nothing' if Test::Util::sanitized();

my $app = Test::App->start;
chmod 0777, $app->socket =~ s{/[^/]*\z}{}r, $app->socket;       # for the user that the server becomes
my $user = $> == 0 && getpwnam('www-data') ? qq{server.username = "www-data"\n} : '';

# Under a limit in KiB; of the rights to exceed it, root loses those that are named.
sub limited ($kib, @rights) {
	my @without = $> == 0 && @rights ? ('setpriv', '--bounding-set', join ',', map { "-$_" } @rights) : ();
	return [@without, 'sh', '-c', "ulimit -l $kib; exec \"\$\@\"", 'sh'];
}

sub server ($lock, $conf = '', %arg) {
	my $dir = Test::Util::temp_tree();
	my $set = defined $lock ? qq{server.lock-memory = "$lock"\n} : '';
	my $pool = Test::Server::proxy_block('^/app/', 'unix:' . $app->socket);
	my $srv = Test::Server->start(%arg, dir => $dir, conf => qq{server.pid-file = "\@RUN\@/pid"\n$set$conf$pool});
	chmod 0755, $srv->run;
	$srv->write('a', 'A');
	$srv->sparse('big', SIZE);
	$srv->wait_log(qr/ev=listening/);
	return $srv;
}

sub locked ($srv) { return slurp('/proc/' . $srv->pid . '/status') =~ /^VmLck:\s+(\d+) kB/m ? $1 : die "no VmLck\n" }
sub lines ($srv) { return grep { /ev=memory\./ } split /\n/, $srv->log }

# Each kind of request takes memory anew: windows of a file, buffers of a body, tables and threads of a reload.
sub works ($srv, $when) {
	my @c = map { $srv->connect } 1 .. 10;
	$_->send(req('/big')) for @c;
	is join(' ', map { length $_->reply->{body} } @c), join(' ', (SIZE) x @c), "$when: large files";
	my $body = 'x' x SIZE;
	my $r = Test::Http::parse($srv->request("POST /app/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " . SIZE . "\r\n\r\n$body"));
	is $r->{body}, SIZE . ' ' . md5_hex($body), "$when: an upload";
	return;
}

sub works_on ($srv) {
	works($srv, 'at first');
	$srv->signal('USR1');
	$srv->wait_log(qr/ev=reloaded/);
	works($srv, 'after a reload');
	ok $srv->upgrade, 'an upgrade';
	is scalar(lines($srv)), 2, 'the new process says what it has locked';
	works($srv, 'after an upgrade');
	return;
}

# Not the pages of the kernel, which libraries are counted with.
sub program_kib ($srv) { return (lines($srv))[0] =~ /program-kib=(\d+)/ ? $1 - 16 : die $srv->log }

subtest 'the program is locked' => sub {
	my $srv = server(undef, $user);
	my ($line) = lines($srv);
	SKIP: {
		skip 'the limit of locked memory is too low here', 3 if $> != 0 && $line =~ /not-locked/;
		like $line, qr/ level=info ev=memory\.locked what=(?:program|all) program-kib=\d+$/, 'the log says so';
		cmp_ok program_kib($srv), '>', 3000, 'with libraries it has some MiB';
		cmp_ok locked($srv), '>=', program_kib($srv), 'the kernel has them locked';
	}
	works_on($srv);
};

subtest 'OpenSSL belongs to the program if a socket speaks TLS' => sub {
	plan skip_all => 'only root may lock as much as it likes' if $> != 0;
	my $cert = Test::Tls::certificate(my $keys = Test::Util::temp_tree(), 'x');
	my ($without, $with) = map { program_kib(server(undef, $_)) } '', qq{ssl.engine = "enable"\nssl.pemfile = "$cert->{pem}"\nssl.privkey = "$cert->{key}"\n};
	cmp_ok $without, '<', 8 << 10, 'without it all fits into the limit of any user';
	cmp_ok $with - $without, '>', 3000, '... and with it OpenSSL is there';
};

subtest 'disable' => sub {
	my $srv = server('disable');
	is locked($srv), 0, 'nothing is locked';
	is_deeply [lines($srv)], [], 'and nothing is logged';
};

subtest 'all' => sub {
	plan skip_all => 'only root may lock as much as it likes' if $> != 0;
	my $srv = server('all');
	like +(lines($srv))[0], qr/ev=memory\.locked what=all /, 'the log says so';
	cmp_ok locked($srv), '>', program_kib($srv) + 1024, 'more than the program is locked';
	works_on($srv);
	cmp_ok locked($srv), '>', program_kib($srv) + 1024, 'and so it is after an upgrade';
};

subtest 'a limit below the size of the program' => sub {
	plan skip_all => 'setpriv is missing; the package is util-linux' if $> == 0 && !find_program('setpriv');
	for my $lock ('program', 'all') {
		my $srv = server($lock, $user, under => limited(SMALL_KIB, qw(ipc_lock sys_resource)));
		my ($line) = lines($srv);
		like $line, qr/ level=warn ev=memory\.not-locked what="(?:a part of )?the program" error=.* limit-kib=@{[SMALL_KIB]} .* do="raise the limit/, "$lock: the log says what to do";
		cmp_ok locked($srv), '<=', SMALL_KIB + 16, 'the limit holds';
		works_on($srv);
	}
};

# Root may lock as much as it likes, and the user that it becomes may not: each later malloc() of a process that locks all could fail.
subtest 'a limit that ends when root becomes another user' => sub {
	plan skip_all => 'only for root' if !$user;
	plan skip_all => 'setpriv is missing; the package is util-linux' if !find_program('setpriv');
	my $srv = server('all', $user, under => limited(SMALL_KIB, 'sys_resource'));
	like +(lines($srv))[0], qr/ev=memory\.not-locked what="heap and stacks" .* left-kib=0 /, 'the program is locked, the rest is not';
	cmp_ok locked($srv), '>', 3000, 'the kernel has it locked';
	works_on($srv);
};

# A copy of the program, none of whose pages is in memory: its pages belong to the group that reads them.
sub fresh_program ($dir) {
	my $copy = "$dir/accel-server";
	system('cp', program('accel-server'), $copy) == 0 or die "cp: failed\n";
	system('dd', "of=$copy", 'conv=notrunc,fdatasync', 'count=0', 'oflag=nocache', 'status=none') == 0 or die "dd: failed\n";
	return $copy;
}

# KiB of the program's code, and how much of it is in memory.
sub code ($srv, $program) {
	my ($size, $there) = slurp('/proc/' . $srv->pid . '/smaps') =~ /^\S+ r-xp \S+ \S+ \S+\s+\Q$program\E\nSize:\s+(\d+) kB\n(?:.*\n)*?Rss:\s+(\d+) kB/m or die "no code of $program\n";
	return ($size, $there);
}

sub major_faults ($srv) { return (split ' ', slurp('/proc/' . $srv->pid . '/stat') =~ s/.*\) //r)[9] }

my $group = GROUPS . "/accel-lock-$$";
END { rmdir $group if defined $group }

for my $lock ('program', 'disable') {
	subtest "a group that gives back all its pages: $lock" => sub {
		plan skip_all => 'no group of processes of this kernel limits memory (cgroup v1)' if !-w GROUPS . '/cgroup.procs';
		mkdir $group or die "$group: $!\n";
		my $dir = Test::Util::temp_tree();
		my $program = fresh_program("$dir");
		my $srv = server($lock, '', program => $program, under => ['sh', '-c', "echo \$\$ >$group/cgroup.procs; exec \"\$\@\"", 'sh']);
		is $srv->fetch('/a')->{body}, 'A', 'a request';
		my $leaves = sub { put("$group/memory.force_empty", '0'); my ($size, $there) = code($srv, $program); return $there < $size / 2 };
		my $left = $lock eq 'disable' ? eventually($leaves) : grep { $leaves->() } 1 .. 5;
		my $before = major_faults($srv);
		is $srv->fetch('/a')->{body}, 'A', 'the same request again' for 1 .. 5;
		my $faults = major_faults($srv) - $before;
		if ($lock eq 'disable') {
			ok $left, 'code of the program leaves memory';
			cmp_ok $faults, '>', 0, 'requests wait for the disk of the program file';
		} else {
			my ($size, $there) = code($srv, $program);
			is $there, $size, 'the code of the program stays';
			is $faults, 0, 'no request waits for the disk of the program file';
		}
		undef $srv;
		ok eventually(sub { rmdir $group }), 'all processes of the group have ended';
	};
}

done_testing;
