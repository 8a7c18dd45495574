/* server/request/request.c -- see request.h */
#include "server/request/request.h"

#define ZEROED offsetof(struct request, zeroed)

void
request_reset(struct request *r)
{
	arena_reset(&r->arena);
	request_drop_spools(r);
	memset((char *)r + ZEROED, 0, sizeof(*r) - ZEROED);
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
