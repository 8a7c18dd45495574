/* server/handler/proxy_fetch.c -- X-Reproxy-URL: the reply is fetched from another backend.
 *
 *   application --X-Reproxy-URL: http://host:port/path--> a block that lists host:port
 *                                                           |--GET--> one of its backends
 *   client <----------------------- its reply --------------'
 *
 * An application cannot have the server connect elsewhere, because the host and port are in the
 * configuration.  The fetched reply may not ask for another answer, so there is one hop.
 */
#include "base/arena.h"
#include "proxy-core/conf.h"
#include "proxy-core/exchange.h"
#include "server/config/resources.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/config/check/targets.h"
#include "server/handler/proxy_impl.h"
#include "base/must.h"
#include "server/request/request.h"
#include "wire/http1/http1.h"
#include "wire/urlpath.h"

/* Fields of the client that say which reply it wants.  Cookies and credentials are for the
 * application that was asked. */
static const struct text wanted[] = { TEXT("Accept"), TEXT("Accept-Encoding"),
	TEXT("Accept-Language"), TEXT("If-Match"), TEXT("If-Modified-Since"), TEXT("If-None-Match"),
	TEXT("If-Range"), TEXT("If-Unmodified-Since"), TEXT("Range"), TEXT("User-Agent") };

static bool
fill_headers(struct request *r, struct proxy_request *q)
{
	struct proxy_field *f = arena_get(&r->arena, (r->http.nheaders + 1u) * sizeof(*f));
	size_t i, n = 0;

	if (f == NULL)
		return (false);
	f[n++] = (struct proxy_field){ TEXT("Host"), q->host };
	for (i = 0; i < r->http.nheaders; i++)
		if (text_is_one_of(r->http.headers[i].name, wanted, NELEM(wanted)))
			f[n++] = (struct proxy_field){ r->http.headers[i].name,
				r->http.headers[i].value };
	q->headers = f;
	q->nheaders = n;
	return (true);
}

/* The path and query of a target; false: it leaves the root, or no memory. */
static bool
fill_path(struct request *r, struct proxy_request *q)
{
	struct text rest = q->target, path;
	char *clean = arena_get(&r->arena, q->target.n + 1);
	int n;

	if (clean == NULL || !text_next(&rest, '?', &path) || (n = urlpath_clean(path, clean)) < 1)
		return (false);
	q->path = (struct text){ clean, (size_t)n };
	q->query = rest.p != NULL ? rest : TEXT("");
	q->script_filename = arena_join(&r->arena, q->docroot, q->path);
	return (q->script_filename.p != NULL);
}

/* Turns the request for the application into the request for url, which is in the arena.  The
 * secret of that application and the variables of its authorizer are not for another backend.
 * False: it cannot be sent. */
static bool
refill(struct relay *rl, struct text url, const struct upstream *to)
{
	struct proxy_request *q = &rl->req;
	struct request *r = rl->r;

	if (!control_url(url, &q->host, &q->target))
		return (false);
	q->method = r->http.verb == HTTP_HEAD ? TEXT("HEAD") : TEXT("GET");
	q->server_name = q->host;
	q->redirect_uri = q->path_info = TEXT("");
	q->path_is_split = false;
	q->upgrade = TEXT_NONE;
	q->secret = upstream_secret(to);
	q->nvariables = 0;
	q->content_length = -1;
	q->unsized = false;
	q->safe = q->idempotent = true;
	return (fill_path(r, q) && fill_headers(r, q));
}

/* The backends of the block that lists the host and port of the URL.  NULL: there is none. */
static struct upstream *
upstream_of(struct request *r, struct text url)
{
	struct text authority, target;
	struct upstream *u;
	int block;

	if (!control_url(url, &authority, &target))
		return (NULL);
	block = targets_block(resources_targets(r->worker->conf.resources), authority);
	return (block >= 0 && proxy_upstream(r->worker, block, false, &u) == 0 ? u : NULL);
}

static int
start(struct relay *rl, struct text url)
{
	const struct exchange_conf conf = proxy_times(rl->r->conf);
	struct upstream *u = upstream_of(rl->r, url);

	if (u == NULL) {
		proxy_name_refused(rl, CONTROL_REPROXY_URL, url,
		    "expected http://HOST:PORT/PATH with a host and port of proxy-core.backends");
		return (502);
	}
	exchange_forget(&rl->ex, true); /* the exchange does not use the request any more */
	spool_drop(&rl->r->upload);
	if (!refill(rl, url, u))
		return (502);
	rl->fetched = true;
	rl->has_head = false;
	return (exchange_start(u, &rl->req, &conf, &proxy_sink, rl, &rl->ex) == 0 ? 0 : 500);
}

void
proxy_fetch(struct relay *rl, const struct proxy_reply *p, enum control c)
{
	struct request *r = rl->r;
	struct text url = arena_text(&r->arena, p->control[c]);
	int status = url.p != NULL ? start(rl, url) : 500;

	if (status == 0)
		return;
	rl->has_head = true;
	if (rl->ex != NULL)
		exchange_forget(&rl->ex, true);
	proxy_answer_error(rl, status);
}
