/* server/status/running.h -- requests that are running now, in all workers, for status pages.
 *
 *   status page in worker 1 --running_ask()--> desk of worker 2 --running_answer()--> query
 *                                              desk of worker 3     after its round      |
 *                                                                 running_take() <-------'
 *
 * Only the worker that has a connection may read it, so each worker copies its own rows.  A worker
 * looks at its desk once a round: one load.  The lock of a desk is taken by status pages, by their
 * answers, and when a worker starts or ends.
 *
 * Bounds   RUNNING_ROWS of each worker and in the end, the oldest first; the number of the others
 *          is known.  A worker that does not answer in RUNNING_WAIT_MS is named as silent.
 * Owner    the query is the asker's until running_take() or running_drop(); a late answer is freed
 *          by its worker.
 * Thread   any for the desks; a query is its asker's.
 */
#ifndef SERVER_STATUS_RUNNING_H
#define SERVER_STATUS_RUNNING_H

#include <pthread.h>
#include <stdbool.h>
#include "base/buf.h"
#include "io/disk/pools.h"

#define RUNNING_ROWS    200u
#define RUNNING_URL     160u /* bytes of a URL; longer ones are cut */
#define RUNNING_WAIT_MS 500u
#define RUNNING_POLL_MS 10u

struct running_row {
	uint64_t since_ns, sent; /* head complete; bytes that the client's socket took */
	const char *state,
	    /* state: static; backend: of a backend, which is never freed; neither is NULL */
	    *backend;
	char id[24], client[64], method[16], url[RUNNING_URL + 1];
	char device[IO_MOUNT_NAME]; /* mount point of the file; "": none is open or looked for */
	bool cut;                   /* the URL was longer */
};

struct running { /* of all workers; freed with running_free() */
	struct running_row *row;
	size_t n, all; /* rows; running requests */
	uint64_t now_ns;
	unsigned workers, silent; /* that were asked; of these, that did not answer */
	uint64_t silent_bits;     /* bit i: worker i of the first 64 */
};

struct io;
struct counters_list;
struct running_ask;
struct running_query;
struct worker;

struct running_desk { /* in worker_counters */
	pthread_mutex_t lock;
	struct io *io; /* to wake the worker; NULL: none works here */
	struct running_ask *first;
	bool asked; /* atomic: the list is not empty */
};

void running_desk_init(struct running_desk *);
void running_desk_open(struct running_desk *, struct io *);
/* The worker ends: queries that wait get no rows from it. */
void running_desk_close(struct running_desk *);

/* Rows of one worker: fills at most max, the oldest first, and returns how many there are. */
typedef size_t running_fill(struct worker *, struct running_row *, size_t max);
/* Answers all queries on the desk.  Called once a round if desk.asked is set. */
void running_answer(struct running_desk *, struct worker *, running_fill *);

/* Asks every worker of the list.  NULL: no memory. */
struct running_query *running_ask(struct counters_list *);
bool running_ready(struct running_query *); /* all have answered */
/* Takes the rows that have come so far.  False: no memory.  The query is gone either way. */
bool running_take(struct running_query *, uint64_t now_ns, struct running *);
void running_drop(struct running_query *);
void running_free(struct running *);

void running_json(struct buf *, const struct running *);
void running_html(struct buf *, const struct running *);
/* One line for each request, columns separated by tabs. */
void running_text(struct buf *, const struct running *);

#endif
