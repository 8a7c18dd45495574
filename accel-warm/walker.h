/* accel-warm/walker.h -- what one thread does: it reads directories, and touches names.
 *
 * Thread   its own, but for walker_watch().
 */
#ifndef ACCEL_WARM_WALKER_H
#define ACCEL_WARM_WALKER_H

#include <pthread.h>

#include "accel-warm/bucket.h"
#include "accel-warm/conf.h"
#include "accel-warm/filter.h"
#include "accel-warm/queue.h"
#include "accel-warm/state.h"
#include "accel-warm/tally.h"

/* What all threads of a walk share. */
struct walk_shared {
	const struct walk_conf *conf;
	struct walk_filter filter;
	struct walk_queue *queue;
	struct walk_state *state;	/* NULL */
	pthread_mutex_t	   lock;	/* of what follows */
	struct walk_bucket files, bytes;
	GHashTable	  *met;		/* device and inode of directories; NULL: without links none is met twice */
};

struct walker {
	struct walk_shared *shared;
	struct walk_tally   tally;
	struct walk_batch  *batch;	/* in hand, or NULL */
	void	*buf;			/* for what is read */
	size_t	 chunk;			/* its size */
	GChecksum *sum;			/* for keys; NULL: there is no state file */
	pthread_mutex_t lock;		/* of what follows: where it is now */
	uint64_t since_ns;		/* in a call that may sleep; 0: not */
	const struct walk_dir *dir;
	const char *name;		/* in dir; NULL: the directory itself */
	dev_t	 dev;			/* 0: not known */
	bool	 told;
};

void walker_init(struct walker *, struct walk_shared *);
void walker_fini(struct walker *);
void walker_run(struct walker *);	/* until there is nothing to do, or one thread too many */

/* For the thread that watches: true when it is in a call since before_ns or longer; then *dev is where.  Tells people once. */
bool walker_hangs(struct walker *, uint64_t before_ns, dev_t *dev);

/* inside: */
void walker_enter(struct walker *, const struct walk_dir *, const char *name, dev_t);
void walker_leave(struct walker *);
void walker_failed(struct walker *, const struct walk_dir *, const char *name, int err);
bool walker_one_name(struct walker *);		/* false: no batch has any */
void walker_read_dir(struct walker *, struct walk_dir *);
void walker_add_batch(struct walk_shared *, struct walk_tally *, GChecksum *, struct walk_batch **);

#endif
