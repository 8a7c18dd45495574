/* server/module/modules.c -- the table of modules, and the stages; see module.h. */
#include "server/module/module.h"
#include "server/module/rules.h"

#include <stdio.h>

#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/module/error_handler.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/worker/base.h"

#define M(name) extern const struct module module_##name;
#include "server/module/modules.def"
#undef M

static const struct module *const modules[] = {
#define M(name) &module_##name,
#include "server/module/modules.def"
#undef M
};

#define R(name) extern const struct rules_kind rules_##name;
#include "server/module/rules.def"
#undef R

const struct rules_kind *const rules_kinds[RULES + 1] = {
#define R(name) [RULES_##name] = &rules_##name,
#include "server/module/rules.def"
#undef R
};

struct refusal { /* of a module, for the client */
	int status;
	struct text lines; /* of the head; in the arena */
};
static REQUEST_SLOT(struct refusal, mine);

void
modules_stop(struct worker_base *w)
{
	size_t i;

	for (i = 0; i < NELEM(modules); i++)
		if (modules[i]->worker_stop != NULL)
			modules[i]->worker_stop(w);
}

void *
rules_no_memory(char *err, size_t errsize)
{
	snprintf(err, errsize, "not enough memory");
	return (NULL);
}

void
modules_of(struct site *s)
{
	struct site_modules *out = &s->modules;
	size_t i;

	*out = (struct site_modules){ 0 };
	for (i = 0; i < NELEM(modules); i++) {
		if (!modules[i]->is_used(s->conf))
			continue;
		if (modules[i]->site_begin != NULL)
			modules[i]->site_begin(s);
		if (modules[i]->route != NULL)
			out->route[out->nroute++] = modules[i];
		if (modules[i]->place != NULL)
			out->place[out->nplace++] = modules[i];
		if (modules[i]->placed != NULL)
			out->placed[out->nplaced++] = modules[i];
		if (modules[i]->head != NULL)
			out->head[out->nhead++] = modules[i];
		if (modules[i]->edit != NULL)
			out->edit[out->nedit++] = modules[i];
		if (modules[i]->form != NULL)
			out->form = modules[i];
		if (modules[i]->directory != NULL)
			out->directory = modules[i];
		if (modules[i]->refused != NULL)
			out->refused = modules[i];
		if (modules[i]->runs != NULL)
			out->runs = modules[i];
	}
}

void
modules_site_end(const struct site *s)
{
	size_t i;

	for (i = 0; i < NELEM(modules); i++)
		if (modules[i]->site_end != NULL)
			modules[i]->site_end(s);
}

bool
modules_refused(struct request *r, int status)
{
	const struct module *m = r->site->modules.refused;

	return (m != NULL && m->refused(r, status));
}

void
modules_request_stop(struct request *r)
{
	size_t i;

	/* All, not those of r->site: a refusal gives the request the global site. */
	for (i = 0; i < NELEM(modules); i++)
		if (modules[i]->stop != NULL)
			modules[i]->stop(r);
}

/* ---- answers of modules */

static enum handled
refuse_start(struct request *r)
{
	const struct refusal *m = request_slot(r, mine);

	if (error_handler_takes(r, m->status))
		return (HANDLED_AGAIN);
	if (r->in.left != 0)
		conn_close_after(r);
	reply_error_with(r, m->status, m->lines);
	return (HANDLED_REPLY);
}

static const struct handler handler_refuse = {
	.name = "refuse",
	.final = true,
	.before_body = true,
	.start = refuse_start,
};

const struct handler *
module_refuses(struct request *r, int status, struct text lines)
{
	request_slot(r, mine)->status = status;
	request_slot(r, mine)->lines = lines;
	return (&handler_refuse);
}

static enum handled
again_start(struct request *r)
{
	(void)r;
	return (HANDLED_AGAIN);
}

static const struct handler handler_again = {
	.name = "again",
	.final = true,
	.before_body = true,
	.start = again_start,
};

const struct handler *
module_changed(struct request *r, const struct route_change *to)
{
	return (route_again(r, to) ? &handler_again : module_refuses(r, 500, TEXT_NONE));
}
