#include "walk/walker.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rate.h"
#include "walk/report.h"
#include "walk/touch.h"

#define CHUNK_MIN 4096
#define CHUNK_MAX (128 * 1024) /* the kernel's read-ahead, and one request to most disks */

/* A sleeping thread wakes late.  The lost time may be made up for, up to this much. */
#define BURST (20 * NS_PER_MS)

/* All threads may read a chunk before its size is known: together at most a tenth of a second of
 * the limit. */
static size_t
chunk_size(const struct walk_conf *conf)
{
	uint64_t share = conf->bytes_per_s / conf->threads / 10;

	return (conf->bytes_per_s == 0 ? CHUNK_MAX : (size_t)CLAMP(share, CHUNK_MIN, CHUNK_MAX));
}

void
walker_init(struct walker *w, struct walk_shared *shared)
{
	w->shared = shared;
	w->chunk = chunk_size(shared->conf);
	w->buf = shared->conf->how == WARM_READ ? g_malloc(w->chunk) : NULL;
	w->sum = shared->state != NULL ? g_checksum_new(G_CHECKSUM_SHA256) : NULL;
	pthread_mutex_init(&w->lock, NULL);
}

void
walker_fini(struct walker *w)
{
	g_free(w->buf);
	g_clear_pointer(&w->sum, g_checksum_free);
	pthread_mutex_destroy(&w->lock);
}

/* ---------------------------------------------------------------- position */

void
walker_enter(struct walker *w, const struct walk_dir *d, const char *name, dev_t dev)
{
	pthread_mutex_lock(&w->lock);
	w->since_ns = clock_mono_ns();
	w->dir = d;
	w->name = name;
	w->dev = dev;
	pthread_mutex_unlock(&w->lock);
}

void
walker_leave(struct walker *w)
{
	pthread_mutex_lock(&w->lock);
	w->since_ns = 0;
	w->told = false;
	pthread_mutex_unlock(&w->lock);
}

bool
walker_hangs(struct walker *w, uint64_t before_ns, dev_t *dev)
{
	bool hangs;

	pthread_mutex_lock(&w->lock);
	hangs = w->since_ns != 0 && w->since_ns < before_ns;
	if (hangs && !w->told)
		walk_report_failure(w->dir, w->name, "no answer yet; continuing with other files");
	w->told |= hangs;
	*dev = w->dev;
	pthread_mutex_unlock(&w->lock);
	return (hangs);
}

void
walker_failed(struct walker *w, const struct walk_dir *d, const char *name, int err)
{
	count_add(&w->counters, errors, 1);
	walk_report_failure(d, name,
	    err == -EXDEV && w->shared->conf->beneath ? "leads out of its root"
						      : strerrordesc_np(-err));
}

/* ---------------------------------------------------------------- rates */

static uint64_t
wait_for(struct walk_shared *s, struct walk_rate *r, uint64_t n)
{
	uint64_t now = clock_mono_ns(), wait;

	pthread_mutex_lock(&s->lock);
	wait = r->due_ns > now ? r->due_ns - now : 0;
	pace_note(&r->due_ns, now - BURST, n, r->per_s);
	pthread_mutex_unlock(&s->lock);
	return (wait);
}

static void
sleep_ns(uint64_t ns)
{
	g_usleep((gulong)((ns + 999) / 1000));
}

static void
pace_file(struct walk_shared *s)
{
	if (s->files.per_s != 0)
		sleep_ns(wait_for(s, &s->files, 1));
}

/* The size of a read is known only after it: waits until earlier bytes are paid for, then adds
 * these. */
static void
pace_read(struct walk_shared *s)
{
	uint64_t wait;

	while (s->bytes.per_s != 0 && (wait = wait_for(s, &s->bytes, 0)) > 0)
		sleep_ns(wait);
}

/* ---------------------------------------------------------------- one name */

int
walker_open(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	int fd;

	walker_enter(w, b->dir, name, b->dir->dev);
	fd = walk_touch_open(b->dir->fd, name, follow, w->shared->conf->beneath);
	walker_leave(w);
	return (fd);
}

ssize_t
walker_read(struct walker *w, const struct walk_batch *b, const char *name, int fd, size_t n,
    uint64_t at)
{
	ssize_t got;

	pace_read(w->shared);
	walker_enter(w, b->dir, name, b->dir->dev);
	got = walk_touch_read(fd, w->buf, n, (off_t)at);
	walker_leave(w);
	if (got < 0)
		return (got);
	count_add(&w->counters, bytes, (uint64_t)got);
	if (w->shared->bytes.per_s != 0)
		wait_for(w->shared, &w->shared->bytes, (uint64_t)got);
	return (got);
}

static int
read_file(struct walker *w, const struct walk_batch *b, const char *name, int fd)
{
	const uint64_t want = w->shared->conf->before;
	uint64_t at;
	ssize_t n = 1;

	for (at = 0; at < want && n > 0; at += (uint64_t)n) {
		size_t ask = (size_t)MIN(want - at, w->chunk);

		n = walker_read(w, b, name, fd, ask, at);
		if (n < 0)
			return ((int)n);
		if ((size_t)n < ask)
			break; /* end of file; a second read is not needed */
	}
	return (0);
}

