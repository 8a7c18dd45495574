/* server/request/request.c -- see request.h */
#include "server/request/request.h"

#define ZEROED offsetof(struct request, zeroed)
#define SLOTS  offsetof(struct request, slots)

size_t
request_bytes(void)
{
	return (SLOTS + SLOT_BYTES(request_slots) + SLOT_BYTES(connection_slots));
}

void
request_taken(struct request *r)
{
	memset(r->slots + SLOT_BYTES(request_slots), 0, SLOT_BYTES(connection_slots));
}

void
request_reset(struct request *r)
{
	arena_reset(&r->arena);
	request_drop_spools(r);
	memset((char *)r + ZEROED, 0, SLOTS + SLOT_BYTES(request_slots) - ZEROED);
	r->times.hot = true;
	r->sender.limit = 0;
}

bool
request_keep(struct request *r)
{
	struct text copy;

	if (!r->head_lent || r->head.n == 0)
		return (true);
	copy = arena_text(&r->arena, r->head);
	if (copy.p == NULL)
		return (false);
	http1_head_moved(&r->http, r->head, copy.p);
	r->head = copy;
	r->head_lent = false;
	return (true);
}
