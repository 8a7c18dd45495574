/* t/unit/server/meet.h -- the world of meet.c: clients, applications, and what each request has
 * met.
 *
 *   meet.h         clients and applications; numbers, laws, the trace
 *   meet_conf.h    a random configuration
 *   meet_client.h  clients: what they ask, what they heard
 *   meet_speak.h   five protocols, as applications read and write them
 *   meet_app.h     applications: what they got, what they answer
 *   meet_judge.h   the model: which reply a request may get
 *   meet_pairs.h   which features met
 *   meet_owned.h   one address holds an application
 *   meet.c         what happens, and the end
 */
#ifndef MEET_H
#define MEET_H

#include "t/unit/server/simworker.h"

#define VISITORS 9u /* in all; three at a time */
#define ASKS     8u /* of a visitor */
#define VISITS   16u
#define APPS     64u
#define BIG      300000u /* bytes of the file /big: it is sent from its descriptor */
#define LONGEST  150000u /* body: more than a spool keeps in memory */
#define WAIT_S   20u     /* every deadline of the configuration */
#define MOST_S   240u    /* their sum, and some */

/* Features that can meet.  GROUP: one of them at most holds for a request; FOR: a request of these
 * kinds. */
enum group { G_WHAT, G_HOW, G_METHOD, G_BODY, G_ERROR, G_ANSWER, G_WHEN, G_SENDS, G_GOES, G_ANY };

#define FEATURES(F)                      \
	F(file, WHAT, 0)                 \
	F(page, WHAT, 0)                 \
	F(refused, WHAT, 0)              \
	F(fastcgi, WHAT, 0)              \
	F(scgi, WHAT, 0)                 \
	F(http, WHAT, 0)                 \
	F(ajp13, WHAT, 0)                \
	F(uwsgi, WHAT, 0)                \
	F(cgi, WHAT, 0)                  \
	F(spooled, HOW, 0)               \
	F(streamed, HOW, 0)              \
	F(get, METHOD, NO_BODY)          \
	F(head, METHOD, NO_BODY)         \
	F(post, METHOD, HAS_BODY)        \
	F(put, METHOD, HAS_BODY)         \
	F(no_body, BODY, NO_BODY)        \
	F(length, BODY, HAS_BODY)        \
	F(chunked, BODY, HAS_BODY)       \
	F(malformed, BODY, HAS_BODY)     \
	F(no_handler, ERROR, 0)          \
	F(error_handler, ERROR, 0)       \
	F(error_404, ERROR, 0)           \
	F(plain, ANSWER, BY_APP)         \
	F(sendfile, ANSWER, BY_APP)      \
	F(sendfile_bad, ANSWER, BY_APP)  \
	F(sendfile2, ANSWER, BY_APP)     \
	F(sendfile2_bad, ANSWER, BY_APP) \
	F(redirect, ANSWER, BY_APP)      \
	F(redirect_bad, ANSWER, BY_APP)  \
	F(broken, ANSWER, BY_APP)        \
	F(at_end, WHEN, BY_APP)          \
	F(early, WHEN, HAS_BODY)         \
	F(late, WHEN, BY_APP)            \
	F(never, WHEN, BY_APP)           \
	F(one_segment, SENDS, 0)         \
	F(split, SENDS, 0)               \
	F(alone, SENDS, 0)               \
	F(stays, GOES, 0)                \
	F(slow, GOES, 0)                 \
	F(half_closes, GOES, 0)          \
	F(leaves, GOES, 0)               \
	F(authorizer, ANY, 0)            \
	F(modules, ANY, 0)               \
	F(rewritten, ANY, 0)             \
	F(expect, ANY, HAS_BODY)         \
	F(cold, ANY, 0)                  \
	F(hot, ANY, 0)                   \
	F(long_head, ANY, 0)             \
	F(long_body, ANY, HAS_BODY)      \
	F(behind_cold, ANY, 0)           \
	F(behind_app, ANY, 0)            \
	F(went_on, ANY, BY_APP)

#define F(name, group, needs) f_##name,
enum feature { FEATURES(F) NFEATURES };
#undef F
#define BIT(name) (1ull << f_##name)

/* Why a request may fail. */
enum excuse {
	X_MALFORMED = 1, /* its body */
	X_STOPPED = 2,   /* its client sends no more */
	X_GONE = 4,      /* its client left, or read no more */
	X_APP = 8,       /* an application broke its reply, or answered nothing */
	X_DISK = 16,     /* a disk failed */
	X_TIME = 32,     /* more time passed than a deadline allows */
	X_BACKEND = 64,  /* a backend refused or cut a connection: excuses every request */
	X_EARLY = 128,   /* the application answered before the body was there */
};

enum plan {
	PLAN_PLAIN,    /* a reply with a body of its own */
	PLAN_FILE,     /* X-Sendfile */
	PLAN_PIECES,   /* X-Sendfile2 */
	PLAN_REDIRECT, /* X-Accel-Redirect */
	PLAN_GRANT,    /* of an authorizer */
	PLAN_DENY,
	PLAN_BROKEN, /* cut off, nothing, or no reply at all */
	PLAN_SILENT,
	PLAN_FAILS /* hangs up, resets, or both after half a head */
};

