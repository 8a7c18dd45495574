/* server/request/spool.c -- see spool.h */
#include "server/request/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/must.h"
#include "files/root.h"
#include "io/file.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/process/share.h"
#include "server/request/request.h"
#include "server/request/counters.h"
#include "server/worker/base.h"

struct request;

#define SPOOL_FILES 8u /* largest number of directories */
#define FETCH_BYTES (64u << 10)
#define WRITE_MAX   (1u << 20)

/* Shared by all workers, including those of draining generations. */
static struct share memory_share, disk_share;

struct part {
	struct io_file *file;
	uint64_t from, to; /* written and not taken yet */
};

struct spool {
	struct worker_base *w;
	struct spool_conf conf;
	char id[32];
	void (*moved)(void *arg);
	void *arg;
	struct io_op op; /* IO_OPEN, IO_WRITE or IO_READ */
	bool busy, dropped;
	bool broken;    /* a read has failed */
	bool need_file; /* there is no file yet, or the last one is full or failed */
	int err;
	struct buf mem;  /* the newest bytes; a write reads it, so it does not move meanwhile */
	size_t mem_at;   /* bytes before it are taken */
	struct buf more; /* came during a write, and follow those of mem */
	char *window;    /* bytes read from the first part; NULL: none */
	struct text fetched;
	struct part part[SPOOL_FILES];
	/* Parts before the first one are taken; the last one is being written. */
	unsigned first, nparts;
	unsigned dir;          /* index in server.upload-dirs: the next one to try */
	uint64_t memory, disk; /* held shares */
	uint64_t added;
};

static void write_on(struct spool *);

/* ---- life */

struct spool *
spool_new(struct worker_base *w, const struct spool_conf *conf)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return (NULL);
	s->w = w;
	s->conf = *conf;
	s->need_file = true;
	snprintf(s->id, sizeof(s->id), "%s", conf->id);
	buf_init(&s->mem, 0);
	buf_init(&s->more, 0);
	op_init(&s->op, IO_WRITE, NULL);
	if (share_take(&memory_share, conf->client, conf->memory,
		w->global->max_spool_memory << 10))
		s->memory = conf->memory;
	return (s);
}

static void
part_close(struct spool *s, struct part *p)
{
	if (p->file == NULL)
		return;
	io_file_put(p->file);
	p->file = NULL;
	count(s->w->counts.request, spool_closed);
}

static void
spool_free(struct spool *s)
{
	unsigned i;

	for (i = 0; i < s->nparts; i++)
		part_close(s, &s->part[i]);
	if (s->window != NULL)
		io_give_back(s->w->io, s->window);
	buf_free(&s->mem);
	buf_free(&s->more);
	share_give(&memory_share, s->conf.client, s->memory);
	share_give(&disk_share, s->conf.client, s->disk);
	free(s);
}

void
spool_drop(struct spool **sp)
{
	struct spool *s = *sp;

	*sp = NULL;
	if (s == NULL)
		return;
	s->moved = NULL;
	s->dropped = true;
	if (s->busy)
		op_cancel(s->w->io, &s->op);
	else
		spool_free(s);
}

void
spool_listen(struct spool *s, void (*moved)(void *), void *arg)
{
	s->moved = moved;
	s->arg = arg;
}

/* An op has ended.  True: go on. */
static bool
op_over(struct spool *s)
{
	s->busy = false;
	if (!s->dropped)
		return (true);
	spool_free(s);
	return (false);
}

static void
tell(struct spool *s)
{
	if (s->moved != NULL)
		s->moved(s->arg); /* the callee may drop the spool */
}

static void
submit(struct spool *s, enum io_kind kind, void (*done)(struct io_op *))
{
	s->busy = true;
	s->op.kind = kind;
	s->op.done = done;
	s->op.client = s->conf.client;
	s->op.deadline_ms = (uint32_t)(1000 * s->w->global->open_timeout);
	op_submit(s->w->io, &s->op);
}

void
request_drop_spools(struct request *r)
{
	spool_drop(&r->upload);
	spool_drop(&r->kept);
}

/* ---- writing */

static const char *
dir_name(const struct spool *s, unsigned i)
{
	return (s->w->global->upload_dirs.v[i].p);
}

static unsigned
ndirs(const struct spool *s)
{
	size_t n = s->w->global->upload_dirs.n;

	return (n < SPOOL_FILES ? (unsigned)n : SPOOL_FILES);
}

