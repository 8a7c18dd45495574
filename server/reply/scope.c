/* server/reply/scope.c -- see scope.h */
#include "server/reply/scope.h"

#include <errno.h>
#include <stdlib.h>

#include "base/must.h"
#include "files/hold/hold.h"
#include "files/root.h"
#include "io/io.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/reply/reply.h"
#include "server/reply/style.h"
#include "server/worker/base.h"

struct reply_scope {
	struct file_scope scope;
	struct reply_style style;
	struct list link;
	struct io *io;
};

const struct reply_style *
reply_scope_style(const struct file_scope *sc)
{
	return (&container_of(sc, const struct reply_scope, scope)->style);
}

struct io *
reply_scope_io(const struct file_scope *sc)
{
	return (container_of(sc, const struct reply_scope, scope)->io);
}

static void
scope_free(struct file_scope *sc)
{
	struct reply_scope *f = container_of(sc, struct reply_scope, scope);

	list_del(&f->link);
	free((char *)f->style.tag_line.p);
	free(f);
}

static bool
same_style(const struct reply_style *a, const struct reply_style *b)
{
	return (a->mime == b->mime && a->etag_parts == b->etag_parts && a->ranges == b->ranges &&
		a->watched == b->watched && text_eq(a->tag_line, b->tag_line) &&
		a->varies.types == b->varies.types && a->varies.n == b->varies.n &&
		a->varies.min == b->varies.min && a->varies.max == b->varies.max &&
		a->varies.all == b->varies.all);
}

static struct reply_scope *
scope_find(struct reply_scopes *all, int root, uint64_t resolve, const struct reply_style *style)
{
	struct reply_scope *f;

	list_each(f, &all->list, link)
		if (f->scope.root == root && f->scope.resolve == resolve &&
		    same_style(&f->style, style))
			return (f);
	return (NULL);
}

static bool
text_copy(struct text *to, struct text t)
{
	char *p = malloc(t.n + 1);

	if (p == NULL)
		return (false);
	if (t.n != 0)
		memcpy(p, t.p, t.n);
	to->p = p;
	to->n = t.n;
	return (true);
}

static struct file_scope *
scope_get(struct reply_scopes *all, struct io *io, int root, uint64_t resolve,
    const struct reply_style *style)
{
	struct reply_scope *f = scope_find(all, root, resolve, style);

	if (f != NULL)
		return (file_scope_ref(&f->scope));
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return (NULL);
	f->style = *style;
	if (!text_copy(&f->style.tag_line, style->tag_line)) {
		free(f);
		return (NULL);
	}
	f->scope = (struct file_scope){
		.id = ++all->ids,
		.root = root,
		.resolve = resolve,
		.prepare = reply_prepare,
		.by_date = style->etag_parts == 0,
		.watched = style->watched,
		.refs = 1,
		.free = scope_free,
	};
	f->io = io;
	list_add_tail(&all->list, &f->link);
	return (&f->scope);
}

/* server.follow-symlink, for names that a client chooses. */
static uint64_t
links_of(const struct conf *c)
{
	if (strcmp(c->follow_symlink, "enable") == 0)
		return (0);
	return (IO_BENEATH | (strcmp(c->follow_symlink, "disable") == 0 ? IO_NO_SYMLINKS : 0));
}

/* Some files are not sent because of their names: a link must not give them another one. */
static uint64_t
names_of(const struct conf *c)
{
	bool has_list = c->exclude_extensions.n != 0 || c->script_extensions.n != 0 ||
			c->cgi_assign.n != 0 || c->condition_endings->n != 0;

	return (has_list ? IO_REAL_NAME : 0);
}

int
reply_scope_make(struct site *s, const struct root *dir, bool beneath, struct file_scope **sc)
{
	uint64_t resolve = IO_LINKS | links_of(s->conf) | names_of(s->conf) |
			   (beneath ? IO_BENEATH : 0) | (s->conf->noatime ? IO_NOATIME : 0);

	if (dir == NULL)
		return (-ENOENT);
	if (io_fd_is_local(dir->fd))
		resolve |= IO_LOCAL;
	*sc = scope_get(s->worker->scopes, s->worker->io, dir->fd, resolve, &s->style);
	return (*sc != NULL ? 0 : -ENOMEM);
}

struct file_scope *
reply_scope(struct site *s, const struct root *root)
{
	struct file_scope *sc;
	struct site_root *roots;
	size_t i;

	for (i = 0; i < s->nroots; i++)
		if (s->roots[i].root == root)
			return (s->roots[i].scope);
	roots = realloc(s->roots, (s->nroots + 1) * sizeof(*s->roots));
	if (roots == NULL)
		return (NULL);
	s->roots = roots;
	if (reply_scope_make(s, root, false, &sc) != 0)
		return (NULL);
	s->roots[s->nroots++] = (struct site_root){ root, sc };
	return (sc);
}
