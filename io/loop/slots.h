/* io/loop/slots.h -- what an event is about: a slot and a generation instead of a pointer.
 *
 *   slot_take(sock) --> key --> epoll data --> slot_find(key): the socket, or NULL once the slot was given back
 *
 * A descriptor that is closed while a copy of it exists (a forked child, a thread) stays in the epoll set and goes on
 * reporting.  Its key names a slot whose generation has changed, so the report finds nothing.
 *
 * Bounds   as many slots as sockets are registered at a time; a free slot is used again before the table grows.
 * Thread   the loop's.
 */
#ifndef IO_LOOP_SLOTS_H
#define IO_LOOP_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slot {
	void *what;          /* NULL: free */
	uint32_t generation; /* raised when the slot is given back */
	uint32_t next_free;
	bool watch;          /* what is a struct io_watch, not a struct io_sock */
};

struct slots {
	struct slot *slot;   /* slot 0 is never used */
	uint32_t n, cap;     /* slots ever used, slots allocated */
	uint32_t free;       /* the first free one; 0: none */
};

uint32_t slot_take(struct slots *, void *what, bool watch); /* 0: no memory */
void slot_give_back(struct slots *, uint32_t slot);
void slots_free(struct slots *);

static inline uint64_t
slot_key(const struct slots *t, uint32_t slot)
{
	return ((uint64_t)t->slot[slot].generation << 32 | slot);
}

/* NULL: the key is from before the slot was given back. */
static inline const struct slot *
slot_find(const struct slots *t, uint64_t key)
{
	const struct slot *s = &t->slot[(uint32_t)key];

	return (s->what != NULL && s->generation == key >> 32 ? s : NULL);
}

#endif
