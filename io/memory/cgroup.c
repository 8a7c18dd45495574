/* io/memory/cgroup.c -- see cgroup.h */
#include "io/memory/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>

#include "io/disk/mounts.h"

struct cgroup_mount { /* a row of mountinfo */
	struct text root, point, type, super;
};

static bool
has_word(struct text list, struct text word)
{
	struct text t;

	while (text_next(&list, ',', &t))
		if (text_eq(t, word))
			return (true);
	return (false);
}

/* 4:cpu,memory:/a/b   0::/a/b */
static bool
own_path(enum cgroup_kind kind, struct text own, struct text *path)
{
	struct text line, id, controllers;

	while (text_next(&own, '\n', &line)) {
		if (!text_next(&line, ':', &id) || !text_next(&line, ':', &controllers))
			continue;
		if (kind == CGROUP_V1 ? !has_word(controllers, TEXT("memory"))
				      : !text_eq(id, TEXT("0")) || controllers.n != 0)
			continue;
		*path = line;
		return (line.p != NULL && line.n > 0 && line.p[0] == '/');
	}
	return (false);
}

/* 35 31 0:32 /root /mount/point rw shared:1 - cgroup cgroup rw,memory */
static bool
mount_read(struct text line, struct cgroup_mount *m)
{
	struct text word = TEXT_NONE, skip;
	unsigned i;

	for (i = 0; i < 5; i++) {
		if (!text_next(&line, ' ', &word))
			return (false);
		if (i == 3)
			m->root = word;
	}
	m->point = word;
	do {
		if (!text_next(&line, ' ', &word))
			return (false);
	} while (!text_eq(word, TEXT("-")));
	return (text_next(&line, ' ', &m->type) && text_next(&line, ' ', &skip) &&
		text_next(&line, ' ', &m->super));
}

static bool
is_kind(enum cgroup_kind kind, const struct cgroup_mount *m)
{
	if (kind == CGROUP_V2)
		return (text_eq(m->type, TEXT("cgroup2")));
	return (text_eq(m->type, TEXT("cgroup")) && has_word(m->super, TEXT("memory")));
}

/* Takes the root of the mount off the path: the rest is "" or begins with a slash. */
static bool
below_root(struct text root, struct text *path)
{
	if (text_eq(root, TEXT("/")))
		root.n = 0;
	if (!text_starts(*path, root) || (path->n > root.n && path->p[root.n] != '/'))
		return (false);
	text_take(path, root.n);
	if (text_eq(*path, TEXT("/")))
		path->n = 0;
	return (true);
}

/* A path outside of the own namespace begins with "/..". */
static bool
leaves(struct text path)
{
	struct text word;

	while (text_next(&path, '/', &word))
		if (text_eq(word, TEXT("..")))
			return (true);
	return (false);
}

static bool
place(const struct cgroup_mount *m, struct text path, struct cgroup *c)
{
	char point[PATH_MAX];
	int n;

	if (!below_root(m->root, &path) || leaves(path) || m->point.n >= sizeof(point))
		return (false);
	(void)snprintf(point, sizeof(point), "%.*s", (int)m->point.n, m->point.p);
	mounts_unescape(point);
	n = snprintf(c->path, sizeof(c->path), "%s%.*s", point, (int)path.n,
	    path.n != 0 ? path.p : "");
	c->top = strlen(point);
	return (point[0] == '/' && n > 0 && (size_t)n < sizeof(c->path));
}

bool
cgroup_parse(enum cgroup_kind kind, struct text own, struct text mounts, struct cgroup *c)
{
	struct text path, line;
	struct cgroup_mount m;

	if (!own_path(kind, own, &path))
		return (false);
	while (text_next(&mounts, '\n', &line))
		if (mount_read(line, &m) && is_kind(kind, &m) && place(&m, path, c))
			return (true);
	return (false);
}

bool
cgroup_find(enum cgroup_kind kind, struct cgroup *c)
{
	char *own = NULL, *table = NULL;
	gsize nown = 0, ntable = 0;
	bool found =
	    g_file_get_contents("/proc/self/cgroup", &own, &nown, NULL) &&
	    g_file_get_contents("/proc/self/mountinfo", &table, &ntable, NULL) &&
	    cgroup_parse(kind, (struct text){ own, nown }, (struct text){ table, ntable }, c);

	g_free(own);
	g_free(table);
	return (found);
}

bool
cgroup_up(struct cgroup *c)
{
	char *slash = strrchr(c->path, '/');

	if (slash == NULL || strlen(c->path) <= c->top)
		return (false);
	*slash = '\0';
	return (true);
}

int
cgroup_open(const struct cgroup *c, const char *name)
{
	char path[PATH_MAX + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", c->path, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return (-errno);
	return (fd);
}
