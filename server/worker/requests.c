/* server/worker/requests.c -- what a worker lends to its connections: requests, which it recycles,
 * and what is believed of the peers of a listener.
 */
#include <stdlib.h>

#include "server/module/module.h"
#include "server/request/request.h"
#include "server/worker/worker.h"

#define KEEP_REQUESTS 256u /* recycled requests */
/* Arena of one request: heads, paths, fields for applications. */
#define REQUEST_MEMORY (256u << 10)

struct request *
worker_request(struct worker *w)
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
worker_request_back(struct request *r)
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

const struct trust *
worker_trust(const struct worker *w, const char *listener)
{
	size_t i;

	for (i = 0; i < w->base.conf.nlisteners; i++)
		if (w->base.conf.listeners[i].name == listener)
			break;
	return (w->trusts[i]);
}
