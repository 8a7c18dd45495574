/* server/module/modules.c -- the table of modules, and the stages; see module.h. */
#include "server/module/module.h"

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

struct stages {
	struct { /* of a module, for the client */
		int status;
		struct text lines; /* of the head; in the arena */
	} refusal;
	struct { /* what the reply has without modules, while they add to its head */
		struct text lines, type;
	} given;
};
static REQUEST_SLOT(struct stages, mine);

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
modules_of(const struct conf *c, struct site_modules *out)
{
	size_t i;

	*out = (struct site_modules){ 0 };
	for (i = 0; i < NELEM(modules); i++) {
		if (!modules[i]->is_used(c))
			continue;
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

const struct handler *
modules_route(struct request *r)
{
	const struct site_modules *m = &r->site->modules;
	const struct handler *h = NULL;
	unsigned i;

	for (i = 0; h == NULL && i < m->nroute; i++)
		h = m->route[i]->route(r);
	return (h);
}

int
modules_place(struct request *r)
{
	const struct site_modules *m = &r->site->modules;
	int status = 0;
	unsigned i;

	for (i = 0; status == 0 && i < m->nplace; i++)
		status = m->place[i]->place(r);
	return (status);
}

const struct handler *
modules_placed(struct request *r)
{
	const struct site_modules *m = &r->site->modules;
	const struct handler *h = NULL;
	unsigned i;

	for (i = 0; h == NULL && i < m->nplaced; i++)
		h = m->placed[i]->placed(r);
	return (h);
}

struct text
modules_head(struct request *r, int status, const struct file_entry *e, struct text given,
    struct text type)
{
	const struct site_modules *m;
	struct buf *lines = &r->worker->lines;
	unsigned i;

	if (r->site == NULL || r->site->modules.nhead == 0)
		return (TEXT_NONE);
	m = &r->site->modules;
	request_slot(r, mine)->given.lines = given;
	request_slot(r, mine)->given.type = type;
	lines->n = 0;
	lines->failed = false;
	for (i = 0; i < m->nhead; i++)
		m->head[i]->head(r, status, e, lines);
	return (lines->failed ? TEXT_NONE : buf_as_text(lines));
}

struct text
reply_given(const struct request *r, struct text name)
{
	const struct stages *m = request_slot(r, mine);
	struct text rest = m->given.lines, line;

	if (m->given.type.n != 0 && text_ieq(name, TEXT("Content-Type")))
		return (m->given.type);
	while (rest.n != 0 && text_next(&rest, '\n', &line))
		if (line.n > name.n && line.p[name.n] == ':' && text_istarts(line, name)) {
			text_take(&line, name.n + 1);
			if (line.n != 0 && line.p[line.n - 1] == '\r')
				line.n--;
			return (text_trim(line));
		}
	return (TEXT_NONE);
}

/* A line without its CRLF. */
static bool
is_named(struct text line, const struct text *names, size_t n)
{
	const char *colon = memchr(line.p, ':', line.n);

	if (colon == NULL)
		return (false);
	line.n = (size_t)(colon - line.p);
	return (text_is_one_of(line, names, n));
}

/* The status line has no colon before its blank, and stays. */
size_t
head_without(char *head, size_t n, const struct text *names, size_t nnames)
{
	struct text rest = { head, n }, line;
	char *to = head;

	while (rest.n != 0 && text_next(&rest, '\n', &line)) {
		if (rest.p != NULL)
			line.n++;
		if (!text_starts(line, TEXT("HTTP/")) && is_named(line, names, nnames))
			continue;
		memmove(to, line.p, line.n);
		to += line.n;
	}
	return ((size_t)(to - head));
}

char *
modules_edit(const struct request *r, char *head, char *end)
{
	const struct site_modules *m = &r->site->modules;
	unsigned i;

	for (i = 0; i < m->nedit; i++)
		end = head + m->edit[i]->edit(r, head, (size_t)(end - head));
	return (end);
}

struct text
modules_edited(struct request *r, struct text lines)
{
	struct buf *b = &r->worker->lines;

	if (r->site->modules.nedit == 0 || lines.n == 0)
		return (lines);
	b->n = 0;
	b->failed = false;
	buf_text(b, lines);
	if (b->failed)
		return (TEXT_NONE);
	b->n = (size_t)(modules_edit(r, b->p, b->p + b->n) - b->p);
	return ((struct text){ b->p, b->n });
}

/* ---- answers of modules */

static enum handled
refuse_start(struct request *r)
{
	const struct stages *m = request_slot(r, mine);

	if (error_handler_takes(r, m->refusal.status))
		return (HANDLED_AGAIN);
	if (r->in.left != 0)
		conn_close_after(r);
	reply_error_with(r, m->refusal.status, m->refusal.lines);
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
	request_slot(r, mine)->refusal.status = status;
	request_slot(r, mine)->refusal.lines = lines;
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
