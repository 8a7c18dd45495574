/* io/dir_list.c -- see dir_list.h */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "io/dir_list.h"
#include "io/disk/links.h"
#include "io/disk/open.h"

#define STEP_NS  (50 * NS_PER_MS)
#define FACTS_NS (3 * NS_PER_S)
#define FACTS    (STATX_TYPE | STATX_SIZE | STATX_MTIME)
#define LOOK     32u /* names between two looks at the clock */

static int
open_below(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS };
	int fd;

	do
		fd =
		    (int)syscall(SYS_openat2, dir, path[0] != '\0' ? path : ".", &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	return (fd < 0 ? -errno : fd);
}

/* ---- opening */

/* A name beneath the root, as for a request; tells: logs a link that is refused. */
static int
open_name(const struct dir_list *l, const char *path, uint64_t flags, bool tells)
{
	const struct open_how how = { .flags = flags | O_CLOEXEC,
		.resolve =
		    l->resolve | RESOLVE_NO_MAGICLINKS | (l->crossed ? 0 : RESOLVE_NO_XDEV) };
	int fd;

	do
		fd = l->links ? io_links_open_at(l->root, path, &how, tells)
			      : open_below(l->root, path, how.flags, how.resolve);
	while (fd == -EINTR);
	return (fd);
}

/* The directory and the root may be on different devices: the job goes on in its queue. */
static bool
open_dir(struct dir_list *l)
{
	int fd = open_name(l, l->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, true);

	if (fd == -EXDEV && !l->crossed) {
		l->crossed = true;
		l->work.dev = io_device_beyond(l->root, l->path);
		return (true);
	}
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, IO_OPEN_FACTS, &l->stx) < 0 ||
	    (l->dir = fdopendir(fd)) == NULL) {
		l->err = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return (false);
	}
	l->step = DIR_NAMES;
	return (true);
}

/* ---- names */

static int
by_name(const void *a, const void *b)
{
	return (strcmp(((const struct dir_entry *)a)->name, ((const struct dir_entry *)b)->name));
}

/* Keeps the first entries by name. */
static void
keep_most(struct dir_list *l)
{
	if (!l->unsorted && l->n != 0)
		qsort(l->entries, l->n, sizeof(*l->entries), by_name);
	while (l->n > l->most) {
		free(l->entries[--l->n].name);
		l->left_out++;
	}
}

static bool
add(struct dir_list *l, const char *name, bool is_dir)
{
	struct dir_entry *v;
	size_t cap;

	if (l->n == 2 * l->most)
		keep_most(l);
	if (l->n == l->cap) {
		cap = l->cap != 0 ? 2 * l->cap : 64;
		v = realloc(l->entries, cap * sizeof(*v));
		if (v == NULL)
			return (false);
		l->entries = v;
		l->cap = cap;
	}
	v = &l->entries[l->n];
	*v = (struct dir_entry){ .name = strdup(name), .n = strlen(name), .is_dir = is_dir };
	l->n += v->name != NULL;
	return (v->name != NULL);
}

/* Files, directories and links; others cannot be served. */
static bool
is_servable(const struct dirent *d)
{
	return (d->d_type == DT_REG || d->d_type == DT_DIR || d->d_type == DT_LNK ||
		d->d_type == DT_UNKNOWN);
}

static bool
is_dots(const char *name)
{
	return (strcmp(name, ".") == 0 || strcmp(name, "..") == 0);
}

static bool
read_names(struct dir_list *l)
{
	uint64_t until = clock_mono_ns() + STEP_NS;
	const struct dirent *d;
	unsigned i;

	for (i = 1; i % LOOK != 0 || clock_mono_ns() < until; i++) {
		errno = 0;
		d = readdir(l->dir);
		if (d == NULL) {
			l->err = errno != 0 ? -errno : 0;
			keep_most(l);
			l->step = DIR_FACTS;
			l->facts_until = clock_mono_ns() + FACTS_NS;
			return (l->err == 0);
		}
		if (!is_dots(d->d_name) && is_servable(d) && l->wants(l, text_of(d->d_name)) &&
		    !add(l, d->d_name, d->d_type == DT_DIR)) {
			l->err = -ENOMEM;
			return (false);
		}
	}
	return (true);
}

/* ---- facts */

static void
take_facts(struct dir_entry *e, const struct statx *stx)
{
	e->known = true;
	e->is_dir = S_ISDIR(stx->stx_mode);
	e->size = stx->stx_size;
	e->mtime = stx->stx_mtime.tv_sec;
}

/* Finds what a name leads to, beneath the root as for a request.  False: it cannot be served. */
static bool
look_through(struct dir_list *l, struct dir_entry *e)
{
	char path[PATH_MAX];
	struct statx stx;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", l->path, l->path[0] != '\0' ? "/" : "",
		e->name) >= sizeof(path))
		return (false);
	fd = open_name(l, path, O_PATH, false);
	if (fd == -EXDEV)
		return (true); /* another mount, which may hang */
	if (fd < 0)
		return (false);
	if (statx(fd, "", AT_EMPTY_PATH, FACTS, &stx) == 0)
		take_facts(e, &stx);
	close(fd);
	return (e->known && (e->is_dir || S_ISREG(stx.stx_mode)));
}

