# TLS: the bytes of a file with a private key pass through the server when it starts and reloads.  No copy stays in its memory.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(put sanitized slurp);

plan skip_all => 'needs root, and no sanitizer' if $> != 0 || sanitized();
my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);

# How often one of these strings is in the memory of the process, without the stacks of its threads.
sub in_memory ($pid, @strings) {
	no warnings 'portable';       # hex
	my $any = join '|', map { quotemeta } @strings;
	open my $memory, '<:raw', "/proc/$pid/mem" or die "/proc/$pid/mem: $!";
	my $n = 0;
	for (slurp("/proc/$pid/maps") =~ /^(\w+-\w+) rw/mg) {
		my ($from, $to) = map { hex } split /-/;
		next if $to - $from == 8 << 20 || !sysseek($memory, $from, 0) || !sysread $memory, my $bytes, $to - $from;
		$n++ while $bytes =~ /$any/g;
	}
	return $n;
}

my @host = map { Test::Tls::certificate($keys, "host$_", host => "host$_.example") } 0 .. 60;
my $s = Test::Server->start(conf => qq{ssl.engine = "enable"\nssl.pemfile = "$host[0]{pem}"\nssl.privkey = "$host[0]{key}"\n}
	. join '', map { qq{\$HTTP["host"] == "host$_.example" {\nssl.pemfile = "$keys/host$_.pem"\nssl.privkey = "$keys/host$_.key"\n}\n} } 1 .. 60);
$s->wait_log(qr{ev=listening});
my @lines = map { (split /\n/, slurp($_->{key}))[1] } @host;
ok in_memory($s->pid, 'host1.example'), 'memory can be read';
is in_memory($s->pid, @lines), 0, 'after the start';
$s->signal('USR1');
is scalar($s->wait_lines(1, qr/ev=reloaded/)), 1, 'a reload';
is in_memory($s->pid, @lines), 0, 'after a reload';

done_testing;
