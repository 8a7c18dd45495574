/* files/lookup.h -- a table of names, with the waiters of each look-up and lists for eviction.
 *
 *   lookup_find() --+-- known, and lookup_age() says fresh ------> answer at once
 *                   +-- on its way: lookup_join() ----------+
 *                   '-- NULL: lookup_new(), lookup_add(), --+----> lookup_tell(): w->done()
 *                             an op, lookup_join()
 *   lookup_keep()   known names in lists, the least recently checked first
 *   lookup_surplus()  which goes first; the bounds of open files are in files/hold/room.c
 *
 * Two policies embed struct lookup in their entries.  files/hold/ keeps descriptors and bytes and
 * checks them again; files/warm/ keeps facts.  Each makes its own ops: one op of hold/ fills one
 * entry, an entry of warm/ may need several files and many windows of each.
 *
 * Owner    an entry is counted by the table while it is in it, and by each holder.  The last
 *          lookup_put() calls free() of the table.
 * Units    bytes, nanoseconds.
 * Thread   the loop's.
 */
#ifndef FILES_LOOKUP_H
#define FILES_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/text.h"

struct io;
struct file_scope; /* files/hold/hold.h */
struct lookup;

struct lookup_table {
	struct io *io;
	struct lookup **slot;
	size_t mask;
	size_t n, most;                /* entries: now, and the most since the table was empty */
	void (*free)(struct lookup *); /* frees the entry and what the policy added */
};

/* Entries of one kind.  An entry is in one list at most. */
struct lookup_list {
	struct list head; /* the least recently checked first */
	unsigned n;
	uint64_t bytes; /* sum that the policy counts for its members */
};

struct lookup {                   /* an entry; the first member of the policy's struct */
	struct text path;         /* with a NUL after it */
	struct file_scope *scope; /* entries of different scopes are never the same */
	struct lookup *chain;
	uint64_t hash;
	uint64_t checked_ns; /* begin of the check that the answer rests on */
	struct lookup_table *table;
	uint32_t refs;
	uint32_t client; /* row of its op in the queues, see io_op */
	bool listed;     /* in the table */
	struct lookup_list *in;
	uint64_t bytes; /* its part of in->bytes */
	struct list link, waiters;
};

struct lookup_wait {
	struct list link;
	struct lookup *lookup; /* that it waits for; NULL: none */
	uint32_t client; /* the client whose turn the look-up takes in the queues, see io_op */
	bool data;       /* hold/: the bytes will be wanted, too */
	/* the reference is yours; not called after lookup_leave() */
	void (*done)(struct lookup_wait *, struct lookup *);
};

int lookup_init(struct lookup_table *, struct io *, size_t names, void (*free)(struct lookup *));
void lookup_fini(struct lookup_table *); /* removes all entries */

struct lookup *lookup_find(const struct lookup_table *, const struct file_scope *, struct text path,
    uint64_t hash);
/* Makes an entry of size bytes, zero after struct lookup, with one reference; NULL: no memory. */
struct lookup *lookup_new(struct lookup_table *, size_t size, struct file_scope *, struct text path,
    uint64_t hash);
void lookup_add(struct lookup *); /* adds it to the table, which takes the caller's reference */
/* Removes a look-up from the table and its list: lookup_find() does not find it, its holders keep
 * it. */
void lookup_remove(struct lookup *);
void lookup_put(struct lookup *);

void lookup_join(struct lookup *, struct lookup_wait *);
/* True: this was the last waiter of its look-up.  May be called if it waits for nothing. */
bool lookup_leave(struct lookup_wait *);
void lookup_move_waiters(struct lookup *to, struct lookup *from);
/* Gives each waiter a reference to the answer. */
void lookup_tell(struct lookup *, struct lookup *answer);

void lookup_list_init(struct lookup_list *);
/* Moves a look-up to the end of this list.  No effect if it is not in the table. */
void lookup_keep(struct lookup *, struct lookup_list *, uint64_t bytes);
struct lookup *lookup_oldest(const struct lookup_list *); /* NULL: the list is empty */
/* The first entry, while the list exceeds n or bytes; NULL: it does not. */
struct lookup *lookup_surplus(const struct lookup_list *, unsigned n, uint64_t bytes);

uint64_t lookup_age(const struct lookup *); /* nanoseconds since its check began */
/* err is 0 or -errno.  True: a retry would end the same way, so the answer is kept. */
bool lookup_is_permanent(int err);

static inline struct lookup *
lookup_ref(struct lookup *l)
{
	l->refs++;
	return (l);
}

#endif
