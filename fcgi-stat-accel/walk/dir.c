#include "fcgi-stat-accel/walk/dir.h"

#include <fcntl.h>
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

static void
path_from(const struct walk_dir *d, const char *name, bool with_root, GString *path)
{
	GPtrArray *parts = g_ptr_array_new();

	if (name != NULL)
		g_ptr_array_add(parts, (gpointer)name);
	for (; d != NULL && (with_root || d->parent != NULL); d = d->parent)
		g_ptr_array_add(parts, d->name);
	for (guint i = parts->len; i-- > 0;) {
		const char *part = g_ptr_array_index(parts, i);

		g_string_append(path, part);
		if (i > 0 && *part != '\0' && path->str[path->len - 1] != '/')
			g_string_append_c(path, '/');
	}
	g_ptr_array_free(parts, TRUE);
}

void
walk_dir_path(const struct walk_dir *d, const char *name, GString *path)
{
	path_from(d, name, true, path);
}

void
walk_dir_path_below(const struct walk_dir *d, const char *name, GString *path)
{
	path_from(d, name, false, path);
}