static int
find_type(struct walker *w, const struct walk_batch *b, const char *name, bool follow,
    uint8_t *type)
{
	int err;

	walker_enter(w, b->dir, name, b->dir->dev);
	err = walk_touch_stat(b->dir->fd, name, follow, type);
	walker_leave(w);
	return (err);
}

static int
make_warm(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	const enum warm_how how = w->shared->conf->how;
	uint8_t type;
	int fd, err;

	if (how == WARM_STAT)
		return (find_type(w, b, name, follow, &type));
	fd = walker_open(w, b, name, follow);
	if (fd < 0)
		return (fd);
	err = how == WARM_READ ? read_file(w, b, name, fd) : 0;
	close(fd);
	return (err);
}

static int
touch_file(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	const struct walk_conf *conf = w->shared->conf;
	int err = (conf->visit != NULL ? conf->visit : make_warm)(w, b, name, follow);

	if (err == 0)
		count_add(&w->counters, files, 1);
	return (err);
}

/* A directory in a list is read but not walked, because find(1) lists its contents, too. */
static int
read_listed_dir(struct walker *w, const struct walk_batch *b, const char *name)
{
	DIR *stream;
	int fd;

	walker_enter(w, b->dir, name, b->dir->dev);
	fd = walk_touch_dir(b->dir->fd, name, true, false);
	stream = fd >= 0 ? fdopendir(fd) : NULL;
	while (stream != NULL && readdir(stream) != NULL)
		;
	walker_leave(w);
	if (stream == NULL)
		return (fd < 0 ? fd : -ENOMEM);
	closedir(stream);
	count_add(&w->counters, directories, 1);
	return (0);
}

static int
touch_dir(struct walker *w, const struct walk_batch *b, const char *name)
{
	if (b->listed)
		return (read_listed_dir(w, b, name));
	walk_queue_add_dir(w->shared->queue, walk_dir_new(b->dir, name));
	return (0);
}

/* Links, and names without a type, that the reader passed on. */
static bool
is_included(const struct walker *w, const struct walk_batch *b, const char *name)
{
	const struct walk_filter *f = &w->shared->filter;
	struct buf path;
	bool is;

	if (b->listed || !walk_filter_of_files(f))
		return (true);
	buf_init(&path, 0);
	walk_dir_path_below(b->dir, name, &path);
	is = walk_filter_file(f, name, path.p);
	buf_free(&path);
	return (is);
}

static int
touch(struct walker *w, const struct walk_batch *b, const struct walk_name *n)
{
	const bool follow = b->listed || w->shared->conf->follow;
	const char *name = walk_batch_text(b, n);
	uint8_t type = n->type;
	int err;

	if (type != DT_REG) {
		err = find_type(w, b, name, follow, &type);
		if ((err == -ENOENT || err == -ELOOP) && n->type == DT_LNK)
			/* the link leads nowhere, but exists */
			err = find_type(w, b, name, false, &type);
		if (err != 0)
			return (err);
	}
	if (type == DT_REG && n->type != DT_REG && !is_included(w, b, name)) {
		count_add(&w->counters, excluded, 1);
		return (0);
	}
	if (type == DT_REG)
		return (touch_file(w, b, name, follow));
	if (type == DT_DIR)
		return (touch_dir(w, b, name));
	count_add(&w->counters, others, 1);
	return (0);
}

/* The name is gone, or now names something else: the tree changes during the walk. */
static bool
has_vanished(const struct walk_batch *b, int err)
{
	return (!b->listed && (err == -ENOENT || err == -ELOOP || err == -ENOTDIR));
}

static void
finish(struct walker *w, struct walk_batch *b, bool good)
{
	struct walk_shared *s = w->shared;

	count_add(&w->counters, finished, 1);
	if (!walk_batch_finished(b, good))
		return;
	if (b->key[0] != '\0' && !b->failed)
		walk_state_note(s->state, b->key);
	walk_queue_unuse(s->queue, b->dir);
	walk_queue_done(s->queue, false);
}

static void
do_name(struct walker *w, const struct walk_name *n)
{
	struct walk_batch *b = w->batch;
	int err;

	pace_file(w->shared);
	err = touch(w, b, n);
	if (err != 0 && has_vanished(b, err))
		count_add(&w->counters, vanished, 1);
	else if (err != 0)
		walker_failed(w, b->dir, walk_batch_text(b, n), err);
	finish(w, b, err == 0 || has_vanished(b, err));
}

bool
walker_one_name(struct walker *w)
{
	const struct walk_name *n = NULL;

	while (n == NULL) {
		if (w->batch == NULL)
			w->batch = walk_queue_take_batch(w->shared->queue);
		if (w->batch == NULL)
			return (false);
		n = walk_batch_next(w->batch);
		if (n == NULL)
			walk_batch_unref(&w->batch);
	}
	do_name(w, n);
	return (true);
}

static void
do_batch(struct walker *w)
{
	const struct walk_name *n;

	while (!walk_queue_hangs(w->shared->queue, w->batch->dir->dev) &&
	       (n = walk_batch_next(w->batch)) != NULL)
		do_name(w, n);
	walk_batch_unref(&w->batch);
}

void
walker_run(struct walker *w)
{
	struct walk_dir *d;

	while (walk_queue_take(w->shared->queue, &d, &w->batch)) {
		if (d != NULL)
			walker_read_dir(w, d);
		if (w->batch != NULL) /* a batch of this job, or left over from helping */
			do_batch(w);
	}
}
