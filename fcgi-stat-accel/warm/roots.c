/* warm_roots.c -- names and the directories they may lie in. */

#include "fcgi-stat-accel/warm/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "io/disk/hot.h"

/* Without slashes at the end, so that what follows the name must start with one. */
static char *
root_name(const char *dir)
{
	char *name = g_strdup(dir);
	size_t n = strlen(name);

	while (n > 0 && name[n - 1] == '/')
		name[--n] = '\0';
	return (name);
}

static char *
real_name(const char *dir)
{
	char *found = realpath(dir, NULL), *name = root_name(found != NULL ? found : dir);

	free(found);
	return (name);
}

static void
root_clear(gpointer p)
{
	struct warm_root *r = p;

	g_free(r->name);
	g_free(r->real);
	io_root_close(r->fd);
}

/* Whether this kernel can keep a name below a directory. */
static int
probe(int root)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root, ".", &how, sizeof(how));

	if (fd < 0)
		return (-errno);
	close(fd);
	return (0);
}

static int
root_open(struct warm_roots *rs, const char *dir)
{
	struct warm_root r;
	int err = io_root_open(dir, &r.fd);

	if (err != 0)
		return (err);
	err = probe(r.fd);
	if (err != 0) {
		io_root_close(r.fd);
		return (err);
	}
	r.name = root_name(dir);
	r.real = real_name(dir);
	r.hot = io_hot_root(r.fd);
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
		err = root_open(rs, *dirs);
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

/* What follows "root/" in path, or NULL. */
static const char *
tail_after(const char *root, const char *path)
{
	size_t n = strlen(root);

	if (strncmp(path, root, n) != 0 || path[n] != '/')
		return (NULL);
	for (path += n; *path == '/'; path++)
		;
	return (path);
}

/* Roots may nest: a link that leaves the inner one may still end in the outer one. */
const struct warm_root *
roots_next(const struct warm_roots *rs, const char *path, guint *nr, const char **tail)
{
	for (; *nr < rs->v->len; ++*nr) {
		const struct warm_root *r = &g_array_index(rs->v, struct warm_root, *nr);

		*tail = tail_after(r->name, path);
		if (*tail == NULL)
			*tail = tail_after(r->real, path);
		if (*tail != NULL)
			return (r);
	}
	return (NULL);
}
