/* server/route.c -- see route.h */
#include "server/route.h"

#include <errno.h>

#include "base/urlpath.h"
#include "server/conn.h"
#include "server/worker.h"

static struct text
or_empty(struct text t)
{
	return (t.p != NULL ? t : (struct text){"", 0});
}

static bool
match(struct request *r, struct conf_input *in)
{
	r->conf = conf_view_match(r->worker->view, in);
	if (r->conf == NULL)
		return (false);
	r->site = r->conf->derived;
	return (r->site != NULL);
}

static struct conf_input
input_of(struct request *r, char remote[64])
{
	const struct http_request *h = &r->http;

	return ((struct conf_input){
	    .socket = conn_listener(r),
	    .scheme = TEXT("http"),
	    .host = or_empty(h->host),
	    .url = request_path(r),
	    .query = or_empty(h->query),
	    .referer = or_empty(h->known[HH_REFERER]),
	    .useragent = or_empty(h->known[HH_USER_AGENT]),
	    .cookie = or_empty(h->known[HH_COOKIE]),
	    .remoteip = conn_remote(r, remote),
	    .method = h->method,
	});
}

/* Document root and path together; .p NULL: no memory. */
static struct text
physical(struct request *r)
{
	struct text root = r->site->docroot_dir, path = request_path(r);
	char *p = arena_get(&r->arena, root.n + path.n + 1);

	if (p == NULL)
		return (TEXT_NONE);
	memcpy(p, root.p, root.n);
	memcpy(p + root.n, path.p, path.n);
	return ((struct text){p, root.n + path.n});
}

/* $PHYSICAL["path"] is known once the document root is. */
static bool
match_all(struct request *r)
{
	char remote[64];
	struct conf_input in = input_of(r, remote);

	if (!match(r, &in))
		return (false);
	if (!r->worker->physical)
		return (true);
	in.path = physical(r);
	return (in.path.p != NULL && match(r, &in));
}

static const struct handler *
handler_of(const struct request *r)
{
	if (status_is_at(r))
		return (&handler_status);
	return (r->site->upstream != NULL ? &handler_proxy : &handler_static);
}

int
route_existing(struct request *r, const struct handler **handler)
{
	char remote[64];
	struct conf_input in = input_of(r, remote);

	in.path = in.existing_path = physical(r);
	if (in.path.p == NULL || !match(r, &in))
		return (500);
	*handler = handler_of(r);
	return (0);
}

int
route(struct request *r, const struct handler **handler)
{
	int n;

	r->conf = r->worker->global;
	r->site = r->conf->derived;
	r->path = arena_get(&r->arena, r->http.path.n + 1);
	if (r->path == NULL)
		return (500);
	if (r->http.path.n == 1 && r->http.path.p[0] == '*') { /* OPTIONS * */
		memcpy(r->path, "/", 2);
		n = 1;
	} else {
		n = urlpath_clean(r->http.path, r->path);
		if (n < 0)
			return (400);
	}
	r->path_len = (size_t)n;
	if (!r->worker->plain && !match_all(r))
		return (500);
	*handler = handler_of(r);
	return (0);
}
