/* server/module/redirect.c -- url.redirect and url.redirect-code. */
#include "server/module/target.h"

#include "base/arena.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/reply/reply.h"
#include "server/request/request.h"

static const void *
key(const struct conf *c)
{
	return (c->redirect.n != 0 ? c->redirect.v : NULL);
}

static void *
make(const struct conf *c, char *err, size_t errsize)
{
	return (patterns_new(&c->redirect, err, errsize));
}

static void
drop(void *patterns)
{
	patterns_free(patterns);
}

const struct rules_kind rules_redirect = {
	.directive = "url.redirect",
	.key = key,
	.make = make,
	.free = drop,
};

static bool
is_used(const struct conf *c)
{
	return (c->redirect.n != 0);
}

struct redirect_request {
	int status;
	struct text url; /* in the arena */
};
static REQUEST_SLOT(struct redirect_request, mine);

static enum handled
moved_start(struct request *r)
{
	const struct redirect_request *m = request_slot(r, mine);

	if (r->in.left != 0)
		conn_close_after(r);
	reply_location(r, m->status, m->url);
	return (HANDLED_REPLY);
}

static const struct handler handler_moved = {
	.name = "redirect",
	.final = true,
	.before_body = true,
	.start = moved_start,
};

/* An error has no Location, as with lighttpd: 410 says that nothing is there. */
static const struct handler *
answer(struct request *r, struct text url)
{
	struct redirect_request *m = request_slot(r, mine);
	int status = (int)r->conf->redirect_code;

	if (status >= 400)
		return (module_refuses(r, status, TEXT_NONE));
	m->status = status;
	m->url = arena_text(&r->arena, url);
	return (m->url.p != NULL ? &handler_moved : module_refuses(r, 500, TEXT_NONE));
}

static const struct handler *
route_redirect(struct request *r)
{
	const struct handler *h = NULL;
	struct buf url;
	size_t rule;
	int status;

	if (!target_counts(r))
		return (NULL);
	buf_init(&url, 0);
	status = target_apply(r, r->site->rules[RULES_redirect], r->conf->redirect.block,
	    "url.redirect", &url, &rule);
	if (status != 0)
		h = module_refuses(r, status, TEXT_NONE);
	else if (url.n != 0)
		h = answer(r, buf_as_text(&url));
	buf_free(&url);
	return (h);
}

const struct module module_redirect = {
	.name = "redirect",
	.is_used = is_used,
	.route = route_redirect,
};
