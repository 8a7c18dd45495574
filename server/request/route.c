/* server/request/route.c -- see route.h */
#include "server/request/route.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/counter.h"
#include "base/log.h"
#include "base/must.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/handler/handler.h"
#include "server/request/request.h"
#include "server/status/worker_counters.h"
#include "wire/urlpath.h"
#include "server/request/client.h"
#include "server/handler/cgi.h"
#include "server/module/error_handler.h"
#include "server/module/module.h"
#include "server/worker/base.h"

/* ---------------------------------------------------------------- values */

static int
derive(struct conf *conf, void *arg)
{
	struct site *s;
	int err = site_new(arg, conf, &s);

	if (err == 0)
		conf->derived = s;
	return (err);
}

static void
undo(struct conf *conf, void *arg)
{
	struct worker_base *w = arg;

	if (!w->stopping)
		count(&w->counters->events, sets_evicted);
	if (conf->derived != NULL)
		site_free(conf->derived);
	conf->derived = NULL;
}

int
route_start(struct worker_base *w)
{
	static const struct conf_input nothing;

	w->view = conf_view_new(w->conf.config, derive, undo, w);
	if (w->view == NULL)
		return (-ENOMEM);
	w->plain = !config_has_conditions(w->conf.config);
	w->physical = config_uses_physical(w->conf.config);
	while (config_header(w->conf.config, w->nheaders).p != NULL)
		w->nheaders++;
	w->global = conf_view_match(w->view, &nothing);
	if (w->global == NULL)
		return (-EINVAL);
	conf_hold(w->global);
	w->log_states = w->global->log_state;
	return (0);
}

void
route_end(struct worker_base *w)
{
	if (w->global != NULL)
		conf_release(w->view, w->global);
	w->global = NULL;
	conf_view_free(w->view);
}

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

	count(&w->counters->events, match_failed);
	log_limited(1, LOG_ERROR, conn_id(r), "match.failed", conn_client(r), LF_STR("in", what),
	    LF_TEXT("at", where),
	    LF_STR("why", "the regular expression took too long or too much memory for this "
			  "request, which is refused"),
	    LF_STR("do", "write a pattern without repetitions within repetitions"));
}

static const char no_memory[] = "no memory";
static const char no_place[] = "its path has no place in the file system";

static const char *
condition_failed(struct request *r)
{
	char where[PATH_MAX + 16];
	uint32_t line;
	const char *file = conf_view_failed(r->worker->view, &line);

	if (file == NULL)
		return ("no memory, or the settings for it cannot be used");
	snprintf(where, sizeof(where), "%s:%u", file, line);
	route_undecided(r, "condition", text_of(where));
	return ("a condition could not be decided, see match.failed");
}

/* NULL, or why the request gets 500. */
static const char *
match(struct request *r, struct conf_input *in)
{
	const struct conf *conf = conf_view_match(r->worker->view, in);

	if (conf == NULL)
		return (condition_failed(r));
	request_use(r, conf);
	return (NULL);
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
		if (n++ == 0) {
			*all = h->headers[i].value;
			continue;
		}
		if (n == 2)
			buf_text(&b, *all);
		buf_str(&b, sep);
		buf_text(&b, h->headers[i].value);
	}
	if (n > 1)
		*all = arena_take(&r->arena, &b);
	return (n < 2 || all->p != NULL);
}

/* As conditions see it: a missing field is empty.  .p NULL: no memory. */
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
static bool
input_of(struct request *r, struct conf_input *in, char remote[64])
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
static int
find_place(struct request *r)
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
	status = find_place(r);
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

/* NULL, or why the request gets 500.  $PHYSICAL["path"] is known once the document root is;
 * exists: so is $PHYSICAL["existing-path"]. */
