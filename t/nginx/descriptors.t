# Where each open() asks another program or machine, the accelerator opens, and its descriptor comes over the unix socket. The test is the accelerator.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Fcgi::Codec qw(record parse_records params unpair T_PARAMS T_STDIN T_STDOUT T_END T_GET_VALUES_RESULT T_ABORT);
use Test::Http ();
use Test::NginxModule;
use Test::Util qw(eventually put);
use Config;
use File::Temp ();
use IO::Select;
use IO::Socket::UNIX ();
use Socket ();
use Time::HiRes qw(time);

my %sendmsg = (x86_64 => 46, aarch64 => 211);
my ($machine) = $Config{archname} =~ /^(\w+)-/;
plan skip_all => "sendmsg(2) has no known number here: $Config{archname}" unless $sendmsg{ $machine // '' };

my $tree = File::Temp->newdir('nginx-descriptors-XXXXXX', TMPDIR => 1);
chmod 0755, "$tree";
mkdir "$tree/$_" for qw(www www/dir given);
put("$tree/www/$_", 'found by name') for qw(file other);
put("$tree/given/file", 'by descriptor');
local $SIG{PIPE} = 'IGNORE';

# These bytes, and with the first of them these handles.
sub give ($link, $bytes, @handles) {
	my $iov = pack 'P Q', $bytes, length $bytes;
	my $control = @handles ? pack 'Q l l l*', 16 + 4 * @handles, Socket::SOL_SOCKET(), Socket::SCM_RIGHTS(), map { fileno $_ } @handles : '';
	$control .= "\0" x (-length($control) % 8);
	my $message = pack 'Q Q P Q P Q Q', 0, 0, $iov, 1, $control, length $control, 0;
	return syscall($sendmsg{$machine}, fileno $link, $message, 0) == length $bytes || die "sendmsg: $!";
}

my $listen;
sub nginx () {
	unlink "$tree/socket";
	$listen = IO::Socket::UNIX->new(Local => "$tree/socket", Listen => 10) // die "socket: $!";
	chmod 0777, "$tree/socket";
	return Test::NginxModule->start("server { listen 8080; root $tree/www; stat_accel unix:$tree/socket; stat_accel_open on; stat_accel_deadline 20s; location = /counters { stat_accel_status; } }", root => $tree);
}
sub reply ($c) { return Test::Http::parse(do { local $/; readline $c } // '') }
sub handle ($path, $mode = '<') { open my $h, $mode, $path or die "$path: $!"; return $h }
# Records up to one of this type, as [type, id, content].
sub until_type ($link, $type) {
	my ($in, @all) = ('');
	while (!grep { $_->[0] == $type && !length $_->[2] } @all) {
		IO::Select->new($link)->can_read(8) or die "nothing comes\n";
		sysread $link, $in, 65536, length $in or die "the link has ended\n";
		push @all, parse_records(\$in);
	}
	return @all;
}
sub asked ($link) { return { map { $_->[0] == T_PARAMS ? unpair($_->[2]) : () } until_type($link, T_STDIN) } }
sub accepted () { return IO::Select->new($listen)->can_read(8) ? $listen->accept : die "nginx does not connect\n" }
sub answer ($head) { return record(T_STDOUT, 1, "$head\r\n\r\n") . record(T_END, 1, "\0" x 8) }
# Descriptors of the worker below the tree.
sub held ($ng) { return grep { (readlink $_ // '') =~ /^\Q$tree\E\/(?:www|given)/ } glob "/proc/${\$ng->worker}/fd/*" }
sub well ($ng) {
	ok eventually(sub { !held($ng) }), 'no descriptor stays';
	unlike $ng->log, qr/\[(?:alert|emerg|crit)\]/, 'no alert';
}

my $ok = answer('Status: 204 No Content');

subtest 'a descriptor' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/file');
	my $link = accepted();
	my $asked = asked($link);
	is $asked->{WARM_OPEN}, 1, 'is asked for';
	is $asked->{WARM_PATH}, "$tree/www/file", '... of this name';
	give($link, $ok, handle("$tree/given/file"));
	is reply($c)->{body}, 'by descriptor', '... is what nginx sends';
	is $ng->last->{status}, 'warmed', 'the log says so';

	for my $size (1, 7, 30) {
		$c = $ng->begin('/file');
		asked($link);
		my ($first, @rest) = unpack "(a$size)*", $ok;
		give($link, $first, handle("$tree/given/file"));
		syswrite $link, $_ for @rest;
		is reply($c)->{body}, 'by descriptor', "in pieces of $size";
	}

	$c = $ng->begin('/file');
	asked($link);
	syswrite $link, record(T_GET_VALUES_RESULT, 0, '');
	give($link, $ok, handle("$tree/given/file"));
	is reply($c)->{body}, 'by descriptor', 'after a record of another kind';

	my @c = map { $ng->begin('/file') } 1 .. 3;
	asked($link);
	ok eventually(sub { $ng->get('/counters')->{body} =~ /questions\.joined: 2$/m }), 'three wait for one';
	give($link, $ok, handle("$tree/given/file"));
	is reply($_)->{body}, 'by descriptor', '... and get it' for @c;
	well($ng);
};

subtest 'a directory' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/dir');
	my $link = accepted();
	asked($link);
	opendir my $d, "$tree/www/dir" or die $!;
	open my $h, '<', "$tree/www/dir" or die $!;
	give($link, $ok, $h);
	is reply($c)->{status}, 301, 'is known as one';
	undef $h;
	well($ng);
};

for (['Warm-Errno: 2', 404], ['warm-errno: 13', 403], ["X: 1\r\nWarm-Errno: 20", 404]) {
	my ($line, $status) = @$_;
	subtest $line => sub {
		my $ng = nginx();
		my $c = $ng->begin('/file');
		my $link = accepted();
		asked($link);
		syswrite $link, answer("Status: 204 No Content\r\n$line");
		is reply($c)->{status}, $status, "the reply is $status, though the file is there";
		well($ng);
	};
}

subtest 'late' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/file');
	my $link = accepted();
	asked($link);
	syswrite $link, answer('Status: 503 Service Unavailable');
	is reply($c)->{status}, 503, 'the reply is 503';
	is $ng->last->{status}, 'late', '... and the log says so';
	well($ng);
};

# Where none comes, or not the right one, a thread opens the file, as without an accelerator.
sub by_thread ($name, $says, $play) {
	subtest $name => sub {
		my $ng = nginx();
		my $c = $ng->begin('/file');
		my $link = accepted();
		asked($link);
		$play->($link);
		is reply($c)->{body}, 'found by name', 'a thread opens the file';
		is scalar(() = $ng->log =~ /\[error\] .*stat_accel: "unix/g), $says, 'the log says if the accelerator is wrong';
		like $ng->get('/counters')->{body}, qr/^nginx\.accelerators\.down: $says$/m, '... and it counts as down';
		well($ng);
	};
}

by_thread('no descriptor', 0, sub ($link) { syswrite $link, $ok });
by_thread($_, 0, sub ($link) { syswrite $link, answer("Status: 204 No Content\r\n$_") }) for 'Warm-Errno: 0', 'Warm-Errno: -2', 'Warm-Errno:', 'Warm-Errno: 99999999999999999999', 'X-Warm-Errno: 2';
by_thread('one that cannot be read', 0, sub ($link) { give($link, $ok, handle("$tree/given/file", '>>')) });
by_thread('two', 1, sub ($link) { give($link, $ok, map { handle("$tree/given/file") } 1 .. 2) });
by_thread('too many to be taken', 1, sub ($link) { give($link, $ok, map { handle("$tree/given/file") } 1 .. 9) });
by_thread('one more', 1, sub ($link) { give($link, substr($ok, 0, 9), handle("$tree/given/file")); give($link, substr($ok, 9), handle("$tree/given/file")) });
by_thread('closed after it', 1, sub ($link) { give($link, substr($ok, 0, 9), handle("$tree/given/file")); close $link });

subtest 'closed after it, a kept connection' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/file');
	my $link = accepted();
	asked($link);
	give($link, $ok, handle("$tree/given/file"));
	is reply($c)->{body}, 'by descriptor', 'the first answer';
	$c = $ng->begin('/file');
	asked($link);
	give($link, substr($ok, 0, 1), handle("$tree/given/file"));
	close $link;
	is reply($c)->{body}, 'found by name', 'a thread opens the file';
	like $ng->log, qr/\[error\] .*has closed a connection without an answer/, '... and the accelerator is not asked again';
	well($ng);
};

subtest 'one that was not asked for' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/file');
	my $link = accepted();
	asked($link);
	give($link, $ok, handle("$tree/given/file"));
	is reply($c)->{body}, 'by descriptor', 'after an answer';
	give($link, record(T_GET_VALUES_RESULT, 0, ''), handle("$tree/given/file"));
	ok eventually(sub { $ng->log =~ /\[error\] .*stat_accel/ }), 'comes another: it is not taken';
	well($ng);
};

subtest 'nobody waits any more' => sub {
	my $ng = nginx();
	my $c = $ng->begin('/file');
	my $link = accepted();
	asked($link);
	setsockopt $c, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'll', 1, 0;
	close $c;
	until_type($link, T_ABORT);
	give($link, $ok, handle("$tree/given/file"));
	$c = $ng->begin('/other');
	is asked($link)->{WARM_PATH}, "$tree/www/other", 'the connection is used again';
	give($link, $ok, handle("$tree/given/file"));
	is reply($c)->{body}, 'by descriptor', '... for the next one';
	well($ng);
};

done_testing;
