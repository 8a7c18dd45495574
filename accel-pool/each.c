#include "accel-pool/each.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/must.h"
#include "base/pattern.h"

#define PIECE_BYTES (UINT64_C(4) << 20)
#define STACK       (256 * 1024)
#define PROOF_BYTES 64 /* bytes that distinguish a file of the pool from others */

/* Files of one directory. */
struct piece {
	const struct spec *spec;
	uint32_t dir, first, n;
};

/* ---------------------------------------------------------------- pieces */

static uint32_t
piece_files(const struct spec *s)
{
	uint64_t mean = s->min / 2 + s->max / 2 + 1, n = PIECE_BYTES / mean;

	return (n == 0 ? 1 : n > 64 ? 64 : (uint32_t)n);
}

/* Takes the next piece of the files.  False: no piece is left, or an error stops all. */
static bool
take(struct each *e, struct piece *p)
{
	bool more;

	pthread_mutex_lock(&e->lock);
	more = e->err == 0 && e->spec < e->pool->n;
	if (more) {
		const struct spec *s = &e->pool->specs[e->spec];

		*p = (struct piece){ s, e->dir, e->next, MIN(piece_files(s), s->files - e->next) };
		e->next += p->n;
		if (e->next == s->files) {
			e->next = 0;
			e->dir++;
		}
		if (e->dir == s->dirs) {
			e->dir = 0;
			e->spec++;
		}
	}
	pthread_mutex_unlock(&e->lock);
	return (more);
}

static void
fail(struct each *e, const char *path, int err)
{
	pthread_mutex_lock(&e->lock);
	if (e->err == 0) {
		e->err = err;
		g_strlcpy(e->failed, path, sizeof(e->failed));
	}
	pthread_mutex_unlock(&e->lock);
}

/* ---------------------------------------------------------------- directories */

/* A descriptor, or -errno. */
static int
enter(struct each_worker *w, int at, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd;

	if (w->each->make_dirs && mkdirat(at, name, 0755) == 0)
		count(&w->counters, directories);
	else if (w->each->make_dirs && errno != EEXIST)
		return (-errno);
	fd = openat(at, name, flags);
	if (fd < 0)
		return (-errno);
	return (fd);
}

static int
open_dir(struct each_worker *w, const struct spec *s, uint32_t dir)
{
	char size[SPEC_TEXT_MAX], name[16];
	int above, fd;

	spec_put_dir(s, size);
	above = enter(w, w->each->root, size);
	if (above < 0)
		return (above);
	snprintf(name, sizeof(name), "%04" G_GUINT32_FORMAT, dir);
	fd = enter(w, above, name);
	close(above);
	return (fd);
}

static void
leave(struct each_worker *w)
{
	if (w->dir_fd >= 0)
		close(w->dir_fd);
	w->dir_fd = -1;
}

/* 0 or -errno; the directory of the last piece is open already. */
static int
enter_piece(struct each_worker *w, const struct piece *p)
{
	int fd;

	if (w->dir_fd >= 0 && w->spec == p->spec && w->dir == p->dir)
		return (0);
	leave(w);
	fd = open_dir(w, p->spec, p->dir);
	if (fd < 0)
		return (fd);
	w->dir_fd = fd;
	w->spec = p->spec;
	w->dir = p->dir;
	return (0);
}

bool
each_is_ours(const struct each_file *f)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC;
	char bytes[PROOF_BYTES];
	struct stat st;
	ssize_t n = -1;
	int fd = openat(f->dir_fd, f->name, flags);

	if (fd < 0 && errno == EPERM) /* O_NOATIME is for the owner */
		fd = openat(f->dir_fd, f->name, flags & ~O_NOATIME);
	if (fd < 0)
		return (false);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = TEMP_FAILURE_RETRY(pread(fd, bytes, sizeof(bytes), 0));
	close(fd);
	return (n >= 0 && pattern_check(pattern_key(f->path, strlen(f->path)), 0, bytes,
			      (size_t)n) == (size_t)n);
}

/* ---------------------------------------------------------------- threads */

