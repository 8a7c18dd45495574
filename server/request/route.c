/* server/request/route.c -- see route.h */
#include "server/request/route.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/log.h"
#include "base/must.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/handler/handler.h"
#include "server/request/request.h"
#include "server/request/counters.h"
#include "wire/urlpath.h"
#include "server/request/client.h"
#include "server/handler/cgi.h"
#include "server/module/error_handler.h"
#include "server/module/module.h"
#include "server/worker/base.h"

void
request_use(struct request *r, const struct conf *conf)
{
	if (conf != NULL)
		conf_hold(conf);
	if (r->conf != NULL)
		conf_release(r->worker->view, r->conf);
	r->conf = conf;
	r->site = conf != NULL ? conf->derived : NULL;
}

/* ---------------------------------------------------------------- conditions */

static struct text
or_empty(struct text t)
{
	return (t.p != NULL ? t : (struct text){ "", 0 });
}

void
route_undecided(struct request *r, const char *what, struct text where)
{
	struct worker_base *w = r->worker;

	count(w->counts.request, match_failed);
	log_limited(1, LOG_ERROR, conn_id(r), "match.failed", conn_client(r), LF_STR("in", what),
	    LF_TEXT("at", where),
	    LF_STR("why", "the regular expression took too long or too much memory for this "
			  "request, which is refused"),
	    LF_STR("do", "write a pattern without repetitions within repetitions"));
}

bool
route_joined(struct request *r, struct text name, const char *sep, struct text *all)
{
	const struct http_request *h = &r->http;
	struct buf b;
	size_t i, n = 0;

	*all = TEXT_NONE;
	buf_init(&b, 0);
	for (i = 0; i < h->nheaders; i++) {
		if (!text_ieq(h->headers[i].name, name))
			continue;
		if (n != 0 && h->headers[i].value.n == 0)
			continue;
		if (n == 0 || all->n == 0) { /* no separator after an empty value */
			*all = h->headers[i].value;
			n = 1;
			continue;
		}
		if (++n == 2)
			buf_text(&b, *all);
		buf_str(&b, sep);
		buf_text(&b, h->headers[i].value);
	}
	if (n > 1)
		*all = arena_take(&r->arena, &b);
	return (n < 2 || all->p != NULL);
}

/* The value as conditions see it: a missing field is empty.  .p NULL: no memory. */
static struct text
joined(struct request *r, struct text name, const char *sep)
{
	struct text all;

	return (route_joined(r, name, sep, &all) ? or_empty(all) : TEXT_NONE);
}

static struct text
field(struct request *r, enum http_known id)
{
	if ((r->http.repeated & 1u << id) == 0)
		return (or_empty(r->http.known[id]));
	return (joined(r, text_of(http1_name(id)), id == HH_COOKIE ? "; " : ", "));
}

/* The headers that conditions compare.  False: no memory. */
static bool
headers_of(struct request *r, struct conf_input *in)
{
	const struct config *config = r->worker->conf.config;
	size_t i, n = r->worker->nheaders;
	struct text *v;

	if (n == 0)
		return (true);
	in->headers = v = arena_get(&r->arena, n * sizeof(*v));
	for (i = 0; v != NULL && i < n; i++) {
		v[i] = joined(r, config_header(config, i), ", ");
		if (v[i].p == NULL)
			return (false);
	}
	return (v != NULL);
}

/* Decodes unnecessary escapes: "%61" is another spelling of "a". */
static struct text
query(struct request *r)
{
	struct text q = or_empty(r->http.query);
	char *p;

	if (memchr(q.p, '%', q.n) == NULL)
		return (q);
	p = arena_get(&r->arena, q.n);
	return (p != NULL ? (struct text){ p, urlpath_plain(q, p) } : TEXT_NONE);
}

