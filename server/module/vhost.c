/* server/module/vhost.c -- see vhost.h */
#include "server/module/vhost.h"

#include <errno.h>
#include <limits.h>

#include "base/address.h"
#include "files/hold/hold.h"
#include "files/root.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/module/module.h"
#include "server/request/fault.h"
#include "server/reply/reply.h"
#include "server/reply/scope.h"
#include "server/request/request.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

#define TOLD_MAX 4u /* directories that one request may ask for */

struct vhost_request {
	const struct root *root;
	struct text name; /* to look up next, below root */
	int status;
	unsigned n;
	struct vhost_told { /* what was looked up for this request */
		const struct root *root;
		struct text name;
		int err;
		bool is_dir;
	} v[TOLD_MAX];
};
static REQUEST_SLOT(struct vhost_request, mine);

/* ---- which directory exists */

static struct file_scope *
scope_of(struct request *r, const struct vhost_dir *d)
{
	return (reply_scope(r->site, d->root));
}

static bool
is_absence(int err)
{
	return (err == -ENOENT || err == -ENOTDIR || err == -ENAMETOOLONG || err == -EACCES ||
		err == -ELOOP || err == -EXDEV);
}

static enum vhost_is
told(struct request *r, int err, bool is_dir)
{
	if (err == 0)
		return (is_dir ? VHOST_YES : VHOST_NO);
	if (is_absence(err))
		return (VHOST_NO);
	request_slot(r, mine)->status = http1_status_of_errno(err);
	return (VHOST_FAILED);
}

enum vhost_is
vhost_find(struct request *r, const struct vhost_dir *d)
{
	struct vhost_request *m = request_slot(r, mine);
	struct file_scope *scope;
	struct file_entry *e;
	enum vhost_is is;
	unsigned i;

	if (d->name.n == 0)
		return (d->name.p != NULL ? VHOST_YES : VHOST_NO);
	for (i = 0; i < m->n; i++)
		if (m->v[i].root == d->root && text_eq(m->v[i].name, d->name))
			return (told(r, m->v[i].err, m->v[i].is_dir));
	scope = scope_of(r, d);
	if (scope == NULL)
		return (told(r, -ENOMEM, false));
	e = file_lookup(r->worker->files, scope, d->name, NULL);
	if (e == NULL) {
		m->root = d->root;
		m->name = d->name;
		return (VHOST_ASK);
	}
	is = told(r, e->err, e->is_dir);
	file_entry_put(e);
	return (is);
}

/* ---- asking */

/* A request has fewer directories than there is room for, unless it is routed again for other
 * hosts: then the old answers go. */
static void
note(struct request *r, struct file_entry *e)
{
	struct vhost_request *m = request_slot(r, mine);

	if (m->n == TOLD_MAX)
		m->n = 0;
	m->v[m->n++] = (struct vhost_told){ m->root, m->name, e->err, e->is_dir };
	if (e->err != 0) {
		r->scope = e->lk.scope;
		r->lookup = m->name;
		fault_note(r, e);
	}
	file_entry_put(e);
}

static void
looked(struct lookup_wait *w, struct lookup *l)
{
	struct request *r = container_of(w, struct request, wait);

	note(r, file_entry_of(l));
	conn_route_again(r);
}

static enum handled
ask(struct request *r)
{
	const struct vhost_request *m = request_slot(r, mine);
	const struct vhost_dir d = { m->root, m->name, 0 };
	struct file_entry *e;

	if (r->peeks)
		return (HANDLED_NOT_NOW);
	r->wait.done = looked;
	r->wait.client = r->sender.client;
	r->wait.data = false;
	e = file_lookup(r->worker->files, scope_of(r, &d), d.name, &r->wait);
	if (e == NULL)
		return (HANDLED_LATER);
	note(r, e);
	return (HANDLED_AGAIN);
}

static void
stop(struct request *r)
{
	file_lookup_cancel(&r->wait);
}

static const struct handler handler_vhost = {
	.name = "vhost",
	.final = true,
	.before_body = true,
	.start = ask,
	.stop = stop,
};

const struct handler *
vhost_route(struct request *r, enum vhost_is is)
{
	if (is == VHOST_FAILED)
		return (module_refuses(r, request_slot(r, mine)->status, TEXT_NONE));
	return (is == VHOST_ASK ? &handler_vhost : NULL);
}

/* ---- the place */

/* The name below the root, with one more "/" after the base: "//" there marks where the base
 * ends. */
static struct text
below_of(struct request *r, const struct vhost_dir *d)
{
	size_t base = d->base, rest = d->name.n - base;
	char *p = arena_get(&r->arena, d->name.n + 2);

	if (p == NULL)
		return (TEXT_NONE);
	memcpy(p, d->name.p, base);
	p[base] = '/';
	memcpy(p + base + 1, d->name.p + base, rest);
	return ((struct text){ p, base + 1 + rest });
}

int
vhost_place(struct request *r, const struct vhost_dir *d, struct text path)
{
	const struct text parts[] = { d->root->name, d->name };
	struct text below = TEXT_NONE, dir = d->root->name;

	if (d->name.n != 0) {
		below = below_of(r, d);
		dir = vhost_join(r, parts, 2);
		if (below.p == NULL || dir.p == NULL)
			return (500);
	}
	r->place = (struct place){ scope_of(r, d), below, dir, path };
	return (r->place.scope != NULL ? 0 : 500);
}

/* ---- names */

/* The parser has left a valid name in lower case.  Here it must be the name of one directory. */
struct text
vhost_host(const struct request *r)
{
	struct text host, port;
	size_t i;

	if (r->http.host.n == 0 || !address_cut(r->http.host, &host, &port))
		return (TEXT_NONE);
	if (host.n > 1 && host.p[host.n - 1] == '.')
		host.n--;
	if (host.n == 0 || host.n > NAME_MAX || host.p[0] == '.')
		return (TEXT_NONE);
	for (i = 0; i < host.n; i++)
		if (host.p[i] == '/' || host.p[i] == '\0' ||
		    (host.p[i] == '.' && i + 1 < host.n && host.p[i + 1] == '.'))
			return (TEXT_NONE);
	return (host);
}

/* Copies without the slashes at both ends, and with single ones inside. */
static size_t
put_part(char *dst, size_t n, struct text part)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (part.p[i] != '/' || (n != 0 && dst[n - 1] != '/'))
			dst[n++] = part.p[i];
	while (n != 0 && dst[n - 1] == '/')
		n--;
	return (n);
}

struct text
vhost_join(struct request *r, const struct text *part, size_t n)
{
	size_t i, sum = 1, len = 0;
	char *p;

	for (i = 0; i < n; i++)
		sum += part[i].n + 1;
	p = sum <= PATH_MAX ? arena_get(&r->arena, sum) : NULL;
	if (p == NULL)
		return (TEXT_NONE);
	if (n != 0 && part[0].n != 0 && part[0].p[0] == '/')
		p[len++] = '/';
	for (i = 0; i < n; i++) {
		if (len != 0 && p[len - 1] != '/')
			p[len++] = '/';
		len = put_part(p, len, part[i]);
	}
	p[len] = '\0';
	return ((struct text){ p, len });
}
