/* server/conn/room.c -- see room.h */
#include "server/conn/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"

struct room_addr {
	struct client_addr addr;
	struct room_addr *chain;
	struct list by_n, by_bytes; /* in lists of the room */
	struct list silent, heads, busy; /* members */
	unsigned n;                 /* silent and heads */
	unsigned all;
	uint64_t bytes;
};

void
room_init(struct room *r)
{
	unsigned i;

	memset(r, 0, sizeof(*r));
	list_init(&r->idle);
	for (i = 0; i < ROOM_COUNTS; i++)
		list_init(&r->by_n[i]);
	for (i = 0; i < ROOM_CLASSES; i++)
		list_init(&r->by_bytes[i]);
}

/* ---- addresses */

static struct room_addr **
place(struct room *r, struct client_addr a)
{
	struct room_addr **pp = &r->bucket[client_addr_hash(a) % ROOM_BUCKETS];

	while (*pp != NULL && !client_addr_same((*pp)->addr, a))
		pp = &(*pp)->chain;
	return (pp);
}

static struct room_addr *
addr_get(struct room *r, struct client_addr a)
{
	struct room_addr **pp = place(r, a), *ra = *pp;

	if (ra != NULL)
		return (ra);
	ra = calloc(1, sizeof(*ra));
	if (ra == NULL)
		return (NULL);
	ra->addr = a;
	list_init(&ra->by_n);
	list_init(&ra->by_bytes);
	list_init(&ra->silent);
	list_init(&ra->heads);
	list_init(&ra->busy);
	*pp = ra;
	return (ra);
}

static void
addr_free(struct room *r, struct room_addr *ra)
{
	*place(r, ra->addr) = ra->chain;
	free(ra);
}

static unsigned
bytes_class(uint64_t bytes)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(bytes);

	return (bits < ROOM_CLASSES ? bits : ROOM_CLASSES - 1);
}

/* It holds other numbers than before: into the lists that fit. */
static void
addr_moved(struct room *r, struct room_addr *ra, unsigned n, uint64_t bytes)
{
	unsigned at = n < ROOM_COUNTS ? n : ROOM_COUNTS - 1;

	if (n != ra->n) {
		list_del(&ra->by_n);
		if (n != 0)
			list_add_tail(&r->by_n[at], &ra->by_n);
		if (at > r->top)
			r->top = at;
		while (r->top > 0 && list_empty(&r->by_n[r->top]))
			r->top--;
	}
	if (bytes == 0 || ra->bytes == 0 || bytes_class(bytes) != bytes_class(ra->bytes)) {
		list_del(&ra->by_bytes);
		if (bytes != 0)
			list_add_tail(&r->by_bytes[bytes_class(bytes)], &ra->by_bytes);
	}
	r->bytes = r->bytes - ra->bytes + bytes;
	ra->n = n;
	ra->bytes = bytes;
}

/* ---- members */

void
room_join(struct room *r, struct room_member *m, struct client_addr a)
{
	struct room_addr *ra = addr_get(r, a);

	*m = (struct room_member){.from = ra};
	if (ra == NULL)
		return;
	r->all++;
	ra->all++;
	/* At a time when every place is taken, an address with more than half has had it when it came last. */
	if (2 * ra->all > r->all)
		r->most = ra;
}

void
room_leave(struct room *r, struct room_member *m)
{
	struct room_addr *ra = m->from;

	if (ra == NULL)
		return;
	room_set(r, m, ROOM_NONE, 0);
	m->from = NULL;
	r->all--;
	if (--ra->all > 0)
		return;
	if (r->most == ra)
		r->most = NULL;
	addr_free(r, ra);
}

static bool
has_no_request(unsigned kind)
{
	return (kind == ROOM_SILENT || kind == ROOM_HEAD);
}

static void
unlist(struct room *r, struct room_member *m)
{
	struct room_addr *ra = m->from;

	if (m->kind == ROOM_NONE)
		return;
	list_del(&m->link);
	r->n -= m->kind != ROOM_BUSY;
	if (has_no_request(m->kind))
		addr_moved(r, ra, ra->n - 1, ra->bytes - m->bytes);
	m->bytes = 0;
	m->kind = ROOM_NONE;
}

static struct list *
list_for(struct room *r, struct room_addr *ra, enum room_kind kind)
{
	switch (kind) {
	case ROOM_IDLE:
		return (&r->idle);
	case ROOM_SILENT:
		return (&ra->silent);
	case ROOM_HEAD:
		return (&ra->heads);
	default:
		return (&ra->busy);
	}
}

static void
enlist(struct room *r, struct room_member *m, enum room_kind kind, uint32_t bytes)
{
	struct room_addr *ra = m->from;

	m->kind = (uint8_t)kind;
	m->bytes = kind == ROOM_HEAD ? bytes : 0;
	list_add_tail(list_for(r, ra, kind), &m->link);
	r->n += kind != ROOM_BUSY;
	if (has_no_request(kind))
		addr_moved(r, ra, ra->n + 1, ra->bytes + m->bytes);
}

void
room_set(struct room *r, struct room_member *m, enum room_kind kind, uint32_t bytes)
{
	if (m->from == NULL)
		return;
	if (kind == m->kind && kind == ROOM_HEAD) { /* its age is that of its first byte */
		addr_moved(r, m->from, m->from->n, m->from->bytes - m->bytes + bytes);
		m->bytes = bytes;
	} else if (kind != m->kind) {
		unlist(r, m);
		if (kind != ROOM_NONE)
			enlist(r, m, kind, bytes);
	}
}

/* ---- who goes */

static struct room_member *
first(struct list *l)
{
	return (list_empty(l) ? NULL : list_entry(l->next, struct room_member, link));
}

struct room_member *
room_next(struct room *r)
{
	struct room_addr *ra;

	if (!list_empty(&r->idle))
		return (first(&r->idle));
	if (r->top == 0)
		return (NULL);
	ra = list_entry(r->by_n[r->top].next, struct room_addr, by_n);
	return (first(list_empty(&ra->silent) ? &ra->heads : &ra->silent));
}

struct room_member *
room_next_head(struct room *r)
{
	unsigned i;

	for (i = ROOM_CLASSES - 1; i > 0; i--)
		if (!list_empty(&r->by_bytes[i]))
			return (first(&list_entry(r->by_bytes[i].next, struct room_addr, by_bytes)->heads));
	return (NULL);
}

bool
room_has_majority(const struct room *r)
{
	const struct room_addr *ra = r->most;

	return (ra != NULL && ra->addr.host != 0 && ra->all >= ROOM_MAJORITY && 2 * ra->all > r->all);
}

bool
room_is_majority(const struct room *r, struct client_addr a)
{
	return (room_has_majority(r) && client_addr_same(r->most->addr, a));
}

struct room_member *
room_next_busy(struct room *r)
{
	return (room_has_majority(r) ? first(&r->most->busy) : NULL);
}
