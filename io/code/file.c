/* io/code/file.c -- see file.h */
#include "io/code/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/code/cache.h"
#include "io/disk/job.h"
#include "io/start/version.h"

#define STEP (64u << 10)

static void
code_file_free(struct io_work *w)
{
	struct code_file *c = container_of(w, struct code_file, work);

	if (c->fd_out >= 0)
		close(c->fd_out);
	code_cache_put(c->cache);
	buf_free(&c->out);
	free(c->bytes);
	free(c);
}

/* ---- the cache */

/* True: the cache has the result. */
static bool
take_cached(struct code_file *c, const char *name)
{
	struct stat st;
	ssize_t n;
	char *p;
	int fd = cache_open(c->cache, name, &st);

	if (fd < 0)
		return (false);
	c->size = (uint64_t)st.st_size;
	c->was_cached = true;
	if (c->size > c->keep) {
		c->fd_out = fd;
		return (true);
	}
	p = buf_extend(&c->out, c->size);
	n = p != NULL ? pread(fd, p, c->size, 0) : -1;
	close(fd);
	c->err = n == (ssize_t)c->size ? 0 : -EIO;
	return (true);
}

/* ---- compression */

struct making {
	struct code_file *c;
	struct coder *coder;
	struct cache_file to; /* .fd -1: none */
	uint64_t read, spilled;
};

static int64_t
read_piece(struct making *m, char *buf, struct text *piece)
{
	struct code_file *c = m->c;
	uint64_t left = c->stx.stx_size - m->read;
	int64_t n;

	if (left > STEP)
		left = STEP;
	if (c->bytes != NULL) {
		*piece = (struct text){ c->bytes + m->read, left };
		return ((int64_t)left);
	}
	n = io_read_window(c->fd, buf, (uint32_t)left, m->read, IO_WINDOW);
	*piece = (struct text){ buf, n > 0 ? (size_t)n : 0 };
	return (n == 0 && left != 0 ? -ENODATA : n);
}

/* The memory is too small for the bytes that came: a file of the cache takes them. */
static int
spill(struct making *m)
{
	struct code_file *c = m->c;
	int err = 0;

	if (c->out.n <= c->keep)
		return (0);
	if (c->cache == NULL)
		return (-EFBIG);
	if (m->to.fd < 0)
		err = cache_begin(c->cache, &m->to);
	if (err == 0)
		err = cache_write(&m->to, buf_as_text(&c->out));
	m->spilled += c->out.n;
	c->out.n = 0;
	return (err);
}

static int
step(struct making *m, char *buf)
{
	struct code_file *c = m->c;
	struct text piece;
	int64_t n = read_piece(m, buf, &piece);
	int err;

	if (n < 0)
		return ((int)n);
	if (__atomic_load_n(&c->gone, __ATOMIC_RELAXED))
		return (-ECANCELED);
	m->read += (uint64_t)n;
	err =
	    coder_step(m->coder, piece, m->read == c->stx.stx_size ? CODE_END : CODE_MORE, &c->out);
	if (err == 0 && m->spilled + c->out.n >= c->stx.stx_size)
		err = -EFBIG; /* the file itself is shorter */
	return (err != 0 ? err : spill(m));
}

/* Bytes of two versions are not a result. */
static int
check_version(const struct code_file *c)
{
	struct io_version then = io_version_of(&c->stx), now;
	struct statx stx;

	if (c->bytes != NULL)
		return (0);
	if (statx(c->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) < 0)
		return (-errno);
	now = io_version_of(&stx);
	return (io_version_holds(&then, &now) ? 0 : -ETXTBSY);
}

static int
compress_all(struct making *m)
{
	char *buf = m->c->bytes == NULL ? malloc(STEP) : NULL;
	int err = m->c->bytes == NULL && buf == NULL ? -ENOMEM : 0;

	while (err == 0 && m->read < m->c->stx.stx_size)
		err = step(m, buf);
	free(buf);
	return (err != 0 ? err : check_version(m->c));
}

/* The rest goes to the file, which gets its name.  For a result in memory a
 * failure of the cache is not an error, because it needs no file. */
static int
finish(struct making *m, const char *name)
{
	struct code_file *c = m->c;
	bool in_memory = m->to.fd < 0;
	int err;

	c->size = m->spilled + c->out.n;
	if (c->cache == NULL)
		return (0);
	err = in_memory ? cache_begin(c->cache, &m->to) : 0;
	if (err == 0)
		err = cache_write(&m->to, buf_as_text(&c->out));
	if (err == 0)
		err = cache_name(c->cache, &m->to, name, c->size);
	if (in_memory || err != 0)
		return (in_memory ? 0 : err);
	c->out.n = 0;
	c->fd_out = m->to.fd;
	m->to.fd = -1;
	return (0);
}

static void
code_run(struct io_work *w)
{
	struct code_file *c = container_of(w, struct code_file, work);
	struct making m = { .c = c, .to = { .fd = -1 } };
	char name[CODE_NAME_MAX];

	cache_file_name(c, name);
	if (c->cache != NULL && take_cached(c, name) && c->err == 0)
		return;
	c->out.n = 0;
	c->was_cached = false;
	m.coder = coder_new(&c->conf, c->stx.stx_size);
	c->err = m.coder != NULL ? compress_all(&m) : -ENOMEM;
	coder_free(m.coder);
	if (c->err == 0)
		c->err = finish(&m, name);
	cache_drop(c->cache, &m.to);
}

struct code_file *
code_file_new(void)
{
	struct code_file *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return (NULL);
	c->work = (struct io_work){ .run = code_run, .free = code_file_free, .refs = 1 };
	c->fd = c->fd_out = -1;
	buf_init(&c->out, 0);
	return (c);
}