static void
fail(struct spool *s, int err)
{
	s->err = err;
	if (err == -EDQUOT || err == -ENOSPC)
		count(s->w->counts.request, spool_refused);
	tell(s);
}

/* The current directory is unusable: tries the next one, or gives up. */
static void
dir_failed(struct spool *s, int err)
{
	bool last = s->dir >= ndirs(s);

	log_limited(1, LOG_ERROR, s->id, "spool.failed",
	    LF_STR("directory", s->dir != 0 ? dir_name(s, s->dir - 1) : ""), LF_ERR("error", err),
	    LF_STR("then", last ? "refused" : "next of server.upload-dirs"),
	    LF_STR("do", err == -ENOSPC || err == -EDQUOT
			     ? "make room there, or name another one in server.upload-dirs"
			     : "make it writable for server.username, or name another one in "
			       "server.upload-dirs"));
	s->need_file = true;
	if (last)
		fail(s, err == -EDQUOT ? -ENOSPC : err);
	else
		write_on(s);
}

static void
opened(struct io_op *op)
{
	struct spool *s = container_of(op, struct spool, op);
	struct io_file *f = NULL;

	if (op->res >= 0) {
		f = io_file_temp(s->w->io, (int)op->res);
		if (f != NULL) {
			s->part[s->nparts++].file = f;
			s->need_file = false;
			count(s->w->counts.request, spool_opened);
		}
	}
	if (!op_over(s))
		return;
	if (f == NULL)
		dir_failed(s, op->res < 0 ? (int)op->res : -ENOMEM);
	else
		write_on(s);
}

/* After a write: mem continues with the bytes that came meanwhile.  False: no memory. */
static bool
take_more(struct spool *s)
{
	if (s->mem_at < s->mem.n) {
		buf_text(&s->mem, buf_as_text(&s->more));
		buf_free(&s->more);
		return (!s->mem.failed);
	}
	buf_free(&s->mem);
	s->mem = s->more;
	s->mem_at = 0;
	buf_init(&s->more, 0);
	return (true);
}

static void
written(struct io_op *op)
{
	struct spool *s = container_of(op, struct spool, op);

	if (op->res > 0) {
		s->part[s->nparts - 1].to += (uint64_t)op->res;
		s->mem_at += (size_t)op->res;
		count_add(s->w->counts.request, spool_bytes, (uint64_t)op->res);
	}
	if (!op_over(s))
		return;
	if (!take_more(s)) {
		s->broken = true; /* bytes are lost */
		fail(s, -ENOMEM);
		return;
	}
	if (op->res <= 0)
		dir_failed(s, op->res < 0 ? (int)op->res : -EIO);
	else
		write_on(s);
}

static bool
take_disk(struct spool *s, uint64_t n)
{
	if (!share_take(&disk_share, s->conf.client, n, s->w->global->max_spool_size << 10))
		return (false);
	s->disk += n;
	return (true);
}

static uint64_t
on_disk(const struct spool *s)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < s->nparts; i++)
		n += s->part[i].to;
	return (n);
}

/* 0 if the bytes in memory may go to disk; otherwise the reason why not. */
static int
may_write(struct spool *s)
{
	uint64_t want = on_disk(s) + s->mem.n - s->mem_at;

	if (want > s->conf.max)
		return (-EFBIG);
	if (ndirs(s) == 0)
		return (-ENOSPC);
	return (want <= s->disk || take_disk(s, want - s->disk) ? 0 : -EDQUOT);
}

/* Writes the bytes in memory, piece by piece.  Opens a file if there is none or the last directory
 * failed. */
static void
write_on(struct spool *s)
{
	size_t n = s->mem.n - s->mem_at;
	struct part *p;

	if (n == 0) {
		s->mem.n = s->mem_at = 0;
		tell(s);
		return;
	}
	if (s->need_file) {
		memset(&s->op.open, 0, sizeof(s->op.open)); /* no path: a file without a name */
		s->op.open.root = resources_root(s->w->conf.resources, dir_name(s, s->dir++))->fd;
		submit(s, IO_OPEN, opened);
		return;
	}
	p = &s->part[s->nparts - 1];
	s->op.write.file = p->file;
	s->op.write.off = p->to;
	s->op.write.p = s->mem.p + s->mem_at;
	s->op.write.len = (uint32_t)(n < WRITE_MAX ? n : WRITE_MAX);
	submit(s, IO_WRITE, written);
}

