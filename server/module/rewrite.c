/* server/module/rewrite.c -- url.rewrite-*: the request gets another target, and the conditions
 * are evaluated anew.
 *
 *   url.rewrite-once            -.  the first rule that matches; no rewrite follows
 *   url.rewrite, -final         -'
 *   url.rewrite-repeat          the same, but the rules are compared with the new target, too
 *   url.rewrite-if-not-file     -.  the same two, if the path is not a regular file; the
 *   -repeat-if-not-file         -'  place is asked for by a look-up
 *
 * As with lighttpd, the lists that one block sets belong together: those of an inner block replace
 * all of an outer one.
 */
#include "server/module/target.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/must.h"
#include "files/hold/hold.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"
#include "wire/urlpath.h"

#define REWRITES_MAX 100u

enum family { ANY, NOT_FILE };
#define LISTS_MAX 4

struct rewrites {
	struct patterns *patterns;
	size_t nonce; /* this many rules come first: no rewrite follows them */
	unsigned block;
};

/* ---- the rules of a block */

/* The lists of the family; those after the first *once repeat. */
static size_t
lists_of(const struct conf *c, enum family f, const struct conf_map *list[LISTS_MAX], size_t *once)
{
	if (f == NOT_FILE) {
		list[0] = &c->rewrite_not_file;
		list[1] = &c->rewrite_repeat_not_file;
		*once = 1;
		return (2);
	}
	list[0] = &c->rewrite_once;
	list[1] = &c->rewrite_plain;
	list[2] = &c->rewrite_final;
	list[3] = &c->rewrite_repeat;
	*once = 3;
	return (4);
}

/* The innermost block that sets one of them. */
static unsigned
block_of(const struct conf_map *const *list, size_t n)
{
	unsigned block = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (list[i]->block > block)
			block = list[i]->block;
	return (block);
}

static const void *
key_of(const struct conf *c, enum family f)
{
	const struct conf_map *list[LISTS_MAX];
	size_t once, i, n = lists_of(c, f, list, &once);
	unsigned block = block_of(list, n);

	for (i = 0; i < n; i++)
		if (list[i]->n != 0 && list[i]->block == block)
			return (list[i]->v);
	return (NULL);
}

static bool
can_begin(const struct conf_map *map, char *err, size_t errsize)
{
	struct text t;
	size_t i;

	for (i = 0; i < map->n; i++) {
		t = map->v[i].value;
		if (t.n == 0 || t.p[0] == '/' || t.p[0] == '$' || t.p[0] == '%')
			continue;
		snprintf(err, errsize,
		    "\"%.80s\": expected a path, which begins with \"/\"; url.redirect sends "
		    "clients to other servers",
		    t.p);
		return (false);
	}
	return (true);
}

/* One list of all rules of the block.  False: no memory. */
static bool
join(const struct conf *c, enum family f, struct conf_map *all, size_t *nonce)
{
	const struct conf_map *list[LISTS_MAX];
	size_t once, i, n = lists_of(c, f, list, &once), room = 1;

	*all = (struct conf_map){ .block = block_of(list, n) };
	for (i = 0; i < n; i++)
		room += list[i]->n;
	all->v = calloc(room, sizeof(*all->v));
	if (all->v == NULL)
		return (false);
	for (i = 0; i < n; i++) {
		if (i == once)
			*nonce = all->n;
		if (list[i]->n == 0 || list[i]->block != all->block)
			continue;
		memcpy(all->v + all->n, list[i]->v, list[i]->n * sizeof(*all->v));
		all->n += list[i]->n;
	}
	return (true);
}

static void *
make_of(const struct conf *c, enum family f, char *err, size_t errsize)
{
	struct rewrites *rw = calloc(1, sizeof(*rw));
	struct conf_map all;

	if (rw == NULL || !join(c, f, &all, &rw->nonce)) {
		free(rw);
		return (rules_no_memory(err, errsize));
	}
	rw->block = all.block;
	if (can_begin(&all, err, errsize))
		rw->patterns = patterns_new(&all, err, errsize);
	free(all.v);
	if (rw->patterns != NULL)
		return (rw);
	free(rw);
	return (NULL);
}

static void
drop(void *arg)
{
	struct rewrites *rw = arg;

	patterns_free(rw->patterns);
	free(rw);
}

/* ---- a rewrite */

struct rewrite_request {
	unsigned n;        /* how often its path was rewritten */
	bool once;         /* no further rewrite */
	unsigned asked_at; /* r->changes + 1 when it was known whether its place is a file */
};
static REQUEST_SLOT(struct rewrite_request, mine);

static bool
is_a_loop(struct request *r, const char *setting)
{
	if (request_slot(r, mine)->n++ < REWRITES_MAX)
		return (false);
	log_limited(1, LOG_ERROR, conn_id(r), "rewrite.loop", conn_client(r),
	    LF_STR("setting", setting), LF_TEXT("url", r->http.target),
	    LF_TEXT("path", request_path(r)), LF_U64("limit", REWRITES_MAX),
	    LF_STR("why", "a rule matches its own result; the client gets 500"),
	    LF_STR("do", "write url.rewrite-once for it"));
	return (true);
}

static const struct handler *
unusable(struct request *r, const char *setting, struct text target)
{
	log_limited(1, LOG_ERROR, conn_id(r), "rewrite.failed", conn_client(r),
	    LF_STR("setting", setting), LF_TEXT("url", r->http.target), LF_TEXT("target", target),
	    LF_STR("why", "the result is not a path; the client gets 400"),
	    LF_STR("do", "begin it with \"/\""));
	return (module_refuses(r, 400, TEXT_NONE));
}

