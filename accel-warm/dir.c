#include "accel-warm/dir.h"

#include <fcntl.h>
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

/* Not by recursion: trees can be deeper than a thread's stack. */
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

/* From the name upwards, so that each part is put before the others. */
static void
path_from(const struct walk_dir *d, const char *name, bool with_root, struct buf *path)
{
	const char **parts = NULL;
	unsigned n = 0, room = 0;

	for (; name != NULL || d != NULL; n++) {
		if (n == room) {
			room = MAX(2 * room, 16);
			parts = g_renew(const char *, parts, room);
		}
		parts[n] = name != NULL ? name : d->name;
		if (name == NULL)
			d = d->parent;
		name = NULL;
		if (d != NULL && d->parent == NULL && !with_root)
			d = NULL;
	}
	while (n-- > 0) {
		buf_str(path, parts[n]);
		if (n > 0 && path->n > 0 && path->p[path->n - 1] != '/')
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
