/* walk/scan.c -- opens and reads a directory: its names go into batches, its directories into
 * the queue.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "walk/report.h"
#include "walk/touch.h"
#include "walk/walker.h"

/* The reading of one directory. */
struct scan {
	struct walker *w;
	struct walk_dir *dir;
	struct walk_batch *batch;
	struct buf path; /* of the current name, if a pattern needs it */
};

void
walker_add_batch(struct walk_shared *s, struct walk_counters *t, GChecksum *sum,
    struct walk_batch **bp)
{
	struct walk_batch *b = *bp;

	*bp = NULL;
	walk_batch_seal(b, sum);
	if (b->key[0] != '\0' && walk_state_knows(s->state, b->key)) {
		count_add(t, resumed, b->n);
		walk_queue_unuse(s->queue, b->dir);
		walk_batch_unref(&b);
		return;
	}
	count_add(t, found, b->n);
	walk_queue_add_batch(s->queue, b);
}

/* Adds the batch.  While the queue is full, the reader touches names itself. */
static void
flush(struct scan *s)
{
	if (s->batch != NULL)
		walker_add_batch(s->w->shared, &s->w->counters, s->w->sum, &s->batch);
	while (walk_queue_full(s->w->shared->queue) && walker_one_name(s->w))
		;
}

static const char *
path_of(struct scan *s, const char *name)
{
	if (!walk_filter_needs_path(&s->w->shared->filter))
		return (NULL);
	s->path.n = 0;
	walk_dir_path_below(s->dir, name, &s->path);
	return (s->path.p);
}

static void
found(struct scan *s, const struct dirent *de)
{
	struct walk_shared *sh = s->w->shared;
	const bool is_dir = de->d_type == DT_DIR;
	const char *path = path_of(s, de->d_name);

	/* --include does not exclude names that may be directories */
	if (!(de->d_type == DT_REG ? walk_filter_file : walk_filter_dir)(&sh->filter, de->d_name,
		path)) {
		count_add(&s->w->counters, excluded, 1);
		return;
	}
	if (is_dir) {
		walk_queue_add_dir(sh->queue, walk_dir_new(s->dir, de->d_name));
		return;
	}
	if (s->batch == NULL)
		s->batch = walk_batch_new(s->dir);
	walk_batch_add(s->batch, de->d_name, de->d_ino, de->d_type);
	if (s->batch->n == WALK_BATCH_MAX)
		flush(s);
}

static const struct dirent *
next_entry(struct scan *s, DIR *stream)
{
	const struct dirent *de;

	do {
		walker_enter(s->w, s->dir, NULL, s->dir->dev);
		errno = 0;
		de = readdir(stream);
		walker_leave(s->w);
	} while (de != NULL && (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0));
	return (de);
}

/* The stream has its own descriptor, which is closed when the directory has been read.  The other
 * one is closed when its names are done. */
static int
read_entries(struct scan *s)
{
	int fd = fcntl(s->dir->fd, F_DUPFD_CLOEXEC, 0), err;
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *de;

	if (stream == NULL) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return (err);
	}
	while ((de = next_entry(s, stream)) != NULL)
		found(s, de);
	err = -errno;
	closedir(stream);
	flush(s);
	return (err);
}

/* ---------------------------------------------------------------- opening */

static int
open_dir(struct walker *w, struct walk_dir *d)
{
	const struct walk_conf *conf = w->shared->conf;
	const int at = d->parent != NULL ? d->parent->fd : AT_FDCWD;
	const bool follow = conf->follow || d->parent == NULL;
	int fd;

	walker_enter(w, d, NULL, d->parent != NULL ? d->parent->dev : 0);
	fd = walk_touch_dir(at, d->name, follow, d->parent != NULL);
	walker_leave(w);
	if (fd != -EXDEV && fd != -ENOSYS)
		return (fd);
	if (conf->one_fs)
		return (-EXDEV);
	/* A file system mounted there may hang, which is not the fault of the parent's device. */
	walker_enter(w, d, NULL, 0);
	fd = walk_touch_dir(at, d->name, follow, false);
	walker_leave(w);
	return (fd);
}

/* Only with --follow: a directory is read once, even if several names lead to it. */
static bool
is_seen(struct walk_shared *s, dev_t dev, ino_t ino)
{
	const uint64_t id[] = { dev, ino };
	bool fresh;

	if (s->seen_inodes == NULL)
		return (false);
	pthread_mutex_lock(&s->lock);
	fresh = g_hash_table_add(s->seen_inodes, g_bytes_new(id, sizeof(id)));
	pthread_mutex_unlock(&s->lock);
	return (!fresh);
}

/* A root may be a file.  A directory may have been removed since it was found. */
static void
not_opened(struct walker *w, struct walk_dir *d, int err)
{
	struct walk_batch *b;

	if (err == -EXDEV)
		count_add(&w->counters, elsewhere, 1);
	else if (d->parent != NULL && (err == -ENOENT || err == -ENOTDIR || err == -ELOOP))
		count_add(&w->counters, vanished, 1);
	else if (err != -ENOTDIR)
		walker_failed(w, d, NULL, err);
	else {
		struct walk_dir *here = walk_dir_new(NULL, "");

		walk_dir_opened(here, AT_FDCWD, 0);
		b = walk_batch_new(here);
		b->listed = true;
		walk_batch_add(b, d->name, 0, DT_UNKNOWN);
		walker_add_batch(w->shared, &w->counters, w->sum, &b);
		walk_dir_unuse(here);
		walk_dir_unref(&here);
	}
}

static void
read_opened(struct walker *w, struct walk_dir *d)
{
	struct scan s = { .w = w, .dir = d };
	int err;

	buf_init(&s.path, 0);
	err = read_entries(&s);
	if (err != 0)
		walker_failed(w, d, NULL, err);
	else
		count_add(&w->counters, directories, 1);
	buf_free(&s.path);
}

void
walker_read_dir(struct walker *w, struct walk_dir *d)
{
	int fd = open_dir(w, d);
	dev_t dev = 0;
	ino_t ino = 0;

	if (fd >= 0) {
		walk_queue_opened(w->shared->queue);
		walk_touch_identity(fd, &dev, &ino);
	}
	if (d->parent != NULL)
		walk_queue_unuse(w->shared->queue, d->parent);
	walk_dir_opened(d, fd < 0 ? -1 : fd, dev);
	if (fd < 0)
		not_opened(w, d, fd);
	else if (is_seen(w->shared, dev, ino))
		count_add(&w->counters, again, 1);
	else
		read_opened(w, d);
	walk_queue_unuse(w->shared->queue, d);
	walk_dir_unref(&d);
	walk_queue_done(w->shared->queue, true);
}
