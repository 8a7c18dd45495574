/* server/reply/scope.c -- see scope.h */
#include "server/reply/scope.h"

#include <stdlib.h>

#include "base/must.h"
#include "server/reply/reply.h"

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

struct file_scope *
reply_scope_get(struct reply_scopes *all, struct io *io, int root, uint64_t resolve,
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
