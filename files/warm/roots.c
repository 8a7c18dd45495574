/* files/warm/roots.c -- the directories that files must be below. */

#include "files/warm/impl.h"

#include <errno.h>
#include "io/disk/hot.h"

static void
root_clear(gpointer p)
{
	root_close(&((struct warm_root *)p)->dir);
}

static int
roots_add(struct warm_roots *rs, const char *dir)
{
	struct warm_root r;
	int err = root_open(dir, &r.dir);

	if (err != 0)
		return (err);
	r.hot = io_fd_is_local(r.dir.fd);
	g_array_append_val(rs->v, r);
	return (0);
}

int
roots_open(struct warm_roots *rs, const char *const *dirs, const char **bad)
{
	static const char *const anywhere[] = { "/", NULL };
	bool any = dirs == NULL || *dirs == NULL;
	int err = 0;

	rs->v = g_array_new(FALSE, FALSE, sizeof(struct warm_root));
	g_array_set_clear_func(rs->v, root_clear);
	rs->resolve = any ? 0 : IO_BENEATH;
	for (dirs = any ? anywhere : dirs; err == 0 && *dirs != NULL; dirs++) {
		err = roots_add(rs, *dirs);
		*bad = err == 0 || err == -ENOSYS ? NULL : *dirs;
	}
	if (err != 0)
		roots_close(rs);
	return (err);
}

void
roots_close(struct warm_roots *rs)
{
	g_array_free(rs->v, TRUE);
}

/* Roots may nest: a link out of the inner root may still end in the outer one. */
const struct warm_root *
roots_next(const struct warm_roots *rs, const char *path, guint *nr, const char **tail)
{
	struct text rest;

	for (; *nr < rs->v->len; ++*nr) {
		const struct warm_root *r = &g_array_index(rs->v, struct warm_root, *nr);

		if (root_tail(&r->dir, text_of(path), &rest)) {
			*tail = rest.p;
			return (r);
		}
	}
	return (NULL);
}
