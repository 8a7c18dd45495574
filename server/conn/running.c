/* server/conn/running.c -- the connections of a worker that have a request, as rows of status
 * pages. */
#include <stdio.h>
#include <stdlib.h>

#include "io/sender.h"
#include "server/conn/impl.h"
#include "server/request/fault.h"
#include "server/request/request.h"
#include "server/status/running.h"

struct candidate {
	uint64_t since_ns;
	const struct conn *conn;
};

static int
by_age(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns);
}

static bool
is_running(const struct conn *c)
{
	return (c->r != NULL && c->r->path != NULL && !c->closing && c->state != &st_read_head &&
		c->state != &st_linger && c->state != &st_close);
}

static void
copy_text(char *dst, size_t size, struct text t)
{
	size_t n = t.n < size - 1 ? t.n : size - 1;

	if (n > 0)
		memcpy(dst, t.p, n);
	dst[n] = '\0';
}

/* Once the reply is on its way, the head may be gone: see conn_send().  The path is kept. */
static void
fill_request(struct running_row *row, const struct request *r)
{
	bool has_head = !r->head_lent && r->head.p != NULL;
	struct text url = has_head ? r->http.target : request_path(r);

	copy_text(row->method, sizeof(row->method), has_head ? r->http.method : TEXT("-"));
	copy_text(row->url, sizeof(row->url), url);
	row->cut = url.n >= sizeof(row->url);
}

/* What a file waits for: its look-up and opening, the disk, or the client. */
static void
fill_file(struct running_row *row, const struct conn *c)
{
	const struct request *r = c->r;
	bool opens = !c->sending && r->wait.lookup != NULL;

	row->state = opens ? "open" : c->sending ? st_send.name : c->state->name;
	if (r->scope == NULL || r->lookup.p == NULL || (!opens && !c->sending))
		return;
	fault_device(r, row->device);
	if (c->sending && sender_waited_for_disk(&r->sender))
		row->state = "read";
}

static void
fill_row(struct running_row *row, const struct conn *c)
{
	const struct request *r = c->r;
	char addr[64];
	const char *proxied = c->state == &st_handle || c->sent != NULL ? proxy_state(r) : NULL;

	fill_request(row, r);
	row->since_ns = r->started_ns;
	row->sent = r->sent + (c->sending ? r->sender.sent : 0);
	if (proxied != NULL)
		row->state = proxied;
	else
		fill_file(row, c);
	row->backend = proxy_backend(r);
	snprintf(row->id, sizeof(row->id), "c%u.%u", c->id, c->nreq);
	copy_text(row->client, sizeof(row->client), conn_remote(r, addr));
}

static size_t
running_of(const struct list *conns, struct candidate *v)
{
	const struct conn *c;
	size_t n = 0;

	list_each(c, conns, link)
		if (is_running(c))
			v[n++] = (struct candidate){ c->r->started_ns, c };
	return (n);
}

static size_t
candidates(struct worker *w, struct candidate *v)
{
	const struct conn *c;
	size_t n = 0;

	list_each(c, &w->conns, link) {
		if (c->h2 != NULL)
			n += running_of(&c->streams, v + n);
	}
	return (n + running_of(&w->conns, v + n));
}

size_t
conn_running(struct worker *w, struct running_row *row, size_t max)
{
	struct candidate *v = calloc(w->nconns + w->nstreams + 1, sizeof(*v));
	size_t i, n;

	if (v == NULL)
		return (0);
	n = candidates(w, v);
	qsort(v, n, sizeof(*v), by_age);
	for (i = 0; i < n && i < max; i++)
		fill_row(&row[i], v[i].conn);
	free(v);
	return (n);
}
