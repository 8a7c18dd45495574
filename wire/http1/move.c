/* wire/http1/move.c -- see http1.h */
#include "base/must.h"
#include "wire/http1/http1.h"

/* Moves a slice of the head.  Others point to literals, or into the request itself. */
static void
move(struct text *t, struct text from, const char *to)
{
	size_t at = (size_t)((uintptr_t)t->p - (uintptr_t)from.p);

	if (at < from.n)
		t->p = to + at;
}

void
http1_head_moved(struct http_request *r, struct text from, const char *to)
{
	struct text *const parts[] = { &r->line, &r->method, &r->target, &r->path, &r->query,
		&r->host };
	size_t i;

	for (i = 0; i < NELEM(parts); i++)
		move(parts[i], from, to);
	for (i = 0; i < HH_N; i++)
		move(&r->known[i], from, to);
	for (i = 0; i < r->nheaders; i++) {
		move(&r->headers[i].name, from, to);
		move(&r->headers[i].value, from, to);
	}
}