static const char *
match_all(struct request *r, bool exists)
{
	char remote[64];
	struct conf_input in;
	const char *why = NULL;

	if (!input_of(r, &in, remote))
		return (no_memory);
	if (!exists)
		why = match(r, &in);
	if (why != NULL || !r->worker->physical)
		return (why);
	if (!exists && find_place(r) != 0)
		return (NULL); /* what refuses it is found again, and then answered with */
	in.path = arena_join(&r->arena, r->place.dir, r->place.path);
	if (exists)
		in.existing_path = in.path;
	if (exists && r->script_len != 0)
		in.existing_path.n = r->place.dir.n + r->script_len;
	return (in.path.p != NULL ? match(r, &in) : no_memory);
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

/* As match_all(), for the path that the application looks for: a servlet container serves
 * "/private/a" for "/private;x/a".  A block without an application does not count, because "/a;x"
 * is not a file "/a". */
static const char *
match_seen(struct request *r, bool exists)
{
	const char *why = match_all(r, exists);
	struct text path = request_path(r), seen;

	if (why != NULL || r->site->upstream == NULL || memchr(path.p, ';', path.n) == NULL ||
	    !upstream_cuts_params(r->site->upstream))
		return (why);
	seen = route_without_params(r);
	if (seen.p == NULL)
		return (no_memory);
	r->path = (char *)seen.p;
	r->path_len = seen.n;
	why = match_all(r, exists);
	r->path = (char *)path.p;
	r->path_len = path.n;
	if (why == NULL && r->site->upstream == NULL && r->site->authorizer == NULL)
		why = match_all(r, exists);
	return (why);
}

bool
route_asks_index(const struct request *r)
{
	return (!r->worker->plain || r->site->modules.nroute != 0 || r->conf->cgi_assign.n != 0);
}

static const struct handler *
handler_of(const struct request *r)
{
	if (r->site->authorizer != NULL && authorize_is_due(r))
		return (&handler_authorize);
	if (status_is_at(r))
		return (&handler_status);
	if (r->site->upstream != NULL)
		return (&handler_proxy);
	if (r->conf->cgi_assign.n != 0 && cgi_is_script(r))
		return (&handler_cgi);
	if (r->in.left != 0 && ((error_handler_is_set(r) && r->error_status == 0) ||
				   (route_asks_index(r) && r->path[r->path_len - 1] == '/')))
		return (&handler_index);
	return (&handler_static);
}

/* 0, 400 or 500 */
static int
clean_path(struct request *r)
{
	unsigned how = r->conf->url_checks;
	int n;

	r->path = arena_get(&r->arena, r->http.path.n + 1 + (how != 0 ? r->http.query.n : 0));
	if (r->path == NULL)
		return (500);
	if (r->http.path.n == 1 && r->http.path.p[0] == '*') { /* OPTIONS * */
		memcpy(r->path, "/", 2);
		n = 1;
	} else {
		n = how == 0 ? urlpath_clean(r->http.path, r->path)
			     : urlpath_clean_as(r->http.path, r->http.query, how, r->path);
		if (n < 0)
			return (400);
	}
	r->path_len = (size_t)n;
	return (0);
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

	if (block == 0 || remote == NULL || !input_of(r, &in, remote))
		return (false);
	if (r->worker->physical && find_place(r) == 0)
		in.path = arena_join(&r->arena, r->place.dir, r->place.path);
	return (conf_view_capture(r->worker->view, block, &in, cap, decoded));
}

/* 0, or the status of a refusal. */
static int
meet_modules(struct request *r, const struct handler **handler, const char **why)
{
	int status = 0;

	*handler = r->site->modules.nroute != 0 ? modules_route(r) : NULL;
	if (*handler != NULL)
		return (0);
	status = find_place(r);
	if (status != 0) {
		*why = no_place;
		return (status);
	}
	*handler = r->site->modules.nplaced != 0 ? modules_placed(r) : NULL;
	if (*handler == NULL)
		*handler = handler_of(r);
	return (0);
}

int
route_existing(struct request *r, const struct handler **handler, const char **why)
{
	const struct upstream *by_url = r->site->upstream;
	const struct conf *known = r->conf;
	int status;

	*why = match_seen(r, true);
	if (*why != NULL)
		return (500);
	/* A URL that goes to an application, whatever exists, has no script.  With the name of the
	 * file /upload/image.jpg the URL /upload/image.jpg/x.php would run an image. */
	if (by_url != NULL && r->site->upstream == by_url)
		r->script_len = 0;
	if (r->conf != known) /* auth.require of a block of existing files counts, too */
		return (meet_modules(r, handler, why));
	status = find_place(r);
	if (status != 0)
		*why = no_place;
	else
		*handler = handler_of(r);
	return (status);
}

int
route(struct request *r, const struct handler **handler, const char **why)
{
	int status = 0;

	request_use(r, r->worker->global);
	r->script_len = 0;
	if (r->path == NULL)
		status = clean_path(r);
	if (status != 0) {
		*why = status == 500 ? no_memory : "its path leaves the root, or cannot be decoded";
		return (status);
	}
	if (!r->worker->plain) {
		*why = match_seen(r, false);
		if (*why != NULL)
			return (500);
	}
	return (meet_modules(r, handler, why));
}