/* False: no memory.  A condition must not be decided without its field. */
bool
route_input(struct request *r, struct conf_input *in, char remote[64])
{
	*in = (struct conf_input){
		.socket = conn_listener(r),
		.scheme = conn_scheme(r),
		.host = or_empty(r->http.host),
		.url = request_path(r),
		.query = query(r),
		.referer = field(r, HH_REFERER),
		.useragent = field(r, HH_USER_AGENT),
		.cookie = field(r, HH_COOKIE),
		.remoteip = conn_remote(r, remote),
		.method = r->http.method,
	};
	return (in->query.p != NULL && in->referer.p != NULL && in->useragent.p != NULL &&
		in->cookie.p != NULL && headers_of(r, in));
}

/* 0, or the status of a refusal */
int
route_find_place(struct request *r)
{
	r->place =
	    (struct place){ r->site->docroot, TEXT_NONE, r->site->docroot_dir, request_path(r) };
	return (r->site->modules.nplace != 0 ? modules_place(r) : 0);
}

int
route_place(struct request *r, struct text path, struct place *to)
{
	const struct place place = r->place;
	const struct text own = request_path(r);
	int status;

	r->path = (char *)path.p;
	r->path_len = path.n;
	status = route_find_place(r);
	*to = r->place;
	r->place = place;
	r->path = (char *)own.p;
	r->path_len = own.n;
	return (status);
}

struct text
place_name(struct request *r, const struct place *at, struct text path)
{
	if (at->below.n == 0)
		return ((struct text){ path.p + 1, path.n - 1 });
	return (arena_join(&r->arena, at->below, path));
}

struct text
route_without_params(struct request *r)
{
	struct text path = request_path(r);
	char *p = arena_get(&r->arena, path.n + 1);
	bool cut = false;
	size_t i, n = 0;

	if (p == NULL)
		return (TEXT_NONE);
	for (i = 0; i < path.n; i++) {
		cut = path.p[i] == ';' || (cut && path.p[i] != '/');
		if (!cut)
			p[n++] = path.p[i];
	}
	p[n] = '\0';
	return ((struct text){ p, n });
}

bool
route_asks_index(const struct request *r)
{
	return (!r->worker->plain || r->site->modules.nroute != 0 || r->conf->cgi_assign.n != 0);
}

static bool
is_a_loop(struct request *r)
{
	if (r->reroutes++ < REROUTES_MAX)
		return (false);
	log_limited(1, LOG_ERROR, conn_id(r), "route.loop", conn_client(r),
	    LF_TEXT("url", r->http.target), LF_TEXT("path", request_path(r)),
	    LF_U64("limit", REROUTES_MAX),
	    LF_STR("why", "the request was routed again too often; the client gets 500"),
	    LF_STR("do", "check index-file.names and what applications answer"));
	return (true);
}

bool
route_again(struct request *r, const struct route_change *to)
{
	r->changes++;
	if (to->target.p == NULL && is_a_loop(r))
		return (false);
	r->target = to->target.n != 0 ? to->target : TEXT_NONE;
	r->by_index = false;
	if (to->path.p != NULL) {
		must(to->path.n != 0 && to->path.p[0] == '/' && to->path.p[to->path.n] == '\0');
		r->path = (char *)to->path.p;
		r->path_len = to->path.n;
	}
	must(!r->head_lent || (to->query.p == NULL && to->host.p == NULL));
	if (to->query.p != NULL)
		r->http.query = to->query;
	if (to->host.p != NULL) {
		r->http.host = to->host;
		r->host_changed = true;
	}
	return (true);
}

bool
route_captures(struct request *r, unsigned block, struct text cap[MATCH_CAPTURES], bool *decoded)
{
	char *remote = arena_get(&r->arena, 64);
	struct conf_input in;

	if (block == 0 || remote == NULL || !route_input(r, &in, remote))
		return (false);
	if (r->worker->physical && route_find_place(r) == 0)
		in.path = arena_join(&r->arena, r->place.dir, r->place.path);
	return (conf_view_capture(r->worker->view, block, &in, cap, decoded));
}
