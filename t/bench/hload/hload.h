/* t/bench/hload/hload.h -- what the files of hload share: options, counts, the clock,
 * connections. */
#ifndef HLOAD_H
#define HLOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "t/bench/args.h"

#define PIPELINE_MAX 64
#define HEAD_MAX     16384
#define REQUEST_MAX  2048
#define NS           1000000000ull
#define RETRY_NS     (10 * NS / 1000) /* after a failed connect: no busy loop */
#define NEVER        UINT64_MAX

/* ---------------------------------------------------------------- options.c, urls.c */

struct options {
	unsigned conns;
	unsigned pipeline;
	uint64_t requests; /* at most; 0 for no limit but the time */
	double seconds, timeout, rate;
	bool close, json, random, hold;
	int status; /* the status that is no error; 0 for any 2xx */
	double abort_pct;
	uint64_t seed;
	const char *list, *check, *method;
	char headers[4096];
	struct sockaddr_in addr, from; /* from: the source address, if its family is set */
	char host[64];
};

extern struct options opt;

/* Returns the path of the URL.  A wrong option ends the program. */
const char *options_read(int argc, char **argv);

struct url {
	char *path;
	char *request;
	size_t request_len;
	const char *expect; /* --check: the bytes of the file */
	size_t expect_len;
};

void url_add(const char *path);
void urls_read(const char *list);
const struct url *url_next(void); /* in turn, or at random */

/* The next number of a sequence that depends on --seed only. */
uint64_t random_u64(void);

/* ---------------------------------------------------------------- the run: t/bench/hload.c */

extern uint64_t started, ends, clock_ns;

struct counts {
	uint64_t issued, answered, unanswered, aborted, bytes;
	uint64_t connect, timeout, reset, cut, status, malformed, wrong;
	uint64_t connects;
};

extern struct counts cnt;

bool may_issue(void);

static inline uint64_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec);
}

/* ---------------------------------------------------------------- connections: conn.c */

struct asked {
	const struct url *url;
	uint64_t at; /* when it was sent, or should have been */
};

struct conn {
	struct conn *next; /* in the list of idle ones */
	int fd;            /* -1: not connected */
	uint32_t events;
	bool connecting, ending, listed;
	uint64_t retry_at; /* not before */
	uint64_t end_by;   /* ending: the server's FIN is awaited until then */
	struct asked asked[PIPELINE_MAX];
	unsigned first, n;           /* asked and not yet answered */
	unsigned unsent, sent_bytes; /* of those, the last ones; bytes of the first unsent */

	/* the answer being read */
	enum { HEAD, BODY, CHUNK_LINE, CHUNK_END, TRAILER } part;
	bool last, until_eof, chunked, begun;
	bool status_ok, bytes_ok;
	uint64_t left, got; /* body bytes to come (of the chunk), and seen */
	uint64_t abort_at;  /* leaves when this many are seen */
	size_t have;        /* bytes in `buf`, all of them before `part` is done */
	char *buf;          /* an unfinished head or line */
};

void conns_open(void);
bool idle_is_empty(void);
struct conn *idle_take(void); /* the one that waits longest, or NULL */
void idle_add(struct conn *);

void conn_ask(struct conn *, uint64_t at); /* at: what its latency counts from */
void conn_event(struct conn *, uint32_t events);
void conn_close(struct conn *);
/* Asks again, or queues the connection for the next request. */
void conn_next(struct conn *);
/* Ends a connection.  Each request without an answer counts as this kind of error. */
void conn_fail(struct conn *, uint64_t *kind);

extern struct conn *conns;
extern int epoll_fd;

/* ---------------------------------------------------------------- answers: answer.c */

/* Works through received bytes.  False: the connection is closed. */
bool answer_take(struct conn *, char *p, size_t n);
/* Takes body bytes, p NULL if the kernel dropped them.  Returns how many it used. */
size_t body_take(struct conn *, const char *p, size_t n);
void answer_done(struct conn *);

/* ---------------------------------------------------------------- report.c */

void latency_add(uint64_t ns);
void first_add(uint64_t ns); /* until the first byte of a body */
uint64_t errors(void);
void report(double seconds);

#endif
