/* fload -- asks a FastCGI application on this machine, as a web server would, and checks each
 * answer.
 *
 *   fload [options] unix:SOCKET|127.0.0.1:PORT [PATH]         `fload --help` lists them
 *
 * One thread, one epoll.  Connections wait in one queue and are asked in turn:
 *
 *     ready --> (connecting) --> asked --> answered --> ready     kept
 *       ^                                     `--> ending         --close: until the FIN of the
 *       `---------------------------------------------'           application
 *
 * An answer counts when its records are sound, its id is the connection's, END_REQUEST says
 * "complete", the status is the expected one, and, with --expect, a header names the path that was
 * asked for: an answer that went to the wrong connection is an error.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/histogram.h"
#include "t/bench/fload/answer.h"
#include "t/bench/fload/options.h"
#include "t/bench/fload/request.h"

#define RETRY_NS (2 * NS_PER_MS)  /* after a failed connect: no busy loop */
#define SWEEP_NS (20 * NS_PER_MS) /* how often time-outs are looked for */
/* no listen queue is as long as --idle has connections */
#define IDLE_AT_ONCE 256

struct conn {
	TAILQ_ENTRY(conn) link;
	int fd; /* -1: not connected */
	uint16_t id;
	bool asked, connecting, ending;
	uint32_t events;
	uint64_t at, retry_at; /* ns: when it was asked; not before */
	size_t sent;
	const struct request *request;
	struct answer answer;
	uint64_t answered;
};

static struct {
	uint64_t issued, over, answered, connects; /* over: answered or failed */
	uint64_t connect, closed, malformed, status, wrong, timeout;
} cnt;

static struct conn *conns;
static TAILQ_HEAD(, conn) ready = TAILQ_HEAD_INITIALIZER(ready);
static struct histogram latency;
static uint64_t clock_ns, ends, rounds = 1;
static bool let_go; /* --idle: standard input has ended */
static int ep;

static uint64_t
errors(void)
{
	return (cnt.connect + cnt.closed + cnt.malformed + cnt.status + cnt.wrong + cnt.timeout);
}

/* ---------------------------------------------------------------- connections */

static void
conn_watch(struct conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (c->events == events)
		return;
	epoll_ctl(ep, c->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &ev);
	c->events = events;
}

static void
conn_close(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->events = 0;
	c->connecting = c->ending = false;
}

static void
conn_ready(struct conn *c)
{
	c->asked = false;
	TAILQ_INSERT_TAIL(&ready, c, link);
}

static void
conn_fail(struct conn *c, uint64_t *kind)
{
	bool queued = !c->asked && !c->ending; /* kept, and nothing was asked */

	++*kind;
	cnt.over += c->asked;
	conn_close(c);
	c->retry_at = clock_ns + RETRY_NS;
	if (!queued)
		conn_ready(c);
}

/* A listen queue that is full is no error yet: tried again until the request is over time. */
static bool
conn_connect(struct conn *c)
{
	int one = 1;

	c->fd = socket(opt.addr.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("socket", strerror(errno));
	if (opt.addr.any.sa_family == AF_INET)
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	cnt.connects++;
	if (connect(c->fd, &opt.addr.any, opt.addr_len) == 0)
		return (true);
	if (errno == EINPROGRESS) {
		c->connecting = true;
		return (true);
	}
	if (errno != EAGAIN) {
		conn_fail(c, &cnt.connect);
		return (false);
	}
	conn_close(c);
	c->retry_at = clock_ns + RETRY_NS;
	TAILQ_INSERT_TAIL(&ready, c, link);
	return (false);
}

static void
conn_send(struct conn *c)
{
	static char out[REQUEST_MAX];
	ssize_t n;

	request_write(c->request, c->id, out);
	n = send(c->fd, out + c->sent, c->request->len - c->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN) {
		conn_fail(c, c->connecting ? &cnt.connect : &cnt.closed);
		return;
	}
	if (n > 0) {
		c->connecting = false;
		c->sent += (size_t)n;
	}
	conn_watch(c, EPOLLIN | (c->sent < c->request->len ? EPOLLOUT : 0));
}

static void
conn_ask(struct conn *c)
{
	static size_t turn;

	if (!c->asked) {
		c->asked = true;
		c->at = clock_ns;
		c->request = &opt.asked[turn++ % opt.n_asked];
		cnt.issued++;
	}
	c->sent = 0;
	answer_start(&c->answer, c->id);
	if (c->fd < 0 && !conn_connect(c))
		return;
	conn_send(c);
}

/* ---------------------------------------------------------------- answers */

/* What is wrong with a whole answer; NULL when nothing is. */
static uint64_t *
judge(const struct conn *c)
{
	const char *value, *path = c->request->path;
	size_t len;

	if (answer_status(&c->answer) != c->request->status)
		return (&cnt.status);
	if (opt.expect == NULL || c->request->status != 200)
		return (NULL);
	value = answer_field(&c->answer, opt.expect, &len);
	if (value == NULL || len != strlen(path) || memcmp(value, path, len) != 0)
		return (&cnt.wrong);
	return (NULL);
}

static void
answer_done(struct conn *c)
{
	uint64_t *wrong = judge(c);

	cnt.over++;
	if (wrong != NULL)
		++*wrong;
	else {
		cnt.answered++;
		c->answered++;
		histogram_add(&latency, clock_mono_ns() - c->at);
	}
	if (opt.close) {
		c->ending = true;
		c->asked = false;
	} else
		conn_ready(c);
}

static void
conn_take(struct conn *c, const char *p, size_t n)
{
	enum answer_result result = ANSWER_BAD; /* bytes without a request */
	size_t used = 0;

	if (c->asked)
		result = answer_take(&c->answer, p, n, &used);
	if (result == ANSWER_WHOLE && used == n)
		answer_done(c);
	else if (result != ANSWER_MORE)
		conn_fail(c, &cnt.malformed);
}

static void
conn_readable(struct conn *c)
{
	static char buf[64 * 1024];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		conn_take(c, buf, (size_t)n);
	else if (c->ending) { /* answered, and closed as it was asked to */
		conn_close(c);
		conn_ready(c);
	} else
		conn_fail(c, c->connecting ? &cnt.connect : &cnt.closed);
}

/* ---------------------------------------------------------------- the run */

static uint64_t
most(void)
{
	return (opt.idle ? rounds * opt.conns : opt.requests != 0 ? opt.requests : UINT64_MAX);
}

static bool
may_issue(void)
{
	return (cnt.issued < most() && !(opt.idle && cnt.issued - cnt.over >= IDLE_AT_ONCE));
}

/* The head of the queue has waited longest: when it may not be tried yet, no other may. */
static void
dispatch(void)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&ready)) != NULL && c->retry_at <= clock_ns &&
	       (c->asked || may_issue())) {
		TAILQ_REMOVE(&ready, c, link);
		conn_ask(c);
	}
}

