/* server/conn/requests.c -- see requests.h */
#include "server/conn/requests.h"

#include <stdlib.h>

#include "files/hold/hold.h"
#include "server/module/module.h"
#include "server/request/request.h"
#include "server/worker/worker.h"

#define KEEP_REQUESTS 256u /* recycled requests */
/* Arena of one request: heads, paths, fields for applications. */
#define REQUEST_MEMORY (256u << 10)

struct request *
requests_take(struct worker *w)
{
	struct list *l = list_pop(&w->requests);
	struct request *r;

	if (l != NULL) {
		w->nrequests--;
		return (list_entry(l, struct request, link));
	}
	r = malloc(request_bytes());
	if (r == NULL)
		return (NULL);
	memset(r, 0, request_bytes());
	r->worker = &w->base;
	list_init(&r->link);
	body_init(&r->body, w->base.io);
	/* the connection that takes the request sets the socket */
	sender_init(&r->sender, w->base.io, NULL);
	arena_init(&r->arena, r->lent, sizeof(r->lent), REQUEST_MEMORY);
	return (r);
}

void
requests_give(struct request *r)
{
	struct worker *w = container_of(r->worker, struct worker, base);

	file_lookup_cancel(&r->wait);
	modules_request_stop(r);
	body_clear(&r->body);
	arena_reset(&r->arena);
	request_drop_spools(r);
	request_use(r, NULL);
	r->conn = NULL;
	if (w->nrequests >= KEEP_REQUESTS) {
		free(r);
		return;
	}
	w->nrequests++;
	list_add_head(&w->requests, &r->link);
}

void
requests_drop(struct worker *w, unsigned keep)
{
	blocks_end(&w->streams, keep);
	for (; w->nrequests > keep; w->nrequests--)
		free(list_entry(list_pop(&w->requests), struct request, link));
}
