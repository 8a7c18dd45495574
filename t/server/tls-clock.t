# The wall clock jumps a day ahead and back while the server runs, as when a machine gets the right time: deadlines, tickets, renewals and
# connections do not notice.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use POSIX ();
use Test::Http qw(req);
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(eventually need_program put sanitized slurp);

plan skip_all => 'the runtime of a sanitizer wants to be the first library' if sanitized();
my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my %cert = map { $_ => Test::Tls::certificate($keys, "n$_") } 1 .. 5;
use constant DAY => 86_400;

# A library that adds seconds to the wall clock: as many as a file has now, which the process has mapped before it confines itself.
put("$keys/clock.c", <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *ahead;
static int (*get)(clockid_t, struct timespec *);

__attribute__((constructor)) static void
begin(void)
{
	int fd = open(getenv("CLOCK_AHEAD"), O_RDONLY);
	void *p = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0);

	close(fd);
	if (p == MAP_FAILED)
		_exit(99);
	get = dlsym(RTLD_NEXT, "clock_gettime");
	ahead = p;
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err;

	if (get == NULL)
		get = dlsym(RTLD_NEXT, "clock_gettime");
	err = get(clock, ts);
	if (ahead != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ts->tv_sec += *ahead;
	return (err);
}

time_t
time(time_t *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t != NULL)
		*t = ts.tv_sec;
	return (ts.tv_sec);
}

int
gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return (0);
}
END
my $cc = need_program('gcc', 'gcc');
system($cc, qw(-shared -fPIC -o), "$keys/clock.so", "$keys/clock.c") == 0 or die 'gcc failed';

sub ahead ($seconds) {
	open my $fh, '+<', "$keys/ahead" or die "ahead: $!";
	syswrite $fh, pack 'l!', $seconds or die "ahead: $!";
	close $fh;
	return;
}

# By rename, as clients of ACME do.
sub replace ($dir, $cert) {
	for (qw(key pem)) {
		put("$dir/new", slurp($cert->{$_}));
		rename "$dir/new", "$dir/x.$_" or die "rename: $!";
	}
	return;
}

sub get ($c) { $c->send(req('/a')); return ($c->reply // {})->{body} // '' }
sub lines ($srv, $what) { return scalar(() = $srv->log =~ /ev=\Q$what\E /g) }
sub cpu ($srv) { my @is = split ' ', slurp("/proc/@{[ $srv->pid ]}/stat") =~ s/.*\) //sr; return ($is[11] + $is[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK()) }

put("$keys/ahead", pack 'l!', 0);
my $dir = File::Temp->newdir('accel-live-XXXXXX', TMPDIR => 1);
replace($dir, $cert{1});
my $srv = Test::Server->start(env => { LD_PRELOAD => "$keys/clock.so", CLOCK_AHEAD => "$keys/ahead" }, conf => <<"CONF");
ssl.engine = "enable"
ssl.pemfile = "$dir/x.pem"
ssl.privkey = "$dir/x.key"
ssl.key-process = "enable"
server.max-worker = 1
server.max-keep-alive-idle = 600
server.max-read-idle = 600
status.statistics-url = "/counters"
CONF
$srv->write('a', 'safe');
my $kept = Test::Tls::client($srv);
is get($kept), 'safe', 'a connection';
my $first = $kept->session;
my $silent;

my $n = 1;
for my $jump ([DAY, 'a day ahead'], [-DAY(), 'a day back'], [-400 * DAY, 'a year back'], [0, 'the right time']) {
	my ($seconds, $what) = @$jump;
	subtest $what => sub {
		$silent = $srv->connect;        # its handshake has 10 s
		my $began = time;
		is get($kept), 'safe', 'a connection of before, before';
		ahead($seconds);
		is get($kept), 'safe', 'a connection of before';
		my $c = Test::Tls::client($srv);
		is get($c), 'safe', 'a new one';
		ok $silent->silent || time - $began >= 9, 'no deadline has come early';
		my $again = Test::Tls::client($srv, session => $c->session);
		ok $again && $again->resumed, 'its session is resumed';
		ok +Test::Tls::client($srv, session => $first), 'one with a session of before has a handshake';
		replace($dir, $cert{ ++$n });
		ok eventually(sub { lines($srv, 'certificate.renewed') == $n - 1 }), 'a certificate is renewed';
		my ($at) = $srv->log =~ /.*^ts=(\d+)\S* \S+ ev=certificate\.renewed/ms;
		cmp_ok abs($at - time - $seconds), '<', 3600, '... at that time';
		is get(Test::Tls::client($srv)), 'safe', '... and served';
		my ($ends) = do { my $p = Test::Tls::client($srv); $p->send(req('/counters')); $p->reply->{body} =~ /^server\.tls\.certificate-ends-in-s: (\d+)$/m };
		cmp_ok $ends, '<', 500 * DAY, 'the time until its end is one';
	};
}
my $before = cpu($srv);
ok $silent->closed, 'a deadline comes';
cmp_ok cpu($srv) - $before, '<', 2, 'nothing spins meanwhile';
done_testing;
