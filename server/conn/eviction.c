/* server/conn/eviction.c -- see eviction.h */
#include "server/conn/eviction.h"

#include <stdlib.h>
#include <string.h>

struct eviction_addr {
	struct client_addr addr;
	struct eviction_addr *chain;
	struct list by_n, by_bytes;      /* links of the lists in struct eviction */
	struct list silent, heads, busy; /* members */
	unsigned n;                      /* silent and heads */
	unsigned all;
	uint64_t bytes;
};

void
eviction_init(struct eviction *r)
{
	unsigned i;

	memset(r, 0, sizeof(*r));
	list_init(&r->idle);
	list_init(&r->ended);
	for (i = 0; i < EVICT_COUNTS; i++)
		list_init(&r->by_n[i]);
	for (i = 0; i < EVICT_CLASSES; i++)
		list_init(&r->by_bytes[i]);
}

/* ---- addresses */

static struct eviction_addr **
place(struct eviction *r, struct client_addr a)
{
	struct eviction_addr **pp = &r->bucket[client_addr_hash(a) % EVICT_BUCKETS];

	while (*pp != NULL && !client_addr_same((*pp)->addr, a))
		pp = &(*pp)->chain;
	return (pp);
}

static struct eviction_addr *
addr_get(struct eviction *r, struct client_addr a)
{
	struct eviction_addr **pp = place(r, a), *ra = *pp;

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
addr_free(struct eviction *r, struct eviction_addr *ra)
{
	*place(r, ra->addr) = ra->chain;
	free(ra);
}

static unsigned
bytes_class(uint64_t bytes)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(bytes);

	return (bits < EVICT_CLASSES ? bits : EVICT_CLASSES - 1);
}

/* The counts of the address change to n connections and these bytes: moves it to the matching
 * lists. */
static void
addr_moved(struct eviction *r, struct eviction_addr *ra, unsigned n, uint64_t bytes)
{
	unsigned at = n < EVICT_COUNTS ? n : EVICT_COUNTS - 1;

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
eviction_join(struct eviction *r, struct eviction_member *m, struct client_addr a)
{
	struct eviction_addr *ra = addr_get(r, a);

	*m = (struct eviction_member){ .from = ra };
	if (ra == NULL)
		return;
	r->all++;
	ra->all++;
	/* When every place is taken, an address with more than half has been `most` since its last
	 * connection. */
	if (2 * ra->all > r->all)
		r->most = ra;
}

struct client_addr
eviction_address(const struct eviction_member *m)
{
	return (m->from != NULL ? m->from->addr : (struct client_addr){ 0, 0 });
}

void
eviction_leave(struct eviction *r, struct eviction_member *m)
{
	struct eviction_addr *ra = m->from;

	if (ra == NULL)
		return;
	eviction_set(r, m, EVICT_NONE, 0);
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
	return (kind == EVICT_SILENT || kind == EVICT_HEAD);
}

static void
unlist(struct eviction *r, struct eviction_member *m)
{
	struct eviction_addr *ra = m->from;

	if (m->kind == EVICT_NONE)
		return;
	list_del(&m->link);
	r->n -= m->kind != EVICT_BUSY;
	if (has_no_request(m->kind))
		addr_moved(r, ra, ra->n - 1, ra->bytes - m->bytes);
	m->bytes = 0;
	m->kind = EVICT_NONE;
}

static struct list *
list_for(struct eviction *r, struct eviction_addr *ra, enum eviction_kind kind)
{
	switch (kind) {
	case EVICT_IDLE: return (&r->idle);
	case EVICT_ENDED: return (&r->ended);
	case EVICT_SILENT: return (&ra->silent);
	case EVICT_HEAD: return (&ra->heads);
	default: return (&ra->busy);
	}
}

static void
enlist(struct eviction *r, struct eviction_member *m, enum eviction_kind kind, uint32_t bytes)
{
	struct eviction_addr *ra = m->from;

	m->kind = (uint8_t)kind;
	m->bytes = kind == EVICT_HEAD ? bytes : 0;
	list_add_tail(list_for(r, ra, kind), &m->link);
	r->n += kind != EVICT_BUSY;
	if (has_no_request(kind))
		addr_moved(r, ra, ra->n + 1, ra->bytes + m->bytes);
}

void
eviction_set(struct eviction *r, struct eviction_member *m, enum eviction_kind kind, uint32_t bytes)
{
	if (m->from == NULL)
		return;
	if (kind == m->kind && kind == EVICT_HEAD) { /* its age counts from its first byte */
		addr_moved(r, m->from, m->from->n, m->from->bytes - m->bytes + bytes);
		m->bytes = bytes;
	} else if (kind != m->kind) {
		unlist(r, m);
		if (kind != EVICT_NONE)
			enlist(r, m, kind, bytes);
	}
}

/* ---- choosing a connection */

static struct eviction_member *
first(struct list *l)
{
	return (list_empty(l) ? NULL : list_entry(l->next, struct eviction_member, link));
}

struct eviction_member *
eviction_next(struct eviction *r)
{
	struct eviction_addr *ra;

	if (!list_empty(&r->idle))
		return (first(&r->idle));
	if (!list_empty(&r->ended))
		return (first(&r->ended));
	if (r->top == 0)
		return (NULL);
	ra = list_entry(r->by_n[r->top].next, struct eviction_addr, by_n);
	return (first(list_empty(&ra->silent) ? &ra->heads : &ra->silent));
}

struct eviction_member *
eviction_next_head(struct eviction *r)
{
	unsigned i;

	for (i = EVICT_CLASSES - 1; i > 0; i--)
		if (!list_empty(&r->by_bytes[i]))
			return (
			    first(&list_entry(r->by_bytes[i].next, struct eviction_addr, by_bytes)
				       ->heads));
	return (NULL);
}

bool
eviction_has_majority(const struct eviction *r)
{
	const struct eviction_addr *ra = r->most;

	return (
	    ra != NULL && ra->addr.host != 0 && ra->all >= EVICT_MAJORITY && 2 * ra->all > r->all);
}

bool
eviction_is_majority(const struct eviction *r, struct client_addr a)
{
	return (eviction_has_majority(r) && client_addr_same(r->most->addr, a));
}

struct list *
eviction_busy(struct eviction *r)
{
	return (eviction_has_majority(r) ? &r->most->busy : NULL);
}

struct eviction_member *
eviction_next_busy(struct eviction *r)
{
	return (eviction_has_majority(r) ? first(&r->most->busy) : NULL);
}
