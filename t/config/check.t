# accel-server -t finds what the start would refuse, and makes nothing.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use Test::More;
use Test::Util;

my $program = Test::Util::program('accel-server');
my $dir = File::Temp->newdir('accel-check-XXXXXX', TMPDIR => 1);
mkdir "$dir/www" or die $!;
my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
my $port = $taken->sockport;
my $base = qq{server.document-root = "$dir/www"\nserver.bind = "127.0.0.1"\n};

sub run ($option, $text) {
	my $file = Test::Util::put("$dir/x.conf", ($text =~ /server\.port|socket/ ? '' : "server.port = $port\n") . $text);
	my $said = qx{timeout 60 $program $option -f $file 2>&1 </dev/null};
	return ($? >> 8, $said =~ s/\Q$dir\E/DIR/gr);
}

my @before = sort glob "$dir/*";
for my $case (
	['a good file', $base, 0, qr/^Syntax OK$/],
	['a log and a pid file that do not exist yet', $base . qq{server.errorlog = "$dir/error.log"\nserver.pid-file = "$dir/pid"\naccesslog.filename = "$dir/access.log"\n}, 0, qr/^Syntax OK$/],
	['a missing document root', qq{server.document-root = "$dir/none"\n}, 78, qr/^server\.document-root "DIR\/none": No such file/m],
	['one of a condition', $base . qq{\$HTTP["host"] == "x" { server.document-root = "$dir/none" }\n}, 78, qr/^server\.document-root "DIR\/none": No such file/m],
	['a log that cannot be written', $base . qq{server.errorlog = "$dir/none/error.log"\n}, 73, qr/^server\.errorlog "DIR\/none\/error\.log": No such file/m],
	['an access log that cannot be written', $base . qq{accesslog.filename = "$dir/www"\n}, 78, qr/^accesslog\.filename "DIR\/www": /m],
	['one of a condition', $base . qq{\$HTTP["host"] == "x" { accesslog.filename = "$dir/none/a" }\n}, 78, qr/^accesslog\.filename "DIR\/none\/a": No such file/m],
	['a pid file that cannot be written', $base . qq{server.pid-file = "$dir/none/pid"\n}, 73, qr/^server\.pid-file "DIR\/none\/pid": No such file/m],
	['an unknown backend of files', $base . qq{server.network-backend = "telepathy"\n}, 78, qr/^server\.network-backend "telepathy": is unknown; accel-server -V lists them/m],
	['an unknown protocol', $base . qq{proxy-core.protocol = "smoke"\nproxy-core.backends = ( "127.0.0.1:1" )\n}, 78, qr/"smoke"/],
	['an unknown user', $base . qq{server.username = "nobody-has-this-name"\n}, 77, qr/^server\.username "nobody-has-this-name": does not exist/m],
	['an unknown group', $base . qq{server.groupname = "nobody-has-this-name"\n}, 77, qr/^server\.groupname "nobody-has-this-name": does not exist/m],
	['an address of another machine', qq{server.document-root = "$dir/www"\nserver.bind = "192.0.2.77"\nserver.port = 8080\n}, 69, qr/^listening on "192\.0\.2\.77:8080": Cannot assign/m],
	['a socket in a missing directory', qq{server.document-root = "$dir/www"\nserver.bind = "$dir/none/socket"\n}, 69, qr/^listening on "DIR\/none\/socket": No such file/m],
	['a missing directory of the sandbox', $base . qq{server.sandbox-paths = ( "$dir/none" )\n}, 78, qr/^server\.sandbox-paths "DIR\/none": No such file/m],
) {
	my ($what, $text, $status, $want) = @$case;
	for my $option ('-t', '-tt') {
		my ($rc, $said) = run($option, $text);
		is $rc, $status, "$what: $option exits with $status";
		like $said, $want, '... and says why' . ($status ? '' : ' not');
	}
	next if $status == 0;
	# The port is free for the start, so that only the fault is in its way.
	close $taken;
	my ($rc) = run('-D', $text);
	$taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1, ReuseAddr => 1) or die "listen: $!";
	is $rc, $status, '... as the start does';
}
is_deeply [sort glob "$dir/*"], [sort @before, "$dir/x.conf"], '-t has made no file';

my ($rc, $said) = run('-t', $base . qq{server.username = "nobody-has-this-name"\nserver.pid-file = "$dir/none/pid"\nserver.network-backend = "telepathy"\n});
is scalar(() = $said =~ /^server\.\S+ "/mg), 3, 'all faults are reported at once';

SKIP: {
	skip 'only root can be refused here', 2 if $> == 0;
	($rc, $said) = run('-t', qq{server.document-root = "$dir/www"\nserver.port = 80\n});
	is $rc, 69, 'a port that needs root';
	like $said, qr/ports below 1024 need root/, '... is named';
}

done_testing;
