#include "walk/dir.h"

#include <glib.h>
#include <unistd.h>

#include "base/must.h"

struct walk_dir *
walk_dir_new(struct walk_dir *parent, const char *name)
{
	struct walk_dir *d = g_new0(struct walk_dir, 1);

	d->parent = parent;
	d->name = g_strdup(name);
	d->fd = -1;
	d->users = 1;
	d->refs = 1;
	if (parent != NULL) {
		walk_dir_ref(parent);
		walk_dir_use(parent);
	}
	return (d);
}

struct walk_dir *
walk_dir_ref(struct walk_dir *d)
{
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	return (d);
}

/* Not recursive: trees can be deeper than a thread's stack. */
void
walk_dir_unref(struct walk_dir **dp)
{
	struct walk_dir *d = *dp, *parent;

	*dp = NULL;
	for (; d != NULL && __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL) == 0; d = parent) {
		must(d->fd == -1);
		parent = d->parent;
		g_free(d->name);
		g_free(d);
	}
}

void
walk_dir_opened(struct walk_dir *d, int fd, dev_t dev)
{
	d->fd = fd;
	d->dev = dev;
}

void
walk_dir_use(struct walk_dir *d)
{
	__atomic_add_fetch(&d->users, 1, __ATOMIC_RELAXED);
}

bool
walk_dir_unuse(struct walk_dir *d)
{
	int fd;

	if (__atomic_sub_fetch(&d->users, 1, __ATOMIC_ACQ_REL) != 0)
		return (false);
	fd = d->fd;
	d->fd = -1;
	if (fd >= 0)
		close(fd);
	return (fd >= 0);
}

/* Each part is put before the others.  Not a GPtrArray: many threads come here, and
 * ThreadSanitizer does not see how glib hands its slices from one to another. */
static void
path_from(const struct walk_dir *d, const char *name, bool with_root, struct buf *path)
{
	const struct walk_dir *up;
	const char **parts;
	size_t n = 1, at = 0;

	for (up = d; up != NULL; up = up->parent)
		n++;
	parts = g_new(const char *, n);
	if (name != NULL)
		parts[at++] = name;
	for (up = d; up != NULL && (with_root || up->parent != NULL); up = up->parent)
		parts[at++] = up->name;
	while (at-- > 0) {
		buf_str(path, parts[at]);
		if (at > 0 && path->n > 0 && path->p[path->n - 1] != '/')
			buf_char(path, '/');
	}
	buf_char(path, '\0');
	g_free(parts);
}

void
walk_dir_path(const struct walk_dir *d, const char *name, struct buf *path)
{
	path_from(d, name, true, path);
}

void
walk_dir_path_below(const struct walk_dir *d, const char *name, struct buf *path)
{
	path_from(d, name, false, path);
}