/* An application was asked for a request. */
struct visit {
	enum plan plan;
	int status;
	const char *path;  /* that it names, below the root; NULL: none */
	const char *bytes; /* bytes that the client gets then; NULL: an error */
	size_t length;     /* of the body of a plain reply */
	int fails;         /* status if the path cannot be sent; 0: it can */
	bool head, post, whole, authorizer;
	unsigned backend; /* last number of the address of the backend */
	bool hidden;      /* it failed, and another backend must get the request */
};

/* One request of a visitor. */
struct ask {
	unsigned id, n; /* n: its place in its visitor */
	struct visitor *of;
	enum { AT_FILE, AT_NONE, AT_DIR, AT_REFUSED, AT_MOVED, AT_PAGE, AT_APP, AT_CGI } at;
	const char *url, *file;                                  /* file: AT_FILE: its bytes */
	bool head, post, put, chunked, malformed, expect, waits; /* put: post is set, too */
	size_t length;
	size_t first, body, last; /* offsets in the bytes of its client */
	unsigned excuses;
	uint64_t met;
	struct visit visit[VISITS];
	unsigned nvisits, fails; /* fails: visits that failed so that another backend may help */
	char request_id[33];     /* that applications got; "": none yet */
	bool continued, answered;
	unsigned began; /* step in which the one before it was answered */
};

struct visitor {
	struct io_sock *s;
	int fd;
	unsigned nth; /* of the connections of this seed */
	GString *to_say;
	size_t said, judged;
	struct ask ask[ASKS];
	unsigned nasks, next; /* next: the first without an answer */
	enum { SENDS_ALL, SENDS_SPLIT, SENDS_ALONE } sends;
	size_t stops_at; /* says no byte from here on */
	bool slow, leaves;
	bool holds;         /* its application takes for ever */
	unsigned leaves_at; /* after this many replies */
	bool gone;          /* reset, or end of its stream */
	bool reset;
	size_t need; /* bytes of the reply that comes; 0: its head is not there */
	bool shut;   /* its last reply said close */
	bool ended;  /* judged, after it was closed */
};

struct speaks;

struct app {
	struct io_sock *s;
	int fd;
	const struct speaks *speaks;
	bool authorizer, program;
	unsigned backend;
	size_t from, seen; /* of what was sent to it: where this request begins, bytes judged */
	/* the request */
	bool has_head, whole;
	struct text head;
	size_t used, asked; /* bytes of the request; AJP: packets that were asked for */
	GString *body;
	struct ask *ask;
	unsigned visit;
	bool early;
	unsigned waits; /* turns until it answers */
	/* the reply */
	GString *to_say;
	size_t said;
	bool answers, closes, resets;
};

static struct {
	unsigned seed, step;
	uint64_t rng;
	bool trace, faults;
	/* milliseconds that have passed; less than a deadline unless X_TIME is noted */
	unsigned ms;
	/* the configuration */
	GString *text;
	const char *protocol, *error_to;
	enum { NO_HANDLER, FOR_ALL, FOR_404 } handler;
	bool streams, authorizer, modules, programs;
	bool next, next_5xx; /* three backends; proxy-core.next-upstream has statuses, too */
	bool tells_id;       /* server.request-id has the client */
	unsigned pool;
	/* clients and applications */
	struct visitor visitor[VISITORS];
	unsigned nvisitors, ids, conns;
	struct app app[APPS];
	struct ask *by_id[VISITORS * ASKS + 1];
	unsigned opened[32]; /* step in which a file of the disk was opened, + 1; 0: not yet */
} now;

static char big_bytes[BIG + 1];

/* xorshift64*: the same numbers on every machine */
static unsigned
below(unsigned n)
{
	now.rng ^= now.rng >> 12;
	now.rng ^= now.rng << 25;
	now.rng ^= now.rng >> 27;
	return ((unsigned)((now.rng * 0x2545f4914f6cdd1dull) >> 33) % n);
}

static bool
one_in(unsigned n)
{
	return (below(n) == 0);
}

static void G_GNUC_PRINTF(1, 2) trace(const char *fmt, ...)
{
	va_list ap;

	if (!now.trace)
		return;
	printf("# %u, %u ms: ", now.step, now.ms);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

static void G_GNUC_PRINTF(2, 3) law(bool holds, const char *fmt, ...)
{
	va_list ap;

	if (holds)
		return;
	fflush(stdout);
	fprintf(stderr, "# law, step %u of seed %u: ", now.step, now.seed);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n%s# SEED=%u MEET_TRACE=1 replays it with all events\n", logged->str,
	    now.seed);
	abort();
}

static size_t
least(size_t a, size_t b)
{
	return (a < b ? a : b);
}

/* The i-th byte of everything that belongs to this request. */
static char
byte_of(unsigned id, size_t i)
{
	return ((char)('a' + (i + 5 * id) % 23));
}

static bool
is_body_of(unsigned id, const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] == byte_of(id, i))
		i++;
	return (i == n);
}

static void
add_body(GString *to, unsigned id, size_t n)
{
	size_t i, was = to->len;

	g_string_set_size(to, was + n);
	for (i = 0; i < n; i++)
		to->str[was + i] = byte_of(id, i);
}

#endif
