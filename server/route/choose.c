/* server/route/choose.c -- see choose.h */
#include "server/route/choose.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/arena.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/handler/cgi.h"
#include "server/handler/handler.h"
#include "server/module/error_handler.h"
#include "server/module/module.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/request/told.h"
#include "server/route/sites.h"
#include "server/route/counters.h"
#include "server/worker/base.h"
#include "wire/urlpath.h"

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
		count(w->counts.route, sets_evicted);
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

/* ---------------------------------------------------------------- conditions */

static const char no_memory[] = "no memory";
static const char no_place[] = "its path has no place in the file system";

static const char *
condition_failed(struct request *r)
{
	char where[PATH_MAX + 16];
	uint32_t line;
	const char *file = conf_view_failed(r->worker->view, &line);

	if (file == NULL)
		return ("no memory, or the settings that apply to this request cannot be used");
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

/* NULL, or why the request gets 500.  $PHYSICAL["path"] is known once the document root is;
 * exists: so is $PHYSICAL["existing-path"]. */
static const char *
match_all(struct request *r, bool exists)
{
	char remote[64];
	struct conf_input in;
	const char *why = NULL;

	if (!route_input(r, &in, remote))
		return (no_memory);
	if (!exists)
		why = match(r, &in);
	if (why != NULL || !r->worker->physical)
		return (why);
	if (!exists && route_find_place(r) != 0)
		return (NULL); /* the next pass finds the reason again and refuses the request */
	in.path = arena_join(&r->arena, r->place.dir, r->place.path);
	if (exists)
		in.existing_path = in.path;
	if (exists && r->script_len != 0)
		in.existing_path.n = r->place.dir.n + r->script_len;
	return (in.path.p != NULL ? match(r, &in) : no_memory);
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

/* ---------------------------------------------------------------- who answers */

static const struct handler *
handler_of(const struct request *r)
{
	if (request_awaits_authorizer(r))
		return (&handler_authorize);
	if (status_is_at(r))
		return (&handler_status);
	if (r->site->upstream != NULL)
		return (&handler_proxy);
	if (r->conf->cgi_assign.n != 0 && cgi_is_script(r))
		return (&handler_cgi);
	if (r->in.left != 0 && ((error_handler_is_set(r) && r->refused.status == 0) ||
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

/* 0, or the status of a refusal. */
static int
meet_modules(struct request *r, const struct handler **handler, const char **why)
{
	int status = 0;

	*handler = r->site->modules.nroute != 0 ? modules_route(r) : NULL;
	if (*handler != NULL)
		return (0);
	status = route_find_place(r);
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
	/* A URL that goes to an application, whether the file exists or not, has no script.  With
	 * the name of the file /upload/image.jpg the URL /upload/image.jpg/x.php would run an
	 * image. */
	if (by_url != NULL && r->site->upstream == by_url)
		r->script_len = 0;
	if (r->conf != known) /* auth.require of a block of existing files counts, too */
		return (meet_modules(r, handler, why));
	status = route_find_place(r);
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