/* A directory may be a mount point. */
static void
look_at_dir(int dir, struct dir_entry *e)
{
	int fd = open_below(dir, e->name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	struct statx stx;

	if (fd < 0)
		return;
	if (statx(fd, "", AT_EMPTY_PATH, FACTS, &stx) == 0)
		take_facts(e, &stx);
	close(fd);
}

/* Notes the facts about an entry.  False: the entry is not listed. */
static bool
look_at(struct dir_list *l, struct dir_entry *e)
{
	int dir = dirfd(l->dir);
	struct statx stx;

	if (e->is_dir) {
		look_at_dir(dir, e);
		return (true);
	}
	if (statx(dir, e->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, FACTS, &stx) < 0)
		return (errno != ENOENT);
	if (S_ISLNK(stx.stx_mode))
		return (look_through(l, e));
	take_facts(e, &stx);
	return (e->is_dir || S_ISREG(stx.stx_mode));
}

static void
read_text(struct dir_list *l, size_t i)
{
	struct statx stx;
	ssize_t n = 1;
	char *p;
	int fd;

	if (l->text[i] == NULL)
		return;
	fd = open_below(dirfd(l->dir), l->text[i], O_RDONLY | O_NONBLOCK | O_NOCTTY,
	    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (fd < 0)
		return;
	buf_init(&l->bytes[i], DIR_TEXT_MAX);
	if (statx(fd, "", AT_EMPTY_PATH, FACTS, &stx) == 0 && S_ISREG(stx.stx_mode) &&
	    (p = buf_extend(&l->bytes[i], DIR_TEXT_MAX)) != NULL) {
		l->bytes[i].n = 0;
		while (n > 0 && l->bytes[i].n < DIR_TEXT_MAX) {
			n = read(fd, p + l->bytes[i].n, DIR_TEXT_MAX - l->bytes[i].n);
			l->bytes[i].n += n > 0 ? (size_t)n : 0;
		}
	}
	close(fd);
}

/* True: more facts are to be read. */
static bool
read_facts(struct dir_list *l)
{
	uint64_t now = clock_mono_ns(), until = now + STEP_NS;
	struct dir_entry *e;
	size_t i;

	while (l->looked < l->n && now < until && now < l->facts_until) {
		e = &l->entries[l->looked++];
		if (!look_at(l, e)) {
			free(e->name);
			e->name = NULL;
		}
		if (l->looked % LOOK == 0 || e->name == NULL || !e->known)
			now = clock_mono_ns();
	}
	if (l->looked < l->n && now < l->facts_until)
		return (true);
	for (i = 0; i < DIR_TEXTS && now < l->facts_until; i++)
		read_text(l, i);
	return (false);
}

/* Removes the entries without a name. */
static void
close_gaps(struct dir_list *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		if (l->entries[i].name == NULL)
			continue;
		l->unread += i >= l->looked;
		l->entries[n++] = l->entries[i];
	}
	l->n = n;
}

/* ---- the work */

/* True: there is more to do. */
static bool
step(struct dir_list *l)
{
	switch (l->step) {
	case DIR_OPEN: return (open_dir(l));
	case DIR_NAMES: return (read_names(l));
	case DIR_FACTS: return (read_facts(l));
	}
	return (false);
}

static bool
is_gone(const struct dir_list *l)
{
	return (__atomic_load_n(&l->gone, __ATOMIC_RELAXED));
}

static void
run(struct io_work *w)
{
	struct dir_list *l = container_of(w, struct dir_list, work);

	w->again = !is_gone(l) && step(l) && !is_gone(l);
	if (w->again || l->err != 0 || is_gone(l))
		return;
	close_gaps(l);
	l->made(l);
}

static void
list_free(struct io_work *w)
{
	struct dir_list *l = container_of(w, struct dir_list, work);
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->entries[i].name);
	free(l->entries);
	if (l->dir != NULL)
		closedir(l->dir);
	if (l->root >= 0)
		close(l->root);
	for (i = 0; i < DIR_TEXTS; i++) {
		buf_free(&l->bytes[i]);
		free(l->text[i]);
	}
	free(l->path);
	l->release(l);
}

bool
dir_list_init(struct dir_list *l, int root, struct text path, uint64_t resolve)
{
	l->work = (struct io_work){ .run = run, .free = list_free, .refs = 1 };
	l->root = fcntl(root, F_DUPFD_CLOEXEC, 0);
	l->path = strndup(path.p, path.n);
	l->resolve = resolve & (IO_BENEATH | IO_NO_SYMLINKS);
	l->links = (resolve & IO_LINKS) != 0;
	return (l->root >= 0 && l->path != NULL);
}
