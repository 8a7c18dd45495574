/* server/module/error_handler.c -- see error_handler.h */
#include "server/module/error_handler.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/request/fault.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/request/spool.h"
#include "wire/http1/http1.h"
#include "wire/urlpath.h"

struct target {
	struct text path;  /* decoded and clean */
	struct text query; /* encoded */
	char store[];
};

/* ---- the settings */

static void *
make_of(const char *url, char *err, size_t errsize)
{
	struct text rest = text_of(url), path;
	struct target *t;
	int n;

	text_next(&rest, '?', &path);
	t = calloc(1, sizeof(*t) + path.n + 1 + 3 * rest.n);
	if (t == NULL)
		return (rules_no_memory(err, errsize));
	n = urlpath_clean(path, t->store);
	if (n < 0) {
		snprintf(err, errsize, "\"%.80s\": expected a path, which begins with \"/\"", url);
		free(t);
		return (NULL);
	}
	t->path = (struct text){ t->store, (size_t)n };
	t->query.p = t->store + path.n + 1;
	t->query.n = urlpath_escape(rest, URL_OF_TARGET, t->store + path.n + 1);
	return (t);
}

static const void *
all_key(const struct conf *c)
{
	return (c->error_handler);
}

static void *
all_make(const struct conf *c, char *err, size_t errsize)
{
	return (make_of(c->error_handler, err, errsize));
}

const struct rules_kind rules_error_handler = {
	.directive = "server.error-handler",
	.key = all_key,
	.make = all_make,
	.free = free,
};

static const void *
missing_key(const struct conf *c)
{
	return (c->error_handler_404);
}

static void *
missing_make(const struct conf *c, char *err, size_t errsize)
{
	return (make_of(c->error_handler_404, err, errsize));
}

const struct rules_kind rules_error_handler_404 = {
	.directive = "server.error-handler-404",
	.key = missing_key,
	.make = missing_make,
	.free = free,
};

/* ---- a refusal */

bool
error_handler_is_set(const struct request *r)
{
	return (r->site->rules[RULES_error_handler] != NULL ||
		r->site->rules[RULES_error_handler_404] != NULL);
}

/* The error handler for this status.  NULL: none.  *keeps: the handler is that of
 * server.error-handler-404, which gets the method and the body of the request. */
static const struct target *
handler_for(const struct request *r, int status, bool *keeps)
{
	const struct target *t = r->site->rules[RULES_error_handler];

	*keeps = t == NULL;
	if (t == NULL && (status == 403 || status == 404))
		t = r->site->rules[RULES_error_handler_404];
	return (t);
}

/* The handler gets a GET without a body.  HEAD stays, because its reply has no body either. */
static void
drop_body(struct request *r)
{
	if (r->in.left != 0)
		conn_close_after(r);
	r->in.left = 0;
	spool_drop(&r->upload);
	r->http.content_length = -1;
	r->http.chunked = r->http.expect_continue = false;
	if (r->http.verb == HTTP_HEAD)
		return;
	r->http.verb = HTTP_GET;
	r->http.method = TEXT("GET");
}

/* An application has received a part of the body. */
static bool
body_is_gone(const struct request *r)
{
	return (r->in.left == 0 && (r->http.chunked || r->http.content_length > 0));
}

/* A file gets the status of the refusal.  False: no memory. */
static bool
keep_status(struct request *r, int status)
{
	struct reply_extra *x = arena_get(&r->arena, sizeof(*x));

	if (x != NULL)
		*x = (struct reply_extra){ .status = status };
	r->carried = x;
	return (x != NULL);
}

bool
error_handler_takes(struct request *r, int status)
{
	const struct target *t;
	struct route_change to;
	bool keeps;

	if (r->refused.status != 0 || status < 400 || status == 401 || r->in.streamed != 0 ||
	    (r->in.streams && r->in.left != 0))
		return (false);
	t = handler_for(r, status, &keeps);
	if (t == NULL || !request_keep(r))
		return (false);
	to = (struct route_change){
		.path = arena_text(&r->arena, t->path),
		.query = t->query,
	};
	if (to.path.p == NULL || (!keeps && !keep_status(r, status)) || !route_again(r, &to))
		return (false);
	fault_own(r, status); /* while it has its application */
	if (keeps)
		r->carried = NULL;
	if (!keeps || body_is_gone(r))
		drop_body(r);
	r->refused.status = status;
	r->refused.missing = keeps;
	r->extra = NULL;
	r->proxied = false;
	return (true);
}

static bool
is_used(const struct conf *c)
{
	return (c->error_handler != NULL || c->error_handler_404 != NULL);
}

const struct module module_error_handler = {
	.name = "error-handler",
	.is_used = is_used,
	.refused = error_handler_takes,
};
