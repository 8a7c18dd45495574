/* server/request/hooks.c -- runs the hooks of a site's modules; see server/module/module.h.
 *
 * Below the modules: they are in the tables of the site, so no module is named here.
 */
#include "base/buf.h"
#include "server/config/site.h"
#include "server/module/module.h"
#include "server/request/request.h"
#include "server/worker/base.h"

struct given { /* what the reply has without modules, while they add to its head */
	struct text lines, type;
};
static REQUEST_SLOT(struct given, mine);

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
	request_slot(r, mine)->lines = given;
	request_slot(r, mine)->type = type;
	lines->n = 0;
	lines->failed = false;
	for (i = 0; i < m->nhead; i++)
		m->head[i]->head(r, status, e, lines);
	return (lines->failed ? TEXT_NONE : buf_as_text(lines));
}

struct text
reply_given(const struct request *r, struct text name)
{
	const struct given *m = request_slot(r, mine);
	struct text rest = m->lines, line;

	if (m->type.n != 0 && text_ieq(name, TEXT("Content-Type")))
		return (m->type);
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