static int
do_file(struct each_worker *w, const struct piece *p, uint32_t file, char path[SPEC_TEXT_MAX])
{
	const struct spec_place at = { p->dir, file };
	const struct each_file f = { p->spec, at, w->dir_fd, strrchr(path, '/') + 1, path,
		spec_size(p->spec, at, w->each->pool->seed) };
	int err = w->each->file(w, &f);

	if (err == 0)
		count_add(&w->counters, finished, 1);
	return (err);
}

static void
do_piece(struct each_worker *w, const struct piece *p)
{
	char path[SPEC_TEXT_MAX];
	int err = enter_piece(w, p);

	if (err == -ENOENT && !w->each->make_dirs) {
		count_add(&w->counters, finished, p->n);
		return;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		spec_put_path(p->spec, (struct spec_place){ p->dir, p->first + i }, path);
		if (err == 0)
			err = do_file(w, p, p->first + i, path);
		if (err != 0) {
			fail(w->each, path, err);
			return;
		}
	}
}

/* The last thread wakes the main thread. */
static void
ended(struct each *e)
{
	const uint64_t one = 1;

	if (__atomic_sub_fetch(&e->running, 1, __ATOMIC_ACQ_REL) == 0)
		must(write(e->watch.over_fd, &one, sizeof(one)) == sizeof(one));
}

static void *
worker_main(void *arg)
{
	struct each_worker *w = arg;
	struct piece p;

	while (take(w->each, &p))
		do_piece(w, &p);
	leave(w);
	ended(w->each);
	return (NULL);
}

static int
start(struct each_worker *w)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	err = pthread_create(&w->thread, &attr, worker_main, w);
	pthread_attr_destroy(&attr);
	return (-err);
}

/* Returns how many threads run; fewer do the same work. */
static unsigned
start_all(struct each *e)
{
	unsigned n;
	int err = 0;

	e->running =
	    e->threads + 1; /* counts this thread, so that none is the last before all run */
	for (n = 0; n < e->threads && err == 0; n++) {
		struct each_worker *w = &e->workers[n];

		*w = (struct each_worker){ .each = e, .dir_fd = -1, .buf = g_malloc(EACH_BUFFER) };
		err = start(w);
	}
	if (err != 0)
		g_free(e->workers[--n].buf);
	for (unsigned i = n; i < e->threads; i++)
		ended(e);
	ended(e);
	if (n == 0)
		fail(e, "a thread", err);
	e->threads = n;
	return (n);
}

/* ---------------------------------------------------------------- the run */

static void
measure(void *arg, struct walk_progress *p)
{
	struct each *e = arg;

	for (unsigned i = 0; i < e->threads; i++)
		walk_counters_add(&p->counters, &e->workers[i].counters);
	for (unsigned i = 0; i < e->pool->n; i++)
		p->total += spec_count(&e->pool->specs[i]);
}

void
each_summary(struct each *e, bool interrupted)
{
	GString *s = g_string_new(NULL);

	if (e->json)
		walk_progress_json(&e->result, interrupted, s);
	else if (!e->quiet)
		walk_progress_summary(&e->result, interrupted, s);
	watch_summary(&e->watch, s);
	g_string_free(s, TRUE);
}

static void
finish(struct each *e)
{
	int signo = watch_wait(&e->watch);

	e->result = watch_measure(&e->watch);
	if (signo != 0) {
		each_summary(e, true);
		_exit(128 + signo);
	}
	for (unsigned i = 0; i < e->threads; i++) {
		pthread_join(e->workers[i].thread, NULL);
		g_free(e->workers[i].buf);
	}
	e->result = watch_measure(&e->watch);
}

int
each_run(struct each *e)
{
	int err;

	e->watch = (struct watch){ e->quiet, e->verbose, measure, NULL, e };
	err = watch_open(&e->watch);
	if (err != 0)
		return (err);
	e->spec = e->dir = e->next = 0;
	e->err = 0;
	e->workers = g_new0(struct each_worker, e->threads);
	pthread_mutex_init(&e->lock, NULL);
	if (start_all(e) > 0)
		finish(e);
	watch_close(&e->watch);
	pthread_mutex_destroy(&e->lock);
	g_free(e->workers);
	e->workers = NULL;
	return (e->err);
}