static void
sweep(void)
{
	static uint64_t next;
	struct conn *c;

	if (clock_ns < next)
		return;
	next = clock_ns + SWEEP_NS;
	for (c = conns; c < conns + opt.conns; c++) {
		if ((!c->asked && !c->ending) || clock_ns - c->at < (uint64_t)(opt.timeout * 1e9))
			continue;
		if (c->asked && c->fd < 0)
			TAILQ_REMOVE(&ready, c, link); /* its connect is still to be tried again */
		conn_fail(c, &cnt.timeout);
	}
}

static void
on_input(void)
{
	char line[64];

	if (read(STDIN_FILENO, line, sizeof(line)) > 0)
		rounds++;
	else
		let_go = true;
}

static void
handle_events(int wait_ms)
{
	struct epoll_event evs[256];
	struct conn *c;
	int i, n;

	n = epoll_wait(ep, evs, 256, wait_ms);
	clock_ns = clock_mono_ns();
	for (i = 0; i < n; i++) {
		c = evs[i].data.ptr;
		if (c == NULL)
			on_input();
		else if (c->fd >= 0 && (evs[i].events & EPOLLOUT) != 0)
			conn_send(c);
		else if (c->fd >= 0)
			conn_readable(c);
	}
}

static bool
over(void)
{
	return (let_go || clock_ns >= ends);
}

static void
run(void)
{
	while (!over() && cnt.over < most()) {
		dispatch();
		sweep();
		handle_events(TAILQ_EMPTY(&ready) || !may_issue() ? 20 : 1);
	}
}

/* Each connection is answered once, then all are silent until a line on standard input starts the
 * next round. */
static void
run_idle(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	unsigned held;
	struct conn *c;

	if (epoll_ctl(ep, EPOLL_CTL_ADD, STDIN_FILENO, &ev) < 0)
		die("--idle", "standard input must be a pipe");
	while (!over()) {
		run();
		for (held = 0, c = conns; c < conns + opt.conns; c++)
			held += c->fd >= 0;
		printf("held=%u answered=%llu errors=%llu\n", held,
		    (unsigned long long)cnt.answered, (unsigned long long)errors());
		fflush(stdout);
		while (!over() && cnt.over >= most())
			handle_events(100);
	}
}

static void
report(double seconds)
{
	static const struct {
		const char *name;
		double share;
	} ps[] = {
		{ "p50", .5 },
		{ "p90", .9 },
		{ "p99", .99 },
		{ "p999", .999 },
	};
	uint64_t least = UINT64_MAX;
	unsigned never = 0;
	struct conn *c;
	size_t i;

#define U(x) ((unsigned long long)(x))
	for (c = conns; c < conns + opt.conns; c++) {
		never += c->answered == 0;
		least = c->answered < least ? c->answered : least;
	}
	printf("requests=%llu answered=%llu unanswered=%llu errors=%llu connect=%llu closed=%llu "
	       "malformed=%llu status=%llu "
	       "wrong=%llu timeout=%llu connects=%llu never=%u least=%llu seconds=%.3f rps=%.1f",
	    U(cnt.issued), U(cnt.answered), U(cnt.issued - cnt.over), U(errors()), U(cnt.connect),
	    U(cnt.closed), U(cnt.malformed), U(cnt.status), U(cnt.wrong), U(cnt.timeout),
	    U(cnt.connects), never, U(least), seconds, (double)cnt.answered / seconds);
	for (i = 0; i < sizeof(ps) / sizeof(ps[0]); i++)
		printf(" %s_us=%llu", ps[i].name,
		    U(histogram_percentile(&latency, ps[i].share) / 1000));
	printf(" max_us=%llu\n", U(latency.max_ns / 1000));
}

int
main(int argc, char **argv)
{
	struct rlimit rl;
	uint64_t started;
	unsigned i;

	options_read(argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	ep = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc(opt.conns, sizeof(*conns));
	if (ep < 0 || conns == NULL)
		die("start", strerror(errno));
	for (i = 0; i < opt.conns; i++) {
		conns[i].fd = -1;
		conns[i].id = (uint16_t)(1 + i);
		conn_ready(&conns[i]);
	}
	started = clock_ns = clock_mono_ns();
	ends = started + (uint64_t)(opt.seconds * 1e9);
	if (opt.idle)
		run_idle();
	else
		run();
	report((double)(clock_mono_ns() - started) / 1e9);
	return (errors() > 0);
}
