/* t/unit/proxy-core/laws.h -- one world: some clients, the upstream under test, some applications,
 * and a random schedule of events from a seed.
 *
 *   laws_client.h   requests, what came back, who waits
 *   laws_server.h   sockets, what each one received, replies
 *   laws.c          the schedule, and the laws that are checked after each step
 */
#ifndef LAWS_H
#define LAWS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "proxy-core/exchange_impl.h"
#include "proxy-core/pool_impl.h"
#include "t/unit/proxy-core/proxy_test.h"

#define ASKS     400  /* requests of one schedule */
#define CONNS    3000 /* sockets of one schedule */
#define CLIENTS  4    /* addresses of clients */
#define RUNNING  14   /* requests at a time */
#define BACKENDS 3

struct conn { /* a socket, as its application sees it */
	const struct io_sock *sock;
	int fd;
	uint32_t address; /* of the backend */
	bool open, up, dead;
	bool odd; /* sent bytes that nobody asked for */
	unsigned served;
	GByteArray *in; /* received, not parsed */
	unsigned id;    /* of the request that comes in or is answered; 0: none */
	bool started;   /* its variables are complete: the application may run it */
	size_t body;    /* bytes of it so far */
	GString *reply; /* what it gets; NULL: not decided */
	size_t given;   /* bytes of it that went out */
	enum { reply_good, reply_refused, reply_broken, reply_short } how;
};

struct ask { /* a request */
	unsigned id;
	struct proxy_request req;
	char target[32], query[24];
	struct exchange *x; /* NULL: ended or forgotten */
	GString *body;
	int64_t body_left;
	bool safe, head_only, forgotten, paused;
	bool hedged;    /* may have a second try */
	unsigned tries; /* backends that may get it, one after the other */
	bool moved;     /* to it, which queued at a step that is not known */
	bool slow;      /* its client did not read until total_ms was over */
	int heads, ends, end;
	unsigned runs, refusals; /* applications that may run it; that said they did not */
	bool whole;              /* a whole good reply was sent on its socket */
	bool shortened;          /* a reply that is shorter than it says */
	/* its wait for a socket */
	const struct pool *waits_in;
	uint64_t waits_since_ns, queued_ns;
	unsigned queued_at; /* step */
};

struct world {
	uint64_t seed, rng;
	unsigned step;
	unsigned hurry;  /* ms that pass at most between two events */
	unsigned faults; /* each kind of fault is this many times rarer */
	bool trace;
	struct proxy_conf conf;
	struct upstream *up;
	struct ask ask[ASKS + 1]; /* the last one stands for all checks of backends */
	unsigned nasks, running;
	struct conn conn[CONNS];
	unsigned nconns;
	unsigned moves;
	unsigned hedge_percent; /* 0: no second tries */
	unsigned hedges;        /* that got the caller */
};

static struct world w;

/* xorshift64*: the same numbers on every machine */
static unsigned
below(unsigned n)
{
	w.rng ^= w.rng >> 12;
	w.rng ^= w.rng << 25;
	w.rng ^= w.rng >> 27;
	return ((unsigned)((w.rng * 0x2545f4914f6cdd1dull) >> 33) % n);
}

static bool
one_in(unsigned n)
{
	return (below(n) == 0);
}

static void G_GNUC_PRINTF(1, 2) trace(const char *fmt, ...)
{
	va_list ap;

	if (!w.trace)
		return;
	printf("# %u: ", w.step);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

static void G_GNUC_PRINTF(2, 3) law(bool holds, const char *fmt, ...)
{
	va_list ap;

	if (holds)
		return;
	fflush(stdout);
	fprintf(stderr, "# step %u of seed %llu: ", w.step, (unsigned long long)w.seed);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n# LAWS_SEED=%llu replays it\n", (unsigned long long)w.seed);
	abort();
}

static struct ask *
ask_of(unsigned id)
{
	if (id == ASKS + 1)
		return (&w.ask[ASKS]);
	law(id >= 1 && id <= w.nasks, "an application received a request that nobody sent");
	return (&w.ask[id - 1]);
}

/* The reply of the application. */
static void
reply_body(unsigned id, GString *out)
{
	unsigned n;

	for (n = 0; n <= id * 7919 % 40; n++)
		g_string_append_printf(out, "id=%06u;", id);
}

#endif
