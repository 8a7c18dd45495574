/* accel-load/count.h -- what happened to the requests: numbers, errors by kind, durations.
 *
 * Every started request ends in exactly one of these:
 *
 *	requests == answered + failed + aborted + unanswered
 *
 * An answer with a wrong status, length or content is answered and counts as one error.  A request
 * that failed has one error, too, and no status.  Answers with several faults count as the first
 * of: status, length (short, long), wrong.
 *
 * Owner    counts_free().
 * Thread   count_*(): the thread of the counts.  Others may read the numbers of struct
 *          count_progress at any time.
 */
#ifndef ACCEL_LOAD_COUNT_H
#define ACCEL_LOAD_COUNT_H

#include <stdbool.h>

#include "base/histogram.h"

enum load_error {
	LOAD_CONNECT, /* no connection: no route, no port, ... */
	LOAD_REFUSED, /* ECONNREFUSED */
	LOAD_RESET,   /* ECONNRESET, EPIPE; or closed before the first byte of the answer */
	LOAD_TLS,     /* no handshake: not TLS, or nothing in common */
	LOAD_TIMEOUT,
	LOAD_SHORT, /* the answer ended before its length */
	LOAD_LONG,  /* bytes after the end of the answer, or more than verified */
	LOAD_WRONG, /* the content is wrong */
	LOAD_STATUS,
	LOAD_MALFORMED, /* not an answer of the protocol */
	/* of HTTP/2: */
	LOAD_STREAM,         /* RST_STREAM */
	LOAD_REFUSED_STREAM, /* ... with REFUSED_STREAM */
	LOAD_GOAWAY,         /* GOAWAY with an error */
	LOAD_ERRORS,
	LOAD_OK = LOAD_ERRORS,
};

struct load_error_info {
	const char *name;    /* in JSON: "refused" */
	const char *meaning; /* for people */
};
extern const struct load_error_info load_errors[LOAD_ERRORS];

#define COUNT_STATUSES 1000u /* 0 to 999 */

/* report.c and merge.c read the fields, everyone else calls. */
struct counts {
	uint64_t requests, answered, failed, aborted, unanswered, connects, body_bytes;
	uint64_t handshakes, resumed; /* of TLS: done, and those that resumed a session */
	/* of HTTP/2: GOAWAY that came; requests that were asked again because of it */
	uint64_t goaways, again;
	uint64_t errors[LOAD_ERRORS];
	uint64_t status[COUNT_STATUSES];
	struct histogram_fine latency, first_byte, connect, handshake;
};

struct count_progress {
	uint64_t requests, answered, errors, body_bytes;
};

struct counts *counts_new(void); /* NULL: no memory */
void counts_free(struct counts *);
void counts_add(struct counts *into, const struct counts *from);

void count_requests(struct counts *, unsigned n);  /* started */
void count_withdrawn(struct counts *, unsigned n); /* started, but will be started again */
void count_connect(struct counts *, uint64_t ns);  /* a connection was made, after this long */
void count_handshake(struct counts *, bool resumed, uint64_t ns);
void count_goaway(struct counts *);
void count_again(struct counts *);
void count_first_byte(struct counts *, uint64_t ns); /* of a body, since its request */
void count_body(struct counts *, uint64_t bytes);
/* An answer to its end; how is LOAD_OK, STATUS, SHORT, LONG or WRONG. */
void count_answer(struct counts *, int status, enum load_error how, uint64_t latency_ns);
/* n requests that will get no answer, or no more of it. */
void count_error(struct counts *, enum load_error, unsigned n);
/* A connection without requests brought bytes that belong to no answer, or no end. */
void count_fault(struct counts *, enum load_error);
/* Open loop: the age of a request that failed. */
void count_failed_latency(struct counts *, uint64_t latency_ns);
void count_aborted(struct counts *, unsigned n);
/* Counts a request that has no answer at the end of the run.  age_ns counts as its latency in the
 * open loop; 0: it does not count. */
void count_unanswered(struct counts *, uint64_t age_ns);
/* As count_unanswered(), for n requests that never started, with ages of one bucket of the
 * histogram, evenly spread. */
void count_overdue(struct counts *, uint64_t youngest_ns, uint64_t oldest_ns, uint64_t n);

uint64_t count_errors(const struct counts *);
void count_progress(const struct counts *, struct count_progress *); /* any thread */

#endif
