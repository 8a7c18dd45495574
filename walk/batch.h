/* walk/batch.h -- names of one directory; threads take them in turn, one name at a time.
 *
 * 	filled and sealed by one thread --> shared:  [ done | done | taken | taken | next ... ]
 *
 * Names are touched in the order of their inodes: the inode tables of ext4 and xfs have this order,
 * and no other order is faster to read from a disk.
 *
 * key      identifies the directory, the names and their inodes; a state file keeps it.  Two
 *          batches with the same key are the same work.
 * Thread   filled by one; walk_batch_next() and walk_batch_finished() by any.
 */
#ifndef WALK_BATCH_H
#define WALK_BATCH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "walk/dir.h"

/* names; with larger batches a kill would lose more work, with smaller ones sorting would gain
 * less */
#define WALK_BATCH_MAX 8192
#define WALK_KEY_CHARS 32

struct walk_name {
	uint64_t ino;
	uint32_t at;  /* offset in text */
	uint8_t type; /* DT_REG and others of readdir(3) */
};

struct walk_batch {
	struct walk_dir *dir;
	struct walk_name *names;
	unsigned n, room;
	struct buf text; /* the names, each with a NUL at its end */
	/* The names come from a list: a missing one is an error, and links are followed. */
	bool listed;
	char key[WALK_KEY_CHARS + 1]; /* hexadecimal; empty: not requested */
	unsigned next, left;          /* next name to hand out; names not finished */
	unsigned failed; /* names that could not be made warm; the next run tries them again */
	unsigned refs;
	struct list link; /* of queue.c */
};

struct walk_batch *walk_batch_new(struct walk_dir *); /* a user of dir until all is done */
struct walk_batch *walk_batch_ref(struct walk_batch *);
void walk_batch_unref(struct walk_batch **);
void walk_batch_add(struct walk_batch *, const char *name, uint64_t ino, uint8_t type);
/* No more names are added.  sum: makes the key; NULL: no key. */
void walk_batch_seal(struct walk_batch *, GChecksum *sum);

/* The next name, or NULL: all are taken. */
const struct walk_name *walk_batch_next(struct walk_batch *);
bool walk_batch_all_taken(const struct walk_batch *);
bool walk_batch_finished(struct walk_batch *, bool good); /* true: it was the last one */

static inline const char *
walk_batch_text(const struct walk_batch *b, const struct walk_name *n)
{
	return (b->text.p + n->at);
}

#endif
