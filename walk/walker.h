/* walk/walker.h -- the work of one thread: reads directories, touches names.
 *
 * Thread   its own, except walker_hangs().
 */
#ifndef WALK_WALKER_H
#define WALK_WALKER_H

#include <pthread.h>

#include "walk/conf.h"
#include "walk/filter.h"
#include "walk/queue.h"
#include "walk/state.h"
#include "walk/counters.h"

/* Shared by all threads of a walk. */
struct walk_shared {
	const struct walk_conf *conf;
	struct walk_filter filter;
	struct walk_queue *queue;
	struct walk_state *state; /* NULL: none */
	pthread_mutex_t lock;     /* of the fields below */
	struct walk_rate {
		uint64_t per_s, due_ns; /* 0: no limit; see pace_note() */
	} files, bytes;
	/* Directories read already; NULL without --follow: no directory has two names then. */
	GHashTable *seen_inodes;
};

struct walker {
	struct walk_shared *shared;
	struct walk_counters counters;
	struct walk_batch *batch; /* current batch, or NULL */
	void *buf;                /* buffer for reads */
	size_t chunk;             /* its size */
	GChecksum *sum;           /* for keys; NULL: no state file */
	pthread_mutex_t lock;     /* of the fields below: the current call */
	uint64_t since_ns;        /* start of a call that may sleep; 0: in no such call */
	const struct walk_dir *dir;
	const char *name; /* in dir; NULL: the directory itself */
	dev_t dev;        /* 0: unknown */
	bool told;
};

void walker_init(struct walker *, struct walk_shared *);
void walker_fini(struct walker *);
void walker_run(struct walker *); /* returns when there is no work, or one thread too many */

/* For the main thread: true if it has been in one call since before_ns; *dev is the device.
 * Reports it once. */
bool walker_hangs(struct walker *, uint64_t before_ns, dev_t *dev);

/* For conf.visit(): calls that may sleep are between walker_enter() and walker_leave(). */
void walker_enter(struct walker *, const struct walk_dir *, const char *name, dev_t);
void walker_leave(struct walker *);
int walker_open(struct walker *, const struct walk_batch *, const char *name, bool follow);
/* Reads up to walker.chunk bytes to walker.buf, at the rate of the options; conf.how is WARM_READ.
 */
ssize_t walker_read(struct walker *, const struct walk_batch *, const char *name, int fd, size_t n,
    uint64_t at);

/* internal: */
void walker_failed(struct walker *, const struct walk_dir *, const char *name, int err);
bool walker_one_name(struct walker *); /* false: no batch has a name */
void walker_read_dir(struct walker *, struct walk_dir *);
void walker_add_batch(struct walk_shared *, struct walk_counters *, GChecksum *,
    struct walk_batch **);

#endif
