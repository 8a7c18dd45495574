/* accel-warm/batch.h -- names of one directory that threads take turns in, one name at a time.
 *
 *	filled and sealed by one thread --> shared:  [ done | done | taken | taken | next ... ]
 *
 * Names are touched in the order of their inodes: that is how they lie in the inode tables of ext4 and xfs, and no
 * order in which to read them off a disk is better.
 *
 * key      stands for the directory, the names and their inodes: what a state file remembers.  Two batches with the
 *          same key are the same work.
 * Thread   filled by one; walk_batch_next() and walk_batch_finished() by any.
 */
#ifndef ACCEL_WARM_BATCH_H
#define ACCEL_WARM_BATCH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "accel-warm/dir.h"

#define WALK_BATCH_MAX 8192	/* names; larger ones would be lost by a kill, smaller ones sorted in vain */
#define WALK_KEY_BYTES 16

struct walk_name {
	uint64_t ino;
	uint32_t at;		/* in text */
	uint8_t	 type;		/* DT_REG and others of readdir(3) */
};

struct walk_batch {
	struct walk_dir *dir;
	struct walk_name *names;
	unsigned n, room;
	struct buf text;	/* of them; each ends in a NUL */
	bool	 listed;	/* the names come from a list: absence is an error, links are followed */
	bool	 has_key;
	uint8_t	 key[WALK_KEY_BYTES];
	unsigned next, left;	/* to be handed out; not finished */
	unsigned failed;	/* some could not be made warm: to be tried again by the next run */
	unsigned refs;
	struct list link;	/* queue.c's */
};

struct walk_batch *walk_batch_new(struct walk_dir *);	/* uses dir until walk_batch_unuse_dir() */
struct walk_batch *walk_batch_ref(struct walk_batch *);
void walk_batch_unref(struct walk_batch **);
void walk_batch_add(struct walk_batch *, const char *name, uint64_t ino, uint8_t type);
/* No more are added.  sum: what a key is made with, NULL for none. */
void walk_batch_seal(struct walk_batch *, GChecksum *sum);

/* The next name, or NULL: all have been taken. */
const struct walk_name *walk_batch_next(struct walk_batch *);
bool walk_batch_all_taken(const struct walk_batch *);
bool walk_batch_finished(struct walk_batch *, bool good);	/* true: it was the last one */

static inline const char *
walk_batch_text(const struct walk_batch *b, const struct walk_name *n)
{
	return (b->text.p + n->at);
}

#endif