/* Goes on with this target, which is in the arena. */
static const struct handler *
go_to(struct request *r, struct text target, const char *setting)
{
	struct route_change to = { .target = target, .query = TEXT("") };
	struct text rest = target, path;
	char *p;
	int n;

	text_next(&rest, '?', &path);
	if (rest.p != NULL)
		to.query = rest;
	p = arena_get(&r->arena, path.n + 1);
	if (p == NULL || !request_keep(r))
		return (module_refuses(r, 500, TEXT_NONE));
	n = urlpath_clean(path, p);
	if (n < 0)
		return (unusable(r, setting, target));
	if (urlpath_has_steps(path) || (size_t)n > path.n)
		to.target.n = 0;
	to.path = (struct text){ p, (size_t)n };
	return (module_changed(r, &to));
}

static const struct handler *
rewrite_by(struct request *r, const struct rewrites *rw, const char *setting)
{
	const struct handler *h = NULL;
	struct text rest, target;
	struct buf url;
	size_t rule;
	int status;

	buf_init(&url, 0);
	status = target_apply(r, rw->patterns, rw->block, setting, &url, &rule);
	if (status != 0 || (url.n != 0 && is_a_loop(r, setting)))
		h = module_refuses(r, status != 0 ? status : 500, TEXT_NONE);
	else if (url.n != 0) {
		request_slot(r, mine)->once = rule < rw->nonce;
		rest = buf_as_text(&url);
		text_next(&rest, '#', &target); /* a fragment is for browsers */
		target = arena_text(&r->arena, target);
		h = target.p != NULL ? go_to(r, target, setting)
				     : module_refuses(r, 500, TEXT_NONE);
	}
	buf_free(&url);
	return (h);
}

/* ---- url.rewrite-once and others */

static const void *
any_key(const struct conf *c)
{
	return (key_of(c, ANY));
}

static void *
any_make(const struct conf *c, char *err, size_t errsize)
{
	return (make_of(c, ANY, err, errsize));
}

const struct rules_kind rules_rewrite = {
	.directive = "url.rewrite-once url.rewrite url.rewrite-final url.rewrite-repeat",
	.key = any_key,
	.make = any_make,
	.free = drop,
};

static bool
any_is_used(const struct conf *c)
{
	return (any_key(c) != NULL);
}

static const struct handler *
route_rewrite(struct request *r)
{
	if (request_slot(r, mine)->once || !target_counts(r))
		return (NULL);
	return (rewrite_by(r, r->site->rules[RULES_rewrite], "url.rewrite"));
}

const struct module module_rewrite = {
	.name = "rewrite",
	.is_used = any_is_used,
	.route = route_rewrite,
};

/* ---- url.rewrite-if-not-file */

static const void *
not_file_key(const struct conf *c)
{
	return (key_of(c, NOT_FILE));
}

static void *
not_file_make(const struct conf *c, char *err, size_t errsize)
{
	return (make_of(c, NOT_FILE, err, errsize));
}

const struct rules_kind rules_rewrite_not_file = {
	.directive = "url.rewrite-if-not-file url.rewrite-repeat-if-not-file",
	.key = not_file_key,
	.make = not_file_make,
	.free = drop,
};

static bool
not_file_is_used(const struct conf *c)
{
	return (not_file_key(c) != NULL);
}

static const struct handler *
not_a_file(struct request *r)
{
	request_slot(r, mine)->asked_at = r->changes + 1;
	return (rewrite_by(r, r->site->rules[RULES_rewrite_not_file], "url.rewrite-if-not-file"));
}

/* A look-up that failed for another reason, as a slow disk, says nothing: the next handler tries
 * again. */
static const struct handler *
decide(struct request *r, struct file_entry *e)
{
	bool is_other = e->err == 0 ? e->is_dir : http1_status_of_errno(e->err) != 503;

	file_entry_put(e);
	request_slot(r, mine)->asked_at = r->changes + 1;
	return (is_other ? not_a_file(r) : NULL);
}

static void
found(struct lookup_wait *w, struct lookup *l)
{
	struct request *r = container_of(w, struct request, wait);
	const struct handler *h = decide(r, file_entry_of(l));

	r->cold = true;
	if (h == NULL || h->start(r) == HANDLED_AGAIN)
		conn_route_again(r);
	else
		conn_replied(r);
}

static void
ask_stop(struct request *r)
{
	file_lookup_cancel(&r->wait);
}

static enum handled
ask_start(struct request *r)
{
	struct text path = r->place.path, name = place_name(r, &r->place, path);
	const struct handler *h;
	struct file_entry *e;

	if (name.p == NULL)
		return (module_refuses(r, 500, TEXT_NONE)->start(r));
	r->wait.done = found;
	r->wait.client = r->sender.client;
	e = file_lookup(r->worker->files, r->place.scope, name, r->peeks ? NULL : &r->wait);
	if (e == NULL)
		return (r->peeks ? HANDLED_NOT_NOW : HANDLED_LATER);
	h = decide(r, e);
	return (h != NULL ? h->start(r) : HANDLED_AGAIN);
}

static const struct handler handler_ask = {
	.name = "rewrite",
	.final = true,
	.before_body = true,
	.start = ask_start,
	.stop = ask_stop,
};

/* As with lighttpd, a path that goes to an application whether it is a file or not stays. */
static const struct handler *
placed_rewrite(struct request *r)
{
	if (request_slot(r, mine)->once || request_slot(r, mine)->asked_at == r->changes + 1 ||
	    !target_counts(r) || r->site->upstream != NULL)
		return (NULL);
	return (text_ends(r->place.path, TEXT("/")) ? not_a_file(r) : &handler_ask);
}

const struct module module_rewrite_not_file = {
	.name = "rewrite",
	.is_used = not_file_is_used,
	.placed = placed_rewrite,
};
