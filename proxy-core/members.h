/* proxy-core/members.h -- the pools of one block in one worker: one for each backend of its list.
 *
 * The list may change while requests run.  A pool whose backend left the list finishes its running
 * requests; its waiters go to other backends.  Each pool has a slot that does not change, and slots
 * of pools that left are used again last, so a request can remember the slots that it tried in a
 * word of bits.
 *
 * Thread   the worker's.
 */
#ifndef PROXY_CORE_MEMBERS_H
#define PROXY_CORE_MEMBERS_H

#include "base/list.h"
#include "proxy-core/balance.h"
#include "proxy-core/pool.h"

struct member {
	struct pool *pool; /* NULL: a free slot */
	unsigned weight, place;
	int64_t turn; /* of the balancer */
};

struct members {
	struct io *io;
	struct proxy_counters *counters;
	struct proxy_conf conf;
	void (*emptied)(void *arg); /* as pool_new() */
	void *arg;
	unsigned version; /* of conf.backends */
	size_t n, last;
	unsigned char order[BACKENDS_MAX]; /* slots, as the list has them */
	struct member slot[BACKENDS_MAX];
	struct list leaving; /* pools that have left the list */
};

#define members_each(m, mb, i) \
	for ((i) = 0; (i) < (m)->n && ((mb) = &(m)->slot[(m)->order[i]]) != NULL; (i)++)

/* Set io, counters, conf, emptied and arg before.  0 or -ENOMEM. */
int members_init(struct members *);
/* All pools are idle and closed. */
void members_fini(struct members *);
/* Takes over a changed list.  Waiters of pools that leave are called back. */
void members_update(struct members *);
void members_tick(struct members *, uint64_t now_ns);
void members_close_idle(struct members *);
bool members_have_sockets(const struct members *);
bool members_active(const struct members *); /* members_tick() has something to do */
unsigned members_quiet_ms(const struct members *, uint64_t now_ns); /* see pool_quiet_ms() */

enum members_which { /* the better ones first */
	MEMBERS_WELL,
	MEMBERS_PROBING, /* a request tests whether they are back */
	MEMBERS_FAILING, /* proxy-core.max-fails took them out */
	MEMBERS_KINDS
};

/* The backends of this kind that may get a request.  Returns their number. */
size_t members_candidates(struct members *, struct candidate v[BACKENDS_MAX], uint64_t tried,
    enum members_which);

#endif
