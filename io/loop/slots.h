/* io/loop/slots.h -- the data of an event: a slot and a generation instead of a pointer.
 *
 *   slot_take(sock) --> key --> epoll data --> slot_find(key): the socket; NULL if the slot is free
 *
 * A descriptor that is closed while a copy of it exists (a forked child, a thread) stays in the
 * epoll set and reports events.  Its key names a slot whose generation has changed, so the event
 * is ignored.
 *
 * Bounds   as many slots as registered sockets; a free slot is used again before the table grows.
 * Thread   the loop's.
 */
#ifndef IO_LOOP_SLOTS_H
#define IO_LOOP_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slot {
	void *what;          /* NULL: free */
	uint32_t generation; /* increased when the slot is given back */
	uint32_t next_free;
	bool watch; /* it is a struct io_watch, not a struct io_sock */
};

struct slots {
	struct slot *slot; /* slot 0 is never used */
	uint32_t n, cap;   /* slots used so far; slots allocated */
	uint32_t free;     /* the first free one; 0: none */
};

uint32_t slot_take(struct slots *, void *what, bool watch); /* 0: no memory */
void slot_give_back(struct slots *, uint32_t slot);
void slots_free(struct slots *);

static inline uint64_t
slot_key(const struct slots *t, uint32_t slot)
{
	return ((uint64_t)t->slot[slot].generation << 32 | slot);
}

/* The slot with this key.  NULL: the slot was given back since the key was made. */
static inline const struct slot *
slot_find(const struct slots *t, uint64_t key)
{
	const struct slot *s = &t->slot[(uint32_t)key];

	return (s->what != NULL && s->generation == key >> 32 ? s : NULL);
}

#endif
