/* hload -- requests files of an HTTP/1.1 server on this machine and counts errors by kind.
 *
 *   hload [options] http://127.0.0.1:PORT/PATH          `hload --help` lists them
 *
 * Closed loop (the default): each connection asks again as soon as it has its answer.  This
 * measures what a server can do.  Open loop (--rate): requests start by the clock, with or without
 * answers.  Latency counts from the scheduled start.  A request without an answer at the end counts
 * with its age.  This measures what users of a slow server see; a closed loop would ask less often.
 *
 * One thread, one epoll.  A connection goes through these states:
 *
 *     idle --> (connecting) --> asked: head --> body --> idle   keep-alive
 *       ^                                         `--> ending   close: waits for the server's FIN,
 *       `--------------------------------------------------'    so TIME_WAIT is not on our side
 *
 * Bodies are dropped in the kernel by recv(MSG_TRUNC), never more than the answer is known to hold;
 * with --check they are compared with a file instead.  Only loopback addresses, always an end in
 * time: this is for benchmarks and tests, not for others' servers.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "t/bench/hload/hload.h"

#define SWEEP_NS     (20 * NS / 1000) /* how often deadlines are checked */
#define HOLD_AT_ONCE 256

struct counts cnt;
uint64_t started, ends, clock_ns;

static uint64_t scheduled; /* open loop: requests begun so far */

static uint64_t
schedule_of(uint64_t i)
{
	return (started + (uint64_t)((double)i * 1e9 / opt.rate));
}

bool
may_issue(void)
{
	return (clock_ns < ends && (opt.requests == 0 || cnt.issued < opt.requests));
}

static void
sweep(void)
{
	static uint64_t next;
	uint64_t limit = (uint64_t)(opt.timeout * 1e9);
	struct conn *c;
	unsigned i;

	if (clock_ns < next)
		return;
	next = clock_ns + SWEEP_NS;
	for (i = 0; i < opt.conns; i++) {
		c = &conns[i];
		if (c->n > 0 && clock_ns > c->asked[c->first].at &&
		    clock_ns - c->asked[c->first].at > limit)
			conn_fail(c, &cnt.timeout);
		else if (c->ending && clock_ns > c->end_by)
			conn_fail(c, &cnt.timeout); /* announced, but does not close */
	}
}

/* Requests that ended, with or without an answer. */
static uint64_t
over(void)
{
	return (cnt.answered + cnt.aborted + cnt.timeout + cnt.reset + cnt.cut + cnt.malformed +
		cnt.connect);
}

/* Starts the requests that are due.  Returns when to call it again. */
static uint64_t
dispatch(void)
{
	struct conn *c, *stop = NULL;
	uint64_t at;

	for (;;) {
		if (!may_issue())
			return (NEVER);
		at = opt.rate > 0 ? schedule_of(scheduled) : clock_ns;
		if (at > clock_ns || idle_is_empty())
			return (idle_is_empty() ? NEVER : at);
		if (opt.hold && cnt.issued > over() + HOLD_AT_ONCE)
			return (NEVER); /* no listen queue is that long */
		c = idle_take();
		if (c->retry_at > clock_ns) {
			idle_add(c);
			if (c == stop)
				return (clock_ns + RETRY_NS);
			stop = stop == NULL ? c : stop;
			continue;
		}
		if (c->fd >= 0 && (c->ending || c->n > 0))
			continue; /* busy again; it will come back */
		if (opt.hold && cnt.issued >= opt.conns)
			return (NEVER);
		scheduled++;
		conn_ask(c, at);
	}
}

static bool
finished(void)
{
	if (clock_ns >= ends)
		return (true);
	if (opt.hold)
		return (over() >= opt.conns);
	return (opt.requests != 0 && cnt.issued >= opt.requests && over() >= opt.requests);
}

static void
run(void)
{
	struct epoll_event evs[256];
	struct timespec ts;
	uint64_t wake, left;
	int i, n;

	while (clock_ns = now(), !finished()) {
		sweep();
		wake = dispatch();
		if (wake > clock_ns + SWEEP_NS)
			wake = clock_ns + SWEEP_NS;
		left = wake > clock_ns ? wake - clock_ns : 0;
		ts.tv_sec = (time_t)(left / NS);
		ts.tv_nsec = (long)(left % NS);
		n = epoll_pwait2(epoll_fd, evs, 256, &ts, NULL);
		clock_ns = now();
		for (i = 0; i < n; i++)
			conn_event(evs[i].data.ptr, evs[i].events);
	}
}

/* Open loop: requests in flight and requests that are due count with their age. */
static void
count_unanswered(void)
{
	uint64_t t = now(), at;
	unsigned i, k;

	for (i = 0; i < opt.conns; i++) {
		for (k = 0; k < conns[i].n; k++) {
			latency_add(t - conns[i].asked[(conns[i].first + k) % PIPELINE_MAX].at);
			cnt.unanswered++;
		}
	}
	for (; (opt.requests == 0 || scheduled < opt.requests) &&
	       (at = schedule_of(scheduled)) < ends;
	     scheduled++) {
		latency_add(t - at);
		cnt.unanswered++;
	}
}

/* A request without a byte of its body at the end counts with its age. */
static void
count_silent(void)
{
	uint64_t t = now();

	for (unsigned i = 0; i < opt.conns; i++)
		if (conns[i].n > 0 && !(conns[i].begun && conns[i].got > 0))
			first_add(t - conns[i].asked[conns[i].first].at);
}

/* Keeps the connections open and silent until standard input ends or the time is over. */
static void
hold(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char buf[64];
	unsigned i, open_now = 0;

	for (i = 0; i < opt.conns; i++)
		open_now += conns[i].fd >= 0;
	printf("held %u answered %llu\n", open_now, (unsigned long long)cnt.answered);
	fflush(stdout);
	while ((clock_ns = now()) < ends)
		if (poll(&p, 1, (int)((ends - clock_ns) / 1000000) + 1) > 0 &&
		    read(STDIN_FILENO, buf, sizeof(buf)) <= 0)
			return;
}

static void
raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	prctl(PR_SET_TIMERSLACK, 1); /* the open loop starts requests by the clock */
}

int
main(int argc, char **argv)
{
	const char *path = options_read(argc, argv);
	double seconds;

	if (opt.list != NULL)
		urls_read(opt.list);
	else
		url_add(path);
	raise_limits();
	conns_open();
	started = clock_ns = now();
	ends = started + (uint64_t)(opt.seconds * 1e9);
	run();
	seconds = (double)(now() - started) / 1e9;
	if (opt.rate > 0)
		count_unanswered();
	count_silent();
	if (opt.hold)
		hold();
	report(seconds);
	return (errors() > 0);
}
