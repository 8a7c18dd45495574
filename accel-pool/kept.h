/* accel-pool/kept.h -- why files stay in memory after they have been evicted.
 *
 * A page stays while it is dirty, mapped by a process, locked (mlock(2)), or in a file system that
 * has no disk.  The first and last are facts of the file.  For the others all processes that this
 * user may look at are searched for mappings, once, at the end.
 *
 * Thread   kept_add(): any.  The rest: one.
 */
#ifndef ACCEL_POOL_KEPT_H
#define ACCEL_POOL_KEPT_H

#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define KEPT_MAX 65536u /* files that are looked for; the rest counts as KEPT_OTHER */

/* why(name in JSON, what a person reads) */
#define KEPT_REASONS(R)                             \
	R(tmpfs, "on a file system without a disk") \
	R(dirty, "not yet written to the disk")     \
	R(locked, "locked in memory by a process")  \
	R(mapped, "mapped by a process")            \
	R(other, "in use by the kernel, or mapped by a process of another user")

enum kept_reason {
#define R(name, text) KEPT_##name,
	KEPT_REASONS(R)
#undef R
	    KEPT_N
};

struct kept_sum {
	uint64_t files, bytes;
	char by[64]; /* "nginx (1234)", a process that maps them; empty: none */
};

struct kept {
	pthread_mutex_t lock;
	GHashTable *files; /* device and inode -> bytes, of those to look for */
	struct kept_sum sums[KEPT_N];
};

void kept_init(struct kept *);
void kept_free(struct kept *);
/* KEPT_other is looked for in kept_explain(). */
void kept_add(struct kept *, enum kept_reason, dev_t, ino_t, uint64_t bytes);
void kept_explain(struct kept *);

#endif