/* Another thread reads mem and writes it, so the text goes to `more`. */
static bool
add_during_write(struct spool *s, struct text t)
{
	buf_text(&s->more, t);
	s->added += t.n;
	return (!s->more.failed);
}

bool
spool_add(struct spool *s, struct text t)
{
	if (s->busy && s->op.kind == IO_WRITE)
		return (add_during_write(s, t));
	if (s->mem_at >= s->mem.n - s->mem_at) { /* cheap: it moves fewer bytes than were taken */
		buf_drop(&s->mem, s->mem_at);
		s->mem_at = 0;
	}
	buf_text(&s->mem, t);
	if (s->mem.failed)
		return (false);
	s->added += t.n;
	if (s->mem.n - s->mem_at <= s->memory || s->err != 0 || s->busy)
		return (true);
	s->err = may_write(s);
	if (s->err == -EDQUOT)
		count(s->w->counts.request, spool_refused);
	if (s->err == 0)
		write_on(s);
	return (true);
}

bool
spool_full(const struct spool *s)
{
	return (s->busy || (s->err != 0 && s->mem.n > s->mem_at));
}

int
spool_error(const struct spool *s)
{
	return (s->err);
}

bool
spool_broken(const struct spool *s)
{
	return (s->broken);
}

uint64_t
spool_added(const struct spool *s)
{
	return (s->added);
}

/* ---- reading */

static const struct part *
first_part(const struct spool *s)
{
	unsigned i;

	for (i = s->first; i < s->nparts; i++)
		if (s->part[i].from < s->part[i].to)
			return (&s->part[i]);
	return (NULL);
}

bool
spool_empty(const struct spool *s)
{
	return (!s->busy && s->mem.n == s->mem_at && first_part(s) == NULL);
}

struct spool_bytes
spool_front(const struct spool *s)
{
	const struct part *p = first_part(s);

	if (s->fetched.n != 0)
		return ((struct spool_bytes){ .mem = s->fetched });
	if (p != NULL && !(s->busy && s->op.kind == IO_READ))
		return ((
		    struct spool_bytes){ .file = p->file, .off = p->from, .len = p->to - p->from });
	if (p != NULL || s->busy || s->mem.n == s->mem_at)
		return ((struct spool_bytes){ .mem = TEXT_NONE });
	return ((struct spool_bytes){ .mem = { s->mem.p + s->mem_at, s->mem.n - s->mem_at } });
}

static void
took_from_file(struct spool *s, uint64_t n)
{
	while (s->part[s->first].from == s->part[s->first].to && s->first + 1 < s->nparts)
		s->first++;
	must(n <= s->part[s->first].to - s->part[s->first].from);
	s->part[s->first].from += n;
	if (s->first + 1 < s->nparts && s->part[s->first].from == s->part[s->first].to)
		part_close(s, &s->part[s->first]);
}

void
spool_took(struct spool *s, uint64_t n)
{
	if (s->fetched.n != 0) {
		must(n <= s->fetched.n);
		text_take(&s->fetched, n);
		took_from_file(s, n);
		if (s->fetched.n == 0) {
			io_give_back(s->w->io, s->window);
			s->window = NULL;
		}
	} else if (first_part(s) != NULL) {
		took_from_file(s, n);
	} else {
		must(!s->busy && n <= s->mem.n - s->mem_at);
		s->mem_at += n;
	}
}

static void
fetched(struct io_op *op)
{
	struct spool *s = container_of(op, struct spool, op);

	if (op->res > 0) {
		s->window = io_keep(op);
		s->fetched = (struct text){ s->window, (size_t)op->res };
	}
	if (!op_over(s))
		return;
	s->broken = op->res <= 0;
	tell(s);
}

void
spool_fetch(struct spool *s)
{
	struct spool_bytes b = spool_front(s);
	uint32_t most = io_chunk(s->w->io) < FETCH_BYTES ? io_chunk(s->w->io) : FETCH_BYTES;

	if (s->busy)
		return; /* moved() comes when the op ends */
	must(b.len != 0);
	s->op.file.file = b.file;
	s->op.file.off = b.off;
	s->op.file.len = b.len < most ? (uint32_t)b.len : most;
	submit(s, IO_READ, fetched);
}

uint64_t
spool_longest(const struct worker_base *w)
{
	return ((w->global->max_spool_size << 10) / 2);
}
